//! An arbitrary plan from layout to layout, in an arbitrary tier and with arbitrary
//! options, does byte for byte what the oracle does, and writes nowhere else.

#![no_main]

use libfuzzer_sys::fuzz_target;
use relayout_testing::Choices;

fuzz_target!(|bytes: &[u8]| relayout_testing::differential(&mut Choices::new(bytes)));
