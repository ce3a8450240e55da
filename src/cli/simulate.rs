//! `responses-bridge simulate`: an upstream that misbehaves on request, for rehearsals and tests.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use super::printed;
use crate::simulator::{Options, Script, Simulator, WORDS};

/// Arguments of `simulate`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = words())]
pub struct Args {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// A script with rules for turns and upgrades (see fixtures/scripts/).
    #[arg(long)]
    script: Option<PathBuf>,
    /// No line per turn on stderr.
    #[arg(long)]
    quiet: bool,
}

fn words() -> String {
    let lines = WORDS
        .iter()
        .map(|(word, meaning)| format!("  sim:{word:<16} {meaning}\n"));
    format!(
        "Words for prompts (sim:word(key=value, ...)) and for scripts. Each also takes on=ws|http, times=N, nth=N;\n\
         sim:conv=NAME names the conversation.\n\n{}\n\
         GET /__sim/ledger tells what was seen; POST /__sim/reset, /__sim/script (TOML), /__sim/end (close, fin, reset).",
        lines.collect::<String>()
    )
}

/// Runs until Ctrl-C. Prints the base URL on stdout.
pub fn run(args: Args) -> ExitCode {
    match simulate(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            printed::complain("simulate", &format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn simulate(args: &Args) -> anyhow::Result<()> {
    let script = match &args.script {
        None => Script::default(),
        Some(path) => {
            let text =
                std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            Script::parse(&text).with_context(|| format!("{}", path.display()))?
        }
    };
    if !args.quiet {
        // Nobody else has set one up in this process: a second subscriber would be an error in the caller.
        let lines = tracing_subscriber::fmt()
            .without_time()
            .with_level(false)
            .with_target(false);
        lines
            .with_writer(std::io::stderr)
            .with_env_filter("simulator=info")
            .init();
    }
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    runtime.block_on(async {
        let listen = args.listen;
        let options = Options { listen, script };
        let simulator = Simulator::start(options)
            .await
            .with_context(|| format!("cannot listen on {listen}"))?;
        // Whoever started it may have closed its stdout: no reason not to play on.
        let _ = writeln!(std::io::stdout(), "{}", simulator.base_url());
        tokio::signal::ctrl_c().await.context("cannot wait for Ctrl-C")?;
        simulator.stop().await;
        Ok(())
    })
}

#[cfg(test)]
mod tests;
