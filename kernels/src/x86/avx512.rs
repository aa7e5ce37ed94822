//! AVX-512 F, BW, VL and VBMI, and GFNI: vectors of 64 bytes, and those of AVX2 where they are too
//! long.
//!
//! One permutation of two vectors makes each half of a zip or an unzip. That of bytes is of VBMI; squares of
//! bits are turned by GFNI. CPUs of Intel for servers have both from Ice Lake on, and those of AMD from Zen 4 on:
//! all that have AVX-512 but Skylake and what followed it with the same core.

use std::arch::x86_64::*;

use super::super::algorithm::compiled;
use super::super::vector::{LINE, Vector, unweave, weave};
use super::avx2;
use super::prefetch;
use crate::cpu::with_features;

/// A value is there only where the CPU has AVX-512 F, BW, VL and VBMI, and GFNI: see [`Vector`].
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
zip_index!(zip8, u8, 64);
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
unzip_index!(unzip8, u8, 64);
unzip_index!(unzip16, u16, 32);
unzip_index!(unzip32, u32, 16);
unzip_index!(unzip64, u64, 8);

/// The numbers of the bytes of two vectors.
static BYTES: [u8; 128] = {
    let mut bytes = [0; 128];
    let mut i = 0;
    while i < 128 {
        bytes[i as usize] = i;
        i += 1;
    }
    bytes
};

/// Four times four elements of 32 bits, turned.
const TURN: [u32; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];
/// In each quarter, four times four bytes, turned.
const GATHER: [[u8; 16]; 4] = [[0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]; 4];

/// Eight bytes of one bit each, which goes up or down.
const BITS_UP: i64 = i64::from_le_bytes([1, 2, 4, 8, 16, 32, 64, 128]);
const BITS_DOWN: i64 = BITS_UP.swap_bytes();
/// Eight bytes of each half of a quarter, the other way round.
const BYTES_DOWN: [[u8; 16]; 4] = [[7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8]; 4];

impl V {
    #[inline(always)]
    fn permute<const BITS: u32>(self, other: Self, index: impl Index) -> Self {
        let index = avx512!(index.vector());
        V(match BITS {
            8 => avx512!(_mm512_permutex2var_epi8(self.0, index, other.0)),
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
        let first = BYTES.as_ptr().wrapping_add(64 - count % 64);
        // SAFETY: there is a `V`, so the CPU has AVX-512; 64 of the numbers, from 1 to 64 on.
        let numbers = unsafe { _mm512_loadu_si512(first.cast()) };
        V(avx512!(_mm512_permutex2var_epi8(self.0, numbers, other.0)))
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
                let (first, second) = const { (zip8(0), zip8(32)) };
                (self.permute::<8>(other, first), self.permute::<8>(other, second))
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
                let (even, odd) = const { (unzip8(0), unzip8(1)) };
                (self.permute::<8>(other, even), self.permute::<8>(other, odd))
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
    fn zip_within<const BITS: u32>(self, other: Self) -> (Self, Self) {
        let (a, b) = (self.0, other.0);
        match BITS {
            8 => (V(avx512!(_mm512_unpacklo_epi8(a, b))), V(avx512!(_mm512_unpackhi_epi8(a, b)))),
            16 => {
                (V(avx512!(_mm512_unpacklo_epi16(a, b))), V(avx512!(_mm512_unpackhi_epi16(a, b))))
            }
            32 => {
                (V(avx512!(_mm512_unpacklo_epi32(a, b))), V(avx512!(_mm512_unpackhi_epi32(a, b))))
            }
            _ => (V(avx512!(_mm512_unpacklo_epi64(a, b))), V(avx512!(_mm512_unpackhi_epi64(a, b)))),
        }
    }

    #[inline(always)]
    fn unzip_quarters(self, other: Self) -> (Self, Self) {
        const EVEN: i32 = 0b10_00_10_00;
        const ODD: i32 = 0b11_01_11_01;
        let even = avx512!(_mm512_shuffle_i32x4::<EVEN>(self.0, other.0));
        (V(even), V(avx512!(_mm512_shuffle_i32x4::<ODD>(self.0, other.0))))
    }

    const HAS_MASKS: bool = true;

    #[inline(always)]
    unsafe fn gather(first: *const u8, apart: usize, count: usize) -> Self {
        let (second, mask) = (first.wrapping_add(apart), of_quarter(count));
        let third = second.wrapping_add(apart);
        // SAFETY: by the contract of the trait; what the mask leaves out is not read.
        let a = unsafe { _mm_maskz_loadu_epi8(mask, first.cast()) };
        // SAFETY: as above.
        let b = unsafe { _mm_maskz_loadu_epi8(mask, second.cast()) };
        // SAFETY: as above.
        let c = unsafe { _mm_maskz_loadu_epi8(mask, third.cast()) };
        // SAFETY: as above.
        let d = unsafe { _mm_maskz_loadu_epi8(mask, third.wrapping_add(apart).cast()) };
        // SAFETY: the CPU has AVX-512.
        let all = unsafe { _mm512_castsi128_si512(a) };
        // SAFETY: as above.
        let all = unsafe { _mm512_inserti32x4::<1>(all, b) };
        // SAFETY: as above.
        let all = unsafe { _mm512_inserti32x4::<2>(all, c) };
        // SAFETY: as above.
        V(unsafe { _mm512_inserti32x4::<3>(all, d) })
    }

    #[inline(always)]
    unsafe fn scatter(self, first: *mut u8, apart: usize, count: usize) {
        let (second, mask) = (first.wrapping_add(apart), of_quarter(count));
        let third = second.wrapping_add(apart);
        let quarter = avx512!(_mm512_castsi512_si128(self.0));
        // SAFETY: by the contract of the trait; what the mask leaves out is not written.
        unsafe { _mm_mask_storeu_epi8(first.cast(), mask, quarter) };
        let quarter = avx512!(_mm512_extracti32x4_epi32::<1>(self.0));
        // SAFETY: as above.
        unsafe { _mm_mask_storeu_epi8(second.cast(), mask, quarter) };
        let quarter = avx512!(_mm512_extracti32x4_epi32::<2>(self.0));
        // SAFETY: as above.
        unsafe { _mm_mask_storeu_epi8(third.cast(), mask, quarter) };
        let quarter = avx512!(_mm512_extracti32x4_epi32::<3>(self.0));
        // SAFETY: as above.
        unsafe { _mm_mask_storeu_epi8(third.wrapping_add(apart).cast(), mask, quarter) };
    }

    #[inline(always)]
    unsafe fn gather_pieces<const SIZE: usize>(
        first: *const u8,
        apart: usize,
        count: usize,
    ) -> Self {
        if SIZE == LINE {
            // SAFETY: by the contract of the trait; what the mask leaves out is not read.
            return V(unsafe { _mm512_maskz_loadu_epi8(of_all(count), first.cast()) });
        }
        let mask = of_half(count);
        // SAFETY: as above.
        let a = unsafe { _mm256_maskz_loadu_epi8(mask, first.cast()) };
        // SAFETY: as above.
        let b = unsafe { _mm256_maskz_loadu_epi8(mask, first.wrapping_add(apart).cast()) };
        // SAFETY: the CPU has AVX-512.
        let all = unsafe { _mm512_castsi256_si512(a) };
        // SAFETY: as above.
        V(unsafe { _mm512_inserti64x4::<1>(all, b) })
    }

    #[inline(always)]
    unsafe fn scatter_pieces<const SIZE: usize>(self, first: *mut u8, apart: usize, count: usize) {
        if SIZE == LINE {
            // SAFETY: by the contract of the trait; what the mask leaves out is not written.
            return unsafe { _mm512_mask_storeu_epi8(first.cast(), of_all(count), self.0) };
        }
        let (half, mask) = (avx512!(_mm512_castsi512_si256(self.0)), of_half(count));
        // SAFETY: as above.
        unsafe { _mm256_mask_storeu_epi8(first.cast(), mask, half) };
        let half = avx512!(_mm512_extracti64x4_epi64::<1>(self.0));
        // SAFETY: as above.
        unsafe { _mm256_mask_storeu_epi8(first.wrapping_add(apart).cast(), mask, half) };
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
    fn interleave_bits<const MOST_FIRST: bool>(rows: [Self; 8]) -> [Self; 8] {
        // Bit j of byte i is bit i of byte 7 - j then, or bit 7 - i.
        let [a, b, c, d, e, f, g, h] = rows;
        let mut bytes = weave::<Self, 8, 8>([h, g, f, e, d, c, b, a]);
        let columns = avx512!(_mm512_set1_epi64(if MOST_FIRST { BITS_DOWN } else { BITS_UP }));
        for square in &mut bytes {
            *square = V(avx512!(_mm512_gf2p8affine_epi64_epi8::<0>(columns, square.0)));
        }
        bytes
    }

    #[inline(always)]
    fn deinterleave_bits<const MOST_FIRST: bool>(bytes: [Self; 8]) -> [Self; 8] {
        let mut rows = bytes;
        let columns = avx512!(_mm512_set1_epi64(BITS_UP));
        let turn_round = avx512!(BYTES_DOWN.vector());
        for square in &mut rows {
            if !MOST_FIRST {
                *square = V(avx512!(_mm512_shuffle_epi8(square.0, turn_round)));
            }
            *square = V(avx512!(_mm512_gf2p8affine_epi64_epi8::<0>(columns, square.0)));
        }
        unweave::<Self, 8, 8>(rows)
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

    const REACH: usize = 64;

    #[inline(always)]
    fn shuffle(self, order: Self) -> Self {
        V(avx512!(_mm512_permutexvar_epi8(order.0, self.0)))
    }

    #[inline(always)]
    fn exchange_halves(self, other: Self) -> (Self, Self) {
        let first = avx512!(_mm512_shuffle_i64x2::<0b01_00_01_00>(self.0, other.0));
        let second = avx512!(_mm512_shuffle_i64x2::<0b11_10_11_10>(self.0, other.0));
        (V(first), V(second))
    }

    const HAS_BIT_FIELDS: bool = true;

    #[inline(always)]
    fn bit_fields(self, fields: Self) -> Self {
        V(avx512!(_mm512_multishift_epi64_epi8(fields.0, self.0)))
    }

    const SELECTS: bool = true;

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        V(avx512!(_mm512_and_si512(self.0, other.0)))
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        V(avx512!(_mm512_or_si512(self.0, other.0)))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        V(avx512!(_mm512_xor_si512(self.0, other.0)))
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

/// The mask of the first bytes of a quarter, up to 16 of them.
#[inline(always)]
fn of_quarter(count: usize) -> __mmask16 {
    let left_out = u32::try_from(16 - count.min(16)).unwrap_or_default();
    __mmask16::MAX.unbounded_shr(left_out)
}

/// And of a half, and of all of a vector.
#[inline(always)]
fn of_half(count: usize) -> __mmask32 {
    let left_out = u32::try_from(32 - count.min(32)).unwrap_or_default();
    __mmask32::MAX.unbounded_shr(left_out)
}

#[inline(always)]
fn of_all(count: usize) -> __mmask64 {
    let left_out = u32::try_from(64 - count.min(64)).unwrap_or_default();
    __mmask64::MAX.unbounded_shr(left_out)
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
    let (ab, ab_odd) = a.unzip_quarters(b);
    let (cd, cd_odd) = c.unzip_quarters(d);
    let (first, third) = ab.unzip_quarters(cd);
    let (second, fourth) = ab_odd.unzip_quarters(cd_odd);
    [first, second, third, fourth]
}
