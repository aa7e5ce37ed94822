//! For an arbitrary shape, absurd ones too, the index and its inverse agree, and sizes
//! never wrap.

#![no_main]

use libfuzzer_sys::fuzz_target;
use relayout_testing::Choices;

fuzz_target!(|bytes: &[u8]| relayout_testing::index(&mut Choices::new(bytes)));
