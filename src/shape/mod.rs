//! Shapes: what an array is made of, and how it lies in memory.
//!
//! A [`Shape`] is an element type, the bounds of the dimensions and a
//! [`Layout`]; a layout is the physical order of the dimensions, the
//! [`Tile`]s, and a few attributes. What means nothing cannot be built: the
//! constructors check it, and the parser goes through them.
//!
//! - `layout.rs`: [`Layout`], [`Tile`] and their attributes;
//! - `tiling.rs`: what the tiles of a layout do to the bounds, level by level;
//! - `sizes.rs`: elements, bytes, padding;
//! - `text.rs` reads XLA's notation, `print.rs` writes it.

mod layout;
mod print;
mod sizes;
mod text;
mod tiling;

use std::fmt;

use relayout_kernels::ElementType;

pub use layout::{Layout, MAX_RANK, MAX_TILES, Split, Tile, TileEntry};
pub use sizes::{Sizes, Warning};
pub use text::{MAX_DEPTH, ParseError, ParseErrorKind};
pub(crate) use tiling::{Level, Tiling};

use crate::error::{MismatchError, ShapeError};

/// The bound of one dimension, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// Exactly this many.
    Static(u64),
    /// A dynamic dimension, `<=n`: at most this many. The array is laid out
    /// as if it had all of them.
    AtMost(u64),
    /// A dynamic dimension without a bound, `?`. Such an array has no image.
    Unbounded,
}

impl Bound {
    /// The number of elements that the layout reckons with, or `None` for `?`.
    #[must_use]
    pub const fn elements(self) -> Option<u64> {
        match self {
            Bound::Static(n) | Bound::AtMost(n) => Some(n),
            Bound::Unbounded => None,
        }
    }
}

impl From<u64> for Bound {
    fn from(elements: u64) -> Self {
        Bound::Static(elements)
    }
}

/// An array: its element type, the bounds of its dimensions, and its layout.
///
/// Dimensions are numbered from 0, the first one written being dimension 0.
///
/// ```
/// use relayout::{ElementType, Layout, Shape, Tile};
///
/// let shape: Shape = "bf16[1000,300]{1,0:T(8,128)(2,1)}".parse()?;
/// let layout = Layout::row_major(2)?.with_tiles([Tile::new([8, 128])?, Tile::new([2, 1])?])?;
/// assert_eq!(shape, Shape::new(ElementType::Bf16, [1000, 300], layout)?);
///
/// assert_eq!(shape.bounds()?, [1000, 300]);
/// assert_eq!(shape.sizes()?.image_bytes, 1000 * 384 * 2);
/// assert_eq!(shape.to_string(), "bf16[1000,300]{1,0:T(8,128)(2,1)}");
/// # Ok::<(), relayout::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    element_type: ElementType,
    dimensions: Vec<Bound>,
    layout: Layout,
}

impl Shape {
    /// An array of `dimensions` in `layout`.
    ///
    /// # Errors
    ///
    /// There are more than [`MAX_RANK`] dimensions; a bound, the array or its
    /// image has 2⁶³ elements or more; a tile combines dimensions into one of
    /// 2⁶³ elements or more, or rounds a bound up past that, even where another
    /// bound is 0; the layout orders another number of dimensions, or gives to
    /// an element a width that its type cannot have.
    pub fn new<B: Into<Bound>>(
        element_type: ElementType,
        dimensions: impl IntoIterator<Item = B>,
        layout: Layout,
    ) -> Result<Self, ShapeError> {
        let dimensions = dimensions.into_iter().map(Into::into).collect();
        let shape = Shape { element_type, dimensions, layout };
        shape.check()?;
        Ok(shape)
    }

    /// A dense row-major array: the usual form of arrays in host memory.
    ///
    /// # Errors
    ///
    /// As [`Shape::new`].
    ///
    /// ```
    /// use relayout::{ElementType, Shape};
    ///
    /// let shape = Shape::row_major(ElementType::F32, &[3, 5])?;
    /// assert_eq!(shape.to_string(), "f32[3,5]{1,0}");
    /// # Ok::<(), relayout::ShapeError>(())
    /// ```
    pub fn row_major(element_type: ElementType, bounds: &[u64]) -> Result<Self, ShapeError> {
        Shape::new(element_type, bounds.iter().copied(), Layout::row_major(bounds.len())?)
    }

    /// The same array in another layout.
    ///
    /// # Errors
    ///
    /// As [`Shape::new`].
    pub fn with_layout(&self, layout: Layout) -> Result<Self, ShapeError> {
        Shape::new(self.element_type, self.dimensions.iter().copied(), layout)
    }

    /// The type of the elements.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// The bounds as they are written, dynamic ones included.
    #[must_use]
    pub fn dimensions(&self) -> &[Bound] {
        &self.dimensions
    }

    /// The number of dimensions.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.dimensions.len()
    }

    /// The layout.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The bound of each dimension in elements; of a dynamic one, its greatest.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Unbounded`] where a dimension has no bound.
    pub fn bounds(&self) -> Result<Vec<u64>, ShapeError> {
        let bound = |(dimension, b): (usize, &Bound)| {
            b.elements().ok_or(ShapeError::Unbounded { dimension })
        };
        self.dimensions.iter().enumerate().map(bound).collect()
    }

    /// The bounds in physical order, major to minor, in elements.
    ///
    /// ```
    /// let shape: relayout::Shape = "f32[2,3,5]{0,2,1}".parse()?;
    /// assert_eq!(shape.physical_bounds()?, [3, 5, 2]);
    /// # Ok::<(), relayout::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ShapeError::Unbounded`] where a dimension has no bound.
    pub fn physical_bounds(&self) -> Result<Vec<u64>, ShapeError> {
        let bounds = self.bounds()?;
        Ok(self.layout.major_to_minor().map(|dimension| bounds[dimension]).collect())
    }

    /// The width of an element in the image, in bits.
    ///
    /// It is what the layout says with `E(n)`, or else the whole bytes that
    /// the element type takes: XLA keeps an `s4` in a byte unless told
    /// otherwise.
    ///
    /// ```
    /// use relayout::Shape;
    ///
    /// assert_eq!("s4[8]{0}".parse::<Shape>()?.element_bits(), 8);
    /// assert_eq!("s4[8]{0:E(4)}".parse::<Shape>()?.element_bits(), 4);
    /// # Ok::<(), relayout::Error>(())
    /// ```
    #[must_use]
    pub fn element_bits(&self) -> u32 {
        self.layout.element_bits().unwrap_or(8 * self.element_type.host_bytes())
    }

    /// The same array as host memory has it: dense and row-major, each element
    /// in whole bytes.
    ///
    /// ```
    /// let shape: relayout::Shape = "s4[8,<=3]{0,1:T(8,128)(8,1)E(4)}".parse()?;
    /// assert_eq!(shape.in_host_layout().to_string(), "s4[8,<=3]{1,0}");
    /// # Ok::<(), relayout::Error>(())
    /// ```
    #[must_use]
    pub fn in_host_layout(&self) -> Self {
        Shape { layout: self.layout.to_row_major(), ..self.clone() }
    }

    /// Checks that `self` and `destination` are one array, maybe in different
    /// layouts. A dynamic bound counts as its greatest.
    ///
    /// # Errors
    ///
    /// The element types differ, or the bounds do.
    pub fn check_same_array(&self, destination: &Shape) -> Result<(), MismatchError> {
        if self.element_type != destination.element_type {
            return Err(MismatchError::ElementTypes {
                source: self.element_type,
                destination: destination.element_type,
            });
        }
        let elements = |shape: &Shape| -> Vec<_> {
            shape.dimensions.iter().map(|bound| bound.elements()).collect()
        };
        if elements(self) != elements(destination) {
            return Err(MismatchError::Bounds {
                source: self.dimensions.clone(),
                destination: destination.dimensions.clone(),
            });
        }
        Ok(())
    }

    /// What the tiles do to the physical bounds.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Unbounded`]; the other errors of a tiling were ruled out
    /// when the shape was made.
    pub(crate) fn tiling(&self) -> Result<Tiling, ShapeError> {
        Tiling::new(self.physical_bounds()?, self.layout.tiles())
    }

    fn check(&self) -> Result<(), ShapeError> {
        let rank = self.rank();
        if rank > MAX_RANK {
            return Err(ShapeError::TooManyDimensions { count: rank });
        }
        let entries = self.layout.minor_to_major().len();
        if entries != rank {
            return Err(ShapeError::MinorToMajorCount { entries, rank });
        }
        for (dimension, bound) in self.dimensions.iter().enumerate() {
            if let Some(bound) = bound.elements().filter(|&n| n > tiling::MAX_ELEMENTS) {
                return Err(ShapeError::BoundTooLarge { dimension, bound });
            }
        }
        if let Some(bits) = self.layout.element_bits()
            && !self.element_type.image_bits().any(|n| n == bits)
        {
            return Err(ShapeError::ElementBits { bits, element_type: self.element_type });
        }
        // A dimension without a bound counts as if it were 1.
        let bounds: Vec<u64> = self
            .layout
            .major_to_minor()
            .map(|dimension| self.dimensions[dimension].elements().unwrap_or(1))
            .collect();
        Tiling::new(bounds, self.layout.tiles())?;
        Ok(())
    }
}

/// Whatever XLA writes where a shape stands: an array, a tuple, a token.
///
/// Only arrays have an image; the others are read and printed, so that the
/// shapes of a whole program can be.
///
/// ```
/// use relayout::AnyShape;
///
/// let text = "(f32[2,3]{1,0:T(8,128)}, token[], ())";
/// let AnyShape::Tuple(tuple) = text.parse()? else { panic!("a tuple") };
/// assert_eq!(tuple.parts().len(), 3);
/// assert_eq!(AnyShape::Tuple(tuple).to_string(), text);
/// # Ok::<(), relayout::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AnyShape {
    /// An array.
    Array(Shape),
    /// A tuple of shapes, `(…)`.
    Tuple(Tuple),
    /// `token[]`, which orders side effects.
    Token,
    /// `opaque[]`, which only the device knows.
    Opaque,
    /// A buffer that holds an array, `b(…)`.
    Buffer(Shape),
}

/// The shapes of a tuple, nested no deeper than [`MAX_DEPTH`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tuple {
    parts: Vec<AnyShape>,
    depth: usize,
}

impl Tuple {
    /// A tuple of these shapes.
    ///
    /// # Errors
    ///
    /// One of them is nested as deep as [`MAX_DEPTH`] already.
    pub fn new(parts: impl Into<Vec<AnyShape>>) -> Result<Self, ShapeError> {
        let parts = parts.into();
        let depth =
            parts.iter().try_fold(1, |depth, part| one_deeper(part).map(|d| d.max(depth)))?;
        Ok(Tuple { parts, depth })
    }

    /// The shapes, in their order.
    #[must_use]
    pub fn parts(&self) -> &[AnyShape] {
        &self.parts
    }
}

impl AnyShape {
    /// How deep tuples and physical shapes are nested in it: 0 for `f32[2]`, 1
    /// for `()`.
    fn depth(&self) -> usize {
        match self {
            AnyShape::Array(shape) | AnyShape::Buffer(shape) => shape.layout.depth(),
            AnyShape::Tuple(tuple) => tuple.depth,
            AnyShape::Token | AnyShape::Opaque => 0,
        }
    }
}

/// The depth of what is put around `shape`.
fn one_deeper(shape: &AnyShape) -> Result<usize, ShapeError> {
    match shape.depth() {
        MAX_DEPTH.. => Err(ShapeError::TooDeep),
        depth => Ok(depth + 1),
    }
}

impl From<Shape> for AnyShape {
    fn from(shape: Shape) -> Self {
        AnyShape::Array(shape)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Static(n) => write!(f, "{n}"),
            Bound::AtMost(n) => write!(f, "<={n}"),
            Bound::Unbounded => f.write_str("?"),
        }
    }
}
