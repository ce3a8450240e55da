//! The upstream edge: sockets and HTTP to one account of one provider. It does I/O and decides nothing: what to send,
//! when to give up and what a failure means is decided elsewhere. Requirements: `spec/upstream.md`.

mod account;
mod client;
mod close;
mod dial;
mod fault;
mod frames;
mod http;
mod link;
mod socket;

pub use account::{Account, AccountFault, Base, Clients};
pub use close::{Close, CloseClass};
pub use dial::{Dialed, UpgradeRefused};
pub use fault::{Broken, DialFault, PostFault, Unreached};
pub use http::{Answer, AnswerBody};
pub use socket::{Socket, SocketEvent};
