//! Kernels: what the innermost loops of a nest do in one call.
//!
//! This serves the crate `relayout` alone, which shows what of it is for everybody (element types,
//! tiers, conversions, the names of block ops). The rest may change with any version.
//!
//! A kernel knows widths, strides and pointers; it never sees a shape. It works
//! on a [`Strip`]: blocks at fixed steps, each a small matrix of elements. What
//! it does with each block is a [`BlockOp`]; which instructions it uses for that
//! is its tier. There is one algorithm for each op (`algorithm.rs`), written over a small vector
//! trait (`vector.rs`), and one thin file for each instruction set. The scalar
//! tier (`scalar.rs`) is written without vectors, and does for the others what
//! is too small for one.
//!
//! # The contract
//!
//! A kernel is called with a strip, the places of its blocks in the order in which
//! to visit them, and two pointers. Where [`BlockOp::goes_by_order`] says no, or
//! when it streams, it finds the places itself and gets none. It may
//!
//! - read the bytes in [`Strip::source_range`], counted from `source`,
//! - write the bytes in [`Strip::destination_range`], counted from `destination`,
//!   and of these only the ones that its op writes; some of them several times, the last time
//!   with what belongs there.
//!
//! The caller sees to it that these bytes are there, that the two ranges do not
//! overlap, and that the CPU has the tier: [`kernel`] takes a `Tier`, which
//! proves it. Nothing need be aligned.

// No input may panic. What panics or truncates by design is denied here; an
// index out of bounds is not, so indexing is left to places that know theirs.
#![cfg_attr(
    not(test),
    deny(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        clippy::expect_used,
        clippy::panic,
        clippy::todo,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]
// Unit tests are of what kernels are made of. Whole ones would be compiled again for them, which takes
// minutes; they are tested from outside, in tests/strips.rs.
#![cfg_attr(test, allow(dead_code, unused_imports, unused_macros, reason = "kernels are left out"))]

#[cfg(target_endian = "big")]
compile_error!("images and host arrays are little-endian, and so has the machine to be");

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod ahead;
mod algorithm;
mod at_strides;
mod bit_runs;
pub mod bits;
mod block_op;
mod carry;
mod conversion;
mod convert;
mod convert_words;
mod copy;
mod copy_bits;
mod copy_words;
mod cpu;
mod crowded;
mod crowded_rows;
mod deinterleave;
mod dense;
mod dense_columns;
mod dense_words;
mod element;
pub mod excerpt;
mod exchange;
mod few;
mod interleave;
mod joined;
mod matrix;
mod narrow;
mod narrow_transpose;
mod packed;
mod packed_rows;
mod pages;
mod pixels;
mod places;
mod portable;
mod reversed;
mod rows;
mod runs;
mod scalar;
mod squeeze;
mod transpose;
mod transpose_runs;
mod triples;
mod turn;
mod vector;
mod walk;
mod whole_lines;
mod word_columns;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::ops::Range;

pub use block_op::BlockOp;
pub use conversion::{Conversion, convert_element};
use cpu::Level;
pub use cpu::{Core, Tier, TierError};
pub use crowded::ROOM;
pub use dense_words::has_dense_words;
pub use element::{ElementType, UnknownElementType};
use matrix::Matrix;
pub use matrix::joins_both_loops;
pub use pixels::has_pixels;
use places::Split;
use vector::LINE;
pub use word_columns::has_word_columns;

/// Where a block begins, in bytes from where its strip does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    source: usize,
    destination: usize,
}

impl Place {
    /// The pointers to it, from those to the strip.
    #[inline(always)]
    pub fn of(self, source: *const u8, destination: *mut u8) -> (*const u8, *mut u8) {
        (source.wrapping_add(self.source), destination.wrapping_add(self.destination))
    }
}

/// Where the blocks of one kernel call are. All in bytes, but for counts, and for what is said to be in bits. Steps and
/// strides are modulo the size of an address: those of host arrays may be negative.
///
/// Block b of line l starts at `source + l * source_line + b * source_step`, and
/// so in the destination. Within it, an op with `rows` and `columns` reads and
/// writes, w being what an element or a word takes:
///
/// | op | source of (row, column) | destination |
/// |---|---|---|
/// | copy, reverse, fill | column | column |
/// | copy-words | word column | word column |
/// | interleave, squeeze | row · row_stride + column · w | word column |
/// | deinterleave, unsqueeze | word column | row · row_stride + column · w |
/// | narrow, widen, convert | element column | element column |
/// | copy-bits | bit source_bit + column | bit destination_bit + column |
/// | narrow-bits | column | bit destination_bit + column · w |
/// | widen-bits | bit source_bit + column · w | column |
/// | convert-interleave | row · row_stride + column · w before | word column |
/// | deinterleave-convert | word column | row · row_stride + column · w behind |
/// | transpose | row · row_stride + column · w | column · column_stride + row · w |
/// | narrow-transpose | row · row_stride + column | (column / ways) · column_stride + word row |
/// | transpose-widen | (row / ways) · row_stride + word column | column · column_stride + row |
/// | gather-transpose | row · row_stride + (way · columns + column) · w | column · column_stride + (row · ways + way) · w |
/// | transpose-scatter | row · row_stride + (column · ways + way) · w | column · column_stride + (way · rows + row) · w |
/// | transpose-interleave | row · row_stride + column · w | (column / ways) · column_stride + word row · ways on |
/// | interleave-transpose | way · row_stride + (row · columns + column) · w | column · column_stride + (row · ways + way) · w |
/// | transpose-deinterleave | column · column_stride + (row · ways + way) · w | way · row_stride + (row · columns + column) · w |
/// | interleave-columns | row · row_stride + column · w | (column / ways) · column_stride + (row · ways + column mod ways) · w |
/// | deinterleave-columns | (column / ways) · column_stride + (row · ways + column mod ways) · w | row · row_stride + column · w |
/// | exchange | row · row_stride + word column | way · column_stride + word column |
/// | strided | column · row_stride | column · column_stride |
///
/// Of a transpose-interleave, element e of a word of the source is the element of number
/// column mod ways in word row · ways + e of the destination; of an exchange, element
/// `way` of a word is the element of number `row` there. Of a narrow-transpose, and its mirror, `ways` are the
/// elements of a word of 32 bits; what the last one has room for besides is written as zeros, or not looked at.
///
/// Of narrow-bits, lines and steps are in bits in the destination, of widen-bits in the source.
///
/// Behind the columns, `pad` bytes of zeros are written in the destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strip {
    /// Rows of blocks.
    pub lines: usize,
    /// From one line to the next one, in the source.
    pub source_line: usize,
    /// And in the destination.
    pub destination_line: usize,
    /// Blocks of each line.
    pub blocks: usize,
    /// From one block to the next one, in the source.
    pub source_step: usize,
    /// And in the destination.
    pub destination_step: usize,
    /// Of interleave, convert-interleave and squeeze it may be fewer than a word takes; the others
    /// count as zeros, as do those of copy-words. Of their mirrors, the others are left out.
    pub rows: usize,
    /// From one row of a block to the next one, on the side that has rows.
    pub row_stride: usize,
    /// Elements, words or bytes of a row, as the table says.
    pub columns: usize,
    /// From one column to the next one, on the side that has columns.
    pub column_stride: usize,
    /// The bytes of an element, of a transpose of [runs](is_of_runs), which has no kernel of its own for each width.
    pub element_bytes: usize,
    /// Bytes of zeros behind the columns.
    pub pad: usize,
    /// How many columns the blocks of one more line have, none if 0. Of copies,
    /// deinterleaves and unsqueezes without `pad`, and only for kernels that stream, of a tier
    /// that can; and of transposes whose lines continue each other's rows in the source.
    pub tail: usize,
    /// How many rows one more block of each line has, none if 0. Only of transposes without a `tail`, whose blocks
    /// continue each other's columns in the destination.
    pub tail_rows: usize,
    /// The byte that a fill writes.
    pub fill: u8,
    /// Of a copy of bits, whose columns are bits: which one of a byte its runs begin with in the source, in the order that
    /// this has. Of widen-bits, which one the first run begins with.
    pub source_bit: u8,
    /// The same in the destination, of a copy of bits and of narrow-bits.
    pub destination_bit: u8,
    /// Of a transpose: its blocks are visited in an order without order, if their places are in tables. A hint.
    pub is_shuffled: bool,
    /// How far it is from its source to that of the strip that mostly follows, where the
    /// source is no scratch memory. A hint.
    pub next: usize,
    /// Both sides of what it is a part of are too large for L3. A hint.
    pub is_far: bool,
    /// The source is in L3, if anywhere, and larger panels of it are as well. A hint.
    pub is_near: bool,
    /// What the caches and prefetchers are those of. A hint.
    pub core: Core,
    /// Where it is streamed: one page of three of the destination is not. A hint.
    pub pages_by_turns: bool,
}

/// Columns that follow each other for so many bytes do so for a while.
const LONG_COLUMNS: usize = 4096;

/// Shorter runs are not turned round by vectors, nor as numbers.
const LEAST_REVERSED: usize = 16;

impl Strip {
    /// Where block `block` of line `line` begins.
    #[inline(always)]
    fn place(&self, line: usize, block: usize) -> Place {
        Place {
            source: line
                .wrapping_mul(self.source_line)
                .wrapping_add(block.wrapping_mul(self.source_step)),
            destination: line
                .wrapping_mul(self.destination_line)
                .wrapping_add(block.wrapping_mul(self.destination_step)),
        }
    }

    /// The fewest bytes of a run of its [`tail`](Strip::tail), if the streaming kernel of a tier
    /// knows one. In a line with a shorter run there may be more than one other, and it would part
    /// what its kernel puts into lines; but `rows` makes it with the words of a whole vector.
    pub fn least_tail(&self, op: BlockOp, tier: Tier) -> Option<usize> {
        let BlockOp::Deinterleave { ways, bits: 8.., .. } = op else {
            return match op {
                BlockOp::Copy => Some(LINE),
                BlockOp::Unsqueeze { .. } => squeeze::takes_tail(self).then_some(1),
                _ => None,
            };
        };
        let has_lines = match tier.level() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => true,
            _ => false,
        };
        let ways = usize::try_from(ways).ok()?;
        let by_rows = has_lines
            && ways <= rows::MOST
            && self.destination_runs(op)?.bytes.is_multiple_of(LINE);
        Some(if by_rows { LINE / ways.max(1) } else { LINE })
    }

    /// The line of fewer columns behind the others, which begins where one more of them would.
    #[inline(always)]
    fn last_line(&self) -> Strip {
        Strip { lines: 1, columns: self.tail, tail: 0, ..*self }
    }

    /// The blocks of fewer rows behind the others of each line, which begin where one more of them would.
    #[inline(always)]
    fn last_block(&self) -> Strip {
        Strip { blocks: 1, rows: self.tail_rows, tail_rows: 0, ..*self }
    }

    /// Whether there is a line, or a block of each, that has less than the others.
    #[inline(always)]
    pub fn has_tail(&self) -> bool {
        (self.tail | self.tail_rows) > 0
    }

    /// The blocks that are alike, and those behind them that have fewer columns, or rows; and where they begin.
    pub fn pieces(&self) -> impl Iterator<Item = (Strip, Place)> {
        let alike = Strip { tail: 0, tail_rows: 0, ..*self };
        let last_line = (self.last_line(), self.place(self.lines, 0));
        let last_block = (self.last_block(), self.place(0, self.blocks));
        let tails = [(self.tail > 0, last_line), (self.tail_rows > 0, last_block)];
        let there = tails.into_iter().filter_map(|(is_there, tail)| is_there.then_some(tail));
        [(alike, Place::default())].into_iter().chain(there)
    }

    /// The lines that are alike, in a strip whose tail means nothing, and the one of fewer columns
    /// behind them, if `TAIL` says that there may be one.
    #[inline(always)]
    fn parts<'a, const TAIL: bool>(
        &'a self,
        last: &'a mut Strip,
    ) -> impl Iterator<Item = (&'a Strip, Place)> {
        if TAIL {
            *last = self.last_line();
        }
        [(self, self.place(0, 0)), (&*last, self.place(self.lines, 0))]
            .into_iter()
            .take(1 + usize::from(TAIL && self.tail > 0))
    }

    /// Whether rows of so many bytes in the destination, of which a block has several, follow each other.
    #[inline(always)]
    pub fn rows_join(&self, bytes: usize) -> bool {
        self.rows > 1 && self.row_stride == bytes
    }

    /// Where its blocks begin, line by line.
    #[inline(always)]
    fn places(&self) -> impl Iterator<Item = Place> {
        let strip = *self;
        (0..strip.lines)
            .flat_map(move |line| (0..strip.blocks).map(move |block| strip.place(line, block)))
    }

    /// Where its blocks begin, in an order without order.
    ///
    /// Within L1 and L2 prefetchers are in the way: runs of a few lines of cache
    /// at regular distances go at 60 % of the speed that the same runs have when
    /// they are visited in a random order (docs/performance.md has the figures).
    pub fn shuffled(&self) -> Vec<Place> {
        let mut places: Vec<Place> = self.places().collect();
        // Fisher and Yates.
        let mut random: u64 = 1;
        for left in (2..=places.len()).rev() {
            random = next_random(random);
            let high = usize::try_from(random >> 33).unwrap_or_default();
            places.swap(high % left, left - 1);
        }
        places
    }

    /// Where its blocks begin, in the order of the destination.
    pub fn by_destination(&self) -> Vec<Place> {
        let mut places: Vec<Place> = self.places().collect();
        // Steps are modulo the size of an address.
        places.sort_by_key(|place| place.destination.cast_signed());
        places
    }

    /// Of a transpose: whether the blocks of a line continue each other's columns in
    /// the destination, where each row has so many bytes.
    fn blocks_join(&self, bytes: usize) -> bool {
        self.rows.checked_mul(bytes) == Some(self.destination_step)
    }

    /// Of a transpose: whether the lines continue each other's rows in the source,
    /// where each column has so many bytes.
    fn lines_join(&self, bytes: usize) -> bool {
        self.columns.checked_mul(bytes) == Some(self.source_line)
    }

    /// Whether an op has single elements that are a run from its end to its start, and as many as are worth vectors.
    pub fn is_reversed_run(&self, op: BlockOp) -> bool {
        matches!(op, BlockOp::Strided { bits } if self.reverses(bytes(bits)))
    }

    /// The same of elements of so many bytes.
    #[inline(always)]
    fn reverses(&self, width: usize) -> bool {
        self.row_stride == width.wrapping_neg()
            && self.column_stride == width
            && self.columns >= LEAST_REVERSED
            && width <= 8
    }

    /// Whether the blocks of an op are shorter than the shortest vector, 16 bytes, so
    /// that a tier moves their elements one by one.
    pub fn is_below_vectors(&self, op: BlockOp, tier: Tier) -> bool {
        let lanes = |bytes: usize| (16 / bytes.max(1)).max(1);
        match op {
            BlockOp::Transpose { bits } if is_of_runs(bits) => false,
            // Of few rows or columns, words are made one by one.
            BlockOp::Transpose { bits } => {
                let (rows, columns) = self.matrix_size(bytes(bits));
                rows.max(columns) < lanes(bytes(bits)) || rows.min(columns) < 2
            }
            BlockOp::TransposeInterleave { .. }
            | BlockOp::NarrowTranspose { .. }
            | BlockOp::TransposeWiden { .. } => {
                let words = self.transposed(op).map(|(matrix, element)| element.words(matrix));
                let (rows, columns) = words.map_or((0, 0), |words| (words.rows, words.columns));
                // Few words of many rows, or columns, are done by masks.
                let many = match op {
                    BlockOp::NarrowTranspose { .. } => rows,
                    BlockOp::TransposeWiden { .. } => columns,
                    _ => 0,
                };
                let has_few = tier.has_masks() && many >= tier.vector_bytes() / size_of::<u32>();
                // What is exchanged in vectors has a word of each row at least in the longest ones.
                let least = match op {
                    BlockOp::TransposeInterleave { bits: ..8, .. } => {
                        tier.vector_bytes() / size_of::<u32>()
                    }
                    _ => 0,
                };
                rows.min(columns) < lanes(size_of::<u32>()).max(least) && !has_few
            }
            BlockOp::GatherTranspose { .. } | BlockOp::TransposeScatter { .. } => {
                let (rows, columns) = self.matrix_size(size_of::<u32>());
                let (images, pixels, channels) = match op {
                    BlockOp::GatherTranspose { .. } => (rows, columns, self.columns),
                    _ => (columns, rows, self.rows),
                };
                let least = lanes(size_of::<u32>());
                !tier.shuffles() || images < least || pixels < least.saturating_mul(channels)
            }
            BlockOp::Interleave { bits: bits @ 8.., .. }
            | BlockOp::Deinterleave { bits: bits @ 8.., .. }
            | BlockOp::Exchange { bits, .. } => self.columns < lanes(bytes(bits)),
            BlockOp::InterleaveTranspose { bits, .. }
            | BlockOp::TransposeDeinterleave { bits, .. }
            | BlockOp::InterleaveColumns { bits, .. }
            | BlockOp::DeinterleaveColumns { bits, .. } => self.rows < lanes(bytes(bits)),
            BlockOp::Squeeze { .. }
            | BlockOp::Unsqueeze { .. }
            | BlockOp::Interleave { .. }
            | BlockOp::Deinterleave { .. } => self.columns < lanes(1),
            _ => false,
        }
    }

    /// What an op transposes.
    fn element_of_transpose(op: BlockOp) -> Option<Element> {
        let element = |width| Element {
            width,
            source: width,
            destination: width,
            rows_of_word: 1,
            columns_of_word: 1,
            ways: 1,
        };
        let word = element(size_of::<u32>());
        Some(match op {
            BlockOp::Transpose { bits } => element(bytes(bits)),
            BlockOp::GatherTranspose { .. } | BlockOp::TransposeScatter { .. } => word,
            BlockOp::TransposeInterleave { ways, bits } => {
                let width = bytes(ways.checked_mul(bits)?);
                let ways = usize::try_from(ways).ok()?.max(1);
                let destination = width.saturating_mul(ways);
                Element { destination, ways, ..element(width) }
            }
            BlockOp::NarrowTranspose { bits, .. } => {
                Element { source: 1, columns_of_word: elements_of_word(bits)?, ..word }
            }
            BlockOp::TransposeWiden { bits } => {
                Element { destination: 1, rows_of_word: elements_of_word(bits)?, ..word }
            }
            _ => return None,
        })
    }

    /// How many columns a block of a transpose has, of words where these are made of columns.
    pub fn columns_of_block(&self, op: BlockOp) -> usize {
        let in_word = Self::element_of_transpose(op).map_or(1, |element| element.columns_of_word);
        self.columns / in_word
    }

    /// The matrices of an op that transposes, and of what.
    fn transposed(&self, op: BlockOp) -> Option<(Matrix, Element)> {
        let element = Self::element_of_transpose(op)?;
        let Element { source, destination, ways, .. } = element;
        Some((Matrix::of_widths(self, source, destination, ways), element))
    }

    /// What the columns are that an op transposes rows to, where one of them begins with a line of the caches.
    pub fn columns_of_transpose(&self, op: BlockOp) -> Option<WrittenColumns> {
        let (matrix, element) = self.transposed(op)?;
        let bytes = matrix.rows.saturating_mul(element.destination);
        let Matrix { columns, column, .. } = element.words(matrix);
        let are_many = column.block.saturating_mul(bytes) >= LONG_COLUMNS;
        let follow = column.stride == bytes && (are_many || column.is_even(columns / element.ways));
        // What is no whole word is written by itself.
        let are_whole = matrix.rows.is_multiple_of(element.rows_of_word);
        Some(WrittenColumns {
            bytes,
            begin_at_lines: matrix.has_whole_lines(std::ptr::null_mut()),
            go_on: are_whole && (follow || column.step == bytes),
        })
    }

    /// Of a transpose of elements of so many bytes: the bytes that follow each other in the destination, of the columns of a
    /// [dense](Strip::is_dense) matrix of few rows.
    pub fn run_of_dense(&self, width: usize) -> Option<usize> {
        let is_of_few_rows = self.rows < self.columns && self.is_dense(width);
        is_of_few_rows.then(|| self.columns.saturating_mul(self.column_stride))
    }

    /// Of an op that transposes words, or longer elements: how many of the rows and of the columns of
    /// a block, which have a line each, share a set of L1 at least. Otherwise none.
    pub fn crowds(&self, op: BlockOp) -> (usize, usize) {
        let Some((matrix, element)) = self.transposed(op) else { return (0, 0) };
        let Element { width, ways, .. } = element;
        let Matrix { rows, columns, row, column, .. } = element.words(matrix);
        if width < size_of::<u32>() || rows.min(columns) == 0 || row.block.min(column.block) == 0 {
            return (0, 0);
        }
        let lanes = LINE / width;
        let places = (lanes / ways).min(columns / ways);
        (row.crowd(lanes.min(rows), crowded::L1_SETS), column.crowd(places, crowded::L1_SETS))
    }

    /// Of a transpose of words, or longer elements: whether the columns of a block of lines take all the room of their sets of
    /// L1, and no more, while rows have room. A few of its columns at a time have room then.
    pub fn crowds_columns_alone(&self, op: BlockOp) -> bool {
        let transposed =
            if let BlockOp::Transpose { .. } = op { self.transposed(op) } else { None };
        transposed.is_some_and(|(matrix, Element { width, .. })| {
            width >= size_of::<u32>()
                && matrix.rows.min(matrix.columns) >= LINE / width
                && self.crowds(op).1 == ROOM
                && matrix.crowds_columns_alone(LINE / width)
        })
    }

    /// How many rows and columns the matrices of a transpose have, of elements of so many bytes.
    pub fn matrix_size(&self, width: usize) -> (usize, usize) {
        let Matrix { rows, columns, .. } = Matrix::new(self, width, 1);
        (rows, columns)
    }

    /// Whether the matrices of a transpose have all rows, and all columns, at one stride.
    pub fn is_even_matrix(&self, width: usize) -> bool {
        Matrix::new(self, width, 1).is_even()
    }

    /// Of a transpose: whether it goes along the columns where neither side shares sets of L1 more than the other, because
    /// they are farther from each other than the rows.
    pub fn goes_by_columns(&self) -> bool {
        let distance = |stride: usize| stride.cast_signed().unsigned_abs();
        distance(self.column_stride) > distance(self.row_stride)
    }

    /// What a block of an op reads: so many runs of so many bytes, `row_stride` apart.
    /// `None` where a number does not fit.
    pub fn source_runs(&self, op: BlockOp) -> Option<Runs> {
        let run = |element: u32| run_bytes(self.columns, element);
        let rows = |bytes| Runs { count: self.rows, stride: self.row_stride, bytes };
        let one = |bytes| Runs { count: 1, stride: 0, bytes };
        Some(match op {
            BlockOp::InterleaveTranspose { ways, bits } => self.dense_rows(ways, bits)?,
            BlockOp::TransposeDeinterleave { ways, bits } => self.columns_of_words(ways, bits)?,
            BlockOp::InterleaveColumns { bits, .. } => rows(run(bits)?),
            BlockOp::DeinterleaveColumns { ways, bits } => self.words_of_columns(ways, bits)?,
            BlockOp::Copy
            | BlockOp::Reverse { .. }
            | BlockOp::Narrow { .. }
            | BlockOp::NarrowBits { .. } => one(self.columns),
            BlockOp::CopyWords { .. } => one(run(u32::BITS)?),
            BlockOp::Interleave { bits, .. } => rows(run(bits)?),
            BlockOp::Transpose { bits } => rows(self.element_of(bits)?.checked_mul(self.columns)?),
            BlockOp::TransposeInterleave { ways, bits } | BlockOp::Exchange { ways, bits } => {
                rows(run(ways.checked_mul(bits)?)?)
            }
            BlockOp::GatherTranspose { .. } | BlockOp::TransposeScatter { .. } => {
                rows(run(u32::BITS)?)
            }
            BlockOp::NarrowTranspose { .. } => rows(self.columns),
            BlockOp::TransposeWiden { bits } => {
                let count = self.rows.div_ceil(elements_of_word(bits)?);
                Runs { count, ..rows(run(u32::BITS)?) }
            }
            BlockOp::Convert { conversion } => {
                one(self.columns.checked_mul(conversion.widths().0)?)
            }
            BlockOp::ConvertInterleave { conversion } => {
                rows(self.columns.checked_mul(conversion.widths().0)?)
            }
            BlockOp::DeinterleaveConvert { .. } => one(run(u32::BITS)?),
            BlockOp::Squeeze { .. } => rows(self.columns),
            BlockOp::Deinterleave { ways, bits, .. } => one(run(ways.checked_mul(bits)?)?),
            BlockOp::Unsqueeze { ways, .. } => one(run(ways.checked_mul(8)?)?),
            BlockOp::Widen { bits } => one(run_bytes(self.columns, bits)?),
            BlockOp::WidenBits { bits, .. } => {
                one(bytes_of_bits(self.source_bit, self.bits_of_columns(bits)?)?)
            }
            BlockOp::CopyBits { .. } => one(bytes_of_bits(self.source_bit, self.columns)?),
            BlockOp::Strided { bits } => {
                Runs { count: self.columns, stride: self.row_stride, bytes: bytes(bits) }
            }
            BlockOp::Fill | BlockOp::Bits { .. } | BlockOp::FillBits => one(0),
        })
    }

    /// What a block of an op writes, its padding left out.
    pub fn destination_runs(&self, op: BlockOp) -> Option<Runs> {
        let run = |element: u32| run_bytes(self.columns, element);
        let rows = |bytes| Runs { count: self.rows, stride: self.row_stride, bytes };
        let columns = |count, elements: usize, bits| {
            let bytes = elements.checked_mul(bytes(bits))?;
            Some(Runs { count, stride: self.column_stride, bytes })
        };
        let one = |bytes| Runs { count: 1, stride: 0, bytes };
        Some(match op {
            BlockOp::Copy
            | BlockOp::Reverse { .. }
            | BlockOp::Fill
            | BlockOp::Widen { .. }
            | BlockOp::WidenBits { .. } => one(self.columns),
            BlockOp::Convert { conversion } => {
                one(self.columns.checked_mul(conversion.widths().1)?)
            }
            BlockOp::CopyWords { .. } | BlockOp::ConvertInterleave { .. } => one(run(u32::BITS)?),
            BlockOp::DeinterleaveConvert { conversion } => {
                rows(self.columns.checked_mul(conversion.widths().1)?)
            }
            BlockOp::Interleave { ways, bits, .. } => one(run(ways.checked_mul(bits)?)?),
            BlockOp::Squeeze { ways, .. } => one(run(ways.checked_mul(8)?)?),
            BlockOp::Deinterleave { bits, .. } => rows(run(bits)?),
            BlockOp::Unsqueeze { .. } => rows(self.columns),
            BlockOp::Narrow { bits, .. } => one(run_bytes(self.columns, bits)?),
            BlockOp::NarrowBits { bits, .. } => {
                one(bytes_of_bits(self.destination_bit, self.bits_of_columns(bits)?)?)
            }
            BlockOp::CopyBits { .. } => one(bytes_of_bits(self.destination_bit, self.columns)?),
            BlockOp::Transpose { bits } => {
                let bytes = self.element_of(bits)?.checked_mul(self.rows)?;
                Runs { count: self.columns, stride: self.column_stride, bytes }
            }
            BlockOp::GatherTranspose { .. } | BlockOp::TransposeScatter { .. } => {
                columns(self.columns, self.rows, u32::BITS)?
            }
            BlockOp::NarrowTranspose { bits, .. } => {
                columns(self.columns.div_ceil(elements_of_word(bits)?), self.rows, u32::BITS)?
            }
            BlockOp::TransposeWiden { .. } => columns(self.columns, self.rows, 8)?,
            // Words of some columns each, as many of them as rows for each column.
            BlockOp::TransposeInterleave { ways, bits } => {
                let ways_wide = usize::try_from(ways).ok()?;
                let words = self.rows.checked_mul(ways_wide)?;
                columns(self.columns.checked_div(ways_wide)?, words, ways.checked_mul(bits)?)?
            }
            BlockOp::InterleaveTranspose { ways, bits } => self.columns_of_words(ways, bits)?,
            BlockOp::TransposeDeinterleave { ways, bits } => self.dense_rows(ways, bits)?,
            BlockOp::InterleaveColumns { ways, bits } => self.words_of_columns(ways, bits)?,
            BlockOp::DeinterleaveColumns { bits, .. } => rows(run(bits)?),
            BlockOp::Exchange { ways, bits } => {
                columns(usize::try_from(ways).ok()?, self.columns, ways.checked_mul(bits)?)?
            }
            BlockOp::Strided { bits } => columns(self.columns, 1, bits)?,
            BlockOp::Bits { .. } | BlockOp::FillBits => one(0),
        })
    }

    fn bits_of_columns(&self, bits: u32) -> Option<usize> {
        self.columns.checked_mul(usize::try_from(bits).ok()?)
    }

    /// The bytes of what is transposed. `None` if the kernel were told others.
    fn element_of(&self, bits: u32) -> Option<usize> {
        let element = bytes(bits);
        (!is_of_runs(bits) || self.element_bytes == element).then_some(element)
    }

    /// Of the rows that words are made of, each of which is a dense matrix.
    fn dense_rows(&self, ways: u32, bits: u32) -> Option<Runs> {
        let elements = self.rows.checked_mul(self.columns)?;
        let bytes = elements.checked_mul(bytes(bits))?;
        Some(Runs { count: usize::try_from(ways).ok()?, stride: self.row_stride, bytes })
    }

    /// And of the columns of their words.
    fn columns_of_words(&self, ways: u32, bits: u32) -> Option<Runs> {
        let bytes = self.rows.checked_mul(bytes(ways.checked_mul(bits)?))?;
        Some(Runs { count: self.columns, stride: self.column_stride, bytes })
    }

    /// The words that have so many columns each.
    fn words_of_columns(&self, ways: u32, bits: u32) -> Option<Runs> {
        let words = self.columns.div_ceil(usize::try_from(ways).ok()?.max(1));
        Some(Runs { count: words, ..self.columns_of_words(ways, bits)? })
    }

    /// Which bytes a kernel may read, counted from the source pointer. `None` where a
    /// number does not fit, or there are no runs.
    pub fn source_range(&self, op: BlockOp) -> Option<Range<i128>> {
        if let BlockOp::WidenBits { bits, .. } = op {
            let lines = [(self.lines, self.source_line), (self.blocks, self.source_step)];
            return self.bytes_of_runs(self.source_bit, bits, lines);
        }
        self.range((self.source_line, self.source_step), |strip| {
            let lines = [(strip.lines, strip.source_line), (strip.blocks, strip.source_step)];
            strip.source_runs(op)?.range(lines)
        })
    }

    /// Which bytes a kernel may write, counted from the destination pointer. `None`
    /// where a number does not fit, or there are no runs.
    pub fn destination_range(&self, op: BlockOp) -> Option<Range<i128>> {
        if let BlockOp::NarrowBits { bits, .. } = op {
            let blocks = (self.blocks, self.destination_step);
            let lines = [(self.lines, self.destination_line), blocks];
            return self.bytes_of_runs(self.destination_bit, bits, lines);
        }
        self.range((self.destination_line, self.destination_step), |strip| {
            let blocks = (strip.blocks, strip.destination_step);
            let mut runs = strip.destination_runs(op)?;
            runs.bytes = runs.bytes.checked_add(strip.pad)?;
            runs.range([(strip.lines, strip.destination_line), blocks])
        })
    }

    /// The bytes that have a bit of runs of elements of so many bits, whose lines and steps are in bits.
    fn bytes_of_runs(
        &self,
        first: u8,
        bits: u32,
        lines: [(usize, usize); 2],
    ) -> Option<Range<i128>> {
        let run = Runs { count: 1, stride: 0, bytes: self.bits_of_columns(bits)? };
        let all = run.range(lines)?;
        let first = i128::from(first);
        let end = all.end.checked_add(first + 7)?.div_euclid(8);
        Some(all.start.checked_add(first)?.div_euclid(8)..end)
    }

    /// The same strip, lines in the place of blocks if it is these that go on with each other in the destination, and the
    /// blocks go on with them.
    fn along_runs(&self, op: BlockOp) -> Strip {
        let run = self.destination_runs(op).map(|runs| runs.bytes.wrapping_add(self.pad));
        let lines = self.lines.wrapping_mul(self.destination_line);
        if self.lines < 2 || run != Some(self.destination_line) || lines != self.destination_step {
            return *self;
        }
        Strip {
            lines: self.blocks,
            source_line: self.source_step,
            destination_line: self.destination_step,
            blocks: self.lines,
            source_step: self.source_line,
            destination_step: self.destination_line,
            ..*self
        }
    }

    /// How many bytes an op writes.
    pub fn written_bytes(&self, op: BlockOp) -> Option<usize> {
        self.pieces().try_fold(0_usize, |sum, (strip, _)| {
            let runs = strip.destination_runs(op)?;
            let block = runs.count.checked_mul(runs.bytes)?.checked_add(strip.pad)?;
            sum.checked_add(strip.lines.checked_mul(strip.blocks)?.checked_mul(block)?)
        })
    }

    /// The bytes of the blocks that are alike, and of those behind them, where lines and blocks are so far from each
    /// other.
    fn range(
        &self,
        (line, step): (usize, usize),
        of: impl Fn(&Strip) -> Option<Range<i128>>,
    ) -> Option<Range<i128>> {
        let mut range = of(self)?;
        let mut add = |last: Strip, count: usize, apart: usize| {
            let last = of(&last)?;
            let apart = i128::try_from(apart.cast_signed()).ok()?;
            let by = i128::try_from(count).ok()?.checked_mul(apart)?;
            let (start, end) = (last.start.checked_add(by)?, last.end.checked_add(by)?);
            range = range.start.min(start)..range.end.max(end);
            Some(())
        };
        if self.tail > 0 {
            add(self.last_line(), self.lines, line)?;
        }
        if self.tail_rows > 0 {
            add(self.last_block(), self.blocks, step)?;
        }
        Some(range)
    }
}

/// What is transposed.
#[derive(Clone, Copy)]
struct Element {
    /// Its bytes in a vector.
    width: usize,
    /// Those that a column adds to a row of the source, and a row to a column of the destination.
    source: usize,
    destination: usize,
    /// So many rows are in a word of the source, and so many columns in one of the destination.
    rows_of_word: usize,
    columns_of_word: usize,
    /// So many columns of words share a place in the destination.
    ways: usize,
}

impl Element {
    /// A matrix in words, where these are made of rows, or of columns.
    fn words(self, matrix: Matrix) -> Matrix {
        let Element { rows_of_word, columns_of_word, .. } = self;
        let in_words = |split: Split, count: usize| Split { block: split.block / count, ..split };
        Matrix {
            rows: matrix.rows / rows_of_word,
            columns: matrix.columns / columns_of_word,
            row: in_words(matrix.row, rows_of_word),
            column: in_words(matrix.column, columns_of_word),
            ..matrix
        }
    }
}

/// The columns of a transpose in the destination.
#[derive(Clone, Copy)]
pub struct WrittenColumns {
    bytes: usize,
    begin_at_lines: bool,
    /// Where one ends, the next one begins, for a while at least, or the same one of the next block.
    go_on: bool,
}

impl WrittenColumns {
    /// Whether they are whole lines.
    pub fn are_lines(self) -> bool {
        self.begin_at_lines && self.bytes.is_multiple_of(LINE)
    }

    /// Whether they have fewer bytes than that, begin within lines and do not go on with each other.
    pub fn are_loose(self, bytes: usize) -> bool {
        self.bytes < bytes && !self.begin_at_lines && !self.go_on
    }
}

/// So many runs of so many bytes, a stride apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    /// How many there are.
    pub count: usize,
    /// From one to the next one, in bytes, modulo the size of an address.
    pub stride: usize,
    /// The bytes of each.
    pub bytes: usize,
}

impl Runs {
    /// All bytes from the first to the last, of runs that come again in lines of
    /// blocks.
    fn range(self, lines: [(usize, usize); 2]) -> Option<Range<i128>> {
        let (mut start, mut end) = (0_i128, i128::try_from(self.bytes).ok()?);
        for (count, stride) in [lines[0], lines[1], (self.count, self.stride)] {
            // Both have 64 bits at most.
            let stride = i128::try_from(stride.cast_signed()).ok()?;
            let last = i128::try_from(count.checked_sub(1)?).ok()?.checked_mul(stride)?;
            start = start.checked_add(last.min(0))?;
            end = end.checked_add(last.max(0))?;
        }
        Some(start..end)
    }
}

/// The generator of Knuth's MMIX, whose high bits count.
const fn next_random(random: u64) -> u64 {
    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

/// How many elements of so many bits a word of 32 has.
fn elements_of_word(bits: u32) -> Option<usize> {
    usize::try_from(u32::BITS.checked_div(bits)?).ok().filter(|&count| count > 0)
}

/// Whether a transpose of elements of so many bits, whole bytes, is one of runs: no kernel is compiled for their width, but
/// one moves each as it is.
pub fn is_of_runs(bits: u32) -> bool {
    bits > 0 && bits.is_multiple_of(8) && !matches!(bits, 8 | 16 | 32 | 64)
}

/// The bytes of an element of whole bytes.
fn bytes(bits: u32) -> usize {
    usize::try_from(bits / 8).unwrap_or(usize::MAX)
}

/// The bytes of a run of elements, of whole bytes or of less than one.
fn run_bytes(columns: usize, bits: u32) -> Option<usize> {
    if bits >= 8 {
        return columns.checked_mul(bytes(bits));
    }
    Some(columns.checked_mul(usize::try_from(bits).ok()?)?.div_ceil(8))
}

/// The bytes that have one of so many bits, which begin with that one of a byte.
fn bytes_of_bits(first: u8, count: usize) -> Option<usize> {
    Some(count.checked_add(first.into())?.div_ceil(8))
}

/// A kernel, to be called by the contract above.
pub type Run = unsafe fn(strip: &Strip, order: &[Place], source: *const u8, destination: *mut u8);

/// The kernel of a tier for an op. With `stream`, it streams
/// where it can.
///
/// `None` where there is none: for widths and ways that no layout has had so
/// far, and for the ops on single bits, which are no matter of speed and done by
/// the driver.
#[cfg(not(test))]
pub fn kernel(op: BlockOp, tier: Tier, stream: bool) -> Option<Run> {
    match tier.level() {
        Level::Scalar => algorithm::kernel::<scalar::Scalar>(op, stream),
        Level::Portable => algorithm::kernel::<portable::V>(op, stream),
        #[cfg(target_arch = "aarch64")]
        Level::Neon => algorithm::kernel::<aarch64::neon::V>(op, stream),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => algorithm::kernel::<x86::avx2::V>(op, stream),
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => algorithm::kernel::<x86::avx512::V>(op, stream),
    }
}

/// Makes what was streamed visible to whoever is told of it
/// next.
pub fn fence() {
    #[cfg(target_arch = "x86_64")]
    x86::fence();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_has_every_block_once() {
        let counts = [(0, 3), (1, 0), (1, 1), (2, 1), (1, 2), (7, 9), (4, 32)];
        let steps = [(10_000, 13), (13, 10_000), (13, 10_000_usize.wrapping_neg())];
        for ((lines, blocks), (destination_line, destination_step)) in
            counts.into_iter().flat_map(|counts| steps.map(|steps| (counts, steps)))
        {
            let strip = Strip {
                lines,
                source_line: 1000,
                destination_line,
                blocks,
                source_step: 7,
                destination_step,
                ..Strip::default()
            };
            let in_order: Vec<Place> = strip.places().collect();
            assert_eq!(in_order.len(), lines * blocks);
            let shuffled = strip.shuffled();
            assert!(in_order.len() < 9 || shuffled != in_order, "{lines} x {blocks}");
            let by_destination = strip.by_destination();
            assert!(by_destination.is_sorted_by_key(|place| place.destination.cast_signed()));
            for mut order in [shuffled, by_destination] {
                order.sort();
                assert_eq!(order, in_order);
            }
        }
    }
}
