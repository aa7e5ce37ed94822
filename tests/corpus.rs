//! What XLA's parser, TPU compilers and an independent model say, against
//! this crate. `tests/data/README.md` tells where each file comes from.

mod common;

use common::{host_bytes, json_lines, lines, reduced, shape, text};
use relayout::index::{ImageMap, linear_index};
use relayout::{AnyShape, Shape, Step, oracle, tpu};

#[test]
fn texts_that_xla_reads_print_as_it_prints_them() {
    let cases = json_lines("xla_text_ok.jsonl");
    assert_eq!(cases.len(), 470);
    for case in &cases {
        let (text, canonical) = (text(case, "text"), text(case, "canonical"));
        let shape: AnyShape = text.parse().unwrap_or_else(|e| panic!("{text:?}: {e}"));
        assert_eq!(shape.to_string(), canonical, "{text:?}");
        assert_eq!(canonical.parse(), Ok(shape), "{canonical:?}");
    }
}

#[test]
fn texts_that_mean_nothing_are_refused() {
    let mut count = 0;
    for name in ["xla_text_bad.jsonl", "xla_text_nonsense.jsonl"] {
        for case in json_lines(name) {
            let text = text(&case, "text");
            match text.parse::<AnyShape>() {
                Ok(shape) => panic!("{name}: {text:?} was read as {shape}"),
                Err(e) => {
                    assert!(text.is_char_boundary(e.at()), "{text:?}: {}", e.at());
                    let caret = e.to_string().lines().last().unwrap().find('^');
                    assert!(caret.is_some(), "{text:?}");
                }
            }
            count += 1;
        }
    }
    assert_eq!(count, 218 + 55);
}

/// For each image element the row-major number of what stands there, or -1.
fn golden_image(case: &serde_json::Value) -> Vec<i64> {
    case["image"].as_array().unwrap().iter().map(|k| k.as_i64().unwrap()).collect()
}

#[test]
fn golden_images_are_reproduced_in_both_directions() {
    let cases = json_lines("golden.jsonl");
    assert_eq!(cases.len(), 309);
    for case in &cases {
        let text = text(case, "shape");
        let map = ImageMap::new(&shape(text)).unwrap();
        let image = golden_image(case);
        assert_eq!(map.image_elements(), image.len() as u64, "{text}");
        for (k, &number) in (0_u64..).zip(&image) {
            let index = map.logical_index(k).unwrap();
            let Ok(number) = u64::try_from(number) else {
                assert_eq!(index, None, "{text} at {k}");
                continue;
            };
            let expected = map.index_of(number).unwrap();
            assert_eq!(index.as_ref(), Some(&expected), "{text} at {k}");
            assert_eq!(map.image_element(&expected), Ok(k), "{text} at {expected:?}");
        }
    }
}

/// Carries out the steps of a shape on an array of numbers, -1 being padding.
fn execute(steps: &[Step], bounds: &[u64], mut array: Vec<i64>) -> Vec<i64> {
    let mut bounds = bounds.to_vec();
    for step in steps {
        // The bounds that the step leads to, and for an index into them the one
        // it comes from, which may lie outside.
        let to: Vec<u64> = match step {
            Step::PadTo(to) | Step::ReshapeTo(to) => to.clone(),
            Step::TransposeBy(by) => by.iter().map(|&d| bounds[d]).collect(),
        };
        let comes_from = |index: Vec<u64>| match step {
            Step::PadTo(_) => index,
            Step::TransposeBy(by) => {
                let mut from = vec![0; index.len()];
                by.iter().zip(index).for_each(|(&d, i)| from[d] = i);
                from
            }
            Step::ReshapeTo(_) => panic!("a reshape moves nothing"),
        };
        if matches!(step, Step::ReshapeTo(_)) {
            assert_eq!(to.iter().product::<u64>(), array.len() as u64);
        } else {
            let value = |from: Vec<u64>| match linear_index(&from, &bounds) {
                Ok(k) => array[k as usize],
                Err(_) => -1,
            };
            array = all_indices(&to).map(comes_from).map(value).collect();
        }
        bounds = to;
    }
    array
}

/// All indices into `bounds`, in row-major order.
fn all_indices(bounds: &[u64]) -> impl Iterator<Item = Vec<u64>> {
    (0..bounds.iter().product()).map(move |mut k: u64| {
        let mut index = vec![0; bounds.len()];
        for (i, b) in index.iter_mut().zip(bounds).rev() {
            (*i, k) = (k % b, k / b);
        }
        index
    })
}

#[test]
fn the_steps_lead_to_the_golden_images() {
    for case in &json_lines("golden.jsonl") {
        let text = text(case, "shape");
        let shape = shape(text);
        let image = golden_image(case);
        let elements = shape.sizes().unwrap().elements as i64;
        let steps = shape.steps().unwrap();
        let reached = execute(&steps, &shape.bounds().unwrap(), (0..elements).collect());
        assert_eq!(reached, image, "{text}: {steps:?}");
    }
}

/// The bytes of elements of `bits` bits, each given by its value's low bits,
/// least significant bit first. Written without the library.
fn bits_to_bytes(values: impl IntoIterator<Item = u128>, bits: u32) -> Vec<u8> {
    let mut all = Vec::new();
    for value in values {
        all.extend((0..bits).map(|bit| value >> bit & 1 == 1));
    }
    let byte = |bits: &[bool]| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit));
    all.chunks(8).map(byte).collect()
}

/// Every golden image with elements of every width, made from the map alone.
#[test]
fn packing_gives_the_golden_images_in_every_width() {
    use relayout::ElementType::*;
    let mut packed = 0;
    for case in &json_lines("golden.jsonl") {
        let map_of = shape(text(case, "shape"));
        let image = golden_image(case);
        for (element_type, bits) in [
            (Pred, 1),
            (S1, 1),
            (U2, 2),
            (F4e2m1fn, 4),
            (S2, 4),
            (Pred, 8),
            (F6e2m3fn, 8),
            (F8e5m2, 8),
            (Bf16, 16),
            (F32, 32),
            (C64, 64),
            (C128, 128),
        ] {
            let layout = map_of.layout().clone().with_element_bits(bits.into()).unwrap();
            let shape =
                Shape::new(element_type, map_of.dimensions().iter().copied(), layout).unwrap();
            // A value for each element that uses all the bits it has.
            let mask = u128::MAX >> (128 - element_type.bits());
            let value = |number: i64| match u128::try_from(number) {
                Ok(number) => {
                    (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) >> 3 & mask
                }
                Err(_) => 0,
            };
            let elements = shape.sizes().unwrap().elements as i64;
            let host = bits_to_bytes((0..elements).map(value), 8 * element_type.host_bytes());
            let expected = bits_to_bytes(image.iter().map(|&number| value(number)), bits);

            let mut packed_image = vec![0xee; expected.len()];
            oracle::pack(&shape, &host, &mut packed_image).unwrap();
            assert!(packed_image == expected, "{shape}");
            let mut back = vec![0xee; host.len()];
            oracle::unpack(&shape, &expected, &mut back).unwrap();
            assert!(back == host, "{shape}");
            packed += 1;
        }
    }
    assert_eq!(packed, 309 * 12);
}

#[test]
fn tpu_buffers_have_the_bytes_that_the_compiler_gave_them() {
    let cases = json_lines("tpu_layouts.jsonl");
    assert_eq!(cases.len(), 800);
    for case in &cases {
        let text = text(case, "shape");
        let sizes = shape(text).sizes().unwrap();
        let bytes = case["bytes"].as_u64().unwrap();
        assert_eq!(shape(text).array_size_bytes(), Ok(bytes), "{text} on {}", case["chip"]);
        assert_eq!(sizes.image_bytes, bytes, "{text} on {}", case["chip"]);
    }
}

#[test]
fn tpu_buffers_have_the_layout_that_the_compiler_gave_them() {
    for case in &json_lines("tpu_layouts.jsonl") {
        let given = shape(text(case, "shape"));
        let chip = text(case, "chip").parse().unwrap();
        let (element_type, bounds) = (given.element_type(), given.bounds().unwrap());
        let layout = tpu::default_layout(chip, element_type, &bounds).unwrap();
        assert_eq!(given.with_layout(layout.clone()).unwrap(), given);
        let ranked = tpu::ranked_layouts(chip, element_type, &bounds).unwrap();
        assert_eq!(ranked[0], layout, "{given}");
        let rank = bounds.len();
        assert_eq!(ranked.len(), (rank * rank.saturating_sub(1)).max(1), "{given}");
    }
}

fn round_trip(shape: &Shape) -> Vec<u8> {
    let host = host_bytes(shape);
    let mut image = vec![0xee; shape.sizes().unwrap().image_bytes as usize];
    oracle::pack(shape, &host, &mut image).unwrap();
    let mut back = vec![0xee; host.len()];
    oracle::unpack(shape, &image, &mut back).unwrap();
    assert_eq!(back, host, "{shape}");
    image
}

#[test]
fn every_layout_of_tpu_programs_takes_an_array_there_and_back() {
    let mut texts = lines("hlo_shapes.txt");
    texts.extend(json_lines("tpu_layouts.jsonl").iter().map(|case| text(case, "shape").to_owned()));
    let mut seen = std::collections::HashSet::new();
    for text in texts {
        let shape = reduced(&shape(&text));
        if seen.insert(shape.to_string()) {
            round_trip(&shape);
        }
    }
    assert!(seen.len() > 400, "{}", seen.len());
}

#[test]
fn relayouts_of_tpu_programs_agree_with_packing() {
    let pairs = lines("relayouts.txt");
    assert_eq!(pairs.len(), 60);
    for pair in pairs {
        let (from, to) = pair.split_once(" -> ").unwrap();
        let (from, to) = (reduced(&shape(from)), reduced(&shape(to)));
        let (source, expected) = (round_trip(&from), round_trip(&to));
        let mut image = vec![0xee; expected.len()];
        oracle::between(&from, &to, &source, &mut image).unwrap();
        assert_eq!(image, expected, "{pair}");
    }
}
