//! What an error about a text says: where, what stood there, what would be
//! right. And that absurd texts are refused in good time.

mod common;

use relayout::{
    AnyShape, ElementType, Layout, MAX_DEPTH, MAX_RANK, MAX_TILES, ParseErrorKind, Shape,
    ShapeError, Split, Tile, Tuple,
};

/// The position of `caret` in `marked`, and the text without it.
fn marked(marked: &str) -> (usize, String) {
    (marked.find('‸').unwrap(), marked.replace('‸', ""))
}

#[test]
fn errors_name_the_place_and_what_would_be_right() {
    // The caret stands before the offending part.
    for (text, message) in [
        ("‸", "expected an element type, such as `f32`, found the end of the text"),
        (
            "‸f33[2]",
            "`f33` is not an element type; examples are f32, bf16, s8, u4, pred, c64, f8e4m3fn",
        ),
        ("f32‸", "expected `[` and the bounds of the dimensions, found the end of the text"),
        ("f32[3,‸,5]", "expected a bound (a number, `<=` and a number, or `?`), found `,`"),
        ("f32[3‸.5]", "expected `,` or `]`, found `.`"),
        ("f32[‸-3]", "`-3` is negative; it must not be"),
        ("f32[<=‸?]", "expected the greatest bound, a number, found `?`"),
        (
            "f32[‸99999999999999999999]",
            "`99999999999999999999` is too large; a number must be below 2^63",
        ),
        ("f32[2] ‸f32[2]", "expected the end of the text, found `f32`"),
        ("f32[3,5]‸{}", "minor_to_major has 0 entries for 2 dimensions; it needs each once"),
        (
            "f32[3,5]{1,‸2}",
            "entry 1 of minor_to_major is dimension 2, but there are only 2 dimensions, counted from 0",
        ),
        (
            "f32[3,5]{1,‸1}",
            "entry 1 of minor_to_major is dimension 1 again; each stands there once",
        ),
        (
            "f32[3,5]{1,0‸",
            "expected `}`, or an attribute in the order D T L # * E S SC P M, found the end of the text",
        ),
        ("f32[3,5]{1,0:‸}", "expected an attribute: D T L # * E S SC P or M, found `}`"),
        ("f32[3,5]{1,0:T‸}", "expected `(` and the bounds of a tile, found `}`"),
        ("f32[3,5]{1,0:T(‸0,2)}", "entry 0 of the tile is 0; it must be positive or `*`"),
        ("f32[3,5]{1,0:T(2,‸-2)}", "`-2` is negative; it must not be"),
        (
            "f32[3,5]{1,0:T(2,‸*)}",
            "the last entry of the tile is `*`, but there is no more minor dimension to combine with",
        ),
        ("f32[3,5]{1,0:T(2,2)(‸)}", "expected a tile bound (a positive number, or `*`), found `)`"),
        (
            "f32[3,5]{1,0:S(5)‸T(2,2)}",
            "expected `}`, or an attribute in the order D T L # * E S SC P M, found `T`",
        ),
        (
            "f32[3,5]{1,0:L(‸0)}",
            "a tail padding alignment of 0 elements; it must be positive and below 2^63",
        ),
        ("f32[3,5]{1,0:‸E(16)}", "16 bits for an element of f32; its layout may say E(32)"),
        (
            "s2[8]{0:‸E(16)}",
            "16 bits for an element of s2; its layout may say E(2) or E(4) or E(8)",
        ),
        ("s2[8]{0:E(‸5)}", "elements of 5 bits; a width is a power of two from 1 to 128"),
        (
            "s2[8]{0:E(‸9999999999)}",
            "elements of 9999999999 bits; a width is a power of two from 1 to 128",
        ),
        ("s2[8]{0:T(‸-12)}", "`-12` is negative; it must not be"),
        ("f32[3‸\x1b[31m]", "expected `,` or `]`, found `\u{fffd}`"),
        ("f32[3,5]{1,0:S(‸128)}", "memory space 128, which is not in 0 to 127"),
        ("f32[3,5]{1,0:S(‸300)}", "memory space 300, which is not in 0 to 127"),
        ("f32[3,5]{1,0:#(‸f32)}", "indices or pointers of type f32, which is no integer type"),
        (
            "f32[3,5]{1,0:SC(‸2:1)}",
            "split config 0 splits dimension 2, but there are only 2 dimensions, counted from 0",
        ),
        ("f32[3,5]{1,0:SC(0:‸)}", "expected an index at which the dimension is split, found `)`"),
        ("f32[3,5]{1,0:M(‸-1)}", "`-1` is negative; it must not be"),
        ("f32[3,5]{1,0:P(‸)}", "expected an element type, such as `f32`, found `)`"),
        ("f32‸[4294967296,4294967296,4]", "the bounds multiply to 2^63 elements or more"),
        (
            "u8[8,2]{1,0:T(2)‸(4611686018427387904,2)}",
            "tile 1 takes the image to 2^63 elements or more, or too near to it",
        ),
        ("f32[3]‸/* open", "a comment starts here and does not end; close it with `*/`"),
        ("‸token[]", "this is a token; only an array, such as `f32[3,5]{1,0}`, has an image"),
        ("  ‸(f32[2])", "this is a tuple; only an array, such as `f32[3,5]{1,0}`, has an image"),
        ("token[‸3]", "expected `]`: this type has no dimensions, found `3`"),
        ("f32[3‸é]", "expected `,` or `]`, found `é`"),
    ] {
        let (at, text) = marked(text);
        let e = text.parse::<Shape>().expect_err(&text);
        assert_eq!((e.at(), e.message()), (at, message), "{text:?}");
    }
}

#[test]
fn other_spellings_are_read() {
    for (text, canonical) in [
        ("F32[3,5]", "f32[3,5]{1,0}"),
        ("F8E4M3B11FNUZ[]", "f8e4m3b11fnuz[]"),
        ("f32[3,5]{1,0:(2,2)}", "f32[3,5]{1,0:T(2,2)}"),
        ("f32[2,3,5]{2,1,0:T(∗,2,2)}", "f32[2,3,5]{2,1,0:T(*,2,2)}"),
        ("f32[2,3,5]{2,1,0:T(-1,2,2)(2,1)}", "f32[2,3,5]{2,1,0:T(*,2,2)(2,1)}"),
        ("s32[]{}", "s32[]"),
        ("f32[03,5]", "f32[3,5]{1,0}"),
        ("f32[3,5]{1,0:D(D,C+~)T(2,2)}", "f32[3,5]{1,0:T(2,2)}"),
        ("f32[3,5] // rows and columns\n {1,0}", "f32[3,5]{1,0}"),
        (
            "f32[4]{0:T(2)(4)L(2)#(u8)*(s32)E(32)S(1)SC(0:1,2)(0:3)P((f32[1], s8[]))M(3)}",
            "f32[4]{0:T(2)(4)L(2)#(u8)*(s32)E(32)S(1)SC(0:1,2)(0:3)P((f32[1]{0}, s8[]))M(3)}",
        ),
    ] {
        assert_eq!(common::shape(text).to_string(), canonical, "{text}");
        assert_eq!(common::shape(canonical).to_string(), canonical);
    }
    let nested = "((f32[2]{0}, token[]), (), b(s8[4]{0:T(2)}), opaque[])";
    assert_eq!(nested.parse::<AnyShape>().unwrap().to_string(), nested);
}

#[test]
fn a_long_text_is_cut_around_the_place() {
    let text = format!("f32[{}x]", "1,".repeat(40));
    let e = text.parse::<Shape>().unwrap_err();
    let message = e.to_string();
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[1].starts_with("  … 1,") && lines[1].ends_with("1,x]"), "{message}");
    let caret = lines[2].chars().count() - 1;
    assert_eq!(lines[1].chars().nth(caret), Some('x'), "{message}");

    // A word of a megabyte is not repeated in the message.
    let e = "x".repeat(1 << 20).parse::<Shape>().unwrap_err();
    assert!(e.to_string().len() < 300);
}

#[test]
fn a_megabyte_of_anything_is_an_error() {
    let megabyte = 1 << 20;
    for (unit, before) in [
        ("(", ""),
        ("9", "f32["),
        ("9", "f32[3]{0:T("),
        ("1,", "f32["),
        ("0,", "f32[3]{"),
        ("1,", "f32[3]{0:T("),
        ("(1)", "f32[3]{0:T"),
        ("f32[]{:P(", ""),
        ("(0:1)", "f32[3]{0:SC"),
        ("D,", "f32[3]{0:D("),
        ("/*", ""),
        ("/**/", ""),
        ("-", "f32["),
        ("é", ""),
        ("(f32[],", ""),
        (" ", ""),
    ] {
        let text = format!("{before}{}", unit.repeat(megabyte / unit.len()));
        let e = text.parse::<AnyShape>().expect_err(unit);
        assert!(e.to_string().len() < 500, "{unit:?}: {}", e.to_string().len());
    }
}

#[test]
fn limits_are_where_the_docs_say() {
    let list = |n: usize, item: &str| vec![item; n].join(",");
    let meaning = |text: &str| match text.parse::<AnyShape>().unwrap_err().kind() {
        ParseErrorKind::Meaningless(e) => e,
        other => panic!("{other:?}"),
    };
    assert!(format!("u8[{}]", list(MAX_RANK, "1")).parse::<Shape>().is_ok());
    let too_many = ShapeError::TooManyDimensions { count: 100 };
    assert_eq!(meaning(&format!("u8[{}]", list(100, "1"))), too_many);
    assert_eq!(meaning(&format!("u8[1]{{{}}}", list(100, "0"))), too_many);
    assert_eq!(Layout::row_major(100), Err(too_many));
    assert_eq!(Layout::new(vec![0; 100]), Err(too_many));

    let tile = |n: usize, entry: &str| format!("u8[1]{{0:T({})}}", list(n, entry));
    assert!(tile(MAX_RANK, "1").parse::<Shape>().is_ok());
    let too_many = ShapeError::TooManyTileEntries { count: 65 };
    assert_eq!(meaning(&tile(MAX_RANK + 1, "1")), too_many);
    assert_eq!(meaning(&tile(MAX_RANK, "2")), ShapeError::ImageTooLarge { tile: 0 });

    let tiles = |n: usize| format!("u8[1]{{0:T{}}}", "(1)".repeat(n));
    assert!(tiles(MAX_TILES).parse::<Shape>().is_ok());
    assert_eq!(meaning(&tiles(MAX_TILES + 1)), ShapeError::TooManyTiles { count: 65 });

    let nested = |n: usize| format!("{}{}", "(".repeat(n), ")".repeat(n));
    assert!(nested(MAX_DEPTH).parse::<AnyShape>().is_ok());
    assert_eq!(meaning(&nested(MAX_DEPTH + 1)), ShapeError::TooDeep);
    let physical = |n: usize| format!("{}u8[]{}", "u8[]{:P(".repeat(n), ")}".repeat(n));
    assert!(physical(MAX_DEPTH).parse::<AnyShape>().is_ok());
    assert_eq!(meaning(&physical(MAX_DEPTH + 1)), ShapeError::TooDeep);
}

/// What the constructors take can be printed and read; what could not be is
/// refused by them.
#[test]
fn nothing_can_be_built_that_is_not_read() {
    let layout = || Layout::row_major(1).unwrap();
    let most = i64::MAX as u64;
    for built in [
        layout().with_tail_alignment_elements(most),
        layout().with_metadata_prefix_bytes(most),
        layout().with_memory_space(127),
        layout().with_element_bits(128),
        layout().with_splits([Split::new(0, [most, 0]).unwrap()]),
        layout().with_tiles([Tile::new([most]).unwrap()]),
    ] {
        let built = built.unwrap();
        assert_eq!(built.to_string().parse(), Ok(built));
    }
    assert!(layout().with_tail_alignment_elements(most + 1).is_err());
    assert!(layout().with_tail_alignment_elements(0).is_err());
    assert!(layout().with_metadata_prefix_bytes(most + 1).is_err());
    assert!(layout().with_memory_space(128).is_err());
    assert!(layout().with_memory_space(256).is_err());
    for bits in [0, 3, 256, 1 << 32] {
        assert_eq!(layout().with_element_bits(bits), Err(ShapeError::ElementWidth { bits }));
    }
    let split = layout().with_splits([Split::new(1, [1]).unwrap()]);
    assert_eq!(split, Err(ShapeError::SplitDimension { split: 0, dimension: 1, rank: 1 }));
    assert!(Split::new(0, []).is_err());
    assert!(Split::new(0, [most + 1]).is_err());
    assert_eq!(Tile::new([most + 1]).unwrap_err(), {
        ShapeError::TileBoundTooLarge { entry: 0, bound: most + 1 }
    });
    assert_eq!(Tile::new([0; 0]).unwrap_err(), ShapeError::EmptyTile);

    let shape = Shape::new(ElementType::U8, [most + 1], layout());
    assert_eq!(shape, Err(ShapeError::BoundTooLarge { dimension: 0, bound: most + 1 }));
    let shape = Shape::new(ElementType::U8, [2, 3], layout());
    assert_eq!(shape, Err(ShapeError::MinorToMajorCount { entries: 1, rank: 2 }));

    let mut tuple = AnyShape::Token;
    for _ in 0..MAX_DEPTH {
        tuple = AnyShape::Tuple(Tuple::new([tuple]).unwrap());
    }
    assert_eq!(tuple.to_string().parse(), Ok(tuple.clone()));
    assert_eq!(Tuple::new([tuple.clone()]), Err(ShapeError::TooDeep));
    assert_eq!(layout().with_physical_shape(tuple), Err(ShapeError::TooDeep));
}

/// Shapes at the very limits: sizes, maps and steps answer or refuse.
#[test]
fn the_largest_shapes_have_sizes_or_an_error() {
    let bounds = vec!["1"; MAX_RANK].join(",");
    let order: Vec<String> = (0..MAX_RANK).rev().map(|d| d.to_string()).collect();
    let tile = format!("({})", vec!["1"; MAX_RANK].join(","));
    let text = format!("f32[{bounds}]{{{}:T{}}}", order.join(","), tile.repeat(MAX_TILES));
    let shape = common::shape(&text);
    assert_eq!(shape.sizes().unwrap().image_elements, 1);
    let map = relayout::index::ImageMap::new(&shape).unwrap();
    assert_eq!(map.logical_index(0).unwrap(), Some(vec![0; MAX_RANK]));
    assert!(!shape.steps().unwrap().is_empty());

    // Shapes that can be written, and whether they have sizes and a map.
    for (text, has_image) in [
        ("u8[2305843009213693951]", true),
        ("u8[9223372036854775807]", false),
        ("c128[1]{0:T(9223372036854775807)}", false),
        ("s1[9223372036854775807]{0:E(1)}", true),
        ("f32[0,9223372036854775807,9223372036854775807]{2,1,0:T(*,*,2)}", true),
        ("f32[1]{0:T(1)L(9223372036854775807)}", true),
        ("f32[?,9223372036854775807]", false),
        ("f32[<=3]{0:T(2)}", true),
    ] {
        let shape = common::shape(text);
        assert_eq!(shape.sizes().is_ok(), has_image, "{text}");
        let map = relayout::index::ImageMap::new(&shape);
        assert_eq!(map.is_ok(), has_image, "{text}");
        let Ok(map) = map else { continue };
        if let Some(last) = map.image_elements().checked_sub(1) {
            map.logical_index(last).unwrap();
            let index = map.index_of(map.elements() - 1).unwrap();
            assert!(map.image_element(&index).unwrap() <= last, "{text}");
        }
        assert!(map.logical_index(map.image_elements()).is_err());
        assert!(map.index_of(map.elements()).is_err());
    }
}
