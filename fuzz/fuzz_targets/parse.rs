//! Any bytes are an error that knows its place, or a shape that prints and
//! parses back, with sizes and steps that do not panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use relayout::{AnyShape, Layout, Shape};

fuzz_target!(|text: &str| {
    match text.parse::<AnyShape>() {
        Ok(shape) => assert_eq!(shape.to_string().parse(), Ok(shape)),
        Err(e) => assert!(text.is_char_boundary(e.at()) && !e.to_string().is_empty()),
    }
    if let Ok(layout) = text.parse::<Layout>() {
        assert_eq!(layout.to_string().parse(), Ok(layout));
    }
    if let Ok(shape) = text.parse::<Shape>() {
        if let Ok(sizes) = shape.sizes() {
            assert!(sizes.image_elements >= sizes.elements);
        }
        let _ = shape.warnings();
        let _ = shape.steps();
    }
});
