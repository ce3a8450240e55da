//! Clients for the tests of the simulator.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use responses_bridge::simulator::{Options, Script, Simulator};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};

/// Nothing in these tests takes longer, on a machine with other things to do.
pub const LIMIT: Duration = Duration::from_secs(20);

/// A simulator with a script.
pub async fn simulator(script: &str) -> Simulator {
    let script = Script::parse(script).unwrap();
    Simulator::start(Options {
        script,
        ..Options::default()
    })
    .await
    .unwrap()
}

/// A socket.
pub struct Socket(pub WebSocketStream<TcpStream>);

/// What a socket brings.
#[derive(Debug, PartialEq)]
pub enum Got {
    Event(Value),
    Ping,
    Pong,
    Close(Option<u16>),
    /// The stream ended, or was reset, without a close frame.
    Gone,
}

impl Socket {
    pub async fn open(simulator: &Simulator) -> Socket {
        Socket::try_open(simulator, "/v1/responses", &[]).await.unwrap()
    }

    pub async fn try_open(
        simulator: &Simulator,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Socket, Error> {
        let stream = TcpStream::connect(simulator.addr()).await?;
        let mut request = format!("ws://{}{path}", simulator.addr()).into_client_request()?;
        request
            .headers_mut()
            .insert("authorization", "Bearer k1".parse().unwrap());
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let (socket, _) = timeout(LIMIT, tokio_tungstenite::client_async(request, stream))
            .await
            .unwrap()?;
        Ok(Socket(socket))
    }

    pub async fn send(&mut self, body: Value) {
        let mut body = body;
        body["type"] = "response.create".into();
        self.0.send(Message::text(body.to_string())).await.unwrap();
    }

    /// The next frame; tungstenite puts fragments together.
    pub async fn next(&mut self) -> Got {
        match timeout(LIMIT, self.0.next()).await.expect("nothing came") {
            Some(Ok(Message::Text(text))) => Got::Event(serde_json::from_str(&text).unwrap()),
            Some(Ok(Message::Ping(_))) => Got::Ping,
            Some(Ok(Message::Pong(_))) => Got::Pong,
            Some(Ok(Message::Close(frame))) => Got::Close(frame.map(|frame| frame.code.into())),
            Some(Ok(other)) => panic!("{other:?}"),
            Some(Err(_)) | None => Got::Gone,
        }
    }

    pub async fn event(&mut self) -> Value {
        loop {
            match self.next().await {
                Got::Event(event) => return event,
                Got::Ping => {}
                other => panic!("an event was expected: {other:?}"),
            }
        }
    }

    /// All events of a turn.
    pub async fn turn(&mut self, body: Value) -> Vec<Value> {
        self.send(body).await;
        let mut events = vec![self.event().await];
        while !is_terminal(&events[events.len() - 1]) {
            events.push(self.event().await);
        }
        events
    }

    /// The events up to the end of the socket, and the end.
    pub async fn until_the_end(&mut self) -> (Vec<String>, Got) {
        let mut kinds = Vec::new();
        loop {
            match self.next().await {
                Got::Event(event) => kinds.push(kind(&event)),
                Got::Ping | Got::Pong => {}
                end => return (kinds, end),
            }
        }
    }

    /// Nothing but pongs for that long.
    pub async fn is_quiet(&mut self, time: Duration) -> bool {
        timeout(time, async { while matches!(self.next().await, Got::Pong) {} })
            .await
            .is_err()
    }
}

pub fn is_terminal(event: &Value) -> bool {
    let ends = [
        "response.completed",
        "response.failed",
        "response.incomplete",
        "response.done",
        "error",
        "",
    ];
    ends.contains(&kind(event).as_str())
}

pub fn kind(event: &Value) -> String {
    event["type"].as_str().unwrap_or_default().to_owned()
}

pub fn kinds(events: &[Value]) -> Vec<String> {
    events
        .iter()
        .map(|event| kind(event).trim_start_matches("response.").to_owned())
        .collect()
}

/// The id of the response in the last event.
pub fn id(events: &[Value]) -> String {
    events[events.len() - 1]["response"]["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// The text in a response object.
pub fn text(object: &Value) -> String {
    let output = object["output"].as_array().unwrap();
    let message = output.iter().find(|item| item["type"] == "message").unwrap();
    message["content"][0]["text"].as_str().unwrap().to_owned()
}

pub fn ask(prompt: &str) -> Value {
    json!({"model": "gpt-5", "input": prompt})
}

pub fn stream(prompt: &str) -> Value {
    json!({"model": "gpt-5", "input": prompt, "stream": true})
}

/// A POST with key `k1`.
pub async fn post(simulator: &Simulator, path: &str, body: &Value) -> reqwest::Result<reqwest::Response> {
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(LIMIT);
    let request = client.build()?.post(format!("http://{}{path}", simulator.addr()));
    request
        .header("authorization", "Bearer k1")
        .body(body.to_string())
        .send()
        .await
}

/// The JSON answer of a POST, with its status.
pub async fn post_json(simulator: &Simulator, path: &str, body: &Value) -> (u16, Value) {
    let response = post(simulator, path, body).await.unwrap();
    (
        response.status().as_u16(),
        serde_json::from_str(&response.text().await.unwrap()).unwrap(),
    )
}

/// Another method, with a key.
pub async fn call(simulator: &Simulator, method: &str, path: &str, key: &str) -> (u16, Value) {
    let method = method.parse().unwrap();
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(LIMIT)
        .build()
        .unwrap();
    let request = client.request(method, format!("http://{}{path}", simulator.addr()));
    let response = request
        .header("authorization", format!("Bearer {key}"))
        .send()
        .await
        .unwrap();
    (
        response.status().as_u16(),
        serde_json::from_str(&response.text().await.unwrap()).unwrap(),
    )
}

/// The events of an SSE body.
pub fn sse(body: &str) -> Vec<Value> {
    let lines = body.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.map(|data| serde_json::from_str(data).unwrap()).collect()
}
