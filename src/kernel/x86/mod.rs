//! x86-64.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

pub(super) mod avx2;
pub(super) mod avx512;

/// Orders streaming stores before whatever is stored later.
pub(super) fn fence() {
    // Part of SSE, which every x86-64 has.
    #[allow(unused_unsafe, reason = "safe in newer compilers")]
    // SAFETY: the instruction touches no memory and needs nothing but SSE.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}
