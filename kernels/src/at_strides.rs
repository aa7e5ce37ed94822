//! Transposes of blocks whose rows are at one stride, and whose columns are; or those of a group are, and groups are at a step.
//!
//! Where a block's rows and columns begin is found from two places and their strides, which stay in registers. Tables
//! of all places take a load for each row and each column, and so much of what a CPU keeps of its instructions under way
//! that half as many blocks are: within the caches these are up to a third quicker for words (docs/performance.md).

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::hint::black_box;

use super::crowded::{L1_SETS, ROOM};
use super::matrix::{
    Block, Matrix, Order, PANEL_COLUMNS, PANEL_COLUMNS_FAR, PANEL_ROWS, transpose_panel_to_caches,
};
use super::places::{Cursor, Split};

/// From the first row of a block to the others, or from the first column: those of a group are at a stride, and groups at
/// a step. A group is the elements of a word, or some rows of words.
#[derive(Clone, Copy)]
pub(super) struct Strides {
    pub(super) stride: usize,
    pub(super) step: usize,
}

impl Strides {
    /// All at one stride, so many to a group.
    #[inline(always)]
    pub(super) fn even(stride: usize, in_group: usize) -> Strides {
        Strides { stride, step: stride.wrapping_mul(in_group) }
    }

    #[inline(always)]
    fn are_even(self, in_group: usize) -> bool {
        self.step == self.stride.wrapping_mul(in_group)
    }
}

/// Where some rows or columns begin: the first ones of blocks, and from there to the others.
#[derive(Clone, Copy)]
struct AtStrides<'a> {
    starts: &'a [usize],
    strides: Strides,
}

/// Narrow elements are gone along farther.
const PANEL_COLUMNS_NARROW: usize = 256;

/// So many blocks have room in a table of their starts, and so many are done at a time. The last ones take what is too
/// little for as many of its own.
const STARTS: usize = 32;
const MOST_BLOCKS: usize = STARTS / 5 * 4;
const _: () = assert!(MOST_BLOCKS + MOST_BLOCKS / 4 <= STARTS, "there is room for the last ones");

/// So many rows or columns, each block of so many, so many blocks at a time or as many as there is room for: from which
/// number on, and how many blocks. What is left at the end is a block that ends there.
#[inline(always)]
fn parts((count, size, most): (usize, usize, usize)) -> impl Iterator<Item = (usize, usize)> {
    let most = most.min(MOST_BLOCKS);
    let (blocks, mut next) = (count / size, 0);
    let whole = std::iter::from_fn(move || {
        let (first, left) = (next, blocks - next);
        let some = if left <= most + most / 4 { left } else { most };
        next += some;
        (some > 0).then_some((first * size, some))
    });
    let is_left = !count.is_multiple_of(size);
    whole.chain(is_left.then(|| (count - size, 1)))
}

impl Split {
    /// From the first of each `size` places to the others, where some places are such, so many from number `first` on: all,
    /// or whole blocks of so many. A group has so many of them.
    #[inline(always)]
    fn strides(self, size: usize, in_group: usize, first: usize, count: usize) -> Option<Strides> {
        if self.is_even(first + count) {
            return Some(Strides::even(self.stride, in_group));
        }
        let is_whole = |n: usize| n.is_multiple_of(size);
        if !is_whole(first) || !is_whole(count) {
            return None;
        }
        if is_whole(self.block) {
            return Some(Strides::even(self.stride, in_group));
        }
        let are_groups = self.block == in_group
            && (self.group.is_multiple_of(size / in_group) || self.has_even_blocks(first + count));
        are_groups.then_some(Strides { stride: self.stride, step: self.step })
    }

    /// How many of so many places are [at strides](Split::strides), in blocks of `size`: all, whole blocks, or none.
    #[inline(always)]
    fn at_strides(self, size: usize, in_group: usize, count: usize) -> usize {
        let whole = if self.is_even(count) { count } else { count / size * size };
        if count >= size && self.strides(size, in_group, 0, whole).is_some() { whole } else { 0 }
    }

    /// The places of the first ones of blocks of `size`, from number `first` on, which [are at strides](Split::strides).
    #[inline(always)]
    fn starts(self, size: usize, first: usize, starts: &mut [usize]) {
        let mut next = Cursor::at(self, first);
        for start in starts {
            *start = next.place;
            next.skip(self, size);
        }
    }
}

impl Matrix {
    /// How many rows and columns are in blocks [at strides](Block::AT_STRIDES): all, whole blocks, or none if not both are.
    #[inline(always)]
    pub(super) fn at_strides<B: Block>(&self) -> (usize, usize) {
        let [high, wide] = B::AT_STRIDES;
        if high == 0 {
            return (0, 0);
        }
        let rows = self.row.at_strides(high, B::IN_GROUP, self.rows);
        let columns = self.column.at_strides(wide, B::IN_GROUP, self.columns);
        if rows.min(columns) > 0 { (rows, columns) } else { (0, 0) }
    }

    /// Whether the rows of a block, a line each, share few sets of L1.
    #[inline(always)]
    fn has_crowded_blocks<B: Block>(&self) -> bool {
        self.row.crowd(B::ROWS, L1_SETS) > ROOM
    }

    /// Whether blocks at strides, of narrow elements, finish the lines of so few columns at a time that L1 has room for them.
    #[inline(always)]
    pub(super) fn finishes_few_columns<B: Block>(&self) -> bool {
        let [_, wide] = B::AT_STRIDES;
        let is_narrow = const { is_narrow::<B>() };
        is_narrow && self.column.crowd(wide, L1_SETS) <= ROOM && !self.has_crowded_blocks::<B>()
    }

    /// Transposes so many rows and columns of a matrix, which are [those at strides](Matrix::at_strides), with ordinary
    /// stores.
    ///
    /// # Safety
    ///
    /// The matrix is at these places, and has so many. The CPU has the vectors of `B`.
    #[inline(always)]
    pub(super) unsafe fn transpose_at_strides<B: Block>(
        &self,
        (rows, columns): (usize, usize),
        source: *const u8,
        destination: *mut u8,
    ) {
        let [high, wide] = B::AT_STRIDES;
        let row_strides = self.row.strides(high, B::IN_GROUP, 0, rows);
        let column_strides = self.column.strides(wide, B::IN_GROUP, 0, columns);
        let (Some(row_strides), Some(column_strides)) = (row_strides, column_strides) else {
            return;
        };
        let order = if self.others.goes_by_columns() { Order::ByColumns } else { Order::ByRows };
        let panels = Panels {
            row: (self.row.evened(rows), row_strides),
            column: (self.column.evened(columns), column_strides),
            order: (order, self.has_crowded_blocks::<B>()),
        };
        let along = if const { is_narrow::<B>() } {
            PANEL_COLUMNS_NARROW
        } else if self.has_far_crowded_rows::<B>() {
            PANEL_COLUMNS_FAR
        } else {
            PANEL_COLUMNS
        };
        let row_parts = (rows, high, PANEL_ROWS / high);
        let column_parts = (columns, wide, along / wide);
        // Few rows stay together with the last of them. One loop for both orders was compiled to less.
        if rows <= PANEL_ROWS {
            for columns in parts(column_parts) {
                for rows in parts(row_parts) {
                    // SAFETY: some rows and columns of the matrix.
                    unsafe { panels.transpose::<B>(rows, columns, source, destination) };
                }
            }
            return;
        }
        for rows in parts(row_parts) {
            for columns in parts(column_parts) {
                // SAFETY: as above.
                unsafe { panels.transpose::<B>(rows, columns, source, destination) };
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
        let [high, wide] = B::AT_STRIDES;
        // Squares of bytes are as quick.
        if high > 0
            && B::WIDTH > 1
            && rows.len().is_multiple_of(high)
            && in_memory.len().is_multiple_of(wide)
            && rows.len() <= STARTS * high
            && in_memory.len() <= STARTS * wide
            && let Some(strides) = self.row.strides(high, B::IN_GROUP, first, rows.len())
        {
            debug_assert_eq!(B::WAYS, 1, "columns share no places");
            let mut tables = [[0; STARTS]; 2];
            let [row_starts, column_starts] = &mut tables;
            let (row_starts, column_starts) =
                (firsts(rows, high, row_starts), firsts(in_memory, wide, column_starts));
            let in_memory = Strides::even(pitch, B::IN_GROUP);
            // SAFETY: the same rows and columns.
            unsafe {
                transpose_panel::<B>(
                    AtStrides { starts: row_starts, strides },
                    AtStrides { starts: column_starts, strides: in_memory },
                    (Order::ByRows, self.has_crowded_blocks::<B>()),
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

/// The panels of a matrix whose rows and columns are at strides.
struct Panels {
    row: (Split, Strides),
    column: (Split, Strides),
    order: (Order, bool),
}

impl Panels {
    /// Transposes so many blocks of rows, from that row on, and so many of columns.
    ///
    /// # Safety
    ///
    /// The matrix is at these places, and has them. The CPU has the vectors of `B`.
    #[inline(always)]
    unsafe fn transpose<B: Block>(
        &self,
        (first_row, high): (usize, usize),
        (first_column, wide): (usize, usize),
        source: *const u8,
        destination: *mut u8,
    ) {
        let [rows_of_block, columns_of_block] = B::AT_STRIDES;
        let ((row, row_strides), (column, column_strides)) = (self.row, self.column);
        let (mut row_starts, mut column_starts) = ([0; STARTS], [0; STARTS]);
        let (row_starts, column_starts) = (&mut row_starts[..high], &mut column_starts[..wide]);
        row.starts(rows_of_block, first_row, row_starts);
        column.starts(columns_of_block, first_column, column_starts);
        // SAFETY: by the contract of this function.
        unsafe {
            transpose_panel::<B>(
                AtStrides { starts: row_starts, strides: row_strides },
                AtStrides { starts: column_starts, strides: column_strides },
                self.order,
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
/// Of each start, there are as many rows or columns as `B` has [at strides](Block::AT_STRIDES). In each row as many elements
/// as there are columns can be read, in each column as many as there are rows be written. The CPU has the vectors of `B`.
#[inline(always)]
unsafe fn transpose_panel<B: Block>(
    rows: AtStrides<'_>,
    columns: AtStrides<'_>,
    (order, has_crowded_blocks): (Order, bool),
    source: *const u8,
    destination: *mut u8,
) {
    if rows.strides.are_even(B::IN_GROUP) && columns.strides.are_even(B::IN_GROUP) {
        // SAFETY: the same contract.
        unsafe {
            panel::<B, true>(rows, columns, (order, has_crowded_blocks), source, destination)
        };
    } else {
        // SAFETY: as above.
        unsafe {
            panel::<B, false>(rows, columns, (order, has_crowded_blocks), source, destination);
        };
    }
}

/// The same, of blocks that are all at one stride on both sides, if they are `EVEN`.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn panel<B: Block, const EVEN: bool>(
    rows: AtStrides<'_>,
    columns: AtStrides<'_>,
    (order, has_crowded_blocks): (Order, bool),
    source: *const u8,
    destination: *mut u8,
) {
    let [width, height] = const { sizes::<B>() };
    // What a block of `B` has comes before the next ones. Prefetchers tell rows from each other by the instructions that read
    // them: where these are unrolled, they fetch more than there is of a panel. So how many they are is not known here.
    let [near_columns, near_rows] = black_box(const { counts::<B>() });
    let (some_rows, some_columns) = match order {
        Order::ByColumns => (rows.starts.len(), near_columns),
        _ => (near_rows, columns.starts.len()),
    };
    let mut to = destination;
    for row_starts in rows.starts.chunks(some_rows) {
        let mut from = source;
        for column_starts in columns.starts.chunks(some_columns) {
            let mut to = to;
            for row_starts in row_starts.chunks(near_rows) {
                let rows = AtStrides { starts: row_starts, ..rows };
                let columns = AtStrides { starts: column_starts, ..columns };
                if has_crowded_blocks {
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

/// Transposes a part of a panel, column by column.
///
/// # Safety
///
/// As [`transpose_panel`].
#[inline(always)]
unsafe fn columns_of_lines<B: Block, const EVEN: bool>(
    rows: AtStrides<'_>,
    columns: AtStrides<'_>,
    source: *const u8,
    destination: *mut u8,
) {
    let [width, height] = const { sizes::<B>() };
    let mut from = source;
    for &column in columns.starts {
        let mut to = destination.wrapping_add(column);
        for &row in rows.starts {
            let from = from.wrapping_add(row);
            // SAFETY: a block of the rows and columns.
            unsafe { B::transpose_at_strides::<EVEN>(from, rows.strides, to, columns.strides) };
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
    rows: AtStrides<'_>,
    columns: AtStrides<'_>,
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
                let to = to.wrapping_add(column);
                // SAFETY: a block of the rows and columns.
                unsafe { B::transpose_at_strides::<EVEN>(from, rows.strides, to, columns.strides) };
                from = from.wrapping_add(width);
            }
            to = to.wrapping_add(height);
        }
        from = from.wrapping_add(some_columns * width);
    }
}

/// Whether elements are narrower than words.
const fn is_narrow<B: Block>() -> bool {
    B::WIDTH < 4
}

/// The bytes of the rows of a block at strides, and of its columns.
const fn sizes<B: Block>() -> [usize; 2] {
    let [high, wide] = B::AT_STRIDES;
    [wide * B::WIDTH, high * B::DESTINATION_WIDTH]
}

/// How many such a block of `B` has, along its columns and along its rows.
const fn counts<B: Block>() -> [usize; 2] {
    match B::AT_STRIDES {
        [0, _] | [_, 0] => [1, 1],
        [high, wide] => [B::COLUMNS / wide, B::ROWS / high],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_at_strides_are_those_of_a_table() {
        let mut checked = [0; 2];
        let blocks = [(1, 500), (2, 500), (4, 500), (4, 40), (8, 1000), (24, 240), (20, 999)];
        let blocks = blocks.into_iter().chain([(usize::MAX, 0)]);
        let groups = [(2, 5000), (3, 3000), (4, 2000), (2, 480), (usize::MAX, 0)];
        for ((block, step), (group, group_step)) in
            blocks.flat_map(|block| groups.map(|group| (block, group)))
        {
            let split = Split::at_stride(10).in_blocks(block, step).in_groups(group, group_step);
            let mut places = [0; 96];
            split.places(1, 0, &mut places);
            let sizes = [(2, 1), (4, 1), (8, 1), (8, 2), (16, 2), (16, 4), (32, 4)];
            for (size, in_group, first, count) in sizes.into_iter().flat_map(|(size, in_group)| {
                [(0, 96), (0, 20), (8, 40), (3, 24), (88, 8), (64, 32)]
                    .map(|(first, count)| (size, in_group, first, count))
            }) {
                let Some(strides) = split.strides(size, in_group, first, count) else { continue };
                checked[usize::from(strides.step != in_group * 10)] += 1;
                let places = &places[first..first + count / size * size];
                for block in places.chunks(size) {
                    let place = |i| i / in_group * strides.step + i % in_group * strides.stride;
                    let expected: Vec<usize> = (0..size).map(|i| block[0] + place(i)).collect();
                    assert_eq!(block, expected, "{size} in groups of {in_group}");
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
        assert!(checked.iter().all(|&n| n > 50), "{checked:?}");
    }

    #[test]
    fn parts_are_all_blocks_and_one_that_ends_there() {
        for (count, size, most) in
            (1..400).flat_map(|count| [(count, 8, 8), (count, 4, 24), (count, 16, 16)])
        {
            let mut visits = vec![0; count];
            if count < size {
                continue;
            }
            for (first, blocks) in parts((count, size, most)) {
                assert!((1..=most + most / 4).contains(&blocks));
                visits[first..first + blocks * size].iter_mut().for_each(|n| *n += 1);
            }
            assert!(visits.iter().all(|&n| n > 0), "{count}, {size}");
            assert!(visits[..count - size].iter().all(|&n| n == 1), "{count}, {size}");
        }
    }
}
