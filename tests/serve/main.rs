//! `responses-bridge serve` as an operator meets it: the real binary, its signals, its exit codes and its log.
// A test that cannot go on ends there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bridge;
mod client;
mod draining;
mod starting;
