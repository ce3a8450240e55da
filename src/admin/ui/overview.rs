//! The first page: how things stand, and then each part.

use maud::{Markup, html};

use super::shell::{self, ROOT, proof};
use super::view::{Filter, Journal, Overview, Store};
use super::{accounts, events, filter, histogram, quarantine, sessions, turns, words};

/// What the page needs beside the bridge's own state.
pub(super) struct Visit<'a> {
    pub filter: &'a Filter,
    /// All configured accounts, as the filter offers them.
    pub accounts: &'a [String],
    pub csrf: &'a str,
    /// What the operator's last action did.
    pub notice: Option<&'a str>,
    /// The number of the latest event that the page knows: what comes live begins after it.
    pub seen: u64,
}

/// The whole page.
pub(super) fn page(overview: &Overview, visit: &Visit<'_>) -> String {
    let main = html! {
        h1.hidden { "Status" }
        @if let Some(notice) = visit.notice { p.notice role="status" { "✓ " (words::tame_to(notice, 200)) } }
        (filter::bar(visit.filter, visit.accounts))
        p.hidden id="news" role="status" aria-live="polite" {}
        div.columns {
            (panels(overview, visit.csrf, visit.filter))
            div.side {
                (histogram::panel(&overview.latency, overview.silent))
                (events::panel(&overview.events, visit.filter))
            }
        }
    };
    shell::page("Status", &bar(visit), &main, true)
}

fn bar(visit: &Visit<'_>) -> Markup {
    let query = visit.filter.query();
    html! {
        nav.row aria-label="Page" {
            span.quiet id="live" data-events={ (ROOT) "/events" (query) } data-seen=(visit.seen) { "As it was when loaded" }
            button id="pause" type="button" aria-pressed="false" hidden { "Pause" }
            a.button href={ (ROOT) (query) } { "Refresh" }
            form method="post" action={ (ROOT) "/logout" } { (proof(visit.csrf)) button type="submit" { "Sign out" } }
        }
    }
}

/// All that changes as a whole, as it comes live: elements that take the places of those with their ids. Events come one by
/// one.
pub(super) fn live(overview: &Overview, csrf: &str, filter: &Filter) -> Markup {
    html! {
        (panels(overview, csrf, filter))
        (histogram::panel(&overview.latency, overview.silent))
    }
}

fn panels(overview: &Overview, csrf: &str, filter: &Filter) -> Markup {
    let query = filter.query();
    html! {
        div id="panels" {
            (standing(overview))
            (quarantine::panel(&overview.quarantine, overview.figures.quarantined_keys, csrf, &query))
            (accounts::panel(&overview.accounts, csrf, filter))
            (turns::panel(&overview.turns, overview.figures.turns))
            (sessions::panel(&overview.sessions, &overview.figures, filter))
        }
    }
}

fn standing(overview: &Overview) -> Markup {
    let of = &overview.figures;
    html! {
        section.standing id="standing" aria-labelledby="standing-h" {
            h2.hidden id="standing-h" { "How things stand" }
            dl {
                (figure("Turns running", of.turns, &format!("{} waiting", of.waiting), false))
                (figure("Sessions", of.sessions_idle + of.sessions_busy, &format!("{} busy, {} opening", of.sessions_busy, of.sessions_opening), false))
                (figure("Quarantined keys", of.quarantined_keys, if of.quarantined_keys == 0 { "none silent" } else { "by HTTP until a probe" }, of.quarantined_keys > 0))
                (figure("Sick transports", of.sick_transports, if of.sick_transports == 0 { "all well" } else { "all turns by HTTP" }, of.sick_transports > 0))
                (figure("Accounts left out", of.unavailable_accounts, &format!("of {}", of.accounts), of.unavailable_accounts > 0))
            }
            p.row {
                @if of.shutting_down { span.mark.warn { "▲ Shutting down: running turns end" } } @else if of.draining { span.mark.warn { "▲ Draining: new turns are refused" } } @else { span.mark.ok { "✓ Serving" } }
                (store(&overview.store))
                span.quiet { "Version " (overview.version) ", up " (words::span(overview.uptime)) }
            }
            @if let Some(trouble) = &overview.store.trouble { p.alert { (words::tame_to(&trouble.way_out, 200)) } }
        }
    }
}

fn figure(name: &str, number: usize, more: &str, bad: bool) -> Markup {
    html! {
        div.bad[bad] {
            dt { (name) }
            dd { strong { @if bad { span aria-hidden="true" { "▲ " } } (words::count(words::many(number))) } " " small { (more) } }
        }
    }
}

fn store(store: &Store) -> Markup {
    html! {
        @match &store.trouble {
            Some(trouble) => span.mark.bad { "✕ State not on disk: " (words::tame(&trouble.reason)) },
            None => span.mark.ok { "✓ State on disk" },
        }
        @if store.lost > 0 { span.mark.warn { "▲ " (words::several(store.lost, "change")) " lost" } }
        @match store.journal {
            Journal::Off => span.mark { "– Journal off" },
            Journal::On { lost: 0 } => span.mark.ok { "✓ Journal kept" },
            Journal::On { lost } => span.mark.warn { "▲ Journal: " (words::several(lost, "row")) " lost" },
        }
    }
}

#[cfg(test)]
mod tests;
