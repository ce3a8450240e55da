//! Accounts, what excludes each, and the breaker of its WebSocket transport.

use maud::{Markup, html};

use super::shell::{ROOT, proof};
use super::view::{Account, AccountView, BreakerView, Filter};
use super::words;
use crate::bridge::transport::STRIKES;

/// Rows on the page; the rest is counted.
pub(super) const MOST: usize = 12;

/// The filter stays after an action.
pub(super) fn panel(accounts: &[Account], csrf: &str, filter: &Filter) -> Markup {
    html! {
        section.card id="accounts" aria-labelledby="accounts-h" {
            h2 id="accounts-h" { "Accounts and transports" }
            @if accounts.is_empty() {
                p.quiet { "No account matches the filter." }
            } @else {
                form method="post" action={ (ROOT) "/breakers/reset" (filter.query()) } {
                    (proof(csrf))
                    (table(accounts))
                }
                @if accounts.len() > MOST {
                    p.quiet { "and " (words::count(words::many(accounts.len() - MOST))) " more: " @if filter.account.is_some() { code { "GET /admin/accounts" } " lists them all" } @else { "filter by account to see them" } }
                }
            }
        }
    }
}

fn table(accounts: &[Account]) -> Markup {
    html! {
        div.scroll role="region" tabindex="0" aria-labelledby="accounts-c" {
            table {
                caption id="accounts-c" { "Whether each account takes new conversations, and whether over WebSocket" }
                thead { tr {
                    th scope="col" { "Account" }
                    th scope="col" { "New conversations" }
                    th scope="col" { "WebSocket" }
                    th.n scope="col" { "Turns" }
                    th.n scope="col" { "Sessions" }
                    th scope="col" { span.hidden { "Action" } }
                } }
                tbody { @for account in accounts.iter().take(MOST) { (row(account)) } }
            }
        }
    }
}

fn row(of: &Account) -> Markup {
    let name = of.name();
    html! {
        tr {
            th scope="row" { (words::account(&name)) }
            td.w { (taken(&of.account)) }
            td.w { (transport(&of.breaker)) }
            td.n { (of.account.in_flight) }
            td.n { (of.account.sessions) }
            td { @if is_held(&of.breaker) {
                button id={ "reset-" (name) } name="account" value=(name) aria-label={ "Reset the transport of " (words::account(&name)) } { "Reset" }
            } }
        }
    }
}

fn taken(account: &AccountView) -> Markup {
    html! {
        @match &account.excluded {
            Some(out) => span.mark.bad { "✕ " (words::excluded(out.reason)) ", " (words::span_ms(out.left_ms)) },
            None if account.credential_ok && account.failed_connects > 0 => span.mark.warn {
                "▲ not reached: " (words::several(account.failed_connects.into(), "time"))
            },
            None if account.credential_ok => span.mark.ok { "✓ taken" },
            None => span.mark.bad { "✕ credential: " (words::tame(account.credential)) },
        }
    }
}

/// Whether there is anything that an operator could make the bridge forget.
fn is_held(breaker: &BreakerView) -> bool {
    breaker.state != "closed"
        || breaker.silent_keys + breaker.failed_handshakes > 0
        || breaker.unsupported_left_ms.is_some()
        || breaker.socket_ceiling.is_some()
        || breaker.refused_frame.is_some()
}

fn transport(breaker: &BreakerView) -> Markup {
    let left = |left: Option<u64>| {
        left.map(|ms| format!(", {}", words::span_ms(ms)))
            .unwrap_or_default()
    };
    let strikes = [
        (breaker.failed_handshakes, "failed handshakes"),
        (breaker.silent_keys, "silent conversations"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, of)| format!("{count} of {STRIKES} {of}"))
    .collect::<Vec<_>>();
    html! {
        @match breaker.state {
            "open" => span.mark.bad { "✕ sick: all by HTTP" (left(breaker.left_ms)) },
            "half_open" => span.mark.warn { "▲ being probed" },
            _ if breaker.unsupported_left_ms.is_some() => span.mark { "– not offered" (left(breaker.unsupported_left_ms)) },
            _ if !strikes.is_empty() => span.mark.warn { "▲ " (strikes.join(", ")) },
            _ => span.mark.ok { "✓ well" },
        }
        @if let Some(ceiling) = &breaker.socket_ceiling {
            " " span.mark.warn { "▲ at most " (words::several(words::many(ceiling.value), "socket")) (left(Some(ceiling.left_ms))) }
        }
        @if let Some(frame) = &breaker.refused_frame {
            " " span.mark { "– frames of " (words::several(words::many(frame.value), "byte")) " refused" (left(Some(frame.left_ms))) }
        }
    }
}

#[cfg(test)]
mod tests;
