//! The command line. One room per subcommand.

// They panic where nobody reads; `printed` does not (ADM-36).
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod check;
pub mod demo;
pub mod drain;
pub mod events;
pub mod explain;
pub mod place;
mod printed;
pub mod quarantine;
pub mod rehearse;
mod remote;
pub mod schema;
pub mod serve;
pub mod simulate;
pub mod status;
mod terminal;
pub mod tune;
