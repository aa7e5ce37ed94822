//! From two layouts to perfect nests.
//!
//! The index of each dimension leads through a tree of digits on the source
//! side and another one on the destination side. Both are cut at the same
//! places until nothing but strides is left on both sides; what then remains is
//! loops. Where a bound is no multiple of a tile, the rest behind the whole
//! tiles is a second piece, with loops of its own. Where the cuts of the two
//! sides do not divide each other (tiles of 6 against tiles of 8), pieces run
//! from cut to cut, repeated from one common multiple to the next. All
//! combinations of the pieces of all dimensions are the regions, each without a
//! test inside it.
//!
//! Padding is what no combination reaches. A piece may take the padding that
//! lies right behind it (the rest of a word, the rest of a row) along, which
//! shows as a loop whose `full` exceeds its `extent`; what remains is regions
//! of nothing but padding. Together they cover the image once.

use super::digits::{Digits, Root};
use super::nest::{Loop, Nest};
use super::side::Side;

/// More regions than this are not worth their plan.
pub(super) const MAX_REGIONS: usize = 512;

/// The nests that make up a destination image.
pub(super) struct Regions {
    /// Where elements go.
    pub(super) data: Vec<Nest>,
    /// Where none goes. The loops have no source.
    pub(super) padding: Vec<Nest>,
}

/// What the regions of a pair of layouts are, or `None` where they are too many
/// or the layouts are not made of digits.
///
/// With `along`, data may take along the padding behind it.
/// Of a destination that is not written as a whole, there is no padding.
pub(super) fn regions(from: &Side, to: &Side, along: bool) -> Option<Regions> {
    let mut lines = Vec::new();
    for line in lines_of(&from.roots()?, &to.roots()?, &to.bounds)? {
        let mut budget = MAX_REGIONS;
        let at_source = from.window_start(&line.dimensions)?;
        let at_destination = to.window_start(&line.dimensions)?;
        let mut data = pieces(
            &line.source,
            at_source,
            &line.destination,
            at_destination,
            line.bound,
            &mut budget,
        )?;
        let mut padding = if to.is_whole() {
            padding(&line.destination, line.bound, line.bound)?
        } else {
            Vec::new()
        };
        if along {
            take_along(&mut data, &mut padding);
        }
        let all = Nest { loops: everything(&line.destination, line.bound), ..Nest::default() };
        lines.push((data, padding, all));
    }

    let start = Nest { source: from.start(), destination: to.start(), loops: Vec::new() };
    let mut regions = Regions { data: vec![start], padding: Vec::new() };
    for (i, (data, padding, _)) in lines.iter().enumerate() {
        // Behind the elements of this line, all of the lines after it.
        let behind = lines[i + 1..].iter().fold(Nest::default(), |n, line| n.times(&line.2));
        for before in &regions.data {
            for padding in padding {
                let nest = before.as_padding().times(padding).times(&behind);
                regions.padding.push(nest);
            }
        }
        regions.data = product(&regions.data, data)?;
        if regions.data.len() + regions.padding.len() > MAX_REGIONS {
            return None;
        }
    }
    Some(regions)
}

/// An index and where it leads on both sides.
struct Line {
    /// The dimensions that it joins.
    dimensions: Vec<usize>,
    bound: u64,
    source: Digits,
    destination: Digits,
}

/// Brings the roots of the two sides together. `None` where each side joins
/// dimensions that the other keeps apart.
fn lines_of(from: &[Root], to: &[Root], bounds: &[u64]) -> Option<Vec<Line>> {
    let mut lines = Vec::new();
    let mut done = vec![false; bounds.len()];
    for root in to {
        if root.dimensions.is_empty() {
            let destination = root.digits.clone();
            let source = Digits::FIXED;
            lines.push(Line { dimensions: Vec::new(), bound: 1, source, destination });
            continue;
        }
        if done[root.dimensions[0]] {
            continue;
        }
        // The larger of the two roots says what is one line.
        let other = from.iter().find(|r| r.dimensions.contains(&root.dimensions[0]))?;
        let dimensions = if other.dimensions.len() > root.dimensions.len() {
            &other.dimensions
        } else {
            &root.dimensions
        };
        for &dimension in dimensions {
            if std::mem::replace(&mut done[dimension], true) {
                return None;
            }
        }
        let bound = dimensions.iter().try_fold(1_u64, |n, &d| n.checked_mul(bounds[d]))?;
        let source = joined(from, dimensions, bounds)?;
        let destination = joined(to, dimensions, bounds)?;
        let dimensions = dimensions.clone();
        lines.push(Line { dimensions, bound, source, destination });
    }
    Some(lines)
}

/// The tree of the index that joins `dimensions`, major to minor, where it can
/// be made of whole roots.
fn joined(roots: &[Root], dimensions: &[usize], bounds: &[u64]) -> Option<Digits> {
    let root = roots.iter().find(|r| r.dimensions.first() == dimensions.first())?;
    let rest = dimensions.strip_prefix(root.dimensions.as_slice())?;
    if rest.is_empty() {
        return Some(root.digits.clone());
    }
    let bound = rest.iter().try_fold(1_u64, |n, &d| n.checked_mul(bounds[d]))?;
    Some(Digits::split(bound, root.digits.clone(), joined(roots, rest, bounds)?))
}

/// All combinations.
fn product(a: &[Nest], b: &[Nest]) -> Option<Vec<Nest>> {
    if a.len().checked_mul(b.len())? > MAX_REGIONS {
        return None;
    }
    Some(a.iter().flat_map(|a| b.iter().map(move |b| a.times(b))).collect())
}

/// The nests of the indices i with `i < count`, the source being at index
/// `at_source + i` of its tree and the destination at `at_destination + i`.
fn pieces(
    mut source: &Digits,
    mut at_source: u64,
    mut destination: &Digits,
    mut at_destination: u64,
    mut count: u64,
    budget: &mut usize,
) -> Option<Vec<Nest>> {
    let mut nests = Vec::new();
    let mut start = Nest::default();
    while count > 0 {
        *budget = budget.checked_sub(1)?;
        let entered = enter(&mut source, &mut at_source, count)?;
        start.source = start.source.wrapping_add(entered);
        let entered = enter(&mut destination, &mut at_destination, count)?;
        start.destination = start.destination.wrapping_add(entered);

        let at = match (source, destination) {
            (&Digits::Digit { stride: s }, &Digits::Digit { stride: d }) => {
                nests.push(Nest { loops: vec![Loop::new(count, s, d)], ..start });
                break;
            }
            (Digits::Split { at, .. }, Digits::Digit { .. })
            | (Digits::Digit { .. }, Digits::Split { at, .. }) => [*at, *at],
            (Digits::Split { at: s, .. }, Digits::Split { at: d, .. }) => {
                [*s.max(d), common_multiple(*s, *d).unwrap_or(u64::MAX)]
            }
        };
        // Whole blocks, where both sides stand at the start of one.
        let starts = |at: u64| {
            at < count && at_source.is_multiple_of(at) && at_destination.is_multiple_of(at)
        };
        let whole = at
            .into_iter()
            .filter(|&at| starts(at))
            .find_map(|at| Some((at, source.cut(at)?, destination.cut(at)?)));
        if let Some((at, (source_outer, source), (destination_outer, destination))) = whole {
            let (s, d, blocks) = (at_source / at, at_destination / at, count / at);
            let outer = pieces(&source_outer, s, &destination_outer, d, blocks, budget)?;
            let inner = pieces(&source, 0, &destination, 0, at, budget)?;
            let whole = product(&outer, &inner)?;
            nests.extend(product(std::slice::from_ref(&start), &whole)?);
            let rest = Nest {
                source: start.source.wrapping_add(source_outer.position(s + blocks)),
                destination: start.destination.wrapping_add(destination_outer.position(d + blocks)),
                loops: Vec::new(),
            };
            let behind = pieces(&source, 0, &destination, 0, count % at, budget)?;
            nests.extend(product(&[rest], &behind)?);
            break;
        }
        // From here to the next cut of either side.
        let to_cut = |digits: &Digits, at_index: u64| match digits {
            Digits::Split { at, .. } => at - at_index % at,
            Digits::Digit { .. } => u64::MAX,
        };
        let step = to_cut(source, at_source).min(to_cut(destination, at_destination)).min(count);
        let next = pieces(source, at_source, destination, at_destination, step, budget)?;
        nests.extend(product(std::slice::from_ref(&start), &next)?);
        (at_source, at_destination) = (at_source + step, at_destination + step);
        count -= step;
    }
    Some(nests)
}

/// Goes down a tree while all of the `count` indices from `at` on lie in one
/// block, and to the index itself where no tree is left. Returns the position
/// of where it went.
fn enter(digits: &mut &Digits, at: &mut u64, count: u64) -> Option<u64> {
    let mut position = 0_u64;
    while let Digits::Split { at: block, outer, inner } = *digits {
        if (*at % block).checked_add(count)? > *block {
            return Some(position);
        }
        position = position.wrapping_add(outer.position(*at / block));
        *at %= block;
        *digits = inner;
    }
    Some(position.wrapping_add(digits.position(std::mem::take(at))))
}

fn common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut gcd, mut rest) = (a, b);
    while rest > 0 {
        (gcd, rest) = (rest, gcd % rest);
    }
    (a / gcd).checked_mul(b)
}

/// What a tree over `bound` indices reaches in the image beyond its first
/// `count` ones, and between them.
fn padding(digits: &Digits, count: u64, bound: u64) -> Option<Vec<Nest>> {
    let nest = |destination, loops| Nest { source: 0, destination, loops };
    match digits {
        Digits::Digit { stride } if count < bound => {
            let rest = Loop::new(bound - count, 0, *stride);
            Some(vec![nest(count.wrapping_mul(*stride), vec![rest])])
        }
        Digits::Digit { .. } => Some(Vec::new()),
        Digits::Split { at, outer, inner } => {
            let (blocks, rest) = (count / at, count % at);
            let mut nests = Vec::new();
            // In each whole block.
            if blocks > 0 {
                let mut budget = MAX_REGIONS;
                let whole = pieces(&Digits::FIXED, 0, outer, 0, blocks, &mut budget)?;
                nests.extend(product(&whole, &padding(inner, *at, *at)?)?);
            }
            // In the block that is not whole.
            if rest > 0 {
                let start = nest(outer.position(blocks), Vec::new());
                nests.extend(product(&[start], &padding(inner, rest, *at)?)?);
            }
            // Whole blocks of padding.
            let used = count.div_ceil(*at);
            let block = nest(0, everything(inner, *at));
            nests.extend(product(&padding(outer, used, bound.div_ceil(*at))?, &[block])?);
            Some(nests)
        }
    }
}

/// All that a tree over `bound` indices reaches in the image.
fn everything(digits: &Digits, bound: u64) -> Vec<Loop> {
    match digits {
        Digits::Digit { stride } => vec![Loop::new(bound, 0, *stride)],
        Digits::Split { at, outer, inner } => {
            let mut loops = everything(outer, bound.div_ceil(*at));
            loops.extend(everything(inner, *at));
            loops
        }
    }
}

/// Gives each nest of padding to the data right before it, where there is some
/// that differs in the extent of one loop only.
fn take_along(data: &mut [Nest], padding: &mut Vec<Nest>) {
    let sort = |nest: &mut Nest| {
        nest.loops.sort_by_key(|l| std::cmp::Reverse(l.destination));
    };
    data.iter_mut().for_each(sort);
    padding.iter_mut().for_each(sort);
    padding.retain(|padding| {
        let grown = data.iter_mut().find_map(|data| {
            let (i, behind) =
                (0..data.loops.len()).find_map(|i| Some((i, behind(data, i, padding)?)))?;
            Some((&mut data.loops[i], behind))
        });
        match grown {
            Some((along, behind)) => along.full += behind,
            None => return true,
        }
        false
    });
}

/// How many more elements loop `i` of `data` would reach if it went on over all of `padding`, and nothing else.
fn behind(data: &Nest, i: usize, padding: &Nest) -> Option<u64> {
    let along = data.loops[i];
    let end = along.full.checked_mul(along.destination)?.checked_add(data.destination)?;
    // A loop over one element says nothing.
    let others = data.loops.iter().enumerate().filter(|&(k, l)| k != i && l.full > 1);
    let mut others = others.map(|(_, l)| (l.destination, l.full)).peekable();
    let mut extent = None;
    for l in padding.loops.iter().filter(|l| l.extent > 1) {
        if others.next_if_eq(&(l.destination, l.extent)).is_none()
            && (l.destination != along.destination || extent.replace(l.extent).is_some())
        {
            return None;
        }
    }
    let is_all = end == padding.destination && others.next().is_none();
    is_all.then_some(extent.unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::ImageMap;
    use crate::shape::Shape;

    fn shape(text: &str) -> Shape {
        text.parse().unwrap()
    }

    fn canonical(regions: Vec<Nest>) -> Vec<Nest> {
        regions.into_iter().map(Nest::canonical).collect()
    }

    /// Source and destination bit of each element, and the bits of padding,
    /// by walking the nests.
    fn walk(nest: &Nest, loops: &[Loop], at: (u64, u64), visit: &mut dyn FnMut(bool, u64, u64)) {
        let Some((l, rest)) = loops.split_first() else {
            return visit(true, nest.source + at.0, nest.destination + at.1);
        };
        for i in 0..l.full {
            let at = (at.0 + i * l.source, at.1 + i * l.destination);
            if i < l.extent {
                walk(nest, rest, at, visit);
            } else {
                walk(nest, rest, at, &mut |_, s, d| visit(false, s, d));
            }
        }
    }

    /// Holds the regions of a pair of layouts against the index math.
    fn check(from: &str, to: &str, along: bool) -> Option<Regions> {
        let (from, to) = (shape(from), shape(to));
        let side = |shape| Side::image(shape, None).unwrap();
        let regions = regions(&side(&from), &side(&to), along)?;
        let (from_map, to_map) = (ImageMap::new(&from).unwrap(), ImageMap::new(&to).unwrap());
        let mut seen = vec![None; to_map.image_elements() as usize];
        let bits = u64::from(to.element_bits());
        let mut visit = |is_data: bool, source: u64, destination: u64| {
            assert_eq!(destination % bits, 0);
            let place = &mut seen[(destination / bits) as usize];
            assert_eq!(*place, None, "bit {destination} twice");
            *place = Some(is_data.then_some(source));
        };
        for nest in &regions.data {
            walk(nest, &nest.loops, (0, 0), &mut visit);
        }
        for nest in &regions.padding {
            walk(nest, &nest.loops, (0, 0), &mut |_, s, d| visit(false, s, d));
        }
        for (k, seen) in seen.into_iter().enumerate() {
            let index = to_map.logical_index(k as u64).unwrap();
            let expected = index.map(|index| from_map.bit_offset(&index).unwrap());
            assert_eq!(seen, Some(expected), "{from} -> {to}, image element {k}");
        }
        Some(regions)
    }

    #[test]
    fn whole_tiles_are_one_region() {
        let r = check("bf16[16,384]{1,0}", "bf16[16,384]{1,0:T(8,128)(2,1)}", true).unwrap();
        assert_eq!((r.data.len(), r.padding.len()), (1, 0));
        // Tile rows, tiles of a row, pairs of rows, columns, the two of a pair.
        let loops = [
            Loop::new(2, 8 * 384 * 16, 3 * 1024 * 16),
            Loop::new(3, 128 * 16, 1024 * 16),
            Loop::new(4, 2 * 384 * 16, 256 * 16),
            Loop::new(128, 16, 32),
            Loop::new(2, 384 * 16, 16),
        ];
        assert_eq!(canonical(r.data)[0].loops, loops);
    }

    #[test]
    fn ten_dimensions_become_three_loops() {
        let r = check(
            "f32[2,2,2,2,2,2,2,2,2,2]{9,8,7,6,5,4,3,2,1,0}",
            "f32[2,2,2,2,2,2,2,2,2,2]{9,8,7,3,2,1,0,6,5,4}",
            true,
        );
        assert_eq!(canonical(r.unwrap().data)[0].loops.len(), 3);
    }

    #[test]
    fn ragged_bounds_take_their_padding_along() {
        // 11 rows: 8, 2 and 1 with a row of zeros; then two pairs of nothing.
        let r = check("bf16[11,200]{1,0}", "bf16[11,200]{1,0:T(8,128)(2,1)}", true).unwrap();
        assert_eq!((r.data.len(), r.padding.len()), (6, 1));
        let r = check("bf16[11,200]{1,0}", "bf16[11,200]{1,0:T(8,128)(2,1)}", false).unwrap();
        assert_eq!((r.data.len(), r.padding.len()), (6, 2 + 3));
    }

    #[test]
    fn cuts_that_do_not_divide_each_other() {
        let pairs = [
            ("u8[100]{0:T(6)}", "u8[100]{0:T(8)}"),
            ("u8[50,7]{1,0:T(6,3)(2,1)}", "u8[50,7]{0,1:T(8,2)(3,2)}"),
            ("u8[10,6]{1,0}", "u8[10,6]{1,0:T(*,4)}"),
            ("u8[10,6]{0,1}", "u8[10,6]{1,0:T(*,4)}"),
            ("u8[10,6]{1,0:T(*,7)}", "u8[10,6]{1,0:T(*,4)}"),
            ("u8[10,6,5]{1,2,0:T(3,4)}", "u8[10,6,5]{2,1,0:T(*,4,2)(3)}"),
            ("u8[300]{0:T(8,128)}", "u8[300]{0:T(1024)(128)(4,1)}"),
            ("u8[]{:T(256)}", "u8[]{:T(3,5)(2)}"),
            ("u4[7,9]{1,0:E(4)}", "u4[7,9]{0,1:T(3,4)(5,1)}"),
            ("u8[8,8]{1,0}", "u8[8,8]{1,0:T(1,3)(1,3)(2,2)}"),
            ("s4[40,50]{1,0:T(8,25)E(4)}", "s4[40,50]{1,0:T(8,28)E(4)}"),
        ];
        for (from, to) in pairs {
            for along in [false, true] {
                assert!(check(from, to, along).is_some(), "{from} -> {to}");
                assert!(check(to, from, along).is_some(), "{to} -> {from}");
            }
        }
    }

    #[test]
    fn what_has_no_regions_says_so() {
        // Dimensions that each side joins with another one.
        let r = check("u8[5,5,5]{2,1,0:T(*,3)}", "u8[5,5,5]{0,1,2:T(*,3)}", true);
        assert!(r.is_none());
        // More pieces than are worth a plan.
        let r = check("u8[9999]{0:T(2)}", "u8[9999]{0:T(9973)(3)(2)}", true);
        assert!(r.is_none());
    }
}
