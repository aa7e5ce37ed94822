//! Runs whose elements come in the opposite order: a host array that goes down in memory.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

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
    let last = bytes - V::BYTES;
    let mut at = 0;
    loop {
        // The last part comes first, too.
        let from = source.wrapping_add(last - at + V::BYTES - V::REACH);
        // SAFETY: parts of the vector that ends so far before the end of the run, and within it.
        let vector = unsafe { V::load_parts(from, V::REACH.wrapping_neg()) };
        // SAFETY: a vector that ends within the run.
        unsafe { vector.shuffle(order).store(destination.wrapping_add(at)) };
        if at == last {
            return;
        }
        // The last one is over the one before.
        at = last.min(at + V::BYTES);
    }
}

/// The same, some elements at a time as a number.
///
/// # Safety
///
/// That of [`run`].
#[inline(always)]
unsafe fn by_numbers<const WIDTH: usize>(source: *const u8, destination: *mut u8, bytes: usize) {
    let last = bytes - NUMBER;
    let mut at = 0;
    loop {
        let from = source.wrapping_add(last - at).cast::<u64>();
        // SAFETY: it ends so far before the end of the run, and within it.
        let number = unsafe { from.read_unaligned() };
        let to = destination.wrapping_add(at).cast::<u64>();
        // SAFETY: it ends within the run.
        unsafe { to.write_unaligned(turned_round::<WIDTH>(number)) };
        if at == last {
            return;
        }
        at = last.min(at + NUMBER);
    }
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
        _ => number,
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
