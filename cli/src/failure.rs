//! Why a command failed, and the exit code that says so.

use std::fmt;
use std::io::{self, Write};

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was asked for makes no sense: exit code 2.
    Usage(String),
    /// The work could not be done: exit code 1.
    Work(String),
    /// A text was wrong, and that has been said already: exit code 2.
    Reported,
    /// Writing to standard output failed: exit code 1, unless it was closed.
    Output(io::Error),
}

impl Failure {
    /// A text that is no shape, or a value that does not suit one.
    pub(crate) fn usage(what: impl fmt::Display) -> Self {
        Failure::Usage(what.to_string())
    }

    /// Work that failed.
    pub(crate) fn work(what: impl fmt::Display) -> Self {
        Failure::Work(what.to_string())
    }

    /// Writes the failure to standard error.
    pub(crate) fn report(&self, place: &str) {
        if !matches!(self, Failure::Reported) {
            // Where even that cannot be written, the exit code still tells.
            let _ = writeln!(io::stderr(), "relayout: {place}{self}");
        }
    }

    /// The code that the process exits with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) | Failure::Reported => 2,
            Failure::Work(_) | Failure::Output(_) => 1,
        }
    }

    /// Whether all that failed is that nobody reads our output any more.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Failure::Output(e) if e.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(what) | Failure::Work(what) => f.write_str(what),
            Failure::Reported => f.write_str("told above"),
            Failure::Output(e) => write!(f, "standard output: {e}"),
        }
    }
}

/// For what is written to standard output with `?`; errors about files are
/// given their path by hand.
impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        Failure::Output(e)
    }
}

/// A text that is no shape or layout.
impl From<relayout::ParseError> for Failure {
    fn from(e: relayout::ParseError) -> Self {
        Failure::usage(e)
    }
}

/// A shape that has no image.
impl From<relayout::ShapeError> for Failure {
    fn from(e: relayout::ShapeError) -> Self {
        Failure::usage(e)
    }
}

/// An index that is not there.
impl From<relayout::IndexError> for Failure {
    fn from(e: relayout::IndexError) -> Self {
        Failure::usage(e)
    }
}
