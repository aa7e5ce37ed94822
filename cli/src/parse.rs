//! `relayout parse`: texts in, a JSON line each out.

use std::io::{self, Write};

use clap::Args;
use relayout::{AnyShape, Layout, ParseError};
use serde_json::json;

use crate::failure::Failure;
use crate::files;

/// Read shapes or layouts, and print each as XLA would
///
/// Writes an object a line: `text`, `ok`, and either `canonical` or `error`
/// and `at`, the byte at which it is wrong. That a text is wrong is an answer
/// like another, so the exit code is 0 all the same.
#[derive(Args)]
#[command(after_help = "\
Examples:
  relayout parse 'F32[3,5]{1,0:(2,2)}'
  relayout parse - < shapes.txt")]
pub(crate) struct Arguments {
    /// Shapes, or layouts in braces; `-` reads one a line from standard input
    #[arg(value_name = "TEXT", default_value = "-")]
    texts: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    // Each line at once, for those who ask again after an answer.
    let mut out = io::stdout().lock();
    for text in files::texts(&arguments.texts) {
        let (text, _) = text?;
        let line = match canonical(&text) {
            Ok(canonical) => json!({ "text": text, "ok": true, "canonical": canonical }),
            Err(e) => json!({ "text": text, "ok": false, "error": e.message(), "at": e.at() }),
        };
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

fn canonical(text: &str) -> Result<String, ParseError> {
    match (text.parse::<AnyShape>(), text.parse::<Layout>()) {
        (Ok(shape), _) => Ok(shape.to_string()),
        (_, Ok(layout)) => Ok(layout.to_string()),
        (Err(shape), Err(layout)) => Err(further(shape, layout)),
    }
}

/// Of a text that is neither a shape nor a layout, the error of what it is more
/// like.
pub(crate) fn further(shape: ParseError, layout: ParseError) -> ParseError {
    if layout.at() > shape.at() { layout } else { shape }
}
