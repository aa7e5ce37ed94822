//! Words of which the first elements are kept.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use super::algorithm::Algorithm;
use super::scalar;
use super::vector::{LINE, Vector, has_whole_end, stream_zeros};
use super::{Place, Strip};

/// [`BlockOp::CopyWords`](super::BlockOp::CopyWords).
pub(super) struct CopyWords<const BITS: u32, const STREAM: bool>;

const WORD: usize = size_of::<u32>();

impl<const BITS: u32, const STREAM: bool> CopyWords<BITS, STREAM> {
    /// The bits of a word that are kept.
    #[inline(always)]
    fn kept(strip: &Strip) -> u32 {
        let bits = u32::try_from(strip.rows).unwrap_or(u32::MAX).saturating_mul(BITS);
        1_u32.checked_shl(bits).map_or(u32::MAX, |above| above - 1)
    }

    /// # Safety
    ///
    /// So many words can be read, and be written.
    #[inline(always)]
    unsafe fn words(kept: u32, count: usize, source: *const u8, destination: *mut u8) {
        for at in (0..WORD * count).step_by(WORD) {
            // SAFETY: one of the words.
            let word = unsafe { source.wrapping_add(at).cast::<u32>().read_unaligned() };
            // SAFETY: as above.
            unsafe { destination.wrapping_add(at).cast::<u32>().write_unaligned(word & kept) };
        }
    }
}

impl<const BITS: u32, const STREAM: bool> Algorithm for CopyWords<BITS, STREAM> {
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        let kept = Self::kept(strip);
        for (source, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: the words of a block.
            unsafe { Self::words(kept, strip.columns, source, destination) };
            let padding = destination.wrapping_add(strip.columns * WORD);
            // SAFETY: the padding behind them.
            unsafe { scalar::fill(padding, 0, strip.pad) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        let kept = Self::kept(strip);
        let masks = [kept; LINE / WORD];
        // SAFETY: no vector is longer than a line.
        let mask = unsafe { V::load(masks.as_ptr().cast()) };
        let bytes = strip.columns * WORD;
        let whole = bytes - bytes % V::BYTES;
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let stream = STREAM && destination.addr().is_multiple_of(V::BYTES);
            for at in (0..whole).step_by(V::BYTES) {
                let to = destination.wrapping_add(at);
                // SAFETY: a vector of the words of a block.
                let words = unsafe { V::load(source.wrapping_add(at)) }.and(mask);
                if stream {
                    // SAFETY: as many words; from an aligned start on.
                    unsafe { words.stream(to) };
                } else {
                    // SAFETY: as many words.
                    unsafe { words.store(to) };
                }
            }
            let rest = (bytes - whole) / WORD;
            let (from, to) = (source.wrapping_add(whole), destination.wrapping_add(whole));
            if stream && has_whole_end::<V>(strip, bytes) {
                let end = bytes + strip.pad;
                let mut zeros = whole;
                if rest > 0 {
                    let mut words = [0_u32; LINE / WORD];
                    let made = words.as_mut_ptr().cast::<u8>();
                    // SAFETY: the last words of a block, less than a vector, to where a line has room.
                    unsafe { Self::words(kept, rest, from, made) };
                    // SAFETY: a vector of that memory.
                    let words = unsafe { V::load(made) };
                    // SAFETY: these words and padding behind them, from an aligned start on.
                    unsafe { words.stream(to) };
                    zeros += V::BYTES;
                }
                // SAFETY: the rest of the padding, whole aligned vectors.
                unsafe { stream_zeros::<V>(destination.wrapping_add(zeros), end - zeros) };
                continue;
            }
            // SAFETY: the last words of a block.
            unsafe { Self::words(kept, rest, from, to) };
            // SAFETY: the padding behind them.
            unsafe { scalar::fill(destination.wrapping_add(bytes), 0, strip.pad) };
        }
    }
}
