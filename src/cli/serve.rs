//! `responses-bridge serve`: runs the bridge until it is told to stop (RUN-1 to RUN-10).

use std::io::{BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use super::printed;
use crate::app::{App, Followed, Outlets};
use crate::config::{self, Config};
use crate::event::Level;

mod lines;

/// Lines beside those of events (faults of a configuration, say) that wait for stderr at most; beyond it they are lost, never
/// turns held. Those of events have [`lines`].
const LINES: usize = 16 * 1024;

/// For the last words of turns that a second signal cuts. What is still there after that goes with the process.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long the last spans may take.
#[cfg(feature = "otlp")]
const LAST_SPANS: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The configuration file; without one, the built-in configuration is served
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The least important events that are logged
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: LogLevel,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum LogLevel {
    Debug,
    Info,
    Warn,
}

impl From<LogLevel> for Level {
    fn from(level: LogLevel) -> Level {
        match level {
            LogLevel::Debug => Level::Debug,
            LogLevel::Info => Level::Info,
            LogLevel::Warn => Level::Warn,
        }
    }
}

/// Serves. Exit code 0 after a drain, 1 when the bridge cannot start, 130 after a second signal.
pub fn run(args: Args) -> ExitCode {
    match serve(&args) {
        Ok(code) => code,
        Err(error) => {
            printed::note(&format!("responses-bridge: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn serve(args: &Args) -> anyhow::Result<ExitCode> {
    let config = Config::load(args.config.as_deref(), &|name| std::env::var(name).ok())?;
    config::reach(&config)?;
    // What the system allows may be less than what is asked for; what it then is counts.
    let file_limit = rlimit::increase_nofile_limit(u64::MAX).unwrap_or(1024);
    let (lines, _written_on_drop) = lines::to(std::io::stderr()).context("cannot start a thread")?;
    let (writer, _flushed_on_drop) = tracing_appender::non_blocking::NonBlockingBuilder::default()
        .buffered_lines_limit(LINES)
        .finish(BufWriter::new(std::io::stderr()));
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_max_level(tracing::Level::WARN)
        .with_writer(writer)
        .init();
    #[cfg(feature = "otlp")]
    let exporter = crate::otlp::start(|name| std::env::var(name).ok())?;
    #[cfg(feature = "otlp")]
    let spans = exporter.as_ref().map(crate::otlp::Exporter::spans);
    #[cfg(not(feature = "otlp"))]
    let spans = None;
    let outlets = Outlets {
        level: args.log_level.into(),
        lines: Box::new(move |line| lines.put(line)),
        state_fault: Box::new(|fault| tracing::warn!(%fault, "serving from memory")),
        file_limit,
        trap: None,
        spans,
    };
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    let ended = runtime.block_on(until_told(config, args.config.clone(), outlets));
    #[cfg(feature = "otlp")]
    if let Some(exporter) = exporter {
        exporter.close(LAST_SPANS);
    }
    // What still blocks a thread now (a name being looked up, a disk that hangs) must not hold the end up.
    runtime.shutdown_background();
    ended
}

async fn until_told(config: Config, file: Option<PathBuf>, outlets: Outlets) -> anyhow::Result<ExitCode> {
    // Looked at before anybody is told that the bridge listens: the terminal may be closed right after.
    let at_terminal = || std::io::stdin().is_terminal() || std::io::stderr().is_terminal();
    let began_at_terminal = at_terminal();
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut hangup = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
    let app = App::start(config, outlets).await?;
    let asked = Arc::new(Notify::new());
    app.follow(Followed {
        file,
        environment: Arc::new(|name| std::env::var(name).ok()),
        asked: asked.clone(),
    });
    // Whoever started the bridge may have closed its stdout: no reason not to serve.
    let _ = writeln!(
        std::io::stdout(),
        "responses-bridge listens on http://{}/v1",
        app.address()
    );
    let mut told = async || loop {
        tokio::select! {
            _ = interrupt.recv() => return,
            _ = terminate.recv() => return,
            // Whoever closes the terminal does not want the file to be read (REL-9).
            _ = hangup.recv() => match began_at_terminal && !at_terminal() {
                true => return,
                // While it drains nobody reads the file any more, and nothing ends by it either.
                false => asked.notify_one(),
            }
        }
    };
    told().await;
    let cut = app.cut();
    let drain = app.drain();
    tokio::pin!(drain);
    tokio::select! {
        () = &mut drain => return Ok(ExitCode::SUCCESS),
        () = told() => {}
    }
    // The bridge ends the turns, and not their clients: both are told so, where that takes no time.
    cut.cancel();
    let _ = tokio::time::timeout(LAST_WORDS, drain).await;
    Ok(ExitCode::from(130))
}
