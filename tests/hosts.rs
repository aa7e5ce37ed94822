//! Host arrays that are not dense, and windows of images: in every tier, against
//! moving each element by itself.
//!
//! What is expected comes from the index math and from strides alone.

mod common;

use common::{arb_bytes, arb_shape, cases, shape};
use proptest::prelude::*;
use relayout::{
    BitOrder, BlockOp, ElementType, Error, Host, HostError, Padding, Part, Pass, Plan, PlanBuilder,
    Shape, Tier, oracle,
};
use relayout_testing::{
    Choices, HostModel, fill_chunks, made_up_window, move_through, noise, strides,
};

/// Packs and unpacks through made-up host arrays, in every tier.
fn check(choices: &mut Choices<'_>, shape: &Shape) {
    let bounds = shape.bounds().unwrap();
    let window = choices.one_in(2).then(|| made_up_window(choices, &bounds));
    let sizes = window.as_ref().map_or(&bounds, |(_, sizes)| sizes).clone();
    for pack in [true, false] {
        let model = HostModel::made_up(choices, shape, &sizes, pack);
        move_through(choices, shape, window.as_ref(), &model, pack, &Tier::available());
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn any_host_array_of_any_shape(shape in arb_shape(), bytes in arb_bytes()) {
        check(&mut Choices::new(&bytes), &shape);
    }

    #[test]
    fn any_strides(bytes in arb_bytes()) {
        strides(&mut Choices::new(&bytes));
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
                let bytes = noise(400, (i * 100 + k * 10 + seed) as u64);
                check(&mut Choices::new(&bytes), &shape);
            }
        }
    }
}

/// Arrays whose dimensions go down in memory, one or all of them, are not moved element by element.
#[test]
fn arrays_that_go_down_have_kernels() {
    for text in [
        "f32[30,200]{1,0}",
        "f32[33,300]{1,0:T(8,128)}",
        "bf16[33,300]{1,0:T(8,128)(2,1)}",
        "u8[34,260]{1,0:T(32,128)(4,1)}",
        "u8[140,65]{0,1:T(8,128)(4,1)}",
        "bf16[130,70]{0,1:T(8,128)(2,1)}",
        "s4[40,260]{1,0:T(8,128)(8,1)E(4)}",
        "pred[70,140]{1,0:T(32,128)(32,1)E(1)}",
        "c128[40,9]{1,0}",
        "u8[64,80,24]{1,0,2:T(4,128)(4,1)}",
        "s8[300,500]{1,0:T(8,128)(4,1)}",
    ] {
        let shape = shape(text);
        let bounds = shape.bounds().unwrap();
        let width = i64::from(shape.element_type().host_bytes());
        // The most minor dimension, the most major one, and all.
        let last = bounds.len() - 1;
        for which in [vec![last], vec![0], (0..=last).collect()] {
            let (mut strides, mut start, mut step) = (vec![0; bounds.len()], 0, width);
            for (d, &bound) in bounds.iter().enumerate().rev() {
                strides[d] = step;
                if which.contains(&d) {
                    strides[d] = -step;
                    start += step * (bound as i64 - 1);
                }
                step *= bound as i64;
            }
            let model = HostModel::strided(&shape, &strides, start as u64, 0);
            for pack in [true, false] {
                let bytes = noise(40, which.len() as u64);
                let choices = &mut Choices::new(&bytes);
                move_through(choices, &shape, None, &model, pack, &Tier::available());
                let builder = PlanBuilder::new().host(model.host.clone());
                let plan =
                    if pack { builder.pack(&shape) } else { builder.unpack(&shape) }.unwrap();
                fill_chunks(&plan, plan.destination_bytes() / 5 + 1);
            }
        }
    }
    // Of large ones no element is moved by itself.
    for text in ["bf16[512,1024]{1,0:T(8,128)(2,1)}", "s4[512,1024]{1,0:T(8,128)(8,1)E(4)}"] {
        let width = if text.starts_with("bf16") { 2 } else { 1 };
        let host = Host::strided([1024 * width, -width]).starting_at(1023 * width as u64);
        let builder = PlanBuilder::new().host(host);
        for plan in [builder.pack(&shape(text)), builder.unpack(&shape(text))] {
            let explanation = plan.unwrap().explain();
            let is_slow = explanation.parts.iter().any(|part| part.slow.is_some());
            assert!(!is_slow, "{explanation}");
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
        "s4[128,128,5]{2,0,1:E(4)}",
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

/// Packed arrays whose rows are short and follow each other, end within a byte, or stay together while what is around them
/// is swapped; rows of pixels that are words with those of other rows, or fill some; and rows that fill tiles. None goes by
/// the index math, streamed or not.
#[test]
fn packed_arrays_of_short_rows_are_right() {
    for text in [
        "s4[7,13]{0,1:E(4)}",
        "s4[70,7,3]{1,0,2:E(4)}",
        "u4[70,50,6]{2,0,1:E(4)}",
        "s4[5,34,150,3]{2,1,3,0:T(8,128)(4,1)}",
        "s4[34,150,4]{1,0,2:T(8,128)(8,1)E(4)}",
        "s2[70,50,6]{2,0,1:E(2)}",
        "s2[300,41]{0,1:T(16,128)(16,1)E(2)}",
        "pred[70,50,5]{2,0,1:E(1)}",
        "pred[300,41]{0,1:T(32,128)(32,1)E(1)}",
        "pred[64,20,9,3]{0,2,3,1:T(8,128)(4,1)}",
        "pred[25,140,7]{1,2,0:T(8,128)(4,1)}",
        "pred[3,4,12,140,6]{3,4,2,1,0:T(8,128)(4,1)}",
        "pred[140,40,3]{0,1,2:T(8,128)(4,1)}",
        "u4[136,8,30]{0,1,2:T(8,128)(8,1)E(4)}",
        "u4[40,1,603]{1,2,0:T(64,128)(8,1)E(4)}",
    ] {
        let shape = shape(text);
        let bits = match &text[..2] {
            "pr" => 1,
            "s2" => 2,
            _ => 4,
        };
        let count = usize::try_from(shape.bounds().unwrap().iter().product::<u64>()).unwrap();
        let elements: Vec<u8> =
            noise(count as u64, 5).into_iter().map(|byte| byte & ((1 << bits) - 1)).collect();
        let mut image = vec![0xee; usize::try_from(shape.sizes().unwrap().image_bytes).unwrap()];
        oracle::pack(&shape, &elements, &mut image).unwrap();
        for order in [BitOrder::LeastFirst, BitOrder::MostFirst] {
            let packed = packed(&elements, bits, order);
            for (tier, streams) in
                Tier::available().into_iter().flat_map(|tier| [(tier, false), (tier, true)])
            {
                let builder = PlanBuilder::new().tier(tier).streaming(streams);
                let builder = builder.host(Host::dense().packed(order));
                let pack = builder.pack(&shape).unwrap();
                let mut made = vec![0xee; image.len()];
                pack.run(&packed, &mut made).unwrap();
                assert!(made == image, "{order:?} {}", pack.explain());
                let unpack = builder.unpack(&shape).unwrap();
                assert!(pack.explain().slow.or(unpack.explain().slow).is_none(), "{text}");
                let mut back = vec![0; packed.len()];
                unpack.run(&image, &mut back).unwrap();
                assert!(back == packed, "{order:?} {}", unpack.explain());
            }
        }
    }
}

/// Elements of so many bits, each in a byte, as many to a byte as there is room for.
fn packed(elements: &[u8], bits: usize, order: BitOrder) -> Vec<u8> {
    let mut packed = vec![0; (elements.len() * bits).div_ceil(8)];
    for (i, element) in elements.iter().enumerate() {
        let at = i * bits;
        let shift = match order {
            BitOrder::LeastFirst => at % 8,
            BitOrder::MostFirst => 8 - bits - at % 8,
        };
        packed[at / 8] |= element << shift;
    }
    packed
}

/// Packed arrays that go a slab of host memory at a time: of a part of a row, of a row, or of several; whole words of rows
/// and what fills none in the same slab; passes within passes; and images of bytes of which any bit may be set.
#[test]
fn packed_arrays_go_in_slabs() {
    // One run of a slab, whatever it has of rows.
    let is_of_slab = |part: &Part| {
        let is_run = matches!(
            part.op,
            BlockOp::Widen { .. }
                | BlockOp::WidenBits { .. }
                | BlockOp::Narrow { .. }
                | BlockOp::NarrowBits { .. }
                | BlockOp::Reverse { .. }
        );
        let is_one = (part.lines.extent, part.blocks.extent) == (1, 1);
        is_run && is_one && part.pass != Pass::Only
    };
    let mut has_passes_within = false;
    for text in [
        "pred[417,255]{1,0:T(8,128)(4,1)}",
        "pred[700,33]{0,1:T(8,128)(4,1)}",
        "pred[300,64]{0,1:T(32,128)(4,1)}",
        "pred[3,205,35]{1,2,0:T(8,128)(4,1)}",
        "u2[586,62]{0,1:T(16,128)(16,1)E(2)}",
        "u2[97,10,9]{0,1,2:T(16,128)(16,1)E(2)}",
        "u2[57,48,1,25]{0,1,3,2:T(16,128)(16,1)E(2)}",
        "s4[149,16,2]{0,1,2:T(8,128)(8,1)E(4)}",
        "s4[161,4,9,32]{0,3,2,1:T(8,128)(8,1)E(4)}",
        "s4[11,7,38,3]{0,2,3,1:T(8,128)(8,1)E(4)}",
    ] {
        let shape = shape(text);
        let count = usize::try_from(shape.bounds().unwrap().iter().product::<u64>()).unwrap();
        let bits = usize::try_from(shape.element_type().bits()).unwrap();
        let sizes = shape.sizes().unwrap();
        let mut image = noise(sizes.image_bytes, 7);
        let mut elements = vec![0; count];
        oracle::unpack(&shape, &image, &mut elements).unwrap();
        let bits = if text.starts_with("pred") { 1 } else { bits };
        if bits == 1 {
            elements.iter_mut().for_each(|element| *element = u8::from(*element != 0));
        }
        let dirty = image.clone();
        oracle::pack(&shape, &elements, &mut image).unwrap();
        for order in [BitOrder::LeastFirst, BitOrder::MostFirst] {
            let packed = packed(&elements, bits, order);
            for tier in Tier::available() {
                let builder = PlanBuilder::new().tier(tier).host(Host::dense().packed(order));
                let (pack, unpack) =
                    (builder.pack(&shape).unwrap(), builder.unpack(&shape).unwrap());
                // Whole words, in the order that kernels know, are turned as such.
                let are_words = text.starts_with("s4[161,4,") && order == BitOrder::LeastFirst;
                for plan in [&pack, &unpack] {
                    let explanation = plan.explain();
                    let parts = &explanation.parts;
                    let is_data =
                        |part: &&Part| !matches!(part.op, BlockOp::Fill | BlockOp::FillBits);
                    let mut data = parts.iter().filter(is_data);
                    let has_slabs =
                        parts.iter().any(is_of_slab) && data.all(|part| part.pass != Pass::Only);
                    assert_eq!(has_slabs, !are_words, "{order:?} {explanation}");
                    has_passes_within |= parts.iter().any(|part| part.pass == Pass::Between);
                }
                let mut made = vec![0xee; image.len()];
                pack.run(&packed, &mut made).unwrap();
                assert!(made == image, "{order:?} {}", pack.explain());
                for from in [&image, &dirty] {
                    let mut back = vec![0; packed.len()];
                    unpack.run(from, &mut back).unwrap();
                    assert!(back == packed, "{order:?} {}", unpack.explain());
                }
                for plan in [&pack, &unpack] {
                    fill_chunks(plan, plan.destination_bytes() / 3 + 1);
                }
                // Other padding than zeros, beside whole tiles and within words, is that of elements in a byte each.
                for padding in [Padding::Keep, Padding::Byte(0xa5)] {
                    let made = |host: Host, source: &[u8]| {
                        let builder = PlanBuilder::new().tier(tier).padding(padding).host(host);
                        let mut made = vec![0x3c; image.len()];
                        builder.pack(&shape).unwrap().run(source, &mut made).unwrap();
                        made
                    };
                    let from_packed = made(Host::dense().packed(order), &packed);
                    assert!(from_packed == made(Host::dense(), &elements), "{padding:?} {text}");
                }
            }
        }
    }
    assert!(has_passes_within, "three hops");
}

/// Padding behind packed rows that begin within bytes is what it is behind the same elements in a byte each.
#[test]
fn padding_of_packed_rows_is_that_of_others() {
    for (text, bits) in [
        ("s4[20,1001]{1,0:T(8,128)(8,1)E(4)}", 4),
        ("s4[20,1001]{0,1:T(64,128)(8,1)E(4)}", 4),
        ("u2[20,333]{1,0:T(16,128)(16,1)E(2)}", 2),
        ("pred[5,9,131]{2,0,1:T(32,128)(32,1)E(1)}", 1),
    ] {
        let shape = shape(text);
        let count = shape.bounds().unwrap().iter().product::<u64>();
        let elements: Vec<u8> =
            noise(count, 3).into_iter().map(|byte| byte & ((1 << bits) - 1)).collect();
        let mut packed = vec![0; (elements.len() * bits).div_ceil(8)];
        for (i, element) in elements.iter().enumerate() {
            packed[i * bits / 8] |= element << (i * bits % 8);
        }
        for padding in [Padding::Zero, Padding::Byte(0x5a), Padding::Keep] {
            let builder = PlanBuilder::new().padding(padding);
            let of_bytes = builder.pack(&shape).unwrap();
            let host = Host::dense().packed(BitOrder::LeastFirst);
            let of_packed = builder.host(host).pack(&shape).unwrap();
            let image = vec![0xc3; usize::try_from(of_bytes.destination_bytes()).unwrap()];
            let [mut made, mut expected] = [image.clone(), image];
            of_packed.run(&packed, &mut made).unwrap();
            of_bytes.run(&elements, &mut expected).unwrap();
            assert!(made == expected, "{padding:?} {}", of_packed.explain());
        }
    }
}

/// Rows of a TPU's words are turned as they are read or written, in either bit order: not in memory
/// before or behind that.
#[test]
fn packed_rows_of_either_order_take_one_kernel() {
    for (text, ways) in [
        ("s4[1024,4096]{1,0:T(8,128)(8,1)E(4)}", "8x4"),
        ("s2[1024,4096]{1,0:T(16,128)(16,1)E(2)}", "16x2"),
        ("pred[1024,4096]{1,0:T(32,128)(32,1)E(1)}", "32x1"),
    ] {
        for (order, suffix) in [(BitOrder::LeastFirst, ""), (BitOrder::MostFirst, "-most-first")] {
            let builder = PlanBuilder::new().host(Host::dense().packed(order));
            let shape = shape(text);
            let kernels = |plan: Plan| plan.explain().parts[0].kernel.clone();
            let pack = kernels(builder.pack(&shape).unwrap());
            assert!(pack.ends_with(&format!("-interleave{ways}{suffix}")), "{pack}");
            let unpack = kernels(builder.unpack(&shape).unwrap());
            assert!(unpack.ends_with(&format!("-deinterleave{ways}{suffix}")), "{unpack}");
        }
    }
}

/// Nor do the columns of whole tiles where one more follows that does not fill a byte: of such rows as
/// numpy's packbits makes of each.
#[test]
fn whole_tiles_of_rows_that_end_within_a_byte_have_their_kernel() {
    let text = "pred[32,1001]{1,0:T(32,128)(32,1)E(1)}";
    let host = Host::strided([126]).packed(BitOrder::MostFirst);
    let plan = PlanBuilder::new().host(host).pack(&shape(text)).unwrap();
    let kernels: Vec<String> =
        plan.explain().parts.iter().map(|part| part.kernel.clone()).collect();
    assert!(kernels[0].ends_with("-interleave32x1-most-first"), "{kernels:?}");
    assert!(kernels.len() > 1, "{kernels:?}");
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
        let too_large =
            |dimension, bound, stride_bits| HostError::TooLarge { dimension, bound, stride_bits };
        for (host, expected) in [
            (Host::strided([i64::MAX, 4]), too_large(0, 3, 8 * i128::from(i64::MAX))),
            (Host::strided([i64::MIN, 4]), too_large(0, 3, 8 * i128::from(i64::MIN))),
            (Host::strided([1 << 59, 4]), too_large(0, 3, 1 << 62)),
            (Host::strided([20, 1 << 60]), too_large(1, 5, 1 << 63)),
            (Host::window([1 << 40, 1 << 40], [0, 0]), too_large(0, 1 << 40, 1 << 45)),
            (Host::window([4, u64::MAX], [0, 0]), too_large(1, u64::MAX, 32)),
            (
                Host::dense().starting_at(u64::MAX),
                HostError::StartTooFar { bytes: u64::MAX.into() },
            ),
        ] {
            assert_eq!(error(f32, host, pack), expected);
        }
        let strides = Host::strided([-(1 << 58), 4]);
        let before = HostError::BeforeBuffer { bytes: -(1 << 59) };
        assert_eq!(error(f32, strides, pack), before);
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

/// The last byte of packed elements, of which one has no neighbour, in a plan without
/// loops.
#[test]
fn the_end_of_packed_elements_without_loops() {
    let shape = shape("u4[9,9]{1,0:T(*,3)(*,2)E(4)}");
    let elements: Vec<u8> = (0..81_u32).map(|i| (i * 7 % 16) as u8).collect();
    let mut image = vec![0; shape.sizes().unwrap().image_bytes as usize];
    oracle::pack(&shape, &elements, &mut image).unwrap();
    for (order, low, high) in [(BitOrder::LeastFirst, 0, 1), (BitOrder::MostFirst, 1, 0)] {
        let host = Host::dense().packed(order);
        let builder = PlanBuilder::new().host(host).padding(Padding::Byte(0xb7));
        let plan = builder.unpack(&shape).unwrap();
        assert!(plan.explain().slow.is_some(), "it has loops now: {}", plan.explain());
        let bytes = plan.run_to_vec(&image).unwrap();
        for (i, byte) in bytes[..40].iter().enumerate() {
            assert_eq!(*byte, elements[2 * i + low] | elements[2 * i + high] << 4);
        }
        let last = [elements[80] | 0xb0, elements[80] << 4 | 0x07][low];
        assert_eq!(bytes[40], last);
    }
}

/// What made-up arrays found, each with its strides.
#[test]
fn finds() {
    let move_all = |text: &str, strides: &[i64], start, behind, pack| {
        let shape = shape(text);
        let model = HostModel::strided(&shape, strides, start, behind);
        let choices = &mut Choices::new(&[]);
        move_through(choices, &shape, None, &model, pack, &Tier::available());
    };
    // Rows that go backwards, fetched ahead of a transpose past the caches.
    let text = "s64[9,11,1,4]{1,0,2,3:T(1,4,1)E(64)}";
    move_all(text, &[2, -20, 0, 792], 200, 4, true);
    // Rows that overlap, as if they were words of several columns each.
    move_all("bf16[100,6]{1,0}", &[4, 2], 0, 0, true);
    move_all("u8[100,7]{0,1:T(8,128)(4,1)}", &[4, 1], 0, 1, true);
}

#[test]
fn a_destination_beyond_all_memory_is_an_error() {
    let plan = PlanBuilder::new().pack(&shape("u8[1]{0:T(1152921504606846976)}")).unwrap();
    let error = plan.run_to_vec(&[1]).unwrap_err();
    assert_eq!((error.needed_bytes, error.given_bytes), (1 << 60, 0));
}
