//! Host arrays as slices of numbers.

use relayout_kernels::ElementType;

use crate::error::{Error, MismatchError, Side};
use crate::plan::Plan;

/// A Rust type that host arrays of some element types are made of.
///
/// `u16` is also one of `bf16` and `f16`, and `u8` of everything that has a byte in
/// host memory, as the bits that they are.
pub trait HostElement: bytemuck::Pod {
    /// How messages call it.
    const NAME: &'static str;

    /// Whether elements of a type are this in host memory.
    fn is_one_of(element_type: ElementType) -> bool;
}

macro_rules! host_elements {
    ($($kind:ident: $(($bits:literal))? $($variant:ident)|*;)*) => {
        $(impl HostElement for $kind {
            const NAME: &'static str = stringify!($kind);

            fn is_one_of(element_type: ElementType) -> bool {
                $(if element_type.host_bytes() * 8 == $bits {
                    return true;
                })?
                matches!(element_type, $(ElementType::$variant)|*)
            }
        })*
    };
}

host_elements! {
    i8: S1 | S2 | S4 | S8;
    u8: (8) U8;
    i16: S16;
    u16: U16 | Bf16 | F16;
    i32: S32;
    u32: U32;
    i64: S64;
    u64: U64;
    f32: F32;
    f64: F64;
}

impl Plan {
    /// [`run`](Plan::run) from a host array of numbers.
    ///
    /// # Errors
    ///
    /// As there, and the plan does not read a host array of elements that are a `T`
    /// each.
    ///
    /// ```
    /// use relayout::{Plan, Shape};
    ///
    /// let shape: Shape = "f32[2]{0:T(4)}".parse()?;
    /// let mut image = [0xee; 16];
    /// Plan::pack(&shape)?.run_from(&[1.0_f32, 2.0], &mut image)?;
    /// assert_eq!(image[4..8], 2.0_f32.to_le_bytes());
    /// # Ok::<(), relayout::Error>(())
    /// ```
    pub fn run_from<T: HostElement>(&self, host: &[T], image: &mut [u8]) -> Result<(), Error> {
        check::<T>(self, Side::Source)?;
        Ok(self.run(bytemuck::cast_slice(host), image)?)
    }

    /// [`run`](Plan::run) into a host array of numbers.
    ///
    /// # Errors
    ///
    /// As [`run_from`](Plan::run_from), of the array that is written.
    ///
    /// ```
    /// use relayout::{Plan, Shape};
    ///
    /// let shape: Shape = "s32[2]{0:T(2)}".parse()?;
    /// let mut host = [0_i32; 2];
    /// Plan::unpack(&shape)?.run_into(&[1, 0, 0, 0, 255, 255, 255, 255], &mut host)?;
    /// assert_eq!(host, [1, -1]);
    /// assert!(Plan::unpack(&shape)?.run_into(&[0; 8], &mut [0_f32; 2]).is_err());
    /// # Ok::<(), relayout::Error>(())
    /// ```
    pub fn run_into<T: HostElement>(&self, image: &[u8], host: &mut [T]) -> Result<(), Error> {
        check::<T>(self, Side::Destination)?;
        Ok(self.run(image, bytemuck::cast_slice_mut(host))?)
    }
}

pub(crate) fn check<T: HostElement>(plan: &Plan, side: Side) -> Result<(), MismatchError> {
    match plan.host_elements(side) {
        Some(element_type) if T::is_one_of(element_type) => Ok(()),
        element_type => Err(MismatchError::HostElement { host: T::NAME, element_type }),
    }
}
