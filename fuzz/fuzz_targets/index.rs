//! For an arbitrary shape, the index and its inverse agree at the edges and at
//! arbitrary places, and sizes never wrap.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use relayout::index::ImageMap;
use relayout::{Bound, ElementType, Layout, Shape, Tile, TileEntry};

#[derive(Arbitrary, Debug)]
struct Input {
    element_type: u8,
    dimensions: Vec<(u8, u64)>,
    order: Vec<u8>,
    tiles: Vec<Vec<Option<(u8, u64)>>>,
    places: Vec<u64>,
}

/// Mostly small, sometimes near a power of two, sometimes anything.
fn number((kind, n): (u8, u64)) -> u64 {
    match kind % 8 {
        0..=4 => n % 17,
        5 => n % 1025,
        6 => (1_u64 << (n % 64)).wrapping_sub(n >> 62),
        _ => n,
    }
}

fn shape(input: &Input) -> Option<Shape> {
    let element_type = ElementType::ALL[usize::from(input.element_type) % ElementType::ALL.len()];
    let dimensions: Vec<Bound> = input
        .dimensions
        .iter()
        .take(64)
        .map(|&(kind, n)| match kind {
            255 => Bound::Unbounded,
            200..=254 => Bound::AtMost(number((kind, n))),
            _ => Bound::Static(number((kind, n))),
        })
        .collect();
    let mut minor_to_major: Vec<usize> = (0..dimensions.len()).collect();
    for (i, &j) in input.order.iter().take(dimensions.len()).enumerate() {
        minor_to_major.swap(i, usize::from(j) % dimensions.len());
    }
    let tile = |entries: &Vec<Option<(u8, u64)>>| {
        let entry = |e: &Option<_>| e.map_or(TileEntry::Combine, |e| TileEntry::Bound(number(e)));
        Tile::new(entries.iter().map(entry).collect::<Vec<_>>()).ok()
    };
    let tiles: Option<Vec<Tile>> = input.tiles.iter().take(6).map(tile).collect();
    let layout = Layout::new(minor_to_major).ok()?.with_tiles(tiles?).ok()?;
    Shape::new(element_type, dimensions, layout).ok()
}

fuzz_target!(|input: Input| {
    let Some(shape) = shape(&input) else { return };
    let Ok(map) = ImageMap::new(&shape) else {
        return;
    };
    let sizes = shape.sizes().expect("a shape with a map has sizes");
    assert!(sizes.image_elements >= sizes.elements);
    assert_eq!((map.elements(), map.image_elements()), (sizes.elements, sizes.image_elements));

    let edges = [0, 1, u64::MAX, sizes.elements, sizes.image_elements];
    let places = input.places.iter().copied().chain(edges.map(|n| n.wrapping_sub(1)));
    for place in places {
        if sizes.image_elements > 0 {
            let k = place % sizes.image_elements;
            if let Some(index) = map.logical_index(k).expect("inside the image") {
                assert_eq!(map.image_element(&index), Ok(k));
            }
        }
        if sizes.elements > 0 {
            let index = map.index_of(place % sizes.elements).expect("an element");
            let k = map.image_element(&index).expect("an index");
            assert!(k < sizes.image_elements);
            assert_eq!(map.logical_index(k), Ok(Some(index)));
        }
        if place >= sizes.image_elements {
            assert!(map.logical_index(place).is_err());
        }
    }
});
