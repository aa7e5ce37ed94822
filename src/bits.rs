//! Elements below a byte in a buffer: least significant bit of the first byte
//! first, none across two bytes.

/// The byte in which a bit of a buffer is.
pub(crate) fn byte_of(bit: u64) -> usize {
    // It is in a buffer, so its number fits.
    usize::try_from(bit / 8).unwrap_or(usize::MAX)
}

/// The element of at most 8 bits at a bit of a buffer.
pub(crate) fn get(buffer: &[u8], at: u64, bits: u32) -> u8 {
    buffer[byte_of(at)] >> (at % 8) & (0xff >> (8 - bits))
}

/// Puts the low bits of `value` there, and leaves the others of the byte alone.
pub(crate) fn set(buffer: &mut [u8], at: u64, bits: u32, value: u8) {
    let mask = (0xff >> (8 - bits)) << (at % 8);
    let byte = &mut buffer[byte_of(at)];
    *byte = *byte & !mask | value << (at % 8) & mask;
}
