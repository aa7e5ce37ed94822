//! The scalar tier: every op one element at a time, as its table row in
//! [`Strip`] says it. The vector tiers use it for what is too
//! small for a vector.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use super::vector::{Algorithm, InstructionSet};
use super::{Place, Run, Strip};

/// The tier without vectors.
pub(super) struct Scalar;

impl InstructionSet for Scalar {
    fn entry<A: Algorithm>() -> Run {
        entry::<A>
    }
}

/// # Safety
///
/// The contract of [`kernel`](super).
unsafe fn entry<A: Algorithm>(
    strip: &Strip,
    _order: &[Place],
    source: *const u8,
    destination: *mut u8,
) {
    // SAFETY: the same contract.
    unsafe { A::elements(strip, source, destination) };
}

/// `count` places of one element each, at a fixed stride in bytes.
#[derive(Clone, Copy)]
pub(super) struct Places<P> {
    pub(super) first: P,
    pub(super) stride: usize,
}

pub(super) fn from(first: *const u8, stride: usize) -> Places<*const u8> {
    Places { first, stride }
}

pub(super) fn to(first: *mut u8, stride: usize) -> Places<*mut u8> {
    Places { first, stride }
}

/// Moves `count` elements of `WIDTH` bytes.
///
/// # Safety
///
/// All places can be read and written, and none is on both sides.
#[inline(always)]
pub(super) unsafe fn elements<const WIDTH: usize>(
    count: usize,
    source: Places<*const u8>,
    destination: Places<*mut u8>,
) {
    for i in 0..count {
        let from = source.first.wrapping_add(i * source.stride).cast::<[u8; WIDTH]>();
        let to = destination.first.wrapping_add(i * destination.stride).cast::<[u8; WIDTH]>();
        // SAFETY: one of the places of the source. Bytes need no alignment.
        let element = unsafe { from.read() };
        // SAFETY: one of the places of the destination.
        unsafe { to.write(element) };
    }
}

/// Copies a run of bytes.
///
/// # Safety
///
/// They can be read and written, and the two runs do not overlap.
#[inline(always)]
pub(super) unsafe fn run(source: *const u8, destination: *mut u8, count: usize) {
    // SAFETY: by the contract of this function.
    unsafe { std::ptr::copy_nonoverlapping(source, destination, count) };
}

/// Writes a run of one byte.
///
/// # Safety
///
/// It can be written.
#[inline(always)]
pub(super) unsafe fn fill(destination: *mut u8, byte: u8, count: usize) {
    if count > 0 {
        // SAFETY: by the contract of this function.
        unsafe { destination.write_bytes(byte, count) };
    }
}

/// The pointers of each block of a strip.
#[inline(always)]
pub(super) fn blocks(
    strip: &Strip,
    source: *const u8,
    destination: *mut u8,
) -> impl Iterator<Item = (*const u8, *mut u8)> {
    strip.places().map(move |place| place.of(source, destination))
}

/// The bits of `bytes` bytes, packed: of each byte the low `BITS` ones, or
/// whether any was set.
#[inline(always)]
pub(super) fn narrow<const BITS: u32, const TRUTH: bool>(bytes: [u8; 8]) -> u64 {
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
pub(super) fn widen<const BITS: u32>(packed: u64) -> [u8; 8] {
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

/// Packs a run of bytes into a run of elements of `BITS` bits. A byte of the
/// destination that they do not fill is filled with zeros.
///
/// # Safety
///
/// `columns` bytes can be read, and the bytes that take them written.
#[inline(always)]
pub(super) unsafe fn narrow_run<const BITS: u32, const TRUTH: bool>(
    columns: usize,
    source: *const u8,
    destination: *mut u8,
) {
    let packed_bytes = BITS as usize;
    for first in (0..columns).step_by(8) {
        let count = (columns - first).min(8);
        let mut eight = [0; 8];
        // SAFETY: `count` of the columns, from `first` on.
        unsafe { run(source.wrapping_add(first), eight.as_mut_ptr(), count) };
        let packed = narrow::<BITS, TRUTH>(eight).to_le_bytes();
        let to = destination.wrapping_add(first / 8 * packed_bytes);
        // SAFETY: eight columns take BITS bytes, `count` of them as many of
        // these as have a bit.
        unsafe { run(packed.as_ptr(), to, (count * packed_bytes).div_ceil(8)) };
    }
}

/// Widens a run of elements of `BITS` bits into a run of bytes.
///
/// # Safety
///
/// `columns` bytes can be written, and the bytes that they come from read.
#[inline(always)]
pub(super) unsafe fn widen_run<const BITS: u32>(
    columns: usize,
    source: *const u8,
    destination: *mut u8,
) {
    let packed_bytes = BITS as usize;
    for first in (0..columns).step_by(8) {
        let count = (columns - first).min(8);
        let mut packed = [0; 8];
        let at = source.wrapping_add(first / 8 * packed_bytes);
        // SAFETY: as many of the BITS bytes of eight columns as have a bit of
        // the `count` ones.
        unsafe { run(at, packed.as_mut_ptr(), (count * packed_bytes).div_ceil(8)) };
        let eight = widen::<BITS>(u64::from_le_bytes(packed));
        // SAFETY: `count` of the columns, from `first` on.
        unsafe { run(eight.as_ptr(), destination.wrapping_add(first), count) };
    }
}

/// One byte of a word: the low bits of one byte of each row, beginning with the
/// least significant.
///
/// # Safety
///
/// `rows` bytes can be read.
#[inline(always)]
pub(super) unsafe fn squeeze<const BITS: u32, const TRUTH: bool>(
    rows: usize,
    source: Places<*const u8>,
) -> u8 {
    let mut byte = 0;
    for row in (0..rows).rev() {
        // SAFETY: one of the places.
        let element = unsafe { source.first.wrapping_add(row * source.stride).read() };
        let bits = if TRUTH { u8::from(element != 0) } else { element & (0xff >> (8 - BITS)) };
        byte = byte << BITS | bits;
    }
    byte
}

/// Bytes, one for each row, from one byte of a word: the inverse of
/// [`squeeze`].
///
/// # Safety
///
/// `rows` bytes can be written.
#[inline(always)]
pub(super) unsafe fn unsqueeze<const BITS: u32>(
    rows: usize,
    byte: u8,
    destination: Places<*mut u8>,
) {
    let mut rest = byte;
    for row in 0..rows {
        let to = destination.first.wrapping_add(row * destination.stride);
        // SAFETY: one of the places.
        unsafe { to.write(rest & (0xff >> (8 - BITS))) };
        rest = rest.wrapping_shr(BITS);
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
}
