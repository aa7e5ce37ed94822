//! What has to hold of every host array and of every window.

use std::collections::HashSet;
use std::mem::MaybeUninit;

use relayout::index::ImageMap;
use relayout::{ElementType, Error, Host, HostError, PlanBuilder, Shape, Tier};

use crate::checks::{assert_same, element_mask, options, run_in};
use crate::host::{dense_strides, get, put, reach};
use crate::{Choices, HostModel, small_shape, wild_strides};

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
