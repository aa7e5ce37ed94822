//! Numbers of one type into numbers of another one.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use super::algorithm::Algorithm;
use super::scalar;
use super::vector::Vector;
use super::walk::{Ahead, NEAR_AHEAD};
use super::{Place, Strip};
use crate::conversion::Convert;

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
                let ahead = Ahead::near(2 * NEAR_AHEAD);
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

/// Numbers of 8 bytes at most, between their conversion and their way to memory.
#[repr(align(64))]
struct Lot([u8; CONVERTED * 8]);
