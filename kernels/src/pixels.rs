//! Transposes of words of 32 bits whose elements are as far from each other in host memory as a pixel has channels,
//! beside each other in a row: images side by side, each of which is a row, or a column.
//!
//! ```text
//! a row of pixels            a0 b0 c0 a1 b1 c1 ..
//! words of two of a channel  a0 a1   b0 b1   c0 c1   a2 a3 ..
//! which are columns, as other transposes have them
//! ```
//!
//! Of a block, rows are taken apart as in [`dense`](super::dense), into memory that L1 holds, and the words of each
//! channel are turned from there; or turned into it first, and put together then.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::marker::PhantomData;

use super::algorithm::{Algorithm, shorter};
use super::carry::CacheLines;
use super::dense::{Dense, Ways};
use super::matrix::{Block, LINES_DOWN_NEAR, MAX_LANES, Matrix, StreamedBlock};
use super::places::Starts;
use super::turn::put_line;
use super::vector::{LINE, Vector, put, weave};
use super::{Place, Run, Strip, ahead, scalar};

/// The bytes of a word.
const WORD: usize = 4;

/// The channels that have a kernel: those of images.
const CHANNELS: usize = 3;

/// So many rows or columns a streamed panel has at most.
const TABLE: usize = 2 * LINES_DOWN_NEAR * MAX_LANES * CHANNELS;

/// Whether there is a kernel for pixels of so many channels.
pub fn has_pixels(channels: u64) -> bool {
    channels == CHANNELS as u64
}

/// [`BlockOp::GatherTranspose`](super::BlockOp::GatherTranspose), `WIDTH` being the bytes of an element.
pub(super) struct GatherTranspose<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const STREAM: bool,
>;

/// [`BlockOp::TransposeScatter`](super::BlockOp::TransposeScatter).
pub(super) struct TransposeScatter<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const STREAM: bool,
>;

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> Algorithm
    for GatherTranspose<WAYS, BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            for (row, way) in (0..strip.rows).flat_map(|row| (0..WAYS).map(move |way| (row, way))) {
                let from = row.wrapping_mul(strip.row_stride);
                let from = source.wrapping_add(from).wrapping_add(way * strip.columns * WIDTH);
                let to = destination.wrapping_add(row * WORD + way * WIDTH);
                let (from, to) = (scalar::from(from, WIDTH), scalar::to(to, strip.column_stride));
                // SAFETY: an element of each word of a row.
                unsafe { scalar::elements::<WIDTH>(strip.columns, from, to) };
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
        let matrix = Matrix::new(strip, WORD, 1);
        // SAFETY: the same strip, which has as many rows and pixels as a vector has words, as nothing does it
        // instead.
        match V::BYTES / WORD {
            4 => {
                // SAFETY: as above.
                unsafe {
                    matrix.transpose_by::<
                        Gathered<V, 4, BITS, WIDTH, false>,
                        Gathered<V, 4, BITS, WIDTH, true>,
                        false,
                    >(strip, source, destination);
                }
            }
            8 => {
                // SAFETY: as above.
                unsafe {
                    matrix.transpose_by::<
                        Gathered<V, 8, BITS, WIDTH, false>,
                        Gathered<V, 8, BITS, WIDTH, true>,
                        STREAM,
                    >(strip, source, destination);
                }
            }
            _ => {
                // SAFETY: as above.
                unsafe {
                    matrix.transpose_by::<
                        Gathered<V, 16, BITS, WIDTH, false>,
                        Gathered<V, 16, BITS, WIDTH, true>,
                        STREAM,
                    >(strip, source, destination);
                }
            }
        }
    }

    #[inline(always)]
    fn instead<V: Vector>(strip: &Strip, _: *mut u8) -> Option<Run> {
        let matrix = Matrix::new(strip, WORD, 1);
        (!matrix.has_pixels::<V>(strip.columns, matrix.rows, matrix.columns))
            .then(shorter::<Self, V>)
    }
}

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> Algorithm
    for TransposeScatter<WAYS, BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            for (row, way) in (0..strip.rows).flat_map(|row| (0..WAYS).map(move |way| (row, way))) {
                let from = row.wrapping_mul(strip.row_stride).wrapping_add(way * WIDTH);
                let from = source.wrapping_add(from);
                let to = destination.wrapping_add((way * strip.rows + row) * WIDTH);
                let (from, to) = (scalar::from(from, WORD), scalar::to(to, strip.column_stride));
                // SAFETY: an element of each word of a row.
                unsafe { scalar::elements::<WIDTH>(strip.columns, from, to) };
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
        let matrix = Matrix::new(strip, WORD, 1);
        // SAFETY: as of `GatherTranspose`.
        match V::BYTES / WORD {
            4 => {
                // SAFETY: as above.
                unsafe {
                    matrix.transpose_by::<
                        Scattered<V, 4, BITS, WIDTH, false>,
                        Scattered<V, 4, BITS, WIDTH, true>,
                        false,
                    >(strip, source, destination);
                }
            }
            8 => {
                // SAFETY: as above.
                unsafe {
                    matrix.transpose_by::<
                        Scattered<V, 8, BITS, WIDTH, false>,
                        Scattered<V, 8, BITS, WIDTH, true>,
                        STREAM,
                    >(strip, source, destination);
                }
            }
            _ => {
                // SAFETY: as above.
                unsafe {
                    matrix.transpose_by::<
                        Scattered<V, 16, BITS, WIDTH, false>,
                        Scattered<V, 16, BITS, WIDTH, true>,
                        STREAM,
                    >(strip, source, destination);
                }
            }
        }
    }

    #[inline(always)]
    fn instead<V: Vector>(strip: &Strip, _: *mut u8) -> Option<Run> {
        let matrix = Matrix::new(strip, WORD, 1);
        (!matrix.has_pixels::<V>(strip.rows, matrix.columns, matrix.rows)).then(shorter::<Self, V>)
    }
}

impl Matrix {
    /// Whether it has as many images, and so many channels of as many words of pixels, as a vector has words.
    #[inline(always)]
    fn has_pixels<V: Vector>(&self, channels: usize, images: usize, words: usize) -> bool {
        let lanes = V::BYTES / WORD;
        V::REACH > 0
            && channels == CHANNELS
            && lanes <= MAX_LANES
            && images >= lanes
            && words >= CHANNELS * lanes
    }
}

/// A block between its two sides.
struct Between {
    /// The words of each channel, in as many rows, or columns.
    channels: [CacheLines<MAX_LANES>; CHANNELS],
    /// Lines of which vectors are parts.
    made: CacheLines<MAX_LANES>,
}

impl Between {
    fn new() -> Between {
        let lines = || CacheLines([[0; LINE]; MAX_LANES]);
        Between { channels: std::array::from_fn(|_| lines()), made: lines() }
    }
}

/// How many words a block has along the columns of the destination: a vector of them, or a line where it is streamed.
const fn words(lanes: usize, stream: bool) -> usize {
    if stream { MAX_LANES } else { lanes }
}

/// As many words of pixels in each row as a `V` has words, which are `LANES`, of as many rows, or of a line of them.
struct Gathered<V, const LANES: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool>(
    PhantomData<V>,
);

impl<V: Vector, const LANES: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> Block
    for Gathered<V, LANES, BITS, WIDTH, STREAM>
{
    const ROWS: usize = words(LANES, STREAM);
    const COLUMNS: usize = LANES * CHANNELS;
    const WIDTH: usize = WORD;
    const WAYS: usize = 1;
    const DESTINATION_WIDTH: usize = WORD;

    type Vector = V;

    type AtStrides = ();

    type Scratch = Between;
    fn scratch() -> Between {
        Between::new()
    }

    #[inline(always)]
    unsafe fn transpose<R: Starts, L: ahead::Lines>(
        rows: R,
        columns: &[usize],
        source: *const u8,
        destination: *mut u8,
        stream: bool,
        ahead: L,
        Between { channels, made }: &mut Between,
    ) {
        let makes_lines = STREAM && V::BYTES < LINE;
        let ways = Ways::<CHANNELS>::of::<V>(WIDTH);
        // SAFETY: the CPU has `V`.
        let masks = unsafe { ways.masks::<V>() };
        for (i, start) in rows.each().enumerate() {
            let from = source.wrapping_add(start);
            // SAFETY: `LANES` words of each channel, in one row.
            let parts =
                unsafe { Dense::<CHANNELS, 1, BITS, WIDTH, false>::take_apart(ways, &masks, from) };
            for (lines, [part]) in channels.iter_mut().zip(parts) {
                // SAFETY: a line, and no vector is longer.
                unsafe { part.store(lines.0[i].as_mut_ptr()) };
            }
        }
        for (channel, lines) in channels.iter().enumerate() {
            let columns = columns.iter().skip(channel).step_by(CHANNELS);
            for (part, lines) in lines.0[..Self::ROWS].as_chunks::<LANES>().0.iter().enumerate() {
                // SAFETY: the CPU has `V`.
                let mut vectors = [unsafe { V::splat(0) }; LANES];
                for (vector, line) in vectors.iter_mut().zip(lines) {
                    // SAFETY: what was stored.
                    *vector = unsafe { V::load(line.as_ptr()) };
                }
                let turned = weave::<V, LANES, 32>(vectors);
                if makes_lines {
                    for (vector, line) in turned.into_iter().zip(&mut made.0) {
                        // SAFETY: a part of a line, of which there are as many as in `ROWS`.
                        unsafe { vector.store(line.as_mut_ptr().wrapping_add(part * V::BYTES)) };
                    }
                    continue;
                }
                for (i, (vector, &start)) in turned.into_iter().zip(columns.clone()).enumerate() {
                    ahead.fetch_any::<V>(channel * LANES + i);
                    let to = destination.wrapping_add(start);
                    if STREAM && stream {
                        // SAFETY: a column of these rows, aligned.
                        unsafe { put::<V, true>(vector, to) };
                    } else {
                        // SAFETY: a column of these rows.
                        unsafe { put::<V, false>(vector, to) };
                    }
                }
            }
            if makes_lines {
                for (i, (line, &start)) in made.0.iter().zip(columns).enumerate() {
                    ahead.fetch_any::<V>(channel * LANES + i);
                    // SAFETY: a column of these rows, aligned for `stream`.
                    unsafe { put_line::<V, STREAM>(line, destination.wrapping_add(start), stream) };
                }
            }
        }
    }
}

/// The mirror of [`Gathered`].
struct Scattered<V, const LANES: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool>(
    PhantomData<V>,
);

impl<V: Vector, const LANES: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> Block
    for Scattered<V, LANES, BITS, WIDTH, STREAM>
{
    const ROWS: usize = words(LANES, STREAM) * CHANNELS;
    const COLUMNS: usize = LANES;
    const WIDTH: usize = WORD;
    const WAYS: usize = 1;
    const DESTINATION_WIDTH: usize = WORD;

    type Vector = V;

    type AtStrides = ();

    type Scratch = Between;
    fn scratch() -> Between {
        Between::new()
    }

    #[inline(always)]
    unsafe fn transpose<R: Starts, L: ahead::Lines>(
        rows: R,
        columns: &[usize],
        source: *const u8,
        destination: *mut u8,
        stream: bool,
        ahead: L,
        Between { channels, made }: &mut Between,
    ) {
        let makes_lines = STREAM && V::BYTES < LINE;
        let parts = Self::ROWS / CHANNELS / LANES;
        for (channel, lines) in channels.iter_mut().enumerate() {
            for part in 0..parts {
                // SAFETY: the CPU has `V`.
                let mut vectors = [unsafe { V::splat(0) }; LANES];
                for (i, vector) in vectors.iter_mut().enumerate() {
                    let start = rows.at((part * LANES + i) * CHANNELS + channel);
                    // SAFETY: `LANES` columns of one row.
                    *vector = unsafe { V::load(source.wrapping_add(start)) };
                }
                let turned = weave::<V, LANES, 32>(vectors);
                for (i, (vector, line)) in turned.into_iter().zip(&mut lines.0).enumerate() {
                    let number = (channel * parts + part) * LANES + i;
                    if (number * V::BYTES).is_multiple_of(LINE) {
                        ahead.fetch_any::<V>(number * V::BYTES / LINE);
                    }
                    // SAFETY: a part of a line.
                    unsafe { vector.store(line.as_mut_ptr().wrapping_add(part * V::BYTES)) };
                }
            }
        }
        let ways = Ways::<CHANNELS>::of::<V>(WIDTH);
        // SAFETY: the CPU has `V`.
        let masks = unsafe { ways.masks::<V>() };
        for (i, &start) in columns.iter().enumerate() {
            let to = destination.wrapping_add(start);
            let all = if makes_lines { made.0.as_mut_ptr().cast() } else { to };
            for part in 0..parts {
                let mut vectors = masks.map(|mask| [mask]);
                for (vector, lines) in vectors.iter_mut().zip(&*channels) {
                    let from = lines.0[i].as_ptr().wrapping_add(part * V::BYTES);
                    // SAFETY: what was stored.
                    *vector = [unsafe { V::load(from) }];
                }
                let all = all.wrapping_add(part * CHANNELS * V::BYTES);
                let stream = stream && !makes_lines;
                // SAFETY: the pixels of a column, where lines begin for streaming; or lines for all of them.
                unsafe {
                    Dense::<CHANNELS, 1, BITS, WIDTH, STREAM>::put_together(
                        ways, &masks, vectors, all, stream,
                    );
                };
            }
            if makes_lines {
                for (line, made) in made.0.iter().take(CHANNELS).enumerate() {
                    let to = to.wrapping_add(line * LINE);
                    // SAFETY: a line of these pixels, aligned for `stream`.
                    unsafe { put_line::<V, STREAM>(made, to, stream) };
                }
            }
        }
    }
}

impl<V: Vector, const LANES: usize, const BITS: u32, const WIDTH: usize> StreamedBlock
    for Gathered<V, LANES, BITS, WIDTH, true>
{
    type Table = [usize; TABLE];
    fn table() -> Self::Table {
        [0; TABLE]
    }

    type Parts = Gathered<V, LANES, BITS, WIDTH, false>;
}

impl<V: Vector, const LANES: usize, const BITS: u32, const WIDTH: usize> StreamedBlock
    for Scattered<V, LANES, BITS, WIDTH, true>
{
    type Table = [usize; TABLE];
    fn table() -> Self::Table {
        [0; TABLE]
    }

    type Parts = Scattered<V, LANES, BITS, WIDTH, false>;
}
