//! The `relayout` command: XLA's tiled layouts read, explained, drawn, and
//! applied to NumPy files.

// No input may panic. What panics or truncates by design is denied here; an
// index out of bounds is not, so indexing is left to places that know theirs.
#![cfg_attr(
    not(test),
    deny(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        clippy::expect_used,
        clippy::panic,
        clippy::print_stderr,
        clippy::print_stdout,
        clippy::todo,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod bench;
mod bench_groups;
mod convert;
mod draw;
mod element;
mod explain;
mod failure;
mod files;
mod index;
mod layout;
mod npy;
mod parse;
mod plan;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Moves arrays between host memory and the tiled layouts that XLA gives to
/// accelerator buffers.
///
/// A SHAPE is XLA's notation: bf16[1024,4096]{1,0:T(8,128)(2,1)} is an array of
/// 1024 by 4096 bf16, row-major, in tiles of 8 by 128, in which two rows
/// interleave. A LAYOUT is the part in braces. Quote them for the shell.
///
/// The exit code is 0 for success, 1 for work that failed, 2 for bad usage or
/// a text that is no shape. Errors go to standard error. A file called `-` is
/// standard input or output. The variable RELAYOUT_TIER names the vector
/// instructions to use (scalar, portable, neon, avx2, avx512) instead of the best.
#[derive(Parser)]
#[command(name = "relayout", version, max_term_width = 100, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  relayout explain 'bf16[1000,300]{1,0:T(8,128)(2,1)}'
  relayout explain --plan 'bf16[1000,300]{1,0:T(8,128)(2,1)}'
  relayout draw 'f32[3,5]{1,0:T(2,2)}'
  relayout layout 'bf16[1000,3]' --chip v5e
  relayout pack weights.npy --to '{1,0:T(8,128)(2,1)}' -o weights.image --verify
  relayout unpack weights.image --from 'bf16[100,300]{1,0:T(8,128)(2,1)}' -o back.npy
  relayout bench --quick";

#[derive(Subcommand)]
enum Command {
    Parse(parse::Arguments),
    Explain(explain::Arguments),
    Index(index::Arguments),
    Draw(draw::Arguments),
    Layout(layout::Arguments),
    Pack(convert::PackArguments),
    Unpack(convert::UnpackArguments),
    Convert(convert::ConvertArguments),
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Parse(arguments) => parse::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Index(arguments) => index::run(&arguments),
        Command::Draw(arguments) => draw::run(&arguments),
        Command::Layout(arguments) => layout::run(&arguments),
        Command::Pack(arguments) => convert::pack(&arguments),
        Command::Unpack(arguments) => convert::unpack(&arguments),
        Command::Convert(arguments) => convert::convert(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough.
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report("");
            ExitCode::from(failure.exit_code())
        }
    }
}
