//! aarch64.

#![allow(unsafe_code, reason = "loads and stores; docs/architecture.md")]

pub(super) mod neon;
