//! Columns that follow each other in the destination and are no whole lines of the caches, streamed.
//!
//! A block of rows has parts of lines of each column. So all rows of some columns are turned in memory that the near caches
//! hold, one column behind the other, and go from there to the destination by whole lines (`whole_lines.rs`):
//!
//! ```text
//! lines in the destination   |       |       |       |
//! three columns                  aaaaaBBBBBccccc
//! ```
//!
//! Columns of words follow each other those of the same element: of as many elements each has memory of its own. Columns that do
//! not follow each other are streamed by [`stream_carrying`](Matrix), which keeps what is left of each.

#![allow(unsafe_code, reason = "streaming stores; docs/architecture.md")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::ahead::{FollowsPanels, IntoCaches, RowsAhead};
use super::algorithm::Body;
use super::carry::CacheLines;
use super::matrix::{
    Block, LINES_ALONG, Matrix, Order, Panel, StreamedBlock, transpose_panel, whole,
};
use super::places::Split;
use super::vector::{LINE, Vector};
use super::whole_lines::{BESIDE, Memory, ROOM, WholeLines};
use super::{Place, Strip, scalar};

/// Fewer bytes of columns that follow each other are not worth putting lines together.
const ENOUGH: usize = 4096;

/// All tables have room for so many rows, and as many columns are made at a time at most.
const PLACES: usize = LINES_ALONG * LINE / 4;

/// The elements of a word at most.
const MOST_WAYS: usize = 4;

/// What columns of words are made in, which L2 holds, and of each row so many lines at a time, at least and at most.
const ROOM_OF_WORDS: usize = 64 << 10;
const LEAST_LINES_OF_WORDS: usize = 2;
const MOST_LINES_OF_WORDS: usize = 4;
type MemoryOfWords = MaybeUninit<CacheLines<{ (ROOM_OF_WORDS + MOST_WAYS * BESIDE) / LINE }>>;

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

/// Columns that follow each other those of the same element of a word.
struct Dense {
    /// The elements of a word.
    ways: usize,
    /// So many columns go on so.
    columns: usize,
}

impl Matrix {
    /// The columns that are made at a time, none where there is no room for enough of each row. Those at the end may be up to
    /// a block more.
    #[inline(always)]
    fn columns_made<B: StreamedBlock>(&self, ways: usize) -> usize {
        let of_line = const { (LINE / B::WIDTH).next_multiple_of(B::Parts::COLUMNS) };
        let (room, lines, most) = if ways > 1 {
            (ROOM_OF_WORDS, LEAST_LINES_OF_WORDS, const { MOST_LINES_OF_WORDS * LINE / B::WIDTH })
        } else {
            (ROOM, LEAST_LINES[usize::from(B::Vector::BYTES == LINE)], PLACES)
        };
        let fit = room / (self.rows * B::DESTINATION_WIDTH).max(1);
        let made = (fit / B::Parts::COLUMNS).saturating_sub(1) * B::Parts::COLUMNS;
        let made = made.min(most).min(PLACES - B::Parts::COLUMNS);
        if made * B::WIDTH < lines * LINE { 0 } else { whole(made, of_line) }
    }

    /// Whether the columns follow each other, and there is room for some of them.
    #[inline(always)]
    pub(super) fn has_dense_columns<B: StreamedBlock>(&self) -> bool {
        let column = self.rows.saturating_mul(B::DESTINATION_WIDTH);
        let Some(Dense { ways, columns }) = self.dense_columns::<B>() else { return false };
        B::WAYS == 1
            && (B::Parts::ROWS..=PLACES).contains(&self.rows)
            && columns >= B::Parts::COLUMNS
            && column.saturating_mul(columns / ways) >= ENOUGH
            && self.columns_made::<B>(ways) > 0
    }

    /// How the columns follow each other, if they do: those of words only with vectors that are shorter than a line, which
    /// was measured.
    #[inline(always)]
    fn dense_columns<B: StreamedBlock>(&self) -> Option<Dense> {
        let column = self.rows.saturating_mul(B::DESTINATION_WIDTH);
        if self.follow(column) {
            return Some(Dense { ways: 1, columns: self.columns });
        }
        let Split { block: ways, step, group, .. } = self.column;
        let columns = ways.saturating_mul(group).min(self.columns);
        let are_words = const { Self::may_be_words::<B>() }
            && ways.checked_mul(B::WIDTH) == Some(size_of::<u32>())
            && columns.is_multiple_of(ways)
            && self.columns.is_multiple_of(columns);
        (are_words && step == column).then_some(Dense { ways, columns })
    }

    /// Whether the columns of such blocks may be those of words of several.
    const fn may_be_words<B: StreamedBlock>() -> bool {
        B::WIDTH < size_of::<u32>() && B::Vector::BYTES < LINE
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
        let Some(dense) = self.dense_columns::<B>() else {
            debug_assert!(false, "no columns that follow each other");
            return;
        };
        let panel = Panel { rows: self.rows, columns: self.columns_made::<B>(dense.ways) };
        // Of these two there is one.
        let (mut of_words, mut of_one): (MemoryOfWords, Memory) =
            (MaybeUninit::uninit(), MaybeUninit::uninit());
        let memory: *mut u8 = if const { Self::may_be_words::<B>() } {
            of_words.as_mut_ptr().cast()
        } else {
            of_one.as_mut_ptr().cast()
        };
        let pitch = whole(ROOM_OF_WORDS / dense.ways, LINE) + BESIDE;
        let mut lines: [_; MOST_WAYS] =
            std::array::from_fn(|way| WholeLines::at(memory.wrapping_add(way * pitch)));
        let lines = &mut lines[..dense.ways];
        let is_crowded = dense.ways > 1 && self.has_crowded_rows(self.rows);
        let order = if is_crowded { Order::ByRows } else { Order::ByColumns };
        let mut scratch = B::Parts::scratch();
        let mut tables = [B::table(), B::table()];
        let [rows, columns] = tables.each_mut().map(AsMut::as_mut);
        let rows = &mut rows[..self.rows];
        self.row.places(1, 0, rows);
        let mut ahead = RowsAhead::new::<B>(self, panel, panel.rows, source);
        for (source, destination) in scalar::blocks(&self.others, source, destination) {
            let mut first = 0;
            while first < self.columns {
                let left = dense.columns - first % dense.columns;
                let count =
                    if left < panel.columns + B::Parts::COLUMNS { left } else { panel.columns };
                let blocks =
                    rows.len().div_ceil(B::Parts::ROWS) * count.div_ceil(B::Parts::COLUMNS);
                // It goes on through all columns, in panels of its own.
                let panels =
                    (first + count).div_ceil(panel.columns) - first.div_ceil(panel.columns);
                ahead.start(rows.len() * panels, blocks);
                let columns = &mut columns[..count];
                self.column.places(1, first, &mut columns[..dense.ways]);
                let mut memory = std::ptr::null_mut::<u8>();
                for (way, lines) in lines.iter_mut().enumerate() {
                    let to = destination.wrapping_add(columns[way]);
                    // SAFETY: what was made before is of the strip, which can be written.
                    let room = unsafe { lines.room::<B::Vector>(to) };
                    if way == 0 {
                        memory = room;
                    }
                    let mut place = room.addr().wrapping_sub(memory.addr());
                    for start in columns[way..].iter_mut().step_by(dense.ways) {
                        *start = place;
                        place = place.wrapping_add(column);
                    }
                }
                // SAFETY: all rows of some columns, a block of them at least, to memory that has room for
                // them.
                unsafe {
                    transpose_panel::<B::Parts, _, _>(
                        &*rows,
                        columns,
                        order,
                        &mut IntoCaches(&mut ahead),
                        &mut scratch,
                        source.wrapping_add(first * B::WIDTH),
                        memory,
                    );
                };
                ahead.finish::<B>();
                for lines in &mut *lines {
                    // SAFETY: so many bytes have been made, no more than there is room for.
                    unsafe { lines.made::<B::Vector>(count / dense.ways * column) };
                }
                first += count;
            }
        }
        for lines in lines {
            // SAFETY: as above, of the last ones.
            unsafe { lines.finish::<B::Vector>() };
        }
    }
}
