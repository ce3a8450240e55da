//! `responses-bridge demo`: one healthy conversation and one incident, told by the running bridge's own events
//! (RUN-12 to RUN-17).
//!
//! The bridge, its upstream and the agent are all real and all in this process: sockets on loopback, the state in a
//! directory that is removed afterwards. Only the windows are short.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;

mod agent;
mod fault;
mod play;
mod screen;
mod stage;
mod words;

use super::printed;
use fault::Fault;
use screen::Screen;
use stage::Stage;

/// Nobody watches for longer; the longest play takes about six seconds.
const LONGEST: Duration = Duration::from_secs(10);
/// What a shell makes of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What goes wrong upstream after the healthy conversation
    #[arg(long, value_name = "FAULT", default_value = "silent")]
    fault: Fault,
}

/// Plays. Exit code 0 when all that was to be shown was seen, 1 when it was not, 130 after Ctrl-C.
pub fn run(args: &Args) -> ExitCode {
    match demo(args.fault) {
        Ok(code) => code,
        Err(error) => {
            printed::complain("demo", &format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn demo(fault: Fault) -> anyhow::Result<ExitCode> {
    // One thread, so that lines stand in the order in which things happened.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let code = runtime.block_on(async {
        tokio::select! {
            played = tokio::time::timeout(LONGEST, show(fault)) => {
                played.context("the play hung and was broken off after 10 s")??;
                Ok(ExitCode::SUCCESS)
            }
            interrupted = tokio::signal::ctrl_c() => {
                interrupted.context("cannot listen for Ctrl-C")?;
                Ok(ExitCode::from(INTERRUPTED))
            }
        }
    });
    runtime.shutdown_background();
    code
}

async fn show(fault: Fault) -> anyhow::Result<()> {
    let stage = Stage::set(Screen::on_stdout(), fault).await?;
    let played = play::play(&stage, fault).await;
    // What the bridge says while the lights go out is no part of the play.
    stage.clear().await;
    played
}
