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

use relayout_kernels::{
    ElementType, UnknownElementType,
    excerpt::{excerpt, printable},
};

use super::tiling::MAX_ELEMENTS;
use super::{AnyShape, Bound, Layout, Shape, Split, Tile, TileEntry, Tuple};
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
    /// What is wrong, in one line, without the position.
    message: String,
    /// The part of the text around the position, on one line.
    excerpt: String,
    /// Characters of the excerpt before the position.
    column: usize,
}

/// What is wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// Something else should stand here.
    Unexpected,
    /// The word is no element type.
    UnknownType,
    /// The number is 2⁶³ or more.
    NumberTooLarge,
    /// The number is below 0.
    Negative,
    /// A comment does not end.
    OpenComment,
    /// The text is a tuple, a token, an opaque value or a buffer, where an
    /// array was asked for.
    NotAnArray,
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
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "at byte {}: {}", self.0.at, self.0.message)?;
        writeln!(f, "  {}", self.0.excerpt)?;
        write!(f, "  {:width$}^", "", width = self.0.column)
    }
}

impl std::error::Error for ParseError {}

impl FromStr for Shape {
    type Err = ParseError;

    /// Reads one array in XLA's notation; without a layout it is row-major.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let what = match text.parse()? {
            AnyShape::Array(shape) => return Ok(shape),
            AnyShape::Tuple(_) => "a tuple",
            AnyShape::Token => "a token",
            AnyShape::Opaque => "an opaque value",
            AnyShape::Buffer(_) => "a buffer",
        };
        let mut parser = Parser::new(text);
        parser.skip_blank()?;
        let message =
            format!("this is {what}; only an array, such as `f32[3,5]{{1,0}}`, has an image");
        Err(parser.error(ParseErrorKind::NotAnArray, message))
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
}

impl LayoutPositions {
    fn new(start: usize) -> Self {
        LayoutPositions { start, tiles: Vec::new(), element_bits: start }
    }
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

    /// An error at the position.
    fn error(&self, kind: ParseErrorKind, message: String) -> ParseError {
        self.error_at(self.at, kind, message)
    }

    /// Something else stands here than `what`.
    fn expected(&self, what: &str) -> ParseError {
        let message = format!("expected {what}, found {}", self.found());
        self.error(ParseErrorKind::Unexpected, message)
    }

    /// What the constructors refused, at the part of the text that said it.
    fn meaningless(&self, at: usize, e: ShapeError) -> ParseError {
        self.error_at(at, ParseErrorKind::Meaningless(e), e.to_string())
    }

    /// What stands at the position: a word, a number or a character.
    fn found(&self) -> String {
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else { return "the end of the text".to_owned() };
        let length = match rest.strip_prefix('-').unwrap_or(rest) {
            word if word.starts_with(is_word) => {
                rest.len() - word.len() + word.find(|c| !is_word(c)).unwrap_or(word.len())
            }
            _ => first.len_utf8(),
        };
        format!("`{}`", excerpt(&rest[..length]))
    }

    fn error_at(&self, at: usize, kind: ParseErrorKind, message: String) -> ParseError {
        // Enough of the text to know the place again, on one line.
        let (before, after) = self.text.split_at(at);
        let start = before.char_indices().rev().take(48).last().map_or(at, |(i, _)| i);
        let end = after.char_indices().nth(32).map_or(after.len(), |(i, _)| i);
        let mut excerpt: String = before[start..].chars().map(printable).collect();
        if start > 0 {
            excerpt.insert_str(0, "… ");
        }
        let column = excerpt.chars().count();
        excerpt.extend(after[..end].chars().map(printable));
        if end < after.len() {
            excerpt += " …";
        }
        ParseError(Box::new(Inner { at, kind, message, excerpt, column }))
    }

    // Tokens.

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blank(&mut self) -> Result<(), ParseError> {
        loop {
            let rest = &self.text[self.at..];
            if let Some(comment) = rest.strip_prefix("/*") {
                let length = comment.find("*/").ok_or_else(|| {
                    let message = "a comment starts here and does not end; close it with `*/`";
                    self.error(ParseErrorKind::OpenComment, message.to_owned())
                })?;
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

    fn expect(&mut self, token: &str, what: &str) -> Result<(), ParseError> {
        if self.eat(token)? { Ok(()) } else { Err(self.expected(what)) }
    }

    /// The word that comes next, which may be empty; it is not taken.
    fn peek_word(&mut self) -> Result<&'a str, ParseError> {
        self.skip_blank()?;
        let rest = &self.text[self.at..];
        Ok(&rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())])
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
    fn number(&mut self, what: &str) -> Result<u64, ParseError> {
        self.skip_blank()?;
        let rest = &self.text[self.at..];
        let digits = rest.strip_prefix('-').unwrap_or(rest);
        let length = digits.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return Err(self.expected(what));
        }
        let value = digits[..length].parse().ok().filter(|&n| n <= MAX_ELEMENTS);
        if digits.len() < rest.len() && value != Some(0) {
            let message = format!("{} is negative; it must not be", self.found());
            return Err(self.error(ParseErrorKind::Negative, message));
        }
        let value = value.ok_or_else(|| {
            let message = format!("{} is too large; a number must be below 2^63", self.found());
            self.error(ParseErrorKind::NumberTooLarge, message)
        })?;
        self.at += rest.len() - digits.len() + length;
        Ok(value)
    }

    /// A number that counts dimensions; one too large for that names none.
    fn dimension(&mut self) -> Result<usize, ParseError> {
        let n = self.number("a dimension, counted from 0")?;
        Ok(usize::try_from(n).unwrap_or(usize::MAX))
    }

    /// `(`, a number, `)`, which `set` puts into the layout.
    fn number_attribute(
        &mut self,
        layout: Layout,
        what: &str,
        set: fn(Layout, u64) -> Result<Layout, ShapeError>,
    ) -> Result<Layout, ParseError> {
        self.expect("(", "`(` and a number")?;
        self.skip_blank()?;
        let at = self.at;
        let number = self.number(what)?;
        self.expect(")", "`)`")?;
        set(layout, number).map_err(|e| self.meaningless(at, e))
    }

    /// `(`, an integer type, `)`, which `set` puts into the layout.
    fn type_attribute(
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

    /// What follows an opening bracket: items with commas between them, up to
    /// `close`. With each item goes where it begins.
    fn list<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<(usize, T)>, ParseError> {
        let mut items = Vec::new();
        loop {
            self.skip_blank()?;
            let at = self.at;
            items.push((at, item(self)?));
            if self.eat(close)? {
                return Ok(items);
            }
            self.expect(",", &format!("`,` or `{close}`"))?;
        }
    }

    fn element_type(&mut self) -> Result<ElementType, ParseError> {
        let word = self.peek_word()?;
        if word.is_empty() {
            return Err(self.expected("an element type, such as `f32`"));
        }
        let element_type = word.parse().map_err(|e: UnknownElementType| {
            self.error(ParseErrorKind::UnknownType, e.to_string())
        })?;
        self.at += word.len();
        Ok(element_type)
    }

    // Shapes.

    /// A shape inside `depth` tuples and physical shapes.
    fn any_shape(&mut self, depth: usize) -> Result<AnyShape, ParseError> {
        self.skip_blank()?;
        let at = self.at;
        if self.eat("(")? {
            let depth = self.one_deeper(at, depth)?;
            let mut parts = Vec::new();
            if !self.eat(")")? {
                parts = self.list(")", |parser| parser.any_shape(depth))?;
            }
            let parts: Vec<AnyShape> = parts.into_iter().map(|(_, part)| part).collect();
            return Tuple::new(parts).map(AnyShape::Tuple).map_err(|e| self.meaningless(at, e));
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

    /// The depth inside of what opens at `at`. The constructors would refuse
    /// it too, but only after the recursion.
    fn one_deeper(&self, at: usize, depth: usize) -> Result<usize, ParseError> {
        if depth < MAX_DEPTH {
            Ok(depth + 1)
        } else {
            Err(self.meaningless(at, ShapeError::TooDeep))
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
        let mut bounds = Vec::new();
        if !self.eat("]")? {
            bounds = self.list("]", Self::bound)?;
        }
        let dimensions: Vec<Bound> = bounds.into_iter().map(|(_, bound)| bound).collect();

        self.skip_blank()?;
        let (layout, at) = if self.peek() == Some(b'{') {
            self.layout(depth)?
        } else {
            let row_major = Layout::row_major(dimensions.len());
            let layout = row_major.map_err(|e| self.meaningless(bounds_at, e))?;
            (layout, LayoutPositions::new(bounds_at))
        };
        Shape::new(element_type, dimensions, layout).map_err(|e| {
            let at = match e {
                ShapeError::TooManyDimensions { .. } | ShapeError::TooManyElements => bounds_at,
                ShapeError::ImageTooLarge { tile } => at.tiles[tile],
                ShapeError::ElementBits { .. } => at.element_bits,
                _ => at.start,
            };
            self.meaningless(at, e)
        })
    }

    fn bound(&mut self) -> Result<Bound, ParseError> {
        if self.eat("?")? {
            Ok(Bound::Unbounded)
        } else if self.eat("<=")? {
            Ok(Bound::AtMost(self.number("the greatest bound, a number")?))
        } else {
            let what = "a bound (a number, `<=` and a number, or `?`)";
            Ok(Bound::Static(self.number(what)?))
        }
    }

    // Layouts.

    fn layout(&mut self, depth: usize) -> Result<(Layout, LayoutPositions), ParseError> {
        self.skip_blank()?;
        let mut at = LayoutPositions::new(self.at);
        self.expect("{", "`{`")?;
        let mut layout = self.minor_to_major(at.start)?;
        if self.eat(":")? {
            self.skip_blank()?;
            let attributes_at = self.at;
            layout = self.attributes(layout, &mut at, depth)?;
            if self.at == attributes_at {
                return Err(self.expected("an attribute: D T L # * E S SC P or M"));
            }
        }
        self.expect("}", "`}`, or an attribute in the order D T L # * E S SC P M")?;
        Ok((layout, at))
    }

    fn minor_to_major(&mut self, start: usize) -> Result<Layout, ParseError> {
        let mut entries = Vec::new();
        self.skip_blank()?;
        if !matches!(self.peek(), Some(b'}' | b':')) {
            loop {
                self.skip_blank()?;
                entries.push((self.at, self.dimension()?));
                if !self.eat(",")? {
                    break;
                }
            }
        }
        let minor_to_major: Vec<usize> = entries.iter().map(|&(_, dimension)| dimension).collect();
        Layout::new(minor_to_major).map_err(|e| {
            let at = match e {
                ShapeError::NoSuchDimension { entry, .. }
                | ShapeError::RepeatedDimension { entry, .. } => entries[entry].0,
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
            self.expect("(", "`(` and the level types of the dimensions")?;
            self.list(")", Self::dimension_level_type)?;
        }
        // Documents leave out the T where the tiles come first.
        self.skip_blank()?;
        let tiles_at = self.at;
        if self.eat_word("T")? || self.peek() == Some(b'(') {
            let tiles = self.tiles(&mut at.tiles)?;
            layout = layout.with_tiles(tiles).map_err(|e| self.meaningless(tiles_at, e))?;
        }
        if self.eat_word("L")? {
            let what = "an alignment in elements";
            layout = self.number_attribute(layout, what, Layout::with_tail_alignment_elements)?;
        }
        if self.eat("#")? {
            layout = self.type_attribute(layout, Layout::with_index_type)?;
        }
        if self.eat("*")? {
            layout = self.type_attribute(layout, Layout::with_pointer_type)?;
        }
        self.skip_blank()?;
        let element_bits_at = self.at;
        if self.eat_word("E")? {
            at.element_bits = element_bits_at;
            let what = "the bits of an element";
            layout = self.number_attribute(layout, what, Layout::with_element_bits)?;
        }
        if self.eat_word("S")? {
            let what = "a memory space, 0 to 127";
            layout = self.number_attribute(layout, what, Layout::with_memory_space)?;
        }
        if self.eat_word("SC")? {
            layout = self.splits(layout)?;
        }
        self.skip_blank()?;
        let physical_at = self.at;
        if self.eat_word("P")? {
            self.expect("(", "`(` and a shape")?;
            let depth = self.one_deeper(physical_at, depth)?;
            let shape = self.any_shape(depth)?;
            self.expect(")", "`)`")?;
            layout =
                layout.with_physical_shape(shape).map_err(|e| self.meaningless(physical_at, e))?;
        }
        if self.eat_word("M")? {
            let what = "a prefix in bytes";
            layout = self.number_attribute(layout, what, Layout::with_metadata_prefix_bytes)?;
        }
        Ok(layout)
    }

    /// Whether a dimension is dense; read and dropped, as XLA does.
    fn dimension_level_type(&mut self) -> Result<(), ParseError> {
        if !["D", "C", "S", "H"].contains(&self.peek_word()?) {
            return Err(self.expected("a level type: D, C, S or H"));
        }
        self.at += 1;
        self.eat("+")?;
        self.eat("~")?;
        Ok(())
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
            tiles_at.push(at);
            let entries = self.list(")", Self::tile_entry)?;
            let tile = Tile::new(entries.iter().map(|&(_, entry)| entry)).map_err(|e| {
                let at = match e {
                    ShapeError::ZeroTileBound { entry } => entries[entry].0,
                    ShapeError::TileEndsInCombine => entries[entries.len() - 1].0,
                    _ => at,
                };
                self.meaningless(at, e)
            })?;
            tiles.push(tile);
        }
    }

    fn tile_entry(&mut self) -> Result<TileEntry, ParseError> {
        // The document writes -1 for `*`; -12 is a number out of range.
        let minus_one =
            self.text[self.at..].strip_prefix("-1").is_some_and(|rest| !rest.starts_with(is_word));
        if self.eat("*")? || self.eat("∗")? || (minus_one && self.eat("-1")?) {
            return Ok(TileEntry::Combine);
        }
        Ok(TileEntry::Bound(self.number("a tile bound (a positive number, or `*`)")?))
    }

    /// What follows `SC`.
    fn splits(&mut self, layout: Layout) -> Result<Layout, ParseError> {
        let (mut splits, mut splits_at) = (Vec::new(), Vec::new());
        loop {
            if splits.is_empty() {
                self.expect("(", "`(`, a dimension and where it is split")?;
            } else if !self.eat("(")? {
                break;
            }
            self.skip_blank()?;
            let at = self.at;
            let dimension = self.dimension()?;
            self.expect(":", "`:` and where the dimension is split")?;
            let what = "an index at which the dimension is split";
            let indices = self.list(")", |parser| parser.number(what))?;
            let indices: Vec<u64> = indices.into_iter().map(|(_, index)| index).collect();
            splits.push(Split::new(dimension, indices).map_err(|e| self.meaningless(at, e))?);
            splits_at.push(at);
        }
        layout.with_splits(splits).map_err(|e| {
            let at = match e {
                ShapeError::SplitDimension { split, .. } => splits_at[split],
                _ => self.at,
            };
            self.meaningless(at, e)
        })
    }
}

/// What words and numbers are made of.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
