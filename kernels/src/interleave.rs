//! Rows of elements into words that hold one element of each.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::mem::MaybeUninit;

use super::algorithm::{Algorithm, Apart, shorter};
use super::carry::{CacheLines, Carry, Make};
use super::packed_rows::{self, FEW_SQUARES};
use super::pages::{self, ByTurns};
use super::scalar::{self, from, to};
use super::vector::{
    STRAIGHT, Vector, load_end, load_row, load_short, store_row, stream_zeros, streams,
    streams_short, weave,
};
use super::walk::{Ahead, blocks};
use super::{BlockOp, Place, Run, Strip};

/// [`BlockOp::Interleave`], `WIDTH` being the bytes of an element, one where it has fewer bits.
pub(super) struct Interleave<
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
> Algorithm for Interleave<WAYS, BITS, WIDTH, MOST_FIRST, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        let bytes = row_bytes(strip.columns, BITS);
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let end = destination.wrapping_add(bytes * WAYS);
            if BITS < 8 {
                // SAFETY: the columns of the rows of the strip.
                unsafe { packed_rows::interleave::<BITS, MOST_FIRST>(strip, source, destination) };
                // SAFETY: `pad` bytes follow the words of the block.
                unsafe { scalar::fill(end, 0, strip.pad) };
                continue;
            }
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
        let bytes = row_bytes(strip.columns, BITS);
        if (STREAM || BITS < 8) && bytes < V::BYTES {
            if BITS < 8 && !Self::streams_with_padding::<V>(strip, destination) {
                // SAFETY: the same strip.
                return unsafe { Self::store_short::<V>(strip, source, destination) };
            }
            // SAFETY: the same strip, whose blocks begin and end where vectors do.
            return unsafe { Self::stream_short::<V>(strip, source, destination) };
        }
        let stream = STREAM && streams::<V>(strip, destination, 0);
        if STREAM && !stream {
            let ways = u32::try_from(WAYS).unwrap_or_default();
            let op = BlockOp::Interleave { ways, bits: BITS, most_first: MOST_FIRST };
            // Measured where prefetchers follow pages alone.
            let follows_pages = strip.core.follows_pages();
            let strip = if follows_pages { strip.along_runs(op) } else { *strip };
            if let Some(carry) = Carry::new(&strip, op) {
                // SAFETY: the same strip and op, with columns for a vector.
                return unsafe { carry.run::<Self, V>(&strip, source, destination) };
            }
        }
        // SAFETY: the same strip and op, and the bytes of a row of it.
        if STREAM && unsafe { pages::run::<Self, V, WAYS>(strip, bytes, source, destination) } {
            return;
        }
        let full = strip.rows == WAYS;
        if stream && full && strip.pad == 0 && bytes.is_multiple_of(V::BYTES) {
            // SAFETY: the same strip, of whole vectors, whose words are aligned.
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
            let rows = Rows::<WAYS>::new(source, strip);
            let mut at = 0;
            while !STREAM && full && at + straight <= bytes {
                let to = destination.wrapping_add(at * WAYS);
                for part in (0..straight).step_by(V::BYTES) {
                    let to = to.wrapping_add(part * WAYS);
                    // SAFETY: a vector of each row, and their words.
                    unsafe { rows.store_words::<V, BITS, MOST_FIRST>(at + part, true, to) };
                }
                rows.fetch::<V>(at, straight, ahead);
                at += straight;
            }
            if at == bytes && strip.pad == 0 {
                continue;
            }
            // SAFETY: the bytes of each row of the block from `at` on, as above.
            unsafe { Self::block::<V>(strip, source, destination, at, Some(ahead), stream) };
        }
    }

    #[inline(always)]
    fn instead<V: Vector>(strip: &Strip, destination: *mut u8) -> Option<Run> {
        let is_short = row_bytes(strip.columns, BITS) < V::BYTES;
        let is_done =
            BITS < 8 && V::IS_SHORTEST || Self::streams_with_padding::<V>(strip, destination);
        (is_short && !is_done).then(shorter::<Self, V>)
    }
}

impl<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const MOST_FIRST: bool,
    const STREAM: bool,
> Interleave<WAYS, BITS, WIDTH, MOST_FIRST, STREAM>
{
    /// Stores the words of blocks whose rows are less than two vectors, and their padding: the first vector of
    /// each row, and the last one if it is another.
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
        let (last, full) = (bytes - V::BYTES, strip.rows == WAYS);
        for place in blocks::<STREAM>(strip, order, bytes * WAYS) {
            let (source, destination) = place.of(source, destination);
            let rows = Rows::<WAYS>::new(source, strip);
            // SAFETY: a vector of each row, and their words.
            unsafe { rows.store_words::<V, BITS, MOST_FIRST>(0, full, destination) };
            if last > 0 {
                let to = destination.wrapping_add(last * WAYS);
                // SAFETY: as above, to the end of each row.
                unsafe { rows.store_words::<V, BITS, MOST_FIRST>(last, full, to) };
            }
            // SAFETY: `pad` bytes follow the words of the block.
            unsafe { scalar::fill(destination.wrapping_add(bytes * WAYS), 0, strip.pad) };
        }
    }

    /// Whether the blocks of a strip whose rows are shorter than a vector are streamed with their padding.
    #[inline(always)]
    fn streams_with_padding<V: Vector>(strip: &Strip, destination: *mut u8) -> bool {
        let bytes = row_bytes(strip.columns, BITS);
        // Of bits, words of a vector are many.
        let fits_half = BITS < 8 && bytes <= V::Half::BYTES && !V::IS_SHORTEST;
        STREAM
            && !fits_half
            && streams_short(strip)
            && (bytes * WAYS + strip.pad).is_multiple_of(V::BYTES)
            && streams::<V>(strip, destination, 0)
    }

    /// Streams the blocks of a strip that misses no row, has whole vectors and no padding.
    ///
    /// # Safety
    ///
    /// That of [`Algorithm::vectors`], and the words of every block are aligned for `V`.
    #[inline(always)]
    unsafe fn stream_blocks<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
        let Strip { source_step, destination_step, .. } = *strip;
        let bytes = row_bytes(strip.columns, BITS);
        let mut places = blocks::<true>(strip, &[], bytes * WAYS);
        while let Some((place, count)) = places.next_alike() {
            let ahead = places.ahead;
            let (mut source, mut destination) = place.of(source, destination);
            for _ in 0..count {
                let rows = Rows::<WAYS>::new(source, strip);
                for at in (0..bytes).step_by(V::BYTES) {
                    // SAFETY: a vector of each row, of which none is missing.
                    let words = unsafe { rows.words::<V, BITS, MOST_FIRST>(at, true) };
                    let to = destination.wrapping_add(at * WAYS);
                    for (row, words) in words.iter().enumerate() {
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
        let bytes = row_bytes(strip.columns, BITS);
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let rows = Rows::<WAYS>::new(source, strip);
            let mut to = destination;
            let end = destination.wrapping_add(bytes * WAYS + strip.pad);
            // SAFETY: the rows of the block.
            let rows = unsafe { rows.load_short::<V>(bytes) };
            for words in &weave_rows::<V, WAYS, BITS, MOST_FIRST>(rows) {
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

    /// Stores the words of blocks whose rows are shorter than a vector, and their padding.
    ///
    /// # Safety
    ///
    /// That of [`Algorithm::vectors`], but that rows are shorter than a vector.
    #[inline(always)]
    unsafe fn store_short<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
        let bytes = row_bytes(strip.columns, BITS);
        if packed_rows::squares::<BITS>(strip.rows, bytes) <= FEW_SQUARES {
            for (source, destination) in scalar::blocks(strip, source, destination) {
                // SAFETY: the rows of the block, and its words.
                unsafe {
                    packed_rows::interleave_squares::<BITS, MOST_FIRST>(strip, source, destination)
                };
                // SAFETY: `pad` bytes follow the words of the block.
                unsafe { scalar::fill(destination.wrapping_add(bytes * WAYS), 0, strip.pad) };
            }
            return;
        }
        for (source, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: the rows of the block.
            let rows = unsafe { Rows::<WAYS>::new(source, strip).load_short::<V>(bytes) };
            let mut made = VectorOfEach::<WAYS>::uninit();
            let made = made.as_mut_ptr().cast::<u8>();
            // SAFETY: memory for as many vectors, none of which is longer than a line.
            unsafe { store_row(&weave_rows::<V, WAYS, BITS, MOST_FIRST>(rows), made) };
            // SAFETY: the words of the block, which have been made.
            unsafe { scalar::run(made, destination, bytes * WAYS) };
            // SAFETY: `pad` bytes follow the words of the block.
            unsafe { scalar::fill(destination.wrapping_add(bytes * WAYS), 0, strip.pad) };
        }
    }

    /// Does a block from that byte of each row on, and the padding behind it.
    ///
    /// # Safety
    ///
    /// The block can be read and written, from there on, and for `stream` it is
    /// aligned for `V`. Rows have a vector at least. The CPU has `V`.
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
        let (whole, full) = (bytes.is_multiple_of(V::BYTES), strip.rows == WAYS);
        let rows = Rows::<WAYS>::new(source, strip);
        let last = bytes - V::BYTES;
        while at <= last {
            if let (true, Some(ahead)) = (STREAM, ahead) {
                rows.fetch_vectors::<V, STREAM>(at, ahead);
            }
            let to = destination.wrapping_add(at * WAYS);
            if const { is_apart(WAYS, BITS) } && !stream {
                // SAFETY: the bytes from `at` on are a vector at least, in each row, and so are
                // their words.
                unsafe { rows.store_words::<V, BITS, MOST_FIRST>(at, full, to) };
            } else {
                // SAFETY: as above.
                let words = unsafe { rows.words::<V, BITS, MOST_FIRST>(at, full) };
                for (i, word) in words.iter().enumerate() {
                    let to = to.wrapping_add(i * V::BYTES);
                    if stream {
                        // SAFETY: as above; whole vectors from an aligned start.
                        unsafe { word.stream(to) };
                    } else {
                        // SAFETY: as above.
                        unsafe { word.store(to) };
                    }
                }
            }
            at += V::BYTES;
        }
        let end_of_words = destination.wrapping_add(bytes * WAYS);
        if stream && (bytes * WAYS + strip.pad).is_multiple_of(V::BYTES) {
            let mut to = destination.wrapping_add(at * WAYS);
            let end = end_of_words.wrapping_add(strip.pad);
            if !whole {
                // SAFETY: the last bytes of the rows, fewer than a vector has, but not all.
                let words = unsafe { rows.load_end::<V>(bytes, bytes - at) };
                for word in &weave_rows::<V, WAYS, BITS, MOST_FIRST>(words) {
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
            let columns = (bytes - at) * 8 / BITS as usize;
            let rest = Strip { lines: 1, blocks: 1, columns, ..*strip };
            let (source, destination) =
                (source.wrapping_add(at), destination.wrapping_add(at * WAYS));
            if BITS < 8 {
                // SAFETY: the last columns of the block.
                return unsafe { Self::store_short::<V>(&rest, source, destination) };
            }
            // SAFETY: the last columns of the block.
            return unsafe { Self::elements(&rest, source, destination) };
        }
        if !whole {
            let to = destination.wrapping_add(last * WAYS);
            // SAFETY: the last bytes of the rows, and their words.
            unsafe { rows.store_words::<V, BITS, MOST_FIRST>(last, full, to) };
        }
        // SAFETY: `pad` bytes follow the words of the block.
        unsafe { scalar::fill(end_of_words, 0, strip.pad) };
    }
}

impl<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const MOST_FIRST: bool,
    const STREAM: bool,
> ByTurns<WAYS> for Interleave<WAYS, BITS, WIDTH, MOST_FIRST, STREAM>
{
    const TO_ROWS: bool = false;

    #[inline(always)]
    unsafe fn made<V: Vector>(strip: &Strip, source: *const u8) -> [V; WAYS] {
        // SAFETY: a vector of each row, of which none is missing.
        unsafe { Rows::<WAYS>::new(source, strip).words::<V, BITS, MOST_FIRST>(0, true) }
    }
}

impl<
    const WAYS: usize,
    const BITS: u32,
    const WIDTH: usize,
    const MOST_FIRST: bool,
    const STREAM: bool,
> Make for Interleave<WAYS, BITS, WIDTH, MOST_FIRST, STREAM>
{
    #[inline(always)]
    unsafe fn make<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
        // SAFETY: by the contract of this function.
        unsafe { Self::block::<V>(strip, source, destination, 0, None, false) };
    }
}

/// Whether a vector of each row is done [apart](Apart): elements below a byte, of which many rows make a word. Where much
/// is streamed it is done in place all the same, as its vectors need not be in memory first.
pub(super) const fn is_apart(ways: usize, bits: u32) -> bool {
    bits < 8 && ways > 8
}

/// Memory for a vector of each row, none of which is longer than a line.
pub(super) type VectorOfEach<const WAYS: usize> = MaybeUninit<CacheLines<WAYS>>;

/// [`Rows::store_words`] from the beginning of the rows.
struct StoreWords<const WAYS: usize, const BITS: u32, const MOST_FIRST: bool> {
    rows: Rows<WAYS>,
    words: *mut u8,
}

impl<const WAYS: usize, const BITS: u32, const MOST_FIRST: bool> Apart
    for StoreWords<WAYS, BITS, MOST_FIRST>
{
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        // By cases, so that no row is looked for where none is missing.
        let words = if self.rows.count == WAYS {
            // SAFETY: by the contract of that function.
            unsafe { self.rows.words_here::<V, BITS, MOST_FIRST>(0, true) }
        } else {
            // SAFETY: as above.
            unsafe { self.rows.words_here::<V, BITS, MOST_FIRST>(0, false) }
        };
        // SAFETY: as above.
        unsafe { store_row(&words, self.words) };
    }
}

/// Words of rows, a vector of each; those of elements below a byte by way of memory, as they are wanted for what is short.
#[inline(always)]
fn weave_rows<V: Vector, const WAYS: usize, const BITS: u32, const MOST_FIRST: bool>(
    rows: [V; WAYS],
) -> [V; WAYS] {
    if BITS >= 8 {
        return weave::<V, WAYS, BITS>(rows);
    }
    let mut memory = VectorOfEach::<WAYS>::uninit();
    let memory = memory.as_mut_ptr().cast::<u8>();
    // SAFETY: there is room for as many vectors.
    unsafe { store_row(&rows, memory) };
    let rows = Rows::<WAYS> { first: memory, stride: V::BYTES, count: WAYS };
    // SAFETY: these rows, none of which is missing, are read before their words are stored there.
    unsafe { rows.store_words::<V, BITS, MOST_FIRST>(0, true, memory) };
    // SAFETY: these have been made.
    unsafe { load_row::<V, WAYS>(memory) }
}

/// The bytes of so many columns of a row, which fill bytes.
pub(super) const fn row_bytes(columns: usize, bits: u32) -> usize {
    if bits < 8 { columns * bits as usize / 8 } else { columns * (bits as usize / 8) }
}

/// The rows of a block, of which the last ones may be missing.
pub(super) struct Rows<const WAYS: usize> {
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

    /// The words of a vector of each row, from byte `at` of the row on; a missing row counts as
    /// zeros. Not [apart](is_apart) where it is said that none is.
    ///
    /// # Safety
    ///
    /// As many bytes can be read there in each row that is not missing; `full`
    /// says that none is. The CPU has `V`.
    #[inline(always)]
    unsafe fn words<V: Vector, const BITS: u32, const MOST_FIRST: bool>(
        &self,
        at: usize,
        full: bool,
    ) -> [V; WAYS] {
        if const { !is_apart(WAYS, BITS) } || full {
            // SAFETY: by the contract of this function.
            return unsafe { self.words_here::<V, BITS, MOST_FIRST>(at, full) };
        }
        let mut memory = VectorOfEach::<WAYS>::uninit();
        let made = memory.as_mut_ptr().cast::<u8>();
        // SAFETY: by the contract of this function, to where there is room for the words.
        unsafe { self.store_words::<V, BITS, MOST_FIRST>(at, full, made) };
        // SAFETY: these have been made.
        unsafe { load_row::<V, WAYS>(made) }
    }

    /// The same, never [apart](is_apart), whatever the op.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    unsafe fn words_here<V: Vector, const BITS: u32, const MOST_FIRST: bool>(
        &self,
        at: usize,
        full: bool,
    ) -> [V; WAYS] {
        if BITS < 8 {
            // SAFETY: by the contract of this function.
            return unsafe { packed_rows::words::<V, WAYS, BITS, MOST_FIRST>(self, at, full) };
        }
        // SAFETY: by the contract of this function.
        weave::<V, WAYS, BITS>(unsafe { self.load::<V, WAYS>(0, at, full) })
    }

    /// Stores these words. Apart, it is looked at once more whether a row is missing, instead of in two functions.
    ///
    /// # Safety
    ///
    /// As there, and they can be written.
    #[inline(always)]
    unsafe fn store_words<V: Vector, const BITS: u32, const MOST_FIRST: bool>(
        &self,
        at: usize,
        full: bool,
        to: *mut u8,
    ) {
        if const { is_apart(WAYS, BITS) } {
            let rows = Rows { first: self.at(0, at), ..*self };
            // SAFETY: by the contract of this function.
            unsafe { V::apart(StoreWords::<WAYS, BITS, MOST_FIRST> { rows, words: to }) };
            return;
        }
        // SAFETY: by the contract of this function.
        let words = unsafe { self.words_here::<V, BITS, MOST_FIRST>(at, full) };
        // SAFETY: by the contract of this function.
        unsafe { store_row(&words, to) };
    }

    /// A vector of each of so many rows, from that one and from byte `at` of it on; of a missing row,
    /// zeros.
    ///
    /// # Safety
    ///
    /// As many bytes can be read there in each row that is not missing; `full`
    /// says that none is. The CPU has `V`.
    #[inline(always)]
    pub(super) unsafe fn load<V: Vector, const COUNT: usize>(
        &self,
        first: usize,
        at: usize,
        full: bool,
    ) -> [V; COUNT] {
        // SAFETY: the CPU has `V`.
        let mut rows = [unsafe { V::splat(0) }; COUNT];
        for (row, vector) in rows.iter_mut().enumerate() {
            if full || first + row < self.count {
                // SAFETY: by the contract of this function.
                *vector = unsafe { V::load(self.at(first + row, at)) };
            }
        }
        rows
    }
}
