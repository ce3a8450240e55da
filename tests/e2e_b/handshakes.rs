//! Upgrades that are slow, refused or fail, and what is learned from them; the two single transports.

use std::time::Duration;

use responses_bridge::simulator::{Options, Script, Simulator};
use tokio::time::Instant;

use crate::client::Ask;
use crate::shared::{HTTP_ONLY, metric, metric_is, under_way};
use crate::world::{Setup, World};

fn turn(key: &str) -> Ask {
    Ask::turn(format!("sim:conv={key} hello")).thread(key)
}

fn reasons(world: &World) -> Vec<String> {
    let lines = world.events("http_fallback");
    lines
        .iter()
        .map(|line| line["reason"].as_str().unwrap().to_owned())
        .collect()
}

/// [QUA-15] A handshake that takes longer than the call's patience: direct HTTP in the same call, and the late socket
/// serves the next turn.
#[tokio::test]
async fn a_slow_handshake_goes_direct_and_serves_the_next_turn() {
    let world = Setup::new()
        .script("[[upgrade]]\ndo = \"slow(delay=500ms, times=1)\"")
        .config("[watchdog]\nhandshake_patience = \"100ms\"")
        .start()
        .await;
    let began = Instant::now();
    world.ask(&turn("a")).await.completed();
    assert!(
        began.elapsed() < Duration::from_millis(480),
        "it waited for the handshake"
    );
    world.saw("session_opened", 1).await;
    world.ask(&turn("a")).await.completed();
    assert_eq!(world.sockets("a"), [None, Some(1)]);
    assert_eq!(reasons(&world), ["upgrade_slow"]);
    assert_eq!(world.upstream.ledger().sockets_opened, 1);
    assert_eq!(metric(&world, "bridge_sick_transports", "").await, 0.0);
}

/// [QUA-13] Upgrades answered 404, 405, 426 or 501: the same call goes direct, and nobody dials that account again.
#[tokio::test]
async fn an_account_without_websocket_is_believed() {
    for status in [404, 405, 426, 501] {
        let script = format!("[[upgrade]]\ndo = \"refuse(status={status})\"");
        let world = Setup::new().script(&script).start().await;
        for key in ["a", "b", "a"] {
            world.ask(&turn(key)).await.completed();
        }
        assert_eq!(world.upstream.ledger().handshakes_refused, 1, "{status}");
        assert_eq!((world.creates("a").http, world.creates("b").http), (2, 1));
        assert_eq!(reasons(&world), ["upgrade_refused", "unsupported", "unsupported"]);
        assert_eq!(world.events("http_fallback")[0]["status"], status);
    }
}

/// [QUA-11] Any other refusal: direct HTTP in the same call, whose answer is the client's, and the next call dials again, for 401
/// and 429 say nothing about the transport.
#[tokio::test]
async fn a_refused_upgrade_goes_direct() {
    for status in [401, 429] {
        let script = format!("[[upgrade]]\ndo = \"refuse(status={status}, times=4)\"");
        let world = Setup::new().script(&script).start().await;
        for key in ["a", "b", "c", "d", "e"] {
            world.ask(&turn(key)).await.completed();
        }
        assert_eq!(world.upstream.ledger().handshakes_refused, 4, "{status}");
        assert_eq!(world.creates("e").websocket, 1);
        assert!(world.events("breaker_changed").is_empty(), "{status}");
    }
    let script =
        "[[upgrade]]\ndo = \"refuse(status=401)\"\n[[rule]]\nbehave = \"error(status=401, on=http)\"";
    let world = Setup::new().script(script).start().await;
    let answer = world.ask(&turn("a")).await;
    assert_eq!((answer.status, answer.error().as_str()), (401, "invalid_api_key"));
}

/// [QUA-11] [QUA-12] A firewall or proxy that answers each upgrade itself, mostly with 403: the third makes the transport sick,
/// and no turn after it pays for a handshake.
#[tokio::test]
async fn a_middlebox_that_refuses_upgrades() {
    for status in [400, 403, 503] {
        let script = format!("[[upgrade]]\ndo = \"refuse(status={status})\"");
        let world = Setup::new().script(&script).start().await;
        for key in ["a", "b", "c", "d", "e", "f", "g"] {
            world.ask(&turn(key)).await.completed();
        }
        assert_eq!(world.upstream.ledger().handshakes_refused, 3, "{status}");
        let (refused, sick) = ("upgrade_refused", "sick_transport");
        assert_eq!(
            reasons(&world),
            [refused, refused, refused, sick, sick, sick, sick]
        );
        assert_eq!(world.events("breaker_changed")[0]["reason"], "opened");
        assert_eq!(world.events("breaker_changed").len(), 1, "{status}");
    }
}

/// [QUA-14] [KEY-27] A refusal with 403 or 429 while sockets live: their number is the ceiling. Nobody dials beyond it, the
/// sockets that are there are used, and one that ends makes room.
#[tokio::test]
async fn a_ceiling_of_sockets() {
    for status in [403, 429] {
        let script = format!("[limits]\nsockets = 2\nrefuse_with = {status}");
        let world = Setup::new().script(&script).start().await;
        for key in ["a", "b", "c", "d", "a"] {
            world.ask(&turn(key)).await.completed();
        }
        assert_eq!(world.upstream.ledger().handshakes_refused, 1);
        assert_eq!(reasons(&world), ["upgrade_refused", "ceiling"]);
        assert_eq!(world.creates("a").websocket, 2);
        let (busy, _) = under_way(&world, &Ask::turn("sim:conv=b sim:pause(for=ever)").thread("b")).await;
        drop(busy);
        world
            .upstream_saw("one socket less", |ledger| ledger.sockets_open == 1)
            .await;
        world.ask(&turn("d")).await.completed();
        assert_eq!(world.creates("d").websocket, 1);
    }
}

/// [QUA-15] [KEY-30] At most eight handshakes are in flight: the ninth key waits for one to end, and goes direct when it has
/// waited for as long as it may.
#[tokio::test]
async fn eight_handshakes_in_flight() {
    let queue = "[session]\nqueue_wait = \"300ms\"\n";
    let world = Setup::new()
        .config(queue)
        .script("[[upgrade]]\ndo = \"hang\"")
        .start()
        .await;
    let waiting: Vec<_> = futures_util::future::join_all((0..8).map(|n| {
        let (ask, address) = (turn(&format!("k{n}")), world.address);
        async move { ask.send(address).await }
    }))
    .await;
    metric_is(&world, "bridge_sessions", "opening", 8.0).await;
    let began = Instant::now();
    world.ask(&turn("ninth")).await.completed();
    let took = began.elapsed();
    assert!(
        took >= Duration::from_millis(300),
        "the ninth did not wait: {took:?}"
    );
    assert!(
        took < Duration::from_millis(1500),
        "the ninth waited for its own handshake: {took:?}"
    );
    assert_eq!(reasons(&world)[0], "handshakes");
    drop(waiting);
    metric_is(&world, "bridge_sessions", "opening", 0.0).await;
}

/// [KEY-31] A provider for WebSocket only whose upgrades take longer than `queue_wait` and `handshake_patience`: nobody is refused,
/// neither the first eight conversations nor the ninth, which waits for their handshakes and then for its own.
#[tokio::test]
async fn nine_conversations_without_direct_http() {
    let config = HTTP_ONLY.replace("\"http\"\n", "\"websocket\"\n");
    let world = Setup::new()
        .config(&config)
        .config("[session]\nqueue_wait = \"50ms\"\n[watchdog]\nhandshake_patience = \"100ms\"")
        .script("[[upgrade]]\ndo = \"slow(delay=600ms)\"")
        .start()
        .await;
    let asks: Vec<_> = (0..9).map(|n| turn(&format!("k{n}"))).collect();
    let began = Instant::now();
    for answer in futures_util::future::join_all(asks.iter().map(|ask| world.ask(ask))).await {
        answer.completed();
    }
    assert!(began.elapsed() >= Duration::from_millis(1200), "no two rounds");
    let ledger = world.upstream.ledger();
    assert_eq!((ledger.sockets_opened, ledger.http_requests), (9, 0));
}

/// [KEY-31] Its patience has an end: an upgrade that is never answered is refused when the connect deadline is over, and so is who
/// could not even dial.
#[tokio::test]
async fn patience_without_direct_http_has_an_end() {
    let config = HTTP_ONLY.replace("\"http\"\n", "\"websocket\"\n");
    let deadlines = "[session]\nqueue_wait = \"50ms\"\n[watchdog]\nconnect_deadline = \"700ms\"\nhandshake_patience = \"100ms\"";
    let world = Setup::new()
        .config(&config)
        .config(deadlines)
        .script("[[upgrade]]\ndo = \"hang\"")
        .start()
        .await;
    let asks: Vec<_> = (0..9).map(|n| turn(&format!("k{n}"))).collect();
    let began = Instant::now();
    for answer in futures_util::future::join_all(asks.iter().map(|ask| world.ask(ask))).await {
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (503, "bridge_no_socket")
        );
    }
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(600), "{took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// [KEY-30] Forty conversations that begin at once all get sessions of their own, eight handshakes at a time.
#[tokio::test]
async fn a_burst_of_conversations() {
    let world = Setup::new().start().await;
    let asks: Vec<_> = (0..40).map(|n| turn(&format!("burst-{n}"))).collect();
    for answer in futures_util::future::join_all(asks.iter().map(|ask| world.ask(ask))).await {
        answer.completed();
    }
    let ledger = world.upstream.ledger();
    assert_eq!((ledger.sockets_open, ledger.http_requests), (40, 0));
}

const QUICK: &str = "
[watchdog]
response_created_deadline = \"150ms\"
[quarantine]
window = \"400ms\"
max_window = \"2s\"
";

/// [QUA-10] [QUA-12] Three keys of one account silent: its transport is sick, and a key that has nothing to do with them goes
/// direct. When its time is over one turn probes, and closes the breaker; the account itself was never penalised.
#[tokio::test]
async fn three_silent_keys_make_a_sick_transport() {
    let world = Setup::new().config(QUICK).start().await;
    for key in ["a", "b", "c"] {
        let answer = world
            .ask(&Ask::turn(format!("sim:conv={key} sim:silent(on=ws)")).thread(key))
            .await;
        assert_eq!(answer.error(), "bridge_response_created_timeout");
    }
    world.ask(&turn("healthy")).await.completed();
    assert_eq!(reasons(&world), ["sick_transport"]);
    assert_eq!(metric(&world, "bridge_sick_transports", "").await, 1.0);
    tokio::time::sleep(Duration::from_millis(450)).await;
    world.ask(&turn("healthy")).await.completed();
    assert_eq!(
        (world.creates("healthy").http, world.creates("healthy").websocket),
        (1, 1)
    );
    let changes: Vec<_> = world
        .events("breaker_changed")
        .iter()
        .map(|line| line["reason"].clone())
        .collect();
    assert_eq!(changes, ["opened", "half_open", "closed"]);
    assert_eq!(metric(&world, "bridge_sick_transports", "").await, 0.0);
}

/// [QUA-12] A probe that fails opens the breaker for twice as long; it still half-opens by itself.
#[tokio::test]
async fn three_failed_handshakes_make_a_sick_transport() {
    let world = Setup::new()
        .config("[quarantine]\nwindow = \"300ms\"\nmax_window = \"1s\"")
        .script("[[upgrade]]\ndo = \"reset(times=4)\"")
        .start()
        .await;
    for key in ["a", "b", "c", "d"] {
        world.ask(&turn(key)).await.completed();
    }
    assert_eq!(
        reasons(&world),
        [
            "upgrade_refused",
            "upgrade_refused",
            "upgrade_refused",
            "sick_transport"
        ]
    );
    tokio::time::sleep(Duration::from_millis(320)).await;
    world.ask(&turn("probe")).await.completed();
    assert_eq!(reasons(&world).len(), 5, "the fourth handshake failed too");
    tokio::time::sleep(Duration::from_millis(320)).await;
    world.ask(&turn("early")).await.completed();
    assert_eq!(reasons(&world).last().unwrap(), "sick_transport", "twice as long");
    tokio::time::sleep(Duration::from_millis(320)).await;
    world.ask(&turn("again")).await.completed();
    assert_eq!(world.creates("again").websocket, 1);
    let changes: Vec<_> = world
        .events("breaker_changed")
        .iter()
        .map(|line| line["reason"].clone())
        .collect();
    assert_eq!(changes, ["opened", "half_open", "opened", "half_open", "closed"]);
}

/// [QUA-12] A probe whose client leaves proves nothing and frees its place.
#[tokio::test]
async fn a_cancelled_probe_frees_its_place() {
    let world = Setup::new()
        .config("[quarantine]\nwindow = \"200ms\"\nmax_window = \"200ms\"")
        .script("[[upgrade]]\ndo = \"reset(times=3)\"\n[[upgrade]]\ndo = \"hang(times=1)\"")
        .start()
        .await;
    for key in ["a", "b", "c"] {
        world.ask(&turn(key)).await.completed();
    }
    tokio::time::sleep(Duration::from_millis(250)).await;
    let leaving = turn("leaving").send(world.address).await;
    metric_is(&world, "bridge_sessions", "opening", 1.0).await;
    drop(leaving);
    metric_is(&world, "bridge_sessions", "opening", 0.0).await;
    world.ask(&turn("next")).await.completed();
    assert_eq!(world.creates("next").websocket, 1);
}

/// [KEY-29] A provider for WebSocket only: no quarantine, no direct HTTP; where no socket can be had the turn is refused and
/// told when to come again.
#[tokio::test]
async fn websocket_only() {
    let config = HTTP_ONLY.replace("\"http\"\n", "\"websocket\"\n");
    let world = Setup::new().config(QUICK).config(&config).start().await;
    let answer = world
        .ask(&Ask::turn("sim:conv=a sim:silent(times=1)").thread("a"))
        .await;
    assert_eq!(answer.error(), "bridge_response_created_timeout");
    world.ask(&turn("a")).await.completed();
    assert_eq!((world.creates("a").websocket, world.creates("a").http), (2, 0));
    // What no socket could carry is no lack of a session.
    let background = turn("b").json().with("background", true);
    assert_eq!(world.ask(&background).await.status, 200);
    assert_eq!(world.creates("b").http, 1);

    for refusal in [
        "refuse(status=404)",
        "refuse(status=503)",
        "reset",
        "wrong_accept",
    ] {
        let script = Script::parse(&format!("[[upgrade]]\ndo = \"{refusal}\"")).unwrap();
        let upstream = Simulator::start(Options {
            script,
            ..Options::default()
        })
        .await
        .unwrap();
        let world = Setup::new().config(&config).before(upstream).await;
        for _ in 0..2 {
            let answer = world.ask(&turn("a")).await;
            assert_eq!(
                (answer.status, answer.error().as_str()),
                (503, "bridge_no_socket"),
                "{refusal}"
            );
        }
        assert_eq!(world.creates("a").total(), 0);
    }
}

/// [KEY-20] A provider for HTTP only is never dialled.
#[tokio::test]
async fn http_only() {
    let world = Setup::new().config(HTTP_ONLY).start().await;
    for ask in [turn("a"), turn("a").json(), turn("b")] {
        world.ask(&ask).await.completed();
    }
    let ledger = world.upstream.ledger();
    assert_eq!(
        (
            ledger.sockets_opened,
            ledger.handshakes_refused,
            ledger.creates_total
        ),
        (0, 0, 3)
    );
    assert_eq!(reasons(&world), ["configured"; 3]);
}

/// [HTTP-9] [KEY-20] `background:true` goes by direct HTTP, and its response is found again.
#[tokio::test]
async fn background_goes_direct() {
    let world = Setup::new().start().await;
    let answer = world
        .ask(&turn("a").json().with("background", true).with("store", true))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    assert_eq!((world.creates("a").http, world.creates("a").websocket), (1, 0));
    let found = world.ask(&Ask::bare("GET", format!("/v1/responses/{id}"))).await;
    assert_eq!(found.json()["id"], id);
    assert_eq!(world.events("owner_routed").len(), 1);
}
