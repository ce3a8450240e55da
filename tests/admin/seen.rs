//! What operators see, and what they do to it.

use serde_json::{Value, json};

use crate::client::Ask;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{TOKEN, data, operator, setup};

/// Waits until a list is as wanted.
async fn until(world: &crate::World, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let until = tokio::time::Instant::now() + crate::client::MOMENT;
    loop {
        let seen = data(world, path).await;
        if wanted(&seen) {
            return seen;
        }
        assert!(tokio::time::Instant::now() < until, "{path}: {seen}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// [ADM-9] [ADM-10] [ADM-11] [ADM-12] [ADM-18] A turn, its session and its account are seen while it runs; its session, closed, lets it finish
/// and takes no other.
#[tokio::test]
async fn a_turn_and_its_session_are_seen() {
    let world = setup().start().await;
    let mut reply = world
        .open(
            &Ask::turn("sim:pause(after=1, for=2s)")
                .thread("t")
                .header("x-request-id", "seen-1"),
        )
        .await;
    reply.until("response.created").await;
    let turns = until(&world, "/admin/turns", |turns| turns[0]["phase"] == "accepted").await;
    let turn = &turns[0];
    assert_eq!(
        (&turn["request_id"], &turn["model"]),
        (&json!("seen-1"), &json!("gpt-5"))
    );
    assert_eq!(
        (&turn["account"], &turn["transport"]),
        (&json!("openai/main"), &json!("websocket"))
    );
    let sessions = data(&world, "/admin/sessions").await;
    let session = &sessions[0];
    assert_eq!(
        (&session["state"], &session["account"]),
        (&json!("busy"), &json!("openai/main"))
    );
    assert_eq!(session["key"], turn["key"]);
    let accounts = data(&world, "/admin/accounts").await;
    let main = accounts
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["provider"] == "openai")
        .unwrap();
    assert!(main["in_flight"] == 1 && main["sessions"] == 1, "{main}");
    assert_eq!(data(&world, "/admin/queues").await, json!([]));
    let close = operator("DELETE", &format!("/admin/sessions/{}", session["session"]));
    assert_eq!(world.ask(&close).await.status, 200);
    let answer = reply.finish().await;
    answer.completed();
    until(&world, "/admin/sessions", |sessions| *sessions == json!([])).await;
    until(&world, "/admin/turns", |turns| *turns == json!([])).await;
    world.saw("operator_action", 1).await;
    assert_eq!(world.events("operator_action")[0]["reason"], "session_closed");
    let latency = data(&world, "/admin/latency").await;
    assert_eq!(latency["deadline_ms"], 60_000);
    assert_eq!(latency["websocket"]["total"], 1, "{latency}");
}

/// [ADM-13] [ADM-14] A silent session's key is seen in quarantine; cleared, it goes by session again; put there by hand, by HTTP.
#[tokio::test]
async fn a_key_is_cleared_and_added() {
    let world = setup()
        .config("[watchdog]\nresponse_created_deadline = \"300ms\"")
        .start()
        .await;
    let turn = |prompt: &str| Ask::turn(format!("sim:conv=q {prompt}")).thread("q");
    assert_eq!(world.ask(&turn("sim:silent(on=ws)")).await.status, 504);
    let listed = until(&world, "/admin/quarantine", |keys| keys[0]["state"] == "open").await;
    let key = listed[0]["key"].as_str().unwrap().to_owned();
    assert!(listed[0]["left_ms"].as_u64().unwrap() > 30_000, "{listed}");
    let path = format!("/admin/quarantine/{key}");
    assert_eq!(world.ask(&operator("DELETE", &path)).await.status, 200);
    world.ask(&turn("hello")).await.completed();
    assert!(world.sockets("q").last().unwrap().is_some(), "by session again");
    assert_eq!(
        world.ask(&operator("PUT", &path).with("for_s", 600)).await.status,
        200
    );
    world.ask(&turn("hello")).await.completed();
    assert_eq!(world.sockets("q").last().unwrap(), &None);
    assert_eq!(
        world.ask(&operator("DELETE", "/admin/quarantine")).await.status,
        200
    );
    world.saw("operator_action", 3).await;
    let told = world.events("operator_action");
    let told: Vec<_> = told.iter().map(|line| line["reason"].as_str().unwrap()).collect();
    assert_eq!(
        told,
        ["quarantine_cleared", "quarantine_added", "quarantine_cleared"]
    );
}

/// [ADM-6] [ADM-17] A sick transport, reset: its breaker is closed, who did it is told, and the next turn really goes by session.
#[tokio::test]
async fn a_breaker_is_reset() {
    let world = setup()
        .config("[watchdog]\nresponse_created_deadline = \"300ms\"")
        .start()
        .await;
    for thread in ["one", "two", "three"] {
        let silent = Ask::turn("sim:silent(on=ws)").thread(thread);
        assert_eq!(world.ask(&silent).await.status, 504);
    }
    world.saw("breaker_changed", 1).await;
    let of = |breakers: &Value| {
        let all = breakers.as_array().unwrap();
        let main = all.iter().find(|one| one["provider"] == "openai").unwrap();
        main.clone()
    };
    let before = of(&data(&world, "/admin/breakers").await);
    assert_eq!(before["state"], "open", "{before}");
    assert!(before["left_ms"].as_u64().unwrap() > 30_000, "{before}");
    world
        .ask(&Ask::turn("sim:conv=before hello").thread("before"))
        .await
        .completed();
    assert_eq!(world.sockets("before"), [None]);
    let reset = operator("DELETE", "/admin/breakers/openai/main").header("x-operator", "ann@ops");
    let answer = world.ask(&reset).await;
    assert_eq!((answer.status, &answer.json()["data"]["done"]), (200, &json!(1)));
    let after = of(&data(&world, "/admin/breakers").await);
    assert_eq!(
        (&after["state"], &after["left_ms"]),
        (&json!("closed"), &Value::Null)
    );
    world
        .ask(&Ask::turn("sim:conv=after hello").thread("after"))
        .await
        .completed();
    assert!(world.sockets("after")[0].is_some(), "by session again");
    let told = world.events("operator_action");
    assert_eq!(told.len(), 1, "{told:?}");
    for (name, value) in [
        ("reason", json!("breaker_reset")),
        ("by", json!("ann@ops")),
        ("provider", json!("openai")),
        ("account", json!("main")),
        ("count", json!(1)),
    ] {
        assert_eq!(told[0][name], value, "{}", told[0]);
    }
    let changes = world.events("breaker_changed");
    assert_eq!(changes.last().unwrap()["reason"], "closed", "{changes:?}");
    // One that is not there changes nothing, and is told as such.
    let nobody = operator("DELETE", "/admin/breakers/openai/nobody");
    assert_eq!(world.ask(&nobody).await.status, 404);
    assert_eq!(world.events("operator_action").len(), 1);
}

/// [ADM-15] [ADM-19] A response is found by its id; the configuration in force is shown without a secret.
#[tokio::test]
async fn owners_and_configuration() {
    let world = setup()
        .config("[[clients]]\nname = \"laptop\"\nkey = { env = \"LAPTOP\" }\n[providers.openai]\nbase_url = \"{openai}\"\n[[providers.openai.accounts]]\nname = \"main\"\ncredential = { env = \"UPSTREAM\" }")
        .secret("LAPTOP", "laptop-key-0123456789")
        .secret("UPSTREAM", "sk-upstream-0123")
        .start()
        .await;
    let answer = world
        .ask(&Ask::turn("hello").bearer("laptop-key-0123456789"))
        .await;
    answer.completed();
    let found = data(&world, &format!("/admin/owners/{}", answer.id())).await;
    assert_eq!(
        (&found["owners"][0]["account"], &found["owners"][0]["client"]),
        (&json!("openai/main"), &json!("laptop"))
    );
    let unknown = world.ask(&operator("GET", "/admin/owners/resp_nobody")).await;
    assert_eq!(unknown.status, 404);
    let shown = world.ask(&operator("GET", "/admin/config")).await;
    assert_eq!(
        shown.json()["data"]["watchdog"]["response_created_deadline"],
        "60s"
    );
    for secret in [TOKEN, "laptop-key-0123456789", "sk-upstream-0123"] {
        assert!(!shown.text().contains(secret));
    }
}

/// [HLT-5] [ADM-17] [ADM-20] Every check, every breaker, and the events as they come.
#[tokio::test]
async fn checks_breakers_and_events() {
    let world = setup().start().await;
    // The first look comes within a second.
    let health = until(&world, "/admin/health", |health| health["checks"][0].is_object()).await;
    let checks: Vec<_> = health["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    for check in [
        "runtime", "accounts", "store", "journal", "clock", "listener", "config",
    ] {
        assert!(checks.contains(&check), "{check}: {checks:?}");
    }
    let breakers = data(&world, "/admin/breakers").await;
    assert_eq!(breakers[0]["state"], "closed", "{breakers}");
    let mut stream = tokio::net::TcpStream::connect(world.address).await.unwrap();
    let ask = format!(
        "GET /admin/events?kind=turn_* HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\n\r\n",
        world.address
    );
    stream.write_all(ask.as_bytes()).await.unwrap();
    world
        .ask(&Ask::turn("hello").header("x-request-id", "stream-1"))
        .await
        .completed();
    let mut text = String::new();
    let reading = async {
        let mut some = [0; 4096];
        while !text.contains("stream-1") {
            let read = stream.read(&mut some).await.unwrap();
            assert!(read > 0, "{text}");
            text.push_str(std::str::from_utf8(&some[..read]).unwrap());
        }
    };
    tokio::time::timeout(crate::client::MOMENT, reading)
        .await
        .expect("an event");
    assert!(
        text.contains("text/event-stream") && text.contains("event: turn_finished\ndata: {"),
        "{text}"
    );
}
