//! What the integration tests share: the corpus and generated shapes.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::path::Path;

use proptest::prelude::*;
use relayout::{ElementType, Layout, Shape, Tile, TileEntry};
use serde_json::Value;

/// The lines of a corpus file. Its README tells where each comes from.
pub(crate) fn lines(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(str::to_owned).collect()
}

/// The lines of a corpus file of JSON objects.
pub(crate) fn json_lines(name: &str) -> Vec<Value> {
    lines(name).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The string under `key`.
pub(crate) fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_else(|| panic!("no text `{key}` in {object}"))
}

/// A shape whose text is known to be right.
pub(crate) fn shape(text: &str) -> Shape {
    text.parse().unwrap_or_else(|e| panic!("{e}"))
}

/// A small array of any element type in any layout: up to four dimensions,
/// three tiles, combined dimensions, tiles longer than the rank, zero bounds.
pub(crate) fn arb_shape() -> impl Strategy<Value = Shape> {
    let bound = prop_oneof![8 => 1..12_u64, 1 => Just(0_u64), 1 => Just(1_u64)];
    (prop::collection::vec(bound, 0..5), prop::collection::vec(arb_tile(), 0..4))
        .prop_flat_map(|(bounds, tiles)| {
            let order: Vec<usize> = (0..bounds.len()).collect();
            (
                Just(bounds),
                Just(tiles),
                Just(order).prop_shuffle(),
                any::<prop::sample::Index>(),
                any::<prop::sample::Index>(),
            )
        })
        .prop_map(|(bounds, tiles, order, element_type, bits)| {
            let element_type = *element_type.get(ElementType::ALL);
            let mut layout = Layout::new(order).unwrap().with_tiles(tiles).unwrap();
            let widths: Vec<u32> = element_type.image_bits().collect();
            if let Some(&bits) = widths.get(bits.index(widths.len() + 1)) {
                layout = layout.with_element_bits(bits);
            }
            let bounds: Vec<_> = bounds.into_iter().map(Into::into).collect();
            Shape::new(element_type, bounds, layout).unwrap()
        })
}

fn arb_tile() -> impl Strategy<Value = Tile> {
    let entry = prop_oneof![
        6 => (1..6_u64).prop_map(TileEntry::Bound),
        1 => Just(TileEntry::Combine),
    ];
    (prop::collection::vec(entry, 0..3), 1..6_u64).prop_map(|(mut entries, last)| {
        entries.push(TileEntry::Bound(last));
        Tile::new(entries).unwrap()
    })
}
