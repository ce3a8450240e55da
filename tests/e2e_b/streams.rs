//! What a client sees of a stream: large events, their tempo, heartbeats, terminals of odd shapes.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::client::{Ask, Piece};
use crate::shared::{HTTP_ONLY, both_transports};
use crate::world::Setup;

/// [INV-8] row 28: one delta of 2 MiB, and one that is larger than the whole client buffer, arrive byte for byte at a
/// client that reads; streamed and as one object.
#[tokio::test]
async fn a_large_event_is_no_fault() {
    for world in both_transports("[server]\nclient_buffer = \"256KiB\"").await {
        for size in ["2MiB", "3MiB"] {
            let prompt = format!("sim:conv=large sim:big(size={size})");
            let answer = world.ask(&Ask::turn(&prompt)).await;
            let text = answer.output();
            let bytes = size[..1].parse::<usize>().unwrap() << 20;
            assert!(text.len() >= bytes, "{} of {bytes}", text.len());
            let whole = answer.completed()["output"][0]["content"][0]["text"]
                .as_str()
                .unwrap()
                .to_owned();
            assert!(whole == text);
            let object = world.ask(&Ask::turn(&prompt).json()).await.completed();
            assert_eq!(
                object["output"][0]["content"][0]["text"].as_str().unwrap().len(),
                text.len()
            );
        }
    }
}

/// [INV-8] A burst that is larger than the client buffer, at once, is no fault of a client that reads.
#[tokio::test]
async fn a_burst_does_not_overrun_a_client_that_reads() {
    for world in both_transports("[server]\nclient_buffer = \"256KiB\"").await {
        let prompt = "sim:conv=burst sim:burst(n=100, size=16KiB)";
        let answer = world.ask(&Ask::turn(prompt)).await;
        assert!(answer.output().len() >= 99 * 16 * 1024);
        answer.completed();
    }
}

/// [INV-3] row 28: a line without an end is an explicit error beyond a high bound, not memory without a bound.
#[tokio::test]
async fn an_endless_line_is_an_explicit_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = HTTP_ONLY.replace(
        "{openai}",
        &format!("http://{}/v1", listener.local_addr().unwrap()),
    );
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 64 * 1024];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: {\"a\":\"";
        stream.write_all(head.as_bytes()).await.unwrap();
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..66 {
            if stream.write_all(&chunk).await.is_err() {
                return;
            }
        }
        std::future::pending().await
    });
    let world = Setup::new().config(&config).start().await;
    let answer = world.ask(&Ask::turn("hello")).await;
    assert_eq!(
        (answer.status, answer.error().as_str()),
        (502, "bridge_upstream_protocol")
    );
}

/// [SES-7] row 29: events leave as they come, not in batches, and no proxy is invited to buffer them.
#[tokio::test]
async fn events_are_flushed_as_they_come() {
    for world in both_transports("").await {
        let ask = Ask::turn("sim:conv=tempo sim:text(n=40, delay=10ms)");
        let mut reply = world.open(&ask).await;
        assert_eq!(reply.headers["cache-control"], "no-cache, no-transform");
        assert_eq!(reply.headers["x-accel-buffering"], "no");
        let mut arrivals = Vec::new();
        while let Some(event) = reply.event().await {
            if event.name == "response.output_text.delta" {
                arrivals.push(Instant::now());
            }
        }
        assert_eq!(arrivals.len(), 40);
        let apart = |pair: &[Instant]| pair[1] - pair[0] > Duration::from_millis(3);
        let wakes = arrivals.windows(2).filter(|pair| apart(pair)).count();
        // With Nagle on, or buffered, they come in groups of four and more.
        assert!(wakes >= 20, "40 events came in {wakes} groups");
    }
}

/// A proxy that cuts a connection from which nothing came for `idle`.
async fn impatient_proxy(to: SocketAddr, idle: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_bridge, mut to_bridge) = TcpStream::connect(to).await.unwrap().into_split();
                tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_bridge).await });
                let mut buffer = vec![0; 64 * 1024];
                while let Ok(Ok(read @ 1..)) = tokio::time::timeout(idle, from_bridge.read(&mut buffer)).await
                {
                    to_client.write_all(&buffer[..read]).await.unwrap();
                }
            });
        }
    });
    address
}

/// [SES-11] row 30: a quiet turn gets through a proxy that cuts quiet connections: before `response.created`, where the
/// status line goes out early enough, and in mid-stream. A thirtieth of the real times.
#[tokio::test]
async fn a_quiet_stream_survives_an_impatient_proxy() {
    for world in both_transports("[server]\nheartbeat = \"300ms\"\ncommit_after = \"400ms\"").await {
        let proxy = impatient_proxy(world.address, Duration::from_millis(1_800)).await;
        let quiet = [
            "silent(for=2s)",
            "pause(after=1, for=2s)",
            "pause(after=1, for=2s, with=pings, every=20ms)",
        ];
        let turns = quiet.map(|quiet| async move {
            let mut reply = Ask::turn(format!("sim:conv=quiet sim:{quiet}")).open(proxy).await;
            let (mut comments, mut last) = (0, None);
            while let Some(piece) = reply.piece().await {
                match piece {
                    Piece::Comment => comments += 1,
                    Piece::Event(event) => last = Some(event.name),
                }
            }
            assert_eq!(last.as_deref(), Some("response.completed"), "{quiet}");
            assert!((3..=8).contains(&comments), "{comments} heartbeats in {quiet}");
        });
        futures_util::future::join_all(turns).await;
    }
}

/// [HTTP-8] [SES-12] row 36: the ChatGPT backend ends with an empty `output`; a JSON client gets it filled, on both transports,
/// although that backend is never asked for JSON.
#[tokio::test]
async fn an_empty_output_is_filled() {
    let world = Setup::new().start().await;
    let chatgpt = |prompt: &str| {
        Ask::turn(prompt)
            .json()
            .header("chatgpt-account-id", "acct_1")
            .to("/backend-api/codex/responses")
    };
    for (prompt, transport) in [
        ("sim:conv=ws sim:reasoning sim:text(n=5)", "websocket"),
        ("sim:conv=ws sim:tools(rounds=1, parallel=3)", "websocket"),
    ] {
        let response = world.ask(&chatgpt(prompt)).await.completed();
        assert!(!response["output"].as_array().unwrap().is_empty(), "{response}");
        let last = &world.events("turn_finished").pop().unwrap();
        assert_eq!(
            (&last["transport"], &last["provider"]),
            (&transport.into(), &"chatgpt".into())
        );
    }
    let script = "[[upgrade]]\ndo = \"refuse(status=404)\"";
    let world = Setup::new().script(script).start().await;
    let response = world
        .ask(&chatgpt("sim:conv=http sim:reasoning sim:text(n=5)"))
        .await
        .completed();
    let kinds: Vec<_> = response["output"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["type"])
        .collect();
    assert_eq!(kinds, ["reasoning", "message"]);
    assert_eq!(world.creates("http").http, 1);
    // Asked for events, so that there was something to fill from.
    let accept = world
        .upstream
        .look(|ledger| ledger.requests.last().unwrap().headers["accept"].clone());
    assert_eq!(accept, "text/event-stream");
}

/// [SES-30] row 37: the terminal and the close come in one write: the turn is completed, whatever the close says, and
/// the next one takes a fresh socket.
#[tokio::test]
async fn a_terminal_and_a_close_in_one_read() {
    let world = Setup::new().start().await;
    for (turn, close) in [
        "terminal_close",
        "terminal_close(code=1011)",
        "afterwards(do=reset)",
        "afterwards(do=fin)",
    ]
    .into_iter()
    .enumerate()
    {
        for ask in [
            Ask::turn(format!("sim:conv=c{turn} sim:{close}")),
            Ask::turn(format!("sim:conv=c{turn} sim:{close}")).json(),
        ] {
            world.ask(&ask.thread(&format!("c{turn}"))).await.completed();
        }
        let next = Ask::turn(format!("sim:conv=c{turn} next")).thread(&format!("c{turn}"));
        if !close.starts_with("afterwards") {
            world.ask(&next).await.completed();
        }
    }
    assert_eq!(world.creates("c0").websocket, 3);
    assert!(world.events("http_fallback").is_empty());
    let outcomes = world.events("turn_finished");
    assert!(
        outcomes.iter().all(|line| line["outcome"] == "completed"),
        "{outcomes:#?}"
    );
}

/// [SES-7] [SES-9] row 38: telemetry commits nothing; the error after it is a real status, with the upstream's body and
/// headers. Later than `commit_after` the status line is gone, and the same error ends the stream.
#[tokio::test]
async fn telemetry_does_not_commit() {
    for world in both_transports("[server]\ncommit_after = \"300ms\"").await {
        for ask in [Ask::turn(""), Ask::turn("").json()] {
            let error = "sim:telemetry_error(status=429, retry_after=7, code=rate_limit_exceeded)";
            let answer = world.ask(&ask.with("input", error)).await;
            assert_eq!(
                (answer.status, answer.error().as_str()),
                (429, "rate_limit_exceeded")
            );
            assert_eq!(answer.headers["retry-after"], "7");
        }
        let late =
            Ask::turn("sim:telemetry(every=20ms, for=600ms) sim:error(status=429, code=rate_limit_exceeded)");
        let answer = world.ask(&late).await;
        assert_eq!(answer.failure(), "rate_limit_exceeded");
        assert!(
            !answer.text().contains("codex.rate_limits"),
            "what was held is dropped with the failed turn"
        );
    }
}

/// [INV-2] The body ends right after the terminal, and the connection serves the next request, whatever upstream still sends.
#[tokio::test]
async fn a_kept_connection_serves_the_next_request() {
    for world in both_transports("").await {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        for words in [
            "",
            "sim:late(n=3)",
            "sim:terminal(shape=failed)",
            "sim:error(status=429)",
            "sim:close(code=1011, after=1)",
            "",
        ] {
            let body = format!(r#"{{"model":"gpt-5","stream":true,"input":"sim:conv=kept {words}"}}"#);
            let request = format!(
                "POST /v1/responses HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer sk-one\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            // One that is chunked ends with an empty chunk, one that is whole with its brace.
            let ended = |answer: &[u8]| {
                let text = String::from_utf8_lossy(answer);
                if text.contains("transfer-encoding: chunked") {
                    text.ends_with("\r\n0\r\n\r\n")
                } else {
                    text.ends_with("}}")
                }
            };
            while !ended(&answer) {
                let read = tokio::time::timeout(Duration::from_secs(10), stream.read_buf(&mut answer)).await;
                assert!(
                    read.unwrap().unwrap() > 0,
                    "{words}: closed after {}",
                    String::from_utf8_lossy(&answer)
                );
            }
            assert_eq!(
                String::from_utf8_lossy(&answer).matches("HTTP/1.1 ").count(),
                1,
                "{words}"
            );
        }
    }
}
