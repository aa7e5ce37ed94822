//! Columns of bytes into bytes that hold several, and back: host arrays that are packed
//! along their minor dimension.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use super::algorithm::Algorithm;
use super::scalar;
use super::vector::{Vector, put};
use super::{Place, Strip};

/// [`BlockOp::Narrow`](super::BlockOp::Narrow).
pub(super) struct Narrow<
    const BITS: u32,
    const TRUTH: bool,
    const MOST_FIRST: bool,
    const STREAM: bool,
>;

impl<const BITS: u32, const TRUTH: bool, const MOST_FIRST: bool, const STREAM: bool> Algorithm
    for Narrow<BITS, TRUTH, MOST_FIRST, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: the columns of a block.
            unsafe {
                scalar::narrow_run::<BITS, TRUTH, MOST_FIRST>(strip.columns, source, destination);
            };
            let end = destination.wrapping_add((strip.columns * BITS as usize).div_ceil(8));
            // SAFETY: `pad` bytes follow them.
            unsafe { scalar::short_fill(end, 0, strip.pad) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        if strip.columns < <V::Half as Vector>::Half::BYTES * 8 / BITS as usize {
            // SAFETY: the same strip.
            return unsafe { Self::elements(strip, source, destination) };
        }
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let mut at = 0;
            // SAFETY: the columns of a block; the CPU has `V`.
            at += unsafe {
                narrow_columns::<V, BITS, TRUTH, MOST_FIRST, STREAM>(
                    source,
                    destination,
                    at,
                    strip.columns,
                )
            };
            // SAFETY: as above.
            at += unsafe {
                narrow_columns::<V::Half, BITS, TRUTH, MOST_FIRST, STREAM>(
                    source,
                    destination,
                    at,
                    strip.columns,
                )
            };
            // SAFETY: as above.
            at += unsafe {
                narrow_columns::<<V::Half as Vector>::Half, BITS, TRUTH, MOST_FIRST, STREAM>(
                    source,
                    destination,
                    at,
                    strip.columns,
                )
            };
            let rest = Strip { lines: 1, blocks: 1, columns: strip.columns - at, ..*strip };
            let source = source.wrapping_add(at);
            let destination = destination.wrapping_add(at * BITS as usize / 8);
            // SAFETY: the last columns of the block, and `pad` behind them.
            unsafe { Self::elements(&rest, source, destination) };
        }
    }
}

/// [`BlockOp::Widen`](super::BlockOp::Widen).
pub(super) struct Widen<const BITS: u32, const MOST_FIRST: bool>;

impl<const BITS: u32, const MOST_FIRST: bool> Algorithm for Widen<BITS, MOST_FIRST> {
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: the columns of a block.
            unsafe { scalar::widen_run::<BITS, MOST_FIRST>(strip.columns, source, destination) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        if strip.columns < <V::Half as Vector>::Half::BYTES * 8 / BITS as usize {
            // SAFETY: the same strip.
            return unsafe { Self::elements(strip, source, destination) };
        }
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let mut at = 0;
            // SAFETY: the columns of a block; the CPU has `V`.
            at += unsafe {
                widen_columns::<V, BITS, MOST_FIRST>(source, destination, at, strip.columns)
            };
            // SAFETY: as above.
            at += unsafe {
                widen_columns::<V::Half, BITS, MOST_FIRST>(source, destination, at, strip.columns)
            };
            // SAFETY: as above.
            at += unsafe {
                widen_columns::<<V::Half as Vector>::Half, BITS, MOST_FIRST>(
                    source,
                    destination,
                    at,
                    strip.columns,
                )
            };
            let rest = Strip { lines: 1, blocks: 1, columns: strip.columns - at, ..*strip };
            let source = source.wrapping_add(at * BITS as usize / 8);
            // SAFETY: the last columns of the block.
            unsafe { Self::elements(&rest, source, destination.wrapping_add(at)) };
        }
    }
}

/// Narrows whole vectors of the columns from `at` to `end`. Returns how many columns
/// that were.
///
/// # Safety
///
/// The columns up to `end` can be read as bytes, and be written. The CPU has `V`.
#[inline(always)]
unsafe fn narrow_columns<
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
unsafe fn widen_columns<V: Vector, const BITS: u32, const MOST_FIRST: bool>(
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
