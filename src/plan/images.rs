//! Images of few channels, streamed in the order of their pixels.
//!
//! Rows of pixels follow each other in memory, and tiles have parts of them. So tiles beside each other go before the rows
//! below, and the last tile of some rows, which is a region of its own, before the next rows:
//!
//! ```text
//! two tiles side by side, region by region    a1 a2 a3 ..  b1 b2 b3 ..
//! row by row                                  a1 b1  a2 b2  a3 b3  ..
//! ```

use relayout_kernels::{BlockOp, Strip};

use super::choose::{Leaf, bits};
use super::program::streams;
use super::stores::{LINE, Stores};
use super::tails::{along, sort};
use crate::error::Side;

/// Calls are made in more loops where each of them writes so many bytes.
const LEAST_CALL: usize = 2 << 10;

/// Rows of pixels in parts of so many bytes are written as quickly in any order, if they are lines.
const LONG_RUN: usize = 2 << 10;

/// Puts leaves that move streamed images in this order.
pub(super) fn in_order(leaves: &mut [Leaf], stores: Stores) {
    for leaf in leaves.iter_mut() {
        if let Some(pixels) = pixels(leaf, stores) {
            by_pixels(leaf, pixels);
        }
    }
    for i in 1..leaves.len() {
        if let [.., before, leaf] = &mut leaves[..=i] {
            share_rows(before, leaf, stores);
        }
    }
}

/// On which side a leaf has the pixels of an image of few channels, if it streams such.
fn pixels(leaf: &Leaf, stores: Stores) -> Option<Side> {
    let strip = &leaf.strip;
    let side = match leaf.op {
        BlockOp::InterleaveTranspose { .. } => Side::Source,
        BlockOp::TransposeDeinterleave { .. } => Side::Destination,
        op => {
            stores.width_of_dense(op, strip)?;
            if strip.columns < strip.rows { Side::Source } else { Side::Destination }
        }
    };
    let is_plain = leaf.hop.is_none() && !leaf.stages.are_there() && !strip.has_tail();
    (is_plain && !stores.from_scratch && streams(leaf, stores)).then_some(side)
}

/// How many steps the two loops of a strip have, and how long they are on a side.
fn steps(strip: &Strip, side: Side) -> [(usize, usize); 2] {
    let line = side.of(strip.source_line, strip.destination_line);
    [(strip.lines, line), (strip.blocks, side.of(strip.source_step, strip.destination_step))]
}

/// The shorter steps of a strip within the longer ones, unless it writes long runs that are lines, in whatever order.
fn by_pixels(leaf: &mut Leaf, side: Side) {
    let strip = &mut leaf.strip;
    let [(lines, line), (blocks, block)] = steps(strip, side);
    let writes_long_lines = side == Side::Destination
        && pixel_row(leaf.op, strip) >= LONG_RUN
        && (line | block | strip.row_stride).is_multiple_of(LINE);
    if lines > 1 && (blocks == 1 || line < block) && !writes_long_lines {
        *strip = with_blocks_as_lines(*strip);
    }
}

/// How many bytes of a row of pixels a block of a strip has.
fn pixel_row(op: BlockOp, strip: &Strip) -> usize {
    let bits = match op {
        BlockOp::TransposeDeinterleave { bits, .. } | BlockOp::Transpose { bits } => bits,
        _ => 0,
    };
    let elements = strip.rows.saturating_mul(strip.columns);
    elements.saturating_mul(usize::try_from(bits / 8).unwrap_or_default())
}

/// The two loops of a strip in each other's place.
fn with_blocks_as_lines(strip: Strip) -> Strip {
    Strip {
        lines: strip.blocks,
        source_line: strip.source_step,
        destination_line: strip.destination_step,
        blocks: strip.lines,
        source_step: strip.source_line,
        destination_step: strip.destination_line,
        ..strip
    }
}

/// Puts two leaves that move parts of the same rows of pixels into one loop along these, if calls are long enough then.
fn share_rows(before: &mut Leaf, leaf: &mut Leaf, stores: Stores) {
    let Some(side) = pixels(before, stores) else { return };
    if before.op != leaf.op || pixels(leaf, stores) != Some(side) {
        return;
    }
    let Some(last) = line_by_line(leaf) else { return };
    let first =
        if before.loops == last.loops { Some(before.clone()) } else { line_by_line(before) };
    let Some(first) = first.filter(|first| first.loops == last.loops) else { return };
    let [(_, line), _] = steps(&leaf.strip, side);
    let [from, to] = [&first, &last].map(|leaf| side.of(leaf.source, leaf.destination));
    let bytes = first.strip.written_bytes(first.op);
    if to.wrapping_sub(from) < bits(1, line) && bytes.is_some_and(|bytes| bytes >= LEAST_CALL) {
        (*before, *leaf) = (first, last);
    }
}

/// A leaf that is called for each of its lines.
fn line_by_line(leaf: &Leaf) -> Option<Leaf> {
    let mut leaf = leaf.clone();
    let Strip { lines, source_line, destination_line, .. } = leaf.strip;
    leaf.loops.push(along(lines, source_line, destination_line).filter(|l| l.extent > 1)?);
    sort(&mut leaf.loops);
    leaf.strip = Strip { lines: 1, source_line: 0, destination_line: 0, ..leaf.strip };
    Some(leaf)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::explain::Part;
    use crate::{PlanBuilder, Shape, Tier};

    /// Of images of three channels: how many loops are around each kernel that moves pixels, and how long the
    /// steps of its blocks are on the side of these, in bits.
    fn images(shape: &str, packs: bool, streams: bool) -> Vec<(usize, u64)> {
        let of: Shape = shape.parse().unwrap();
        let builder = PlanBuilder::new().streaming(streams);
        let plan = if packs { builder.pack(&of) } else { builder.unpack(&of) }.unwrap();
        let parts = plan.explain().parts.into_iter().filter(|part| part.op != BlockOp::Fill);
        let pixels = |part: Part| {
            let blocks = part.blocks;
            (part.loops.len(), if packs { blocks.source_bits } else { blocks.destination_bits })
        };
        parts.map(pixels).collect()
    }

    #[test]
    fn images_are_streamed_pixel_by_pixel() {
        if !Tier::best().shuffles() || !Tier::best().streams() {
            println!("skipped: no kernel takes pixels apart and streams in this tier");
            return;
        }
        // Of several images, tiles beside each other: 128 pixels further each time.
        let tiles = "f32[2,16,256,3]{2,1,3,0:T(8,128)}";
        for packs in [true, false] {
            assert_eq!(images(tiles, packs, true), [(2, 128 * 3 * 32)], "{packs}");
        }
        // Two tiles that are not alike, in the loops of the same rows; where nothing is streamed, each for itself.
        for (shape, row) in [
            ("f32[2,16,224,3]{2,1,3,0:T(8,128)}", 224 * 3 * 32),
            ("bf16[2,32,224,3]{2,1,3,0:T(16,128)(2,1)}", 2 * 224 * 3 * 16),
            ("u8[2,64,224,3]{2,1,3,0:T(32,128)(4,1)}", 4 * 224 * 3 * 8),
        ] {
            for packs in [true, false] {
                let both = images(shape, packs, true);
                assert_eq!(both, [(2, row), (2, row)], "{shape}, {packs}");
                let apart = images(shape, packs, false);
                assert!(apart.len() == 2 && apart.iter().all(|part| part.0 == 1), "{apart:?}");
            }
        }
    }
}
