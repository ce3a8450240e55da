//! `responses-bridge drain`: a running bridge takes no new turns, or takes them again (ADM-16, ADM-33).

use std::process::ExitCode;

use reqwest::Method;
use serde_json::{Value, json};

use super::printed;
use super::remote::{self, Remote};
use crate::counted::agreeing;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    bridge: remote::Args,
    /// Take new turns again
    #[arg(long)]
    off: bool,
}

/// Exit code 0 when it is done, 1 when the bridge refuses, 2 when it cannot be reached.
pub fn run(args: &Args) -> ExitCode {
    let remote = match Remote::of(&args.bridge, &|name| std::env::var(name).ok()) {
        Ok(remote) => remote,
        Err(unanswered) => return unanswered.told(),
    };
    match remote.ask(Method::PUT, "/drain", Some(&json!({ "draining": !args.off }))) {
        Ok(answer) => printed::all("drain", &format!("{}\n", told(&answer["data"])), 0),
        Err(unanswered) => unanswered.told(),
    }
}

fn told(drain: &Value) -> String {
    let turns = drain["turns"].as_u64().unwrap_or_default();
    let running = match turns {
        0 => "no turn is running".to_owned(),
        turns => agreeing(turns, "turn is running", "turns are running"),
    };
    match (&drain["draining"], &drain["shutting_down"]) {
        (_, Value::Bool(true)) => format!("the bridge is shutting down; {running}"),
        (Value::Bool(true), _) => format!("new turns are refused, readiness is false; {running}"),
        _ => format!("new turns are taken; {running}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [ADM-16] what is told is how the bridge stands, not what was asked for.
    #[test]
    fn how_it_stands() {
        let told = |draining, shutting_down, turns: u64| {
            told(&json!({ "draining": draining, "shutting_down": shutting_down, "turns": turns }))
        };
        assert_eq!(
            told(true, false, 2),
            "new turns are refused, readiness is false; 2 turns are running"
        );
        assert_eq!(told(false, false, 0), "new turns are taken; no turn is running");
        assert_eq!(
            told(true, true, 1),
            "the bridge is shutting down; 1 turn is running"
        );
    }
}
