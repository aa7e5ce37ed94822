//! The portable tier: vectors of 16 bytes by the crate `wide`, which uses what
//! every CPU of a target has, and on any other target plain arrays.

#![allow(unsafe_code, reason = "loads, stores and three intrinsics; docs/architecture.md")]

use bytemuck::cast;
use wide::{i16x8, i32x8, u8x16, u16x8, u32x4, u64x2};

use super::algorithm::compiled;
use super::vector::{Vector, join_by_shifts};

#[derive(Clone, Copy)]
pub(super) struct V(u8x16);

/// Alternates the 16 bits of two vectors, for which `wide` has nothing.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn zip_pairs(a: u8x16, b: u8x16) -> (V, V) {
    use std::arch::x86_64::{_mm_unpackhi_epi16, _mm_unpacklo_epi16};
    let (a, b) = (cast(a), cast(b));
    // SAFETY: every x86-64 has SSE2.
    let low = unsafe { _mm_unpacklo_epi16(a, b) };
    // SAFETY: as above.
    let high = unsafe { _mm_unpackhi_epi16(a, b) };
    (V(cast(low)), V(cast(high)))
}

/// The same; the compiler knows how to do it in one instruction for each half.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn zip_pairs(a: u8x16, b: u8x16) -> (V, V) {
    let (a, b): ([u16; 8], [u16; 8]) = (cast(a), cast(b));
    let of = |i: usize| if i.is_multiple_of(2) { a[i / 2] } else { b[i / 2] };
    let low: [u16; 8] = std::array::from_fn(of);
    let high: [u16; 8] = std::array::from_fn(|i| of(i + 8));
    (V(cast(low)), V(cast(high)))
}

impl Vector for V {
    const BYTES: usize = 16;
    type Half = V;

    compiled!([]());

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: 16 bytes can be read, by the contract of the trait.
        V(unsafe { from.cast::<u8x16>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Self {
        V(u8x16::splat(byte))
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: 16 bytes can be written, by the contract of the trait.
        unsafe { to.cast::<u8x16>().write_unaligned(self.0) };
    }

    #[inline(always)]
    fn join(self, other: Self, count: usize) -> Self {
        join_by_shifts(self, other, count)
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: 16 aligned bytes can be written, by the contract of the trait;
        // every x86-64 has SSE2.
        unsafe {
            std::arch::x86_64::_mm_stream_si128(to.cast(), cast(self.0));
        }
        #[cfg(not(target_arch = "x86_64"))]
        // SAFETY: the same contract.
        unsafe {
            self.store(to);
        }
    }

    #[inline(always)]
    fn prefetch<const LEVEL: u32>(at: *const u8) {
        #[cfg(target_arch = "x86_64")]
        super::x86::prefetch::<LEVEL>(at);
        #[cfg(not(target_arch = "x86_64"))]
        let _ = at;
    }

    #[inline(always)]
    fn zip<const BITS: u32>(self, other: Self) -> (Self, Self) {
        match BITS {
            8 => (V(u8x16::unpack_low(self.0, other.0)), V(u8x16::unpack_high(self.0, other.0))),
            16 => zip_pairs(self.0, other.0),
            32 => {
                let (a, b): (u32x4, u32x4) = (cast(self.0), cast(other.0));
                (V(cast(a.unpack_lo(b))), V(cast(a.unpack_hi(b))))
            }
            _ => {
                let (a, b): (u64x2, u64x2) = (cast(self.0), cast(other.0));
                (V(cast(a.unpack_lo(b))), V(cast(a.unpack_hi(b))))
            }
        }
    }

    #[inline(always)]
    fn unzip<const BITS: u32>(self, other: Self) -> (Self, Self) {
        match BITS {
            8 => {
                // Narrowing is by saturation, which leaves alone what fits.
                let (a, b): (u16x8, u16x8) = (cast(self.0), cast(other.0));
                let narrow = |a: u16x8, b: u16x8| V(u8x16::narrow_i16x8(cast(a), cast(b)));
                let low = u16x8::splat(0xff);
                (narrow(a & low, b & low), narrow(a >> 8, b >> 8))
            }
            16 => {
                let (a, b): (u32x4, u32x4) = (cast(self.0), cast(other.0));
                let narrow = |a: u32x4, b: u32x4| {
                    let both: i32x8 = cast([a, b]);
                    V(cast(i16x8::from_i32x8_truncate(both)))
                };
                (narrow(a, b), narrow(a >> 16, b >> 16))
            }
            // Of two elements, and of four when done twice, zips are unzips.
            32 => {
                let (a, b) = self.zip::<32>(other);
                a.zip::<32>(b)
            }
            _ => self.zip::<64>(other),
        }
    }

    /// Interleaving takes the number of a byte among 64 round by two bits of six.
    #[inline(always)]
    fn deinterleave_bytes(words: [Self; 4]) -> [Self; 4] {
        Self::interleave_bytes(Self::interleave_bytes(words))
    }

    const REACH: usize = 0;

    #[inline(always)]
    fn shuffle(self, order: Self) -> Self {
        V(self.0.shuffle(order.0))
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        V(self.0 & other.0)
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        V(self.0 | other.0)
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        V(self.0 ^ other.0)
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        V(self.0.min(other.0))
    }

    #[inline(always)]
    fn shl<const BY: i32>(self) -> Self {
        V(cast(cast::<_, u16x8>(self.0) << BY))
    }

    #[inline(always)]
    fn shr<const BY: i32>(self) -> Self {
        V(cast(cast::<_, u16x8>(self.0) >> BY))
    }
}
