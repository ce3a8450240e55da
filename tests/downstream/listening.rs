//! The accept loop: time-outs, caps, drain, a full file table, unreadable heads.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use responses_bridge::listen::{self, Accept, Doors, Limits};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::world::{GOOD, MOMENT, Setup, bare, events, eventually, post};

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_millis(1000);

fn health() -> &'static str {
    "GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n"
}

/// [EDGE-3] a head must be whole in its time, from the accept or from its first byte, and bytes that trickle gain
/// nothing; a kept connection may be idle longer, but not for ever. A running request is under neither.
#[tokio::test]
async fn heads_and_idle_connections_have_different_times() {
    let limits = Limits {
        header: SHORT,
        idle: LONG,
        ..Limits::default()
    };
    let world = Setup {
        limits,
        ..Setup::default()
    }
    .start();

    let mut silent = world.connect().await;
    let begun = Instant::now();
    assert!(silent.closed().await);
    assert!(
        begun.elapsed() >= SHORT && begun.elapsed() < LONG,
        "{:?}",
        begun.elapsed()
    );

    let mut kept = world.connect().await;
    kept.send(health()).await;
    kept.answer().await;
    let begun = Instant::now();
    tokio::time::sleep(SHORT * 2).await;
    kept.send(health()).await;
    assert_eq!(kept.answer().await.status, 200, "idle beyond the head's time");
    assert!(kept.closed().await);
    assert!(begun.elapsed() >= LONG + SHORT, "{:?}", begun.elapsed());

    let mut trickle = world.connect().await;
    trickle.send(health()).await;
    trickle.answer().await;
    let begun = Instant::now();
    let (read, mut write) = trickle.stream.split();
    let trickling = async {
        for byte in health().as_bytes() {
            let _ = tokio::io::AsyncWriteExt::write_all(&mut write, &[*byte]).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let closing = async { while read.readable().await.is_ok() && read.try_read(&mut [0; 64]).is_err() {} };
    tokio::select! { () = trickling => panic!("never closed"), () = closing => {} }
    assert!(
        begun.elapsed() >= SHORT && begun.elapsed() < LONG,
        "{:?}",
        begun.elapsed()
    );

    let mut running = world.connect().await;
    running
        .send(post("/v1/responses", "x-fake: slow\r\n", GOOD))
        .await;
    assert_eq!(running.answer().await.status, 200);
}

/// [EDGE-4] a client that takes no byte while bytes wait for it loses its connection, and the reply is dropped; one
/// that goes on taking does not.
#[tokio::test]
async fn a_client_that_takes_nothing_is_cut() {
    let limits = Limits {
        write_stall: LONG,
        ..Limits::default()
    };
    let world = Setup {
        limits,
        ..Setup::default()
    }
    .start();
    let mut client = world.connect().await;
    client
        .send(post("/v1/responses", "x-fake: flood\r\n", GOOD))
        .await;
    client.head().await;
    let begun = Instant::now();
    while begun.elapsed() < LONG * 2 {
        client.exactly(512 * 1024).await;
        tokio::time::sleep(SHORT).await;
    }
    assert_eq!(world.bridge.live(), 1, "it took bytes all the time");
    world.quiet().await;
    eventually("the connection is gone", || world.room.available_permits() == 64).await;
}

/// [EDGE-7] at the cap a connection is served; one more is told 503 with Retry-After, and served when there is room.
#[tokio::test]
async fn one_connection_beyond_the_cap_is_told() {
    let world = Setup {
        connections: 2,
        ..Setup::default()
    }
    .start();
    let mut first = world.connect().await;
    let mut second = world.connect().await;
    for client in [&mut first, &mut second] {
        client.send(health()).await;
        assert_eq!(client.answer().await.status, 200);
    }
    let answer = world.ask(post("/v1/responses", "", GOOD)).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (503, "bridge_too_many_connections")
    );
    assert!(answer.headers.contains_key("retry-after"));
    assert!(world.bridge.seen().is_empty());
    first.send(health()).await;
    assert_eq!(first.answer().await.status, 200, "those inside notice nothing");
    drop(second);
    eventually("a place is free", || world.room.available_permits() == 1).await;
    assert_eq!(world.ask(health()).await.status, 200);
}

/// [EDGE-8] at shutdown the listener closes, idle connections end at once, running answers are finished and end their
/// connections, and the tracker sees the last one go.
#[tokio::test]
async fn a_drain_lets_answers_finish() {
    let limits = Limits {
        linger: MOMENT * 10,
        ..Limits::default()
    };
    let world = Setup {
        limits,
        ..Setup::default()
    }
    .start();
    let mut idle = world.connect().await;
    idle.send(health()).await;
    idle.answer().await;
    let mut running = world.connect().await;
    running
        .send(post("/v1/responses", "x-fake: slow\r\n", GOOD))
        .await;
    eventually("the call runs", || world.bridge.live() == 1).await;
    world.shutdown.cancel();
    assert!(idle.closed().await);
    assert_eq!(
        world.bridge.live(),
        1,
        "idle connections do not wait for running ones"
    );
    assert!(TcpStream::connect(world.address).await.is_err(), "nobody new");
    let answer = running.answer().await;
    assert_eq!(
        (answer.status, answer.json()["slow"].as_bool()),
        (200, Some(true))
    );
    assert!(running.closed().await);
    drop(running);
    world.tracker.close();
    tokio::time::timeout(MOMENT, world.tracker.wait()).await.unwrap();
    assert_eq!(world.room.available_permits(), 64);
}

/// [EDGE-9] a head that cannot be read is answered in the API's shape: 431 for too many or too large headers, 400 for
/// nonsense; then the connection closes. The client reads the answer though it is still sending.
#[tokio::test]
async fn unreadable_heads_are_answered() {
    let world = Setup::default().start();
    let many: String = (0..200).map(|i| format!("x-{i}: 1\r\n")).collect();
    let large = format!("x-large: {}\r\n", "a".repeat(70_000));
    let endless = "x-more: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n".repeat(100_000);
    for (request, status, code) in [
        (bare("GET", "/v1/models", &many), 431, "bridge_headers_too_large"),
        (bare("GET", "/v1/models", &large), 431, "bridge_headers_too_large"),
        (
            bare("GET", "/v1/models", &endless),
            431,
            "bridge_headers_too_large",
        ),
        (
            format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(65_600)),
            431,
            "bridge_headers_too_large",
        ),
        (
            "GET / HTTP/1.1\r\nbad name: x\r\n\r\n".into(),
            400,
            "bridge_invalid_body",
        ),
        ("nonsense\r\n\r\n".into(), 400, "bridge_invalid_body"),
        (
            "GET /v1/\u{7f}{} HTTP/1.1\r\n\r\n".into(),
            400,
            "bridge_invalid_body",
        ),
    ] {
        let mut client = world.connect().await;
        client.send(&request).await;
        let answer = client.answer().await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{:.40}",
            request
        );
        assert_eq!(answer.headers["connection"], "close");
        assert!(client.closed().await);
    }
    let mut second = world.connect().await;
    second.send(health()).await;
    assert_eq!(second.answer().await.status, 200);
    second.send("nonsense\r\n\r\n").await;
    assert_eq!(second.answer().await.status, 400, "on a kept connection as well");
    eventually("every connection is gone", || {
        world.room.available_permits() >= 63
    })
    .await;
    assert!(world.bridge.seen().is_empty());
}

/// [EDGE-9] a body that is refused at its head does not reset the connection under the answer.
#[tokio::test]
async fn a_refused_upload_reads_its_answer() {
    let world = Setup::default().start();
    let request = post("/v1/responses", "", vec![b'a'; 8 << 20]);
    for _ in 0..3 {
        let mut client = world.connect().await;
        let sent = tokio::io::AsyncWriteExt::write_all(&mut client.stream, &request).await;
        assert!(sent.is_ok(), "what nobody wants is still taken");
        let answer = client.answer().await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (413, "bridge_body_too_large")
        );
    }
}

/// A listener whose file table is full at first; keeps a second handle of every socket it accepts.
struct Failing {
    listener: TcpListener,
    tries: Arc<AtomicUsize>,
    failures: usize,
    sockets: Arc<Mutex<Vec<std::net::TcpStream>>>,
}

impl Accept for Failing {
    async fn accept(&self) -> io::Result<TcpStream> {
        const EMFILE: i32 = 24;
        if self.tries.fetch_add(1, Ordering::SeqCst) < self.failures {
            return Err(io::Error::from_raw_os_error(EMFILE));
        }
        let stream = self.listener.accept().await?.0.into_std()?;
        self.sockets.lock().unwrap().push(stream.try_clone()?);
        TcpStream::from_std(stream)
    }
}

/// [EDGE-6] accept fails because the file table is full: no spinning, and service when it is over.
/// [EDGE-2] every accepted socket sends small packets at once.
/// [EDGE-4] the kernel knows how long a vanished client may leave bytes unacknowledged.
#[tokio::test]
async fn a_full_file_table_does_not_spin() {
    let listener = listen::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = listener.local_addr().unwrap();
    let (tries, sockets) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let failing = Failing {
        listener,
        tries: tries.clone(),
        failures: 6,
        sockets: sockets.clone(),
    };
    let doors = Doors {
        limits: Limits::default(),
        room: Arc::new(Semaphore::new(4)),
        shutdown: CancellationToken::new(),
        tracker: TaskTracker::new(),
        events: events().0,
    };
    let service = hyper::service::service_fn(|_| async {
        Ok::<_, std::convert::Infallible>(http::Response::new(String::from("here")))
    });
    doors.tracker.spawn(doors.clone().serve(failing, service));
    tokio::time::sleep(Duration::from_millis(200)).await;
    let early = tries.load(Ordering::SeqCst);
    assert!((2..=6).contains(&early), "{early} tries in 200 ms");

    let mut stream = TcpStream::connect(address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, health().as_bytes())
        .await
        .unwrap();
    let mut answer = [0; 12];
    let read = tokio::io::AsyncReadExt::read_exact(&mut stream, &mut answer);
    tokio::time::timeout(MOMENT, read).await.unwrap().unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    let accepted = sockets.lock().unwrap().remove(0);
    assert!(accepted.nodelay().unwrap());
    #[cfg(target_os = "linux")]
    assert_eq!(
        socket2::SockRef::from(&accepted).tcp_user_timeout().unwrap(),
        Some(Limits::default().write_stall)
    );
    drop(accepted);
    drop(stream);
    doors.shutdown.cancel();
    doors.tracker.close();
    tokio::time::timeout(MOMENT, doors.tracker.wait()).await.unwrap();
}
