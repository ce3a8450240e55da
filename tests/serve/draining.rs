//! From the signal to the exit code.

use std::time::{Duration, Instant};

use responses_bridge::simulator::{Ledger, SocketEnd};
use serde_json::Value;

use super::bridge::{Bridge, PATIENCE, free_port};
use super::client::Client;

/// Two seconds of answer.
const LONG: &str = "sim:text(n=40, delay=50ms)";
/// Longer than any test.
const ENDLESS: &str = "sim:text(n=2000, delay=50ms)";

/// Every socket that was opened, by the code with which the bridge closed it.
fn closes(ledger: &Ledger) -> Vec<Option<SocketEnd>> {
    ledger.sockets.iter().map(|socket| socket.end).collect()
}

const GOING_AWAY: Option<SocketEnd> = Some(SocketEnd::ClientClose(Some(1001)));

/// The code in an error answer.
fn code(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    body["error"]["code"].as_str().unwrap().to_owned()
}

/// [RUN-9] [RUN-8] Either signal ends an idle bridge at once and well, and its idle sessions with 1001.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_bridge_ends_at_once() {
    for signal in ["TERM", "INT"] {
        let mut bridge = Bridge::start("", "").await;
        let mut client = Client::connect(bridge.port).await;
        client.begin("a", "hello").await;
        client.events().await;
        let began = Instant::now();
        bridge.signal(signal);
        assert_eq!(bridge.end().await.code(), Some(0), "{signal}");
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{signal}: {:?}",
            began.elapsed()
        );
        assert!(client.is_closed().await);
        assert_eq!(closes(&bridge.simulator.ledger()), [GOING_AWAY], "{signal}");
        let told = |name: &str| bridge.events.iter().find(|event| event["event"] == name).cloned();
        let (started, finished) = (told("drain_started").unwrap(), told("drain_finished").unwrap());
        assert_eq!((&started["turns"], &started["sessions"]), (&0.into(), &1.into()));
        assert_eq!(finished["cut"], 0);
    }
}

/// [RUN-5] [RUN-6] [RUN-8] While a turn runs: nobody new comes in, who is in hears that it is over, operators still see, the
/// idle session is closed, and the turn finishes.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_turn_finishes_and_nothing_new_begins() {
    let admin = free_port();
    let mut bridge = Bridge::start(&format!("admin_listen = \"127.0.0.1:{admin}\""), "").await;
    let port = bridge.port;
    let (mut running, mut kept, mut idle) = (
        Client::connect(port).await,
        Client::connect(port).await,
        Client::connect(port).await,
    );
    idle.begin("idle", "hello").await;
    idle.events().await;
    assert_eq!(kept.get("/health/ready").await.0.status, 200);
    running.begin("running", LONG).await;

    bridge.signal("TERM");
    let started = bridge.event("drain_started").await;
    assert_eq!((&started["turns"], &started["sessions"]), (&1.into(), &2.into()));

    let refused = async {
        while Client::try_connect(port).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, refused)
        .await
        .expect("it still accepts");
    assert_eq!(kept.get("/health/ready").await.0.status, 503);
    assert_eq!(kept.get("/health/live").await.0.status, 200);
    let mut operator = Client::connect(admin).await;
    assert_eq!(operator.get("/health/ready").await.0.status, 503);
    assert!(
        operator
            .get("/metrics")
            .await
            .1
            .contains("bridge_running_turns 1")
    );
    idle.create("idle", true, "and on").await;
    let (head, body) = idle.answer().await;
    assert_eq!((head.status, &*code(&body)), (503, "bridge_draining"));
    assert!((1..=60).contains(&head.headers["retry-after"].parse::<u64>().unwrap()));
    assert_eq!(head.headers["connection"], "close");
    assert!(idle.is_closed().await);
    let by_then = |ledger: &Ledger| ledger.sockets[0].end == GOING_AWAY && ledger.sockets[1].end.is_none();
    assert!(
        bridge.simulator.until(PATIENCE, by_then).await,
        "{:?}",
        closes(&bridge.simulator.ledger())
    );

    let events = running.events().await;
    assert_eq!(events.last().unwrap()["type"], "response.completed");
    assert_eq!(bridge.end().await.code(), Some(0));
    assert!(kept.is_closed().await && running.is_closed().await);
    assert_eq!(closes(&bridge.simulator.ledger()), [GOING_AWAY, GOING_AWAY]);
    assert_eq!(bridge.events.last().unwrap()["event"], "drain_finished");
    assert_eq!(bridge.events.last().unwrap()["cut"], 0);
}

/// [RUN-7] [RUN-8] What outlasts `server.drain` is cut: a stream by `response.failed`, the others by a 503.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_cut_may_be_retried() {
    let refusing = "[[upgrade]]\nmatch.header.thread-id = \"direct\"\ndo = \"refuse(status=503)\"\n";
    let mut bridge = Bridge::start_scripted("drain = \"300ms\"", "", refusing).await;
    let port = bridge.port;
    let mut streaming = Client::connect(port).await;
    let created = streaming.begin("streaming", ENDLESS).await;
    let mut whole = Client::connect(port).await;
    whole.create("whole", false, ENDLESS).await;
    let mut waiting = Client::connect(port).await;
    waiting.create("waiting", true, "sim:silent").await;
    let mut direct = Client::connect(port).await;
    direct.create("direct", false, ENDLESS).await;
    assert!(
        bridge
            .simulator
            .until(PATIENCE, |ledger| ledger.creates_total == 4)
            .await
    );

    bridge.signal("TERM");
    let events = streaming.events().await;
    let failed = events.last().unwrap();
    assert_eq!(failed["type"], "response.failed");
    assert_eq!(failed["response"]["id"], created["response"]["id"]);
    assert_eq!(failed["response"]["error"]["code"], "bridge_drained");
    let number = |event: &Value| event["sequence_number"].as_u64().unwrap();
    assert_eq!(number(failed), number(&events[events.len() - 2]) + 1);
    assert!(
        events[..events.len() - 1]
            .iter()
            .all(|event| event["type"] != "response.failed")
    );
    for client in [&mut whole, &mut waiting, &mut direct] {
        let (head, body) = client.answer().await;
        assert_eq!((head.status, &*code(&body)), (503, "bridge_drained"));
        assert!((1..=60).contains(&head.headers["retry-after"].parse::<u64>().unwrap()));
    }
    assert_eq!(bridge.end().await.code(), Some(0));
    let ledger = bridge.simulator.ledger();
    assert_eq!(
        (closes(&ledger).as_slice(), ledger.conversation("direct").http),
        ([GOING_AWAY; 3].as_slice(), 1)
    );
    assert_eq!(ledger.creates_total, 4);
    assert_eq!(bridge.events.last().unwrap()["cut"], 4);
}

/// [RUN-6] A turn whose session is still being opened is a running turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_waits_for_its_session_finishes() {
    let slow = "[[upgrade]]\ndo = \"slow(delay=700ms)\"\n";
    let mut bridge = Bridge::start_scripted("", "", slow).await;
    let mut client = Client::connect(bridge.port).await;
    client.create("a", true, "hello").await;
    // The upgrade is under way once the bridge counts a session that opens.
    let mut operator = Client::connect(bridge.port).await;
    let opening = async {
        while !operator
            .get("/metrics")
            .await
            .1
            .contains("bridge_sessions{state=\"opening\"} 1")
        {}
    };
    tokio::time::timeout(PATIENCE, opening)
        .await
        .expect("no session opens");
    bridge.signal("TERM");
    let started = bridge.event("drain_started").await;
    assert_eq!(started["turns"], 1);
    assert_eq!(client.head().await.status, 200);
    assert_eq!(
        client.events().await.last().unwrap()["type"],
        "response.completed"
    );
    assert_eq!(bridge.end().await.code(), Some(0));
    assert_eq!(closes(&bridge.simulator.ledger()), [GOING_AWAY]);
}

/// [RUN-7] A turn that still waits when the time is up is refused, and is never sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_waits_too_long_is_refused_unsent() {
    let hanging = "[[upgrade]]\ndo = \"hang\"\n";
    let mut bridge = Bridge::start_scripted("drain = \"200ms\"", "", hanging).await;
    let mut client = Client::connect(bridge.port).await;
    client.create("a", true, "hello").await;
    let mut operator = Client::connect(bridge.port).await;
    let opening = async {
        while !operator
            .get("/metrics")
            .await
            .1
            .contains("bridge_sessions{state=\"opening\"} 1")
        {}
    };
    tokio::time::timeout(PATIENCE, opening)
        .await
        .expect("no session opens");
    bridge.signal("TERM");
    let (head, body) = client.answer().await;
    assert_eq!((head.status, &*code(&body)), (503, "bridge_draining"));
    assert!(head.headers.contains_key("retry-after"));
    assert_eq!(bridge.end().await.code(), Some(0));
    assert_eq!(bridge.simulator.ledger().creates_total, 0);
}

/// [RUN-8] [RUN-9] A session that opens too late for its turn, and during the drain, is closed like the others, and does not
/// hold the drain up until `server.drain` is over.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_opens_during_the_drain_is_closed() {
    let slow = "[[upgrade]]\ndo = \"slow(delay=1s)\"\n";
    let watchdog = "[watchdog]\nhandshake_patience = \"50ms\"";
    let mut bridge = Bridge::start_scripted("", watchdog, slow).await;
    let mut client = Client::connect(bridge.port).await;
    client.begin("a", "hello").await;
    client.events().await;
    bridge.signal("TERM");
    bridge.event("drain_started").await;
    let began = Instant::now();
    assert_eq!(bridge.end().await.code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(closes(&bridge.simulator.ledger()), [GOING_AWAY]);
}

/// [RUN-6] [RUN-9] A turn that waits in its conversation's queue is a running turn too: the drain does not end between the
/// session that it waited for and the one that it gets.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_in_the_queue_finishes() {
    let mut bridge = Bridge::start("", "[session]\nmax_per_key = 1\nqueue_wait = \"10s\"").await;
    let (mut first, mut second) = (
        Client::connect(bridge.port).await,
        Client::connect(bridge.port).await,
    );
    first
        .begin("a", "sim:text(n=40, delay=50ms) sim:close(code=1011, after=16)")
        .await;
    second.create("a", true, LONG).await;
    let mut operator = Client::connect(bridge.port).await;
    let queued = async { while !operator.get("/metrics").await.1.contains("bridge_queue_depth 1") {} };
    tokio::time::timeout(PATIENCE, queued)
        .await
        .expect("it does not wait");
    bridge.signal("TERM");
    let started = bridge.event("drain_started").await;
    assert_eq!(started["turns"], 2);
    assert_eq!(first.events().await.last().unwrap()["type"], "response.failed");
    assert_eq!(second.head().await.status, 200);
    assert_eq!(
        second.events().await.last().unwrap()["type"],
        "response.completed"
    );
    assert_eq!(bridge.end().await.code(), Some(0));
    let names: Vec<_> = bridge
        .events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    let finished = names.iter().filter(|name| **name == "turn_finished").count();
    assert_eq!(
        (finished, names.last()),
        (2, Some(&"drain_finished")),
        "{names:?}"
    );
}

/// [RUN-6] An upload that passes through is let finish too.
#[tokio::test(flavor = "multi_thread")]
async fn what_passes_through_finishes() {
    let mut bridge = Bridge::start("", "").await;
    let mut client = Client::connect(bridge.port).await;
    let head = "POST /v1/files HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer sk-test\r\ncontent-length: 8\r\n\r\n";
    client.write(&format!("{head}half")).await;
    // The request has been read when a later one on another connection has been answered.
    Client::connect(bridge.port).await.get("/health/live").await;
    bridge.signal("TERM");
    bridge.event("drain_finished").await;
    client.write("half").await;
    let (head, body) = client.answer().await;
    assert_eq!(head.status, 200, "{body}");
    assert!(body.contains("\"body_length\":8"), "{body}");
    assert_eq!(bridge.end().await.code(), Some(0));
}

/// [RUN-10] A second signal, of either kind, does not wait for the turn, and says that it was the bridge that cut it.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_at_once() {
    for (first, second) in [("TERM", "TERM"), ("INT", "INT"), ("TERM", "INT")] {
        let mut bridge = Bridge::start("", "").await;
        let mut client = Client::connect(bridge.port).await;
        client.begin("a", ENDLESS).await;
        bridge.signal(first);
        bridge.event("drain_started").await;
        let began = Instant::now();
        bridge.signal(second);
        assert_eq!(bridge.end().await.code(), Some(130));
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        let told = |name: &str| bridge.events.iter().find(|event| event["event"] == name).cloned();
        let turn = told("turn_finished").unwrap();
        assert_eq!(
            (&turn["outcome"], &turn["committed"], turn["created_ms"].is_u64()),
            (&"drained".into(), &true.into(), true),
            "{turn}"
        );
        let finished = told("drain_finished").unwrap();
        assert_eq!(finished["cut"], 1);
        let events = client.events().await;
        assert_eq!(
            events.last().unwrap()["response"]["error"]["code"],
            "bridge_drained"
        );
    }
}
