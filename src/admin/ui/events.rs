//! Events, latest first.

use maud::{Markup, html};
use serde_json::Value;

use super::view::{Filter, Happened};
use super::words;
use crate::event::Seen;

/// Rows on the page.
pub(super) const MOST: usize = 16;
/// Characters of an event's details.
const DETAILS: usize = 180;
/// Fields that a row shows in places of their own, or not at all because another says the same.
const ELSEWHERE: [&str; 7] = [
    "ts",
    "level",
    "event",
    "provider",
    "account",
    "generation",
    "key_kind",
];

pub(super) fn panel(events: &[Happened], filter: &Filter) -> Markup {
    html! {
        section.card id="events-card" aria-labelledby="events-h" {
            h2 id="events-h" { "Events" }
            p.quiet id="events-empty" hidden[!events.is_empty()] {
                @if *filter == Filter::default() {
                    "Nothing has happened since the start: no turn has finished and nothing was refused."
                } @else {
                    "None of the latest 512 events matches the filter."
                }
            }
            ol.events id="events" data-most=(MOST) aria-labelledby="events-h" {
                @for event in events.iter().take(MOST) { (row(event)) }
            }
            p.quiet { "Times are UTC. Latest first; " code { "responses-bridge events" } " looks further back." }
        }
    }
}

/// Fields that a reader looks for first, in this order.
const FIRST: [&str; 15] = [
    "outcome",
    "reason",
    "shape",
    "by",
    "plan",
    "status",
    "count",
    "key",
    "model",
    "total_ms",
    "created_ms",
    "waited_ms",
    "window_ms",
    "request_id",
    "session",
];

/// One event, as the page shows it at first and as it comes live.
pub(super) fn row(event: &Happened) -> Markup {
    let warn = event.level == "warn";
    html! {
        li id={ "e-" (event.number) } class=[warn.then_some("warn")] {
            time datetime=(words::tame(&event.at)) { (clock(&event.at)) }
            " "
            span.level { @if warn { "▲ warn" } @else { "info" } }
            " "
            code.kind { (words::tame(&event.event)) }
            @if let Some(account) = &event.account { " " span.at { (words::account(account)) } }
            @let details = details(event);
            @if !details.is_empty() { " " small { (details) } }
        }
    }
}

/// `HH:MM:SS` of a moment in RFC 3339.
fn clock(at: &str) -> String {
    words::tame(at.get(11..19).unwrap_or(at))
}

fn details(event: &Happened) -> String {
    let fields: Vec<_> = event
        .fields
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    words::tame_to(&fields.join(" "), DETAILS)
}

impl Happened {
    /// An event as the bridge tells it.
    pub fn of(seen: &Seen) -> Happened {
        // The line is our own; where it could not be read the row has the name alone.
        let fields: serde_json::Map<String, Value> = serde_json::from_str(&seen.line).unwrap_or_default();
        let text = |name: &str| fields.get(name).map(plain).unwrap_or_default();
        let mut others: Vec<_> = fields
            .iter()
            .filter(|(name, _)| !ELSEWHERE.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), plain(value)))
            .collect();
        others.sort_by_key(|(name, _)| {
            FIRST
                .iter()
                .position(|first| first == name)
                .unwrap_or(FIRST.len())
        });
        Happened {
            number: seen.number,
            at: text("ts"),
            level: text("level"),
            event: seen.event.into(),
            account: seen.account.as_deref().map(Into::into),
            fields: others,
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
