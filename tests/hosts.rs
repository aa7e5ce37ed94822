//! Host arrays that are not dense, and windows of images: in every tier, against
//! moving each element by itself.
//!
//! What is expected comes from the index math and from strides alone. Buffers are
//! poisoned, so that a bit written beside the elements shows.

mod common;

use common::{arb_shape, cases, shape};
use proptest::prelude::*;
use relayout::index::ImageMap;
use relayout::{BitOrder, ElementType, Error, Host, HostError, Padding, PlanBuilder, Shape, Tier};

/// Numbers that look random: steps of Knuth's MMIX generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }
}

/// A host array as the test sees it.
struct Model {
    host: Host,
    /// Where the first element is, and what the dimensions add to that, in bits.
    start: i64,
    strides: Vec<i64>,
    bits: u32,
    most_first: bool,
    /// Bytes of its buffer.
    length: usize,
}

impl Model {
    fn dense_strides(bounds: &[u64], bits: u32) -> Vec<i64> {
        let mut stride = i64::from(bits);
        let mut strides = Vec::new();
        for &bound in bounds.iter().rev() {
            strides.insert(0, stride);
            stride *= bound as i64;
        }
        strides
    }

    fn new(
        element_type: ElementType,
        bounds: &[u64],
        is_source: bool,
        random: &mut Random,
    ) -> Model {
        let packable = matches!(element_type.bits(), 1 | 2 | 4);
        let packed = (packable && random.below(2) == 0)
            .then(|| [BitOrder::LeastFirst, BitOrder::MostFirst][random.below(2) as usize]);
        let bits =
            if packed.is_some() { element_type.bits() } else { 8 * element_type.host_bytes() };
        let rank = bounds.len();
        let ahead = random.below(3) as i64 * random.below(9) as i64;
        let (host, start, strides) = match random.below(4) {
            0 => (Host::dense(), 0, Model::dense_strides(bounds, bits)),
            1 => {
                let start: Vec<u64> = bounds.iter().map(|_| random.below(3)).collect();
                let whole: Vec<u64> =
                    bounds.iter().zip(&start).map(|(b, s)| b + s + random.below(3)).collect();
                let strides = Model::dense_strides(&whole, bits);
                let at = start.iter().zip(&strides).map(|(&i, stride)| i as i64 * stride).sum();
                (Host::window(whole, start), at, strides)
            }
            _ => {
                // Each dimension beyond those before it, in any order and direction.
                let mut order: Vec<usize> = (0..rank).collect();
                for i in (1..rank).rev() {
                    order.swap(i, random.below(i as u64 + 1) as usize);
                }
                let mut strides = vec![0; rank];
                let mut span = i64::from(bits.max(8));
                if packed.is_some() && rank > 0 {
                    order.retain(|&d| d != rank - 1);
                    strides[rank - 1] = i64::from(bits);
                    span = (bounds[rank - 1] as i64 * i64::from(bits))
                        .max(1)
                        .unsigned_abs()
                        .next_multiple_of(8) as i64;
                }
                for d in order {
                    strides[d] = span + 8 * (random.below(3) * random.below(5)) as i64;
                    span += strides[d] * (bounds[d] as i64 - 1).max(0);
                    span = span.max(8).unsigned_abs().next_multiple_of(8) as i64;
                    match random.below(4) {
                        0 => strides[d] = -strides[d],
                        1 if is_source => strides[d] = 8 * (random.below(40) as i64 - 20),
                        2 if is_source => strides[d] = 0,
                        _ => {}
                    }
                }
                let given = rank - usize::from(packed.is_some() && rank > 0);
                let bytes: Vec<i64> = strides[..given].iter().map(|stride| stride / 8).collect();
                let lowest: i64 = strides
                    .iter()
                    .zip(bounds)
                    .map(|(&stride, &bound)| stride.min(0) * (bound as i64 - 1).max(0))
                    .sum();
                (Host::strided(bytes).starting_at((-lowest / 8) as u64), -lowest, strides)
            }
        };
        // Bytes further on, without the ones before.
        let (host, start) = match host {
            host if start == 0 && host != Host::dense() => {
                (host.starting_at(ahead as u64), 8 * ahead)
            }
            host => (host, start),
        };
        let is_dense = host == Host::dense();
        let host = match packed {
            Some(order) => host.packed(order),
            None => host,
        };
        let last: i64 = strides
            .iter()
            .zip(bounds)
            .map(|(&stride, &bound)| stride.max(0) * (bound as i64 - 1).max(0))
            .sum();
        let is_empty = bounds.contains(&0);
        let end = if is_empty { 0 } else { start + last + i64::from(bits) };
        // What is not dense may have something behind it.
        let behind = if is_dense { 0 } else { random.below(2) * random.below(20) };
        let length = (end as u64).div_ceil(8) + behind;
        Model {
            host,
            start,
            strides,
            bits,
            most_first: packed == Some(BitOrder::MostFirst),
            length: length as usize,
        }
    }

    fn bit(&self, index: &[u64]) -> u64 {
        let at: i64 = index.iter().zip(&self.strides).map(|(&i, stride)| i as i64 * stride).sum();
        (self.start + at) as u64
    }
}

/// The element at a bit, of so many bits.
fn get(buffer: &[u8], at: u64, bits: u32, most_first: bool) -> u128 {
    (0..u64::from(bits)).fold(0, |value, i| {
        let bit = place(at, bits, most_first) + i;
        value | u128::from(buffer[(bit / 8) as usize] >> (bit % 8) & 1) << i
    })
}

fn put(buffer: &mut [u8], at: u64, bits: u32, most_first: bool, value: u128) {
    for i in 0..u64::from(bits) {
        let bit = place(at, bits, most_first) + i;
        let byte = &mut buffer[(bit / 8) as usize];
        *byte = *byte & !(1 << (bit % 8)) | ((value >> i & 1) as u8) << (bit % 8);
    }
}

fn place(at: u64, bits: u32, most_first: bool) -> u64 {
    match most_first && bits < 8 {
        true => at / 8 * 8 + (8 - at % 8 - u64::from(bits)),
        false => at,
    }
}

/// All indices below the bounds.
fn indices(bounds: &[u64]) -> Vec<Vec<u64>> {
    bounds.iter().fold(vec![Vec::new()], |before, &bound| {
        before
            .iter()
            .flat_map(|index| (0..bound).map(move |i| [index.as_slice(), &[i]].concat()))
            .collect()
    })
}

/// Packs and unpacks through a made-up host array, in every tier.
fn check(shape: &Shape, seed: u64, whole: bool) {
    let random = &mut Random(seed);
    let bounds = shape.bounds().unwrap();
    let (start, sizes) = if whole || random.below(2) == 0 {
        (None, bounds.clone())
    } else {
        let sizes: Vec<u64> = bounds.iter().map(|&b| random.below(b + 1)).collect();
        let start = bounds.iter().zip(&sizes).map(|(b, s)| random.below(b - s + 1));
        (Some(start.collect::<Vec<u64>>()), sizes)
    };
    let builder = match &start {
        Some(start) => PlanBuilder::new().window(start.clone(), sizes.clone()),
        None => PlanBuilder::new(),
    };
    let start = start.unwrap_or_else(|| vec![0; bounds.len()]);
    let map = ImageMap::new(shape).unwrap();
    let image_bit = |index: &[u64]| {
        let index: Vec<u64> = index.iter().zip(&start).map(|(i, s)| i + s).collect();
        map.bit_offset(&index).unwrap()
    };
    let image_bytes = shape.sizes().unwrap().image_bytes as usize;
    let image_bits = shape.element_bits();
    let is_pred = shape.element_type() == ElementType::Pred;

    // Packing, padding kept, so that all else of the image stays.
    let model = Model::new(shape.element_type(), &sizes, true, random);
    let host = random.bytes(model.length);
    let poison = random.bytes(image_bytes);
    let mut expected = poison.clone();
    for index in indices(&sizes) {
        let mut value = get(&host, model.bit(&index), model.bits, model.most_first);
        if is_pred && image_bits == 1 {
            value = u128::from(value != 0);
        }
        put(&mut expected, image_bit(&index), image_bits, false, value);
    }
    for tier in Tier::available() {
        for stream in [false, true] {
            let builder = builder.clone().host(model.host.clone()).tier(tier).streaming(stream);
            let plan = builder.padding(Padding::Keep).pack(shape).unwrap();
            let mut image = poison.clone();
            plan.run(&host, &mut image).unwrap();
            assert!(image == expected, "pack {shape} from {:?}\n{}", model.host, plan.explain());
        }
    }

    // Unpacking.
    let model = Model::new(shape.element_type(), &sizes, false, random);
    let image = random.bytes(image_bytes);
    let poison = random.bytes(model.length);
    let mut expected = poison.clone();
    for index in indices(&sizes) {
        let mut value = get(&image, image_bit(&index), image_bits, false);
        if is_pred && model.bits == 1 {
            value = u128::from(value != 0);
        }
        put(&mut expected, model.bit(&index), model.bits, model.most_first, value);
    }
    // Of the last byte of what is dense, nothing is kept.
    let end = sizes.iter().product::<u64>() * u64::from(model.bits);
    if model.host.clone().packed(BitOrder::LeastFirst) == Host::dense().packed(BitOrder::LeastFirst)
    {
        for at in end..end.next_multiple_of(8) {
            put(&mut expected, at, 1, model.most_first, 0);
        }
    }
    for tier in Tier::available() {
        for stream in [false, true] {
            let builder = builder.clone().host(model.host.clone()).tier(tier).streaming(stream);
            let plan = builder.unpack(shape).unwrap();
            assert!(plan.destination_bytes() <= model.length as u64);
            let mut destination = poison.clone();
            plan.run(&image, &mut destination).unwrap();
            assert!(
                destination == expected,
                "unpack {shape} to {:?}\n{}",
                model.host,
                plan.explain()
            );
        }
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn any_host_array_of_any_shape(shape in arb_shape(), seed in any::<u64>()) {
        check(&shape, seed, false);
    }
}

#[test]
fn host_arrays_of_tpu_layouts() {
    for (i, layout) in [
        "f32[{}]{1,0:T(8,128)}",
        "bf16[{}]{1,0:T(8,128)(2,1)}",
        "s8[{}]{1,0:T(8,128)(4,1)}",
        "s8[{}]{1,0:T(32,128)(4,1)}",
        "pred[{}]{1,0:T(32,128)(32,1)E(1)}",
        "pred[{}]{1,0:T(8,128)(4,1)}",
        "s4[{}]{1,0:T(8,128)(8,1)E(4)}",
        "u2[{}]{1,0:T(16,128)(16,1)E(2)}",
        "f32[{}]{0,1:T(8,128)}",
        "bf16[{}]{0,1:T(8,128)(2,1)}",
        "s4[{}]{0,1:T(8,128)(8,1)E(4)}",
        "s4[{}]{0,1:T(64,128)(8,1)E(4)}",
        "pred[{}]{0,1:T(32,128)(32,1)E(1)}",
        "u4[{}]{1,0:E(4)}",
        "f32[{}]{0,1}",
    ]
    .into_iter()
    .enumerate()
    {
        for (k, bounds) in
            ["8,128", "33,200", "16,256", "40,131", "64,96", "9,1040"].into_iter().enumerate()
        {
            let shape = shape(&layout.replace("{}", bounds));
            for seed in 0..6 {
                check(&shape, (i * 100 + k * 10 + seed) as u64, seed % 2 == 0);
            }
        }
    }
}

/// Packed arrays go through kernels, not bit by bit.
#[test]
fn packed_host_arrays_have_kernels() {
    for text in [
        "s4[1024,4096]{1,0:T(8,128)(8,1)E(4)}",
        "s4[1024,4096]{1,0:T(64,128)(8,1)E(4)}",
        "s4[1024,4095]{1,0:T(8,128)(8,1)E(4)}",
        "s4[1024,4096]{0,1:T(8,128)(8,1)E(4)}",
        "s2[1024,4096]{1,0:T(128,128)(16,1)E(2)}",
        "pred[1024,4096]{1,0:T(32,128)(32,1)E(1)}",
        "pred[1024,4096]{1,0:T(8,128)(4,1)}",
        "u4[4096]{0:T(1024)(128)(8,1)E(4)}",
    ] {
        for order in [BitOrder::LeastFirst, BitOrder::MostFirst] {
            let builder = PlanBuilder::new().host(Host::dense().packed(order));
            let shape = shape(text);
            for plan in [builder.pack(&shape).unwrap(), builder.unpack(&shape).unwrap()] {
                let explanation = plan.explain();
                let slow: Vec<_> = explanation.parts.iter().filter_map(|part| part.slow).collect();
                assert_eq!(slow, [] as [&str; 0], "{explanation}");
            }
        }
    }
}

#[test]
fn host_arrays_that_cannot_be() {
    let error = |text: &str, host: Host, pack: bool| {
        let builder = PlanBuilder::new().host(host);
        let plan = if pack { builder.pack(&shape(text)) } else { builder.unpack(&shape(text)) };
        match plan {
            Err(Error::Host(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    let f32 = "f32[3,5]{1,0:T(8,128)}";
    for pack in [true, false] {
        assert_eq!(
            error(f32, Host::strided([4]), pack),
            HostError::Entries { entries: 1, rank: 2 }
        );
        assert_eq!(
            error(f32, Host::strided([-20, 4]), pack),
            HostError::BeforeBuffer { bytes: -40 }
        );
        assert_eq!(
            error(f32, Host::dense().packed(BitOrder::LeastFirst), pack),
            HostError::NotPackable { element_type: ElementType::F32 }
        );
        assert_eq!(
            error(f32, Host::window([3, 7], [0, 3]), pack),
            HostError::WindowOutOfBounds { dimension: 1, start: 3, size: 5, bound: 7 }
        );
        assert_eq!(
            error(f32, Host::window([3, 7], [0, u64::MAX]), pack),
            HostError::WindowOutOfBounds { dimension: 1, start: u64::MAX, size: 5, bound: 7 }
        );
        for host in [
            Host::strided([i64::MAX, 4]),
            Host::strided([1 << 60, 4]),
            Host::window([1 << 40, 1 << 40], [0, 0]),
            Host::dense().starting_at(u64::MAX),
        ] {
            assert_eq!(error(f32, host, pack), HostError::TooLarge);
        }
        let error = error(f32, Host::strided([i64::MIN, 4]), pack);
        assert!(matches!(error, HostError::BeforeBuffer { .. } | HostError::TooLarge), "{error}");
    }
    // Who reads may read twice; who writes may not.
    for (strides, dimension) in [([0, 4], 0), ([20, 3], 1), ([16, 4], 0), ([4, 8], 1), ([20, 0], 1)]
    {
        assert_eq!(error(f32, Host::strided(strides), false), HostError::Overlap { dimension });
        let plan = PlanBuilder::new().host(Host::strided(strides)).pack(&shape(f32));
        assert!(plan.is_ok(), "{strides:?}");
    }
    let builder = PlanBuilder::new().window([0, 1], [3, 5]);
    assert_eq!(
        builder.pack(&shape(f32)).unwrap_err(),
        HostError::WindowOutOfBounds { dimension: 1, start: 1, size: 5, bound: 5 }.into()
    );
}

#[test]
fn a_host_array_may_have_more_behind_it_but_not_less() {
    let shape = shape("u8[2,3]{1,0:T(2,4)}");
    let plan = PlanBuilder::new().host(Host::strided([5, 1])).pack(&shape).unwrap();
    assert_eq!(plan.source_bytes(), 8);
    let mut image = [0xee; 8];
    assert!(plan.run(&[1; 7], &mut image).is_err());
    assert_eq!(image, [0xee; 8]);
    plan.run(&[1; 8], &mut image).unwrap();
    plan.run(&[1; 9], &mut image).unwrap();
    // What is dense is the whole of its buffer.
    assert!(PlanBuilder::new().pack(&shape).unwrap().run(&[1; 7], &mut image).is_err());
}

/// Memory behind a host array that nobody wrote is zeroed, not shown.
#[test]
fn what_is_behind_a_host_array_is_initialised() {
    use std::mem::MaybeUninit;
    for (text, host) in [
        ("f32[8,128]{1,0:T(8,128)}", Host::strided([512, 4])),
        ("f32[8,128]{1,0:T(8,128)}", Host::window([8, 128], [0, 0])),
        ("f32[]{:T(128)}", Host::strided([])),
        ("f32[0,3]{1,0:T(8,128)}", Host::strided([12, 4])),
    ] {
        let plan = PlanBuilder::new().host(host).unpack(&shape(text)).unwrap();
        let end = plan.destination_bytes() as usize;
        let mut memory = vec![MaybeUninit::new(0xa5_u8); end + 64];
        let image = vec![7; plan.source_bytes() as usize];
        let written = plan.run_uninit(&image, &mut memory).unwrap();
        assert_eq!(written[..end], vec![7; end], "{text}");
        assert_eq!(written[end..], [0; 64], "{text}");
    }
}

#[test]
fn typed_doors_are_for_host_arrays() {
    let f32 = shape("f32[2]{0:T(4)}");
    let pack = PlanBuilder::new().pack(&f32).unwrap();
    pack.run_from(&[1.0_f32, 2.0], &mut [0; 16]).unwrap();
    // Not the type, not the direction, no host array at all.
    assert!(pack.run_from(&[1_u32, 2], &mut [0; 16]).is_err());
    assert!(pack.run_into(&[0; 8], &mut [0.0_f32; 4]).is_err());
    let between = PlanBuilder::new().between(&f32, &f32).unwrap();
    assert!(between.run_from(&[0.0_f32; 4], &mut [0; 16]).is_err());
    // The type is that of the host array.
    let bf16 = shape("bf16[2]{0:T(2)}");
    let host = Host::dense().of(ElementType::F32);
    let plan = PlanBuilder::new().host(host).pack(&bf16).unwrap();
    let mut image = [0; 4];
    plan.run_from(&[1.0_f32, 2.0], &mut image).unwrap();
    assert_eq!(image, [0x80, 0x3f, 0x00, 0x40]);
    assert!(plan.run_from(&[1_u16, 2], &mut image).is_err());
    let packed = Host::dense().packed(BitOrder::LeastFirst);
    let plan = PlanBuilder::new().host(packed).pack(&shape("s4[2]{0:T(2)E(4)}")).unwrap();
    assert!(plan.run_from(&[1_i8], &mut [0; 1]).is_err());
}

/// What made-up arrays found, each with its seed.
#[test]
fn finds() {
    // Rows that go backwards, fetched ahead of a transpose past the caches.
    check(&shape("s64[9,11,1,4]{1,0,2,3:T(1,4,1)E(64)}"), 156_679_482_025_951_226, false);
}

#[test]
fn a_destination_beyond_all_memory_is_an_error() {
    let plan = PlanBuilder::new().pack(&shape("u8[1]{0:T(1152921504606846976)}")).unwrap();
    let error = plan.run_to_vec(&[1]).unwrap_err();
    assert_eq!((error.needed_bytes, error.given_bytes), (1 << 60, 0));
}
