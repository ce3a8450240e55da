//! `responses-bridge status`: a running bridge on one screen (ADM-31, ADM-33).

use std::io;
use std::process::ExitCode;

use reqwest::Method;
use serde_json::{Value, json};

use super::printed;
use super::remote::{self, Remote};
use super::terminal;

mod screen;

pub(super) use screen::keys;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    bridge: remote::Args,
    /// Print the answer of the bridge instead, as JSON
    #[arg(long)]
    json: bool,
}

/// Exit code 0 when the bridge is well, 1 when something is wrong with it, 2 when it cannot be reached.
pub fn run(args: &Args) -> ExitCode {
    let remote = match Remote::of(&args.bridge, &|name| std::env::var(name).ok()) {
        Ok(remote) => remote,
        Err(unanswered) => return unanswered.told(),
    };
    match remote.ask(Method::GET, "/status", None) {
        Ok(answer) => {
            let status = &answer["data"];
            let text = if args.json {
                format!("{answer:#}\n")
            } else {
                screen::screen(
                    remote.url().as_str(),
                    status,
                    terminal::is_coloured(&io::stdout()),
                )
            };
            printed::all("status", &text, u8::from(!is_well(status)))
        }
        Err(unanswered) => unanswered.told(),
    }
}

/// Whether nothing of it has to be looked at.
fn is_well(status: &Value) -> bool {
    let health = &status["health"];
    health["state"] == json!("ok") && health["ready"] == json!(true) && screen::trouble(status).is_none()
}
