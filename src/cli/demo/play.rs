//! The play: what the agent does, and what the bridge must be seen to do about it.

use std::time::{Duration, Instant};

use super::agent::Agent;
use super::fault::{Fault, Plot};
use super::screen::Tone;
use super::stage::{SILENT_AFTER, Stage, WINDOW};
use super::words::Seen;

/// How long an event may be late. The agent can have its answer before the bridge has said all about the turn.
const PATIENCE: Duration = Duration::from_secs(2);
/// After the window, so that no clock's rounding matters.
const MARGIN: Duration = Duration::from_millis(150);
/// The healthy conversation.
const QUESTIONS: [&str; 3] = ["Where is the bug?", "Please mend it.", "Is there a test for it?"];

/// Plays it all. An error says what should have happened and did not.
pub async fn play(stage: &Stage, fault: Fault) -> anyhow::Result<()> {
    stage.text("Responses Bridge, a demonstration. All of it runs on this machine, and no key is needed.");
    stage.text(&format!(
        "agent -> bridge ({}) -> simulated upstream ({})",
        stage.base_url(),
        stage.upstream_url()
    ));
    let mut agent = Agent::new(stage, "first")?;
    healthy(stage, &mut agent).await?;
    let asked = QUESTIONS.len() as u64
        + match fault.plot() {
            Plot::Nothing => 0,
            Plot::Silence => silence(stage, &mut agent, fault).await?,
            Plot::Loss => loss(stage, &mut agent, fault).await?,
            Plot::Refused => refused(stage, fault).await?,
        };
    let sent = stage.ledger().creates_total;
    anyhow::ensure!(
        sent == asked,
        "the agent sent {asked} requests, and the upstream got {sent}"
    );
    stage.text(&format!(
        "\nThe agent sent {asked} requests, and the upstream got {sent}: nothing was sent twice."
    ));
    stage.text(&format!(
        "That was {}. Next: responses-bridge serve, your agent at http://127.0.0.1:8787/v1",
        fault.shown()
    ));
    Ok(())
}

async fn healthy(stage: &Stage, agent: &mut Agent<'_>) -> anyhow::Result<()> {
    stage.heading(
        "A healthy conversation",
        "Three turns. The first opens a WebSocket session, the others go out on the same one.",
    );
    stage.text("");
    let mark = stage.mark();
    for question in QUESTIONS {
        agent.ask(question).await?.whole()?;
    }
    expect(
        stage,
        mark,
        &[
            "session_opened",
            "turn_sent",
            "turn_accepted",
            "turn_finished",
            "session_reused",
            "turn_finished",
            "session_reused",
            "turn_finished",
        ],
    )
    .await?;
    let trouble = stage.since(mark).into_iter().find(Seen::is_trouble);
    anyhow::ensure!(
        trouble.is_none(),
        "an event of an incident in a healthy conversation: {}",
        trouble.map(|seen| seen.event).unwrap_or_default()
    );
    let sockets = stage.ledger().sockets_opened;
    anyhow::ensure!(
        sockets == 1,
        "three turns took {sockets} WebSockets in place of one"
    );
    Ok(())
}

/// The session goes silent. Returns how often the agent asked.
async fn silence(stage: &Stage, agent: &mut Agent<'_>, fault: Fault) -> anyhow::Result<u64> {
    stage.heading("An incident", fault.announced());
    stage.text(&format!(
        "Here the bridge waits {:.1} s for response.created and quarantines for {} s; usually it is 60 s each.\n",
        SILENT_AFTER.as_secs_f64(),
        WINDOW.as_secs()
    ));
    let mark = stage.mark();
    let wait = agent.ask("And what if it fails?").await?.retry()?;
    let opened = Instant::now();
    expect(
        stage,
        mark,
        &["response_created_timeout", "session_retired", "quarantine_opened"],
    )
    .await?;
    tokio::time::sleep(wait).await;
    agent.ask_again().await?.whole()?;
    expect(
        stage,
        mark,
        &["quarantine_opened", "quarantine_http_fallback", "turn_finished"],
    )
    .await?;
    stage.tell(
        Tone::Agent,
        "agent works",
        "until the quarantine window has passed",
    );
    tokio::time::sleep((WINDOW + MARGIN).saturating_sub(opened.elapsed())).await;
    agent.ask("Good. Anything else?").await?.whole()?;
    expect(
        stage,
        mark,
        &[
            "response_created_timeout",
            "session_retired",
            "quarantine_opened",
            "quarantine_http_fallback",
            "quarantine_probe",
            "session_opened",
            "quarantine_cleared",
            "turn_finished",
        ],
    )
    .await?;
    Ok(3)
}

/// The socket closes under a turn. Returns how often the agent asked.
async fn loss(stage: &Stage, agent: &mut Agent<'_>, fault: Fault) -> anyhow::Result<u64> {
    stage.heading("An incident", fault.announced());
    stage.text("");
    let mark = stage.mark();
    let wait = agent.ask("And what if it fails?").await?.retry()?;
    tokio::time::sleep(wait).await;
    agent.ask_again().await?.whole()?;
    expect(
        stage,
        mark,
        &[
            "session_reused",
            "turn_finished",
            "session_retired",
            "session_opened",
            "turn_finished",
        ],
    )
    .await?;
    Ok(2)
}

/// No session can be opened. Returns how often the agent asked.
async fn refused(stage: &Stage, fault: Fault) -> anyhow::Result<u64> {
    stage.heading("An incident", fault.announced());
    stage.text("");
    let mark = stage.mark();
    let mut agent = Agent::new(stage, "second")?;
    agent.ask("Where is the bug?").await?.whole()?;
    agent.ask("Please mend it.").await?.whole()?;
    expect(
        stage,
        mark,
        &[
            "http_fallback",
            "turn_finished",
            "session_opened",
            "turn_finished",
        ],
    )
    .await?;
    Ok(2)
}

/// The events since `mark` have these among them, in this order, or will have soon.
async fn expect(stage: &Stage, mark: usize, wanted: &[&str]) -> anyhow::Result<()> {
    stage
        .until(mark, PATIENCE, |seen| missing(seen, wanted).is_none())
        .await;
    match missing(&stage.since(mark), wanted) {
        None => Ok(()),
        Some(event) => anyhow::bail!(
            "the event {event} did not come; wanted, in this order: {}",
            wanted.join(", ")
        ),
    }
}

/// The first of `wanted` that is not in `seen` after those before it.
fn missing<'a>(seen: &[Seen], wanted: &[&'a str]) -> Option<&'a str> {
    let mut seen = seen.iter();
    wanted
        .iter()
        .find(|name| !seen.any(|one| one.event == **name))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(names: &[&str]) -> Vec<Seen> {
        let of = |name: &&str| serde_json::from_value(serde_json::json!({"event": name})).unwrap();
        names.iter().map(of).collect()
    }

    /// [RUN-16] What is wanted may have others between it, and must be in order.
    #[test]
    fn a_missing_event_is_named() {
        let wanted = ["session_retired", "quarantine_opened"];
        let good = seen(&[
            "turn_sent",
            "session_retired",
            "turn_finished",
            "quarantine_opened",
        ]);
        assert_eq!(missing(&good, &wanted), None);
        assert_eq!(missing(&good[..2], &wanted), Some("quarantine_opened"));
        let swapped = seen(&["quarantine_opened", "session_retired"]);
        assert_eq!(missing(&swapped, &wanted), Some("quarantine_opened"));
    }
}
