//! Matrices of which one side has a vector of elements at least, and the other one about 16 bytes of them, or more:
//! the way goes along the longer side, or along that of words.
//!
//! A vector is made of 16 bytes of as many rows as fit into it, which are so far from each other that, turned within
//! the quarters of vectors, they are those of columns:
//!
//! ```text
//! two rows of two columns, twice    a0 b0 | a2 b2     turned    a0 a1 | a2 a3
//!                                   a1 b1 | a3 b3     within    b0 b1 | b2 b3
//! ```
//!
//! Of the last columns, some bytes of 16 are read, or written, where an instruction set can do that; otherwise they
//! are done with some before them once more.
//!
//! The longer side may come in groups that are an element of a word each. Then the columns are those of words, which
//! have elements of several rows: so XLA lays out elements of less than 32 bits where the minor dimension in host
//! memory is none of the two that are tiled.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use super::algorithm::Body;
use super::crowded::{L1_SETS, ROOM};
use super::dense::store_rest;
use super::matrix::Matrix;
use super::places::Split;
use super::turn::{InMemory, Whole};
use super::vector::{LINE, MOST_WITHIN, SHORTEST, Vector, turn_within, unrolled};
use super::{Place, Run, Strip, scalar};
use crate::cpu::Tier;

/// [`BlockOp::Transpose`](super::BlockOp::Transpose) of few columns, `WIDTH` being the bytes of an element.
struct FewColumns<const BITS: u32, const WIDTH: usize, const STREAM: bool>;

/// And of few rows.
struct FewRows<const BITS: u32, const WIDTH: usize>;

/// The side that has few.
#[derive(Debug, PartialEq, Eq)]
enum Few {
    Rows,
    Columns,
}

/// The function for the matrices of a strip, if they are such.
#[inline(always)]
pub(super) fn few<V: Vector, const BITS: u32, const WIDTH: usize, const STREAM: bool>(
    strip: &Strip,
) -> Option<Run> {
    // No matrix has 16 bytes of rows and columns without blocks of these; so that nothing is compiled for them.
    if V::IS_SHORTEST {
        return None;
    }
    // Only lines are streamed as a whole.
    let stream = STREAM && V::BYTES == LINE;
    Some(match side::<WIDTH>(strip, V::BYTES, V::HAS_MASKS)? {
        Few::Columns if stream => V::compiled::<FewColumns<BITS, WIDTH, true>>(),
        Few::Columns => V::compiled::<FewColumns<BITS, WIDTH, false>>(),
        Few::Rows => V::compiled::<FewRows<BITS, WIDTH>>(),
    })
}

/// Whether one side of a matrix is elements of words, which are apart.
#[inline(always)]
pub(super) fn is_of_words<const WIDTH: usize>(matrix: &Matrix) -> bool {
    let Matrix { rows, columns, row, column, .. } = *matrix;
    Groups::<WIDTH>::are_apart(row, rows) || Groups::<WIDTH>::are_apart(column, columns)
}

/// The matrices of a strip: where one side is elements of words, and these come in groups, one for each group.
#[inline(always)]
fn of_words<const WIDTH: usize>(strip: &Strip) -> Matrix {
    let joined = Matrix::new(strip, WIDTH, 1);
    let Matrix { rows, columns, row, column, .. } = joined;
    let in_groups = |split: Split, count: usize| {
        Groups::<WIDTH>::are_apart(split, count) && !split.has_even_blocks(count)
    };
    if in_groups(row, rows) || in_groups(column, columns) {
        Matrix::without_groups(strip, WIDTH, WIDTH, 1)
    } else {
        joined
    }
}

/// Which side of its matrices has few, for vectors of so many bytes.
#[inline(always)]
fn side<const WIDTH: usize>(strip: &Strip, vector: usize, has_masks: bool) -> Option<Few> {
    let Matrix { rows, columns, row, column, .. } = of_words::<WIDTH>(strip);
    let least = if has_masks { SHORTEST / 2 + 1 } else { SHORTEST };
    let fits = |few: usize, many: usize| few * WIDTH >= least && many * WIDTH >= vector;
    let are_columns = fits(columns, rows) && Groups::<WIDTH>::are_there(row, rows);
    let are_rows = fits(rows, columns) && Groups::<WIDTH>::are_there(column, columns);
    // Along words, whole lines of them are written, or read, on their side.
    let goes_along_rows = Groups::<WIDTH>::are_apart(row, rows)
        || !Groups::<WIDTH>::are_apart(column, columns) && columns <= rows;
    if are_columns && (goes_along_rows || !are_rows) {
        Some(Few::Columns)
    } else {
        are_rows.then_some(Few::Rows)
    }
}

impl Strip {
    /// Of a transpose of elements of so many bytes: how many its matrices have on the side that is rounded up to 16
    /// bytes, if a tier has longer vectors and goes along the other one.
    pub fn few(&self, width: usize, tier: Tier) -> Option<usize> {
        let vector = tier.vector_bytes();
        if vector <= SHORTEST {
            return None;
        }
        let side = match width {
            1 => side::<1>(self, vector, tier.has_masks()),
            2 => side::<2>(self, vector, tier.has_masks()),
            4 => side::<4>(self, vector, tier.has_masks()),
            8 => side::<8>(self, vector, tier.has_masks()),
            _ => None,
        };
        let (rows, columns) = self.matrix_size(width);
        let has_vectors = width >= 4 && rows.min(columns) * width >= vector;
        Some(match side.filter(|_| !has_vectors)? {
            Few::Rows => rows,
            Few::Columns => columns,
        })
    }

    /// Whether these are of words that are apart.
    pub fn has_words(&self, width: usize) -> bool {
        let matrix = Matrix::new(self, width, 1);
        match width {
            1 => is_of_words::<1>(&matrix),
            2 => is_of_words::<2>(&matrix),
            _ => false,
        }
    }
}

/// Where the rows, or columns, begin that come in groups: those of a group at a stride, and the groups a step
/// apart.
#[derive(Clone, Copy)]
pub(super) struct Groups<const WIDTH: usize> {
    step: usize,
    stride: usize,
}

impl<const WIDTH: usize> Groups<WIDTH> {
    /// As many elements as a word of 32 bits has.
    const SIZE: usize = if WIDTH < 4 { 4 / WIDTH } else { 1 };

    /// Whether so many places are such groups, or at one stride.
    #[inline(always)]
    fn are_there(split: Split, count: usize) -> bool {
        let is_whole = split.block == Self::SIZE && count.is_multiple_of(Self::SIZE);
        is_whole && split.has_even_blocks(count) || split.is_even(count)
    }

    #[inline(always)]
    fn are_apart(split: Split, count: usize) -> bool {
        Self::SIZE > 1 && split.block == Self::SIZE && !split.is_even(count)
    }

    #[inline(always)]
    fn of(split: Split) -> Self {
        let Split { block, step, stride, .. } = split;
        if block == Self::SIZE { Groups { step, stride } } else { Self::at_stride(stride) }
    }

    #[inline(always)]
    pub(super) fn at_stride(stride: usize) -> Self {
        Groups { step: stride.wrapping_mul(Self::SIZE), stride }
    }

    /// How many columns are written at a time, a `vector` of bytes at least, where each is in so many parts: of several, as
    /// many as L1 has room for.
    #[inline(always)]
    fn panel(self, vector: usize, parts: usize) -> usize {
        let split = Split::at_stride(self.stride).in_blocks(Self::SIZE, self.step);
        let mut bytes = PANEL;
        while parts > 1 && bytes > vector && split.crowd(bytes / WIDTH, L1_SETS) > ROOM {
            bytes /= 2;
        }
        bytes / WIDTH
    }

    /// From the first one of a group, or at one stride from any, to one behind it.
    #[inline(always)]
    pub(super) fn at(self, number: usize) -> usize {
        let within = (number % Self::SIZE).wrapping_mul(self.stride);
        (number / Self::SIZE).wrapping_mul(self.step).wrapping_add(within)
    }
}

/// Out of the way of those that are at one stride.
#[inline(never)]
fn places_in_blocks(split: Split, first: usize, places: &mut [usize]) {
    split.places(1, first, places);
}

/// Where the elements begin that are those of 16 bytes of the other side, from so many bytes on.
#[inline(always)]
fn places<const WIDTH: usize>(split: Split, at: usize) -> [usize; MOST_WITHIN] {
    let (count, mut places) = (SHORTEST / WIDTH, [0; MOST_WITHIN]);
    if split.block < usize::MAX {
        places_in_blocks(split, at / WIDTH, &mut places[..count]);
        return places;
    }
    let mut next = (at / WIDTH).wrapping_mul(split.stride);
    for place in &mut places {
        *place = next;
        next = next.wrapping_add(split.stride);
    }
    places
}

/// How many bytes of a side are done at a time at most, where these kernels go along it: what is read of the other side
/// meanwhile, or written, stays in L1 until the next 16 bytes of it are. Of what is read, fewer were no better where lines
/// drive each other out.
const PANEL: usize = 8 * LINE;

/// Where some elements at a time of `count` begin, and how many they are: if there are no masks, always as many, the last
/// ones ending where all end.
#[inline(always)]
fn parts(count: usize, size: usize, has_masks: bool) -> impl Iterator<Item = (usize, usize)> {
    (0..count).step_by(size).map(move |first| {
        if has_masks { (first, size.min(count - first)) } else { (first.min(count - size), size) }
    })
}

impl<const BITS: u32, const WIDTH: usize, const STREAM: bool> Body
    for FewColumns<BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn run<V: Vector>(strip: &Strip, _: &[Place], source: *const u8, destination: *mut u8) {
        let matrix = of_words::<WIDTH>(strip);
        let stream = STREAM && matrix.has_whole_lines(destination);
        let Matrix { rows, columns, row, column, others } = matrix;
        let tall = Tall {
            rows,
            row: Groups::<WIDTH>::of(row),
            bytes: columns * WIDTH,
            column: column.evened(columns),
        };
        for (source, destination) in scalar::blocks(&others, source, destination) {
            // SAFETY: one of the matrices, whose columns begin at lines for streaming.
            unsafe { tall.transpose::<V, Whole, BITS, STREAM>(source, destination, stream) };
        }
    }
}

/// A matrix of many rows and few columns.
pub(super) struct Tall<const WIDTH: usize> {
    pub(super) rows: usize,
    pub(super) row: Groups<WIDTH>,
    /// Of a row in the source. Of the last column there may be a part; the others of its bytes count as zeros.
    pub(super) bytes: usize,
    pub(super) column: Split,
}

impl<const WIDTH: usize> Tall<WIDTH> {
    /// # Safety
    ///
    /// The matrix is at these places, with as many rows as a `V` has elements, and 16 bytes of them, or less where it
    /// has masks. For `stream` a `V` is a line, and columns begin at lines. The CPU has `V`.
    #[inline(always)]
    pub(super) unsafe fn transpose<V: Vector, M: InMemory, const BITS: u32, const STREAM: bool>(
        &self,
        source: *const u8,
        destination: *mut u8,
        stream: bool,
    ) {
        let tall = V::BYTES / WIDTH;
        let part = SHORTEST * M::SOURCE_TIMES;
        let mut next = 0;
        while next < self.rows {
            let first = next.min(self.rows - tall);
            let rows = (PANEL / WIDTH).min(self.rows - first);
            let panel = Panel { rows, done: next - first, stream };
            next = first + rows;
            let source = source.wrapping_add(self.row.at(first));
            let destination = destination.wrapping_add(first * WIDTH);
            for (at, bytes) in parts(self.bytes, part, V::HAS_MASKS) {
                let columns = places::<WIDTH>(self.column, at / M::SOURCE_TIMES);
                let from = source.wrapping_add(at);
                // SAFETY: some columns of these rows.
                unsafe {
                    self.block::<V, M, BITS, STREAM>(panel, bytes, from, destination, &columns);
                };
            }
        }
    }

    /// Some rows, of which so many bytes: 16 of vectors, or fewer.
    ///
    /// # Safety
    ///
    /// They can be read in the source, as many rows as a `V` has elements at least, and written in the destination, for
    /// streaming as of [`transpose`](Tall::transpose). The CPU has `V`.
    #[inline(always)]
    unsafe fn block<V: Vector, M: InMemory, const BITS: u32, const STREAM: bool>(
        &self,
        Panel { rows, done, stream }: Panel,
        bytes: usize,
        source: *const u8,
        destination: *mut u8,
        places: &[usize; MOST_WITHIN],
    ) {
        let (tall, within) = (V::BYTES / WIDTH, SHORTEST / WIDTH);
        let columns = bytes.div_ceil(WIDTH * M::SOURCE_TIMES);
        let apart = self.row.at(within);
        for next in (0..rows).step_by(tall) {
            let row = next.min(rows - tall);
            let done = next.max(done).saturating_sub(row) * WIDTH;
            let source = source.wrapping_add(self.row.at(row));
            let destination = destination.wrapping_add(row * WIDTH);
            // SAFETY: the CPU has `V`.
            let mut vectors = [unsafe { V::splat(0) }; MOST_WITHIN];
            unrolled!(i in within, {
                let first = source.wrapping_add(self.row.at(i));
                // SAFETY: the columns of as many rows as a vector has 16 bytes.
                vectors[i] = unsafe { M::gather(first, apart, bytes) };
            });
            let turned = turn_within::<V, BITS>(vectors);
            unrolled!(i in within, {
                if !V::HAS_MASKS || i < columns {
                    let to = destination.wrapping_add(places[i]);
                    // SAFETY: the rows of a column.
                    unsafe { store_rest::<V, STREAM>(turned[i], to, done, stream) };
                }
            });
        }
    }
}

/// So many rows, of which some have been done before; whether they are streamed.
#[derive(Clone, Copy)]
struct Panel {
    rows: usize,
    done: usize,
    stream: bool,
}

impl<const BITS: u32, const WIDTH: usize> Body for FewRows<BITS, WIDTH> {
    #[inline(always)]
    unsafe fn run<V: Vector>(strip: &Strip, _: &[Place], source: *const u8, destination: *mut u8) {
        let Matrix { rows, columns, row, column, others } = of_words::<WIDTH>(strip);
        let wide = Wide {
            columns,
            column: Groups::<WIDTH>::of(column),
            bytes: rows * WIDTH,
            row: row.evened(rows),
        };
        for (source, destination) in scalar::blocks(&others, source, destination) {
            // SAFETY: one of the matrices.
            unsafe { wide.transpose::<V, Whole, BITS>(source, destination) };
        }
    }
}

/// A matrix of many columns and few rows.
pub(super) struct Wide<const WIDTH: usize> {
    pub(super) columns: usize,
    pub(super) column: Groups<WIDTH>,
    /// Of a column in the destination. Of the last row a part may be left out.
    pub(super) bytes: usize,
    pub(super) row: Split,
}

impl<const WIDTH: usize> Wide<WIDTH> {
    /// # Safety
    ///
    /// As of [`Tall::transpose`], of a matrix with as many columns as a `V` has elements.
    #[inline(always)]
    pub(super) unsafe fn transpose<V: Vector, M: InMemory, const BITS: u32>(
        &self,
        source: *const u8,
        destination: *mut u8,
    ) {
        let wide = V::BYTES / WIDTH;
        let part = SHORTEST * M::DESTINATION_TIMES;
        let panel = self.column.panel(V::BYTES, self.bytes.div_ceil(part));
        let mut next = 0;
        while next < self.columns {
            let first = next.min(self.columns - wide);
            let columns = panel.min(self.columns - first);
            next = first + columns;
            let source = source.wrapping_add(first * WIDTH);
            let destination = destination.wrapping_add(self.column.at(first));
            for (at, bytes) in parts(self.bytes, part, V::HAS_MASKS) {
                let rows = places::<WIDTH>(self.row, at / M::DESTINATION_TIMES);
                let to = destination.wrapping_add(at);
                // SAFETY: some rows of some columns, as many as a `V` has elements at least.
                unsafe { self.block::<V, M, BITS>(columns, bytes, source, to, &rows) };
            }
        }
    }

    /// Some columns, of which so many bytes: 16 of vectors, or fewer.
    ///
    /// # Safety
    ///
    /// As of [`Tall::block`], as many columns as a `V` has elements at least.
    #[inline(always)]
    unsafe fn block<V: Vector, M: InMemory, const BITS: u32>(
        &self,
        columns: usize,
        bytes: usize,
        source: *const u8,
        destination: *mut u8,
        places: &[usize; MOST_WITHIN],
    ) {
        let (wide, within) = (V::BYTES / WIDTH, SHORTEST / WIDTH);
        let rows = bytes.div_ceil(WIDTH * M::DESTINATION_TIMES);
        let apart = self.column.at(within);
        for column in (0..columns).step_by(wide) {
            let column = column.min(columns - wide);
            let source = source.wrapping_add(column * WIDTH);
            let destination = destination.wrapping_add(self.column.at(column));
            // SAFETY: the CPU has `V`.
            let mut vectors = [unsafe { V::splat(0) }; MOST_WITHIN];
            unrolled!(i in within, {
                if !V::HAS_MASKS || i < rows {
                    let from = source.wrapping_add(places[i]);
                    // SAFETY: the columns of a row.
                    vectors[i] = unsafe { V::load(from) };
                }
            });
            let turned = turn_within::<V, BITS>(vectors);
            unrolled!(i in within, {
                let first = destination.wrapping_add(self.column.at(i));
                // SAFETY: the rows of as many columns as a vector has 16 bytes.
                unsafe { M::scatter(turned[i], first, apart, bytes) };
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_goes_along_words() {
        // Words of four rows of bytes, so many of them beside each other, twice; of so many columns.
        let packs = |words, columns| Strip {
            lines: 2,
            blocks: words,
            rows: 4,
            row_stride: 49_920,
            source_step: 195,
            source_line: 199_680,
            columns,
            column_stride: 4096,
            destination_step: 4,
            destination_line: 512,
            ..Strip::default()
        };
        // Those of 128 go on in both lines, where they are apart all the same.
        for (words, columns) in [(128, 195), (72, 390), (16, 1000)] {
            let strip = packs(words, columns);
            let Matrix { rows, others, .. } = of_words::<1>(&strip);
            assert_eq!((rows, others.lines), (4 * words, 2));
            assert_eq!(side::<1>(&strip, 64, true), Some(Few::Columns), "{words} x {columns}");
            let unpacks = Strip {
                lines: words,
                blocks: 2,
                rows: columns,
                row_stride: 4096,
                source_line: 4,
                source_step: 512,
                columns: 4,
                column_stride: 49_920,
                destination_line: 195,
                destination_step: 199_680,
                ..Strip::default()
            };
            let Matrix { columns, others, .. } = of_words::<1>(&unpacks);
            assert_eq!((columns, others.blocks), (4 * words, 2));
            assert_eq!(side::<1>(&unpacks, 64, true), Some(Few::Rows), "{words} x {columns}");
        }
        // Groups that are at one step, too, are one matrix.
        let even = Strip { source_line: 128 * 195, ..packs(128, 195) };
        assert_eq!(of_words::<1>(&even).rows, 1024);
    }

    #[test]
    fn fewer_columns_are_written_at_a_time_where_they_share_sets() {
        let panel = |step, stride, parts| Groups::<1> { step, stride }.panel(64, parts);
        // Words so far apart, and their elements.
        assert_eq!(panel(195, 49_920, 13), 512);
        assert_eq!(panel(9216, 18, 2), 128);
        assert_eq!(panel(6144, 384, 24), 64);
        // What is written at once need not stay.
        assert_eq!(panel(6144, 384, 1), 512);
    }
}
