//! Rows of elements into words that hold one element of each, and back.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::mem::MaybeUninit;

use super::algorithm::Algorithm;
use super::carry::{CacheLines, Carry, Make, copy_line};
use super::joined::{Joined, RunOp};
use super::pages::{self, ByTurns};
use super::rows::{self, JoinedRows, RowsOp};
use super::scalar::{self, from, to};
use super::vector::{
    LINE, STRAIGHT, Vector, has_whole_end, load_end, load_row, load_short, stream_zeros, streams,
    streams_short, unweave, weave,
};
use super::walk::{Ahead, blocks};
use super::{BlockOp, Place, Strip};

/// [`BlockOp::Interleave`], `WIDTH` being the bytes of an element.
pub(super) struct Interleave<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const STREAM: bool,
>;

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> Algorithm
    for Interleave<WAYS, BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            for row in 0..WAYS {
                let to = to(destination.wrapping_add(row * WIDTH), WAYS * WIDTH);
                if row < strip.rows {
                    let from = from(source.wrapping_add(row.wrapping_mul(strip.row_stride)), WIDTH);
                    // SAFETY: the columns of a row of the strip.
                    unsafe { scalar::elements::<WIDTH>(strip.columns, from, to) };
                } else {
                    let zeros = from([0; WIDTH].as_ptr(), 0);
                    // SAFETY: zeros, to where a missing row belongs.
                    unsafe { scalar::elements::<WIDTH>(strip.columns, zeros, to) };
                }
            }
            let end = destination.wrapping_add(strip.columns * WAYS * WIDTH);
            // SAFETY: `pad` bytes follow the words of the block.
            unsafe { scalar::fill(end, 0, strip.pad) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        order: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        let lanes = V::BYTES / WIDTH;
        if strip.columns < lanes {
            if STREAM
                && streams_short(strip)
                && has_whole_end::<V>(strip, strip.columns * WAYS * WIDTH)
                && streams::<V>(strip, destination, 0)
            {
                // SAFETY: the same strip, whose blocks begin and end where vectors do.
                return unsafe { Self::stream_short::<V>(strip, source, destination) };
            }
            if V::Half::BYTES < V::BYTES {
                // SAFETY: the same strip; the CPU has the half of what it has.
                return unsafe { Self::vectors::<V::Half>(strip, order, source, destination) };
            }
            // SAFETY: the same strip.
            return unsafe { Self::elements(strip, source, destination) };
        }
        let stream = STREAM && streams::<V>(strip, destination, 0);
        if STREAM && !stream {
            let ways = u32::try_from(WAYS).unwrap_or_default();
            if let Some(carry) = Carry::new(strip, BlockOp::Interleave { ways, bits: BITS }) {
                // SAFETY: the same strip and op, with columns for a vector.
                return unsafe { carry.run::<Self, V>(strip, source, destination) };
            }
        }
        let bytes = strip.columns * WIDTH;
        // SAFETY: the same strip and op, and the bytes of a row of it.
        if STREAM && unsafe { pages::run::<Self, V, WAYS>(strip, bytes, source, destination) } {
            return;
        }
        let full = strip.rows == WAYS;
        if stream && full && strip.pad == 0 && bytes.is_multiple_of(V::BYTES) {
            // SAFETY: the same strip, of whole vectors, whose words are aligned.
            return unsafe { Self::stream_blocks::<V>(strip, source, destination) };
        }
        let mut places = blocks::<STREAM>(strip, order, strip.columns * WAYS * WIDTH);
        while let Some(place) = places.next() {
            let ahead = places.ahead;
            let (source, destination) = place.of(source, destination);
            let rows = Rows::<WAYS>::new(source, strip);
            let mut column = 0;
            while !STREAM && full && column + STRAIGHT / WAYS / WIDTH <= strip.columns {
                let to = destination.wrapping_add(column * WAYS * WIDTH);
                let at = column * WIDTH;
                // SAFETY: so many columns of each row, and their words.
                unsafe { interleave_straight::<V, WAYS, BITS>(&rows, at, to) };
                rows.fetch::<V>(at, STRAIGHT / WAYS, ahead);
                column += STRAIGHT / WAYS / WIDTH;
            }
            if column == strip.columns && strip.pad == 0 {
                continue;
            }
            // SAFETY: the columns of the block from `column` on, as above.
            unsafe { Self::block::<V>(strip, source, destination, column, Some(ahead), stream) };
        }
    }
}

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool>
    Interleave<WAYS, BITS, WIDTH, STREAM>
{
    /// Streams the blocks of a strip that misses no row, has whole vectors and no padding.
    ///
    /// # Safety
    ///
    /// That of [`Algorithm::vectors`], and the words of every block are aligned for `V`.
    #[inline(always)]
    unsafe fn stream_blocks<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
        let Strip { source_step, destination_step, .. } = *strip;
        let bytes = strip.columns * WIDTH;
        let mut places = blocks::<true>(strip, &[], bytes * WAYS);
        while let Some((place, count)) = places.next_alike() {
            let ahead = places.ahead;
            let (mut source, mut destination) = place.of(source, destination);
            for _ in 0..count {
                let rows = Rows::<WAYS>::new(source, strip);
                for at in (0..bytes).step_by(V::BYTES) {
                    // SAFETY: a vector of each row, of which none is missing.
                    let vectors = unsafe { rows.load::<V>(at, true) };
                    let to = destination.wrapping_add(at * WAYS);
                    for (row, words) in weave::<V, WAYS, BITS>(vectors).into_iter().enumerate() {
                        ahead.fetch_paced::<V>(rows.at(row, at));
                        // SAFETY: their words, in aligned vectors.
                        unsafe { words.stream(to.wrapping_add(row * V::BYTES)) };
                    }
                }
                source = source.wrapping_add(source_step);
                destination = destination.wrapping_add(destination_step);
            }
        }
    }

    /// Streams the blocks of a strip whose rows are shorter than a vector, and their padding.
    ///
    /// # Safety
    ///
    /// That of [`Algorithm::vectors`], and every block begins and ends where a vector does.
    #[inline(always)]
    unsafe fn stream_short<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
        let bytes = strip.columns * WIDTH;
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let rows = Rows::<WAYS>::new(source, strip);
            let mut to = destination;
            let end = destination.wrapping_add(bytes * WAYS + strip.pad);
            // SAFETY: the rows of the block.
            for words in weave::<V, WAYS, BITS>(unsafe { rows.load_short::<V>(bytes) }) {
                if to < end {
                    // SAFETY: their words, and padding, to the end of the block at most.
                    unsafe { words.stream(to) };
                    to = to.wrapping_add(V::BYTES);
                }
            }
            // SAFETY: the rest of the padding.
            unsafe { stream_zeros::<V>(to, end.addr() - to.addr()) };
        }
    }

    /// Does a block from a column on, and the padding behind it.
    ///
    /// # Safety
    ///
    /// The block can be read and written, from that column on, and for `stream` it is
    /// aligned for `V`. There are columns for a vector. The CPU has `V`.
    #[inline(always)]
    unsafe fn block<V: Vector>(
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
        mut column: usize,
        ahead: Option<Ahead>,
        stream: bool,
    ) {
        let lanes = V::BYTES / WIDTH;
        let (whole, full) = (strip.columns.is_multiple_of(lanes), strip.rows == WAYS);
        let rows = Rows::<WAYS>::new(source, strip);
        let last = strip.columns - lanes;
        while column <= last {
            // SAFETY: the columns from `column` on are a vector at least, in
            // each row, and so are their words.
            let words = unsafe { rows.load::<V>(column * WIDTH, full) };
            if let (true, Some(ahead)) = (STREAM, ahead) {
                rows.fetch_vectors::<V, STREAM>(column * WIDTH, ahead);
            }
            let to = destination.wrapping_add(column * WAYS * WIDTH);
            for (i, word) in weave::<V, WAYS, BITS>(words).into_iter().enumerate() {
                let to = to.wrapping_add(i * V::BYTES);
                if stream {
                    // SAFETY: as above; whole vectors from an aligned start.
                    unsafe { word.stream(to) };
                } else {
                    // SAFETY: as above.
                    unsafe { word.store(to) };
                }
            }
            column += lanes;
        }
        if stream && has_whole_end::<V>(strip, strip.columns * WAYS * WIDTH) {
            let rest = strip.columns - column;
            let mut to = destination.wrapping_add(column * WAYS * WIDTH);
            let end = destination.wrapping_add(strip.columns * WAYS * WIDTH + strip.pad);
            if !whole {
                // SAFETY: the last columns of the rows, fewer than a vector has, but not all.
                let words = unsafe { rows.load_end::<V>(strip.columns * WIDTH, rest * WIDTH) };
                for word in weave::<V, WAYS, BITS>(words) {
                    if to < end {
                        // SAFETY: their words, and padding, to the end of the block at most.
                        unsafe { word.stream(to) };
                        to = to.wrapping_add(V::BYTES);
                    }
                }
            }
            // SAFETY: the rest of the padding.
            unsafe { stream_zeros::<V>(to, end.addr() - to.addr()) };
            return;
        }
        if !whole && stream {
            // Not over what was streamed: see `copy_run`.
            let rest = Strip { lines: 1, blocks: 1, columns: strip.columns - column, ..*strip };
            let source = source.wrapping_add(column * WIDTH);
            let destination = destination.wrapping_add(column * WAYS * WIDTH);
            // SAFETY: the last columns of the block.
            unsafe { Self::elements(&rest, source, destination) };
            return;
        }
        if !whole {
            // SAFETY: the last columns of the rows.
            let words = unsafe { rows.load::<V>(last * WIDTH, full) };
            let to = destination.wrapping_add(last * WAYS * WIDTH);
            for (i, word) in weave::<V, WAYS, BITS>(words).into_iter().enumerate() {
                // SAFETY: the words of these columns.
                unsafe { word.store(to.wrapping_add(i * V::BYTES)) };
            }
        }
        let end = destination.wrapping_add(strip.columns * WAYS * WIDTH);
        // SAFETY: `pad` bytes follow the words of the block.
        unsafe { scalar::fill(end, 0, strip.pad) };
    }
}

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> ByTurns<WAYS>
    for Interleave<WAYS, BITS, WIDTH, STREAM>
{
    const TO_ROWS: bool = false;

    #[inline(always)]
    unsafe fn made<V: Vector>(strip: &Strip, source: *const u8) -> [V; WAYS] {
        // SAFETY: a vector of each row, of which none is missing.
        weave::<V, WAYS, BITS>(unsafe { Rows::<WAYS>::new(source, strip).load::<V>(0, true) })
    }
}

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> Make
    for Interleave<WAYS, BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn make<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
        // SAFETY: by the contract of this function.
        unsafe { Self::block::<V>(strip, source, destination, 0, None, false) };
    }
}

/// Interleaves [`STRAIGHT`] bytes of all rows together.
///
/// # Safety
///
/// No row is missing, and in each its part of these bytes can be read from byte
/// `at` on; their words can be written. The CPU has `V`.
#[inline(always)]
unsafe fn interleave_straight<V: Vector, const WAYS: usize, const BITS: u32>(
    rows: &Rows<WAYS>,
    at: usize,
    to: *mut u8,
) {
    for i in 0..STRAIGHT / V::BYTES / WAYS {
        // SAFETY: vector i of each row.
        unsafe { interleave_one::<V, WAYS, BITS>(rows, at, to, i) };
    }
}

/// Interleaves vector `i` from byte `at` on of each row.
///
/// # Safety
///
/// No row is missing; this vector can be read in each, and its words be written.
/// The CPU has `V`.
#[inline(always)]
unsafe fn interleave_one<V: Vector, const WAYS: usize, const BITS: u32>(
    rows: &Rows<WAYS>,
    at: usize,
    to: *mut u8,
    i: usize,
) {
    // SAFETY: by the contract of this function.
    let vectors = unsafe { rows.load::<V>(at + i * V::BYTES, true) };
    for (j, words) in weave::<V, WAYS, BITS>(vectors).into_iter().enumerate() {
        // SAFETY: by the contract of this function.
        unsafe { words.store(to.wrapping_add((i * WAYS + j) * V::BYTES)) };
    }
}

/// The mirror of [`interleave_straight`].
///
/// # Safety
///
/// The words can be read, and their columns be written in each row. The CPU has
/// `V`.
#[inline(always)]
unsafe fn deinterleave_straight<V: Vector, const WAYS: usize, const BITS: u32>(
    source: *const u8,
    to: *mut u8,
    row_stride: usize,
) {
    for i in 0..STRAIGHT / V::BYTES / WAYS {
        // SAFETY: the words of vector i of each row.
        unsafe { deinterleave_one::<V, WAYS, BITS>(source, to, row_stride, i) };
    }
}

/// The mirror of [`interleave_one`].
///
/// # Safety
///
/// The words of vector `i` of each row can be read, and be written there. The CPU
/// has `V`.
#[inline(always)]
unsafe fn deinterleave_one<V: Vector, const WAYS: usize, const BITS: u32>(
    source: *const u8,
    to: *mut u8,
    row_stride: usize,
    i: usize,
) {
    // SAFETY: by the contract of this function.
    let words = unsafe { load_row::<V, WAYS>(source.wrapping_add(i * WAYS * V::BYTES)) };
    for (row, vector) in unweave::<V, WAYS, BITS>(words).into_iter().enumerate() {
        // SAFETY: by the contract of this function.
        unsafe {
            vector.store(to.wrapping_add(row.wrapping_mul(row_stride).wrapping_add(i * V::BYTES)))
        };
    }
}

/// The rows of a block, of which the last ones may be missing.
struct Rows<const WAYS: usize> {
    first: *const u8,
    stride: usize,
    count: usize,
}

impl<const WAYS: usize> Rows<WAYS> {
    #[inline(always)]
    fn new(first: *const u8, strip: &Strip) -> Self {
        Rows { first, stride: strip.row_stride, count: strip.rows }
    }

    /// Where a byte of a row is.
    #[inline(always)]
    fn at(&self, row: usize, at: usize) -> *const u8 {
        self.first.wrapping_add(row.wrapping_mul(self.stride)).wrapping_add(at)
    }

    /// Fetches what is `ahead` of so many bytes of each row, from byte `at` on, within the caches.
    #[inline(always)]
    fn fetch<V: Vector>(&self, at: usize, bytes: usize, ahead: Ahead) {
        for row in 0..WAYS {
            let from = self.first.wrapping_add(row.wrapping_mul(self.stride).wrapping_add(at));
            ahead.fetch_bytes::<V, false>(from, bytes);
        }
    }

    /// Fetches what is `ahead` of a vector of each row, from byte `at` on.
    #[inline(always)]
    fn fetch_vectors<V: Vector, const STREAM: bool>(&self, at: usize, ahead: Ahead) {
        for row in 0..WAYS {
            let from = self.first.wrapping_add(row.wrapping_mul(self.stride).wrapping_add(at));
            ahead.fetch::<V, STREAM>(from);
        }
    }

    /// The last `count` bytes before byte `end` of each row, and zeros behind them; of a missing
    /// row, zeros.
    ///
    /// # Safety
    ///
    /// As many bytes as a vector has can be read there in each row that is not missing; `count`
    /// is less, but not 0. The CPU has `V`.
    #[inline(always)]
    unsafe fn load_end<V: Vector>(&self, end: usize, count: usize) -> [V; WAYS] {
        // SAFETY: the CPU has `V`.
        let mut rows = [unsafe { V::splat(0) }; WAYS];
        for (row, vector) in rows.iter_mut().enumerate() {
            if row < self.count {
                let end = self.first.wrapping_add(row.wrapping_mul(self.stride).wrapping_add(end));
                // SAFETY: by the contract of this function.
                *vector = unsafe { load_end(end, count) };
            }
        }
        rows
    }

    /// The bytes of each row, which are fewer than a vector has, and zeros behind them; of a
    /// missing row, zeros.
    ///
    /// # Safety
    ///
    /// So many bytes can be read in each row that is not missing. The CPU has `V`.
    #[inline(always)]
    unsafe fn load_short<V: Vector>(&self, bytes: usize) -> [V; WAYS] {
        // SAFETY: the CPU has `V`.
        let mut rows = [unsafe { V::splat(0) }; WAYS];
        for (row, vector) in rows.iter_mut().enumerate() {
            if row < self.count {
                // SAFETY: by the contract of this function.
                *vector = unsafe { load_short(self.at(row, 0), bytes) };
            }
        }
        rows
    }

    /// A vector of each row, from byte `at` of the row on; of a missing row,
    /// zeros.
    ///
    /// # Safety
    ///
    /// As many bytes can be read there in each row that is not missing; `full`
    /// says that none is. The CPU has `V`.
    #[inline(always)]
    unsafe fn load<V: Vector>(&self, at: usize, full: bool) -> [V; WAYS] {
        // SAFETY: the CPU has `V`.
        let mut rows = [unsafe { V::splat(0) }; WAYS];
        for (row, vector) in rows.iter_mut().enumerate() {
            if full || row < self.count {
                let from = self.first.wrapping_add(row.wrapping_mul(self.stride).wrapping_add(at));
                // SAFETY: by the contract of this function.
                *vector = unsafe { V::load(from) };
            }
        }
        rows
    }
}

/// [`BlockOp::Deinterleave`], `WIDTH` being the bytes of an element.
pub(super) struct Deinterleave<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const STREAM: bool,
>;

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> Algorithm
    for Deinterleave<WAYS, BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            for row in 0..strip.rows {
                let from = from(source.wrapping_add(row * WIDTH), WAYS * WIDTH);
                let to = to(destination.wrapping_add(row.wrapping_mul(strip.row_stride)), WIDTH);
                // SAFETY: the columns of a row of the strip, and its words.
                unsafe { scalar::elements::<WIDTH>(strip.columns, from, to) };
            }
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        order: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        if STREAM && !streams::<V>(strip, destination, strip.row_stride) {
            // With shorter vectors, parts of lines of several rows would be under way.
            if V::BYTES == LINE
                && WAYS <= rows::MOST
                && let Some(rows) = JoinedRows::new::<WAYS>(strip, Self::op(), WIDTH, destination)
            {
                // SAFETY: the same strip and op.
                return unsafe { rows.run::<Self, V, WAYS>(strip, source, destination) };
            }
            // Each vector of a run takes words of all of them: too many but of two.
            if WAYS == 2
                && let Some(joined) = Joined::new(strip, Self::op(), WIDTH, LINE, destination)
            {
                // SAFETY: the same strip and op.
                return unsafe { joined.run::<Self, V>(strip, source, destination) };
            }
        }
        for (strip, place) in strip.parts::<STREAM>(&mut Strip::default()) {
            let (source, destination) = place.of(source, destination);
            // SAFETY: a part of the strip.
            unsafe { Self::alike::<V>(strip, order, source, destination) };
        }
    }
}

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool>
    Deinterleave<WAYS, BITS, WIDTH, STREAM>
{
    #[inline(always)]
    fn op() -> BlockOp {
        BlockOp::Deinterleave { ways: u32::try_from(WAYS).unwrap_or_default(), bits: BITS }
    }

    /// Does a strip whose lines are alike.
    ///
    /// # Safety
    ///
    /// That of [`Algorithm::vectors`].
    #[inline(always)]
    unsafe fn alike<V: Vector>(
        strip: &Strip,
        order: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        let lanes = V::BYTES / WIDTH;
        if strip.columns < lanes {
            if V::Half::BYTES < V::BYTES {
                // SAFETY: the same strip; the CPU has the half of what it has.
                return unsafe { Self::alike::<V::Half>(strip, order, source, destination) };
            }
            // SAFETY: the same strip.
            return unsafe { Self::elements(strip, source, destination) };
        }
        let stream = STREAM && streams::<V>(strip, destination, strip.row_stride);
        if STREAM
            && !stream
            && let Some(carry) = Carry::new(strip, Self::op())
        {
            // SAFETY: the same strip and op, with columns for a vector.
            return unsafe { carry.run::<Self, V>(strip, source, destination) };
        }
        let bytes = strip.columns * WIDTH;
        // SAFETY: the same strip and op, and the bytes of a row of it.
        if STREAM && unsafe { pages::run::<Self, V, WAYS>(strip, bytes, source, destination) } {
            return;
        }
        let is_whole = strip.rows == WAYS && bytes.is_multiple_of(Self::AT_ONCE * LINE);
        if STREAM && stream && V::BYTES >= LINE && Self::AT_ONCE > 1 && is_whole {
            // SAFETY: the same strip, of whole vectors that are aligned in each row.
            return unsafe { Self::stream_blocks::<V>(strip, source, destination) };
        }
        let mut places = blocks::<STREAM>(strip, order, strip.columns * WAYS * WIDTH);
        while let Some(place) = places.next() {
            let ahead = places.ahead;
            let (source, destination) = place.of(source, destination);
            let mut column = 0;
            if !STREAM && strip.rows == WAYS {
                while column + STRAIGHT / WAYS / WIDTH <= strip.columns {
                    let from = source.wrapping_add(column * WAYS * WIDTH);
                    let to = destination.wrapping_add(column * WIDTH);
                    let stride = strip.row_stride;
                    // SAFETY: so many columns of each row, and their words.
                    unsafe { deinterleave_straight::<V, WAYS, BITS>(from, to, stride) };
                    ahead.fetch_bytes::<V, false>(from, STRAIGHT);
                    column += STRAIGHT / WAYS / WIDTH;
                }
                if column == strip.columns {
                    continue;
                }
            }
            // SAFETY: the columns of the block from `column` on, as above.
            unsafe { Self::block::<V>(strip, source, destination, column, Some(ahead), stream) };
        }
    }

    /// Streams the blocks of a strip that misses no row and whose rows are [`Self::AT_ONCE`] lines
    /// each, or some times as many: as many of each row as registers hold, as stores to the stack
    /// would be in the way of those that are streamed.
    ///
    /// # Safety
    ///
    /// That of [`Algorithm::vectors`], and every row is aligned for `V` in the destination, whose
    /// bytes are a line at least.
    #[inline(always)]
    unsafe fn stream_blocks<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
        let Strip { source_step, destination_step, row_stride, .. } = *strip;
        let bytes = strip.columns * WIDTH;
        let mut places = blocks::<true>(strip, &[], bytes * WAYS);
        while let Some((place, count)) = places.next_alike() {
            let ahead = places.ahead;
            let (mut source, mut destination) = place.of(source, destination);
            for _ in 0..count {
                for at in (0..bytes).step_by(Self::AT_ONCE * V::BYTES) {
                    let from = source.wrapping_add(at * WAYS);
                    let to = destination.wrapping_add(at);
                    // SAFETY: so many vectors of each row, and their words.
                    unsafe { Self::stream_rows::<V>(row_stride, from, to, ahead) };
                }
                source = source.wrapping_add(source_step);
                destination = destination.wrapping_add(destination_step);
            }
        }
    }

    /// Streams [`Self::AT_ONCE`] vectors of each row, and fetches what is `ahead` of their words.
    ///
    /// # Safety
    ///
    /// Their words can be read, and they be written, aligned for `V`. The CPU has `V`.
    #[inline(always)]
    unsafe fn stream_rows<V: Vector>(
        row_stride: usize,
        source: *const u8,
        destination: *mut u8,
        ahead: Ahead,
    ) {
        const { assert!(Self::AT_ONCE <= 4, "there is room for the vectors of a row") };
        let first = source;
        // SAFETY: the CPU has `V`.
        let mut made = [[unsafe { V::splat(0) }; WAYS]; 4];
        for (step, made) in made.iter_mut().enumerate() {
            if step < Self::AT_ONCE {
                let source = source.wrapping_add(step * V::BYTES * WAYS);
                // SAFETY: the words of a vector of each row.
                *made = unweave::<V, WAYS, BITS>(unsafe { load_row::<V, WAYS>(source) });
                ahead.fetch_paced::<V>(first.wrapping_add(step * V::BYTES));
                // SAFETY: a vector of the first row.
                unsafe { made[0].stream(destination.wrapping_add(step * V::BYTES)) };
            }
        }
        for row in 1..WAYS {
            let to = destination.wrapping_add(row.wrapping_mul(row_stride));
            for (step, made) in made.iter().enumerate() {
                if step < Self::AT_ONCE {
                    ahead.fetch_paced::<V>(
                        first.wrapping_add((row * Self::AT_ONCE + step) * V::BYTES),
                    );
                    // SAFETY: a vector of that row.
                    unsafe { made[row].stream(to.wrapping_add(step * V::BYTES)) };
                }
            }
        }
    }

    /// Does a block from a column on.
    ///
    /// # Safety
    ///
    /// The block can be read and written, from that column on, and for `stream` every
    /// row of it is aligned for `V`. There are columns for a vector. The CPU has `V`.
    #[inline(always)]
    unsafe fn block<V: Vector>(
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
        mut column: usize,
        ahead: Option<Ahead>,
        stream: bool,
    ) {
        let lanes = V::BYTES / WIDTH;
        // What goes to one row had better be written at once. And where many parts of lines
        // would be under way, these are put together before they are streamed: memory takes
        // whole lines.
        let has_many_parts = V::BYTES < LINE && LINE / V::BYTES * WAYS > 4;
        if STREAM && stream && strip.rows == WAYS {
            let columns = Self::AT_ONCE * LINE / WIDTH;
            let at_once = Self::AT_ONCE > 1 && V::BYTES >= LINE / 2;
            while at_once && column + columns <= strip.columns {
                let from = source.wrapping_add(column * WAYS * WIDTH);
                let to = destination.wrapping_add(column * WIDTH);
                // SAFETY: the words of so many lines of each row, which can be written.
                unsafe { Self::stream_lines::<V>(Self::AT_ONCE, from, to, strip, ahead) };
                column += columns;
            }
            while has_many_parts && column + LINE / WIDTH <= strip.columns {
                let from = source.wrapping_add(column * WAYS * WIDTH);
                let to = destination.wrapping_add(column * WIDTH);
                // SAFETY: the words of a line of each row, which can be written.
                unsafe { Self::stream_lines::<V>(1, from, to, strip, ahead) };
                column += LINE / WIDTH;
            }
            if column == strip.columns {
                return;
            }
        }
        let last = strip.columns - lanes;
        loop {
            let (at, is_last) = if column < last { (column, false) } else { (last, true) };
            let from = source.wrapping_add(at * WAYS * WIDTH);
            // SAFETY: the words of as many columns as a vector takes, at most
            // up to the last one.
            let words = unsafe { load_row::<V, WAYS>(from) };
            if let (true, Some(ahead)) = (STREAM, ahead) {
                for way in 0..WAYS {
                    ahead.fetch::<V, STREAM>(from.wrapping_add(way * V::BYTES));
                }
            }
            let to = destination.wrapping_add(at * WIDTH);
            let rows = unweave::<V, WAYS, BITS>(words).into_iter().take(strip.rows);
            for (row, vector) in rows.enumerate() {
                let to = to.wrapping_add(row.wrapping_mul(strip.row_stride));
                if stream && (!is_last || column == last) {
                    // SAFETY: these columns of a row; whole vectors from an
                    // aligned start.
                    unsafe { vector.stream(to) };
                } else {
                    // SAFETY: these columns of a row.
                    unsafe { vector.store(to) };
                }
            }
            if is_last {
                break;
            }
            column += lanes;
        }
    }

    /// So many lines of each row are streamed one after the other: eight of all rows.
    const AT_ONCE: usize = if WAYS < 8 { 8 / WAYS } else { 1 };

    /// Streams as many bytes of each row as so many lines have, at most [`Self::AT_ONCE`],
    /// and fetches what is ahead of their words.
    ///
    /// # Safety
    ///
    /// Their words can be read, and they be written in each row, which is aligned for `V`.
    /// The CPU has `V`.
    #[inline(always)]
    unsafe fn stream_lines<V: Vector>(
        lines: usize,
        source: *const u8,
        destination: *mut u8,
        strip: &Strip,
        ahead: Option<Ahead>,
    ) {
        let mut memory = MaybeUninit::<[CacheLines<4>; WAYS]>::uninit();
        let memory = memory.as_mut_ptr().cast::<u8>();
        const { assert!(Self::AT_ONCE <= 4, "the lines of a row fit") };
        let bytes = lines * LINE;
        for line in (0..bytes).step_by(LINE) {
            let source = source.wrapping_add(line * WAYS);
            if let Some(ahead) = ahead {
                ahead.fetch_bytes::<V, STREAM>(source, LINE * WAYS);
            }
            for part in (0..LINE).step_by(V::BYTES) {
                // SAFETY: the words of a vector of each row.
                let words = unsafe { load_row::<V, WAYS>(source.wrapping_add(part * WAYS)) };
                for (row, vector) in unweave::<V, WAYS, BITS>(words).into_iter().enumerate() {
                    // SAFETY: a part of a line of a row.
                    unsafe { vector.store(memory.wrapping_add(row * bytes + line + part)) };
                }
            }
        }
        for row in 0..WAYS {
            let to = destination.wrapping_add(row.wrapping_mul(strip.row_stride));
            for line in (0..bytes).step_by(LINE) {
                let from = memory.wrapping_add(row * bytes + line);
                // SAFETY: as many bytes of a row, aligned for `V`, which have been made.
                unsafe { copy_line::<V, true>(from, to.wrapping_add(line)) };
            }
        }
    }
}

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> ByTurns<WAYS>
    for Deinterleave<WAYS, BITS, WIDTH, STREAM>
{
    const TO_ROWS: bool = true;

    #[inline(always)]
    unsafe fn made<V: Vector>(_: &Strip, source: *const u8) -> [V; WAYS] {
        // SAFETY: the words of a vector of each row.
        unweave::<V, WAYS, BITS>(unsafe { load_row::<V, WAYS>(source) })
    }
}

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> Make
    for Deinterleave<WAYS, BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn make<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
        // SAFETY: by the contract of this function.
        unsafe { Self::block::<V>(strip, source, destination, 0, None, false) };
    }
}

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> RunOp
    for Deinterleave<WAYS, BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn vector<V: Vector>(source: *const u8, run: usize, at: usize) -> V {
        // SAFETY: the words of a vector of each run.
        let words = unsafe { load_row::<V, WAYS>(source.wrapping_add(at * WAYS)) };
        // Only two rows go this way. One of them is made, not both and one of these chosen.
        let (first, second) = (words[0], words[WAYS - 1]);
        if run == 0 { first.unzip::<BITS>(second).0 } else { first.unzip::<BITS>(second).1 }
    }
}

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> RowsOp<WAYS>
    for Deinterleave<WAYS, BITS, WIDTH, STREAM>
{
    const ELEMENT: usize = WIDTH;

    #[inline(always)]
    unsafe fn vectors<V: Vector>(source: *const u8) -> [V; WAYS] {
        // SAFETY: the words of a vector of each row.
        unweave::<V, WAYS, BITS>(unsafe { load_row::<V, WAYS>(source) })
    }

    #[inline(always)]
    unsafe fn ends<V: Vector>(source: *const u8, bytes: usize) -> [V; WAYS] {
        // SAFETY: the CPU has `V`.
        let mut words = [unsafe { V::splat(0) }; WAYS];
        let bytes = bytes * WAYS;
        for (i, vector) in words.iter_mut().enumerate() {
            let at = i * V::BYTES;
            if at + V::BYTES <= bytes {
                // SAFETY: a vector of the words.
                *vector = unsafe { V::load(source.wrapping_add(at)) };
            } else if at < bytes {
                // SAFETY: the last words, and a vector before their end.
                *vector = unsafe { load_end(source.wrapping_add(bytes), bytes - at) };
            }
        }
        unweave::<V, WAYS, BITS>(words)
    }
}
