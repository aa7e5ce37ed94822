//! Rows that follow each other in memory and begin anywhere, streamed by whole lines of the caches.
//!
//! They are made one behind the other in memory that the near caches hold, as far from the beginning of a line as
//! where they belong. From there whole lines go to their places, and what is left goes to the
//! beginning, for the next rows to go on with:
//!
//! ```text
//! lines in the destination   |       |       |       |
//! three rows                     aaaaaBBBBBccccc
//! in memory                  |   aaaa|aBBBBBcc|ccc
//! once its lines are gone    |ccc
//! ```
//!
//! The first bytes of what goes on and on, and the last ones, are written in the ordinary
//! way: the rest of their lines belongs to others. [`Carry`](super::carry::Carry) does this for blocks
//! of whole lines, several rows of them side by side.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::mem::MaybeUninit;

use super::Strip;
use super::carry::{CacheLines, copy_line};
use super::scalar;
use super::vector::{LINE, Vector};

/// So many bytes are made at once at most, but by who has memory of another size.
pub(super) const ROOM: usize = 16 << 10;

/// Lines are streamed once there are so many bytes of them.
const ENOUGH: usize = 2048;

/// Beside rows there is room for what is left of others, and for lines of which they have a part.
pub(super) const BESIDE: usize = ENOUGH + 2 * LINE;

/// The memory.
pub(super) type Memory = MaybeUninit<CacheLines<{ (ROOM + BESIDE) / LINE }>>;

/// What has been made and is not streamed yet.
pub(super) struct WholeLines {
    memory: *mut u8,
    /// The bytes of memory that are taken, and how many of these, the first ones, belong to others.
    filled: usize,
    others: usize,
    /// The line of the destination that the memory begins with.
    line: *mut u8,
}

/// Where runs of the blocks of a strip begin and end within lines, some blocks further on: what is streamed behind an end
/// has to wait for its line.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    /// How far it is there.
    ahead: usize,
    /// The bytes of a run: of a block, or of all blocks of a line that follow each other.
    bytes: usize,
}

/// So many blocks further on.
const ENDS_AHEAD: usize = 3;

impl Ends {
    /// Of blocks that write runs of so many bytes.
    #[inline(always)]
    pub(super) fn of(strip: &Strip, bytes: usize) -> Self {
        if strip.destination_step == bytes {
            let bytes = bytes.wrapping_mul(strip.blocks);
            return Self { ahead: strip.destination_line, bytes };
        }
        Self { ahead: strip.destination_step.wrapping_mul(ENDS_AHEAD), bytes }
    }

    /// Fetches the lines for a run that begins there.
    #[inline(always)]
    pub(super) fn fetch<V: Vector>(self, to: *mut u8) {
        let start = to.wrapping_add(self.ahead);
        let end = start.wrapping_add(self.bytes);
        for place in [start, end] {
            if !place.addr().is_multiple_of(LINE) {
                V::prefetch::<1>(place);
            }
        }
    }

    /// The same of its end alone.
    #[inline(always)]
    pub(super) fn fetch_end<V: Vector>(self, to: *mut u8) {
        let end = to.wrapping_add(self.ahead).wrapping_add(self.bytes);
        if !end.addr().is_multiple_of(LINE) {
            V::prefetch::<1>(end);
        }
    }
}

impl WholeLines {
    /// Whether that follows what has been made.
    #[inline(always)]
    pub(super) fn goes_on(&self, to: *mut u8) -> bool {
        self.line.wrapping_add(self.filled) == to
    }

    /// Nothing, for that memory.
    #[inline(always)]
    pub(super) fn new(memory: &mut Memory) -> Self {
        Self::at(memory.as_mut_ptr().cast())
    }

    /// The same for memory of [`BESIDE`] bytes more than are made at once, from where a line begins; or of two lines more,
    /// if there are [few](WholeLines::made_few) each time.
    #[inline(always)]
    pub(super) fn at(memory: *mut u8) -> Self {
        Self { memory, filled: 0, others: 0, line: std::ptr::null_mut() }
    }

    /// Where rows are to be made that belong at `to`, as many bytes as there is room for. If these do not
    /// go on with those before them, all of these are written.
    ///
    /// # Safety
    ///
    /// The memory is that it was made for. What was made before can be written. The CPU has `V`.
    #[inline(always)]
    pub(super) unsafe fn room<V: Vector>(&mut self, to: *mut u8) -> *mut u8 {
        if !self.goes_on(to) {
            // SAFETY: by the contract of this function.
            unsafe { self.finish::<V>() };
            self.others = to.addr() % LINE;
            self.filled = self.others;
            self.line = to.wrapping_sub(self.others);
        }
        self.memory.wrapping_add(self.filled)
    }

    /// So many bytes have been made there.
    ///
    /// # Safety
    ///
    /// They have, there is room for them and they can be written where they belong, and so can what was
    /// made before. The CPU has `V`.
    #[inline(always)]
    pub(super) unsafe fn made<V: Vector>(&mut self, bytes: usize) {
        self.filled += bytes;
        if self.filled >= ENOUGH {
            // SAFETY: by the contract of this function.
            unsafe { self.stream::<V, false>() };
        }
    }

    /// The same, and all whole lines are streamed, so that memory needs room for no more than a line beside what is made,
    /// and one behind that. Few bytes each time are quicker so: what is left goes as a line, whatever it has.
    ///
    /// # Safety
    ///
    /// As there; and the memory has been written, up to a line behind what is made.
    #[inline(always)]
    pub(super) unsafe fn made_few<V: Vector>(&mut self, bytes: usize) {
        self.filled += bytes;
        // SAFETY: by the contract of this function.
        unsafe { self.stream::<V, true>() };
    }

    /// Writes all that is left.
    ///
    /// # Safety
    ///
    /// That of [`room`](WholeLines::room).
    #[inline(always)]
    pub(super) unsafe fn finish<V: Vector>(&mut self) {
        // SAFETY: by the contract of this function.
        unsafe { self.stream::<V, false>() };
        let from = self.memory.wrapping_add(self.others);
        let to = self.line.wrapping_add(self.others);
        // SAFETY: what has been made of a line, which can be written.
        unsafe { scalar::less_than_line(from, to, self.filled - self.others) };
        self.others = self.filled;
    }

    /// Streams whole lines, but for a first one that others have a part of.
    ///
    /// # Safety
    ///
    /// That of [`room`](WholeLines::room), and for `BY_LINES` of [`made_few`](WholeLines::made_few).
    #[inline(always)]
    unsafe fn stream<V: Vector, const BY_LINES: bool>(&mut self) {
        let (whole, left) = (self.filled / LINE, self.filled % LINE);
        if whole == 0 {
            return;
        }
        let mut at = 0;
        if self.others > 0 {
            let from = self.memory.wrapping_add(self.others);
            let to = self.line.wrapping_add(self.others);
            // SAFETY: what has been made of the first line.
            unsafe { scalar::less_than_line(from, to, LINE - self.others) };
            (at, self.others) = (LINE, 0);
        }
        for at in (at..whole * LINE).step_by(LINE) {
            let from = self.memory.wrapping_add(at);
            // SAFETY: a line that has been made, to one of the destination.
            unsafe { copy_line::<V, true>(from, self.line.wrapping_add(at)) };
        }
        let rest = self.memory.wrapping_add(whole * LINE);
        if BY_LINES {
            // SAFETY: what is left, and what else is in a line of the memory, to its beginning, a line at least before it.
            unsafe { copy_line::<V, false>(rest, self.memory) };
        } else {
            // SAFETY: what is left, to the beginning of the memory, which is a line at least before it.
            unsafe { scalar::less_than_line(rest, self.memory, left) };
        }
        self.line = self.line.wrapping_add(whole * LINE);
        self.filled = left;
    }
}
