//! The turns that are running.

use maud::{Markup, html};

use super::view::TurnView;
use super::words;

/// Rows on the page; the rest is counted.
pub(super) const MOST: usize = 8;

pub(super) fn panel(turns: &[TurnView], running: usize) -> Markup {
    html! {
        section.card id="turns" aria-labelledby="turns-h" {
            h2 id="turns-h" { "Live turns" }
            @if turns.is_empty() {
                @if running == 0 {
                    p.quiet { "No turn is running: no client waits for an answer." }
                } @else {
                    p.quiet { "No running turn matches the filter." }
                }
            } @else {
                (table(turns))
                @if turns.len() > MOST {
                    p.quiet { "and " (words::count(words::many(turns.len() - MOST))) " more, which began later" }
                }
            }
        }
    }
}

fn table(turns: &[TurnView]) -> Markup {
    html! {
        div.scroll role="region" tabindex="0" aria-labelledby="turns-c" {
            table {
                caption id="turns-c" { "Turns under way, the longest running first" }
                thead { tr {
                    th scope="col" { "Key" }
                    th scope="col" { "Phase" }
                    th scope="col" { "Account" }
                    th scope="col" { "Model" }
                    th.n scope="col" { "Running" }
                    th scope="col" { "Request" }
                } }
                tbody { @for turn in turns.iter().take(MOST) { (row(turn)) } }
            }
        }
    }
}

fn row(turn: &TurnView) -> Markup {
    html! {
        tr id={ "t-" (words::tame(&turn.request_id)) } {
            th scope="row" { code { (words::tame(&turn.key)) } " " small { (turn.key_kind.unwrap_or_default()) } }
            td.w { (phase(turn)) }
            td { (words::account(&turn.account)) }
            td.w { (words::tame_to(&turn.model, 32)) }
            td.n { (words::span_ms(turn.age_ms)) }
            td { code { (words::tame(&turn.request_id)) } }
        }
    }
}

fn phase(turn: &TurnView) -> Markup {
    let phase = match (turn.phase, turn.transport) {
        ("planned", _) => "planned",
        ("queued", _) => "waits for a session",
        ("connecting", _) => "opens a session",
        ("sent", Some("http")) => "sent by HTTP",
        ("sent", _) => "sent, not accepted",
        ("accepted", Some("http")) => "accepted, by HTTP",
        ("accepted", _) => "accepted",
        (other, _) => other,
    };
    html! { (words::tame(phase)) " " small { (words::span_ms(turn.phase_ms)) } }
}
