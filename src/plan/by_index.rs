//! One element after the other by the index math: for pairs of layouts that
//! have no nests, or too many.
//!
//! It allocates, is as slow as the oracle or slower, and no layout of a real program
//! has needed it: tiles that combine what an earlier tile made, dimensions that
//! each side combines with another one, thousands of pieces.

use std::ops::Range;

use relayout_kernels::{Conversion, bits, convert_element};

use super::Padding;
use super::side::{Needs, Positions};
use crate::error::{BufferError, Side};

/// Two maps, and what an element is on either side.
#[derive(Debug)]
pub(super) struct ByIndex {
    pub(super) from: Positions,
    pub(super) to: Positions,
    /// The bounds of what is moved.
    pub(super) bounds: Vec<u64>,
    pub(super) source_bits: u32,
    pub(super) destination_bits: u32,
    pub(super) source_most_first: bool,
    pub(super) destination_most_first: bool,
    /// The destination gets whether any bit was set.
    pub(super) truth: bool,
    /// What is done to elements of whole bytes.
    pub(super) conversion: Option<Conversion>,
    pub(super) padding: Padding,
    pub(super) source: Needs,
    pub(super) destination: Needs,
    /// Elements that the destination has, padding included, where all of it is
    /// written.
    pub(super) whole: Option<u64>,
}

impl ByIndex {
    /// Writes every element, and the padding.
    ///
    /// # Errors
    ///
    /// A buffer has another length.
    pub(super) fn run(&self, source: &[u8], destination: &mut [u8]) -> Result<(), BufferError> {
        self.source.check(Side::Source, source.len())?;
        self.destination.check(Side::Destination, destination.len())?;
        if let (Some(elements), Some(fill)) = (self.whole, self.fill()) {
            self.pad(destination, elements, fill);
        }
        let mut index = vec![0; self.bounds.len()];
        while !self.bounds.contains(&0) {
            // All bits of both buffers can be counted, and an index within the
            // bounds has a place on both sides.
            let places = (self.from.bit_offset(&index), self.to.bit_offset(&index));
            if let (Some(from), Some(to)) = places {
                self.element(source, from, destination, to);
            }
            // The next index, the last dimension fastest.
            let Some(d) = (0..index.len()).rev().find(|&d| index[d] + 1 < self.bounds[d]) else {
                break;
            };
            index[d] += 1;
            index[d + 1..].fill(0);
        }
        Ok(())
    }

    /// Where the destination can be cut: see `Recipe::cuts`.
    pub(super) fn cuts(&self) -> Vec<(u64, u64)> {
        match self.to {
            Positions::Image { .. } => vec![(0, u64::from(self.destination_bits).div_ceil(8))],
            Positions::Strided { .. } => Vec::new(),
        }
    }

    /// Whether no element lies across an end of a range of the destination, in bytes.
    pub(super) fn can_be_cut_at(&self, range: &Range<u64>) -> bool {
        let end = self.destination.bytes;
        self.cuts().iter().any(|&(_, step)| {
            range.start.is_multiple_of(step) && (range.end.is_multiple_of(step) || range.end == end)
        }) || (*range == (0..end))
    }

    /// Writes a range of the destination, in bytes, at whose ends it can be cut.
    ///
    /// # Errors
    ///
    /// `source` has not the length of the whole source, or `destination` that of the
    /// range.
    pub(super) fn run_range(
        &self,
        range: &Range<u64>,
        source: &[u8],
        destination: &mut [u8],
    ) -> Result<(), BufferError> {
        self.source.check(Side::Source, source.len())?;
        let bytes = range.end - range.start;
        Needs { bytes, at_least: false }.check(Side::Destination, destination.len())?;
        if *range == (0..self.destination.bytes) {
            return self.run(source, destination);
        }
        // A part of an image: the elements that are in it.
        let Positions::Image { map, window } = &self.to else { return Ok(()) };
        let width = u64::from(self.destination_bits);
        let start = range.start * 8;
        for k in start / width..(range.end * 8).div_ceil(width).min(map.image_elements()) {
            let to = k * width - start;
            let index = map.logical_index(k).ok().flatten().and_then(|index| match window {
                None => Some(index),
                // Those of the window, counted from where that starts.
                Some(window) => index
                    .iter()
                    .zip(window)
                    .zip(&self.bounds)
                    .map(|((i, start), &size)| i.checked_sub(*start).filter(|&i| i < size))
                    .collect(),
            });
            match (index.and_then(|index| self.from.bit_offset(&index)), self.fill()) {
                (Some(from), _) => self.element(source, from, destination, to),
                (None, Some(fill)) => self.pad_element(destination, to, fill),
                (None, None) => {}
            }
        }
        let end = map.image_elements() * width;
        if let (Some(_), Some(fill)) = (self.whole, self.fill())
            && range.end * 8 > end
        {
            self.pad_end(destination, end - start, fill);
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
        if let Some(conversion) = self.conversion {
            let (from, to) = (bits::byte_of(from), bits::byte_of(to));
            let (before, after) = conversion.widths();
            let (from, to) = (&source[from..from + before], &mut destination[to..to + after]);
            convert_element(conversion, from, to);
        } else if self.source_bits == self.destination_bits && self.source_bits >= 8 {
            let width = bits::byte_of(self.source_bits.into());
            let (from, to) = (bits::byte_of(from), bits::byte_of(to));
            destination[to..to + width].copy_from_slice(&source[from..from + width]);
        } else {
            let from = bits::ordered(from, self.source_bits, self.source_most_first);
            let value = bits::get(source, from, self.source_bits);
            let value = if self.truth { u8::from(value != 0) } else { value };
            let to = bits::ordered(to, self.destination_bits, self.destination_most_first);
            bits::set(destination, to, self.destination_bits, value);
        }
    }

    /// Fills what has no element: only that, so that a byte is not written twice
    /// with different values.
    fn pad(&self, destination: &mut [u8], elements: u64, fill: u8) {
        if let Positions::Image { map, .. } = &self.to {
            let mut index = Vec::new();
            for k in 0..elements {
                // An element asked for is one of the image.
                if map.logical_index_into(k, &mut index).is_ok_and(|is_element| is_element) {
                    continue;
                }
                self.pad_element(destination, k * u64::from(self.destination_bits), fill);
            }
        }
        self.pad_end(destination, elements * u64::from(self.destination_bits), fill);
    }

    fn pad_element(&self, destination: &mut [u8], to: u64, fill: u8) {
        if self.destination_bits >= 8 {
            let (at, width) = (bits::byte_of(to), bits::byte_of(self.destination_bits.into()));
            destination[at..at + width].fill(fill);
        } else {
            bits::set(destination, to, self.destination_bits, fill >> (to % 8));
        }
    }

    /// Fills what the last byte has beyond the last element, which ends at a bit.
    fn pad_end(&self, destination: &mut [u8], end: u64, fill: u8) {
        for bit in end..end.next_multiple_of(8) {
            let to = bits::ordered(bit, 1, self.destination_most_first);
            bits::set(destination, to, 1, fill >> (to % 8));
        }
    }
}
