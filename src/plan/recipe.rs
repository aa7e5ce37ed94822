//! What a program is made from, for a whole destination or a range of it.

use std::collections::VecDeque;
use std::ops::Range;
use std::slice;

use super::choose::{self, Elements, Leaf, Room};
use super::cost::{self, cost};
use super::hop::{self, MOST_SCRATCH_BYTES};
use super::nest::{Loop, Nest};
use super::program;
use super::region;
use super::side::{Needs, Side};
use super::slabs;
use super::stores::Stores;
use super::tails;
use super::ways::{self, Conversions, MostFirst, Ways};
use super::{Options, Padding};
use crate::drive::Program;
use crate::error::Side as Which;

/// The nests of a pair of layouts, and what decides on their kernels.
#[derive(Debug)]
pub(super) struct Recipe {
    parts: Vec<Part>,
    elements: Elements,
    order: MostFirst,
    conversions: Conversions,
    options: Options,
    source: Needs,
    destination: Needs,
    /// Which side is a host array that is not as kernels know it: several elements in a byte, or of another type.
    staged_host: Option<Which>,
}

/// A nest, and whether it has elements. Offsets are in bits from the start of the
/// buffers.
#[derive(Clone, Debug)]
pub(super) struct Part {
    nest: Nest,
    /// Padding has no source. The width of what it fills is in bits.
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data,
    Padding { bits: u64 },
}

impl Part {
    fn is_data(&self) -> bool {
        self.kind == Kind::Data
    }

    /// The bits of what it has, elements being so wide.
    fn width(&self, elements: u64) -> u64 {
        match self.kind {
            Kind::Data => elements,
            Kind::Padding { bits } => bits,
        }
    }

    /// Whether none of its elements, so wide, lies across a place that is a multiple of
    /// `step` from `start` on. All in bits.
    fn is_whole_between(&self, start: u64, step: u64, width: u64) -> bool {
        let width = self.width(width);
        let mut end = (self.nest.destination - start) % step + width;
        for l in self.nest.loops.iter().filter(|l| l.full > 1) {
            if l.destination >= step {
                if !l.destination.is_multiple_of(step) {
                    return false;
                }
            } else {
                // Within one step, all of it.
                end = end.saturating_add((l.full - 1).saturating_mul(l.destination));
            }
        }
        end <= step
    }

    /// How far the source has moved from another part that is the same but for that,
    /// and this far in the destination, in bits modulo 2^64. `None` where it is
    /// another; padding does not say.
    pub(super) fn moved_from(&self, old: &Part, destination: u64) -> Option<Option<u64>> {
        let same = self.kind == old.kind
            && self.nest.loops == old.nest.loops
            && self.nest.destination.wrapping_sub(old.nest.destination) == destination;
        let moved =
            (self.kind == Kind::Data).then(|| self.nest.source.wrapping_sub(old.nest.source));
        same.then_some(moved)
    }
}

/// A program for a range of a destination.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) program: Program,
    /// The bytes of the source that it reads. The program has them alone as its source.
    pub(super) source: Range<u64>,
}

/// Of more parts than this, none is made in two passes, nor joined with another one that ends it: that takes some
/// microseconds for each.
const FEW_PARTS: usize = 24;

/// Where lines are streamed, pieces of padding of so many bytes are filled one by one.
const LEAST_PIECE: usize = 16;

/// More parts than this a piece does not have.
const MAX_PARTS: usize = 4 * region::MAX_REGIONS;

impl Recipe {
    /// The recipe for a pair of layouts. `None` where they are not made of digits, or
    /// of too many pieces.
    pub(super) fn new(source: &Side, destination: &Side, options: Options) -> Option<Recipe> {
        let fill = match options.padding {
            Padding::Byte(byte) => byte,
            Padding::Zero | Padding::Keep => 0,
        };
        let elements = Elements {
            source_bits: source.element_bits,
            destination_bits: destination.element_bits,
            truth: options.truth,
            source_end: source.needs.bytes.checked_mul(8)?,
            fill,
            stores: options.stores,
            alone: false,
            has_matrices: true,
            is_staged: false,
            are_few: false,
            passes: Room::Enough,
        };
        let mut recipe = Recipe {
            parts: Vec::new(),
            elements,
            order: MostFirst { source: source.most_first(), destination: destination.most_first() },
            conversions: Conversions {
                source: source.conversion,
                destination: destination.conversion,
            },
            options,
            source: source.needs,
            destination: destination.needs,
            staged_host: [(Which::Source, source), (Which::Destination, destination)]
                .into_iter()
                .find(|(_, side)| {
                    side.as_host().is_some() && side.element_bits < 8 || side.conversion.is_some()
                })
                .map(|(which, _)| which),
        };
        let is_empty = destination.bounds.contains(&0) && !destination.is_whole();
        if destination.needs.bytes == 0 || is_empty {
            return Some(recipe);
        }
        let along = options.padding == Padding::Zero;
        let regions = region::regions(source, destination, along)?;
        let part = |kind| move |nest: Nest| Part { nest: nest.upwards(), kind };
        recipe.parts.extend(regions.data.into_iter().map(part(Kind::Data)));
        if options.padding == Padding::Keep {
            return Some(recipe);
        }
        let bits = u64::from(destination.element_bits);
        recipe.parts.extend(regions.padding.into_iter().map(part(Kind::Padding { bits })));
        // What the last byte has beyond the last element.
        let end = destination.elements()?.checked_mul(bits)?;
        if !end.is_multiple_of(8) {
            let loops = vec![Loop::new(8 - end % 8, 0, 1)];
            let nest = Nest { source: 0, destination: end, loops };
            recipe.parts.push(Part { nest, kind: Kind::Padding { bits: 1 } });
        }
        Some(recipe)
    }

    /// Bytes of the whole source.
    pub(super) fn source_bytes(&self) -> u64 {
        self.source.bytes
    }

    /// How many regions there are.
    pub(super) fn regions(&self) -> usize {
        self.parts.len()
    }

    /// The program for all of it. `None` where a number does not fit.
    pub(super) fn program(&self) -> Option<Program> {
        let stores = self.options.stores;
        let leaves = self.leaves(&self.parts, stores, self.destination.bytes)?;
        self.assemble(leaves, stores, self.source, self.destination)
    }

    /// The parts that are in a range of the destination, in bytes. `None` where an
    /// element lies across an end of it, or they are too many.
    pub(super) fn parts_in(&self, range: &Range<u64>) -> Option<Vec<Part>> {
        let bits = u128::from(range.start) * 8..u128::from(range.end) * 8;
        let mut parts = Vec::new();
        for part in &self.parts {
            cut(part, &bits, self.elements.destination_bits.into(), &mut parts)?;
        }
        Some(parts)
    }

    /// The program for these parts of a range, on one of so many threads that share the
    /// work. `None` where a number does not fit.
    pub(super) fn piece(&self, parts: &[Part], range: &Range<u64>, threads: u64) -> Option<Piece> {
        let stores = self.options.stores.shared_by(threads);
        let mut leaves = self.leaves(parts, stores, range.end - range.start)?;
        let mut source: Option<Range<i128>> = None;
        for leaf in &leaves {
            let (reads, _) = program::reach(leaf)?;
            if !reads.is_empty() {
                let so_far = source.get_or_insert(reads.clone());
                *so_far = so_far.start.min(reads.start)..so_far.end.max(reads.end);
            }
        }
        let source = match source {
            Some(range) => u64::try_from(range.start).ok()?..u64::try_from(range.end).ok()?,
            None => 0..0,
        };
        if source.end > self.source.bytes {
            return None;
        }
        for leaf in &mut leaves {
            leaf.source = leaf.source.wrapping_sub(source.start.checked_mul(8)?);
            leaf.destination = leaf.destination.wrapping_sub(range.start.checked_mul(8)?);
        }
        let exactly =
            |range: &Range<u64>| Needs { bytes: range.end - range.start, at_least: false };
        let program = self.assemble(leaves, stores, exactly(&source), exactly(range))?;
        Some(Piece { program, source })
    }

    /// Where a destination can be cut without an element being cut, the coarsest first:
    /// `(offset, step)` says at `offset` and every `step` bytes from there on.
    pub(super) fn cuts(&self) -> Vec<(u64, u64)> {
        let width = u64::from(self.elements.destination_bits);
        let mut offsets: Vec<u64> = self.parts.iter().map(|p| p.nest.destination).collect();
        offsets.sort_unstable();
        let start = offsets.first().map_or(0, |offset| offset / 8 * 8);
        let loops = self.parts.iter().flat_map(|part| &part.nest.loops).filter(|l| l.full > 1);
        let mut steps: Vec<u64> = loops.map(|l| l.destination).collect();
        // Rows may be parts of their own.
        steps.extend(offsets.windows(2).map(|pair| pair[1] - pair[0]));
        steps.push(width);
        steps.sort_unstable();
        steps.dedup();
        let cuts = steps.into_iter().rev().filter(|&step| step >= 8 && step.is_multiple_of(8));
        let mut cuts: Vec<(u64, u64)> = cuts
            .filter(|&step| self.parts.iter().all(|part| part.is_whole_between(start, step, width)))
            .map(|step| (start / 8 % (step / 8), step / 8))
            .collect();
        // What is narrower than a byte begins at multiples of its width, as bytes do.
        if width < 8 {
            cuts.push((0, 1));
        }
        cuts
    }

    /// The kernels of parts of a range of the destination, which has so many bytes.
    fn leaves(&self, parts: &[Part], stores: Stores, bytes: u64) -> Option<Vec<Leaf>> {
        let Elements { source_bits, destination_bits, .. } = self.elements;
        let (data, padding): (Vec<&Part>, Vec<&Part>) =
            parts.iter().partition(|part| part.is_data());
        // What goes on is one: not before parts are cut, which they are where tiles end.
        let mut joined: Vec<Nest> = Vec::with_capacity(data.len());
        for part in data {
            let mut nest = part.nest.clone();
            while let Some(before) = joined.pop() {
                match before.followed_by(&nest, [source_bits, destination_bits]) {
                    Some(both) => nest = both,
                    None => {
                        joined.push(before);
                        break;
                    }
                }
            }
            joined.push(nest);
        }
        let count = joined.len() + padding.len();
        let elements =
            Elements { alone: count == 1, are_few: count <= FEW_PARTS, stores, ..self.elements };
        let padding = paddings(&padding, &elements, || self.are_all_of(parts, bytes))?;
        self.with_padding(joined, padding, &elements)
    }

    /// Whether parts, none of which has what another one has, are all of so many bytes.
    fn are_all_of(&self, parts: &[Part], bytes: u64) -> bool {
        let bits = |part: &Part| {
            let width = part.width(self.elements.destination_bits.into());
            let mut counts = part.nest.loops.iter().map(|l| u128::from(l.full));
            counts.try_fold(u128::from(width), u128::checked_mul)
        };
        let all = parts.iter().try_fold(0_u128, |sum, part| sum.checked_add(bits(part)?));
        all == Some(8 * u128::from(bytes))
    }

    /// The kernels of nests of elements, and those of padding.
    fn with_padding(
        &self,
        nests: Vec<Nest>,
        padding: Vec<Leaf>,
        elements: &Elements,
    ) -> Option<Vec<Leaf>> {
        let stores = elements.stores;
        if !elements.are_few || self.staged_host.is_none() {
            let leaves = leaves_of(nests, elements, self.order, self.conversions)?;
            return Some([leaves, padding].concat());
        }
        let mut leaves = leaves_of(nests.clone(), elements, self.order, self.conversions)?;
        leaves.extend(padding.iter().cloned());
        let are_direct = leaves.iter().all(|leaf| ways::is_direct(leaf, stores.tier));
        if are_direct || !cost::is_slow(&leaves, elements) {
            return Some(leaves);
        }
        let Some((of_slabs, mut slabs)) = self.slabs(&nests, elements) else { return Some(leaves) };
        let most = ways::most_in_order(self.conversions.ways(), elements, &leaves);
        slabs.extend(padding);
        Some(if Some(of_slabs) < most { slabs } else { leaves })
    }

    /// The kernels of nests with a host array that is not as kernels know it, a slab of it at a time, and what they cost.
    fn slabs(&self, nests: &[Nest], elements: &Elements) -> Option<(u64, Vec<Leaf>)> {
        let side = self.staged_host?;
        let kernels = |nests: Vec<Nest>, elements: &Elements| {
            let elements = Elements { passes: Room::Near, ..*elements };
            leaves_of(nests, &elements, MostFirst::default(), Conversions::default())
        };
        let of = |ways, room, tenths: u64| {
            let leaves = slabs::leaves(nests, elements, ways, room, kernels)?;
            let short_runs = cost::parts_of_passes(side.other(), &leaves)?;
            let cost = cost(&leaves, elements.stores)?.checked_add(short_runs)?;
            Some((cost.checked_mul(tenths)? / 10, short_runs, leaves))
        };
        let of_ways = |ways| {
            let near = of(ways, hop::IN_L1, 10);
            // Larger ones have longer runs.
            let has_long_runs = near.as_ref().is_some_and(|(_, short_runs, _)| *short_runs == 0);
            let far = if has_long_runs { None } else { of(ways, hop::IN_L2, slabs::TENTHS_IN_L2) };
            near.into_iter().chain(far).min_by_key(|(cost, ..)| *cost)
        };
        let all = if self.conversions.are_there() {
            vec![self.conversions.ways()]
        } else {
            Ways::of_packed(side, elements, self.order)
        };
        let all = all.into_iter().filter_map(of_ways);
        let (cost, _, leaves) = all.min_by_key(|(cost, ..)| *cost)?;
        Some((cost, leaves))
    }

    fn assemble(
        &self,
        leaves: Vec<Leaf>,
        stores: Stores,
        source: Needs,
        destination: Needs,
    ) -> Option<Program> {
        let scratch_bytes = leaves.iter().map(Leaf::scratch_bytes).max().unwrap_or(0);
        if scratch_bytes > MOST_SCRATCH_BYTES {
            return None;
        }
        let written = leaves
            .iter()
            .try_fold(0_u128, |sum, leaf| sum.checked_add(program::written_bytes(leaf)?));
        let writes_all = written == Some(destination.bytes.into())
            || leaves.iter().any(|leaf| leaf.fills_under(destination.bytes));
        let (nodes, streams) = program::program(leaves, stores, source.bytes, destination.bytes)?;
        let order = self.order;
        let nodes = nodes.into_boxed_slice();
        Some(Program { nodes, source, destination, order, streams, scratch_bytes, writes_all })
    }
}

/// The kernels of padding; of many small pieces all from the first to the last, before all else, if there is nothing but what
/// is written between them.
fn paddings(
    parts: &[&Part],
    elements: &Elements,
    is_all_written: impl Fn() -> bool,
) -> Option<Vec<Leaf>> {
    let fill_under = |range: &Range<u64>| choose::fill_under(range.clone(), elements.fill);
    let quicker = |run: &Leaf, pieces: &[Leaf]| {
        choose::are_much_quicker(slice::from_ref(run), pieces, elements.stores)
    };
    let (mut leaves, mut small) = (Vec::new(), Vec::new());
    let mut all: Option<Range<u64>> = None;
    for part in parts {
        let Kind::Padding { bits } = part.kind else { continue };
        let leaf = choose::padding(part.nest.clone(), bits, elements.fill)?;
        let (_, range) = program::reach(&leaf)?;
        let range = u64::try_from(range.start).ok()?..u64::try_from(range.end).ok()?;
        let may_be_small = !elements.stores.of_runs() || leaf.strip.columns < LEAST_PIECE;
        if may_be_small && quicker(&fill_under(&range)?, slice::from_ref(&leaf)) {
            let so_far = all.get_or_insert(range.clone());
            *so_far = so_far.start.min(range.start)..so_far.end.max(range.end);
            small.push(leaf);
        } else {
            leaves.push(leaf);
        }
    }
    let Some(all) = all else { return Some(leaves) };
    let run = fill_under(&all)?;
    if quicker(&run, &small) && is_all_written() {
        leaves.push(run);
    } else {
        leaves.extend(small);
    }
    Some(leaves)
}

/// The kernels of nests of elements.
fn leaves_of(
    nests: Vec<Nest>,
    elements: &Elements,
    order: MostFirst,
    conversions: Conversions,
) -> Option<Vec<Leaf>> {
    let mut leaves = Vec::new();
    let mut rest = VecDeque::from(nests);
    while let Some(nest) = rest.pop_front() {
        if let Some(found) = words_of_columns(&nest, &mut rest, elements, order, conversions) {
            leaves.extend(found);
        } else {
            leaves.extend(ways::data(nest, elements, order, conversions)?);
        }
    }
    if elements.are_few {
        tails::join_transposes(&mut leaves);
    }
    Some(leaves)
}

/// The kernels of words that have several columns each: of those of a nest, and of the part that has the
/// rest of each row, which is taken then.
fn words_of_columns(
    nest: &Nest,
    nests: &mut VecDeque<Nest>,
    elements: &Elements,
    order: MostFirst,
    conversions: Conversions,
) -> Option<Vec<Leaf>> {
    if !elements.are_few {
        return None;
    }
    let leaves = |whole: Option<&Nest>, rest: &Nest| {
        ways::words_of_columns(whole, rest, elements, order, conversions)
    };
    if let Some((i, leaves)) =
        nests.iter().enumerate().find_map(|(i, rest)| Some((i, leaves(Some(nest), rest)?)))
    {
        nests.remove(i);
        return Some(leaves);
    }
    leaves(None, nest)
}

/// The parts of a part that are in a range of the destination, in bits. `None` where
/// an element is across an end of it, or they are too many.
fn cut(part: &Part, range: &Range<u128>, element_bits: u64, parts: &mut Vec<Part>) -> Option<()> {
    let bits = part.width(element_bits);
    let mut nest = part.nest.clone();
    nest.loops.retain(|l| l.full > 1);
    nest.loops.sort_by_key(|l| std::cmp::Reverse(l.destination));
    cut_nest(nest, part.kind, bits, range, parts)
}

/// The same for a nest whose loops are sorted, the largest step first.
fn cut_nest(
    nest: Nest,
    kind: Kind,
    bits: u64,
    range: &Range<u128>,
    parts: &mut Vec<Part>,
) -> Option<()> {
    // The last bit of a destination has a number of 64 bits, what is behind it may not.
    let span = |loops: &[Loop]| {
        loops
            .iter()
            .fold(u128::from(bits), |n, l| n + u128::from(l.full - 1) * u128::from(l.destination))
    };
    let start = u128::from(nest.destination);
    let end = start + span(&nest.loops);
    if end <= range.start || range.end <= start {
        return Some(());
    }
    if parts.len() >= MAX_PARTS {
        return None;
    }
    if range.start <= start && end <= range.end {
        parts.push(Part { nest, kind });
        return Some(());
    }
    let (&outer, rest) = nest.loops.split_first()?;
    let inner = span(rest);
    let step = u128::from(outer.destination);
    let turn = |turn: u128| u64::try_from(turn).unwrap_or(u64::MAX).min(outer.full);
    // The turns that have a part in the range, and those that are in it as a whole.
    let first = match range.start.checked_sub(start + inner) {
        Some(before) => turn(before / step + 1),
        None => 0,
    };
    let last = turn((range.end - start).div_ceil(step)).max(first);
    let whole_start = turn(range.start.saturating_sub(start).div_ceil(step));
    let whole_end = match (range.end - start).checked_sub(inner) {
        Some(room) => turn(room / step + 1),
        None => 0,
    };
    let (before, whole, behind) = if whole_start < whole_end {
        (first..whole_start, whole_start..whole_end, whole_end..last)
    } else {
        (first..last, last..last, last..last)
    };
    // Mostly two at most: turns that lie in each other are not those of an image.
    let partial = (before.end - before.start).saturating_add(behind.end - behind.start);
    if partial > u64::try_from(MAX_PARTS).ok()? {
        return None;
    }
    let at = |turn: u64| Nest {
        source: nest.source.wrapping_add(turn.wrapping_mul(outer.source)),
        destination: nest.destination.wrapping_add(turn.wrapping_mul(outer.destination)),
        loops: rest.to_vec(),
    };
    for turn in before.chain(behind) {
        let (one, kind) = if turn < outer.extent {
            (at(turn), kind)
        } else {
            (at(turn).as_padding(), Kind::Padding { bits })
        };
        cut_nest(one, kind, bits, range, parts)?;
    }
    if !whole.is_empty() {
        let extent = outer.extent.min(whole.end).saturating_sub(whole.start);
        let full = whole.end - whole.start;
        let mut several = at(whole.start);
        several.loops.insert(0, Loop { extent, full, ..outer });
        parts.push(if extent > 0 {
            Part { nest: several, kind }
        } else {
            Part { nest: several.as_padding(), kind: Kind::Padding { bits } }
        });
    }
    Some(())
}
