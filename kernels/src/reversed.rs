//! Runs whose elements come in the opposite order: a host array that goes down in memory.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::mem::MaybeUninit;
use std::slice;

use super::vector::{LINE, Vector};

/// The bytes of a number that [`by_numbers`] turns round.
const NUMBER: usize = 8;

/// For each byte of a vector, which shuffles so many at a time, the one of elements of `WIDTH` bytes that comes there.
struct Order<const WIDTH: usize, const REACH: usize>;

impl<const WIDTH: usize, const REACH: usize> Order<WIDTH, REACH> {
    #[allow(clippy::cast_possible_truncation, reason = "no vector is longer than a line")]
    const OF: [u8; LINE] = {
        let mut order = [0; LINE];
        let mut i = 0;
        while i < LINE {
            let (element, byte) = (i % REACH / WIDTH, i % WIDTH);
            order[i] = (REACH - (element + 1) * WIDTH + byte) as u8;
            i += 1;
        }
        order
    };
}

/// Moves so many bytes, of elements of `WIDTH` bytes, the last of which comes first.
///
/// # Safety
///
/// So many bytes can be read and written; they are whole elements and no less than [`NUMBER`], of which elements are parts.
/// The CPU has `V`.
#[inline(always)]
pub(super) unsafe fn run<V: Vector, const WIDTH: usize>(
    source: *const u8,
    destination: *mut u8,
    bytes: usize,
) {
    if V::REACH == 0 && WIDTH > 1 {
        // SAFETY: the same contract.
        return unsafe { by_elements::<WIDTH>(source, destination, bytes) };
    }
    if V::REACH == 0 || bytes < V::BYTES {
        // SAFETY: the same contract.
        return unsafe { by_numbers::<WIDTH>(source, destination, bytes) };
    }
    let order = match V::REACH {
        LINE => &Order::<WIDTH, LINE>::OF,
        _ => &Order::<WIDTH, 16>::OF,
    };
    // SAFETY: a line, and no vector is longer.
    let order = unsafe { V::load(order.as_ptr()) };
    let mut at = 0;
    while at + V::BYTES <= bytes {
        let (from, to) = (source.wrapping_add(bytes - at), destination.wrapping_add(at));
        // SAFETY: a vector that ends so far before the end of the run, and one from there on.
        unsafe { part::<V>(from, to, order) };
        at += V::BYTES;
    }
    if at < bytes {
        let (from, to) =
            (source.wrapping_add(V::BYTES), destination.wrapping_add(bytes - V::BYTES));
        // SAFETY: the first vector of the run, and the last one, which is over the one before.
        unsafe { part::<V>(from, to, order) };
    }
}

/// Moves a vector that ends at `end`.
///
/// # Safety
///
/// It can be read, and be written. The CPU has `V`, and `order` is that of its elements.
#[inline(always)]
unsafe fn part<V: Vector>(end: *const u8, to: *mut u8, order: V) {
    // The last part comes first, too.
    let last = end.wrapping_sub(V::REACH);
    // SAFETY: by the contract of this function.
    let vector = unsafe { V::load_parts(last, V::REACH.wrapping_neg()) };
    // SAFETY: as above.
    unsafe { vector.shuffle(order).store(to) };
}

/// The same, element by element, of which the compiler makes vectors where it knows what the CPU has.
///
/// # Safety
///
/// That of [`run`].
#[inline(always)]
unsafe fn by_elements<const WIDTH: usize>(source: *const u8, destination: *mut u8, bytes: usize) {
    let count = bytes / WIDTH;
    // SAFETY: by the contract of this function.
    let from = unsafe { slice::from_raw_parts(source.cast::<[u8; WIDTH]>(), count) };
    let to = destination.cast::<MaybeUninit<[u8; WIDTH]>>();
    // SAFETY: as above; nobody else writes what a kernel writes.
    let to = unsafe { slice::from_raw_parts_mut(to, count) };
    for (from, to) in from.iter().rev().zip(to) {
        to.write(*from);
    }
}

/// The same, some elements at a time as a number.
///
/// # Safety
///
/// That of [`run`].
#[inline(always)]
unsafe fn by_numbers<const WIDTH: usize>(source: *const u8, destination: *mut u8, bytes: usize) {
    let mut at = 0;
    while at + NUMBER <= bytes {
        let (from, to) = (source.wrapping_add(bytes - at - NUMBER), destination.wrapping_add(at));
        // SAFETY: a number that ends so far before the end of the run, and one from there on.
        unsafe { number::<WIDTH>(from, to) };
        at += NUMBER;
    }
    if at < bytes {
        // SAFETY: the first number of the run, and the last one, which is over the one before.
        unsafe { number::<WIDTH>(source, destination.wrapping_add(bytes - NUMBER)) };
    }
}

/// Moves some elements as a number.
///
/// # Safety
///
/// It can be read, and be written.
#[inline(always)]
unsafe fn number<const WIDTH: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: by the contract of this function.
    let number = unsafe { from.cast::<u64>().read_unaligned() };
    // SAFETY: as above.
    unsafe { to.cast::<u64>().write_unaligned(turned_round::<WIDTH>(number)) };
}

/// The elements of `WIDTH` bytes that a number has in memory, the last one first.
fn turned_round<const WIDTH: usize>(number: u64) -> u64 {
    const ODD: u64 = 0xff00_ff00_ff00_ff00;
    match WIDTH {
        1 => number.swap_bytes(),
        2 => {
            let bytes = number.swap_bytes();
            (bytes & ODD) >> 8 | (bytes & !ODD) << 8
        }
        4 => number.rotate_left(32),
        8 => number,
        _ => {
            debug_assert!(false, "elements are parts of a number");
            number
        }
    }
}

#[cfg(test)]
mod tests {
    use super::turned_round;

    #[test]
    fn elements_of_a_number_are_turned_round() {
        let of = |bytes: [u8; 8]| u64::from_ne_bytes(bytes);
        let number = of([0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(turned_round::<1>(number), of([7, 6, 5, 4, 3, 2, 1, 0]));
        assert_eq!(turned_round::<2>(number), of([6, 7, 4, 5, 2, 3, 0, 1]));
        assert_eq!(turned_round::<4>(number), of([4, 5, 6, 7, 0, 1, 2, 3]));
        assert_eq!(turned_round::<8>(number), number);
    }
}
