//! The bridge over real sockets, second half.
// Clippy counts the functions that the tests share as code outside tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod affinity;
mod bodies;
mod caps;
#[path = "../support/client.rs"]
mod client;
mod degraded;
mod files;
mod handshakes;
mod headers;
mod leaving;
mod lifetime;
mod metrics;
mod process;
mod shared;
mod silence;
mod streams;
mod survival;
mod tenants;
mod uplink;
#[path = "../support/world.rs"]
mod world;
