//! Conversion element by element through [`index`](crate::index): slow, small,
//! and what everything fast is held against.
//!
//! Element k of an image takes the bits from k·w up to (k+1)·w, w being
//! [`Shape::element_bits`], least significant bit of the first byte first.
//! Host memory is the image of the same array in its [host
//! layout](Shape::in_host_layout): dense, row-major, each element in whole
//! bytes, little-endian.
//!
//! The bits of an element are moved as they are. Where they become fewer, the
//! low ones are kept (of `pred`, whether any was set); where they become more,
//! the new ones are 0. Padding is 0.

use relayout_kernels::ElementType;

use crate::error::{BufferError, Error, Side};
use crate::index::ImageMap;
use crate::shape::Shape;

/// Writes the image of a dense row-major host array.
///
/// `host` has [`host_bytes`](crate::Sizes::host_bytes), `image` has
/// [`image_bytes`](crate::Sizes::image_bytes). Every byte of the image is
/// written.
///
/// # Errors
///
/// A buffer has another length, or the shape has no image. The destination is
/// then untouched.
///
/// ```
/// use relayout::{Shape, oracle};
///
/// // Two 4-bit elements to a byte, the rows of a column together.
/// let shape: Shape = "u4[2,3]{1,0:T(2,4)(2,1)E(4)}".parse()?;
/// let mut image = [0xee; 4];
/// oracle::pack(&shape, &[1, 2, 3, 4, 5, 6], &mut image)?;
/// assert_eq!(image, [0x41, 0x52, 0x63, 0x00]);
/// # Ok::<(), relayout::Error>(())
/// ```
pub fn pack(shape: &Shape, host: &[u8], image: &mut [u8]) -> Result<(), Error> {
    between(&shape.in_host_layout(), shape, host, image)
}

/// Writes the dense row-major host array whose image is given: the inverse of
/// [`pack`].
///
/// # Errors
///
/// As [`pack`].
pub fn unpack(shape: &Shape, image: &[u8], host: &mut [u8]) -> Result<(), Error> {
    between(shape, &shape.in_host_layout(), image, host)
}

/// Writes the image in layout `to` of the array whose image in layout `from`
/// is given.
///
/// # Errors
///
/// As [`pack`], and the shapes differ in element type or bounds.
///
/// ```
/// use relayout::{Shape, oracle};
///
/// let from: Shape = "u8[2,3]{1,0}".parse()?;
/// let to: Shape = "u8[2,3]{0,1:T(2,2)}".parse()?;
/// let mut image = [0xee; 8];
/// oracle::between(&from, &to, &[0, 1, 2, 3, 4, 5], &mut image)?;
/// assert_eq!(image, [0, 3, 1, 4, 2, 5, 0, 0]);
/// # Ok::<(), relayout::Error>(())
/// ```
pub fn between(
    from: &Shape,
    to: &Shape,
    source: &[u8],
    destination: &mut [u8],
) -> Result<(), Error> {
    from.check_same_array(to)?;
    let (from_map, to_map) = (ImageMap::new(from)?, ImageMap::new(to)?);
    BufferError::check(Side::Source, from.sizes()?.image_bytes, source.len())?;
    BufferError::check(Side::Destination, to.sizes()?.image_bytes, destination.len())?;

    let to_truth = from.element_type() == ElementType::Pred && to.element_bits() == 1;
    destination.fill(0);
    let (mut index, mut source_index) = (Vec::new(), Vec::new());
    for image_element in 0..to_map.image_elements() {
        if !to_map.logical_index_into(image_element, &mut index)? {
            continue;
        }
        let offset = from_map.bit_offset_in(&index, &mut source_index)?;
        let mut value = read(source, offset, from.element_bits());
        if to_truth {
            value = u128::from(value != 0);
        }
        // The map saw that all bits of the image can be counted.
        let offset = image_element * u64::from(to.element_bits());
        write(destination, offset, to.element_bits(), value);
    }
    Ok(())
}

/// The pieces of an element of `bits` bits at `offset`: the byte and the shift
/// in it of each. An element is whole bytes or lies within one.
fn pieces(offset: u64, bits: u32) -> impl DoubleEndedIterator<Item = (usize, u64)> {
    (0..bits.div_ceil(8)).map(move |i| {
        let bit = offset + u64::from(i) * 8;
        // The buffer holds the byte, so its number fits.
        (usize::try_from(bit / 8).unwrap_or(usize::MAX), bit % 8)
    })
}

/// The element of `bits` bits whose first bit is `offset`.
fn read(buffer: &[u8], offset: u64, bits: u32) -> u128 {
    let value = pieces(offset, bits)
        .rev()
        .fold(0_u128, |value, (byte, shift)| value << 8 | u128::from(buffer[byte] >> shift));
    value & (u128::MAX >> (128 - bits))
}

/// Puts an element where all bits are 0.
fn write(buffer: &mut [u8], offset: u64, bits: u32, value: u128) {
    let value = value & (u128::MAX >> (128 - bits));
    for ((byte, shift), piece) in pieces(offset, bits).zip(value.to_le_bytes()) {
        buffer[byte] |= piece << shift;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ShapeError;

    fn shape(text: &str) -> Shape {
        text.parse().unwrap()
    }

    #[test]
    fn one_bit_elements_are_truth_values() {
        let s = shape("pred[33,2]{1,0:T(32,128)(32,1)E(1)}");
        let host: Vec<u8> = (0..66).map(|i| if i % 3 == 0 { 0x80 + i } else { 0 }).collect();
        let mut image = vec![0xff; 1024];
        pack(&s, &host, &mut image).unwrap();
        let mut back = vec![0xff; 66];
        unpack(&s, &image, &mut back).unwrap();
        assert!(host.iter().zip(&back).all(|(h, b)| u8::from(*h != 0) == *b));
        // Words of 32 rows: column 0 in the first, column 1 in the second.
        let word = |i: usize| u32::from_le_bytes(image[4 * i..][..4].try_into().unwrap());
        let column = |c: usize| (0..32).fold(0, |w, r| w | u32::from(back[2 * r + c]) << r);
        assert_eq!((word(0), word(1), word(2)), (column(0), column(1), 0));
        assert_eq!(word(128), u32::from(back[64]));
    }

    #[test]
    fn narrowing_keeps_low_bits_and_widening_adds_zeros() {
        let (narrow, wide) = (shape("s4[3]{0:E(4)}"), shape("s4[3]{0}"));
        let mut image = [0xff; 2];
        between(&wide, &narrow, &[0xf7, 0x18, 0xff], &mut image).unwrap();
        assert_eq!(image, [0x87, 0x0f]);
        let mut back = [0xee; 3];
        between(&narrow, &wide, &image, &mut back).unwrap();
        assert_eq!(back, [0x07, 0x08, 0x0f]);
    }

    #[test]
    fn a_shape_needs_its_own_bytes_and_touches_nothing_otherwise() {
        let s = shape("c128[2]{0:T(4)}");
        for (host, image) in [(31, 64), (33, 64), (32, 63), (32, 65)] {
            let mut poisoned = vec![0xee; image];
            let error = pack(&s, &vec![1; host], &mut poisoned).unwrap_err();
            let Error::Buffer(e) = error else { panic!("{error}") };
            assert!(e.needed_bytes != e.given_bytes);
            assert!(poisoned.iter().all(|&b| b == 0xee));
        }
    }

    #[test]
    fn shapes_of_different_arrays_are_refused() {
        let mut image = [0; 6];
        for to in ["u8[3,2]{1,0}", "s8[2,3]{1,0}", "u8[6]{0}"] {
            let e = between(&shape("u8[2,3]{1,0}"), &shape(to), &[0; 6], &mut image);
            assert!(matches!(e, Err(Error::Mismatch(_))), "{to}");
        }
        // A dynamic bound counts as its greatest; one of no size has no image.
        between(&shape("u8[<=2,3]{1,0}"), &shape("u8[2,3]{0,1}"), &[7; 6], &mut image).unwrap();
        assert_eq!(image, [7; 6]);
        let e = between(&shape("u8[?,3]"), &shape("u8[?,3]"), &[0; 6], &mut image);
        assert_eq!(e, Err(Error::Shape(ShapeError::Unbounded { dimension: 0 })));
    }
}
