//! Every cap at cap + 1: what goes, what is refused, and that it is counted.

use std::time::Duration;

use tokio::time::Instant;

use crate::client::{Ask, End};
use crate::shared::{HTTP_ONLY, both_transports, metric, metric_is, post, under_way};
use crate::world::Setup;

fn turn(key: &str) -> Ask {
    Ask::turn(format!("sim:conv={key} hello")).thread(key)
}

fn endless(key: &str) -> Ask {
    Ask::turn(format!("sim:conv={key} sim:pause(after=1, for=ever, on=ws)")).thread(key)
}

/// [INV-7] [KEY-22] `session.max_sessions`: one more takes the place of the longest idle session. One that is at work is
/// never evicted; where all are, the turn goes by direct HTTP.
#[tokio::test]
async fn max_sessions() {
    let world = Setup::new()
        .config("[session]\nmax_sessions = 3\nmax_per_key = 1")
        .start()
        .await;
    let (_busy, _) = under_way(&world, &endless("busy")).await;
    for key in ["old", "young", "old", "new"] {
        world.ask(&turn(key)).await.completed();
    }
    world
        .upstream_saw("an eviction", |ledger| ledger.sockets_open == 3)
        .await;
    assert_eq!(world.events("session_evicted").len(), 1);
    assert_eq!(metric(&world, "bridge_sessions", "").await, 3.0);
    // It was `young` that had been idle for longest.
    world.ask(&turn("old")).await.completed();
    let old = world.sockets("old");
    assert!(old.iter().all(|socket| *socket == old[0]), "{old:?}");

    let (_one, _) = under_way(&world, &endless("old")).await;
    let (_two, _) = under_way(&world, &endless("new")).await;
    world.ask(&turn("one more")).await.completed();
    assert_eq!(world.creates("one").total() + world.creates("-").total(), 1);
    assert_eq!(world.events("http_fallback")[0]["reason"], "no_room");
    assert_eq!(world.events("session_evicted").len(), 1);
    assert!(world.upstream.ledger().sockets_open <= 3);
}

/// [INV-7] `session.max_sessions` holds against a crowd that arrives at once.
#[tokio::test]
async fn max_sessions_under_a_crowd() {
    let world = Setup::new()
        .config("[session]\nmax_sessions = 5\nmax_per_key = 1")
        .start()
        .await;
    let address = world.address;
    let crowd = (0..60).map(|n| {
        let ask = Ask::turn(format!("sim:conv=k{n} sim:text(n=2, delay=2ms)")).thread(&format!("k{n}"));
        tokio::spawn(async move { ask.ask(address).await.completed() })
    });
    for turn in crowd.collect::<Vec<_>>() {
        turn.await.unwrap();
    }
    assert!(metric(&world, "bridge_sessions", "").await <= 5.0);
    let ledger = world.upstream.ledger();
    assert_eq!(ledger.creates_total, 60);
    // An evicted session closes while its successor opens.
    assert!(ledger.sockets_most <= 10, "{} sockets", ledger.sockets_most);
}

/// [INV-7] [KEY-24] `session.max_queue`: one more does not wait.
#[tokio::test]
async fn max_queue() {
    let world = Setup::new()
        .config("[session]\nmax_per_key = 1\nmax_queue = 2\nqueue_wait = \"10s\"")
        .start()
        .await;
    let (busy, _) = under_way(&world, &endless("a")).await;
    let waiting = [
        turn("a").send(world.address).await,
        turn("a").send(world.address).await,
    ];
    metric_is(&world, "bridge_queue_depth", "", 2.0).await;
    let began = Instant::now();
    world.ask(&turn("a")).await.completed();
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(world.events("http_fallback")[0]["reason"], "busy");
    drop(busy);
    for mut reply in waiting {
        reply.read_head().await;
        reply.finish().await.completed();
    }
    assert_eq!((world.creates("a").websocket, world.creates("a").http), (3, 1));
}

/// [INV-7] [QUA-9] `quarantine.max_keys`: one more lets the least recently used key go, by name.
#[tokio::test]
async fn quarantined_keys() {
    let config = "[watchdog]\nresponse_created_deadline = \"150ms\"\n[quarantine]\nwindow = \"10s\"\nmax_window = \"10s\"\nmax_keys = 1";
    let world = Setup::new().config(config).start().await;
    for key in ["a", "b"] {
        let silent = Ask::turn(format!("sim:conv={key} sim:silent(on=ws)")).thread(key);
        assert_eq!(world.ask(&silent).await.status, 504);
    }
    assert_eq!(metric(&world, "bridge_quarantined_keys", "").await, 1.0);
    let (opened, evicted) = (
        world.events("quarantine_opened"),
        world.events("quarantine_evicted"),
    );
    assert_eq!(evicted[0]["key"], opened[0]["key"]);
    for key in ["a", "b"] {
        world.ask(&turn(key)).await.completed();
    }
    assert_eq!((world.creates("a").websocket, world.creates("b").http), (2, 1));
}

/// [INV-7] [KEY-13] `state.max_owners`: one more, and the least recently used response is unknown.
#[tokio::test]
async fn owners() {
    let config = r#"
[state]
max_owners = 2
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
credential = { env = "ALICE" }
"#;
    let world = Setup::new()
        .config(config)
        .secret("ALICE", "key-alice")
        .secret("BOB", "key-bob")
        .start()
        .await;
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(
            world
                .ask(&Ask::turn(format!("sim:conv=c{n} hello")).bearer("key-alice"))
                .await
                .id(),
        );
    }
    assert_eq!(metric(&world, "bridge_owners", "").await, 2.0);
    let statuses =
        [0, 1, 2].map(|n| Ask::bare("GET", format!("/v1/responses/{}", ids[n])).bearer("key-alice"));
    let mut found = Vec::new();
    for ask in statuses {
        found.push(world.ask(&ask).await.status);
    }
    assert_eq!(found, [404, 200, 200]);
}

/// [INV-7] [SES-16] `server.client_buffer`: a client that stops reading ends its turn as `slow_client`, on both transports:
/// upstream's connection is closed, the client's torn, and its bytes are given back.
#[tokio::test]
async fn client_buffer() {
    for world in both_transports("[server]\nclient_buffer = \"256KiB\"").await {
        let ask = Ask::turn("sim:conv=a sim:burst(n=120, size=64KiB)").thread("a");
        let (stopped, _) = under_way(&world, &ask).await;
        world.saw("slow_client", 1).await;
        world.saw("turn_finished", 1).await;
        assert_eq!(world.events("turn_finished")[0]["outcome"], "slow_client");
        world
            .upstream_saw("the client's end", |ledger| {
                ledger.creates[0].conclusion == responses_bridge::simulator::Conclusion::ClientGone
            })
            .await;
        assert_eq!(stopped.finish().await.end, End::Torn);
        metric_is(&world, "bridge_held_bytes", "", 0.0).await;
        metric_is(&world, "bridge_running_turns", "", 0.0).await;
        // The key's next turn is served at once.
        world.ask(&turn("a")).await.completed();
    }
}

/// [SES-16] A client that takes no byte for `slow_client` although some wait is as slow, however small the stream.
#[tokio::test]
async fn a_client_that_takes_nothing() {
    let config = "[server]\nclient_buffer = \"64MiB\"\n[watchdog]\nslow_client = \"300ms\"";
    let world = Setup::new().config(config).start().await;
    let ask = Ask::turn("sim:conv=a sim:burst(n=120, size=64KiB) sim:pause(after=119, for=ever)").thread("a");
    let (stopped, _) = under_way(&world, &ask).await;
    world.saw("slow_client", 1).await;
    assert_eq!(stopped.finish().await.end, End::Torn);
}

/// [INV-7] [EDGE-46] `server.body_budget`: bodies that are held until their turn is accepted count, and one more is refused
/// with 503 and Retry-After. Nothing of it is kept afterwards.
#[tokio::test]
async fn body_budget() {
    for config in ["", HTTP_ONLY] {
        let setup = Setup::new()
            .config("[server]\nmax_body = \"100KiB\"\nbody_budget = \"400KiB\"\nclient_buffer = \"100KiB\"");
        let world = if config.is_empty() {
            setup
        } else {
            setup.config(config)
        }
        .start()
        .await;
        let big = |prompt: &str| Ask::turn(format!("sim:conv=a {prompt} {}", "x".repeat(90 << 10)));
        let mut held = Vec::new();
        for n in 0..2 {
            held.push(
                big("sim:silent")
                    .thread(&format!("k{n}"))
                    .send(world.address)
                    .await,
            );
        }
        world
            .upstream_saw("both", |ledger| ledger.creates_total == 2)
            .await;
        let used = metric(&world, "bridge_held_bytes", "").await;
        assert!(
            (180_000.0..=400_000.0).contains(&used),
            "two bodies and what is sent of them: {used}"
        );
        let mut refused = None;
        for n in 2..6 {
            let mut reply = big("sim:silent")
                .thread(&format!("k{n}"))
                .send(world.address)
                .await;
            let answered = tokio::time::timeout(Duration::from_millis(300), reply.read_head()).await;
            if answered.is_ok() {
                refused = Some(reply);
                break;
            }
            held.push(reply);
        }
        let answer = refused.expect("one is too much").finish().await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (503, "bridge_body_budget")
        );
        drop(held);
        metric_is(&world, "bridge_held_bytes", "", 0.0).await;
        world.ask(&big("hello").thread("after")).await.completed();
        metric_is(&world, "bridge_held_bytes", "", 0.0).await;
    }
}

/// [EDGE-44] `server.max_body`: one byte more is 413, with or without a Content-Length that says so.
#[tokio::test]
async fn max_body() {
    let world = Setup::new()
        .config("[server]\nmax_body = \"10KiB\"")
        .start()
        .await;
    let body = |length: usize| {
        let frame = r#"{"model":"gpt-5","input":""}"#;
        frame.replace("\"\"}", &format!("\"{}\"}}", "x".repeat(length - frame.len())))
    };
    assert_eq!(
        post(&world, "/v1/responses", &[], body(10 << 10).as_bytes())
            .await
            .0,
        200
    );
    let (status, answer) = post(&world, "/v1/responses", &[], body((10 << 10) + 1).as_bytes()).await;
    assert_eq!(
        (status, answer["error"]["code"].as_str()),
        (413, Some("bridge_body_too_large"))
    );
}

/// [INV-7] [KEY-22] `session.max_per_key` holds for probes too: each takes a fresh socket, and one that is rejected leaves a
/// healthy one behind.
#[tokio::test]
async fn rejected_probes_do_not_pile_up() {
    let config = "[session]\nmax_per_key = 2\n[watchdog]\nresponse_created_deadline = \"150ms\"\n\
                  [quarantine]\nwindow = \"50ms\"\nmax_window = \"50ms\"";
    let world = Setup::new().config(config).start().await;
    let ask = |words: &str| Ask::turn(format!("sim:conv=a {words}")).thread("a");
    world.ask(&ask("sim:silent(on=ws)")).await;
    for probe in 0..8 {
        tokio::time::sleep(Duration::from_millis(60)).await;
        let answer = world
            .ask(&ask(&format!("probe {probe} sim:error(status=429, on=ws)")))
            .await;
        assert_eq!(answer.status, 429);
        assert!(
            metric(&world, "bridge_sessions", "").await <= 2.0,
            "after {probe} probes"
        );
    }
    assert_eq!(
        world.events("quarantine_probe").len(),
        8,
        "each was a probe, and freed its place"
    );
    world
        .upstream_saw("the others' end", |ledger| ledger.sockets_open <= 2)
        .await;
    world.ask(&ask("healthy")).await.completed();
    assert_eq!(world.events("quarantine_cleared").len(), 1);
}
