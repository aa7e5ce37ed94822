//! Two passes, through memory that the near caches hold.
//!
//! Kernels make words of rows, or turn rows into columns. What wants both, because a word
//! has elements of one dimension and another dimension is contiguous in host memory, no
//! kernel can do but in blocks of a few elements. So words are made first, in the order of the
//! source, and turned then; or turned first, and taken apart then:
//!
//! ```text
//! source            [h][w][c]     elements of one byte
//! scratch memory    [w][c][h]     words of four elements: interleaved
//! destination       [c][w][h]     transposed, four bytes at a time
//! ```
//!
//! Each pass is a nest of its own, for which kernels are chosen as for any other.

use std::borrow::Cow;

use super::choose::{self, Elements, Leaf, Room, WORD_BITS, paddings};
use super::cost::{self, cost};
use super::nest::{Loop, Nest};
use super::staged::{STAGES_BYTES, Stages};
use super::stores::{LINE, LINE_BITS};
use super::ways::{MostFirst, Ways};
use crate::error::Side as Which;

/// The two passes. Offsets are from where what they share begins in the source, in scratch
/// memory and in the destination.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    /// From the source into scratch memory.
    pub(super) first: Vec<Leaf>,
    /// From there into the destination.
    pub(super) second: Vec<Leaf>,
    /// How much of the scratch memory is used.
    pub(super) scratch_bytes: usize,
}

impl Hop {
    /// How much scratch memory its passes work on, that for their stages, or passes in their place, included, which is behind
    /// what they have between them.
    pub(super) fn all_bytes(&self) -> usize {
        let of_passes = self.first.iter().chain(&self.second).map(Leaf::scratch_bytes);
        self.scratch_bytes + of_passes.max().unwrap_or(0)
    }
}

/// So many bytes are between two passes at most.
pub(crate) const HOP_BYTES: usize = IN_L2 + MOST_APART * LINE;

/// And so many are there for them, for passes within them, and for stages.
pub(crate) const MOST_SCRATCH_BYTES: usize = HOP_BYTES + STAGES_BYTES;

/// What passes have between them. L2 holds more of what is read and written, in longer runs: within L3, and of
/// words that are [worth them](are_worth_passes) past the caches too.
pub(super) const IN_L1: usize = STAGES_BYTES;
pub(super) const IN_L2: usize = 128 << 10;

/// Places in scratch memory that are multiples of so many bytes apart get a line between them, as they would share few sets
/// of the caches: so many at most.
const CROWDED: usize = 512;
const MOST_APART: usize = IN_L2 / CROWDED;

/// Two passes read or write the host array by longer runs. Where words of an image that follow each other are from rows
/// that are a page apart or more, [scattered](Rows) ones, nothing is gained if each page has fewer bytes for them than this.
const PAGE: u64 = 4096;
const LEAST_OF_PAGE: u64 = 128;

/// Nor is it of so many, as one pass is as quick then: packing, and unpacking. The first two are for cores on which what is
/// streamed is slow unless some lines of a run follow each other.
const ENOUGH_OF_PAGE: [u64; 2] = [2048, 4096];
const ENOUGH_OF_PAGE_ELSEWHERE: [u64; 2] = [2048, 1024];

/// The same of bytes, and of 16 bits, where narrow elements are transposed by lines.
const ENOUGH_OF_PAGE_BY_LINES: [[u64; 2]; 2] = [[768, 1024], [256, 256]];

/// Nor if rows that are nearer have fewer bytes than this, those of a word's elements together.
const LEAST_OF_WORD: u64 = 128;

/// Nor where a tile has fewer words beside each other, on either side.
const LEAST_OF_TILE: u64 = 16;

/// The widest word that is made, in bits.
const MAX_WORD: u64 = 128;

/// So many elements of what is contiguous on one side are done at a time, and so many of what is
/// on the other one: some lines of the caches of each.
const NEAR: u64 = 256;
const BESIDE: u64 = 128;

/// And so many bits of rows that begin within bytes.
const NEAR_BITS: u64 = 8 * 512;

/// Runs of so many bits are long enough to be written on their own.
const RUN: u64 = 8 * 512;

/// The kernels that carry out a nest of data in two passes: where its [words](are_worth_passes) are worth these, and
/// where they are quicker than what `direct` does, which is slow. The nest and the elements are as kernels see them, if
/// passes are to have stages; their places then count so, too.
pub(super) fn data(
    nest: &Nest,
    elements: &Elements,
    ways: Ways,
    direct: &[Leaf],
) -> Option<Vec<Leaf>> {
    let direct = &kernels_alone(direct, ways);
    let is_slow = cost::is_slow(direct, elements);
    let stores = elements.stores;
    // What is worth them was measured without stages.
    let may_be_worth = |side| {
        ways == Ways::DIRECT
            && elements.passes == Room::Enough
            && (stores.of_words(side, Rows::Near) || stores.of_words(side, Rows::Scattered))
    };
    let sides = [Which::Destination, Which::Source];
    if !is_slow && !sides.into_iter().any(may_be_worth) {
        return None;
    }
    let nest = nest.clone().canonical();
    let of_words = sides
        .into_iter()
        .filter(|&side| may_be_worth(side) && are_worth_passes(side, &nest, elements))
        .find_map(|side| Passes::of_words(side, &nest, elements)?.leaves(elements, ways, IN_L2));
    if of_words.is_some() || !is_slow {
        return of_words;
    }
    let is_near = elements.passes == Room::Near || stores.are_shuffled() || stores.of_runs();
    let room = if is_near { IN_L1 } else { IN_L2 };
    let mut best = None;
    // What is but a little quicker is not worth another pass.
    let mut least = cost(direct, elements.stores)? / 4 * 3;
    for passes in [
        Passes::of_words(Which::Destination, &nest, elements),
        Passes::of_rows(Which::Destination, &nest, elements),
        Passes::of_words(Which::Source, &nest, elements),
        Passes::of_rows(Which::Source, &nest, elements),
        Passes::of_both_words(Which::Destination, &nest, elements),
        Passes::of_both_words(Which::Source, &nest, elements),
        Passes::of_padded_runs(&nest, elements),
    ] {
        let Some(leaves) = passes.and_then(|passes| passes.leaves(elements, ways, room)) else {
            continue;
        };
        let Some(cost) = cost(&kernels_alone(&leaves, ways), elements.stores) else { continue };
        if cost < least {
            (best, least) = (Some(leaves), cost);
        }
    }
    best
}

/// What is compared of leaves: without their stages, if these convert, as elements are converted once, whether in one
/// pass or in two.
fn kernels_alone(leaves: &[Leaf], ways: Ways) -> Cow<'_, [Leaf]> {
    if ways.convert() { without_stages(leaves).into() } else { leaves.into() }
}

fn without_stages(leaves: &[Leaf]) -> Vec<Leaf> {
    let alone = |leaf: &Leaf| {
        let hop = leaf.hop.as_ref().map(|hop| {
            let (first, second) = (without_stages(&hop.first), without_stages(&hop.second));
            Box::new(Hop { first, second, scratch_bytes: hop.scratch_bytes })
        });
        Leaf { stages: Stages::default(), hop, ..leaf.clone() }
    };
    leaves.iter().map(alone).collect()
}

/// Where the rows of a host array begin that have words which follow each other in an image.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// A page apart or more, upwards.
    Scattered,
    /// Less, or the other way.
    Near,
}

/// Whether a side has words of several elements, another dimension is contiguous on the other side, and the words are
/// quicker in two passes than in one that does this well.
fn are_worth_passes(side: Which, nest: &Nest, elements: &Elements) -> bool {
    let bits = u64::from(elements.source_bits);
    if !matches!(elements.source_bits, 8 | 16) || elements.source_bits != elements.destination_bits
    {
        return false;
    }
    let other = |l: &Loop| side.other().stride(l);
    let (word, others): (Vec<&Loop>, Vec<&Loop>) =
        nest.loops.iter().partition(|l| side.stride(l) == bits);
    let next = others.iter().min_by_key(|l| side.stride(l));
    let row = others.iter().find(|l| other(l) == bits);
    let (Some(word), Some(next), Some(row)) = (word.first(), next, row) else { return false };
    let rows =
        if (8 * PAGE..=u64::MAX / 2).contains(&other(next)) { Rows::Scattered } else { Rows::Near };
    if side.stride(next) != u64::from(u32::BITS)
        || other(next) == bits
        || next.extent.min(row.extent) < LEAST_OF_TILE
        || !elements.stores.of_words(side, rows)
    {
        return false;
    }
    if rows == Rows::Near {
        let of_word = row.extent.saturating_mul(bits / 8).saturating_mul(word.extent);
        return word.extent > 1 && of_word >= LEAST_OF_WORD;
    }
    let is_slow_by_lines = elements.stores.core.streams_by_runs();
    let goes_by_lines = elements.stores.transposes_by_lines();
    let [packing, unpacking] = match elements.source_bits {
        _ if is_slow_by_lines => ENOUGH_OF_PAGE,
        8 if goes_by_lines => ENOUGH_OF_PAGE_BY_LINES[0],
        _ if goes_by_lines => ENOUGH_OF_PAGE_BY_LINES[1],
        _ => ENOUGH_OF_PAGE_ELSEWHERE,
    };
    let enough = match side {
        Which::Destination => packing,
        Which::Source => unpacking,
    };
    // Of several pages prefetchers follow each, unless these share few sets of the caches.
    let are_followed =
        side == Which::Destination && !is_slow_by_lines && !other(next).is_multiple_of(8 * PAGE);
    // Rows of whole lines are written as such by one pass.
    let are_lines = other(word).is_multiple_of(LINE_BITS);
    let are_written = goes_by_lines && side == Which::Source && are_lines;
    let of_page = other(word).checked_mul(word.extent).map(|bits| bits / 8);
    !are_followed
        && !are_written
        && of_page.is_some_and(|bytes| (LEAST_OF_PAGE..enough).contains(&bytes))
}

/// The kernels of two passes where rows of packed elements begin within bytes: one pass moves them to where each of them
/// has lines of its own, or from there, which is quicker than to have a byte for each element. `None` if `direct` is as
/// quick.
pub(super) fn of_rows_within_bytes(
    nest: &Nest,
    elements: &Elements,
    order: MostFirst,
    direct: &[Leaf],
) -> Option<Vec<Leaf>> {
    let nest = nest.clone().canonical();
    let leaves = |side: Which, nest: &Nest| {
        let passes = Passes::of_rows_within_bytes(side, nest, elements, order)?;
        passes.leaves(elements, Ways::DIRECT, IN_L1)
    };
    let of_side = |side| {
        leaves(side, &nest).or_else(|| {
            let [lines, rest] = in_long_rows(side, &nest, elements.source_bits.into())?;
            Some([leaves(side, &lines)?, leaves(side, &rest)?].concat())
        })
    };
    let both = [Which::Source, Which::Destination].into_iter().filter_map(of_side);
    let both = both.filter_map(|leaves| Some((cost(&leaves, elements.stores)?, leaves)));
    let (least, leaves) = both.min_by_key(|(cost, _)| *cost)?;
    (least < cost(direct, elements.stores)?).then_some(leaves)
}

/// The kernels of two passes with memory between them that has elements in the order of a side which is staged: one pass
/// only brings them there, or takes them away.
pub(super) fn in_order_of_stage(nest: &Nest, elements: &Elements, ways: Ways) -> Option<Vec<Leaf>> {
    let side = match (ways.source.is_staged(), ways.destination.is_staged()) {
        (true, false) => Which::Source,
        (false, true) => Which::Destination,
        _ => return None,
    };
    let nest = nest.clone().canonical();
    Passes::in_order(side, &nest, elements)?.leaves(elements, ways, IN_L2)
}

/// The same where a side goes down: it goes up in memory between the passes.
pub(super) fn in_order_of_reversed(nest: &Nest, elements: &Elements) -> Option<Vec<Leaf>> {
    let nest = nest.clone().canonical();
    if nest.loops.iter().all(|l| l.source.cast_signed() >= 0) {
        return None;
    }
    let passes = |side| {
        let passes = Passes::in_order(side, &nest, elements)?;
        let leaves = passes.leaves(elements, Ways::DIRECT, IN_L2)?;
        Some((cost(&leaves, elements.stores)?, leaves))
    };
    let both = [Which::Source, Which::Destination].into_iter().filter_map(passes);
    Some(both.min_by_key(|(cost, _)| *cost)?.1)
}

/// A nest whose rows are too long for scratch memory on a side as two: of whole lines, which can be cut, and of the rest of
/// each row.
fn in_long_rows(side: Which, nest: &Nest, bits: u64) -> Option<[Nest; 2]> {
    let i = nest.loops.iter().position(|l| side.stride(l) == bits)?;
    let (row, part) = (nest.loops[i], NEAR_BITS / bits);
    // Half of what is done at a time is left, or more.
    let of_lines = row.extent.checked_sub(part / 2)? / part * part;
    if of_lines == 0 {
        return None;
    }
    let (mut lines, mut rest) = (nest.clone(), nest.clone());
    lines.loops[i] = Loop { extent: of_lines, full: of_lines, ..row };
    rest.loops[i] = Loop { extent: row.extent - of_lines, full: row.full - of_lines, ..row };
    rest.source = rest.source.wrapping_add(of_lines.wrapping_mul(row.source));
    rest.destination = rest.destination.wrapping_add(of_lines.wrapping_mul(row.destination));
    Some([lines, rest])
}

/// A nest as two.
struct Passes {
    source: u64,
    destination: u64,
    /// In the order of scratch memory.
    along: Vec<Along>,
    /// Of which side this is the order.
    order_of: Which,
    /// What is contiguous on the side whose order this is, and on the other one.
    near: usize,
    beside: usize,
    /// Of words of both sides: how many words of one side have the elements of one of the other.
    words_of_other: u64,
    /// Of an element in scratch memory.
    bits: u32,
    /// The first pass may read to here.
    source_end: u64,
    padding: Vec<Leaf>,
    /// What there is to know if bits are copied on one side.
    of_bits: Option<OfBits>,
}

/// Rows that begin within bytes, and have lines of their own in scratch memory.
#[derive(Clone, Copy)]
struct OfBits {
    /// Where they begin within bytes.
    side: Which,
    /// The loops of a row, which are the first ones.
    loops: usize,
    /// Of both sides; the other one has the order that kernels know.
    order: MostFirst,
}

/// Of so many, at most so many at a time, and about as many each time: whole lines of them, where there is room for one.
pub(super) fn share(extent: u64, most: u64, line: u64) -> u64 {
    let most = most.max(1);
    let even = extent.div_ceil(extent.div_ceil(most));
    if even == extent || most < line {
        return even;
    }
    let lines = even.next_multiple_of(line);
    if lines <= most { lines } else { most / line * line }
}

/// A loop of both passes.
#[derive(Clone, Copy)]
struct Along {
    all: Loop,
    /// How many there are in the first pass, in scratch memory, and in the second pass.
    read: u64,
    made: u64,
    written: u64,
    /// It is the elements of a word, or a whole row of them, which stay together.
    is_word: bool,
}

impl Along {
    fn words(all: Loop) -> Along {
        Along { all, read: all.extent, made: all.extent, written: all.extent, is_word: false }
    }

    /// A row that begins within bytes on a side. What it has of its last byte, kernels take for all of it: zeros that are
    /// written as padding then, or padding that is read.
    fn of_whole_bytes(side: Which, row: Loop, nest: &Nest, elements: &Elements) -> Option<Along> {
        let bits = u64::from(elements.source_bits);
        let whole = row.extent.checked_next_multiple_of(8 / bits)?;
        let is_word = true;
        Some(match side {
            Which::Source => {
                let is_padding = row.full >= whole && elements.fill == 0;
                let made = if is_padding { whole } else { row.extent };
                Along { all: row, read: row.extent, made, written: made, is_word }
            }
            Which::Destination => {
                let last = |l: &Loop| (l.extent - 1).checked_mul(l.source);
                let mut loops = nest.loops.iter();
                let ends = loops.try_fold(nest.source, |at, l| at.checked_add(last(l)?))?;
                let behind = (whole - row.extent).checked_mul(row.source)?.checked_add(bits)?;
                if ends.checked_add(behind)? > elements.source_end {
                    return None;
                }
                Along { all: row, read: whole, made: whole, written: row.extent, is_word }
            }
        })
    }
}

/// How far the loops of a nest go on a side, but the one of its elements, which have so many bits.
fn strides_of(nest: &Nest, side: Which, bits: u64) -> impl Iterator<Item = u64> {
    nest.loops.iter().map(move |l| side.stride(l)).filter(move |&stride| stride != bits)
}

/// The loop with the least stride at a side, up or down.
fn least(along: &[Along], side: Which) -> Option<usize> {
    let words = along.iter().enumerate().filter(|(_, a)| !a.is_word);
    Some(words.min_by_key(|(_, a)| side.distance(&a.all))?.0)
}

impl Passes {
    /// Words in the order of the other side: made first and turned then, or turned first and
    /// taken apart then.
    fn of_words(side: Which, nest: &Nest, elements: &Elements) -> Option<Passes> {
        let mut words = Words::of(side, nest, elements)?;
        // Padding within the same words of both sides is written with them.
        let bits = elements.bits_of(side).into();
        let is_same = |to: &Words| {
            let is_there = to.word.source == bits && to.word.destination == words.word.destination;
            let is_one = to.word.extent == 1 && words.word.destination == 0;
            is_there || is_one
        };
        if side == Which::Source
            && let Some(same) = Words::of(Which::Destination, nest, elements).filter(is_same)
        {
            words.word = Loop { source: bits, ..same.word };
            words.padding = same.padding;
        }
        let Words { word, whole, are_readable, .. } = words;
        let (read, written) = match side {
            Which::Source if word.extent < whole && !are_readable => return None,
            Which::Source => (whole, word.extent),
            Which::Destination => (word.extent, whole),
        };
        let word = Along { all: word, read, made: whole, written, is_word: true };
        let mut along: Vec<Along> = words.others.into_iter().map(Along::words).collect();
        along.sort_by_key(|a| side.other().stride(&a.all));
        along.insert(0, word);
        Passes {
            source: nest.source,
            destination: nest.destination,
            order_of: side.other(),
            near: least(&along, side.other())?,
            beside: least(&along, side)?,
            words_of_other: 1,
            along,
            bits: elements.bits_of(side),
            source_end: 1,
            padding: words.padding,
            of_bits: None,
        }
        .checked()
    }

    /// Words of this side in the order of the other one, which has words of other elements: rows of which these are made, or
    /// that they are taken apart into, have many words of this side.
    fn of_both_words(side: Which, nest: &Nest, elements: &Elements) -> Option<Passes> {
        let nest = &Words::apart(nest, elements);
        let mut passes = Passes::of_words(side, nest, elements)?;
        let bits = u64::from(elements.bits_of(side.other()));
        let other = |a: &Along| side.other().stride(&a.all);
        if bits >= 8 || passes.along.len() < 3 || other(&passes.along[1]) != bits {
            return None;
        }
        match side {
            // Padding within words is written with them.
            Which::Source => {
                let Words { word, padding, .. } = Words::of(Which::Destination, nest, elements)?;
                passes.along[1].all = word;
                passes.padding = padding;
            }
            // And what is behind other elements by itself.
            Which::Destination => passes.along[1].all.full = passes.along[1].all.extent,
        }
        passes.along[1].is_word = true;
        passes.words_of_other = passes.along[1].made;
        passes.along.swap(1, 2);
        passes.near = 1;
        passes.beside = least(&passes.along, side)?;
        Some(passes)
    }

    /// Rows, as they are contiguous on this side: turned first and made into words then, or taken
    /// out of words first and turned then.
    fn of_rows(side: Which, nest: &Nest, elements: &Elements) -> Option<Passes> {
        let words = Words::of(side, nest, elements)?;
        let source_end = if words.are_readable { elements.source_end } else { 1 };
        let word = Along { is_word: true, ..Along::words(words.word) };
        let mut along: Vec<Along> = words.others.into_iter().map(Along::words).collect();
        along.push(word);
        along.sort_by_key(|a| side.other().stride(&a.all));
        let row = along.remove(least(&along, side)?);
        along.insert(0, row);
        Passes {
            source: nest.source,
            destination: nest.destination,
            order_of: side.other(),
            near: least(&along[1..], side.other()).map_or(0, |i| i + 1),
            beside: 0,
            words_of_other: 1,
            along,
            bits: elements.bits_of(side.other()),
            source_end,
            padding: words.padding,
            of_bits: None,
        }
        .checked()
    }

    /// Elements in the order of this side, which one pass only brings there or takes away. That side may go down.
    fn in_order(side: Which, nest: &Nest, elements: &Elements) -> Option<Passes> {
        let nest = match side {
            Which::Source => nest.clone(),
            Which::Destination => nest.clone().upwards_in_source(),
        };
        let width = elements.destination_bits.into();
        let (mut along, padding, source_end);
        if let Some(words) = Words::of(side.other(), &nest, elements) {
            along = vec![Along { is_word: true, ..Along::words(words.word) }];
            along.extend(words.others.into_iter().map(Along::words));
            padding = words.padding;
            source_end = if words.are_readable { elements.source_end } else { 1 };
        } else {
            padding = paddings(&nest.loops, &[], nest.destination, width, elements)?;
            let data = nest.loops.iter().filter(|l| l.extent > 1);
            along = data.map(|l| Along::words(Loop { full: l.extent, ..*l })).collect();
            source_end = 1;
        }
        let moves =
            |a: &Along| side.other().stride(&a.all).cast_signed() > 0 && side.stride(&a.all) != 0;
        let begins_at_byte = (nest.source | nest.destination).is_multiple_of(8);
        if !begins_at_byte || !along.iter().filter(|a| !a.is_word).all(moves) {
            return None;
        }
        along.sort_by_key(|a| side.distance(&a.all));
        Some(Passes {
            source: nest.source,
            destination: nest.destination,
            order_of: side,
            near: least(&along, side)?,
            beside: least(&along, side.other())?,
            words_of_other: 1,
            along,
            bits: elements.bits_of(side),
            source_end,
            padding,
            of_bits: None,
        })
    }

    /// Runs of the destination as a whole, with the padding behind what they have.
    fn of_padded_runs(nest: &Nest, elements: &Elements) -> Option<Passes> {
        if !elements.stores.of_runs() || !nest.loops.iter().any(|l| l.is_padded()) {
            return None;
        }
        let (mut others, mut run) = (nest.loops.clone(), Vec::new());
        let mut step = u64::from(elements.destination_bits);
        while let Some(i) = others.iter().position(|l| l.destination == step) {
            let longer = step.checked_mul(others[i].full)?;
            let is_enough = longer > RUN && !others.iter().any(|l| l.is_padded());
            if is_enough || longer.div_ceil(8) > u64::try_from(IN_L1).ok()? {
                break;
            }
            run.push(others.remove(i));
            step = longer;
        }
        let width = elements.destination_bits.into();
        let inner: Vec<Loop> = run.iter().map(|l| l.as_padding()).collect();
        let padding = paddings(&others, &inner, nest.destination, width, elements)?;
        others.retain(|l| l.extent > 1);
        others.sort_by_key(|l| l.destination);
        let of_run = |all: Loop| Along {
            all,
            read: all.extent,
            made: all.full,
            written: all.full,
            is_word: true,
        };
        let along = run.into_iter().map(of_run).chain(others.into_iter().map(Along::words));
        let along: Vec<Along> = along.collect();
        Passes {
            source: nest.source,
            destination: nest.destination,
            order_of: Which::Source,
            near: least(&along, Which::Source)?,
            beside: least(&along, Which::Destination)?,
            words_of_other: 1,
            along,
            bits: elements.destination_bits,
            source_end: 1,
            padding,
            of_bits: None,
        }
        .checked()
    }

    /// Rows that begin within bytes on this side, each in lines of its own.
    fn of_rows_within_bytes(
        side: Which,
        nest: &Nest,
        elements: &Elements,
        order: MostFirst,
    ) -> Option<Passes> {
        // What is copied is put in the order that kernels know, and no padding beside it is written.
        let is_right = match side {
            Which::Source => !order.destination,
            Which::Destination => !order.source && !nest.loops.iter().any(|l| l.is_padded()),
        };
        let Elements { source_bits, destination_bits, .. } = *elements;
        let bits = u64::from(source_bits);
        let start = side.of(nest.source, nest.destination);
        let mut strides = strides_of(nest, side, bits).chain([start]);
        let goes_up = |l: &Loop| l.source.cast_signed() > 0 && l.destination.cast_signed() > 0;
        if !is_right
            || source_bits != destination_bits
            || bits >= 8
            || strides.all(|stride| stride.is_multiple_of(8))
            || !nest.loops.iter().all(goes_up)
        {
            return None;
        }
        // A row is what follows each other, as far as its parts begin at bytes if it does.
        let mut others = nest.loops.clone();
        let (mut row, mut step) = (Vec::new(), bits);
        while row.is_empty() || step.is_multiple_of(8) {
            let Some(i) = others.iter().position(|l| side.stride(l) == step) else { break };
            step = step.checked_mul(others[i].extent)?;
            row.push(others.remove(i));
        }
        let &first = row.first()?;
        others.sort_by_key(|l| side.stride(l));
        // Words stay as they are, with the padding within them.
        let is_word = |l: &Loop| side.other().stride(l) == bits;
        let is_row_of_lines = !first.is_padded() && step.is_multiple_of(LINE_BITS);
        let has_ends = row.len() == 1 && !is_row_of_lines;
        if row.len() == 1 && is_word(&first) || !has_ends && !step.is_multiple_of(8) {
            return None;
        }
        let whole = |&(i, l): &(usize, &Loop)| has_ends && i == 0 || is_word(l);
        let (inner, outer): (Vec<_>, Vec<_>) =
            row.iter().chain(&others).enumerate().partition(whole);
        let inner: Vec<Loop> = inner.into_iter().map(|(_, l)| l.as_padding()).collect();
        let outer: Vec<Loop> = outer.into_iter().map(|(_, l)| *l).collect();
        let padding = paddings(&outer, &inner, nest.destination, bits, elements)?;
        let along = |l: &Loop| Along { is_word: is_word(l), ..Along::words(*l) };
        let mut all: Vec<Along> = row.iter().chain(&others).map(along).collect();
        if has_ends {
            all[0] = Along::of_whole_bytes(side, first, nest, elements)?;
        }
        // Whole words can be read, whatever is there besides elements.
        let word = strides_of(nest, Which::Source, bits).min()?;
        let are_at_words = strides_of(nest, Which::Source, bits)
            .chain([nest.source, elements.source_end])
            .all(|at| at.is_multiple_of(word));
        Some(Passes {
            source: nest.source,
            destination: nest.destination,
            order_of: side,
            near: row.len() - 1,
            beside: least(&all, side.other()).unwrap_or(0),
            words_of_other: 1,
            along: all,
            bits: source_bits,
            source_end: if are_at_words { elements.source_end } else { 1 },
            padding,
            of_bits: Some(OfBits { side, loops: row.len(), order }),
        })
    }

    /// Only what begins at a byte, and goes up on both sides.
    fn checked(self) -> Option<Passes> {
        let goes_up = |l: &Loop| l.source.cast_signed() > 0 && l.destination.cast_signed() > 0;
        let words = self.along.iter().filter(|a| !a.is_word);
        let begins_at_byte = (self.source | self.destination).is_multiple_of(8);
        (begins_at_byte && words.map(|a| a.all).all(|l| goes_up(&l))).then_some(self)
    }

    /// How many of each of the loops are done at a time, through so much scratch memory.
    fn tile(&self, room: usize) -> Option<Vec<u64>> {
        let mut words = self.along.iter().filter(|a| a.is_word).map(|a| a.made);
        let element = words.try_fold(u64::from(self.bits), u64::checked_mul)?.max(1);
        let room = u64::try_from(room).ok()? * 8;
        let line = if LINE_BITS.is_multiple_of(element) { LINE_BITS / element } else { 1 };
        let mut tile = vec![1; self.along.len()];
        let mut grow = |i: usize, most: u64| {
            let Along { made, is_word, .. } = self.along[i];
            if !is_word {
                let so_far = std::mem::replace(&mut tile[i], 1);
                let is_in_row = self.of_bits.is_some_and(|of_bits| i < of_bits.loops);
                let others = self.scratch_bits(&tile, !is_in_row)?;
                // Parts of rows end with bytes, if not with lines.
                let line = if is_in_row { line.max(u64::from(8 / self.bits)) } else { line };
                tile[i] = so_far.max(share(made, most.min(room / others), line));
            }
            Some(())
        };
        match self.of_bits {
            // All of a row, if it is not long.
            Some(OfBits { loops, .. }) => {
                let mut near = NEAR_BITS / u64::from(self.bits);
                for i in 0..loops {
                    grow(i, near)?;
                    near /= self.along[i].made.min(near);
                }
            }
            None => grow(self.near, NEAR / self.elements_of_near().max(self.words_of_other))?,
        }
        grow(self.beside, BESIDE / self.words_of_other)?;
        for i in 0..self.along.len() {
            grow(i, u64::MAX)?;
        }
        Some(tile)
    }

    /// How many elements each step of what is near moves: those of words that lie nearer than it on the same side.
    fn elements_of_near(&self) -> u64 {
        let order = |l: &Loop| self.order_of.distance(l);
        let near = order(&self.along[self.near].all);
        let words = self.along.iter().filter(|a| a.is_word && order(&a.all) < near);
        words.map(|a| a.all.extent).product()
    }

    /// How much scratch memory a tile of so many takes, in bits: with rows of whole lines, or as if they followed each other.
    fn scratch_bits(&self, tile: &[u64], of_lines: bool) -> Option<u64> {
        let all = self.along.iter().zip(tile).enumerate();
        all.into_iter().try_fold(u64::from(self.bits), |bits, (i, (along, &size))| {
            let count = if along.is_word { along.made } else { size };
            self.step_behind(i, bits, count, of_lines)
        })
    }

    /// From one to the next of what so many steps of a loop make in scratch memory, in bits: lines, if it ends a row that
    /// has lines of its own.
    fn step_behind(&self, i: usize, step: u64, count: u64, of_lines: bool) -> Option<u64> {
        let bits = step.checked_mul(count)?;
        let ends_row = self.of_bits.is_some_and(|of_bits| i + 1 == of_bits.loops);
        if of_lines && ends_row { bits.checked_next_multiple_of(LINE_BITS) } else { Some(bits) }
    }

    /// Whether bits are copied from this side, or to it.
    fn is_of_bits(&self, side: Which) -> bool {
        self.of_bits.is_some_and(|of_bits| of_bits.side == side)
    }

    /// The kernels of all tiles, through so much scratch memory.
    fn leaves(self, elements: &Elements, ways: Ways, room: usize) -> Option<Vec<Leaf>> {
        let tile = self.tile(room)?;
        let mut tiles: Vec<Vec<(u64, u64, u64)>> = vec![Vec::new()];
        for (along, &size) in self.along.iter().zip(&tile) {
            // A word is one thing.
            let (extent, size) = if along.is_word { (1, 1) } else { (along.made, size) };
            let (whole, rest) = (extent / size, extent % size);
            let parts = [(0, whole, size), (whole * size, 1, rest)];
            let parts = parts.into_iter().filter(|&(_, lots, size)| lots > 0 && size > 0);
            let with = |part| tiles.iter().map(move |tile| [tile.as_slice(), &[part]].concat());
            tiles = parts.flat_map(with).collect();
        }
        let leaves = tiles.into_iter().map(|tile| self.leaf(&tile, elements, ways, room));
        let mut leaves = leaves.collect::<Option<Vec<Leaf>>>()?;
        leaves.extend(self.padding);
        Some(leaves)
    }

    /// The two passes over tiles: of each loop the first element, how many tiles there are
    /// along it, and how many elements of it a tile has.
    fn leaf(
        &self,
        at: &[(u64, u64, u64)],
        elements: &Elements,
        ways: Ways,
        room: usize,
    ) -> Option<Leaf> {
        let (mut source, mut destination) = (self.source, self.destination);
        let (mut first, mut second, mut loops) = (Vec::new(), Vec::new(), Vec::new());
        let mut step = u64::from(self.bits);
        let has_several = |(a, &(.., size)): (&Along, &(u64, u64, u64))| !a.is_word && size > 1;
        let outermost = self.along.iter().zip(at).rposition(has_several);
        for (i, (&Along { all, read, made, written, is_word }, &(start, lots, size))) in
            self.along.iter().zip(at).enumerate()
        {
            let bytes = usize::try_from(step / 8).ok()?;
            let is_crowded = bytes > 0 && bytes.is_multiple_of(CROWDED);
            if Some(i) == outermost && is_crowded && room > IN_L1 {
                step = step.checked_add(LINE_BITS)?;
            }
            if is_word {
                // Words are whole in scratch memory, or where they are written.
                let full = if made > read { made } else { read };
                first.push(Loop { full, ..Loop::new(read, all.source, step) });
                let full = written.max(all.full);
                second.push(Loop { full, ..Loop::new(written, step, all.destination) });
                step = self.step_behind(i, step, made, true)?;
                continue;
            }
            source = source.wrapping_add(start.wrapping_mul(all.source));
            destination = destination.wrapping_add(start.wrapping_mul(all.destination));
            if lots > 1 {
                let steps = (size.wrapping_mul(all.source), size.wrapping_mul(all.destination));
                loops.push(Loop::new(lots, steps.0, steps.1));
            }
            first.push(Loop::new(size, all.source, step));
            second.push(Loop::new(size, step, all.destination));
            step = self.step_behind(i, step, size, true)?;
        }
        let scratch_bytes =
            usize::try_from(step.div_ceil(8)).ok()?.checked_next_multiple_of(LINE)?;
        if scratch_bytes > HOP_BYTES {
            return None;
        }
        // Tiles begin at bytes, but where bits are copied.
        for side in [Which::Source, Which::Destination] {
            let start = side.of(source, destination);
            let mut places = loops.iter().map(|l| side.stride(l)).chain([start]);
            if !self.is_of_bits(side) && !places.all(|at| at.is_multiple_of(8)) {
                return None;
            }
        }
        loops.sort_by_key(|l| std::cmp::Reverse(Which::Destination.distance(l)));
        let nest = |loops| Nest { source: 0, destination: 0, loops };
        let is_first = self.bits == elements.destination_bits;
        let into = Elements {
            destination_bits: self.bits,
            truth: elements.truth && is_first,
            source_end: self.source_end,
            fill: 0,
            stores: elements.stores.into_scratch(),
            alone: true,
            ..*elements
        };
        let out_of = Elements {
            source_bits: self.bits,
            truth: elements.truth && !is_first,
            source_end: step,
            stores: elements.stores.out_of_scratch(),
            alone: true,
            ..*elements
        };
        let [ways_into, ways_out_of] = ways.of_passes();
        let pass = |side, loops, ways: Ways, elements: &Elements| match self.of_bits {
            Some(of_bits) if of_bits.side == side => {
                let apart = side == Which::Source;
                choose::copies_of_bits(nest(loops), elements, of_bits.order, apart)
            }
            _ => ways.staged(choose::data(nest(loops), elements)?, elements.stores),
        };
        let hop = Hop {
            first: pass(Which::Source, first, ways_into, &into)?,
            second: pass(Which::Destination, second, ways_out_of, &out_of)?,
            scratch_bytes,
        };
        Some(Leaf::of_hop(source, destination, loops, hop))
    }
}

/// The words of a side.
struct Words {
    /// Over the elements of one.
    word: Loop,
    /// So many it has, and no elements perhaps.
    whole: u64,
    others: Vec<Loop>,
    /// What no pass writes.
    padding: Vec<Leaf>,
    /// Whether they are in the source and all of each can be read, whatever is there besides
    /// elements.
    are_readable: bool,
}

/// The rows of a full tile go on with those of the next column, as one loop: as one over the elements of a word, so many,
/// and one over words.
fn in_words(row: Loop, whole: u64) -> Option<(Loop, Loop)> {
    let are_words = [row.extent, row.full].iter().all(|n| n.is_multiple_of(whole));
    are_words.then_some((
        Loop::new(whole, row.source, row.destination),
        Loop {
            extent: row.extent / whole,
            full: row.full / whole,
            source: row.source.wrapping_mul(whole),
            destination: row.destination.wrapping_mul(whole),
        },
    ))
}

impl Words {
    /// A nest in which elements below a byte that follow each other on a side are words of it.
    fn apart(nest: &Nest, elements: &Elements) -> Nest {
        let mut nest = nest.clone();
        for side in [Which::Source, Which::Destination] {
            let bits = u64::from(elements.bits_of(side));
            let whole = WORD_BITS / bits.min(WORD_BITS);
            let row = nest.loops.iter().position(|l| side.stride(l) == bits && l.full > whole);
            if let Some(i) = row.filter(|_| bits < 8)
                && let Some((of_word, of_words)) = in_words(nest.loops[i], whole)
            {
                nest.loops[i] = of_word;
                nest.loops.push(of_words);
            }
        }
        nest
    }

    fn of(side: Which, nest: &Nest, elements: &Elements) -> Option<Words> {
        let bits = u64::from(elements.bits_of(side));
        let mut others = nest.loops.clone();
        let mut word = match (others.iter().position(|l| side.stride(l) == bits), side) {
            (Some(i), _) => others.remove(i),
            // One element of each, so that nothing is a step further on.
            (None, Which::Source) => Loop::new(1, bits, 0),
            (None, Which::Destination) => return None,
        };
        // Bytes do well without words.
        let whole = WORD_BITS / bits.min(WORD_BITS);
        if bits < 8
            && word.full.checked_mul(bits)? > MAX_WORD
            && let Some((of_word, of_words)) = in_words(word, whole)
        {
            word = of_word;
            others.push(of_words);
        }
        let written = elements.destination_bits.into();
        let least = |others: &[Loop]| others.iter().map(|l| side.stride(l)).min();
        let (width, padding, are_readable);
        match side {
            Which::Source => {
                padding = paddings(&nest.loops, &[], nest.destination, written, elements)?;
                others.retain(|l| l.extent > 1);
                width = least(&others)?;
                word.full = word.extent;
                if word.extent.checked_mul(bits)? > width || !width.is_multiple_of(bits) {
                    return None;
                }
                let is_at_word = |at: u64| at.is_multiple_of(width);
                are_readable = is_at_word(nest.source)
                    && is_at_word(elements.source_end)
                    && others.iter().all(|l| is_at_word(l.source));
            }
            Which::Destination => {
                // Padding within words is written with them.
                padding =
                    paddings(&others, &[word.as_padding()], nest.destination, written, elements)?;
                width = least(&others)?;
                others.retain(|l| l.extent > 1);
                if word.full.checked_mul(bits)? != width {
                    return None;
                }
                are_readable = false;
            }
        }
        let is_word = width.is_power_of_two() && (16..=MAX_WORD).contains(&width);
        let whole = width / bits;
        is_word.then_some(Words { word, whole, others, padding, are_readable })
    }
}

#[cfg(test)]
mod tests {
    use relayout_kernels::Core;

    use super::super::stores::Stores;
    use super::*;
    use crate::Tier;

    #[test]
    fn words_are_worth_two_passes_where_another_dimension_is_contiguous() {
        // Of words, so many that follow each other, from rows so far apart in bytes; of a row, so many elements so far
        // apart in bits; the rows of a word are so far apart in bytes. Both sides have so many MiB.
        let on = |core,
                  side,
                  words: (u64, u64),
                  row: (u64, u64),
                  bits: u64,
                  (apart, mib): (u64, u64)| {
            let elements = Elements {
                source_bits: u32::try_from(bits).unwrap(),
                destination_bits: u32::try_from(bits).unwrap(),
                truth: false,
                source_end: u64::MAX,
                fill: 0,
                stores: Stores {
                    tier: Tier::best(),
                    core,
                    asked: None,
                    both_bytes: mib << 20,
                    all_bytes: mib << 20,
                    from_scratch: false,
                },
                alone: true,
                has_matrices: true,
                is_staged: false,
                are_few: true,
                passes: Room::Enough,
            };
            let along = |extent, host, image| match side {
                Which::Destination => Loop::new(extent, host, image),
                Which::Source => Loop::new(extent, image, host),
            };
            let loops = vec![
                along(32 / bits, apart * 8, bits),
                along(words.0, words.1 * 8, 32),
                along(row.0, row.1, 1 << 20),
            ];
            let nest = Nest { source: 0, destination: 0, loops };
            are_worth_passes(side, &nest, &elements)
        };
        let of = |side, words, row, bits, size| on(Core::Zen3, side, words, row, bits, size);
        let is_worth = |words, row, bits| of(Which::Destination, words, row, bits, (1 << 20, 16));
        assert!(is_worth((128, 100), (100, 8), 8));
        assert!(is_worth((128, 200), (100, 16), 16));
        // Few words, little of each row, no words of several elements.
        assert!(!is_worth((8, 100), (100, 8), 8));
        assert!(!is_worth((128, 16), (16, 8), 8));
        assert!(!is_worth((128, 400), (100, 32), 32));
        // The words themselves are contiguous, or nothing is.
        assert!(!is_worth((128, 1), (100, 1000 * 8), 8));
        assert!(!is_worth((128, 300), (100, 3 * 8), 8));
        // Into rows that are near one pass is as quick.
        assert!(
            [16, 64]
                .iter()
                .all(|&mib| { !of(Which::Source, (128, 100), (100, 8), 8, (1 << 20, mib)) })
        );
        // Rows that are pages apart: taken apart past the caches only.
        assert!(of(Which::Destination, (128, 40_000), (100, 8), 8, (100, 16)));
        assert!(!of(Which::Destination, (128, 40_000), (100, 8), 8, (1 << 20, 16)));
        assert!(!of(Which::Source, (128, 40_000), (100, 8), 8, (100, 16)));
        assert!(of(Which::Source, (128, 40_000), (100, 8), 8, (100, 64)));
        // Vectors of lines, on the core that these were measured on: from rows at pages, so many bytes of each; into such.
        if Tier::best().vector_bytes() < LINE {
            println!("skipped: words by lines, for which this CPU has no vectors");
            return;
        }
        let by_lines = |side, row: u64, width: u64| {
            on(Core::Zen5, side, (128, 40_960), (row, 8 * width), 8 * width, (row * width, 64))
        };
        let (packs, unpacks) = (Which::Destination, Which::Source);
        assert!(by_lines(packs, 128, 1) && !by_lines(packs, 192, 1));
        assert!(by_lines(packs, 40, 2) && !by_lines(packs, 64, 2));
        assert!(by_lines(unpacks, 200, 1) && by_lines(unpacks, 50, 2));
        // Rows of whole lines, and such as one pass does as well.
        assert!(!by_lines(unpacks, 128, 1) && !by_lines(unpacks, 64, 2));
        assert!(!by_lines(unpacks, 300, 1) && !by_lines(unpacks, 100, 2));
    }

    #[test]
    fn tiles_are_whole_lines() {
        assert_eq!(share(128, 54, 16), 48);
        assert_eq!(share(128, 47, 16), 32);
        // What has room is one, and what has less than a line is as it was.
        assert_eq!((share(100, 100, 16), share(100, 9, 16), share(100, 60, 1)), (100, 9, 50));
        for (extent, most, line) in
            (1..300).flat_map(|n| [(n, 1, 64), (n, 40, 16), (n, 150, 64), (n, 256, 1)])
        {
            let size = share(extent, most, line);
            assert!((1..=most.min(extent)).contains(&size), "{size} of {extent}, {most}, {line}");
        }
    }
}
