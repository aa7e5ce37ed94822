//! A drawing as a picture for a browser.

use super::{Boundary, Drawing, Grid};

/// Fill colours of the tiles in turn.
const FILLS: [&str; 7] =
    ["#bfdbfe", "#fed7aa", "#bbf7d0", "#fbcfe8", "#fef08a", "#ddd6fe", "#a5f3fc"];

const MARGIN: u64 = 24;
const CELL_HEIGHT: u64 = 26;
/// The width of a digit of 14 pixels in a monospaced font.
const DIGIT_WIDTH: u64 = 9;
const LINE_HEIGHT: u64 = 22;

/// The drawing as an SVG document.
pub(super) fn render(drawing: &Drawing) -> String {
    let mut body = String::new();
    let mut y = MARGIN + LINE_HEIGHT;
    let mut width = 8 * chars(&drawing.title) * 5 / 4;
    body += &format!(
        "<text x=\"{MARGIN}\" y=\"{}\" class=\"title\">{}</text>\n",
        y - 6,
        escape(&drawing.title)
    );
    for grid in &drawing.grids {
        y += LINE_HEIGHT;
        body += &line(y, "caption", &grid.caption);
        width = width.max(8 * chars(&grid.caption));
        y += 10;
        width = width.max(render_grid(grid, y, &mut body));
        y += CELL_HEIGHT * length(&grid.rows) + LINE_HEIGHT / 2;
    }
    for note in &drawing.notes {
        y += LINE_HEIGHT;
        body += &line(y, "note", note);
        width = width.max(8 * chars(note));
    }
    let (width, height) = (width + 2 * MARGIN, y + MARGIN);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"ui-monospace, Menlo, Consolas, \
         'DejaVu Sans Mono', monospace\">\n\
         <style>\n\
         text {{ fill: #111827; font-size: 14px }}\n\
         .title {{ font-size: 18px; font-weight: bold }}\n\
         .caption, .note {{ font-size: 13px; fill: #4b5563 }}\n\
         .cell {{ text-anchor: middle }}\n\
         .padding {{ text-anchor: middle; fill: #9ca3af }}\n\
         rect {{ stroke: #d1d5db; stroke-width: 1 }}\n\
         .subtile {{ stroke: #dc2626; stroke-width: 1.5 }}\n\
         .tile {{ stroke: #111827; stroke-width: 2 }}\n\
         </style>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\" style=\"stroke: none\"/>\n\
         {body}</svg>\n"
    )
}

/// Draws the cells from `top` down; returns the width of the grid.
fn render_grid(grid: &Grid, top: u64, body: &mut String) -> u64 {
    let cell_width = (grid.digits * DIGIT_WIDTH + 14).max(CELL_HEIGHT);
    let x = |column: usize| MARGIN + cell_width * number(column);
    let y = |row: usize| top + CELL_HEIGHT * number(row);
    // Lines go over the cells, and those between tiles over those between
    // subtiles.
    let (mut cells, mut subtile_lines, mut tile_lines) =
        (String::new(), String::new(), String::new());
    let mut part = |boundary: Option<Boundary>, from: (u64, u64), to: (u64, u64)| {
        let (lines, class) = match boundary {
            Some(Boundary::Tile) => (&mut tile_lines, "tile"),
            Some(Boundary::Subtile) => (&mut subtile_lines, "subtile"),
            None => return,
        };
        let ((x1, y1), (x2, y2)) = (from, to);
        *lines +=
            &format!("<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" class=\"{class}\"/>\n");
    };
    let mut columns = 0;
    for (r, row) in grid.rows.iter().enumerate() {
        columns = columns.max(row.len());
        for (c, cell) in row.iter().enumerate() {
            let (left, right, top, bottom) = (x(c), x(c + 1), y(r), y(r + 1));
            let (fill, class) = match (cell.number, cell.tiles[0]) {
                (None, _) => ("#ffffff", "padding"),
                (Some(_), None) => ("#f3f4f6", "cell"),
                (Some(_), Some(tile)) => (FILLS[super::turn(tile, FILLS.len())], "cell"),
            };
            cells += &format!(
                "<rect x=\"{left}\" y=\"{top}\" width=\"{cell_width}\" height=\"{CELL_HEIGHT}\" \
                 fill=\"{fill}\"/><text x=\"{}\" y=\"{}\" class=\"{class}\">{}</text>\n",
                left + cell_width / 2,
                top + CELL_HEIGHT - 8,
                cell.label()
            );
            // The sides of the cell; at the edge of the grid they part it from
            // what is outside.
            let edge = Some(Boundary::Tile);
            let boundary = |other| Boundary::between(cell, other);
            let before = c.checked_sub(1).and_then(|c| row.get(c));
            let above = r.checked_sub(1).and_then(|r| grid.rows[r].get(c));
            let below = grid.rows.get(r + 1).and_then(|row| row.get(c));
            part(before.map_or(edge, boundary), (left, top), (left, bottom));
            part(above.map_or(edge, boundary), (left, top), (right, top));
            if c + 1 == row.len() {
                part(edge, (right, top), (right, bottom));
            }
            if below.is_none() {
                part(edge, (left, bottom), (right, bottom));
            }
        }
    }
    *body += &cells;
    *body += &subtile_lines;
    *body += &tile_lines;
    cell_width * number(columns)
}

fn line(y: u64, class: &str, text: &str) -> String {
    format!("<text x=\"{MARGIN}\" y=\"{y}\" class=\"{class}\">{}</text>\n", escape(text))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn chars(text: &str) -> u64 {
    number(text.chars().count())
}

fn length<T>(items: &[T]) -> u64 {
    number(items.len())
}

/// Cells are few; this cannot fail.
fn number(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
