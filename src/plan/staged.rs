//! Packed elements, and those of another type, through a strip of memory that
//! L1 holds.
//!
//! Where neighbours share bytes on one side and go apart on the other, kernels have
//! nothing to hold on to: they know bytes and the TPU's words. So such a side is
//! planned as if each of its elements had a byte, and every kernel call is preceded
//! by one that widens its runs into scratch memory, or followed by one that narrows
//! what it left there. Where bytes are right as they are but for the order of their
//! elements, that is all that is mended on the way. Numbers of another type are
//! converted there in the same manner; where a kernel would only copy them, they are
//! converted instead, and so are rows that words are made of. No more than [`SCRATCH_BYTES`] of the array are ever held so.

use relayout_kernels::{BlockOp, Conversion, Run, Runs, Strip};

use super::along::Along;
use super::choose::{self, Elements, Leaf};
use super::hop;
use super::nest::{Loop, Nest};
use super::stores::{LINE, Stores};
use super::word_columns;
use crate::Tier;

/// What is widened at a time: with what it is read from and written to, less than
/// L1 holds.
pub(crate) const SCRATCH_BYTES: usize = 16 << 10;

/// So many runs of the side that is staged, and so many bits of each, suit memory where a transpose leaves the choice.
const LONG_RUNS: u64 = 64;
const LONG_RUN_BITS: u64 = 8 * 256;

/// Bits of a line of the cache.
const LINE_BITS: u64 = 8 * 64;

/// Runs of at least so many numbers are converted one by one, also if they follow each other.
const LONG_TO_CONVERT: usize = 32;

/// Scratch memory for the stages of both sides.
pub(crate) const STAGES_BYTES: usize = 2 * SCRATCH_BYTES;

/// How one side of a kernel call is brought into scratch memory, or out of it: runs of
/// elements, in lines of blocks of rows.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub(crate) lines: Steps,
    pub(crate) blocks: Steps,
    pub(crate) rows: Steps,
    /// Elements of a run.
    pub(crate) elements: usize,
    /// Bits of an element in the array, and bytes in scratch memory.
    pub(crate) array_bits: u32,
    pub(crate) scratch_width: usize,
    pub(crate) op: BlockOp,
    /// The kernel of the op, once the tier is known.
    pub(crate) run: Option<Run>,
    /// How much of the scratch memory is used.
    pub(crate) scratch_bytes: usize,
}

impl Stage {
    /// Whether its runs may begin, and end, within a byte of the array.
    pub(crate) fn may_begin_within_bytes(&self) -> bool {
        matches!(self.op, BlockOp::Widen { .. } | BlockOp::Narrow { .. })
    }
}

/// A loop over runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) count: usize,
    /// From one to the next in the array, in bits, modulo 2^64.
    pub(crate) array: u64,
    /// And in scratch memory, in bytes.
    pub(crate) scratch: usize,
}

/// The stages before and behind a kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stages {
    pub(crate) source: Option<Box<Stage>>,
    pub(crate) destination: Option<Box<Stage>>,
}

impl Stages {
    pub(crate) fn are_there(&self) -> bool {
        self.source.is_some() || self.destination.is_some()
    }
}

/// Which of the sides count their elements from the most significant bit on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MostFirst {
    pub(crate) source: bool,
    pub(crate) destination: bool,
}

/// What is done to the elements on the way from the source, or to the destination.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Conversions {
    pub(crate) source: Option<Conversion>,
    pub(crate) destination: Option<Conversion>,
}

impl Conversions {
    /// Whether a side is converted.
    fn are_there(self) -> bool {
        self.source.is_some() || self.destination.is_some()
    }

    /// The ways of the two sides: direct, where they are not converted.
    fn ways(self) -> Ways {
        let bits = |bytes: usize| u32::try_from(8 * bytes).unwrap_or(0);
        let way = |conversion, (array, seen)| Way::Staged {
            op: BlockOp::Convert { conversion },
            array: bits(array),
            seen: bits(seen),
        };
        let source =
            self.source.map_or(Way::Direct, |conversion| way(conversion, conversion.widths()));
        let destination = self.destination.map_or(Way::Direct, |conversion| {
            let (from, to) = conversion.widths();
            way(conversion, (to, from))
        });
        Ways { source, destination }
    }
}

/// The kernels that carry out a nest of data: directly if that is fast, otherwise with
/// those sides staged whose elements are narrower than a byte.
pub(super) fn data(
    nest: Nest,
    elements: &Elements,
    order: MostFirst,
    conversions: Conversions,
) -> Option<Vec<Leaf>> {
    let Elements { source_bits, destination_bits, truth, .. } = *elements;
    let widen = BlockOp::Widen { bits: source_bits, most_first: order.source };
    let narrow = BlockOp::Narrow { bits: destination_bits, truth, most_first: order.destination };
    let converted = conversions.ways();
    let sources = match converted.source {
        Way::Direct => Way::all(source_bits, order.source, widen),
        way => vec![way],
    };
    let destinations = match converted.destination {
        Way::Direct => Way::all(destination_bits, order.destination, narrow),
        way => vec![way],
    };
    let mut best: Option<(usize, Vec<Leaf>)> = None;
    let converts = conversions.are_there();
    if let Some(leaves) = of_rows_most_first(&nest, elements, order).filter(|_| !converts) {
        return Some(leaves);
    }
    let both = destinations
        .iter()
        .flat_map(|&destination| sources.iter().map(move |&source| Ways { source, destination }));
    let both = both.flat_map(|ways| match ways {
        Ways::DIRECT => vec![(ways, true)],
        // Rows that are not to be cut may have no room.
        _ => vec![(ways, true), (ways, false)],
    });
    for (ways, has_matrices) in both {
        let leaves = match ways {
            Ways::DIRECT => choose::data(nest.clone(), elements),
            _ => staged(&nest, elements, ways, has_matrices),
        };
        let Some(leaves) = leaves else { continue };
        let slowness_of = |leaf| slowness(leaf, elements.stores.tier);
        let slowness = leaves.iter().map(slowness_of).max().unwrap_or(0);
        if best.as_ref().is_none_or(|(least, _)| slowness < *least) {
            best = Some((slowness, leaves));
        }
        if slowness == 0 {
            break;
        }
    }
    if best.is_none() && !converts {
        // The ops on bits know any order.
        return choose::data_on_bits(nest, elements);
    }
    let (_, leaves) = best?;
    let passes = if !elements.are_few || order.source || order.destination {
        None
    } else if converts {
        converted_passes(&nest, elements, converted, &leaves)
    } else {
        hop::data(&nest, elements, converted, &leaves)
    };
    Some(passes.unwrap_or(leaves))
}

/// Two passes, of which the first one converts what it reads, or the second one what it writes.
fn converted_passes(
    nest: &Nest,
    elements: &Elements,
    ways: Ways,
    direct: &[Leaf],
) -> Option<Vec<Leaf>> {
    // With the shortest vectors nothing of this was measured, and swapped arrays would go so, too.
    if elements.stores.tier.vector_bytes() < 32 {
        return None;
    }
    let mut leaves = hop::data(&ways.nest(nest)?, &ways.elements(elements)?, ways, direct)?;
    for leaf in &mut leaves {
        // Their passes count from where they begin.
        ways.scale_places(leaf)?;
    }
    Some(leaves)
}

/// The kernels of words that have several columns each, as [`word_columns::leaves`], of elements that are converted perhaps.
pub(super) fn words_of_columns(
    whole: Option<&Nest>,
    rest: &Nest,
    elements: &Elements,
    conversions: Conversions,
) -> Option<Vec<Leaf>> {
    let ways = conversions.ways();
    let whole = match whole {
        Some(nest) => Some(ways.nest(nest)?),
        None => None,
    };
    let (rest, as_seen) = (ways.nest(rest)?, ways.elements(elements)?);
    ways.staged(word_columns::leaves(whole.as_ref(), &rest, &as_seen)?, elements.stores)
}

/// The leaves of a nest with one side whose elements go from the most significant bits on, where a
/// kernel knows such rows.
fn of_rows_most_first(nest: &Nest, elements: &Elements, order: MostFirst) -> Option<Vec<Leaf>> {
    if order.source == order.destination {
        return None;
    }
    let mut leaves = choose::data(nest.clone(), elements)?;
    for leaf in &mut leaves {
        match &mut leaf.op {
            BlockOp::Interleave { bits, most_first, .. }
                if order.source && *bits == elements.source_bits =>
            {
                *most_first = true;
            }
            BlockOp::Deinterleave { bits, most_first, .. }
                if order.destination && *bits == elements.source_bits =>
            {
                *most_first = true;
            }
            BlockOp::Fill | BlockOp::FillBits => continue,
            _ => return None,
        }
        if slowness(leaf, elements.stores.tier) > 0 || !choose::exists(leaf.op) {
            return None;
        }
    }
    Some(leaves)
}

/// How a side of a kernel call is brought to it, or taken from it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Direct,
    /// By an op that makes elements of `seen` bits, which is what the kernel sees, of
    /// those of `array` bits, or the other way round.
    Staged {
        op: BlockOp,
        array: u32,
        seen: u32,
    },
}

impl Way {
    /// The ways for elements of so many bits, the best first.
    fn all(bits: u32, most_first: bool, widen_or_narrow: BlockOp) -> Vec<Way> {
        let widened = Way::Staged { op: widen_or_narrow, array: bits, seen: 8 };
        // Kernels take the first element to have the least significant bits.
        let reversed = Way::Staged { op: BlockOp::Reverse { bits }, array: 8, seen: 8 };
        match (bits < 8, most_first) {
            (false, _) => vec![Way::Direct],
            (true, false) => vec![Way::Direct, widened],
            (true, true) => vec![reversed, widened],
        }
    }

    /// Whether a call can go through so much scratch memory.
    fn fits(self, scratch_bytes: usize) -> bool {
        match self {
            Way::Direct => true,
            Way::Staged { .. } => scratch_bytes <= SCRATCH_BYTES,
        }
    }

    /// How many runs there is room for that are long in the array.
    fn long_runs(self) -> Option<u64> {
        let Way::Staged { array, seen, .. } = self else { return None };
        let run = scaled(LONG_RUN_BITS, seen, array)?;
        u64::try_from(8 * SCRATCH_BYTES).ok()?.checked_div(run)
    }

    fn is_staged(self) -> bool {
        matches!(self, Way::Staged { .. })
    }

    /// A place or a step as the kernel sees it, from one in the array, in bits. `None`
    /// where it is between elements.
    fn seen(self, at: u64) -> Option<u64> {
        match self {
            Way::Direct => Some(at),
            Way::Staged { array, seen, .. } => scaled(at, seen, array),
        }
    }
}

/// A number modulo 2^64 that may be negative, times one number and by another one.
fn scaled(at: u64, times: u32, by: u32) -> Option<u64> {
    let product = i128::from(at.cast_signed()) * i128::from(times);
    let by = i128::from(by);
    if product % by != 0 {
        return None;
    }
    i64::try_from(product / by).ok().map(i64::cast_unsigned)
}

/// A step of so many bytes, as a kernel sees it, in bits of the array.
fn in_array(bytes: usize, array: u32, seen: u32) -> Option<u64> {
    let bits = i64::try_from(bytes.cast_signed()).ok()?.checked_mul(8)?;
    scaled(bits.cast_unsigned(), array, seen)
}

fn slowness(leaf: &Leaf, tier: Tier) -> usize {
    match leaf.op {
        BlockOp::Bits { .. } => 3,
        BlockOp::Strided { .. } if leaf.stages.are_there() => 2,
        BlockOp::Strided { .. } => 1,
        op if leaf.strip.is_below_vectors(op, tier) => 1,
        _ => 0,
    }
}

/// How both sides are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Ways {
    source: Way,
    destination: Way,
}

impl Ways {
    /// Kernels work on both.
    pub(super) const DIRECT: Ways = Ways { source: Way::Direct, destination: Way::Direct };

    /// For a pass into scratch memory, whose elements are as kernels see them, and one out of it.
    pub(super) fn of_passes(self) -> [Ways; 2] {
        [Ways { destination: Way::Direct, ..self }, Ways { source: Way::Direct, ..self }]
    }

    /// A nest as kernels see it.
    fn nest(self, nest: &Nest) -> Option<Nest> {
        let Ways { source, destination } = self;
        let loops = nest.loops.iter().map(|l| {
            let (source, destination) = (source.seen(l.source)?, destination.seen(l.destination)?);
            Some(Loop { source, destination, ..*l })
        });
        Some(Nest {
            source: source.seen(nest.source)?,
            destination: destination.seen(nest.destination)?,
            loops: loops.collect::<Option<_>>()?,
        })
    }

    /// And what they see of its elements.
    fn elements(self, elements: &Elements) -> Option<Elements> {
        let mut as_seen = *elements;
        if let Way::Staged { array, seen, op } = self.source {
            if !matches!(op, BlockOp::Reverse { .. }) {
                as_seen.source_bits = seen;
            }
            as_seen.source_end =
                (elements.source_end / u64::from(array)).checked_mul(u64::from(seen))?;
        }
        if let Way::Staged { seen, op, .. } = self.destination
            && !matches!(op, BlockOp::Reverse { .. })
        {
            // The stage sees to truth.
            (as_seen.destination_bits, as_seen.truth) = (seen, false);
        }
        Some(as_seen)
    }

    /// Has the places of a leaf count in the arrays.
    fn scale_places(self, leaf: &mut Leaf) -> Option<()> {
        if matches!(leaf.op, BlockOp::Fill | BlockOp::FillBits) && self.destination.is_staged() {
            return None;
        }
        if let Way::Staged { array, seen, .. } = self.source {
            leaf.scale_places(true, array, seen)?;
        }
        if let Way::Staged { array, seen, .. } = self.destination {
            leaf.scale_places(false, array, seen)?;
        }
        Some(())
    }

    /// Leaves of what kernels see, behind or before stages that make it so.
    pub(super) fn staged(self, of_seen: Vec<Leaf>, stores: Stores) -> Option<Vec<Leaf>> {
        if self == Ways::DIRECT {
            return Some(of_seen);
        }
        let mut leaves = Vec::new();
        for leaf in of_seen {
            match leaf.op {
                BlockOp::Bits { .. } => return None,
                // Padding is no matter of stages; but of a staged side, its places are.
                BlockOp::Fill | BlockOp::FillBits if self.destination.is_staged() => return None,
                BlockOp::Fill | BlockOp::FillBits => leaves.push(leaf),
                _ => {
                    if let Some(leaf) = leaf.converted(self, stores) {
                        leaves.push(leaf);
                        continue;
                    }
                    for mut leaf in small(leaf, self)? {
                        leaf.stage_source(self.source)?;
                        leaf.stage_destination(self.destination)?;
                        leaves.push(leaf);
                    }
                }
            }
        }
        Some(leaves)
    }
}

/// The leaves of a nest in such ways.
fn staged(nest: &Nest, elements: &Elements, ways: Ways, has_matrices: bool) -> Option<Vec<Leaf>> {
    let as_seen = ways.elements(&Elements { has_matrices, ..*elements })?;
    ways.staged(choose::data(ways.nest(nest)?, &as_seen)?, elements.stores)
}

/// The same in calls that need no more scratch memory than there is.
fn small(mut leaf: Leaf, ways: Ways) -> Option<Vec<Leaf>> {
    let fits = |leaf: &Leaf| {
        let source = ways.source.fits(leaf.source_scratch()?.scratch_bytes);
        Some(source && ways.destination.fits(leaf.destination_scratch()?.scratch_bytes))
    };
    if matches!(leaf.op, BlockOp::Transpose { .. }) {
        leaf.join_lines(ways)?;
    }
    let least = |along: Along| (along, along.least(&leaf));
    // From the outermost on, each down to the largest number that fits, or the least.
    let order = match leaf.op {
        BlockOp::Transpose { .. } => {
            let (runs, along) = if ways.source.is_staged() {
                (Along::Rows, Along::Columns)
            } else {
                (Along::Columns, Along::Rows)
            };
            // Their number is the length of the other side's runs. Those of a destination had better be long themselves.
            let long = match ways {
                Ways { source: Way::Direct, destination: way } => {
                    way.long_runs().unwrap_or(LONG_RUNS)
                }
                _ => LONG_RUNS,
            };
            let long = usize::try_from(long.min(LONG_RUNS)).ok()?.max(runs.least(&leaf));
            vec![(Along::Lines, 1), (runs, long), (Along::Blocks, 1), least(along), least(runs)]
        }
        _ => vec![(Along::Lines, 1), (Along::Blocks, 1), least(Along::Rows), least(Along::Columns)],
    };
    let mut leaves = vec![leaf];
    for (along, least) in order {
        let mut smaller = Vec::new();
        for leaf in leaves {
            let mut size = along.count(&leaf);
            let mut one = leaf.clone();
            while !fits(&one)? && size > least {
                size = size.div_ceil(2).next_multiple_of(least);
                along.set(&mut one, size);
                if size <= least {
                    break;
                }
            }
            smaller.extend(along.split(leaf, size)?);
        }
        leaves = smaller;
    }
    leaves.iter().try_fold(true, |all, leaf| Some(all && fits(leaf)?))?.then_some(leaves)
}

/// How runs lie in scratch memory: each row at a multiple of 64 bytes, short ones as in the array if there is
/// nothing between them.
struct Scratch {
    /// Whether the blocks of a line are one run in every row.
    joined: bool,
    /// Whether the rows of a block, or of all blocks that are joined, are one run.
    dense: bool,
    run_bytes: usize,
    line: usize,
    block: usize,
    row: usize,
    scratch_bytes: usize,
}

impl Scratch {
    fn new(lines: usize, blocks: usize, step: usize, runs: Runs) -> Option<Scratch> {
        let joined = step == runs.bytes;
        let run_bytes = if joined { runs.bytes.checked_mul(blocks)? } else { runs.bytes };
        let dense = run_bytes < 64 && runs.stride == run_bytes;
        let row = if dense { run_bytes } else { run_bytes.checked_next_multiple_of(64)? };
        let rows = row.checked_mul(runs.count)?;
        let (block, line) =
            if joined { (runs.bytes, rows) } else { (rows, rows.checked_mul(blocks)?) };
        let scratch_bytes = line.checked_mul(lines)?;
        Some(Scratch { joined, dense, run_bytes, line, block, row, scratch_bytes })
    }

    /// The stage for a side whose steps are those that the kernel sees, in bytes.
    fn stage(
        &self,
        steps: [(usize, usize); 3],
        (op, array, seen): (BlockOp, u32, u32),
    ) -> Option<Stage> {
        let scratch_width = usize::try_from(seen / 8).ok()?;
        let [lines, blocks, rows] = steps;
        let steps = |(count, step): (usize, usize), scratch: usize| {
            Some(Steps { count, array: in_array(step, array, seen)?, scratch })
        };
        let blocks = if self.joined { (1, 0) } else { blocks };
        let (rows, run_bytes) = match rows {
            (count, _) if self.dense => ((1, 0), self.run_bytes.checked_mul(count)?),
            rows => (rows, self.run_bytes),
        };
        Some(Stage {
            lines: steps(lines, self.line)?,
            blocks: steps(blocks, self.block)?,
            rows: steps(rows, self.row)?,
            elements: run_bytes / scratch_width,
            array_bits: array,
            scratch_width,
            op,
            run: None,
            scratch_bytes: self.scratch_bytes,
        })
    }
}

impl Leaf {
    fn source_scratch(&self) -> Option<Scratch> {
        let strip = &self.strip;
        Scratch::new(strip.lines, strip.blocks, strip.source_step, strip.source_runs(self.op)?)
    }

    fn destination_scratch(&self) -> Option<Scratch> {
        let (strip, op) = (&self.strip, self.op);
        Scratch::new(strip.lines, strip.blocks, strip.destination_step, strip.destination_runs(op)?)
    }

    /// Words that are made of numbers as these are converted, or taken apart so: without scratch memory.
    fn converted_words(&self, conversion: Conversion, is_source: bool) -> Option<BlockOp> {
        let (from, to) = conversion.widths();
        let in_word = |ways: u32, bits: u32, width: usize| {
            ways.checked_mul(bits) == Some(u32::BITS) && usize::try_from(bits / 8) == Ok(width)
        };
        let op = match self.op {
            BlockOp::Interleave { ways, bits, .. } if is_source && in_word(ways, bits, to) => {
                BlockOp::ConvertInterleave { conversion }
            }
            BlockOp::Deinterleave { ways, bits, .. } if !is_source && in_word(ways, bits, from) => {
                BlockOp::DeinterleaveConvert { conversion }
            }
            _ => return None,
        };
        let has_padding = self.strip.pad > 0 && !is_source;
        (self.strip.columns >= LONG_TO_CONVERT && !has_padding && choose::exists(op)).then_some(op)
    }

    /// Runs that are converted, if they are only copied else: without scratch memory.
    fn converted(&self, ways: Ways, stores: Stores) -> Option<Leaf> {
        let (way, is_source) = match ways {
            Ways { source: way, destination: Way::Direct } => (way, true),
            Ways { source: Way::Direct, destination: way } => (way, false),
            _ => return None,
        };
        let Way::Staged { op: op @ BlockOp::Convert { conversion }, array, seen } = way else {
            return None;
        };
        if let Some(op) = self.converted_words(conversion, is_source) {
            return Leaf { op, ..self.clone() }.of_array(is_source, array, seen);
        }
        if self.op != BlockOp::Copy || self.strip.pad > 0 && !is_source {
            return None;
        }
        // Those that follow each other are better converted as one if they are short, or would part streamed lines.
        let scratch = if is_source { self.source_scratch()? } else { self.destination_scratch()? };
        let columns = self.strip.columns / usize::try_from(seen / 8).ok()?;
        let run_bits = u64::try_from(columns).ok()?.checked_mul(array.into())?;
        let parts_lines = !is_source && stores.of_runs_by(op) && run_bits < LONG_RUN_BITS;
        if scratch.joined
            && self.strip.blocks > 1
            && (columns < LONG_TO_CONVERT || parts_lines && !run_bits.is_multiple_of(LINE_BITS))
        {
            return None;
        }
        let strip = Strip { columns, ..self.strip };
        Leaf { op, strip, ..self.clone() }.of_array(is_source, array, seen)
    }

    /// Has all that is told of a side count in the array, where the other side of a stage saw it. Of a block with rows, the
    /// side has these.
    fn of_array(mut self, is_source: bool, array: u32, seen: u32) -> Option<Leaf> {
        let strip = &mut self.strip;
        let (line, step) = if is_source {
            (&mut strip.source_line, &mut strip.source_step)
        } else {
            (&mut strip.destination_line, &mut strip.destination_step)
        };
        for step in [line, step, &mut strip.row_stride] {
            *step = choose::step(in_array(*step, array, seen)?)?;
        }
        self.scale_places(is_source, array, seen)?;
        Some(self)
    }

    /// Makes blocks of a transpose's lines, if these follow each other on the staged side (the source, if both are): not
    /// where its blocks follow each other on the other side and are needed there to make a line of the cache.
    fn join_lines(&mut self, ways: Ways) -> Option<()> {
        let (strip, op) = (&mut self.strip, self.op);
        let of_source = (strip.source_line, strip.source_step, strip.source_runs(op)?);
        let of_destination =
            (strip.destination_line, strip.destination_step, strip.destination_runs(op)?);
        let (staged, other) = if ways.source.is_staged() {
            (of_source, of_destination)
        } else {
            (of_destination, of_source)
        };
        let ((line, _, runs), (_, step, others)) = (staged, other);
        let make_lines = strip.blocks > 1 && step == others.bytes && others.bytes < LINE;
        if strip.lines > 1 && line == runs.bytes && !make_lines {
            std::mem::swap(&mut strip.lines, &mut strip.blocks);
            std::mem::swap(&mut strip.source_line, &mut strip.source_step);
            std::mem::swap(&mut strip.destination_line, &mut strip.destination_step);
        }
        Some(())
    }

    /// Has the places of a side count in the array, where the other side of a stage saw them.
    fn scale_places(&mut self, is_source: bool, array: u32, seen: u32) -> Option<()> {
        let start = if is_source { &mut self.source } else { &mut self.destination };
        *start = scaled(*start, array, seen)?;
        for l in &mut self.loops {
            let step = if is_source { &mut l.source } else { &mut l.destination };
            *step = scaled(*step, array, seen)?;
        }
        Some(())
    }

    /// Lets the source be brought into scratch memory, if that is the way.
    fn stage_source(&mut self, way: Way) -> Option<()> {
        let Way::Staged { op, array, seen } = way else { return Some(()) };
        let (scratch, strip) = (self.source_scratch()?, self.strip);
        let runs = strip.source_runs(self.op)?;
        let steps = [
            (strip.lines, strip.source_line),
            (strip.blocks, strip.source_step),
            (runs.count, runs.stride),
        ];
        self.stages.source = Some(Box::new(scratch.stage(steps, (op, array, seen))?));
        self.strip.source_line = scratch.line;
        self.strip.source_step = scratch.block;
        if runs.count > 1 {
            match self.op {
                BlockOp::TransposeDeinterleave { .. } | BlockOp::DeinterleaveColumns { .. } => {
                    self.strip.column_stride = scratch.row;
                }
                _ => self.strip.row_stride = scratch.row,
            }
        }
        self.scale_places(true, array, seen)
    }

    /// Lets the destination be taken out of scratch memory, if that is the way.
    fn stage_destination(&mut self, way: Way) -> Option<()> {
        let Way::Staged { op, array, seen } = way else { return Some(()) };
        let (scratch, strip) = (self.destination_scratch()?, self.strip);
        let runs = strip.destination_runs(self.op)?;
        if strip.pad > 0 {
            return None;
        }
        let steps = [
            (strip.lines, strip.destination_line),
            (strip.blocks, strip.destination_step),
            (runs.count, runs.stride),
        ];
        self.stages.destination = Some(Box::new(scratch.stage(steps, (op, array, seen))?));
        self.strip.destination_line = scratch.line;
        self.strip.destination_step = scratch.block;
        if runs.count > 1 {
            match self.op {
                BlockOp::Deinterleave { .. }
                | BlockOp::Unsqueeze { .. }
                | BlockOp::TransposeDeinterleave { .. }
                | BlockOp::DeinterleaveColumns { .. } => self.strip.row_stride = scratch.row,
                _ => self.strip.column_stride = scratch.row,
            }
        }
        self.scale_places(false, array, seen)
    }
}
