//! The command line of `responses-bridge`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use responses_bridge::cli::{
    check, demo, drain, events, explain, quarantine, rehearse, schema, serve, simulate, status, tune,
};

/// Carries OpenAI Responses requests from coding agents on long-lived upstream WebSocket sessions.
#[derive(Parser)]
#[command(version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the bridge. Needs no configuration
    Serve(serve::Args),
    /// Say what a configuration would put in force, or what is wrong with it
    Check(check::Args),
    /// Print the JSON Schema of the configuration
    Schema,
    /// See a silent session detected, retired, quarantined, served over HTTP, probed and cleared, in five seconds
    Demo(demo::Args),
    /// Show a running bridge on one screen, by its admin API
    Status(status::Args),
    /// List the keys of a running bridge that are in quarantine, or end it
    Quarantine(quarantine::Args),
    /// Have a running bridge take no new turns; it stays, and takes them again with --off
    Drain(drain::Args),
    /// Say what happened, from the journal of a running bridge or of a dead one
    Events(events::Args),
    /// Say what happened to a call or a conversation, by an id that its client knows
    Explain(explain::Args),
    /// Rehearse an incident on a configuration, against a simulated upstream on this machine
    Rehearse(rehearse::Args),
    /// Run a simulated upstream that misbehaves on request
    Simulate(simulate::Args),
    /// Say which windows the journal speaks for, and write them into the configuration
    Tune(tune::Args),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(args) => serve::run(args),
        Command::Check(args) => check::run(&args),
        Command::Schema => schema::run(),
        Command::Demo(args) => demo::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Quarantine(args) => quarantine::run(&args),
        Command::Drain(args) => drain::run(&args),
        Command::Events(args) => events::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Rehearse(args) => rehearse::run(&args),
        Command::Simulate(args) => simulate::run(args),
        Command::Tune(args) => tune::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    /// [RUN-1] Every command line that is written here can be told apart from every other.
    #[test]
    fn commands_do_not_contradict_each_other() {
        super::Cli::command().debug_assert();
    }
}
