//! Which headers go where: one allow-list per provider kind, used by both transports.
//!
//! Credentials (`authorization`, `api-key`, `x-api-key`) are in none of these lists: the credential resolver adds them.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::ProviderKind;

/// The value of `OpenAI-Beta` that a handshake with kind `chatgpt` carries.
pub const WEBSOCKET_BETA: &str = "responses_websockets=2026-02-06";

/// Headers that authenticate a caller, or say in whose name: what tells callers apart where no client is configured, and
/// what is passed through as sent where an account has no secret of its own.
pub const CALLERS_CREDENTIAL: [HeaderName; 6] = [
    http::header::AUTHORIZATION,
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("chatgpt-account-id"),
    HeaderName::from_static("openai-organization"),
    HeaderName::from_static("openai-project"),
];

/// Of [`identity`]: headers that speak of the caller's own login. Whoever puts another credential in its place takes
/// these out as well.
pub const CALLER_BOUND: [&str; 3] = ["chatgpt-account-id", "openai-organization", "openai-project"];

/// Routes later requests of one turn to the same place. Of one account: never carried to another (INV-6).
pub const TURN_STATE: &str = "x-codex-turn-state";

/// Identity headers that every kind knows, beside `openai-*`. An upstream's prompt cache routes on them.
const IDENTITY: [&str; 6] = [
    "session-id",
    "session_id",
    "thread-id",
    "x-client-request-id",
    "originator",
    "user-agent",
];

/// What the ChatGPT backend knows beyond these, beside `x-codex-*`, `x-openai-*` and `x-oai-*`.
const CHATGPT_IDENTITY: [&str; 4] = [
    "chatgpt-account-id",
    "conversation_id",
    "version",
    "x-responsesapi-include-timing-metrics",
];

/// The header that says a request has the Responses-Lite form. A body in one form under the other's marker is refused.
const LITE: PerTurn = PerTurn {
    header: "x-openai-internal-codex-responses-lite",
    metadata: "ws_request_header_x_openai_internal_codex_responses_lite",
};

/// A header that speaks of one turn, and the `client_metadata` name that says the same on a socket.
struct PerTurn {
    header: &'static str,
    metadata: &'static str,
}

/// Codex gives some of these their own name on a socket; what has none is spelt `ws_request_header_…`.
const CHATGPT_PER_TURN: [PerTurn; 8] = [
    LITE,
    PerTurn {
        header: TURN_STATE,
        metadata: TURN_STATE,
    },
    PerTurn {
        header: "x-codex-turn-metadata",
        metadata: "x-codex-turn-metadata",
    },
    PerTurn {
        header: "x-codex-window-id",
        metadata: "x-codex-window-id",
    },
    PerTurn {
        header: "x-codex-parent-thread-id",
        metadata: "x-codex-parent-thread-id",
    },
    PerTurn {
        header: "x-openai-subagent",
        metadata: "x-openai-subagent",
    },
    PerTurn {
        header: "x-openai-memgen-request",
        metadata: "ws_request_header_x_openai_memgen_request",
    },
    PerTurn {
        header: "x-codex-routing-hint",
        metadata: "ws_request_header_x_codex_routing_hint",
    },
];

/// Another upstream may refuse a `client_metadata` that it does not know; OpenAI's own takes Codex's.
const OPENAI_PER_TURN: [PerTurn; 1] = [LITE];

fn per_turn_table(kind: ProviderKind) -> &'static [PerTurn] {
    match kind {
        ProviderKind::Chatgpt => &CHATGPT_PER_TURN,
        ProviderKind::Openai => &OPENAI_PER_TURN,
        ProviderKind::Azure | ProviderKind::Generic => &[],
    }
}

/// The client's headers that hold for a whole session: they belong in a handshake and in every HTTP request [WIRE-20].
///
/// `OpenAI-Beta` comes without `responses_websockets=…`, which is for the one who opens a socket to say.
pub fn identity(kind: ProviderKind, client: &HeaderMap) -> HeaderMap {
    let per_turn = per_turn_table(kind);
    let hop = connection_named(client);
    let mut kept = HeaderMap::new();
    for (name, value) in client {
        let text = name.as_str();
        let of_a_turn = per_turn.iter().any(|entry| entry.header == text);
        if !is_identity(kind, text) || of_a_turn || hop.iter().any(|named| named == text) {
            continue;
        }
        if text == "openai-beta" {
            if let Some(value) = without_websocket_beta(value) {
                kept.append(name.clone(), value);
            }
        } else {
            kept.append(name.clone(), value.clone());
        }
    }
    kept
}

fn is_identity(kind: ProviderKind, name: &str) -> bool {
    let chatgpt = kind == ProviderKind::Chatgpt
        && (CHATGPT_IDENTITY.contains(&name) || has_prefix(name, &["x-codex-", "x-openai-", "x-oai-"]));
    IDENTITY.contains(&name) || name.starts_with("openai-") || chatgpt
}

fn has_prefix(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

fn without_websocket_beta(value: &HeaderValue) -> Option<HeaderValue> {
    let Ok(text) = value.to_str() else {
        return Some(value.clone());
    };
    let kept: Vec<&str> = text
        .split(',')
        .map(str::trim)
        .filter(|beta| !beta.is_empty() && !beta.starts_with("responses_websockets"))
        .collect();
    if kept.is_empty() {
        None
    } else {
        HeaderValue::from_str(&kept.join(", ")).ok()
    }
}

/// The client's headers that hold for this turn only. They travel as headers over HTTP [WIRE-21].
pub fn per_turn(kind: ProviderKind, client: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    let named =
        |(entry, value): (&PerTurn, &HeaderValue)| (HeaderName::from_static(entry.header), value.clone());
    per_turn_sent(kind, client).map(named).collect()
}

/// The same headers as `client_metadata` of a frame, for a socket, whose handshake lives for many turns [WIRE-21].
pub fn per_turn_metadata(kind: ProviderKind, client: &HeaderMap) -> Vec<(&'static str, &str)> {
    per_turn_sent(kind, client)
        .filter_map(|(entry, value)| Some((entry.metadata, value.to_str().ok()?)))
        .collect()
}

fn per_turn_sent(
    kind: ProviderKind,
    client: &HeaderMap,
) -> impl Iterator<Item = (&'static PerTurn, &HeaderValue)> {
    let hop = connection_named(client);
    per_turn_table(kind)
        .iter()
        .filter(move |entry| !hop.iter().any(|named| named == entry.header))
        .filter_map(|entry| Some((entry, client.get(entry.header)?)))
}

/// The way back: per-turn headers for HTTP that the body's `client_metadata` says and the client's headers do not
/// [WIRE-21].
pub fn per_turn_from_metadata(
    kind: ProviderKind,
    metadata: &[(String, String)],
    client: &HeaderMap,
) -> Vec<(HeaderName, HeaderValue)> {
    let named = |entry: &PerTurn| {
        if client.contains_key(entry.header) {
            return None;
        }
        let (_, value) = metadata.iter().rev().find(|(name, _)| name == entry.metadata)?;
        Some((
            HeaderName::from_static(entry.header),
            HeaderValue::from_str(value).ok()?,
        ))
    };
    per_turn_table(kind).iter().filter_map(named).collect()
}

const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What belongs to this hop, to the caller's network, or to a credential.
const NEVER_UPSTREAM: [&str; 20] = [
    "accept-encoding",
    "api-key",
    "authorization",
    "cdn-loop",
    "client-ip",
    "content-length",
    "cookie",
    "cookie2",
    "expect",
    "forwarded",
    "host",
    "origin",
    "referer",
    "true-client-ip",
    "via",
    "x-api-key",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-forwarded-for",
    "x-real-ip",
];

/// Families of such names: proxies, cloud load balancers, browsers, and the affinity headers made up by clients.
const NEVER_UPSTREAM_PREFIXES: [&str; 12] = [
    "cf-",
    "fastly-",
    "fly-",
    "sec-",
    "x-amzn-trace",
    "x-appengine-",
    "x-azure-",
    "x-envoy-",
    "x-forwarded",
    "x-session-",
    "x-vercel-",
    "x-original-",
];

/// What the bridge says of itself, of a conversation or of a turn.
const SET_BY_THE_BRIDGE: [&str; 9] = [
    "accept",
    "content-encoding",
    "content-type",
    "openai-beta",
    "session-id",
    "session_id",
    "thread-id",
    "x-client-request-id",
    "chatgpt-account-id",
];

/// Whether a header is not the operator's to add to every request: the bridge sets it, or it is of one hop, of one caller's
/// network, a credential, or of one turn (UP-20).
pub fn is_reserved(name: &str) -> bool {
    HOP_BY_HOP.contains(&name)
        || NEVER_UPSTREAM.contains(&name)
        || SET_BY_THE_BRIDGE.contains(&name)
        || has_prefix(name, &["proxy-", "sec-", "x-codex-"])
        || CHATGPT_PER_TURN.iter().any(|entry| entry.header == name)
}

/// The client's headers for a request that is passed on untouched, to a path that the bridge does not know: all but
/// hop-by-hop ones (those that `Connection` names, too), network, proxy, cookie and credential headers [WIRE-22].
///
/// `kind` decides about the ChatGPT login's own headers, which no other upstream has any business with.
pub fn passthrough(kind: ProviderKind, client: &HeaderMap) -> HeaderMap {
    let named = connection_named(client);
    let foreign = |name: &str| kind != ProviderKind::Chatgpt && name == "chatgpt-account-id";
    filtered(client, |name| {
        !HOP_BY_HOP.contains(&name)
            && !NEVER_UPSTREAM.contains(&name)
            && !has_prefix(name, &NEVER_UPSTREAM_PREFIXES)
            && !named.iter().any(|hop| hop == name)
            && !foreign(name)
    })
}

/// Response headers that clients of the API read, beside the families below.
const TO_CLIENT: [&str; 8] = [
    "request-id",
    "retry-after",
    "retry-after-ms",
    "x-models-etag",
    "x-ms-region",
    "x-reasoning-included",
    "x-request-id",
    "x-should-retry",
];

const TO_CLIENT_PREFIXES: [&str; 4] = ["openai-", "x-codex-", "x-openai-", "x-ratelimit-"];

/// They name the account behind the bridge, which is not the client's where the bridge holds the credential.
const OPERATORS_OWN: [&str; 2] = ["openai-organization", "openai-project"];

/// The upstream's response headers for the client of a turn [WIRE-23].
pub fn to_client(upstream: &HeaderMap) -> HeaderMap {
    let named = connection_named(upstream);
    filtered(upstream, |name| {
        (TO_CLIENT.contains(&name) || has_prefix(name, &TO_CLIENT_PREFIXES))
            && !OPERATORS_OWN.contains(&name)
            && !named.iter().any(|hop| hop == name)
    })
}

/// Of an answer that is passed on untouched, what the bridge's own connection decides or must not repeat.
const NEVER_TO_CLIENT: [&str; 6] = [
    "alt-svc",
    "content-length",
    "nel",
    "report-to",
    "set-cookie",
    "strict-transport-security",
];

/// The upstream's response headers for a request that was passed on untouched: all but hop-by-hop ones, cookies and
/// what speaks of the upstream's own connection. `content-encoding` stays, as the body does [WIRE-23].
pub fn passthrough_to_client(upstream: &HeaderMap) -> HeaderMap {
    let named = connection_named(upstream);
    filtered(upstream, |name| {
        !HOP_BY_HOP.contains(&name)
            && !NEVER_TO_CLIENT.contains(&name)
            && !OPERATORS_OWN.contains(&name)
            && !named.iter().any(|hop| hop == name)
    })
}

/// Handshake response headers that hold for every turn of the socket.
const EVERY_TURN: [&str; 3] = ["openai-model", "x-models-etag", "x-reasoning-included"];

/// The handshake's response headers for the client of a turn: turn-state, rate limits and request id only to the turn
/// that opened the socket; model, etag and reasoning headers to all [WIRE-24].
pub fn handshake_to_client(upstream: &HeaderMap, opened_by_this_turn: bool) -> HeaderMap {
    if opened_by_this_turn {
        return to_client(upstream);
    }
    filtered(upstream, |name| EVERY_TURN.contains(&name))
}

/// The headers that `Connection` declares to be of this hop only.
fn connection_named(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(http::header::CONNECTION).iter();
    let names = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    names
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| !name.is_empty())
        .collect()
}

fn filtered(headers: &HeaderMap, keep: impl Fn(&str) -> bool) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for (name, value) in headers {
        if keep(name.as_str()) {
            kept.append(name.clone(), value.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests;
