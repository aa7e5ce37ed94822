//! Chunks against the whole: each alone, in a buffer of its own, with no more of the
//! source than it says that it reads.

mod common;

use common::{arb_bytes, arb_shape, cases, json_lines, lines, reduced, shape, text};
use proptest::prelude::*;
use relayout::{
    BitOrder, Chunk, ChunkError, ElementType, Host, Padding, Plan, PlanBuilder, Shape, Tier,
};
use relayout_testing::{Choices, chunks, fill_chunks, fill_range};

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
            fill_chunks(&plan, max_bytes);
            let bytes = plan.destination_bytes() as usize + 1;
            let [a, b] = [ends.0, ends.1].map(|end| end.index(bytes) as u64);
            fill_range(&plan, a.min(b)..a.max(b));
        }
    }

    /// Windows, host arrays at strides, conversions, layouts to layouts; through a
    /// stager; and chunks of what nobody can run.
    #[test]
    fn any_chunks(bytes in arb_bytes()) {
        chunks(&mut Choices::new(&bytes));
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
                fill_chunks(&plan, max_bytes);
            }
            let end = plan.destination_bytes();
            fill_range(&plan, end / 3..end / 3 * 2);
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
            fill_chunks(&plan, max_bytes);
        }
        // From the first element on.
        let end = plan.destination_bytes();
        for from in [0, 1, start + grain, start + 2 * grain, start + 2 * grain + 2] {
            fill_range(&plan, from..end);
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
    // Tiles, rows of tiles, and planes, whose last rows of tiles are padding.
    let text = "f32[4,60,1000]{2,1,0:T(8,128)}";
    for (most, size) in [
        (700 << 10, 512 << 10),
        (300 << 10, 256 << 10),
        (100 << 10, 96 << 10),
        (10_000, 8192),
        (5000, 4096),
    ] {
        assert_eq!(sizes(text, most)[0], size, "{most}");
    }
}

/// Also where a tile goes on in the next one, so that the kernels know no tiles.
#[test]
fn chunks_end_where_tiles_do_that_go_on_in_each_other() {
    for (text, tile_bytes) in [
        ("s8[3,300]{1,0:T(4,128)(4,1)}", 512),
        ("pred[32,1000]{1,0:T(32,128)(32,1)E(1)}", 512),
        ("f32[4001]{0:T(1024)}", 4096),
    ] {
        let plan = PlanBuilder::new().pack(&shape(text)).unwrap();
        let ends: Vec<u64> =
            plan.chunks(tile_bytes * 2 - 1).map(|chunk| chunk.destination().end).collect();
        let tiles = 1..=plan.destination_bytes() / tile_bytes;
        assert_eq!(ends, tiles.map(|tile| tile * tile_bytes).collect::<Vec<_>>(), "{text}");
    }
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
    assert_eq!(error, ChunkError::AcrossElement { range: 2..8, offset_bytes: 0, grain_bytes: 4 });
    let chunk = plan.chunk(512..1024).unwrap();
    assert!(chunk.run(&[0; 1023], &mut [0; 512]).is_err());
    assert!(chunk.run(&[0; 1024], &mut [0; 511]).is_err());
    assert!(chunk.run_part(&[0; 511], &mut [0; 512]).is_err());
    chunk.run(&[0; 1024], &mut [0; 512]).unwrap();
}

/// What reviews found, each with its shape.
#[test]
fn finds() {
    // Chunks with parts that move by different amounts share no program.
    let builder = PlanBuilder::new().window([1, 0], [14, 256]);
    let plan = builder.unpack(&shape("bf16[16,256]{1,0:T(4,128)(2,1)}")).unwrap();
    fill_chunks(&plan, 1024);
    // Windows in chunks without loops, and the end of packed elements there.
    for text in ["u8[9,8]{1,0:T(4,4)(*,6)}", "u4[9,9]{1,0:T(*,3)(*,2)E(4)}"] {
        let host = Host::dense().packed(BitOrder::MostFirst);
        let builder = PlanBuilder::new().window([3, 2], [5, 5]).padding(Padding::Byte(0xb7));
        let plans = [
            builder.pack(&shape(text)),
            builder.unpack(&shape(text)),
            builder.clone().host(host).unpack(&shape(text)),
            builder.between(&shape(text), &shape(text).in_host_layout()),
        ];
        for plan in plans.into_iter().filter_map(Result::ok) {
            for max_bytes in [1, 3, 16, 40] {
                fill_chunks(&plan, max_bytes);
            }
            fill_range(&plan, 7..plan.destination_bytes());
        }
    }
    // Two rows of a window in two tiles, so the stride of rows is in no loop.
    let shape16 = shape("f32[16,7]{1,0:T(8,128)}");
    let builder = PlanBuilder::new().window([7, 0], [2, 7]).host(Host::strided([30, 4]));
    let plan = builder.unpack(&shape16).unwrap();
    assert_eq!(plan.grain_bytes(), 30);
    for max_bytes in [1, 8, 30, 40, 60] {
        fill_chunks(&plan, max_bytes);
    }
    // Words with padding of numbers that are converted: a chunk has none of the loops that keep the whole from being words.
    for (columns, strides, start) in [(40, [-644, 4, 16], 1288), (128, [-2052, 4, 16], 4104)] {
        let host = Host::strided(strides).starting_at(start).of(ElementType::S32);
        let text = format!("s8[3,2,{columns}]{{2,1,0:T(2,4,128)(4,1)}}");
        for tier in Tier::available() {
            let plan =
                PlanBuilder::new().tier(tier).host(host.clone()).pack(&shape(&text)).unwrap();
            let most = plan.destination_bytes() / 7 + 1;
            fill_chunks(&plan, most);
            let sizes =
                plan.chunks(most).map(|chunk| chunk.destination().end - chunk.destination().start);
            assert!(sizes.into_iter().all(|bytes| bytes <= most), "{text}, {tier}");
        }
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
