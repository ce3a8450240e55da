//! Direct HTTP against upstreams of a few lines, and the paths that are no turns (HTTP-1 to HTTP-21).

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::client::{Answer, Ask};
use crate::peer;
use crate::way::Way;
use crate::world::Setup;

/// Answers every request with these bytes, and hands out what was asked.
async fn serve(listener: TcpListener, answer: Vec<u8>, asked: tokio::sync::mpsc::Sender<Vec<u8>>) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.windows(4).any(|window| window == b"\r\n\r\n") || !request.ends_with(b"}") {
            stream.read_buf(&mut request).await.unwrap();
        }
        // The test may be over, and the bridge may have heard enough.
        let _ = asked.try_send(request);
        let _ = stream.write_all(&answer).await;
    }
}

/// What the bridge makes of an upstream's answer.
async fn made_of(kind: &str, body: &str, ask: &Ask) -> Answer {
    let listener = peer::listen().await;
    let world = peer::setup(&listener, Way::Direct).start().await;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
    let (asked, _) = tokio::sync::mpsc::channel(16);
    let peer = tokio::spawn(serve(listener, (head + body).into_bytes(), asked));
    let answer = world.ask(ask).await;
    world.quiet().await;
    peer.abort();
    answer
}

/// [HTTP-1] [INV-8] The client's body goes as it came, byte for byte, with the per-turn headers that its `client_metadata` names.
#[tokio::test(flavor = "multi_thread")]
async fn the_body_as_it_came() {
    let listener = peer::listen().await;
    let world = peer::setup(&listener, Way::Direct).start().await;
    let (asked, mut requests) = tokio::sync::mpsc::channel(16);
    let answer = "HTTP/1.1 503 Full\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let peer = tokio::spawn(serve(listener, answer.into(), asked));
    let ask = Ask::turn("naïve 東京 🙂 \"quoted\" \\ \u{0}")
        .with("temperature", 0.1)
        .with(
            "some_new_field",
            json!({"deep": [1, 2.50, null, {"type": "response.create"}]}),
        )
        .with("previous_response_id", "resp_1")
        .with("store", false);
    for stream in [true, false] {
        let ask = ask.clone().with("stream", stream);
        assert_eq!(world.ask(&ask).await.status, 503);
        let request = requests.recv().await.unwrap();
        let start = request
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
            .unwrap()
            + 4;
        assert_eq!(String::from_utf8_lossy(&request[start..]), ask.body_text());
        let head = String::from_utf8_lossy(&request[..start]).to_ascii_lowercase();
        assert!(head.starts_with("post /v1/responses http/1.1\r\n"), "{head}");
        let accept = if stream {
            "text/event-stream"
        } else {
            "application/json"
        };
        assert!(head.contains(&format!("\r\naccept: {accept}\r\n")), "{head}");
        assert!(head.contains("\r\nauthorization: bearer sk-one\r\n"), "{head}");
        assert!(head.contains("\r\naccept-encoding: identity\r\n"), "{head}");
    }
    peer.abort();
}

/// [HTTP-2] [HTTP-6] Blocks are relayed whole: an unfinished one is dropped, and so is `[DONE]`; what then lacks a terminal is truncated.
#[tokio::test(flavor = "multi_thread")]
async fn unfinished_blocks() {
    let created = r#"data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1"}}"#;
    let completed = r#"data: {"type":"response.completed","response":{"id":"resp_1","status":"completed"}}"#;
    let ask = Ask::turn("hello");
    let done = made_of(
        "text/event-stream",
        &format!("{created}\n\n{completed}\n\ndata: [DONE]\n\n"),
        &ask,
    )
    .await;
    assert_eq!(done.events().len(), 2);
    done.completed();
    for cut in ["", "\n"] {
        let body = format!("{created}\n\n{completed}{cut}");
        let answer = made_of("text/event-stream", &body, &ask).await;
        assert_eq!(answer.failure(), "bridge_truncated");
        assert_eq!(answer.events().len(), 2);
    }
    let body = format!("data: [DONE]\n\n{created}\n\ndata: [DONE]\n\n");
    assert_eq!(
        made_of("text/event-stream", &body, &ask).await.failure(),
        "bridge_truncated"
    );
    for nothing in [
        "",
        ": comment\n\n",
        "data: [DONE]\n\n",
        "data:\n\n",
        "event: response.created\n\n",
    ] {
        let answer = made_of("text/event-stream", nothing, &ask).await;
        assert_eq!(answer.status, 502, "{nothing:?}");
        answer.error();
    }
}

/// [HTTP-7] One object although events were asked for, and other answers in disguise.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_another_kind() {
    let object = |status: &str, more: Value| {
        let mut object = json!({"id": "resp_1", "object": "response", "status": status, "output": []});
        object
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        object.to_string()
    };
    let completed = object("completed", json!({}));
    let failed = object(
        "failed",
        json!({"error": {"code": "server_is_overloaded", "message": "no"}}),
    );
    let error =
        json!({"error": {"code": "rate_limit_exceeded", "message": "no", "type": "requests"}}).to_string();
    let ask = Ask::turn("hello");
    for stream in [true, false] {
        let ask = ask.clone().with("stream", stream);
        let answer = made_of("application/json", &completed, &ask).await;
        assert_eq!(answer.completed()["id"], "resp_1");
        let answer = made_of("application/json; charset=utf-8", &failed, &ask).await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (503, "server_is_overloaded")
        );
        let answer = made_of("application/json", &error, &ask).await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (429, "rate_limit_exceeded")
        );
        for nonsense in ["", "nonsense", "[]", "{\"id\":", "<html></html>"] {
            for kind in ["application/json", "text/html"] {
                let answer = made_of(kind, nonsense, &ask).await;
                assert_eq!(answer.status, 502, "{kind} {nonsense:?}: {answer:?}");
                answer.error();
            }
        }
    }
    let queued = object("queued", json!({"background": true}));
    let answer = made_of("application/json", &queued, &ask.json()).await;
    assert_eq!(
        (answer.status, answer.json()["status"].as_str()),
        (200, Some("queued"))
    );
}

/// [HTTP-21] Other paths pass through to the one account that can serve them: method, path, query and body untouched.
#[tokio::test(flavor = "multi_thread")]
async fn other_paths() {
    let world = Setup::new().start().await;
    let post = Ask::turn("x".repeat(200_000))
        .to("/v1/embeddings?a=b%20c&a=d")
        .header("x-forwarded-for", "10.0.0.1")
        .header("x-custom", "kept");
    let echo = world.ask(&post).await.json();
    assert_eq!(
        (&echo["method"], &echo["path"]),
        (&json!("POST"), &json!("/v1/embeddings"))
    );
    assert_eq!(echo["query"], "a=b%20c&a=d");
    let hash = blake3::hash(post.body_text().as_bytes()).to_hex();
    assert_eq!(echo["body_hash"], hash.as_str());
    let names: Vec<_> = echo["headers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"authorization") && names.contains(&"x-custom"),
        "{names:?}"
    );
    assert!(!names.contains(&"x-forwarded-for"), "{names:?}");
    let models = world.ask(&Ask::bare("GET", "/v1/models")).await;
    assert_eq!((models.status, &models.json()["object"]), (200, &json!("list")));
    let usage = world
        .ask(&Ask::bare("GET", "/backend-api/wham/usage"))
        .await
        .json();
    assert_eq!(usage["path"], "/backend-api/wham/usage");
    let input = world
        .ask(&Ask::turn("hello").to("/v1/responses/input_tokens"))
        .await
        .json();
    assert_eq!(input["object"], "response.input_tokens");
    let compact = world
        .ask(&Ask::turn("hello").to("/v1/responses/compact"))
        .await
        .json();
    assert_eq!(compact["object"], "response.compaction");
    world.quiet().await;
}

/// [HTTP-21] Where several accounts could serve a path, or none, nothing is asked upstream.
#[tokio::test(flavor = "multi_thread")]
async fn no_single_account() {
    let provider = |name: &str| {
        format!(
            "[providers.{name}]\nbase_url = \"{{openai}}\"\n\
             [[providers.{name}.accounts]]\nname = \"main\"\ncredential = \"client\"\n"
        )
    };
    let world = Setup::new()
        .config(&(provider("a") + &provider("b")))
        .start()
        .await;
    for path in ["/v1/embeddings", "/v1/models", "/backend-api/wham/usage"] {
        let answer = world.ask(&Ask::bare("GET", path)).await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (404, "bridge_no_account"),
            "{path}"
        );
    }
    assert_eq!(world.upstream.look(|ledger| ledger.http_requests), 0);
}
