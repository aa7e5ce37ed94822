//! What holds of every shape, tried on shapes that proptest makes up.

mod common;

use std::collections::HashSet;

use common::arb_shape;
use proptest::prelude::*;
use relayout::index::{ImageMap, linear_index, linear_index_with_tile};
use relayout::{AnyShape, Layout, Shape, oracle};

proptest! {
    #[test]
    fn printing_and_parsing_are_inverse(shape in arb_shape()) {
        let text = shape.to_string();
        prop_assert_eq!(text.parse::<Shape>(), Ok(shape.clone()));
        let layout = shape.layout();
        prop_assert_eq!(&layout.to_string().parse::<Layout>().unwrap(), layout);
        let spaced: String = text.chars().flat_map(|c| match c {
            ',' | ':' | '(' | ')' | '{' | '}' | '[' | ']' => vec![' ', c, '\t'],
            c => vec![c],
        }).collect();
        prop_assert_eq!(spaced.parse::<Shape>(), Ok(shape.clone()));
        let tuple = AnyShape::Tuple(vec![shape.into(), AnyShape::Token]);
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
            let index = map.row_major_index(n).unwrap();
            prop_assert_eq!(map.row_major_number(&index), Ok(n));
            let k = map.image_element(&index).unwrap();
            prop_assert_eq!(map.logical_index(k).unwrap(), Some(index));
        }
    }

    /// A shape with one tile is the document's formula, which is written
    /// without levels.
    #[test]
    fn one_tile_is_the_formula(
        (d, t) in (1..4_usize).prop_flat_map(|n| (
            prop::collection::vec(1..9_u64, n),
            prop::collection::vec(1..5_u64, 1..=n),
        )),
        seed in any::<u64>(),
    ) {
        let e: Vec<u64> = d.iter().map(|d| seed % d).collect();
        let list = |v: &[u64]| v.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        let order: Vec<u64> = (0..d.len() as u64).rev().collect();
        let tiled = format!("u8[{}]{{{}:T({})}}", list(&d), list(&order), list(&t));
        let map = ImageMap::new(&common::shape(&tiled)).unwrap();
        prop_assert_eq!(map.image_element(&e), linear_index_with_tile(&e, &d, &t));
        let dense = ImageMap::new(&common::shape(&format!("u8[{}]", list(&d)))).unwrap();
        prop_assert_eq!(dense.image_element(&e), linear_index(&e, &d));
    }

    /// Packing puts each element at its place and zeros everywhere else.
    #[test]
    fn packing_writes_each_element_once_and_zeros(shape in arb_shape(), seed in any::<u64>()) {
        let sizes = shape.sizes().unwrap();
        prop_assume!(sizes.image_elements < 20_000);
        let bits = shape.element_type().bits();
        let mask = if bits < 8 { (1_u8 << bits) - 1 } else { 0xff };
        let host: Vec<u8> = (0..sizes.host_bytes)
            .map(|i| ((seed ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 & mask)
            .collect();
        let mut image = vec![0xee; sizes.image_bytes as usize];
        oracle::pack(&shape, &host, &mut image).unwrap();

        let ones = |bytes: &[u8]| bytes.iter().map(|b| u64::from(b.count_ones())).sum::<u64>();
        prop_assert_eq!(ones(&image), ones(&host));
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
