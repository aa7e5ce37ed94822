//! The block ops over vectors, each written once.
//!
//! A [`Vector`] is what an instruction set has to offer: loads, stores, a few
//! operations on bits, and the zip. A zip takes two vectors and alternates their
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
//! take interleaved rows apart.
//!
//! What is left at the end of a row is done by a vector that ends where the row
//! does, writing some bytes a second time; what is shorter than one, by a
//! narrower vector, and in the end by the scalar tier.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::mem::MaybeUninit;
use std::ops::Range;

use super::carry::{Carry, Make};
use super::scalar::{self, from, to};
use super::transpose::{
    Exchange, Transpose, TransposeElements, TransposeInterleave, TransposeNarrow,
};
use super::{BlockOp, Place, Run, Strip};
use crate::convert::{self, Conversion, Convert};

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

    /// Stores past the caches, where there is an instruction for that.
    ///
    /// # Safety
    ///
    /// `BYTES` bytes can be written, at an address that is a multiple of `BYTES`.
    unsafe fn stream(self, to: *mut u8);

    /// Fetches the line of an address, if there is one, into the cache of that level: 1,
    /// from which vectors are loaded, or 2, which asks memory for more lines at a time.
    fn prefetch<const LEVEL: u32>(at: *const u8);

    fn zip<const BITS: u32>(self, other: Self) -> (Self, Self);
    fn unzip<const BITS: u32>(self, other: Self) -> (Self, Self);

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

    /// Interleaves 16 rows of 32 bits, which turns them where a vector has 16: four
    /// rounds of zips, where there is no shorter way.
    #[inline(always)]
    fn turn_words(rows: [Self; 16]) -> [Self; 16] {
        weave_by_zips::<Self, 16, 32>(rows)
    }

    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    /// The least of each pair of bytes.
    fn min(self, other: Self) -> Self;
    /// Shifts each 16 bits to the more significant ones.
    fn shl<const BY: i32>(self) -> Self;
    /// Shifts each 16 bits to the less significant ones.
    fn shr<const BY: i32>(self) -> Self;
}

/// A block op for elements of one width, in every tier.
///
/// # Safety
///
/// Both functions by the contract of [`kernel`](super); `vector` on a CPU that
/// has the instructions of `V`.
pub(super) trait Algorithm {
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8);
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        order: &[Place],
        source: *const u8,
        destination: *mut u8,
    );
}

/// An instruction set: how its features are turned on for an algorithm.
pub(super) trait InstructionSet {
    fn entry<A: Algorithm>() -> Run;
}

/// The kernel of an instruction set for an op.
pub(super) fn kernel<I: InstructionSet>(op: BlockOp, stream: bool) -> Option<Run> {
    macro_rules! entry {
        ($algorithm:ident $(, $argument:literal)*) => {
            if stream {
                I::entry::<$algorithm<$($argument,)* true>>()
            } else {
                I::entry::<$algorithm<$($argument,)* false>>()
            }
        };
    }
    macro_rules! convert_entry {
        ($conversion:ident) => {
            if stream {
                I::entry::<ConvertRun<convert::$conversion, true>>()
            } else {
                I::entry::<ConvertRun<convert::$conversion, false>>()
            }
        };
    }
    use BlockOp as Op;
    Some(match op {
        Op::Copy => entry!(CopyRun),
        Op::Fill => entry!(Fill),
        Op::Interleave { ways: 2, bits: 8 } => entry!(Interleave, 2, 8, 1),
        Op::Interleave { ways: 2, bits: 16 } => entry!(Interleave, 2, 16, 2),
        Op::Interleave { ways: 2, bits: 32 } => entry!(Interleave, 2, 32, 4),
        Op::Interleave { ways: 2, bits: 64 } => entry!(Interleave, 2, 64, 8),
        Op::Interleave { ways: 4, bits: 8 } => entry!(Interleave, 4, 8, 1),
        Op::Interleave { ways: 4, bits: 16 } => entry!(Interleave, 4, 16, 2),
        Op::Interleave { ways: 4, bits: 32 } => entry!(Interleave, 4, 32, 4),
        Op::Interleave { ways: 8, bits: 8 } => entry!(Interleave, 8, 8, 1),
        Op::Interleave { ways: 8, bits: 16 } => entry!(Interleave, 8, 16, 2),
        Op::Deinterleave { ways: 2, bits: 8 } => entry!(Deinterleave, 2, 8, 1),
        Op::Deinterleave { ways: 2, bits: 16 } => entry!(Deinterleave, 2, 16, 2),
        Op::Deinterleave { ways: 2, bits: 32 } => entry!(Deinterleave, 2, 32, 4),
        Op::Deinterleave { ways: 2, bits: 64 } => entry!(Deinterleave, 2, 64, 8),
        Op::Deinterleave { ways: 4, bits: 8 } => entry!(Deinterleave, 4, 8, 1),
        Op::Deinterleave { ways: 4, bits: 16 } => entry!(Deinterleave, 4, 16, 2),
        Op::Deinterleave { ways: 4, bits: 32 } => entry!(Deinterleave, 4, 32, 4),
        Op::Deinterleave { ways: 8, bits: 8 } => entry!(Deinterleave, 8, 8, 1),
        Op::Deinterleave { ways: 8, bits: 16 } => entry!(Deinterleave, 8, 16, 2),
        Op::Squeeze { ways, bits, truth } => match (ways, bits, truth) {
            (1, 1, false) => entry!(Squeeze, 1, 1, false),
            (2, 1, false) => entry!(Squeeze, 2, 1, false),
            (4, 1, false) => entry!(Squeeze, 4, 1, false),
            (1, 1, true) => entry!(Squeeze, 1, 1, true),
            (2, 1, true) => entry!(Squeeze, 2, 1, true),
            (4, 1, true) => entry!(Squeeze, 4, 1, true),
            (1, 2, false) => entry!(Squeeze, 1, 2, false),
            (2, 2, false) => entry!(Squeeze, 2, 2, false),
            (4, 2, false) => entry!(Squeeze, 4, 2, false),
            (1, 4, false) => entry!(Squeeze, 1, 4, false),
            (2, 4, false) => entry!(Squeeze, 2, 4, false),
            (4, 4, false) => entry!(Squeeze, 4, 4, false),
            _ => return None,
        },
        Op::Unsqueeze { ways, bits } => match (ways, bits) {
            (1, 1) => entry!(Unsqueeze, 1, 1),
            (2, 1) => entry!(Unsqueeze, 2, 1),
            (4, 1) => entry!(Unsqueeze, 4, 1),
            (1, 2) => entry!(Unsqueeze, 1, 2),
            (2, 2) => entry!(Unsqueeze, 2, 2),
            (4, 2) => entry!(Unsqueeze, 4, 2),
            (1, 4) => entry!(Unsqueeze, 1, 4),
            (2, 4) => entry!(Unsqueeze, 2, 4),
            (4, 4) => entry!(Unsqueeze, 4, 4),
            _ => return None,
        },
        Op::Narrow { bits, truth, most_first } => match (bits, truth, most_first) {
            (1, false, false) => entry!(Narrow, 1, false, false),
            (1, true, false) => entry!(Narrow, 1, true, false),
            (2, false, false) => entry!(Narrow, 2, false, false),
            (4, false, false) => entry!(Narrow, 4, false, false),
            (1, false, true) => entry!(Narrow, 1, false, true),
            (1, true, true) => entry!(Narrow, 1, true, true),
            (2, false, true) => entry!(Narrow, 2, false, true),
            (4, false, true) => entry!(Narrow, 4, false, true),
            _ => return None,
        },
        Op::Convert { conversion } => match conversion {
            Conversion::F32ToBf16 => convert_entry!(F32ToBf16),
            Conversion::Bf16ToF32 => convert_entry!(Bf16ToF32),
            Conversion::F32ToF16 => convert_entry!(F32ToF16),
            Conversion::F16ToF32 => convert_entry!(F16ToF32),
            Conversion::F64ToF32 => convert_entry!(F64ToF32),
            Conversion::F64ToF32Rest => convert_entry!(F64ToF32Rest),
            Conversion::F32ToF64 => convert_entry!(F32ToF64),
            Conversion::F32ToF8e4m3fn => convert_entry!(F32ToF8e4m3fn),
            Conversion::F32ToF8e5m2 => convert_entry!(F32ToF8e5m2),
            Conversion::S32ToS8 => convert_entry!(S32ToS8),
            Conversion::S8ToS32 => convert_entry!(S8ToS32),
        },
        Op::Reverse { bits: 1 } => I::entry::<Reverse<1>>(),
        Op::Reverse { bits: 2 } => I::entry::<Reverse<2>>(),
        Op::Reverse { bits: 4 } => I::entry::<Reverse<4>>(),
        Op::Widen { bits, most_first } => match (bits, most_first) {
            (1, false) => I::entry::<Widen<1, false>>(),
            (2, false) => I::entry::<Widen<2, false>>(),
            (4, false) => I::entry::<Widen<4, false>>(),
            (1, true) => I::entry::<Widen<1, true>>(),
            (2, true) => I::entry::<Widen<2, true>>(),
            (4, true) => I::entry::<Widen<4, true>>(),
            _ => return None,
        },
        Op::Transpose { bits: 8 } => entry!(TransposeNarrow, 8, 1),
        Op::Transpose { bits: 16 } => entry!(TransposeNarrow, 16, 2),
        Op::Transpose { bits: 32 } => entry!(Transpose, 32, 4),
        Op::Transpose { bits: 64 } => entry!(Transpose, 64, 8),
        Op::TransposeInterleave { ways: 2, bits: 16 } => entry!(TransposeInterleave, 2, 16, 2),
        Op::TransposeInterleave { ways: 4, bits: 8 } => entry!(TransposeInterleave, 4, 8, 1),
        Op::Exchange { ways: 2, bits: 16 } => entry!(Exchange, 2, 16, 2),
        Op::Exchange { ways: 4, bits: 8 } => entry!(Exchange, 4, 8, 1),
        Op::Transpose { bits: 128 } => I::entry::<TransposeElements<16>>(),
        Op::Strided { bits: 8 } => I::entry::<Strided<1>>(),
        Op::Strided { bits: 16 } => I::entry::<Strided<2>>(),
        Op::Strided { bits: 32 } => I::entry::<Strided<4>>(),
        Op::Strided { bits: 64 } => I::entry::<Strided<8>>(),
        Op::Strided { bits: 128 } => I::entry::<Strided<16>>(),
        _ => return None,
    })
}

/// Stores, past the caches where `STREAM` says so.
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

/// Whether every block of a strip, and every row of it in the destination, begins
/// where a vector can be streamed to.
#[inline(always)]
pub(super) fn streams<V: Vector>(strip: &Strip, destination: *mut u8, row_stride: usize) -> bool {
    let steps = strip.destination_line | strip.destination_step | row_stride;
    (destination.addr() | steps).is_multiple_of(V::BYTES)
}

/// Interleaves `WAYS` rows.
#[inline(always)]
pub(super) fn weave<V: Vector, const WAYS: usize, const BITS: u32>(
    mut rows: [V; WAYS],
) -> [V; WAYS] {
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
    unweave_by_zips::<V, WAYS, BITS>(rows)
}

/// Interleaves `WAYS` rows: see the module.
#[inline(always)]
fn weave_by_zips<V: Vector, const WAYS: usize, const BITS: u32>(mut rows: [V; WAYS]) -> [V; WAYS] {
    let mut words = 1;
    while words < WAYS {
        let old = rows;
        for i in 0..WAYS / 2 {
            (rows[2 * i], rows[2 * i + 1]) = old[i].zip::<BITS>(old[i + WAYS / 2]);
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
    let mut words = 1;
    while words < WAYS {
        let old = rows;
        for i in 0..WAYS / 2 {
            (rows[i], rows[i + WAYS / 2]) = old[2 * i].unzip::<BITS>(old[2 * i + 1]);
        }
        words *= 2;
    }
    rows
}

/// [`BlockOp::Copy`].
struct CopyRun<const STREAM: bool>;

impl<const STREAM: bool> Algorithm for CopyRun<STREAM> {
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: a block of the strip has `columns` bytes on both sides.
            unsafe { scalar::run(source, destination, strip.columns) };
            // SAFETY: and `pad` behind them.
            unsafe { scalar::fill(destination.wrapping_add(strip.columns), 0, strip.pad) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        order: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        if STREAM
            && !streams::<V>(strip, destination, 0)
            && let Some(carry) = Carry::new(strip, BlockOp::Copy)
        {
            // SAFETY: the same strip and op, whose columns are whole lines.
            return unsafe { carry.run::<Self, V>(strip, source, destination) };
        }
        let mut places = blocks::<STREAM>(strip, order, strip.columns);
        while let Some(place) = places.next() {
            let (ahead, keeps) = (places.ahead, places.keeps());
            let (source, destination) = place.of(source, destination);
            // SAFETY: a block of the strip has `columns` bytes on both sides; the
            // CPU has `V`.
            unsafe { copy_run::<V, STREAM>(source, destination, strip.columns, ahead, keeps) };
            // SAFETY: and `pad` behind them.
            unsafe { scalar::fill(destination.wrapping_add(strip.columns), 0, strip.pad) };
        }
    }
}

impl<const STREAM: bool> Make for CopyRun<STREAM> {
    const COPIES: bool = true;

    #[inline(always)]
    unsafe fn make<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
        let last = strip.columns - LINE;
        for at in (0..LINE).step_by(V::BYTES) {
            for at in [at, last + at] {
                // SAFETY: within the first line of a block of so many lines, or the last one.
                let vector = unsafe { V::load(source.wrapping_add(at)) };
                // SAFETY: the same place in the destination.
                unsafe { vector.store(destination.wrapping_add(at)) };
            }
        }
    }
}

/// Where the blocks of a strip begin, in the order in which to visit them: past
/// the caches line by line, otherwise as `order` says.
///
/// An iterator and no function that takes a closure: what is in a closure the
/// compiler may leave outside of the function that has the CPU's features.
pub(super) struct Blocks<'a, const STREAM: bool> {
    strip: &'a Strip,
    line: usize,
    block: usize,
    order: std::slice::Iter<'a, Place>,
    /// What is to be fetched while the block last returned is moved.
    pub(super) ahead: Ahead,
    /// Past the caches, where that is.
    near: Further,
    far: Further,
}

/// How far it is, in bytes of the source, from what is read to what is fetched meanwhile.
#[derive(Clone, Copy, Default)]
pub(super) struct Ahead {
    near: usize,
    /// Past the caches only.
    far: usize,
}

impl Ahead {
    /// Fetches what is ahead of an address: the near line to where it is read from, and past
    /// the caches the far one from memory.
    #[inline(always)]
    pub(super) fn fetch<V: Vector, const STREAM: bool>(self, at: *const u8) {
        if STREAM {
            V::prefetch::<2>(at.wrapping_add(self.far));
        }
        V::prefetch::<1>(at.wrapping_add(self.near));
    }

    /// The same of so many bytes.
    #[inline(always)]
    fn fetch_bytes<V: Vector, const STREAM: bool>(self, at: *const u8, bytes: usize) {
        for line in 0..bytes.div_ceil(LINE) {
            self.fetch::<V, STREAM>(at.wrapping_add(line * LINE));
        }
    }
}

/// How far it is to the block that follows after some others.
struct Further {
    /// While that is on the same line, which it is for all but so many blocks.
    on_line: usize,
    last_blocks: usize,
    /// For these.
    on_next: usize,
}

impl Further {
    /// So many blocks on. These are hints, where they lead does not matter: behind the last
    /// line it goes on as if there were another one, which there mostly is.
    #[inline(always)]
    fn new(strip: &Strip, blocks: usize) -> Self {
        let (lines, blocks) = if strip.lines > 1 && strip.blocks > 0 {
            (blocks / strip.blocks, blocks % strip.blocks)
        } else {
            (0, blocks)
        };
        let Place { source, .. } = strip.place(lines, blocks);
        let line = strip.source_line.wrapping_sub(strip.blocks.wrapping_mul(strip.source_step));
        Self {
            on_line: source,
            last_blocks: if strip.lines > 1 { blocks } else { 0 },
            on_next: source.wrapping_add(line),
        }
    }

    /// From that block of a line of so many.
    #[inline(always)]
    fn from(&self, block: usize, blocks: usize) -> usize {
        if block + self.last_blocks < blocks { self.on_line } else { self.on_next }
    }
}

/// Where both sides have room in the caches, one of so many blocks is written through
/// them, while the others are on their way to memory. A power of two, as the number of
/// blocks in a line mostly is: then it is the same columns or rows in every line.
const KEPT_ONE_OF: usize = 4;

/// How many bytes ahead of those that are streamed the source is fetched into the nearest
/// cache, and into the second one, which asks memory for more lines at a time.
const NEAR_AHEAD: usize = 4096;
const FAR_AHEAD: usize = 32768;

/// The blocks of a strip, of so many bytes each.
#[inline(always)]
pub(super) fn blocks<'a, const STREAM: bool>(
    strip: &'a Strip,
    order: &'a [Place],
    bytes: usize,
) -> Blocks<'a, STREAM> {
    let bytes = bytes.max(1);
    Blocks {
        strip,
        line: 0,
        block: 0,
        order: order.iter(),
        ahead: Ahead::default(),
        near: Further::new(strip, NEAR_AHEAD.div_ceil(bytes)),
        far: Further::new(strip, FAR_AHEAD.div_ceil(bytes)),
    }
}

impl<const STREAM: bool> Blocks<'_, STREAM> {
    /// Past the caches: whether the block last returned is written through them all the
    /// same.
    #[inline(always)]
    fn keeps(&self) -> bool {
        let visited = self.line.wrapping_mul(self.strip.blocks).wrapping_add(self.block);
        STREAM && self.strip.keeps_some && visited.is_multiple_of(KEPT_ONE_OF)
    }
}

impl<const STREAM: bool> Iterator for Blocks<'_, STREAM> {
    type Item = Place;

    #[inline(always)]
    fn next(&mut self) -> Option<Place> {
        if !STREAM {
            let place = self.order.next().copied()?;
            let next = self.order.as_slice().get(1).copied().unwrap_or(place);
            self.ahead.near = next.source.wrapping_sub(place.source);
            return Some(place);
        }
        let strip = self.strip;
        if self.block == strip.blocks {
            self.block = 0;
            self.line += 1;
        }
        if self.line >= strip.lines || strip.blocks == 0 {
            return None;
        }
        let place = strip.place(self.line, self.block);
        self.ahead = Ahead {
            near: self.near.from(self.block, strip.blocks),
            far: self.far.from(self.block, strip.blocks),
        };
        self.block += 1;
        Some(place)
    }
}

/// Copies a run of bytes, of which streaming writes all that is in whole
/// vectors, fetching what is `ahead` of it. A run that it `keeps` it does not
/// stream but for what is left behind each [`STRAIGHT`] bytes from an aligned place on.
///
/// # Safety
///
/// `count` bytes can be read and written; the CPU has `V`.
#[inline(always)]
unsafe fn copy_run<V: Vector, const STREAM: bool>(
    source: *const u8,
    destination: *mut u8,
    count: usize,
    ahead: Ahead,
    keeps: bool,
) {
    if count < V::BYTES {
        // SAFETY: by the contract of this function.
        unsafe { scalar::run(source, destination, count) };
        return;
    }
    let mut at = 0;
    let to_aligned = destination.addr().wrapping_neg() % V::BYTES;
    if STREAM && to_aligned > 0 {
        // No byte of a line that is streamed may be stored in another way: the
        // line would be fetched for that.
        // SAFETY: there are at least as many bytes as in a vector.
        unsafe { scalar::run(source, destination, to_aligned) };
        at = to_aligned;
    }
    while STREAM && at + STRAIGHT <= count {
        let (from, to) = (source.wrapping_add(at), destination.wrapping_add(at));
        if keeps {
            // SAFETY: so many bytes of the run.
            unsafe { copy_straight::<V, false>(from, to, ahead) };
        } else {
            // SAFETY: so many bytes of the run, to an aligned place.
            unsafe { copy_straight::<V, true>(from, to, ahead) };
        }
        at += STRAIGHT;
    }
    while !STREAM && at + STRAIGHT <= count {
        ahead.fetch_bytes::<V, STREAM>(source.wrapping_add(at), STRAIGHT);
        for pair in 0..STRAIGHT / V::BYTES / 2 {
            let (first, second) = (at + 2 * pair * V::BYTES, at + (2 * pair + 1) * V::BYTES);
            // SAFETY: one of the vectors from `at` on, which end within the run.
            let a = unsafe { V::load(source.wrapping_add(first)) };
            // SAFETY: another one.
            let b = unsafe { V::load(source.wrapping_add(second)) };
            // SAFETY: the same places in the destination.
            unsafe { a.store(destination.wrapping_add(first)) };
            // SAFETY: as above.
            unsafe { b.store(destination.wrapping_add(second)) };
        }
        at += STRAIGHT;
    }
    while at + V::BYTES <= count {
        // SAFETY: a vector from `at` on ends within the run.
        let vector = unsafe { V::load(source.wrapping_add(at)) };
        if STREAM {
            ahead.fetch::<V, STREAM>(source.wrapping_add(at));
        }
        // SAFETY: as above.
        unsafe { put::<V, STREAM>(vector, destination.wrapping_add(at)) };
        at += V::BYTES;
    }
    if STREAM {
        let (source, destination) = (source.wrapping_add(at), destination.wrapping_add(at));
        // SAFETY: the rest of the run.
        unsafe { scalar::run(source, destination, count - at) };
    } else if at < count {
        let last = count - V::BYTES;
        // SAFETY: the last bytes of the run.
        let vector = unsafe { V::load(source.wrapping_add(last)) };
        // SAFETY: as above.
        unsafe { vector.store(destination.wrapping_add(last)) };
    }
}

/// Copies [`STRAIGHT`] bytes past the caches, or as a run that is kept of many that are not,
/// each vector after fetching what is `ahead` of it.
///
/// # Safety
///
/// So many bytes can be read and written, and for `STREAM` they are aligned for `V`. The
/// CPU has `V`.
#[inline(always)]
unsafe fn copy_straight<V: Vector, const STREAM: bool>(
    source: *const u8,
    destination: *mut u8,
    ahead: Ahead,
) {
    for at in (0..STRAIGHT).step_by(V::BYTES) {
        ahead.fetch::<V, true>(source.wrapping_add(at));
        // SAFETY: one of the vectors of these bytes.
        let vector = unsafe { V::load(source.wrapping_add(at)) };
        // SAFETY: the same place in the destination.
        unsafe { put::<V, STREAM>(vector, destination.wrapping_add(at)) };
    }
}

/// So many bytes are moved without a loop, where they stay in the caches: an instruction
/// that goes along a run teaches the prefetchers to go on behind its end.
pub(crate) const STRAIGHT: usize = 512;

/// The bytes of a line of the caches.
pub(super) const LINE: usize = 64;

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

/// [`BlockOp::Fill`].
struct Fill<const STREAM: bool>;

impl<const STREAM: bool> Algorithm for Fill<STREAM> {
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (_, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: a block of the strip has `columns` bytes in the destination.
            unsafe { scalar::fill(destination, strip.fill, strip.columns) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        // SAFETY: the CPU has `V`.
        let vector = unsafe { V::splat(strip.fill) };
        for (_, destination) in scalar::blocks(strip, source, destination) {
            let start = if STREAM { destination.addr().wrapping_neg() % V::BYTES } else { 0 };
            let start = start.min(strip.columns);
            // SAFETY: the first bytes of the block, up to the alignment.
            unsafe { scalar::fill(destination, strip.fill, start) };
            let mut at = start;
            while at + V::BYTES <= strip.columns {
                // SAFETY: a vector from `at` on ends within the block, and `at` is
                // aligned where that matters.
                unsafe { put::<V, STREAM>(vector, destination.wrapping_add(at)) };
                at += V::BYTES;
            }
            let rest = strip.columns - at;
            // SAFETY: the rest of the block.
            unsafe { scalar::fill(destination.wrapping_add(at), strip.fill, rest) };
        }
    }
}

/// [`BlockOp::Interleave`], `WIDTH` being the bytes of an element.
struct Interleave<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool>;

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> Algorithm
    for Interleave<WAYS, BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            for row in 0..WAYS {
                let to = to(destination.wrapping_add(row * WIDTH), WAYS * WIDTH);
                if row < strip.rows {
                    let from = from(source.wrapping_add(row.wrapping_mul(strip.row_stride)), WIDTH);
                    // SAFETY: the columns of a row of the strip.
                    unsafe { scalar::elements::<WIDTH>(strip.columns, from, to) };
                } else {
                    let zeros = from([0; WIDTH].as_ptr(), 0);
                    // SAFETY: zeros, to where a missing row belongs.
                    unsafe { scalar::elements::<WIDTH>(strip.columns, zeros, to) };
                }
            }
            let end = destination.wrapping_add(strip.columns * WAYS * WIDTH);
            // SAFETY: `pad` bytes follow the words of the block.
            unsafe { scalar::fill(end, 0, strip.pad) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        order: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        let lanes = V::BYTES / WIDTH;
        if strip.columns < lanes {
            if V::Half::BYTES < V::BYTES {
                // SAFETY: the same strip; the CPU has the half of what it has.
                return unsafe { Self::vectors::<V::Half>(strip, order, source, destination) };
            }
            // SAFETY: the same strip.
            return unsafe { Self::elements(strip, source, destination) };
        }
        let stream = STREAM && streams::<V>(strip, destination, 0);
        if STREAM && !stream {
            let ways = u32::try_from(WAYS).unwrap_or_default();
            if let Some(carry) = Carry::new(strip, BlockOp::Interleave { ways, bits: BITS }) {
                // SAFETY: the same strip and op, with columns for a vector.
                return unsafe { carry.run::<Self, V>(strip, source, destination) };
            }
        }
        let full = strip.rows == WAYS;
        let mut places = blocks::<STREAM>(strip, order, strip.columns * WAYS * WIDTH);
        while let Some(place) = places.next() {
            let ahead = places.ahead;
            let keeps = stream && places.keeps();
            let stream = stream && !keeps;
            let (source, destination) = place.of(source, destination);
            let rows = Rows::<WAYS>::new(source, strip);
            let mut column = 0;
            if (!STREAM || keeps) && full {
                while column + STRAIGHT / WAYS / WIDTH <= strip.columns {
                    let to = destination.wrapping_add(column * WAYS * WIDTH);
                    let at = column * WIDTH;
                    // SAFETY: so many columns of each row, and their words.
                    unsafe { interleave_straight::<V, WAYS, BITS>(&rows, at, to) };
                    rows.fetch::<V, STREAM>(at, STRAIGHT / WAYS, ahead);
                    column += STRAIGHT / WAYS / WIDTH;
                }
            }
            // SAFETY: the columns of the block from `column` on, as above.
            unsafe { Self::block::<V>(strip, source, destination, column, Some(ahead), stream) };
        }
    }
}

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool>
    Interleave<WAYS, BITS, WIDTH, STREAM>
{
    /// Does a block from a column on, and the padding behind it.
    ///
    /// # Safety
    ///
    /// The block can be read and written, from that column on, and for `stream` it is
    /// aligned for `V`. There are columns for a vector. The CPU has `V`.
    #[inline(always)]
    unsafe fn block<V: Vector>(
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
        mut column: usize,
        ahead: Option<Ahead>,
        stream: bool,
    ) {
        let lanes = V::BYTES / WIDTH;
        let (whole, full) = (strip.columns.is_multiple_of(lanes), strip.rows == WAYS);
        let rows = Rows::<WAYS>::new(source, strip);
        let last = strip.columns - lanes;
        while column <= last {
            // SAFETY: the columns from `column` on are a vector at least, in
            // each row, and so are their words.
            let words = unsafe { rows.load::<V>(column * WIDTH, full) };
            if let (true, Some(ahead)) = (STREAM, ahead) {
                rows.fetch::<V, STREAM>(column * WIDTH, V::BYTES, ahead);
            }
            let to = destination.wrapping_add(column * WAYS * WIDTH);
            for (i, word) in weave::<V, WAYS, BITS>(words).into_iter().enumerate() {
                let to = to.wrapping_add(i * V::BYTES);
                if stream {
                    // SAFETY: as above; whole vectors from an aligned start.
                    unsafe { word.stream(to) };
                } else {
                    // SAFETY: as above.
                    unsafe { word.store(to) };
                }
            }
            column += lanes;
        }
        if !whole && stream {
            // Not over what was streamed: see `copy_run`.
            let rest = Strip { lines: 1, blocks: 1, columns: strip.columns - column, ..*strip };
            let source = source.wrapping_add(column * WIDTH);
            let destination = destination.wrapping_add(column * WAYS * WIDTH);
            // SAFETY: the last columns of the block.
            unsafe { Self::elements(&rest, source, destination) };
            return;
        }
        if !whole {
            // SAFETY: the last columns of the rows.
            let words = unsafe { rows.load::<V>(last * WIDTH, full) };
            let to = destination.wrapping_add(last * WAYS * WIDTH);
            for (i, word) in weave::<V, WAYS, BITS>(words).into_iter().enumerate() {
                // SAFETY: the words of these columns.
                unsafe { word.store(to.wrapping_add(i * V::BYTES)) };
            }
        }
        let end = destination.wrapping_add(strip.columns * WAYS * WIDTH);
        // SAFETY: `pad` bytes follow the words of the block.
        unsafe { scalar::fill(end, 0, strip.pad) };
    }
}

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> Make
    for Interleave<WAYS, BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn make<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
        // SAFETY: by the contract of this function.
        unsafe { Self::block::<V>(strip, source, destination, 0, None, false) };
    }
}

/// Interleaves [`STRAIGHT`] bytes of all rows together.
///
/// # Safety
///
/// No row is missing, and in each its part of these bytes can be read from byte
/// `at` on; their words can be written. The CPU has `V`.
#[inline(always)]
unsafe fn interleave_straight<V: Vector, const WAYS: usize, const BITS: u32>(
    rows: &Rows<WAYS>,
    at: usize,
    to: *mut u8,
) {
    for i in 0..STRAIGHT / V::BYTES / WAYS {
        // SAFETY: vector i of each row.
        unsafe { interleave_one::<V, WAYS, BITS>(rows, at, to, i) };
    }
}

/// Interleaves vector `i` from byte `at` on of each row.
///
/// # Safety
///
/// No row is missing; this vector can be read in each, and its words be written.
/// The CPU has `V`.
#[inline(always)]
unsafe fn interleave_one<V: Vector, const WAYS: usize, const BITS: u32>(
    rows: &Rows<WAYS>,
    at: usize,
    to: *mut u8,
    i: usize,
) {
    // SAFETY: by the contract of this function.
    let vectors = unsafe { rows.load::<V>(at + i * V::BYTES, true) };
    for (j, words) in weave::<V, WAYS, BITS>(vectors).into_iter().enumerate() {
        // SAFETY: by the contract of this function.
        unsafe { words.store(to.wrapping_add((i * WAYS + j) * V::BYTES)) };
    }
}

/// The mirror of [`interleave_straight`].
///
/// # Safety
///
/// The words can be read, and their columns be written in each row. The CPU has
/// `V`.
#[inline(always)]
unsafe fn deinterleave_straight<V: Vector, const WAYS: usize, const BITS: u32>(
    source: *const u8,
    to: *mut u8,
    row_stride: usize,
) {
    for i in 0..STRAIGHT / V::BYTES / WAYS {
        // SAFETY: the words of vector i of each row.
        unsafe { deinterleave_one::<V, WAYS, BITS>(source, to, row_stride, i) };
    }
}

/// The mirror of [`interleave_one`].
///
/// # Safety
///
/// The words of vector `i` of each row can be read, and be written there. The CPU
/// has `V`.
#[inline(always)]
unsafe fn deinterleave_one<V: Vector, const WAYS: usize, const BITS: u32>(
    source: *const u8,
    to: *mut u8,
    row_stride: usize,
    i: usize,
) {
    // SAFETY: by the contract of this function.
    let words = unsafe { load_row::<V, WAYS>(source.wrapping_add(i * WAYS * V::BYTES)) };
    for (row, vector) in unweave::<V, WAYS, BITS>(words).into_iter().enumerate() {
        // SAFETY: by the contract of this function.
        unsafe {
            vector.store(to.wrapping_add(row.wrapping_mul(row_stride).wrapping_add(i * V::BYTES)))
        };
    }
}

/// The rows of a block, of which the last ones may be missing.
struct Rows<const WAYS: usize> {
    first: *const u8,
    stride: usize,
    count: usize,
}

impl<const WAYS: usize> Rows<WAYS> {
    #[inline(always)]
    fn new(first: *const u8, strip: &Strip) -> Self {
        Rows { first, stride: strip.row_stride, count: strip.rows }
    }

    /// Fetches what is `ahead` of so many bytes of each row, from byte `at` on.
    #[inline(always)]
    fn fetch<V: Vector, const STREAM: bool>(&self, at: usize, bytes: usize, ahead: Ahead) {
        for row in 0..WAYS {
            let from = self.first.wrapping_add(row.wrapping_mul(self.stride).wrapping_add(at));
            ahead.fetch_bytes::<V, STREAM>(from, bytes);
        }
    }

    /// A vector of each row, from byte `at` of the row on; of a missing row,
    /// zeros.
    ///
    /// # Safety
    ///
    /// As many bytes can be read there in each row that is not missing; `full`
    /// says that none is. The CPU has `V`.
    #[inline(always)]
    unsafe fn load<V: Vector>(&self, at: usize, full: bool) -> [V; WAYS] {
        // SAFETY: the CPU has `V`.
        let mut rows = [unsafe { V::splat(0) }; WAYS];
        for (row, vector) in rows.iter_mut().enumerate() {
            if full || row < self.count {
                let from = self.first.wrapping_add(row.wrapping_mul(self.stride).wrapping_add(at));
                // SAFETY: by the contract of this function.
                *vector = unsafe { V::load(from) };
            }
        }
        rows
    }
}

/// [`BlockOp::Deinterleave`], `WIDTH` being the bytes of an element.
struct Deinterleave<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool>;

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> Algorithm
    for Deinterleave<WAYS, BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            for row in 0..strip.rows {
                let from = from(source.wrapping_add(row * WIDTH), WAYS * WIDTH);
                let to = to(destination.wrapping_add(row.wrapping_mul(strip.row_stride)), WIDTH);
                // SAFETY: the columns of a row of the strip, and its words.
                unsafe { scalar::elements::<WIDTH>(strip.columns, from, to) };
            }
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        order: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        let lanes = V::BYTES / WIDTH;
        if strip.columns < lanes {
            if V::Half::BYTES < V::BYTES {
                // SAFETY: the same strip; the CPU has the half of what it has.
                return unsafe { Self::vectors::<V::Half>(strip, order, source, destination) };
            }
            // SAFETY: the same strip.
            return unsafe { Self::elements(strip, source, destination) };
        }
        let stream = STREAM && streams::<V>(strip, destination, strip.row_stride);
        if STREAM && !stream {
            let ways = u32::try_from(WAYS).unwrap_or_default();
            if let Some(carry) = Carry::new(strip, BlockOp::Deinterleave { ways, bits: BITS }) {
                // SAFETY: the same strip and op, with columns for a vector.
                return unsafe { carry.run::<Self, V>(strip, source, destination) };
            }
        }
        let mut places = blocks::<STREAM>(strip, order, strip.columns * WAYS * WIDTH);
        while let Some(place) = places.next() {
            let ahead = places.ahead;
            let keeps = stream && places.keeps();
            let stream = stream && !keeps;
            let (source, destination) = place.of(source, destination);
            let mut column = 0;
            if (!STREAM || keeps) && strip.rows == WAYS {
                while column + STRAIGHT / WAYS / WIDTH <= strip.columns {
                    let from = source.wrapping_add(column * WAYS * WIDTH);
                    let to = destination.wrapping_add(column * WIDTH);
                    let stride = strip.row_stride;
                    // SAFETY: so many columns of each row, and their words.
                    unsafe { deinterleave_straight::<V, WAYS, BITS>(from, to, stride) };
                    ahead.fetch_bytes::<V, STREAM>(from, STRAIGHT);
                    column += STRAIGHT / WAYS / WIDTH;
                }
                if column == strip.columns {
                    continue;
                }
            }
            // SAFETY: the columns of the block from `column` on, as above.
            unsafe { Self::block::<V>(strip, source, destination, column, Some(ahead), stream) };
        }
    }
}

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool>
    Deinterleave<WAYS, BITS, WIDTH, STREAM>
{
    /// Does a block from a column on.
    ///
    /// # Safety
    ///
    /// The block can be read and written, from that column on, and for `stream` every
    /// row of it is aligned for `V`. There are columns for a vector. The CPU has `V`.
    #[inline(always)]
    unsafe fn block<V: Vector>(
        strip: &Strip,
        source: *const u8,
        destination: *mut u8,
        mut column: usize,
        ahead: Option<Ahead>,
        stream: bool,
    ) {
        let lanes = V::BYTES / WIDTH;
        let last = strip.columns - lanes;
        loop {
            let (at, is_last) = if column < last { (column, false) } else { (last, true) };
            let from = source.wrapping_add(at * WAYS * WIDTH);
            // SAFETY: the words of as many columns as a vector takes, at most
            // up to the last one.
            let words = unsafe { load_row::<V, WAYS>(from) };
            if let (true, Some(ahead)) = (STREAM, ahead) {
                for way in 0..WAYS {
                    ahead.fetch::<V, STREAM>(from.wrapping_add(way * V::BYTES));
                }
            }
            let to = destination.wrapping_add(at * WIDTH);
            let rows = unweave::<V, WAYS, BITS>(words).into_iter().take(strip.rows);
            for (row, vector) in rows.enumerate() {
                let to = to.wrapping_add(row.wrapping_mul(strip.row_stride));
                if stream && (!is_last || column == last) {
                    // SAFETY: these columns of a row; whole vectors from an
                    // aligned start.
                    unsafe { vector.stream(to) };
                } else {
                    // SAFETY: these columns of a row.
                    unsafe { vector.store(to) };
                }
            }
            if is_last {
                break;
            }
            column += lanes;
        }
    }
}

impl<const WAYS: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool> Make
    for Deinterleave<WAYS, BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn make<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
        // SAFETY: by the contract of this function.
        unsafe { Self::block::<V>(strip, source, destination, 0, None, false) };
    }
}

/// How many bytes of a row [`Squeeze`] reads before the next one, and [`Unsqueeze`] writes.
const SQUEEZED: usize = 4096;
const UNSQUEEZED: usize = 2048;

/// At most so many blocks are in a [`Stretch`].
const IN_STRETCH: usize = 32;

/// A stretch of each byte of the words, on its way: so many bytes of a row are read, or
/// written, before the next row.
#[repr(align(64))]
struct Stretch<const WAYS: usize, T, const BYTES: usize>([[T; BYTES]; WAYS]);

/// The stretches of a strip, which are parts of a block, or blocks beside each other whose
/// rows go on in the next one.
struct Stretches<'a> {
    strip: &'a Strip,
    /// How many columns of how many blocks.
    columns: usize,
    blocks: usize,
    /// The first line, block and column of the next one.
    line: usize,
    block: usize,
    column: usize,
}

/// So many columns of so many blocks, from one column of a block on.
#[derive(Clone, Copy)]
struct Part {
    line: usize,
    block: usize,
    column: usize,
    columns: usize,
    blocks: usize,
}

impl<'a> Stretches<'a> {
    /// Stretches of at most `bytes` of each row, where rows have one block every `row_step`.
    #[inline(always)]
    fn new(strip: &'a Strip, row_step: usize, bytes: usize) -> Self {
        let (blocks, columns) = if row_step == strip.columns && strip.columns <= bytes {
            ((bytes / strip.columns).min(IN_STRETCH), strip.columns)
        } else {
            (1, strip.columns.min(bytes))
        };
        Self { strip, columns, blocks, line: 0, block: 0, column: 0 }
    }
}

impl Iterator for Stretches<'_> {
    type Item = Part;

    #[inline(always)]
    fn next(&mut self) -> Option<Part> {
        if self.line == self.strip.lines || self.strip.blocks == 0 {
            return None;
        }
        let part = Part {
            line: self.line,
            block: self.block,
            column: self.column,
            columns: self.columns.min(self.strip.columns - self.column),
            blocks: self.blocks.min(self.strip.blocks - self.block),
        };
        self.column += part.columns;
        if self.column == self.strip.columns {
            self.column = 0;
            self.block += part.blocks;
        }
        if self.block == self.strip.blocks {
            self.block = 0;
            self.line += 1;
        }
        Some(part)
    }
}

impl Part {
    /// Where it begins, on the side where a column of a block has so many bytes.
    #[inline(always)]
    fn start(self, line_step: usize, block_step: usize, column_bytes: usize) -> usize {
        (self.line.wrapping_mul(line_step))
            .wrapping_add(self.block.wrapping_mul(block_step))
            .wrapping_add(self.column * column_bytes)
    }
}

/// [`BlockOp::Squeeze`].
struct Squeeze<const WAYS: usize, const BITS: u32, const TRUTH: bool, const STREAM: bool>;

impl<const WAYS: usize, const BITS: u32, const TRUTH: bool, const STREAM: bool> Algorithm
    for Squeeze<WAYS, BITS, TRUTH, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        let rows_of_byte = 8 / BITS as usize;
        for (source, destination) in scalar::blocks(strip, source, destination) {
            for column in 0..strip.columns {
                for way in 0..WAYS {
                    let first = way * rows_of_byte;
                    let rows = strip.rows.saturating_sub(first).min(rows_of_byte);
                    let from = source
                        .wrapping_add(first.wrapping_mul(strip.row_stride).wrapping_add(column));
                    // SAFETY: one column of rows that the strip has.
                    let byte = unsafe {
                        scalar::squeeze::<BITS, TRUTH>(rows, scalar::from(from, strip.row_stride))
                    };
                    // SAFETY: one byte of the word of that column.
                    unsafe { destination.wrapping_add(column * WAYS + way).write(byte) };
                }
            }
            let end = destination.wrapping_add(strip.columns * WAYS);
            // SAFETY: `pad` bytes follow the words of the block.
            unsafe { scalar::fill(end, 0, strip.pad) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        order: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        if strip.columns < V::BYTES {
            if V::Half::BYTES < V::BYTES {
                // SAFETY: the same strip; the CPU has the half of what it has.
                return unsafe { Self::vectors::<V::Half>(strip, order, source, destination) };
            }
            // SAFETY: the same strip.
            return unsafe { Self::elements(strip, source, destination) };
        }
        let rows_of_byte = 8 / BITS as usize;
        let longest = if STREAM { SQUEEZED } else { SQUEEZED / 2 };
        let mut parts = Stretches::new(strip, strip.source_step, longest);
        let order: [Place; IN_STRETCH] = std::array::from_fn(|i| Place {
            source: i * parts.columns,
            destination: i.wrapping_mul(strip.destination_step),
        });
        let mut stretch =
            Stretch::<WAYS, _, SQUEEZED>([[MaybeUninit::<u8>::uninit(); SQUEEZED]; WAYS]);
        let mut next = parts.next();
        while let Some(part) = next {
            next = parts.next();
            let length = part.blocks * part.columns;
            let at = part.start(strip.source_line, strip.source_step, 1);
            // The rows of the next stretch are fetched meanwhile.
            let ahead = next.map_or(0, |next| {
                next.start(strip.source_line, strip.source_step, 1).wrapping_sub(at)
            });
            for (way, bytes) in stretch.0.iter_mut().enumerate() {
                let first = way * rows_of_byte;
                let rows = strip.rows.saturating_sub(first).min(rows_of_byte);
                let from =
                    source.wrapping_add(first.wrapping_mul(strip.row_stride).wrapping_add(at));
                // SAFETY: `length` columns of rows that the strip has: of several blocks
                // only where these are one long row.
                unsafe {
                    squeeze_rows::<V, BITS, TRUTH, STREAM>(
                        rows,
                        scalar::from(from, strip.row_stride),
                        bytes.get_mut(..length).unwrap_or_default(),
                        ahead,
                    );
                }
            }
            let is_end = part.column + part.columns == strip.columns;
            let words = Strip {
                lines: 1,
                blocks: part.blocks,
                source_step: part.columns,
                rows: WAYS,
                row_stride: SQUEEZED,
                columns: part.columns,
                pad: if is_end { strip.pad } else { 0 },
                ..*strip
            };
            let order = order.get(..part.blocks).unwrap_or_default();
            let bytes = stretch.0.as_ptr().cast();
            let at = part.start(strip.destination_line, strip.destination_step, WAYS);
            let to = destination.wrapping_add(at);
            // SAFETY: the stretch holds `length` bytes in each row; their words, and the
            // padding behind the last ones, are in the destination.
            match WAYS {
                1 => {
                    // SAFETY: as above.
                    unsafe { CopyRun::<STREAM>::vectors::<V>(&words, order, bytes, to) }
                }
                2 => {
                    // SAFETY: as above.
                    unsafe { Interleave::<2, 8, 1, STREAM>::vectors::<V>(&words, order, bytes, to) }
                }
                _ => {
                    // SAFETY: as above.
                    unsafe { Interleave::<4, 8, 1, STREAM>::vectors::<V>(&words, order, bytes, to) }
                }
            }
        }
    }
}

/// Squeezes columns of up to as many rows as fill a byte into `bytes`, all of them.
/// Streaming, what is `ahead` by so many bytes is fetched.
///
/// # Safety
///
/// As many columns as `bytes` has can be read of each row; the CPU has `V`.
#[inline(always)]
unsafe fn squeeze_rows<V: Vector, const BITS: u32, const TRUTH: bool, const STREAM: bool>(
    rows: usize,
    source: scalar::Places<*const u8>,
    bytes: &mut [MaybeUninit<u8>],
    ahead: usize,
) {
    let rows_of_byte = 8 / BITS as usize;
    if bytes.len() < V::BYTES {
        for (column, byte) in bytes.iter_mut().enumerate() {
            let from = scalar::from(source.first.wrapping_add(column), source.stride);
            // SAFETY: one column of the rows.
            byte.write(unsafe { scalar::squeeze::<BITS, TRUTH>(rows, from) });
        }
    } else if rows == rows_of_byte {
        // SAFETY: the same rows, whose number the compiler knows here.
        unsafe { squeeze_some::<V, BITS, TRUTH, STREAM>(rows_of_byte, source, bytes, ahead) };
    } else if rows == 0 {
        bytes.fill(MaybeUninit::new(0));
    } else {
        // SAFETY: the same rows.
        unsafe { squeeze_some::<V, BITS, TRUTH, STREAM>(rows, source, bytes, ahead) };
    }
}

/// [`squeeze_rows`] for any number of rows but none, and a vector of columns at
/// least.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn squeeze_some<V: Vector, const BITS: u32, const TRUTH: bool, const STREAM: bool>(
    rows: usize,
    source: scalar::Places<*const u8>,
    bytes: &mut [MaybeUninit<u8>],
    ahead: usize,
) {
    // SAFETY: the CPU has `V`.
    let mask = unsafe { V::splat(0xff >> (8 - BITS)) };
    let last = bytes.len() - V::BYTES;
    let mut column = 0;
    loop {
        let at = column.min(last);
        // SAFETY: the columns from `at` on are a vector at least, in each row.
        let mut byte =
            unsafe { squeeze_row::<V, TRUTH, STREAM>(rows - 1, at, source, mask, ahead) };
        for above in (0..rows - 1).rev() {
            // The rows so far are no more bits than are left in a byte.
            byte = match BITS {
                1 => byte.shl::<1>(),
                2 => byte.shl::<2>(),
                _ => byte.shl::<4>(),
            };
            // SAFETY: as above.
            let row = unsafe { squeeze_row::<V, TRUTH, STREAM>(above, at, source, mask, ahead) };
            byte = byte.or(row);
        }
        // SAFETY: as many bytes as were read of each row.
        unsafe { byte.store(bytes.as_mut_ptr().cast::<u8>().wrapping_add(at)) };
        if column >= last {
            break;
        }
        column += V::BYTES;
    }
}

/// The bits of a vector of bytes of one row that are kept, which `mask` has.
/// Streaming, what is `ahead` is fetched meanwhile.
///
/// # Safety
///
/// As many bytes can be read in this row, from byte `at` on; the CPU has `V`.
#[inline(always)]
unsafe fn squeeze_row<V: Vector, const TRUTH: bool, const STREAM: bool>(
    row: usize,
    at: usize,
    source: scalar::Places<*const u8>,
    mask: V,
    ahead: usize,
) -> V {
    let from = source.first.wrapping_add(row.wrapping_mul(source.stride).wrapping_add(at));
    if STREAM {
        V::prefetch::<2>(from.wrapping_add(ahead));
    }
    // SAFETY: by the contract of this function.
    let vector = unsafe { V::load(from) };
    if TRUTH { vector.min(mask) } else { vector.and(mask) }
}

/// [`BlockOp::Unsqueeze`].
struct Unsqueeze<const WAYS: usize, const BITS: u32, const STREAM: bool>;

impl<const WAYS: usize, const BITS: u32, const STREAM: bool> Algorithm
    for Unsqueeze<WAYS, BITS, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        let rows_of_byte = 8 / BITS as usize;
        for (source, destination) in scalar::blocks(strip, source, destination) {
            for column in 0..strip.columns {
                for way in 0..WAYS {
                    let first = way * rows_of_byte;
                    let rows = strip.rows.saturating_sub(first).min(rows_of_byte);
                    // SAFETY: one byte of the word of that column.
                    let byte = unsafe { source.wrapping_add(column * WAYS + way).read() };
                    let to = destination
                        .wrapping_add(first.wrapping_mul(strip.row_stride).wrapping_add(column));
                    // SAFETY: one column of rows that the strip has.
                    unsafe {
                        scalar::unsqueeze::<BITS>(rows, byte, scalar::to(to, strip.row_stride));
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        order: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        if strip.columns < V::BYTES {
            if V::Half::BYTES < V::BYTES {
                // SAFETY: the same strip; the CPU has the half of what it has.
                return unsafe { Self::vectors::<V::Half>(strip, order, source, destination) };
            }
            // SAFETY: the same strip.
            return unsafe { Self::elements(strip, source, destination) };
        }
        let rows_of_byte = 8 / BITS as usize;
        let parts = Stretches::new(strip, strip.destination_step, UNSQUEEZED);
        let order: [Place; IN_STRETCH] = std::array::from_fn(|i| Place {
            source: i.wrapping_mul(strip.source_step),
            destination: i * parts.columns,
        });
        let mut stretch = Stretch::<WAYS, u8, UNSQUEEZED>([[0; UNSQUEEZED]; WAYS]);
        for part in parts {
            let words = Strip {
                lines: 1,
                blocks: part.blocks,
                destination_step: part.columns,
                rows: WAYS,
                row_stride: UNSQUEEZED,
                columns: part.columns,
                pad: 0,
                ..*strip
            };
            let order = order.get(..part.blocks).unwrap_or_default();
            let at = part.start(strip.source_line, strip.source_step, WAYS);
            let from = source.wrapping_add(at);
            let bytes = stretch.0.as_mut_ptr().cast();
            // SAFETY: the words of the columns; the stretch has room for each byte of them.
            match WAYS {
                1 => {
                    // SAFETY: as above.
                    unsafe { CopyRun::<false>::vectors::<V>(&words, order, from, bytes) }
                }
                2 => {
                    // SAFETY: as above.
                    unsafe {
                        Deinterleave::<2, 8, 1, false>::vectors::<V>(&words, order, from, bytes)
                    }
                }
                _ => {
                    // SAFETY: as above.
                    unsafe {
                        Deinterleave::<4, 8, 1, false>::vectors::<V>(&words, order, from, bytes)
                    }
                }
            }
            let at = part.start(strip.destination_line, strip.destination_step, 1);
            for (way, bytes) in stretch.0.iter().enumerate() {
                let first = way * rows_of_byte;
                let rows = strip.rows.saturating_sub(first).min(rows_of_byte);
                let to =
                    destination.wrapping_add(first.wrapping_mul(strip.row_stride).wrapping_add(at));
                let bytes = bytes.get(..part.blocks * part.columns).unwrap_or_default();
                // SAFETY: so many columns of rows that the strip has: of several blocks
                // only where these are one long row.
                unsafe {
                    unsqueeze_rows::<V, BITS>(
                        rows,
                        bytes,
                        scalar::to(to, strip.row_stride),
                        STREAM,
                    );
                }
            }
        }
    }
}

/// Widens bytes into columns of up to as many rows as a byte holds.
///
/// # Safety
///
/// As many columns as there are bytes can be written in each row. The CPU has `V`.
#[inline(always)]
unsafe fn unsqueeze_rows<V: Vector, const BITS: u32>(
    rows: usize,
    bytes: &[u8],
    destination: scalar::Places<*mut u8>,
    stream: bool,
) {
    if bytes.len() < V::BYTES {
        for (column, &byte) in bytes.iter().enumerate() {
            let to = scalar::to(destination.first.wrapping_add(column), destination.stride);
            // SAFETY: one column of the rows.
            unsafe { scalar::unsqueeze::<BITS>(rows, byte, to) };
        }
        return;
    }
    for row in 0..rows {
        let to = destination.first.wrapping_add(row.wrapping_mul(destination.stride));
        // A shift is part of the instruction, so each has its own loop.
        // SAFETY: one of the rows.
        match row * BITS as usize {
            0 => {
                // SAFETY: as above.
                unsafe { unsqueeze_row::<V, BITS, 0>(bytes, to, stream) }
            }
            1 => {
                // SAFETY: as above.
                unsafe { unsqueeze_row::<V, BITS, 1>(bytes, to, stream) }
            }
            2 => {
                // SAFETY: as above.
                unsafe { unsqueeze_row::<V, BITS, 2>(bytes, to, stream) }
            }
            3 => {
                // SAFETY: as above.
                unsafe { unsqueeze_row::<V, BITS, 3>(bytes, to, stream) }
            }
            4 => {
                // SAFETY: as above.
                unsafe { unsqueeze_row::<V, BITS, 4>(bytes, to, stream) }
            }
            5 => {
                // SAFETY: as above.
                unsafe { unsqueeze_row::<V, BITS, 5>(bytes, to, stream) }
            }
            6 => {
                // SAFETY: as above.
                unsafe { unsqueeze_row::<V, BITS, 6>(bytes, to, stream) }
            }
            _ => {
                // SAFETY: as above.
                unsafe { unsqueeze_row::<V, BITS, 7>(bytes, to, stream) }
            }
        }
    }
}

/// Widens the bits of bytes from bit `SHIFT` on into columns of one row. Where these do not
/// begin and end aligned, `stream` writes both ends in the ordinary way.
///
/// # Safety
///
/// There is a vector of bytes at least; as many columns can be written. The CPU has `V`.
#[inline(always)]
unsafe fn unsqueeze_row<V: Vector, const BITS: u32, const SHIFT: i32>(
    bytes: &[u8],
    to: *mut u8,
    stream: bool,
) {
    // SAFETY: the CPU has `V`.
    let mask = unsafe { V::splat(0xff >> (8 - BITS)) };
    let last = bytes.len() - V::BYTES;
    let mut column = if stream { to.addr().wrapping_neg() % V::BYTES } else { 0 };
    if column > 0 {
        // SAFETY: the first columns, which are fewer than a vector has.
        unsafe { unsqueeze_part::<V, SHIFT>(bytes, mask, 0..column, to) };
    }
    while column <= last {
        // SAFETY: a vector of the bytes, at most the last one.
        let vector = unsafe { V::load(bytes.as_ptr().wrapping_add(column)) };
        let vector = vector.shr::<SHIFT>().and(mask);
        if stream {
            // SAFETY: as many columns of the row, from an aligned one on.
            unsafe { vector.stream(to.wrapping_add(column)) };
        } else {
            // SAFETY: as many columns of the row.
            unsafe { vector.store(to.wrapping_add(column)) };
        }
        column += V::BYTES;
    }
    if column < bytes.len() && stream {
        // SAFETY: the last columns, which are fewer than a vector has.
        unsafe { unsqueeze_part::<V, SHIFT>(bytes, mask, column..bytes.len(), to) };
    } else if column < bytes.len() {
        // SAFETY: the last vector of the bytes.
        let vector = unsafe { V::load(bytes.as_ptr().wrapping_add(last)) };
        // SAFETY: as many columns of the row.
        unsafe { vector.shr::<SHIFT>().and(mask).store(to.wrapping_add(last)) };
    }
}

/// The same of columns that are fewer than a vector has, and no others.
///
/// # Safety
///
/// There is a vector of bytes at least; these columns are among them, and can be written.
/// The CPU has `V`.
#[inline(always)]
unsafe fn unsqueeze_part<V: Vector, const SHIFT: i32>(
    bytes: &[u8],
    mask: V,
    columns: Range<usize>,
    to: *mut u8,
) {
    const { assert!(V::BYTES <= LINE, "a vector fits into a line") };
    let start = columns.start.min(bytes.len() - V::BYTES);
    // SAFETY: a vector of the bytes, at most the last one.
    let vector = unsafe { V::load(bytes.as_ptr().wrapping_add(start)) };
    let mut made = [0; LINE];
    // SAFETY: no vector is longer than a line.
    unsafe { vector.shr::<SHIFT>().and(mask).store(made.as_mut_ptr()) };
    let made = made.as_ptr().wrapping_add(columns.start - start);
    // SAFETY: columns of that vector, to where they belong.
    unsafe { scalar::run(made, to.wrapping_add(columns.start), columns.len()) };
}

/// [`BlockOp::Narrow`].
struct Narrow<const BITS: u32, const TRUTH: bool, const MOST_FIRST: bool, const STREAM: bool>;

impl<const BITS: u32, const TRUTH: bool, const MOST_FIRST: bool, const STREAM: bool> Algorithm
    for Narrow<BITS, TRUTH, MOST_FIRST, STREAM>
{
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: the columns of a block.
            unsafe {
                scalar::narrow_run::<BITS, TRUTH, MOST_FIRST>(strip.columns, source, destination);
            };
            let end = destination.wrapping_add((strip.columns * BITS as usize).div_ceil(8));
            // SAFETY: `pad` bytes follow them.
            unsafe { scalar::fill(end, 0, strip.pad) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let mut at = 0;
            // SAFETY: the columns of a block; the CPU has `V`.
            at += unsafe {
                narrow_columns::<V, BITS, TRUTH, MOST_FIRST, STREAM>(
                    source,
                    destination,
                    at,
                    strip.columns,
                )
            };
            // SAFETY: as above.
            at += unsafe {
                narrow_columns::<V::Half, BITS, TRUTH, MOST_FIRST, STREAM>(
                    source,
                    destination,
                    at,
                    strip.columns,
                )
            };
            // SAFETY: as above.
            at += unsafe {
                narrow_columns::<<V::Half as Vector>::Half, BITS, TRUTH, MOST_FIRST, STREAM>(
                    source,
                    destination,
                    at,
                    strip.columns,
                )
            };
            let rest = Strip { lines: 1, blocks: 1, columns: strip.columns - at, ..*strip };
            let source = source.wrapping_add(at);
            let destination = destination.wrapping_add(at * BITS as usize / 8);
            // SAFETY: the last columns of the block, and `pad` behind them.
            unsafe { Self::elements(&rest, source, destination) };
        }
    }
}

/// [`BlockOp::Widen`].
struct Widen<const BITS: u32, const MOST_FIRST: bool>;

impl<const BITS: u32, const MOST_FIRST: bool> Algorithm for Widen<BITS, MOST_FIRST> {
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: the columns of a block.
            unsafe { scalar::widen_run::<BITS, MOST_FIRST>(strip.columns, source, destination) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let mut at = 0;
            // SAFETY: the columns of a block; the CPU has `V`.
            at += unsafe {
                widen_columns::<V, BITS, MOST_FIRST>(source, destination, at, strip.columns)
            };
            // SAFETY: as above.
            at += unsafe {
                widen_columns::<V::Half, BITS, MOST_FIRST>(source, destination, at, strip.columns)
            };
            // SAFETY: as above.
            at += unsafe {
                widen_columns::<<V::Half as Vector>::Half, BITS, MOST_FIRST>(
                    source,
                    destination,
                    at,
                    strip.columns,
                )
            };
            let rest = Strip { lines: 1, blocks: 1, columns: strip.columns - at, ..*strip };
            let source = source.wrapping_add(at * BITS as usize / 8);
            // SAFETY: the last columns of the block.
            unsafe { Self::elements(&rest, source, destination.wrapping_add(at)) };
        }
    }
}

/// Narrows whole vectors of the columns from `at` to `end`. Returns how many columns
/// that were.
///
/// # Safety
///
/// The columns up to `end` can be read as bytes, and be written. The CPU has `V`.
#[inline(always)]
unsafe fn narrow_columns<
    V: Vector,
    const BITS: u32,
    const TRUTH: bool,
    const MOST_FIRST: bool,
    const STREAM: bool,
>(
    source: *const u8,
    destination: *mut u8,
    at: usize,
    end: usize,
) -> usize {
    let columns = V::BYTES * 8 / BITS as usize;
    let mut done = 0;
    while at + done + columns <= end {
        let to = destination.wrapping_add((at + done) * BITS as usize / 8);
        let from = source.wrapping_add(at + done);
        // SAFETY: so many columns are left.
        let packed = unsafe { narrow_bytes::<V, BITS, TRUTH, MOST_FIRST>(from) };
        if STREAM && to.addr().is_multiple_of(V::BYTES) {
            // SAFETY: they fill an aligned vector.
            unsafe { packed.stream(to) };
        } else {
            // SAFETY: they fill a vector.
            unsafe { packed.store(to) };
        }
        done += columns;
    }
    done
}

/// Widens whole vectors of the columns from `at` to `end`. Returns how many columns
/// that were.
///
/// # Safety
///
/// The columns up to `end` can be read, and be written as bytes. The CPU has `V`.
#[inline(always)]
unsafe fn widen_columns<V: Vector, const BITS: u32, const MOST_FIRST: bool>(
    source: *const u8,
    destination: *mut u8,
    at: usize,
    end: usize,
) -> usize {
    let columns = V::BYTES * 8 / BITS as usize;
    let mut done = 0;
    while at + done + columns <= end {
        let from = source.wrapping_add((at + done) * BITS as usize / 8);
        // What follows the columns is mostly asked for next.
        V::prefetch::<1>(from.wrapping_add(end * BITS as usize / 8));
        // SAFETY: so many columns are left, which fill a vector.
        let packed = unsafe { V::load(from) };
        let to = destination.wrapping_add(at + done);
        // SAFETY: as above.
        unsafe { widen_to_bytes::<V, BITS, MOST_FIRST>(packed, to) };
        done += columns;
    }
    done
}

/// Bytes that hold two elements each, `BY` bits wide, into bytes that hold one each.
///
/// # Safety
///
/// The CPU has `V`.
#[inline(always)]
unsafe fn halve<V: Vector, const BY: i32, const MOST_FIRST: bool>(pairs: V) -> (V, V) {
    // SAFETY: by the contract of this function.
    let mask = unsafe { V::splat(0xff >> (8 - BY)) };
    let (low, high) = (pairs.and(mask), pairs.shr::<BY>().and(mask));
    if MOST_FIRST { high.zip::<8>(low) } else { low.zip::<8>(high) }
}

/// The inverse of [`halve`], of bytes whose other bits are 0.
#[inline(always)]
fn join<V: Vector, const BY: i32, const MOST_FIRST: bool>(bytes: (V, V)) -> V {
    let (first, second) = bytes.0.unzip::<8>(bytes.1);
    let (low, high) = if MOST_FIRST { (second, first) } else { (first, second) };
    low.or(high.shl::<BY>())
}

/// Widens a vector of elements of `BITS` bits into bytes.
///
/// # Safety
///
/// `8 / BITS` vectors of bytes can be written. The CPU has `V`.
#[inline(always)]
unsafe fn widen_to_bytes<V: Vector, const BITS: u32, const MOST_FIRST: bool>(
    packed: V,
    to: *mut u8,
) {
    let at = |i: usize| to.wrapping_add(i * V::BYTES);
    // SAFETY: the CPU has `V`.
    let (a, b) = unsafe { halve::<V, 4, MOST_FIRST>(packed) };
    if BITS == 4 {
        // SAFETY: two vectors.
        unsafe { a.store(at(0)) };
        // SAFETY: as above.
        unsafe { b.store(at(1)) };
        return;
    }
    for (i, four) in [a, b].into_iter().enumerate() {
        // SAFETY: the CPU has `V`.
        let (a, b) = unsafe { halve::<V, 2, MOST_FIRST>(four) };
        if BITS == 2 {
            // SAFETY: four vectors.
            unsafe { a.store(at(2 * i)) };
            // SAFETY: as above.
            unsafe { b.store(at(2 * i + 1)) };
            continue;
        }
        for (j, two) in [a, b].into_iter().enumerate() {
            // SAFETY: the CPU has `V`.
            let (a, b) = unsafe { halve::<V, 1, MOST_FIRST>(two) };
            // SAFETY: eight vectors.
            unsafe { a.store(at(4 * i + 2 * j)) };
            // SAFETY: as above.
            unsafe { b.store(at(4 * i + 2 * j + 1)) };
        }
    }
}

/// The low `BITS` bits of as many bytes as fill a vector with them, or whether any was
/// set.
///
/// # Safety
///
/// `8 / BITS` vectors of bytes can be read. The CPU has `V`.
#[inline(always)]
unsafe fn narrow_bytes<V: Vector, const BITS: u32, const TRUTH: bool, const MOST_FIRST: bool>(
    from: *const u8,
) -> V {
    if BITS == 4 {
        // SAFETY: two vectors.
        let two = unsafe { low_bits::<V, BITS, TRUTH>(from, 0) };
        return join::<V, 4, MOST_FIRST>(two);
    }
    if BITS == 2 {
        // SAFETY: four vectors.
        let a = unsafe { low_bits::<V, BITS, TRUTH>(from, 0) };
        // SAFETY: as above.
        let b = unsafe { low_bits::<V, BITS, TRUTH>(from, 2) };
        let pairs = (join::<V, 2, MOST_FIRST>(a), join::<V, 2, MOST_FIRST>(b));
        return join::<V, 4, MOST_FIRST>(pairs);
    }
    // SAFETY: eight vectors.
    let a = unsafe { low_bits::<V, BITS, TRUTH>(from, 0) };
    // SAFETY: as above.
    let b = unsafe { low_bits::<V, BITS, TRUTH>(from, 2) };
    // SAFETY: as above.
    let c = unsafe { low_bits::<V, BITS, TRUTH>(from, 4) };
    // SAFETY: as above.
    let d = unsafe { low_bits::<V, BITS, TRUTH>(from, 6) };
    let first = (join::<V, 1, MOST_FIRST>(a), join::<V, 1, MOST_FIRST>(b));
    let second = (join::<V, 1, MOST_FIRST>(c), join::<V, 1, MOST_FIRST>(d));
    let fours = (join::<V, 2, MOST_FIRST>(first), join::<V, 2, MOST_FIRST>(second));
    join::<V, 4, MOST_FIRST>(fours)
}

/// The low bits of vectors `i` and `i + 1`, or 1 for bytes that are not 0.
///
/// # Safety
///
/// They can be read. The CPU has `V`.
#[inline(always)]
unsafe fn low_bits<V: Vector, const BITS: u32, const TRUTH: bool>(
    from: *const u8,
    i: usize,
) -> (V, V) {
    // SAFETY: by the contract of this function.
    let mask = unsafe { V::splat(0xff >> (8 - BITS)) };
    // SAFETY: by the contract of this function.
    let a = unsafe { V::load(from.wrapping_add(i * V::BYTES)) };
    // SAFETY: by the contract of this function.
    let b = unsafe { V::load(from.wrapping_add((i + 1) * V::BYTES)) };
    if TRUTH { (a.min(mask), b.min(mask)) } else { (a.and(mask), b.and(mask)) }
}

/// [`BlockOp::Convert`]. The compiler makes vectors of its loop.
struct ConvertRun<C, const STREAM: bool>(std::marker::PhantomData<C>);

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
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        let (width, made) = (size_of::<C::From>(), size_of::<C::To>());
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let lot = Strip { lines: 1, blocks: 1, columns: CONVERTED, ..*strip };
            let mut at = 0;
            while at + CONVERTED <= strip.columns {
                let (from, to) =
                    (source.wrapping_add(at * width), destination.wrapping_add(at * made));
                // Behind the run follows what is mostly converted next.
                let ahead = Ahead { near: 2 * NEAR_AHEAD, far: 0 };
                ahead.fetch_bytes::<V, false>(from, CONVERTED * width);
                if STREAM && to.addr().is_multiple_of(V::BYTES) {
                    let mut numbers = Lot([0; CONVERTED * 8]);
                    // SAFETY: so many columns are left, and there is room for them.
                    unsafe { Self::elements(&lot, from, numbers.0.as_mut_ptr()) };
                    for vector in (0..CONVERTED * made).step_by(V::BYTES) {
                        // SAFETY: as many vectors as there are numbers; the CPU has `V`.
                        let numbers = unsafe { V::load(numbers.0.as_ptr().wrapping_add(vector)) };
                        // SAFETY: as above, and from an aligned start.
                        unsafe { numbers.stream(to.wrapping_add(vector)) };
                    }
                } else {
                    // SAFETY: so many columns are left.
                    unsafe { Self::elements(&lot, from, to) };
                }
                at += CONVERTED;
            }
            let rest = Strip { columns: strip.columns - at, ..lot };
            let (from, to) = (source.wrapping_add(at * width), destination.wrapping_add(at * made));
            // SAFETY: the last columns of the block.
            unsafe { Self::elements(&rest, from, to) };
        }
    }
}

/// So many numbers are converted before what is ahead of them is fetched.
const CONVERTED: usize = 128;

/// Numbers of 8 bytes at most, between their conversion and their way past the caches.
#[repr(align(64))]
struct Lot([u8; CONVERTED * 8]);

/// [`BlockOp::Reverse`].
struct Reverse<const BITS: u32>;

impl<const BITS: u32> Algorithm for Reverse<BITS> {
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            // SAFETY: the columns of a block.
            unsafe { scalar::reverse_run::<BITS>(strip.columns, source, destination) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let mut at = 0;
            while at + V::BYTES <= strip.columns {
                // SAFETY: so many columns are left.
                let bytes = unsafe { V::load(source.wrapping_add(at)) };
                // SAFETY: the CPU has `V`.
                let reversed = unsafe { reverse_in_bytes::<V, BITS>(bytes) };
                // SAFETY: so many columns are left.
                unsafe { reversed.store(destination.wrapping_add(at)) };
                at += V::BYTES;
            }
            let (source, destination) = (source.wrapping_add(at), destination.wrapping_add(at));
            // SAFETY: the last columns of the block.
            unsafe { scalar::reverse_run::<BITS>(strip.columns - at, source, destination) };
        }
    }
}

/// The elements of each byte in the opposite order.
///
/// # Safety
///
/// The CPU has `V`.
#[inline(always)]
unsafe fn reverse_in_bytes<V: Vector, const BITS: u32>(bytes: V) -> V {
    // SAFETY: by the contract of this function.
    let halves = unsafe { V::splat(0x0f) };
    let x = bytes.and(halves).shl::<4>().or(bytes.shr::<4>().and(halves));
    if BITS == 4 {
        return x;
    }
    // SAFETY: by the contract of this function.
    let quarters = unsafe { V::splat(0x33) };
    let x = x.and(quarters).shl::<2>().or(x.shr::<2>().and(quarters));
    if BITS == 2 {
        return x;
    }
    // SAFETY: by the contract of this function.
    let eighths = unsafe { V::splat(0x55) };
    x.and(eighths).shl::<1>().or(x.shr::<1>().and(eighths))
}

/// [`BlockOp::Strided`], `WIDTH` being the bytes of an element.
struct Strided<const WIDTH: usize>;

impl<const WIDTH: usize> Algorithm for Strided<WIDTH> {
    #[inline(always)]
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8) {
        for (source, destination) in scalar::blocks(strip, source, destination) {
            let (from, to) = (from(source, strip.row_stride), to(destination, strip.column_stride));
            // SAFETY: the elements of a block.
            unsafe { scalar::elements::<WIDTH>(strip.columns, from, to) };
        }
    }

    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        // SAFETY: the same contract.
        unsafe { Self::elements(strip, source, destination) };
    }
}
