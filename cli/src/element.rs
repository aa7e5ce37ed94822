//! Which NumPy types hold which element types of XLA.
//!
//! NumPy has no bf16, no f8 and nothing narrower than a byte. Files hold
//! bf16 and f8 as raw bytes (`V2`, `V1`) or as unsigned integers of that width,
//! and narrower types one value a byte.

use npyz::{TypeChar, TypeStr};
use relayout::ElementType;

use crate::failure::Failure;

/// Whether a NumPy file of elements of `type_str` can hold this element type.
pub(crate) fn suits(element_type: ElementType, type_str: &TypeStr) -> bool {
    let (type_char, bytes) = (type_str.type_char(), type_str.size_field());
    if bytes != u64::from(element_type.host_bytes()) {
        return false;
    }
    match (type_char, numpy_char(element_type)) {
        (given, own) if given == own => true,
        // What NumPy itself lacks, it stores as raw bytes; others use integers.
        (TypeChar::RawData | TypeChar::Uint, TypeChar::RawData) => true,
        (TypeChar::RawData | TypeChar::Uint, _) => element_type.bits() < 8,
        _ => false,
    }
}

/// The kind of NumPy's own type for this element type, or else raw bytes.
fn numpy_char(element_type: ElementType) -> TypeChar {
    match element_type {
        ElementType::Pred => TypeChar::Bool,
        ElementType::F16 | ElementType::F32 | ElementType::F64 => TypeChar::Float,
        ElementType::C64 | ElementType::C128 => TypeChar::Complex,
        t if t.is_signed_integer() => TypeChar::Int,
        t if t.is_integer() => TypeChar::Uint,
        _ => TypeChar::RawData,
    }
}

/// The NumPy type that a file of this element type is written with.
pub(crate) fn to_numpy(element_type: ElementType) -> Result<TypeStr, Failure> {
    let bytes = element_type.host_bytes();
    let kind = numpy_char(element_type);
    let order = if bytes == 1 || kind == TypeChar::RawData { '|' } else { '<' };
    format!("{order}{kind}{bytes}")
        .parse()
        .map_err(|e| Failure::work(format!("no NumPy type for {element_type}: {e}")))
}

/// The one element type that a NumPy type stands for by itself.
pub(crate) fn from_numpy(type_str: &TypeStr) -> Result<ElementType, Failure> {
    let candidates =
        ElementType::ALL.iter().copied().filter(|t| t.bits() % 8 == 0 || *t == ElementType::Pred);
    let mut own = candidates.filter(|&t| {
        numpy_char(t) == type_str.type_char() && u64::from(t.host_bytes()) == type_str.size_field()
    });
    match (own.next(), own.next()) {
        (Some(element_type), None) => Ok(element_type),
        _ => Err(Failure::usage(format!(
            "elements of NumPy type {type_str} may be of several types or none of XLA's; \
             give the whole shape instead of the layout, such as 'f8e4m3fn[…]{{…}}'"
        ))),
    }
}

/// Takes from host bytes what they hold above an element type's bits, and
/// leaves the low ones; of `pred`, whether any is set. So one value has one
/// image. Returns the first byte that thereby became another value, and where
/// it stood; `kind` is that of the NumPy file.
pub(crate) fn reduce(
    element_type: ElementType,
    kind: TypeChar,
    data: &mut [u8],
) -> Option<(usize, u8)> {
    let bits = element_type.bits();
    let mut lost = None;
    if bits >= 8 {
        return lost;
    }
    for (i, byte) in data.iter_mut().enumerate() {
        let before = *byte;
        *byte = match element_type {
            ElementType::Pred => u8::from(before != 0),
            _ => before & (0xff >> (8 - bits)),
        };
        if lost.is_none() && !same_value(element_type, kind, 8, before, *byte) {
            lost = Some((i, before));
        }
    }
    lost
}

/// Widens the sign of integers narrower than a byte over the byte each has, as
/// NumPy's `int8` wants it.
pub(crate) fn extend_sign(element_type: ElementType, data: &mut [u8]) {
    let bits = element_type.bits();
    if bits < 8 && element_type.is_signed_integer() {
        data.iter_mut().for_each(|byte| *byte = sign_extended(*byte, bits));
    }
}

/// The low `bits` of a byte, as a signed number.
fn sign_extended(byte: u8, bits: u32) -> u8 {
    let unused = 8 - bits;
    ((byte << unused).cast_signed() >> unused).cast_unsigned()
}

/// Whether `back`, which came back from an image, is the value that `before`
/// was, where an element has `width` bits, a byte at most.
///
/// A type narrower than that may have kept its own bits alone. What `before`
/// has above them must then be the sign in an `int8`, zero for an unsigned type
/// or a float, and either in raw or unsigned bytes that hold a signed type.
pub(crate) fn same_value(
    element_type: ElementType,
    kind: TypeChar,
    width: u32,
    before: u8,
    back: u8,
) -> bool {
    if element_type == ElementType::Pred {
        return (before != 0) == (back != 0);
    }
    let bits = element_type.bits();
    if bits >= width {
        return before == back;
    }
    let low = back & (0xff >> (8 - bits));
    let signed = sign_extended(low, bits) & (0xff >> (8 - width));
    let as_unsigned = before == low && kind != TypeChar::Int;
    let as_signed = before == signed && element_type.is_signed_integer();
    as_unsigned || as_signed
}

/// What an element of a type narrower than a byte can hold, for messages.
pub(crate) fn range(element_type: ElementType) -> String {
    let bits = element_type.bits();
    let values = 1 << bits;
    if element_type.is_signed_integer() {
        format!("{element_type} holds {} to {}", -values / 2, values / 2 - 1)
    } else {
        format!("{element_type} holds {bits} bits, 0 to {}", values - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numpy(text: &str) -> TypeStr {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_written_can_be_read_again() {
        for &t in ElementType::ALL {
            assert!(suits(t, &to_numpy(t).unwrap()), "{t}");
        }
    }

    #[test]
    fn types_and_their_files() {
        use ElementType::*;
        for (element_type, yes, no) in [
            (F32, vec!["<f4", ">f4"], vec!["<u4", "<i4", "<f8", "|V4"]),
            (Bf16, vec!["<V2", "|V2", "<u2", ">u2"], vec!["<f2", "<i2", "|V1"]),
            (F16, vec!["<f2"], vec!["|V2", "<u2"]),
            (F8e4m3fn, vec!["|V1", "|u1"], vec!["|i1", "|b1"]),
            (S4, vec!["|i1", "|u1", "|V1"], vec!["|b1", "<i2"]),
            (U4, vec!["|u1", "|V1"], vec!["|i1"]),
            (Pred, vec!["|b1", "|u1"], vec!["|i1"]),
            (U8, vec!["|u1"], vec!["|V1", "|b1"]),
            (C64, vec!["<c8"], vec!["<f8"]),
        ] {
            for t in yes {
                assert!(suits(element_type, &numpy(t)), "{element_type} {t}");
            }
            for t in no {
                assert!(!suits(element_type, &numpy(t)), "{element_type} {t}");
            }
        }
        assert_eq!(from_numpy(&numpy("|V2")).unwrap(), Bf16);
        assert_eq!(from_numpy(&numpy("|b1")).unwrap(), Pred);
        assert_eq!(from_numpy(&numpy("|i1")).unwrap(), S8);
        assert_eq!(from_numpy(&numpy(">c16")).unwrap(), C128);
        assert!(from_numpy(&numpy("|V1")).is_err());
        assert!(from_numpy(&numpy("<f16")).is_err());
    }

    #[test]
    fn values_narrower_than_a_byte() {
        let mut data = [0x0f, 0x08, 0x07];
        extend_sign(ElementType::S4, &mut data);
        assert_eq!(data, [0xff, 0xf8, 0x07]);
        use ElementType::*;
        for (element_type, kind, host, back, same) in [
            (S4, TypeChar::Int, 0xff, 0x0f, true),
            (S4, TypeChar::Int, 0x0f, 0x0f, false),
            (S4, TypeChar::Int, 0x08, 0x08, false),
            (S4, TypeChar::RawData, 0x0f, 0x0f, true),
            (S4, TypeChar::Uint, 0xff, 0x0f, true),
            (S4, TypeChar::Uint, 0x1f, 0x0f, false),
            (U4, TypeChar::Uint, 0x0f, 0x0f, true),
            (U4, TypeChar::Uint, 0xff, 0x0f, false),
            (F4e2m1fn, TypeChar::RawData, 0xff, 0x0f, false),
            (Pred, TypeChar::Uint, 2, 1, true),
            (Pred, TypeChar::Bool, 0, 1, false),
            (U8, TypeChar::Uint, 2, 1, false),
        ] {
            let found = same_value(element_type, kind, 8, host, back);
            assert_eq!(found, same, "{element_type} {kind} {host:#x} {back:#x}");
        }
        assert!(same_value(S2, TypeChar::RawData, 4, 0xf, 0x3));
        assert!(same_value(S2, TypeChar::RawData, 4, 0x3, 0xf));
        assert!(!same_value(S2, TypeChar::RawData, 4, 0x7, 0x3));
        for (element_type, kind, before, after, lost) in [
            (S4, TypeChar::Int, [0xff, 0x08], [0x0f, 0x08], Some((1, 0x08))),
            (S4, TypeChar::RawData, [0xff, 0x08], [0x0f, 0x08], None),
            (Pred, TypeChar::Uint, [0x10, 0], [1, 0], None),
            (U8, TypeChar::Uint, [0x1f, 0], [0x1f, 0], None),
        ] {
            let mut data = before;
            assert_eq!(reduce(element_type, kind, &mut data), lost, "{element_type}");
            assert_eq!(data, after, "{element_type}");
        }
        assert_eq!(range(S4), "s4 holds -8 to 7");
        assert_eq!(range(U2), "u2 holds 2 bits, 0 to 3");
    }
}
