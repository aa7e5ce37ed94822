//! Rows that go on from block to block and are made several at a time, streamed.
//!
//! Words that hold an element of each of some rows are taken apart a line of every row at a time.
//! Where the rows do not begin at lines of the caches, what is streamed is made of two lines of a
//! row, the one made before and the one just made, so that each is made once:
//!
//! ```text
//! lines in the destination    |       |       |       |
//! a row, as it is made            aaaaaaaaBBBBBBBBcc
//! whole lines of it                   |aaaaBBBB|
//! and with the row behind it                   |BBBBccDD|
//! ```
//!
//! The last columns, which may be fewer than a line has, are made with anything behind them, and
//! written with the first line of the next row, which is made for that once more.
//! [`joined`](super::joined) does this for any runs, and makes each line of each of them for itself.

#![allow(unsafe_code, reason = "streaming stores; docs/architecture.md")]

use std::mem::MaybeUninit;
use std::ops::Range;

use super::carry::CacheLines;
use super::joined::{Along, Joined, Number};
use super::vector::{LINE, Vector};
use super::walk::Ahead;
use super::{BlockOp, Runs, Strip, scalar};

/// The most rows that are made side by side: as many vectors as these have lines under way fit
/// into registers.
pub(super) const MOST: usize = 4;

/// So many bytes of a row are made, then as many of the other rows. With fewer, the line before them
/// is made a second time more often; with more, what was fetched into L1 is gone when
/// its turn comes.
const AT_ONCE: usize = 1024;

/// An op whose rows are made side by side.
pub(super) trait RowsOp<const WAYS: usize> {
    /// The bytes of an element.
    const ELEMENT: usize;

    /// A vector of each row.
    ///
    /// # Safety
    ///
    /// Its words can be read. The CPU has `V`.
    unsafe fn vectors<V: Vector>(source: *const u8) -> [V; WAYS];

    /// The last elements of each row, so many bytes, which are fewer than a vector has, and
    /// anything behind them.
    ///
    /// # Safety
    ///
    /// Their words can be read, and as many bytes as a vector has before the end of these. The CPU
    /// has `V`.
    unsafe fn ends<V: Vector>(source: *const u8, bytes: usize) -> [V; WAYS];
}

/// The rows of a strip.
pub(super) struct JoinedRows {
    joined: Joined,
    /// Those of a block.
    runs: Runs,
    /// The blocks that a row goes on through which have whole lines of it, how far it is from one
    /// to the next in the source, and the bytes that a row has in each.
    whole: usize,
    step: usize,
    bytes: usize,
    /// What a row has in the block behind them, if there is one.
    rest: usize,
}

/// What is fetched meanwhile.
struct Fetching {
    ahead: Ahead,
    /// Where there is nothing between blocks: what is ahead of this comes next. Memory had better be
    /// asked in the order of its addresses, in which rows are not made.
    next: Option<*const u8>,
}

impl Fetching {
    /// What to fetch ahead of, while so many lines are read from there on.
    #[inline(always)]
    fn take(&mut self, lines: usize, from: *const u8) -> *const u8 {
        let Some(next) = self.next else { return from };
        self.next = Some(next.wrapping_add(lines * LINE));
        next
    }
}

impl JoinedRows {
    /// `None` where [`Joined::new`] is, and where rows do not go on from block to block by whole
    /// lines of the caches.
    #[inline(always)]
    pub(super) fn new<const WAYS: usize>(
        strip: &Strip,
        op: BlockOp,
        element: usize,
        destination: *mut u8,
    ) -> Option<JoinedRows> {
        // A last line has words for a vector.
        let joined = Joined::new(strip, op, element, LINE / WAYS, destination)?;
        let runs = strip.destination_runs(op)?;
        let bytes = runs.bytes;
        let (whole, step, rest) = match joined.along() {
            Along::Lines => (strip.lines, strip.source_line, joined.tail()),
            Along::Blocks => (strip.blocks, strip.source_step, 0),
            Along::Runs | Along::Nothing => return None,
        };
        let are_lines = bytes.is_multiple_of(LINE);
        are_lines.then_some(JoinedRows { joined, runs, whole, step, bytes, rest })
    }

    /// Does the strip.
    ///
    /// # Safety
    ///
    /// By the contract of [`kernel`](super) for the strip that this was made for and the op of
    /// `R`, from the `destination` that it was made for. The CPU has `V`, whose vectors are lines of
    /// the caches.
    #[inline(always)]
    pub(super) unsafe fn run<R: RowsOp<WAYS>, V: Vector, const WAYS: usize>(
        &self,
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
    ) {
        debug_assert_eq!(V::BYTES, LINE, "what a row is made of");
        let at_once = (AT_ONCE / self.bytes).clamp(1, self.whole);
        // The same place of the blocks that come after these, or of later ones.
        let ahead = Ahead::by_steps(strip, self.step.wrapping_mul(at_once));
        let by_lines = self.joined.along() == Along::Lines;
        let (lines, blocks) = if by_lines { (1, strip.blocks) } else { (strip.lines, 1) };
        let is_dense = lines * blocks * self.bytes * WAYS == self.step;
        for first in (0..self.whole).step_by(at_once) {
            let among = first..self.whole.min(first + at_once);
            let next = is_dense.then_some(source.wrapping_add(first.wrapping_mul(self.step)));
            let mut fetching = Fetching { ahead, next };
            for line in 0..lines {
                for block in 0..blocks {
                    let (row, among) = (Number { line, block, run: 0 }, among.clone());
                    // SAFETY: some of the blocks of rows of the strip.
                    unsafe {
                        self.stretch::<R, V, WAYS>(
                            strip,
                            row,
                            among,
                            &mut fetching,
                            (source, destination),
                        )
                    };
                }
            }
        }
    }

    /// Does some of the blocks that rows go on through: `WAYS` rows, or those that there are, from
    /// that one on. With the first one the beginnings of the rows, with the last one their ends.
    ///
    /// # Safety
    ///
    /// That of [`run`](JoinedRows::run); the strip has these rows, and there are some such blocks,
    /// all of them among the `whole` ones.
    #[inline(always)]
    unsafe fn stretch<R: RowsOp<WAYS>, V: Vector, const WAYS: usize>(
        &self,
        strip: &Strip,
        row: Number,
        among: Range<usize>,
        fetching: &mut Fetching,
        (source, destination): (*const u8, *mut u8),
    ) {
        let (from, to) = self.joined.block(strip, row, source, destination);
        let mut before = if let Some(ended) = among.start.checked_sub(1) {
            let ended = from.wrapping_add(ended.wrapping_mul(self.step));
            // SAFETY: the words of the last line of the block before, of each row.
            unsafe { R::vectors::<V>(ended.wrapping_add((self.bytes - LINE) * WAYS)) }
        } else {
            // SAFETY: the rows.
            unsafe { self.begin::<R, V, WAYS>(row, fetching, from, to) }
        };
        let is_last = among.end == self.whole;
        for block in among.start..among.end + usize::from(is_last) {
            let (start, whole) = (block * self.bytes, self.rest - self.rest % LINE);
            let end = start + if block < self.whole { self.bytes } else { whole };
            let from = from.wrapping_add(block.wrapping_mul(self.step));
            // The first line of the rows has been made.
            let mut at = if block == 0 { LINE } else { start };
            // What goes to one row had better be written at once.
            while at < end {
                let (from, to) = (from.wrapping_add((at - start) * WAYS), to.wrapping_add(at));
                let left = (end - at) / LINE;
                let lines;
                (before, lines) = if WAYS == 2 && left >= 4 {
                    // SAFETY: so many lines of each row, and those before them.
                    (unsafe { self.lines::<R, V, WAYS, 4>(before, fetching, from, to) }, 4)
                } else if left >= 2 {
                    // SAFETY: two lines.
                    (unsafe { self.lines::<R, V, WAYS, 2>(before, fetching, from, to) }, 2)
                } else {
                    // SAFETY: one line.
                    (unsafe { self.lines::<R, V, WAYS, 1>(before, fetching, from, to) }, 1)
                };
                at += lines * LINE;
            }
        }
        if is_last {
            // SAFETY: the rows.
            unsafe { self.end::<R, V, WAYS>(strip, row, fetching, (source, destination)) };
        }
    }

    /// Writes so many lines of each row, with what is left of those `before`, and returns the last.
    ///
    /// # Safety
    ///
    /// Their words can be read. So many lines of each row are left at `to`, which is a line or more
    /// behind its beginning and where an element begins; the last one before it is that of `before`.
    /// The CPU has `V`, which is a line.
    #[inline(always)]
    unsafe fn lines<R: RowsOp<WAYS>, V: Vector, const WAYS: usize, const LINES: usize>(
        &self,
        before: [V; WAYS],
        fetching: &mut Fetching,
        from: *const u8,
        to: *mut u8,
    ) -> [V; WAYS] {
        let fetched = fetching.take(LINES * WAYS, from);
        let ahead = fetching.ahead;
        let mut made = [before; LINES];
        for (line, made) in made.iter_mut().enumerate() {
            let from = from.wrapping_add(line * LINE * WAYS);
            // SAFETY: the words of a line of each row.
            *made = unsafe { R::vectors::<V>(from) };
        }
        // No loop that ends early: it is not unrolled, and then the vectors are in memory.
        for run in 0..WAYS {
            if run < self.runs.count {
                let to = to.wrapping_add(run.wrapping_mul(self.runs.stride));
                // Whole elements, which the compiler cannot know.
                let within = to.addr() % LINE / R::ELEMENT * R::ELEMENT;
                let mut before = before[run];
                for (line, made) in made.iter().enumerate() {
                    let to = to.wrapping_sub(within).wrapping_add(line * LINE);
                    // SAFETY: a line of the row, and of the caches.
                    unsafe { before.join(made[run], within).stream(to) };
                    before = made[run];
                    // Little by little: not all at once.
                    ahead.fetch_lines::<V>(1, fetched.wrapping_add((run * LINES + line) * LINE));
                }
            }
        }
        made[LINES - 1]
    }

    /// Writes the first lines of rows, as far as these do not begin within one, and returns them.
    ///
    /// # Safety
    ///
    /// The rows, of which that one is the first, are read and written there, and have a line or more.
    /// The CPU has `V`, which is a line.
    #[inline(always)]
    unsafe fn begin<R: RowsOp<WAYS>, V: Vector, const WAYS: usize>(
        &self,
        row: Number,
        fetching: &mut Fetching,
        from: *const u8,
        to: *mut u8,
    ) -> [V; WAYS] {
        let Runs { count, stride, .. } = self.runs;
        // SAFETY: the words of the first line of each row.
        let firsts = unsafe { R::vectors::<V>(from) };
        let fetched = fetching.take(WAYS, from);
        fetching.ahead.fetch_lines::<V>(WAYS, fetched);
        for (run, &first) in firsts.iter().enumerate() {
            if run < count {
                let to = to.wrapping_add(run.wrapping_mul(stride));
                let within = to.addr() % LINE;
                let goes_on = run > 0 && self.joined.runs_join();
                if within == 0 {
                    // SAFETY: a line of the row, and of the caches.
                    unsafe { first.stream(to) };
                } else if !goes_on && self.joined.before(Number { run, ..row }).is_none() {
                    self.joined.fetch_ends::<V>(to);
                    // SAFETY: the first bytes of the row, as many as are left of the line.
                    unsafe { part(first, 0, LINE - within, to) };
                }
            }
        }
        firsts
    }

    /// Writes what is left of rows behind their last whole lines. These are made again: were they
    /// kept for this, they would be stored to the stack time and again among the lines that are streamed.
    ///
    /// # Safety
    ///
    /// That of [`stretch`](JoinedRows::stretch).
    #[inline(always)]
    unsafe fn end<R: RowsOp<WAYS>, V: Vector, const WAYS: usize>(
        &self,
        strip: &Strip,
        row: Number,
        fetching: &mut Fetching,
        (source, destination): (*const u8, *mut u8),
    ) {
        let Runs { count, stride, .. } = self.runs;
        let (from, to) = self.joined.block(strip, row, source, destination);
        let left = self.rest % LINE;
        let last_block = from.wrapping_add(self.whole.wrapping_mul(self.step));
        let ended = match self.rest.checked_sub(left + LINE) {
            Some(at) => last_block.wrapping_add(at * WAYS),
            None => last_block.wrapping_sub(self.step).wrapping_add((self.bytes - LINE) * WAYS),
        };
        // SAFETY: the words of the last whole line of each row, which has one at least.
        let before = unsafe { R::vectors::<V>(ended) };
        let mut last = before;
        if left > 0 {
            let from = last_block.wrapping_add((self.rest - left) * WAYS);
            // SAFETY: the words of the last elements, of a block that has those of a vector.
            last = unsafe { R::ends::<V>(from, left) };
            // With those that a block has behind them.
            let lines = (self.bytes - (self.rest - left)) / LINE * WAYS;
            let fetched = fetching.take(lines, from);
            fetching.ahead.fetch_lines::<V>(lines, fetched);
        }
        // SAFETY: the words of the first line of each row.
        let firsts = unsafe { R::vectors::<V>(from) };
        let row_bytes = self.whole * self.bytes + self.rest;
        for run in 0..WAYS {
            if run < count {
                let end = to.wrapping_add(run.wrapping_mul(stride)).wrapping_add(row_bytes);
                let within = end.wrapping_sub(left).addr() % LINE;
                if within + left >= LINE {
                    let line = before[run].join(last[run], within);
                    // SAFETY: a line of the row, and of the caches.
                    unsafe { line.stream(end.wrapping_sub(left + within)) };
                }
                let over = end.addr() % LINE;
                if over == 0 {
                    continue;
                }
                let mut ended = before[run];
                if left > 0 {
                    ended = ended.join(last[run], LINE - left);
                }
                let line = end.wrapping_sub(over);
                let first = if run + 1 < count.min(WAYS) && self.joined.runs_join() {
                    firsts[(run + 1) % WAYS]
                } else if let Some(next) = self.joined.behind(self.joined.last_of(row, run)) {
                    let (from, _) = self.joined.block(strip, next, source, destination);
                    // SAFETY: the words of the first line of other rows.
                    let firsts = unsafe { R::vectors::<V>(from) };
                    firsts[next.run % WAYS]
                } else {
                    // SAFETY: the last bytes of the row.
                    unsafe { part(ended, LINE - over, over, line) };
                    continue;
                };
                // SAFETY: the line in which the one row ends and the other begins.
                unsafe { ended.join(first, over).stream(line) };
            }
        }
    }
}

/// Writes some bytes of a line in the ordinary way, `count` from byte `skip` on.
///
/// # Safety
///
/// That many bytes can be written, and are no more than are left of the line. The CPU has `V`,
/// which is a line.
#[inline(always)]
unsafe fn part<V: Vector>(vector: V, skip: usize, count: usize, to: *mut u8) {
    let mut memory = MaybeUninit::<CacheLines<1>>::uninit();
    let memory = memory.as_mut_ptr().cast::<u8>();
    // SAFETY: memory for a line.
    unsafe { vector.store(memory) };
    // SAFETY: the bytes of the line that belong there.
    unsafe { scalar::run(memory.wrapping_add(skip), to, count) };
}
