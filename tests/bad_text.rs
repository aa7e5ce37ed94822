//! What an error about a text says: where, what stood there, what would be
//! right. And that absurd texts are refused in good time.

mod common;

use relayout::{
    AnyShape, Layout, MAX_DEPTH, MAX_RANK, MAX_TILES, ParseErrorKind, Shape, ShapeError,
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
        ("f32[3,5]{1,0:L(‸0)}", "a tail padding alignment of 0 elements; it must be positive"),
        ("f32[3,5]{1,0:E(‸16)}", "16 bits for an element of f32; its layout may say E(32)"),
        ("s2[8]{0:E(‸5)}", "5 bits for an element of s2; its layout may say E(2) or E(4) or E(8)"),
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
            "tile 1 pads the image to 2^63 elements or more",
        ),
        ("f32[3]‸/* open", "a comment starts here and does not end; close it with `*/`"),
        ("‸token[]", "this is a token; only an array, such as `f32[3,5]{1,0}`, has an image"),
        ("  ‸(f32[2])", "this is a tuple; only an array, such as `f32[3,5]{1,0}`, has an image"),
        ("token[‸3]", "expected `]`: this type has no dimensions, found `3`"),
        ("f32[3‸é]", "expected `,` or `]`, found `é`"),
    ] {
        let (at, text) = marked(text);
        let e = text.parse::<Shape>().expect_err(&text);
        assert_eq!((e.at(), e.message().as_str()), (at, message), "{text:?}");
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
    assert!(format!("u8[{}]", list(MAX_RANK, "1")).parse::<Shape>().is_ok());
    let e = format!("u8[{}]", list(MAX_RANK + 1, "1")).parse::<Shape>().unwrap_err();
    let too_many = ShapeError::TooManyDimensions { count: MAX_RANK + 1 };
    assert_eq!(e.kind(), ParseErrorKind::Meaningless(too_many));

    assert!(format!("u8[1]{{0:T({})}}", list(MAX_RANK, "2")).parse::<Shape>().is_err(), "2^64");
    assert!(format!("u8[1]{{0:T({})}}", list(MAX_RANK, "1")).parse::<Shape>().is_ok());
    assert!(format!("u8[1]{{0:T({})}}", list(MAX_RANK + 1, "1")).parse::<Shape>().is_err());

    assert!(format!("u8[1]{{0:T{}}}", "(1)".repeat(MAX_TILES)).parse::<Shape>().is_ok());
    assert!(format!("u8[1]{{0:T{}}}", "(1)".repeat(MAX_TILES + 1)).parse::<Shape>().is_err());

    let nested = |n: usize| format!("{}{}", "(".repeat(n), ")".repeat(n));
    assert!(nested(MAX_DEPTH + 1).parse::<AnyShape>().is_ok());
    let e = nested(MAX_DEPTH + 2).parse::<AnyShape>().unwrap_err();
    assert_eq!(e.kind(), ParseErrorKind::TooDeep);

    assert_eq!(Layout::row_major(65), Err(too_many));
    assert!(matches!(Layout::new(vec![0; 65]), Err(ShapeError::TooManyDimensions { .. })));
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
    assert!(!relayout::steps::steps(&shape).unwrap().is_empty());

    for text in [
        "u8[9223372036854775807]",
        "c128[9223372036854775807]{0:T(9223372036854775807)}",
        "c128[1]{0:T(9223372036854775807)}",
        "s1[9223372036854775807]{0:E(1)}",
        "f32[0,9223372036854775807,9223372036854775807]{2,1,0:T(*,*,2)}",
        "f32[1]{0:T(1)L(9223372036854775807)}",
        "f32[?,9223372036854775807]",
    ] {
        let Ok(shape) = text.parse::<Shape>() else {
            continue;
        };
        let _ = shape.sizes();
        let _ = shape.warnings();
        let _ = relayout::steps::steps(&shape);
        if let Ok(map) = relayout::index::ImageMap::new(&shape) {
            let last = map.image_elements().saturating_sub(1);
            let _ = map.logical_index(last);
            let _ = map.row_major_index(map.elements().saturating_sub(1));
        }
        assert!(relayout::oracle::pack(&shape, &[0; 3], &mut []).is_err(), "{text}");
    }
}
