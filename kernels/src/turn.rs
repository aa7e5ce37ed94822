//! Blocks of a matrix, whose rows are turned into columns.
//!
//! As many rows as a vector has elements, zipped (see `vector.rs`), are as many columns.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::marker::PhantomData;

use super::ahead;
use super::at_strides::{BlockAtStrides, Strides};
use super::carry::{CacheLines, copy_line};
use super::crowded::L1_SETS;
use super::exchange::exchange;
use super::matrix::{Block, LINES_ALONG, StreamedBlock};
use super::places::Starts;
use super::vector::{
    LINE, MOST_WITHIN, SHORTEST, Vector, load_row, put, turn_within, unrolled, weave,
};

/// How elements stand in memory that are whole ones in vectors: as they are there, where nothing else is said.
pub(super) trait InMemory {
    /// So many times the bytes, in a row of the source and in a column of the destination.
    const SOURCE_TIMES: usize = 1;
    const DESTINATION_TIMES: usize = 1;

    /// Whether they are as they are in vectors, so that any bytes of a vector can be loaded by themselves.
    const ARE_SAME: bool = false;

    /// Loads a vector of them.
    ///
    /// # Safety
    ///
    /// `SOURCE_TIMES` vectors of bytes can be read. The CPU has `V`.
    #[inline(always)]
    unsafe fn load<V: Vector>(from: *const u8) -> V {
        // SAFETY: by the contract of this function.
        unsafe { V::load(from) }
    }

    /// Stores one, streaming where `STREAM` says so.
    ///
    /// # Safety
    ///
    /// `DESTINATION_TIMES` vectors of bytes can be written, which for `STREAM` are aligned. The CPU has `V`.
    #[inline(always)]
    unsafe fn put<V: Vector, const STREAM: bool>(vector: V, to: *mut u8) {
        // SAFETY: by the contract of this function.
        unsafe { put::<V, STREAM>(vector, to) };
    }

    /// Loads 16 bytes of them from each of as many places as a vector has 16 bytes, so far apart; of their
    /// bytes in the source only so many, for the others zeros. Without [masks](Vector::HAS_MASKS) all of them.
    ///
    /// # Safety
    ///
    /// These bytes can be read. The CPU has `V`.
    #[inline(always)]
    unsafe fn gather<V: Vector>(first: *const u8, apart: usize, bytes: usize) -> V {
        // SAFETY: by the contract of this function.
        unsafe { V::gather(first, apart, bytes) }
    }

    /// Stores them to such places.
    ///
    /// # Safety
    ///
    /// These bytes can be written. The CPU has `V`.
    #[inline(always)]
    unsafe fn scatter<V: Vector>(vector: V, first: *mut u8, apart: usize, bytes: usize) {
        // SAFETY: by the contract of this function.
        unsafe { vector.scatter(first, apart, bytes) };
    }
}

/// As they are in vectors.
pub(super) struct Whole;

impl InMemory for Whole {
    const ARE_SAME: bool = true;
}

/// As many rows and columns as a `V` takes, which is `LANES`. `WAYS` columns at a time are
/// interleaved, elements of `PART` bits.
pub(super) struct Vectors<
    V,
    M,
    const LANES: usize,
    const BITS: u32,
    const WIDTH: usize,
    const WAYS: usize,
    const PART: u32,
>(PhantomData<(V, M)>);

impl<
    V: Vector,
    M: InMemory,
    const LANES: usize,
    const BITS: u32,
    const WIDTH: usize,
    const WAYS: usize,
    const PART: u32,
> Block for Vectors<V, M, LANES, BITS, WIDTH, WAYS, PART>
{
    const ROWS: usize = LANES;
    const WIDTH: usize = WIDTH * M::SOURCE_TIMES;
    const WAYS: usize = WAYS;
    const DESTINATION_WIDTH: usize = WIDTH * M::DESTINATION_TIMES * WAYS;

    type Vector = V;

    type AtStrides = Turned<V, M, LANES, BITS>;

    type Scratch = ();
    fn scratch() {}

    #[inline(always)]
    unsafe fn transpose<R: Starts, L: ahead::Lines>(
        rows: R,
        columns: &[usize],
        source: *const u8,
        destination: *mut u8,
        _: bool,
        ahead: L,
        (): &mut (),
    ) {
        // SAFETY: the same contract, without streaming.
        unsafe {
            transpose_vectors::<V, M, LANES, BITS, WIDTH, WAYS, PART, false, R, L>(
                rows,
                columns,
                source,
                destination,
                false,
                ahead,
            );
        };
    }
}

/// The same of as many rows and columns as a line of cache has elements, or a vector if those are more, so that each line
/// is visited once: the parts of a line that are vectors may be far from it in time otherwise.
pub(super) struct StoredLines<
    V,
    M,
    const LANES: usize,
    const BITS: u32,
    const WIDTH: usize,
    const WAYS: usize,
    const PART: u32,
>(PhantomData<(V, M)>);

/// How many elements of so many bytes a line has, or a vector if it has more.
const fn line_or_vector(width: usize, lanes: usize) -> usize {
    let line = LINE / width;
    if line > lanes { line } else { lanes }
}

impl<
    V: Vector,
    M: InMemory,
    const LANES: usize,
    const BITS: u32,
    const WIDTH: usize,
    const WAYS: usize,
    const PART: u32,
> Block for StoredLines<V, M, LANES, BITS, WIDTH, WAYS, PART>
{
    const ROWS: usize = line_or_vector(WIDTH * M::DESTINATION_TIMES * WAYS, LANES);
    const COLUMNS: usize = line_or_vector(WIDTH * M::SOURCE_TIMES, LANES);
    const WIDTH: usize = WIDTH * M::SOURCE_TIMES;
    const WAYS: usize = WAYS;
    const DESTINATION_WIDTH: usize = WIDTH * M::DESTINATION_TIMES * WAYS;

    type Vector = V;

    type AtStrides = Turned<V, M, LANES, BITS>;

    type Scratch = ();
    fn scratch() {}

    #[inline(always)]
    unsafe fn transpose<R: Starts, L: ahead::Lines>(
        rows: R,
        columns: &[usize],
        source: *const u8,
        destination: *mut u8,
        _: bool,
        ahead: L,
        (): &mut (),
    ) {
        let (down, along) = const { (Self::ROWS / LANES, Self::COLUMNS / LANES) };
        // Lines of the columns are finished soon; but those of rows where all of them share one set of L1.
        let is_crowded = rows.at(1).wrapping_sub(rows.at(0)).is_multiple_of(L1_SETS);
        for number in 0..down * along {
            let (row, column) = if is_crowded {
                (number / along * LANES, number % along * LANES)
            } else {
                (number % down * LANES, number / down * LANES)
            };
            // SAFETY: a part of the rows and columns.
            unsafe {
                transpose_vectors::<V, M, LANES, BITS, WIDTH, WAYS, PART, false, R, L>(
                    rows.part(row, LANES),
                    &columns[column..column + LANES],
                    source.wrapping_add(column * <Self as Block>::WIDTH),
                    destination.wrapping_add(row * Self::DESTINATION_WIDTH),
                    false,
                    ahead,
                );
            };
        }
    }
}

/// The same, streamed.
pub(super) struct Lines<
    V,
    M,
    const LANES: usize,
    const BITS: u32,
    const WIDTH: usize,
    const WAYS: usize,
    const PART: u32,
>(PhantomData<(V, M)>);

impl<
    V: Vector,
    M: InMemory,
    const LANES: usize,
    const BITS: u32,
    const WIDTH: usize,
    const WAYS: usize,
    const PART: u32,
> Block for Lines<V, M, LANES, BITS, WIDTH, WAYS, PART>
{
    const ROWS: usize = line_or_vector(WIDTH * M::DESTINATION_TIMES, LANES);
    const WIDTH: usize = WIDTH * M::SOURCE_TIMES;
    const WAYS: usize = WAYS;
    const DESTINATION_WIDTH: usize = WIDTH * M::DESTINATION_TIMES * WAYS;

    type Vector = V;

    type AtStrides = ();

    type Scratch = CacheLines<LANES>;
    fn scratch() -> CacheLines<LANES> {
        CacheLines([[0; LINE]; LANES])
    }

    #[inline(always)]
    unsafe fn transpose<R: Starts, L: ahead::Lines>(
        rows: R,
        columns: &[usize],
        source: *const u8,
        destination: *mut u8,
        stream: bool,
        ahead: L,
        lines: &mut CacheLines<LANES>,
    ) {
        // The parts of a line that come from different rows are put together before they are
        // streamed: memory takes whole lines.
        let part = V::BYTES * M::DESTINATION_TIMES * WAYS;
        let makes_lines = part < LINE;
        let lines_of_part = LANES * V::BYTES * M::SOURCE_TIMES / LINE;
        let places: [usize; LANES] = std::array::from_fn(|column| column / WAYS * WAYS * LINE);
        for (i, columns) in columns.as_chunks::<LANES>().0.iter().enumerate() {
            let source = source.wrapping_add(i * V::BYTES * M::SOURCE_TIMES);
            for j in 0..Self::ROWS / LANES {
                let rows = rows.part(j * LANES, LANES);
                let at = j * part;
                if makes_lines {
                    // SAFETY: a part of the rows and columns; for each `WAYS` columns there
                    // are as many lines.
                    unsafe {
                        transpose_vectors::<V, M, LANES, BITS, WIDTH, WAYS, PART, false, R, ()>(
                            rows,
                            &places,
                            source,
                            lines.0.as_mut_ptr().cast::<u8>().wrapping_add(at),
                            false,
                            (),
                        );
                    };
                } else {
                    // SAFETY: a part of the rows and columns.
                    unsafe {
                        transpose_vectors::<V, M, LANES, BITS, WIDTH, WAYS, PART, true, R, L>(
                            rows,
                            columns,
                            source,
                            destination.wrapping_add(at),
                            stream,
                            ahead.behind((i * (Self::ROWS / LANES) + j) * lines_of_part),
                        );
                    };
                }
            }
            if makes_lines {
                for (number, (line, &start)) in lines.0.iter().zip(columns).enumerate() {
                    let to = destination.wrapping_add(start).wrapping_add(number % WAYS * LINE);
                    let first = (i * LANES + number) * M::SOURCE_TIMES;
                    for line in first..first + M::SOURCE_TIMES {
                        ahead.fetch_any::<V>(line);
                    }
                    // SAFETY: a line of these columns, aligned for `stream`.
                    unsafe { put_line::<V, true>(line, to, stream) };
                }
            }
        }
    }
}

impl<
    V: Vector,
    M: InMemory,
    const LANES: usize,
    const BITS: u32,
    const WIDTH: usize,
    const WAYS: usize,
    const PART: u32,
> StreamedBlock for Lines<V, M, LANES, BITS, WIDTH, WAYS, PART>
{
    type Table = [usize; LINES_ALONG * WORDS_OF_LINE];
    fn table() -> Self::Table {
        [0; LINES_ALONG * WORDS_OF_LINE]
    }

    type Parts = Vectors<V, M, LANES, BITS, WIDTH, WAYS, PART>;
}

/// Rows and columns that are a line of cache each.
pub(super) struct Squares<V, const WIDTH: usize, const STREAM: bool>(PhantomData<V>);

impl<V: Vector, const WIDTH: usize, const STREAM: bool> Block for Squares<V, WIDTH, STREAM> {
    const ROWS: usize = LINE / WIDTH;
    const WIDTH: usize = WIDTH;
    const WAYS: usize = 1;
    const DESTINATION_WIDTH: usize = WIDTH;

    type Vector = V;

    type AtStrides = TurnedWithin<V, WIDTH>;

    type Scratch = [Square; 2];
    fn scratch() -> [Square; 2] {
        [Square([0; LINE * LINE]), Square([0; LINE * LINE])]
    }

    #[inline(always)]
    unsafe fn transpose<R: Starts, L: ahead::Lines>(
        rows: R,
        columns: &[usize],
        source: *const u8,
        destination: *mut u8,
        stream: bool,
        ahead: L,
        scratch: &mut [Square; 2],
    ) {
        // SAFETY: the same contract.
        unsafe {
            transpose_square::<V, WIDTH, STREAM, R, L>(
                rows,
                columns,
                source,
                destination,
                stream,
                ahead,
                scratch,
            );
        };
    }
}

impl<V: Vector, const WIDTH: usize> StreamedBlock for Squares<V, WIDTH, true> {
    type Table = [usize; LINES_ALONG * LINE];
    fn table() -> Self::Table {
        [0; LINES_ALONG * LINE]
    }

    type Parts = Squares<V, WIDTH, false>;
}

/// Transposes as many rows and columns as a `V` takes.
///
/// # Safety
///
/// There are `LANES` of each. In each row as many elements can be read, in each
/// column written, for `stream` from an aligned start. The CPU has `V`.
#[inline(always)]
unsafe fn transpose_vectors<
    V: Vector,
    M: InMemory,
    const LANES: usize,
    const BITS: u32,
    const WIDTH: usize,
    const WAYS: usize,
    const PART: u32,
    const STREAM: bool,
    R: Starts,
    L: ahead::Lines,
>(
    rows: R,
    columns: &[usize],
    source: *const u8,
    destination: *mut u8,
    stream: bool,
    ahead: L,
) {
    // SAFETY: the CPU has `V`.
    let mut vectors = [unsafe { V::splat(0) }; LANES];
    for (vector, start) in vectors.iter_mut().zip(rows.each()) {
        // SAFETY: `LANES` columns of one row.
        *vector = unsafe { M::load(source.wrapping_add(start)) };
    }
    if PART < 8 && V::HAS_BIT_FIELDS {
        let groups = const { LANES / WAYS };
        for vector in &mut vectors {
            *vector = exchange::<V, PART>(*vector);
        }
        if groups == 2 {
            for [a, b] in vectors.as_chunks_mut::<2>().0 {
                (*a, *b) = a.exchange_halves(*b);
            }
        }
        for (group, &start) in columns.iter().step_by(WAYS).enumerate() {
            for i in 0..WAYS {
                let to = destination.wrapping_add(start.wrapping_add(i * V::BYTES));
                ahead.fetch_before::<V>(group * WAYS + i, M::SOURCE_TIMES);
                if STREAM && stream {
                    // SAFETY: the words of some rows and columns, aligned.
                    unsafe { M::put::<V, true>(vectors[i * groups + group], to) };
                } else {
                    // SAFETY: the words of some rows and columns.
                    unsafe { M::put::<V, false>(vectors[i * groups + group], to) };
                }
            }
        }
        return;
    }
    let turned = weave::<V, LANES, BITS>(vectors);
    if WAYS > 1 {
        let columns = columns.iter().step_by(WAYS);
        for (group, (rows, &start)) in turned.as_chunks::<WAYS>().0.iter().zip(columns).enumerate()
        {
            for (i, words) in weave::<V, WAYS, PART>(*rows).into_iter().enumerate() {
                let at = start.wrapping_add(i * V::BYTES * M::DESTINATION_TIMES);
                let to = destination.wrapping_add(at);
                ahead.fetch_before::<V>(group * WAYS + i, M::SOURCE_TIMES);
                if STREAM && stream {
                    // SAFETY: the words of `LANES` rows and some columns, aligned.
                    unsafe { M::put::<V, true>(words, to) };
                } else {
                    // SAFETY: the words of `LANES` rows and some columns.
                    unsafe { M::put::<V, false>(words, to) };
                }
            }
        }
    } else if STREAM && stream {
        for (i, (vector, &start)) in turned.into_iter().zip(columns).enumerate() {
            ahead.fetch_before::<V>(i, M::SOURCE_TIMES);
            // SAFETY: `LANES` rows of one column, aligned.
            unsafe { M::put::<V, true>(vector, destination.wrapping_add(start)) };
        }
    } else {
        for (i, (vector, &start)) in turned.into_iter().zip(columns).enumerate() {
            ahead.fetch_before::<V>(i, M::SOURCE_TIMES);
            // SAFETY: `LANES` rows of one column.
            unsafe { M::put::<V, false>(vector, destination.wrapping_add(start)) };
        }
    }
}

/// As many rows and columns of words, or longer elements, as a `V` takes, or [half](goes_by_halves) as many columns, at strides.
pub(super) struct Turned<V, M, const LANES: usize, const BITS: u32>(PhantomData<(V, M)>);

impl<V: Vector, M: InMemory, const LANES: usize, const BITS: u32> BlockAtStrides
    for Turned<V, M, LANES, BITS>
{
    const ROWS: usize = if V::BYTES < LINE || goes_by_halves::<V, M>() { LANES } else { 0 };
    const COLUMNS: usize = if goes_by_halves::<V, M>() { LANES / 2 } else { Self::ROWS };

    #[inline(always)]
    unsafe fn transpose<const EVEN: bool>(
        source: *const u8,
        rows: Strides,
        destination: *mut u8,
        columns: Strides,
    ) {
        let [rows, columns] =
            [rows, columns].map(|strides| if EVEN { Strides::even(strides.one) } else { strides });
        if const { goes_by_halves::<V, M>() } {
            // SAFETY: the same contract.
            return unsafe {
                transpose_halves::<V, BITS, EVEN>(source, rows, destination, columns);
            };
        }
        // SAFETY: the CPU has `V`.
        let mut vectors = [unsafe { V::splat(0) }; LANES];
        for (i, vector) in vectors.iter_mut().enumerate() {
            // The places of four are near enough to each other for an address to be one of them and a stride.
            let four = source.wrapping_add((i / 4).wrapping_mul(rows.four));
            // SAFETY: `LANES` columns of one row.
            *vector = unsafe { M::load(four.wrapping_add(rows.within_four::<EVEN>(i % 4))) };
        }
        for (i, vector) in weave::<V, LANES, BITS>(vectors).into_iter().enumerate() {
            let four = destination.wrapping_add((i / 4).wrapping_mul(columns.four));
            // SAFETY: `LANES` rows of one column.
            unsafe {
                M::put::<V, false>(vector, four.wrapping_add(columns.within_four::<EVEN>(i % 4)))
            };
        }
    }
}

/// Whether vectors are made of halves of rows, which takes three shuffles for four of whole ones, and writes half as many lines
/// at a time: vectors of a line, of elements as they are in memory.
const fn goes_by_halves<V: Vector, M: InMemory>() -> bool {
    V::BYTES == LINE && V::HAS_MASKS && M::ARE_SAME
}

/// Transposes as many rows as a `V` has elements, and half as many columns. A vector has half a line of two rows:
///
/// ```text
/// rows 0 and 2, columns 0 to 3    a0 b0 | c0 d0 | a2 b2 | c2 d2     turned    a0 a1 | c0 c1 | a2 a3 | c2 c3
/// rows 1 and 3                    a1 b1 | c1 d1 | a3 b3 | c3 d3     within    b0 b1 | d0 d1 | b2 b3 | d2 d3
/// ```
///
/// and every other quarter of such, and of those of the next rows, is a column.
///
/// # Safety
///
/// There are so many, at these strides. In each row as many elements as there are columns can be read, in each column as many
/// as there are rows be written. The CPU has `V`.
#[inline(always)]
unsafe fn transpose_halves<V: Vector, const BITS: u32, const EVEN: bool>(
    source: *const u8,
    rows: Strides,
    destination: *mut u8,
    columns: Strides,
) {
    let within = const { within_quarter::<BITS>() };
    // SAFETY: the first half of the rows.
    let above = unsafe { turn_halves::<V, BITS, EVEN>(source, rows) };
    let below = source.wrapping_add(rows.at::<EVEN>(2 * within));
    // SAFETY: the second one.
    let below = unsafe { turn_halves::<V, BITS, EVEN>(below, rows) };
    unrolled!(i in within, {
        let (first, second) = above[i].unzip_quarters(below[i]);
        // SAFETY: the rows of a column.
        unsafe { first.store(destination.wrapping_add(columns.at::<EVEN>(i))) };
        // SAFETY: as above.
        unsafe { second.store(destination.wrapping_add(columns.at::<EVEN>(within + i))) };
    });
}

/// Half as many rows as a `V` has elements, as many columns, two rows to a vector, turned within quarters.
///
/// # Safety
///
/// They are at these strides, and can be read. The CPU has `V`.
#[inline(always)]
unsafe fn turn_halves<V: Vector, const BITS: u32, const EVEN: bool>(
    source: *const u8,
    rows: Strides,
) -> [V; MOST_WITHIN] {
    let within = const { within_quarter::<BITS>() };
    let apart = rows.at::<EVEN>(within);
    // SAFETY: the CPU has `V`.
    let mut vectors = [unsafe { V::splat(0) }; MOST_WITHIN];
    unrolled!(i in within, {
        let from = source.wrapping_add(rows.at::<EVEN>(i));
        // SAFETY: half a vector of each of two rows.
        vectors[i] = unsafe { V::gather_pieces::<{ LINE / 2 }>(from, apart, LINE / 2) };
    });
    turn_within::<V, BITS>(vectors)
}

/// How many elements of so many bits 16 bytes have.
const fn within_quarter<const BITS: u32>() -> usize {
    SHORTEST * 8 / BITS as usize
}

/// The same of elements narrower than 32 bits: as many rows as a `V` has, and as many columns as 16 bytes have.
pub(super) struct TurnedWithin<V, const WIDTH: usize>(PhantomData<V>);

impl<V: Vector, const WIDTH: usize> BlockAtStrides for TurnedWithin<V, WIDTH> {
    const ROWS: usize = V::BYTES / WIDTH;
    const COLUMNS: usize = SHORTEST / WIDTH;

    #[inline(always)]
    unsafe fn transpose<const EVEN: bool>(
        source: *const u8,
        rows: Strides,
        destination: *mut u8,
        columns: Strides,
    ) {
        let [rows, columns] =
            [rows, columns].map(|strides| if EVEN { Strides::even(strides.one) } else { strides });
        let within = SHORTEST / WIDTH;
        let apart = rows.at::<EVEN>(within);
        // SAFETY: the CPU has `V`.
        let mut vectors = [unsafe { V::splat(0) }; MOST_WITHIN];
        unrolled!(i in within, {
            // SAFETY: the columns of as many rows as a vector has 16 bytes.
            vectors[i] = unsafe { V::gather(source.wrapping_add(rows.at::<EVEN>(i)), apart, SHORTEST) };
        });
        let turned = match WIDTH {
            1 => turn_within::<V, 8>(vectors),
            _ => turn_within::<V, 16>(vectors),
        };
        unrolled!(i in within, {
            // SAFETY: the rows of a column.
            unsafe { turned[i].store(destination.wrapping_add(columns.at::<EVEN>(i))) };
        });
    }
}

/// Where a square is on its way: elements narrower than 32 bits, of which each row is
/// a line of cache, and so is each column.
#[repr(align(64))]
pub(super) struct Square([u8; LINE * LINE]);

/// Transposes rows and columns that are a line of cache each, so that every line is
/// visited once: where rows or columns are powers of two apart, L1 holds
/// no more than a few of them.
///
/// # Safety
///
/// There are `LINE / WIDTH` of each. In each row as many elements can be read, in
/// each column written, for `stream` from an aligned start. The CPU has `V`.
#[inline(always)]
unsafe fn transpose_square<
    V: Vector,
    const WIDTH: usize,
    const STREAM: bool,
    R: Starts,
    L: ahead::Lines,
>(
    rows: R,
    columns: &[usize],
    source: *const u8,
    destination: *mut u8,
    stream: bool,
    ahead: L,
    [woven, turned]: &mut [Square; 2],
) {
    // SAFETY: the rows, which are `LINE / WIDTH`.
    match WIDTH {
        1 => {
            // SAFETY: as above.
            unsafe { weave_square::<V, 4, 8, R>(rows, source, woven) }
        }
        _ => {
            // SAFETY: as above.
            unsafe { weave_square::<V, 2, 16, R>(rows, source, woven) }
        }
    }
    // SAFETY: the columns, which are as many, and the words of `V`.
    match V::BYTES / 4 {
        4 => {
            // SAFETY: as above.
            unsafe {
                turn_square::<V, 4, STREAM, L>(woven, columns, destination, stream, ahead, turned)
            }
        }
        8 => {
            // SAFETY: as above.
            unsafe {
                turn_square::<V, 8, STREAM, L>(woven, columns, destination, stream, ahead, turned)
            }
        }
        _ => {
            // SAFETY: as above.
            unsafe {
                turn_square::<V, 16, STREAM, L>(woven, columns, destination, stream, ahead, turned)
            }
        }
    }
}

/// How many words of 32 bits a line has.
const WORDS_OF_LINE: usize = LINE / 4;

/// Interleaves `WAYS` rows of a square at a time, which makes words of 32 bits. A vector
/// of words has some columns; those of the same columns are put beside each other.
///
/// # Safety
///
/// There are `WAYS` times `WORDS_OF_LINE` rows, and a line can be read in each. The CPU
/// has `V`.
#[inline(always)]
unsafe fn weave_square<V: Vector, const WAYS: usize, const BITS: u32, R: Starts>(
    rows: R,
    source: *const u8,
    woven: &mut Square,
) {
    for group in 0..WORDS_OF_LINE {
        let rows = rows.part(group * WAYS, WAYS);
        for part in 0..LINE / V::BYTES {
            // SAFETY: the CPU has `V`.
            let mut vectors = [unsafe { V::splat(0) }; WAYS];
            for (vector, start) in vectors.iter_mut().zip(rows.each()) {
                let from = source.wrapping_add(start).wrapping_add(part * V::BYTES);
                // SAFETY: a part of one row.
                *vector = unsafe { V::load(from) };
            }
            for (i, words) in weave::<V, WAYS, BITS>(vectors).into_iter().enumerate() {
                let at = ((part * WAYS + i) * WORDS_OF_LINE + group) * V::BYTES;
                // SAFETY: there are `WORDS_OF_LINE` groups of `WAYS` rows, a line each,
                // which is no more than a square has.
                unsafe { words.store(woven.0.as_mut_ptr().wrapping_add(at)) };
            }
        }
    }
}

/// Turns the words of a square, of which a vector has `WORDS`, so that each column has
/// its own together.
///
/// # Safety
///
/// `V` has `WORDS`. There are no more columns than lines in a square, and a line can be
/// written in each, for `stream` from an aligned start. The CPU has `V`.
#[inline(always)]
unsafe fn turn_square<V: Vector, const WORDS: usize, const STREAM: bool, L: ahead::Lines>(
    woven: &Square,
    columns: &[usize],
    destination: *mut u8,
    stream: bool,
    ahead: L,
    turned: &mut Square,
) {
    let is_line = V::BYTES == LINE;
    for (block, block_columns) in columns.as_chunks::<WORDS>().0.iter().enumerate() {
        for part in 0..LINE / V::BYTES {
            let from = (block * WORDS_OF_LINE + part * WORDS) * V::BYTES;
            // SAFETY: of each `WORDS` columns there are `WORDS_OF_LINE` vectors in the
            // square, and `LINE / V::BYTES` parts of `WORDS` are as many.
            let vectors = unsafe { load_row::<V, WORDS>(woven.0.as_ptr().wrapping_add(from)) };
            let vectors = weave::<V, WORDS, 32>(vectors);
            for (i, (vector, &start)) in vectors.into_iter().zip(block_columns).enumerate() {
                let to = destination.wrapping_add(start);
                let line = (block * WORDS + i) * LINE + part * V::BYTES;
                if !is_line {
                    // SAFETY: a part of one of the lines of the square, of which there is
                    // one for each column.
                    unsafe { vector.store(turned.0.as_mut_ptr().wrapping_add(line)) };
                } else if STREAM && stream {
                    ahead.fetch_any::<V>(block * WORDS + i);
                    // SAFETY: a column, aligned.
                    unsafe { vector.stream(to) };
                } else {
                    ahead.fetch_any::<V>(block * WORDS + i);
                    // SAFETY: a column.
                    unsafe { vector.store(to) };
                }
            }
        }
    }
    if is_line {
        return;
    }
    for (number, (line, &start)) in turned.0.as_chunks::<LINE>().0.iter().zip(columns).enumerate() {
        ahead.fetch_any::<V>(number);
        // SAFETY: a column, aligned for `stream`.
        unsafe { put_line::<V, STREAM>(line, destination.wrapping_add(start), stream) };
    }
}

/// Writes a line, streaming if `stream` says so, which it may where `STREAM` does.
///
/// # Safety
///
/// It can be written there, for `stream` from an aligned start. The CPU has `V`.
#[inline(always)]
pub(super) unsafe fn put_line<V: Vector, const STREAM: bool>(
    line: &[u8; LINE],
    to: *mut u8,
    stream: bool,
) {
    if STREAM && stream {
        // SAFETY: by the contract of this function.
        unsafe { copy_line::<V, true>(line.as_ptr(), to) };
    } else {
        // SAFETY: as above.
        unsafe { copy_line::<V, false>(line.as_ptr(), to) };
    }
}
