//! [`Layout`]: the physical order of the dimensions, the tiles, and the
//! attributes of XLA that go with them.

use relayout_kernels::ElementType;

use super::AnyShape;
use super::tiling::MAX_ELEMENTS;
use crate::error::ShapeError;

/// The most dimensions that an array may have, and entries that a tile may.
pub const MAX_RANK: usize = 64;

/// The most tiles that a layout may have.
pub const MAX_TILES: usize = 64;

/// How an array lies in memory.
///
/// `minor_to_major` lists the dimensions in physical order, fastest first.
/// Each tile acts on the minormost dimensions of what the tiles before it
/// produced. The other attributes are XLA's; those that relayout has no use
/// for are kept and printed again.
///
/// ```
/// use relayout::{Layout, Tile};
///
/// let layout = Layout::new([0, 1])?.with_tiles([Tile::new([8, 128])?])?;
/// assert_eq!(layout, "{0,1:T(8,128)}".parse()?);
/// # Ok::<(), relayout::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    minor_to_major: Vec<usize>,
    tiles: Vec<Tile>,
    tail_alignment_elements: u64,
    index_type: Option<ElementType>,
    pointer_type: Option<ElementType>,
    element_bits: Option<u32>,
    memory_space: u8,
    splits: Vec<Split>,
    physical_shape: Option<Box<AnyShape>>,
    metadata_prefix_bytes: u64,
    /// How deep `physical_shape` is nested; 0 without one.
    depth: usize,
}

/// One tile: a positive bound for each dimension it acts on, or `*`.
///
/// The entries go from major to minor, and the last one is a bound.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tile(Vec<TileEntry>);

/// One entry of a [`Tile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TileEntry {
    /// The dimension is split into pieces of this many elements.
    Bound(u64),
    /// `*`: the dimension is combined with the next more minor one before
    /// tiling.
    Combine,
}

/// A split config, `SC(dim:i,j)`: XLA keeps the parts of a dimension before,
/// between and after the indices in different memories.
///
/// XLA's code counts the dimension from the major end of the physical order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Split {
    dimension: usize,
    indices: Vec<u64>,
}

impl Layout {
    /// An untiled layout with the dimensions in this physical order, fastest
    /// first.
    ///
    /// # Errors
    ///
    /// `minor_to_major` is no permutation of 0, 1, … or is longer than
    /// [`MAX_RANK`].
    pub fn new(minor_to_major: impl Into<Vec<usize>>) -> Result<Self, ShapeError> {
        let minor_to_major = minor_to_major.into();
        let rank = minor_to_major.len();
        if rank > MAX_RANK {
            return Err(ShapeError::TooManyDimensions { count: rank });
        }
        for (entry, &dimension) in minor_to_major.iter().enumerate() {
            if dimension >= rank {
                return Err(ShapeError::NoSuchDimension { entry, dimension, rank });
            }
            if minor_to_major[..entry].contains(&dimension) {
                return Err(ShapeError::RepeatedDimension { entry, dimension });
            }
        }
        Ok(Layout::untiled(minor_to_major))
    }

    /// The untiled layout in which the last dimension is the fastest.
    ///
    /// # Errors
    ///
    /// `rank` is more than [`MAX_RANK`].
    pub fn row_major(rank: usize) -> Result<Self, ShapeError> {
        // Before a list of that length is made.
        if rank > MAX_RANK {
            return Err(ShapeError::TooManyDimensions { count: rank });
        }
        Layout::new((0..rank).rev().collect::<Vec<_>>())
    }

    /// The row-major layout without tiles and attributes for the same
    /// dimensions.
    pub(super) fn to_row_major(&self) -> Self {
        let mut minor_to_major = self.minor_to_major.clone();
        minor_to_major.sort_unstable_by(|a, b| b.cmp(a));
        Layout::untiled(minor_to_major)
    }

    /// The untiled layout of a permutation.
    fn untiled(minor_to_major: Vec<usize>) -> Self {
        Layout {
            minor_to_major,
            tiles: Vec::new(),
            tail_alignment_elements: 1,
            index_type: None,
            pointer_type: None,
            element_bits: None,
            memory_space: 0,
            splits: Vec::new(),
            physical_shape: None,
            metadata_prefix_bytes: 0,
            depth: 0,
        }
    }

    /// The same layout with these tiles, `T(…)(…)`.
    ///
    /// # Errors
    ///
    /// There are more than [`MAX_TILES`].
    pub fn with_tiles(mut self, tiles: impl Into<Vec<Tile>>) -> Result<Self, ShapeError> {
        self.tiles = tiles.into();
        match self.tiles.len() {
            0..=MAX_TILES => Ok(self),
            count => Err(ShapeError::TooManyTiles { count }),
        }
    }

    /// The same layout with this tail padding alignment, `L(n)`, in elements.
    /// 1 is the default.
    ///
    /// # Errors
    ///
    /// `elements` is 0, or 2⁶³ or more.
    pub fn with_tail_alignment_elements(mut self, elements: u64) -> Result<Self, ShapeError> {
        if elements == 0 || elements > MAX_ELEMENTS {
            return Err(ShapeError::TailAlignment { elements });
        }
        self.tail_alignment_elements = elements;
        Ok(self)
    }

    /// The same layout with this type for the indices of a sparse array, `#(t)`.
    ///
    /// # Errors
    ///
    /// `element_type` is no integer type.
    pub fn with_index_type(mut self, element_type: ElementType) -> Result<Self, ShapeError> {
        self.index_type = Some(integer(element_type)?);
        Ok(self)
    }

    /// The same layout with this type for the pointers of a sparse array, `*(t)`.
    ///
    /// # Errors
    ///
    /// `element_type` is no integer type.
    pub fn with_pointer_type(mut self, element_type: ElementType) -> Result<Self, ShapeError> {
        self.pointer_type = Some(integer(element_type)?);
        Ok(self)
    }

    /// The same layout with elements of this width, `E(n)`, in bits.
    ///
    /// # Errors
    ///
    /// No element type has elements of that width. Whether the shape's own type
    /// has is checked by [`Shape::new`](super::Shape::new).
    pub fn with_element_bits(mut self, bits: u64) -> Result<Self, ShapeError> {
        match u32::try_from(bits) {
            Ok(n) if n.is_power_of_two() && n <= 128 => self.element_bits = Some(n),
            _ => return Err(ShapeError::ElementWidth { bits }),
        }
        Ok(self)
    }

    /// The same layout in this memory space, `S(n)`. 0 is the default.
    ///
    /// # Errors
    ///
    /// `space` is more than 127.
    pub fn with_memory_space(mut self, space: u64) -> Result<Self, ShapeError> {
        match u8::try_from(space) {
            Ok(n) if n <= 127 => self.memory_space = n,
            _ => return Err(ShapeError::MemorySpace { space }),
        }
        Ok(self)
    }

    /// The same layout with these split configs, `SC(…)`.
    ///
    /// # Errors
    ///
    /// One of them splits a dimension that is not there.
    pub fn with_splits(mut self, splits: impl Into<Vec<Split>>) -> Result<Self, ShapeError> {
        self.splits = splits.into();
        let rank = self.minor_to_major.len();
        for (split, config) in self.splits.iter().enumerate() {
            let dimension = config.dimension;
            if dimension >= rank {
                return Err(ShapeError::SplitDimension { split, dimension, rank });
            }
        }
        Ok(self)
    }

    /// The same layout with this physical shape, `P(…)`.
    ///
    /// # Errors
    ///
    /// It is nested as deep as [`MAX_DEPTH`](super::MAX_DEPTH) already.
    pub fn with_physical_shape(mut self, shape: AnyShape) -> Result<Self, ShapeError> {
        self.depth = super::one_deeper(&shape)?;
        self.physical_shape = Some(Box::new(shape));
        Ok(self)
    }

    /// The same layout with a prefix of this many bytes for the metadata of
    /// dynamic shapes, `M(n)`. 0 is the default.
    ///
    /// # Errors
    ///
    /// `bytes` is 2⁶³ or more.
    pub fn with_metadata_prefix_bytes(mut self, bytes: u64) -> Result<Self, ShapeError> {
        if bytes > MAX_ELEMENTS {
            return Err(ShapeError::MetadataPrefix { bytes });
        }
        self.metadata_prefix_bytes = bytes;
        Ok(self)
    }

    /// The dimensions in physical order, fastest first.
    #[must_use]
    pub fn minor_to_major(&self) -> &[usize] {
        &self.minor_to_major
    }

    /// The dimensions in physical order, slowest first.
    pub fn major_to_minor(&self) -> impl ExactSizeIterator<Item = usize> {
        self.minor_to_major.iter().rev().copied()
    }

    /// The tiles, in the order in which they are applied.
    #[must_use]
    pub fn tiles(&self) -> &[Tile] {
        &self.tiles
    }

    /// The tail padding alignment in elements; 1 where the layout says nothing.
    #[must_use]
    pub fn tail_alignment_elements(&self) -> u64 {
        self.tail_alignment_elements
    }

    /// The type of the indices of a sparse array.
    #[must_use]
    pub fn index_type(&self) -> Option<ElementType> {
        self.index_type
    }

    /// The type of the pointers of a sparse array.
    #[must_use]
    pub fn pointer_type(&self) -> Option<ElementType> {
        self.pointer_type
    }

    /// The width of an element in bits, where the layout gives one.
    #[must_use]
    pub fn element_bits(&self) -> Option<u32> {
        self.element_bits
    }

    /// The memory space; 0 where the layout says nothing.
    #[must_use]
    pub fn memory_space(&self) -> u8 {
        self.memory_space
    }

    /// The split configs.
    #[must_use]
    pub fn splits(&self) -> &[Split] {
        &self.splits
    }

    /// The physical shape, where the layout gives one.
    #[must_use]
    pub fn physical_shape(&self) -> Option<&AnyShape> {
        self.physical_shape.as_deref()
    }

    /// The bytes of the prefix for the metadata of dynamic shapes.
    #[must_use]
    pub fn metadata_prefix_bytes(&self) -> u64 {
        self.metadata_prefix_bytes
    }

    /// How deep the physical shape is nested; 0 without one.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }
}

fn integer(element_type: ElementType) -> Result<ElementType, ShapeError> {
    if element_type.is_integer() {
        Ok(element_type)
    } else {
        Err(ShapeError::IndexType { element_type })
    }
}

impl Tile {
    /// A tile of these entries, major to minor.
    ///
    /// # Errors
    ///
    /// There are no entries or more than [`MAX_RANK`], a bound is 0 or 2⁶³ or
    /// more, or the last entry is [`TileEntry::Combine`].
    ///
    /// ```
    /// use relayout::{Tile, TileEntry};
    ///
    /// assert_eq!(Tile::new([8, 128])?.to_string(), "(8,128)");
    /// let tile = Tile::new([TileEntry::Combine, TileEntry::Bound(2)])?;
    /// assert_eq!(tile.to_string(), "(*,2)");
    /// # Ok::<(), relayout::ShapeError>(())
    /// ```
    pub fn new<E: Into<TileEntry>>(
        entries: impl IntoIterator<Item = E>,
    ) -> Result<Self, ShapeError> {
        let entries: Vec<TileEntry> = entries.into_iter().map(Into::into).collect();
        if entries.len() > MAX_RANK {
            return Err(ShapeError::TooManyTileEntries { count: entries.len() });
        }
        for (entry, e) in entries.iter().enumerate() {
            match *e {
                TileEntry::Bound(0) => return Err(ShapeError::ZeroTileBound { entry }),
                TileEntry::Bound(bound) if bound > MAX_ELEMENTS => {
                    return Err(ShapeError::TileBoundTooLarge { entry, bound });
                }
                _ => {}
            }
        }
        match entries.last() {
            None => Err(ShapeError::EmptyTile),
            Some(TileEntry::Combine) => Err(ShapeError::TileEndsInCombine),
            Some(TileEntry::Bound(_)) => Ok(Tile(entries)),
        }
    }

    /// The entries, major to minor: at least one.
    #[must_use]
    pub fn entries(&self) -> &[TileEntry] {
        &self.0
    }
}

impl From<u64> for TileEntry {
    fn from(bound: u64) -> Self {
        TileEntry::Bound(bound)
    }
}

impl Split {
    /// A split of `dimension` at `indices`, in elements, in the order given.
    ///
    /// # Errors
    ///
    /// There are no indices, or one is 2⁶³ or more.
    pub fn new(dimension: usize, indices: impl Into<Vec<u64>>) -> Result<Self, ShapeError> {
        let indices = indices.into();
        if indices.is_empty() {
            return Err(ShapeError::EmptySplit { dimension });
        }
        match indices.iter().find(|&&index| index > MAX_ELEMENTS) {
            None => Ok(Split { dimension, indices }),
            Some(&index) => Err(ShapeError::SplitIndexTooLarge { dimension, index }),
        }
    }

    /// The dimension that is split, counted from the major end of the physical
    /// order.
    #[must_use]
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Where it is split, in elements.
    #[must_use]
    pub fn indices(&self) -> &[u64] {
        &self.indices
    }

    /// The elements of the largest part of a dimension with this bound, as
    /// XLA's `LayoutUtil::MaxSplitSize` reckons it, which does not ask whether
    /// the indices ascend or lie within the bound.
    pub(super) fn largest_part(&self, bound: u64) -> u64 {
        let ends = self.indices.iter().copied().chain([bound]);
        let starts = [0].into_iter().chain(self.indices.iter().copied());
        ends.zip(starts).map(|(end, start)| end.saturating_sub(start)).max().unwrap_or(bound)
    }
}
