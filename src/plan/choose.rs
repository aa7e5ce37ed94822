//! Which block op does the innermost loops of a nest.
//!
//! What decides is the loop that is contiguous in the source and the one that is
//! contiguous in the destination, not which layout it was:
//!
//! - one loop is both: **copy**, if that is a run worth one; a short one is a
//!   wider element, and the search goes on with that, or such runs are transposed;
//! - the destination goes over K rows, then along them: **interleave**, and the
//!   other way round **deinterleave**;
//! - anything else: **transpose**; where one side has no contiguous loop,
//!   **strided**.
//!
//! Elements below a byte that host memory keeps one in a byte are squeezed: over
//! rows, where the destination goes over rows, or along a run; runs of a word each are
//! transposed on the way. Rows that are packed on both
//! sides are interleaved as well, if they fill bytes. Other elements that
//! begin within a byte on both sides are moved **bit by bit**.

use std::ops::Range;

use relayout_kernels::{
    BlockOp, Runs, Strip, Tier, has_dense_words, has_pixels, is_of_runs, joins_both_loops, kernel,
};

use super::cost::cost;
use super::hop::Hop;
use super::nest::{Loop, Nest};
use super::staged::{STAGES_BYTES, Stages};
use super::stores::{LINE, Stores};
use super::ways::MostFirst;
use crate::error::Side;

/// What the choice has to know besides the nest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements {
    pub(super) source_bits: u32,
    pub(super) destination_bits: u32,
    /// The destination gets whether any bit was set.
    pub(super) truth: bool,
    /// Bits of the whole source. It is read no further.
    pub(super) source_end: u64,
    /// What padding is filled with.
    pub(super) fill: u8,
    pub(super) stores: Stores,
    /// The nest is all there is to do.
    pub(super) alone: bool,
    /// Whether there may be ops whose rows no call cuts: matrices, and words of several rows.
    pub(super) has_matrices: bool,
    /// A side is not as in memory, but as stages make it.
    pub(super) is_staged: bool,
    /// There are few nests, so that making the plan has time for looking at other ways.
    pub(super) are_few: bool,
    /// The scratch memory for two passes.
    pub(super) passes: Room,
}

impl Elements {
    /// The bits of one on a side.
    pub(super) fn bits_of(&self, side: Side) -> u32 {
        side.of(self.source_bits, self.destination_bits)
    }
}

/// How much scratch memory there is for two passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// What L1 holds, as what is done is a pass already: only such as words, or rows, need.
    Near,
    /// As much as they are quick with, for passes of all kinds.
    Enough,
}

/// One kernel in its loops. Offsets are in bits.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub(super) source: u64,
    pub(super) destination: u64,
    /// Around the kernel, outermost first.
    pub(super) loops: Vec<Loop>,
    pub(super) op: BlockOp,
    /// Of the ops on bits, `columns` elements whose strides are `row_stride` and
    /// `column_stride`, in bits; of a copy of bits, lines and steps are in bits, too, as places are.
    pub(super) strip: Strip,
    /// Where the kernel works on scratch memory: what is done before and behind it.
    pub(super) stages: Stages,
    /// In place of a kernel: two passes, through scratch memory.
    pub(super) hop: Option<Box<Hop>>,
    /// It fills what others write over, which come behind it.
    pub(super) is_under: bool,
}

/// The bits of the words that XLA makes of narrower elements.
pub(super) const WORD_BITS: u64 = 32;

/// A run of so many bits is worth a call of its own.
const RUN_BITS: u64 = 129;

/// The loops that a block op takes.
struct Block {
    op: BlockOp,
    /// Width of an element, after widening.
    bits: u64,
    rows: Option<Loop>,
    columns: Option<Loop>,
    /// Whether the op writes the padding behind the rows, and the columns.
    pads: (bool, bool),
    /// What else it takes, without padding.
    more: Vec<Loop>,
}

/// The kernels that carry out a nest of data. `None` where a number does not fit
/// in this machine's words.
pub(super) fn data(nest: Nest, elements: &Elements) -> Option<Vec<Leaf>> {
    let on_bytes = leaves(nest.clone().canonical(), elements, block);
    let is_of_bits = |leaf: &Leaf| matches!(leaf.op, BlockOp::Bits { .. });
    match on_bytes {
        Some(leaves) if !leaves.iter().any(is_of_bits) => Some(leaves),
        // What begins or ends within a byte, in runs of bits if there are such, or bit by bit.
        others => copies_of_bits(nest.clone(), elements, MostFirst::default(), false)
            .or(others)
            .or_else(|| data_on_bits(nest, elements)),
    }
}

/// Runs of elements below a byte that have these beside each other on both sides, wherever in bytes they begin; `apart` if
/// each begins with a byte in the destination and has all bytes up to its end alone, where what is behind its elements is no
/// matter.
pub(super) fn copies_of_bits(
    nest: Nest,
    elements: &Elements,
    order: MostFirst,
    apart: bool,
) -> Option<Vec<Leaf>> {
    let Nest { source, destination, mut loops } = nest.canonical();
    let (width, bits) = (elements.source_bits, u64::from(elements.source_bits));
    if bits >= 8 || elements.source_bits != elements.destination_bits {
        return None;
    }
    let columns = take(&mut loops, |l| l.source == bits && l.destination == bits)?;
    let run = columns.extent.checked_mul(bits)?;
    let op = BlockOp::CopyBits {
        bits: width,
        from_most_first: order.source,
        to_most_first: order.destination,
        clears_rest: apart,
    };
    if !exists(op) {
        return None;
    }
    // Padding to the end of a byte is made with the run.
    let is_made = apart
        && elements.fill == 0
        && columns.full.checked_mul(bits)? <= run.checked_next_multiple_of(8)?;
    let (mut outer, mut inner) = (loops.clone(), Vec::new());
    let of_columns = if is_made || !columns.is_padded() { &mut inner } else { &mut outer };
    of_columns.push(columns);
    let inner: Vec<Loop> = inner.into_iter().map(Loop::as_padding).collect();
    let mut leaves = paddings(&outer, &inner, destination, bits, elements)?;
    loops.retain(|l| l.extent > 1);
    // From one to the next in memory.
    let (blocks, lines) = (loops.pop(), loops.pop());
    let columns = usize::try_from(run).ok()?;
    let in_bits = |stride: u64| signed(stride.cast_signed());
    let strip = Strip { columns, ..strip_in(in_bits, blocks, lines)? };
    leaves.insert(0, Leaf::of_kernel(source, destination, extents(loops), op, strip));
    Some(leaves)
}

/// The same, element by element and within bytes.
pub(super) fn data_on_bits(nest: Nest, elements: &Elements) -> Option<Vec<Leaf>> {
    leaves(nest.canonical(), elements, block_of_bits)
}

/// The kernels that carry out a nest, if `block` finds one that can.
fn leaves(
    nest: Nest,
    elements: &Elements,
    block: impl Fn(&mut Vec<Loop>, u64, &Elements) -> Block,
) -> Option<Vec<Leaf>> {
    let Nest { source, destination, mut loops } = nest;
    let block = block(&mut loops, source, elements);
    let mut inner: Vec<Loop> = block.more.iter().map(|l| l.as_padding()).collect();
    for (taken, pads) in [(block.rows, block.pads.0), (block.columns, block.pads.1)] {
        match taken {
            Some(l) if pads => inner.push(l.as_padding()),
            Some(l) => loops.push(l),
            None => {}
        }
    }
    // Padding that the op does not write with its data.
    let mut leaves = paddings(&loops, &inner, destination, block.bits, elements)?;
    for l in [block.rows.filter(|_| !block.pads.0), block.columns.filter(|_| !block.pads.1)] {
        if l.is_some() {
            loops.pop();
        }
    }

    // One element needs no loop, whatever padding stood behind it.
    loops.retain(|l| l.extent > 1);
    let on_bits = matches!(block.op, BlockOp::Bits { .. });
    if !on_bits {
        let mut offsets = loops.iter().flat_map(|l| [l.source, l.destination]);
        if !offsets.all(|n| n.is_multiple_of(8)) || !(source | destination).is_multiple_of(8) {
            return None;
        }
    }
    let unit = |stride: u64| if on_bits { signed(stride.cast_signed()) } else { step(stride) };
    let mut strip = match block.op {
        BlockOp::Bits { .. } => strip_of(None, None)?,
        BlockOp::Transpose { .. } => {
            let run = |l: Option<Loop>| l.and_then(|l| l.extent.checked_mul(block.bits));
            take_panels(&mut loops, run(block.rows), run(block.columns), elements)?
        }
        BlockOp::NarrowTranspose { .. } | BlockOp::TransposeWiden { .. } => {
            // Words, whose elements one side has as bytes.
            let words = |l: Option<Loop>, step: u64| l.and_then(|l| l.extent.checked_mul(step));
            let rows = words(block.rows, block.rows?.destination);
            let columns = words(block.columns, block.columns?.source);
            take_panels(&mut loops, rows, columns, elements)?
        }
        BlockOp::GatherTranspose { .. } | BlockOp::TransposeScatter { .. } => {
            let run = |l: Option<Loop>| l.and_then(|l| l.extent.checked_mul(WORD_BITS));
            take_panels(&mut loops, run(block.rows), run(block.columns), elements)?
        }
        BlockOp::TransposeInterleave { ways, .. } => {
            let square = u64::from(ways).checked_mul(ways.into())?.checked_mul(block.bits)?;
            let run = |l: Option<Loop>| l.and_then(|l| l.extent.checked_mul(square));
            take_panels(&mut loops, run(block.rows), run(block.columns), elements)?
        }
        op => {
            let stores = elements.stores;
            // How much a call will have of each is not known yet, and is no matter for elements below a byte.
            let rows = block.rows.zip(block.columns).and_then(|(rows, columns)| {
                Some(Runs {
                    count: usize::try_from(rows.extent).ok()?,
                    stride: step(rows.destination)?,
                    bytes: usize::try_from(columns.extent).ok()?,
                })
            });
            let are_stored = rows.is_some_and(|rows| stores.stores_rows(op, rows, usize::MAX));
            let is_streamed = stores.of_runs_by(op) && !are_stored;
            take_strip(&mut loops, is_streamed, elements)?
        }
    };
    if let Some(rows) = block.rows {
        strip.rows = usize::try_from(rows.extent).ok()?;
    }
    if let Some(columns) = block.columns {
        strip.columns = usize::try_from(columns.extent).ok()?;
    }
    let (rows, columns) = (block.rows, block.columns);
    match block.op {
        BlockOp::Copy => {
            let run = columns.map_or((1, 1), |c| (c.extent, c.full));
            let data = run.0.checked_mul(block.bits)?;
            strip.columns = bytes(data)?;
            strip.pad = bytes(run.1.checked_mul(block.bits)?.checked_sub(data)?)?;
        }
        BlockOp::Interleave { .. } | BlockOp::Squeeze { .. } => {
            strip.row_stride = step(rows?.source)?;
            strip.pad = padding_bytes(columns?)?;
        }
        BlockOp::CopyWords { .. } => strip.pad = padding_bytes(columns?)?,
        BlockOp::Deinterleave { .. } | BlockOp::Unsqueeze { .. } => {
            strip.row_stride = step(rows?.destination)?;
        }
        BlockOp::Narrow { bits, .. } => {
            let whole = bytes(columns?.full.checked_mul(bits.into())?)?;
            let data =
                usize::try_from(columns?.extent.checked_mul(bits.into())?.div_ceil(8)).ok()?;
            strip.pad = whole.checked_sub(data)?;
        }
        BlockOp::NarrowTranspose { .. } | BlockOp::TransposeWiden { .. } => {
            let elements = usize::try_from(block.more.first()?.extent).ok()?;
            if matches!(block.op, BlockOp::NarrowTranspose { .. }) {
                strip.columns = strip.columns.checked_mul(elements)?;
            } else {
                strip.rows = strip.rows.checked_mul(elements)?;
            }
            strip.row_stride = step(rows?.source)?;
            strip.column_stride = step(columns?.destination)?;
        }
        BlockOp::Transpose { .. }
        | BlockOp::GatherTranspose { .. }
        | BlockOp::TransposeScatter { .. } => {
            if let BlockOp::Transpose { bits } = block.op
                && is_of_runs(bits)
            {
                strip.element_bytes = usize::try_from(bits / 8).ok()?;
            }
            strip.row_stride = step(rows?.source)?;
            strip.column_stride = step(columns?.destination)?;
        }
        BlockOp::TransposeInterleave { ways, .. } => {
            strip.row_stride = step(rows?.source)?;
            strip.column_stride = step(columns?.destination)?;
            strip.columns = strip.columns.checked_mul(usize::try_from(ways).ok()?)?;
        }
        BlockOp::InterleaveTranspose { .. } => {
            strip.row_stride = step(block.more.first()?.source)?;
            strip.column_stride = step(columns?.destination)?;
        }
        BlockOp::TransposeDeinterleave { .. } => {
            strip.row_stride = step(block.more.first()?.destination)?;
            strip.column_stride = step(columns?.source)?;
        }
        BlockOp::Exchange { .. } => {
            strip.row_stride = step(rows?.source)?;
            strip.column_stride = step(block.more.first()?.destination)?;
        }
        BlockOp::Strided { .. } | BlockOp::Bits { .. } => {
            strip.row_stride = unit(columns.map_or(0, |c| c.source))?;
            strip.column_stride = unit(columns.map_or(0, |c| c.destination))?;
        }
        // Those of columns are made of two nests: see `rows_of_words`.
        BlockOp::InterleaveColumns { .. }
        | BlockOp::DeinterleaveColumns { .. }
        | BlockOp::Widen { .. }
        | BlockOp::Reverse { .. }
        | BlockOp::Convert { .. }
        | BlockOp::ConvertInterleave { .. }
        | BlockOp::DeinterleaveConvert { .. }
        | BlockOp::Fill
        | BlockOp::FillBits => {}
        op => {
            debug_assert!(false, "{op} has no strip");
            return None;
        }
    }
    let leaf = Leaf::of_kernel(source, destination, extents(loops), block.op, strip);
    let stores = elements.stores;
    let is_whole = stores.of_runs_by(leaf.op) && !stores.stores_rows_of(leaf.op, &leaf.strip);
    let parts = if is_whole { vec![leaf] } else { leaf.split()? };
    leaves.splice(0..0, parts);
    Some(leaves)
}

/// The kernel of rows, so many bits apart in the array, each of so many columns that are in `words` of the image;
/// again in all loops of the nest.
pub(super) fn rows_of_words(
    op: BlockOp,
    nest: Nest,
    rows: Loop,
    columns: u64,
    words: Loop,
    elements: &Elements,
) -> Option<Leaf> {
    let Nest { source, destination, mut loops } = nest;
    loops.retain(|l| l.extent > 1);
    let mut offsets = loops.iter().flat_map(|l| [l.source, l.destination]);
    if !offsets.all(|n| n.is_multiple_of(8)) || !(source | destination).is_multiple_of(8) {
        return None;
    }
    let (count, columns) = (usize::try_from(rows.extent).ok()?, usize::try_from(columns).ok()?);
    let (row, word) = (step(rows.source)?, step(words.destination)?);
    let image = rows.extent.checked_mul(WORD_BITS);
    let strip = match op {
        BlockOp::NarrowTranspose { .. } => Strip {
            rows: count,
            row_stride: row,
            columns,
            column_stride: word,
            ..take_panels(&mut loops, image, None, elements)?
        },
        // Those of the array are its columns.
        BlockOp::TransposeWiden { .. } => Strip {
            rows: columns,
            row_stride: word,
            columns: count,
            column_stride: row,
            ..take_panels(&mut loops, None, image, elements)?
        },
        _ => Strip {
            rows: count,
            row_stride: row,
            columns,
            column_stride: word,
            ..take_strip(&mut loops, elements.stores.of_runs(), elements)?
        },
    };
    Some(Leaf::of_kernel(source, destination, extents(loops), op, strip))
}

/// The kernels that fill the padding behind the elements of these loops, elements of so many
/// bits; it comes again along the `inner` ones.
pub(super) fn paddings(
    loops: &[Loop],
    inner: &[Loop],
    destination: u64,
    bits: u64,
    elements: &Elements,
) -> Option<Vec<Leaf>> {
    let apart = pieces_of_padding(loops, inner, destination, (bits, elements.fill))?;
    // What is streamed is made whole first.
    if elements.stores.of_runs() {
        return Some(apart);
    }
    let Some(under) = runs_under(loops, inner, destination, (bits, elements.fill)) else {
        return Some(apart);
    };
    Some(if are_much_quicker(&under, &apart, elements.stores) { under } else { apart })
}

/// Whether some fills take less than half of the time of others, as far as there is an estimate.
pub(super) fn are_much_quicker(fills: &[Leaf], others: &[Leaf], stores: Stores) -> bool {
    let costs = [fills, others].map(|fills| cost(fills, stores));
    matches!(costs, [Some(cost), Some(other)] if cost < other / 2)
}

/// The same, each piece by itself.
fn pieces_of_padding(
    loops: &[Loop],
    inner: &[Loop],
    destination: u64,
    (bits, fill): (u64, u8),
) -> Option<Vec<Leaf>> {
    let mut leaves = Vec::new();
    for (i, &l) in loops.iter().enumerate().filter(|(_, l)| l.is_padded()) {
        let mut rest: Vec<Loop> =
            loops.iter().take(i).map(|l| Loop::new(l.extent, 0, l.destination)).collect();
        rest.push(Loop::new(l.full - l.extent, 0, l.destination));
        rest.extend(loops.iter().skip(i + 1).map(|l| l.as_padding()));
        rest.extend(inner);
        let destination = destination.wrapping_add(l.extent.wrapping_mul(l.destination));
        leaves.push(padding(Nest { source: 0, destination, loops: rest }, bits, fill)?);
    }
    Some(leaves)
}

/// The same, and the elements between it, in runs as long as there are: what is written over them comes behind. `None` where
/// no run has both.
fn runs_under(
    loops: &[Loop],
    inner: &[Loop],
    destination: u64,
    fill: (u64, u8),
) -> Option<Vec<Leaf>> {
    let mut outer: Vec<Loop> = loops.iter().chain(inner).copied().filter(|l| l.full > 1).collect();
    let (mut run, mut step) = (Vec::new(), fill.0);
    while let Some(i) = outer.iter().position(|l| l.destination == step) {
        step = step.checked_mul(outer[i].full)?;
        run.push(outer.remove(i));
    }
    if !run.iter().any(|l| l.is_padded()) {
        return None;
    }
    let run: Vec<Loop> = run.into_iter().map(Loop::as_padding).collect();
    let mut leaves = pieces_of_padding(&outer, &run, destination, fill)?;
    let data = outer.iter().map(|l| Loop::new(l.extent, 0, l.destination));
    let loops = data.chain(run.iter().copied()).collect();
    let under = padding(Nest { source: 0, destination, loops }, fill.0, fill.1)?;
    if under.op != BlockOp::Fill {
        return None;
    }
    leaves.insert(0, Leaf { is_under: true, ..under });
    Some(leaves)
}

/// The kernel that fills these bytes, before all that is written over them.
pub(super) fn fill_under(bytes: Range<u64>, fill: u8) -> Option<Leaf> {
    let run = Loop::new((bytes.end - bytes.start).checked_mul(8)?, 0, 1);
    let nest = Nest { source: 0, destination: bytes.start.checked_mul(8)?, loops: vec![run] };
    Some(Leaf { is_under: true, ..padding(nest, 1, fill)? })
}

/// So many blocks are visited in one call at most, where their order is told.
const BLOCKS_OF_CALL: usize = 128;
/// And so many of each line.
const BLOCKS_OF_LINE: usize = 64;

impl Leaf {
    /// Whether it fills so many bytes, all that there are, before anything else is written.
    pub(super) fn fills_under(&self, bytes: u64) -> bool {
        let is_all = self.destination == 0 && u64::try_from(self.strip.columns) == Ok(bytes);
        self.is_under && self.fills_a_run() && is_all
    }

    /// Whether it fills one run.
    pub(super) fn fills_a_run(&self) -> bool {
        let Strip { lines, blocks, .. } = self.strip;
        (self.op, lines, blocks) == (BlockOp::Fill, 1, 1) && self.loops.is_empty()
    }

    /// How much scratch memory it works on.
    pub(super) fn scratch_bytes(&self) -> usize {
        match &self.hop {
            Some(hop) => hop.all_bytes(),
            None if self.stages.are_there() => STAGES_BYTES,
            None => 0,
        }
    }

    /// A kernel in its loops, without stages.
    pub(super) fn of_kernel(
        source: u64,
        destination: u64,
        loops: Vec<Loop>,
        op: BlockOp,
        strip: Strip,
    ) -> Leaf {
        let stages = Stages::default();
        Leaf { source, destination, loops, op, strip, stages, hop: None, is_under: false }
    }

    /// Two passes in their loops.
    pub(super) fn of_hop(source: u64, destination: u64, loops: Vec<Loop>, hop: Hop) -> Leaf {
        let leaf = Leaf::of_kernel(source, destination, loops, BlockOp::Copy, Strip::default());
        Leaf { hop: Some(Box::new(hop)), ..leaf }
    }

    /// The same in calls of not too many blocks, where their order is told: one
    /// for whole lots of them, and one for each rest.
    fn split(self) -> Option<Vec<Leaf>> {
        if !self.op.goes_by_order() {
            return Some(vec![self]);
        }
        let Strip { lines, source_line, destination_line, .. } = self.strip;
        let Strip { blocks, source_step, destination_step, .. } = self.strip;
        let mut leaves = Vec::new();
        for (first_block, block_lots, blocks) in lots(blocks, BLOCKS_OF_LINE) {
            for (first_line, line_lots, lines) in lots(lines, BLOCKS_OF_CALL / blocks) {
                let mut leaf = self.clone();
                (leaf.strip.blocks, leaf.strip.lines) = (blocks, lines);
                for (first, lots, size, source, destination) in [
                    (first_line, line_lots, lines, source_line, destination_line),
                    (first_block, block_lots, blocks, source_step, destination_step),
                ] {
                    leaf.source = leaf.source.wrapping_add(bits(first, source));
                    leaf.destination = leaf.destination.wrapping_add(bits(first, destination));
                    if lots > 1 {
                        let lots = u64::try_from(lots).ok()?;
                        let (source, destination) = (bits(size, source), bits(size, destination));
                        leaf.loops.push(Loop::new(lots, source, destination));
                    }
                }
                leaves.push(leaf);
            }
        }
        Some(leaves)
    }
}

/// `count` things in lots of at most `size`: where they begin, how many lots and
/// of what size, the rest last.
pub(super) fn lots(count: usize, size: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let whole = count / size;
    [(0, whole, size), (whole * size, 1, count % size)]
        .into_iter()
        .filter(|&(_, lots, size)| lots > 0 && size > 0)
}

/// So many steps of so many bytes, in bits.
pub(super) fn bits(count: usize, step: usize) -> u64 {
    let bytes = i64::try_from(count.wrapping_mul(step).cast_signed()).unwrap_or(i64::MAX);
    bytes.wrapping_mul(8).cast_unsigned()
}

/// The kernel that fills a nest of padding whose elements have `bits` bits.
pub(super) fn padding(nest: Nest, bits: u64, fill: u8) -> Option<Leaf> {
    let Nest { destination, mut loops, .. } = nest.canonical();
    let run = match take(&mut loops, |l| l.destination == bits) {
        Some(l) => l.extent.checked_mul(bits)?,
        None => bits,
    };
    let whole = |n: u64| n.is_multiple_of(8);
    if whole(run) && whole(destination) && loops.iter().all(|l| whole(l.destination)) {
        let along = if loops.len() > 1 { take_min(&mut loops, |l| l.destination) } else { None };
        let mut strip = strip_of(along, None)?;
        strip.columns = bytes(run)?;
        strip.fill = fill;
        return Some(Leaf::of_kernel(0, destination, loops, BlockOp::Fill, strip));
    }
    let strip = Strip {
        columns: usize::try_from(run).ok()?,
        column_stride: 1,
        fill,
        ..strip_of(None, None)?
    };
    Some(Leaf::of_kernel(0, destination, loops, BlockOp::FillBits, strip))
}

/// Takes the loops of a block op out of `loops`, which are canonical.
fn block(loops: &mut Vec<Loop>, source: u64, elements: &Elements) -> Block {
    let Elements { source_bits, destination_bits, truth, .. } = *elements;
    let taken = if source_bits == destination_bits {
        block_of_equal_widths(loops, source, elements)
    } else if source_bits == 8 {
        squeeze(loops, destination_bits, truth)
    } else if destination_bits == 8 {
        unsqueeze(loops, source, elements)
    } else {
        None
    };
    taken.unwrap_or_else(|| block_of_bits(loops, source, elements))
}

/// Element by element, at any bits.
fn block_of_bits(loops: &mut Vec<Loop>, _source: u64, elements: &Elements) -> Block {
    let Elements { source_bits, destination_bits, truth, .. } = *elements;
    Block {
        op: BlockOp::Bits { source_bits, destination_bits, truth },
        bits: destination_bits.into(),
        rows: None,
        columns: loops.pop(),
        pads: (false, false),
        more: Vec::new(),
    }
}

fn block_of_equal_widths(loops: &mut Vec<Loop>, source: u64, elements: &Elements) -> Option<Block> {
    let none = (None, None, (false, false));
    let block = |op, bits, (rows, columns, pads)| {
        Some(Block { op, bits, rows, columns, pads, more: Vec::new() })
    };
    let mut bits = u64::from(elements.source_bits);
    let before = loops.clone();
    loop {
        if let Some(block) = words_with_padding(loops, bits, source, elements) {
            return Some(block);
        }
        let along_both = loops.iter().position(|l| l.source == bits && l.destination == bits);
        let Some(i) = along_both else { break };
        let run = loops[i].extent.checked_mul(bits)?;
        let whole = run.is_multiple_of(8) && (loops[i].full * bits).is_multiple_of(8);
        let wider = run.is_power_of_two() && run < RUN_BITS && !loops[i].is_padded();
        if whole && (!wider || loops.len() == 1) {
            let columns = loops.remove(i);
            let runs =
                if columns.is_padded() { None } else { transpose_of_runs(loops, run, elements) };
            return runs
                .or_else(|| block(BlockOp::Copy, bits, (None, Some(columns), (false, true))));
        }
        if !wider {
            break;
        }
        loops.remove(i);
        bits = run;
    }
    let width = u32::try_from(bits).ok()?;
    let contiguous_source = loops.iter().position(|l| l.source == bits);
    let contiguous_destination = loops.iter().position(|l| l.destination == bits);
    if let (None, Some(d)) = (contiguous_source, contiguous_destination)
        && let Some(op) = words_of_one_row(bits, source, loops, d, elements)
    {
        let columns = Some(loops.remove(d));
        return block(op, bits, (Some(ONE_ROW), columns, (false, false)));
    }
    if bits < 8 {
        let both = contiguous_source.zip(contiguous_destination);
        if elements.has_matrices
            && let Some((s, d)) = both
            && let Some(block) = words_of_others(loops, bits, s, d, elements)
        {
            return Some(block);
        }
        let words = both.and_then(|both| words_of_rows(loops, bits, source, both, elements));
        if words.is_none() {
            *loops = before;
        }
        return words;
    }
    let strided = BlockOp::Strided { bits: width };
    let (s, d) = match (contiguous_source, contiguous_destination) {
        (Some(s), Some(d)) => (s, d),
        (Some(one), None) | (None, Some(one)) => {
            let columns = Some(loops.remove(one));
            return block(strided, bits, (None, columns, (false, false)));
        }
        (None, None) if loops.is_empty() => return block(BlockOp::Copy, bits, none),
        (None, None) => {
            let columns = loops.pop();
            return block(strided, bits, (None, columns, (false, false)));
        }
    };
    let (along_source, along_destination) = (loops[s], loops[d]);
    if elements.has_matrices
        && let Some(block) = words_of_others(loops, bits, s, d, elements)
    {
        return Some(block);
    }
    if let Some(block) = words_of_rows(loops, bits, source, (s, d), elements) {
        return Some(block);
    }
    if elements.stores.tier.shuffles()
        && elements.has_matrices
        && s != d
        && let Some(block) =
            dense_words(loops, bits, s, d).or_else(|| words_of_pixels(loops, bits, s, d))
    {
        return Some(block);
    }
    remove_all(loops, &[s, d]);
    let taken = (Some(along_destination), Some(along_source), (false, false));
    block(BlockOp::Transpose { bits: width }, bits, taken)
}

/// Runs of so many bits, of which one loop is contiguous in the source and another one in the destination.
fn transpose_of_runs(loops: &mut Vec<Loop>, run: u64, elements: &Elements) -> Option<Block> {
    let bits = u32::try_from(run).ok().filter(|&bits| is_of_runs(bits))?;
    if !elements.stores.transposes_runs(bits) {
        return None;
    }
    let s = loops.iter().position(|l| l.source == run)?;
    let d = loops.iter().position(|l| l.destination == run)?;
    let (columns, rows) = (Some(loops[s]), Some(loops[d]));
    if s == d {
        return None;
    }
    remove_all(loops, &[s, d]);
    let (op, pads) = (BlockOp::Transpose { bits }, (false, false));
    Some(Block { op, bits: run, rows, columns, pads, more: Vec::new() })
}

/// Rows into words, or words into rows, where loop `s` is contiguous in the source and loop `d` in the
/// destination.
fn words_of_rows(
    loops: &mut Vec<Loop>,
    bits: u64,
    source: u64,
    (s, d): (usize, usize),
    elements: &Elements,
) -> Option<Block> {
    let (along_source, along_destination) = (loops[s], loops[d]);
    let width = u32::try_from(bits).ok()?;
    let ways = along_destination.full;
    let interleave = BlockOp::Interleave {
        ways: u32::try_from(ways).unwrap_or(0),
        bits: width,
        most_first: false,
    };
    let interleaves = Some(along_source.destination) == ways.checked_mul(bits)
        && fills_bytes(along_source, bits)
        && exists(interleave);
    let word = along_destination.source;
    let ways = word / bits;
    let deinterleave = BlockOp::Deinterleave {
        ways: u32::try_from(ways).unwrap_or(0),
        bits: width,
        most_first: false,
    };
    let deinterleaves = word.is_multiple_of(bits)
        && along_source.extent <= ways
        && fills_bytes(along_destination, bits)
        && exists(deinterleave)
        && (along_source.extent == ways || reads_whole_words(word, source, loops, s, elements));
    // Where both do, the one that has more columns.
    let (op, rows, columns, pads) =
        if interleaves && !(deinterleaves && along_destination.extent > along_source.extent) {
            (interleave, along_destination, along_source, (true, true))
        } else if deinterleaves {
            (deinterleave, along_source, along_destination, (false, false))
        } else {
            return None;
        };
    remove_all(loops, &[s, d]);
    let (rows, columns) = (Some(rows), Some(columns));
    Some(Block { op, bits, rows, columns, pads, more: Vec::new() })
}

/// A row of which there is no other one.
const ONE_ROW: Loop = Loop { extent: 1, full: 1, source: 0, destination: 0 };

/// The bytes of the words behind those of some columns.
fn padding_bytes(columns: Loop) -> Option<usize> {
    bytes((columns.full - columns.extent).checked_mul(columns.destination)?)
}

/// Words that their elements do not fill, which follow each other on both sides.
fn words_with_padding(
    loops: &mut Vec<Loop>,
    bits: u64,
    source: u64,
    elements: &Elements,
) -> Option<Block> {
    let op = BlockOp::CopyWords { bits: u32::try_from(bits).ok()? };
    let is_word = |l: &Loop| {
        let is_in_source = l.source == bits || l.extent == 1;
        let is_in_destination =
            l.destination == bits && l.full.checked_mul(bits) == Some(WORD_BITS);
        l.is_padded() && is_in_source && is_in_destination
    };
    let follows = |l: &Loop| l.source == WORD_BITS && l.destination == WORD_BITS;
    let word = loops.iter().position(is_word)?;
    let columns = loops.iter().position(follows)?;
    // Stages have nothing but elements.
    if word == columns
        || elements.is_staged
        || !exists(op)
        || elements.fill != 0
        || !reads_whole_words(WORD_BITS, source, loops, word, elements)
    {
        return None;
    }
    let (rows, along) = (Some(loops[word]), Some(loops[columns]));
    remove_all(loops, &[word, columns]);
    Some(Block { op, bits, rows, columns: along, pads: (true, true), more: Vec::new() })
}

/// What takes words apart of which only the first element is there, as in the last row of an odd
/// number of them, where that row is contiguous in the destination along loop `d`.
fn words_of_one_row(
    bits: u64,
    source: u64,
    loops: &[Loop],
    d: usize,
    elements: &Elements,
) -> Option<BlockOp> {
    let word = loops[d].source;
    let ways = u32::try_from(word / bits).ok().filter(|_| word.is_multiple_of(bits))?;
    let op = BlockOp::Deinterleave { ways, bits: u32::try_from(bits).ok()?, most_first: false };
    let is_whole =
        fills_bytes(loops[d], bits) && reads_whole_words(word, source, loops, d, elements);
    (exists(op) && is_whole).then_some(op)
}

/// Whether a row of elements, which may be narrower than a byte, ends with one.
fn fills_bytes(columns: Loop, bits: u64) -> bool {
    columns.extent.checked_mul(bits).is_some_and(|run| run.is_multiple_of(8))
}

/// From words of elements to words of other elements, where such words are made in
/// the source along loop `s` and in the destination along loop `d`.
fn words_of_others(
    loops: &mut Vec<Loop>,
    bits: u64,
    s: usize,
    d: usize,
    elements: &Elements,
) -> Option<Block> {
    let (in_source, in_destination) = (loops[s], loops[d]);
    let ways = in_source.extent;
    let even = !in_source.is_padded() && !in_destination.is_padded();
    if s == d || !even || in_destination.extent != ways {
        return None;
    }
    let word = ways.checked_mul(bits)?;
    let (ways, width) = (u32::try_from(ways).ok()?, u32::try_from(bits).ok()?);
    let find = |source: Option<u64>, destination: Option<u64>| {
        loops.iter().position(|l| {
            source.is_none_or(|n| l.source == n) && destination.is_none_or(|n| l.destination == n)
        })
    };
    let mut more = vec![in_source];
    let (op, rows, columns) = if let Some(along) = find(Some(word), Some(word)) {
        (BlockOp::Exchange { ways, bits: width }, d, along)
    } else if in_source.destination == word && in_destination.source == word {
        // On each side, what follows a word and those that it is made into.
        let square = u64::from(ways).checked_mul(word)?;
        more.push(in_destination);
        let (rows, columns) = (find(None, Some(square))?, find(Some(square), None)?);
        (BlockOp::TransposeInterleave { ways, bits: width }, rows, columns)
    } else {
        return None;
    };
    if rows == columns || !exists(op) {
        return None;
    }
    let (row_loop, column_loop) = (loops[rows], loops[columns]);
    if bits < 8 {
        // Rows and columns, with those that go on with them.
        let square = u64::from(ways).checked_mul(word)?;
        let with_more = |l: Loop, side: Side| -> Option<u64> {
            let run = l.extent.checked_mul(square)?;
            let more = loops.iter().find(|more| side.stride(more) == run);
            l.extent.checked_mul(more.map_or(1, |more| more.extent))
        };
        let rows = with_more(row_loop, Side::Destination)?;
        let columns = with_more(column_loop, Side::Source)?.checked_mul(ways.into())?;
        if !exchanges(op, rows.min(columns), elements) {
            return None;
        }
    }
    remove_all(loops, &[s, d, rows, columns]);
    let (rows, columns) = (Some(row_loop), Some(column_loop));
    Some(Block { op, bits, rows, columns, pads: (false, false), more })
}

/// Whether words of elements below a byte are exchanged as they are turned, if there are so many rows and columns: where
/// vectors have a word of each column that is in a word, and within the caches only where they are lines.
fn exchanges(op: BlockOp, words: u64, elements: &Elements) -> bool {
    let BlockOp::TransposeInterleave { ways, .. } = op else { return false };
    let stores = elements.stores;
    let vector = stores.tier.vector_bytes();
    let in_vector = u64::try_from(vector / size_of::<u32>()).unwrap_or(u64::MAX);
    in_vector >= ways.into() && words >= in_vector && (vector >= LINE || stores.of_runs())
}

/// Rows into words, and these into columns, or the other way, where the rows are those of dense matrices:
/// along loop `s` elements are contiguous in the source, and along loop `d` in the destination.
fn dense_words(loops: &mut Vec<Loop>, bits: u64, s: usize, d: usize) -> Option<Block> {
    let width = u32::try_from(bits).ok()?;
    let ways_of = |word: Loop| u32::try_from(word.extent).ok().filter(|_| !word.is_padded());
    let find = |source: u64, destination: u64| {
        loops.iter().position(|l| l.source == source && l.destination == destination)
    };
    let (along_source, along_destination) = (loops[s], loops[d]);
    let interleave = || {
        let ways = ways_of(along_destination)?;
        let row = along_source.extent.checked_mul(bits)?;
        let rows = find(row, along_destination.extent.checked_mul(bits)?)?;
        Some((BlockOp::InterleaveTranspose { ways, bits: width }, rows, s, d))
    };
    let deinterleave = || {
        let ways = ways_of(along_source)?;
        let row = along_destination.extent.checked_mul(bits)?;
        let rows = find(along_source.extent.checked_mul(bits)?, row)?;
        Some((BlockOp::TransposeDeinterleave { ways, bits: width }, rows, d, s))
    };
    let fits = |&(op, _, columns, _): &(BlockOp, usize, usize, usize)| {
        let columns: Loop = loops[columns];
        exists(op) && !columns.is_padded() && has_dense_words(columns.extent)
    };
    let (op, rows, columns, word) =
        interleave().filter(fits).or_else(|| deinterleave().filter(fits))?;
    let (row_loop, column_loop, more) = (loops[rows], loops[columns], vec![loops[word]]);
    remove_all(loops, &[rows, columns, word]);
    let (rows, columns) = (Some(row_loop), Some(column_loop));
    Some(Block { op, bits, rows, columns, pads: (false, false), more })
}

/// Rows of words into columns, where the elements of a word are those of one channel: along loop `s` channels are
/// contiguous in the source and words in the destination along loop `d`, or the other way round.
fn words_of_pixels(loops: &mut Vec<Loop>, bits: u64, s: usize, d: usize) -> Option<Block> {
    let width = u32::try_from(bits).ok()?;
    let find = |is: &dyn Fn(&Loop) -> bool| loops.iter().position(is);
    let of = |word: Loop, channels: Loop, apart: u64| {
        let is_word = !word.is_padded() && word.extent.checked_mul(bits) == Some(WORD_BITS);
        let is_pixel = !channels.is_padded() && has_pixels(channels.extent);
        let follow = channels.extent.checked_mul(bits) == Some(apart);
        is_word && is_pixel && follow
    };
    let (along_source, along_destination) = (loops[s], loops[d]);
    let ways = |word: Loop| u32::try_from(word.extent).ok();
    let (op, word, rows, columns) = if of(along_destination, along_source, along_destination.source)
    {
        let rows = find(&|l| l.destination == WORD_BITS)?;
        (BlockOp::GatherTranspose { ways: ways(along_destination)?, bits: width }, d, rows, s)
    } else if of(along_source, along_destination, along_source.destination) {
        let columns = find(&|l| l.source == WORD_BITS)?;
        (BlockOp::TransposeScatter { ways: ways(along_source)?, bits: width }, s, d, columns)
    } else {
        return None;
    };
    if rows == columns || !exists(op) {
        return None;
    }
    let (row_loop, column_loop, more) = (loops[rows], loops[columns], vec![loops[word]]);
    remove_all(loops, &[word, rows, columns]);
    let (rows, columns) = (Some(row_loop), Some(column_loop));
    Some(Block { op, bits, rows, columns, pads: (false, false), more })
}

/// From bytes to narrower elements.
fn squeeze(loops: &mut Vec<Loop>, bits: u32, truth: bool) -> Option<Block> {
    let width = u64::from(bits);
    let d = loops.iter().position(|l| l.destination == width)?;
    let rows = loops[d];
    // Whole bytes of the destination, and no other element in them.
    let word = rows.full.checked_mul(width).filter(|word| word.is_multiple_of(8))?;
    let others_are_whole = loops
        .iter()
        .enumerate()
        .all(|(i, l)| i == d || (l.destination.is_multiple_of(8) && l.source.is_multiple_of(8)));
    if !others_are_whole {
        return None;
    }
    if rows.source == 8 {
        let op = BlockOp::NarrowTranspose { bits, truth };
        if let Some(block) = turned_words(loops, d, op, (8, width)) {
            return Some(block);
        }
        loops.remove(d);
        let op = BlockOp::Narrow { bits, truth };
        let columns = Some(rows);
        return Some(Block {
            op,
            bits: width,
            rows: None,
            columns,
            pads: (false, true),
            more: Vec::new(),
        });
    }
    let s = loops.iter().position(|l| l.source == 8)?;
    let columns = loops[s];
    let op = BlockOp::Squeeze { ways: u32::try_from(word / 8).ok()?, bits, truth };
    if columns.destination != word || !exists(op) {
        return None;
    }
    remove_all(loops, &[s, d]);
    let (rows, columns) = (Some(rows), Some(columns));
    Some(Block { op, bits: width, rows, columns, pads: (true, true), more: Vec::new() })
}

/// From narrow elements to bytes.
fn unsqueeze(loops: &mut Vec<Loop>, source: u64, elements: &Elements) -> Option<Block> {
    let (bits, width) = (elements.source_bits, u64::from(elements.source_bits));
    let s = loops.iter().position(|l| l.source == width);
    let rows = s.map_or(ONE_ROW, |s| loops[s]);
    let others_are_whole =
        loops.iter().enumerate().all(|(i, l)| Some(i) == s || l.source.is_multiple_of(8));
    if !others_are_whole || !source.is_multiple_of(8) {
        return None;
    }
    if let Some(s) = s.filter(|_| rows.destination == 8) {
        if let Some(block) = turned_words(loops, s, BlockOp::TransposeWiden { bits }, (width, 8)) {
            return Some(block);
        }
        loops.remove(s);
        let op = BlockOp::Widen { bits };
        let columns = Some(rows);
        return Some(Block {
            op,
            bits: 8,
            rows: None,
            columns,
            pads: (false, false),
            more: Vec::new(),
        });
    }
    let d = loops.iter().position(|l| l.destination == 8)?;
    let columns = loops[d];
    let word = columns.source;
    let op = BlockOp::Unsqueeze { ways: u32::try_from(word / 8).ok()?, bits };
    let fits = rows.extent.checked_mul(width)? <= word;
    let is_whole = reads_whole_words(word, source, loops, s.unwrap_or(d), elements);
    if !fits || !exists(op) || !is_whole {
        return None;
    }
    match s {
        Some(s) => remove_all(loops, &[s, d]),
        None => _ = loops.remove(d),
    }
    let (rows, columns) = (Some(rows), Some(columns));
    Some(Block { op, bits: 8, rows, columns, pads: (false, false), more: Vec::new() })
}

/// Words of 32 bits with all their elements, which loop `word` has, and host memory a byte for each: elements have
/// these widths, in bits.
fn turned_words(
    loops: &mut Vec<Loop>,
    word: usize,
    op: BlockOp,
    (source, destination): (u64, u64),
) -> Option<Block> {
    let elements = loops[word];
    let narrow = source.min(destination);
    if elements.is_padded() || elements.extent.checked_mul(narrow)? != WORD_BITS || !exists(op) {
        return None;
    }
    let find = |step: &dyn Fn(&Loop) -> bool| loops.iter().position(step);
    let rows = find(&|l| Some(l.destination) == elements.extent.checked_mul(destination))?;
    let columns = find(&|l| Some(l.source) == elements.extent.checked_mul(source))?;
    if rows == columns {
        return None;
    }
    let (row_loop, column_loop) = (loops[rows], loops[columns]);
    remove_all(loops, &[word, rows, columns]);
    let (rows, columns) = (Some(row_loop), Some(column_loop));
    let pads = (false, false);
    Some(Block { op, bits: destination, rows, columns, pads, more: vec![elements] })
}

/// Whether all words that begin at the elements of a nest are within the source:
/// they begin at multiples of their width, and the source is some of them.
fn reads_whole_words(
    word: u64,
    source: u64,
    loops: &[Loop],
    within: usize,
    elements: &Elements,
) -> bool {
    let whole = |n: u64| n.is_multiple_of(word);
    let others = loops.iter().enumerate().filter(|&(i, _)| i != within);
    whole(source) && whole(elements.source_end) && others.into_iter().all(|(_, l)| whole(l.source))
}

/// Whether there is a kernel for an op: in every tier or in none.
pub(super) fn exists(op: BlockOp) -> bool {
    kernel(op, Tier::SCALAR, false).is_some()
}

/// Removes the loops of these numbers, of which some may be the same.
fn remove_all(loops: &mut Vec<Loop>, numbers: &[usize]) {
    let mut number = 0..;
    loops.retain(|_| number.next().is_none_or(|number| !numbers.contains(&number)));
}

fn take(loops: &mut Vec<Loop>, which: impl Fn(&Loop) -> bool) -> Option<Loop> {
    loops.iter().position(which).map(|i| loops.remove(i))
}

/// Takes the two loops that a kernel call goes along.
///
/// Streaming, memory is read in its order, which is what prefetchers can follow.
/// Otherwise the loop with the smallest steps on both sides counts.
fn take_strip(loops: &mut Vec<Loop>, is_streamed: bool, elements: &Elements) -> Option<Strip> {
    let step =
        |l: &Loop| if is_streamed { l.source } else { l.source.saturating_add(l.destination) };
    let along = take_min(loops, step);
    // Nests side by side share the loop around them.
    let lines = if elements.alone || loops.len() > 1 { take_min(loops, step) } else { None };
    strip_of(along, lines)
}

/// Takes the two loops that a transpose goes along: one whose blocks continue the
/// columns in the destination, and one whose blocks continue the rows in the
/// source, where there are such loops. So many bits are the columns and the rows
/// of a block.
fn take_panels(
    loops: &mut Vec<Loop>,
    rows: Option<u64>,
    columns: Option<u64>,
    elements: &Elements,
) -> Option<Strip> {
    // What continues both had better be more of what there is less of.
    let (more_rows, more_columns);
    if rows <= columns {
        more_rows = take(loops, |l| Some(l.destination) == rows);
        more_columns = take(loops, |l| Some(l.source) == columns);
    } else {
        more_columns = take(loops, |l| Some(l.source) == columns);
        more_rows = take(loops, |l| Some(l.destination) == rows);
    }
    // And what continues neither, but what one of these has made longer, if kernels go on with it.
    let behind = |run: Option<u64>, more: Option<Loop>, other: Option<u64>| {
        let longer = run?.checked_mul(more?.extent)?;
        let bytes = |bits: u64| usize::try_from(bits / 8).ok();
        joins_both_loops(bytes(longer)?, bytes(other?)?).then_some(longer)
    };
    let still_rows = behind(rows, more_rows, columns);
    let still_columns = behind(columns, more_columns, rows);
    let step = |l: &Loop| {
        if elements.stores.of_runs() { l.source } else { l.source.saturating_add(l.destination) }
    };
    let along = more_rows
        .or_else(|| take(loops, |l| Some(l.source) == still_columns))
        .or_else(|| take_min(loops, step));
    let lines = more_columns
        .or_else(|| take(loops, |l| Some(l.destination) == still_rows))
        .or_else(|| take_min(loops, step));
    strip_of(along, lines)
}

/// Takes the loop with the least of something.
fn take_min(loops: &mut Vec<Loop>, what: impl Fn(&Loop) -> u64) -> Option<Loop> {
    let (i, _) = loops.iter().enumerate().min_by_key(|(_, l)| what(l))?;
    Some(loops.remove(i))
}

/// A strip of one element in each block, the blocks along one loop and the lines
/// along another.
fn strip_of(along: Option<Loop>, lines: Option<Loop>) -> Option<Strip> {
    strip_in(step, along, lines)
}

/// The same, whose steps are counted so.
fn strip_in(
    step: impl Fn(u64) -> Option<usize>,
    along: Option<Loop>,
    lines: Option<Loop>,
) -> Option<Strip> {
    let once = Loop::new(1, 0, 0);
    let (along, lines) = (along.unwrap_or(once), lines.unwrap_or(once));
    Some(Strip {
        lines: usize::try_from(lines.extent).ok()?,
        source_line: step(lines.source)?,
        destination_line: step(lines.destination)?,
        blocks: usize::try_from(along.extent).ok()?,
        source_step: step(along.source)?,
        destination_step: step(along.destination)?,
        rows: 1,
        columns: 1,
        ..Strip::default()
    })
}

/// The loops without their padding, which other leaves write.
fn extents(loops: Vec<Loop>) -> Vec<Loop> {
    loops.into_iter().map(|l| Loop { full: l.extent, ..l }).collect()
}

/// A step in whole bytes, as kernels count them: modulo the size of an address.
pub(super) fn step(bits: u64) -> Option<usize> {
    let bits = bits.cast_signed();
    if bits % 8 == 0 { signed(bits / 8) } else { None }
}

pub(super) fn signed(step: i64) -> Option<usize> {
    isize::try_from(step).ok().map(isize::cast_unsigned)
}

/// Whole bytes, as this machine counts them.
fn bytes(bits: u64) -> Option<usize> {
    if bits.is_multiple_of(8) { usize::try_from(bits / 8).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relayout_kernels::Core;

    fn elements(source_bits: u32, destination_bits: u32) -> Elements {
        let (truth, source_end) = (false, 1 << 40);
        Elements {
            source_bits,
            destination_bits,
            truth,
            source_end,
            fill: 0,
            stores: Stores {
                tier: Tier::SCALAR,
                core: Core::Zen5,
                asked: Some(false),
                both_bytes: 0,
                all_bytes: 0,
                from_scratch: false,
            },
            alone: true,
            has_matrices: true,
            is_staged: false,
            are_few: true,
            passes: Room::Enough,
        }
    }

    /// The op that is chosen for loops of an extent, a source and a destination
    /// stride, in bits.
    fn op(widths: (u32, u32), loops: &[(u64, u64, u64)]) -> String {
        let loops = loops.iter().map(|&(n, s, d)| Loop::new(n, s, d)).collect();
        let nest = Nest { source: 0, destination: 0, loops };
        data(nest, &elements(widths.0, widths.1)).unwrap()[0].op.to_string()
    }

    #[test]
    fn the_contiguous_loops_decide() {
        let f32 = (32, 32);
        assert_eq!(op(f32, &[(128, 32, 32), (8, 99 * 32, 4096)]), "copy");
        // Two rows side by side, and back.
        assert_eq!(op((16, 16), &[(2, 9600, 16), (128, 16, 32)]), "interleave2x16");
        assert_eq!(op((16, 16), &[(2, 16, 9600), (128, 32, 16)]), "deinterleave2x16");
        // Pairs that stay together are words.
        assert_eq!(op((16, 16), &[(2, 16, 16), (64, 32, 640), (8, 3200, 32)]), "transpose32");
        assert_eq!(op(f32, &[(20, 32, 320), (10, 640, 32)]), "transpose32");
        // One row of words of two, of four, and of three.
        assert_eq!(op(f32, &[(20, 64, 32)]), "deinterleave2x32");
        assert_eq!(op((8, 8), &[(20, 32, 8)]), "deinterleave4x8");
        assert_eq!(op(f32, &[(20, 96, 32)]), "strided32");
        assert_eq!(op(f32, &[]), "copy");
        // Words of two rows into words of two columns, and of rows of two arrays.
        let squares = [(2, 16, 32), (2, 32, 16), (64, 64, 4096), (64, 4096, 64)];
        assert_eq!(op((16, 16), &squares), "transpose32-interleave2x16");
        let words = [(2, 16, 8000), (2, 9600, 16), (128, 32, 32)];
        assert_eq!(op((16, 16), &words), "exchange2x16");
        let words = [(4, 8, 8000), (4, 9600, 8), (128, 32, 32)];
        assert_eq!(op((8, 8), &words), "exchange4x8");
        // Words of a row that another loop, or the end of the source, does not have whole.
        assert_eq!(op((8, 8), &[(20, 32, 8), (6, 8 * 83, 8 * 20)]), "strided8");
        let words = Nest { source: 0, destination: 0, loops: vec![Loop::new(20, 32, 8)] };
        let of_bytes = |source_end| {
            let elements = Elements { source_end, ..elements(8, 8) };
            data(words.clone(), &elements).unwrap()[0].op.to_string()
        };
        assert_eq!(of_bytes(20 * 32), "deinterleave4x8");
        assert_ne!(of_bytes(20 * 32 - 24), "deinterleave4x8");
        // Sixteen ways have no kernel of their own.
        assert_eq!(op((8, 8), &[(16, 999 * 8, 8), (50, 8, 128)]), "transpose8");
    }

    #[test]
    fn short_runs_in_rows_and_columns_are_transposed() {
        let of = |run: u64, stores: Stores| {
            let loops = [(run, 8, 8), (50, 8 * run, 60 * 8 * run), (60, 50 * 8 * run, 8 * run)];
            let loops = loops.map(|(n, s, d)| Loop::new(n, s, d)).to_vec();
            let elements = Elements { stores, source_end: 1 << 60, ..elements(8, 8) };
            let leaves = data(Nest { source: 0, destination: 0, loops }, &elements).unwrap();
            (leaves[0].op.to_string(), leaves[0].strip.element_bytes)
        };
        let stored = elements(8, 8).stores;
        for (run, op) in [(3, "transpose24"), (12, "transpose96"), (16, "transpose128")] {
            assert_eq!(of(run, stored), (op.to_owned(), usize::try_from(run).unwrap()));
        }
        // Words have kernels of their own.
        assert_eq!(of(8, stored), ("transpose64".to_owned(), 0));
        // As long as there is something to gain, which is less where they are streamed.
        let streamed = Stores { asked: Some(true), ..stored };
        assert_eq!((&*of(400, stored).0, &*of(401, stored).0), ("transpose3200", "copy"));
        assert_eq!((&*of(100, streamed).0, &*of(101, streamed).0), ("transpose800", "copy"));
        // Runs that begin anywhere on one side, or have padding behind them.
        assert_eq!(
            op((8, 8), &[(24, 8, 8), (50, 200, 24 * 60 * 8), (60, 9999 * 8, 24 * 8)]),
            "copy"
        );
        let padded = Loop { full: 32, ..Loop::new(24, 8, 8) };
        let loops =
            vec![padded, Loop::new(50, 24 * 8, 32 * 60 * 8), Loop::new(60, 24 * 50 * 8, 256)];
        let nest = Nest { source: 0, destination: 0, loops };
        assert_eq!(data(nest, &elements(8, 8)).unwrap()[0].op.to_string(), "copy");
    }

    #[test]
    fn a_call_that_is_told_an_order_has_few_blocks() {
        // Of rows that begin within lines, and of such that begin at lines, which are streamed.
        for (row, is_streamed) in [(130 * 8, false), (192 * 8, true)] {
            let loops = [(4, 8, row), (128, 32, 8), (2, 4096, 4 * row), (1 << 30, 8192, 8 * row)];
            let loops = loops.map(|(n, s, d)| Loop::new(n, s, d)).to_vec();
            let far = Stores {
                tier: Tier::PORTABLE,
                core: Core::Zen3,
                asked: None,
                both_bytes: 1 << 40,
                all_bytes: 1 << 40,
                from_scratch: false,
            };
            let elements = Elements { stores: far, source_end: 1 << 60, ..elements(8, 8) };
            for leaf in data(Nest { source: 0, destination: 0, loops }, &elements).unwrap() {
                assert_eq!(leaf.op.to_string(), "deinterleave4x8");
                assert_eq!(far.streams(leaf.op, &leaf.strip), is_streamed);
                let blocks = leaf.strip.lines * leaf.strip.blocks;
                assert_eq!(blocks > BLOCKS_OF_CALL, is_streamed, "{blocks}");
            }
        }
    }

    #[test]
    fn a_loop_that_continues_both_sides_joins_the_shorter_one() {
        let nest = |rows: u64, columns: u64| {
            let loops = [(rows, 1 << 20, 8), (columns, 8, 8000 * rows), (5, 8 * columns, 8 * rows)];
            let loops = loops.map(|(n, s, d)| Loop::new(n, s, d)).to_vec();
            data(Nest { source: 0, destination: 0, loops }, &elements(8, 8))
                .unwrap()
                .remove(0)
                .strip
        };
        let (wide, high) = (nest(20, 100), nest(100, 20));
        assert_eq!((wide.blocks, wide.source_step, wide.destination_step), (5, 100, 20));
        assert_eq!((wide.lines, high.blocks), (1, 1));
        assert_eq!((high.lines, high.source_line, high.destination_line), (5, 20, 100));
    }

    #[test]
    fn below_a_byte_rows_are_squeezed_and_runs_narrowed() {
        assert_eq!(op((8, 1), &[(32, 800, 1), (100, 8, 32)]), "squeeze1-interleave4x8");
        assert_eq!(op((1, 8), &[(32, 1, 800), (100, 32, 8)]), "deinterleave4x8-unsqueeze1");
        // The last of so many rows that one is left over.
        assert_eq!(op((1, 8), &[(100, 32, 8)]), "deinterleave4x8-unsqueeze1");
        assert_eq!(op((8, 4), &[(100, 8, 4)]), "narrow4");
        assert_eq!(op((4, 8), &[(100, 4, 8)]), "widen4");
        // Rows that are packed, and the last one of them.
        assert_eq!(op((4, 4), &[(8, 4096, 4), (128, 4, 32)]), "interleave8x4");
        assert_eq!(op((1, 1), &[(32, 1, 4096), (128, 32, 1)]), "deinterleave32x1");
        assert_eq!(op((1, 1), &[(128, 32, 1)]), "deinterleave32x1");
        // Words of 16 bits have no kernel of their own.
        assert_eq!(op((4, 4), &[(4, 4096, 4), (128, 4, 16)]), "bits4to4");
        // Of rows that end within a byte.
        assert_eq!(op((4, 4), &[(8, 4096, 4), (127, 4, 32)]), "bits4to4");
        assert_eq!(op((1, 1), &[(100, 32, 1)]), "bits1to1");
        // Three columns of four bits are no whole bytes; eight together are one word.
        assert_eq!(op((4, 4), &[(3, 4, 12), (5, 12, 4)]), "bits4to4");
        assert_eq!(op((4, 4), &[(8, 4, 4), (5, 96, 32)]), "strided32");
    }

    #[test]
    fn what_an_op_does_not_pad_is_filled_by_others() {
        let padded = |extent, full, source, destination| Loop {
            full,
            ..Loop::new(extent, source, destination)
        };
        // A copy writes the zeros behind its run, not the rows of zeros below.
        let loops = vec![padded(5, 8, 3200, 512 * 8), padded(100, 128, 32, 32)];
        let nest = Nest { source: 0, destination: 0, loops };
        let leaves = data(nest, &elements(32, 32)).unwrap();
        assert_eq!((leaves[0].strip.columns, leaves[0].strip.pad), (400, 112));
        assert_eq!((leaves[1].op, leaves[1].strip.columns), (BlockOp::Fill, 3 * 512));
        assert_eq!(leaves[1].destination, 5 * 512 * 8);
        assert_eq!(leaves.len(), 2);
        // An interleave has room for rows that are not there.
        let loops = vec![padded(1, 2, 3200, 16), padded(100, 128, 16, 32)];
        let nest = Nest { source: 0, destination: 0, loops };
        let leaves = data(nest, &elements(16, 16)).unwrap();
        assert_eq!((leaves.len(), leaves[0].strip.rows, leaves[0].strip.pad), (1, 1, 28 * 4));
    }

    #[test]
    fn words_that_end_beyond_the_source_are_not_read() {
        let loops = vec![Loop::new(1, 8, 800), Loop::new(3, 8, 800), Loop::new(10, 32, 8)];
        let nest = Nest { source: 0, destination: 0, loops };
        let of = |source_end| {
            let elements = Elements { source_end, ..elements(8, 8) };
            data(nest.clone(), &elements).unwrap()[0].op.to_string()
        };
        assert_eq!(of(10 * 32), "deinterleave4x8");
        assert_eq!(of(10 * 32 - 8), "transpose8");
        // Nor are those of one row, which may begin within words as well.
        let of = |source, source_end| {
            let nest = Nest { source, destination: 0, loops: vec![Loop::new(10, 32, 8)] };
            let elements = Elements { source_end, ..elements(8, 8) };
            data(nest, &elements).unwrap()[0].op.to_string()
        };
        assert_eq!(of(0, 10 * 32), "deinterleave4x8");
        assert_eq!(of(0, 10 * 32 - 24), "strided8");
        assert_eq!(of(8, 11 * 32), "strided8");
    }

    #[test]
    fn calls_of_too_many_blocks_are_split() {
        let strip = Strip {
            lines: 5,
            source_line: 1 << 20,
            destination_line: 3,
            blocks: 2 * BLOCKS_OF_LINE + 1,
            source_step: 7,
            destination_step: 1 << 10,
            columns: 2,
            ..Strip::default()
        };
        let outer = Loop::new(9, 8 << 30, 8 << 30);
        let loops = vec![outer];
        let leaf = Leaf::of_kernel(80, 8, loops, BlockOp::Copy, strip);
        // What is visited, in bits: by the loops but the outer one, lines and blocks.
        let visited = |leaf: &Leaf| {
            let mut places = vec![(leaf.source, leaf.destination)];
            let along = |extent: usize, source, destination| {
                let bits = |step: usize| u64::try_from(step).unwrap() * 8;
                Loop::new(extent.try_into().unwrap(), bits(source), bits(destination))
            };
            let Strip { source_line, destination_line, .. } = leaf.strip;
            let Strip { source_step, destination_step, .. } = leaf.strip;
            let lines = along(leaf.strip.lines, source_line, destination_line);
            let blocks = along(leaf.strip.blocks, source_step, destination_step);
            for l in leaf.loops.iter().filter(|&&l| l != outer).chain([&lines, &blocks]) {
                places = places
                    .iter()
                    .flat_map(|&(s, d)| {
                        (0..l.extent).map(move |i| (s + i * l.source, d + i * l.destination))
                    })
                    .collect();
            }
            places
        };
        let mut expected = visited(&leaf);
        let parts = leaf.split().unwrap();
        for part in &parts {
            assert!(part.strip.blocks <= BLOCKS_OF_LINE, "{part:?}");
            assert!(part.strip.blocks * part.strip.lines <= BLOCKS_OF_CALL, "{part:?}");
            assert_eq!(part.loops[0], outer);
        }
        let mut split: Vec<_> = parts.iter().flat_map(visited).collect();
        split.sort_unstable();
        expected.sort_unstable();
        assert_eq!(split, expected);
    }
}
