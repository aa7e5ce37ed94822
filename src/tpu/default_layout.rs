//! The layout that XLA gives to an array on a TPU.

use std::fmt;
use std::str::FromStr;

use relayout_kernels::ElementType;

use crate::error::ShapeError;
use crate::shape::{Layout, MAX_RANK, Shape, Tile};

/// A generation of TPUs.
///
/// ```
/// use relayout::tpu::Chip;
///
/// assert_eq!("v5e".parse(), Ok(Chip::V5e));
/// assert_eq!("tpu7x".parse(), Ok(Chip::V7x));
/// assert_eq!(Chip::V7x.to_string(), "7x");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Chip {
    /// TPU v4.
    V4,
    /// TPU v5e.
    V5e,
    /// TPU v5p.
    V5p,
    /// TPU v6e.
    V6e,
    /// TPU7x.
    V7x,
}

impl Chip {
    /// All of them.
    pub const ALL: [Chip; 5] = [Chip::V4, Chip::V5e, Chip::V5p, Chip::V6e, Chip::V7x];

    /// As Google's documentation calls it, without `TPU`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Chip::V4 => "v4",
            Chip::V5e => "v5e",
            Chip::V5p => "v5p",
            Chip::V6e => "v6e",
            Chip::V7x => "7x",
        }
    }
}

impl fmt::Display for Chip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that is no generation of TPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownChip {
    text: String,
}

impl UnknownChip {
    /// The text, or the start of a long one.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for UnknownChip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no TPU that is known here; these are v4, v5e, v5p, v6e, 7x", self.text)
    }
}

impl std::error::Error for UnknownChip {}

impl FromStr for Chip {
    type Err = UnknownChip;

    /// Reads a name, in capitals or not, also with `tpu` before it; and `v7x`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.to_ascii_lowercase();
        let name = lower.strip_prefix("tpu").unwrap_or(&lower).trim_start();
        Chip::ALL
            .into_iter()
            .find(|chip| chip.name() == name || (*chip == Chip::V7x && name == "v7x"))
            .ok_or_else(|| UnknownChip { text: relayout_kernels::excerpt::excerpt(text) })
    }
}

/// Columns of a tile.
const LANES: u64 = 128;
/// Rows of words in a register.
const SUBLANES: u64 = 8;

/// The layout that XLA gives to an argument of a program on a TPU.
///
/// `bounds` are those of the array, in elements.
///
/// # The rule
///
/// Found in what libtpu 0.0.51 did to 800 arrays on v4, v5e, v5p, v6e and 7x,
/// all of which it reproduces, bytes included; there was no difference between
/// the chips, so `chip` makes none today. An element has w bits, and p = 32 / w
/// elements share a word; `pred` has 8 bits. Narrower elements get `E(w)`.
///
/// - **No dimension**: `T(128·p)`.
/// - **One dimension** of n elements: the first tile is the least power of two
///   that is at least n and 128·p, but at most 1024 (or 128·p, if that is more).
///   Below 32 bits, `(128)(p,1)` follows.
/// - **Two or more**: the tile is `T(h,128)`, and below 32 bits `(p,1)` follows. Its
///   height depends on the bound s of the second most minor dimension: where
///   p is 4 or more and s a multiple of 8·p, h is 8·p. Otherwise it is the least power
///   of two that is at least s and p, but at most 8 (or p, if that is more).
/// - **Order**: two dimensions are chosen as the most minor ones, so that the array
///   takes least memory; the others stay in their order. Memory is counted as the
///   product of the bounds, the most minor one rounded up to 128 and the second
///   to h, or to 8 where h is more. Of several that take as little, the one
///   whose most minor dimension is the last one counts first, and then the one
///   whose second is.
///
/// Counting in 8 where h is 16 means that the layout of an array of 2-bit elements
/// is not always the smallest one.
///
/// Not in those 800 arrays, and so by the rule alone: arrays without elements,
/// arrays of 2-bit elements in one dimension or none, of 4-bit ones in none.
///
/// # Errors
///
/// The type has more than 32 bits, or one and is not `pred`: no rule is known. There
/// are too many dimensions, or the array is too large for its image to have
/// a size.
///
/// # Example
///
/// ```
/// use relayout::tpu::{self, Chip};
/// use relayout::ElementType;
///
/// // 3 columns would be padded to 128; 1000 are to 1024.
/// let layout = tpu::default_layout(Chip::V5e, ElementType::Bf16, &[1000, 3])?;
/// assert_eq!(layout.to_string(), "{0,1:T(4,128)(2,1)}");
/// # Ok::<(), relayout::ShapeError>(())
/// ```
pub fn default_layout(
    chip: Chip,
    element_type: ElementType,
    bounds: &[u64],
) -> Result<Layout, ShapeError> {
    let _ = chip;
    let words = Words::of(element_type)?;
    check_rank(bounds)?;
    // The first of the least.
    let pair = pairs(bounds.len()).min_by_key(|&pair| words.cost(bounds, pair));
    words.layout(element_type, bounds, pair)
}

/// All layouts among which [`default_layout`] chooses, the chosen one first: one
/// for each pair of most minor dimensions, by the memory that they are counted
/// to take.
///
/// # Errors
///
/// As [`default_layout`]; also where one of the others has an image that is too
/// large.
///
/// # Example
///
/// ```
/// use relayout::tpu::{self, Chip};
/// use relayout::ElementType;
///
/// let layouts = tpu::ranked_layouts(Chip::V5e, ElementType::F32, &[100, 30])?;
/// let texts: Vec<String> = layouts.iter().map(ToString::to_string).collect();
/// assert_eq!(texts, ["{0,1:T(8,128)}", "{1,0:T(8,128)}"]);
/// # Ok::<(), relayout::ShapeError>(())
/// ```
pub fn ranked_layouts(
    chip: Chip,
    element_type: ElementType,
    bounds: &[u64],
) -> Result<Vec<Layout>, ShapeError> {
    let _ = chip;
    let words = Words::of(element_type)?;
    check_rank(bounds)?;
    let mut pairs: Vec<_> = pairs(bounds.len()).collect();
    // Stable: what costs the same stays in order.
    pairs.sort_by_key(|&pair| words.cost(bounds, pair));
    if pairs.is_empty() {
        return Ok(vec![words.layout(element_type, bounds, None)?]);
    }
    pairs.into_iter().map(|pair| words.layout(element_type, bounds, Some(pair))).collect()
}

fn check_rank(bounds: &[u64]) -> Result<(), ShapeError> {
    let count = bounds.len();
    if count > MAX_RANK { Err(ShapeError::TooManyDimensions { count }) } else { Ok(()) }
}

/// The two most minor dimensions of an array, the most minor one first.
type Pair = (usize, usize);

/// Those that an array of a rank can have, the preferred ones first.
fn pairs(rank: usize) -> impl Iterator<Item = Pair> {
    let down = move || (0..rank).rev();
    down().flat_map(move |minor| {
        down().filter(move |&second| second != minor).map(move |second| (minor, second))
    })
}

/// How the elements of a type share words.
#[derive(Clone, Copy)]
struct Words {
    /// Bits of an element.
    bits: u32,
    /// Elements in a word.
    elements: u64,
}

impl Words {
    fn of(element_type: ElementType) -> Result<Words, ShapeError> {
        let bits = if element_type == ElementType::Pred { 8 } else { element_type.bits() };
        let elements = match bits {
            32 => 1,
            16 => 2,
            8 => 4,
            4 => 8,
            2 => 16,
            _ => return Err(ShapeError::NoTpuLayout { element_type }),
        };
        Ok(Words { bits, elements })
    }

    /// The height of a tile over rows that are so many.
    fn height(self, rows: u64) -> u64 {
        let register = SUBLANES * self.elements;
        if self.elements >= 4 && rows.is_multiple_of(register) {
            return register;
        }
        // At most 8, so that this is a number.
        rows.clamp(1, SUBLANES).next_power_of_two().max(self.elements)
    }

    /// The elements of an array with these most minor dimensions, as XLA counts
    /// them when it chooses.
    fn cost(self, bounds: &[u64], (minor, second): Pair) -> u128 {
        let mut cost: u128 = 1;
        for (dimension, &bound) in bounds.iter().enumerate() {
            let tile = match dimension {
                d if d == minor => LANES,
                d if d == second => self.height(bound).min(SUBLANES),
                _ => 1,
            };
            let padded = u128::from(bound).next_multiple_of(tile.into());
            // What is too large for 128 bits is refused when it gets a layout.
            cost = cost.saturating_mul(padded);
        }
        cost
    }

    fn layout(
        self,
        element_type: ElementType,
        bounds: &[u64],
        pair: Option<Pair>,
    ) -> Result<Layout, ShapeError> {
        let others = (0..bounds.len()).rev();
        let (order, tiles): (Vec<usize>, Vec<Vec<u64>>) = match (pair, bounds) {
            (Some((minor, second)), _) => {
                let others = others.filter(|&d| d != minor && d != second);
                let height = bounds.get(second).map_or(1, |&rows| self.height(rows));
                let order = [minor, second].into_iter().chain(others).collect();
                (order, vec![vec![height, LANES], vec![self.elements, 1]])
            }
            (None, &[count]) => {
                let word_row = LANES * self.elements;
                let most = (SUBLANES * LANES).max(word_row);
                // At most 2048, so that this is a number.
                let tile = count.clamp(word_row, most).next_power_of_two();
                (vec![0], vec![vec![tile], vec![LANES], vec![self.elements, 1]])
            }
            (None, _) => (Vec::new(), vec![vec![LANES * self.elements]]),
        };
        // A word of one element needs no further tiles.
        let tiles = tiles.into_iter().take(if self.elements == 1 { 1 } else { 3 });
        let tiles: Result<Vec<Tile>, ShapeError> = tiles.map(Tile::new).collect();
        let mut layout = Layout::new(order)?.with_tiles(tiles?)?;
        if self.bits < 8 {
            layout = layout.with_element_bits(self.bits.into())?;
        }
        Shape::new(element_type, bounds.iter().copied(), layout.clone())?.sizes()?;
        Ok(layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(element_type: ElementType, bounds: &[u64]) -> String {
        default_layout(Chip::V4, element_type, bounds).unwrap().to_string()
    }

    #[test]
    fn heights_go_by_the_rows() {
        let heights = |element_type, rows: &[u64]| -> Vec<u64> {
            let words = Words::of(element_type).unwrap();
            rows.iter().map(|&n| words.height(n)).collect()
        };
        let rows = [1, 2, 3, 4, 5, 8, 9, 16, 32, 33, 64];
        assert_eq!(heights(ElementType::F32, &rows), [1, 2, 4, 4, 8, 8, 8, 8, 8, 8, 8]);
        assert_eq!(heights(ElementType::Bf16, &rows), [2, 2, 4, 4, 8, 8, 8, 8, 8, 8, 8]);
        assert_eq!(heights(ElementType::S8, &rows), [4, 4, 4, 4, 8, 8, 8, 8, 32, 8, 32]);
        assert_eq!(heights(ElementType::S4, &rows), [8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 64]);
        assert_eq!(heights(ElementType::U2, &[1, 64, 128, 129]), [16, 16, 128, 16]);
    }

    #[test]
    fn one_dimension_has_one_row_of_tiles() {
        let f32 = ElementType::F32;
        let texts = [1, 128, 129, 512, 513, 1025].map(|n| layout(f32, &[n]));
        let tiles = ["128", "128", "256", "512", "1024", "1024"].map(|t| format!("{{0:T({t})}}"));
        assert_eq!(texts, tiles);
        assert_eq!(layout(ElementType::U2, &[1]), "{0:T(2048)(128)(16,1)E(2)}");
        assert_eq!(layout(ElementType::Pred, &[]), "{:T(512)}");
    }

    #[test]
    fn what_costs_the_same_stays_in_order() {
        // 8 x 128 either way; then any of six orders.
        assert_eq!(layout(ElementType::F32, &[8, 8]), "{1,0:T(8,128)}");
        assert_eq!(layout(ElementType::F32, &[8, 8, 8]), "{2,1,0:T(8,128)}");
        assert_eq!(layout(ElementType::F32, &[0, 300, 8]), "{2,1,0:T(8,128)}");
    }

    #[test]
    fn what_has_no_rule_is_refused() {
        let refused = |element_type, bounds: &[u64]| {
            let e = default_layout(Chip::V5p, element_type, bounds).unwrap_err();
            assert_eq!(ranked_layouts(Chip::V5p, element_type, bounds), Err(e));
            e.to_string()
        };
        assert!(refused(ElementType::F64, &[3]).contains("arrays of f64 is not known"));
        assert!(refused(ElementType::U1, &[3]).contains("u1"));
        assert!(refused(ElementType::F32, &[1; 65]).contains("65 dimensions"));
        assert!(refused(ElementType::F32, &[u64::MAX, 2]).contains("dimension 0"));
        // The array has a size, no tile of it has.
        let e = refused(ElementType::F32, &[1 << 62, 1]);
        assert!(e.contains("image"), "{e}");
        // The best one has a size, the others need not.
        let tall = [1 << 55, 1];
        assert_eq!(layout(ElementType::F32, &tall), "{0,1:T(1,128)}");
        assert!(ranked_layouts(Chip::V4, ElementType::F32, &tall).is_err());
        // Many dimensions are many choices, not too many.
        assert_eq!(ranked_layouts(Chip::V6e, ElementType::F32, &[1; 64]).unwrap().len(), 64 * 63);
    }

    #[test]
    fn chips_have_names() {
        for chip in Chip::ALL {
            for text in [format!("{chip}"), format!("TPU{chip}"), format!("tpu {chip}")] {
                assert_eq!(text.parse(), Ok(chip));
            }
        }
        assert_eq!("tpu7x".parse(), Ok(Chip::V7x));
        assert_eq!("v7x".parse(), Ok(Chip::V7x));
        for text in ["", "v", "tpu", "v5", "vv4", "5e"] {
            assert_eq!(text.parse::<Chip>().map_err(|e| e.text().to_owned()), Err(text.to_owned()));
        }
    }
}
