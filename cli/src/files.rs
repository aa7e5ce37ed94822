//! Reading inputs and writing outputs: `-`, files that exist, and numbers that
//! claim more memory than there is.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;

/// The name of an input for messages.
pub(crate) fn name(path: &Path) -> String {
    if is_standard(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Whether `path` is `-`: standard input or output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A failure about the file at `path`.
pub(crate) fn failed(path: &Path, e: impl std::fmt::Display) -> Failure {
    Failure::work(format!("{}: {e}", name(path)))
}

/// An input, to be read from its start.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if is_standard(path) {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(File::open(path).map_err(|e| failed(path, e))?))
}

/// The rest of an input, which must be `bytes` long; `what` says so.
///
/// Memory grows with what is really there, not with what is expected.
pub(crate) fn read_exactly(
    path: &Path,
    input: &mut dyn Read,
    bytes: u64,
    what: &str,
) -> Result<Vec<u8>, Failure> {
    let mut data = Vec::new();
    // One byte more tells an input that is too long.
    let most = bytes.saturating_add(1);
    let read = input.take(most).read_to_end(&mut data).map_err(|e| failed(path, e))?;
    match u64::try_from(read) {
        Ok(n) if n == bytes => Ok(data),
        Ok(n) if n < bytes => {
            Err(failed(path, format_args!("holds {n} bytes, but {what} needs {bytes}")))
        }
        _ => Err(failed(path, format_args!("holds more than the {bytes} bytes of {what}"))),
    }
}

/// A buffer of `bytes` zeros, or a failure where memory cannot hold it.
pub(crate) fn allocate(bytes: u64, what: &str) -> Result<Vec<u8>, Failure> {
    let too_much = |limit: &str| {
        Failure::work(format!("{what} takes {bytes} bytes, which is more than {limit}"))
    };
    if available_memory_bytes().is_some_and(|available| bytes > available) {
        return Err(too_much("the memory that is free"));
    }
    let length = usize::try_from(bytes).map_err(|_| too_much("this machine can address"))?;
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(length).map_err(|_| too_much("can be allocated"))?;
    buffer.resize(length, 0);
    Ok(buffer)
}

/// The memory that can be had without swapping, where the system tells it.
/// Linux grants far more than that, and ends the process when it is used.
fn available_memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Where a command writes its result.
pub(crate) struct Output {
    path: PathBuf,
    force: bool,
}

impl Output {
    /// An output, refused at once if it is a file that exists and `force` is
    /// not given, so that no work is done in vain.
    ///
    /// A link is followed: what it points to is replaced, not the link.
    pub(crate) fn new(path: &Path, force: bool) -> Result<Self, Failure> {
        let there = !is_standard(path) && path.symlink_metadata().is_ok();
        if there && path.is_dir() {
            return Err(failed(path, "is a directory"));
        }
        if there && !force {
            return Err(exists(path));
        }
        let path = match path.canonicalize() {
            Ok(target) if there => target,
            _ => path.to_owned(),
        };
        Ok(Output { path, force })
    }

    /// Writes all of `parts`, or leaves the file as it was.
    pub(crate) fn write(&self, parts: &[&[u8]]) -> Result<(), Failure> {
        if is_standard(&self.path) {
            let mut stdout = io::stdout().lock();
            parts.iter().try_for_each(|part| stdout.write_all(part))?;
            return Ok(stdout.flush()?);
        }
        let fail = |e: io::Error| failed(&self.path, e);
        // A device or a pipe is written in place: it cannot be replaced.
        if self.path.metadata().is_ok_and(|m| !m.is_file()) {
            let mut file = File::options().write(true).open(&self.path).map_err(fail)?;
            return parts.iter().try_for_each(|part| file.write_all(part)).map_err(fail);
        }
        let folder = match self.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // As a file that is simply created; the umask takes its part.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let mut file = builder.prefix(".relayout-").tempfile_in(folder).map_err(fail)?;
        parts.iter().try_for_each(|part| file.write_all(part)).map_err(fail)?;
        if self.force {
            file.persist(&self.path).map_err(|e| fail(e.error))?;
        } else {
            file.persist_noclobber(&self.path).map_err(|e| match e.error.kind() {
                io::ErrorKind::AlreadyExists => exists(&self.path),
                _ => fail(e.error),
            })?;
        }
        Ok(())
    }

    /// Where reports go: to standard error where the result goes to standard
    /// output.
    pub(crate) fn report_to(&self) -> Box<dyn Write> {
        if is_standard(&self.path) { Box::new(io::stderr()) } else { Box::new(io::stdout()) }
    }

    /// The name of the output for reports.
    pub(crate) fn name(&self) -> String {
        if is_standard(&self.path) { "standard output".to_owned() } else { name(&self.path) }
    }
}

fn exists(path: &Path) -> Failure {
    failed(path, "exists already; say --force to replace it")
}

/// The texts of a command line, each `-` standing for the lines of standard
/// input. With each text goes where it comes from, for messages.
pub(crate) fn texts(
    arguments: &[String],
) -> impl Iterator<Item = Result<(String, String), Failure>> {
    arguments.iter().flat_map(|argument| -> Box<dyn Iterator<Item = _>> {
        if argument == "-" {
            Box::new(stdin_lines().map(|line| line.map(|(n, text)| (text, format!("line {n}: ")))))
        } else {
            Box::new(std::iter::once(Ok((argument.clone(), String::new()))))
        }
    })
}

/// The lines of standard input with their numbers, counted from 1. What is not
/// UTF-8 is replaced, so that it can be refused like any other bad text.
fn stdin_lines() -> impl Iterator<Item = Result<(usize, String), Failure>> {
    let lines = BufReader::new(io::stdin()).split(b'\n');
    lines.enumerate().map(|(i, line)| {
        let line = line.map_err(|e| Failure::work(format!("standard input: {e}")))?;
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        Ok((i + 1, String::from_utf8_lossy(line).into_owned()))
    })
}

/// Does `work` with a sign of life on the terminal.
pub(crate) fn with_progress<T>(what: &str, work: impl FnOnce() -> T) -> T {
    // Hidden by itself where standard error is no terminal.
    let bar = ProgressBar::new_spinner().with_message(what.to_owned());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    let result = work();
    bar.finish_and_clear();
    result
}
