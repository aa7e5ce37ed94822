//! The scalar tier: every op one element at a time, as its table row in
//! [`Strip`] says it. The vector tiers use it for what is too
//! small for a vector.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use super::algorithm::{Algorithm, InstructionSet};
use super::bits;
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

#[inline(always)]
pub(super) fn from(first: *const u8, stride: usize) -> Places<*const u8> {
    Places { first, stride }
}

#[inline(always)]
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
        let from = source.first.wrapping_add(i.wrapping_mul(source.stride)).cast::<[u8; WIDTH]>();
        let to = destination
            .first
            .wrapping_add(i.wrapping_mul(destination.stride))
            .cast::<[u8; WIDTH]>();
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
    if count > 0 {
        // SAFETY: by the contract of this function.
        unsafe { std::ptr::copy_nonoverlapping(source, destination, count) };
    }
}

/// Copies a run of up to 63 bytes.
///
/// # Safety
///
/// As [`run`], and there are no more.
#[inline(always)]
pub(super) unsafe fn less_than_line(source: *const u8, destination: *mut u8, count: usize) {
    // SAFETY: as many bytes twice, at both ends of the run.
    match count {
        32.. => {
            // SAFETY: as above.
            unsafe { both_ends::<32>(source, destination, count) }
        }
        16..32 => {
            // SAFETY: as above.
            unsafe { both_ends::<16>(source, destination, count) }
        }
        ..16 => {
            // SAFETY: 15 bytes at most.
            unsafe { short_run(source, destination, count) }
        }
    }
}

/// Copies a run of up to 15 bytes: its first ones, and its last ones, which may be some of them.
///
/// # Safety
///
/// As [`run`], and there are no more.
#[inline(always)]
unsafe fn short_run(source: *const u8, destination: *mut u8, count: usize) {
    // SAFETY: as many bytes twice, at both ends of the run.
    match count {
        8.. => {
            // SAFETY: as above.
            unsafe { both_ends::<8>(source, destination, count) }
        }
        4..8 => {
            // SAFETY: as above.
            unsafe { both_ends::<4>(source, destination, count) }
        }
        2..4 => {
            // SAFETY: as above.
            unsafe { both_ends::<2>(source, destination, count) }
        }
        1 => {
            // SAFETY: as above.
            unsafe { both_ends::<1>(source, destination, count) }
        }
        0 => {}
    }
}

/// Copies the first `WIDTH` bytes of a run, and the last ones.
///
/// # Safety
///
/// As [`run`], and there are so many.
#[inline(always)]
unsafe fn both_ends<const WIDTH: usize>(source: *const u8, destination: *mut u8, count: usize) {
    let last = count - WIDTH;
    // SAFETY: by the contract of this function. Bytes need no alignment.
    let first_bytes = unsafe { source.cast::<[u8; WIDTH]>().read() };
    // SAFETY: as above.
    let last_bytes = unsafe { source.wrapping_add(last).cast::<[u8; WIDTH]>().read() };
    // SAFETY: as above.
    unsafe { destination.cast::<[u8; WIDTH]>().write(first_bytes) };
    // SAFETY: as above.
    unsafe { destination.wrapping_add(last).cast::<[u8; WIDTH]>().write(last_bytes) };
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

/// The same of few bytes mostly.
///
/// # Safety
///
/// As there.
#[inline(always)]
pub(super) unsafe fn short_fill(destination: *mut u8, byte: u8, count: usize) {
    if count < 16 {
        // SAFETY: by the contract of this function.
        unsafe { short_run([byte; 16].as_ptr(), destination, count) };
    } else {
        // SAFETY: as above.
        unsafe { fill(destination, byte, count) };
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

/// Packs a run of bytes into a run of elements of `BITS` bits, which begins at a bit of its first byte. The other bits of
/// that byte stay as they are; those of the last one become zeros if `CLEARS` says so, or stay, too.
///
/// # Safety
///
/// `columns` bytes can be read, and the bytes that take them be written, and read where bits of them stay.
#[inline(always)]
pub(super) unsafe fn narrow_run<
    const BITS: u32,
    const TRUTH: bool,
    const MOST_FIRST: bool,
    const CLEARS: bool,
>(
    columns: usize,
    source: *const u8,
    destination: *mut u8,
    bit: usize,
) {
    let mut to = destination;
    // What the next byte to be written has so far.
    let mut begun = 0;
    if bit > 0 {
        // SAFETY: the first byte of the run.
        begun = first_bits::<MOST_FIRST>(of_byte::<MOST_FIRST>(unsafe { to.read() }), bit);
    }
    let mut at = 0;
    while at < columns {
        let count = if at + 8 <= columns { 8 } else { columns - at };
        // SAFETY: the columns from `at` on, eight or what is left.
        let eight = unsafe { up_to_eight(source.wrapping_add(at), count) };
        // As a number whose most significant bits come first, if those of a byte do.
        let bytes = if MOST_FIRST {
            let packed = bits::narrow::<BITS, TRUTH>(eight.to_be_bytes());
            begun |= packed << (u64::BITS - 8 * BITS) >> bit;
            begun.to_be_bytes()
        } else {
            begun |= bits::narrow::<BITS, TRUTH>(eight.to_le_bytes()) << bit;
            begun.to_le_bytes()
        };
        let whole = (bit + count * BITS as usize) / 8;
        // SAFETY: bytes that these columns fill, with those before them.
        unsafe { few(bytes.as_ptr(), to, whole, BITS as usize) };
        to = to.wrapping_add(whole);
        begun = if MOST_FIRST { begun << (8 * whole) } else { begun >> (8 * whole) };
        at += 8;
    }
    let behind = (bit + columns * BITS as usize) % 8;
    if behind == 0 {
        return;
    }
    if !CLEARS {
        // SAFETY: the last byte, which the columns do not fill.
        let last = of_byte::<MOST_FIRST>(unsafe { to.read() });
        begun =
            first_bits::<MOST_FIRST>(begun, behind) | last & !first_bits::<MOST_FIRST>(!0, behind);
    }
    let [last, ..] = if MOST_FIRST { begun.to_be_bytes() } else { begun.to_le_bytes() };
    // SAFETY: as above.
    unsafe { to.write(last) };
}

/// A byte as the first one of a number.
#[inline(always)]
fn of_byte<const MOST_FIRST: bool>(byte: u8) -> u64 {
    if MOST_FIRST { u64::from(byte) << (u64::BITS - 8) } else { byte.into() }
}

/// The first bits of a number, fewer than 64.
#[inline(always)]
fn first_bits<const MOST_FIRST: bool>(number: u64, count: usize) -> u64 {
    let first = (1_u64 << count) - 1;
    number & if MOST_FIRST { first.rotate_right(u32::try_from(count).unwrap_or(0)) } else { first }
}

/// Up to eight bytes, and zeros behind them: not put together in memory, from where they could not be loaded as a whole
/// before the core has finished with the parts.
///
/// # Safety
///
/// So many bytes can be read.
#[inline(always)]
unsafe fn up_to_eight(source: *const u8, count: usize) -> u64 {
    // The last ones, of which the first ones may be some, to where they belong.
    let behind = |first: u64, last: u64, width: usize| first | last << (8 * (count - width));
    match count {
        8.. => {
            // SAFETY: by the contract of this function. Bytes need no alignment.
            u64::from_le_bytes(unsafe { source.cast::<[u8; 8]>().read() })
        }
        4..8 => {
            // SAFETY: as above.
            let first = u32::from_le_bytes(unsafe { source.cast::<[u8; 4]>().read() });
            let last = source.wrapping_add(count - 4).cast::<[u8; 4]>();
            // SAFETY: as above.
            behind(first.into(), u32::from_le_bytes(unsafe { last.read() }).into(), 4)
        }
        2..4 => {
            // SAFETY: as above.
            let first = u16::from_le_bytes(unsafe { source.cast::<[u8; 2]>().read() });
            let last = source.wrapping_add(count - 2).cast::<[u8; 2]>();
            // SAFETY: as above.
            behind(first.into(), u16::from_le_bytes(unsafe { last.read() }).into(), 2)
        }
        // SAFETY: as above.
        1 => unsafe { source.read() }.into(),
        0 => 0,
    }
}

/// Copies `count` bytes: mostly all of `whole`, which is known when this is compiled.
///
/// # Safety
///
/// As [`run`]; and they are `whole`, or 15 at most.
#[inline(always)]
pub(super) unsafe fn few(source: *const u8, destination: *mut u8, count: usize, whole: usize) {
    if count == whole {
        // SAFETY: by the contract of this function.
        unsafe { run(source, destination, whole) };
    } else {
        // SAFETY: by the contract of this function.
        unsafe { short_run(source, destination, count) };
    }
}

/// Widens a run of elements of `BITS` bits, which begins at a bit of its first byte, into a run of bytes.
///
/// # Safety
///
/// `columns` bytes can be written, and the bytes that they come from read.
#[inline(always)]
pub(super) unsafe fn widen_run<const BITS: u32, const MOST_FIRST: bool>(
    columns: usize,
    source: *const u8,
    bit: usize,
    destination: *mut u8,
) {
    let mut at = 0;
    while at < columns {
        let eight_bytes = if at + 8 <= columns { 8 } else { columns - at };
        let from = source.wrapping_add(at / 8 * BITS as usize);
        let count = (bit + eight_bytes * BITS as usize).div_ceil(8);
        // SAFETY: so many bytes have a bit of eight columns, or of what is left: five at most.
        let packed = unsafe { up_to_eight(from, count) };
        let eight = if MOST_FIRST {
            let first = packed.swap_bytes() << bit;
            let [a, b, c, d, e, f, g, h] = bits::widen::<BITS>(first >> (u64::BITS - 8 * BITS));
            [h, g, f, e, d, c, b, a]
        } else {
            bits::widen::<BITS>(packed >> bit)
        };
        // SAFETY: the columns from `at` on, eight or what is left.
        unsafe { few(eight.as_ptr(), destination.wrapping_add(at), eight_bytes, 8) };
        at += 8;
    }
}

/// Copies a run of bytes, the elements of each, `BITS` bits wide, in the opposite order.
///
/// # Safety
///
/// As [`run`].
#[inline(always)]
pub(super) unsafe fn reverse_run<const BITS: u32>(
    columns: usize,
    source: *const u8,
    destination: *mut u8,
) {
    for i in 0..columns {
        // SAFETY: one of the bytes.
        let byte = unsafe { source.wrapping_add(i).read() };
        let [reversed, ..] = bits::reversed(byte.into(), BITS).to_le_bytes();
        // SAFETY: one of the bytes.
        unsafe { destination.wrapping_add(i).write(reversed) };
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
        let element = unsafe { source.first.wrapping_add(row.wrapping_mul(source.stride)).read() };
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
        let to = destination.first.wrapping_add(row.wrapping_mul(destination.stride));
        // SAFETY: one of the places.
        unsafe { to.write(rest & (0xff >> (8 - BITS))) };
        rest = rest.wrapping_shr(BITS);
    }
}

/// [`squeeze`] of one column of rows that are packed.
///
/// # Safety
///
/// The rows have this column.
#[inline(always)]
pub(super) unsafe fn squeeze_packed<const BITS: u32, const MOST_FIRST: bool>(
    rows: usize,
    column: usize,
    source: Places<*const u8>,
) -> u8 {
    let in_byte = 8 / BITS as usize;
    let in_order = if MOST_FIRST { in_byte - 1 - column % in_byte } else { column % in_byte };
    let (at, shift) = (column / in_byte, in_order * BITS as usize);
    let mut byte = 0;
    for row in (0..rows).rev() {
        let from = source.first.wrapping_add(row.wrapping_mul(source.stride).wrapping_add(at));
        // SAFETY: the byte of that column in one of the rows.
        let elements = unsafe { from.read() };
        byte = byte << BITS | elements >> shift & (0xff >> (8 - BITS));
    }
    byte
}

/// The inverse of [`squeeze_packed`], of so many columns, which fill bytes of the rows.
///
/// # Safety
///
/// So many bytes of words can be read, and so many columns of the rows written.
#[inline(always)]
pub(super) unsafe fn unsqueeze_packed<const BITS: u32, const MOST_FIRST: bool>(
    rows: usize,
    columns: usize,
    source: Places<*const u8>,
    destination: Places<*mut u8>,
) {
    let in_byte = 8 / BITS as usize;
    for at in 0..columns / in_byte {
        for row in 0..rows {
            let mut byte = 0;
            for i in 0..in_byte {
                // The one in the most significant bits first.
                let column = at * in_byte + if MOST_FIRST { i } else { in_byte - 1 - i };
                let from = source.first.wrapping_add(column.wrapping_mul(source.stride));
                // SAFETY: the byte of one of the columns.
                let elements = unsafe { from.read() };
                byte = byte << BITS | elements >> (row * BITS as usize) & (0xff >> (8 - BITS));
            }
            let to = destination.first.wrapping_add(row.wrapping_mul(destination.stride));
            // SAFETY: one byte of one of the rows.
            unsafe { to.wrapping_add(at).write(byte) };
        }
    }
}
