//! x86-64.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

pub(super) mod avx2;
#[cfg(not(emulate_avx512))]
pub(super) mod avx512;
#[cfg(emulate_avx512)]
#[path = "emulated.rs"]
pub(super) mod avx512;
mod sse;

/// Fetches the line of an address into the cache of that level.
#[inline(always)]
pub(super) fn prefetch<const LEVEL: u32>(at: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
    match LEVEL {
        1 => {
            // SAFETY: a hint, which does nothing where nothing is, and part of SSE, which
            // every x86-64 has.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
        }
        _ => {
            // SAFETY: as above.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
        }
    }
}

/// Orders streaming stores before whatever is stored later.
pub(super) fn fence() {
    // Part of SSE, which every x86-64 has.
    #[allow(unused_unsafe, reason = "safe in newer compilers")]
    // SAFETY: the instruction touches no memory and needs nothing but SSE.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}
