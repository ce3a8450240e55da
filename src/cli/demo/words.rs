//! The bridge's events in plain words.

use serde::Deserialize;

use super::screen::Tone;
use crate::lapse::spoken;

/// One event, as the bridge wrote it to its log. What the play does not tell is not read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Seen {
    pub event: String,
    session: Option<u64>,
    reason: Option<String>,
    shape: Option<String>,
    transport: Option<String>,
    outcome: Option<String>,
    turns: Option<u64>,
    waited_ms: Option<u64>,
    total_ms: Option<u64>,
    window_ms: Option<u64>,
    status: Option<u16>,
    known_items: Option<u64>,
    saved_bytes: Option<u64>,
}

/// Numbers the sessions in the order in which they appear: the bridge's own numbers go on from process to process and
/// are long.
#[derive(Debug, Default)]
pub struct Sessions(Vec<u64>);

impl Sessions {
    fn name(&mut self, session: Option<u64>) -> String {
        let Some(session) = session else {
            return "the session".to_owned();
        };
        let known = self.0.iter().position(|known| *known == session);
        let number = known.unwrap_or_else(|| {
            self.0.push(session);
            self.0.len() - 1
        });
        format!("session {}", number + 1)
    }
}

impl Seen {
    /// What the event means, in a sentence, and how it is to be taken.
    pub fn words(&self, sessions: &mut Sessions) -> (Tone, String) {
        let session = sessions.name(self.session);
        let is = |word: &Option<String>, wanted: &str| word.as_deref() == Some(wanted);
        let http = is(&self.transport, "http");
        match self.event.as_str() {
            "session_opened" => (
                Tone::Work,
                format!("{session}: a new WebSocket, for this conversation alone"),
            ),
            "session_reused" => (
                Tone::Work,
                format!(
                    "{session} is still open: turn {} needs no handshake",
                    self.turns.unwrap_or(0) + 1
                ),
            ),
            "continuation_used" => (
                Tone::Work,
                format!(
                    "{session} knows {} items already, and saves {} bytes",
                    self.known_items.unwrap_or(0),
                    self.saved_bytes.unwrap_or(0)
                ),
            ),
            "turn_sent" if http => (Tone::Work, "the request goes out as an ordinary POST".to_owned()),
            "turn_sent" => (Tone::Work, format!("the request goes out on {session}")),
            "turn_accepted" => (
                Tone::Work,
                format!(
                    "response.created is here, {} after the agent asked",
                    spoken(self.waited_ms.unwrap_or(0))
                ),
            ),
            "turn_finished" if is(&self.outcome, "completed") => {
                let way = if http { "direct HTTP" } else { &session };
                (
                    Tone::Work,
                    format!("completed on {way} in {}", spoken(self.total_ms.unwrap_or(0))),
                )
            }
            "turn_finished" => (
                Tone::Trouble,
                format!(
                    "ended as {}, and is not sent again",
                    self.outcome.as_deref().unwrap_or("unknown")
                ),
            ),
            "response_created_timeout" => {
                let came = if is(&self.shape, "eventless") {
                    "no event came"
                } else {
                    "events came, which prove nothing"
                };
                (
                    Tone::Trouble,
                    format!(
                        "no response.created in {}: {came}",
                        spoken(self.waited_ms.unwrap_or(0))
                    ),
                )
            }
            "session_retired" if is(&self.reason, "closed_by_upstream") => {
                (Tone::Trouble, format!("the upstream has closed {session}"))
            }
            "session_retired" => (
                Tone::Trouble,
                format!("{session} is closed; no other turn will meet its late events"),
            ),
            "quarantine_opened" => (
                Tone::Remedy,
                format!(
                    "for {} this conversation, and no other, goes by HTTP",
                    spoken(self.window_ms.unwrap_or(0))
                ),
            ),
            "quarantine_http_fallback" => (
                Tone::Remedy,
                "in quarantine: direct HTTP to the same account".to_owned(),
            ),
            "quarantine_probe" => (
                Tone::Remedy,
                "the window is over: this one request tries a fresh session".to_owned(),
            ),
            "quarantine_cleared" => (
                Tone::Remedy,
                "the probe was confirmed: back to WebSocket sessions".to_owned(),
            ),
            "http_fallback" => {
                let status = self
                    .status
                    .map_or(String::new(), |status| format!(" with {status}"));
                (
                    Tone::Remedy,
                    format!("WebSocket refused{status}: direct HTTP in the same call"),
                )
            }
            // Nothing else belongs to the play; should it happen, it is shown under its own name.
            _ => (Tone::Trouble, self.reason.clone().unwrap_or_default()),
        }
    }

    /// Whether the event tells of an incident.
    pub fn is_trouble(&self) -> bool {
        !matches!(
            (self.event.as_str(), self.outcome.as_deref()),
            (
                "session_opened" | "session_reused" | "continuation_used" | "turn_sent" | "turn_accepted",
                _
            ) | ("turn_finished", Some("completed"))
        )
    }
}

#[cfg(test)]
mod tests;
