//! Words of which the first elements are kept.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use super::algorithm::Algorithm;
use super::scalar;
use super::vector::{LINE, Vector};
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
            let (source, destination) =
                (source.wrapping_add(whole), destination.wrapping_add(whole));
            // SAFETY: the last words of a block.
            unsafe { Self::words(kept, rest, source, destination) };
        }
    }
}
