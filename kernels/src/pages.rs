//! Pages of the destination by turns: one of three through the caches, the others past them.
//!
//! Where both sides have little more bytes than L3 has room for, memory and that
//! cache then take the stores together. By pages, because prefetchers follow what is stored
//! through the caches to the end of its page, and should find no line there that is not.
//!
//! A core lets go of stores in their order, and has room for some dozens that wait. Those of
//! variables that the compiler keeps in memory are among them: 16 of these for each 512 bytes
//! make it a third slower (docs/performance.md). So these loops are apart from the other ones,
//! and have few variables.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use super::Strip;
use super::vector::{LINE, PAGE, Vector, put, streams};

/// An op of which [`run`] makes `WAYS` vectors of as many.
pub(super) trait ByTurns<const WAYS: usize> {
    /// Whether the rows of a block are those of the destination. A vector of each is read or
    /// written; on the other side are as many vectors after one another.
    const TO_ROWS: bool;

    /// Makes the vectors that are written.
    ///
    /// # Safety
    ///
    /// A vector of each row can be read, or as many after one another. The CPU has `V`.
    unsafe fn made<V: Vector>(strip: &Strip, source: *const u8) -> [V; WAYS];
}

/// So many vectors are made at once: as registers hold, with others.
const AT_ONCE: usize = 8;

/// Where rows of the destination are in pages of their own, so many bytes of each are written before
/// the next one.
const RUN: usize = 2048;

/// The source is fetched into L2 so many bytes ahead, where what is made at
/// once is in one piece there.
const AHEAD: usize = 4 * PAGE;

/// Blocks that follow each other at steps below this in the destination, but with gaps, go to the
/// same pages in several lines.
const NARROW: usize = PAGE / 2;

/// Does the lines that are alike of a strip, if it is to be done by turns and `A` can do that:
/// each row, or run, has whole vectors and begins where one is streamed to.
///
/// # Safety
///
/// The strip can be read and written; its op is that of `A`, and each row of a block, or run, has
/// `row_bytes`. The CPU has `V`.
#[inline(always)]
pub(super) unsafe fn run<A: ByTurns<WAYS>, V: Vector, const WAYS: usize>(
    strip: &Strip,
    row_bytes: usize,
    source: *const u8,
    destination: *mut u8,
) -> bool {
    // Some vectors of each row are made at once. With shorter ones than lines, parts of lines of several rows would be
    // under way, or few lines of each.
    if const { !AT_ONCE.is_multiple_of(WAYS) || A::TO_ROWS && V::BYTES < LINE } {
        return false;
    }
    let (row_stride, run_bytes) =
        if A::TO_ROWS { (strip.row_stride, row_bytes) } else { (0, row_bytes * WAYS) };
    let is_whole = (WAYS == 1 || strip.rows == WAYS)
        && strip.pad == 0
        && row_bytes.is_multiple_of(V::BYTES)
        && streams::<V>(strip, destination, row_stride);
    if !strip.pages_by_turns || !is_whole {
        return false;
    }
    let distance = |step: usize| step.cast_signed().unsigned_abs();
    let farther = |a, b| distance(a).max(distance(b));
    let step = distance(strip.destination_step);
    let is_narrow = (run_bytes + 1..NARROW).contains(&step);
    let is_nearer = farther(strip.source_line, strip.destination_line)
        < farther(strip.source_step, strip.destination_step);
    let lines = Steps::new(strip.lines, strip.source_line, strip.destination_line);
    let blocks = Steps::new(strip.blocks, strip.source_step, strip.destination_step);
    let is_beside = lines.destination == row_bytes;
    let row_step = if A::TO_ROWS { row_stride } else { blocks.destination };
    // Lines that are done side by side, a block of each; otherwise line after line.
    let side_by_side = if !in_one_piece::<A, WAYS>() {
        (is_narrow || is_nearer).then_some(lines.count)
    } else {
        let has_pages = is_nearer && distance(row_step) >= PAGE;
        let in_run = RUN.checked_div(row_bytes).filter(|&count| has_pages && count > 1);
        // Rows of two blocks: of one after the other, each would be half of every page.
        let halves = (A::TO_ROWS && lines.count == 2).then_some(2);
        in_run.or(halves).filter(|_| is_beside)
    };
    let Some(at_once) = side_by_side.filter(|&count| count > 1) else {
        // Where two blocks make a page, to which they go in several lines soon after each other, whole
        // lines are slow; docs/performance.md has the figures, and that the reason is not known.
        let is_by_halves = !in_one_piece::<A, WAYS>()
            && V::BYTES >= LINE
            && (run_bytes + 1..PAGE).contains(&step)
            && distance(strip.source_line) <= PAGE
            && destination.addr().is_multiple_of(PAGE);
        let loops = [lines, blocks];
        if is_by_halves {
            // SAFETY: as below; the CPU has the half of what it has, and multiples of the vector
            // are multiples of its half.
            unsafe { walk::<A, V::Half, WAYS>(strip, row_bytes, loops, source, destination) };
        } else {
            // SAFETY: the loops of the strip, one within the other; `streams` has seen that every
            // row begins at a multiple of the vector.
            unsafe { walk::<A, V, WAYS>(strip, row_bytes, loops, source, destination) };
        }
        return true;
    };
    for first in (0..lines.count).step_by(at_once) {
        let (source, destination) = strip.place(first, 0).of(source, destination);
        let some_lines = Steps { count: at_once.min(lines.count - first), ..lines };
        let loops = [blocks, some_lines];
        // SAFETY: as above, some lines of the strip.
        unsafe { walk::<A, V, WAYS>(strip, row_bytes, loops, source, destination) };
    }
    true
}

/// Whether the vectors that are made at once are after one another in the source.
const fn in_one_piece<A: ByTurns<WAYS>, const WAYS: usize>() -> bool {
    A::TO_ROWS || WAYS == 1
}

/// One of the loops around a block.
#[derive(Clone, Copy)]
struct Steps {
    count: usize,
    source: usize,
    destination: usize,
}

impl Steps {
    #[inline(always)]
    fn new(count: usize, source: usize, destination: usize) -> Self {
        Self { count, source, destination }
    }
}

/// Does the blocks of two loops.
///
/// # Safety
///
/// The loops are those of the strip, which can be read and written. Each row of it, or run, has
/// `row_bytes`, whole vectors, and begins at a multiple of one in the destination. The CPU has `V`.
#[inline(always)]
unsafe fn walk<A: ByTurns<WAYS>, V: Vector, const WAYS: usize>(
    strip: &Strip,
    row_bytes: usize,
    [outer, inner]: [Steps; 2],
    source: *const u8,
    destination: *mut u8,
) {
    let at_once = const { AT_ONCE / WAYS * V::BYTES };
    let (of_source, of_destination) = if A::TO_ROWS { (WAYS, 1) } else { (1, WAYS) };
    let (mut source_outer, mut destination_outer) = (source, destination);
    for _ in 0..outer.count {
        let (mut source_block, mut destination_block) = (source_outer, destination_outer);
        for _ in 0..inner.count {
            let (mut from, mut to) = (source_block, destination_block);
            let mut left = row_bytes;
            while left > 0 {
                let is_piece = left >= at_once && is_within_pages::<A, WAYS>(strip, to, at_once);
                let bytes = if is_piece {
                    // SAFETY: so many bytes of each row of a block, from a multiple of the
                    // vector on.
                    unsafe { piece::<A, V, WAYS>(strip, from, to) };
                    at_once
                } else {
                    // SAFETY: as above, a vector of each row: what is left are whole ones.
                    unsafe { one::<A, V, WAYS>(strip, from, to) };
                    V::BYTES
                };
                from = from.wrapping_add(bytes * of_source);
                to = to.wrapping_add(bytes * of_destination);
                left -= bytes;
            }
            source_block = source_block.wrapping_add(inner.source);
            destination_block = destination_block.wrapping_add(inner.destination);
        }
        source_outer = source_outer.wrapping_add(outer.source);
        destination_outer = destination_outer.wrapping_add(outer.destination);
    }
}

/// Whether so many bytes of each row are in a page each, where the destination has the rows,
/// or those of all of them in one.
#[inline(always)]
fn is_within_pages<A: ByTurns<WAYS>, const WAYS: usize>(
    strip: &Strip,
    destination: *mut u8,
    bytes: usize,
) -> bool {
    if !A::TO_ROWS {
        return destination.addr() % PAGE + bytes * WAYS <= PAGE;
    }
    (0..WAYS).all(|row| {
        let to = destination.wrapping_add(row.wrapping_mul(strip.row_stride));
        to.addr() % PAGE + bytes <= PAGE
    })
}

/// Does [`AT_ONCE`] vectors, some of each row, [within pages](is_within_pages), and fetches what is
/// ahead of them in the source.
///
/// # Safety
///
/// They can be read and written, at multiples of the vector. The CPU has `V`.
#[inline(always)]
unsafe fn piece<A: ByTurns<WAYS>, V: Vector, const WAYS: usize>(
    strip: &Strip,
    source: *const u8,
    destination: *mut u8,
) {
    if in_one_piece::<A, WAYS>() {
        for at in (0..AT_ONCE * V::BYTES).step_by(LINE) {
            V::prefetch::<2>(source.wrapping_add(AHEAD + at));
        }
    }
    if !A::TO_ROWS {
        if is_kept(destination) {
            // SAFETY: by the contract of this function.
            unsafe { rows::<A, V, WAYS, false>(strip, source, destination) };
        } else {
            // SAFETY: by the contract of this function.
            unsafe { rows::<A, V, WAYS, true>(strip, source, destination) };
        }
        return;
    }
    // What goes to a row is written at once.
    // SAFETY: the CPU has `V`.
    let mut made = [[unsafe { V::splat(0) }; WAYS]; AT_ONCE];
    for (step, made) in made.iter_mut().enumerate() {
        if step < AT_ONCE / WAYS {
            let source = source.wrapping_add(step * V::BYTES * WAYS);
            // SAFETY: vectors after one another.
            *made = unsafe { A::made::<V>(strip, source) };
        }
    }
    for row in 0..WAYS {
        let to = destination.wrapping_add(row.wrapping_mul(strip.row_stride));
        if is_kept(to) {
            for (step, made) in made.iter().enumerate() {
                if step < AT_ONCE / WAYS {
                    // SAFETY: vectors of that row.
                    unsafe { made[row].store(to.wrapping_add(step * V::BYTES)) };
                }
            }
        } else {
            for (step, made) in made.iter().enumerate() {
                if step < AT_ONCE / WAYS {
                    // SAFETY: vectors of that row.
                    unsafe { made[row].stream(to.wrapping_add(step * V::BYTES)) };
                }
            }
        }
    }
}

/// Does [`AT_ONCE`] vectors, some of each row of the source, all in one way.
///
/// # Safety
///
/// That of [`piece`].
#[inline(always)]
unsafe fn rows<A: ByTurns<WAYS>, V: Vector, const WAYS: usize, const STREAM: bool>(
    strip: &Strip,
    source: *const u8,
    destination: *mut u8,
) {
    for step in 0..AT_ONCE / WAYS {
        let to = destination.wrapping_add(step * WAYS * V::BYTES);
        // SAFETY: a vector of each row.
        let made = unsafe { A::made::<V>(strip, source.wrapping_add(step * V::BYTES)) };
        // Not by value: arrays of portable vectors are then copied byte by byte.
        for (i, vector) in made.iter().enumerate() {
            // SAFETY: as many vectors after one another.
            unsafe { put::<V, STREAM>(*vector, to.wrapping_add(i * V::BYTES)) };
        }
    }
}

/// Does a vector of each row.
///
/// # Safety
///
/// They can be read and written, at multiples of the vector. The CPU has `V`.
#[inline(always)]
unsafe fn one<A: ByTurns<WAYS>, V: Vector, const WAYS: usize>(
    strip: &Strip,
    source: *const u8,
    destination: *mut u8,
) {
    let stride = if A::TO_ROWS { strip.row_stride } else { V::BYTES };
    // SAFETY: by the contract of this function.
    let made = unsafe { A::made::<V>(strip, source) };
    for (i, vector) in made.iter().enumerate() {
        // SAFETY: by the contract of this function.
        unsafe { put_by_turns(*vector, destination.wrapping_add(i.wrapping_mul(stride))) };
    }
}

/// Stores as it is the turn of the page.
///
/// # Safety
///
/// A vector can be written, to an aligned place. The CPU has `V`.
#[inline(always)]
unsafe fn put_by_turns<V: Vector>(vector: V, to: *mut u8) {
    if is_kept(to) {
        // SAFETY: by the contract of this function.
        unsafe { vector.store(to) };
    } else {
        // SAFETY: as above.
        unsafe { vector.stream(to) };
    }
}

/// Whether an address is in a page that is written through the caches: one of three.
#[inline(always)]
fn is_kept(at: *mut u8) -> bool {
    (at.addr() / PAGE).is_multiple_of(3)
}

#[cfg(test)]
mod tests {
    use super::super::copy::CopyRun;
    use super::super::deinterleave::Deinterleave;
    use super::super::interleave::Interleave;
    use super::super::portable::V as Portable;
    use super::*;

    #[repr(C, align(64))]
    struct Aligned([u8; 4096]);

    #[test]
    fn only_whole_vectors_at_multiples_of_them_go_by_turns() {
        let source = [7; 4096];
        let strip = Strip {
            lines: 2,
            source_line: 1024,
            destination_line: 1024,
            blocks: 2,
            source_step: 128,
            destination_step: 128,
            rows: 2,
            row_stride: 256,
            columns: 64,
            pages_by_turns: true,
            ..Strip::default()
        };
        let words = |strip: Strip, at: usize| {
            let mut memory = Aligned([0; 4096]);
            let destination = memory.0.as_mut_ptr().wrapping_add(at);
            type Op = Interleave<2, 8, 1, false, true>;
            // SAFETY: both sides have far more bytes than the strip; vectors of 16 bytes are of
            // every CPU.
            let is_done = unsafe {
                run::<Op, Portable, 2>(&strip, strip.columns, source.as_ptr(), destination)
            };
            let written = memory.0.iter().filter(|&&byte| byte == 7).count();
            assert_eq!(written, if is_done { 2 * 2 * 2 * strip.columns } else { 0 });
            is_done
        };
        assert!(words(strip, 0) && words(strip, 16));
        assert!(!words(strip, 8));
        assert!(!words(Strip { pages_by_turns: false, ..strip }, 0));
        assert!(!words(Strip { rows: 1, ..strip }, 0));
        assert!(!words(Strip { pad: 16, ..strip }, 0));
        assert!(!words(Strip { columns: 40, ..strip }, 0));
        assert!(!words(Strip { destination_step: 136, ..strip }, 0));
        assert!(!words(Strip { destination_line: 1032, ..strip }, 0));

        let mut memory = Aligned([0; 4096]);
        let (source, destination) = (source.as_ptr(), memory.0.as_mut_ptr());
        let empty = Strip {
            lines: 1,
            destination_line: 0,
            source_step: PAGE,
            destination_step: PAGE,
            columns: 0,
            ..strip
        };
        let [nothing, copied] = [empty, strip].map(|strip| {
            let bytes = strip.columns;
            // SAFETY: as above; the empty one has no bytes.
            unsafe { run::<CopyRun<true>, Portable, 1>(&strip, bytes, source, destination) }
        });
        type Back = Deinterleave<2, 8, 1, false, true>;
        // SAFETY: as above.
        let taken_apart = unsafe { run::<Back, Portable, 2>(&strip, 64, source, destination) };
        // Of rows that short vectors are taken apart into, parts of lines would be under way.
        assert_eq!((nothing, copied, taken_apart), (true, true, false));
    }
}
