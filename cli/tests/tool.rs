//! The tool as its users meet it: commands, files, exit codes.

mod common;

use std::fs;

use assert_cmd::Command;
use common::{Scratch, data, fails, npy, numpy, ok, relayout_with};
use relayout::{Shape, oracle};
use serde_json::Value;

/// The image of host bytes, by the library.
fn image(text: &str, host: &[u8]) -> Vec<u8> {
    let shape: Shape = text.parse().unwrap();
    let mut image = vec![0; shape.sizes().unwrap().image_bytes as usize];
    oracle::pack(&shape, host, &mut image).unwrap();
    image
}

// parse

#[test]
fn parse_answers_a_line_for_a_line() {
    let texts = "F32[3,5]{1,0:(2,2)}\n\nf32[3\n{1,0:T(∗,128)}\r\n(s8[], token[])";
    for arguments in [&["parse", "-"][..], &["parse"]] {
        let answers = relayout_with(arguments, texts);
        assert_eq!(answers.code, 0, "{}", answers.stderr);
        let answers = answers.json();
        assert_eq!(answers.len(), 5);
        assert_eq!(answers[0]["canonical"], "f32[3,5]{1,0:T(2,2)}");
        assert_eq!((&answers[1]["ok"], &answers[1]["at"]), (&false.into(), &0.into()));
        assert_eq!((&answers[2]["text"], &answers[2]["at"]), (&"f32[3".into(), &5.into()));
        assert_eq!(answers[3]["canonical"], "{1,0:T(*,128)}");
        assert_eq!(answers[4]["canonical"], "(s8[], token[])");
    }
    assert_eq!(ok(&["parse", "/* a */ {0:T(2)}"]).json()[0]["canonical"], "{0:T(2)}");
    assert_eq!(ok(&["parse", "/* a */ {0:T(0)}"]).json()[0]["at"], 13);
    let line = ok(&["parse", "f32[2]"]);
    assert_eq!(line.text(), "{\"text\":\"f32[2]\",\"ok\":true,\"canonical\":\"f32[2]{0}\"}\n");
}

#[test]
fn parse_gives_the_corpus_its_canonical_texts() {
    let corpus = fs::read_to_string(data("xla_text_ok.jsonl")).unwrap();
    let cases: Vec<Value> = corpus.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let texts: Vec<&str> = cases.iter().map(|case| case["text"].as_str().unwrap()).collect();
    let answers = relayout_with(&["parse", "-"], texts.join("\n")).json();
    assert_eq!(answers.len(), cases.len());
    for (answer, case) in answers.iter().zip(&cases) {
        assert_eq!(answer["canonical"], case["canonical"]);
    }
}

#[test]
fn parse_survives_what_is_not_utf_8() {
    let answers = relayout_with(&["parse", "-"], b"f32[\xff]\nf32[1]\n".to_vec());
    let answers = answers.json();
    assert_eq!((&answers[0]["ok"], &answers[1]["ok"]), (&false.into(), &true.into()));
}

// explain

#[test]
fn explain_has_all_keys_in_their_order() {
    let line = ok(&["explain", "--json", "f32[3,5]{0,1:T(2,2)}"]);
    assert_eq!(
        line.text(),
        concat!(
            r#"{"shape":"f32[3,5]{0,1:T(2,2)}","element_bits":32,"elements":15,"#,
            r#""image_elements":24,"image_bytes":96,"array_size_bytes":96,"data_bytes":60,"#,
            r#""padding_ratio":1.6,"physical_dims":[5,3],"steps":[{"transpose_by":[1,0]},"#,
            r#"{"pad_to":[6,4]},{"reshape_to":[3,2,2,2]},{"transpose_by":[0,2,1,3]}],"#,
            r#""warnings":[]}"#,
            "\n"
        )
    );
}

#[test]
fn bench_groups_have_names_and_sizes_of_their_own() {
    let outcome = relayout_with(&["bench", "--group", "swopped"], "");
    assert_eq!((outcome.code, outcome.text()), (2, ""));
    assert!(outcome.stderr.contains("tiled-to-tiled"), "{}", outcome.stderr);
    let outcome = relayout_with(&["bench", "--group", "permute", "--size", "8M"], "");
    assert_eq!((outcome.code, outcome.text()), (2, ""));
    assert!(outcome.stderr.contains("--size is for the formats"), "{}", outcome.stderr);
}

#[test]
fn layout_tells_what_a_tpu_gives_and_what_is_next() {
    let text = ok(&["layout", "bf16[1000,3]", "--chip", "v5e"]);
    let lines: Vec<&str> = text.text().lines().collect();
    assert_eq!(lines[0], "bf16[1000,3]{0,1:T(4,128)(2,1)}");
    assert!(lines[1].contains("8,192 bytes, of which 2,192 are padding"), "{}", lines[1]);
    assert!(lines[2].contains("{1,0:T(8,128)(2,1)}: 256,000 bytes"), "{}", lines[2]);

    let shapes = "f32[100,30]{1,0:T(2,2)}\n\nf32[3\ns8[]\n";
    let outcome = relayout_with(&["layout", "--chip", "TPU7x", "--json", "-"], shapes);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("line 3"), "{}", outcome.stderr);
    let lines: Vec<Value> =
        outcome.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["shape"], "f32[100,30]{0,1:T(8,128)}");
    assert_eq!(lines[0]["chip"], "7x");
    assert_eq!(lines[0]["image_bytes"], 32 * 128 * 4);
    assert_eq!(lines[0]["runner_up"]["shape"], "f32[100,30]{1,0:T(8,128)}");
    assert_eq!(lines[0]["runner_up"]["image_bytes"], 104 * 128 * 4);
    assert_eq!(lines[1]["shape"], "s8[]{:T(512)}");
    assert_eq!(lines[1]["runner_up"], Value::Null);

    let outcome = relayout_with(&["layout", "--chip", "v5e", "f64[3]", "f32[?,3]"], "");
    assert_eq!((outcome.code, outcome.text()), (2, ""));
    assert!(outcome.stderr.contains("f64"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("dimension 0 has no bound"), "{}", outcome.stderr);
    let outcome = relayout_with(&["layout", "--chip", "v8", "f32[3]"], "");
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("v5p"), "{}", outcome.stderr);
}

#[test]
fn explain_takes_many_shapes_and_goes_on_after_a_bad_one() {
    let shapes = "bf16[16,128]{1,0:T(8,128)(2,1)}\nf32[?]\nu8[\n\ns4[8]{0:E(4)}\n\n";
    let outcome = relayout_with(&["explain", "--json", "pred[]", "-"], shapes);
    assert_eq!(outcome.code, 2);
    let names: Vec<Value> = outcome.json().iter().map(|o| o["shape"].clone()).collect();
    assert_eq!(names, ["pred[]", "bf16[16,128]{1,0:T(8,128)(2,1)}", "s4[8]{0:E(4)}"]);
    assert!(outcome.stderr.contains("line 2: f32[?]: dimension 0 has no bound"));
    assert!(outcome.stderr.contains("line 3: at byte 3:"), "{}", outcome.stderr);
}

#[test]
fn explain_tells_a_person_the_sizes_the_steps_and_the_warnings() {
    let text = ok(&["explain", "f32[8,128]{1,0:T(8,128)(3,1)}"]);
    for part in ["4,608 bytes", "4,096 bytes", "1. reshape to [1, 8, 1, 128]", "warning: the image"]
    {
        assert!(text.text().contains(part), "{part}: {}", text.text());
    }
    assert!(ok(&["explain", "f32[8,128]"]).text().contains("as it is"));
    let tail = ok(&["explain", "--json", "f32[1]{0:T(1)L(9223372036854775807)}"]);
    assert_eq!(tail.json()[0]["array_size_bytes"], Value::Null);
    assert_eq!(tail.json()[0]["warnings"].as_array().unwrap().len(), 1);
}

// index

#[test]
fn index_answers_in_both_directions() {
    let figure_1 = "f32[3,5]{1,0:T(2,2)}";
    assert_eq!(ok(&["index", figure_1, "--at", "2,3"]).text(), "17\n");
    assert_eq!(ok(&["index", figure_1, "--image-element", "17"]).text(), "2,3\n");
    assert_eq!(ok(&["index", figure_1, "--image-element", "19"]).text(), "padding\n");
    assert_eq!(ok(&["index", "bf16[]{:T(256)}", "--at", ""]).text(), "0\n");
    let json = ok(&["index", figure_1, "--at", "2, 3", "--json"]);
    assert_eq!(json.text(), "{\"at\":[2,3],\"image_element\":17,\"bit_offset\":544}\n");

    let all: String = (0..24).map(|k| format!("{k}\n")).collect();
    let answers = relayout_with(&["index", figure_1, "--image-element", "-"], all);
    let elements: Vec<&str> = answers.lines().into_iter().filter(|&l| l != "padding").collect();
    assert_eq!((answers.lines().len(), elements.len()), (24, 15));
    let back = relayout_with(&["index", figure_1, "--at", "-"], elements.join("\n"));
    assert_eq!(back.lines().len(), 15);
}

#[test]
fn index_refuses_what_is_not_there() {
    let figure_1 = "f32[3,5]{1,0:T(2,2)}";
    fails(2, &["index", figure_1, "--at", "2,5"], &["index 5 in dimension 1, whose bound is 5"]);
    fails(2, &["index", figure_1, "--at", "2"], &["1 entries", "2 dimensions"]);
    fails(2, &["index", figure_1, "--at", "-1,0"], &["`-1` is no number"]);
    fails(2, &["index", figure_1, "--image-element", "24"], &["24 elements"]);
    fails(2, &["index", figure_1], &["--at", "--image-element"]);
    fails(2, &["index", figure_1, "--at", "0,0", "--image-element", "0"], &["cannot be used"]);
    let outcome = relayout_with(&["index", figure_1, "--at", "-"], "0,0\nx\n");
    assert_eq!((outcome.code, outcome.text()), (2, "0\n"));
    assert!(outcome.stderr.contains("line 2: `x` is no number"));
}

// draw

#[test]
fn draw_shows_figure_1() {
    let lines = ok(&["draw", "f32[3,5]{1,0:T(2,2)}"]);
    let lines = lines.lines();
    assert_eq!(
        lines[3..7],
        ["│ 0  1│ 4  5│ 8│", "│ 2  3│ 6  7│10│", "│──┼──┼──┼──┼──│", "│12 13│16 17│20│"]
    );
    assert_eq!(lines[13..15], ["│ 4  ·  9  ·│", "│──┼──┼──┼──│"]);
    // Untiled, a row of the image is a row of physical memory.
    let text = ok(&["draw", "u8[3,2]{0,1}"]);
    assert_eq!(text.lines()[8..], ["│0 2 4│", "│1 3 5│"]);
    let colored = ok(&["draw", "f32[3,5]{1,0:T(2,2)}", "--color", "always"]);
    assert!(colored.text().contains("\x1b[48;5;"));
}

#[test]
fn draw_writes_a_picture() {
    let scratch = Scratch::new();
    let path = scratch.path("figure2.svg");
    ok(&["draw", "bf16[4,8]{1,0:T(2,4)(2,1)}", "--svg", &path]);
    let svg = fs::read_to_string(&path).unwrap();
    assert!(svg.starts_with("<svg xmlns="));
    assert_eq!(svg.matches("class=\"cell\"").count(), 64);
    assert!(svg.contains("class=\"subtile\"") && svg.contains("class=\"tile\""));
    fails(1, &["draw", "f32[2]", "--svg", &path], &["exists already", "--force"]);
    ok(&["draw", "f32[<=2]", "--svg", &path, "--force"]);
    assert!(fs::read_to_string(&path).unwrap().contains("f32[&lt;=2]"));
}

#[test]
fn the_picture_in_the_readme_is_what_draw_draws() {
    let svg = ok(&["draw", "bf16[4,8]{1,0:T(2,4)(2,1)}", "--svg", "-"]);
    assert!(svg.text() == fs::read_to_string(data("../../docs/figure2.svg")).unwrap());
}

#[test]
fn draw_cuts_what_is_large_and_says_so() {
    for shape in [
        "bf16[9,5,1000,300]{3,2,1,0:T(8,128)(2,1)}",
        "f32[1099511627776]{0:T(1024)}",
        "u8[1]{0:T(1099511627776)}",
        "u8[1000000007]{0}",
        "f32[8,8]{1,0:T(2,4)(2,1,1,1)}",
        "s4[]{:T(3)}",
        "f32[0,3]",
    ] {
        let text = ok(&["draw", shape]);
        assert!(text.lines().iter().all(|l| l.starts_with("note") || l.chars().count() <= 110));
        assert!(text.text().len() < 60_000, "{shape}");
        ok(&["draw", shape, "--svg", "-"]);
    }
    let text = ok(&["draw", "u8[9,5,1000,300]"]);
    assert!(text.text().contains("note: 4 of 45 slices are drawn"), "{}", text.text());
    assert!(text.text().contains("32 of 1,000 rows"));
}

// pack, unpack, convert

#[test]
fn numpy_files_of_every_form_give_the_same_image() {
    let scratch = Scratch::new();
    let bytes = |f: fn(u8) -> Vec<u8>| (0..60).flat_map(f).collect::<Vec<u8>>();
    let f32_host = bytes(|i| f32::from(i).to_le_bytes().to_vec());
    let bf16_host = bytes(|i| f32::from(i).to_le_bytes()[2..].to_vec());
    let c64_host = bytes(|i| [f32::from(i).to_le_bytes(), f32::from(i % 8).to_le_bytes()].concat());
    let s4_host = bytes(|i| vec![(i % 8).wrapping_sub(4)]);
    let pred_host = bytes(|i| vec![u8::from(i % 8 == 3)]);
    let tiled = "{1,0:T(8,128)}";
    let packed = "{1,0:T(8,128)(2,1)}";
    for (files, element_type, layout, host) in [
        (
            &[
                "f32",
                "f32_big_endian",
                "f32_fortran",
                "f32_fortran_big_endian",
                "f32_version_2",
                "f32_version_3",
            ][..],
            "f32",
            tiled,
            &f32_host,
        ),
        (
            &["bf16", "bf16_raw", "bf16_big_endian", "bf16_unsigned_big_endian"],
            "bf16",
            packed,
            &bf16_host,
        ),
        (&["c64_big_endian"], "c64", tiled, &c64_host),
        (&["s4", "s4_int8"], "s4", "{0,1:T(8,128)(8,1)E(4)}", &s4_host),
        (&["pred"], "pred", "{1,0:T(32,128)(32,1)E(1)}", &pred_host),
    ] {
        let shape = format!("{element_type}[6,10]{layout}");
        for file in files {
            let out = scratch.path(file);
            ok(&["pack", &numpy(file), "--to", &shape, "-o", &out, "--verify"]);
            assert!(fs::read(&out).unwrap() == image(&shape, host), "{file}");
        }
    }
}

#[test]
fn what_is_unpacked_is_what_was_packed() {
    let scratch = Scratch::new();
    for (file, shape, written) in [
        ("f32", "f32[6,10]{0,1:T(8,128)}", "<f4"),
        ("f16", "f16[6,10]{1,0:T(8,128)(2,1)}", "<f2"),
        ("bf16_raw", "bf16[6,10]{1,0:T(8,128)(2,1)}", "|V2"),
        ("f8e4m3fn", "f8e4m3fn[6,10]{1,0:T(8,128)(4,1)}", "|V1"),
        ("f8e5m2", "f8e5m2[6,10]{1,0:T(8,128)(4,1)}", "|V1"),
        ("f4e2m1fn", "f4e2m1fn[6,10]{1,0:T(8,128)(8,1)E(4)}", "|V1"),
        ("s4_int8", "s4[6,10]{1,0:T(8,128)(8,1)E(4)}", "|i1"),
        ("pred", "pred[6,10]{1,0:T(32,128)(32,1)E(1)}", "|b1"),
        ("scalar_s32", "s32[]{:T(128)}", "<i4"),
        ("empty_f32", "f32[0,10]{1,0:T(8,128)}", "<f4"),
    ] {
        let (packed, back) =
            (scratch.path(&format!("{file}.image")), scratch.path(&format!("{file}.npy")));
        ok(&["pack", &numpy(file), "--to", shape, "-o", &packed, "--verify"]);
        ok(&["unpack", &packed, "--from", shape, "-o", &back, "--verify"]);
        let (original, back) = (fs::read(numpy(file)).unwrap(), fs::read(&back).unwrap());
        assert!(back.windows(written.len()).any(|w| w == written.as_bytes()), "{file}");
        let elements = |file: &[u8]| {
            let header = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
            file[header..].to_vec()
        };
        assert_eq!(elements(&back), elements(&original), "{file}");
    }
}

/// However a file spells a value narrower than a byte, there is one image of
/// it, also where the image gives it a byte, and it comes back canonical.
#[test]
fn one_value_has_one_image() {
    let scratch = Scratch::new();
    for (shape, spellings, packed, unpacked) in [
        (
            "s4[4]{0}",
            &[("|i1", [0xff, 0xf8, 7, 3]), ("|V1", [0x0f, 8, 7, 3])][..],
            [0x0f, 8, 7, 3],
            [0xff, 0xf8, 7, 3],
        ),
        (
            "s2[4]{0:E(8)}",
            &[("|i1", [0xff, 0xfe, 1, 0]), ("|u1", [3, 2, 1, 0])],
            [3, 2, 1, 0],
            [0xff, 0xfe, 1, 0],
        ),
        ("pred[4]{0}", &[("|b1", [0, 1, 1, 1]), ("|u1", [0, 1, 2, 3])], [0, 1, 1, 1], [0, 1, 1, 1]),
    ] {
        for (descr, bytes) in spellings {
            let file = scratch.file("in.npy", &npy(descr, "(4,)", bytes));
            let (image, back) = (scratch.path("in.image"), scratch.path("back.npy"));
            ok(&["pack", &file, "--to", shape, "-o", &image, "--verify", "--force"]);
            assert_eq!(fs::read(&image).unwrap(), packed, "{shape} from {descr}");
            ok(&["unpack", &image, "--from", shape, "-o", &back, "--verify", "--force"]);
            assert!(fs::read(&back).unwrap().ends_with(&unpacked), "{shape} from {descr}");
        }
    }
    let back = scratch.path("back.image");
    // Two bits in four: what unpack writes goes back to other bits, the same value.
    let file = scratch.file("s2.image", &[0x3f]);
    ok(&["unpack", &file, "--from", "s2[2]{0:E(4)}", "-o", &scratch.path("s2.npy"), "--verify"]);
    // What an image holds above the type's bits is kept where it fits.
    let file = scratch.file("u4.image", &[0xd1]);
    ok(&[
        "convert", &file, "--from", "u4[1]", "--to", "{0:T(1)}", "-o", &back, "--verify", "--force",
    ]);
    assert_eq!(fs::read(&back).unwrap(), [0xd1]);
    // Where it does not, converting loses it.
    let file = scratch.file("u4.image", &[0x07, 0x18]);
    let convert = ["convert", &file, "--from", "u4[2]", "--to", "u4[2]{0:E(4)}"];
    fails(1, &[&convert[..], &["-o", "-", "--verify"]].concat(), &["byte 1", "0x18", "0x08"]);
}

#[test]
fn the_report_says_what_went_where_and_what_padding_costs() {
    let scratch = Scratch::new();
    let out = scratch.path("w.image");
    let weights = data("weights.npy").display().to_string();
    let pack = ["pack", &weights, "--to", "{1,0:T(8,128)(2,1)}", "-o", &out, "--verify"];
    let text = ok(&pack);
    for part in [
        "bf16[100,300]{1,0}, 60,000 bytes",
        "bf16[100,300]{1,0:T(8,128)(2,1)}, 79,872 bytes",
        "padding costs 19,872 of them",
        "round trip exact: all 30,000 elements",
    ] {
        assert!(text.text().contains(part), "{part}: {}", text.text());
    }
    let back = scratch.path("back.npy");
    let text = ok(&["unpack", &out, "--from", "bf16[100,300]{1,0:T(8,128)(2,1)}", "-o", &back]);
    assert!(text.text().contains("19,872 bytes of padding were left behind"), "{}", text.text());
    let report = &ok(&[&pack[..], &["--force", "--json"]].concat()).json()[0];
    assert_eq!((&report["output_bytes"], &report["verified"]), (&79_872.into(), &true.into()));
}

#[test]
fn standard_streams_carry_files_both_ways() {
    let file = fs::read(numpy("bf16")).unwrap();
    let shape = "bf16[6,10]{1,0:T(8,128)(2,1)}";
    let packed = relayout_with(&["pack", "-", "--to", shape, "-o", "-"], file);
    assert_eq!((packed.code, packed.stdout.len()), (0, 2048));
    assert!(packed.stderr.contains("packed standard input"), "{}", packed.stderr);
    let back = relayout_with(&["unpack", "-", "--from", shape, "-o", "-"], packed.stdout);
    assert_eq!(back.code, 0);
    assert!(back.stdout.starts_with(b"\x93NUMPY"));
}

#[test]
fn convert_goes_from_one_layout_to_another() {
    let scratch = Scratch::new();
    let host: Vec<u8> = (0..60).collect();
    let from = "u8[6,10]{1,0:T(8,128)(4,1)}";
    for (to, shape) in [
        ("{0,1:T(8,128)(4,1)}", "u8[6,10]{0,1:T(8,128)(4,1)}"),
        ("u8[6,10]{1,0:T(2,3)(3,1)}", "u8[6,10]{1,0:T(2,3)(3,1)}"),
    ] {
        let input = scratch.file("from.image", &image(from, &host));
        let out = scratch.path("to.image");
        ok(&["convert", &input, "--from", from, "--to", to, "-o", &out, "--force", "--verify"]);
        assert!(fs::read(&out).unwrap() == image(shape, &host), "{to}");
    }
    let input = scratch.path("from.image");
    let arguments = ["convert", &input, "--from", from, "-o", "-", "--to"];
    fails(2, &[&arguments[..], &["u8[10,6]"]].concat(), &["[6,10]", "[10,6]"]);
    fails(2, &[&arguments[..], &["s8[6,10]"]].concat(), &["elements of u8", "of s8"]);
}

#[test]
fn padding_that_is_not_zero_does_not_break_the_round_trip() {
    let scratch = Scratch::new();
    let shape = "s4[3,5]{1,0:T(8,128)(8,1)E(4)}";
    let host: Vec<u8> = (0..15).collect();
    let ones = image(shape, &[0xff; 15]);
    let mut poisoned = image(shape, &host);
    poisoned.iter_mut().zip(&ones).for_each(|(byte, ones)| *byte |= !ones);
    let input = scratch.file("poisoned.image", &poisoned);
    ok(&["unpack", &input, "--from", shape, "-o", &scratch.path("a.npy"), "--verify"]);
}

#[test]
fn a_value_that_does_not_fit_fails_the_verification_and_leaves_nothing() {
    for (descr, element_type, value, parts) in [
        ("|i1", "s4", 100, ["element 2", "0x64", "s4 holds -8 to 7"]),
        ("|i1", "s4", 8, ["element 2", "0x08", "s4 holds -8 to 7"]),
        ("|u1", "u4", 255, ["element 2", "0xff", "u4 holds 4 bits, 0 to 15"]),
        ("|V1", "f4e2m1fn", 16, ["element 2", "0x10", "f4e2m1fn holds 4 bits"]),
    ] {
        let scratch = Scratch::new();
        let file = scratch.file("q.npy", &npy(descr, "(4,)", &[1, 7, value, 7]));
        let (out, shape) = (scratch.path("q.image"), format!("{element_type}[4]{{0:E(4)}}"));
        fails(1, &["pack", &file, "--to", &shape, "-o", &out, "--verify"], &parts);
        assert_eq!(scratch.names(), ["q.npy"]);
    }
}

#[test]
fn values_that_are_written_in_another_way_are_the_same() {
    let scratch = Scratch::new();
    // -1 as s4, raw; 0x80 as a truth value.
    for (descr, bytes, shape) in [
        ("|V1", [0x0f, 0xff], "s4[2]{0:E(4)}"),
        ("|u1", [0x0f, 0xff], "s4[2]{0:E(4)}"),
        ("|u1", [0x80, 0x00], "pred[2]{0:E(1)}"),
    ] {
        let file = scratch.file("in.npy", &npy(descr, "(2,)", &bytes));
        ok(&[
            "pack",
            &file,
            "--to",
            shape,
            "-o",
            &scratch.path("out.image"),
            "--verify",
            "--force",
        ]);
        let image = scratch.file("in.image", &bytes);
        let wide = shape.replace("4)", "8)").replace("1)", "8)");
        let convert = ["convert", &image, "--from", &wide, "--to", shape];
        let out = scratch.path("out.image");
        ok(&[&convert[..], &["-o", &out, "--verify", "--force"]].concat());
    }
}

#[test]
fn mismatches_say_which_two_things_disagree() {
    let out = ["-o", "-"];
    let pack = |file: &str, to: &str, parts: &[&str]| {
        fails(1, &[&["pack", &numpy(file), "--to", to], &out[..]].concat(), parts);
    };
    pack("f32", "s32[6,10]", &["f32.npy", "<f4", "s32", "<i4"]);
    pack("f32", "bf16[6,10]", &["<f4", "bf16", "|V2"]);
    pack("f32", "f32[10,6]", &["bounds [6, 10]", "[10, 6]"]);
    pack("f32", "f32[60]", &["bounds [6, 10]", "[60]"]);
    pack("object", "f32[2]", &["object.npy"]);
    pack("text", "f32[2]", &["type <U3"]);
    pack("record", "f32[2]", &["records"]);
    fails(2, &["pack", &numpy("f8e4m3fn"), "--to", "{1,0}", "-o", "-"], &["V1", "whole shape"]);
    fails(2, &["pack", &numpy("f32"), "--to", "{0}", "-o", "-"], &["1 entries for 2 dimensions"]);
    fails(2, &["pack", &numpy("f32"), "--to", "f32[6,10", "-o", "-"], &["at byte 8"]);

    let scratch = Scratch::new();
    let image = scratch.file("short.image", &[0; 63]);
    let unpack = |shape: &str, parts: &[&str]| {
        fails(1, &["unpack", &image, "--from", shape, "-o", "-"], parts);
    };
    unpack("f32[16]", &["holds 63 bytes", "f32[16]{0} needs 64"]);
    unpack("f32[15]", &["holds 63 bytes", "f32[15]{0} needs 60"]);
    let outcome = relayout_with(&["unpack", "-", "--from", "f32[15]", "-o", "-"], [0; 63]);
    assert!(outcome.stderr.contains("more than the 60 bytes of f32[15]{0}"));
}

#[test]
fn nothing_is_replaced_unasked_and_a_failure_leaves_no_file() {
    let scratch = Scratch::new();
    let out = scratch.file("there.image", b"precious");
    let pack = ["pack", &numpy("f32"), "--to", "{1,0}", "-o", &out];
    fails(1, &pack, &["there.image: exists already; say --force to replace it"]);
    assert_eq!(fs::read(&out).unwrap(), b"precious");
    ok(&[&pack[..], &["--force"]].concat());
    assert_eq!(fs::read(&out).unwrap().len(), 240);
    assert_eq!(scratch.names(), ["there.image"]);

    let lost = scratch.path("no/such/folder.image");
    fails(1, &["pack", &numpy("f32"), "--to", "{1,0}", "-o", &lost], &["folder.image"]);
    let folder = scratch.path("folder");
    fs::create_dir(&folder).unwrap();
    for force in [&["--force"][..], &[]] {
        let pack = ["pack", &numpy("f32"), "--to", "{1,0}", "-o", &folder];
        fails(1, &[&pack[..], force].concat(), &["folder: is a directory"]);
    }
    fails(1, &["pack", &folder, "--to", "{1,0}", "-o", "-"], &["folder"]);
    fails(1, &["pack", &scratch.path("nowhere.npy"), "--to", "{1,0}", "-o", "-"], &["nowhere.npy"]);
    assert_eq!(scratch.names(), ["folder", "there.image"]);
}

#[cfg(unix)]
#[test]
fn a_link_is_followed() {
    let scratch = Scratch::new();
    let target = scratch.file("target.image", b"old");
    let link = scratch.path("link.image");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let pack = ["pack", &numpy("f32"), "--to", "{1,0}", "-o", &link];
    fails(1, &pack, &["link.image: exists already"]);
    ok(&[&pack[..], &["--force"]].concat());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(&target).unwrap().len(), 240);
    fs::remove_file(&target).unwrap();
    for force in [&["--force"][..], &[]] {
        fails(1, &[&pack[..], force].concat(), &["link.image"]);
    }
    assert_eq!(scratch.names(), ["link.image"]);
}

#[cfg(unix)]
#[test]
fn a_replaced_file_keeps_its_permissions_and_a_device_needs_no_force() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    let out = scratch.file("some.image", b"old");
    for (mode, kept) in [(0o600, 0o600), (0o666, 0o666), (0o4755, 0o755)] {
        fs::set_permissions(&out, fs::Permissions::from_mode(mode)).unwrap();
        ok(&["pack", &numpy("f32"), "--to", "{1,0}", "-o", &out, "--force"]);
        assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o7777, kept);
    }
    let outcome = relayout_with(&["pack", &numpy("f32"), "--to", "{1,0}", "-o", "/dev/null"], "");
    assert_eq!((outcome.code, outcome.text()), (0, ""));
    // The report does not mix with what a device carries.
    let outcome = relayout_with(&["pack", &numpy("f32"), "--to", "{1,0}", "-o", "/dev/stdout"], "");
    assert_eq!((outcome.code, outcome.stdout.len()), (0, 240));
}

// The whole tool

#[test]
fn help_shows_examples_and_bad_usage_is_2() {
    assert!(ok(&["--help"]).text().contains("Examples:"));
    for command in ["parse", "explain", "index", "draw", "layout", "pack", "unpack", "convert"] {
        assert!(ok(&[command, "--help"]).text().contains("Examples:"), "{command}");
    }
    assert!(ok(&["--version"]).text().starts_with("relayout "));
    fails(2, &["frobnicate"], &["frobnicate"]);
    fails(2, &["explain"], &["SHAPE"]);
    fails(2, &["pack", "x.npy"], &["--to"]);
}

/// Of a list, a reader may want the start; of an image, all.
#[test]
fn a_closed_pipe_is_no_failure_unless_it_cuts_an_image() {
    let texts = "f32[2]\n".repeat(100_000);
    assert_eq!(with_closed_output(&["parse", "-"], texts.as_bytes()), (Some(0), String::new()));
    let file = fs::read(numpy("f32")).unwrap();
    let (code, stderr) =
        with_closed_output(&["pack", "-", "--to", "{1,0:T(8,128)}", "-o", "-"], &file);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("standard output"), "{stderr}");
}

/// The exit code and standard error of a command whose output nobody reads.
fn with_closed_output(arguments: &[&str], input: &[u8]) -> (Option<i32>, String) {
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_relayout"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    // The tool may stop reading before all is written.
    let _ = std::io::Write::write_all(&mut stdin, input);
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_large_file_is_mapped_and_left_alone() {
    let scratch = Scratch::new();
    // More than a mebibyte: 600 by 1000 floats, big-endian too.
    let numbers: Vec<u32> = (0..600_000_u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let little: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    let big: Vec<u8> = numbers.iter().flat_map(|n| n.to_be_bytes()).collect();
    let shape = "f32[600,1000]{1,0:T(8,128)}";
    let expected = image(shape, &little);
    for (descr, data) in [("<f4", little), (">f4", big)] {
        let file = npy(descr, "(600, 1000)", &data);
        let input = scratch.file("a.npy", &file);
        let output = scratch.path("a.image");
        ok(&["pack", &input, "--to", shape, "-o", &output, "--verify", "--force"]);
        assert!(fs::read(&output).unwrap() == expected, "{descr}");
        assert!(fs::read(&input).unwrap() == file, "{descr} was changed");
        let back = scratch.path("back.npy");
        ok(&["unpack", &output, "--from", shape, "-o", &back, "--verify", "--force"]);
        let back = fs::read(&back).unwrap();
        assert!(
            back.ends_with(&npy("<f4", "(600, 1000)", &expected_host(shape, &expected))[128..])
        );
    }
}

/// The host array whose image is given, by the oracle.
fn expected_host(text: &str, image: &[u8]) -> Vec<u8> {
    let shape: Shape = text.parse().unwrap();
    let mut host = vec![0xee; shape.sizes().unwrap().host_bytes as usize];
    oracle::unpack(&shape, image, &mut host).unwrap();
    host
}

#[test]
fn explain_shows_the_kernels_of_the_formats() {
    let formats = [
        ("f32[64,256]{1,0:T(8,128)}", "copy", "copy"),
        ("bf16[64,256]{1,0:T(8,128)(2,1)}", "interleave2x16", "deinterleave2x16"),
        ("s8[64,256]{1,0:T(8,128)(4,1)}", "interleave4x8", "deinterleave4x8"),
        (
            "pred[64,256]{1,0:T(32,128)(32,1)E(1)}",
            "squeeze1-truth-interleave4x8",
            "deinterleave4x8-unsqueeze1",
        ),
    ];
    for (shape, pack, unpack) in formats {
        let outcome = Command::new(env!("CARGO_BIN_EXE_relayout"))
            .args(["explain", "--plan", "--json", shape])
            .env("RELAYOUT_TIER", "portable")
            .output()
            .unwrap();
        let object: Value = serde_json::from_slice(&outcome.stdout).unwrap();
        for (i, op) in [pack, unpack].into_iter().enumerate() {
            let plan = &object["plans"][i];
            assert_eq!(plan["parts"][0]["kernel"], format!("portable-{op}"), "{shape}");
            assert_eq!((&plan["hops"], &plan["regions"]), (&1.into(), &1.into()), "{shape}");
        }
        let text = ok(&["explain", "--plan", shape]);
        assert!(text.text().contains(&format!("-{pack}: ")), "{}", text.text());
    }
}

#[test]
fn a_tier_that_is_not_here_is_bad_usage() {
    for (tier, what) in [("sse9", "no tier is called `sse9`"), ("", "no tier is called ``")] {
        let outcome = Command::new(env!("CARGO_BIN_EXE_relayout"))
            .args(["explain", "--plan", "f32[8]{0}"])
            .env("RELAYOUT_TIER", tier)
            .output()
            .unwrap();
        let stderr = String::from_utf8(outcome.stderr).unwrap();
        assert_eq!(outcome.status.code(), Some(2), "{tier}: {stderr}");
        assert!(stderr.contains(what), "{stderr}");
    }
    fails(2, &["bench", "--tier", "sse9"], &["sse9", "portable"]);
}

#[test]
fn bench_measures_and_answers_in_json() {
    let keys = [
        "group",
        "shape",
        "direction",
        "bytes",
        "tier",
        "threads",
        "gbps",
        "memcpy_gbps",
        "copy_gbps",
        "read_gbps",
        "fill_gbps",
        "ratio_memcpy",
        "ratio_copy",
        "kernel",
    ];
    let pair = "u8[64,64]{1,0} -> u8[64,64]{0,1:T(8,16)}";
    let outcome =
        ok(&["bench", "--quick", "--json", "--tier", "scalar", "f32[9,130]{1,0:T(8,128)}", pair]);
    let objects = outcome.json();
    let directions: Vec<_> = objects.iter().map(|o| o["direction"].as_str().unwrap()).collect();
    assert_eq!(directions, ["pack", "unpack", "between"]);
    for object in &objects {
        let found: Vec<_> = object.as_object().unwrap().keys().collect();
        assert_eq!(found, keys);
        assert!(object["gbps"].as_f64().unwrap() > 0.0, "{object}");
        assert_eq!(
            (object["tier"].as_str(), object["threads"].as_u64()),
            (Some("scalar"), Some(1))
        );
    }
    // Two rows of tiles of two, of 4096 bytes each.
    assert_eq!(objects[0]["bytes"], 16384);
    let text = ok(&["bench", "--quick", "--size", "tile"]);
    assert!(text.text().contains("bf16[8,128]{1,0:T(8,128)(2,1)}"), "{}", text.text());
    fails(2, &["bench", "--size", "many"], &["many", "256K"]);
    fails(2, &["bench", "--size", "0"], &["\"0\""]);
    fails(2, &["bench", "f32[2]{0} -> f32[3]{0}"], &["[2]", "[3]"]);
    fails(1, &["bench", "u8[1152921504606846976]{0}"], &["memory"]);
    fails(2, &["bench", "f32[3,0]"], &["f32[3,0]", "no elements"]);
}
