//! Keys in quarantine, and letting them out.

use maud::{Markup, html};

use super::shell::{self, ROOT, proof};
use super::view::QuarantineView;
use super::words;

/// Rows on the page; the rest is counted.
pub(super) const MOST: usize = 15;

/// `query` is that of the page, which stays after an action. `held`: keys in quarantine, whatever the filter.
pub(super) fn panel(keys: &[QuarantineView], held: usize, csrf: &str, query: &str) -> Markup {
    html! {
        section.card id="quarantine" aria-labelledby="quarantine-h" {
            h2 id="quarantine-h" { "Quarantine" }
            @if keys.is_empty() && held > 0 {
                p.quiet { "No key in quarantine matches the filter; without it there " @if held == 1 { "is 1." } @else { "are " (words::count(words::many(held))) "." } }
            } @else if keys.is_empty() {
                p.quiet { "No key is in quarantine: every conversation may use its session. A key comes here when its session stays silent, and goes by direct HTTP for a while." }
            } @else {
                form method="post" action={ (ROOT) "/quarantine/clear" (query) } {
                    (proof(csrf))
                    (table(keys))
                }
                @if keys.len() > MOST {
                    p.quiet { "and " (words::count(words::many(keys.len() - MOST))) " more: " code { "responses-bridge quarantine ls" } " lists them all" }
                }
                p { a.button id="clear-all" href={ (ROOT) "/quarantine/clear-all" } { "Clear all…" } }
            }
        }
    }
}

fn table(keys: &[QuarantineView]) -> Markup {
    html! {
        div.scroll role="region" tabindex="0" aria-labelledby="quarantine-c" {
            table {
                caption id="quarantine-c" { "Keys that go by direct HTTP for now" }
                thead { tr {
                    th scope="col" { "Key" }
                    th scope="col" { "State, time left" }
                    th scope="col" { span.hidden { "Action" } }
                    th scope="col" { "Account" }
                    th.n scope="col" { "Trips" }
                } }
                tbody { @for key in keys.iter().take(MOST) { (row(key)) } }
            }
        }
    }
}

fn row(key: &QuarantineView) -> Markup {
    let name = words::tame(&key.key);
    html! {
        tr id={ "q-" (name) } {
            th scope="row" { code { (name) } " " small { (key.key_kind.unwrap_or_default()) } }
            td.w { (state(key)) }
            td { button id={ "clear-" (name) } name="key" value=(name) aria-label={ "Clear key " (name) } { "Clear" } }
            td { (key.account.as_deref().map_or("–".into(), words::account)) }
            td.n { (key.level) }
        }
    }
}

fn state(key: &QuarantineView) -> Markup {
    match key.state {
        "open" => html! { span.mark.warn { "▲ on HTTP" } " " (words::span_ms(key.left_ms)) " left" },
        "due" => html! { span.mark { "● next turn probes" } },
        "probing" => html! { span.mark { "● probing" } },
        other => html! { (words::tame(other)) },
    }
}

/// Asks whether all keys are to be let out.
pub(super) fn confirmation(keys: usize, csrf: &str) -> String {
    let main = html! {
        section.card.narrow {
            h1 { "Clear all quarantined keys?" }
            @if keys == 0 {
                p { "No key is in quarantine: there is nothing to clear." }
            } @else {
                p { (words::several(words::many(keys), "key")) " would use a session again with the next turn. Where the upstream is still silent, each of those turns waits for the whole deadline before it fails." }
            }
            form.row method="post" action={ (ROOT) "/quarantine/clear-all" } {
                (proof(csrf))
                @if keys > 0 { button.danger type="submit" { "Clear " (words::several(words::many(keys), "key")) } }
                a.button href=(ROOT) { "Back, change nothing" }
            }
        }
    };
    shell::page("Clear quarantine", &html! {}, &main, false)
}
