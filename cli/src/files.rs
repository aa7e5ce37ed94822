//! Reading inputs and writing outputs: `-`, files that exist, files that are
//! mapped, and numbers that claim more memory than there is.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use memmap2::{MmapMut, MmapOptions};

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

/// An input that is read from its start to its end.
pub(crate) struct Input {
    path: PathBuf,
    reader: Box<dyn Read>,
    /// The bytes of a file; of a pipe, a device or a file of the system's own
    /// nobody knows them.
    length_bytes: Option<u64>,
    /// The bytes read so far.
    position: u64,
}

impl Input {
    /// Opens the input at `path`.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let (reader, length_bytes): (Box<dyn Read>, _) = if is_standard(path) {
            (Box::new(io::stdin().lock()), None)
        } else {
            let file = File::open(path).map_err(|e| failed(path, e))?;
            let metadata = file.metadata().map_err(|e| failed(path, e))?;
            let known = metadata.is_file() && metadata.len() > 0;
            (Box::new(file), known.then_some(metadata.len()))
        };
        Ok(Input::new(path, reader, length_bytes))
    }

    /// An input of a name, of so many bytes if that is known.
    pub(crate) fn new(path: &Path, reader: Box<dyn Read>, length_bytes: Option<u64>) -> Self {
        Input { path: path.to_owned(), reader, length_bytes, position: 0 }
    }

    /// A failure about this input.
    pub(crate) fn failed(&self, e: impl std::fmt::Display) -> Failure {
        failed(&self.path, e)
    }

    /// The next bytes, `most` at most. Memory grows with what is there.
    fn read(&mut self, most: u64) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        if let Some(length) = self.length_bytes {
            // A hint: where there is no room for it, reading says so.
            let rest = length.saturating_sub(self.position).min(most);
            let _ = bytes.try_reserve_exact(usize::try_from(rest).unwrap_or(usize::MAX));
        }
        let read = self.reader.by_ref().take(most).read_to_end(&mut bytes);
        read.map_err(|e| failed(&self.path, e))?;
        self.position += length(&bytes);
        Ok(bytes)
    }

    /// The next `bytes` bytes; `what` they are, for the failure if the input
    /// ends before them.
    pub(crate) fn read_bytes(&mut self, bytes: u64, what: &str) -> Result<Vec<u8>, Failure> {
        let data = self.read(bytes)?;
        match length(&data) {
            n if n == bytes => Ok(data),
            n => Err(self.failed(format_args!("ends {n} bytes into the {bytes} bytes of {what}"))),
        }
    }

    /// The rest of the input, which must be `bytes` long; `what` it is.
    ///
    /// A large file is mapped into memory instead of being read.
    pub(crate) fn read_rest(mut self, bytes: u64, what: &str) -> Result<Bytes, Failure> {
        let path = self.path.clone();
        let other = |n| failed(&path, format_args!("holds {n} bytes, but {what} needs {bytes}"));
        match self.length_bytes.map(|n| n.saturating_sub(self.position)) {
            Some(n) if n != bytes => return Err(other(n)),
            Some(_) if bytes >= MAPPED_FROM_BYTES => {
                return Bytes::map(&path, self.position, bytes).map_err(|e| failed(&path, e));
            }
            _ => check_memory(bytes, what)?,
        }
        // One byte more tells an input that is too long.
        let data = self.read(bytes.saturating_add(1))?;
        match length(&data) {
            n if n == bytes => Ok(Bytes::Owned(data)),
            n if n < bytes => Err(other(n)),
            _ => Err(self.failed(format_args!("holds more than the {bytes} bytes of {what}"))),
        }
    }
}

/// The length of `bytes`, in the type that sizes have.
fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// From here on, bytes are mapped instead of being read or reserved.
const MAPPED_FROM_BYTES: u64 = 1 << 20;

/// Bytes in memory, or of a file that is mapped there. What is written to them
/// does not reach the file.
pub(crate) enum Bytes {
    Owned(Vec<u8>),
    Mapped(MmapMut),
}

impl Bytes {
    /// The bytes of a file from `start` on.
    fn map(path: &Path, start: u64, bytes: u64) -> io::Result<Bytes> {
        let file = File::open(path)?;
        let length = usize::try_from(bytes).map_err(io::Error::other)?;
        let mut options = MmapOptions::new();
        options.offset(start).len(length);
        #[allow(unsafe_code, reason = "files are mapped here and nowhere else")]
        // SAFETY: the mapping is private, so nothing of ours changes the file.
        // Whoever else cuts it short while we run ends the process, as it would
        // any program that maps files; that cannot be told before.
        let map = unsafe { options.map_copy(&file) }?;
        Ok(Bytes::Mapped(map))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Owned(bytes) => bytes,
            Bytes::Mapped(map) => map,
        }
    }
}

impl DerefMut for Bytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Bytes::Owned(bytes) => bytes,
            Bytes::Mapped(map) => map,
        }
    }
}

/// A buffer of `bytes` zeros, or a failure where memory cannot hold it.
pub(crate) fn allocate(bytes: u64, what: &str) -> Result<Bytes, Failure> {
    check_memory(bytes, what)?;
    let length = usize::try_from(bytes).map_err(|_| too_large(bytes, what))?;
    if bytes < MAPPED_FROM_BYTES {
        return Ok(Bytes::Owned(vec![0; length]));
    }
    let map = MmapMut::map_anon(length).map_err(|_| too_large(bytes, what))?;
    #[cfg(target_os = "linux")]
    // Where there are no huge pages, small ones do.
    let _ = map.advise(memmap2::Advice::HugePage);
    Ok(Bytes::Mapped(map))
}

/// A failure where `what` takes more memory than is free.
pub(crate) fn check_memory(bytes: u64, what: &str) -> Result<(), Failure> {
    match available_memory_bytes() {
        Some(available) if bytes > available => Err(too_large(bytes, what)),
        _ => Ok(()),
    }
}

fn too_large(bytes: u64, what: &str) -> Failure {
    Failure::work(format!("{what} takes {bytes} bytes, which is more than the memory that is free"))
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
    /// Whether it is written in place: a device or a pipe, maybe our own
    /// standard output under another name.
    in_place: bool,
}

impl Output {
    /// An output, refused at once if it is a file that exists and `force` is
    /// not given, so that no work is done in vain.
    ///
    /// A link is followed: what it points to is replaced, not the link, and a
    /// link to nothing is refused. A device or a pipe is written to, which
    /// replaces nothing.
    pub(crate) fn new(path: &Path, force: bool) -> Result<Self, Failure> {
        let mut output = Output { path: path.to_owned(), force, in_place: false };
        if is_standard(path) || path.symlink_metadata().is_err() {
            return Ok(output);
        }
        let metadata = path.metadata().map_err(|e| failed(path, e))?;
        if metadata.is_dir() {
            return Err(failed(path, "is a directory"));
        }
        output.in_place = !metadata.is_file();
        if !output.in_place {
            if !force {
                return Err(exists(path));
            }
            output.path = path.canonicalize().map_err(|e| failed(path, e))?;
        }
        Ok(output)
    }

    /// Writes all of `parts`, or leaves the file as it was. (What a device or a
    /// pipe took before a failure cannot be taken back.)
    pub(crate) fn write(&self, parts: &[&[u8]]) -> Result<(), Failure> {
        let fail = |e: io::Error| failed(&self.path, e);
        let write_to = |file: &mut dyn Write| {
            parts.iter().try_for_each(|part| file.write_all(part))?;
            file.flush()
        };
        if is_standard(&self.path) {
            // That nobody reads it to its end is a failure here, as the result
            // is a whole.
            let result = write_to(&mut io::stdout().lock());
            return result.map_err(|e| Failure::work(format!("standard output: {e}")));
        }
        if self.in_place {
            let mut device = File::options().write(true).open(&self.path).map_err(fail)?;
            return write_to(&mut device).map_err(fail);
        }
        let folder = match self.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        let replaced_mode = {
            use std::os::unix::fs::PermissionsExt;
            // As a file that is simply created; the umask takes its part.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
            // What makes a program run as another is not for a new file.
            self.path.metadata().ok().map(|m| m.permissions().mode() & 0o777)
        };
        // The error names a file that is nobody's concern.
        let mut file = builder.prefix(".relayout-").tempfile_in(folder).map_err(|e| {
            let folder = folder.display();
            failed(&self.path, format_args!("no file can be made in {folder}: {}", e.kind()))
        })?;
        #[cfg(unix)]
        if let Some(mode) = replaced_mode {
            use std::os::unix::fs::PermissionsExt;
            let permissions = std::fs::Permissions::from_mode(mode);
            file.as_file().set_permissions(permissions).map_err(fail)?;
        }
        write_to(&mut file).map_err(fail)?;
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

    /// Where reports go: to standard error where the result may go to standard
    /// output.
    pub(crate) fn report_to(&self) -> Box<dyn Write> {
        if is_standard(&self.path) || self.in_place {
            Box::new(io::stderr())
        } else {
            Box::new(io::stdout())
        }
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
