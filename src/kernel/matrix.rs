//! The way through a matrix whose rows become columns: panels of blocks, in an order that
//! suits the caches. docs/performance.md has what was tried.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::mem::MaybeUninit;

use super::carry::{CacheLines, Ended, copy_line, finish, line_of};
use super::scalar;
use super::vector::{LINE, Vector};
use super::{Strip, next_random};

/// A matrix to be transposed: a block of a strip; or all blocks of a line, where
/// they continue each other's columns in the destination; or all lines, where they
/// continue each other's rows in the source.
pub(super) struct Matrix {
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Where the rows begin in the source.
    row: Split,
    /// Where the columns begin in the destination.
    column: Split,
    /// The strip of such matrices.
    others: Strip,
}

/// Places at a stride, in blocks that are a step apart, in bytes.
#[derive(Clone, Copy)]
struct Split {
    block: usize,
    step: usize,
    stride: usize,
}

impl Split {
    /// Where number `first` and those behind it are, of which `share` at a time share a
    /// place. It is the first at its place.
    #[inline(always)]
    fn places(self, share: usize, first: usize, places: &mut [usize]) {
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

/// Of what is written past the caches: the lines of a panel, below each other in the
/// destination, in each column, and beside each other in the source, in each row.
#[derive(Clone, Copy)]
pub(super) struct Panel {
    pub(super) lines_down: usize,
    pub(super) lines_along: usize,
    /// Row by row, which memory prefers; otherwise block by block, as caches do.
    pub(super) is_fetched_by_rows: bool,
}

impl Panel {
    pub(super) const FAR: Panel =
        Panel { lines_down: 2, lines_along: 16, is_fetched_by_rows: true };

    /// The rows and columns of a panel, of a matrix of so many: as many lines, where it has
    /// fewer on one side.
    #[inline(always)]
    fn size<B: StreamedBlock>(self, rows: usize, columns: usize) -> (usize, usize) {
        let lines = self.lines_down * self.lines_along;
        let along = self.lines_along.min(columns.div_ceil(B::SIZE));
        let down = (lines / along).min(rows.div_ceil(B::SIZE));
        let most = B::MOST / B::SIZE;
        (down.min(most) * B::SIZE, (lines / down).min(most) * B::SIZE)
    }
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
enum Order {
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

    /// Transposes each matrix of the strip, a block at a time.
    ///
    /// # Safety
    ///
    /// The strip begins at these places, and each matrix has at least as many rows
    /// and columns as a block. The CPU has the vectors of `B`.
    #[inline(always)]
    pub(super) unsafe fn transpose_all<B: Block>(&self, source: *const u8, destination: *mut u8) {
        let mut scratch = B::scratch();
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
        let mut tables = [B::table(), B::table(), B::table()];
        let next_strip = source.wrapping_add(self.others.next);
        let mut matrices = scalar::blocks(&self.others, source, destination).peekable();
        if !self.has_whole_lines(destination) {
            let (mut panel, mut first_lines) = (MaybeUninit::uninit(), MaybeUninit::uninit());
            let made = Made::new(&mut panel, &mut first_lines);
            while let Some((source, to)) = matrices.next() {
                let next = matrices.peek().map_or(next_strip, |&(source, _)| source);
                // SAFETY: one of the matrices.
                unsafe {
                    self.stream_carrying::<B>(source, next, to, &mut tables, &mut scratch, &made);
                };
            }
            return;
        }
        while let Some((source, destination)) = matrices.next() {
            let next = matrices.peek().map_or(next_strip, |&(source, _)| source);
            // SAFETY: one of the matrices.
            unsafe { self.stream::<B>(source, next, destination, &mut tables, &mut scratch) };
        }
    }

    /// Transposes a matrix whose lines are written past the caches: panels below each
    /// other first, and in each of them the lines of the same column, so that memory gets
    /// some that lie beside each other. Meanwhile the next panel is fetched, whose lines
    /// lie beside each other in the source; behind the last one, that of the `next` matrix.
    ///
    /// # Safety
    ///
    /// The matrix is at these places, and has at least as many rows and columns as a
    /// block. The CPU has the vectors of `B`.
    #[inline(always)]
    unsafe fn stream<B: StreamedBlock>(
        &self,
        source: *const u8,
        next: *const u8,
        destination: *mut u8,
        tables: &mut [B::Table; 3],
        scratch: &mut B::Scratch,
    ) {
        let panel = if self.others.is_far { B::FAR } else { B::NEAR };
        let (most_rows, most_columns) = panel.size::<B>(self.rows, self.columns);
        // What is left at the end is done by blocks that end there.
        let from = |next: usize, all: usize, most: usize| {
            let first = next.min(all - B::SIZE);
            (first, most.min(all - first))
        };
        let [mut rows, mut rows_ahead, columns] = tables.each_mut().map(AsMut::as_mut);
        let (mut first_column, mut column_count) = from(0, self.columns, most_columns);
        let (mut first_row, mut row_count) = from(0, self.rows, most_rows);
        self.row.places(1, first_row, &mut rows[..row_count]);
        loop {
            let columns = &mut columns[..column_count];
            self.column.places(B::WAYS, first_column, columns);
            let end_column = first_column + column_count;
            let source_here = source.wrapping_add(first_column * B::WIDTH);
            loop {
                let end_row = first_row + row_count;
                // The panel below, or the first ones of the columns behind these.
                let is_last = end_row == self.rows;
                let (first_ahead, count_ahead) =
                    from(if is_last { 0 } else { end_row }, self.rows, most_rows);
                self.row.places(1, first_ahead, &mut rows_ahead[..count_ahead]);
                let source_ahead = match (is_last, end_column == self.columns) {
                    (false, _) => source_here,
                    (true, false) => source.wrapping_add(end_column * B::WIDTH),
                    (true, true) => next,
                };
                let ahead = PanelAhead {
                    source: source_ahead,
                    rows: &rows_ahead[..count_ahead],
                    lines: (column_count * B::WIDTH).div_ceil(LINE),
                    is_fetched_by_rows: panel.is_fetched_by_rows,
                    row: 0,
                    line: 0,
                };
                let destination = destination.wrapping_add(first_row * B::WIDTH * B::WAYS);
                // SAFETY: some rows and columns of the matrix, at least as many as a
                // block has.
                unsafe {
                    transpose_panel::<B>(
                        &rows[..row_count],
                        columns,
                        Order::ByColumns,
                        Some(ahead),
                        scratch,
                        source_here,
                        destination,
                    );
                };
                std::mem::swap(&mut rows, &mut rows_ahead);
                (first_row, row_count) = (first_ahead, count_ahead);
                if is_last {
                    break;
                }
            }
            if end_column == self.columns {
                return;
            }
            (first_column, column_count) = from(end_column, self.columns, most_columns);
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
        next: *const u8,
        destination: *mut u8,
        tables: &mut [B::Table; 3],
        scratch: &mut B::Scratch,
        made: &Made,
    ) {
        // What a row adds to each column.
        let width = B::WIDTH * B::WAYS;
        let most_rows = (Made::LINES_DOWN * LINE / width / B::SIZE).max(1) * B::SIZE;
        // The last panel takes what is too little for one of its own. Before a column there
        // is what was carried, and as much as it is away from the beginning of a line.
        let pitch = (most_rows + B::SIZE) * width + 2 * LINE;
        let fits = (Made::BYTES / pitch).min(Made::COLUMNS) / B::SIZE * B::SIZE;
        let most_columns = (fits * B::WAYS).min(B::MOST);
        // SAFETY: the memory of so many columns, for which there is room.
        unsafe { scalar::fill(made.panel, 0, fits.min(self.columns / B::WAYS) * pitch) };

        let [rows, rows_ahead, columns] = tables.each_mut().map(AsMut::as_mut);
        let mut places = [0; Made::COLUMNS];
        let mut next_column = 0;
        while next_column < self.columns {
            let first_column = next_column.min(self.columns - B::SIZE);
            let count = most_columns.min(self.columns - first_column);
            next_column = first_column + count;
            let columns = &mut columns[..count];
            self.column.places(B::WAYS, first_column, columns);
            let places = &mut places[..count / B::WAYS];
            for (place, &column) in places.iter_mut().zip(columns.iter().step_by(B::WAYS)) {
                *place = column;
            }
            // Each column in memory is as far from the beginning of a line as where it belongs.
            let start = |i: usize, place: usize| {
                made.panel.wrapping_add(i * pitch + destination.wrapping_add(place).addr() % LINE)
            };
            for (i, column) in columns.iter_mut().enumerate() {
                *column = start(i / B::WAYS, *column).addr() - made.panel.addr();
            }
            let source_here = source.wrapping_add(first_column * B::WIDTH);
            let mut first_row = 0;
            while first_row < self.rows {
                let count = |first_row: usize| {
                    let left = self.rows - first_row;
                    if left < most_rows + B::SIZE { left } else { most_rows }
                };
                let row_count = count(first_row);
                let end_row = first_row + row_count;
                self.row.places(1, first_row, &mut rows[..row_count]);
                let is_last = end_row == self.rows;
                let first_ahead = if is_last { 0 } else { end_row };
                let count_ahead = count(first_ahead);
                self.row.places(1, first_ahead, &mut rows_ahead[..count_ahead]);
                let source_ahead = match (is_last, next_column == self.columns) {
                    (false, _) => source_here,
                    (true, false) => source.wrapping_add(next_column * B::WIDTH),
                    (true, true) => next,
                };
                let mut ahead = PanelAhead {
                    source: source_ahead,
                    rows: &rows_ahead[..count_ahead],
                    lines: (columns.len() * B::WIDTH).div_ceil(LINE),
                    is_fetched_by_rows: true,
                    row: 0,
                    line: 0,
                };
                // SAFETY: some rows and columns of the matrix, at least as many as a block
                // has, to memory that has room for them.
                unsafe {
                    transpose_panel::<B>(
                        &rows[..row_count],
                        columns,
                        Order::ByColumns,
                        None,
                        scratch,
                        source_here,
                        made.panel,
                    );
                };
                let bytes = row_count * width;
                // As many lines for each that is written as it takes to fetch them all.
                let to_fetch = ahead.lines * count_ahead;
                let fetched = to_fetch.div_ceil((places.len() * bytes / LINE).max(1));
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
                        ahead.fetch::<B::Vector>(fetched);
                        let (from, to) = (first.wrapping_add(at), line_of(to).wrapping_add(at));
                        // SAFETY: a line of which all was made, to where it belongs.
                        unsafe { copy_line::<B::Vector, true>(from, to) };
                        at += LINE;
                    }
                    // SAFETY: the line in which the rows of this panel end, to where the
                    // next ones go on with it.
                    unsafe { copy_line::<B::Vector, false>(first.wrapping_add(whole), first) };
                }
                first_row = end_row;
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
                    transpose_panel::<B>(rows, columns, order, None, scratch, source, destination);
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
    panel: *mut u8,
    first_lines: *mut u8,
}

impl Made {
    const BYTES: usize = 40 << 10;
    const COLUMNS: usize = 128;
    /// So many lines of each column make a panel.
    const LINES_DOWN: usize = 2;

    #[inline(always)]
    fn new(
        panel: &mut MaybeUninit<CacheLines<{ Made::BYTES / LINE }>>,
        first_lines: &mut MaybeUninit<CacheLines<{ Made::COLUMNS }>>,
    ) -> Made {
        Made { panel: panel.as_mut_ptr().cast(), first_lines: first_lines.as_mut_ptr().cast() }
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

/// The lines of a panel that are to be fetched: row by row, or block by block.
struct PanelAhead<'a> {
    source: *const u8,
    /// Where its rows begin.
    rows: &'a [usize],
    /// How many lines a row has.
    lines: usize,
    is_fetched_by_rows: bool,
    /// What is fetched next.
    row: usize,
    line: usize,
}

impl PanelAhead<'_> {
    /// Fetches as many lines as a block of so many rows and columns has.
    #[inline(always)]
    fn fetch<V: Vector>(&mut self, size: usize) {
        if self.is_fetched_by_rows {
            for _ in 0..size {
                let Some(&start) = self.rows.get(self.row) else { return };
                V::prefetch::<2>(self.source.wrapping_add(start.wrapping_add(self.line * LINE)));
                self.next_line(1);
            }
            return;
        }
        let from = self.source.wrapping_add(self.line * LINE);
        for &start in self.rows.iter().skip(self.row).take(size) {
            V::prefetch::<2>(from.wrapping_add(start));
        }
        self.next_line(size);
    }

    /// Goes on to the next line, and behind the last one to the first of the next rows,
    /// which are so many.
    #[inline(always)]
    fn next_line(&mut self, rows: usize) {
        self.line += 1;
        if self.line == self.lines {
            (self.row, self.line) = (self.row + rows, 0);
        }
    }
}

/// A block of whole lines that are written past the caches.
pub(super) trait StreamedBlock: Block {
    /// What is transposed before the next one is, where the caches have room for both
    /// sides, and where they have none.
    const NEAR: Panel;
    const FAR: Panel;

    /// The most rows or columns of such a panel, and where they begin.
    const MOST: usize;
    type Table: AsMut<[usize]>;
    fn table() -> Self::Table;
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
unsafe fn transpose_panel<B: Block>(
    rows: &[usize],
    columns: &[usize],
    order: Order,
    mut ahead: Option<PanelAhead<'_>>,
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
            ahead.fetch::<B::Vector>(size);
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
