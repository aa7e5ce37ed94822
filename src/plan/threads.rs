//! A plan on several threads: each fills a share of the destination, which is a chunk.

use std::sync::{Mutex, PoisonError};

use super::Plan;
use super::chunks::Chunk;
use crate::error::{BufferError, Side};
use crate::executor::Executor;

/// With less than so many bytes on both sides together, waking another thread takes
/// longer than it saves.
const WORTH_A_THREAD: u64 = 8 << 20;

/// A share has so many bytes at least.
const LEAST_SHARE: u64 = 64 << 10;

/// Shares differ by no more than this part of them, where they can end at larger tiles.
const UNEVEN: u64 = 16;

/// The shares of a number of threads.
#[derive(Debug)]
pub(super) struct Shares {
    threads: usize,
    chunks: Vec<Chunk>,
}

impl Shares {
    fn new(plan: &Plan, threads: usize) -> Shares {
        let bytes = plan.destination_bytes();
        // However many threads there are, a share is worth one.
        let most = bytes.div_ceil(LEAST_SHARE).max(1);
        let shares = u64::try_from(threads).unwrap_or(u64::MAX).clamp(1, most);
        let share = bytes.div_ceil(shares);
        let cuts = plan.cuts();
        let step = |most: u64| cuts.iter().map(|cut| cut.1).find(|&step| step <= most);
        let step = step(share / UNEVEN).or_else(|| step(share)).unwrap_or(share.max(1));
        let share = share.div_ceil(step).saturating_mul(step);
        Shares { threads, chunks: plan.chunks_for(share, shares).collect() }
    }
}

impl Plan {
    /// The same as [`run`](Plan::run), on the threads of an executor.
    ///
    /// The destination is cut into as many chunks as there are threads, so what a
    /// thread writes lies together. Small arrays are done by the calling thread. The
    /// first run cuts for its number of threads, and what it made is kept: runs with
    /// another number cut again, each time.
    ///
    /// To wake a thread that sleeps takes about as long as to move a MiB. Where runs follow each
    /// other, call from a thread of the pool (`rayon::ThreadPool::install`): its threads
    /// look for work for a while before they sleep.
    ///
    /// # Errors
    ///
    /// As [`run`](Plan::run).
    pub fn run_with(
        &self,
        executor: &impl Executor,
        source: &[u8],
        destination: &mut [u8],
    ) -> Result<(), BufferError> {
        let (source_needs, destination_needs) = self.needs();
        let threads = executor.threads();
        let both_bytes = source_needs.bytes.saturating_add(destination_needs.bytes);
        if threads < 2 || both_bytes < WORTH_A_THREAD {
            return self.run(source, destination);
        }
        source_needs.check(Side::Source, source.len())?;
        destination_needs.check(Side::Destination, destination.len())?;
        let shares = self.shares.get_or_init(|| Shares::new(self, threads));
        let others;
        let shares = if shares.threads == threads {
            shares
        } else {
            others = Shares::new(self, threads);
            &others
        };
        // They are all of the destination, whose length has been looked at.
        let end = shares.chunks.last().map_or(0, |chunk| chunk.destination().end);
        if end != destination_needs.bytes {
            return self.run(source, destination);
        }
        let mut rest = destination;
        let mut parts = Vec::with_capacity(shares.chunks.len());
        for chunk in &shares.chunks {
            let (part, behind) = rest.split_at_mut(chunk.len().min(rest.len()));
            rest = behind;
            parts.push(Mutex::new(Some((chunk, part))));
        }
        let task = |i: usize| {
            let Some(part) = parts.get(i) else { return };
            let taken = part.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some((chunk, part)) = taken {
                // Both lengths have been looked at.
                let _ = chunk.run(source, part);
            }
        };
        executor.run(parts.len(), &task);
        (0..parts.len()).for_each(task);
        Ok(())
    }
}
