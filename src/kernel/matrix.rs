//! The way through a matrix whose rows become columns: panels of blocks, in an order that
//! suits the caches. docs/performance.md has what was tried.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::mem::MaybeUninit;

use super::carry::{CacheLines, Ended, copy_line, finish, line_of};
use super::crowded::Tables;
use super::scalar;
use super::vector::{LINE, PAGE, Vector};
use super::{Place, Strip, next_random};

/// A matrix to be transposed: a block of a strip; or all blocks of a line, where
/// they continue each other's columns in the destination; or all lines, where they
/// continue each other's rows in the source.
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

/// Places at a stride, in blocks that are a step apart, in bytes.
#[derive(Clone, Copy)]
pub(super) struct Split {
    pub(super) block: usize,
    pub(super) step: usize,
    pub(super) stride: usize,
}

impl Split {
    /// Whether so many of them are at one stride.
    #[inline(always)]
    fn is_even(self, count: usize) -> bool {
        self.block >= count || self.step == self.block.wrapping_mul(self.stride)
    }

    /// Where number `first` and those behind it are, of which `share` at a time share a
    /// place. It is the first at its place.
    #[inline(always)]
    pub(super) fn places(self, share: usize, first: usize, places: &mut [usize]) {
        let first = first / share;
        let (mut block, mut within) = (first / self.block, first % self.block);
        let mut places = places.iter_mut();
        while !places.as_slice().is_empty() {
            let start = block.wrapping_mul(self.step);
            let start = start.wrapping_add(within.wrapping_mul(self.stride));
            let in_block = (self.block - within).saturating_mul(share);
            for (number, place) in places.by_ref().take(in_block).enumerate() {
                *place = start.wrapping_add((number / share).wrapping_mul(self.stride));
            }
            (block, within) = (block + 1, 0);
        }
    }
}

/// How many rows and columns of a matrix are transposed before the next ones, block by
/// block in a regular order: few enough for the caches to hold, and runs long enough for
/// memory. On both sides of a block, single vectors are far from each other, and whole
/// lines of cache.
const PANEL_ROWS: usize = 128;
const PANEL_COLUMNS: usize = 64;

/// The rows and columns of what is transposed before the next ones are.
#[derive(Clone, Copy)]
struct Panel {
    rows: usize,
    columns: usize,
}

/// Of what is written past the caches: the lines of a panel beside each other in the source,
/// in each row, and below each other in the destination, in each column. Where rows have
/// fewer, there are up to twice as many of these.
pub(super) const LINES_ALONG: usize = 16;
const LINES_DOWN: usize = 2;

/// The same where the source is in the farther cache, which has the rows of a larger panel
/// where the second one has no room for them.
const LINES_DOWN_NEAR: usize = 4;

/// The rows that are fetched while a panel is transposed come as many behind its own as it
/// has, and at least so many.
const ROWS_AHEAD: usize = 32;

/// Where prefetchers follow rows, no more than this are gone along at a time, as they follow no more
/// pages.
const ROWS_FOLLOWED: usize = 32;

/// Of a page of which less than so much belongs to a panel, nothing is gained by going to another one
/// before all of it has been fetched.
const BYTES_BY_TURNS: usize = 1024;

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
    /// Of a block, in rows and in columns.
    size: usize,
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
    fn new(rows: usize, columns: usize, size: usize, order: Order) -> Blocks {
        Blocks { rows, columns, size, order, row: 0, column: 0, shuffled: SHUFFLED.iter() }
    }

    /// Where the block at a row and a column begins, the last ones ending where the
    /// panel does.
    #[inline(always)]
    fn at(&self, row: usize, column: usize) -> (usize, usize) {
        (row.min(self.rows - self.size), column.min(self.columns - self.size))
    }
}

impl Iterator for Blocks {
    type Item = (usize, usize);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, usize)> {
        if self.order == Order::Shuffled {
            // There are `GRID` of each at most.
            for &number in self.shuffled.by_ref() {
                let (row, column) = (number / GRID * self.size, number % GRID * self.size);
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
            self.column += self.size;
            if self.column >= self.columns {
                (self.row, self.column) = (self.row + self.size, 0);
            }
        } else {
            self.row += self.size;
            if self.row >= self.rows {
                (self.row, self.column) = (0, self.column + self.size);
            }
        }
        Some(at)
    }
}

impl Matrix {
    #[inline(always)]
    pub(super) fn new<const WIDTH: usize, const WAYS: usize>(strip: &Strip) -> Matrix {
        let (mut rows, mut columns) = (strip.rows, strip.columns);
        let mut others = *strip;
        let row = Split { block: rows, step: strip.source_step, stride: strip.row_stride };
        let column = Split {
            block: columns / WAYS,
            step: strip.destination_line,
            stride: strip.column_stride,
        };
        if strip.blocks_join(WIDTH * WAYS) {
            rows *= strip.blocks;
            others.blocks = 1;
        }
        if strip.lines_join(WIDTH) {
            columns *= strip.lines;
            others.lines = 1;
        }
        Matrix { rows, columns, row, column, others }
    }

    /// The blocks of a strip, each a matrix of its own.
    #[inline(always)]
    pub(super) fn of_blocks(strip: &Strip) -> Matrix {
        let (rows, columns) = (strip.rows, strip.columns);
        let row = Split { block: rows, step: 0, stride: strip.row_stride };
        let column = Split { block: columns, step: 0, stride: strip.column_stride };
        Matrix { rows, columns, row, column, others: *strip }
    }

    /// Whether rows and columns are at one stride each.
    #[inline(always)]
    pub(super) fn is_even(&self) -> bool {
        self.row.is_even(self.rows) && self.column.is_even(self.columns)
    }

    /// Transposes each matrix of the strip, a block at a time.
    ///
    /// # Safety
    ///
    /// The strip begins at these places, and each matrix has at least as many rows
    /// and columns as a block. The CPU has the vectors of `B`.
    #[inline(always)]
    pub(super) unsafe fn transpose_all<B: Block>(&self, source: *const u8, destination: *mut u8) {
        let mut scratch = B::scratch();
        if self.is_crowded::<B>() {
            let (mut memory, mut tables) = (MaybeUninit::uninit(), Tables::new());
            for (source, destination) in scalar::blocks(&self.others, source, destination) {
                let memory = memory.as_mut_ptr();
                // SAFETY: one of the matrices.
                unsafe {
                    self.transpose_crowded::<B>(
                        source,
                        destination,
                        &mut tables,
                        memory,
                        &mut scratch,
                    );
                };
            }
            return;
        }
        let mut tables = [[0; GRID * MAX_LANES]; 2];
        for (source, destination) in scalar::blocks(&self.others, source, destination) {
            // SAFETY: one of the matrices.
            unsafe { self.transpose::<B>(source, destination, &mut tables, &mut scratch) };
        }
    }

    /// The same past the caches.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    pub(super) unsafe fn stream_all<B: StreamedBlock>(
        &self,
        source: *const u8,
        destination: *mut u8,
    ) {
        let mut scratch = B::scratch();
        let mut tables = [B::table(), B::table()];
        let matrices = scalar::blocks(&self.others, source, destination);
        if self.has_whole_lines(destination) {
            if self.others.is_followed && B::SIZE <= ROWS_FOLLOWED {
                // SAFETY: by the contract of this function.
                return unsafe {
                    self.stream_along::<B>(source, destination, &mut tables, &mut scratch)
                };
            }
            let panel = self.streamed_panel::<B>();
            let mut ahead = RowsAhead::new::<B>(self, panel, panel.rows, source);
            for (from, to) in matrices {
                // SAFETY: one of the matrices.
                unsafe {
                    self.stream::<B>(from, to, panel, &mut ahead, &mut tables, &mut scratch);
                };
            }
            return;
        }
        let (mut memory, mut first_lines) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let made = Made::new::<B>(&mut memory, &mut first_lines);
        // The last panel has that many rows at most.
        let rows = made.panel.rows + B::SIZE - 1;
        let mut ahead = RowsAhead::new::<B>(self, made.panel, rows, source);
        for (from, to) in matrices {
            // SAFETY: one of the matrices.
            unsafe {
                self.stream_carrying::<B>(from, to, &made, &mut ahead, &mut tables, &mut scratch);
            };
        }
    }

    /// What is transposed at a time of what is written past the caches.
    #[inline(always)]
    fn streamed_panel<B: StreamedBlock>(&self) -> Panel {
        let lines = if self.others.is_near { LINES_DOWN_NEAR } else { LINES_DOWN };
        let along = LINES_ALONG.min(self.columns.div_ceil(B::SIZE));
        let down = (LINES_ALONG * lines / along).min(2 * lines);
        Panel { rows: down.min(self.rows.div_ceil(B::SIZE)) * B::SIZE, columns: along * B::SIZE }
    }

    /// Transposes a matrix whose lines are written past the caches: panels below each
    /// other first, and in each of them the lines of the same column, so that memory gets
    /// some that lie beside each other. Meanwhile rows `ahead` are fetched.
    ///
    /// # Safety
    ///
    /// The matrix is at these places, and has at least as many rows and columns as a
    /// block. The CPU has the vectors of `B`.
    #[inline(always)]
    unsafe fn stream<B: StreamedBlock>(
        &self,
        source: *const u8,
        destination: *mut u8,
        panel: Panel,
        ahead: &mut RowsAhead<'_>,
        tables: &mut [B::Table; 2],
        scratch: &mut B::Scratch,
    ) {
        let [rows, columns] = tables.each_mut().map(AsMut::as_mut);
        let mut next_column = 0;
        while next_column < self.columns {
            // What is left at the end is done by blocks that end there.
            let first_column = next_column.min(self.columns - B::SIZE);
            let columns = &mut columns[..panel.columns.min(self.columns - first_column)];
            self.column.places(B::WAYS, first_column, columns);
            next_column = first_column + columns.len();
            let mut next_row = 0;
            while next_row < self.rows {
                let first_row = next_row.min(self.rows - B::SIZE);
                let rows = &mut rows[..panel.rows.min(self.rows - first_row)];
                self.row.places(1, first_row, rows);
                let end_row = first_row + rows.len();
                let blocks = rows.len().div_ceil(B::SIZE) * columns.len().div_ceil(B::SIZE);
                ahead.start(end_row - next_row, blocks);
                next_row = end_row;
                let source = source.wrapping_add(first_column * B::WIDTH);
                let destination = destination.wrapping_add(first_row * B::WIDTH * B::WAYS);
                // SAFETY: some rows and columns of the matrix, at least as many as a
                // block has.
                unsafe {
                    transpose_panel::<B, _>(
                        rows,
                        columns,
                        Order::ByColumns,
                        Some(ahead),
                        scratch,
                        source,
                        destination,
                    );
                };
                ahead.finish::<B::Vector>();
            }
        }
    }

    /// Transposes all matrices of the strip, whose lines are written past the caches, where
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
            panel.rows = panel.rows.min(ROWS_FOLLOWED);
        }
        // The matrices whose rows come before the next ones of this one.
        let one = Strip { lines: 1, blocks: 1, ..self.others };
        let (outer, beside) = if self.others.blocks == 1 && self.others.source_line <= PAGE {
            (one, self.others)
        } else {
            (self.others, one)
        };
        // The panels of the same rows.
        let across = self.columns.div_ceil(panel.columns);
        let in_rows = beside.lines * across;
        let mut pages = PagesAhead::new();
        let first_column =
            |number: usize| (number % across * panel.columns).min(self.columns - B::SIZE);
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
                let first_row = next_row.min(self.rows - B::SIZE);
                let rows = &mut rows[..panel.rows.min(self.rows - first_row)];
                self.row.places(1, first_row, rows);
                next_row = first_row + rows.len();
                let destination = destination.wrapping_add(first_row * B::WIDTH * B::WAYS);
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
                        let blocks = rows.len().div_ceil(B::SIZE) * columns.len().div_ceil(B::SIZE);
                        pages.set_out(next, blocks);
                    }
                    // SAFETY: some rows and columns of the matrix, at least as many as a
                    // block has.
                    unsafe {
                        transpose_panel::<B, _>(
                            rows,
                            columns,
                            Order::ByColumns,
                            Some(&mut pages),
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
    fn has_whole_lines(&self, destination: *mut u8) -> bool {
        let Strip { lines, blocks, .. } = self.others;
        let line = if lines > 1 { self.others.destination_line } else { 0 };
        let block = if blocks > 1 { self.others.destination_step } else { 0 };
        let steps = self.column.step | self.column.stride | line | block;
        (destination.addr() | steps).is_multiple_of(LINE)
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
        let width = B::WIDTH * B::WAYS;
        let &Made { panel, pitch, .. } = made;
        let most_places = panel.columns.min(self.columns) / B::WAYS;
        // SAFETY: the memory of so many columns, for which there is room.
        unsafe { scalar::fill(made.memory, 0, most_places * pitch) };

        let [rows, columns] = tables.each_mut().map(AsMut::as_mut);
        let mut places = [0; Made::COLUMNS];
        let mut next_column = 0;
        while next_column < self.columns {
            let first_column = next_column.min(self.columns - B::SIZE);
            let count = panel.columns.min(self.columns - first_column);
            next_column = first_column + count;
            let columns = &mut columns[..count];
            self.column.places(B::WAYS, first_column, columns);
            let places = &mut places[..count / B::WAYS];
            for (place, &column) in places.iter_mut().zip(columns.iter().step_by(B::WAYS)) {
                *place = column;
            }
            // Each column in memory is as far from the beginning of a line as where it belongs.
            let start = |i: usize, place: usize| {
                made.memory.wrapping_add(i * pitch + destination.wrapping_add(place).addr() % LINE)
            };
            for (i, column) in columns.iter_mut().enumerate() {
                *column = start(i / B::WAYS, *column).addr() - made.memory.addr();
            }
            let source = source.wrapping_add(first_column * B::WIDTH);
            let mut first_row = 0;
            while first_row < self.rows {
                let left = self.rows - first_row;
                // The last panel takes what is too little for one of its own.
                let row_count = if left < panel.rows + B::SIZE { left } else { panel.rows };
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
                ahead.start(row_count, places.len() * bytes / LINE);
                let to = destination.wrapping_add(first_row * width);
                for (i, &place) in places.iter().enumerate() {
                    let first = line_of(start(i, place));
                    let to = to.wrapping_add(place);
                    let whole = (to.addr() % LINE + bytes) / LINE * LINE;
                    let mut at = 0;
                    if first_row == 0 {
                        // SAFETY: the line in which the column begins.
                        unsafe { copy_line::<B::Vector, false>(first, made.first_line(i)) };
                        at = if to.addr().is_multiple_of(LINE) { 0 } else { LINE };
                    }
                    while at < whole {
                        ahead.fetch::<B::Vector>();
                        let (from, to) = (first.wrapping_add(at), line_of(to).wrapping_add(at));
                        // SAFETY: a line of which all was made, to where it belongs.
                        unsafe { copy_line::<B::Vector, true>(from, to) };
                        at += LINE;
                    }
                    // SAFETY: the line in which the rows of this panel end, to where the
                    // next ones go on with it.
                    unsafe { copy_line::<B::Vector, false>(first.wrapping_add(whole), first) };
                }
                ahead.finish::<B::Vector>();
                first_row += row_count;
            }
            let ended = places.iter().enumerate().map(|(i, &place)| Ended {
                to: destination.wrapping_add(place),
                bytes: self.rows * width,
                first_line: made.first_line(i),
                last_line: line_of(start(i, place)),
            });
            // SAFETY: the columns of these panels.
            unsafe { finish::<B::Vector>(ended) };
        }
    }

    /// Transposes a matrix with ordinary stores.
    ///
    /// # Safety
    ///
    /// The matrix is at these places, and has at least as many rows and columns as a
    /// block. The CPU has the vectors of `B`.
    #[inline(always)]
    unsafe fn transpose<B: Block>(
        &self,
        source: *const u8,
        destination: *mut u8,
        [rows, columns]: &mut [[usize; GRID * MAX_LANES]; 2],
        scratch: &mut B::Scratch,
    ) {
        // Short parts of lines had better be visited one soon after the other.
        let is_shuffled = self.others.is_shuffled && B::SIZE * B::WIDTH * 2 >= LINE;
        let (panel_rows, panel_columns) = if is_shuffled {
            (GRID * MAX_LANES.min(B::SIZE), GRID * MAX_LANES.min(B::SIZE))
        } else {
            (PANEL_ROWS, PANEL_COLUMNS)
        };
        let mut next_row = 0;
        while next_row < self.rows {
            // What is left at the end is done by blocks that end there.
            let first_row = next_row.min(self.rows - B::SIZE);
            let rows = &mut rows[..panel_rows.min(self.rows - first_row)];
            self.row.places(1, first_row, rows);
            let mut next_column = 0;
            while next_column < self.columns {
                let first_column = next_column.min(self.columns - B::SIZE);
                let columns = &mut columns[..panel_columns.min(self.columns - first_column)];
                self.column.places(B::WAYS, first_column, columns);
                let (rows, columns) = (&*rows, &*columns);
                let is_large = rows.len() * columns.len() * B::WIDTH >= SHUFFLED_BYTES;
                let order = if is_shuffled && is_large {
                    Order::Shuffled
                } else if self.others.goes_by_columns() {
                    Order::ByColumns
                } else {
                    Order::ByRows
                };
                let source = source.wrapping_add(first_column * B::WIDTH);
                let destination = destination.wrapping_add(first_row * B::WIDTH * B::WAYS);
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
        let width = B::WIDTH * B::WAYS;
        let rows = (LINES_DOWN * LINE / width / B::SIZE).max(1) * B::SIZE;
        // The last panel takes what is too little for one of its own. Before a column there
        // is what was carried, and as much as it is away from the beginning of a line.
        let pitch = (rows + B::SIZE) * width + 2 * LINE;
        let fits = (Made::BYTES / pitch).min(Made::COLUMNS) / B::SIZE * B::SIZE;
        let panel = Panel { rows, columns: (fits * B::WAYS).min(LINES_ALONG * B::SIZE) };
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

/// What is transposed at a time: so many rows and columns of elements of so many bytes,
/// `WAYS` of which share a place in the destination.
pub(super) trait Block {
    const SIZE: usize;
    const WIDTH: usize;
    const WAYS: usize;

    type Vector: Vector;

    /// Where it is on its way.
    type Scratch;
    fn scratch() -> Self::Scratch;

    /// Transposes one.
    ///
    /// # Safety
    ///
    /// There are `SIZE` rows and columns. In each row as many elements can be read, in
    /// each column written, for `stream` whole lines from an aligned start. The CPU has
    /// the instructions.
    unsafe fn transpose(
        rows: &[usize],
        columns: &[usize],
        source: *const u8,
        destination: *mut u8,
        stream: bool,
        scratch: &mut Self::Scratch,
    );
}

/// Rows that come later on the way through the panels of the matrices of a strip, which
/// goes on to those of the next one. All this is hints.
struct RowsAhead<'a> {
    matrix: &'a Matrix,
    /// Of the strip.
    source: *const u8,
    /// Which of its matrices it is.
    line: usize,
    block: usize,
    /// Of a panel and of a matrix, in bytes of a row.
    panel_bytes: usize,
    matrix_bytes: usize,
    /// The panel: where its columns begin, in bytes of a row, and so many of them; and where
    /// that is.
    first_byte: usize,
    bytes: usize,
    panel: *const u8,
    /// Which row of the matrix it is, and which of its block of rows; where that begins, and
    /// the row.
    row: usize,
    row_of_block: usize,
    block_start: usize,
    row_start: usize,
    /// Of the row: which line is to be fetched next, and of how many.
    at: *const u8,
    lines_left: usize,
    /// The rows that are to be fetched before the next panel, and so many lines at a time.
    due: usize,
    pace: usize,
}

impl<'a> RowsAhead<'a> {
    /// Begins so many rows, at least, behind the first one.
    #[inline(always)]
    fn new<B: Block>(matrix: &'a Matrix, panel: Panel, rows: usize, source: *const u8) -> Self {
        let panel_bytes = panel.columns * B::WIDTH;
        let matrix_bytes = matrix.columns * B::WIDTH;
        let mut ahead = Self {
            matrix,
            source,
            line: 0,
            block: 0,
            panel_bytes,
            matrix_bytes,
            first_byte: 0,
            bytes: panel_bytes.min(matrix_bytes),
            panel: source,
            row: 0,
            row_of_block: 0,
            block_start: 0,
            row_start: 0,
            at: source,
            lines_left: 0,
            due: 0,
            pace: 0,
        };
        for _ in 0..rows.max(ROWS_AHEAD) {
            ahead.next_row();
        }
        ahead
    }

    #[inline(always)]
    fn next_row(&mut self) {
        self.row += 1;
        self.row_of_block += 1;
        self.row_start = self.row_start.wrapping_add(self.matrix.row.stride);
        if self.row == self.matrix.rows {
            self.next_panel();
        } else if self.row_of_block == self.matrix.row.block {
            self.row_of_block = 0;
            self.block_start = self.block_start.wrapping_add(self.matrix.row.step);
            self.row_start = self.block_start;
        }
        let start = self.panel.wrapping_add(self.row_start);
        self.at = start;
        self.lines_left = (start.addr() % LINE + self.bytes).div_ceil(LINE);
    }

    #[inline(always)]
    fn next_panel(&mut self) {
        (self.row, self.row_of_block, self.block_start, self.row_start) = (0, 0, 0, 0);
        self.first_byte += self.panel_bytes;
        if self.first_byte >= self.matrix_bytes {
            self.first_byte = 0;
            self.next_matrix();
        }
        self.bytes = self.panel_bytes.min(self.matrix_bytes - self.first_byte);
        let Place { source, .. } = self.matrix.others.place(self.line, self.block);
        self.panel = self.source.wrapping_add(source.wrapping_add(self.first_byte));
    }

    #[inline(always)]
    fn next_matrix(&mut self) {
        let Strip { lines, blocks, next, .. } = self.matrix.others;
        self.block += 1;
        if self.block == blocks {
            (self.line, self.block) = (self.line + 1, 0);
        }
        if self.line == lines {
            (self.line, self.source) = (0, self.source.wrapping_add(next));
        }
    }

    /// Sets out to fetch so many rows in so many steps. Prefetchers do that themselves where
    /// each row is a line, or less, and the next one follows.
    #[inline(always)]
    fn start(&mut self, rows: usize, steps: usize) {
        let Split { block, step, stride } = self.matrix.row;
        let follow = block >= self.matrix.rows || step == block.wrapping_mul(stride);
        self.due = if stride <= LINE && follow { 0 } else { rows };
        self.pace = (rows * self.lines_left).div_ceil(steps.max(1));
    }

    /// Fetches what has not been yet.
    #[inline(always)]
    fn finish<V: Vector>(&mut self) {
        while self.due > 0 {
            self.fetch_line::<V>();
        }
    }

    #[inline(always)]
    fn fetch_line<V: Vector>(&mut self) {
        let Strip { is_far, is_near, is_followed, .. } = self.matrix.others;
        if is_near {
            V::prefetch::<1>(self.at);
        } else {
            V::prefetch::<2>(self.at);
        }
        if is_far && !is_followed {
            // Not all that is asked of memory is taken at once.
            V::prefetch::<2>(self.at);
        }
        self.at = self.at.wrapping_add(LINE);
        self.lines_left -= 1;
        if self.lines_left == 0 {
            self.due -= 1;
            self.next_row();
        }
    }
}

impl FetchesAhead for RowsAhead<'_> {
    #[inline(always)]
    fn fetch<V: Vector>(&mut self) {
        for _ in 0..self.pace {
            if self.due == 0 {
                return;
            }
            self.fetch_line::<V>();
        }
    }
}

/// What is fetched while a panel is transposed.
trait FetchesAhead {
    /// A step, which comes before each block of the panel.
    fn fetch<V: Vector>(&mut self);
}

/// The rows of the panel that comes next, of which those in different pages are fetched by turns: of
/// each page one line after the other, so that the prefetchers follow all of them. All this is hints.
struct PagesAhead {
    /// Where they begin from where the panel does.
    rows: [usize; 2 * LINES_DOWN * LINE],
    count: usize,
    /// So many of them are in a page.
    in_page: usize,
    /// Where the panel begins, and the lines of each of its rows.
    start: *const u8,
    lines: usize,
    /// Which row of its page comes next, which row that is, and which line of it.
    row_in_page: usize,
    row: usize,
    line: usize,
    /// So many lines at a time.
    pace: usize,
}

impl PagesAhead {
    #[inline(always)]
    fn new() -> Self {
        Self {
            rows: [0; 2 * LINES_DOWN * LINE],
            count: 0,
            in_page: 0,
            start: std::ptr::null(),
            lines: 0,
            row_in_page: 0,
            row: 0,
            line: 0,
            pace: 0,
        }
    }

    /// The rows of a panel that begins at this one, or where the last block does: so many of them,
    /// if there are.
    #[inline(always)]
    fn take_rows<B: Block>(&mut self, matrix: &Matrix, row: usize, most: usize) {
        let first = row.min(matrix.rows - B::SIZE);
        self.count = most.min(matrix.rows - first).min(self.rows.len());
        matrix.row.places(1, first, &mut self.rows[..self.count]);
        let Split { block, stride, .. } = matrix.row;
        let in_page = PAGE.checked_div(stride).unwrap_or(PAGE).min(block).clamp(1, self.count);
        let is_worth_it = in_page * matrix.columns * B::WIDTH >= BYTES_BY_TURNS;
        self.in_page = if is_worth_it { in_page } else { self.count };
    }

    /// Sets out to fetch the panel of these rows that begins there, and has so many bytes of each,
    /// in so many steps.
    #[inline(always)]
    fn set_out(&mut self, (start, bytes): (*const u8, usize), steps: usize) {
        self.start = start;
        self.lines = (start.addr() % LINE + bytes).div_ceil(LINE);
        (self.row_in_page, self.row, self.line) = (0, 0, 0);
        self.pace = (self.count * self.lines).div_ceil(steps.max(1));
    }

    /// The next line, if there is one.
    #[inline(always)]
    fn next(&mut self) -> Option<*const u8> {
        let row = *self.rows[..self.count].get(self.row)?;
        let at = self.start.wrapping_add(row.wrapping_add(self.line * LINE));
        self.row += self.in_page;
        if self.row >= self.count {
            self.line += 1;
            if self.line == self.lines {
                (self.line, self.row_in_page) = (0, self.row_in_page + 1);
            }
            let is_left = self.row_in_page < self.in_page;
            self.row = if is_left { self.row_in_page } else { self.count };
        }
        Some(at)
    }
}

impl FetchesAhead for PagesAhead {
    #[inline(always)]
    fn fetch<V: Vector>(&mut self) {
        for _ in 0..self.pace {
            let Some(at) = self.next() else { return };
            V::prefetch::<2>(at);
        }
    }
}

/// A block of whole lines that are written past the caches.
pub(super) trait StreamedBlock: Block {
    /// Where the rows or columns of such a panel begin.
    type Table: AsMut<[usize]>;
    fn table() -> Self::Table;
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
        transpose_panel::<B, RowsAhead<'_>>(
            rows,
            columns,
            order,
            None,
            scratch,
            source,
            destination,
        );
    };
}

/// Transposes a panel: rows that begin at `rows` in the source, columns that begin
/// at `columns` in the destination.
///
/// # Safety
///
/// There are at least as many of each as a block has. In each row as many elements as
/// there are columns can be read, in each column as many as there are rows be written. With
/// something to fetch `ahead`, which is past the caches, columns begin where lines do. The
/// CPU has the vectors of `B`.
#[inline(always)]
unsafe fn transpose_panel<B: Block, A: FetchesAhead>(
    rows: &[usize],
    columns: &[usize],
    order: Order,
    mut ahead: Option<&mut A>,
    scratch: &mut B::Scratch,
    source: *const u8,
    destination: *mut u8,
) {
    let size = B::SIZE;
    // The last rows may begin within a line, to end where the others do.
    let stream = ahead.is_some() && destination.addr().is_multiple_of(LINE);
    for (row, column) in Blocks::new(rows.len(), columns.len(), size, order) {
        let from = source.wrapping_add(column * B::WIDTH);
        let to = destination.wrapping_add(row * B::WIDTH * B::WAYS);
        if let Some(ahead) = &mut ahead {
            ahead.fetch::<B::Vector>();
        }
        let (rows, columns) = (&rows[row..row + size], &columns[column..column + size]);
        let stream = stream && row.is_multiple_of(size);
        // SAFETY: so many rows and columns of the panel; whole lines from an aligned
        // start, where it is to be streamed.
        unsafe { B::transpose(rows, columns, from, to, stream, scratch) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_a_panel_in_every_order() {
        let size = 4;
        for order in [Order::ByRows, Order::ByColumns, Order::Shuffled] {
            for (rows, columns) in [(4, 4), (5, 4), (64, 64), (63, 30), (17, 62)] {
                let mut visits = vec![vec![0; columns]; rows];
                let mut starts = Vec::new();
                for (row, column) in Blocks::new(rows, columns, size, order) {
                    starts.push((row, column));
                    for row in &mut visits[row..row + size] {
                        row[column..column + size].iter_mut().for_each(|n| *n += 1);
                    }
                }
                assert_eq!(starts.len(), rows.div_ceil(size) * columns.div_ceil(size));
                assert!(visits.iter().flatten().all(|&n| n > 0), "{rows} x {columns}");
                let (row, column) = (rows / size * size, columns / size * size);
                assert!(visits[..row.min(rows - size)].iter().all(|r| r[0] == 1));
                assert!(visits[0][..column.min(columns - size)].iter().all(|&n| n == 1));
            }
        }
    }

    #[test]
    fn rows_ahead_go_on_from_panel_to_matrix_to_strip() {
        type Words = crate::kernel::turn::Vectors<crate::kernel::portable::V, 4, 32, 4, 1, 32>;
        let strip = Strip {
            lines: 2,
            source_line: 100_000,
            blocks: 3,
            source_step: 10_000,
            rows: 5,
            row_stride: 1000,
            columns: 20,
            next: 1_000_000,
            ..Strip::default()
        };
        let matrix = Matrix::new::<4, 1>(&strip);
        assert_eq!((matrix.rows, matrix.columns), (5, 20));
        let panel = Panel { rows: 4, columns: 16 };
        let mut starts = Vec::new();
        for (strip, line, block) in
            (0..2).flat_map(|s| (0..2).flat_map(move |l| (0..3).map(move |b| (s, l, b))))
        {
            for (byte, row) in [0, 64].into_iter().flat_map(|p| (0..5).map(move |r| (p, r))) {
                let matrix = strip * 1_000_000 + line * 100_000 + block * 10_000;
                starts.push((matrix + byte + row * 1000, if byte == 0 { 64 } else { 16 }));
            }
        }
        for rows in [1, 40] {
            let mut ahead = RowsAhead::new::<Words>(&matrix, panel, rows, std::ptr::null());
            for &(start, bytes) in &starts[rows.max(ROWS_AHEAD)..] {
                assert_eq!(ahead.at.addr(), start);
                assert_eq!(ahead.lines_left, (start % LINE + bytes).div_ceil(LINE));
                ahead.next_row();
            }
        }
    }

    #[test]
    fn pages_ahead_go_by_turns_line_by_line() {
        type Words = crate::kernel::turn::Vectors<crate::kernel::portable::V, 4, 32, 4, 1, 32>;
        // Blocks of 8 rows of 512 bytes, a page each; of 4 rows of 128 bytes, too little of a page.
        for (block, columns, by_turns) in [(8, 128, true), (4, 32, false)] {
            let (stride, step) = (columns * 4, 1 << 20);
            let strip = Strip {
                lines: 1,
                blocks: 3,
                source_step: step,
                destination_step: block * 4,
                rows: block,
                row_stride: stride,
                columns,
                column_stride: 1 << 12,
                ..Strip::default()
            };
            let matrix = Matrix::new::<4, 1>(&strip);
            assert_eq!(matrix.rows, 3 * block);
            let mut ahead = PagesAhead::new();
            ahead.take_rows::<Words>(&matrix, block, 2 * block);
            let panel = 1 << 30;
            ahead.set_out((std::ptr::without_provenance(panel), stride), 2 * block);
            let page =
                |number: usize| (0..block * stride).step_by(LINE).map(move |i| number * step + i);
            let mut expected: Vec<usize> = page(1).chain(page(2)).collect();
            if by_turns {
                expected = page(1).zip(page(2)).flat_map(|(a, b)| [a, b]).collect();
            }
            let mut fetched = Vec::new();
            while let Some(at) = ahead.next() {
                fetched.push(at.addr() - panel);
            }
            assert_eq!(fetched, expected);
            assert_eq!(ahead.pace * 2 * block, expected.len());
        }
    }

    #[test]
    fn places_go_on_from_block_to_block() {
        let split = Split { block: 3, step: 1000, stride: 10 };
        let mut places = [0; 5];
        split.places(1, 2, &mut places);
        assert_eq!(places, [20, 1000, 1010, 1020, 2000]);
        let mut places = [0; 6];
        split.places(2, 4, &mut places);
        assert_eq!(places, [20, 20, 1000, 1000, 1010, 1010]);
    }
}
