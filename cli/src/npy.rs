//! NumPy files: the header by the crate npyz, the data as bytes.
//!
//! npyz reads whatever length of header a file claims and recurses as deep as
//! its brackets go, so both are bounded before it is asked. It knows no float
//! of one byte, which is how NumPy stores `float8_e5m2`; that is read as one
//! byte of raw data, since the element type comes from the shape anyway.

use std::io::Read;
use std::path::Path;

use npyz::{DType, Endianness, NpyHeader, Order, TypeChar, TypeStr, WriterBuilder};

use crate::failure::Failure;
use crate::files;

/// The longest header that is read, in bytes. NumPy itself stops at 10,000.
const MAX_HEADER_BYTES: u64 = 65_536;

/// The deepest brackets in a header that is read.
const MAX_HEADER_DEPTH: usize = 16;

/// An array as a NumPy file holds it, but little-endian.
pub(crate) struct Array {
    /// What the file says of its elements.
    pub(crate) type_str: TypeStr,
    /// The bounds of its dimensions.
    pub(crate) bounds: Vec<u64>,
    /// Which dimension is the fastest.
    pub(crate) order: Order,
    /// The elements, little-endian.
    pub(crate) data: Vec<u8>,
}

/// Reads the NumPy file at `path`.
pub(crate) fn read(path: &Path) -> Result<Array, Failure> {
    let mut input = files::open(path)?;
    let header = read_header(path, &mut *input)?;
    let DType::Plain(type_str) = header.dtype() else {
        return Err(files::failed(path, "holds records, not the elements of one type"));
    };
    let unit = swapped_bytes(&type_str).ok_or_else(|| {
        files::failed(
            path,
            format_args!("holds elements of type {type_str}, which no array of XLA has"),
        )
    })?;
    let bounds = header.shape().to_vec();
    let bytes = bounds.iter().try_fold(type_str.size_field(), |n, &bound| n.checked_mul(bound));
    // A bound of 0 makes it 0 whatever stands before.
    let bytes = if bounds.contains(&0) { Some(0) } else { bytes };
    let bytes = bytes.ok_or_else(|| {
        files::failed(
            path,
            format_args!("claims bounds of {bounds:?}, which take 2^64 bytes or more"),
        )
    })?;
    let what = format!("an array of {bounds:?} elements of {type_str}");
    let mut data = files::read_exactly(path, &mut *input, bytes, &what)?;
    if type_str.endianness() == Endianness::Big {
        data.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
    }
    Ok(Array { type_str, bounds, order: header.order(), data })
}

/// The bytes that stand the other way round in a big-endian file, or `None`
/// for types that are no numbers.
fn swapped_bytes(type_str: &TypeStr) -> Option<usize> {
    let bytes = usize::try_from(type_str.size_field()).ok().filter(|&n| n > 0)?;
    match type_str.type_char() {
        TypeChar::Bool | TypeChar::Int | TypeChar::Uint | TypeChar::Float => Some(bytes),
        TypeChar::Complex => Some(bytes / 2),
        TypeChar::RawData => Some(1),
        _ => None,
    }
}

fn read_header(path: &Path, input: &mut dyn Read) -> Result<NpyHeader, Failure> {
    let fail = |e: &dyn std::fmt::Display| {
        files::failed(path, format_args!("not a NumPy file that can be read: {e}"))
    };
    let mut start = read_bytes(input, 8).map_err(|e| fail(&e))?;
    if !start.starts_with(b"\x93NUMPY") {
        return Err(fail(&"it does not begin with \\x93NUMPY"));
    }
    let length_bytes = match start[6..] {
        [1, 0] => 2,
        [2 | 3, 0] => 4,
        _ => {
            let version = format!("{}.{}", start[6], start[7]);
            return Err(fail(&format_args!("its version is {version}, not 1.0, 2.0 or 3.0")));
        }
    };
    let length = read_bytes(input, length_bytes).map_err(|e| fail(&e))?;
    let header_bytes = length.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte));
    if header_bytes > MAX_HEADER_BYTES {
        let limit =
            format_args!("its header claims {header_bytes} bytes, more than {MAX_HEADER_BYTES}");
        return Err(fail(&limit));
    }
    let mut header = read_bytes(input, header_bytes).map_err(|e| fail(&e))?;
    if depth(&header) > MAX_HEADER_DEPTH {
        return Err(fail(&format_args!("its header nests deeper than {MAX_HEADER_DEPTH}")));
    }
    for (float, raw) in [(b"'<f1'", b"'<V1'"), (b"'|f1'", b"'|V1'")] {
        if let Some(at) = header.windows(float.len()).position(|w| w == float) {
            header[at..at + raw.len()].copy_from_slice(raw);
        }
    }
    start.extend(length);
    start.extend(header);
    NpyHeader::from_reader(&start[..]).map_err(|e| fail(&e))
}

/// The next `n` bytes, or an error if the input ends before them.
fn read_bytes(input: &mut dyn Read, n: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = input.take(n).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if u64::try_from(read) == Ok(n) {
        Ok(bytes)
    } else {
        Err(format!("it ends {read} bytes into the {n} bytes that should come next"))
    }
}

/// How deep the brackets of a header go, those in strings included.
fn depth(header: &[u8]) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    for byte in header {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}

/// The start of a NumPy file: everything before the elements.
pub(crate) fn header(type_str: TypeStr, bounds: &[u64]) -> Result<Vec<u8>, Failure> {
    npyz::WriteOptions::new_header_only()
        .dtype(DType::new_scalar(type_str))
        .shape(bounds)
        .writer(Vec::new())
        .write_header_only()
        .map_err(|e| Failure::work(format!("the NumPy header of bounds {bounds:?}: {e}")))
}
