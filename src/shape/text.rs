//! Reads shapes and layouts in XLA's notation.
//!
//! ```text
//! any     = array | "(" [any {"," any}] ")" | "token" "[]" | "opaque" "[]" | "b" "(" array ")"
//! array   = type "[" [bound {"," bound}] "]" [layout]
//! bound   = number | "<=" number | "?"
//! layout  = "{" [number {"," number}] [":" attributes] "}"
//! attributes, each once at most, in this order, and at least one of them:
//!   "D" "(" level {"," level} ")"                        dropped, as XLA does
//!   ["T"] tile {tile}                                    tile = "(" entry {"," entry} ")"
//!   "L" "(" number ")"                                   entry = number | "*" | "∗" | "-1"
//!   "#" "(" type ")"
//!   "*" "(" type ")"
//!   "E" "(" number ")"
//!   "S" "(" number ")"
//!   "SC" split {split}                                   split = "(" number ":" numbers ")"
//!   "P" "(" any ")"
//!   "M" "(" number ")"
//! ```
//!
//! White space and comments (`/* … */`, `// …` to the end of the line) may
//! stand between any two tokens. Types may be written in capitals. The parser
//! goes once over the bytes; what it builds goes through the constructors of
//! [`Shape`], [`Layout`] and [`Tile`], and their errors are given the position
//! of the offending part.

use std::fmt;
use std::str::FromStr;

use super::tiling::MAX_ELEMENTS;
use super::{AnyShape, Bound, Layout, MAX_RANK, MAX_TILES, Shape, Split, Tile, TileEntry};
use crate::element::ElementType;
use crate::error::ShapeError;

/// How deep tuples and physical shapes may be nested in a text.
pub const MAX_DEPTH: usize = 64;

/// Why a text is not a shape or a layout, and where.
///
/// It prints as one line with the position, what stood there and what would be
/// right, then the text with a caret under that position:
///
/// ```
/// let e = "f32[3,5]{1,0:T(2,)}".parse::<relayout::Shape>().unwrap_err();
/// assert_eq!(e.at(), 17);
/// let lines = [
///     "at byte 17: expected a tile bound (a positive number, or `*`), found `)`",
///     "  f32[3,5]{1,0:T(2,)}",
///     "                   ^",
/// ];
/// assert_eq!(e.to_string(), lines.join("\n"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    at: usize,
    kind: ParseErrorKind,
    /// What stood there, shortened; `None` at the end of the text.
    found: Option<String>,
    /// The part of the text around the position, on one line.
    excerpt: String,
    /// Characters of the excerpt before the position.
    column: usize,
}

/// What is wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// Something else should stand here; the string says what, for a person.
    Expected(&'static str),
    /// The word is no element type.
    UnknownType,
    /// The number is 2⁶³ or more.
    NumberTooLarge,
    /// A number stands here that is below what it may be.
    Negative,
    /// A comment does not end.
    OpenComment,
    /// Nested deeper than [`MAX_DEPTH`].
    TooDeep,
    /// The text is a tuple, a token, an opaque value or a buffer, where an
    /// array was asked for. The string says which.
    NotAnArray(&'static str),
    /// The text reads well, but what it says means nothing.
    Meaningless(ShapeError),
}

impl ParseError {
    /// Where it is wrong, in bytes from the start of the text.
    #[must_use]
    pub fn at(&self) -> usize {
        self.0.at
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> ParseErrorKind {
        self.0.kind
    }

    /// What is wrong, in one line, without the position.
    #[must_use]
    pub fn message(&self) -> String {
        let found = match &self.0.found {
            Some(text) => format!("`{text}`"),
            None => "the end of the text".to_owned(),
        };
        match self.0.kind {
            ParseErrorKind::Expected(what) => format!("expected {what}, found {found}"),
            ParseErrorKind::UnknownType => {
                format!("{found} is {}", crate::element::UnknownElementType)
            }
            ParseErrorKind::NumberTooLarge => {
                format!("{found} is too large; a number must be below 2^63")
            }
            ParseErrorKind::Negative => format!("{found} is negative; it must not be"),
            ParseErrorKind::OpenComment => {
                "a comment starts here and does not end; close it with `*/`".to_owned()
            }
            ParseErrorKind::TooDeep => {
                format!("nested more than {MAX_DEPTH} deep")
            }
            ParseErrorKind::NotAnArray(kind) => {
                format!("this is {kind}; only an array, such as `f32[3,5]{{1,0}}`, has an image")
            }
            ParseErrorKind::Meaningless(e) => e.to_string(),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "at byte {}: {}", self.0.at, self.message())?;
        writeln!(f, "  {}", self.0.excerpt)?;
        write!(f, "  {:width$}^", "", width = self.0.column)
    }
}

impl std::error::Error for ParseError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.kind {
            ParseErrorKind::Meaningless(e) => Some(e),
            _ => None,
        }
    }
}

impl FromStr for Shape {
    type Err = ParseError;

    /// Reads one array in XLA's notation; without a layout it is row-major.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text.parse()? {
            AnyShape::Array(shape) => Ok(shape),
            other => {
                let mut parser = Parser::new(text);
                parser.skip_blank()?;
                Err(parser.error(ParseErrorKind::NotAnArray(other.kind())))
            }
        }
    }
}

impl FromStr for AnyShape {
    type Err = ParseError;

    /// Reads an array, a tuple, a token, an opaque value or a buffer.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut parser = Parser::new(text);
        let shape = parser.any_shape(0)?;
        parser.end()?;
        Ok(shape)
    }
}

impl FromStr for Layout {
    type Err = ParseError;

    /// Reads a layout alone: `{1,0:T(8,128)}`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut parser = Parser::new(text);
        parser.skip_blank()?;
        if parser.peek() != Some(b'{') {
            return Err(parser.expected("a layout, such as `{1,0:T(8,128)}`"));
        }
        let (layout, _) = parser.layout(0)?;
        parser.end()?;
        Ok(layout)
    }
}

/// Where the parts of a layout stand that only its shape can check.
struct LayoutPositions {
    start: usize,
    tiles: Vec<usize>,
    element_bits: usize,
    splits: Vec<usize>,
}

/// A position in the text, with or without blanks before the next token.
struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Parser { text, at: 0 }
    }

    // Errors.

    fn error(&self, kind: ParseErrorKind) -> ParseError {
        self.error_at(self.at, kind)
    }

    fn expected(&self, what: &'static str) -> ParseError {
        self.error(ParseErrorKind::Expected(what))
    }

    /// What the constructors refused, at the part of the text that said it.
    fn meaningless(&self, at: usize, e: ShapeError) -> ParseError {
        self.error_at(at, ParseErrorKind::Meaningless(e))
    }

    fn error_at(&self, at: usize, kind: ParseErrorKind) -> ParseError {
        let rest = &self.text[at..];
        let found = rest.chars().next().map(|first| {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let length = match first {
                '-' => 1 + rest[1..].find(|c: char| !is_word(c)).unwrap_or(rest.len() - 1),
                c if is_word(c) => rest.find(|c: char| !is_word(c)).unwrap_or(rest.len()),
                c => c.len_utf8(),
            };
            shorten(&rest[..length])
        });
        // Enough of the text to know the place again, on one line.
        let before = self.text[..at].char_indices().rev().take(48).last().map_or(at, |(i, _)| i);
        let after = rest.char_indices().nth(32).map_or(self.text.len(), |(i, _)| at + i);
        let one_line = |part: &str| -> String {
            part.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
        };
        let mut excerpt = one_line(&self.text[before..at]);
        if before > 0 {
            excerpt.insert_str(0, "… ");
        }
        let column = excerpt.chars().count();
        excerpt += &one_line(&self.text[at..after]);
        if after < self.text.len() {
            excerpt += " …";
        }
        ParseError(Box::new(Inner { at, kind, found, excerpt, column }))
    }

    // Tokens.

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blank(&mut self) -> Result<(), ParseError> {
        loop {
            let rest = &self.text[self.at..];
            if let Some(comment) = rest.strip_prefix("/*") {
                let length =
                    comment.find("*/").ok_or_else(|| self.error(ParseErrorKind::OpenComment))?;
                self.at += length + 4;
            } else if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else {
                let blank = rest.bytes().take_while(u8::is_ascii_whitespace).count();
                if blank == 0 {
                    return Ok(());
                }
                self.at += blank;
            }
        }
    }

    /// Takes `token` if it comes next.
    fn eat(&mut self, token: &str) -> Result<bool, ParseError> {
        self.skip_blank()?;
        let found = self.text[self.at..].starts_with(token);
        if found {
            self.at += token.len();
        }
        Ok(found)
    }

    fn expect(&mut self, token: &str, what: &'static str) -> Result<(), ParseError> {
        if self.eat(token)? { Ok(()) } else { Err(self.expected(what)) }
    }

    /// The word that comes next, which may be empty; it is not taken.
    fn peek_word(&mut self) -> Result<&'a str, ParseError> {
        self.skip_blank()?;
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        Ok(&rest[..end.unwrap_or(rest.len())])
    }

    /// Takes the word `word` if it comes next.
    fn eat_word(&mut self, word: &str) -> Result<bool, ParseError> {
        let found = self.peek_word()? == word;
        if found {
            self.at += word.len();
        }
        Ok(found)
    }

    fn end(&mut self) -> Result<(), ParseError> {
        self.skip_blank()?;
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end of the text")),
        }
    }

    /// A number from 0 to 2⁶³-1; `what` says what it would be.
    fn number(&mut self, what: &'static str) -> Result<u64, ParseError> {
        self.skip_blank()?;
        let rest = &self.text[self.at..];
        let digits = rest.strip_prefix('-').unwrap_or(rest);
        let length = digits.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return Err(self.expected(what));
        }
        let value = digits[..length].parse().ok().filter(|&n| n <= MAX_ELEMENTS);
        if digits.len() < rest.len() && value != Some(0) {
            return Err(self.error(ParseErrorKind::Negative));
        }
        let value = value.ok_or_else(|| self.error(ParseErrorKind::NumberTooLarge))?;
        self.at += rest.len() - digits.len() + length;
        Ok(value)
    }

    /// A number that counts dimensions; one too large for that names none.
    fn dimension(&mut self) -> Result<usize, ParseError> {
        let n = self.number("a dimension, counted from 0")?;
        Ok(usize::try_from(n).unwrap_or(usize::MAX))
    }

    /// `(`, a number, `)`.
    fn number_in_parentheses(&mut self, what: &'static str) -> Result<(usize, u64), ParseError> {
        self.expect("(", "`(` and a number")?;
        self.skip_blank()?;
        let at = self.at;
        let number = self.number(what)?;
        self.expect(")", "`)`")?;
        Ok((at, number))
    }

    fn element_type(&mut self) -> Result<ElementType, ParseError> {
        let word = self.peek_word()?;
        if word.is_empty() {
            return Err(self.expected("an element type, such as `f32`"));
        }
        let element_type = word.parse().map_err(|_| self.error(ParseErrorKind::UnknownType))?;
        self.at += word.len();
        Ok(element_type)
    }

    /// `(`, an integer type, `)`, which `set` puts into the layout.
    fn index_type(
        &mut self,
        layout: Layout,
        set: fn(Layout, ElementType) -> Result<Layout, ShapeError>,
    ) -> Result<Layout, ParseError> {
        self.expect("(", "`(` and an integer type")?;
        self.skip_blank()?;
        let at = self.at;
        let element_type = self.element_type()?;
        self.expect(")", "`)`")?;
        set(layout, element_type).map_err(|e| self.meaningless(at, e))
    }

    // Shapes.

    fn any_shape(&mut self, depth: usize) -> Result<AnyShape, ParseError> {
        self.skip_blank()?;
        if depth > MAX_DEPTH {
            return Err(self.error(ParseErrorKind::TooDeep));
        }
        if self.eat("(")? {
            return Ok(AnyShape::Tuple(self.tuple(depth)?));
        }
        if self.eat_word("token")? {
            self.no_dimensions()?;
            return Ok(AnyShape::Token);
        }
        if self.eat_word("opaque")? {
            self.no_dimensions()?;
            return Ok(AnyShape::Opaque);
        }
        if self.eat_word("b")? {
            self.expect("(", "`(` and the array that the buffer holds")?;
            let shape = self.array(depth)?;
            self.expect(")", "`)`")?;
            return Ok(AnyShape::Buffer(shape));
        }
        Ok(AnyShape::Array(self.array(depth)?))
    }

    /// What follows the `(` of a tuple.
    fn tuple(&mut self, depth: usize) -> Result<Vec<AnyShape>, ParseError> {
        let mut parts = Vec::new();
        if self.eat(")")? {
            return Ok(parts);
        }
        loop {
            parts.push(self.any_shape(depth + 1)?);
            if self.eat(")")? {
                return Ok(parts);
            }
            self.expect(",", "`,` or `)`")?;
        }
    }

    fn no_dimensions(&mut self) -> Result<(), ParseError> {
        self.expect("[", "`[]`")?;
        self.expect("]", "`]`: this type has no dimensions")
    }

    fn array(&mut self, depth: usize) -> Result<Shape, ParseError> {
        let element_type = self.element_type()?;
        self.skip_blank()?;
        let bounds_at = self.at;
        self.expect("[", "`[` and the bounds of the dimensions")?;
        let mut dimensions = Vec::new();
        if !self.eat("]")? {
            loop {
                if dimensions.len() == MAX_RANK {
                    let count = MAX_RANK + 1;
                    return Err(self.meaningless(self.at, ShapeError::TooManyDimensions { count }));
                }
                dimensions.push(self.bound()?);
                if self.eat("]")? {
                    break;
                }
                self.expect(",", "`,` or `]`")?;
            }
        }

        self.skip_blank()?;
        let (layout, at) = if self.peek() == Some(b'{') {
            self.layout(depth)?
        } else {
            let layout =
                Layout::row_major(dimensions.len()).map_err(|e| self.meaningless(bounds_at, e))?;
            let at = LayoutPositions {
                start: bounds_at,
                tiles: Vec::new(),
                element_bits: bounds_at,
                splits: Vec::new(),
            };
            (layout, at)
        };
        Shape::new(element_type, dimensions, layout).map_err(|e| {
            let at = match e {
                ShapeError::TooManyElements => bounds_at,
                ShapeError::ImageTooLarge { tile } => at.tiles[tile],
                ShapeError::ElementBits { .. } => at.element_bits,
                ShapeError::SplitDimension { split, .. } => at.splits[split],
                _ => at.start,
            };
            self.meaningless(at, e)
        })
    }

    fn bound(&mut self) -> Result<Bound, ParseError> {
        const BOUND: &str = "a bound (a number, `<=` and a number, or `?`)";
        if self.eat("?")? {
            Ok(Bound::Unbounded)
        } else if self.eat("<=")? {
            Ok(Bound::AtMost(self.number("the greatest bound, a number")?))
        } else {
            Ok(Bound::Static(self.number(BOUND)?))
        }
    }

    // Layouts.

    fn layout(&mut self, depth: usize) -> Result<(Layout, LayoutPositions), ParseError> {
        self.skip_blank()?;
        let mut at = LayoutPositions {
            start: self.at,
            tiles: Vec::new(),
            element_bits: self.at,
            splits: Vec::new(),
        };
        self.expect("{", "`{`")?;
        let mut layout = self.minor_to_major(at.start)?;
        if self.eat(":")? {
            self.skip_blank()?;
            let attributes_at = self.at;
            layout = self.attributes(layout, &mut at, depth)?;
            if self.at == attributes_at {
                return Err(self.expected(ATTRIBUTE));
            }
        }
        self.expect("}", "`}`, or an attribute in the order D T L # * E S SC P M")?;
        Ok((layout, at))
    }

    fn minor_to_major(&mut self, start: usize) -> Result<Layout, ParseError> {
        let mut minor_to_major = Vec::new();
        let mut entries_at = Vec::new();
        self.skip_blank()?;
        if !matches!(self.peek(), Some(b'}' | b':')) {
            loop {
                if minor_to_major.len() == MAX_RANK {
                    let count = MAX_RANK + 1;
                    return Err(self.meaningless(self.at, ShapeError::TooManyDimensions { count }));
                }
                self.skip_blank()?;
                entries_at.push(self.at);
                minor_to_major.push(self.dimension()?);
                if !self.eat(",")? {
                    break;
                }
            }
        }
        Layout::new(minor_to_major).map_err(|e| {
            let at = match e {
                ShapeError::NoSuchDimension { entry, .. }
                | ShapeError::RepeatedDimension { entry, .. } => entries_at[entry],
                _ => start,
            };
            self.meaningless(at, e)
        })
    }

    /// What follows the colon of a layout.
    fn attributes(
        &mut self,
        mut layout: Layout,
        at: &mut LayoutPositions,
        depth: usize,
    ) -> Result<Layout, ParseError> {
        if self.eat_word("D")? {
            self.dimension_level_types()?;
        }

        // Documents leave out the T where the tiles come first.
        self.skip_blank()?;
        if self.eat_word("T")? || self.peek() == Some(b'(') {
            let tiles = self.tiles(&mut at.tiles)?;
            layout = layout.with_tiles(tiles).map_err(|e| self.meaningless(self.at, e))?;
        }
        if self.eat_word("L")? {
            let (number_at, n) = self.number_in_parentheses("an alignment in elements")?;
            layout = layout
                .with_tail_alignment_elements(n)
                .map_err(|e| self.meaningless(number_at, e))?;
        }
        if self.eat("#")? {
            layout = self.index_type(layout, Layout::with_index_type)?;
        }
        if self.eat("*")? {
            layout = self.index_type(layout, Layout::with_pointer_type)?;
        }
        if self.eat_word("E")? {
            let (number_at, bits) = self.number_in_parentheses("the bits of an element")?;
            at.element_bits = number_at;
            layout = layout.with_element_bits(u32::try_from(bits).unwrap_or(u32::MAX));
        }
        if self.eat_word("S")? {
            let (number_at, n) = self.number_in_parentheses("a memory space, 0 to 127")?;
            layout = u8::try_from(n)
                .map_err(|_| ShapeError::MemorySpace { space: n })
                .and_then(|space| layout.with_memory_space(space))
                .map_err(|e| self.meaningless(number_at, e))?;
        }
        if self.eat_word("SC")? {
            let splits = self.splits(&mut at.splits)?;
            layout = layout.with_splits(splits).map_err(|e| self.meaningless(self.at, e))?;
        }
        if self.eat_word("P")? {
            self.expect("(", "`(` and a shape")?;
            layout = layout.with_physical_shape(self.any_shape(depth + 1)?);
            self.expect(")", "`)`")?;
        }
        if self.eat_word("M")? {
            let (_, bytes) = self.number_in_parentheses("a prefix in bytes")?;
            layout = layout.with_metadata_prefix_bytes(bytes);
        }
        Ok(layout)
    }

    /// `(D,C+,…)`: which dimensions are dense; read and dropped, as XLA does.
    fn dimension_level_types(&mut self) -> Result<(), ParseError> {
        self.expect("(", "`(` and the level types of the dimensions")?;
        loop {
            if !["D", "C", "S", "H"].contains(&self.peek_word()?) {
                return Err(self.expected("a level type: D, C, S or H"));
            }
            self.at += 1;
            self.eat("+")?;
            self.eat("~")?;
            if self.eat(")")? {
                return Ok(());
            }
            self.expect(",", "`,` or `)`")?;
        }
    }

    fn tiles(&mut self, tiles_at: &mut Vec<usize>) -> Result<Vec<Tile>, ParseError> {
        let mut tiles = Vec::new();
        loop {
            self.skip_blank()?;
            let at = self.at;
            if tiles.is_empty() {
                self.expect("(", "`(` and the bounds of a tile")?;
            } else if !self.eat("(")? {
                return Ok(tiles);
            }
            if tiles.len() == MAX_TILES {
                let count = MAX_TILES + 1;
                return Err(self.meaningless(at, ShapeError::TooManyTiles { count }));
            }
            tiles_at.push(at);
            tiles.push(self.tile()?);
        }
    }

    /// What follows the `(` of a tile.
    fn tile(&mut self) -> Result<Tile, ParseError> {
        const ENTRY: &str = "a tile bound (a positive number, or `*`)";
        let mut entries = Vec::new();
        let mut entries_at = Vec::new();
        loop {
            self.skip_blank()?;
            if entries.len() == MAX_RANK {
                let count = MAX_RANK + 1;
                return Err(self.meaningless(self.at, ShapeError::TooManyDimensions { count }));
            }
            entries_at.push(self.at);
            entries.push(if self.eat("*")? || self.eat("∗")? || self.eat_word_minus_one()? {
                TileEntry::Combine
            } else {
                TileEntry::Bound(self.number(ENTRY)?)
            });
            if self.eat(")")? {
                break;
            }
            self.expect(",", "`,` or `)`")?;
        }
        Tile::new(entries).map_err(|e| {
            let at = match e {
                ShapeError::ZeroTileBound { entry } => entries_at[entry],
                _ => entries_at[entries_at.len() - 1],
            };
            self.meaningless(at, e)
        })
    }

    /// Takes `-1`, which the document writes for `*`; not `-12`.
    fn eat_word_minus_one(&mut self) -> Result<bool, ParseError> {
        self.skip_blank()?;
        let rest = &self.text[self.at..];
        let found = rest.strip_prefix("-1").is_some_and(|after| {
            !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        });
        if found {
            self.at += 2;
        }
        Ok(found)
    }

    fn splits(&mut self, splits_at: &mut Vec<usize>) -> Result<Vec<Split>, ParseError> {
        let mut splits = Vec::new();
        loop {
            if splits.is_empty() {
                self.expect("(", "`(`, a dimension and where it is split")?;
            } else if !self.eat("(")? {
                return Ok(splits);
            }
            self.skip_blank()?;
            splits_at.push(self.at);
            let dimension = self.dimension()?;
            self.expect(":", "`:` and where the dimension is split")?;
            let mut indices = Vec::new();
            loop {
                indices.push(self.number("an index at which the dimension is split")?);
                if self.eat(")")? {
                    break;
                }
                self.expect(",", "`,` or `)`")?;
            }
            splits.push(Split::new(dimension, indices));
        }
    }
}

const ATTRIBUTE: &str = "an attribute: D T L # * E S SC P or M";

/// The first characters of a long word.
fn shorten(word: &str) -> String {
    match word.char_indices().nth(24) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    }
}
