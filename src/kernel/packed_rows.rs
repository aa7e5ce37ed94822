//! Rows of packed elements into bytes that hold one column of as many rows each, and back: what
//! [`squeeze`](super::squeeze) does of rows that have a byte for each element.
//!
//! Eight rows of bits, of which a byte each is eight by eight of them, are turned in place: what is
//! above and below the diagonal changes sides, fours first, then twos, then ones. Byte i of row c is
//! then column c of what byte i had, so that interleaving the rows brings the columns into order. Four
//! rows of elements of two bits, and two of four bits, begin with the fours as well, and end sooner.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::mem::MaybeUninit;

use super::carry::CacheLines;
use super::scalar;
use super::vector::{LINE, Vector, load_row, put, store_row, unweave, weave};

/// Makes bytes of `rows` rows, none or as many as a byte holds at most, of elements of `BITS` bits: all
/// of `bytes`, one for each column. Streaming, what is ahead by each of these distances is fetched.
///
/// # Safety
///
/// As many columns as `bytes` has, which fill bytes of the rows, can be read of each row; the CPU has `V`.
#[inline(always)]
pub(super) unsafe fn squeeze_rows<V: Vector, const BITS: u32, const STREAM: bool>(
    rows: usize,
    source: scalar::Places<*const u8>,
    bytes: &mut [MaybeUninit<u8>],
    ahead: [usize; 2],
) {
    let row_bytes = bytes.len() * BITS as usize / 8;
    if rows == 0 {
        bytes.fill(MaybeUninit::new(0));
        return;
    }
    if row_bytes >= V::BYTES {
        // SAFETY: by the contract of this function.
        return unsafe { squeeze_vectors::<V, BITS, STREAM>(rows, source, bytes, ahead) };
    }
    if V::Half::BYTES < V::BYTES {
        // SAFETY: the same rows and columns; the CPU has the half of what it has.
        return unsafe { squeeze_rows::<V::Half, BITS, STREAM>(rows, source, bytes, ahead) };
    }
    let mut short = CacheLines([[0; LINE]; 8]);
    for (row, short) in short.0.iter_mut().enumerate().take(rows) {
        let from = source.first.wrapping_add(row.wrapping_mul(source.stride));
        // SAFETY: the bytes of a row, which are fewer than the shortest vector has, 16.
        unsafe { scalar::few(from, short.as_mut_ptr(), row_bytes, 16) };
    }
    let from = scalar::from(short.0.as_ptr().cast(), LINE);
    let mut made = [MaybeUninit::uninit(); 8 * LINE];
    let whole = made.get_mut(..V::BYTES * 8 / BITS as usize).unwrap_or_default();
    // SAFETY: so many rows of a vector.
    unsafe { squeeze_vectors::<V, BITS, false>(rows, from, whole, ahead) };
    bytes.copy_from_slice(made.get(..bytes.len()).unwrap_or_default());
}

/// [`squeeze_rows`] for some rows, of a vector at least.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn squeeze_vectors<V: Vector, const BITS: u32, const STREAM: bool>(
    rows: usize,
    source: scalar::Places<*const u8>,
    bytes: &mut [MaybeUninit<u8>],
    ahead: [usize; 2],
) {
    let in_byte = 8 / BITS as usize;
    let row_bytes = bytes.len() / in_byte;
    let last = row_bytes - V::BYTES;
    let mut next = 0;
    loop {
        let at = next.min(last);
        let row = |row: usize| {
            let from = source.first.wrapping_add(row.wrapping_mul(source.stride).wrapping_add(at));
            for _ in 0..if STREAM { (2 * V::BYTES).div_ceil(LINE) } else { 0 } {
                V::prefetch::<2>(from.wrapping_add(ahead[0]));
                V::prefetch::<2>(from.wrapping_add(ahead[1]));
            }
            if row < rows {
                // SAFETY: the bytes from `at` on are a vector at least, in each row.
                unsafe { V::load(from) }
            } else {
                // SAFETY: the CPU has `V`.
                unsafe { V::splat(0) }
            }
        };
        let to = bytes.as_mut_ptr().cast::<u8>().wrapping_add(at * in_byte);
        match BITS {
            1 => {
                let rows = std::array::from_fn::<V, 8, _>(row);
                // SAFETY: the CPU has `V`.
                let columns = unsafe { turned::<V, 8, 1>(rows) };
                // SAFETY: as many bytes as these rows have columns.
                unsafe { store_row(weave::<V, 8, 8>(columns), to) };
            }
            2 => {
                let rows = std::array::from_fn::<V, 4, _>(row);
                // SAFETY: the CPU has `V`.
                let columns = unsafe { turned::<V, 4, 2>(rows) };
                // SAFETY: as many bytes as these rows have columns.
                unsafe { store_row(weave::<V, 4, 8>(columns), to) };
            }
            _ => {
                let rows = std::array::from_fn::<V, 2, _>(row);
                // SAFETY: the CPU has `V`.
                let columns = unsafe { turned::<V, 2, 4>(rows) };
                // SAFETY: as many bytes as these rows have columns.
                unsafe { store_row(weave::<V, 2, 8>(columns), to) };
            }
        }
        if next >= last {
            break;
        }
        next += V::BYTES;
    }
}

/// The inverse of [`squeeze_rows`]: the first `rows` rows of what bytes hold, streamed where `STREAM`
/// says so and rows are whole lines of the caches.
///
/// # Safety
///
/// The bytes have been written, and as many columns, which fill bytes of the rows, can be in each row. The
/// CPU has `V`.
#[inline(always)]
pub(super) unsafe fn unsqueeze_rows<V: Vector, const BITS: u32, const STREAM: bool>(
    rows: usize,
    bytes: &[MaybeUninit<u8>],
    destination: scalar::Places<*mut u8>,
) {
    let row_bytes = bytes.len() * BITS as usize / 8;
    let are_aligned = (destination.first.addr() | destination.stride).is_multiple_of(LINE);
    if row_bytes < V::BYTES {
        if V::Half::BYTES < V::BYTES {
            // SAFETY: the same rows and columns; the CPU has the half of what it has.
            return unsafe { unsqueeze_rows::<V::Half, BITS, STREAM>(rows, bytes, destination) };
        }
        let mut short = [MaybeUninit::new(0); 8 * LINE];
        short.get_mut(..bytes.len()).unwrap_or_default().copy_from_slice(bytes);
        let whole = short.get(..V::BYTES * 8 / BITS as usize).unwrap_or_default();
        let mut made = CacheLines([[0; LINE]; 8]);
        let to = scalar::to(made.0.as_mut_ptr().cast(), LINE);
        // SAFETY: so many rows of a vector.
        unsafe { unsqueeze_vectors::<V, BITS, false>(rows, whole, to) };
        for (row, made) in made.0.iter().enumerate().take(rows) {
            let to = destination.first.wrapping_add(row.wrapping_mul(destination.stride));
            // SAFETY: the bytes of a row, which are fewer than the shortest vector has, 16.
            unsafe { scalar::few(made.as_ptr(), to, row_bytes, 16) };
        }
    } else if STREAM && are_aligned && row_bytes.is_multiple_of(LINE) {
        // SAFETY: by the contract of this function; rows of whole lines, which begin at some.
        unsafe { unsqueeze_vectors::<V, BITS, true>(rows, bytes, destination) };
    } else {
        // Lines of which a part is stored in the ordinary way hold up what is streamed.
        // SAFETY: by the contract of this function.
        unsafe { unsqueeze_vectors::<V, BITS, false>(rows, bytes, destination) };
    }
}

/// [`unsqueeze_rows`] of a vector at least.
///
/// # Safety
///
/// As there; for `STREAM`, rows are whole vectors at multiples of them.
#[inline(always)]
unsafe fn unsqueeze_vectors<V: Vector, const BITS: u32, const STREAM: bool>(
    rows: usize,
    bytes: &[MaybeUninit<u8>],
    destination: scalar::Places<*mut u8>,
) {
    let in_byte = 8 / BITS as usize;
    let row_bytes = bytes.len() / in_byte;
    let last = row_bytes - V::BYTES;
    let mut next = 0;
    loop {
        let at = next.min(last);
        let from = bytes.as_ptr().cast::<u8>().wrapping_add(at * in_byte);
        let put_row = |row: usize, vector: V| {
            let to = destination.first.wrapping_add(row.wrapping_mul(destination.stride));
            let to = to.wrapping_add(at);
            if row < rows {
                // SAFETY: so many bytes of a row that there is, from an aligned one on if streaming.
                unsafe { put::<V, STREAM>(vector, to) };
            }
        };
        match BITS {
            1 => {
                // SAFETY: the columns of a vector of each row.
                let columns = unweave::<V, 8, 8>(unsafe { load_row(from) });
                // SAFETY: the CPU has `V`.
                let rows = unsafe { turned::<V, 8, 1>(columns) };
                rows.into_iter().enumerate().for_each(|(row, vector)| put_row(row, vector));
            }
            2 => {
                // SAFETY: the columns of a vector of each row.
                let columns = unweave::<V, 4, 8>(unsafe { load_row(from) });
                // SAFETY: the CPU has `V`.
                let rows = unsafe { turned::<V, 4, 2>(columns) };
                rows.into_iter().enumerate().for_each(|(row, vector)| put_row(row, vector));
            }
            _ => {
                // SAFETY: the columns of a vector of each row.
                let columns = unweave::<V, 2, 8>(unsafe { load_row(from) });
                // SAFETY: the CPU has `V`.
                let rows = unsafe { turned::<V, 2, 4>(columns) };
                rows.into_iter().enumerate().for_each(|(row, vector)| put_row(row, vector));
            }
        }
        if next >= last {
            break;
        }
        next += V::BYTES;
    }
}

/// Squares of elements of `BITS` bits, one in each byte of all rows, turned.
///
/// # Safety
///
/// The CPU has `V`.
#[inline(always)]
unsafe fn turned<V: Vector, const ROWS: usize, const BITS: u32>(mut rows: [V; ROWS]) -> [V; ROWS] {
    const { assert!(ROWS == 8 / BITS as usize, "as many rows as elements in a byte") };
    let masks = |low: u8| {
        // SAFETY: by the contract of this function.
        let low_parts = unsafe { V::splat(low) };
        // SAFETY: as above.
        [low_parts, unsafe { V::splat(!low) }]
    };
    let fours = masks(0x0f);
    for i in 0..ROWS / 2 {
        (rows[i], rows[i + ROWS / 2]) = exchanged::<V, 4>(rows[i], rows[i + ROWS / 2], fours);
    }
    if BITS < 4 {
        let twos = masks(0x33);
        for i in (0..ROWS).filter(|i| i & (ROWS / 4) == 0) {
            (rows[i], rows[i + ROWS / 4]) = exchanged::<V, 2>(rows[i], rows[i + ROWS / 4], twos);
        }
    }
    if BITS < 2 {
        let ones = masks(0x55);
        for i in (0..ROWS).step_by(2) {
            (rows[i], rows[i + 1]) = exchanged::<V, 1>(rows[i], rows[i + 1], ones);
        }
    }
    rows
}

/// The low parts of both, and the high parts of both; `BY` bits wide, which the masks have.
#[inline(always)]
fn exchanged<V: Vector, const BY: i32>(a: V, b: V, [low, high]: [V; 2]) -> (V, V) {
    (a.and(low).or(b.shl::<BY>().and(high)), a.shr::<BY>().and(low).or(b.and(high)))
}
