//! Buffers that show what is read or written beside them.

#![allow(unsafe_code, reason = "allocations of an exact place and size")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Bytes on either side of a destination.
const GUARD: usize = 192;

/// A line of cache, from which addresses are counted.
const LINE: usize = 64;

/// A buffer that begins so many bytes after a multiple of 64, in an allocation of its
/// own.
pub struct Buffer {
    memory: NonNull<u8>,
    layout: Layout,
    /// Where the buffer is in its allocation.
    start: usize,
    length: usize,
}

impl Buffer {
    /// An allocation with so many bytes before the buffer and behind it, all of them
    /// this one.
    fn new(length: usize, before: usize, behind: usize, byte: u8) -> Buffer {
        let bytes = (before + length + behind).max(1);
        let layout = Layout::from_size_align(bytes, LINE).unwrap();
        // SAFETY: the size is not 0.
        let memory = unsafe { alloc(layout) };
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(layout) };
        // SAFETY: so many bytes were just allocated.
        unsafe { memory.write_bytes(byte, bytes) };
        Buffer { memory, layout, start: before, length }
    }

    /// A destination: poisoned, with guards of the same byte around it.
    #[must_use]
    pub fn poisoned(length: usize, ahead: usize, byte: u8) -> Buffer {
        Buffer::new(length, GUARD + ahead % LINE, GUARD, byte)
    }

    /// A source: a copy of these bytes that ends where its allocation does, and at a
    /// multiple of 64 begins where it does, so that AddressSanitizer sees what is read
    /// beyond.
    #[must_use]
    pub fn of(bytes: &[u8], ahead: usize) -> Buffer {
        let mut buffer = Buffer::new(bytes.len(), ahead % LINE, 0, 0x5a);
        buffer.inside().copy_from_slice(bytes);
        buffer
    }

    fn all(&self) -> &[u8] {
        // SAFETY: they were allocated and written, and live as long as this.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), self.layout.size()) }
    }

    /// The bytes of the buffer itself.
    pub fn inside(&mut self) -> &mut [u8] {
        let size = self.layout.size();
        // SAFETY: as for `all`; `self` is borrowed for as long.
        let all = unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr(), size) };
        &mut all[self.start..self.start + self.length]
    }

    /// Whether the guards are as they were.
    #[must_use]
    pub fn guards_are(&self, byte: u8) -> bool {
        let (before, rest) = self.all().split_at(self.start);
        before.iter().chain(&rest[self.length..]).all(|&b| b == byte)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: it was allocated so, and is not used again.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) };
    }
}
