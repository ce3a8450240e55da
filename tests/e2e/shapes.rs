//! Every shape of an error and of a terminal, before and after `response.created`, on both transports (rows 18 and 38).

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::client::Ask;
use crate::peer;
use crate::way::Way;

const SHAPES: [&str; 11] = [
    "nested",
    "status_code",
    "no_status",
    "no_type",
    "null_code",
    "flat",
    "response_error",
    "typeless_error",
    "detail",
    "headers_top",
    "headers_inner",
];

/// [SES-9] [SES-20] Row 18: a rejection is the first thing that comes, or follows telemetry. Whatever its shape, the client gets a
/// real status, upstream's own code and message, and when to come again.
#[tokio::test(flavor = "multi_thread")]
async fn errors_before_created() {
    for way in Way::BOTH {
        let world = way.setup().start().await;
        for shape in SHAPES {
            for word in ["error", "telemetry_error"] {
                // Over HTTP telemetry commits the upstream's own status: what follows is a frame there, too.
                for stream in [true, false] {
                    let words =
                        format!("sim:{word}(status=429, shape={shape}, message=too fast, retry_after=7)");
                    let answer = world.ask(&Ask::turn(words).with("stream", stream)).await;
                    let code = answer.error();
                    let context = format!("{way:?} {word} {shape} {stream}: {}", answer.text());
                    assert_eq!(answer.json()["error"]["message"], "too fast", "{context}");
                    let as_frame = way == Way::Socket || (word == "telemetry_error" && stream);
                    match (shape, as_frame) {
                        // Nothing but the words is in it.
                        ("detail", true) => assert_eq!(answer.status, 502, "{context}"),
                        _ => assert_eq!(answer.status, 429, "{context}"),
                    }
                    match shape {
                        "null_code" | "detail" => assert_eq!(code, "", "{context}"),
                        _ => assert_eq!(code, "rate_limit_exceeded", "{context}"),
                    }
                    if !as_frame || shape.starts_with("headers") {
                        assert_eq!(answer.headers["retry-after"], "7", "{context}");
                        assert_eq!(answer.headers["x-ratelimit-remaining-requests"], "0", "{context}");
                    }
                }
            }
        }
        assert_eq!(world.events("session_retired").len(), 0);
        world.quiet().await;
    }
}

/// [WIRE-25] When to come again reaches the client over both transports: from the headers, which come along, or else from what the
/// message says.
#[tokio::test(flavor = "multi_thread")]
async fn when_to_come_again() {
    for way in Way::BOTH {
        let world = way.setup().start().await;
        let answer = world
            .ask(&Ask::turn("sim:error(status=429, retry_after=30)"))
            .await;
        assert_eq!(answer.status, 429, "{way:?}");
        assert_eq!(answer.headers["retry-after"], "30", "{way:?}");
        assert_eq!(answer.headers["x-ratelimit-remaining-requests"], "0", "{way:?}");
        for (code, seconds) in [("rate_limit_exceeded", "12"), ("slow_down", "5")] {
            let words = format!(
                "sim:error(status=429, shape=nested, code={code}, message=Please try again in 11.054s.)"
            );
            let answer = world.ask(&Ask::turn(words)).await;
            assert_eq!(answer.headers["retry-after"], seconds, "{way:?} {code}");
        }
    }
}

/// [SES-9] [SES-20] What a retry may cure is never a 400, whatever status the upstream wrote; what it cannot cure stays one.
#[tokio::test(flavor = "multi_thread")]
async fn never_400_for_what_a_retry_cures() {
    let codes = [
        ("rate_limit_exceeded", 429),
        ("usage_limit_reached", 429),
        ("insufficient_quota", 429),
        ("slow_down", 429),
        ("server_is_overloaded", 503),
        ("server_error", 500),
        ("context_length_exceeded", 400),
        ("invalid_prompt", 400),
    ];
    for way in Way::BOTH {
        let world = way.setup().start().await;
        for (code, status) in codes {
            for shape in ["nested", "no_status", "flat"] {
                let words = format!("sim:error(status=400, code={code}, type={code}, shape={shape})");
                let answer = world.ask(&Ask::turn(words)).await;
                assert_eq!(
                    (answer.status, answer.error().as_str()),
                    (status, code),
                    "{way:?} {shape}"
                );
            }
        }
    }
}

/// [SES-10] [INV-2] An error frame after `response.created` reaches a streaming client as `response.failed`, with the same code and
/// message; a JSON client as the matching status.
#[tokio::test(flavor = "multi_thread")]
async fn errors_after_created() {
    for way in Way::BOTH {
        let world = way.setup().start().await;
        for shape in SHAPES {
            for after in [0, 2, 99] {
                let words = format!("sim:error(status=429, shape={shape}, message=too fast, after={after})");
                let answer = world.ask(&Ask::turn(&*words)).await;
                let code = answer.failure();
                let context = format!("{way:?} {shape} {after}: {}", answer.text());
                match shape {
                    "null_code" => assert_eq!(code, "rate_limit_error", "{context}"),
                    "detail" => assert_eq!(code, "unknown", "{context}"),
                    _ => assert_eq!(code, "rate_limit_exceeded", "{context}"),
                }
                let terminal = answer.terminal();
                assert_eq!(
                    terminal.data["response"]["error"]["message"], "too fast",
                    "{context}"
                );
                assert_eq!(terminal.data["response"]["status"], "failed", "{context}");
                let json = world.ask(&Ask::turn(words).json()).await;
                let expected = if shape == "detail" && way == Way::Socket {
                    502
                } else {
                    429
                };
                assert_eq!(json.status, expected, "{context}");
                assert_eq!(json.json()["error"]["message"], "too fast", "{context}");
                json.error();
            }
        }
        world.quiet().await;
    }
}

/// [SES-7] [SES-10] Row 38: once `commit_after` has passed the status line is gone: a rejection is `response.failed` then, after a
/// `response.created` of the bridge's own, and telemetry that was kept is not delivered.
#[tokio::test(flavor = "multi_thread")]
async fn errors_after_commit() {
    for (way, after) in Way::BOTH
        .into_iter()
        .flat_map(|way| [(way, "100ms"), (way, "0s")])
    {
        let world = way
            .setup()
            .config(&format!("[server]\ncommit_after = \"{after}\""))
            .start()
            .await;
        let before = "sim:telemetry(for=400ms, every=50ms)";
        let turn = async |(words, code): (&str, &str)| {
            let answer = world.ask(&Ask::turn(format!("{before} {words}"))).await;
            assert_eq!(answer.failure(), code, "{way:?} {words}");
            let events = answer.events();
            assert_eq!(events.len(), 2, "created and failed alone: {}", answer.text());
            assert!(answer.comments() >= 1);
            let id = events[0].data["response"]["id"].as_str().unwrap();
            assert!(id.starts_with("resp_bridge_"), "{id}");
            assert_eq!(events[0].data["response"]["model"], "gpt-5");
            assert_eq!(events[1].data["sequence_number"], 1);
            // Nobody made it: it is unknown upstream, too, and the client is told so.
            let next = world.ask(&Ask::turn("next").after(id)).await;
            let code = if next.status == 200 {
                next.failure()
            } else {
                next.error()
            };
            assert_eq!(code, "previous_response_not_found");
        };
        join_all(
            [
                ("sim:error(status=429)", "rate_limit_exceeded"),
                (
                    "sim:error(status=400, code=context_length_exceeded)",
                    "context_length_exceeded",
                ),
                ("sim:close", "bridge_upstream_closed"),
                ("sim:reset", "bridge_upstream_closed"),
            ]
            .map(turn),
        )
        .await;
        world.quiet().await;
    }
}

/// [SES-13] [SES-12] Terminals of every shape end a streamed turn with a documented event, and a JSON one with the object or
/// with the failure's status.
#[tokio::test(flavor = "multi_thread")]
async fn terminals() {
    let shapes = [
        ("completed", "response.completed", "completed"),
        ("done", "response.completed", "completed"),
        ("typeless", "response.completed", "completed"),
        ("incomplete", "response.incomplete", "incomplete"),
        ("failed", "response.failed", "failed"),
        ("incomplete_code", "response.incomplete", "incomplete"),
    ];
    for way in Way::BOTH {
        let world = way.setup().start().await;
        for (shape, event, status) in shapes {
            for form in ["", "sim:type_last", "sim:pretty", "sim:chatgpt"] {
                let words =
                    format!("sim:terminal(shape={shape}, code=rate_limit_exceeded, message=too fast) {form}");
                let answer = world.ask(&Ask::turn(&*words)).await;
                let terminal = answer.terminal();
                let context = format!("{way:?} {shape} {form}: {}", answer.text());
                assert_eq!(terminal.data["response"]["status"], status, "{context}");
                assert_eq!(
                    (&*terminal.name, &terminal.data["type"]),
                    (event, &json!(event)),
                    "{context}"
                );
                assert!(terminal.data["response"]["usage"].is_object(), "{context}");
                let json = world.ask(&Ask::turn(words).json()).await;
                match shape {
                    "failed" | "incomplete_code" => {
                        assert_eq!(
                            (json.status, json.error().as_str()),
                            (429, "rate_limit_exceeded"),
                            "{context}"
                        );
                    }
                    _ => {
                        assert_eq!(json.status, 200, "{context}");
                        assert_eq!(json.json()["status"], status, "{context}");
                        // Asked for one object, such an upstream has no events to fill it from.
                        let empty = way == Way::Direct && form == "sim:chatgpt";
                        let items = json.json()["output"].as_array().unwrap().len();
                        assert_eq!(items, usize::from(!empty), "{context}");
                    }
                }
            }
        }
        world.quiet().await;
    }
}

/// [SES-9] [SES-13] [SES-19] First frames that no simulator sends: terminals without a `response.created`, and what is no event at all.
#[tokio::test(flavor = "multi_thread")]
async fn first_frames() {
    let response = |status: &str, more: Value| {
        let mut response =
            json!({"id": "resp_1", "object": "response", "status": status, "output": [], "usage": null});
        response
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        response
    };
    let failed = |code: &str| response("failed", json!({"error": {"code": code, "message": "no"}}));
    let rejected = [
        (
            json!({"type": "response.failed", "response": failed("server_is_overloaded")}),
            503,
            "server_is_overloaded",
        ),
        (
            json!({"type": "response.failed", "response": failed("rate_limit_exceeded")}),
            429,
            "rate_limit_exceeded",
        ),
        (
            json!({"type": "response.done", "response": failed("rate_limit_exceeded")}),
            429,
            "rate_limit_exceeded",
        ),
        (failed("rate_limit_exceeded"), 429, "rate_limit_exceeded"),
        (
            json!({"type": "response.incomplete", "response":
                response("incomplete", json!({"incomplete_details": {"reason": "server_is_overloaded"}}))}),
            503,
            "server_is_overloaded",
        ),
        (json!({"type": "error"}), 502, ""),
        (json!({"type": "error", "error": null}), 502, ""),
        (
            json!({"type": "error", "status": "429", "error": {"message": "no"}}),
            429,
            "",
        ),
        (json!({"error": "gone wrong"}), 502, ""),
        (json!([1, 2]), 502, "bridge_upstream_protocol"),
        (json!("text"), 502, "bridge_upstream_protocol"),
    ];
    for (frame, status, code) in rejected {
        for stream in [true, false] {
            let listener = peer::listen().await;
            let world = peer::setup(&listener, Way::Socket).start().await;
            let peer = tokio::spawn(peer::answer(listener, vec![Message::text(frame.to_string())]));
            let answer = world.ask(&Ask::turn("hello").with("stream", stream)).await;
            assert_eq!(
                (answer.status, answer.error().as_str()),
                (status, code),
                "{frame}"
            );
            world.quiet().await;
            peer.abort();
        }
    }
    let nonsense = [
        Message::text("{\"type\":"),
        Message::text(""),
        Message::binary(vec![1, 2, 3]),
    ];
    for frame in nonsense {
        let listener = peer::listen().await;
        let world = peer::setup(&listener, Way::Socket).start().await;
        let peer = tokio::spawn(peer::answer(listener, vec![frame.clone()]));
        let answer = world.ask(&Ask::turn("hello")).await;
        assert_eq!(answer.status, 502, "{frame:?}");
        answer.error();
        world.quiet().await;
        peer.abort();
    }
    let whole = response("completed", json!({"output": [{"type": "message"}]}));
    for frame in [
        whole.clone(),
        json!({"type": "response.completed", "response": whole}),
    ] {
        let listener = peer::listen().await;
        let world = peer::setup(&listener, Way::Socket).start().await;
        let peer = tokio::spawn(peer::answer(listener, vec![Message::text(frame.to_string())]));
        assert_eq!(world.ask(&Ask::turn("hello").thread("a")).await.id(), "resp_1");
        assert_eq!(
            world.ask(&Ask::turn("hello").thread("b").json()).await.json(),
            whole
        );
        world.quiet().await;
        peer.abort();
    }
}
