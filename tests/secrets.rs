//! What memory held before never shows in an image: packed into memory full of one
//! byte, of another one, or of zeros, it is the same, padding included. The same of
//! what padding a source has.
//!
//! All layouts of the corpus, all tiers, whole, in chunks, through a stager and on
//! threads.

mod common;

use common::{Scoped, host_bytes, json_lines, lines, reduced, shape, text};
use relayout::staging::Stager;
use relayout::{Padding, Plan, PlanBuilder, Shape, Tier, oracle};
use relayout_testing::{element_mask, noise};

/// What memory holds before.
const BEFORE: [u8; 3] = [0x00, 0xa5, 0xff];

/// The layouts of the corpus, on small arrays.
fn corpus() -> Vec<Shape> {
    let mut texts = lines("hlo_shapes.txt");
    for file in ["tpu_layouts.jsonl", "golden.jsonl"] {
        texts.extend(json_lines(file).iter().map(|case| text(case, "shape").to_owned()));
    }
    let relayouts = lines("relayouts.txt");
    texts.extend(relayouts.iter().flat_map(|line| line.split(" -> ")).map(str::to_owned));
    let mut shapes: Vec<Shape> = texts.iter().map(|text| reduced(&shape(text))).collect();
    assert!(shapes.len() > 1300, "{}", shapes.len());
    let mut seen = std::collections::HashSet::new();
    shapes.retain(|shape| seen.insert(shape.to_string()));
    shapes
}

/// All that a plan makes of a source: each result has to be the same, whatever there was
/// before.
fn results(plan: &Plan, source: &[u8], before: u8) -> Vec<Vec<u8>> {
    let bytes = plan.destination_bytes() as usize;
    let mut whole = vec![before; bytes];
    plan.run(source, &mut whole).unwrap();

    let mut chunks = vec![before; bytes];
    for chunk in plan.chunks(700) {
        let range = chunk.destination().start as usize..chunk.destination().end as usize;
        chunk.run(source, &mut chunks[range]).unwrap();
    }
    // Buffers that were used before, for chunks of others.
    let mut staged = Vec::new();
    let room = plan.grain_bytes().max(900) as usize;
    let mut stager = Stager::new([vec![before; room], vec![!before; room]]);
    for chunk in stager.stage(plan, source).unwrap() {
        staged.extend_from_slice(chunk.unwrap().bytes());
    }
    vec![whole, chunks, staged, plan.run_to_vec(source).unwrap()]
}

fn check(plan: &Plan, source: &[u8]) {
    let [zeros, others @ ..] = BEFORE.map(|before| results(plan, source, before));
    for result in others.iter().chain([&zeros]).flatten() {
        assert!(*result == zeros[0], "memory shows through:\n{}", plan.explain());
    }
}

#[test]
fn images_hold_nothing_of_the_memory_they_are_made_in() {
    for (i, shape) in corpus().iter().enumerate() {
        let host = host_bytes(shape);
        for tier in Tier::available() {
            let builder = PlanBuilder::new().tier(tier).streaming(i % 2 == 0);
            check(&builder.pack(shape).unwrap(), &host);
        }
    }
}

/// The test sees what it is there for: padding that is kept is what there was before.
#[test]
fn what_shows_is_seen() {
    let shape = shape("bf16[9,130]{1,0:T(8,128)(2,1)}");
    let plan = PlanBuilder::new().padding(Padding::Keep).pack(&shape).unwrap();
    let [zeros, others @ ..] = BEFORE.map(|before| results(&plan, &host_bytes(&shape), before));
    for other in others {
        // Whole, in chunks, through a stager: all but what is zeroed first.
        assert!((0..3).all(|i| other[i] != zeros[0]) && other[3] == zeros[0]);
    }
}

/// Nor of the padding of an image that they are made from.
#[test]
fn padding_of_a_source_goes_nowhere() {
    for (i, shape) in corpus().iter().enumerate() {
        let mask = element_mask(shape);
        let image = noise(mask.len() as u64, 7);
        let with = |padding: u8| -> Vec<u8> {
            image.iter().zip(&mask).map(|(b, mask)| b & mask | padding & !mask).collect()
        };
        let to = shape.in_host_layout();
        for tier in Tier::available() {
            let builder = PlanBuilder::new().tier(tier).streaming(i % 2 == 0);
            for plan in [builder.unpack(shape).unwrap(), builder.between(shape, &to).unwrap()] {
                let [zeros, others @ ..] = BEFORE.map(|b| plan.run_to_vec(&with(b)).unwrap());
                assert!(others.iter().all(|o| *o == zeros), "{}", plan.explain());
                check(&plan, &with(0xa5));
            }
        }
    }
}

/// Large enough to be shared by threads, and ragged.
#[test]
fn threads_leave_nothing_either() {
    for text in [
        "f32[1201,901]{1,0:T(8,128)}",
        "bf16[2001,1101]{1,0:T(8,128)(2,1)}",
        "s8[2049,2201]{1,0:T(32,128)(4,1)}",
        "s8[2049,2201]{1,0:T(8,128)(4,1)}",
        "pred[3001,3001]{1,0:T(32,128)(32,1)E(1)}",
        "s4[2999,3501]{1,0:T(8,128)(8,1)E(4)}",
        "f32[1001,1101]{0,1:T(8,128)}",
        "bf16[1501,1501]{0,1:T(8,128)(2,1)}",
    ] {
        let shape = shape(text);
        let host = host_bytes(&shape);
        // Shares of a transpose are tested with the oracle nowhere else.
        let expected = text.contains("{0,1:").then(|| {
            let mut expected = vec![0xa5; shape.sizes().unwrap().image_bytes as usize];
            oracle::pack(&shape, &host, &mut expected).unwrap();
            expected
        });
        for tier in Tier::available() {
            let plan = PlanBuilder::new().tier(tier).pack(&shape).unwrap();
            let images = BEFORE.map(|before| {
                let mut image = vec![before; plan.destination_bytes() as usize];
                plan.run_with(&Scoped(3), &host, &mut image).unwrap();
                image
            });
            assert!(images[0] == images[1] && images[0] == images[2], "{}", plan.explain());
            assert!(expected.as_ref().is_none_or(|e| images[0] == *e), "{}", plan.explain());
        }
    }
}
