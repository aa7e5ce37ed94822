//! Words that hold one element of each of some rows, into these rows.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::mem::MaybeUninit;

use super::algorithm::{Algorithm, Apart, shorter};
use super::carry::{CacheLines, Carry, Make, RUN, copy_line};
use super::interleave::{VectorOfEach, is_apart, row_bytes};
use super::joined::{Joined, RunOp, SHORT};
use super::packed_rows::{self, FEW_SQUARES_OF_WORDS};
use super::pages::{self, ByTurns};
use super::rows::{self, JoinedRows, RowsOp};
use super::scalar::{self, Places, from, to};
use super::squeeze::{Unsqueeze, along_rows};
use super::vector::{LINE, STRAIGHT, Vector, load_end, load_row, streams, unweave};
use super::walk::{Ahead, blocks};
use super::whole_lines::{Memory, ROOM, WholeLines};
use super::{BlockOp, Place, Run, Strip};

/// Rows of fewer bytes that go on from line to line are put together in memory, where that is quicker.
const IN_MEMORY: usize = 2 * LINE;

/// [`BlockOp::Deinterleave`], `WIDTH` being the bytes of an element, one where it has fewer bits.
pub(super) struct Deinterleave<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const MOST_FIRST: bool,
    const STREAM: bool,
>;

impl<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const MOST_FIRST: bool,
    const STREAM: bool,
> Algorithm for Deinterleave<WAYS, BITS, WIDTH, MOST_FIRST, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            if BITS < 8 {
                // SAFETY: the columns of the rows of the strip.
                unsafe {
                    packed_rows::deinterleave::<BITS, MOST_FIRST>(strip, source, destination)
                };
                continue;
            }
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
        let bytes = row_bytes(strip.columns, BITS);
        let rows = strip.row_stride | bytes | row_bytes(strip.tail, BITS);
        let are_vectors = streams::<V>(strip, destination, rows);
        let joined = || Joined::new(strip, Self::op(), WIDTH, LINE, destination);
        if STREAM
            && !are_vectors
            && let Some(along) = Self::in_memory::<V>(strip)
        {
            // SAFETY: the same blocks in another order; a byte of each word is an element.
            return unsafe { Unsqueeze::<4, 8, true>::stretches::<V>(&along, source, destination) };
        }
        if STREAM && !are_vectors {
            // With shorter vectors, parts of lines of several rows would be under way.
            if const { V::BYTES == LINE && WAYS <= rows::MOST }
                && let Some(rows) = JoinedRows::new::<WAYS>(strip, Self::op(), WIDTH, destination)
            {
                // SAFETY: the same strip and op.
                return unsafe { rows.run::<Self, V, WAYS>(strip, source, destination) };
            }
            // Each vector of a run takes words of all of them: too many but of two.
            if const { WAYS == 2 }
                && let Some(joined) = joined()
            {
                // SAFETY: the same strip and op.
                return unsafe { joined.run::<Self, V>(strip, source, destination) };
            }
        }
        // Vectors that are shorter than lines make up whole ones only where rows do, or where they go on with each
        // other.
        let makes_lines = || {
            let follow = strip.tail == 0 && strip.rows_join(bytes);
            let runs = if follow { strip.rows * bytes } else { rows };
            let places = destination.addr() | strip.destination_line | strip.destination_step;
            (places | runs).is_multiple_of(LINE) || joined().is_some()
        };
        let is_loose = STREAM && bytes < SHORT && !(are_vectors && makes_lines());
        for (strip, place) in strip.parts::<STREAM>(&mut Strip::default()) {
            let (source, destination) = place.of(source, destination);
            // SAFETY: a part of the strip.
            unsafe { Self::alike::<V>(strip, order, source, destination, is_loose) };
        }
    }

    #[inline(always)]
    fn instead<V: Vector>(strip: &Strip, _: *mut u8) -> Option<Run> {
        let is_short = row_bytes(strip.columns, BITS) < V::BYTES;
        // Only `vectors` knows of tails.
        let is_alike = !STREAM || strip.tail == 0;
        (is_short && is_alike && !Self::stores_short::<V>()).then(shorter::<Self, V>)
    }
}

impl<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const MOST_FIRST: bool,
    const STREAM: bool,
> Deinterleave<WAYS, BITS, WIDTH, MOST_FIRST, STREAM>
{
    #[inline(always)]
    fn op() -> BlockOp {
        let ways = u32::try_from(WAYS).unwrap_or_default();
        BlockOp::Deinterleave { ways, bits: BITS, most_first: MOST_FIRST }
    }

    /// A strip along its rows, of bytes of words of four, if these are short and [put together in memory](IN_MEMORY).
    #[inline(always)]
    fn in_memory<V: Vector>(strip: &Strip) -> Option<Strip> {
        // Nothing is compiled for others.
        if const { WAYS != 4 || BITS != 8 || V::BYTES != LINE } {
            return None;
        }
        let are_short = strip.columns < IN_MEMORY && strip.tail == 0;
        let is_quicker = are_short && strip.core.joins_short_rows_in_memory();
        if is_quicker { along_rows(strip) } else { None }
    }

    /// Whether these vectors are for rows that are shorter than they are: of bits, whose words are many.
    #[inline(always)]
    fn stores_short<V: Vector>() -> bool {
        BITS < 8 && V::IS_SHORTEST
    }

    /// Does a strip whose lines are alike, whatever its tail says. Where its runs are loose, no vector is streamed to
    /// where it belongs as soon as it is made: the rest of its line is not, then.
    ///
    /// # Safety
    ///
    /// That of [`Algorithm::vectors`], but that rows may be shorter than a vector.
    #[inline(always)]
    unsafe fn alike<V: Vector>(
        strip: &Strip,
        order: &[Place],
        source: *const u8,
        destination: *mut u8,
        is_loose: bool,
    ) {
        let bytes = row_bytes(strip.columns, BITS);
        if bytes < V::BYTES && !Self::stores_short::<V>() {
            let strip = Strip { tail: 0, ..*strip };
            // SAFETY: the same lines; what the CPU has is enough for shorter vectors, and for none.
            return unsafe { shorter::<Self, V>()(&strip, order, source, destination) };
        }
        // There is room for the rows of a block.
        let rows_join = BITS < 8 && strip.rows_join(bytes) && strip.rows * bytes <= ROOM;
        let are_lines = V::BYTES == LINE && streams::<V>(strip, destination, strip.row_stride);
        if STREAM && rows_join && !are_lines {
            // SAFETY: the same strip.
            return unsafe { Self::stream_joined::<V>(strip, source, destination) };
        }
        if bytes < V::BYTES {
            // SAFETY: the same strip.
            return unsafe { Self::store_short::<V>(strip, source, destination) };
        }
        let stream = STREAM && !is_loose && streams::<V>(strip, destination, strip.row_stride);
        let is_short = strip.core.streams_by_runs()
            && strip.rows > 1
            && bytes < RUN
            && !strip.rows_join(bytes);
        if STREAM
            && (!stream || is_short)
            && let Some(carry) = Carry::new(strip, Self::op())
        {
            // SAFETY: the same strip and op, with columns for a vector.
            return unsafe { carry.run::<Self, V>(strip, source, destination) };
        }
        if STREAM
            && !is_loose
            // SAFETY: the same strip and op, and the bytes of a row of it.
            && unsafe { pages::run::<Self, V, WAYS>(strip, bytes, source, destination) }
        {
            return;
        }
        // Shorter vectors are parts of lines, and had better be those of one run.
        let is_one_run = V::BYTES >= LINE || strip.rows_join(bytes);
        let is_whole = strip.rows == WAYS && bytes.is_multiple_of(Self::AT_ONCE * V::BYTES);
        if const { STREAM && WAYS < 8 && Self::AT_ONCE * V::BYTES >= LINE }
            && stream
            && is_one_run
            && is_whole
        {
            // SAFETY: the same strip, of whole vectors that are aligned in each row.
            return unsafe { Self::stream_blocks::<V>(strip, source, destination) };
        }
        // So many bytes of each row, or a vector of each.
        let straight = (STRAIGHT / WAYS).max(V::BYTES);
        if !STREAM && bytes < straight.min(2 * V::BYTES) {
            // SAFETY: the same strip, whose rows are less than two vectors.
            return unsafe { Self::store_two::<V>(strip, order, source, destination) };
        }
        let mut places = blocks::<STREAM>(strip, order, bytes * WAYS);
        while let Some(place) = places.next() {
            let ahead = places.ahead;
            let (source, destination) = place.of(source, destination);
            let mut at = 0;
            if !STREAM && strip.rows == WAYS {
                while at + straight <= bytes {
                    let from = source.wrapping_add(at * WAYS);
                    for part in (0..straight).step_by(V::BYTES) {
                        let from = from.wrapping_add(part * WAYS);
                        let to = destination.wrapping_add(at + part);
                        let rows = scalar::to(to, strip.row_stride);
                        // SAFETY: a vector of each row, and their words.
                        unsafe {
                            store_rows_of_words::<V, WAYS, BITS, MOST_FIRST>(from, WAYS, rows)
                        };
                    }
                    ahead.fetch_bytes::<V, false>(from, straight * WAYS);
                    at += straight;
                }
                if at == bytes {
                    continue;
                }
            }
            // SAFETY: the bytes of each row of the block from `at` on, as above.
            unsafe { Self::block::<V>(strip, source, destination, at, Some(ahead), stream) };
        }
    }

    /// Stores the rows of blocks that are less than two vectors: the first vector of each, and the last one if
    /// it is another.
    ///
    /// # Safety
    ///
    /// That of [`Algorithm::vectors`]; rows have a vector at least, and less than two.
    #[inline(always)]
    unsafe fn store_two<V: Vector>(
        strip: &Strip,
        order: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        let bytes = row_bytes(strip.columns, BITS);
        let last = bytes - V::BYTES;
        for place in blocks::<STREAM>(strip, order, bytes * WAYS) {
            let (source, destination) = place.of(source, destination);
            // SAFETY: a vector of each row, and their words.
            unsafe { Self::store_one::<V>(strip, source, destination) };
            if last > 0 {
                let from = source.wrapping_add(last * WAYS);
                // SAFETY: as above, to the end of each row.
                unsafe { Self::store_one::<V>(strip, from, destination.wrapping_add(last)) };
            }
        }
    }

    /// Stores a vector of each row.
    ///
    /// # Safety
    ///
    /// Their words can be read, and they be written. The CPU has `V`.
    #[inline(always)]
    unsafe fn store_one<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
        let rows = to(destination, strip.row_stride);
        // SAFETY: by the contract of this function.
        unsafe { store_rows_of_words::<V, WAYS, BITS, MOST_FIRST>(source, strip.rows, rows) };
    }

    /// Streams the blocks of a strip that misses no row and whose rows are [`Self::AT_ONCE`] vectors
    /// each, or some times as many: as many of each row as registers hold, as stores to the stack
    /// would be in the way of those that are streamed.
    ///
    /// # Safety
    ///
    /// That of [`Algorithm::vectors`], and every row is aligned for `V` in the destination.
    #[inline(always)]
    unsafe fn stream_blocks<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
        let Strip { source_step, destination_step, row_stride, .. } = *strip;
        let bytes = row_bytes(strip.columns, BITS);
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
                *made = unsafe { rows_of_words::<V, WAYS, BITS, MOST_FIRST>(source) };
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

    /// Streams the blocks of a strip whose rows follow each other.
    ///
    /// # Safety
    ///
    /// That of [`Algorithm::vectors`]; the rows of a block are [`ROOM`] at most.
    #[inline(always)]
    unsafe fn stream_joined<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
        let bytes = row_bytes(strip.columns, BITS);
        let block = Strip { lines: 1, blocks: 1, ..*strip };
        let mut memory = Memory::uninit();
        let mut lines = WholeLines::new(&mut memory);
        let mut places = blocks::<true>(strip, &[], bytes * WAYS);
        while let Some(place) = places.next() {
            let (source, destination) = place.of(source, destination);
            // SAFETY: rows that can be written, as what was made before.
            let made = unsafe { lines.room::<V>(destination) };
            if bytes < V::BYTES {
                // SAFETY: a block, whose rows there is room for.
                unsafe { Self::store_short::<V>(&block, source, made) };
            } else {
                // SAFETY: as above.
                unsafe { Self::block::<V>(&block, source, made, 0, Some(places.ahead), false) };
            }
            // SAFETY: they have just been made.
            unsafe { lines.made::<V>(strip.rows * bytes) };
        }
        // SAFETY: rows that can be written.
        unsafe { lines.finish::<V>() };
    }

    /// Stores the rows of blocks that are shorter than a vector.
    ///
    /// # Safety
    ///
    /// That of [`Algorithm::vectors`], but that rows are shorter than a vector.
    #[inline(always)]
    unsafe fn store_short<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
        let bytes = row_bytes(strip.columns, BITS);
        if packed_rows::squares::<BITS>(strip.rows, bytes) <= FEW_SQUARES_OF_WORDS {
            for (source, destination) in scalar::blocks(strip, source, destination) {
                // SAFETY: the words of the block, and its rows.
                unsafe {
                    packed_rows::deinterleave_squares::<BITS, MOST_FIRST>(
                        strip,
                        source,
                        destination,
                    )
                };
            }
            return;
        }
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let mut words = CacheLines([[0; LINE]; WAYS]);
            let words = words.0.as_mut_ptr().cast::<u8>();
            // SAFETY: the words of the block, fewer than so many vectors have.
            unsafe { scalar::run(source, words, bytes * WAYS) };
            // SAFETY: so many vectors, none of which is longer than a line.
            let rows = unsafe { rows_of_words::<V, WAYS, BITS, MOST_FIRST>(words) };
            for (row, vector) in rows.iter().enumerate() {
                if row < strip.rows {
                    let mut made = CacheLines::<1>([[0; LINE]]);
                    let made = made.0.as_mut_ptr().cast::<u8>();
                    // SAFETY: memory for a line, which no vector is longer than.
                    unsafe { vector.store(made) };
                    let to = destination.wrapping_add(row.wrapping_mul(strip.row_stride));
                    // SAFETY: the bytes of a row, which have been made.
                    unsafe { scalar::less_than_line(made, to, bytes) };
                }
            }
        }
    }

    /// Does a block from that byte of each row on.
    ///
    /// # Safety
    ///
    /// The block can be read and written, from there on, and for `stream` every
    /// row of it is aligned for `V`. Rows have a vector at least. The CPU has `V`.
    #[inline(always)]
    unsafe fn block<V: Vector>(
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
        mut at: usize,
        ahead: Option<Ahead>,
        stream: bool,
    ) {
        let bytes = row_bytes(strip.columns, BITS);
        // What goes to one row had better be written at once. And where many parts of lines
        // would be under way, these are put together before they are streamed: memory takes
        // whole lines.
        let has_many_parts = V::BYTES < LINE && LINE / V::BYTES * WAYS > 4;
        if STREAM && stream && strip.rows == WAYS {
            let at_once = WAYS >= 8 || V::BYTES >= LINE / 2;
            while at_once && at + Self::AT_ONCE * LINE <= bytes {
                let (from, to) = (source.wrapping_add(at * WAYS), destination.wrapping_add(at));
                if BITS < 8 && WAYS > 8 && V::BYTES == LINE {
                    // SAFETY: the words of so many lines of each row, which can be written.
                    unsafe { Self::stream_by_bytes::<V>(from, to, strip, ahead) };
                } else {
                    // SAFETY: as above.
                    unsafe { Self::stream_lines::<V>(Self::AT_ONCE, from, to, strip, ahead) };
                }
                at += Self::AT_ONCE * LINE;
            }
            while has_many_parts && at + LINE <= bytes {
                let (from, to) = (source.wrapping_add(at * WAYS), destination.wrapping_add(at));
                // SAFETY: the words of a line of each row, which can be written.
                unsafe { Self::stream_lines::<V>(1, from, to, strip, ahead) };
                at += LINE;
            }
            if at == bytes {
                return;
            }
        }
        let last = bytes - V::BYTES;
        loop {
            let (part, is_last) = if at < last { (at, false) } else { (last, true) };
            let from = source.wrapping_add(part * WAYS);
            if let (true, Some(ahead)) = (STREAM, ahead) {
                if WAYS > 8 {
                    ahead.fetch_bytes::<V, STREAM>(from, WAYS * V::BYTES);
                } else {
                    for way in 0..WAYS {
                        ahead.fetch::<V, STREAM>(from.wrapping_add(way * V::BYTES));
                    }
                }
            }
            let to = destination.wrapping_add(part);
            let stream = stream && (!is_last || at == last);
            if const { is_apart(WAYS, BITS) } && !stream {
                // SAFETY: the words of a vector of each row, at most up to their end, and these bytes of each row.
                unsafe { Self::store_one::<V>(strip, from, to) };
            } else {
                // SAFETY: as above.
                let rows = unsafe { rows_of_words::<V, WAYS, BITS, MOST_FIRST>(from) };
                // No loop that ends early: it is not unrolled, and then the vectors are in memory.
                for (row, vector) in rows.iter().enumerate() {
                    let to = to.wrapping_add(row.wrapping_mul(strip.row_stride));
                    if row >= strip.rows {
                        continue;
                    }
                    if stream {
                        // SAFETY: these bytes of a row; whole vectors from an
                        // aligned start.
                        unsafe { vector.stream(to) };
                    } else {
                        // SAFETY: these bytes of a row.
                        unsafe { vector.store(to) };
                    }
                }
            }
            if is_last {
                break;
            }
            at += V::BYTES;
        }
    }

    /// So many lines of each row, or so many vectors, are streamed one after the other: eight of all rows, or of
    /// so many rows that these do not fit into registers four of each.
    const AT_ONCE: usize = match WAYS {
        ..8 => 8 / WAYS,
        _ => 4,
    };

    /// Streams [`Self::AT_ONCE`] lines of each row, of words of four bytes that hold so many rows that
    /// their lines do not fit into registers: the bytes are taken apart in memory, then the rows of each.
    ///
    /// # Safety
    ///
    /// That of [`stream_lines`](Self::stream_lines); `V` is a line.
    #[inline(always)]
    unsafe fn stream_by_bytes<V: Vector>(
        source: *const u8,
        destination: *mut u8,
        strip: &Strip,
        ahead: Option<Ahead>,
    ) {
        let mut memory = MaybeUninit::<[CacheLines<4>; WAYS]>::uninit();
        let memory = memory.as_mut_ptr().cast::<u8>();
        let bytes = Self::AT_ONCE * LINE;
        let of_byte = bytes * WAYS / 4;
        for at in (0..of_byte).step_by(LINE) {
            let source = source.wrapping_add(4 * at);
            if let Some(ahead) = ahead {
                ahead.fetch_bytes::<V, STREAM>(source, 4 * LINE);
            }
            // SAFETY: a line of each byte of the words.
            let words = unsafe { load_row::<V, 4>(source) };
            for (byte, vector) in V::deinterleave_bytes(words).iter().enumerate() {
                // SAFETY: there is room for each byte of all words.
                unsafe { vector.store(memory.wrapping_add(byte * of_byte + at)) };
            }
        }
        let rows = WAYS / 4;
        for byte in 0..4 {
            let to = destination.wrapping_add((byte * rows).wrapping_mul(strip.row_stride));
            for line in (0..bytes).step_by(LINE) {
                let from = memory.wrapping_add(byte * of_byte + line * rows);
                let to = scalar::to(to.wrapping_add(line), strip.row_stride);
                // SAFETY: the bytes of a line of as many rows as one holds, which have been made, and
                // which can be written.
                unsafe { packed_rows::stream_rows::<V, BITS, MOST_FIRST>(from, to) };
            }
        }
    }

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
                for (row, vector) in
                    unweave_rows::<V, WAYS, BITS, MOST_FIRST>(words).iter().enumerate()
                {
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

impl<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const MOST_FIRST: bool,
    const STREAM: bool,
> ByTurns<WAYS> for Deinterleave<WAYS, BITS, WIDTH, MOST_FIRST, STREAM>
{
    const TO_ROWS: bool = true;

    #[inline(always)]
    unsafe fn made<V: Vector>(_: &Strip, source: *const u8) -> [V; WAYS] {
        // SAFETY: the words of a vector of each row.
        unsafe { rows_of_words::<V, WAYS, BITS, MOST_FIRST>(source) }
    }
}

impl<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const MOST_FIRST: bool,
    const STREAM: bool,
> Make for Deinterleave<WAYS, BITS, WIDTH, MOST_FIRST, STREAM>
{
    #[inline(always)]
    unsafe fn make<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
        // SAFETY: by the contract of this function.
        unsafe { Self::block::<V>(strip, source, destination, 0, None, false) };
    }
}

impl<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const MOST_FIRST: bool,
    const STREAM: bool,
> RunOp for Deinterleave<WAYS, BITS, WIDTH, MOST_FIRST, STREAM>
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

impl<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const MOST_FIRST: bool,
    const STREAM: bool,
> RowsOp<WAYS> for Deinterleave<WAYS, BITS, WIDTH, MOST_FIRST, STREAM>
{
    const ELEMENT: usize = WIDTH;

    #[inline(always)]
    unsafe fn vectors<V: Vector>(source: *const u8) -> [V; WAYS] {
        // SAFETY: the words of a vector of each row.
        unsafe { rows_of_words::<V, WAYS, BITS, MOST_FIRST>(source) }
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
        // None of elements below a byte is made side by side with others.
        unweave::<V, WAYS, BITS>(words)
    }
}

/// [`store_rows_of_words`].
struct StoreRows<const WAYS: usize, const BITS: u32, const MOST_FIRST: bool> {
    words: *const u8,
    count: usize,
    rows: Places<*mut u8>,
}

impl<const WAYS: usize, const BITS: u32, const MOST_FIRST: bool> Apart
    for StoreRows<WAYS, BITS, MOST_FIRST>
{
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        // SAFETY: by the contract of that function.
        let words = unsafe { load_row::<V, WAYS>(self.words) };
        if self.count < WAYS {
            // SAFETY: by the contract of that function.
            return unsafe {
                packed_rows::store_first::<V, WAYS, BITS, MOST_FIRST>(words, self.count, self.rows)
            };
        }
        let made = packed_rows::unweave::<V, WAYS, BITS, MOST_FIRST>(words);
        // SAFETY: as above.
        unsafe { store_vectors(&made, WAYS, self.rows) };
    }
}

/// Stores the first vectors of some, each to a place.
///
/// # Safety
///
/// They can be written.
#[inline(always)]
pub(super) unsafe fn store_vectors<V: Vector, const COUNT: usize>(
    vectors: &[V; COUNT],
    count: usize,
    destination: Places<*mut u8>,
) {
    for (i, vector) in vectors.iter().enumerate() {
        // No loop that ends early: it is not unrolled, and then the vectors are in memory.
        if i < count {
            let to = destination.first.wrapping_add(i.wrapping_mul(destination.stride));
            // SAFETY: one of these places.
            unsafe { vector.store(to) };
        }
    }
}

/// [`unweave`], of rows of any elements.
#[inline(always)]
fn unweave_rows<V: Vector, const WAYS: usize, const BITS: u32, const MOST_FIRST: bool>(
    words: [V; WAYS],
) -> [V; WAYS] {
    if BITS < 8 {
        return packed_rows::unweave::<V, WAYS, BITS, MOST_FIRST>(words);
    }
    unweave::<V, WAYS, BITS>(words)
}

/// A vector of each row, of the words at a place.
///
/// # Safety
///
/// As many vectors of words can be read there. The CPU has `V`.
#[inline(always)]
unsafe fn rows_of_words<V: Vector, const WAYS: usize, const BITS: u32, const MOST_FIRST: bool>(
    words: *const u8,
) -> [V; WAYS] {
    if const { !is_apart(WAYS, BITS) } {
        // SAFETY: by the contract of this function.
        return unweave_rows::<V, WAYS, BITS, MOST_FIRST>(unsafe { load_row::<V, WAYS>(words) });
    }
    let mut memory = VectorOfEach::<WAYS>::uninit();
    let made = memory.as_mut_ptr().cast::<u8>();
    let rows = to(made, V::BYTES);
    // SAFETY: by the contract of this function, to where there is room for a vector of each row.
    unsafe { V::apart(StoreRows::<WAYS, BITS, MOST_FIRST> { words, count: WAYS, rows }) };
    // SAFETY: these have been made.
    unsafe { load_row::<V, WAYS>(made) }
}

/// Stores a vector of so many rows, the first ones, of the words at a place.
///
/// # Safety
///
/// Their words can be read, and they be written. The CPU has `V`.
#[inline(always)]
unsafe fn store_rows_of_words<
    V: Vector,
    const WAYS: usize,
    const BITS: u32,
    const MOST_FIRST: bool,
>(
    words: *const u8,
    count: usize,
    rows: Places<*mut u8>,
) {
    if const { is_apart(WAYS, BITS) } {
        // SAFETY: by the contract of this function.
        unsafe { V::apart(StoreRows::<WAYS, BITS, MOST_FIRST> { words, count, rows }) };
        return;
    }
    // SAFETY: by the contract of this function.
    let words = unsafe { load_row::<V, WAYS>(words) };
    let made = unweave_rows::<V, WAYS, BITS, MOST_FIRST>(words);
    // SAFETY: by the contract of this function.
    unsafe { store_vectors(&made, count, rows) };
}
