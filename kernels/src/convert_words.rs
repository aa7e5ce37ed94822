//! Numbers of one type into words of those of another one, and out of such words.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::algorithm::Algorithm;
use super::carry::{Carry, Make};
use super::scalar;
use super::vector::Vector;
use super::{BlockOp, Place, Strip};
use crate::conversion::{Convert, PartOfWord, Unaligned};

/// [`BlockOp::ConvertInterleave`]: `WAYS` rows of numbers. The compiler makes vectors of its loop.
pub(super) struct ConvertInterleave<C, const WAYS: usize, const STREAM: bool>(PhantomData<C>);

/// [`BlockOp::DeinterleaveConvert`]: the mirror.
pub(super) struct DeinterleaveConvert<C, const WAYS: usize, const STREAM: bool>(PhantomData<C>);

/// So many words are made at a time.
const LOT: usize = 128;

/// A number that a row is read as which is not there.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Zeros([u8; LOT * 8]);

static ZEROS: Zeros = Zeros([0; LOT * 8]);

impl<C: Convert, const WAYS: usize, const STREAM: bool> Algorithm
    for ConvertInterleave<C, WAYS, STREAM>
where
    C::To: PartOfWord,
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: a block of the strip.
            unsafe { Self::block(strip, source, destination) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        let op = BlockOp::ConvertInterleave { conversion: C::CONVERSION };
        let strip = strip.along_runs(op);
        if STREAM && let Some(carry) = Carry::new(&strip, op) {
            // SAFETY: the same strip and op.
            return unsafe { carry.run::<Self, V>(&strip, source, destination) };
        }
        // SAFETY: the same strip.
        unsafe { Self::elements(&strip, source, destination) };
    }
}

impl<C: Convert, const WAYS: usize, const STREAM: bool> ConvertInterleave<C, WAYS, STREAM>
where
    C::To: PartOfWord,
{
    /// Does a block, and the padding behind it.
    ///
    /// # Safety
    ///
    /// It can be read and written.
    #[inline(always)]
    unsafe fn block(strip: &Strip, source: *const u8, destination: *mut u8) {
        let (columns, words) = (strip.columns, destination.cast::<Unaligned<u32>>());
        for at in (0..columns).step_by(LOT) {
            let count = LOT.min(columns - at);
            let mut rows = [(&raw const ZEROS).cast::<Unaligned<C::From>>(); WAYS];
            for (row, first) in rows.iter_mut().enumerate().take(strip.rows) {
                let row = source.wrapping_add(row.wrapping_mul(strip.row_stride));
                *first = row.cast::<Unaligned<_>>().wrapping_add(at);
            }
            let words = words.wrapping_add(at).cast::<MaybeUninit<_>>();
            // SAFETY: the words of these columns, which nobody else writes or reads.
            let words = unsafe { std::slice::from_raw_parts_mut(words, count) };
            // SAFETY: columns of each row of the block, or as many zeros.
            unsafe { make_words::<C, WAYS>(rows, words) };
        }
        // SAFETY: `pad` bytes follow the words of the block.
        unsafe { scalar::fill(words.wrapping_add(columns).cast(), 0, strip.pad) };
    }
}

impl<C: Convert, const WAYS: usize, const STREAM: bool> Make for ConvertInterleave<C, WAYS, STREAM>
where
    C::To: PartOfWord,
{
    #[inline(always)]
    unsafe fn make<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
        // SAFETY: by the contract of this function.
        unsafe { Self::block(strip, source, destination) };
    }
}

/// The words of as many numbers of each row.
///
/// # Safety
///
/// So many can be read in each.
#[inline(always)]
unsafe fn make_words<C: Convert<To: PartOfWord>, const WAYS: usize>(
    rows: [*const Unaligned<C::From>; WAYS],
    words: &mut [MaybeUninit<Unaligned<u32>>],
) {
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

impl<C: Convert, const WAYS: usize, const STREAM: bool> Algorithm
    for DeinterleaveConvert<C, WAYS, STREAM>
where
    C::From: PartOfWord,
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: a block of the strip.
            unsafe { Self::block(strip, source, destination) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        let op = BlockOp::DeinterleaveConvert { conversion: C::CONVERSION };
        if STREAM && let Some(carry) = Carry::new(strip, op) {
            // SAFETY: the same strip and op.
            return unsafe { carry.run::<Self, V>(strip, source, destination) };
        }
        // SAFETY: the same strip.
        unsafe { Self::elements(strip, source, destination) };
    }
}

impl<C: Convert, const WAYS: usize, const STREAM: bool> DeinterleaveConvert<C, WAYS, STREAM>
where
    C::From: PartOfWord,
{
    /// Does a block.
    ///
    /// # Safety
    ///
    /// It can be read and written.
    #[inline(always)]
    unsafe fn block(strip: &Strip, source: *const u8, destination: *mut u8) {
        let (columns, words) = (strip.columns, source.cast::<Unaligned<u32>>());
        for at in (0..columns).step_by(LOT) {
            let count = LOT.min(columns - at);
            // SAFETY: words of the block.
            let words = unsafe { std::slice::from_raw_parts(words.wrapping_add(at), count) };
            for row in 0..WAYS.min(strip.rows) {
                let first = destination.wrapping_add(row.wrapping_mul(strip.row_stride));
                let first = first.cast::<MaybeUninit<_>>().wrapping_add(at);
                // SAFETY: columns of a row of the block, which nobody else writes or reads.
                let numbers = unsafe { std::slice::from_raw_parts_mut(first, count) };
                take_numbers::<C>(words, row, numbers);
            }
        }
    }
}

impl<C: Convert, const WAYS: usize, const STREAM: bool> Make
    for DeinterleaveConvert<C, WAYS, STREAM>
where
    C::From: PartOfWord,
{
    #[inline(always)]
    unsafe fn make<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
        // SAFETY: by the contract of this function.
        unsafe { Self::block(strip, source, destination) };
    }
}

/// The numbers of a row out of as many words.
#[inline(always)]
fn take_numbers<C: Convert<From: PartOfWord>>(
    words: &[Unaligned<u32>],
    row: usize,
    numbers: &mut [MaybeUninit<Unaligned<C::To>>],
) {
    for (word, number) in words.iter().zip(numbers) {
        let word = word.0 >> (row * 8 * size_of::<C::From>());
        number.write(Unaligned(C::convert(C::From::of_word(word))));
    }
}
