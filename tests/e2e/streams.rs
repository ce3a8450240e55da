//! What a streaming client sees while it waits, and what becomes of one that does not read (rows 13, 15, 16 and 18).

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::{SinkExt, StreamExt};
use responses_bridge::simulator::Conclusion;
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Answer, Ask, End, Piece};
use crate::peer;
use crate::way::Way;
use crate::world::Setup;

fn names(answer: &Answer) -> Vec<String> {
    answer.events().into_iter().map(|event| event.name).collect()
}

/// [SES-8] [SES-7] Events before `response.created` commit nothing, and are delivered right after it, in their order.
#[tokio::test(flavor = "multi_thread")]
async fn held_events_follow_created() {
    for way in Way::BOTH {
        let world = way.setup().start().await;
        let ask = Ask::turn("sim:telemetry(for=300ms, every=40ms) sim:keepalives(for=50ms, every=20ms)");
        let began = Instant::now();
        let reply = world.open(&ask).await;
        assert!(
            began.elapsed() >= Duration::from_millis(300),
            "the status line came too early"
        );
        let answer = reply.finish().await;
        answer.completed();
        let names = names(&answer);
        let held = names
            .iter()
            .take_while(|name| *name != "response.in_progress")
            .count();
        assert_eq!(names[0], "response.created");
        assert!(held >= 6, "{names:?}");
        let kinds = names[1..held].partition_point(|name| name == "codex.rate_limits");
        assert!(
            kinds >= 4 && names[1 + kinds..held].iter().all(|name| name == "keepalive"),
            "{names:?}"
        );
        // The ChatGPT backend always begins like this.
        let login = Ask::turn("hello")
            .to("/backend-api/codex/responses")
            .header("chatgpt-account-id", "a");
        let answer = world.ask(&login).await;
        assert_eq!(answer.events()[0].name, "response.created");
        answer.completed();
        world.quiet().await;
    }
}

/// [SES-8] [INV-7] More events before `response.created` than are kept end the turn.
#[tokio::test(flavor = "multi_thread")]
async fn too_much_before_created() {
    for way in Way::BOTH {
        let world = way.setup().start().await;
        let answer = world.ask(&Ask::turn("sim:no_created(n=4000, delay=0ms)")).await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (502, "bridge_hold_overflow")
        );
        world.ask(&Ask::turn("next")).await.completed();
        world.quiet().await;
    }
}

/// [SES-7] [SES-11] `commit_after`: the status line and a comment come at that time and not before, then a comment per heartbeat,
/// until the response begins.
#[tokio::test(flavor = "multi_thread")]
async fn commit_and_heartbeats() {
    for way in Way::BOTH {
        let world = way
            .setup()
            .config("[server]\ncommit_after = \"200ms\"\nheartbeat = \"100ms\"")
            .start()
            .await;
        let began = Instant::now();
        let mut reply = world.open(&Ask::turn("sim:created_after(delay=900ms)")).await;
        let committed = began.elapsed();
        assert!(committed >= Duration::from_millis(200), "{committed:?}");
        assert!(committed < Duration::from_millis(850), "{committed:?}");
        assert_eq!(reply.status, 200);
        assert_eq!(reply.headers["cache-control"], "no-cache, no-transform");
        assert_eq!(reply.headers["x-accel-buffering"], "no");
        assert!(reply.headers.contains_key("x-request-id"));
        let mut comments = 0;
        while reply.piece().await == Some(Piece::Comment) {
            comments += 1;
        }
        assert!((3..=8).contains(&comments), "{comments} comments in 700 ms");
        reply.finish().await.completed();
        // Without the wait nothing is between the head and the events.
        let answer = world.ask(&Ask::turn("hello")).await;
        assert_eq!(
            (answer.comments(), answer.events()[0].name.as_str()),
            (0, "response.created")
        );
        world.quiet().await;
    }
}

/// [SES-11] [SES-4] Row 13: the upstream only pings for a while, or is quiet, and then completes. The turn lives; the client hears
/// comments, which are no progress, and no pings of the upstream's.
#[tokio::test(flavor = "multi_thread")]
async fn quiet_and_back() {
    for way in Way::BOTH {
        let world = way
            .setup()
            .config("[server]\nheartbeat = \"100ms\"")
            .start()
            .await;
        let turn = async |filler| {
            let words = format!("sim:pause(after=1, for=700ms, with={filler}, every=50ms)");
            let answer = world.ask(&Ask::turn(words)).await;
            answer.completed();
            let quiet = ["nothing", "pings"].contains(&filler);
            let comments = answer.comments();
            assert_eq!((3..=9).contains(&comments), quiet, "{way:?} {filler}: {comments}");
        };
        join_all(["nothing", "pings", "telemetry", "keepalives"].map(turn)).await;
        world.quiet().await;
    }
}

/// [SES-16] [INV-7] Row 16: the client stops reading. Pings are answered all the while; what comes is kept up to the client's buffer;
/// then the client's connection is torn and the upstream's socket closed.
#[tokio::test(flavor = "multi_thread")]
async fn pings_are_answered_while_the_client_does_not_read() {
    let listener = peer::listen().await;
    let world = peer::setup(&listener, Way::Socket).start().await;
    let ask = Ask::turn("hello");
    let reply = ask.send(world.address);
    let (mut reply, mut socket) = tokio::join!(reply, peer::create(&listener));
    let created = r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1"}}"#;
    socket.send(Message::text(created)).await.unwrap();
    reply.read_head().await;
    let delta = format!(
        r#"{{"type":"response.output_text.delta","sequence_number":1,"delta":"{}"}}"#,
        "x".repeat(64 << 10)
    );
    let mut pongs = 0;
    let closed = loop {
        for _ in 0..4 {
            // An error is the bridge's close, which reading tells better.
            let _ = socket.feed(Message::text(&*delta)).await;
        }
        let _ = socket.send(Message::Ping("are you there".into())).await;
        let answer = tokio::time::timeout(Duration::from_secs(10), socket.next());
        match answer.await.expect("neither a pong nor a close") {
            Some(Ok(Message::Pong(_))) => pongs += 1,
            other => break other,
        }
        assert!(pongs < 200, "50 MiB, and nobody minds");
    };
    // 4 MiB wait in the buffer at least, at 256 KiB per ping.
    assert!(pongs >= 14, "{pongs} pongs");
    assert!(
        matches!(closed, Some(Ok(Message::Close(_)) | Err(_)) | None),
        "{closed:?}"
    );
    let answer = reply.finish().await;
    assert_eq!(answer.end, End::Torn);
    assert!(!answer.text().contains("response.completed"));
    world.saw("slow_client", 1).await;
    world.quiet().await;
}

/// [SES-16] [INV-7] Row 16: a client that takes no byte for `slow_client`, with bytes waiting, has its turn ended, by either transport.
/// One that reads slowly, but reads, is served.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read() {
    let delta = format!(
        r#"{{"type":"response.output_text.delta","sequence_number":1,"delta":"{}"}}"#,
        "x".repeat(256 << 10)
    );
    let client = async |(way, reads): (Way, bool)| {
        let listener = peer::listen().await;
        let windows = "[server]\nclient_buffer = \"64MiB\"\n[watchdog]\nslow_client = \"500ms\"";
        let world = peer::setup(&listener, way).config(windows).start().await;
        let sent = Ask::turn("hello").narrow();
        let (mut reply, mut upstream) =
            tokio::join!(sent.send(world.address), peer::Upstream::accept(&listener, way));
        let send = async {
            let mut number = 0;
            upstream
                .send(r#"{"type":"response.created","response":{"id":"resp_1"}}"#)
                .await;
            // 10 MiB in a second and a half: more than the connection itself holds.
            while number < 40 && upstream.send(&delta).await {
                number += 1;
                tokio::time::sleep(Duration::from_millis(35)).await;
            }
            upstream
                .send(r#"{"type":"response.completed","response":{"id":"resp_1","status":"completed"}}"#)
                .await;
        };
        let read = async {
            reply.read_head().await;
            if reads {
                while reply.piece().await.is_some() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            } else {
                world.saw("slow_client", 1).await;
            }
        };
        tokio::join!(send, read);
        let answer = reply.finish().await;
        let (end, finished) = (answer.end, world.events("turn_finished")[0]["outcome"].clone());
        match reads {
            true => assert_eq!((end, finished), (End::Clean, "completed".into()), "{way:?}"),
            false => assert_eq!((end, finished), (End::Torn, "slow_client".into()), "{way:?}"),
        }
        world.quiet().await;
    };
    let all = Way::BOTH.into_iter().flat_map(|way| [(way, false), (way, true)]);
    join_all(all.map(client)).await;
}

/// [INV-7] [SES-16] What fits into the buffer is kept for a client that only pauses, also beyond the turn's end.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_of_the_client() {
    for way in Way::BOTH {
        let world = way
            .setup()
            .config("[server]\nclient_buffer = \"800KiB\"")
            .start()
            .await;
        let reply = world.open(&Ask::turn("sim:big(size=100KiB)").narrow()).await;
        world.gauge_is("bridge_running_turns", "", 0).await;
        reply.finish().await.completed();
        world.quiet().await;
    }
}

/// [INV-8] Every event's bytes are those that the upstream sent: on the session as over HTTP, in any form of SSE.
#[tokio::test(flavor = "multi_thread")]
async fn events_come_as_they_were_sent() {
    let world = Way::Direct.setup().start().await;
    let plain = world
        .ask(&Ask::turn("sim:conv=plain sim:text(n=20, size=50)"))
        .await;
    let shape = |answer: &Answer| -> Vec<(String, usize)> {
        let events = answer.events().into_iter();
        events.map(|event| (event.name, event.raw.len())).collect()
    };
    for form in [
        "sse(eol=crlf)",
        "sse(eol=cr)",
        "sse(bom=true)",
        "sse(comments=true)",
        "sse(ids=true)",
        "sse(chunk=1)",
        "sse(chunk=3, eol=crlf, comments=true, ids=true, bom=true)",
        "sse(chunk=7, eol=cr)",
    ] {
        let answer = world
            .ask(&Ask::turn(format!(
                "sim:conv=plain sim:text(n=20, size=50) sim:{form}"
            )))
            .await;
        assert_eq!(shape(&answer), shape(&plain), "{form}");
        assert_eq!(
            answer.comments(),
            0,
            "{form}: the upstream's comments are its own"
        );
        answer.completed();
        assert!(answer.output().contains("東京 🙂"), "{form}");
    }
    let world = Way::Socket.setup().start().await;
    for form in [
        "fragments(size=1)",
        "fragments(size=7, pings=true)",
        "type_last",
        "slow_send(rate=40KB)",
    ] {
        let answer = world
            .ask(&Ask::turn(format!(
                "sim:conv=plain sim:text(n=20, size=50) sim:{form}"
            )))
            .await;
        assert_eq!(shape(&answer), shape(&plain), "{form}");
        answer.completed();
    }
    // Pretty-printed JSON is joined to one line, and is the same JSON.
    for way in Way::BOTH {
        let world = way.setup().start().await;
        let answer = world
            .ask(&Ask::turn("sim:conv=plain sim:text(n=20, size=50) sim:pretty"))
            .await;
        let kinds = |answer: &Answer| names(answer);
        assert_eq!(kinds(&answer), kinds(&plain));
        answer.completed();
    }
}

/// [INV-2] [SES-30] Row 37: terminal and close in one write, and a socket that is closed, ended or reset right after a terminal: the turn is
/// complete.
#[tokio::test(flavor = "multi_thread")]
async fn terminal_and_close() {
    for way in Way::BOTH {
        let world = way.setup().start().await;
        for words in [
            "terminal_close",
            "terminal_close(code=1011)",
            "terminal_close(code=1001)",
            "terminal(shape=done) sim:terminal_close",
            "terminal(shape=incomplete) sim:terminal_close",
            "chatgpt sim:terminal_close",
        ] {
            // A JSON answer over HTTP has no terminal before the close: it would be cut.
            for stream in [true, way == Way::Direct] {
                let ask = Ask::turn(format!("sim:conv=a sim:{words}"))
                    .thread("a")
                    .with("stream", stream);
                let answer = world.ask(&ask).await;
                assert_eq!(
                    (answer.status, answer.end),
                    (200, End::Clean),
                    "{way:?} {words}: {answer:?}"
                );
                if stream {
                    assert_ne!(answer.terminal().name, "response.failed");
                }
            }
        }
        world
            .upstream_saw("twelve done", |ledger| {
                let done = [Conclusion::Completed, Conclusion::Incomplete];
                ledger
                    .creates_of("a")
                    .filter(|create| done.contains(&create.conclusion))
                    .count()
                    == 12
            })
            .await;
        world.quiet().await;
    }
}

/// [INV-2] The connection goes on after a streamed answer: it was framed to its end.
#[tokio::test(flavor = "multi_thread")]
async fn the_body_ends_with_the_terminal() {
    let world = Setup::new().start().await;
    let answer = world.ask(&Ask::turn("hello")).await;
    let last = answer.pieces().pop().unwrap();
    assert!(matches!(last, Piece::Event(event) if event.name == "response.completed"));
    assert_eq!(answer.headers["transfer-encoding"], "chunked");
}
