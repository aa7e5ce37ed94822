//! Arbitrary byte strides and windows are refused, or moved element by element within
//! their buffers.

#![no_main]

use libfuzzer_sys::fuzz_target;
use relayout_testing::Choices;

fuzz_target!(|bytes: &[u8]| relayout_testing::strides(&mut Choices::new(bytes)));
