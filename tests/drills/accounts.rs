//! An account goes wrong: its credential, its limits.

use futures_util::future::join_all;
use responses_bridge::simulator::Script;

use crate::client::Ask;
use crate::responder::{events_end_with, explained, explains};
use crate::world::Setup;

pub const TWO: &str = r#"
[providers.openai]
base_url = "{openai}"
[[providers.openai.accounts]]
name = "a"
credential = { env = "A" }
[[providers.openai.accounts]]
name = "b"
credential = { env = "B" }
"#;

/// [EXP-4] Drill 3: one of two accounts does not take its credential any more. The call that found it out, and the one after
/// it, are told where they went and why.
#[tokio::test(flavor = "multi_thread")]
async fn one_sick_account() {
    let setup = Setup::new().config(TWO).secret("A", "sk-a").secret("B", "sk-b");
    let world = setup.start().await;
    let rule =
        "[[rule]]\nmatch = { header = { authorization = \"Bearer sk-a\" } }\nbehave = \"error(status=401)\"";
    world.upstream.rescript(Script::parse(rule).unwrap());
    let first = world.ask(&Ask::turn("hello").thread("first")).await;
    world.ask(&Ask::turn("hello").thread("second")).await.completed();
    let sentence = "openai/a rejected it with 401 (credential not accepted); openai/a was left alone for 60 s; the same call \
                    was served by openai/b over WebSocket in D, response.created after D, first output after D";
    explains(world.state.path(), &first.id(), sentence).await;
    let story = explained(world.state.path(), "first");
    assert_eq!(
        (&story["cause"], &story["detail"]),
        (&"credential_rejected".into(), &"authentication".into())
    );
    let sentence = "openai/a was left alone since T: its credential was rejected; the call was served by openai/b over \
                    WebSocket in D, response.created after D, first output after D";
    explains(world.state.path(), "second", sentence).await;
    assert_eq!(explained(world.state.path(), "second")["cause"], "cooldown");
    let cause = ["! cooldown_started", "credential, for 60s", "openai/a"];
    events_end_with(world.state.path(), &["--account", "openai/a"], &cause).await;
}

/// [EXP-4] [EVT-10] Drill 5: the upstream answers everything with 429.
#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_429() {
    let world = Setup::new().start().await;
    let rule = "[[rule]]\nbehave = \"error(status=429, code=rate_limit_exceeded, retry_after=7)\"";
    world.upstream.rescript(Script::parse(rule).unwrap());
    let calls = (0..12).map(|number| {
        let ask = Ask::turn("hello").thread(&format!("thread-{number}"));
        let world = &world;
        async move { world.ask(&ask).await.status }
    });
    assert!(join_all(calls).await.iter().all(|status| *status == 429));
    let sentence = "openai/main rejected it with 429 (rate limit), as it did 11 other calls within a minute; no later call of \
                    the conversation is in the journal";
    explains(world.state.path(), "thread-3", sentence).await;
    let story = explained(world.state.path(), "thread-3");
    assert_eq!(
        (&story["cause"], &story["detail"]),
        (&"rate_limited".into(), &"rate_limit".into())
    );
    let cause = ["turn_finished", "rejected", "status 429"];
    events_end_with(world.state.path(), &["--id", "thread-3"], &cause).await;
    let finished = &world.events("turn_finished")[0];
    assert_eq!(
        (&finished["status"], &finished["error"]),
        (&429.into(), &"rate_limit".into())
    );
}
