//! Transposes of rows and columns that are at one stride for as many as a block has.
//!
//! Where a block's rows begin, and its columns, is found from two places and two strides, which stay in registers. Tables
//! of all places take a load for each row and each column, and so much room in the order that a CPU keeps of its
//! instructions that half as many blocks are under way at a time: within the caches they are a third slower.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::hint::black_box;

use super::crowded::L1_SETS;
use super::matrix::{
    Block, Matrix, Order, PANEL_COLUMNS, PANEL_COLUMNS_FAR, PANEL_ROWS, transpose_panel_to_caches,
};
use super::places::{Cursor, Split};

/// Where some rows or columns begin, as many of which as a block has are at one stride: the first of each block.
#[derive(Clone, Copy)]
pub(super) struct AtStride<'a> {
    pub(super) starts: &'a [usize],
    pub(super) stride: usize,
}

/// So many blocks have room in a table of their starts.
const STARTS: usize = 32;

impl Split {
    /// Whether some of them are whole blocks of so many that are at one stride each: so many from number `first` on, or
    /// any, if they begin and end with such blocks.
    #[inline(always)]
    fn is_at_strides(self, size: usize, first: usize, count: usize) -> bool {
        let are_blocks = self.block.is_multiple_of(size) && first.is_multiple_of(size);
        (are_blocks || self.is_even(first + count)) && count.is_multiple_of(size)
    }
}

impl Cursor {
    /// The places of each first one of so many that are [at one stride](Split::is_at_strides).
    #[inline(always)]
    pub(super) fn starts(&mut self, split: Split, size: usize, starts: &mut [usize]) {
        for start in starts {
            *start = self.place;
            self.skip(split, size);
        }
    }
}

impl Matrix {
    /// How many rows and columns are whole blocks [at strides](Block::AT_STRIDES): none, if not both are.
    #[inline(always)]
    pub(super) fn at_strides<B: Block>(&self) -> (usize, usize) {
        let size = B::AT_STRIDES;
        if size == 0 {
            return (0, 0);
        }
        let (rows, columns) = (self.rows / size * size, self.columns / size * size);
        let are_there = self.row.is_at_strides(size, 0, rows)
            && self.column.is_at_strides(size, 0, columns)
            && rows.min(columns) > 0;
        if are_there { (rows, columns) } else { (0, 0) }
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
        let size = B::AT_STRIDES;
        let (row, column) = (self.row.evened(rows), self.column.evened(columns));
        let (rows, columns) = (rows / size, columns / size);
        let order = if self.others.goes_by_columns() { Order::ByColumns } else { Order::ByRows };
        let along =
            if self.has_far_crowded_rows::<B>() { PANEL_COLUMNS_FAR } else { PANEL_COLUMNS };
        // Of blocks. The last panel takes what is too little for one of its own.
        let panel_rows = (PANEL_ROWS / size).min(STARTS);
        let panel_columns = (along / size).min(STARTS / 5 * 4);
        let (mut row_starts, mut column_starts) = ([0; STARTS], [0; STARTS]);
        let mut next_row = Cursor::at(row, 0);
        let mut destination = destination;
        for first_row in (0..rows).step_by(panel_rows) {
            let row_starts = &mut row_starts[..panel_rows.min(rows - first_row)];
            next_row.starts(row, size, row_starts);
            let mut next_column = Cursor::at(column, 0);
            let mut first_column = 0;
            while first_column < columns {
                let left = columns - first_column;
                let count = if left <= panel_columns / 4 * 5 { left } else { panel_columns };
                let column_starts = &mut column_starts[..count];
                next_column.starts(column, size, column_starts);
                // SAFETY: some rows and columns of the matrix.
                unsafe {
                    transpose_panel_at_strides::<B>(
                        AtStride { starts: row_starts, stride: row.stride },
                        AtStride { starts: column_starts, stride: column.stride },
                        order,
                        source.wrapping_add(first_column * size * B::WIDTH),
                        destination,
                    );
                };
                first_column += count;
            }
            destination = destination.wrapping_add(row_starts.len() * size * B::DESTINATION_WIDTH);
        }
    }

    /// Transposes some rows, from number `first` on, into columns in memory, so many that are so far apart.
    ///
    /// # Safety
    ///
    /// As [`transpose_panel_to_caches`].
    #[inline(always)]
    pub(super) unsafe fn transpose_to_memory<B: Block>(
        &self,
        (first, rows): (usize, &[usize]),
        (in_memory, pitch): (&[usize], usize),
        scratch: &mut B::Scratch,
        source: *const u8,
        memory: *mut u8,
    ) {
        let size = B::AT_STRIDES;
        if size > 0
            && self.row.is_at_strides(size, first, rows.len())
            && in_memory.len().is_multiple_of(size)
            && rows.len().max(in_memory.len()) <= STARTS * size
        {
            let mut starts = [[0; STARTS]; 2];
            let [row_starts, column_starts] = &mut starts;
            // SAFETY: the same rows and columns.
            unsafe {
                transpose_panel_at_strides::<B>(
                    AtStride { starts: firsts(rows, size, row_starts), stride: self.row.stride },
                    AtStride { starts: firsts(in_memory, size, column_starts), stride: pitch },
                    Order::ByRows,
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

/// The first of each so many places, in a table that has room for them.
#[inline(always)]
fn firsts<'a>(places: &[usize], size: usize, starts: &'a mut [usize; STARTS]) -> &'a [usize] {
    for (start, &place) in starts.iter_mut().zip(places.iter().step_by(size)) {
        *start = place;
    }
    &starts[..places.len() / size]
}

/// Transposes a panel with ordinary stores.
///
/// # Safety
///
/// Of each start, there are as many rows or columns [at strides](Block::AT_STRIDES) as a block of `B` has. In each
/// row as many elements as there are columns can be read, in each column as many as there are rows be written. The CPU
/// has the vectors of `B`.
#[inline(always)]
pub(super) unsafe fn transpose_panel_at_strides<B: Block>(
    rows: AtStride<'_>,
    columns: AtStride<'_>,
    order: Order,
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
    // Lines of columns are finished first; but those of rows where all of them share one set of L1.
    let is_crowded = rows.stride.is_multiple_of(L1_SETS);
    let mut to = destination;
    for row_starts in rows.starts.chunks(some_rows) {
        let mut from = source;
        for column_starts in columns.starts.chunks(some_columns) {
            let mut to = to;
            for row_starts in row_starts.chunks(near_rows) {
                let rows = AtStride { starts: row_starts, ..rows };
                let columns = AtStride { starts: column_starts, ..columns };
                if is_crowded {
                    // SAFETY: a part of the panel.
                    unsafe { rows_of_lines::<B>(rows, columns, near_columns, from, to) };
                } else {
                    // SAFETY: as above.
                    unsafe { columns_of_lines::<B>(rows, columns, from, to) };
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
/// As [`transpose_panel_at_strides`].
#[inline(always)]
unsafe fn columns_of_lines<B: Block>(
    rows: AtStride<'_>,
    columns: AtStride<'_>,
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
            unsafe { B::transpose_at_strides(from, rows.stride, to, columns.stride) };
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
unsafe fn rows_of_lines<B: Block>(
    rows: AtStride<'_>,
    columns: AtStride<'_>,
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
                unsafe { B::transpose_at_strides(from, rows.stride, to, columns.stride) };
                from = from.wrapping_add(width);
            }
            to = to.wrapping_add(height);
        }
        from = from.wrapping_add(some_columns * width);
    }
}

/// The bytes of the rows of a block at strides, and of its columns.
const fn sizes<B: Block>() -> [usize; 2] {
    [B::AT_STRIDES * B::WIDTH, B::AT_STRIDES * B::DESTINATION_WIDTH]
}

/// How many such a block of `B` has, along its columns and along its rows.
const fn counts<B: Block>() -> [usize; 2] {
    let size = if B::AT_STRIDES > 0 { B::AT_STRIDES } else { 1 };
    [B::COLUMNS / size, B::ROWS / size]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_at_strides_are_those_of_a_table() {
        let mut checked = 0;
        let blocks = [(8, 1000), (24, 240), (20, 200), (20, 999), (usize::MAX, 0)];
        let groups = [(2, 5000), (3, 3000), (2, 480), (usize::MAX, 0)];
        for ((block, step), (group, group_step)) in
            blocks.into_iter().flat_map(|block| groups.map(|group| (block, group)))
        {
            let split = Split::at_stride(10).in_blocks(block, step).in_groups(group, group_step);
            let mut places = [0; 96];
            split.places(1, 0, &mut places);
            for (size, first, count) in [2, 4, 8].into_iter().flat_map(|size| {
                [(0, 96), (0, 20), (8, 40), (3, 24), (88, 8)]
                    .map(|(first, count)| (size, first, count / size * size))
            }) {
                let places = &places[first..first + count];
                if !split.is_at_strides(size, first, count) {
                    continue;
                }
                checked += 1;
                for block in places.chunks(size) {
                    let is_even = block.windows(2).all(|two| two[1] == two[0].wrapping_add(10));
                    assert!(is_even, "{size} of {block:?}");
                }
                let expected: Vec<usize> = places.iter().copied().step_by(size).collect();
                let mut table = [0; STARTS];
                if count / size <= STARTS {
                    assert_eq!(firsts(places, size, &mut table), expected);
                }
                if first == 0 {
                    let split = split.evened(count);
                    let (mut cursor, mut starts) = (Cursor::at(split, 0), vec![0; count / size]);
                    let (some, others) = starts.split_at_mut(count / size / 3);
                    cursor.starts(split, size, some);
                    cursor.starts(split, size, others);
                    assert_eq!(starts, expected, "{size} of blocks of {block}, {group}");
                }
            }
        }
        assert!(checked > 100, "{checked}");
    }
}
