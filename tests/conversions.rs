//! Host arrays of another element type: in every tier, through all kinds of layouts and
//! strides, whole and in chunks.
//!
//! The elements are whole numbers that all types have, so that what is expected needs
//! no rounding; how conversions round is tested beside them.

mod common;

use common::shape;
use relayout::ElementType::{self, *};
use relayout::{Error, Host, HostError, Part, Pass, Plan, PlanBuilder, Shape, Tier, oracle};

/// The bytes of a whole number from -8 to 8 in a type.
fn encode(element_type: ElementType, n: i8) -> Vec<u8> {
    // A number of so many bits behind the point, the exponent counting from `bias`.
    let small = |mantissa: u32, bias: u32, sign: u32| -> u32 {
        let magnitude = u32::from(n.unsigned_abs());
        if magnitude == 0 {
            return 0;
        }
        let exponent = magnitude.ilog2();
        let fraction = (magnitude << mantissa >> exponent) - (1 << mantissa);
        u32::from(n < 0) << sign | (exponent + bias) << mantissa | fraction
    };
    match element_type {
        F32 => f32::from(n).to_le_bytes().to_vec(),
        F64 => f64::from(n).to_le_bytes().to_vec(),
        S32 => i32::from(n).to_le_bytes().to_vec(),
        S8 => n.to_le_bytes().to_vec(),
        Bf16 => small(7, 127, 15).to_le_bytes()[..2].to_vec(),
        F16 => small(10, 15, 15).to_le_bytes()[..2].to_vec(),
        F8e4m3fn => small(3, 7, 7).to_le_bytes()[..1].to_vec(),
        F8e5m2 => small(2, 15, 7).to_le_bytes()[..1].to_vec(),
        other => panic!("{other}"),
    }
}

/// A dense array of a type: the same numbers in every type.
fn dense(element_type: ElementType, count: u64) -> Vec<u8> {
    let number = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 17;
    (0..count).flat_map(|i| encode(element_type, number(i) as i8 - 8)).collect()
}

/// Strides in elements, and how many elements the first one is behind the lowest.
type Strides = (Vec<i64>, u64);

fn strides(bounds: &[u64]) -> Vec<Strides> {
    let [rows, columns] = [bounds[0], bounds[1]].map(|n| n as i64);
    vec![
        (vec![columns, 1], 0),
        (vec![columns + 3, 1], 2),
        (vec![1, rows], 0),
        (vec![-(columns + 1), 1], ((columns + 1) * (rows - 1)) as u64),
        (vec![2 * columns, 2], 1),
        // Elements that go down, and rows too; these end where the buffer does.
        (vec![columns + 2, -1], (columns - 1) as u64),
        (vec![-columns, -1], (rows * columns - 1) as u64),
    ]
}

fn check(image_type: ElementType, host_type: ElementType, text: &str) {
    let shape: Shape = shape(&text.replace('T', &image_type.to_string()).replace("#", "T"));
    let bounds = shape.bounds().unwrap();
    let count = bounds[0] * bounds[1];
    let (image_host, host) = (dense(image_type, count), dense(host_type, count));
    let mut image = vec![0xee; shape.sizes().unwrap().image_bytes as usize];
    oracle::pack(&shape, &image_host, &mut image).unwrap();
    let width = host.len() / count as usize;
    for (strides, ahead) in strides(&bounds) {
        // Elements of whole numbers of widths apart, and a byte more than that.
        for odd in [0, 1] {
            let last: i64 =
                strides.iter().zip(&bounds).map(|(s, &b)| s.max(&0) * (b as i64 - 1)).sum();
            let length = (ahead as usize + last as usize + 1) * (width + odd);
            let mut strided = vec![0x77; length];
            for i in 0..count as usize {
                let (row, column) = (i / bounds[1] as usize, i % bounds[1] as usize);
                let at = ahead as i64 + row as i64 * strides[0] + column as i64 * strides[1];
                let at = at as usize * (width + odd);
                strided[at..at + width].copy_from_slice(&host[i * width..(i + 1) * width]);
            }
            let bytes: Vec<i64> = strides.iter().map(|s| s * (width + odd) as i64).collect();
            let start = ahead * (width + odd) as u64;
            let arrangement = Host::strided(bytes).starting_at(start).of(host_type);
            for tier in Tier::available() {
                let builder = PlanBuilder::new().tier(tier).host(arrangement.clone());
                let both_ways = [
                    (builder.pack(&shape), &strided, &image),
                    (builder.unpack(&shape), &image, &strided),
                ];
                for (plan, source, expected) in both_ways {
                    // Some types are converted in one direction only.
                    let plan = match plan {
                        Err(Error::Host(HostError::NoConversion { .. })) => continue,
                        plan => plan.unwrap(),
                    };
                    check_plan(&plan, source, expected);
                }
            }
        }
    }
}

fn check_plan(plan: &Plan, source: &[u8], expected: &[u8]) {
    let mut destination = vec![0x77; expected.len()];
    plan.run(source, &mut destination).unwrap();
    let wrong = destination.iter().zip(expected).position(|(a, b)| a != b);
    assert_eq!(wrong, None, "{}", plan.explain());
    let mut pieces = vec![0x77; expected.len()];
    for chunk in plan.chunks(1000) {
        let range = chunk.destination().start as usize..chunk.destination().end as usize;
        chunk.run(source, &mut pieces[range]).unwrap();
    }
    assert!(pieces == expected, "in chunks: {}", plan.explain());
}

#[test]
fn numbers_are_converted_on_the_way() {
    let pairs = [
        (Bf16, F32, "T[33,200]{1,0:#(8,128)(2,1)}"),
        (Bf16, F32, "T[40,130]{0,1:#(8,128)(2,1)}"),
        (F32, Bf16, "T[33,200]{1,0:#(8,128)}"),
        (F16, F32, "T[17,140]{1,0:#(8,128)(2,1)}"),
        (F32, F16, "T[17,140]{0,1:#(8,128)}"),
        (F32, F64, "T[20,150]{1,0:#(8,128)}"),
        (F32, F64, "T[20,150]{0,1:#(8,128)}"),
        (S8, S32, "T[33,200]{1,0:#(8,128)(4,1)}"),
        (S8, S32, "T[33,200]{0,1:#(32,128)(4,1)}"),
        (F8e4m3fn, F32, "T[33,200]{1,0:#(8,128)(4,1)}"),
        (F8e5m2, F32, "T[33,200]{1,0:#(8,128)(4,1)}"),
        (Bf16, F32, "T[5,3]{1,0:#(2,4)(2,1)}"),
        (Bf16, F32, "T[300,3]{0,1:#(4,128)(2,1)}"),
        (S8, S32, "T[300,6]{0,1:#(8,128)(4,1)}"),
        // Rows that are near each other, which are brought with what is between them.
        (Bf16, F32, "T[200,11]{0,1:#(8,128)(2,1)}"),
        (F32, F64, "T[140,5]{0,1:#(8,128)}"),
        // Without loops: element by element.
        (Bf16, F32, "T[8,8]{1,0:#(4,4)(*,6)}"),
        (Bf16, F32, "T[100,200]{1,0}"),
    ];
    for (image, host, text) in pairs {
        check(image, host, text);
    }
}

/// Images of few channels, whose rows are matrices without conversions, and swapped arrays of which a stage holds little.
#[test]
fn images_and_swapped_arrays_are_converted_on_the_way() {
    for text in [
        "bf16[2,17,130,3]{2,1,3,0:T(8,128)(2,1)}",
        "bf16[2,3,2,3]{2,1,0,3:T(8,128)(2,1)}",
        "bf16[2,1000,3]{1,0,2:T(2,128)(2,1)}",
        "bf16[128,128,3]{2,0,1}",
        "bf16[128,128]{0,1}",
        "bf16[300,1000]{0,1:T(8,128)(2,1)}",
        "bf16[128,128,4]{2,0,1}",
        "bf16[128,128,8]{2,0,1}",
        // Words of several rows of pixels, whole ones and parts, and rows that have no room in a stage.
        "bf16[2,34,150,3]{2,1,3,0:T(8,128)(2,1)}",
        "bf16[33,150,4]{1,0,2:T(8,128)(2,1)}",
        "bf16[9,1500,8]{1,0,2:T(8,128)(2,1)}",
        // Pixels of images side by side.
        "bf16[64,20,9,3]{0,2,3,1:T(8,128)(2,1)}",
        // Runs in rows and columns, short and long ones, and such as have no room but for one.
        "bf16[70,50,3]{2,0,1}",
        "bf16[65,100,16]{2,0,1}",
        "bf16[9,7,3,33]{3,0,2,1}",
        "bf16[5,70,190]{2,0,1}",
        // Rows of few elements that follow each other, and such as do not.
        "bf16[300,50,3]{1,0,2}",
        "bf16[50,3,300]{2,1,0:T(8,128)(2,1)}",
        // Blocks that make lines, and words that are exchanged with those of other rows.
        "bf16[16,128,5,7]{1,0,2,3:T(8,128)(2,1)}",
        "bf16[4,300,5,7]{0,1,2,3}",
        "bf16[2,5000,2]{0,1,2}",
        // Words of several columns, with columns left over.
        "bf16[64,20,9,3]{0,3,2,1:T(8,128)(2,1)}",
        "bf16[130,50,3]{0,2,1:T(8,128)(2,1)}",
        "bf16[1000,3]{0,1:T(2,128)(2,1)}",
        "bf16[2,130,7]{1,2,0:T(8,128)(2,1)}",
        // Two passes, one of which converts: as it makes words, or by a stage of its own, with much between them.
        "bf16[3,100,139]{1,0,2:T(8,128)(2,1)}",
        "bf16[3,128,100,7]{1,2,3,0:T(8,128)(2,1)}",
        "bf16[4,128,22,14]{1,0,3,2:T(8,128)(2,1)}",
        "bf16[300,200,20]{1,0,2:T(8,128)(2,1)}",
        // With elements between them in the order of the host array: words of others, one row of words, rows of few
        // elements, and more than scratch memory holds.
        "bf16[31,16,127]{0,1,2:T(8,128)(2,1)}",
        "bf16[16,48,93]{1,0,2:T(16,128)(2,1)}",
        "bf16[50,39,2,7]{0,1,2,3:T(2,128)(2,1)}",
        "bf16[140,1,260]{0,1,2:T(4,128)(2,1)}",
        "bf16[65,7,190]{0,1,2:T(8,128)(2,1)}",
        "bf16[33,8,90,8]{0,1,3,2:T(2,128)(2,1)}",
        // Rows of few elements that go on with what is between them, or with other blocks.
        "bf16[3,150,6,3]{1,3,2,0:T(4,128)(2,1)}",
        "bf16[200,11,3]{0,2,1:T(4,128)(2,1)}",
        "bf16[11,140,11]{1,2,0:T(8,128)(2,1)}",
        "bf16[2,140,35]{1,2,0:T(8,128)(2,1)}",
    ] {
        let shape: Shape = shape(text);
        let count = shape.bounds().unwrap().iter().product();
        let (image_host, host) = (dense(Bf16, count), dense(F32, count));
        let mut image = vec![0xee; shape.sizes().unwrap().image_bytes as usize];
        oracle::pack(&shape, &image_host, &mut image).unwrap();
        for tier in Tier::available() {
            let builder = PlanBuilder::new().tier(tier).host(Host::dense().of(F32));
            let (pack, unpack) = (builder.pack(&shape).unwrap(), builder.unpack(&shape).unwrap());
            assert!(
                !pack.explain().parts.is_empty() && !unpack.explain().parts.is_empty(),
                "by index: {text}"
            );
            check_plan(&pack, &host, &image);
            check_plan(&unpack, &image, &host);
        }
    }
}

/// Where a stage would leave parts of lines to the other side, one pass only converts: between it and the kernels of the
/// array without conversions is much of that, in its order.
#[test]
fn much_is_converted_at_a_time_where_lines_are_far_apart() {
    if Tier::best().vector_bytes() < 32 {
        println!("skipped: two passes that convert, for which vectors are too short here");
        return;
    }
    for (text, host) in [
        ("bf16[255,12,300]{0,1,2:T(8,128)(2,1)}", F32),
        ("f16[255,8,289]{0,1,2:T(8,128)(2,1)}", F32),
        ("s8[128,190,160]{0,1,2:T(8,128)(4,1)}", S32),
    ] {
        let builder = PlanBuilder::new().host(Host::dense().of(host));
        for plan in [builder.pack(&shape(text)), builder.unpack(&shape(text))] {
            let explanation = plan.unwrap().explain();
            let parts = explanation.parts.iter();
            let converts = parts.filter(|part| part.kernel.contains("to"));
            let least = converts.map(|part| part.columns).min();
            assert!(explanation.hops == 2 && least >= Some(62), "{explanation}");
        }
    }
}

/// Rows of few elements are brought as one run: with the blocks that go on with them, or with what is between them.
#[test]
fn short_rows_are_brought_as_one_run() {
    if Tier::best().vector_bytes() < 32 {
        println!("skipped: words of several columns, for which vectors are too short here");
        return;
    }
    let explained = |text: &str| {
        let builder = PlanBuilder::new().host(Host::dense().of(F32));
        builder.pack(&shape(text)).unwrap().explain()
    };
    // Eleven rows of three channels follow each other.
    let joined = explained("bf16[2004,11,3]{0,2,1:T(4,128)(2,1)}");
    let mut parts = joined.parts.iter().filter(|part| part.kernel.contains("columns"));
    assert!(parts.all(|part| part.blocks.extent == 11), "{joined}");
    // Eight channels of eleven are in whole tiles, and three in others.
    let near = explained("bf16[11,948,11]{1,2,0:T(8,128)(2,1)}").to_string();
    assert!(
        near.contains("rows 22 bytes apart") && !near.contains("rows 64 bytes apart"),
        "{near}"
    );
}

/// A stage holds a little of any array, so that none goes element by element.
#[test]
fn swapped_arrays_that_are_converted_have_kernels() {
    for (text, host) in [
        ("bf16[1000,1000]{0,1}", F32),
        ("bf16[100,200,300]{1,0,2:T(8,128)}", F32),
        ("bf16[1000,1000]{0,1:T(2,128)(2,1)}", F32),
        ("f32[1000,1000]{0,1}", F64),
        ("f32[100,200,300]{0,2,1:T(8,128)}", F64),
        ("f32[1000,1000]{0,1}", Bf16),
        ("s8[300,4000]{0,1}", S32),
        ("f64[300,400]{0,1}", F32),
    ] {
        let builder = PlanBuilder::new().host(Host::dense().of(host));
        for plan in [builder.pack(&shape(text)), builder.unpack(&shape(text))] {
            assert!(!plan.unwrap().explain().parts.is_empty(), "by index: {text} of {host:?}");
        }
    }
}

/// What is only copied otherwise is converted on its way, without scratch memory: whole arrays, rows of tiles with
/// padding behind them, runs of permuted arrays; and so are words of rows. Short runs that follow each other are converted
/// as one.
#[test]
fn runs_are_converted_without_scratch_memory() {
    let scratch = |text: &str, host: ElementType| {
        let builder = PlanBuilder::new().host(Host::dense().of(host));
        [builder.pack(&shape(text)), builder.unpack(&shape(text))].map(|plan| {
            let parts = plan.unwrap().explain().parts;
            assert!(!parts.is_empty(), "by index: {text}");
            parts.iter().map(|part| part.scratch_bytes).max()
        })
    };
    for (text, host) in [
        ("bf16[300,500]{1,0}", F32),
        ("f32[40,128]{1,0:T(8,128)}", Bf16),
        ("f32[40,100]{1,0:T(8,128)}", F64),
        ("f32[40,50,600]{2,0,1}", Bf16),
        ("s32[40,500]{1,0:T(8,128)}", S8),
        // Words of two rows, and of four, some of which are missing.
        ("bf16[41,300]{1,0:T(8,128)(2,1)}", F32),
        ("f16[40,300]{1,0:T(16,128)(2,1)}", F32),
        ("s8[42,300]{1,0:T(8,128)(4,1)}", S32),
    ] {
        assert_eq!(scratch(text, host), [Some(0); 2], "{text}");
    }
    let short = scratch("f32[300,3]{1,0:T(8,128)}", F64);
    assert!(short.iter().all(|&bytes| bytes > Some(0)), "{short:?}");
}

/// Stages of transposes have room for long runs on both sides, through blocks that follow each other in the host array.
#[test]
fn swapped_arrays_are_converted_by_long_runs() {
    for text in ["bf16[2000,1000]{0,1:T(8,128)(2,1)}", "s8[2000,1000]{0,1:T(8,128)(4,1)}"] {
        let host = if text.starts_with("s8") { S32 } else { F32 };
        let builder = PlanBuilder::new().host(Host::dense().of(host));
        for plan in [builder.pack(&shape(text)), builder.unpack(&shape(text))] {
            let explanation = plan.unwrap().explain();
            // Or everything that scratch memory holds is one run.
            let is_long = |p: &Part| match explanation.hops {
                1 => p.scratch_bytes == 16 << 10 && p.blocks.extent >= 16,
                _ => p.columns >= 16 << 10 && p.kernel.contains("to"),
            };
            assert!(explanation.parts.iter().any(is_long), "{explanation}");
        }
    }
}

/// A staged side that goes on by lines leaves the blocks to the other side, where these make lines of short runs.
#[test]
fn stages_leave_blocks_to_the_side_that_needs_them() {
    for (text, host) in [
        ("bf16[16,128,5,7]{1,0,2,3:T(8,128)(2,1)}", F32),
        ("bf16[4,300,5,7]{0,1,2,3}", F32),
        ("bf16[2,5000,2]{0,1,2}", F32),
        ("s8[4,5000,4]{0,1,2}", S32),
    ] {
        let builder = PlanBuilder::new().host(Host::dense().of(host));
        for plan in [builder.pack(&shape(text)), builder.unpack(&shape(text))] {
            let explanation = plan.unwrap().explain();
            assert!(!explanation.parts.is_empty(), "by index: {text}");
            assert!(explanation.parts.iter().all(|part| part.slow.is_none()), "{explanation}");
        }
    }
}

/// Words of another dimension than the one that is contiguous in the host array want two passes, also if one of them
/// converts; and of columns that are left over beside whole words, one kernel does both.
#[test]
fn words_that_want_two_passes_are_converted_by_one() {
    let tiers = Tier::available().into_iter().filter(|tier| tier.name().starts_with("avx"));
    for tier in tiers {
        let builder = PlanBuilder::new().tier(tier).host(Host::dense().of(F32));
        let kernels = |plan: Result<Plan, Error>, pass: Pass| -> Vec<String> {
            let parts = plan.unwrap().explain().parts.into_iter();
            parts.filter(|part| part.pass == pass).map(|part| part.kernel).collect()
        };
        let shape = shape("bf16[3,128,100,7]{1,2,3,0:T(8,128)(2,1)}");
        let first = kernels(builder.pack(&shape), Pass::First);
        assert!(!first.is_empty() && first.iter().all(|k| k.contains("-f32tobf16-")), "{first:?}");
        let last = kernels(builder.unpack(&shape), Pass::Second);
        assert!(!last.is_empty() && last.iter().all(|k| k.ends_with("-bf16tof32")), "{last:?}");
        let shape = common::shape("bf16[1000,3]{0,1:T(2,128)(2,1)}");
        let packing = kernels(builder.pack(&shape), Pass::Only);
        assert!(packing.iter().any(|k| k.ends_with("-interleave-columns2x16")), "{packing:?}");
        let unpacking = kernels(builder.unpack(&shape), Pass::Only);
        assert!(
            !unpacking.is_empty()
                && unpacking.iter().all(|k| k.contains("-deinterleave-columns2x16-")),
            "{unpacking:?}"
        );
    }
}

#[test]
fn a_f64_is_a_pair_of_f32() {
    let shape = shape("f32[9,130]{1,0:T(8,128)}");
    let numbers: Vec<f64> = (0..9 * 130).map(|i| f64::from(i).sqrt() * 1e3).collect();
    let host: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    let part = |host_array: Host| -> Vec<f32> {
        let image = PlanBuilder::new().host(host_array).pack(&shape).unwrap().run_to_vec(&host);
        let dense = Plan::unpack(&shape).unwrap().run_to_vec(&image.unwrap()).unwrap();
        dense.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    };
    let (high, rest) = (part(Host::dense().of(F64)), part(Host::dense().of_f64_rest()));
    for (i, &x) in numbers.iter().enumerate() {
        assert_eq!(high[i], x as f32);
        assert_eq!(rest[i], (x - f64::from(high[i])) as f32);
    }
    let back = PlanBuilder::new().host(Host::dense().of_f64_rest()).unpack(&shape);
    assert!(matches!(back, Err(Error::Host(HostError::NoConversion { .. }))));
}

/// A bound of what is read that does not fit in 64 bits, four times as wide.
#[test]
fn huge_strides_are_refused_or_planned() {
    for (strides, rank) in [(1_i64 << 56, 9), (1 << 59, 2), (1 << 40, 100_000)] {
        let host = Host::strided([strides]).of(S8);
        let _ = PlanBuilder::new().host(host).pack(&shape(&format!("s32[{rank}]{{0}}")));
    }
}

#[test]
fn what_cannot_be_converted_says_so() {
    let builder = PlanBuilder::new().host(Host::dense().of(C64));
    let error = builder.pack(&shape("s8[3]{0}")).unwrap_err();
    assert_eq!(error.to_string(), "elements of c64 cannot be converted to s8");
    // Its own type needs no conversion.
    let own = PlanBuilder::new().host(Host::dense().of(S8)).pack(&shape("s8[3]{0}")).unwrap();
    assert_eq!(own.run_to_vec(&[1, 2, 3]).unwrap(), [1, 2, 3]);
}
