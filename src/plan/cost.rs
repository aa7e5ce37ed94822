//! How long kernels take, about: what decides whether two passes are quicker than one.
//!
//! Times are in picoseconds, and only their ratios matter: they were fitted to what the layouts
//! of the corpus took, each way they can go (see `docs/performance.md`).

use relayout_kernels::{BlockOp, ROOM, Runs, is_of_runs};

use super::choose::{Elements, Leaf};
use super::staged::Stage;
use super::stores::{LINE, LINE_BITS, Stores};
use crate::error::Side;

/// About how long some kernels take. `None` where a number does not fit.
pub(super) fn cost(leaves: &[Leaf], stores: Stores) -> Option<u64> {
    leaves.iter().try_fold(0_u64, |sum, leaf| {
        sum.checked_add(cost_of(leaf, stores)?)?.checked_add(parts_of_lines(leaf)?)
    })
}

/// The same of a pass, whose other side is scratch memory.
fn cost_of_pass(leaves: &[Leaf], stores: Stores) -> Option<u64> {
    leaves.iter().try_fold(0_u64, |sum, leaf| sum.checked_add(cost_of(leaf, stores)?))
}

/// The bytes of the shortest vector.
const SHORTEST: usize = 16;

/// A call, and a block of one.
const CALL: u64 = 10_000;
const BLOCK: u64 = 3_500;
/// A byte that is moved by vectors.
const BYTE: u64 = 25;
/// A line that is not streamed, where those beside it are.
const KEPT_LINE: u64 = 50_000;
/// What is squeezed goes through memory, a stretch at a time, or in short rows one element after the other.
const STRETCH: u64 = 30_000;
const SQUEEZED: u64 = 300;
/// A row of packed elements that is shorter than any vector goes through memory by itself.
const SHORT_ROW: u64 = 8_000;
/// What is narrowed or widened ends in less than a vector.
const ENDS: u64 = 6_000;
/// What a stage brings or takes away is run by run.
const RUN_OF_STAGE: u64 = 8_000;
/// A run of so many numbers or more is converted by vectors, and takes less.
const LEAST_CONVERTED: usize = 16;
const RUN_CONVERTED: u64 = 2_000;
/// And more of one that begins within a byte.
const RUN_WITHIN_BYTES: u64 = 4_000;
/// A part of a line that no stage brings or takes away, and one of those that share few sets of L1.
const PART_OF_LINE: u64 = 2_000;
const CROWDED_PART: u64 = 10_000;
/// A run of few lines that passes read or write.
const FEW_LINES: usize = 4 * LINE;
const PART_OF_PASS: u64 = 5_000;
/// A run that is transposed, beside its bytes.
const RUN: u64 = 250;
/// An element that is moved alone, and one of such as share few sets of L1.
const ELEMENT: u64 = 400;
const CROWDED_ELEMENT: u64 = 2_000;
/// A word of a matrix that is narrower than a vector, and one of such as share few sets of L1.
const WORD: u64 = 400;
const CROWDED_WORD: u64 = 3_000;
/// Rows or columns that are multiples of so many bytes apart fall into few sets of L1,
/// of which a square of bytes has the most. Blocks of such columns are made apart; such rows drive
/// each other out before they are read.
const CROWDED_BYTES: usize = 2048;
const CROWDED: usize = 4096;

fn cost_of(leaf: &Leaf, stores: Stores) -> Option<u64> {
    let calls = leaf.loops.iter().try_fold(1_u64, |n, l| n.checked_mul(l.extent))?;
    if let Some(hop) = &leaf.hop {
        let first = cost_of_pass(&hop.first, stores.into_scratch())?;
        let second = cost_of_pass(&hop.second, stores.out_of_scratch())?;
        // In the near caches both take less.
        return (first.checked_add(second)? / 10 * 9).checked_mul(calls);
    }
    let (strip, op) = (&leaf.strip, leaf.op);
    let wide = |n: usize| u64::try_from(n).ok();
    let elements = wide(strip.rows.max(1))?.checked_mul(wide(strip.columns)?)?;
    let bytes = |bits: u32| elements.checked_mul((bits / 8).into())?.checked_mul(BYTE);
    let is_below_vectors = strip.is_below_vectors(op, stores.tier);
    let block = match op {
        BlockOp::Bits { .. } | BlockOp::FillBits => elements.checked_mul(3_000)?,
        BlockOp::CopyBits { .. } => (elements / 8).checked_mul(BYTE)?.checked_add(ENDS)?,
        BlockOp::Strided { bits } if strip.is_reversed_run(op) => bytes(bits)?.checked_mul(2)?,
        BlockOp::Strided { bits } => {
            let (source, destination) = (strip.row_stride, strip.column_stride);
            let have_few_sets = strip.columns > ROOM
                && (source.is_multiple_of(CROWDED_BYTES)
                    || destination.is_multiple_of(CROWDED_BYTES));
            // There is room for so many lines that are so far apart. What is read waits less for others, and what is wide has
            // several elements in a line that is nearer.
            let (lines, apart) = if strip.columns > 1 {
                (strip.columns, destination)
            } else {
                (strip.blocks, strip.destination_step)
            };
            let sets = apart.trailing_zeros().min(CROWDED_BYTES.trailing_zeros());
            let room = ROOM * (CROWDED_BYTES >> sets);
            let have_no_room =
                bits < u32::BITS && apart > 0 && apart.is_multiple_of(LINE) && lines > room;
            let are_crowded = have_few_sets || have_no_room;
            elements.checked_mul(if are_crowded { CROWDED_ELEMENT } else { ELEMENT })?
        }
        BlockOp::Squeeze { .. } | BlockOp::Unsqueeze { .. } => {
            let byte = if is_below_vectors { SQUEEZED } else { BYTE / 2 };
            elements.checked_mul(byte)?.checked_add(STRETCH)?
        }
        BlockOp::Interleave { ways, bits: bits @ ..8, .. }
        | BlockOp::Deinterleave { ways, bits: bits @ ..8, .. } => {
            let row = strip.columns.checked_mul(bits.try_into().ok()?)? / 8;
            let rows = if row < SHORTEST {
                wide(strip.rows)?.checked_mul(SHORT_ROW)?.max(STRETCH)
            } else if row < LINE || ways > 8 {
                STRETCH
            } else {
                // They fit into registers.
                0
            };
            elements.checked_mul(BYTE / 2)?.checked_add(rows)?
        }
        _ if is_below_vectors => elements.checked_mul(1_500)?,
        BlockOp::Transpose { bits } if is_of_runs(bits) => {
            elements.checked_mul(RUN)?.checked_add(bytes(bits)?)?
        }
        BlockOp::Transpose { bits } => transposed(leaf, bits, bytes(bits)?, stores)?,
        BlockOp::InterleaveTranspose { ways, bits }
        | BlockOp::TransposeDeinterleave { ways, bits }
        | BlockOp::TransposeInterleave { ways, bits } => {
            bytes(ways.checked_mul(bits)?)?.checked_mul(2)?
        }
        BlockOp::GatherTranspose { .. } | BlockOp::TransposeScatter { .. } => {
            bytes(u32::BITS)?.checked_mul(2)?
        }
        BlockOp::InterleaveColumns { bits, .. } | BlockOp::DeinterleaveColumns { bits, .. } => {
            bytes(bits)?.checked_mul(2)?
        }
        BlockOp::NarrowTranspose { bits, .. } | BlockOp::TransposeWiden { bits } => {
            words_of_bytes(leaf, bits, bytes(8)?, stores)?
        }
        BlockOp::CopyWords { .. } => {
            wide(strip.columns)?.checked_mul((u32::BITS / 8).into())?.checked_mul(BYTE)?
        }
        BlockOp::Interleave { bits, .. }
        | BlockOp::Deinterleave { bits, .. }
        | BlockOp::Exchange { bits, .. } => bytes(bits)?,
        // As the same without conversions, of the narrower numbers.
        BlockOp::Convert { conversion }
        | BlockOp::ConvertInterleave { conversion }
        | BlockOp::DeinterleaveConvert { conversion } => {
            let (from, to) = conversion.widths();
            elements.checked_mul(wide(from.min(to))?)?.checked_mul(BYTE)?
        }
        BlockOp::Narrow { .. }
        | BlockOp::Widen { .. }
        | BlockOp::NarrowBits { .. }
        | BlockOp::WidenBits { .. } => bytes(8)?.checked_add(ENDS)?,
        _ => bytes(8)?,
    };
    let blocks = wide(strip.lines)?.checked_mul(wide(strip.blocks)?)?;
    let kept = if keeps_lines(leaf, stores) { KEPT_LINE } else { 0 };
    let stages = [&leaf.stages.source, &leaf.stages.destination].into_iter().flatten();
    let staged = stages
        .map(|stage| cost_of_stage(stage))
        .try_fold(0, |sum: u64, one| sum.checked_add(one?))?;
    // Those that go along a side do not begin anew with each block of it.
    let start = match op {
        BlockOp::Transpose { bits }
            if few(leaf, usize::try_from(bits / 8).ok()?, stores).is_some() =>
        {
            0
        }
        BlockOp::GatherTranspose { .. } | BlockOp::TransposeScatter { .. } => 0,
        _ => BLOCK,
    };
    let call = block.checked_add(start + kept)?.checked_mul(blocks)?.checked_add(CALL + staged)?;
    call.checked_mul(calls)
}

/// Words of elements of so many bits that are transposed as they are made of bytes, or taken apart into such, which are
/// moved in as long as that. Four of them are turned at a time, or more.
fn words_of_bytes(leaf: &Leaf, bits: u32, moved: u64, stores: Stores) -> Option<u64> {
    let strip = &leaf.strip;
    let is_narrowed = matches!(leaf.op, BlockOp::NarrowTranspose { .. });
    let elements = if is_narrowed { strip.columns } else { strip.rows };
    let words = u64::try_from(elements).ok()?.div_ceil((u32::BITS / bits).into()).max(1);
    // In L3, where each element is a small part of a word, blocks have little of many rows.
    let is_in_l3 = !stores.are_shuffled() && !stores.streams(leaf.op, strip);
    let quarters = if is_in_l3 && bits < 4 {
        16
    } else if stores.tier.vector_bytes() < LINE {
        6
    } else {
        8
    };
    let moved = moved.checked_mul(quarters)? / 4;
    moved.checked_mul(words.checked_next_multiple_of(4)?)?.checked_div(words)
}

/// What a stage brings or takes away, run by run.
fn cost_of_stage(stage: &Stage) -> Option<u64> {
    let wide = |n: usize| u64::try_from(n).ok();
    let steps = [stage.lines.array, stage.blocks.array, stage.rows.array];
    let within = if steps.iter().all(|step| step.is_multiple_of(8)) { 0 } else { RUN_WITHIN_BYTES };
    let is_converted = matches!(stage.op, BlockOp::Convert { .. });
    let start = if is_converted && stage.elements >= LEAST_CONVERTED {
        RUN_CONVERTED
    } else {
        RUN_OF_STAGE
    };
    let run = wide(stage.elements)?.checked_mul(BYTE)?.checked_add(start + within)?;
    let counts = [stage.lines.count, stage.blocks.count, stage.rows.count];
    counts.into_iter().try_fold(run, |cost, count| cost.checked_mul(wide(count)?))
}

/// Stages have room for few elements, so the lines of the other side are gone to again and again, if it has less than one of
/// each.
fn parts_of_lines(leaf: &Leaf) -> Option<u64> {
    let side = match (&leaf.stages.source, &leaf.stages.destination) {
        (Some(_), None) => Side::Destination,
        (None, Some(_)) => Side::Source,
        _ => return Some(0),
    };
    let runs = runs_of(side, leaf)?;
    let are_crowded = runs.count > ROOM && runs.stride.is_multiple_of(CROWDED_BYTES);
    let part = if are_crowded { CROWDED_PART } else { PART_OF_LINE };
    shorter_runs(side, leaf, LINE)?.checked_mul(part)
}

/// The same of passes, whose scratch memory has few lines of a side beside each other, or parts of such.
pub(super) fn parts_of_passes(side: Side, leaves: &[Leaf]) -> Option<u64> {
    leaves.iter().try_fold(0_u64, |sum, leaf| {
        let parts = match &leaf.hop {
            Some(hop) => {
                let calls = leaf.loops.iter().try_fold(1_u64, |n, l| n.checked_mul(l.extent))?;
                parts_of_passes(side, side.of(&hop.first, &hop.second))?.checked_mul(calls)?
            }
            None if matches!(leaf.op, BlockOp::Fill | BlockOp::FillBits) => 0,
            None => shorter_runs(side, leaf, FEW_LINES)?.checked_mul(PART_OF_PASS)?,
        };
        sum.checked_add(parts)
    })
}

fn runs_of(side: Side, leaf: &Leaf) -> Option<Runs> {
    match side {
        Side::Source => leaf.strip.source_runs(leaf.op),
        Side::Destination => leaf.strip.destination_runs(leaf.op),
    }
}

/// How many runs a leaf goes to on a side, if they have less than so many bytes, with what follows them.
fn shorter_runs(side: Side, leaf: &Leaf, enough: usize) -> Option<u64> {
    let (strip, runs) = (&leaf.strip, runs_of(side, leaf)?);
    let step = side.of(strip.source_step, strip.destination_step);
    let (bytes, blocks) = if step == runs.bytes {
        (runs.bytes.checked_mul(strip.blocks)?, 1)
    } else {
        (runs.bytes, strip.blocks)
    };
    if bytes >= enough {
        return Some(0);
    }
    let calls = leaf.loops.iter().try_fold(1_u64, |n, l| n.checked_mul(l.extent))?;
    let parts = runs.count.checked_mul(blocks)?.checked_mul(strip.lines)?;
    u64::try_from(parts).ok()?.checked_mul(calls)
}

/// Whether stages bring or take away long runs alone, and leave whole lines to the other side.
pub(super) fn has_long_runs(leaf: &Leaf) -> bool {
    let mut stages = [&leaf.stages.source, &leaf.stages.destination].into_iter().flatten();
    stages.all(|stage| stage.elements >= LEAST_CONVERTED) && parts_of_lines(leaf) == Some(0)
}

/// A block of a transpose of elements of so many bits, which is moved in as long as that.
fn transposed(leaf: &Leaf, bits: u32, moved: u64, stores: Stores) -> Option<u64> {
    let strip = &leaf.strip;
    let wide = |n: usize| u64::try_from(n).ok();
    let width = usize::try_from(bits / 8).ok()?;
    if stores.tier.shuffles() && strip.is_dense(width) {
        return (moved / 2).checked_mul(3);
    }
    let (rows, columns) = strip.matrix_size(width);
    let shorter = rows.min(columns);
    let stays = !stores.streams(leaf.op, strip);
    // Of few rows or columns, as those of a word, all have room, unless they go on as far apart. Vectors of a line were not
    // measured.
    let has_short_vectors = stores.tier.vector_bytes() < LINE;
    let are_crowded = |(count, stride): (usize, usize), (all, step): (usize, usize)| {
        let are_many = count > ROOM || all > ROOM && is_crowded(step, width);
        (are_many || !has_short_vectors) && is_crowded(stride, width)
    };
    let has_crowded_rows = are_crowded((strip.rows, strip.row_stride), (rows, strip.source_step));
    let has_crowded_columns =
        are_crowded((strip.columns, strip.column_stride), (columns, strip.destination_line));
    if let Some(few) = few(leaf, width, stores) {
        let whole = few.checked_next_multiple_of(SHORTEST / width)?;
        let quarters = if !stays {
            12
        } else if few < whole && whole == SHORTEST / width {
            10
        } else {
            9
        };
        // Of rows that drive each other out of L1, lines are fetched again for each few columns.
        let is_part_of_lines = columns < rows && columns.checked_mul(width)? < LINE;
        let fetches = if !(stays && is_part_of_lines && has_crowded_rows) {
            1
        } else if goes_on_within(Side::Source, leaf) {
            8
        } else {
            4
        };
        let moved = moved.checked_mul(wide(whole)?)?.checked_mul(quarters)?.checked_mul(fetches)?;
        return moved.checked_div(4 * wide(few)?);
    }
    if shorter.checked_mul(width)? < SHORTEST {
        let longer = if strip.is_even_matrix(width) { LINE } else { strip.rows.max(strip.columns) };
        if longer.checked_mul(width)? < SHORTEST {
            return moved.checked_mul(20);
        }
        // Parts of lines that drive each other out of L1, to which others are added later.
        let comes_again = if rows < columns {
            has_crowded_columns && goes_on_within(Side::Destination, leaf)
        } else {
            has_crowded_rows && goes_on_within(Side::Source, leaf)
        };
        let word = if stays && comes_again { CROWDED_WORD } else { WORD };
        let words = wide(strip.rows.max(strip.columns))?.checked_mul(word)?;
        return moved.checked_add(words);
    }
    // Squares of lines, or of less; the last ones end where the matrix does, over those before.
    let mut size = LINE / width;
    while size > shorter {
        size = (size / 2).min(16);
    }
    let by_squares = |moved: u64, n: usize| {
        (moved / wide(n)?).checked_mul(wide(n.checked_next_multiple_of(size)?)?)
    };
    let moved = by_squares(by_squares(moved, rows)?, columns)?;
    // Shorter vectors go by whole lines of words, but where both sides share few sets.
    let reads_lines = width == 4 && has_short_vectors && !has_crowded_columns;
    let quarters = if stays && has_crowded_rows {
        // Shorter vectors copy such rows before they turn them.
        match width {
            1 if has_short_vectors => 16,
            2 if has_short_vectors => 12,
            _ if reads_lines => 8,
            _ => 20,
        }
    } else if stays && has_crowded_columns {
        if width < 4 && has_short_vectors { 18 } else { 12 }
    } else if size * width < LINE {
        16
    } else if stays && has_short_vectors {
        match width {
            1 => 12,
            2 => 8,
            _ => 6,
        }
    } else {
        8
    };
    Some(moved.checked_mul(quarters)? / 4)
}

/// Whether what comes next of a side, or some time later, has a part of the lines of what was before.
fn goes_on_within(side: Side, leaf: &Leaf) -> bool {
    let strip = &leaf.strip;
    let is_within = |step: u64| step.cast_signed().unsigned_abs() < LINE_BITS;
    let steps =
        [(strip.source_step, strip.destination_step), (strip.source_line, strip.destination_line)];
    let counts = [strip.blocks, strip.lines];
    let mut in_strip = counts.into_iter().zip(steps).filter(|&(count, _)| count > 1);
    in_strip.any(|(_, (source, destination))| {
        side.of(source, destination).cast_signed().unsigned_abs() < LINE
    }) || leaf.loops.iter().any(|l| is_within(side.stride(l)))
}

/// Whether rows or columns of elements of so many bytes that are so far apart share few sets of L1.
fn is_crowded(stride: usize, width: usize) -> bool {
    stride.is_multiple_of(if width < 4 { CROWDED_BYTES } else { CROWDED })
}

/// How many a transpose of elements of so many bytes has on the side that it rounds up to 16 bytes, if it is one that
/// goes along the other.
fn few(leaf: &Leaf, width: usize, stores: Stores) -> Option<usize> {
    let strip = &leaf.strip;
    let (rows, columns) = strip.matrix_size(width);
    let has_squares = width < 4 && rows.min(columns).saturating_mul(width) >= LINE;
    let by_words = strip.has_words(width) && stores.tier.vector_bytes() >= LINE;
    let goes_by_squares = has_squares && (stores.streams(leaf.op, strip) || !by_words);
    let is_other = goes_by_squares || stores.tier.shuffles() && strip.is_dense(width);
    if is_other { None } else { strip.few(width, stores.tier) }
}

/// Whether it fills runs that are no whole lines, beside what is streamed.
fn keeps_lines(leaf: &Leaf, stores: Stores) -> bool {
    leaf.op == BlockOp::Fill && stores.of_runs() && !leaf.strip.columns.is_multiple_of(LINE)
}

/// Whether some kernels take much longer than vectors would.
pub(super) fn is_slow(leaves: &[Leaf], elements: &Elements) -> bool {
    let all = |leaf: &Leaf| -> Option<u64> {
        let calls = leaf.loops.iter().try_fold(1_u64, |n, l| n.checked_mul(l.extent))?;
        let strip = &leaf.strip;
        let wide = |n: usize| u64::try_from(n).ok();
        let matrices = match leaf.op {
            BlockOp::InterleaveTranspose { ways, .. }
            | BlockOp::TransposeDeinterleave { ways, .. }
            | BlockOp::TransposeInterleave { ways, .. }
            | BlockOp::GatherTranspose { ways, .. }
            | BlockOp::TransposeScatter { ways, .. } => ways.into(),
            _ => 1,
        };
        let elements_of = wide(strip.rows.max(1))?.checked_mul(wide(strip.columns)?)?;
        let elements_of = elements_of.checked_mul(matrices)?;
        let blocks = wide(strip.lines)?.checked_mul(wide(strip.blocks)?)?;
        elements_of.checked_mul(blocks)?.checked_mul(calls)
    };
    let width = u64::from(elements.source_bits.max(elements.destination_bits)).max(8) / 8;
    leaves.iter().any(|leaf| {
        if matches!(leaf.op, BlockOp::Fill | BlockOp::FillBits) {
            return keeps_lines(leaf, elements.stores);
        }
        let width = match leaf.op {
            BlockOp::Copy => 1,
            BlockOp::Transpose { bits } if is_of_runs(bits) => u64::from(bits / 8),
            _ => width,
        };
        let least = all(leaf).and_then(|n| n.checked_mul(width * BYTE * 3));
        cost_of(leaf, elements.stores) > least
    })
}

#[cfg(test)]
mod tests {
    use crate::{PlanBuilder, Shape};

    /// The kernels of packing, in the order in which they are called, without their tier.
    fn ops(text: &str, options: &PlanBuilder) -> Vec<String> {
        let explanation =
            options.pack(&text.parse::<Shape>().unwrap()).unwrap().explain().to_string();
        let prefix = format!("{}-", crate::Tier::best().name());
        let lines = explanation.lines().filter_map(|line| line.trim().strip_prefix(&prefix));
        lines.filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect()
    }

    #[test]
    fn each_way_where_it_is_quicker() {
        let options = PlanBuilder::new();
        // Of more columns vectors of more than 16 bytes make words in one pass.
        let words = if crate::Tier::best().vector_bytes() > 16 {
            "u8[384,100,10]{1,0,2:T(8,128)(4,1)}"
        } else {
            "u8[15,127,65]{1,0,2:T(8,128)(4,1)}"
        };
        for (text, first, second) in [
            // Words of a row of bytes are squeezed at once, and few columns turned as words.
            ("s4[63,255,15]{1,0,2:T(8,128)(8,1)E(4)}", "squeeze4-interleave4x8", "transpose32"),
            ("f4e2m1fn[96,63,15]{0,1,2:T(8,128)(8,1)E(4)}", "transpose8", "squeeze4-interleave4x8"),
            (words, "interleave4x8", "transpose32"),
        ] {
            let ops = ops(text, &options);
            assert_eq!(ops[..2], [first, second], "{text}");
        }
        // What a kernel does well is not done twice.
        for text in ["f32[100,300]{0,1:T(8,128)}", "bf16[300,8,64]{0,2,1:T(8,128)(2,1)}"] {
            let ops = ops(text, &options);
            assert!(ops[0].starts_with("transpose32"), "{text}: {ops:?}");
        }
        // Nor are words made, and taken apart again, that are in the source already.
        let text = "u8[496,184]{0,1:T(16,128)(4,1)}";
        let ops = ops(text, &options);
        assert!(!ops.iter().any(|op| op.starts_with("deinterleave")), "{text}: {ops:?}");
    }

    #[test]
    fn few_columns_of_rows_that_share_sets_of_l1_are_not_turned_by_themselves() {
        for text in ["bf16[2048,2048]{0,1:T(8,128)(2,1)}", "s8[2048,4096]{0,1:T(8,128)(4,1)}"] {
            // Nothing is streamed, as within the caches of some CPUs.
            let ops = ops(text, &PlanBuilder::new().streaming(false));
            assert!(ops == ["transpose32"] || ops[0] == "copy", "{text}: {ops:?}");
        }
    }

    #[test]
    fn parts_of_lines_that_drive_each_other_out_of_l1_are_not_written_one_by_one() {
        // Two bytes of each of 128 lines that are 1 KiB apart, three bytes of each of 664 that are 12 KiB apart.
        for (from, to, slow) in [
            (
                "bf16[1,1,1,2048,155]{3,2,0,1,4:T(4,128)(2,1)}",
                "bf16[1,1,1,2048,155]{4,2,0,1,3:T(2,128)(2,1)}",
                "strided16",
            ),
            ("u8[12,12,3,664]{3,2,1,0}", "u8[12,12,3,664]{1,2,0,3:T(8,128)(4,1)}", "transpose8"),
        ] {
            let [from, to] = [from, to].map(|text| text.parse::<Shape>().unwrap());
            let plan = PlanBuilder::new().streaming(false).between(&from, &to).unwrap();
            let explanation = plan.explain().to_string();
            assert!(!explanation.contains(slow), "{explanation}");
        }
    }

    #[test]
    fn what_no_number_holds_has_no_estimate() {
        let mut made = 0;
        for (bits, columns) in (40..62).flat_map(|bits| [2, 3, 4, 8, 12].map(|n| (bits, n))) {
            for element in ["u8", "bf16", "f32", "f64", "c128"] {
                for layout in ["0,1", "0,1:T(8,128)"] {
                    let text = format!("{element}[{},{columns}]{{{layout}}}", 1_u64 << bits);
                    // Some images are too large.
                    let Ok(shape) = text.parse::<Shape>() else { continue };
                    made += usize::from(PlanBuilder::new().pack(&shape).is_ok());
                    made += usize::from(PlanBuilder::new().unpack(&shape).is_ok());
                }
            }
        }
        assert!(made > 500, "{made}");
    }
}
