//! AVX2: vectors of 32 bytes, and of 16 where those are too long.
//!
//! Its zips work within the two halves of a vector, so each round of them, or the last one of
//! several, is followed by what puts the halves in order:
//!
//! ```text
//! unpacklo   a0 b0 a1 b1 | a4 b4 a5 b5      first   a0 b0 a1 b1 | a2 b2 a3 b3
//! unpackhi   a2 b2 a3 b3 | a6 b6 a7 b7  to  second  a4 b4 a5 b5 | a6 b6 a7 b7
//! ```

use std::arch::x86_64::*;

use super::super::algorithm::compiled;
use super::super::vector::{SHORTEST, Vector};
use super::{prefetch, sse};
use crate::cpu::with_features;

/// A value is there only where the CPU has AVX2: see [`Vector`].
#[derive(Clone, Copy)]
pub(in super::super) struct V(__m256i);

/// Calls intrinsics that need AVX2 on values that prove it.
macro_rules! avx2 {
    ($call:expr) => {
        // SAFETY: there is a `V`, so the CPU has AVX2; only values are touched.
        unsafe { $call }
    };
}

/// The numbers of 16 bytes between others that mean zero.
static SHIFTS: [u8; 80] = {
    let mut shifts = [0x80; 80];
    let mut i = 0;
    while i < 16 {
        shifts[32 + i as usize] = i;
        i += 1;
    }
    shifts
};

/// How the bytes of each half of a vector are shuffled to shift them down by so many; up where that
/// is less than 0.
///
/// # Safety
///
/// The CPU has AVX2. From -32 to 32.
#[inline(always)]
unsafe fn shift(by: usize) -> __m256i {
    let from = SHIFTS.as_ptr().wrapping_add(32).wrapping_add(by);
    // SAFETY: 16 of the bytes.
    let half = unsafe { _mm_loadu_si128(from.cast()) };
    // SAFETY: by the contract of this function.
    unsafe { _mm256_broadcastsi128_si256(half) }
}

impl Vector for V {
    const BYTES: usize = 32;
    type Half = sse::V;

    with_features!(avx2, compiled());

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: by the contract of the trait.
        V(unsafe { _mm256_loadu_si256(from.cast()) })
    }

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Self {
        // SAFETY: by the contract of the trait.
        V(unsafe { _mm256_set1_epi8(byte.cast_signed()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: by the contract of the trait.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) };
    }

    #[inline(always)]
    fn join(self, other: Self, count: usize) -> Self {
        let (up, down) = (count % 32, 32 - count % 32);
        // SAFETY: there is a `V`, so the CPU has AVX2; from 1 to 32.
        let shift_down = unsafe { shift(down) };
        // SAFETY: as above, less 16.
        let shift_down_beside = unsafe { shift(down.wrapping_sub(16)) };
        // SAFETY: as above, from -31 to 0.
        let shift_up = unsafe { shift(up.wrapping_neg()) };
        // SAFETY: as above, and 16 more.
        let shift_up_beside = unsafe { shift(16_usize.wrapping_sub(up)) };
        // Half by half, and what comes from the half beside it.
        let beside = avx2!(_mm256_permute2x128_si256::<0x81>(self.0, self.0));
        let last = avx2!(_mm256_shuffle_epi8(self.0, shift_down));
        let last_beside = avx2!(_mm256_shuffle_epi8(beside, shift_down_beside));
        let beside = avx2!(_mm256_permute2x128_si256::<0x08>(other.0, other.0));
        let first = avx2!(_mm256_shuffle_epi8(other.0, shift_up));
        let first_beside = avx2!(_mm256_shuffle_epi8(beside, shift_up_beside));
        let last = avx2!(_mm256_or_si256(last, last_beside));
        let first = avx2!(_mm256_or_si256(first, first_beside));
        V(avx2!(_mm256_or_si256(last, first)))
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: by the contract of the trait.
        unsafe { _mm256_stream_si256(to.cast(), self.0) };
    }

    #[inline(always)]
    fn prefetch<const LEVEL: u32>(at: *const u8) {
        prefetch::<LEVEL>(at);
    }

    #[inline(always)]
    fn zip<const BITS: u32>(self, other: Self) -> (Self, Self) {
        let (low, high) = self.zip_within::<BITS>(other);
        low.exchange_halves(high)
    }

    #[inline(always)]
    fn unzip<const BITS: u32>(self, other: Self) -> (Self, Self) {
        let (low, high) = self.exchange_halves(other);
        low.unzip_within::<BITS>(high)
    }

    #[inline(always)]
    fn zip_within<const BITS: u32>(self, other: Self) -> (Self, Self) {
        let (a, b) = (self.0, other.0);
        match BITS {
            8 => (V(avx2!(_mm256_unpacklo_epi8(a, b))), V(avx2!(_mm256_unpackhi_epi8(a, b)))),
            16 => (V(avx2!(_mm256_unpacklo_epi16(a, b))), V(avx2!(_mm256_unpackhi_epi16(a, b)))),
            32 => (V(avx2!(_mm256_unpacklo_epi32(a, b))), V(avx2!(_mm256_unpackhi_epi32(a, b)))),
            _ => (V(avx2!(_mm256_unpacklo_epi64(a, b))), V(avx2!(_mm256_unpackhi_epi64(a, b)))),
        }
    }

    #[inline(always)]
    fn unzip_within<const BITS: u32>(self, other: Self) -> (Self, Self) {
        let even_then_odd = match BITS {
            8 => avx2!(_mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15)),
            16 => avx2!(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15)),
            32 => {
                let (a, b) =
                    (avx2!(_mm256_castsi256_ps(self.0)), avx2!(_mm256_castsi256_ps(other.0)));
                let even = avx2!(_mm256_shuffle_ps::<0b10_00_10_00>(a, b));
                let odd = avx2!(_mm256_shuffle_ps::<0b11_01_11_01>(a, b));
                return (V(avx2!(_mm256_castps_si256(even))), V(avx2!(_mm256_castps_si256(odd))));
            }
            _ => return self.zip_within::<64>(other),
        };
        let order = V(avx2!(_mm256_broadcastsi128_si256(even_then_odd)));
        self.shuffle(order).zip_within::<64>(other.shuffle(order))
    }

    const HAS_HALVES: bool = true;

    #[inline(always)]
    fn exchange_halves(self, other: Self) -> (Self, Self) {
        let first = avx2!(_mm256_permute2x128_si256::<0x20>(self.0, other.0));
        let second = avx2!(_mm256_permute2x128_si256::<0x31>(self.0, other.0));
        (V(first), V(second))
    }

    #[inline(always)]
    unsafe fn gather(first: *const u8, apart: usize, count: usize) -> Self {
        debug_assert_eq!(count, SHORTEST);
        // SAFETY: by the contract of the trait.
        unsafe { Self::load_parts(first, apart) }
    }

    #[inline(always)]
    unsafe fn scatter(self, first: *mut u8, apart: usize, count: usize) {
        debug_assert_eq!(count, SHORTEST);
        // SAFETY: by the contract of the trait.
        unsafe { self.store_parts(first, apart) };
    }

    #[inline(always)]
    fn deinterleave_bytes(words: [Self; 4]) -> [Self; 4] {
        // In each half the bytes of a row become a word, and the words of four vectors are turned.
        let by_rows = avx2!(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
        let order = V(avx2!(_mm256_broadcastsi128_si256(by_rows)));
        let ((a, b), (c, d)) =
            (words[0].exchange_halves(words[2]), words[1].exchange_halves(words[3]));
        let (a, b) = a.shuffle(order).zip_within::<32>(b.shuffle(order));
        let (c, d) = c.shuffle(order).zip_within::<32>(d.shuffle(order));
        let ((first, second), (third, fourth)) = (a.zip_within::<64>(c), b.zip_within::<64>(d));
        [first, second, third, fourth]
    }

    const REACH: usize = 16;

    #[inline(always)]
    fn shuffle(self, order: Self) -> Self {
        V(avx2!(_mm256_shuffle_epi8(self.0, order.0)))
    }

    #[inline(always)]
    unsafe fn load_parts(from: *const u8, apart: usize) -> Self {
        // SAFETY: by the contract of the trait.
        let low = unsafe { _mm_loadu_si128(from.cast()) };
        // SAFETY: as above.
        let high = unsafe { _mm_loadu_si128(from.wrapping_add(apart).cast()) };
        // SAFETY: the CPU has AVX2.
        V(unsafe { _mm256_set_m128i(high, low) })
    }

    #[inline(always)]
    unsafe fn store_parts(self, to: *mut u8, apart: usize) {
        let low = avx2!(_mm256_castsi256_si128(self.0));
        // SAFETY: by the contract of the trait.
        unsafe { _mm_storeu_si128(to.cast(), low) };
        let high = avx2!(_mm256_extracti128_si256::<1>(self.0));
        // SAFETY: as above.
        unsafe { _mm_storeu_si128(to.wrapping_add(apart).cast(), high) };
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        V(avx2!(_mm256_and_si256(self.0, other.0)))
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        V(avx2!(_mm256_or_si256(self.0, other.0)))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        V(avx2!(_mm256_xor_si256(self.0, other.0)))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        V(avx2!(_mm256_min_epu8(self.0, other.0)))
    }

    #[inline(always)]
    fn shl<const BY: i32>(self) -> Self {
        V(avx2!(_mm256_slli_epi16::<BY>(self.0)))
    }

    #[inline(always)]
    fn shr<const BY: i32>(self) -> Self {
        V(avx2!(_mm256_srli_epi16::<BY>(self.0)))
    }
}
