//! AVX-512 F and BW: vectors of 64 bytes, and those of AVX2 where they are too
//! long.
//!
//! From 16 bits on, one permutation of two vectors makes each half of a zip or
//! an unzip. Bytes have none in BW; they are zipped within the quarters of a
//! vector and the quarters' halves put in order after that.

use std::arch::x86_64::*;

use super::super::algorithm::compiled;
use super::super::vector::Vector;
use super::avx2;
use super::prefetch;
use crate::cpu::with_features;

/// A value is there only where the CPU has AVX-512 F and BW: see [`Vector`].
#[derive(Clone, Copy)]
pub(in super::super) struct V(__m512i);

/// Calls intrinsics that need AVX-512 on values that prove it.
macro_rules! avx512 {
    ($call:expr) => {
        // SAFETY: there is a `V`, so the CPU has AVX-512; only values are touched.
        unsafe { $call }
    };
}

/// An index vector.
trait Index: Copy {
    /// # Safety
    ///
    /// The CPU has AVX-512.
    unsafe fn vector(&self) -> __m512i;
}

impl<T: Copy, const N: usize> Index for [T; N] {
    #[inline(always)]
    unsafe fn vector(&self) -> __m512i {
        const { assert!(size_of::<[T; N]>() == 64) };
        // SAFETY: the array has 64 bytes.
        unsafe { _mm512_loadu_si512(self.as_ptr().cast()) }
    }
}

/// Elements `first`, `first + n`, `first + 1`, `first + 1 + n` …: the zip of two
/// vectors of n elements each, from the element `first` of each on.
macro_rules! zip_index {
    ($name:ident, $type:ty, $n:literal) => {
        const fn $name(first: $type) -> [$type; $n] {
            let mut index = [0; $n];
            let mut i = 0;
            let mut element = first;
            while i < $n {
                index[i] = element;
                index[i + 1] = element + $n;
                i += 2;
                element += 1;
            }
            index
        }
    };
}
zip_index!(zip16, u16, 32);
zip_index!(zip32, u32, 16);
zip_index!(zip64, u64, 8);

/// Every other element of two vectors, from `first` on.
macro_rules! unzip_index {
    ($name:ident, $type:ty, $n:literal) => {
        const fn $name(first: $type) -> [$type; $n] {
            let mut index = [0; $n];
            let mut i = 0;
            let mut element = first;
            while i < $n {
                index[i] = element;
                i += 1;
                element += 2;
            }
            index
        }
    };
}
unzip_index!(unzip16, u16, 32);
unzip_index!(unzip32, u32, 16);
unzip_index!(unzip64, u64, 8);

/// The numbers of the pairs of bytes of two vectors, and one more.
static PAIRS: [u16; 65] = {
    let mut pairs = [0; 65];
    let mut i = 0;
    while i < 65 {
        pairs[i as usize] = i;
        i += 1;
    }
    pairs
};

/// The numbers of as many pairs as a vector has, from that one of two vectors on.
///
/// # Safety
///
/// The CPU has AVX-512. 33 at most.
#[inline(always)]
unsafe fn pairs_from(first: usize) -> __m512i {
    // SAFETY: 32 of the numbers.
    unsafe { _mm512_loadu_si512(PAIRS.as_ptr().wrapping_add(first).cast()) }
}

/// Eighths of two vectors whose quarters hold what belongs beside each other,
/// in order; first and second result.
const QUARTERS: [[u64; 8]; 2] = [[0, 1, 8, 9, 2, 3, 10, 11], [4, 5, 12, 13, 6, 7, 14, 15]];
/// The even eighths, then the odd ones.
const EVEN_THEN_ODD: [u64; 8] = [0, 2, 4, 6, 1, 3, 5, 7];

/// Four times four elements of 32 bits, turned.
const TURN: [u32; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];
/// In each quarter, four times four bytes, turned.
const GATHER: [[u8; 16]; 4] = [[0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]; 4];

impl V {
    #[inline(always)]
    fn permute<const BITS: u32>(self, other: Self, index: impl Index) -> Self {
        let index = avx512!(index.vector());
        V(match BITS {
            16 => avx512!(_mm512_permutex2var_epi16(self.0, index, other.0)),
            32 => avx512!(_mm512_permutex2var_epi32(self.0, index, other.0)),
            _ => avx512!(_mm512_permutex2var_epi64(self.0, index, other.0)),
        })
    }
}

impl Vector for V {
    const BYTES: usize = 64;
    type Half = avx2::V;

    with_features!(avx512, compiled());

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: by the contract of the trait.
        V(unsafe { _mm512_loadu_si512(from.cast()) })
    }

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Self {
        // SAFETY: by the contract of the trait.
        V(unsafe { _mm512_set1_epi8(byte.cast_signed()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: by the contract of the trait.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) };
    }

    #[inline(always)]
    fn join(self, other: Self, count: usize) -> Self {
        let at = 64 - count % 64;
        // SAFETY: there is a `V`, so the CPU has AVX-512; 32 at most.
        let pairs = unsafe { pairs_from(at / 2) };
        let even = avx512!(_mm512_permutex2var_epi16(self.0, pairs, other.0));
        if at.is_multiple_of(2) {
            return V(even);
        }
        // BW has no permutation of bytes: each pair is made of two.
        // SAFETY: as above, and one more.
        let next_pairs = unsafe { pairs_from(at / 2 + 1) };
        let odd = avx512!(_mm512_permutex2var_epi16(self.0, next_pairs, other.0));
        let (low, high) =
            (avx512!(_mm512_srli_epi16::<8>(even)), avx512!(_mm512_slli_epi16::<8>(odd)));
        V(avx512!(_mm512_or_si512(low, high)))
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: by the contract of the trait.
        unsafe { _mm512_stream_si512(to.cast(), self.0) };
    }

    #[inline(always)]
    fn prefetch<const LEVEL: u32>(at: *const u8) {
        prefetch::<LEVEL>(at);
    }

    #[inline(always)]
    fn zip<const BITS: u32>(self, other: Self) -> (Self, Self) {
        match BITS {
            8 => {
                let low = V(avx512!(_mm512_unpacklo_epi8(self.0, other.0)));
                let high = V(avx512!(_mm512_unpackhi_epi8(self.0, other.0)));
                let [first, second] = QUARTERS;
                (low.permute::<64>(high, first), low.permute::<64>(high, second))
            }
            16 => {
                let (first, second) = const { (zip16(0), zip16(16)) };
                (self.permute::<16>(other, first), self.permute::<16>(other, second))
            }
            32 => {
                let (first, second) = const { (zip32(0), zip32(8)) };
                (self.permute::<32>(other, first), self.permute::<32>(other, second))
            }
            _ => {
                let (first, second) = const { (zip64(0), zip64(4)) };
                (self.permute::<64>(other, first), self.permute::<64>(other, second))
            }
        }
    }

    #[inline(always)]
    fn unzip<const BITS: u32>(self, other: Self) -> (Self, Self) {
        match BITS {
            8 => {
                // Packing is by saturation, which leaves alone what fits.
                let (a, b) = (self.0, other.0);
                let byte = avx512!(_mm512_set1_epi16(0xff));
                let low = |v| avx512!(_mm512_and_si512(v, byte));
                let high = |v| avx512!(_mm512_srli_epi16::<8>(v));
                let even = avx512!(_mm512_packus_epi16(low(a), low(b)));
                let odd = avx512!(_mm512_packus_epi16(high(a), high(b)));
                let order = avx512!(EVEN_THEN_ODD.vector());
                let even = avx512!(_mm512_permutexvar_epi64(order, even));
                let odd = avx512!(_mm512_permutexvar_epi64(order, odd));
                (V(even), V(odd))
            }
            16 => {
                let (even, odd) = const { (unzip16(0), unzip16(1)) };
                (self.permute::<16>(other, even), self.permute::<16>(other, odd))
            }
            32 => {
                let (even, odd) = const { (unzip32(0), unzip32(1)) };
                (self.permute::<32>(other, even), self.permute::<32>(other, odd))
            }
            _ => {
                let (even, odd) = const { (unzip64(0), unzip64(1)) };
                (self.permute::<64>(other, even), self.permute::<64>(other, odd))
            }
        }
    }

    #[inline(always)]
    fn interleave_bytes(rows: [Self; 4]) -> [Self; 4] {
        // Unpacking works within the quarters. So that its results are in order,
        // each row gets its quarters where the words of a result come from.
        let turn = avx512!(TURN.vector());
        let [a, b, c, d] = rows;
        let a = avx512!(_mm512_permutexvar_epi32(turn, a.0));
        let b = avx512!(_mm512_permutexvar_epi32(turn, b.0));
        let c = avx512!(_mm512_permutexvar_epi32(turn, c.0));
        let d = avx512!(_mm512_permutexvar_epi32(turn, d.0));
        let (ab, ab_high) =
            (avx512!(_mm512_unpacklo_epi8(a, b)), avx512!(_mm512_unpackhi_epi8(a, b)));
        let (cd, cd_high) =
            (avx512!(_mm512_unpacklo_epi8(c, d)), avx512!(_mm512_unpackhi_epi8(c, d)));
        [
            V(avx512!(_mm512_unpacklo_epi16(ab, cd))),
            V(avx512!(_mm512_unpackhi_epi16(ab, cd))),
            V(avx512!(_mm512_unpacklo_epi16(ab_high, cd_high))),
            V(avx512!(_mm512_unpackhi_epi16(ab_high, cd_high))),
        ]
    }

    #[inline(always)]
    fn deinterleave_bytes(words: [Self; 4]) -> [Self; 4] {
        // Four bytes of each row beside each other, then those of a row together.
        let gather = avx512!(GATHER.vector());
        let [a, b, c, d] = words;
        let a = V(avx512!(_mm512_shuffle_epi8(a.0, gather)));
        let b = V(avx512!(_mm512_shuffle_epi8(b.0, gather)));
        let c = V(avx512!(_mm512_shuffle_epi8(c.0, gather)));
        let d = V(avx512!(_mm512_shuffle_epi8(d.0, gather)));
        let (ab, ab_odd) = a.unzip::<32>(b);
        let (cd, cd_odd) = c.unzip::<32>(d);
        let (first, third) = ab.unzip::<32>(cd);
        let (second, fourth) = ab_odd.unzip::<32>(cd_odd);
        [first, second, third, fourth]
    }

    #[inline(always)]
    fn turn_words(rows: [Self; 16]) -> [Self; 16] {
        // Unpacking works within the quarters: four rows become their columns 0, 4, 8
        // and 12, then 1, 5, 9 and 13, and so on. Then quarters are exchanged.
        let [r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14, r15] = rows;
        let [a0, a1, a2, a3] = turn_within_quarters([r0, r1, r2, r3]);
        let [b0, b1, b2, b3] = turn_within_quarters([r4, r5, r6, r7]);
        let [c0, c1, c2, c3] = turn_within_quarters([r8, r9, r10, r11]);
        let [d0, d1, d2, d3] = turn_within_quarters([r12, r13, r14, r15]);
        let [r0, r4, r8, r12] = turn_quarters([a0, b0, c0, d0]);
        let [r1, r5, r9, r13] = turn_quarters([a1, b1, c1, d1]);
        let [r2, r6, r10, r14] = turn_quarters([a2, b2, c2, d2]);
        let [r3, r7, r11, r15] = turn_quarters([a3, b3, c3, d3]);
        [r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14, r15]
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        V(avx512!(_mm512_and_si512(self.0, other.0)))
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        V(avx512!(_mm512_or_si512(self.0, other.0)))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        V(avx512!(_mm512_min_epu8(self.0, other.0)))
    }

    #[inline(always)]
    fn shl<const BY: i32>(self) -> Self {
        let by = avx512!(_mm_cvtsi32_si128(BY));
        V(avx512!(_mm512_sll_epi16(self.0, by)))
    }

    #[inline(always)]
    fn shr<const BY: i32>(self) -> Self {
        let by = avx512!(_mm_cvtsi32_si128(BY));
        V(avx512!(_mm512_srl_epi16(self.0, by)))
    }
}

/// In each quarter, four rows of four elements of 32 bits become their columns.
#[inline(always)]
fn turn_within_quarters([a, b, c, d]: [V; 4]) -> [V; 4] {
    let ab = avx512!(_mm512_unpacklo_epi32(a.0, b.0));
    let ab_high = avx512!(_mm512_unpackhi_epi32(a.0, b.0));
    let cd = avx512!(_mm512_unpacklo_epi32(c.0, d.0));
    let cd_high = avx512!(_mm512_unpackhi_epi32(c.0, d.0));
    [
        V(avx512!(_mm512_unpacklo_epi64(ab, cd))),
        V(avx512!(_mm512_unpackhi_epi64(ab, cd))),
        V(avx512!(_mm512_unpacklo_epi64(ab_high, cd_high))),
        V(avx512!(_mm512_unpackhi_epi64(ab_high, cd_high))),
    ]
}

/// Four rows of four quarters become their columns.
#[inline(always)]
fn turn_quarters([a, b, c, d]: [V; 4]) -> [V; 4] {
    const EVEN: i32 = 0b10_00_10_00;
    const ODD: i32 = 0b11_01_11_01;
    let ab = avx512!(_mm512_shuffle_i32x4::<EVEN>(a.0, b.0));
    let ab_odd = avx512!(_mm512_shuffle_i32x4::<ODD>(a.0, b.0));
    let cd = avx512!(_mm512_shuffle_i32x4::<EVEN>(c.0, d.0));
    let cd_odd = avx512!(_mm512_shuffle_i32x4::<ODD>(c.0, d.0));
    [
        V(avx512!(_mm512_shuffle_i32x4::<EVEN>(ab, cd))),
        V(avx512!(_mm512_shuffle_i32x4::<EVEN>(ab_odd, cd_odd))),
        V(avx512!(_mm512_shuffle_i32x4::<ODD>(ab, cd))),
        V(avx512!(_mm512_shuffle_i32x4::<ODD>(ab_odd, cd_odd))),
    ]
}
