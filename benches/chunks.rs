//! A destination in chunks of 1 and 8 MiB, each filled by itself, beside the whole at
//! once, memcpy of the same bytes, and what making the chunks takes.
//!
//! Results are checked before they are timed.

mod memory;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use relayout::{Plan, Shape};

fn chunks(c: &mut Criterion) {
    let mut group = c.benchmark_group("chunks");
    group.sample_size(10);
    for text in [
        "f32[1024,2048]{1,0:T(8,128)}",
        "f32[8192,8192]{1,0:T(8,128)}",
        "bf16[8192,16384]{1,0:T(8,128)(2,1)}",
        "f32[8192,8192]{0,1:T(8,128)}",
    ] {
        let shape: Shape = text.parse().unwrap_or_else(|e| panic!("{e}"));
        for (name, plan) in [("pack", Plan::pack(&shape)), ("unpack", Plan::unpack(&shape))] {
            let plan = plan.expect("a static shape");
            let bytes = |n: u64| usize::try_from(n).expect("it fits");
            let source = memory::patterned(plan.source_bytes());
            let mut expected = memory::huge(plan.destination_bytes());
            let mut destination = memory::huge(plan.destination_bytes());
            plan.run(&source, &mut expected).expect("right lengths");
            group.throughput(Throughput::Bytes(plan.destination_bytes()));
            group.bench_function(BenchmarkId::new(format!("{name}-memcpy"), text), |b| {
                b.iter(|| destination.copy_from_slice(black_box(&source)));
            });
            group.bench_function(BenchmarkId::new(format!("{name}-whole"), text), |b| {
                b.iter(|| plan.run(black_box(&source), &mut destination));
            });
            for mib in [1, 8] {
                let in_chunks = |source: &[u8], destination: &mut [u8]| {
                    for chunk in plan.chunks(mib << 20) {
                        let range = chunk.destination();
                        let part = &mut destination[bytes(range.start)..bytes(range.end)];
                        chunk.run(source, part).expect("right lengths");
                    }
                };
                destination.fill(1);
                in_chunks(&source, &mut destination);
                assert!(destination[..] == expected[..]);
                group.bench_function(BenchmarkId::new(format!("{name}-{mib}MiB"), text), |b| {
                    b.iter(|| in_chunks(black_box(&source), &mut destination));
                });
                group.bench_function(
                    BenchmarkId::new(format!("{name}-{mib}MiB-make"), text),
                    |b| {
                        b.iter(|| plan.chunks(mib << 20).for_each(|chunk| drop(black_box(chunk))));
                    },
                );
            }
        }
    }
    group.finish();
}

criterion_group!(benches, chunks);
criterion_main!(benches);
