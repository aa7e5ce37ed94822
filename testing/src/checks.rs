//! What has to hold of every shape, plan, host array and chunk.

use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::ops::Range;

use relayout::index::ImageMap;
use relayout::staging::Stager;
use relayout::{
    BitOrder, Chunk, ChunkError, ElementType, Error, Host, HostError, Padding, Plan, PlanBuilder,
    Shape, Tier, oracle,
};

use crate::host::{dense_strides, get, put, reach};
use crate::{
    Buffer, Choices, HostModel, another_layout, any_shape, noise, small_shape, wild_strides,
};

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
fn options(choices: &mut Choices<'_>, poison: u8) -> (PlanBuilder, u8) {
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
fn run_in(plan: &Plan, source: &[u8], expected: &[u8], ahead: (usize, usize), poison: u8) {
    let mut source = Buffer::of(source, ahead.0);
    let mut destination = Buffer::poisoned(expected.len(), ahead.1, poison);
    plan.run(source.inside(), destination.inside()).unwrap();
    assert_same(destination.inside(), expected, plan);
    assert!(destination.guards_are(poison), "written outside:\n{}", plan.explain());
}

fn assert_same(are: &[u8], expected: &[u8], plan: &Plan) {
    assert_eq!(are.len(), expected.len(), "{}", plan.explain());
    if let Some(i) = are.iter().zip(expected).position(|(a, b)| a != b) {
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
    let is_in = |index: Vec<u64>| {
        (0..index.len()).all(|d| (start[d]..start[d] + sizes[d]).contains(&index[d]))
    };
    for k in 0..map.image_elements() {
        if map.logical_index(k).unwrap().is_some_and(is_in) {
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

/// All indices below the bounds.
fn indices(bounds: &[u64]) -> Vec<Vec<u64>> {
    bounds.iter().fold(vec![Vec::new()], |before, &bound| {
        before
            .iter()
            .flat_map(|index| (0..bound).map(move |i| [index.as_slice(), &[i]].concat()))
            .collect()
    })
}

/// A host array at strides of all kinds, through an arbitrary layout or a window of it,
/// is moved element by element and nothing else is touched; or the strides are refused,
/// because they leave the buffer, or two elements of a destination would share memory.
pub fn strides(choices: &mut Choices<'_>) {
    let most = *choices.pick(&[300, 1500, 5000]);
    let shape = small_shape(choices, most);
    if choices.one_in(3) {
        return wild(choices, &shape);
    }
    let bounds = shape.bounds().unwrap();
    let window = choices.one_in(3).then(|| made_up_window(choices, &bounds));
    let tier = *choices.pick(&Tier::available());
    let sizes = window.as_ref().map_or(&bounds, |(_, sizes)| sizes).clone();
    for pack in [true, false] {
        let model = HostModel::made_up(choices, &shape, &sizes, pack);
        move_through(choices, &shape, window.as_ref(), &model, pack, &[tier]);
    }
}

/// A window of an array: where it starts, and its sizes.
pub fn made_up_window(choices: &mut Choices<'_>, bounds: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let sizes: Vec<u64> = bounds.iter().map(|&bound| bound - choices.below(bound + 1)).collect();
    let start = bounds.iter().zip(&sizes).map(|(b, s)| choices.below(b - s + 1)).collect();
    (start, sizes)
}

/// Packs, or unpacks, through a host array in these tiers, and compares with moving
/// each element by itself.
pub fn move_through(
    choices: &mut Choices<'_>,
    shape: &Shape,
    window: Option<&(Vec<u64>, Vec<u64>)>,
    model: &HostModel,
    pack: bool,
    tiers: &[Tier],
) {
    let bounds = shape.bounds().unwrap();
    let (start, sizes) = window.cloned().unwrap_or((vec![0; bounds.len()], bounds));
    let map = ImageMap::new(shape).unwrap();
    let image_bit = |index: &[u64]| {
        let index: Vec<u64> = index.iter().zip(&start).map(|(i, s)| i + s).collect();
        map.bit_offset(&index).unwrap()
    };
    let image_bits = shape.element_bits();
    let is_pred = shape.element_type() == ElementType::Pred;
    let image_bytes = shape.sizes().unwrap().image_bytes;

    let poison = *choices.pick(&[0xee, 0x11]);
    let (mut options, byte) = options(choices, poison);
    if let Some(window) = window {
        options = options.window(window.0.clone(), window.1.clone());
    }
    let (source, mut expected);
    if pack {
        source = choices.noise(model.length);
        let mask = element_mask(shape);
        // What is outside of a window stays, whatever was asked.
        let byte = if window.is_some() { poison } else { byte };
        expected = mask.iter().map(|mask| poison & mask | byte & !mask).collect::<Vec<u8>>();
        for index in indices(&sizes) {
            let mut value = model.get(&source, &index, image_bits);
            if is_pred && image_bits == 1 {
                value = u128::from(value != 0);
            }
            put(&mut expected, image_bit(&index), image_bits, false, value);
        }
    } else {
        source = choices.noise(image_bytes);
        expected = vec![poison; model.length as usize];
        for index in indices(&sizes) {
            let mut value = get(&source, image_bit(&index), image_bits, false);
            if is_pred && model.element_bits == 1 {
                value = u128::from(value != 0);
            }
            model.put(&mut expected, &index, value);
        }
        if model.is_dense {
            model.pad_end(&mut expected, &sizes, byte);
        }
    }
    for &tier in tiers {
        for stream in [false, true] {
            let builder = options.clone().host(model.host.clone()).tier(tier).streaming(stream);
            let plan = if pack { builder.pack(shape) } else { builder.unpack(shape) }.unwrap();
            assert!(plan.source_bytes() <= source.len() as u64);
            assert!(plan.destination_bytes() <= expected.len() as u64);
            let ahead = (choices.below(64) as usize, choices.below(64) as usize);
            run_in(&plan, &source, &expected, ahead, poison);
            // Memory of nobody: as it is expected, or zeros where it is left alone.
            let mut memory = vec![MaybeUninit::new(poison); expected.len()];
            let made = plan.run_uninit(&source, &mut memory).unwrap();
            let mut zeroed = vec![0; expected.len()];
            plan.run(&source, &mut zeroed).unwrap();
            assert_same(made, &zeroed, &plan);
        }
    }
}

/// Any strides at all: refused, or inside the buffer and, of a destination, apart.
fn wild(choices: &mut Choices<'_>, shape: &Shape) {
    let bounds = shape.bounds().unwrap();
    let bits = 8 * shape.element_type().host_bytes();
    let (host, start, strides) = match choices.one_in(4) {
        false => wild_strides(choices, bounds.len()),
        true => {
            // A window that may be none.
            let whole: Vec<u64> = bounds.iter().map(|_| choices.number()).collect();
            let at: Vec<u64> = bounds.iter().map(|_| choices.number()).collect();
            let host = Host::window(whole.clone(), at.clone());
            let fits = (0..bounds.len())
                .all(|d| at[d].checked_add(bounds[d]).is_some_and(|end| end <= whole[d]));
            let plan = PlanBuilder::new().host(host.clone()).pack(shape);
            if !fits {
                let refused = matches!(plan, Err(Error::Host(HostError::WindowOutOfBounds { .. })));
                assert!(refused, "{host}");
                return;
            }
            let elements = whole.iter().try_fold(1_u64, |n, &b| n.checked_mul(b));
            if elements.is_none_or(|n| n >= 1 << 48) {
                return;
            }
            let strides = dense_strides(&whole, bits);
            let start = at.iter().zip(&strides).map(|(&i, stride)| i128::from(i) * stride).sum();
            (host, start, strides)
        }
    };
    for pack in [true, false] {
        let builder = PlanBuilder::new().host(host.clone()).tier(*choices.pick(&Tier::available()));
        let plan = if pack { builder.pack(shape) } else { builder.unpack(shape) };
        let plan = match plan {
            Err(Error::Host(HostError::Entries { entries, rank })) => {
                assert_eq!((entries, rank), (strides.len(), bounds.len()));
                continue;
            }
            plan if strides.len() != bounds.len() => panic!("{plan:?}"),
            Err(Error::Host(error)) => {
                let (first, end) = reach(start, &strides, bits, &bounds);
                match error {
                    HostError::BeforeBuffer { bytes } => {
                        assert_eq!(bytes, first.div_euclid(8));
                        assert!(first < 0);
                    }
                    HostError::StartTooFar { bytes } => {
                        assert!(bytes == start / 8 && start >= 1 << 62, "{host}");
                    }
                    HostError::TooLarge { dimension, bound, stride_bits } => {
                        assert_eq!((bound, stride_bits), (bounds[dimension], strides[dimension]));
                        assert!(end.max(start) >= 1 << 62 || first <= -(1 << 62), "{host}");
                    }
                    HostError::Overlap { dimension } => assert!(!pack && bounds[dimension] > 1),
                    error => panic!("{error}"),
                }
                continue;
            }
            plan => plan.unwrap(),
        };
        let (first, end) = reach(start, &strides, bits, &bounds);
        let needed = if pack { plan.source_bytes() } else { plan.destination_bytes() };
        assert!(first >= 0);
        assert_eq!(u128::from(needed), (end as u128).div_ceil(8), "{host}");
        if !pack {
            let place = |index: &[u64]| -> i128 {
                start + index.iter().zip(&strides).map(|(&i, s)| i128::from(i) * s).sum::<i128>()
            };
            let mut seen = HashSet::new();
            for index in indices(&bounds) {
                let at = place(&index) / 8;
                for byte in at..at + i128::from(bits / 8) {
                    assert!(seen.insert(byte), "{host} of {shape} at {index:?}");
                }
            }
        }
        if needed <= 1 << 16 {
            let bytes = strides.iter().map(|&s| (s / 8) as i64).collect::<Vec<_>>();
            let mut model = HostModel::strided(shape, &bytes, (start / 8) as u64, choices.below(9));
            model.host = host.clone();
            move_through(choices, shape, None, &model, pack, &[plan.tier()]);
        } else {
            let short = vec![0; plan.source_bytes().min(1 << 16) as usize];
            let mut destination = vec![0xee; plan.destination_bytes().min(1 << 16) as usize];
            assert!(plan.run(&short, &mut destination).is_err());
            assert!(destination.iter().all(|&byte| byte == 0xee));
        }
    }
}

/// Chunks of an arbitrary plan, each alone, are together what the whole is; of one too
/// large to run, they are in order and within both buffers.
pub fn chunks(choices: &mut Choices<'_>) {
    if choices.one_in(4) {
        return absurd_chunks(choices);
    }
    let most = *choices.pick(&[300, 1500, 5000]);
    let shape = small_shape(choices, most);
    let bounds = shape.bounds().unwrap();
    let (mut builder, _) = options(choices, 0);
    let mut sizes = bounds.clone();
    if choices.one_in(4) {
        let (start, window_sizes) = made_up_window(choices, &bounds);
        sizes.clone_from(&window_sizes);
        builder = builder.window(start, window_sizes);
    }
    let kind = choices.below(3);
    let plan = match kind {
        0 => {
            let host = HostModel::made_up(choices, &shape, &sizes, true).host;
            builder.host(host).pack(&shape)
        }
        1 => {
            let host = HostModel::made_up(choices, &shape, &sizes, false).host;
            builder.host(host).unpack(&shape)
        }
        _ => builder.between(&shape, &another_layout(choices, &shape, most)),
    };
    let plan = plan.unwrap();
    if kind != 1 {
        // Of an image, nothing but elements is in the way.
        let bits = plan.destination_shape().element_bits();
        assert_eq!(plan.grain_bytes(), u64::from(bits.div_ceil(8)), "{}", plan.explain());
    }
    let max_bytes = match choices.below(4) {
        0 => 1 + choices.below(20),
        1 => 16 + choices.below(500),
        2 => 64 * (1 + choices.below(40)),
        _ => 1 + plan.destination_bytes() / (1 + choices.below(12)),
    };
    // Thousands of chunks take seconds to check.
    let max_bytes = max_bytes.max(plan.destination_bytes() / 500);
    fill_chunks(&plan, max_bytes);
    if kind == 2 && plan.explain().slow.is_none() && sizes == bounds {
        read_what_they_need(&plan, max_bytes);
    }
    let end = plan.destination_bytes() + 1;
    let (a, b) = (choices.below(end), choices.below(end));
    fill_range(&plan, a.min(b)..a.max(b));
    stage(&plan, max_bytes);
}

/// What a chunk makes of its part of the source and of its part of the destination.
fn run(chunk: &Chunk, source: &[u8], before: &[u8]) -> Vec<u8> {
    let range = |range: Range<u64>| range.start as usize..range.end as usize;
    let part = source[range(chunk.source())].to_vec();
    let mut destination = before[range(chunk.destination())].to_vec();
    assert_eq!(destination.len(), chunk.len());
    chunk.run_part(&part, &mut destination).unwrap();

    // The start of the source does as well, whatever there is before the part.
    let mut start = noise(chunk.source().end, 99);
    start[range(chunk.source())].copy_from_slice(&part);
    let mut again = before[range(chunk.destination())].to_vec();
    chunk.run(&start, &mut again).unwrap();
    assert!(again == destination);
    destination
}

/// Both buffers of a plan, and what it makes of them.
fn whole(plan: &Plan) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let source = noise(plan.source_bytes(), 1);
    let before = noise(plan.destination_bytes(), 2);
    let mut whole = before.clone();
    plan.run(&source, &mut whole).unwrap();
    (source, before, whole)
}

/// Chunks of at most so many bytes, each in a buffer of its own, with no more of the
/// source than it says that it reads, are the whole.
pub fn fill_chunks(plan: &Plan, max_bytes: u64) {
    let (source, before, whole) = whole(plan);
    let chunks: Vec<Chunk> = plan.chunks(max_bytes).collect();
    assert_eq!(plan.chunks(max_bytes).size_hint(), (chunks.len(), Some(chunks.len())));
    let mut end = 0;
    for chunk in &chunks {
        assert_eq!(chunk.destination().start, end, "{}", plan.explain());
        end = chunk.destination().end;
        let most = max_bytes.max(plan.grain_bytes());
        assert!(chunk.len() as u64 <= most, "{} of {most}\n{}", chunk.len(), plan.explain());
        assert!(chunk.source().end <= plan.source_bytes());
    }
    assert_eq!(end, plan.destination_bytes());
    // Any order will do.
    let mut pieces = vec![Vec::new(); chunks.len()];
    for i in (0..chunks.len()).step_by(2).chain((1..chunks.len()).step_by(2).rev()) {
        pieces[i] = run(&chunks[i], &source, &before);
    }
    assert_same(&pieces.concat(), &whole, plan);
}

/// Chunks from one layout to another one read from the first byte of an element that
/// they hold to the last one, and no further than the words that these are in.
fn read_what_they_need(plan: &Plan, max_bytes: u64) {
    let map = |shape: &Shape| (ImageMap::new(shape).unwrap(), u64::from(shape.element_bits()));
    let (from, from_bits) = map(plan.source_shape());
    let (to, to_bits) = map(plan.destination_shape());
    for chunk in plan.chunks(max_bytes) {
        let Range { start, end } = chunk.destination();
        let elements = start * 8 / to_bits..(end * 8 / to_bits).min(to.image_elements());
        let needed = elements
            .filter_map(|k| to.logical_index(k).unwrap())
            .map(|index| from.bit_offset(&index).unwrap())
            .map(|bit| (bit / 8, (bit + from_bits).div_ceil(8)))
            .reduce(|(start, end), (s, e)| (start.min(s), end.max(e)));
        let (start, end) = needed.unwrap_or((0, 0));
        let (source, word) = (chunk.source(), 16);
        let is_needed = source.start <= start && source.end >= end;
        let is_tight = source.start + word >= start && source.end <= end + word;
        assert!(
            is_needed && is_tight,
            "{:?} reads {source:?}, not {start}..{end}\n{}",
            chunk.destination(),
            plan.explain()
        );
    }
}

/// Any range is a chunk, unless it is empty or cuts an element.
pub fn fill_range(plan: &Plan, range: Range<u64>) {
    let (source, before, whole) = whole(plan);
    match plan.chunk(range.clone()) {
        Ok(chunk) => {
            assert_eq!(chunk.destination(), range);
            let expected = &whole[range.start as usize..range.end as usize];
            assert_same(&run(&chunk, &source, &before), expected, plan);
        }
        Err(ChunkError::AcrossElement { offset_bytes, grain_bytes, .. }) => {
            let end = plan.destination_bytes();
            let whole = |at: u64| {
                let is_cut = || at.abs_diff(offset_bytes).is_multiple_of(grain_bytes);
                at == 0 || at == end || is_cut()
            };
            let is_whole = whole(range.start) && whole(range.end);
            assert!(!is_whole, "{range:?} was refused\n{}", plan.explain());
        }
        Err(error) => assert!(range.is_empty(), "{error}"),
    }
}

/// Through two buffers of so many bytes.
fn stage(plan: &Plan, buffer_bytes: u64) {
    let source = noise(plan.source_bytes(), 1);
    // What is the same on whatever there was before is written; all else is whatever a
    // buffer had.
    let [zeros, ones] = [0, 0xff].map(|before| {
        let mut destination = vec![before; plan.destination_bytes() as usize];
        plan.run(&source, &mut destination).unwrap();
        destination
    });
    let buffer = || vec![0x5a; buffer_bytes as usize];
    let mut stager = Stager::new([buffer(), buffer()]);
    let staged = match stager.stage(plan, &source) {
        Ok(staged) => staged,
        Err(error) => {
            assert!(plan.grain_bytes() > buffer_bytes, "{error}\n{}", plan.explain());
            return;
        }
    };
    let mut end = 0;
    for staged in staged {
        let staged = staged.unwrap();
        let range = staged.destination();
        assert_eq!((range.start, range.end - range.start), (end, staged.bytes().len() as u64));
        end = range.end;
        for (at, byte) in (range.start as usize..).zip(staged.bytes()) {
            let written = !(zeros[at] ^ ones[at]);
            assert_eq!(byte & written, zeros[at] & written, "byte {at}\n{}", plan.explain());
        }
    }
    assert_eq!(end, plan.destination_bytes());
}

/// Chunks of a plan that nobody can run.
fn absurd_chunks(choices: &mut Choices<'_>) {
    let Some(shape) = any_shape(choices) else { return };
    let builder = PlanBuilder::new();
    let plan = match choices.below(3) {
        0 => builder.pack(&shape),
        1 => builder.unpack(&shape),
        _ => {
            let (host, ..) = wild_strides(choices, shape.rank());
            builder.host(host).pack(&shape)
        }
    };
    let Ok(plan) = plan else { return };
    let _ = plan.explain().to_string();
    let (bytes, grain) = (plan.destination_bytes(), plan.grain_bytes());
    let max_bytes = choices.number();
    let mut end = 0;
    for chunk in plan.chunks(max_bytes).take(20) {
        assert_eq!(chunk.destination().start, end);
        end = chunk.destination().end;
        assert!(end <= bytes && chunk.source().end <= plan.source_bytes());
        assert!(chunk.len() > 0 && chunk.len() as u64 <= max_bytes.max(grain));
    }
    let (a, b) = (choices.number(), choices.number());
    for range in [a..b, a % grain.max(1) * grain..bytes, b..bytes] {
        match plan.chunk(range.clone()) {
            Ok(chunk) => {
                assert_eq!(chunk.destination(), range);
                assert!(range.end <= bytes && chunk.source().end <= plan.source_bytes());
                if range.end - range.start > 1 << 16 {
                    assert!(chunk.run(&[], &mut []).is_err());
                }
            }
            Err(ChunkError::NoSuchRange { .. }) => {
                assert!(range.is_empty() || range.end > bytes, "{range:?} of {bytes}");
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
