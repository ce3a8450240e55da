//! Another configuration while the bridge serves: what is put in force, what waits, and what becomes of turns, sessions and
//! clients. Requirements: `spec/reload.md`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![allow(
    clippy::disallowed_methods,
    clippy::async_yields_async,
    clippy::type_complexity,
    reason = "clients and upstreams of tests are tasks that end with their test; its tables are written out"
)]

#[path = "../support/client.rs"]
mod client;
mod clients;
mod files;
mod load;
mod process;
#[path = "../serve/bridge.rs"]
#[allow(dead_code, reason = "each test crate uses a part of it")]
mod serve;
mod shared;
mod turns;
#[path = "../support/world.rs"]
mod world;
