//! The way through the blocks of a strip, and what is fetched on it.

use super::vector::{LINE, Vector};
use super::{Place, Strip};

/// Where the blocks of a strip begin, in the order in which to visit them: past
/// the caches line by line, otherwise as `order` says.
///
/// An iterator and no function that takes a closure: what is in a closure the
/// compiler may leave outside of the function that has the CPU's features.
pub(super) struct Blocks<'a, const STREAM: bool> {
    strip: &'a Strip,
    line: usize,
    block: usize,
    order: std::slice::Iter<'a, Place>,
    /// What is to be fetched while the block last returned is moved.
    pub(super) ahead: Ahead,
    /// Past the caches, where that is.
    near: Further,
    far: Further,
    again: Further,
}

/// How far it is, in bytes, from what is read to what is fetched meanwhile.
#[derive(Clone, Copy, Default)]
pub(super) struct Ahead {
    near: usize,
    /// Past the caches only: whether the source is in memory; otherwise nothing is fetched, but
    /// by [`fetch_once`](Ahead::fetch_once), [`fetch_lines`](Ahead::fetch_lines) and for the
    /// shortest vectors. And how far ahead is what is fetched from there, twice, as the
    /// L2 does not take all that it is asked for.
    is_far: bool,
    far: usize,
    again: usize,
    outruns_streams: bool,
}

impl Ahead {
    /// So far, within the caches.
    #[inline(always)]
    pub(super) fn near(near: usize) -> Self {
        Self { near, ..Self::default() }
    }

    /// The distances where it is streamed, each rounded up to a multiple of `step`.
    #[inline(always)]
    pub(super) fn by_steps(strip: &Strip, step: usize) -> Self {
        let step = step.max(1);
        let [near, again, far] =
            distances(strip, step).map(|ahead| ahead.div_ceil(step).wrapping_mul(step));
        Self { near, far, again, ..Self::default() }
    }

    /// Fetches what is ahead of an address: the near line to where it is read from, and past
    /// the caches the far ones from memory. Vectors shorter than a line ask for each line several
    /// times as it is; and the shortest ones, whose loops have little room for it, do not ask
    /// whether there is need.
    #[inline(always)]
    pub(super) fn fetch<V: Vector, const STREAM: bool>(self, at: *const u8) {
        if STREAM && V::BYTES >= LINE / 2 && !self.is_far {
            return;
        }
        if STREAM {
            V::prefetch::<2>(at.wrapping_add(self.far));
        }
        if STREAM && V::BYTES >= LINE {
            V::prefetch::<2>(at.wrapping_add(self.again));
        }
        V::prefetch::<1>(at.wrapping_add(self.near));
    }

    /// The same in loops that do little more than stream. Asking several times keeps a core back that
    /// outruns its stores.
    #[inline(always)]
    pub(super) fn fetch_paced<V: Vector>(self, at: *const u8) {
        if V::BYTES >= LINE / 2 && self.is_far && self.outruns_streams {
            for _ in 0..PACE * V::BYTES / LINE {
                self.fetch_lines::<V>(1, at);
            }
        }
        self.fetch::<V, true>(at);
    }

    /// The same, streaming, where lines are made in memory: what they are made of is
    /// asked for once, and wherever it is.
    #[inline(always)]
    pub(super) fn fetch_once<V: Vector>(self, at: *const u8) {
        V::prefetch::<2>(at.wrapping_add(self.far));
        V::prefetch::<1>(at.wrapping_add(self.near));
    }

    /// Fetches what is ahead of so many lines that are streamed, wherever it is, from memory twice.
    #[inline(always)]
    pub(super) fn fetch_lines<V: Vector>(self, lines: usize, at: *const u8) {
        for line in 0..lines {
            let at = at.wrapping_add(line * LINE);
            V::prefetch::<2>(at.wrapping_add(self.far));
            V::prefetch::<2>(at.wrapping_add(self.again));
            V::prefetch::<1>(at.wrapping_add(self.near));
        }
    }

    /// The same of a vector that is so many bytes from where a run begins: once for each line.
    #[inline(always)]
    pub(super) fn fetch_vector<V: Vector>(self, at: usize, from: *const u8) {
        if V::BYTES >= LINE || at.is_multiple_of(LINE) {
            self.fetch_lines::<V>(1, from);
        }
    }

    /// Fetches what is ahead of so many bytes, line by line.
    #[inline(always)]
    pub(super) fn fetch_bytes<V: Vector, const STREAM: bool>(self, at: *const u8, bytes: usize) {
        let lines = bytes.div_ceil(LINE);
        if !STREAM {
            for line in 0..lines {
                V::prefetch::<1>(at.wrapping_add(line * LINE).wrapping_add(self.near));
            }
        } else if self.is_far {
            self.fetch_lines::<V>(lines, at);
        }
    }
}

/// How far it is to the block that follows after some others.
struct Further {
    /// While that is on the same line, which it is for all but so many blocks.
    on_line: usize,
    last_blocks: usize,
    /// For these.
    on_next: usize,
}

impl Further {
    /// So many blocks on. These are hints, where they lead does not matter: behind the last
    /// line it goes on as if there were another one, which there mostly is.
    #[inline(always)]
    fn new(strip: &Strip, blocks: usize) -> Self {
        let (lines, blocks) = if strip.lines > 1 && strip.blocks > 0 {
            (blocks / strip.blocks, blocks % strip.blocks)
        } else {
            (0, blocks)
        };
        let Place { source, .. } = strip.place(lines, blocks);
        let line = strip.source_line.wrapping_sub(strip.blocks.wrapping_mul(strip.source_step));
        Self {
            on_line: source,
            last_blocks: if strip.lines > 1 { blocks } else { 0 },
            on_next: source.wrapping_add(line),
        }
    }

    /// The first block of so many behind that one from which it is another distance, or their end.
    #[inline(always)]
    fn alike_until(&self, block: usize, blocks: usize) -> usize {
        let end = blocks.saturating_sub(self.last_blocks);
        if block < end { end } else { blocks }
    }

    /// From that block of a line of so many.
    #[inline(always)]
    fn from(&self, block: usize, blocks: usize) -> usize {
        if block + self.last_blocks < blocks { self.on_line } else { self.on_next }
    }
}

/// How many bytes ahead of those that are streamed the source is fetched into L1,
/// and into L2, which asks memory for more lines at a time.
pub(super) const NEAR_AHEAD: usize = 4096;
const FAR_AHEAD: usize = 32768;
const AGAIN_AHEAD: usize = 16384;

/// So many times more than once all three are asked for, for each line, where a core is to be kept back.
const PACE: usize = 2;

/// The same two where prefetchers follow, which see to the rest; and twice as far where the blocks of a
/// line are no more bytes than this, as they do not follow from one line to the next.
const FAR_FOLLOWED: usize = 4096;
const AGAIN_FOLLOWED: usize = 2048;
const SHORT_LINE: usize = 32 << 10;

/// How far ahead the source of a strip is fetched, whose blocks have so many bytes: into L1,
/// and into L2 for the last time and for the first.
#[inline(always)]
fn distances(strip: &Strip, block: usize) -> [usize; 3] {
    if !strip.core.follows_pages() {
        return [NEAR_AHEAD, AGAIN_AHEAD, FAR_AHEAD];
    }
    let is_short = strip.blocks.saturating_mul(block) <= SHORT_LINE && strip.lines > 1;
    let farther = if is_short { 2 } else { 1 };
    [NEAR_AHEAD, farther * AGAIN_FOLLOWED, farther * FAR_FOLLOWED]
}

/// The blocks of a strip, of so many bytes each.
#[inline(always)]
pub(super) fn blocks<'a, const STREAM: bool>(
    strip: &'a Strip,
    order: &'a [Place],
    bytes: usize,
) -> Blocks<'a, STREAM> {
    let bytes = bytes.max(1);
    let [near, again, far] =
        distances(strip, bytes).map(|ahead| Further::new(strip, ahead.div_ceil(bytes)));
    Blocks {
        strip,
        line: 0,
        block: 0,
        order: order.iter(),
        ahead: Ahead::default(),
        near,
        far,
        again,
    }
}

impl Blocks<'_, true> {
    /// The next block, and how many there are from it on, on its line, from which the same is ahead.
    #[inline(always)]
    pub(super) fn next_alike(&mut self) -> Option<(Place, usize)> {
        let place = self.next()?;
        let (first, blocks) = (self.block - 1, self.strip.blocks);
        let ends = [&self.near, &self.far, &self.again].map(|f| f.alike_until(first, blocks));
        let [near, far, again] = ends;
        self.block = near.min(far).min(again);
        Some((place, self.block - first))
    }
}

impl<const STREAM: bool> Iterator for Blocks<'_, STREAM> {
    type Item = Place;

    #[inline(always)]
    fn next(&mut self) -> Option<Place> {
        if !STREAM {
            let place = self.order.next().copied()?;
            let next = self.order.as_slice().get(1).copied().unwrap_or(place);
            self.ahead.near = next.source.wrapping_sub(place.source);
            return Some(place);
        }
        let strip = self.strip;
        if self.block == strip.blocks {
            self.block = 0;
            self.line += 1;
        }
        if self.line >= strip.lines || strip.blocks == 0 {
            return None;
        }
        let place = strip.place(self.line, self.block);
        self.ahead = Ahead {
            near: self.near.from(self.block, strip.blocks),
            is_far: strip.is_far,
            far: self.far.from(self.block, strip.blocks),
            again: self.again.from(self.block, strip.blocks),
            outruns_streams: strip.core.outruns_streams(),
        };
        self.block += 1;
        Some(place)
    }
}
