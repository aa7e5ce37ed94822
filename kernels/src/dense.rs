//! Dense matrices of few columns, whose rows follow each other, and of few rows, whose columns do:
//! points and pixels, say.
//!
//! As many vectors as there are columns hold whole rows, so that they can be taken apart in registers.
//! Where the number of columns is even, two beside each other are one element for a while, or four or
//! eight, which are unzipped in the end. Of an odd number, a column has at most one element in each lane of
//! these vectors, as the lanes are a power of two:
//!
//! ```text
//! three columns, four lanes      a0 b0 c0 a1     b1 c1 a2 b2     c2 a3 b3 c3
//! what is of the first           a0 .. .. a1     .. .. a2 ..     .. a3 .. ..
//! in one vector                  a0 a3 a2 a1
//! shuffled                       a0 a1 a2 a3
//! ```
//!
//! The other way goes backwards.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::mem::MaybeUninit;

use super::algorithm::Body;
use super::carry::CacheLines;
use super::matrix::Matrix;
use super::scalar;
use super::vector::{LINE, SHORTEST, Vector, unrolled, unweave, weave};
use super::walk::Ahead;
use super::whole_lines::{BESIDE, Ends, WholeLines};
use super::{Place, Run, Strip};

/// The most columns, or rows.
const MOST: usize = 16;

/// So many bytes of columns are made at a time, where they are streamed, and less than a vector of each row and of the next
/// ones more.
const ENOUGH: usize = 2048;

/// The memory that they are in.
type Memory = CacheLines<{ (ENOUGH + BESIDE) / LINE + 2 * MOST }>;

/// The bytes of the widest element that is shuffled.
const WIDEST: usize = 16;

/// Transposes matrices of `ODD` times `EVEN` columns or rows, of elements of `BITS` bits, which are
/// `WIDTH` bytes.
pub(super) struct Dense<
    const ODD: usize,
    const EVEN: usize,
    const BITS: u32,
    const WIDTH: usize,
    const STREAM: bool,
>;

/// Who transposes a strip of dense matrices, if it is one.
#[inline(always)]
pub(super) fn dense<V: Vector, const BITS: u32, const WIDTH: usize, const STREAM: bool>(
    strip: &Strip,
) -> Option<Run> {
    if V::REACH == 0 {
        return None;
    }
    let matrix = Matrix::new(strip, WIDTH, 1).dense(strip, WIDTH, V::BYTES)?;
    macro_rules! run {
        ($odd:literal, $even:literal) => {
            if const { !is_done($odd * $even, WIDTH) } {
                return None;
            } else if STREAM {
                V::compiled::<Dense<$odd, $even, BITS, WIDTH, true>>()
            } else {
                V::compiled::<Dense<$odd, $even, BITS, WIDTH, false>>()
            }
        };
    }
    Some(match matrix.few() {
        3 => run!(3, 1),
        5 => run!(5, 1),
        6 => run!(3, 2),
        7 => run!(7, 1),
        8 => run!(1, 8),
        9 => run!(9, 1),
        10 => run!(5, 2),
        11 => run!(11, 1),
        12 => run!(3, 4),
        14 => run!(7, 2),
        _ => run!(1, 16),
    })
}

/// Whether matrices of so many columns or rows, of elements of so many bytes, are done here: fewer are
/// interleaved, or of few bytes in all, and of more there are squares. So there are of 13 and 15, which shuffles of
/// 16 bytes do more slowly.
#[inline(always)]
const fn is_done(few: usize, width: usize) -> bool {
    match few {
        8 => true,
        13 | 15 => false,
        16 => width < size_of::<u32>(),
        3..MOST => !few.is_power_of_two() && (width << few.trailing_zeros()) <= WIDEST,
        _ => false,
    }
}

impl Strip {
    /// Of a transpose of elements of so many bytes: whether its matrices are dense and have few columns,
    /// or few rows.
    pub fn is_dense(&self, width: usize) -> bool {
        Matrix::new(self, width, 1).dense(self, width, SHORTEST).is_some()
    }
}

/// [`Algorithm::instead`](super::algorithm::Algorithm::instead) of the algorithms over dense rows: a function
/// for each of these numbers of columns, for which such a file has `Columns`, and `elements` for others.
macro_rules! instead_by_columns {
    ($algorithm:ident, $strip:ident, $($columns:literal = $odd:literal * $even:literal),+) => {{
        if V::REACH == 0 {
            return None;
        }
        if $strip.rows * WIDTH < V::BYTES {
            return Some(shorter::<Self, V>());
        }
        match ($strip.columns, STREAM) {
            $(
                ($columns, true) => Some(
                    V::compiled::<Columns<$algorithm<WAYS, BITS, WIDTH, true>, $odd, $even>>(),
                ),
                ($columns, false) => Some(
                    V::compiled::<Columns<$algorithm<WAYS, BITS, WIDTH, false>, $odd, $even>>(),
                ),
            )+
            _ => None,
        }
    }};
}
pub(super) use instead_by_columns;

impl Matrix {
    /// The smaller of its two sides.
    #[inline(always)]
    fn few(&self) -> usize {
        self.rows.min(self.columns)
    }

    /// This one, or the blocks of its strip, if these are dense and the longer side has enough for a
    /// vector of so many bytes.
    #[inline(always)]
    fn dense(&self, strip: &Strip, width: usize, vector: usize) -> Option<Matrix> {
        [Some(*self), Matrix::of_blocks(strip)].into_iter().flatten().find(|matrix| {
            let few = matrix.few();
            let (long, places) = if matrix.columns < matrix.rows {
                (matrix.rows, matrix.row)
            } else {
                (matrix.columns, matrix.column)
            };
            is_done(few, width)
                && places.stride == few * width
                && places.is_even(long)
                && long.saturating_mul(width) >= vector
        })
    }
}

impl<const ODD: usize, const EVEN: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool>
    Body for Dense<ODD, EVEN, BITS, WIDTH, STREAM>
{
    #[inline(always)]
    unsafe fn run<V: Vector>(strip: &Strip, _: &[Place], source: *const u8, destination: *mut u8) {
        let Some(matrix) = Matrix::new(strip, WIDTH, 1).dense(strip, WIDTH, V::BYTES) else {
            return;
        };
        let others = &matrix.others;
        let ways = Ways::<ODD>::of::<V>(WIDTH * EVEN);
        // SAFETY: the CPU has `V`.
        let masks = unsafe { ways.masks::<V>() };
        let mut places = [0; MOST];
        let places = &mut places[..ODD * EVEN];
        if matrix.columns < matrix.rows {
            matrix.column.places(1, 0, places);
            let ends = Ends::of(others, matrix.rows * WIDTH);
            let made = Made {
                matrix: &matrix,
                ways,
                masks,
                places,
                ahead: Ahead::by_steps(others, 1),
                ends,
            };
            let stream = STREAM && V::BYTES >= LINE / 2 && matrix.has_whole_lines(destination);
            for (source, destination) in scalar::blocks(others, source, destination) {
                // SAFETY: one of the matrices.
                unsafe { Self::few_columns(&made, source, destination, stream) };
            }
            return;
        }
        matrix.row.places(1, 0, places);
        let step = if others.blocks > 1 { others.source_step } else { 1 };
        let ends = Ends::of(others, matrix.columns * ODD * EVEN * WIDTH);
        let made = Made {
            matrix: &matrix,
            ways,
            masks,
            places,
            ahead: Ahead::by_steps(others, step),
            ends,
        };
        let mut memory = MaybeUninit::<Memory>::uninit();
        let mut lines = WholeLines::at(memory.as_mut_ptr().cast());
        for (source, destination) in scalar::blocks(others, source, destination) {
            // SAFETY: one of the matrices.
            unsafe { Self::few_rows(&made, source, destination, &mut lines) };
        }
        if STREAM {
            // SAFETY: what was made is of the strip, which can be written.
            unsafe { lines.finish::<V>() };
        }
    }
}

/// What is the same for all matrices of a strip, whose few columns or rows begin at these places.
struct Made<'a, V, const ODD: usize> {
    matrix: &'a Matrix,
    ways: &'static Ways<ODD>,
    masks: [V; ODD],
    places: &'a [usize],
    ahead: Ahead,
    ends: Ends,
}

impl<const ODD: usize, const EVEN: usize, const BITS: u32, const WIDTH: usize, const STREAM: bool>
    Dense<ODD, EVEN, BITS, WIDTH, STREAM>
{
    /// The lanes of what is shuffled, of elements as wide as several are for a while.
    const fn lanes<V: Vector>() -> usize {
        if ODD == 1 { 1 } else { V::REACH / (WIDTH * EVEN) }
    }

    /// # Safety
    ///
    /// A dense matrix of `ODD` times `EVEN` columns, which has rows for a `V`; for `stream`, columns begin at lines. The CPU
    /// has `V`.
    #[inline(always)]
    unsafe fn few_columns<V: Vector>(
        made: &Made<'_, V, ODD>,
        source: *const u8,
        destination: *mut u8,
        stream: bool,
    ) {
        let &Made { matrix, ways, masks, places, ahead, ends } = made;
        let (lanes, row) = (V::BYTES / WIDTH, ODD * EVEN * WIDTH);
        if stream {
            for &place in places {
                ends.fetch_end::<V>(destination.wrapping_add(place));
            }
        }
        let mut next = 0;
        while next < matrix.rows {
            // The last ones end where the columns do.
            let first = next.min(matrix.rows - lanes);
            let from = source.wrapping_add(first * row);
            if STREAM && matrix.others.is_far {
                ahead.fetch_lines::<V>((ODD * EVEN * V::BYTES).div_ceil(LINE), from);
            }
            // SAFETY: `lanes` rows.
            let columns = unsafe { Self::take_apart(ways, &masks, from) };
            for (vectors, places) in columns.into_iter().zip(places.as_chunks::<EVEN>().0) {
                for (vector, &place) in vectors.into_iter().zip(places) {
                    let to = destination.wrapping_add(place.wrapping_add(first * WIDTH));
                    let done = (next - first) * WIDTH;
                    // SAFETY: `lanes` rows of one column.
                    unsafe { store_rest::<V, STREAM>(vector, to, done, stream) };
                }
            }
            next = first + lanes;
        }
    }

    /// So many columns are made at a time where they are streamed.
    const fn columns_at_once<V: Vector>() -> usize {
        let lanes = V::BYTES / WIDTH;
        (ENOUGH / (ODD * EVEN * WIDTH)).next_multiple_of(lanes)
    }

    /// # Safety
    ///
    /// A dense matrix of `ODD` times `EVEN` rows, which has columns for a `V`; what `lines` has can be written. The CPU has
    /// `V`.
    #[inline(always)]
    unsafe fn few_rows<V: Vector>(
        made: &Made<'_, V, ODD>,
        source: *const u8,
        destination: *mut u8,
        lines: &mut WholeLines,
    ) {
        let &Made { matrix, ways, masks, places, ahead, ends } = made;
        let (lanes, column) = (V::BYTES / WIDTH, ODD * EVEN * WIDTH);
        let at_once = const { Self::columns_at_once::<V>() };
        const {
            let most = (Self::columns_at_once::<V>() + V::BYTES / WIDTH) * ODD * EVEN * WIDTH;
            assert!(most + BESIDE <= size_of::<Memory>(), "there is room for them");
        }
        let mut next = 0;
        while next < matrix.columns {
            let left = matrix.columns - next;
            // Of the last ones, there are those of a vector at least.
            let count = if STREAM && left >= at_once + lanes { at_once } else { left };
            let mut to = destination.wrapping_add(next * column);
            if STREAM {
                if next == 0 && !lines.goes_on(to) {
                    ends.fetch::<V>(to);
                }
                // SAFETY: what was made can be written.
                to = unsafe { lines.room::<V>(to) };
            }
            for at in (0..count).step_by(lanes) {
                // The last ones end where the columns do.
                let at = at.min(count - lanes);
                let mut parts = [[masks[0]; EVEN]; ODD];
                for (part, places) in parts.iter_mut().zip(places.as_chunks::<EVEN>().0) {
                    for (vector, &place) in part.iter_mut().zip(places) {
                        let at = (next + at) * WIDTH;
                        let from = source.wrapping_add(place.wrapping_add(at));
                        if STREAM && matrix.others.is_far {
                            ahead.fetch_vector::<V>(at, from);
                        }
                        // SAFETY: `lanes` columns of one row.
                        *vector = unsafe { V::load(from) };
                    }
                }
                // SAFETY: `lanes` columns.
                unsafe {
                    Self::put_together(ways, &masks, parts, to.wrapping_add(at * column), false)
                };
            }
            if STREAM {
                // SAFETY: so many were made where there is room for them.
                unsafe { lines.made::<V>(count * column) };
            }
            next += count;
        }
    }

    /// A vector of each column, of as many rows from one place on.
    ///
    /// # Safety
    ///
    /// These rows can be read. The CPU has `V`.
    #[inline(always)]
    pub(super) unsafe fn take_apart<V: Vector>(
        ways: &Ways<ODD>,
        masks: &[V; ODD],
        from: *const u8,
    ) -> [[V; EVEN]; ODD] {
        let mut parts = [[masks[0]; EVEN]; ODD];
        for i in 0..EVEN {
            let from = from.wrapping_add(i * ODD * V::BYTES);
            let mut vectors = *masks;
            for (vector, &at) in vectors.iter_mut().zip(&ways.vectors) {
                let from = from.wrapping_add(at * V::REACH);
                // SAFETY: a part of the rows.
                *vector = unsafe { V::load_parts(from, ODD * V::REACH) };
            }
            let apart = ways.take_apart(Self::lanes::<V>(), masks, vectors);
            for (part, &vector) in parts.iter_mut().zip(&apart) {
                part[i] = vector;
            }
        }
        for part in &mut parts {
            *part = unweave::<V, EVEN, BITS>(*part);
        }
        parts
    }

    /// A vector of each row, to as many columns from one place on.
    ///
    /// # Safety
    ///
    /// These columns can be written, for `stream` from the beginning of a line on by vectors of lines. The CPU has `V`.
    #[inline(always)]
    pub(super) unsafe fn put_together<V: Vector>(
        ways: &Ways<ODD>,
        masks: &[V; ODD],
        mut parts: [[V; EVEN]; ODD],
        to: *mut u8,
        stream: bool,
    ) {
        for part in &mut parts {
            *part = weave::<V, EVEN, BITS>(*part);
        }
        for i in 0..EVEN {
            let to = to.wrapping_add(i * ODD * V::BYTES);
            let mut apart = *masks;
            for (vector, part) in apart.iter_mut().zip(&parts) {
                *vector = part[i];
            }
            let together = ways.put_together(Self::lanes::<V>(), masks, apart);
            for (vector, &at) in together.into_iter().zip(&ways.vectors) {
                let to = to.wrapping_add(at * V::REACH);
                if STREAM && stream {
                    // SAFETY: a part of the columns, which is a line.
                    unsafe { vector.stream(to) };
                } else {
                    // SAFETY: a part of the columns.
                    unsafe { vector.store_parts(to, ODD * V::REACH) };
                }
            }
        }
    }
}

/// Stores a vector of which so many bytes have been written before: for `stream` not these again, as they have been
/// streamed, and past the caches where it begins at a multiple of its bytes.
///
/// # Safety
///
/// It can be written.
#[inline(always)]
pub(super) unsafe fn store_rest<V: Vector, const STREAM: bool>(
    vector: V,
    to: *mut u8,
    done: usize,
    stream: bool,
) {
    if !(STREAM && stream) {
        // SAFETY: by the contract of this function.
        unsafe { vector.store(to) };
    } else if done == 0 && to.addr().is_multiple_of(V::BYTES) {
        // SAFETY: as above, from an aligned start.
        unsafe { vector.stream(to) };
    } else if done < V::BYTES {
        let mut made = [0; LINE];
        // SAFETY: no vector is longer than a line.
        unsafe { vector.store(made.as_mut_ptr()) };
        let (from, to) = (made.as_ptr().wrapping_add(done), to.wrapping_add(done));
        // SAFETY: the rest of it.
        unsafe { scalar::run(from, to, V::BYTES - done) };
    }
}

/// Of the bytes of a line.
const NUMBERS: [u8; LINE] = {
    let mut numbers = [0; LINE];
    let mut number: u8 = 0;
    while (number as usize) < LINE {
        numbers[number as usize] = number;
        number += 1;
    }
    numbers
};

/// How an odd number of ways is taken apart, elements of some bytes in vectors that are
/// shuffled so many bytes at a time.
pub(super) struct Ways<const ODD: usize> {
    /// The vectors by what they begin with: lane l of number r has an element of way (l + r) mod `ODD`.
    vectors: [usize; ODD],
    /// The lanes l of which l mod `ODD` is that number.
    lanes: [[u8; LINE]; ODD],
    /// For each way the lanes in the order of its elements, and its elements in the order of the lanes.
    apart: [[u8; LINE]; ODD],
    together: [[u8; LINE]; ODD],
}

impl<const ODD: usize> Ways<ODD> {
    const fn new(reach: usize, width: usize) -> Self {
        let mut ways = Ways {
            vectors: [0; ODD],
            lanes: [[0; LINE]; ODD],
            apart: [[0; LINE]; ODD],
            together: [[0; LINE]; ODD],
        };
        let lanes = reach / width;
        let mut way = 0;
        while way < ODD {
            ways.vectors[way * lanes % ODD] = way;
            let mut at = 0;
            while at < LINE {
                let (element, byte) = (at % reach / width, at % width);
                let lane = (element * ODD + way) % lanes;
                if element % ODD == way {
                    ways.lanes[way][at] = 0xff;
                }
                ways.apart[way][at] = NUMBERS[lane * width + byte];
                ways.together[way][at / reach * reach + lane * width + byte] =
                    NUMBERS[element * width + byte];
                at += 1;
            }
            way += 1;
        }
        ways
    }

    const OF: [[Ways<ODD>; 5]; 2] = [
        [Self::new(16, 1), Self::new(16, 2), Self::new(16, 4), Self::new(16, 8), Self::new(16, 16)],
        [Self::new(64, 1), Self::new(64, 2), Self::new(64, 4), Self::new(64, 8), Self::new(64, 16)],
    ];

    pub(super) fn of<V: Vector>(width: usize) -> &'static Self {
        &Self::OF[usize::from(V::REACH == LINE)]
            [if ODD == 1 { 0 } else { width.trailing_zeros() as usize }]
    }

    /// # Safety
    ///
    /// The CPU has `V`.
    #[inline(always)]
    pub(super) unsafe fn masks<V: Vector>(&self) -> [V; ODD] {
        // SAFETY: by the contract of this function.
        let mut masks = [unsafe { V::splat(0) }; ODD];
        for (mask, lanes) in masks.iter_mut().zip(&self.lanes) {
            // SAFETY: a line, and no vector is longer.
            *mask = unsafe { V::load(lanes.as_ptr()) };
        }
        masks
    }

    #[inline(always)]
    fn take_apart<V: Vector>(&self, lanes: usize, masks: &[V; ODD], vectors: [V; ODD]) -> [V; ODD] {
        let mut apart = vectors;
        if ODD == 1 {
            return apart;
        }
        unrolled!(way in ODD, {
            let mut all = vectors[way].and(masks[0]);
            unrolled!(rest in ODD, if rest > 0 && rest < lanes {
                all = all.or(vectors[(way + ODD - rest) % ODD].and(masks[rest]));
            });
            // SAFETY: a line.
            apart[way] = all.shuffle(unsafe { V::load(self.apart[way].as_ptr()) });
        });
        apart
    }

    #[inline(always)]
    fn put_together<V: Vector>(
        &self,
        lanes: usize,
        masks: &[V; ODD],
        mut apart: [V; ODD],
    ) -> [V; ODD] {
        if ODD == 1 {
            return apart;
        }
        for (vector, order) in apart.iter_mut().zip(&self.together) {
            // SAFETY: a line.
            *vector = vector.shuffle(unsafe { V::load(order.as_ptr()) });
        }
        let mut together = apart;
        unrolled!(rest in ODD, {
            let mut all = apart[rest].and(masks[0]);
            unrolled!(on in ODD, if on > 0 && on < lanes {
                all = all.or(apart[(rest + on) % ODD].and(masks[on]));
            });
            together[rest] = all;
        });
        together
    }
}
