//! Transposes: block ops in which rows become columns.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use super::algorithm::{Algorithm, InstructionSet, shorter};
use super::crowded::{L1_SETS, ROOM};
use super::dense::dense;
use super::few::{few, is_of_words};
use super::matrix::{Block, MAX_LANES, Matrix};
use super::scalar::{self, Scalar};
use super::turn::{InMemory, Lines, Squares, StoredLines, Vectors, Whole};
use super::vector::{LINE, SHORTEST, Vector, load_row, streams, unweave, weave};
use super::{Place, Run, Strip};

/// [`BlockOp::Transpose`](super::BlockOp::Transpose), `WIDTH` being the bytes of an element.
pub(super) struct Transpose<const BITS: u32, const WIDTH: usize, const STREAM: bool>;

impl<const BITS: u32, const WIDTH: usize, const STREAM: bool> Algorithm
    for Transpose<BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        // SAFETY: the same contract.
        unsafe { TransposeElements::<WIDTH>::elements(strip, source, destination) };
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        let matrix = Matrix::new(strip, WIDTH, 1);
        if let Some(matrix) = matrix.narrow::<V, WIDTH>(strip) {
            // SAFETY: the same strip, with as much on the longer side as a vector has.
            return unsafe {
                matrix.transpose_narrow_by_ways::<V, BITS, WIDTH>(source, destination);
            };
        }
        // SAFETY: the same strip, which has as many rows and columns as a vector has
        // elements, as nothing does it instead.
        unsafe {
            matrix.transpose_by_vectors::<V, Whole, BITS, WIDTH, 1, BITS, STREAM>(
                strip,
                source,
                destination,
            );
        };
    }

    #[inline(always)]
    fn instead<V: Vector>(strip: &Strip, _: *mut u8) -> Option<Run> {
        if let Some(run) = dense::<V, BITS, WIDTH, STREAM>(strip) {
            return Some(run);
        }
        let matrix = Matrix::new(strip, WIDTH, 1);
        // Blocks of as many rows as columns turn narrow elements in one more round.
        let has_vectors = matrix.has_vectors::<V>(WIDTH);
        if (!has_vectors || WIDTH < 4 && !V::IS_SHORTEST)
            && let Some(run) = few::<V, BITS, WIDTH, STREAM>(strip)
        {
            return Some(run);
        }
        if has_vectors {
            return None;
        }
        let is_narrow = matrix.narrow::<V, WIDTH>(strip).is_some();
        (!is_narrow).then(shorter::<Self, V>)
    }
}

/// The same for elements narrower than 32 bits: in squares of lines, where there are
/// enough rows and columns.
pub(super) struct TransposeNarrow<const BITS: u32, const WIDTH: usize, const STREAM: bool>;

impl<const BITS: u32, const WIDTH: usize, const STREAM: bool> Algorithm
    for TransposeNarrow<BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        // SAFETY: the same contract.
        unsafe { TransposeElements::<WIDTH>::elements(strip, source, destination) };
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        let matrix = Matrix::new(strip, WIDTH, 1);
        if STREAM {
            // SAFETY: the same strip, which has as many rows and columns as a square, as nothing
            // does it instead.
            unsafe { matrix.stream_all::<Squares<V, WIDTH, true>>(strip, source, destination) };
        } else {
            // SAFETY: as above.
            unsafe { matrix.transpose_all::<Squares<V, WIDTH, false>>(strip, source, destination) };
        }
    }

    #[inline(always)]
    fn instead<V: Vector>(strip: &Strip, _: *mut u8) -> Option<Run> {
        let matrix = Matrix::new(strip, WIDTH, 1);
        let has_squares = matrix.rows.min(matrix.columns) >= LINE / WIDTH;
        if has_squares {
            let goes_by_words = !STREAM && V::BYTES >= LINE && is_of_words::<WIDTH>(&matrix);
            return if goes_by_words { few::<V, BITS, WIDTH, false>(strip) } else { None };
        }
        if let Some(run) = dense::<V, BITS, WIDTH, STREAM>(strip) {
            return Some(run);
        }
        let streamed =
            if STREAM && V::BYTES == LINE { few::<V, BITS, WIDTH, true>(strip) } else { None };
        streamed.or(Some(V::entry::<Transpose<BITS, WIDTH, false>>()))
    }
}

impl Matrix {
    /// Transposes each matrix of the strip, by as many rows and columns at a time as a
    /// `V` takes.
    ///
    /// # Safety
    ///
    /// The strip begins at these places, and each matrix has at least as many rows
    /// and columns. The CPU has `V`.
    #[inline(always)]
    pub(super) unsafe fn transpose_by_vectors<
        V: Vector,
        M: InMemory,
        const BITS: u32,
        const WIDTH: usize,
        const WAYS: usize,
        const PART: u32,
        const STREAM: bool,
    >(
        &self,
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
    ) {
        // SAFETY: by the contract of this function.
        match V::BYTES / WIDTH {
            2 => {
                // SAFETY: as above.
                unsafe {
                    self.transpose_by_lanes::<V, M, 2, BITS, WIDTH, WAYS, PART, STREAM>(
                        strip,
                        source,
                        destination,
                    );
                }
            }
            4 => {
                // SAFETY: as above.
                unsafe {
                    self.transpose_by_lanes::<V, M, 4, BITS, WIDTH, WAYS, PART, STREAM>(
                        strip,
                        source,
                        destination,
                    );
                }
            }
            8 => {
                // SAFETY: as above.
                unsafe {
                    self.transpose_by_lanes::<V, M, 8, BITS, WIDTH, WAYS, PART, STREAM>(
                        strip,
                        source,
                        destination,
                    );
                }
            }
            MAX_LANES => {
                // SAFETY: as above.
                unsafe {
                    self.transpose_by_lanes::<V, M, 16, BITS, WIDTH, WAYS, PART, STREAM>(
                        strip,
                        source,
                        destination,
                    );
                }
            }
            // No matrix has as many of these: see `has_vectors`.
            _ => debug_assert!(false, "more lanes than there are registers for"),
        }
    }

    /// Whether the shorter side has not enough for a vector, but is worth words of its own.
    #[inline(always)]
    fn is_narrow<const WIDTH: usize>(&self) -> bool {
        (2..SHORTEST.div_ceil(WIDTH)).contains(&self.rows.min(self.columns))
    }

    /// This one, or the blocks of its strip, if that is narrow and the longer side has enough for a vector.
    #[inline(always)]
    fn narrow<V: Vector, const WIDTH: usize>(&self, strip: &Strip) -> Option<Matrix> {
        if !self.is_narrow::<WIDTH>() {
            return None;
        }
        let matrix = if self.is_even() { *self } else { Matrix::of_blocks(strip)? };
        let is_long = matrix.rows.max(matrix.columns) >= V::BYTES / WIDTH;
        (is_long && matrix.is_narrow::<WIDTH>()).then_some(matrix)
    }

    /// Whether it has as many rows and columns as a vector has words of that width.
    #[inline(always)]
    pub(super) fn has_vectors<V: Vector>(&self, width: usize) -> bool {
        let lanes = V::BYTES / width;
        lanes <= MAX_LANES && self.rows.min(self.columns) >= lanes
    }

    /// Whether blocks of whole lines are larger than those of so many elements, and do not do much more twice at the end
    /// of rows and columns. Of both sides whose lines share few sets, fewer at a time are better.
    #[inline(always)]
    fn is_worth_lines<B: Block>(&self, lanes: usize) -> bool {
        let is_little = |count: usize, size: usize| {
            let (by_lines, by_vectors) =
                (count.next_multiple_of(size), count.next_multiple_of(lanes));
            count >= size && by_lines - by_vectors <= count / 8
        };
        let is_crowded = || self.is_crowded::<B>() && self.row.crowd(B::ROWS, L1_SETS) > ROOM;
        B::ROWS * B::COLUMNS > lanes * lanes
            && !is_crowded()
            && !self.has_far_crowded_rows::<B>()
            && is_little(self.rows, B::ROWS)
            && is_little(self.columns, B::COLUMNS)
    }

    /// Transposes each matrix of the strip, all of which are narrow.
    ///
    /// # Safety
    ///
    /// The strip begins at these places, and rows and columns are even. The shorter side of each
    /// matrix is [`narrow`](Matrix::is_narrow), the longer one has as many as a `V` at least. The CPU
    /// has `V`.
    #[inline(always)]
    unsafe fn transpose_narrow_by_ways<V: Vector, const BITS: u32, const WIDTH: usize>(
        &self,
        source: *const u8,
        destination: *mut u8,
    ) {
        // Each with all that is left, so that the compiler sees what cannot be.
        let few =
            |ways: usize| self.rows.min(self.columns) <= ways || (ways + 1) * WIDTH >= SHORTEST;
        if few(2) {
            // SAFETY: by the contract of this function.
            unsafe { self.transpose_narrow::<V, 2, BITS, WIDTH>(source, destination) }
        } else if few(4) {
            // SAFETY: as above.
            unsafe { self.transpose_narrow::<V, 4, BITS, WIDTH>(source, destination) }
        } else if few(8) {
            // SAFETY: as above.
            unsafe { self.transpose_narrow::<V, 8, BITS, WIDTH>(source, destination) }
        } else {
            // SAFETY: as above.
            unsafe { self.transpose_narrow::<V, 16, BITS, WIDTH>(source, destination) }
        }
    }

    /// The same, a `V` having `LANES` elements.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    unsafe fn transpose_by_lanes<
        V: Vector,
        M: InMemory,
        const LANES: usize,
        const BITS: u32,
        const WIDTH: usize,
        const WAYS: usize,
        const PART: u32,
        const STREAM: bool,
    >(
        &self,
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
    ) {
        // Longer vectors are lines, and narrower elements have squares of their own.
        if const { !STREAM && WIDTH >= 4 && V::BYTES < LINE }
            && self.is_worth_lines::<StoredLines<V, M, LANES, BITS, WIDTH, WAYS, PART>>(LANES)
        {
            // SAFETY: by the contract of this function; there are as many rows and columns as a block has.
            return unsafe {
                self.transpose_all::<StoredLines<V, M, LANES, BITS, WIDTH, WAYS, PART>>(
                    strip,
                    source,
                    destination,
                );
            };
        }
        // SAFETY: by the contract of this function.
        unsafe {
            self.transpose_by::<
                Vectors<V, M, LANES, BITS, WIDTH, WAYS, PART>,
                Lines<V, M, LANES, BITS, WIDTH, WAYS, PART>,
                STREAM,
            >(strip, source, destination);
        };
    }
}

/// [`BlockOp::Transpose`](super::BlockOp::Transpose) element by element: of what is too small for vectors.
pub(super) struct TransposeElements<const WIDTH: usize>;

impl<const WIDTH: usize> Algorithm for TransposeElements<WIDTH> {
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (strip, place) in strip.pieces() {
            let (source, destination) = place.of(source, destination);
            for (source, destination) in scalar::blocks(&strip, source, destination) {
                // SAFETY: one of the blocks.
                unsafe { transpose_elements::<WIDTH>(&strip, source, destination) };
            }
        }
    }
}

/// A block, element by element: row by row, or column by column where these are longer.
///
/// # Safety
///
/// It begins at these places.
#[inline(always)]
unsafe fn transpose_elements<const WIDTH: usize>(
    strip: &Strip,
    source: *const u8,
    destination: *mut u8,
) {
    if strip.rows < strip.columns {
        for row in 0..strip.rows {
            let from = source.wrapping_add(row.wrapping_mul(strip.row_stride));
            let to = destination.wrapping_add(row * WIDTH);
            let (from, to) = (scalar::from(from, WIDTH), scalar::to(to, strip.column_stride));
            // SAFETY: one row of the block.
            unsafe { scalar::elements::<WIDTH>(strip.columns, from, to) };
        }
        return;
    }
    for column in 0..strip.columns {
        let from = source.wrapping_add(column * WIDTH);
        let from = scalar::from(from, strip.row_stride);
        let to = destination.wrapping_add(column.wrapping_mul(strip.column_stride));
        let to = scalar::to(to, WIDTH);
        // SAFETY: one column of the block.
        unsafe { scalar::elements::<WIDTH>(strip.rows, from, to) };
    }
}

/// The bytes of a word.
const WORD: usize = 4;

/// So many words of as many elements of so many bits: the first elements of all, then the second ones, and so on.
#[inline(always)]
fn exchanged<const WAYS: usize, const BITS: u32>(words: [[u8; WORD]; WAYS]) -> [[u8; WORD]; WAYS] {
    let mut others = [[0; WORD]; WAYS];
    let mut shift = 0;
    for other in &mut others {
        let mut made = 0;
        let mut to = 0;
        for &word in &words {
            let element = (u32::from_le_bytes(word) >> shift) & (u32::MAX >> (u32::BITS - BITS));
            made |= element << to;
            to += BITS;
        }
        *other = made.to_le_bytes();
        shift += BITS;
    }
    others
}

/// [`BlockOp::TransposeInterleave`](super::BlockOp::TransposeInterleave).
pub(super) struct TransposeInterleave<const WAYS: usize, const BITS: u32, const STREAM: bool>;

impl<const WAYS: usize, const BITS: u32, const STREAM: bool> Algorithm
    for TransposeInterleave<WAYS, BITS, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            for (group, row) in (0..strip.columns / WAYS)
                .flat_map(|group| (0..strip.rows).map(move |row| (group, row)))
            {
                let from = row.wrapping_mul(strip.row_stride).wrapping_add(group * WAYS * WORD);
                let to = group.wrapping_mul(strip.column_stride).wrapping_add(row * WAYS * WORD);
                let from = source.wrapping_add(from).cast::<[[u8; WORD]; WAYS]>();
                let to = destination.wrapping_add(to).cast::<[[u8; WORD]; WAYS]>();
                // SAFETY: the words of some columns of one row. Bytes need no alignment.
                let words = unsafe { from.read() };
                // SAFETY: as many, of the elements of these.
                unsafe { to.write(exchanged::<WAYS, BITS>(words)) };
            }
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        let matrix = Matrix::new(strip, WORD, WAYS);
        // SAFETY: the same strip, which has as many rows and columns as a vector has
        // words, as nothing does it instead.
        unsafe {
            matrix.transpose_by_vectors::<V, Whole, 32, 4, WAYS, BITS, STREAM>(
                strip,
                source,
                destination,
            );
        };
    }

    #[inline(always)]
    fn instead<V: Vector>(strip: &Strip, _: *mut u8) -> Option<Run> {
        // Words of as many columns are made of vectors that have one of each.
        if WAYS > V::BYTES / WORD {
            return Some(Scalar::entry::<Self>());
        }
        let has_vectors = Matrix::new(strip, WORD, WAYS).has_vectors::<V>(WORD);
        (!has_vectors).then(shorter::<Self, V>)
    }
}

/// [`BlockOp::Exchange`](super::BlockOp::Exchange), `WIDTH` being the bytes of an element.
pub(super) struct Exchange<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const STREAM: bool,
>;

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> Algorithm
    for Exchange<WAYS, BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            for row in 0..WAYS {
                for way in 0..WAYS {
                    let from = source
                        .wrapping_add(row.wrapping_mul(strip.row_stride).wrapping_add(way * WIDTH));
                    let to = destination.wrapping_add(
                        way.wrapping_mul(strip.column_stride).wrapping_add(row * WIDTH),
                    );
                    let from = scalar::from(from, WAYS * WIDTH);
                    let to = scalar::to(to, WAYS * WIDTH);
                    // SAFETY: one element of each word of a row, to those of another.
                    unsafe { scalar::elements::<WIDTH>(strip.columns, from, to) };
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        let lanes = V::BYTES / WIDTH;
        let stream = STREAM && streams::<V>(strip, destination, strip.column_stride);
        let last = strip.columns - lanes;
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let mut column = 0;
            loop {
                // The last ones end where the rows do.
                let at = column.min(last) * WAYS * WIDTH;
                // SAFETY: the CPU has `V`.
                let mut parts = [[unsafe { V::splat(0) }; WAYS]; WAYS];
                for (row, parts) in parts.iter_mut().enumerate() {
                    let from =
                        source.wrapping_add(row.wrapping_mul(strip.row_stride).wrapping_add(at));
                    // SAFETY: the words of `lanes` columns of one row.
                    let words = unsafe { load_row::<V, WAYS>(from) };
                    *parts = unweave::<V, WAYS, BITS>(words);
                }
                for way in 0..WAYS {
                    // SAFETY: the CPU has `V`.
                    let mut rows = [unsafe { V::splat(0) }; WAYS];
                    for (vector, parts) in rows.iter_mut().zip(&parts) {
                        *vector = parts[way];
                    }
                    let to = destination
                        .wrapping_add(way.wrapping_mul(strip.column_stride).wrapping_add(at));
                    for (i, words) in weave::<V, WAYS, BITS>(rows).into_iter().enumerate() {
                        if stream && column <= last {
                            // SAFETY: the words of these columns of another row; whole
                            // vectors from an aligned start.
                            unsafe { words.stream(to.wrapping_add(i * V::BYTES)) };
                        } else {
                            // SAFETY: the words of these columns of another row.
                            unsafe { words.store(to.wrapping_add(i * V::BYTES)) };
                        }
                    }
                }
                if column >= last {
                    break;
                }
                column += lanes;
            }
        }
    }

    #[inline(always)]
    fn instead<V: Vector>(strip: &Strip, _: *mut u8) -> Option<Run> {
        (strip.columns < V::BYTES / WIDTH).then(shorter::<Self, V>)
    }
}
