//! What a probe is told when accounts or the disk fail, and when they are well again.

use std::time::Duration;

use responses_bridge::simulator::Script;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::client::{Ask, MOMENT};
use crate::raw::{Said, request, say};
use crate::world::World;
use crate::{data, setup};

async fn probe(world: &World) -> Said {
    say(world.address, &request("GET /health/ready", &[], "")).await
}

/// Waits until readiness has this status, and shows the answer.
async fn becomes(world: &World, status: u16) -> Said {
    let until = tokio::time::Instant::now() + MOMENT;
    loop {
        let said = probe(world).await;
        if said.status == status {
            return said;
        }
        assert!(tokio::time::Instant::now() < until, "never {status}: {said:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn check(world: &World, name: &str) -> Value {
    let health = data(world, "/admin/health").await;
    let all = health["checks"].as_array().unwrap();
    let found = all.iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("{health}")).clone()
}

/// [HLT-3] [HLT-5] With one of two accounts excluded it is ready; with both it is not, until one is usable again. The probe is told no
/// more than that; the operator, which check.
#[tokio::test]
async fn without_a_usable_account_it_is_not_ready() {
    let world = setup()
        .config(
            "[providers.openai]\nbase_url = \"{openai}\"\n[[providers.openai.accounts]]\nname = \"a\"\ncredential = { env = \"A\" }\n\
             [[providers.openai.accounts]]\nname = \"b\"\ncredential = { env = \"B\" }",
        )
        .secret("A", "sk-a")
        .secret("B", "sk-b")
        .start()
        .await;
    let refuses = |key: &str, wait: u64| {
        format!(
            "[[rule]]\nmatch = {{ header = {{ authorization = \"Bearer {key}\" }} }}\n\
             behave = \"error(shape=headers_top, status=429, retry_after={wait})\"\n"
        )
    };
    assert_eq!(becomes(&world, 200).await.body, "{\"status\":\"ready\"}");
    world
        .upstream
        .rescript(Script::parse(&refuses("sk-a", 600)).unwrap());
    world.ask(&Ask::turn("hello").thread("one")).await.completed();
    world.saw("cooldown_started", 1).await;
    // Two looks and more.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(probe(&world).await.status, 200, "b is usable");
    assert_eq!(check(&world, "accounts").await["state"], "warn");
    let both = refuses("sk-a", 600) + &refuses("sk-b", 5);
    world.upstream.rescript(Script::parse(&both).unwrap());
    assert_eq!(world.ask(&Ask::turn("hello").thread("two")).await.status, 429);
    let said = becomes(&world, 503).await;
    assert_eq!(said.body, "{\"status\":\"not ready\"}");
    assert_eq!(said.header("retry-after"), Some("1"));
    let accounts = check(&world, "accounts").await;
    assert_eq!(
        (&accounts["state"], &accounts["value"]),
        (&json!("fail"), &json!("0 of 2 usable"))
    );
    let shown = data(&world, "/admin/accounts").await;
    for account in shown.as_array().unwrap() {
        assert_eq!(account["excluded"]["reason"], "rate_limit", "{account}");
    }
    assert_eq!(
        say(world.address, &request("GET /health/live", &[], ""))
            .await
            .status,
        200
    );
    // b's limit is over; a's is not.
    becomes(&world, 200).await;
    assert_eq!(check(&world, "accounts").await["value"], "1 of 2 usable");
}

/// [ROUTE-13] [ADM-18] [HLT-3] [HLT-6] The only account's credential is rejected: it is tried all the same, and everything that an
/// operator looks at says so, until a turn is accepted.
#[tokio::test]
async fn the_only_credential_is_rejected() {
    let world = setup()
        .config(
            "[providers.openai]\nbase_url = \"{openai}\"\n[[providers.openai.accounts]]\nname = \"a\"\ncredential = { env = \"A\" }",
        )
        .secret("A", "sk-a")
        .start()
        .await;
    let refuses = "[[rule]]\nbehave = \"error(status=401)\"\n";
    world.upstream.rescript(Script::parse(refuses).unwrap());
    for key in ["one", "two", "three"] {
        assert_eq!(world.ask(&Ask::turn("hello").thread(key)).await.status, 401);
    }
    world.saw("credential_rejected", 3).await;
    let shown = data(&world, "/admin/accounts").await;
    assert_eq!(
        (
            &shown[0]["credential"],
            &shown[0]["credential_ok"],
            &shown[0]["excluded"]
        ),
        (&json!("rejected"), &json!(false), &Value::Null)
    );
    accounts_become(&world, "fail", "0 of 1 usable; 1 with a rejected credential").await;
    assert_eq!(probe(&world).await.status, 200, "it is tried");
    world.upstream.rescript(Script::default());
    world.ask(&Ask::turn("hello").thread("one")).await.completed();
    let shown = data(&world, "/admin/accounts").await;
    assert_eq!(
        (&shown[0]["credential"], &shown[0]["credential_ok"]),
        (&json!("ok"), &json!(true))
    );
    accounts_become(&world, "ok", "1 of 1 usable").await;
}

/// [ROUTE-13] [HLT-6] The only account cannot be reached: how often in a row is told, and nothing is left out.
#[tokio::test]
async fn the_only_upstream_is_not_reached() {
    // A port that nobody listens on: its listener is gone.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let world = setup()
        .config(&format!(
            "[providers.openai]\nbase_url = \"http://{nobody}/v1\"\naccounts = [{{ name = \"a\", credential = \"client\" }}]"
        ))
        .start()
        .await;
    for failed in 1..=3 {
        let answer = world.ask(&Ask::turn("hello").thread("one")).await;
        assert_eq!(answer.status, 502);
        let shown = data(&world, "/admin/accounts").await;
        assert_eq!(shown[0]["failed_connects"], failed);
    }
    accounts_become(&world, "warn", "1 of 1 usable; 1 not reached").await;
    assert_eq!(probe(&world).await.status, 200);
}

/// Waits until the check of the accounts has this state, and then says this.
async fn accounts_become(world: &World, state: &str, value: &str) {
    let until = tokio::time::Instant::now() + MOMENT;
    loop {
        let accounts = check(world, "accounts").await;
        if accounts["state"] == state {
            assert_eq!(accounts["value"], value);
            return;
        }
        assert!(tokio::time::Instant::now() < until, "{accounts}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// [HLT-4] [HLT-5] A store that cannot be written for a minute makes it not ready, by the monotonic clock; a moment before it was, and when
/// the store has recovered it is again.
#[tokio::test]
async fn a_store_that_cannot_be_written_for_a_minute() {
    let world = setup().start().await;
    world.ask(&Ask::turn("hello").thread("before")).await.completed();
    let thief = Connection::open(world.state.path().join("state.db")).unwrap();
    thief.busy_timeout(MOMENT).unwrap();
    thief.execute_batch("BEGIN IMMEDIATE").unwrap();
    world.ask(&Ask::turn("hello").thread("held")).await.completed();
    world.saw("store_degraded", 1).await;
    becomes_checked(&world, "warn").await;
    // A step of the wall clock is not time (INV-10).
    world.app.step_clock(3600);
    world.saw("clock_stepped", 1).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(probe(&world).await.status, 200);
    pass(Duration::from_secs(30)).await;
    becomes_checked(&world, "warn").await;
    assert_eq!(probe(&world).await.status, 200, "not yet a minute");
    pass(Duration::from_secs(31)).await;
    assert_eq!(becomes(&world, 503).await.body, "{\"status\":\"not ready\"}");
    let store = check(&world, "store").await;
    assert_eq!(store["state"], "fail");
    assert!(
        store["value"].as_str().unwrap().starts_with("locked for "),
        "{store}"
    );
    assert_eq!(
        say(world.address, &request("GET /health/live", &[], ""))
            .await
            .status,
        200
    );
    // It serves all the same.
    world.ask(&Ask::turn("hello").thread("served")).await.completed();
    thief.execute_batch("ROLLBACK").unwrap();
    becomes(&world, 200).await;
    assert_eq!(check(&world, "store").await["state"], "ok");
}

/// Waits until the store's check, as it is looked at, has this state.
async fn becomes_checked(world: &World, state: &str) {
    let until = tokio::time::Instant::now() + MOMENT;
    while check(world, "store").await["state"] != state {
        assert!(tokio::time::Instant::now() < until, "never {state}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Lets so much of the bridge's time pass at once.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}
