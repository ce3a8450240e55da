//! What of everything the operator wants to see: by account, and by kind of event.

use maud::{Markup, html};

use super::shell::ROOT;
use super::view::Filter;
use super::words;
use crate::event::{self, Seen};
use crate::store::journal::glob;

/// Longest filter in characters: no configured name and no event is longer.
const LONGEST: usize = 128;

impl Filter {
    /// From the query of the page's address. What is empty or too long filters nothing.
    pub fn of(query: Option<&str>) -> Filter {
        let mut filter = Filter::default();
        for (name, value) in form(query.unwrap_or_default().as_bytes()) {
            let value = value.trim();
            let wanted = (!value.is_empty() && value.chars().count() <= LONGEST).then(|| value.to_owned());
            match &*name {
                "account" => filter.account = wanted,
                "kind" => filter.kind = wanted,
                _ => {}
            }
        }
        filter
    }

    /// Whether a thing of this account (`provider/account`) is to be shown; what has none, only without a filter.
    pub fn takes_account(&self, account: Option<&str>) -> bool {
        match (&self.account, account) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(wanted), Some(account)) => event::is_at(account, wanted),
        }
    }

    /// Whether an event of this kind is to be shown.
    pub fn takes_kind(&self, kind: &str) -> bool {
        let wanted = self.kind.as_deref();
        wanted.is_none_or(|wanted| glob::matches(wanted, kind))
    }

    /// Whether an event is to be shown.
    pub(super) fn takes(&self, seen: &Seen) -> bool {
        self.takes_account(seen.account.as_deref()) && self.takes_kind(seen.event)
    }

    /// The page's address with this filter.
    pub(super) fn href(&self) -> String {
        format!("{ROOT}{}", self.query())
    }

    /// This filter as the end of an address, with its `?`; empty where nothing is filtered. Plain ASCII.
    pub(super) fn query(&self) -> String {
        let mut href = String::new();
        let mut sign = '?';
        for (name, value) in [("account", &self.account), ("kind", &self.kind)] {
            if let Some(value) = value {
                href.push(sign);
                href.push_str(name);
                href.push('=');
                encode(value, &mut href);
                sign = '&';
            }
        }
        href
    }
}

/// The fields of a form, as browsers write them. Bytes that are no UTF-8 are replaced.
pub(super) fn form(body: &[u8]) -> Vec<(String, String)> {
    form_urlencoded::parse(body).into_owned().collect()
}

fn encode(text: &str, to: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~*/".contains(&byte) {
            to.push(char::from(byte));
        } else {
            to.push_str(&format!("%{byte:02X}"));
        }
    }
}

/// Accounts that are offered by name. Of more, the operator writes the name.
const OFFERED: usize = 40;

/// The form. `accounts` are all that are configured.
pub(super) fn bar(filter: &Filter, accounts: &[String]) -> Markup {
    let chosen = |name: &str| filter.account.is_some() && filter.takes_account(Some(name));
    html! {
        form.row.filter id="filter" method="get" action=(ROOT) role="search" aria-label="Filter" {
            label for="account" { "Account" }
            @if accounts.len() <= OFFERED {
                select id="account" name="account" {
                    option value="" { "all" }
                    @for name in accounts { option value=(name) selected[chosen(name)] { (words::account(name)) } }
                }
            } @else {
                input id="account" name="account" value=[filter.account.as_deref().map(words::tame)] placeholder="all" size="18"
                    maxlength=(LONGEST) spellcheck="false" autocapitalize="none" autocomplete="off";
            }
            label for="kind" { "Kind of event" }
            input id="kind" name="kind" value=[filter.kind.as_deref().map(words::tame)] placeholder="quarantine*" size="18"
                maxlength=(LONGEST) spellcheck="false" autocapitalize="none" autocomplete="off";
            button type="submit" { "Filter" }
            @if *filter != Filter::default() { a.button href=(ROOT) { "Show all" } }
        }
    }
}

#[cfg(test)]
mod tests;
