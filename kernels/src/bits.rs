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
    let mut x = packed;
    let mut bits = 8 * BITS;
    let mut lane = 64;
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

/// Widens a run of elements that begins at any bit into bytes.
pub fn widen_run(source: &[u8], at: u64, bits: u32, most_first: bool, bytes: &mut [u8]) {
    match bits {
        1 => widen_run_of::<1>(source, at, most_first, bytes),
        2 => widen_run_of::<2>(source, at, most_first, bytes),
        _ => widen_run_of::<4>(source, at, most_first, bytes),
    }
}

fn widen_run_of<const BITS: u32>(source: &[u8], at: u64, most_first: bool, bytes: &mut [u8]) {
    let (first, shift) = (byte_of(at), at % 8);
    let mut rest = &source[first.min(source.len())..];
    for eight in bytes.chunks_mut(8) {
        // Eight elements are in five bytes at most.
        let word = number(rest);
        let word = if most_first { reversed(word, BITS) } else { word };
        let widened = widen::<BITS>((word >> shift) & mask(8 * BITS));
        put_number(u64::from_le_bytes(widened), eight);
        rest = rest.get(BITS as usize..).unwrap_or_default();
    }
}

/// The first eight bytes as a number, or those that there are, the first one its least significant byte: not by a copy of
/// so many, which would be a call.
#[inline(always)]
fn number(bytes: &[u8]) -> u64 {
    // The last ones, of which the first ones may be some, to where they belong.
    let behind = |first: u64, last: u64, width: usize| first | last << (8 * (bytes.len() - width));
    if let Some(eight) = bytes.first_chunk() {
        u64::from_le_bytes(*eight)
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        behind(u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into(), 4)
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        behind(u16::from_le_bytes(*first).into(), u16::from_le_bytes(*last).into(), 2)
    } else {
        bytes.first().copied().unwrap_or(0).into()
    }
}

/// The inverse of [`number`].
#[inline(always)]
fn put_number(number: u64, bytes: &mut [u8]) {
    let [a, b, c, d, ..] = number.to_le_bytes();
    let count = bytes.len();
    let last = |width: usize| number >> (8 * (count - width));
    if let Some(eight) = bytes.first_chunk_mut() {
        *eight = number.to_le_bytes();
    } else if count >= 4 {
        let [e, f, g, h, ..] = last(4).to_le_bytes();
        bytes.first_chunk_mut().into_iter().for_each(|first| *first = [a, b, c, d]);
        bytes.last_chunk_mut().into_iter().for_each(|last| *last = [e, f, g, h]);
    } else if count >= 2 {
        let [e, f, ..] = last(2).to_le_bytes();
        bytes.first_chunk_mut().into_iter().for_each(|first| *first = [a, b]);
        bytes.last_chunk_mut().into_iter().for_each(|last| *last = [e, f]);
    } else if let Some(one) = bytes.first_mut() {
        *one = a;
    }
}

/// Narrows bytes into a run of elements that begins at any bit, and leaves the other
/// bits of its first and its last byte alone.
pub fn narrow_run(
    bytes: &[u8],
    (bits, truth, most_first): (u32, bool, bool),
    destination: &mut [u8],
    at: u64,
) {
    match (bits, truth) {
        (1, true) => narrow_run_of::<1, true>(bytes, most_first, destination, at),
        (1, false) => narrow_run_of::<1, false>(bytes, most_first, destination, at),
        (2, _) => narrow_run_of::<2, false>(bytes, most_first, destination, at),
        _ => narrow_run_of::<4, false>(bytes, most_first, destination, at),
    }
}

fn narrow_run_of<const BITS: u32, const TRUTH: bool>(
    bytes: &[u8],
    most_first: bool,
    destination: &mut [u8],
    at: u64,
) {
    let ordered = |word: u64| if most_first { reversed(word, BITS) } else { word };
    let (mut first, shift) = (byte_of(at), at % 8);
    // What the next byte to be written has so far, in so many bits.
    let mut begun = ordered(destination[first].into()) & ((1 << shift) - 1);
    let before = usize::try_from(shift).unwrap_or(0);
    for values in bytes.chunks(8) {
        let all = begun | narrow::<BITS, TRUTH>(number(values).to_le_bytes()) << shift;
        let whole = (before + values.len() * BITS as usize) / 8;
        put_number(ordered(all), &mut destination[first..first + whole]);
        (first, begun) = (first + whole, all >> (8 * whole));
    }
    let behind = (before + bytes.len() * BITS as usize) % 8;
    if behind > 0 {
        let others = ordered(destination[first].into()) >> behind << behind;
        let [last, ..] = ordered(begun & ((1 << behind) - 1) | others).to_le_bytes();
        destination[first] = last;
    }
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

    #[test]
    fn runs_begin_at_any_bit_in_both_orders() {
        let packed: Vec<u8> = (0..24).map(|i: u8| i.wrapping_mul(73) ^ 0x5a).collect();
        for bits in [1, 2, 4] {
            for (first, count) in [(0, 5), (3, 8), (1, 17), (7, 30), (0, 48)] {
                let at = |i: usize| u64::from(bits) * u64::try_from(i).unwrap();
                for most_first in [false, true] {
                    let mut bytes = vec![0xee; count];
                    widen_run(&packed, at(first), bits, most_first, &mut bytes);
                    let mut expected = packed.clone();
                    let mut back = packed.clone();
                    for (i, &value) in bytes.iter().enumerate() {
                        let place = ordered(at(first + i), bits, most_first);
                        assert_eq!(value, get(&packed, place, bits), "{bits} {first} {i}");
                        set(&mut expected, place, bits, !value);
                    }
                    bytes.iter_mut().for_each(|byte| *byte = !*byte);
                    narrow_run(&bytes, (bits, false, most_first), &mut back, at(first));
                    assert_eq!(back, expected, "{bits} {first} {count} {most_first}");
                }
            }
        }
    }
}
