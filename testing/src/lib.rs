//! Made-up arrays, and what has to hold of them.
//!
//! The fuzz targets and the property tests of relayout make their inputs here, from
//! bytes that a fuzzer or proptest makes up, and hold the same [checks](differential)
//! against them. A check panics where the library is wrong.
//!
//! What is expected comes from the oracle, or from index math and strides alone, never
//! from a plan. Buffers are poisoned, and end where their allocation does.

mod buffer;
mod checks;
mod choices;
mod chunks;
mod host;
mod shapes;
mod strides;

pub use buffer::Buffer;
pub use checks::{differential, element_mask, index, roundtrip};
pub use choices::{Choices, noise};
pub use chunks::{chunks, fill_chunks, fill_range};
pub use host::{HostModel, wild_strides};
pub use shapes::{another_layout, any_shape, small_shape};
pub use strides::{made_up_window, move_through, strides};
