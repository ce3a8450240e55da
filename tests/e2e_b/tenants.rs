//! Tenants that try each other's keys, sessions and response ids.

use serde_json::json;

use crate::client::Ask;
use crate::shared::{metric, post, under_way};
use crate::world::{Setup, World};

/// Two client keys that the bridge checks; one account of its own behind them.
const SHARED: &str = r#"
[[clients]]
name = "alice"
key = { env = "ALICE" }
[[clients]]
name = "bob"
key = { env = "BOB" }

[providers.openai]
base_url = "{openai}"
[[providers.openai.accounts]]
name = "main"
credential = { env = "ACCOUNT" }
"#;

async fn shared_account() -> World {
    let setup = Setup::new().config(SHARED);
    let setup = setup.secret("ALICE", "key-alice").secret("BOB", "key-bob");
    setup.secret("ACCOUNT", "sk-account").start().await
}

fn as_(who: &str, prompt: &str) -> Ask {
    Ask::turn(prompt).bearer(&format!("key-{who}")).thread("same")
}

/// [KEY-1] The same key of two callers with credentials of their own: two sockets, each with its caller's credential, and
/// neither's turn waits for, or is seen by, the other's. Every header that tells tenants apart does.
#[tokio::test]
async fn the_same_key_of_two_credentials() {
    let world = Setup::new().config("[session]\nmax_per_key = 1").start().await;
    let one = || Ask::turn("").bearer("sk-one");
    let callers = [
        (one(), "sk-one"),
        (Ask::turn("").bearer("sk-two"), "sk-two"),
        (one().header("openai-organization", "org"), "sk-one"),
        (one().header("openai-project", "project"), "sk-one"),
        (one().header("api-key", "sk-two"), "sk-one"),
        (one().header("x-api-key", "sk-two"), "sk-one"),
        (Ask::turn("").bearer("sk-one, sk-two"), "sk-one, sk-two"),
    ];
    let mut running = Vec::new();
    for (number, (caller, _)) in callers.iter().enumerate() {
        for key in [caller.clone().thread("same"), caller.clone()] {
            let prompt = format!("sim:conv=c{number} sim:pause(after=1, for=ever)");
            running.push(under_way(&world, &key.with("input", prompt)).await);
        }
    }
    let ledger = world.upstream.ledger();
    assert_eq!(
        ledger.sockets_opened, 14,
        "keyed and keyless, every caller has sockets of its own"
    );
    for (number, (_, token)) in callers.iter().enumerate() {
        let conversation = format!("c{number}");
        for create in ledger.creates_of(&conversation) {
            let socket = ledger
                .sockets
                .iter()
                .find(|socket| Some(socket.number) == create.socket)
                .unwrap();
            let wanted = responses_bridge::simulator::credential_hash(&format!("Bearer {token}"));
            assert_eq!(socket.headers["authorization"], wanted, "{number}");
        }
    }
}

/// [KEY-11] [INV-6] A response id of another credential's is unknown here, and is looked for with the asker's own credential
/// only: upstream's own not-found is the answer, and the maker's socket is not touched.
#[tokio::test]
async fn another_credentials_response_is_unknown() {
    let world = Setup::new().start().await;
    let mine = world
        .ask(&Ask::turn("sim:conv=a secret").bearer("sk-one").thread("same"))
        .await
        .id();
    let unstored = Ask::turn("sim:conv=b secret")
        .bearer("sk-one")
        .thread("other")
        .with("store", false);
    let unstored = world.ask(&unstored).await.id();
    for id in [&mine, &unstored] {
        let stolen = Ask::turn("sim:conv=thief more")
            .bearer("sk-two")
            .thread("same")
            .after(id);
        let answer = world.ask(&stolen).await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (400, "previous_response_not_found")
        );
        for (method, tail) in [
            ("GET", ""),
            ("GET", "/input_items"),
            ("DELETE", ""),
            ("POST", "/cancel"),
        ] {
            let ask = Ask::bare(method, format!("/v1/responses/{id}{tail}")).bearer("sk-two");
            assert_eq!(world.ask(&ask).await.status, 404, "{method} {tail}");
        }
    }
    // Untouched for their maker.
    let next = Ask::turn("sim:conv=a more")
        .bearer("sk-one")
        .thread("same")
        .after(&mine);
    world.ask(&next).await.completed();
    let next = Ask::turn("sim:conv=b more")
        .bearer("sk-one")
        .thread("other")
        .with("store", false)
        .after(&unstored);
    world.ask(&next).await.completed();
    let found = world
        .ask(&Ask::bare("GET", format!("/v1/responses/{mine}")).bearer("sk-one"))
        .await;
    assert_eq!(found.json()["id"], mine.as_str());
}

/// [HTTP-20] [KEY-11] [INV-6] Two clients of one account: upstream would serve both, so the bridge alone keeps them apart. A stranger's
/// response id is refused before anything is sent, in whatever request it stands.
#[tokio::test]
async fn clients_of_one_account_do_not_reach_each_others_responses() {
    let world = shared_account().await;
    let mine = world.ask(&as_("alice", "sim:conv=a secret")).await.id();
    let unstored = world
        .ask(&as_("alice", "sim:conv=b secret").with("store", false))
        .await
        .id();
    let (creates, requests) = world
        .upstream
        .look(|ledger| (ledger.creates_total, ledger.http_requests));
    for id in [mine.as_str(), unstored.as_str(), "resp_of_nobody"] {
        for ask in [
            as_("bob", "steal"),
            as_("bob", "steal").json(),
            as_("bob", "steal").thread("elsewhere"),
        ] {
            let answer = world.ask(&ask.after(id)).await;
            assert_eq!(
                (answer.status, answer.error().as_str()),
                (400, "previous_response_not_found")
            );
            assert_eq!(answer.json()["error"]["param"], "previous_response_id");
        }
        for (method, tail) in [
            ("GET", ""),
            ("GET", "?stream=true"),
            ("GET", "/input_items"),
            ("DELETE", ""),
            ("POST", "/cancel"),
        ] {
            let ask = Ask::bare(method, format!("/v1/responses/{id}{tail}")).bearer("key-bob");
            let answer = world.ask(&ask).await;
            assert_eq!(
                (answer.status, answer.error().as_str()),
                (404, "bridge_unknown_response"),
                "{method} {tail}"
            );
        }
    }
    // Nor around the corner: by a path that means the same upstream, or in another request that names a response.
    for path in [
        "/v1/%72esponses/{id}",
        "/v1/RESPONSES/{id}",
        "/v1/responses;a=b/{id}",
        "/v1/x/../responses/{id}",
        "/v1/x/%2e%2e/responses/{id}",
        "/v1//responses/{id}",
        "/v1/responses/{id}/",
        "/v1/responses/{id}/other",
        "/v1/responses/{id}%2finput_items",
        "/backend-api/%63odex/responses/{id}",
        "/responses/{id}",
        "/openai/v1/responses/{id}",
        "/backend-api/codex/responses/{id}",
    ] {
        let ask = Ask::bare("GET", path.replace("{id}", &mine)).bearer("key-bob");
        assert_eq!(world.ask(&ask).await.status, 404, "{path}");
    }
    for path in ["/v1/responses/compact", "/v1/responses/input_tokens"] {
        let answer = world.ask(&as_("bob", "steal").after(&mine).to(path)).await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (400, "previous_response_not_found"),
            "{path}"
        );
    }
    let twice = format!(r#"{{"model":"gpt-5","previous_response_id":"{mine}","previous_response_id":null}}"#);
    for path in ["/v1/responses", "/v1/responses/compact"] {
        let answer = post(
            &world,
            path,
            &[("authorization", "Bearer key-bob")],
            twice.as_bytes(),
        )
        .await;
        assert_eq!(answer.0, 400, "{path}");
    }
    let after = world
        .upstream
        .look(|ledger| (ledger.creates_total, ledger.http_requests));
    assert_eq!(after, (creates, requests), "nothing was sent");
    for path in ["/v1/responses/compact", "/v1/responses/input_tokens"] {
        assert_eq!(
            world
                .ask(&as_("alice", "mine").after(&mine).to(path))
                .await
                .status,
            200,
            "{path}"
        );
    }
    world
        .ask(&as_("alice", "sim:conv=a more").after(&mine))
        .await
        .completed();
    let found = world
        .ask(&Ask::bare("GET", format!("/v1/responses/{mine}")).bearer("key-alice"))
        .await;
    assert_eq!(found.json()["id"], mine.as_str());
    // Deleted, it is forgotten here too.
    let gone = world
        .ask(&Ask::bare("DELETE", format!("/v1/responses/{mine}")).bearer("key-alice"))
        .await;
    assert_eq!(gone.status, 200);
    let answer = world.ask(&as_("alice", "more").after(&mine)).await;
    assert_eq!(answer.error(), "previous_response_not_found");
}

/// [KEY-1] [INV-5] Two clients of one account never share a socket, a queue or a quarantine, though key, account and upstream
/// credential are the same; and neither's own key is seen upstream.
#[tokio::test]
async fn clients_of_one_account_do_not_share_sessions() {
    let setup = Setup::new().config(SHARED).config(
        "[session]\nmax_per_key = 1\n[watchdog]\nresponse_created_deadline = \"200ms\"\n[quarantine]\nwindow = \"10s\"\nmax_window = \"10s\"",
    );
    let setup = setup
        .secret("ALICE", "key-alice")
        .secret("BOB", "key-bob")
        .secret("ACCOUNT", "sk-account");
    let world = setup.start().await;
    let (_alice, _) = under_way(&world, &as_("alice", "sim:conv=a sim:pause(after=1, for=ever)")).await;
    let (_bob, _) = under_way(&world, &as_("bob", "sim:conv=b sim:pause(after=1, for=ever)")).await;
    assert_ne!(world.sockets("a"), world.sockets("b"));
    let answer = world
        .ask(&as_("alice", "sim:conv=c sim:silent(on=ws)").thread("quarantined"))
        .await;
    assert_eq!(answer.status, 504);
    world
        .ask(&as_("alice", "sim:conv=c hello").thread("quarantined"))
        .await
        .completed();
    world
        .ask(&as_("bob", "sim:conv=d hello").thread("quarantined"))
        .await
        .completed();
    assert_eq!((world.creates("c").http, world.creates("d").websocket), (1, 1));
    for name in ["x-api-key", "api-key"] {
        let ask = Ask::turn("sim:conv=e hello")
            .header("authorization", "")
            .header(name, "key-alice");
        let ask = ask
            .header("openai-organization", "mine")
            .header("chatgpt-account-id", "mine");
        world.ask(&ask).await.completed();
        world.ask(&ask.to("/v1/embeddings")).await;
    }
    let wanted = responses_bridge::simulator::credential_hash("Bearer sk-account");
    let ledger = world.upstream.ledger();
    let creates = ledger.creates.iter().map(|create| &create.headers);
    for headers in creates.chain(ledger.requests.iter().map(|request| &request.headers)) {
        assert_eq!(headers["authorization"], wanted);
        for name in [
            "x-api-key",
            "api-key",
            "openai-organization",
            "chatgpt-account-id",
        ] {
            assert!(!headers.contains_key(name), "{name} went upstream");
        }
    }
    assert!(
        ledger
            .sockets
            .iter()
            .all(|socket| socket.headers["authorization"] == wanted)
    );
    let clients: Vec<_> = world
        .events("turn_finished")
        .iter()
        .map(|line| line["client"].clone())
        .collect();
    assert_eq!(clients, ["alice", "alice", "bob", "alice", "alice"]);
    assert_eq!(metric(&world, "bridge_quarantined_keys", "").await, 1.0);
}

/// [KEY-1] A key that is none: refused before anything is sent, with or without a known one beside it in another place.
#[tokio::test]
async fn an_unknown_key_is_refused() {
    let world = shared_account().await;
    for key in ["key-mallory", "key-alic", "key-alicee", "sk-account"] {
        let answer = world.ask(&Ask::turn("hello").bearer(key)).await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (401, "bridge_unknown_client_key")
        );
    }
    assert_eq!(world.upstream.ledger().creates_total, 0);
}

/// [KEY-11] row 42: the token is rotated in mid-conversation. The new one is a new tenant: a fresh socket with its own
/// credential, and the conversation's stored responses are asked for with it; upstream decides, and serves its owner.
#[tokio::test]
async fn a_rotated_token() {
    for accounts in ["one", "by_credential"] {
        let world = Setup::new()
            .script(&format!("accounts = \"{accounts}\""))
            .start()
            .await;
        let ask = |token: &str| {
            Ask::turn("sim:conv=a hello")
                .bearer(token)
                .header("session-id", "same")
        };
        let first = world.ask(&ask("old").with("store", true)).await.id();
        let answer = world.ask(&ask("new").after(&first)).await;
        let found = world
            .ask(&Ask::bare("GET", format!("/v1/responses/{first}")).bearer("new"))
            .await;
        if accounts == "one" {
            answer.completed();
            assert_eq!(found.json()["id"], first.as_str());
        } else {
            assert_eq!(
                (answer.status, answer.error().as_str()),
                (400, "previous_response_not_found")
            );
            assert_eq!(found.status, 404);
        }
        let sockets = world.sockets("a");
        assert!(sockets.len() < 2 || sockets[0] != sockets[1]);
        let full = world
            .ask(&ask("new").with(
                "input",
                json!([{"role": "user", "content": "sim:conv=a all of it"}]),
            ))
            .await;
        full.completed();
    }
}

/// [INV-6] With two accounts that both could have made it, an unknown response is refused: asking either would be a guess.
#[tokio::test]
async fn an_unknown_response_is_not_guessed() {
    let config = r#"
[providers.openai]
base_url = "{openai}"
[[providers.openai.accounts]]
name = "one"
credential = { env = "ACCOUNT" }
[[providers.openai.accounts]]
name = "two"
credential = { env = "ALICE" }
"#;
    let setup = Setup::new().config(config).secret("ALICE", "sk-other");
    let world = setup.secret("ACCOUNT", "sk-account").start().await;
    let answer = world.ask(&Ask::turn("hello").after("resp_unknown")).await;
    assert_eq!(
        (answer.status, answer.error().as_str()),
        (400, "previous_response_not_found")
    );
    let answer = world.ask(&Ask::bare("GET", "/v1/responses/resp_unknown")).await;
    assert_eq!(
        (answer.status, answer.error().as_str()),
        (404, "bridge_unknown_response")
    );
    assert_eq!(
        world
            .upstream
            .look(|ledger| ledger.http_requests + ledger.sockets_opened),
        0
    );
    let mine = world.ask(&Ask::turn("sim:conv=a hello")).await.id();
    world
        .ask(&Ask::turn("sim:conv=a more").after(&mine))
        .await
        .completed();
}
