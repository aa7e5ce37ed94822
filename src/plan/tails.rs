//! Whole tiles and the last one, in one kernel call.
//!
//! Where a bound is no multiple of its tile, what the last tile has is a region of its own, as its loops differ. If its
//! kernel does the same as that of the whole tiles, with fewer columns or rows, it is the *tail* of the other one:
//!
//! ```text
//! a row of 12 columns in tiles of 8       | 0 ..  7 | 8 .. 11 |
//! two regions, one call                     line      tail
//! ```
//!
//! Of transposes, a tail is one more line of fewer columns, where lines go on with each other in the source, or one more
//! block of fewer rows, where blocks do so in the destination. So rows that follow each other in memory are read as a whole,
//! and columns that do so written as a whole. They are joined before anything else is made of them. Of copies, and of words
//! that are taken apart into rows, it is a line, and only where they are streamed, which need not end between the two then:
//! a program does that, once it has put both into the same loops.

use relayout_kernels::{BlockOp, Strip};

use super::choose::{Leaf, bits};
use super::nest::Loop;
use super::program::goes_by_source;
use super::stores::Stores;
use crate::Tier;

/// A transpose is called by more loops for the sake of its tail only where each call writes so many bytes.
const LEAST_CALL: usize = 8 << 10;

/// So many bytes on the shorter side of a matrix are worth vectors.
const LEAST_SIDE: usize = 16;

/// Joins each transpose with the one that is its tail, if that is among these leaves.
pub(super) fn join_transposes(leaves: &mut Vec<Leaf>) {
    let mut i = 0;
    while i < leaves.len() {
        let leaf = &leaves[i];
        let found = leaves.iter().enumerate().find_map(|(j, tail)| Some((j, joined(leaf, tail)?)));
        if let Some((j, both)) = found {
            leaves[i] = both;
            leaves.remove(j);
            i -= usize::from(j < i);
        }
        i += 1;
    }
}

/// A leaf that transposes and its tail, as one.
fn joined(leaf: &Leaf, tail: &Leaf) -> Option<Leaf> {
    let BlockOp::Transpose { bits } = leaf.op else { return None };
    let width = usize::try_from(bits / 8).ok()?;
    let tail = as_transpose(tail, leaf, width)?;
    let both = with_columns(leaf, &tail, width)
        .or_else(|| Some(mirrored(&with_columns(&mirrored(leaf), &mirrored(&tail), width)?)))?;
    let has_calls =
        both.loops.len() <= leaf.loops.len() || both.strip.written_bytes(both.op)? >= LEAST_CALL;
    // Narrow ones go by blocks where these are not even.
    let (rows, columns) = both.strip.matrix_size(width);
    let is_wide = rows.min(columns).saturating_mul(width) >= LEAST_SIDE;
    (has_calls && (is_wide || both.strip.is_even_matrix(width))).then_some(both)
}

/// A leaf that transposes as another one does, or moves one row or one column of such elements, as a transpose.
fn as_transpose(leaf: &Leaf, like: &Leaf, width: usize) -> Option<Leaf> {
    let mut strip = leaf.strip;
    match (leaf.op, like.op) {
        (op, like) if op == like => {}
        (BlockOp::Strided { bits }, BlockOp::Transpose { bits: like_bits })
            if bits == like_bits =>
        {
            let strides = (strip.row_stride, strip.column_stride);
            if strides == (like.strip.row_stride, width) {
                (strip.rows, strip.columns) = (strip.columns, 1);
            } else if strides != (width, like.strip.column_stride) {
                return None;
            }
        }
        _ => return None,
    }
    // One row has no stride.
    if strip.rows == 1 {
        strip.row_stride = like.strip.row_stride;
    }
    if strip.columns == 1 {
        strip.column_stride = like.strip.column_stride;
    }
    Some(Leaf { op: like.op, strip, ..leaf.clone() })
}

/// Both as one, where the columns of the second one go on with the rows of the first one in the source.
fn with_columns(leaf: &Leaf, tail: &Leaf, width: usize) -> Option<Leaf> {
    let mut both = leaf.clone();
    let (strip, loops) = (&mut both.strip, &mut both.loops);
    let row = strip.columns.checked_mul(width)?;
    if strip.lines > 1 && strip.source_line != row {
        // There is one line of those that go on. Around it goes what makes the longer steps.
        let lines = along(strip.lines, strip.source_line, strip.destination_line)?;
        let blocks = along(strip.blocks, strip.source_step, strip.destination_step)?;
        let step = |l: &Loop| l.source.cast_signed().unsigned_abs();
        if blocks.extent > 1 && step(&blocks) > step(&lines) {
            (strip.blocks, strip.source_step, strip.destination_step) =
                (strip.lines, strip.source_line, strip.destination_line);
            loops.push(blocks);
        } else {
            loops.push(lines);
        }
        sort(loops);
        strip.lines = 1;
    }
    let (last, steps) = line_behind(leaf, tail, strip, loops)?;
    (strip.source_line, strip.destination_line) = steps;
    strip.tail = last.columns;
    (strip.source_line == row && !leaf.strip.has_tail()).then_some(both)
}

/// The same of a transpose the other way round: source and destination in each other's place, and so rows and columns, and
/// blocks and lines.
fn mirrored(leaf: &Leaf) -> Leaf {
    let strip = leaf.strip;
    let mut loops = leaf.loops.clone();
    loops.iter_mut().for_each(|l| std::mem::swap(&mut l.source, &mut l.destination));
    sort(&mut loops);
    Leaf {
        source: leaf.destination,
        destination: leaf.source,
        loops,
        strip: Strip {
            lines: strip.blocks,
            source_line: strip.destination_step,
            destination_line: strip.source_step,
            blocks: strip.lines,
            source_step: strip.destination_line,
            destination_step: strip.source_line,
            rows: strip.columns,
            row_stride: strip.column_stride,
            columns: strip.rows,
            column_stride: strip.row_stride,
            tail: strip.tail_rows,
            tail_rows: strip.tail,
            ..strip
        },
        ..leaf.clone()
    }
}

/// Makes one of fills that follow each other, of leaves that are sorted by where they begin.
pub(super) fn join_fills(leaves: &mut Vec<Leaf>) {
    let mut i = 0;
    while i < leaves.len() {
        let first = &leaves[i];
        let near = leaves[i + 1..]
            .iter()
            .take_while(|leaf| first.op == BlockOp::Fill && leaf.destination <= end_of_run(first));
        let behind = near.into_iter().position(|leaf| is_behind(leaf, first));
        if let Some(behind) = behind {
            let columns = leaves.remove(i + 1 + behind).strip.columns;
            leaves[i].strip.columns += columns;
        } else {
            i += 1;
        }
    }
}

/// Where the first run of a fill ends.
fn end_of_run(leaf: &Leaf) -> u64 {
    leaf.destination.wrapping_add(bits(1, leaf.strip.columns))
}

/// Whether a fill goes on where another one ends, each time.
fn is_behind(leaf: &Leaf, before: &Leaf) -> bool {
    let strip = Strip { columns: before.strip.columns, ..leaf.strip };
    (leaf.op, before.op) == (BlockOp::Fill, BlockOp::Fill)
        && leaf.destination == end_of_run(before)
        && leaf.loops == before.loops
        && leaf.is_under == before.is_under
        && strip == before.strip
}

/// Where the blocks of a leaf are the tails of the lines of the one before it, if only these had
/// other loops around them: gives them these.
pub(super) fn share_loops(before: &mut Leaf, leaf: &mut Leaf, stores: Stores) {
    let could_be_tail =
        leaf.op == before.op && leaf.strip.columns < before.strip.columns && leaf.hop.is_none();
    if !could_be_tail || !goes_by_source(before, stores) {
        return;
    }
    let mut strip = before.strip;
    if strip.lines == 1 {
        (strip.lines, strip.source_line, strip.destination_line) =
            (strip.blocks, strip.source_step, strip.destination_step);
        (strip.blocks, strip.source_step, strip.destination_step) = (1, 0, 0);
    }
    let Some((one_line, _)) = line_behind(before, leaf, &strip, &before.loops) else { return };
    if is_long_enough(&one_line, before, stores.tier) {
        (before.strip, leaf.strip, leaf.loops) = (strip, one_line, before.loops.clone());
    }
}

/// A leaf as one line, where it is the one behind the lines of the leaf before it, which is taken to have this strip in
/// these loops; and how far it is from line to line.
fn line_behind(
    before: &Leaf,
    leaf: &Leaf,
    strip: &Strip,
    loops: &[Loop],
) -> Option<(Strip, (usize, usize))> {
    let one_line = Strip {
        lines: 1,
        source_line: 0,
        destination_line: 0,
        blocks: strip.blocks,
        source_step: strip.source_step,
        destination_step: strip.destination_step,
        ..leaf.strip
    };
    if loops_around(leaf, strip)? != loops {
        return None;
    }
    let as_one = |leaf: &Leaf, strip| Leaf { loops: Vec::new(), strip, ..leaf.clone() };
    let steps = steps_to_tail(&as_one(before, *strip), &as_one(leaf, one_line))?;
    Some((one_line, steps))
}

/// Whether a line is enough for the kernel that streams those before it.
fn is_long_enough(line: &Strip, before: &Leaf, tier: Tier) -> bool {
    let runs = line.destination_runs(before.op);
    let least = before.strip.least_tail(before.op, tier);
    runs.zip(least).is_some_and(|(runs, least)| runs.bytes >= least)
}

/// The loops around one line of the blocks that `strip` has, in which a leaf would do the same.
fn loops_around(leaf: &Leaf, strip: &Strip) -> Option<Vec<Loop>> {
    let of = |strip: &Strip| along(strip.blocks, strip.source_step, strip.destination_step);
    let Strip { lines, source_line, destination_line, .. } = leaf.strip;
    let mut loops = leaf.loops.clone();
    loops.extend([along(lines, source_line, destination_line)?, of(&leaf.strip)?]);
    loops.retain(|l| l.extent > 1);
    if strip.blocks > 1 {
        let blocks = of(strip)?;
        let at = loops.iter().position(|&l| l == blocks)?;
        loops.remove(at);
    }
    sort(&mut loops);
    Some(loops)
}

/// A loop of so many steps of so many bytes.
pub(super) fn along(count: usize, source: usize, destination: usize) -> Option<Loop> {
    Some(Loop::new(u64::try_from(count).ok()?, bits(1, source), bits(1, destination)))
}

/// In the order of canonical nests.
pub(super) fn sort(loops: &mut [Loop]) {
    loops.sort_by_key(|l| std::cmp::Reverse((l.destination, l.source)));
}

/// Takes the leaf whose kernel goes on with the lines of another one, in shorter runs, if it is
/// among some: what is streamed then needs not end between the two.
pub(super) fn take_tail(leaf: &mut Leaf, others: &mut Vec<Leaf>, tier: Tier) {
    let found = others.iter().enumerate().find_map(|(i, tail)| {
        let steps = steps_to_tail(leaf, tail)?;
        is_long_enough(&tail.strip, leaf, tier).then_some((i, steps))
    });
    if let Some((i, steps)) = found {
        (leaf.strip.source_line, leaf.strip.destination_line) = steps;
        leaf.strip.tail = others.remove(i).strip.columns;
    }
}

/// How far it is from line to line of a leaf, where another one is the line behind these, of fewer
/// columns.
fn steps_to_tail(leaf: &Leaf, tail: &Leaf) -> Option<(usize, usize)> {
    let strip = leaf.strip;
    let as_long = Strip {
        lines: strip.lines,
        source_line: strip.source_line,
        destination_line: strip.destination_line,
        columns: strip.columns,
        ..tail.strip
    };
    let goes_on = leaf.op == tail.op
        && [leaf, tail].iter().all(|leaf| leaf.hop.is_none() && !leaf.stages.are_there())
        && tail.loops.is_empty()
        && tail.strip.lines == 1
        && tail.strip.columns < strip.columns
        && strip.pad == 0
        && as_long == strip;
    let bytes = |from: u64, to: u64| {
        usize::try_from((to.wrapping_sub(from).cast_signed() / 8).cast_unsigned()).ok()
    };
    let source = bytes(leaf.source, tail.source)?;
    let destination = bytes(leaf.destination, tail.destination)?;
    // One line has no steps yet.
    let (source_line, destination_line) = if strip.lines == 1 {
        (source, destination)
    } else {
        (strip.source_line, strip.destination_line)
    };
    let is_there = strip.lines.wrapping_mul(source_line) == source
        && strip.lines.wrapping_mul(destination_line) == destination;
    (goes_on && is_there).then_some((source_line, destination_line))
}

#[cfg(test)]
mod tests {
    use super::super::program::tests::leaf;
    use super::*;
    use crate::plan::explain::Part;
    use crate::{PlanBuilder, Shape};

    /// The kernels that transpose or move single elements: columns and rows of their blocks, and of those behind these.
    /// Every tier has the same.
    fn transposes(shape: &str, packs: bool) -> Vec<[usize; 4]> {
        let of: Shape = shape.parse().unwrap();
        let found = Tier::available().into_iter().map(|tier| {
            let builder = PlanBuilder::new().tier(tier);
            let plan = if packs { builder.pack(&of) } else { builder.unpack(&of) }.unwrap();
            let parts = plan.explain().parts.into_iter().filter(|part| part.op != BlockOp::Fill);
            let sizes = |part: Part| [part.columns, part.last_columns, part.rows, part.last_rows];
            (tier, parts.map(sizes).collect())
        });
        let each: Vec<(Tier, Vec<[usize; 4]>)> = found.collect();
        let (_, first) = each[0].clone();
        for (tier, others) in each {
            assert_eq!(others, first, "{shape}, {}", tier.name());
        }
        first
    }

    #[test]
    fn the_last_tile_goes_with_whole_ones() {
        for (shape, whole, last) in [
            ("f32[6,256,20]{1,2,0:T(8,128)}", 8, 4),
            ("bf16[6,1024,100]{1,2,0:T(8,128)(2,1)}", 4, 2),
            // One word of four bytes.
            ("s8[6,256,100]{1,2,0:T(8,128)(4,1)}", 2, 1),
            // One whole tile, in loops of their own.
            ("f32[3,512,12]{1,2,0:T(8,128)}", 8, 4),
            ("f32[256,20]{0,1:T(8,128)}", 8, 4),
        ] {
            assert_eq!(transposes(shape, true), [[whole, last, 128, 0]], "{shape}");
            assert_eq!(transposes(shape, false), [[128, 0, whole, last]], "{shape}");
        }
        // Of both bounds a rest: as many as there would be of one.
        let both = transposes("f32[200,20]{0,1:T(8,128)}", true);
        assert_eq!(both, [[8, 4, 128, 0], [8, 4, 72, 0]]);
    }

    #[test]
    fn short_calls_and_narrow_sides_stay_apart() {
        // In calls of all images, of 6 KiB for each of these.
        let apart = transposes("f32[300,256,6]{1,2,0:T(4,128)}", true);
        assert_eq!(apart, [[4, 0, 128, 0], [2, 0, 128, 0]]);
        // Two words, and one.
        let narrow = transposes("f32[640,3]{0,1:T(2,128)}", true);
        assert!(narrow.iter().all(|&[_, last, ..]| last == 0), "{narrow:?}");
    }

    #[test]
    fn only_the_line_behind_the_others_goes_with_them() {
        let lines = |columns, lines, at: u64| {
            let mut leaf = leaf(8 * at, &[], columns);
            leaf.source = 16 * at;
            let strip = &mut leaf.strip;
            (strip.lines, strip.source_line, strip.destination_line) = (lines, 256, 128);
            (strip.blocks, strip.source_step, strip.destination_step) = (4, 64, 1000);
            leaf
        };
        let (alike, last) = (lines(128, 3, 0), lines(70, 1, 384));
        let steps_to = |leaf: &Leaf, tail: &Leaf| {
            let is_long = is_long_enough(&tail.strip, leaf, Tier::SCALAR);
            steps_to_tail(leaf, tail).filter(|_| is_long)
        };
        assert_eq!(steps_to(&alike, &last), Some((256, 128)));
        // One line has the steps to the other one.
        let mut one = lines(128, 1, 0);
        (one.strip.source_line, one.strip.destination_line) = (0, 0);
        assert_eq!(steps_to(&one, &lines(70, 1, 128)), Some((256, 128)));

        let refused = |change: fn(&mut Leaf)| {
            let mut other = last.clone();
            change(&mut other);
            assert_eq!(steps_to(&alike, &other), None, "{other:?}");
        };
        refused(|leaf| leaf.destination += 8);
        refused(|leaf| leaf.source -= 8);
        refused(|leaf| leaf.strip.lines = 2);
        refused(|leaf| leaf.strip.columns = 128);
        refused(|leaf| leaf.strip.columns = 63);
        refused(|leaf| leaf.strip.blocks = 3);
        refused(|leaf| leaf.strip.destination_step = 999);
        refused(|leaf| leaf.strip.rows = 2);
        refused(|leaf| leaf.strip.pad = 1);
        refused(|leaf| leaf.loops.push(Loop::new(2, 8, 8)));
        refused(|leaf| leaf.op = BlockOp::Fill);
        let mut fill = alike.clone();
        fill.op = BlockOp::Fill;
        let other = Leaf { op: BlockOp::Fill, ..last };
        assert_eq!(steps_to(&fill, &other), None);
    }
}
