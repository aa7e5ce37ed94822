//! Numbers of one type into numbers of another one.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::mem::MaybeUninit;

use super::algorithm::Algorithm;
use super::scalar;
use super::vector::{LINE, PAGE, Vector};
use super::walk::{Ahead, NEAR_AHEAD};
use super::{Place, Strip};
use crate::conversion::{Convert, Unaligned};

/// [`BlockOp::Convert`](super::BlockOp::Convert). The compiler makes vectors of its loop.
pub(super) struct ConvertRun<C, const STREAM: bool>(std::marker::PhantomData<C>);

impl<C: Convert, const STREAM: bool> Algorithm for ConvertRun<C, STREAM> {
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let (from, to) = (source.cast::<C::From>(), destination.cast::<C::To>());
            for i in 0..strip.columns {
                // SAFETY: one of the columns, whose bits are any.
                let number = unsafe { from.wrapping_add(i).read_unaligned() };
                // SAFETY: one of the columns.
                unsafe { to.wrapping_add(i).write_unaligned(C::convert(number)) };
            }
            // SAFETY: and `pad` behind them.
            unsafe { scalar::fill(to.wrapping_add(strip.columns).cast(), 0, strip.pad) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        if strip.columns < FEW {
            // SAFETY: the same contract.
            return unsafe { Self::elements(strip, source, destination) };
        }
        let ahead = Fetched::new(strip, size_of::<C::From>(), STREAM);
        let made_bytes = strip.columns.wrapping_mul(size_of::<C::To>());
        let are_joined = [strip.destination_step, strip.destination_line].contains(&made_bytes);
        let (mut line_from, mut line_to) = (source, destination);
        for _ in 0..strip.lines {
            let (mut from, mut to) = (line_from, line_to);
            for block in 0..strip.blocks {
                ahead.fetch::<V>(from, block);
                let run = Numbers::<C> { from: from.cast(), to: to.cast() };
                // SAFETY: the columns of a block; the CPU has `V`.
                let at = unsafe { run.lots::<V, STREAM>(strip.columns, &ahead, are_joined) };
                // SAFETY: the last of the columns, and `pad` behind them; the CPU has `V`.
                unsafe { run.rest::<V, STREAM>(at, strip.columns - at, strip.pad) };
                from = from.wrapping_add(strip.source_step);
                to = to.wrapping_add(strip.destination_step);
            }
            line_from = line_from.wrapping_add(strip.source_line);
            line_to = line_to.wrapping_add(strip.destination_line);
        }
    }
}

/// What is fetched before it is converted: of rows in memory that are apart, those some rows ahead, and with the last rows
/// what goes on behind the first ones; of a long run, what is ahead in it.
struct Fetched {
    /// None if 0.
    rows: usize,
    blocks: usize,
    run_bytes: usize,
    /// From a row to the one that is ahead, and what follows the first ones.
    to_row: usize,
    to_first: usize,
    is_of_run: bool,
    /// Whether memory is quicker by several pages in turns.
    by_pages: bool,
}

impl Fetched {
    #[inline(always)]
    fn new(strip: &Strip, width: usize, stream: bool) -> Self {
        let run_bytes = strip.columns.wrapping_mul(width);
        // Scratch memory needs none, and has no runs that are as long.
        let reads_memory = strip.next != 0 || run_bytes > LONG_RUN;
        let are_apart = strip.blocks > 1 && strip.source_step != run_bytes;
        let far = !stream && strip.is_far && strip.core.fetches_far_into_l1();
        let ahead = if far { FAR_AHEAD_BYTES } else { AHEAD_BYTES };
        let rows = if reads_memory && are_apart && run_bytes <= AHEAD_BYTES {
            // Behind the last of them is what comes next.
            (ahead / run_bytes.max(1)).min(strip.blocks)
        } else {
            0
        };
        let to_row = rows.wrapping_mul(strip.source_step);
        let block = strip.blocks.wrapping_mul(strip.source_step);
        Self {
            rows,
            blocks: strip.blocks,
            run_bytes,
            to_row,
            to_first: to_row.wrapping_sub(block).wrapping_add(strip.next),
            is_of_run: reads_memory && rows == 0,
            by_pages: strip.core.follows_pages(),
        }
    }

    #[inline(always)]
    fn fetch<V: Vector>(&self, row: *const u8, block: usize) {
        if self.rows > 0 {
            let is_within = block.wrapping_add(self.rows) < self.blocks;
            let ahead = Ahead::near(if is_within { self.to_row } else { self.to_first });
            ahead.fetch_bytes::<V, false>(row, self.run_bytes);
        }
    }
}

/// Fewer numbers than these are converted one by one.
const FEW: usize = 4;

/// So much of the rows ahead is fetched; and of what comes from memory and is not streamed, where L1 has room for more.
const AHEAD_BYTES: usize = 2048;
const FAR_AHEAD_BYTES: usize = 8192;

/// So many lines are streamed wherever they begin.
const LONG_LINES: usize = 64;

/// A run that is longer is in memory, whatever follows.
const LONG_RUN: usize = 128 << 10;

/// So many pages of a long run are converted in turns.
const PAGES: usize = 4;

/// So many numbers at most are converted before what is ahead of them is fetched, or they are streamed.
const CONVERTED: usize = 128;

/// Numbers of 8 bytes at most, between their conversion and their way to memory.
#[repr(align(64))]
struct Made([[MaybeUninit<u8>; 8]; CONVERTED]);

/// Where the numbers of a run are read, and where they are written.
struct Numbers<C: Convert> {
    from: *const Unaligned<C::From>,
    to: *mut Unaligned<C::To>,
}

impl<C: Convert> Numbers<C> {
    /// Converts whole lines of so many numbers, if they are streamed or what is ahead in their run is fetched, and returns
    /// at which number it stopped. Runs that are joined end where others begin.
    ///
    /// # Safety
    ///
    /// As of `convert`; the CPU has `V`.
    #[inline(always)]
    unsafe fn lots<V: Vector, const STREAM: bool>(
        &self,
        columns: usize,
        fetched: &Fetched,
        are_joined: bool,
    ) -> usize {
        let is_fetched = fetched.is_of_run;
        let of_line = LINE / size_of::<C::To>();
        // A run that begins within a line has two ends that are stored, which is too much of a short one, unless those
        // next to it have just brought these lines.
        let to = self.to.addr();
        let begins = to.is_multiple_of(LINE) || are_joined || columns >= LONG_LINES * of_line;
        let streams =
            STREAM && columns >= 2 * of_line && begins && to.is_multiple_of(size_of::<C::To>());
        if !streams && !is_fetched {
            return 0;
        }
        let mut at = 0;
        if streams {
            // Up to where lines begin.
            at = (self.to.cast::<u8>().align_offset(LINE) / size_of::<C::To>()).min(columns);
            // SAFETY: the first of the columns.
            unsafe { self.convert(0, at) };
        }
        // Some pages, as long as there are as many.
        let page = const {
            assert!(
                (PAGE / size_of::<C::From>()).is_multiple_of(CONVERTED),
                "a page is whole lots"
            );
            PAGE / size_of::<C::From>()
        };
        while streams && is_fetched && fetched.by_pages && columns - at >= PAGES * page {
            for first in (at..at + page).step_by(CONVERTED) {
                for lot in (first..first + PAGES * page).step_by(page) {
                    let from = self.from.wrapping_add(lot).cast();
                    let ahead = Ahead::near(PAGES * PAGE);
                    ahead.fetch_bytes::<V, false>(from, CONVERTED * size_of::<C::From>());
                    // SAFETY: so many columns are left, from where a line begins; the CPU has `V`.
                    unsafe { self.stream::<V>(lot, CONVERTED, 0) };
                }
            }
            at += PAGES * page;
        }
        // As many lines as there are.
        loop {
            let lot = ((columns - at) / of_line * of_line).min(CONVERTED);
            if lot == 0 {
                return at;
            }
            if is_fetched {
                let ahead = Ahead::near(2 * NEAR_AHEAD);
                let from = self.from.wrapping_add(at).cast();
                ahead.fetch_bytes::<V, false>(from, lot * size_of::<C::From>());
            }
            if streams {
                // SAFETY: so many columns are left, from where a line begins; the CPU has `V`.
                unsafe { self.stream::<V>(at, lot, 0) };
            } else {
                // SAFETY: so many columns are left.
                unsafe { self.convert(at, lot) };
            }
            at += lot;
        }
    }

    /// Converts the numbers that are left, and fills what is behind them with zeros: both by whole lines, if they are
    /// streamed and begin one.
    ///
    /// # Safety
    ///
    /// As of `convert`, with so many bytes behind them; the CPU has `V`.
    #[inline(always)]
    unsafe fn rest<V: Vector, const STREAM: bool>(&self, at: usize, count: usize, pad: usize) {
        let (to, width) = (self.to.wrapping_add(at).cast::<u8>(), size_of::<C::To>());
        let bytes = count * width;
        let lines = ((bytes + pad) / LINE * LINE).min(size_of::<Made>());
        if STREAM && at > 0 && bytes < LINE && lines > 0 && to.addr().is_multiple_of(LINE) {
            let zeros = lines - bytes;
            // SAFETY: the numbers and some of what is behind them, which are lines, and no more than `Made` has room for.
            unsafe { self.stream::<V>(at, count, zeros) };
            // SAFETY: what is left behind them.
            unsafe { scalar::fill(to.wrapping_add(lines), 0, pad - zeros) };
        } else {
            // SAFETY: the numbers.
            unsafe { self.convert(at, count) };
            // SAFETY: what is behind them.
            unsafe { scalar::fill(to.wrapping_add(bytes), 0, pad) };
        }
    }

    /// Converts so many numbers.
    ///
    /// # Safety
    ///
    /// They can be read, and as many be written, from `at` on; no byte of them is both.
    #[inline(always)]
    unsafe fn convert(&self, at: usize, count: usize) {
        // SAFETY: by the contract; numbers have any bits, and begin anywhere.
        let from = unsafe { std::slice::from_raw_parts(self.from.wrapping_add(at), count) };
        let to = self.to.wrapping_add(at).cast::<MaybeUninit<Unaligned<C::To>>>();
        // SAFETY: by the contract; nobody else writes what a kernel writes.
        let to = unsafe { std::slice::from_raw_parts_mut(to, count) };
        for (from, to) in from.iter().zip(to) {
            to.write(Unaligned(C::convert(from.0)));
        }
    }

    /// Converts so many numbers, [`CONVERTED`] at most, and streams them and the zeros behind them.
    ///
    /// # Safety
    ///
    /// As of `convert`, with so many zeros behind them; together they are whole lines, of which [`Made`] has room for all;
    /// the CPU has `V`.
    #[inline(always)]
    unsafe fn stream<V: Vector>(&self, at: usize, count: usize, zeros: usize) {
        let mut made = Made([[MaybeUninit::uninit(); 8]; CONVERTED]);
        let bytes = made.0.as_mut_ptr().cast::<u8>();
        let lot = Numbers::<C> { from: self.from.wrapping_add(at), to: bytes.cast() };
        // SAFETY: so many can be read, and there is room for them.
        unsafe { lot.convert(0, count) };
        let behind = count * size_of::<C::To>();
        // SAFETY: there is room for them.
        unsafe { scalar::fill(bytes.wrapping_add(behind), 0, zeros) };
        let to = self.to.wrapping_add(at).cast::<u8>();
        for byte in (0..behind + zeros).step_by(V::BYTES) {
            // SAFETY: as many vectors as there are numbers and zeros; the CPU has `V`.
            let vector = unsafe { V::load(bytes.cast_const().wrapping_add(byte)) };
            // SAFETY: as above, from an address that is a multiple of a vector's.
            unsafe { vector.stream(to.wrapping_add(byte)) };
        }
    }
}
