//! Rows of elements below a byte into words of 32 bits, and back.
//!
//! Eight rows of bits, of which a byte each is eight by eight of them, are turned in place: what is
//! above and below the diagonal changes sides, fours first, then twos, then ones. Byte i of row c is
//! then column c of what byte i had, so that interleaving the rows brings the columns into order. Four
//! rows of elements of two bits, and two of four bits, begin with the fours as well, and end sooner.
//! A word has four such bytes, each of eight, four or two rows.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use super::Strip;
use super::deinterleave::store_vectors;
use super::interleave::Rows;
use super::scalar;
use super::vector::{self, Vector, load_row, unrolled};

/// The words of a vector of each row, from byte `at` of the row on; a missing row counts as zeros.
///
/// # Safety
///
/// That of [`Rows::load`].
#[inline(always)]
pub(super) unsafe fn words<
    V: Vector,
    const WAYS: usize,
    const BITS: u32,
    const MOST_FIRST: bool,
>(
    rows: &Rows<WAYS>,
    at: usize,
    full: bool,
) -> [V; WAYS] {
    // SAFETY: by the contract of this function.
    match BITS {
        1 => {
            // SAFETY: as above.
            unsafe { words_of::<V, WAYS, 8, 1, MOST_FIRST>(rows, at, full) }
        }
        2 => {
            // SAFETY: as above.
            unsafe { words_of::<V, WAYS, 4, 2, MOST_FIRST>(rows, at, full) }
        }
        _ => {
            // SAFETY: as above.
            unsafe { words_of::<V, WAYS, 2, 4, MOST_FIRST>(rows, at, full) }
        }
    }
}

/// The words of rows, a vector of each, as [`words`] makes them.
#[inline(always)]
pub(super) fn weave<V: Vector, const WAYS: usize, const BITS: u32>(rows: [V; WAYS]) -> [V; WAYS] {
    match BITS {
        1 => weave_bytes::<V, WAYS, 8, 1>(rows),
        2 => weave_bytes::<V, WAYS, 4, 2>(rows),
        _ => weave_bytes::<V, WAYS, 2, 4>(rows),
    }
}

/// The same of rows of which so many fill a byte.
#[inline(always)]
fn weave_bytes<V: Vector, const WAYS: usize, const IN_BYTE: usize, const BITS: u32>(
    rows: [V; WAYS],
) -> [V; WAYS] {
    let mut bytes = [[rows[0]; IN_BYTE]; 4];
    for (bytes, rows) in bytes.iter_mut().zip(rows.as_chunks::<IN_BYTE>().0) {
        *bytes = bytes_of_rows::<V, IN_BYTE, BITS, false>(*rows);
    }
    words_of_bytes::<V, WAYS, IN_BYTE>(bytes)
}

/// The rows of words, a vector of each: the inverse of [`words`].
#[inline(always)]
pub(super) fn unweave<V: Vector, const WAYS: usize, const BITS: u32, const MOST_FIRST: bool>(
    words: [V; WAYS],
) -> [V; WAYS] {
    match BITS {
        1 => unweave_bytes::<V, WAYS, 8, 1, MOST_FIRST>(words),
        2 => unweave_bytes::<V, WAYS, 4, 2, MOST_FIRST>(words),
        _ => unweave_bytes::<V, WAYS, 2, 4, MOST_FIRST>(words),
    }
}

/// [`words`], of rows of which so many fill a byte.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn words_of<
    V: Vector,
    const WAYS: usize,
    const IN_BYTE: usize,
    const BITS: u32,
    const MOST_FIRST: bool,
>(
    rows: &Rows<WAYS>,
    at: usize,
    full: bool,
) -> [V; WAYS] {
    // SAFETY: the rows of the first bytes of the words.
    let first = unsafe { rows.load::<V, IN_BYTE>(0, at, full) };
    let a = bytes_of_rows::<V, IN_BYTE, BITS, MOST_FIRST>(first);
    // SAFETY: those of the second ones.
    let second = unsafe { rows.load::<V, IN_BYTE>(IN_BYTE, at, full) };
    let b = bytes_of_rows::<V, IN_BYTE, BITS, MOST_FIRST>(second);
    // SAFETY: those of the third ones.
    let third = unsafe { rows.load::<V, IN_BYTE>(2 * IN_BYTE, at, full) };
    let c = bytes_of_rows::<V, IN_BYTE, BITS, MOST_FIRST>(third);
    // SAFETY: those of the last ones.
    let last = unsafe { rows.load::<V, IN_BYTE>(3 * IN_BYTE, at, full) };
    let d = bytes_of_rows::<V, IN_BYTE, BITS, MOST_FIRST>(last);
    words_of_bytes::<V, WAYS, IN_BYTE>([a, b, c, d])
}

/// A byte of the words of all columns, of as many rows as fill it.
#[inline(always)]
fn bytes_of_rows<V: Vector, const IN_BYTE: usize, const BITS: u32, const MOST_FIRST: bool>(
    rows: [V; IN_BYTE],
) -> [V; IN_BYTE] {
    let mut bytes = rows;
    if let (1, Ok(eight)) = (BITS, <&[V; 8]>::try_from(rows.as_slice())) {
        bytes.copy_from_slice(&V::interleave_bits::<MOST_FIRST>(*eight));
        return bytes;
    }
    bytes_by_squares::<V, IN_BYTE, BITS, MOST_FIRST>(rows)
}

/// The same, by squares of elements that are turned.
#[inline(always)]
pub(super) fn bytes_by_squares<
    V: Vector,
    const IN_BYTE: usize,
    const BITS: u32,
    const MOST_FIRST: bool,
>(
    rows: [V; IN_BYTE],
) -> [V; IN_BYTE] {
    let columns = turned::<V, IN_BYTE, BITS>(rows);
    vector::weave::<V, IN_BYTE, 8>(in_order::<V, IN_BYTE, MOST_FIRST>(columns))
}

/// Words of four bytes, in the order of their columns.
#[inline(always)]
fn words_of_bytes<V: Vector, const WAYS: usize, const IN_BYTE: usize>(
    [a, b, c, d]: [[V; IN_BYTE]; 4],
) -> [V; WAYS] {
    let mut words = [a[0]; WAYS];
    unrolled!(i in IN_BYTE, {
        let four = V::interleave_bytes([a[i], b[i], c[i], d[i]]);
        [words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]] = four;
    });
    words
}

/// The inverse of [`words_of`].
#[inline(always)]
fn unweave_bytes<
    V: Vector,
    const WAYS: usize,
    const IN_BYTE: usize,
    const BITS: u32,
    const MOST_FIRST: bool,
>(
    words: [V; WAYS],
) -> [V; WAYS] {
    let mut rows = words;
    let [a, b, c, d] = bytes_of_words::<V, WAYS, IN_BYTE>(words);
    rows_of_bytes::<V, WAYS, IN_BYTE, BITS, MOST_FIRST>(a, 0, &mut rows);
    rows_of_bytes::<V, WAYS, IN_BYTE, BITS, MOST_FIRST>(b, 1, &mut rows);
    rows_of_bytes::<V, WAYS, IN_BYTE, BITS, MOST_FIRST>(c, 2, &mut rows);
    rows_of_bytes::<V, WAYS, IN_BYTE, BITS, MOST_FIRST>(d, 3, &mut rows);
    rows
}

/// The inverse of [`words_of_bytes`].
#[inline(always)]
fn bytes_of_words<V: Vector, const WAYS: usize, const IN_BYTE: usize>(
    words: [V; WAYS],
) -> [[V; IN_BYTE]; 4] {
    let mut a = [words[0]; IN_BYTE];
    let (mut b, mut c, mut d) = (a, a, a);
    unrolled!(i in IN_BYTE, {
        let four = [words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]];
        [a[i], b[i], c[i], d[i]] = V::deinterleave_bytes(four);
    });
    [a, b, c, d]
}

/// Stores a vector of each of the first rows of words, and makes none of the bytes that hold others only.
///
/// # Safety
///
/// They can be written. The CPU has `V`.
#[inline(always)]
pub(super) unsafe fn store_first<
    V: Vector,
    const WAYS: usize,
    const BITS: u32,
    const MOST_FIRST: bool,
>(
    words: [V; WAYS],
    count: usize,
    to: scalar::Places<*mut u8>,
) {
    match BITS {
        1 => {
            // SAFETY: by the contract of this function.
            unsafe { store_first_of_bytes::<V, WAYS, 8, 1, MOST_FIRST>(words, count, to) }
        }
        2 => {
            // SAFETY: as above.
            unsafe { store_first_of_bytes::<V, WAYS, 4, 2, MOST_FIRST>(words, count, to) }
        }
        _ => {
            // SAFETY: as above.
            unsafe { store_first_of_bytes::<V, WAYS, 2, 4, MOST_FIRST>(words, count, to) }
        }
    }
}

/// [`store_first`], of rows of which so many fill a byte.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn store_first_of_bytes<
    V: Vector,
    const WAYS: usize,
    const IN_BYTE: usize,
    const BITS: u32,
    const MOST_FIRST: bool,
>(
    words: [V; WAYS],
    count: usize,
    to: scalar::Places<*mut u8>,
) {
    const BYTES: usize = 4;
    // What no byte before needs is only made for one that is.
    unrolled!(byte in BYTES, {
        let first = byte * IN_BYTE;
        if first >= count {
            return;
        }
        let bytes = bytes_of_words::<V, WAYS, IN_BYTE>(words)[byte];
        let rows = rows_of_byte::<V, IN_BYTE, BITS, MOST_FIRST>(bytes);
        let to = scalar::to(to.first.wrapping_add(first.wrapping_mul(to.stride)), to.stride);
        // SAFETY: by the contract of this function.
        unsafe { store_vectors(&rows, (count - first).min(IN_BYTE), to) };
    }, 0 1 2 3);
}

/// The inverse of [`bytes_of_rows`], to where the rows of that byte of the words belong.
#[inline(always)]
fn rows_of_bytes<
    V: Vector,
    const WAYS: usize,
    const IN_BYTE: usize,
    const BITS: u32,
    const MOST_FIRST: bool,
>(
    bytes: [V; IN_BYTE],
    byte: usize,
    rows: &mut [V; WAYS],
) {
    let some = rows_of_byte::<V, IN_BYTE, BITS, MOST_FIRST>(bytes);
    for (i, row) in some.iter().enumerate() {
        rows[byte * IN_BYTE + i] = *row;
    }
}

/// The inverse of [`bytes_of_rows`].
#[inline(always)]
fn rows_of_byte<V: Vector, const IN_BYTE: usize, const BITS: u32, const MOST_FIRST: bool>(
    bytes: [V; IN_BYTE],
) -> [V; IN_BYTE] {
    let mut rows = bytes;
    if let (1, Ok(eight)) = (BITS, <&[V; 8]>::try_from(bytes.as_slice())) {
        rows.copy_from_slice(&V::deinterleave_bits::<MOST_FIRST>(*eight));
        return rows;
    }
    rows_by_squares::<V, IN_BYTE, BITS, MOST_FIRST>(bytes)
}

/// The inverse of [`bytes_by_squares`].
#[inline(always)]
pub(super) fn rows_by_squares<
    V: Vector,
    const IN_BYTE: usize,
    const BITS: u32,
    const MOST_FIRST: bool,
>(
    bytes: [V; IN_BYTE],
) -> [V; IN_BYTE] {
    let columns = vector::unweave::<V, IN_BYTE, 8>(bytes);
    turned::<V, IN_BYTE, BITS>(in_order::<V, IN_BYTE, MOST_FIRST>(columns))
}

/// Streams a vector of each row that a byte holds, of bytes that follow each other in memory.
///
/// # Safety
///
/// As many vectors can be read, and one of each row be written, aligned. The CPU has `V`.
#[inline(always)]
pub(super) unsafe fn stream_rows<V: Vector, const BITS: u32, const MOST_FIRST: bool>(
    bytes: *const u8,
    to: scalar::Places<*mut u8>,
) {
    // SAFETY: by the contract of this function.
    match BITS {
        1 => {
            // SAFETY: as above.
            unsafe { stream_some::<V, 8, 1, MOST_FIRST>(bytes, to) }
        }
        2 => {
            // SAFETY: as above.
            unsafe { stream_some::<V, 4, 2, MOST_FIRST>(bytes, to) }
        }
        _ => {
            // SAFETY: as above.
            unsafe { stream_some::<V, 2, 4, MOST_FIRST>(bytes, to) }
        }
    }
}

/// [`stream_rows`], of which so many fill a byte.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn stream_some<V: Vector, const IN_BYTE: usize, const BITS: u32, const MOST_FIRST: bool>(
    bytes: *const u8,
    to: scalar::Places<*mut u8>,
) {
    // SAFETY: as many vectors as rows.
    let bytes = unsafe { load_row::<V, IN_BYTE>(bytes) };
    let rows = rows_of_byte::<V, IN_BYTE, BITS, MOST_FIRST>(bytes);
    for (i, row) in rows.iter().enumerate() {
        // SAFETY: a vector of a row, aligned.
        unsafe { row.stream(to.first.wrapping_add(i.wrapping_mul(to.stride))) };
    }
}

/// The columns in a byte, the one in its least significant bits first: turned round if that is the last
/// one. And the other way.
#[inline(always)]
fn in_order<V: Vector, const IN_BYTE: usize, const MOST_FIRST: bool>(
    columns: [V; IN_BYTE],
) -> [V; IN_BYTE] {
    let mut ordered = columns;
    if MOST_FIRST {
        unrolled!(i in IN_BYTE, ordered[i] = columns[IN_BYTE - 1 - i]);
    }
    ordered
}

/// Squares of elements of `BITS` bits, one in each byte of all rows, turned.
#[inline(always)]
fn turned<V: Vector, const ROWS: usize, const BITS: u32>(mut rows: [V; ROWS]) -> [V; ROWS] {
    const { assert!(ROWS == 8 / BITS as usize, "as many rows as elements in a byte") };
    let masks = |low: u8| {
        // SAFETY: the CPU has `V`, as there are values of it.
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
    if V::SELECTS {
        return (a.and(low).or(b.shl::<BY>().and(high)), a.shr::<BY>().and(low).or(b.and(high)));
    }
    let changed = a.shr::<BY>().xor(b).and(low);
    (a.xor(changed.shl::<BY>()), b.xor(changed))
}

/// The words of the columns of a block, made byte by byte.
///
/// # Safety
///
/// The rows of the block can be read, and its words be written.
#[inline(always)]
pub(super) unsafe fn interleave<const BITS: u32, const MOST_FIRST: bool>(
    strip: &Strip,
    source: *const u8,
    destination: *mut u8,
) {
    let rows_of_byte = 8 / BITS as usize;
    for column in 0..strip.columns {
        for byte in 0..4 {
            let first = byte * rows_of_byte;
            let rows = strip.rows.saturating_sub(first).min(rows_of_byte);
            let from = source.wrapping_add(first.wrapping_mul(strip.row_stride));
            let from = scalar::from(from, strip.row_stride);
            // SAFETY: one column of rows that the strip has.
            let made = unsafe { scalar::squeeze_packed::<BITS, MOST_FIRST>(rows, column, from) };
            // SAFETY: one byte of the word of that column.
            unsafe { destination.wrapping_add(4 * column + byte).write(made) };
        }
    }
}

/// The inverse of [`interleave`].
///
/// # Safety
///
/// The words of the block can be read, and its rows be written.
#[inline(always)]
pub(super) unsafe fn deinterleave<const BITS: u32, const MOST_FIRST: bool>(
    strip: &Strip,
    source: *const u8,
    destination: *mut u8,
) {
    let rows_of_byte = 8 / BITS as usize;
    for byte in 0..4 {
        let first = byte * rows_of_byte;
        let rows = strip.rows.saturating_sub(first).min(rows_of_byte);
        let to = destination.wrapping_add(first.wrapping_mul(strip.row_stride));
        let bytes = scalar::from(source.wrapping_add(byte), 4);
        let to = scalar::to(to, strip.row_stride);
        // SAFETY: all columns of one byte of the words, and rows that the strip has.
        unsafe { scalar::unsqueeze_packed::<BITS, MOST_FIRST>(rows, strip.columns, bytes, to) };
    }
}

/// A square of elements of `BITS` bits, as many rows of a byte each as a byte has elements, turned: byte i is column i of
/// what byte i was a row of. The columns of each row go from the most significant bits on, if `MOST_FIRST`.
fn square_of_rows<const BITS: u32, const MOST_FIRST: bool>(rows: u64) -> u64 {
    columns_in_order::<BITS, MOST_FIRST>(square_turned::<BITS>(rows))
}

/// The inverse of [`square_of_rows`].
fn square_of_columns<const BITS: u32, const MOST_FIRST: bool>(columns: u64) -> u64 {
    square_turned::<BITS>(columns_in_order::<BITS, MOST_FIRST>(columns))
}

/// The bytes of a square, turned round if its columns are.
fn columns_in_order<const BITS: u32, const MOST_FIRST: bool>(columns: u64) -> u64 {
    if MOST_FIRST { columns.swap_bytes() >> (u64::BITS - 64 / BITS) } else { columns }
}

fn square_turned<const BITS: u32>(mut square: u64) -> u64 {
    let mut exchange = |by: u32, upper: u64| {
        let changed = (square ^ square >> by) & upper;
        square ^= changed ^ changed << by;
    };
    match BITS {
        1 => {
            exchange(7, 0x00aa_00aa_00aa_00aa);
            exchange(14, 0x0000_cccc_0000_cccc);
            exchange(28, 0x0000_0000_f0f0_f0f0);
        }
        2 => {
            exchange(6, 0x00cc_00cc);
            exchange(12, 0x0000_f0f0);
        }
        _ => exchange(4, 0x00f0),
    }
    square
}

/// More squares than this are better turned in vectors, where words are made of them.
pub(super) const FEW_SQUARES: usize = 24;
/// And so many where they are taken out of words.
pub(super) const FEW_SQUARES_OF_WORDS: usize = 8;

/// How many squares a block of rows has that have so many bytes each: no number of elements that are not below a byte.
pub(super) fn squares<const BITS: u32>(rows: usize, bytes: usize) -> usize {
    if BITS >= 8 {
        return usize::MAX;
    }
    bytes.saturating_mul(rows.div_ceil(8 / BITS as usize))
}

/// The words of the columns of a block, made square by square.
///
/// # Safety
///
/// That of [`interleave`].
#[inline(always)]
pub(super) unsafe fn interleave_squares<const BITS: u32, const MOST_FIRST: bool>(
    strip: &Strip,
    source: *const u8,
    destination: *mut u8,
) {
    let in_byte = 8 / BITS as usize;
    for at in 0..strip.columns / in_byte {
        let mut words = [0; 8];
        for first in (0..strip.rows).step_by(in_byte) {
            let mut square = 0;
            for row in 0..in_byte.min(strip.rows - first) {
                let from = source.wrapping_add((first + row).wrapping_mul(strip.row_stride));
                // SAFETY: a byte of one of the rows.
                let byte = unsafe { from.wrapping_add(at).read() };
                square |= u64::from(byte) << (8 * row);
            }
            let columns = square_of_rows::<BITS, MOST_FIRST>(square).to_le_bytes();
            for (word, byte) in words.iter_mut().zip(columns).take(in_byte) {
                *word |= u32::from(byte) << (first * BITS as usize);
            }
        }
        for (column, word) in words.iter().enumerate().take(in_byte) {
            let to = destination.wrapping_add(4 * (at * in_byte + column)).cast::<[u8; 4]>();
            // SAFETY: the word of one of the columns.
            unsafe { to.write(word.to_le_bytes()) };
        }
    }
}

/// The inverse of [`interleave_squares`].
///
/// # Safety
///
/// That of [`deinterleave`].
#[inline(always)]
pub(super) unsafe fn deinterleave_squares<const BITS: u32, const MOST_FIRST: bool>(
    strip: &Strip,
    source: *const u8,
    destination: *mut u8,
) {
    let in_byte = 8 / BITS as usize;
    for at in 0..strip.columns / in_byte {
        let mut words = [0; 8];
        for (column, word) in words.iter_mut().enumerate().take(in_byte) {
            let from = source.wrapping_add(4 * (at * in_byte + column)).cast::<[u8; 4]>();
            // SAFETY: the word of one of the columns.
            *word = u32::from_le_bytes(unsafe { from.read() });
        }
        for first in (0..strip.rows).step_by(in_byte) {
            let mut square = 0;
            for (column, word) in words.iter().enumerate().take(in_byte) {
                let byte = word >> (first * BITS as usize) & 0xff;
                square |= u64::from(byte) << (8 * column);
            }
            let rows = square_of_columns::<BITS, MOST_FIRST>(square).to_le_bytes();
            for (row, byte) in rows.into_iter().enumerate().take(strip.rows - first).take(in_byte) {
                let to = destination.wrapping_add((first + row).wrapping_mul(strip.row_stride));
                // SAFETY: a byte of one of the rows.
                unsafe { to.wrapping_add(at).write(byte) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squares_are_turned<const BITS: u32, const MOST_FIRST: bool>() {
        let in_byte = 8 / BITS as usize;
        let element = |square: u64, row: usize, column: usize| {
            square >> (8 * row + column * BITS as usize) & (0xff >> (8 - BITS))
        };
        for number in 0..200_u64 {
            let rows = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - 64 / BITS);
            let columns = square_of_rows::<BITS, MOST_FIRST>(rows);
            for (row, column) in (0..in_byte).flat_map(|i| (0..in_byte).map(move |j| (i, j))) {
                let at = if MOST_FIRST { in_byte - 1 - column } else { column };
                assert_eq!(element(columns, column, row), element(rows, row, at), "{BITS} bits");
            }
            assert_eq!(square_of_columns::<BITS, MOST_FIRST>(columns), rows, "{BITS} bits");
        }
    }

    #[test]
    fn each_element_of_a_square_comes_where_its_column_and_row_say() {
        squares_are_turned::<1, false>();
        squares_are_turned::<1, true>();
        squares_are_turned::<2, false>();
        squares_are_turned::<2, true>();
        squares_are_turned::<4, false>();
        squares_are_turned::<4, true>();
    }
}
