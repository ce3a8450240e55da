//! Clients that ask for one JSON object (row 36, SES-12).

use serde_json::Value;

use crate::client::{Answer, Ask};
use crate::way::Way;

/// What is said, without ids and sealed contents, which differ from response to response.
fn meaning(items: &[Value]) -> Vec<Value> {
    let mut items = items.to_vec();
    for item in &mut items {
        for member in ["id", "call_id", "encrypted_content"] {
            item.as_object_mut().unwrap().remove(member);
        }
    }
    items
}

fn streamed(answer: &Answer) -> Vec<Value> {
    let events = answer.events();
    let items = events
        .iter()
        .filter(|event| event.name == "response.output_item.done");
    items.map(|event| event.data["item"].clone()).collect()
}

/// [SES-12] [HTTP-8] By either transport, and from either API, a JSON client gets the response object alone, with all the output that a
/// streaming client gets, also where the terminal's own `output` is empty.
#[tokio::test(flavor = "multi_thread")]
async fn one_object_with_all_its_output() {
    let words = [
        "hello",
        "sim:chatgpt",
        "sim:reasoning sim:chatgpt",
        "sim:tools(rounds=1, parallel=3) sim:chatgpt",
        "sim:text(n=50, size=500) sim:chatgpt",
        "sim:chatgpt sim:type_last",
        "sim:chatgpt sim:pretty",
        "sim:chatgpt sim:terminal(shape=done)",
        "sim:chatgpt sim:terminal(shape=typeless)",
        "sim:telemetry(for=30ms, every=10ms) sim:chatgpt",
    ];
    for way in Way::BOTH {
        let world = way.setup().start().await;
        for words in words {
            for path in ["/v1/responses", "/backend-api/codex/responses"] {
                // Over HTTP an OpenAI upstream that leaves `output` empty has no events to fill it from.
                let path = if way == Way::Direct {
                    "/backend-api/codex/responses"
                } else {
                    path
                };
                let tools = serde_json::json!([{"type": "function", "name": "look", "parameters": {"type": "object"}}]);
                let ask = Ask::turn(format!("sim:conv=a {words}"))
                    .to(path)
                    .with("tools", tools);
                let stream = world.ask(&ask).await;
                let json = world.ask(&ask.json()).await;
                let object = json.completed();
                let output = object["output"].as_array().unwrap();
                assert_eq!(
                    meaning(output),
                    meaning(&streamed(&stream)),
                    "{way:?} {path} {words}: {json:?}"
                );
                assert!(!output.is_empty());
                assert!(object["usage"].is_object() && object["object"] == "response");
                assert!(
                    json.headers.contains_key("content-length") && json.headers.contains_key("x-request-id")
                );
            }
        }
        world.quiet().await;
    }
}

/// [SES-12] The body's `stream` alone decides, not `Accept`; without it the answer is one object.
#[tokio::test(flavor = "multi_thread")]
async fn the_body_decides() {
    for way in Way::BOTH {
        let world = way.setup().start().await;
        let ask = Ask::turn("hello").header("accept", "text/event-stream");
        let json = "application/json";
        for stream in [Value::Null, Value::Bool(false)] {
            assert_eq!(
                world.ask(&ask.clone().with("stream", stream)).await.headers["content-type"],
                json
            );
        }
        let answer = world.ask(&ask.header("accept", json)).await;
        answer.terminal();
    }
}

/// [SES-12] [INV-7] The items that are kept to fill an empty `output` have a cap; beyond it the turn ends with an error.
#[tokio::test(flavor = "multi_thread")]
async fn more_output_than_is_kept() {
    let setup = Way::Socket.setup().config("[server]\nclient_buffer = \"128KiB\"");
    let world = setup.start().await;
    let fits = world
        .ask(&Ask::turn("sim:big(size=60KiB) sim:chatgpt").json())
        .await;
    assert!(fits.completed()["output"][0].to_string().len() > 60 << 10);
    let answer = world
        .ask(&Ask::turn("sim:big(size=140KiB) sim:chatgpt").json())
        .await;
    assert_eq!(
        (answer.status, answer.error().as_str()),
        (502, "bridge_hold_overflow")
    );
    world.quiet().await;
}
