//! Chunks of an arbitrary plan, filled alone, are together the whole.

#![no_main]

use libfuzzer_sys::fuzz_target;
use relayout_testing::Choices;

fuzz_target!(|bytes: &[u8]| relayout_testing::chunks(&mut Choices::new(bytes)));
