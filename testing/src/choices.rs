//! Decisions that come from bytes.

use arbitrary::Unstructured;

/// A source of decisions: bytes that somebody makes up. Where they end, every decision
/// is the first there is, so less bytes make simpler inputs.
pub struct Choices<'a>(Unstructured<'a>);

impl<'a> Choices<'a> {
    /// Decisions from these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Choices(Unstructured::new(bytes))
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.int_in_range(0..=bound - 1).unwrap_or(0)
    }

    /// Yes in one of `n` cases.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == n - 1
    }

    /// One of these.
    pub fn pick<'t, T>(&mut self, among: &'t [T]) -> &'t T {
        &among[self.below(among.len() as u64) as usize]
    }

    /// A number that is mostly small, now and then beside a power of two, now and then
    /// anything.
    pub fn number(&mut self) -> u64 {
        match self.below(8) {
            0..=4 => self.below(17),
            5 => self.below(1025),
            6 => (1_u64 << self.below(64)).wrapping_add(self.below(3)).wrapping_sub(1),
            _ => self.below(u64::MAX),
        }
    }

    /// An order of `0..n`.
    pub fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, i - self.below(i as u64 + 1) as usize);
        }
        order
    }

    /// So many bytes that differ from each other.
    pub fn noise(&mut self, count: u64) -> Vec<u8> {
        noise(count, self.below(1 << 16))
    }
}

/// So many bytes that differ from each other, for each seed other ones.
#[must_use]
pub fn noise(count: u64, seed: u64) -> Vec<u8> {
    let seed = seed.wrapping_mul(0xd134_2543_de82_ef95);
    (0..count).map(|i| ((i ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}
