//! What the integration tests share: the corpus and generated shapes.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::path::Path;

use proptest::prelude::*;
use relayout::{AnyShape, Bound, ElementType, Executor, Shape, Split};
use relayout_testing::{Choices, noise, small_shape};
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

/// The same layout on an array of few elements: larger bounds are folded down
/// to at most 37 (11 in three dimensions, 5 in more), which leaves them ragged
/// against the tiles.
pub(crate) fn reduced(shape: &Shape) -> Shape {
    let bounds = shape.bounds().unwrap();
    let most = match bounds.len() {
        0..=2 => 37,
        3 => 11,
        _ => 5,
    };
    let bounds = bounds.iter().map(|&b| if b > most { b % most + 1 } else { b });
    Shape::new(shape.element_type(), bounds, shape.layout().clone()).unwrap()
}

/// Bytes that tell elements apart, as far as their width allows.
pub(crate) fn host_bytes(shape: &Shape) -> Vec<u8> {
    let bits = shape.element_type().bits();
    let mask = if bits < 8 { (1_u8 << bits) - 1 } else { 0xff };
    noise(shape.sizes().unwrap().host_bytes, 0).iter().map(|byte| byte & mask).collect()
}

/// Threads started for each run.
pub(crate) struct Scoped(pub(crate) usize);

impl Executor for Scoped {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for i in 0..count {
                scope.spawn(move || task(i));
            }
        });
    }
}

/// So many cases of a property, unless `PROPTEST_CASES` says otherwise.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok());
    ProptestConfig { cases: asked.unwrap_or(usual), ..ProptestConfig::default() }
}

/// What the decisions of the generators are made from.
pub(crate) fn arb_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..600)
}

/// A small array of any element type in any layout.
pub(crate) fn arb_shape() -> impl Strategy<Value = Shape> {
    arb_bytes().prop_map(|bytes| small_shape(&mut Choices::new(&bytes), 4000))
}

/// A shape with attributes of every kind and dynamic bounds, to be printed and
/// read; it may have no image.
pub(crate) fn arb_any_layout() -> impl Strategy<Value = Shape> {
    let number = || prop_oneof![1..200_u64, Just(i64::MAX as u64)];
    let integer = || {
        let integers: Vec<_> =
            ElementType::ALL.iter().copied().filter(|t| t.is_integer()).collect();
        prop::option::of(prop::sample::select(integers))
    };
    let splits = prop::collection::vec(
        (any::<prop::sample::Index>(), prop::collection::vec(number(), 1..3)),
        0..3,
    );
    let attributes = (
        prop::option::of(number()),
        integer(),
        integer(),
        prop::option::of(0..128_u64),
        splits,
        prop::option::of(arb_shape()),
        prop::option::of(number()),
    );
    (arb_shape(), attributes, any::<u64>()).prop_map(|(shape, attributes, dynamic)| {
        let (tail, index, pointer, space, splits, physical, prefix) = attributes;
        let mut layout = shape.layout().clone();
        if let Some(n) = tail {
            layout = layout.with_tail_alignment_elements(n).unwrap();
        }
        if let Some(t) = index {
            layout = layout.with_index_type(t).unwrap();
        }
        if let Some(t) = pointer {
            layout = layout.with_pointer_type(t).unwrap();
        }
        if let Some(n) = space {
            layout = layout.with_memory_space(n).unwrap();
        }
        if shape.rank() > 0 {
            let split = |(at, indices): (prop::sample::Index, Vec<u64>)| {
                Split::new(at.index(shape.rank()), indices).unwrap()
            };
            layout = layout.with_splits(splits.into_iter().map(split).collect::<Vec<_>>()).unwrap();
        }
        if let Some(s) = physical {
            layout = layout.with_physical_shape(AnyShape::Array(s)).unwrap();
        }
        if let Some(n) = prefix {
            layout = layout.with_metadata_prefix_bytes(n).unwrap();
        }
        let bound = |(i, &bound): (usize, &Bound)| match (dynamic >> (2 * i) & 3, bound) {
            (0, Bound::Static(n)) => Bound::AtMost(n),
            (1, _) => Bound::Unbounded,
            (_, bound) => bound,
        };
        let dimensions: Vec<Bound> = shape.dimensions().iter().enumerate().map(bound).collect();
        Shape::new(shape.element_type(), dimensions, layout).unwrap()
    })
}
