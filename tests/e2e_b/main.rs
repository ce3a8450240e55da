//! The bridge over real sockets, second half: affinity, tenants, caps, what survives, and what clients' leaving costs.
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

mod affinity;
mod bodies;
mod caps;
#[path = "../support/client.rs"]
mod client;
mod correlation;
mod degraded;
mod direct;
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
