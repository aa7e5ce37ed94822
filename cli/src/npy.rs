//! NumPy files: the header by the crate npyz, the data as bytes.
//!
//! npyz reads whatever length of header a file claims and recurses as deep as
//! its brackets go, so both are bounded before it is asked. It knows no float
//! of one byte, which is how NumPy stores `float8_e5m2`; that is read as one
//! byte of raw data, since the element type comes from the shape anyway.

use npyz::{DType, Endianness, NpyHeader, Order, TypeChar, TypeStr, WriterBuilder};

use crate::failure::Failure;
use crate::files::{Bytes, Input};

/// The longest header that is read, in bytes. NumPy itself stops at 10,000.
const MAX_HEADER_BYTES: u64 = 65_536;

/// The deepest brackets in a header that is read: those of an array have two, of records
/// some more. The parser behind npyz takes several times as long for each.
const MAX_HEADER_DEPTH: usize = 6;

/// An array as a NumPy file holds it, but little-endian.
pub(crate) struct Array {
    /// What the file says of its elements.
    pub(crate) type_str: TypeStr,
    /// The bounds of its dimensions.
    pub(crate) bounds: Vec<u64>,
    /// Which dimension is the fastest.
    pub(crate) order: Order,
    /// The elements, little-endian.
    pub(crate) data: Bytes,
}

/// Reads a NumPy file.
pub(crate) fn read(mut input: Input) -> Result<Array, Failure> {
    let header = read_header(&mut input)?;
    let DType::Plain(type_str) = header.dtype() else {
        return Err(input.failed("holds records, not the elements of one type"));
    };
    let unit = swapped_bytes(&type_str).ok_or_else(|| {
        input.failed(format_args!("holds elements of type {type_str}, which no array of XLA has"))
    })?;
    let bounds = header.shape().to_vec();
    let bytes = bounds.iter().try_fold(type_str.size_field(), |n, &bound| n.checked_mul(bound));
    // A bound of 0 makes it 0 whatever stands before.
    let bytes = if bounds.contains(&0) { Some(0) } else { bytes };
    let bytes = bytes.ok_or_else(|| {
        input.failed(format_args!("claims bounds of {bounds:?}, which take 2^64 bytes or more"))
    })?;
    let what = format!("an array of {bounds:?} elements of {type_str}");
    let mut data = input.read_rest(bytes, &what)?;
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
        // Raw bytes that say they are big-endian are a bf16 that was swapped;
        // others say `|`.
        TypeChar::Bool | TypeChar::Int | TypeChar::Uint | TypeChar::Float | TypeChar::RawData => {
            Some(bytes)
        }
        TypeChar::Complex => Some(bytes / 2),
        _ => None,
    }
}

fn read_header(input: &mut Input) -> Result<NpyHeader, Failure> {
    const HEADER: &str = "a NumPy file's header";
    let mut start = input.read_bytes(8, HEADER)?;
    if !start.starts_with(b"\x93NUMPY") {
        return Err(input.failed("is not a NumPy file: it does not begin with \\x93NUMPY"));
    }
    let length_bytes = match start[6..] {
        [1, 0] => 2,
        [2 | 3, 0] => 4,
        _ => {
            let version = format_args!("{}.{}", start[6], start[7]).to_string();
            return Err(input.failed(format_args!(
                "is a NumPy file of version {version}, not 1.0, 2.0 or 3.0"
            )));
        }
    };
    let length = input.read_bytes(length_bytes, HEADER)?;
    let header_bytes = length.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte));
    if header_bytes > MAX_HEADER_BYTES {
        return Err(input.failed(format_args!(
            "has a NumPy header that claims {header_bytes} bytes, more than {MAX_HEADER_BYTES}"
        )));
    }
    let mut header = input.read_bytes(header_bytes, HEADER)?;
    if depth(&header) > MAX_HEADER_DEPTH {
        return Err(input
            .failed(format_args!("has a NumPy header that nests deeper than {MAX_HEADER_DEPTH}")));
    }
    for order in ["<", ">", "|"] {
        let (float, raw) = (format!("'descr': '{order}f1'"), format!("'descr': '{order}V1'"));
        if let Some(at) = header.windows(float.len()).position(|w| w == float.as_bytes()) {
            header[at..at + raw.len()].copy_from_slice(raw.as_bytes());
        }
    }
    start.extend(length);
    start.extend(header);
    NpyHeader::from_reader(&start[..])
        .map_err(|e| input.failed(format_args!("has a NumPy header that cannot be read: {e}")))
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
