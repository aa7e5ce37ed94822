//! Runs of elements below a byte that begin at any of these into runs of bytes, and back: rows of packed host arrays,
//! which follow each other whatever their number of elements.
//!
//! Vectors that take [bits from anywhere](Vector::HAS_BIT_FIELDS) widen from where a run begins. Others begin at the first
//! whole byte of a run, as all do that narrow; what is before that, and behind the last one, goes eight elements at a time.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use super::algorithm::Algorithm;
use super::packed::{self, narrow_columns, widen_columns};
use super::scalar;
use super::vector::{LINE, Vector};
use super::{Place, Strip};

/// [`BlockOp::NarrowBits`](super::BlockOp::NarrowBits).
pub(super) struct NarrowBits<
    const BITS: u32,
    const TRUTH: bool,
    const MOST_FIRST: bool,
    const STREAM: bool,
>;

/// [`BlockOp::WidenBits`](super::BlockOp::WidenBits).
pub(super) struct WidenBits<const BITS: u32, const MOST_FIRST: bool>;

/// Of so many bits from where a strip begins, the whole bytes, modulo the size of an address, and the bits behind them.
#[inline(always)]
fn bytes_and_bits(at: usize) -> (usize, usize) {
    (at.cast_signed().div_euclid(8).cast_unsigned(), at % 8)
}

/// Of 1, 2 or 4 bits.
const fn width(bits: u32) -> u8 {
    match bits {
        1 => 1,
        2 => 2,
        _ => 4,
    }
}

/// How many elements of a run that begins at a bit of a byte are before its first whole one.
#[inline(always)]
fn before_whole_byte<const BITS: u32>(bit: usize) -> usize {
    (8 - bit) % 8 / BITS as usize
}

impl<const BITS: u32, const MOST_FIRST: bool> Algorithm for WidenBits<BITS, MOST_FIRST> {
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (from, bit, to) in Self::runs(strip, source, destination) {
            // SAFETY: a run of the strip.
            unsafe { scalar::widen_run::<BITS, MOST_FIRST>(strip.columns, from, bit, to) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        for (from, bit, to) in Self::runs(strip, source, destination) {
            if V::HAS_BIT_FIELDS {
                // SAFETY: a run of the strip; the CPU has `V`.
                unsafe { Self::by_fields::<V>(strip.columns, from, bit, to) };
            } else {
                // SAFETY: as above.
                unsafe { Self::from_whole_byte::<V>(strip.columns, from, bit, to) };
            }
        }
    }
}

impl<const BITS: u32, const MOST_FIRST: bool> WidenBits<BITS, MOST_FIRST> {
    /// Where each run begins: the byte and the bit of it, and the byte of the destination.
    #[inline(always)]
    fn runs(
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
    ) -> impl Iterator<Item = (*const u8, usize, *mut u8)> {
        let first = usize::from(strip.source_bit);
        strip.places().map(move |place| {
            let (bytes, bit) = bytes_and_bits(place.source.wrapping_add(first));
            (source.wrapping_add(bytes), bit, destination.wrapping_add(place.destination))
        })
    }

    /// In a line, bytes of which each eighth has those that eight elements come from.
    const SPREAD: [u8; LINE] = {
        let (mut bytes, mut i) = ([0; LINE], 0_u8);
        while (i as usize) < LINE {
            bytes[i as usize] = i / 8 * width(BITS) + i % 8;
            i += 1;
        }
        bytes
    };

    /// Where each element then begins in its eighth, in bits, if the first one does so at each bit of a byte.
    const FIELDS: [[u8; LINE]; 8] = {
        let (mut fields, mut bit) = ([[0; LINE]; 8], 0_u8);
        while bit < 8 {
            let mut i = 0_u8;
            while (i as usize) < LINE {
                let at = bit + i % 8 * width(BITS);
                let most_first = at - at % 8 + (8 - width(BITS) - at % 8);
                fields[bit as usize][i as usize] = if MOST_FIRST { most_first } else { at };
                i += 1;
            }
            // Elements begin at multiples of their bits.
            bit += width(BITS);
        }
        fields
    };

    /// From where it begins.
    ///
    /// # Safety
    ///
    /// The bytes of the run can be read, `columns` bytes be written. The CPU has `V`, which takes bits from anywhere.
    #[inline(always)]
    unsafe fn by_fields<V: Vector>(columns: usize, from: *const u8, bit: usize, to: *mut u8) {
        // SAFETY: a line; the CPU has `V`.
        let spread = unsafe { V::load(const { Self::SPREAD }.as_ptr()) };
        // SAFETY: a line.
        let fields = unsafe { V::load(const { &Self::FIELDS }[bit % 8].as_ptr()) };
        // SAFETY: the CPU has `V`.
        let mask = unsafe { V::splat(0xff >> (8 - BITS)) };
        let widened = |from: *const u8, count: usize| {
            let bytes = (bit + count * BITS as usize).div_ceil(8);
            // SAFETY: so many bytes have a bit of so many elements.
            let packed = unsafe { V::gather_pieces::<LINE>(from, 0, bytes) };
            packed.shuffle(spread).bit_fields(fields).and(mask)
        };
        let (mut from, mut to, mut left) = (from, to, columns);
        while left >= LINE {
            // SAFETY: so many columns are left.
            unsafe { widened(from, LINE).store(to) };
            (from, to) = (from.wrapping_add(LINE / 8 * BITS as usize), to.wrapping_add(LINE));
            left -= LINE;
        }
        if left > 0 {
            // SAFETY: as above.
            unsafe { widened(from, left).scatter_pieces::<LINE>(to, 0, left) };
        }
    }

    /// From the first whole byte on by vectors.
    ///
    /// # Safety
    ///
    /// The bytes of the run can be read, `columns` bytes be written. The CPU has `V`.
    #[inline(always)]
    unsafe fn from_whole_byte<V: Vector>(columns: usize, from: *const u8, bit: usize, to: *mut u8) {
        let head = before_whole_byte::<BITS>(bit);
        if columns < head + packed::least_columns::<V>(BITS) {
            // SAFETY: the same run.
            return unsafe { scalar::widen_run::<BITS, MOST_FIRST>(columns, from, bit, to) };
        }
        // SAFETY: the first elements of the run.
        unsafe { scalar::widen_run::<BITS, MOST_FIRST>(head, from, bit, to) };
        let (from, to) = (from.wrapping_add(bit.div_ceil(8)), to.wrapping_add(head));
        // SAFETY: those behind them, the first of which begins a byte; the CPU has `V`.
        unsafe { widen_columns::<V, BITS, MOST_FIRST>(from, to, columns - head) };
    }
}

impl<const BITS: u32, const TRUTH: bool, const MOST_FIRST: bool, const STREAM: bool> Algorithm
    for NarrowBits<BITS, TRUTH, MOST_FIRST, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (from, to, bit) in Self::runs(strip, source, destination) {
            // SAFETY: a run of the strip.
            unsafe { Self::few(strip.columns, from, to, bit) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        for (from, to, bit) in Self::runs(strip, source, destination) {
            let head = before_whole_byte::<BITS>(bit);
            let least =
                if V::HAS_BIT_FIELDS { LEAST_BY_MASKS } else { packed::least_columns::<V>(BITS) };
            if strip.columns < head + least {
                // SAFETY: a run of the strip.
                unsafe { Self::few(strip.columns, from, to, bit) };
                continue;
            }
            if head > 0 {
                // SAFETY: the first elements of the run.
                unsafe { Self::few(head, from, to, bit) };
            }
            let (from, to) = (from.wrapping_add(head), to.wrapping_add(bit.div_ceil(8)));
            let columns = strip.columns - head;
            let whole = columns - columns % (8 / BITS as usize);
            // SAFETY: whole bytes of the run; the CPU has `V`.
            unsafe { Self::whole_bytes::<V>(whole, from, to) };
            if whole < columns {
                let to = to.wrapping_add(whole * BITS as usize / 8);
                // SAFETY: the elements behind them.
                unsafe { Self::few(columns - whole, from.wrapping_add(whole), to, 0) };
            }
        }
    }
}

/// Shorter runs are narrowed eight elements at a time, which takes less than masks up to here.
const LEAST_BY_MASKS: usize = 12;

impl<const BITS: u32, const TRUTH: bool, const MOST_FIRST: bool, const STREAM: bool>
    NarrowBits<BITS, TRUTH, MOST_FIRST, STREAM>
{
    /// Where each run begins, and the byte of the destination and the bit of it.
    #[inline(always)]
    fn runs(
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
    ) -> impl Iterator<Item = (*const u8, *mut u8, usize)> {
        let first = usize::from(strip.destination_bit);
        strip.places().map(move |place| {
            let (bytes, bit) = bytes_and_bits(place.destination.wrapping_add(first));
            (source.wrapping_add(place.source), destination.wrapping_add(bytes), bit)
        })
    }

    /// Eight elements at a time; the other bits of the first and the last byte stay.
    ///
    /// # Safety
    ///
    /// `columns` bytes can be read, and the bytes that take them be read and written.
    #[inline(always)]
    unsafe fn few(columns: usize, from: *const u8, to: *mut u8, bit: usize) {
        // SAFETY: by the contract of this function.
        unsafe { scalar::narrow_run::<BITS, TRUTH, MOST_FIRST, false>(columns, from, to, bit) };
    }

    /// Elements that fill whole bytes.
    ///
    /// # Safety
    ///
    /// `columns` bytes can be read, and the bytes that take them written. The CPU has `V`.
    #[inline(always)]
    unsafe fn whole_bytes<V: Vector>(columns: usize, from: *const u8, to: *mut u8) {
        if !V::HAS_BIT_FIELDS {
            // SAFETY: the same bytes.
            return unsafe {
                narrow_columns::<V, BITS, TRUTH, MOST_FIRST, STREAM>(from, to, columns)
            };
        }
        // SAFETY: as above.
        let mut at = unsafe {
            packed::narrow_vectors::<V, BITS, TRUTH, MOST_FIRST, STREAM>(from, to, 0, columns)
        };
        while at < columns {
            let count = (columns - at).min(LINE);
            // SAFETY: so many columns are left.
            let bytes = unsafe { V::gather_pieces::<LINE>(from.wrapping_add(at), 0, count) };
            // SAFETY: the CPU has `V`.
            let packed = unsafe { packed::narrow_one::<V, BITS, TRUTH, MOST_FIRST>(bytes) };
            let to = to.wrapping_add(at / 8 * BITS as usize);
            // SAFETY: so many bytes take them.
            unsafe { packed.scatter_pieces::<LINE>(to, 0, count * BITS as usize / 8) };
            at += LINE;
        }
    }
}
