//! Plans, in every tier that there is, against the oracle.
//!
//! Destinations are poisoned and have a guard on either side, so that a byte
//! missed or written outside shows. Sources and destinations begin at all kinds
//! of addresses.

mod common;

use std::collections::HashSet;
use std::io::Write as _;
use std::ops::Range;

use common::{Scoped, arb_bytes, host_bytes, json_lines, lines, reduced, shape, text};
use proptest::prelude::*;
use relayout::{BitOrder, BlockOp, Host, Padding, Part, Plan, PlanBuilder, Shape, Tier, oracle};
use relayout_testing::{
    Buffer, Choices, another_layout, differential, element_mask, noise, roundtrip, small_shape,
};

/// A pair of layouts, with what the oracle makes of some source.
struct Case {
    from: Shape,
    to: Shape,
    source: Vec<u8>,
    expected: Vec<u8>,
}

impl Case {
    fn new(from: &Shape, to: &Shape) -> Case {
        let host = host_bytes(from);
        let bytes = |shape: &Shape| shape.sizes().unwrap().image_bytes as usize;
        let mut source = vec![0xa5; bytes(from)];
        oracle::pack(from, &host, &mut source).unwrap();
        poison_padding(from, &mut source);
        let mut expected = vec![0xa5; bytes(to)];
        oracle::between(from, to, &source, &mut expected).unwrap();
        Case { from: from.clone(), to: to.clone(), source, expected }
    }

    fn pack(shape: &Shape) -> Case {
        Case::new(&shape.in_host_layout(), shape)
    }

    fn unpack(shape: &Shape) -> Case {
        Case::new(shape, &shape.in_host_layout())
    }

    /// Runs in one tier and compares.
    fn check(&self, builder: PlanBuilder, ahead: (usize, usize), poison: u8) {
        let plan = builder.between(&self.from, &self.to).unwrap();
        self.check_plan(&plan, &self.expected, ahead, poison);
    }

    fn check_plan(&self, plan: &Plan, expected: &[u8], ahead: (usize, usize), poison: u8) {
        let mut source = Buffer::of(&self.source, ahead.0);
        let mut destination = Buffer::poisoned(expected.len(), ahead.1, poison);
        plan.run(source.inside(), destination.inside()).unwrap();
        if destination.inside() != expected {
            let mut pairs = destination.inside().iter().zip(expected);
            let i = pairs.position(|(a, b)| a != b).unwrap();
            panic!(
                "byte {i} is {:#04x}, not {:#04x}, with {} and addresses at {ahead:?} of 64:\n{}",
                destination.inside()[i],
                expected[i],
                plan.tier(),
                plan.explain()
            );
        }
        assert!(destination.guards_are(poison), "written outside:\n{}", plan.explain());
    }

    /// Runs in all tiers, with both kinds of stores, at a few addresses, and into
    /// memory that nobody has written yet.
    fn check_all(&self) {
        for tier in Tier::available() {
            let plan = PlanBuilder::new().tier(tier).between(&self.from, &self.to).unwrap();
            let made = plan.run_to_vec(&self.source).unwrap();
            assert!(made == self.expected, "run_to_vec with {tier}:\n{}", plan.explain());
            for (i, ahead) in [(0, 0), (0, 0), (1, 0), (32, 16), (7, 61)].into_iter().enumerate() {
                let builder = PlanBuilder::new().tier(tier).streaming(i % 2 == 0);
                self.check(builder, ahead, if i % 2 == 0 { 0xee } else { 0x11 });
            }
        }
    }
}

/// Puts garbage where an image holds no element: nobody may rely on zeros there.
fn poison_padding(shape: &Shape, image: &mut [u8]) {
    for (byte, mask) in image.iter_mut().zip(element_mask(shape)) {
        *byte = *byte & mask | 0xc9 & !mask;
    }
}

/// Prints which tiers run here, and fails where `RELAYOUT_EXPECT_TIERS` names
/// one that does not: CI sets it.
#[test]
fn the_expected_tiers_are_here() {
    let here: Vec<_> = Tier::available().iter().map(|tier| tier.name()).collect();
    let skipped: Vec<_> = ["scalar", "portable", "neon", "avx2", "avx512"]
        .into_iter()
        .filter(|name| !here.contains(name))
        .collect();
    // Past the capture of the test harness: what did not run shall be seen.
    let emulated = if cfg!(emulate_avx512) { " (emulated)" } else { "" };
    let (here_text, skipped) = (here.join(" ") + emulated, skipped.join(" "));
    writeln!(std::io::stderr(), "tiers tested: {here_text}; skipped, not on this CPU: {skipped}")
        .unwrap();
    for expected in std::env::var("RELAYOUT_EXPECT_TIERS").unwrap_or_default().split_whitespace() {
        assert!(here.contains(&expected), "tier {expected} was expected, here are {here:?}");
    }
}

#[test]
fn golden_layouts_in_every_width() {
    use relayout::ElementType::*;
    let types = [
        (Pred, 1),
        (U1, 1),
        (U2, 2),
        (S4, 4),
        (Pred, 8),
        (U8, 8),
        (Bf16, 16),
        (F32, 32),
        (C64, 64),
        (C128, 128),
    ];
    for (i, case) in json_lines("golden.jsonl").iter().enumerate() {
        let golden = shape(text(case, "shape"));
        for (k, (element_type, bits)) in types.into_iter().enumerate() {
            // All widths over all cases, two of each for every case.
            if i % 5 != k % 5 {
                continue;
            }
            let layout = golden.layout().clone().with_element_bits(bits).unwrap();
            let shape =
                Shape::new(element_type, golden.dimensions().iter().copied(), layout).unwrap();
            Case::pack(&shape).check_all();
            Case::unpack(&shape).check_all();
        }
    }
}

#[test]
fn layouts_of_tpu_programs() {
    let mut texts = lines("hlo_shapes.txt");
    texts.extend(json_lines("tpu_layouts.jsonl").iter().map(|case| text(case, "shape").to_owned()));
    let mut seen = HashSet::new();
    for text in texts {
        let shape = reduced(&shape(&text));
        if seen.insert(shape.to_string()) {
            Case::pack(&shape).check_all();
            Case::unpack(&shape).check_all();
        }
    }
    assert!(seen.len() > 400, "{}", seen.len());
}

#[test]
fn relayouts_of_tpu_programs() {
    for pair in lines("relayouts.txt") {
        let (from, to) = pair.split_once(" -> ").unwrap();
        Case::new(&reduced(&shape(from)), &reduced(&shape(to))).check_all();
    }
}

/// Runs of some elements that are contiguous on both sides, in rows and columns: whole matrices, columns that follow each
/// other, and tiles with rests.
#[test]
fn runs_that_stay_together() {
    for text in [
        "u8[40,37,3]{2,0,1}",
        "u8[20,1400,3]{2,0,1}",
        "u8[2,30,45,3]{3,1,2,0}",
        "bf16[64,9,3]{2,0,1}",
        "f32[20,300,3]{2,0,1}",
        "c128[30,41]{0,1}",
        // The last row of tiles is one of its own.
        "c128[65,129]{0,1:T(8,128)}",
        "f32[64,50,8]{2,0,1}",
        "bf16[3,70,5,20]{3,1,2,0}",
        "s4[50,60,10]{2,0,1}",
        "pred[300,260]{0,1:T(32,128)(32,1)}",
        "u8[100,300]{0,1:T(24,8)(24,1)}",
        "f32[9,700,25]{2,0,1}",
    ] {
        let case = Case::pack(&shape(text));
        let plan = Plan::between(&case.from, &case.to).unwrap();
        let explanation = plan.explain();
        let is_of_runs =
            |op| matches!(op, BlockOp::Transpose { bits } if !matches!(bits, 8 | 16 | 32 | 64));
        assert!(explanation.parts.iter().any(|part| is_of_runs(part.op)), "{explanation}");
        case.check_all();
        Case::unpack(&shape(text)).check_all();
    }
}

/// The named formats and others of each kind, with bounds around each constant:
/// vectors of 16, 32 and 64 bytes, words, tiles, stretches of squeezed rows.
#[test]
fn ragged_bounds() {
    let formats = [
        ("f32", "T(8,128)", 8),
        ("bf16", "T(8,128)(2,1)", 8),
        ("s8", "T(8,128)(4,1)", 8),
        ("s8", "T(32,128)(4,1)", 32),
        ("pred", "T(32,128)(32,1)E(1)", 32),
        ("s4", "T(8,128)(8,1)E(4)", 8),
        ("s2", "T(16,128)(16,1)E(2)", 16),
        ("u4", "T(8,128)E(4)", 8),
        ("pred", "T(8,128)E(1)", 8),
        ("c64", "T(8,128)", 8),
        ("f64", "T(4,64)(2,1)", 4),
        ("bf16", "T(4,128)(4,1)", 4),
    ];
    for (element_type, tiles, rows_of_tile) in formats {
        let columns = [1, 15, 17, 31, 33, 63, 64, 65, 127, 128, 129, 200, 257];
        for (i, columns) in columns.into_iter().enumerate() {
            let rows = [1, 2, rows_of_tile - 1, rows_of_tile, rows_of_tile + 1];
            for rows in [rows[i % 5], rows[(i + 2) % 5]] {
                for order in ["1,0", "0,1"] {
                    let text = format!("{element_type}[{rows},{columns}]{{{order}:{tiles}}}");
                    let shape = shape(&text);
                    Case::pack(&shape).check_all();
                    Case::unpack(&shape).check_all();
                }
            }
        }
    }
    // As many blocks as one call visits, and around that: small ones, so that the
    // oracle is done in time.
    for (rows, columns) in [(5, 63), (4, 64), (3, 65), (65, 2), (128, 1), (130, 3), (3, 200)] {
        let columns = columns * 16 + 3;
        for text in [
            format!("s8[{rows},{columns}]{{1,0:T(1,16)}}"),
            format!("bf16[{rows},{columns}]{{1,0:T(2,16)(2,1)}}"),
        ] {
            Case::pack(&shape(&text)).check_all();
            Case::unpack(&shape(&text)).check_all();
        }
    }
    for columns in [2047, 2048, 2049, 2200, 4224] {
        for text in [
            format!("pred[33,{columns}]{{1,0:T(32,128)(32,1)E(1)}}"),
            format!("s4[9,{columns}]{{1,0:T(8,128)(8,1)E(4)}}"),
            // Tiles wider than a stretch.
            format!("pred[33,{columns}]{{1,0:T(32,4096)(32,1)E(1)}}"),
        ] {
            Case::pack(&shape(&text)).check_all();
            Case::unpack(&shape(&text)).check_all();
        }
    }
}

/// From words of elements of one dimension to words of those of another one, with
/// whole and ragged tiles, below and above what kernels take at a time.
#[test]
fn words_of_other_dimensions() {
    let bounds = [[8, 8], [16, 24], [128, 128], [130, 257], [31, 264], [300, 40]];
    let tiles =
        [("bf16", "(8,128)(2,1)", "(16,128)(2,1)"), ("s8", "(8,128)(4,1)", "(32,128)(4,1)")];
    for [rows, columns] in bounds {
        for (element_type, a, b) in tiles {
            for (a, b) in [(a, a), (a, b), (b, a)] {
                let at = |order: &str, tiles: &str| {
                    shape(&format!("{element_type}[{rows},{columns}]{{{order}:T{tiles}}}"))
                };
                Case::new(&at("0,1", a), &at("1,0", b)).check_all();
                Case::new(&at("1,0", a), &at("0,1", b)).check_all();
                let at = |order: &str, tiles: &str| {
                    let most = rows.min(17);
                    shape(&format!("{element_type}[{most},9,{columns}]{{{order}:T{tiles}}}"))
                };
                Case::new(&at("2,0,1", a), &at("2,1,0", b)).check_all();
                Case::new(&at("2,1,0", a), &at("2,0,1", b)).check_all();
            }
        }
    }
}

/// Host arrays that are packed as densely as the image: rows of whole bytes and of others, of whole tiles
/// and of less, down to a byte, and the last row of a word alone.
#[test]
fn packed_rows() {
    let tiles = [
        ("s4", 4, "(8,128)(8,1)"),
        ("s4", 4, "(4,128)(4,1)"),
        ("s4", 4, "(64,128)(8,1)"),
        ("u2", 2, "(16,128)(16,1)"),
        ("u2", 2, "(4,256)(4,1)"),
        ("pred", 1, "(32,128)(32,1)"),
        ("pred", 1, "(16,128)(16,1)"),
        ("pred", 1, "(8,128)(8,1)"),
    ];
    let bounds = [[64, 1024], [33, 8], [97, 264], [8, 1480], [40, 4616], [5, 100], [31, 130]];
    for (element_type, bits, tiles) in tiles {
        for [rows, columns] in bounds {
            let at = |layout: &str| {
                shape(&format!("{element_type}[{rows},{columns}]{{1,0:{layout}E({bits})}}"))
            };
            let (host, image) = (at(""), at(&format!("T{tiles}")));
            let (pack, unpack) = (Case::new(&host, &image), Case::new(&image, &host));
            pack.check_all();
            unpack.check_all();
            // The same from and to bytes that begin with their most significant bits.
            let reversed = |bytes: &[u8]| -> Vec<u8> {
                let mask = 0xff_u8 >> (8 - bits);
                let of =
                    |byte: u8| (0..8 / bits).fold(0, |n, i| n << bits | byte >> (bits * i) & mask);
                bytes.iter().map(|&byte| of(byte)).collect()
            };
            for tier in Tier::available() {
                let host = Host::dense().packed(BitOrder::MostFirst);
                let builder = PlanBuilder::new().tier(tier).host(host);
                let plan = builder.pack(&image).unwrap();
                assert!(
                    plan.run_to_vec(&reversed(&pack.source)).unwrap() == pack.expected,
                    "{image}"
                );
                let plan = builder.unpack(&image).unwrap();
                let made = plan.run_to_vec(&unpack.source).unwrap();
                assert!(made == reversed(&unpack.expected), "{image}");
            }
        }
    }
    let one = |layout: &str| shape(&format!("s4[5000]{{0:{layout}E(4)}}"));
    Case::new(&one(""), &one("T(1024)(128)(8,1)")).check_all();
    Case::new(&one("T(1024)(128)(8,1)"), &one("")).check_all();
}

/// Rows of packed host arrays that begin within bytes, whichever dimension follows which in the image; and that they are
/// moved in runs of bits if they are long.
#[test]
fn rows_that_begin_within_bytes() {
    let tiles = [
        ("s4", 4, "(8,128)(8,1)"),
        ("f4e2m1fn", 4, "(64,128)(8,1)"),
        ("u2", 2, "(16,128)(16,1)"),
        ("pred", 1, "(32,128)(32,1)"),
    ];
    let arrays = [
        ("40,1001", &["1,0", "0,1"][..]),
        ("130,63", &["1,0", "0,1"]),
        ("77,9", &["1,0", "0,1"]),
        ("9,70001", &["1,0"]),
        ("9,33,65", &["2,1,0", "2,0,1", "1,0,2", "0,1,2"]),
        ("3,130,31", &["2,1,0", "1,2,0", "0,2,1"]),
        ("20,3,9,7", &["3,2,1,0", "0,1,3,2"]),
        // Rows that fill a tile, whose next column goes on with them.
        ("56,8,31", &["0,1,2"]),
        ("40,16,9", &["0,1,2", "0,2,1"]),
        ("131,32,5", &["0,1,2"]),
    ];
    let mut copied = Vec::new();
    for (element_type, bits, tiles) in tiles {
        for (bounds, orders) in arrays {
            let at =
                |layout: &str| shape(&format!("{element_type}[{bounds}]{{{layout}E({bits})}}"));
            let row_major: Vec<String> =
                (0..bounds.split(',').count()).rev().map(|d| d.to_string()).collect();
            let host = at(&format!("{}:", row_major.join(",")));
            for order in orders {
                let image = at(&format!("{order}:T{tiles}"));
                for case in [Case::new(&host, &image), Case::new(&image, &host)] {
                    case.check_all();
                    let explanation = Plan::between(&case.from, &case.to).unwrap().explain();
                    if explanation.to_string().contains("copy-bits") {
                        copied.push(format!("{element_type} {bounds} {order}"));
                    }
                }
            }
        }
    }
    // Padding that ends within a byte, too, and rows whose parts are no whole lines.
    for (from, to) in [
        ("pred[64,993]{1,0:T(32,128)(32,1)E(1)}", "pred[64,993]{1,0:T(997)E(1)}"),
        ("pred[64,97]{1,0:T(32,128)(32,1)E(1)}", "pred[64,97]{1,0:T(101)E(1)}"),
        ("u2[40,1001]{1,0:T(16,128)(16,1)E(2)}", "u2[40,1001]{1,0:T(1003)E(2)}"),
        ("s4[40,1001]{1,0:T(8,128)(8,1)E(4)}", "s4[40,1001]{1,0:T(2,1003)E(4)}"),
        ("s4[35,6,1026]{2,1,0:E(4)}", "s4[35,6,1026]{2,0,1:T(5,1026)(5,1)E(4)}"),
        ("s4[9,7,1026,3]{3,2,1,0:E(4)}", "s4[9,7,1026,3]{2,3,1,0:T(7,3,2)(7,1,1)E(4)}"),
    ] {
        let (from, to) = (shape(from), shape(to));
        Case::new(&from, &to).check_all();
        Case::new(&to, &from).check_all();
    }
    // Packing and unpacking.
    for array in ["s4 40,1001 1,0", "s4 40,1001 0,1", "u2 40,1001 1,0", "pred 40,1001 1,0"] {
        assert_eq!(
            copied.iter().filter(|copied| *copied == array).count(),
            2,
            "{array}: {copied:?}"
        );
    }
}

#[test]
fn blocks_shorter_than_a_vector_are_called_slow() {
    let is_slow = |case: Case| {
        let plan = Plan::between(&case.from, &case.to).unwrap();
        plan.explain().parts.iter().any(|part| part.slow.is_some())
    };
    let swapped = |text: &str| Case::new(&shape(text), &shape(&format!("{text}{{0,1}}")));
    assert!(is_slow(swapped("u8[15,15]")));
    assert!(!is_slow(swapped("u8[15,64]")));
    assert!(!is_slow(swapped("f32[4,4]")));
    assert!(is_slow(swapped("f32[3,3]")));
    assert!(!is_slow(swapped("f32[3,400]")));
    assert!(is_slow(Case::pack(&shape("bf16[64,7]{1,0:T(8,128)(2,1)}"))));
    assert!(!is_slow(Case::pack(&shape("bf16[64,8]{1,0:T(8,128)(2,1)}"))));
    // Eight rows to a tile, but all tiles together are one matrix.
    assert!(!is_slow(Case::unpack(&shape("s8[128,64]{0,1:T(8,128)(4,1)}"))));
}

/// What no kernel does at once goes through scratch memory: where words have elements of one
/// dimension, and another one is contiguous in host memory.
#[test]
fn two_passes() {
    for text in [
        "u8[15,127,65]{1,0,2:T(8,128)(4,1)}",
        "s8[9,130,300]{1,0,2:T(32,128)(4,1)}",
        "bf16[2,19,200,3]{2,1,3,0:T(8,128)(2,1)}",
        "u8[130,30,9]{0,1,2:T(8,128)(4,1)}",
        "s4[21,127,129]{1,0,2:T(8,128)(8,1)E(4)}",
        "s4[70,40,65]{1,0,2:T(64,128)(8,1)E(4)}",
        "u4[127,65,12]{0,1,2:T(8,128)(8,1)E(4)}",
        "u4[500,3]{0,1:T(8,128)(8,1)E(4)}",
        "s2[130,20,70]{0,1,2:T(16,128)(16,1)E(2)}",
        "s2[20,100,63]{1,0,2:T(16,128)(16,1)E(2)}",
        "pred[40,100,50]{1,0,2:T(32,128)(32,1)E(1)}",
        "u8[600,3]{0,1:T(4,128)(4,1)}",
    ] {
        let shape = shape(text);
        for case in [Case::pack(&shape), Case::unpack(&shape)] {
            case.check_all();
        }
        for tier in [Tier::PORTABLE, Tier::best()] {
            let builder = || PlanBuilder::new().tier(tier);
            let hops = [builder().pack(&shape), builder().unpack(&shape)]
                .map(|plan| plan.unwrap().explain().hops);
            // Points take one where bytes can be shuffled.
            let passes = if tier > Tier::PORTABLE && text.starts_with("u8[600,3]") { 1 } else { 2 };
            assert_eq!(hops.iter().max(), Some(&passes), "{text}, {tier}: {hops:?}");
        }
        let (host, image) = (shape.in_host_layout(), &shape);
        for (from, to) in [(&host, image), (image, &host)] {
            check_by_size(from, to, &[(5, 3)]);
        }
    }
}

/// Past the caches, words that follow each other but are from pages of their own in the host array are made in two passes:
/// where each page has more than a little for them, and less than one pass reads or writes well.
#[test]
fn words_from_pages_of_their_own() {
    let hops = |shape: &Shape, builder: &PlanBuilder| {
        [builder.pack(shape), builder.unpack(shape)].map(|plan| plan.unwrap().explain().hops)
    };
    for (text, at_pages) in [
        ("s8[130,64,64]{0,1,2:T(8,128)(4,1)}", true),
        ("u8[129,128,32]{0,1,2:T(32,128)(4,1)}", true),
        ("bf16[130,16,128]{0,1,2:T(8,128)(2,1)}", true),
        ("bf16[130,18,130]{0,1,2:T(8,128)(2,1)}", false),
    ] {
        let shape = shape(text);
        for case in [Case::pack(&shape), Case::unpack(&shape)] {
            for tier in Tier::available() {
                case.check(PlanBuilder::new().tier(tier).streaming(true), (5, 3), 0xee);
            }
            let plan = PlanBuilder::new().streaming(true).between(&case.from, &case.to).unwrap();
            check_chunks(&plan, &case, case.expected.len() as u64 / 7 + 1);
        }
        // Elsewhere nothing is streamed.
        let streams = |tier| tier > Tier::SCALAR && cfg!(target_arch = "x86_64");
        for tier in Tier::available().into_iter().filter(|&tier| streams(tier)) {
            let builder = PlanBuilder::new().tier(tier).streaming(true);
            let [pack, unpack] = hops(&shape, &builder);
            if text.starts_with("bf16") && goes_by_lines(tier) {
                assert_eq!(unpack, 1, "{text}, {tier}");
                continue;
            }
            assert!(unpack == 2 && (pack == 2 || !at_pages && !is_zen3()), "{text}, {tier}");
        }
    }
    if !["avx2", "avx512"].contains(&Tier::best().name()) {
        // Tiers of vectors of 16 bytes take two passes for some of these as well.
        return;
    }
    let builder = PlanBuilder::new().streaming(true);
    for (text, expected) in [
        // 64 bytes of each page; 2048, of which pages are read well, but not written.
        ("s8[256,512,16]{0,1,2:T(8,128)(4,1)}", [1, 1]),
        ("s8[128,16,512]{0,1,2:T(8,128)(4,1)}", [1, 1 + usize::from(is_zen3())]),
        // Pages that other words go on with.
        ("s8[256,16,64]{0,1,2:T(8,128)(4,1)}", [1, 1]),
    ] {
        assert_eq!(hops(&shape(text), &builder), expected, "{text}");
    }
}

/// Words of which only one row is there, between dimensions that are contiguous in host memory.
#[test]
fn words_of_one_row() {
    for text in [
        "bf16[130,1,70]{0,1,2:T(8,128)(2,1)}",
        "bf16[40,7,130]{0,1,2:T(8,128)(2,1)}",
        "u8[64,2,1,150]{0,2,3,1:T(32,128)(4,1)}",
        "s8[33,5,140]{0,1,2:T(8,128)(4,1)}",
        "s4[200,1,30]{0,1,2:T(8,128)(8,1)E(4)}",
        "pred[1,150,70]{1,0,2:T(32,128)(32,1)E(1)}",
    ] {
        let shape = shape(text);
        for case in [Case::pack(&shape), Case::unpack(&shape)] {
            case.check_all();
        }
        let plan = PlanBuilder::new().tier(Tier::best()).unpack(&shape).unwrap();
        let explanation = plan.explain();
        let takes_apart = |part: &Part| {
            part.kernel.contains("deinterleave") && part.rows == 1 && part.scratch_bytes > 0
        };
        assert!(explanation.parts.iter().any(takes_apart), "{explanation}");
    }
}

/// Words whose elements follow each other in the array as tiles do, and words that a tile does not fill: none goes bit by bit.
#[test]
fn words_that_tiles_fill_or_do_not_fill() {
    for text in [
        "u2[101,16,9]{0,1,2:T(16,128)(16,1)E(2)}",
        "u2[129,16,4,3]{0,1,3,2:T(16,128)(16,1)E(2)}",
        "s4[55,8,66]{0,1,2:T(8,128)(8,1)E(4)}",
        "pred[20,32,33]{0,1,2:T(32,128)(32,1)E(1)}",
        "u2[30,8,154]{2,1,0:T(8,128)(16,1)E(2)}",
        "pred[11,24,32]{2,1,0:T(8,128)(32,1)E(1)}",
        "pred[300,9]{1,0:T(8,128)(32,1)E(1)}",
        "s4[9,4,140]{2,1,0:T(4,128)(8,1)E(4)}",
        "bf16[7,3,140]{2,1,0:T(1,128)(2,1)}",
    ] {
        let shape = shape(text);
        for case in [Case::pack(&shape), Case::unpack(&shape)] {
            case.check_all();
            let plan = PlanBuilder::new().between(&case.from, &case.to).unwrap();
            check_chunks(&plan, &case, case.expected.len() as u64 / 7 + 1);
            let explanation = plan.explain();
            let has_bits = explanation.parts.iter().any(|part| part.kernel.contains("-bits"));
            assert!(!has_bits, "{explanation}");
        }
    }
    // Words are turned as such.
    for text in
        ["s4[98,8,14,45]{0,1,3,2:T(8,128)(8,1)E(4)}", "u4[536,8,704]{0,1,2:T(8,128)(8,1)E(4)}"]
    {
        let shape = shape(text);
        for plan in [Plan::pack(&shape), Plan::unpack(&shape)] {
            let explanation = plan.unwrap().explain();
            let turns = explanation.parts.iter().any(|part| part.kernel.contains("transpose32"));
            assert!(turns && explanation.hops == 2, "{explanation}");
        }
    }
}

/// Words of one dimension into words of another one: whole ones and such as have some elements only, on either side and on
/// both. None goes by parts of rows that are shorter than a vector, but where words on both sides are not whole; with vectors of a line
/// those of two and four bits take one pass.
#[test]
fn words_of_both_sides() {
    for (shapes, by) in [
        (["s4[40,264]{0,1:T(8,128)(8,1)E(4)}", "s4[40,264]{1,0:T(8,128)(8,1)E(4)}"], "8x4"),
        (["u4[130,72]{1,0:T(64,128)(8,1)E(4)}", "u4[130,72]{0,1:T(16,128)(8,1)E(4)}"], "8x4"),
        (["u4[128,71]{1,0:T(8,128)(8,1)E(4)}", "u4[128,71]{0,1:T(8,128)(8,1)E(4)}"], "8x4"),
        (["u2[160,112]{0,1:T(16,128)(16,1)E(2)}", "u2[160,112]{1,0:T(16,128)(16,1)E(2)}"], "16x2"),
        (
            ["pred[288,160]{0,1:T(32,128)(32,1)E(1)}", "pred[288,160]{1,0:T(32,128)(32,1)E(1)}"],
            "32x1",
        ),
        (["s4[6,80,24]{0,1,2:T(8,128)(8,1)E(4)}", "s4[6,80,24]{2,1,0:T(8,128)(8,1)E(4)}"], ""),
        (["s4[131,7,60]{0,1,2:T(8,128)(8,1)E(4)}", "s4[131,7,60]{1,0,2:T(8,128)(8,1)E(4)}"], ""),
        (["pred[75,40]{1,0:T(32,128)(32,1)E(1)}", "pred[75,40]{0,1:T(32,128)(32,1)E(1)}"], ""),
    ] {
        let [from, to] = shapes.map(shape);
        for case in [Case::new(&from, &to), Case::new(&to, &from)] {
            case.check_all();
            let plan = PlanBuilder::new().tier(Tier::best()).between(&case.from, &case.to).unwrap();
            check_chunks(&plan, &case, case.expected.len() as u64 / 7 + 1);
            let explanation = plan.explain();
            if by.is_empty() {
                continue;
            }
            let of_rows = |part: &Part| part.kernel.contains(&format!("interleave{by}"));
            let all_go = explanation.parts.iter().any(of_rows) && explanation.slow.is_none();
            assert!(all_go && (exchanges(&plan) || explanation.hops == 2), "{explanation}");
        }
    }
    // Whole blocks of 16 by 16 words: in vectors of a line, the elements of those of a square are exchanged.
    for (from, to) in [
        ("s4[128,256]{0,1:T(8,128)(8,1)E(4)}", "s4[128,256]{1,0:T(8,128)(8,1)E(4)}"),
        ("u4[3,256,128]{1,2,0:T(64,128)(8,1)E(4)}", "u4[3,256,128]{2,1,0:T(8,128)(8,1)E(4)}"),
        ("s2[256,512]{0,1:T(16,128)(16,1)E(2)}", "s2[256,512]{1,0:T(16,128)(16,1)E(2)}"),
    ] {
        let (from, to) = (shape(from), shape(to));
        for case in [Case::new(&from, &to), Case::new(&to, &from)] {
            case.check_all();
            let plan = PlanBuilder::new().tier(Tier::best()).between(&case.from, &case.to).unwrap();
            assert_eq!(exchanges(&plan), Tier::best().vector_bytes() == 64, "{}", plan.explain());
        }
    }
}

/// Whether a plan turns words as it makes those of other elements of them.
fn exchanges(plan: &Plan) -> bool {
    let is = |part: &Part| matches!(part.op, BlockOp::TransposeInterleave { .. });
    plan.explain().parts.iter().any(is)
}

/// Words that have the same elements on both sides, but not as many as there is room for: moved as words, of which what
/// is not an element becomes zeros.
#[test]
fn words_with_padding() {
    for (from, to) in [
        ("s8[70,2,130]{0,1,2:T(8,128)(4,1)}", "s8[70,2,130]{2,1,0:T(8,128)(4,1)}"),
        ("s8[70,7,30]{0,1,2:T(8,128)(4,1)}", "s8[70,7,30]{0,1,2:T(32,128)(4,1)}"),
        ("bf16[5,31,300]{2,1,0:T(8,128)(2,1)}", "bf16[5,31,300]{2,1,0:T(16,128)(2,1)}"),
        ("bf16[90,1,65]{0,1,2:T(8,128)(2,1)}", "bf16[90,1,65]{2,1,0:T(2,128)(2,1)}"),
        ("s4[20,100,6]{1,2,0:T(8,128)(8,1)E(4)}", "s4[20,100,6]{0,2,1:T(8,128)(8,1)E(4)}"),
        ("u4[140,3,9]{0,1,2:T(8,128)(8,1)E(4)}", "u4[140,3,9]{0,1,2:T(32,128)(8,1)E(4)}"),
        ("u2[33,129,13]{1,2,0:T(16,128)(16,1)E(2)}", "u2[33,129,13]{0,2,1:T(16,128)(16,1)E(2)}"),
        ("pred[8,127,65]{2,0,1:T(32,128)(32,1)E(1)}", "pred[8,127,65]{1,0,2:T(32,128)(32,1)E(1)}"),
    ] {
        let case = Case::new(&shape(from), &shape(to));
        case.check_all();
        let plan = PlanBuilder::new().tier(Tier::best()).between(&case.from, &case.to).unwrap();
        check_chunks(&plan, &case, case.expected.len() as u64 / 7 + 1);
        let explanation = plan.explain();
        let copies_words = |part: &Part| part.kernel.contains("copy-words");
        assert!(explanation.parts.iter().any(copies_words), "{explanation}");
        // What is no element may be kept, or be a byte.
        check_padding(&case, Padding::Keep);
        check_padding(&case, Padding::Byte(0x5a));
    }
}

/// Many small pieces of padding, a few bytes of each word, are filled as one before the elements between them are written.
#[test]
fn small_pieces_of_padding() {
    for (from, to) in [
        ("pred[70,300]{1,0:T(32,128)(32,1)E(1)}", "pred[70,300]{1,0:T(8,128)(32,1)E(1)}"),
        ("pred[90,129]{0,1:T(8,128)(32,1)E(1)}", "pred[90,129]{1,0:T(16,128)(32,1)E(1)}"),
        ("pred[70,300]{0,1:T(64,128)(32,1)E(1)}", "pred[70,300]{1,0:T(8,128)(32,1)E(1)}"),
        ("u2[60,300]{1,0:T(16,128)(16,1)E(2)}", "u2[60,300]{0,1:T(8,128)(16,1)E(2)}"),
        ("s8[40,300,1,1,2]{4,3,2,1,0}", "s8[40,300,1,1,2]{1,4,0,2,3:T(4,128)(4,1)}"),
        ("pred[104,100,7]{2,1,0}", "pred[104,100,7]{0,2,1:T(128,128)(32,1)E(1)}"),
        ("s4[10,25,16,2,5]{4,3,2,1,0}", "s4[10,25,16,2,5]{0,3,4,1,2:T(16,128)(8,1)E(4)}"),
    ] {
        let case = Case::new(&shape(from), &shape(to));
        case.check_all();
        let plan = PlanBuilder::new().between(&case.from, &case.to).unwrap();
        check_chunks(&plan, &case, case.expected.len() as u64 / 5 + 1);
        check_padding(&case, Padding::Keep);
        check_padding(&case, Padding::Byte(0x5a));
        let explanation = plan.explain();
        let are_small = |part: &Part| {
            let times: u64 = part.loops.iter().map(|l| l.extent).product();
            let pieces = times * part.lines.extent * part.blocks.extent;
            part.op == BlockOp::Fill && part.columns < 4 && pieces > 300
        };
        assert!(!explanation.parts.iter().any(are_small), "{explanation}");
    }
}

/// Of a tile of words, rows are as long as those of elements: not a few columns of all rows.
#[test]
fn rows_of_words_are_turned_in_long_pieces() {
    for text in
        ["pred[224,256,9]{0,2,1:T(16,128)(32,1)E(1)}", "pred[96,1851]{0,1:T(16,128)(32,1)E(1)}"]
    {
        let shape = shape(text);
        for tier in Tier::available().into_iter().filter(|&tier| tier != Tier::SCALAR) {
            let builder = PlanBuilder::new().tier(tier);
            for plan in [builder.pack(&shape).unwrap(), builder.unpack(&shape).unwrap()] {
                let explanation = plan.explain();
                let squeezes =
                    |part: &&Part| part.kernel.contains("squeeze") && part.blocks.extent > 1;
                let pieces = explanation.parts.iter().filter(squeezes).map(|part| part.columns);
                assert!(pieces.min() >= Some(64), "{explanation}");
            }
        }
    }
}

/// Words with padding beside a dimension of one element, whose step in the array is that of another dimension's elements:
/// they are not the words that this one has.
#[test]
fn words_beside_dimensions_of_one_element() {
    for (from, to) in [
        ("s8[143,2,1]{2,1,0}", "s8[143,2,1]{1,2,0:T(8,128)(2,1)}"),
        ("s8[3,6,2,1]{3,2,1,0}", "s8[3,6,2,1]{1,3,2,0:T(2,64)(2,1)}"),
        ("s16[9,6,2,1]{3,2,1,0}", "s16[9,6,2,1]{1,3,2,0:T(2,64)(2,1)}"),
        ("s8[297,2,8,1]{3,2,1,0}", "s8[297,2,8,1]{1,3,0,2:T(2,32)(2,1)}"),
        ("s16[1,9,4,1]{3,2,1,0}", "s16[1,9,4,1]{2,3,1,0:T(16,32)(4,1)}"),
        ("u4[6,4,1]{2,1,0}", "u4[6,4,1]{0,2,1:T(1,4,64)(4,1)E(4)}"),
        ("s4[3,1,4,1]{3,2,1,0:E(4)}", "s4[3,1,4,1]{2,3,1,0:T(4,128)(4,1)E(4)}"),
        ("u2[3,2,4,1]{3,2,1,0:E(2)}", "u2[3,2,4,1]{0,3,2,1:T(8,64)(8,1)E(2)}"),
    ] {
        Case::new(&shape(from), &shape(to)).check_all();
    }
}

/// What L2 does not hold goes through more scratch memory, where it is not streamed.
#[test]
fn two_passes_through_l2() {
    for text in [
        "s8[70,256,30]{1,0,2:T(8,128)(4,1)}",
        "u8[64,2100,4]{0,1,2:T(4,128)(4,1)}",
        "s4[150,330,12]{0,1,2:T(8,128)(8,1)E(4)}",
        "pred[42,384,60]{1,2,0:T(32,128)(32,1)E(1)}",
    ] {
        let shape = shape(text);
        let (host, image) = (shape.in_host_layout(), &shape);
        for (from, to) in [(&host, image), (image, &host)] {
            check_by_size(from, to, &[(0, 0), (5, 3)]);
        }
        let builder = PlanBuilder::new().tier(Tier::PORTABLE).streaming(false);
        let parts = [builder.pack(&shape), builder.unpack(&shape)]
            .map(|plan| plan.unwrap().explain().parts);
        let most = parts.iter().flatten().map(|part| part.scratch_bytes).max();
        assert!(most > Some(32 << 10), "{text}: {most:?}");
    }
}

/// Such words are made, or taken apart, in one pass where what is contiguous in host memory is long enough for
/// vectors; and words that have some columns of rows which are apart, the last of them perhaps not all it has room for.
#[test]
fn words_in_one_pass() {
    for text in [
        "u8[16,150,64]{1,0,2:T(8,128)(4,1)}",
        "u8[32,40,129]{1,0,2:T(32,128)(4,1)}",
        "s8[8,300,17]{1,0,2:T(8,128)(4,1)}",
        "s8[150,12,33]{0,1,2:T(8,128)(4,1)}",
        "pred[3,24,150,70]{2,1,3,0:T(8,128)(4,1)}",
        "bf16[4,33,40,9]{1,2,3,0:T(8,128)(2,1)}",
        "bf16[4,34,40,9]{1,2,3,0:T(8,128)(2,1)}",
        "bf16[22,200,31]{1,0,2:T(8,128)(2,1)}",
        "bf16[130,20,66]{0,1,2:T(8,128)(2,1)}",
        "u8[300,20,11]{0,1,2:T(8,128)(4,1)}",
        "bf16[20,290,5]{1,0,2:T(8,128)(2,1)}",
        "bf16[300,20,7]{0,2,1:T(8,128)(2,1)}",
        "bf16[3,150,7]{1,2,0:T(8,128)(2,1)}",
        "u8[10,600,31]{1,2,0:T(8,128)(4,1)}",
        "s8[400,150]{0,1:T(8,128)(4,1)}",
        "u8[3,129,2,5]{1,3,0,2:T(8,128)(4,1)}",
        "bf16[20,70,3,3]{1,0,3,2:T(8,128)(2,1)}",
        "bf16[133,3,32,3]{0,2,3,1:T(8,128)(2,1)}",
        "u8[70,2,192,3]{0,2,3,1:T(32,128)(4,1)}",
        "s8[36,100,3,3]{1,0,3,2:T(32,128)(4,1)}",
    ] {
        let shape = shape(text);
        for case in [Case::pack(&shape), Case::unpack(&shape)] {
            case.check_all();
        }
        for padding in [Padding::Keep, Padding::Byte(0x5a)] {
            check_padding(&Case::pack(&shape), padding);
        }
        let hops = [Plan::pack(&shape), Plan::unpack(&shape)].map(|p| p.unwrap().explain().hops);
        if Tier::best().name() == "avx512" {
            // Two bytes of each of many lines that share few sets of L1 are read in another pass.
            let unpacked = if text == "bf16[130,20,66]{0,1,2:T(8,128)(2,1)}" { 2 } else { 1 };
            assert_eq!(hops, [1, unpacked], "{text}");
        }
        let (host, image) = (shape.in_host_layout(), &shape);
        for (from, to) in [(&host, image), (image, &host)] {
            check_by_size(from, to, &[(5, 3)]);
        }
    }
}

/// Words of elements below a byte that lie beside each other in host memory are made as they are turned, and taken apart:
/// all at once, whatever is left over in the last word of a row, or where a row has few.
#[test]
fn words_of_narrow_elements_in_one_pass() {
    for text in [
        "s4[256,256]{0,1:T(8,128)(8,1)E(4)}",
        "f4e2m1fn[260,33]{0,1:T(8,128)(8,1)E(4)}",
        "u4[300,12]{0,1:T(8,128)(8,1)E(4)}",
        "u4[300,602]{0,1:T(64,128)(8,1)E(4)}",
        "s4[5,127,30]{1,2,0:T(8,128)(8,1)E(4)}",
        "s4[150,15,129]{0,2,1:T(8,128)(8,1)E(4)}",
        "u4[150,5,16]{0,2,1:T(8,128)(8,1)E(4)}",
        "s2[600,300]{0,1:T(16,128)(16,1)E(2)}",
        "u2[3,140,95]{1,2,0:T(16,128)(16,1)E(2)}",
        "pred[200,610]{0,1:T(32,128)(32,1)E(1)}",
        "pred[4,150,128]{1,2,0:T(32,128)(32,1)E(1)}",
    ] {
        let shape = shape(text);
        for case in [Case::pack(&shape), Case::unpack(&shape)] {
            case.check_all();
        }
        for padding in [Padding::Keep, Padding::Byte(0x5a)] {
            check_padding(&Case::pack(&shape), padding);
        }
        if Tier::best().name() == "avx512" {
            let plans =
                [Plan::pack(&shape), Plan::unpack(&shape)].map(|plan| plan.unwrap().explain());
            assert_eq!(plans.each_ref().map(|plan| plan.hops), [1, 1], "{text}");
            for (plan, op) in plans.iter().zip(["-transpose32", "transpose32-widen"]) {
                let has_op = plan.parts.iter().any(|part| part.op.to_string().contains(op));
                assert!(has_op, "{text}: {plan}");
            }
        }
        let (host, image) = (shape.in_host_layout(), &shape);
        for (from, to) in [(&host, image), (image, &host)] {
            check_by_size(from, to, &[(5, 3)]);
        }
    }
}

/// A row that is alone in its words is taken out of them, or of whole words, as the rows of whole words are.
#[test]
fn rows_alone_in_their_words() {
    for text in [
        "bf16[1,4096]{1,0:T(8,128)(2,1)}",
        "u8[1,300]{1,0:T(4,128)(4,1)}",
        "bf16[101,999]{1,0:T(8,128)(2,1)}",
        "u8[33,130]{1,0:T(32,128)(4,1)}",
    ] {
        let shape = shape(text);
        Case::unpack(&shape).check_all();
        let explanation = Plan::unpack(&shape).unwrap().explain();
        for part in &explanation.parts {
            let op = part.op.to_string();
            assert!(op.starts_with("deinterleave"), "{text}: {op}");
            assert!(!op.starts_with("deinterleave-columns"), "{text}: {op}");
        }
    }
}

/// Tiles that scratch memory has no room for are no reason to give up loops.
#[test]
fn tiles_larger_than_scratch_memory() {
    for text in ["f32[3,250,100]{1,2,0:T(256,128)}", "u8[3,130,200]{1,2,0:T(64,1000)}"] {
        let shape = shape(text);
        Case::pack(&shape).check_all();
        for streaming in [false, true] {
            let plan = PlanBuilder::new().streaming(streaming).pack(&shape).unwrap();
            assert_eq!(plan.explain().slow, None, "{text}: {}", plan.explain());
        }
    }
}

/// Past the caches, the padding behind what a transpose makes goes through scratch memory with it.
#[test]
fn padding_with_what_is_before_it() {
    for text in [
        "bf16[5,24,31,3]{0,3,2,1:T(4,128)(2,1)}",
        "bf16[7,100,17,48]{1,3,2,0:T(8,128)(2,1)}",
        "u8[5,120,33,17]{2,1,3,0:T(8,128)(4,1)}",
        "f32[9,40,70]{0,1,2:T(8,128)}",
    ] {
        let shape = shape(text);
        Case::pack(&shape).check_all();
        let builder = PlanBuilder::new().streaming(true);
        let explanation = builder.clone().pack(&shape).unwrap().explain();
        assert!(!explanation.streaming || explanation.hops == 2, "{explanation}");
        for byte in [0xb7, 0] {
            let case = Case::pack(&shape);
            let mask = element_mask(&case.to);
            let expected = case.expected.iter().zip(&mask).map(|(b, mask)| b & mask | byte & !mask);
            let plan = builder.clone().padding(Padding::Byte(byte)).pack(&shape).unwrap();
            case.check_plan(&plan, &expected.collect::<Vec<u8>>(), (3, 0), 0xee);
        }
    }
}

/// Matrices with less on one side than a vector has.
#[test]
fn narrow_matrices() {
    for element_type in ["u8", "bf16", "f32", "c64"] {
        for short in [2, 3, 5, 7, 9, 12, 15] {
            for long in [15, 64, 65, 1000, 2100] {
                for dims in [[short, long], [long, short]] {
                    let text = format!("{element_type}{dims:?}").replace(' ', "");
                    let swapped = shape(&format!("{text}{{0,1}}"));
                    Case::new(&shape(&text), &swapped).check_all();
                }
            }
        }
        // Matrices within others, whose rows or columns do not go on.
        for text in ["[9,70,3]{1,0,2}", "[3,5,130]{1,2,0}", "[4,3,100]{1,2,0}", "[100,3,4]{1,0,2}"]
        {
            let to = shape(&format!("{element_type}{text}"));
            Case::pack(&to).check_all();
            Case::unpack(&to).check_all();
        }
    }
}

/// Points and images of few columns, as XLA lays them out on a TPU: alone, in tiles that are not whole, and as parts of larger
/// arrays; with every kind of padding.
#[test]
fn dense_matrices() {
    let mut kernels = HashSet::new();
    for (element_type, words) in [("u8", "(4,1)"), ("bf16", "(2,1)"), ("f32", "")] {
        for columns in [2, 3, 4, 5, 6, 7, 8, 9, 14] {
            let high = if columns > 4 { 8 } else { 4 };
            for text in [
                format!("[128,{columns}]{{0,1:T({high},128){words}}}"),
                format!("[300,{columns}]{{0,1:T({high},128){words}}}"),
                format!("[2,140,{columns}]{{1,2,0:T({high},128){words}}}"),
                format!("[2,8,130,{columns}]{{2,1,3,0:T(8,128){words}}}"),
                format!("[1,7,96,{columns}]{{2,1,3,0:T(8,128){words}}}"),
            ] {
                let shape = shape(&format!("{element_type}{text}"));
                Case::pack(&shape).check_all();
                Case::unpack(&shape).check_all();
                for plan in [Plan::pack(&shape), Plan::unpack(&shape)] {
                    kernels.extend(plan.unwrap().explain().parts.iter().map(|p| p.op.to_string()));
                }
                for padding in [Padding::Keep, Padding::Byte(0x5a)] {
                    check_padding(&Case::pack(&shape), padding);
                }
            }
        }
    }
    // Rows that end in padding where words are taken apart.
    let (from, to) = ("u8[100,3]{0,1:T(4,128)(4,1)}", "u8[100,3]{1,0:T(128,3)}");
    Case::new(&shape(from), &shape(to)).check_all();
    if Tier::best() > Tier::PORTABLE {
        for expected in [
            "interleave2x16-transpose32",
            "interleave4x8-transpose32",
            "transpose32-deinterleave2x16",
            "transpose32-deinterleave4x8",
            "interleave-columns2x16",
            "interleave-columns4x8",
            "deinterleave-columns2x16",
            "deinterleave-columns4x8",
        ] {
            assert!(kernels.contains(expected), "{expected} is not among {kernels:?}");
        }
    }
}

/// Packs with padding that is kept, or another byte, beside the elements that the oracle packs.
fn check_padding(case: &Case, padding: Padding) {
    let mask = element_mask(&case.to);
    let before = match padding {
        Padding::Byte(byte) => byte,
        _ => 0x77,
    };
    let expected: Vec<u8> =
        case.expected.iter().zip(&mask).map(|(&e, &m)| e & m | before & !m).collect();
    for tier in Tier::available() {
        for streaming in [false, true] {
            let builder = PlanBuilder::new().tier(tier).streaming(streaming).padding(padding);
            let plan = builder.between(&case.from, &case.to).unwrap();
            case.check_plan(&plan, &expected, (0, 0), 0x77);
        }
    }
}

/// Transposes of every width, around the elements of a vector.
#[test]
fn swapped_dimensions() {
    for element_type in ["u8", "bf16", "f32", "c64", "c128"] {
        for (rows, columns) in [
            (1, 5),
            (3, 3),
            (4, 4),
            (7, 9),
            (8, 8),
            (15, 17),
            (16, 16),
            (17, 33),
            (31, 64),
            (65, 34),
            (64, 64),
            (63, 65),
        ] {
            for layout in ["{0,1}", "{0,1:T(8,16)}", "{1,0:T(8,16)(8,1)}", "{0,1:T(4,8)(1,8)}"] {
                let shape = shape(&format!("{element_type}[{rows},{columns}]{layout}"));
                Case::pack(&shape).check_all();
                Case::unpack(&shape).check_all();
            }
        }
    }
}

/// Of several panels in both directions.
#[test]
fn large_swapped_dimensions() {
    for text in [
        "u8[513,130]{0,1}",
        "bf16[513,130]{0,1}",
        "f32[513,130]{0,1}",
        "c64[300,200]{0,1}",
        "f32[520,140]{0,1:T(8,128)}",
        "bf16[520,300]{0,1:T(8,128)(2,1)}",
        "s8[300,520]{0,1:T(8,128)(4,1)}",
        "u8[130,9,300]{1,2,0}",
        // Images side by side, pixel by pixel, and filters.
        "f32[133,5,32,3]{0,2,3,1:T(8,128)}",
        "u8[70,3,30,5]{0,2,3,1:T(8,128)}",
        "f32[20,70,3,3]{1,0,3,2:T(8,128)}",
        // Beyond the near caches: other orders.
        "u8[1290,1300]{0,1}",
        "f32[700,610]{0,1}",
    ] {
        for case in [Case::pack(&shape(text)), Case::unpack(&shape(text))] {
            for tier in Tier::available() {
                for stream in [false, true] {
                    case.check(PlanBuilder::new().tier(tier).streaming(stream), (0, 32), 0xee);
                }
            }
        }
    }
}

/// Where the size decides which stores a plan uses, and in which order. The scalar tier,
/// which knows nothing of that, says what has to come out.
fn check_by_size(from: &Shape, to: &Shape, addresses: &[(usize, usize)]) {
    let source = noise(from.sizes().unwrap().image_bytes, 0);
    let scalar = PlanBuilder::new().tier(Tier::SCALAR).between(from, to).unwrap();
    let expected = scalar.run_to_vec(&source).unwrap();
    let case = Case { from: from.clone(), to: to.clone(), source, expected };
    for tier in Tier::available() {
        for &ahead in addresses {
            case.check(PlanBuilder::new().tier(tier), ahead, 0xee);
        }
    }
    let plan = Plan::between(from, to).unwrap();
    for most in [1 << 20, case.expected.len() as u64 / 7 + 1] {
        check_chunks(&plan, &case, most);
    }
    let mut by_two = vec![0xee; case.expected.len()];
    plan.run_with(&Scoped(2), &case.source, &mut by_two).unwrap();
    assert!(by_two == case.expected, "by two threads: {}", plan.explain());
}

/// Runs a plan in chunks of so many bytes at most.
fn check_chunks(plan: &Plan, case: &Case, most: u64) {
    let mut in_chunks = vec![0xee; case.expected.len()];
    for chunk in plan.chunks(most) {
        let Range { start, end } = chunk.destination();
        chunk.run(&case.source, &mut in_chunks[start as usize..end as usize]).unwrap();
    }
    assert!(in_chunks == case.expected, "in chunks of {most}: {}", plan.explain());
}

/// Whether a size makes plans write past the caches, where the tier can.
fn check_streaming(from: &Shape, to: &Shape, expected: bool) {
    for tier in Tier::available() {
        let can = cfg!(target_arch = "x86_64") && tier != Tier::SCALAR;
        let plan = PlanBuilder::new().tier(tier).between(from, to).unwrap();
        assert_eq!(plan.explain().streaming, expected && can, "{from} to {to}, {tier}");
    }
}

/// Columns of less than a few lines, of which no whole number begins with one: streamed where some hundreds follow each
/// other before the next ones are elsewhere, but not where two or eight do.
#[test]
fn columns_that_follow_each_other_for_a_while() {
    let swapped = shape("c64[6,5,104,704]{0,3,1,2}");
    check_streaming(&swapped.in_host_layout(), &swapped, true);
    check_by_size(&swapped.in_host_layout(), &swapped, &[(0, 0), (3, 36)]);
    for text in ["bf16[64,65,8,10,10]{1,2,4,3,0:T(8,128)(2,1)}", "c64[256,64,8,10]{2,0,1,3}"] {
        check_streaming(&shape(text), &shape(text).in_host_layout(), false);
    }
}

/// Of so many bytes blocks are written through the caches, in the order of the destination.
#[test]
fn blocks_in_the_order_of_the_destination() {
    for text in [
        "f32[1290,1300]{1,0:T(8,128)}",
        "f32[61,9000]{1,0:T(8,128)}",
        "bf16[810,790]{1,0:T(8,128)(2,1)}",
        "s8[2528,2560]{1,0:T(32,128)(4,1)}",
        "f32[1650001]{0:T(1024)}",
    ] {
        let (host, image) = (shape(text).in_host_layout(), shape(text));
        for (from, to) in [(&host, &image), (&image, &host)] {
            check_streaming(from, to, false);
            check_by_size(from, to, &[(0, 0), (3, 36)]);
        }
    }
}

/// Whether the CPU is one of AMD of family 0x17 or 0x19, whose L2 has few ways: crowded columns are made
/// apart there and not streamed.
fn is_up_to_zen4() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let is_of_amd = std::arch::x86_64::__cpuid(0).ebx == u32::from_le_bytes(*b"Auth");
        let signature = std::arch::x86_64::__cpuid(1).eax;
        // Base family 15, and the extended family 8 or 10.
        is_of_amd && [0x8f, 0xaf].contains(&(signature >> 16 & 0xff0 | signature >> 8 & 0xf))
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Whether it is one of Zen 3 with more of L3 for a core, which streams from 26 MiB on, whole runs from 19, transposes from
/// 14.
fn is_zen3() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let model = std::arch::x86_64::__cpuid(1).eax >> 12 & 0xf0;
        let is_19 = std::arch::x86_64::__cpuid(1).eax >> 20 & 0xff == 0xa;
        is_up_to_zen4() && is_19 && [0, 0x20, 0x30].contains(&model)
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Whether vectors are lines, on a core on which transposes of elements of 16 bits past the caches need no second pass.
fn goes_by_lines(tier: Tier) -> bool {
    tier.vector_bytes() >= 64 && relayout_kernels::Core::here() == relayout_kernels::Core::Zen5
}

/// Of so many bytes some pages are written through the caches, others past them.
#[test]
fn pages_through_the_caches_and_past_them() {
    for text in [
        "f32[1490,1500]{1,0:T(8,128)}",
        "f32[1496,1536]{1,0:T(8,128)}",
        "c64[1030,1040]{1,0:T(8,128)}",
        "bf16[2110,2070]{1,0:T(8,128)(2,1)}",
        "bf16[2112,2048]{1,0:T(8,128)(2,1)}",
        "bf16[4300001]{0:T(1024)(128)(2,1)}",
        "s8[2930,2970]{1,0:T(8,128)(4,1)}",
        "s8[2944,2944]{1,0:T(32,128)(4,1)}",
        // Long runs, in pieces with a rest.
        "f32[2150001]{0:T(1024)}",
        "f32[3,720001]{1,0:T(1,128)}",
    ] {
        let (host, image) = (shape(text).in_host_layout(), shape(text));
        for (from, to) in [(&host, &image), (&image, &host)] {
            check_streaming(from, to, !is_zen3());
            check_by_size(from, to, &[(0, 0), (3, 0), (0, 36)]);
        }
    }
}

/// Transposes that L1 and L2 have no room for, and where few sets of these are for all. With columns
/// at a power of two it goes by the CPU.
#[test]
fn swapped_dimensions_within_l3() {
    for (from, to, streams) in [
        ("f32[800,610]", "f32[800,610]{0,1}", false),
        ("f32[512,512]", "f32[512,512]{0,1}", false),
        ("f32[1000,700]", "f32[1000,700]{0,1}", false),
        ("f32[1024,700]", "f32[1024,700]{0,1}", !is_up_to_zen4()),
        ("u8[4096,180]", "u8[4096,180]{0,1}", false),
        ("f32[1300,1250]", "f32[1300,1250]{0,1}", false),
        ("f32[1312,1250]", "f32[1312,1250]{0,1}", !is_zen3()),
        ("f32[1600,1550]", "f32[1600,1550]{0,1}", true),
        ("bf16[1024,600]", "bf16[1024,600]{0,1:T(8,128)(2,1)}", false),
    ] {
        let (from, to) = (shape(from), shape(to));
        let plan = PlanBuilder::new().tier(Tier::best()).between(&from, &to).unwrap();
        let can = cfg!(target_arch = "x86_64") && Tier::best() != Tier::PORTABLE;
        assert!(!can || plan.explain().streaming == streams, "{}", plan.explain());
        check_by_size(&from, &to, &[(0, 0), (3, 36)]);
    }
}

/// Transposes that the caches have no room for.
#[test]
fn swapped_dimensions_beyond_the_caches() {
    for (from, to) in [
        ("f32[2531,2510]", "f32[2531,2510]{0,1}"),
        ("f32[2560,2512]", "f32[2560,2512]{0,1}"),
        ("c64[1770,1809]", "c64[1770,1809]{0,1}"),
        ("bf16[3570,3541]", "bf16[3570,3541]{0,1}"),
        ("u8[5011,5050]", "u8[5011,5050]{0,1}"),
        // From L3, columns of whole lines.
        ("u8[2944,2890]", "u8[2944,2890]{0,1}"),
        ("bf16[2016,2081]", "bf16[2016,2081]{0,1}"),
        ("u8[31,900,930]", "u8[31,900,930]{1,2,0}"),
        ("f32[2500,2600]", "f32[2500,2600]{0,1:T(8,128)}"),
        ("s8[5100,5000]{0,1:T(8,128)(4,1)}", "s8[5100,5000]"),
        ("bf16[3580,3600]{0,1:T(8,128)(2,1)}", "bf16[3580,3600]{1,0:T(8,128)(2,1)}"),
    ] {
        check_by_size(&shape(from), &shape(to), &[(0, 0), (3, 36)]);
    }
}

/// Runs of few vectors of any tier, fewer of them in a line than are fetched ahead, and more.
#[test]
fn runs_of_few_vectors() {
    let short = [16, 48, 64, 128, 192, 256, 448, 512].map(|bytes| (7, 9, bytes));
    for (lines, blocks, bytes) in short.into_iter().chain([(2, 600, 64), (2, 150, 256)]) {
        let from = format!("u8[{lines},{blocks},{bytes}]");
        let (from, to) = (shape(&from), shape(&format!("{from}{{2,0,1}}")));
        Case::new(&from, &to).check_all();
        Case::new(&to, &from).check_all();
    }
}

/// What reviews and fuzzing found, each with its shape.
#[test]
fn finds() {
    for text in [
        // A bound of 1 with padding behind it, in eight lines: the second turn
        // over every other block began outside of the only one.
        "f32[8,1,100]{2,1,0:T(8,128)}",
        "f32[8,1,100]{2,1,0:T(2,128)}",
        "bf16[8,1,100]{2,1,0:T(2,128)(2,1)}",
    ] {
        Case::pack(&shape(text)).check_all();
        Case::unpack(&shape(text)).check_all();
    }
    // Pieces that begin within a byte.
    let (from, to) = ("s4[40,250]{1,0:T(8,125)E(4)}", "s4[40,250]{1,0:T(8,128)E(4)}");
    let case = Case::new(&shape(from), &shape(to));
    case.check_all();
    assert_eq!(Plan::between(&case.from, &case.to).unwrap().explain().slow, None);
}

/// Shapes for which a plan could have any number of parts.
#[test]
fn absurd_shapes_have_small_plans() {
    for text in [
        "f8e5m2[1905,1395]{1,0:T(2,6,6,1,*,3,7,1,*,3,*,*,1,7,9,6,6,2,3,*,5,6,*,2)(7,4,2)(5,4,5)(9,6)}",
        "u32[1022]{0:T(1)(2)(8,9,*,6,7,5,4,*,*,8,9,3,3,*,3,2,1,9,1,5,6,7)}",
        "u8[4611686018427387904]{0:T(3)}",
        "u8[1]{0:T(4611686018427387904)}",
        "u8[0,9223372036854775807]{1,0}",
        "pred[9223372036854775800]{0:T(8)E(1)}",
        "f32[3,3]{1,0:T(9223372036854775,128)}",
    ] {
        for plan in [Plan::pack(&shape(text)), Plan::unpack(&shape(text))].into_iter().flatten() {
            assert!(plan.explain().to_string().len() < 1 << 20, "{text}");
        }
    }
}

#[test]
fn every_address() {
    for text in [
        "f32[9,130]{1,0:T(8,128)}",
        "bf16[9,130]{1,0:T(8,128)(2,1)}",
        "s8[9,130]{1,0:T(8,128)(4,1)}",
        "pred[33,130]{1,0:T(32,128)(32,1)E(1)}",
        "f32[17,20]{0,1}",
    ] {
        for case in [Case::pack(&shape(text)), Case::unpack(&shape(text))] {
            for tier in Tier::available() {
                let builder = PlanBuilder::new().tier(tier).streaming(true);
                let plan = builder.between(&case.from, &case.to).unwrap();
                for source in 0..64 {
                    for destination in 0..64 {
                        // All of each side, and a good part of the pairs.
                        if (source * 7 + destination) % 5 == 0 {
                            let poison = if source % 2 == 0 { 0xee } else { 0x11 };
                            case.check_plan(&plan, &case.expected, (source, destination), poison);
                        }
                    }
                }
            }
        }
    }
}

/// Past the caches, runs that begin within a line of them and go on with each other: along
/// lines of the strip, along its blocks, in more of them than lines are kept for, with rows
/// missing, with rows and tiles that do not end where lines do, and of transposes.
#[test]
fn runs_that_begin_within_lines() {
    for text in [
        "f32[16,640]{1,0:T(8,128)}",
        "f32[9,645]{1,0:T(8,128)}",
        "f32[8,4608]{1,0:T(8,128)}",
        "bf16[24,1027]{1,0:T(8,128)(2,1)}",
        "bf16[13,900]{1,0:T(8,128)(2,1)}",
        "f32[21,100]{1,0:T(8,128)}",
        "f32[16,300]{1,0:T(8,128)}",
        "f32[9,200]{1,0:T(8,128)}",
        "bf16[41,100]{1,0:T(8,128)(2,1)}",
        "bf16[19,300]{1,0:T(8,128)(2,1)}",
        "bf16[2,24,200]{2,1,0:T(8,128)(2,1)}",
        "bf16[17,287]{1,0:T(8,128)(2,1)}",
        "s8[70,1000]{1,0:T(32,128)(4,1)}",
        "s8[16,33000]{1,0:T(8,128)(4,1)}",
        "s8[7,1500]{1,0:T(8,128)(4,1)}",
        // Rows side by side: last columns of less than a line, of a line and some, few rows.
        "s8[70,300]{1,0:T(32,128)(4,1)}",
        "s8[21,2192]{1,0:T(8,128)(4,1)}",
        "s8[11,2249]{1,0:T(8,128)(4,1)}",
        "s8[3,9,1041]{2,1,0:T(8,128)(4,1)}",
        "bf16[27,1040]{1,0:T(8,128)(2,1)}",
        "bf16[9,1697]{1,0:T(8,128)(2,1)}",
        "s8[24,1024]{1,0:T(8,32)(8,1)}",
        "f32[5000]{0:T(1024)}",
        "bf16[9000]{0:T(1024)(128)(2,1)}",
        "bf16[3,8,512]{2,1,0:T(8,128)(2,1)}",
        "bf16[1040,256]{1,0:T(1024,128)(2,1)}",
        "f32[5,6,60,64]{3,2,0,1:T(8,128)}",
        // Rows that no other row goes on with in a call.
        "f32[9,5,201]{2,0,1:T(8,128)}",
        "bf16[17,6,200]{2,0,1:T(8,128)(2,1)}",
        "s8[18,6,200]{2,0,1:T(8,128)(4,1)}",
        "s8[35,3,224]{2,0,1:T(32,128)(4,1)}",
        "u4[19,5,400]{2,0,1:T(8,128)(8,1)E(4)}",
        "f32[9,5,258]{2,0,1:T(8,255)}",
        "f32[9,5,259]{2,0,1:T(8,256)}",
        "bf16[18,5,515]{2,0,1:T(8,511)(2,1)}",
        "bf16[18,5,517]{2,0,1:T(8,512)(2,1)}",
        "f32[130,301]{0,1:T(8,128)}",
        "bf16[150,411]{0,1:T(8,128)(2,1)}",
        "s8[270,303]{0,1:T(8,128)(4,1)}",
        "u8[201,333]{0,1}",
        "bf16[150,235]{0,1}",
        "c64[77,201]{0,1}",
        "f32[3,70,5,61]{1,2,0,3}",
        // Bits: rows of less than a line, of a few, of which some are left over.
        "pred[70,50]{1,0:T(32,128)(32,1)E(1)}",
        "pred[37,500]{1,0:T(32,128)(32,1)E(1)}",
        "s4[19,300]{1,0:T(8,128)(8,1)E(4)}",
        "s2[35,1000]{1,0:T(16,128)(16,1)E(2)}",
    ] {
        for case in [Case::pack(&shape(text)), Case::unpack(&shape(text))] {
            for tier in Tier::available() {
                let builder = PlanBuilder::new().tier(tier).streaming(true);
                let plan = builder.between(&case.from, &case.to).unwrap();
                for (i, address) in [0, 1, 2, 8, 16, 33, 60, 63].into_iter().enumerate() {
                    let poison = if i % 2 == 0 { 0xee } else { 0x11 };
                    case.check_plan(&plan, &case.expected, (5 * i, address), poison);
                }
            }
        }
    }
}

/// Past the caches, runs whose padding begins anywhere within a line of them.
#[test]
fn padding_that_begins_within_lines() {
    for (element_type, tiles) in [
        ("f32", "T(8,128)"),
        ("f32", "T(8,100)"),
        ("bf16", "T(8,128)(2,1)"),
        ("s8", "T(8,128)(4,1)"),
        ("s8", "T(32,128)(4,1)"),
        ("u8", "T(2,128)"),
    ] {
        for columns in (1..=33).chain(60..=68).chain(95..=128).chain([130, 300]) {
            let case = Case::pack(&shape(&format!("{element_type}[9,{columns}]{{1,0:{tiles}}}")));
            for tier in Tier::available() {
                let builder = PlanBuilder::new().tier(tier).streaming(true);
                let plan = builder.between(&case.from, &case.to).unwrap();
                for (address, poison) in [(0, 0xee), (16, 0x11), (32, 0xee), (7, 0x11)] {
                    case.check_plan(&plan, &case.expected, (columns % 64, address), poison);
                }
            }
        }
    }
}

/// Past the caches, the last columns of a row are written with those before them.
#[test]
fn last_columns_go_with_those_before_them() {
    for (text, last) in [
        ("f32[16,300]{1,0:T(8,128)}", 176),
        ("f32[9,200]{1,0:T(8,128)}", 288),
        ("bf16[19,300]{1,0:T(8,128)(2,1)}", 44),
        // Not those of whole tiles, and not in other plans.
        ("f32[16,256]{1,0:T(8,128)}", 0),
        ("f32[16,300]{0,1:T(8,128)}", 0),
        // Nor what is shorter than a line.
        ("f32[16,271]{1,0:T(8,128)}", 0),
        ("bf16[19,271]{1,0:T(8,128)(2,1)}", 0),
        ("s8[19,271]{1,0:T(8,128)(4,1)}", 0),
    ] {
        for tier in Tier::available() {
            let builder = PlanBuilder::new().tier(tier);
            let streams = builder.clone().streaming(true).unpack(&shape(text)).unwrap().explain();
            let found = streams.parts.iter().map(|part| part.last_columns).max();
            let expected = if streams.streaming { last } else { 0 };
            assert_eq!(found, Some(expected), "{text}, {tier}: {streams}");
            let ordinary = builder.streaming(false).unpack(&shape(text)).unwrap().explain();
            assert!(ordinary.parts.iter().all(|part| part.last_columns == 0), "{ordinary}");
        }
    }
    // Where rows are made side by side, a line of words is enough.
    for text in ["bf16[19,272]{1,0:T(8,128)(2,1)}", "s8[19,272]{1,0:T(8,128)(4,1)}"] {
        for tier in Tier::available() {
            let builder = PlanBuilder::new().tier(tier).streaming(true);
            let plan = builder.unpack(&shape(text)).unwrap().explain();
            let found = plan.parts.iter().map(|part| part.last_columns).max();
            let expected = if tier.name() == "avx512" { 16 } else { 0 };
            assert_eq!(found, Some(expected), "{text}, {tier}: {plan}");
        }
    }
}

#[test]
fn padding_is_zero_or_kept_or_a_byte() {
    for text in [
        "f32[9,130]{1,0:T(8,128)}",
        "bf16[9,130]{1,0:T(8,128)(2,1)}",
        "s8[5,9]{1,0:T(8,128)(4,1)}",
        "pred[33,130]{1,0:T(32,128)(32,1)E(1)}",
        "s4[5,5,3]{0,2,1:T(4,4)(8,1)E(4)}",
        "u2[3]{0:E(2)}",
        "u4[5,7]{1,0:T(*,4)(3)E(4)}",
        "bf16[]{:T(256)}",
    ] {
        let mut case = Case::pack(&shape(text));
        let zeros = case.expected.clone();
        let mask = element_mask(&case.to);
        let with = |byte: u8| -> Vec<u8> {
            zeros.iter().zip(&mask).map(|(b, mask)| b & mask | byte & !mask).collect()
        };
        for tier in Tier::available() {
            let builder = PlanBuilder::new().tier(tier);
            for poison in [0xee, 0x11] {
                case.expected = with(0xb7);
                case.check(builder.clone().padding(Padding::Byte(0xb7)), (0, 0), poison);
                case.expected = with(poison);
                case.check(builder.clone().padding(Padding::Keep), (0, 0), poison);
                case.expected = zeros.clone();
                case.check(builder.clone().padding(Padding::Zero), (0, 0), poison);
            }
        }
    }
}

#[test]
fn buffers_of_another_length_are_refused_untouched() {
    for text in ["bf16[9,130]{1,0:T(8,128)(2,1)}", "u8[8,8]{1,0:T(4,4)(*,6)}", "u8[0,3]{1,0}"] {
        let shape = shape(text);
        let sizes = shape.sizes().unwrap();
        let (host, image) = (sizes.host_bytes as usize, sizes.image_bytes as usize);
        for tier in Tier::available() {
            let plan = PlanBuilder::new().tier(tier).pack(&shape).unwrap();
            for (host, image) in
                [(host + 1, image), (host.saturating_sub(1), image + 1), (host, image + 1), (0, 0)]
            {
                if (host, image) == (sizes.host_bytes as usize, sizes.image_bytes as usize) {
                    continue;
                }
                let mut destination = vec![0xee; image];
                plan.run(&vec![1; host], &mut destination).unwrap_err();
                assert!(destination.iter().all(|&b| b == 0xee), "{text}");
            }
            let mut destination = vec![0xee; image];
            plan.run(&vec![1; host], &mut destination).unwrap();
        }
    }
}

#[test]
fn plans_can_be_shared_between_threads() {
    fn is_shared<T: Send + Sync + 'static>(_: &T) {}
    let plan = Plan::pack(&shape("f32[16,256]{1,0:T(8,128)}")).unwrap();
    is_shared(&plan);
}

proptest! {
    #[test]
    fn random_layouts(bytes in arb_bytes(), addresses in any::<(usize, usize)>()) {
        let choices = &mut Choices::new(&bytes);
        let from = small_shape(choices, 4000);
        let to = another_layout(choices, &from, 4000);
        for case in [Case::new(&from, &to), Case::pack(&to), Case::unpack(&from)] {
            for tier in Tier::available() {
                let builder = PlanBuilder::new().tier(tier).streaming(addresses.0 % 2 == 0);
                case.check(builder.clone(), addresses, 0xee);
                case.check(builder, (0, 0), 0x11);
            }
        }
    }

    #[test]
    fn any_layout_to_any(bytes in arb_bytes()) {
        differential(&mut Choices::new(&bytes));
    }

    #[test]
    fn there_and_back(bytes in arb_bytes()) {
        roundtrip(&mut Choices::new(&bytes));
    }
}
