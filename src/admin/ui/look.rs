//! A look at the running bridge, as the page shows it after the filter.

use std::time::Duration;

use super::events;
use super::view::{Account, Filter, Happened, Journal, Overview, Store, Trouble};
use crate::runtime::Runtime;
use crate::store::{Degradation, Health};

/// All there is to see now. `has_journal`: turns are written down.
pub(super) fn look(runtime: &Runtime, filter: &Filter, uptime: Duration, has_journal: bool) -> Overview {
    let mut sessions = runtime.sessions_view();
    sessions.retain(|of| filter.takes_account(Some(&of.account)));
    sessions.sort_by_key(|of| of.state != "busy");
    let mut turns = runtime.turns_view();
    turns.retain(|of| filter.takes_account(Some(&of.account)));
    let mut quarantine = runtime.quarantine_view();
    quarantine.retain(|of| of.state != "cleared" && filter.takes_account(of.account.as_deref()));
    let both = runtime.accounts_view().into_iter().zip(runtime.breakers_view());
    let accounts = both
        .map(|(account, breaker)| Account { account, breaker })
        .filter(|of| filter.takes_account(Some(&of.name())))
        .collect();
    Overview {
        version: env!("CARGO_PKG_VERSION"),
        uptime,
        figures: runtime.overview(),
        store: store(runtime, has_journal),
        turns,
        sessions,
        quarantine,
        accounts,
        latency: runtime.latency_view(),
        silent: runtime.events.telemetry().silent(),
        events: Vec::new(),
    }
}

/// The latest events that the filter lets through, latest first, and the number of the latest of all.
pub(super) fn latest(runtime: &Runtime, filter: &Filter) -> (Vec<Happened>, u64) {
    let (kept, _) = match runtime.events.seen() {
        Some(live) => live.follow(),
        None => return (Vec::new(), 0),
    };
    let seen = kept.last().map_or(0, |last| last.number);
    let wanted = kept
        .iter()
        .rev()
        .filter(|seen| filter.takes(seen))
        .take(events::MOST);
    (wanted.map(Happened::of).collect(), seen)
}

/// The names of all accounts, in the order of the configuration.
pub(super) fn names(runtime: &Runtime) -> Vec<String> {
    let name = |of: &crate::runtime::operate::AccountView| format!("{}/{}", of.provider, of.account);
    runtime.accounts_view().iter().map(name).collect()
}

fn store(runtime: &Runtime, has_journal: bool) -> Store {
    let standing = runtime.store.standing();
    let trouble = match standing.health() {
        Health::Degraded(Degradation { reason, .. }) => Some(Trouble {
            reason: reason.label().into(),
            way_out: reason.way_out().into(),
        }),
        Health::Healthy | Health::Recovered(_) => None,
    };
    let journal = match has_journal {
        false => Journal::Off,
        true => Journal::On {
            lost: runtime.store.journal_lost(),
        },
    };
    Store {
        trouble,
        lost: standing.lost(),
        journal,
    }
}
