//! The status page: plain HTML that works without JavaScript, and keeps itself fresh with it (`spec/page.md`).
//!
//! Every part is a pure function from values (`view`) to markup, in a file of its own. `cookie` knows whose browser it is.

mod accounts;
mod answer;
pub mod cookie;
mod events;
mod filter;
mod histogram;
mod login;
mod look;
mod overview;
mod quarantine;
mod reply;
#[cfg(test)]
mod samples;
mod sessions;
mod shell;
mod stream;
mod turns;
pub mod view;
mod words;

pub use answer::{Ask, Judged, Token, Ui};
pub use reply::Answer;
