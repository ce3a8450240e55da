//! `responses-bridge rehearse`: an incident drill on a configuration, against a simulated upstream on loopback
//! (REH-1 to REH-13).
//!
//! The bridge, its upstream and the clients are all real and all in this process. `crate::rehearse` decides what is shortened,
//! what is played and whether it passed; here it is played.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::{printed, terminal};
use crate::config::{self, Faults, Rehearsal};
use crate::rehearse::{Expectation, Fault, Plan, Record, Speed, Window, expectations, scale, stars};

mod client;
mod conduct;
mod page;
mod progress;
mod report;
mod stage;

use progress::Progress;
use stage::Stage;

/// An expectation was not met.
const FAILED: u8 = 1;
/// The drill cannot be run at all.
const CANNOT: u8 = 2;
/// What a shell makes of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;
/// How long what was broken off may take to end.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Files that each client needs in this process, at both ends of each of its connections and of the bridge's.
const FILES_PER_CLIENT: u64 = 12;
/// Files for the rest.
const OWN_FILES: u64 = 256;

/// Arguments of `rehearse`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The configuration file; without one, the built-in configuration is rehearsed
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What goes wrong upstream
    #[arg(long, value_name = "FAULT", default_value = "silent")]
    fault: Fault,
    /// Clients that ask questions at the same time, each in a conversation of its own
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u16).range(1..=500))]
    clients: u16,
    /// All durations are divided by this, 1 to 1000
    #[arg(long, value_name = "FACTOR", default_value = "60")]
    speed: Speed,
    /// The clients' pauses follow from it
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Print one JSON object instead
    #[arg(long)]
    json: bool,
}

/// All that is settled before a drill.
struct Drill {
    /// The configuration's file.
    file: String,
    seed: u64,
    plan: Plan,
    windows: Vec<Window>,
    /// What differs from earnest beside the durations.
    notes: Vec<String>,
    expectations: Vec<Expectation>,
}

/// Rehearses. Exit code 0 when every expectation was met, 1 when one was not, 2 when the drill cannot be run, 130 after Ctrl-C.
pub fn run(args: &Args) -> ExitCode {
    match rehearse(args) {
        Ok(code) => code,
        Err(error) => {
            printed::complain("rehearse", &format!("{error:#}"));
            ExitCode::from(CANNOT)
        }
    }
}

fn rehearse(args: &Args) -> anyhow::Result<ExitCode> {
    let name = args
        .config
        .as_ref()
        .map_or(config::BUILT_IN.to_owned(), |path| path.display().to_string());
    let state = tempfile::Builder::new()
        .prefix("responses-bridge-rehearse-")
        .tempdir()
        .context("cannot make a directory for the state")?;
    let text = args
        .config
        .as_ref()
        .map_or(Ok(String::new()), |path| config::read(path));
    let read = text.and_then(|text| config::rehearsal(&text, &name, state.path()));
    let mut rehearsal = match read {
        Ok(rehearsal) => rehearsal,
        Err(faults) => return Ok(refused(&faults, &name, args.json)),
    };
    let windows = scale(&mut rehearsal.config, args.speed);
    let plan = Plan::of(&rehearsal.config, args.fault, args.speed, args.clients.into());
    let drill = Drill {
        file: name,
        seed: args.seed,
        notes: [
            notes(&rehearsal),
            stars(&windows, args.speed).into_iter().collect(),
            plan.left_to_chance(&rehearsal.config),
        ]
        .concat(),
        expectations: expectations(&plan, &windows),
        windows,
        plan,
    };
    let files = enough_files(args.clients.into())?;
    let config = Stage::on_loopback(rehearsal.config);
    let colour = terminal::is_coloured(&std::io::stdout());
    let begun = match args.json {
        true => Ok(()),
        false => printed::print(&page::before(&drill, colour)),
    };
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    let played = runtime.block_on(async {
        // Before there is anything that would be left behind.
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
        tokio::select! {
            played = play(&drill, config, files) => played.map(Some),
            _ = interrupt.recv() => Ok(None),
        }
    });
    // What was broken off may still be writing its state.
    runtime.shutdown_timeout(LAST_WORDS);
    // What cannot be removed now is the system's to sweep: it lies among the temporary files.
    let _ = state.close();
    let Some(record) = played? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let verdicts = report::judged(&drill, &record);
    let report = match args.json {
        true => format!("{:#}\n", report::json(&drill, &record, &verdicts)),
        false => page::after(&drill, &record, &verdicts, colour),
    };
    let code = match verdicts.iter().all(|verdict| verdict.met) {
        true => 0,
        false => FAILED,
    };
    let told = printed::print(&report);
    Ok(printed::code("rehearse", begun.and(told), code))
}

async fn play(drill: &Drill, config: config::Config, files: u64) -> anyhow::Result<Record> {
    let stage = Arc::new(Stage::set(config, files, &drill.plan).await?);
    let record = conduct::conduct(&stage, drill, Progress::on_stderr()).await;
    // The clients, who shared it, are gone.
    if let Some(stage) = Arc::into_inner(stage) {
        stage.clear().await;
    }
    record
}

/// The same words as those of `check`.
fn refused(faults: &Faults, file: &str, as_json: bool) -> ExitCode {
    if as_json {
        let report = json!({ "ok": false, "file": file, "faults": faults });
        return printed::all("rehearse", &format!("{report:#}\n"), CANNOT);
    }
    printed::note(&faults.to_string());
    ExitCode::from(CANNOT)
}

fn notes(rehearsal: &Rehearsal) -> Vec<String> {
    let mut notes = vec![
        "Every provider is a simulated upstream on 127.0.0.1; secrets are made up, and the real ones are not read."
            .to_owned(),
    ];
    if !rehearsal.proxied.is_empty() {
        notes.push(format!(
            "No proxy is used: not that of {}.",
            rehearsal.proxied.join(", ")
        ));
    }
    if !rehearsal.untunnelled.is_empty() {
        notes.push(format!(
            "In earnest {} has no sessions, since its proxy makes no tunnel for plain http; here it has.",
            rehearsal.untunnelled.join(", ")
        ));
    }
    notes.push(
        "Not in the configuration, and so not shortened: three silent conversations of an account within 60s of the clock \
         send all its turns to HTTP for a window; limits of 429 count in whole seconds."
            .to_owned(),
    );
    notes
}

/// The file limit, or why it is too low.
fn enough_files(clients: u64) -> anyhow::Result<u64> {
    let limit = rlimit::increase_nofile_limit(u64::MAX).unwrap_or(1024);
    let needed = clients * FILES_PER_CLIENT + OWN_FILES;
    anyhow::ensure!(
        limit >= needed,
        "{clients} clients need {needed} open files, and the limit is {limit}; raise it (ulimit -n), or take fewer --clients"
    );
    Ok(limit)
}
