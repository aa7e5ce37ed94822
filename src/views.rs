//! Host arrays as views of the crate `ndarray`: the feature `ndarray`.

use ndarray::{ArrayView, ArrayViewMut, Axis, Dimension, Slice};

use crate::error::{Error, HostError, Side};
use crate::host::Host;
use crate::plan::{Padding, PlanBuilder};
use crate::shape::Shape;
use crate::typed::{self, HostElement};

impl PlanBuilder {
    /// Writes the image of a view. The host array of the builder is that of the view, but
    /// for the type of its elements.
    ///
    /// The view may have its dimensions in any order and direction. Where it has gaps, as
    /// slices of larger arrays do, what is between the elements may belong to somebody
    /// else, so its elements go through a buffer of 128 KiB. The larger array with
    /// [`Host::window`] or [`Host::strided`] needs none.
    ///
    /// # Errors
    ///
    /// As [`pack`](PlanBuilder::pack) and [`Plan::run_from`](crate::Plan::run_from); the view has other bounds
    /// than the shape. The image is then untouched.
    ///
    /// ```
    /// use ndarray::array;
    /// use relayout::{PlanBuilder, Shape};
    ///
    /// let shape: Shape = "s32[3,2]{1,0:T(2,2)}".parse()?;
    /// let numbers = array![[1, 2, 3], [4, 5, 6]];
    /// let mut image = [0xee; 32];
    /// PlanBuilder::new().pack_view(&shape, &numbers.t(), &mut image)?;
    /// assert_eq!(image[..16], [1, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0]);
    /// # Ok::<(), relayout::Error>(())
    /// ```
    pub fn pack_view<T: HostElement, D: Dimension>(
        &self,
        shape: &Shape,
        view: &ArrayView<'_, T, D>,
        image: &mut [u8],
    ) -> Result<(), Error> {
        let host = self.host_of::<T>(shape, view.shape(), view.strides())?;
        if let Some(numbers) = view.as_slice_memory_order() {
            return self.clone().host(host).pack(shape)?.run_from(numbers, image);
        }
        let dense = self.clone().host(host.without_strides());
        let plan = dense.pack(shape)?;
        typed::check::<T>(&plan, Side::Source)?;
        plan.check_destination(image)?;
        match self.the_padding() {
            // What is outside of a window stays.
            _ if self.start_and_sizes().is_some() => {}
            Padding::Zero => image.fill(0),
            Padding::Byte(byte) => image.fill(byte),
            Padding::Keep => {}
        }
        let mut numbers: Vec<T> = Vec::new();
        in_blocks::<T>(view.shape(), &mut |start, sizes| {
            let block = view.slice_each_axis(|axis| along(start, sizes, axis.axis));
            numbers.clear();
            numbers.extend(block.iter().copied());
            let plan = self.block(&dense, start, sizes).pack(shape)?;
            plan.run_from(&numbers, image)
        })
    }

    /// Writes the elements of a view from its image: the inverse of
    /// [`pack_view`](PlanBuilder::pack_view).
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// ```
    /// use ndarray::{Array2, array};
    /// use relayout::{PlanBuilder, Shape};
    ///
    /// let shape: Shape = "u8[3,2]{1,0:T(2,2)}".parse()?;
    /// let mut numbers = Array2::<u8>::zeros((3, 2));
    /// let image = [1, 4, 2, 5, 3, 6, 0, 0];
    /// PlanBuilder::new().unpack_view(&shape, &image, &mut numbers.view_mut())?;
    /// assert_eq!(numbers, array![[1, 4], [2, 5], [3, 6]]);
    /// # Ok::<(), relayout::Error>(())
    /// ```
    pub fn unpack_view<T: HostElement, D: Dimension>(
        &self,
        shape: &Shape,
        image: &[u8],
        view: &mut ArrayViewMut<'_, T, D>,
    ) -> Result<(), Error> {
        let host = self.host_of::<T>(shape, view.shape(), view.strides())?;
        if let Some(numbers) = view.as_slice_memory_order_mut() {
            return self.clone().host(host).unpack(shape)?.run_into(image, numbers);
        }
        let dense = self.clone().host(host.without_strides());
        let bounds = view.shape().to_vec();
        let mut numbers: Vec<T> = Vec::new();
        in_blocks::<T>(&bounds, &mut |start, sizes| {
            numbers.resize(sizes.iter().product(), T::zeroed());
            let plan = self.block(&dense, start, sizes).unpack(shape)?;
            plan.run_into(image, &mut numbers)?;
            let mut block = view.slice_each_axis_mut(|axis| along(start, sizes, axis.axis));
            block.iter_mut().zip(&numbers).for_each(|(to, from)| *to = *from);
            Ok(())
        })
    }

    /// The options for a block of a view.
    fn block(&self, dense: &PlanBuilder, start: &[usize], sizes: &[usize]) -> PlanBuilder {
        let wide = |n: &usize| u64::try_from(*n).unwrap_or(u64::MAX);
        let mut start: Vec<u64> = start.iter().map(wide).collect();
        if let Some((window, _)) = self.start_and_sizes() {
            // Both are within the bounds of the image.
            start.iter_mut().zip(window).for_each(|(at, window)| *at += window);
        }
        dense.clone().window(start, sizes.iter().map(wide).collect::<Vec<u64>>())
    }

    /// A view as a host array.
    fn host_of<T>(
        &self,
        shape: &Shape,
        bounds: &[usize],
        strides: &[isize],
    ) -> Result<Host, Error> {
        let sizes = match self.start_and_sizes() {
            Some((_, sizes)) => sizes.clone(),
            None => shape.bounds()?,
        };
        let given: Vec<u64> =
            bounds.iter().map(|&bound| u64::try_from(bound).unwrap_or(u64::MAX)).collect();
        if given.len() != sizes.len() {
            return Err(HostError::Entries { entries: given.len(), rank: sizes.len() }.into());
        }
        let differs = given.iter().zip(&sizes).position(|(view, bound)| view != bound);
        if let Some(dimension) = differs {
            let (view, bound) = (given[dimension], sizes[dimension]);
            return Err(HostError::Bound { dimension, view, bound }.into());
        }
        let width = i64::try_from(size_of::<T>()).unwrap_or(i64::MAX);
        // Views are in memory. What saturates belongs to a bound of 1 or 0, and counts for
        // nothing.
        let bytes = |&stride: &isize| i64::try_from(stride).unwrap_or(i64::MAX);
        let strides: Vec<i64> = strides.iter().map(|s| bytes(s).saturating_mul(width)).collect();
        // Where strides are negative, the first element is not at the lowest address.
        let reach = |(stride, bound): (&i64, &u64)| match bound.saturating_sub(1) {
            steps if *stride < 0 => stride.unsigned_abs().saturating_mul(steps),
            _ => 0,
        };
        let start = strides.iter().zip(&sizes).map(reach).fold(0, u64::saturating_add);
        Ok(self.the_host().with_strides(strides).starting_at(start))
    }
}

/// So many bytes of a view with gaps are brought together at once.
const BLOCK_BYTES: usize = 128 << 10;

/// Calls `each` with the start and the sizes of blocks that are together a view with these
/// bounds.
fn in_blocks<T>(
    bounds: &[usize],
    each: &mut impl FnMut(&[usize], &[usize]) -> Result<(), Error>,
) -> Result<(), Error> {
    let most = (BLOCK_BYTES / size_of::<T>().max(1)).max(1);
    split(&mut vec![0; bounds.len()], &mut bounds.to_vec(), most, each)
}

/// Halves a block along its most major dimension until it has at most so many elements.
fn split(
    start: &mut [usize],
    sizes: &mut [usize],
    most: usize,
    each: &mut impl FnMut(&[usize], &[usize]) -> Result<(), Error>,
) -> Result<(), Error> {
    // A view is in memory, so its elements can be counted; those of a broadcast one may
    // be too many.
    let count = sizes.iter().fold(1_usize, |n, &size| n.saturating_mul(size));
    let longest = sizes.iter().position(|&size| size > 1);
    let (Some(d), true) = (longest, count > most) else { return each(start, sizes) };
    let size = sizes[d];
    // Where tiles end, most likely.
    let first = match size / 2 {
        half if size > 128 => half.next_multiple_of(64),
        half => half,
    };
    sizes[d] = first;
    split(start, sizes, most, each)?;
    (start[d], sizes[d]) = (start[d] + first, size - first);
    split(start, sizes, most, each)?;
    (start[d], sizes[d]) = (start[d] - first, size);
    Ok(())
}

/// What of an axis belongs to a block.
fn along(start: &[usize], sizes: &[usize], axis: Axis) -> Slice {
    let (start, size) = (start[axis.index()], sizes[axis.index()]);
    Slice::from(start..start + size)
}
