//! The formats of TPU buffers that have names.

use relayout_kernels::ElementType;

use crate::error::ShapeError;
use crate::shape::{Layout, Shape, Tile};

/// An element type and the tiles in which a TPU keeps it.
///
/// ```
/// use relayout::tpu;
///
/// let shape = tpu::BF16_8X128.shape(&[1024, 4096])?;
/// assert_eq!(shape.to_string(), "bf16[1024,4096]{1,0:T(8,128)(2,1)}");
/// # Ok::<(), relayout::ShapeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    element_type: ElementType,
    element_bits: u32,
    tiles: &'static [&'static [u64]],
}

impl Format {
    /// The type of the elements.
    #[must_use]
    pub fn element_type(self) -> ElementType {
        self.element_type
    }

    /// The width of an element in the image, in bits.
    #[must_use]
    pub fn element_bits(self) -> u32 {
        self.element_bits
    }

    /// The bounds of each tile, first tile first, in elements.
    #[must_use]
    pub fn tiles(self) -> &'static [&'static [u64]] {
        self.tiles
    }

    /// The bytes of a tile.
    #[must_use]
    pub fn tile_bytes(self) -> u64 {
        let elements: u64 = self.tiles.first().map_or(1, |tile| tile.iter().product());
        elements * u64::from(self.element_bits) / 8
    }

    /// The layout of an array of `rank` dimensions, in row-major order.
    ///
    /// # Errors
    ///
    /// `rank` is more than [`MAX_RANK`](crate::MAX_RANK).
    pub fn layout(self, rank: usize) -> Result<Layout, ShapeError> {
        let tiles: Result<Vec<Tile>, ShapeError> =
            self.tiles.iter().map(|tile| Tile::new(tile.iter().copied())).collect();
        let layout = Layout::row_major(rank)?.with_tiles(tiles?)?;
        // A width that a type has anyway is not written.
        if self.element_bits == 8 * self.element_type.host_bytes() {
            return Ok(layout);
        }
        layout.with_element_bits(self.element_bits.into())
    }

    /// An array of these bounds, in elements, in row-major order.
    ///
    /// # Errors
    ///
    /// As [`Shape::new`].
    pub fn shape(self, bounds: &[u64]) -> Result<Shape, ShapeError> {
        Shape::new(self.element_type, bounds.iter().copied(), self.layout(bounds.len())?)
    }
}

/// 32-bit floats: `T(8,128)`.
///
/// A tile is 8 rows of 128 columns, one row after the other. A word is an
/// element.
///
/// ```text
/// tile, 4096 bytes                      word of row r, column c
/// row 0 │ w0   w1   w2   …  w127 │      31                             0
/// row 1 │ w128 w129 w130 …  w255 │     ┌────────────────────────────────┐
///   ⋮   │  ⋮                     │     │              r,c               │
/// row 7 │ w896 w897 w898 … w1023 │     └────────────────────────────────┘
/// ```
///
/// Packing copies runs of 512 bytes: kernel `copy`.
///
/// ```
/// let shape: relayout::Shape = "f32[1000,1000]{1,0:T(8,128)}".parse()?;
/// assert_eq!(relayout::tpu::F32_8X128.shape(&[1000, 1000])?, shape);
/// # Ok::<(), relayout::Error>(())
/// ```
pub const F32_8X128: Format =
    Format { element_type: ElementType::F32, element_bits: 32, tiles: &[&[8, 128]] };

/// 16-bit floats: `T(8,128)(2,1)`.
///
/// A tile is 8 rows of 128 columns as 4 rows of 128 words. A word holds the
/// elements of one column in two rows, the upper row in the low half.
///
/// ```text
/// tile, 2048 bytes                      word of rows 2k and 2k+1, column c
/// rows 0,1 │ w0   w1   …  w127 │        31             16 15              0
/// rows 2,3 │ w128 w129 …  w255 │       ┌─────────────────┬────────────────┐
/// rows 4,5 │ w256 w257 …  w383 │       │     2k+1,c      │      2k,c      │
/// rows 6,7 │ w384 w385 …  w511 │       └─────────────────┴────────────────┘
/// ```
///
/// Packing interleaves two rows: kernel `interleave2x16`; back
/// `deinterleave2x16`.
///
/// ```
/// let shape: relayout::Shape = "bf16[7,300]{1,0:T(8,128)(2,1)}".parse()?;
/// assert_eq!(relayout::tpu::BF16_8X128.shape(&[7, 300])?, shape);
/// # Ok::<(), relayout::Error>(())
/// ```
pub const BF16_8X128: Format =
    Format { element_type: ElementType::Bf16, element_bits: 16, tiles: &[&[8, 128], &[2, 1]] };

/// 8-bit integers in tiles of 8 rows: `T(8,128)(4,1)`.
///
/// A tile is 8 rows of 128 columns as 2 rows of 128 words. A word holds the
/// elements of one column in four rows, the uppermost row in the lowest byte.
///
/// ```text
/// tile, 1024 bytes                      word of rows 4k to 4k+3, column c
/// rows 0-3 │ w0   w1   …  w127 │        31    24 23    16 15     8 7      0
/// rows 4-7 │ w128 w129 …  w255 │       ┌────────┬────────┬────────┬───────┐
///                                      │ 4k+3,c │ 4k+2,c │ 4k+1,c │ 4k,c  │
///                                      └────────┴────────┴────────┴───────┘
/// ```
///
/// Packing interleaves four rows: kernel `interleave4x8`; back
/// `deinterleave4x8`.
///
/// ```
/// let shape: relayout::Shape = "s8[64,128]{1,0:T(8,128)(4,1)}".parse()?;
/// assert_eq!(relayout::tpu::S8_8X128.shape(&[64, 128])?, shape);
/// # Ok::<(), relayout::Error>(())
/// ```
pub const S8_8X128: Format =
    Format { element_type: ElementType::S8, element_bits: 8, tiles: &[&[8, 128], &[4, 1]] };

/// 8-bit integers in tiles of 32 rows: `T(32,128)(4,1)`.
///
/// As [`S8_8X128`], with 8 rows of words in a tile: a whole register.
///
/// ```text
/// tile, 4096 bytes                      word of rows 4k to 4k+3, column c
/// rows  0-3  │ w0   w1   …  w127  │     31    24 23    16 15     8 7      0
/// rows  4-7  │ w128 w129 …  w255  │    ┌────────┬────────┬────────┬───────┐
///     ⋮      │  ⋮                 │    │ 4k+3,c │ 4k+2,c │ 4k+1,c │ 4k,c  │
/// rows 28-31 │ w896 w897 …  w1023 │    └────────┴────────┴────────┴───────┘
/// ```
///
/// Packing interleaves four rows: kernel `interleave4x8`; back
/// `deinterleave4x8`.
///
/// ```
/// let shape: relayout::Shape = "s8[64,128]{1,0:T(32,128)(4,1)}".parse()?;
/// assert_eq!(relayout::tpu::S8_32X128.shape(&[64, 128])?, shape);
/// # Ok::<(), relayout::Error>(())
/// ```
pub const S8_32X128: Format =
    Format { element_type: ElementType::S8, element_bits: 8, tiles: &[&[32, 128], &[4, 1]] };

/// Truth values at one bit each: `T(32,128)(32,1)E(1)`.
///
/// A tile is 32 rows of 128 columns as one row of 128 words. A word holds one
/// column, the uppermost row in the lowest bit. In host memory each value is a
/// byte, and any byte but 0 is true.
///
/// ```text
/// tile, 512 bytes                       word of column c
/// rows 0-31 │ w0  w1  …  w127 │         31   30   29         2    1    0
///                                      ┌────┬────┬────┬ … ┬────┬────┬────┐
///                                      │31,c│30,c│29,c│   │ 2,c│ 1,c│ 0,c│
///                                      └────┴────┴────┴ … ┴────┴────┴────┘
/// ```
///
/// Packing squeezes eight rows of bytes into one, four times, and interleaves
/// the four: kernel `squeeze1-truth-interleave4x8`; back
/// `deinterleave4x8-unsqueeze1`.
///
/// ```
/// let shape: relayout::Shape = "pred[64,300]{1,0:T(32,128)(32,1)E(1)}".parse()?;
/// assert_eq!(relayout::tpu::PRED_32X128.shape(&[64, 300])?, shape);
/// # Ok::<(), relayout::Error>(())
/// ```
pub const PRED_32X128: Format =
    Format { element_type: ElementType::Pred, element_bits: 1, tiles: &[&[32, 128], &[32, 1]] };

/// All formats that have a name here.
pub const FORMATS: [Format; 5] = [F32_8X128, BF16_8X128, S8_8X128, S8_32X128, PRED_32X128];
