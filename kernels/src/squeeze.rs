//! Rows of bytes into words that hold some bits of each, and back.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::mem::MaybeUninit;
use std::ops::Range;

use super::algorithm::{Algorithm, InstructionSet, shorter};
use super::copy::CopyRun;
use super::deinterleave::Deinterleave;
use super::interleave::Interleave;
use super::scalar;
use super::vector::{LINE, PAGE, Vector, streams};
use super::whole_lines::{Memory, ROOM, WholeLines};
use super::{Place, Run, Strip};

/// How many bytes of a row [`Squeeze`] reads before the next one where it streams, half as many
/// within them, and [`Unsqueeze`] writes.
const SQUEEZED: usize = 4096;
const UNSQUEEZED: usize = 2048;
const _: () = assert!(8 * UNSQUEEZED <= ROOM, "there is room for a stretch of the rows of a byte");

/// How many bytes ahead in its row what is squeezed is fetched as well.
const SQUEEZED_AGAIN: usize = 2048;

/// How many bytes ahead the words are fetched that will be unsqueezed, where they are in memory and
/// the runs short.
const UNSQUEEZED_AHEAD: usize = 8192;

/// At most so many blocks are in a [`Stretch`]; of blocks whose rows do not go on in the next one,
/// as many as have so many bytes on the side of the rows.
const IN_STRETCH: usize = 32;
const APART: usize = 8192;

/// A stretch of each byte of the words, on its way: so many bytes of a row are read, or
/// written, before the next row.
#[repr(align(64))]
struct Stretch<const WAYS: usize, const BYTES: usize>([[MaybeUninit<u8>; BYTES]; WAYS]);

impl<const WAYS: usize, const BYTES: usize> Stretch<WAYS, BYTES> {
    #[inline(always)]
    fn uninit() -> Self {
        Self([[MaybeUninit::uninit(); BYTES]; WAYS])
    }
}

/// The stretches of a strip, which are parts of a block, or some blocks; behind the last ones of a line also those columns
/// that its tail has, if rows go on there.
struct Stretches<'a> {
    strip: &'a Strip,
    /// Rows go on in the next block of a stretch.
    are_joined: bool,
    /// How many columns of how many blocks, and of the tail.
    columns: usize,
    blocks: usize,
    tail: usize,
    /// The first line, block and column of the next one.
    line: usize,
    block: usize,
    column: usize,
}

/// So many columns of so many blocks, from one column of a block on.
#[derive(Clone, Copy)]
struct Part {
    line: usize,
    block: usize,
    column: usize,
    columns: usize,
    blocks: usize,
    /// So many columns behind these blocks.
    tail: usize,
}

/// Whether there is room for a tail behind columns of this strip.
pub(super) fn takes_tail(strip: &Strip) -> bool {
    strip.columns <= UNSQUEEZED / 2
}

/// A strip along its rows, where these go on in the next line and not in the next block: as one whose blocks are its lines, and
/// whose tail is behind them. Some cores stream rows of whole lines at multiples of pages sooner a part of each at a time.
#[inline(always)]
pub(super) fn along_rows(strip: &Strip) -> Option<Strip> {
    let Strip { lines, blocks, columns, tail, row_stride, .. } = *strip;
    let goes_on = strip.destination_line == columns && strip.destination_step != columns;
    let are_several = lines > 1 || lines == 1 && tail > 0;
    let are_pages = tail == 0 && row_stride.is_multiple_of(PAGE);
    let by_parts = are_pages && strip.core.streams_pages_by_parts();
    let has_room = columns.saturating_add(tail) <= UNSQUEEZED;
    (goes_on && are_several && !by_parts && has_room).then_some(Strip {
        lines: blocks,
        blocks: lines,
        source_line: strip.source_step,
        source_step: strip.source_line,
        destination_line: strip.destination_step,
        destination_step: strip.destination_line,
        ..*strip
    })
}

impl<'a> Stretches<'a> {
    /// Stretches of at most `most` columns of each row, where rows have one block every `row_step`, and so many columns
    /// behind these.
    #[inline(always)]
    fn new(strip: &'a Strip, row_step: usize, tail: usize, most: usize) -> Self {
        let columns = strip.columns.min(most);
        let are_joined = row_step == columns;
        let most = if are_joined { most } else { most.min(APART / strip.rows.max(1)) };
        let most = most.saturating_sub(tail);
        let blocks = if columns == strip.columns { most / columns } else { 1 };
        let blocks = blocks.clamp(1, IN_STRETCH);
        Self { strip, are_joined, columns, blocks, tail, line: 0, block: 0, column: 0 }
    }

    /// How many times a stretch goes along its rows, and for how many columns.
    #[inline(always)]
    fn runs(&self, part: Part) -> (usize, usize) {
        if self.are_joined {
            (1, part.blocks * part.columns + part.tail)
        } else {
            (part.blocks, part.columns)
        }
    }

    /// How many columns a row has, if all of each is one part.
    #[inline(always)]
    fn row(&self) -> Option<usize> {
        let Strip { blocks, columns, .. } = *self.strip;
        if self.are_joined {
            (self.blocks >= blocks).then_some(blocks * columns + self.tail)
        } else {
            Some(columns)
        }
    }

    /// Whether rows go on in the next block, and their words, of so many bytes, do not.
    #[inline(always)]
    fn are_apart(&self, ways: usize) -> bool {
        self.are_joined && self.strip.source_step != self.columns * ways
    }

    /// Fetches the words of a part: of its blocks, one of `ways`. Out of the way of what has none that are apart.
    #[inline(never)]
    fn fetch_words<V: Vector>(&self, part: Part, source: *const u8, way: usize, ways: usize) {
        let &Strip { source_line, source_step, .. } = self.strip;
        let source = source.wrapping_add(part.start(source_line, source_step, ways));
        for block in (way..part.blocks + usize::from(part.tail > 0)).step_by(ways) {
            let words = source.wrapping_add(block.wrapping_mul(source_step));
            for at in (0..part.columns * ways).step_by(LINE) {
                V::prefetch::<2>(words.wrapping_add(at));
            }
        }
    }
}

impl Iterator for Stretches<'_> {
    type Item = Part;

    #[inline(always)]
    fn next(&mut self) -> Option<Part> {
        if self.line == self.strip.lines || self.strip.blocks == 0 {
            return None;
        }
        let left = self.strip.blocks - self.block;
        let part = Part {
            line: self.line,
            block: self.block,
            column: self.column,
            columns: self.columns.min(self.strip.columns - self.column),
            blocks: self.blocks.min(left),
            tail: if self.blocks >= left { self.tail } else { 0 },
        };
        self.column += part.columns;
        if self.column == self.strip.columns {
            self.column = 0;
            self.block += part.blocks;
        }
        if self.block == self.strip.blocks {
            self.block = 0;
            self.line += 1;
        }
        Some(part)
    }
}

impl Part {
    /// Where it begins, on the side where a column of a block has so many bytes.
    #[inline(always)]
    fn start(self, line_step: usize, block_step: usize, column_bytes: usize) -> usize {
        (self.line.wrapping_mul(line_step))
            .wrapping_add(self.block.wrapping_mul(block_step))
            .wrapping_add(self.column * column_bytes)
    }
}

/// [`BlockOp::Squeeze`](super::BlockOp::Squeeze).
pub(super) struct Squeeze<const WAYS: usize, const BITS: u32, const TRUTH: bool, const STREAM: bool>;

impl<const WAYS: usize, const BITS: u32, const TRUTH: bool, const STREAM: bool> Algorithm
    for Squeeze<WAYS, BITS, TRUTH, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        let rows_of_byte = 8 / BITS as usize;
        for (source, destination) in scalar::blocks(strip, source, destination) {
            for column in 0..strip.columns {
                for way in 0..WAYS {
                    let first = way * rows_of_byte;
                    let rows = strip.rows.saturating_sub(first).min(rows_of_byte);
                    let from = source
                        .wrapping_add(first.wrapping_mul(strip.row_stride).wrapping_add(column));
                    let from = scalar::from(from, strip.row_stride);
                    // SAFETY: one column of rows that the strip has.
                    let byte = unsafe { scalar::squeeze::<BITS, TRUTH>(rows, from) };
                    // SAFETY: one byte of the word of that column.
                    unsafe { destination.wrapping_add(column * WAYS + way).write(byte) };
                }
            }
            let end = destination.wrapping_add(strip.columns * WAYS);
            // SAFETY: `pad` bytes follow the words of the block.
            unsafe { scalar::fill(end, 0, strip.pad) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        let rows_of_byte = 8 / BITS as usize;
        let longest = if STREAM { SQUEEZED } else { SQUEEZED / 2 };
        let mut parts = Stretches::new(strip, strip.source_step, 0, longest);
        let order: [Place; IN_STRETCH] = std::array::from_fn(|i| Place {
            source: i * parts.columns,
            destination: i.wrapping_mul(strip.destination_step),
        });
        let mut stretch = Stretch::<WAYS, SQUEEZED>::uninit();
        let mut next = parts.next();
        while let Some(part) = next {
            next = parts.next();
            let at = part.start(strip.source_line, strip.source_step, 1);
            // The rows of the next stretch are fetched meanwhile.
            let ahead = next.map_or(0, |next| {
                next.start(strip.source_line, strip.source_step, 1).wrapping_sub(at)
            });
            let (runs, columns) = parts.runs(part);
            for run in 0..runs {
                let from =
                    source.wrapping_add(at.wrapping_add(run.wrapping_mul(strip.source_step)));
                for (way, bytes) in stretch.0.iter_mut().enumerate() {
                    let first = way * rows_of_byte;
                    let rows = strip.rows.saturating_sub(first).min(rows_of_byte);
                    let from = from.wrapping_add(first.wrapping_mul(strip.row_stride));
                    let bytes = bytes.get_mut(run * columns..(run + 1) * columns);
                    let (from, bytes) =
                        (scalar::from(from, strip.row_stride), bytes.unwrap_or_default());
                    // SAFETY: so many columns of rows that the strip has: of several blocks only
                    // where these are one long row.
                    unsafe { squeeze_rows::<V, BITS, TRUTH, STREAM>(rows, from, bytes, ahead) };
                }
            }
            let is_end = part.column + part.columns == strip.columns;
            let words = Strip {
                lines: 1,
                blocks: part.blocks,
                source_step: part.columns,
                rows: WAYS,
                row_stride: SQUEEZED,
                is_far: false,
                columns: part.columns,
                pad: if is_end { strip.pad } else { 0 },
                ..*strip
            };
            let order = order.get(..part.blocks).unwrap_or_default();
            let bytes = stretch.0.as_ptr().cast();
            let at = part.start(strip.destination_line, strip.destination_step, WAYS);
            let to = destination.wrapping_add(at);
            // SAFETY: the stretch holds the columns of these blocks in each row; their words, and the
            // padding behind the last ones, are in the destination.
            match WAYS {
                1 => {
                    // SAFETY: as above.
                    unsafe { V::entry::<CopyRun<STREAM>>()(&words, order, bytes, to) }
                }
                2 => {
                    // SAFETY: as above.
                    unsafe {
                        V::entry::<Interleave<2, 8, 1, false, STREAM>>()(&words, order, bytes, to)
                    }
                }
                _ => {
                    // SAFETY: as above.
                    unsafe {
                        V::entry::<Interleave<4, 8, 1, false, STREAM>>()(&words, order, bytes, to)
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn instead<V: Vector>(strip: &Strip, _: *mut u8) -> Option<Run> {
        (strip.columns < V::BYTES).then(shorter::<Self, V>)
    }
}

/// Squeezes columns of up to as many rows as fill a byte into `bytes`, all of them.
/// Streaming, what is `ahead` by so many bytes is fetched.
///
/// # Safety
///
/// As many columns as `bytes` has can be read of each row; the CPU has `V`.
#[inline(always)]
unsafe fn squeeze_rows<V: Vector, const BITS: u32, const TRUTH: bool, const STREAM: bool>(
    rows: usize,
    source: scalar::Places<*const u8>,
    bytes: &mut [MaybeUninit<u8>],
    ahead: usize,
) {
    let rows_of_byte = 8 / BITS as usize;
    if bytes.len() < V::BYTES {
        for (column, byte) in bytes.iter_mut().enumerate() {
            let from = scalar::from(source.first.wrapping_add(column), source.stride);
            // SAFETY: one column of the rows.
            byte.write(unsafe { scalar::squeeze::<BITS, TRUTH>(rows, from) });
        }
    } else if rows == rows_of_byte {
        // SAFETY: the same rows, whose number the compiler knows here.
        unsafe { squeeze_some::<V, BITS, TRUTH, STREAM>(rows_of_byte, source, bytes, ahead) };
    } else if rows == 0 {
        bytes.fill(MaybeUninit::new(0));
    } else {
        // SAFETY: the same rows.
        unsafe { squeeze_some::<V, BITS, TRUTH, STREAM>(rows, source, bytes, ahead) };
    }
}

/// [`squeeze_rows`] for any number of rows but none, and a vector of columns at
/// least.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn squeeze_some<V: Vector, const BITS: u32, const TRUTH: bool, const STREAM: bool>(
    rows: usize,
    source: scalar::Places<*const u8>,
    bytes: &mut [MaybeUninit<u8>],
    ahead: usize,
) {
    let mask = 0xff >> (8 - BITS);
    // If it knows that a minimum is one with 1, the compiler makes a comparison and a choice
    // of it; docs/performance.md has what that costs.
    let mask = if TRUTH { std::hint::black_box(mask) } else { mask };
    // SAFETY: the CPU has `V`.
    let mask = unsafe { V::splat(mask) };
    let last = bytes.len() - V::BYTES;
    let mut column = 0;
    loop {
        let at = column.min(last);
        // SAFETY: the columns from `at` on are a vector at least, in each row.
        let mut byte =
            unsafe { squeeze_row::<V, TRUTH, STREAM>(rows - 1, at, source, mask, ahead) };
        for above in (0..rows - 1).rev() {
            // The rows so far are no more bits than are left in a byte.
            byte = match BITS {
                1 => byte.shl::<1>(),
                2 => byte.shl::<2>(),
                _ => byte.shl::<4>(),
            };
            // SAFETY: as above.
            let row = unsafe { squeeze_row::<V, TRUTH, STREAM>(above, at, source, mask, ahead) };
            byte = byte.or(row);
        }
        // SAFETY: as many bytes as were read of each row.
        unsafe { byte.store(bytes.as_mut_ptr().cast::<u8>().wrapping_add(at)) };
        if column >= last {
            break;
        }
        column += V::BYTES;
    }
}

/// The bits of a vector of bytes of one row that are kept, which `mask` has.
/// Streaming, what is `ahead` is fetched meanwhile.
///
/// # Safety
///
/// As many bytes can be read in this row, from byte `at` on; the CPU has `V`.
#[inline(always)]
unsafe fn squeeze_row<V: Vector, const TRUTH: bool, const STREAM: bool>(
    row: usize,
    at: usize,
    source: scalar::Places<*const u8>,
    mask: V,
    ahead: usize,
) -> V {
    let from = source.first.wrapping_add(row.wrapping_mul(source.stride).wrapping_add(at));
    // Each line is asked for twice at both places, as not all is taken; by shorter vectors that
    // comes by itself, and more.
    for _ in 0..if STREAM { (2 * V::BYTES).div_ceil(LINE) } else { 0 } {
        V::prefetch::<2>(from.wrapping_add(ahead));
        V::prefetch::<2>(from.wrapping_add(SQUEEZED_AGAIN));
    }
    // SAFETY: by the contract of this function.
    let vector = unsafe { V::load(from) };
    if TRUTH { vector.min(mask) } else { vector.and(mask) }
}

/// [`BlockOp::Unsqueeze`](super::BlockOp::Unsqueeze).
pub(super) struct Unsqueeze<const WAYS: usize, const BITS: u32, const STREAM: bool>;

impl<const WAYS: usize, const BITS: u32, const STREAM: bool> Algorithm
    for Unsqueeze<WAYS, BITS, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        let rows_of_byte = 8 / BITS as usize;
        for (strip, place) in strip.pieces() {
            let (source, destination) = place.of(source, destination);
            for (source, destination) in scalar::blocks(&strip, source, destination) {
                for (column, way) in
                    (0..strip.columns).flat_map(|column| (0..WAYS).map(move |way| (column, way)))
                {
                    let first = way * rows_of_byte;
                    let rows = strip.rows.saturating_sub(first).min(rows_of_byte);
                    // SAFETY: one byte of the word of that column.
                    let byte = unsafe { source.wrapping_add(column * WAYS + way).read() };
                    let to = destination
                        .wrapping_add(first.wrapping_mul(strip.row_stride).wrapping_add(column));
                    // SAFETY: one column of rows that the strip has.
                    unsafe {
                        scalar::unsqueeze::<BITS>(rows, byte, scalar::to(to, strip.row_stride));
                    }
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
        if !STREAM {
            debug_assert!(strip.tail == 0, "only what is streamed has tails");
            // SAFETY: the same contract.
            return unsafe { Self::stretches::<V>(strip, source, destination) };
        }
        let along = along_rows(strip);
        if along.is_none() && strip.tail > 0 {
            for (strip, place) in strip.pieces() {
                let (source, destination) = place.of(source, destination);
                // SAFETY: the blocks of the strip, or those behind them, which have no tail.
                unsafe { V::entry::<Self>()(&strip, &[], source, destination) };
            }
            return;
        }
        // SAFETY: the same blocks, perhaps in another order.
        unsafe { Self::stretches::<V>(&along.unwrap_or(*strip), source, destination) };
    }

    #[inline(always)]
    fn instead<V: Vector>(strip: &Strip, _: *mut u8) -> Option<Run> {
        (strip.columns < V::BYTES).then(shorter::<Self, V>)
    }
}

impl<const WAYS: usize, const BITS: u32, const STREAM: bool> Unsqueeze<WAYS, BITS, STREAM> {
    /// The blocks of a strip, with its tail, if rows go on there from block to block; of whole bytes, too.
    ///
    /// # Safety
    ///
    /// By the contract of [`kernel`](super) for such a strip. The CPU has `V`.
    #[inline(always)]
    pub(super) unsafe fn stretches<V: Vector>(
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
    ) {
        let rows_of_byte = 8 / BITS as usize;
        let tail = if STREAM { strip.tail } else { 0 };
        let mut parts = Stretches::new(strip, strip.destination_step, tail, UNSQUEEZED);
        let order: [Place; IN_STRETCH] = std::array::from_fn(|i| Place {
            source: i.wrapping_mul(strip.source_step),
            destination: i * parts.columns,
        });
        let mut stretch = Stretch::<WAYS, UNSQUEEZED>::uninit();
        // Rows that follow each other, unless all are whole lines.
        let are_lines = V::BYTES == LINE && streams::<V>(strip, destination, strip.row_stride);
        let row = parts.row().filter(|&row| row <= UNSQUEEZED);
        let rows_join = STREAM && row.is_some_and(|row| strip.rows_join(row)) && !are_lines;
        let mut memory = Memory::uninit();
        let mut lines = WholeLines::new(&mut memory);
        let fetches = STREAM && strip.is_far && parts.are_apart(WAYS);
        let mut next = if STREAM { parts.next() } else { None };
        while let Some(part) = if STREAM { next } else { parts.next() } {
            if STREAM {
                next = parts.next();
            }
            let ahead = next.filter(|_| fetches);
            let words = Strip {
                lines: 1,
                blocks: part.blocks,
                destination_step: part.columns,
                rows: WAYS,
                row_stride: UNSQUEEZED,
                columns: part.columns,
                pad: 0,
                tail: 0,
                ..*strip
            };
            let order = order.get(..part.blocks).unwrap_or_default();
            let at = part.start(strip.source_line, strip.source_step, WAYS);
            let from = source.wrapping_add(at);
            let bytes = stretch.0.as_mut_ptr().cast::<u8>();
            if STREAM && part.tail > 0 {
                let last = Strip { blocks: 1, columns: part.tail, ..words };
                let from = from.wrapping_add(part.blocks.wrapping_mul(strip.source_step));
                let bytes = bytes.wrapping_add(part.blocks * part.columns);
                // SAFETY: the words of the columns behind those of the blocks, as below.
                unsafe { Self::take_apart::<V>(&last, &[Place::default()], from, bytes) };
            }
            // SAFETY: the words of the columns; the stretch has room for each byte of them.
            unsafe { Self::take_apart::<V>(&words, order, from, bytes) };
            let at = part.start(strip.destination_line, strip.destination_step, 1);
            let (runs, columns) = parts.runs(part);
            for run in 0..runs {
                if STREAM && strip.is_far && runs > 1 {
                    let words = from.wrapping_add(run.wrapping_mul(strip.source_step));
                    for at in (0..columns * WAYS).step_by(LINE) {
                        V::prefetch::<2>(words.wrapping_add(UNSQUEEZED_AHEAD + at));
                    }
                }
                let at = at.wrapping_add(run.wrapping_mul(strip.destination_step));
                for (way, bytes) in stretch.0.iter().enumerate() {
                    if let Some(part) = ahead {
                        parts.fetch_words::<V>(part, source, way, WAYS);
                    }
                    let first = way * rows_of_byte;
                    let rows = strip.rows.saturating_sub(first).min(rows_of_byte);
                    let to = destination
                        .wrapping_add(first.wrapping_mul(strip.row_stride).wrapping_add(at));
                    let bytes = bytes.get(run * columns..(run + 1) * columns).unwrap_or_default();
                    let to = scalar::to(to, strip.row_stride);
                    if !rows_join {
                        // SAFETY: so many columns of rows that the strip has, whose bytes have just
                        // been written: of several blocks only where these are one long row.
                        unsafe { unsqueeze_rows::<V, BITS>(rows, bytes, to, STREAM) };
                        continue;
                    }
                    if rows == 0 {
                        continue;
                    }
                    // SAFETY: rows that can be written, as what was made before.
                    let made = unsafe { lines.room::<V>(to.first) };
                    // SAFETY: so many rows, which there is room for.
                    unsafe {
                        unsqueeze_rows::<V, BITS>(rows, bytes, scalar::to(made, columns), false);
                    }
                    // SAFETY: they have just been made.
                    unsafe { lines.made::<V>(rows * columns) };
                }
            }
        }
        // SAFETY: rows that can be written.
        unsafe { lines.finish::<V>() };
    }

    /// The bytes of words, each to its row of a stretch.
    ///
    /// # Safety
    ///
    /// By the contract of [`kernel`](super). The CPU has `V`.
    #[inline(always)]
    unsafe fn take_apart<V: Vector>(
        words: &Strip,
        order: &[Place],
        from: *const u8,
        bytes: *mut u8,
    ) {
        // SAFETY: by the contract of this function.
        match WAYS {
            1 => {
                // SAFETY: as above.
                unsafe { V::entry::<CopyRun<false>>()(words, order, from, bytes) }
            }
            2 => {
                // SAFETY: as above.
                unsafe {
                    V::entry::<Deinterleave<2, 8, 1, false, false>>()(words, order, from, bytes)
                }
            }
            _ => {
                // SAFETY: as above.
                unsafe {
                    V::entry::<Deinterleave<4, 8, 1, false, false>>()(words, order, from, bytes)
                }
            }
        }
    }
}

/// Widens bytes into columns of up to as many rows as a byte holds.
///
/// # Safety
///
/// The bytes have been written, and as many columns can be in each row. The CPU has `V`.
#[inline(always)]
unsafe fn unsqueeze_rows<V: Vector, const BITS: u32>(
    rows: usize,
    bytes: &[MaybeUninit<u8>],
    destination: scalar::Places<*mut u8>,
    stream: bool,
) {
    if bytes.len() < V::BYTES {
        for (column, byte) in bytes.iter().enumerate() {
            // SAFETY: by the contract of this function.
            let byte = unsafe { byte.assume_init() };
            let to = scalar::to(destination.first.wrapping_add(column), destination.stride);
            // SAFETY: one column of the rows.
            unsafe { scalar::unsqueeze::<BITS>(rows, byte, to) };
        }
        return;
    }
    for row in 0..rows {
        let to = destination.first.wrapping_add(row.wrapping_mul(destination.stride));
        // A shift is part of the instruction, so each has its own loop.
        // SAFETY: one of the rows.
        match row * BITS as usize {
            0 => {
                // SAFETY: as above.
                unsafe { unsqueeze_row::<V, BITS, 0>(bytes, to, stream) }
            }
            1 => {
                // SAFETY: as above.
                unsafe { unsqueeze_row::<V, BITS, 1>(bytes, to, stream) }
            }
            2 => {
                // SAFETY: as above.
                unsafe { unsqueeze_row::<V, BITS, 2>(bytes, to, stream) }
            }
            3 => {
                // SAFETY: as above.
                unsafe { unsqueeze_row::<V, BITS, 3>(bytes, to, stream) }
            }
            4 => {
                // SAFETY: as above.
                unsafe { unsqueeze_row::<V, BITS, 4>(bytes, to, stream) }
            }
            5 => {
                // SAFETY: as above.
                unsafe { unsqueeze_row::<V, BITS, 5>(bytes, to, stream) }
            }
            6 => {
                // SAFETY: as above.
                unsafe { unsqueeze_row::<V, BITS, 6>(bytes, to, stream) }
            }
            _ => {
                // SAFETY: as above.
                unsafe { unsqueeze_row::<V, BITS, 7>(bytes, to, stream) }
            }
        }
    }
}

/// Widens the bits of bytes from bit `SHIFT` on into columns of one row. Of these, `stream` writes
/// whole lines so, and what is before and behind them in the ordinary way.
///
/// # Safety
///
/// There is a vector of bytes at least, which have been written; as many columns can be. The
/// CPU has `V`.
#[inline(always)]
unsafe fn unsqueeze_row<V: Vector, const BITS: u32, const SHIFT: i32>(
    bytes: &[MaybeUninit<u8>],
    to: *mut u8,
    stream: bool,
) {
    // SAFETY: the CPU has `V`.
    let mask = unsafe { V::splat(0xff >> (8 - BITS)) };
    if stream {
        let first = (to.addr().wrapping_neg() % LINE).min(bytes.len());
        let end = first + (bytes.len() - first) / LINE * LINE;
        // SAFETY: the columns before the first line.
        unsafe { unsqueeze_part::<V, SHIFT>(bytes, mask, 0..first, to) };
        for column in (first..end).step_by(V::BYTES) {
            // SAFETY: a vector of the bytes.
            let vector = unsafe { V::load(bytes.as_ptr().cast::<u8>().wrapping_add(column)) };
            // SAFETY: as many columns of the row, in whole vectors from the beginning of a line on.
            unsafe { vector.shr::<SHIFT>().and(mask).stream(to.wrapping_add(column)) };
        }
        // SAFETY: the columns behind the last line.
        unsafe { unsqueeze_part::<V, SHIFT>(bytes, mask, end..bytes.len(), to) };
        return;
    }
    let last = bytes.len() - V::BYTES;
    let mut column = 0;
    loop {
        let at = column.min(last);
        // SAFETY: a vector of the bytes, at most the last one.
        let vector = unsafe { V::load(bytes.as_ptr().cast::<u8>().wrapping_add(at)) };
        // SAFETY: as many columns of the row.
        unsafe { vector.shr::<SHIFT>().and(mask).store(to.wrapping_add(at)) };
        if column >= last {
            break;
        }
        column += V::BYTES;
    }
}

/// The same of these columns, which are fewer than a line has, and no others.
///
/// # Safety
///
/// There is a vector of bytes at least, which have been written; these columns are among
/// them, and can be. The CPU has `V`.
#[inline(always)]
unsafe fn unsqueeze_part<V: Vector, const SHIFT: i32>(
    bytes: &[MaybeUninit<u8>],
    mask: V,
    columns: Range<usize>,
    to: *mut u8,
) {
    const { assert!(LINE.is_multiple_of(V::BYTES), "vectors fill a line") };
    for part in 0..LINE / V::BYTES {
        let column = columns.start + part * V::BYTES;
        if column < columns.end {
            let count = V::BYTES.min(columns.end - column);
            let start = column.min(bytes.len() - V::BYTES);
            // SAFETY: a vector of the bytes, at most the last one.
            let vector = unsafe { V::load(bytes.as_ptr().cast::<u8>().wrapping_add(start)) };
            let mut made = [0; LINE];
            // SAFETY: no vector is longer than a line.
            unsafe { vector.shr::<SHIFT>().and(mask).store(made.as_mut_ptr()) };
            let made = made.as_ptr().wrapping_add(column - start);
            // SAFETY: columns of that vector, to where they belong.
            unsafe { scalar::run(made, to.wrapping_add(column), count) };
        }
    }
}
