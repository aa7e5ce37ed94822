//! Numbers of one type into words of those of another one, and out of such words.
//!
//! Each lot of words is a loop that compilers make vectors of. Where lines are streamed, the lot is made in memory first.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::algorithm::Algorithm;
use super::carry::{Carry, Make, NEXT};
use super::scalar;
use super::vector::{LINE, Vector, stream_zeros};
use super::{BlockOp, Place, Runs, Strip};
use crate::conversion::{Convert, PartOfWord, Unaligned};

/// [`BlockOp::ConvertInterleave`] and its mirror.
pub(super) struct ConvertWords<W, const STREAM: bool>(PhantomData<W>);

/// Which of the two it is, and what becomes of the words of a block.
pub(super) trait Words {
    const OP: BlockOp;

    /// Does a block, and the padding behind it.
    ///
    /// # Safety
    ///
    /// It can be read and written.
    unsafe fn block(strip: &Strip, source: *const u8, destination: *mut u8);

    /// Streams blocks whose runs in the destination are whole lines, with their padding.
    ///
    /// # Safety
    ///
    /// That of [`Algorithm::vectors`], and all of these runs begin and end where lines do.
    unsafe fn stream_blocks<V: Vector>(
        strip: &Strip,
        fetched: Fetched,
        source: *const u8,
        destination: *mut u8,
    );
}

/// `WAYS` rows of numbers into words.
pub(super) struct ConvertInterleave<C, const WAYS: usize>(PhantomData<C>);

/// Words into `WAYS` rows of numbers.
pub(super) struct DeinterleaveConvert<C, const WAYS: usize>(PhantomData<C>);

impl<W: Words, const STREAM: bool> Algorithm for ConvertWords<W, STREAM> {
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: a block of the strip.
            unsafe { W::block(strip, source, destination) };
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
            // SAFETY: the same strip.
            return unsafe { Self::elements(strip, source, destination) };
        }
        // In the order in which it is written.
        let strip = &strip.along_runs(W::OP);
        if let (Some(read), Some(written)) =
            (strip.source_runs(W::OP), strip.destination_runs(W::OP))
        {
            let steps = strip.destination_line | strip.destination_step | written.stride;
            let bytes = written.bytes + strip.pad;
            if (destination.addr() | steps | bytes).is_multiple_of(LINE) {
                let fetched = Fetched::new(strip, read);
                // SAFETY: the same strip, whose runs are whole lines.
                return unsafe { W::stream_blocks::<V>(strip, fetched, source, destination) };
            }
        }
        if let Some(carry) = Carry::new(strip, W::OP) {
            // SAFETY: the same strip and op; a block is made whatever columns it has.
            return unsafe { carry.run::<Self, V>(strip, source, destination) };
        }
        // SAFETY: the same strip.
        unsafe { Self::elements(strip, source, destination) };
    }
}

impl<W: Words, const STREAM: bool> Make for ConvertWords<W, STREAM> {
    #[inline(always)]
    unsafe fn make<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
        // SAFETY: by the contract of this function.
        unsafe { W::block(strip, source, destination) };
    }
}

/// So many words are made, or taken apart, at a time.
const LOT: usize = 128;

/// So much is fetched ahead in runs that go on.
const AHEAD: usize = 1024;

/// And in rows from memory that are short and one run together, where prefetchers do not follow.
const AHEAD_IN_MEMORY: usize = 8192;

/// What is read of a row that is not there.
static ZEROS: [u32; LOT] = [0; LOT];

/// A lot of words or of numbers, before it is streamed.
#[repr(C, align(64))]
struct Made([u32; LOT]);

impl Made {
    fn zeros() -> Made {
        Made([0; LOT])
    }

    /// Streams its first bytes.
    ///
    /// # Safety
    ///
    /// They have been made, and can be written; they are whole vectors, at a multiple of a vector's bytes. The CPU has `V`.
    #[inline(always)]
    unsafe fn stream<V: Vector>(&self, bytes: usize, to: *mut u8) {
        let from = self.0.as_ptr().cast::<u8>();
        for at in (0..bytes).step_by(V::BYTES) {
            // SAFETY: a vector of what has been made.
            let vector = unsafe { V::load(from.wrapping_add(at)) };
            // SAFETY: by the contract of this function.
            unsafe { vector.stream(to.wrapping_add(at)) };
        }
    }
}

/// What is fetched while a strip is streamed: what is so far ahead in runs that go on with each other, into L1; of a short
/// strip, and where none go on, the same place of the next one, into L2.
#[derive(Clone, Copy)]
pub(super) enum Fetched {
    Ahead(usize),
    Next(usize),
    Nothing,
}

impl Fetched {
    #[inline(always)]
    fn new(strip: &Strip, read: Runs) -> Fetched {
        let block = read.bytes.saturating_mul(read.count);
        let all = block.saturating_mul(strip.lines).saturating_mul(strip.blocks);
        let steps = [strip.source_line, strip.source_step];
        // Of a dense block, all rows are one run.
        let is_dense = read.stride == read.bytes && steps.contains(&block);
        let goes_on = is_dense || steps.contains(&read.bytes);
        let is_from_memory = strip.is_far && !strip.core.follows_pages();
        let is_short = is_dense && block <= AHEAD_IN_MEMORY;
        let ahead = if is_short && is_from_memory { AHEAD_IN_MEMORY } else { AHEAD };
        match strip.next {
            0 if goes_on => Fetched::Ahead(ahead),
            0 => Fetched::Nothing,
            next if all <= NEXT => Fetched::Next(next),
            _ if goes_on => Fetched::Ahead(ahead),
            next => Fetched::Next(next),
        }
    }

    /// For what is being read, so many bytes.
    #[inline(always)]
    fn fetch<V: Vector>(self, at: *const u8, bytes: usize) {
        for line in (0..bytes).step_by(LINE) {
            let at = at.wrapping_add(line);
            match self {
                Fetched::Ahead(ahead) => V::prefetch::<1>(at.wrapping_add(ahead)),
                Fetched::Next(next) => V::prefetch::<2>(at.wrapping_add(next)),
                Fetched::Nothing => {}
            }
        }
    }
}

impl<C: Convert<To: PartOfWord>, const WAYS: usize> Words for ConvertInterleave<C, WAYS> {
    const OP: BlockOp = BlockOp::ConvertInterleave { conversion: C::CONVERSION };

    #[inline(always)]
    unsafe fn block(strip: &Strip, source: *const u8, destination: *mut u8) {
        let words = destination.cast::<Unaligned<u32>>();
        for at in (0..strip.columns).step_by(LOT) {
            let count = LOT.min(strip.columns - at);
            let rows = Self::rows(strip, source, at);
            // SAFETY: columns of the block, and their words.
            unsafe { make_words::<C, WAYS>(rows, count, words.wrapping_add(at)) };
        }
        // SAFETY: `pad` bytes follow the words of the block.
        unsafe { scalar::fill(words.wrapping_add(strip.columns).cast(), 0, strip.pad) };
    }

    #[inline(always)]
    unsafe fn stream_blocks<V: Vector>(
        strip: &Strip,
        fetched: Fetched,
        source: *const u8,
        destination: *mut u8,
    ) {
        // Prefetchers lose rows that are read by turns, of which four are too many in L3 as well.
        if !strip.core.follows_pages() && (strip.is_far || WAYS > 2) {
            // SAFETY: by the contract of this function.
            unsafe { Self::stream_words::<V, true>(strip, fetched, source, destination) };
        } else {
            // SAFETY: by the contract of this function.
            unsafe { Self::stream_words::<V, false>(strip, fetched, source, destination) };
        }
    }
}

impl<C: Convert<To: PartOfWord>, const WAYS: usize> ConvertInterleave<C, WAYS> {
    /// [`Words::stream_blocks`], a lot of each row after the other, or of all of them at once.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    unsafe fn stream_words<V: Vector, const BY_ROWS: bool>(
        strip: &Strip,
        fetched: Fetched,
        source: *const u8,
        destination: *mut u8,
    ) {
        let mut made = Made::zeros();
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let mut to = destination;
            for at in (0..strip.columns).step_by(LOT) {
                let count = LOT.min(strip.columns - at);
                let words = made.0.as_mut_ptr();
                for row in 0..WAYS.min(strip.rows) {
                    let numbers = Self::row(strip, source, row, at);
                    fetched.fetch::<V>(numbers.cast(), count * size_of::<C::From>());
                    if BY_ROWS {
                        // SAFETY: columns of the block, no more than there is room for.
                        unsafe { add_numbers::<C>(numbers, row, count, words) };
                    }
                }
                if !BY_ROWS {
                    let rows = Self::rows(strip, source, at);
                    // SAFETY: as above.
                    unsafe { make_words::<C, WAYS>(rows, count, words.cast()) };
                }
                // Only the last words are no whole lines perhaps; the padding that makes them so is there.
                let words = count * size_of::<u32>();
                let bytes = words.next_multiple_of(LINE);
                let behind = made.0.as_mut_ptr().cast::<u8>().wrapping_add(words);
                // SAFETY: a lot is whole lines, so there is room.
                unsafe { scalar::fill(behind, 0, bytes - words) };
                // SAFETY: what was made, to where a line begins.
                unsafe { made.stream::<V>(bytes, to) };
                to = to.wrapping_add(bytes);
            }
            let end = destination.wrapping_add(strip.columns * size_of::<u32>() + strip.pad);
            // SAFETY: the rest of the padding, which is whole lines.
            unsafe { stream_zeros::<V>(to, end.addr() - to.addr()) };
        }
    }
}

impl<C: Convert, const WAYS: usize> ConvertInterleave<C, WAYS> {
    /// Where a row of a block is, from that column on.
    #[inline(always)]
    fn row(strip: &Strip, source: *const u8, row: usize, at: usize) -> *const Unaligned<C::From> {
        let row = source.wrapping_add(row.wrapping_mul(strip.row_stride));
        row.cast::<Unaligned<C::From>>().wrapping_add(at)
    }

    /// Where the rows of a block are, from that column on, of which there is no more than a lot to be read.
    #[inline(always)]
    fn rows(strip: &Strip, source: *const u8, at: usize) -> [*const Unaligned<C::From>; WAYS] {
        const { assert!(size_of::<C::From>() <= size_of::<u32>(), "there are zeros for all") };
        let mut rows = [(&raw const ZEROS).cast::<Unaligned<C::From>>(); WAYS];
        for (row, first) in rows.iter_mut().enumerate().take(strip.rows) {
            *first = Self::row(strip, source, row, at);
        }
        rows
    }
}

/// The words of so many numbers of each row.
///
/// # Safety
///
/// So many can be read in each, and the words be written.
#[inline(always)]
unsafe fn make_words<C: Convert<To: PartOfWord>, const WAYS: usize>(
    rows: [*const Unaligned<C::From>; WAYS],
    count: usize,
    words: *mut Unaligned<u32>,
) {
    let words = words.cast::<MaybeUninit<_>>();
    // SAFETY: by the contract of this function; nobody else reads or writes them.
    let words = unsafe { std::slice::from_raw_parts_mut(words, count) };
    for (i, word) in words.iter_mut().enumerate() {
        let mut made = 0;
        for (row, numbers) in rows.iter().enumerate() {
            // SAFETY: by the contract of this function. Of slices, compilers ask for each number whether it is there.
            let number = unsafe { numbers.wrapping_add(i).read() };
            let number: u32 = C::convert(number.0).into();
            made |= number << (row * 8 * size_of::<C::To>());
        }
        word.write(Unaligned(made));
    }
}

/// Puts so many numbers of a row into words that have those of the rows before it.
///
/// # Safety
///
/// So many can be read, and as many words, which nobody else has and which are aligned, have been made before.
#[inline(always)]
unsafe fn add_numbers<C: Convert<To: PartOfWord>>(
    numbers: *const Unaligned<C::From>,
    row: usize,
    count: usize,
    words: *mut u32,
) {
    // SAFETY: by the contract of this function.
    let numbers = unsafe { std::slice::from_raw_parts(numbers, count) };
    // SAFETY: by the contract of this function.
    let words = unsafe { std::slice::from_raw_parts_mut(words, count) };
    for (number, word) in numbers.iter().zip(words) {
        let number: u32 = C::convert(number.0).into();
        let before = if row == 0 { 0 } else { *word };
        *word = before | number << (row * 8 * size_of::<C::To>());
    }
}

impl<C: Convert<From: PartOfWord>, const WAYS: usize> Words for DeinterleaveConvert<C, WAYS> {
    const OP: BlockOp = BlockOp::DeinterleaveConvert { conversion: C::CONVERSION };

    #[inline(always)]
    unsafe fn block(strip: &Strip, source: *const u8, destination: *mut u8) {
        let words = source.cast::<Unaligned<u32>>();
        for at in (0..strip.columns).step_by(LOT) {
            let count = LOT.min(strip.columns - at);
            for row in 0..WAYS.min(strip.rows) {
                let numbers = destination.wrapping_add(row.wrapping_mul(strip.row_stride));
                let numbers = numbers.cast::<Unaligned<C::To>>().wrapping_add(at);
                // SAFETY: words of the block, and columns of one of its rows.
                unsafe { take_numbers::<C>(words.wrapping_add(at), row, count, numbers) };
            }
        }
    }

    #[inline(always)]
    unsafe fn stream_blocks<V: Vector>(
        strip: &Strip,
        fetched: Fetched,
        source: *const u8,
        destination: *mut u8,
    ) {
        const { assert!(size_of::<C::To>() <= size_of::<u32>(), "there is room for a lot") };
        let mut made = Made::zeros();
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let words = source.cast::<Unaligned<u32>>();
            for at in (0..strip.columns).step_by(LOT) {
                let (count, words) = (LOT.min(strip.columns - at), words.wrapping_add(at));
                fetched.fetch::<V>(words.cast(), count * size_of::<u32>());
                for row in 0..WAYS.min(strip.rows) {
                    let numbers = made.0.as_mut_ptr().cast();
                    // SAFETY: words of the block, no more than there is room for.
                    unsafe { take_numbers::<C>(words, row, count, numbers) };
                    let to = destination.wrapping_add(row.wrapping_mul(strip.row_stride));
                    let to = to.wrapping_add(at * size_of::<C::To>());
                    // SAFETY: the columns of a row, which are whole lines, to where one begins.
                    unsafe { made.stream::<V>(count * size_of::<C::To>(), to) };
                }
            }
        }
    }
}

/// The numbers of a row out of so many words.
///
/// # Safety
///
/// These can be read, and so many numbers be written.
#[inline(always)]
unsafe fn take_numbers<C: Convert<From: PartOfWord>>(
    words: *const Unaligned<u32>,
    row: usize,
    count: usize,
    numbers: *mut Unaligned<C::To>,
) {
    // SAFETY: by the contract of this function.
    let words = unsafe { std::slice::from_raw_parts(words, count) };
    // SAFETY: by the contract of this function; nobody else reads or writes them.
    let numbers =
        unsafe { std::slice::from_raw_parts_mut(numbers.cast::<MaybeUninit<_>>(), count) };
    for (word, number) in words.iter().zip(numbers) {
        let word = word.0 >> (row * 8 * size_of::<C::From>());
        number.write(Unaligned(C::convert(C::From::of_word(word))));
    }
}
