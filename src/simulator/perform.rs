//! Performs a score on a transport.

use std::io;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::behaviour::{Ending, Filler};
use super::events::RATE_LIMITS;
use super::faults::ErrorFrame;
use super::score::{Conclusion, Step};

/// A transport on which a score can be performed. Every error means that the client is gone.
pub trait Stage {
    /// Writes an event; it may leave later, together with others.
    async fn event(&mut self, kind: &str, json: &str) -> io::Result<()>;
    /// Writes an error.
    async fn error(&mut self, error: &ErrorFrame, json: &str) -> io::Result<()>;
    /// Writes what a transport calls alive and no event: a ping, a comment.
    async fn nudge(&mut self) -> io::Result<()>;
    /// Writes the head of the answer, where there is one.
    async fn head(&mut self) -> io::Result<()>;
    /// Sends all that was written.
    async fn flush(&mut self) -> io::Result<()>;
}

/// Performs the steps in their order. Returns how the connection is to end, if the score says so.
///
/// # Errors
/// The client is gone.
pub async fn perform(
    stage: &mut impl Stage,
    steps: &[Step],
    mut conclude: impl FnMut(Conclusion),
) -> io::Result<Option<Ending>> {
    for step in steps {
        match step {
            Step::Event { kind, json } => stage.event(kind, json).await?,
            Step::Error { error, json } => stage.error(error, json).await?,
            Step::Head => stage.head().await?,
            Step::Flush => stage.flush().await?,
            Step::Wait(time) => sleep(*time).await,
            Step::Repeat {
                filler,
                every,
                lasting,
                sequence,
            } => {
                repeat(stage, *filler, *every, *lasting, *sequence).await?;
            }
            Step::Conclude(conclusion) => conclude(*conclusion),
            Step::End(ending) => return Ok(Some(ending.clone())),
        }
    }
    stage.flush().await?;
    Ok(None)
}

async fn repeat(
    stage: &mut impl Stage,
    filler: Filler,
    every: Duration,
    lasting: Option<Duration>,
    sequence: u64,
) -> io::Result<()> {
    let end = lasting.map(|lasting| Instant::now() + lasting);
    loop {
        match filler {
            Filler::Nothing => {}
            Filler::Pings => stage.nudge().await?,
            Filler::Telemetry => stage.event("codex.rate_limits", RATE_LIMITS).await?,
            Filler::Keepalives => {
                let json = format!(r#"{{"type":"keepalive","sequence_number":{sequence}}}"#);
                stage.event("keepalive", &json).await?;
            }
        }
        if filler != Filler::Nothing {
            stage.flush().await?;
        }
        match end {
            Some(end) if filler == Filler::Nothing || Instant::now() + every >= end => {
                sleep_until(end).await;
                return Ok(());
            }
            _ => sleep(every).await,
        }
    }
}
