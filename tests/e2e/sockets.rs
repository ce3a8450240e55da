//! Sockets that close while idle, are refused, or never open (rows 14, 17, 20 and 21).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use responses_bridge::simulator::Ending;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_util::task::AbortOnDropHandle;

use crate::client::Ask;
use crate::peer;
use crate::way::Way;
use crate::world::{Setup, World, eventually};

/// A turn of the conversation `key`; whether it went by session.
async fn by_session(world: &World, key: &str, words: &str) -> bool {
    let answer = world
        .ask(&Ask::turn(format!("sim:conv={key} {words}")).thread(key))
        .await;
    answer.completed();
    world.sockets(key).last().unwrap().is_some()
}

/// [SES-30] [SES-23] Row 14: an idle socket that the upstream closes, ends or resets is noticed while it is idle, and not handed
/// out. The next turn is sent once, on a fresh socket.
#[tokio::test(flavor = "multi_thread")]
async fn closed_while_idle() {
    let world = Setup::new().start().await;
    let ways = ["close", "close, code=1001", "close, code=1011", "fin", "reset"];
    for (number, way) in ways.iter().enumerate() {
        let key = format!("k{number}");
        assert!(by_session(&world, &key, &format!("sim:afterwards(do={way}, delay=5ms)")).await);
        world.saw("session_retired", number + 1).await;
        assert!(by_session(&world, &key, "next").await, "{way}");
        let sockets = world.sockets(&key);
        assert!(
            sockets.len() == 2 && sockets[0] != sockets[1],
            "{way}: {sockets:?}"
        );
    }
    // All at once, as when a load balancer is restarted.
    let retired = world.events("session_retired").len();
    world.upstream.end_sockets(Ending::Reset);
    world.saw("session_retired", retired + ways.len()).await;
    for number in 0..ways.len() {
        assert!(by_session(&world, &format!("k{number}"), "again").await);
    }
    assert!(
        world
            .events("session_retired")
            .iter()
            .all(|event| event["reason"] == "closed_by_upstream")
    );
    world.quiet().await;
}

/// [SES-23] Row 14: a socket that has gone without a word must answer a ping before reuse. It does not, and the turn takes a
/// fresh one, unsent and in time.
#[tokio::test(flavor = "multi_thread")]
async fn mute_while_idle() {
    let windows =
        "[session]\nmax_per_key = 1\n[watchdog]\nreuse_check_after = \"0s\"\npong_deadline = \"200ms\"";
    let world = Setup::new().config(windows).start().await;
    assert!(by_session(&world, "a", "sim:afterwards(do=mute, delay=1ms)").await);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let began = Instant::now();
    assert!(by_session(&world, "a", "next").await);
    assert!(
        began.elapsed() >= Duration::from_millis(200),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(world.sockets("a").len(), 2);
    assert_eq!(world.events("session_retired")[0]["reason"], "unfit");
    // A healthy one answers, and is used.
    assert!(by_session(&world, "a", "next").await);
    assert_eq!(world.upstream.look(|ledger| ledger.sockets_opened), 2);
    world.quiet().await;
}

/// [SES-25] Idle sockets are pinged; one that used to answer and stops is dead, and is not there any more when it is needed. In
/// mid-turn the turn ends, and its client hears of it.
#[tokio::test(flavor = "multi_thread")]
async fn pings_find_the_dead() {
    let world = Setup::new()
        .config("[watchdog]\nping_interval = \"150ms\"")
        .start()
        .await;
    assert!(by_session(&world, "a", "sim:afterwards(do=mute, delay=500ms)").await);
    let pinged = |ledger: &responses_bridge::simulator::Ledger| ledger.sockets[0].pings >= 2;
    world.upstream_saw("two pings", pinged).await;
    world.saw("session_retired", 1).await;
    assert_eq!(world.events("session_retired")[0]["reason"], "dead");
    assert!(by_session(&world, "a", "next").await);
    let busy = Ask::turn("sim:pause(after=1, for=500ms) sim:mute(after=1)").thread("b");
    let answer = world.ask(&busy).await;
    assert_eq!(answer.failure(), "bridge_socket_dead");
    world.quiet().await;
}

/// [SES-2] [INV-3] Row 14: an upstream that takes no more bytes, or resets in the middle of the create, fails the turn at once or
/// at the write deadline, and never later.
#[tokio::test(flavor = "multi_thread")]
async fn the_write_fails() {
    let world = Setup::new()
        .config("[watchdog]\nwrite_deadline = \"400ms\"")
        .script("[[upgrade]]\ndo = \"slow_read(rate=1, delay=60s)\"")
        .start()
        .await;
    let large = Ask::turn("x".repeat(12 << 20)).thread("a");
    let answer = world.ask(&large).await;
    assert_eq!(
        (answer.status, answer.error().as_str()),
        (502, "bridge_write_stalled")
    );
    let reset = async {
        world.saw("turn_sent", 2).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        world.upstream.end_sockets(Ending::Reset);
    };
    let (answer, ()) = tokio::join!(world.ask(&large), reset);
    assert_eq!(answer.status, 502);
    answer.error();
    assert_eq!(world.upstream.look(|ledger| ledger.creates_total), 0);
    world.quiet().await;
}

/// [QUA-14] [INV-7] Row 17: the upstream refuses sockets beyond its ceiling. Every turn is served, the ceiling is learned from one
/// refusal, and no socket that is there is given up for it.
#[tokio::test(flavor = "multi_thread")]
async fn beyond_the_ceiling() {
    for status in [403, 429] {
        let world = Setup::new()
            .script(&format!("[limits]\nsockets = 50\nrefuse_with = {status}"))
            .start()
            .await;
        let mut sessions = 0;
        for number in 0..60 {
            sessions += usize::from(by_session(&world, &format!("k{number}"), "hello").await);
        }
        assert_eq!(sessions, 50);
        let all_again = (0..60).map(async |number| by_session(&world, &format!("k{number}"), "again").await);
        let again = join_all(all_again).await;
        assert_eq!(again.iter().filter(|session| **session).count(), 50);
        world.upstream.look(|ledger| {
            assert_eq!(
                (ledger.sockets_open, ledger.handshakes_refused),
                (50, 1),
                "{status}"
            );
        });
        assert!(world.events("session_retired").is_empty() && world.events("session_evicted").is_empty());
        world.quiet().await;
    }
}

/// [QUA-15] [KEY-27] Row 17: sixty conversations begin at once, beyond handshakes and ceiling: all are served, and no more
/// handshakes run at a time than may.
#[tokio::test(flavor = "multi_thread")]
async fn a_rush_of_conversations() {
    let world = Setup::new().script("[limits]\nsockets = 20").start().await;
    for round in 0..3 {
        let all = (0..60).map(async |number| by_session(&world, &format!("k{number}"), "hello").await);
        join_all(all).await;
        assert!(
            world.upstream.look(|ledger| ledger.sockets_most) <= 20,
            "round {round}"
        );
    }
    let refused = world.upstream.look(|ledger| ledger.handshakes_refused);
    assert!(
        refused <= 8,
        "{refused} handshakes for a ceiling that one refusal tells"
    );
    world.quiet().await;
}

/// [INV-7] [QUA-14] Row 17: the bridge's own caps. One session more than fit evicts the longest idle one; a session at work is never
/// evicted, then the newcomer goes by direct HTTP.
#[tokio::test(flavor = "multi_thread")]
async fn more_sessions_than_fit() {
    let world = Setup::new()
        .config("[session]\nmax_sessions = 5\nmax_per_key = 1")
        .start()
        .await;
    for number in 0..6 {
        assert!(by_session(&world, &format!("k{number}"), "hello").await);
    }
    assert_eq!(world.events("session_evicted").len(), 1);
    world
        .upstream_saw("the evicted socket's close", |ledger| ledger.sockets_open == 5)
        .await;
    // The longest idle one was the first.
    assert!(by_session(&world, "k1", "still there").await);
    assert_eq!(world.events("session_opened").len(), 6);
    let work = (0..5).map(async |number| {
        let key = format!("busy{number}");
        let ask = Ask::turn(format!("sim:conv={key} sim:pause(after=1, for=1s)")).thread(&key);
        let mut reply = world.open(&ask).await;
        reply.until("response.output_text.delta").await;
        reply
    });
    let busy = join_all(work).await;
    assert!(!by_session(&world, "late", "hello").await);
    assert_eq!(world.events("http_fallback")[0]["reason"], "no_room");
    for reply in busy {
        reply.finish().await.completed();
    }
    world.quiet().await;
}

/// [QUA-13] [HTTP-5] Row 20: an upgrade that is refused, wrong, slow or never answered costs the call the patience at most: the same
/// call goes by direct HTTP, once.
#[tokio::test(flavor = "multi_thread")]
async fn the_upgrade_fails() {
    let kinds = [
        "refuse(status=200)",
        "refuse(status=302)",
        "refuse(status=400)",
        "refuse(status=401)",
        "refuse(status=403)",
        "refuse(status=404)",
        "refuse(status=405)",
        "refuse(status=426)",
        "refuse(status=429)",
        "refuse(status=500)",
        "refuse(status=501)",
        "refuse(status=503)",
        "hang",
        "wrong_accept",
        "bare_101",
        "fin",
        "reset",
    ];
    let kind = async |kind: &str| {
        let world = Setup::new()
            .config("[watchdog]\nhandshake_patience = \"300ms\"\nconnect_deadline = \"600ms\"")
            .script(&format!("[[upgrade]]\ndo = \"{kind}\""))
            .start()
            .await;
        for (number, stream) in [true, false].into_iter().enumerate() {
            let key = format!("k{number}");
            let ask = Ask::turn(format!("sim:conv={key} hello"))
                .thread(&key)
                .with("stream", stream);
            let began = Instant::now();
            world.ask(&ask).await.completed();
            assert!(
                began.elapsed() < Duration::from_secs(5),
                "{kind}: {:?}",
                began.elapsed()
            );
            assert_eq!(
                (world.creates(&key).websocket, world.creates(&key).http),
                (0, 1),
                "{kind}"
            );
        }
        let gone = ["404", "405", "426", "501"];
        let upgrades = if gone.iter().any(|status| kind.contains(status)) {
            1
        } else {
            2
        };
        let counted = format!("{upgrades} upgrades, {kind}");
        world
            .upstream_saw(&counted, |ledger| ledger.handshakes_refused == upgrades)
            .await;
        world.quiet().await;
    };
    for kinds in kinds.chunks(6) {
        join_all(kinds.iter().map(|name| kind(name))).await;
    }
}

/// [HTTP-5] Row 20: where direct HTTP refuses too, its answer is the client's.
#[tokio::test(flavor = "multi_thread")]
async fn both_refuse() {
    for status in [401, 403, 429, 503] {
        let world = Setup::new()
            .script(&format!("[[upgrade]]\ndo = \"refuse(status={status})\""))
            .start()
            .await;
        let words = format!("sim:error(status={status}, message=from direct HTTP, retry_after=7)");
        let answer = world.ask(&Ask::turn(words)).await;
        assert_eq!(answer.status, status);
        answer.error();
        assert_eq!(answer.json()["error"]["message"], "from direct HTTP");
        assert_eq!(answer.headers["retry-after"], "7");
        assert_eq!(world.upstream.look(|ledger| ledger.creates_total), 1);
    }
}

/// [QUA-15] Row 20: a slow upgrade finishes in the background, and the next turn has its session.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_upgrade_is_for_the_next_turn() {
    let world = Setup::new()
        .config("[watchdog]\nhandshake_patience = \"150ms\"")
        .script("[[upgrade]]\ndo = \"slow(delay=700ms, times=1)\"")
        .start()
        .await;
    let began = Instant::now();
    assert!(!by_session(&world, "a", "hello").await);
    assert!(
        began.elapsed() < Duration::from_millis(650),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(world.events("http_fallback")[0]["reason"], "upgrade_slow");
    world.saw("session_opened", 1).await;
    assert!(by_session(&world, "a", "next").await);
    assert_eq!(world.upstream.look(|ledger| ledger.sockets_opened), 1);
    world.quiet().await;
}

/// [HTTP-3] [HTTP-6] Row 21: the fallback has deadlines of its own: a head and nothing more is no success.
#[tokio::test(flavor = "multi_thread")]
async fn the_fallback_is_silent_too() {
    let world = Setup::new()
        .config("[http]\nfirst_byte = \"300ms\"\nfirst_event = \"300ms\"\nbetween_events = \"300ms\"")
        .script("[[upgrade]]\ndo = \"refuse(status=404)\"")
        .start()
        .await;
    let held = [
        ("silent", "bridge_first_byte_timeout"),
        ("headers_only", "bridge_first_event_timeout"),
        ("pings(every=20ms)", "bridge_first_event_timeout"),
        ("telemetry(every=20ms)", "bridge_first_event_timeout"),
    ];
    for (words, code) in held {
        let answer = world.ask(&Ask::turn(format!("sim:{words}"))).await;
        assert_eq!((answer.status, answer.error().as_str()), (504, code), "{words}");
    }
    for words in [
        "pause(after=1, for=ever)",
        "pause(after=0, for=ever, with=pings, every=20ms)",
    ] {
        let answer = world.ask(&Ask::turn(format!("sim:{words}"))).await;
        assert_eq!(answer.failure(), "bridge_idle_timeout", "{words}");
    }
    // Over as soon as the terminal is here, although the upstream leaves its body open.
    let began = Instant::now();
    world.ask(&Ask::turn("sim:left_open(for=20s)")).await.completed();
    assert!(began.elapsed() < Duration::from_secs(10));
    eventually("no connection is left", || {
        world
            .upstream
            .look(|ledger| ledger.creates.iter().all(|create| create.took_ms.is_some()))
    })
    .await;
    world.quiet().await;
}

/// Lets every upgrade pass and ends the socket in the same write, as middleboxes do that know no WebSocket; a POST gets its
/// answer. Counts the upgrades.
async fn middlebox(listener: TcpListener, upgrades: Arc<AtomicUsize>) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let upgrades = upgrades.clone();
        tokio::spawn(async move {
            let mut request = Vec::new();
            let is_whole = |request: &[u8]| {
                request.ends_with(b"}") || request.starts_with(b"GET ") && request.ends_with(b"\r\n\r\n")
            };
            while !is_whole(&request) {
                if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                    return;
                }
            }
            let answer = if request.starts_with(b"GET ") {
                upgrades.fetch_add(1, Ordering::Relaxed);
                let head = String::from_utf8(request).unwrap();
                let key = head
                    .lines()
                    .find_map(|line| line.strip_prefix("sec-websocket-key: "))
                    .unwrap();
                let accept = derive_accept_key(key.as_bytes());
                let mut answer = format!(
                    "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
                     sec-websocket-accept: {accept}\r\n\r\n"
                )
                .into_bytes();
                answer.extend_from_slice(b"\x88\x02\x03\xf5");
                answer
            } else {
                let events = r#"data: {"type":"response.created","response":{"id":"r"}}

data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}

"#;
                format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{events}"
                )
                .into_bytes()
            };
            let _ = stream.write_all(&answer).await;
        });
    }
}

/// [QUA-11] [INV-1] Row 20, one step later: the upgrade succeeds, and the socket is gone before it took a byte of its turn.
/// Nothing was sent, so the turn goes direct in the same call, instead of dialling on and on; three such sockets make a sick
/// transport, as three failed handshakes do.
#[tokio::test(flavor = "multi_thread")]
async fn gone_as_soon_as_open() {
    let listener = peer::listen().await;
    let setup = peer::setup(&listener, Way::Socket);
    let upgrades = Arc::new(AtomicUsize::new(0));
    let _middlebox = AbortOnDropHandle::new(tokio::spawn(middlebox(listener, upgrades.clone())));
    let world = setup.start().await;
    for key in ["a", "b", "c", "d", "e"] {
        world.ask(&Ask::turn("hello").thread(key)).await.completed();
    }
    assert_eq!(upgrades.load(Ordering::Relaxed), 3);
    let fallbacks = world.events("http_fallback");
    let reasons: Vec<_> = fallbacks.iter().map(|event| event["reason"].clone()).collect();
    let (refused, sick) = ("upgrade_refused", "sick_transport");
    assert_eq!(reasons, [refused, refused, refused, sick, sick]);
}
