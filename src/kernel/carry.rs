//! Runs that do not begin where a line of the caches does, past the caches.
//!
//! Only whole lines can be written past the caches, but a row of an array with odd bounds,
//! or any part of an array in a buffer that is not aligned, begins and ends within one.
//! What a block writes then ends within a line that another block goes on with, for which
//! it is kept.
//!
//! Where lines can be made one by one ([`Lines`]), those within a run go to their places,
//! and the ones that two runs share are made in memory. Otherwise ([`Make`]) blocks
//! are made in memory that the nearest cache holds, each run as far from the beginning of
//! a line as where it belongs. From there whole lines go to their places, and what is left
//! of the last one is kept for the run that goes on there:
//!
//! ```text
//! lines in the destination   |       |       |       |       |
//! two runs                       aaaaaaaaaaaaBBBBBBBBBBBB
//! the first is made as       |   aaaa|aaaaaaaa|
//! the second one as                           |BBBB|BBBBBBBB|
//! ```
//!
//! The first bytes of what goes on and on, and the last ones, are written in the ordinary
//! way: the rest of their lines belongs to others.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::mem::MaybeUninit;

use super::vector::{LINE, Vector, put};
use super::walk::{Blocks, blocks};
use super::{BlockOp, Place, Runs, Strip, scalar};

/// The lines of memory that blocks are made in.
const MADE: usize = 128;

/// So many lines in which runs begin are kept, and so many in which they end, until others
/// go on with them. With `MADE`, and with a line before and one behind each of the latter,
/// that is up to 40 KiB of the stack.
const KEPT: usize = 128;

/// So many bytes between two runs are little, and fetched.
const BETWEEN: usize = 512;

/// Lines of the caches.
#[repr(C, align(64))]
pub(super) struct CacheLines<const COUNT: usize>(pub(super) [[u8; LINE]; COUNT]);

/// An op whose blocks can be made apart from where they belong.
pub(super) trait Make {
    /// Makes one block of a strip.
    ///
    /// # Safety
    ///
    /// A block of the strip can be read and written there; what it writes is whole lines, and
    /// its columns are those of a vector at least. The CPU has `V`.
    unsafe fn make<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8);
}

/// An op whose runs can be made line by line, from any element on.
pub(super) trait Lines {
    /// Makes a line of a block: that which begins so many bytes behind the beginning of one of
    /// its runs. `PAST` writes it past the caches; otherwise `to` may be anywhere.
    ///
    /// # Safety
    ///
    /// The block can be read; it has that run, in which an element begins at `at` and a line is
    /// left. As many bytes can be written, and for `PAST` they are a line of the caches. The CPU
    /// has `V`.
    unsafe fn line<V: Vector, const PAST: bool>(
        source: *const u8,
        run: usize,
        at: usize,
        to: *mut u8,
    );
}

/// How blocks lie in the memory that they are made in.
pub(super) struct Carry {
    /// What a block reads and writes.
    read: Runs,
    written: Runs,
    /// Whether the blocks of a line go on with each other's runs; otherwise the lines do.
    is_joined: bool,
    /// Where blocks do: whether the lines go on with each other as well.
    lines_join: bool,
    /// How many blocks are made at a time.
    group: usize,
    /// From a run to the next in memory, and from a block to the next.
    run_step: usize,
    block_step: usize,
    /// What the op takes for the distance of its rows there.
    row_stride: usize,
    /// Whether runs are rows of the op, not all of them together.
    are_rows: bool,
}

impl Carry {
    /// `None` where the runs of a strip do not go on with each other by whole lines, or
    /// there is no room for a block.
    pub(super) fn new(strip: &Strip, op: BlockOp) -> Option<Carry> {
        let (read, op_rows) = (strip.source_runs(op)?, strip.destination_runs(op)?);
        let rows_join = op_rows.count > 1 && op_rows.stride == op_rows.bytes;
        let written = if rows_join {
            Runs { count: 1, stride: 0, bytes: op_rows.count.checked_mul(op_rows.bytes)? }
        } else {
            op_rows
        };
        let Runs { count, stride, bytes } = written;
        let is_joined = strip.blocks > 1 && strip.destination_step == bytes;
        let any_join = is_joined || strip.lines > 1 && strip.destination_line == bytes;
        let is_whole = bytes > 0 && bytes.is_multiple_of(LINE) && strip.pad == 0;
        if !any_join || !is_whole || bytes > MADE * LINE || !(1..=KEPT).contains(&count) {
            return None;
        }
        let lines_join =
            is_joined && Some(strip.destination_line) == bytes.checked_mul(strip.blocks);
        // Between two runs there is room for a line before the second one, and for as much
        // as that is further from the beginning of a line than the first.
        let between = LINE + stride % LINE;
        let room = (MADE - 1) * LINE;
        let (group, block_step) = if is_joined {
            ((room / count).checked_sub(between)? / bytes, bytes)
        } else {
            let block = (count * (bytes + between)).next_multiple_of(LINE);
            let step = block + strip.destination_step % LINE;
            (room / step, step)
        };
        let group = group.min(strip.blocks);
        let run_step = between + if is_joined { group * bytes } else { bytes };
        let row_stride = match op_rows.count {
            1 => strip.row_stride,
            _ if rows_join => op_rows.bytes,
            _ => run_step,
        };
        (group > 0).then_some(Carry {
            read,
            written,
            is_joined,
            lines_join,
            group,
            run_step,
            block_step,
            row_stride,
            are_rows: !rows_join,
        })
    }

    /// Does a strip.
    ///
    /// # Safety
    ///
    /// By the contract of [`kernel`](super) for the strip that this was made for and the op
    /// of `M`, whose columns are those of a vector at least: bytes that are whole lines are
    /// that. The CPU has `V`.
    #[inline(always)]
    pub(super) unsafe fn run<M: Make, V: Vector>(
        &self,
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
    ) {
        for (part, place) in self.parts(strip) {
            let (source, destination) = place.of(source, destination);
            // SAFETY: some of the blocks of each line, or all.
            unsafe { self.run_part::<M, V>(&part, source, destination) };
        }
    }

    /// A strip in parts that have no more blocks in a line than lines can be kept for.
    #[inline(always)]
    fn parts(&self, strip: &Strip) -> impl Iterator<Item = (Strip, Place)> {
        let strip = *strip;
        let at_once = if self.is_joined { strip.blocks } else { KEPT / self.written.count };
        (0..strip.blocks).step_by(at_once.max(1)).map(move |first| {
            let blocks = at_once.min(strip.blocks - first);
            (Strip { blocks, ..strip }, strip.place(0, first))
        })
    }

    /// Whether [`Lines`] can do it for elements of so many bytes: they do not lie across lines,
    /// and runs are rows.
    #[inline(always)]
    pub(super) fn is_by_lines(&self, strip: &Strip, element: usize, destination: *mut u8) -> bool {
        let steps = strip.destination_line | strip.destination_step | self.written.stride;
        self.are_rows && (destination.addr() | steps).is_multiple_of(element)
    }

    /// Whether that is less work: the lines at the ends of a run are made twice.
    #[inline(always)]
    pub(super) fn has_long_runs(&self) -> bool {
        self.written.bytes >= 4 * LINE
    }

    /// Does a strip whose runs can be made line by line.
    ///
    /// # Safety
    ///
    /// By the contract of [`kernel`](super) for the strip that this was made for and the op
    /// of `L`, and [`is_by_lines`](Carry::is_by_lines) is true of its elements. The CPU has `V`.
    #[inline(always)]
    pub(super) unsafe fn run_by_lines<L: Lines, V: Vector>(
        &self,
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
    ) {
        for (part, place) in self.parts(strip) {
            let (source, destination) = place.of(source, destination);
            // SAFETY: some of the blocks of each line, or all.
            unsafe { self.run_part_by_lines::<L, V>(&part, source, destination) };
        }
    }

    /// The same for no more blocks in a line than lines can be kept for.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    unsafe fn run_part_by_lines<L: Lines, V: Vector>(
        &self,
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
    ) {
        let Runs { count, stride, bytes } = self.written;
        let mut first_lines = MaybeUninit::<CacheLines<KEPT>>::uninit();
        // Three for each run: the line in which it goes on, and room before and behind it.
        let mut ends = MaybeUninit::<CacheLines<{ 3 * KEPT }>>::uninit();
        let ends = ends.as_mut_ptr().cast::<u8>();
        let kept = Kept {
            first_lines: first_lines.as_mut_ptr().cast(),
            last_lines: ends.wrapping_add(LINE),
            last_step: 3 * LINE,
        };
        let runs = if self.is_joined { count } else { count * strip.blocks };
        for run in 0..runs {
            // SAFETY: a line of one of no more runs than there is room for.
            unsafe { scalar::fill(kept.last_line(run), 0, LINE) };
        }

        let at_once = if self.is_joined { 1 } else { strip.blocks };
        let mut ahead = blocks::<true>(strip, &[], count * bytes);
        let mut begins = 0;
        for line in 0..strip.lines {
            for first in (0..strip.blocks).step_by(at_once.max(1)) {
                let goes_on = line > begins || self.is_joined && first > 0;
                if line == begins && first == 0 {
                    self.fetch_ends::<V>(strip, strip.place(line, 0).of(source, destination).1);
                }
                // The first bytes of all runs before the first line of any is needed: what has
                // just been stored in parts cannot be loaded as a whole before the core has
                // finished with it.
                for block in 0..at_once {
                    let (from, to) = strip.place(line, first + block).of(source, destination);
                    for row in 0..count {
                        let within = to.wrapping_add(row.wrapping_mul(stride)).addr() % LINE;
                        let last_line = kept.last_line(block * count + row);
                        // SAFETY: the first bytes of a run, to behind what is kept of the line.
                        unsafe {
                            L::line::<V, false>(from, row, 0, last_line.wrapping_add(within))
                        };
                    }
                }
                for block in 0..at_once {
                    let Some(place) = ahead.next() else { return };
                    let (from, to) = place.of(source, destination);
                    let mut fetched = from;
                    for row in 0..count {
                        let to = to.wrapping_add(row.wrapping_mul(stride));
                        let run = block * count + row;
                        let (within, last_line) = (to.addr() % LINE, kept.last_line(run));
                        ahead.ahead.fetch::<V, true>(fetched);
                        if goes_on || within == 0 {
                            // SAFETY: a whole line.
                            unsafe { copy_line::<V, true>(last_line, line_of(to)) };
                        } else {
                            // SAFETY: the line in which a run begins.
                            unsafe { copy_line::<V, false>(last_line, kept.first_line(run)) };
                        }
                        let mut at = LINE - within;
                        while at + LINE <= bytes {
                            fetched = fetched.wrapping_add(LINE);
                            ahead.ahead.fetch::<V, true>(fetched);
                            // SAFETY: a line within the run, to where it belongs.
                            unsafe { L::line::<V, true>(from, row, at, to.wrapping_add(at)) };
                            at += LINE;
                        }
                        fetched = fetched.wrapping_add(LINE);
                        if within > 0 {
                            let end = last_line.wrapping_add(within).wrapping_sub(LINE);
                            // SAFETY: the last bytes of the run, so that those of the line in
                            // which it ends are where that one begins.
                            unsafe { L::line::<V, false>(from, row, bytes - LINE, end) };
                        }
                    }
                }
            }
            if line + 1 == strip.lines || self.is_joined && !self.lines_join {
                let (_, to) = strip.place(begins, 0).of(source, destination);
                // SAFETY: the ends of all runs since then.
                unsafe { self.finish::<V>(strip, to, line + 1 - begins, &kept) };
                begins = line + 1;
            }
        }
    }

    /// The same for no more blocks in a line than lines can be kept for.
    ///
    /// # Safety
    ///
    /// That of [`run`](Carry::run).
    #[inline(always)]
    unsafe fn run_part<M: Make, V: Vector>(
        &self,
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
    ) {
        let Runs { count, bytes, .. } = self.written;
        let mut memory = MaybeUninit::<CacheLines<MADE>>::uninit();
        let (mut first_lines, mut last_lines) =
            (MaybeUninit::<CacheLines<KEPT>>::uninit(), MaybeUninit::<CacheLines<KEPT>>::uninit());
        let memory = memory.as_mut_ptr().cast::<u8>();
        let kept = Kept {
            first_lines: first_lines.as_mut_ptr().cast(),
            last_lines: last_lines.as_mut_ptr().cast(),
            last_step: LINE,
        };
        let used =
            if self.is_joined { count * self.run_step } else { self.group * self.block_step };
        // SAFETY: what `new` found to fit, and a line for the distance from its beginning.
        unsafe { scalar::fill(memory, 0, used + LINE) };

        let in_memory = Strip { row_stride: self.row_stride, ..*strip };
        let mut ahead = blocks::<true>(strip, &[], count * bytes);
        // What goes on and on: all lines, or the blocks of one line, or both.
        let mut begins = 0;
        for line in 0..strip.lines {
            let mut first = 0;
            while first < strip.blocks {
                let blocks = self.group.min(strip.blocks - first);
                let (_, to) = strip.place(line, first).of(source, destination);
                let group = Group {
                    made: memory.wrapping_add(to.addr() % LINE),
                    to,
                    blocks,
                    first: if self.is_joined { 0 } else { first },
                    goes_on: line > begins || self.is_joined && first > 0,
                };
                if line == begins && first == 0 {
                    self.fetch_ends::<V>(strip, to);
                }
                if group.goes_on {
                    // SAFETY: lines that were kept, to before the runs that go on with them.
                    unsafe { self.begin::<V>(&group, &kept) };
                }
                for block in 0..blocks {
                    let (from, _) = strip.place(line, first + block).of(source, destination);
                    let to = group.made.wrapping_add(block * self.block_step);
                    // SAFETY: a block of the strip, to memory that has room for it.
                    unsafe { M::make::<V>(&in_memory, from, to) };
                }
                // SAFETY: the blocks that were made, to where they belong.
                unsafe { self.take::<V>(strip, &group, source, &mut ahead, &kept) };
                // SAFETY: what is left of their runs.
                unsafe { self.keep::<V>(&group, &kept) };
                first += blocks;
            }
            let is_last = line + 1 == strip.lines || self.is_joined && !self.lines_join;
            if is_last {
                let (_, to) = strip.place(begins, 0).of(source, destination);
                // SAFETY: the ends of all runs since then.
                unsafe { self.finish::<V>(strip, to, line + 1 - begins, &kept) };
                begins = line + 1;
            }
        }
    }

    /// Fetches the lines in which runs begin and end, and what lies between two of them if that
    /// is little: mostly it is written through the caches, and what is streamed behind it has
    /// to wait for these lines.
    #[inline(always)]
    fn fetch_ends<V: Vector>(&self, strip: &Strip, to: *mut u8) {
        let Runs { count, stride, bytes } = self.written;
        let (bytes, blocks) = if !self.is_joined {
            (bytes * strip.lines, strip.blocks)
        } else if self.lines_join {
            (bytes * strip.blocks * strip.lines, 1)
        } else {
            (bytes * strip.blocks, 1)
        };
        let between = stride.wrapping_sub(bytes);
        if between == 0 {
            // What two runs share is streamed.
            return;
        }
        let between = if between <= BETWEEN { between } else { 0 };
        for block in 0..blocks {
            for row in 0..count {
                let start = block.wrapping_mul(strip.destination_step);
                let start = to.wrapping_add(start.wrapping_add(row.wrapping_mul(stride)));
                let end = start.wrapping_add(bytes);
                if start.addr().is_multiple_of(LINE) && between == 0 {
                    continue;
                }
                V::prefetch::<2>(start);
                for at in (0..=between).step_by(LINE) {
                    V::prefetch::<2>(end.wrapping_add(at));
                }
            }
        }
    }

    /// Brings the lines that are kept to before the runs that go on with them.
    ///
    /// # Safety
    ///
    /// The group is one of those of [`run`](Carry::run), and the lines were kept. The CPU
    /// has `V`.
    #[inline(always)]
    unsafe fn begin<V: Vector>(&self, group: &Group, kept: &Kept) {
        for (made, run) in self.runs(group) {
            // SAFETY: a line that is kept, to the one in which the run begins.
            unsafe { copy_line::<V, false>(kept.last_line(run), line_of(made)) };
        }
    }

    /// Keeps the line in which each run ends.
    ///
    /// # Safety
    ///
    /// The group was made. The CPU has `V`.
    #[inline(always)]
    unsafe fn keep<V: Vector>(&self, group: &Group, kept: &Kept) {
        let blocks = if self.is_joined { group.blocks } else { 1 };
        let bytes = blocks * self.written.bytes;
        for (made, run) in self.runs(group) {
            // SAFETY: the line in which the run ends.
            unsafe {
                copy_line::<V, false>(line_of(made).wrapping_add(bytes), kept.last_line(run))
            };
        }
    }

    /// Where the runs of a group are made, and their numbers in a line.
    #[inline(always)]
    fn runs(&self, group: &Group) -> impl Iterator<Item = (*mut u8, usize)> {
        let Group { made, first, .. } = *group;
        let (count, block_step, run_step) = (self.written.count, self.block_step, self.run_step);
        let blocks = if self.is_joined { 1 } else { group.blocks };
        (0..blocks).flat_map(move |block| {
            (0..count).map(move |row| {
                let made = made.wrapping_add(block * block_step + row * run_step);
                (made, (first + block) * count + row)
            })
        })
    }

    /// Takes whole lines to where they belong, fetching as many that will be read.
    ///
    /// # Safety
    ///
    /// The group was begun and made. The CPU has `V`.
    #[inline(always)]
    unsafe fn take<V: Vector>(
        &self,
        strip: &Strip,
        group: &Group,
        source: *const u8,
        ahead: &mut Blocks<'_, true>,
        kept: &Kept,
    ) {
        let Runs { count, stride, bytes } = self.written;
        // Line by line what will be read, row by row where a run is made of whole lines of
        // each; otherwise as if it were one run, which is no more than a hint.
        let read = self.read;
        let by_rows = count == 1
            && read.bytes.is_multiple_of(LINE)
            && read.count.checked_mul(read.bytes) == Some(bytes);
        let (rows, bytes, made_step, stride, fetched_step) = if by_rows {
            (read.count, read.bytes, read.bytes, read.bytes, read.stride)
        } else {
            (count, bytes, self.run_step, stride, bytes)
        };
        for block in 0..group.blocks {
            let Some(place) = ahead.next() else { return };
            let source = source.wrapping_add(place.source);
            let mut fetched = source;
            let made = group.made.wrapping_add(block * self.block_step);
            let to = group.to.wrapping_add(block.wrapping_mul(strip.destination_step));
            for row in 0..rows {
                let made = made.wrapping_add(row * made_step);
                let to = to.wrapping_add(row.wrapping_mul(stride));
                let before = to.addr() % LINE;
                let is_open = group.goes_on || by_rows && row > 0 || self.is_joined && block > 0;
                let (made, to) = (made.wrapping_sub(before), to.wrapping_sub(before));
                let mut at = 0;
                if !is_open && before > 0 {
                    let run = (group.first + block) * count + row;
                    // SAFETY: the line in which a run begins.
                    unsafe { copy_line::<V, false>(made, kept.first_line(run)) };
                    ahead.ahead.fetch::<V, true>(fetched);
                    at = LINE;
                }
                while at < bytes {
                    // SAFETY: a line of which all was made, to where it belongs.
                    unsafe { copy_line::<V, true>(made.wrapping_add(at), to.wrapping_add(at)) };
                    ahead.ahead.fetch::<V, true>(fetched.wrapping_add(at));
                    at += LINE;
                }
                fetched = fetched.wrapping_add(fetched_step);
            }
        }
    }

    /// Writes the lines in which runs began and ended, `lines` of the strip long, the first of
    /// which belongs to `to`.
    ///
    /// # Safety
    ///
    /// They were kept, and can be written. The CPU has `V`.
    #[inline(always)]
    unsafe fn finish<V: Vector>(&self, strip: &Strip, to: *mut u8, lines: usize, kept: &Kept) {
        let Runs { count, stride, bytes } = self.written;
        let (blocks, bytes) = if self.is_joined {
            (1, lines * strip.blocks * bytes)
        } else {
            (strip.blocks, lines * bytes)
        };
        let runs = (0..blocks * count).map(|run| {
            let (block, row) = (run / count, run % count);
            let step = block.wrapping_mul(strip.destination_step);
            Ended {
                to: to.wrapping_add(step).wrapping_add(row.wrapping_mul(stride)),
                bytes,
                first_line: kept.first_line(run),
                last_line: kept.last_line(run),
            }
        });
        // SAFETY: all of them, which are there until here.
        unsafe { finish::<V>(runs) };
    }
}

/// A run of which all is written but what it has of the lines in which it begins and ends.
pub(super) struct Ended {
    pub(super) to: *mut u8,
    pub(super) bytes: usize,
    /// Where these lines are.
    pub(super) first_line: *mut u8,
    pub(super) last_line: *mut u8,
}

/// Writes the ends of runs: past the caches, where one begins in the line in which the one
/// before it ends.
///
/// # Safety
///
/// The lines can be read, the first one of each run also written; and the runs themselves
/// written. The CPU has `V`.
#[inline(always)]
pub(super) unsafe fn finish<V: Vector>(runs: impl Iterator<Item = Ended>) {
    let mut before: Option<Ended> = None;
    for run in runs {
        let within = run.to.addr() % LINE;
        let ended = before.as_ref().map(|before| (before.to.wrapping_add(before.bytes), before));
        match ended {
            Some((end, before)) if end == run.to && within > 0 => {
                // SAFETY: what ends there, to before what begins there.
                unsafe { scalar::run(before.last_line, run.first_line, within) };
                // SAFETY: a whole line.
                unsafe { copy_line::<V, true>(run.first_line, line_of(run.to)) };
            }
            _ => {
                if let Some((end, before)) = ended {
                    // SAFETY: the last bytes of a run.
                    unsafe { write_end(before.last_line, end) };
                }
                if within > 0 {
                    let first = run.first_line.wrapping_add(within);
                    // SAFETY: the first bytes of a run, up to the end of their line.
                    unsafe { scalar::run(first, run.to, LINE - within) };
                }
            }
        }
        before = Some(run);
    }
    if let Some(last) = before {
        // SAFETY: the last bytes of the last run.
        unsafe { write_end(last.last_line, last.to.wrapping_add(last.bytes)) };
    }
}

/// Blocks of a line that are made at a time.
struct Group {
    /// Where the first of them is made, and where it belongs: both as far from the
    /// beginning of a line.
    made: *mut u8,
    to: *mut u8,
    blocks: usize,
    /// The number of the first one in its line, where each has lines that are kept.
    first: usize,
    /// Whether its runs go on with others.
    goes_on: bool,
}

/// The lines in which the runs of a line of the strip begin and end.
struct Kept {
    first_lines: *mut u8,
    last_lines: *mut u8,
    /// From one of the latter to the next.
    last_step: usize,
}

impl Kept {
    #[inline(always)]
    fn first_line(&self, run: usize) -> *mut u8 {
        self.first_lines.wrapping_add(run * LINE)
    }

    #[inline(always)]
    fn last_line(&self, run: usize) -> *mut u8 {
        self.last_lines.wrapping_add(run * self.last_step)
    }
}

/// The line that an address is in.
#[inline(always)]
pub(super) fn line_of(address: *mut u8) -> *mut u8 {
    address.wrapping_sub(address.addr() % LINE)
}

/// Writes what of a line is before the end of a run.
///
/// # Safety
///
/// It can be read and written.
#[inline(always)]
unsafe fn write_end(line: *const u8, end: *mut u8) {
    let bytes = end.addr() % LINE;
    // SAFETY: by the contract of this function.
    unsafe { scalar::run(line, end.wrapping_sub(bytes), bytes) };
}

/// Copies a line, past the caches where `STREAM` says so.
///
/// # Safety
///
/// It can be read and written; for `STREAM`, it is aligned for `V` there. The CPU has
/// `V`.
#[inline(always)]
pub(super) unsafe fn copy_line<V: Vector, const STREAM: bool>(from: *const u8, to: *mut u8) {
    const { assert!(LINE.is_multiple_of(V::BYTES), "a line is whole vectors") };
    for part in (0..LINE).step_by(V::BYTES) {
        // SAFETY: a part of the line.
        let vector = unsafe { V::load(from.wrapping_add(part)) };
        // SAFETY: as above, aligned for `STREAM`.
        unsafe { put::<V, STREAM>(vector, to.wrapping_add(part)) };
    }
}
