//! Who is let in, and what everybody else learns.

use serde_json::json;

use std::net::Ipv4Addr;

use crate::client::Ask;
use crate::raw::{request, say, say_from};
use crate::world::Setup;
use crate::{TOKEN, data, operator, refusal, setup};

/// [ADM-1] Without an admin token there is no admin API, whoever asks.
#[tokio::test]
async fn without_a_token_there_is_nothing() {
    let world = Setup::new().start().await;
    for path in [
        "/admin",
        "/admin/status",
        "/admin/sessions",
        "/admin/ui",
        "/admin/openapi.json",
    ] {
        let answer = world.ask(&operator("GET", path)).await;
        assert_eq!(answer.status, 404, "{path}");
    }
}

/// [ADM-1] With a listener of the operators' own it is there and not at the clients' door.
#[tokio::test]
async fn the_operators_door_is_the_only_one() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let world = setup()
        .config(&format!("[server]\nadmin_listen = \"{port}\""))
        .start()
        .await;
    assert_eq!(world.ask(&operator("GET", "/admin/status")).await.status, 404);
    assert_eq!(operator("GET", "/admin/status").ask(port).await.status, 200);
}

/// [ADM-2] The token alone opens the door; who has none learns nothing of what is behind it.
#[tokio::test]
async fn the_token_and_nothing_else() {
    let world = setup()
        .config("[[clients]]\nname = \"laptop\"\nkey = { env = \"LAPTOP\" }\n[providers.openai]\nbase_url = \"{openai}\"\n[[providers.openai.accounts]]\nname = \"main\"\ncredential = { env = \"UPSTREAM\" }")
        .secret("LAPTOP", "laptop-key-0123456789")
        .secret("UPSTREAM", "sk-upstream-0123")
        .start()
        .await;
    let wrong = [
        Ask::bare("GET", "/admin/status").bearer("laptop-key-0123456789"),
        Ask::bare("GET", "/admin/status").bearer(&TOKEN[1..]),
        Ask::bare("GET", "/admin/status").header("authorization", &format!("Basic {TOKEN}")),
        Ask::bare("DELETE", "/admin/no/such/path?x=%00"),
    ];
    for ask in wrong {
        let answer = world.ask(&ask).await;
        assert_eq!(refusal(&answer), (401, "bridge_not_admin".to_owned()), "{ask:?}");
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
        assert!(!answer.text().contains(TOKEN));
    }
    assert_eq!(world.ask(&operator("GET", "/admin/status")).await.status, 200);
    // And the operators' token is no client's key.
    assert_eq!(world.ask(&Ask::turn("hello").bearer(TOKEN)).await.status, 401);
}

/// [EDGE-24] What the admin API refuses is told apart from a refused call.
#[tokio::test]
async fn refusals_say_at_which_door() {
    let world = setup().start().await;
    let door = || world.events("refused").last().unwrap()["door"].clone();
    let bare = operator("GET", "/admin/status").without("authorization");
    assert_eq!(world.ask(&bare).await.status, 401);
    assert_eq!(door(), "operators");
    assert_eq!(world.ask(&operator("POST", "/admin/status")).await.status, 405);
    assert_eq!(door(), "operators");
    assert_eq!(
        world
            .ask(&Ask::turn("hello").without("authorization"))
            .await
            .status,
        401
    );
    assert_eq!(door(), "clients");
}

/// [ADM-4] Wrong tokens are told to wait; the right one never is.
#[tokio::test]
async fn wrong_tokens_are_told_to_wait() {
    let world = setup().start().await;
    let mut refused = Vec::new();
    for number in 0..30 {
        let answer = world
            .ask(&Ask::bare("GET", "/admin/status").bearer(&format!("wrong-{number}")))
            .await;
        if answer.status == 429 {
            assert_eq!(answer.headers["retry-after"], "1");
        }
        refused.push(answer.status);
    }
    assert_eq!(refused[..10], [401; 10]);
    assert!(refused[10..].contains(&429), "{refused:?}");
    for path in ["/admin/status", "/metrics"] {
        let bare = operator("GET", path).without("authorization");
        assert_eq!(world.ask(&bare).await.status, 401, "{path}: nothing was guessed");
        let wrong = Ask::bare("GET", path).bearer("wrong");
        let wrong = (world.ask(&wrong).await.status, world.ask(&wrong).await.status);
        assert!(wrong.0 == 429 || wrong.1 == 429, "{path}: {wrong:?}");
    }
    assert_eq!(world.ask(&operator("GET", "/admin/status")).await.status, 200);
}

/// [ADM-2] Two credentials are none: the right one lets nobody in beside another, in whichever order, nor twice, nor in one line.
#[tokio::test]
async fn two_credentials_are_none() {
    let right = format!("Bearer {TOKEN}");
    let (wrong, both) = (
        "Bearer wrong-0123456789".to_owned(),
        format!("Bearer wrong-0123456789, {right}"),
    );
    let (basic, turned) = (
        format!("Basic {TOKEN}"),
        format!("{right}, Bearer wrong-0123456789"),
    );
    let tricks = [
        vec![&right, &wrong],
        vec![&wrong, &right],
        vec![&right, &right],
        vec![&right, &basic],
        vec![&basic, &right],
        vec![&both],
        vec![&turned],
    ];
    for line in ["GET /admin/status", "PUT /admin/drain", "GET /metrics"] {
        // A bridge of its own, so that none is told to wait instead.
        let world = setup().start().await;
        for trick in &tricks {
            let headers: Vec<_> = trick
                .iter()
                .map(|value| ("authorization", value.as_str()))
                .collect();
            let body = if line.starts_with("PUT") {
                "{\"draining\":true}"
            } else {
                ""
            };
            let said = say(world.address, &request(line, &headers, body)).await;
            assert_eq!(
                (said.status, said.code().as_str()),
                (401, "bridge_not_admin"),
                "{line} {trick:?}"
            );
            assert!(!said.body.contains(TOKEN));
        }
        // One is enough, and is still taken.
        let one = [("authorization", right.as_str())];
        assert_eq!(
            say(world.address, &request("GET /admin/status", &one, ""))
                .await
                .status,
            200
        );
        assert!(world.events("operator_action").is_empty(), "{line}");
    }
}

/// [ADM-4] Once wrong tokens are told to wait, another place's are too: there is one limit for all. The right token is taken from
/// either place all the while, and taking it gives no wrong one its patience back.
#[tokio::test]
async fn the_right_token_is_taken_from_everywhere() {
    let world = setup().start().await;
    let (here, there) = (Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2));
    let ask = |token: &str| {
        let bearer = format!("Bearer {token}");
        request("GET /admin/status", &[("authorization", &bearer)], "")
    };
    // Two in a row: at most one of them can have been given back meanwhile.
    let is_told_to_wait = async |from: Ipv4Addr| {
        let said = [
            say_from(from, world.address, &ask("wrong")).await,
            say_from(from, world.address, &ask("wrong")).await,
        ];
        let mut told = said.iter().filter(|said| said.status == 429);
        assert!(told.all(|said| said.header("retry-after") == Some("1")));
        said.iter().any(|said| said.status == 429)
    };
    for _ in 0..20 {
        say_from(here, world.address, &ask("wrong")).await;
    }
    for _ in 0..20 {
        assert!(is_told_to_wait(here).await);
        assert!(is_told_to_wait(there).await);
        for from in [here, there] {
            let said = say_from(from, world.address, &ask(TOKEN)).await;
            assert_eq!(said.status, 200, "{from}: {said:?}");
        }
    }
    // By the page's form too.
    let form = format!("token={TOKEN}");
    let headers = [
        ("origin", "http://localhost"),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    let login = request("POST /admin/ui/login", &headers, &form);
    assert_eq!(say_from(there, world.address, &login).await.status, 303);
    assert!(is_told_to_wait(there).await);
}

/// [ADM-3] [ADM-8] Answers have one shape, refusals come from the one table, and what is wrong with a request is said without quoting it.
#[tokio::test]
async fn answers_have_one_shape() {
    let world = setup().start().await;
    let answer = world.ask(&operator("GET", "/admin/sessions")).await;
    let body = answer.json();
    assert!(
        body["at_ms"].is_u64() && body["data"].is_array() && body["total"] == 0,
        "{body}"
    );
    assert_eq!(answer.headers["cache-control"], "no-store");
    let script = "%3Cscript%3Ealert(1)";
    let sql = "1%27%3B%20DROP%20TABLE%20journal%3B--";
    let bad = [
        ("GET", format!("/admin/sessions?limit={script}"), 400),
        ("GET", format!("/admin/sessions?limit={sql}"), 400),
        ("GET", "/admin/sessions?limit=1&limit=2".to_owned(), 400),
        ("GET", "/admin/sessions?nonsense=1".to_owned(), 400),
        ("GET", "/admin/events?kind=r%3Ffused".to_owned(), 400),
        ("GET", "/admin/sessions?account=%zz".to_owned(), 400),
        ("GET", "/admin/sessions?account=%00".to_owned(), 400),
        ("DELETE", format!("/admin/sessions/{sql}"), 400),
        ("DELETE", "/admin/sessions/1".to_owned(), 404),
        ("DELETE", "/admin/quarantine/0123456789ab".to_owned(), 404),
        ("DELETE", format!("/admin/quarantine/{script}"), 400),
        ("GET", format!("/admin/owners/{script}"), 400),
        ("GET", "/admin/nowhere".to_owned(), 404),
        ("POST", "/admin/sessions".to_owned(), 405),
        ("DELETE", "/admin/breakers/openai/nobody".to_owned(), 404),
    ];
    for (method, path, status) in bad {
        let answer = world.ask(&operator(method, &path)).await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        let text = answer.text();
        assert!(
            !text.contains("<script") && !text.contains("DROP"),
            "{path}: {text}"
        );
        assert!(
            answer.json()["error"]["code"]
                .as_str()
                .unwrap()
                .starts_with("bridge_"),
            "{path}"
        );
    }
    // [ADM-14]
    let unknown = world
        .ask(&operator("DELETE", "/admin/quarantine/0123456789ab"))
        .await;
    let said = unknown.text();
    assert!(
        said.contains("not in quarantine") && said.contains("quarantine ls"),
        "{said}"
    );
    let answer = world.ask(&operator("POST", "/admin/sessions")).await;
    assert!(answer.headers["allow"].contains("GET"), "{answer:?}");
    assert_eq!(
        world.ask(&operator("OPTIONS", "/admin/sessions")).await.status,
        204
    );
    let long = format!("/admin/sessions?account={}", "a".repeat(200_000));
    assert!((400..=431).contains(&world.ask(&operator("GET", &long)).await.status));
    let huge = operator("PUT", "/admin/drain").with("draining", "x".repeat(70_000));
    assert_eq!(world.ask(&huge).await.status, 413);
    let wrong = operator("PUT", "/admin/drain").with("drain", true);
    assert_eq!(world.ask(&wrong).await.status, 400);
    // Nothing was changed, so nothing was told.
    assert!(world.events("operator_action").is_empty());
}

/// [ADM-5] [ADM-34] A page of another origin is kept out, one of the bridge's own is not.
#[tokio::test]
async fn only_its_own_pages() {
    let world = setup().start().await;
    // As the client's own Host says.
    let own = "http://localhost".to_owned();
    let ask = |origin: &str| operator("GET", "/admin/status").header("origin", origin);
    assert_eq!(world.ask(&ask(&own)).await.status, 200);
    for foreign in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "http://localhost:80",
    ] {
        assert_eq!(world.ask(&ask(foreign)).await.status, 403, "{foreign}");
    }
    // What contradicts it is not its own either (ADM-34).
    for (site, status) in [("same-origin", 200), ("none", 403), ("same-site", 403)] {
        let ask = ask(&own).header("sec-fetch-site", site);
        assert_eq!(world.ask(&ask).await.status, status, "{site}");
    }
    let turn = Ask::turn("hello").header("origin", &own);
    assert_eq!(
        world.ask(&turn).await.status,
        403,
        "the exemption is the admin API's alone"
    );
}

/// [ADM-6] [ADM-16] [HLT-2] [HLT-7] A drain by an operator: new turns are refused, the process stays and is not ready; off again all is as before.
/// Each is told with who did it.
#[tokio::test]
async fn drain_on_and_off() {
    let world = setup().start().await;
    let set = |on: bool, by: &str| {
        operator("PUT", "/admin/drain")
            .with("draining", on)
            .header("x-operator", by)
    };
    let metric = async || {
        let scrape = world.ask(&operator("GET", "/metrics")).await;
        let line = |line: &&str| line.starts_with("bridge_ready ");
        scrape.text().lines().find(line).unwrap().to_owned()
    };
    assert_eq!(metric().await, "bridge_ready 1");
    assert_eq!(world.ask(&set(true, "ann@ops")).await.status, 200);
    assert_eq!(metric().await, "bridge_ready 0");
    let refused = world.ask(&Ask::turn("hello")).await;
    assert_eq!(refused.status, 503);
    assert!(refused.headers.contains_key("retry-after"));
    let told = refused.text();
    assert!(
        told.contains("takes no new turns for now: an operator drained it"),
        "{told}"
    );
    assert_eq!(world.ask(&Ask::bare("GET", "/health/ready")).await.status, 503);
    assert_eq!(world.ask(&Ask::bare("GET", "/health/live")).await.status, 200);
    assert_eq!(data(&world, "/admin/drain").await["draining"], true);
    assert_eq!(world.ask(&set(false, "<b>nobody</b>")).await.status, 200);
    assert_eq!(metric().await, "bridge_ready 1");
    world.ask(&Ask::turn("hello")).await.completed();
    let told = world.events("operator_action");
    let told: Vec<_> = told.iter().map(|line| (&line["reason"], &line["by"])).collect();
    assert_eq!(
        told,
        [
            (&json!("drain_on"), &json!("ann@ops")),
            (&json!("drain_off"), &json!("token"))
        ]
    );
}
