//! Rows into words that have some of their columns each, and back: points of few
//! coordinates, of which a word has as many as fit.
//!
//! ```text
//! three columns, words of two      a0 b0 c0 a1 b1 c1 ..      a0 b0 a1 b1 ..
//!                                                            c0  . c1  . ..
//! ```
//!
//! Dense matrices are taken apart as in [`dense`](super::dense), and the columns interleaved; of other rows the words
//! are turned as in [`few`](super::few). What a word has room for besides is filled with zeros.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::marker::PhantomData;

use super::algorithm::{Algorithm, Body, InstructionSet, shorter};
use super::dense::{Dense, Ways, instead_by_columns, store_rest};
use super::few::{Groups, Tall, Wide};
use super::places::Split;
use super::scalar::{self, Scalar};
use super::turn::Whole;
use super::vector::{LINE, Vector, streams, unweave, weave};
use super::walk::Ahead;
use super::{Place, Run, Strip};

/// The bytes of a word.
const WORD: usize = 4;

/// Whether there is a kernel for so many columns of a dense matrix.
pub fn has_word_columns(columns: u64) -> bool {
    matches!(columns, 3 | 5..=7)
}

/// Whether its rows, elements of so many bytes, are those of such a matrix.
#[inline(always)]
fn is_dense(strip: &Strip, width: usize) -> bool {
    let has_kernel = u64::try_from(strip.columns).is_ok_and(has_word_columns);
    strip.row_stride == strip.columns * width && has_kernel
}

/// What does rows that are not, where it is not done by vectors.
#[inline(always)]
fn instead_of_words<A: Algorithm, V: Vector>(strip: &Strip) -> Option<Run> {
    let has_words = V::HAS_MASKS && strip.rows >= V::BYTES / WORD;
    (!has_words).then(Scalar::entry::<A>)
}

/// [`BlockOp::InterleaveColumns`](super::BlockOp::InterleaveColumns), `WIDTH` being the bytes of an element.
pub(super) struct InterleaveColumns<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const STREAM: bool,
>;

/// [`BlockOp::DeinterleaveColumns`](super::BlockOp::DeinterleaveColumns).
pub(super) struct DeinterleaveColumns<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const STREAM: bool,
>;

/// The same of `ODD` times `EVEN` columns.
struct Columns<A, const ODD: usize, const EVEN: usize>(PhantomData<A>);

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> Algorithm
    for InterleaveColumns<WAYS, BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            for column in 0..strip.columns.next_multiple_of(WAYS) {
                let word = (column / WAYS).wrapping_mul(strip.column_stride);
                let to = destination.wrapping_add(word).wrapping_add(column % WAYS * WIDTH);
                let from = if column < strip.columns {
                    scalar::from(source.wrapping_add(column * WIDTH), strip.row_stride)
                } else {
                    scalar::from(const { &[0; WIDTH] }.as_ptr(), 0)
                };
                // SAFETY: a column of the matrix, or zeros, to its place in the words.
                unsafe { scalar::elements::<WIDTH>(strip.rows, from, scalar::to(to, WORD)) };
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
        if !V::HAS_MASKS {
            // SAFETY: the same contract.
            return unsafe { Self::elements(strip, source, destination) };
        }
        let stream = STREAM && V::BYTES == LINE;
        let stream = stream && streams::<V>(strip, destination, strip.column_stride);
        let tall = Tall::<WORD> {
            rows: strip.rows,
            row: Groups::at_stride(strip.row_stride),
            bytes: strip.columns * WIDTH,
            column: Split::at_stride(strip.column_stride),
        };
        for (source, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: a block of the strip, of as many rows as a vector has words, as nothing does it instead; there are
            // masks.
            unsafe { tall.transpose::<V, Whole, 32, STREAM>(source, destination, stream) };
        }
    }

    #[inline(always)]
    fn instead<V: Vector>(strip: &Strip, _: *mut u8) -> Option<Run> {
        if V::REACH == 0 || !is_dense(strip, WIDTH) {
            return instead_of_words::<Self, V>(strip);
        }
        instead_by_columns!(InterleaveColumns, strip, 3 = 3 * 1, 5 = 5 * 1, 6 = 3 * 2, 7 = 7 * 1)
    }
}

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> Algorithm
    for DeinterleaveColumns<WAYS, BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            for column in 0..strip.columns {
                let word = (column / WAYS).wrapping_mul(strip.column_stride);
                let from = source.wrapping_add(word).wrapping_add(column % WAYS * WIDTH);
                let to = destination.wrapping_add(column * WIDTH);
                let to = scalar::to(to, strip.row_stride);
                // SAFETY: a column of the matrix.
                unsafe { scalar::elements::<WIDTH>(strip.rows, scalar::from(from, WORD), to) };
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
        if !V::HAS_MASKS {
            // SAFETY: the same contract.
            return unsafe { Self::elements(strip, source, destination) };
        }
        let wide = Wide::<WORD> {
            columns: strip.rows,
            column: Groups::at_stride(strip.row_stride),
            bytes: strip.columns * WIDTH,
            row: Split::at_stride(strip.column_stride),
        };
        for (source, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: a block of the strip, of as many rows as a vector has words, as nothing does it instead; there are
            // masks.
            unsafe { wide.transpose::<V, Whole, 32>(source, destination) };
        }
    }

    #[inline(always)]
    fn instead<V: Vector>(strip: &Strip, _: *mut u8) -> Option<Run> {
        if V::REACH == 0 || !is_dense(strip, WIDTH) {
            return instead_of_words::<Self, V>(strip);
        }
        instead_by_columns!(DeinterleaveColumns, strip, 3 = 3 * 1, 5 = 5 * 1, 6 = 3 * 2, 7 = 7 * 1)
    }
}

impl<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const STREAM: bool,
    const ODD: usize,
    const EVEN: usize,
> Body for Columns<InterleaveColumns<WAYS, BITS, WIDTH, STREAM>, ODD, EVEN>
{
    #[inline(always)]
    unsafe fn run<V: Vector>(strip: &Strip, _: &[Place], source: *const u8, destination: *mut u8) {
        let ways = Ways::<ODD>::of::<V>(WIDTH * EVEN);
        // SAFETY: the CPU has `V`.
        let masks = unsafe { ways.masks::<V>() };
        let ahead = Ahead::by_steps(strip, 1);
        let lanes = V::BYTES / WIDTH;
        let stream =
            STREAM && V::BYTES >= LINE / 2 && streams::<V>(strip, destination, strip.column_stride);
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let mut next = 0;
            while next < strip.rows {
                // The last ones end where the columns do.
                let first = next.min(strip.rows - lanes);
                let from = source.wrapping_add(first * ODD * EVEN * WIDTH);
                if STREAM && strip.is_far {
                    ahead.fetch_lines::<V>((ODD * EVEN * V::BYTES).div_ceil(LINE), from);
                }
                // SAFETY: so many rows.
                let columns = unsafe {
                    Dense::<ODD, EVEN, BITS, WIDTH, false>::take_apart(ways, &masks, from)
                };
                for (word, columns) in columns.as_flattened().chunks(WAYS).enumerate() {
                    // SAFETY: the CPU has `V`.
                    let mut all = [unsafe { V::splat(0) }; WAYS];
                    for (way, &column) in all.iter_mut().zip(columns) {
                        *way = column;
                    }
                    let to = destination.wrapping_add(word.wrapping_mul(strip.column_stride));
                    for (i, words) in weave::<V, WAYS, BITS>(all).into_iter().enumerate() {
                        let at = first + i * V::BYTES / WORD;
                        let done = next.saturating_sub(at) * WORD;
                        // SAFETY: the words of so many rows.
                        unsafe {
                            store_rest::<V, STREAM>(
                                words,
                                to.wrapping_add(at * WORD),
                                done,
                                stream,
                            );
                        };
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
> Body for Columns<DeinterleaveColumns<WAYS, BITS, WIDTH, STREAM>, ODD, EVEN>
{
    #[inline(always)]
    unsafe fn run<V: Vector>(strip: &Strip, _: &[Place], source: *const u8, destination: *mut u8) {
        let ways = Ways::<ODD>::of::<V>(WIDTH * EVEN);
        // SAFETY: the CPU has `V`.
        let masks = unsafe { ways.masks::<V>() };
        let ahead = Ahead::by_steps(strip, if strip.blocks > 1 { strip.source_step } else { 1 });
        let lanes = V::BYTES / WIDTH;
        let stream = STREAM && V::BYTES == LINE && streams::<V>(strip, destination, 0);
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let mut next = 0;
            while next < strip.rows {
                let first = next.min(strip.rows - lanes);
                let mut columns = [[masks[0]; EVEN]; ODD];
                for (word, columns) in columns.as_flattened_mut().chunks_mut(WAYS).enumerate() {
                    let from = source.wrapping_add(word.wrapping_mul(strip.column_stride));
                    let from = from.wrapping_add(first * WORD);
                    if STREAM && strip.is_far {
                        ahead.fetch_lines::<V>(WAYS * V::BYTES / LINE, from);
                    }
                    let mut all = [masks[0]; WAYS];
                    for (i, words) in all.iter_mut().enumerate() {
                        // SAFETY: the words of so many rows.
                        *words = unsafe { V::load(from.wrapping_add(i * V::BYTES)) };
                    }
                    for (column, way) in columns.iter_mut().zip(unweave::<V, WAYS, BITS>(all)) {
                        *column = way;
                    }
                }
                let to = destination.wrapping_add(first * ODD * EVEN * WIDTH);
                // SAFETY: so many rows, where lines begin for streaming.
                unsafe {
                    Dense::<ODD, EVEN, BITS, WIDTH, STREAM>::put_together(
                        ways,
                        &masks,
                        columns,
                        to,
                        stream && first == next,
                    );
                };
                next = first + lanes;
            }
        }
    }
}
