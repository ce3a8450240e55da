//! The command line. One room per subcommand.
pub mod check;
pub mod schema;
