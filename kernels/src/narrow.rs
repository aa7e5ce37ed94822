//! Matrices that have fewer rows, or fewer columns, than the shortest vector has elements:
//! images of three channels, say.
//!
//! They are words with less in them than there is room for. So what is contiguous is brought into
//! whole words in memory, one by one, and these are taken apart; or rows are made into words
//! there, which are taken away one by one. What is read beyond one is the beginning of the next
//! one, and what is written beyond one is written again by the next one; where there is none, it
//! is but the elements.
//!
//! ```text
//! three columns    a0 b0 c0 a1 b1 c1 a2 b2 ..      taken apart      a0 a1 a2 ..
//! as words         a0 b0 c0 a1                   of four rows to    b0 b1 b2 ..
//!                           a1 b1 c1 a2           three columns     c0 c1 c2 ..
//! ```

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::mem::MaybeUninit;

use super::carry::CacheLines;
use super::matrix::Matrix;
use super::scalar;
use super::vector::{LINE, Vector, load_row, unweave, weave};

/// So many bytes of words at a time: what has just been stored in parts cannot be loaded as a whole
/// before the core has finished with it.
const MEMORY: usize = 4096;

impl Matrix {
    /// Transposes each matrix of the strip, a vector of the longer side at a time.
    ///
    /// # Safety
    ///
    /// The strip begins at these places, and rows and columns are [`even`](Matrix::is_even). The
    /// shorter side of each matrix has up to `WAYS`
    /// elements and more than half of them, the other one those of a `V` at least. The CPU has `V`.
    #[inline(always)]
    pub(super) unsafe fn transpose_narrow<
        V: Vector,
        const WAYS: usize,
        const BITS: u32,
        const WIDTH: usize,
    >(
        &self,
        source: *const u8,
        destination: *mut u8,
    ) {
        const { assert!(WAYS * V::BYTES <= MEMORY, "the words of a vector fit") };
        let mut memory = MaybeUninit::<CacheLines<{ MEMORY / LINE }>>::uninit();
        let memory = memory.as_mut_ptr().cast::<u8>();
        for (source, destination) in scalar::blocks(&self.others, source, destination) {
            if self.columns < self.rows {
                // SAFETY: one of the matrices.
                unsafe { self.few_columns::<V, WAYS, BITS, WIDTH>(source, destination, memory) };
            } else {
                // SAFETY: as above.
                unsafe { self.few_rows::<V, WAYS, BITS, WIDTH>(source, destination, memory) };
            }
        }
    }

    /// # Safety
    ///
    /// One of the matrices, which has no more columns than `WAYS`, and rows for a `V`; there are
    /// `MEMORY` bytes. The CPU has `V`.
    #[inline(always)]
    unsafe fn few_columns<V: Vector, const WAYS: usize, const BITS: u32, const WIDTH: usize>(
        &self,
        source: *const u8,
        destination: *mut u8,
        memory: *mut u8,
    ) {
        let (lanes, bytes, word) = (V::BYTES / WIDTH, self.columns * WIDTH, WAYS * WIDTH);
        let mut columns = [0; WAYS];
        self.column.places(1, 0, &mut columns[..self.columns]);
        let stride = self.row.stride;
        // A word has less than two rows, or is one.
        let is_dense = bytes == word || stride.cast_signed() >= bytes.cast_signed();
        let mut next = 0;
        while next < self.rows {
            let first = next.min(self.rows - lanes);
            let count = (MEMORY / word).min(self.rows - first);
            next = first + count;
            let from = source.wrapping_add(first.wrapping_mul(stride));
            // The last row of all has none behind it.
            let alone = if is_dense { usize::from(next == self.rows) } else { count };
            let row = |i: usize| from.wrapping_add(i.wrapping_mul(stride));
            for i in 0..count - alone {
                // SAFETY: a row, and what the next one has of the word.
                unsafe { scalar::few(row(i), memory.wrapping_add(i * word), word, word) };
            }
            for i in count - alone..count {
                let to = memory.wrapping_add(i * word);
                // SAFETY: memory for a word.
                unsafe { scalar::fill(to, 0, word) };
                // SAFETY: a row.
                unsafe { scalar::few(row(i), to, bytes, word) };
            }
            let to = destination.wrapping_add(first * WIDTH);
            for at in (0..count).step_by(lanes) {
                let at = at.min(count - lanes);
                // SAFETY: the words of so many rows. What is behind the columns may be anything.
                let words = unsafe { load_row::<V, WAYS>(memory.wrapping_add(at * word)) };
                let turned = unweave::<V, WAYS, BITS>(words);
                for (i, (vector, &column)) in turned.into_iter().zip(&columns).enumerate() {
                    if i < self.columns {
                        // SAFETY: so many rows of one column.
                        unsafe { vector.store(to.wrapping_add(column.wrapping_add(at * WIDTH))) };
                    }
                }
            }
        }
    }

    /// # Safety
    ///
    /// One of the matrices, which has no more rows than `WAYS`, and columns for a `V`; there are
    /// `MEMORY` bytes. The CPU has `V`.
    #[inline(always)]
    unsafe fn few_rows<V: Vector, const WAYS: usize, const BITS: u32, const WIDTH: usize>(
        &self,
        source: *const u8,
        destination: *mut u8,
        memory: *mut u8,
    ) {
        let (lanes, bytes, word) = (V::BYTES / WIDTH, self.rows * WIDTH, WAYS * WIDTH);
        let stride = self.column.stride;
        // What is written behind a column, if anything, must be another one of these.
        let is_dense = bytes == word || stride == bytes;
        let mut rows = [0; WAYS];
        self.row.places(1, 0, &mut rows[..self.rows]);
        let mut next = 0;
        while next < self.columns {
            let first = next.min(self.columns - lanes);
            let count = (MEMORY / word).min(self.columns - first);
            next = first + count;
            let from = source.wrapping_add(first * WIDTH);
            for at in (0..count).step_by(lanes) {
                let at = at.min(count - lanes);
                // SAFETY: the CPU has `V`.
                let mut vectors = [unsafe { V::splat(0) }; WAYS];
                for (i, (vector, &row)) in vectors.iter_mut().zip(&rows).enumerate() {
                    if i < self.rows {
                        // SAFETY: so many columns of one row.
                        *vector =
                            unsafe { V::load(from.wrapping_add(row.wrapping_add(at * WIDTH))) };
                    }
                }
                for (i, words) in weave::<V, WAYS, BITS>(vectors).into_iter().enumerate() {
                    // SAFETY: memory for so many.
                    unsafe { words.store(memory.wrapping_add(at * word + i * V::BYTES)) };
                }
            }
            let to = destination.wrapping_add(first.wrapping_mul(stride));
            // The last column of all has none behind it.
            let alone = if is_dense { usize::from(next == self.columns) } else { count };
            let column = |i: usize| to.wrapping_add(i.wrapping_mul(stride));
            for i in 0..count - alone {
                // SAFETY: a column, and what the next one has of the word.
                unsafe { scalar::few(memory.wrapping_add(i * word), column(i), word, word) };
            }
            for i in count - alone..count {
                // SAFETY: a column.
                unsafe { scalar::few(memory.wrapping_add(i * word), column(i), bytes, word) };
            }
        }
    }
}
