//! What TPUs do with arrays: the formats of their buffers, and which layout an
//! array gets.
//!
//! A TPU's memory and registers are made of words of 32 bits: a register holds 8
//! rows of 128 words. Elements narrower than a word share one with the elements
//! of the same column in the rows below, so that a word is always one column:
//! two rows of 16 bits, four of 8, thirty-two of 1. That is what the second tile
//! of each [`Format`] says.
//!
//! [`default_layout()`] tells the layout that XLA gives to an array of some bounds
//! on a TPU.
//!
//! A plan does not know any of this. It finds the same kernels for any layout
//! whose words are made the same way.

mod default_layout;
mod format;

pub use default_layout::{Chip, UnknownChip, default_layout, ranked_layouts};
pub use format::{BF16_8X128, F32_8X128, FORMATS, Format, PRED_32X128, S8_8X128, S8_32X128};
