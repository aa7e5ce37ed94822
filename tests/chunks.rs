//! Chunks against the whole: each alone, in a buffer of its own, with no more of the
//! source than it says that it reads.

mod common;

use common::{arb_shape, cases, json_lines, lines, reduced, shape, text};
use proptest::prelude::*;
use relayout::{BitOrder, Chunk, ChunkError, Host, Padding, Plan, PlanBuilder, Shape, Tier};

fn bytes(count: u64, seed: u64) -> Vec<u8> {
    (0..count).map(|i| ((i ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// What a chunk makes of its part of the source and of its part of the destination.
fn run(chunk: &Chunk, source: &[u8], before: &[u8]) -> Vec<u8> {
    let range = |range: std::ops::Range<u64>| range.start as usize..range.end as usize;
    let part = source[range(chunk.source())].to_vec();
    let mut destination = before[range(chunk.destination())].to_vec();
    assert_eq!(destination.len(), chunk.len());
    chunk.run_part(&part, &mut destination).unwrap();

    // The start of the source does as well, whatever there is before the part.
    let mut start = bytes(chunk.source().end, 99);
    start[range(chunk.source())].copy_from_slice(&part);
    let mut again = before[range(chunk.destination())].to_vec();
    chunk.run(&start, &mut again).unwrap();
    assert!(again == destination);
    destination
}

fn check(plan: &Plan, max_bytes: u64) {
    let source = bytes(plan.source_bytes(), 1);
    let before = bytes(plan.destination_bytes(), 2);
    let mut whole = before.clone();
    plan.run(&source, &mut whole).unwrap();

    let chunks: Vec<Chunk> = plan.chunks(max_bytes).collect();
    assert_eq!(plan.chunks(max_bytes).size_hint(), (chunks.len(), Some(chunks.len())));
    let mut end = 0;
    let mut pieces = vec![Vec::new(); chunks.len()];
    for (i, chunk) in chunks.iter().enumerate() {
        assert_eq!(chunk.destination().start, end, "{}", plan.explain());
        end = chunk.destination().end;
        let most = max_bytes.max(plan.grain_bytes());
        assert!(chunk.len() as u64 <= most, "{} of {most}\n{}", chunk.len(), plan.explain());
        assert!(chunk.source().end <= plan.source_bytes());
        // Any order will do.
        let i = (i * 7 + 3) % chunks.len();
        if pieces[i].is_empty() {
            pieces[i] = run(&chunks[i], &source, &before);
        }
    }
    assert_eq!(end, plan.destination_bytes());
    for (chunk, piece) in chunks.iter().zip(&mut pieces) {
        if piece.is_empty() {
            *piece = run(chunk, &source, &before);
        }
    }
    let pieces = pieces.concat();
    let wrong = pieces.iter().zip(&whole).position(|(a, b)| a != b);
    assert_eq!(wrong, None, "chunks of {max_bytes}\n{}", plan.explain());
}

/// Any range, if it cuts no element.
fn check_range(plan: &Plan, from: u64, to: u64) {
    let range = from.min(to)..from.max(to);
    let source = bytes(plan.source_bytes(), 1);
    let before = bytes(plan.destination_bytes(), 2);
    let mut whole = before.clone();
    plan.run(&source, &mut whole).unwrap();
    match plan.chunk(range.clone()) {
        Ok(chunk) => {
            let expected = &whole[range.start as usize..range.end as usize];
            assert!(run(&chunk, &source, &before) == expected, "{range:?}\n{}", plan.explain());
        }
        Err(error) => {
            let grain = plan.grain_bytes();
            let is_cut = !range.start.is_multiple_of(grain) || !range.end.is_multiple_of(grain);
            assert!(range.is_empty() || is_cut, "{error}\n{}", plan.explain());
        }
    }
}

fn plans(shape: &Shape, padding: Padding, tier: Tier) -> Vec<Plan> {
    let builder = PlanBuilder::new().padding(padding).tier(tier);
    let mut plans = vec![builder.pack(shape).unwrap(), builder.unpack(shape).unwrap()];
    if matches!(shape.element_type().bits(), 1 | 2 | 4) {
        let builder = builder.host(Host::dense().packed(BitOrder::MostFirst));
        plans.extend([builder.pack(shape).unwrap(), builder.unpack(shape).unwrap()]);
    }
    plans
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn any_plan_in_chunks(
        shape in arb_shape(),
        max_bytes in prop_oneof![1..80_u64, 1..2000_u64],
        padding in prop_oneof![Just(Padding::Zero), Just(Padding::Keep), Just(Padding::Byte(0xb7))],
        tier in prop::sample::select(Tier::available()),
        ends in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
    ) {
        for plan in plans(&shape, padding, tier) {
            check(&plan, max_bytes);
            let bytes = plan.destination_bytes() as usize + 1;
            check_range(&plan, ends.0.index(bytes) as u64, ends.1.index(bytes) as u64);
        }
    }

    #[test]
    fn layouts_to_layouts_in_chunks(
        pair in (arb_shape(), arb_shape()),
        max_bytes in 1..300_u64,
    ) {
        let (from, to) = pair;
        // The same array, as far as the second layout suits it.
        let bits = to.element_bits();
        let layout = to.layout().clone();
        if from.rank() == to.rank() && from.element_type().image_bits().any(|b| b == bits) {
            let layout = layout.with_element_bits(bits.into()).unwrap();
            let to = from.with_layout(layout).unwrap();
            check(&Plan::between(&from, &to).unwrap(), max_bytes);
        }
    }
}

#[test]
fn layouts_of_tpu_programs_in_chunks() {
    let mut texts = lines("hlo_shapes.txt");
    texts.extend(json_lines("tpu_layouts.jsonl").iter().map(|case| text(case, "shape").to_owned()));
    for (i, text) in texts.iter().enumerate() {
        let shape = reduced(&shape(text));
        let available = Tier::available();
        let tier = available[i % available.len()];
        for plan in plans(&shape, Padding::Zero, tier) {
            for max_bytes in [100, 1024, 5000] {
                check(&plan, max_bytes);
            }
            let end = plan.destination_bytes();
            check_range(&plan, end / 3, end / 3 * 2);
        }
    }
}

#[test]
fn strided_destinations_are_cut_between_elements() {
    let shape = shape("f32[6,7]{1,0:T(8,128)}");
    for (strides, start, grain) in [
        // Every element; rows, as 30 is no multiple of 4; elements of 5 bytes.
        ([28, 4], 0, 4),
        ([30, 4], 3, 30),
        ([35, 5], 1, 5),
        ([-28, 4], 140, 4),
        ([4, 24], 0, 4),
    ] {
        let host = Host::strided(strides).starting_at(start);
        let plan = PlanBuilder::new().host(host).unpack(&shape).unwrap();
        assert_eq!(plan.grain_bytes(), grain, "{strides:?}");
        for max_bytes in [1, 4, 17, 30, 61, 1000] {
            check(&plan, max_bytes);
        }
    }
}

#[test]
fn chunks_are_as_large_as_they_may_be_and_end_where_tiles_do() {
    let sizes = |text: &str, max_bytes| {
        let plan = Plan::pack(&shape(text)).unwrap();
        let sizes: Vec<usize> = plan.chunks(max_bytes).map(|chunk| chunk.len()).collect();
        sizes
    };
    // Rows of tiles have 128 KiB.
    let text = "f32[1024,4096]{1,0:T(8,128)}";
    assert_eq!(sizes(text, 1 << 20), [1 << 20; 16]);
    assert_eq!(sizes(text, 300 << 10)[0], 256 << 10);
    assert_eq!(sizes(text, 100 << 10)[0], 100 << 10);
    assert_eq!(sizes(text, u64::MAX), [16 << 20]);
    assert_eq!(sizes("u8[0,3]{1,0}", 10), [0; 0]);
}

#[test]
fn a_chunk_says_what_it_reads() {
    let plan = Plan::pack(&shape("bf16[1024,4096]{1,0:T(8,128)(2,1)}")).unwrap();
    for (i, chunk) in plan.chunks(1 << 20).enumerate() {
        let start = (i as u64) << 20;
        assert_eq!(chunk.source(), start..start + (1 << 20));
    }
    // Rows that are padding read nothing.
    let plan = Plan::pack(&shape("f32[1,128]{1,0:T(8,128)}")).unwrap();
    let chunks: Vec<_> = plan.chunks(512).map(|chunk| chunk.source()).collect();
    assert_eq!(chunks[0], 0..512);
    assert_eq!(chunks[1..], vec![0..0; 7]);
}

#[test]
fn ranges_that_are_no_chunks() {
    let plan = Plan::pack(&shape("f32[8,128]{1,0:T(8,128)}")).unwrap();
    #[allow(clippy::reversed_empty_ranges, reason = "it is what is refused")]
    for range in [0..0, 8..4, 0..4097, 4096..4100, u64::MAX - 1..u64::MAX] {
        let error = plan.chunk(range.clone()).unwrap_err();
        assert_eq!(error, ChunkError::NoSuchRange { range, destination_bytes: 4096 });
    }
    let error = plan.chunk(2..8).unwrap_err();
    assert_eq!(error, ChunkError::AcrossElement { range: 2..8, grain_bytes: 4 });
    let chunk = plan.chunk(512..1024).unwrap();
    assert!(chunk.run(&[0; 1023], &mut [0; 512]).is_err());
    assert!(chunk.run(&[0; 1024], &mut [0; 511]).is_err());
    assert!(chunk.run_part(&[0; 511], &mut [0; 512]).is_err());
    chunk.run(&[0; 1024], &mut [0; 512]).unwrap();
}

/// What reviews found, each with its shape.
#[test]
fn finds() {
    // Two rows of a window in two tiles, so the stride of rows is in no loop.
    let shape16 = shape("f32[16,7]{1,0:T(8,128)}");
    let builder = PlanBuilder::new().window([7, 0], [2, 7]).host(Host::strided([30, 4]));
    let plan = builder.unpack(&shape16).unwrap();
    assert_eq!(plan.grain_bytes(), 30);
    for max_bytes in [1, 8, 30, 40, 60] {
        check(&plan, max_bytes);
    }
    // Chunks in the middle of long loops: each turn used to be looked at.
    for (text, host) in [
        ("u2[1099511627776,1]{1,0:T(7,9)(3,2)E(2)}", Host::strided([8, -512])),
        ("u8[4294967296]{0}", Host::dense()),
        ("pred[]{:T(9223372036854775807)E(1)}", Host::dense()),
        ("pred[288230376151711745]{0:T(*,3)E(1)}", Host::dense()),
        ("u2[1099511627776,1,8]{0,1,2:T(*,3)E(2)}", Host::dense()),
    ] {
        let plan = PlanBuilder::new().host(host).pack(&shape(text)).unwrap();
        let end = plan.destination_bytes();
        for range in [end / 3..end / 2, 5..end - 5, end / 2..end / 2 + 8] {
            let _ = plan.chunk(range);
        }
        assert!(plan.chunks(end / 7).count() <= 15, "{text}");
    }
    // The last bit of the largest image there is.
    let largest = shape("u2[]{:T(9223372036854775807)E(2)}");
    let plan = Plan::pack(&largest).unwrap();
    let chunks: Vec<Chunk> = plan.chunks(u64::MAX).collect();
    assert_eq!(chunks.last().unwrap().destination().end, plan.destination_bytes());
}
