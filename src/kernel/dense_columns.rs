//! Columns that follow each other in the destination and are no whole lines of the caches, streamed.
//!
//! A block of rows has parts of lines of each column. So all rows of some columns are turned in memory that L1 holds, one
//! column behind the other, and go from there to the destination by whole lines (`whole_lines.rs`):
//!
//! ```text
//! lines in the destination   |       |       |       |
//! three columns                  aaaaaBBBBBccccc
//! ```
//!
//! Columns that do not follow each other are streamed by [`stream_carrying`](Matrix), which keeps what is left of each.

#![allow(unsafe_code, reason = "streaming stores; docs/architecture.md")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::ahead::{FollowsPanels, IntoCaches, RowsAhead};
use super::algorithm::Body;
use super::matrix::{
    Block, LINES_ALONG, Matrix, Order, Panel, StreamedBlock, transpose_panel, whole,
};
use super::vector::{LINE, Vector};
use super::whole_lines::{Memory, ROOM, WholeLines};
use super::{Place, Strip, scalar};

/// Fewer bytes of columns that follow each other are not worth putting lines together.
const ENOUGH: usize = 4096;

/// All tables have room for so many rows, and as many columns are made at a time at most.
const PLACES: usize = LINES_ALONG * LINE / 4;

/// So many lines of each row are read at a time at least, where vectors are shorter than a line, and where they are one.
const LEAST_LINES: [usize; 2] = [1, 3];

/// A strip whose matrices [have such columns](Matrix::has_dense_columns): by a function of its own, as the memory is more
/// than others have to set up.
///
/// # Safety
///
/// As of [`Matrix::stream_all`].
pub(super) struct DenseColumns<B>(PhantomData<B>);

impl<B: StreamedBlock> Body for DenseColumns<B> {
    #[inline(always)]
    unsafe fn run<V: Vector>(strip: &Strip, _: &[Place], source: *const u8, destination: *mut u8) {
        let matrix = Matrix::of::<B>(strip);
        // SAFETY: by the contract of this function; whoever calls it has the vectors of `B`.
        unsafe { matrix.stream_dense_columns::<B>(source, destination) };
    }
}

impl Matrix {
    /// The columns that are made at a time, none where there is no room for enough of each row. Those at the end may be up to
    /// a block more.
    #[inline(always)]
    fn columns_made<B: StreamedBlock>(&self) -> usize {
        let most = (ROOM / (self.rows * B::DESTINATION_WIDTH).max(1)).min(PLACES);
        let made = (most / B::Parts::COLUMNS).saturating_sub(1) * B::Parts::COLUMNS;
        let of_line = const { (LINE / B::WIDTH).next_multiple_of(B::Parts::COLUMNS) };
        let lines = LEAST_LINES[usize::from(B::Vector::BYTES == LINE)];
        if made * B::WIDTH < lines * LINE { 0 } else { whole(made, of_line) }
    }

    /// Whether the columns follow each other, and there is room for some of them.
    #[inline(always)]
    pub(super) fn has_dense_columns<B: StreamedBlock>(&self) -> bool {
        let column = self.rows.saturating_mul(B::DESTINATION_WIDTH);
        B::WAYS == 1
            && (B::Parts::ROWS..=PLACES).contains(&self.rows)
            && self.columns >= B::Parts::COLUMNS
            && self.follow(column)
            && column.saturating_mul(self.columns) >= ENOUGH
            && self.columns_made::<B>() > 0
    }

    /// Whether columns of so many bytes follow each other.
    #[inline(always)]
    pub(super) fn follow(&self, column: usize) -> bool {
        self.column.stride == column && self.column.is_even(self.columns)
    }

    /// Transposes each matrix of the strip.
    ///
    /// # Safety
    ///
    /// The strip begins at these places, and its matrices [have such columns](Matrix::has_dense_columns). The CPU has
    /// the vectors of `B`.
    #[inline(always)]
    unsafe fn stream_dense_columns<B: StreamedBlock>(
        &self,
        source: *const u8,
        destination: *mut u8,
    ) {
        const { assert!(B::WIDTH <= LINE, "a line has elements") };
        const { assert!(size_of::<B::Table>() >= PLACES * size_of::<usize>(), "room for rows") };
        let column = self.rows * B::DESTINATION_WIDTH;
        let panel = Panel { rows: self.rows, columns: self.columns_made::<B>() };
        let mut memory: Memory = MaybeUninit::uninit();
        let mut lines = WholeLines::new(&mut memory);
        let mut scratch = B::Parts::scratch();
        let mut tables = [B::table(), B::table()];
        let [rows, columns] = tables.each_mut().map(AsMut::as_mut);
        let rows = &mut rows[..self.rows];
        self.row.places(1, 0, rows);
        self.column.places(1, 0, columns);
        let mut ahead = RowsAhead::new::<B>(self, panel, panel.rows, source);
        for (source, destination) in scalar::blocks(&self.others, source, destination) {
            let mut first = 0;
            while first < self.columns {
                let left = self.columns - first;
                let count =
                    if left < panel.columns + B::Parts::COLUMNS { left } else { panel.columns };
                let blocks =
                    rows.len().div_ceil(B::Parts::ROWS) * count.div_ceil(B::Parts::COLUMNS);
                // What is left with the last panel is one of its own there.
                ahead.start(rows.len() * count.div_ceil(panel.columns), blocks);
                // SAFETY: what was made before is of the strip, which can be written.
                let memory =
                    unsafe { lines.room::<B::Vector>(destination.wrapping_add(first * column)) };
                // SAFETY: all rows of some columns, a block of them at least, to memory that has room for
                // them.
                unsafe {
                    transpose_panel::<B::Parts, _, _>(
                        &*rows,
                        &columns[..count],
                        Order::ByColumns,
                        &mut IntoCaches(&mut ahead),
                        &mut scratch,
                        source.wrapping_add(first * B::WIDTH),
                        memory,
                    );
                };
                ahead.finish::<B>();
                // SAFETY: so many bytes have been made, no more than there is room for.
                unsafe { lines.made::<B::Vector>(count * column) };
                first += count;
            }
        }
        // SAFETY: as above, of the last ones.
        unsafe { lines.finish::<B::Vector>() };
    }
}
