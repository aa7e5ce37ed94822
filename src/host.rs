//! How an array lies in host memory, where it is not dense.

use std::fmt;

use relayout_kernels::{Conversion, ElementType};

use crate::error::{Error, HostError};
use crate::shape::Shape;

/// How the host array of a plan lies in its buffer.
///
/// Without one, host arrays are dense and row-major, each element in whole bytes.
///
/// ```
/// use relayout::{Host, PlanBuilder, Shape};
///
/// // Every other column of three rows of four, the rows from last to first.
/// let shape: Shape = "u8[3,2]{1,0:T(2,2)}".parse()?;
/// let host = Host::strided([-4, 2]).starting_at(8);
/// let plan = PlanBuilder::new().host(host).pack(&shape)?;
/// let mut image = [0xee; 8];
/// plan.run(&[0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23], &mut image)?;
/// assert_eq!(image, [20, 22, 10, 12, 0, 2, 0, 0]);
/// # Ok::<(), relayout::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Host {
    place: Place,
    start_bytes: u64,
    packed: Option<BitOrder>,
    elements: Elements,
}

/// What its elements are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Elements {
    /// The same as those of the image.
    #[default]
    Same,
    /// Of another type.
    Of(ElementType),
    /// What the high part of a pair leaves.
    Rest,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Place {
    #[default]
    Dense,
    Strided(Vec<i64>),
    Window {
        bounds: Vec<u64>,
        start: Vec<u64>,
    },
}

/// Where in a byte the first of several elements is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BitOrder {
    /// In its least significant bits: the order of images, and of NumPy's
    /// `packbits(bitorder="little")`.
    LeastFirst,
    /// In its most significant bits: the order that `packbits` has otherwise.
    MostFirst,
}

impl Host {
    /// A dense row-major array.
    #[must_use]
    pub fn dense() -> Self {
        Host::default()
    }

    /// An array whose dimensions have these strides in bytes, major to minor.
    ///
    /// A stride may be negative, no multiple of the element's width, and, of an array
    /// that is read, 0. Its buffer may be longer than the array: what lies between
    /// and behind the elements is neither read for its value nor written.
    #[must_use]
    pub fn strided(byte_strides: impl Into<Vec<i64>>) -> Self {
        Host { place: Place::Strided(byte_strides.into()), ..Host::default() }
    }

    /// A window of a dense row-major array with bounds of its own, which begins at
    /// this index of it. As large as the array of the plan.
    ///
    /// ```
    /// use relayout::{Host, PlanBuilder, Shape};
    ///
    /// let shape: Shape = "u8[2,2]{0,1}".parse()?;
    /// let plan = PlanBuilder::new().host(Host::window([3, 4], [1, 2])).pack(&shape)?;
    /// let mut image = [0xee; 4];
    /// plan.run(&[0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23], &mut image)?;
    /// assert_eq!(image, [12, 22, 13, 23]);
    /// # Ok::<(), relayout::Error>(())
    /// ```
    #[must_use]
    pub fn window(bounds: impl Into<Vec<u64>>, start: impl Into<Vec<u64>>) -> Self {
        let place = Place::Window { bounds: bounds.into(), start: start.into() };
        Host { place, ..Host::default() }
    }

    /// The same, so many bytes further on in its buffer. Where strides are negative,
    /// this is where the first element is, not the lowest address.
    #[must_use]
    pub fn starting_at(self, bytes: u64) -> Self {
        Host { start_bytes: bytes, ..self }
    }

    /// The same, but with two, four or eight elements in a byte, along the most
    /// minor dimension: for types of less than 8 bits, of which `pred` has 1.
    ///
    /// Dense, the elements follow each other over the ends of the rows, so a row may
    /// begin within a byte. [Strides](Host::strided) make rows begin at whole bytes: they
    /// are those of all dimensions but the most minor one, along which elements are
    /// packed.
    ///
    /// ```
    /// use relayout::{BitOrder, Host, PlanBuilder, Shape};
    ///
    /// let shape: Shape = "u4[2,3]{1,0:T(2,4)(2,1)E(4)}".parse()?;
    /// let host = Host::dense().packed(BitOrder::MostFirst);
    /// let mut image = [0xee; 4];
    /// PlanBuilder::new().host(host).pack(&shape)?.run(&[0x12, 0x34, 0x56], &mut image)?;
    /// assert_eq!(image, [0x41, 0x52, 0x63, 0x00]);
    ///
    /// // Rows of two bytes.
    /// let host = Host::strided([2]).packed(BitOrder::LeastFirst);
    /// let plan = PlanBuilder::new().host(host).pack(&shape)?;
    /// plan.run(&[0x21, 0x03, 0x54, 0x06], &mut image)?;
    /// assert_eq!(image, [0x41, 0x52, 0x63, 0x00]);
    /// # Ok::<(), relayout::Error>(())
    /// ```
    #[must_use]
    pub fn packed(self, order: BitOrder) -> Self {
        Host { packed: Some(order), ..self }
    }

    /// The same, but with elements of another type, which are [converted](Conversion) on
    /// the way: to the type of the image when it is packed, from it when it is unpacked.
    ///
    /// ```
    /// use relayout::{ElementType, Host, PlanBuilder, Shape};
    ///
    /// let shape: Shape = "bf16[2]{0:T(2)}".parse()?;
    /// let builder = PlanBuilder::new().host(Host::dense().of(ElementType::F32));
    /// let host: Vec<u8> = [1.0_f32, -2.5].iter().flat_map(|x| x.to_le_bytes()).collect();
    /// let mut image = [0xee; 4];
    /// builder.pack(&shape)?.run(&host, &mut image)?;
    /// assert_eq!(image, [0x80, 0x3f, 0x20, 0xc0]);
    /// assert_eq!(builder.unpack(&shape)?.run_to_vec(&image)?, host);
    /// # Ok::<(), relayout::Error>(())
    /// ```
    #[must_use]
    pub fn of(self, element_type: ElementType) -> Self {
        Host { elements: Elements::Of(element_type), ..self }
    }

    /// The same, but with elements of `f64`, of which the image gets what rounding to
    /// `f32` leaves: the second of the pair that TPUs use for an `f64`. The first one is
    /// that [of](Host::of) `f64`. It can only be packed.
    #[must_use]
    pub fn of_f64_rest(self) -> Self {
        Host { elements: Elements::Rest, ..self }
    }

    /// The type of the elements, in an array whose image has the type of `shape`.
    pub(crate) fn element_type(&self, shape: &Shape) -> ElementType {
        match self.elements {
            Elements::Same => shape.element_type(),
            Elements::Of(element_type) => element_type,
            Elements::Rest => ElementType::F64,
        }
    }

    /// The same elements with these strides.
    #[cfg(feature = "ndarray")]
    pub(crate) fn with_strides(self, byte_strides: Vec<i64>) -> Self {
        Host { place: Place::Strided(byte_strides), ..self }
    }

    /// The same elements in a dense array.
    #[cfg(feature = "ndarray")]
    pub(crate) fn without_strides(self) -> Self {
        Host { place: Place::Dense, start_bytes: 0, ..self }
    }

    pub(crate) fn is_packed(&self) -> bool {
        self.packed.is_some()
    }

    /// What becomes of the elements on the way to an image, or from it.
    pub(crate) fn conversion(
        &self,
        shape: &Shape,
        to_image: bool,
    ) -> Result<Option<Conversion>, HostError> {
        let (host, image) = (self.element_type(shape), shape.element_type());
        let (from, to) = if to_image { (host, image) } else { (image, host) };
        if self.elements == Elements::Rest {
            return match (to_image, image) {
                (true, ElementType::F32) => Ok(Some(Conversion::F64ToF32Rest)),
                _ => Err(HostError::NoConversion { from, to }),
            };
        }
        if host == image {
            return Ok(None);
        }
        Conversion::between(from, to).map(Some).ok_or(HostError::NoConversion { from, to })
    }

    /// Where the elements of an array with these bounds are.
    pub(crate) fn place(&self, shape: &Shape, bounds: &[u64]) -> Result<HostPlace, Error> {
        let element_type = self.element_type(shape);
        let element_bits = match self.packed {
            None => 8 * element_type.host_bytes(),
            Some(_) => Some(element_type.bits())
                .filter(|bits| matches!(bits, 1 | 2 | 4))
                .ok_or(HostError::NotPackable { element_type })?,
        };
        let (start, strides, is_whole) = self.strides(bounds, element_bits.into())?;
        let start = start + i128::from(self.start_bytes) * 8;
        let place = HostPlace::new(start, &strides, bounds, element_bits)?;
        let is_whole = is_whole && self.start_bytes == 0;
        Ok(HostPlace { is_whole, most_first: self.packed == Some(BitOrder::MostFirst), ..place })
    }

    /// The start and the strides in bits, and whether the array is all of its buffer.
    fn strides(&self, bounds: &[u64], bits: i128) -> Result<(i128, Vec<i128>, bool), HostError> {
        let rank = bounds.len();
        let count = |entries: usize, rank: usize| {
            if entries == rank { Ok(()) } else { Err(HostError::Entries { entries, rank }) }
        };
        match &self.place {
            Place::Dense => Ok((0, dense(bounds, bits)?, true)),
            Place::Strided(byte_strides) => {
                // Packed elements have a stride of their own.
                let is_packed = self.packed.is_some() && rank > 0;
                count(byte_strides.len(), rank - usize::from(is_packed))?;
                let mut strides: Vec<i128> =
                    byte_strides.iter().map(|&stride| i128::from(stride) * 8).collect();
                strides.extend(is_packed.then_some(bits));
                Ok((0, strides, false))
            }
            Place::Window { bounds: whole, start } => {
                count(whole.len(), rank)?;
                check_window(start, bounds, whole)?;
                let strides = dense(whole, bits)?;
                let mut at = 0_i128;
                for (&index, &stride) in start.iter().zip(&strides) {
                    // Within an array whose last element is below MOST_BITS.
                    at += i128::from(index) * stride;
                }
                Ok((at, strides, false))
            }
        }
    }
}

/// What is not as usual: `dense` where nothing is.
///
/// ```
/// use relayout::{BitOrder, Host};
///
/// let host = Host::strided([512, -1]).starting_at(511);
/// assert_eq!(host.to_string(), "strides of 512, -1 bytes, from byte 511 on");
/// let host = Host::window([8, 8], [2, 2]).packed(BitOrder::MostFirst);
/// assert_eq!(host.to_string(), "at [2,2] of [8,8], packed, most significant bits first");
/// ```
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn list<T: ToString>(entries: &[T], between: &str) -> String {
            entries.iter().map(T::to_string).collect::<Vec<_>>().join(between)
        }
        match &self.place {
            Place::Dense => f.write_str("dense")?,
            Place::Strided(strides) => write!(f, "strides of {} bytes", list(strides, ", "))?,
            Place::Window { bounds, start } => {
                write!(f, "at [{}] of [{}]", list(start, ","), list(bounds, ","))?;
            }
        }
        if self.start_bytes > 0 {
            write!(f, ", from byte {} on", self.start_bytes)?;
        }
        match self.elements {
            Elements::Same => {}
            Elements::Of(element_type) => write!(f, ", of {element_type}")?,
            Elements::Rest => f.write_str(", of f64, of which the rest of f32")?,
        }
        match self.packed {
            None => Ok(()),
            Some(BitOrder::LeastFirst) => f.write_str(", packed, least significant bits first"),
            Some(BitOrder::MostFirst) => f.write_str(", packed, most significant bits first"),
        }
    }
}

/// Checks that a window lies in an array.
pub(crate) fn check_window(start: &[u64], sizes: &[u64], whole: &[u64]) -> Result<(), HostError> {
    for entries in [start.len(), sizes.len()] {
        if entries != whole.len() {
            return Err(HostError::Entries { entries, rank: whole.len() });
        }
    }
    for (dimension, ((&start, &size), &bound)) in start.iter().zip(sizes).zip(whole).enumerate() {
        if start.checked_add(size).is_none_or(|end| end > bound) {
            return Err(HostError::WindowOutOfBounds { dimension, start, size, bound });
        }
    }
    Ok(())
}

/// The strides of a dense row-major array.
fn dense(bounds: &[u64], bits: i128) -> Result<Vec<i128>, HostError> {
    if bounds.contains(&0) {
        return Ok(vec![0; bounds.len()]);
    }
    let mut stride_bits = bits;
    let mut strides = Vec::with_capacity(bounds.len());
    for (dimension, &bound) in bounds.iter().enumerate().rev() {
        strides.push(stride_bits);
        stride_bits = stride_bits
            .checked_mul(bound.into())
            .filter(|&stride| stride < MOST_BITS)
            .ok_or(HostError::TooLarge { dimension, bound, stride_bits })?;
    }
    strides.reverse();
    Ok(strides)
}

/// Bits of a host buffer are counted up to here.
const MOST_BITS: i128 = 1 << 63;

/// Where the elements of a host array are, in bits.
#[derive(Clone, Debug)]
pub(crate) struct HostPlace {
    pub(crate) element_bits: u32,
    pub(crate) most_first: bool,
    /// Where the first element is.
    pub(crate) start: u64,
    /// By dimension, major to minor, modulo 2^64.
    pub(crate) strides: Vec<u64>,
    /// So many bytes the buffer has, or more where the array is not the whole of it.
    pub(crate) bytes: u64,
    pub(crate) is_whole: bool,
}

impl HostPlace {
    fn new(
        start: i128,
        strides: &[i128],
        bounds: &[u64],
        element_bits: u32,
    ) -> Result<Self, HostError> {
        let is_empty = bounds.contains(&0);
        let bits = i128::from(element_bits);
        if start + bits >= MOST_BITS {
            return Err(HostError::StartTooFar { bytes: start / 8 });
        }
        let (mut first, mut end) = (start, start + bits);
        let mut moves = Vec::with_capacity(strides.len());
        for (dimension, (&stride_bits, &bound)) in strides.iter().zip(bounds).enumerate() {
            // Of a bound of 1 or 0, a stride of any size moves nothing.
            if bound <= 1 || is_empty {
                moves.push(0);
                continue;
            }
            let too_large = HostError::TooLarge { dimension, bound, stride_bits };
            let reach = i128::from(bound - 1)
                .checked_mul(stride_bits)
                .filter(|reach| (1 - MOST_BITS..MOST_BITS).contains(reach))
                .ok_or(too_large)?;
            // So far from overflowing, with up to 64 dimensions.
            let way = if reach < 0 { &mut first } else { &mut end };
            *way += reach;
            if end >= MOST_BITS {
                return Err(too_large);
            }
            let stride = i64::try_from(stride_bits).map_err(|_| too_large)?;
            moves.push(stride.cast_unsigned());
        }
        if first < 0 {
            // In bytes, which is what the strides were given in.
            return Err(HostError::BeforeBuffer { bytes: first.div_euclid(8) });
        }
        if is_empty {
            end = 0;
        }
        // Neither is negative, and both are below MOST_BITS.
        let unsigned = |n: i128| u64::try_from(n).unwrap_or(u64::MAX);
        Ok(HostPlace {
            element_bits,
            most_first: false,
            start: unsigned(start),
            strides: moves,
            bytes: unsigned(end).div_ceil(8),
            is_whole: false,
        })
    }

    /// Checks that no two elements share a place, which those of a destination may not.
    ///
    /// The strides count as those of nested loops, which strides of real arrays are:
    /// each is beyond all that the smaller ones reach together.
    pub(crate) fn check_apart(&self, bounds: &[u64]) -> Result<(), HostError> {
        if bounds.contains(&0) {
            return Ok(());
        }
        let magnitude = |d: usize| self.strides[d].cast_signed().unsigned_abs();
        let mut dimensions: Vec<usize> = (0..bounds.len()).filter(|&d| bounds[d] > 1).collect();
        dimensions.sort_by_key(|&d| magnitude(d));
        let mut span = u64::from(self.element_bits);
        for dimension in dimensions {
            if magnitude(dimension) < span {
                return Err(HostError::Overlap { dimension });
            }
            // Within the buffer, as all sums of these are.
            span =
                span.saturating_add((bounds[dimension] - 1).saturating_mul(magnitude(dimension)));
        }
        Ok(())
    }
}
