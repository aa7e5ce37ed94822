//! Host arrays as views of the crate `ndarray`: the feature `ndarray`.

use ndarray::{ArrayView, ArrayViewMut, Dimension};

use crate::error::{Error, HostError};
use crate::host::Host;
use crate::plan::{Plan, PlanBuilder};
use crate::shape::Shape;
use crate::typed::HostElement;

impl PlanBuilder {
    /// Writes the image of a view. The host array of the builder is that of the view, but
    /// for the type of its elements.
    ///
    /// The view may have its dimensions in any order and direction, but no gaps: what is
    /// between the elements may belong to somebody else. For a slice of a larger array,
    /// take the larger one and [`Host::window`] or [`Host::strided`].
    ///
    /// # Errors
    ///
    /// As [`pack`](PlanBuilder::pack) and [`Plan::run_from`]; the view has other bounds
    /// than the shape, or gaps.
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
        let numbers = view.as_slice_memory_order().ok_or(HostError::Gaps)?;
        let host = self.host_of::<T>(shape, view.shape(), view.strides())?;
        self.clone().host(host).pack(shape)?.run_from(numbers, image)
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
        let numbers = view.as_slice_memory_order_mut().ok_or(HostError::Gaps)?;
        let plan: Plan = self.clone().host(host).unpack(shape)?;
        plan.run_into(image, numbers)
    }

    /// A view without gaps as a host array.
    fn host_of<T>(
        &self,
        shape: &Shape,
        bounds: &[usize],
        strides: &[isize],
    ) -> Result<Host, Error> {
        let sizes = match self.window_sizes() {
            Some(sizes) => sizes.to_vec(),
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
