//! What the tests of the tool share: its runs, and folders of their own.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

/// A folder of the test's own, removed at its end.
pub(crate) struct Scratch(pub(crate) tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Scratch(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// The files that are there.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// What a command printed, and how it ended.
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Outcome {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    pub(crate) fn lines(&self) -> Vec<&str> {
        self.text().lines().collect()
    }

    pub(crate) fn json(&self) -> Vec<Value> {
        self.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

pub(crate) fn relayout_with(arguments: &[&str], stdin: impl Into<Vec<u8>>) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_relayout"));
    let output = command.args(arguments).write_stdin(stdin).output().unwrap();
    Outcome {
        code: output.status.code().expect("ended by itself"),
        stdout: output.stdout,
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A command that must succeed and be silent on standard error.
pub(crate) fn ok(arguments: &[&str]) -> Outcome {
    let outcome = relayout_with(arguments, "");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{arguments:?}");
    outcome
}

/// A command that must fail with `code`, printing nothing but an error that
/// holds each of `parts`.
pub(crate) fn fails(code: i32, arguments: &[&str], parts: &[&str]) {
    let outcome = relayout_with(arguments, "");
    assert_eq!(outcome.code, code, "{arguments:?}: {}", outcome.stderr);
    assert_eq!(outcome.text(), "", "{arguments:?}");
    for part in parts {
        assert!(outcome.stderr.contains(part), "{arguments:?}: {:?} in {}", part, outcome.stderr);
    }
}

pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data").join(name)
}

pub(crate) fn numpy(name: &str) -> String {
    data("numpy").join(format!("{name}.npy")).display().to_string()
}

/// A NumPy file as NumPy 1 writes it.
pub(crate) fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    file.extend(header.bytes());
    file.extend(data);
    file
}
