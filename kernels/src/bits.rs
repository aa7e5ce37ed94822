//! Elements below a byte in a buffer, none across two bytes. The first of them is in
//! the least significant bits of its byte, unless somebody says otherwise.

/// The byte in which a bit of a buffer is.
#[inline]
pub fn byte_of(bit: u64) -> usize {
    // It is in a buffer, so its number fits.
    usize::try_from(bit / 8).unwrap_or(usize::MAX)
}

/// The element of at most 8 bits at a bit of a buffer.
#[inline]
pub fn get(buffer: &[u8], at: u64, bits: u32) -> u8 {
    buffer[byte_of(at)] >> (at % 8) & (0xff >> (8 - bits))
}

/// Puts the low bits of `value` there, and leaves the others of the byte alone.
#[inline]
pub fn set(buffer: &mut [u8], at: u64, bits: u32, value: u8) {
    let mask = (0xff >> (8 - bits)) << (at % 8);
    let byte = &mut buffer[byte_of(at)];
    *byte = *byte & !mask | value << (at % 8) & mask;
}

/// Where in its byte an element really is, whose place is counted from the least
/// significant bit: there, or counted from the most significant one.
#[inline]
pub fn ordered(at: u64, bits: u32, most_first: bool) -> u64 {
    if most_first && bits < 8 { at - at % 8 + (8 - u64::from(bits) - at % 8) } else { at }
}

/// The bits of `bytes` bytes, packed: of each byte the low `BITS` ones, or
/// whether any was set.
#[inline(always)]
pub fn narrow<const BITS: u32, const TRUTH: bool>(bytes: [u8; 8]) -> u64 {
    let mut x = u64::from_le_bytes(bytes);
    if TRUTH {
        // The top bit of each byte: set by the carry out of the others, or so.
        const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        x = (((x & LOW) + LOW) | x) >> 7;
    }
    // Twice as many elements beside each other in each step.
    let mut bits = BITS;
    let mut lane = 8;
    x &= u64::MAX / 0xff * mask(bits);
    while lane < 64 {
        (x, bits, lane) = (x | x >> (lane - bits), 2 * bits, 2 * lane);
        x &= if lane < 64 { u64::MAX / mask(lane) * mask(bits) } else { mask(bits) };
    }
    x
}

/// The inverse of [`narrow`]: eight bytes from the low `8 * BITS` bits.
#[inline(always)]
pub fn widen<const BITS: u32>(packed: u64) -> [u8; 8] {
    let mut bits = 8 * BITS;
    let mut lane = 64;
    let mut x = packed & mask(bits);
    while lane > 8 {
        (bits, lane) = (bits / 2, lane / 2);
        x = (x | x << (lane - bits)) & (u64::MAX / mask(lane) * mask(bits));
    }
    x.to_le_bytes()
}

/// The low `bits` bits.
const fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// Eight bytes of packed elements, those of each byte in the opposite order.
#[inline(always)]
pub fn reversed(packed: u64, bits: u32) -> u64 {
    let mut x = packed;
    let mut half = bits;
    while half < 8 {
        let low = u64::MAX / mask(2 * half) * mask(half);
        x = (x & low) << half | (x >> half) & low;
        half *= 2;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bytes_are_packed_and_come_back() {
        let bytes = [0x01, 0xf2, 0x43, 0x84, 0x00, 0x96, 0xa7, 0xff];
        assert_eq!(narrow::<4, false>(bytes), 0xf760_4321);
        assert_eq!(narrow::<2, false>(bytes), 0b1111_1000_0011_1001);
        assert_eq!(narrow::<1, false>(bytes), 0b1100_0101);
        assert_eq!(narrow::<1, true>(bytes), 0b1110_1111);
        assert_eq!(widen::<4>(0xf760_4321), [1, 2, 3, 4, 0, 6, 7, 15]);
        assert_eq!(widen::<2>(0b1111_1000_0011_1001), [1, 2, 3, 0, 0, 2, 3, 3]);
        assert_eq!(widen::<1>(0b1110_1111), [1, 1, 1, 1, 0, 1, 1, 1]);
    }
}
