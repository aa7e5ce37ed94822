//! The plan compiler: from two layouts of an array to loops and kernels.
//!
//! A position in a layout is a sum of digits of the index (`digits.rs`). Where
//! the digits of two layouts are cut at the same places, an array is a few boxes
//! of loops without a test inside (`region.rs`), which are brought into one form
//! (`nest.rs`). The innermost loops become a block op (`choose.rs`), and boxes
//! side by side share the loops around them (`program.rs`). `drive.rs` walks
//! what comes out.

mod by_index;
mod choose;
mod digits;
mod explain;
mod nest;
mod program;
mod region;
mod stores;

pub use explain::{Explanation, LoopExplanation, Part};
pub(crate) use program::{Call, Node};

use by_index::ByIndex;
use stores::Stores;

use crate::cpu::Tier;
use crate::drive::{self, Program};
use crate::element::ElementType;
use crate::error::{BufferError, Error};
use crate::index::ImageMap;
use crate::shape::Shape;

/// How to write an array in one layout from the same array in another one.
///
/// A plan is made once for two shapes, in microseconds, and can be run any
/// number of times, by any thread. It is chosen by what the two layouts do to
/// the elements, not by their names: any layout that XLA's notation can write
/// is right, and those that amount to copies or interleaving run at the speed of
/// memory beyond the caches. docs/performance.md has the figures.
///
/// Host arrays are little-endian and dense, each element in whole bytes.
/// Elements that have fewer bits in an image keep their low ones (of `pred`,
/// whether any was set); coming back, the other bits are 0.
///
/// ```
/// use relayout::{Plan, Shape};
///
/// let shape: Shape = "bf16[3,5]{1,0:T(2,4)(2,1)}".parse()?;
/// let host: Vec<u8> = (0..30).collect();
/// let mut image = vec![0xee; 64];
/// Plan::pack(&shape)?.run(&host, &mut image)?;
/// // Element 0 of row 0 beside element 0 of row 1.
/// assert_eq!(image[..4], [0, 1, 10, 11]);
///
/// let mut back = vec![0xee; 30];
/// Plan::unpack(&shape)?.run(&image, &mut back)?;
/// assert_eq!(back, host);
/// # Ok::<(), relayout::Error>(())
/// ```
#[derive(Debug)]
pub struct Plan {
    from: Shape,
    to: Shape,
    tier: Tier,
    padding: Padding,
    regions: usize,
    body: Body,
}

/// What a run does.
#[derive(Debug)]
enum Body {
    /// Loops and kernels.
    Program(Program),
    /// Each image element by the index math: for layouts that are not made of
    /// digits, or of too many pieces.
    ByIndex(Box<ByIndex>),
}

/// What is written where an image holds no element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Zeros: images are the same whenever the arrays are, and nothing of what
    /// the buffer held before reaches a device.
    #[default]
    Zero,
    /// Nothing: the buffer keeps there what it held.
    Keep,
    /// This byte. Of an element below a byte, the bits that have its place in
    /// the byte.
    Byte(u8),
}

/// A plan with other than the usual options.
///
/// ```
/// use relayout::{Padding, PlanBuilder, Shape, Tier};
///
/// let shape: Shape = "u8[3]{0:T(4)}".parse()?;
/// let plan = PlanBuilder::new().padding(Padding::Byte(7)).tier(Tier::SCALAR).pack(&shape)?;
/// let mut image = [0xee; 4];
/// plan.run(&[1, 2, 3], &mut image)?;
/// assert_eq!(image, [1, 2, 3, 7]);
/// # Ok::<(), relayout::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanBuilder {
    tier: Option<Tier>,
    padding: Padding,
    stream: Option<bool>,
}

impl PlanBuilder {
    /// The usual options: the best tier, padding of zeros, stores past the
    /// caches for what is too large for them.
    #[must_use]
    pub fn new() -> Self {
        PlanBuilder::default()
    }

    /// Uses the kernels of another tier than the best one.
    #[must_use]
    pub fn tier(self, tier: Tier) -> Self {
        PlanBuilder { tier: Some(tier), ..self }
    }

    /// Writes something else than zeros where there is no element.
    #[must_use]
    pub fn padding(self, padding: Padding) -> Self {
        PlanBuilder { padding, ..self }
    }

    /// Writes past the caches, or never does, whatever the size: for who knows
    /// whether the destination is read again soon. Tiers that have no such stores
    /// do not write past the caches in any case.
    #[must_use]
    pub fn streaming(self, streaming: bool) -> Self {
        PlanBuilder { stream: Some(streaming), ..self }
    }

    /// [`Plan::pack`] with these options.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn pack(&self, shape: &Shape) -> Result<Plan, Error> {
        self.between(&shape.in_host_layout(), shape)
    }

    /// [`Plan::unpack`] with these options.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn unpack(&self, shape: &Shape) -> Result<Plan, Error> {
        self.between(shape, &shape.in_host_layout())
    }

    /// [`Plan::between`] with these options.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn between(&self, from: &Shape, to: &Shape) -> Result<Plan, Error> {
        from.check_same_array(to)?;
        let tier = self.tier.unwrap_or_else(Tier::best);
        let (source_bytes, destination_bytes) =
            (from.sizes()?.image_bytes, to.sizes()?.image_bytes);
        let compiled = self.compile(from, to, tier, source_bytes, destination_bytes);
        let (regions, body) = match compiled {
            Some((regions, program)) => (regions, Body::Program(program)),
            None => {
                let by_index = ByIndex {
                    from: ImageMap::new(from)?,
                    to: ImageMap::new(to)?,
                    source_bits: from.element_bits(),
                    destination_bits: to.element_bits(),
                    truth: is_truth(from, to),
                    padding: self.padding,
                    source_bytes,
                    destination_bytes,
                };
                (1, Body::ByIndex(Box::new(by_index)))
            }
        };
        let (from, to) = (from.clone(), to.clone());
        Ok(Plan { from, to, tier, padding: self.padding, regions, body })
    }

    /// The number of regions and the program. `None` where there is none.
    fn compile(
        &self,
        from: &Shape,
        to: &Shape,
        tier: Tier,
        source_bytes: u64,
        destination_bytes: u64,
    ) -> Option<(usize, Program)> {
        let program =
            |(nodes, streams)| Program { nodes, source_bytes, destination_bytes, streams };
        if destination_bytes == 0 {
            return Some((0, program((Vec::new(), false))));
        }
        let both_bytes = source_bytes.saturating_add(destination_bytes);
        let asked = if tier.streams() { self.stream } else { Some(false) };
        let stores = Stores { asked, both_bytes };
        let fill = match self.padding {
            Padding::Byte(byte) => byte,
            Padding::Zero | Padding::Keep => 0,
        };
        let along = self.padding == Padding::Zero;
        let mut regions = region::regions(from, to, along)?;
        if self.padding == Padding::Keep {
            regions.padding.clear();
        }
        let count = regions.data.len() + regions.padding.len();
        let elements = choose::Elements {
            source_bits: from.element_bits(),
            destination_bits: to.element_bits(),
            truth: is_truth(from, to),
            source_end: source_bytes.checked_mul(8)?,
            fill,
            stream: stores.of_runs(),
            alone: count == 1,
        };
        let mut leaves = Vec::new();
        for nest in regions.data {
            leaves.extend(choose::data(nest, &elements)?);
        }
        for nest in regions.padding {
            leaves.push(choose::padding(nest, elements.destination_bits.into(), fill)?);
        }
        // What the last byte has beyond the last element.
        let end = to.sizes().ok()?.image_elements.checked_mul(elements.destination_bits.into())?;
        if !end.is_multiple_of(8) && self.padding != Padding::Keep {
            let loops = vec![nest::Loop::new(8 - end % 8, 0, 1)];
            let rest = nest::Nest { source: 0, destination: end, loops };
            leaves.push(choose::padding(rest, 1, fill)?);
        }
        let program_of = program::program(leaves, tier, stores, source_bytes, destination_bytes)?;
        Some((count, program(program_of)))
    }
}

/// Whether what is written is whether any bit was set.
fn is_truth(from: &Shape, to: &Shape) -> bool {
    from.element_type() == ElementType::Pred && to.element_bits() == 1 && from.element_bits() > 1
}

impl Plan {
    /// A plan to write the image of a dense row-major host array.
    ///
    /// Its source has [`host_bytes`](crate::Sizes::host_bytes), its destination
    /// [`image_bytes`](crate::Sizes::image_bytes).
    ///
    /// # Errors
    ///
    /// The shape has no image: a dimension has no bound, or the image has 2⁶⁴
    /// bits or more.
    pub fn pack(shape: &Shape) -> Result<Plan, Error> {
        PlanBuilder::new().pack(shape)
    }

    /// A plan to write the dense row-major host array whose image is given.
    ///
    /// # Errors
    ///
    /// As [`Plan::pack`].
    pub fn unpack(shape: &Shape) -> Result<Plan, Error> {
        PlanBuilder::new().unpack(shape)
    }

    /// A plan to write the image in layout `to` of the array whose image in
    /// layout `from` is given.
    ///
    /// # Errors
    ///
    /// As [`Plan::pack`], and the shapes differ in element type or bounds.
    ///
    /// ```
    /// use relayout::{Plan, Shape};
    ///
    /// let from: Shape = "u8[2,3]{1,0}".parse()?;
    /// let to: Shape = "u8[2,3]{0,1:T(2,2)}".parse()?;
    /// let mut image = [0xee; 8];
    /// Plan::between(&from, &to)?.run(&[0, 1, 2, 3, 4, 5], &mut image)?;
    /// assert_eq!(image, [0, 3, 1, 4, 2, 5, 0, 0]);
    /// # Ok::<(), relayout::Error>(())
    /// ```
    pub fn between(from: &Shape, to: &Shape) -> Result<Plan, Error> {
        PlanBuilder::new().between(from, to)
    }

    /// Carries the plan out.
    ///
    /// `source` is the image of [`source_shape`](Plan::source_shape),
    /// `destination` that of [`destination_shape`](Plan::destination_shape).
    /// Neither need be aligned; a destination that begins at a multiple of 64
    /// bytes is written faster.
    ///
    /// # Errors
    ///
    /// A buffer has another length than its shape's image. The destination is
    /// then untouched.
    pub fn run(&self, source: &[u8], destination: &mut [u8]) -> Result<(), BufferError> {
        match &self.body {
            Body::Program(program) => drive::run(program, source, destination),
            Body::ByIndex(by_index) => by_index.run(source, destination),
        }
    }

    /// The shape whose image is read.
    #[must_use]
    pub fn source_shape(&self) -> &Shape {
        &self.from
    }

    /// The shape whose image is written.
    #[must_use]
    pub fn destination_shape(&self) -> &Shape {
        &self.to
    }

    /// The tier whose kernels it uses.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.tier
    }
}
