//! Loop nests, and their canonical form.
//!
//! A nest says: for all combinations of its loops, the element at `source` plus
//! the source strides goes to `destination` plus the destination strides. The
//! order of its loops means nothing, so it is brought into one form: loops of
//! extent 1 dropped, those that go down in the destination turned round, the others sorted by destination, neighbours joined whose
//! strides compose on both sides.

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
    pub(super) fn upwards(mut self) -> Nest {
        for l in self.loops.iter_mut().filter(|l| l.destination.cast_signed() < 0) {
            // No padding goes along such a loop: it is one of a host array.
            let last = l.extent.saturating_sub(1);
            self.source = self.source.wrapping_add(last.wrapping_mul(l.source));
            self.destination = self.destination.wrapping_add(last.wrapping_mul(l.destination));
            l.source = l.source.wrapping_neg();
            l.destination = l.destination.wrapping_neg();
        }
        self
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
    fn a_padded_loop_takes_inner_loops_but_not_outer_ones() {
        let padded = |extent, full, stride| Loop { full, ..Loop::new(extent, stride, stride) };
        let n = Nest { loops: vec![padded(3, 4, 16), Loop::new(2, 8, 8)], ..Nest::default() };
        assert_eq!(n.canonical().loops, [padded(6, 8, 8)]);
        let n = Nest { loops: vec![Loop::new(2, 24, 32), padded(3, 4, 8)], ..Nest::default() };
        assert_eq!(n.clone().canonical(), n);
    }
}
