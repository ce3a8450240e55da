//! Web pages.

use crate::world::{Answer, GOOD, Setup, World, bare, post};

async fn create(world: &World, headers: &str) -> Answer {
    world.ask(post("/v1/responses", headers, GOOD)).await
}

/// [EDGE-30] a request with an origin is refused unless exactly that origin is allowed, health included.
#[tokio::test]
async fn an_origin_must_be_allowed() {
    let mut setup = Setup::default();
    setup.settings.allow_origins = vec!["https://good.example".into(), "http://localhost:3000".into()];
    let world = setup.start();
    for origin in ["https://good.example", "http://localhost:3000"] {
        let answer = create(
            &world,
            &format!("origin: {origin}\r\nsec-fetch-site: cross-site\r\n"),
        )
        .await;
        assert_eq!(
            (
                answer.status,
                answer.headers["access-control-allow-origin"].as_str()
            ),
            (200, origin)
        );
        assert_eq!(answer.headers["vary"], "Origin");
    }
    let before = world.bridge.seen().len();
    for headers in [
        "origin: https://evil.example\r\n",
        "origin: http://good.example\r\n",
        "origin: https://good.example:444\r\n",
        "origin: https://good.example.evil.example\r\n",
        "origin: null\r\n",
        "origin: \r\n",
        "origin: http://localhost\r\n",
        "origin: https://good.example\r\norigin: https://evil.example\r\n",
    ] {
        let answer = create(&world, headers).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (403, "bridge_origin_not_allowed"),
            "{headers}"
        );
        assert!(!answer.headers.contains_key("access-control-allow-origin"));
        assert_eq!(world.ask(bare("GET", "/health/live", headers)).await.status, 403);
    }
    assert_eq!(world.bridge.seen().len(), before);
}

/// [EDGE-31] what a browser sends without an origin (images, navigations) is refused by its `Sec-Fetch-Site`; Node's
/// fetch, which sends `sec-fetch-mode` alone, and a person at the address bar are not.
#[tokio::test]
async fn a_page_without_an_origin_is_still_a_page() {
    let world = Setup::default().start();
    for site in ["cross-site", "same-site", "anything"] {
        let answer = world
            .ask(bare("GET", "/v1/models", &format!("sec-fetch-site: {site}\r\n")))
            .await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (403, "bridge_origin_not_allowed"),
            "{site}"
        );
    }
    assert!(world.bridge.seen().is_empty());
    for headers in [
        "sec-fetch-mode: cors\r\n",
        "sec-fetch-site: none\r\n",
        "sec-fetch-site: same-origin\r\n",
    ] {
        assert_eq!(create(&world, headers).await.status, 200, "{headers}");
    }
}

/// [EDGE-32] a loopback listener answers only to loopback names and addresses, and to hosts of allowed origins.
#[tokio::test]
async fn a_rebound_name_is_refused() {
    let mut setup = Setup::default();
    setup.settings.allow_origins = vec![
        "http://host.docker.internal:8787".into(),
        "https://tool.example".into(),
    ];
    let world = setup.start();
    let get = |target: &str, hosts: &str| {
        format!("GET {target} HTTP/1.1\r\n{hosts}authorization: Bearer sk-1\r\n\r\n")
    };
    let port = world.address.port();
    for host in [
        "localhost".to_owned(),
        format!("LOCALHOST:{port}"),
        format!("127.0.0.1:{port}"),
        "127.8.9.10".into(),
        "[::1]:8787".into(),
        "[::1]".into(),
        "host.docker.internal:8787".into(),
        "tool.example".into(),
    ] {
        let answer = world.ask(get("/v1/models", &format!("host: {host}\r\n"))).await;
        assert_eq!(answer.status, 200, "{host}");
    }
    assert_eq!(
        world.ask(get("/v1/models", "")).await.status,
        200,
        "no browser leaves Host out"
    );
    let before = world.bridge.seen().len();
    for host in [
        "evil.example",
        "evil.example:8787",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "0.0.0.0:8787",
        "192.168.1.2",
        "[::2]",
        "::1:80",
        "",
    ] {
        let answer = world.ask(get("/v1/models", &format!("host: {host}\r\n"))).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (403, "bridge_origin_not_allowed"),
            "{host}"
        );
    }
    let both = "host: localhost\r\nhost: evil.example\r\n";
    assert_eq!(world.ask(get("/v1/models", both)).await.status, 403);
    assert_eq!(
        world
            .ask(get("http://evil.example/v1/models", "host: localhost\r\n"))
            .await
            .status,
        403
    );
    assert_eq!(world.bridge.seen().len(), before);

    let far = Setup {
        pretend: Some("192.0.2.1:80".parse().unwrap()),
        ..Setup::default()
    }
    .start();
    assert_eq!(
        far.ask(get("/v1/models", "host: bridge.example\r\n"))
            .await
            .status,
        200,
        "only loopback is guarded"
    );
}

/// [EDGE-33] a preflight from an allowed origin is answered without a credential and without the bridge.
#[tokio::test]
async fn a_preflight_is_answered() {
    let mut setup = Setup::default();
    setup.settings.allow_origins = vec!["https://good.example".into()];
    let world = setup.start();
    let ask = |origin: &str| {
        format!(
            "OPTIONS /v1/responses HTTP/1.1\r\nhost: localhost\r\norigin: {origin}\r\naccess-control-request-method: POST\r\n\
             access-control-request-headers: authorization,content-type\r\naccess-control-request-private-network: true\r\n\r\n"
        )
    };
    let answer = world.ask(ask("https://good.example")).await;
    assert_eq!(answer.status, 204);
    assert_eq!(
        answer.headers["access-control-allow-origin"],
        "https://good.example"
    );
    assert_eq!(
        answer.headers["access-control-allow-headers"],
        "authorization,content-type"
    );
    assert!(answer.headers["access-control-allow-methods"].contains("POST"));
    assert_eq!(answer.headers["access-control-allow-private-network"], "true");
    assert_eq!(world.ask(ask("https://evil.example")).await.status, 403);
    assert!(world.bridge.seen().is_empty());
}
