//! Bad input, from `fixtures/requests/bad.json`.

use serde::Deserialize;

use crate::world::{GOOD, Setup, bare, post};

#[derive(Deserialize)]
struct Case {
    name: String,
    /// The body, or `repeat` times its parts around it.
    body: String,
    #[serde(default)]
    open: String,
    #[serde(default)]
    close: String,
    #[serde(default)]
    repeat: usize,
    /// Bytes put behind the body, in hex.
    #[serde(default)]
    hex: String,
    param: Option<String>,
}

impl Case {
    fn bytes(&self) -> Vec<u8> {
        let (open, close) = (self.open.repeat(self.repeat), self.close.repeat(self.repeat));
        let mut bytes = self
            .body
            .replacen("@@", &format!("{open}{close}"), 1)
            .into_bytes();
        let hex = self
            .hex
            .as_bytes()
            .chunks(2)
            .map(|pair| std::str::from_utf8(pair).unwrap());
        bytes.extend(hex.map(|pair| u8::from_str_radix(pair, 16).unwrap()));
        bytes
    }
}

/// [EDGE-50] a bad body is a 400 in the API's shape that names the field; nothing of it is echoed, nothing reaches the
/// bridge, and the connection goes on.
#[tokio::test]
async fn bad_bodies_are_refused() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../../fixtures/requests/bad.json")).unwrap();
    assert!(cases.len() >= 25);
    let world = Setup::default().start();
    let mut client = world.connect().await;
    for case in cases {
        for path in ["/v1/responses", "/backend-api/codex/responses"] {
            client
                .send(post(path, "content-type: text/plain\r\n", case.bytes()))
                .await;
            let answer = client.answer().await;
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (400, "bridge_invalid_body"),
                "{}",
                case.name
            );
            assert_eq!(
                answer.json()["error"]["type"],
                "invalid_request_error",
                "{}",
                case.name
            );
            assert_eq!(
                answer.json()["error"]["param"].as_str(),
                case.param.as_deref(),
                "{}",
                case.name
            );
            let text = String::from_utf8(answer.body).unwrap();
            assert!(!text.contains("hush"), "{} is echoed: {text}", case.name);
        }
    }
    assert!(world.bridge.seen().is_empty());
    assert_eq!(world.budget.used(), 0);
    client
        .send(post("/v1/responses", "content-type: text/plain\r\n", GOOD))
        .await;
    assert_eq!(
        client.answer().await.status,
        200,
        "agents vary in their content types"
    );
}

/// [EDGE-51] a body that ends early is no request: cut by Content-Length, or in the middle of a chunk.
#[tokio::test]
async fn truncated_bodies_reach_nobody() {
    let world = Setup::default().start();
    for request in [
        bare("POST", "/v1/responses", "content-length: 100\r\n") + GOOD,
        bare("POST", "/v1/responses", "transfer-encoding: chunked\r\n") + "ff\r\n" + GOOD,
        bare("POST", "/v1/responses", "transfer-encoding: chunked\r\n") + "2c\r\n" + GOOD + "\r\n",
    ] {
        let mut client = world.connect().await;
        client.send(request).await;
        tokio::io::AsyncWriteExt::shutdown(&mut client.stream)
            .await
            .unwrap();
        let said = client.rest().await;
        assert!(said.is_empty() || said.contains("\"bridge_body_cut\""), "{said}");
        let last = world
            .lines
            .lock()
            .unwrap()
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned();
        assert!(last.contains(r#""reason":"body_cut""#), "{last}");
    }
    let nonsense = bare("POST", "/v1/responses", "transfer-encoding: chunked\r\n") + "zz\r\n" + GOOD;
    assert_eq!(world.ask(nonsense).await.code(), "bridge_invalid_body");
    assert!(world.bridge.seen().is_empty());
    assert_eq!(world.budget.used(), 0);
}

/// [EDGE-52] a request whose length can be read in two ways is refused, so that no second request hides in its body.
#[tokio::test]
async fn ambiguous_lengths_are_refused() {
    let world = Setup::default().start();
    for lengths in [
        "content-length: 5\r\ncontent-length: 6\r\n",
        "content-length: +5\r\n",
        "content-length: 0x5\r\n",
        "content-length: 99999999999999999999999\r\n",
        "transfer-encoding: gzip\r\n",
        "transfer-encoding: chunked, gzip\r\n",
    ] {
        let mut client = world.connect().await;
        client.send(bare("POST", "/v1/responses", lengths) + "{}").await;
        let answer = client.answer().await;
        assert_eq!(answer.status, 400, "{lengths}");
        assert!(client.closed().await, "{lengths}");
    }
    assert!(world.bridge.seen().is_empty());
}
