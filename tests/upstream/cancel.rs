//! Who goes away leaves nothing behind: a dropped dial, request or socket is a closed connection within a second.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use responses_bridge::upstream::Account;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::peer::*;

const CLOSED_WITHIN: Duration = Duration::from_secs(1);

/// Where a dial is when it is dropped.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Connected,
    RequestRead,
    HalfAnswered,
    RefusalBody,
}

async fn reach(stage: Stage, listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().await.unwrap();
    match stage {
        Stage::Connected => {
            // The first byte: of a TLS hello, or of the request.
            stream.read_u8().await.unwrap();
        }
        Stage::RequestRead => {
            read_head(&mut stream).await;
        }
        Stage::HalfAnswered => {
            read_head(&mut stream).await;
            stream
                .write_all(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: webs")
                .await
                .unwrap();
        }
        Stage::RefusalBody => {
            read_head(&mut stream).await;
            stream
                .write_all(b"HTTP/1.1 403 No\r\ncontent-length: 100\r\n\r\nhalf")
                .await
                .unwrap();
        }
    }
    stream
}

async fn drop_dial_at(stage: Stage, account: &Account, listener: &TcpListener) {
    let mut peer = tokio::select! {
        dialed = account.dial(none(), none()) => panic!("{stage:?}: {dialed:?}"),
        peer = reach(stage, listener) => peer,
    };
    let closed = tokio::time::timeout(CLOSED_WITHIN, ended(&mut peer)).await;
    assert!(closed.is_ok(), "{stage:?}: still open after a second");
}

/// [UP-5] Field report 24: at every stage of TCP, TLS and the upgrade.
#[tokio::test]
async fn a_dropped_dial_closes_its_connection() {
    let (listener, base) = listen().await;
    let plain = account_at(&base);
    for stage in [
        Stage::Connected,
        Stage::RequestRead,
        Stage::HalfAnswered,
        Stage::RefusalBody,
    ] {
        drop_dial_at(stage, &plain, &listener).await;
    }
    let tls = https_account(&base.replace("http:", "https:"), None, SOON);
    drop_dial_at(Stage::Connected, &tls, &listener).await;
}

/// [UP-5] A socket takes a connection of its own, even where idle ones lie ready, of a request or of a refused dial: no
/// dying connection is handed to it, and nothing of a dropped dial goes on in the background.
#[tokio::test]
async fn a_dial_shares_no_connection() {
    let (listener, base) = listen().await;
    let account = account_at(&base);
    let answer = async |answer: &[u8]| {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        stream.write_all(answer).await.unwrap();
        stream
    };
    let (answered, _kept_alive) = tokio::join!(
        account.post("/responses", none(), Full::new(Bytes::new())),
        answer(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    );
    assert_eq!(answered.unwrap().into_body().chunk().await, Ok(None));
    let (refused, _kept_alive_too) = tokio::join!(
        account.dial(none(), none()),
        answer(b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n")
    );
    refused.unwrap_err();
    let (dialed, accepted) = tokio::join!(
        account.dial(none(), none()),
        tokio::time::timeout(SOON, accept_socket(&listener))
    );
    accepted.expect("a connection of its own");
    dialed.unwrap();
}

/// [UP-5] The same for a request over HTTP, waiting for its answer or in the middle of it.
#[tokio::test]
async fn a_dropped_request_closes_its_connection() {
    let (listener, base) = listen().await;
    let account = account_at(&base);
    let mut peer = tokio::select! {
        _ = account.post("/responses", none(), Full::new(Bytes::from_static(b"{}"))) => unreachable!("never answered"),
        peer = reach(Stage::RequestRead, &listener) => peer,
    };
    tokio::time::timeout(CLOSED_WITHIN, ended(&mut peer))
        .await
        .expect("closed");

    let (answer, mut peer) = tokio::join!(
        account.post("/responses", none(), Full::new(Bytes::from_static(b"{}"))),
        reach(Stage::RefusalBody, &listener)
    );
    let mut body = answer.unwrap().into_body();
    assert_eq!(body.chunk().await.unwrap().unwrap(), "half");
    drop(body);
    tokio::time::timeout(CLOSED_WITHIN, ended(&mut peer))
        .await
        .expect("closed");
}

/// [UP-5] And for an open socket, in the middle of a create too.
#[tokio::test]
async fn a_dropped_socket_closes_its_connection() {
    let (mut socket, mut peer) = pair(true).await;
    socket.begin(Bytes::from(long_text(8 << 20)));
    socket.event().await;
    drop(socket);
    tokio::time::timeout(CLOSED_WITHIN, ended(&mut peer))
        .await
        .expect("closed");
}
