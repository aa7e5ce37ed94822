//! Kernels in their loops, as one tree that a run walks.
//!
//! Nests that go on beside each other (whole tiles of a row, the ragged rest of
//! it, the padding behind that) share the loops around them, so a run visits
//! memory once, in the order of the destination.

use super::choose::Leaf;
use super::nest::Loop;
use super::stores::Stores;
use crate::cpu::Tier;
use crate::kernel::{self, BlockOp, Place, Run, Strip};

/// A loop around others, or a kernel call. Offsets and strides are in bits.
#[derive(Debug)]
pub(crate) enum Node {
    Loop { count: u64, source: u64, destination: u64, body: Vec<Node> },
    Call(Call),
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
}

/// The tree of all leaves, and whether any of them is written past the caches.
/// `None` where it would leave the buffers, which have these lengths in bytes.
pub(super) fn program(
    mut leaves: Vec<Leaf>,
    tier: Tier,
    stores: Stores,
    source_bytes: u64,
    destination_bytes: u64,
) -> Option<(Vec<Node>, bool)> {
    for leaf in &leaves {
        let (source, destination) = reach(leaf)?;
        if source > source_bytes || destination > destination_bytes {
            return None;
        }
    }
    leaves.sort_by_key(|leaf| leaf.destination);
    let streams = leaves.iter().any(|leaf| stores.past_the_caches(leaf.op, &leaf.strip));
    Some((fuse(leaves, tier, stores)?, streams))
}

/// How many bytes of each side a leaf needs, from their beginning on.
fn reach(leaf: &Leaf) -> Option<(u64, u64)> {
    let (mut source, mut destination) = (leaf.source, leaf.destination);
    for l in &leaf.loops {
        let last = l.extent.checked_sub(1)?;
        source = source.checked_add(last.checked_mul(l.source)?)?;
        destination = destination.checked_add(last.checked_mul(l.destination)?)?;
    }
    let strip = &leaf.strip;
    if let BlockOp::Bits { .. } | BlockOp::FillBits = leaf.op {
        let last = |stride: usize| -> Option<u64> {
            strip.columns.checked_sub(1)?.checked_mul(stride)?.try_into().ok()
        };
        let (source_bits, destination_bits) = match leaf.op {
            BlockOp::Bits { source_bits, destination_bits, .. } => (source_bits, destination_bits),
            _ => (0, 1),
        };
        let end = |offset: u64, stride, bits: u32| {
            Some(offset.checked_add(last(stride)?)?.checked_add(bits.into())?.div_ceil(8))
        };
        return Some((
            end(source, strip.row_stride, source_bits)?,
            end(destination, strip.column_stride, destination_bits)?,
        ));
    }
    if !source.is_multiple_of(8) || !destination.is_multiple_of(8) {
        return None;
    }
    if leaf.loops.iter().any(|l| !l.source.is_multiple_of(8) || !l.destination.is_multiple_of(8)) {
        return None;
    }
    let source_bytes = u64::try_from(strip.source_bytes(leaf.op)?).ok()?;
    let destination_bytes = u64::try_from(strip.destination_bytes(leaf.op)?).ok()?;
    Some((
        (source / 8).checked_add(source_bytes)?,
        (destination / 8).checked_add(destination_bytes)?,
    ))
}

/// Puts leaves into common loops.
fn fuse(leaves: Vec<Leaf>, tier: Tier, stores: Stores) -> Option<Vec<Node>> {
    let mut nodes = Vec::new();
    let mut rest = leaves;
    while !rest.is_empty() {
        let first = rest.remove(0);
        let Some(&around) = first.loops.first() else {
            let stream = stores.past_the_caches(first.op, &first.strip);
            let run = kernel::kernel(first.op, tier, stream);
            if run.is_none() && !matches!(first.op, BlockOp::Bits { .. } | BlockOp::FillBits) {
                return None;
            }
            let Leaf { source, destination, op, strip, .. } = first;
            let told = op.goes_by_order() && !stream;
            let order = if told { strip.shuffled() } else { Vec::new() };
            nodes.push(Node::Call(Call { source, destination, op, strip, order, run }));
            continue;
        };
        let start = first.destination;
        let (same, others): (Vec<Leaf>, Vec<Leaf>) =
            rest.into_iter().partition(|leaf| goes_along(leaf, around, start));
        rest = others;
        let mut source = around.source;
        let mut body = vec![first];
        body.extend(same);
        for leaf in &mut body {
            // Padding has no source; any stride is right for it.
            source = source.max(leaf.loops.remove(0).source);
        }
        nodes.push(Node::Loop {
            count: around.extent,
            source,
            destination: around.destination,
            body: fuse(body, tier, stores)?,
        });
    }
    Some(nodes)
}

/// Whether a leaf can be in the same loop: with the same steps, and within one
/// step of where that starts.
fn goes_along(leaf: &Leaf, around: Loop, start: u64) -> bool {
    let is_padding = matches!(leaf.op, BlockOp::Fill | BlockOp::FillBits);
    leaf.loops.first().is_some_and(|l| {
        l.extent == around.extent
            && l.destination == around.destination
            && (l.source == around.source || is_padding)
            && leaf.destination.checked_sub(start).is_some_and(|gap| gap < around.destination)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDINARY: Stores = Stores { asked: Some(false), both_bytes: 0 };

    fn leaf(destination: u64, loops: &[(u64, u64, u64)], columns: usize) -> Leaf {
        let strip = Strip { lines: 1, blocks: 1, rows: 1, columns, ..Strip::default() };
        let loops = loops.iter().map(|&(n, s, d)| Loop::new(n, s, d)).collect();
        Leaf { source: 0, destination, loops, op: BlockOp::Copy, strip }
    }

    #[test]
    fn a_leaf_that_leaves_the_buffers_makes_no_program() {
        let leaves = || vec![leaf(64, &[(3, 80, 160)], 10)];
        let make = |source, destination| {
            program(leaves(), Tier::SCALAR, ORDINARY, source, destination).is_some()
        };
        // 2 steps of 10 bytes and a run; 8 bytes, 2 steps of 20 and a run.
        assert!(make(30, 58));
        assert!(!make(29, 58));
        assert!(!make(30, 57));
    }

    #[test]
    fn neighbours_share_their_loops() {
        let rows = [(4, 800, 1600), (8, 80, 160)];
        let leaves = vec![leaf(0, &rows, 7), leaf(56, &rows, 3), leaf(8000, &rows[1..], 10)];
        let (nodes, _) = program(leaves, Tier::SCALAR, ORDINARY, 1 << 20, 1 << 20).unwrap();
        let [Node::Loop { count: 4, body, .. }, Node::Loop { count: 8, .. }] = &nodes[..] else {
            panic!("{nodes:?}")
        };
        let [Node::Loop { count: 8, body, .. }] = &body[..] else { panic!("{body:?}") };
        assert_eq!(body.len(), 2);
    }
}
