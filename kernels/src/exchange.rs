//! Words of elements below a byte that lie beside each other in a vector, exchanged there: as many of them as a word has
//! elements become words of their first elements, of their second ones, and so on.
//!
//! ```text
//! words of elements of four bits      a0 .. a7   b0 .. b7   c0 .. c7   ..   h0 .. h7
//! bytes of the same place             a0 a1  b0 b1 .. h0 h1    a2 a3  b2 b3 ..
//! from two of them at a time          a0 b0  c0 d0 .. g0 h0    a1 b1  ..
//! ```
//!
//! For elements of two bits the bytes of a place are those of 16 words, in two parts of eight bytes, and what is made of
//! these is brought together in the end.

#![allow(unsafe_code, reason = "loads of tables; docs/architecture.md")]

use super::vector::{LINE, Vector};

/// How bytes and bits of a vector of a line are moved for elements of `BITS` bits.
struct Exchange<const BITS: u32>;

impl<const BITS: u32> Exchange<BITS> {
    /// The bits of an element, two or four, as nothing is run for others; the elements of a byte, and those of a word, which are
    /// the words of a square.
    const BITS: u8 = if BITS == 2 { 2 } else { 4 };
    const IN_BYTE: u8 = 8 / Self::BITS;
    const IN_WORD: u8 = 4 * Self::IN_BYTE;

    /// For each byte of a vector which one comes there first: of each square the first bytes of its words, then the second
    /// ones.
    const BY_PLACE: [u8; LINE] = {
        let (mut order, mut to) = ([0; LINE], 0_u8);
        let square = 4 * Self::IN_WORD;
        while (to as usize) < LINE {
            let (place, word) = (to % square / Self::IN_WORD, to % Self::IN_WORD);
            order[to as usize] = to / square * square + 4 * word + place;
            to += 1;
        }
        order
    };

    /// Of each eight bytes: where a field of eight bits begins that has one element of a byte where it belongs, that of the
    /// first of the bytes it comes from, of the second, and so on.
    const FIELDS: [[u8; LINE]; 4] = {
        let (mut fields, mut from) = ([[0; LINE]; 4], 0_u8);
        while from < Self::IN_BYTE {
            let mut to = 0_u8;
            while (to as usize) < LINE {
                let (element, byte) = (to % 8 / Self::BITS, to % Self::BITS);
                let first = 8 * (byte * Self::IN_BYTE + from) + element * Self::BITS;
                fields[from as usize][to as usize] = first - from * Self::BITS;
                to += 1;
            }
            from += 1;
        }
        fields
    };

    /// For each byte of the words made which one it is of what is made of eight bytes at a time.
    const BY_WORD: [u8; LINE] = {
        let (mut order, mut to) = ([0; LINE], 0_u8);
        let square = 4 * Self::IN_WORD;
        while (to as usize) < LINE {
            let (word, byte) = (to % square / 4, to % 4);
            let (place, element) = (word / Self::IN_BYTE, word % Self::IN_BYTE);
            let part = byte * Self::IN_BYTE / 8;
            let in_part = element * Self::BITS + byte % Self::BITS;
            order[to as usize] = to / square * square + place * Self::IN_WORD + 8 * part + in_part;
            to += 1;
        }
        order
    };
}

/// Exchanges the elements of each square of words. Only where there are [bit fields](Vector::HAS_BIT_FIELDS), of elements of two
/// or four bits.
#[inline(always)]
pub(super) fn exchange<V: Vector, const BITS: u32>(words: V) -> V {
    // SAFETY: a line, and no vector is longer; the CPU has `V`, as there are values of it.
    let by_place = unsafe { V::load(const { &Exchange::<BITS>::BY_PLACE }.as_ptr()) };
    let bytes = words.shuffle(by_place);
    let fields = const { &Exchange::<BITS>::FIELDS };
    let mut mask: u8 = 0xff >> (8 - Exchange::<BITS>::BITS);
    let mut made = bytes;
    for (from, fields) in fields.iter().enumerate() {
        if from < const { Exchange::<BITS>::IN_BYTE as usize } {
            // SAFETY: a line.
            let fields = unsafe { V::load(fields.as_ptr()) };
            // SAFETY: the CPU has `V`.
            let elements = bytes.bit_fields(fields).and(unsafe { V::splat(mask) });
            made = if from == 0 { elements } else { made.or(elements) };
            mask = mask.unbounded_shl(Exchange::<BITS>::BITS.into());
        }
    }
    if BITS == 4 {
        // What is made of eight bytes is two words.
        return made;
    }
    // SAFETY: a line.
    made.shuffle(unsafe { V::load(const { &Exchange::<BITS>::BY_WORD }.as_ptr()) })
}
