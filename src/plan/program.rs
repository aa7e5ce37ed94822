//! Kernels in their loops, as one tree that a run walks.
//!
//! Nests that go on beside each other (whole tiles of a row, the ragged rest of
//! it, the padding behind that) share the loops around them, so a run visits
//! memory once: in the order of the destination, but what is streamed in that of the
//! source.

use std::ops::Range;

use relayout_kernels::{BlockOp, Place, Run, Strip, kernel};

use super::choose::{Leaf, step};
use super::hop::{HOP_BYTES, Hop};
use super::images;
use super::nest::Loop;
use super::staged::{SCRATCH_BYTES, Stage, Stages};
use super::stores::Stores;
use super::tails::{join_fills, share_loops, take_tail};

/// A loop around others, or a kernel call. Offsets and strides are in bits.
#[derive(Debug)]
pub(crate) enum Node {
    Loop {
        count: u64,
        source: u64,
        destination: u64,
        body: Vec<Node>,
    },
    Call(Call),
    /// Two passes, through so many bytes of scratch memory, where these begin when all loops
    /// are at 0.
    Hop {
        source: u64,
        destination: u64,
        first: Vec<Node>,
        second: Vec<Node>,
        scratch_bytes: usize,
    },
}

/// One kernel call: where its strip begins when all loops are at 0.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) source: u64,
    pub(crate) destination: u64,
    pub(crate) op: BlockOp,
    pub(crate) strip: Strip,
    /// The blocks of the strip, where the kernel wants to be told.
    pub(crate) order: Vec<Place>,
    /// `None` for the ops on single bits, which the driver does.
    pub(crate) run: Option<Run>,
    /// What is done before it and behind it, where it works on scratch memory.
    pub(crate) stages: Stages,
}

/// The tree of all leaves, and whether any of them is streamed.
/// `None` where it would leave the buffers, which have these lengths in bytes.
pub(super) fn program(
    mut leaves: Vec<Leaf>,
    stores: Stores,
    source_bytes: u64,
    destination_bytes: u64,
) -> Option<(Vec<Node>, bool)> {
    let mut filled: Vec<(Range<i128>, u8)> = Vec::new();
    for leaf in &leaves {
        let (source, destination) = reach(leaf)?;
        let is_within =
            |range: &Range<i128>, bytes: u64| range.start >= 0 && range.end <= bytes.into();
        if !is_within(&source, source_bytes) || !is_within(&destination, destination_bytes) {
            return None;
        }
        if leaf.is_under && leaf.fills_a_run() {
            filled.push((destination, leaf.strip.fill));
        }
    }
    // Padding beside what is written over has been filled with that: no data clear it, where the byte is not zero.
    let is_filled = |leaf: &Leaf| {
        if leaf.is_under || !is_padding(leaf) {
            return false;
        }
        let Some((_, bytes)) = reach(leaf) else { return false };
        let has = |(run, fill): &(Range<i128>, u8)| {
            run.start <= bytes.start && bytes.end <= run.end && *fill == leaf.strip.fill
        };
        filled.iter().any(has)
    };
    if !filled.is_empty() {
        leaves.retain(|leaf| !is_filled(leaf));
    }
    leaves.sort_by_key(|leaf| leaf.destination);
    join_fills(&mut leaves);
    for i in 1..leaves.len() {
        if let [.., before, leaf] = &mut leaves[..=i] {
            share_loops(before, leaf, stores);
        }
    }
    images::in_order(&mut leaves, stores);
    let streams = leaves.iter().any(|leaf| streams(leaf, stores));
    Some((in_order(leaves, 0, stores)?, streams))
}

/// Leaves in common loops, those first that others write over.
fn in_order(leaves: Vec<Leaf>, step: u64, stores: Stores) -> Option<Vec<Node>> {
    let (under, over): (Vec<_>, Vec<_>) = leaves.into_iter().partition(|leaf| leaf.is_under);
    let mut nodes = fuse(under, step, stores)?;
    nodes.extend(fuse(over, step, stores)?);
    Some(nodes)
}

/// Whether a kernel of a leaf streams.
pub(super) fn streams(leaf: &Leaf, stores: Stores) -> bool {
    match &leaf.hop {
        Some(hop) => hop.second.iter().any(|leaf| streams(leaf, stores.out_of_scratch())),
        None => {
            let last = leaf.stages.destination.as_ref().map_or(leaf.op, |stage| stage.op);
            stores.streams(last, &leaf.strip)
        }
    }
}

/// Whether the op of a leaf streams: not into scratch memory.
fn op_streams(leaf: &Leaf, stores: Stores) -> bool {
    match &leaf.stages.destination {
        None => stores.streams(leaf.op, &leaf.strip),
        Some(_) => false,
    }
}

/// Which bytes of each side a leaf needs. `None` where it has a number that does not
/// fit, or begins within a byte where it may not.
pub(super) fn reach(leaf: &Leaf) -> Option<(Range<i128>, Range<i128>)> {
    match &leaf.hop {
        Some(hop) => reach_of_hop(leaf, hop),
        None => reach_of_kernel(leaf),
    }
}

/// The same of two passes, which do not leave scratch memory.
fn reach_of_hop(leaf: &Leaf, hop: &Hop) -> Option<(Range<i128>, Range<i128>)> {
    if hop.scratch_bytes > HOP_BYTES {
        return None;
    }
    let scratch = 0..i128::try_from(hop.scratch_bytes).ok()?;
    let is_within = |range: &Range<i128>| {
        range.is_empty() || scratch.start <= range.start && range.end <= scratch.end
    };
    let with_loops = |pass: &Leaf, along: fn(&Loop) -> Loop| -> Leaf {
        let loops = leaf.loops.iter().map(along).chain(pass.loops.iter().copied()).collect();
        Leaf { loops, ..pass.clone() }
    };
    let mut both = [None, None];
    let mut add = |side: usize, range: Range<i128>| {
        if range.is_empty() {
            return;
        }
        let so_far: &mut Range<i128> = both[side].get_or_insert(range.clone());
        *so_far = so_far.start.min(range.start)..so_far.end.max(range.end);
    };
    for pass in &hop.first {
        let mut pass = with_loops(pass, |l| Loop::new(l.extent, l.source, 0));
        pass.source = pass.source.wrapping_add(leaf.source);
        let (read, written) = reach(&pass)?;
        add(0, read);
        if !is_within(&written) {
            return None;
        }
    }
    for pass in &hop.second {
        let mut pass = with_loops(pass, |l| Loop::new(l.extent, 0, l.destination));
        pass.destination = pass.destination.wrapping_add(leaf.destination);
        let (read, written) = reach(&pass)?;
        add(1, written);
        if !is_within(&read) {
            return None;
        }
    }
    let [read, written] = both;
    Some((read.unwrap_or(0..0), written.unwrap_or(0..0)))
}

fn reach_of_kernel(leaf: &Leaf) -> Option<(Range<i128>, Range<i128>)> {
    let on_bits = match leaf.op {
        BlockOp::Bits { .. } | BlockOp::CopyBits { .. } | BlockOp::FillBits => [true; 2],
        BlockOp::WidenBits { .. } => [true, false],
        BlockOp::NarrowBits { .. } => [false, true],
        _ => [false; 2],
    };
    let Stages { source: source_stage, destination: destination_stage } = &leaf.stages;
    let loops = leaf.loops.iter();
    let mut sources = loops.clone().map(|l| l.source).chain([leaf.source]);
    let mut destinations = loops.map(|l| l.destination).chain([leaf.destination]);
    let whole = |n: u64| n.is_multiple_of(8);
    let may_begin_within = |on_bits: bool, stage: &Option<Box<Stage>>| {
        on_bits || stage.as_ref().is_some_and(|stage| stage.may_begin_within_bytes())
    };
    let is_padding = matches!(leaf.op, BlockOp::Fill | BlockOp::FillBits);
    if !is_padding && !may_begin_within(on_bits[0], source_stage) && !sources.all(whole)
        || !may_begin_within(on_bits[1], destination_stage) && !destinations.all(whole)
    {
        return None;
    }
    // In bits, as the loops have it.
    let (mut source, mut destination) = if on_bits.contains(&true) {
        on_bits_of(leaf.op, &leaf.strip)?
    } else {
        let bits = |bytes: Range<i128>, stage: &Option<Box<Stage>>| match stage {
            None => in_bits(bytes),
            Some(stage) => staged(stage, &bytes),
        };
        (
            bits(leaf.strip.source_range(leaf.op)?, &leaf.stages.source)?,
            bits(leaf.strip.destination_range(leaf.op)?, &leaf.stages.destination)?,
        )
    };
    for l in &leaf.loops {
        source = stretched(source, l.extent, l.source)?;
        destination = stretched(destination, l.extent, l.destination)?;
    }
    let bytes = |bits: Range<i128>, start: u64| -> Option<Range<i128>> {
        let start_bits = i128::from(start);
        let (start, end) = (bits.start.checked_add(start_bits)?, bits.end.checked_add(start_bits)?);
        Some(start.div_euclid(8)..(end.checked_add(7)?).div_euclid(8))
    };
    let source = if is_padding { 0..0 } else { bytes(source, leaf.source)? };
    Some((source, bytes(destination, leaf.destination)?))
}

/// Whether a kernel that counts bits has numbers for these, from the first byte of a strip on, within which its first run
/// may begin: where addresses have 32 bits, not for 256 MiB.
fn are_counted(bits: &Range<i128>) -> bool {
    let fits = |at: i128| isize::try_from(at).is_ok();
    fits(bits.start) && bits.end.checked_add(7).is_some_and(fits)
}

fn in_bits(bytes: Range<i128>) -> Option<Range<i128>> {
    Some(bytes.start.checked_mul(8)?..bytes.end.checked_mul(8)?)
}

/// Which bits of both sides an op that counts bits on one of them reads and writes, from where its strip begins.
fn on_bits_of(op: BlockOp, strip: &Strip) -> Option<(Range<i128>, Range<i128>)> {
    let wide = |n: usize| u64::try_from(n).ok();
    let along = |bits: Range<i128>, count: usize, stride: usize| -> Option<Range<i128>> {
        let stride = i64::try_from(stride.cast_signed()).ok()?.cast_unsigned();
        stretched(bits, wide(count)?, stride)
    };
    let of_source = (strip.source_step, strip.source_line);
    let of_destination = (strip.destination_step, strip.destination_line);
    let runs = |bits: usize, (step, line)| {
        let run = 0..i128::try_from(bits).ok()?;
        along(along(run, strip.blocks, step)?, strip.lines, line)
    };
    let (from, to) = match op {
        BlockOp::Bits { source_bits, destination_bits, .. } => (source_bits, destination_bits),
        BlockOp::CopyBits { clears_rest, .. } => {
            let written = if clears_rest {
                strip.columns.checked_next_multiple_of(8)?
            } else {
                strip.columns
            };
            return Some((runs(strip.columns, of_source)?, runs(written, of_destination)?));
        }
        BlockOp::WidenBits { bits, .. } => {
            let read = strip.columns.checked_mul(usize::try_from(bits).ok()?)?;
            let read = Some(runs(read, of_source)?).filter(are_counted)?;
            return Some((read, in_bits(strip.destination_range(op)?)?));
        }
        BlockOp::NarrowBits { bits, .. } => {
            let written = strip.columns.checked_mul(usize::try_from(bits).ok()?)?;
            let written = Some(runs(written, of_destination)?).filter(are_counted)?;
            return Some((in_bits(strip.source_range(op)?)?, written));
        }
        _ => (0, 1),
    };
    Some((
        along(0..from.into(), strip.columns, strip.row_stride)?,
        along(0..to.into(), strip.columns, strip.column_stride)?,
    ))
}

/// Which bits of an array a stage reads or writes, for a kernel that works on these
/// bytes of scratch memory. `None` where there is not so much of that.
fn staged(stage: &Stage, kernel: &Range<i128>) -> Option<Range<i128>> {
    let scratch = i128::try_from(stage.scratch_bytes.min(SCRATCH_BYTES)).ok()?;
    let mut array = 0..i128::try_from(stage.elements).ok()?.checked_mul(stage.array_bits.into())?;
    let mut bytes = 0..i128::try_from(stage.elements.checked_mul(stage.scratch_width)?).ok()?;
    for steps in [stage.lines, stage.blocks, stage.rows] {
        let count = u64::try_from(steps.count).ok()?;
        array = stretched(array, count, steps.array)?;
        bytes = stretched(bytes, count, u64::try_from(steps.scratch).ok()?)?;
    }
    // Kernels count these in bits; the order within bytes is only mended where they begin.
    let suits = if stage.may_begin_within_bytes() {
        are_counted(&array)
    } else {
        let mut steps = [stage.lines, stage.blocks, stage.rows].into_iter();
        steps.all(|steps| steps.array.is_multiple_of(8))
    };
    if !suits {
        return None;
    }
    // What the kernel reads has been brought, or what it writes is taken away.
    let is_within =
        bytes.start >= 0 && kernel.start >= 0 && kernel.end <= bytes.end && bytes.end <= scratch;
    is_within.then_some(array)
}

/// How many bytes a leaf writes, each of them whole and once. `None` where it reads the
/// destination, to write parts of bytes, or others write the same ones.
pub(super) fn written_bytes(leaf: &Leaf) -> Option<u128> {
    if leaf.is_under {
        return None;
    }
    let strip = &leaf.strip;
    let calls = leaf.loops.iter().try_fold(1_u128, |n, l| n.checked_mul(l.extent.into()))?;
    if let Some(hop) = &leaf.hop {
        let written = |sum: u128, leaf: &Leaf| sum.checked_add(written_bytes(leaf)?);
        return calls.checked_mul(hop.second.iter().try_fold(0, written)?);
    }
    let bytes = match (&leaf.stages.destination, leaf.op) {
        (
            None,
            BlockOp::Bits { .. }
            | BlockOp::CopyBits { .. }
            | BlockOp::NarrowBits { .. }
            | BlockOp::FillBits,
        ) => return None,
        (Some(stage), _) if stage.may_begin_within_bytes() => return None,
        (Some(stage), _) => {
            let runs = [stage.lines.count, stage.blocks.count, stage.rows.count];
            let width = usize::try_from(stage.array_bits / 8).ok()?;
            runs.into_iter().try_fold(stage.elements.checked_mul(width)?, usize::checked_mul)?
        }
        (None, op) => strip.written_bytes(op)?,
    };
    calls.checked_mul(u128::try_from(bytes).ok()?)
}

/// What a range becomes that comes again so many times, at steps modulo 2^64.
fn stretched(range: Range<i128>, extent: u64, step: u64) -> Option<Range<i128>> {
    let last = i128::from(extent.checked_sub(1)?).checked_mul(step.cast_signed().into())?;
    Some(range.start.checked_add(last.min(0))?..range.end.checked_add(last.max(0))?)
}

/// Puts leaves into common loops. Those around them make steps of `step` bits in the
/// source.
fn fuse(leaves: Vec<Leaf>, step: u64, stores: Stores) -> Option<Vec<Node>> {
    let mut nodes = Vec::new();
    let mut rest = leaves;
    while !rest.is_empty() {
        let mut first = rest.remove(0);
        let by_source = goes_by_source(&first, stores);
        let Some(&around) = outermost(&first.loops, by_source) else {
            if let Some(hop) = first.hop {
                let Hop { first: into, second: out_of, scratch_bytes } = *hop;
                nodes.push(Node::Hop {
                    source: first.source,
                    destination: first.destination,
                    first: in_order(into, step, stores.into_scratch())?,
                    second: in_order(out_of, 0, stores.out_of_scratch())?,
                    scratch_bytes,
                });
                continue;
            }
            let stream = op_streams(&first, stores);
            if stream {
                take_tail(&mut first, &mut rest, stores.tier);
            }
            let run = kernel(first.op, stores.tier, stream);
            if run.is_none() && !matches!(first.op, BlockOp::Bits { .. } | BlockOp::FillBits) {
                return None;
            }
            let Leaf { source, destination, op, mut strip, mut stages, .. } = first;
            strip.is_shuffled = !stream && stores.of_shuffled_squares(op, &strip);
            if stages.source.is_none() {
                // Steps are modulo 2^64, and may be negative.
                let bytes = (step.cast_signed() / 8).cast_unsigned();
                strip.next = usize::try_from(bytes).unwrap_or_default();
                strip.is_far = stores.are_far();
                strip.is_near = stores.are_near();
                strip.core = stores.core;
            }
            strip.pages_by_turns = stream && stores.by_turns(op);
            if let Some(stage) = &mut stages.source {
                stage.run = Some(kernel(stage.op, stores.tier, false)?);
                (stage.is_far, stage.core) = (stores.are_far(), stores.core);
            }
            if let Some(stage) = &mut stages.destination {
                let stream = stores.streams(stage.op, &strip);
                stage.run = Some(kernel(stage.op, stores.tier, stream)?);
            }
            let order = match op.goes_by_order() && !stream {
                true if stores.are_shuffled() => strip.shuffled(),
                true => strip.by_destination(),
                false => Vec::new(),
            };
            nodes.push(Node::Call(Call { source, destination, op, strip, order, run, stages }));
            continue;
        };
        if stores.are_in_l3() {
            rest.iter_mut().for_each(|leaf| split_to_go_along(leaf, &first, around));
        }
        let (same, others): (Vec<Leaf>, Vec<Leaf>) =
            rest.into_iter().partition(|leaf| goes_along(leaf, &first, around, by_source));
        rest = others;
        if same.is_empty() && take_loops(&mut first, stores).is_some() {
            rest.insert(0, first);
            continue;
        }
        let mut body = vec![first];
        body.extend(same);
        for leaf in &mut body {
            if let Some(at) = place_of(leaf, around) {
                leaf.loops.remove(at);
            }
        }
        nodes.push(Node::Loop {
            count: around.extent,
            source: around.source,
            destination: around.destination,
            body: fuse(body, around.source, stores)?,
        });
    }
    Some(nodes)
}

/// Makes a loop around padding that has nothing beside it one of its strip, if that has room: a call for each run
/// takes longer than short runs do. Not where it would be streamed no longer.
fn take_loops(leaf: &mut Leaf, stores: Stores) -> Option<()> {
    let mut strip = leaf.strip;
    if leaf.op != BlockOp::Fill || strip.lines > 1 {
        return None;
    }
    let &Loop { extent, destination, .. } = leaf.loops.last()?;
    let (count, step) = (usize::try_from(extent).ok()?, step(destination)?);
    if strip.blocks == 1 {
        (strip.blocks, strip.destination_step) = (count, step);
    } else {
        (strip.lines, strip.destination_line) = (count, step);
    }
    if stores.streams(leaf.op, &strip) != stores.streams(leaf.op, &leaf.strip) {
        return None;
    }
    leaf.strip = strip;
    leaf.loops.pop();
    Some(())
}

/// Whether a leaf is done in the order of the source: what is read from memory is best read in
/// its order, whatever that of the destination is then. Not images whose rows of pixels are written, which go on with
/// each other, perhaps within lines.
pub(super) fn goes_by_source(leaf: &Leaf, stores: Stores) -> bool {
    let are_images = matches!(leaf.op, BlockOp::TransposeScatter { .. });
    leaf.hop.is_none() && !stores.from_scratch && !are_images && streams(leaf, stores)
}

/// Which of some loops goes around the others: the first one, which has the longest steps in the
/// destination, or that with the longest ones in the source.
fn outermost(loops: &[Loop], by_source: bool) -> Option<&Loop> {
    let step = |l: &&Loop| l.source.cast_signed().unsigned_abs();
    if by_source { loops.iter().rev().max_by_key(step) } else { loops.first() }
}

/// Whether a leaf can be in the same loop as another one: with the same steps, and within one
/// step of where that one starts.
fn goes_along(leaf: &Leaf, first: &Leaf, around: Loop, by_source: bool) -> bool {
    let Some(at) = place_of(leaf, around) else { return false };
    let gap = leaf.destination.checked_sub(first.destination);
    let follows = gap.is_some_and(|gap| gap < around.destination);
    if !by_source {
        return at == 0 && follows;
    }
    let distance = |a: u64, b: u64| a.wrapping_sub(b).cast_signed().unsigned_abs();
    let is_near = distance(leaf.source, first.source) < distance(around.source, 0);
    follows || is_near && !is_padding(leaf)
}

/// Makes two loops of the outer one of padding, if it can go along with another leaf then: lines are in the near caches still,
/// parts of which have been written.
fn split_to_go_along(padding: &mut Leaf, first: &Leaf, around: Loop) {
    let gap = padding.destination.checked_sub(first.destination);
    let Some(&Loop { extent, destination, .. }) = padding.loops.first() else { return };
    let times = around.destination.checked_div(destination).unwrap_or(0);
    if is_padding(padding)
        && gap.is_some_and(|gap| gap < around.destination)
        && times > 1
        && times.checked_mul(destination) == Some(around.destination)
        && times.checked_mul(around.extent) == Some(extent)
    {
        padding.loops[0] = Loop::new(times, 0, destination);
        padding.loops.insert(0, Loop::new(around.extent, 0, around.destination));
    }
}

/// Which loop of a leaf has the steps of `around`.
fn place_of(leaf: &Leaf, around: Loop) -> Option<usize> {
    leaf.loops.iter().position(|l| {
        l.extent == around.extent
            && l.destination == around.destination
            && (l.source == around.source || is_padding(leaf))
    })
}

/// Whether a leaf reads nothing.
fn is_padding(leaf: &Leaf) -> bool {
    matches!(leaf.op, BlockOp::Fill | BlockOp::FillBits)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::plan::Steps;
    use crate::{PlanBuilder, Shape, Tier};
    use relayout_kernels::{Conversion, Core};

    const ORDINARY: Stores = Stores {
        tier: Tier::SCALAR,
        core: Core::Zen5,
        asked: Some(false),
        both_bytes: 0,
        all_bytes: 0,
        from_scratch: false,
    };

    const STREAMING: Stores = Stores { asked: Some(true), ..ORDINARY };

    pub(in super::super) fn leaf(
        destination: u64,
        loops: &[(u64, u64, u64)],
        columns: usize,
    ) -> Leaf {
        let strip = Strip { lines: 1, blocks: 1, rows: 1, columns, ..Strip::default() };
        let loops = loops.iter().map(|&(n, s, d)| Loop::new(n, s, d)).collect();
        Leaf::of_kernel(0, destination, loops, BlockOp::Copy, strip)
    }

    #[test]
    fn rows_of_images_are_written_one_after_the_other() {
        let shape: Shape = "u8[256,16,64,3]{0,2,3,1:T(32,128)(4,1)}".parse().unwrap();
        let loops = |plan: crate::Plan| {
            let text = plan.explain().to_string();
            let of = |times| text.lines().position(|line| line.trim_start().starts_with(times));
            text.contains("scatter4x8").then(|| (of("2 times"), of("16 times")))
        };
        let unpack = PlanBuilder::new().streaming(true).unpack(&shape).unwrap();
        if let Some((images, rows)) = loops(unpack) {
            assert!(images.is_some() && images < rows, "images outside of rows");
        } else {
            println!("skipped: no kernel takes pixels apart in this tier");
        }
    }

    #[test]
    fn a_leaf_that_leaves_the_buffers_makes_no_program() {
        let leaves = || vec![leaf(64, &[(3, 80, 160)], 10)];
        let make = |source, destination| program(leaves(), ORDINARY, source, destination).is_some();
        // 2 steps of 10 bytes and a run; 8 bytes, 2 steps of 20 and a run.
        assert!(make(30, 58));
        assert!(!make(29, 58));
        assert!(!make(30, 57));
    }

    #[test]
    fn padding_alone_is_one_call_and_beside_data_one_of_its_loop() {
        let padding = |destination, loops: &[(u64, u64, u64)]| Leaf {
            op: BlockOp::Fill,
            ..leaf(destination, loops, 4)
        };
        let calls = |leaves| program(leaves, ORDINARY, 1000, 10_000).unwrap().0;
        let alone = calls(vec![padding(96, &[(2, 0, 24_000), (5, 0, 4800), (7, 0, 640)])]);
        let [Node::Loop { count: 2, body, .. }] = &alone[..] else { panic!("{alone:?}") };
        let [Node::Call(call)] = &body[..] else { panic!("{alone:?}") };
        let Strip { lines, destination_line, blocks, destination_step, .. } = call.strip;
        assert_eq!((lines, destination_line, blocks, destination_step), (5, 600, 7, 80));
        // Seven runs of ten bytes, and padding behind each.
        let beside = calls(vec![leaf(0, &[(7, 80, 640)], 10), padding(80, &[(7, 0, 640)])]);
        let [Node::Loop { count: 7, body, .. }] = &beside[..] else { panic!("{beside:?}") };
        assert_eq!(body.len(), 2, "{beside:?}");
    }

    #[test]
    fn what_is_written_over_is_filled_first() {
        let fill = |destination, columns, is_under| Leaf {
            op: BlockOp::Fill,
            is_under,
            ..leaf(destination, &[], columns)
        };
        let data = || leaf(0, &[(7, 80, 640)], 10);
        let make = |leaves| program(leaves, ORDINARY, 1000, 10_000).unwrap().0;
        // It begins behind where the data begin, and is first all the same.
        let nodes = make(vec![data(), fill(80, 480, true)]);
        assert!(matches!(&nodes[..], [Node::Call(_), Node::Loop { .. }]), "{nodes:?}");
        let nodes = make(vec![data(), fill(8000, 480, false)]);
        assert!(matches!(&nodes[..], [Node::Loop { .. }, Node::Call(_)]), "{nodes:?}");
        // Padding within it needs no other fill, unless with another byte.
        let other = Leaf { strip: Strip { fill: 1, ..data().strip }, ..fill(160, 4, false) };
        assert_eq!(make(vec![fill(80, 480, true), fill(160, 4, false)]).len(), 1);
        assert_eq!(make(vec![fill(80, 480, true), other]).len(), 2);
        assert_eq!(make(vec![fill(80, 480, true), fill(3920, 11, false)]).len(), 2);
        // Bytes that are written twice are not counted; what is filled as a whole is.
        let under = fill(0, 500, true);
        assert_eq!((written_bytes(&under), written_bytes(&fill(0, 500, false))), (None, Some(500)));
        assert!(under.fills_under(500) && !under.fills_under(501));
        assert!(!fill(0, 500, false).fills_under(500) && !fill(8, 500, true).fills_under(500));
    }

    #[test]
    fn fills_that_follow_each_other_are_one() {
        let fill = |destination, loops: &[(u64, u64, u64)], columns| Leaf {
            op: BlockOp::Fill,
            ..leaf(destination, loops, columns)
        };
        let columns = |leaves: Vec<Leaf>| -> Vec<usize> {
            let mut leaves = leaves;
            join_fills(&mut leaves);
            leaves.iter().map(|leaf| leaf.strip.columns).collect()
        };
        let around: &[_] = &[(3, 0, 8000)];
        let goes_on = vec![fill(0, around, 10), leaf(40, &[], 5), fill(80, around, 20)];
        assert_eq!(columns(goes_on), [30, 5]);
        assert_eq!(columns(vec![fill(0, &[], 1), fill(8, &[], 2), fill(24, &[], 3)]), [6]);
        // Not with a gap, not in other loops, not what is no fill, nor with another byte.
        assert_eq!(columns(vec![fill(0, around, 10), fill(88, around, 20)]), [10, 20]);
        assert_eq!(columns(vec![fill(0, around, 10), fill(80, &[(4, 0, 8000)], 20)]), [10, 20]);
        assert_eq!(columns(vec![fill(0, &[], 10), leaf(80, &[], 20)]), [10, 20]);
        let mut other = fill(80, &[], 20);
        other.strip.fill = 1;
        assert_eq!(columns(vec![fill(0, &[], 10), other]), [10, 20]);
    }

    #[test]
    fn padding_is_filled_beside_data_that_only_l3_holds() {
        let leaves = || {
            let padding = leaf(80, &[(40, 0, 6400)], 4);
            vec![leaf(0, &[(4, 80, 64_000)], 10), Leaf { op: BlockOp::Fill, ..padding }]
        };
        let make = |both_bytes| {
            let stores = Stores { both_bytes, all_bytes: both_bytes, ..ORDINARY };
            program(leaves(), stores, 1000, 100_000).unwrap().0
        };
        let beside = make(8 << 20);
        let [Node::Loop { count: 4, body, .. }] = &beside[..] else { panic!("{beside:?}") };
        let [Node::Call(_), Node::Call(padding)] = &body[..] else { panic!("{beside:?}") };
        assert_eq!((padding.strip.blocks, padding.strip.destination_step), (10, 800));
        assert_eq!(make((8 << 20) - 1).len(), 2);
    }

    #[test]
    fn size_decides_on_the_order_of_blocks() {
        let call_by = |core: Core, both_bytes: u64| {
            let tier = Tier::best();
            let stores = Stores {
                tier,
                core,
                asked: None,
                both_bytes,
                all_bytes: both_bytes,
                from_scratch: false,
            };
            let mut leaf = leaf(0, &[], 512);
            let strip = &mut leaf.strip;
            (strip.lines, strip.source_line, strip.destination_line) = (8, 8192, 512);
            (strip.blocks, strip.source_step, strip.destination_step) = (16, 512, 4096);
            let (nodes, streams) = program(vec![leaf], stores, 1 << 20, 1 << 20).unwrap();
            let Some(Node::Call(call)) = nodes.into_iter().next() else { panic!("no call") };
            (
                call.strip.by_destination(),
                call.order,
                streams,
                call.strip.pages_by_turns,
                call.strip.is_far,
            )
        };
        let call = |both_bytes: u64| call_by(Core::Zen5, both_bytes);
        let mib = 1 << 20;
        let (sorted, order, streams, ..) = call(mib);
        assert!(order != sorted && order.len() == sorted.len() && !streams);
        let (sorted, order, streams, ..) = call(mib + 1);
        assert!(order == sorted && !streams);
        for (both_bytes, expected) in [
            (14 * mib, (true, true, false)),
            (19 * mib - 1, (true, true, false)),
            (19 * mib, (true, false, false)),
            (24 * mib, (true, false, true)),
        ] {
            let (_, order, streams, by_turns, is_far) = call(both_bytes);
            assert_eq!((streams, by_turns, is_far), expected, "{both_bytes} bytes");
            assert!(order.is_empty());
        }
        // On these CPUs alike.
        for core in [Core::Intel, Core::Zen4] {
            let by_size = [14 * mib - 1, 14 * mib].map(|both_bytes| call_by(core, both_bytes).2);
            assert_eq!(by_size, [false, true], "{core:?}");
        }
    }

    #[test]
    fn a_stage_knows_the_core_and_whether_memory_is_read() {
        let stage_of = |all_bytes: u64| {
            let once = Steps { count: 1, array: 0, scratch: 0 };
            let stage = Stage {
                lines: once,
                blocks: once,
                rows: once,
                elements: 8,
                array_bits: 32,
                scratch_width: 2,
                op: BlockOp::Convert { conversion: Conversion::F32ToBf16 },
                run: None,
                is_far: false,
                core: Core::default(),
                scratch_bytes: 64,
            };
            let mut leaf = leaf(0, &[], 16);
            leaf.stages.source = Some(Box::new(stage));
            let stores = Stores { core: Core::Zen3, all_bytes, ..ORDINARY };
            let (mut nodes, _) = program(vec![leaf], stores, 32, 16).unwrap();
            let Some(Node::Call(call)) = nodes.pop() else { panic!("no call") };
            let stage = call.stages.source.unwrap();
            (stage.is_far, stage.core)
        };
        let from_memory = 24 << 20;
        assert_eq!(stage_of(from_memory), (true, Core::Zen3));
        assert_eq!(stage_of(from_memory - 1), (false, Core::Zen3));
    }

    #[test]
    fn passes_that_leave_scratch_memory_make_no_program() {
        // Twice 10 bytes into scratch memory, and from there, 3 times.
        let make = |first: u64, second: u64, scratch_bytes| {
            let mut from = leaf(0, &[(2, 80, 80)], 10);
            from.source = first;
            let mut to = leaf(8, &[(2, 80, 160)], 10);
            to.source = second;
            let hop = Hop { first: vec![from], second: vec![to], scratch_bytes };
            let leaf = Leaf::of_hop(0, 0, vec![Loop::new(3, 160, 320)], hop);
            program(vec![leaf], ORDINARY, 60, 111).is_some()
        };
        assert!(make(0, 0, 20));
        assert!(!make(8, 0, 20));
        assert!(!make(0, 8, 20));
        assert!(make(0, 8, 21));
        assert!(!make(0, 0, 19));
    }

    #[test]
    fn neighbours_share_their_loops() {
        let rows = [(4, 800, 1600), (8, 80, 160)];
        let leaves = vec![leaf(0, &rows, 7), leaf(56, &rows, 3), leaf(8000, &rows[1..], 10)];
        let (nodes, _) = program(leaves, ORDINARY, 1 << 20, 1 << 20).unwrap();
        let [Node::Loop { count: 4, body, .. }, Node::Loop { count: 8, .. }] = &nodes[..] else {
            panic!("{nodes:?}")
        };
        let [Node::Loop { count: 8, body, .. }] = &body[..] else { panic!("{body:?}") };
        assert_eq!(body.len(), 2);
    }

    #[test]
    fn past_the_caches_the_source_is_read_in_its_order() {
        // Rows of tiles far from each other in the destination, of 50 images that follow each
        // other in the source; and what is left of the last such row.
        let images = (50, 8000, 1600);
        let leaves = || {
            let mut last = leaf(600_000, &[images], 3);
            last.source = 4800;
            vec![leaf(0, &[(6, 800, 100_000), images], 7), last]
        };
        let nodes = |stores| program(leaves(), stores, 1 << 20, 1 << 20).unwrap().0;
        let [Node::Loop { count: 50, body, .. }] = &nodes(STREAMING)[..] else { panic!() };
        let [Node::Loop { count: 6, body: calls, .. }, Node::Call(_)] = &body[..] else {
            panic!("{body:?}")
        };
        let [Node::Call(call)] = &calls[..] else { panic!("{calls:?}") };
        assert_eq!(call.strip.next, 100, "to where the loop around it goes on");
        let [Node::Loop { count: 6, .. }, Node::Loop { count: 50, .. }] = &nodes(ORDINARY)[..]
        else {
            panic!()
        };
        // What is in scratch memory is near in any order.
        let from_scratch = Stores { from_scratch: true, ..STREAMING };
        let Node::Loop { count, .. } = nodes(from_scratch)[0] else { panic!() };
        assert_eq!(count, 6);
    }

    #[test]
    fn images_of_a_shape_are_read_one_after_the_other() {
        let shape: Shape = "bf16[16,64,1024]{2,0,1:T(8,128)(2,1)}".parse().unwrap();
        let outermost = |streaming| {
            let plan = PlanBuilder::new().streaming(streaming).unpack(&shape).unwrap();
            let explanation = plan.explain();
            if streaming && !explanation.streaming {
                return None;
            }
            let text = explanation.to_string();
            Some(text.lines().find(|line| line.contains(" times, ")).unwrap().trim().to_owned())
        };
        // An image has so many bytes.
        let in_order = "source +32768 bytes";
        match outermost(true) {
            Some(line) => assert!(line.contains(in_order), "{line}"),
            None => eprintln!("skipped: no streaming stores here"),
        }
        let line = outermost(false).unwrap();
        assert!(!line.contains(in_order), "{line}");
    }

    #[test]
    fn tails_get_the_loops_of_what_they_end() {
        let (groups, images) = ((6, 8 << 10, 8 << 14), (50, 8 << 13, 8 << 8));
        let with_strip = |mut leaf: Leaf, lines: [usize; 3], blocks: [usize; 3]| {
            let strip = &mut leaf.strip;
            [strip.lines, strip.source_line, strip.destination_line] = lines;
            [strip.blocks, strip.source_step, strip.destination_step] = blocks;
            leaf
        };
        let end = |columns, loops: &[_]| {
            let mut end = leaf(8 * 7 * 128, loops, columns);
            end.source = 8 * 7 * 128;
            end
        };
        let (lines, one, none) = ([7, 128, 128], [4, 2048, 1 << 20], [1, 0, 0]);
        let of_groups = [6, 1 << 10, 1 << 14];
        let of_images = [50, 1 << 13, 1 << 8];
        let alike = |strip_lines, strip_blocks| {
            with_strip(leaf(0, &[groups, images], 128), strip_lines, strip_blocks)
        };
        let tail_of = |leaves: Vec<Leaf>, stores| {
            let (mut nodes, _) = program(leaves, stores, 1 << 24, 1 << 24).unwrap();
            loop {
                match nodes.into_iter().next() {
                    Some(Node::Loop { body, .. }) => nodes = body,
                    Some(Node::Call(call)) => return (call.strip.lines, call.strip.tail),
                    other => panic!("{other:?}"),
                }
            }
        };
        for end in [
            // As loops, one of them as lines, both, and among these the blocks.
            with_strip(end(100, &[groups, images]), none, one),
            with_strip(end(100, &[images]), of_groups, one),
            with_strip(end(100, &[images]), one, of_groups),
        ] {
            assert_eq!(tail_of(vec![alike(lines, one), end.clone()], STREAMING), (7, 100));
            assert_eq!(tail_of(vec![alike(lines, one), end], ORDINARY), (7, 0));
        }
        // Without blocks, the lines may be taken for them on both sides.
        let end = with_strip(end(100, &[]), of_groups, of_images);
        for alike in [alike(lines, none), alike(none, lines)] {
            assert_eq!(tail_of(vec![alike, end.clone()], STREAMING), (7, 100));
        }
        // Other steps, and ends that are no tail.
        let other = with_strip(end.clone(), [6, 1 << 10, 1 << 15], of_images);
        assert_eq!(tail_of(vec![alike(lines, none), other], STREAMING), (7, 0));
        let short = Leaf { strip: Strip { columns: 63, ..end.strip }, ..end };
        assert_eq!(tail_of(vec![alike(lines, none), short], STREAMING), (7, 0));
    }
}
