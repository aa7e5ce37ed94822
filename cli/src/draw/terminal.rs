//! A drawing as lines of text, with or without colours.

use super::{Boundary, Cell, Drawing, Grid};

/// Background colours of the tiles in turn, of the 256 that terminals have:
/// light ones, to be written on in black.
const BACKGROUNDS: [u8; 7] = [153, 223, 157, 225, 229, 189, 159];

/// The drawing as text that ends in a line feed.
pub(super) fn render(drawing: &Drawing, color: bool) -> String {
    let mut text = format!("{}\n", drawing.title);
    for grid in &drawing.grids {
        text += &format!("\n{}\n", grid.caption);
        render_grid(grid, color, &mut text);
    }
    if !drawing.notes.is_empty() {
        text.push('\n');
    }
    for note in &drawing.notes {
        text += &format!("note: {note}\n");
    }
    text
}

fn render_grid(grid: &Grid, color: bool, text: &mut String) {
    let width = usize::try_from(grid.digits).unwrap_or(1);
    for (r, row) in grid.rows.iter().enumerate() {
        if let Some(above) = r.checked_sub(1).map(|r| &grid.rows[r]) {
            text.extend(rule(above, row, width));
        }
        text.push('│');
        for (c, cell) in row.iter().enumerate() {
            let label = format!("{:>width$}", cell.label());
            match cell.tiles[0].filter(|_| color && cell.number.is_some()) {
                Some(tile) => {
                    let background = BACKGROUNDS[super::turn(tile, BACKGROUNDS.len())];
                    *text += &format!("\x1b[48;5;{background};30m{label}\x1b[0m");
                }
                None => *text += &label,
            }
            text.push(match row.get(c + 1).map(|next| Boundary::between(cell, next)) {
                None | Some(Some(Boundary::Tile)) => '│',
                Some(Some(Boundary::Subtile)) => '┊',
                Some(None) => ' ',
            });
        }
        text.push('\n');
    }
}

/// The line between two rows, where any of their cells are parted.
fn rule(above: &[Cell], below: &[Cell], width: usize) -> Option<String> {
    let boundaries: Vec<_> =
        above.iter().zip(below).map(|(a, b)| Boundary::between(a, b)).collect();
    if boundaries.iter().all(Option::is_none) {
        return None;
    }
    let mut line = String::from("│");
    for (c, &boundary) in boundaries.iter().enumerate() {
        let dash = match boundary {
            Some(Boundary::Tile) => '─',
            Some(Boundary::Subtile) => '┈',
            None => ' ',
        };
        line.extend(std::iter::repeat_n(dash, width));
        let next = boundaries.get(c + 1).copied();
        line.push(match next {
            None => '│',
            Some(next) if next == Some(Boundary::Tile) || boundary == Some(Boundary::Tile) => '┼',
            Some(_) => match Boundary::between(&above[c], &above[c + 1]) {
                Some(Boundary::Tile) => '│',
                _ => dash,
            },
        });
    }
    line.push('\n');
    Some(line)
}
