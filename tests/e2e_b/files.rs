//! A process with few files.

use std::time::Duration;

use futures_util::future::join_all;
use responses_bridge::simulator::Simulator;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::client::{Ask, MOMENT, Reply};
use crate::process::{CLIENTS, Home, config};
use crate::world::eventually;

/// A turn, and where it is told to come again, again: as an agent does.
async fn patient(ask: Ask, to: std::net::SocketAddr) -> u32 {
    for refusals in 0..200 {
        let answer = ask.ask(to).await;
        if answer.status == 200 {
            answer.completed();
            return refusals;
        }
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (503, "bridge_too_many_connections")
        );
        sleep(Duration::from_millis(50)).await;
    }
    panic!("never served");
}

/// [EDGE-6] [INV-7] row 45: 256 files and 400 sessions, one after the other, then 400 clients at once: the caps follow from the
/// limit, idle sessions make room, what is too much is told to come again, and nothing spins, starves or stays broken.
#[tokio::test]
async fn few_files_and_many_sessions() {
    let upstream = Simulator::start(Default::default()).await.unwrap();
    let home = Home::new(&config(&upstream.base_url(), CLIENTS));
    let bridge = home.start_after("ulimit -n 256").await;
    let to = bridge.address;
    for n in 0..400 {
        let ask = Ask::turn(format!("sim:conv=a{n} hello"))
            .bearer("key-alice")
            .thread(&format!("a{n}"));
        ask.ask(to).await.completed();
    }
    let ledger = upstream.ledger();
    assert_eq!(
        (ledger.creates_total, ledger.http_requests),
        (400, 0),
        "every one of them got a session"
    );
    assert!(
        (32..=128).contains(&ledger.sockets_open),
        "{} sockets",
        ledger.sockets_open
    );
    let crowd = (0..400).map(|n| {
        let ask = Ask::turn(format!("sim:conv=b{n} sim:text(n=3, delay=20ms)"))
            .bearer("key-alice")
            .thread(&format!("b{n}"));
        tokio::spawn(patient(ask, to))
    });
    let refusals: u32 = join_all(crowd.collect::<Vec<_>>())
        .await
        .into_iter()
        .map(Result::unwrap)
        .sum();
    assert!(refusals > 0, "64 connections were enough for 400 clients?");
    assert!(
        bridge.events("breaker_changed").is_empty(),
        "the bridge's own limit made upstream look sick"
    );
    let failed: Vec<_> = bridge
        .events("turn_finished")
        .into_iter()
        .filter(|line| line["outcome"] != "completed")
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
    sleep(Duration::from_millis(200)).await;
    let files = std::fs::read_dir(format!("/proc/{}/fd", bridge.id()))
        .unwrap()
        .count();
    assert!(files <= 256 - 16, "{files} files are open");
}

/// [EDGE-6] [EDGE-7] Connections at the cap + 1: one more is told to come again, those that are open work on, the process
/// does not spin, and when they are gone all is as before.
#[tokio::test]
async fn connections_at_the_cap() {
    let upstream = Simulator::start(Default::default()).await.unwrap();
    let home = Home::new(&config(&upstream.base_url(), CLIENTS));
    let bridge = home.start_after("ulimit -n 256").await;
    let ask = Ask::turn("sim:conv=a hello").bearer("key-alice");
    let mut open = Vec::new();
    for _ in 0..64 {
        open.push(TcpStream::connect(bridge.address).await.unwrap());
    }
    sleep(Duration::from_millis(100)).await;
    let refused = ask.ask(bridge.address).await;
    assert_eq!(
        (refused.status, refused.error().as_str()),
        (503, "bridge_too_many_connections")
    );
    // Far beyond what the file table holds.
    let mut flood = Vec::new();
    for _ in 0..400 {
        flood.push(TcpStream::connect(bridge.address).await.unwrap());
    }
    let before = (bridge.ticks(), Instant::now());
    sleep(Duration::from_millis(700)).await;
    let share = (bridge.ticks() - before.0) as f64 / 100.0 / before.1.elapsed().as_secs_f64();
    assert!(share < 0.5, "the accept loop spins: {share} of a processor");
    drop((open, flood));
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let mut reply: Reply = ask.send(bridge.address).await;
        reply.read_head().await;
        if reply.status == 200 {
            reply.finish().await.completed();
            break;
        }
        assert!(Instant::now() < until, "still refused: {reply:?}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// [SES-15] [UP-5] row 24: clients that leave leave no file behind, on either side of the bridge.
#[tokio::test]
async fn those_who_leave_leave_no_file() {
    let upstream = Simulator::start(Default::default()).await.unwrap();
    let home = Home::new(&config(&upstream.base_url(), CLIENTS));
    let bridge = home.start().await;
    let files = || {
        std::fs::read_dir(format!("/proc/{}/fd", bridge.id()))
            .unwrap()
            .count()
    };
    let ask = |n: usize, words: &str| {
        Ask::turn(format!("sim:conv=a {words}"))
            .bearer("key-alice")
            .thread(&format!("k{n}"))
    };
    ask(0, "hello").ask(bridge.address).await.completed();
    let before = files();
    for round in 0..4 {
        let words = [
            "sim:silent",
            "sim:telemetry(every=10ms)",
            "sim:pause(after=1, for=ever)",
            "sim:no_created",
        ][round];
        let seen = upstream.look(|ledger| ledger.creates_total);
        let asks = (1..51).map(|n| {
            let ask = ask(n, words);
            async move { ask.send(bridge.address).await }
        });
        let replies = join_all(asks).await;
        assert!(
            upstream
                .until(MOMENT, |ledger| ledger.creates_total == seen + 50)
                .await
        );
        for (number, reply) in replies.into_iter().enumerate() {
            if number % 2 == 0 {
                reply.reset()
            } else {
                drop(reply)
            }
        }
    }
    // The first turn's session, and perhaps what was being closed then, are in the count from before.
    eventually("all is closed", || files() <= before).await;
}
