//! How much room a shape takes, each number with its unit in its name.

use std::fmt;

use super::{Shape, Tiling};
use crate::error::ShapeError;

/// The sizes of an array and of its image.
///
/// ```
/// let shape: relayout::Shape = "bf16[1000,300]{1,0:T(8,128)(2,1)}".parse()?;
/// let sizes = shape.sizes()?;
/// assert_eq!(sizes.elements, 300_000);
/// assert_eq!(sizes.data_bytes, 600_000);
/// assert_eq!(sizes.image_elements, 384_000);
/// assert_eq!(sizes.image_bytes, 768_000);
/// assert_eq!(sizes.padding_ratio(), 1.28);
/// # Ok::<(), relayout::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sizes {
    /// Elements of the array.
    pub elements: u64,
    /// The width of an element in the image, in bits.
    pub element_bits: u32,
    /// Elements of the image: the product of the bounds after the last tile,
    /// the padding of every level included.
    pub image_elements: u64,
    /// Bytes of the image.
    pub image_bytes: u64,
    /// Bytes that the elements would take without any padding.
    pub data_bytes: u64,
    /// Bytes of the array in host memory, dense, each element in whole bytes.
    pub host_bytes: u64,
}

impl Sizes {
    /// Image elements for each element: 1 where nothing is padded, and for an
    /// array without elements.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio needs no more than 53 bits")]
    pub fn padding_ratio(&self) -> f64 {
        if self.elements == 0 {
            return 1.0;
        }
        self.image_elements as f64 / self.elements as f64
    }
}

/// What a user of a shape may want to know, though nothing is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The bytes of the image are not what XLA reckons for the buffer: a later
    /// tile pads too, there is padding at the tail, or the array is split.
    ArraySizeDiffers {
        /// Bytes of the image.
        image_bytes: u64,
        /// Bytes that XLA reckons: [`Shape::array_size_bytes`].
        array_size_bytes: u64,
    },
    /// XLA reckons 2⁶⁴ bits or more for the buffer.
    ArraySizeTooLarge {
        /// Bytes of the image.
        image_bytes: u64,
    },
    /// The layout has split configs. The image is that of the whole array.
    SplitsIgnored,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::ArraySizeDiffers { image_bytes, array_size_bytes } => write!(
                f,
                "the image has {image_bytes} bytes, but XLA's ArraySize, which counts the first \
                 tile, the tail padding alignment and the largest part of a split, says \
                 {array_size_bytes}"
            ),
            Warning::ArraySizeTooLarge { image_bytes } => write!(
                f,
                "the image has {image_bytes} bytes, but XLA's ArraySize, which counts the first \
                 tile, the tail padding alignment and the largest part of a split, 2^64 bits or \
                 more"
            ),
            Warning::SplitsIgnored => f.write_str(
                "the layout splits the array between memories (SC); \
                 the image is that of the whole array",
            ),
        }
    }
}

impl Shape {
    /// The sizes of this array and of its image.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Unbounded`] where a dimension has no bound,
    /// [`ShapeError::ImageBitsTooMany`] where the image has 2⁶⁴ bits or more.
    pub fn sizes(&self) -> Result<Sizes, ShapeError> {
        let Tiling { elements, image_elements, .. } = self.tiling()?;
        let element_bits = self.element_bits();
        let too_many = ShapeError::ImageBitsTooMany { image_elements, element_bits };
        let bytes = |elements: u64| {
            elements.checked_mul(element_bits.into()).map(|bits| bits.div_ceil(8)).ok_or(too_many)
        };
        // No more than the image, or a byte for each element.
        let host_bytes = elements.checked_mul(self.element_type().host_bytes().into());
        Ok(Sizes {
            elements,
            element_bits,
            image_elements,
            image_bytes: bytes(image_elements)?,
            data_bytes: bytes(elements)?,
            host_bytes: host_bytes.ok_or(too_many)?,
        })
    }

    /// The bytes that XLA reckons for the buffer, as its `ShapeUtil::ArraySize`
    /// computes them: the array padded by the first tile only, then to the tail
    /// padding alignment; of a dimension with a split config, the largest part.
    /// Like XLA, it does neither for an untiled array.
    ///
    /// It is the bytes of the image in nearly every layout that is used.
    ///
    /// ```
    /// use relayout::Shape;
    ///
    /// let shape: Shape = "u8[5]{0:T(4)L(128)}".parse()?;
    /// assert_eq!((shape.sizes()?.image_bytes, shape.array_size_bytes()?), (8, 128));
    /// # Ok::<(), relayout::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ShapeError::Unbounded`] where a dimension has no bound,
    /// [`ShapeError::ArraySizeTooLarge`] where they have 2⁶⁴ bits or more, which
    /// a large alignment or split index can bring about.
    pub fn array_size_bytes(&self) -> Result<u64, ShapeError> {
        let whole = self.physical_bounds()?;
        let mut bounds = whole.clone();
        let mut tail_alignment = 1;
        let first_tile = self.layout().tiles().get(..1).unwrap_or_default();
        if !first_tile.is_empty() {
            // In reverse, for XLA takes the first of several for a dimension.
            for split in self.layout().splits().iter().rev() {
                let dimension = split.dimension();
                bounds[dimension] = split.largest_part(whole[dimension]);
            }
            tail_alignment = self.layout().tail_alignment_elements();
        }
        let tiling = Tiling::new(bounds, first_tile).ok();
        tiling
            .and_then(|tiling| tiling.image_elements.checked_next_multiple_of(tail_alignment))
            .and_then(|elements| elements.checked_mul(self.element_bits().into()))
            .map(|bits| bits.div_ceil(8))
            .ok_or(ShapeError::ArraySizeTooLarge)
    }

    /// What may surprise about this shape's image.
    ///
    /// # Errors
    ///
    /// As [`Shape::sizes`].
    ///
    /// ```
    /// use relayout::{Shape, Warning};
    ///
    /// // Rows are padded to 8 by the first tile and to 9 by the second.
    /// let shape: Shape = "f32[8,128]{1,0:T(8,128)(3,1)}".parse()?;
    /// let differs = Warning::ArraySizeDiffers { image_bytes: 4608, array_size_bytes: 4096 };
    /// assert_eq!(shape.warnings()?, [differs]);
    /// # Ok::<(), relayout::Error>(())
    /// ```
    pub fn warnings(&self) -> Result<Vec<Warning>, ShapeError> {
        let image_bytes = self.sizes()?.image_bytes;
        let mut warnings = Vec::new();
        match self.array_size_bytes() {
            Ok(array_size_bytes) if array_size_bytes == image_bytes => {}
            Ok(array_size_bytes) => {
                warnings.push(Warning::ArraySizeDiffers { image_bytes, array_size_bytes });
            }
            Err(_) => warnings.push(Warning::ArraySizeTooLarge { image_bytes }),
        }
        if !self.layout().splits().is_empty() {
            warnings.push(Warning::SplitsIgnored);
        }
        Ok(warnings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Shape {
        text.parse().unwrap()
    }

    fn sizes(text: &str) -> Sizes {
        shape(text).sizes().unwrap()
    }

    #[test]
    fn array_size_is_xlas() {
        for (text, bytes) in [
            ("f32[8,128]{1,0:T(8,128)(3,1)}", 4096),
            ("u8[5]{0:T(4)L(128)}", 128),
            // XLA's ByteSizeOfElements looks at neither L nor SC.
            ("u8[5]{0:L(128)}", 5),
            ("u8[150,200]{1,0:SC(0:30)}", 150 * 200),
            // The largest of 30 and 120 rows; of 40, 90 and 70 columns.
            ("u8[150,200]{1,0:T(8,1)SC(0:30)}", 120 * 200),
            ("u8[150,200]{1,0:T(8,1)SC(0:30)(1:40,130)}", 120 * 90),
            // A split counts physical dimensions from the major end.
            ("u8[150,200]{0,1:T(8,1)SC(0:30)}", 176 * 150),
            // XLA does not mind a split beyond the bound, nor two of one dimension.
            ("u8[4]{0:T(2)SC(0:512)}", 512),
            ("u8[4]{0:T(2)SC(0:3)(0:2)}", 4),
            ("s4[3]{0:T(5)E(4)}", 3),
        ] {
            assert_eq!(shape(text).array_size_bytes(), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn bits_are_rounded_up_to_bytes_once() {
        let s = sizes("s4[3,3]{1,0:E(4)}");
        assert_eq!((s.element_bits, s.data_bytes, s.image_bytes, s.host_bytes), (4, 5, 5, 9));
        let s = sizes("pred[1,3]{1,0:T(32,128)(32,1)E(1)}");
        assert_eq!((s.data_bytes, s.image_bytes, s.host_bytes), (1, 512, 3));
    }

    #[test]
    fn no_elements_no_bytes() {
        let s = sizes("f32[0,5]{1,0:T(8,128)}");
        assert_eq!((s.elements, s.image_bytes, s.host_bytes), (0, 0, 0));
        assert_eq!(s.padding_ratio(), 1.0);
    }

    /// Each size fails by itself, and only where it does not fit.
    #[test]
    fn limits_are_exact() {
        let e = ShapeError::ImageBitsTooMany { image_elements: 1 << 61, element_bits: 8 };
        assert_eq!(shape("u8[2305843009213693952]").sizes(), Err(e));
        assert_eq!(sizes("u8[2305843009213693951]").image_bytes, (1 << 61) - 1);
        // 2^62 bits of image, 2^65 of host memory.
        let s = sizes("s1[4611686018427387904]{0:E(1)}");
        assert_eq!((s.image_bytes, s.host_bytes), (1 << 59, 1 << 62));

        let tail = shape("f32[1]{0:T(1)L(9223372036854775807)}");
        assert_eq!(tail.sizes().unwrap().image_bytes, 4);
        assert_eq!(tail.array_size_bytes(), Err(ShapeError::ArraySizeTooLarge));
        assert_eq!(tail.warnings(), Ok(vec![Warning::ArraySizeTooLarge { image_bytes: 4 }]));
        for text in
            ["u8[4]{0:T(2)SC(0:9223372036854775807)}", "u8[4,4]{1,0:T(2)SC(0:9223372036854775806)}"]
        {
            let split = shape(text);
            assert_eq!(split.array_size_bytes(), Err(ShapeError::ArraySizeTooLarge), "{text}");
            let image_bytes = split.sizes().unwrap().image_bytes;
            let too_large = Warning::ArraySizeTooLarge { image_bytes };
            assert_eq!(split.warnings(), Ok(vec![too_large, Warning::SplitsIgnored]), "{text}");
        }
    }
}
