//! How a socket ends, and that the end comes after everything the peer had said.

use std::time::{Duration, Instant};

use bytes::Bytes;
use responses_bridge::upstream::{Close, CloseClass, SocketEvent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::peer::*;

fn closed(class: CloseClass) -> SocketEvent {
    SocketEvent::Closed(Close {
        class,
        code: None,
        clean: false,
    })
}

fn closed_by(class: CloseClass, code: u16) -> SocketEvent {
    SocketEvent::Closed(Close {
        class,
        code: Some(code),
        clean: true,
    })
}

/// [UP-11] Field report 37: terminal and close in one write: the frames first, then the close, which then stays.
#[tokio::test]
async fn frames_come_before_the_close() {
    let (mut socket, mut peer) = pair(true).await;
    let terminal = long_text(10_000);
    peer.write_all(&[text("created"), text(&terminal), close(1000)].concat())
        .await
        .unwrap();
    drop(peer);
    assert_eq!(next(&mut socket).await, SocketEvent::Text("created".into()));
    assert_eq!(
        next(&mut socket).await,
        SocketEvent::Text(terminal.as_str().into())
    );
    for _ in 0..3 {
        assert_eq!(next(&mut socket).await, closed_by(CloseClass::Normal, 1000));
        assert_eq!(socket.try_event(), Some(closed_by(CloseClass::Normal, 1000)));
    }
}

/// [UP-11] Each close code has its class; the peer's close frame is answered.
#[tokio::test]
async fn close_codes_have_classes() {
    for (code, class) in [
        (1000, CloseClass::Normal),
        (1001, CloseClass::GoingAway),
        (1008, CloseClass::Policy),
        (1009, CloseClass::TooBig),
        (1011, CloseClass::ServerError),
        (1012, CloseClass::Restart),
        (1013, CloseClass::TryLater),
        (1002, CloseClass::Other),
        (3000, CloseClass::Other),
        (4321, CloseClass::Other),
    ] {
        let (mut socket, mut peer) = pair(true).await;
        peer.write_all(&close(code)).await.unwrap();
        assert_eq!(next(&mut socket).await, closed_by(class, code));
        let answer = receive(&mut peer).await;
        assert_eq!((answer.opcode, answer.payload), (8, code.to_be_bytes().to_vec()));
    }
    let (mut socket, mut peer) = pair(true).await;
    peer.write_all(&frame(0x88, b"")).await.unwrap();
    let no_status = Close {
        class: CloseClass::NoStatus,
        code: None,
        clean: true,
    };
    assert_eq!(next(&mut socket).await, SocketEvent::Closed(no_status));
}

/// [UP-11] Labels are distinct, and of the kind that a metric label may be.
#[test]
fn classes_have_labels() {
    let labels: std::collections::BTreeSet<&str> =
        CloseClass::ALL.iter().map(|class| class.label()).collect();
    assert_eq!(labels.len(), CloseClass::ALL.len());
    assert!(labels.iter().all(|label| {
        label
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    }));
}

/// [UP-11] Field report 14: an end without a close frame is seen at once by an idle socket, and told apart.
#[tokio::test]
async fn an_idle_socket_sees_its_end() {
    let (mut socket, peer) = pair(true).await;
    drop(peer);
    assert_eq!(next(&mut socket).await, closed(CloseClass::Abnormal));

    let (mut socket, mut peer) = pair(true).await;
    peer.write_all(&text(&long_text(1000))[..500]).await.unwrap();
    drop(peer);
    assert_eq!(next(&mut socket).await, closed(CloseClass::Abnormal));

    let (mut socket, peer) = pair(true).await;
    peer.set_zero_linger().unwrap();
    drop(peer);
    assert_eq!(next(&mut socket).await, closed(CloseClass::Reset));
}

/// [UP-11] What is not the protocol ends the socket: a masked frame, a reserved opcode, text that is not UTF-8.
#[tokio::test]
async fn nonsense_ends_the_socket() {
    for nonsense in [
        vec![0x81, 0x81, 1, 2, 3, 4, 5],
        frame(0x83, b"?"),
        frame(0xc1, b"compressed"),
        frame(0x80, b"continues nothing"),
        frame(0x81, b"\xff\xfe"),
        frame(0x82, b"\xff\xfe"),
        b"HTTP/1.1 400 Bad Request\r\n\r\n".repeat(4),
    ] {
        let (mut socket, mut peer) = pair(true).await;
        peer.write_all(&nonsense).await.unwrap();
        assert_eq!(
            next(&mut socket).await,
            closed(CloseClass::Protocol),
            "{nonsense:?}"
        );
    }
}

/// [UP-14] A message above 64 MiB ends the socket by its announced length, before a byte of it is read; one of 2 MiB is
/// ordinary (field report 28).
#[tokio::test]
async fn inbound_messages_are_bounded() {
    let (mut socket, mut peer) = pair(true).await;
    let large = long_text(2 << 20);
    let (event, sent) = tokio::join!(next(&mut socket), async { peer.write_all(&text(&large)).await });
    sent.unwrap();
    assert_eq!(event, SocketEvent::Text(large.as_str().into()));

    let mut head = vec![0x81, 127];
    head.extend(((64u64 << 20) + 1).to_be_bytes());
    peer.write_all(&head).await.unwrap();
    assert_eq!(next(&mut socket).await, closed(CloseClass::FrameTooLarge));
}

/// [UP-12] Field report 19: the peer judges a create by its first bytes, says so, closes and is gone. The failing write
/// does not hide what it said.
#[tokio::test]
async fn a_failed_write_does_not_hide_the_last_words() {
    for fragment in [true, false] {
        let (mut socket, mut peer) = pair(fragment).await;
        socket.begin(Bytes::from(long_text(15 << 20)));
        while tokio::time::timeout(Duration::from_millis(100), socket.event())
            .await
            .is_ok()
        {}
        peer.write_all(&[ping(), text("too big"), close(1009)].concat())
            .await
            .unwrap();
        // Unread data lies at the peer, so that this is a reset.
        drop(peer);
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(next(&mut socket).await, SocketEvent::Ping);
        assert_eq!(next(&mut socket).await, SocketEvent::Text("too big".into()));
        assert_eq!(next(&mut socket).await, closed_by(CloseClass::TooBig, 1009));
    }
}

/// [UP-12] A write that fails is an end at once, and the create is never called flushed.
#[tokio::test]
async fn a_failed_write_is_seen_at_once() {
    let (mut socket, peer) = pair(true).await;
    peer.set_zero_linger().unwrap();
    drop(peer);
    tokio::time::sleep(Duration::from_millis(20)).await;
    socket.begin(Bytes::from(long_text(200_000)));
    assert_eq!(next(&mut socket).await, closed(CloseClass::Reset));
}

/// [UP-17] Our close is answered: a clean end, at once.
#[tokio::test]
async fn closing_is_a_handshake() {
    let (mut socket, mut peer) = pair(true).await;
    socket.close(1001);
    let (event, ()) = tokio::join!(next(&mut socket), async {
        let asked = receive(&mut peer).await;
        assert_eq!((asked.opcode, asked.payload), (8, 1001u16.to_be_bytes().to_vec()));
        peer.write_all(&[text("last words"), close(1001)].concat())
            .await
            .unwrap();
    });
    assert_eq!(event, SocketEvent::Text("last words".into()));
    assert_eq!(next(&mut socket).await, closed_by(CloseClass::GoingAway, 1001));
}

/// [UP-17] Our close is not answered: an end within about a second, whether the peer reads or not, and also in the
/// middle of a create.
#[tokio::test]
async fn an_unanswered_close_ends_in_a_second() {
    let unanswered = async |create: usize| {
        let (mut socket, mut peer) = pair(true).await;
        if create > 0 {
            socket.begin(Bytes::from(long_text(create)));
            while tokio::time::timeout(Duration::from_millis(50), socket.event())
                .await
                .is_ok()
            {}
        }
        let started = Instant::now();
        socket.close(1000);
        assert_eq!(next(&mut socket).await, closed(CloseClass::Abnormal));
        assert!(
            started.elapsed() < Duration::from_millis(1500),
            "{:?}",
            started.elapsed()
        );
        drop(socket);
        let mut rest = Vec::new();
        let _reset = peer.read_to_end(&mut rest).await;
        assert!(rest.len() > 4);
    };
    tokio::join!(unanswered(0), unanswered(12 << 20));
}
