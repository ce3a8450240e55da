//! Agents that resend their whole history: only what is new goes upstream, and the model sees the same.

use std::sync::Arc;
use std::time::Duration;

use responses_bridge::simulator::{Create, Ending};
use serde_json::{Value, json};

use crate::client::{Answer, Ask};
use crate::world::{Setup, World, eventually};

/// An agent over HTTP: it keeps the conversation itself and sends all of it each time.
struct Agent {
    items: Vec<Value>,
    fields: Vec<(&'static str, Value)>,
    headers: Vec<(&'static str, String)>,
}

impl Agent {
    fn new(thread: &str) -> Agent {
        Agent {
            headers: vec![("thread-id", thread.to_owned())],
            ..Agent::unknown()
        }
    }

    /// One that says nothing of which conversation it is.
    fn unknown() -> Agent {
        Agent {
            items: Vec::new(),
            fields: vec![("store", json!(false)), ("instructions", json!("be brief"))],
            headers: Vec::new(),
        }
    }

    fn with(mut self, field: &'static str, value: Value) -> Agent {
        self.fields.retain(|(name, _)| *name != field);
        self.fields.push((field, value));
        self
    }

    fn ask(&self) -> Ask {
        let mut ask = Ask::turn("").with("input", json!(self.items));
        for (name, value) in &self.fields {
            ask = ask.with(name, value.clone());
        }
        for (name, value) in &self.headers {
            ask = ask.header(name, value);
        }
        ask
    }

    fn say(&mut self, text: &str) {
        let part = json!({"type": "input_text", "text": text});
        self.items
            .push(json!({"type": "message", "role": "user", "content": [part]}));
    }

    /// One turn that completes, what came out of it put behind the history as clients do: without ids and states.
    async fn turn(&mut self, world: &World, text: &str) -> Answer {
        self.say(text);
        let answer = world.ask(&self.ask()).await;
        for item in output(&answer) {
            self.items.push(as_resent(item));
        }
        answer
    }
}

fn output(answer: &Answer) -> Vec<Value> {
    answer.completed()["output"].as_array().unwrap().clone()
}

fn as_resent(mut item: Value) -> Value {
    let object = item.as_object_mut().unwrap();
    object.retain(|name, value| name != "id" && name != "status" && !value.is_null());
    for part in object
        .get_mut("content")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        part.as_object_mut()
            .unwrap()
            .retain(|name, _| name != "annotations" && name != "logprobs");
    }
    item
}

fn creates(world: &World, conversation: &str) -> Vec<Create> {
    world
        .upstream
        .look(|ledger| ledger.creates_of(conversation).cloned().collect())
}

/// What the model saw, as it means: clients drop ids and states.
fn seen(transcript: &[Arc<Value>]) -> Vec<Value> {
    transcript
        .iter()
        .map(|item| as_resent(Value::clone(item)))
        .collect()
}

/// [CONT-22] [CONT-20] Row 12: from the second turn on only the new item goes up, on one socket, never an item of the
/// history beside the anchor; and each time the model sees all that the client sent, item by item, once.
#[tokio::test]
async fn only_what_is_new_is_sent() {
    let world = Setup::new().start().await;
    let mut agent = Agent::new("a");
    for turn in 0..5 {
        let before = agent.items.len();
        agent
            .turn(&world, &format!("sim:conv=a sim:text(n=3) turn {turn}"))
            .await;
        let creates = creates(&world, "a");
        let create = creates.last().unwrap();
        assert_eq!(seen(&create.transcript), agent.items[..=before]);
        assert_eq!(create.new_items, 1, "turn {turn}");
        assert_eq!(create.previous_response_id.is_some(), turn > 0);
    }
    let sockets = world.sockets("a");
    assert!(
        sockets
            .iter()
            .all(|socket| socket.is_some() && *socket == sockets[0])
    );
    let used = world.events("continuation_used");
    assert_eq!(used.len(), 4);
    assert_eq!(used[3]["known_items"], 8);
    assert!(
        used[3]["saved_bytes"].as_u64() > used[3]["sent_bytes"].as_u64(),
        "{:?}",
        used[3]
    );
    assert!(world.events("continuation_rejected").is_empty());
}

/// [CONT-22] `store: true` and a client's own anchor are left alone.
#[tokio::test]
async fn what_is_left_alone() {
    let world = Setup::new().start().await;
    let mut stored = Agent::new("stored").with("store", json!(true));
    for _ in 0..3 {
        stored.turn(&world, "sim:conv=stored hello").await;
    }
    assert!(
        creates(&world, "stored")
            .iter()
            .all(|create| create.previous_response_id.is_none())
    );
    let sockets = world.sockets("stored");
    assert!(
        sockets.iter().all(|socket| *socket == sockets[0]),
        "and stays where it is: {sockets:?}"
    );

    let mut own = Agent::new("own");
    let first = own.turn(&world, "sim:conv=own hello").await.id();
    let ask = Ask::turn("sim:conv=own on")
        .thread("own")
        .with("store", false)
        .after(&first);
    world.ask(&ask).await.completed();
    let last = creates(&world, "own").pop().unwrap();
    assert_eq!((last.previous_response_id, last.new_items), (Some(first), 1));
    assert!(world.events("continuation_used").is_empty());
}

/// [CONT-25] An edited, dropped or reordered item and a changed field: sent in full, and the event says why.
#[tokio::test]
async fn what_differs_is_sent_in_full() {
    let world = Setup::new().start().await;
    type Change = fn(&mut Agent);
    let changes: [(&str, Change); 6] = [
        ("edited", |agent| {
            agent.items[0]["content"][0]["text"] = json!("sim:conv=edited something else")
        }),
        ("edited", |agent| drop(agent.items.remove(1))),
        ("edited", |agent| agent.items.swap(0, 1)),
        ("model", |agent| agent.fields.push(("model", json!("another")))),
        ("instructions", |agent| {
            agent.fields.push(("instructions", json!("be long")))
        }),
        ("tools", |agent| {
            agent.fields.push(("tools", json!([{"type": "web_search"}])))
        }),
    ];
    for (index, (reason, change)) in changes.into_iter().enumerate() {
        let name = format!("c{index}");
        let mut agent = Agent::new(&name);
        agent.turn(&world, &format!("sim:conv={name} one")).await;
        agent.turn(&world, &format!("sim:conv={name} two")).await;
        change(&mut agent);
        agent.turn(&world, &format!("sim:conv={name} three")).await;
        let last = creates(&world, &name).pop().unwrap();
        assert_eq!(last.previous_response_id, None, "{reason} {index}");
        assert_eq!(last.new_items, last.transcript.len());
        let rejected = world.events("continuation_rejected");
        assert_eq!(rejected.len(), index + 1);
        assert_eq!(rejected[index]["reason"], reason, "{index}");
    }
}

/// [CONT-24] Rows 11 and 35: upstream has lost the bridge's own anchor, in every form of saying so: once more, in full, on
/// the same socket, and the client notices nothing. The turn after it is a continuation again.
#[tokio::test]
async fn an_anchor_that_upstream_has_lost() {
    for form in ["code", "message", "invalid", "stream_incomplete"] {
        let world = Setup::new().start().await;
        let mut agent = Agent::new("a");
        agent.turn(&world, "sim:conv=a one").await;
        agent
            .turn(
                &world,
                &format!("sim:conv=a sim:not_found(form={form}, times=1) two"),
            )
            .await;
        agent.turn(&world, "sim:conv=a three").await;
        let creates = creates(&world, "a");
        let anchored: Vec<_> = creates
            .iter()
            .map(|create| create.previous_response_id.is_some())
            .collect();
        assert_eq!(anchored, [false, true, false, true], "{form}");
        assert!(
            creates.iter().all(|create| create.socket == creates[0].socket),
            "{form}"
        );
        let rejected = world.events("continuation_rejected");
        assert_eq!(rejected.len(), 1);
        assert_eq!(rejected[0]["reason"], "not_found");
    }
}

/// [CONT-24] [CONT-25] Lost when the client has been told something already: the failure stands, it is told that the anchor was the
/// bridge's, and the retry goes in full.
#[tokio::test]
async fn an_anchor_that_is_lost_too_late() {
    for (config, how) in [
        ("", "sim:not_found(after=1, times=1)"),
        (
            "[server]\ncommit_after = \"100ms\"",
            "sim:telemetry(for=600ms, every=50ms) sim:not_found(times=1)",
        ),
    ] {
        let world = Setup::new().config(config).start().await;
        let mut agent = Agent::new("a");
        agent.turn(&world, "sim:conv=a one").await;
        agent.say(&format!("sim:conv=a {how} two"));
        let answer = world.ask(&agent.ask()).await;
        assert_eq!(answer.failure(), "previous_response_not_found", "{how}");
        let rejected = world.events("continuation_rejected");
        assert_eq!(rejected.len(), 1, "{how}");
        assert_eq!(rejected[0]["reason"], "not_found");
        world.ask(&agent.ask()).await.completed();
        let creates = creates(&world, "a");
        let anchored: Vec<_> = creates
            .iter()
            .map(|create| create.previous_response_id.is_some())
            .collect();
        assert_eq!(anchored, [false, true, false], "{how}");
    }
}

/// [CONT-23] Row 35: in quarantine, and where the upgrade is refused, the client's own body goes over HTTP, whole.
#[tokio::test]
async fn nothing_of_the_bridges_travels_over_http() {
    let config = "[watchdog]\nresponse_created_deadline = \"150ms\"\n[quarantine]\nwindow = \"400ms\"\nmax_window = \"1s\"";
    let world = Setup::new().config(config).start().await;
    let mut agent = Agent::new("a");
    agent.turn(&world, "sim:conv=a one").await;
    agent.turn(&world, "sim:conv=a two").await;
    agent.say("sim:conv=a sim:silent(times=1,on=ws) three");
    assert_eq!(world.ask(&agent.ask()).await.status, 504);
    // The client's retry is the same request.
    let answer = world.ask(&agent.ask()).await;
    agent.items.extend(output(&answer).into_iter().map(as_resent));
    let direct = creates(&world, "a").pop().unwrap();
    assert_eq!((direct.socket, direct.previous_response_id.clone()), (None, None));
    assert_eq!(direct.new_items, 5);
    tokio::time::sleep(Duration::from_millis(450)).await;
    agent.turn(&world, "sim:conv=a four").await;
    agent.turn(&world, "sim:conv=a five").await;
    let creates = creates(&world, "a");
    let [probe, after] = &creates[creates.len() - 2..] else {
        panic!("two")
    };
    assert_eq!(
        (probe.socket.is_some(), probe.new_items),
        (true, 7),
        "a fresh socket knows nothing"
    );
    assert_eq!((after.socket, after.new_items), (probe.socket, 1));
    assert_eq!(seen(&after.transcript).len(), 9);
}

/// [CONT-22] A socket that is lost takes its memory along: the next turn goes in full on a new one.
#[tokio::test]
async fn a_lost_socket_is_a_lost_memory() {
    let world = Setup::new().start().await;
    let mut agent = Agent::new("a");
    agent.turn(&world, "sim:conv=a one").await;
    agent.turn(&world, "sim:conv=a two").await;
    world.upstream.end_sockets(Ending::Reset);
    world.saw("session_retired", 1).await;
    agent.turn(&world, "sim:conv=a three").await;
    agent.turn(&world, "sim:conv=a four").await;
    let new: Vec<_> = creates(&world, "a")
        .iter()
        .map(|create| create.new_items)
        .collect();
    assert_eq!(new, [1, 1, 5, 1]);
}

/// [CONT-26] [KEY-22] Row 39: a title request of the same key does not erase the conversation's anchor.
#[tokio::test]
async fn a_side_request_costs_no_memory() {
    let world = Setup::new().start().await;
    let mut agent = Agent::new("a");
    agent.turn(&world, "sim:conv=a one").await;
    let mut title = Agent::new("a").with("instructions", json!("make a title"));
    title.turn(&world, "sim:conv=title hello").await;
    agent.turn(&world, "sim:conv=a two").await;
    title.turn(&world, "sim:conv=title again").await;
    let new = |name: &str| {
        creates(&world, name)
            .iter()
            .map(|create| create.new_items)
            .collect::<Vec<_>>()
    };
    assert_eq!((new("a"), new("title")), (vec![1, 1], vec![1, 1]));
    assert_ne!(world.sockets("a")[0], world.sockets("title")[0]);
}

/// [CONT-27] [CONT-26] Clients that say nothing of which conversation it is find it by what it says; two that open alike
/// stay apart, and so do tenants and models.
#[tokio::test]
async fn affinity_by_content() {
    let world = Setup::new().start().await;
    let mut one = Agent::unknown();
    let mut two = Agent::unknown();
    let opening = "sim:conv=alike sim:text(n=2) the same words";
    one.turn(&world, opening).await;
    two.turn(&world, opening).await;
    for turn in 0..3 {
        one.turn(&world, &format!("sim:conv=one {turn}")).await;
        two.turn(&world, &format!("sim:conv=two {turn}")).await;
    }
    for name in ["one", "two"] {
        let creates = creates(&world, name);
        let new: Vec<_> = creates.iter().map(|create| create.new_items).collect();
        assert_eq!(new, [1, 1, 1], "{name}");
        let last = creates.last().unwrap();
        assert_eq!(last.transcript.len(), 7);
    }
    assert_eq!(world.events("turn_finished")[0]["key_kind"], "content");

    let sockets = world.upstream.ledger().sockets_opened;
    let mut stranger = Agent::unknown();
    stranger.items = one.items.clone();
    stranger
        .headers
        .push(("authorization", "Bearer another".to_owned()));
    stranger.turn(&world, "sim:conv=stranger hello").await;
    assert_eq!(creates(&world, "stranger")[0].previous_response_id, None);
    let mut model = Agent::unknown().with("model", json!("another"));
    model.items = one.items.clone();
    model.turn(&world, "sim:conv=model hello").await;
    assert_eq!(creates(&world, "model")[0].previous_response_id, None);
    assert_eq!(world.upstream.ledger().sockets_opened, sockets + 2);
}

/// [CONT-21] An answer that did not complete is no anchor.
#[tokio::test]
async fn no_anchor_on_an_incomplete_answer() {
    let world = Setup::new().start().await;
    let mut agent = Agent::new("a");
    agent.turn(&world, "sim:conv=a one").await;
    agent.say("sim:conv=a sim:terminal(shape=incomplete) two");
    let answer = world.ask(&agent.ask()).await;
    let terminal = answer.terminal();
    assert_eq!(terminal.name, "response.incomplete");
    let output = terminal.data["response"]["output"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    agent.items.extend(output.into_iter().map(as_resent));
    agent.turn(&world, "sim:conv=a three").await;
    assert_eq!(creates(&world, "a").pop().unwrap().previous_response_id, None);
}

/// [CONT-29] Switched off, every turn is sent in full, on the conversation's socket.
#[tokio::test]
async fn switched_off() {
    let world = Setup::new()
        .config("[continuation]\nenabled = false")
        .start()
        .await;
    let mut agent = Agent::new("a");
    for _ in 0..3 {
        agent.turn(&world, "sim:conv=a hello").await;
    }
    assert!(
        creates(&world, "a")
            .iter()
            .all(|create| create.previous_response_id.is_none())
    );
    let sockets = world.sockets("a");
    assert!(sockets.iter().all(|socket| *socket == sockets[0]), "{sockets:?}");
    assert!(world.events("continuation_used").is_empty());
}

/// [CONT-28] What is remembered is counted, and given back with the sessions.
#[tokio::test]
async fn what_is_remembered_is_counted() {
    let world = Setup::new().config("[session]\nidle_ttl = \"1s\"").start().await;
    let mut agent = Agent::new("a");
    for _ in 0..3 {
        agent.turn(&world, "sim:conv=a hello").await;
    }
    let bytes = world.metric("bridge_history_bytes", "").await.unwrap();
    assert!(bytes > 100.0 && bytes < 8192.0, "{bytes}");
    eventually("the session is idle for too long", || {
        !world.events("session_retired").is_empty()
    })
    .await;
    world.gauge_is("bridge_history_bytes", "", 0).await;
}

/// [CONT-26] A client's retry tells the same again: in full, on the session of that conversation.
#[tokio::test]
async fn a_retry_stays_on_its_session() {
    let world = Setup::new().start().await;
    let mut agent = Agent::new("a");
    agent.turn(&world, "sim:conv=a one").await;
    agent.say("sim:conv=a two");
    for _ in 0..3 {
        world.ask(&agent.ask()).await.completed();
    }
    let new: Vec<_> = creates(&world, "a")
        .iter()
        .map(|create| create.new_items)
        .collect();
    assert_eq!(new, [1, 1, 3, 3]);
    assert_eq!(world.upstream.ledger().sockets_opened, 1);
    let rejected = world.events("continuation_rejected");
    assert_eq!(rejected.len(), 2);
    assert_eq!(rejected[0]["reason"], "shorter");
}

/// [CONT-26] A client that edits its last answer each time stays on the conversation's sessions, and does not open more and
/// more.
#[tokio::test]
async fn an_edited_history_stays_on_its_session() {
    let world = Setup::new().start().await;
    let mut agent = Agent::new("a");
    for turn in 0..6 {
        agent.turn(&world, &format!("sim:conv=a {turn}")).await;
        let last = agent.items.last_mut().unwrap();
        last["content"][0]["text"] = json!(format!("my words {turn}"));
    }
    let sockets = world.sockets("a");
    assert!(
        sockets[2..].iter().all(|socket| *socket == sockets[2]),
        "{sockets:?}"
    );
    assert!(world.events("continuation_used").is_empty());
}

/// [SES-28] Old sockets that are kept for what they alone remember do not keep a conversation from having a young one.
#[tokio::test]
async fn old_sockets_make_room() {
    let world = Setup::new()
        .config("[session]\nmax_age = \"500ms\"\nmax_per_key = 1\nqueue_wait = \"0s\"")
        .start()
        .await;
    let mut agent = Agent::new("a");
    for turn in 0..3 {
        agent.turn(&world, &format!("sim:conv=a {turn}")).await;
        tokio::time::sleep(Duration::from_millis(550)).await;
    }
    let sockets = world.sockets("a");
    assert!(sockets.iter().all(Option::is_some), "{sockets:?}");
    assert_eq!(world.events("session_evicted").len(), 2);
    world.gauge_is("bridge_sessions", "idle", 1).await;
}
