//! The bridge over real sockets, second half.
// Clippy counts the functions that the tests share as code outside tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod affinity;
#[path = "../support/client.rs"]
mod client;
mod handshakes;
mod lifetime;
mod shared;
mod streams;
#[path = "../support/world.rs"]
mod world;
