//! Rows of dense matrices into words, whose columns are taken apart, and back: images of several channels,
//! of which a word has some rows.
//!
//! ```text
//! two rows       a0 b0 c0 a1 b1 c1 ..      words      a0 d0 b0 e0 c0 f0 a1 d1 ..
//!                d0 e0 f0 d1 e1 f1 ..      columns    a0 d0 a1 d1 ..
//!                                                     b0 e0 b1 e1 ..
//!                                                     c0 f0 c1 f1 ..
//! ```
//!
//! Some vectors of each row are made into words in memory, and these taken apart as in
//! [`dense`](super::dense).

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::mem::MaybeUninit;

use super::algorithm::{Algorithm, Body, shorter};
use super::carry::CacheLines;
use super::dense::{Dense, Ways, instead_by_columns, store_rest};
use super::scalar;
use super::vector::{LINE, Vector, load_row, store_row, streams, unweave, weave};
use super::walk::Ahead;
use super::whole_lines::{BESIDE, Ends, WholeLines};
use super::{Place, Run, Strip};

/// The most columns that have a kernel.
const MOST: usize = 9;

/// The bytes of a word.
const WORD: usize = 4;

/// What the words of a vector of each row are in.
type Memory = CacheLines<{ MOST * WORD }>;

/// So many bytes of each row, and less than a vector of columns more, are made at a time, where they are streamed.
const ENOUGH: usize = 1024;

/// The memory that they are in.
type MemoryOfRow = CacheLines<{ (ENOUGH + BESIDE) / LINE + 2 * MOST }>;

/// [`BlockOp::InterleaveTranspose`](super::BlockOp::InterleaveTranspose), `WIDTH` being the bytes of an element.
pub(super) struct InterleaveTranspose<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const STREAM: bool,
>;

/// [`BlockOp::TransposeDeinterleave`](super::BlockOp::TransposeDeinterleave).
pub(super) struct TransposeDeinterleave<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const STREAM: bool,
>;

/// The same of `ODD` times `EVEN` columns.
struct Columns<A, const ODD: usize, const EVEN: usize>(std::marker::PhantomData<A>);

/// Whether there is a kernel for dense rows of so many columns.
pub fn has_dense_words(columns: u64) -> bool {
    (2..=MOST as u64).contains(&columns)
}

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> Algorithm
    for InterleaveTranspose<WAYS, BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            for (row, way) in (0..strip.rows).flat_map(|row| (0..WAYS).map(move |way| (row, way))) {
                let from = way.wrapping_mul(strip.row_stride);
                let from = source.wrapping_add(from).wrapping_add(row * strip.columns * WIDTH);
                let to = destination.wrapping_add((row * WAYS + way) * WIDTH);
                let (from, to) = (scalar::from(from, WIDTH), scalar::to(to, strip.column_stride));
                // SAFETY: a row of the block, an element to each column.
                unsafe { scalar::elements::<WIDTH>(strip.columns, from, to) };
            }
        }
    }

    #[inline(always)]
    fn instead<V: Vector>(strip: &Strip, _: *mut u8) -> Option<Run> {
        instead_by_columns!(
            InterleaveTranspose,
            strip,
            2 = 1 * 2,
            3 = 3 * 1,
            4 = 1 * 4,
            5 = 5 * 1,
            6 = 3 * 2,
            7 = 7 * 1,
            8 = 1 * 8,
            9 = 9 * 1
        )
    }
}

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> Algorithm
    for TransposeDeinterleave<WAYS, BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            for (row, way) in (0..strip.rows).flat_map(|row| (0..WAYS).map(move |way| (row, way))) {
                let from = source.wrapping_add((row * WAYS + way) * WIDTH);
                let to = way.wrapping_mul(strip.row_stride);
                let to = destination.wrapping_add(to).wrapping_add(row * strip.columns * WIDTH);
                let (from, to) = (scalar::from(from, strip.column_stride), scalar::to(to, WIDTH));
                // SAFETY: an element of each column, to a row of the block.
                unsafe { scalar::elements::<WIDTH>(strip.columns, from, to) };
            }
        }
    }

    #[inline(always)]
    fn instead<V: Vector>(strip: &Strip, _: *mut u8) -> Option<Run> {
        instead_by_columns!(
            TransposeDeinterleave,
            strip,
            2 = 1 * 2,
            3 = 3 * 1,
            4 = 1 * 4,
            5 = 5 * 1,
            6 = 3 * 2,
            7 = 7 * 1,
            8 = 1 * 8,
            9 = 9 * 1
        )
    }
}

impl<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const STREAM: bool,
    const ODD: usize,
    const EVEN: usize,
> Body for Columns<InterleaveTranspose<WAYS, BITS, WIDTH, STREAM>, ODD, EVEN>
{
    #[inline(always)]
    unsafe fn run<V: Vector>(strip: &Strip, _: &[Place], source: *const u8, destination: *mut u8) {
        const { assert!(WAYS * WIDTH == WORD && ODD * EVEN <= MOST, "there is memory for them") };
        let ways = Ways::<ODD>::of::<V>(WORD * EVEN);
        // SAFETY: the CPU has `V`.
        let masks = unsafe { ways.masks::<V>() };
        let mut memory = MaybeUninit::<Memory>::uninit();
        let memory = memory.as_mut_ptr().cast::<u8>();
        let ahead = Ahead::by_steps(strip, 1);
        // As many rows as a vector has elements, and words.
        let (lanes, words) = (V::BYTES / WIDTH, V::BYTES / WORD);
        let ends = Ends::of(strip, strip.rows * WORD);
        let stream =
            STREAM && V::BYTES >= LINE / 2 && streams::<V>(strip, destination, strip.column_stride);
        for (source, destination) in scalar::blocks(strip, source, destination) {
            if stream {
                for column in 0..ODD * EVEN {
                    ends.fetch_end::<V>(
                        destination.wrapping_add(column.wrapping_mul(strip.column_stride)),
                    );
                }
            }
            let mut next = 0;
            while next < strip.rows {
                // The last ones end where the columns do.
                let first = next.min(strip.rows - lanes);
                let from = source.wrapping_add(first * ODD * EVEN * WIDTH);
                for i in 0..ODD * EVEN {
                    let mut rows = [masks[0]; WAYS];
                    for (way, row) in rows.iter_mut().enumerate() {
                        let from = from.wrapping_add(way.wrapping_mul(strip.row_stride));
                        let from = from.wrapping_add(i * V::BYTES);
                        if STREAM && strip.is_far {
                            ahead.fetch_vector::<V>(i * V::BYTES, from);
                        }
                        // SAFETY: a vector of one row.
                        *row = unsafe { V::load(from) };
                    }
                    let made = weave::<V, WAYS, BITS>(rows);
                    // SAFETY: memory for as many.
                    unsafe { store_row(&made, memory.wrapping_add(i * WAYS * V::BYTES)) };
                }
                for part in 0..WAYS {
                    let from = memory.wrapping_add(part * ODD * EVEN * V::BYTES);
                    // SAFETY: the words of so many rows, which have just been made.
                    let made = unsafe {
                        Dense::<ODD, EVEN, 32, WORD, false>::take_apart(ways, &masks, from)
                    };
                    let at = first + part * words;
                    for (column, &vector) in made.as_flattened().iter().enumerate() {
                        let to = column.wrapping_mul(strip.column_stride).wrapping_add(at * WORD);
                        let to = destination.wrapping_add(to);
                        let done = next.saturating_sub(at) * WORD;
                        // SAFETY: so many words of a column.
                        unsafe { store_rest::<V, STREAM>(vector, to, done, stream) };
                    }
                }
                next = first + lanes;
            }
        }
    }
}

impl<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const STREAM: bool,
    const ODD: usize,
    const EVEN: usize,
> Body for Columns<TransposeDeinterleave<WAYS, BITS, WIDTH, STREAM>, ODD, EVEN>
{
    #[inline(always)]
    unsafe fn run<V: Vector>(strip: &Strip, _: &[Place], source: *const u8, destination: *mut u8) {
        const { assert!(WAYS * WIDTH == WORD && ODD * EVEN <= MOST, "there is memory for them") };
        let ways = Ways::<ODD>::of::<V>(WORD * EVEN);
        // SAFETY: the CPU has `V`.
        let masks = unsafe { ways.masks::<V>() };
        let mut memory = MaybeUninit::<Memory>::uninit();
        let memory = memory.as_mut_ptr().cast::<u8>();
        let ahead = Ahead::by_steps(strip, if strip.blocks > 1 { strip.source_step } else { 1 });
        let (lanes, words) = (V::BYTES / WIDTH, V::BYTES / WORD);
        // So much of each row is made at a time, where they are streamed.
        let row_bytes = ODD * EVEN * WIDTH;
        let at_once = (ENOUGH / row_bytes).next_multiple_of(lanes);
        const {
            // Less than a vector more twice: what is rounded up, and what is left.
            let most = ENOUGH + 2 * ODD * EVEN * V::BYTES;
            assert!(most + BESIDE <= size_of::<MemoryOfRow>(), "there is room for them");
        }
        let mut rows_made = MaybeUninit::<[MemoryOfRow; WAYS]>::uninit();
        let rows_made = rows_made.as_mut_ptr().cast::<u8>();
        let mut lines: [WholeLines; WAYS] = std::array::from_fn(|way| {
            WholeLines::at(rows_made.wrapping_add(way * size_of::<MemoryOfRow>()))
        });
        let ends = Ends::of(strip, strip.rows * row_bytes);
        let direct = STREAM
            && V::BYTES == LINE
            && streams::<V>(strip, destination, strip.row_stride)
            && strip.rows.is_multiple_of(lanes);
        let by_lines = STREAM && !direct;
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let mut next = 0;
            while next < strip.rows {
                let left = strip.rows - next;
                // Of the last ones, there are those of a vector at least.
                let count = if STREAM && left >= at_once + lanes { at_once } else { left };
                let mut to = [destination; WAYS];
                for (way, to) in to.iter_mut().enumerate() {
                    let row = way.wrapping_mul(strip.row_stride).wrapping_add(next * row_bytes);
                    *to = to.wrapping_add(row);
                    if by_lines {
                        if next == 0 && !lines[way].goes_on(*to) {
                            ends.fetch::<V>(*to);
                        }
                        // SAFETY: what was made before is of the strip, which can be written.
                        *to = unsafe { lines[way].room::<V>(*to) };
                    }
                }
                for first in (0..count).step_by(lanes) {
                    // The last ones end where the columns do.
                    let first = first.min(count - lanes);
                    for part in 0..WAYS {
                        let at = (next + first + part * words) * WORD;
                        let mut columns = [[masks[0]; EVEN]; ODD];
                        for (column, vector) in columns.as_flattened_mut().iter_mut().enumerate() {
                            let from = column.wrapping_mul(strip.column_stride).wrapping_add(at);
                            let from = source.wrapping_add(from);
                            if STREAM && strip.is_far {
                                ahead.fetch_vector::<V>(at, from);
                            }
                            // SAFETY: so many words of a column.
                            *vector = unsafe { V::load(from) };
                        }
                        let to = memory.wrapping_add(part * ODD * EVEN * V::BYTES);
                        // SAFETY: memory for as many.
                        unsafe {
                            Dense::<ODD, EVEN, 32, WORD, false>::put_together(
                                ways, &masks, columns, to, false,
                            );
                        };
                    }
                    for i in 0..ODD * EVEN {
                        let from = memory.wrapping_add(i * WAYS * V::BYTES);
                        // SAFETY: the words of all rows, which have just been made.
                        let rows = unweave::<V, WAYS, BITS>(unsafe { load_row::<V, WAYS>(from) });
                        for (row, to) in rows.into_iter().zip(to) {
                            let to = to.wrapping_add(first * row_bytes + i * V::BYTES);
                            if direct {
                                // SAFETY: a vector of one row, aligned.
                                unsafe { row.stream(to) };
                            } else {
                                // SAFETY: a vector of one row.
                                unsafe { row.store(to) };
                            }
                        }
                    }
                }
                if by_lines {
                    for lines in &mut lines {
                        // SAFETY: so many were made where there is room for them.
                        unsafe { lines.made::<V>(count * row_bytes) };
                    }
                }
                next += count;
            }
        }
        if STREAM {
            for lines in &mut lines {
                // SAFETY: what was made is of the strip, which can be written.
                unsafe { lines.finish::<V>() };
            }
        }
    }
}
