//! What the project exists for, as pure state machines: no I/O, no clock, no randomness, no logging (INV-10).
//!
//! Inputs go in with `now`, outputs are polled out; `runtime` carries them out.

pub mod availability;
pub mod compact;
pub mod continuation;
pub mod credential;
pub mod deadlines;
pub mod key;
pub mod ownership;
pub mod pins;
pub mod plan;
pub mod quarantine;
pub mod route;
pub mod routing;
pub mod session;
pub mod transport;
pub mod turn;
pub mod watchdog;
