//! The journal of a bridge that serves, and `events` as its users run it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and its clients are tasks that end with it"
)]

#[path = "../support/client.rs"]
mod client;
mod cost;
mod events;
#[path = "../support/world.rs"]
mod world;

use std::path::Path;
use std::time::{Duration, Instant};

use client::Ask;
use responses_bridge::store::journal::{Query, Reader};
use tokio::io::AsyncBufReadExt as _;
use world::Setup;

/// Nothing here takes longer on a busy machine, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

fn wait(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// All bytes of the state directory.
fn bytes(directory: &Path) -> Vec<u8> {
    let files = std::fs::read_dir(directory).unwrap();
    files
        .flat_map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .collect()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// [JRN-1] [JRN-2] Ids that a user knows are nowhere in the files, neither while serving nor afterwards, and lead to the rows
/// of their turn all the same. Prompts, outputs and credentials are not there either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_are_found_and_not_kept() {
    let world = Setup::new().start().await;
    let ask = Ask::turn("planted-prompt sim:conv=a")
        .bearer("sk-planted-secret")
        .header("session-id", "planted-session")
        .header("x-request-id", "planted-request")
        .header(
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        );
    let answer = world.ask(&ask).await;
    let response = answer.id();
    world.saw("turn_finished", 1).await;
    let line = world.events("turn_finished").remove(0);
    let request = line["request_id"].as_str().unwrap().to_owned();
    let reader = Reader::open(world.state.path()).unwrap();
    wait("the turn is kept", || reader.newest().unwrap() >= 1);
    for id in [&request, &response, "planted-session"] {
        let found = reader.find(reader.hasher().name(id), 100).unwrap();
        assert!(found.iter().any(|row| row.event == "turn_finished"), "{id}");
    }
    assert_eq!(reader.find(reader.hasher().name("planted"), 100).unwrap(), []);
    let planted = [
        &request,
        &response,
        "planted-",
        "0af7651916cd43dd8448eb211c80319c",
        "0af7651916cd",
    ];
    let serving = bytes(world.state.path());
    let state = world.state.clone();
    world.app.drain().await;
    let afterwards = bytes(state.path());
    for text in planted {
        assert!(!holds(&serving, text) && !holds(&afterwards, text), "{text}");
    }
    // What the search finds where there is something.
    assert!(holds(&serving, "turn_finished") && holds(&afterwards, "turn_finished"));
}

/// [JRN-20] Whoever knows only the session finds the calls of it that got no further than the door.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_calls_are_found_by_their_session() {
    let world = Setup::new().start().await;
    let state = world.state.clone();
    let ask = |session: &str, thread: &str| {
        Ask::turn("hello")
            .header("session-id", session)
            .header("thread-id", thread)
    };
    let unknown = ask("sid-key", "tid-key").without("authorization");
    assert_eq!(world.ask(&unknown).await.status, 401);
    assert_eq!(
        world
            .ask(&ask("sid-body", "tid-body").with("model", 7))
            .await
            .status,
        400
    );

    let kept = world.open(&ask("sid-kept", "tid-kept")).await;
    let running = ask("sid-runs", "tid-runs").with("input", "sim:pause(after=1, for=3s)");
    let mut running = world.open(&running).await;
    running.until("response.created").await;
    let world::World { app, upstream, .. } = world;
    let draining = tokio::spawn(app.drain());
    let reader = Reader::open(state.path()).unwrap();
    wait("it drains", || {
        let rows = reader.rows(&all()).unwrap();
        rows.iter().any(|row| row.event == "drain_started")
    });
    let refused = kept.again(&ask("sid-drain", "tid-drain")).await.finish().await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    running.finish().await.completed();
    draining.await.unwrap();
    drop(upstream);

    for (of, reason) in [
        ("key", "missing_credential"),
        ("body", "invalid_body"),
        ("drain", "draining"),
    ] {
        for id in [format!("sid-{of}"), format!("tid-{of}")] {
            let found = reader.find(reader.hasher().name(&id), 100).unwrap();
            let [row] = &found[..] else {
                panic!("{id}: {found:?}")
            };
            assert!(
                row.event == "refused" && row.body.contains(reason),
                "{id}: {row:?}"
            );
        }
    }
}

/// [JRN-5] With `journal.max = 0` nothing is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_journal_is_kept_where_none_is_wanted() {
    let world = Setup::new().config("[journal]\nmax = 0").start().await;
    world.ask(&Ask::turn("Hello")).await;
    world.saw("turn_finished", 1).await;
    let state = world.state.clone();
    world.app.drain().await;
    assert_eq!(Reader::open(state.path()).unwrap().newest().unwrap(), 0);
}

/// [JRN-15] [JRN-17] From elsewhere, with the admin token: what was, and with `--follow` what comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bridge_elsewhere_is_asked() {
    let token = "0123456789012345678901234567890123456789";
    let world = Setup::new()
        .config("[server]\nadmin_token = { env = \"ADMIN\" }")
        .secret("ADMIN", token)
        .start()
        .await;
    world.ask(&Ask::turn("Hello")).await;
    world.saw("turn_finished", 1).await;
    let url = format!("http://{}", world.address);
    let events = |arguments: &[&str], token: &str| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_responses-bridge"));
        command.args(["events", "--url", &url, "--json"]).args(arguments);
        command
            .env_clear()
            .env("BRIDGE_ADMIN_TOKEN", token)
            .kill_on_drop(true);
        command
    };
    let output = events(&["--kind", "turn_*"], token).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("\"turn_finished\"").count(), 1, "{text}");
    let none = events(&["--kind", "nosuch"], token).output().await.unwrap();
    let said = String::from_utf8(none.stderr).unwrap();
    assert_eq!(said, "none of that bridge's latest events is as you ask for\n");
    let refused = events(&[], "another token").output().await.unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stdout.is_empty(), "{refused:?}");

    let mut follow = events(&["--follow", "--kind", "turn_finished"], token);
    let mut child = follow.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = tokio::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = async || {
        tokio::time::timeout(PATIENCE, lines.next_line())
            .await
            .unwrap()
            .unwrap()
            .unwrap()
    };
    assert!(next().await.contains("\"turn_finished\""));
    world.ask(&Ask::turn("Hello again")).await;
    assert!(next().await.contains("\"turn_finished\""));
}

/// [STATE-20] Each start is told, and how the bridge before it ended: the log has it, and the journal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_is_told() {
    let world = Setup::new().start().await;
    let told = |world: &world::World| {
        let started = world.events("bridge_started").remove(0);
        (
            started["before"].clone(),
            started["level"].clone(),
            started["last_ms"].clone(),
        )
    };
    assert_eq!(
        told(&world),
        ("none".into(), "info".into(), serde_json::Value::Null)
    );
    world.ask(&Ask::turn("Hello")).await;
    world.saw("turn_finished", 1).await;
    let state = world.state.clone();
    world.app.drain().await;
    let kept = || Reader::open(state.path()).unwrap().rows(&all()).unwrap();
    let last = kept().last().unwrap().at_ms;
    let world = Setup::new().state(&state).start().await;
    assert_eq!(told(&world), ("drained".into(), "info".into(), last.into()));
    wait("the start is kept", || {
        kept().iter().filter(|row| row.event == "bridge_started").count() == 2
    });
    world.app.drain().await;
}

fn all() -> Query {
    Query {
        most: usize::MAX,
        ..Query::default()
    }
}
