//! Runs of elements below a byte that begin within one: rows of packed host arrays, which follow each other whatever
//! their number of elements.
//!
//! All runs of a strip begin at the same bit of a byte. So the whole bytes of the destination are those of the source
//! and the ones behind them, shifted against each other by as many bits throughout.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use super::algorithm::Algorithm;
use super::scalar;
use super::vector::Vector;
use super::{Place, Strip};

/// [`BlockOp::CopyBits`](super::BlockOp::CopyBits).
pub(super) struct CopyBits<const CLEARS: bool>;

impl<const CLEARS: bool> Algorithm for CopyBits<CLEARS> {
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let Some((run, source, destination)) =
                // SAFETY: the run of a block.
                (unsafe { ends::<CLEARS>(strip, source, destination) })
            else {
                continue;
            };
            for at in 0..run.bytes {
                // SAFETY: one of the whole bytes.
                unsafe { byte(run, source.wrapping_add(at), destination.wrapping_add(at)) };
            }
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
            let Some((run, source, destination)) =
                // SAFETY: the run of a block.
                (unsafe { ends::<CLEARS>(strip, source, destination) })
            else {
                continue;
            };
            // SAFETY: its whole bytes; the CPU has `V`.
            unsafe {
                match run.shift {
                    0 => scalar::run(source, destination, run.bytes),
                    1 => shifted::<V, 1, 7>(run, source, destination),
                    2 => shifted::<V, 2, 6>(run, source, destination),
                    3 => shifted::<V, 3, 5>(run, source, destination),
                    4 => shifted::<V, 4, 4>(run, source, destination),
                    5 => shifted::<V, 5, 3>(run, source, destination),
                    6 => shifted::<V, 6, 2>(run, source, destination),
                    _ => shifted::<V, 7, 1>(run, source, destination),
                }
            }
        }
    }
}

/// Whole bytes of the destination, whose first bit is so many bits behind the first one of a byte of the source.
#[derive(Clone, Copy)]
struct Whole {
    shift: usize,
    bytes: usize,
}

/// Copies the bits of a run before its first whole byte in the destination, and behind the last one: what is between
/// them, and where that begins on both sides. `None` if there is nothing.
///
/// # Safety
///
/// The bytes that have a bit of the run can be read, and be written.
#[inline(always)]
unsafe fn ends<const CLEARS: bool>(
    strip: &Strip,
    source: *const u8,
    destination: *mut u8,
) -> Option<(Whole, *const u8, *mut u8)> {
    let (mut from, to) = (usize::from(strip.source_bit), usize::from(strip.destination_bit));
    let (mut source, mut destination, mut left) = (source, destination, strip.columns);
    if to > 0 && left > 0 {
        let count = left.min(8 - to);
        // SAFETY: they are in the first byte of the destination, and in the first two of the source, or in one.
        unsafe { few_bits::<false>((source, from), (destination, to), count) };
        (left, from) = (left - count, from + count);
        source = source.wrapping_add(from / 8);
        destination = destination.wrapping_add(1);
        from %= 8;
    }
    let bytes = left / 8;
    if !left.is_multiple_of(8) {
        let last = ((source.wrapping_add(bytes), from), (destination.wrapping_add(bytes), 0));
        // SAFETY: they are in the last byte of the destination, and in the last two of the source, or in one.
        unsafe { few_bits::<CLEARS>(last.0, last.1, left % 8) };
    }
    (bytes > 0).then_some((Whole { shift: from, bytes }, source, destination))
}

/// Copies up to 8 bits, which are in one byte of the destination, whose other ones are cleared or stay.
///
/// # Safety
///
/// The bytes of the source that have one of these bits can be read, and the byte of the destination be read and written.
#[inline(always)]
unsafe fn few_bits<const CLEARS: bool>(
    (source, from): (*const u8, usize),
    (destination, to): (*mut u8, usize),
    count: usize,
) {
    // SAFETY: the first bit is in it.
    let mut bits = u32::from(unsafe { source.read() });
    if from + count > 8 {
        // SAFETY: the last bit is in it.
        bits |= u32::from(unsafe { source.wrapping_add(1).read() }) << 8;
    }
    let mask = ((1_u32 << count) - 1) << to;
    let kept = if CLEARS {
        0
    } else {
        // SAFETY: by the contract of this function.
        u32::from(unsafe { destination.read() }) & !mask
    };
    let [byte, ..] = (kept | bits >> from << to & mask).to_le_bytes();
    // SAFETY: as above.
    unsafe { destination.write(byte) };
}

/// A whole byte of the destination.
///
/// # Safety
///
/// The bytes of the source that have one of its bits can be read, and it be written.
#[inline(always)]
unsafe fn byte(run: Whole, source: *const u8, destination: *mut u8) {
    // SAFETY: all of its bits.
    unsafe { few_bits::<true>((source, run.shift), (destination, 0), 8) };
}

/// The whole bytes of a run: of each the less significant bits are the `8 - BY` more significant ones of a byte of the
/// source, and the others, which are `BY`, those of the next one.
///
/// # Safety
///
/// They can be written, and as many bytes of the source read, and one more. The CPU has `V`.
#[inline(always)]
unsafe fn shifted<V: Vector, const BY: i32, const REST: i32>(
    run: Whole,
    source: *const u8,
    destination: *mut u8,
) {
    // SAFETY: as many bytes as are asked for; what `V` needs is all that its halves do.
    match run.bytes {
        bytes if bytes >= V::BYTES => {
            // SAFETY: as above.
            unsafe { shifted_vectors::<V, BY, REST>(bytes, source, destination) }
        }
        bytes if bytes >= V::Half::BYTES => {
            // SAFETY: as above.
            unsafe { shifted_vectors::<V::Half, BY, REST>(bytes, source, destination) }
        }
        bytes if bytes >= <V::Half as Vector>::Half::BYTES => {
            type Quarter<V> = <<V as Vector>::Half as Vector>::Half;
            // SAFETY: as above.
            unsafe { shifted_vectors::<Quarter<V>, BY, REST>(bytes, source, destination) }
        }
        bytes => {
            for at in 0..bytes {
                // SAFETY: one of the whole bytes.
                unsafe { byte(run, source.wrapping_add(at), destination.wrapping_add(at)) };
            }
        }
    }
}

/// The same of a vector of bytes at least: the last one ends where they do, and writes some a second time.
///
/// # Safety
///
/// As [`shifted`].
#[inline(always)]
unsafe fn shifted_vectors<V: Vector, const BY: i32, const REST: i32>(
    bytes: usize,
    source: *const u8,
    destination: *mut u8,
) {
    // SAFETY: the CPU has `V`.
    let mask = unsafe { V::splat(0xff >> BY) };
    // SAFETY: as above.
    let others = unsafe { V::splat(!(0xff >> BY)) };
    let vector = |at: usize| {
        // SAFETY: so many bytes are left.
        let these = unsafe { V::load(source.wrapping_add(at)) };
        // SAFETY: and one more.
        let next = unsafe { V::load(source.wrapping_add(at + 1)) };
        // What a shift brings from the byte beside it, a vector has in 16 bits.
        let (low, high) = (these.shr::<BY>().and(mask), next.shl::<REST>());
        let all = low.or(high.and(others));
        // SAFETY: so many bytes are left.
        unsafe { all.store(destination.wrapping_add(at)) };
    };
    let mut at = 0;
    while at + V::BYTES <= bytes {
        vector(at);
        at += V::BYTES;
    }
    if at < bytes {
        vector(bytes - V::BYTES);
    }
}
