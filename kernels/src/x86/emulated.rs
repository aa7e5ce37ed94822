//! What stands in for AVX-512 in tests on a CPU that lacks it (`--cfg emulate_avx512`): the same
//! vectors, with the same masks, as plain arrays.
//!
//! It is what makes a test of the algorithms with vectors of 64 bytes, and of the plans that are
//! made for them, of their instructions nothing. Its loops are not inlined, as they would be compiled
//! hundreds of times.

use super::super::algorithm::compiled;
use super::super::vector::Vector;
use super::{avx2, prefetch};
use crate::cpu::with_features;

const BYTES: usize = 64;
const QUARTER: usize = 16;

#[derive(Clone, Copy)]
pub(in super::super) struct V([u8; BYTES]);

impl V {
    /// Alternates the elements of each part of two vectors: those of their first halves, and of
    /// their second ones.
    #[inline(never)]
    fn zip_parts<const BITS: u32>(self, other: Self, part: usize) -> (Self, Self) {
        let mut zipped = [[0; BYTES]; 2];
        for (at, (first, second)) in self.0.into_iter().zip(other.0).enumerate() {
            let (half, to) = zipped_to::<BITS>(at, part);
            zipped[half][to] = first;
            zipped[half][to + element::<BITS>()] = second;
        }
        (V(zipped[0]), V(zipped[1]))
    }

    #[inline(never)]
    fn pairwise(self, other: Self, of: impl Fn(u8, u8) -> u8) -> Self {
        V(std::array::from_fn(|i| of(self.0[i], other.0[i])))
    }

    /// Changes each 16 bits.
    #[inline(never)]
    fn each_pair(mut self, of: impl Fn(u16) -> u16) -> Self {
        for pair in self.0.as_chunks_mut::<2>().0 {
            *pair = of(u16::from_le_bytes(*pair)).to_le_bytes();
        }
        self
    }

    /// The first bytes of each part, and zeros behind them.
    ///
    /// # Safety
    ///
    /// `count` bytes can be read at each place, or `part` if that is less.
    #[inline(never)]
    unsafe fn gather_parts(first: *const u8, apart: usize, part: usize, count: usize) -> Self {
        let mut bytes = [0; BYTES];
        for (i, to) in bytes.chunks_exact_mut(part).enumerate() {
            let from = first.wrapping_add(i.wrapping_mul(apart));
            // SAFETY: by the contract of this function; no more than the part has.
            unsafe { from.copy_to_nonoverlapping(to.as_mut_ptr(), count.min(part)) };
        }
        V(bytes)
    }

    /// # Safety
    ///
    /// As many bytes can be written.
    #[inline(never)]
    unsafe fn scatter_parts(self, first: *mut u8, apart: usize, part: usize, count: usize) {
        for (i, from) in self.0.chunks_exact(part).enumerate() {
            let to = first.wrapping_add(i.wrapping_mul(apart));
            // SAFETY: by the contract of this function; no more than the part has.
            unsafe { from.as_ptr().copy_to_nonoverlapping(to, count.min(part)) };
        }
    }
}

/// The bytes of an element.
const fn element<const BITS: u32>() -> usize {
    BITS as usize / 8
}

/// The result of a zip, and the place in it, that a byte of the first vector goes to.
#[inline(always)]
fn zipped_to<const BITS: u32>(at: usize, part: usize) -> (usize, usize) {
    let (begin, at) = (at / part * part, at % part);
    let to = 2 * at - at % element::<BITS>();
    (to / part, begin + to % part)
}

impl Vector for V {
    const BYTES: usize = BYTES;
    type Half = avx2::V;

    with_features!(avx2, compiled());

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: by the contract of the trait.
        V(unsafe { from.cast::<[u8; BYTES]>().read() })
    }

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Self {
        V([byte; BYTES])
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: by the contract of the trait.
        unsafe { to.cast::<[u8; BYTES]>().write(self.0) };
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        assert!(to.addr().is_multiple_of(BYTES), "a streaming store to {to:?}");
        // SAFETY: by the contract of the trait.
        unsafe { self.store(to) };
    }

    #[inline(always)]
    fn prefetch<const LEVEL: u32>(at: *const u8) {
        prefetch::<LEVEL>(at);
    }

    #[inline(never)]
    fn join(self, other: Self, count: usize) -> Self {
        let mut both = [0; 2 * BYTES];
        both[..BYTES].copy_from_slice(&self.0);
        both[BYTES..].copy_from_slice(&other.0);
        V(std::array::from_fn(|i| both[BYTES - count + i]))
    }

    #[inline(always)]
    fn zip<const BITS: u32>(self, other: Self) -> (Self, Self) {
        self.zip_parts::<BITS>(other, BYTES)
    }

    #[inline(never)]
    fn unzip<const BITS: u32>(self, other: Self) -> (Self, Self) {
        let zipped = [self.0, other.0];
        let of = |skipped: usize| {
            V(std::array::from_fn(|i| {
                let (half, from) = zipped_to::<BITS>(i, BYTES);
                zipped[half][from + skipped]
            }))
        };
        (of(0), of(element::<BITS>()))
    }

    #[inline(always)]
    fn zip_within<const BITS: u32>(self, other: Self) -> (Self, Self) {
        self.zip_parts::<BITS>(other, QUARTER)
    }

    #[inline(always)]
    fn unzip_quarters(self, other: Self) -> (Self, Self) {
        self.unzip::<128>(other)
    }

    const HAS_MASKS: bool = true;

    #[inline(always)]
    unsafe fn gather(first: *const u8, apart: usize, count: usize) -> Self {
        // SAFETY: by the contract of the trait.
        unsafe { Self::gather_parts(first, apart, QUARTER, count) }
    }

    #[inline(always)]
    unsafe fn scatter(self, first: *mut u8, apart: usize, count: usize) {
        // SAFETY: by the contract of the trait.
        unsafe { self.scatter_parts(first, apart, QUARTER, count) };
    }

    #[inline(always)]
    unsafe fn gather_pieces<const SIZE: usize>(
        first: *const u8,
        apart: usize,
        count: usize,
    ) -> Self {
        // SAFETY: by the contract of the trait.
        unsafe { Self::gather_parts(first, apart, SIZE, count) }
    }

    #[inline(always)]
    unsafe fn scatter_pieces<const SIZE: usize>(self, first: *mut u8, apart: usize, count: usize) {
        // SAFETY: by the contract of the trait.
        unsafe { self.scatter_parts(first, apart, SIZE, count) };
    }

    const REACH: usize = BYTES;

    #[inline(never)]
    fn shuffle(self, order: Self) -> Self {
        V(order.0.map(|from| self.0[usize::from(from) % BYTES]))
    }

    #[inline(never)]
    fn exchange_halves(self, other: Self) -> (Self, Self) {
        let half = |first: usize| {
            let of = |i: usize| {
                if i < BYTES / 2 { self.0[first + i] } else { other.0[first + i - BYTES / 2] }
            };
            V(std::array::from_fn(of))
        };
        (half(0), half(BYTES / 2))
    }

    const HAS_BIT_FIELDS: bool = true;

    #[inline(never)]
    fn bit_fields(self, fields: Self) -> Self {
        let eighth = |i: usize| u64::from_le_bytes(self.0.as_chunks().0[i / 8]);
        V(std::array::from_fn(|i| {
            let [field, ..] = eighth(i).rotate_right(fields.0[i].into()).to_le_bytes();
            field
        }))
    }

    const SELECTS: bool = true;

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        self.pairwise(other, |a, b| a & b)
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        self.pairwise(other, |a, b| a | b)
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self.pairwise(other, |a, b| a ^ b)
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.pairwise(other, u8::min)
    }

    #[inline(always)]
    fn shl<const BY: i32>(self) -> Self {
        self.each_pair(|pair| pair << BY)
    }

    #[inline(always)]
    fn shr<const BY: i32>(self) -> Self {
        self.each_pair(|pair| pair >> BY)
    }
}
