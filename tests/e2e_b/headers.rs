//! What of a client's headers reaches the upstream, on either transport and on every path.

use std::collections::BTreeMap;

use serde_json::json;

use crate::client::Ask;
use crate::shared::HTTP_ONLY;
use crate::world::{Setup, World};

/// What speaks of a client's network, its cookies, its hop, or only of the affinity of its requests.
const PRIVATE: [(&str, &str); 22] = [
    ("x-forwarded-for", "10.1.2.3"),
    ("x-forwarded-host", "laptop.local"),
    ("x-forwarded-proto", "https"),
    ("forwarded", "for=10.1.2.3"),
    ("x-real-ip", "10.1.2.3"),
    ("true-client-ip", "10.1.2.3"),
    ("cf-connecting-ip", "10.1.2.3"),
    ("cf-ray", "abc"),
    ("cf-ipcountry", "DE"),
    ("via", "1.1 proxy"),
    ("cookie", "session=secret"),
    ("proxy-authorization", "Basic c2VjcmV0"),
    ("x-hop", "named by Connection"),
    ("connection", "keep-alive, X-Hop, Openai-Hop"),
    ("openai-hop", "named by Connection too"),
    ("te", "trailers"),
    ("keep-alive", "timeout=5"),
    ("x-session-affinity", "s"),
    ("x-session-id", "s"),
    ("referer", "http://localhost/"),
    ("x-amzn-trace-id", "Root=1"),
    ("x-vercel-id", "fra1"),
];

fn nosy(mut ask: Ask) -> Ask {
    for (name, value) in PRIVATE {
        ask = ask.header(name, value);
    }
    ask.header("user-agent", "agent/1.0")
        .header("originator", "agent")
        .header("x-client-request-id", "r1")
}

/// The last create's headers.
fn create(world: &World) -> BTreeMap<String, String> {
    world
        .upstream
        .look(|ledger| ledger.creates.last().unwrap().headers.clone())
}

fn is_clean(headers: &BTreeMap<String, String>, what: &str) {
    // The hop to the upstream has a `connection` of its own.
    for (name, value) in PRIVATE {
        assert!(
            headers
                .get(name)
                .is_none_or(|sent| name == "connection" && sent != value),
            "{what}: {name}"
        );
    }
    assert_eq!(headers["user-agent"], "agent/1.0", "{what}");
    assert_eq!(headers["accept-encoding"], "identity", "{what}");
    assert_eq!(
        headers["authorization"],
        responses_bridge::simulator::credential_hash("Bearer sk-one"),
        "{what}"
    );
}

/// [WIRE-20] [WIRE-22] row 26: addresses, cookies, hop-by-hop headers and those that `Connection` names are never sent
/// upstream: not in a handshake, a create over HTTP, a request about a response, or one that is passed through. What the
/// upstream's prompt cache routes on is, on both transports alike.
#[tokio::test]
async fn private_headers_stay_here() {
    let world = Setup::new().start().await;
    let id = world.ask(&nosy(Ask::turn("sim:conv=a hello"))).await.id();
    let handshake = create(&world);
    is_clean(&handshake, "handshake");
    for (what, ask) in [
        ("lookup", Ask::bare("GET", format!("/v1/responses/{id}"))),
        ("delete", Ask::bare("DELETE", format!("/v1/responses/{id}"))),
        ("pass", Ask::turn("").to("/v1/embeddings")),
        ("compact", Ask::turn("hello").to("/v1/responses/compact")),
        ("models", Ask::bare("GET", "/v1/models")),
    ] {
        assert_eq!(world.ask(&nosy(ask)).await.status, 200, "{what}");
        is_clean(
            &world
                .upstream
                .look(|ledger| ledger.requests.last().unwrap().headers.clone()),
            what,
        );
    }
    let world = Setup::new().config(HTTP_ONLY).start().await;
    world.ask(&nosy(Ask::turn("sim:conv=a hello"))).await.completed();
    let direct = create(&world);
    is_clean(&direct, "direct HTTP");
    for name in ["originator", "x-client-request-id", "authorization", "user-agent"] {
        assert_eq!(
            handshake.get(name),
            direct.get(name),
            "{name} differs between the transports"
        );
        assert!(direct.contains_key(name), "{name}");
    }
}

fn codex(prompt: &str) -> Ask {
    Ask::turn(prompt)
        .to("/backend-api/codex/responses")
        .header("chatgpt-account-id", "acct_1")
}

/// [WIRE-20] The ChatGPT backend's prompt cache routes on `session-id` and `thread-id`: where a client sends none they are
/// derived from its key, the same on both transports and in every turn, and differ between keys. What it does send wins.
#[tokio::test]
async fn identity_is_derived_for_chatgpt() {
    let world = Setup::new()
        .script("[[upgrade]]\ndo = \"accept(times=2)\"\n[[upgrade]]\ndo = \"refuse(status=500)\"")
        .start()
        .await;
    let ask = |cache: &str| codex(&format!("sim:conv={cache} hello")).with("prompt_cache_key", cache);
    world.ask(&ask("one")).await.completed();
    let by_socket = create(&world);
    world.ask(&ask("two")).await.completed();
    let other = create(&world);
    world
        .upstream
        .end_sockets(responses_bridge::simulator::Ending::Fin);
    world.saw("session_retired", 2).await;
    world.ask(&ask("one")).await.completed();
    let by_http = create(&world);
    assert_eq!(
        (world.creates("one").websocket, world.creates("one").http),
        (1, 1)
    );
    for name in ["session-id", "thread-id"] {
        assert!(by_socket.contains_key(name), "{name}");
        assert_eq!(by_socket[name], by_http[name]);
        assert_ne!(by_socket[name], other[name]);
    }
    assert_eq!(
        by_socket["openai-beta"], "responses_websockets=2026-02-06",
        "the handshake asks for the protocol"
    );
    assert!(!by_http.contains_key("openai-beta"));
    assert_eq!(
        by_socket.get("chatgpt-account-id"),
        by_http.get("chatgpt-account-id")
    );

    world
        .ask(
            &ask("three")
                .header("session-id", "mine")
                .header("thread-id", "mine-too"),
        )
        .await
        .completed();
    let sent = create(&world);
    assert_eq!(
        (sent["session-id"].as_str(), sent["thread-id"].as_str()),
        ("mine", "mine-too")
    );
    let keyless = codex("sim:conv=keyless hello").with("store", true);
    world.ask(&keyless).await.completed();
    assert!(
        !create(&world).contains_key("session-id"),
        "nothing ties keyless requests together"
    );
    // A conversation is known by what it opens with.
    let mut ids = Vec::new();
    for opening in ["sim:conv=known hello", "sim:conv=other hello"] {
        world.ask(&codex(opening)).await.completed();
        ids.push(create(&world)["session-id"].clone());
    }
    assert_ne!(ids[0], ids[1]);
}

/// [HTTP-1] [WIRE-21] Headers that speak of one turn are no part of a handshake that lives for many: on a socket they travel in the
/// frame's `client_metadata`, over HTTP as headers; and what came in `client_metadata` becomes headers over HTTP.
#[tokio::test]
async fn per_turn_headers_change_places() {
    const LITE: &str = "x-openai-internal-codex-responses-lite";
    const LITE_FIELD: &str = "ws_request_header_x_openai_internal_codex_responses_lite";
    let per_turn = |prompt: &str| {
        codex(prompt)
            .header("x-codex-turn-state", "state-1")
            .header("x-codex-window-id", "t:1")
            .header(LITE, "true")
    };
    let world = Setup::new().start().await;
    let ask = per_turn("sim:conv=a hello").with("client_metadata", json!({"thread_id": "t", "mine": "1"}));
    world.ask(&ask).await.completed();
    let (headers, metadata) = world.upstream.look(|ledger| {
        let create = ledger.creates.last().unwrap();
        (create.headers.clone(), create.client_metadata.clone())
    });
    for name in [LITE, "x-codex-turn-state", "x-codex-window-id"] {
        assert!(!headers.contains_key(name), "{name} is not of the whole session");
    }
    for name in [
        "thread_id",
        "mine",
        "x-codex-turn-state",
        "x-codex-window-id",
        LITE_FIELD,
    ] {
        assert!(
            metadata.iter().any(|known| known == name),
            "{name} in {metadata:?}"
        );
    }

    let world = Setup::new()
        .script("[[upgrade]]\ndo = \"refuse(status=404)\"")
        .start()
        .await;
    world.ask(&per_turn("sim:conv=a hello")).await.completed();
    let headers = create(&world);
    assert_eq!(
        (
            headers["x-codex-turn-state"].as_str(),
            headers["x-codex-window-id"].as_str()
        ),
        ("state-1", "t:1")
    );
    assert_eq!(headers[LITE], "true");
    let in_body = json!({"x-codex-turn-state": "state-2", (LITE_FIELD): "true"});
    world
        .ask(&codex("sim:conv=a hello").with("client_metadata", in_body))
        .await
        .completed();
    let headers = create(&world);
    assert_eq!(
        (headers["x-codex-turn-state"].as_str(), headers[LITE].as_str()),
        ("state-2", "true")
    );
}

/// [WIRE-16] The ChatGPT backend is always asked for a stream over HTTP, whatever the client wants; others as the client
/// asks.
#[tokio::test]
async fn chatgpt_is_always_asked_for_a_stream() {
    let world = Setup::new()
        .script("[[upgrade]]\ndo = \"refuse(status=404)\"")
        .start()
        .await;
    for ask in [codex("sim:conv=a hello").json(), codex("sim:conv=a hello")] {
        world.ask(&ask).await.completed();
        assert_eq!(create(&world)["accept"], "text/event-stream");
    }
    world.ask(&Ask::turn("sim:conv=b hello").json()).await.completed();
    assert_eq!(create(&world)["accept"], "application/json");
}

/// [WIRE-24] Turn-state and rate limits of a handshake are for the turn that opened the socket; model and etag for all.
#[tokio::test]
async fn handshake_headers_reach_those_they_are_for() {
    let script = "[[upgrade]]\ndo = \"accept\"\nheaders = { x-codex-turn-state = \"s\", openai-model = \"gpt-5\", \
                  x-models-etag = \"e\", set-cookie = \"a=b\" }";
    let world = Setup::new().script(script).start().await;
    let first = world.ask(&Ask::turn("sim:conv=a hello").thread("a")).await;
    let second = world.ask(&Ask::turn("sim:conv=a hello").thread("a")).await;
    assert_eq!(world.sockets("a"), [Some(1), Some(1)]);
    assert_eq!(first.headers["x-codex-turn-state"], "s");
    assert!(!second.headers.contains_key("x-codex-turn-state"));
    for answer in [&first, &second] {
        assert_eq!(
            (
                answer.headers["openai-model"].as_str(),
                answer.headers["x-models-etag"].as_str()
            ),
            ("gpt-5", "e")
        );
        assert!(!answer.headers.contains_key("set-cookie"));
    }
}

/// [WIRE-24] Rate limits that came as an event before the reply was begun are its headers, on a socket's later turns too.
#[tokio::test]
async fn rate_limits_of_an_event_are_headers() {
    let world = Setup::new().script("kind = \"chatgpt\"").start().await;
    let ask = || Ask::turn("sim:conv=a hello").thread("a");
    for ask in [ask(), ask(), ask().json()] {
        let answer = world.ask(&ask).await;
        answer.completed();
        assert_eq!(answer.headers["x-codex-primary-used-percent"], "12");
        assert_eq!(answer.headers["x-codex-secondary-window-minutes"], "10080");
    }
    assert_eq!(world.sockets("a").len(), 3);
}
