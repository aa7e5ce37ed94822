//! Elements of three bytes, as the pixels of images are, turned as words of four.
//!
//! Four elements of a row are spread to words, four rows of these turned within the parts of vectors, and the words of
//! a column packed again:
//!
//! ```text
//! four rows    abc def ghi jkl    spread    abc. def. ghi. jkl.    turned    abc. ABC. ...    packed    abc ABC ...
//!              ABC DEF GHI JKL              ABC. DEF. GHI. JKL.              def. DEF. ...              def DEF ...
//! ```
//!
//! Sixteen bytes are read and written where there are twelve: what is too much is elements of the same row, and of the
//! same column, which are written later.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use super::vector::{MOST_WITHIN, SHORTEST, Vector, turn_within, unrolled};

/// The bytes of an element.
pub(super) const WIDTH: usize = 3;

/// The columns of a block, and the rows of it in each part of a vector.
pub(super) const COLUMNS: usize = 4;

/// The rows of a block.
pub(super) const fn rows<V: Vector>() -> usize {
    COLUMNS * V::BYTES / SHORTEST
}

/// Behind the columns of a block there are so many elements of each row at least, and as many of each column.
const BEYOND: usize = (SHORTEST - COLUMNS * WIDTH).div_ceil(WIDTH);

/// So many of these columns and rows, whole blocks, have what has to be behind them: of the columns others may be.
#[inline(always)]
pub(super) fn whole_blocks<V: Vector>(
    (columns, behind_columns): (usize, usize),
    all_rows: usize,
) -> (usize, usize) {
    let with_others = columns.min((columns + behind_columns).saturating_sub(BEYOND));
    let tall = rows::<V>();
    (with_others / COLUMNS * COLUMNS, all_rows.saturating_sub(BEYOND) / tall * tall)
}

/// Which byte each byte becomes.
#[repr(align(64))]
struct Order([u8; 64]);

/// Where each word has the three bytes of an element, whatever the last one is, and the other way round. Whole vectors, or
/// their parts of 16 bytes, are what instructions reach.
const fn orders(are_parts: bool) -> [Order; 2] {
    let (mut spread, mut packed) = ([0; 64], [0; 64]);
    let mut i = 0_u8;
    while i < 64 {
        let (part, at) = (if are_parts { 0 } else { i / 16 * 16 }, i % 16);
        let (word, byte) = (at / 4, at % 4);
        spread[i as usize] = if byte < 3 { part + 3 * word + byte } else { part };
        packed[i as usize] = if at < 12 { part + at / 3 * 4 + at % 3 } else { part };
        i += 1;
    }
    [Order(spread), Order(packed)]
}

/// For instructions that reach as far as the shortest vectors, and as the longest ones.
static OF_PARTS: [Order; 2] = orders(true);
static OF_ALL: [Order; 2] = orders(false);

/// Turns a block, whose rows are so far apart, to these columns.
///
/// # Safety
///
/// Its elements, and those beyond, can be read and written. The CPU has `V`, which has a shuffle.
#[inline(always)]
pub(super) unsafe fn turn<V: Vector>(
    source: *const u8,
    stride: usize,
    columns: [*mut u8; COLUMNS],
) {
    let orders = if V::REACH == SHORTEST { &OF_PARTS } else { &OF_ALL };
    // SAFETY: as many bytes as the longest vector has; the CPU has `V`.
    let spread = unsafe { V::load(orders[0].0.as_ptr()) };
    // SAFETY: as above.
    let packed = unsafe { V::load(orders[1].0.as_ptr()) };
    // SAFETY: the CPU has `V`.
    let mut vectors = [unsafe { V::splat(0) }; MOST_WITHIN];
    unrolled!(i in COLUMNS, {
        let first = source.wrapping_add(stride.wrapping_mul(i));
        // SAFETY: a row of the block in each part, and what is behind.
        let row = unsafe { V::gather(first, stride.wrapping_mul(COLUMNS), SHORTEST) };
        vectors[i] = row.shuffle(spread);
    });
    let turned = turn_within::<V, 32>(vectors);
    unrolled!(i in COLUMNS, {
        // SAFETY: the rows of a column, and what is behind.
        unsafe { turned[i].shuffle(packed).scatter(columns[i], COLUMNS * WIDTH, SHORTEST) };
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spread_is_packed_again() {
        for (orders, reach) in [(&OF_PARTS, SHORTEST), (&OF_ALL, 64)] {
            let bytes: Vec<u8> = (0..64).collect();
            let shuffled = |from: &[u8], order: &Order| -> Vec<u8> {
                let part = |i: usize| i / reach * reach;
                (0..64).map(|i| from[part(i) + usize::from(order.0[i])]).collect()
            };
            let spread = shuffled(&bytes, &orders[0]);
            assert_eq!(
                (spread[4..7].to_vec(), spread[32..35].to_vec()),
                (vec![3, 4, 5], vec![32, 33, 34])
            );
            for (part, packed) in
                bytes.chunks(SHORTEST).zip(shuffled(&spread, &orders[1]).chunks(SHORTEST))
            {
                assert_eq!(part[..COLUMNS * WIDTH], packed[..COLUMNS * WIDTH]);
            }
        }
    }
}
