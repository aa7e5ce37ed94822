//! The element types of XLA arrays: their names and their widths.
//!
//! Layouts move bits and never look at values, so all that is known of a type
//! here is what its elements are called, how wide they are, and whether they
//! are integers (only those may index).

use std::fmt;
use std::str::FromStr;

/// Declares the types once: variant, XLA's name, bits of one value, what it is.
macro_rules! element_types {
    ($($variant:ident $name:literal $bits:literal $doc:literal;)*) => {
        /// The type of an array's elements, under XLA's names.
        ///
        /// ```
        /// use relayout::ElementType;
        ///
        /// let t: ElementType = "bf16".parse()?;
        /// assert_eq!(t, ElementType::Bf16);
        /// assert_eq!(t.bits(), 16);
        /// // Documents write types in capitals too; printing never does.
        /// assert_eq!("F8E4M3FN".parse::<ElementType>()?.to_string(), "f8e4m3fn");
        /// # Ok::<(), relayout::UnknownElementType>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum ElementType {
            $(#[doc = $doc] $variant,)*
        }

        impl ElementType {
            /// Every element type, in the order of their kinds and widths.
            pub const ALL: &'static [ElementType] = &[$(ElementType::$variant,)*];

            /// The name that XLA prints, such as `bf16`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(ElementType::$variant => $name,)*
                }
            }

            /// The width of one value in bits: 1 for `pred`, 4 for `s4`, 128 for `c128`.
            ///
            /// The space an element takes may be more: see
            /// [`host_bytes`](Self::host_bytes) and
            /// `Shape::element_bits`.
            #[must_use]
            pub const fn bits(self) -> u32 {
                match self {
                    $(ElementType::$variant => $bits,)*
                }
            }
        }
    };
}

element_types! {
    Pred "pred" 1 "A truth value.";
    S1 "s1" 1 "A signed integer of 1 bit.";
    S2 "s2" 2 "A signed integer of 2 bits.";
    S4 "s4" 4 "A signed integer of 4 bits.";
    S8 "s8" 8 "A signed integer of 8 bits.";
    S16 "s16" 16 "A signed integer of 16 bits.";
    S32 "s32" 32 "A signed integer of 32 bits.";
    S64 "s64" 64 "A signed integer of 64 bits.";
    U1 "u1" 1 "An unsigned integer of 1 bit.";
    U2 "u2" 2 "An unsigned integer of 2 bits.";
    U4 "u4" 4 "An unsigned integer of 4 bits.";
    U8 "u8" 8 "An unsigned integer of 8 bits.";
    U16 "u16" 16 "An unsigned integer of 16 bits.";
    U32 "u32" 32 "An unsigned integer of 32 bits.";
    U64 "u64" 64 "An unsigned integer of 64 bits.";
    F4e2m1fn "f4e2m1fn" 4 "A float of 4 bits: 2 of exponent, 1 of mantissa, finite.";
    F6e2m3fn "f6e2m3fn" 6 "A float of 6 bits: 2 of exponent, 3 of mantissa, finite.";
    F6e3m2fn "f6e3m2fn" 6 "A float of 6 bits: 3 of exponent, 2 of mantissa, finite.";
    F8e3m4 "f8e3m4" 8 "A float of 8 bits: 3 of exponent, 4 of mantissa.";
    F8e4m3 "f8e4m3" 8 "A float of 8 bits: 4 of exponent, 3 of mantissa.";
    F8e4m3fn "f8e4m3fn" 8 "A float of 8 bits: 4 of exponent, 3 of mantissa, no infinity.";
    F8e4m3b11fnuz "f8e4m3b11fnuz" 8 "A float of 8 bits: 4 of exponent with bias 11, 3 of mantissa, no infinity, one zero.";
    F8e4m3fnuz "f8e4m3fnuz" 8 "A float of 8 bits: 4 of exponent, 3 of mantissa, no infinity, one zero.";
    F8e5m2 "f8e5m2" 8 "A float of 8 bits: 5 of exponent, 2 of mantissa.";
    F8e5m2fnuz "f8e5m2fnuz" 8 "A float of 8 bits: 5 of exponent, 2 of mantissa, no infinity, one zero.";
    F8e8m0fnu "f8e8m0fnu" 8 "A scale of 8 bits: all exponent, no sign.";
    F16 "f16" 16 "A float of 16 bits, IEEE 754.";
    Bf16 "bf16" 16 "A float of 16 bits: the upper half of an `f32`.";
    F32 "f32" 32 "A float of 32 bits, IEEE 754.";
    F64 "f64" 64 "A float of 64 bits, IEEE 754.";
    C64 "c64" 64 "A complex number of two `f32`.";
    C128 "c128" 128 "A complex number of two `f64`.";
}

impl ElementType {
    /// The whole bytes that one element takes in host memory: at least one.
    ///
    /// An element narrower than a byte stands in the low bits of a byte of its
    /// own.
    #[must_use]
    pub const fn host_bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether this is a signed or unsigned integer type (`pred` is neither).
    #[must_use]
    pub const fn is_integer(self) -> bool {
        self.is_signed_integer()
            || matches!(
                self,
                ElementType::U1
                    | ElementType::U2
                    | ElementType::U4
                    | ElementType::U8
                    | ElementType::U16
                    | ElementType::U32
                    | ElementType::U64
            )
    }

    /// Whether this is a signed integer type.
    #[must_use]
    pub const fn is_signed_integer(self) -> bool {
        matches!(
            self,
            ElementType::S1
                | ElementType::S2
                | ElementType::S4
                | ElementType::S8
                | ElementType::S16
                | ElementType::S32
                | ElementType::S64
        )
    }

    /// The widths in bits that an element of this type may have in an image,
    /// which is what a layout may say with `E(n)`.
    ///
    /// From a byte up that is the type's own width. A narrower type may stand
    /// in any power of two of bits from its width to a byte, and `pred` in
    /// one bit or a byte.
    ///
    /// ```
    /// use relayout::ElementType;
    ///
    /// assert_eq!(ElementType::S2.image_bits().collect::<Vec<_>>(), [2, 4, 8]);
    /// assert_eq!(ElementType::Pred.image_bits().collect::<Vec<_>>(), [1, 8]);
    /// assert_eq!(ElementType::F32.image_bits().collect::<Vec<_>>(), [32]);
    /// ```
    pub fn image_bits(self) -> impl Iterator<Item = u32> {
        [1, 2, 4, 8, 16, 32, 64, 128].into_iter().filter(move |&n| match self.bits() {
            _ if self == ElementType::Pred => n == 1 || n == 8,
            bits if bits < 8 => bits <= n && n <= 8,
            bits => n == bits,
        })
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that is no element type of XLA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownElementType {
    text: String,
}

impl UnknownElementType {
    /// The text, or the start of a long one.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for UnknownElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not an element type; examples are f32, bf16, s8, u4, pred, c64, f8e4m3fn",
            self.text
        )
    }
}

impl std::error::Error for UnknownElementType {}

impl FromStr for ElementType {
    type Err = UnknownElementType;

    /// Reads a type's name, in capitals or not.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        ElementType::ALL
            .iter()
            .copied()
            .find(|t| t.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownElementType { text: crate::excerpt::excerpt(text) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_read_back() {
        for &t in ElementType::ALL {
            assert_eq!(t.name().parse(), Ok(t));
            assert_eq!(t.name().to_uppercase().parse(), Ok(t));
        }
        for text in ["", "f33", "f3", "bf16 ", "s128", "token"] {
            let e = text.parse::<ElementType>().unwrap_err();
            assert_eq!(e.text(), text);
        }
    }

    #[test]
    fn every_type_has_a_whole_byte_width_among_its_image_widths() {
        for &t in ElementType::ALL {
            assert!(t.image_bits().any(|n| n == 8 * t.host_bytes()), "{t}");
        }
        assert_eq!(ElementType::F6e2m3fn.image_bits().collect::<Vec<_>>(), [8]);
        assert_eq!(ElementType::S4.image_bits().collect::<Vec<_>>(), [4, 8]);
    }
}
