//! The command line. One room per subcommand.

pub mod check;
pub mod demo;
pub mod events;
pub mod explain;
pub mod place;
pub mod rehearse;
pub mod schema;
pub mod serve;
pub mod simulate;
pub mod tune;
