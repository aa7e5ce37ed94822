//! What holds of every shape, tried on shapes that proptest makes up.

mod common;

use std::collections::HashSet;

use common::{arb_any_layout, arb_bytes, arb_shape};
use proptest::prelude::*;
use relayout::index::{ImageMap, linear_index, linear_index_with_tile};
use relayout::{AnyShape, ElementType, Layout, Shape, Tile, Tuple, oracle};
use relayout_testing::{Choices, index};

proptest! {
    #[test]
    fn printing_and_parsing_are_inverse(shape in arb_any_layout()) {
        let text = shape.to_string();
        prop_assert_eq!(text.parse::<Shape>(), Ok(shape.clone()));
        let layout = shape.layout();
        prop_assert_eq!(&layout.to_string().parse::<Layout>().unwrap(), layout);
        let spaced: String = text.chars().flat_map(|c| match c {
            ',' | ':' | '(' | ')' | '{' | '}' | '[' | ']' => vec![' ', c, '\t'],
            c => vec![c],
        }).collect();
        prop_assert_eq!(spaced.parse::<Shape>(), Ok(shape.clone()));
        let tuple = AnyShape::Tuple(Tuple::new([shape.into(), AnyShape::Token]).unwrap());
        prop_assert_eq!(tuple.to_string().parse::<AnyShape>(), Ok(tuple));
    }

    /// Index and inverse are each other's inverse, the map is injective, and
    /// every image element is an element or padding.
    #[test]
    fn the_map_is_a_bijection_up_to_padding(shape in arb_shape()) {
        let map = ImageMap::new(&shape).unwrap();
        prop_assume!(map.image_elements() < 100_000);
        let mut seen = HashSet::new();
        for k in 0..map.image_elements() {
            if let Some(index) = map.logical_index(k).unwrap() {
                prop_assert_eq!(map.image_element(&index), Ok(k));
                prop_assert!(seen.insert(index));
            }
        }
        prop_assert_eq!(seen.len() as u64, map.elements());
        for n in 0..map.elements() {
            let index = map.index_of(n).unwrap();
            prop_assert_eq!(map.linear_index(&index), Ok(n));
            let k = map.image_element(&index).unwrap();
            prop_assert_eq!(map.logical_index(k).unwrap(), Some(index));
        }
    }

    /// The same at the edges of absurd shapes, whose sizes never wrap.
    #[test]
    fn any_map_has_an_inverse(bytes in arb_bytes()) {
        index(&mut Choices::new(&bytes));
    }

    /// A shape with one tile is the document's formula, which is written
    /// without levels.
    #[test]
    fn one_tile_is_the_formula(
        dimensions in prop::collection::vec((1..9_u64, any::<prop::sample::Index>()), 1..4),
        tile in prop::collection::vec(1..5_u64, 1..4),
    ) {
        let d: Vec<u64> = dimensions.iter().map(|&(d, _)| d).collect();
        let e: Vec<u64> = dimensions.iter().map(|(d, e)| e.index(*d as usize) as u64).collect();
        let t = &tile[..tile.len().min(d.len())];
        let layout = Layout::row_major(d.len()).unwrap();
        let tiled = layout.clone().with_tiles([Tile::new(t.iter().copied()).unwrap()]).unwrap();
        let map = |layout| {
            ImageMap::new(&Shape::new(ElementType::U8, d.clone(), layout).unwrap()).unwrap()
        };
        prop_assert_eq!(map(tiled).image_element(&e), linear_index_with_tile(&e, &d, t));
        prop_assert_eq!(map(layout).image_element(&e), linear_index(&e, &d));
    }

    /// Padding is zero, and unpacking gives what was packed.
    #[test]
    fn packing_writes_zeros_and_can_be_undone(shape in arb_shape(), seed in any::<u64>()) {
        let sizes = shape.sizes().unwrap();
        prop_assume!(sizes.image_elements < 20_000);
        let bits = shape.element_type().bits();
        let mask = if bits < 8 { (1_u8 << bits) - 1 } else { 0xff };
        let host: Vec<u8> = (0..sizes.host_bytes)
            .map(|i| ((seed ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 & mask)
            .collect();
        let mut image = vec![0xee; sizes.image_bytes as usize];
        oracle::pack(&shape, &host, &mut image).unwrap();

        let map = ImageMap::new(&shape).unwrap();
        let bits = u64::from(shape.element_bits());
        for k in (0..sizes.image_elements).filter(|&k| map.logical_index(k).unwrap().is_none()) {
            for bit in k * bits..(k + 1) * bits {
                prop_assert_eq!(image[(bit / 8) as usize] >> (bit % 8) & 1, 0, "padding {}", k);
            }
        }
        let mut back = vec![0xee; host.len()];
        oracle::unpack(&shape, &image, &mut back).unwrap();
        prop_assert_eq!(back, host);
    }

    /// Any text at all is read or refused, and an error knows its place.
    #[test]
    fn no_text_panics(text in "[a-z0-9\\[\\]{}(),:*∗?<=#TSLEDPMC /\\-\u{e9}\n]{0,60}") {
        if let Err(e) = text.parse::<AnyShape>() {
            prop_assert!(text.is_char_boundary(e.at()));
            prop_assert!(!e.to_string().is_empty());
        }
        let _ = text.parse::<Layout>();
    }

    /// A right text with one change is read or refused, and never panics.
    #[test]
    fn no_mutated_text_panics(
        shape in arb_shape(),
        at in any::<prop::sample::Index>(),
        with in "[a-z0-9\\[\\]{}(),:*∗?<=#TSLEDPMC /\\-]{0,3}",
        keep in any::<bool>(),
    ) {
        let mut text = shape.to_string();
        let at = at.index(text.len());
        text.replace_range(at..at + usize::from(!keep), &with);
        if let Ok(other) = text.parse::<AnyShape>() {
            prop_assert_eq!(other.to_string().parse(), Ok(other));
        }
    }
}
