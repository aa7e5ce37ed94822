//! NEON: vectors of 16 bytes. It has zips and unzips of every width. Its stores
//! past the caches have no intrinsic, so streaming stores are ordinary ones.

use std::arch::aarch64::*;

use super::super::algorithm::compiled;
use super::super::vector::{Vector, join_by_shifts};
use crate::cpu::with_features;

/// A value is there only where the CPU has NEON: see [`Vector`].
#[derive(Clone, Copy)]
pub(in super::super) struct V(uint8x16_t);

/// Calls intrinsics that need NEON on values that prove it.
macro_rules! neon {
    ($call:expr) => {
        // SAFETY: there is a `V`, so the CPU has NEON; only values are touched.
        unsafe { $call }
    };
}

/// Two intrinsics on vectors of another element width.
macro_rules! pair {
    ($a:expr, $b:expr, $first:ident, $second:ident, $to:ident, $back:ident) => {{
        let (a, b) = (neon!($to($a)), neon!($to($b)));
        let (first, second) = (neon!($first(a, b)), neon!($second(a, b)));
        (V(neon!($back(first))), V(neon!($back(second))))
    }};
}

impl Vector for V {
    const BYTES: usize = 16;
    type Half = V;

    with_features!(neon, compiled());

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: by the contract of the trait.
        V(unsafe { vld1q_u8(from) })
    }

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Self {
        // SAFETY: by the contract of the trait.
        V(unsafe { vdupq_n_u8(byte) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: by the contract of the trait.
        unsafe { vst1q_u8(to, self.0) };
    }

    #[inline(always)]
    fn join(self, other: Self, count: usize) -> Self {
        join_by_shifts(self, other, count)
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: by the contract of the trait.
        unsafe { self.store(to) };
    }

    #[inline(always)]
    fn prefetch<const LEVEL: u32>(at: *const u8) {
        // There is no intrinsic for it.
        let _ = at;
    }

    #[inline(always)]
    fn zip<const BITS: u32>(self, other: Self) -> (Self, Self) {
        let (a, b) = (self.0, other.0);
        match BITS {
            8 => (V(neon!(vzip1q_u8(a, b))), V(neon!(vzip2q_u8(a, b)))),
            16 => {
                pair!(a, b, vzip1q_u16, vzip2q_u16, vreinterpretq_u16_u8, vreinterpretq_u8_u16)
            }
            32 => {
                pair!(a, b, vzip1q_u32, vzip2q_u32, vreinterpretq_u32_u8, vreinterpretq_u8_u32)
            }
            _ => pair!(a, b, vzip1q_u64, vzip2q_u64, vreinterpretq_u64_u8, vreinterpretq_u8_u64),
        }
    }

    #[inline(always)]
    fn unzip<const BITS: u32>(self, other: Self) -> (Self, Self) {
        let (a, b) = (self.0, other.0);
        match BITS {
            8 => (V(neon!(vuzp1q_u8(a, b))), V(neon!(vuzp2q_u8(a, b)))),
            16 => {
                pair!(a, b, vuzp1q_u16, vuzp2q_u16, vreinterpretq_u16_u8, vreinterpretq_u8_u16)
            }
            32 => {
                pair!(a, b, vuzp1q_u32, vuzp2q_u32, vreinterpretq_u32_u8, vreinterpretq_u8_u32)
            }
            _ => pair!(a, b, vuzp1q_u64, vuzp2q_u64, vreinterpretq_u64_u8, vreinterpretq_u8_u64),
        }
    }

    const REACH: usize = 16;

    #[inline(always)]
    fn shuffle(self, order: Self) -> Self {
        V(neon!(vqtbl1q_u8(self.0, order.0)))
    }

    const SELECTS: bool = true;

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        V(neon!(vandq_u8(self.0, other.0)))
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        V(neon!(vorrq_u8(self.0, other.0)))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        V(neon!(veorq_u8(self.0, other.0)))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        V(neon!(vminq_u8(self.0, other.0)))
    }

    #[inline(always)]
    fn shl<const BY: i32>(self) -> Self {
        let words = neon!(vreinterpretq_u16_u8(self.0));
        V(neon!(vreinterpretq_u8_u16(vshlq_u16(words, vdupq_n_s16(const { BY as i16 })))))
    }

    #[inline(always)]
    fn shr<const BY: i32>(self) -> Self {
        let words = neon!(vreinterpretq_u16_u8(self.0));
        V(neon!(vreinterpretq_u8_u16(vshlq_u16(words, vdupq_n_s16(const { -(BY as i16) })))))
    }
}
