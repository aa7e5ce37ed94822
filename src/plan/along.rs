//! A kernel call in smaller ones: fewer lines, blocks, rows or columns at a time.

use relayout_kernels::{BlockOp, is_of_runs};

use super::choose::{Leaf, WORD_BITS, lots};
use super::nest::Loop;

/// What a call goes along.
#[derive(Clone, Copy)]
pub(super) enum Along {
    Lines,
    Blocks,
    Rows,
    Columns,
}

impl Along {
    pub(super) fn count(self, leaf: &Leaf) -> usize {
        match self {
            Along::Lines => leaf.strip.lines,
            Along::Blocks => leaf.strip.blocks,
            Along::Rows => leaf.strip.rows,
            Along::Columns => leaf.strip.columns,
        }
    }

    pub(super) fn set(self, leaf: &mut Leaf, count: usize) {
        match self {
            Along::Lines => leaf.strip.lines = count,
            Along::Blocks => leaf.strip.blocks = count,
            Along::Rows => leaf.strip.rows = count,
            Along::Columns => leaf.strip.columns = count,
        }
    }

    /// A call takes so many, or a multiple, or all.
    pub(super) fn least(self, leaf: &Leaf) -> usize {
        match (self, leaf.op) {
            (Along::Lines | Along::Blocks, _) => 1,
            // Some runs fit into the scratch memory of any stage, or one does.
            (Along::Rows | Along::Columns, BlockOp::Transpose { bits }) if is_of_runs(bits) => 1,
            // A line of each, or some of them: so little fits as well.
            (Along::Rows | Along::Columns, BlockOp::Transpose { bits }) => {
                usize::try_from(512 / bits.max(1)).map_or(16, |elements| elements.clamp(16, 64))
            }
            (
                Along::Rows,
                BlockOp::GatherTranspose { .. }
                | BlockOp::NarrowTranspose { .. }
                | BlockOp::TransposeWiden { .. },
            ) => 64,
            // The rows of a word stay together, and the channels of a pixel.
            (Along::Rows, _) => leaf.strip.rows,
            (Along::Columns, BlockOp::GatherTranspose { .. }) => leaf.strip.columns,
            (Along::Columns, _) => 64,
        }
    }

    /// From one to the next on both sides, in bits.
    fn steps(self, leaf: &Leaf) -> Option<(u64, u64)> {
        let strip = &leaf.strip;
        let bits = |bytes: usize| {
            Some(i64::try_from(bytes.cast_signed()).ok()?.wrapping_mul(8).cast_unsigned())
        };
        // What is a word further for each of its elements, so many bits wide.
        let element_of = |word: u64, width: u32| {
            let word = word.cast_signed();
            let count = i64::try_from(WORD_BITS).ok()?.checked_div(width.into())?;
            (word % count == 0).then(|| (word / count).cast_unsigned())
        };
        Some(match (self, leaf.op) {
            (Along::Lines, _) => (bits(strip.source_line)?, bits(strip.destination_line)?),
            (Along::Blocks, _) => (bits(strip.source_step)?, bits(strip.destination_step)?),
            (Along::Rows, BlockOp::Transpose { bits: width }) => {
                (bits(strip.row_stride)?, width.into())
            }
            (Along::Rows, BlockOp::GatherTranspose { .. } | BlockOp::NarrowTranspose { .. }) => {
                (bits(strip.row_stride)?, WORD_BITS)
            }
            (Along::Rows, BlockOp::TransposeWiden { bits: width }) => {
                (element_of(bits(strip.row_stride)?, width)?, 8)
            }
            (Along::Columns, BlockOp::NarrowTranspose { bits: width, .. }) => {
                (8, element_of(bits(strip.column_stride)?, width)?)
            }
            (Along::Columns, BlockOp::TransposeScatter { .. } | BlockOp::TransposeWiden { .. }) => {
                (WORD_BITS, bits(strip.column_stride)?)
            }
            (Along::Columns, BlockOp::Copy) => (8, 8),
            (Along::Columns, BlockOp::Interleave { ways, bits, .. }) => {
                (bits.into(), (ways * bits).into())
            }
            (Along::Columns, BlockOp::Deinterleave { ways, bits, .. }) => {
                ((ways * bits).into(), bits.into())
            }
            (Along::Columns, BlockOp::Squeeze { ways, .. }) => (8, (8 * ways).into()),
            (Along::Columns, BlockOp::Unsqueeze { ways, .. }) => ((8 * ways).into(), 8),
            (Along::Columns, BlockOp::Narrow { bits, .. }) => (8, bits.into()),
            (Along::Columns, BlockOp::Widen { bits }) => (bits.into(), 8),
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
    pub(super) fn split(self, leaf: Leaf, size: usize) -> Option<Vec<Leaf>> {
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
