//! Many clients at once, within caps that are too small for them: everybody gets an own answer, once.

use std::time::Duration;

use futures_util::future::join_all;

use crate::client::{Ask, End};
use crate::way::Way;
use crate::world::{Setup, World};

/// A turn that must be served: it was sent once, and the answer is its own.
async fn served(world: &World, key: &str, name: &str, words: &str) {
    let answer = world
        .ask(&Ask::turn(format!("sim:conv={name} {words}")).thread(key))
        .await;
    answer.completed();
    assert!(
        answer.output().starts_with(&format!("[{name}] 1 items")),
        "{answer:?}"
    );
    assert_eq!(world.creates(name).total(), 1);
}

/// [KEY-24] Many turns of one conversation at once, more than its sessions: each is served once, in the queue or by direct HTTP.
#[tokio::test(flavor = "multi_thread")]
async fn in_one_conversation() {
    let world = Setup::new()
        .config("[session]\nmax_per_key = 2\nmax_queue = 16\nqueue_wait = \"10s\"")
        .start()
        .await;
    let client = async |number: usize| {
        for round in 0..3 {
            served(
                &world,
                "crowd",
                &format!("c{number}-{round}"),
                "sim:text(n=3, delay=2ms)",
            )
            .await;
        }
    };
    join_all((0..16).map(client)).await;
    assert_eq!(world.upstream.look(|ledger| ledger.sockets_most), 2);
    world.quiet().await;
}

/// [KEY-24] [SES-22] One session, and a queue in which newcomers may overtake: nobody is turned away, however often overtaken.
#[tokio::test(flavor = "multi_thread")]
async fn overtaken_in_the_queue() {
    let world = Setup::new()
        .config("[session]\nmax_per_key = 1\nmax_queue = 1024\nqueue_wait = \"20s\"")
        .start()
        .await;
    let client = async |number: usize| {
        for round in 0..10 {
            served(&world, "crowd", &format!("c{number}-{round}"), "hello").await;
        }
    };
    join_all((0..30).map(client)).await;
    let creates = world
        .upstream
        .look(|ledger| ledger.conversations.values().map(|c| c.http).sum::<u64>());
    assert_eq!(creates, 0, "the queue was long enough for all");
    world.quiet().await;
}

/// [INV-7] [SES-22] More conversations than sessions: idle ones are evicted all the time, and no turn is lost or sent twice.
#[tokio::test(flavor = "multi_thread")]
async fn in_too_few_sessions() {
    let world = Setup::new()
        .config("[session]\nmax_sessions = 3\nmax_per_key = 2")
        .start()
        .await;
    let client = async |number: usize| {
        for round in 0..12 {
            served(
                &world,
                &format!("k{}", (number + round) % 10),
                &format!("c{number}-{round}"),
                "hello",
            )
            .await;
        }
    };
    join_all((0..12).map(client)).await;
    world.quiet().await;
    world
        .upstream_saw("three sockets", |ledger| ledger.sockets_open <= 3)
        .await;
}

/// [INV-1] [INV-2] [INV-5] Everything at once: conversations whose turns meet faults of every kind, clients that leave, idle sockets
/// that are cut. Whatever happens to a turn, it has one end, was sent once, and no byte of another's answer.
#[tokio::test(flavor = "multi_thread")]
async fn in_bad_weather() {
    const WEATHER: [&str; 18] = [
        "hello",
        "hello",
        "sim:text(n=20, delay=2ms)",
        "sim:chatgpt",
        "sim:close",
        "sim:close(after=1)",
        "sim:reset(after=2)",
        "sim:fin",
        "sim:cut(after=1)",
        "sim:error(status=429)",
        "sim:error(status=500, after=1)",
        "sim:terminal(shape=failed)",
        "sim:terminal(shape=incomplete)",
        "sim:terminal_close",
        "sim:afterwards(do=close, delay=3ms)",
        "sim:afterwards(do=reset, delay=2ms)",
        "sim:silent",
        "sim:no_created(n=5, delay=1ms)",
    ];
    let storm = async |way: Way| {
        let world = way
            .setup()
            .config(
                "[session]\nmax_sessions = 12\nmax_per_key = 2\nqueue_wait = \"5s\"\n\
                 [watchdog]\nconnect_deadline = \"500ms\"\nhandshake_patience = \"500ms\"\n\
                 response_created_deadline = \"500ms\"\nrequest_deadline = \"1500ms\"\n\
                 [http]\nfirst_byte = \"500ms\"\n[quarantine]\nwindow = \"100ms\"\nmax_window = \"200ms\"",
            )
            .start()
            .await;
        let client = async |number: usize| {
            for round in 0..12 {
                let (key, name) = (format!("k{}", number % 6), format!("c{number}-{round}"));
                let words = WEATHER[(number * 7 + round * 5) % WEATHER.len()];
                let ask = Ask::turn(format!("sim:conv={name} {words}")).thread(&key);
                if (number + round).is_multiple_of(9) {
                    let reply = ask.send(world.address).await;
                    tokio::time::sleep(Duration::from_millis(round as u64)).await;
                    drop(reply);
                    continue;
                }
                let stream = round % 3 != 0;
                let answer = world.ask(&ask.with("stream", stream)).await;
                assert_eq!(answer.end, End::Clean, "{words}: {answer:?}");
                if answer.status >= 400 {
                    answer.error();
                } else if stream {
                    answer.terminal();
                } else {
                    answer.json();
                }
                let text = answer.text();
                let own = format!("[{name}]");
                assert_eq!(
                    text.matches("items, hash").count(),
                    text.matches(&own).count(),
                    "{words}: {text}"
                );
                let creates = world.creates(&name).total();
                assert!(creates <= 1, "{way:?} {words}: sent {creates} times");
            }
        };
        join_all((0..18).map(client)).await;
        world.quiet().await;
        served(&world, "k0", "after", "hello").await;
        world
            .upstream_saw("sockets within the cap", |ledger| ledger.sockets_open <= 12)
            .await;
    };
    join_all(Way::BOTH.map(storm)).await;
}

/// [INV-2] One connection carries one request after the other: streams, objects, errors and refusals are framed to their end.
#[tokio::test(flavor = "multi_thread")]
async fn on_one_connection() {
    for way in Way::BOTH {
        let world = way.setup().start().await;
        let mut reply = Ask::turn("hello").open(world.address).await;
        for words in [
            "sim:error(status=429)",
            "hello",
            "sim:close(after=1)",
            "sim:close",
            "sim:chatgpt",
            "hello",
        ] {
            for stream in [true, false] {
                reply = reply.again(&Ask::turn(words).with("stream", stream)).await;
            }
        }
        reply.finish().await.completed();
        world.quiet().await;
    }
}
