//! What the docs say of the code that a machine can check: every place that is unsafe is
//! in docs/unsafe.md, and every test that docs/testing.md names is there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// All Rust files of a folder.
fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// How often the word opens something in a line, comments left out.
fn opened(line: &str) -> usize {
    let code = line.split("//").next().unwrap_or_default();
    ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"]
        .iter()
        .map(|what| code.matches(what).count())
        .sum()
}

#[test]
fn unsafe_places_are_listed_with_their_number() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "kernels/src", "kernels/tests", "capi/src", "cli/src"] {
        rust_files(&root.join(folder), &mut files);
    }
    let mut are = BTreeMap::new();
    for file in files {
        let count: usize = fs::read_to_string(&file).unwrap().lines().map(opened).sum();
        let name = file.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        if count > 0 {
            are.insert(name, count);
        }
    }
    let page = fs::read_to_string(root.join("docs/unsafe.md")).unwrap();
    let rows = page.lines().filter(|line| line.contains(".rs | "));
    let listed: BTreeMap<String, usize> = rows
        .map(|row| {
            let mut cells = row.trim_start_matches("| ").split(" | ");
            let name = cells.next().unwrap().to_owned();
            (name, cells.next().unwrap().parse().unwrap())
        })
        .collect();
    assert!(are.len() > 5);
    assert_eq!(are, listed, "left what there is, right what docs/unsafe.md says");
}

/// Tests are named as `file::function`.
#[test]
fn tests_that_are_named_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/testing.md")).unwrap();
    let mut named = 0;
    for quoted in page.split('`').skip(1).step_by(2) {
        let Some((file, function)) = quoted.split_once("::") else { continue };
        let text = fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let is_there = [format!("fn {function}("), format!("static void {function}(")]
            .iter()
            .any(|definition| text.contains(definition));
        assert!(is_there, "{quoted}");
        named += 1;
    }
    assert!(named > 30, "{named}");
    assert!(!page.contains("EXECUTIONS"), "the table of inputs run is missing");
}
