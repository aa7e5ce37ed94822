//! Runs that go on with each other and begin within a line of the caches, streamed.
//!
//! Only whole lines can be streamed, but a row of an array with odd bounds, or any
//! part of an array in a buffer that is not aligned, begins and ends within one. The line in which
//! a run ends and the next one begins is made of both:
//!
//! ```text
//! lines in the destination   |       |       |       |       |
//! two runs                       aaaaaaaaaaaaaaBBBBBBBBBBBB
//! whole lines of them                |aaaaaaa|       |BBBBBBB|
//! and the one that they share                |aaaBBBB|
//! ```
//!
//! The first bytes of what goes on and on, and the last ones, are written in the ordinary way: the
//! rest of their lines belongs to others.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::mem::MaybeUninit;

use super::carry::{BETWEEN, CacheLines};
use super::vector::{LINE, Vector};
use super::walk::blocks;
use super::{BlockOp, Runs, Strip, scalar};

/// An op whose runs can be made a vector at a time, from any element on.
pub(super) trait RunOp {
    /// A vector of a run of a block, from that byte of the run on.
    ///
    /// # Safety
    ///
    /// The block can be read; it has that run, in which an element begins at `at` and a vector is
    /// left. The CPU has `V`.
    unsafe fn vector<V: Vector>(source: *const u8, run: usize, at: usize) -> V;
}

/// Which run of a strip it is. No array: what is stored in parts and loaded as a whole waits for all
/// that is on its way to memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number {
    pub(super) line: usize,
    pub(super) block: usize,
    pub(super) run: usize,
}

/// Runs of fewer bytes, parts of whose lines are others', are stored through the caches: each has to wait for these
/// lines, and what is streamed behind it does so too, which takes longer than streaming saves.
pub(super) const SHORT: usize = 1024;

/// In which direction one run goes on with another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Along {
    Lines,
    Blocks,
    Runs,
    Nothing,
}

/// The runs of a strip in the order of the destination, as far as they go on with each other.
pub(super) struct Joined {
    /// Those of a block.
    runs: Runs,
    /// The bytes of a run of the last line, if that is a shorter one.
    tail: usize,
    /// With that one.
    lines: usize,
    blocks: usize,
    /// The direction in which they go on first, and those of what is joined then.
    along: (Along, Along, Along),
    /// The bytes of what goes on and on, and how many of those behind it are fetched with its end.
    bytes: usize,
    between: usize,
}

impl Joined {
    /// `None` where no run of a strip goes on with another one, or they are shorter than a line,
    /// those of a last shorter line than so many bytes, or elements of so many bytes lie across
    /// lines.
    #[inline(always)]
    pub(super) fn new(
        strip: &Strip,
        op: BlockOp,
        element: usize,
        least_tail: usize,
        destination: *mut u8,
    ) -> Option<Joined> {
        let runs = strip.destination_runs(op)?;
        let tail = Strip { columns: strip.tail, ..*strip }.destination_runs(op)?.bytes;
        let lines = strip.lines + usize::from(tail > 0);
        let steps = [
            (Along::Lines, lines, strip.destination_line),
            (Along::Blocks, strip.blocks, strip.destination_step),
            (Along::Runs, runs.count, runs.stride),
        ];
        let (mut along, mut bytes) = ([Along::Nothing; 3], runs.bytes);
        for i in 0..along.len() {
            let next = steps
                .iter()
                .find(|&&(next, count, step)| count > 1 && step == bytes && !along.contains(&next));
            let Some(&(next, count, _)) = next else { break };
            bytes = match tail {
                1.. if i == 0 && next != Along::Lines => return None,
                1.. if i == 0 => strip.lines.checked_mul(bytes)?.checked_add(tail)?,
                _ => count.checked_mul(bytes)?,
            };
            along[i] = next;
        }
        let apart = steps.iter().filter(|(next, count, _)| *count > 1 && !along.contains(next));
        let between = apart.map(|(_, _, step)| step.wrapping_sub(bytes)).min();
        let places = steps.iter().fold(destination.addr(), |places, (_, _, step)| places | step);
        let is_whole = (places | runs.bytes | tail).is_multiple_of(element);
        let are_lines = runs.bytes >= LINE && (tail == 0 || tail >= least_tail);
        let any = along[0] != Along::Nothing;
        (any && is_whole && are_lines && strip.pad == 0).then_some(Joined {
            runs,
            tail,
            lines,
            blocks: strip.blocks,
            along: (along[0], along[1], along[2]),
            bytes,
            between: between.filter(|&between| between <= BETWEEN).unwrap_or_default(),
        })
    }

    /// The direction in which runs go on first.
    #[inline(always)]
    pub(super) fn along(&self) -> Along {
        self.along.0
    }

    /// The bytes of a run of the last line, if that is a shorter one.
    #[inline(always)]
    pub(super) fn tail(&self) -> usize {
        self.tail
    }

    /// The run in which ends, in the direction in which runs go on first, what begins with run
    /// `run` of the block of `first`.
    #[inline(always)]
    pub(super) fn last_of(&self, first: Number, run: usize) -> Number {
        match self.along.0 {
            Along::Lines => Number { line: self.lines - 1, run, ..first },
            Along::Blocks => Number { block: self.blocks - 1, run, ..first },
            Along::Runs | Along::Nothing => Number { run, ..first },
        }
    }

    /// Whether each run of a block goes on with the one before, as far as that has gone on itself.
    #[inline(always)]
    pub(super) fn runs_join(&self) -> bool {
        self.along.0 == Along::Runs || self.along.1 == Along::Runs
    }

    /// Whether a run is the first one, and the last one, in the direction in which they go on first.
    #[inline(always)]
    fn is_end(&self, Number { line, block, run }: Number) -> (bool, bool) {
        match self.along.0 {
            Along::Lines => (line == 0, line + 1 == self.lines),
            Along::Blocks => (block == 0, block + 1 == self.blocks),
            Along::Runs | Along::Nothing => (run == 0, run + 1 == self.runs.count),
        }
    }

    /// The run that ends where one begins.
    #[inline(always)]
    pub(super) fn before(&self, number: Number) -> Option<Number> {
        let Number { mut line, mut block, mut run } = number;
        for along in [self.along.0, self.along.1, self.along.2] {
            match along {
                Along::Lines if line > 0 => return Some(Number { line: line - 1, block, run }),
                Along::Blocks if block > 0 => return Some(Number { line, block: block - 1, run }),
                Along::Runs if run > 0 => return Some(Number { line, block, run: run - 1 }),
                Along::Lines => line = self.lines - 1,
                Along::Blocks => block = self.blocks - 1,
                Along::Runs => run = self.runs.count - 1,
                Along::Nothing => return None,
            }
        }
        None
    }

    /// The run that begins where one ends.
    #[inline(always)]
    pub(super) fn behind(&self, number: Number) -> Option<Number> {
        let Number { mut line, mut block, mut run } = number;
        let is_last = (line + 1 == self.lines, block + 1 == self.blocks);
        for along in [self.along.0, self.along.1, self.along.2] {
            match along {
                Along::Lines if !is_last.0 => return Some(Number { line: line + 1, block, run }),
                Along::Blocks if !is_last.1 => return Some(Number { line, block: block + 1, run }),
                Along::Runs if run + 1 < self.runs.count => {
                    return Some(Number { line, block, run: run + 1 });
                }
                Along::Lines => line = 0,
                Along::Blocks => block = 0,
                Along::Runs => run = 0,
                Along::Nothing => return None,
            }
        }
        None
    }

    /// How many bytes it has.
    #[inline(always)]
    fn bytes_of(&self, number: Number) -> usize {
        if self.tail > 0 && number.line + 1 == self.lines { self.tail } else { self.runs.bytes }
    }

    /// Does a strip.
    ///
    /// # Safety
    ///
    /// By the contract of [`kernel`](super) for the strip that this was made for and the op of
    /// `R`, from the `destination` that it was made for; a last line has had to have a line of the
    /// caches. The CPU has `V`.
    #[inline(always)]
    pub(super) unsafe fn run<R: RunOp, V: Vector>(
        &self,
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
    ) {
        debug_assert!(self.tail == 0 || self.tail >= LINE, "{} bytes", self.tail);
        let Runs { count, stride, bytes } = self.runs;
        let strip = &Strip { lines: self.lines, ..*strip };
        let mut places = blocks::<true>(strip, &[], count * bytes);
        // From the block of a run to that of the next one, and which one of it that is.
        let (step, next_run) = match self.along.0 {
            Along::Lines => (strip.source_line, 0),
            Along::Blocks => (strip.source_step, 0),
            Along::Runs | Along::Nothing => (0, 1),
        };
        for line in 0..strip.lines {
            for block in 0..strip.blocks {
                let Some(place) = places.next() else { return };
                let (from, to) = place.of(source, destination);
                let mut fetched = from;
                for run in 0..count {
                    let number = Number { line, block, run };
                    let (is_first, is_last) = self.is_end(number);
                    let to = to.wrapping_add(run.wrapping_mul(stride));
                    let bytes = self.bytes_of(number);
                    let within = to.addr() % LINE;
                    let mut at = 0;
                    if within > 0 {
                        at = LINE - within;
                        places.ahead.fetch_lines::<V>(1, fetched);
                        fetched = fetched.wrapping_add(LINE);
                        if is_first {
                            // SAFETY: a run that is the first one in its direction.
                            unsafe { self.begin::<R, V>(strip, number, source, destination) };
                        } else {
                            let ended = (from.wrapping_sub(step), run - next_run);
                            let line = to.wrapping_sub(within);
                            // SAFETY: the line in which the one before it ends and it begins.
                            unsafe {
                                share::<R, V>((ended, self.runs.bytes), (from, run), within, line)
                            };
                        }
                    }
                    while at + LINE <= bytes {
                        places.ahead.fetch_lines::<V>(1, fetched);
                        fetched = fetched.wrapping_add(LINE);
                        for part in (0..LINE).step_by(V::BYTES) {
                            // SAFETY: a vector within the run.
                            let vector = unsafe { R::vector::<V>(from, run, at + part) };
                            // SAFETY: where it belongs, in a line.
                            unsafe { vector.stream(to.wrapping_add(at + part)) };
                        }
                        at += LINE;
                    }
                    if is_last && at < bytes {
                        // SAFETY: a run that is the last one in its direction.
                        unsafe { self.end::<R, V>(strip, number, source, destination) };
                    }
                }
            }
        }
    }

    /// Writes the line in which a run begins that is the first one in its direction, if what ends
    /// there has come before; a part of it, if nothing does.
    ///
    /// # Safety
    ///
    /// That of [`run`](Joined::run); and the run is one of the strip, and begins within a line.
    #[inline(always)]
    unsafe fn begin<R: RunOp, V: Vector>(
        &self,
        strip: &Strip,
        number: Number,
        source: *const u8,
        destination: *mut u8,
    ) {
        let (from, to) = self.block(strip, number, source, destination);
        let within = to.addr() % LINE;
        match self.before(number) {
            // The one that comes later makes the line.
            Some(before) if before < number => {
                let (ended, _) = self.block(strip, before, source, destination);
                let ended = ((ended, before.run), self.bytes_of(before));
                let line = to.wrapping_sub(within);
                // SAFETY: the line in which the one ends and the other begins.
                unsafe { share::<R, V>(ended, (from, number.run), within, line) };
            }
            Some(_) => {}
            None => {
                self.fetch_ends::<V>(to);
                // SAFETY: the first bytes of a run, to where they belong.
                unsafe { part::<R, V>((from, number.run, 0), 0, LINE - within, to) };
            }
        }
    }

    /// Writes the line in which a run ends that is the last one in its direction, if what begins
    /// there has come before; a part of it, if nothing does.
    ///
    /// # Safety
    ///
    /// That of [`run`](Joined::run); and the run is one of the strip, and ends within a line.
    #[inline(always)]
    unsafe fn end<R: RunOp, V: Vector>(
        &self,
        strip: &Strip,
        number: Number,
        source: *const u8,
        destination: *mut u8,
    ) {
        let (from, to) = self.block(strip, number, source, destination);
        let bytes = self.bytes_of(number);
        let end = to.wrapping_add(bytes);
        let within = end.addr() % LINE;
        let line = end.wrapping_sub(within);
        match self.behind(number) {
            Some(behind) if behind < number => {
                let (begun, _) = self.block(strip, behind, source, destination);
                let ended = ((from, number.run), bytes);
                // SAFETY: the line in which the one ends and the other begins.
                unsafe { share::<R, V>(ended, (begun, behind.run), within, line) };
            }
            Some(_) => {}
            None => {
                let last = (from, number.run, bytes - LINE);
                // SAFETY: the last bytes of a run, to where they belong.
                unsafe { part::<R, V>(last, LINE - within, within, line) };
            }
        }
    }

    /// Where the block of a run is read, and the run written.
    #[inline(always)]
    pub(super) fn block(
        &self,
        strip: &Strip,
        number: Number,
        source: *const u8,
        destination: *mut u8,
    ) -> (*const u8, *mut u8) {
        let (from, to) = strip.place(number.line, number.block).of(source, destination);
        (from, to.wrapping_add(number.run.wrapping_mul(self.runs.stride)))
    }

    /// Fetches the lines in which what goes on and on from there begins and ends, and what lies
    /// between two such if that is little: mostly it is written through the caches, and what is
    /// streamed behind it has to wait for these lines.
    #[inline(always)]
    pub(super) fn fetch_ends<V: Vector>(&self, start: *mut u8) {
        V::prefetch::<2>(start);
        let end = start.wrapping_add(self.bytes);
        for at in (0..=self.between).step_by(LINE) {
            V::prefetch::<2>(end.wrapping_add(at));
        }
    }
}

/// Writes the line in which a run of so many bytes ends and another one begins, streaming:
/// `within` bytes of the one, then some of the other.
///
/// # Safety
///
/// The blocks can be read and have these runs, of a line or more; the line can be written. The CPU
/// has `V`.
#[inline(always)]
unsafe fn share<R: RunOp, V: Vector>(
    ((ended, ended_run), bytes): ((*const u8, usize), usize),
    (begun, begun_run): (*const u8, usize),
    within: usize,
    line: *mut u8,
) {
    for part in (0..LINE).step_by(V::BYTES) {
        let vector = if part + V::BYTES <= within {
            // SAFETY: a vector before the end.
            unsafe { R::vector::<V>(ended, ended_run, bytes - within + part) }
        } else if part >= within {
            // SAFETY: a vector behind it.
            unsafe { R::vector::<V>(begun, begun_run, part - within) }
        } else {
            // SAFETY: the last vector of the one.
            let last = unsafe { R::vector::<V>(ended, ended_run, bytes - V::BYTES) };
            // SAFETY: the first one of the other.
            let first = unsafe { R::vector::<V>(begun, begun_run, 0) };
            last.join(first, within - part)
        };
        // SAFETY: a part of the line.
        unsafe { vector.stream(line.wrapping_add(part)) };
    }
}

/// Writes some bytes of a run in the ordinary way, `count` from byte `skip` on of the line of it
/// that begins at byte `at`.
///
/// # Safety
///
/// The block can be read; it has that run, in which an element begins at `at` and a line is left.
/// That many bytes can be written, and are no more than are left of the line. The CPU has `V`.
#[inline(always)]
unsafe fn part<R: RunOp, V: Vector>(
    (source, run, at): (*const u8, usize, usize),
    skip: usize,
    count: usize,
    to: *mut u8,
) {
    let mut memory = MaybeUninit::<CacheLines<1>>::uninit();
    let memory = memory.as_mut_ptr().cast::<u8>();
    for part in (0..LINE).step_by(V::BYTES) {
        // SAFETY: a vector of the line.
        let vector = unsafe { R::vector::<V>(source, run, at + part) };
        // SAFETY: memory for a line.
        unsafe { vector.store(memory.wrapping_add(part)) };
    }
    // SAFETY: the bytes of the line that belong there.
    unsafe { scalar::run(memory.wrapping_add(skip), to, count) };
}
