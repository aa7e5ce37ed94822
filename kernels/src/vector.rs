//! What an instruction set has to offer, and the networks that all block ops are made of.
//!
//! It has a [`Vector`]: loads, stores, a few operations on bits, and the zip. A zip takes two vectors and alternates their
//! elements:
//!
//! ```text
//! a0 a1 a2 a3        a0 b0 a1 b1
//! b0 b1 b2 b3   to   a2 b2 a3 b3
//! ```
//!
//! All that is to be done to layouts is a network of zips. Let row i of 2k rows
//! be zipped with row i + k, and the results lie in order:
//!
//! ```text
//! r0 ┐          ┌ a        r0 r2 r0 r2 ..  ┐          r0 r1 r2 r3  r0 r1 ..
//! r1 ├  zip  →  │ b        (r0 with r2)    ├  zip  →  words of 4 rows, in the
//! r2 │          │ c        r1 r3 r1 r3 ..  │          order of their columns
//! r3 ┘          └ d        (r1 with r3)    ┘
//! ```
//!
//! After log2(2k) rounds, word by word, element i of every row stands beside
//! those of the other rows: the rows are interleaved. With as many rows as a
//! vector has elements, that is a transpose. The rounds backwards, with unzips,
//! take interleaved rows apart. Where vectors have [halves](Vector::HAS_HALVES), all rounds
//! are within these, and one exchange puts them in order.
#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use super::algorithm::{Apart, Body};
use super::{Run, Strip, packed_rows, scalar};
use crate::cpu::Core;

/// A vector of an instruction set.
///
/// There is a value of it only where the CPU has the instructions, because
/// [`load`](Vector::load) and [`splat`](Vector::splat), which make one, demand
/// it. So what works on values alone is safe. `BITS` is the width of an element:
/// 8, 16, 32 or 64.
pub(super) trait Vector: Copy {
    const BYTES: usize;

    /// A vector of half as many bytes, of the same instructions; itself where
    /// there is none.
    type Half: Vector;
    const IS_SHORTEST: bool = Self::Half::BYTES == Self::BYTES;

    /// The function of a body, compiled with the instructions.
    fn compiled<B: Body>() -> Run;

    /// Does something in a function of its own, compiled with the instructions.
    ///
    /// # Safety
    ///
    /// What it says of itself. The CPU has the instructions.
    unsafe fn apart<A: Apart>(what: A);

    /// # Safety
    ///
    /// The CPU has the instructions, and `BYTES` bytes can be read.
    unsafe fn load(from: *const u8) -> Self;

    /// # Safety
    ///
    /// The CPU has the instructions.
    unsafe fn splat(byte: u8) -> Self;

    /// # Safety
    ///
    /// `BYTES` bytes can be written.
    unsafe fn store(self, to: *mut u8);

    /// Stores past the caches (a streaming, non-temporal store), where there is an instruction for that.
    ///
    /// # Safety
    ///
    /// `BYTES` bytes can be written, at an address that is a multiple of `BYTES`.
    unsafe fn stream(self, to: *mut u8);

    /// Fetches the line of an address, if there is one, into the cache of that level: 1,
    /// from which vectors are loaded, or 2, which asks memory for more lines at a time.
    fn prefetch<const LEVEL: u32>(at: *const u8);

    /// The last `count` bytes of this vector, then the first ones of the other one: from 0 to
    /// `BYTES - 1`.
    fn join(self, other: Self, count: usize) -> Self;

    fn zip<const BITS: u32>(self, other: Self) -> (Self, Self);
    fn unzip<const BITS: u32>(self, other: Self) -> (Self, Self);

    /// Zips each quarter of 64 bytes, or half of 32, with the one at the same place.
    #[inline(always)]
    fn zip_within<const BITS: u32>(self, other: Self) -> (Self, Self) {
        const { assert!(Self::BYTES == SHORTEST, "longer ones have several") };
        self.zip::<BITS>(other)
    }

    /// Whether zips are made of those [within](Vector::zip_within) the halves, and of an
    /// [exchange](Vector::exchange_halves) of these, which is done once for several rounds.
    const HAS_HALVES: bool = false;

    /// The inverse of [`zip_within`](Vector::zip_within). Only where there [are](Vector::HAS_HALVES) halves.
    #[inline(always)]
    fn unzip_within<const BITS: u32>(self, other: Self) -> (Self, Self) {
        debug_assert!(false, "no zip is made of halves");
        (self, other)
    }

    /// The first halves of both, and the second ones. Only where there are halves, or [bit fields](Vector::HAS_BIT_FIELDS).
    #[inline(always)]
    fn exchange_halves(self, other: Self) -> (Self, Self) {
        debug_assert!(false, "no zip is made of halves");
        (self, other)
    }

    /// Every other 16 bytes of two vectors, and those between. Only with [masks](Vector::HAS_MASKS).
    #[inline(always)]
    fn unzip_quarters(self, other: Self) -> (Self, Self) {
        debug_assert!(false, "there are no masks");
        (self, other)
    }

    /// Whether less than 16 bytes of a place can be [gathered](Vector::gather) and scattered.
    const HAS_MASKS: bool = false;

    /// Loads `count` bytes, up to 16, and zeros behind them, from each of as many places as it has room for, which are
    /// so far apart. Without [masks](Vector::HAS_MASKS) it is 16.
    ///
    /// # Safety
    ///
    /// The CPU has the instructions, and these bytes can be read.
    #[inline(always)]
    unsafe fn gather(first: *const u8, _apart: usize, count: usize) -> Self {
        const { assert!(Self::BYTES == SHORTEST, "longer ones have several") };
        debug_assert_eq!(count, SHORTEST);
        // SAFETY: the one place.
        unsafe { Self::load(first) }
    }

    /// Stores the first `count` bytes of each 16 to such places, one after the other: where they overlap, later ones stay.
    ///
    /// # Safety
    ///
    /// These bytes can be written.
    #[inline(always)]
    unsafe fn scatter(self, first: *mut u8, _apart: usize, count: usize) {
        const { assert!(Self::BYTES == SHORTEST, "longer ones have several") };
        debug_assert_eq!(count, SHORTEST);
        // SAFETY: the one place.
        unsafe { self.store(first) };
    }

    /// [Gathers](Vector::gather) from `SIZE` bytes of a place: half as many as a vector has, or all. Only with
    /// [masks](Vector::HAS_MASKS).
    ///
    /// # Safety
    ///
    /// The CPU has the instructions, and `count` bytes can be read at each place, or that size if it is less.
    #[inline(always)]
    unsafe fn gather_pieces<const SIZE: usize>(
        _first: *const u8,
        _apart: usize,
        _count: usize,
    ) -> Self {
        debug_assert!(false, "there are no masks");
        // SAFETY: by the contract of this function.
        unsafe { Self::splat(0) }
    }

    /// Scatters to such places.
    ///
    /// # Safety
    ///
    /// These bytes can be written.
    #[inline(always)]
    unsafe fn scatter_pieces<const SIZE: usize>(
        self,
        _first: *mut u8,
        _apart: usize,
        _count: usize,
    ) {
        debug_assert!(false, "there are no masks");
    }

    /// Interleaves four rows of bytes: four zips, where there is no shorter way.
    #[inline(always)]
    fn interleave_bytes(rows: [Self; 4]) -> [Self; 4] {
        weave_by_zips::<Self, 4, 8>(rows)
    }

    /// The inverse of [`interleave_bytes`](Vector::interleave_bytes).
    #[inline(always)]
    fn deinterleave_bytes(words: [Self; 4]) -> [Self; 4] {
        unweave_by_zips::<Self, 4, 8>(words)
    }

    /// Bytes of the columns of eight rows of elements of one bit, from the bytes of the rows: by
    /// squares of bits, where there is no shorter way.
    #[inline(always)]
    fn interleave_bits<const MOST_FIRST: bool>(rows: [Self; 8]) -> [Self; 8] {
        packed_rows::bytes_by_squares::<Self, 8, 1, MOST_FIRST>(rows)
    }

    /// The inverse of [`interleave_bits`](Vector::interleave_bits).
    #[inline(always)]
    fn deinterleave_bits<const MOST_FIRST: bool>(bytes: [Self; 8]) -> [Self; 8] {
        packed_rows::rows_by_squares::<Self, 8, 1, MOST_FIRST>(bytes)
    }

    /// Interleaves 16 rows of 32 bits, which turns them where a vector has 16: four
    /// rounds of zips, where there is no shorter way.
    #[inline(always)]
    fn turn_words(rows: [Self; 16]) -> [Self; 16] {
        weave_by_zips::<Self, 16, 32>(rows)
    }

    /// How many bytes at a time [`shuffle`](Vector::shuffle) goes to; 0 where there is no instruction for it.
    const REACH: usize;

    /// Byte i of each part of `REACH` bytes becomes the one whose number `order` has there.
    fn shuffle(self, order: Self) -> Self;

    /// Loads parts of `REACH` bytes, which begin so far from each other.
    ///
    /// # Safety
    ///
    /// The CPU has the instructions, and these parts can be read.
    #[inline(always)]
    unsafe fn load_parts(from: *const u8, _apart: usize) -> Self {
        // SAFETY: one part.
        unsafe { Self::load(from) }
    }

    /// Stores them.
    ///
    /// # Safety
    ///
    /// These parts can be written.
    #[inline(always)]
    unsafe fn store_parts(self, to: *mut u8, _apart: usize) {
        // SAFETY: one part.
        unsafe { self.store(to) };
    }

    /// Whether there are [`bit_fields`](Vector::bit_fields): in vectors of a line that have [masks](Vector::HAS_MASKS) and
    /// shuffle all of it.
    const HAS_BIT_FIELDS: bool = false;

    /// Each byte becomes eight bits of the eight bytes it is one of, from the bit on whose number `fields` has there, and
    /// from the first on behind the last.
    #[inline(always)]
    fn bit_fields(self, _fields: Self) -> Self {
        debug_assert!(false, "there is no instruction for them");
        self
    }

    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// Whether there is an instruction that takes some bits from one vector and the others from another one, which
    /// compilers make of [`and`](Vector::and) and [`or`](Vector::or).
    const SELECTS: bool = false;
    /// The least of each pair of bytes.
    fn min(self, other: Self) -> Self;
    /// Shifts each 16 bits to the more significant ones.
    fn shl<const BY: i32>(self) -> Self;
    /// Shifts each 16 bits to the less significant ones.
    fn shr<const BY: i32>(self) -> Self;
}

/// For each number below a count, which is 16 at most. No loop: one that the compiler does not unroll keeps all
/// vectors in memory.
macro_rules! unrolled {
    ($i:ident in $count:ident, $body:expr) => {
        unrolled!($i in $count, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    ($i:ident in $count:ident, $body:expr, $($number:literal)+) => {
        $(
            if $number < $count {
                let $i = $number;
                $body
            }
        )+
    };
}
pub(super) use unrolled;

/// [`Vector::join`] of vectors of 16 bytes.
#[inline(always)]
pub(super) fn join_by_shifts<V: Vector>(last: V, first: V, count: usize) -> V {
    const { assert!(V::BYTES == 16, "as many as a u128 has") };
    let bits = |vector: V| {
        let mut bytes = [0; 16];
        // SAFETY: memory for 16 bytes.
        unsafe { vector.store(bytes.as_mut_ptr()) };
        u128::from_le_bytes(bytes)
    };
    let skipped = u32::try_from(128 - 8 * count).unwrap_or_default();
    let joined = bits(last).unbounded_shr(skipped) | bits(first) << (8 * count);
    // SAFETY: 16 bytes; the CPU has `V`, as there are values of it.
    unsafe { V::load(joined.to_le_bytes().as_ptr()) }
}

/// The last `count` bytes before `end`, and zeros behind them. Not loaded from where they are put
/// together: what has just been stored in parts cannot be loaded as a whole before the core has
/// finished with it.
///
/// # Safety
///
/// As many bytes as a vector has can be read before `end`; `count` is less, but not 0. The CPU has
/// `V`.
#[inline(always)]
pub(super) unsafe fn load_end<V: Vector>(end: *const u8, count: usize) -> V {
    // SAFETY: the last vector before the end.
    let last = unsafe { V::load(end.wrapping_sub(V::BYTES)) };
    // SAFETY: the CPU has `V`.
    last.join(unsafe { V::splat(0) }, count)
}

/// Fewer bytes than a vector has, and zeros behind them.
///
/// # Safety
///
/// `count` bytes can be read, which are fewer than `V::BYTES`. The CPU has `V`.
#[inline(always)]
pub(super) unsafe fn load_short<V: Vector>(from: *const u8, count: usize) -> V {
    let mut line = [0; LINE];
    // SAFETY: fewer bytes than there is room for, as no vector is longer than a line.
    unsafe { scalar::less_than_line(from, line.as_mut_ptr(), count) };
    // SAFETY: a line; the CPU has `V`.
    unsafe { V::load(line.as_ptr()) }
}

/// Stores, streaming where `STREAM` says so.
///
/// # Safety
///
/// `V::BYTES` bytes can be written, and for `STREAM` they are aligned.
#[inline(always)]
pub(super) unsafe fn put<V: Vector, const STREAM: bool>(vector: V, to: *mut u8) {
    if STREAM {
        // SAFETY: by the contract of this function.
        unsafe { vector.stream(to) };
    } else {
        // SAFETY: by the contract of this function.
        unsafe { vector.store(to) };
    }
}

/// Whether every block of a strip begins where a vector can be streamed to, and so does what is some times as far from
/// there in the destination as a number, which may be several ones by `|`.
#[inline(always)]
pub(super) fn streams<V: Vector>(strip: &Strip, destination: *mut u8, far: usize) -> bool {
    let steps = strip.destination_line | strip.destination_step | far;
    (destination.addr() | steps).is_multiple_of(V::BYTES)
}

/// Whether blocks with less data than a vector has are streamed with their padding, where
/// [`has_whole_end`] says that they can be. Zen 4 writes them as fast in the ordinary way.
#[inline(always)]
pub(super) fn streams_short(strip: &Strip) -> bool {
    strip.core != Core::Zen4
}

/// Whether the blocks of a strip, which have so many bytes of data, end in padding and where a
/// vector does that is streamed. Then what is left of the data is streamed with the padding: a
/// line of which a part is stored in the ordinary way holds up all that is streamed beside it.
#[inline(always)]
pub(super) fn has_whole_end<V: Vector>(strip: &Strip, data: usize) -> bool {
    strip.pad > 0 && (data + strip.pad).is_multiple_of(V::BYTES)
}

/// Streams zeros.
///
/// # Safety
///
/// So many bytes can be written, which are whole aligned vectors. The CPU has `V`.
#[inline(always)]
pub(super) unsafe fn stream_zeros<V: Vector>(to: *mut u8, count: usize) {
    // SAFETY: the CPU has `V`.
    let zeros = unsafe { V::splat(0) };
    for at in (0..count).step_by(V::BYTES) {
        // SAFETY: one of these vectors.
        unsafe { zeros.stream(to.wrapping_add(at)) };
    }
}

/// Interleaves `WAYS` rows.
#[inline(always)]
pub(super) fn weave<V: Vector, const WAYS: usize, const BITS: u32>(
    mut rows: [V; WAYS],
) -> [V; WAYS] {
    if BITS < 8 {
        return packed_rows::weave::<V, WAYS, BITS>(rows);
    }
    if WAYS == 4 && BITS == 8 {
        let four = V::interleave_bytes([rows[0], rows[1], rows[2], rows[3]]);
        rows.copy_from_slice(&four);
        return rows;
    }
    if let (16, 32, Ok(words)) = (WAYS, BITS, <&[V; 16]>::try_from(rows.as_slice())) {
        let turned = V::turn_words(*words);
        rows.copy_from_slice(&turned);
        return rows;
    }
    if let (8, 8, Ok(bytes)) = (WAYS, BITS, <&[V; 8]>::try_from(rows.as_slice())) {
        let words = weave_eight_bytes(bytes);
        rows.copy_from_slice(&words);
        return rows;
    }
    if let (16, 8, Ok(bytes)) = (WAYS, BITS, <&[V; 16]>::try_from(rows.as_slice())) {
        let words = weave_sixteen_bytes(bytes);
        rows.copy_from_slice(&words);
        return rows;
    }
    weave_by_zips::<V, WAYS, BITS>(rows)
}

/// Takes interleaved rows apart: the inverse of [`weave`].
#[inline(always)]
pub(super) fn unweave<V: Vector, const WAYS: usize, const BITS: u32>(
    mut rows: [V; WAYS],
) -> [V; WAYS] {
    if WAYS == 4 && BITS == 8 {
        let four = V::deinterleave_bytes([rows[0], rows[1], rows[2], rows[3]]);
        rows.copy_from_slice(&four);
        return rows;
    }
    if let (8, 8, Ok(words)) = (WAYS, BITS, <&[V; 8]>::try_from(rows.as_slice())) {
        let bytes = unweave_eight_bytes(words);
        rows.copy_from_slice(&bytes);
        return rows;
    }
    if let (16, 8, Ok(words)) = (WAYS, BITS, <&[V; 16]>::try_from(rows.as_slice())) {
        let bytes = unweave_sixteen_bytes(words);
        rows.copy_from_slice(&bytes);
        return rows;
    }
    unweave_by_zips::<V, WAYS, BITS>(rows)
}

/// Interleaves eight rows of bytes: four at a time, which makes words, and then these.
#[inline(always)]
fn weave_eight_bytes<V: Vector>(rows: &[V; 8]) -> [V; 8] {
    let a = V::interleave_bytes([rows[0], rows[1], rows[2], rows[3]]);
    let b = V::interleave_bytes([rows[4], rows[5], rows[6], rows[7]]);
    let mut words = *rows;
    for i in 0..4 {
        (words[2 * i], words[2 * i + 1]) = a[i].zip::<32>(b[i]);
    }
    words
}

/// The inverse of [`weave_eight_bytes`].
#[inline(always)]
fn unweave_eight_bytes<V: Vector>(words: &[V; 8]) -> [V; 8] {
    let (mut a, mut b) = ([words[0]; 4], [words[0]; 4]);
    for i in 0..4 {
        (a[i], b[i]) = words[2 * i].unzip::<32>(words[2 * i + 1]);
    }
    let (a, b) = (V::deinterleave_bytes(a), V::deinterleave_bytes(b));
    [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]]
}

/// Interleaves 16 rows of bytes: four at a time, which makes words, and then these.
#[inline(always)]
fn weave_sixteen_bytes<V: Vector>(rows: &[V; 16]) -> [V; 16] {
    let a = V::interleave_bytes([rows[0], rows[1], rows[2], rows[3]]);
    let b = V::interleave_bytes([rows[4], rows[5], rows[6], rows[7]]);
    let c = V::interleave_bytes([rows[8], rows[9], rows[10], rows[11]]);
    let d = V::interleave_bytes([rows[12], rows[13], rows[14], rows[15]]);
    let first = weave_by_zips::<V, 4, 32>([a[0], b[0], c[0], d[0]]);
    let second = weave_by_zips::<V, 4, 32>([a[1], b[1], c[1], d[1]]);
    let third = weave_by_zips::<V, 4, 32>([a[2], b[2], c[2], d[2]]);
    let fourth = weave_by_zips::<V, 4, 32>([a[3], b[3], c[3], d[3]]);
    sixteen(first, second, third, fourth)
}

/// The inverse of [`weave_sixteen_bytes`].
#[inline(always)]
fn unweave_sixteen_bytes<V: Vector>(words: &[V; 16]) -> [V; 16] {
    let a = unweave_by_zips::<V, 4, 32>([words[0], words[1], words[2], words[3]]);
    let b = unweave_by_zips::<V, 4, 32>([words[4], words[5], words[6], words[7]]);
    let c = unweave_by_zips::<V, 4, 32>([words[8], words[9], words[10], words[11]]);
    let d = unweave_by_zips::<V, 4, 32>([words[12], words[13], words[14], words[15]]);
    let first = V::deinterleave_bytes([a[0], b[0], c[0], d[0]]);
    let second = V::deinterleave_bytes([a[1], b[1], c[1], d[1]]);
    let third = V::deinterleave_bytes([a[2], b[2], c[2], d[2]]);
    let fourth = V::deinterleave_bytes([a[3], b[3], c[3], d[3]]);
    sixteen(first, second, third, fourth)
}

#[inline(always)]
fn sixteen<V: Vector>(a: [V; 4], b: [V; 4], c: [V; 4], d: [V; 4]) -> [V; 16] {
    [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3], c[0], c[1], c[2], c[3], d[0], d[1], d[2], d[3]]
}

/// Interleaves `WAYS` rows: see the module.
#[inline(always)]
fn weave_by_zips<V: Vector, const WAYS: usize, const BITS: u32>(mut rows: [V; WAYS]) -> [V; WAYS] {
    let mut words = 1;
    while words < WAYS {
        let old = rows;
        for i in 0..WAYS / 2 {
            let (first, second) = (old[i], old[i + WAYS / 2]);
            (rows[2 * i], rows[2 * i + 1]) = if V::HAS_HALVES {
                first.zip_within::<BITS>(second)
            } else {
                first.zip::<BITS>(second)
            };
        }
        words *= 2;
    }
    if V::HAS_HALVES {
        let old = rows;
        for i in 0..WAYS / 2 {
            (rows[i], rows[i + WAYS / 2]) = old[2 * i].exchange_halves(old[2 * i + 1]);
        }
    }
    rows
}

/// The most elements that 16 bytes have.
pub(super) const MOST_WITHIN: usize = 16;

/// Turns as many rows as 16 bytes have elements, in each quarter or half of the vectors.
#[inline(always)]
pub(super) fn turn_within<V: Vector, const BITS: u32>(
    mut rows: [V; MOST_WITHIN],
) -> [V; MOST_WITHIN] {
    let half = 64 / BITS as usize;
    let mut words = 1;
    while words < 2 * half {
        let old = rows;
        for i in 0..half {
            (rows[2 * i], rows[2 * i + 1]) = old[i].zip_within::<BITS>(old[i + half]);
        }
        words *= 2;
    }
    rows
}

/// The inverse of [`weave_by_zips`].
#[inline(always)]
fn unweave_by_zips<V: Vector, const WAYS: usize, const BITS: u32>(
    mut rows: [V; WAYS],
) -> [V; WAYS] {
    if V::HAS_HALVES {
        let old = rows;
        for i in 0..WAYS / 2 {
            (rows[2 * i], rows[2 * i + 1]) = old[i].exchange_halves(old[i + WAYS / 2]);
        }
    }
    let mut words = 1;
    while words < WAYS {
        let old = rows;
        for i in 0..WAYS / 2 {
            let (first, second) = (old[2 * i], old[2 * i + 1]);
            (rows[i], rows[i + WAYS / 2]) = if V::HAS_HALVES {
                first.unzip_within::<BITS>(second)
            } else {
                first.unzip::<BITS>(second)
            };
        }
        words *= 2;
    }
    rows
}

/// So many bytes are moved without a loop, where they stay in the caches: an instruction
/// that goes along a run teaches the prefetchers to go on behind its end.
pub(super) const STRAIGHT: usize = 512;

/// The bytes of the shortest vector.
pub(super) const SHORTEST: usize = 16;

/// The bytes of a line of the caches.
pub(super) const LINE: usize = 64;

/// And of what prefetchers do not look beyond.
pub(super) const PAGE: usize = 4096;

/// Vectors from one place on.
///
/// # Safety
///
/// Their bytes can be read; the CPU has `V`.
#[inline(always)]
pub(super) unsafe fn load_row<V: Vector, const COUNT: usize>(source: *const u8) -> [V; COUNT] {
    // SAFETY: the first of them.
    let mut vectors = [unsafe { V::load(source) }; COUNT];
    for (i, vector) in vectors.iter_mut().enumerate().skip(1) {
        // SAFETY: vector i ends within the bytes of `COUNT` vectors.
        *vector = unsafe { V::load(source.wrapping_add(i * V::BYTES)) };
    }
    vectors
}

/// Stores vectors, one behind the other.
///
/// # Safety
///
/// Their bytes can be written.
#[inline(always)]
pub(super) unsafe fn store_row<V: Vector, const COUNT: usize>(
    vectors: &[V; COUNT],
    destination: *mut u8,
) {
    for (i, vector) in vectors.iter().enumerate() {
        // SAFETY: vector i ends within the bytes of `COUNT` vectors.
        unsafe { vector.store(destination.wrapping_add(i * V::BYTES)) };
    }
}
