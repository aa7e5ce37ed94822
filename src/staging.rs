//! Arrays through a few fixed buffers, on their way to a device.
//!
//! A runtime has some buffers that its DMA engine can read, and arrays of any size. A
//! [`Stager`] fills one buffer after the other with chunks of an image, while the
//! engine transfers those that were filled before. There is never more memory in use
//! than the buffers, and a stager that is ahead of the engine waits for it.
//!
//! ```
//! use relayout::staging::Stager;
//! use relayout::{Plan, Shape};
//! use std::sync::mpsc;
//!
//! let shape: Shape = "f32[1024,1024]{1,0:T(8,128)}".parse()?;
//! let plan = Plan::pack(&shape)?;
//! let host = vec![1; 4 << 20];
//!
//! // A thread that stands for the DMA engine, and the memory of its device.
//! let (engine, filled) = mpsc::channel();
//! let device = std::thread::spawn(move || {
//!     let mut memory = vec![0; 4 << 20];
//!     for staged in filled {
//!         let staged: relayout::staging::Staged<Vec<u8>> = staged;
//!         let range = staged.destination();
//!         memory[range.start as usize..range.end as usize].copy_from_slice(staged.bytes());
//!         // Dropped here, its buffer is free for the next chunk.
//!     }
//!     memory
//! });
//!
//! let mut stager = Stager::new([vec![0; 512 << 10], vec![0; 512 << 10]]);
//! for staged in stager.stage(&plan, &host)? {
//!     let _ = engine.send(staged?);
//! }
//! drop(engine);
//! assert!(device.join().is_ok_and(|memory| memory.iter().all(|&byte| byte == 1)));
//! # Ok::<(), relayout::Error>(())
//! ```

use std::ops::Range;
use std::sync::mpsc::{self, Receiver, Sender};

use crate::error::{BufferError, Error, Side};
use crate::plan::{Chunks, Plan};

/// Buffers that chunks are filled into, in turn.
///
/// `B` is whatever holds the bytes: a `Vec<u8>`, pinned memory of a runtime. Two
/// buffers let a transfer and the filling of the next chunk go on at the same time;
/// more even out what takes longer now and then.
#[derive(Debug)]
pub struct Stager<B> {
    free: Receiver<B>,
    back: Sender<B>,
    /// Bytes of the smallest buffer.
    buffer_bytes: usize,
    buffers: usize,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Stager<B> {
    /// A stager with these buffers. Chunks are as large as the smallest of them allows.
    #[must_use]
    pub fn new(buffers: impl IntoIterator<Item = B>) -> Self {
        let (back, free) = mpsc::channel();
        let mut stager = Stager { free, back, buffer_bytes: usize::MAX, buffers: 0 };
        for buffer in buffers {
            stager.buffer_bytes = stager.buffer_bytes.min(buffer.as_ref().len());
            stager.buffers += 1;
            // It is received from by `self`.
            let _ = stager.back.send(buffer);
        }
        stager
    }

    /// The chunks of a destination, each filled when it is asked for.
    ///
    /// Asking for the next one waits until a buffer is free, which is when an earlier
    /// [`Staged`] was dropped: by another thread, or by this one. A thread that keeps
    /// them all and asks for another one waits for ever.
    ///
    /// # Errors
    ///
    /// `source` has another length than the source of the plan, or there are no
    /// buffers, or they are smaller than the [grain](Plan::grain_bytes) of the plan:
    /// the error is then about the destination.
    pub fn stage<'a>(
        &'a mut self,
        plan: &'a Plan,
        source: &'a [u8],
    ) -> Result<StagedChunks<'a, B>, BufferError> {
        plan.check_source(source)?;
        let grain = plan.grain_bytes().min(plan.destination_bytes());
        let wide = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let bytes = if self.buffers == 0 { 0 } else { wide(self.buffer_bytes) };
        if bytes < grain {
            let side = Side::Destination;
            return Err(BufferError { side, needed_bytes: grain, given_bytes: bytes });
        }
        let rest = 0..plan.destination_bytes();
        Ok(StagedChunks { chunks: plan.chunks(bytes), rest, source, stager: self })
    }
}

/// Chunks that are filled when they are asked for: [`Stager::stage`].
///
/// An error, after which there is nothing more, says that the rest of the destination
/// could not be staged: a buffer has become shorter than it was, or what is left cannot
/// be cut so finely.
#[derive(Debug)]
pub struct StagedChunks<'a, B> {
    chunks: Chunks<'a>,
    /// What is still to come.
    rest: Range<u64>,
    source: &'a [u8],
    stager: &'a mut Stager<B>,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Iterator for StagedChunks<'_, B> {
    type Item = Result<Staged<B>, Error>;

    fn next(&mut self) -> Option<Result<Staged<B>, Error>> {
        if self.rest.is_empty() {
            return None;
        }
        let staged = self.fill();
        self.rest.start = match &staged {
            Ok(staged) => staged.destination.end,
            Err(_) => self.rest.end,
        };
        Some(staged)
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> StagedChunks<'_, B> {
    /// Fills the next chunk into the next free buffer.
    fn fill(&mut self) -> Result<Staged<B>, Error> {
        let (plan, rest) = (self.chunks.plan(), &self.rest);
        let uncut = || plan.across_element(rest.clone());
        let chunk = self.chunks.next().ok_or_else(uncut)?;
        // It never ends: the stager itself holds a sender.
        let buffer = self.stager.free.recv().map_err(|_| uncut())?;
        let back = self.stager.back.clone();
        let (length, destination) = (chunk.len(), chunk.destination());
        let mut staged = Staged { buffer: Some(buffer), length, destination, back };
        let buffer = staged.buffer.as_mut().map(AsMut::as_mut).unwrap_or_default();
        let whole = buffer.len().min(length);
        chunk.run(self.source, &mut buffer[..whole])?;
        Ok(staged)
    }
}

/// A buffer with a chunk in it. Dropping it makes the buffer free for another one.
#[derive(Debug)]
pub struct Staged<B> {
    /// Taken when this is dropped.
    buffer: Option<B>,
    length: usize,
    destination: Range<u64>,
    back: Sender<B>,
}

impl<B: AsRef<[u8]>> Staged<B> {
    /// Which bytes of the destination these are.
    #[must_use]
    pub fn destination(&self) -> Range<u64> {
        self.destination.clone()
    }

    /// The bytes of the chunk.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let bytes = self.buffer.as_ref().map_or(&[][..], |buffer| buffer.as_ref());
        bytes.get(..self.length).unwrap_or(bytes)
    }
}

impl<B> Drop for Staged<B> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            // The stager may be gone; then so is the buffer.
            let _ = self.back.send(buffer);
        }
    }
}
