//! Where the rows and columns of a matrix begin.

/// Places at a stride, in blocks that are a step apart, and groups of these, in bytes.
#[derive(Clone, Copy)]
pub(super) struct Split {
    pub(super) stride: usize,
    /// So many places are in a block, and from one of these to the next it is so far.
    pub(super) block: usize,
    pub(super) step: usize,
    /// The same of the blocks of a group, and of groups.
    pub(super) group: usize,
    pub(super) group_step: usize,
}

impl Split {
    #[inline(always)]
    pub(super) fn at_stride(stride: usize) -> Split {
        Split { stride, block: usize::MAX, step: 0, group: usize::MAX, group_step: 0 }
    }

    /// So many at this one's stride, and again such after each step.
    #[inline(always)]
    pub(super) fn in_blocks(self, block: usize, step: usize) -> Split {
        Split { block, step, ..self }
    }

    /// So many of its blocks, and again such after each step.
    #[inline(always)]
    pub(super) fn in_groups(self, group: usize, group_step: usize) -> Split {
        if self.step == self.block.wrapping_mul(self.stride) {
            return self.in_blocks(self.block.saturating_mul(group), group_step);
        }
        Split { group, group_step, ..self }
    }

    /// The same, at one stride if so many are, or without groups if all blocks are at one step.
    #[inline(always)]
    pub(super) fn evened(self, count: usize) -> Split {
        if self.is_even(count) {
            Split::at_stride(self.stride)
        } else if self.has_even_blocks(count) {
            Split { group: usize::MAX, group_step: 0, ..self }
        } else {
            self
        }
    }

    /// Whether so many of them are at one stride.
    #[inline(always)]
    pub(super) fn is_even(self, count: usize) -> bool {
        let is_even = self.step == self.block.wrapping_mul(self.stride);
        self.block >= count || is_even && self.has_even_blocks(count)
    }

    /// How far a place is from the next one, or from the one before.
    #[inline(always)]
    pub(super) fn distance(self) -> usize {
        let next = if self.block > 1 { self.stride } else { self.step };
        next.cast_signed().unsigned_abs()
    }

    /// Whether the blocks of so many of them are at one step.
    #[inline(always)]
    pub(super) fn has_even_blocks(self, count: usize) -> bool {
        self.group >= count.div_ceil(self.block.max(1))
            || self.group_step == self.group.wrapping_mul(self.step)
    }

    /// Where number `first` and those behind it are, of which `share` at a time share a
    /// place. It is the first at its place.
    #[inline(always)]
    pub(super) fn places(self, share: usize, first: usize, places: &mut [usize]) {
        let mut next = Cursor::at(self, first / share);
        let mut places = places.iter_mut();
        while !places.as_slice().is_empty() {
            let start = next.place;
            let in_block = (self.block - next.within).saturating_mul(share);
            for (number, place) in places.by_ref().take(in_block).enumerate() {
                *place = start.wrapping_add((number / share).wrapping_mul(self.stride));
            }
            next.next_block(self);
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

/// One place after the other.
#[derive(Clone, Copy, Default)]
pub(super) struct Cursor {
    pub(super) place: usize,
    /// Which one of its block it is.
    within: usize,
    /// Where this block begins, and which one of its group that is; where that begins.
    block: usize,
    in_group: usize,
    group: usize,
}

impl Cursor {
    #[inline(always)]
    pub(super) fn at(split: Split, number: usize) -> Cursor {
        // Mostly there is one block, and no time for a division.
        let parts = |n: usize, of: usize| if n < of { (0, n) } else { (n / of, n % of) };
        let (block, within) = parts(number, split.block);
        let (group, in_group) = parts(block, split.group);
        let group = group.wrapping_mul(split.group_step);
        let block = group.wrapping_add(in_group.wrapping_mul(split.step));
        let place = block.wrapping_add(within.wrapping_mul(split.stride));
        Cursor { place, within, block, in_group, group }
    }

    #[inline(always)]
    pub(super) fn next(&mut self, split: Split) {
        self.within += 1;
        self.place = self.place.wrapping_add(split.stride);
        if self.within == split.block {
            self.next_block(split);
        }
    }

    /// Passes so many: a part of a block, of which it has some, or some blocks, which are such a part of a group.
    #[inline(always)]
    pub(super) fn skip(&mut self, split: Split, count: usize) {
        if count > split.block {
            debug_assert!(
                count.is_multiple_of(split.block),
                "{count} of blocks of {}",
                split.block
            );
            let but_one = count / split.block - 1;
            self.in_group += but_one;
            self.block = self.block.wrapping_add(but_one.wrapping_mul(split.step));
            return self.next_block(split);
        }
        self.within += count;
        self.place = self.place.wrapping_add(count.wrapping_mul(split.stride));
        if self.within == split.block {
            self.next_block(split);
        }
    }

    #[inline]
    fn next_block(&mut self, split: Split) {
        self.within = 0;
        self.in_group += 1;
        self.block = self.block.wrapping_add(split.step);
        if self.in_group == split.group {
            self.in_group = 0;
            self.group = self.group.wrapping_add(split.group_step);
            self.block = self.group;
        }
        self.place = self.block;
    }
}

/// Where some rows begin.
pub(super) trait Starts: Copy {
    fn count(self) -> usize;

    /// So many of them, from number `first` on.
    fn part(self, first: usize, count: usize) -> Self;

    /// The one of a number.
    fn at(self, number: usize) -> usize;

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
    fn at(self, number: usize) -> usize {
        self[number]
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
    fn at(self, number: usize) -> usize {
        debug_assert!(number < self.count, "{number} of {}", self.count);
        self.start.wrapping_add(number.wrapping_mul(self.stride))
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
        let split = Split::at_stride(10).in_blocks(3, 1000);
        let mut places = [0; 5];
        split.places(1, 2, &mut places);
        assert_eq!(places, [20, 1000, 1010, 1020, 2000]);
        let mut places = [0; 6];
        split.places(2, 4, &mut places);
        assert_eq!(places, [20, 20, 1000, 1000, 1010, 1010]);
    }

    #[test]
    fn and_from_group_to_group() {
        let split = Split::at_stride(10).in_blocks(3, 1000).in_groups(2, 9999);
        let mut all = [0; 20];
        split.places(1, 0, &mut all);
        assert_eq!(all[..8], [0, 10, 20, 1000, 1010, 1020, 9999, 10009]);
        assert_eq!(all[12], 2 * 9999);
        for first in 0..12 {
            let mut places = [0; 8];
            split.places(1, first, &mut places);
            assert_eq!(places, all[first..first + 8], "{first}");
            let mut cursor = Cursor::at(split, first);
            for place in places {
                assert_eq!(cursor.place, place, "{first}");
                cursor.next(split);
            }
        }
        assert!(split.has_even_blocks(6) && !split.has_even_blocks(7) && !split.is_even(6));
        // What is at one stride in all blocks of a group is one block.
        let joined = Split::at_stride(10).in_blocks(3, 30).in_groups(2, 9999);
        assert!((joined.block, joined.step) == (6, 9999) && joined.is_even(6));
        assert!(!joined.is_even(7));
        let even = Split::at_stride(10).in_blocks(3, 30).in_groups(2, 60);
        assert!(even.is_even(1000));
    }

    #[test]
    fn places_of_blocks_of_one_are_a_step_apart() {
        let down = Split::at_stride(100_usize.wrapping_neg());
        assert_eq!(down.distance(), 100);
        assert_eq!(down.in_blocks(2, 5000).distance(), 100);
        assert_eq!(down.in_blocks(1, 5000).distance(), 5000);
    }

    #[test]
    fn runs_that_go_on_in_the_next_block_follow_each_other() {
        let of = |block, count| {
            let split = Split::at_stride(9999).in_blocks(block, 150);
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
        let split = Split::at_stride(9999).in_blocks(4, 200);
        assert!(split.in_order(150, 9).eq(0..9));
    }

    #[test]
    fn starts_at_one_stride_are_those_of_a_table() {
        for stride in [0, 7, 7_usize.wrapping_neg()] {
            let split = Split::at_stride(stride).in_blocks(20, 0);
            let mut table = [0; 20];
            split.places(1, 0, &mut table);
            let (table, evenly) = (&table[..], Evenly { start: 0, stride, count: 20 });
            for (first, count) in [(0, 20), (3, 17), (19, 1), (5, 0)] {
                let (table, evenly) = (table.part(first, count), evenly.part(first, count));
                assert_eq!((table.count(), evenly.count()), (count, count));
                assert_eq!(table.each().collect::<Vec<_>>(), evenly.each().collect::<Vec<_>>());
                assert!((0..count).all(|number| table.at(number) == evenly.at(number)));
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
