//! Requests over HTTP: what is definite, what is ambiguous, and what is passed on.

use std::io;

use bytes::Bytes;
use http::Method;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use responses_bridge::upstream::{Base, Broken, PostFault, Unreached};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::peer::*;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// [UP-7] Where no connection was made nothing was sent: another attempt is allowed.
#[tokio::test]
async fn an_unconnected_request_is_definite() {
    let (listener, base) = listen().await;
    drop(listener);
    let fault = account_at(&base)
        .post("/responses", none(), Full::new(Bytes::new()))
        .await
        .unwrap_err();
    assert_eq!(fault, PostFault::Unconnected(Unreached::Refused));

    let account = account_at(&format!("http://{}.invalid/v1", "x".repeat(64)));
    let fault = account
        .post("/responses", none(), Full::new(Bytes::new()))
        .await
        .unwrap_err();
    assert_eq!(fault, PostFault::Unconnected(Unreached::Unresolved));

    let (listener, base) = listen().await;
    let account = https_account(
        &base.replace("http:", "https:"),
        None,
        std::time::Duration::from_millis(200),
    );
    let fault = account
        .post("/responses", none(), Full::new(Bytes::new()))
        .await
        .unwrap_err();
    assert_eq!(fault, PostFault::Unconnected(Unreached::Timeout));
    drop(listener);
}

/// [UP-7] Once the request may have arrived, a failure is ambiguous, and the request is sent exactly once.
#[tokio::test]
async fn a_broken_request_is_ambiguous_and_sent_once() {
    for (answer, reset, expected) in [
        (&b""[..], false, Broken::Closed),
        (b"HTTP/1.1 200", false, Broken::Closed),
        (b"", true, Broken::Reset),
        (b"\0\0\0 not http at all\r\n\r\n", false, Broken::Protocol),
    ] {
        let (listener, base) = listen().await;
        let account = account_at(&base);
        let peer = async {
            let mut requests = 0;
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                requests += 1;
                assert_eq!(requests, 1, "sent again");
                read_head(&mut stream).await;
                stream.read_exact(&mut [0; 2]).await.unwrap();
                stream.write_all(answer).await.unwrap();
                if reset {
                    stream.set_zero_linger().unwrap();
                }
            }
        };
        let fault = tokio::select! {
            answer = account.post("/responses", none(), Full::new(Bytes::from_static(b"{}"))) => answer.unwrap_err(),
            () = peer => unreachable!("it serves for ever"),
        };
        assert_eq!(fault, PostFault::Ambiguous(expected));
    }
}

/// [UP-7] A kept connection that dies under the second request: ambiguous, for its bytes had left.
#[tokio::test]
async fn a_kept_connection_that_dies_is_ambiguous() {
    let (listener, base) = listen().await;
    let account = account_at(&base);
    let peer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        stream.write_all(OK).await.unwrap();
        read_head(&mut stream).await;
        drop(stream);
        listener.accept().await.unwrap();
        panic!("sent again");
    };
    let requests = async {
        let first = account
            .post("/responses", none(), Full::new(Bytes::new()))
            .await
            .unwrap();
        assert_eq!(first.into_body().collect().await.unwrap().to_bytes(), "ok");
        account
            .post("/responses", none(), Full::new(Bytes::new()))
            .await
            .unwrap_err()
    };
    let fault = tokio::select! {
        fault = requests => fault,
        () = peer => unreachable!(),
    };
    assert_eq!(fault, PostFault::Ambiguous(Broken::Closed));
}

/// [UP-7] A kept connection that was closed while idle costs nothing: the request takes a new one.
#[tokio::test]
async fn a_kept_connection_that_died_is_replaced() {
    let (listener, base) = listen().await;
    let account = account_at(&base);
    let peer = async {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_head(&mut stream).await;
            stream.write_all(OK).await.unwrap();
        }
    };
    let requests = async {
        for _ in 0..2 {
            let answer = account
                .post("/responses", none(), Full::new(Bytes::new()))
                .await
                .unwrap();
            assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "ok");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::join!(peer, requests);
}

/// [UP-7] A body that ends before it is whole is a failure, not an end.
#[tokio::test]
async fn a_truncated_body_is_a_failure() {
    for head in ["content-length: 100", "transfer-encoding: chunked"] {
        let (listener, base) = listen().await;
        let account = account_at(&base);
        let peer = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_head(&mut stream).await;
            stream
                .write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n4\r\nhalf\r\n").as_bytes())
                .await
                .unwrap();
        };
        let (answer, ()) = tokio::join!(account.post("/responses", none(), Full::new(Bytes::new())), peer);
        let mut body = answer.unwrap().into_body();
        assert!(
            body.chunk()
                .await
                .unwrap()
                .unwrap()
                .ends_with(if head.contains("chunked") {
                    b"half"
                } else {
                    b"\r\n"
                })
        );
        assert_eq!(body.chunk().await, Err(Broken::Closed), "{head}");
    }
}

/// What arrived at the peer for one forwarded request.
async fn forwarded(
    base_path: &str,
    base: Base,
    method: Method,
    path: &str,
    body: &'static str,
) -> (String, String) {
    let (listener, url) = listen().await;
    let account = account_at(&url.replace("/v1", base_path));
    let peer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = read_head(&mut stream).await;
        let mut rest = vec![0; header(&head, "content-length").map_or(0, |len| len.parse().unwrap())];
        stream.read_exact(&mut rest).await.unwrap();
        if header(&head, "transfer-encoding") == Some("chunked") {
            while !rest.ends_with(b"0\r\n\r\n") {
                rest.push(stream.read_u8().await.unwrap());
            }
        }
        stream.write_all(OK).await.unwrap();
        (head, String::from_utf8(rest).unwrap())
    };
    let (answer, seen) = tokio::join!(
        account.forward(base, method, path, none(), Full::from(body)),
        peer
    );
    assert_eq!(answer.unwrap().status(), 200);
    seen
}

/// [UP-18] Any method and path below the base goes on as it came; a request without a body has none.
#[tokio::test]
async fn requests_are_passed_on() {
    let (head, body) = forwarded(
        "/v1",
        Base::Api,
        Method::GET,
        "/responses/resp_1?stream=true&starting_after=4",
        "",
    )
    .await;
    assert!(
        head.starts_with("GET /v1/responses/resp_1?stream=true&starting_after=4 HTTP/1.1\r\n"),
        "{head}"
    );
    assert_eq!(
        (
            header(&head, "transfer-encoding"),
            header(&head, "content-length"),
            body.as_str()
        ),
        (None, None, "")
    );

    let (head, body) = forwarded("/v1", Base::Api, Method::POST, "/embeddings", "{\"input\":\"x\"}").await;
    assert!(head.starts_with("POST /v1/embeddings HTTP/1.1\r\n"), "{head}");
    assert_eq!(header(&head, "content-length"), Some("13"));
    assert_eq!(body, "{\"input\":\"x\"}");

    let (head, _) = forwarded("/backend-api/codex", Base::Api, Method::GET, "/models", "").await;
    assert!(
        head.starts_with("GET /backend-api/codex/models HTTP/1.1\r\n"),
        "{head}"
    );
    let (head, _) = forwarded(
        "/backend-api/codex",
        Base::ChatgptBackend,
        Method::GET,
        "/wham/usage",
        "",
    )
    .await;
    assert!(
        head.starts_with("GET /backend-api/wham/usage HTTP/1.1\r\n"),
        "{head}"
    );
    let (head, _) = forwarded("/", Base::Api, Method::GET, "/models", "").await;
    assert!(head.starts_with("GET /models HTTP/1.1\r\n"), "{head}");
}

/// [UP-18] Dot segments do not climb out of the base URL; nothing is sent.
#[tokio::test]
async fn paths_stay_below_the_base() {
    let (listener, base) = listen().await;
    let account = account_at(&base);
    for path in [
        "/../admin",
        "/responses/../../admin",
        "/%2e%2E/admin",
        "\\..\\..\\admin",
        "/..",
    ] {
        let answer = account.forward(Base::Api, Method::GET, path, none(), Empty::new());
        tokio::select! {
            answer = answer => assert_eq!(answer.unwrap_err(), PostFault::Unaddressable, "{path}"),
            _ = listener.accept() => panic!("{path} was sent"),
        }
    }
}

/// [UP-18] A request body that breaks on its way is a failure of the request, never a shorter body.
#[tokio::test]
async fn a_body_that_breaks_is_not_shortened() {
    let (listener, base) = listen().await;
    let account = account_at(&base);
    let pieces = [
        Ok(http_body::Frame::data(Bytes::from_static(b"first"))),
        Err(io::Error::from(io::ErrorKind::ConnectionReset)),
    ];
    let body = StreamBody::new(futures_util::stream::iter(pieces));
    let peer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        String::from_utf8(all).unwrap()
    };
    let (answer, seen) = tokio::join!(
        account.forward(Base::Api, Method::POST, "/files", none(), body),
        peer
    );
    assert!(matches!(answer, Err(PostFault::Ambiguous(_))), "{answer:?}");
    assert!(!seen.ends_with("0\r\n\r\n"), "{seen}");
}
