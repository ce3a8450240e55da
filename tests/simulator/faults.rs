//! What goes wrong with turns.

use std::time::Duration;

use responses_bridge::simulator::Conclusion;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::client::*;

const SHORT: Duration = Duration::from_millis(150);

/// [SIM-3] [SIM-7] The first creates of a conversation are silent, later ones healthy; other conversations have their own count.
#[tokio::test]
async fn silent_for_the_first_creates() {
    let simulator = simulator("").await;
    for (conversation, answers) in [("a", false), ("a", false), ("b", false), ("a", true)] {
        let mut socket = Socket::open(&simulator).await;
        socket
            .send(ask(&format!("sim:conv={conversation} sim:silent(times=2)")))
            .await;
        if answers {
            assert_eq!(socket.event().await["type"], "response.created");
        } else {
            assert!(socket.is_quiet(SHORT).await);
        }
    }
    assert_eq!(simulator.ledger().conversation("a").total(), 3);
}

/// [SIM-3] A fault for one transport leaves the other healthy.
#[tokio::test]
async fn faults_of_one_transport() {
    let simulator = simulator("").await;
    let prompt = "sim:silent(on=ws)";
    let mut socket = Socket::open(&simulator).await;
    socket.send(ask(prompt)).await;
    assert!(socket.is_quiet(SHORT).await);
    assert_eq!(post_json(&simulator, "/v1/responses", &ask(prompt)).await.0, 200);
}

/// [SIM-3] An unknown marker is an error that names the nearest word.
#[tokio::test]
async fn unknown_markers_are_errors() {
    let simulator = simulator("").await;
    let (status, error) = post_json(&simulator, "/v1/responses", &ask("sim:slient")).await;
    assert_eq!(status, 400);
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .contains("did you mean `silent`")
    );
}

/// [SIM-6] On a socket an error has the headers that were asked for, and those of a 429, where nothing says its shape.
#[tokio::test]
async fn headers_of_an_error_frame() {
    let simulator = simulator("").await;
    let mut socket = Socket::open(&simulator).await;
    socket.send(ask("sim:error(status=429, retry_after=30)")).await;
    let headers = json!({"retry-after": 30, "x-ratelimit-remaining-requests": 0});
    assert_eq!(socket.event().await["headers"], headers);
    socket.send(ask("sim:error(status=400)")).await;
    assert!(socket.event().await.get("headers").is_none());
}

/// [SIM-4] Rules match the conversation, the transport and the number of the create, and a marker wins over them.
#[tokio::test]
async fn rules() {
    let script = r#"
        [[rule]]
        match = { conversation = "a", transport = "http", nth = 2 }
        behave = "error(status=503)"
        [[rule]]
        match = { model = "gpt-4" }
        behave = "error(status=404, times=1)"
    "#;
    let simulator = simulator(script).await;
    let status = async |model: &str, prompt: &str| {
        post_json(
            &simulator,
            "/v1/responses",
            &json!({"model": model, "input": prompt}),
        )
        .await
        .0
    };
    assert_eq!(status("gpt-5", "sim:conv=a").await, 200);
    assert_eq!(status("gpt-5", "sim:conv=a").await, 503);
    assert_eq!(status("gpt-5", "sim:conv=a").await, 200);
    assert_eq!(status("gpt-5", "sim:conv=b").await, 200);
    assert_eq!(status("gpt-4", "sim:conv=b").await, 404);
    assert_eq!(status("gpt-4", "sim:conv=b").await, 200);
    assert_eq!(status("gpt-4", "sim:conv=c sim:error(status=409)").await, 409);
}

/// [SIM-7] Quiet turns with something that is not progress.
#[tokio::test]
async fn fillers() {
    let simulator = simulator("").await;
    for (marker, filler) in [
        ("telemetry(every=10ms, for=100ms)", "codex.rate_limits"),
        ("keepalives(every=10ms, for=100ms)", "keepalive"),
    ] {
        let mut socket = Socket::open(&simulator).await;
        let events = socket.turn(ask(&format!("sim:{marker}"))).await;
        let before = events
            .iter()
            .take_while(|event| event["type"] != "response.created")
            .collect::<Vec<_>>();
        assert!(
            before.len() >= 2 && before.iter().all(|event| event["type"] == filler),
            "{marker}: {before:?}"
        );
    }
    let mut socket = Socket::open(&simulator).await;
    socket.send(ask("sim:pings(every=10ms)")).await;
    assert_eq!((socket.next().await, socket.next().await), (Got::Ping, Got::Ping));
    let mut socket = Socket::open(&simulator).await;
    socket.send(ask("sim:no_created(n=54, delay=0)")).await;
    for _ in 0..54 {
        assert_eq!(socket.event().await["type"], "response.output_text.delta");
    }
    assert!(socket.is_quiet(SHORT).await);
}

/// [SIM-7] A late created, and a pause in mid-stream, last as long as was asked for.
#[tokio::test]
async fn delays() {
    let simulator = simulator("").await;
    let mut socket = Socket::open(&simulator).await;
    let started = Instant::now();
    socket
        .send(ask(
            "sim:created_after(delay=100ms) sim:pause(after=1, for=100ms)",
        ))
        .await;
    socket.event().await;
    assert!(started.elapsed() >= Duration::from_millis(100));
    while socket.event().await["type"] != "response.completed" {}
    assert!(started.elapsed() >= Duration::from_millis(200));
}

/// [SIM-8] Sockets end where they were to end, and the client sees how.
#[tokio::test]
async fn ends_of_sockets() {
    let simulator = simulator("").await;
    for (marker, deltas, end) in [
        ("close(code=1011)", None, Got::Close(Some(1011))),
        ("close(code=1013, after=2)", Some(2), Got::Close(Some(1013))),
        ("fin(after=1)", Some(1), Got::Gone),
        ("cut(after=1)", Some(1), Got::Gone),
        ("truncated(after=2)", Some(2), Got::Close(Some(1000))),
        ("reset", None, Got::Gone),
        ("age_limit", None, Got::Close(Some(1000))),
    ] {
        let mut socket = Socket::open(&simulator).await;
        socket.send(ask(&format!("sim:{marker}"))).await;
        let (kinds, seen) = socket.until_the_end().await;
        assert_eq!(seen, end, "{marker}");
        let seen = kinds
            .iter()
            .filter(|kind| *kind == "response.output_text.delta")
            .count();
        assert_eq!(
            deltas,
            kinds.contains(&"response.created".into()).then_some(seen),
            "{marker}"
        );
        assert!(!kinds.contains(&"response.completed".to_owned()), "{marker}");
    }
    assert!(simulator.until(LIMIT, |ledger| ledger.sockets_open == 0).await);
    let broken = |ledger: &responses_bridge::simulator::Ledger| {
        ledger
            .creates
            .iter()
            .filter(|create| create.conclusion == Conclusion::Broken)
            .count()
    };
    assert_eq!(
        simulator.look(broken),
        6,
        "all but the age limit, which is an error"
    );
}

/// [SIM-8] The terminal and the close frame arrive in one read.
#[tokio::test]
async fn a_terminal_and_its_close_in_one_write() {
    let simulator = simulator("").await;
    let mut stream = TcpStream::connect(simulator.addr()).await.unwrap();
    let handshake = "GET /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                     sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(handshake.as_bytes()).await.unwrap();
    let body = ask("sim:terminal_close(code=1000) sim:pause(after=99, for=100ms)");
    let text = json!({"type": "response.create", "model": body["model"], "input": body["input"]}).to_string();
    let mut frame = vec![0x81, 0x80 | u8::try_from(text.len()).unwrap(), 0, 0, 0, 0];
    frame.extend_from_slice(text.as_bytes());
    stream.write_all(&frame).await.unwrap();
    loop {
        let mut read = vec![0; 1 << 20];
        let length = stream.read(&mut read).await.unwrap();
        assert!(length > 0, "the socket ended without a terminal");
        let read = &read[..length];
        if read.windows(18).any(|part| part == b"response.completed") {
            assert_eq!(
                &read[length - 4..],
                [0x88, 2, 3, 232],
                "a close frame with 1000 in the same read"
            );
            return;
        }
    }
}

/// [SIM-8] An idle socket ends after its turn; late frames arrive while the next turn runs.
#[tokio::test]
async fn after_the_terminal() {
    let simulator = simulator("").await;
    for (how, end) in [
        ("close, code=1012", Got::Close(Some(1012))),
        ("fin", Got::Gone),
        ("reset", Got::Gone),
    ] {
        let mut socket = Socket::open(&simulator).await;
        assert_eq!(
            kinds(
                &socket
                    .turn(ask(&format!("sim:afterwards(do={how}, delay=30ms)")))
                    .await
            )[0],
            "created"
        );
        assert_eq!(socket.next().await, end, "{how}");
    }
    let mut socket = Socket::open(&simulator).await;
    socket.turn(ask("sim:late(n=1, delay=50ms)")).await;
    socket.send(ask("sim:created_after(delay=200ms)")).await;
    let late = socket.event().await;
    assert_eq!(
        (&late["type"], &late["item_id"]),
        (&"response.output_text.delta".into(), &"msg_stray".into())
    );
    assert_eq!(socket.event().await["type"], "response.created");
}

/// [SIM-8] A mute socket answers no ping, and the client's close is seen all the same.
#[tokio::test]
async fn a_mute_socket() {
    use futures_util::SinkExt;
    let simulator = simulator("").await;
    let mut socket = Socket::open(&simulator).await;
    socket.send(ask("sim:mute(after=1)")).await;
    while socket.event().await["type"] != "response.output_text.delta" {}
    socket
        .0
        .send(tokio_tungstenite::tungstenite::Message::Ping("p".into()))
        .await
        .unwrap();
    assert!(
        tokio::time::timeout(SHORT, socket.next()).await.is_err(),
        "not even a pong"
    );
    drop(socket);
    assert!(simulator.until(LIMIT, |ledger| ledger.sockets_open == 0).await);
}

/// [SIM-9] Odd forms on a socket still are the same events.
#[tokio::test]
async fn odd_frames() {
    let simulator = simulator("").await;
    let mut socket = Socket::open(&simulator).await;
    let plain = kinds(&socket.turn(ask("sim:text(n=2, size=40)")).await);
    let odd = socket
        .turn(ask(
            "sim:text(n=2, size=40) sim:pretty sim:type_last sim:fragments(size=7)",
        ))
        .await;
    assert_eq!(kinds(&odd), plain);
    let text = odd
        .iter()
        .filter_map(|event| event["delta"].as_str())
        .collect::<String>();
    assert!(text.contains('東'), "fragments cut through characters: {text}");
}

/// [SIM-9] Slow sending takes its time.
#[tokio::test]
async fn slow_sending() {
    let simulator = simulator("").await;
    let mut socket = Socket::open(&simulator).await;
    let started = Instant::now();
    let events = socket.turn(ask("sim:slow_send(rate=20KB)")).await;
    let bytes: usize = events.iter().map(|event| event.to_string().len()).sum();
    let least = Duration::from_secs_f64(bytes as f64 / 20_000.0 * 0.8);
    assert!(
        started.elapsed() >= least,
        "{bytes} bytes in {:?}",
        started.elapsed()
    );
}

/// [SIM-9] Slow reading holds the client up, on a socket and over HTTP.
#[tokio::test]
async fn slow_reading() {
    let script = "[[upgrade]]\ndo = \"slow_read(rate=4MB)\"\n[[rule]]\nbehave = \"slow_read(rate=4MB)\"";
    let simulator = simulator(script).await;
    let body = ask(&"x".repeat(1 << 20));
    let mut socket = Socket::open(&simulator).await;
    let started = Instant::now();
    assert_eq!(kinds(&socket.turn(body.clone()).await)[0], "created");
    assert!(
        started.elapsed() >= Duration::from_millis(200),
        "{:?}",
        started.elapsed()
    );
    let started = Instant::now();
    assert_eq!(post_json(&simulator, "/v1/responses", &body).await.0, 200);
    assert!(
        started.elapsed() >= Duration::from_millis(200),
        "{:?}",
        started.elapsed()
    );
}

/// [SIM-9] One large delta arrives whole.
#[tokio::test]
async fn a_big_delta() {
    let simulator = simulator("").await;
    let mut socket = Socket::open(&simulator).await;
    let events = socket.turn(ask("sim:big(size=2MiB)")).await;
    let delta = events.iter().find_map(|event| event["delta"].as_str()).unwrap();
    assert_eq!(delta.len(), 2 << 20);
}
