//! What has to hold of the chunks of every plan.

use std::ops::Range;

use relayout::index::ImageMap;
use relayout::staging::Stager;
use relayout::{Chunk, ChunkError, Plan, PlanBuilder, Shape};

use crate::checks::{assert_same, options};
use crate::strides::made_up_window;
use crate::{Choices, HostModel, another_layout, any_shape, noise, small_shape, wild_strides};

/// Chunks of an arbitrary plan, each alone, are together what the whole is; of one too
/// large to run, they are in order and within both buffers.
pub fn chunks(choices: &mut Choices<'_>) {
    if choices.one_in(4) {
        return absurd_chunks(choices);
    }
    let most = *choices.pick(&[300, 1500, 5000]);
    let shape = small_shape(choices, most);
    let bounds = shape.bounds().unwrap();
    let (mut builder, _) = options(choices, 0);
    let mut sizes = bounds.clone();
    if choices.one_in(4) {
        let (start, window_sizes) = made_up_window(choices, &bounds);
        sizes.clone_from(&window_sizes);
        builder = builder.window(start, window_sizes);
    }
    let kind = choices.below(3);
    let plan = match kind {
        0 => {
            let host = HostModel::made_up(choices, &shape, &sizes, true).host;
            builder.host(host).pack(&shape)
        }
        1 => {
            let host = HostModel::made_up(choices, &shape, &sizes, false).host;
            builder.host(host).unpack(&shape)
        }
        _ => builder.between(&shape, &another_layout(choices, &shape, most)),
    };
    let plan = plan.unwrap();
    if kind != 1 {
        // Of an image, nothing but elements is in the way.
        let bits = plan.destination_shape().element_bits();
        assert_eq!(plan.grain_bytes(), u64::from(bits.div_ceil(8)), "{}", plan.explain());
    }
    let max_bytes = match choices.below(4) {
        0 => 1 + choices.below(20),
        1 => 16 + choices.below(500),
        2 => 64 * (1 + choices.below(40)),
        _ => 1 + plan.destination_bytes() / (1 + choices.below(12)),
    };
    // Thousands of chunks take seconds to check.
    let max_bytes = max_bytes.max(plan.destination_bytes() / 500);
    fill_chunks(&plan, max_bytes);
    if kind == 2 && plan.explain().slow.is_none() && sizes == bounds {
        read_what_they_need(&plan, max_bytes);
    }
    let end = plan.destination_bytes() + 1;
    let (a, b) = (choices.below(end), choices.below(end));
    fill_range(&plan, a.min(b)..a.max(b));
    stage(&plan, max_bytes);
}

/// What a chunk makes of its part of the source and of its part of the destination.
fn run(chunk: &Chunk, source: &[u8], before: &[u8]) -> Vec<u8> {
    let range = |range: Range<u64>| range.start as usize..range.end as usize;
    let part = source[range(chunk.source())].to_vec();
    let mut destination = before[range(chunk.destination())].to_vec();
    assert_eq!(destination.len(), chunk.len());
    chunk.run_part(&part, &mut destination).unwrap();

    // The start of the source does as well, whatever there is before the part.
    let mut start = noise(chunk.source().end, 99);
    start[range(chunk.source())].copy_from_slice(&part);
    let mut again = before[range(chunk.destination())].to_vec();
    chunk.run(&start, &mut again).unwrap();
    assert!(again == destination);
    destination
}

/// Both buffers of a plan, and what it makes of them.
fn whole(plan: &Plan) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let source = noise(plan.source_bytes(), 1);
    let before = noise(plan.destination_bytes(), 2);
    let mut whole = before.clone();
    plan.run(&source, &mut whole).unwrap();
    (source, before, whole)
}

/// Chunks of at most so many bytes, each in a buffer of its own, with no more of the
/// source than it says that it reads, are the whole.
pub fn fill_chunks(plan: &Plan, max_bytes: u64) {
    let (source, before, whole) = whole(plan);
    let chunks: Vec<Chunk> = plan.chunks(max_bytes).collect();
    assert_eq!(plan.chunks(max_bytes).size_hint(), (chunks.len(), Some(chunks.len())));
    let mut end = 0;
    for chunk in &chunks {
        assert_eq!(chunk.destination().start, end, "{}", plan.explain());
        end = chunk.destination().end;
        let most = max_bytes.max(plan.grain_bytes());
        assert!(chunk.len() as u64 <= most, "{} of {most}\n{}", chunk.len(), plan.explain());
        assert!(chunk.source().end <= plan.source_bytes());
    }
    assert_eq!(end, plan.destination_bytes());
    // Any order will do.
    let mut pieces = vec![Vec::new(); chunks.len()];
    for i in (0..chunks.len()).step_by(2).chain((1..chunks.len()).step_by(2).rev()) {
        pieces[i] = run(&chunks[i], &source, &before);
    }
    assert_same(&pieces.concat(), &whole, plan);
}

/// Chunks from one layout to another one read from the first byte of an element that
/// they hold to the last one, and no further than the words that these are in.
fn read_what_they_need(plan: &Plan, max_bytes: u64) {
    let map = |shape: &Shape| (ImageMap::new(shape).unwrap(), u64::from(shape.element_bits()));
    let (from, from_bits) = map(plan.source_shape());
    let (to, to_bits) = map(plan.destination_shape());
    for chunk in plan.chunks(max_bytes) {
        let Range { start, end } = chunk.destination();
        let elements = start * 8 / to_bits..(end * 8 / to_bits).min(to.image_elements());
        let needed = elements
            .filter_map(|k| to.logical_index(k).unwrap())
            .map(|index| from.bit_offset(&index).unwrap())
            .map(|bit| (bit / 8, (bit + from_bits).div_ceil(8)))
            .reduce(|(start, end), (s, e)| (start.min(s), end.max(e)));
        let (start, end) = needed.unwrap_or((0, 0));
        let (source, word) = (chunk.source(), 16);
        let is_needed = source.start <= start && source.end >= end;
        let is_tight = source.start + word >= start && source.end <= end + word;
        assert!(
            is_needed && is_tight,
            "{:?} reads {source:?}, not {start}..{end}\n{}",
            chunk.destination(),
            plan.explain()
        );
    }
}

/// Any range is a chunk, unless it is empty or cuts an element.
pub fn fill_range(plan: &Plan, range: Range<u64>) {
    let (source, before, whole) = whole(plan);
    match plan.chunk(range.clone()) {
        Ok(chunk) => {
            assert_eq!(chunk.destination(), range);
            let expected = &whole[range.start as usize..range.end as usize];
            assert_same(&run(&chunk, &source, &before), expected, plan);
        }
        Err(ChunkError::AcrossElement { offset_bytes, grain_bytes, .. }) => {
            let end = plan.destination_bytes();
            let whole = |at: u64| {
                let is_cut = || at.abs_diff(offset_bytes).is_multiple_of(grain_bytes);
                at == 0 || at == end || is_cut()
            };
            let is_whole = whole(range.start) && whole(range.end);
            assert!(!is_whole, "{range:?} was refused\n{}", plan.explain());
        }
        Err(error) => assert!(range.is_empty(), "{error}"),
    }
}

/// Through two buffers of so many bytes.
fn stage(plan: &Plan, buffer_bytes: u64) {
    let source = noise(plan.source_bytes(), 1);
    // What is the same on whatever there was before is written; all else is whatever a
    // buffer had.
    let [zeros, ones] = [0, 0xff].map(|before| {
        let mut destination = vec![before; plan.destination_bytes() as usize];
        plan.run(&source, &mut destination).unwrap();
        destination
    });
    let buffer = || vec![0x5a; buffer_bytes as usize];
    let mut stager = Stager::new([buffer(), buffer()]);
    let staged = match stager.stage(plan, &source) {
        Ok(staged) => staged,
        Err(error) => {
            assert!(plan.grain_bytes() > buffer_bytes, "{error}\n{}", plan.explain());
            return;
        }
    };
    let mut end = 0;
    for staged in staged {
        let staged = staged.unwrap();
        let range = staged.destination();
        assert_eq!((range.start, range.end - range.start), (end, staged.bytes().len() as u64));
        end = range.end;
        for (at, byte) in (range.start as usize..).zip(staged.bytes()) {
            let written = !(zeros[at] ^ ones[at]);
            assert_eq!(byte & written, zeros[at] & written, "byte {at}\n{}", plan.explain());
        }
    }
    assert_eq!(end, plan.destination_bytes());
}

/// Chunks of a plan that nobody can run.
fn absurd_chunks(choices: &mut Choices<'_>) {
    let Some(shape) = any_shape(choices) else { return };
    let builder = PlanBuilder::new();
    let plan = match choices.below(3) {
        0 => builder.pack(&shape),
        1 => builder.unpack(&shape),
        _ => {
            let (host, ..) = wild_strides(choices, shape.rank());
            builder.host(host).pack(&shape)
        }
    };
    let Ok(plan) = plan else { return };
    let _ = plan.explain().to_string();
    let (bytes, grain) = (plan.destination_bytes(), plan.grain_bytes());
    let max_bytes = choices.number();
    let mut end = 0;
    for chunk in plan.chunks(max_bytes).take(20) {
        assert_eq!(chunk.destination().start, end);
        end = chunk.destination().end;
        assert!(end <= bytes && chunk.source().end <= plan.source_bytes());
        assert!(chunk.len() > 0 && chunk.len() as u64 <= max_bytes.max(grain));
    }
    let (a, b) = (choices.number(), choices.number());
    for range in [a..b, (a % grain.max(1)).wrapping_mul(grain)..bytes, b..bytes] {
        match plan.chunk(range.clone()) {
            Ok(chunk) => {
                assert_eq!(chunk.destination(), range);
                assert!(range.end <= bytes && chunk.source().end <= plan.source_bytes());
                if range.end - range.start > 1 << 16 {
                    assert!(chunk.run(&[], &mut []).is_err());
                }
            }
            Err(ChunkError::NoSuchRange { .. }) => {
                assert!(range.is_empty() || range.end > bytes, "{range:?} of {bytes}");
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
