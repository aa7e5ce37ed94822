//! Parts of a destination, each with the program that fills it.

use std::ops::Range;
use std::sync::Arc;

use super::by_index::ByIndex;
use super::recipe::{Part, Recipe};
use super::side::Needs;
use super::{Body, Plan};
use crate::drive::{self, Program};
use crate::error::{BufferError, ChunkError, Side};

/// A contiguous range of a destination that can be filled alone: at any time, in any
/// order with others, by any thread, in a buffer of its own.
#[derive(Clone, Debug)]
pub struct Chunk {
    destination: Range<u64>,
    source: Range<u64>,
    body: ChunkBody,
}

#[derive(Clone, Debug)]
enum ChunkBody {
    /// It has the range of the source alone as its source.
    Program(Arc<Program>),
    /// It has the whole source.
    ByIndex(Arc<ByIndex>),
}

impl Chunk {
    /// Which bytes of the destination it is.
    #[must_use]
    pub fn destination(&self) -> Range<u64> {
        self.destination.clone()
    }

    /// Which bytes of the source it reads at most; none others matter to it. Empty
    /// where all of it is padding.
    #[must_use]
    pub fn source(&self) -> Range<u64> {
        self.source.clone()
    }

    /// Bytes of the destination.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a chunk is never empty")]
    pub fn len(&self) -> usize {
        // A range of a buffer that somebody may have, or not on this machine.
        usize::try_from(self.destination.end - self.destination.start).unwrap_or(usize::MAX)
    }

    /// Fills the chunk. `source` is the whole source, or as much of it from the start
    /// on as the [range that is read](Chunk::source); `destination` is this chunk alone.
    ///
    /// # Errors
    ///
    /// `source` ends before the range that is read does, or `destination` has not the
    /// [length](Chunk::len) of the chunk. The destination is then untouched.
    pub fn run(&self, source: &[u8], destination: &mut [u8]) -> Result<(), BufferError> {
        Needs { bytes: self.source.end, at_least: true }.check(Side::Source, source.len())?;
        // Both are below the length of the source.
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        self.run_part(&source[index(self.source.start)..index(self.source.end)], destination)
    }

    /// The same, `source` being nothing but the [range that is read](Chunk::source).
    ///
    /// # Errors
    ///
    /// As [`run`](Chunk::run).
    pub fn run_part(&self, source: &[u8], destination: &mut [u8]) -> Result<(), BufferError> {
        match &self.body {
            ChunkBody::Program(program) => drive::run(program, source, destination),
            ChunkBody::ByIndex(by_index) => {
                by_index.run_range(&self.destination, source, destination)
            }
        }
    }
}

/// The chunks of a destination, in its order: [`Plan::chunks`].
#[derive(Debug)]
pub struct Chunks<'a> {
    plan: &'a Plan,
    at: u64,
    /// Cuts are here and every `step` bytes from here on.
    offset: u64,
    step: u64,
    /// Threads that share them.
    threads: u64,
    made: Vec<Made>,
}

/// A chunk that was made, for others that are the same but for where they are.
#[derive(Debug)]
struct Made {
    parts: Vec<Part>,
    chunk: Chunk,
}

/// Bytes of a line of cache.
const LINE: u64 = 64;

/// So many chunks are compared with before another program is made.
const MADE: usize = 8;

impl Iterator for Chunks<'_> {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        let end = self.plan.destination_bytes();
        if self.at >= end {
            return None;
        }
        let mut range = self.at..self.at.saturating_add(self.to_cut()).min(end);
        let chunk = match &self.plan.body {
            Body::Program { recipe, .. } => chunk_of(recipe, &range, self.threads, &mut self.made),
            Body::ByIndex(_) => self.plan.chunk(range.clone()).ok(),
        };
        // What cannot be cut here after all is the rest as a whole.
        let chunk = chunk.or_else(|| {
            range.end = end;
            self.plan.chunk(range.clone()).ok()
        });
        self.at = range.end;
        chunk
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let end = self.plan.destination_bytes();
        let Some(left) = end.checked_sub(self.at).filter(|&left| left > 0) else {
            return (0, Some(0));
        };
        // One to the next cut, and whole ones behind that.
        let to_cut = self.to_cut().min(left);
        let chunks = 1 + (left - to_cut).div_ceil(self.step);
        (usize::try_from(chunks).unwrap_or(usize::MAX), usize::try_from(chunks).ok())
    }
}

impl<'a> Chunks<'a> {
    pub(crate) fn plan(&self) -> &'a Plan {
        self.plan
    }

    /// Bytes from here to the next cut.
    fn to_cut(&self) -> u64 {
        match self.offset.checked_sub(self.at) {
            Some(ahead) if ahead > 0 => ahead,
            _ => self.step - (self.at - self.offset) % self.step,
        }
    }
}

/// The chunk of a range, if no element lies across an end of it.
fn chunk_of(
    recipe: &Recipe,
    range: &Range<u64>,
    threads: u64,
    made: &mut Vec<Made>,
) -> Option<Chunk> {
    let parts = recipe.parts_in(range)?;
    for like in made.iter() {
        if let Some(chunk) = like.moved_to(&parts, range)
            && chunk.source.end <= recipe.source_bytes()
        {
            return Some(chunk);
        }
    }
    let piece = recipe.piece(&parts, range, threads)?;
    let chunk = Chunk {
        destination: range.clone(),
        source: piece.source,
        body: ChunkBody::Program(Arc::new(piece.program)),
    };
    if made.len() == MADE {
        made.remove(0);
    }
    made.push(Made { parts, chunk: chunk.clone() });
    Some(chunk)
}

impl Made {
    /// The chunk of other parts, where they are the same but for where they are.
    fn moved_to(&self, parts: &[Part], range: &Range<u64>) -> Option<Chunk> {
        let Range { start, end } = self.chunk.destination;
        if range.end - range.start != end - start || parts.len() != self.parts.len() {
            return None;
        }
        // In bits, modulo 2^64.
        let destination = range.start.wrapping_sub(start).wrapping_mul(8);
        let mut source = None;
        for (old, new) in self.parts.iter().zip(parts) {
            let moved = new.moved_from(old, destination)?;
            if let Some(moved) = moved
                && *source.get_or_insert(moved) != moved
            {
                return None;
            }
        }
        // Kernels are chosen by how words lie; all words begin at such places.
        let source = source.unwrap_or(0).cast_signed();
        if source % 1024 != 0 {
            return None;
        }
        let moved = |at: u64| at.checked_add_signed(source / 8);
        let source = if self.chunk.source.is_empty() {
            0..0
        } else {
            moved(self.chunk.source.start)?..moved(self.chunk.source.end)?
        };
        Some(Chunk { destination: range.clone(), source, ..self.chunk.clone() })
    }
}

impl Plan {
    /// Chunks of at most so many bytes: contiguous ranges of the destination, in its
    /// order, that together are all of it.
    ///
    /// They begin and end where tiles do, as far as their size allows, but never within
    /// an element: none can be smaller than [`grain_bytes`](Plan::grain_bytes), which
    /// counts where less is asked for. Making a chunk takes some microseconds; those
    /// that differ only in their place share their program and take less.
    ///
    /// ```
    /// use relayout::{Plan, Shape};
    ///
    /// let shape: Shape = "f32[1024,1024]{1,0:T(8,128)}".parse()?;
    /// let plan = Plan::pack(&shape)?;
    /// let host = vec![1; 4 << 20];
    /// let mut staging = vec![0; 1 << 20];
    /// for chunk in plan.chunks(1 << 20) {
    ///     chunk.run(&host, &mut staging[..chunk.len()])?;
    ///     // Here its bytes go to chunk.destination() of the device's buffer.
    ///     assert!(staging.iter().all(|&byte| byte == 1));
    /// }
    /// assert_eq!(plan.chunks(1 << 20).count(), 4);
    /// # Ok::<(), relayout::Error>(())
    /// ```
    #[must_use]
    pub fn chunks(&self, max_bytes: u64) -> Chunks<'_> {
        self.chunks_for(max_bytes, 1)
    }

    /// The same for so many threads that share them.
    pub(super) fn chunks_for(&self, max_bytes: u64, threads: u64) -> Chunks<'_> {
        let cuts = self.cuts();
        let fits = cuts.iter().find(|&&(_, step)| step <= max_bytes);
        let (offset, step) = match (fits, cuts.last()) {
            // Whole lines of cache, where that is possible and not much smaller.
            (Some(&(offset, step)), _) if LINE.is_multiple_of(step) && max_bytes >= 16 * LINE => {
                (offset, max_bytes / LINE * LINE)
            }
            (Some(&(offset, step)), _) => (offset, max_bytes / step * step),
            (None, Some(&finest)) => finest,
            (None, None) => (0, u64::MAX),
        };
        Chunks { plan: self, at: 0, offset: offset % step, step, threads, made: Vec::new() }
    }

    /// Bytes of the smallest chunks that the destination can be cut into everywhere: an
    /// element, or more where host arrays have strides that are no multiples of each
    /// other. They are counted from where the first element begins, which in an image
    /// and in a dense host array is byte 0.
    #[must_use]
    pub fn grain_bytes(&self) -> u64 {
        self.grain().1
    }

    /// Where it can be cut first, and every so many bytes from there on.
    fn grain(&self) -> (u64, u64) {
        self.cuts().last().copied().unwrap_or((0, self.destination_bytes().max(1)))
    }

    /// Why a range is no chunk.
    pub(crate) fn across_element(&self, range: Range<u64>) -> ChunkError {
        let (offset_bytes, grain_bytes) = self.grain();
        ChunkError::AcrossElement { range, offset_bytes, grain_bytes }
    }

    /// The chunk that is this range of the destination, in bytes.
    ///
    /// # Errors
    ///
    /// The range is empty or reaches beyond the destination, or an element lies across
    /// an end of it.
    pub fn chunk(&self, range: Range<u64>) -> Result<Chunk, ChunkError> {
        let destination_bytes = self.destination_bytes();
        if range.is_empty() || range.end > destination_bytes {
            return Err(ChunkError::NoSuchRange { range, destination_bytes });
        }
        let across = || self.across_element(range.clone());
        match &self.body {
            Body::Program { recipe, .. } => {
                chunk_of(recipe, &range, 1, &mut Vec::new()).ok_or_else(across)
            }
            Body::ByIndex(by_index) if by_index.can_be_cut_at(&range) => Ok(Chunk {
                source: 0..self.source_bytes(),
                body: ChunkBody::ByIndex(Arc::clone(by_index)),
                destination: range,
            }),
            Body::ByIndex(_) => Err(across()),
        }
    }

    pub(super) fn cuts(&self) -> Vec<(u64, u64)> {
        match &self.body {
            Body::Program { recipe, .. } => recipe.cuts(),
            Body::ByIndex(by_index) => by_index.cuts(),
        }
    }
}
