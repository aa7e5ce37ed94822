//! Buffers that show what is read or written beside them.

/// Bytes on either side of a buffer.
const GUARD: usize = 192;

/// A buffer that begins so many bytes after a multiple of 64, in an allocation of its
/// own.
#[derive(Clone, Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    /// A destination: poisoned, with guards of the same byte around it.
    #[must_use]
    pub fn poisoned(length: usize, ahead: usize, byte: u8) -> Buffer {
        let bytes = vec![byte; length + 2 * GUARD];
        let to_aligned = bytes.as_ptr().addr().wrapping_neg() % 64;
        Buffer { start: to_aligned + 64 + ahead % 64, length, bytes }
    }

    /// A source: a copy of these bytes that ends where its allocation does, so that
    /// AddressSanitizer sees what is read beyond.
    #[must_use]
    pub fn of(bytes: &[u8], ahead: usize) -> Buffer {
        let length = bytes.len();
        let mut buffer = Buffer::poisoned(length, ahead, 0x5a);
        buffer.inside().copy_from_slice(bytes);
        buffer.bytes.truncate(buffer.start + length);
        buffer.bytes.shrink_to_fit();
        // It may have moved.
        let to_aligned = buffer.bytes.as_ptr().addr().wrapping_neg() % 64;
        let start = (to_aligned + ahead % 64).min(buffer.start);
        buffer.bytes.copy_within(buffer.start.., start);
        buffer.bytes.truncate(start + length);
        buffer.start = start;
        buffer
    }

    /// The bytes of the buffer itself.
    pub fn inside(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }

    /// Whether the guards are as they were.
    #[must_use]
    pub fn guards_are(&self, byte: u8) -> bool {
        let (before, rest) = self.bytes.split_at(self.start);
        before.iter().chain(&rest[self.length..]).all(|&b| b == byte)
    }
}
