//! Sessions go wrong: silent, wedged, and so many of them that the transport is not trusted.

use futures_util::future::join_all;
use serde_json::Value;

use crate::client::Ask;
use crate::responder::{events_end_with, explained, explains};
use crate::world::{Setup, World};

pub const SHORT: &str = "[watchdog]\nresponse_created_deadline = \"300ms\"";

const THREAD: &str = "0197e4f2-user-thread";

fn key_of(story: &Value) -> &str {
    story["keys"][0].as_str().unwrap()
}

async fn incident(word: &str) -> (World, String) {
    let world = Setup::new().config(SHORT).start().await;
    let failed = world.ask(&Ask::turn(format!("sim:{word}")).thread(THREAD)).await;
    assert_eq!(failed.error(), "bridge_response_created_timeout");
    world.ask(&Ask::turn("again").thread(THREAD)).await.completed();
    (world, failed.headers["x-request-id"].clone())
}

/// [EXP-1] [EXP-2] [EXP-4] Drill 1: a session is silent. The sentence is the same by whichever id the user tells it.
#[tokio::test(flavor = "multi_thread")]
async fn silent() {
    let (world, request) = incident("silent(on=ws)").await;
    let sentence = "the upstream accepted the connection but never sent response.created; the conversation was quarantined \
                    for 60 s; the retry at T was served over HTTP";
    for id in [request.as_str(), THREAD] {
        let printed = explains(world.state.path(), id, sentence).await;
        for step in [
            "asked",
            "route",
            "plan",
            "sent",
            "watchdog",
            "session",
            "quarantine",
        ] {
            assert!(printed.text.contains(step), "{step}: {}", printed.text);
        }
    }
    let story = explained(world.state.path(), &request);
    assert_eq!((&story["cause"], &story["calls"]), (&"silent".into(), &1.into()));
    let cause = ["turn_finished", key_of(&story), "response_created_timeout"];
    events_end_with(world.state.path(), &["--id", &request], &cause).await;
    let cause = ["! response_created_timeout", "eventless for"];
    events_end_with(
        world.state.path(),
        &["--id", THREAD, "--kind", "*timeout"],
        &cause,
    )
    .await;
    // The key as it is printed finds the same.
    explains(world.state.path(), key_of(&story), sentence).await;
}

/// [EXP-4] Drill 2: events come, but never `response.created`.
#[tokio::test(flavor = "multi_thread")]
async fn wedged() {
    let (world, request) = incident("no_created(n=3, delay=1ms)").await;
    let sentence = "the upstream sent events but never response.created; the conversation was quarantined for 60 s; \
                    the retry at T was served over HTTP";
    explains(world.state.path(), &request, sentence).await;
    assert_eq!(explained(world.state.path(), &request)["cause"], "wedged");
    let cause = ["! response_created_timeout", "events_without_crea"];
    events_end_with(
        world.state.path(),
        &["--id", THREAD, "--kind", "*timeout"],
        &cause,
    )
    .await;
}

/// [EXP-4] Drill 4: three conversations are silent at once; another one goes over HTTP, and is told why.
#[tokio::test(flavor = "multi_thread")]
async fn sick_transport() {
    let world = Setup::new().config(SHORT).start().await;
    let silent = ["one", "two", "three"].map(|thread| {
        let ask = Ask::turn("sim:silent(on=ws)").thread(thread);
        let world = &world;
        async move { world.ask(&ask).await }
    });
    join_all(silent).await;
    let answer = world.ask(&Ask::turn("hello").thread("four")).await;
    answer.completed();
    let sentence = "the WebSocket transport of openai/main was not trusted since T; the call was served by openai/main over \
                    HTTP in D, response.created after D, first output after D";
    explains(world.state.path(), "four", sentence).await;
    let story = explained(world.state.path(), &answer.id());
    assert_eq!(
        (&story["cause"], &story["calls"]),
        (&"sick_transport".into(), &1.into())
    );
    let cause = ["! breaker_changed", "opened", "openai/main"];
    events_end_with(world.state.path(), &["--kind", "breaker*"], &cause).await;
}
