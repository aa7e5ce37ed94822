//! Where the rows and columns of a matrix begin.

/// Places at a stride, in blocks that are a step apart, in bytes.
#[derive(Clone, Copy)]
pub(super) struct Split {
    pub(super) block: usize,
    pub(super) step: usize,
    pub(super) stride: usize,
}

impl Split {
    #[inline(always)]
    pub(super) fn at_stride(stride: usize) -> Split {
        Split { block: usize::MAX, step: 0, stride }
    }

    /// The same, at one stride if so many are.
    #[inline(always)]
    pub(super) fn evened(self, count: usize) -> Split {
        if self.is_even(count) { Split::at_stride(self.stride) } else { self }
    }

    /// Whether so many of them are at one stride.
    #[inline(always)]
    pub(super) fn is_even(self, count: usize) -> bool {
        self.block >= count || self.step == self.block.wrapping_mul(self.stride)
    }

    /// Where number `first` and those behind it are, of which `share` at a time share a
    /// place. It is the first at its place.
    #[inline(always)]
    pub(super) fn places(self, share: usize, first: usize, places: &mut [usize]) {
        let first = first / share;
        let (mut block, mut within) = (first / self.block, first % self.block);
        let mut places = places.iter_mut();
        while !places.as_slice().is_empty() {
            let start = block.wrapping_mul(self.step);
            let start = start.wrapping_add(within.wrapping_mul(self.stride));
            let in_block = (self.block - within).saturating_mul(share);
            for (number, place) in places.by_ref().take(in_block).enumerate() {
                *place = start.wrapping_add((number / share).wrapping_mul(self.stride));
            }
            (block, within) = (block + 1, 0);
        }
    }

    /// The numbers of so many of them, in the order in which runs of so many bytes go on with each other that begin
    /// there: from block to block, if they do so there.
    #[inline(always)]
    pub(super) fn in_order(
        self,
        bytes: usize,
        count: usize,
    ) -> impl Iterator<Item = usize> + Clone {
        let apart = if self.step == bytes { self.block.min(count).max(1) } else { 1 };
        let mut next = 0;
        (0..count).map(move |_| {
            let number = next;
            next += apart;
            if next >= count {
                // Those that follow the number behind the one with which these began.
                next = next % apart + 1;
            }
            number
        })
    }
}

/// Where some rows begin.
pub(super) trait Starts: Copy {
    fn count(self) -> usize;

    /// So many of them, from number `first` on.
    fn part(self, first: usize, count: usize) -> Self;

    /// Each, in their order.
    fn each(self) -> impl Iterator<Item = usize>;
}

impl Starts for &[usize] {
    #[inline(always)]
    fn count(self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn part(self, first: usize, count: usize) -> Self {
        &self[first..first + count]
    }

    #[inline(always)]
    fn each(self) -> impl Iterator<Item = usize> {
        self.iter().copied()
    }
}

/// At one stride, so that no table is to be read.
#[derive(Clone, Copy)]
pub(super) struct Evenly {
    pub(super) start: usize,
    pub(super) stride: usize,
    pub(super) count: usize,
}

impl Starts for Evenly {
    #[inline(always)]
    fn count(self) -> usize {
        self.count
    }

    #[inline(always)]
    fn part(self, first: usize, count: usize) -> Self {
        debug_assert!(first + count <= self.count, "{first} + {count} of {}", self.count);
        let start = self.start.wrapping_add(first.wrapping_mul(self.stride));
        Evenly { start, count, ..self }
    }

    #[inline(always)]
    fn each(self) -> impl Iterator<Item = usize> {
        let mut next = self.start;
        (0..self.count).map(move |_| {
            let start = next;
            next = next.wrapping_add(self.stride);
            start
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_go_on_from_block_to_block() {
        let split = Split { block: 3, step: 1000, stride: 10 };
        let mut places = [0; 5];
        split.places(1, 2, &mut places);
        assert_eq!(places, [20, 1000, 1010, 1020, 2000]);
        let mut places = [0; 6];
        split.places(2, 4, &mut places);
        assert_eq!(places, [20, 20, 1000, 1000, 1010, 1010]);
    }

    #[test]
    fn runs_that_go_on_in_the_next_block_follow_each_other() {
        let of = |block, count| {
            let split = Split { block, step: 150, stride: 9999 };
            split.in_order(150, count).collect::<Vec<_>>()
        };
        assert_eq!(of(4, 12), [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
        assert_eq!(of(3, 7), [0, 3, 6, 1, 4, 2, 5]);
        // All of them once, whatever the block.
        for block in [1, 2, 5, 8, usize::MAX] {
            for count in 0..20 {
                let mut numbers = of(block, count);
                numbers.sort_unstable();
                assert_eq!(numbers, (0..count).collect::<Vec<_>>(), "{block}, {count}");
            }
        }
        // Others stay as they are.
        let split = Split { block: 4, step: 200, stride: 9999 };
        assert!(split.in_order(150, 9).eq(0..9));
    }

    #[test]
    fn starts_at_one_stride_are_those_of_a_table() {
        for stride in [0, 7, 7_usize.wrapping_neg()] {
            let split = Split { block: 20, step: 0, stride };
            let mut table = [0; 20];
            split.places(1, 0, &mut table);
            let (table, evenly) = (&table[..], Evenly { start: 0, stride, count: 20 });
            for (first, count) in [(0, 20), (3, 17), (19, 1), (5, 0)] {
                let (table, evenly) = (table.part(first, count), evenly.part(first, count));
                assert_eq!((table.count(), evenly.count()), (count, count));
                assert_eq!(table.each().collect::<Vec<_>>(), evenly.each().collect::<Vec<_>>());
                assert!(
                    table
                        .part(count / 2, count / 3)
                        .each()
                        .eq(evenly.part(count / 2, count / 3).each())
                );
            }
        }
    }
}
