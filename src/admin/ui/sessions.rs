//! The WebSocket sessions.

use maud::{Markup, html};

use super::view::{Figures, Filter, SessionView};
use super::words;

/// Rows on the page; the rest is counted.
pub(super) const MOST: usize = 20;

pub(super) fn panel(sessions: &[SessionView], figures: &Figures, filter: &Filter) -> Markup {
    html! {
        section.card id="sessions" aria-labelledby="sessions-h" {
            h2 id="sessions-h" { "Sessions" }
            @if sessions.is_empty() {
                @if figures.sessions_idle + figures.sessions_busy == 0 {
                    p.quiet { "No session is open: no conversation is under way, or all go by direct HTTP." }
                } @else {
                    p.quiet { "No session matches the filter." }
                }
            } @else {
                (table(sessions))
                @if sessions.len() > MOST {
                    p.quiet { "and " (words::count(words::many(sessions.len() - MOST))) " more" @if filter.account.is_some() { ": " code { "GET /admin/sessions" } " lists them all" } @else { ": filter by account to see others" } }
                }
            }
        }
    }
}

fn table(rows: &[SessionView]) -> Markup {
    html! {
        div.scroll role="region" tabindex="0" aria-labelledby="sessions-c" {
            table {
                caption id="sessions-c" { "Open WebSocket sessions, those with a turn first" }
                thead { tr {
                    th scope="col" { "Key" }
                    th scope="col" { "State" }
                    th scope="col" { "Account" }
                    th.n scope="col" { "Turns" }
                    th.n scope="col" { "Age" }
                    th scope="col" { "Session" }
                } }
                tbody { @for session in rows.iter().take(MOST) { (row(session)) } }
            }
        }
    }
}

fn row(session: &SessionView) -> Markup {
    html! {
        tr id={ "s-" (session.session) } {
            th scope="row" { @match &session.key { Some(key) => code { (words::tame(key)) }, None => "ready, no key yet" } " " small { (session.key_kind.unwrap_or_default()) } }
            td { @match session.state {
                "busy" => span.mark.busy { "▶ turn" },
                "idle" => { "idle" @if let Some(idle) = session.idle_ms { " " (words::span_ms(idle)) } },
                other => (words::tame(other)),
            } @if session.quarantined { " " span.mark.warn { "▲ quarantined" } } }
            td { (words::account(&session.account)) }
            td.n { (words::count(session.turns.into())) }
            td.n { (words::span_ms(session.age_ms)) }
            td { code { (session.session) } }
        }
    }
}
