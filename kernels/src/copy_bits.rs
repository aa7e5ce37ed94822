//! Runs of elements below a byte that begin within one: rows of packed host arrays, which follow each other whatever
//! their number of elements.
//!
//! All runs of a strip begin at the same bit of a byte. So the whole bytes of the destination are those of the source
//! and the ones behind them, shifted against each other by as many bits throughout. Where one side counts its elements
//! from the most significant bits on, so do the shifts, if it is the source, and then their order is changed.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use super::algorithm::Algorithm;
use super::bits::reversed;
use super::packed::reverse_in_bytes;
use super::scalar;
use super::vector::Vector;
use super::{Place, Strip};

/// [`BlockOp::CopyBits`](super::BlockOp::CopyBits), of elements of `BITS` bits where a side counts them from the most
/// significant ones on: the source if `FROM_MOST`, the destination if `TO_MOST`.
pub(super) struct CopyBits<
    const BITS: u32,
    const FROM_MOST: bool,
    const TO_MOST: bool,
    const CLEARS: bool,
>;

impl<const BITS: u32, const FROM_MOST: bool, const TO_MOST: bool, const CLEARS: bool> Algorithm
    for CopyBits<BITS, FROM_MOST, TO_MOST, CLEARS>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: the run of a block.
            let Some((run, source, destination)) =
                (unsafe { Self::ends(strip, source, destination) })
            else {
                continue;
            };
            // SAFETY: its whole bytes.
            unsafe { Self::bytes(run, source, destination) };
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
            // SAFETY: the run of a block.
            let Some((run, source, destination)) =
                (unsafe { Self::ends(strip, source, destination) })
            else {
                continue;
            };
            macro_rules! shifted {
                ($by:literal) => {
                    // SAFETY: its whole bytes; the CPU has `V`.
                    unsafe { Self::shifted::<V, $by, { 8 - $by }>(run, source, destination) }
                };
            }
            match run.shift {
                0 if FROM_MOST || TO_MOST => shifted!(0),
                0 => {
                    // SAFETY: its whole bytes.
                    unsafe { scalar::run(source, destination, run.bytes) }
                }
                4 => shifted!(4),
                2 if BITS <= 2 => shifted!(2),
                6 if BITS <= 2 => shifted!(6),
                1 if BITS <= 1 => shifted!(1),
                3 if BITS <= 1 => shifted!(3),
                5 if BITS <= 1 => shifted!(5),
                7 if BITS <= 1 => shifted!(7),
                _ => {
                    // SAFETY: as above.
                    unsafe { Self::bytes(run, source, destination) }
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

impl<const BITS: u32, const FROM_MOST: bool, const TO_MOST: bool, const CLEARS: bool>
    CopyBits<BITS, FROM_MOST, TO_MOST, CLEARS>
{
    /// Copies the bits of a run before its first whole byte in the destination, and behind the last one: what is between
    /// them, and where that begins on both sides. `None` if there is nothing.
    ///
    /// # Safety
    ///
    /// The bytes that have a bit of the run can be read, and be written.
    #[inline(always)]
    unsafe fn ends(
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
    ) -> Option<(Whole, *const u8, *mut u8)> {
        let (mut from, to) = (usize::from(strip.source_bit), usize::from(strip.destination_bit));
        let (mut source, mut destination, mut left) = (source, destination, strip.columns);
        if to > 0 && left > 0 {
            let count = left.min(8 - to);
            // SAFETY: they are in the first byte of the destination, and in the first two of the source, or in one.
            unsafe { Self::few_bits((source, from), (destination, to), count, false) };
            (left, from) = (left - count, from + count);
            source = source.wrapping_add(from / 8);
            destination = destination.wrapping_add(1);
            from %= 8;
        }
        let bytes = left / 8;
        if !left.is_multiple_of(8) {
            let last = ((source.wrapping_add(bytes), from), (destination.wrapping_add(bytes), 0));
            // SAFETY: they are in the last byte of the destination, and in the last two of the source, or in one.
            unsafe { Self::few_bits(last.0, last.1, left % 8, CLEARS) };
        }
        (bytes > 0).then_some((Whole { shift: from, bytes }, source, destination))
    }

    /// Copies up to 8 bits, which are in one byte of the destination, whose other ones are cleared or stay.
    ///
    /// # Safety
    ///
    /// The bytes of the source that have one of these bits can be read, and the byte of the destination be read and
    /// written.
    #[inline(always)]
    unsafe fn few_bits(
        (source, from): (*const u8, usize),
        (destination, to): (*mut u8, usize),
        count: usize,
        clears: bool,
    ) {
        let ordered = |bytes: u64, most: bool| if most { reversed(bytes, BITS) } else { bytes };
        // SAFETY: the first bit is in it.
        let mut bits = u64::from(unsafe { source.read() });
        if from + count > 8 {
            // SAFETY: the last bit is in it.
            bits |= u64::from(unsafe { source.wrapping_add(1).read() }) << 8;
        }
        let mask = ((1_u64 << count) - 1) << to;
        let kept = if clears {
            0
        } else {
            // SAFETY: by the contract of this function.
            ordered(unsafe { destination.read() }.into(), TO_MOST) & !mask
        };
        let bits = ordered(bits, FROM_MOST) >> from << to & mask;
        let [byte, ..] = ordered(kept | bits, TO_MOST).to_le_bytes();
        // SAFETY: as above.
        unsafe { destination.write(byte) };
    }

    /// Whole bytes of the destination, one by one.
    ///
    /// # Safety
    ///
    /// The bytes of the source that have one of their bits can be read, and they be written.
    #[inline(always)]
    unsafe fn bytes(run: Whole, source: *const u8, destination: *mut u8) {
        for at in 0..run.bytes {
            let to = (destination.wrapping_add(at), 0);
            // SAFETY: all bits of one of them.
            unsafe { Self::few_bits((source.wrapping_add(at), run.shift), to, 8, true) };
        }
    }

    /// The whole bytes of a run: of each the first bits are the last `8 - BY` ones of a byte of the source, and the others,
    /// which are `BY`, the first ones of the next.
    ///
    /// # Safety
    ///
    /// They can be written, and as many bytes of the source read, and one more if `BY` is not 0. The CPU has `V`.
    #[inline(always)]
    unsafe fn shifted<V: Vector, const BY: i32, const REST: i32>(
        run: Whole,
        source: *const u8,
        destination: *mut u8,
    ) {
        type Quarter<V> = <<V as Vector>::Half as Vector>::Half;
        match run.bytes {
            bytes if bytes >= V::BYTES => {
                // SAFETY: by the contract of this function.
                unsafe { Self::shifted_vectors::<V, BY, REST>(bytes, source, destination) }
            }
            bytes if bytes >= V::Half::BYTES => {
                // SAFETY: as above; what `V` needs is all that its half does.
                unsafe { Self::shifted_vectors::<V::Half, BY, REST>(bytes, source, destination) }
            }
            bytes if bytes >= <V::Half as Vector>::Half::BYTES => {
                // SAFETY: as above.
                unsafe { Self::shifted_vectors::<Quarter<V>, BY, REST>(bytes, source, destination) }
            }
            _ => {
                // SAFETY: as above.
                unsafe { Self::bytes(run, source, destination) }
            }
        }
    }

    /// The same of a vector of bytes at least: the last one ends where they do, and writes some a second time.
    ///
    /// # Safety
    ///
    /// As [`shifted`](Self::shifted).
    #[inline(always)]
    unsafe fn shifted_vectors<V: Vector, const BY: i32, const REST: i32>(
        bytes: usize,
        source: *const u8,
        destination: *mut u8,
    ) {
        let mut at = 0;
        while at < bytes {
            at = at.min(bytes - V::BYTES);
            let (source, destination) = (source.wrapping_add(at), destination.wrapping_add(at));
            // SAFETY: so many bytes are left.
            unsafe { Self::vector::<V, BY, REST>(source, destination) };
            at += V::BYTES;
        }
    }

    /// The same of one vector.
    ///
    /// # Safety
    ///
    /// As [`shifted`](Self::shifted).
    #[inline(always)]
    unsafe fn vector<V: Vector, const BY: i32, const REST: i32>(
        source: *const u8,
        destination: *mut u8,
    ) {
        // SAFETY: by the contract of this function.
        let mut made = unsafe { V::load(source) };
        if BY > 0 {
            // SAFETY: as above, one byte more.
            let next = unsafe { V::load(source.wrapping_add(1)) };
            let (these, next) = if FROM_MOST {
                (made.shl::<BY>(), next.shr::<REST>())
            } else {
                (made.shr::<BY>(), next.shl::<REST>())
            };
            // A vector shifts 16 bits, and what comes from the byte beside is not wanted.
            let first_bits: u8 = if FROM_MOST { 0xff << BY } else { 0xff >> BY };
            // SAFETY: the CPU has `V`.
            let first = unsafe { V::splat(first_bits) };
            // SAFETY: as above.
            let others = unsafe { V::splat(!first_bits) };
            made = these.and(first).or(next.and(others));
        }
        if FROM_MOST || TO_MOST {
            // SAFETY: the CPU has `V`.
            made = unsafe { reverse_in_bytes::<V, BITS>(made) };
        }
        // SAFETY: by the contract of this function.
        unsafe { made.store(destination) };
    }
}
