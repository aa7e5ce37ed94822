//! Views of ndarray against dense copies of them.

#![cfg(feature = "ndarray")]

mod common;

use common::shape;
use ndarray::{Array3, ArrayView3, s};
use relayout::{ElementType, Host, HostError, Padding, Plan, PlanBuilder};

#[test]
fn views_in_any_order_and_direction() {
    let shape = shape("f32[5,6,7]{1,2,0:T(4,4)}");
    let bytes = |n: u64| n as usize;
    let image_bytes = bytes(shape.sizes().unwrap().image_bytes);
    for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]] {
        for turned in 0..8 {
            let bounds = [5, 6, 7];
            let mut inner = [0; 3];
            order.iter().zip(bounds).for_each(|(&d, bound)| inner[d] = bound);
            let array = Array3::from_shape_fn(inner, |(i, j, k)| (i * 100 + j * 10 + k) as f32);
            let mut view: ArrayView3<f32> = array.view().permuted_axes(order);
            for axis in (0..3).filter(|axis| turned >> axis & 1 == 1) {
                view.invert_axis(ndarray::Axis(axis));
            }
            let dense: Vec<f32> = view.iter().copied().collect();
            let mut expected = vec![0xee; image_bytes];
            Plan::pack(&shape).unwrap().run_from(&dense, &mut expected).unwrap();
            let mut image = vec![0xaa; image_bytes];
            PlanBuilder::new().pack_view(&shape, &view, &mut image).unwrap();
            assert!(image == expected, "{order:?} {turned}");

            let mut array = Array3::<f32>::zeros(inner);
            let mut back = array.view_mut().permuted_axes(order);
            for axis in (0..3).filter(|axis| turned >> axis & 1 == 1) {
                back.invert_axis(ndarray::Axis(axis));
            }
            PlanBuilder::new().unpack_view(&shape, &image, &mut back).unwrap();
            assert!(back == view, "{order:?} {turned}");
        }
    }
}

#[test]
fn views_that_cannot_be_and_those_of_other_types() {
    let bf16 = shape("bf16[2,2,2]{2,1,0:T(2,2)}");
    let array = Array3::from_shape_fn((2, 2, 2), |(i, j, k)| (4 * i + 2 * j + k) as f32);
    let mut image = [0xee; 16];
    let builder = PlanBuilder::new().host(Host::dense().of(ElementType::F32));
    builder.pack_view(&bf16, &array.view(), &mut image).unwrap();
    assert_eq!(image[2..4], [0x80, 0x3f]);
    // The builder says bf16, the view f32.
    assert!(PlanBuilder::new().pack_view(&bf16, &array.view(), &mut image).is_err());
    let wide = Array3::<f32>::zeros((2, 2, 4));
    let error = builder.pack_view(&bf16, &wide.view(), &mut image).unwrap_err();
    assert_eq!(error, HostError::Bound { dimension: 2, view: 4, bound: 2 }.into());
    let flat = wide.view().into_shape_with_order(16).unwrap();
    let error = builder.pack_view(&bf16, &flat, &mut image).unwrap_err();
    assert_eq!(error, HostError::Entries { entries: 1, rank: 3 }.into());
    // A window of the image.
    let one = array.slice(s![..1, ..1, ..1]);
    let window = builder.clone().window([1, 1, 1], [1, 1, 1]);
    window.pack_view(&bf16, &one, &mut image).unwrap();
    assert_eq!(image[14..], [0, 0]);
}

/// Slices of larger arrays, every other element, backwards, one row again and again:
/// through many blocks, and the elements between are left alone.
#[test]
fn views_with_gaps() {
    let bounds = [70, 9, 333];
    for layout in ["{2,1,0:T(8,128)}", "{0,1,2:T(8,128)}", "{2,0,1:T(4,7)(2,3)}"] {
        let f32 = shape(&format!("f32[70,9,333]{layout}"));
        let image_bytes = f32.sizes().unwrap().image_bytes as usize;
        let outer =
            Array3::from_shape_fn((75, 12, 700), |(i, j, k)| (i * 8400 + j * 700 + k) as f32);
        let slice = s![2..72, 1..;-1, 5..671;2];
        let row = outer.slice(s![..1, ..1, ..333]);
        let views = [
            outer.slice(s![5.., 3.., 367..]),
            outer.slice(s![..70, ..9, ..333]).slice_move(s![..;-1, .., ..]),
            outer.slice(slice).slice_move(s![.., 2.., ..]),
            row.broadcast(bounds).unwrap(),
        ];
        for (i, view) in views.iter().enumerate() {
            assert!(view.as_slice_memory_order().is_none());
            let dense: Vec<f32> = view.iter().copied().collect();
            for (padding, before) in
                [(Padding::Zero, 0xaa), (Padding::Byte(7), 1), (Padding::Keep, 3)]
            {
                let builder = PlanBuilder::new().padding(padding);
                let mut expected = vec![before; image_bytes];
                builder.pack(&f32).unwrap().run_from(&dense, &mut expected).unwrap();
                let mut image = vec![before; image_bytes];
                builder.pack_view(&f32, view, &mut image).unwrap();
                assert!(image == expected, "view {i} of {f32}");
            }
        }
        // Back, into every other element.
        let mut image = vec![0xee; image_bytes];
        PlanBuilder::new().pack_view(&f32, &views[2], &mut image).unwrap();
        let mut back = Array3::<f32>::from_elem((75, 12, 700), -1.0);
        let mut view = back.slice_mut(slice).slice_move(s![.., 2.., ..]);
        PlanBuilder::new().unpack_view(&f32, &image, &mut view).unwrap();
        assert!(view == views[2]);
        let written = back.iter().filter(|&&x| x != -1.0).count();
        assert_eq!(written, bounds.iter().product::<usize>());
        // A window of the image, the rest of it left alone.
        let window = PlanBuilder::new().window([3, 2, 100], [40, 5, 200]);
        let inner = outer.slice(s![..40, 2..7, 3..203]);
        let dense: Vec<f32> = inner.iter().copied().collect();
        let mut expected = image.clone();
        window.pack(&f32).unwrap().run_from(&dense, &mut expected).unwrap();
        window.pack_view(&f32, &inner, &mut image).unwrap();
        assert!(image == expected);

        // Refused before anything is written.
        let before = image.clone();
        assert!(PlanBuilder::new().pack_view(&f32, &views[0], &mut image[1..]).is_err());
        let doubles = views[0].mapv(f64::from);
        let doubles = doubles.slice(s![.., .., ..;-1]);
        assert!(PlanBuilder::new().pack_view(&f32, &doubles, &mut image).is_err());
        assert!(image == before);
    }
}
