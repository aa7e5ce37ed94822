//! `relayout draw`: an array and its image as grids of linear indices, the
//! tiles coloured, as in the figures of the tiled-layout document.
//!
//! `mod.rs` finds out what stands in each cell and which tile it belongs to;
//! `terminal.rs` and `svg.rs` put that on a screen and into a picture.

mod svg;
mod terminal;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use relayout::index::ImageMap;
use relayout::{Shape, TileEntry};

use crate::explain::grouped;
use crate::failure::Failure;
use crate::files::Output;

/// Draw an array and its image as grids of linear indices
///
/// In the array, the number of an element is its place in the image; in the
/// image, it is the element's row-major number in the array, and a dot is
/// padding. Each colour is a tile; lines part the tiles, and dotted lines (red
/// in the picture) the tiles of the second level.
#[derive(Args)]
#[command(after_help = "\
Examples:
  relayout draw 'f32[3,5]{1,0:T(2,2)}'                         Figure 1 of the document
  relayout draw 'bf16[4,8]{1,0:T(2,4)(2,1)}' --svg figure2.svg")]
pub(crate) struct Arguments {
    /// The array; of a large one, a part is drawn
    #[arg(value_name = "SHAPE")]
    shape: String,
    /// Draw into a picture instead; `-` is standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Replace the picture if it exists
    #[arg(long, requires = "svg")]
    force: bool,
    /// Whether to use colours on the terminal
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    color: Color,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

/// The most rows and columns of a grid, and slices of an array, that are drawn.
const MOST_ROWS: u64 = 32;
const MOST_COLUMNS: u64 = 32;
const MOST_SLICES: u64 = 4;

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let shape: Shape = arguments.shape.parse()?;
    if let Some(path) = &arguments.svg {
        let output = Output::new(path, arguments.force)?;
        let picture = svg::render(&Drawing::new(&shape, |_| MOST_COLUMNS)?);
        return output.write(&[picture.as_bytes()]);
    }
    let color = match arguments.color {
        Color::Auto => io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        Color::Always => true,
        Color::Never => false,
    };
    let width = terminal_size::terminal_size().map_or(100, |(width, _)| u64::from(width.0));
    // Each cell has a line before it, and the last one after it.
    let columns = |digits: u64| (width.saturating_sub(1) / (digits + 1)).clamp(1, MOST_COLUMNS);
    let text = terminal::render(&Drawing::new(&shape, columns)?, color);
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// What is drawn.
struct Drawing {
    title: String,
    grids: Vec<Grid>,
    notes: Vec<String>,
}

/// Rows of cells, all of the same length but maybe the last.
struct Grid {
    caption: String,
    /// The characters of the longest number.
    digits: u64,
    rows: Vec<Vec<Cell>>,
}

/// One element.
struct Cell {
    /// Its number in the other grid, or `None` for padding.
    number: Option<u64>,
    /// The tile it belongs to, for the first and the second level.
    tiles: [Option<u64>; 2],
}

impl Cell {
    /// What is written into it.
    fn label(&self) -> String {
        self.number.map_or("·".to_owned(), |n| n.to_string())
    }
}

/// The outermost level at which two neighbouring cells belong to different
/// tiles.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Boundary {
    Tile,
    Subtile,
}

impl Boundary {
    fn between(a: &Cell, b: &Cell) -> Option<Self> {
        if a.tiles[0] != b.tiles[0] {
            Some(Boundary::Tile)
        } else if a.tiles[1] != b.tiles[1] {
            Some(Boundary::Subtile)
        } else {
            None
        }
    }
}

/// Numbers the tiles of one level.
struct TileNumbers {
    /// The map of the layout with the tiles up to this one.
    map: ImageMap,
    tile_elements: u64,
}

impl TileNumbers {
    /// The numbers of the tiles of `level`, or `None` where there is no such.
    fn new(shape: &Shape, level: usize) -> Result<Option<Self>, Failure> {
        let Some(tile) = shape.layout().tiles().get(level) else {
            return Ok(None);
        };
        let tiles = shape.layout().tiles()[..=level].to_vec();
        let map = ImageMap::new(&shape.with_layout(shape.layout().clone().with_tiles(tiles)?)?)?;
        let bound = |entry: &TileEntry| match entry {
            TileEntry::Bound(n) => *n,
            _ => 1,
        };
        // An image of no elements may have tiles beyond all numbers.
        let tile_elements = tile.entries().iter().map(bound).fold(1, u64::saturating_mul);
        Ok(Some(TileNumbers { map, tile_elements }))
    }

    /// The tile in which an array element stands.
    fn of(&self, index: &[u64]) -> Result<u64, Failure> {
        Ok(self.map.image_element(index)? / self.tile_elements)
    }
}

/// A shape, ready to look elements up.
struct Maps {
    map: ImageMap,
    levels: [Option<TileNumbers>; 2],
    bounds: Vec<u64>,
    /// The bound of the minormost physical dimension.
    minor_bound: u64,
}

impl Maps {
    fn tiles_of(&self, index: &[u64]) -> Result<[Option<u64>; 2], Failure> {
        let of = |level: &Option<TileNumbers>| level.as_ref().map(|l| l.of(index)).transpose();
        Ok([of(&self.levels[0])?, of(&self.levels[1])?])
    }
}

impl Drawing {
    /// A drawing of the array and of its image, where `columns` tells how many
    /// cells fit beside each other if each has that many digits.
    fn new(shape: &Shape, columns: impl Fn(u64) -> u64) -> Result<Self, Failure> {
        let maps = Maps {
            map: ImageMap::new(shape)?,
            levels: [TileNumbers::new(shape, 0)?, TileNumbers::new(shape, 1)?],
            bounds: shape.bounds()?,
            minor_bound: shape.physical_bounds()?.last().copied().unwrap_or(1),
        };
        let mut drawing =
            Drawing { title: shape.to_string(), grids: Vec::new(), notes: Vec::new() };
        if maps.map.elements() == 0 {
            drawing.notes.push("the array has no elements, and its image no bytes".to_owned());
            return Ok(drawing);
        }
        drawing.array(&maps, &columns)?;
        drawing.image(&maps, &columns)?;
        Ok(drawing)
    }

    /// The grids of the array: its last two dimensions, for each index of the
    /// others.
    fn array(&mut self, maps: &Maps, columns: &impl Fn(u64) -> u64) -> Result<(), Failure> {
        let (leading, last_two) = maps.bounds.split_at(maps.bounds.len().saturating_sub(2));
        let (rows, row_elements) = match *last_two {
            [rows, row_elements] => (rows, row_elements),
            [row_elements] => (1, row_elements),
            _ => (1, 1),
        };
        let digits = digits(maps.map.image_elements() - 1);
        let (drawn_rows, drawn_columns) = (rows.min(MOST_ROWS), row_elements.min(columns(digits)));
        let slices = maps.map.elements() / rows / row_elements;
        for slice in 0..slices.min(MOST_SLICES) {
            let first = maps.map.index_of(slice * rows * row_elements)?;
            let caption = match leading {
                [] => "array: where each element stands in the image".to_owned(),
                _ => {
                    let leading: String =
                        first[..leading.len()].iter().map(|i| format!("{i},")).collect();
                    format!("array [{leading}:,:]: where each element stands in the image")
                }
            };
            let cell = |row: u64, column: u64| -> Result<Cell, Failure> {
                let number = slice * rows * row_elements + row * row_elements + column;
                let index = maps.map.index_of(number)?;
                let number = Some(maps.map.image_element(&index)?);
                Ok(Cell { number, tiles: maps.tiles_of(&index)? })
            };
            let row = |row| (0..drawn_columns).map(|column| cell(row, column)).collect();
            let rows = (0..drawn_rows).map(row).collect::<Result<_, _>>()?;
            self.grids.push(Grid { caption, digits, rows });
        }
        if drawn_rows < rows || drawn_columns < row_elements {
            self.notes.push(format!(
                "of the array, {drawn_rows} of {} rows and {drawn_columns} of {} columns are drawn",
                grouped(rows),
                grouped(row_elements)
            ));
        }
        if slices > MOST_SLICES {
            self.notes.push(format!("{MOST_SLICES} of {} slices are drawn", grouped(slices)));
        }
        Ok(())
    }

    /// The grid of the image: its elements in their order, a tile in a row or
    /// in some rows.
    fn image(&mut self, maps: &Maps, columns: &impl Fn(u64) -> u64) -> Result<(), Failure> {
        let digits = digits(maps.map.elements() - 1);
        let in_row = match &maps.levels[0] {
            Some(level) => level.tile_elements,
            None => maps.minor_bound,
        };
        let row_elements =
            (1..=columns(digits)).rev().find(|n| in_row.is_multiple_of(*n)).unwrap_or(1);
        let image_elements = maps.map.image_elements();
        let drawn = image_elements.min(row_elements * MOST_ROWS);

        let mut cells = Vec::new();
        for k in 0..drawn {
            cells.push(match maps.map.logical_index(k)? {
                Some(index) => Cell {
                    number: Some(maps.map.linear_index(&index)?),
                    tiles: maps.tiles_of(&index)?,
                },
                None => Cell { number: None, tiles: [None; 2] },
            });
        }
        // Where every tile lies in one piece, padding belongs to the tile
        // around it.
        for (i, level) in maps.levels.iter().enumerate() {
            let Some(level) = level else { continue };
            let by_place = |k: usize| u64::try_from(k).unwrap_or(u64::MAX) / level.tile_elements;
            let in_one_piece =
                cells.iter().enumerate().all(|(k, c)| c.tiles[i].is_none_or(|t| t == by_place(k)));
            if in_one_piece {
                cells.iter_mut().enumerate().for_each(|(k, c)| c.tiles[i] = Some(by_place(k)));
            }
        }
        let mut rows = Vec::new();
        let mut cells = cells.into_iter().peekable();
        while cells.peek().is_some() {
            rows.push(cells.by_ref().take(usize::try_from(row_elements).unwrap_or(1)).collect());
        }
        let caption = "image: which element stands at each place, row-major; · is padding";
        self.grids.push(Grid { caption: caption.to_owned(), digits, rows });
        if drawn < image_elements {
            self.notes.push(format!(
                "of the image, {drawn} of {} elements are drawn",
                grouped(image_elements)
            ));
        }
        Ok(())
    }
}

/// The digits of a number.
fn digits(n: u64) -> u64 {
    u64::from(n.checked_ilog10().unwrap_or(0)) + 1
}

/// Which of `colors` colours a tile has, all tiles in turn.
fn turn(tile: u64, colors: usize) -> usize {
    u64::try_from(colors).ok().and_then(|n| usize::try_from(tile % n).ok()).unwrap_or(0)
}
