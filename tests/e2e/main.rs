//! The whole bridge over real sockets: a simulated upstream, the bridge in this process, and a client that speaks
//! HTTP by hand. Each test is a failure that people have met (the rows are those of the field reports), or a rule that a
//! client can see.
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

mod peer;
mod way;

mod ambiguous;
mod anchors;
mod continuation;
mod credentials;
mod crowds;
mod direct;
mod objects;
mod panics;
mod recovery;
mod shapes;
mod silence;
mod sockets;
mod streams;
mod warm;
