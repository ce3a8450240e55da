//! Turns and sessions while the configuration changes.

use std::time::Duration;

use responses_bridge::config::{Strategy, Transport, Unknown};

use crate::client::Ask;
use crate::shared::{HTTP_ONLY, changed, turn, under_way};
use crate::world::{Setup, World, eventually};

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);

/// [REL-10] A silent turn trips at the deadline of its start, although the reload raised it; the next one by the new one,
/// and the one after the next reload by that.
#[tokio::test]
async fn a_silent_turn_keeps_its_deadline() {
    let config = "[watchdog]\nresponse_created_deadline = \"1s\"";
    let world = Setup::new().config(config).start().await;
    let ask = turn("first", "sim:silent(on=ws)");
    let first = world.ask(&ask);
    let address = world.address;
    let second = async {
        world
            .upstream_saw("the first", |ledger| ledger.conversation("first").total() == 1)
            .await;
        let key = "watchdog.response_created_deadline";
        changed(
            &world,
            |config| config.watchdog.response_created_deadline = 200 * S,
            &[key],
        );
        let ask = turn("second", "sim:silent(on=ws)");
        let second = tokio::spawn(async move { ask.ask(address).await });
        world
            .upstream_saw("the second", |ledger| ledger.conversation("second").total() == 1)
            .await;
        second
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.error(), "bridge_response_created_timeout");
    let tripped = world.events("response_created_timeout");
    let waited = tripped[0]["waited_ms"].as_u64().unwrap();
    assert!((1000..10_000).contains(&waited), "{waited}");
    // The first one's time is over once more.
    tokio::time::sleep(1500 * MS).await;
    assert!(!second.is_finished(), "the deadline of the second is the new one");
    assert_eq!(world.events("response_created_timeout").len(), 1);
    let key = "watchdog.response_created_deadline";
    changed(
        &world,
        |config| config.watchdog.response_created_deadline = 300 * MS,
        &[key],
    );
    let third = world.ask(&turn("third", "sim:silent(on=ws)")).await;
    assert_eq!(third.error(), "bridge_response_created_timeout");
    assert!(!second.is_finished(), "it keeps what it began with");
    second.abort();
}

/// [REL-10] The same by direct HTTP, after acceptance.
#[tokio::test]
async fn a_direct_turn_keeps_its_deadline() {
    let setup = Setup::new()
        .config("[http]\nbetween_events = \"1s\"")
        .config(HTTP_ONLY);
    let world = setup.start().await;
    let first = under_way(&world, &turn("first", "sim:pause(after=1, for=ever)")).await;
    changed(
        &world,
        |config| config.http.between_events = 600 * S,
        &["http.between_events"],
    );
    let second = under_way(&world, &turn("second", "sim:pause(after=1, for=2500ms)")).await;
    assert_eq!(first.finish().await.failure(), "bridge_idle_timeout");
    second.finish().await.completed();
}

/// [REL-10] A call that waits for a session waits for as long as it would have, and the next one as is said now.
#[tokio::test]
async fn a_waiting_call_keeps_its_patience() {
    let config = "[session]\nqueue_wait = \"60s\"\nmax_per_key = 1";
    let world = Setup::new().config(config).start().await;
    let busy = under_way(&world, &turn("one", "sim:pause(after=1, for=ever, on=ws)")).await;
    let ask = Ask::turn("sim:conv=waits hello").thread("one");
    let address = world.address;
    let waits = tokio::spawn(async move { ask.ask(address).await });
    world.gauge_is("bridge_queue_depth", "", 1).await;
    changed(
        &world,
        |config| config.session.queue_wait = Duration::ZERO,
        &["session.queue_wait"],
    );
    let next = world.ask(&Ask::turn("sim:conv=next hello").thread("one")).await;
    next.completed();
    assert_eq!(world.sockets("next"), [None], "by direct HTTP, at once");
    assert!(!waits.is_finished());
    drop(busy);
    waits.await.unwrap().completed();
    assert!(world.sockets("waits")[0].is_some());
}

/// [REL-11] Idle sessions outlive a change that is none of theirs, and the next turn takes them; one that makes them too idle or
/// too old closes them at once, and those at work after their turn.
#[tokio::test]
async fn open_sessions() {
    let world = Setup::new().config("[session]\nmax_per_key = 1").start().await;
    for conversation in ["idle", "busy"] {
        world.ask(&turn(conversation, "")).await.completed();
    }
    changed(
        &world,
        |config| config.watchdog.idle_deadline = 600 * S,
        &["watchdog.idle_deadline"],
    );
    changed(
        &world,
        |config| config.session.idle_ttl = 600 * S,
        &["session.idle_ttl"],
    );
    world.ask(&turn("idle", "")).await.completed();
    let sockets = world.sockets("idle");
    assert!(sockets[0].is_some() && sockets[0] == sockets[1], "{sockets:?}");

    let busy = under_way(&world, &turn("busy", "sim:pause(after=1, for=700ms)")).await;
    changed(
        &world,
        |config| config.session.max_age = 300 * MS,
        &["session.max_age"],
    );
    eventually("the idle one is closed", || {
        world.events("session_rotated").len() == 1
    })
    .await;
    busy.finish().await.completed();
    eventually("the busy one too", || world.events("session_rotated").len() == 2).await;
    world
        .upstream_saw("no socket", |ledger| ledger.sockets_open == 0)
        .await;
    let sockets = world.sockets("busy");
    assert!(
        sockets[0] == sockets[1],
        "its turn was not disturbed: {sockets:?}"
    );

    changed(
        &world,
        |config| config.session.max_age = 600 * S,
        &["session.max_age"],
    );
    world.ask(&turn("idle", "")).await.completed();
    changed(
        &world,
        |config| config.session.idle_ttl = 10 * MS,
        &["session.idle_ttl"],
    );
    world.saw("session_retired", 1).await;
    assert_eq!(world.events("session_retired")[0]["reason"], "idle_ttl");
}

/// [REL-11] An account's own `max_age` wins over the session's, and is live as well.
#[tokio::test]
async fn a_providers_own_age() {
    let world = Setup::new().start().await;
    world.ask(&turn("one", "")).await.completed();
    changed(
        &world,
        |config| config.providers[1].max_age = Some(10 * MS),
        &["providers.openai.max_age"],
    );
    eventually("it is too old", || world.events("session_rotated").len() == 1).await;
}

/// [REL-12] Smaller caps close idle sessions, the longest idle first, and none at work; larger ones let turns in that wait.
#[tokio::test]
async fn other_caps() {
    let config = "[session]\nmax_per_key = 1\nqueue_wait = \"60s\"";
    let world = Setup::new().config(config).start().await;
    let busy = under_way(&world, &turn("busy", "sim:pause(after=1, for=ever, on=ws)")).await;
    for conversation in ["old", "middle", "young"] {
        world.ask(&turn(conversation, "")).await.completed();
    }
    let keys = ["session.max_sessions"];
    changed(&world, |config| config.session.max_sessions = 2, &keys);
    world.upstream_saw("two", |ledger| ledger.sockets_open == 2).await;
    assert_eq!(world.events("session_evicted").len(), 2);
    world.ask(&turn("young", "")).await.completed();
    let sockets = world.sockets("young");
    assert!(sockets[0] == sockets[1], "the youngest stayed: {sockets:?}");
    changed(&world, |config| config.session.max_sessions = 1, &keys);
    world
        .upstream_saw("the busy one", |ledger| ledger.sockets_open == 1)
        .await;
    assert_eq!(world.events("turn_finished").len(), 4, "the busy one goes on");

    let ask = Ask::turn("sim:conv=waits hello").thread("busy");
    let address = world.address;
    let waits = tokio::spawn(async move { ask.ask(address).await });
    world.gauge_is("bridge_queue_depth", "", 1).await;
    changed(
        &world,
        |config| (config.session.max_sessions, config.session.max_per_key) = (10, 2),
        &["session.max_sessions", "session.max_per_key"],
    );
    waits.await.unwrap().completed();
    assert!(world.sockets("waits")[0].is_some(), "by a session of its own");
    drop(busy);
}

/// [REL-13] With quarantine turned off every key is clear at once, and after a restart as well; what is open otherwise runs to
/// its end.
#[tokio::test]
async fn quarantine_turned_off() {
    let config = "[watchdog]\nresponse_created_deadline = \"200ms\"";
    let world = Setup::new().config(config).start().await;
    let silent = world.ask(&turn("one", "sim:silent(on=ws)")).await;
    assert_eq!(silent.error(), "bridge_response_created_timeout");
    changed(
        &world,
        |config| config.quarantine.window = 30 * S,
        &["quarantine.window"],
    );
    world.ask(&turn("one", "")).await.completed();
    world.gauge_is("bridge_quarantined_keys", "", 1).await;
    changed(
        &world,
        |config| config.quarantine.window = Duration::ZERO,
        &["quarantine.window"],
    );
    assert_eq!(world.events("quarantine_evicted").len(), 1);
    world.gauge_is("bridge_quarantined_keys", "", 0).await;
    world.ask(&turn("one", "")).await.completed();
    assert!(world.sockets("one")[2].is_some(), "by a session again");
    let state = world.state.clone();
    world.app.drain().await;

    let world = Setup::new().state(&state).start().await;
    world.gauge_is("bridge_quarantined_keys", "", 0).await;
}

const TWO: &str = r#"
[providers.openai]
base_url = "{openai}"
[[providers.openai.accounts]]
name = "one"
credential = { env = "ONE" }
[[providers.openai.accounts]]
name = "two"
credential = { env = "TWO" }
"#;

async fn two_accounts() -> World {
    let setup = Setup::new().config(TWO).secret("ONE", "sk-account-one");
    setup.secret("TWO", "sk-account-two").start().await
}

/// The accounts of the turns so far.
fn accounts(world: &World) -> Vec<String> {
    let turns = world.events("turn_finished");
    turns
        .iter()
        .map(|turn| turn["account"].as_str().unwrap().to_owned())
        .collect()
}

/// [REL-14] Another strategy, other weights and models count for the next conversation; one that is there stays where it is.
#[tokio::test]
async fn routing() {
    let world = two_accounts().await;
    for conversation in ["a", "b"] {
        world.ask(&turn(conversation, "")).await.completed();
    }
    assert_eq!(accounts(&world), ["one", "one"]);
    changed(
        &world,
        |config| {
            config.routing.strategy = Strategy::Weighted;
            config.providers[0].accounts[1].weight = 1000;
        },
        &["routing.strategy", "providers.openai.accounts.two.weight"],
    );
    for conversation in ["c", "d", "a"] {
        world.ask(&turn(conversation, "")).await.completed();
    }
    assert_eq!(accounts(&world)[2..], ["two", "two", "one"], "a is pinned");
    changed(&world, |config| config.affinity.ttl = 10 * MS, &["affinity.ttl"]);
    tokio::time::sleep(1100 * MS).await;
    world.ask(&turn("a", "")).await.completed();
    assert_eq!(accounts(&world)[5], "two", "its pin has ended");

    let stranger = turn("e", "").after("resp_of_somebody");
    assert_eq!(world.ask(&stranger).await.error(), "previous_response_not_found");
    changed(
        &world,
        |config| config.ownership.unknown = Unknown::Forward,
        &["ownership.unknown"],
    );
    world.ask(&stranger).await;
    assert_eq!(accounts(&world).len(), 7, "it was sent");

    changed(
        &world,
        |config| config.providers[0].models = vec!["other".into()],
        &["providers.openai.models"],
    );
    let refused = world.ask(&turn("f", "")).await;
    assert_eq!(refused.error(), "bridge_model_not_served");
}

/// [REL-10] [REL-11] The transport, the rhythm of the status line and prewarming are live; so is the deadline of connections,
/// old ones of which go on.
#[tokio::test]
async fn what_else_is_live() {
    let world = two_accounts().await;
    let running = under_way(&world, &turn("a", "sim:pause(after=1, for=500ms)")).await;
    changed(
        &world,
        |config| {
            config.watchdog.connect_deadline = 5 * S;
            config.server.commit_after = Duration::ZERO;
        },
        &["server.commit_after", "watchdog.connect_deadline"],
    );
    running.finish().await.completed();
    let committed = world.open(&turn("b", "sim:created_after(delay=500ms)")).await;
    assert!(
        !world
            .events("turn_accepted")
            .iter()
            .any(|turn| turn["key_kind"] == "b")
    );
    assert_eq!(committed.status, 200);
    committed.finish().await.completed();

    changed(&world, |config| config.session.prewarm = 3, &["session.prewarm"]);
    world.gauge_is("bridge_sessions", "idle", 5).await;
    changed(&world, |config| config.session.prewarm = 0, &["session.prewarm"]);

    let transport = Transport::Http;
    changed(
        &world,
        |config| config.providers[0].transport = transport,
        &["providers.openai.transport"],
    );
    world.ask(&turn("a", "")).await.completed();
    assert_eq!(world.sockets("a")[1], None);
}
