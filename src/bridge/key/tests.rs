use bytes::Bytes;

use super::*;
use crate::wire::request::read_create;

const TENANT: [u8; 16] = [1; 16];

fn hasher() -> Hasher {
    Hasher::new([7; 32])
}

fn create(members: &str) -> Create {
    let comma = if members.is_empty() { "" } else { "," };
    let body = format!(r#"{{"model":"m"{comma}{members}}}"#);
    read_create(Bytes::from(body)).unwrap()
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| {
            (
                http::HeaderName::from_static(name),
                http::HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            )
        })
        .collect()
}

fn key(pairs: &[(&'static str, &str)], members: &str) -> AffinityKey {
    derive(&hasher(), &TENANT, "p", &headers(pairs), &create(members))
}

/// [KEY-1] the same text makes the same key for one tenant and provider, and another for any other.
#[test]
fn a_key_belongs_to_one_tenant_and_provider() {
    let (headers, create) = (headers(&[("thread-id", "t")]), create(""));
    let derived = |tenant: [u8; 16], provider| derive(&hasher(), &tenant, provider, &headers, &create);
    let mine = derived(TENANT, "p");
    assert_eq!(mine, derived(TENANT, "p"));
    assert_ne!(mine, derived([2; 16], "p"));
    assert_ne!(mine, derived(TENANT, "q"));
}

/// [KEY-2] every signal wins over all that are weaker: from the full set down to none, one taken away at a time.
#[test]
fn the_strongest_signal_wins() {
    let body = [
        (r#""conversation":"conv""#, KeyKind::Conversation),
        (r#""client_metadata":{"thread_id":"thread-b"}"#, KeyKind::Thread),
        (r#""prompt_cache_key":"cache""#, KeyKind::PromptCache),
        (r#""previous_response_id":"resp_1""#, KeyKind::Response),
    ];
    let sessions = [
        ("x-session-affinity", "s1"),
        ("x-session-id", "s2"),
        ("session-id", "s3"),
        ("session_id", "s4"),
        ("x-codex-session-id", "s5"),
        ("conversation_id", "s6"),
    ];
    let members = |from: usize| {
        body[from..]
            .iter()
            .map(|(text, _)| *text)
            .collect::<Vec<_>>()
            .join(",")
    };
    let only = |kind: KeyKind, value: &str| {
        let hash = hasher().hash(
            "affinity",
            &[&TENANT, b"p", kind.label().as_bytes(), value.as_bytes()],
        );
        AffinityKey { kind, hash }
    };

    let mut all = vec![("thread-id", "thread-h")];
    all.extend(sessions);
    assert_eq!(key(&all, &members(0)), only(KeyKind::Conversation, "conv"));
    assert_eq!(key(&all, &members(1)), only(KeyKind::Thread, "thread-h"));
    assert_eq!(key(&sessions, &members(1)), only(KeyKind::Thread, "thread-b"));
    for (place, (_, value)) in sessions.iter().enumerate() {
        assert_eq!(
            key(&sessions[place..], &members(2)),
            only(KeyKind::Session, value)
        );
    }
    assert_eq!(key(&[], &members(2)), only(KeyKind::PromptCache, "cache"));
    assert_eq!(key(&[], &members(3)), only(KeyKind::Response, "resp_1"));
    assert_eq!(key(&[], ""), only(KeyKind::Keyless, ""));
}

/// [KEY-2] Codex's sub-agents share `session-id` and `prompt_cache_key` with their parent and differ in `thread-id`
/// only: they have keys of their own (field report 31).
#[test]
fn sub_agents_are_told_apart() {
    let of = |thread| {
        key(
            &[("session-id", "s"), ("thread-id", thread)],
            r#""prompt_cache_key":"s""#,
        )
    };
    assert_ne!(of("parent"), of("child"));
    assert_eq!(of("child"), of("child"));
}

/// [KEY-3] the same text in two places makes two keys, and text that imitates how keys are built none but its own.
#[test]
fn no_text_forges_a_key() {
    let text = "abc";
    let conversation = format!(r#""conversation":"{text}""#);
    let cache = format!(r#""prompt_cache_key":"{text}""#);
    let response = format!(r#""previous_response_id":"{text}""#);
    let keys = [
        key(&[], &conversation),
        key(&[("thread-id", text)], ""),
        key(&[("session-id", text)], ""),
        key(&[], &cache),
        key(&[], &response),
        key(&[], ""),
    ];
    for (place, one) in keys.iter().enumerate() {
        assert!(keys[place + 1..].iter().all(|other| other.hash != one.hash));
    }
    let hasher = hasher();
    assert_ne!(hasher.hash("d", &[b"ab", b"c"]), hasher.hash("d", &[b"a", b"bc"]));
    assert_ne!(hasher.hash("d", &[b"ab"]), hasher.hash("d", &[b"ab", b""]));
    assert_ne!(hasher.hash("d", &[b"x"]), hasher.hash("dx", &[]));
}

/// [KEY-3] an empty value and a header that is not text are no signal: the next one counts.
#[test]
fn what_is_no_signal() {
    let cache = r#""prompt_cache_key":"cache""#;
    let empty = r#""conversation":"","client_metadata":{"thread_id":""},"prompt_cache_key":"cache""#;
    assert_eq!(
        key(&[("thread-id", ""), ("session-id", "")], empty),
        key(&[], cache)
    );
    assert_eq!(key(&[("thread-id", "\u{e9}")], cache), key(&[], cache));
    assert_eq!(
        key(
            &[("x-session-affinity", "\u{e9}"), ("conversation_id", "c")],
            cache
        )
        .kind,
        KeyKind::Session
    );
    assert_eq!(
        key(&[], r#""prompt_cache_key":"","previous_response_id":"""#).kind,
        KeyKind::Keyless
    );
}

/// [KEY-4] [INV-9] a key is shown as twelve digits, never as its text, and another installation shows others.
#[test]
fn a_key_is_shown_as_a_short_hash() {
    let key = key(&[("thread-id", "secret-thread")], "");
    for shown in [
        format!("{key}"),
        format!("{}", key.hash),
        format!("{:?}", key.hash),
    ] {
        assert_eq!(shown.len(), 12);
        assert!(shown.chars().all(|digit| digit.is_ascii_hexdigit()));
    }
    assert!(!format!("{key:?}").contains("secret"));
    let parts: [&[u8]; 1] = [b"x"];
    assert_ne!(hasher().hash("d", &parts), Hasher::new([8; 32]).hash("d", &parts));
}

/// [KEY-11] [INV-6] another tenant's response id is unknown: it hashes to something else.
#[test]
fn a_response_id_is_scoped_by_tenant() {
    let hasher = hasher();
    assert_eq!(
        hasher.response(&TENANT, "resp_1"),
        hasher.response(&TENANT, "resp_1")
    );
    assert_ne!(
        hasher.response(&TENANT, "resp_1"),
        hasher.response(&[2; 16], "resp_1")
    );
    assert_ne!(
        hasher.response(&TENANT, "resp_1"),
        hasher.response(&TENANT, "resp_2")
    );
}

/// [INV-9] every kind has a label of its own.
#[test]
fn labels_are_distinct() {
    let kinds = [
        KeyKind::Conversation,
        KeyKind::Thread,
        KeyKind::Session,
        KeyKind::PromptCache,
        KeyKind::Response,
        KeyKind::Keyless,
    ];
    let labels: std::collections::HashSet<_> = kinds.iter().map(|kind| kind.label()).collect();
    assert_eq!(labels.len(), kinds.len());
    assert!(labels.iter().all(|label| !label.is_empty()));
}
