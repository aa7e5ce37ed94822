//! What is fetched while panels of a matrix are transposed. All this is hints.

use std::ops::Range;

use super::matrix::{Block, LINES_DOWN, LINES_DOWN_NEAR, Matrix, Panel};
use super::places::{Cursor, Split};
use super::vector::{LINE, PAGE, Vector};
use super::{Place, Strip};

/// The rows that are fetched while a panel is transposed come as many behind its own as it
/// has, and at least so many; or so many where they are in pages of their own, and a panel has fewer bytes of each than that.
const ROWS_AHEAD: usize = 32;
const ROWS_APART_AHEAD: usize = 128;
const LITTLE: usize = 4 * LINE;

/// Of a page of which less than so much belongs to a panel, nothing is gained by going to another one
/// before all of it has been fetched.
const BYTES_BY_TURNS: usize = 1024;

/// What is fetched while a panel is transposed.
pub(super) trait FetchesAhead {
    /// Whether the panel is streamed.
    const IS_PAST_THE_CACHES: bool;

    /// What is fetched while a block is written.
    type Lines<'a>: Lines
    where
        Self: 'a;

    /// A step, which comes before each block of the panel.
    fn fetch<B: Block>(&mut self) -> Self::Lines<'_>;
}

/// The same for a matrix, whose panels it follows.
pub(super) trait FollowsPanels: FetchesAhead {
    /// Comes before each panel.
    fn set_out<B: Block>(&mut self, way: &Way);

    /// And after it: fetches what has not been yet.
    fn finish<B: Block>(&mut self);
}

/// A panel to be transposed: the rows that were not in the one before, the blocks, and the panel
/// that comes next.
pub(super) struct Way {
    pub(super) rows: usize,
    pub(super) blocks: usize,
    /// Where its columns begin in the first row of its matrix, and so many bytes of each row.
    pub(super) next: *const u8,
    pub(super) next_bytes: usize,
    /// Its rows.
    pub(super) next_rows: Range<usize>,
}

/// Lines that are fetched while a block is written, one for each of its own.
pub(super) trait Lines: Copy {
    /// In loops that are to be unrolled.
    fn fetch<V: Vector>(self, line: usize);

    /// In others.
    fn fetch_any<V: Vector>(self, line: usize);

    /// Those behind so many.
    fn behind(self, count: usize) -> Self;

    /// Before that vector of those that are written, each of which was so many vectors of bytes in the source: of a
    /// line, or of a part of one.
    #[inline(always)]
    fn fetch_before<V: Vector>(self, vector: usize, times: usize) {
        for part in vector * times..(vector + 1) * times {
            let at = part * V::BYTES;
            if at.is_multiple_of(LINE) {
                self.fetch::<V>(at / LINE);
            }
        }
    }
}

/// None.
impl Lines for () {
    #[inline(always)]
    fn fetch<V: Vector>(self, _: usize) {}

    #[inline(always)]
    fn fetch_any<V: Vector>(self, _: usize) {}

    #[inline(always)]
    fn behind(self, _: usize) {}
}

/// Nothing is fetched for what goes to the caches.
impl FetchesAhead for () {
    const IS_PAST_THE_CACHES: bool = false;
    type Lines<'a>
        = ()
    where
        Self: 'a;

    #[inline(always)]
    fn fetch<B: Block>(&mut self) {}
}

/// The same for what goes to the caches, but comes from memory.
pub(super) struct IntoCaches<'a, A>(pub(super) &'a mut A);

impl<A: FetchesAhead> FetchesAhead for IntoCaches<'_, A> {
    const IS_PAST_THE_CACHES: bool = false;
    type Lines<'b>
        = A::Lines<'b>
    where
        Self: 'b;

    #[inline(always)]
    fn fetch<B: Block>(&mut self) -> A::Lines<'_> {
        self.0.fetch::<B>()
    }
}

/// Rows that come later on the way through the panels of the matrices of a strip, which
/// goes on to those of the next one. All this is hints.
pub(super) struct RowsAhead<'a> {
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
    /// Which row of the matrix it is, and where.
    row: usize,
    row_place: Cursor,
    /// Of the row: which line is to be fetched next, and of how many.
    at: *const u8,
    lines_left: usize,
    /// The rows that are to be fetched before the next panel, and so many lines at a time.
    due: usize,
    pace: usize,
}

impl<'a> RowsAhead<'a> {
    /// By how many rows those that are fetched are before the ones that are transposed, in such panels. Vectors that are
    /// shorter than a line lose by more of them where rows share few sets of L1.
    #[inline(always)]
    pub(super) fn distance<B: Block>(matrix: &Matrix, panel: Panel) -> usize {
        let are_apart = matrix.row.distance() >= PAGE;
        let is_little = panel.columns * B::WIDTH < LITTLE;
        let have_room = !matrix.has_far_crowded_rows::<B>();
        if matrix.has_far_words::<B>() && are_apart && is_little && have_room {
            panel.rows.max(ROWS_APART_AHEAD)
        } else {
            panel.rows
        }
    }

    /// Begins so many rows, at least, behind the first one.
    #[inline(always)]
    pub(super) fn new<B: Block>(
        matrix: &'a Matrix,
        panel: Panel,
        rows: usize,
        source: *const u8,
    ) -> Self {
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
            row_place: Cursor::default(),
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
        self.row_place.next(self.matrix.row);
        if self.row == self.matrix.rows {
            self.next_panel();
        }
        let start = self.panel.wrapping_add(self.row_place.place);
        self.at = start;
        self.lines_left = (start.addr() % LINE + self.bytes).div_ceil(LINE);
    }

    #[inline(always)]
    fn next_panel(&mut self) {
        (self.row, self.row_place) = (0, Cursor::default());
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
    pub(super) fn start(&mut self, rows: usize, steps: usize) {
        self.due = if follow_each_other(self.matrix) { 0 } else { rows };
        self.pace = (rows * self.lines_left).div_ceil(steps.max(1));
    }

    /// Fetches a row, all lines of it together, if one is to be.
    #[inline(always)]
    pub(super) fn fetch_row<V: Vector>(&mut self) {
        if self.due == 0 {
            return;
        }
        for line in 0..self.lines_left {
            self.ask_for::<V>(self.at.wrapping_add(line * LINE));
        }
        self.due -= 1;
        self.next_row();
    }

    #[inline(always)]
    fn ask_for<V: Vector>(&self, line: *const u8) {
        let Strip { is_far, is_near, core, .. } = self.matrix.others;
        if is_near {
            V::prefetch::<1>(line);
        } else {
            V::prefetch::<2>(line);
        }
        if is_far && !core.follows_pages() {
            // Not all that is asked of memory is taken at once.
            V::prefetch::<2>(line);
        }
    }

    #[inline(always)]
    fn fetch_line<V: Vector>(&mut self) {
        self.ask_for::<V>(self.at);
        self.at = self.at.wrapping_add(LINE);
        self.lines_left -= 1;
        if self.lines_left == 0 {
            self.due -= 1;
            self.next_row();
        }
    }
}

impl FetchesAhead for RowsAhead<'_> {
    const IS_PAST_THE_CACHES: bool = true;
    type Lines<'a>
        = ()
    where
        Self: 'a;

    #[inline(always)]
    fn fetch<B: Block>(&mut self) {
        for _ in 0..self.pace {
            if self.due == 0 {
                return;
            }
            self.fetch_line::<B::Vector>();
        }
    }
}

impl FollowsPanels for RowsAhead<'_> {
    #[inline(always)]
    fn set_out<B: Block>(&mut self, way: &Way) {
        self.start(way.rows, way.blocks);
    }

    #[inline(always)]
    fn finish<B: Block>(&mut self) {
        while self.due > 0 {
            self.fetch_line::<B::Vector>();
        }
    }
}

/// So many in so many steps, as evenly as they come.
pub(super) struct Spread {
    count: usize,
    steps: usize,
    /// Those that are due, times the steps.
    due: usize,
}

impl Spread {
    #[inline(always)]
    pub(super) fn new(count: usize, steps: usize) -> Spread {
        Spread { count, steps: steps.max(1), due: 0 }
    }

    /// How many come with the next step.
    #[inline(always)]
    pub(super) fn next(&mut self) -> usize {
        self.due += self.count;
        let mut number = 0;
        while self.due >= self.steps {
            self.due -= self.steps;
            number += 1;
        }
        number
    }
}

/// Whether each row is a line, or less, and the next one follows.
#[inline(always)]
fn follow_each_other(matrix: &Matrix) -> bool {
    matrix.row.stride <= LINE && matrix.row.is_even(matrix.rows)
}

/// While a block is written, as many lines are fetched as it has, in so many pieces: each has those
/// that are beside each other in a row.
pub(super) const PIECES: usize = 4;

/// Rows that are fetched as if they were one, as they follow each other: all, or of each word's rows those of the same
/// element.
#[derive(Clone, Copy)]
struct FollowingRows {
    /// The elements of a word, or one.
    ways: usize,
    /// From a row to the one that follows it.
    step: usize,
    /// So many rows go on so.
    count: usize,
}

impl FollowingRows {
    /// Those of a matrix whose panels are so fetched. There are no pieces of rows that are shorter.
    #[inline(always)]
    fn of(matrix: &Matrix) -> Option<FollowingRows> {
        let Matrix { row, rows, .. } = *matrix;
        let found = if row.is_even(rows) {
            FollowingRows { ways: 1, step: row.stride, count: rows }
        } else if row.block <= PIECES {
            let count = row.block.saturating_mul(row.group).min(rows);
            FollowingRows { ways: row.block, step: row.step, count }
        } else {
            return None;
        };
        matrix.others.core.streams_by_runs().then_some(found)
    }

    /// Whether there are so many rows among these, and less than a line between rows of so many bytes.
    #[inline(always)]
    fn has(self, rows: Range<usize>, bytes: usize) -> bool {
        rows.len() <= self.count - rows.start % self.count
            && (bytes..bytes + LINE).contains(&self.step)
    }
}

/// The panel that comes next, whose source is in L3, or in memory that brings it sooner so: while a block is written, one
/// line before each of its own. Many at once would wait for each other, and the stores for them.
#[derive(Clone, Copy)]
pub(super) struct NextPanel {
    row: Split,
    joined: Option<FollowingRows>,
    /// Where the first line of a row ends, in the first row of the matrix, and the bytes of each row.
    first_end: *const u8,
    bytes: usize,
    /// The row that is fetched: where it begins, and how many there are with it.
    row_place: Cursor,
    rows_left: usize,
    /// What is fetched of it.
    at: usize,
}

impl NextPanel {
    /// Whether the rows of a panel of a matrix have a piece each, or follow each other.
    #[inline(always)]
    pub(super) fn has_pieces<B: Block>(matrix: &Matrix, panel: Panel) -> bool {
        panel.columns * B::WIDTH >= piece::<B>() * LINE || {
            let bytes = panel.columns.min(matrix.columns) * B::WIDTH;
            let rows = 0..panel.rows.min(matrix.rows);
            FollowingRows::of(matrix).is_some_and(|joined| joined.has(rows, bytes))
        }
    }

    #[inline(always)]
    pub(super) fn new(matrix: &Matrix) -> Self {
        Self {
            row: matrix.row,
            joined: FollowingRows::of(matrix),
            first_end: std::ptr::null(),
            bytes: 0,
            row_place: Cursor::default(),
            rows_left: 0,
            at: 0,
        }
    }

    /// The lines of the next piece that are of its row.
    #[inline(always)]
    fn lines_of_next<B: Block>(&self) -> usize {
        piece::<B>().min(self.bytes.saturating_sub(self.at).div_ceil(LINE))
    }

    /// The next piece; one of the last row again, or of rows that are joined, if there is no other.
    #[inline(always)]
    fn next<B: Block>(&mut self) -> *const u8 {
        let start = self.first_end.wrapping_add(self.row_place.place.wrapping_add(self.at));
        self.at += piece::<B>() * LINE;
        if self.at < self.bytes {
            return start;
        }
        self.at = 0;
        self.rows_left = self.rows_left.saturating_sub(1);
        if self.rows_left > 0 {
            self.row_place.next(self.row);
        }
        start
    }
}

impl FetchesAhead for NextPanel {
    const IS_PAST_THE_CACHES: bool = true;
    type Lines<'a> = Pieces;

    #[inline(always)]
    fn fetch<B: Block>(&mut self) -> Pieces {
        let pieces = [self.next::<B>(), self.next::<B>(), self.next::<B>(), self.next::<B>()];
        Pieces { pieces, lines: piece::<B>(), first: 0 }
    }
}

impl FollowsPanels for NextPanel {
    #[inline(always)]
    fn set_out<B: Block>(&mut self, way: &Way) {
        self.first_end = way.next.wrapping_add(LINE - 1);
        self.bytes = way.next_bytes;
        self.row_place = Cursor::at(self.row, way.next_rows.start);
        self.rows_left = way.next_rows.len();
        if let Some(joined) = self.joined
            && joined.has(way.next_rows.clone(), self.bytes)
        {
            self.bytes = self.rows_left.div_ceil(joined.ways) * joined.step;
            self.rows_left = joined.ways.min(self.rows_left);
        }
        self.at = 0;
    }

    #[inline(always)]
    fn finish<B: Block>(&mut self) {
        while self.rows_left > 0 {
            let lines = self.lines_of_next::<B>();
            let start = self.next::<B>();
            for line in 0..lines {
                B::Vector::prefetch::<2>(start.wrapping_add(line * LINE));
            }
        }
    }
}

/// The panel that comes next, from L3, block by block: while one is written, the lines of the one at its place there.
pub(super) struct NextBlocks {
    row: Split,
    /// Where its rows begin, and how many there are.
    rows: [usize; NextBlocks::ROWS],
    count: usize,
    /// Where the first line of a row ends, and the bytes of each row.
    first_end: *const u8,
    bytes: usize,
    /// Of the next block.
    next_row: usize,
    at: usize,
}

impl NextBlocks {
    const ROWS: usize = 2 * LINES_DOWN_NEAR * LINE;

    /// Whether blocks of such a panel are so fetched: squares of lines of elements narrower than words. Prefetchers do that
    /// themselves where each row is a line, or less, and the next one follows.
    #[inline(always)]
    pub(super) fn suit<B: Block>(matrix: &Matrix, panel: Panel) -> bool {
        if const { B::WIDTH >= 4 || B::COLUMNS * B::WIDTH != LINE || B::WIDTH != B::DESTINATION_WIDTH }
        {
            return false;
        }
        let Strip { is_near, core, .. } = matrix.others;
        let has_room = panel.rows <= NextBlocks::ROWS;
        is_near && core.fetches_blocks() && has_room && !follow_each_other(matrix)
    }

    #[inline(always)]
    pub(super) fn new(matrix: &Matrix) -> Self {
        Self {
            row: matrix.row,
            rows: [0; NextBlocks::ROWS],
            count: 0,
            first_end: std::ptr::null(),
            bytes: 0,
            next_row: 0,
            at: 0,
        }
    }
}

impl FetchesAhead for NextBlocks {
    const IS_PAST_THE_CACHES: bool = true;
    type Lines<'a> = RowLines<'a>;

    /// The last block again, if there is no other.
    #[inline(always)]
    fn fetch<B: Block>(&mut self) -> RowLines<'_> {
        let at = self.at.min(self.bytes.saturating_sub(LINE));
        let first = self.next_row.min(self.count.saturating_sub(B::ROWS));
        self.next_row += B::ROWS;
        if self.next_row >= self.count {
            self.next_row = 0;
            self.at += LINE;
        }
        let rows = &self.rows[first..self.count.min(first + B::ROWS)];
        RowLines { rows, end: self.first_end.wrapping_add(at) }
    }
}

impl FollowsPanels for NextBlocks {
    #[inline(always)]
    fn set_out<B: Block>(&mut self, way: &Way) {
        self.first_end = way.next.wrapping_add(LINE - 1);
        self.bytes = way.next_bytes;
        self.count = way.next_rows.len().min(NextBlocks::ROWS);
        self.row.places(1, way.next_rows.start, &mut self.rows[..self.count]);
        (self.next_row, self.at) = (0, 0);
    }

    #[inline(always)]
    fn finish<B: Block>(&mut self) {
        while self.at < self.bytes {
            let lines = self.fetch::<B>();
            for line in 0..lines.rows.len() {
                lines.fetch_any::<B::Vector>(line);
            }
        }
    }
}

/// A line of each of some rows.
#[derive(Clone, Copy)]
pub(super) struct RowLines<'a> {
    rows: &'a [usize],
    /// Where it ends, of one that begins at zero.
    end: *const u8,
}

impl Lines for RowLines<'_> {
    #[inline(always)]
    fn fetch<V: Vector>(self, line: usize) {
        self.fetch_any::<V>(line);
    }

    #[inline(always)]
    fn fetch_any<V: Vector>(self, line: usize) {
        if let Some(&row) = self.rows.get(line) {
            V::prefetch::<2>(self.end.wrapping_add(row));
        }
    }

    #[inline(always)]
    fn behind(self, count: usize) -> Self {
        RowLines { rows: self.rows.get(count..).unwrap_or_default(), ..self }
    }
}

/// The lines of each piece.
#[inline(always)]
pub(super) fn piece<B: Block>() -> usize {
    const { B::SOURCE_LINES.div_ceil(PIECES) }
}

/// Pieces of so many lines, of which line number `first` comes next. In loops that are to be unrolled
/// they are told apart by comparisons: an index would prevent it.
#[derive(Clone, Copy)]
pub(super) struct Pieces {
    pieces: [*const u8; PIECES],
    lines: usize,
    first: usize,
}

impl Pieces {
    #[inline(always)]
    fn at(self, line: usize) -> *const u8 {
        let [a, b, c, d] = self.pieces;
        let (line, lines) = (self.first + line, self.lines);
        let (start, number) = if line < lines {
            (a, line)
        } else if line < 2 * lines {
            (b, line - lines)
        } else if line < 3 * lines {
            (c, line - 2 * lines)
        } else {
            (d, line - 3 * lines)
        };
        start.wrapping_add(number * LINE)
    }

    #[inline(always)]
    fn at_any(self, line: usize) -> *const u8 {
        let (line, lines) = (self.first + line, self.lines);
        let start = self.pieces[line / lines % PIECES];
        start.wrapping_add(line % lines * LINE)
    }
}

impl Lines for Pieces {
    #[inline(always)]
    fn fetch<V: Vector>(self, line: usize) {
        V::prefetch::<2>(self.at(line));
    }

    #[inline(always)]
    fn fetch_any<V: Vector>(self, line: usize) {
        V::prefetch::<2>(self.at_any(line));
    }

    #[inline(always)]
    fn behind(self, count: usize) -> Self {
        Pieces { first: self.first + count, ..self }
    }
}

/// The rows of the panel that comes next, of which those in different pages are fetched by turns: of
/// each page one line after the other, so that the prefetchers follow all of them. All this is hints.
pub(super) struct PagesAhead {
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
    pub(super) fn new() -> Self {
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
    pub(super) fn take_rows<B: Block>(&mut self, matrix: &Matrix, row: usize, most: usize) {
        let first = row.min(matrix.rows - B::ROWS);
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
    pub(super) fn set_out(&mut self, (start, bytes): (*const u8, usize), steps: usize) {
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
    const IS_PAST_THE_CACHES: bool = true;
    type Lines<'a>
        = ()
    where
        Self: 'a;

    #[inline(always)]
    fn fetch<B: Block>(&mut self) {
        for _ in 0..self.pace {
            let Some(at) = self.next() else { return };
            B::Vector::prefetch::<2>(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Words = crate::turn::Vectors<crate::portable::V, crate::turn::Whole, 4, 32, 4, 1, 32>;

    /// To a next panel of such rows, that begins there and has so many bytes of each.
    fn way(start: usize, next_bytes: usize, next_rows: Range<usize>) -> Way {
        Way { rows: 0, blocks: 0, next: std::ptr::without_provenance(start), next_bytes, next_rows }
    }

    #[test]
    fn rows_ahead_go_on_from_panel_to_matrix_to_strip() {
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
        let matrix = Matrix::new(&strip, 4, 1);
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
    fn what_is_spread_comes_evenly() {
        let spread = |count, steps: usize| {
            let mut spread = Spread::new(count, steps);
            (0..steps).map(|_| spread.next()).collect::<Vec<_>>()
        };
        assert_eq!(spread(3, 8), [0, 0, 1, 0, 0, 1, 0, 1]);
        assert_eq!(spread(8, 3), [2, 3, 3]);
        assert_eq!(spread(0, 2), [0, 0]);
    }

    #[test]
    fn little_of_rows_in_pages_of_their_own_is_fetched_farther_ahead() {
        use crate::cpu::Core;
        use crate::{portable, turn};
        type Lines = turn::Lines<portable::V, turn::Whole, 4, 32, 4, 1, 32>;
        let of = |row_stride, columns, core, is_far| {
            let strip = Strip {
                lines: 1,
                blocks: 1,
                rows: 1000,
                row_stride,
                columns,
                column_stride: 4096,
                is_far,
                core,
                ..Strip::default()
            };
            let panel = Panel { rows: 64, columns };
            RowsAhead::distance::<Lines>(&Matrix::new(&strip, 4, 1), panel)
        };
        assert_eq!(of(8000, 48, Core::Zen5, true), 128);
        // More of each, rows in the same page, some from L3, another core.
        assert_eq!(of(8000, 64, Core::Zen5, true), 64);
        assert_eq!(of(2000, 48, Core::Zen5, true), 64);
        assert_eq!(of(8000, 48, Core::Zen5, false), 64);
        assert_eq!(of(8000, 48, Core::Zen4, true), 64);
        // Short vectors, and rows that share few sets.
        assert_eq!(of(8192, 48, Core::Zen5, true), 64);
    }

    #[test]
    fn pages_ahead_go_by_turns_line_by_line() {
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
            let matrix = Matrix::new(&strip, 4, 1);
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
    fn the_next_panel_is_fetched_row_by_row_in_pieces() {
        use crate::{portable, turn};
        type Lines = turn::Lines<portable::V, turn::Whole, 4, 32, 4, 1, 32>;
        assert_eq!(piece::<Lines>(), 4);
        let strip = Strip {
            lines: 1,
            blocks: 3,
            source_step: 100_000,
            destination_step: 5 * 4,
            rows: 5,
            row_stride: 4096,
            columns: 1000,
            column_stride: 1 << 12,
            ..Strip::default()
        };
        let matrix = Matrix::new(&strip, 4, 1);
        assert_eq!(matrix.rows, 15);
        let row = |row: usize| row / 5 * 100_000 + row % 5 * 4096;
        let start = 1 << 30;
        for (bytes, rows) in [(1024, 3..11), (256, 0..15), (600, 5..6)] {
            let mut ahead = NextPanel::new(&matrix);
            ahead.set_out::<Lines>(&way(start, bytes, rows.clone()));
            // The last byte of each line, which is in the next one where rows begin within lines.
            let expected: Vec<usize> = rows
                .flat_map(|number| (0..bytes).step_by(256).map(move |at| (number, at)))
                .map(|(number, at)| start + row(number) + at + LINE - 1)
                .collect();
            let mut found = Vec::new();
            while ahead.rows_left > 0 {
                found.push(ahead.next::<Lines>().addr());
            }
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_line_of_each_row_of_the_next_panel_is_fetched_before_the_next_ones() {
        use std::collections::HashSet;
        type Squares = crate::turn::Squares<crate::portable::V, 2, false>;
        let strip = Strip {
            lines: 1,
            blocks: 3,
            source_step: 100_000,
            destination_step: 40,
            rows: 20,
            row_stride: 4096,
            columns: 1000,
            column_stride: 1 << 12,
            ..Strip::default()
        };
        let matrix = Matrix::new(&strip, 2, 1);
        assert_eq!(matrix.rows, 60);
        let row = |row: usize| row / 20 * 100_000 + row % 20 * 4096;
        let start = 1 << 30;
        // Of so many bytes; those that are no whole blocks end where the panel does.
        for (bytes, lines, rows) in [
            (256, &[0, 64, 128, 192][..], 0..60),
            (200, &[0, 64, 128, 136][..], 20..60),
            (64, &[0][..], 59..60),
        ] {
            let mut ahead = NextBlocks::new(&matrix);
            ahead.set_out::<Squares>(&way(start, bytes, rows.clone()));
            // The last byte of each line, which is in the next one where rows begin within lines.
            let at = |line: usize| rows.clone().map(move |n| start + row(n) + line + LINE - 1);
            for &line in lines {
                let mut found = HashSet::new();
                for _ in 0..rows.len().div_ceil(Squares::ROWS) {
                    let fetched = ahead.fetch::<Squares>();
                    assert!(fetched.rows.len() <= Squares::ROWS);
                    found.extend(fetched.rows.iter().map(|row| fetched.end.addr() + row));
                }
                assert_eq!(found, at(line).collect());
            }
            assert!(ahead.at >= bytes, "all of {bytes}");
        }
    }

    #[test]
    fn squares_from_l3_are_fetched_block_by_block_where_that_is_sooner() {
        use crate::cpu::Core;
        use crate::{portable, turn};
        type Bytes = turn::Squares<portable::V, 1, false>;
        type Words = turn::Lines<portable::V, turn::Whole, 4, 32, 4, 1, 32>;
        let strip = |row_stride, is_near, core| Strip {
            lines: 1,
            blocks: 1,
            rows: 1000,
            row_stride,
            columns: 64,
            column_stride: 4096,
            is_near,
            core,
            ..Strip::default()
        };
        let panel = |rows| Panel { rows, columns: 64 };
        let suit =
            |strip: Strip, rows| NextBlocks::suit::<Bytes>(&Matrix::new(&strip, 1, 1), panel(rows));
        assert!(suit(strip(3000, true, Core::Zen4), 512));
        // More rows than there is room for, which no panel has.
        assert!(!suit(strip(3000, true, Core::Zen4), 576));
        assert!(!suit(strip(64, true, Core::Zen4), 64), "rows that follow each other");
        assert!(!suit(strip(3000, false, Core::Zen4), 64), "from memory");
        for core in [Core::Intel, Core::Zen3, Core::Zen5] {
            assert!(!suit(strip(3000, true, core), 64), "{core:?}");
        }
        let words = Matrix::new(&strip(3000, true, Core::Zen4), 4, 1);
        assert!(!NextBlocks::suit::<Words>(&words, panel(64)));
    }

    #[test]
    fn rows_that_follow_each_other_are_fetched_as_one() {
        use crate::cpu::Core;
        use crate::{portable, turn};
        type Lines = turn::Lines<portable::V, turn::Whole, 4, 32, 4, 1, 32>;
        let matrix = |core, row_stride| {
            let strip = Strip {
                lines: 1,
                blocks: 1,
                rows: 100,
                row_stride,
                columns: 50,
                column_stride: 1 << 12,
                core,
                ..Strip::default()
            };
            Matrix::new(&strip, 4, 1)
        };
        let start = 1 << 30;
        let fetched = |matrix: &Matrix| {
            let mut ahead = NextPanel::new(matrix);
            ahead.set_out::<Lines>(&way(start, 200, 20..36));
            let mut found = Vec::new();
            while ahead.rows_left > 0 {
                found.push(ahead.next::<Lines>().addr() - start - (LINE - 1));
            }
            found
        };
        // Pieces of 256 bytes: of 16 rows one behind the other, or of each of them.
        let panel = Panel { rows: 16, columns: 50 };
        for stride in [200, 204] {
            let matrix = matrix(Core::Zen3, stride);
            assert!(NextPanel::has_pieces::<Lines>(&matrix, panel));
            let expected: Vec<usize> =
                (0..16 * stride).step_by(256).map(|at| 20 * stride + at).collect();
            assert_eq!(fetched(&matrix), expected);
        }
        // With more between them, another CPU, and a panel of some of their columns.
        let part = Panel { columns: 32, ..panel };
        assert!(!NextPanel::has_pieces::<Lines>(&matrix(Core::Zen3, 200), part));
        for (core, stride) in [(Core::Zen3, 264), (Core::Zen4, 200)] {
            let matrix = matrix(core, stride);
            assert!(!NextPanel::has_pieces::<Lines>(&matrix, panel));
            let expected: Vec<usize> = (20..36).map(|row| row * stride).collect();
            assert_eq!(fetched(&matrix), expected);
        }
    }

    #[test]
    fn rows_of_words_that_follow_each_other_are_fetched_by_their_elements() {
        use crate::cpu::Core;
        use crate::{portable, turn};
        type Lines = turn::Lines<portable::V, turn::Whole, 4, 32, 4, 1, 32>;
        // Words of two rows of 200 bytes, 40 words in a line, and two lines that are one matrix.
        let strip = Strip {
            lines: 2,
            source_line: 100_000,
            destination_line: 80 * 4,
            blocks: 40,
            source_step: 200,
            destination_step: 8,
            rows: 2,
            row_stride: 10_000,
            columns: 50,
            column_stride: 1 << 12,
            core: Core::Zen3,
            ..Strip::default()
        };
        let matrix = Matrix::new(&strip, 4, 1);
        assert_eq!((matrix.rows, matrix.others.lines), (160, 1));
        let panel = |rows| Panel { rows, columns: 50 };
        assert!(NextPanel::has_pieces::<Lines>(&matrix, panel(80)));
        assert!(!NextPanel::has_pieces::<Lines>(&matrix, panel(96)));
        let fetched = |next_rows: Range<usize>| {
            let mut ahead = NextPanel::new(&matrix);
            ahead.set_out::<Lines>(&way(1 << 30, 200, next_rows));
            let mut found = Vec::new();
            while ahead.rows_left > 0 {
                found.push(ahead.next::<Lines>().addr() - (1 << 30) - (LINE - 1));
            }
            found
        };
        // Ten rows of either element one behind the other, in the second line.
        let of_element = |first: usize| (first..first + 2000).step_by(256);
        let expected: Vec<usize> = [104_000, 114_000].into_iter().flat_map(of_element).collect();
        assert_eq!(fetched(120..140), expected);
        // From one line to the next each row by itself.
        let rows = [7800, 17_800, 100_000, 110_000];
        assert_eq!(fetched(78..82), rows);
    }

    #[test]
    fn lines_of_pieces_are_told_apart_in_either_way() {
        let starts = [10_000, 30_000, 20_000, 50_000];
        let pieces = starts.map(std::ptr::without_provenance::<u8>);
        for lines in [2, 4, 16] {
            let all = Pieces { pieces, lines, first: 0 };
            for line in 0..PIECES * lines {
                let expected = starts[line / lines] + line % lines * LINE;
                assert_eq!((all.at(line).addr(), all.at_any(line).addr()), (expected, expected));
                let rest = all.behind(line / 2);
                assert_eq!(rest.at(line - line / 2).addr(), expected);
                assert_eq!(rest.at_any(line - line / 2).addr(), expected);
            }
        }
    }
}
