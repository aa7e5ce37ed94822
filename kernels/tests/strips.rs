//! The kernels of all tiers against the scalar ones, on strips that no plan may ever make:
//! places at all distances, forwards and backwards, that join or do not.

#![allow(unsafe_code, reason = "calls of kernels")]

use std::ops::Range;

use relayout_kernels::bits::{get, ordered, set};
use relayout_kernels::{BlockOp, Conversion, Core, Place, Run, Strip, Tier, fence, kernel};
use relayout_testing::{Buffer, noise};

/// Bytes of a line of cache.
const LINE: usize = 64;

/// So many strips, each in all tiers by both kinds of stores.
const STRIPS: usize = 3000;

/// Strips are no larger than so many bytes on either side.
const MOST: usize = 300_000;

struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        // The generator of Knuth's MMIX, whose high bits count.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len())]
    }

    /// Often 0, often whole lines, seldom neither.
    fn gap(&mut self, element: usize) -> usize {
        match self.below(8) {
            0..4 => 0,
            4 => 64 * self.below(4),
            5 | 6 => element * self.below(40),
            _ => self.below(150),
        }
    }

    fn op(&mut self) -> BlockOp {
        let (ways, bits) =
            self.pick(&[(2, 8), (2, 16), (2, 32), (2, 64), (4, 8), (4, 16), (8, 8), (8, 16)]);
        let (narrow_ways, narrow) = (self.pick(&[1, 2, 4]), self.pick(&[1, 2, 4]));
        let (ways, bits) = if self.one_in(3) { (32 / narrow, narrow) } else { (ways, bits) };
        let most_first = bits < 8 && self.one_in(2);
        match self.below(8) {
            0 | 1 => BlockOp::Copy,
            2 => BlockOp::Interleave { ways, bits, most_first },
            3 => BlockOp::Deinterleave { ways, bits, most_first },
            4 => BlockOp::Squeeze { ways: narrow_ways, bits: narrow, truth: false },
            5 => BlockOp::Unsqueeze { ways: narrow_ways, bits: narrow },
            _ => BlockOp::Transpose { bits: self.pick(&[8, 16, 32, 64]) },
        }
    }

    /// Strides of loops of so many turns around a run, in any order, with gaps and some of
    /// them backwards, so that no two turns share a byte.
    fn nest<const LOOPS: usize>(
        &mut self,
        run: usize,
        element: usize,
        counts: [usize; LOOPS],
    ) -> [usize; LOOPS] {
        let mut order: [usize; LOOPS] = std::array::from_fn(|i| i);
        for left in (2..=LOOPS).rev() {
            order.swap(self.below(left), left - 1);
        }
        let (mut strides, mut span) = ([0; LOOPS], run);
        for i in order {
            let stride = span + self.gap(element);
            strides[i] = if self.one_in(9) { stride.wrapping_neg() } else { stride };
            span += stride * (counts[i] - 1);
        }
        strides
    }

    /// Of a transpose whose columns begin at lines.
    fn whole_columns(&mut self, op: BlockOp, are_long: bool) -> Strip {
        let (ways, width) = match op {
            BlockOp::TransposeInterleave { ways, .. } => (usize::try_from(ways).unwrap(), 4),
            BlockOp::Transpose { bits } => (1, usize::try_from(bits / 8).unwrap()),
            _ => panic!("{op} has no columns"),
        };
        let rows = 8 + self.pick(&[0, 24, 56, 92]) + self.below(17);
        let columns = match are_long {
            true => 4096 / width + ways * self.below(90),
            false => 64 / width * (1 + self.below(9)) + ways * self.below(8),
        };
        let lines = if are_long { 1 + self.below(2) } else { 1 + self.below(9) };
        let blocks = self.pick(&[1, 1, 3]);
        let line = columns * width + width * self.below(3);
        let (source_line, row_stride) = match self.below(3) {
            0 => (line, lines * line),
            1 => (rows * line, line),
            // A page to each row, or more.
            _ => (line, (lines * line).next_multiple_of(4096)),
        };
        let column_stride = (rows * width * ways).next_multiple_of(LINE) + LINE * self.below(2);
        let destination_line = columns / ways * column_stride;
        Strip {
            lines,
            source_line,
            destination_line,
            blocks,
            source_step: rows * row_stride.max(lines * line),
            destination_step: lines * destination_line,
            rows,
            row_stride,
            columns,
            column_stride,
            is_far: self.one_in(2),
            is_near: self.one_in(2),
            core: self.pick(&[Core::Intel, Core::Intel, Core::Zen3, Core::Zen4, Core::Zen5]),
            ..Strip::default()
        }
    }

    /// Of a transpose whose rows are powers of two apart, or those of a group are. Columns may be so as well, and may be in
    /// groups that are at a step.
    fn crowded_rows(&mut self, width: usize) -> Strip {
        let in_group = self.pick(&[0, 0, 1, 2, 4, 5, 70]);
        let count = 16 + self.below(480);
        let (lines, columns) =
            if in_group > 0 { (count.div_ceil(in_group), in_group) } else { (1, count) };
        let row = lines * columns * width;
        // Of words, fewer rows of a block are 2 KiB apart than L1 has room for.
        let row_stride = row.next_multiple_of(self.pick(&[4096, 4096 / width.div_ceil(2)]));
        let rows_of_block = self.pick(&[0, 0, 1, 2, 4, 8]);
        let all = 16 + self.below(280);
        let (blocks, rows) = match rows_of_block {
            0 => (1, all),
            rows => (all / rows, rows),
        };
        let column = blocks * rows * width;
        let column_stride = match self.below(3) {
            0 => column.next_multiple_of(2048),
            1 => column,
            _ => column + self.pick(&[1, 64]) * width,
        };
        Strip {
            lines,
            source_line: columns * width + self.pick(&[0, 0, 3]) * width,
            destination_line: columns * column_stride + self.pick(&[0, width, 512]),
            blocks,
            source_step: rows * row_stride + self.pick(&[0, 4096]),
            destination_step: rows * width,
            rows,
            row_stride,
            columns,
            column_stride,
            ..Strip::default()
        }
    }

    /// Of a transpose whose columns are powers of two apart, or those of tiles are. Rows may go down.
    fn crowded(&mut self, width: usize) -> Strip {
        let column = self.pick(&[512, 1024, 2048, 4096, 4096]);
        let rows = (2 + self.below(column * 3 / 2 / width)).min(600);
        let column_stride = (rows * width).next_multiple_of(column);
        let in_tile = self.pick(&[0, 0, 1, 2, 4, 8]);
        let (lines, columns) = match in_tile {
            0 => (1, 8 + self.below(90)),
            1 | 2 => (8 + self.below(40), in_tile),
            _ => (2 + self.below(16), in_tile),
        };
        let tile = columns * column_stride;
        let row = lines * columns * width;
        let row_stride = if self.one_in(2) { row } else { row.next_multiple_of(4096) };
        let row_stride = if self.one_in(4) { row_stride.wrapping_neg() } else { row_stride };
        Strip {
            lines,
            source_line: columns * width,
            destination_line: if self.one_in(2) { tile } else { tile.next_multiple_of(4096) },
            blocks: 1 + self.below(2),
            source_step: rows.wrapping_mul(row_stride),
            destination_step: lines * tile.next_multiple_of(4096),
            rows,
            row_stride,
            columns,
            column_stride,
            is_shuffled: self.one_in(2),
            ..Strip::default()
        }
    }

    fn strip(&mut self, op: BlockOp) -> Strip {
        // Bytes that a column adds to a row or a word, and rows at most.
        let byte = |bits: u32| usize::try_from(bits / 8).unwrap();
        if let BlockOp::Interleave { ways, bits, .. } | BlockOp::Deinterleave { ways, bits, .. } =
            op
            && bits < 8
        {
            return self.packed_strip(op, ways, bits);
        }
        let (word, made, most_rows) = match op {
            BlockOp::Interleave { ways, bits, .. } => {
                (byte(bits), byte(ways * bits), byte(8 * ways))
            }
            BlockOp::Deinterleave { ways, bits, .. } => {
                (byte(ways * bits), byte(bits), byte(8 * ways))
            }
            BlockOp::ConvertInterleave { conversion } => {
                let (from, to) = conversion.widths();
                (from, 4, 4 / to)
            }
            BlockOp::DeinterleaveConvert { conversion } => {
                let (from, to) = conversion.widths();
                (4, to, 4 / from)
            }
            BlockOp::Squeeze { ways, bits, .. } => (1, byte(8 * ways), byte(64 * ways / bits)),
            BlockOp::Unsqueeze { ways, bits } => (byte(8 * ways), 1, byte(64 * ways / bits)),
            BlockOp::Transpose { bits } => (byte(bits), byte(bits), 200),
            _ => (1, 1, 1),
        };
        let rows = match self.below(4) {
            0 => 1 + self.below(most_rows),
            1 => 1 + self.below(most_rows.min(20)),
            _ => most_rows,
        };
        let columns = match self.below(4) {
            0 => 1 + self.below(300),
            1 => 64 / made.min(64) * (1 + self.below(20)),
            _ => 1 << self.below(10),
        };
        let room = (MOST / (rows * columns * word.max(made))).max(1);
        let lines = 1 + self.below(room.min(12));
        let most_blocks = self.pick(&[4, 20, 700]);
        let blocks = 1 + self.below((room / lines).clamp(1, most_blocks));

        let mut strip = Strip { lines, blocks, rows, columns, ..Strip::default() };
        if strip.least_tail(op, Tier::SCALAR).is_some() && columns > 1 && self.one_in(3) {
            strip.tail = 1 + self.below(columns - 1);
        }
        let lines = lines + usize::from(strip.tail > 0);
        strip.is_shuffled = self.one_in(2);
        strip.is_far = self.one_in(2);
        strip.is_near = self.one_in(2);
        strip.core = self.pick(&[Core::Intel, Core::Zen3, Core::Zen4, Core::Zen5]);
        strip.pages_by_turns = self.one_in(2);
        let (run_read, run_made) = (columns * word, columns * made);
        match op {
            BlockOp::Deinterleave { .. } if strip.tail > 0 && self.one_in(2) => {
                // Lines that join, and rows that go on behind the last one of them.
                let row = strip.lines * run_made + strip.tail * made;
                [strip.source_line, strip.source_step] = self.nest(run_read, word, [lines, blocks]);
                [strip.destination_step, strip.row_stride] = self.nest(row, made, [blocks, rows]);
                strip.destination_line = run_made;
            }
            BlockOp::Deinterleave { .. }
            | BlockOp::Unsqueeze { .. }
            | BlockOp::DeinterleaveConvert { .. } => {
                [strip.source_line, strip.source_step] = self.nest(run_read, word, [lines, blocks]);
                [strip.destination_line, strip.destination_step, strip.row_stride] =
                    self.nest(run_made, made, [lines, blocks, rows]);
            }
            BlockOp::Transpose { .. } => {
                [strip.source_line, strip.source_step, strip.row_stride] =
                    self.nest(run_read, word, [lines, blocks, rows]);
                [strip.destination_line, strip.destination_step, strip.column_stride] =
                    self.nest(rows * made, made, [lines, blocks, columns]);
            }
            _ => {
                strip.pad = match self.below(6) {
                    _ if strip.tail > 0 => 0,
                    0 => self.below(70),
                    // To the end of a line, and some more.
                    1 => run_made.next_multiple_of(64) - run_made + 64 * self.below(4),
                    _ => 0,
                };
                [strip.source_line, strip.source_step, strip.row_stride] =
                    self.nest(run_read, word, [lines, blocks, rows]);
                [strip.destination_line, strip.destination_step] =
                    self.nest(run_made + strip.pad, made, [lines, blocks]);
            }
        }
        strip
    }

    /// Of a transpose of elements of so many bytes, few or many of them on each side.
    fn runs(&mut self, width: usize) -> Strip {
        let most = MOST / width;
        let (most_rows, most_columns) = (self.pick(&[3, 40, 700]), self.pick(&[3, 40, 700]));
        let rows = 1 + self.below(most.min(most_rows));
        let columns = 1 + self.below((most / rows).clamp(1, most_columns));
        let room = (most / (rows * columns)).max(1);
        let lines = 1 + self.below(room.min(3));
        let blocks = 1 + self.below((room / lines).min(3));
        let (row, column) = (columns * width, rows * width);
        let [source_line, source_step, row_stride] = self.nest(row, width, [lines, blocks, rows]);
        let to = self.nest(column, width, [lines, blocks, columns]);
        let [destination_line, destination_step, column_stride] = to;
        Strip {
            source_line,
            destination_line,
            source_step,
            destination_step,
            rows,
            row_stride,
            columns,
            column_stride,
            ..self.hints(lines, blocks)
        }
    }

    /// Of a conversion, from numbers of so many bytes to others: few and many in a run, next to each other or apart.
    fn numbers(&mut self, (from, to): (usize, usize)) -> Strip {
        let most = self.pick(&[9, 33, 70, 300, 3000, 12_000]);
        let columns = 1 + self.below(most);
        let room = (MOST / (8 * columns)).max(1);
        let lines = 1 + self.below(room.min(3));
        let blocks = 1 + self.below((room / lines).min(40));
        let [source_line, source_step] = self.nest(columns * from, from, [lines, blocks]);
        let pad = if self.one_in(3) { self.below(200) } else { 0 };
        let [destination_line, destination_step] =
            self.nest(columns * to + pad, to, [lines, blocks]);
        Strip {
            source_line,
            destination_line,
            source_step,
            destination_step,
            columns,
            pad,
            next: self.pick(&[0, columns * from, 1 << 20]),
            ..self.hints(lines, blocks)
        }
    }

    /// Of rows of elements below a byte.
    fn packed_strip(&mut self, op: BlockOp, ways: u32, bits: u32) -> Strip {
        let in_bits = |bits: u32| usize::try_from(bits).unwrap();
        let row = match self.below(3) {
            0 => 1 + self.below(40),
            1 => 16 << self.below(6),
            _ => 1 + self.below(700),
        };
        let columns = row * 8 / in_bits(bits);
        let word = in_bits(ways * bits) / 8;
        let rows = if self.one_in(3) { 1 + self.below(in_bits(ways)) } else { in_bits(ways) };
        let room = (MOST / (columns * word)).max(1);
        let lines = 1 + self.below(room.min(12));
        let blocks = 1 + self.below((room / lines).clamp(1, 40));
        let mut strip = Strip { lines, blocks, rows, columns, ..Strip::default() };
        strip.is_far = self.one_in(2);
        let to_rows = matches!(op, BlockOp::Deinterleave { .. });
        strip.pad = if to_rows || self.one_in(2) { 0 } else { self.below(70) };
        let words = self.nest(columns * word + strip.pad, word, [lines, blocks]);
        let [line, block, stride] = self.nest(row, 1, [lines, blocks, rows]);
        let (source, destination) =
            if to_rows { (words, [line, block]) } else { ([line, block], words) };
        [strip.source_line, strip.source_step] = source;
        [strip.destination_line, strip.destination_step] = destination;
        strip.row_stride = stride;
        strip
    }

    /// Of words that are taken apart into rows which follow each other, as mostly the blocks do.
    fn joined_rows(&mut self, op: BlockOp) -> Strip {
        let in_bits = |bits: u32| usize::try_from(bits).unwrap();
        let (ways, word, bits) = match op {
            BlockOp::Unsqueeze { ways, bits } => (in_bits(8 * ways / bits), in_bits(ways), 8),
            BlockOp::Deinterleave { ways, bits, .. } => {
                (in_bits(ways), in_bits(ways * bits / 8), in_bits(bits))
            }
            _ => panic!("{op} has no such rows"),
        };
        let any = 1 + self.below(300);
        let columns =
            self.pick(&[any, any, 16, 64, 128, 512, 1000, 2048, 2056]).next_multiple_of(8);
        let columns = if bits == 8 && self.one_in(2) { columns - self.below(8) } else { columns };
        let row = columns * bits / 8;
        let rows = if self.one_in(4) { 1 + self.below(ways) } else { ways };
        let room = (MOST / (columns * word)).max(1);
        let lines = 1 + self.below(room.min(4));
        let blocks = 1 + self.below((room / lines).clamp(1, 9));
        let [source_line, source_step] = self.nest(columns * word, word, [lines, blocks]);
        let destination_step = rows * row + self.pick(&[0, 0, 5]);
        let destination_line = blocks * destination_step + self.pick(&[0, 0, 7]);
        Strip {
            lines,
            source_line,
            destination_line,
            blocks,
            source_step,
            destination_step,
            rows,
            row_stride: row,
            columns,
            is_far: self.one_in(2),
            ..Strip::default()
        }
    }

    /// Of words whose rows go on from line to line, and in the tail behind these.
    fn rows_in_lines(&mut self, op: BlockOp) -> Strip {
        let of = |n: u32| usize::try_from(n).unwrap();
        let (any, short) = (1 + self.below(300), 64 + self.below(70));
        let (word, all, columns, takes_tails) = match op {
            BlockOp::Unsqueeze { ways, bits } => {
                let columns = self.pick(&[any, 64, 128, 128, 128, 1000, 2048, 2100]);
                (of(ways), of(8 * ways / bits), columns, columns > 1)
            }
            BlockOp::Deinterleave { ways: 4, bits: 8, .. } => (4, 4, short, false),
            _ => panic!("{op} has no such rows"),
        };
        let has_tail = takes_tails && self.one_in(2);
        let tail = if has_tail { 1 + self.below(columns - 1) } else { 0 };
        let rows = if self.one_in(4) { 1 + self.below(all) } else { all };
        let lines = 1 + self.below((MOST / (rows * columns)).clamp(1, 40));
        let blocks = 1 + self.below((MOST / (rows * columns * (lines + 1))).clamp(1, 9));
        let counts = [lines + usize::from(tail > 0), blocks];
        let [source_line, source_step] = self.nest(columns * word, word, counts);
        let row = lines * columns + tail;
        let [destination_step, row_stride] = match self.below(3) {
            0 => [rows * row.next_multiple_of(4096), row.next_multiple_of(4096)],
            1 => [rows * row, row],
            _ => self.nest(row, 1, [blocks, rows]),
        };
        Strip {
            source_line,
            destination_line: columns,
            source_step,
            destination_step,
            rows,
            row_stride,
            columns,
            tail,
            ..self.hints(lines, blocks)
        }
    }

    /// Of dense matrices of few columns, or, transposed, of few rows.
    fn dense(&mut self, op: BlockOp, few: usize) -> Strip {
        let bytes = |bits: u32| usize::try_from(bits / 8).unwrap();
        let many = match self.below(4) {
            0 => 1 + self.below(40),
            1 => 64 * (1 + self.below(3)),
            2 => 1 + self.below(400),
            // Such as are made in several parts where they are streamed.
            _ => 1 + self.below(3000),
        };
        // Dense matrices of a block, and columns and the bytes that a row adds to each.
        let (width, matrices, columns, word) = match op {
            BlockOp::Transpose { bits } => (bytes(bits), 1, few, bytes(bits)),
            BlockOp::InterleaveTranspose { ways, bits }
            | BlockOp::TransposeDeinterleave { ways, bits } => {
                (bytes(bits), usize::try_from(ways).unwrap(), few, bytes(ways * bits))
            }
            BlockOp::InterleaveColumns { ways, bits }
            | BlockOp::DeinterleaveColumns { ways, bits } => {
                (bytes(bits), 1, few.div_ceil(usize::try_from(ways).unwrap()), bytes(ways * bits))
            }
            _ => panic!("{op} has no dense matrices"),
        };
        let (dense, column) = (many * few * width, many * word);
        let room = (MOST / (dense * matrices)).max(1);
        let lines = 1 + self.below(room.min(4));
        let blocks = 1 + self.below((room / lines).clamp(1, 9));
        let to_dense = match op {
            BlockOp::Transpose { .. } => self.one_in(2),
            _ => matches!(
                op,
                BlockOp::TransposeDeinterleave { .. } | BlockOp::DeinterleaveColumns { .. }
            ),
        };
        let [line, block, matrix] = self.nest(dense, width, [lines, blocks, matrices]);
        let [other_line, other_block, stride] = self.nest(column, word, [lines, blocks, columns]);
        let sides = [(line, block), (other_line, other_block)];
        let [source, destination] = if to_dense { [sides[1], sides[0]] } else { sides };
        let mut strip = Strip {
            lines,
            source_line: source.0,
            destination_line: destination.0,
            blocks,
            source_step: source.1,
            destination_step: destination.1,
            rows: many,
            row_stride: matrix,
            columns: few,
            column_stride: stride,
            is_far: self.one_in(2),
            is_shuffled: self.one_in(2),
            core: self.pick(&[Core::Intel, Core::Zen3, Core::Zen4, Core::Zen5]),
            ..Strip::default()
        };
        if let BlockOp::InterleaveColumns { .. } | BlockOp::DeinterleaveColumns { .. } = op {
            strip.row_stride = few * width;
        }
        if let BlockOp::Transpose { .. } = op {
            (strip.row_stride, strip.column_stride) = (few * width, stride);
            if to_dense {
                (strip.rows, strip.columns) = (few, many);
                (strip.row_stride, strip.column_stride) = (stride, few * width);
            }
        }
        strip
    }

    /// Of a transpose of elements of so many bytes: rows, or columns, that are elements of words, or anyhow in two
    /// strides.
    fn split(&mut self, width: usize) -> Strip {
        let ways = if self.one_in(4) { self.pick(&[1, 2, 3, 8]) } else { (4 / width).max(1) };
        let many = if self.one_in(3) { 1 + self.below(20) } else { 16 * (1 + self.below(9)) };
        let most = if self.one_in(4) { 150 } else { 40 };
        let few = 1 + self.below(most);
        let lines = 1 + self.below((MOST / (many * few * ways * width)).clamp(1, 3));
        let [line, group, way] = self.nest(few * width, width, [lines, many, ways]);
        let of_group = ways * width;
        let [other_line, stride, _] = self.nest(many * of_group, width, [lines, few, 1]);
        let strip = Strip {
            is_shuffled: self.one_in(2),
            core: self.pick(&[Core::Intel, Core::Zen3, Core::Zen4, Core::Zen5]),
            ..Strip::default()
        };
        if self.one_in(2) {
            return Strip {
                lines,
                source_line: line,
                destination_line: other_line,
                blocks: many,
                source_step: group,
                destination_step: of_group,
                rows: ways,
                row_stride: way,
                columns: few,
                column_stride: stride,
                ..strip
            };
        }
        Strip {
            lines: many,
            source_line: of_group,
            destination_line: group,
            blocks: lines,
            source_step: other_line,
            destination_step: line,
            rows: few,
            row_stride: stride,
            columns: ways,
            column_stride: way,
            ..strip
        }
    }

    /// Of a transpose of elements of so many bytes: with one more line of fewer columns, or one more block of fewer rows.
    fn tailed(&mut self, width: usize) -> Strip {
        // Those of a line or block, how many there are of these, and those behind them.
        let one = self.pick(&[2, 4, 8, 8, 16, 3]);
        let most = self.pick(&[2, 4, 40]);
        let (count, tail) = (1 + self.below(most), 1 + self.below(one - 1));
        let side = count * one + tail;
        let any = 1 + self.below(200);
        let other = self.pick(&[any, any, 64, 128, 128]);
        let blocks = 1 + self.below((MOST / (side * other * width)).clamp(1, 4));
        // Where the side is contiguous, and where the other one is.
        let [stride, step] = self.nest(side * width, width, [other, blocks]);
        let [apart, line, other_step] = match self.below(3) {
            0 => self.nest(other * width, width, [one, count + 1, blocks]),
            // As in a tile: the parts of its rows follow each other, at lines.
            1 => {
                let part = (other * width).next_multiple_of(LINE);
                let tile = one * part;
                [part, tile * blocks, tile]
            }
            // The other side goes on from block to block.
            _ => {
                let whole = blocks * other * width;
                [whole, one * whole, other * width]
            }
        };
        let hints = self.hints(count, blocks);
        if self.one_in(2) {
            return Strip {
                source_line: one * width,
                destination_line: line,
                source_step: step,
                destination_step: other_step,
                rows: other,
                row_stride: stride,
                columns: one,
                column_stride: apart,
                tail,
                ..hints
            };
        }
        Strip {
            lines: blocks,
            source_line: other_step,
            destination_line: step,
            blocks: count,
            source_step: line,
            destination_step: one * width,
            rows: one,
            row_stride: apart,
            columns: other,
            column_stride: stride,
            tail_rows: tail,
            ..hints
        }
    }

    /// So many lines and blocks, and any hints.
    fn hints(&mut self, lines: usize, blocks: usize) -> Strip {
        Strip {
            lines,
            blocks,
            is_shuffled: self.one_in(2),
            is_far: self.one_in(2),
            is_near: self.one_in(2),
            core: self.pick(&[Core::Intel, Core::Zen3, Core::Zen4, Core::Zen5]),
            ..Strip::default()
        }
    }

    /// Of a transpose whose columns go on with each other in the source through blocks and lines, or whose rows do in the
    /// destination: pixels of images of which each is a row or a column.
    fn grouped(&mut self, op: BlockOp) -> Strip {
        let (ways, width) = match op {
            BlockOp::TransposeInterleave { ways, .. } => (usize::try_from(ways).unwrap(), 4),
            BlockOp::Transpose { bits } => (1, usize::try_from(bits / 8).unwrap()),
            BlockOp::GatherTranspose { .. } | BlockOp::TransposeScatter { .. } => (1, 4),
            _ => panic!("{op} has no columns"),
        };
        let many = if self.one_in(3) { 1 + self.below(90) } else { 16 * (1 + self.below(9)) };
        let (are_columns, few) = match op {
            BlockOp::GatherTranspose { .. } => (true, 3),
            BlockOp::TransposeScatter { .. } => (false, 3),
            _ => (self.one_in(2), 1 + self.below(6)),
        };
        let few = if self.one_in(9) { 2 } else { few };
        let room = MOST / (many * few * width * ways * ways);
        let lines = 1 + self.below(room.clamp(1, 14));
        let blocks = 1 + self.below((room / lines).clamp(1, 14));
        // Those of which only one loop does, the other one going on with the other side.
        let is_mixed = are_columns && self.one_in(4);
        let blocks = if is_mixed { blocks.min(3) } else { blocks };
        let strip = self.hints(lines, blocks);
        // What goes on is so long in each of its lines, and with so much in all.
        let of_line = few * width * ways;
        if are_columns {
            let of_rows = of_line * lines * blocks + width * self.below(20);
            let row_stride = self.pick(&[of_rows, of_rows.next_multiple_of(2048)]);
            let (run, others) = (many * width * ways, if is_mixed { 1 } else { blocks });
            let all = run * blocks / others;
            let all = if self.one_in(2) { all.next_multiple_of(LINE) } else { all };
            let [line, block, column] = self.nest(all, LINE, [lines, others, few]);
            let steps = if is_mixed { (many * row_stride, run) } else { (of_line * lines, block) };
            return Strip {
                source_line: of_line,
                source_step: steps.0,
                rows: many,
                row_stride,
                destination_line: line,
                destination_step: steps.1,
                columns: few * ways,
                column_stride: column,
                ..strip
            };
        }
        let of_columns = of_line * lines * blocks + width * self.below(20);
        let [line, block, row] = self.nest(many * width * ways, width, [lines, blocks, few]);
        Strip {
            source_line: line,
            source_step: block,
            rows: few,
            row_stride: row,
            destination_step: of_line,
            destination_line: of_line * blocks,
            columns: many * ways,
            column_stride: self.pick(&[of_columns, of_columns.next_multiple_of(2048)]),
            ..strip
        }
    }

    /// Of a transpose whose rows, or columns, are the elements of words, which go on with each other: in one loop, and
    /// perhaps in both.
    fn words_in_groups(&mut self, width: usize) -> Strip {
        let ways = 4 / width;
        let (words, groups) = (16 + self.below(150), 1 + self.below(4));
        let other = 1 + self.below(300_usize.min(MOST / (4 * words * groups)));
        let [way, word, group] = self.nest(other * width, width, [ways, words, groups]);
        let together = 4 * words;
        let next = self.pick(&[together, together + 256]);
        let all = next * groups;
        let others = all.next_multiple_of(self.pick(&[4, 512, 1024]));
        if self.one_in(2) {
            return Strip {
                rows: ways,
                row_stride: way,
                source_step: word,
                source_line: group,
                destination_step: 4,
                destination_line: next,
                columns: other,
                column_stride: others,
                ..self.hints(groups, words)
            };
        }
        Strip {
            rows: other,
            row_stride: others,
            source_line: 4,
            source_step: next,
            columns: ways,
            column_stride: way,
            destination_line: word,
            destination_step: group,
            ..self.hints(words, groups)
        }
    }

    /// Words of several columns, of rows that are apart.
    fn word_columns(&mut self, op: BlockOp) -> Strip {
        let (BlockOp::InterleaveColumns { ways, bits }
        | BlockOp::DeinterleaveColumns { ways, bits }) = op
        else {
            panic!("{op} has no words of columns")
        };
        let of = |n: u32| usize::try_from(n).unwrap();
        let (ways, width) = (of(ways), of(bits / 8));
        let (rows, columns) = (1 + self.below(90), 1 + self.below(70));
        let [lines, blocks] = [1 + self.below(3), 1 + self.below(3)];
        let row = self.nest(columns * width, width, [lines, blocks, rows]);
        let word = self.nest(4 * rows, 4, [lines, blocks, columns.div_ceil(ways)]);
        let to_rows = matches!(op, BlockOp::DeinterleaveColumns { .. });
        let [source, destination] = if to_rows { [word, row] } else { [row, word] };
        Strip {
            lines,
            source_line: source[0],
            destination_line: destination[0],
            blocks,
            source_step: source[1],
            destination_step: destination[1],
            rows,
            row_stride: row[2],
            columns,
            column_stride: word[2],
            ..Strip::default()
        }
    }

    /// Words of elements that host memory has in bytes, of rows or columns that may end within a word.
    fn narrow_words(&mut self, op: BlockOp) -> Strip {
        let (bits, packs) = match op {
            BlockOp::NarrowTranspose { bits, .. } => (bits, true),
            BlockOp::TransposeWiden { bits } => (bits, false),
            _ => panic!("{op} has no such words"),
        };
        let ways = usize::try_from(32 / bits).unwrap();
        let lanes = match self.below(3) {
            0 => 1 + self.below(150),
            1 => 16 * (1 + self.below(9)),
            _ => 128,
        };
        let few = if self.one_in(2) { 5 } else { 40 };
        let row = match self.below(3) {
            0 => ways * (1 + self.below(few)),
            1 => ways * 16 * (1 + self.below(3)),
            _ => 1 + self.below(few * ways),
        };
        let room = (MOST / (lanes * row)).max(1);
        let lines = 1 + self.below(room.min(4));
        let blocks = 1 + self.below((room / lines).clamp(1, 4));
        let words = row.div_ceil(ways);
        // Those of the lanes, and of the elements of a row.
        let [of_lanes, of_rows] = if packs { [blocks, lines] } else { [lines, blocks] };
        let (image, host) = if self.one_in(2) {
            let column = 4 * lanes * of_lanes;
            let column = match self.below(3) {
                0 => column + 4 * self.below(40),
                1 => column.next_multiple_of(LINE),
                _ => column.next_multiple_of(self.pick(&[1024, 4096])),
            };
            let host_row = row * of_rows;
            let host_row = match self.below(3) {
                0 => host_row + self.below(90),
                1 => host_row.next_multiple_of(LINE),
                _ => host_row.next_multiple_of(4096),
            };
            ([4 * lanes, words * column, column], [lanes * host_row, row, host_row])
        } else {
            let image = self.nest(4 * lanes, 4, [of_lanes, of_rows, words]);
            (image, self.nest(row, 1, [of_lanes, of_rows, lanes]))
        };
        let strip = self.hints(lines, blocks);
        if packs {
            return Strip {
                source_line: host[1],
                destination_line: image[1],
                source_step: host[0],
                destination_step: image[0],
                rows: lanes,
                row_stride: host[2],
                columns: row,
                column_stride: image[2],
                ..strip
            };
        }
        Strip {
            source_line: image[0],
            destination_line: host[0],
            source_step: image[1],
            destination_step: host[1],
            rows: row,
            row_stride: image[2],
            columns: lanes,
            column_stride: host[2],
            ..strip
        }
    }

    /// One whose rows have whole lines and begin at them, on both sides.
    fn whole_lines(&mut self, op: BlockOp) -> Strip {
        let bytes = |n: u32| usize::try_from(n).unwrap();
        let (ways, width) = match op {
            BlockOp::Interleave { ways, bits, .. } | BlockOp::Deinterleave { ways, bits, .. } => {
                (bytes(ways), bytes(bits / 8))
            }
            _ => (1, 1),
        };
        let to_rows = matches!(op, BlockOp::Deinterleave { .. });
        let row = 64 * if self.one_in(2) { self.pick(&[2, 4, 8]) } else { 1 + self.below(30) };
        let most = (MOST / (row * ways)).clamp(1, 70);
        let lines = 1 + self.below(most.min(20));
        let blocks = 1 + self.below((most / lines).max(1));
        let mut strip = Strip {
            lines,
            blocks,
            rows: ways,
            columns: row / width,
            pages_by_turns: true,
            ..Strip::default()
        };
        if strip.least_tail(op, Tier::SCALAR).is_some() && row > 64 && self.one_in(2) {
            strip.tail = 64 * (1 + self.below(row / 64 - 1)) / width;
        }
        let counts = [lines + usize::from(strip.tail > 0), blocks];
        let runs = self.nest(row * ways, 64, counts);
        let [line, block, stride] = self.nest(row, 64, [counts[0], counts[1], ways]);
        let rows = [line, block];
        let (source, destination) = if to_rows { (runs, rows) } else { (rows, runs) };
        [strip.source_line, strip.source_step] = source;
        [strip.destination_line, strip.destination_step] = destination;
        strip.row_stride = stride;
        strip
    }
}

/// What all tiers make of a strip, by both kinds of stores, is held against the scalar one.
fn check(random: &mut Random, what: &str, op: BlockOp, strip: Strip, [from, to]: [usize; 2]) {
    let element_bytes = match op {
        BlockOp::Transpose { bits } => usize::try_from(bits / 8).unwrap(),
        _ => 0,
    };
    let strip = Strip { element_bytes, ..strip };
    let (read, written) = (strip.source_range(op).unwrap(), strip.destination_range(op).unwrap());
    let length = |range: &std::ops::Range<i128>| usize::try_from(range.end - range.start).unwrap();
    let first = |range: &std::ops::Range<i128>| usize::try_from(-range.start).unwrap();
    let bytes = noise(u64::try_from(length(&read)).unwrap(), random.0);
    let poison = random.pick(&[0xee, 0x11]);
    let mut source = Buffer::of(&bytes, from);
    let mut made = |run: Run, strips: &[(Strip, Place)]| {
        let mut destination = Buffer::poisoned(length(&written), to, poison);
        let source = source.inside().as_ptr().wrapping_add(first(&read));
        let inside = destination.inside().as_mut_ptr().wrapping_add(first(&written));
        for (strip, place) in strips {
            let (order, (source, inside)) = (strip.shuffled(), place.of(source, inside));
            // SAFETY: the buffers have the bytes that the strip may read and write, and the
            // tier is one of this CPU.
            unsafe { run(strip, &order, source, inside) };
        }
        fence();
        destination
    };
    let whole = [(strip, Place::default())];
    let parts: Vec<(Strip, Place)> = strip.pieces().collect();
    let mut expected = made(kernel(op, Tier::SCALAR, false).unwrap(), &parts);
    let is_transpose = matches!(op, BlockOp::Transpose { .. });
    for tier in Tier::available() {
        for stream in [false, true] {
            let takes_tails = is_transpose || stream && tier.streams();
            let strips = if takes_tails { &whole[..] } else { &parts };
            let mut destination = made(kernel(op, tier, stream).unwrap(), strips);
            let wrong = destination.inside().iter().zip(expected.inside().iter());
            let wrong = wrong.enumerate().find(|(_, (a, b))| a != b).map(|(at, _)| at);
            let what = format!("{what}, {tier}, streaming {stream}, {op}: {strip:?}");
            assert!(wrong.is_none(), "byte {wrong:?} of {what}");
            assert!(destination.guards_are(poison), "written outside: {what}");
        }
    }
}

#[test]
fn kernels_of_all_tiers_do_the_same() {
    let mut random = Random(1);
    for number in 0..STRIPS {
        let op = random.op();
        let strip = random.strip(op);
        let places = [random.below(64), random.pick(&[0, 0, 16, random.0 as usize % 64])];
        check(&mut random, &format!("strip {number}"), op, strip, places);
    }
}

/// Strips whose rows are whole lines, which go by turns of pages: of each width and number of rows.
#[test]
fn pages_by_turns_are_the_same() {
    let mut random = Random(2);
    let words =
        [(2, 8), (2, 16), (2, 32), (2, 64), (4, 8), (4, 16), (4, 32), (8, 8), (8, 16)].into_iter();
    let ops = words.flat_map(|(ways, bits)| {
        let most_first = false;
        [
            BlockOp::Interleave { ways, bits, most_first },
            BlockOp::Deinterleave { ways, bits, most_first },
        ]
    });
    for op in ops.chain([BlockOp::Copy]) {
        for number in 0..40 {
            let strip = random.whole_lines(op);
            let from = random.below(64);
            check(&mut random, &format!("whole lines {number}"), op, strip, [from, 0]);
        }
    }
}

/// Transposes whose columns begin at lines, of rows that prefetchers follow and of others: short and
/// long ones, with rests, of matrices beside each other and apart.
#[test]
fn transposes_along_rows_are_the_same() {
    let mut random = Random(3);
    let transposes = [16, 32, 64].map(|bits| BlockOp::Transpose { bits });
    let words = [(2, 16), (4, 8), (8, 4), (16, 2)]
        .map(|(ways, bits)| BlockOp::TransposeInterleave { ways, bits });
    for op in transposes.into_iter().chain(words) {
        for number in 0..24 {
            let strip = random.whole_columns(op, number % 3 == 0);
            let from = random.below(64);
            check(&mut random, &format!("whole columns {number}"), op, strip, [from, 0]);
        }
    }
}

/// Transposes whose columns share a few sets of L1, of which blocks are made apart, or a few columns at a time.
#[test]
fn crowded_columns_are_the_same() {
    let mut random = Random(4);
    for (width, bits) in [(1, 8), (2, 16), (4, 32), (8, 64), (16, 128)] {
        let op = BlockOp::Transpose { bits };
        let mut by_few = 0;
        for number in 0..64 {
            let strip = random.crowded(width);
            let places = [random.below(64), random.pick(&[0, 0, 16, 37])];
            check(&mut random, &format!("crowded columns {number}"), op, strip, places);
            by_few += usize::from(strip.crowds_columns_alone(op));
        }
        // The longest ones have too few columns in a line for that.
        let have_any = (4..16).contains(&width);
        assert_eq!(by_few > 2, have_any, "{by_few} of elements of {width} bytes");
    }
}

/// Transposes whose rows share a few sets of L1, some of which are copied before they are turned.
#[test]
fn crowded_rows_are_the_same() {
    let mut random = Random(18);
    for (width, bits) in [(1, 8), (2, 16), (4, 32)] {
        let op = BlockOp::Transpose { bits };
        for number in 0..64 {
            let strip = random.crowded_rows(width);
            let places = [random.below(64), random.pick(&[0, 0, 16, 37])];
            check(&mut random, &format!("crowded rows {number}"), op, strip, places);
        }
    }
}

/// Transposes of words from memory whose rows share so few sets of L2 that their lines are fetched one by one, and of a few
/// lines of rows that are in pages of their own.
#[test]
fn far_crowded_rows_are_the_same() {
    let mut random = Random(21);
    for number in 0..32 {
        let (rows, blocks) = (70 + random.below(90), random.pick(&[1, 1, 2]));
        let columns = 16 * (1 + random.below(30)) + random.pick(&[0, 0, 5]);
        let (column, row_stride) = (rows * 4, random.pick(&[16 << 10, 32 << 10]));
        let column_stride = (blocks * column).next_multiple_of(random.pick(&[64, 128]));
        let strip = Strip {
            lines: 1,
            blocks,
            // The rows of a matrix go on there, or elsewhere.
            source_step: rows * row_stride + random.pick(&[0, 4096]),
            destination_step: column,
            rows,
            row_stride,
            columns,
            column_stride,
            is_far: true,
            core: Core::Zen5,
            ..Strip::default()
        };
        let places = [random.below(64), random.pick(&[0, 0, 64, 16])];
        let name = format!("far crowded rows {number}");
        check(&mut random, &name, BlockOp::Transpose { bits: 32 }, strip, places);
    }
}

/// Transposes of elements of any bytes: pieces of them and several, and such as are no longer made in memory.
#[test]
fn transposes_of_runs_are_the_same() {
    let mut random = Random(19);
    for width in [3, 4, 5, 7, 9, 12, 16, 17, 24, 31, 32, 33, 48, 64, 65, 96, 100, 512, 513, 900] {
        let op = BlockOp::Transpose { bits: u32::try_from(8 * width).unwrap() };
        for number in 0..40 {
            let strip = random.runs(width);
            let places = [random.below(64), random.pick(&[0, 0, 16, 37])];
            check(&mut random, &format!("runs {number}"), op, strip, places);
        }
    }
    for width in [3, 12, 24] {
        let op = BlockOp::Transpose { bits: u32::try_from(8 * width).unwrap() };
        for number in 0..60 {
            let strip = match number % 4 {
                0 => random.tailed(width),
                1 => random.split(width),
                2 => random.crowded_rows(width),
                _ => random.grouped(op),
            };
            let places = [random.below(64), random.pick(&[0, 0, 16, 37])];
            check(&mut random, &format!("split runs {number}"), op, strip, places);
        }
    }
}

/// Conversions of any bits: lots of numbers and fewer, the last ones with some before them, from where lines begin and
/// from elsewhere.
#[test]
fn conversions_are_the_same() {
    let mut random = Random(20);
    for (conversion, widths) in [
        (Conversion::F32ToBf16, (4, 2)),
        (Conversion::Bf16ToF32, (2, 4)),
        (Conversion::F32ToF16, (4, 2)),
        (Conversion::F16ToF32, (2, 4)),
        (Conversion::F64ToF32, (8, 4)),
        (Conversion::F64ToF32Rest, (8, 4)),
        (Conversion::F32ToF64, (4, 8)),
        (Conversion::F32ToF8e4m3fn, (4, 1)),
        (Conversion::F32ToF8e5m2, (4, 1)),
        (Conversion::S32ToS8, (4, 1)),
        (Conversion::S8ToS32, (1, 4)),
    ] {
        let op = BlockOp::Convert { conversion };
        for number in 0..60 {
            let strip = random.numbers(widths);
            let places = [random.below(64), random.pick(&[0, 0, 16, 32, 37])];
            check(&mut random, &format!("conversion {number}"), op, strip, places);
        }
    }
}

/// Words of which some elements are kept, against words one by one: none of them, some, and all.
#[test]
fn words_with_some_elements_are_the_same() {
    let mut random = Random(41);
    for bits in [1, 2, 4, 8, 16] {
        let op = BlockOp::CopyWords { bits };
        for number in 0..80 {
            let rows = random.below(usize::try_from(32 / bits).unwrap() + 1);
            let strip = Strip { rows, ..random.numbers((4, 4)) };
            let places = [random.below(64), random.pick(&[0, 0, 16, 32, 37])];
            check(&mut random, &format!("words {number}"), op, strip, places);
        }
        let scalar = kernel(op, Tier::SCALAR, false).unwrap();
        for rows in 0..=usize::try_from(32 / bits).unwrap() {
            let strip = Strip { rows, columns: 2, blocks: 1, lines: 1, ..Strip::default() };
            let (words, mut made) = ([u32::MAX, 0x1234_5678], [0; 2]);
            // SAFETY: two words of each.
            unsafe { scalar(&strip, &[], words.as_ptr().cast(), made.as_mut_ptr().cast()) };
            let kept =
                |word: u32| (u64::from(word) % (1 << (u64::from(bits) * rows as u64))) as u32;
            assert_eq!(made, words.map(kept), "{rows} elements of {bits} bits");
        }
    }
}

/// Runs whose elements are read from the last to the first, which vectors turn round.
#[test]
fn runs_from_their_end_are_the_same() {
    let mut random = Random(37);
    for width in [1, 2, 4, 8, 16_usize] {
        let op = BlockOp::Strided { bits: 8 * u32::try_from(width).unwrap() };
        for number in 0..80 {
            let strip = random.numbers((width, width));
            let reversed =
                Strip { row_stride: width.wrapping_neg(), column_stride: width, pad: 0, ..strip };
            let places = [random.below(64), random.pick(&[0, 0, 16, 32, 37])];
            check(&mut random, &format!("run {number}"), op, reversed, places);
        }
    }
}

/// Long runs of numbers, which go by pages in turns where prefetchers follow these: of each width, with some left over.
#[test]
fn long_runs_of_conversions_are_the_same() {
    let mut random = Random(22);
    for (conversion, (from, to), columns) in [
        (Conversion::F32ToBf16, (4, 2), 9_000),
        (Conversion::Bf16ToF32, (2, 4), 17_000),
        (Conversion::F64ToF32, (8, 4), 17_007),
        (Conversion::F32ToF64, (4, 8), 8_200),
        (Conversion::S32ToS8, (4, 1), 36_000),
        (Conversion::S8ToS32, (1, 4), 33_007),
    ] {
        for next in [0, 1 << 20] {
            for (pad, place) in [(0, 0), (100, 0), (0, 16), (28, 37)] {
                let strip = Strip {
                    lines: 1,
                    blocks: 1,
                    columns,
                    pad,
                    next,
                    source_step: columns * from,
                    destination_step: columns * to,
                    core: Core::Intel,
                    ..Strip::default()
                };
                let places = [random.below(64), place];
                check(&mut random, "long run", BlockOp::Convert { conversion }, strip, places);
            }
        }
    }
}

/// Numbers that become words, or are taken out of such, of as many rows as a word has and of fewer.
#[test]
fn words_of_conversions_are_the_same() {
    let mut random = Random(21);
    let to_words = [
        Conversion::F32ToBf16,
        Conversion::F32ToF16,
        Conversion::F32ToF8e4m3fn,
        Conversion::F32ToF8e5m2,
        Conversion::S32ToS8,
    ];
    let of_words = [Conversion::Bf16ToF32, Conversion::F16ToF32, Conversion::S8ToS32];
    let to_words = to_words.map(|conversion| BlockOp::ConvertInterleave { conversion });
    let of_words = of_words.map(|conversion| BlockOp::DeinterleaveConvert { conversion });
    for op in to_words.into_iter().chain(of_words) {
        for number in 0..60 {
            let mut strip = random.strip(op);
            strip.next = random.pick(&[0, 4096, 1 << 20]);
            let places = [random.below(64), random.pick(&[0, 0, 16, 32, 37])];
            check(&mut random, &format!("converted words {number}"), op, strip, places);
        }
    }
}

/// Lots of words that are not whole, with the padding that makes them whole lines, of rows of which the last ones may be
/// missing, whether they follow each other or not.
#[test]
fn words_of_conversions_and_their_padding_are_streamed() {
    let mut random = Random(22);
    for conversion in [Conversion::F32ToBf16, Conversion::S32ToS8] {
        let op = BlockOp::ConvertInterleave { conversion };
        let (from, to) = conversion.widths();
        for rows in 1..=4 / to {
            for columns in [130, 128, 260] {
                for gap in [0, 4096] {
                    let row_stride = columns * from + gap;
                    let pad = (columns * 4).next_multiple_of(LINE) - columns * 4 + LINE;
                    let strip = Strip {
                        lines: 2,
                        source_line: 3 * rows * row_stride,
                        destination_line: 3 * (columns * 4 + pad),
                        blocks: 3,
                        source_step: rows * row_stride,
                        destination_step: columns * 4 + pad,
                        rows,
                        row_stride,
                        columns,
                        pad,
                        ..Strip::default()
                    };
                    for core in [Core::Intel, Core::Zen3, Core::Zen5] {
                        for is_far in [false, true] {
                            let strip = Strip { core, is_far, ..strip };
                            check(&mut random, "words and padding", op, strip, [4, 0]);
                        }
                    }
                }
            }
        }
    }
}

/// No range is known of a kernel that is told other elements than its op has.
#[test]
fn a_transpose_of_runs_has_the_elements_of_its_op() {
    let strip = |element_bytes| Strip {
        lines: 1,
        blocks: 1,
        rows: 4,
        columns: 5,
        element_bytes,
        ..Strip::default()
    };
    let ranges = |bits, element_bytes| {
        let (op, strip) = (BlockOp::Transpose { bits }, strip(element_bytes));
        (strip.source_range(op).is_some(), strip.destination_range(op).is_some())
    };
    assert_eq!(ranges(96, 12), (true, true));
    assert_eq!(ranges(96, 16), (false, false));
    assert_eq!(ranges(96, 0), (false, false));
    // Others are not told.
    assert_eq!(ranges(32, 0), (true, true));
    for bits in [0, 1, 4, 12, 31] {
        assert!(kernel(BlockOp::Transpose { bits }, Tier::SCALAR, false).is_none(), "{bits}");
    }
}

/// Transposes of which the last line has fewer columns, or the last block of each line fewer rows.
#[test]
fn transposes_with_tails_are_the_same() {
    let mut random = Random(17);
    for (width, bits) in [(1, 8), (2, 16), (4, 32), (8, 64), (16, 128)] {
        let op = BlockOp::Transpose { bits };
        for number in 0..240 {
            let strip = random.tailed(width);
            let places = [random.below(64), random.pick(&[0, 0, 16, 37])];
            check(&mut random, &format!("tails {number}"), op, strip, places);
        }
    }
}

/// Transposes whose rows or columns come in groups, and words of some columns whose rows are apart.
#[test]
fn split_sides_are_the_same() {
    let mut random = Random(11);
    for (width, bits) in [(1, 8), (2, 16), (4, 32), (8, 64)] {
        for number in 0..300 {
            let strip = random.split(width);
            let places = [random.below(64), random.pick(&[0, 0, 16, 37])];
            let op = BlockOp::Transpose { bits };
            check(&mut random, &format!("split sides {number}"), op, strip, places);
        }
    }
    for (ways, bits) in [(2, 16), (4, 8)] {
        let ops = [
            BlockOp::InterleaveColumns { ways, bits },
            BlockOp::DeinterleaveColumns { ways, bits },
        ];
        for (number, op) in ops.into_iter().cycle().take(300).enumerate() {
            let strip = random.word_columns(op);
            let places = [random.below(64), random.below(64)];
            check(&mut random, &format!("words of columns {number}"), op, strip, places);
        }
    }
}

/// Transposes whose columns, or rows, go on with each other through blocks and lines.
#[test]
fn sides_in_groups_of_blocks_are_the_same() {
    let mut random = Random(13);
    let transposes = [8, 16, 32, 64].map(|bits| BlockOp::Transpose { bits });
    let words = [(2, 16), (4, 8), (8, 4), (16, 2)]
        .map(|(ways, bits)| BlockOp::TransposeInterleave { ways, bits });
    let pixels = [(2, 16), (4, 8)].into_iter().flat_map(|(ways, bits)| {
        [BlockOp::GatherTranspose { ways, bits }, BlockOp::TransposeScatter { ways, bits }]
    });
    for op in transposes.into_iter().chain(words).chain(pixels) {
        for number in 0..150 {
            let strip = random.grouped(op);
            let places = [random.below(64), random.pick(&[0, 0, 0, 16, 37])];
            check(&mut random, &format!("groups of blocks {number}"), op, strip, places);
        }
    }
}

/// Words of elements of several rows, or columns, that go on with each other in one loop, and in another one anew.
#[test]
fn words_in_groups_are_the_same() {
    let mut random = Random(17);
    for (width, bits) in [(1, 8), (2, 16)] {
        for number in 0..300 {
            let strip = random.words_in_groups(width);
            let places = [random.below(64), random.pick(&[0, 0, 16, 37])];
            let op = BlockOp::Transpose { bits };
            check(&mut random, &format!("words in groups {number}"), op, strip, places);
        }
    }
}

/// Words of elements below a byte, made of the bytes of rows, or taken apart into such.
#[test]
fn narrow_words_are_the_same() {
    let mut random = Random(12);
    let ops =
        [(1, false), (1, true), (2, false), (4, false)].into_iter().flat_map(|(bits, truth)| {
            [BlockOp::NarrowTranspose { bits, truth }, BlockOp::TransposeWiden { bits }]
        });
    for op in ops {
        for number in 0..250 {
            let strip = random.narrow_words(op);
            let places = [random.below(64), random.pick(&[0, 0, 16, 37])];
            check(&mut random, &format!("narrow words {number}"), op, strip, places);
        }
    }
}

/// Dense matrices of few columns or rows, those of which words are made, and those whose columns are in
/// words.
#[test]
fn dense_matrices_are_the_same() {
    let mut random = Random(10);
    let transposes = [8, 16, 32, 64].map(|bits| BlockOp::Transpose { bits });
    let words = [(2, 16), (4, 8)].into_iter().flat_map(|(ways, bits)| {
        [
            BlockOp::InterleaveTranspose { ways, bits },
            BlockOp::TransposeDeinterleave { ways, bits },
            BlockOp::InterleaveColumns { ways, bits },
            BlockOp::DeinterleaveColumns { ways, bits },
        ]
    });
    for op in transposes.into_iter().chain(words) {
        for number in 0..220 {
            let strip = random.dense(op, 2 + number % 17);
            let places = [random.below(64), random.pick(&[0, 0, 16, random.0 as usize % 64])];
            check(&mut random, &format!("dense {number}"), op, strip, places);
        }
    }
}

/// Rows shorter than a vector that begin at lines, and a last line of fewer columns behind them.
#[test]
fn tails_of_short_rows_are_the_same() {
    let mut random = Random(9);
    for (ways, bits) in [(2, 8), (2, 16), (4, 8), (8, 8)] {
        let op = BlockOp::Deinterleave { ways, bits, most_first: false };
        let (rows, width) = (usize::try_from(ways).unwrap(), usize::try_from(bits / 8).unwrap());
        for (columns, lines) in [2, 8, 15, 16, 31, 32, 33, 63].into_iter().zip([1, 3].repeat(4)) {
            let strip = Strip {
                lines,
                source_line: 64 * width * rows,
                destination_line: 64 * width,
                blocks: 2,
                source_step: 1024 * width * rows,
                destination_step: 1024 * width * rows,
                rows,
                row_stride: 1024 * width,
                columns,
                tail: columns / 2,
                ..Strip::default()
            };
            for to in [0, 16] {
                check(&mut random, "short rows and a tail", op, strip, [0, to]);
            }
        }
    }
}

/// Words of two rows, of which blocks beside each other go to one page, from its beginning on.
#[test]
fn two_blocks_to_a_page_are_the_same() {
    const PAGE: usize = 4096;
    let op = BlockOp::Interleave { ways: 2, bits: 16, most_first: false };
    let strip = Strip {
        lines: 4,
        source_line: 2048,
        destination_line: 512,
        blocks: 4,
        source_step: 256,
        destination_step: 2048,
        rows: 2,
        row_stride: 1024,
        columns: 128,
        pages_by_turns: true,
        ..Strip::default()
    };
    let source = noise(8192, 5);
    let made = |run: Run, page: usize| {
        let mut memory = vec![0xee; 6 * PAGE];
        let start = memory.as_ptr().align_offset(PAGE);
        let destination = memory[start + page * PAGE..].as_mut_ptr();
        // SAFETY: the strip reads 8 KiB and writes as many, which are behind both places; the tier
        // is one of this CPU.
        unsafe { run(&strip, &strip.shuffled(), source.as_ptr(), destination) };
        fence();
        memory[start..start + 5 * PAGE].to_vec()
    };
    // One page of three goes through the caches.
    for page in 0..3 {
        let expected = made(kernel(op, Tier::SCALAR, false).unwrap(), page);
        assert_eq!(expected.iter().take_while(|&&byte| byte == 0xee).count() / PAGE, page);
        for tier in Tier::available() {
            for stream in [false, true] {
                let what = format!("{tier}, streaming {stream}, page {page}");
                assert!(made(kernel(op, tier, stream).unwrap(), page) == expected, "{what}");
            }
        }
    }
}

/// Rows in pages of their own, of which some blocks beside each other are written at a time, and a
/// rest of them at the end.
#[test]
fn rows_in_pages_of_their_own_are_the_same() {
    let mut random = Random(6);
    for (op, ways, width) in [
        (BlockOp::Copy, 1, 1),
        (BlockOp::Deinterleave { ways: 2, bits: 16, most_first: false }, 2, 2),
        (BlockOp::Deinterleave { ways: 4, bits: 8, most_first: false }, 4, 1),
    ] {
        for (lines, blocks, row) in
            [(21, 3, 128), (9, 2, 256), (16, 4, 128), (5, 2, 512), (2, 2, 3072)]
        {
            let run = row * ways;
            let strip = Strip {
                lines,
                source_line: blocks * run,
                destination_line: row,
                blocks,
                source_step: run,
                destination_step: ways * 8192,
                rows: ways,
                row_stride: 8192,
                columns: row / width,
                pages_by_turns: true,
                ..Strip::default()
            };
            let from = random.below(64);
            check(&mut random, "rows in pages", op, strip, [from, 0]);
        }
    }
}

/// Rows of narrow elements that share few sets of L2, and columns in groups of which those at the same place go on with each
/// other within lines.
#[test]
fn rows_at_powers_of_two_and_columns_that_go_on_are_the_same() {
    let mut random = Random(10);
    for (bits, width) in [(8, 1), (16, 2)] {
        let op = BlockOp::Transpose { bits };
        for (rows, columns, row_stride) in
            [(150_usize, 200, 1 << 15), (64, 64, 1 << 16), (97, 130, 1 << 16)]
        {
            let column_stride = (rows * width).next_multiple_of(LINE);
            let core = Core::Zen4;
            let once = Strip { lines: 1, blocks: 1, core, ..Strip::default() };
            let strip = Strip { rows, row_stride, columns, column_stride, ..once };
            check(&mut random, "rows at powers of two", op, strip, [3, 0]);
        }
        for (group, lines, rows) in [(4, 40, 70), (4, 33, 150), (2, 90, 64), (3, 50, 101)] {
            let strip = Strip {
                lines,
                source_line: group * width,
                destination_line: rows * width,
                blocks: 1,
                rows,
                row_stride: 1000,
                columns: group,
                column_stride: lines * rows * width + 5 * width,
                ..Strip::default()
            };
            for to in [0, 2, 37] {
                check(&mut random, "columns that go on", op, strip, [0, to]);
            }
        }
    }
}

/// Columns that share few sets of L1, where single lines are streamed slowly: in runs, of which the last one is longer or
/// ends within a line, and by blocks that end where the matrix does.
#[test]
fn columns_at_powers_of_two_are_the_same_in_runs() {
    let mut random = Random(11);
    let transpose = |bits| BlockOp::Transpose { bits };
    let of_words = BlockOp::TransposeInterleave { ways: 2, bits: 16 };
    let narrow = |bits| BlockOp::NarrowTranspose { bits, truth: false };
    let widen = |bits| BlockOp::TransposeWiden { bits };
    for (op, rows, columns) in [
        (transpose(32), 16, 64),
        (transpose(32), 128, 80),
        (transpose(32), 143, 300),
        (transpose(32), 301, 261),
        (transpose(64), 75, 130),
        (transpose(16), 256 + 40, 600),
        (transpose(8), 600, 1100),
        (of_words, 130, 300),
        (narrow(4), 150, 1040),
        (narrow(2), 40, 1400),
        (widen(4), 70, 200),
        (widen(2), 80, 300),
    ] {
        let strip = Strip {
            lines: 1,
            blocks: 1,
            rows,
            row_stride: 4160,
            columns,
            column_stride: 4096,
            core: Core::Zen3,
            ..Strip::default()
        };
        for from in [0, 5] {
            check(&mut random, "columns in runs", op, strip, [from, 0]);
        }
    }
    // Words of several rows, those of each element one behind the other.
    for (bits, width, columns) in [(8, 1, 64), (8, 1, 100), (16, 2, 70), (16, 2, 32)] {
        let row = columns * width;
        let strip = Strip {
            lines: 2,
            source_line: 150 * row,
            destination_line: 600,
            blocks: 150,
            source_step: row,
            destination_step: 4,
            rows: 4 / width,
            row_stride: 300 * row,
            columns,
            column_stride: 4096,
            core: Core::Zen3,
            ..Strip::default()
        };
        let strips = [strip, Strip { destination_line: 640, ..strip }];
        for strip in strips {
            check(&mut random, "words in runs", transpose(bits), strip, [5, 0]);
        }
    }
}

/// Columns that follow each other and begin anywhere, of matrices that go on and of such that do not: all rows of some
/// columns are made at a time, the last ones with what is left. Columns that are too long or too few for that as well.
#[test]
fn columns_that_follow_each_other_are_the_same() {
    let mut random = Random(17);
    let transposes = [8, 16, 32, 64].map(|bits| BlockOp::Transpose { bits });
    let widen = [4, 2].map(|bits| BlockOp::TransposeWiden { bits });
    for op in transposes.into_iter().chain(widen) {
        // Bytes of an element on each side, and the rows of a block of vectors.
        let (read, made, block) = match op {
            BlockOp::Transpose { bits } => {
                let width = usize::try_from(bits / 8).unwrap();
                (width, width, 64 / width)
            }
            _ => (4, 1, 128),
        };
        for number in 0..60 {
            let rows =
                block / 2 + random.below(200 / made.min(4)) + usize::from(number % 8 == 0) * 300;
            let columns = 8 + random.below(400);
            let column = rows * made;
            let [lines, blocks] = [1 + random.below(3), 1 + random.below(3)];
            // Nothing between two matrices, or something.
            let apart = random.pick(&[0, 0, 4]);
            let row_stride = columns * read + random.pick(&[0, 4, 64]);
            let matrix = columns * column + apart;
            let strip = Strip {
                lines,
                source_line: rows * row_stride,
                destination_line: matrix,
                blocks,
                source_step: lines * rows * row_stride,
                destination_step: lines * matrix,
                rows,
                row_stride,
                columns,
                column_stride: column,
                core: random.pick(&[Core::Intel, Core::Zen3, Core::Zen5]),
                ..Strip::default()
            };
            let places = [random.below(64), random.below(64)];
            check(&mut random, &format!("columns in a row {number}"), op, strip, places);
        }
    }
}

/// Columns of words, which follow those of the same element: in one stretch for each of these, or in several that go on with
/// each other or not.
#[test]
fn columns_of_words_that_follow_each_other_are_the_same() {
    let mut random = Random(19);
    for (bits, width) in [(8, 1), (16, 2)] {
        for number in 0..60 {
            let ways = 4 / width;
            let rows = 48 / width + random.below(200);
            let column = rows * width;
            let [lanes, groups] = [16 + random.below(120), 1 + random.below(3)];
            let stretch = lanes * column;
            let way = groups * stretch + random.pick(&[0, 5 * width]);
            let row = groups * lanes * ways * width;
            // Sometimes more rows share a set of L2 than it has room for.
            let row_stride =
                if number % 20 == 0 { 1 << 15 } else { row + random.pick(&[0, 4, 64]) };
            let strip = Strip {
                lines: lanes,
                source_line: ways * width,
                destination_line: column,
                blocks: groups,
                source_step: lanes * ways * width,
                destination_step: random.pick(&[stretch, stretch, ways * way]),
                rows,
                row_stride,
                columns: ways,
                column_stride: way,
                core: random.pick(&[Core::Intel, Core::Zen3, Core::Zen5]),
                ..Strip::default()
            };
            let places = [random.below(64), random.below(64)];
            let op = BlockOp::Transpose { bits };
            check(&mut random, &format!("columns of words in a row {number}"), op, strip, places);
        }
    }
}

/// Rows of elements below a byte that go on from line to line, as in tiles of which each has several words below each other.
#[test]
fn rows_in_lines_are_the_same() {
    let mut random = Random(19);
    let below = [1, 2, 4].into_iter().flat_map(|ways| [1, 2, 4].map(move |bits| (ways, bits)));
    let below = below.map(|(ways, bits)| BlockOp::Unsqueeze { ways, bits });
    let bytes = BlockOp::Deinterleave { ways: 4, bits: 8, most_first: false };
    for op in below.chain([bytes]) {
        for number in 0..120 {
            let mut strip = random.rows_in_lines(op);
            // For which short rows of bytes have a way of their own.
            strip.core = if number % 2 == 0 { Core::Zen5 } else { strip.core };
            let places = [random.below(64), random.pick(&[0, 0, 16, 37])];
            check(&mut random, &format!("rows in lines {number}"), op, strip, places);
        }
    }
}

/// Runs of bits, which may share the bytes at their ends, and of which each bit is where one by one would have put it.
#[test]
fn runs_of_bits_are_the_same() {
    let mut random = Random(23);
    for number in 0..1500 {
        let columns = match random.below(4) {
            0 => 1 + random.below(20),
            1 => 1 + random.below(100),
            _ => 1 + random.below(900),
        };
        let bits: u32 = random.pick(&[1, 2, 4]);
        let width = u8::try_from(bits).unwrap();
        let (from_most_first, to_most_first, clears_rest) = random.pick(&[
            (false, false, false),
            (false, false, true),
            (true, false, true),
            (false, true, false),
        ]);
        let columns = columns * usize::try_from(bits).unwrap();
        let bit = |random: &mut Random| u8::try_from(random.below(8)).unwrap() / width * width;
        let (source_bit, destination_bit) = (bit(&mut random), bit(&mut random));
        let destination_bit = if clears_rest { 0 } else { destination_bit };
        let counts = [1 + random.below(3), 1 + random.below(5)];
        // Those in which no other bits of a byte are touched may share it.
        let bytes = columns.div_ceil(8);
        let [source_line, source_step] = random.nest(bytes, 1, counts);
        let [destination_line, destination_step] = random.nest(bytes, 1, counts);
        let strip = Strip {
            lines: counts[0],
            source_line,
            destination_line,
            blocks: counts[1],
            source_step,
            destination_step,
            rows: 1,
            columns,
            source_bit,
            destination_bit,
            ..Strip::default()
        };
        let op = BlockOp::CopyBits { bits, from_most_first, to_most_first, clears_rest };
        let places = [random.below(64), random.below(64)];
        check(&mut random, &format!("runs of bits {number}"), op, strip, places);

        let one = Strip { lines: 1, blocks: 1, ..strip };
        let length = |range: Range<i128>| usize::try_from(range.end).unwrap();
        let source = noise(length(one.source_range(op).unwrap()) as u64, number);
        let mut made = noise(length(one.destination_range(op).unwrap()) as u64, number + 1);
        let mut expected = made.clone();
        if clears_rest {
            *expected.last_mut().unwrap() = 0;
        }
        for i in (0..u64::try_from(columns).unwrap()).step_by(width.into()) {
            let at = |first: u8, most_first| ordered(u64::from(first) + i, bits, most_first);
            let value = get(&source, at(source_bit, from_most_first), bits);
            set(&mut expected, at(destination_bit, to_most_first), bits, value);
        }
        let run = kernel(op, Tier::best(), false).unwrap();
        // SAFETY: the buffers have the bytes of the strip, and the tier is one of this CPU.
        unsafe { run(&one, &[], source.as_ptr(), made.as_mut_ptr()) };
        assert_eq!(made, expected, "{one:?}");
    }
}

/// Runs of bytes into elements below a byte, from any bit on, and back: each where one by one would have put it, the bits
/// around them as they were.
#[test]
fn bits_that_become_bytes_and_bytes_that_become_bits_are_the_same() {
    let mut random = Random(29);
    let widths = [(1_u32, false), (1, true), (2, false), (4, false)];
    for number in 0..2000 {
        let (bits, truth) = random.pick(&widths);
        let most_first = random.one_in(2);
        let columns = match random.below(4) {
            0 => 1 + random.below(20),
            1 => 1 + random.below(140),
            2 => 64 * (1 + random.below(20)),
            _ => 1 + random.below(1500),
        };
        let width = usize::try_from(bits).unwrap();
        let in_byte = 8 / width;
        let counts = [1 + random.below(3), 1 + random.below(9)];
        // A run may begin in the byte in which the one before ends.
        let gaps = random.pick(&[0, 1, in_byte, in_byte + 3]);
        let step = (columns + gaps) * width;
        let line = step * counts[1] + random.below(3) * width;
        let down = |random: &mut Random, step: usize| {
            if random.one_in(5) { step.wrapping_neg() } else { step }
        };
        let (line, step) = (down(&mut random, line), down(&mut random, step));
        let [bytes_line, bytes_step] = random.nest(columns, 1, counts);
        let first = u8::try_from(random.below(in_byte) * width).unwrap();
        let packs = random.one_in(2);
        let strip = Strip {
            lines: counts[0],
            source_line: if packs { bytes_line } else { line },
            destination_line: if packs { line } else { bytes_line },
            blocks: counts[1],
            source_step: if packs { bytes_step } else { step },
            destination_step: if packs { step } else { bytes_step },
            rows: 1,
            columns,
            source_bit: if packs { 0 } else { first },
            destination_bit: if packs { first } else { 0 },
            ..Strip::default()
        };
        let op = if packs {
            BlockOp::NarrowBits { bits, truth, most_first }
        } else {
            BlockOp::WidenBits { bits, most_first }
        };
        let places = [random.below(64), random.below(64)];
        check(&mut random, &format!("bits and bytes {number}"), op, strip, places);

        let (read, written) =
            (strip.source_range(op).unwrap(), strip.destination_range(op).unwrap());
        let length = |range: &Range<i128>| u64::try_from(range.end - range.start).unwrap();
        let start = |range: &Range<i128>| usize::try_from(-range.start).unwrap();
        let source = noise(length(&read), number);
        let mut made = noise(length(&written), number + 1);
        let mut expected = made.clone();
        let (of_bytes, of_bits) = if packs { (&read, &written) } else { (&written, &read) };
        let runs = (0..counts[0]).flat_map(|line| (0..counts[1]).map(move |block| (line, block)));
        for (i, j) in runs {
            let steps =
                |line: usize, step: usize| i.wrapping_mul(line).wrapping_add(j.wrapping_mul(step));
            let bytes = start(of_bytes).wrapping_add(steps(bytes_line, bytes_step));
            let bit = 8 * start(of_bits) + usize::from(first);
            let bit = bit.wrapping_add(steps(line, step));
            for column in 0..columns {
                let at = ordered((bit + column * width) as u64, bits, most_first);
                if packs {
                    let byte = source[bytes + column];
                    set(&mut expected, at, bits, if truth { u8::from(byte != 0) } else { byte });
                } else {
                    expected[bytes + column] = get(&source, at, bits);
                }
            }
        }
        let from = source.as_ptr().wrapping_add(start(&read));
        let to = made.as_mut_ptr().wrapping_add(start(&written));
        let run = kernel(op, Tier::best(), false).unwrap();
        // SAFETY: the buffers have the bytes of the strip, and the tier is one of this CPU.
        unsafe { run(&strip, &[], from, to) };
        assert!(made == expected, "{op} {strip:?}");
    }
}

/// Rows of a block that follow each other: of elements below a byte, which are streamed as if they
/// were one, and of whole bytes, which are kept in registers until lines are whole.
#[test]
fn rows_that_follow_each_other_are_the_same() {
    let mut random = Random(7);
    let to_bytes = [(4, 1), (2, 1), (1, 2), (4, 2), (4, 4)];
    let to_bytes = to_bytes.map(|(ways, bits)| BlockOp::Unsqueeze { ways, bits });
    let packed = [(32, 1), (16, 2), (8, 4)].into_iter().flat_map(|(ways, bits)| {
        [false, true].map(|most_first| BlockOp::Deinterleave { ways, bits, most_first })
    });
    let whole = [(2, 8), (4, 8), (8, 8), (2, 16), (4, 16), (2, 32)];
    let whole = whole.map(|(ways, bits)| BlockOp::Deinterleave { ways, bits, most_first: false });
    for op in to_bytes.into_iter().chain(packed).chain(whole) {
        for number in 0..100 {
            let strip = random.joined_rows(op);
            let [from, to] = [random.below(64), random.below(64)];
            let places = [from, random.pick(&[0, to])];
            check(&mut random, &format!("joined rows {number}"), op, strip, places);
        }
    }
}
