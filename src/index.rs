//! The scalar index math of the tiled-layout document, in both directions.
//!
//! [`linear_index`] and [`linear_index_with_tile`] are the document's
//! functions under its names. [`ImageMap`] is what they come to for a whole
//! [`Shape`]: physical order, repeated tiles, combined
//! dimensions, tiles shorter or longer than the rank. It tells for a logical
//! index the image element where it stands, and for an image element the
//! logical index or that it is padding.
//!
//! Everything here is checked arithmetic, one element at a time. Nothing is
//! fast; all else is held against it.
//!
//! # The document's worked examples
//!
//! ```
//! use relayout::{Shape, index::{ImageMap, linear_index_with_tile}};
//!
//! // Figure 1: element (2,3) of F32[3,5] in tiles of 2 by 2.
//! assert_eq!(linear_index_with_tile(&[2, 3], &[3, 5], &[2, 2])?, 17);
//! let figure_1 = ImageMap::new(&"F32[3,5]{1,0:T(2,2)}".parse::<Shape>()?)?;
//! assert_eq!(figure_1.image_element(&[2, 3])?, 17);
//!
//! // Figure 2: 4 by 8 in tiles of 2 by 4, then of 2 by 1.
//! let figure_2 = ImageMap::new(&"bf16[4,8]{1,0:T(2,4)(2,1)}".parse::<Shape>()?)?;
//! let places = [
//!     [0, 2, 4, 6, 8, 10, 12, 14],
//!     [1, 3, 5, 7, 9, 11, 13, 15],
//!     [16, 18, 20, 22, 24, 26, 28, 30],
//!     [17, 19, 21, 23, 25, 27, 29, 31],
//! ];
//! for (row, places) in (0..).zip(places) {
//!     for (column, place) in (0..).zip(places) {
//!         assert_eq!(figure_2.image_element(&[row, column])?, place);
//!     }
//! }
//!
//! // A second tile that reaches across the first: element (6,5) of 8 by 8.
//! let across = ImageMap::new(&"f32[8,8]{1,0:T(2,4)(2,1,1,1)}".parse::<Shape>()?)?;
//! assert_eq!(across.image_element(&[6, 5])?, 51);
//!
//! // Combined dimensions: F32[2,7,8,11,10] becomes F32[112,110].
//! let combined: Shape = "F32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}".parse()?;
//! let two: Shape = "F32[112,110]{1,0:T(2,3)}".parse()?;
//! let (combined, two) = (ImageMap::new(&combined)?, ImageMap::new(&two)?);
//! assert_eq!(combined.image_elements(), two.image_elements());
//! for element in 0..combined.elements() {
//!     assert_eq!(
//!         combined.image_element(&combined.index_of(element)?)?,
//!         two.image_element(&two.index_of(element)?)?,
//!     );
//! }
//! # Ok::<(), relayout::Error>(())
//! ```

use crate::error::{IndexError, ShapeError};
use crate::shape::{Level, Shape, Tiling};

/// The position of element `e` in a dense row-major array with bounds `d`,
/// both from major to minor, in elements.
///
/// ```text
/// linear_index(e, d) = eₙ·dₙ₋₁…d₁ + … + e₂·d₁ + e₁
/// ```
///
/// Source: tiled-layout document, "Linear index formulas for tiling given a
/// shape and a tile".
///
/// # Errors
///
/// `e` and `d` differ in length, an entry of `e` is not below its bound, or
/// the position does not fit in 64 bits.
///
/// ```
/// use relayout::index::linear_index;
///
/// assert_eq!(linear_index(&[1, 1, 0, 1], &[2, 3, 2, 2])?, 17);
/// # Ok::<(), relayout::IndexError>(())
/// ```
pub fn linear_index(e: &[u64], d: &[u64]) -> Result<u64, IndexError> {
    check(e, d)?;
    fold(e, d)
}

/// The position of element `e` of an array with bounds `d` that is tiled by
/// `t`, all from major to minor, in elements.
///
/// ```text
/// linear_index_with_tile(e, d, t) = linear_index((⌊e/t⌋, e mod t), (⌈d/t⌉, t))
/// ```
///
/// A tile shorter than the rank acts on the minormost dimensions. Source:
/// tiled-layout document, "Linear index formulas for tiling given a shape and
/// a tile", where the tile has as many entries as the array has dimensions.
///
/// # Errors
///
/// As [`linear_index`], and `t` is longer than `d` or has a 0.
///
/// ```
/// use relayout::index::linear_index_with_tile;
///
/// // Element (2,3) of Figure 1.
/// assert_eq!(linear_index_with_tile(&[2, 3], &[3, 5], &[2, 2])?, 17);
/// # Ok::<(), relayout::IndexError>(())
/// ```
pub fn linear_index_with_tile(e: &[u64], d: &[u64], t: &[u64]) -> Result<u64, IndexError> {
    check(e, d)?;
    let too_long = IndexError::TileTooLong { entries: t.len(), rank: d.len() };
    let untiled = d.len().checked_sub(t.len()).ok_or(too_long)?;
    if let Some(entry) = t.iter().position(|&t| t == 0) {
        return Err(IndexError::ZeroTileBound { entry });
    }

    let mut index = e[..untiled].to_vec();
    let mut bounds = d[..untiled].to_vec();
    index.extend(e[untiled..].iter().zip(t).map(|(e, t)| e / t));
    bounds.extend(d[untiled..].iter().zip(t).map(|(d, t)| d.div_ceil(*t)));
    index.extend(e[untiled..].iter().zip(t).map(|(e, t)| e % t));
    bounds.extend(t);
    fold(&index, &bounds)
}

/// Checks that `e` is an index into an array with bounds `d`.
fn check(e: &[u64], d: &[u64]) -> Result<(), IndexError> {
    if e.len() != d.len() {
        return Err(IndexError::Rank { entries: e.len(), rank: d.len() });
    }
    match e.iter().zip(d).position(|(e, d)| e >= d) {
        None => Ok(()),
        Some(i) => Err(IndexError::OutOfBounds { dimension: i, index: e[i], bound: d[i] }),
    }
}

/// The position of an index that is within its bounds.
fn fold(e: &[u64], d: &[u64]) -> Result<u64, IndexError> {
    e.iter()
        .zip(d)
        .try_fold(0_u64, |position, (&e, &d)| position.checked_mul(d)?.checked_add(e))
        .ok_or(IndexError::Overflow)
}

/// The index at `position` in bounds `d`, appended to `index`. The inverse of
/// [`fold`]; a position beyond the bounds wraps around.
fn unfold(mut position: u64, d: impl DoubleEndedIterator<Item = u64>, index: &mut Vec<u64>) {
    let start = index.len();
    for d in d.rev() {
        // A bound of 0 has no positions; the callers never ask for one.
        index.push(position.checked_rem(d).unwrap_or(0));
        position = position.checked_div(d).unwrap_or(0);
    }
    index[start..].reverse();
}

/// Where each element of a shape stands in its image, and what stands at each
/// image element.
///
/// ```
/// use relayout::{Shape, index::ImageMap};
///
/// let shape: Shape = "f32[3,5]{0,1:T(2,2)}".parse()?;
/// let map = ImageMap::new(&shape)?;
/// assert_eq!((map.elements(), map.image_elements()), (15, 24));
/// assert_eq!(map.image_element(&[2, 3])?, 14);
/// assert_eq!(map.logical_index(14)?, Some(vec![2, 3]));
/// assert_eq!(map.logical_index(15)?, None);
/// # Ok::<(), relayout::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ImageMap {
    tiling: Tiling,
    bounds: Vec<u64>,
    /// The logical dimension of each physical one, major to minor.
    major_to_minor: Vec<usize>,
    element_bits: u32,
}

impl ImageMap {
    /// The map of a shape.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Unbounded`] where a dimension has no bound,
    /// [`ShapeError::ImageBitsTooMany`] where the image has 2⁶⁴ bits or more.
    pub fn new(shape: &Shape) -> Result<Self, ShapeError> {
        // Sizes are to be had only where all bits of the image can be counted.
        shape.sizes()?;
        Ok(ImageMap {
            tiling: shape.tiling()?,
            bounds: shape.bounds()?,
            major_to_minor: shape.layout().major_to_minor().collect(),
            element_bits: shape.element_bits(),
        })
    }

    /// Elements of the array.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.tiling.elements
    }

    /// Elements of the image, padding included.
    #[must_use]
    pub fn image_elements(&self) -> u64 {
        self.tiling.image_elements
    }

    /// The image element at which the array element `index` stands.
    ///
    /// # Errors
    ///
    /// [`IndexError::Rank`] or [`IndexError::OutOfBounds`].
    pub fn image_element(&self, index: &[u64]) -> Result<u64, IndexError> {
        self.image_element_in(index, &mut Vec::new())
    }

    /// The same, with memory for the index in the image.
    fn image_element_in(&self, index: &[u64], e: &mut Vec<u64>) -> Result<u64, IndexError> {
        check(index, &self.bounds)?;
        e.clear();
        e.extend(self.major_to_minor.iter().map(|&i| index[i]));
        for level in &self.tiling.levels {
            level.split(e)?;
        }
        fold(e, &self.tiling.image_bounds)
    }

    /// The first bit of an array element in the image, counted from the least
    /// significant bit of the first byte.
    ///
    /// Image element k takes the bits from k·w up to (k+1)·w, w being
    /// [`Shape::element_bits`].
    ///
    /// # Errors
    ///
    /// [`IndexError::Rank`] or [`IndexError::OutOfBounds`].
    ///
    /// ```
    /// use relayout::{Shape, index::ImageMap};
    ///
    /// // A word of 32 bits is one column of 32 rows; row 16 is its bit 16.
    /// let shape: Shape = "pred[32,128]{1,0:T(32,128)(32,1)E(1)}".parse()?;
    /// assert_eq!(ImageMap::new(&shape)?.bit_offset(&[16, 0])?, 16);
    /// assert_eq!(ImageMap::new(&shape)?.bit_offset(&[16, 1])?, 48);
    /// # Ok::<(), relayout::Error>(())
    /// ```
    pub fn bit_offset(&self, index: &[u64]) -> Result<u64, IndexError> {
        self.bit_offset_in(index, &mut Vec::new())
    }

    /// The same, with memory for the index in the image.
    pub(crate) fn bit_offset_in(&self, index: &[u64], e: &mut Vec<u64>) -> Result<u64, IndexError> {
        let image_element = self.image_element_in(index, e)?;
        image_element.checked_mul(self.element_bits.into()).ok_or(IndexError::Overflow)
    }

    /// The index of the array element that stands at an image element, or
    /// `None` where that is padding.
    ///
    /// # Errors
    ///
    /// [`IndexError::OutsideImage`].
    ///
    /// ```
    /// use relayout::{Shape, index::ImageMap};
    ///
    /// let map = ImageMap::new(&"f32[3,5]{1,0:T(2,2)}".parse::<Shape>()?)?;
    /// assert_eq!(map.logical_index(17)?, Some(vec![2, 3]));
    /// assert_eq!(map.logical_index(19)?, None);
    /// assert!(map.logical_index(24).is_err());
    /// # Ok::<(), relayout::Error>(())
    /// ```
    pub fn logical_index(&self, image_element: u64) -> Result<Option<Vec<u64>>, IndexError> {
        let mut index = Vec::new();
        Ok(self.logical_index_into(image_element, &mut index)?.then_some(index))
    }

    /// [`logical_index`](Self::logical_index) in a vector that is used again, for whoever
    /// asks for many of them: its entries are replaced. `false` where there is padding, of
    /// which the entries tell nothing.
    ///
    /// # Errors
    ///
    /// [`IndexError::OutsideImage`].
    ///
    /// ```
    /// use relayout::{Shape, index::ImageMap};
    ///
    /// let map = ImageMap::new(&"f32[3,5]{1,0:T(2,2)}".parse::<Shape>()?)?;
    /// let (mut index, mut padding) = (Vec::new(), 0);
    /// for image_element in 0..map.image_elements() {
    ///     if map.logical_index_into(image_element, &mut index)? {
    ///         assert_eq!(map.image_element(&index)?, image_element);
    ///     } else {
    ///         padding += 1;
    ///     }
    /// }
    /// assert_eq!(padding, 24 - 15);
    /// # Ok::<(), relayout::Error>(())
    /// ```
    pub fn logical_index_into(
        &self,
        image_element: u64,
        index: &mut Vec<u64>,
    ) -> Result<bool, IndexError> {
        let image_elements = self.image_elements();
        if image_element >= image_elements {
            return Err(IndexError::OutsideImage { image_element, image_elements });
        }
        index.clear();
        unfold(image_element, self.tiling.image_bounds.iter().copied(), index);
        for level in self.tiling.levels.iter().rev() {
            if !level.join(index) {
                return Ok(false);
            }
        }
        // From physical order to that of the array.
        let rank = self.bounds.len();
        index.resize(2 * rank, 0);
        for (physical, &dimension) in self.major_to_minor.iter().enumerate() {
            index[rank + dimension] = index[physical];
        }
        index.drain(..rank);
        Ok(true)
    }

    /// The position of an array element in row-major order:
    /// [`linear_index`](fn@linear_index) with the bounds of the array.
    ///
    /// # Errors
    ///
    /// [`IndexError::Rank`] or [`IndexError::OutOfBounds`].
    pub fn linear_index(&self, index: &[u64]) -> Result<u64, IndexError> {
        linear_index(index, &self.bounds)
    }

    /// The index of the array element at a position in row-major order: the
    /// inverse of [`ImageMap::linear_index`].
    ///
    /// # Errors
    ///
    /// [`IndexError::OutsideArray`].
    pub fn index_of(&self, linear_index: u64) -> Result<Vec<u64>, IndexError> {
        let elements = self.elements();
        if linear_index >= elements {
            return Err(IndexError::OutsideArray { linear_index, elements });
        }
        let mut index = Vec::with_capacity(self.bounds.len());
        unfold(linear_index, self.bounds.iter().copied(), &mut index);
        Ok(index)
    }
}

impl Level {
    /// Replaces an index into the bounds before this level by the one into
    /// those after it: combine, then split into ⌊e/t⌋ and e mod t.
    fn split(&self, e: &mut Vec<u64>) -> Result<(), IndexError> {
        e.splice(0..0, std::iter::repeat_n(0, self.leading_ones));
        let end = e.len();
        let start = end - self.parts().count();
        let mut part = start;
        for d in &self.dimensions {
            let parts = part..part + d.parts.len();
            part = parts.end;
            e.push(fold(&e[parts], &d.parts)?);
        }
        for (i, d) in self.dimensions.iter().enumerate() {
            let combined = e[end + i];
            e[end + i] = combined / d.tile;
            e.push(combined % d.tile);
        }
        e.drain(start..end);
        Ok(())
    }

    /// The inverse of [`split`](Self::split). `false` where the index is of
    /// padding that this level put there.
    fn join(&self, e: &mut Vec<u64>) -> bool {
        let n = self.dimensions.len();
        let end = e.len();
        let (tiles, within) = (end - 2 * n, end - n);
        for (i, d) in self.dimensions.iter().enumerate() {
            let combined = e[tiles + i] * d.tile + e[within + i];
            if combined >= d.bound {
                return false;
            }
            unfold(combined, d.parts.iter().copied(), e);
        }
        e.drain(tiles..end);
        e.drain(..self.leading_ones);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> ImageMap {
        ImageMap::new(&text.parse().unwrap()).unwrap()
    }

    /// The whole map: for each image element the row-major number of what
    /// stands there, or -1.
    fn image(text: &str) -> Vec<i64> {
        let map = map(text);
        (0..map.image_elements())
            .map(|k| match map.logical_index(k).unwrap() {
                Some(index) => map.linear_index(&index).unwrap().try_into().unwrap(),
                None => -1,
            })
            .collect()
    }

    #[test]
    fn one_dimension_in_three_levels() {
        // 1024 elements as rows of 128, then pairs of rows.
        let map = map("bf16[1000]{0:T(1024)(128)(2,1)}");
        assert_eq!(map.image_elements(), 1024);
        assert_eq!(map.image_element(&[0]).unwrap(), 0);
        assert_eq!(map.image_element(&[128]).unwrap(), 1);
        assert_eq!(map.image_element(&[1]).unwrap(), 2);
        assert_eq!(map.image_element(&[256]).unwrap(), 256);
        assert_eq!(map.logical_index(1023).unwrap(), None);
    }

    #[test]
    fn a_scalar_in_a_tile() {
        let map = map("bf16[]{:T(256)}");
        assert_eq!((map.elements(), map.image_elements()), (1, 256));
        assert_eq!(map.image_element(&[]).unwrap(), 0);
        assert_eq!(map.logical_index(0).unwrap(), Some(vec![]));
        assert_eq!(map.logical_index(1).unwrap(), None);
    }

    #[test]
    fn physical_order() {
        assert_eq!(image("f32[2,3]{0,1}"), [0, 3, 1, 4, 2, 5]);
        assert_eq!(image("f32[2,3]{0,1:T(2,2)}"), [0, 3, 1, 4, 2, 5, -1, -1]);
    }

    #[test]
    fn errors_name_the_entry() {
        let map = map("f32[3,5]{1,0:T(2,2)}");
        let out = IndexError::OutOfBounds { dimension: 1, index: 5, bound: 5 };
        assert_eq!(map.image_element(&[2, 5]), Err(out));
        assert_eq!(map.image_element(&[2]), Err(IndexError::Rank { entries: 1, rank: 2 }));
        let outside = IndexError::OutsideImage { image_element: 24, image_elements: 24 };
        assert_eq!(map.logical_index(24), Err(outside));
        assert_eq!(
            linear_index_with_tile(&[0], &[4], &[0]),
            Err(IndexError::ZeroTileBound { entry: 0 })
        );
        assert_eq!(
            linear_index_with_tile(&[0], &[4], &[1, 2]),
            Err(IndexError::TileTooLong { entries: 2, rank: 1 })
        );
        assert_eq!(linear_index(&[7, 0], &[8, u64::MAX]), Err(IndexError::Overflow));
    }

    #[test]
    fn an_array_without_elements_has_no_indices() {
        let map = map("f32[0,5]{1,0:T(8,128)}");
        assert_eq!(map.image_elements(), 0);
        assert!(map.image_element(&[0, 0]).is_err());
        assert!(map.logical_index(0).is_err());
        assert!(map.index_of(0).is_err());
    }

    #[test]
    fn a_shape_with_more_bits_than_fit_has_no_map() {
        let shape: Shape = "c128[1152921504606846976]".parse().unwrap();
        assert!(matches!(ImageMap::new(&shape), Err(ShapeError::ImageBitsTooMany { .. })));
    }
}
