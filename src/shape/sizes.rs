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
    /// Bytes that XLA reckons for the buffer (`ShapeUtil::ArraySize`): the
    /// array padded by the first tile only, then to the tail padding
    /// alignment. Like XLA, an untiled array is not padded at its tail. It is
    /// the bytes of the image in nearly every layout that is used.
    pub array_size_bytes: u64,
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
    /// tile pads too, or there is padding at the tail.
    ArraySizeDiffers {
        /// Bytes of the image.
        image_bytes: u64,
        /// Bytes that XLA reckons.
        array_size_bytes: u64,
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
                 tile and the tail padding alignment only, says {array_size_bytes}"
            ),
            Warning::SplitsIgnored => f.write_str(
                "the layout splits the array between memories (SC); \
                 the image described is that of the whole array",
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
    /// [`ShapeError::ImageBitsTooMany`] where the image, or what XLA reckons
    /// for it, has 2⁶⁴ bits or more.
    pub fn sizes(&self) -> Result<Sizes, ShapeError> {
        let tiling = self.tiling()?;
        let element_bits = self.element_bits();
        let (elements, image_elements) = (tiling.elements, tiling.image_elements);
        let array_size_elements = self.array_size_elements(tiling)?;

        let bytes = |elements: u64, bits: u32| {
            elements.checked_mul(bits.into()).map(|bits| bits.div_ceil(8)).ok_or(
                ShapeError::ImageBitsTooMany { image_elements: elements, element_bits: bits },
            )
        };
        Ok(Sizes {
            elements,
            element_bits,
            image_elements,
            image_bytes: bytes(image_elements, element_bits)?,
            array_size_bytes: bytes(array_size_elements, element_bits)?,
            data_bytes: bytes(elements, element_bits)?,
            host_bytes: bytes(elements, 8 * self.element_type().host_bytes())?,
        })
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
        let Sizes { image_bytes, array_size_bytes, .. } = self.sizes()?;
        let mut warnings = Vec::new();
        if image_bytes != array_size_bytes {
            warnings.push(Warning::ArraySizeDiffers { image_bytes, array_size_bytes });
        }
        if !self.layout().splits().is_empty() {
            warnings.push(Warning::SplitsIgnored);
        }
        Ok(warnings)
    }

    fn array_size_elements(&self, tiling: Tiling) -> Result<u64, ShapeError> {
        let Some(first) = self.layout().tiles().first() else {
            return Ok(tiling.elements);
        };
        Tiling::new(tiling.physical_bounds, std::slice::from_ref(first))?
            .image_elements
            .checked_next_multiple_of(self.layout().tail_alignment_elements())
            .ok_or(ShapeError::ImageTooLarge { tile: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> Sizes {
        text.parse::<Shape>().unwrap().sizes().unwrap()
    }

    #[test]
    fn tail_padding_alignment_counts_for_array_size_alone() {
        let s = sizes("u8[5]{0:T(4)L(128)}");
        assert_eq!((s.image_bytes, s.array_size_bytes), (8, 128));
        // XLA's ByteSizeOfElements does not look at L.
        let s = sizes("u8[5]{0:L(128)}");
        assert_eq!((s.image_bytes, s.array_size_bytes), (5, 5));
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
        assert_eq!((s.elements, s.image_bytes, s.array_size_bytes), (0, 0, 0));
        assert_eq!(s.padding_ratio(), 1.0);
    }

    #[test]
    fn more_bits_than_fit_are_an_error() {
        let shape: Shape = "f32[2305843009213693952]".parse().unwrap();
        let elements = 1 << 61;
        let e = ShapeError::ImageBitsTooMany { image_elements: elements, element_bits: 32 };
        assert_eq!(shape.sizes(), Err(e));
        assert_eq!(sizes("u8[2305843009213693951]").image_bytes, (1 << 61) - 1);
    }
}
