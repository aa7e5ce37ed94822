//! The way through a matrix whose rows become columns: panels of blocks, in an order that
//! suits the caches. docs/performance.md has what was tried.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::mem::MaybeUninit;
use std::ops::Range;

use super::ahead::{
    FetchesAhead, FollowsPanels, Lines, NextBlocks, NextPanel, PIECES, PagesAhead, RowsAhead,
    Spread, Way, piece,
};
use super::at_strides::{BlockAtStrides, has_short_vectors};
use super::carry::{CacheLines, Ended, copy_line, finish, line_of};
use super::crowded::{Crowded, L1_SETS, ROOM};
use super::crowded_rows::{CrowdedRows, copies_rows};
use super::dense_columns::DenseColumns;
use super::places::{Evenly, Split, Starts};
use super::scalar;
use super::vector::{LINE, PAGE, Vector};
use super::{Place, Strip, next_random};

/// A matrix to be transposed: a block of a strip; or all blocks of a line, where
/// they continue each other's columns in the destination; or all lines, where they
/// continue each other's rows in the source; or all blocks of all lines, where both continue the same. The last block
/// may have fewer rows, or the last line fewer columns.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Where the rows begin in the source.
    pub(super) row: Split,
    /// Where the columns begin in the destination.
    pub(super) column: Split,
    /// The strip of such matrices.
    pub(super) others: Strip,
}

/// How many rows and columns of a matrix are transposed before the next ones, block by
/// block in a regular order: few enough for the caches to hold, and runs long enough for
/// memory. On both sides of a block, single vectors are far from each other, and whole
/// lines of cache. The last panel may have a quarter more columns.
pub(super) const PANEL_ROWS: usize = 128;
pub(super) const PANEL_COLUMNS: usize = 64;

/// Rows that come from memory and share few sets of the caches are gone along farther, a few at a time.
pub(super) const PANEL_COLUMNS_FAR: usize = 128;

/// The rows and columns of what is transposed before the next ones are.
#[derive(Clone, Copy)]
pub(super) struct Panel {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// Of what is streamed: the lines of a panel beside each other in the source,
/// in each row, and below each other in the destination, in each column. Where rows have
/// fewer, there are up to twice as many of these.
pub(super) const LINES_ALONG: usize = 16;
pub(super) const LINES_DOWN: usize = 2;

/// Where single lines are streamed more slowly, so that columns had better have more of them.
const LINES_ALONG_FEW: usize = 8;

/// The same where the source is in L3, and L2 has room for the rows of two
/// larger panels however far these are from each other.
pub(super) const LINES_DOWN_NEAR: usize = 4;

/// Where prefetchers follow rows, no more than this are gone along at a time, as they follow no more
/// pages.
const ROWS_FOLLOWED: usize = 32;

/// The ways of L2 of a core that fetches rows line by line.
const L2_WAYS: usize = 16;

/// Rows that are farther apart gain nothing by that, and rows that are exactly as far apart lose.
const TOO_FAR_APART: usize = 512 << 10;

/// Whether a side of so many bytes, which one loop of a strip has made that long, goes on in the other loop too, if that
/// continues it, where the other side has so many bytes. If these are few, the way goes along a side as it is in two
/// strides (`few.rs`), and a long one stays as it is.
pub const fn joins_both_loops(side: usize, other: usize) -> bool {
    side < 8 * LINE || other >= LINE
}

/// A vector of more elements would take more rows at a time than there are registers for.
pub(super) const MAX_LANES: usize = 16;

/// In an order without order (see [`Strip::shuffled`]), a panel has at most so many blocks
/// of rows and of columns, and at least so many bytes: the order of few blocks is no
/// matter, and looking for them takes time.
const GRID: usize = 16;
const SHUFFLED_BYTES: usize = 32 << 10;
const SHUFFLED: [usize; GRID * GRID] = {
    let mut order = [0; GRID * GRID];
    let mut i = 0;
    while i < order.len() {
        order[i] = i;
        i += 1;
    }
    let mut random = 1_u64;
    let mut left = order.len();
    while left > 1 {
        random = next_random(random);
        order.swap((random >> 33) as usize % left, left - 1);
        left -= 1;
    }
    order
};

/// Where the blocks of a panel begin, row and column, in the order in which to visit
/// them.
struct Blocks {
    /// Of the panel.
    rows: usize,
    columns: usize,
    /// Of a block.
    block_rows: usize,
    block_columns: usize,
    order: Order,
    /// Of the next one.
    row: usize,
    column: usize,
    shuffled: std::slice::Iter<'static, usize>,
}

/// Rows or columns first: those that are further from each other, of which the caches
/// hold fewer, as powers of two put them all into the same few places.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The columns of the same rows first.
    ByRows,
    /// The rows of the same columns first.
    ByColumns,
    /// None, for what is in the near caches.
    Shuffled,
}

impl Blocks {
    #[inline(always)]
    fn new((rows, columns): (usize, usize), block: (usize, usize), order: Order) -> Blocks {
        let (block_rows, block_columns) = block;
        let shuffled = SHUFFLED.iter();
        Blocks { rows, columns, block_rows, block_columns, order, row: 0, column: 0, shuffled }
    }

    /// Where the block at a row and a column begins, the last ones ending where the
    /// panel does.
    #[inline(always)]
    fn at(&self, row: usize, column: usize) -> (usize, usize) {
        (row.min(self.rows - self.block_rows), column.min(self.columns - self.block_columns))
    }
}

impl Iterator for Blocks {
    type Item = (usize, usize);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, usize)> {
        if self.order == Order::Shuffled {
            // There are `GRID` of each at most.
            for &number in self.shuffled.by_ref() {
                let row = number / GRID * self.block_rows;
                let column = number % GRID * self.block_columns;
                if row < self.rows && column < self.columns {
                    return Some(self.at(row, column));
                }
            }
            return None;
        }
        if self.row >= self.rows || self.column >= self.columns {
            return None;
        }
        let at = self.at(self.row, self.column);
        if self.order == Order::ByRows {
            self.column += self.block_columns;
            if self.column >= self.columns {
                (self.row, self.column) = (self.row + self.block_rows, 0);
            }
        } else {
            self.row += self.block_rows;
            if self.row >= self.rows {
                (self.row, self.column) = (0, self.column + self.block_columns);
            }
        }
        Some(at)
    }
}

impl Matrix {
    #[inline(always)]
    pub(super) fn new(strip: &Strip, width: usize, ways: usize) -> Matrix {
        Matrix::of_widths(strip, width, width * ways, ways)
    }

    /// The matrices that blocks of this kind make up.
    #[inline(always)]
    pub(super) fn of<B: Block>(strip: &Strip) -> Matrix {
        Matrix::of_widths(strip, B::WIDTH, B::DESTINATION_WIDTH, B::WAYS)
    }

    /// Of elements of so many bytes in the source, each row of which adds so many to a place of columns in the
    /// destination, which `ways` columns share.
    #[inline(always)]
    pub(super) fn of_widths(
        strip: &Strip,
        width: usize,
        destination_width: usize,
        ways: usize,
    ) -> Matrix {
        let matrix = Matrix::without_groups(strip, width, destination_width, ways);
        let Matrix { rows, columns, others, .. } = matrix;
        let bytes = (rows.saturating_mul(destination_width), columns.saturating_mul(width));
        if strip.has_tail() {
            // In groups of blocks, all blocks have as many.
        } else if others.blocks > 1
            && others.lines < strip.lines
            && columns.checked_mul(width) == Some(strip.source_step)
            && joins_both_loops(bytes.1, bytes.0)
        {
            return Matrix {
                columns: columns.saturating_mul(strip.blocks),
                column: matrix.column.in_groups(strip.lines, strip.destination_step),
                others: Strip { blocks: 1, ..others },
                ..matrix
            };
        } else if others.lines > 1
            && others.blocks < strip.blocks
            && rows.checked_mul(destination_width) == Some(strip.destination_line)
            && joins_both_loops(bytes.0, bytes.1)
        {
            return Matrix {
                rows: rows.saturating_mul(strip.lines),
                row: matrix.row.in_groups(strip.blocks, strip.source_line),
                others: Strip { lines: 1, ..others },
                ..matrix
            };
        }
        matrix
    }

    /// The same of blocks or lines that continue each other, a matrix for each group of such.
    #[inline(always)]
    pub(super) fn without_groups(
        strip: &Strip,
        width: usize,
        destination_width: usize,
        ways: usize,
    ) -> Matrix {
        let (mut rows, mut columns) = (strip.rows, strip.columns);
        let mut others = *strip;
        let mut row = Split::at_stride(strip.row_stride);
        let mut column = Split::at_stride(strip.column_stride);
        if strip.blocks_join(destination_width) {
            row = row.in_blocks(rows, strip.source_step);
            rows = rows.saturating_mul(strip.blocks).saturating_add(strip.tail_rows);
            (others.blocks, others.tail_rows) = (1, 0);
        }
        if strip.lines_join(width) {
            column = column.in_blocks(columns / ways, strip.destination_line);
            columns = columns.saturating_mul(strip.lines).saturating_add(strip.tail);
            (others.lines, others.tail) = (1, 0);
        }
        debug_assert!(!others.has_tail(), "a tail goes on with what it is behind: {strip:?}");
        debug_assert!(strip.tail == 0 || strip.tail_rows == 0, "one tail at most: {strip:?}");
        Matrix { rows, columns, row, column, others }
    }

    /// The blocks of a strip, each a matrix of its own, if they are alike.
    #[inline(always)]
    pub(super) fn of_blocks(strip: &Strip) -> Option<Matrix> {
        let (rows, columns) = (strip.rows, strip.columns);
        let row = Split::at_stride(strip.row_stride);
        let column = Split::at_stride(strip.column_stride);
        (!strip.has_tail()).then_some(Matrix { rows, columns, row, column, others: *strip })
    }

    /// Whether rows and columns are at one stride each.
    #[inline(always)]
    pub(super) fn is_even(&self) -> bool {
        self.row.is_even(self.rows) && self.column.is_even(self.columns)
    }

    /// How many of the places of a panel's columns share a set of L1, and of as many rows.
    #[inline(always)]
    fn panel_crowds<B: Block>(&self) -> (usize, usize) {
        let places = PANEL_COLUMNS.min(self.columns) / B::WAYS;
        let columns = self.column.crowd(places, L1_SETS);
        (columns, self.row.crowd(PANEL_COLUMNS.min(self.rows), L1_SETS))
    }

    /// Whether the rows of the same columns come first: where more of these [share a set](Matrix::panel_crowds), and more than it has
    /// room for; where neither side has more, and with shorter vectors, only if columns are farther apart.
    #[inline(always)]
    pub(super) fn goes_by_columns<B: Block>(&self) -> bool {
        let are_farther = self.others.goes_by_columns();
        let (columns, rows) = self.panel_crowds::<B>();
        if columns == rows || columns.max(rows) <= ROOM {
            return are_farther;
        }
        columns > rows && (are_farther || !const { has_short_vectors::<B>() })
    }

    /// Whether blocks are visited in no order where the strip says so: such as write half a line or more of each column, as
    /// shorter parts had better be visited one soon after the other. Vectors of a line are slower so, unless about as many of
    /// both sides share a set.
    #[inline(always)]
    fn is_shuffled<B: Block>(&self) -> bool {
        if !self.others.is_shuffled || B::ROWS * B::DESTINATION_WIDTH * 2 < LINE {
            return false;
        }
        let (columns, rows) = self.panel_crowds::<B>();
        let (fewer, more) = (columns.min(rows), columns.max(rows));
        fewer > ROOM && more <= 2 * fewer || const { has_short_vectors::<B>() }
    }

    /// Whether L1 has room for a line of each row of a panel.
    #[inline(always)]
    pub(super) fn has_room_for_rows(&self) -> bool {
        self.row.crowd(PANEL_ROWS.min(self.rows), L1_SETS) <= ROOM
    }

    /// Whether so many columns, a line each, take all the room of their sets of L1, and [rows](Matrix::has_room_for_rows) do
    /// not.
    #[inline(always)]
    pub(super) fn crowds_columns_alone(&self, columns: usize) -> bool {
        self.column.crowd(columns, L1_SETS) >= ROOM && self.has_room_for_rows()
    }

    /// Transposes each matrix of the strip, a block at a time.
    ///
    /// # Safety
    ///
    /// The strip begins at these places, and each matrix has at least as many rows
    /// and columns as a block. The CPU has the vectors of `B`.
    #[inline(always)]
    pub(super) unsafe fn transpose_all<B: Block>(
        &self,
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
    ) {
        let strided = self.at_strides::<B>();
        let is_strided = strided.is_some();
        let through_memory = is_strided && self.has_most_crowded_rows::<B>();
        let has_room = through_memory || is_strided && self.finishes_few_columns::<B>();
        if self.is_crowded::<B>() && !has_room {
            // SAFETY: the same contract.
            return unsafe { B::Vector::compiled::<Crowded<B>>()(strip, &[], source, destination) };
        }
        if const { copies_rows::<B>() } && through_memory {
            // SAFETY: the same contract; that takes the matrices of the strip again, which are these.
            unsafe { B::Vector::compiled::<CrowdedRows<B>>()(strip, &[], source, destination) };
        } else if let Some(strided) = &strided {
            for (source, destination) in scalar::blocks(&self.others, source, destination) {
                // SAFETY: one of the matrices.
                unsafe { self.transpose_at_strides::<B>(strided, source, destination) };
            }
        }
        // What is not done yet: the rows below these, and the columns beside them.
        let (rows, columns) = strided.map_or((0, 0), |done| (done.rows, done.columns));
        let rest = [(rows..self.rows, 0..columns), (0..self.rows, columns..self.columns)];
        let is_there = |(rows, columns): &(Range<usize>, Range<usize>)| {
            !rows.is_empty() && !columns.is_empty()
        };
        if !rest.iter().any(is_there) {
            return;
        }
        let mut scratch = B::scratch();
        let mut tables = [[0; GRID * MAX_LANES]; 2];
        let by_columns = self.goes_by_columns::<B>();
        let order = if by_columns { Order::ByColumns } else { Order::ByRows };
        let is_shuffled = self.is_shuffled::<B>();
        for (source, destination) in scalar::blocks(&self.others, source, destination) {
            for part in rest.iter().filter(|part| is_there(part)) {
                // SAFETY: one of the matrices.
                unsafe {
                    self.transpose::<B>(
                        part,
                        (order, is_shuffled),
                        source,
                        destination,
                        &mut tables,
                        &mut scratch,
                    )
                };
            }
        }
    }

    /// The same, streaming.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    pub(super) unsafe fn stream_all<B: StreamedBlock>(
        &self,
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
    ) {
        // What ends within a line would be written over lines that have just been streamed, where a block has several.
        let makes_lines = const { B::ROWS * B::DESTINATION_WIDTH == LINE };
        let ends_at_lines = (self.rows * B::DESTINATION_WIDTH).is_multiple_of(LINE);
        let are_lines = self.has_whole_lines(destination) && (makes_lines || ends_at_lines);
        if !are_lines && self.has_dense_columns::<B>() {
            let run = B::Vector::compiled::<DenseColumns<B>>();
            // SAFETY: by the contract of this function, and the matrices have such columns.
            return unsafe { run(strip, &[], source, destination) };
        }
        let mut scratch = B::scratch();
        let mut tables = [B::table(), B::table()];
        if are_lines {
            if self.has_runs::<B>() {
                // SAFETY: by the contract of this function.
                return unsafe { self.stream_by_runs::<B>(source, destination, &mut tables) };
            }
            let follows = self.others.core.follows_pages() && B::ROWS <= ROWS_FOLLOWED;
            let is_scattered = follows && self.has_scattered_rows::<B>();
            if follows && !is_scattered {
                // SAFETY: by the contract of this function.
                return unsafe {
                    self.stream_along::<B>(source, destination, &mut tables, &mut scratch)
                };
            }
            let mut panel = self.streamed_panel::<B>();
            if is_scattered {
                panel.rows = panel.rows.min(whole(ROWS_FOLLOWED, B::ROWS));
            }
            let by_pieces = self.others.is_near
                || is_scattered
                || self.wants_longer_columns::<B>()
                || self.fetches_line_by_line::<B>();
            let (at, room) = ((source, destination), (&mut tables, &mut scratch));
            if NextBlocks::suit::<B>(self, panel) {
                // SAFETY: by the contract of this function.
                unsafe { self.stream::<B, _>(at, panel, NextBlocks::new(self), room) };
            } else if by_pieces && NextPanel::has_pieces::<B>(self, panel) {
                // SAFETY: as above.
                unsafe { self.stream::<B, _>(at, panel, NextPanel::new(self), room) };
            } else {
                let rows = RowsAhead::distance::<B>(self, panel);
                let ahead = RowsAhead::new::<B>(self, panel, rows, source);
                // SAFETY: as above.
                unsafe { self.stream::<B, _>(at, panel, ahead, room) };
            }
            return;
        }
        let (mut memory, mut first_lines) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let made = Made::new::<B>(&mut memory, &mut first_lines);
        // The last panel has that many rows at most.
        let rows = made.panel.rows + B::ROWS - 1;
        let mut ahead = RowsAhead::new::<B>(self, made.panel, rows, source);
        for (from, to) in scalar::blocks(&self.others, source, destination) {
            // SAFETY: one of the matrices.
            unsafe {
                self.stream_carrying::<B>(from, to, &made, &mut ahead, &mut tables, &mut scratch);
            };
        }
    }

    /// Transposes each matrix of the strip: by blocks that are streamed, if `STREAM` says so and it has one, by columns that
    /// follow each other, of which it may have fewer, or by others.
    ///
    /// # Safety
    ///
    /// As of [`transpose_all`](Matrix::transpose_all).
    #[inline(always)]
    pub(super) unsafe fn transpose_by<B: Block, S: StreamedBlock, const STREAM: bool>(
        &self,
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
    ) {
        if STREAM && self.rows >= S::ROWS && self.columns >= S::COLUMNS {
            // SAFETY: by the contract of this function; there are as many rows and columns as a block has.
            unsafe { self.stream_all::<S>(strip, source, destination) };
        } else if STREAM && self.has_dense_columns::<S>() {
            let run = S::Vector::compiled::<DenseColumns<S>>();
            // SAFETY: by the contract of this function, and the matrices have such columns.
            unsafe { run(strip, &[], source, destination) };
        } else {
            // SAFETY: by the contract of this function.
            unsafe { self.transpose_all::<B>(strip, source, destination) };
        }
    }

    /// Whether there is so little of each row, in pages of their own, that prefetchers cannot follow them.
    #[inline(always)]
    fn has_scattered_rows<B: Block>(&self) -> bool {
        let Strip { lines, source_line, .. } = self.others;
        let row = self.columns * B::WIDTH;
        let goes_on = self.is_beside_others() && source_line < PAGE;
        let in_page = if goes_on { row.max(lines * source_line) } else { row };
        self.row.distance() >= PAGE && in_page < PAGE
    }

    /// Whether memory brings more of the rows if each line is asked for by itself, before one is streamed, than if those of a
    /// row are at once. With the lines of a row prefetchers bring what is beside them, which is lost where rows share few sets
    /// of L1 and those of L2 have no room for all of them until the next panel. Rows have half of what a panel takes of them,
    /// at least; and panels have pairs of lines of the destination, as such go to memory together.
    #[inline(always)]
    fn fetches_line_by_line<B: Block>(&self) -> bool {
        let are_long = self.columns * B::WIDTH >= LINES_ALONG_FEW * LINE;
        let are_lost = self.has_rows_in_few_sets::<B>()
            && self.row.crowd(self.rows, self.others.core.l2_sets()) > L2_WAYS;
        let has_pairs = self.column_steps().is_multiple_of(2 * LINE);
        let suits = are_long && has_pairs && self.row.distance() < TOO_FAR_APART;
        self.has_far_words::<B>() && suits && are_lost
    }

    /// Whether rows of words of 32 bits come from memory, on a core that [fetches them by lines](super::Core::fetches_by_lines).
    #[inline(always)]
    pub(super) fn has_far_words<B: Block>(&self) -> bool {
        let Strip { is_far, core, .. } = self.others;
        let are_words = const { B::WIDTH == 4 && B::ROWS == B::COLUMNS };
        are_words && is_far && core.fetches_by_lines()
    }

    /// Whether L1 has no room for a line of each row of a block.
    #[inline(always)]
    fn has_rows_in_few_sets<B: Block>(&self) -> bool {
        self.row.crowd(B::ROWS, L1_SETS) > ROOM
    }

    /// Whether so many rows are such multiples of powers of two apart that L2 has no room for a line of each: what is
    /// fetched of them is gone before all lines beside it have been read.
    #[inline(always)]
    pub(super) fn has_crowded_rows(&self, count: usize) -> bool {
        let Strip { core, .. } = self.others;
        core.has_few_ways() && self.row.crowd(count, core.l2_sets()) > ROOM
    }

    /// Whether rows come from memory, and so many of them share a set of L1 and L2 that what prefetchers bring of twice as many
    /// as it has room for drives each other out. Vectors of a line were not measured.
    #[inline(always)]
    pub(super) fn has_far_crowded_rows<B: Block>(&self) -> bool {
        let has_short_vectors = const { has_short_vectors::<B>() };
        has_short_vectors && self.others.is_far && self.row.crowd(2 * ROOM, L1_SETS) > ROOM
    }

    /// Whether the rows of the matrices of a strip go on beside each other.
    #[inline(always)]
    fn is_beside_others(&self) -> bool {
        self.others.blocks == 1 && self.others.source_line <= PAGE
    }

    /// What is transposed at a time of what is streamed.
    #[inline(always)]
    fn streamed_panel<B: StreamedBlock>(&self) -> Panel {
        let Strip { is_near, core, .. } = self.others;
        let lines = if is_near && !core.has_few_ways() { LINES_DOWN_NEAR } else { LINES_DOWN };
        let most = const { LINES_ALONG * LINE / (B::COLUMNS * B::WIDTH) };
        let takes_rows = self.columns.div_ceil(B::COLUMNS) <= most;
        let is_spread = !self.has_rows_in_few_sets::<B>();
        let most = if self.wants_longer_columns::<B>() && !takes_rows && is_spread {
            // More rows instead, of which whole pieces are fetched.
            let lines = LINES_ALONG_FEW.max(piece::<B>());
            most.min((lines * LINE).div_ceil(B::COLUMNS * B::WIDTH))
        } else {
            most
        };
        let blocks = self.columns.div_ceil(B::COLUMNS);
        let by_line = self.fetches_line_by_line::<B>();
        // Of what is fetched in pieces, rows have whole ones.
        let unit = if is_near || by_line { const { B::ROWS / PIECES } } else { 1 };
        let along = whole(most, unit.max(1));
        // Rather than a last panel of few blocks, which has little of each row, all have a little less: a piece at least.
        let along = if blocks > along && (1..=along / 4).contains(&(blocks % along)) {
            let share = blocks.div_ceil(blocks.div_ceil(along)).next_multiple_of(unit.max(1));
            share.max((piece::<B>() * LINE).div_ceil(B::COLUMNS * B::WIDTH)).min(along)
        } else {
            along.min(blocks)
        };
        let most_down = if by_line { lines } else { 2 * lines };
        let down = (LINES_ALONG * lines / along).clamp(1, most_down);
        Panel { rows: down.min(self.rows.div_ceil(B::ROWS)) * B::ROWS, columns: along * B::COLUMNS }
    }

    /// Transposes all matrices of the strip, whose lines are streamed: panels
    /// below each other first, and in each of them the lines of the same column, so that memory
    /// gets some that lie beside each other; but where rows are crowded, those of the same rows. Meanwhile
    /// others are fetched `ahead`.
    ///
    /// # Safety
    ///
    /// As [`stream_all`](Matrix::stream_all), and all columns begin where lines do.
    #[inline(always)]
    unsafe fn stream<B: StreamedBlock, A: FollowsPanels>(
        &self,
        (source, destination): (*const u8, *mut u8),
        panel: Panel,
        mut ahead: A,
        (tables, scratch): (&mut [B::Table; 2], &mut B::Scratch),
    ) {
        let [rows, columns] = tables.each_mut().map(AsMut::as_mut);
        let is_even = self.row.is_even(self.rows);
        // Words are no quicker so.
        let is_crowded = B::WIDTH < 4 && self.has_crowded_rows(panel.rows.min(self.rows));
        let order = if is_crowded { Order::ByRows } else { Order::ByColumns };
        let next_strip = source.wrapping_add(self.others.next);
        let mut matrices = scalar::blocks(&self.others, source, destination).peekable();
        while let Some((source, destination)) = matrices.next() {
            let next_matrix = matrices.peek().map_or(next_strip, |&(source, _)| source);
            let mut next_column = 0;
            while next_column < self.columns {
                // What is left at the end is done by blocks that end there.
                let first_column = next_column.min(self.columns - B::COLUMNS);
                let columns = &mut columns[..panel.columns.min(self.columns - first_column)];
                self.column.places(B::WAYS, first_column, columns);
                let columns = &*columns;
                next_column = first_column + columns.len();
                let panel_source = source.wrapping_add(first_column * B::WIDTH);
                let mut next_row = 0;
                while next_row < self.rows {
                    let first_row = next_row.min(self.rows - B::ROWS);
                    let count = panel.rows.min(self.rows - first_row);
                    let end_row = first_row + count;
                    let (next, column, row) = if end_row < self.rows {
                        (panel_source, first_column, end_row)
                    } else if next_column < self.columns {
                        (source.wrapping_add(next_column * B::WIDTH), next_column, 0)
                    } else {
                        (next_matrix, 0, 0)
                    };
                    ahead.set_out::<B>(&Way {
                        rows: end_row - next_row,
                        blocks: count.div_ceil(B::ROWS) * columns.len().div_ceil(B::COLUMNS),
                        next,
                        next_bytes: panel.columns.min(self.columns - column) * B::WIDTH,
                        next_rows: row..self.rows.min(row + panel.rows),
                    });
                    next_row = end_row;
                    let destination = destination.wrapping_add(first_row * B::DESTINATION_WIDTH);
                    if is_even {
                        let stride = self.row.stride;
                        let start = first_row.wrapping_mul(stride);
                        let rows = Evenly { start, stride, count };
                        // SAFETY: some rows and columns of the matrix, at least as many as a
                        // block has.
                        unsafe {
                            transpose_panel::<B, _, _>(
                                rows,
                                columns,
                                order,
                                &mut ahead,
                                scratch,
                                panel_source,
                                destination,
                            );
                        };
                    } else {
                        let rows = &mut rows[..count];
                        self.row.places(1, first_row, rows);
                        // SAFETY: as above.
                        unsafe {
                            transpose_panel::<B, _, _>(
                                &*rows,
                                columns,
                                order,
                                &mut ahead,
                                scratch,
                                panel_source,
                                destination,
                            );
                        };
                    }
                    ahead.finish::<B>();
                }
            }
        }
    }

    /// Transposes all matrices of the strip, whose lines are streamed, where
    /// prefetchers follow the source: along some rows to their ends, which they see to, and
    /// where rows are short, on along those of the matrix beside it, whose pages are asked
    /// for by turns.
    ///
    /// # Safety
    ///
    /// As [`stream_all`](Matrix::stream_all), and all columns begin where lines do.
    #[inline(always)]
    unsafe fn stream_along<B: StreamedBlock>(
        &self,
        source: *const u8,
        destination: *mut u8,
        [rows, columns]: &mut [B::Table; 2],
        scratch: &mut B::Scratch,
    ) {
        let (rows, columns) = (rows.as_mut(), columns.as_mut());
        let mut panel = self.streamed_panel::<B>();
        let is_long = self.columns * B::WIDTH >= PAGE;
        if is_long {
            panel.rows = panel.rows.min(whole(ROWS_FOLLOWED, B::ROWS));
        }
        // The matrices whose rows come before the next ones of this one.
        let one = Strip { lines: 1, blocks: 1, ..self.others };
        let (outer, beside) =
            if self.is_beside_others() { (one, self.others) } else { (self.others, one) };
        // The panels of the same rows.
        let across = self.columns.div_ceil(panel.columns);
        let in_rows = beside.lines * across;
        let mut pages = PagesAhead::new();
        let first_column =
            |number: usize| (number % across * panel.columns).min(self.columns - B::COLUMNS);
        // Where a panel begins in the source of the first matrix, and the bytes of its rows.
        let panel_at = |source: *const u8, number: usize| {
            let Place { source: start, .. } = beside.place(number / across, 0);
            let column = first_column(number);
            let bytes = panel.columns.min(self.columns - column) * B::WIDTH;
            (source.wrapping_add(start.wrapping_add(column * B::WIDTH)), bytes)
        };
        let next_strip = source.wrapping_add(self.others.next);
        let mut matrices = scalar::blocks(&outer, source, destination).peekable();
        while let Some((source, destination)) = matrices.next() {
            let next_matrix = matrices.peek().map_or(next_strip, |&(source, _)| source);
            let mut next_row = 0;
            while next_row < self.rows {
                // What is left at the end is done by blocks that end there.
                let first_row = next_row.min(self.rows - B::ROWS);
                let rows = &mut rows[..panel.rows.min(self.rows - first_row)];
                self.row.places(1, first_row, rows);
                next_row = first_row + rows.len();
                let destination = destination.wrapping_add(first_row * B::DESTINATION_WIDTH);
                if !is_long {
                    pages.take_rows::<B>(self, first_row, panel.rows);
                }
                for number in 0..in_rows {
                    let (start, bytes) = panel_at(source, number);
                    let Place { destination: to, .. } = beside.place(number / across, 0);
                    let columns = &mut columns[..bytes / B::WIDTH];
                    if across > 1 || number == 0 {
                        self.column.places(B::WAYS, first_column(number), columns);
                    }
                    if !is_long {
                        let next = if number + 1 < in_rows {
                            panel_at(source, number + 1)
                        } else if next_row < self.rows {
                            pages.take_rows::<B>(self, next_row, panel.rows);
                            panel_at(source, 0)
                        } else {
                            pages.take_rows::<B>(self, 0, panel.rows);
                            panel_at(next_matrix, 0)
                        };
                        let blocks =
                            rows.len().div_ceil(B::ROWS) * columns.len().div_ceil(B::COLUMNS);
                        pages.set_out(next, blocks);
                    }
                    // SAFETY: some rows and columns of the matrix, at least as many as a
                    // block has.
                    unsafe {
                        transpose_panel::<B, _, _>(
                            &*rows,
                            columns,
                            Order::ByColumns,
                            &mut pages,
                            scratch,
                            start,
                            destination.wrapping_add(to),
                        );
                    };
                }
            }
        }
    }

    /// Whether the columns of all matrices of the strip begin where a line of the caches
    /// does.
    #[inline(always)]
    pub(super) fn has_whole_lines(&self, destination: *mut u8) -> bool {
        (destination.addr() | self.column_steps()).is_multiple_of(LINE)
    }

    /// The steps from column to column of all matrices of the strip, of which each bit that one has is set.
    #[inline(always)]
    fn column_steps(&self) -> usize {
        let Strip { lines, blocks, .. } = self.others;
        let line = if lines > 1 { self.others.destination_line } else { 0 };
        let block = if blocks > 1 { self.others.destination_step } else { 0 };
        let Split { stride, step, group_step, .. } = self.column;
        stride | step | group_step | line | block
    }

    /// The same as [`stream`](Matrix::stream), of columns that begin and end within lines:
    /// panels are made in memory that the near caches hold, and taken from there line by
    /// line (see `carry.rs`).
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    unsafe fn stream_carrying<B: StreamedBlock>(
        &self,
        source: *const u8,
        destination: *mut u8,
        made: &Made,
        ahead: &mut RowsAhead<'_>,
        tables: &mut [B::Table; 2],
        scratch: &mut B::Scratch,
    ) {
        // What a row adds to each column.
        let width = B::DESTINATION_WIDTH;
        let &Made { panel, pitch, .. } = made;
        let most_places = panel.columns.min(self.columns) / B::WAYS;
        // SAFETY: the memory of so many columns, for which there is room.
        unsafe { scalar::fill(made.memory, 0, most_places * pitch) };

        let [rows, columns] = tables.each_mut().map(AsMut::as_mut);
        let mut places = [0; Made::COLUMNS];
        let mut next_column = 0;
        while next_column < self.columns {
            let first_column = next_column.min(self.columns - B::COLUMNS);
            let count = panel.columns.min(self.columns - first_column);
            next_column = first_column + count;
            let columns = &mut columns[..count];
            self.column.places(B::WAYS, first_column, columns);
            let places = &mut places[..count / B::WAYS];
            for (place, &column) in places.iter_mut().zip(columns.iter().step_by(B::WAYS)) {
                *place = column;
            }
            // Before each column there are the last bytes of what was made of it before, a line of them.
            let kept = |i: usize| made.memory.wrapping_add(i * pitch);
            for (i, column) in columns.iter_mut().enumerate() {
                *column = i / B::WAYS * pitch + LINE;
            }
            let source = source.wrapping_add(first_column * B::WIDTH);
            let mut first_row = 0;
            while first_row < self.rows {
                let left = self.rows - first_row;
                // The last panel takes what is too little for one of its own.
                let row_count = if left < panel.rows + B::ROWS { left } else { panel.rows };
                let rows = &mut rows[..row_count];
                self.row.places(1, first_row, rows);
                // SAFETY: some rows and columns of the matrix, at least as many as a block
                // has, to memory that has room for them.
                unsafe {
                    transpose_panel_to_caches::<B>(
                        rows,
                        columns,
                        Order::ByColumns,
                        scratch,
                        source,
                        made.memory,
                    );
                };
                let bytes = row_count * width;
                ahead.start(row_count, places.len());
                let mut rows_ahead = Spread::new(row_count, places.len());
                let to = destination.wrapping_add(first_row * width);
                for (i, &place) in places.iter().enumerate() {
                    for _ in 0..rows_ahead.next() {
                        ahead.fetch_row::<B::Vector>();
                    }
                    let to = to.wrapping_add(place);
                    let within = to.addr() % LINE;
                    let first = kept(i).wrapping_add(LINE - within);
                    let whole = (within + bytes) / LINE * LINE;
                    let mut at = 0;
                    if first_row == 0 {
                        // SAFETY: the line in which the column begins.
                        unsafe { copy_line::<B::Vector, false>(first, made.first_line(i)) };
                        at = if within == 0 { 0 } else { LINE };
                    }
                    while at < whole {
                        let (from, to) = (first.wrapping_add(at), line_of(to).wrapping_add(at));
                        // SAFETY: a line of which all was made, to where it belongs.
                        unsafe { copy_line::<B::Vector, true>(from, to) };
                        at += LINE;
                    }
                    // SAFETY: the last bytes of the rows of this panel, to before the next ones.
                    unsafe { copy_line::<B::Vector, false>(kept(i).wrapping_add(bytes), kept(i)) };
                }
                ahead.finish::<B>();
                first_row += row_count;
            }
            let bytes = self.rows * width;
            let ended = self.column.in_order(bytes, places.len()).map(|i| {
                let to = destination.wrapping_add(places[i]);
                let within = to.wrapping_add(bytes).addr() % LINE;
                let (first_line, last_line) =
                    (made.first_line(i), kept(i).wrapping_add(LINE - within));
                Ended { to, bytes, first_line, last_line }
            });
            // SAFETY: the columns of these panels.
            unsafe { finish::<B::Vector>(ended) };
        }
    }

    /// Transposes some rows and columns of a matrix, and perhaps some before them, with ordinary stores.
    ///
    /// # Safety
    ///
    /// The matrix is at these places, and has at least as many rows and columns as a
    /// block. The CPU has the vectors of `B`.
    #[inline(always)]
    unsafe fn transpose<B: Block>(
        &self,
        (some_rows, some_columns): &(Range<usize>, Range<usize>),
        (order, is_shuffled): (Order, bool),
        source: *const u8,
        destination: *mut u8,
        [rows, columns]: &mut [[usize; GRID * MAX_LANES]; 2],
        scratch: &mut B::Scratch,
    ) {
        let (panel_rows, panel_columns) = if is_shuffled {
            let most = |size: usize| (GRID * MAX_LANES / size).min(GRID) * size;
            (most(B::ROWS), most(B::COLUMNS))
        } else {
            let columns =
                if self.has_far_crowded_rows::<B>() { PANEL_COLUMNS_FAR } else { PANEL_COLUMNS };
            (whole(PANEL_ROWS, B::ROWS), whole(columns, B::COLUMNS))
        };
        let most_columns =
            if is_shuffled { panel_columns } else { (panel_columns / 4 * 5).min(columns.len()) };
        let mut next_row = some_rows.start;
        while next_row < some_rows.end {
            // What is left at the end is done by blocks that end there.
            let first_row = next_row.min(self.rows - B::ROWS);
            let rows = &mut rows[..panel_rows.min(self.rows - first_row)];
            self.row.places(1, first_row, rows);
            let mut next_column = some_columns.start;
            while next_column < some_columns.end {
                let first_column = next_column.min(self.columns - B::COLUMNS);
                let left = self.columns - first_column;
                // The last panel takes what is too little for one of its own.
                let count = if left <= most_columns { left } else { panel_columns };
                let columns = &mut columns[..count];
                self.column.places(B::WAYS, first_column, columns);
                let (rows, columns) = (&*rows, &*columns);
                let is_large = rows.len() * columns.len() * B::WIDTH >= SHUFFLED_BYTES;
                let order = if is_shuffled && is_large { Order::Shuffled } else { order };
                let source = source.wrapping_add(first_column * B::WIDTH);
                let destination = destination.wrapping_add(first_row * B::DESTINATION_WIDTH);
                // SAFETY: some rows and columns of the matrix, at least as many as a
                // block has.
                unsafe {
                    transpose_panel_to_caches::<B>(
                        rows,
                        columns,
                        order,
                        scratch,
                        source,
                        destination,
                    );
                };
                next_column = first_column + columns.len();
            }
            next_row = first_row + rows.len();
        }
    }
}

/// The memory in which panels are made whose columns do not begin where lines do, and that
/// for the lines in which they begin.
struct Made {
    memory: *mut u8,
    first_lines: *mut u8,
    panel: Panel,
    /// From one place of columns to the next in memory, in bytes.
    pitch: usize,
}

impl Made {
    const BYTES: usize = 40 << 10;
    const COLUMNS: usize = 128;

    #[inline(always)]
    fn new<B: StreamedBlock>(
        memory: &mut MaybeUninit<CacheLines<{ Made::BYTES / LINE }>>,
        first_lines: &mut MaybeUninit<CacheLines<{ Made::COLUMNS }>>,
    ) -> Made {
        // What a row adds to each column.
        let width = B::DESTINATION_WIDTH;
        let rows = (LINES_DOWN * LINE / width / B::ROWS).max(1) * B::ROWS;
        // The last panel takes what is too little for one of its own. Before a column there is a line of what was carried,
        // and behind it one more: they are not a power of two apart.
        let pitch = (rows + B::ROWS) * width + 2 * LINE;
        let fits = (Made::BYTES / pitch).min(Made::COLUMNS) / B::COLUMNS * B::COLUMNS;
        let panel = Panel { rows, columns: (fits * B::WAYS).min(LINES_ALONG * B::COLUMNS) };
        Made {
            memory: memory.as_mut_ptr().cast(),
            first_lines: first_lines.as_mut_ptr().cast(),
            panel,
            pitch,
        }
    }

    #[inline(always)]
    fn first_line(&self, column: usize) -> *mut u8 {
        self.first_lines.wrapping_add(column * LINE)
    }
}

/// So many of that size, one at least, as are no more than `most`.
#[inline(always)]
pub(super) const fn whole(most: usize, size: usize) -> usize {
    if most < size { size } else { most / size * size }
}

/// What is transposed at a time: so many rows and columns. Where those of a block and of the matrix are multiples of one
/// number, blocks begin at such: panels are whole blocks, and the last ones end where the matrix does.
pub(super) trait Block {
    const ROWS: usize;
    const COLUMNS: usize = Self::ROWS;
    /// The bytes of an element in the source.
    const WIDTH: usize;
    /// As many columns share a place in the destination.
    const WAYS: usize;
    /// The bytes that each row adds to such a place.
    const DESTINATION_WIDTH: usize;

    /// The lines of a block in the source, one at least.
    const SOURCE_LINES: usize = {
        let lines = Self::ROWS * Self::COLUMNS * Self::WIDTH / LINE;
        if lines > 0 { lines } else { 1 }
    };

    type Vector: Vector;

    /// What does a part of it whose rows and columns are at strides.
    type AtStrides: BlockAtStrides;

    /// Where it is on its way.
    type Scratch;
    fn scratch() -> Self::Scratch;

    /// Transposes one, and fetches a line `ahead` before each line that is written.
    ///
    /// # Safety
    ///
    /// There are `ROWS` and `COLUMNS`. In each row as many elements can be read, in
    /// each column written, for `stream` whole lines from an aligned start. The CPU has
    /// the instructions.
    unsafe fn transpose<R: Starts, L: Lines>(
        rows: R,
        columns: &[usize],
        source: *const u8,
        destination: *mut u8,
        stream: bool,
        ahead: L,
        scratch: &mut Self::Scratch,
    );
}

/// A block of whole lines that are streamed.
pub(super) trait StreamedBlock: Block {
    /// Where the rows or columns of such a panel begin.
    type Table: AsMut<[usize]>;
    fn table() -> Self::Table;

    /// The same by ordinary stores: the rows and columns of this one are whole blocks of it.
    type Parts: Block<Vector = Self::Vector>;
}

/// Transposes a panel with ordinary stores.
///
/// # Safety
///
/// As [`transpose_panel`], with nothing to fetch.
#[inline(always)]
pub(super) unsafe fn transpose_panel_to_caches<B: Block>(
    rows: &[usize],
    columns: &[usize],
    order: Order,
    scratch: &mut B::Scratch,
    source: *const u8,
    destination: *mut u8,
) {
    // SAFETY: the same contract.
    unsafe {
        transpose_panel::<B, _, _>(rows, columns, order, &mut (), scratch, source, destination);
    };
}

/// Transposes a panel: rows that begin at `rows` in the source, columns that begin
/// at `columns` in the destination.
///
/// # Safety
///
/// There are at least as many of each as a block has. In each row as many elements as
/// there are columns can be read, in each column as many as there are rows be written. Where
/// it is streamed, columns begin where lines do. The
/// CPU has the vectors of `B`.
#[inline(always)]
pub(super) unsafe fn transpose_panel<B: Block, R: Starts, A: FetchesAhead>(
    rows: R,
    columns: &[usize],
    order: Order,
    ahead: &mut A,
    scratch: &mut B::Scratch,
    source: *const u8,
    destination: *mut u8,
) {
    let size = (B::ROWS, B::COLUMNS);
    // The last rows may begin within a line, to end where the others do.
    let stream = A::IS_PAST_THE_CACHES && destination.addr().is_multiple_of(LINE);
    for (row, column) in Blocks::new((rows.count(), columns.len()), size, order) {
        let from = source.wrapping_add(column * B::WIDTH);
        let to = destination.wrapping_add(row * B::DESTINATION_WIDTH);
        let lines = ahead.fetch::<B>();
        let (rows, columns) = (rows.part(row, B::ROWS), &columns[column..column + B::COLUMNS]);
        let stream = stream && row.is_multiple_of(B::ROWS);
        // SAFETY: so many rows and columns of the panel; whole lines from an aligned
        // start, where it is to be streamed.
        unsafe { B::transpose(rows, columns, from, to, stream, lines, scratch) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_a_panel_in_every_order() {
        let (height, width) = (4, 3);
        for order in [Order::ByRows, Order::ByColumns, Order::Shuffled] {
            for (rows, columns) in [(4, 3), (5, 4), (64, 48), (63, 30), (17, 47)] {
                let mut visits = vec![vec![0; columns]; rows];
                let mut starts = Vec::new();
                for (row, column) in Blocks::new((rows, columns), (height, width), order) {
                    starts.push((row, column));
                    for row in &mut visits[row..row + height] {
                        row[column..column + width].iter_mut().for_each(|n| *n += 1);
                    }
                }
                assert_eq!(starts.len(), rows.div_ceil(height) * columns.div_ceil(width));
                assert!(visits.iter().flatten().all(|&n| n > 0), "{rows} x {columns}");
                let (row, column) = (rows / height * height, columns / width * width);
                assert!(visits[..row.min(rows - height)].iter().all(|r| r[0] == 1));
                assert!(visits[0][..column.min(columns - width)].iter().all(|&n| n == 1));
            }
        }
    }

    #[test]
    fn the_side_that_shares_sets_of_l1_decides_on_the_order() {
        use crate::{portable, turn};
        type Short = turn::Vectors<portable::V, turn::Whole, 4, 32, 4, 1, 32>;
        // Rows so far apart; columns, so many of which come at a step. By columns, and without order, with vectors of a line
        // and with shorter ones.
        let of = |row_stride, column_stride, in_tile, step| {
            let strip = Strip { row_stride, column_stride, is_shuffled: true, ..Strip::default() };
            let column = Split::at_stride(column_stride).in_blocks(in_tile, step);
            let row = Split::at_stride(row_stride);
            let matrix = Matrix { rows: 128, columns: 160, row, column, others: strip };
            let short = (matrix.goes_by_columns::<Short>(), matrix.is_shuffled::<Short>());
            #[cfg(target_arch = "x86_64")]
            {
                type Long = turn::Vectors<crate::x86::avx512::V, turn::Whole, 16, 32, 4, 1, 32>;
                let long = (matrix.goes_by_columns::<Long>(), matrix.is_shuffled::<Long>());
                (long, short)
            }
            #[cfg(not(target_arch = "x86_64"))]
            ((short.0, false), short)
        };
        let by = |long, short| ((long, false), (short, false));
        if cfg!(not(target_arch = "x86_64")) {
            println!("skipped: vectors of a line, which this CPU has not");
            return;
        }
        // Tiles of two and four columns, of rows that are farther apart than these and not crowded.
        assert_eq!(of(640, 512, 2, 8192), by(true, false));
        assert_eq!(of(640, 512, 4, 8192), by(true, false));
        // Eight of them have room: what is farther apart decides.
        assert_eq!(of(640, 512, 8, 16384), by(false, false));
        assert_eq!(of(500, 512, 8, 16384), by(true, true));
        // Rows that are crowded more, though columns are farther apart.
        assert_eq!(of(2048, 4000, usize::MAX, 0), by(false, false));
        // Both about as much.
        assert_eq!(of(1024, 1024, usize::MAX, 0).0, (false, true));
        assert_eq!(of(4096, 2048, usize::MAX, 0).0, (false, true));
        assert_eq!(of(1024, 4096, usize::MAX, 0).0, (true, false));
    }

    #[test]
    fn lines_are_fetched_one_by_one_where_what_is_beside_them_is_lost() {
        use crate::cpu::Core;
        use crate::{portable, turn};
        type Words = turn::Lines<portable::V, turn::Whole, 4, 32, 4, 1, 32>;
        // Rows so far apart, so many of them; columns so far apart.
        let strip = |row_stride, rows, column_stride| Strip {
            lines: 1,
            blocks: 1,
            rows,
            row_stride,
            columns: 1000,
            column_stride,
            is_far: true,
            core: Core::Zen5,
            ..Strip::default()
        };
        let of = |strip: &Strip| {
            let matrix = Matrix::new(strip, 4, 1);
            (matrix.fetches_line_by_line::<Words>(), matrix.streamed_panel::<Words>().rows)
        };
        assert_eq!(of(&strip(16 << 10, 128, 512)), (true, 32));
        assert_eq!(of(&strip(12 << 10, 1000, 512)), (true, 32));
        // Rows for all of which there is room in L2, or that are spread in L1; and such as are too far apart.
        for (stride, rows) in [(12 << 10, 128), (8 << 10, 128), (16_000, 5000), (512 << 10, 512)] {
            assert!(!of(&strip(stride, rows, 512)).0, "{rows} rows {stride} apart");
        }
        // Halves of pairs of lines are written.
        assert!(!of(&strip(16 << 10, 128, 64 * 77)).0);
        // Few columns, of which panels have more rows, and others of those are fetched.
        let few = Strip { columns: 64, ..strip(16 << 10, 128, 512) };
        assert_eq!(of(&few), (false, 64));
        assert_eq!(of(&Strip { columns: 128, ..few }), (true, 32));
        // What comes from L3, and on other cores, is fetched otherwise.
        assert!(!of(&Strip { is_far: false, ..strip(16 << 10, 128, 512) }).0);
        for core in [Core::Zen3, Core::Zen4, Core::Intel] {
            assert!(!of(&Strip { core, ..strip(16 << 10, 128, 512) }).0, "{core:?}");
        }
    }
}
