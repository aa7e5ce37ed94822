//! Columns of bytes into bytes that hold several, and back: host arrays that are packed
//! along their minor dimension.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use super::algorithm::Algorithm;
use super::scalar;
use super::vector::{LINE, Vector, put};
use super::{Place, Strip};

/// [`BlockOp::Narrow`](super::BlockOp::Narrow).
pub(super) struct Narrow<const BITS: u32, const TRUTH: bool, const STREAM: bool>;

impl<const BITS: u32, const TRUTH: bool, const STREAM: bool> Algorithm
    for Narrow<BITS, TRUTH, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: the columns of a block.
            unsafe {
                scalar::narrow_run::<BITS, TRUTH, false, true>(
                    strip.columns,
                    source,
                    destination,
                    0,
                );
            };
            // SAFETY: `pad` bytes follow them.
            unsafe { scalar::short_fill(padding::<BITS>(strip, destination), 0, strip.pad) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        if strip.columns < least_columns::<V>(BITS) {
            // SAFETY: the same strip.
            return unsafe { Self::elements(strip, source, destination) };
        }
        for (source, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: the columns of a block; the CPU has `V`.
            unsafe {
                narrow_columns::<V, BITS, TRUTH, false, STREAM>(source, destination, strip.columns);
            };
            // SAFETY: `pad` bytes follow them.
            unsafe { scalar::short_fill(padding::<BITS>(strip, destination), 0, strip.pad) };
        }
    }
}

/// Where the padding of a block begins.
#[inline(always)]
fn padding<const BITS: u32>(strip: &Strip, block: *mut u8) -> *mut u8 {
    block.wrapping_add((strip.columns * BITS as usize).div_ceil(8))
}

/// The fewest elements of so many bits that are narrowed, or widened, by a vector, the shortest one that `V` has.
pub(super) const fn least_columns<V: Vector>(bits: u32) -> usize {
    <V::Half as Vector>::Half::BYTES * 8 / bits as usize
}

/// [`BlockOp::Widen`](super::BlockOp::Widen).
pub(super) struct Widen<const BITS: u32>;

impl<const BITS: u32> Algorithm for Widen<BITS> {
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: the columns of a block.
            unsafe { scalar::widen_run::<BITS, false>(strip.columns, source, 0, destination) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        if strip.columns < least_columns::<V>(BITS) {
            // SAFETY: the same strip.
            return unsafe { Self::elements(strip, source, destination) };
        }
        for (source, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: the columns of a block; the CPU has `V`.
            unsafe { widen_columns::<V, BITS, false>(source, destination, strip.columns) };
        }
    }
}

/// Narrows columns, the last ones, which are less than a vector, eight at a time; a byte of the destination that they do
/// not fill is filled with zeros.
///
/// # Safety
///
/// They can be read as bytes, and the bytes that take them be written. The CPU has `V`.
#[inline(always)]
pub(super) unsafe fn narrow_columns<
    V: Vector,
    const BITS: u32,
    const TRUTH: bool,
    const MOST_FIRST: bool,
    const STREAM: bool,
>(
    source: *const u8,
    destination: *mut u8,
    columns: usize,
) {
    let mut at = 0;
    // SAFETY: by the contract of this function.
    at += unsafe {
        narrow_vectors::<V, BITS, TRUTH, MOST_FIRST, STREAM>(source, destination, at, columns)
    };
    // SAFETY: as above.
    at += unsafe {
        narrow_vectors::<V::Half, BITS, TRUTH, MOST_FIRST, STREAM>(source, destination, at, columns)
    };
    // SAFETY: as above.
    at += unsafe {
        narrow_vectors::<<V::Half as Vector>::Half, BITS, TRUTH, MOST_FIRST, STREAM>(
            source,
            destination,
            at,
            columns,
        )
    };
    let (source, to) = (source.wrapping_add(at), destination.wrapping_add(at * BITS as usize / 8));
    // SAFETY: the last columns.
    unsafe { scalar::narrow_run::<BITS, TRUTH, MOST_FIRST, true>(columns - at, source, to, 0) };
}

/// Widens columns, the first of which begins a byte, the last ones, which are less than a vector, eight at a time.
///
/// # Safety
///
/// The bytes that they are in can be read, and they be written as bytes. The CPU has `V`.
#[inline(always)]
pub(super) unsafe fn widen_columns<V: Vector, const BITS: u32, const MOST_FIRST: bool>(
    source: *const u8,
    destination: *mut u8,
    columns: usize,
) {
    let mut at = 0;
    // SAFETY: by the contract of this function.
    at += unsafe { widen_vectors::<V, BITS, MOST_FIRST>(source, destination, at, columns) };
    // SAFETY: as above.
    at += unsafe { widen_vectors::<V::Half, BITS, MOST_FIRST>(source, destination, at, columns) };
    // SAFETY: as above.
    at += unsafe {
        widen_vectors::<<V::Half as Vector>::Half, BITS, MOST_FIRST>(
            source,
            destination,
            at,
            columns,
        )
    };
    let (source, to) = (source.wrapping_add(at * BITS as usize / 8), destination.wrapping_add(at));
    // SAFETY: the last columns.
    unsafe { scalar::widen_run::<BITS, MOST_FIRST>(columns - at, source, 0, to) };
}

/// Narrows whole vectors of the columns from `at` to `end`. Returns how many columns
/// that were.
///
/// # Safety
///
/// The columns up to `end` can be read as bytes, and be written. The CPU has `V`.
#[inline(always)]
pub(super) unsafe fn narrow_vectors<
    V: Vector,
    const BITS: u32,
    const TRUTH: bool,
    const MOST_FIRST: bool,
    const STREAM: bool,
>(
    source: *const u8,
    destination: *mut u8,
    at: usize,
    end: usize,
) -> usize {
    let columns = V::BYTES * 8 / BITS as usize;
    let mut done = 0;
    while at + done + columns <= end {
        let to = destination.wrapping_add((at + done) * BITS as usize / 8);
        let from = source.wrapping_add(at + done);
        // SAFETY: so many columns are left.
        let packed = unsafe { narrow_bytes::<V, BITS, TRUTH, MOST_FIRST>(from) };
        if STREAM && to.addr().is_multiple_of(V::BYTES) {
            // SAFETY: they fill an aligned vector.
            unsafe { packed.stream(to) };
        } else {
            // SAFETY: they fill a vector.
            unsafe { packed.store(to) };
        }
        done += columns;
    }
    done
}

/// Widens whole vectors of the columns from `at` to `end`. Returns how many columns
/// that were.
///
/// # Safety
///
/// The columns up to `end` can be read, and be written as bytes. The CPU has `V`.
#[inline(always)]
unsafe fn widen_vectors<V: Vector, const BITS: u32, const MOST_FIRST: bool>(
    source: *const u8,
    destination: *mut u8,
    at: usize,
    end: usize,
) -> usize {
    let columns = V::BYTES * 8 / BITS as usize;
    let mut done = 0;
    while at + done + columns <= end {
        let from = source.wrapping_add((at + done) * BITS as usize / 8);
        // What follows the columns is mostly asked for next.
        V::prefetch::<1>(from.wrapping_add(end * BITS as usize / 8));
        // SAFETY: so many columns are left, which fill a vector.
        let packed = unsafe { V::load(from) };
        let to = destination.wrapping_add(at + done);
        // SAFETY: as above.
        unsafe { widen_to_bytes::<V, BITS, MOST_FIRST, false>(packed, to) };
        done += columns;
    }
    done
}

/// Bytes that hold two elements each, `BY` bits wide, into bytes that hold one each.
///
/// # Safety
///
/// The CPU has `V`.
#[inline(always)]
unsafe fn halve<V: Vector, const BY: i32, const MOST_FIRST: bool>(pairs: V) -> (V, V) {
    // SAFETY: by the contract of this function.
    let mask = unsafe { V::splat(0xff >> (8 - BY)) };
    let (low, high) = (pairs.and(mask), pairs.shr::<BY>().and(mask));
    if MOST_FIRST { high.zip::<8>(low) } else { low.zip::<8>(high) }
}

/// The inverse of [`halve`], of bytes whose other bits are 0.
#[inline(always)]
fn join<V: Vector, const BY: i32, const MOST_FIRST: bool>(bytes: (V, V)) -> V {
    // The first byte of each two gets the bits of both.
    let (a, b) = (pairs::<V, BY, MOST_FIRST>(bytes.0), pairs::<V, BY, MOST_FIRST>(bytes.1));
    a.unzip::<8>(b).0
}

/// The most vectors of bytes that the elements of one make.
pub(super) const MOST_TIMES: usize = 8;

/// The bits of two bytes, of `BY` bits each, in the first one of them. The other one is of no use then.
#[inline(always)]
fn pairs<V: Vector, const BY: i32, const MOST_FIRST: bool>(bytes: V) -> V {
    if MOST_FIRST {
        return bytes.shl::<BY>().or(bytes.shr::<8>());
    }
    bytes.or(match BY {
        1 => bytes.shr::<7>(),
        2 => bytes.shr::<6>(),
        _ => bytes.shr::<4>(),
    })
}

/// Widens a vector of elements of `BITS` bits into bytes: `8 / BITS` vectors.
///
/// # Safety
///
/// The CPU has `V`.
#[inline(always)]
pub(super) unsafe fn widen<V: Vector, const BITS: u32, const MOST_FIRST: bool>(
    packed: V,
) -> [V; MOST_TIMES] {
    let mut all = [packed; MOST_TIMES];
    // SAFETY: by the contract of this function.
    (all[0], all[1]) = unsafe { halve::<V, 4, MOST_FIRST>(packed) };
    if BITS < 4 {
        let [a, b, ..] = all;
        // SAFETY: as above.
        (all[0], all[1]) = unsafe { halve::<V, 2, MOST_FIRST>(a) };
        // SAFETY: as above.
        (all[2], all[3]) = unsafe { halve::<V, 2, MOST_FIRST>(b) };
    }
    if BITS < 2 {
        let [a, b, c, d, ..] = all;
        // SAFETY: as above.
        (all[0], all[1]) = unsafe { halve::<V, 1, MOST_FIRST>(a) };
        // SAFETY: as above.
        (all[2], all[3]) = unsafe { halve::<V, 1, MOST_FIRST>(b) };
        // SAFETY: as above.
        (all[4], all[5]) = unsafe { halve::<V, 1, MOST_FIRST>(c) };
        // SAFETY: as above.
        (all[6], all[7]) = unsafe { halve::<V, 1, MOST_FIRST>(d) };
    }
    all
}

/// The inverse, of `8 / BITS` vectors: of each byte the low bits, or whether any was set.
///
/// # Safety
///
/// The CPU has `V`.
#[inline(always)]
pub(super) unsafe fn narrow<
    V: Vector,
    const BITS: u32,
    const TRUTH: bool,
    const MOST_FIRST: bool,
>(
    bytes: [V; MOST_TIMES],
) -> V {
    // SAFETY: by the contract of this function.
    let mask = unsafe { V::splat(0xff >> (8 - BITS)) };
    let mut all = bytes;
    let times = 8 / BITS as usize;
    for vector in all.iter_mut().take(times) {
        *vector = if TRUTH { vector.min(mask) } else { vector.and(mask) };
    }
    if BITS < 2 {
        let [a, b, c, d, e, f, g, h] = all;
        all[0] = join::<V, 1, MOST_FIRST>((a, b));
        all[1] = join::<V, 1, MOST_FIRST>((c, d));
        all[2] = join::<V, 1, MOST_FIRST>((e, f));
        all[3] = join::<V, 1, MOST_FIRST>((g, h));
    }
    if BITS < 4 {
        let [a, b, c, d, ..] = all;
        all[0] = join::<V, 2, MOST_FIRST>((a, b));
        all[1] = join::<V, 2, MOST_FIRST>((c, d));
    }
    join::<V, 4, MOST_FIRST>((all[0], all[1]))
}

/// Widens a vector of elements of `BITS` bits into bytes, which are streamed where `STREAM` says so.
///
/// # Safety
///
/// `8 / BITS` vectors of bytes can be written, which for `STREAM` are aligned. The CPU has `V`.
#[inline(always)]
pub(super) unsafe fn widen_to_bytes<
    V: Vector,
    const BITS: u32,
    const MOST_FIRST: bool,
    const STREAM: bool,
>(
    packed: V,
    to: *mut u8,
) {
    // SAFETY: the CPU has `V`.
    let bytes = unsafe { widen::<V, BITS, MOST_FIRST>(packed) };
    let times = 8 / BITS as usize;
    for (i, vector) in bytes.into_iter().enumerate().take(times) {
        // SAFETY: one of the vectors.
        unsafe { put::<V, STREAM>(vector, to.wrapping_add(i * V::BYTES)) };
    }
}

/// The low `BITS` bits of as many bytes as fill a vector with them, or whether any was
/// set.
///
/// # Safety
///
/// `8 / BITS` vectors of bytes can be read. The CPU has `V`.
#[inline(always)]
pub(super) unsafe fn narrow_bytes<
    V: Vector,
    const BITS: u32,
    const TRUTH: bool,
    const MOST_FIRST: bool,
>(
    from: *const u8,
) -> V {
    // SAFETY: the CPU has `V`.
    let mut bytes = [unsafe { V::splat(0) }; MOST_TIMES];
    let times = 8 / BITS as usize;
    for (i, vector) in bytes.iter_mut().enumerate().take(times) {
        // SAFETY: one of the vectors.
        *vector = unsafe { V::load(from.wrapping_add(i * V::BYTES)) };
    }
    // SAFETY: the CPU has `V`.
    unsafe { narrow::<V, BITS, TRUTH, MOST_FIRST>(bytes) }
}

/// Every other byte of a line, in its first half.
const EVEN: [u8; LINE] = {
    let (mut bytes, mut i) = ([0; LINE], 0_u8);
    while (i as usize) < LINE {
        bytes[i as usize] = 2 * i % 64;
        i += 1;
    }
    bytes
};

/// The low bits of the bytes of a line, or whether any was set, in its first bytes; those behind them are of no use.
///
/// # Safety
///
/// The CPU has `V`, which has a line and shuffles all of it.
#[inline(always)]
pub(super) unsafe fn narrow_one<
    V: Vector,
    const BITS: u32,
    const TRUTH: bool,
    const MOST_FIRST: bool,
>(
    bytes: V,
) -> V {
    // SAFETY: by the contract of this function.
    let mask = unsafe { V::splat(0xff >> (8 - BITS)) };
    // SAFETY: a line.
    let even = unsafe { V::load(const { EVEN }.as_ptr()) };
    let mut all = if TRUTH { bytes.min(mask) } else { bytes.and(mask) };
    if BITS < 2 {
        all = pairs::<V, 1, MOST_FIRST>(all).shuffle(even);
    }
    if BITS < 4 {
        all = pairs::<V, 2, MOST_FIRST>(all).shuffle(even);
    }
    pairs::<V, 4, MOST_FIRST>(all).shuffle(even)
}

/// [`BlockOp::Reverse`](super::BlockOp::Reverse).
pub(super) struct Reverse<const BITS: u32>;

impl<const BITS: u32> Algorithm for Reverse<BITS> {
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: the columns of a block.
            unsafe { scalar::reverse_run::<BITS>(strip.columns, source, destination) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let mut at = 0;
            while at + V::BYTES <= strip.columns {
                // SAFETY: so many columns are left.
                let bytes = unsafe { V::load(source.wrapping_add(at)) };
                // SAFETY: the CPU has `V`.
                let reversed = unsafe { reverse_in_bytes::<V, BITS>(bytes) };
                // SAFETY: so many columns are left.
                unsafe { reversed.store(destination.wrapping_add(at)) };
                at += V::BYTES;
            }
            let (source, destination) = (source.wrapping_add(at), destination.wrapping_add(at));
            // SAFETY: the last columns of the block.
            unsafe { scalar::reverse_run::<BITS>(strip.columns - at, source, destination) };
        }
    }
}

/// The elements of each byte in the opposite order.
///
/// # Safety
///
/// The CPU has `V`.
#[inline(always)]
pub(super) unsafe fn reverse_in_bytes<V: Vector, const BITS: u32>(bytes: V) -> V {
    // SAFETY: by the contract of this function.
    let halves = unsafe { V::splat(0x0f) };
    let x = bytes.and(halves).shl::<4>().or(bytes.shr::<4>().and(halves));
    if BITS == 4 {
        return x;
    }
    // SAFETY: by the contract of this function.
    let quarters = unsafe { V::splat(0x33) };
    let x = x.and(quarters).shl::<2>().or(x.shr::<2>().and(quarters));
    if BITS == 2 {
        return x;
    }
    // SAFETY: by the contract of this function.
    let eighths = unsafe { V::splat(0x55) };
    x.and(eighths).shl::<1>().or(x.shr::<1>().and(eighths))
}
