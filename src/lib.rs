//! Moves arrays between host memory and the tiled layouts that XLA gives to
//! the buffers of accelerators.
//!
//! XLA describes a TPU buffer by text such as
//! `bf16[1024,4096]{1,0:T(8,128)(2,1)}`: bounds, physical order of the
//! dimensions, tiles, tiles of tiles, combined dimensions. This crate reads
//! that text, knows where each element stands, and rewrites arrays into that
//! form and back.
//!
//! ```
//! use relayout::{Plan, Shape};
//!
//! // Figure 1 of the tiled-layout document, with the numbers 0 to 14.
//! let shape: Shape = "u8[3,5]{1,0:T(2,2)}".parse()?;
//! let host: Vec<u8> = (0..15).collect();
//! let mut image = vec![0xee; 24];
//! Plan::pack(&shape)?.run(&host, &mut image)?;
//! assert_eq!(image[..8], [0, 1, 5, 6, 2, 3, 7, 8]);
//! // The last tile: element (2,4), then padding, which is 0.
//! assert_eq!(image[20..], [14, 0, 0, 0]);
//!
//! let mut back = vec![0; 15];
//! Plan::unpack(&shape)?.run(&image, &mut back)?;
//! assert_eq!(back, host);
//! # Ok::<(), relayout::Error>(())
//! ```
//!
//! # What is where
//!
//! - [`Shape`], [`Layout`], [`Tile`], [`ElementType`]: the description of an
//!   array, read by [`str::parse`] and printed in XLA's notation;
//! - [`Plan`]: how to write an array in one layout from another one, by loops and
//!   vector kernels; [`Plan::explain`] tells what it does, [`PlanBuilder`] takes
//!   options, [`Tier`] is the vector instructions that it uses;
//! - [`Host`]: host arrays that are not dense, have several elements in a byte, or
//!   elements of another type; [`Conversion`] says what becomes of those;
//! - [`Chunk`], [`staging`], [`Executor`], [`PlanCache`]: for runtimes that have small
//!   buffers, transfers under way, threads, and the same arrays again and again;
//! - [`tpu`]: the formats of TPU buffers that have names;
//! - [`index`]: the formulas of the tiled-layout document, both directions;
//! - [`Shape::steps`]: a layout as a list of pads, reshapes and transposes;
//! - [`oracle`]: conversion element by element; slow, small and right.
//!
//! # Words
//!
//! The *image* of an array is its byte sequence in its layout, padding
//! included. *Padding* are image elements that stand for no array element.
//! *Physical dimensions* are the dimensions read from major to minor through
//! `minor_to_major`. Lists of bounds and indices go from major to minor.

// No input may panic. What panics or truncates by design is denied here; an
// index out of bounds is not, so indexing is left to places that know theirs.
#![cfg_attr(
    not(test),
    deny(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        clippy::expect_used,
        clippy::panic,
        clippy::todo,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod cache;
mod drive;
mod error;
mod executor;
mod host;
pub mod index;
pub mod oracle;
mod plan;
mod shape;
pub mod staging;
mod steps;
pub mod tpu;
mod typed;
#[cfg(feature = "ndarray")]
mod views;

pub use cache::PlanCache;
pub use error::{
    BufferError, ChunkError, Error, HostError, IndexError, MismatchError, ShapeError, Side,
};
pub use executor::Executor;
pub use host::{BitOrder, Host};
pub use plan::{
    Chunk, Chunks, Explanation, LoopExplanation, Padding, Part, Pass, Plan, PlanBuilder,
};
#[doc(inline)]
pub use relayout_kernels::{BlockOp, Conversion, ElementType, Tier, TierError, UnknownElementType};
pub use shape::{
    AnyShape, Bound, Layout, MAX_DEPTH, MAX_RANK, MAX_TILES, ParseError, ParseErrorKind, Shape,
    Sizes, Split, Tile, TileEntry, Tuple, Warning,
};
pub use steps::Step;
pub use typed::HostElement;

/// The README's example runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
