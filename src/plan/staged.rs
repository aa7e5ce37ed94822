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
//! converted instead, and so are rows that words are made of. No more than [`SCRATCH_BYTES`] of
//! the array are ever held so.

use relayout_kernels::{BlockOp, Conversion, Core, Run, Runs, Strip};

use super::along::Along;
use super::choose::{self, Leaf};
use super::nest::Loop;
use super::stores::{LINE, LINE_BITS, Stores};
use super::ways::{Way, Ways, in_array, scaled};

/// What is widened at a time: with what it is read from and written to, less than
/// L1 holds.
pub(crate) const SCRATCH_BYTES: usize = 16 << 10;

/// So many runs of the side that is staged, and so many bits of each, suit memory where a transpose leaves the choice.
const LONG_RUNS: u64 = 64;
pub(super) const LONG_RUN_BITS: u64 = 8 * 256;

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
    /// What the strips of a stage before a kernel are told, from then on: see [`Strip`].
    pub(crate) is_far: bool,
    pub(crate) core: Core,
    /// How much of the scratch memory is used.
    pub(crate) scratch_bytes: usize,
}

impl Stage {
    /// Whether its runs may begin, and end, within a byte of the array.
    pub(crate) fn may_begin_within_bytes(&self) -> bool {
        matches!(self.op, BlockOp::WidenBits { .. } | BlockOp::NarrowBits { .. })
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

/// A leaf in calls that need no more scratch memory than there is.
pub(super) fn small(mut leaf: Leaf, ways: Ways) -> Option<Vec<Leaf>> {
    let fits = |leaf: &Leaf| {
        let source = ways.source.fits(leaf.source_scratch(ways.source)?.scratch_bytes);
        Some(source && ways.destination.fits(leaf.destination_scratch()?.scratch_bytes))
    };
    match leaf.op {
        BlockOp::Transpose { .. } => leaf.join_lines(ways)?,
        BlockOp::InterleaveColumns { .. } | BlockOp::DeinterleaveColumns { .. } => {
            leaf.join_runs(ways)?;
        }
        _ => {}
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
/// nothing between them, or if what is may be brought with them and takes no more room than those multiples.
struct Scratch {
    /// Whether the blocks of a line are one run in every row.
    joined: bool,
    /// Whether the rows of a block, or of all blocks that are joined, are one run, with what is between them.
    dense: bool,
    run_bytes: usize,
    line: usize,
    block: usize,
    row: usize,
    scratch_bytes: usize,
}

impl Scratch {
    /// With what is between them if they are brought, by elements of so many bytes.
    fn new(
        lines: usize,
        (blocks, step): (usize, usize),
        runs: Runs,
        brings_by: Option<usize>,
    ) -> Option<Scratch> {
        let joined = step == runs.bytes;
        let run_bytes = if joined { runs.bytes.checked_mul(blocks)? } else { runs.bytes };
        let brings_more =
            brings_by.is_some_and(|width| runs.stride <= LINE && runs.stride.is_multiple_of(width));
        let dense = run_bytes < LINE
            && (runs.stride == run_bytes || runs.stride > run_bytes && brings_more);
        let row = if dense { runs.stride } else { run_bytes.checked_next_multiple_of(LINE)? };
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
            (count, _) if self.dense => {
                let before = self.row.checked_mul(count.checked_sub(1)?)?;
                ((1, 0), before.checked_add(self.run_bytes)?)
            }
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
            is_far: false,
            core: Core::default(),
            scratch_bytes: self.scratch_bytes,
        })
    }
}

fn swap_lines_and_blocks(strip: &mut Strip) {
    std::mem::swap(&mut strip.lines, &mut strip.blocks);
    std::mem::swap(&mut strip.source_line, &mut strip.source_step);
    std::mem::swap(&mut strip.destination_line, &mut strip.destination_step);
}

impl Leaf {
    fn source_scratch(&self, way: Way) -> Option<Scratch> {
        let strip = &self.strip;
        let blocks = (strip.blocks, strip.source_step);
        Scratch::new(strip.lines, blocks, strip.source_runs(self.op)?, way.seen_bytes())
    }

    fn destination_scratch(&self) -> Option<Scratch> {
        let (strip, op) = (&self.strip, self.op);
        let blocks = (strip.blocks, strip.destination_step);
        Scratch::new(strip.lines, blocks, strip.destination_runs(op)?, None)
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
        (self.strip.columns >= LONG_TO_CONVERT && choose::exists(op)).then_some(op)
    }

    /// Runs that are converted, widened, narrowed or reversed, if they are only copied else: without scratch memory.
    pub(super) fn converted(&self, ways: Ways, stores: Stores) -> Option<Leaf> {
        let (way, is_source) = match ways {
            Ways { source: way, destination: Way::Direct } => (way, true),
            Ways { source: Way::Direct, destination: way } => (way, false),
            _ => return None,
        };
        let Way::Staged { op, array, seen } = way else { return None };
        let pads = match op {
            BlockOp::Convert { .. } => is_source,
            BlockOp::WidenBits { .. } | BlockOp::NarrowBits { .. } | BlockOp::Reverse { .. } => {
                false
            }
            _ => return None,
        };
        if self.strip.pad > 0 && !pads {
            return None;
        }
        if let BlockOp::Convert { conversion } = op
            && let Some(op) = self.converted_words(conversion, is_source)
        {
            return Leaf { op, ..self.clone() }.of_array(is_source, array, seen);
        }
        if self.op != BlockOp::Copy {
            return None;
        }
        // Those that follow each other are better converted as one if they are short, or would part streamed lines.
        let scratch =
            if is_source { self.source_scratch(way)? } else { self.destination_scratch()? };
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
        let counts_bits = matches!(self.op, BlockOp::WidenBits { .. } | BlockOp::NarrowBits { .. });
        for step in [line, step, &mut strip.row_stride] {
            let bits = in_array(*step, array, seen)?;
            *step =
                if counts_bits { choose::signed(bits.cast_signed())? } else { choose::step(bits)? };
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
            swap_lines_and_blocks(strip);
        }
        Some(())
    }

    /// Makes blocks of what follows the runs of the staged side (the source, if both are), so that these are brought or
    /// taken as longer ones.
    fn join_runs(&mut self, ways: Ways) -> Option<()> {
        let strip = &mut self.strip;
        let is_source = ways.source.is_staged();
        let (run, step, line) = if is_source {
            (strip.source_runs(self.op)?.bytes, strip.source_step, strip.source_line)
        } else {
            (strip.destination_runs(self.op)?.bytes, strip.destination_step, strip.destination_line)
        };
        let of_loop = |l: &Loop| if is_source { l.source } else { l.destination };
        let follows = |l: &Loop| choose::step(of_loop(l)) == Some(run);
        if strip.blocks > 1 && step == run {
            return Some(());
        }
        if strip.lines > 1 && line == run {
            swap_lines_and_blocks(strip);
            return Some(());
        }
        let Some(i) = self.loops.iter().position(follows) else { return Some(()) };
        let behind = self.loops.remove(i);
        if strip.blocks > 1 {
            let blocks = u64::try_from(strip.blocks).ok()?;
            let steps =
                [strip.source_step, strip.destination_step].map(|step| choose::bits(1, step));
            self.loops.insert(i, Loop::new(blocks, steps[0], steps[1]));
        }
        strip.blocks = usize::try_from(behind.extent).ok()?;
        strip.source_step = choose::step(behind.source)?;
        strip.destination_step = choose::step(behind.destination)?;
        Some(())
    }

    /// Has the places of a side count in the array, where the other side of a stage saw them.
    pub(super) fn scale_places(&mut self, is_source: bool, array: u32, seen: u32) -> Option<()> {
        let start = if is_source { &mut self.source } else { &mut self.destination };
        *start = scaled(*start, array, seen)?;
        for l in &mut self.loops {
            let step = if is_source { &mut l.source } else { &mut l.destination };
            *step = scaled(*step, array, seen)?;
        }
        Some(())
    }

    /// Lets the source be brought into scratch memory, if that is the way.
    pub(super) fn stage_source(&mut self, way: Way) -> Option<()> {
        let Way::Staged { op, array, seen } = way else { return Some(()) };
        let (scratch, strip) = (self.source_scratch(way)?, self.strip);
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
    pub(super) fn stage_destination(&mut self, way: Way) -> Option<()> {
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
