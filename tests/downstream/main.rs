//! The downstream edge over real sockets, with a bridge that only records what reaches it. Raw bytes go in, so that
//! nothing is asked that only a well-behaved HTTP client would ask.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod bad_input;
mod bodies;
mod leaving;
mod listening;
mod pages;
mod routes;
mod tenants;
mod world;
