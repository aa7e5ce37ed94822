//! Host arrays of another element type and packed ones, packed and unpacked, beside
//! reading the one side and filling the other, which is the least that has to be done.
//!
//! Results are checked before they are timed.

mod memory;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use relayout::{BitOrder, ElementType, Host, Padding, PlanBuilder, Shape};

fn convert(c: &mut Criterion) {
    let mut group = c.benchmark_group("convert");
    group.sample_size(10);
    let of = |element_type| Host::dense().of(element_type);
    let packed = |order| Host::dense().packed(order);
    for (text, name, host) in [
        ("bf16[8192,8192]{1,0:T(8,128)(2,1)}", "f32", of(ElementType::F32)),
        ("bf16[512,512]{1,0:T(8,128)(2,1)}", "f32", of(ElementType::F32)),
        ("bf16[8192,8192]{1,0}", "f32", of(ElementType::F32)),
        ("bf16[8064,8000]{0,1:T(8,128)(2,1)}", "f32", of(ElementType::F32)),
        ("bf16[512,512]{0,1:T(8,128)(2,1)}", "f32", of(ElementType::F32)),
        ("bf16[64,224,256,3]{2,1,3,0:T(8,128)(2,1)}", "f32", of(ElementType::F32)),
        ("bf16[64,224,224,3]{3,0,2,1}", "f32", of(ElementType::F32)),
        ("bf16[1024,512,20]{1,0,2:T(8,128)(2,1)}", "f32", of(ElementType::F32)),
        ("f32[8192,8192]{1,0:T(8,128)}", "bf16", of(ElementType::Bf16)),
        ("f16[8192,8192]{1,0:T(8,128)(2,1)}", "f32", of(ElementType::F32)),
        ("f32[8192,4096]{1,0:T(8,128)}", "f64", of(ElementType::F64)),
        ("s8[8192,8192]{1,0:T(8,128)(4,1)}", "s32", of(ElementType::S32)),
        ("f8e4m3fn[8192,8192]{1,0:T(8,128)(4,1)}", "f32", of(ElementType::F32)),
        ("f8e5m2[8192,8192]{1,0:T(8,128)(4,1)}", "f32", of(ElementType::F32)),
        ("s4[8192,32768]{1,0:T(8,128)(8,1)E(4)}", "packed", packed(BitOrder::LeastFirst)),
        ("s4[8192,32768]{1,0:T(8,128)(8,1)E(4)}", "packed-most", packed(BitOrder::MostFirst)),
        ("pred[8192,32768]{1,0:T(32,128)(32,1)E(1)}", "packed", packed(BitOrder::LeastFirst)),
    ] {
        let shape: Shape = text.parse().unwrap_or_else(|e| panic!("{e}"));
        let builder = PlanBuilder::new().host(host);
        let pack = builder.pack(&shape).expect("a static shape");
        let mut array = memory::huge(pack.source_bytes());
        let mut image = memory::huge(pack.destination_bytes());
        if let Ok(unpack) = builder.unpack(&shape) {
            // There and back from the narrower side, all of whose numbers the other has:
            // words whose first byte is 0 are not subnormal, and no NaN.
            let is_wide = array.len() >= image.len();
            let (narrow, wide) =
                if is_wide { (&mut image, &mut array) } else { (&mut array, &mut image) };
            for (i, byte) in narrow.iter_mut().enumerate() {
                *byte = if i % 2 == 0 { 0 } else { (i / 2 % 3).to_le_bytes()[0] };
            }
            let (there, back) = if is_wide { (&unpack, &pack) } else { (&pack, &unpack) };
            let expected = narrow.to_vec();
            there.run(narrow, wide).expect("right lengths");
            narrow.fill(1);
            back.run(wide, narrow).expect("right lengths");
            assert!(narrow[..] == expected, "{text}");
            group.throughput(Throughput::Bytes(pack.source_bytes()));
            group.bench_function(BenchmarkId::new(format!("unpack-{name}"), text), |b| {
                b.iter(|| unpack.run(black_box(&image), &mut array));
            });
        }
        group.throughput(Throughput::Bytes(pack.source_bytes()));
        group.bench_function(BenchmarkId::new(format!("pack-{name}"), text), |b| {
            b.iter(|| pack.run(black_box(&array), &mut image));
        });
        group.bench_function(BenchmarkId::new(format!("read-{name}"), text), |b| {
            b.iter(|| black_box(sweep(black_box(&array))));
        });
        // Nothing but padding: written like everything that large.
        let fill: Shape =
            format!("u8[1]{{0:T({})}}", image.len()).parse().unwrap_or_else(|e| panic!("{e}"));
        let fill = PlanBuilder::new().padding(Padding::Byte(1)).pack(&fill).expect("static");
        group.bench_function(BenchmarkId::new(format!("fill-{name}"), text), |b| {
            b.iter(|| fill.run(black_box(&[1]), &mut image));
        });
    }
    group.finish();
}

/// Reads all bytes.
fn sweep(bytes: &[u8]) -> [u64; 32] {
    let mut sums = [0; 32];
    for lanes in bytes.as_chunks::<256>().0 {
        for (sum, word) in sums.iter_mut().zip(lanes.as_chunks::<8>().0) {
            *sum ^= u64::from_le_bytes(*word);
        }
    }
    sums
}

criterion_group!(benches, convert);
criterion_main!(benches);
