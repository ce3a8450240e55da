//! A turn, step by step, from the phases that its end tells.

use super::{Line, Tone, ended, way};
use crate::counted::counted;
use crate::explain::call::Call;
use crate::explain::fact::{Fact, word};
use crate::explain::words;
use crate::lapse::spoken;

/// An attempt in one line.
pub(super) fn whole(call: &Call<'_>, fact: &Fact) -> Option<Line> {
    let tone = match (call.found, word(&fact.body.outcome)) {
        (false, _) => Tone::Around,
        (true, "completed" | "incomplete") => Tone::Work,
        (true, _) => Tone::Trouble,
    };
    let words = format!("{} {}", way(fact), ended(fact));
    Some(Line::new(fact.at_ms, fact.seq, tone, "call", words))
}

/// All that is known of an attempt.
pub(super) fn steps(call: &Call<'_>, fact: &Fact) -> Vec<Line> {
    let body = &fact.body;
    let arrived = fact.at_ms.saturating_sub(body.total_ms);
    let before = call.attempts().rfind(|other| other.seq < fact.seq);
    // Another attempt begins where the one before it ended. Moments are whole milliseconds, each rounded for itself: nothing of
    // a call comes before it was asked for.
    let began = before.map_or(arrived.min(call.arrived_ms()), |before| before.at_ms);
    let mut lines = Vec::new();
    let mut step = |at_ms: u64, tone: Tone, what: &'static str, words: String| {
        // What the attempt begins with comes before what else is told of the call.
        let early = matches!(what, "asked" | "route" | "waited" | "plan");
        let began = before.map_or(call.first_seq(), |before| before.seq + 1);
        let seq = if early { began } else { fact.seq };
        let mut line = Line::new(at_ms.min(fact.at_ms), seq, tone, what, words);
        line.early = early;
        lines.push(line);
    };
    if before.is_none() {
        let client = body.client.as_deref().map(|client| format!(" by {client}"));
        let key = body
            .key
            .as_deref()
            .map(|key| format!(", key {key} ({})", word(&body.key_kind)));
        let (client, key) = (client.unwrap_or_default(), key.unwrap_or_default());
        let model = body.model.as_deref().unwrap_or("a model");
        step(began, Tone::Work, "asked", format!("{model}{client}{key}"));
    }
    let route = words::route(word(&body.route));
    step(began, Tone::Work, "route", format!("to {}: {route}", fact.at()));
    if let Some(queue) = body.queue_ms {
        step(
            arrived.saturating_add(queue),
            Tone::Work,
            "waited",
            format!("{} for a session", spoken(queue)),
        );
    }
    let tone = match word(&body.plan) {
        "reused" | "opened" | "none" | "configured" | "background" => Tone::Work,
        _ => Tone::Remedy,
    };
    let planned = body
        .queue_ms
        .map_or(began, |queue| began.max(arrived.saturating_add(queue)));
    step(planned, tone, "plan", words::plan(word(&body.plan)));
    match body.sent_ms {
        Some(sent) => {
            let left = arrived.saturating_add(sent);
            let over = words::transport(word(&body.transport));
            let session = body.session.map(|session| format!(", session {session}"));
            let known = body
                .known_items
                .map(|items| format!(", {} known there", counted(items, "item")));
            let (session, known) = (session.unwrap_or_default(), known.unwrap_or_default());
            step(left, Tone::Work, "sent", format!("over {over}{session}{known}"));
            if let Some(created) = body.created_ms {
                let words = format!("response.created, {} after the request was sent", spoken(created));
                step(left.saturating_add(created), Tone::Work, "accepted", words);
            }
        }
        None if body.sent => {}
        None => step(
            fact.at_ms,
            Tone::Trouble,
            "unsent",
            "nothing of it left for the upstream".to_owned(),
        ),
    }
    if let Some(first) = body.first_output_ms {
        step(
            arrived.saturating_add(first),
            Tone::Work,
            "output",
            "the first of it".to_owned(),
        );
    }
    let served = matches!(word(&body.outcome), "completed" | "incomplete");
    let tone = if served { Tone::Work } else { Tone::Trouble };
    let words = match served || !body.committed {
        true => ended(fact),
        false if fact.is_heartbeats_only() => {
            format!("{}; only heartbeats had been sent to the client", ended(fact))
        }
        false => format!("{}; its stream had begun", ended(fact)),
    };
    step(fact.at_ms, tone, "ended", words);
    lines
}
