//! Memory as runtimes stage from and to.

/// So many bytes in huge pages, where the system has some, that have been touched.
pub(crate) fn huge(bytes: u64) -> memmap2::MmapMut {
    let bytes = usize::try_from(bytes).expect("it fits");
    let mut memory = memmap2::MmapMut::map_anon(bytes.max(1)).expect("there is memory");
    #[cfg(target_os = "linux")]
    memory.advise(memmap2::Advice::HugePage).ok();
    memory.fill(1);
    memory
}

/// The same, with bytes that differ from their neighbours.
#[allow(dead_code, reason = "each bench uses its part")]
pub(crate) fn patterned(bytes: u64) -> memmap2::MmapMut {
    let mut memory = huge(bytes);
    for (i, byte) in memory.iter_mut().enumerate() {
        *byte = (i.wrapping_mul(31) >> 3).to_le_bytes()[0];
    }
    memory
}
