//! Plans on the threads of a rayon pool beside one thread, and memcpy on both: called from
//! outside the pool, whose threads then sleep and are woken, and from one of its threads
//! (`in-pool`).
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
            let share = source.len().div_ceil(count);
            let copy_with = |destination: &mut [u8]| {
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
            };
            let mut time = |way: &str, run: &mut (dyn FnMut(&mut [u8]) + Send)| {
                let destination = &mut destination[..];
                group.bench_function(BenchmarkId::new(format!("{name}-{way}"), text), |b| {
                    if way.ends_with("in-pool") {
                        pool.install(|| b.iter(|| run(destination)));
                    } else {
                        b.iter(|| run(destination));
                    }
                });
            };
            time("memcpy-1", &mut |to| to.copy_from_slice(black_box(&source)));
            for place in ["", "-in-pool"] {
                time(&format!("memcpy-{count}{place}"), &mut |to| copy_with(to));
            }
            time("1", &mut |to| plan.run(black_box(&source), to).expect("right lengths"));
            for place in ["", "-in-pool"] {
                time(&format!("{count}{place}"), &mut |to| {
                    plan.run_with(&pool, black_box(&source), to).expect("right lengths");
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, threads);
criterion_main!(benches);
