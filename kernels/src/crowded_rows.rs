//! Transposes whose rows are far apart in the source, by powers of two or multiples of large ones, so that all of them share
//! a few sets of L1.
//!
//! A block reads some elements of each of its rows, whose lines other blocks beside it read again. Where more of them share
//! a set than it has room for, they are gone until then. So some rows are copied to memory first, in which they lie
//! together, as far as there is room for them, and blocks are made from there.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::algorithm::Body;
use super::at_strides::{
    BlockStarts, STARTS, Strided, Strides, block_size, has_short_vectors, parts,
    transpose_by_columns,
};
use super::carry::{CacheLines, copy_line};
use super::crowded::{L1_SETS, ROOM};
use super::matrix::{Block, Matrix};
use super::vector::{LINE, SHORTEST, Vector};
use super::{Place, Strip, scalar};

/// So many bytes of a column are made at a time, and so many blocks along rows.
const COLUMN: usize = 2 * LINE;
const BLOCKS_ALONG: usize = 16;

/// What rows are copied to. Between two of them there is a line more, so that these are not crowded.
const BYTES: usize = 40 << 10;
type Memory = CacheLines<{ BYTES / LINE }>;

/// Whether rows are copied for blocks of this kind: of vectors shorter than a line and whole lines, with more rows than a set
/// has room for, of elements that stay as wide as they are. For others it is not compiled.
pub(super) const fn copies_rows<B: Block>() -> bool {
    let has_lines = B::ROWS * B::WIDTH >= LINE && B::COLUMNS * B::WIDTH >= LINE;
    let [high, _] = block_size::<B>();
    let has_vectors = high * B::WIDTH >= SHORTEST && has_short_vectors::<B>();
    has_vectors && has_lines && B::ROWS > ROOM && B::WIDTH == B::DESTINATION_WIDTH
}

/// The blocks of rows that are copied at a time, one at least.
const fn blocks_copied<B: Block>() -> usize {
    if !copies_rows::<B>() {
        return 1;
    }
    let [high, wide] = block_size::<B>();
    let blocks = COLUMN / (B::WIDTH * high);
    let row = BLOCKS_ALONG * wide * B::WIDTH + LINE;
    assert!(blocks > 0 && blocks * high * row <= BYTES, "there is room");
    assert!(blocks <= STARTS && BLOCKS_ALONG <= STARTS, "and in tables of their starts");
    blocks
}

/// A strip with [such rows](Matrix::has_most_crowded_rows), as far as it is at strides: by a function of its own, as the
/// memory is more than others have to set up.
///
/// # Safety
///
/// As of [`Matrix::transpose_all`].
pub(super) struct CrowdedRows<B>(PhantomData<B>);

impl<B: Block> Body for CrowdedRows<B> {
    #[inline(always)]
    unsafe fn run<V: Vector>(strip: &Strip, _: &[Place], source: *const u8, destination: *mut u8) {
        let matrix = Matrix::of::<B>(strip);
        let Some(strided) = matrix.at_strides::<B>() else { return };
        let mut memory = MaybeUninit::<Memory>::uninit();
        let memory = memory.as_mut_ptr().cast();
        for (source, destination) in scalar::blocks(&matrix.others, source, destination) {
            // SAFETY: one of the matrices; whoever calls it has the vectors of `B`.
            unsafe { strided.transpose_from_memory::<B>(memory, source, destination) };
        }
    }
}

impl Matrix {
    /// Whether more rows of a block share a set of L1 than it has room for, and no fewer than columns do; of words, more.
    #[inline(always)]
    pub(super) fn has_most_crowded_rows<B: Block>(&self) -> bool {
        if !const { copies_rows::<B>() } {
            return false;
        }
        let rows = self.row.crowd(B::ROWS, L1_SETS);
        let columns = self.column.crowd(B::COLUMNS, L1_SETS);
        // Words of which as many columns do had better have these made apart.
        let least = columns + usize::from(B::WIDTH >= 4);
        rows > ROOM && rows >= least && self.columns * B::WIDTH > LINE
    }
}

impl Strided {
    /// Transposes these rows and columns, the rows through memory.
    ///
    /// # Safety
    ///
    /// They are at these places, and of the same `B`; there are [`BYTES`] of memory. The CPU has the vectors of `B`.
    #[inline(always)]
    unsafe fn transpose_from_memory<B: Block>(
        &self,
        memory: *mut u8,
        source: *const u8,
        destination: *mut u8,
    ) {
        let [high, wide] = const { block_size::<B>() };
        let most = const { blocks_copied::<B>() };
        let ((row, row_strides), (column, strides)) = (self.row, self.column);
        for (first_row, rows) in parts((self.rows, high), most..=most) {
            let (mut starts, mut copied, mut column_starts) =
                ([0; STARTS], [0; STARTS], [0; STARTS]);
            let starts = &mut starts[..rows];
            row.starts(high, first_row, starts);
            let to = destination.wrapping_add(first_row * B::DESTINATION_WIDTH);
            for (first_column, columns) in parts((self.columns, wide), BLOCKS_ALONG..=BLOCKS_ALONG)
            {
                let source = source.wrapping_add(first_column * B::WIDTH);
                let bytes = columns * wide * B::WIDTH;
                let pitch = bytes + LINE;
                let mut next = 0;
                for (start, copied) in starts.iter().zip(&mut copied) {
                    *copied = next;
                    for number in 0..high {
                        let from = source.wrapping_add(*start);
                        let from = from.wrapping_add(row_strides.at::<false>(number));
                        // SAFETY: these columns of a row, for which there is room, as `blocks_copied` asserts.
                        unsafe { copy_row::<B::Vector>(from, memory.wrapping_add(next), bytes) };
                        next += pitch;
                    }
                }
                let column_starts = &mut column_starts[..columns];
                column.starts(wide, first_column, column_starts);
                let rows = BlockStarts { starts: &copied[..rows], strides: Strides::even(pitch) };
                let columns = BlockStarts { starts: column_starts, strides };
                // SAFETY: what has just been copied, and where it belongs.
                unsafe { transpose_by_columns::<B>(rows, columns, memory, to) };
            }
        }
    }
}

/// Copies so many bytes.
///
/// # Safety
///
/// They can be read and written. The CPU has `V`.
#[inline(always)]
unsafe fn copy_row<V: Vector>(from: *const u8, to: *mut u8, bytes: usize) {
    let rest = bytes % LINE;
    for at in (0..bytes - rest).step_by(LINE) {
        // SAFETY: a line of them.
        unsafe { copy_line::<V, false>(from.wrapping_add(at), to.wrapping_add(at)) };
    }
    let whole = bytes - rest;
    // SAFETY: the last ones.
    unsafe { scalar::less_than_line(from.wrapping_add(whole), to.wrapping_add(whole), rest) };
}
