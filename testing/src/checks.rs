//! What has to hold of every shape and of every plan from layout to layout.

use std::mem::MaybeUninit;

use relayout::index::ImageMap;
use relayout::{BitOrder, ElementType, Host, Padding, Plan, PlanBuilder, Shape, Tier, oracle};

use crate::strides::made_up_window;
use crate::{Buffer, Choices, another_layout, any_shape, small_shape};

/// Index and inverse of an arbitrary shape agree, at the edges and at arbitrary places,
/// and sizes never wrap.
pub fn index(choices: &mut Choices<'_>) {
    let Some(shape) = any_shape(choices) else { return };
    let _ = (shape.warnings(), shape.steps());
    let Ok(map) = ImageMap::new(&shape) else {
        assert!(shape.sizes().is_err(), "{shape}");
        return;
    };
    let sizes = shape.sizes().unwrap();
    assert!(sizes.image_elements >= sizes.elements);
    assert!(
        u128::from(sizes.image_bytes) * 8
            >= u128::from(sizes.image_elements) * u128::from(shape.element_bits())
    );
    assert_eq!((map.elements(), map.image_elements()), (sizes.elements, sizes.image_elements));

    let edges = [0, 1, u64::MAX, sizes.elements, sizes.image_elements];
    let mut places: Vec<u64> = edges.iter().map(|n| n.wrapping_sub(1)).collect();
    places.extend((0..4).map(|_| choices.number()));
    for place in places {
        if sizes.image_elements > 0 {
            let k = place % sizes.image_elements;
            if let Some(index) = map.logical_index(k).unwrap() {
                assert_eq!(map.image_element(&index), Ok(k), "{shape}");
            }
        }
        if sizes.elements > 0 {
            let index = map.index_of(place % sizes.elements).unwrap();
            let k = map.image_element(&index).unwrap();
            assert!(k < sizes.image_elements);
            assert_eq!(map.logical_index(k), Ok(Some(index)), "{shape}");
        }
        if place >= sizes.image_elements {
            assert!(map.logical_index(place).is_err());
        }
    }
}

/// Options of all kinds, with the byte that padding then is in a poisoned destination.
pub(crate) fn options(choices: &mut Choices<'_>, poison: u8) -> (PlanBuilder, u8) {
    let (padding, byte) = match choices.below(4) {
        2 => (Padding::Keep, poison),
        3 => (Padding::Byte(0xb7), 0xb7),
        _ => (Padding::Zero, 0),
    };
    let builder = PlanBuilder::new().tier(*choices.pick(&Tier::available())).padding(padding);
    let builder = match choices.below(3) {
        0 => builder,
        kind => builder.streaming(kind == 1),
    };
    (builder, byte)
}

/// A plan, of a whole array or of a window of it, does byte for byte what the oracle
/// does, and nothing else.
pub fn differential(choices: &mut Choices<'_>) {
    let most = *choices.pick(&[400, 2000, 8000, 30_000]);
    let one = small_shape(choices, most);
    let other = another_layout(choices, &one, most);
    let (from, to) = if choices.one_in(2) { (other, one) } else { (one, other) };
    let source = choices.noise(from.sizes().unwrap().image_bytes);
    let mut elements = vec![0xa5; to.sizes().unwrap().image_bytes as usize];
    oracle::between(&from, &to, &source, &mut elements).unwrap();

    let poison = *choices.pick(&[0xee, 0x11]);
    let (mut builder, mut byte) = options(choices, poison);
    let mut mask = element_mask(&to);
    let zeros: Vec<u8> = elements.iter().zip(&mask).map(|(b, mask)| b & mask).collect();
    assert!(zeros == elements, "the oracle did not clear the padding of {to}");
    if choices.one_in(3) {
        let bounds = to.bounds().unwrap();
        let (start, sizes) = made_up_window(choices, &bounds);
        // What is outside of it stays, whatever was asked.
        (mask, byte) = (window_mask(&to, &start, &sizes), poison);
        builder = builder.window(start, sizes);
    }
    let plan = builder.between(&from, &to).unwrap();
    let with = |byte: u8| -> Vec<u8> {
        elements.iter().zip(&mask).map(|(b, mask)| b & mask | byte & !mask).collect()
    };
    let ahead = (choices.below(64) as usize, choices.below(64) as usize);
    run_in(&plan, &source, &with(byte), ahead, poison);
    // What is kept of memory that nobody has written are zeros; all else is written.
    let byte = if byte == poison { 0 } else { byte };
    let mut memory = vec![MaybeUninit::new(poison); elements.len()];
    assert_same(plan.run_uninit(&source, &mut memory).unwrap(), &with(byte), &plan);
    assert_same(&plan.run_to_vec(&source).unwrap(), &with(byte), &plan);
}

/// Runs a plan into poisoned memory and compares.
pub(crate) fn run_in(
    plan: &Plan,
    source: &[u8],
    expected: &[u8],
    ahead: (usize, usize),
    poison: u8,
) {
    let mut source = Buffer::of(source, ahead.0);
    let mut destination = Buffer::poisoned(expected.len(), ahead.1, poison);
    plan.run(source.inside(), destination.inside()).unwrap();
    assert_same(destination.inside(), expected, plan);
    assert!(destination.guards_are(poison), "written outside:\n{}", plan.explain());
}

pub(crate) fn assert_same(are: &[u8], expected: &[u8], plan: &Plan) {
    assert_eq!(are.len(), expected.len(), "{}", plan.explain());
    if are != expected {
        let i = are.iter().zip(expected).position(|(a, b)| a != b).unwrap();
        let (is, shall) = (are[i], expected[i]);
        panic!("byte {i} is {is:#04x}, not {shall:#04x}: {}\n{}", plan.tier(), plan.explain());
    }
}

/// The bits of an image that belong to elements.
#[must_use]
pub fn element_mask(shape: &Shape) -> Vec<u8> {
    let bounds = shape.bounds().unwrap();
    window_mask(shape, &vec![0; bounds.len()], &bounds)
}

/// The bits of an image that belong to the elements of a window.
fn window_mask(shape: &Shape, start: &[u64], sizes: &[u64]) -> Vec<u8> {
    let map = ImageMap::new(shape).unwrap();
    let bits = u64::from(shape.element_bits());
    let mut mask = vec![0; shape.sizes().unwrap().image_bytes as usize];
    let is_in = |index: &[u64]| {
        (0..index.len()).all(|d| (start[d]..start[d] + sizes[d]).contains(&index[d]))
    };
    let mut index = Vec::new();
    for k in 0..map.image_elements() {
        if map.logical_index_into(k, &mut index).unwrap() && is_in(&index) {
            for bit in k * bits..(k + 1) * bits {
                mask[(bit / 8) as usize] |= 1 << (bit % 8);
            }
        }
    }
    mask
}

/// What is packed, moved to another layout and unpacked is what it was; and so is what
/// goes through packed elements, or through wider ones.
pub fn roundtrip(choices: &mut Choices<'_>) {
    let most = *choices.pick(&[400, 2000, 8000, 30_000]);
    let shape = small_shape(choices, most);
    let other = another_layout(choices, &shape, most);
    let element_type = shape.element_type();
    let mask = if element_type.bits() < 8 { (1 << element_type.bits()) - 1 } else { 0xff };
    let host: Vec<u8> =
        choices.noise(shape.sizes().unwrap().host_bytes).iter().map(|b| b & mask).collect();
    let mut builder = || options(choices, 0).0;

    let image = builder().pack(&shape).unwrap().run_to_vec(&host).unwrap();
    let moved = builder().between(&shape, &other).unwrap().run_to_vec(&image).unwrap();
    let back = builder().unpack(&other).unwrap().run_to_vec(&moved).unwrap();
    assert!(back == host, "{shape} to {other} and back");

    if matches!(element_type.bits(), 1 | 2 | 4) {
        let packed =
            Host::dense().packed(*choices.pick(&[BitOrder::LeastFirst, BitOrder::MostFirst]));
        let mut builder = || options(choices, 0).0.padding(Padding::Zero);
        let bytes = builder().host(packed.clone()).unpack(&shape).unwrap().run_to_vec(&image);
        let again = builder().host(packed).pack(&shape).unwrap().run_to_vec(&bytes.unwrap());
        assert!(again.unwrap() == builder().pack(&shape).unwrap().run_to_vec(&host).unwrap());
    }
    let wider = match element_type {
        ElementType::Bf16 | ElementType::F16 => ElementType::F32,
        ElementType::F32 => ElementType::F64,
        ElementType::S8 => ElementType::S32,
        _ => return,
    };
    let wide = Host::dense().of(wider);
    let mut builder = || options(choices, 0).0;
    let numbers = builder().host(wide.clone()).unpack(&shape).unwrap().run_to_vec(&image).unwrap();
    let again = builder().host(wide).pack(&shape).unwrap().run_to_vec(&numbers).unwrap();
    let back = builder().unpack(&shape).unwrap().run_to_vec(&again).unwrap();
    let width = element_type.host_bytes() as usize;
    for (before, after) in host.chunks(width).zip(back.chunks(width)) {
        // What was no number has become quiet.
        let nans = is_nan(element_type, before) && is_nan(element_type, after);
        assert!(before == after || nans, "{before:x?} is {after:x?}: {shape} as {wider}");
    }
}

fn is_nan(element_type: ElementType, bytes: &[u8]) -> bool {
    let value = bytes.iter().rev().fold(0_u32, |n, &byte| n << 8 | u32::from(byte));
    match element_type {
        ElementType::Bf16 => value & 0x7fff > 0x7f80,
        ElementType::F16 => value & 0x7fff > 0x7c00,
        ElementType::F32 => value & 0x7fff_ffff > 0x7f80_0000,
        _ => false,
    }
}
