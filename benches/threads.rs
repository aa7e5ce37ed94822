//! Plans on the threads of a rayon pool beside one thread, and memcpy on both.
//!
//!     cargo bench --bench threads --features rayon
//!
//! Results are checked before they are timed.

mod memory;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use relayout::{Executor, Plan, Shape};

fn threads(c: &mut Criterion) {
    let pool = rayon::ThreadPoolBuilder::new().build().expect("threads");
    let count = pool.current_num_threads();
    let mut group = c.benchmark_group("threads");
    group.sample_size(10);
    for text in [
        "f32[512,2048]{1,0:T(8,128)}",
        "f32[1024,2048]{1,0:T(8,128)}",
        "bf16[1024,4096]{1,0:T(8,128)(2,1)}",
        "f32[8192,8192]{1,0:T(8,128)}",
        "bf16[8192,16384]{1,0:T(8,128)(2,1)}",
        "f32[8192,8192]{0,1:T(8,128)}",
    ] {
        let shape: Shape = text.parse().unwrap_or_else(|e| panic!("{e}"));
        for (name, plan) in [("pack", Plan::pack(&shape)), ("unpack", Plan::unpack(&shape))] {
            let plan = plan.expect("a static shape");
            let source = memory::patterned(plan.source_bytes());
            let mut expected = memory::huge(plan.destination_bytes());
            let mut destination = memory::huge(plan.destination_bytes());
            plan.run(&source, &mut expected).expect("right lengths");
            plan.run_with(&pool, &source, &mut destination).expect("right lengths");
            assert!(destination[..] == expected[..]);
            group.throughput(Throughput::Bytes(plan.destination_bytes()));
            group.bench_function(BenchmarkId::new(format!("{name}-memcpy-1"), text), |b| {
                b.iter(|| destination.copy_from_slice(black_box(&source)));
            });
            let share = source.len().div_ceil(count);
            group.bench_function(BenchmarkId::new(format!("{name}-memcpy-{count}"), text), |b| {
                b.iter(|| {
                    let parts: Vec<_> = destination
                        .chunks_mut(share)
                        .zip(black_box(&source).chunks(share))
                        .map(std::sync::Mutex::new)
                        .collect();
                    pool.run(parts.len(), &|i| {
                        let mut part = parts[i].lock().expect("nothing panics");
                        let (to, from) = &mut *part;
                        to.copy_from_slice(from);
                    });
                });
            });
            group.bench_function(BenchmarkId::new(format!("{name}-1"), text), |b| {
                b.iter(|| plan.run(black_box(&source), &mut destination));
            });
            group.bench_function(BenchmarkId::new(format!("{name}-{count}"), text), |b| {
                b.iter(|| plan.run_with(&pool, black_box(&source), &mut destination));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, threads);
criterion_main!(benches);
