//! Writes shapes and layouts in XLA's notation, leaving out XLA's defaults.

use std::fmt::{self, Display, Formatter};

use super::{AnyShape, Layout, Shape, Split, Tile, TileEntry};

/// Writes `items` with `separator` between them.
fn join<T: Display>(
    f: &mut Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    separator: &str,
) -> fmt::Result {
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            f.write_str(separator)?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

impl Display for Shape {
    /// XLA's notation: `bf16[32,256]{1,0:T(8,128)(2,1)}`.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.element_type())?;
        join(f, self.dimensions(), ",")?;
        f.write_str("]")?;
        if self.rank() == 0 && !self.layout().has_attributes() {
            return Ok(());
        }
        self.layout().fmt(f)
    }
}

impl Display for AnyShape {
    /// XLA's notation: `(f32[2]{0}, token[])`.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            AnyShape::Array(shape) => shape.fmt(f),
            AnyShape::Tuple(tuple) => {
                f.write_str("(")?;
                join(f, tuple.parts(), ", ")?;
                f.write_str(")")
            }
            AnyShape::Token => f.write_str("token[]"),
            AnyShape::Opaque => f.write_str("opaque[]"),
            AnyShape::Buffer(shape) => write!(f, "b({shape})"),
        }
    }
}

impl Layout {
    /// Whether anything stands behind the colon.
    fn has_attributes(&self) -> bool {
        !self.tiles().is_empty()
            || self.tail_alignment_elements() != 1
            || self.index_type().is_some()
            || self.pointer_type().is_some()
            || self.element_bits().is_some()
            || self.memory_space() != 0
            || !self.splits().is_empty()
            || self.physical_shape().is_some()
            || self.metadata_prefix_bytes() != 0
    }
}

impl Display for Layout {
    /// XLA's notation: `{1,0:T(8,128)(2,1)S(1)}`.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        join(f, self.minor_to_major(), ",")?;
        if self.has_attributes() {
            f.write_str(":")?;
        }
        if !self.tiles().is_empty() {
            f.write_str("T")?;
            join(f, self.tiles(), "")?;
        }
        if self.tail_alignment_elements() != 1 {
            write!(f, "L({})", self.tail_alignment_elements())?;
        }
        if let Some(t) = self.index_type() {
            write!(f, "#({t})")?;
        }
        if let Some(t) = self.pointer_type() {
            write!(f, "*({t})")?;
        }
        if let Some(bits) = self.element_bits() {
            write!(f, "E({bits})")?;
        }
        if self.memory_space() != 0 {
            write!(f, "S({})", self.memory_space())?;
        }
        if !self.splits().is_empty() {
            f.write_str("SC")?;
            join(f, self.splits(), "")?;
        }
        if let Some(shape) = self.physical_shape() {
            write!(f, "P({shape})")?;
        }
        if self.metadata_prefix_bytes() != 0 {
            write!(f, "M({})", self.metadata_prefix_bytes())?;
        }
        f.write_str("}")
    }
}

impl Display for Tile {
    /// The entries in parentheses: `(8,128)`.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        join(f, self.entries(), ",")?;
        f.write_str(")")
    }
}

impl Display for TileEntry {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TileEntry::Bound(n) => write!(f, "{n}"),
            TileEntry::Combine => f.write_str("*"),
        }
    }
}

impl Display for Split {
    /// Dimension and indices in parentheses: `(0:4,8)`.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "({}:", self.dimension())?;
        join(f, self.indices(), ",")?;
        f.write_str(")")
    }
}
