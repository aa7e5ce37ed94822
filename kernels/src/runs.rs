//! Columns that are streamed run by run, where memory takes single lines more slowly.
//!
//! The columns of a block are made in memory that L1 holds, of as many rows as a run has, and taken
//! from there a run at a time. Meanwhile what comes next of the source is fetched:
//!
//! ```text
//! rows of the source            in memory           in the destination
//! | block | block | ...         a column  ────      ──── ...
//! | block | block | ...    to   a column  ────  to
//! | block | block | ...         a column  ────      ──── ...
//! ```
//!
//! Panels of the same rows come after one another: those below would be at the same sets of L2, where the
//! rows are powers of two apart.

#![allow(unsafe_code, reason = "streaming stores; docs/architecture.md")]

use std::mem::MaybeUninit;

use super::ahead::{FetchesAhead, FollowsPanels, Lines, NextPanel, Way};
use super::carry::{CacheLines, RUN, copy_line};
use super::crowded::{L1_SETS, ROOM};
use super::matrix::{Block, Matrix, Panel, StreamedBlock, whole};
use super::scalar;
use super::vector::{LINE, Vector};

/// The memory that columns are made in.
const BYTES: usize = 40 << 10;

/// So many lines of each row are gone along, before others are.
const ALONG: usize = 16;

/// The rows of a run.
const fn rows_of_run<B: Block>() -> usize {
    whole(RUN / B::DESTINATION_WIDTH, B::ROWS)
}

/// What there is for a column in memory. The last panel takes what is too little for one of its own.
const fn column_bytes<B: Block>() -> usize {
    (rows_of_run::<B>() + B::ROWS) * B::DESTINATION_WIDTH + LINE
}

impl Matrix {
    /// What is fetched at a time, and between two fetches made and streamed: the rows of a run.
    #[inline(always)]
    fn panel_of_runs<B: StreamedBlock>(&self) -> Panel {
        let columns = whole(ALONG * LINE / B::WIDTH, B::COLUMNS).min(self.columns);
        Panel { rows: const { rows_of_run::<B>() }, columns }
    }

    /// Whether columns had better have more lines at a time than a block has: one or two. Those of pixels, and those
    /// that write four and more of their own, do not gain by it.
    #[inline(always)]
    pub(super) fn wants_longer_columns<B: StreamedBlock>(&self) -> bool {
        self.others.core.streams_by_runs()
            && B::ROWS == B::COLUMNS
            && B::ROWS * B::DESTINATION_WIDTH < RUN / 2
    }

    /// Whether the matrices of a strip are streamed by runs: where the columns of a block share few sets of L1, and there is
    /// enough of each row to be fetched by pieces.
    #[inline(always)]
    pub(super) fn has_runs<B: StreamedBlock>(&self) -> bool {
        <B::Vector as Vector>::BYTES == LINE / 2
            && self.wants_longer_columns::<B>()
            && self.column.crowd(B::COLUMNS / B::WAYS, L1_SETS) > ROOM / 2
            && NextPanel::has_pieces::<B>(self, self.panel_of_runs::<B>())
    }

    /// Transposes all matrices of the strip.
    ///
    /// # Safety
    ///
    /// As [`stream_all`](Matrix::stream_all), and all columns begin where lines do.
    #[inline(always)]
    pub(super) unsafe fn stream_by_runs<B: StreamedBlock>(
        &self,
        source: *const u8,
        destination: *mut u8,
        tables: &mut [B::Table; 2],
    ) {
        let width = B::DESTINATION_WIDTH;
        let panel = self.panel_of_runs::<B>();
        let pitch = const { column_bytes::<B>() };
        const { assert!(are_parts::<B, B::Parts>(), "whole blocks, of the same elements") };
        const { assert!(column_bytes::<B>().is_multiple_of(LINE), "runs begin at lines") };
        const { assert!(B::COLUMNS / B::WAYS * column_bytes::<B>() <= BYTES, "there is room") };
        let mut memory = MaybeUninit::<CacheLines<{ BYTES / LINE }>>::uninit();
        let memory = memory.as_mut_ptr().cast::<u8>();
        let mut scratch = B::Parts::scratch();
        let [rows, columns] = tables.each_mut().map(AsMut::as_mut);
        let (in_memory, columns) = columns.split_at_mut(B::COLUMNS);
        let columns = &mut columns[..B::COLUMNS];
        for (column, place) in in_memory.iter_mut().enumerate() {
            *place = column / B::WAYS * pitch;
        }
        let mut ahead = NextPanel::new(self);
        // Not from scratch memory, which is in the caches.
        let is_fetched = self.others.is_far || self.others.is_near;
        let next_strip = source.wrapping_add(self.others.next);
        let mut matrices = scalar::blocks(&self.others, source, destination).peekable();
        while let Some((source, destination)) = matrices.next() {
            let next_matrix = matrices.peek().map_or(next_strip, |&(source, _)| source);
            let mut row = 0;
            while row < self.rows {
                let left = self.rows - row;
                let count = if left < panel.rows + B::ROWS { left } else { panel.rows };
                let rows = &mut rows[..count];
                self.row.places(1, row, rows);
                let to = destination.wrapping_add(row * width);
                let next_row = row + count;
                for first in (0..self.columns).step_by(panel.columns) {
                    let end = (first + panel.columns).min(self.columns);
                    let (next, next_column, first_row) = if end < self.columns {
                        (source.wrapping_add(end * B::WIDTH), end, row)
                    } else if next_row < self.rows {
                        (source, 0, next_row)
                    } else {
                        (next_matrix, 0, 0)
                    };
                    ahead.set_out::<B>(&Way {
                        rows: count,
                        blocks: 0,
                        next,
                        next_bytes: panel.columns.min(self.columns - next_column) * B::WIDTH,
                        next_rows: first_row..self.rows.min(first_row + panel.rows),
                    });
                    for next in (first..end).step_by(B::COLUMNS) {
                        // What is left at the end is made by a block that ends there.
                        let column = next.min(self.columns - B::COLUMNS);
                        let source = source.wrapping_add(column * B::WIDTH);
                        self.column.places(B::WAYS, column, columns);
                        // SAFETY: the columns of a block, of at least as many rows, to memory that has
                        // room for them.
                        unsafe {
                            self.transpose_to_memory::<B::Parts>(
                                (row, rows),
                                (in_memory, pitch),
                                &mut scratch,
                                source,
                                memory,
                            );
                        };
                        let done = next - column;
                        let starts = columns[done..].iter().zip(&in_memory[done..]);
                        let runs = starts.step_by(B::WAYS).map(|(&start, &made)| {
                            (memory.wrapping_add(made).cast_const(), to.wrapping_add(start))
                        });
                        let bytes = count * width;
                        if is_fetched {
                            // SAFETY: what has just been made, to where it belongs, from where a line
                            // begins.
                            unsafe { stream_runs::<B, true>(runs, bytes, &mut ahead) };
                        } else {
                            // SAFETY: as above.
                            unsafe { stream_runs::<B, false>(runs, bytes, &mut ahead) };
                        }
                    }
                    if is_fetched {
                        ahead.finish::<B>();
                    }
                }
                row = next_row;
            }
        }
    }
}

/// Streams runs of so many bytes to their places, and stores what is left of them behind whole lines. Meanwhile the
/// source of as much is fetched, for `FETCHES`.
///
/// # Safety
///
/// They can be read and written, from where lines begin. The CPU has the vectors of `B`.
#[inline(always)]
unsafe fn stream_runs<B: StreamedBlock, const FETCHES: bool>(
    runs: impl Iterator<Item = (*const u8, *mut u8)>,
    bytes: usize,
    ahead: &mut NextPanel,
) {
    let lines = const { lines_of_block::<B>() };
    let times = const { B::SOURCE_LINES.div_ceil(lines_of_block::<B>()) };
    let mut pieces = ahead.fetch::<B>();
    let mut number = 0;
    for (from, to) in runs {
        let rest = bytes % LINE;
        for at in (0..bytes - rest).step_by(LINE) {
            if FETCHES {
                if number == lines {
                    number = 0;
                    pieces = ahead.fetch::<B>();
                }
                for line in number * times..(number + 1) * times {
                    pieces.fetch_any::<B::Vector>(line);
                }
                number += 1;
            }
            // SAFETY: a line of the run.
            unsafe { copy_line::<B::Vector, true>(from.wrapping_add(at), to.wrapping_add(at)) };
        }
        let whole = bytes - rest;
        // SAFETY: its last bytes.
        unsafe { scalar::less_than_line(from.wrapping_add(whole), to.wrapping_add(whole), rest) };
    }
}

/// Whether a block is made of whole ones of another kind, which do the same.
const fn are_parts<B: Block, P: Block>() -> bool {
    B::ROWS.is_multiple_of(P::ROWS)
        && B::COLUMNS.is_multiple_of(P::COLUMNS)
        && B::WIDTH == P::WIDTH
        && B::WAYS == P::WAYS
        && B::DESTINATION_WIDTH == P::DESTINATION_WIDTH
}

/// The lines of a block in the destination.
const fn lines_of_block<B: Block>() -> usize {
    B::ROWS * B::DESTINATION_WIDTH * (B::COLUMNS / B::WAYS) / LINE
}
