//! What kernels do, by name.

use std::fmt;

use super::conversion::Conversion;

/// What a kernel does with each block of a strip.
///
/// Widths are in bits. The two sides are a source and a destination matrix; one
/// of them has its rows at any distance from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BlockOp {
    /// One run of bytes to one run of bytes.
    Copy,
    /// Words of 32 bits, of each of which the first elements are kept, as many as a block has rows; zeros take the place of
    /// the others.
    CopyWords {
        /// Width of an element.
        bits: u32,
    },
    /// Rows of elements into words: `ways` elements, one of each row, stand
    /// beside each other. Rows of elements below a byte fill bytes.
    Interleave {
        /// Rows, which are elements in a word.
        ways: u32,
        /// Width of an element.
        bits: u32,
        /// The first element of a byte of a row has its most significant bits. Only of
        /// elements below a byte.
        most_first: bool,
    },
    /// Words into rows of elements: the mirror of `Interleave`.
    Deinterleave {
        /// Elements in a word, which are rows.
        ways: u32,
        /// Width of an element.
        bits: u32,
        /// As of `Interleave`.
        most_first: bool,
    },
    /// Rows of bytes into words, of each byte the low bits.
    Squeeze {
        /// Bytes in a word.
        ways: u32,
        /// Bits of each byte that are kept.
        bits: u32,
        /// Keep whether any bit was set, instead of the low bits.
        truth: bool,
    },
    /// Words into rows of bytes, whose other bits are 0: the mirror of
    /// `Squeeze`.
    Unsqueeze {
        /// Bytes in a word.
        ways: u32,
        /// Bits that make one byte.
        bits: u32,
    },
    /// A run of bytes into a run of narrower elements.
    Narrow {
        /// Bits of each byte that are kept.
        bits: u32,
        /// Keep whether any bit was set, instead of the low bits.
        truth: bool,
    },
    /// A run of narrow elements into a run of bytes: the mirror of `Narrow`.
    Widen {
        /// Bits that make one byte.
        bits: u32,
    },
    /// As `Narrow`, but the run may begin, and end, within a byte, whose other bits stay as they are.
    NarrowBits {
        /// Bits of each byte that are kept.
        bits: u32,
        /// Keep whether any bit was set, instead of the low bits.
        truth: bool,
        /// The first element of a byte has its most significant bits.
        most_first: bool,
    },
    /// As `Widen`, but the run may begin within a byte: the mirror of `NarrowBits`.
    WidenBits {
        /// Bits that make one byte.
        bits: u32,
        /// The first element of a byte has its most significant bits.
        most_first: bool,
    },
    /// One run of bytes to one run of bytes, the elements of each byte in the opposite
    /// order.
    Reverse {
        /// Width of an element.
        bits: u32,
    },
    /// One run of elements below a byte to one run of such, each of which may begin, and end, within a byte.
    CopyBits {
        /// Width of an element.
        bits: u32,
        /// The source has the first element of a byte in its most significant bits.
        from_most_first: bool,
        /// The destination has.
        to_most_first: bool,
        /// The other bits of the last byte become zeros, instead of staying as they are.
        clears_rest: bool,
    },
    /// A run of numbers into a run of numbers of another type.
    Convert {
        /// What becomes of each of them.
        conversion: Conversion,
    },
    /// Rows of numbers into words of 32 bits of numbers of another type, as many in each as there are rows.
    ConvertInterleave {
        /// What becomes of each number, half a word or a fourth of one then.
        conversion: Conversion,
    },
    /// Words of 32 bits into rows of numbers of another type: the mirror of `ConvertInterleave`.
    DeinterleaveConvert {
        /// What becomes of each number, half a word or a fourth of one before.
        conversion: Conversion,
    },
    /// Rows into columns.
    Transpose {
        /// Width of an element.
        bits: u32,
    },
    /// Rows of words of 32 bits into columns, where the source has a byte for each element of a
    /// word, of which the word takes the low bits.
    NarrowTranspose {
        /// Bits of each byte that are kept.
        bits: u32,
        /// Keep whether any bit was set, instead of the low bits.
        truth: bool,
    },
    /// Rows of words of 32 bits into columns, where the destination has a byte for each element of
    /// a word: the mirror of `NarrowTranspose`.
    TransposeWiden {
        /// Bits that make one byte.
        bits: u32,
    },
    /// Rows of words of 32 bits into columns, where the elements of a word are as far from each other in
    /// the source as a block has columns: channels of pixels.
    GatherTranspose {
        /// Elements in a word.
        ways: u32,
        /// Width of an element.
        bits: u32,
    },
    /// Rows of words of 32 bits into columns, where the elements of a word are as far from each other in
    /// the destination as a block has rows: the mirror of `GatherTranspose`.
    TransposeScatter {
        /// Elements in a word.
        ways: u32,
        /// Width of an element.
        bits: u32,
    },
    /// Rows of words into columns, and `ways` of these into words again: from
    /// words of elements that were beside each other in one dimension to words of
    /// those beside each other in another one, the dimensions swapped.
    TransposeInterleave {
        /// Elements in a word, on both sides.
        ways: u32,
        /// Width of an element.
        bits: u32,
    },
    /// Rows into words of `ways` elements, one of each, and these into columns: rows of a dense matrix each.
    InterleaveTranspose {
        /// Elements in a word, which are rows.
        ways: u32,
        /// Width of an element.
        bits: u32,
    },
    /// Columns of words into rows of words, and these into rows of elements: the mirror of
    /// `InterleaveTranspose`.
    TransposeDeinterleave {
        /// Elements in a word, which are rows.
        ways: u32,
        /// Width of an element.
        bits: u32,
    },
    /// Rows into words of `ways` columns each.
    InterleaveColumns {
        /// Elements in a word, which are columns.
        ways: u32,
        /// Width of an element.
        bits: u32,
    },
    /// Words of `ways` columns each into rows: the mirror of `InterleaveColumns`.
    DeinterleaveColumns {
        /// Elements in a word, which are columns.
        ways: u32,
        /// Width of an element.
        bits: u32,
    },
    /// `ways` rows of words into as many rows of words, in which those elements
    /// share a word that had the same word number in different rows.
    Exchange {
        /// Elements in a word, which is as many as there are rows.
        ways: u32,
        /// Width of an element.
        bits: u32,
    },
    /// Single elements from any places to any places.
    Strided {
        /// Width of an element.
        bits: u32,
    },
    /// Single elements that do not stand at whole bytes, on either side.
    Bits {
        /// Width of an element in the source.
        source_bits: u32,
        /// Width of an element in the destination.
        destination_bits: u32,
        /// Write whether any bit was set, instead of the low bits.
        truth: bool,
    },
    /// A run of padding.
    Fill,
    /// Single elements of padding that do not stand at whole bytes.
    FillBits,
}

impl BlockOp {
    /// Whether its kernels visit the blocks of a strip in the order that they are
    /// told. That has to be all of them, and each once.
    #[doc(hidden)]
    pub fn goes_by_order(self) -> bool {
        matches!(self, BlockOp::Copy | BlockOp::Interleave { .. } | BlockOp::Deinterleave { .. })
    }
}

impl fmt::Display for BlockOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let truth = |truth: bool| if truth { "-truth" } else { "" };
        let named = |conversion: Conversion| format!("{conversion:?}").to_lowercase();
        let order = |most_first: bool| if most_first { "-most-first" } else { "" };
        match *self {
            BlockOp::Copy => f.write_str("copy"),
            BlockOp::CopyWords { bits } => write!(f, "copy-words{bits}"),
            BlockOp::Interleave { ways, bits, most_first } => {
                write!(f, "interleave{ways}x{bits}{}", order(most_first))
            }
            BlockOp::Deinterleave { ways, bits, most_first } => {
                write!(f, "deinterleave{ways}x{bits}{}", order(most_first))
            }
            BlockOp::Squeeze { ways, bits, truth: t } => {
                write!(f, "squeeze{bits}{}-interleave{ways}x8", truth(t))
            }
            BlockOp::Unsqueeze { ways, bits } => write!(f, "deinterleave{ways}x8-unsqueeze{bits}"),
            // Those whose runs may begin within bytes are named like the others: what they do is the same.
            BlockOp::Narrow { bits, truth: t } => write!(f, "narrow{bits}{}", truth(t)),
            BlockOp::NarrowBits { bits, truth: t, most_first } => {
                write!(f, "narrow{bits}{}{}", truth(t), order(most_first))
            }
            BlockOp::Widen { bits } => write!(f, "widen{bits}"),
            BlockOp::WidenBits { bits, most_first } => {
                write!(f, "widen{bits}{}", order(most_first))
            }
            BlockOp::Reverse { bits } => write!(f, "reverse{bits}"),
            BlockOp::CopyBits { bits, from_most_first, to_most_first, .. } => {
                let reverse = if from_most_first == to_most_first { "" } else { "-reverse" };
                write!(f, "copy-bits{reverse}{bits}")
            }
            BlockOp::Convert { conversion } => f.write_str(&named(conversion)),
            BlockOp::ConvertInterleave { conversion } => {
                let width = conversion.widths().1;
                write!(f, "{}-interleave{}x{}", named(conversion), 4 / width, 8 * width)
            }
            BlockOp::DeinterleaveConvert { conversion } => {
                let width = conversion.widths().0;
                write!(f, "deinterleave{}x{}-{}", 4 / width, 8 * width, named(conversion))
            }
            BlockOp::Transpose { bits } => write!(f, "transpose{bits}"),
            BlockOp::NarrowTranspose { bits, truth: t } => {
                write!(f, "narrow{bits}{}-transpose32", truth(t))
            }
            BlockOp::TransposeWiden { bits } => write!(f, "transpose32-widen{bits}"),
            BlockOp::GatherTranspose { ways, bits } => {
                write!(f, "gather{ways}x{bits}-transpose32")
            }
            BlockOp::TransposeScatter { ways, bits } => {
                write!(f, "transpose32-scatter{ways}x{bits}")
            }
            BlockOp::TransposeInterleave { ways, bits } => {
                write!(f, "transpose{}-interleave{ways}x{bits}", ways * bits)
            }
            BlockOp::InterleaveTranspose { ways, bits } => {
                write!(f, "interleave{ways}x{bits}-transpose{}", ways * bits)
            }
            BlockOp::TransposeDeinterleave { ways, bits } => {
                write!(f, "transpose{}-deinterleave{ways}x{bits}", ways * bits)
            }
            BlockOp::InterleaveColumns { ways, bits } => {
                write!(f, "interleave-columns{ways}x{bits}")
            }
            BlockOp::DeinterleaveColumns { ways, bits } => {
                write!(f, "deinterleave-columns{ways}x{bits}")
            }
            BlockOp::Exchange { ways, bits } => write!(f, "exchange{ways}x{bits}"),
            BlockOp::Strided { bits } => write!(f, "strided{bits}"),
            BlockOp::Bits { source_bits, destination_bits, truth: t } => {
                write!(f, "bits{source_bits}to{destination_bits}{}", truth(t))
            }
            BlockOp::Fill => f.write_str("fill"),
            BlockOp::FillBits => f.write_str("fill-bits"),
        }
    }
}
