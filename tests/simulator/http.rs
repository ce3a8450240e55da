//! Turns over HTTP, and the rest of the API.

use std::time::Duration;

use responses_bridge::simulator::Conclusion;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::*;

const PATH: &str = "/v1/responses";

/// All bytes of an answer, up to the end of the connection.
async fn raw(simulator: &responses_bridge::simulator::Simulator, body: &Value) -> String {
    let mut stream = TcpStream::connect(simulator.addr()).await.unwrap();
    let body = body.to_string();
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A reset is an end too.
    _ = timeout(LIMIT, stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// [SIM-1] Streaming and not, on one kept-alive connection, with the headers that SDKs read.
#[tokio::test]
async fn sse_and_json() {
    let simulator = simulator("").await;
    let response = post(&simulator, PATH, &stream("hi")).await.unwrap();
    assert_eq!(
        response.headers()["content-type"],
        "text/event-stream; charset=utf-8"
    );
    assert!(response.headers().contains_key("x-request-id"));
    let events = sse(&response.text().await.unwrap());
    let (_, object) = post_json(&simulator, PATH, &ask("hi")).await;
    assert_eq!(text(&events[events.len() - 1]["response"]), text(&object));
    assert_eq!(simulator.ledger().conversation("-").http, 2);
}

/// [SIM-6] Errors before created are a status with headers and body; later ones are events.
#[tokio::test]
async fn errors_over_http() {
    let simulator = simulator("").await;
    let prompt = "sim:error(status=429, code=slow_down, message=wait, retry_after=7)";
    let response = post(&simulator, PATH, &stream(prompt)).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (429, &"7".parse().unwrap())
    );
    let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    let error = json!({"type": "rate_limit_error", "code": "slow_down", "message": "wait", "param": null});
    assert_eq!(body, json!({ "error": error }));

    let page = post(&simulator, PATH, &stream("sim:error(status=502, page=true)"))
        .await
        .unwrap();
    assert_eq!(
        (page.status().as_u16(), &page.headers()["content-type"]),
        (502, &"text/html".parse().unwrap())
    );
    let redirect = post(&simulator, PATH, &stream("sim:redirect")).await.unwrap();
    assert_eq!(
        (redirect.status().as_u16(), &redirect.headers()["location"]),
        (302, &"/elsewhere".parse().unwrap())
    );

    let late = post(
        &simulator,
        PATH,
        &stream("sim:error(after=1, shape=flat, code=server_error)"),
    )
    .await
    .unwrap();
    let events = sse(&late.text().await.unwrap());
    let last = &events[events.len() - 1];
    assert_eq!(
        (&last["type"], &last["code"]),
        (&"error".into(), &"server_error".into())
    );
    let (status, failed) = post_json(
        &simulator,
        PATH,
        &ask("sim:terminal(shape=failed, code=server_error)"),
    )
    .await;
    assert_eq!(
        (status, &failed["status"], &failed["error"]["code"]),
        (200, &"failed".into(), &"server_error".into())
    );
}

/// [SIM-8] Streams end without a terminal, cleanly or not, and stay open after one.
#[tokio::test]
async fn ends_of_streams() {
    let simulator = simulator("").await;
    let clean = raw(&simulator, &stream("sim:truncated(after=2)")).await;
    assert!(clean.ends_with("\r\n0\r\n\r\n") && !clean.contains("response.completed"));
    let cut = raw(&simulator, &stream("sim:cut(after=2)")).await;
    assert!(
        cut.ends_with("event: response.output_text.delta\ndata: {\"ty"),
        "{}",
        &cut[cut.len() - 80..]
    );
    let torn = raw(&simulator, &stream("sim:fin(after=2)")).await;
    assert!(torn.ends_with("\n\n\r\n") && !torn.contains("response.completed"));
    assert_eq!(raw(&simulator, &stream("sim:close")).await, "");
    assert_eq!(raw(&simulator, &ask("sim:reset(after=1)")).await, "");
    let half = raw(&simulator, &ask("sim:cut(after=1)")).await;
    assert!(half.starts_with("HTTP/1.1 200") && !half.ends_with('}'));
    let empty = raw(&simulator, &ask("sim:truncated(after=1)")).await;
    assert!(empty.ends_with("content-length: 0\r\n\r\n"), "{empty}");

    let mut open = post(&simulator, PATH, &stream("sim:left_open")).await.unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("response.completed") {
        seen.extend_from_slice(&open.chunk().await.unwrap().unwrap());
    }
    assert!(
        timeout(Duration::from_millis(150), async {
            while open.chunk().await.unwrap().is_some() {}
        })
        .await
        .is_err()
    );
}

/// [SIM-7] Silence over HTTP: no byte, or headers only.
#[tokio::test]
async fn silence_over_http() {
    let simulator = simulator("").await;
    let short = Duration::from_millis(150);
    for prompt in [stream("sim:silent"), ask("sim:silent")] {
        assert!(timeout(short, post(&simulator, PATH, &prompt)).await.is_err());
    }
    for prompt in [stream("sim:headers_only"), ask("sim:headers_only")] {
        let mut response = timeout(LIMIT, post(&simulator, PATH, &prompt))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(response.status(), 200);
        assert!(timeout(short, response.chunk()).await.is_err());
    }
    let gone = |ledger: &responses_bridge::simulator::Ledger| {
        ledger
            .creates
            .iter()
            .all(|create| create.conclusion == Conclusion::ClientGone)
    };
    assert!(simulator.until(LIMIT, gone).await, "the client has left all four");
}

/// [SIM-9] Odd forms of SSE.
#[tokio::test]
async fn odd_sse() {
    let simulator = simulator("").await;
    let plain = kinds(&sse(&post(&simulator, PATH, &stream("hi"))
        .await
        .unwrap()
        .text()
        .await
        .unwrap()));
    let body = post(
        &simulator,
        PATH,
        &stream("sim:sse(eol=crlf, bom=true, comments=true, chunk=5)"),
    )
    .await
    .unwrap();
    let body = body.text().await.unwrap();
    assert!(body.contains(": scripted comment\r\nevent: response.created\r\ndata: {"));
    assert_eq!(kinds(&sse(&body)), plain);
    let cr = post(&simulator, PATH, &stream("sim:sse(eol=cr)"))
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(!cr.contains('\n') && cr.ends_with("\r\r"));
}

/// [SIM-10] A bad create is refused before it is counted.
#[tokio::test]
async fn bad_creates() {
    let simulator = simulator("").await;
    assert_eq!(
        post_json(&simulator, PATH, &json!({"input": "x"})).await.1["error"]["param"],
        "model"
    );
    assert_eq!(post_json(&simulator, PATH, &json!([])).await.0, 400);
    let unknown = json!({"model": "m", "input": "x", "previous_response_id": "resp_x"});
    let (status, error) = post_json(&simulator, PATH, &unknown).await;
    assert_eq!(
        (status, &error["error"]["code"]),
        (400, &"previous_response_not_found".into())
    );
    assert_eq!(simulator.ledger().creates_total, 1);
}

/// [SIM-17] Stored responses belong to the account that made them.
#[tokio::test]
async fn stored_responses() {
    let simulator = simulator("").await;
    let (_, object) = post_json(&simulator, PATH, &ask("hi")).await;
    let path = format!("{PATH}/{}", object["id"].as_str().unwrap());
    assert_eq!(call(&simulator, "GET", &path, "k1").await, (200, object.clone()));
    assert_eq!(call(&simulator, "GET", &path, "k2").await.0, 404);
    let (_, items) = call(&simulator, "GET", &format!("{path}/input_items"), "k1").await;
    assert_eq!(items["data"][0]["content"][0]["text"], "hi");
    assert_eq!(
        call(&simulator, "POST", &format!("{path}/cancel"), "k1").await.0,
        400
    );
    assert_eq!(call(&simulator, "DELETE", &path, "k2").await.0, 404);
    assert_eq!(call(&simulator, "DELETE", &path, "k1").await.1["deleted"], true);
    assert_eq!(call(&simulator, "GET", &path, "k1").await.0, 404);

    let (_, unstored) = post_json(
        &simulator,
        PATH,
        &json!({"model": "m", "input": "x", "store": false}),
    )
    .await;
    assert_eq!(
        call(
            &simulator,
            "GET",
            &format!("{PATH}/{}", unstored["id"].as_str().unwrap()),
            "k1"
        )
        .await
        .0,
        404
    );
}

/// [SIM-17] A stream is resumed after a number; a background response runs on and can be cancelled.
#[tokio::test]
async fn resumed_and_background() {
    let simulator = simulator("").await;
    let events = sse(&post(&simulator, PATH, &stream("hi"))
        .await
        .unwrap()
        .text()
        .await
        .unwrap());
    let url = format!(
        "http://{}{PATH}/{}?stream=true&starting_after=8",
        simulator.addr(),
        id(&events)
    );
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let resumed = client
        .get(url)
        .header("authorization", "Bearer k1")
        .send()
        .await
        .unwrap();
    assert_eq!(sse(&resumed.text().await.unwrap()), events[9..]);

    let begin = json!({"model": "m", "background": true, "input": "sim:created_after(delay=1m)"});
    let (_, begun) = post_json(&simulator, PATH, &begin).await;
    assert_eq!(begun["status"], "in_progress");
    let path = format!("{PATH}/{}", begun["id"].as_str().unwrap());
    assert_eq!(
        call(&simulator, "POST", &format!("{path}/cancel"), "k1").await.1["status"],
        "cancelled"
    );
    assert_eq!(
        call(&simulator, "GET", &path, "k1").await.1["status"],
        "cancelled"
    );
    let (_, quick) = post_json(
        &simulator,
        PATH,
        &json!({"model": "m", "background": true, "input": "x"}),
    )
    .await;
    assert_eq!(quick["status"], "completed");
}

/// [SIM-17] Other paths are echoed, so that what was passed through can be compared; no header value is told.
#[tokio::test]
async fn other_paths() {
    let simulator = simulator("").await;
    let (status, seen) = post_json(&simulator, "/v1/chat/completions?a=b", &json!({"x": 1})).await;
    assert_eq!(status, 200);
    assert_eq!(
        (&seen["method"], &seen["query"], &seen["body_length"]),
        (&"POST".into(), &"a=b".into(), &7.into())
    );
    assert!(
        seen["headers"]
            .as_array()
            .unwrap()
            .contains(&"authorization".into())
    );
    assert!(!seen.to_string().contains("Bearer"));
    assert_eq!(
        call(&simulator, "GET", "/v1/models", "k1").await.1["data"][0]["object"],
        "model"
    );
    let (_, compacted) = post_json(&simulator, "/v1/responses/compact", &ask("hi")).await;
    assert_eq!(compacted["output"][1]["type"], "compaction");
    let (_, counted) = post_json(&simulator, "/v1/responses/input_tokens", &ask("hi")).await;
    assert!(counted["input_tokens"].as_u64().unwrap() > 0);
}
