//! The simulated upstream as its clients see it: reqwest over HTTP, tungstenite over WebSockets, and bare TCP.

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
