//! The events' stream as a program reads it: where it goes on after a break, what a slow reader is told, and how it ends.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::browser::Browser;
use crate::client::{Ask, Event, MOMENT, Reply};
use crate::raw::{request, say};
use crate::world::World;
use crate::{operator, setup};

/// So many requests that are refused, each an event, over one connection.
async fn refusals(world: &World, number: usize) {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let id = "r".repeat(120);
    let one = format!("GET /nowhere HTTP/1.1\r\nhost: localhost\r\nx-request-id: {id}\r\n\r\n");
    let last = request("GET /nowhere", &[], "");
    let (mut answers, mut asks) = stream.split();
    let asking = async {
        for _ in 1..number {
            asks.write_all(one.as_bytes()).await.unwrap();
        }
        asks.write_all(last.as_bytes()).await.unwrap();
    };
    let mut sink = tokio::io::sink();
    let reading = tokio::io::copy(&mut answers, &mut sink);
    let both = async { tokio::join!(asking, reading) };
    let (_, read) = tokio::time::timeout(4 * MOMENT, both)
        .await
        .expect("refusals in time");
    read.unwrap();
}

async fn follow(world: &World, path: &str, last: Option<&str>) -> Reply {
    let mut ask = operator("GET", path);
    if let Some(last) = last {
        ask = ask.header("last-event-id", last);
    }
    let reply = world.open(&ask).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply
}

/// The next event's number, or how many were missed.
#[derive(Debug, PartialEq)]
enum Next {
    Number(u64),
    /// None: nobody knows how many.
    Gap(Option<u64>),
}

fn next(event: &Event) -> Next {
    match (event.id, &*event.name) {
        (None, "gap") => Next::Gap(event.data["missed"].as_u64()),
        (Some(number), _) => Next::Number(number),
        other => panic!("{other:?}"),
    }
}

/// The next ones, in time: a stream that has nothing to tell still says that it is there.
async fn some(reply: &mut Reply, number: usize) -> Vec<Next> {
    let mut all = Vec::new();
    for _ in 0..number {
        let event = tokio::time::timeout(MOMENT, reply.event()).await;
        all.push(next(&event.expect("an event in time").expect("an event")));
    }
    all
}

/// [ADM-21] A reader that comes back with the last id that it saw gets what came after it; what is kept no more, or was never told by
/// this process, is told as a gap before all that is kept.
#[tokio::test]
async fn a_reader_goes_on_where_it_was() {
    use Next::{Gap, Number};
    let world = setup().start().await;
    let path = "/admin/events?kind=refused";
    let mut first = follow(&world, path, None).await;
    refusals(&world, 5).await;
    let seen = some(&mut first, 3).await;
    let Number(begin) = seen[0] else {
        panic!("{seen:?}")
    };
    assert_eq!(seen, [Number(begin), Number(begin + 1), Number(begin + 2)]);
    drop(first);
    let last = (begin + 2).to_string();
    let mut second = follow(&world, path, Some(&last)).await;
    assert_eq!(some(&mut second, 2).await, [Number(begin + 3), Number(begin + 4)]);
    // What comes later follows, without a break.
    refusals(&world, 1).await;
    assert_eq!(some(&mut second, 1).await, [Number(begin + 5)]);
    // All but the latest 512 are forgotten.
    refusals(&world, 600).await;
    let newest = begin + 605;
    let oldest = newest - 511;
    let mut third = follow(&world, path, Some(&last)).await;
    assert_eq!(
        some(&mut third, 3).await,
        [
            Gap(Some(oldest - (begin + 3))),
            Number(oldest),
            Number(oldest + 1)
        ]
    );
    let unbroken = (newest - 1).to_string();
    let mut fourth = follow(&world, path, Some(&unbroken)).await;
    assert_eq!(some(&mut fourth, 1).await, [Number(newest)]);
    for strange in [
        "999999999",
        "-1",
        "18446744073709551616",
        "<b>",
        "'; DROP TABLE journal; --",
        "",
    ] {
        let mut reply = follow(&world, path, Some(strange)).await;
        assert_eq!(
            some(&mut reply, 2).await,
            [Gap(None), Number(oldest)],
            "{strange:?}"
        );
    }
}

/// [ADM-22] A reader that takes nothing for a while misses events, and is told how many: what it got and what it missed is all there
/// was, and others were not held up by it.
#[tokio::test]
async fn a_slow_reader_is_told_what_it_missed() {
    let world = setup().start().await;
    let ask = operator("GET", "/admin/events?kind=refused").narrow();
    let mut slow = world.open(&ask).await;
    // More than all buffers of the system on the way and the 1024 events hold.
    let rounds = 6;
    for _ in 0..rounds {
        let mut swift = follow(&world, "/admin/events?kind=refused", Some("0")).await;
        refusals(&world, 4000).await;
        swift.until("refused").await;
    }
    let all = 4000 * rounds;
    let (mut got, mut missed, mut last) = (0, 0, None);
    while got + missed < all {
        let [event] = &some(&mut slow, 1).await[..] else {
            unreachable!()
        };
        match *event {
            Next::Gap(number) => {
                let number = number.expect("a number");
                assert!(number > 0);
                missed += number;
                last = last.map(|last| last + number);
            }
            Next::Number(number) => {
                got += 1;
                assert!(last.is_none_or(|last| number == last + 1), "{last:?}, {number}");
                last = Some(number);
            }
        }
    }
    assert!(got >= 1024 && missed > 0, "{got} came, {missed} did not");
    assert_eq!(got + missed, all);
    // It is up to date again.
    refusals(&world, 1).await;
    assert_eq!(some(&mut slow, 1).await, [Next::Number(last.unwrap() + 1)]);
}

/// [ADM-23] 32 may follow at once; one more is told to come later. One that leaves makes room, by a close or by a reset.
#[tokio::test]
async fn so_many_may_follow() {
    let world = setup().start().await;
    let mut open = Vec::new();
    for _ in 0..32 {
        open.push(follow(&world, "/admin/events", None).await);
    }
    let over = world.open(&operator("GET", "/admin/events")).await;
    assert_eq!(over.status, 503);
    let over = over.finish().await;
    assert_eq!(over.error(), "bridge_too_many_streams");
    assert_eq!(over.headers["retry-after"], "5");
    // Everything else is answered, and no stream was cut for it.
    assert_eq!(world.ask(&operator("GET", "/admin/status")).await.status, 200);
    for (number, reset) in [true, false].into_iter().enumerate() {
        let one = open.remove(0);
        if reset {
            one.reset();
        } else {
            drop(one);
        }
        let until = tokio::time::Instant::now() + MOMENT;
        let again = loop {
            let reply = world.open(&operator("GET", "/admin/events")).await;
            if reply.status == 200 {
                break reply;
            }
            assert!(tokio::time::Instant::now() < until, "no room for the {number}th");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        open.push(again);
    }
    refusals(&world, 1).await;
    for reply in &mut open {
        reply.until("refused").await;
    }
}

/// [ADM-23] [PAGE-16] A drain ends every stream after it has told that it has finished, as a stream ends, and waits for none: not for one that
/// takes nothing either.
#[tokio::test]
async fn streams_end_with_the_drain() {
    let world = setup().start().await;
    let browser = Browser::sign_in(&world).await;
    let page = Ask::bare("GET", "/admin/ui/events")
        .without("authorization")
        .header("cookie", &browser.cookie);
    let mut stuck = Vec::new();
    for ask in [operator("GET", "/admin/events"), page] {
        let reply = world.open(&ask.narrow()).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        stuck.push(reply);
    }
    refusals(&world, 12_000).await;
    let mut reading = Vec::new();
    for _ in 0..3 {
        reading.push(follow(&world, "/admin/events", None).await);
    }
    let address = world.address;
    let looks = request("GET /admin/ui/events", &[("cookie", &browser.cookie)], "");
    let looking = tokio::spawn(async move { say(address, &looks).await });
    let mut turn = world.open(&Ask::turn("sim:pause(after=1, for=1s)")).await;
    turn.until("response.created").await;
    let begun = tokio::time::Instant::now();
    let draining = tokio::spawn(world.app.drain());
    for mut reply in reading {
        reply.until("drain_started").await;
        // The turn ends first, which is told as well.
        reply.until("turn_finished").await;
        reply.until("drain_finished").await;
        assert_eq!(reply.event().await, None, "more after the end");
        let answer = reply.finish().await;
        assert_eq!(answer.end, crate::client::End::Clean);
    }
    let looked = looking.await.unwrap();
    assert!(looked.body.contains("drain_finished"), "{looked:?}");
    turn.finish().await.completed();
    tokio::time::timeout(MOMENT, draining)
        .await
        .expect("a drain in time")
        .unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "held up for {:?}",
        begun.elapsed()
    );
    assert!(TcpStream::connect(address).await.is_err());
    drop(stuck);
}
