//! Paths, methods, upgrades, health and metrics.

use std::sync::atomic::Ordering;

use secrecy::SecretString;

use crate::world::{GOOD, Setup, bare, eventually, post};

const ALIASES: [&str; 4] = [
    "/v1/responses",
    "/responses",
    "/backend-api/codex/responses",
    "/openai/v1/responses",
];

/// [EDGE-10] a create arrives by every alias, and only `/backend-api/` means the ChatGPT backend.
#[tokio::test]
async fn a_create_arrives_by_every_alias() {
    let world = Setup::default().start();
    for alias in ALIASES {
        let answer = world.ask(post(alias, "", GOOD)).await;
        assert_eq!(
            (answer.status, answer.json()["ok"].as_bool()),
            (200, Some(true)),
            "{alias}"
        );
        let seen = world.bridge.seen().pop().unwrap();
        assert_eq!(
            (seen.what.as_str(), seen.body),
            ("create", GOOD.into()),
            "{alias}"
        );
        assert_eq!(seen.caller.chatgpt, alias.starts_with("/backend-api/"), "{alias}");
    }
    world
        .ask(post("/v1/responses", "chatgpt-account-id: a\r\n", GOOD))
        .await;
    assert!(world.bridge.seen().pop().unwrap().caller.chatgpt);
}

/// [EDGE-11] an upgrade is answered 426 and the connection closes; an `h2c` offer on a POST is ignored.
#[tokio::test]
async fn an_upgrade_is_refused_at_once() {
    let world = Setup::default().start();
    let upgrade = "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n";
    for alias in ALIASES.iter().copied().chain(["/v1/realtime"]) {
        let mut client = world.connect().await;
        client.send(bare("GET", alias, upgrade)).await;
        let answer = client.answer().await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (426, "bridge_upgrade_not_supported"),
            "{alias}"
        );
        assert_eq!(answer.headers["connection"], "close");
        assert!(answer.headers.contains_key("upgrade"));
        assert!(client.closed().await);
    }
    assert_eq!(world.ask(post("/v1/responses", upgrade, GOOD)).await.status, 426);
    assert!(world.bridge.seen().is_empty());
    let h2c = "upgrade: h2c\r\nconnection: upgrade, http2-settings\r\nhttp2-settings: AAMAAABk\r\n";
    assert_eq!(world.ask(post("/v1/responses", h2c, GOOD)).await.status, 200);
}

/// [EDGE-12] what names a response in its path goes to its lookup, on every alias, with its query.
#[tokio::test]
async fn requests_about_a_response_are_looked_up() {
    let world = Setup::default().start();
    for alias in ALIASES {
        for (method, tail) in [
            ("GET", ""),
            ("DELETE", ""),
            ("POST", "/cancel"),
            ("GET", "/input_items"),
        ] {
            let path = format!("{alias}/resp_0a{tail}?starting_after=3");
            assert_eq!(
                world.ask(bare(method, &path, "")).await.status,
                200,
                "{method} {path}"
            );
            let seen = world.bridge.seen().pop().unwrap();
            assert_eq!(seen.what, format!("{method} resp_0a{tail}"));
            assert_eq!(seen.query.as_deref(), Some("starting_after=3"));
        }
    }
    world.ask(bare("GET", "/v1/responses/resp%3A1", "")).await;
    assert_eq!(world.bridge.seen().pop().unwrap().what, "GET resp:1");
}

/// [EDGE-13] every other API path is passed on relative to its base, its body streamed in both directions as it comes.
#[tokio::test]
async fn other_paths_pass_untouched() {
    let world = Setup::default().start();
    for (path, passed) in [
        ("/v1/models", "Provider /models"),
        (
            "/v1/models/ft%3Agpt-4o%3Aorg",
            "Provider /models/ft%3Agpt-4o%3Aorg",
        ),
        ("/openai/v1/embeddings", "Provider /embeddings"),
        ("/v1/responses/compact", "Provider /responses/compact"),
        ("/responses/input_tokens", "Provider /responses/input_tokens"),
        ("/backend-api/codex/models", "Provider /models"),
        ("/backend-api/wham/usage", "BesideCodex /wham/usage"),
        ("/backend-api/responses", "BesideCodex /responses"),
        ("/v1/files/a.b/", "Provider /files/a.b/"),
    ] {
        assert_eq!(
            world.ask(bare("POST", &format!("{path}?a=%2F"), "")).await.status,
            200,
            "{path}"
        );
        let seen = world.bridge.seen().pop().unwrap();
        assert_eq!(seen.what, format!("POST {passed}"));
        assert_eq!(seen.query.as_deref(), Some("a=%2F"));
    }
    let mut client = world.connect().await;
    client
        .send(bare(
            "PUT",
            "/v1/files",
            "transfer-encoding: chunked\r\ncontent-encoding: br\r\n",
        ))
        .await;
    client.send("3\r\n\0\u{1}{\r\n").await;
    assert_eq!(client.head().await.status, 200);
    assert_eq!(
        client.chunk().await,
        b"\0\x01{",
        "the first bytes come back before the last are sent"
    );
    client.send("2\r\nhi\r\n0\r\n\r\n").await;
    assert_eq!(client.chunk().await, b"hi");
    assert_eq!(client.chunk().await, b"");
    assert_eq!(
        world.bridge.seen().pop().unwrap().caller.headers["content-encoding"],
        "br"
    );
}

/// [EDGE-14] a path that two servers could read differently reaches nobody, and a response id has no slash.
#[tokio::test]
async fn crooked_paths_lead_nowhere() {
    let world = Setup::default().start();
    for path in [
        "/v1/../admin",
        "/v1/%2e%2e/admin",
        "/v1/%2E./admin",
        "/v1/./models",
        "/v1//models",
        "//v1/models",
        "/v1/files%2f..%2fadmin",
        "/v1/files/%5c..",
        "/v1/files/..%5cadmin",
        "/v1/files/..;/admin",
        "/v1/%252e%252e/admin",
        "/v1/files/%00",
        "/v1/files/%zz",
        "/v1/files/%4",
        "/backend-api/codex/../wham/usage",
        "/backend-api/codex/%2e%2e/wham",
        "/v1/responses//cancel",
        "/v1/responses/",
        "/v1/responses/a%2Fb",
        "/v1/responses/..",
        "/v1/responses/a/b",
        "/v1/responses/a/cancel/",
        "/v1/responses/resp_%F0%9F%98%80",
        "/v1",
        "/v1/",
        "/v1x/models",
        "/models",
        "/admin",
        "/",
        "/health",
        "/HEALTH/live",
    ] {
        for method in ["GET", "POST"] {
            let answer = world.ask(bare(method, path, "")).await;
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (404, "bridge_not_found"),
                "{method} {path}"
            );
        }
    }
    let long = format!("/v1/responses/{}", "a".repeat(257));
    assert_eq!(world.ask(bare("GET", &long, "")).await.status, 404);
    assert!(world.bridge.seen().is_empty());
}

/// [EDGE-15] a wrong method is answered 405 with the right ones.
#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let world = Setup::default().start();
    for (method, path, allow) in [
        ("GET", "/v1/responses", "POST"),
        ("DELETE", "/responses", "POST"),
        ("OPTIONS", "/v1/responses", "POST"),
        ("POST", "/v1/responses/resp_1", "GET, DELETE"),
        ("GET", "/v1/responses/resp_1/cancel", "POST"),
        ("POST", "/v1/responses/resp_1/input_items", "GET"),
        ("POST", "/health/live", "GET, HEAD"),
        ("DELETE", "/metrics", "GET, HEAD"),
    ] {
        let answer = world.ask(bare(method, path, "")).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (405, "bridge_method_not_allowed"),
            "{method} {path}"
        );
        assert_eq!(answer.headers["allow"], allow);
    }
    assert_eq!(world.ask(bare("TRACE", "/v1/models", "")).await.status, 405);
    assert!(world.bridge.seen().is_empty());
}

/// [EDGE-16] health needs no credential; unready is 503 with Retry-After and nothing more.
#[tokio::test]
async fn health_answers_anybody() {
    let world = Setup::default().start();
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert_eq!(world.ask(get("/health/live")).await.status, 200);
    assert_eq!(world.ask(get("/health/ready")).await.status, 200);
    world.bridge.unready.store(true, Ordering::SeqCst);
    let answer = world.ask(get("/health/ready")).await;
    assert_eq!(
        (answer.status, answer.headers["retry-after"].as_str()),
        (503, "1")
    );
    assert_eq!(answer.body, b"{\"status\":\"not ready\"}");
    assert_eq!(world.ask(get("/health/live")).await.status, 200);
}

/// [EDGE-17] metrics: with the token where there is one, on loopback too; else on loopback alone, and on a listener of the
/// operators' own where there is one.
#[tokio::test]
async fn metrics_are_for_operators() {
    let beyond = || Some("192.0.2.1:80".parse().unwrap());
    let token = || Some(SecretString::from("s3cret"));
    let request = |token: &str| format!("GET /metrics HTTP/1.1\r\nhost: localhost\r\n{token}\r\n");
    let right = request("authorization: Bearer s3cret\r\n");
    let wrong = request("authorization: Bearer s3cre\r\n");

    let near = Setup::default().start();
    assert_eq!(near.ask(bare("GET", "/metrics", "")).await.body, b"up 1\n");

    let mut moved = Setup::default();
    moved.settings.admin_elsewhere = true;
    moved.settings.admin_token = token();
    assert_eq!(moved.start().ask(bare("GET", "/metrics", "")).await.status, 404);

    let far = Setup {
        pretend: beyond(),
        ..Setup::default()
    }
    .start();
    assert_eq!(far.ask(&right).await.status, 404);

    for pretend in [beyond(), None] {
        let mut guarded = Setup {
            pretend,
            ..Setup::default()
        };
        guarded.settings.admin_token = token();
        let guarded = guarded.start();
        assert_eq!(guarded.ask(&right).await.status, 200);
        for request in [&wrong, &request("")] {
            let answer = guarded.ask(request).await;
            assert_eq!((answer.status, answer.code().as_str()), (401, "bridge_not_admin"));
        }
    }

    for (pretend, status) in [(None, 200), (beyond(), 404)] {
        let own = Setup {
            pretend,
            operators: true,
            ..Setup::default()
        }
        .start();
        assert_eq!(own.ask(request("")).await.status, status);
    }
    let own = Setup {
        operators: true,
        ..Setup::default()
    }
    .start();
    assert_eq!(
        own.ask(post("/v1/responses", "", GOOD)).await.status,
        404,
        "no door for clients"
    );
    assert!(own.bridge.seen().is_empty());

    let mut own = Setup {
        pretend: beyond(),
        operators: true,
        ..Setup::default()
    };
    own.settings.admin_token = token();
    let own = own.start();
    assert_eq!(own.ask(request("")).await.status, 401);
    assert_eq!(own.ask(&right).await.status, 200);
}

/// [EDGE-18] [COR-1] every reply names its request as the bridge saw it: by the client's own id where that is safe, else by a
/// UUIDv7 of ours; the upstream's id stands beside it.
#[tokio::test]
async fn every_reply_names_its_request() {
    let world = Setup::default().start();
    let answer = world.ask(post("/v1/responses", "", GOOD)).await;
    let id = answer.headers["x-request-id"].clone();
    assert_eq!(uuid::Uuid::parse_str(&id).unwrap().get_version_num(), 7);
    assert_eq!(*world.bridge.seen().pop().unwrap().caller.request_id, *id);
    let answer = world.ask(post("/v1/responses", "x-fake: named\r\n", GOOD)).await;
    assert_eq!(answer.headers["x-upstream-request-id"], "req_upstream");
    assert_ne!(answer.headers["x-request-id"], "req_upstream");
    for (sent, taken) in [("my.id-1", true), ("my id", false), ("<script>", false)] {
        let headers = format!("x-request-id: {sent}\r\n");
        let answer = world.ask(post("/v1/responses", &headers, GOOD)).await;
        let named = answer.headers["x-request-id"].as_str();
        assert_eq!((named == sent, named.len() == 36), (taken, !taken), "{sent}");
        assert_eq!(&*world.bridge.seen().pop().unwrap().caller.request_id, named);
    }
    // Also where it goes nowhere.
    let answer = world.ask(post("/nowhere", "x-request-id: lost\r\n", GOOD)).await;
    assert_eq!(
        (answer.status, answer.headers["x-request-id"].as_str()),
        (404, "lost")
    );
}

/// [EDGE-19] a fault inside the bridge costs one answer, not the connection.
#[tokio::test]
async fn a_panic_costs_one_answer() {
    let world = Setup::default().start();
    let mut client = world.connect().await;
    client
        .send(post("/v1/responses", "x-fake: panic\r\n", GOOD))
        .await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.code().as_str()), (500, "bridge_internal"));
    assert!(answer.headers.contains_key("retry-after"));
    assert!(!String::from_utf8(answer.body).unwrap().contains("planted"));
    client.send(post("/v1/responses", "", GOOD)).await;
    assert_eq!(client.answer().await.status, 200);
    world.quiet().await;
}

/// [EDGE-24] every refusal of the edge is one event with its kind, the request id that the client reads, and the door.
#[tokio::test]
async fn refusals_are_events() {
    let world = Setup {
        connections: 1,
        ..Setup::default()
    }
    .start();
    for (request, reason) in [
        (
            "GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n".into(),
            "missing_credential",
        ),
        (bare("GET", "/nowhere", ""), "not_found"),
        (bare("GET", "/v1/responses", ""), "method_not_allowed"),
        (
            bare("GET", "/v1/responses", "upgrade: websocket\r\n"),
            "upgrade_not_supported",
        ),
        (
            bare("GET", "/v1/models", "origin: https://evil.example\r\n"),
            "origin_not_allowed",
        ),
        (
            bare("POST", "/v1/responses", "content-length: 0\r\n"),
            "invalid_body",
        ),
        (
            bare("POST", "/metrics", "content-length: 0\r\n"),
            "method_not_allowed",
        ),
        ("nonsense\r\n\r\n".into(), "invalid_body"),
    ] {
        let looks = request.contains("/metrics");
        let answer = world.ask(request).await;
        let line = world
            .lines
            .lock()
            .unwrap()
            .lines()
            .last()
            .map(str::to_owned)
            .unwrap();
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (line["event"].as_str(), line["reason"].as_str()),
            (Some("refused"), Some(reason))
        );
        let door = if looks { "operators" } else { "clients" };
        assert_eq!(line["door"].as_str(), Some(door), "{line}");
        assert_eq!(
            line["request_id"].as_str(),
            Some(answer.headers["x-request-id"].as_str())
        );
        eventually("the connection is gone", || world.room.available_permits() == 1).await;
    }
}
