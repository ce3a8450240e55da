//! The simulated upstream as its clients see it: reqwest over HTTP, tungstenite over WebSockets, and bare TCP.
// All of this crate is test code; clippy knows that only of the functions marked #[test].
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "simulator/client.rs"]
mod client;
#[path = "simulator/faults.rs"]
mod faults;
#[path = "simulator/http.rs"]
mod http;
#[path = "simulator/sockets.rs"]
mod sockets;
#[path = "simulator/upgrades.rs"]
mod upgrades;
