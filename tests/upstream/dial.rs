//! The WebSocket handshake: what is asked, what is accepted, and each way it fails.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use responses_bridge::upstream::{Account, DialFault, Dialed, SocketEvent, UpgradeRefused};
use responses_bridge::wire::ProviderKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::peer::*;

/// What a dial says when the peer reads the request and then sends `answer` and, unless `hold`, closes.
async fn dial_answered(answer: impl Fn(&str) -> Vec<u8>, hold: bool) -> Result<Dialed, DialFault> {
    let (listener, base) = listen().await;
    let account = account_at(&base);
    let peer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = read_head(&mut stream).await;
        stream.write_all(&answer(&head)).await.unwrap();
        hold.then_some(stream)
    };
    let (dialed, _peer) = tokio::join!(account.dial(none(), none()), peer);
    dialed
}

/// [UP-3] The upgrade is a GET of the create path, with what a WebSocket handshake needs; no extension is offered.
#[tokio::test]
async fn the_upgrade_asks_for_a_plain_websocket() {
    let (listener, base) = listen().await;
    let account = account_at(&base);
    let identity = HeaderMap::from_iter([(
        HeaderName::from_static("thread-id"),
        HeaderValue::from_static("t1"),
    )]);
    let peer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = read_head(&mut stream).await;
        stream
            .write_all(switching(&head, "x-codex-turn-state: abc\r\n").as_bytes())
            .await
            .unwrap();
        (stream, head)
    };
    let (dialed, (_peer, head)) = tokio::join!(account.dial(identity, none()), peer);
    let dialed = dialed.unwrap();

    assert!(head.starts_with("GET /v1/responses HTTP/1.1\r\n"), "{head}");
    assert_eq!(
        header(&head, "host"),
        base.strip_prefix("http://").unwrap().strip_suffix("/v1")
    );
    assert_eq!(header(&head, "upgrade"), Some("websocket"));
    assert_eq!(header(&head, "connection"), Some("Upgrade"));
    assert_eq!(header(&head, "sec-websocket-version"), Some("13"));
    assert_eq!(header(&head, "sec-websocket-extensions"), None);
    assert_eq!(header(&head, "thread-id"), Some("t1"));
    assert_eq!(header(&head, "openai-beta"), None);
    assert_eq!(dialed.headers["x-codex-turn-state"], "abc");
}

/// [UP-3] The ChatGPT backend opens its WebSocket only with the beta header; the client's other betas stay.
#[tokio::test]
async fn chatgpt_gets_the_beta_header() {
    let (listener, base) = listen().await;
    let account = Account::new(&provider(&base, ProviderKind::Chatgpt), &of_the_client(), SOON).unwrap();
    let identity = HeaderMap::from_iter([(
        HeaderName::from_static("openai-beta"),
        HeaderValue::from_static("other=1"),
    )]);
    let peer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = read_head(&mut stream).await;
        stream.write_all(switching(&head, "").as_bytes()).await.unwrap();
        head
    };
    let (_, head) = tokio::join!(account.dial(identity, none()), peer);
    assert!(
        head.contains("openai-beta: responses_websockets=2026-02-06\r\n"),
        "{head}"
    );
    assert!(head.contains("openai-beta: other=1\r\n"), "{head}");
}

/// [UP-3] A frame that came in one write with the 101 is not lost.
#[tokio::test]
async fn a_frame_may_come_with_the_handshake() {
    let answer = |head: &str| [switching(head, "").into_bytes(), text("early")].concat();
    let mut dialed = dial_answered(answer, true).await.unwrap();
    assert_eq!(next(&mut dialed.socket).await, SocketEvent::Text("early".into()));
}

/// [UP-3] What is not exactly the handshake that was asked for is no WebSocket.
#[tokio::test]
async fn a_wrong_handshake_is_no_websocket() {
    let swap = |from: &'static str, to: &'static str| {
        move |head: &str| switching(head, "").replace(from, to).into_bytes()
    };
    let wrong_key = |_: &str| switching("sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==", "").into_bytes();
    let accept = "Sec-WebSocket-Accept";
    for (what, dialed) in [
        ("a wrong accept key", dial_answered(wrong_key, true).await),
        (
            "no accept key",
            dial_answered(swap(accept, "X-Other"), true).await,
        ),
        (
            "no upgrade",
            dial_answered(swap("Upgrade: WebSocket", "Upgrade: h2c"), true).await,
        ),
        (
            "no connection",
            dial_answered(swap("keep-alive, Upgrade", "keep-alive"), true).await,
        ),
        (
            "200",
            dial_answered(
                |_| b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_vec(),
                true,
            )
            .await,
        ),
        (
            "not HTTP",
            dial_answered(|_| b"SSH-2.0-OpenSSH_9.6\r\n".to_vec(), true).await,
        ),
        (
            "an extension",
            dial_answered(
                |head| switching(head, "Sec-WebSocket-Extensions: permessage-deflate\r\n").into(),
                true,
            )
            .await,
        ),
        (
            "a subprotocol",
            dial_answered(
                |head| switching(head, "Sec-WebSocket-Protocol: chat\r\n").into(),
                true,
            )
            .await,
        ),
    ] {
        assert!(
            matches!(dialed, Err(DialFault::NotWebSocket)),
            "{what}: {dialed:?}"
        );
    }
}

/// [UP-4] A refused upgrade keeps its status, headers and body: they may be the client's answer.
#[tokio::test]
async fn a_refusal_is_kept() {
    for status in [302, 401, 403, 404, 426, 429, 503] {
        let answer = |_: &str| {
            format!(
                "HTTP/1.1 {status} No\r\nretry-after: 7\r\ncontent-length: 16\r\n\r\n{{\"error\":\"sorry\"}}"
            )
            .into()
        };
        let Err(DialFault::Status(refused)) = dial_answered(answer, true).await else {
            panic!("{status}")
        };
        let UpgradeRefused {
            status: seen,
            headers,
            body,
        } = *refused;
        assert_eq!(seen, StatusCode::from_u16(status).unwrap());
        assert_eq!(headers["retry-after"], "7");
        assert_eq!(body, "{\"error\":\"sorry\"");
    }
}

/// [UP-4] At most 64 KiB of a refusal's body are kept, and at most a second is spent on it.
#[tokio::test]
async fn a_refusals_body_is_bounded() {
    let long = |_: &str| [b"HTTP/1.1 403 No\r\n\r\n".to_vec(), vec![b'x'; 200_000]].concat();
    let Err(DialFault::Status(refused)) = dial_answered(long, true).await else {
        panic!()
    };
    assert_eq!(refused.body.len(), 64 << 10);

    let started = std::time::Instant::now();
    let unfinished = |_: &str| b"HTTP/1.1 403 No\r\ncontent-length: 100\r\n\r\nhalf".to_vec();
    let Err(DialFault::Status(refused)) = dial_answered(unfinished, true).await else {
        panic!()
    };
    assert_eq!(refused.body, "half");
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
}

/// [UP-6] A connection that breaks during the upgrade.
#[tokio::test]
async fn an_upgrade_may_break() {
    let dialed = dial_answered(|_| Vec::new(), false).await;
    assert!(matches!(dialed, Err(DialFault::Io)), "{dialed:?}");
    let dialed = dial_answered(|_| b"HTTP/1.1 101 Swi".to_vec(), false).await;
    assert!(matches!(dialed, Err(DialFault::Io)), "{dialed:?}");
}

/// [UP-6] Nobody listens.
#[tokio::test]
async fn a_refused_connection() {
    let (listener, base) = listen().await;
    drop(listener);
    let dialed = account_at(&base).dial(none(), none()).await;
    assert!(matches!(dialed, Err(DialFault::Refused)), "{dialed:?}");
}

/// [UP-6] A name without an address. This one no resolver can ask for: a label has at most 63 bytes.
#[tokio::test]
async fn an_unknown_name() {
    let account = account_at(&format!("http://{}.invalid/v1", "x".repeat(64)));
    let dialed = account.dial(none(), none()).await;
    assert!(matches!(dialed, Err(DialFault::Unresolved)), "{dialed:?}");
}

/// [UP-6] Whatever the peer holds back, TLS hello or the upgrade's answer, a dial ends at the connect deadline.
#[tokio::test]
async fn silence_ends_at_the_connect_deadline() {
    let deadline = Duration::from_millis(200);
    let (listener, base) = listen().await;
    let plain = Account::new(&provider(&base, ProviderKind::Openai), &of_the_client(), deadline).unwrap();
    let tls = https_account(&base.replace("http:", "https:"), None, deadline);
    for account in [plain, tls] {
        let dialed = tokio::select! {
            dialed = account.dial(none(), none()) => dialed,
            () = silent_accept(&listener) => unreachable!("it accepts for ever"),
            () = tokio::time::sleep(SOON) => panic!("no end"),
        };
        assert!(matches!(dialed, Err(DialFault::Timeout)), "{dialed:?}");
    }
}

/// Takes connections and says nothing, for ever.
async fn silent_accept(listener: &tokio::net::TcpListener) {
    let mut held = Vec::new();
    while let Ok((stream, _)) = listener.accept().await {
        held.push(stream);
    }
}

/// [UP-6] A peer that does not speak TLS, and one that leaves the TLS handshake.
#[tokio::test]
async fn a_failed_tls_handshake() {
    for answer in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b""] {
        let (listener, base) = listen().await;
        let account = https_account(&base.replace("http:", "https:"), None, SOON);
        let peer = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut hello = [0; 5];
            stream.read_exact(&mut hello).await.unwrap();
            stream.write_all(answer).await.unwrap();
        };
        let (dialed, ()) = tokio::join!(account.dial(none(), none()), peer);
        assert!(matches!(dialed, Err(DialFault::Tls)), "{dialed:?}");
    }
}
