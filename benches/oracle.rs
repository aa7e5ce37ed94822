//! The oracle's speed, so that nobody mistakes it for a way to move data.
//!
//! The result is checked before it is timed. memcpy of the same bytes stands
//! beside it.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use relayout::{Shape, oracle};

/// Packs each of a few formats, 256 KiB of host data each.
fn pack(c: &mut Criterion) {
    let mut group = c.benchmark_group("oracle-pack");
    group.sample_size(10);
    for text in [
        "f32[64,1024]{1,0:T(8,128)}",
        "bf16[64,2048]{1,0:T(8,128)(2,1)}",
        "s8[64,4096]{1,0:T(8,128)(4,1)}",
        "pred[64,4096]{1,0:T(32,128)(32,1)E(1)}",
    ] {
        let shape: Shape = text.parse().unwrap_or_else(|e| panic!("{e}"));
        let sizes = shape.sizes().expect("a static shape");
        let bytes = |n: u64| vec![0xee_u8; usize::try_from(n).expect("it fits")];
        let (mut host, mut image) = (bytes(sizes.host_bytes), bytes(sizes.image_bytes));
        let mut back = bytes(sizes.host_bytes);
        // Bytes without a pattern; of pred, truth values.
        let mask = if shape.element_bits() == 1 { 1 } else { 0xff };
        let mut state = 1_u32;
        for byte in &mut host {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = state.to_le_bytes()[3] & mask;
        }
        oracle::pack(&shape, &host, &mut image).expect("right lengths");
        oracle::unpack(&shape, &image, &mut back).expect("right lengths");
        assert_eq!(host, back);

        group.throughput(Throughput::Bytes(sizes.host_bytes));
        group.bench_function(BenchmarkId::new("pack", text), |b| {
            b.iter(|| oracle::pack(&shape, black_box(&host), &mut image));
        });
        group.bench_function(BenchmarkId::new("memcpy", text), |b| {
            b.iter(|| back.copy_from_slice(black_box(&host)));
        });
    }
    group.finish();
}

/// Reads and prints a shape, and builds its map.
fn describe(c: &mut Criterion) {
    let text = "bf16[1024,4096]{1,0:T(8,128)(2,1)}";
    let shape: Shape = text.parse().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(shape.to_string(), text);
    c.bench_function("parse", |b| b.iter(|| black_box(text).parse::<Shape>()));
    c.bench_function("print", |b| b.iter(|| black_box(&shape).to_string()));
    c.bench_function("map", |b| b.iter(|| relayout::index::ImageMap::new(black_box(&shape))));
}

criterion_group!(benches, pack, describe);
criterion_main!(benches);
