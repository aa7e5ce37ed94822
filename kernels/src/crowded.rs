//! Transposes whose columns are far apart in the destination, by powers of two or multiples of
//! large ones, so that all of them share a few sets of L1.
//!
//! A block writes a line of each of its columns. Where more of them share a place than it
//! has room for, each line waits for another one to leave. So blocks below each other are
//! made in memory that lies together, and taken from there column by column: the lines of one
//! column have places of their own.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::algorithm::Body;
use super::at_strides::has_short_vectors;
use super::carry::CacheLines;
use super::matrix::{Block, Matrix};
use super::places::Split;
use super::vector::{LINE, PAGE, Vector};
use super::{Place, Strip, scalar};

/// So many lines at least have room at each set of L1 of CPUs of x86-64, and of L2 of those that
/// [have few ways](crate::cpu::Core::has_few_ways).
pub const ROOM: usize = 8;

/// Lines that are a multiple of so many bytes apart share a set of L1 on CPUs of x86-64.
pub(super) const L1_SETS: usize = PAGE;

/// The lines of a column that are made at a time, and the columns: fewer where vectors are a line, unless rows are crowded,
/// too, of which several lines are read at a time then.
const LINES_DOWN: usize = 8;
const FEW_COLUMNS: usize = 16;
const COLUMNS: usize = 64;

/// What they are made in. Between two columns there is a line more, so that these are not crowded.
const PITCH: usize = (LINES_DOWN + 1) * LINE;
type Memory = CacheLines<{ COLUMNS * PITCH / LINE }>;

/// Where the columns begin in it.
const MADE: [usize; COLUMNS] = {
    let mut made = [0; COLUMNS];
    let mut i = 0;
    while i < made.len() {
        made[i] = i * PITCH;
        i += 1;
    }
    made
};

/// A strip of words whose columns [are crowded](Matrix::is_crowded): by a function of its own, as the memory is more
/// than others have to set up.
///
/// # Safety
///
/// As of [`Matrix::transpose_all`].
pub(super) struct Crowded<B>(PhantomData<B>);

impl<B: Block> Body for Crowded<B> {
    #[inline(always)]
    unsafe fn run<V: Vector>(strip: &Strip, _: &[Place], source: *const u8, destination: *mut u8) {
        let matrix = Matrix::of::<B>(strip);
        // SAFETY: by the contract of this function; whoever calls it has the vectors of `B`.
        unsafe { matrix.transpose_all_crowded::<B>(source, destination) };
    }
}

/// Where the rows begin in the source, and the columns in the destination.
struct Tables {
    rows: [usize; LINES_DOWN * LINE],
    places: [usize; COLUMNS],
}

impl Split {
    /// How many of the lines at so many places share a set of a cache whose sets have so many bytes, a line each, at
    /// least.
    #[inline(always)]
    pub(super) fn crowd(self, count: usize, sets: usize) -> usize {
        debug_assert!(sets.is_power_of_two(), "{sets} bytes of sets");
        // A stride has a power of two of places there; so many lines share one of them.
        let share = |count: usize, stride: usize| {
            let places = sets.trailing_zeros().saturating_sub(stride.trailing_zeros());
            (count >> places).max(1)
        };
        let near = share(count.min(self.block), self.stride);
        if self.block >= count {
            return near;
        }
        let blocks = count / self.block;
        let in_group = near * share(blocks.min(self.group), self.step);
        if self.group > blocks {
            return in_group;
        }
        in_group * share(blocks / self.group, self.group_step)
    }
}

impl Matrix {
    /// Whether the columns of a block, which has a vector of each at least, are crowded, and go
    /// on for more than a line. Blocks of words in which columns share their places have too few of
    /// them for that.
    #[inline(always)]
    pub(super) fn is_crowded<B: Block>(&self) -> bool {
        let of_column = const { B::ROWS * B::DESTINATION_WIDTH };
        // A line that is made in parts had better stay until it is whole.
        let parts = LINE.div_ceil(of_column);
        B::WAYS == 1
            && of_column >= B::Vector::BYTES
            && self.rows * B::DESTINATION_WIDTH > LINE
            && self.column.crowd(B::COLUMNS, L1_SETS) * parts > ROOM
    }

    /// Transposes each matrix of the strip, whose columns [are crowded](Matrix::is_crowded), with
    /// ordinary stores.
    ///
    /// # Safety
    ///
    /// The strip begins at these places, and each matrix has at least as many rows and columns as a
    /// block. The CPU has the vectors of `B`.
    #[inline(always)]
    unsafe fn transpose_all_crowded<B: Block>(&self, source: *const u8, destination: *mut u8) {
        let mut scratch = B::scratch();
        let mut memory = MaybeUninit::<Memory>::uninit();
        let mut tables = Tables { rows: [0; LINES_DOWN * LINE], places: [0; COLUMNS] };
        for (source, destination) in scalar::blocks(&self.others, source, destination) {
            let memory = memory.as_mut_ptr();
            // SAFETY: one of the matrices.
            unsafe {
                self.transpose_crowded::<B>(source, destination, &mut tables, memory, &mut scratch);
            };
        }
    }

    /// The same of one matrix.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    unsafe fn transpose_crowded<B: Block>(
        &self,
        source: *const u8,
        destination: *mut u8,
        Tables { rows, places }: &mut Tables,
        memory: *mut Memory,
        scratch: &mut B::Scratch,
    ) {
        const {
            let of_column = B::ROWS * B::DESTINATION_WIDTH;
            // Where columns share places, this is never run, as `is_crowded` says.
            assert!(B::WAYS > 1 || of_column <= LINES_DOWN * LINE, "room for a block");
            assert!(B::COLUMNS <= COLUMNS, "room for their columns");
        }
        debug_assert!(B::WAYS == 1, "no columns that share places");
        let memory = memory.cast::<u8>();
        let most_rows = LINES_DOWN * LINE / B::DESTINATION_WIDTH / B::ROWS * B::ROWS;
        let has_short_vectors = const { has_short_vectors::<B>() };
        let most_columns = if has_short_vectors || self.row.crowd(B::ROWS, L1_SETS) >= ROOM {
            COLUMNS / B::COLUMNS * B::COLUMNS
        } else {
            FEW_COLUMNS.next_multiple_of(B::COLUMNS)
        };
        let mut next_row = 0;
        while next_row < self.rows {
            // What is left at the end is done by blocks that end there.
            let first_row = next_row.min(self.rows - B::ROWS);
            let rows = &mut rows[..most_rows.min(self.rows - first_row)];
            self.row.places(1, first_row, rows);
            next_row = first_row + rows.len();
            let bytes = rows.len() * B::DESTINATION_WIDTH;
            let destination = destination.wrapping_add(first_row * B::DESTINATION_WIDTH);
            let mut next_column = 0;
            while next_column < self.columns {
                let first_column = next_column.min(self.columns - B::COLUMNS);
                let count = most_columns.min(self.columns - first_column);
                next_column = first_column + count;
                let places = &mut places[..count];
                self.column.places(1, first_column, places);
                // SAFETY: some rows and columns of the matrix, at least as many as a block has,
                // to memory that has room for them.
                unsafe {
                    self.transpose_to_memory::<B>(
                        (first_row, rows),
                        (&MADE[..count], PITCH),
                        scratch,
                        source.wrapping_add(first_column * B::WIDTH),
                        memory,
                    );
                };
                // A line of each of the next panel's rows is fetched meanwhile, where vectors are a line.
                let next = source.wrapping_add(next_column * B::WIDTH);
                let is_fetched = !has_short_vectors && next_column < self.columns;
                let fetched = if is_fetched { &*rows } else { &[] };
                let share = rows.len().div_ceil(count);
                for (i, (&made, &place)) in MADE.iter().zip(places.iter()).enumerate() {
                    let (from, to) = (memory.wrapping_add(made), destination.wrapping_add(place));
                    let fetched = fetched.chunks(share).nth(i).unwrap_or_default();
                    // SAFETY: the rows of a column, from where they were made to where they belong; a
                    // block has a vector of them at least.
                    unsafe { copy_column::<B::Vector>(from, to, bytes, next, fetched) };
                }
            }
        }
    }
}

/// Copies so many bytes, the last ones by a vector that ends with them, and fetches a line of each of
/// these rows meanwhile.
///
/// # Safety
///
/// The bytes can be read and written, and are those of a `V` at least. The CPU has `V`.
#[inline(always)]
unsafe fn copy_column<V: Vector>(
    from: *const u8,
    to: *mut u8,
    bytes: usize,
    next: *const u8,
    rows: &[usize],
) {
    let mut rows = rows.iter();
    let mut at = 0;
    while at + LINE <= bytes {
        if let Some(&row) = rows.next() {
            V::prefetch::<2>(next.wrapping_add(row));
        }
        for part in (at..at + LINE).step_by(V::BYTES) {
            // SAFETY: a part of these bytes.
            let vector = unsafe { V::load(from.wrapping_add(part)) };
            // SAFETY: as above.
            unsafe { vector.store(to.wrapping_add(part)) };
        }
        at += LINE;
    }
    while at < bytes {
        let last = at.min(bytes - V::BYTES);
        // SAFETY: as above.
        let vector = unsafe { V::load(from.wrapping_add(last)) };
        // SAFETY: as above.
        unsafe { vector.store(to.wrapping_add(last)) };
        at += V::BYTES;
    }
}
