//! Blind drills: an incident is played, and whoever is called at night has nothing but the id that the user tells. `explain`
//! and `events` must give the cause in their last line.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "clients and upstreams of tests are tasks that end with their test"
)]

mod accounts;
#[path = "../support/client.rs"]
mod client;
mod clients;
mod death;
mod disk;
mod leaks;
#[path = "../e2e_b/process.rs"]
#[allow(dead_code, reason = "this crate uses a part of it")]
mod process;
mod process_wide;
mod responder;
mod sessions;
#[path = "../support/world.rs"]
mod world;
