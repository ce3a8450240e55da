//! What a client was told survives `kill -9`; what sleeps wakes up whole; and where the state lies.

use std::time::Duration;

use responses_bridge::simulator::{Ending, Simulator};
use tokio::time::{Instant, sleep};

use crate::client::Ask;
use crate::process::{CLIENTS, Home, config, ended};
use crate::world::eventually;

async fn upstream() -> Simulator {
    Simulator::start(Default::default()).await.unwrap()
}

fn alice(prompt: &str) -> Ask {
    Ask::turn(prompt).bearer("key-alice")
}

/// [INV-11] [STATE-13] The process is killed in the moment in which its client has the terminal, again and again: the next
/// one knows the response's owner, routes a continuation and a look-up to it, and still refuses the other client. Streamed
/// and not, over a socket and over HTTP.
#[tokio::test]
async fn an_owner_survives_a_kill() {
    let upstream = upstream().await;
    let home = Home::new(&config(&upstream.base_url(), CLIENTS));
    let mut known = Vec::new();
    for round in 0..6 {
        let bridge = home.start().await;
        let ask = alice(&format!("sim:conv=c{round} hello"));
        let ask = if round % 2 == 0 { ask } else { ask.json() };
        let ask = if round % 3 == 2 {
            ask.with("background", false)
                .with("input", format!("{} sim:conv=c{round}", "x".repeat(16 << 20)))
        } else {
            ask
        };
        let id = if round % 2 == 0 {
            let mut reply = ask.open(bridge.address).await;
            let last = reply.until("response.completed").await;
            last.data["response"]["id"].as_str().unwrap().to_owned()
        } else {
            ask.ask(bridge.address).await.id()
        };
        bridge.kill().await;
        known.push(id);
    }
    let bridge = home.start().await;
    for (round, id) in known.iter().enumerate() {
        let found = Ask::bare("GET", format!("/v1/responses/{id}"))
            .bearer("key-alice")
            .ask(bridge.address)
            .await;
        assert_eq!(
            (found.status, found.json()["id"].as_str()),
            (200, Some(id.as_str())),
            "round {round}"
        );
        alice(&format!("sim:conv=c{round} more"))
            .after(id)
            .ask(bridge.address)
            .await
            .completed();
        let stolen = Ask::turn("steal")
            .bearer("key-bob")
            .after(id)
            .ask(bridge.address)
            .await;
        assert_eq!(stolen.error(), "previous_response_not_found");
        let stolen = Ask::bare("GET", format!("/v1/responses/{id}"))
            .bearer("key-bob")
            .ask(bridge.address)
            .await;
        assert_eq!(stolen.error(), "bridge_unknown_response");
    }
    assert_eq!(
        bridge.saw("owner_routed", 2 * known.len()).await.len(),
        2 * known.len()
    );
}

const SILENCE: &str = "
[watchdog]
response_created_deadline = \"150ms\"
[quarantine]
window = \"20s\"
max_window = \"1m\"
";

/// [INV-11] [STATE-3] The process is killed in the moment in which its client has been told of a silent session: the next
/// one still has the key in quarantine, at its level. Told by a status, and by `response.failed`.
#[tokio::test]
async fn a_quarantine_survives_a_kill() {
    let upstream = upstream().await;
    for (round, server) in ["commit_after = \"10s\"", "commit_after = \"0s\""]
        .into_iter()
        .enumerate()
    {
        let clients = CLIENTS.replace("drain = \"1s\"", server);
        let home = Home::new(&config(&upstream.base_url(), &format!("{clients}{SILENCE}")));
        let bridge = home.start().await;
        let name = format!("c{round}");
        let ask = |words: &str| alice(&format!("sim:conv={name} {words}")).thread("one");
        let mut reply = ask("sim:silent(on=ws)").open(bridge.address).await;
        if round == 0 {
            assert_eq!(reply.status, 504);
        } else {
            reply.until("response.failed").await;
        }
        bridge.kill().await;
        let bridge = home.start().await;
        ask("hello").ask(bridge.address).await.completed();
        let creates = upstream.look(|ledger| ledger.conversation(&name));
        assert_eq!((creates.websocket, creates.http), (1, 1), "round {round}");
        bridge.saw("quarantine_http_fallback", 1).await;
        // Another key is served as ever.
        alice(&format!("sim:conv=other{round} hello"))
            .thread("two")
            .ask(bridge.address)
            .await
            .completed();
        assert_eq!(
            upstream
                .look(|ledger| ledger.conversation(&format!("other{round}")))
                .websocket,
            1
        );
    }
}

/// [INV-11] [QUA-9] Where `max_keys` lets a key go, a kill right after keeps the same keys in quarantine as memory did: the
/// one that was used last, and not the one that left.
#[tokio::test]
async fn an_evicted_quarantine_stays_away() {
    let upstream = upstream().await;
    let two = SILENCE.replace("[quarantine]", "[quarantine]\nmax_keys = 2");
    let home = Home::new(&config(&upstream.base_url(), &format!("{CLIENTS}{two}")));
    let bridge = home.start().await;
    let ask = |key: &str, words: &str| alice(&format!("sim:conv={key} {words}")).thread(key);
    for key in ["a", "b"] {
        let silent = ask(key, "sim:silent(on=ws)").ask(bridge.address).await;
        assert_eq!(silent.status, 504);
    }
    ask("a", "hello").ask(bridge.address).await.completed();
    let silent = ask("c", "sim:silent(on=ws)").ask(bridge.address).await;
    assert_eq!(silent.status, 504);
    bridge.saw("quarantine_evicted", 1).await;
    bridge.kill().await;
    let bridge = home.start().await;
    let mut creates = Vec::new();
    for key in ["a", "b", "c"] {
        ask(key, "hello").ask(bridge.address).await.completed();
        let of = upstream.look(|ledger| ledger.conversation(key));
        creates.push((of.websocket, of.http));
    }
    assert_eq!(creates, [(1, 2), (2, 0), (1, 1)]);
}

/// [STATE-5] A process that was killed in mid-turn leaves nothing behind that blocks its successor: no lock, no lease.
#[tokio::test]
async fn a_kill_in_mid_turn_blocks_nobody() {
    let upstream = upstream().await;
    let home = Home::new(&config(&upstream.base_url(), CLIENTS));
    let ask = |words: &str| {
        alice(&format!("sim:conv=a {words}"))
            .thread("one")
            .with("store", false)
    };
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let bridge = home.start().await;
        let id = ask("hello").ask(bridge.address).await.id();
        let mut reply = ask("sim:pause(after=1, for=ever)")
            .after(&id)
            .open(bridge.address)
            .await;
        reply.until("response.output_text.delta").await;
        sessions.extend(bridge.saw("session_opened", 1).await);
        bridge.kill().await;
        let bridge = home.start().await;
        // The anchor lived in a socket of the dead process: upstream says so itself, and a full resend is served.
        let answer = ask("more").after(&id).ask(bridge.address).await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (400, "previous_response_not_found")
        );
        ask("all of it").ask(bridge.address).await.completed();
        sessions.extend(bridge.saw("session_opened", 1).await);
    }
    let mut numbers: Vec<_> = sessions
        .iter()
        .map(|line| line["session"].as_u64().unwrap())
        .collect();
    let count = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), count, "two processes gave one number: {numbers:?}");
    assert!(
        numbers.iter().all(|number| *number < 1 << 53),
        "beyond what JavaScript can tell apart"
    );
}

/// [STATE-12] [STATE-11] row 43: nothing is written into the folder that the bridge is started from, and a second process
/// with the same state is refused and told who has it.
#[tokio::test]
async fn the_state_has_a_place_of_its_own() {
    let upstream = upstream().await;
    let home = Home::new(&config(&upstream.base_url(), CLIENTS));
    let bridge = home.start().await;
    alice("hello").ask(bridge.address).await.completed();
    let here: Vec<_> = std::fs::read_dir(home.path().join("elsewhere"))
        .unwrap()
        .collect();
    assert!(here.is_empty(), "{here:?}");
    assert!(home.state().join("state.db").is_file());
    let mut second = home.command("");
    // From yet another folder.
    second.current_dir(home.path()).args(Vec::<String>::new());
    let mut second = std::process::Command::new(env!("CARGO_BIN_EXE_responses-bridge"));
    second
        .args(["serve", "--config", "bridge.toml"])
        .current_dir(home.path())
        .env("XDG_STATE_HOME", home.path())
        .envs([
            ("ALICE", "key-alice"),
            ("BOB", "key-bob"),
            ("ACCOUNT", "sk-account"),
        ])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let (code, says) = tokio::task::spawn_blocking(move || ended(second)).await.unwrap();
    assert_eq!(code, Some(1), "{says}");
    assert!(
        says.contains(&bridge.id().to_string()) && says.contains("state.path"),
        "{says}"
    );
    alice("hello").ask(bridge.address).await.completed();
}

/// Puts the process to sleep for `lapse`; `meanwhile` happens at its end.
async fn asleep(bridge: &crate::process::Process, lapse: Duration, meanwhile: impl AsyncFnOnce()) {
    bridge.signal("STOP");
    sleep(lapse).await;
    meanwhile().await;
    bridge.signal("CONT");
}

/// [SES-23] [INV-10] row 40: the process sleeps for longer than its sockets may be quiet, and each is cut meanwhile, with or
/// without a word. The first turn afterwards is answered at once, with one create.
#[tokio::test]
async fn the_first_turn_after_a_sleep() {
    let upstream = upstream().await;
    let more = format!(
        "{CLIENTS}[watchdog]\nreuse_check_after = \"400ms\"\npong_deadline = \"300ms\"\n[session]\nmax_per_key = 1\n"
    );
    let home = Home::new(&config(&upstream.base_url(), &more));
    let bridge = home.start().await;
    for (round, ending) in [Ending::Mute, Ending::Fin, Ending::Reset].into_iter().enumerate() {
        let ask = |words: &str| alice(&format!("sim:conv=c{round} {words}")).thread(&format!("k{round}"));
        ask("before").ask(bridge.address).await.completed();
        // The request is there before the process wakes up.
        let mut early = None;
        asleep(&bridge, Duration::from_millis(600), async || {
            upstream.end_sockets(ending.clone());
            sleep(Duration::from_millis(50)).await;
            early = Some(ask("after").send(bridge.address).await);
        })
        .await;
        let woken = Instant::now();
        let mut early = early.unwrap();
        early.read_head().await;
        early.finish().await.completed();
        assert!(
            woken.elapsed() < Duration::from_secs(4),
            "{ending:?}: {:?}",
            woken.elapsed()
        );
        let creates = upstream.look(|ledger| ledger.conversation(&format!("c{round}")));
        assert_eq!((creates.websocket, creates.http), (2, 0), "{ending:?}");
    }
}

/// [SES-30] A sleep too short for a proof: a socket that ended meanwhile is still not handed out, though its end and the
/// request are seen in the same moment.
#[tokio::test]
async fn an_end_and_a_request_in_one_moment() {
    let upstream = upstream().await;
    let home = Home::new(&config(&upstream.base_url(), CLIENTS));
    let bridge = home.start().await;
    for round in 0..12 {
        let ask = |words: &str| alice(&format!("sim:conv=c{round} {words}")).thread(&format!("k{round}"));
        ask("before").ask(bridge.address).await.completed();
        let mut early = None;
        asleep(&bridge, Duration::from_millis(30), async || {
            upstream.end_sockets(if round % 2 == 0 {
                Ending::Fin
            } else {
                Ending::Close {
                    code: 1001,
                    reason: String::new(),
                }
            });
            sleep(Duration::from_millis(30)).await;
            early = Some(ask("before").send(bridge.address).await);
        })
        .await;
        let mut early = early.unwrap();
        early.read_head().await;
        early.finish().await.completed();
    }
}

/// [INV-10] An idle bridge is idle: no timer spins, also with sessions open and a client gone in the wrong moment.
#[tokio::test]
async fn an_idle_bridge_does_nothing() {
    let upstream = upstream().await;
    let more = format!("{CLIENTS}[watchdog]\nreuse_check_after = \"0s\"\npong_deadline = \"200ms\"\n");
    let home = Home::new(&config(&upstream.base_url(), &more));
    let bridge = home.start().await;
    for n in 0..20 {
        let ask = alice(&format!("sim:conv=c{n} hello")).thread(&format!("k{n}"));
        ask.ask(bridge.address).await.completed();
        drop(ask.send(bridge.address).await);
        let mut reply = ask
            .with("input", "sim:pause(after=1, for=ever)")
            .open(bridge.address)
            .await;
        reply.until("response.created").await;
    }
    eventually("all is quiet", || {
        upstream.look(|ledger| ledger.creates.iter().all(|create| create.took_ms.is_some()))
    })
    .await;
    sleep(Duration::from_millis(300)).await;
    let before = bridge.ticks();
    sleep(Duration::from_secs(1)).await;
    let used = bridge.ticks() - before;
    assert!(used <= 10, "{used} ticks of 10 ms in a second of nothing");
}
