//! Turns on sockets: memory, queueing, pings, limits, the ledger.

use std::time::Duration;

use futures_util::SinkExt;
use responses_bridge::simulator::{Conclusion, Ending, Script, SocketEnd, credential_hash};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::client::*;

/// [SIM-1] [SIM-2] A healthy turn on a socket, with the same object at its end as over HTTP.
#[tokio::test]
async fn a_healthy_turn() {
    let simulator = simulator("").await;
    let mut socket = Socket::open(&simulator).await;
    let events = socket.turn(ask("hi")).await;
    let expected = [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(kinds(&events), expected);
    let deltas: Vec<&str> = events
        .iter()
        .filter_map(|event| event["delta"].as_str())
        .collect();
    let object = &events[events.len() - 1]["response"];
    assert_eq!(deltas.concat(), text(object));
    let (_, over_http) = post_json(&simulator, "/v1/responses", &ask("hi")).await;
    assert_eq!(text(object), text(&over_http));
    let keys = |object: &Value| object.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(object), keys(&over_http));
}

/// [SIM-10] [SIM-12] A continuation sees what the socket remembers, and says the same as a full resend would.
#[tokio::test]
async fn a_continuation_from_memory() {
    let simulator = simulator("").await;
    let mut socket = Socket::open(&simulator).await;
    let first = socket
        .turn(json!({"model": "gpt-5", "store": false, "input": "hi"}))
        .await;
    let answer = text(&first[first.len() - 1]["response"]);
    let next = json!({"model": "gpt-5", "store": false, "input": "more", "previous_response_id": id(&first)});
    let second = socket.turn(next).await;
    let resent = json!({"model": "gpt-5", "input": [
        {"role": "user", "content": "hi"}, {"role": "assistant", "content": answer}, {"role": "user", "content": "more"}]});
    let (_, full) = post_json(&simulator, "/v1/responses", &resent).await;
    assert_eq!(text(&second[second.len() - 1]["response"]), text(&full));
    let ledger = simulator.ledger();
    let seen: Vec<usize> = ledger
        .creates
        .iter()
        .map(|create| create.transcript.len())
        .collect();
    assert_eq!(seen, [1, 3, 3]);
    assert_eq!(ledger.creates[1].new_items, 1);
}

/// [SIM-10] A socket remembers its latest response only; an unstored one is found nowhere else.
#[tokio::test]
async fn only_the_latest_response_is_remembered() {
    let simulator = simulator("").await;
    let mut socket = Socket::open(&simulator).await;
    let unstored = |input: &str| json!({"model": "gpt-5", "store": false, "input": input});
    let first = id(&socket.turn(unstored("a")).await);
    let second = id(&socket.turn(unstored("b")).await);
    let naming =
        |id: &str| json!({"model": "gpt-5", "store": false, "input": "c", "previous_response_id": id});
    let refused = socket.turn(naming(&first)).await;
    assert_eq!(
        (&refused[0]["status"], &refused[0]["error"]["code"]),
        (&400.into(), &"previous_response_not_found".into())
    );
    let mut other = Socket::open(&simulator).await;
    assert_eq!(other.turn(naming(&second)).await[0]["type"], "error");
    assert_eq!(
        post_json(&simulator, "/v1/responses", &naming(&second)).await.0,
        400
    );
    assert_eq!(
        kinds(&socket.turn(naming(&second)).await)[0],
        "created",
        "the wrong name evicted nothing"
    );
}

/// [SIM-10] A stored response is found on every socket and over HTTP, and a turn that fails evicts the one it named.
#[tokio::test]
async fn storage_and_eviction() {
    let simulator = simulator("").await;
    let mut socket = Socket::open(&simulator).await;
    let stored = id(&socket.turn(ask("a")).await);
    let naming = json!({"model": "gpt-5", "input": "b", "previous_response_id": stored});
    assert_eq!(post_json(&simulator, "/v1/responses", &naming).await.0, 200);

    let unstored = id(&socket
        .turn(json!({"model": "gpt-5", "store": false, "input": "a"}))
        .await);
    let failing = |prompt: &str| json!({"model": "gpt-5", "store": false, "input": prompt, "previous_response_id": unstored});
    assert_eq!(
        socket.turn(failing("sim:error(status=500)")).await[0]["status"],
        500
    );
    assert_eq!(
        socket.turn(failing("again")).await[0]["error"]["code"],
        "previous_response_not_found"
    );
}

/// [SIM-10] A warm-up has no output, and its id can be named.
#[tokio::test]
async fn a_warm_up() {
    let simulator = simulator("").await;
    let mut socket = Socket::open(&simulator).await;
    let events = socket
        .turn(json!({"model": "gpt-5", "store": false, "generate": false, "input": "x"}))
        .await;
    assert_eq!(kinds(&events), ["created", "completed"]);
    assert_eq!(events[1]["response"]["output"], json!([]));
    let next = json!({"model": "gpt-5", "store": false, "input": "go", "previous_response_id": id(&events)});
    assert_eq!(kinds(&socket.turn(next).await)[0], "created");
    assert_eq!(simulator.ledger().creates[1].transcript.len(), 2);
}

/// [SIM-2] A second create waits for the first one, `response.processed` has no answer, and a ping has one at once.
#[tokio::test]
async fn creates_queue_and_pings_do_not() {
    let simulator = simulator("").await;
    let mut socket = Socket::open(&simulator).await;
    socket
        .send(ask("sim:conv=one sim:created_after(delay=300ms)"))
        .await;
    socket.send(ask("sim:conv=two")).await;
    socket
        .0
        .send(Message::text(
            r#"{"type":"response.processed","response_id":"x"}"#,
        ))
        .await
        .unwrap();
    socket.0.send(Message::Ping("p".into())).await.unwrap();
    assert_eq!(socket.next().await, Got::Pong, "before the first turn began");
    let mut texts = Vec::new();
    while texts.len() < 2 {
        let event = socket.event().await;
        if event["type"] == "response.completed" {
            texts.push(text(&event["response"]));
        }
    }
    assert!(
        texts[0].starts_with("[one] 1 items") && texts[1].starts_with("[two] 1 items"),
        "{texts:?}"
    );
    assert_eq!(simulator.ledger().sockets[0].pings, 1);
    assert!(socket.is_quiet(Duration::from_millis(50)).await);
}

/// [SIM-2] What is no create is answered with an error, and the socket goes on.
#[tokio::test]
async fn bad_frames_are_answered() {
    let simulator = simulator("").await;
    let mut socket = Socket::open(&simulator).await;
    for (frame, code) in [
        ("{", "invalid_json"),
        (r#"{"type":"response.retrieve"}"#, "invalid_value"),
        (
            r#"{"type":"response.create","input":"x"}"#,
            "missing_required_parameter",
        ),
        (
            r#"{"type":"response.create","model":"m","input":7}"#,
            "invalid_type",
        ),
    ] {
        socket.0.send(Message::text(frame)).await.unwrap();
        assert_eq!(socket.event().await["error"]["code"], code, "{frame}");
    }
    assert_eq!(kinds(&socket.turn(ask("hi")).await)[0], "created");
    assert_eq!(simulator.ledger().creates_total, 1);
}

/// [SIM-11] One byte above the limit is 1009 before any event; the limit itself is a turn.
#[tokio::test]
async fn the_frame_limit() {
    let simulator = simulator("[limits]\nframe = \"1KiB\"").await;
    let create = |size: usize| {
        let body = json!({"type": "response.create", "model": "gpt-5", "input": ""}).to_string();
        let padding = "x".repeat(size - body.len());
        json!({"model": "gpt-5", "input": padding})
    };
    let mut socket = Socket::open(&simulator).await;
    assert_eq!(kinds(&socket.turn(create(1024)).await)[0], "created");
    assert_eq!(simulator.ledger().creates[0].bytes, 1024);
    socket.send(create(1025)).await;
    assert_eq!(socket.until_the_end().await, (vec![], Got::Close(Some(1009))));
}

/// [SIM-11] A socket that has reached its age says so and closes.
#[tokio::test]
async fn the_age_limit() {
    let simulator = simulator("[limits]\nage = \"100ms\"").await;
    let mut socket = Socket::open(&simulator).await;
    assert_eq!(
        socket.event().await["error"]["code"],
        "websocket_connection_limit_reached"
    );
    assert_eq!(socket.next().await, Got::Close(Some(1000)));
}

/// [SIM-13] Tool rounds: a call per turn until all rounds were answered, then text.
#[tokio::test]
async fn tool_rounds() {
    let simulator = simulator("").await;
    let mut socket = Socket::open(&simulator).await;
    let tools = json!([{"type": "function", "name": "bash", "parameters": {
        "properties": {"command": {"type": "string"}}, "required": ["command"]}}]);
    let mut input = json!("sim:tools(rounds=2, parallel=2)");
    let mut previous = Value::Null;
    for round in 0..3 {
        let body = json!({"model": "gpt-5", "store": false, "tools": tools, "input": input, "previous_response_id": previous});
        let events = socket.turn(body).await;
        let output = events[events.len() - 1]["response"]["output"]
            .as_array()
            .unwrap()
            .clone();
        if round == 2 {
            assert_eq!(output[0]["type"], "message");
            break;
        }
        assert_eq!(output.len(), 2);
        assert_ne!(output[0]["call_id"], output[1]["call_id"]);
        let command = json!({"command": format!("echo round {}", round + 1)});
        assert_eq!(output[0]["arguments"], command.to_string());
        let pieces = events
            .iter()
            .filter(|event| event["type"] == "response.function_call_arguments.delta");
        assert_eq!(pieces.count(), 4);
        let answer = |call: &Value| json!({"type": "function_call_output", "call_id": call["call_id"], "output": "hello"});
        input = output.iter().map(answer).collect();
        previous = id(&events).into();
    }
}

/// [SIM-13] [SIM-18] A round with all that a reasoning model sends, as the real API writes it; the ledger has it too.
#[tokio::test]
async fn a_round_with_all_its_items() {
    let simulator = simulator("").await;
    let mut socket = Socket::open(&simulator).await;
    let events = socket
        .turn(
            json!({"model": "gpt-5", "store": false, "input": "sim:tools(rounds=1, say=true) sim:reasoning(parts=2)",
            "include": ["reasoning.encrypted_content"], "reasoning": {"summary": "auto"},
            "tools": [{"type": "function", "name": "bash"}]}),
        )
        .await;
    let done = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done");
    let done: Vec<Value> = done.map(|event| event["item"].clone()).collect();
    let fields: Vec<Vec<&str>> = done
        .iter()
        .map(|item| item.as_object().unwrap().keys().map(String::as_str).collect())
        .collect();
    assert_eq!(
        fields,
        [
            vec!["encrypted_content", "id", "summary", "type"],
            vec!["content", "id", "phase", "role", "status", "type"],
            vec!["arguments", "call_id", "id", "name", "status", "type"],
        ]
    );
    let summary = done[0]["summary"].as_array().unwrap();
    let parts = events
        .iter()
        .filter(|event| event["type"] == "response.reasoning_summary_part.done");
    assert_eq!(
        parts.map(|event| &event["part"]).collect::<Vec<_>>(),
        summary.iter().collect::<Vec<_>>()
    );
    assert_eq!(summary.len(), 2);
    assert_eq!(
        (&done[1]["role"], &done[1]["phase"]),
        (&json!("assistant"), &json!("commentary"))
    );
    let part = done[1]["content"][0].as_object().unwrap();
    assert_eq!(
        part.keys().collect::<Vec<_>>(),
        ["annotations", "logprobs", "text", "type"]
    );
    let said: Vec<Value> = simulator.ledger().creates[0]
        .output
        .iter()
        .map(|item| Value::clone(item))
        .collect();
    assert_eq!(said, done);
}

/// [SIM-18] Two creates have the same settings where the model is told the same, however each of them travels.
#[tokio::test]
async fn settings_are_what_the_model_is_told() {
    let simulator = simulator("").await;
    let mut socket = Socket::open(&simulator).await;
    let told = json!({"model": "gpt-5", "store": false, "input": "a", "instructions": "i", "reasoning": {"effort": "low"}});
    let mut named = told.clone();
    named["previous_response_id"] = id(&socket.turn(told.clone()).await).into();
    named["input"] = json!("b");
    named["client_metadata"] = json!({"turn_id": "2"});
    socket.turn(named).await;
    post_json(&simulator, "/v1/responses", &told).await;
    let mut other = told.clone();
    other["instructions"] = json!("j");
    post_json(&simulator, "/v1/responses", &other).await;
    let ledger = simulator.ledger();
    let settings: Vec<&str> = ledger
        .creates
        .iter()
        .map(|create| create.settings.as_str())
        .collect();
    assert_eq!(settings[..2], settings[1..3]);
    assert_ne!(settings[0], settings[3]);
}

/// [SIM-21] An edited history is seen edited, one sent together with its anchor is seen twice, a dropped item is
/// missing, and an anchor that is not found is the create's own conclusion.
#[tokio::test]
async fn the_transcript_shows_what_a_bridge_gets_wrong() {
    let simulator = simulator("").await;
    let mut socket = Socket::open(&simulator).await;
    let turn = |input: Value, previous: Option<&str>| json!({"model": "gpt-5", "store": false, "input": input, "previous_response_id": previous});
    let user = |text: &str| json!({"role": "user", "content": text});
    let first = id(&socket.turn(turn(json!([user("a")]), None)).await);
    let second = id(&socket.turn(turn(json!([user("b")]), Some(&first))).await);
    socket
        .turn(turn(json!([user("a"), user("c")]), Some(&second)))
        .await;
    socket.turn(turn(json!([user("A"), user("d")]), None)).await;
    socket.turn(turn(json!([user("e")]), Some(&first))).await;

    let ledger = simulator.ledger();
    let asked: Vec<Vec<&str>> = ledger
        .creates
        .iter()
        .map(|create| {
            let items = create.transcript.iter();
            items
                .filter(|item| item["role"] == "user")
                .filter_map(|item| item["content"].as_str())
                .collect()
        })
        .collect();
    assert_eq!(
        asked,
        [
            vec!["a"],
            vec!["a", "b"],
            vec!["a", "b", "a", "c"],
            vec!["A", "d"],
            vec!["e"]
        ]
    );
    let said: Vec<_> = ledger.creates[0].output.clone();
    assert_eq!(
        ledger.creates[1].transcript[1], said[0],
        "its own words, as it had sent them"
    );
    let conclusions: Vec<_> = ledger.creates.iter().map(|create| create.conclusion).collect();
    let completed = Conclusion::Completed;
    assert_eq!(
        conclusions,
        [
            completed,
            completed,
            completed,
            completed,
            Conclusion::Errored(400)
        ]
    );
}

/// [SIM-14] Encrypted reasoning comes when asked for, and only the account that made it can use it.
#[tokio::test]
async fn encrypted_reasoning_is_bound_to_its_account() {
    let simulator = simulator("").await;
    let mut socket = Socket::open(&simulator).await;
    let asking = json!({"model": "gpt-5", "input": "hi", "include": ["reasoning.encrypted_content"], "reasoning": {"summary": "auto"}});
    let events = socket.turn(asking).await;
    let item = events[events.len() - 1]["response"]["output"][0].clone();
    assert_eq!(item["type"], "reasoning");
    assert!(kinds(&events).contains(&"reasoning_summary_text.delta".to_owned()));
    let returning = json!({"model": "gpt-5", "input": [item, {"role": "user", "content": "go"}]});
    assert_eq!(kinds(&socket.turn(returning.clone()).await)[0], "created");
    let mut other = Socket::try_open(&simulator, "/v1/responses", &[("authorization", "Bearer k2")])
        .await
        .unwrap();
    assert_eq!(
        other.turn(returning).await[0]["error"]["code"],
        "invalid_encrypted_content"
    );
}

/// [SIM-15] The ChatGPT backend's shapes.
#[tokio::test]
async fn chatgpt_shapes() {
    let simulator = simulator("").await;
    let mut socket = Socket::try_open(&simulator, "/backend-api/codex/responses", &[])
        .await
        .unwrap();
    let events = socket.turn(ask("hi")).await;
    assert_eq!(events[0]["type"], "codex.rate_limits");
    let object = &events[events.len() - 1]["response"];
    assert_eq!(object["output"], json!([]));
    assert!(object["usage"]["output_tokens"].as_u64().unwrap() > 0);
    let done = events
        .iter()
        .find(|event| event["type"] == "response.output_item.done")
        .unwrap();
    assert!(
        done["item"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("1 items")
    );
    let path = "/backend-api/codex/responses";
    assert_eq!(
        post_json(&simulator, path, &ask("hi")).await,
        (400, json!({"detail": "Stream must be set to true"}))
    );
}

/// [SIM-18] The ledger knows who came, what was sent, and who left in mid-turn; credentials are hashed in it.
#[tokio::test]
async fn the_ledger() {
    let simulator = simulator("").await;
    let headers = [("thread-id", "t-1"), ("authorization", "Bearer secret")];
    let mut socket = Socket::try_open(&simulator, "/v1/responses", &headers)
        .await
        .unwrap();
    socket
        .turn(json!({"model": "m", "input": "a", "client_metadata": {"k": "v"}}))
        .await;
    socket.send(json!({"model": "m", "input": "sim:silent"})).await;
    assert!(simulator.until(LIMIT, |ledger| ledger.creates_total == 2).await);
    drop(socket);
    assert!(simulator.until(LIMIT, |ledger| ledger.sockets_open == 0).await);
    let ledger = simulator.ledger();
    assert_eq!(ledger.conversation("t-1").websocket, 2);
    assert_eq!(ledger.creates[0].client_metadata, ["k"]);
    assert_eq!(
        ledger.creates[0].headers["authorization"],
        credential_hash("Bearer secret")
    );
    assert!(!serde_json::to_string(&ledger).unwrap().contains("secret"));
    let conclusions: Vec<_> = ledger.creates.iter().map(|create| create.conclusion).collect();
    assert_eq!(conclusions, [Conclusion::Completed, Conclusion::ClientGone]);
    assert!(matches!(
        ledger.sockets[0].end,
        Some(SocketEnd::ClientFin | SocketEnd::ClientReset)
    ));
}

/// [SIM-19] All open sockets can be ended at once, and the script replaced, from the outside.
#[tokio::test]
async fn control() {
    let simulator = simulator("").await;
    let mut socket = Socket::open(&simulator).await;
    socket.turn(ask("hi")).await;
    let close = post(&simulator, "/__sim/end", &Value::Null).await.unwrap();
    assert_eq!(close.status(), 400, "null is no way to end a socket");
    simulator.end_sockets(Ending::Close {
        code: 1012,
        reason: String::new(),
    });
    assert_eq!(socket.next().await, Got::Close(Some(1012)));

    simulator.rescript(Script::parse("[[rule]]\nbehave = \"error(status=418)\"").unwrap());
    assert_eq!(post_json(&simulator, "/v1/responses", &ask("hi")).await.0, 418);
    let (_, ledger) = call(&simulator, "GET", "/__sim/ledger", "k1").await;
    assert_eq!(
        (&ledger["creates_total"], &ledger["http_requests"]),
        (&2.into(), &1.into())
    );
    call(&simulator, "POST", "/__sim/reset", "k1").await;
    assert_eq!(simulator.look(|ledger| ledger.creates_total), 0);
    simulator.stop().await;
    assert!(matches!(socket.next().await, Got::Close(_) | Got::Gone));
}
