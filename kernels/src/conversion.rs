//! Numbers of one type as numbers of another one.
//!
//! Each conversion is a function without branches on its bits, so that compilers make
//! vector instructions of a loop over it.

use crate::element::ElementType;

/// A conversion between element types.
///
/// Rounding is that of the usual floating-point environment, which Rust takes for
/// granted: a thread that was told to round otherwise, or to drop subnormal numbers, gets
/// what that makes of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Conversion {
    /// `f32` to `bf16`, to the nearest, ties to even. What is not a number stays so.
    F32ToBf16,
    /// `bf16` to `f32`, exactly.
    Bf16ToF32,
    /// `f32` to `f16`, to the nearest, ties to even; what is too large is infinite.
    F32ToF16,
    /// `f16` to `f32`, exactly.
    F16ToF32,
    /// `f64` to `f32`, to the nearest, ties to even; what is too large is infinite.
    F64ToF32,
    /// What `f64` to `f32` leaves: the nearest `f32` to the difference. With the former
    /// it is the pair that TPUs use for a `f64`. 0 where the former is not finite.
    F64ToF32Rest,
    /// `f32` to `f64`, exactly.
    F32ToF64,
    /// `f32` to `f8e4m3fn`, to the nearest, ties to even; what is too large, infinity
    /// too, is the largest number of its sign, ±448.
    F32ToF8e4m3fn,
    /// `f32` to `f8e5m2`, to the nearest, ties to even; what is too large, infinity
    /// too, is the largest number of its sign, ±57344.
    F32ToF8e5m2,
    /// `s32` to `s8`; what is too large or too small is 127 or -128.
    S32ToS8,
    /// `s8` to `s32`.
    S8ToS32,
}

impl Conversion {
    /// The conversion from one type to another one that rounds to the nearest, if there
    /// is one.
    #[must_use]
    pub fn between(from: ElementType, to: ElementType) -> Option<Conversion> {
        use ElementType as E;
        Some(match (from, to) {
            (E::F32, E::Bf16) => Conversion::F32ToBf16,
            (E::Bf16, E::F32) => Conversion::Bf16ToF32,
            (E::F32, E::F16) => Conversion::F32ToF16,
            (E::F16, E::F32) => Conversion::F16ToF32,
            (E::F64, E::F32) => Conversion::F64ToF32,
            (E::F32, E::F64) => Conversion::F32ToF64,
            (E::F32, E::F8e4m3fn) => Conversion::F32ToF8e4m3fn,
            (E::F32, E::F8e5m2) => Conversion::F32ToF8e5m2,
            (E::S32, E::S8) => Conversion::S32ToS8,
            (E::S8, E::S32) => Conversion::S8ToS32,
            _ => return None,
        })
    }

    /// The widths of an element before and after it, in bytes.
    #[doc(hidden)]
    pub fn widths(self) -> (usize, usize) {
        match self {
            Conversion::F32ToBf16 | Conversion::F32ToF16 => (4, 2),
            Conversion::Bf16ToF32 | Conversion::F16ToF32 => (2, 4),
            Conversion::F64ToF32 | Conversion::F64ToF32Rest => (8, 4),
            Conversion::F32ToF64 => (4, 8),
            Conversion::F32ToF8e4m3fn | Conversion::F32ToF8e5m2 | Conversion::S32ToS8 => (4, 1),
            Conversion::S8ToS32 => (1, 4),
        }
    }
}

/// A number anywhere in memory.
#[derive(Clone, Copy)]
#[repr(C, packed)]
pub(crate) struct Unaligned<T>(pub(crate) T);

/// A number that shares a word of 32 bits with others.
pub(crate) trait PartOfWord: Into<u32> {
    /// That in the low bits of a word.
    fn of_word(word: u32) -> Self;
}

impl PartOfWord for u16 {
    #[inline(always)]
    fn of_word(word: u32) -> Self {
        low_half(word)
    }
}

impl PartOfWord for u8 {
    #[inline(always)]
    fn of_word(word: u32) -> Self {
        low_byte(word)
    }
}

/// A conversion of numbers, which are little-endian in memory.
pub(crate) trait Convert {
    const CONVERSION: Conversion;

    type From: bytemuck::Pod;
    type To: bytemuck::Pod;

    fn convert(from: Self::From) -> Self::To;
}

macro_rules! conversions {
    ($($name:ident: $from:ty => $to:ty, |$x:ident| $body:expr;)*) => {
        $(#[doc = concat!("[`Conversion::", stringify!($name), "`], on bits.")]
        pub(crate) struct $name;

        impl Convert for $name {
            const CONVERSION: Conversion = Conversion::$name;

            type From = $from;
            type To = $to;

            #[inline(always)]
            fn convert(from: $from) -> $to {
                let $x = <$from>::from_le(from);
                let to: $to = $body;
                to.to_le()
            }
        })*

        /// Converts one element.
        ///
        /// # Panics
        ///
        /// The slices have other lengths than the element has before and after it.
        pub fn convert_element(conversion: Conversion, from: &[u8], to: &mut [u8]) {
            match conversion {
                $(Conversion::$name => {
                    let value = $name::convert(bytemuck::pod_read_unaligned(from));
                    to.copy_from_slice(bytemuck::bytes_of(&value));
                })*
            }
        }
    };
}

conversions! {
    F32ToBf16: u32 => u16, |x| high_half(if is_nan(x) {
        // Quiet, with as much of what it says as there is room for.
        x | 0x0040_0000
    } else {
        x + 0x7fff + (x >> 16 & 1)
    });
    Bf16ToF32: u16 => u32, |x| u32::from(x) << 16;
    F32ToF16: u32 => u16, |x| {
        let (sign, magnitude) = (high_half(x) & 0x8000, x & 0x7fff_ffff);
        let number = to_small::<10, 15>(magnitude).min(0x7c00);
        let nan = 0x7e00 | magnitude >> 13 & 0x3ff;
        sign | low_half(if is_nan(x) { nan } else { number })
    };
    F16ToF32: u16 => u32, |x| {
        let (sign, magnitude) = (u32::from(x & 0x8000) << 16, u32::from(x & 0x7fff) << 13);
        // The exponent of f16 counts from 15, that of f32 from 127.
        const MORE: u32 = (127 - 15) << 23;
        let number = magnitude + MORE;
        // Below the least exponent there is no leading one: it is taken away again.
        let small = f32::from_bits(number + (1 << 23)) - f32::from_bits(MORE + (1 << 23));
        let infinite = number + MORE;
        sign | match magnitude >> 23 {
            0 => small.to_bits(),
            31 => infinite | if magnitude & 0x007f_ffff == 0 { 0 } else { 0x0040_0000 },
            _ => number,
        }
    };
    F64ToF32: u64 => u32, |x| nearest(f64::from_bits(x)).to_bits();
    F64ToF32Rest: u64 => u32, |x| {
        let x = f64::from_bits(x);
        let high = nearest(x);
        nearest(if high.is_finite() { x - f64::from(high) } else { 0.0 }).to_bits()
    };
    F32ToF64: u32 => u64, |x| f64::from(f32::from_bits(x)).to_bits();
    F32ToF8e4m3fn: u32 => u8, |x| {
        let number = to_small::<3, 7>(x & 0x7fff_ffff).min(0x7e);
        low_byte(x >> 24 & 0x80 | if is_nan(x) { 0x7f } else { number })
    };
    F32ToF8e5m2: u32 => u8, |x| {
        let number = to_small::<2, 15>(x & 0x7fff_ffff).min(0x7b);
        low_byte(x >> 24 & 0x80 | if is_nan(x) { 0x7e } else { number })
    };
    S32ToS8: u32 => u8, |x| low_byte(x.cast_signed().clamp(-128, 127).cast_unsigned());
    S8ToS32: u8 => u32, |x| i32::from(x.cast_signed()).cast_unsigned();
}

#[inline(always)]
fn is_nan(bits: u32) -> bool {
    f32::from_bits(bits).is_nan()
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "the other half is left behind")]
fn high_half(x: u32) -> u16 {
    (x >> 16) as u16
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "the other half is left behind")]
fn low_half(x: u32) -> u16 {
    x as u16
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "the other bytes are left behind")]
fn low_byte(x: u32) -> u8 {
    x as u8
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "it is to the nearest, ties to even")]
fn nearest(x: f64) -> f32 {
    x as f32
}

/// The bits of the number with `MANTISSA` bits behind the point and an exponent that
/// counts from `BIAS` that is nearest to a positive `f32`, ties to even; as if larger
/// exponents than there are were there.
#[inline(always)]
fn to_small<const MANTISSA: u32, const BIAS: u32>(magnitude: u32) -> u32 {
    let dropped = 23 - MANTISSA;
    // Rounded by adding half of what is dropped, or just less if that is even.
    let half = (1 << (dropped - 1)) - 1;
    let rounded = magnitude + half + (magnitude >> dropped & 1);
    let normal = (rounded >> dropped).wrapping_sub((127 - BIAS) << MANTISSA);
    // Smaller ones have a fixed point. An addition to the number whose last bit is the
    // last one before that point rounds them there.
    let point = (127 - BIAS + 1 + dropped) << 23;
    let sum = f32::from_bits(magnitude) + f32::from_bits(point);
    let small = sum.to_bits().wrapping_sub(point);
    if magnitude < (127 - BIAS + 1) << 23 { small } else { normal }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All finite numbers of a small type that are not negative, by their bits.
    fn numbers(mantissa: u32, bias: i32, largest: u32) -> Vec<f64> {
        (0..=largest)
            .map(|bits| {
                let (exponent, m) = ((bits >> mantissa) as i32, bits & ((1 << mantissa) - 1));
                let one = if exponent == 0 { 0.0 } else { 1.0 };
                let fraction = one + f64::from(m) / f64::from(1 << mantissa);
                fraction * 2.0_f64.powi(exponent.max(1) - bias)
            })
            .collect()
    }

    /// Holds a conversion from f32 against the nearest of all numbers.
    fn check(
        convert: impl Fn(u32) -> u32,
        sign: u32,
        mantissa: u32,
        bias: i32,
        largest: u32,
        over: u32,
    ) {
        let all = numbers(mantissa, bias, largest);
        let mut bits: Vec<u32> =
            (0..1 << 16).map(|i: u32| i.wrapping_mul(0x9e37_79b9) >> 1).collect();
        for (i, &x) in all.iter().enumerate() {
            // It, what lies between it and the next one, and what is next to these.
            let next = all.get(i + 1).copied().unwrap_or(2.0 * x);
            for x in [x, f64::midpoint(x, next)] {
                let near = (x as f32).to_bits();
                bits.extend([near, near + 1, near.saturating_sub(1)]);
            }
        }
        bits.extend([0, 1, 0x7f80_0000, 0x7f7f_ffff, 0x0080_0000, 0x007f_ffff]);
        for bits in bits.into_iter().filter(|&bits| bits <= 0x7f80_0000) {
            let x = f64::from(f32::from_bits(bits));
            let i = all.partition_point(|&y| y < x);
            // Half a step beyond the largest, numbers are too large.
            let step = all[all.len() - 1] - all[all.len() - 2];
            let too_large = all[all.len() - 1] + step / 2.0;
            let expected = if i == 0 {
                0
            } else if x >= too_large {
                over
            } else if i == all.len() {
                largest
            } else {
                let (below, above) = (x - all[i - 1], all[i] - x);
                let even = if i % 2 == 0 { i } else { i - 1 };
                let nearest = match below.partial_cmp(&above).unwrap() {
                    std::cmp::Ordering::Less => i - 1,
                    std::cmp::Ordering::Greater => i,
                    std::cmp::Ordering::Equal => even,
                };
                nearest as u32
            };
            assert_eq!(convert(bits), expected, "{x:e} ({bits:#x})");
            assert_eq!(convert(bits | 1 << 31), expected | sign, "-{x:e}");
        }
    }

    #[test]
    fn numbers_go_to_the_nearest() {
        check(|x| F32ToF16::convert(x).into(), 0x8000, 10, 15, 0x7bff, 0x7c00);
        check(|x| F32ToF8e4m3fn::convert(x).into(), 0x80, 3, 7, 0x7e, 0x7e);
        check(|x| F32ToF8e5m2::convert(x).into(), 0x80, 2, 15, 0x7b, 0x7b);
        check(|x| F32ToBf16::convert(x).into(), 0x8000, 7, 127, 0x7f7f, 0x7f80);
    }

    #[test]
    fn what_is_no_number_stays_so() {
        for nan in [0x7f80_0001, 0x7fc0_0000, 0x7fff_ffff, 0xff80_0001, 0xffff_ffff] {
            let sign = nan >> 31;
            let bf16 = F32ToBf16::convert(nan);
            assert!(bf16 & 0x7fff > 0x7f80 && u32::from(bf16 >> 15) == sign);
            let f16 = F32ToF16::convert(nan);
            assert!(f16 & 0x7fff > 0x7c00 && u32::from(f16 >> 15) == sign);
            assert_eq!(F32ToF8e4m3fn::convert(nan) & 0x7f, 0x7f);
            assert!(F32ToF8e5m2::convert(nan) & 0x7f > 0x7c);
            assert!(f32::from_bits(F64ToF32::convert(f64::NAN.to_bits())).is_nan());
        }
    }

    #[test]
    fn all_small_numbers_come_back() {
        let f16 = numbers(10, 15, 0x7bff);
        for bits in 0..=u16::MAX {
            let wide = F16ToF32::convert(bits);
            let x = f64::from(f32::from_bits(wide));
            match bits & 0x7fff {
                0x7c00 => assert!(x.is_infinite()),
                0x7c01.. => assert!(x.is_nan()),
                i => {
                    let expected = f16[usize::from(i)];
                    assert_eq!(x.abs(), expected);
                    assert_eq!(F32ToF16::convert(wide), bits);
                }
            }
            assert_eq!(x.is_sign_negative(), bits >> 15 == 1);
            if !f32::from_bits(Bf16ToF32::convert(bits)).is_nan() {
                assert_eq!(F32ToBf16::convert(Bf16ToF32::convert(bits)), bits);
            }
        }
    }

    #[test]
    fn a_pair_of_f32_is_nearly_a_f64() {
        for x in [0.1, -std::f64::consts::PI, 1e30, 1e-30, 16_777_217.0, 0.0, -0.0] {
            let high = f32::from_bits(F64ToF32::convert(f64::to_bits(x)));
            let rest = f32::from_bits(F64ToF32Rest::convert(f64::to_bits(x)));
            let sum = f64::from(high) + f64::from(rest);
            assert!((sum - x).abs() <= x.abs() * 2.0_f64.powi(-47), "{x}: {high} {rest}");
        }
        for x in [1e300, f64::INFINITY, f64::NAN] {
            assert_eq!(F64ToF32Rest::convert(f64::to_bits(x)), 0);
        }
    }

    #[test]
    fn integers_are_cut_off() {
        for (x, expected) in [
            (0, 0),
            (127, 127),
            (128, 127),
            (i32::MAX, 127),
            (-128, -128),
            (-129, -128),
            (i32::MIN, -128),
            (-1, -1),
        ] {
            assert_eq!(S32ToS8::convert(i32::cast_unsigned(x)).cast_signed(), expected);
        }
        assert_eq!(S8ToS32::convert(0x80).cast_signed(), -128);
    }
}
