//! What several rooms use.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::{Ask, MOMENT, Reply};
use crate::world::World;

/// The simulator as an upstream that has no WebSocket.
pub const HTTP_ONLY: &str = r#"
[providers.openai]
base_url = "{openai}"
transport = "http"
[[providers.openai.accounts]]
name = "main"
credential = "client"
"#;

/// A bridge before each of the two transports.
pub async fn both_transports(config: &str) -> [World; 2] {
    use crate::world::Setup;
    [
        Setup::new().config(config).start().await,
        Setup::new().config(config).config(HTTP_ONLY).start().await,
    ]
}

/// A turn that has been accepted and goes on until it is read to its end or dropped; and its response's id.
pub async fn under_way(world: &World, ask: &Ask) -> (Reply, String) {
    let mut reply = world.open(ask).await;
    let created = reply.until("response.created").await;
    let id = created.data["response"]["id"].as_str().unwrap().to_owned();
    (reply, id)
}

/// A user's message, as agents send it.
pub fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

/// The value of one metric: the sum over all label sets that contain `labels`.
pub async fn metric(world: &World, name: &str, labels: &str) -> f64 {
    let answer = world.ask(&Ask::bare("GET", "/metrics")).await;
    let of_name = |line: &&str| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['{', ' ']))
    };
    let lines: Vec<_> = answer.text().lines().filter(of_name).collect();
    assert!(!lines.is_empty(), "no metric is called {name}");
    let values = lines.iter().filter(|line| line.contains(labels));
    values
        .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
        .sum()
}

/// Waits until a metric has a value.
pub async fn metric_is(world: &World, name: &str, labels: &str, wanted: f64) {
    let until = Instant::now() + MOMENT;
    loop {
        let is = metric(world, name, labels).await;
        if is == wanted {
            return;
        }
        assert!(
            Instant::now() < until,
            "{name} {labels} stays at {is}, not {wanted}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Posts a body as it is, with these headers beside the usual ones, and gives status and body of the answer. For what
/// [`Ask`] cannot say.
pub async fn post(world: &World, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, Value) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(world.address).await.unwrap();
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n",
        body.len()
    );
    if !headers.iter().any(|(name, _)| *name == "authorization") {
        head += "authorization: Bearer sk-one\r\n";
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all((head + "\r\n").as_bytes()).await.unwrap();
    // Refused early, the bridge may have closed already; its answer is what the test looks at.
    let _ = stream.write_all(body).await;
    let mut answer = Vec::new();
    tokio::time::timeout(MOMENT, stream.read_to_end(&mut answer))
        .await
        .unwrap()
        .unwrap();
    let text = String::from_utf8(answer).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (
        head[9..12].parse().unwrap(),
        serde_json::from_str(body).unwrap_or_else(|_| panic!("no JSON: {text}")),
    )
}
