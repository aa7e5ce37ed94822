//! Vectors of 16 bytes, for what is too short for those of AVX2, which has all that is used
//! here (up to SSE 4.1).

use std::arch::x86_64::*;

use super::super::algorithm::compiled;
use super::super::vector::{Vector, join_by_shifts};
use super::prefetch;
use crate::cpu::with_features;

/// A value is there only where the CPU has AVX2: see [`Vector`].
#[derive(Clone, Copy)]
pub(in super::super) struct V(__m128i);

/// Calls intrinsics that need SSE 4.1 on values that prove it.
macro_rules! sse {
    ($call:expr) => {
        // SAFETY: there is a `V`, so the CPU has AVX2 and all that came before; only values are
        // touched.
        unsafe { $call }
    };
}

/// The even quarters of each of two vectors, then the odd ones.
const EVEN_THEN_ODD: i32 = 0b11_01_10_00;

impl Vector for V {
    const BYTES: usize = 16;
    type Half = V;

    with_features!(avx2, compiled());

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: by the contract of the trait.
        V(unsafe { _mm_loadu_si128(from.cast()) })
    }

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Self {
        // SAFETY: by the contract of the trait.
        V(unsafe { _mm_set1_epi8(byte.cast_signed()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: by the contract of the trait.
        unsafe { _mm_storeu_si128(to.cast(), self.0) };
    }

    #[inline(always)]
    fn join(self, other: Self, count: usize) -> Self {
        join_by_shifts(self, other, count)
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: by the contract of the trait.
        unsafe { _mm_stream_si128(to.cast(), self.0) };
    }

    #[inline(always)]
    fn prefetch<const LEVEL: u32>(at: *const u8) {
        prefetch::<LEVEL>(at);
    }

    #[inline(always)]
    fn zip<const BITS: u32>(self, other: Self) -> (Self, Self) {
        let (a, b) = (self.0, other.0);
        let first = match BITS {
            8 => sse!(_mm_unpacklo_epi8(a, b)),
            16 => sse!(_mm_unpacklo_epi16(a, b)),
            32 => sse!(_mm_unpacklo_epi32(a, b)),
            _ => sse!(_mm_unpacklo_epi64(a, b)),
        };
        let second = match BITS {
            8 => sse!(_mm_unpackhi_epi8(a, b)),
            16 => sse!(_mm_unpackhi_epi16(a, b)),
            32 => sse!(_mm_unpackhi_epi32(a, b)),
            _ => sse!(_mm_unpackhi_epi64(a, b)),
        };
        (V(first), V(second))
    }

    #[inline(always)]
    fn unzip<const BITS: u32>(self, other: Self) -> (Self, Self) {
        let (a, b) = (self.0, other.0);
        match BITS {
            8 => {
                // Narrowing by packs is by saturation, which leaves alone what fits.
                let byte = sse!(_mm_set1_epi16(0xff));
                let (low_a, low_b) = (sse!(_mm_and_si128(a, byte)), sse!(_mm_and_si128(b, byte)));
                let (high_a, high_b) = (sse!(_mm_srli_epi16::<8>(a)), sse!(_mm_srli_epi16::<8>(b)));
                (V(sse!(_mm_packus_epi16(low_a, low_b))), V(sse!(_mm_packus_epi16(high_a, high_b))))
            }
            16 => {
                let half = sse!(_mm_set1_epi32(0xffff));
                let (low_a, low_b) = (sse!(_mm_and_si128(a, half)), sse!(_mm_and_si128(b, half)));
                let (high_a, high_b) =
                    (sse!(_mm_srli_epi32::<16>(a)), sse!(_mm_srli_epi32::<16>(b)));
                (V(sse!(_mm_packus_epi32(low_a, low_b))), V(sse!(_mm_packus_epi32(high_a, high_b))))
            }
            32 => {
                let a = sse!(_mm_shuffle_epi32::<EVEN_THEN_ODD>(a));
                let b = sse!(_mm_shuffle_epi32::<EVEN_THEN_ODD>(b));
                (V(sse!(_mm_unpacklo_epi64(a, b))), V(sse!(_mm_unpackhi_epi64(a, b))))
            }
            _ => (V(sse!(_mm_unpacklo_epi64(a, b))), V(sse!(_mm_unpackhi_epi64(a, b)))),
        }
    }

    const REACH: usize = 16;

    #[inline(always)]
    fn shuffle(self, order: Self) -> Self {
        V(sse!(_mm_shuffle_epi8(self.0, order.0)))
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        V(sse!(_mm_and_si128(self.0, other.0)))
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        V(sse!(_mm_or_si128(self.0, other.0)))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        V(sse!(_mm_xor_si128(self.0, other.0)))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        V(sse!(_mm_min_epu8(self.0, other.0)))
    }

    #[inline(always)]
    fn shl<const BY: i32>(self) -> Self {
        V(sse!(_mm_slli_epi16::<BY>(self.0)))
    }

    #[inline(always)]
    fn shr<const BY: i32>(self) -> Self {
        V(sse!(_mm_srli_epi16::<BY>(self.0)))
    }
}
