//! One element after the other by the index math: for pairs of layouts that
//! have no nests, or too many.
//!
//! It allocates and is as slow as the oracle, and no layout of a real program
//! has needed it: tiles that combine what an earlier tile made, dimensions that
//! each side combines with another one, thousands of pieces.

use super::Padding;
use crate::bits;
use crate::error::{BufferError, Side};
use crate::index::ImageMap;

/// Two maps, and what an element is on either side.
#[derive(Debug)]
pub(super) struct ByIndex {
    pub(super) from: ImageMap,
    pub(super) to: ImageMap,
    pub(super) source_bits: u32,
    pub(super) destination_bits: u32,
    /// The destination gets whether any bit was set.
    pub(super) truth: bool,
    pub(super) padding: Padding,
    pub(super) source_bytes: u64,
    pub(super) destination_bytes: u64,
}

impl ByIndex {
    /// Writes every image element.
    ///
    /// # Errors
    ///
    /// A buffer has another length.
    pub(super) fn run(&self, source: &[u8], destination: &mut [u8]) -> Result<(), BufferError> {
        BufferError::check(Side::Source, self.source_bytes, source.len())?;
        BufferError::check(Side::Destination, self.destination_bytes, destination.len())?;
        for k in 0..self.to.image_elements() {
            // All bits of both images can be counted: the maps saw to that. An
            // index that one of them gives, the other one takes.
            let to = k * u64::from(self.destination_bits);
            let index = self.to.logical_index(k).ok().flatten();
            match index.and_then(|index| self.from.bit_offset(&index).ok()) {
                Some(from) => self.element(source, from, destination, to),
                None => self.pad(destination, to),
            }
        }
        // What the last byte has beyond the last element.
        let end = self.to.image_elements() * u64::from(self.destination_bits);
        if let Some(fill) = self.fill().filter(|_| !end.is_multiple_of(8)) {
            let left = u32::try_from(8 - end % 8).unwrap_or(0);
            bits::set(destination, end, left, fill >> (end % 8));
        }
        Ok(())
    }

    fn fill(&self) -> Option<u8> {
        match self.padding {
            Padding::Zero => Some(0),
            Padding::Byte(byte) => Some(byte),
            Padding::Keep => None,
        }
    }

    fn element(&self, source: &[u8], from: u64, destination: &mut [u8], to: u64) {
        if self.source_bits == self.destination_bits && self.source_bits >= 8 {
            let width = bits::byte_of(self.source_bits.into());
            let (from, to) = (bits::byte_of(from), bits::byte_of(to));
            destination[to..to + width].copy_from_slice(&source[from..from + width]);
        } else {
            let value = bits::get(source, from, self.source_bits);
            let value = if self.truth { u8::from(value != 0) } else { value };
            bits::set(destination, to, self.destination_bits, value);
        }
    }

    fn pad(&self, destination: &mut [u8], to: u64) {
        let Some(fill) = self.fill() else { return };
        if self.destination_bits >= 8 {
            let (at, width) = (bits::byte_of(to), bits::byte_of(self.destination_bits.into()));
            destination[at..at + width].fill(fill);
        } else {
            bits::set(destination, to, self.destination_bits, fill >> (to % 8));
        }
    }
}
