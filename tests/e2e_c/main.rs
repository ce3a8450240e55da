//! The bridge over real sockets, third part: several accounts, whose a thing is, and what becomes of it when one fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![allow(
    clippy::disallowed_methods,
    clippy::type_complexity,
    reason = "clients and upstreams of tests are tasks that end with their test; its tables are written out"
)]

#[path = "../support/client.rs"]
mod client;
mod failing;
mod pins;
#[path = "../e2e_b/process.rs"]
#[allow(dead_code, reason = "this crate uses a part of it")]
mod process;
mod restart;
mod shared;
mod strangers;
mod strategies;
mod whose;
#[path = "../support/world.rs"]
mod world;
