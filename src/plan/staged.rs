//! Packed elements through a strip of memory that the nearest cache holds.
//!
//! Where neighbours share bytes on one side and go apart on the other, kernels have
//! nothing to hold on to: they know bytes and the TPU's words. So such a side is
//! planned as if each of its elements had a byte, and every kernel call is preceded
//! by one that widens its runs into scratch memory, or followed by one that narrows
//! what it left there. Where bytes are right as they are but for the order of their
//! elements, that is all that is mended on the way. No more than [`SCRATCH_BYTES`] of the array are ever held so.

use super::choose::{self, Elements, Leaf, lots};
use super::nest::{Loop, Nest};
use crate::kernel::{BlockOp, Run, Runs};

/// What is widened at a time: with what it is read from and written to, less than the
/// nearest cache holds.
pub(crate) const SCRATCH_BYTES: usize = 16 << 10;

/// How one side of a kernel call is brought into scratch memory, or out of it: runs of
/// elements, in lines of blocks of rows.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub(crate) lines: Steps,
    pub(crate) blocks: Steps,
    pub(crate) rows: Steps,
    /// Elements of a run.
    pub(crate) elements: usize,
    pub(crate) op: BlockOp,
    /// The kernel of the op, once the tier is known.
    pub(crate) run: Option<Run>,
    /// How much of the scratch memory is used.
    pub(crate) scratch_bytes: usize,
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

/// The kernels that carry out a nest of data: directly if that is fast, otherwise with
/// those sides staged whose elements are narrower than a byte.
pub(super) fn data(nest: Nest, elements: &Elements, order: MostFirst) -> Option<Vec<Leaf>> {
    let direct = || choose::data(nest.clone(), elements);
    if elements.source_bits >= 8 && elements.destination_bits >= 8 {
        return direct();
    }
    let mut best: Option<(usize, Vec<Leaf>)> = None;
    let sources = ways(elements.source_bits, order.source);
    let destinations = ways(elements.destination_bits, order.destination);
    let both = destinations.iter().flat_map(|&to| sources.iter().map(move |&from| (from, to)));
    for sides in both {
        let leaves = match sides {
            (Way::Direct, Way::Direct) => direct(),
            _ => staged(&nest, elements, order, sides),
        };
        let Some(leaves) = leaves else { continue };
        let slowness = leaves.iter().map(slowness).max().unwrap_or(0);
        if best.as_ref().is_none_or(|(least, _)| slowness < *least) {
            best = Some((slowness, leaves));
        }
        if slowness == 0 {
            break;
        }
    }
    // The ops on bits know any order.
    best.map(|(_, leaves)| leaves).or_else(|| choose::data_on_bits(nest, elements))
}

/// How a side of a kernel call is brought to it, or taken from it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Direct,
    /// With the elements of each byte in the opposite order.
    Reversed,
    /// With a byte for each element.
    Widened,
}

/// The ways for elements of so many bits, the best first.
fn ways(bits: u32, most_first: bool) -> &'static [Way] {
    match (bits < 8, most_first) {
        (false, _) => &[Way::Direct],
        (true, false) => &[Way::Direct, Way::Widened],
        // Kernels take the first element to have the least significant bits.
        (true, true) => &[Way::Reversed, Way::Widened],
    }
}

fn slowness(leaf: &Leaf) -> usize {
    match leaf.op {
        BlockOp::Bits { .. } => 3,
        BlockOp::Strided { .. } if leaf.stages.are_there() => 2,
        BlockOp::Strided { .. } => 1,
        op if leaf.strip.is_below_vectors(op) => 1,
        _ => 0,
    }
}

/// The leaves of a nest whose named sides have a byte for each element, behind or
/// before stages that see to that.
fn staged(
    nest: &Nest,
    elements: &Elements,
    order: MostFirst,
    sides: (Way, Way),
) -> Option<Vec<Leaf>> {
    let Elements { source_bits, destination_bits, .. } = *elements;
    // How many bits a bit of the array has in what the kernel sees.
    let times = |way, bits: u32| if way == Way::Widened { u64::from(8 / bits) } else { 1 };
    let (of_source, of_destination) =
        (times(sides.0, source_bits), times(sides.1, destination_bits));
    let nest = Nest {
        source: nest.source.wrapping_mul(of_source),
        destination: nest.destination.wrapping_mul(of_destination),
        loops: nest
            .loops
            .iter()
            .map(|l| Loop {
                source: l.source.wrapping_mul(of_source),
                destination: l.destination.wrapping_mul(of_destination),
                ..*l
            })
            .collect(),
    };
    let seen = |way, bits| if way == Way::Widened { 8 } else { bits };
    let narrows = sides.1 == Way::Widened;
    let as_seen = Elements {
        source_bits: seen(sides.0, source_bits),
        destination_bits: seen(sides.1, destination_bits),
        truth: elements.truth && !narrows,
        source_end: elements.source_end.checked_mul(of_source)?,
        ..*elements
    };
    let before = match sides.0 {
        Way::Direct => None,
        Way::Reversed => Some((BlockOp::Reverse { bits: source_bits }, 8)),
        Way::Widened => {
            Some((BlockOp::Widen { bits: source_bits, most_first: order.source }, source_bits))
        }
    };
    let behind = match sides.1 {
        Way::Direct => None,
        Way::Reversed => Some((BlockOp::Reverse { bits: destination_bits }, 8)),
        Way::Widened => {
            let (truth, most_first) = (elements.truth, order.destination);
            let op = BlockOp::Narrow { bits: destination_bits, truth, most_first };
            Some((op, destination_bits))
        }
    };
    let mut leaves = Vec::new();
    for leaf in choose::data(nest, &as_seen)? {
        match leaf.op {
            BlockOp::Bits { .. } => return None,
            // Padding is no matter of stages; but of a staged side, its places are.
            BlockOp::Fill | BlockOp::FillBits if behind.is_some() => return None,
            BlockOp::Fill | BlockOp::FillBits => leaves.push(leaf),
            _ => {
                for mut leaf in small(leaf, (before.is_some(), behind.is_some()))? {
                    if let Some((op, bits)) = before {
                        leaf.stage_source(op, bits)?;
                    }
                    if let Some((op, bits)) = behind {
                        leaf.stage_destination(op, bits)?;
                    }
                    leaves.push(leaf);
                }
            }
        }
    }
    Some(leaves)
}

/// The same in calls that need no more scratch memory than there is.
fn small(leaf: Leaf, sides: (bool, bool)) -> Option<Vec<Leaf>> {
    let fits = |leaf: &Leaf| {
        let source = if sides.0 { leaf.source_scratch()?.scratch_bytes } else { 0 };
        let destination = if sides.1 { leaf.destination_scratch()?.scratch_bytes } else { 0 };
        Some(source.max(destination) <= SCRATCH_BYTES)
    };
    let mut leaves = vec![leaf];
    // From the outermost on, each down to the largest number that fits, or one.
    for along in [Along::Lines, Along::Blocks, Along::Rows, Along::Columns] {
        let mut smaller = Vec::new();
        for leaf in leaves {
            let mut size = along.count(&leaf);
            let mut one = leaf.clone();
            while !fits(&one)? && size > along.least(&leaf) {
                size = size.div_ceil(2).next_multiple_of(along.least(&leaf));
                along.set(&mut one, size);
                if size <= along.least(&leaf) {
                    break;
                }
            }
            smaller.extend(along.split(leaf, size)?);
        }
        leaves = smaller;
    }
    leaves.iter().try_fold(true, |all, leaf| Some(all && fits(leaf)?))?.then_some(leaves)
}

/// What a call goes along.
#[derive(Clone, Copy)]
enum Along {
    Lines,
    Blocks,
    Rows,
    Columns,
}

impl Along {
    fn count(self, leaf: &Leaf) -> usize {
        match self {
            Along::Lines => leaf.strip.lines,
            Along::Blocks => leaf.strip.blocks,
            Along::Rows => leaf.strip.rows,
            Along::Columns => leaf.strip.columns,
        }
    }

    fn set(self, leaf: &mut Leaf, count: usize) {
        match self {
            Along::Lines => leaf.strip.lines = count,
            Along::Blocks => leaf.strip.blocks = count,
            Along::Rows => leaf.strip.rows = count,
            Along::Columns => leaf.strip.columns = count,
        }
    }

    /// A call takes so many, or a multiple, or all.
    fn least(self, leaf: &Leaf) -> usize {
        match (self, leaf.op) {
            (Along::Lines | Along::Blocks, _) => 1,
            (Along::Rows, BlockOp::Transpose { .. }) => 64,
            // The rows of a word stay together.
            (Along::Rows, _) => leaf.strip.rows,
            (Along::Columns, _) => 64,
        }
    }

    /// From one to the next on both sides, in bits.
    fn steps(self, leaf: &Leaf) -> Option<(u64, u64)> {
        let strip = &leaf.strip;
        let bits = |bytes: usize| {
            Some(i64::try_from(bytes.cast_signed()).ok()?.wrapping_mul(8).cast_unsigned())
        };
        Some(match (self, leaf.op) {
            (Along::Lines, _) => (bits(strip.source_line)?, bits(strip.destination_line)?),
            (Along::Blocks, _) => (bits(strip.source_step)?, bits(strip.destination_step)?),
            (Along::Rows, BlockOp::Transpose { bits: width }) => {
                (bits(strip.row_stride)?, width.into())
            }
            (Along::Columns, BlockOp::Copy) => (8, 8),
            (Along::Columns, BlockOp::Interleave { ways, bits }) => {
                (bits.into(), (ways * bits).into())
            }
            (Along::Columns, BlockOp::Deinterleave { ways, bits }) => {
                ((ways * bits).into(), bits.into())
            }
            (Along::Columns, BlockOp::Squeeze { ways, .. }) => (8, (8 * ways).into()),
            (Along::Columns, BlockOp::Unsqueeze { ways, .. }) => ((8 * ways).into(), 8),
            (Along::Columns, BlockOp::Narrow { bits, .. }) => (8, bits.into()),
            (Along::Columns, BlockOp::Widen { bits, .. }) => (bits.into(), 8),
            (Along::Columns, BlockOp::Transpose { bits: width }) => {
                (width.into(), bits(strip.column_stride)?)
            }
            (Along::Columns, BlockOp::Strided { .. }) => {
                (bits(strip.row_stride)?, bits(strip.column_stride)?)
            }
            _ => return None,
        })
    }

    /// The same in calls that take `size`, and one for the rest.
    fn split(self, leaf: Leaf, size: usize) -> Option<Vec<Leaf>> {
        let count = self.count(&leaf);
        if size >= count {
            return Some(vec![leaf]);
        }
        let (source, destination) = self.steps(&leaf)?;
        let mut leaves = Vec::new();
        // Padding is behind the last columns only.
        let whole = if leaf.strip.pad > 0 { count.saturating_sub(1) } else { count };
        let lots_of_all = lots(whole, size).filter(|&(_, lots, _)| lots > 0);
        let mut parts: Vec<(usize, usize, usize)> = lots_of_all.collect();
        if whole < count {
            // Whole lots, and what is behind them, which is one at least.
            parts.retain(|&(_, _, lot)| lot == size);
            let before: usize = parts.iter().map(|&(_, lots, size)| lots * size).sum();
            parts.push((before, 1, count - before));
        }
        let last = parts.len() - 1;
        for (i, (first, lots, size)) in parts.into_iter().enumerate() {
            let mut part = leaf.clone();
            let at = |step: u64, count: usize| -> Option<u64> {
                Some(step.wrapping_mul(u64::try_from(count).ok()?))
            };
            self.set(&mut part, size);
            part.source = part.source.wrapping_add(at(source, first)?);
            part.destination = part.destination.wrapping_add(at(destination, first)?);
            if lots > 1 {
                let extent = u64::try_from(lots).ok()?;
                let (source, destination) = (at(source, size)?, at(destination, size)?);
                part.loops.push(Loop::new(extent, source, destination));
            }
            if matches!(self, Along::Columns) && i < last {
                part.strip.pad = 0;
            }
            leaves.push(part);
        }
        Some(leaves)
    }
}

/// How runs lie in scratch memory: each row at a multiple of 64 bytes.
struct Scratch {
    /// Whether the blocks of a line are one run in every row.
    joined: bool,
    /// Elements of a run.
    elements: usize,
    line: usize,
    block: usize,
    row: usize,
    scratch_bytes: usize,
}

impl Scratch {
    fn new(lines: usize, blocks: usize, step: usize, runs: Runs) -> Option<Scratch> {
        let joined = step == runs.bytes;
        let elements = if joined { runs.bytes.checked_mul(blocks)? } else { runs.bytes };
        let row = elements.checked_next_multiple_of(64)?;
        let rows = row.checked_mul(runs.count)?;
        let (block, line) =
            if joined { (runs.bytes, rows) } else { (rows, rows.checked_mul(blocks)?) };
        let scratch_bytes = line.checked_mul(lines)?;
        Some(Scratch { joined, elements, line, block, row, scratch_bytes })
    }

    /// The stage for a side whose elements have so many bits in the array, and a byte
    /// in the steps of the strip.
    fn stage(&self, steps: [(usize, usize); 3], op: BlockOp, bits: u32) -> Option<Stage> {
        let array = |bytes: usize| -> Option<u64> {
            let bytes = i64::try_from(bytes.cast_signed()).ok()?;
            Some(bytes.wrapping_mul(bits.into()).cast_unsigned())
        };
        let [lines, blocks, rows] = steps;
        let steps = |(count, step): (usize, usize), scratch: usize| {
            Some(Steps { count, array: array(step)?, scratch })
        };
        let blocks = if self.joined { (1, 0) } else { blocks };
        Some(Stage {
            lines: steps(lines, self.line)?,
            blocks: steps(blocks, self.block)?,
            rows: steps(rows, self.row)?,
            elements: self.elements,
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

    /// Lets `op` bring the source into scratch memory, whose elements have so many bits
    /// in the array.
    fn stage_source(&mut self, op: BlockOp, bits: u32) -> Option<()> {
        let (scratch, strip) = (self.source_scratch()?, self.strip);
        let runs = strip.source_runs(self.op)?;
        let steps = [
            (strip.lines, strip.source_line),
            (strip.blocks, strip.source_step),
            (runs.count, runs.stride),
        ];
        self.stages.source = Some(Box::new(scratch.stage(steps, op, bits)?));
        self.strip.source_line = scratch.line;
        self.strip.source_step = scratch.block;
        if runs.count > 1 {
            self.strip.row_stride = scratch.row;
        }
        let in_array = |at: u64| (at.cast_signed() / 8).wrapping_mul(bits.into()).cast_unsigned();
        self.source = in_array(self.source);
        for l in &mut self.loops {
            l.source = in_array(l.source);
        }
        Some(())
    }

    /// Lets `op` bring the destination out of scratch memory.
    fn stage_destination(&mut self, op: BlockOp, bits: u32) -> Option<()> {
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
        self.stages.destination = Some(Box::new(scratch.stage(steps, op, bits)?));
        self.strip.destination_line = scratch.line;
        self.strip.destination_step = scratch.block;
        if runs.count > 1 {
            match self.op {
                BlockOp::Deinterleave { .. } | BlockOp::Unsqueeze { .. } => {
                    self.strip.row_stride = scratch.row;
                }
                _ => self.strip.column_stride = scratch.row,
            }
        }
        let in_array = |at: u64| (at.cast_signed() / 8).wrapping_mul(bits.into()).cast_unsigned();
        self.destination = in_array(self.destination);
        for l in &mut self.loops {
            l.destination = in_array(l.destination);
        }
        Some(())
    }
}
