//! Clients that go away, a thousand of them, at every phase of a turn.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use responses_bridge::simulator::Conclusion;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{Instant, sleep};

use crate::client::{Ask, MOMENT, Reply};
use crate::shared::{HTTP_ONLY, metric, metric_is};
use crate::world::{Setup, World};

/// Goes away in one of the ways that a client can: an orderly end, a reset, or half an end, which a client that has gone
/// looks like too.
fn leave(reply: Reply, number: usize) {
    if number.is_multiple_of(2) {
        reply.reset();
    } else {
        drop(reply);
    }
}

/// Nothing is left of any turn: no count, no byte, no queue place, no handshake.
async fn all_is_flat(world: &World) {
    for gauge in ["bridge_running_turns", "bridge_queue_depth", "bridge_held_bytes"] {
        metric_is(world, gauge, "", 0.0).await;
    }
    for state in ["busy", "opening"] {
        metric_is(world, "bridge_sessions", state, 0.0).await;
    }
}

/// Sends `count` turns, `crowd` at a time; once upstream has seen them all `reached` that phase, their clients leave. The
/// upstream connections of all of them must be closed within a second.
async fn wave(world: &World, count: usize, words: &str, phase: fn(&Reply) -> bool) {
    let crowd = 25;
    let mut sent = 0;
    while sent < count {
        let before = world.upstream.look(|ledger| ledger.creates_total);
        let asks = (sent..sent + crowd).map(|n| {
            let ask = Ask::turn(format!("sim:conv=k{n} {words}")).thread(&format!("{words}{n}"));
            let address = world.address;
            async move { ask.send(address).await }
        });
        let mut replies = join_all(asks).await;
        world
            .upstream_saw("the crowd", |ledger| {
                ledger.creates_total >= before + crowd as u64
            })
            .await;
        for reply in &mut replies {
            if phase(reply) {
                reply.read_head().await;
                reply.until("response.output_text.delta").await;
            }
        }
        let left = Instant::now();
        replies
            .into_iter()
            .enumerate()
            .for_each(|(number, reply)| leave(reply, number));
        let gone = |ledger: &responses_bridge::simulator::Ledger| {
            ledger
                .creates
                .iter()
                .all(|create| create.conclusion != Conclusion::Running)
        };
        assert!(
            world.upstream.until(MOMENT, gone).await,
            "upstream still works for clients that left: {words}"
        );
        // A second, and what a busy machine may add to it.
        assert!(
            left.elapsed() < Duration::from_millis(1800),
            "{words}: {:?}",
            left.elapsed()
        );
        sent += crowd;
    }
}

/// [SES-15] [UP-5] row 24: a thousand clients leave before the first byte, while events are held, and in mid-stream, on both
/// transports: upstream is told within a second each time, and every count is flat afterwards.
#[tokio::test]
async fn a_thousand_clients_leave() {
    let held = |_: &Reply| false;
    let streaming = |_: &Reply| true;
    for config in ["", HTTP_ONLY] {
        let world = Setup::new().config(config).start().await;
        wave(&world, 150, "sim:silent", held).await;
        wave(&world, 150, "sim:telemetry(every=20ms)", held).await;
        wave(&world, 100, "sim:no_created(n=3, delay=1ms)", held).await;
        wave(&world, 100, "sim:pause(after=2, for=ever)", streaming).await;
        all_is_flat(&world).await;
        let ledger = world.upstream.ledger();
        assert_eq!((ledger.creates_total, ledger.sockets_open), (500, 0));
        let outcomes = world.events("turn_finished");
        assert_eq!(outcomes.len(), 500);
        assert!(
            outcomes.iter().all(|line| line["outcome"] == "client_gone"),
            "{:?}",
            outcomes[0]
        );
        for name in ["quarantine_opened", "breaker_changed", "response_created_timeout"] {
            assert!(world.events(name).is_empty(), "{name}");
        }
    }
}

/// The bridge before an upstream that is none.
async fn before(url: &str, transport: &str) -> World {
    let config = HTTP_ONLY
        .replace("{openai}", url)
        .replace("\"http\"", &format!("\"{transport}\""));
    Setup::new().config(&config).start().await
}

/// An address on which a connection is never made: its backlog is full, and SYNs are dropped.
async fn deaf() -> (SocketAddr, Vec<TcpStream>, TcpListener) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut fill = Vec::new();
    while let Ok(Ok(stream)) =
        tokio::time::timeout(Duration::from_millis(200), TcpStream::connect(address)).await
    {
        fill.push(stream);
    }
    (address, fill, listener)
}

/// [SES-15] [UP-5] row 24: clients leave during TCP, TLS and the upgrade, on both transports: the connection that was being
/// made is closed, its place is free, and it says nothing about the transport.
#[tokio::test]
async fn clients_leave_while_a_connection_is_made() {
    let (deaf, _fill, _listener) = deaf().await;
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mute_address = mute.local_addr().unwrap();
    for transport in ["websocket", "http"] {
        let tcp = before(&format!("http://{deaf}/v1"), transport).await;
        let tls = before(&format!("https://{mute_address}/v1"), transport).await;
        let upgrade = before(&format!("http://{mute_address}/v1"), transport).await;
        for (phase, world) in [("tcp", &tcp), ("tls", &tls), ("upgrade", &upgrade)] {
            for round in 0..3 {
                let asks = (0..8).map(|n| {
                    let ask = Ask::turn("hello").thread(&format!("{round} {n}"));
                    let address = world.address;
                    async move { ask.send(address).await }
                });
                let replies = join_all(asks).await;
                metric_is(world, "bridge_running_turns", "", 8.0).await;
                let mut upstream = Vec::new();
                if phase != "tcp" {
                    for _ in 0..8 {
                        upstream.push(
                            tokio::time::timeout(MOMENT, mute.accept())
                                .await
                                .unwrap()
                                .unwrap()
                                .0,
                        );
                    }
                }
                replies
                    .into_iter()
                    .enumerate()
                    .for_each(|(number, reply)| leave(reply, number));
                for stream in upstream {
                    // What it was sent comes first, then its end.
                    let end = async {
                        let mut buffer = [0; 4096];
                        loop {
                            stream.readable().await.unwrap();
                            match stream.try_read(&mut buffer) {
                                Ok(0) => return,
                                Ok(_) => {}
                                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                                Err(_) => return,
                            }
                        }
                    };
                    let closed = tokio::time::timeout(Duration::from_millis(1800), end).await;
                    assert!(
                        closed.is_ok(),
                        "{phase} over {transport}: the connection stays open"
                    );
                }
                all_is_flat(world).await;
            }
            assert_eq!(metric(world, "bridge_sick_transports", "").await, 0.0, "{phase}");
            assert!(
                world
                    .events("turn_sent")
                    .iter()
                    .all(|line| line["transport"] == "http"),
                "{phase}"
            );
        }
    }
}

/// [SES-15] [KEY-24] A client that leaves the queue leaves no gap in it, and its turn is never sent.
#[tokio::test]
async fn clients_leave_the_queue() {
    let world = Setup::new()
        .config("[session]\nmax_per_key = 1\nqueue_wait = \"20s\"")
        .start()
        .await;
    let ask = |name: &str| Ask::turn(format!("sim:conv={name} hello")).thread("one");
    let mut busy = world
        .open(&ask("busy").with("input", "sim:conv=busy sim:pause(after=1, for=ever)"))
        .await;
    busy.until("response.created").await;
    let mut waiting = Vec::new();
    for n in 0..6 {
        waiting.push(ask(&format!("w{n}")).send(world.address).await);
        metric_is(&world, "bridge_queue_depth", "", f64::from(n + 1)).await;
    }
    let mut last = waiting.pop().unwrap();
    waiting
        .into_iter()
        .enumerate()
        .for_each(|(number, reply)| leave(reply, number));
    metric_is(&world, "bridge_queue_depth", "", 1.0).await;
    drop(busy);
    last.read_head().await;
    last.finish().await.completed();
    assert_eq!(
        world.upstream.ledger().creates_total,
        2,
        "those who left were not sent"
    );
    all_is_flat(&world).await;
}

/// [INV-9] A client that leaves before anything was sent is told of too: one line, with what became of it.
#[tokio::test]
async fn a_client_that_leaves_early_is_in_the_log() {
    let world = Setup::new().script("[[upgrade]]\ndo = \"hang\"").start().await;
    let reply = Ask::turn("hello").thread("one").send(world.address).await;
    metric_is(&world, "bridge_sessions", "opening", 1.0).await;
    drop(reply);
    world.saw("turn_finished", 1).await;
    let line = &world.events("turn_finished")[0];
    assert_eq!(
        (&line["outcome"], &line["sent"]),
        (&"client_gone".into(), &false.into())
    );
}

/// [SES-15] row 23: what was left of an aborted turn reaches nobody: the key's next turn takes another socket and sees only
/// its own.
#[tokio::test]
async fn the_next_turn_sees_only_its_own() {
    let world = Setup::new().start().await;
    let ask = |words: &str| Ask::turn(format!("sim:conv=a {words}")).thread("one");
    for round in 0..10 {
        let mut reply = world
            .open(&ask("aborted sim:text(n=200, size=200, delay=1ms)"))
            .await;
        reply.until("response.output_text.delta").await;
        leave(reply, round);
        let answer = world.ask(&ask(&format!("healthy {round}"))).await;
        let ids: Vec<_> = answer
            .events()
            .iter()
            .filter_map(|event| event.data["response"]["id"].as_str().map(str::to_owned))
            .collect();
        assert!(ids.iter().all(|id| *id == answer.id()), "{ids:?}");
    }
    let sockets = world.sockets("a");
    for pair in sockets.chunks(2) {
        assert_ne!(pair[0], pair[1], "an aborted turn's socket was used again");
    }
}

/// [SES-23] A client that leaves while its socket proves itself: its turn is over, and was never sent. The socket still owes
/// its proof.
#[tokio::test]
async fn a_client_leaves_while_its_socket_proves_itself() {
    let config = "[session]\nmax_per_key = 1\n[watchdog]\nreuse_check_after = \"0s\"\npong_deadline = \"1s\"";
    let world = Setup::new().config(config).start().await;
    let ask = Ask::turn("sim:conv=a hello sim:afterwards(do=mute, delay=1ms, nth=2)").thread("one");
    for _ in 0..2 {
        world.ask(&ask).await.completed();
    }
    sleep(Duration::from_millis(50)).await;
    let reply = ask.send(world.address).await;
    metric_is(&world, "bridge_running_turns", "", 1.0).await;
    metric_is(&world, "bridge_sessions", "busy", 1.0).await;
    drop(reply);
    world.saw("turn_finished", 3).await;
    assert_eq!(world.events("turn_finished")[2]["outcome"], "client_gone");
    assert_eq!(world.creates("a").total(), 2);
    all_is_flat(&world).await;
    world.ask(&ask).await.completed();
    let sockets = world.sockets("a");
    assert!(sockets[2].is_some() && sockets[2] != sockets[1], "{sockets:?}");
}
