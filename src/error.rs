//! The errors of this crate.
//!
//! Each is a small enum whose variants carry the offending values, so that a
//! caller can match on what went wrong instead of reading a message. [`Error`]
//! is the union of them, for those who only pass errors on. The error of
//! reading text stands beside the parser, as [`ParseError`].

use std::fmt;
use std::ops::Range;

use relayout_kernels::{ElementType, UnknownElementType};

use crate::shape::{Bound, MAX_DEPTH, MAX_RANK, MAX_TILES, ParseError};

/// Anything that this crate refuses to do, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A text is not a shape or a layout.
    Parse(ParseError),
    /// A text is not an element type.
    ElementType(UnknownElementType),
    /// A shape or a layout means nothing, or is too large.
    Shape(ShapeError),
    /// An index lies outside its array or image.
    Index(IndexError),
    /// Two shapes do not describe the same array.
    Mismatch(MismatchError),
    /// A host array or a window is not one.
    Host(HostError),
    /// A range of a destination is no chunk.
    Chunk(ChunkError),
    /// A buffer is not as long as it must be.
    Buffer(BufferError),
}

/// Why a shape or a layout means nothing.
///
/// Numbers of dimensions, tiles and entries count from 0, in the order in
/// which the text gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShapeError {
    /// More dimensions than [`MAX_RANK`].
    TooManyDimensions {
        /// How many there are.
        count: usize,
    },
    /// More entries in a tile than [`MAX_RANK`].
    TooManyTileEntries {
        /// How many there are.
        count: usize,
    },
    /// More tiles than [`MAX_TILES`].
    TooManyTiles {
        /// How many there are.
        count: usize,
    },
    /// The bound of a dimension is 2⁶³ or more.
    BoundTooLarge {
        /// The dimension.
        dimension: usize,
        /// Its bound, in elements.
        bound: u64,
    },
    /// The bounds multiply to 2⁶³ elements or more.
    TooManyElements,
    /// `tile` takes the image, or a combined dimension, to 2⁶³ elements or more,
    /// or a bound d so near to that that XLA cannot round it up to the tile entry
    /// t: d + t - 1 is 2⁶³ or more.
    ImageTooLarge {
        /// The tile that takes the image over the limit.
        tile: usize,
    },
    /// The image has 2⁶⁴ bits or more, so that bit offsets could not be told.
    ImageBitsTooMany {
        /// Elements of the image, padding included.
        image_elements: u64,
        /// The width of each in bits.
        element_bits: u32,
    },
    /// XLA's `ArraySize` of the shape has 2⁶⁴ bits or more.
    ArraySizeTooLarge,
    /// Tuples and physical shapes are nested deeper than [`MAX_DEPTH`].
    TooDeep,
    /// The bound of a dimension is `?`, so the array has no image yet.
    Unbounded {
        /// The dimension.
        dimension: usize,
    },
    /// `minor_to_major` does not have one entry for each dimension.
    MinorToMajorCount {
        /// Its entries.
        entries: usize,
        /// The dimensions of the shape.
        rank: usize,
    },
    /// An entry of `minor_to_major` names a dimension that is not there.
    NoSuchDimension {
        /// Where in `minor_to_major` it stands.
        entry: usize,
        /// The dimension it names.
        dimension: usize,
        /// How many dimensions there are.
        rank: usize,
    },
    /// A dimension stands twice in `minor_to_major`.
    RepeatedDimension {
        /// Where in `minor_to_major` it stands for the second time.
        entry: usize,
        /// The dimension.
        dimension: usize,
    },
    /// A tile has no entries.
    EmptyTile,
    /// A tile entry is 0.
    ZeroTileBound {
        /// Where in the tile it stands.
        entry: usize,
    },
    /// A tile entry is 2⁶³ or more.
    TileBoundTooLarge {
        /// Where in the tile it stands.
        entry: usize,
        /// The entry, in elements.
        bound: u64,
    },
    /// The last entry of a tile is `*`: there is no dimension to combine with.
    TileEndsInCombine,
    /// The tail padding alignment, `L(n)`, is 0, or 2⁶³ or more.
    TailAlignment {
        /// The alignment, in elements.
        elements: u64,
    },
    /// The metadata prefix, `M(n)`, is 2⁶³ or more.
    MetadataPrefix {
        /// The prefix, in bytes.
        bytes: u64,
    },
    /// The element bits, `E(n)`, are the width of no element type.
    ElementWidth {
        /// The bits that the layout gives to an element.
        bits: u64,
    },
    /// The element bits, `E(n)`, do not suit the element type.
    ElementBits {
        /// The bits that the layout gives to an element.
        bits: u32,
        /// The type of the elements.
        element_type: ElementType,
    },
    /// The memory space, `S(n)`, is not in 0..=127.
    MemorySpace {
        /// The memory space.
        space: u64,
    },
    /// The type of an index or a pointer, `#(t)` or `*(t)`, is no integer.
    IndexType {
        /// The type.
        element_type: ElementType,
    },
    /// A split config, `SC(dim:…)`, names a dimension that is not there.
    SplitDimension {
        /// Where among the split configs it stands.
        split: usize,
        /// The dimension it names.
        dimension: usize,
        /// How many dimensions there are.
        rank: usize,
    },
    /// A split config splits its dimension nowhere.
    EmptySplit {
        /// The dimension.
        dimension: usize,
    },
    /// A split config splits its dimension at an index that is 2⁶³ or more.
    SplitIndexTooLarge {
        /// The dimension.
        dimension: usize,
        /// The index.
        index: u64,
    },
    /// Which layout a TPU gives to arrays of a type is not known.
    NoTpuLayout {
        /// The type of the elements.
        element_type: ElementType,
    },
}

/// Why an index has no place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexError {
    /// The index does not have one entry for each dimension.
    Rank {
        /// Entries of the index.
        entries: usize,
        /// Dimensions of the array.
        rank: usize,
    },
    /// An entry of the index is not below its bound.
    OutOfBounds {
        /// The dimension.
        dimension: usize,
        /// The entry.
        index: u64,
        /// The bound of that dimension, in elements.
        bound: u64,
    },
    /// An image element is not below the number of image elements.
    OutsideImage {
        /// The image element asked for.
        image_element: u64,
        /// Elements of the image, padding included.
        image_elements: u64,
    },
    /// A number is not below the number of array elements.
    OutsideArray {
        /// The number asked for.
        linear_index: u64,
        /// Elements of the array.
        elements: u64,
    },
    /// A tile has more entries than the array has dimensions.
    TileTooLong {
        /// Entries of the tile.
        entries: usize,
        /// Dimensions of the array.
        rank: usize,
    },
    /// A tile entry is 0.
    ZeroTileBound {
        /// Where in the tile it stands.
        entry: usize,
    },
    /// The position does not fit in 64 bits.
    Overflow,
}

/// Why a host array cannot lie as it is said to, or a window not be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostError {
    /// A list does not have one entry for each dimension that it is about.
    Entries {
        /// Entries of the list.
        entries: usize,
        /// Dimensions that it is about.
        rank: usize,
    },
    /// A window reaches beyond its array.
    WindowOutOfBounds {
        /// The dimension.
        dimension: usize,
        /// Where the window starts.
        start: u64,
        /// How many elements it has.
        size: u64,
        /// How many the array has.
        bound: u64,
    },
    /// Elements of a destination share memory, or might: the stride of a dimension
    /// is within what the dimensions of smaller strides reach.
    Overlap {
        /// The dimension.
        dimension: usize,
    },
    /// Negative strides lead to before the buffer.
    BeforeBuffer {
        /// Where the lowest element would begin, in bytes.
        bytes: i128,
    },
    /// Elements of the type fill whole bytes.
    NotPackable {
        /// The type of the elements.
        element_type: ElementType,
    },
    /// There is no conversion between the types of the host array and the image.
    NoConversion {
        /// The type of what is read.
        from: ElementType,
        /// The type of what is written.
        to: ElementType,
    },
    /// A view has another bound than the array.
    Bound {
        /// The dimension.
        dimension: usize,
        /// The bound of the view.
        view: u64,
        /// The bound of the array, or of its window.
        bound: u64,
    },
    /// The first element is 2⁶³ bits from the start of the buffer or further.
    StartTooFar {
        /// Where it is, in bytes.
        bytes: i128,
    },
    /// The elements of a dimension reach 2⁶³ bits or further.
    TooLarge {
        /// The dimension.
        dimension: usize,
        /// How many elements it has: of a window, how many the whole array has.
        bound: u64,
        /// What lies between the starts of two of them, in bits.
        stride_bits: i128,
    },
}

/// In what two shapes differ that should describe the same array.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MismatchError {
    /// The element types differ.
    ElementTypes {
        /// That of the source.
        source: ElementType,
        /// That of the destination.
        destination: ElementType,
    },
    /// What is read, or written, is no host array of a Rust type.
    HostElement {
        /// The Rust type.
        host: &'static str,
        /// The type of the elements of the host array. `None` where there is none, or it
        /// has several elements in a byte.
        element_type: Option<ElementType>,
    },
    /// The bounds differ.
    Bounds {
        /// Those of the source.
        source: Vec<Bound>,
        /// Those of the destination.
        destination: Vec<Bound>,
    },
}

/// Why a range of a destination cannot be filled alone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChunkError {
    /// It is empty, or reaches beyond the destination.
    NoSuchRange {
        /// The range, in bytes.
        range: Range<u64>,
        /// Bytes of the destination.
        destination_bytes: u64,
    },
    /// An element lies across one of its ends.
    AcrossElement {
        /// The range, in bytes.
        range: Range<u64>,
        /// The destination can be cut at this byte …
        offset_bytes: u64,
        /// … and every so many from there on.
        grain_bytes: u64,
    },
}

/// A buffer whose length is not what is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BufferError {
    /// Which of the two buffers.
    pub side: Side,
    /// The length it should have, in bytes.
    pub needed_bytes: u64,
    /// The length it has, in bytes.
    pub given_bytes: u64,
}

/// Which of the two buffers of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The buffer that is read.
    Source,
    /// The buffer that is written.
    Destination,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Parse(e) => e.fmt(f),
            Error::ElementType(e) => e.fmt(f),
            Error::Shape(e) => e.fmt(f),
            Error::Index(e) => e.fmt(f),
            Error::Mismatch(e) => e.fmt(f),
            Error::Host(e) => e.fmt(f),
            Error::Chunk(e) => e.fmt(f),
            Error::Buffer(e) => e.fmt(f),
        }
    }
}

/// The kinds print all there is to say, so none of them has a source.
impl std::error::Error for Error {}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ShapeError::TooManyDimensions { count } => {
                write!(f, "{count} dimensions, of which there can be {MAX_RANK}")
            }
            ShapeError::TooManyTileEntries { count } => {
                write!(f, "{count} entries in a tile, of which there can be {MAX_RANK}")
            }
            ShapeError::TooManyTiles { count } => {
                write!(f, "{count} tiles, of which there can be {MAX_TILES}")
            }
            ShapeError::BoundTooLarge { dimension, bound } => write!(
                f,
                "dimension {dimension} has a bound of {bound} elements, which is not below 2^63"
            ),
            ShapeError::TooManyElements => {
                f.write_str("the bounds multiply to 2^63 elements or more")
            }
            ShapeError::ImageTooLarge { tile } => {
                write!(f, "tile {tile} takes the image to 2^63 elements or more, or too near to it")
            }
            ShapeError::ImageBitsTooMany { image_elements, element_bits } => write!(
                f,
                "an image of {image_elements} elements of {element_bits} bits has 2^64 bits or more"
            ),
            ShapeError::ArraySizeTooLarge => {
                f.write_str("XLA's ArraySize of this shape has 2^64 bits or more")
            }
            ShapeError::TooDeep => write!(f, "nested more than {MAX_DEPTH} deep"),
            ShapeError::Unbounded { dimension } => write!(
                f,
                "dimension {dimension} has no bound (`?`), so the array has no image; \
                 give it a bound"
            ),
            ShapeError::MinorToMajorCount { entries, rank } => write!(
                f,
                "minor_to_major has {entries} entries for {rank} dimensions; it needs each once"
            ),
            ShapeError::NoSuchDimension { entry, dimension, rank } => write!(
                f,
                "entry {entry} of minor_to_major is dimension {dimension}, \
                 but there are only {rank} dimensions, counted from 0"
            ),
            ShapeError::RepeatedDimension { entry, dimension } => write!(
                f,
                "entry {entry} of minor_to_major is dimension {dimension} again; \
                 each stands there once"
            ),
            ShapeError::EmptyTile => f.write_str("a tile without entries"),
            ShapeError::ZeroTileBound { entry } => {
                write!(f, "entry {entry} of the tile is 0; it must be positive or `*`")
            }
            ShapeError::TileBoundTooLarge { entry, bound } => {
                write!(f, "entry {entry} of the tile is {bound}, which is not below 2^63")
            }
            ShapeError::TileEndsInCombine => f.write_str(
                "the last entry of the tile is `*`, but there is no more minor dimension \
                 to combine with",
            ),
            ShapeError::TailAlignment { elements } => write!(
                f,
                "a tail padding alignment of {elements} elements; it must be positive and below 2^63"
            ),
            ShapeError::MetadataPrefix { bytes } => {
                write!(f, "a metadata prefix of {bytes} bytes, which is not below 2^63")
            }
            ShapeError::ElementWidth { bits } => {
                write!(f, "elements of {bits} bits; a width is a power of two from 1 to 128")
            }
            ShapeError::ElementBits { bits, element_type } => {
                let allowed: Vec<_> =
                    element_type.image_bits().map(|n| format!("E({n})")).collect();
                write!(f, "{bits} bits for an element of {element_type}")?;
                write!(f, "; its layout may say {}", allowed.join(" or "))
            }
            ShapeError::MemorySpace { space } => {
                write!(f, "memory space {space}, which is not in 0 to 127")
            }
            ShapeError::IndexType { element_type } => {
                write!(f, "indices or pointers of type {element_type}, which is no integer type")
            }
            ShapeError::SplitDimension { split, dimension, rank } => write!(
                f,
                "split config {split} splits dimension {dimension}, \
                 but there are only {rank} dimensions, counted from 0"
            ),
            ShapeError::EmptySplit { dimension } => {
                write!(f, "a split config splits dimension {dimension} nowhere")
            }
            ShapeError::NoTpuLayout { element_type } => write!(
                f,
                "which layout a TPU gives to arrays of {element_type} is not known; \
                 it is for pred and types of 2, 4, 8, 16 and 32 bits"
            ),
            ShapeError::SplitIndexTooLarge { dimension, index } => write!(
                f,
                "a split config splits dimension {dimension} at {index}, which is not below 2^63"
            ),
        }
    }
}

impl std::error::Error for ShapeError {}

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            IndexError::Rank { entries, rank } => {
                write!(f, "an index of {entries} entries into an array of {rank} dimensions")
            }
            IndexError::OutOfBounds { dimension, index, bound } => {
                write!(f, "index {index} in dimension {dimension}, whose bound is {bound}")
            }
            IndexError::OutsideImage { image_element, image_elements } => {
                write!(f, "image element {image_element} of an image of {image_elements} elements")
            }
            IndexError::OutsideArray { linear_index, elements } => {
                write!(f, "element {linear_index} of an array of {elements} elements")
            }
            IndexError::TileTooLong { entries, rank } => {
                write!(f, "a tile of {entries} entries for an array of {rank} dimensions")
            }
            IndexError::ZeroTileBound { entry } => {
                write!(f, "entry {entry} of the tile is 0; it must be positive")
            }
            IndexError::Overflow => f.write_str("a position that does not fit in 64 bits"),
        }
    }
}

impl std::error::Error for IndexError {}

impl fmt::Display for MismatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MismatchError::ElementTypes { source, destination } => {
                write!(f, "the source has elements of {source}, the destination of {destination}")
            }
            MismatchError::HostElement { host, element_type: Some(element_type) } => {
                write!(f, "a host array of {host} for elements of {element_type}")
            }
            MismatchError::HostElement { host, element_type: None } => {
                write!(f, "a host array of {host} where there is none with an element each")
            }
            MismatchError::Bounds { source, destination } => {
                let list =
                    |b: &[Bound]| b.iter().map(Bound::to_string).collect::<Vec<_>>().join(",");
                write!(
                    f,
                    "the source has bounds [{}], the destination [{}]",
                    list(source),
                    list(destination)
                )
            }
        }
    }
}

impl std::error::Error for MismatchError {}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            HostError::Entries { entries, rank } => {
                write!(f, "a list of {entries} entries for {rank} dimensions of the host array")
            }
            HostError::WindowOutOfBounds { dimension, start, size, bound } => write!(
                f,
                "a window of {size} elements from {start} on in dimension {dimension}, \
                 whose bound is {bound}"
            ),
            HostError::Overlap { dimension } => write!(
                f,
                "the stride of dimension {dimension} lets elements of the destination share \
                 memory; it must reach beyond the dimensions of smaller strides"
            ),
            HostError::BeforeBuffer { bytes } => write!(
                f,
                "negative strides lead to byte {bytes}, before the buffer; \
                 the array must start further on"
            ),
            HostError::NotPackable { element_type } => {
                write!(f, "elements of {element_type} fill whole bytes and cannot be packed")
            }
            HostError::NoConversion { from, to } => {
                write!(f, "elements of {from} cannot be converted to {to}")
            }
            HostError::Bound { dimension, view, bound } => {
                write!(f, "dimension {dimension} of the view has {view} elements, not {bound}")
            }
            HostError::StartTooFar { bytes } => {
                write!(f, "the host array starts at byte {bytes}, which is 2^63 bits or further on")
            }
            HostError::TooLarge { dimension, bound, stride_bits } => write!(
                f,
                "dimension {dimension} of the host array has {bound} elements with a stride of \
                 {stride_bits} bits, which reach 2^63 bits or further"
            ),
        }
    }
}

impl std::error::Error for HostError {}

impl fmt::Display for ChunkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChunkError::NoSuchRange { range: Range { start, end }, destination_bytes } => {
                if start >= end {
                    write!(f, "the range {start}..{end} of the destination is empty")
                } else {
                    write!(
                        f,
                        "the range {start}..{end} of a destination of {destination_bytes} bytes"
                    )
                }
            }
            ChunkError::AcrossElement {
                range: Range { start, end },
                offset_bytes,
                grain_bytes,
            } => write!(
                f,
                "an element lies across an end of the range {start}..{end} of the destination, \
                 which can be cut at byte {offset_bytes} and every {grain_bytes} bytes from there on"
            ),
        }
    }
}

impl std::error::Error for ChunkError {}

impl BufferError {
    /// Checks that the buffer of a side has the bytes that it needs.
    pub(crate) fn check(side: Side, needed_bytes: u64, length: usize) -> Result<(), BufferError> {
        let given_bytes = u64::try_from(length).unwrap_or(u64::MAX);
        if given_bytes == needed_bytes {
            Ok(())
        } else {
            Err(BufferError { side, needed_bytes, given_bytes })
        }
    }
}

impl fmt::Display for BufferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            Side::Source => "source",
            Side::Destination => "destination",
        };
        write!(f, "the {side} has {} bytes, but {} are needed", self.given_bytes, self.needed_bytes)
    }
}

impl std::error::Error for BufferError {}

/// `From` for each kind of error, so that `?` gathers them.
macro_rules! error_from {
    ($($variant:ident($kind:ty)),*) => {
        $(impl From<$kind> for Error {
            fn from(e: $kind) -> Self {
                Error::$variant(e)
            }
        })*
    };
}

error_from!(
    Parse(ParseError),
    ElementType(UnknownElementType),
    Shape(ShapeError),
    Index(IndexError),
    Mismatch(MismatchError),
    Host(HostError),
    Chunk(ChunkError),
    Buffer(BufferError)
);
