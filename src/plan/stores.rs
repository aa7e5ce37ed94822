//! Which kernels stream.
//!
//! Streaming (non-temporal) stores go past the caches: the lines of the destination are not read
//! before they are written, which saves a third of what has to be moved; and they
//! are not there for whoever reads them next. docs/performance.md has the figures
//! that the limits come from.

use relayout_kernels::{BlockOp, Core, ROOM, Runs, Strip, WrittenColumns, is_of_runs};

use super::hop::Rows;
use crate::Tier;
use crate::error::Side;

/// From so many bytes on both sides together, runs are streamed:
/// they would not stay there.
const RUNS: u64 = 14 << 20;

/// And where a core has more of L3, only from so many bytes of all threads on, as these share it: runs that rows are taken
/// apart into, and runs that are written as a whole.
const RUNS_OF_LARGE: u64 = 26 << 20;
const WHOLE_RUNS_OF_LARGE: u64 = 19 << 20;

/// Where single lines are slow, rows of bytes out of words of four that begin within lines are streamed from so many bytes
/// of each in a call on; rows of bytes out of elements below a byte are not.
const PART_OF_ROW: usize = 512;

/// Both sides of so many bytes are in no nearer cache.
const IN_L3: u64 = 8 << 20;

/// With fewer bytes than this on both sides together, L3 has room for the
/// source and for more. Where blocks are streamed as they are read, the source is not fetched
/// then.
const FAR: u64 = 24 << 20;

/// And below this, one page of three of the destination is not written past that cache, which
/// takes it while memory takes the others.
const BY_TURNS: u64 = 19 << 20;

/// With more bytes than this on both sides together, L2 has no room for
/// them, and blocks that are not streamed are visited in the order of the
/// destination, which prefetchers can follow; otherwise shuffled.
const SHUFFLED: u64 = 1 << 20;

/// From so many bytes on both sides together, transposes are streamed.
const TRANSPOSES: u64 = 11 << 20;

/// Where their columns are not whole lines, these are made in memory first, and that is slower than
/// L3.
const TRANSPOSES_IN_PARTS: u64 = 14 << 20;

/// And where a core has more of L3, only from so many bytes of all threads on: columns that share few sets of L1, if rows do
/// not; other columns of whole lines; and others.
const CROWDED_TRANSPOSES_OF_LARGE: u64 = 14 << 20;
const TRANSPOSES_OF_LARGE: u64 = 17 << 20;
const TRANSPOSES_IN_PARTS_OF_LARGE: u64 = 19 << 20;

/// Columns of fewer bytes than this that begin within lines and do not go on with each other are not streamed: most of
/// their lines have a part of others.
const LOOSE: usize = 5 * LINE;

/// Columns that share few sets of L1 drive each other out, and in the portable tier,
/// which stores a line in four parts, its parts do. With fewer bytes than this on both sides
/// together they may be visited shuffled, where the kernel does not make them apart; from it on,
/// where they are whole lines, streamed, unless a few of them have room.
const CROWDED_TRANSPOSES: u64 = 3 << 20;

/// Rows and columns of less than words are crowded at multiples of so many bytes; in the portable tier, columns of any
/// elements at multiples of a line.
const CROWDED: usize = 2048;
const CROWDED_PORTABLE: usize = LINE;

/// Runs of more bytes are copied one by one where runs are stored, and where they are streamed.
const MOST_OF_RUN: usize = 400;
const MOST_OF_STREAMED_RUN: usize = 100;

/// Padding of fewer bytes beside each other is not streamed, but for whole lines.
const FILLS: usize = 256;

/// From scratch memory, which is made little by little, are streamed: columns that
/// begin at lines, and runs of so many bytes.
pub(super) const LINE: usize = 64;
const FROM_SCRATCH: usize = 512;

/// The bits of a line.
pub(super) const LINE_BITS: u64 = 8 * 64;

/// What decides on the kind of stores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stores {
    /// What makes the stores.
    pub(super) tier: Tier,
    pub(super) core: Core,
    /// What the caller wants, or the tier can only do.
    pub(super) asked: Option<bool>,
    /// The bytes of source and destination together.
    pub(super) both_bytes: u64,
    /// The same of all threads that share the work.
    pub(super) all_bytes: u64,
    /// The source is scratch memory, that of the second one of two passes.
    pub(super) from_scratch: bool,
}

impl Stores {
    /// The same for one of so many threads that share the work: each has caches of its
    /// own, and what they share serves them better than memory.
    pub(super) fn shared_by(self, threads: u64) -> Self {
        Stores { both_bytes: self.both_bytes / threads.max(1), ..self }
    }

    /// What decides on the stores into scratch memory, which stays in the caches.
    pub(super) fn into_scratch(self) -> Stores {
        Stores { asked: Some(false), ..self }
    }

    /// And on those out of it.
    pub(super) fn out_of_scratch(self) -> Stores {
        Stores { from_scratch: true, ..self }
    }

    /// Whether L3 keeps what a core with more of it writes, if that is less than so many bytes of all threads.
    fn is_kept(self, limit: u64) -> bool {
        self.core.has_more_of_l3() && self.all_bytes < limit
    }

    /// Whether runs are streamed.
    pub(super) fn of_runs(self) -> bool {
        self.asked.unwrap_or(self.both_bytes >= RUNS && !self.is_kept(RUNS_OF_LARGE))
    }

    /// The same of those that an op writes, some of which write each as a whole.
    pub(super) fn of_runs_by(self, op: BlockOp) -> bool {
        match op {
            BlockOp::Copy
            | BlockOp::CopyWords { .. }
            | BlockOp::Convert { .. }
            | BlockOp::ConvertInterleave { .. }
            | BlockOp::Fill
            | BlockOp::Interleave { .. }
            | BlockOp::Squeeze { .. } => {
                self.asked.unwrap_or(self.both_bytes >= RUNS && !self.is_kept(WHOLE_RUNS_OF_LARGE))
            }
            _ => self.of_runs(),
        }
    }

    /// Whether rows that words are taken apart into, so many bytes of each in a call, are stored where runs are streamed:
    /// where single lines are slow, such as begin within lines and do not follow each other, if that is little of each.
    pub(super) fn stores_rows(self, op: BlockOp, rows: Runs, bytes_in_call: usize) -> bool {
        let is_little = match op {
            BlockOp::Unsqueeze { .. } => true,
            BlockOp::Deinterleave { ways: 4, bits: 8, .. } => bytes_in_call < PART_OF_ROW,
            _ => false,
        };
        let begin_within_lines = !rows.stride.is_multiple_of(LINE) && rows.stride != rows.bytes;
        self.asked.is_none() && self.core.streams_by_runs() && is_little && begin_within_lines
    }

    /// The same of the rows of a strip.
    pub(super) fn stores_rows_of(self, op: BlockOp, strip: &Strip) -> bool {
        let rows = strip.destination_runs(op);
        rows.is_some_and(|rows| self.stores_rows(op, rows, bytes_of_row(rows.bytes, strip)))
    }

    /// Whether words of a side may be quicker in two passes than in one: from scattered rows of the other side, or into
    /// such, past the caches. Where single lines are slow, packed ones from scattered rows from L2 on too, whatever is asked
    /// for; from near rows if they are streamed.
    pub(super) fn of_words(self, side: Side, rows: Rows) -> bool {
        let is_slow_by_lines =
            self.core.streams_by_runs() && self.tier != Tier::SCALAR && !self.are_shuffled();
        match (side, rows) {
            (Side::Destination, Rows::Scattered) => is_slow_by_lines || self.of_runs(),
            (Side::Source, Rows::Scattered) => self.of_runs(),
            (Side::Destination, Rows::Near) => {
                is_slow_by_lines && self.asked.unwrap_or(self.both_bytes >= RUNS)
            }
            (Side::Source, Rows::Near) => false,
        }
    }

    /// Whether transposes of elements narrower than words, past the caches, go by whole lines of both sides, on a core on which
    /// these are nearly as quick as copies.
    pub(super) fn transposes_by_lines(self) -> bool {
        self.core == Core::Zen5 && self.tier.vector_bytes() >= LINE
    }

    /// Whether transposes are streamed whose columns are made in memory first.
    fn of_parts(self) -> bool {
        let are_many = self.both_bytes >= TRANSPOSES_IN_PARTS;
        self.asked.unwrap_or(are_many && !self.is_kept(TRANSPOSES_IN_PARTS_OF_LARGE))
    }

    /// Whether runs of so many bits, in rows and columns, are transposed rather than copied one by one.
    pub(super) fn transposes_runs(self, bits: u32) -> bool {
        let bytes = usize::try_from(bits / 8).unwrap_or(usize::MAX);
        let most = if self.of_parts() { MOST_OF_STREAMED_RUN } else { MOST_OF_RUN };
        bytes <= most
    }

    /// Whether an op that streams leaves out some pages. Who asks for such stores
    /// gets them for all of them.
    pub(super) fn by_turns(self, op: BlockOp) -> bool {
        let has_room = self.both_bytes < BY_TURNS && !self.are_far();
        self.asked.is_none() && has_room && op.goes_by_order()
    }

    /// Whether the sides are too large for L3.
    pub(super) fn are_far(self) -> bool {
        self.all_bytes >= FAR && !self.from_scratch
    }

    /// Whether L3 has the source, and prefetchers do not follow it.
    pub(super) fn are_near(self) -> bool {
        self.all_bytes < FAR && !self.from_scratch && !self.core.follows_pages()
    }

    /// Whether L3 alone holds both sides, if that does.
    pub(super) fn are_in_l3(self) -> bool {
        self.both_bytes >= IN_L3
    }

    /// Whether blocks that are not streamed are visited shuffled.
    pub(super) fn are_shuffled(self) -> bool {
        self.both_bytes <= SHUFFLED
    }

    /// Whether the columns of a transpose share few sets of L1.
    fn is_crowded(self, strip: &Strip) -> bool {
        let distance = if self.tier == Tier::PORTABLE { CROWDED_PORTABLE } else { CROWDED };
        strip.column_stride.is_multiple_of(distance)
    }

    /// How many bytes follow each other where a transpose makes columns in registers that do so.
    fn run_of_dense(self, op: BlockOp, strip: &Strip) -> Option<usize> {
        self.width_of_dense(op, strip).and_then(|width| strip.run_of_dense(width))
    }

    /// The bytes of the elements that a transpose takes apart, or puts together, in registers.
    pub(super) fn width_of_dense(self, op: BlockOp, strip: &Strip) -> Option<usize> {
        let BlockOp::Transpose { bits } = op else { return None };
        let width = usize::try_from(bits / 8).ok()?;
        let is_dense = self.tier.shuffles() && !is_of_runs(bits) && strip.is_dense(width);
        is_dense.then_some(width)
    }

    /// Whether images of few channels are stored where L3 has room for both sides: such as vectors of a part of a line make,
    /// and rows of words that go to memory through L1, as they are no whole vectors at lines.
    fn keeps_images(self, op: BlockOp, strip: &Strip) -> bool {
        let go_through_l1 = match op {
            BlockOp::InterleaveTranspose { .. } => false,
            BlockOp::TransposeDeinterleave { bits, .. } => {
                let width = usize::try_from(bits / 8).unwrap_or(1);
                let steps = strip.row_stride | strip.destination_line | strip.destination_step;
                !(strip.rows.saturating_mul(width) | steps).is_multiple_of(LINE)
            }
            _ if self.width_of_dense(op, strip).is_some() => false,
            _ => return false,
        };
        let is_by_parts = go_through_l1 || self.tier.vector_bytes() < LINE;
        self.asked.is_none() && !self.from_scratch && !self.are_far() && is_by_parts
    }

    /// Whether a transpose is streamed.
    fn of_transpose(self, op: BlockOp, strip: &Strip) -> bool {
        // What padding goes on with has columns that are no whole lines.
        let (rows, columns) = strip.crowds(op);
        // Of these, a block writes several lines of each column as a whole, which need not stay in L1.
        let writes_runs = matches!(op, BlockOp::TransposeWiden { bits: ..4 });
        let columns = if writes_runs { 0 } else { columns };
        // Crowded columns are made apart, but for those of interleaved words.
        let are_made_apart = columns > ROOM && !matches!(op, BlockOp::TransposeInterleave { .. });
        let has_ordinary = are_made_apart && rows <= ROOM;
        // Of few columns that lie together, each line is far from the one before it, on both sides.
        let is_scattered = rows > ROOM && strip.columns_of_block(op) < ROOM;
        let has_few_ways = self.core.has_few_ways();
        // Of these, what is crowded is read or written a few lines at a time.
        let is_of_pixels =
            matches!(op, BlockOp::GatherTranspose { .. } | BlockOp::TransposeScatter { .. });
        let made = strip.columns_of_transpose(op);
        let are_lines = made.is_some_and(WrittenColumns::are_lines);
        let is_loose = match self.run_of_dense(op, strip) {
            Some(run) => run < LOOSE,
            None => made.is_some_and(|columns| columns.are_loose(LOOSE)),
        };
        if matches!(op, BlockOp::Transpose { bits } if is_of_runs(bits)) {
            return self.of_parts() && (self.asked.is_some() || !is_loose);
        }
        // Of these, a few at a time have room in L1, which was measured on cores with few ways.
        let has_room_for_few =
            has_few_ways && self.tier.vector_bytes() > 16 && strip.crowds_columns_alone(op);
        let limit = if !are_lines {
            TRANSPOSES_IN_PARTS
        } else if self.tier == Tier::PORTABLE {
            CROWDED_TRANSPOSES
        } else if is_of_pixels {
            TRANSPOSES
        } else if has_few_ways && has_ordinary {
            RUNS
        } else if has_room_for_few {
            TRANSPOSES
        } else if columns >= ROOM || has_few_ways && is_scattered {
            CROWDED_TRANSPOSES
        } else {
            TRANSPOSES
        };
        // Of elements narrower than words none are counted.
        let is_crowded = |stride: usize| stride.is_multiple_of(CROWDED);
        let has_crowded_narrow = rows.max(columns) == 0
            && is_crowded(strip.column_stride)
            && !is_crowded(strip.row_stride);
        let of_large = if has_ordinary || has_crowded_narrow {
            CROWDED_TRANSPOSES_OF_LARGE
        } else if are_lines {
            TRANSPOSES_OF_LARGE
        } else {
            TRANSPOSES_IN_PARTS_OF_LARGE
        };
        self.asked
            .unwrap_or_else(|| self.both_bytes >= limit && !self.is_kept(of_large) && !is_loose)
    }

    /// Whether the squares of a transpose that is not streamed are visited
    /// shuffled.
    pub(super) fn of_shuffled_squares(self, op: BlockOp, strip: &Strip) -> bool {
        let is_crowded = self.is_crowded(strip) || strip.crowds(op).1 >= ROOM;
        self.are_shuffled() || is_crowded && self.both_bytes < CROWDED_TRANSPOSES
    }

    /// Whether the kernel of a strip, or of a stage of it, streams.
    pub(super) fn streams(self, op: BlockOp, strip: &Strip) -> bool {
        match op {
            _ if self.keeps_images(op, strip) => false,
            // Element by element, and never streamed.
            BlockOp::Strided { .. }
            | BlockOp::Widen { .. }
            | BlockOp::WidenBits { .. }
            | BlockOp::Reverse { .. }
            | BlockOp::CopyBits { .. }
            | BlockOp::Bits { .. }
            | BlockOp::FillBits => false,
            BlockOp::Transpose { .. }
            | BlockOp::NarrowTranspose { .. }
            | BlockOp::TransposeWiden { .. }
            | BlockOp::GatherTranspose { .. }
            | BlockOp::TransposeScatter { .. }
            | BlockOp::TransposeInterleave { .. } => {
                self.of_transpose(op, strip)
                    && (!self.from_scratch || strip.column_stride.is_multiple_of(LINE))
            }
            // Of a short run, most is in lines that others have a part of.
            BlockOp::Fill => self.of_runs_by(op) && (strip.columns >= FILLS || are_lines(strip)),
            // Of rows of less than a line, none is streamed as a whole.
            BlockOp::Unsqueeze { .. } if has_parts_of_lines(strip) => false,
            _ if self.stores_rows_of(op, strip) => false,
            _ if self.from_scratch => {
                let runs = strip.destination_runs(op);
                self.of_runs() && runs.is_some_and(|runs| bytes_beside(runs, strip) >= FROM_SCRATCH)
            }
            _ => self.of_runs_by(op),
        }
    }
}

/// How many bytes such runs of a block have beside each other, with those of the blocks that go on with them if they are
/// whole lines.
fn bytes_beside(runs: Runs, strip: &Strip) -> usize {
    let Runs { count, stride, bytes } = runs;
    let joined = bytes.saturating_mul(count);
    if !bytes.is_multiple_of(LINE) || count > 1 && stride != bytes {
        bytes
    } else if strip.blocks > 1 && strip.destination_step == joined {
        joined.saturating_mul(strip.blocks)
    } else {
        joined
    }
}

/// Whether the runs of a fill are whole lines, if the first one begins where a line does.
fn are_lines(strip: &Strip) -> bool {
    let line = if strip.lines > 1 { strip.destination_line } else { 0 };
    let block = if strip.blocks > 1 { strip.destination_step } else { 0 };
    (strip.columns | line | block).is_multiple_of(LINE)
}

/// Whether the rows that an [`Unsqueeze`](BlockOp::Unsqueeze) writes have less than a line each, and do
/// not follow each other.
fn has_parts_of_lines(strip: &Strip) -> bool {
    if strip.rows_join(strip.columns) {
        return false;
    }
    let goes_on = strip.destination_step == strip.columns;
    let blocks = if goes_on { strip.blocks } else { 1 };
    strip.columns.saturating_mul(blocks) < LINE
}

/// How many bytes of each row a call has, in all its blocks of so many.
fn bytes_of_row(bytes: usize, strip: &Strip) -> usize {
    let goes_on = |step: usize, count: usize| if step == bytes { count } else { 1 };
    let lines = goes_on(strip.destination_line, strip.lines);
    let blocks = goes_on(strip.destination_step, strip.blocks);
    bytes.saturating_mul(lines.max(blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_bits_of_less_than_a_line_are_not_streamed() {
        let is_streamed = |columns, blocks, destination_step| {
            let stores = far(Core::Intel);
            let strip = Strip { blocks, destination_step, rows: 32, columns, ..Strip::default() };
            stores.streams(BlockOp::Unsqueeze { ways: 4, bits: 1 }, &strip)
        };
        assert!(is_streamed(64, 1, 0));
        assert!(!is_streamed(63, 1, 0));
        // Blocks in which rows go on, and such in which they do not.
        assert!(is_streamed(32, 2, 32));
        assert!(!is_streamed(32, 2, 100));
    }

    /// Those of something that no cache holds.
    fn far(core: Core) -> Stores {
        Stores {
            tier: Tier::best(),
            core,
            asked: None,
            both_bytes: 1 << 30,
            all_bytes: 1 << 30,
            from_scratch: false,
        }
    }

    #[test]
    fn rows_that_begin_within_lines_are_stored_where_single_lines_are_slow() {
        let is_streamed = |stores: Stores, op, row_stride, columns, lines| {
            let strip = Strip {
                lines,
                destination_line: columns,
                blocks: 8,
                destination_step: 8 * row_stride,
                rows: 8,
                row_stride,
                columns,
                ..Strip::default()
            };
            stores.streams(op, &strip)
        };
        let below = BlockOp::Unsqueeze { ways: 8, bits: 4 };
        let bytes = BlockOp::Deinterleave { ways: 4, bits: 8, most_first: false };
        let halves = BlockOp::Deinterleave { ways: 2, bits: 16, most_first: false };
        let zen3 = |op, row_stride, columns, lines| {
            is_streamed(far(Core::Zen3), op, row_stride, columns, lines)
        };
        // Elements below a byte, however much there is of each row.
        assert!(!zen3(below, 1000, 128, 2) && !zen3(below, 9000, 128, 70));
        // Bytes, of which there is little.
        assert!(!zen3(bytes, 1000, 128, 3) && zen3(bytes, 1000, 128, 4));
        assert!(zen3(halves, 1000, 128, 1));
        // Rows that begin at lines, and such that follow each other.
        for op in [below, bytes] {
            assert!(zen3(op, 1024, 128, 2) && zen3(op, 300, 300, 1), "{op}");
            assert!(is_streamed(far(Core::Zen4), op, 1000, 128, 2), "{op}");
            let asked = Stores { asked: Some(true), ..far(Core::Zen3) };
            assert!(is_streamed(asked, op, 1000, 128, 2), "{op}");
        }
    }

    #[test]
    fn images_are_stored_within_l3_where_lines_are_made_in_parts() {
        let is_streamed = |tier, mib: u64, op, strip: &Strip| {
            let bytes = mib << 20;
            let stores = Stores { tier, both_bytes: bytes, all_bytes: bytes, ..far(Core::Zen4) };
            stores.streams(op, strip)
        };
        let of_words = BlockOp::TransposeDeinterleave { ways: 4, bits: 8 };
        // Rows of 672 bytes, and of 768.
        let rows = |row_stride| Strip { rows: 128, columns: 3, row_stride, ..Strip::default() };
        for tier in Tier::available().into_iter().filter(|tier| tier.shuffles()) {
            let makes_lines = tier.vector_bytes() == LINE;
            for (row_stride, mib, expected) in
                [(672, 20, false), (672, 24, true), (768, 20, makes_lines), (768, 24, true)]
            {
                let found = is_streamed(tier, mib, of_words, &rows(row_stride));
                assert_eq!(found, expected, "{tier}, rows of {row_stride}, {mib} MiB");
            }
            let packed = BlockOp::InterleaveTranspose { ways: 4, bits: 8 };
            assert_eq!(is_streamed(tier, 20, packed, &rows(672)), makes_lines, "{tier}");
            // Rows of words, as an image of one plane to a channel has them: 128 pixels of three.
            let dense = Strip {
                rows: 3,
                row_stride: 4000,
                columns: 128,
                column_stride: 12,
                lines: 8,
                source_line: 512,
                destination_line: 2000,
                blocks: 1,
                ..Strip::default()
            };
            let op = BlockOp::Transpose { bits: 32 };
            assert_eq!(is_streamed(tier, 20, op, &dense), makes_lines, "{tier}");
            assert!(is_streamed(tier, 24, op, &dense), "{tier}");
            // Out of scratch memory, however much there is.
            let from_scratch = Stores { tier, ..far(Core::Zen4) }.out_of_scratch();
            assert!(!from_scratch.keeps_images(of_words, &rows(672)), "{tier}");
            // Runs are no elements that are put together in registers.
            let pixels = Strip { column_stride: 9, ..dense };
            let runs = BlockOp::Transpose { bits: 24 };
            assert!(pixels.is_dense(3) && is_streamed(tier, 20, runs, &pixels), "{tier}");
            // 16 of them, in less than five lines.
            let short = Strip { columns: 16, destination_line: 300, ..dense };
            assert!(!is_streamed(tier, 24, op, &short), "{tier}");
        }
    }

    #[test]
    fn words_go_in_two_passes_where_these_were_quicker() {
        let sizes = |core, side, rows| {
            let of = |mib: &u64| {
                let stores = Stores { both_bytes: mib << 20, all_bytes: mib << 20, ..far(core) };
                stores.of_words(side, rows)
            };
            let found: Vec<u64> = (1..40).filter(of).collect();
            found.first().copied().zip(found.last().copied())
        };
        for (side, rows, zen3, zen4) in [
            (Side::Destination, Rows::Scattered, Some((2, 39)), Some((14, 39))),
            (Side::Source, Rows::Scattered, Some((26, 39)), Some((14, 39))),
            (Side::Destination, Rows::Near, Some((14, 39)), None),
            (Side::Source, Rows::Near, None, None),
        ] {
            assert_eq!(sizes(Core::Zen3, side, rows), zen3, "{side:?}");
            assert_eq!(sizes(Core::Zen4, side, rows), zen4, "{side:?}");
        }
        // Packed words of near rows have to be streamed.
        let not_streamed = Stores { asked: Some(false), ..far(Core::Zen3) };
        assert!(!not_streamed.of_words(Side::Destination, Rows::Near));
    }

    #[test]
    fn runs_that_follow_each_other_are_streamed_out_of_scratch_memory() {
        let is_streamed = |columns, row_stride, destination_step| {
            let stores = far(Core::Zen3).out_of_scratch();
            let strip = Strip {
                rows: 4,
                columns,
                row_stride,
                blocks: 2,
                destination_step,
                ..Strip::default()
            };
            let op = BlockOp::Deinterleave { ways: 4, bits: 8, most_first: false };
            stores.streams(op, &strip)
        };
        // Runs of 512 bytes, wherever they are; four of 64 and as many behind them.
        assert!(is_streamed(512, 1000, 0));
        assert!(is_streamed(64, 64, 256));
        // Such whose blocks, or rows, do not follow each other, and such that are no whole lines.
        assert!(!is_streamed(64, 64, 1024));
        assert!(!is_streamed(64, 128, 256));
        assert!(!is_streamed(100, 100, 400));
    }

    #[test]
    fn pages_go_by_turns_where_it_is_left_to_the_plan_and_the_source_is_near() {
        let by_turns = |asked, both_bytes: u64, threads, op| {
            let tier = Tier::best();
            let all_bytes = both_bytes << 20;
            let stores = Stores {
                tier,
                core: Core::Zen5,
                asked,
                both_bytes: all_bytes,
                all_bytes,
                from_scratch: false,
            };
            stores.shared_by(threads).by_turns(op)
        };
        let (copy, transpose) = (BlockOp::Copy, BlockOp::Transpose { bits: 32 });
        assert!(by_turns(None, 16, 1, copy));
        assert!(!by_turns(None, 19, 1, copy));
        assert!(!by_turns(Some(true), 16, 1, copy));
        assert!(!by_turns(None, 16, 1, transpose));
        // A share of 16 MiB, of a source that is in memory.
        assert!(!by_turns(None, 32, 2, copy));
    }

    #[test]
    fn short_columns_that_do_not_go_on_are_not_streamed() {
        let is_streamed = |asked, rows, column_stride| {
            let stores = Stores {
                tier: Tier::best(),
                core: Core::Zen5,
                asked,
                both_bytes: 1 << 30,
                all_bytes: 1 << 30,
                from_scratch: false,
            };
            let strip = Strip { rows, columns: 64, column_stride, ..Strip::default() };
            stores.streams(BlockOp::Transpose { bits: 32 }, &strip)
        };
        // 200 bytes of 208, of 256, where they begin at lines, and one after the other; 400 of 408.
        assert!(!is_streamed(None, 50, 208));
        assert!(is_streamed(None, 50, 256));
        assert!(is_streamed(None, 50, 200));
        assert!(is_streamed(None, 100, 408));
        assert!(is_streamed(Some(true), 50, 208));
    }

    #[test]
    fn transposes_go_by_size_and_distance_of_columns() {
        let mib = |n: u64| n << 20;
        let of = |tier, both_bytes, (rows, column_stride)| {
            let stores = Stores {
                tier,
                core: Core::Zen5,
                asked: None,
                both_bytes,
                all_bytes: both_bytes,
                from_scratch: false,
            };
            let strip = Strip { rows, columns: 16, column_stride, ..Strip::default() };
            let op = BlockOp::Transpose { bits: 32 };
            let stream = stores.streams(op, &strip);
            (stream, !stream && stores.of_shuffled_squares(op, &strip))
        };
        // Which of the two, for columns at any distance, at lines and at 2 KiB.
        let (ordinary, shuffled, streamed) = ((false, false), (false, true), (true, false));
        for (both_bytes, portable, expected) in [
            (mib(1), false, [shuffled, shuffled, shuffled]),
            (mib(1) + 1, false, [ordinary, ordinary, shuffled]),
            (mib(3) - 1, false, [ordinary, ordinary, shuffled]),
            (mib(3) - 1, true, [ordinary, shuffled, shuffled]),
            (mib(3), false, [ordinary, ordinary, streamed]),
            (mib(3), true, [ordinary, streamed, streamed]),
            (mib(11) - 1, false, [ordinary, ordinary, streamed]),
            (mib(11), false, [ordinary, streamed, streamed]),
            (mib(14) - 1, false, [ordinary, streamed, streamed]),
            (mib(14), false, [streamed, streamed, streamed]),
            (mib(14), true, [streamed, streamed, streamed]),
        ] {
            let tier = if portable { Tier::PORTABLE } else { Tier::best() };
            if !portable && tier == Tier::PORTABLE {
                continue;
            }
            let found = [1000, 448, 4096].map(|stride| of(tier, both_bytes, (96, stride)));
            assert_eq!(found, expected, "{both_bytes} bytes, {tier}");
            // Columns of 380 bytes, that padding follows, as if they were not crowded.
            assert_eq!(of(tier, both_bytes, (95, 4096)).0, expected[0].0, "{both_bytes} bytes");
        }
    }

    #[test]
    fn a_core_with_more_of_l3_streams_later_and_no_pages_by_turns() {
        let stores = |core, mib: u64| Stores {
            tier: Tier::best(),
            core,
            asked: None,
            both_bytes: mib << 20,
            all_bytes: mib << 20,
            from_scratch: false,
        };
        // Columns at lines, and such that are no whole lines; at pages, and if rows are too.
        for (bits, row_stride, column_stride, expected) in [
            (32, 4160, 64, 17),
            (32, 4160, 1000, 19),
            (32, 4160, 4096, 14),
            (32, 4096, 4096, 17),
            (32, 4096, 64, 17),
            (16, 4160, 64, 17),
            (16, 4160, 1000, 19),
            (16, 4160, 4096, 14),
            (8, 4096, 4096, 17),
            (8, 4096, 1000, 19),
        ] {
            let strip = Strip {
                rows: 512,
                row_stride,
                columns: 64,
                column_stride,
                lines: 1,
                blocks: 1,
                ..Strip::default()
            };
            let transpose = BlockOp::Transpose { bits };
            let is_streamed = |&mib: &u64| stores(Core::Zen3, mib).streams(transpose, &strip);
            let of = (bits, row_stride, column_stride);
            assert_eq!((1..30).find(is_streamed), Some(expected), "{of:?}");
        }
        let runs = |core| (1..30).find(|&mib| stores(core, mib).of_runs());
        assert_eq!([Core::Zen3, Core::Zen4].map(runs), [Some(26), Some(14)]);
        // Where a run is written as a whole, sooner.
        let whole =
            |core| (1..30).find(|&mib| stores(core, mib).streams(BlockOp::Copy, &Strip::default()));
        assert_eq!([Core::Zen3, Core::Zen4].map(whole), [Some(19), Some(14)]);
        // Of threads, by the share of each and by what they have together.
        let by_two = |core| (1..60).find(|&mib| stores(core, mib).shared_by(2).of_runs());
        assert_eq!([Core::Zen3, Core::Zen4].map(by_two), [Some(28), Some(28)]);
        assert!(!stores(Core::Zen3, 100).shared_by(8).of_runs());
        let by_turns = |core| {
            (1..30)
                .any(|mib| stores(core, mib).of_runs() && stores(core, mib).by_turns(BlockOp::Copy))
        };
        assert_eq!([Core::Zen3, Core::Zen4].map(by_turns), [false, true]);
    }

    #[test]
    fn few_ways_decide_on_columns_made_apart_and_scattered_lines() {
        let limit = |core, strip: Strip| {
            let op = BlockOp::Transpose { bits: 32 };
            let is_streamed = |mib: &u64| {
                let both_bytes = mib << 20;
                let stores = Stores {
                    tier: Tier::best(),
                    core,
                    asked: None,
                    both_bytes,
                    all_bytes: both_bytes,
                    from_scratch: false,
                };
                stores.streams(op, &strip)
            };
            (1..20).find(is_streamed)
        };
        if Tier::best() == Tier::PORTABLE {
            return;
        }
        let page = 4096;
        let plain = Strip {
            rows: 64,
            row_stride: 4160,
            columns: 64,
            column_stride: 4160,
            ..Strip::default()
        };
        // Columns at pages, which are made apart.
        let apart = Strip { column_stride: page, ..plain };
        // And rows as well.
        let both = Strip { row_stride: page, ..apart };
        // Rows at pages, columns two at a time.
        let scattered = Strip {
            row_stride: page,
            columns: 2,
            column_stride: 512,
            lines: 32,
            source_line: 8,
            destination_line: page,
            ..plain
        };
        for (strip, expected) in
            [(plain, [11, 11]), (apart, [3, 14]), (both, [3, 3]), (scattered, [3, 3])]
        {
            assert_eq!(
                [Core::Zen5, Core::Zen4].map(|core| limit(core, strip)),
                expected.map(Some),
                "{strip:?}"
            );
        }
        // Columns two at a time, of rows that are not at pages: vectors take a few of them, but the shortest ones.
        let few = if Tier::best().vector_bytes() > 16 { 11 } else { 3 };
        let pairs = Strip { row_stride: 640, ..scattered };
        assert_eq!([Core::Zen5, Core::Zen4].map(|core| limit(core, pairs)), [Some(3), Some(few)]);
        let few = Strip { destination_line: page + 1024, ..scattered };
        assert_eq!([Core::Zen5, Core::Zen4].map(|core| limit(core, few)), [Some(11), Some(3)]);
    }
}
