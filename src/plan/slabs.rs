//! Packed and converted host arrays, a slab at a time.
//!
//! A slab is what follows each other in host memory, as much as the near caches hold with a byte for each element: it is
//! widened as one run, whatever its rows begin with, and words are made of its bytes then; or words are taken apart into
//! bytes, which are narrowed as one run. So neither pass has short runs, and all nests that have elements of a slab are in
//! its passes: whole words, and the rest of a row that fills none. Where elements are in words already, but the first of a
//! byte has its most significant bits, they are turned round within bytes instead; and numbers of another type are converted.

use super::choose::{self, Elements, Leaf, WORD_BITS};
use super::hop::{Hop, MOST_SCRATCH_BYTES, share};
use super::nest::{Loop, Nest};
use super::stores::{LINE, LINE_BITS};
use super::ways::{Way, Ways};
use crate::error::Side;

/// What goes through L2 takes so many tenths of the time that it takes through L1.
pub(super) const TENTHS_IN_L2: u64 = 12;

/// Where a slab has some of a loop that makes a line of words in the image, it has whole lines of these.
const WORDS_OF_LINE: u64 = LINE_BITS / WORD_BITS;

/// Nests that go through the same slabs.
struct Group {
    /// Where the first slab begins on the side that has them.
    start: u64,
    /// From one slab to the next.
    around: Vec<Loop>,
    /// What the first one has.
    nests: Vec<Nest>,
}

/// The kernels of nests of data, all there are, one side of which has in `ways` what other kernels know.
/// `kernels` makes those between that and the other side. `None` if there are no such slabs of so many bytes between the passes.
pub(super) fn leaves(
    nests: &[Nest],
    elements: &Elements,
    ways: Ways,
    room: usize,
    kernels: impl Fn(Vec<Nest>, &Elements) -> Option<Vec<Leaf>>,
) -> Option<Vec<Leaf>> {
    let (side, way) = match ways {
        Ways { source: way, destination: Way::Direct } => (Side::Source, way),
        Ways { source: Way::Direct, destination: way } => (Side::Destination, way),
        _ => return None,
    };
    let Way::Staged { array, seen, .. } = way else { return None };
    let bits = u64::from(elements.bits_of(side));
    let width = elements.destination_bits.into();
    let most = (8 * u64::try_from(room).ok()?).checked_mul(array.into())? / u64::from(seen);
    let strides = nests.iter().flat_map(|nest| &nest.loops).filter(|l| l.extent > 1);
    let mut sizes: Vec<u64> = strides.map(|l| side.stride(l)).collect();
    // All of it, if that is no more.
    let start = nests.iter().map(|nest| side.start(nest)).min()?;
    let end = nests.iter().filter_map(|nest| end_of(nest, side, bits)).max();
    sizes.extend(end.and_then(|end| end.checked_sub(start)));
    sizes.retain(|&size| (bits..=most).contains(&size));
    sizes.sort_unstable();
    sizes.dedup();
    let size = sizes
        .into_iter()
        .rev()
        .find(|&size| nests.iter().all(|nest| in_slabs(nest, side, size, bits).is_some()))?;
    let mut leaves = Vec::new();
    let mut parts = Vec::new();
    for nest in nests {
        let (around, inner) = in_slabs(nest, side, size, bits)?;
        let of_inner: Vec<Loop> = inner.loops.iter().map(|l| l.as_padding()).collect();
        let padding = choose::paddings(&around, &of_inner, nest.destination, width, elements)?;
        leaves.extend(padding);
        let around = around.into_iter().filter(|l| l.extent > 1);
        let around: Vec<Loop> = around.map(|l| Loop { full: l.extent, ..l }).collect();
        parts.push((around, inner));
    }
    parts.sort_by_key(|(_, nest)| side.start(nest));
    let mut groups: Vec<Group> = Vec::new();
    for (around, nest) in parts {
        let end = end_of(&nest, side, bits)?;
        let same = |group: &&mut Group| group.around == around && end - group.start <= size;
        match groups.iter_mut().find(same) {
            Some(group) => group.nests.push(nest),
            None => groups.push(Group { start: side.start(&nest), around, nests: vec![nest] }),
        }
    }
    for group in groups {
        for group in group.joined(side, bits, size, most)? {
            leaves.push(group.leaf(side, (array.into(), seen.into()), elements, ways, &kernels)?);
        }
    }
    Some(leaves)
}

/// One past the last bit of a nest on a side.
fn end_of(nest: &Nest, side: Side, bits: u64) -> Option<u64> {
    let span = |l: &Loop| l.extent.checked_sub(1)?.checked_mul(side.stride(l));
    let start = side.start(nest);
    nest.loops.iter().try_fold(start.checked_add(bits)?, |end, l| end.checked_add(span(l)?))
}

/// The loops of a nest that go from slab to slab, and what it has of one. `None` if that is more than a slab has.
fn in_slabs(nest: &Nest, side: Side, size: u64, bits: u64) -> Option<(Vec<Loop>, Nest)> {
    let goes_around = |l: &&Loop| side.stride(l) >= size;
    let (around, loops) = nest.loops.iter().copied().partition(|l| goes_around(&l));
    let inner = Nest { loops, ..*nest };
    (end_of(&inner, side, bits)? - side.start(nest) <= size).then_some((around, inner))
}

impl Group {
    /// How many bits from the first element of a slab to the last one.
    fn span(&self, side: Side, bits: u64) -> Option<u64> {
        let mut ends = self.nests.iter().map(|nest| end_of(nest, side, bits));
        ends.try_fold(0, |most, end| Some(u64::max(most, end? - self.start)))
    }

    /// Slabs that follow each other as one, which has so many bits at most: several that are alike, and a rest.
    fn joined(self, side: Side, bits: u64, size: u64, most: u64) -> Option<Vec<Group>> {
        let follow = |l: &Loop| side.stride(l) == size;
        let Some(i) = self.around.iter().position(follow) else { return Some(vec![self]) };
        if self.span(side, bits)? != size {
            return Some(vec![self]);
        }
        let all = self.around[i];
        let count = share(all.extent, most / size, WORDS_OF_LINE);
        let mut groups = Vec::new();
        let (lots, rest) = (all.extent / count, all.extent % count);
        for (first, lots, count) in [(0, lots, count), (lots * count, 1, rest)] {
            if count == 0 {
                continue;
            }
            let at = |start: u64, stride: u64| start.wrapping_add(first.wrapping_mul(stride));
            let with = |nest: &Nest| {
                let mut loops = nest.loops.clone();
                loops.push(Loop::new(count, all.source, all.destination));
                let source = at(nest.source, all.source);
                Nest { source, destination: at(nest.destination, all.destination), loops }
            };
            let steps = (count.wrapping_mul(all.source), count.wrapping_mul(all.destination));
            let mut around = self.around.clone();
            around[i] = Loop::new(lots, steps.0, steps.1);
            around.retain(|l| l.extent > 1);
            let start = at(self.start, size);
            groups.push(Group { start, around, nests: self.nests.iter().map(with).collect() });
        }
        Some(groups)
    }

    /// The two passes of its slabs. `None` if a slab of a destination has elements of no nest between others.
    fn leaf(
        self,
        side: Side,
        (array, seen): (u64, u64),
        elements: &Elements,
        ways: Ways,
        kernels: &impl Fn(Vec<Nest>, &Elements) -> Option<Vec<Leaf>>,
    ) -> Option<Leaf> {
        let bits = u64::from(elements.bits_of(side));
        let span = self.span(side, bits)?;
        let Group { start, around, nests } = self;
        let all = nests.iter().try_fold(0_u64, |sum, nest| {
            let elements = nest.loops.iter().try_fold(1_u64, |n, l| n.checked_mul(l.extent))?;
            sum.checked_add(elements)
        })?;
        let has_gaps = all.checked_mul(bits)? != span;
        // A slab has whole elements, or bytes.
        let mut places = around.iter().map(|l| side.stride(l)).chain([start, span]);
        let strides = nests.iter().flat_map(|nest| &nest.loops).map(|l| side.stride(l));
        let mut within = strides.chain(nests.iter().map(|nest| side.start(nest) - start));
        let are_whole =
            places.all(|at| at.is_multiple_of(array)) && within.all(|at| at.is_multiple_of(bits));
        if side == Side::Destination && has_gaps || !are_whole {
            return None;
        }
        // Kernels begin at bytes on that side.
        let other_start = nests.iter().map(|nest| side.other().start(nest)).min()? / 8 * 8;
        if !around.iter().all(|l| side.other().stride(l).is_multiple_of(8)) {
            return None;
        }
        let in_scratch = |nest: Nest| {
            // No place is further than a slab is long.
            let seen_at = |at: u64| at * seen / array;
            let loops = nest.loops.iter().map(|l| match side {
                Side::Source => Loop { source: seen_at(l.source), ..*l },
                Side::Destination => Loop { destination: seen_at(l.destination), ..*l },
            });
            let loops = loops.collect();
            match side {
                Side::Source => Nest {
                    source: seen_at(nest.source - start),
                    destination: nest.destination - other_start,
                    loops,
                },
                Side::Destination => Nest {
                    source: nest.source - other_start,
                    destination: seen_at(nest.destination - start),
                    loops,
                },
            }
        };
        let nests: Vec<Nest> = nests.into_iter().map(in_scratch).collect();
        let count = span / array;
        let scratch = count.checked_mul(seen)?;
        let scratch_bytes =
            usize::try_from(scratch.div_ceil(8)).ok()?.checked_next_multiple_of(LINE)?;
        let seen_bits = u32::try_from(bits * seen / array).ok()?;
        let into = Elements {
            destination_bits: seen_bits,
            // What narrows these later sees to it, if something does.
            truth: elements.truth && seen_bits < 8,
            fill: 0,
            stores: elements.stores.into_scratch(),
            alone: true,
            ..*elements
        };
        let out_of = Elements {
            source_bits: seen_bits,
            source_end: scratch,
            stores: elements.stores.out_of_scratch(),
            alone: true,
            ..*elements
        };
        // As kernels see both sides.
        let width = u32::try_from(seen).ok()?;
        let as_seen =
            |elements| Elements { source_bits: width, destination_bits: width, ..elements };
        let run = Nest { source: 0, destination: 0, loops: vec![Loop::new(count, seen, seen)] };
        let [ways_into, ways_out_of] = ways.of_passes();
        let (source, destination, first, second);
        match side {
            Side::Source => {
                (source, destination) = (start, other_start);
                let all = Elements { source_end: scratch, ..as_seen(into) };
                first = ways_into.staged(choose::data(run, &all)?, all.stores)?;
                second = kernels(nests, &out_of)?;
            }
            Side::Destination => {
                (source, destination) = (other_start, start);
                let all = Elements { truth: false, ..as_seen(out_of) };
                // From where the last slab begins.
                let last =
                    |at: u64, l: &Loop| at.checked_add((l.extent - 1).checked_mul(l.source)?);
                let source_end =
                    elements.source_end.checked_sub(around.iter().try_fold(other_start, last)?)?;
                first = kernels(nests, &Elements { source_end, ..into })?;
                second = ways_out_of.staged(choose::data(run, &all)?, all.stores)?;
            }
        }
        let hop = Hop { first, second, scratch_bytes };
        let mut loops = around;
        loops.sort_by_key(|l| std::cmp::Reverse(l.destination));
        // Passes within these have memory of their own.
        let fits = hop.all_bytes() <= MOST_SCRATCH_BYTES;
        fits.then(|| Leaf::of_hop(source, destination, loops, hop))
    }
}
