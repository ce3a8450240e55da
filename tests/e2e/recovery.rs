//! After whatever end, the next turn goes on at once (rows 7, 8, 22 and 23).

use std::time::Duration;

use futures_util::future::join_all;

use crate::client::Ask;
use crate::way::Way;
use crate::world::{Setup, World};

/// No slack: one session in all, one place in the queue. Whatever is not given back is missed by the next turn.
const TIGHT: &str = r#"
[session]
max_sessions = 1
max_per_key = 1
max_queue = 1
queue_wait = "5s"
[watchdog]
connect_deadline = "1s"
handshake_patience = "1s"
response_created_deadline = "1s"
idle_deadline = "1s"
request_deadline = "4s"
[http]
first_byte = "1s"
first_event = "1s"
between_events = "400ms"
[quarantine]
window = "0s"
max_window = "0s"
"#;

const ENDS: [&str; 20] = [
    "sim:healthy",
    "sim:terminal(shape=incomplete)",
    "sim:terminal(shape=failed)",
    "sim:terminal(shape=incomplete_code)",
    "sim:error(status=429)",
    "sim:error(status=500, after=1)",
    "sim:not_found",
    "sim:close",
    "sim:close(after=1)",
    "sim:fin(after=1)",
    "sim:reset",
    "sim:reset(after=2)",
    "sim:cut(after=1)",
    "sim:silent",
    "sim:no_created(n=3, delay=1ms)",
    "sim:pause(after=1, for=ever)",
    "sim:late(n=3)",
    "sim:terminal_close",
    "sim:age_limit",
    "sim:big(size=5MiB)",
];

/// Those of them whose socket is closed by the upstream when the turn has ended.
const AFTER_THE_TERMINAL: [&str; 2] = ["sim:terminal_close", "sim:age_limit"];

/// Takes one byte of the answer and goes away.
async fn leave(world: &World, ask: &Ask, after_head: bool) {
    let mut reply = ask.send(world.address).await;
    if after_head {
        reply.read_head().await;
    }
    reply.reset();
}

/// [INV-3] [SES-26] Row 7: after every end, the key's next turn is served at once: the session, the queue's place and every
/// permit are free again.
#[tokio::test(flavor = "multi_thread")]
async fn every_exit_frees_what_it_held() {
    let ends = async |(way, stream): (Way, bool)| {
        let world = way.setup().config(TIGHT).start().await;
        for end in ENDS {
            let bad = Ask::turn(end).thread("one").with("stream", stream);
            let ended = world.ask(&bad).await;
            assert!(ended.status == 200 || ended.status >= 400, "{ended:?}");
            let ask = Ask::turn("next").thread("one").with("stream", stream);
            let mut next = world.ask(&ask).await;
            // A close that comes after the terminal may cross the next turn, which is then ambiguous, and said to be so.
            if AFTER_THE_TERMINAL.contains(&end) && next.status == 502 {
                assert_eq!(next.error(), "bridge_upstream_closed");
                next = world.ask(&ask).await;
            }
            assert_eq!(next.completed()["status"], "completed", "{way:?} after {end}");
        }
        for after_head in [true, false] {
            leave(
                &world,
                &Ask::turn("sim:pause(after=1, for=ever)").thread("one"),
                after_head,
            )
            .await;
            world.ask(&Ask::turn("next").thread("one")).await.completed();
            leave(&world, &Ask::turn("sim:silent").thread("one"), false).await;
            world.ask(&Ask::turn("next").thread("one")).await.completed();
        }
        world.quiet().await;
        world
            .upstream_saw("one socket at most", |ledger| ledger.sockets_open <= 1)
            .await;
    };
    let all = Way::BOTH.into_iter().flat_map(|way| [(way, true), (way, false)]);
    join_all(all.map(ends)).await;
}

/// [QUA-12] [SES-26] Row 8: errors, as many as one likes, open no circuit: neither the key nor the account cools down.
#[tokio::test(flavor = "multi_thread")]
async fn errors_cool_nothing_down() {
    let failures = [
        "sim:error(status=500, after=1)",
        "sim:error(status=429)",
        "sim:error(status=503)",
        "sim:terminal(shape=failed)",
        "sim:close(after=1)",
        "sim:close",
        "sim:reset",
    ];
    let world = Setup::new().start().await;
    for failure in failures {
        let fail = async |number: usize| {
            let key = format!("k{number}");
            let answer = world
                .ask(&Ask::turn(format!("sim:conv={key} {failure}")).thread(&key))
                .await;
            assert!(answer.status >= 400 || answer.terminal().name == "response.failed");
        };
        join_all((0..6).map(fail)).await;
        let next = async |key: String| {
            world
                .ask(&Ask::turn(format!("sim:conv={key} hello")).thread(&key))
                .await
                .completed();
            assert!(
                world.sockets(&key).last().unwrap().is_some(),
                "{failure}: not by session"
            );
        };
        join_all((0..7).map(|number| next(format!("k{number}")))).await;
    }
    assert_eq!(
        world
            .sequence(&["quarantine_opened", "breaker_changed", "refused"])
            .len(),
        0
    );
    world.quiet().await;
}

/// [QUA-11] [QUA-12] Row 8: three failed upgrades open the breaker of the account's sockets; meanwhile direct HTTP serves, and the
/// breaker half-opens by itself. A probe that fails opens it again, for longer, and not for ever.
#[tokio::test(flavor = "multi_thread")]
async fn failed_upgrades_recover() {
    for kind in [
        "refuse(status=503, times=4)",
        "reset(times=4)",
        "fin(times=4)",
        "wrong_accept(times=4)",
    ] {
        let world = Setup::new()
            .config("[quarantine]\nwindow = \"150ms\"\nmax_window = \"400ms\"")
            .script(&format!("[[upgrade]]\ndo = \"{kind}\""))
            .start()
            .await;
        let turn = async |key: &str| {
            world
                .ask(&Ask::turn(format!("sim:conv={key} hello")).thread(key))
                .await
                .completed();
            world.sockets(key).last().unwrap().is_some()
        };
        for key in ["a", "b", "c", "d"] {
            assert!(!turn(key).await, "{kind}");
        }
        let refused = world.upstream.look(|ledger| ledger.handshakes_refused);
        assert!((3..=4).contains(&refused), "{kind}: {refused} upgrades tried");
        let until = std::time::Instant::now() + Duration::from_secs(10);
        while !turn("a").await {
            assert!(
                std::time::Instant::now() < until,
                "{kind}: never back on sessions"
            );
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        assert!(turn("e").await, "{kind}");
        world.quiet().await;
    }
}

/// [SES-26] [SES-13] Row 22: a terminal of any kind, and a rejection, keeps the healthy socket.
#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_keeps_the_socket() {
    let world = Setup::new().config("[session]\nmax_per_key = 1").start().await;
    let ends = [
        "terminal(shape=completed)",
        "terminal(shape=incomplete)",
        "terminal(shape=failed)",
        "terminal(shape=incomplete_code, code=server_error)",
        "terminal(shape=done)",
        "terminal(shape=typeless)",
        "chatgpt",
        "error(status=400)",
        "error(status=429)",
        "error(status=500)",
        "error(status=500, after=1)",
        "telemetry_error(status=429)",
        "not_found",
        "healthy",
    ];
    for end in ends {
        for stream in [true, false] {
            let ask = Ask::turn(format!("sim:conv=a sim:{end}"))
                .thread("a")
                .with("stream", stream);
            world.ask(&ask).await;
        }
    }
    let sockets = world.sockets("a");
    assert_eq!(sockets.len(), 2 * ends.len());
    assert!(sockets.iter().all(|socket| *socket == Some(1)), "{sockets:?}");
    assert_eq!(world.events("session_retired").len(), 0);
    // A credential that is refused while its socket lives is the one rejection that costs the socket.
    let refused = world
        .ask(&Ask::turn("sim:conv=a sim:error(status=401)").thread("a"))
        .await;
    assert_eq!(refused.status, 401);
    world
        .ask(&Ask::turn("sim:conv=a next").thread("a"))
        .await
        .completed();
    assert_eq!(world.sockets("a").last(), Some(&Some(2)));
    world.quiet().await;
}

/// [SES-15] [INV-5] Row 23: a client aborts in mid-stream, the upstream goes on sending, and the next turn of the same key starts
/// at once. It sees its own answer and nothing else, every time.
#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_answer_reaches_nobody() {
    let world = Setup::new().config("[session]\nmax_per_key = 1").start().await;
    let client = async |key: usize| {
        let key = format!("k{key}");
        for round in 0..6 {
            let words = [
                "sim:text(n=400, size=200, delay=1ms)",
                "sim:burst(n=400, size=500)",
            ][round % 2];
            let ask = Ask::turn(format!("sim:conv={key}-old{round} {words}")).thread(&key);
            let mut reply = world.open(&ask).await;
            for _ in 0..round {
                reply.until("response.output_text.delta").await;
            }
            if round % 2 == 0 {
                drop(reply)
            } else {
                reply.reset()
            }
            let name = format!("{key}-new{round}");
            let answer = world
                .ask(&Ask::turn(format!("sim:conv={name} hello")).thread(&key))
                .await;
            let made = world.upstream.look(|ledger| {
                let create = ledger.creates_of(&name).next().unwrap();
                create.response_id.clone()
            });
            assert_eq!(answer.id(), made);
            assert!(
                answer.output().starts_with(&format!("[{name}] 1 items")),
                "{}",
                answer.text()
            );
            let numbers = answer
                .events()
                .into_iter()
                .map(|event| event.data["sequence_number"].as_u64());
            assert!(
                numbers
                    .enumerate()
                    .all(|(place, number)| number == Some(place as u64))
            );
            let shared = world.sockets(&format!("{key}-old{round}"))[0] == world.sockets(&name)[0];
            // A burst may have been complete before the client left; then the socket is as good as any.
            assert!(
                !shared || round % 2 == 1,
                "the aborted turn's socket was used again"
            );
        }
    };
    join_all((0..6).map(client)).await;
    world
        .upstream_saw("the sockets of aborted turns closed", |ledger| {
            ledger.sockets_open <= 6
        })
        .await;
    world.quiet().await;
}

/// [SES-24] [SES-18] [INV-5] Row 23: frames that come after a terminal, at once or later, reach neither that client nor the next.
#[tokio::test(flavor = "multi_thread")]
async fn late_frames_reach_nobody() {
    let world = Setup::new().config("[session]\nmax_per_key = 1").start().await;
    let client = async |key: usize| {
        let delay = [0, 1, 5, 20][key % 4];
        for round in 0..4 {
            let key = format!("k{key}-{round}");
            // Longer than the next one: where the rows of numbers meet, late frames cannot be told.
            let ask = Ask::turn(format!("sim:text(n=60) sim:late(n=4, delay={delay}ms)")).thread(&key);
            let late = world.ask(&ask).await;
            assert!(!late.text().contains("stray"), "{}", late.text());
            late.completed();
            let words = ["hello", "sim:text(n=10, delay=5ms)"][round % 2];
            let next = world.ask(&Ask::turn(words).thread(&key)).await;
            assert!(!next.text().contains("stray"), "{delay} {words}: {}", next.text());
            next.completed();
        }
    };
    join_all((0..8).map(client)).await;
    world.quiet().await;
}
