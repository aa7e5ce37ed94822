//! What the tiles of a layout do to the bounds of an array, level by level.
//!
//! A tile of n entries takes the n minormost bounds that the tile before it
//! left (bounds of 1 are put in front where there are fewer), combines those
//! under a `*` with their more minor neighbour, and replaces each combined
//! bound d with tile entry t by two: ⌈d/t⌉ among the counts of tiles, and t
//! among the bounds within a tile. All counts stand before all tile bounds:
//!
//! ```text
//! [.., d2, d1]  under (t2, t1)  becomes  [.., ⌈d2/t2⌉, ⌈d1/t1⌉, t2, t1]
//! ```
//!
//! That is "Linear index formulas for tiling given a shape and a tile",
//! "Repeated tiling" and "Combining dimensions using tiling" of the
//! tiled-layout document. The index math, the sizes and the list of steps all
//! read it from here.

use super::layout::{Tile, TileEntry};
use crate::error::ShapeError;

/// The most elements that an array, an image or one bound may have: XLA
/// counts them in signed integers of 64 bits.
pub(super) const MAX_ELEMENTS: u64 = i64::MAX as u64;

/// The bounds of an image, and how the tiles led there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tiling {
    /// The bounds of the array in physical order, major to minor.
    pub(crate) physical_bounds: Vec<u64>,
    /// One level for each tile.
    pub(crate) levels: Vec<Level>,
    /// The bounds after the last tile, major to minor. The image is a dense
    /// row-major array of these.
    pub(crate) image_bounds: Vec<u64>,
    /// The product of `physical_bounds`.
    pub(crate) elements: u64,
    /// The product of `image_bounds`.
    pub(crate) image_elements: u64,
}

/// One tile, applied to the bounds that the tiles before it left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    /// How many bounds of 1 were put in front, the tile being longer than the
    /// rank.
    pub(crate) leading_ones: usize,
    /// What the tile acts on, major to minor.
    pub(crate) dimensions: Vec<TiledDimension>,
}

/// A dimension that one tile entry splits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TiledDimension {
    /// The bounds that `*` combined into this one, major to minor; just one
    /// where there was no `*`.
    pub(crate) parts: Vec<u64>,
    /// Their product.
    pub(crate) bound: u64,
    /// The tile entry.
    pub(crate) tile: u64,
}

impl TiledDimension {
    /// How many tiles cover the dimension: ⌈bound/tile⌉.
    pub(crate) fn tiles(&self) -> u64 {
        self.bound.div_ceil(self.tile)
    }
}

impl Level {
    /// The bounds that this level takes from the minor end, ones put in front
    /// included.
    pub(crate) fn parts(&self) -> impl Iterator<Item = u64> {
        self.dimensions.iter().flat_map(|d| d.parts.iter().copied())
    }

    /// How many of the bounds before this level it takes from the minor end.
    pub(crate) fn taken(&self) -> usize {
        self.parts().count().saturating_sub(self.leading_ones)
    }
}

impl Tiling {
    /// Applies `tiles` to bounds in physical order, major to minor.
    ///
    /// # Errors
    ///
    /// [`ShapeError::TooManyElements`] where the bounds alone make 2⁶³ elements
    /// or more, [`ShapeError::ImageTooLarge`] with the first tile after which
    /// the image does.
    pub(crate) fn new(physical_bounds: Vec<u64>, tiles: &[Tile]) -> Result<Self, ShapeError> {
        let elements = product(&physical_bounds).ok_or(ShapeError::TooManyElements)?;
        let mut image_elements = elements;
        let mut bounds = physical_bounds.clone();
        let mut levels = Vec::with_capacity(tiles.len());
        for (number, tile) in tiles.iter().enumerate() {
            let too_large = ShapeError::ImageTooLarge { tile: number };
            levels.push(Level::take(&mut bounds, tile).ok_or(too_large)?);
            image_elements = product(&bounds).ok_or(too_large)?;
        }
        Ok(Tiling { physical_bounds, levels, image_bounds: bounds, elements, image_elements })
    }
}

impl Level {
    /// Replaces the minormost of `bounds` by what `tile` makes of them.
    /// `None` where a bound, combined or padded, is 2⁶³ or more.
    fn take(bounds: &mut Vec<u64>, tile: &Tile) -> Option<Level> {
        let entries = tile.entries();
        let leading_ones = entries.len().saturating_sub(bounds.len());
        bounds.splice(0..0, std::iter::repeat_n(1, leading_ones));
        let taken = bounds.split_off(bounds.len() - entries.len());

        let mut dimensions = Vec::new();
        let mut parts = Vec::new();
        for (bound, entry) in taken.into_iter().zip(entries) {
            parts.push(bound);
            let &TileEntry::Bound(tile) = entry else {
                continue;
            };
            let parts = std::mem::take(&mut parts);
            let dimension = TiledDimension { bound: product(&parts)?, parts, tile };
            // Rounding up, as XLA does it, has to stay in range too.
            dimension.bound.checked_add(tile - 1).filter(|&n| n <= MAX_ELEMENTS)?;
            dimensions.push(dimension);
        }
        bounds.extend(dimensions.iter().map(TiledDimension::tiles));
        bounds.extend(dimensions.iter().map(|d| d.tile));
        Some(Level { leading_ones, dimensions })
    }
}

/// The product of bounds, or `None` where it is 2⁶³ or more. A bound of 0
/// makes it 0, whatever the others are.
fn product(bounds: &[u64]) -> Option<u64> {
    if bounds.contains(&0) {
        return Some(0);
    }
    bounds.iter().try_fold(1_u64, |a, &b| a.checked_mul(b)).filter(|&n| n <= MAX_ELEMENTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiling(bounds: &[u64], text: &str) -> Result<Tiling, ShapeError> {
        let layout: super::super::Layout = format!("{{0:T{text}}}").parse().unwrap();
        Tiling::new(bounds.to_vec(), layout.tiles())
    }

    #[test]
    fn each_level_splits_what_the_one_before_left() {
        let t = tiling(&[20, 300], "(8,128)(2,1)").unwrap();
        assert_eq!(t.image_bounds, [3, 3, 4, 128, 2, 1]);
        assert_eq!(t.levels[1].parts().collect::<Vec<_>>(), [8, 128]);

        let t = tiling(&[8, 8], "(2,4)(2,1,1,1)").unwrap();
        assert_eq!(t.image_bounds, [2, 2, 2, 4, 2, 1, 1, 1]);
    }

    #[test]
    fn combined_dimensions_and_leading_ones() {
        let t = tiling(&[2, 7, 8, 11, 10], "(*,*,2,*,3)").unwrap();
        assert_eq!(t.image_bounds, [56, 37, 2, 3]);
        assert_eq!(t.levels[0].dimensions[0].parts, [2, 7, 8]);

        let t = tiling(&[], "(256)").unwrap();
        assert_eq!((t.levels[0].leading_ones, t.image_bounds), (1, vec![1, 256]));
    }

    #[test]
    fn limits_are_exact() {
        let half = 1_u64 << 62;
        assert_eq!(product(&[half, 2]), None);
        assert_eq!(product(&[half - 1, 2]), Some(MAX_ELEMENTS - 1));
        assert_eq!(product(&[half, 2, 0]), Some(0));
        // 2^62 elements in rows of 2, padded to rows of 3.
        assert_eq!(tiling(&[half / 2, 2], "(1,3)").unwrap().image_bounds, [half / 2, 1, 1, 3]);
        assert_eq!(tiling(&[half, 1], "(1,3)"), Err(ShapeError::ImageTooLarge { tile: 0 }));
        assert_eq!(
            tiling(&[8], "(2)(9223372036854775807)"),
            Err(ShapeError::ImageTooLarge { tile: 1 })
        );
    }
}
