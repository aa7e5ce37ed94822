//! Transposes of blocks whose rows are at one stride, and whose columns are; or two or four of them are, which come at a step.
//!
//! Where a block's rows and columns begin is found from two places and their strides, which stay in registers. Tables
//! of all places take a load for each row and each column, and so much of what a CPU keeps of its instructions under way
//! that half as many blocks are: within the caches these are up to a third quicker for words (docs/performance.md).

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::hint::black_box;
use std::ops::RangeInclusive;

use super::crowded::{L1_SETS, ROOM};
use super::matrix::{
    Block, Matrix, Order, PANEL_COLUMNS, PANEL_COLUMNS_FAR, PANEL_ROWS, transpose_panel_to_caches,
};
use super::places::{Cursor, Split};
use super::vector::{LINE, Vector};

/// How far the rows of a block are from its first one, or the columns: the next one, the one behind that, and every fourth.
/// So rows may be at one stride, or two or four of them are, which come at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strides {
    pub(super) one: usize,
    pub(super) two: usize,
    pub(super) four: usize,
}

impl Strides {
    /// All at one stride.
    #[inline(always)]
    pub(super) fn even(stride: usize) -> Strides {
        Strides { one: stride, two: stride.wrapping_mul(2), four: stride.wrapping_mul(4) }
    }

    #[inline(always)]
    fn are_even(self) -> bool {
        self == Strides::even(self.one)
    }

    /// From the first of four to the one of a number. `EVEN` says that they are at one stride.
    #[inline(always)]
    pub(super) fn within_four<const EVEN: bool>(self, number: usize) -> usize {
        if EVEN {
            return number.wrapping_mul(self.one);
        }
        (number / 2).wrapping_mul(self.two).wrapping_add((number % 2).wrapping_mul(self.one))
    }

    /// From the first one to any.
    #[inline(always)]
    pub(super) fn at<const EVEN: bool>(self, number: usize) -> usize {
        let fours = (number / 4).wrapping_mul(self.four);
        fours.wrapping_add(self.within_four::<EVEN>(number % 4))
    }
}

/// So many rows and columns whose places are at strides.
pub(super) trait BlockAtStrides {
    /// None if there is no such block.
    const ROWS: usize;
    const COLUMNS: usize;

    /// Transposes one, the first row of which begins at `source`, the first column at `destination`, by ordinary stores.
    /// `EVEN` says that each side is at one stride.
    ///
    /// # Safety
    ///
    /// There are so many. In each row as many elements as there are columns can be read, in each column as many as there
    /// are rows be written. The CPU has the instructions.
    unsafe fn transpose<const EVEN: bool>(
        source: *const u8,
        rows: Strides,
        destination: *mut u8,
        columns: Strides,
    );
}

/// Of blocks that have none.
impl BlockAtStrides for () {
    const ROWS: usize = 0;
    const COLUMNS: usize = 0;

    #[inline(always)]
    unsafe fn transpose<const EVEN: bool>(_: *const u8, _: Strides, _: *mut u8, _: Strides) {
        debug_assert!(false, "there is no block at strides");
    }
}

/// Where some rows or columns begin: the first ones of blocks, and from there to the others.
#[derive(Clone, Copy)]
pub(super) struct BlockStarts<'a> {
    pub(super) starts: &'a [usize],
    pub(super) strides: Strides,
}

/// Narrow elements are gone along farther.
const PANEL_COLUMNS_NARROW: usize = 256;

/// So many blocks have room in a table of their starts, and so many are done at a time at most, as the last ones may be a few
/// more.
pub(super) const STARTS: usize = 32;
const MOST_BLOCKS: usize = STARTS / 5 * 4;

/// So many rows or columns, each block of so many: `most` blocks at a time, or as many as there is room for, the last ones up
/// to the end of that range. From which row or column on, and how many blocks; what is left at the end is a block that ends
/// there.
#[inline(always)]
pub(super) fn parts(
    (count, size): (usize, usize),
    most: RangeInclusive<usize>,
) -> impl Iterator<Item = (usize, usize)> {
    let (most, last) = ((*most.start()).min(MOST_BLOCKS), (*most.end()).min(STARTS));
    debug_assert!(most <= last, "the last ones are no fewer than others");
    let (blocks, mut next) = (count / size, 0);
    let whole = std::iter::from_fn(move || {
        let (first, left) = (next, blocks - next);
        let some = if left <= last { left } else { most };
        next += some;
        (some > 0).then_some((first * size, some))
    });
    let is_left = !count.is_multiple_of(size);
    whole.chain(is_left.then(|| (count - size, 1)))
}

impl Split {
    /// How far the others are from the first of each `size` places, if that is the same for all `size` of so many from number
    /// `first` on. They may end within a block only where all are at one stride.
    #[inline(always)]
    fn strides(self, size: usize, first: usize, count: usize) -> Option<Strides> {
        let even = Strides::even(self.stride);
        if self.is_even(first + count) {
            return Some(even);
        }
        let is_whole = |n: usize| n.is_multiple_of(size);
        if !is_whole(first) || !is_whole(count) {
            return None;
        }
        if is_whole(self.block) {
            return Some(even);
        }
        let of_blocks = |n: usize| (n / self.block).wrapping_mul(self.step);
        let is_at_step = |blocks: usize| {
            self.group.is_multiple_of(blocks) || self.has_even_blocks(first + count)
        };
        match self.block {
            1 | 2 | 4 if self.block < size && is_at_step(size / self.block) => Some(Strides {
                one: if self.block == 1 { self.step } else { even.one },
                two: if self.block == 4 { even.two } else { of_blocks(2) },
                four: of_blocks(4),
            }),
            _ => None,
        }
    }

    /// How many of so many places are [at strides](Split::strides), in blocks of `size`: all, whole blocks, or none.
    #[inline(always)]
    fn at_strides(self, size: usize, count: usize) -> Option<(usize, Strides)> {
        let whole = if self.is_even(count) { count } else { count / size * size };
        let strides = if count >= size { self.strides(size, 0, whole) } else { None };
        strides.map(|strides| (whole, strides))
    }

    /// The places of the first ones of blocks of `size`, from number `first` on, which [are at strides](Split::strides).
    #[inline(always)]
    pub(super) fn starts(self, size: usize, first: usize, starts: &mut [usize]) {
        let mut next = Cursor::at(self, first);
        for start in starts {
            *start = next.place;
            next.skip(self, size);
        }
    }
}

/// The rows and columns of a matrix that are in blocks at strides.
pub(super) struct Strided {
    /// How many: all, or whole blocks.
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) row: (Split, Strides),
    pub(super) column: (Split, Strides),
    visits: Visits,
}

/// In which order the blocks of a panel are visited.
#[derive(Clone, Copy)]
struct Visits {
    order: Order,
    /// The rows of a block of lines share few sets of L1, so that their lines are finished first; otherwise those of columns.
    has_crowded_blocks: bool,
    /// Where the rows of the same columns come first, the lines of so many blocks' columns are finished at a time.
    blocks_along: usize,
}

impl Matrix {
    /// What of it is [in blocks at strides](Block::AtStrides).
    #[inline(always)]
    pub(super) fn at_strides<B: Block>(&self) -> Option<Strided> {
        let [high, wide] = const { block_size::<B>() };
        if high == 0 {
            return None;
        }
        let finishes_few = self.crowds_columns_alone(B::COLUMNS);
        // Vectors of a line keep tables of all places, but for narrow elements, 16 bytes of a row at a time, whose rows stay in
        // L1 meanwhile, and where columns had better be done a few at a time.
        let is_quicker = finishes_few || const { is_narrow::<B>() } && self.has_room_for_rows();
        if !const { has_short_vectors::<B>() } && !is_quicker {
            return None;
        }
        let (rows, row) = self.row.at_strides(high, self.rows)?;
        let (columns, column) = self.column.at_strides(wide, self.columns)?;
        let by_columns = self.goes_by_columns::<B>() || self.has_more_crowded_columns::<B>();
        let order = if by_columns { Order::ByColumns } else { Order::ByRows };
        Some(Strided {
            rows,
            columns,
            row: (self.row.evened(rows), row),
            column: (self.column.evened(columns), column),
            visits: Visits {
                order,
                has_crowded_blocks: self.has_crowded_blocks::<B>(),
                blocks_along: if finishes_few { 1 } else { const { counts::<B>()[0] } },
            },
        })
    }

    /// Whether the lines of a block's columns take all the room of their sets of L1, and those of its rows less.
    #[inline(always)]
    fn has_more_crowded_columns<B: Block>(&self) -> bool {
        let columns = self.column.crowd(B::COLUMNS, L1_SETS);
        columns >= ROOM && columns > self.row.crowd(B::ROWS, L1_SETS)
    }

    /// Whether the rows of a block, a line each, share few sets of L1.
    #[inline(always)]
    fn has_crowded_blocks<B: Block>(&self) -> bool {
        self.row.crowd(B::ROWS, L1_SETS) > ROOM
    }

    /// Whether blocks at strides, of narrow elements, finish the lines of so few columns at a time that L1 has room for them.
    #[inline(always)]
    pub(super) fn finishes_few_columns<B: Block>(&self) -> bool {
        let [_, wide] = const { block_size::<B>() };
        let is_narrow = const { is_narrow::<B>() };
        is_narrow && self.column.crowd(wide, L1_SETS) <= ROOM && !self.has_crowded_blocks::<B>()
    }

    /// Transposes [some rows and columns](Matrix::at_strides) of a matrix with ordinary stores.
    ///
    /// # Safety
    ///
    /// The matrix is at these places, and these are what [`at_strides`](Matrix::at_strides) of `B` finds of it. The CPU has the
    /// vectors of `B`.
    #[inline(always)]
    pub(super) unsafe fn transpose_at_strides<B: Block>(
        &self,
        strided: &Strided,
        source: *const u8,
        destination: *mut u8,
    ) {
        let [high, wide] = const { block_size::<B>() };
        let along = if const { is_narrow::<B>() } {
            PANEL_COLUMNS_NARROW
        } else if self.has_far_crowded_rows::<B>() {
            PANEL_COLUMNS_FAR
        } else {
            PANEL_COLUMNS
        };
        let (sizes, most) = ((strided.rows, high), PANEL_ROWS / high);
        let row_parts = || parts(sizes, most..=most + most / 4);
        let (sizes, most) = ((strided.columns, wide), along / wide);
        let column_parts = || parts(sizes, most..=most + most / 4);
        // Few rows stay together with the last of them. One loop for both orders was compiled to less.
        if strided.rows <= PANEL_ROWS {
            for columns in column_parts() {
                for rows in row_parts() {
                    // SAFETY: some rows and columns of the matrix.
                    unsafe { strided.transpose::<B>(rows, columns, source, destination) };
                }
            }
            return;
        }
        for rows in row_parts() {
            for columns in column_parts() {
                // SAFETY: as above.
                unsafe { strided.transpose::<B>(rows, columns, source, destination) };
            }
        }
    }

    /// Transposes some rows, from number `first` on, into columns in memory, so many that are so far apart.
    ///
    /// # Safety
    ///
    /// As [`transpose_panel_to_caches`]. The rows are those of the matrix; if columns share no places, each is so far from
    /// the one before it as is said.
    #[inline(always)]
    pub(super) unsafe fn transpose_to_memory<B: Block>(
        &self,
        (first, rows): (usize, &[usize]),
        (in_memory, pitch): (&[usize], usize),
        scratch: &mut B::Scratch,
        source: *const u8,
        memory: *mut u8,
    ) {
        let [high, wide] = const { block_size::<B>() };
        // Squares of bytes are as quick.
        if const { has_short_vectors::<B>() }
            && high > 0
            && B::WIDTH > 1
            && rows.len().is_multiple_of(high)
            && in_memory.len().is_multiple_of(wide)
            && rows.len() <= STARTS * high
            && in_memory.len() <= STARTS * wide
            && let Some(strides) = self.row.strides(high, first, rows.len())
        {
            let mut tables = [[0; STARTS]; 2];
            let [row_starts, column_starts] = &mut tables;
            let (row_starts, column_starts) =
                (firsts(rows, high, row_starts), firsts(in_memory, wide, column_starts));
            let in_memory = Strides::even(pitch);
            // SAFETY: the same rows and columns.
            unsafe {
                transpose_panel::<B>(
                    BlockStarts { starts: row_starts, strides },
                    BlockStarts { starts: column_starts, strides: in_memory },
                    Visits {
                        order: Order::ByRows,
                        has_crowded_blocks: self.has_crowded_blocks::<B>(),
                        blocks_along: 1,
                    },
                    source,
                    memory,
                );
            };
            return;
        }
        // SAFETY: by the contract of this function.
        unsafe {
            transpose_panel_to_caches::<B>(rows, in_memory, Order::ByRows, scratch, source, memory);
        };
    }
}

impl Strided {
    /// Transposes so many blocks of rows, from that row on, and so many of columns.
    ///
    /// # Safety
    ///
    /// The matrix is at these places, and has them; these are of the same `B`. The CPU has its vectors.
    #[inline(always)]
    unsafe fn transpose<B: Block>(
        &self,
        (first_row, high): (usize, usize),
        (first_column, wide): (usize, usize),
        source: *const u8,
        destination: *mut u8,
    ) {
        let [rows_of_block, columns_of_block] = const { block_size::<B>() };
        let ((row, row_strides), (column, column_strides)) = (self.row, self.column);
        let (mut row_starts, mut column_starts) = ([0; STARTS], [0; STARTS]);
        let (row_starts, column_starts) = (&mut row_starts[..high], &mut column_starts[..wide]);
        row.starts(rows_of_block, first_row, row_starts);
        column.starts(columns_of_block, first_column, column_starts);
        // SAFETY: by the contract of this function.
        unsafe {
            transpose_panel::<B>(
                BlockStarts { starts: row_starts, strides: row_strides },
                BlockStarts { starts: column_starts, strides: column_strides },
                self.visits,
                source.wrapping_add(first_column * B::WIDTH),
                destination.wrapping_add(first_row * B::DESTINATION_WIDTH),
            );
        };
    }
}

/// The first of each so many places, in a table that has room for them.
#[inline(always)]
fn firsts<'a>(places: &[usize], size: usize, starts: &'a mut [usize; STARTS]) -> &'a [usize] {
    for (start, &place) in starts.iter_mut().zip(places.iter().step_by(size)) {
        *start = place;
    }
    &starts[..places.len() / size]
}

/// Transposes a panel with ordinary stores: the lines of columns are finished first, but those of rows where these are
/// crowded.
///
/// # Safety
///
/// Of each start, there are as many rows or columns as a block of `B` [at strides](Block::AtStrides) has. In each row as many
/// elements as there are columns can be read, in each column as many as there are rows be written. The CPU has the vectors of
/// `B`.
#[inline(always)]
unsafe fn transpose_panel<B: Block>(
    rows: BlockStarts<'_>,
    columns: BlockStarts<'_>,
    visits: Visits,
    source: *const u8,
    destination: *mut u8,
) {
    if rows.strides.are_even() && columns.strides.are_even() {
        // SAFETY: the same contract.
        unsafe { panel::<B, true>(rows, columns, visits, source, destination) };
    } else {
        // SAFETY: as above.
        unsafe { panel::<B, false>(rows, columns, visits, source, destination) };
    }
}

/// The same, of blocks that are all at one stride on both sides, if they are `EVEN`.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn panel<B: Block, const EVEN: bool>(
    rows: BlockStarts<'_>,
    columns: BlockStarts<'_>,
    visits: Visits,
    source: *const u8,
    destination: *mut u8,
) {
    let [width, height] = const { sizes::<B>() };
    // What a block of `B` has comes before the next ones. Prefetchers tell rows from each other by the instructions that read
    // them: where these are unrolled, they fetch more than there is of a panel. So how many they are is not known here.
    let [near_columns, near_rows] = black_box(const { counts::<B>() });
    let (some_rows, some_columns) = match visits.order {
        Order::ByColumns => (rows.starts.len(), visits.blocks_along),
        _ => (near_rows, columns.starts.len()),
    };
    let mut to = destination;
    for row_starts in rows.starts.chunks(some_rows) {
        let mut from = source;
        for column_starts in columns.starts.chunks(some_columns) {
            let mut to = to;
            for row_starts in row_starts.chunks(near_rows) {
                let rows = BlockStarts { starts: row_starts, ..rows };
                let columns = BlockStarts { starts: column_starts, ..columns };
                if visits.has_crowded_blocks {
                    // SAFETY: a part of the panel.
                    unsafe { rows_of_lines::<B, EVEN>(rows, columns, near_columns, from, to) };
                } else {
                    // SAFETY: as above.
                    unsafe { columns_of_lines::<B, EVEN>(rows, columns, from, to) };
                }
                to = to.wrapping_add(near_rows * height);
            }
            from = from.wrapping_add(some_columns * width);
        }
        to = to.wrapping_add(some_rows * height);
    }
}

/// Transposes a panel column by column.
///
/// # Safety
///
/// As [`transpose_panel`].
#[inline(always)]
pub(super) unsafe fn transpose_by_columns<B: Block>(
    rows: BlockStarts<'_>,
    columns: BlockStarts<'_>,
    source: *const u8,
    destination: *mut u8,
) {
    if rows.strides.are_even() && columns.strides.are_even() {
        // SAFETY: the same contract.
        unsafe { columns_of_lines::<B, true>(rows, columns, source, destination) };
    } else {
        // SAFETY: as above.
        unsafe { columns_of_lines::<B, false>(rows, columns, source, destination) };
    }
}

/// Transposes a part of a panel, column by column.
///
/// # Safety
///
/// As [`transpose_panel`].
#[inline(always)]
unsafe fn columns_of_lines<B: Block, const EVEN: bool>(
    rows: BlockStarts<'_>,
    columns: BlockStarts<'_>,
    source: *const u8,
    destination: *mut u8,
) {
    let [width, height] = const { sizes::<B>() };
    let mut from = source;
    for &column in columns.starts {
        let mut to = destination.wrapping_add(column);
        for &row in rows.starts {
            // What goes on is not known here, or the places of all columns would be kept, for which registers are few.
            let (from, here) = (from.wrapping_add(row), black_box(to));
            // SAFETY: a block of the rows and columns.
            unsafe { B::AtStrides::transpose::<EVEN>(from, rows.strides, here, columns.strides) };
            to = to.wrapping_add(height);
        }
        from = from.wrapping_add(width);
    }
}

/// The same row by row, of so many columns at a time.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn rows_of_lines<B: Block, const EVEN: bool>(
    rows: BlockStarts<'_>,
    columns: BlockStarts<'_>,
    some_columns: usize,
    source: *const u8,
    destination: *mut u8,
) {
    let [width, height] = const { sizes::<B>() };
    let mut from = source;
    for column_starts in columns.starts.chunks(some_columns) {
        let mut to = destination;
        for &row in rows.starts {
            let mut from = from.wrapping_add(row);
            for &column in column_starts {
                // As in columns, of rows.
                let (here, to) = (black_box(from), to.wrapping_add(column));
                // SAFETY: a block of the rows and columns.
                unsafe { B::AtStrides::transpose::<EVEN>(here, rows.strides, to, columns.strides) };
                from = from.wrapping_add(width);
            }
            to = to.wrapping_add(height);
        }
        from = from.wrapping_add(some_columns * width);
    }
}

/// Whether vectors are shorter than a line.
pub(super) const fn has_short_vectors<B: Block>() -> bool {
    <B::Vector as Vector>::BYTES < LINE
}

/// Whether elements are narrower than words.
const fn is_narrow<B: Block>() -> bool {
    B::WIDTH < 4
}

/// The rows and columns of such a block of `B`, none if it has none. Columns that share places are not at strides.
pub(super) const fn block_size<B: Block>() -> [usize; 2] {
    if B::WAYS == 1 { [B::AtStrides::ROWS, B::AtStrides::COLUMNS] } else { [0, 0] }
}

/// The bytes of its rows, and of its columns.
const fn sizes<B: Block>() -> [usize; 2] {
    let [high, wide] = block_size::<B>();
    [wide * B::WIDTH, high * B::DESTINATION_WIDTH]
}

/// How many such a block of `B` has, along its columns and along its rows.
const fn counts<B: Block>() -> [usize; 2] {
    match block_size::<B>() {
        [0, _] | [_, 0] => [1, 1],
        [high, wide] => [B::COLUMNS / wide, B::ROWS / high],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Strip, portable, turn};

    /// Blocks that have as many rows and columns as a vector of 16 bytes has words.
    type Words = turn::StoredLines<portable::V, turn::Whole, 4, 32, 4, 1, 32>;
    type Bytes = turn::Squares<portable::V, 1, false>;

    fn matrix(row: Split, column: Split) -> Matrix {
        Matrix { rows: 128, columns: 126, row, column, others: Strip::default() }
    }

    #[test]
    fn tiles_go_by_blocks_at_strides() {
        let rows = Split::at_stride(4000);
        // Of tiles that have so many rows, a step from each other: all columns, or those of whole blocks; none of tiles of three.
        let of = |block, step| {
            let found = matrix(rows, Split::at_stride(512).in_blocks(block, step));
            let words = found.at_strides::<Words>().map(|found| (found.rows, found.columns));
            (words, found.at_strides::<Bytes>().map(|found| (found.rows, found.columns)))
        };
        assert_eq!(of(usize::MAX, 0), (Some((128, 126)), Some((128, 126))));
        for block in [1, 2, 4] {
            assert_eq!(of(block, 4096), (Some((128, 124)), Some((128, 112))), "{block}");
        }
        assert_eq!(of(8, 20480), (Some((128, 124)), None));
        assert_eq!(of(32, 20480), (Some((128, 124)), Some((128, 112))));
        assert_eq!(of(3, 4096), (None, None));
        // Of so few, groups of which no whole block is at one step.
        let groups = Split::at_stride(512).in_blocks(2, 4096).in_groups(3, 99_999);
        assert!(matrix(rows, groups).at_strides::<Words>().is_none());
    }

    #[test]
    fn crowded_sides_decide_on_the_way() {
        let visits = |row, column: Split| {
            let found = matrix(Split::at_stride(row), column);
            let strided = found.at_strides::<Words>().unwrap();
            let has = found.has_most_crowded_rows::<Words>();
            (strided.visits.order == Order::ByColumns, has)
        };
        // Pairs of columns at pages, and rows that are not.
        let pairs = Split::at_stride(512).in_blocks(2, 4096);
        assert_eq!(visits(1000, pairs), (true, false));
        assert_eq!(visits(1000, Split::at_stride(96)), (false, false));
        // Rows at pages, and columns as well, of which words are better made apart, bytes not.
        let page = Split::at_stride(4096);
        assert_eq!(visits(4096, Split::at_stride(96)), (false, true));
        assert_eq!(visits(4096, page), (false, false));
        assert!(matrix(page, page).has_most_crowded_rows::<Bytes>());
        assert!(!matrix(Split::at_stride(1000), page).has_most_crowded_rows::<Bytes>());
    }

    #[test]
    fn crowded_columns_alone_are_finished_a_few_at_a_time() {
        let pairs = Split::at_stride(512).in_blocks(2, 4096);
        let along = |row, column| {
            let found = matrix(Split::at_stride(row), column).at_strides::<Words>();
            found.map(|found| (found.visits.order == Order::ByColumns, found.visits.blocks_along))
        };
        // Of four blocks along a line, one, or all of them where rows are crowded as well, or columns have room.
        assert_eq!(along(640, pairs), Some((true, 1)));
        assert_eq!(along(4096, pairs), Some((false, 4)));
        assert_eq!(along(640, Split::at_stride(512)), Some((false, 4)));
        // Tables are kept for vectors of a line otherwise.
        #[cfg(target_arch = "x86_64")]
        {
            use crate::x86::avx512::V;
            type Long = turn::Vectors<V, turn::Whole, 16, 32, 4, 1, 32>;
            let is_at_strides = |row, column| {
                let found = matrix(Split::at_stride(row), column).at_strides::<Long>();
                found.map(|found| (found.rows, found.columns, found.visits.blocks_along))
            };
            assert_eq!(is_at_strides(640, pairs), Some((128, 120, 1)));
            assert_eq!(is_at_strides(4096, pairs), None);
            assert_eq!(is_at_strides(640, Split::at_stride(512)), None);
        }
    }

    #[test]
    fn blocks_at_strides_are_those_of_a_table() {
        let mut checked = [0; 5];
        let blocks = [(1, 500), (2, 500), (4, 500), (4, 40), (8, 1000), (24, 240), (20, 999)];
        let blocks = blocks.into_iter().chain([(usize::MAX, 0)]);
        let groups = [(2, 5000), (3, 3000), (4, 2000), (2, 480), (usize::MAX, 0)];
        for ((block, step), (group, group_step)) in
            blocks.flat_map(|block| groups.map(|group| (block, group)))
        {
            let split = Split::at_stride(10).in_blocks(block, step).in_groups(group, group_step);
            let mut places = [0; 96];
            split.places(1, 0, &mut places);
            for (size, first, count) in [2, 4, 8, 16, 32].into_iter().flat_map(|size| {
                [(0, 96), (0, 20), (8, 40), (3, 24), (88, 8), (64, 32)]
                    .map(|(first, count)| (size, first, count))
            }) {
                let Some(strides) = split.strides(size, first, count) else { continue };
                let is_at_step = strides != Strides::even(10);
                checked[if is_at_step { split.block } else { 0 }] += 1;
                let places = &places[first..first + count / size * size];
                for block in places.chunks(size) {
                    let expected: Vec<usize> =
                        (0..size).map(|i| block[0] + strides.at::<false>(i)).collect();
                    assert_eq!(block, expected, "{size} of blocks of {}", split.block);
                }
                let expected: Vec<usize> = places.iter().copied().step_by(size).collect();
                let (mut table, mut starts) = ([0; STARTS], vec![0; expected.len()]);
                if expected.len() <= STARTS {
                    assert_eq!(firsts(places, size, &mut table), expected);
                }
                split.evened(first + count).starts(size, first, &mut starts);
                assert_eq!(starts, expected, "{size} of blocks of {block}, {group}");
            }
        }
        assert!([0, 1, 2, 4].iter().all(|&block| checked[block] > 20), "{checked:?}");
    }

    #[test]
    fn parts_are_all_blocks_and_one_that_ends_there() {
        for (count, size, most) in
            (1..400).flat_map(|count| [(count, 8, 8..=10), (count, 4, 24..=30), (count, 16, 4..=4)])
        {
            let mut visits = vec![0; count];
            if count < size {
                continue;
            }
            for (first, blocks) in parts((count, size), most.clone()) {
                assert!((1..=*most.end()).contains(&blocks));
                visits[first..first + blocks * size].iter_mut().for_each(|n| *n += 1);
            }
            assert!(visits.iter().all(|&n| n > 0), "{count}, {size}");
            assert!(visits[..count - size].iter().all(|&n| n == 1), "{count}, {size}");
        }
    }
}
