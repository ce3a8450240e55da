//! What is asked of the accounts together (CFG-19, CFG-20): a choice that exists, accounts that differ, sockets that can be
//! had.
use super::document::key_path;
use super::policy::{Account, Credential, Provider, Strategy, Transport};
use super::raw;
use super::review::Review;
use crate::bridge::routing::share_a_model;
use crate::wire::ProviderKind;

/// Whether the accounts fit together, and what is asked of them can be done.
pub fn check(
    review: &mut Review<'_>,
    routing: &raw::Routing,
    session: &raw::Session,
    providers: &[Provider],
) {
    strategy(review, routing.strategy, providers);
    weights(review, routing.strategy, providers);
    twins(review, providers);
    tunnels(review, providers);
    prewarm(review, session.prewarm, providers);
}

/// Requests of ChatGPT logins go to the kind chatgpt, all others elsewhere: nothing is chosen across the two.
fn groups(providers: &[Provider]) -> [Vec<&Provider>; 2] {
    [true, false].map(|chatgpt| {
        providers
            .iter()
            .filter(|provider| (provider.kind == ProviderKind::Chatgpt) == chatgpt)
            .collect()
    })
}

/// Whether two accounts serve the same requests.
fn is_a_choice(group: &[&Provider]) -> bool {
    group.iter().enumerate().any(|(index, provider)| {
        let mut others = group.iter().skip(index + 1);
        provider.accounts.len() > 1 || others.any(|other| share_a_model(&provider.models, &other.models))
    })
}

fn strategy(review: &mut Review<'_>, strategy: Strategy, providers: &[Provider]) {
    if strategy == Strategy::Priority || providers.is_empty() {
        return;
    }
    let key = "routing.strategy";
    let groups = groups(providers);
    if !groups.iter().any(|group| is_a_choice(group)) {
        let problem = "there is nothing to choose from: no two accounts serve the same requests";
        let hint = "add an account that serves the same models, or leave the key out";
        review.fault(key, problem, hint);
    }
    let client = |provider: &&&Provider| {
        provider
            .accounts
            .iter()
            .any(|account| matches!(account.credential, Credential::Client))
    };
    for group in &groups {
        let passing: Vec<_> = group.iter().filter(client).collect();
        let clash = passing.iter().enumerate().find_map(|(index, one)| {
            let clashes = |other: &&&&Provider| {
                other.base_url != one.base_url && share_a_model(&other.models, &one.models)
            };
            let other = passing.iter().skip(index + 1).find(clashes)?;
            Some((one, other))
        });
        if let Some((one, other)) = clash {
            let problem = format!(
                "would send a caller's own credential to {} one time and to {} another",
                one.name, other.name
            );
            let hint = "leave the key out, or give one of the two a credential of its own";
            review.fault(key, problem, hint);
        }
    }
}

/// Where an account's keys stand. Accounts after one with a fault in its credential have moved up: with that fault the
/// configuration is refused anyway, and the name is right in any case.
fn place(provider: &Provider, account: usize, key: &str) -> String {
    let path = key_path("providers", &provider.name);
    format!("{path}.accounts[{account}].{key}")
}

fn weights(review: &mut Review<'_>, strategy: Strategy, providers: &[Provider]) {
    if strategy == Strategy::Weighted {
        return;
    }
    for provider in providers {
        for (index, account) in provider.accounts.iter().enumerate() {
            if account.weight != super::defaults::DEFAULT_WEIGHT {
                let problem = "nothing asks for weights: routing.strategy is not \"weighted\"";
                let hint = "write strategy = \"weighted\" in [routing], or leave the weight out";
                review.fault(&place(provider, index, "weight"), problem, hint);
            }
        }
    }
}

/// One account under two names would be balanced against itself, and would not know its own responses.
fn twins(review: &mut Review<'_>, providers: &[Provider]) {
    let mut seen: Vec<(&Provider, &Account)> = Vec::new();
    for provider in providers {
        for (index, account) in provider.accounts.iter().enumerate() {
            let twin = seen.iter().find(|(other, twin)| {
                other.base_url == provider.base_url
                    && other.kind == provider.kind
                    && same_credential(&twin.credential, &account.credential)
                    && twin.headers == account.headers
            });
            if let Some((other, twin)) = twin {
                let problem = format!("is the same account as {}/{}", other.name, twin.name);
                let hint = "keep one of the two; to weigh an account more, use weight";
                review.fault(&place(provider, index, "credential"), problem, hint);
            }
            seen.push((provider, account));
        }
    }
}

/// Sessions need a connection of their own, which an HTTP proxy makes for https only.
fn tunnels(review: &mut Review<'_>, providers: &[Provider]) {
    let strict = providers.iter().filter(|of| of.transport == Transport::Websocket);
    for provider in strict {
        for (index, account) in provider.accounts.iter().enumerate() {
            if provider.lacks_tunnel(account) {
                let problem = "an HTTP proxy carries no WebSocket to a plain http upstream, and transport is \"websocket\"";
                let hint =
                    "reach the upstream by https, use a socks5:// proxy, or write transport = \"auto\"";
                review.fault(&place(provider, index, "proxy"), problem, hint);
            }
        }
    }
}

fn same_credential(one: &Credential, other: &Credential) -> bool {
    match (one, other) {
        (Credential::Secret(one), Credential::Secret(other)) => super::credentials::same(one, other),
        // Two of one provider are told of there.
        _ => false,
    }
}

fn prewarm(review: &mut Review<'_>, prewarm: usize, providers: &[Provider]) {
    let can = |provider: &Provider| {
        provider.kind != ProviderKind::Chatgpt
            && provider.transport != Transport::Http
            && provider
                .accounts
                .iter()
                .any(|account| matches!(account.credential, Credential::Secret(_)))
    };
    if prewarm > 0 && !providers.is_empty() && !providers.iter().any(can) {
        let problem = "no account can use it: sockets are kept ready only with a credential of the account's own, and \
                       not for the kind chatgpt or transport = \"http\"";
        let hint = "leave it out, or give an account a credential of its own";
        review.fault("session.prewarm", problem, hint);
    }
}
