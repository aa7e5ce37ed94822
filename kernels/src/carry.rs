//! Runs that do not begin where a line of the caches does, streamed.
//!
//! Only whole lines can be streamed, but a row of an array with odd bounds,
//! or any part of an array in a buffer that is not aligned, begins and ends within one.
//! What a block writes then ends within a line that another block goes on with, for which
//! it is kept.
//!
//! Blocks are made in memory that L1 holds, each run as far from the beginning of
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
//! Where memory takes single lines more slowly than some that follow each other (Zen 3), runs that begin
//! at lines are made so as well; nothing is kept of these.
//!
//! The first bytes of what goes on and on, and the last ones, are written in the ordinary
//! way: the rest of their lines belongs to others.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::mem::MaybeUninit;

use super::vector::{LINE, PAGE, Vector, put};
use super::walk::{Blocks, blocks};
use super::{BlockOp, Place, Runs, Strip, scalar};

/// The pages of memory that blocks are made in. A store across two of them takes as long as a
/// hundred others while lines are on their way to memory, so what fits into a page, with
/// the lines at the ends of its runs, is made in one: a block, and others as far as they go on
/// with it. (Where runs of [`RUN`] bytes are made side by side, they may be in two.)
const MADE: usize = 4;

/// So many lines in which runs begin are kept, and so many in which they end, until others
/// go on with them. With `MADE` that is 32 KiB of the stack, and a page at most to begin where one
/// does.
const KEPT: usize = 128;

/// Where some lines of a run should follow each other, so many bytes of it are made at a time.
pub(super) const RUN: usize = 512;

/// A strip that reads no more bytes than these is short: prefetchers do not follow from it to the next one, which is fetched
/// meanwhile.
pub(super) const NEXT: usize = 64 << 10;

/// So many bytes between two runs are little, and fetched.
pub(super) const BETWEEN: usize = 512;

/// Lines of the caches.
#[repr(C, align(64))]
pub(super) struct CacheLines<const COUNT: usize>(pub(super) [[u8; LINE]; COUNT]);

/// Memory that blocks are made in.
#[repr(C, align(4096))]
struct Pages([[u8; PAGE]; MADE]);

/// An op whose blocks can be made apart from where they belong.
pub(super) trait Make {
    /// Makes one block of a strip.
    ///
    /// # Safety
    ///
    /// A block of the strip can be read and written there, with its padding; what it writes is whole lines. Its columns are
    /// those of a vector at least, but for numbers that are converted. The CPU has `V`.
    unsafe fn make<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8);
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
    /// How many blocks are made at a time whose runs do not go on with each other; and of each
    /// row of those that do, how many.
    at_once: usize,
    group: usize,
    /// From a run to the next in memory, and from a block to the next whose runs do not go on
    /// with it.
    run_step: usize,
    block_step: usize,
    /// What the op takes for the distance of its rows there.
    row_stride: usize,
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
        // Who makes words makes the padding behind them, too.
        let pads = matches!(op, BlockOp::Interleave { .. } | BlockOp::ConvertInterleave { .. });
        let bytes = written.bytes.checked_add(strip.pad)?;
        let written = Runs { bytes, ..written };
        let Runs { count, stride, bytes } = written;
        let is_joined = strip.blocks > 1 && strip.destination_step == bytes;
        let any_join = is_joined || strip.lines > 1 && strip.destination_line == bytes;
        let is_whole = bytes > 0 && bytes.is_multiple_of(LINE) && (strip.pad == 0 || pads);
        if !any_join || !is_whole || bytes > MADE * PAGE || !(1..=KEPT).contains(&count) {
            return None;
        }
        let lines_join =
            is_joined && Some(strip.destination_line) == bytes.checked_mul(strip.blocks);
        // A run takes the lines in which it begins and ends, and begins as far from the
        // beginning of one as where it belongs. No block has more bytes than fit, so that is
        // no number that overflows.
        let least = (count * (bytes + 2 * LINE)).next_power_of_two();
        let (alone, joined) =
            if is_joined { (1, strip.blocks) } else { (strip.blocks, strip.lines) };
        let at_once = (MADE * PAGE / least).min(alone).min(KEPT / count);
        let most = MADE * PAGE / at_once.next_power_of_two();
        let block_step = if least <= PAGE { most.min(PAGE) } else { most };
        let room = block_step / count;
        let run_step = room.checked_sub(room.wrapping_sub(stride) % LINE)?;
        let group = (run_step.checked_sub(LINE)? / bytes).min(joined);
        let by_runs = strip.core.streams_by_runs();
        let is_by_turns = by_runs && count * at_once > 1;
        let group = if is_by_turns { group.min(RUN.div_ceil(bytes)) } else { group };
        // Such runs take less of L1 side by side, if there is not more between them.
        let run = group * bytes + 2 * LINE;
        let beside = run + stride.wrapping_sub(run) % LINE;
        let blocks_beside = (count * beside).next_multiple_of(LINE);
        let (run_step, block_step) = if by_runs && blocks_beside <= block_step {
            (beside, blocks_beside)
        } else {
            (run_step, block_step)
        };
        let row_stride = match op_rows.count {
            1 => strip.row_stride,
            _ if rows_join => op_rows.bytes,
            _ => run_step,
        };
        (at_once > 0 && group > 0).then_some(Carry {
            read,
            written,
            is_joined,
            lines_join,
            at_once,
            group,
            run_step,
            block_step,
            row_stride,
        })
    }

    /// Does a strip.
    ///
    /// # Safety
    ///
    /// By the contract of [`kernel`](super) for the strip that this was made for and the op
    /// of `M`, whose columns are those of a vector at least, but for numbers that are converted.
    /// The CPU has `V`.
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

    /// A strip in parts that have no more blocks in a line than are made at a time, where these do not
    /// go on with each other.
    #[inline(always)]
    fn parts(&self, strip: &Strip) -> impl Iterator<Item = (Strip, Place)> {
        let strip = *strip;
        let at_once = if self.is_joined { strip.blocks } else { self.at_once };
        (0..strip.blocks).step_by(at_once.max(1)).map(move |first| {
            let blocks = at_once.min(strip.blocks - first);
            (Strip { blocks, ..strip }, strip.place(0, first))
        })
    }

    /// The same for no more blocks in a line than there is room for.
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
        let bytes = self.written.bytes;
        let mut memory = MaybeUninit::<Pages>::uninit();
        let (mut first_lines, mut last_lines) =
            (MaybeUninit::<CacheLines<KEPT>>::uninit(), MaybeUninit::<CacheLines<KEPT>>::uninit());
        let memory = memory.as_mut_ptr().cast::<u8>();
        let kept = Kept {
            first_lines: first_lines.as_mut_ptr().cast(),
            last_lines: last_lines.as_mut_ptr().cast(),
        };
        let (others, joined, rounds) = if self.is_joined {
            (1, strip.blocks, strip.lines)
        } else {
            (strip.blocks, strip.lines, 1)
        };
        let in_memory = Strip { row_stride: self.row_stride, ..*strip };
        let mut ahead = Reads::new(strip, self, source);
        // What goes on and on: all lines, or the blocks of one line, or both.
        let mut begins = 0;
        let steps = self.written.stride | strip.destination_line | strip.destination_step;
        let all_begin_at_lines = (destination.addr() | steps).is_multiple_of(LINE);
        for round in 0..rounds {
            for first in (0..joined).step_by(self.group) {
                let group = Group {
                    memory,
                    destination,
                    round,
                    first,
                    others,
                    joined: self.group.min(joined - first),
                    goes_on: round > begins || first > 0,
                };
                if round == begins && first == 0 && !all_begin_at_lines {
                    let to = self.place(strip, &group, 0, 0).destination;
                    self.fetch_ends::<V>(strip, destination.wrapping_add(to));
                    for run in self.runs(strip, &group) {
                        let first = line_of(run.made);
                        // SAFETY: the line in which a run begins, which it has a part of.
                        unsafe { scalar::fill(first, 0, LINE) };
                        // SAFETY: and the one in which it ends.
                        unsafe { scalar::fill(first.wrapping_add(group.joined * bytes), 0, LINE) };
                    }
                }
                if group.goes_on && !all_begin_at_lines {
                    // SAFETY: lines that were kept, to before the runs that go on with them.
                    unsafe { self.begin::<V>(strip, &group, &kept) };
                }
                for block in 0..group.joined {
                    for other in 0..others {
                        let from = self.place(strip, &group, other, block).source;
                        let made = self.made(strip, &group, other).wrapping_add(block * bytes);
                        // SAFETY: a block of the strip, to memory that has room for it.
                        unsafe { M::make::<V>(&in_memory, source.wrapping_add(from), made) };
                    }
                }
                // SAFETY: the blocks that were made, to where they belong.
                unsafe { self.take::<V>(strip, &group, &mut ahead, &kept) };
                if !all_begin_at_lines {
                    // SAFETY: what is left of their runs.
                    unsafe { self.keep::<V>(strip, &group, &kept) };
                }
            }
            let is_last = round + 1 == rounds || !self.lines_join;
            if is_last {
                if !all_begin_at_lines {
                    let to = destination.wrapping_add(strip.place(begins, 0).destination);
                    let lines = if self.is_joined { round + 1 - begins } else { strip.lines };
                    // SAFETY: the ends of all runs since then.
                    unsafe { self.finish::<V>(strip, to, lines, &kept) };
                }
                begins = round + 1;
            }
        }
    }

    /// Where a block of a group begins: of those that go on with each other that of this number,
    /// in the row of them of that number.
    #[inline(always)]
    fn place(&self, strip: &Strip, group: &Group, other: usize, block: usize) -> Place {
        if self.is_joined {
            strip.place(group.round, group.first + block)
        } else {
            strip.place(group.first + block, other)
        }
    }

    /// Where the first one of a row of them is made: as far from the beginning of a line as where
    /// it belongs.
    #[inline(always)]
    fn made(&self, strip: &Strip, group: &Group, other: usize) -> *mut u8 {
        let to = group.destination.wrapping_add(self.place(strip, group, other, 0).destination);
        group.memory.wrapping_add(other * self.block_step + to.addr() % LINE)
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
    unsafe fn begin<V: Vector>(&self, strip: &Strip, group: &Group, kept: &Kept) {
        for run in self.runs(strip, group) {
            // SAFETY: a line that is kept, to the one in which the run begins.
            unsafe { copy_line::<V, false>(kept.last_line(run.number), line_of(run.made)) };
        }
    }

    /// Keeps the line in which each run ends.
    ///
    /// # Safety
    ///
    /// The group was made. The CPU has `V`.
    #[inline(always)]
    unsafe fn keep<V: Vector>(&self, strip: &Strip, group: &Group, kept: &Kept) {
        let bytes = group.joined * self.written.bytes;
        for run in self.runs(strip, group) {
            let last = line_of(run.made).wrapping_add(bytes);
            // SAFETY: the line in which the run ends.
            unsafe { copy_line::<V, false>(last, kept.last_line(run.number)) };
        }
    }

    /// The runs of a group.
    #[inline(always)]
    fn runs(&self, strip: &Strip, group: &Group) -> impl Iterator<Item = MadeRun> {
        let Runs { count, stride, .. } = self.written;
        (0..group.others).flat_map(move |other| {
            let made = self.made(strip, group, other);
            let to = self.place(strip, group, other, 0).destination;
            let to = group.destination.wrapping_add(to);
            (0..count).map(move |row| MadeRun {
                number: other * count + row,
                made: made.wrapping_add(row * self.run_step),
                to: to.wrapping_add(row.wrapping_mul(stride)),
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
        ahead: &mut Reads<'_>,
        kept: &Kept,
    ) {
        let bytes = group.joined * self.written.bytes;
        for MadeRun { number, made, to } in self.runs(strip, group) {
            let (made, line, before) = (line_of(made), line_of(to), to.addr() % LINE);
            let mut at = 0;
            if !group.goes_on && before > 0 {
                // SAFETY: the line in which a run begins.
                unsafe { copy_line::<V, false>(made, kept.first_line(number)) };
                ahead.fetch_line::<V>();
                at = LINE;
            }
            while at < bytes {
                // SAFETY: a line of which all was made, to where it belongs.
                unsafe { copy_line::<V, true>(made.wrapping_add(at), line.wrapping_add(at)) };
                ahead.fetch_line::<V>();
                at += LINE;
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

impl Ended {
    /// Whether it begins within a line, where the one before it ends.
    #[inline(always)]
    fn goes_on(&self, before: &Ended) -> bool {
        !self.to.addr().is_multiple_of(LINE) && before.to.wrapping_add(before.bytes) == self.to
    }
}

/// Writes the ends of runs: streaming, where one goes on with the one before it within a line. All such lines are put
/// together before the first of them is streamed: what has just been stored in parts cannot be loaded as a whole before
/// the core has finished with it, and with all that it streamed before.
///
/// # Safety
///
/// The runs, which are the same for each clone, can be written and have a line at least. Their lines can be read, the
/// first ones also written, and no two of them are the same memory. The CPU has `V`.
#[inline(always)]
pub(super) unsafe fn finish<V: Vector>(runs: impl Iterator<Item = Ended> + Clone) {
    let mut before: Option<Ended> = None;
    for run in runs.clone() {
        let within = run.to.addr() % LINE;
        match &before {
            Some(before) if run.goes_on(before) => {
                // SAFETY: what ends there, to before what begins there.
                unsafe { scalar::less_than_line(before.last_line, run.first_line, within) };
            }
            ended => {
                if let Some(before) = ended {
                    // SAFETY: the last bytes of a run.
                    unsafe { write_end(before.last_line, before.to.wrapping_add(before.bytes)) };
                }
                if within > 0 {
                    let first = run.first_line.wrapping_add(within);
                    // SAFETY: the first bytes of a run, up to the end of their line.
                    unsafe { scalar::less_than_line(first, run.to, LINE - within) };
                }
            }
        }
        before = Some(run);
    }
    if let Some(last) = before {
        // SAFETY: the last bytes of the last run.
        unsafe { write_end(last.last_line, last.to.wrapping_add(last.bytes)) };
    }
    let mut before: Option<Ended> = None;
    for run in runs {
        if before.is_some_and(|before| run.goes_on(&before)) {
            // SAFETY: a whole line, which was put together.
            unsafe { copy_line::<V, true>(run.first_line, line_of(run.to)) };
        }
        before = Some(run);
    }
}

/// Blocks that are made at a time.
struct Group {
    memory: *mut u8,
    /// Of the strip.
    destination: *mut u8,
    /// Where the blocks of a line go on with each other: the line.
    round: usize,
    /// The first of those that go on with each other.
    first: usize,
    /// How many rows there are of such, and how many of them in each.
    others: usize,
    joined: usize,
    /// Whether its runs go on with those of another group.
    goes_on: bool,
}

/// A run of a group: its number among those that lines are kept for, where it is made, and
/// where it belongs.
struct MadeRun {
    number: usize,
    made: *mut u8,
    to: *mut u8,
}

/// What will be read, line by line: row by row where a run is made of whole lines of each,
/// otherwise as if a block were one run, which is no more than a hint.
struct Reads<'a> {
    blocks: Blocks<'a, true>,
    source: *const u8,
    /// Of a block: how many rows of how many lines, and from one to the next.
    rows: usize,
    lines: usize,
    stride: usize,
    /// Of the row: where it begins, which row it is, and the lines that are done.
    from: *const u8,
    row: usize,
    line: usize,
    /// The bytes of a block, read and written, and those that are read for what is written, but not asked for.
    bytes: [usize; 2],
    due: usize,
    /// How far it is to the next strip, if that is what is fetched.
    next: Option<usize>,
}

impl<'a> Reads<'a> {
    #[inline(always)]
    fn new(strip: &'a Strip, carry: &Carry, source: *const u8) -> Self {
        let Runs { count, bytes, .. } = carry.written;
        let mut blocks = blocks::<true>(strip, &[], count * bytes);
        let read = carry.read;
        let by_rows = count == 1 && read.bytes.is_multiple_of(LINE);
        let (rows, stride) = if by_rows { (read.count, read.stride) } else { (1, 0) };
        let lines = (read.count * read.bytes / rows.max(1)).div_ceil(LINE);
        let read = rows * lines * LINE;
        let from = blocks.next().map_or(source, |place| source.wrapping_add(place.source));
        let bytes = [read, count * bytes];
        let is_short = read.saturating_mul(strip.lines).saturating_mul(strip.blocks) <= NEXT;
        let has_next = strip.core.follows_pages() && is_short && strip.next != 0;
        let next = has_next.then_some(strip.next);
        Self { blocks, source, rows, lines, stride, from, row: 0, line: 0, bytes, due: 0, next }
    }

    /// Fetches what is ahead of what is read for the next line that is written.
    #[inline(always)]
    fn fetch_line<V: Vector>(&mut self) {
        let [read, written] = self.bytes;
        self.due += read;
        while self.due >= written {
            self.due -= written;
            self.fetch_read_line::<V>();
        }
    }

    #[inline(always)]
    fn fetch_read_line<V: Vector>(&mut self) {
        let line = self.from.wrapping_add(self.line * LINE);
        match self.next {
            Some(next) => V::prefetch::<2>(line.wrapping_add(next)),
            None => self.blocks.ahead.fetch_once::<V>(line),
        }
        self.line += 1;
        if self.line < self.lines {
            return;
        }
        (self.line, self.row) = (0, self.row + 1);
        self.from = self.from.wrapping_add(self.stride);
        if self.row < self.rows {
            return;
        }
        self.row = 0;
        if let Some(place) = self.blocks.next() {
            self.from = self.source.wrapping_add(place.source);
        }
    }
}

/// The lines in which the runs of a line of the strip begin and end.
struct Kept {
    first_lines: *mut u8,
    last_lines: *mut u8,
}

impl Kept {
    #[inline(always)]
    fn first_line(&self, run: usize) -> *mut u8 {
        self.first_lines.wrapping_add(run * LINE)
    }

    #[inline(always)]
    fn last_line(&self, run: usize) -> *mut u8 {
        self.last_lines.wrapping_add(run * LINE)
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
    unsafe { scalar::less_than_line(line, end.wrapping_sub(bytes), bytes) };
}

/// Copies a line, streaming where `STREAM` says so.
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
