//! What is packed, moved to another layout and unpacked is what it was.

#![no_main]

use libfuzzer_sys::fuzz_target;
use relayout_testing::Choices;

fuzz_target!(|bytes: &[u8]| relayout_testing::roundtrip(&mut Choices::new(bytes)));
