//! How long a socket is used: its age, its idle time, its proof after a quiet while, and pings under back-pressure.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use responses_bridge::simulator::{Ending, SocketEnd};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Ask, End};
use crate::shared::{HTTP_ONLY, under_way};
use crate::world::{Setup, eventually};

/// [SES-28] No turn starts on a socket older than `max_age`; the next one opens another, and the old one is closed
/// cleanly. A turn that is under way is not cut.
#[tokio::test]
async fn an_old_socket_is_rotated() {
    let world = Setup::new()
        .config("[session]\nmax_age = \"400ms\"")
        .start()
        .await;
    let ask = |prompt: &str| Ask::turn(format!("sim:conv=a {prompt}")).thread("one");
    world.ask(&ask("sim:pause(after=1, for=600ms)")).await.completed();
    world.saw("session_rotated", 1).await;
    world.ask(&ask("two")).await.completed();
    let sockets = world.sockets("a");
    assert!(
        sockets[0].is_some() && sockets[1].is_some() && sockets[0] != sockets[1],
        "{sockets:?}"
    );
    world
        .upstream_saw("a clean close", |ledger| {
            ledger.sockets[0].end == Some(SocketEnd::ClientClose(Some(1000)))
        })
        .await;
    world.saw("session_rotated", 2).await;
    // An idle one goes when its time has come, without a turn.
    world
        .upstream_saw("its end", |ledger| ledger.sockets_open == 0)
        .await;
}

/// [SES-28] ... except a turn that names the response which this old socket alone remembers.
#[tokio::test]
async fn an_old_socket_is_kept_for_its_memory() {
    let world = Setup::new()
        .config("[session]\nmax_age = \"300ms\"")
        .start()
        .await;
    let ask = |prompt: &str| {
        Ask::turn(format!("sim:conv=a {prompt}"))
            .thread("one")
            .with("store", false)
    };
    let first = world.ask(&ask("one")).await.id();
    sleep(Duration::from_millis(400)).await;
    assert_eq!(world.upstream.ledger().sockets_open, 1);
    world.ask(&ask("two").after(&first)).await.completed();
    world.ask(&ask("a new beginning")).await.completed();
    let sockets = world.sockets("a");
    assert!(
        sockets[0] == sockets[1] && sockets[2] != sockets[0] && sockets[2].is_some(),
        "{sockets:?}"
    );
}

/// [SES-28] A socket without work for `idle_ttl` is closed; work begins the time anew.
#[tokio::test]
async fn an_idle_socket_is_closed() {
    let world = Setup::new()
        .config("[session]\nidle_ttl = \"500ms\"")
        .start()
        .await;
    let ask = Ask::turn("sim:conv=a hello").thread("one");
    for _ in 0..3 {
        world.ask(&ask).await.completed();
        sleep(Duration::from_millis(200)).await;
    }
    let sockets = world.sockets("a");
    assert!(sockets.iter().all(|socket| *socket == sockets[0]), "{sockets:?}");
    world.saw("session_retired", 1).await;
    assert_eq!(world.events("session_retired")[0]["reason"], "idle_ttl");
    world
        .upstream_saw("the close", |ledger| ledger.sockets_open == 0)
        .await;
}

/// [SES-23] A socket that was quiet for long answers a ping before it is given a turn. One that does not is replaced
/// within the same call, and upstream sees one create.
#[tokio::test]
async fn a_quiet_socket_proves_itself() {
    let config = "
        [session]
        max_per_key = 1
        [watchdog]
        reuse_check_after = \"150ms\"
        pong_deadline = \"300ms\"
        ping_interval = \"1h\"";
    let world = Setup::new().config(config).start().await;
    let ask = |prompt: &str| Ask::turn(format!("sim:conv=a {prompt}")).thread("one");
    world.ask(&ask("one")).await.completed();
    world.ask(&ask("two, at once")).await.completed();
    assert_eq!(world.upstream.ledger().sockets[0].pings, 0);
    sleep(Duration::from_millis(200)).await;
    world.ask(&ask("three sim:afterwards(do=mute)")).await.completed();
    assert_eq!(world.upstream.ledger().sockets[0].pings, 1);
    sleep(Duration::from_millis(200)).await;
    let began = Instant::now();
    world.ask(&ask("four")).await.completed();
    assert!(began.elapsed() < Duration::from_secs(3));
    let sockets = world.sockets("a");
    assert!(
        sockets[..3].iter().all(|socket| *socket == sockets[0]),
        "{sockets:?}"
    );
    assert!(
        sockets.len() == 4 && sockets[3].is_some() && sockets[3] != sockets[0],
        "{sockets:?}"
    );
    assert_eq!(world.events("session_retired")[0]["reason"], "unfit");
    assert!(world.events("quarantine_opened").is_empty());
}

/// [SES-30] A socket that upstream ends while it is idle is never handed out, in whatever way it ended.
#[tokio::test]
async fn an_idle_socket_that_ended_is_not_handed_out() {
    let world = Setup::new().start().await;
    let close = Ending::Close {
        code: 1001,
        reason: String::new(),
    };
    for (turn, ending) in [close, Ending::Fin, Ending::Reset].into_iter().enumerate() {
        world
            .ask(&Ask::turn("sim:conv=a hello").thread("one"))
            .await
            .completed();
        world.upstream.end_sockets(ending);
        world.saw("session_retired", turn + 1).await;
    }
    world
        .ask(&Ask::turn("sim:conv=a hello").thread("one"))
        .await
        .completed();
    assert_eq!((world.creates("a").websocket, world.creates("a").http), (4, 0));
    let reasons: Vec<_> = world
        .events("session_retired")
        .iter()
        .map(|line| line["reason"].clone())
        .collect();
    assert!(
        reasons.iter().all(|reason| reason == "closed_by_upstream"),
        "{reasons:?}"
    );
}

/// [UP-9] [SES-16] Upstream pings while the client reads nothing: every ping is answered until the client's buffer is full;
/// then the turn ends as `slow_client`, its socket is closed and the client's connection torn.
#[tokio::test]
async fn pings_are_answered_under_back_pressure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let pongs = Arc::new(AtomicUsize::new(0));
    let answered = pongs.clone();
    let upstream = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        assert!(matches!(socket.next().await, Some(Ok(Message::Text(_)))));
        let created = r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1"}}"#;
        socket.send(Message::text(created)).await.unwrap();
        let delta = format!(
            r#"{{"type":"response.output_text.delta","delta":"{}"}}"#,
            "x".repeat(1 << 20)
        );
        for sent in 1.. {
            if socket.send(Message::text(delta.as_str())).await.is_err()
                || socket.send(Message::Ping(Default::default())).await.is_err()
            {
                return (sent, Instant::now());
            }
            match tokio::time::timeout(Duration::from_secs(5), socket.next())
                .await
                .unwrap()
            {
                Some(Ok(Message::Pong(_))) => answered.fetch_add(1, Ordering::Relaxed),
                _ => return (sent, Instant::now()),
            };
        }
        unreachable!()
    });
    let config = HTTP_ONLY
        .replace("{openai}", &url)
        .replace("http\"\n[[", "websocket\"\n[[");
    let world = Setup::new().config(&config).start().await;
    let (reply, _) = under_way(&world, &Ask::turn("hello")).await;
    world.saw("slow_client", 1).await;
    let (sent, _) = upstream.await.unwrap();
    let answered = pongs.load(Ordering::Relaxed);
    assert!(
        answered + 1 >= sent && answered >= 4,
        "{answered} pongs for {sent} pings"
    );
    let answer = reply.finish().await;
    assert_eq!(answer.end, End::Torn);
    assert_eq!(world.events("turn_finished")[0]["outcome"], "slow_client");
    eventually("its bytes are given back", || {
        world
            .events("session_retired")
            .first()
            .is_some_and(|line| line["reason"] == "slow_client")
    })
    .await;
}

/// [SES-25] A socket that used to answer pings and stopped is dead: its turn fails long before any deadline of silence, and
/// an idle one is retired without a turn. No quarantine.
#[tokio::test]
async fn a_socket_that_stopped_answering_is_dead() {
    let world = Setup::new()
        .config("[session]\nmax_per_key = 1\n[watchdog]\nping_interval = \"150ms\"")
        .start()
        .await;
    let ask = |words: &str| Ask::turn(format!("sim:conv=a {words}")).thread("a");
    world.ask(&ask("hello")).await.completed();
    // Answered at least one ping.
    world
        .upstream_saw("a ping", |ledger| ledger.sockets[0].pings >= 2)
        .await;
    let answer = world.ask(&ask("hello sim:mute(after=1)")).await;
    assert_eq!(answer.failure(), "bridge_socket_dead");
    world
        .ask(&ask(
            "hello sim:pause(after=1, for=500ms) sim:afterwards(do=mute)",
        ))
        .await
        .completed();
    world.saw("session_retired", 2).await;
    let reasons: Vec<_> = world
        .events("session_retired")
        .iter()
        .map(|line| line["reason"].clone())
        .collect();
    assert_eq!(reasons, ["dead", "dead"]);
    assert!(world.events("quarantine_opened").is_empty());
    world.ask(&ask("hello")).await.completed();
}

/// [KEY-23] An old socket that remembers a later response is of no use to a turn that names an earlier one: upstream's own
/// not-found is its answer, not a wait that nothing can end.
#[tokio::test]
async fn an_old_socket_has_forgotten() {
    let config = "[session]\nmax_age = \"300ms\"\nqueue_wait = \"5s\"";
    let world = Setup::new().config(config).start().await;
    let ask = |words: &str| {
        Ask::turn(format!("sim:conv=a {words}"))
            .thread("a")
            .with("store", false)
    };
    let first = world.ask(&ask("one")).await.id();
    let second = world.ask(&ask("two").after(&first)).await.id();
    sleep(Duration::from_millis(350)).await;
    let began = Instant::now();
    let answer = world.ask(&ask("again").after(&first)).await;
    assert_eq!(
        (answer.status, answer.error().as_str()),
        (400, "previous_response_not_found")
    );
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    world.ask(&ask("three").after(&second)).await.completed();
}
