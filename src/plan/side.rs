//! One side of a plan: where the elements of its array are in its buffer.

use std::borrow::Cow;

use relayout_kernels::Conversion;

use super::digits::{self, Digits, Root};
use crate::error::{BufferError, Error, ShapeError, Side as Which};
use crate::host::{Host, HostPlace, check_window};
use crate::index::ImageMap;
use crate::shape::Shape;

/// Where the elements of an array are: in an image, or at strides.
#[derive(Clone, Debug)]
pub(super) struct Side<'a> {
    pub(super) kind: Kind<'a>,
    /// The bounds of what is moved.
    pub(super) bounds: Vec<u64>,
    pub(super) element_bits: u32,
    /// What is done to its elements, on their way from here or to here.
    pub(super) conversion: Option<Conversion>,
    pub(super) needs: Needs,
}

#[derive(Clone, Debug)]
pub(super) enum Kind<'a> {
    Image {
        shape: &'a Shape,
        /// The index at which a window of it starts; `None` for the whole array.
        window: Option<&'a [u64]>,
    },
    Host {
        host: &'a Host,
        place: HostPlace,
    },
}

/// What a buffer needs to have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    pub(crate) bytes: u64,
    /// It may be longer.
    pub(crate) at_least: bool,
}

impl Needs {
    pub(crate) fn check(self, side: Which, length: usize) -> Result<(), BufferError> {
        let given_bytes = u64::try_from(length).unwrap_or(u64::MAX);
        if given_bytes == self.bytes || (self.at_least && given_bytes > self.bytes) {
            Ok(())
        } else {
            Err(BufferError { side, needed_bytes: self.bytes, given_bytes })
        }
    }
}

/// The part of an array that is moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window<'a> {
    pub(super) start: &'a [u64],
    pub(super) sizes: &'a [u64],
}

impl<'a> Side<'a> {
    /// The image of a shape, or a window of it.
    pub(super) fn image(shape: &'a Shape, window: Option<Window<'a>>) -> Result<Self, Error> {
        let bounds = shape.bounds()?;
        let sizes = shape.sizes()?;
        if let Some(window) = window {
            check_window(window.start, window.sizes, &bounds)?;
        }
        Ok(Side {
            kind: Kind::Image { shape, window: window.map(|window| window.start) },
            bounds: window.map_or(bounds, |window| window.sizes.to_vec()),
            element_bits: shape.element_bits(),
            conversion: None,
            needs: Needs { bytes: sizes.image_bytes, at_least: false },
        })
    }

    /// A host array of the bounds of `shape`, or of a window of it.
    pub(super) fn host(
        shape: &Shape,
        host: &'a Host,
        which: Which,
        window: Option<Window<'_>>,
    ) -> Result<Self, Error> {
        let bounds = match window {
            Some(window) => window.sizes.to_vec(),
            None => shape.bounds()?,
        };
        let place = host.place(shape, &bounds)?;
        Ok(Side {
            bounds,
            element_bits: place.element_bits,
            conversion: host.conversion(shape, which == Which::Source)?,
            needs: Needs { bytes: place.bytes, at_least: !place.is_whole },
            kind: Kind::Host { host, place },
        })
    }

    /// How the array was said to lie, where it is a host array.
    pub(super) fn as_host(&self) -> Option<&Host> {
        match &self.kind {
            Kind::Image { .. } => None,
            Kind::Host { host, .. } => Some(host),
        }
    }

    /// Checks that every element has a place of its own, as those of a destination do.
    pub(super) fn check_apart(&self) -> Result<(), Error> {
        match &self.kind {
            Kind::Image { .. } => Ok(()),
            Kind::Host { place, .. } => Ok(place.check_apart(&self.bounds)?),
        }
    }

    /// Whether the first of several elements in a byte has its most significant bits.
    pub(super) fn most_first(&self) -> bool {
        matches!(&self.kind, Kind::Host { place, .. } if place.most_first)
    }

    /// Whether all of the buffer belongs to the array, padding included.
    pub(super) fn is_whole(&self) -> bool {
        match &self.kind {
            Kind::Image { window, .. } => window.is_none(),
            Kind::Host { place, .. } => place.is_whole,
        }
    }

    /// Elements, padding included, in a buffer that is whole.
    pub(super) fn elements(&self) -> Option<u64> {
        match &self.kind {
            Kind::Image { shape, .. } => Some(shape.sizes().ok()?.image_elements),
            Kind::Host { .. } => self.bounds.iter().try_fold(1_u64, |n, &b| n.checked_mul(b)),
        }
    }

    /// The bit where the element of index 0 in every dimension would be, if there
    /// were no window.
    pub(super) fn start(&self) -> u64 {
        match &self.kind {
            Kind::Image { .. } => 0,
            Kind::Host { place, .. } => place.start,
        }
    }

    /// The position of an element as a sum of trees: [`digits::roots`].
    pub(super) fn roots(&self) -> Option<Vec<Root>> {
        match &self.kind {
            Kind::Image { shape, .. } => digits::roots(shape),
            Kind::Host { place, .. } => Some(
                place
                    .strides
                    .iter()
                    .enumerate()
                    .map(|(dimension, &stride)| Root {
                        dimensions: vec![dimension],
                        digits: Digits::Digit { stride },
                    })
                    .collect(),
            ),
        }
    }

    /// The index at which the window starts in these dimensions, joined. `None` where
    /// a window of joined dimensions is no range of their index.
    pub(super) fn window_start(&self, dimensions: &[usize]) -> Option<u64> {
        let Kind::Image { shape, window: Some(start) } = &self.kind else { return Some(0) };
        let whole = shape.bounds().ok()?;
        match dimensions {
            [] => Some(0),
            [dimension] => Some(start[*dimension]),
            _ => dimensions.iter().all(|&d| self.bounds[d] == whole[d]).then_some(0),
        }
    }

    /// The same for the index math, to be kept.
    pub(super) fn positions(&self) -> Result<Positions, ShapeError> {
        let start = self.start();
        Ok(match &self.kind {
            Kind::Image { shape, window } => {
                Positions::Image { map: ImageMap::new(shape)?, window: window.map(<[u64]>::to_vec) }
            }
            Kind::Host { place, .. } => {
                Positions::Strided { start, strides: place.strides.clone() }
            }
        })
    }
}

/// Where elements are, one by one.
#[derive(Debug)]
pub(super) enum Positions {
    Image { map: ImageMap, window: Option<Vec<u64>> },
    Strided { start: u64, strides: Vec<u64> },
}

impl Positions {
    /// The bit where an element is that there is.
    pub(super) fn bit_offset(&self, index: &[u64]) -> Option<u64> {
        match self {
            Positions::Image { map, window } => {
                let index = match window {
                    None => Cow::Borrowed(index),
                    Some(start) => index.iter().zip(start).map(|(i, start)| i + start).collect(),
                };
                map.bit_offset(&index).ok()
            }
            Positions::Strided { start, strides } => Some(
                index
                    .iter()
                    .zip(strides)
                    .fold(*start, |at, (i, stride)| at.wrapping_add(i.wrapping_mul(*stride))),
            ),
        }
    }
}
