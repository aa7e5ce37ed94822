//! Transposes of words of 32 bits whose elements, narrower than a byte, host memory keeps one in a byte: words are made as
//! rows are read, or taken apart as columns are written.
//!
//! A row, or a column, of host memory may end within a word. That one is done apart from those that are whole, as few words
//! are: see [`few`](super::few).

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::marker::PhantomData;

use super::algorithm::{Algorithm, Body, InstructionSet, shorter};
use super::few::{Groups, Tall, Wide};
use super::matrix::Matrix;
use super::packed::{MOST_TIMES, narrow, narrow_bytes, widen, widen_to_bytes};
use super::places::Split;
use super::turn::InMemory;
use super::vector::{LINE, SHORTEST, Vector, streams};
use super::{Place, Run, Strip, scalar};

/// The bytes of a word.
const WORD: usize = 4;

/// How many elements of so many bits a word has.
const fn elements(bits: u32) -> usize {
    8 * WORD / bits as usize
}

/// How many whole words of so many elements go by blocks, and how many elements are left. With masks, words that fill no
/// block are left too, as a last block would do others once more; but not where it is streamed, as rows would be visited
/// twice.
#[inline(always)]
fn parts<V: Vector, const BITS: u32, const STREAM: bool>(count: usize) -> (usize, usize) {
    let words = count / elements(BITS);
    let in_block = if V::HAS_MASKS && !STREAM { V::BYTES / WORD } else { 1 };
    let words = words - words % in_block;
    (words, count - words * elements(BITS))
}

/// Words that the source has as bytes, of which they take the low `BITS` bits; or whether any was set.
struct Narrowed<const BITS: u32, const TRUTH: bool>;

impl<const BITS: u32, const TRUTH: bool> InMemory for Narrowed<BITS, TRUTH> {
    const SOURCE_TIMES: usize = 8 / BITS as usize;

    #[inline(always)]
    unsafe fn load<V: Vector>(from: *const u8) -> V {
        // SAFETY: the same contract.
        unsafe { narrow_bytes::<V, BITS, TRUTH, false>(from) }
    }

    #[inline(always)]
    unsafe fn gather<V: Vector>(first: *const u8, apart: usize, bytes: usize) -> V {
        const { assert!(V::BYTES == LINE || !V::HAS_MASKS, "pieces are those of lines") };
        let pieces = Pieces::<BITS> { apart, bytes };
        // SAFETY: the CPU has `V`.
        let mut all = [unsafe { V::splat(0) }; MOST_TIMES];
        let times = Self::SOURCE_TIMES;
        for (i, vector) in all.iter_mut().enumerate().take(times) {
            let (at, count) = pieces.of_vector(i);
            let first = first.wrapping_add(at);
            *vector = if BITS == 4 {
                // SAFETY: some of the bytes.
                unsafe { V::gather_pieces::<{ LINE / 2 }>(first, apart, count) }
            } else {
                // SAFETY: some of the bytes.
                unsafe { V::gather_pieces::<LINE>(first, apart, count) }
            };
        }
        // SAFETY: the CPU has `V`.
        unsafe { narrow::<V, BITS, TRUTH, false>(all) }
    }
}

/// Words that the destination has as bytes.
struct Widened<const BITS: u32>;

impl<const BITS: u32> InMemory for Widened<BITS> {
    const DESTINATION_TIMES: usize = 8 / BITS as usize;

    #[inline(always)]
    unsafe fn put<V: Vector, const STREAM: bool>(vector: V, to: *mut u8) {
        // SAFETY: the same contract.
        unsafe { widen_to_bytes::<V, BITS, false, STREAM>(vector, to) };
    }

    #[inline(always)]
    unsafe fn scatter<V: Vector>(vector: V, first: *mut u8, apart: usize, bytes: usize) {
        const { assert!(V::BYTES == LINE || !V::HAS_MASKS, "pieces are those of lines") };
        let pieces = Pieces::<BITS> { apart, bytes };
        // SAFETY: the CPU has `V`.
        let all = unsafe { widen::<V, BITS, false>(vector) };
        let times = Self::DESTINATION_TIMES;
        for (i, vector) in all.into_iter().enumerate().take(times) {
            let (at, count) = pieces.of_vector(i);
            let first = first.wrapping_add(at);
            if BITS == 4 {
                // SAFETY: some of the bytes.
                unsafe { vector.scatter_pieces::<{ LINE / 2 }>(first, apart, count) };
            } else {
                // SAFETY: some of the bytes.
                unsafe { vector.scatter_pieces::<LINE>(first, apart, count) };
            }
        }
    }
}

/// Words of 16 bytes from each of four places so far apart, as host memory has them: so many bytes at each, of the
/// most that there can be.
#[derive(Clone, Copy)]
struct Pieces<const BITS: u32> {
    apart: usize,
    bytes: usize,
}

impl<const BITS: u32> Pieces<BITS> {
    /// Where the bytes of one of the vectors begin, each of which is a line of them, and how many there are from there on
    /// at its place.
    #[inline(always)]
    fn of_vector(self, number: usize) -> (usize, usize) {
        let piece = SHORTEST * 8 / BITS as usize;
        let (place, within) = (number * LINE / piece, number * LINE % piece);
        (place.wrapping_mul(self.apart).wrapping_add(within), self.bytes.saturating_sub(within))
    }
}

/// [`BlockOp::NarrowTranspose`](super::BlockOp::NarrowTranspose).
pub(super) struct NarrowTranspose<const BITS: u32, const TRUTH: bool, const STREAM: bool>;

impl<const BITS: u32, const TRUTH: bool, const STREAM: bool> Algorithm
    for NarrowTranspose<BITS, TRUTH, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            for row in 0..strip.rows {
                let from = source.wrapping_add(row.wrapping_mul(strip.row_stride));
                let to = destination.wrapping_add(row * WORD);
                for (word, column) in (0..strip.columns).step_by(elements(BITS)).enumerate() {
                    let count = elements(BITS).min(strip.columns - column);
                    let from = from.wrapping_add(column);
                    let to = to.wrapping_add(word.wrapping_mul(strip.column_stride));
                    // SAFETY: the bytes of one word of the block.
                    unsafe { scalar::narrow_run::<BITS, TRUTH, false, true>(count, from, to, 0) };
                    let made = (count * BITS as usize).div_ceil(8);
                    // SAFETY: the rest of that word.
                    unsafe { scalar::short_fill(to.wrapping_add(made), 0, WORD - made) };
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        let (whole, rest) = Self::parts::<V>(strip);
        let matrix = Matrix::of_narrow::<Narrowed<BITS, TRUTH>>(&whole);
        // SAFETY: the same strip, which has as many rows and columns as a vector has words, as
        // nothing does it instead.
        unsafe {
            matrix.transpose_by_vectors::<V, Narrowed<BITS, TRUTH>, 32, WORD, 1, 32, STREAM>(
                &whole,
                source,
                destination,
            );
        };
        if let Some((rest, Place { source: from, destination: to })) = rest {
            let run = V::entry::<NarrowTranspose<BITS, TRUTH, false>>();
            // SAFETY: the last elements of each row.
            unsafe { run(&rest, &[], source.wrapping_add(from), destination.wrapping_add(to)) };
        }
    }

    #[inline(always)]
    fn instead<V: Vector>(strip: &Strip, _: *mut u8) -> Option<Run> {
        let (whole, _) = Self::parts::<V>(strip);
        let matrix = Matrix::of_narrow::<Narrowed<BITS, TRUTH>>(&whole);
        if matrix.has_vectors::<V>(WORD) {
            return None;
        }
        let has_few = V::HAS_MASKS && strip.rows >= V::BYTES / WORD;
        Some(if has_few {
            V::compiled::<Few<NarrowTranspose<BITS, TRUTH, STREAM>>>()
        } else {
            // What is so small is not streamed.
            shorter::<NarrowTranspose<BITS, TRUTH, false>, V>()
        })
    }
}

impl<const BITS: u32, const TRUTH: bool, const STREAM: bool> NarrowTranspose<BITS, TRUTH, STREAM> {
    /// Those that go by blocks, as columns of words, and what is left of each row.
    #[inline(always)]
    fn parts<V: Vector>(strip: &Strip) -> (Strip, Option<(Strip, Place)>) {
        let (words, rest) = parts::<V, BITS, STREAM>(strip.columns);
        let place = Place {
            source: strip.columns - rest,
            destination: words.wrapping_mul(strip.column_stride),
        };
        let of = |columns| Strip { columns, ..*strip };
        (of(words), (rest > 0).then(|| (of(rest), place)))
    }
}

/// [`BlockOp::TransposeWiden`](super::BlockOp::TransposeWiden).
pub(super) struct TransposeWiden<const BITS: u32, const STREAM: bool>;

impl<const BITS: u32, const STREAM: bool> Algorithm for TransposeWiden<BITS, STREAM> {
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            for column in 0..strip.columns {
                let from = source.wrapping_add(column * WORD);
                let to = destination.wrapping_add(column.wrapping_mul(strip.column_stride));
                for (word, row) in (0..strip.rows).step_by(elements(BITS)).enumerate() {
                    let count = elements(BITS).min(strip.rows - row);
                    let from = from.wrapping_add(word.wrapping_mul(strip.row_stride));
                    // SAFETY: the bytes of one word of the block.
                    unsafe {
                        scalar::widen_run::<BITS, false>(count, from, 0, to.wrapping_add(row))
                    };
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        let (whole, rest) = Self::parts::<V>(strip);
        let matrix = Matrix::of_narrow::<Widened<BITS>>(&whole);
        // SAFETY: the same strip, which has as many rows and columns as a vector has words, as
        // nothing does it instead.
        unsafe {
            matrix.transpose_by_vectors::<V, Widened<BITS>, 32, WORD, 1, 32, STREAM>(
                &whole,
                source,
                destination,
            );
        };
        if let Some((rest, Place { source: from, destination: to })) = rest {
            let run = V::entry::<TransposeWiden<BITS, false>>();
            // SAFETY: the last elements of each column.
            unsafe { run(&rest, &[], source.wrapping_add(from), destination.wrapping_add(to)) };
        }
    }

    #[inline(always)]
    fn instead<V: Vector>(strip: &Strip, _: *mut u8) -> Option<Run> {
        let (whole, _) = Self::parts::<V>(strip);
        let matrix = Matrix::of_narrow::<Widened<BITS>>(&whole);
        if matrix.has_vectors::<V>(WORD) {
            return None;
        }
        let has_few = V::HAS_MASKS && strip.columns >= V::BYTES / WORD;
        Some(if has_few {
            V::compiled::<Few<TransposeWiden<BITS, false>>>()
        } else {
            // What is so small is not streamed.
            shorter::<TransposeWiden<BITS, false>, V>()
        })
    }
}

impl<const BITS: u32, const STREAM: bool> TransposeWiden<BITS, STREAM> {
    /// Those that go by blocks, as rows of words, and what is left of each column.
    #[inline(always)]
    fn parts<V: Vector>(strip: &Strip) -> (Strip, Option<(Strip, Place)>) {
        let (words, rest) = parts::<V, BITS, STREAM>(strip.rows);
        let place =
            Place { source: words.wrapping_mul(strip.row_stride), destination: strip.rows - rest };
        let of = |rows| Strip { rows, ..*strip };
        (of(words), (rest > 0).then(|| (of(rest), place)))
    }
}

impl Matrix {
    /// Of words of 32 bits.
    #[inline(always)]
    fn of_narrow<M: InMemory>(strip: &Strip) -> Matrix {
        Matrix::of_widths(strip, WORD * M::SOURCE_TIMES, WORD * M::DESTINATION_TIMES, 1)
    }
}

/// The same of few words in a row, or in a column.
struct Few<A>(PhantomData<A>);

impl<const BITS: u32, const TRUTH: bool, const STREAM: bool> Body
    for Few<NarrowTranspose<BITS, TRUTH, STREAM>>
{
    #[inline(always)]
    unsafe fn run<V: Vector>(strip: &Strip, _: &[Place], source: *const u8, destination: *mut u8) {
        let stream = STREAM && streams::<V>(strip, destination, strip.column_stride);
        let mut strip = *strip;
        // Rows that go on in the next block.
        if strip.blocks_join(WORD) && strip.source_step == strip.rows.wrapping_mul(strip.row_stride)
        {
            (strip.rows, strip.blocks) = (strip.rows * strip.blocks, 1);
        }
        let tall = Tall::<WORD> {
            rows: strip.rows,
            row: Groups::at_stride(strip.row_stride),
            bytes: strip.columns,
            column: Split::at_stride(strip.column_stride),
        };
        for (source, destination) in scalar::blocks(&strip, source, destination) {
            // SAFETY: a block, or all of a line, of as many rows as a vector has words; there are masks.
            unsafe {
                tall.transpose::<V, Narrowed<BITS, TRUTH>, 32, STREAM>(source, destination, stream);
            };
        }
    }
}

impl<const BITS: u32> Body for Few<TransposeWiden<BITS, false>> {
    #[inline(always)]
    unsafe fn run<V: Vector>(strip: &Strip, _: &[Place], source: *const u8, destination: *mut u8) {
        let mut strip = *strip;
        let columns = strip.columns.wrapping_mul(strip.column_stride);
        // Columns that go on in the next line.
        if strip.lines_join(WORD) && strip.destination_line == columns {
            (strip.columns, strip.lines) = (strip.columns * strip.lines, 1);
        }
        let wide = Wide::<WORD> {
            columns: strip.columns,
            column: Groups::at_stride(strip.column_stride),
            bytes: strip.rows,
            row: Split::at_stride(strip.row_stride),
        };
        for (source, destination) in scalar::blocks(&strip, source, destination) {
            // SAFETY: a block, or those of all lines, of as many columns as a vector has words; there are masks.
            unsafe { wide.transpose::<V, Widened<BITS>, 32>(source, destination) };
        }
    }
}
