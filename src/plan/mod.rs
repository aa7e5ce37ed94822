//! The plan compiler: from two layouts of an array to loops and kernels.
//!
//! A position in a layout is a sum of digits of the index (`digits.rs`). Where
//! the digits of two layouts are cut at the same places, an array is a few boxes
//! of loops without a test inside (`region.rs`), which are brought into one form
//! (`nest.rs`). The innermost loops become a block op (`choose.rs`), and boxes
//! side by side share the loops around them (`program.rs`). `drive.rs` walks
//! what comes out.

mod along;
mod by_index;
mod choose;
mod chunks;
mod cost;
mod digits;
mod explain;
mod hop;
mod images;
mod nest;
mod program;
mod recipe;
mod region;
mod side;
mod slabs;
mod staged;
mod stores;
mod tails;
mod threads;
mod ways;
mod word_columns;

pub use chunks::{Chunk, Chunks};
pub use explain::{Explanation, LoopExplanation, Part, Pass};
pub(crate) use hop::{HOP_BYTES, MOST_SCRATCH_BYTES};
pub(crate) use program::{Call, Node};
pub(crate) use side::Needs;
pub(crate) use staged::{SCRATCH_BYTES, STAGES_BYTES, Stage, Stages, Steps};
pub(crate) use ways::MostFirst;

use std::mem::MaybeUninit;
use std::sync::{Arc, OnceLock};

use relayout_kernels::{Core, ElementType, Tier};

use by_index::ByIndex;
use recipe::Recipe;
use side::{Side, Window};
use stores::Stores;
use threads::Shares;

use crate::drive::{self, Program};
use crate::error::{BufferError, Error, Side as Which};
use crate::host::Host;
use crate::shape::Shape;

/// How to write an array in one layout from the same array in another one.
///
/// A plan is made once for two shapes, in microseconds, and can be run any
/// number of times, by any thread. It is chosen by what the two layouts do to
/// the elements, not by their names: any layout that XLA's notation can write
/// is right, and those that amount to copies or interleaving run at the speed of
/// memory beyond the caches. docs/performance.md has the figures.
///
/// Host arrays are little-endian and dense, each element in whole bytes, unless
/// [`PlanBuilder::host`] says how they lie. Elements that have fewer bits in an
/// image keep their low ones (of `pred`, whether any was set); coming back, the
/// other bits are 0.
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
    /// Where the one of them that is a host array is not dense.
    host: Host,
    /// Which of them is a host array, and of what type its elements are.
    host_side: Option<(Which, ElementType)>,
    /// Start and sizes of what is moved, where that is not all.
    window: Option<(Vec<u64>, Vec<u64>)>,
    tier: Tier,
    padding: Padding,
    body: Body,
    /// For the number of threads of the first run on several.
    shares: OnceLock<Shares>,
}

/// What a run does.
#[derive(Debug)]
enum Body {
    /// Loops and kernels.
    Program { program: Program, recipe: Recipe },
    /// Each image element by the index math: for layouts that are not made of
    /// digits, or of too many pieces.
    ByIndex(Arc<ByIndex>),
}

/// What decides how a plan does it.
#[derive(Clone, Copy, Debug)]
struct Options {
    padding: Padding,
    stores: Stores,
    /// The destination gets whether any bit was set.
    truth: bool,
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PlanBuilder {
    tier: Option<Tier>,
    padding: Padding,
    stream: Option<bool>,
    host: Host,
    window: Option<(Vec<u64>, Vec<u64>)>,
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

    /// Streams, which is to write past the caches, or never does, whatever the size: for who knows
    /// whether the destination is read again soon, or was written lately. Otherwise the
    /// size decides, and of arrays of some megabytes a part goes either way. Tiers that
    /// have no such stores do not stream in any case.
    #[must_use]
    pub fn streaming(self, streaming: bool) -> Self {
        PlanBuilder { stream: Some(streaming), ..self }
    }

    /// Takes the host array to lie like this, instead of dense: the source of
    /// [`pack`](PlanBuilder::pack), the destination of [`unpack`](PlanBuilder::unpack).
    #[must_use]
    pub fn host(self, host: Host) -> Self {
        PlanBuilder { host, ..self }
    }

    /// Moves a window of the array only: `sizes` elements from `start` on, by
    /// dimension, major to minor. Images are still those of the whole array, and what
    /// lies outside of the window, padding included, is left alone; a host array has
    /// the elements of the window.
    ///
    /// ```
    /// use relayout::{PlanBuilder, Shape};
    ///
    /// // Row 1, columns 2 and 3, of an array of 2 by 4 in tiles of 2 by 2.
    /// let shape: Shape = "u8[2,4]{1,0:T(2,2)}".parse()?;
    /// let builder = PlanBuilder::new().window([1, 2], [1, 2]);
    /// let mut image = [0, 1, 10, 11, 2, 3, 12, 13];
    /// builder.pack(&shape)?.run(&[42, 43], &mut image)?;
    /// assert_eq!(image, [0, 1, 10, 11, 2, 3, 42, 43]);
    ///
    /// let mut host = [0; 2];
    /// builder.unpack(&shape)?.run(&image, &mut host)?;
    /// assert_eq!(host, [42, 43]);
    /// # Ok::<(), relayout::Error>(())
    /// ```
    #[must_use]
    pub fn window(self, start: impl Into<Vec<u64>>, sizes: impl Into<Vec<u64>>) -> Self {
        PlanBuilder { window: Some((start.into(), sizes.into())), ..self }
    }

    /// [`Plan::pack`] with these options.
    ///
    /// # Errors
    ///
    /// As there, and a host array or a window that cannot be.
    pub fn pack(&self, shape: &Shape) -> Result<Plan, Error> {
        let to = Side::image(shape, self.the_window())?;
        let from = Side::host(shape, &self.host, Which::Source, self.the_window())?;
        self.plan(shape.in_host_layout(), &from, shape.clone(), &to)
    }

    /// [`Plan::unpack`] with these options.
    ///
    /// # Errors
    ///
    /// As there, and a host array or a window that cannot be, or a host array whose
    /// elements share memory.
    pub fn unpack(&self, shape: &Shape) -> Result<Plan, Error> {
        let from = Side::image(shape, self.the_window())?;
        let to = Side::host(shape, &self.host, Which::Destination, self.the_window())?;
        to.check_apart()?;
        self.plan(shape.clone(), &from, shape.in_host_layout(), &to)
    }

    /// [`Plan::between`] with these options. None of them is about host arrays.
    ///
    /// # Errors
    ///
    /// As there, and a window that cannot be.
    pub fn between(&self, from: &Shape, to: &Shape) -> Result<Plan, Error> {
        from.check_same_array(to)?;
        let source = Side::image(from, self.the_window())?;
        let destination = Side::image(to, self.the_window())?;
        self.plan(from.clone(), &source, to.clone(), &destination)
    }

    #[cfg(feature = "ndarray")]
    pub(crate) fn start_and_sizes(&self) -> Option<&(Vec<u64>, Vec<u64>)> {
        self.window.as_ref()
    }

    #[cfg(feature = "ndarray")]
    pub(crate) fn the_padding(&self) -> Padding {
        self.padding
    }

    #[cfg(feature = "ndarray")]
    pub(crate) fn the_host(&self) -> Host {
        self.host.clone()
    }

    fn the_window(&self) -> Option<Window<'_>> {
        self.window.as_ref().map(|(start, sizes)| Window { start, sizes })
    }

    fn plan(
        &self,
        from: Shape,
        source: &Side,
        to: Shape,
        destination: &Side,
    ) -> Result<Plan, Error> {
        let tier = self.tier.unwrap_or_else(Tier::best);
        // What is not written as a whole has nothing to fill.
        let padding = if destination.is_whole() { self.padding } else { Padding::Keep };
        let truth = from.element_type() == ElementType::Pred
            && destination.element_bits == 1
            && source.element_bits > 1;
        let (source_bytes, destination_bytes) = (source.needs.bytes, destination.needs.bytes);
        let asked = if tier.streams() { self.stream } else { Some(false) };
        let both_bytes = source_bytes.saturating_add(destination_bytes);
        let stores = Stores {
            tier,
            core: Core::here(),
            asked,
            both_bytes,
            all_bytes: both_bytes,
            from_scratch: false,
        };
        let options = Options { padding, stores, truth };
        let recipe = Recipe::new(source, destination, options);
        let program = recipe.and_then(|recipe| Some((recipe.program()?, recipe)));
        let body = match program {
            Some((program, recipe)) => Body::Program { program, recipe },
            None => {
                let by_index = ByIndex {
                    from: source.positions()?,
                    to: destination.positions()?,
                    bounds: destination.bounds.clone(),
                    source_bits: source.element_bits,
                    destination_bits: destination.element_bits,
                    source_most_first: source.most_first(),
                    destination_most_first: destination.most_first(),
                    truth,
                    conversion: source.conversion.or(destination.conversion),
                    padding,
                    source: source.needs,
                    destination: destination.needs,
                    whole: destination.elements().filter(|_| destination.is_whole()),
                };
                Body::ByIndex(Arc::new(by_index))
            }
        };
        let host = source.as_host().or(destination.as_host()).cloned().unwrap_or_default();
        let host_side = match (source.as_host(), destination.as_host()) {
            (Some(host), _) => Some((Which::Source, host.element_type(&from))),
            (_, Some(host)) => Some((Which::Destination, host.element_type(&to))),
            (None, None) => None,
        };
        let window = self.window.clone();
        Ok(Plan { from, to, host, host_side, window, tier, padding, body, shares: OnceLock::new() })
    }
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
    /// bytes is written faster. Up to 176 KiB of scratch memory are on the thread's stack,
    /// beside what kernels need there.
    ///
    /// # Errors
    ///
    /// A buffer has another length than its shape's image, or is shorter than its
    /// host array. The destination is then untouched.
    pub fn run(&self, source: &[u8], destination: &mut [u8]) -> Result<(), BufferError> {
        match &self.body {
            Body::Program { program, .. } => drive::run(program, source, destination),
            Body::ByIndex(by_index) => by_index.run(source, destination),
        }
    }

    /// Carries the plan out into memory that nobody has written yet, and returns it as
    /// what it then is.
    ///
    /// Images and dense host arrays are written once, as by [`run`](Plan::run). Where a
    /// plan leaves bytes alone (padding that is kept, what is between the elements of a
    /// host array) or writes parts of them, the memory is filled with zeros first.
    ///
    /// # Errors
    ///
    /// As [`run`](Plan::run).
    ///
    /// ```
    /// use relayout::{Plan, Shape};
    /// use std::mem::MaybeUninit;
    ///
    /// let shape: Shape = "u8[3]{0:T(4)}".parse()?;
    /// let mut memory = [MaybeUninit::uninit(); 4];
    /// let image = Plan::pack(&shape)?.run_uninit(&[1, 2, 3], &mut memory)?;
    /// assert_eq!(image, [1, 2, 3, 0]);
    /// # Ok::<(), relayout::Error>(())
    /// ```
    pub fn run_uninit<'a>(
        &self,
        source: &[u8],
        destination: &'a mut [MaybeUninit<u8>],
    ) -> Result<&'a mut [u8], BufferError> {
        match &self.body {
            Body::Program { program, .. } => drive::run_uninit(program, source, destination),
            Body::ByIndex(by_index) => {
                self.check_source(source)?;
                self.needs().1.check(Which::Destination, destination.len())?;
                let destination = drive::zeroed(destination);
                by_index.run(source, destination)?;
                Ok(destination)
            }
        }
    }

    /// Carries the plan out into a vector of its own, which is not zeroed before.
    ///
    /// # Errors
    ///
    /// As [`run`](Plan::run), and the destination is larger than the memory that can be
    /// had.
    ///
    /// ```
    /// use relayout::{Plan, Shape};
    ///
    /// let shape: Shape = "u8[3]{0:T(4)}".parse()?;
    /// assert_eq!(Plan::pack(&shape)?.run_to_vec(&[1, 2, 3])?, [1, 2, 3, 0]);
    /// # Ok::<(), relayout::Error>(())
    /// ```
    pub fn run_to_vec(&self, source: &[u8]) -> Result<Vec<u8>, BufferError> {
        self.check_source(source)?;
        let needed_bytes = self.destination_bytes();
        let no_memory = BufferError { side: Which::Destination, needed_bytes, given_bytes: 0 };
        let length = usize::try_from(needed_bytes).map_err(|_| no_memory)?;
        let mut vector = Vec::new();
        vector.try_reserve_exact(length).map_err(|_| no_memory)?;
        drive::extend(&mut vector, length, |memory| self.run_uninit(source, memory))?;
        Ok(vector)
    }

    /// Bytes that the source has. A host array with strides may have more.
    #[must_use]
    pub fn source_bytes(&self) -> u64 {
        self.needs().0.bytes
    }

    /// Bytes that the destination has. A host array with strides may have more.
    #[must_use]
    pub fn destination_bytes(&self) -> u64 {
        self.needs().1.bytes
    }

    /// Checks that a source has its length.
    pub(crate) fn check_source(&self, source: &[u8]) -> Result<(), BufferError> {
        self.needs().0.check(Which::Source, source.len())
    }

    /// Checks that a destination has its length.
    #[cfg(feature = "ndarray")]
    pub(crate) fn check_destination(&self, destination: &[u8]) -> Result<(), BufferError> {
        self.needs().1.check(Which::Destination, destination.len())
    }

    /// The type of the elements of the host array, if that is on this side.
    pub(crate) fn host_elements(&self, side: Which) -> Option<ElementType> {
        self.host_side.filter(|host| host.0 == side && !self.host.is_packed()).map(|host| host.1)
    }

    fn needs(&self) -> (Needs, Needs) {
        match &self.body {
            Body::Program { program, .. } => (program.source, program.destination),
            Body::ByIndex(by_index) => (by_index.source, by_index.destination),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is zeroed first costs a pass over the memory; what should have been and is
    /// not would show memory that nobody wrote.
    #[test]
    fn images_and_dense_arrays_are_written_as_a_whole() {
        let writes_all = |plan: Plan| match plan.body {
            Body::Program { program, .. } => program.writes_all,
            Body::ByIndex(_) => false,
        };
        for text in [
            "f32[1000,1000]{1,0:T(8,128)}",
            "bf16[1001,999]{1,0:T(8,128)(2,1)}",
            "s8[33,130]{1,0:T(32,128)(4,1)}",
            "pred[33,130]{1,0:T(32,128)(32,1)E(1)}",
            "s4[33,130]{1,0:T(8,128)(8,1)E(4)}",
            "f32[33,130]{0,1:T(8,128)}",
            "bf16[33,130]{0,1:T(8,128)(2,1)}",
            "f32[]{:T(128)}",
        ] {
            let shape: Shape = text.parse().unwrap();
            assert!(writes_all(Plan::pack(&shape).unwrap()), "{text}");
            assert!(writes_all(Plan::unpack(&shape).unwrap()), "{text}");
            let with = |padding| PlanBuilder::new().padding(padding).pack(&shape).unwrap();
            assert!(!writes_all(with(Padding::Keep)), "{text}");
        }
        let shape: Shape = "f32[8,128]{1,0:T(8,128)}".parse().unwrap();
        let apart = PlanBuilder::new().host(Host::strided([1024, 4]));
        assert!(!writes_all(apart.unpack(&shape).unwrap()));
        let window = PlanBuilder::new().window([0, 0], [8, 127]);
        assert!(!writes_all(window.pack(&shape).unwrap()));
        assert!(writes_all(window.unpack(&shape).unwrap()));
    }
}
