//! Shapes: small ones of all kinds, and any that there can be.

use std::sync::LazyLock;

use relayout::{Bound, ElementType, Layout, Shape, Tile, TileEntry};

use crate::Choices;

/// The layouts that XLA's programs have, from the corpus.
static LAYOUTS: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let texts = include_str!("../../tests/data/hlo_shapes.txt").lines();
    let relayouts = include_str!("../../tests/data/relayouts.txt").split_whitespace();
    let mut shapes: Vec<Shape> = texts.chain(relayouts).filter_map(|s| s.parse().ok()).collect();
    assert!(shapes.len() > 100, "the corpus is not what it was");
    let key = |shape: &Shape| (shape.element_type() as u8, shape.layout().to_string());
    shapes.sort_by_key(key);
    shapes.dedup_by_key(|shape| key(shape));
    shapes
});

/// Formats of TPUs whose kernels are hardly met otherwise: several elements in a word,
/// below a byte, and words of each dimension; and tiles that do not refine each other,
/// or combine what was tiled, which have no loops.
const RARE: &[&str] = &[
    "pred[8,8]{1,0:T(32,128)(32,1)E(1)}",
    "pred[8,8]{0,1:T(32,128)(32,1)E(1)}",
    "pred[8,8]{1,0:T(8,128)(4,1)}",
    "s4[8,8]{1,0:T(8,128)(8,1)E(4)}",
    "s4[8,8]{0,1:T(8,128)(8,1)E(4)}",
    "u4[8,8]{1,0:T(64,128)(8,1)E(4)}",
    "u2[8,8]{1,0:T(16,128)(16,1)E(2)}",
    "s2[8,8]{0,1:T(16,128)(16,1)E(2)}",
    "s8[8,8]{1,0:T(32,128)(4,1)}",
    "s8[8,8]{0,1:T(8,128)(4,1)}",
    "bf16[8,8]{0,1:T(8,128)(2,1)}",
    "bf16[8,8]{1,0:T(8,128)(2,1,1,1)}",
    "s1[8,8]{1,0:T(4,7)(3,2)E(1)}",
    "u8[8,8]{1,0:T(4,4)(*,6)}",
    "u4[8,8]{1,0:T(*,3)E(4)}",
    "f32[8,8,8]{0,2,1:T(*,*,5)(3,2)}",
    "s16[8]{0:T(9973)(3)(2)}",
];

/// An array whose image has at most about so many elements: of any element type, with
/// tiles, combined dimensions, tiles longer than the rank, zero bounds, dynamic bounds;
/// or in a layout of the corpus, or of a rare kind, with bounds beside those of its
/// tiles, and then with up to three tiles if these are larger.
pub fn small_shape(choices: &mut Choices<'_>, most_elements: u64) -> Shape {
    let rare;
    let like = match choices.below(6) {
        4 => Some(choices.pick(&LAYOUTS)),
        5 => {
            rare = choices.pick(RARE).parse().unwrap();
            Some(&rare)
        }
        _ => None,
    };
    let (element_type, mut bounds, layout) = if let Some(shape) = like {
        let bounds = bounds_beside_tiles(choices, shape);
        (shape.element_type(), bounds, shape.layout().clone())
    } else {
        let element_type = *choices.pick(ElementType::ALL);
        let most_rank = if choices.one_in(8) { 9 } else { 5 };
        let bounds: Vec<u64> =
            (0..choices.below(most_rank)).map(|_| small_bound(choices, 11)).collect();
        let layout = Layout::new(choices.order(bounds.len())).unwrap();
        let tiles: Vec<Tile> = (0..choices.below(4)).map(|_| small_tile(choices)).collect();
        let mut layout = layout.with_tiles(tiles).unwrap();
        let widths: Vec<u32> = element_type.image_bits().collect();
        if choices.one_in(2) {
            layout = layout.with_element_bits((*choices.pick(&widths)).into()).unwrap();
        }
        if choices.one_in(16) {
            layout = layout.with_tail_alignment_elements(1 + choices.below(40)).unwrap();
        }
        (element_type, bounds, layout)
    };
    let tile = layout.tiles().iter().flat_map(|tile| tile.entries()).fold(1_u64, |n, e| match e {
        TileEntry::Bound(bound) => n.saturating_mul(*bound),
        _ => n,
    });
    let most_elements =
        if like.is_some() { most_elements.max(3 * tile.min(8192)) } else { most_elements };
    let is_dynamic = choices.one_in(16);
    loop {
        let dimensions = bounds.iter().map(|&bound| match is_dynamic {
            true => Bound::AtMost(bound),
            false => Bound::Static(bound),
        });
        let shape = Shape::new(element_type, dimensions, layout.clone()).unwrap();
        let fits = shape.sizes().is_ok_and(|sizes| sizes.image_elements <= most_elements);
        match bounds.iter_mut().max() {
            // Tiles alone may be more.
            Some(most) if *most > 1 && !fits => *most /= 2,
            _ => return shape,
        }
    }
}

/// From 1 to `most`; zero now and then.
fn small_bound(choices: &mut Choices<'_>, most: u64) -> u64 {
    let bound = 1 + choices.below(most);
    if choices.one_in(24) { 0 } else { bound }
}

/// Bounds for a layout: mostly a few tiles and something.
fn bounds_beside_tiles(choices: &mut Choices<'_>, shape: &Shape) -> Vec<u64> {
    let mut bounds = vec![0; shape.rank()];
    let tile = shape.layout().tiles().first();
    let entries = tile.map_or(&[][..], |tile| tile.entries());
    for (i, &dimension) in shape.layout().minor_to_major().iter().enumerate() {
        let entry = entries.len().checked_sub(i + 1).map(|i| entries[i]);
        let tile = match entry {
            Some(TileEntry::Bound(bound)) => bound,
            _ => 1,
        };
        let near = (choices.below(4) * tile + choices.below(5)).saturating_sub(2).max(1);
        bounds[dimension] = match choices.below(4) {
            0 | 1 => near,
            2 => 1 + choices.below(3 * tile),
            _ => small_bound(choices, 6),
        };
    }
    bounds
}

fn small_tile(choices: &mut Choices<'_>) -> Tile {
    let mut entries: Vec<TileEntry> = (0..choices.below(3))
        .map(|_| match choices.below(7) {
            6 => TileEntry::Combine,
            _ => TileEntry::Bound(1 + choices.below(5)),
        })
        .collect();
    entries.push(TileEntry::Bound(1 + choices.below(5)));
    Tile::new(entries).unwrap()
}

/// The same array in another layout whose image has at most about so many elements.
pub fn another_layout(choices: &mut Choices<'_>, shape: &Shape, most_elements: u64) -> Shape {
    let layout = match choices.below(4) {
        0 => shape.in_host_layout().layout().clone(),
        1 => {
            let same: Vec<&Shape> = LAYOUTS
                .iter()
                .filter(|s| s.rank() == shape.rank() && s.element_type() == shape.element_type())
                .collect();
            match same[..] {
                [] => shape.layout().clone(),
                _ => choices.pick(&same).layout().clone(),
            }
        }
        kind => {
            let order = match kind {
                2 => shape.layout().minor_to_major().to_vec(),
                _ => choices.order(shape.rank()),
            };
            let tiles: Vec<Tile> = (0..choices.below(4)).map(|_| small_tile(choices)).collect();
            let layout = Layout::new(order).unwrap().with_tiles(tiles).unwrap();
            let widths: Vec<u32> = shape.element_type().image_bits().collect();
            layout.with_element_bits((*choices.pick(&widths)).into()).unwrap()
        }
    };
    let other = shape.with_layout(layout).unwrap();
    let fits = other.sizes().is_ok_and(|sizes| sizes.image_elements <= most_elements);
    if fits { other } else { shape.in_host_layout() }
}

/// Any shape at all, absurd ones too; `None` where these decisions make none.
pub fn any_shape(choices: &mut Choices<'_>) -> Option<Shape> {
    let element_type = *choices.pick(ElementType::ALL);
    let rank = if choices.one_in(8) { choices.below(66) } else { choices.below(6) };
    let dimensions: Vec<Bound> = (0..rank)
        .map(|_| match choices.below(32) {
            31 => Bound::Unbounded,
            27..=30 => Bound::AtMost(choices.number()),
            _ => Bound::Static(choices.number()),
        })
        .collect();
    let mut order = choices.order(dimensions.len());
    if choices.one_in(32) {
        // No order, mostly.
        order = (0..choices.below(5)).map(|_| choices.number() as usize).collect();
    }
    let mut tiles = Vec::new();
    for _ in 0..choices.below(5) {
        let entries = choices.below(4);
        let entry = |_| match choices.below(8) {
            7 => TileEntry::Combine,
            _ => TileEntry::Bound(choices.number()),
        };
        tiles.push(Tile::new((0..entries).map(entry).collect::<Vec<_>>()).ok()?);
    }
    let mut layout = Layout::new(order).ok()?.with_tiles(tiles).ok()?;
    if choices.one_in(3) {
        let widths: Vec<u32> = element_type.image_bits().collect();
        let bits =
            if choices.one_in(8) { choices.number() } else { (*choices.pick(&widths)).into() };
        layout = layout.with_element_bits(bits).ok()?;
    }
    Shape::new(element_type, dimensions, layout).ok()
}
