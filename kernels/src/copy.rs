//! Runs of bytes, one byte everywhere, and elements one by one.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use super::algorithm::Algorithm;
use super::joined::{Joined, RunOp, SHORT};
use super::pages::{self, ByTurns};
use super::reversed;
use super::scalar::{self, from, to};
use super::vector::{
    LINE, STRAIGHT, Vector, has_whole_end, load_end, load_short, put, stream_zeros, streams,
    streams_short,
};
use super::walk::{Ahead, blocks};
use super::{BlockOp, Place, Strip};

/// [`BlockOp::Copy`].
pub(super) struct CopyRun<const STREAM: bool>;

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
        let are_vectors =
            streams::<V>(strip, destination, (strip.columns + strip.pad) | strip.tail);
        if STREAM
            && !are_vectors
            && let Some(joined) = Joined::new(strip, BlockOp::Copy, 1, LINE, destination)
        {
            // SAFETY: the same strip and op.
            return unsafe { joined.run::<Self, V>(strip, source, destination) };
        }
        let is_loose = STREAM && !are_vectors && strip.columns < SHORT;
        for (strip, place) in strip.parts::<STREAM>(&mut Strip::default()) {
            let (source, destination) = place.of(source, destination);
            if is_loose {
                // SAFETY: a part of the strip.
                unsafe { store_runs::<V>(strip, source, destination) };
            } else {
                // SAFETY: as above.
                unsafe { Self::alike::<V>(strip, order, source, destination) };
            }
        }
    }
}

impl<const STREAM: bool> CopyRun<STREAM> {
    /// Does a strip whose lines are alike.
    ///
    /// # Safety
    ///
    /// That of [`Algorithm::vectors`].
    #[inline(always)]
    unsafe fn alike<V: Vector>(
        strip: &Strip,
        order: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        let bytes = strip.columns;
        // SAFETY: the same strip and op, and the bytes of a row of it.
        if STREAM && unsafe { pages::run::<Self, V, 1>(strip, bytes, source, destination) } {
            return;
        }
        if STREAM
            && strip.pad == 0
            && bytes.is_multiple_of(V::BYTES)
            && streams::<V>(strip, destination, 0)
        {
            // SAFETY: the same strip, of whole vectors that are aligned.
            return unsafe { stream_runs::<V>(strip, source, destination) };
        }
        let is_short = strip.columns < V::BYTES;
        let is_whole = STREAM
            && (!is_short || streams_short(strip))
            && has_whole_end::<V>(strip, strip.columns)
            && streams::<V>(strip, destination, 0);
        let mut places = blocks::<STREAM>(strip, order, strip.columns);
        while let Some(place) = places.next() {
            let ahead = places.ahead;
            let (source, destination) = place.of(source, destination);
            if is_whole {
                let rest = strip.columns % V::BYTES;
                let count = strip.columns - rest;
                // SAFETY: a block of the strip has `columns` bytes on both sides; the
                // CPU has `V`.
                unsafe { copy_run::<V, STREAM>(source, destination, count, ahead) };
                let mut to = destination.wrapping_add(count);
                let end = destination.wrapping_add(strip.columns + strip.pad);
                if rest > 0 {
                    let last = if is_short {
                        // SAFETY: the bytes of a run that has fewer than a vector.
                        unsafe { load_short::<V>(source, rest) }
                    } else {
                        // SAFETY: the last bytes of a run that has those of a vector.
                        unsafe { load_end::<V>(source.wrapping_add(strip.columns), rest) }
                    };
                    // SAFETY: with as much of the padding as makes a vector.
                    unsafe { last.stream(to) };
                    to = to.wrapping_add(V::BYTES);
                }
                // SAFETY: the rest of the padding.
                unsafe { stream_zeros::<V>(to, end.addr() - to.addr()) };
                continue;
            }
            // SAFETY: a block of the strip has `columns` bytes on both sides; the
            // CPU has `V`.
            unsafe { copy_run::<V, STREAM>(source, destination, strip.columns, ahead) };
            // SAFETY: and `pad` behind them.
            unsafe { scalar::fill(destination.wrapping_add(strip.columns), 0, strip.pad) };
        }
    }
}

impl<const STREAM: bool> ByTurns<1> for CopyRun<STREAM> {
    const TO_ROWS: bool = false;

    #[inline(always)]
    unsafe fn made<V: Vector>(_: &Strip, source: *const u8) -> [V; 1] {
        // SAFETY: a vector of the run.
        [unsafe { V::load(source) }]
    }
}

impl<const STREAM: bool> RunOp for CopyRun<STREAM> {
    #[inline(always)]
    unsafe fn vector<V: Vector>(source: *const u8, _: usize, at: usize) -> V {
        // SAFETY: a vector of the run.
        unsafe { V::load(source.wrapping_add(at)) }
    }
}

/// Stores the runs of a strip through the caches, in the order in which they would be streamed, and the padding behind
/// them.
///
/// # Safety
///
/// That of [`Algorithm::vectors`].
#[inline(always)]
unsafe fn store_runs<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
    let count = strip.columns;
    let mut places = blocks::<true>(strip, &[], count);
    while let Some(place) = places.next() {
        let ahead = places.ahead;
        let (source, destination) = place.of(source, destination);
        ahead.fetch_bytes::<V, true>(source, count);
        // SAFETY: a block of the strip has `columns` bytes on both sides; the CPU has `V`.
        unsafe { copy_run::<V, false>(source, destination, count, Ahead::default()) };
        // SAFETY: and `pad` behind them.
        unsafe { scalar::fill(destination.wrapping_add(count), 0, strip.pad) };
    }
}

/// Streams the runs of a strip. A loop with no more in it than that has no need of the
/// stack, whose stores would be in the way of those that are streamed.
///
/// # Safety
///
/// That of [`Algorithm::vectors`], and the runs are whole vectors, which are aligned in the
/// destination.
#[inline(always)]
unsafe fn stream_runs<V: Vector>(strip: &Strip, source: *const u8, destination: *mut u8) {
    let Strip { columns, source_step, destination_step, .. } = *strip;
    let mut places = blocks::<true>(strip, &[], columns);
    while let Some((place, count)) = places.next_alike() {
        let ahead = places.ahead;
        let (mut source, mut destination) = place.of(source, destination);
        for _ in 0..count {
            for at in (0..columns).step_by(V::BYTES) {
                ahead.fetch_paced::<V>(source.wrapping_add(at));
                // SAFETY: one of the vectors of a run.
                let vector = unsafe { V::load(source.wrapping_add(at)) };
                // SAFETY: the same place in the destination.
                unsafe { vector.stream(destination.wrapping_add(at)) };
            }
            source = source.wrapping_add(source_step);
            destination = destination.wrapping_add(destination_step);
        }
    }
}

/// Copies a run of bytes, of which streaming writes all that is in whole
/// vectors, fetching what is `ahead` of it.
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
) {
    if count < 16 {
        // SAFETY: by the contract of this function.
        unsafe { scalar::few(source, destination, count, 16) };
        return;
    }
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
        // SAFETY: so many bytes of the run, to an aligned place.
        unsafe { stream_straight::<V>(from, to, ahead) };
        at += STRAIGHT;
    }
    while !STREAM && at + STRAIGHT <= count {
        ahead.fetch_bytes::<V, false>(source.wrapping_add(at), STRAIGHT);
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

/// Streams [`STRAIGHT`] bytes, each vector after fetching what is `ahead` of it.
///
/// # Safety
///
/// So many bytes can be read and written, and they are aligned for `V`. The CPU has `V`.
#[inline(always)]
unsafe fn stream_straight<V: Vector>(source: *const u8, destination: *mut u8, ahead: Ahead) {
    for at in (0..STRAIGHT).step_by(V::BYTES) {
        ahead.fetch_paced::<V>(source.wrapping_add(at));
        // SAFETY: one of the vectors of these bytes.
        let vector = unsafe { V::load(source.wrapping_add(at)) };
        // SAFETY: the same place in the destination.
        unsafe { vector.stream(destination.wrapping_add(at)) };
    }
}

/// [`BlockOp::Fill`].
pub(super) struct Fill<const STREAM: bool>;

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

/// [`BlockOp::Strided`], `WIDTH` being the bytes of an element.
pub(super) struct Strided<const WIDTH: usize>;

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
        if !strip.reverses(WIDTH) {
            // SAFETY: the same contract.
            return unsafe { Self::elements(strip, source, destination) };
        }
        let bytes = strip.columns * WIDTH;
        for (last, to) in scalar::blocks(strip, source, destination) {
            let from = last.wrapping_sub(bytes - WIDTH);
            // SAFETY: the elements of a block, the last of which is read first: more bytes than a number has.
            unsafe { reversed::run::<V, WIDTH>(from, to, bytes) };
        }
    }
}
