//! A layout as digits: how the position of an element depends on its index.
//!
//! Tiles split an index into ⌊e/t⌋ and e mod t, later tiles split those, and
//! each part that is left is multiplied by a stride. So the position of an
//! element is a sum, over the dimensions, of a tree: at its inner nodes the
//! index is split, at its leaves stands a stride.
//!
//! ```text
//! rows of T(8,128)(2,1), bf16, image rows of 32 KiB (strides in bytes)
//!
//!            row
//!          at 8 ─────────┐
//!    ⌊row/8⌋·32768     row%8
//!                      at 2 ───────────┐
//!                 ⌊row%8/2⌋·512    row%2·2
//! ```
//!
//! Strides and positions are numbers modulo 2^64. Those of an image are less than
//! that; those of a host array may be negative, and then lead to a position in its
//! buffer only when all are added. `program.rs` looks where everything ends up.
//!
//! The trees are built from the last tile to the first, which makes `*`
//! simple: a combined index is the tree of its split, and its parts are that
//! tree cut at the bounds of the parts. Where it cannot be cut there (`T(*,7)`
//! over rows of 10), the dimensions stay together in one root.

use crate::shape::{Level, Shape};

/// How a position, in bits, depends on one index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Digits {
    /// The index times a stride in bits.
    Digit { stride: u64 },
    /// ⌊index/at⌋ by one tree and index mod `at` by another.
    Split { at: u64, outer: Box<Digits>, inner: Box<Digits> },
}

impl Digits {
    /// An index that does not move the position.
    pub(super) const FIXED: Digits = Digits::Digit { stride: 0 };

    /// The tree that splits at `at`; a split at 1 that leaves one digit is none.
    pub(super) fn split(at: u64, outer: Digits, inner: Digits) -> Digits {
        if at == 1 && matches!(inner, Digits::Digit { .. }) {
            return outer;
        }
        Digits::Split { at, outer: Box::new(outer), inner: Box::new(inner) }
    }

    /// The position at an index, in bits.
    pub(super) fn position(&self, index: u64) -> u64 {
        match self {
            Digits::Digit { stride } => index.wrapping_mul(*stride),
            Digits::Split { at, outer, inner } => {
                outer.position(index / at).wrapping_add(inner.position(index % at))
            }
        }
    }

    /// Two trees with `self(q·at + r) = outer(q) + inner(r)` for all r < at, or
    /// `None` where there are none.
    pub(super) fn cut(&self, at: u64) -> Option<(Digits, Digits)> {
        match self {
            Digits::Split { at: own, outer, inner } if *own == at => {
                Some(((**outer).clone(), (**inner).clone()))
            }
            _ if at == 1 => Some((self.clone(), Digits::FIXED)),
            Digits::Digit { stride } => {
                Some((Digits::Digit { stride: stride.wrapping_mul(at) }, self.clone()))
            }
            Digits::Split { at: own, outer, inner } => {
                if at.is_multiple_of(*own) {
                    let (major, minor) = outer.cut(at / own)?;
                    Some((major, Digits::split(*own, minor, (**inner).clone())))
                } else if own.is_multiple_of(at) {
                    let (major, minor) = inner.cut(at)?;
                    Some((Digits::split(own / at, (**outer).clone(), major), minor))
                } else {
                    None
                }
            }
        }
    }
}

/// One index into the array, and where it leads in one layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Root {
    /// The logical dimensions that the index joins, major to minor. Mostly one;
    /// none for a bound of 1 that a tile longer than the rank put in front.
    pub(super) dimensions: Vec<usize>,
    pub(super) digits: Digits,
}

/// The roots of a shape, in physical order, major to minor. Strides are in
/// bits.
///
/// `None` where a tile combines what an earlier tile made and what cannot be
/// taken apart again, or where a stride does not fit in 64 bits: then the
/// position is no sum of trees.
pub(super) fn roots(shape: &Shape) -> Option<Vec<Root>> {
    let tiling = shape.tiling().ok()?;
    let mut stride = u64::from(shape.element_bits());
    let mut parts = Vec::with_capacity(tiling.image_bounds.len());
    for &bound in tiling.image_bounds.iter().rev() {
        parts.push(Part::Whole(Digits::Digit { stride }));
        stride = stride.checked_mul(bound)?;
    }
    parts.reverse();

    // Bounds of 1 that a tile put in front; no tile before it knows them.
    let mut in_front = Vec::new();
    for level in tiling.levels.iter().rev() {
        undo(level, &mut parts)?;
        in_front.extend(parts.drain(..level.leading_ones));
    }

    let mut roots: Vec<Root> = Vec::new();
    let mut joined = 0;
    for part in in_front {
        let Part::Whole(digits) = part else { return None };
        roots.push(Root { dimensions: Vec::new(), digits });
    }
    for (part, dimension) in parts.into_iter().zip(shape.layout().major_to_minor()) {
        match part {
            Part::Whole(digits) => roots.push(Root { dimensions: vec![dimension], digits }),
            Part::First(digits) => {
                joined = roots.len();
                roots.push(Root { dimensions: vec![dimension], digits });
            }
            Part::Next => roots.get_mut(joined)?.dimensions.push(dimension),
        }
    }
    Some(roots)
}

/// What becomes of one bound.
enum Part {
    /// It has a tree of its own.
    Whole(Digits),
    /// It has one tree together with the next ones.
    First(Digits),
    /// It shares the tree of the first one before it.
    Next,
}

/// Turns the trees of what a level leaves into those of what it took.
fn undo(level: &Level, parts: &mut Vec<Part>) -> Option<()> {
    let count = level.dimensions.len();
    let inner = parts.split_off(parts.len().checked_sub(count)?);
    let outer = parts.split_off(parts.len().checked_sub(count)?);
    for ((dimension, outer), inner) in level.dimensions.iter().zip(outer).zip(inner) {
        // What shares a tree with others cannot have been split by a tile.
        let (Part::Whole(outer), Part::Whole(inner)) = (outer, inner) else { return None };
        parts.extend(take_apart(Digits::split(dimension.tile, outer, inner), &dimension.parts));
    }
    Some(())
}

/// The trees of the bounds that make up a combined one, major to minor.
fn take_apart(combined: Digits, bounds: &[u64]) -> Vec<Part> {
    // A bound of 1 has one index only, which moves nothing.
    let minormost = bounds.iter().rposition(|&bound| bound != 1).unwrap_or(bounds.len() - 1);
    let majormost = bounds.iter().position(|&bound| bound != 1).unwrap_or(minormost);
    let mut parts: Vec<Part> = Vec::with_capacity(bounds.len());
    let mut rest = combined.clone();
    for (i, &bound) in bounds.iter().enumerate().rev() {
        if i == majormost {
            parts.push(Part::Whole(rest.clone()));
        } else if bound == 1 {
            parts.push(Part::Whole(Digits::FIXED));
        } else if let Some((major, minor)) = rest.cut(bound) {
            parts.push(Part::Whole(minor));
            rest = major;
        } else {
            // Not one without the others, then.
            return bounds
                .iter()
                .enumerate()
                .map(|(i, &bound)| match bound {
                    _ if i == majormost => Part::First(combined.clone()),
                    1 => Part::Whole(Digits::FIXED),
                    _ => Part::Next,
                })
                .collect();
        }
    }
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digit(stride: u64) -> Digits {
        Digits::Digit { stride }
    }

    fn roots_of(text: &str) -> Option<Vec<Root>> {
        roots(&text.parse().unwrap())
    }

    #[test]
    fn the_rows_and_columns_of_a_tpu_layout() {
        let roots = roots_of("bf16[64,16384]{1,0:T(8,128)(2,1)}").unwrap();
        let rows =
            Digits::split(8, digit(8 * 16384 * 16), Digits::split(2, digit(256 * 16), digit(16)));
        // The second tile's entry of 1 splits nothing.
        let columns = Digits::split(128, digit(1024 * 16), digit(2 * 16));
        assert_eq!(roots[0], Root { dimensions: vec![0], digits: rows });
        assert_eq!(roots[1], Root { dimensions: vec![1], digits: columns });
    }

    #[test]
    fn combined_dimensions_come_apart_where_the_tile_allows() {
        // 10 rows of 6 in tiles of 3: columns split at 3, rows do not.
        let roots = roots_of("u8[10,6]{1,0:T(*,3)}").unwrap();
        assert_eq!(roots[0], Root { dimensions: vec![0], digits: digit(6 * 8) });
        assert_eq!(roots[1].digits, Digits::split(3, digit(3 * 8), digit(8)));
        // In tiles of 12: two rows to a tile.
        let roots = roots_of("u8[10,6]{1,0:T(*,12)}").unwrap();
        assert_eq!(roots[0].digits, Digits::split(2, digit(12 * 8), digit(6 * 8)));
        assert_eq!(roots[1].digits, digit(8));
        // In tiles of 4: together.
        let roots = roots_of("u8[10,1,6]{2,1,0:T(*,*,4)}").unwrap();
        assert_eq!(roots[0].dimensions, [0, 2]);
        assert_eq!(roots[0].digits, Digits::split(4, digit(32), digit(8)));
        assert_eq!(roots[1], Root { dimensions: vec![1], digits: Digits::FIXED });
        // And so that a later tile would need them apart.
        assert_eq!(roots_of("u8[8,8]{1,0:T(4,4)(*,6)}"), None);
    }

    #[test]
    fn tiles_longer_than_the_rank_have_roots_without_a_dimension() {
        let roots = roots_of("u8[300]{0:T(8,128)}").unwrap();
        assert_eq!(roots[0].dimensions, [0_usize; 0]);
        assert_eq!(roots[0].digits, Digits::split(8, digit(3 * 1024 * 8), digit(128 * 8)));
        assert_eq!(roots[1].digits, Digits::split(128, digit(1024 * 8), digit(8)));
    }

    #[test]
    fn a_cut_tree_leads_to_the_same_positions() {
        let tree = Digits::split(
            24,
            Digits::split(2, digit(1000), digit(7)),
            Digits::split(6, digit(100), digit(3)),
        );
        for at in [1, 2, 3, 6, 12, 24, 48, 96] {
            let (outer, inner) = tree.cut(at).unwrap();
            for i in 0..200 {
                let sum = outer.position(i / at) + inner.position(i % at);
                assert_eq!(sum, tree.position(i), "{i} cut at {at}");
            }
        }
        for at in [5, 8, 36, 72] {
            assert_eq!(tree.cut(at), None, "{at}");
        }
    }
}
