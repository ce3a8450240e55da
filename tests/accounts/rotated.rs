//! A credential's file changes while conversations go on.

use std::time::Duration;

use crate::client::{Ask, MOMENT};
use crate::keyfile::{KeyFile, credentials, shown};
use crate::world::{World, eventually};

fn retired(world: &World, reason: &str) -> usize {
    let events = world.events("session_retired");
    events.iter().filter(|event| event["reason"] == reason).count()
}

fn rejections(world: &World) -> Vec<String> {
    let events = world.events("credential_rejected");
    let reasons = events
        .iter()
        .map(|event| event["reason"].as_str().unwrap().to_owned());
    reasons.collect()
}

/// [UP-22] In mid-conversation, renamed over and written in place: the idle socket goes, and the next turn opens one with the
/// new credential; direct HTTP carries it too.
#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_credential_replaces_idle_sockets() {
    let file = KeyFile::new("sk-1\n");
    let world = file.setup("").start().await;
    let ask = Ask::turn("hello sim:conv=talk").thread("t");
    world.ask(&ask).await.completed();
    file.rename_over("sk-2\n");
    eventually("the socket goes", || retired(&world, "credential_rotated") == 1).await;
    world.ask(&ask).await.completed();
    file.write("sk-3\n");
    eventually("the next one too", || retired(&world, "credential_rotated") == 2).await;
    world.ask(&ask).await.completed();
    world.ask(&ask.with("background", true)).await;
    let keys = ["sk-1", "sk-2", "sk-3", "sk-3"].map(shown);
    assert_eq!(credentials(&world, "talk"), keys);
    let sockets = world.sockets("talk");
    assert!(
        sockets[0] != sockets[1] && sockets[1] != sockets[2],
        "{sockets:?}"
    );
    assert_eq!(sockets[3], None);
    assert_eq!(rejections(&world), [] as [&str; 0]);
}

/// [UP-22] A socket at work finishes its turn with the old credential, and is retired then; an idle one does not wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_socket_at_work_finishes_its_turn() {
    let file = KeyFile::new("sk-1");
    let world = file.setup("").start().await;
    world
        .ask(&Ask::turn("hello sim:conv=idle").thread("idle"))
        .await
        .completed();
    let slow = Ask::turn("hello sim:conv=busy sim:pause(after=1, for=4s)").thread("busy");
    let mut busy = world.open(&slow).await;
    busy.until("response.created").await;
    file.rename_over("sk-2");
    eventually("the idle socket goes", || {
        retired(&world, "credential_rotated") == 1
    })
    .await;
    busy.until("response.completed").await;
    eventually("then the busy one", || retired(&world, "credential_rotated") == 2).await;
    let told = world.sequence(&["session_retired", "turn_finished"]);
    assert_eq!(
        told,
        [
            "turn_finished",
            "session_retired",
            "turn_finished",
            "session_retired"
        ]
    );
    world
        .ask(&Ask::turn("on sim:conv=busy").thread("busy"))
        .await
        .completed();
    assert_eq!(credentials(&world, "busy"), ["sk-1", "sk-2"].map(shown));
}

/// [UP-22] A file that is of no use changes nothing, whatever is wrong with it, and each change of it is told once.
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_file_keeps_the_last_good_credential() {
    let file = KeyFile::new("sk-1");
    let world = file.setup("").start().await;
    let ask = Ask::turn("hello sim:conv=talk").thread("t");
    world.ask(&ask).await.completed();
    file.write("");
    world.saw("credential_rejected", 1).await;
    file.write("two words");
    world.saw("credential_rejected", 2).await;
    world.ask(&ask).await.completed();
    std::fs::remove_file(file.path()).unwrap();
    world.saw("credential_rejected", 3).await;
    // Some looks later it is still told once.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    world.ask(&ask).await.completed();
    let told = ["file_empty", "file_malformed", "file_unreadable"];
    assert_eq!(rejections(&world), told);
    for event in world.events("credential_rejected") {
        assert_eq!(
            (&*event["level"].to_string(), &event["account"]),
            ("\"warn\"", &"main".into())
        );
    }
    assert_eq!(
        world.sockets("talk"),
        [world.sockets("talk")[0]; 3],
        "the socket stays"
    );
    file.write("sk-2");
    eventually("the good one is taken", || {
        retired(&world, "credential_rotated") == 1
    })
    .await;
    world.ask(&ask).await.completed();
    assert_eq!(
        credentials(&world, "talk"),
        ["sk-1", "sk-1", "sk-1", "sk-2"].map(shown)
    );
    let metric = world
        .metric("bridge_events_total", "reason=\"file_malformed\"")
        .await;
    assert_eq!(metric, Some(1.0));
}

/// [UP-22] A pipe in the file's place is no credential, and does not keep the bridge from looking again.
#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_is_no_credential() {
    let file = KeyFile::new("sk-1");
    let world = file.setup("").start().await;
    let pipe = file.path().with_extension("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    std::fs::rename(&pipe, file.path()).unwrap();
    world.saw("credential_rejected", 1).await;
    assert_eq!(rejections(&world), ["file_unreadable"]);
    file.rename_over("sk-2");
    let ask = Ask::turn("hello sim:conv=talk").thread("t");
    let until = tokio::time::Instant::now() + MOMENT;
    while credentials(&world, "talk").last() != Some(&shown("sk-2")) {
        world.ask(&ask).await.completed();
        assert!(tokio::time::Instant::now() < until, "it is never read");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// [UP-22] What is half written in place is not taken for a credential.
#[tokio::test(flavor = "multi_thread")]
async fn a_half_written_credential_is_never_sent() {
    let file = KeyFile::new("sk-1");
    let world = file.setup("transport = \"http\"").start().await;
    let whole = "sk-2-the-whole-of-it";
    file.write(&whole[..7]);
    tokio::time::sleep(Duration::from_millis(100)).await;
    file.write(whole);
    let until = tokio::time::Instant::now() + MOMENT;
    let ask = Ask::turn("hello sim:conv=talk");
    loop {
        world.ask(&ask).await.completed();
        let sent = credentials(&world, "talk");
        if sent.last() == Some(&shown(whole)) {
            let known = [shown("sk-1"), shown(whole)];
            assert!(sent.iter().all(|key| known.contains(key)));
            return;
        }
        assert!(tokio::time::Instant::now() < until, "it is never read");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// [UP-22] A socket whose handshake began with the old credential serves the turn that waits for it, and no other.
#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_was_being_opened_serves_one_turn() {
    let file = KeyFile::new("sk-1");
    let slow = "[[upgrade]]\nmatch = { nth = 1 }\ndo = \"slow(delay=5s)\"\n";
    let world = file
        .setup("")
        .config("[watchdog]\nhandshake_patience = \"9s\"")
        .script(slow)
        .start()
        .await;
    let ask = Ask::turn("hello sim:conv=talk").thread("t");
    let (answer, ()) = tokio::join!(world.ask(&ask), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        file.rename_over("sk-2");
    });
    answer.completed();
    eventually("the socket goes", || retired(&world, "credential_rotated") == 1).await;
    world.ask(&ask).await.completed();
    assert_eq!(credentials(&world, "talk"), ["sk-1", "sk-2"].map(shown));
}
