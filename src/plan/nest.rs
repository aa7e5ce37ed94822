//! Loop nests, and their canonical form.
//!
//! A nest says: for all combinations of its loops, the element at `source` plus
//! the source strides goes to `destination` plus the destination strides. The
//! order of its loops means nothing, so it is brought into one form: loops of
//! extent 1 dropped, those that go down in the destination turned round, the others sorted by destination, neighbours joined whose
//! strides compose on both sides.

use crate::error::Side;

/// One loop of a nest. Strides are in bits, modulo 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loop {
    /// How many elements there are along it.
    pub(super) extent: u64,
    /// How many are written: behind the elements the nest also writes the
    /// padding, up to this many. At least `extent`.
    pub(super) full: u64,
    pub(super) source: u64,
    pub(super) destination: u64,
}

impl Loop {
    pub(super) fn new(extent: u64, source: u64, destination: u64) -> Self {
        Loop { extent, full: extent, source, destination }
    }

    /// The loop over all that it writes, as padding.
    pub(super) fn as_padding(self) -> Self {
        Loop::new(self.full, 0, self.destination)
    }

    pub(super) fn is_padded(self) -> bool {
        self.full > self.extent
    }
}

/// Perfectly nested loops over elements. Offsets are in bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Nest {
    pub(super) source: u64,
    pub(super) destination: u64,
    pub(super) loops: Vec<Loop>,
}

impl Nest {
    /// The nest over all combinations of `self` and `other`.
    pub(super) fn times(&self, other: &Nest) -> Nest {
        Nest {
            source: self.source.wrapping_add(other.source),
            destination: self.destination.wrapping_add(other.destination),
            loops: self.loops.iter().chain(&other.loops).copied().collect(),
        }
    }

    /// The nest over all that it writes, as padding.
    pub(super) fn as_padding(&self) -> Nest {
        Nest {
            source: 0,
            destination: self.destination,
            loops: self.loops.iter().map(|l| l.as_padding()).collect(),
        }
    }

    /// The same nest with loops that go up in the destination.
    pub(super) fn upwards(self) -> Nest {
        self.turned(|l| l.destination.cast_signed() < 0)
    }

    /// The same nest with loops that go up in the source.
    pub(super) fn upwards_in_source(self) -> Nest {
        self.turned(|l| l.source.cast_signed() < 0 && !l.is_padded())
    }

    /// The same nest with some loops from their end to their start. No padding goes along these: only host arrays go down, and
    /// they have none.
    fn turned(mut self, which: impl Fn(&Loop) -> bool) -> Nest {
        for l in self.loops.iter_mut().filter(|l| which(l)) {
            debug_assert!(!l.is_padded(), "padding goes up");
            let last = l.extent.saturating_sub(1);
            self.source = self.source.wrapping_add(last.wrapping_mul(l.source));
            self.destination = self.destination.wrapping_add(last.wrapping_mul(l.destination));
            l.source = l.source.wrapping_neg();
            l.destination = l.destination.wrapping_neg();
        }
        self
    }

    /// The one nest of this one and another, where that one is what a loop of this one would reach if it
    /// went on: the last tile, which is not whole, behind those that go on with each other in memory.
    /// Runs of elements that fill bytes, of these widths on the two sides, stay apart from such that do not, unless there
    /// are several which begin within bytes.
    pub(super) fn followed_by(&self, behind: &Nest, widths: [u32; 2]) -> Option<Nest> {
        let (mut both, behind) = (self.clone().canonical(), behind.clone().canonical());
        let goes_on = |l: &Loop| {
            !l.is_padded()
                && both.source.wrapping_add(l.extent.wrapping_mul(l.source)) == behind.source
                && both.destination.wrapping_add(l.extent.wrapping_mul(l.destination))
                    == behind.destination
        };
        let i = both.loops.iter().position(goes_on)?;
        let along = both.loops[i];
        let has_steps = |l: &Loop| (l.source, l.destination) == (along.source, along.destination);
        let mut others = behind.loops;
        // One element more is no loop.
        let last = match others.iter().position(has_steps) {
            Some(at) => others.remove(at),
            None => Loop::new(1, along.source, along.destination),
        };
        let sides: [fn(&Loop) -> u64; 2] = [|l| l.source, |l| l.destination];
        // Those on which it is a run.
        let runs = sides.into_iter().zip(widths.map(u64::from));
        let runs = runs.filter(|(step, bits)| step(&along) == *bits);
        let fill_bytes =
            |extent: u64| runs.clone().all(|(_, bits)| extent.wrapping_mul(bits).is_multiple_of(8));
        let extent = along.extent.checked_add(last.extent)?;
        let mut rest = both.loops.clone();
        rest.remove(i);
        // Where several begin within bytes, on one side, none is moved as bytes.
        let begin_at_bytes =
            runs.clone().all(|(step, _)| rest.iter().all(|l| step(l).is_multiple_of(8)));
        let parts_bytes = begin_at_bytes && fill_bytes(along.extent) && !fill_bytes(extent);
        if rest != others || parts_bytes {
            return None;
        }
        both.loops[i] = Loop { extent, full: along.extent.checked_add(last.full)?, ..along };
        Some(both)
    }

    /// The same nest in canonical form.
    pub(super) fn canonical(self) -> Nest {
        let mut nest = self.upwards();
        nest.loops.retain(|l| l.full > 1);
        nest.loops.sort_by_key(|l| std::cmp::Reverse((l.destination, l.source)));
        let mut loops: Vec<Loop> = Vec::with_capacity(nest.loops.len());
        for inner in nest.loops {
            // Padding inside another loop comes again and again: no one loop.
            match loops.last_mut() {
                Some(outer)
                    if !inner.is_padded()
                        && inner.source.wrapping_mul(inner.extent) == outer.source
                        && inner.destination.wrapping_mul(inner.extent) == outer.destination =>
                {
                    *outer = Loop {
                        extent: outer.extent * inner.extent,
                        full: outer.full * inner.extent,
                        ..inner
                    };
                }
                _ => loops.push(inner),
            }
        }
        Nest { loops, ..nest }
    }
}

impl Side {
    pub(super) fn other(self) -> Side {
        match self {
            Side::Source => Side::Destination,
            Side::Destination => Side::Source,
        }
    }

    /// What this side has.
    pub(super) fn of<T>(self, source: T, destination: T) -> T {
        match self {
            Side::Source => source,
            Side::Destination => destination,
        }
    }

    pub(super) fn stride(self, l: &Loop) -> u64 {
        self.of(l.source, l.destination)
    }

    /// Where a nest begins.
    pub(super) fn start(self, nest: &Nest) -> u64 {
        self.of(nest.source, nest.destination)
    }

    /// How far a loop goes with each step, up or down.
    pub(super) fn distance(self, l: &Loop) -> u64 {
        self.stride(l).cast_signed().unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nest(loops: &[(u64, u64, u64)]) -> Nest {
        let loops = loops.iter().map(|&(n, s, d)| Loop::new(n, s, d)).collect();
        Nest { source: 0, destination: 0, loops }.canonical()
    }

    #[test]
    fn loops_whose_strides_compose_are_one() {
        // A dense array of 4 by 5 by 6, and one whose rows are apart.
        assert_eq!(nest(&[(6, 8, 8), (4, 240, 240), (5, 48, 48)]), nest(&[(120, 8, 8)]));
        assert_eq!(nest(&[(4, 480, 240), (30, 8, 8)]).loops.len(), 2);
        assert_eq!(nest(&[(1, 7, 9), (2, 8, 8)]), nest(&[(2, 8, 8)]));
    }

    #[test]
    fn whole_tiles_and_the_last_one_are_one_nest_where_they_go_on() {
        let of = |source, destination, loops: &[Loop]| Nest {
            source,
            destination,
            loops: loops.to_vec(),
        };
        let padded = |extent, full, source, destination| Loop {
            full,
            ..Loop::new(extent, source, destination)
        };
        // Two tiles of 128 columns of three rows of bytes in words, and 44 columns of another one.
        let row = Loop::new(3, 2400, 8);
        let whole = of(0, 0, &[row, Loop::new(2, 1024, 4096), Loop::new(128, 8, 32)]);
        let last = of(2048, 8192, &[row, padded(44, 128, 8, 32)]);
        let both = whole.followed_by(&last, [8, 8]).unwrap();
        assert_eq!(both, of(0, 0, &[row, padded(300, 384, 8, 32)]).canonical());
        // One more, behind both; none behind padding, and none that has other rows or is elsewhere.
        let one = |source| of(source, 8192, &[row]);
        let both = whole.followed_by(&one(2048), [8, 8]).unwrap();
        assert_eq!(both, of(0, 0, &[row, Loop::new(257, 8, 32)]).canonical());
        assert_eq!(last.followed_by(&of(2048 + 352, 8192 + 44 * 32, &[row]), [8, 8]), None);
        assert_eq!(whole.followed_by(&one(2056), [8, 8]), None);
        let two_rows = Loop { extent: 2, full: 2, ..row };
        assert_eq!(whole.followed_by(&of(2048, 8192, &[two_rows]), [8, 8]), None);
        // Tiles with something between them.
        let apart = of(0, 0, &[row, Loop::new(2, 1024, 8192), Loop::new(128, 8, 32)]);
        assert_eq!(apart.followed_by(&of(2048, 16384, &[row]), [8, 8]), None);
        // Bits that fill bytes, and one more, or a byte more.
        let bits = of(0, 0, &[Loop::new(128, 1, 32)]);
        assert_eq!(bits.followed_by(&of(128, 4096, &[]), [1, 1]), None);
        assert!(bits.followed_by(&of(128, 4096, &[Loop::new(8, 1, 32)]), [1, 1]).is_some());
        // And such that go on in words.
        let words = of(0, 0, &[Loop::new(128, 32, 8)]);
        assert!(words.followed_by(&of(4096, 1024, &[]), [1, 8]).is_some());
    }

    #[test]
    fn a_padded_loop_takes_inner_loops_but_not_outer_ones() {
        let padded = |extent, full, stride| Loop { full, ..Loop::new(extent, stride, stride) };
        let n = Nest { loops: vec![padded(3, 4, 16), Loop::new(2, 8, 8)], ..Nest::default() };
        assert_eq!(n.canonical().loops, [padded(6, 8, 8)]);
        let n = Nest { loops: vec![Loop::new(2, 24, 32), padded(3, 4, 8)], ..Nest::default() };
        assert_eq!(n.clone().canonical(), n);
    }
}
