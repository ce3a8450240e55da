use http::HeaderMap;

use super::*;

const KINDS: [ProviderKind; 4] = [
    ProviderKind::Openai,
    ProviderKind::Chatgpt,
    ProviderKind::Azure,
    ProviderKind::Generic,
];

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        map.append(
            HeaderName::try_from(*name).unwrap(),
            HeaderValue::from_str(value).unwrap(),
        );
    }
    map
}

fn names(map: &HeaderMap) -> Vec<&str> {
    let mut names: Vec<&str> = map.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    names
}

/// What Codex sends over HTTP, with what a proxy and a browser might add.
fn codex() -> HeaderMap {
    headers(&[
        ("authorization", "Bearer SECRET"),
        ("api-key", "SECRET"),
        ("x-api-key", "SECRET"),
        ("cookie", "SECRET"),
        ("session-id", "s"),
        ("thread-id", "t"),
        ("x-client-request-id", "t"),
        ("originator", "codex_exec"),
        ("user-agent", "codex"),
        ("openai-beta", "assistants=v2, responses_websockets=2026-02-06"),
        ("openai-project", "p"),
        ("chatgpt-account-id", "acc"),
        ("x-codex-beta-features", "f"),
        ("x-codex-window-id", "t:0"),
        ("x-codex-turn-metadata", "{}"),
        ("x-codex-turn-state", "state"),
        ("x-openai-internal-codex-responses-lite", "true"),
        ("x-session-affinity", "a"),
        ("x-session-id", "a"),
        ("x-forwarded-for", "10.0.0.1"),
        ("forwarded", "for=10.0.0.1"),
        ("cf-connecting-ip", "10.0.0.1"),
        ("x-real-ip", "10.0.0.1"),
        ("via", "1.1 proxy"),
        ("host", "localhost"),
        ("content-length", "5"),
        ("accept-encoding", "gzip"),
        ("connection", "keep-alive, X-Hop, originator"),
        ("keep-alive", "5"),
        ("x-hop", "1"),
        ("te", "trailers"),
        ("upgrade", "websocket"),
        ("x-custom", "1"),
        ("accept", "text/event-stream"),
        ("content-type", "application/json"),
    ])
}

/// [WIRE-20] The list of each kind, and nothing beside it.
#[test]
fn identity_is_an_allow_list() {
    let base = [
        "openai-beta",
        "openai-project",
        "session-id",
        "thread-id",
        "user-agent",
        "x-client-request-id",
    ];
    for kind in [ProviderKind::Openai, ProviderKind::Azure, ProviderKind::Generic] {
        assert_eq!(names(&identity(kind, &codex())), base, "{kind:?}");
    }
    let chatgpt = identity(ProviderKind::Chatgpt, &codex());
    let mut expected = base.to_vec();
    expected.extend(["chatgpt-account-id", "x-codex-beta-features"]);
    expected.sort_unstable();
    assert_eq!(names(&chatgpt), expected);
    assert!(
        CALLER_BOUND
            .iter()
            .filter(|name| chatgpt.contains_key(**name))
            .count()
            == 2
    );
}

/// [WIRE-20] The WebSocket part of `OpenAI-Beta` goes, the rest stays.
#[test]
fn the_websocket_beta_is_taken_out() {
    let beta = |value: &str| {
        let kept = identity(ProviderKind::Openai, &headers(&[("openai-beta", value)]));
        kept.get("openai-beta")
            .map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(beta("responses_websockets=2026-02-06"), None);
    assert_eq!(
        beta("a=1,responses_websockets=2099-01-01 , b"),
        Some("a=1, b".to_owned())
    );
    assert_eq!(beta("assistants=v2"), Some("assistants=v2".to_owned()));
    assert_eq!(beta(WEBSOCKET_BETA), None);
}

/// [WIRE-21] Per-turn headers: apart from the session's, as headers and as metadata, and back.
#[test]
fn per_turn_headers_travel_both_ways() {
    let client = codex();
    let kind = ProviderKind::Chatgpt;
    let sent = per_turn(kind, &client);
    let sent: Vec<(&str, &str)> = sent
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    assert_eq!(
        sent,
        [
            ("x-openai-internal-codex-responses-lite", "true"),
            ("x-codex-turn-state", "state"),
            ("x-codex-turn-metadata", "{}"),
            ("x-codex-window-id", "t:0"),
        ]
    );
    let session = identity(kind, &client);
    assert!(sent.iter().all(|(name, _)| !session.contains_key(*name)));

    let metadata = per_turn_metadata(kind, &client);
    assert_eq!(
        metadata[0],
        ("ws_request_header_x_openai_internal_codex_responses_lite", "true")
    );
    assert_eq!(metadata[1], ("x-codex-turn-state", "state"));

    let pairs: Vec<(String, String)> = metadata
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    assert_eq!(
        per_turn_from_metadata(kind, &pairs, &HeaderMap::new()),
        per_turn(kind, &client)
    );
    assert_eq!(per_turn_from_metadata(kind, &pairs, &client), []);
}

/// [WIRE-21] Text in a body becomes no header but one of the table, and no broken one.
#[test]
fn metadata_cannot_forge_headers() {
    let pairs = [
        ("authorization", "x"),
        ("ws_request_header_authorization", "x"),
        ("ws_request_header_cookie", "x"),
        ("x-codex-window-id", "a\r\nx: y"),
        ("thread_id", "t"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    for kind in KINDS {
        assert_eq!(per_turn_from_metadata(kind, &pairs, &HeaderMap::new()), []);
    }
}

/// [WIRE-21] Only kinds that know `client_metadata` get any.
#[test]
fn other_kinds_get_no_metadata() {
    let client = codex();
    assert_eq!(
        per_turn_metadata(ProviderKind::Openai, &client),
        [("ws_request_header_x_openai_internal_codex_responses_lite", "true")]
    );
    for kind in [ProviderKind::Azure, ProviderKind::Generic] {
        assert!(per_turn(kind, &client).is_empty() && per_turn_metadata(kind, &client).is_empty());
    }
}

/// [WIRE-20] [WIRE-21] A header that `Connection` names is of this hop, whatever else it is.
#[test]
fn connection_named_headers_stay_here() {
    let client = headers(&[
        ("connection", "Thread-Id"),
        ("connection", "x-codex-turn-state , close"),
        ("thread-id", "t"),
        ("session-id", "s"),
        ("x-codex-turn-state", "x"),
    ]);
    for kind in KINDS {
        assert_eq!(names(&identity(kind, &client)), ["session-id"]);
        assert!(per_turn(kind, &client).is_empty() && per_turn_metadata(kind, &client).is_empty());
        assert_eq!(names(&passthrough(kind, &client)), ["session-id"]);
    }
}

/// [WIRE-22] Untouched requests: a deny-list.
#[test]
fn passthrough_drops_only_what_is_of_this_hop() {
    let kept = passthrough(ProviderKind::Openai, &codex());
    for name in [
        "accept",
        "content-type",
        "user-agent",
        "x-custom",
        "openai-project",
        "session-id",
        "openai-beta",
    ] {
        assert!(kept.contains_key(name), "{name}");
    }
    for name in [
        "authorization",
        "api-key",
        "x-api-key",
        "cookie",
        "x-session-affinity",
        "x-session-id",
        "x-forwarded-for",
        "forwarded",
        "cf-connecting-ip",
        "x-real-ip",
        "via",
        "host",
        "content-length",
        "accept-encoding",
        "connection",
        "keep-alive",
        "x-hop",
        "te",
        "upgrade",
        "originator",
        "chatgpt-account-id",
    ] {
        assert!(!kept.contains_key(name), "{name}");
    }
    assert!(passthrough(ProviderKind::Chatgpt, &codex()).contains_key("chatgpt-account-id"));
}

fn answer() -> HeaderMap {
    headers(&[
        ("x-request-id", "r"),
        ("openai-model", "m"),
        ("openai-processing-ms", "5"),
        ("openai-organization", "SECRET"),
        ("openai-project", "SECRET"),
        ("x-ratelimit-remaining-tokens", "1"),
        ("retry-after", "1"),
        ("retry-after-ms", "900"),
        ("x-should-retry", "true"),
        ("x-codex-turn-state", "state"),
        ("x-codex-primary-used-percent", "7"),
        ("x-models-etag", "e"),
        ("x-reasoning-included", "true"),
        ("x-openai-authorization-error", "expired"),
        ("set-cookie", "SECRET"),
        ("content-length", "5"),
        ("content-encoding", "gzip"),
        ("content-type", "application/json"),
        ("transfer-encoding", "chunked"),
        ("connection", "x-codex-hop"),
        ("x-codex-hop", "1"),
        ("alt-svc", "h3"),
        ("etag", "x"),
        ("cf-ray", "x"),
    ])
}

/// [WIRE-23] What the client of a turn gets.
#[test]
fn response_headers_of_a_turn() {
    assert_eq!(
        names(&to_client(&answer())),
        [
            "openai-model",
            "openai-processing-ms",
            "retry-after",
            "retry-after-ms",
            "x-codex-primary-used-percent",
            "x-codex-turn-state",
            "x-models-etag",
            "x-openai-authorization-error",
            "x-ratelimit-remaining-tokens",
            "x-reasoning-included",
            "x-request-id",
            "x-should-retry",
        ]
    );
}

/// [WIRE-23] What the client of an untouched request gets.
#[test]
fn response_headers_of_an_untouched_request() {
    let kept = passthrough_to_client(&answer());
    for name in [
        "content-type",
        "content-encoding",
        "etag",
        "x-request-id",
        "retry-after",
    ] {
        assert!(kept.contains_key(name), "{name}");
    }
    for name in [
        "set-cookie",
        "content-length",
        "transfer-encoding",
        "connection",
        "x-codex-hop",
        "alt-svc",
        "openai-organization",
    ] {
        assert!(!kept.contains_key(name), "{name}");
    }
}

/// [WIRE-24] Turn-state and rate limits only to the turn that opened the socket.
#[test]
fn handshake_headers() {
    assert_eq!(handshake_to_client(&answer(), true), to_client(&answer()));
    assert_eq!(
        names(&handshake_to_client(&answer(), false)),
        ["openai-model", "x-models-etag", "x-reasoning-included"]
    );
}
