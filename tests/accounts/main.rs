//! Accounts over real sockets: their headers, their credentials as they are rotated and refused, and what their provider can
//! take. Requirements: `spec/upstream.md`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![allow(clippy::disallowed_methods, reason = "tasks of a test end with its runtime")]

#[path = "../support/client.rs"]
mod client;
#[path = "../support/world.rs"]
mod world;

mod keyfile;

mod headers;
mod limits;
mod proxies;
mod refused;
mod rotated;
