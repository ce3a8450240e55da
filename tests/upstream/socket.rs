//! An open socket: a create goes out in pieces, frames come in, and neither waits for the other.

use std::time::Duration;

use bytes::Bytes;
use responses_bridge::upstream::{Close, CloseClass, SocketEvent};
use tokio::io::AsyncWriteExt;

use crate::peer::*;

const FRAGMENT: usize = 16 << 10;

/// [UP-8] A create above 64 KiB goes out in fragments of at most 16 KiB; multibyte text may be cut anywhere.
#[tokio::test]
async fn a_large_create_goes_out_in_fragments() {
    for create in [
        long_text((64 << 10) + 1),
        long_text(256 << 10),
        "日本語🦀".repeat(20_000),
    ] {
        let (mut socket, mut peer) = pair(true).await;
        socket.begin(Bytes::from(create.clone()));
        let (event, frames) = tokio::join!(next(&mut socket), receive_message(&mut peer));
        assert_eq!(event, SocketEvent::Flushed);
        assert_eq!(frames.len(), create.len().div_ceil(FRAGMENT));
        assert!(frames.iter().all(|frame| frame.payload.len() <= FRAGMENT));
        let opcodes: Vec<u8> = frames.iter().map(|frame| frame.opcode).collect();
        assert_eq!(opcodes[0], 1, "the first is text");
        assert!(
            opcodes[1..].iter().all(|opcode| *opcode == 0),
            "the rest continue it"
        );
        assert_eq!(joined(&frames), create.as_bytes());
    }
}

/// [UP-8] Up to 64 KiB, and of any size where the provider cannot join fragments, a create is one frame.
#[tokio::test]
async fn other_creates_are_one_frame() {
    for (fragment, len) in [
        (true, 0),
        (true, 2),
        (true, 64 << 10),
        (false, 256 << 10),
        (false, 15 << 20),
    ] {
        let (mut socket, mut peer) = pair(fragment).await;
        let create = long_text(len);
        socket.begin(Bytes::from(create.clone()));
        let (event, frame) = tokio::join!(next(&mut socket), receive(&mut peer));
        assert_eq!(event, SocketEvent::Flushed);
        assert_eq!((frame.last, frame.opcode), (true, 1));
        assert!(
            frame.payload == create.as_bytes(),
            "{len} bytes changed on the way"
        );
    }
}

/// [UP-8] Several creates, one after the other, are several messages.
#[tokio::test]
async fn a_socket_serves_many_turns() {
    let (mut socket, mut peer) = pair(true).await;
    for len in [100, 100_000, 64 << 10, 300_000, 5] {
        let create = long_text(len);
        socket.begin(Bytes::from(create.clone()));
        let (event, frames) = tokio::join!(next(&mut socket), receive_message(&mut peer));
        assert_eq!(event, SocketEvent::Flushed);
        assert!(joined(&frames) == create.as_bytes(), "{len}");
        peer.write_all(&text("done")).await.unwrap();
        assert_eq!(next(&mut socket).await, SocketEvent::Text("done".into()));
    }
}

/// [UP-8] Two creates at once would mix their frames: the socket ends instead.
#[tokio::test]
async fn two_creates_at_once_end_the_socket() {
    let (mut socket, _peer) = pair(true).await;
    socket.begin(Bytes::from_static(b"{}"));
    socket.begin(Bytes::from_static(b"{}"));
    let close = Close {
        class: CloseClass::Protocol,
        code: None,
        clean: false,
    };
    assert_eq!(next(&mut socket).await, SocketEvent::Closed(close));
}

/// [UP-9] Field report 16: while a create waits for a peer that does not read, its pings are answered between the
/// fragments and its frames are delivered.
#[tokio::test]
async fn reading_goes_on_while_a_create_is_stuck() {
    let (mut socket, mut peer) = pair(true).await;
    let create = long_text(12 << 20);
    socket.begin(Bytes::from(create.clone()));
    // Write until the connection is full: no progress for a while.
    while let Ok(event) = tokio::time::timeout(Duration::from_millis(200), socket.event()).await {
        assert!(matches!(event, SocketEvent::Wrote(_)), "{event:?}");
    }
    peer.write_all(&ping()).await.unwrap();
    peer.write_all(&text("while you write")).await.unwrap();
    assert_eq!(next(&mut socket).await, SocketEvent::Ping);
    assert_eq!(
        next(&mut socket).await,
        SocketEvent::Text("while you write".into())
    );

    let read = async {
        let (mut create, mut pong_after) = (Vec::new(), None);
        loop {
            let frame = receive(&mut peer).await;
            match frame.opcode {
                10 => pong_after = Some((create.len(), frame.payload)),
                _ => create.extend(frame.payload),
            }
            if frame.last && frame.opcode < 8 {
                return (create, pong_after);
            }
        }
    };
    let (event, (received, pong)) = tokio::join!(next(&mut socket), read);
    assert_eq!(event, SocketEvent::Flushed);
    assert!(received == create.as_bytes());
    let (after, payload) = pong.expect("a pong before the create's last fragment");
    assert!(after < create.len());
    assert_eq!(payload, b"are you there");
}

/// [UP-9] A ping to an idle socket is answered as long as the owner waits for events.
#[tokio::test]
async fn an_idle_socket_answers_pings() {
    let (mut socket, mut peer) = pair(true).await;
    for _ in 0..3 {
        peer.write_all(&ping()).await.unwrap();
        assert_eq!(next(&mut socket).await, SocketEvent::Ping);
        let pong = receive(&mut peer).await;
        assert_eq!(
            (pong.opcode, pong.payload.as_slice()),
            (10, &b"are you there"[..])
        );
    }
}

/// [UP-9] Our own pings go out between the fragments of a create, and their answers are seen.
#[tokio::test]
async fn a_ping_of_ours_is_answered() {
    let (mut socket, mut peer) = pair(true).await;
    socket.ping();
    let (event, ()) = tokio::join!(next(&mut socket), async {
        assert_eq!(receive(&mut peer).await.opcode, 9);
        peer.write_all(&frame(0x8a, b"")).await.unwrap();
    });
    assert_eq!(event, SocketEvent::Pong);

    socket.begin(Bytes::from(long_text(8 << 20)));
    assert!(matches!(socket.event().await, SocketEvent::Wrote(_)));
    socket.ping();
    let read = async {
        loop {
            let frame = receive(&mut peer).await;
            assert!(
                !(frame.last && frame.opcode == 0),
                "the create ended before the ping"
            );
            if frame.opcode == 9 {
                return receive_message(&mut peer).await;
            }
        }
    };
    let (event, _rest) = tokio::join!(next(&mut socket), read);
    assert_eq!(event, SocketEvent::Flushed);
}

/// [UP-10] Progress is what the connection took: none while the peer does not read, more when it does, and `Flushed`
/// only when the last byte has left.
#[tokio::test]
async fn progress_follows_the_connection() {
    for fragment in [true, false] {
        let (mut socket, mut peer) = pair(fragment).await;
        let create = long_text(15 << 20);
        socket.begin(Bytes::from(create.clone()));
        let mut written = 0;
        while let Ok(event) = tokio::time::timeout(Duration::from_millis(200), socket.event()).await {
            let SocketEvent::Wrote(bytes) = event else {
                panic!("{event:?} before the peer read")
            };
            written += bytes;
        }
        let stuck_at = written;
        assert!(stuck_at > 0 && stuck_at < create.len() as u64, "{stuck_at}");

        let drive = async {
            loop {
                match socket.event().await {
                    SocketEvent::Wrote(bytes) => written += bytes,
                    SocketEvent::Flushed => return,
                    event => panic!("{event:?}"),
                }
            }
        };
        let ((), frames) = tokio::join!(drive, receive_message(&mut peer));
        assert!(joined(&frames) == create.as_bytes());
        // Frame heads count, and the last stretch is told by `Flushed` alone.
        let heads = frames.len() as u64 * 14;
        assert!(
            written > stuck_at && written <= create.len() as u64 + heads,
            "{written}"
        );
    }
}

/// [UP-15] Dropping the future of `event` at any moment loses nothing, in either direction.
#[tokio::test]
async fn events_survive_cancellation() {
    let (mut socket, mut peer) = pair(true).await;
    let create = long_text(3 << 20);
    socket.begin(Bytes::from(create.clone()));
    let (mut from_peer, mut to_peer) = peer.split();
    let sent: Vec<String> = (0..200).map(|index| long_text(index * 37)).collect();
    let send = async {
        for message in &sent {
            for piece in text(message).chunks(1000) {
                to_peer.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    };
    let drive = async {
        let (mut flushed, mut received) = (false, Vec::new());
        while !flushed || received.len() < sent.len() {
            // One poll, then the future is dropped.
            match futures_util::FutureExt::now_or_never(Box::pin(socket.event())) {
                Some(SocketEvent::Text(text)) => received.push(text.to_string()),
                Some(SocketEvent::Flushed) => flushed = true,
                Some(SocketEvent::Wrote(_)) => {}
                Some(event) => panic!("{event:?}"),
                None => tokio::task::yield_now().await,
            }
        }
        received
    };
    let (received, (), frames) = tokio::join!(drive, send, receive_message(&mut from_peer));
    assert!(received == sent);
    assert!(joined(&frames) == create.as_bytes());
}

/// [UP-15] What came in one wake-up can be taken without waiting.
#[tokio::test]
async fn frames_that_are_ready_can_be_gathered() {
    let (mut socket, mut peer) = pair(true).await;
    assert_eq!(socket.try_event(), None);
    peer.write_all(&[text("one"), text("two"), text("three")].concat())
        .await
        .unwrap();
    assert_eq!(next(&mut socket).await, SocketEvent::Text("one".into()));
    assert_eq!(socket.try_event(), Some(SocketEvent::Text("two".into())));
    assert_eq!(socket.try_event(), Some(SocketEvent::Text("three".into())));
    assert_eq!(socket.try_event(), None);
    // The wait that follows is still woken.
    let (event, ()) = tokio::join!(next(&mut socket), async {
        tokio::task::yield_now().await;
        peer.write_all(&text("four")).await.unwrap();
    });
    assert_eq!(event, SocketEvent::Text("four".into()));
}

/// [UP-16] Fragmented text with control frames between its pieces, and binary messages of UTF-8, are messages like any
/// other.
#[tokio::test]
async fn messages_come_in_any_legal_form() {
    let (mut socket, mut peer) = pair(true).await;
    // The crab is cut in two.
    let crab = "🦀".as_bytes();
    let forms = [
        frame(0x01, &crab[..1]),
        ping(),
        frame(0x00, b""),
        frame(0x8a, b""),
        frame(0x80, &crab[1..]),
        frame(0x82, "{\"ü\":1}".as_bytes()),
    ];
    peer.write_all(&forms.concat()).await.unwrap();
    assert_eq!(next(&mut socket).await, SocketEvent::Ping);
    assert_eq!(next(&mut socket).await, SocketEvent::Pong);
    assert_eq!(next(&mut socket).await, SocketEvent::Text("🦀".into()));
    assert_eq!(next(&mut socket).await, SocketEvent::Text("{\"ü\":1}".into()));
}

/// [UP-16] Any byte is a sign of life, also one of a frame that is not whole yet.
#[tokio::test]
async fn every_byte_counts_as_life() {
    let (mut socket, mut peer) = pair(true).await;
    let before = socket.inbound_bytes();
    let message = text(&long_text(1000));
    peer.write_all(&message[..10]).await.unwrap();
    while socket.inbound_bytes() == before {
        assert!(
            tokio::time::timeout(Duration::from_millis(10), socket.event())
                .await
                .is_err()
        );
    }
    assert_eq!(socket.inbound_bytes(), before + 10);
}

/// [UP-13] Giving back the buffers after large frames loses not a byte, wherever the stream is cut.
#[tokio::test]
async fn large_and_small_frames_alternate() {
    let (mut socket, mut peer) = pair(true).await;
    let sent: Vec<String> = (1..40)
        .map(|index| long_text(if index % 3 == 0 { index * 5000 } else { index }))
        .collect();
    let bytes: Vec<u8> = sent.iter().flat_map(|message| text(message)).collect();
    let send = async {
        for (index, piece) in bytes.chunks(7919).enumerate() {
            peer.write_all(piece).await.unwrap();
            if index % 5 == 0 {
                // Long enough for the socket to come to rest.
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    };
    let drive = async {
        for message in &sent {
            assert_eq!(
                next(&mut socket).await,
                SocketEvent::Text(message.as_str().into())
            );
        }
    };
    tokio::join!(send, drive);
}
