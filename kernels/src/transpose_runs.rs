//! Transposes of runs: of elements of any bytes, each of which is moved as it is.
//!
//! Where an element has less than a *piece*, as many bytes as are moved at once, a whole piece is read and written for it:
//! the next element of the column goes over what is too much. The last ones of a column are moved as exactly as they are, and
//! so are those behind which the source may end. Elements of three bytes go as [`triples`] where there is a shuffle.
//!
//! Within the caches that goes from place to place, column by column of a panel. What is streamed is made in memory
//! that L1 holds, row by row, as whole lines go from there to their columns:
//!
//! ```text
//! rows of the source           in memory       in the destination
//! | aa | bb | cc | ...         | aaAA...       a column  | aaAA ...
//! | AA | BB | CC | ...    to   | bbBB...   to  a column  | bbBB ...
//! | ..                         | ccCC...       a column  | ccCC ...
//! ```

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use super::algorithm::Algorithm;
use super::carry::CacheLines;
use super::crowded::{L1_SETS, ROOM};
use super::matrix::{Matrix, Panel};
use super::places::Cursor;
use super::vector::{LINE, Vector};
use super::whole_lines::{Memory, WholeLines};
use super::{Place, Strip, scalar, triples};

/// [`BlockOp::Transpose`](super::BlockOp::Transpose) of elements of as many bytes as the strip says.
pub(super) struct TransposeRuns<const STREAM: bool>;

/// The longest piece.
const MOST_OF_PIECE: usize = 32;

/// So many bytes of a column are stored before those of the next one are, and along each row so many are, until other rows
/// are. Of elements that a line has several of, and of what L2 holds, it is more of a column: otherwise prefetchers follow
/// few rows. Where that is few rows, it is more as well.
const STORED: usize = 512;
const STORED_OF_SHORT: usize = 4096;
const SHORT: usize = 16;
const IN_L2: usize = 256 << 10;
const STORED_OF_LONG: usize = 1024;
const ROWS_OF_LONG: usize = 16;
const ALONG: usize = 4096;

/// But no more rows at a time than the table of their places has room for; and, of such as share few sets of L1, no more
/// than this has room for, or a line has elements.
const ROWS: usize = 256;

/// So many bytes of a column are streamed at a time, and of each row so many are read meanwhile, but no more columns than
/// this.
const STREAMED: usize = 512;
const READ_FOR_STREAMING: usize = 512;
const COLUMNS: usize = 32;

/// The memory of a column: with what is left of a line of it before, and of a piece behind, and one line more, so that
/// columns do not share sets of L1.
const PITCH: usize = STREAMED + 3 * LINE;

/// The longest elements that there is room for; others are stored.
const LONGEST: usize = STREAMED;

/// So many rows ahead the source is fetched.
const AHEAD: usize = 16;

impl<const STREAM: bool> Algorithm for TransposeRuns<STREAM> {
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        let width = strip.element_bytes;
        for (strip, place) in strip.pieces() {
            let (source, destination) = place.of(source, destination);
            for (source, destination) in scalar::blocks(&strip, source, destination) {
                for column in 0..strip.columns {
                    let column_stride = column.wrapping_mul(strip.column_stride);
                    let to = destination.wrapping_add(column_stride);
                    for row in 0..strip.rows {
                        let from = source.wrapping_add(row.wrapping_mul(strip.row_stride));
                        let from = from.wrapping_add(column * width);
                        // SAFETY: one of the elements, to where it belongs.
                        unsafe { scalar::run(from, to.wrapping_add(row * width), width) };
                    }
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
        let runs = MatrixOfRuns {
            matrix: Matrix::new(strip, strip.element_bytes, 1),
            width: strip.element_bytes,
        };
        // SAFETY: the same strip.
        match strip.element_bytes {
            0 => {}
            1..=4 => {
                // SAFETY: as above.
                unsafe { runs.transpose::<V, 4, STREAM>(source, destination) };
            }
            5..=8 => {
                // SAFETY: as above.
                unsafe { runs.transpose::<V, 8, STREAM>(source, destination) };
            }
            9..=16 => {
                // SAFETY: as above.
                unsafe { runs.transpose::<V, 16, STREAM>(source, destination) };
            }
            _ => {
                // SAFETY: as above.
                unsafe { runs.transpose::<V, MOST_OF_PIECE, STREAM>(source, destination) };
            }
        }
    }
}

/// A matrix of elements of so many bytes.
struct MatrixOfRuns {
    matrix: Matrix,
    width: usize,
}

impl MatrixOfRuns {
    /// Transposes all matrices of the strip, `PIECE` bytes at a time.
    ///
    /// # Safety
    ///
    /// They are at these places. The CPU has `V`.
    #[inline(always)]
    unsafe fn transpose<V: Vector, const PIECE: usize, const STREAM: bool>(
        &self,
        source: *const u8,
        destination: *mut u8,
    ) {
        if STREAM && self.width <= LONGEST && !self.has_short_columns() {
            // SAFETY: by the contract of this function.
            return unsafe { self.stream_all::<V, PIECE>(source, destination) };
        }
        for (source, destination) in scalar::blocks(&self.matrix.others, source, destination) {
            if STREAM && self.has_short_columns() {
                // SAFETY: one of the matrices.
                unsafe { self.stream_short_columns::<V, PIECE>(source, destination) };
            } else {
                // SAFETY: one of the matrices.
                unsafe { self.store::<V, PIECE>(source, destination) };
            }
        }
    }

    /// Whether the columns follow each other, and have no more bytes than are streamed at a time.
    #[inline(always)]
    fn has_short_columns(&self) -> bool {
        let Matrix { rows, columns, column, .. } = self.matrix;
        rows * self.width <= STREAMED
            && rows <= ROWS
            && column.is_even(columns)
            && column.stride == rows * self.width
    }

    /// Of the columns from number `first` on, so many: how many of these have a piece of each row behind where they
    /// begin.
    #[inline(always)]
    fn with_pieces<const PIECE: usize>(&self, first: usize, count: usize) -> usize {
        let beyond = PIECE.div_ceil(self.width) - 1;
        count.min((self.matrix.columns - first).saturating_sub(beyond))
    }

    /// How many of so many columns, from number `first` on, and of so many rows go as [`triples`].
    #[inline(always)]
    fn triples<V: Vector, const PIECE: usize>(
        &self,
        first: usize,
        count: usize,
        rows: usize,
    ) -> (usize, usize) {
        let is_even = self.matrix.row.is_even(self.matrix.rows);
        // Nothing is compiled for pieces that no such element has.
        if V::REACH == 0 || PIECE != triples::WIDTH + 1 || self.width != triples::WIDTH || !is_even
        {
            return (0, 0);
        }
        triples::whole_blocks::<V>((count, self.matrix.columns - first - count), rows)
    }

    /// # Safety
    ///
    /// A matrix is at these places. The CPU has `V`.
    #[inline(always)]
    unsafe fn store<V: Vector, const PIECE: usize>(&self, source: *const u8, destination: *mut u8) {
        let &MatrixOfRuns { width, matrix: Matrix { rows, columns, row, column, .. } } = self;
        let panel = self.panel();
        let mut places = [0; ROWS];
        for first_column in (0..columns).step_by(panel.columns) {
            let count = panel.columns.min(columns - first_column);
            let with_pieces = self.with_pieces::<PIECE>(first_column, count);
            for first in (0..rows).step_by(panel.rows) {
                let places = &mut places[..panel.rows.min(rows - first)];
                row.places(1, first, places);
                let turned = self.triples::<V, PIECE>(first_column, count, places.len());
                if turned.0 > 0 && turned.1 > 0 {
                    let mut to = Cursor::at(column, first_column);
                    for block in 0..turned.0 / triples::COLUMNS {
                        let number = first_column + block * triples::COLUMNS;
                        let columns: [*mut u8; triples::COLUMNS] = std::array::from_fn(|_| {
                            let start =
                                destination.wrapping_add(to.place).wrapping_add(first * width);
                            to.next(column);
                            start
                        });
                        for at in (0..turned.1).step_by(triples::rows::<V>()) {
                            let from = source.wrapping_add(places[at]).wrapping_add(number * width);
                            let columns = columns.map(|start| start.wrapping_add(at * width));
                            // SAFETY: a block, with what has to be behind it.
                            unsafe { triples::turn::<V>(from, row.stride, columns) };
                        }
                    }
                }
                let mut to = Cursor::at(column, first_column);
                for number in 0..count {
                    let done = if number < turned.0 { turned.1 } else { 0 };
                    let places = &places[done..];
                    let source = source.wrapping_add((first_column + number) * width);
                    let destination =
                        destination.wrapping_add(to.place).wrapping_add((first + done) * width);
                    let has_pieces = number < with_pieces;
                    // SAFETY: some rows of one of the columns.
                    unsafe {
                        store_column::<PIECE>(width, has_pieces, places, source, destination);
                    };
                    to.next(column);
                }
            }
        }
    }

    /// What is stored before the next rows are.
    #[inline(always)]
    fn panel(&self) -> Panel {
        let Matrix { rows, columns, row, .. } = self.matrix;
        let is_small = rows.saturating_mul(columns).saturating_mul(self.width) <= IN_L2;
        let stored = if self.width <= SHORT || is_small { STORED_OF_SHORT } else { STORED };
        let long = (STORED_OF_LONG / self.width).min(ROWS_OF_LONG);
        let mut rows = (stored / self.width).max(long).clamp(1, ROWS);
        let least = (LINE / self.width).max(ROOM);
        // Rows that are nearly as far apart as sets go round fall into the next sets little by little.
        let beside = (row.stride.wrapping_add(L1_SETS / 2) % L1_SETS).abs_diff(L1_SETS / 2);
        let crowd = |rows: usize| row.crowd(rows, L1_SETS).max(rows / (rows * beside / LINE + 1));
        while rows > least && crowd(rows) > ROOM {
            rows = (rows / 2).max(least);
        }
        Panel { rows, columns: (ALONG / self.width).max(1) }
    }

    /// # Safety
    ///
    /// A matrix is at these places, which [has such columns](MatrixOfRuns::has_short_columns). The CPU has `V`.
    #[inline(always)]
    unsafe fn stream_short_columns<V: Vector, const PIECE: usize>(
        &self,
        source: *const u8,
        destination: *mut u8,
    ) {
        let &MatrixOfRuns { width, matrix: Matrix { rows, columns, row, .. } } = self;
        let mut memory = Memory::uninit();
        let mut lines = WholeLines::new(&mut memory);
        let mut places = [0; ROWS];
        let places = &mut places[..rows];
        row.places(1, 0, places);
        let with_pieces = self.with_pieces::<PIECE>(0, columns);
        for number in 0..columns {
            // SAFETY: the memory is there, and what was made before are columns of the matrix.
            let to = unsafe { lines.room::<V>(destination.wrapping_add(number * rows * width)) };
            let source = source.wrapping_add(number * width);
            let has_pieces = number < with_pieces;
            // SAFETY: one of the columns, to memory that has room for it.
            unsafe { store_column::<PIECE>(width, has_pieces, places, source, to) };
            // SAFETY: they have just been made.
            unsafe { lines.made::<V>(rows * width) };
        }
        // SAFETY: what is left of the columns.
        unsafe { lines.finish::<V>() };
    }

    /// Streams all matrices of the strip.
    ///
    /// # Safety
    ///
    /// As [`transpose`](MatrixOfRuns::transpose), of elements of [`LONGEST`] bytes at most.
    #[inline(always)]
    unsafe fn stream_all<V: Vector, const PIECE: usize>(
        &self,
        source: *const u8,
        destination: *mut u8,
    ) {
        const { assert!(PIECE <= MOST_OF_PIECE && MOST_OF_PIECE <= LINE, "there is room for one") };
        let mut memory = CacheLines([[0; LINE]; COLUMNS * PITCH / LINE]);
        let memory = (&raw mut memory).cast::<u8>();
        let mut lines: [WholeLines; COLUMNS] =
            std::array::from_fn(|i| WholeLines::at(memory.wrapping_add(i * PITCH)));
        let mut made = [memory; COLUMNS];
        for (source, destination) in scalar::blocks(&self.matrix.others, source, destination) {
            // SAFETY: one of the matrices; the memory of each column has been written.
            unsafe { self.stream::<V, PIECE>(source, destination, &mut lines, &mut made) };
        }
    }

    /// Streams one of them, each column made in the memory of its own lines, where its next row is `made`.
    ///
    /// # Safety
    ///
    /// It is at these places. Memory of [`PITCH`] bytes is that of each column, and has been written. The CPU has `V`.
    #[inline(always)]
    unsafe fn stream<V: Vector, const PIECE: usize>(
        &self,
        source: *const u8,
        destination: *mut u8,
        lines: &mut [WholeLines; COLUMNS],
        made: &mut [*mut u8; COLUMNS],
    ) {
        let &MatrixOfRuns { width, matrix: Matrix { rows, columns, row, column, .. } } = self;
        let panel = Panel {
            rows: (STREAMED / width).max(1),
            columns: (READ_FOR_STREAMING / width).clamp(1, COLUMNS),
        };
        for first_column in (0..columns).step_by(panel.columns) {
            let count = panel.columns.min(columns - first_column);
            let with_pieces = self.with_pieces::<PIECE>(first_column, count);
            let (lines, made) = (&mut lines[..count], &mut made[..count]);
            let source = source.wrapping_add(first_column * width);
            for first in (0..rows).step_by(panel.rows) {
                let count_of_rows = panel.rows.min(rows - first);
                let destination = destination.wrapping_add(first * width);
                let mut to = Cursor::at(column, first_column);
                for (lines, made) in lines.iter_mut().zip(made.iter_mut()) {
                    // SAFETY: the memory is there, and what was made before are rows of the columns.
                    *made = unsafe { lines.room::<V>(destination.wrapping_add(to.place)) };
                    to.next(column);
                }
                let turned = self.triples::<V, PIECE>(first_column, count, count_of_rows);
                let tall = triples::rows::<V>();
                let mut from = Cursor::at(row, first);
                let mut ahead = Cursor::at(row, first + AHEAD);
                for number in 0..count_of_rows {
                    let next = source.wrapping_add(ahead.place);
                    for at in (0..count * width).step_by(LINE) {
                        V::prefetch::<1>(next.wrapping_add(at));
                    }
                    V::prefetch::<1>(next.wrapping_add(count * width - 1));
                    let source = source.wrapping_add(from.place);
                    if number < turned.1 && number.is_multiple_of(tall) {
                        let blocks = made[..turned.0].as_chunks::<{ triples::COLUMNS }>().0;
                        for (block, columns) in blocks.iter().enumerate() {
                            let from = source.wrapping_add(block * triples::COLUMNS * width);
                            let columns = columns.map(|start| start.wrapping_add(number * width));
                            // SAFETY: a block, with what has to be behind it.
                            unsafe { triples::turn::<V>(from, row.stride, columns) };
                        }
                    }
                    let done = if number < turned.1 { turned.0 } else { 0 };
                    let (source, made) = (source.wrapping_add(done * width), &made[done..]);
                    // SAFETY: a row of the columns, to memory that has room for it and a piece.
                    unsafe {
                        make_row::<PIECE>(width, with_pieces - done, source, made, number * width);
                    };
                    from.next(row);
                    ahead.next(row);
                }
                for lines in lines.iter_mut() {
                    // SAFETY: they have just been made.
                    unsafe { lines.made_few::<V>(count_of_rows * width) };
                }
            }
            for lines in lines.iter_mut() {
                // SAFETY: what is left of the columns.
                unsafe { lines.finish::<V>() };
            }
        }
    }
}

/// Some rows of a column, which begin at these places, each behind the one before it; of which pieces may be read if it
/// has such.
///
/// # Safety
///
/// They can be read and written.
#[inline(always)]
unsafe fn store_column<const PIECE: usize>(
    width: usize,
    has_pieces: bool,
    places: &[usize],
    source: *const u8,
    destination: *mut u8,
) {
    // Of the others, a piece would end behind the last one.
    let with_pieces =
        if has_pieces { (places.len() + 1).saturating_sub(PIECE.div_ceil(width)) } else { 0 };
    let (with_pieces, others) = places.split_at(with_pieces);
    let mut to = destination;
    if width <= PIECE {
        for place in with_pieces {
            // SAFETY: a piece from an element on, to where this belongs.
            unsafe { scalar::run(source.wrapping_add(*place), to, PIECE) };
            to = to.wrapping_add(width);
        }
    } else {
        for place in with_pieces {
            // SAFETY: an element, to where it belongs.
            unsafe { move_long::<PIECE>(width, source.wrapping_add(*place), to) };
            to = to.wrapping_add(width);
        }
    }
    for place in others {
        // SAFETY: as above; it has less than a piece.
        unsafe { scalar::less_than_line(source.wrapping_add(*place), to, width) };
        to = to.wrapping_add(width);
    }
}

/// A row of some columns, each so many bytes behind where these begin; so many of the columns have pieces.
///
/// # Safety
///
/// They can be read and written, and a piece more behind each.
#[inline(always)]
unsafe fn make_row<const PIECE: usize>(
    width: usize,
    with_pieces: usize,
    source: *const u8,
    columns: &[*mut u8],
    at: usize,
) {
    let (with_pieces, others) = columns.split_at(with_pieces);
    let mut from = source;
    if width <= PIECE {
        for column in with_pieces {
            // SAFETY: a piece from an element on, to where this belongs.
            unsafe { scalar::run(from, column.wrapping_add(at), PIECE) };
            from = from.wrapping_add(width);
        }
    } else {
        for column in with_pieces {
            // SAFETY: an element, to where it belongs.
            unsafe { move_long::<PIECE>(width, from, column.wrapping_add(at)) };
            from = from.wrapping_add(width);
        }
    }
    for column in others {
        // SAFETY: as above; it has less than a piece.
        unsafe { scalar::less_than_line(from, column.wrapping_add(at), width) };
        from = from.wrapping_add(width);
    }
}

/// Moves an element of a piece at least: the last one ends where it does.
///
/// # Safety
///
/// It can be read and written.
#[inline(always)]
unsafe fn move_long<const PIECE: usize>(width: usize, source: *const u8, destination: *mut u8) {
    let last = width - PIECE;
    for at in (0..last).step_by(PIECE) {
        // SAFETY: one of its pieces.
        unsafe { scalar::run(source.wrapping_add(at), destination.wrapping_add(at), PIECE) };
    }
    // SAFETY: the last one.
    unsafe { scalar::run(source.wrapping_add(last), destination.wrapping_add(last), PIECE) };
}
