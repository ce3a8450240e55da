//! Upstreams that say nothing, or nothing that counts (rows 1 to 5).

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::Value;

use crate::client::{Answer, Ask};
use crate::peer;
use crate::way::Way;
use crate::world::{Setup, World};

/// Short windows that healthy turns keep on a busy machine, too.
const SHORT: &str = r#"
[watchdog]
connect_deadline = "500ms"
handshake_patience = "500ms"
response_created_deadline = "400ms"
idle_deadline = "400ms"
request_deadline = "2s"
[http]
first_byte = "400ms"
first_event = "400ms"
between_events = "400ms"
"#;
const LEAST: Duration = Duration::from_millis(400);
/// Several times what any of them takes, for a busy machine; far below for ever.
const MOST: Duration = Duration::from_secs(12);

/// Runs the prompts at once, each in a conversation of its own, and says how each ended and how long it took.
async fn at_once(world: &World, prompts: &[&str], stream: bool) -> Vec<(Answer, Duration)> {
    let turn = async |(number, prompt): (usize, &&str)| {
        let ask = Ask::turn(format!("sim:conv=c{number} sim:{prompt}")).thread(&format!("c{number}"));
        let began = Instant::now();
        let answer = world.ask(&ask.with("stream", stream)).await;
        (answer, began.elapsed())
    };
    join_all(prompts.iter().enumerate().map(turn)).await
}

/// [INV-3] [INV-2] Rows 1, 2 and 3: whatever comes instead of `response.created`, or nothing: at the deadline, and not before,
/// the client has its one error, the upstream has seen one create, and the session is gone.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_counts_comes_before_created() {
    let prompts = [
        ("silent", "eventless"),
        ("pings(every=20ms)", "eventless"),
        ("keepalives(every=20ms)", "events_without_created"),
        ("telemetry(every=20ms)", "events_without_created"),
        ("telemetry(every=390ms)", "events_without_created"),
        ("no_created(n=54, delay=2ms)", "events_without_created"),
        ("no_created(n=1000, delay=5ms)", "events_without_created"),
        ("mute", "eventless"),
    ];
    for stream in [true, false] {
        let world = Setup::new().config(SHORT).start().await;
        let words: Vec<&str> = prompts.iter().map(|(word, _)| *word).collect();
        let answers = at_once(&world, &words, stream).await;
        for (number, ((word, shape), (answer, took))) in prompts.iter().zip(answers).enumerate() {
            let told = (answer.status, answer.error());
            assert_eq!(told, (504, "bridge_response_created_timeout".into()), "{word}");
            assert!((LEAST..MOST).contains(&took), "{word} took {took:?}");
            let creates = world.creates(&format!("c{number}"));
            assert_eq!((creates.websocket, creates.http), (1, 0), "{word}");
            let shapes = world.events("response_created_timeout");
            let of_shape = shapes.iter().filter(|event| event["shape"] == **shape).count();
            let expected = prompts.iter().filter(|(_, known)| known == shape).count();
            assert_eq!(of_shape, expected, "{word}: {shapes:?}");
        }
        world
            .upstream_saw("all sockets closed", |ledger| ledger.sockets_open == 0)
            .await;
        world.quiet().await;
        world.gauge_is("bridge_sessions", "idle", 0).await;
    }
}

/// [INV-3] [HTTP-3] Row 1 over direct HTTP: its own deadlines, for a client that streams.
#[tokio::test(flavor = "multi_thread")]
async fn direct_http_is_silent() {
    let prompts = [
        ("silent", "bridge_first_byte_timeout"),
        ("headers_only", "bridge_first_event_timeout"),
        ("pings(every=20ms)", "bridge_first_event_timeout"),
        ("keepalives(every=20ms)", "bridge_first_event_timeout"),
        ("telemetry(every=20ms)", "bridge_first_event_timeout"),
        ("no_created(n=54, delay=2ms)", "bridge_first_event_timeout"),
    ];
    let world = Way::Direct.setup().config(SHORT).start().await;
    let words: Vec<&str> = prompts.iter().map(|(word, _)| *word).collect();
    let answers = at_once(&world, &words, true).await;
    for (number, ((word, code), (answer, took))) in prompts.iter().zip(answers).enumerate() {
        assert_eq!((answer.status, answer.error().as_str()), (504, *code), "{word}");
        assert!((LEAST..MOST).contains(&took), "{word} took {took:?}");
        assert_eq!(world.creates(&format!("c{number}")).total(), 1, "{word}");
    }
    world
        .upstream_saw("all turns given up", |ledger| {
            let gone = |create: &&responses_bridge::simulator::Create| create.took_ms.is_some();
            ledger.creates.iter().filter(gone).count() == 6
        })
        .await;
    world.quiet().await;
}

/// [HTTP-4] A JSON client hears nothing before the end: only the whole request is judged.
#[tokio::test(flavor = "multi_thread")]
async fn direct_http_is_silent_to_a_json_client() {
    let world = Way::Direct.setup().config(SHORT).start().await;
    let prompts = ["silent", "silent(for=900ms)", "headers_only"];
    let answers = at_once(&world, &prompts, false).await;
    let [(silent, took), (slow, _), (headers, _)] = answers.try_into().unwrap();
    assert_eq!(silent.error(), "bridge_request_deadline");
    assert!((Duration::from_secs(2)..MOST).contains(&took), "{took:?}");
    slow.completed();
    assert_eq!(headers.error(), "bridge_request_deadline");
    world.quiet().await;
}

/// [INV-3] [SES-4] Row 1, later: the stream goes quiet after `response.created`. The committed client gets its one terminal.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_comes_after_created() {
    let prompts = [
        "pause(after=0, for=ever)",
        "pause(after=1, for=ever, with=pings, every=20ms)",
        "pause(after=1, for=ever, with=telemetry, every=20ms)",
        "pause(after=99, for=ever)",
        "terminal(shape=none)",
        "mute(after=1)",
    ];
    for way in Way::BOTH {
        let world = way.setup().config(SHORT).start().await;
        for (word, (answer, took)) in prompts.iter().zip(at_once(&world, &prompts, true).await) {
            assert_eq!(answer.failure(), "bridge_idle_timeout", "{way:?} {word}");
            assert!((LEAST..MOST).contains(&took), "{way:?} {word} took {took:?}");
        }
        assert_eq!(world.events("idle_timeout").len(), prompts.len(), "{way:?}");
        // It is no silence before `response.created`: nobody pays for it later.
        assert_eq!(world.events("quarantine_opened"), Vec::<Value>::new(), "{way:?}");
        world.quiet().await;
    }
}

/// [SES-4] Keepalives reset the idle deadline, and the whole request bounds even them.
#[tokio::test(flavor = "multi_thread")]
async fn keepalives_for_ever() {
    let prompts = [
        "pause(after=1, for=900ms, with=keepalives, every=30ms)",
        "pause(after=1, for=ever, with=keepalives, every=30ms)",
    ];
    let keepalives = async |way: Way| {
        let world = way.setup().config(SHORT).start().await;
        let [(lives, _), (ends, took)] = at_once(&world, &prompts, true).await.try_into().unwrap();
        lives.completed();
        assert_eq!(ends.failure(), "bridge_request_deadline", "{way:?}");
        assert!((Duration::from_secs(2)..MOST).contains(&took), "{way:?} {took:?}");
        world.quiet().await;
    };
    join_all(Way::BOTH.map(keepalives)).await;
}

/// [INV-3] Peers that take a connection and say nothing, not even to the upgrade: the call ends all the same.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_there() {
    let hole = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", hole.local_addr().unwrap());
    let provider = format!(
        "[providers.openai]\nbase_url = \"{base}\"\n\
         [[providers.openai.accounts]]\nname = \"main\"\ncredential = \"client\"\n"
    );
    let world = Setup::new().config(&provider).config(SHORT).start().await;
    let answer = world.ask(&Ask::turn("hello")).await;
    assert_eq!(
        (answer.status, answer.error().as_str()),
        (504, "bridge_first_byte_timeout")
    );
    drop(hole);
    let answer = world.ask(&Ask::turn("hello")).await;
    assert_eq!(
        (answer.status, answer.error().as_str()),
        (502, "bridge_connect_failed")
    );
    let finished = world.events("turn_finished");
    assert_eq!(
        (&finished[0]["sent"], &finished[1]["sent"]),
        (&true.into(), &false.into()),
        "where no connection was made nothing was sent"
    );
    assert_eq!(world.events("turn_sent").len(), 1);
    world.quiet().await;
}

/// [INV-5] [SES-3] Row 4: created just before the deadline is in time. One start that is too slow costs its turn and its
/// session; the late `response.created` reaches nobody, and other keys stay on their sessions.
#[tokio::test(flavor = "multi_thread")]
async fn one_slow_start() {
    let window = "[quarantine]\nwindow = \"300ms\"\nmax_window = \"1s\"";
    let single = "[session]\nmax_per_key = 1";
    let setup = Setup::new().config(SHORT).config(window).config(single);
    let world = setup.start().await;
    let healthy = async |key: &str| {
        let answer = world
            .ask(&Ask::turn(format!("sim:conv={key} hello")).thread(key))
            .await;
        answer.completed();
    };
    healthy("other").await;
    let slow = Ask::turn("sim:conv=slow sim:created_after(delay=200ms)").thread("slow");
    world.ask(&slow).await.completed();
    let slower = Ask::turn("sim:conv=slow sim:created_after(delay=800ms)").thread("slow");
    let (answer, ()) = tokio::join!(world.ask(&slower), healthy("other"));
    assert_eq!(answer.error(), "bridge_response_created_timeout");
    // Its session was the one that had served before, and is closed.
    assert_eq!(world.sockets("slow")[0], world.sockets("slow")[1]);
    healthy("slow").await;
    assert_eq!(
        world.sockets("slow")[2],
        None,
        "the key in quarantine goes by direct HTTP"
    );
    healthy("other").await;
    healthy("new").await;
    assert_eq!(world.creates("other").http + world.creates("new").http, 0);
    let others = world.sockets("other");
    assert!(others.iter().all(|socket| *socket == others[0]), "{others:?}");
    tokio::time::sleep(Duration::from_millis(320)).await;
    healthy("slow").await;
    assert!(
        world.sockets("slow")[3].is_some(),
        "the probe takes a fresh session"
    );
    let told = [
        "response_created_timeout",
        "session_retired",
        "quarantine_opened",
        "quarantine_http_fallback",
        "quarantine_probe",
        "quarantine_cleared",
        "breaker_changed",
    ];
    assert_eq!(
        world.sequence(&told),
        told[..6],
        "one incident, told in its order"
    );
    world.quiet().await;
}

/// [INV-4] [QUA-2] Row 5: silent on the session, silent on the other path, healthy. Each is a call of its own and sends once;
/// the retry takes another path at once.
#[tokio::test(flavor = "multi_thread")]
async fn silent_silent_healthy() {
    let conversation = async |stream: bool| {
        let world = Setup::new().config(SHORT).start().await;
        let ask = Ask::turn("sim:conv=a sim:silent(times=2)")
            .thread("a")
            .with("stream", stream);
        let codes = [world.ask(&ask).await.error(), world.ask(&ask).await.error()];
        let second = if stream {
            "bridge_first_byte_timeout"
        } else {
            "bridge_request_deadline"
        };
        assert_eq!(codes, ["bridge_response_created_timeout", second]);
        world.ask(&ask).await.completed();
        assert_eq!(world.sockets("a").len(), 3);
        assert_eq!(world.creates("a").http, 2);
        let bodies: Vec<_> = world.upstream.look(|ledger| {
            ledger
                .creates_of("a")
                .map(|create| create.previous_response_id.clone())
                .collect()
        });
        assert_eq!(bodies, [None, None, None], "no anchor of the bridge's own");
        world.quiet().await;
    };
    join_all([true, false].map(conversation)).await;
}

/// [INV-5] [QUA-10] [QUA-12] Row 8: three silent keys make the account's sockets suspect, never the account: all goes by direct HTTP,
/// and the sockets are probed and come back by themselves.
#[tokio::test(flavor = "multi_thread")]
async fn three_silent_keys() {
    let window = "[quarantine]\nwindow = \"300ms\"\nmax_window = \"1s\"";
    let world = Setup::new().config(SHORT).config(window).start().await;
    for (answer, _) in at_once(&world, &["silent", "silent", "silent"], true).await {
        assert_eq!(answer.error(), "bridge_response_created_timeout");
    }
    let turn = async |key: &str| {
        let answer = world
            .ask(&Ask::turn(format!("sim:conv={key} hello")).thread(key))
            .await;
        answer.completed();
        *world.sockets(key).last().unwrap()
    };
    assert_eq!(
        turn("fresh").await,
        None,
        "a key without blame goes by direct HTTP, too"
    );
    tokio::time::sleep(Duration::from_millis(350)).await;
    assert!(turn("fresh").await.is_some(), "the probe");
    assert!(turn("newer").await.is_some(), "back to sessions");
    assert!(turn("c1").await.is_some(), "the keys come back, too");
    let changes = world.events("breaker_changed");
    let reasons: Vec<_> = changes
        .iter()
        .map(|event| event["reason"].as_str().unwrap())
        .collect();
    assert_eq!(reasons, ["opened", "half_open", "closed"]);
    world.quiet().await;
}

/// [INV-3] [SES-4] [HTTP-3] Bytes that never make an event are no progress, before `response.created` and after it, on either transport.
#[tokio::test(flavor = "multi_thread")]
async fn a_trickle() {
    let turn = async |(way, accepted): (Way, bool)| {
        let listener = peer::listen().await;
        let world = peer::setup(&listener, way).config(SHORT).start().await;
        let ask = Ask::turn("hello");
        let trickle = async {
            let mut upstream = peer::Upstream::accept(&listener, way).await;
            if accepted {
                upstream
                    .send(r#"{"type":"response.created","response":{"id":"resp_1"}}"#)
                    .await;
            }
            upstream.trickle().await;
        };
        let (answer, ()) = tokio::join!(world.ask(&ask), trickle);
        match (way, accepted) {
            (_, true) => assert_eq!(answer.failure(), "bridge_idle_timeout", "{way:?}"),
            (Way::Socket, _) => assert_eq!(answer.error(), "bridge_response_created_timeout"),
            (Way::Direct, _) => assert_eq!(answer.error(), "bridge_first_event_timeout"),
        }
        world.quiet().await;
    };
    let all = Way::BOTH.into_iter().flat_map(|way| [(way, false), (way, true)]);
    join_all(all.map(turn)).await;
}

/// [HTTP-3] [HTTP-5] An error status whose body never ends is bounded, too.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_never_ends() {
    let listener = peer::listen().await;
    let world = peer::setup(&listener, Way::Direct).config(SHORT).start().await;
    let upstream = async {
        let head =
            "HTTP/1.1 429 Slow down\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"err";
        peer::post(&listener, head).await
    };
    let ask = Ask::turn("hello");
    let (answer, _open) = tokio::join!(world.ask(&ask), upstream);
    assert!(answer.status == 429 || answer.status == 504, "{answer:?}");
    answer.error();
    world.quiet().await;
}
