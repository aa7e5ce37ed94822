//! A layout as a list of pads, reshapes and transposes.
//!
//! "Tiling as pad-reshape-transpose" of the tiled-layout document, for a whole
//! layout: starting from the row-major array, the steps lead to an array whose
//! row-major order is the image. Each means what the NumPy function of its name
//! means, so the list can be carried out anywhere.

use std::fmt;

use crate::error::ShapeError;
use crate::shape::{Level, Shape};

/// One step from an array towards its image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Pad at the end of each dimension, up to these bounds in elements.
    PadTo(Vec<u64>),
    /// Regard the same elements, in row-major order, as an array with these
    /// bounds in elements.
    ReshapeTo(Vec<u64>),
    /// Dimension i of the result is dimension `by[i]` of what was there.
    TransposeBy(Vec<usize>),
}

impl fmt::Display for Step {
    /// A line to read: `pad to [4, 6]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::PadTo(bounds) => write!(f, "pad to {bounds:?}"),
            Step::ReshapeTo(bounds) => write!(f, "reshape to {bounds:?}"),
            Step::TransposeBy(dimensions) => write!(f, "transpose by {dimensions:?}"),
        }
    }
}

impl Shape {
    /// The steps from the row-major array to the image. Those that change
    /// nothing are left out, so an array that is its own image has none.
    ///
    /// Source: tiled-layout document, "Tiling as pad-reshape-transpose".
    ///
    /// ```
    /// let shape: relayout::Shape = "f32[3,5]{1,0:T(2,2)}".parse()?;
    /// let text: Vec<String> = shape.steps()?.iter().map(|step| step.to_string()).collect();
    /// assert_eq!(text, ["pad to [4, 6]", "reshape to [2, 2, 3, 2]", "transpose by [0, 2, 1, 3]"]);
    /// # Ok::<(), relayout::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ShapeError::Unbounded`] where a dimension has no bound.
    pub fn steps(&self) -> Result<Vec<Step>, ShapeError> {
        let mut builder = Builder { bounds: self.bounds()?, steps: Vec::new() };
        builder.transpose(self.layout().major_to_minor().collect());
        for level in &self.tiling()?.levels {
            builder.level(level);
        }
        Ok(builder.steps)
    }
}

/// The steps so far and the bounds that they lead to.
struct Builder {
    bounds: Vec<u64>,
    steps: Vec<Step>,
}

impl Builder {
    /// The steps of one tile.
    fn level(&mut self, level: &Level) {
        // Combine dimensions; put ones in front of a tile longer than the rank.
        let untiled = self.bounds.len() - level.taken();
        let kept = self.bounds[..untiled].to_vec();
        let with = |new: &mut dyn Iterator<Item = u64>| kept.iter().copied().chain(new).collect();
        let tiled = &level.dimensions;
        self.lead_to(Step::ReshapeTo, with(&mut tiled.iter().map(|d| d.bound)));
        self.lead_to(Step::PadTo, with(&mut tiled.iter().map(|d| d.tiles() * d.tile)));
        self.lead_to(Step::ReshapeTo, with(&mut tiled.iter().flat_map(|d| [d.tiles(), d.tile])));
        // Move the tile bounds to the minor end.
        let pairs = (untiled..self.bounds.len()).step_by(2);
        let order = (0..untiled).chain(pairs.clone()).chain(pairs.map(|i| i + 1));
        self.transpose(order.collect());
    }

    fn lead_to(&mut self, step: fn(Vec<u64>) -> Step, bounds: Vec<u64>) {
        if bounds != self.bounds {
            self.bounds.clone_from(&bounds);
            self.steps.push(step(bounds));
        }
    }

    fn transpose(&mut self, by: Vec<usize>) {
        if !by.iter().copied().eq(0..by.len()) {
            self.bounds = by.iter().map(|&i| self.bounds[i]).collect();
            self.steps.push(Step::TransposeBy(by));
        }
    }
}
