//! What a checked configuration puts in force, told without its secrets.
use std::fmt::Write;

use http::HeaderMap;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Account, ByteSize, Config, Lapse, Provider, Strategy, Transport};
use crate::wire::ProviderKind;

/// For people: one subject per line, names of secrets' sources only.
pub fn text(config: &Config) -> String {
    let mut out = String::new();
    let mut line = |subject: &str, text: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "  {subject:<12} {text}");
    };
    let server = &config.server;
    line("listen", server.listen.to_string());
    let operators = server.admin_listen.unwrap_or(server.listen);
    line(
        "admin",
        match (&server.admin_token, server.admin_listen) {
            (Some(_), _) => format!("{operators}, with a token"),
            (None, None) => "off: no admin_token".to_owned(),
            (None, Some(_)) => format!("off: no admin_token; /metrics at {operators}"),
        },
    );
    let names: Vec<_> = config.clients.iter().map(|client| client.name.as_str()).collect();
    line(
        "clients",
        if names.is_empty() {
            "told apart by their own credentials".into()
        } else {
            names.join(", ")
        },
    );
    if !server.allow_origins.is_empty() {
        line("web pages", server.allow_origins.join(", "));
    }
    let sizes = [server.max_body, server.body_budget, server.client_buffer].map(ByteSize);
    line(
        "bodies",
        format!(
            "up to {}, {} in all, {} per slow client",
            sizes[0], sizes[1], sizes[2]
        ),
    );
    for provider in &config.providers {
        line("provider", provider_line(provider));
        if let Some(limits) = limits_line(provider) {
            line("", limits);
        }
        for account in &provider.accounts {
            line("", account_line(config, provider, account));
        }
    }
    line("routing", word(&config.routing.strategy));
    line(
        "",
        format!(
            "a conversation keeps its account for {} ({} at most)",
            Lapse(config.affinity.ttl),
            config.affinity.max_pins
        ),
    );
    line(
        "",
        format!("unknown responses: {}", word(&config.ownership.unknown)),
    );
    line(
        "continuation",
        if config.continuation.enabled { "on" } else { "off" }.to_owned(),
    );
    let session = &config.session;
    line(
        "sessions",
        format!(
            "{}, {} per conversation",
            session.max_sessions, session.max_per_key
        ),
    );
    line(
        "",
        format!(
            "closed when idle for {}, replaced at {}",
            Lapse(session.idle_ttl),
            Lapse(session.max_age)
        ),
    );
    if session.prewarm > 0 {
        line(
            "",
            format!(
                "up to {} kept ready for each account with a credential of its own",
                session.prewarm
            ),
        );
    }
    line(
        "queue",
        format!(
            "{} turns per conversation, for {}",
            session.max_queue,
            Lapse(session.queue_wait)
        ),
    );
    let watchdog = &config.watchdog;
    line(
        "deadlines",
        deadlines(&[
            ("connect", watchdog.connect_deadline),
            ("response.created", watchdog.response_created_deadline),
            ("between events", watchdog.idle_deadline),
            ("request", watchdog.request_deadline),
        ]),
    );
    let http = &config.http;
    line(
        "direct HTTP",
        deadlines(&[
            ("first byte", http.first_byte),
            ("first event", http.first_event),
            ("between events", http.between_events),
        ]),
    );
    let quarantine = &config.quarantine;
    line(
        "quarantine",
        match quarantine.window.is_zero() {
            true => "off".to_owned(),
            false => format!(
                "{}, doubling up to {}",
                Lapse(quarantine.window),
                Lapse(quarantine.max_window)
            ),
        },
    );
    line(
        "state",
        format!(
            "{}, {} owners",
            config.state.directory.display(),
            config.state.max_owners
        ),
    );
    line(
        "journal",
        match config.journal.max {
            0 => "none".to_owned(),
            max => format!("{max} entries, {} at most", Lapse(config.journal.keep)),
        },
    );
    out
}

/// For programs: the file's own key names, durations and sizes as they are written there, no secret.
pub fn json(config: &Config) -> Value {
    let Config {
        server,
        session,
        watchdog,
        http,
        quarantine,
        state,
        ..
    } = config;
    let clients: Vec<_> = config.clients.iter().map(|client| &client.name).collect();
    json!({
        "server": {
            "listen": server.listen,
            "admin_listen": server.admin_listen,
            "admin_token": server.admin_token.is_some(),
            "max_body": ByteSize(server.max_body),
            "body_budget": ByteSize(server.body_budget),
            "client_buffer": ByteSize(server.client_buffer),
            "commit_after": Lapse(server.commit_after),
            "heartbeat": Lapse(server.heartbeat),
            "drain": Lapse(server.drain),
            "allow_origins": server.allow_origins,
        },
        "clients": clients,
        "providers": config.providers.iter().map(provider_json).collect::<Vec<_>>(),
        "routing": { "strategy": config.routing.strategy },
        "affinity": { "ttl": Lapse(config.affinity.ttl), "max_pins": config.affinity.max_pins },
        "ownership": { "unknown": config.ownership.unknown },
        "continuation": { "enabled": config.continuation.enabled },
        "session": {
            "idle_ttl": Lapse(session.idle_ttl),
            "max_age": Lapse(session.max_age),
            "max_sessions": session.max_sessions,
            "max_per_key": session.max_per_key,
            "queue_wait": Lapse(session.queue_wait),
            "max_queue": session.max_queue,
            "prewarm": session.prewarm,
        },
        "watchdog": {
            "connect_deadline": Lapse(watchdog.connect_deadline),
            "handshake_patience": Lapse(watchdog.handshake_patience),
            "write_deadline": Lapse(watchdog.write_deadline),
            "response_created_deadline": Lapse(watchdog.response_created_deadline),
            "idle_deadline": Lapse(watchdog.idle_deadline),
            "request_deadline": Lapse(watchdog.request_deadline),
            "ping_interval": Lapse(watchdog.ping_interval),
            "reuse_check_after": Lapse(watchdog.reuse_check_after),
            "pong_deadline": Lapse(watchdog.pong_deadline),
            "slow_client": Lapse(watchdog.slow_client),
        },
        "http": {
            "first_byte": Lapse(http.first_byte),
            "first_event": Lapse(http.first_event),
            "between_events": Lapse(http.between_events),
        },
        "quarantine": {
            "window": Lapse(quarantine.window),
            "max_window": Lapse(quarantine.max_window),
            "max_keys": quarantine.max_keys,
        },
        "state": { "path": state.directory, "max_owners": state.max_owners },
        "journal": { "keep": Lapse(config.journal.keep), "max": config.journal.max },
    })
}

fn provider_json(provider: &Provider) -> Value {
    let account = |account: &Account| {
        json!({
            "name": account.name,
            "credential": account.source.to_string(),
            "weight": account.weight,
            "proxy": match &account.unread_proxy {
                Some(source) => Some(source.to_string()),
                None => account.proxy.as_ref().map(ToString::to_string),
            },
            "headers": names(&account.headers),
            "chatgpt_account_id": account.headers.contains_key(CHATGPT_ACCOUNT),
        })
    };
    json!({
        "name": provider.name,
        "kind": kind(provider.kind),
        "base_url": provider.base_url.as_str(),
        "transport": provider.transport,
        "ca_file": provider.ca_file,
        "fragment": provider.fragment,
        "max_age": provider.max_age.map(Lapse),
        "max_frame": provider.max_frame.map(ByteSize),
        "models": provider.models,
        "one_model_per_connection": provider.one_model_per_connection,
        "headers": names(&provider.headers),
        "accounts": provider.accounts.iter().map(account).collect::<Vec<_>>(),
    })
}

fn provider_line(provider: &Provider) -> String {
    let models = if provider.models.is_empty() {
        String::new()
    } else {
        format!(", models {}", provider.models.join(" "))
    };
    let (kind, transport) = (kind(provider.kind), word(&provider.transport));
    format!(
        "{}: {kind}, {}, transport {transport}{models}",
        provider.name, provider.base_url
    )
}

/// What sets the provider apart from others of its kind, if anything does.
fn limits_line(provider: &Provider) -> Option<String> {
    let age = provider
        .max_age
        .map(|age| format!("sessions replaced at {}", Lapse(age)));
    let frame = provider
        .max_frame
        .map(|most| format!("creates above {} by direct HTTP", ByteSize(most)));
    let one_model = provider
        .one_model_per_connection
        .then(|| "one model per connection".to_owned());
    let ca = provider.ca_file.as_ref();
    let ca = ca.map(|file| format!("trusts {}", file.display()));
    let limits: Vec<_> = [age, frame, one_model, ca].into_iter().flatten().collect();
    (!limits.is_empty()).then(|| limits.join(", "))
}

const CHATGPT_ACCOUNT: &str = "chatgpt-account-id";

/// Header names, never what they hold.
fn names(headers: &HeaderMap) -> Vec<&str> {
    let mut names: Vec<_> = headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    names
}

fn account_line(config: &Config, provider: &Provider, account: &Account) -> String {
    let mut text = format!("account {}: {}", account.name, account.source);
    if config.routing.strategy == Strategy::Weighted {
        let _ = write!(text, ", weight {}", account.weight);
    }
    if let Some(proxy) = &account.proxy {
        let _ = write!(text, ", through {proxy}");
        if provider.lacks_tunnel(account) && provider.transport != Transport::Http {
            text.push_str(" (plain http through an HTTP proxy: direct HTTP only)");
        }
    }
    if let Some(source) = &account.unread_proxy {
        let _ = write!(text, ", through the proxy in {source}");
    }
    if !account.headers.is_empty() {
        let _ = write!(text, ", sends {}", names(&account.headers).join(" "));
    }
    text
}

/// A closed word as the file spells it.
fn word(value: &impl Serialize) -> String {
    json!(value).as_str().unwrap_or_default().to_owned()
}

fn deadlines(list: &[(&str, std::time::Duration)]) -> String {
    list.iter()
        .map(|(name, limit)| format!("{name} {}", Lapse(*limit)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn kind(kind: ProviderKind) -> &'static str {
    match kind {
        ProviderKind::Openai => "openai",
        ProviderKind::Chatgpt => "chatgpt",
        ProviderKind::Azure => "azure",
        ProviderKind::Generic => "generic",
    }
}
