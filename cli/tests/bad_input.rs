//! Absurd input of the tool: files, outputs, texts. An error that names the value, no
//! panic, no abort, and outputs as they were.
//!
//! docs/testing.md has the table of all bad input and of the tests of each.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{Scratch, fails, npy, numpy, ok, relayout_with};

#[test]
fn a_full_disk_is_a_failure() {
    if !Path::new("/dev/full").exists() {
        eprintln!("skipped: there is no /dev/full");
        return;
    }
    let pack = ["pack", &numpy("f32"), "--to", "{1,0}", "-o", "/dev/full"];
    fails(1, &[&pack[..], &["--force"]].concat(), &["/dev/full"]);
}

#[test]
fn damaged_numpy_files_are_refused() {
    let scratch = Scratch::new();
    let whole = fs::read(numpy("f32")).unwrap();
    let refuse = |bytes: &[u8], parts: &[&str]| {
        let file = scratch.file("bad.npy", bytes);
        fails(1, &["pack", &file, "--to", "f32[6,10]", "-o", "-"], parts);
    };
    for length in (0..128).chain([whole.len() - 1]) {
        refuse(&whole[..length], &["bad.npy"]);
    }
    refuse(&[&whole[..], &[0]].concat(), &["holds 241 bytes", "needs 240"]);
    let mut version = whole.clone();
    version[6] = 4;
    refuse(&version, &["version 4.0"]);
    refuse(b"PK\x03\x04 not an npy file", &["does not begin"]);
    refuse(&npy("<f4", "(9223372036854775807, 9223372036854775807)", &[]), &["2^64 bytes or more"]);
    refuse(&npy("<f4", "(4611686018427387904,)", &[0; 8]), &["2^64 bytes"]);
    refuse(&npy("<f4", "(1099511627776,)", &[0; 8]), &["holds 8 bytes"]);
    refuse(&npy("<f4", "(-1,)", &[]), &["bad.npy"]);
    refuse(&npy("<f4", "(3", &[]), &["bad.npy"]);
    refuse(&npy("<f4", &format!("{}{}", "(".repeat(5000), ")".repeat(5000)), &[]), &["deeper"]);
    // Depths that a parser took minutes for (found by the fuzz target npy).
    refuse(&npy("<f4", &format!("[ [( {}", "{".repeat(12)), &[]), &["deeper than 6"]);
    refuse(&npy("<f4", &format!("[ [( {}", "{".repeat(2)), &[]), &["bad.npy"]);
    refuse(&npy("<M8[ns]", "(3,)", &[0; 24]), &["M8"]);
    let mut long = b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec();
    long.extend([b' '; 64]);
    refuse(&long, &["claims 4294967295 bytes"]);
}

#[test]
fn a_shape_larger_than_memory_is_refused() {
    if !Path::new("/proc/meminfo").exists() {
        eprintln!("skipped: this system does not tell how much memory is free");
        return;
    }
    // A device without end is not read until memory is full.
    let unpack = ["unpack", "/dev/zero", "--from", "u8[1000000000000]", "-o", "-"];
    fails(1, &unpack, &["1000000000000 bytes", "memory"]);
    let scratch = Scratch::new();
    let file = scratch.file("one.npy", &npy("|u1", "(1,)", &[1]));
    for tile in ["1152921504606846976", "1099511627776"] {
        let shape = format!("u8[1]{{0:T({tile})}}");
        fails(1, &["pack", &file, "--to", &shape, "-o", "-"], &[tile, "bytes", "memory"]);
    }
}

#[test]
fn absurd_shapes() {
    let rank65 = format!("u8[{}]", vec!["1"; 65].join(","));
    for (shape, parts) in [
        ("u8[9223372036854775808]", &["9223372036854775808", "byte 3"][..]),
        ("u8[4294967296,4294967296]", &["2^63 elements"]),
        (&rank65, &["65 dimensions"]),
        ("f32[3]{0:T(0)}", &["entry 0 of the tile is 0", "byte 11"]),
        ("f32[3]{0:T(9223372036854775807,9223372036854775807)}", &["tile 0"]),
    ] {
        fails(2, &["explain", shape], parts);
        fails(2, &["index", shape, "--at", "0"], parts);
        fails(2, &["pack", &numpy("f32"), "--to", shape, "-o", "-"], parts);
        fails(2, &["unpack", &numpy("f32"), "--from", shape, "-o", "-"], parts);
        fails(2, &["convert", &numpy("f32"), "--from", shape, "--to", "{0}", "-o", "-"], parts);
    }
    // Of these there can be no image.
    for (shape, parts) in [
        ("f32[?]", &["dimension 0", "no bound"][..]),
        ("u8[9223372036854775807]", &["9223372036854775807 elements"]),
    ] {
        let outcome = relayout_with(&["unpack", "-", "--from", shape, "-o", "-"], "x");
        assert!(outcome.code == 1 || outcome.code == 2, "{shape}: {}", outcome.stderr);
        assert!(parts.iter().all(|part| outcome.stderr.contains(part)), "{}", outcome.stderr);
        assert!(outcome.stdout.is_empty());
    }
    // Large ones that nobody has, but that can be talked about.
    for shape in ["f32[0,9223372036854775807]", "u8[1152921504606846975]{0:T(1024)}"] {
        ok(&["explain", shape, "--plan"]);
        ok(&["draw", shape]);
    }
}

#[test]
fn texts_of_a_megabyte() {
    for (unit, before) in
        [("(", ""), ("9", "f32["), ("1,", "f32["), ("(1)", "f32[3]{0:T"), ("é", "")]
    {
        let text = format!("{before}{}", unit.repeat((1 << 20) / unit.len()));
        let parsed = relayout_with(&["parse", "-"], text.as_str());
        assert_eq!((parsed.code, parsed.json()[0]["ok"].as_bool()), (0, Some(false)));
        for arguments in [&["explain", "-"][..], &["layout", "-", "--chip", "v5e"]] {
            let outcome = relayout_with(arguments, text.as_str());
            assert_eq!((outcome.code, outcome.text()), (2, ""), "{arguments:?}");
            // The place, and what stands there, not a megabyte of it.
            assert!(outcome.stderr.contains("line 1") && outcome.stderr.len() < 1000);
        }
    }
}

#[test]
fn inputs_that_are_no_files() {
    let scratch = Scratch::new();
    let folder = scratch.path("folder.npy");
    fs::create_dir(&folder).unwrap();
    let empty = scratch.file("empty.npy", b"");
    let nowhere = scratch.path("nowhere.npy");
    for (input, part) in [
        (&folder, "folder.npy"),
        (&empty, "empty.npy: ends 0 bytes into the 8 bytes"),
        (&nowhere, "nowhere.npy"),
    ] {
        fails(1, &["pack", input, "--to", "f32[6,10]", "-o", "-"], &[part]);
    }
    for (input, part) in [
        (&folder, "folder.npy"),
        (&empty, "empty.npy: holds 0 bytes, but f32[6,10]{1,0} needs 240"),
        (&nowhere, "nowhere.npy"),
    ] {
        fails(1, &["unpack", input, "--from", "f32[6,10]", "-o", "-"], &[part]);
        let convert = ["convert", input, "--from", "f32[6,10]", "--to", "{0,1}", "-o", "-"];
        fails(1, &convert, &[part]);
    }
    // Opened, but what is read of it is an error, whoever reads.
    let unreadable = "/proc/self/mem";
    if Path::new(unreadable).exists() {
        fails(1, &["pack", unreadable, "--to", "{1,0}", "-o", "-"], &[unreadable]);
        fails(1, &["unpack", unreadable, "--from", "f32[2]", "-o", "-"], &[unreadable]);
    } else {
        eprintln!("skipped: there is no {unreadable}");
    }
}

/// As on a full disk, a write to a file fails part of the way: nothing of it stays, and
/// what was there before does.
#[cfg(unix)]
#[test]
fn a_partial_output_is_removed() {
    let scratch = Scratch::new();
    let input = scratch.file("in.npy", &npy("|u1", "(1000000,)", &vec![7; 1_000_000]));
    let out = scratch.path("out.image");
    let run = |force: &str| {
        // No file larger than 8 blocks; without the signal that would end the process.
        let script = format!(
            "trap '' XFSZ; ulimit -f 8; exec '{}' pack '{input}' --to '{{0:T(1024)}}' -o '{out}' {force}",
            env!("CARGO_BIN_EXE_relayout"),
        );
        Command::new("sh").args(["-c", &script]).output().unwrap()
    };
    for (before, force) in [(None, ""), (Some(b"precious"), "--force")] {
        if let Some(bytes) = before {
            fs::write(&out, bytes).unwrap();
        }
        let output = run(force);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("out.image: "), "{stderr}");
        assert_eq!(fs::read(&out).ok().as_deref(), before.map(|bytes| &bytes[..]));
        let names = scratch.names();
        assert!(names.iter().all(|name| name == "in.npy" || name == "out.image"), "{names:?}");
    }
}

/// Bytes of an image that are too many or too few, from a file and from a pipe.
#[test]
fn images_short_or_long_by_a_byte() {
    let scratch = Scratch::new();
    for length in [239, 241] {
        let image = scratch.file("some.image", &vec![0; length]);
        let out = scratch.path("out.npy");
        let holds = format!("holds {length} bytes, but f32[6,10]{{1,0}} needs 240");
        fails(1, &["unpack", &image, "--from", "f32[6,10]", "-o", &out], &[&holds]);
        let arguments = ["unpack", "-", "--from", "f32[6,10]", "-o", &out];
        let piped = relayout_with(&arguments, vec![0; length]);
        assert_eq!(piped.code, 1);
        assert!(piped.stderr.contains("standard input: holds") && piped.stderr.contains("240"));
        assert_eq!(scratch.names(), ["some.image"]);
    }
}
