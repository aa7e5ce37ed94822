//! The block ops, each written once over vectors: one algorithm does it for every instruction
//! set.
//!
//! What is left at the end of a row is done by a vector that ends where the row
//! does, writing some bytes a second time; what is shorter than one, by a
//! narrower vector, and in the end by the scalar tier.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

use std::marker::PhantomData;

use super::bit_runs::{NarrowBits, WidenBits};
use super::convert::ConvertRun;
use super::convert_words::{ConvertInterleave, ConvertWords, DeinterleaveConvert};
use super::copy::{CopyRun, Fill, Strided};
use super::copy_bits::CopyBits;
use super::copy_words::CopyWords;
use super::deinterleave::Deinterleave;
use super::dense_words::{InterleaveTranspose, TransposeDeinterleave};
use super::interleave::Interleave;
use super::narrow_transpose::{NarrowTranspose, TransposeWiden};
use super::packed::{Narrow, Reverse, Widen};
use super::pixels::{GatherTranspose, TransposeScatter};
use super::scalar::Scalar;
use super::squeeze::{Squeeze, Unsqueeze};
use super::transpose::{Exchange, Transpose, TransposeInterleave, TransposeNarrow};
use super::transpose_runs::TransposeRuns;
use super::vector::Vector;
use super::word_columns::{DeinterleaveColumns, InterleaveColumns};
use super::{BlockOp, Place, Run, Strip, is_of_runs};
use crate::conversion::{self, Conversion};

/// A block op for elements of one width, in every tier.
///
/// # Safety
///
/// Both functions by the contract of [`kernel`](super); `vectors` on a CPU that
/// has the instructions of `V`, for a strip that nothing does `instead`.
pub(super) trait Algorithm {
    unsafe fn elements(strip: &Strip, source: *const u8, destination: *mut u8);

    /// Element by element, where there is nothing to gain.
    #[inline(always)]
    unsafe fn vectors<V: Vector>(
        strip: &Strip,
        _order: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        // SAFETY: the same contract.
        unsafe { Self::elements(strip, source, destination) };
    }

    /// What has to do a strip that `vectors` cannot do, or should not: shorter ones, single elements, or another
    /// algorithm.
    #[inline(always)]
    fn instead<V: Vector>(_strip: &Strip, _destination: *mut u8) -> Option<Run> {
        None
    }
}

/// What has a function of its own in each instruction set, which others call.
///
/// # Safety
///
/// By the contract of [`kernel`](super), on a CPU that has the instructions of `V`.
pub(super) trait Body {
    unsafe fn run<V: Vector>(
        strip: &Strip,
        order: &[Place],
        source: *const u8,
        destination: *mut u8,
    );
}

/// What has a function of its own in each instruction set, though it is no strip: so much that going there is nothing
/// beside it, and that having it wherever it is done would be most of what there is to compile.
///
/// # Safety
///
/// What it says of itself, on a CPU that has the instructions of `V`.
pub(super) trait Apart {
    unsafe fn run<V: Vector>(self);
}

/// Makes [`Vector::compiled`] and [`Vector::apart`] for an instruction set that has these features.
macro_rules! compiled {
    ([$($feature:tt),*] ()) => {
        #[inline(always)]
        unsafe fn apart<A: $crate::algorithm::Apart>(what: A) {
            /// # Safety
            ///
            /// What it says of itself; the CPU has these features.
            #[inline(never)]
            $(#[target_feature(enable = $feature)])*
            unsafe fn apart<A: $crate::algorithm::Apart>(what: A) {
                // SAFETY: the same contract; the vector needs the features of this function.
                unsafe { what.run::<V>() };
            }
            // SAFETY: by the contract of this function.
            unsafe { apart(what) };
        }

        fn compiled<B: $crate::algorithm::Body>() -> $crate::Run {
            /// # Safety
            ///
            /// That of the body; the CPU has these features.
            #[inline(never)]
            $(#[target_feature(enable = $feature)])*
            unsafe fn compiled<B: $crate::algorithm::Body>(
                strip: &$crate::Strip,
                order: &[$crate::Place],
                source: *const u8,
                destination: *mut u8,
            ) {
                // SAFETY: the same contract; the vector needs the features of this function.
                unsafe { B::run::<V>(strip, order, source, destination) };
            }
            compiled::<B>
        }
    };
}
pub(super) use compiled;

/// An instruction set: the function of an algorithm in it.
pub(super) trait InstructionSet {
    fn entry<A: Algorithm>() -> Run;
}

impl<V: Vector> InstructionSet for V {
    fn entry<A: Algorithm>() -> Run {
        V::compiled::<Entry<A>>()
    }
}

/// The algorithm of a strip, or who does it instead. It is small, so that who goes on to shorter
/// vectors does not set up what longer ones would need.
struct Entry<A>(PhantomData<A>);

impl<A: Algorithm> Body for Entry<A> {
    #[inline(always)]
    unsafe fn run<V: Vector>(
        strip: &Strip,
        order: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        let run = A::instead::<V>(strip, destination).unwrap_or(V::compiled::<Vectors<A>>());
        // SAFETY: the same contract; what `V` needs is all that its half does.
        unsafe { run(strip, order, source, destination) };
    }
}

/// [`Algorithm::vectors`].
struct Vectors<A>(PhantomData<A>);

impl<A: Algorithm> Body for Vectors<A> {
    #[inline(always)]
    unsafe fn run<V: Vector>(
        strip: &Strip,
        order: &[Place],
        source: *const u8,
        destination: *mut u8,
    ) {
        // SAFETY: the same contract.
        unsafe { A::vectors::<V>(strip, order, source, destination) };
    }
}

/// The function of an algorithm in vectors of half the length, or, if there are none, element by element.
#[inline(always)]
pub(super) fn shorter<A: Algorithm, V: Vector>() -> Run {
    if V::IS_SHORTEST { Scalar::entry::<A>() } else { V::Half::entry::<A>() }
}

/// The kernel of an instruction set for an op.
pub(super) fn kernel<I: InstructionSet>(op: BlockOp, stream: bool) -> Option<Run> {
    macro_rules! entry {
        ($algorithm:ident $(, $argument:literal)*) => {
            if stream {
                I::entry::<$algorithm<$($argument,)* true>>()
            } else {
                I::entry::<$algorithm<$($argument,)* false>>()
            }
        };
    }
    macro_rules! convert_entry {
        ($conversion:ident) => {
            if stream {
                I::entry::<ConvertRun<conversion::$conversion, true>>()
            } else {
                I::entry::<ConvertRun<conversion::$conversion, false>>()
            }
        };
    }
    macro_rules! convert_words_entry {
        ($words:ident, $conversion:ident, $ways:literal) => {
            if stream {
                I::entry::<ConvertWords<$words<conversion::$conversion, $ways>, true>>()
            } else {
                I::entry::<ConvertWords<$words<conversion::$conversion, $ways>, false>>()
            }
        };
    }
    use BlockOp as Op;
    Some(match op {
        Op::Copy => entry!(CopyRun),
        Op::Fill => entry!(Fill),
        Op::Interleave { ways, bits, most_first } => match (ways, bits, most_first) {
            (2, 8, false) => entry!(Interleave, 2, 8, 1, false),
            (2, 16, false) => entry!(Interleave, 2, 16, 2, false),
            (2, 32, false) => entry!(Interleave, 2, 32, 4, false),
            (2, 64, false) => entry!(Interleave, 2, 64, 8, false),
            (4, 8, false) => entry!(Interleave, 4, 8, 1, false),
            (4, 16, false) => entry!(Interleave, 4, 16, 2, false),
            (4, 32, false) => entry!(Interleave, 4, 32, 4, false),
            (8, 8, false) => entry!(Interleave, 8, 8, 1, false),
            (8, 16, false) => entry!(Interleave, 8, 16, 2, false),
            (32, 1, false) => entry!(Interleave, 32, 1, 1, false),
            (16, 2, false) => entry!(Interleave, 16, 2, 1, false),
            (8, 4, false) => entry!(Interleave, 8, 4, 1, false),
            (32, 1, true) => entry!(Interleave, 32, 1, 1, true),
            (16, 2, true) => entry!(Interleave, 16, 2, 1, true),
            (8, 4, true) => entry!(Interleave, 8, 4, 1, true),
            _ => return None,
        },
        Op::Deinterleave { ways, bits, most_first } => match (ways, bits, most_first) {
            (2, 8, false) => entry!(Deinterleave, 2, 8, 1, false),
            (2, 16, false) => entry!(Deinterleave, 2, 16, 2, false),
            (2, 32, false) => entry!(Deinterleave, 2, 32, 4, false),
            (2, 64, false) => entry!(Deinterleave, 2, 64, 8, false),
            (4, 8, false) => entry!(Deinterleave, 4, 8, 1, false),
            (4, 16, false) => entry!(Deinterleave, 4, 16, 2, false),
            (4, 32, false) => entry!(Deinterleave, 4, 32, 4, false),
            (8, 8, false) => entry!(Deinterleave, 8, 8, 1, false),
            (8, 16, false) => entry!(Deinterleave, 8, 16, 2, false),
            (32, 1, false) => entry!(Deinterleave, 32, 1, 1, false),
            (16, 2, false) => entry!(Deinterleave, 16, 2, 1, false),
            (8, 4, false) => entry!(Deinterleave, 8, 4, 1, false),
            (32, 1, true) => entry!(Deinterleave, 32, 1, 1, true),
            (16, 2, true) => entry!(Deinterleave, 16, 2, 1, true),
            (8, 4, true) => entry!(Deinterleave, 8, 4, 1, true),
            _ => return None,
        },
        Op::Squeeze { ways, bits, truth } => match (ways, bits, truth) {
            (1, 1, false) => entry!(Squeeze, 1, 1, false),
            (2, 1, false) => entry!(Squeeze, 2, 1, false),
            (4, 1, false) => entry!(Squeeze, 4, 1, false),
            (1, 1, true) => entry!(Squeeze, 1, 1, true),
            (2, 1, true) => entry!(Squeeze, 2, 1, true),
            (4, 1, true) => entry!(Squeeze, 4, 1, true),
            (1, 2, false) => entry!(Squeeze, 1, 2, false),
            (2, 2, false) => entry!(Squeeze, 2, 2, false),
            (4, 2, false) => entry!(Squeeze, 4, 2, false),
            (1, 4, false) => entry!(Squeeze, 1, 4, false),
            (2, 4, false) => entry!(Squeeze, 2, 4, false),
            (4, 4, false) => entry!(Squeeze, 4, 4, false),
            _ => return None,
        },
        Op::Unsqueeze { ways, bits } => match (ways, bits) {
            (1, 1) => entry!(Unsqueeze, 1, 1),
            (2, 1) => entry!(Unsqueeze, 2, 1),
            (4, 1) => entry!(Unsqueeze, 4, 1),
            (1, 2) => entry!(Unsqueeze, 1, 2),
            (2, 2) => entry!(Unsqueeze, 2, 2),
            (4, 2) => entry!(Unsqueeze, 4, 2),
            (1, 4) => entry!(Unsqueeze, 1, 4),
            (2, 4) => entry!(Unsqueeze, 2, 4),
            (4, 4) => entry!(Unsqueeze, 4, 4),
            _ => return None,
        },
        Op::Narrow { bits: 1, truth: false } => entry!(Narrow, 1, false),
        Op::Narrow { bits: 1, truth: true } => entry!(Narrow, 1, true),
        Op::Narrow { bits: 2, truth: false } => entry!(Narrow, 2, false),
        Op::Narrow { bits: 4, truth: false } => entry!(Narrow, 4, false),
        Op::NarrowBits { bits, truth, most_first } => match (bits, truth, most_first) {
            (1, false, false) => entry!(NarrowBits, 1, false, false),
            (1, true, false) => entry!(NarrowBits, 1, true, false),
            (2, false, false) => entry!(NarrowBits, 2, false, false),
            (4, false, false) => entry!(NarrowBits, 4, false, false),
            (1, false, true) => entry!(NarrowBits, 1, false, true),
            (1, true, true) => entry!(NarrowBits, 1, true, true),
            (2, false, true) => entry!(NarrowBits, 2, false, true),
            (4, false, true) => entry!(NarrowBits, 4, false, true),
            _ => return None,
        },
        Op::Convert { conversion } => match conversion {
            Conversion::F32ToBf16 => convert_entry!(F32ToBf16),
            Conversion::Bf16ToF32 => convert_entry!(Bf16ToF32),
            Conversion::F32ToF16 => convert_entry!(F32ToF16),
            Conversion::F16ToF32 => convert_entry!(F16ToF32),
            Conversion::F64ToF32 => convert_entry!(F64ToF32),
            Conversion::F64ToF32Rest => convert_entry!(F64ToF32Rest),
            Conversion::F32ToF64 => convert_entry!(F32ToF64),
            Conversion::F32ToF8e4m3fn => convert_entry!(F32ToF8e4m3fn),
            Conversion::F32ToF8e5m2 => convert_entry!(F32ToF8e5m2),
            Conversion::S32ToS8 => convert_entry!(S32ToS8),
            Conversion::S8ToS32 => convert_entry!(S8ToS32),
        },
        Op::ConvertInterleave { conversion } => match conversion {
            Conversion::F32ToBf16 => convert_words_entry!(ConvertInterleave, F32ToBf16, 2),
            Conversion::F32ToF16 => convert_words_entry!(ConvertInterleave, F32ToF16, 2),
            Conversion::F32ToF8e4m3fn => convert_words_entry!(ConvertInterleave, F32ToF8e4m3fn, 4),
            Conversion::F32ToF8e5m2 => convert_words_entry!(ConvertInterleave, F32ToF8e5m2, 4),
            Conversion::S32ToS8 => convert_words_entry!(ConvertInterleave, S32ToS8, 4),
            _ => return None,
        },
        Op::DeinterleaveConvert { conversion } => match conversion {
            Conversion::Bf16ToF32 => convert_words_entry!(DeinterleaveConvert, Bf16ToF32, 2),
            Conversion::F16ToF32 => convert_words_entry!(DeinterleaveConvert, F16ToF32, 2),
            Conversion::S8ToS32 => convert_words_entry!(DeinterleaveConvert, S8ToS32, 4),
            _ => return None,
        },
        Op::CopyBits { bits, from_most_first, to_most_first, clears_rest } => {
            match (bits, from_most_first, to_most_first, clears_rest) {
                (1 | 2 | 4, false, false, false) => I::entry::<CopyBits<1, false, false, false>>(),
                (1 | 2 | 4, false, false, true) => I::entry::<CopyBits<1, false, false, true>>(),
                // Into memory where rows have bytes of their own, and out of it.
                (1, true, false, true) => I::entry::<CopyBits<1, true, false, true>>(),
                (2, true, false, true) => I::entry::<CopyBits<2, true, false, true>>(),
                (4, true, false, true) => I::entry::<CopyBits<4, true, false, true>>(),
                (1, false, true, false) => I::entry::<CopyBits<1, false, true, false>>(),
                (2, false, true, false) => I::entry::<CopyBits<2, false, true, false>>(),
                (4, false, true, false) => I::entry::<CopyBits<4, false, true, false>>(),
                _ => return None,
            }
        }
        Op::CopyWords { bits: 1 } => entry!(CopyWords, 1),
        Op::CopyWords { bits: 2 } => entry!(CopyWords, 2),
        Op::CopyWords { bits: 4 } => entry!(CopyWords, 4),
        Op::CopyWords { bits: 8 } => entry!(CopyWords, 8),
        Op::CopyWords { bits: 16 } => entry!(CopyWords, 16),
        Op::Reverse { bits: 1 } => I::entry::<Reverse<1>>(),
        Op::Reverse { bits: 2 } => I::entry::<Reverse<2>>(),
        Op::Reverse { bits: 4 } => I::entry::<Reverse<4>>(),
        Op::Widen { bits: 1 } => I::entry::<Widen<1>>(),
        Op::Widen { bits: 2 } => I::entry::<Widen<2>>(),
        Op::Widen { bits: 4 } => I::entry::<Widen<4>>(),
        Op::WidenBits { bits, most_first } => match (bits, most_first) {
            (1, false) => I::entry::<WidenBits<1, false>>(),
            (2, false) => I::entry::<WidenBits<2, false>>(),
            (4, false) => I::entry::<WidenBits<4, false>>(),
            (1, true) => I::entry::<WidenBits<1, true>>(),
            (2, true) => I::entry::<WidenBits<2, true>>(),
            (4, true) => I::entry::<WidenBits<4, true>>(),
            _ => return None,
        },
        Op::Transpose { bits: 8 } => entry!(TransposeNarrow, 8, 1),
        Op::Transpose { bits: 16 } => entry!(TransposeNarrow, 16, 2),
        Op::Transpose { bits: 32 } => entry!(Transpose, 32, 4),
        Op::Transpose { bits: 64 } => entry!(Transpose, 64, 8),
        Op::Transpose { bits } if is_of_runs(bits) => entry!(TransposeRuns),
        Op::NarrowTranspose { bits, truth } => match (bits, truth) {
            (1, false) => entry!(NarrowTranspose, 1, false),
            (1, true) => entry!(NarrowTranspose, 1, true),
            (2, false) => entry!(NarrowTranspose, 2, false),
            (4, false) => entry!(NarrowTranspose, 4, false),
            _ => return None,
        },
        Op::TransposeWiden { bits: 1 } => entry!(TransposeWiden, 1),
        Op::TransposeWiden { bits: 2 } => entry!(TransposeWiden, 2),
        Op::TransposeWiden { bits: 4 } => entry!(TransposeWiden, 4),
        Op::GatherTranspose { ways: 2, bits: 16 } => entry!(GatherTranspose, 2, 16, 2),
        Op::GatherTranspose { ways: 4, bits: 8 } => entry!(GatherTranspose, 4, 8, 1),
        Op::TransposeScatter { ways: 2, bits: 16 } => entry!(TransposeScatter, 2, 16, 2),
        Op::TransposeScatter { ways: 4, bits: 8 } => entry!(TransposeScatter, 4, 8, 1),
        Op::TransposeInterleave { ways: 2, bits: 16 } => entry!(TransposeInterleave, 2, 16),
        Op::TransposeInterleave { ways: 4, bits: 8 } => entry!(TransposeInterleave, 4, 8),
        Op::TransposeInterleave { ways: 8, bits: 4 } => entry!(TransposeInterleave, 8, 4),
        Op::TransposeInterleave { ways: 16, bits: 2 } => entry!(TransposeInterleave, 16, 2),
        Op::InterleaveTranspose { ways: 2, bits: 16 } => entry!(InterleaveTranspose, 2, 16, 2),
        Op::InterleaveTranspose { ways: 4, bits: 8 } => entry!(InterleaveTranspose, 4, 8, 1),
        Op::TransposeDeinterleave { ways: 2, bits: 16 } => entry!(TransposeDeinterleave, 2, 16, 2),
        Op::TransposeDeinterleave { ways: 4, bits: 8 } => entry!(TransposeDeinterleave, 4, 8, 1),
        Op::InterleaveColumns { ways: 2, bits: 16 } => entry!(InterleaveColumns, 2, 16, 2),
        Op::InterleaveColumns { ways: 4, bits: 8 } => entry!(InterleaveColumns, 4, 8, 1),
        Op::DeinterleaveColumns { ways: 2, bits: 16 } => entry!(DeinterleaveColumns, 2, 16, 2),
        Op::DeinterleaveColumns { ways: 4, bits: 8 } => entry!(DeinterleaveColumns, 4, 8, 1),
        Op::Exchange { ways: 2, bits: 16 } => entry!(Exchange, 2, 16, 2),
        Op::Exchange { ways: 4, bits: 8 } => entry!(Exchange, 4, 8, 1),
        Op::Strided { bits: 8 } => I::entry::<Strided<1>>(),
        Op::Strided { bits: 16 } => I::entry::<Strided<2>>(),
        Op::Strided { bits: 32 } => I::entry::<Strided<4>>(),
        Op::Strided { bits: 64 } => I::entry::<Strided<8>>(),
        Op::Strided { bits: 128 } => I::entry::<Strided<16>>(),
        _ => return None,
    })
}
