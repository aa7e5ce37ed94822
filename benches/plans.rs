//! Plans: how long it takes to make one, and to run it in each tier, beside
//! memcpy of the same bytes.
//!
//! Each result is checked before it is timed. `relayout bench` measures the large
//! sizes, in huge pages and in turns with its peers.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use relayout::{Plan, PlanBuilder, Shape, Tier, oracle, tpu};

/// Makes plans for the formats, a ragged array and one of ten dimensions.
fn make(c: &mut Criterion) {
    let mut group = c.benchmark_group("make");
    let mut texts: Vec<String> = tpu::FORMATS
        .iter()
        .map(|format| format.shape(&[1024, 4096]).expect("a small array").to_string())
        .collect();
    texts.push("bf16[4095,4095]{1,0:T(8,128)(2,1)}".to_owned());
    texts.push("f32[2,4,2,8,2,4,2,4,16,128]{9,8,7,3,2,1,0,6,5,4:T(8,128)}".to_owned());
    for text in texts {
        let shape: Shape = text.parse().unwrap_or_else(|e| panic!("{e}"));
        group.bench_function(BenchmarkId::new("pack", &text), |b| {
            b.iter(|| Plan::pack(black_box(&shape)));
        });
    }
    group.finish();
}

/// Packs and unpacks a tile and 256 KiB of each format in each tier.
fn run(c: &mut Criterion) {
    let mut group = c.benchmark_group("run");
    group.sample_size(20);
    for format in tpu::FORMATS {
        let tile = format.tiles()[0];
        let row = 4096 / u64::from(format.element_type().host_bytes());
        for bounds in [[tile[0], tile[1]], [64, row]] {
            let shape = format.shape(&bounds).expect("a small array");
            let sizes = shape.sizes().expect("a static shape");
            let bytes = |n: u64| vec![1_u8; usize::try_from(n).expect("it fits")];
            let (mut host, mut image) = (bytes(sizes.host_bytes), bytes(sizes.image_bytes));
            let (mut expected, mut back) = (image.clone(), host.clone());
            let mask = if shape.element_bits() == 1 { 1 } else { 0xff };
            let mut state = 1_u32;
            for byte in &mut host {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *byte = state.to_le_bytes()[3] & mask;
            }
            oracle::pack(&shape, &host, &mut expected).expect("right lengths");
            group.throughput(Throughput::Bytes(sizes.host_bytes));
            group.bench_function(BenchmarkId::new("memcpy", &shape), |b| {
                b.iter(|| back.copy_from_slice(black_box(&host)));
            });
            for tier in Tier::available() {
                let builder = PlanBuilder::new().tier(tier);
                let pack = builder.pack(&shape).expect("a static shape");
                let unpack = builder.unpack(&shape).expect("a static shape");
                pack.run(&host, &mut image).expect("right lengths");
                assert_eq!(image, expected);
                unpack.run(&image, &mut back).expect("right lengths");
                assert_eq!(back, host);
                group.bench_function(BenchmarkId::new(format!("pack-{tier}"), &shape), |b| {
                    b.iter(|| pack.run(black_box(&host), &mut image));
                });
                group.bench_function(BenchmarkId::new(format!("unpack-{tier}"), &shape), |b| {
                    b.iter(|| unpack.run(black_box(&image), &mut back));
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, make, run);
criterion_main!(benches);
