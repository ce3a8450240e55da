//! The upstream edge over real loopback sockets, against peers made here by hand. Requirements: `spec/upstream.md`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a peer that fails ends its test"
)]

mod cancel;
mod closing;
mod common;
mod dial;
mod direct;
mod memory;
mod peer;
mod proxy;
mod socket;
mod tls;
