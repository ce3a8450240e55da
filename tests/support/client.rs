//! A client that speaks HTTP by hand, so that nothing is smoothed over: it shows every byte's place in the answer.
#![allow(dead_code, reason = "each test crate uses a part of it")]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// What every wait of these tests is bounded by. Generous: the machine may be busy with other tests.
pub const MOMENT: Duration = Duration::from_secs(15);

/// A request to be made.
#[derive(Clone, Debug)]
pub struct Ask {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Value>,
    narrow: bool,
}

impl Ask {
    /// A streamed create with this prompt. `sim:` words in it tell the simulated upstream what to do.
    pub fn turn(prompt: impl Into<String>) -> Ask {
        Ask {
            method: "POST",
            path: "/v1/responses".into(),
            headers: vec![("authorization".into(), "Bearer sk-one".into())],
            body: Some(json!({"model": "gpt-5", "input": prompt.into(), "stream": true})),
            narrow: false,
        }
    }

    /// A request without a body.
    pub fn bare(method: &'static str, path: impl Into<String>) -> Ask {
        Ask {
            method,
            path: path.into(),
            body: None,
            ..Ask::turn("")
        }
    }

    /// Asks for one JSON object instead of a stream.
    pub fn json(self) -> Ask {
        self.with("stream", false)
    }

    /// The conversation, as Codex names it.
    pub fn thread(self, id: &str) -> Ask {
        self.header("thread-id", id)
    }

    /// Another credential.
    pub fn bearer(self, token: &str) -> Ask {
        self.header("authorization", &format!("Bearer {token}"))
    }

    /// Sets a header.
    pub fn header(mut self, name: &str, value: &str) -> Ask {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Without a header.
    pub fn without(mut self, name: &str) -> Ask {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    /// Sets a field of the body.
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Ask {
        self.body.get_or_insert_with(|| json!({}))[field] = value.into();
        self
    }

    /// Continues from a response.
    pub fn after(self, response_id: &str) -> Ask {
        self.with("previous_response_id", response_id)
    }

    /// Another path.
    pub fn to(mut self, path: &str) -> Ask {
        self.path = path.into();
        self
    }

    /// Over a connection that holds only a few kilobytes which the client has not read.
    pub fn narrow(self) -> Ask {
        Ask { narrow: true, ..self }
    }

    /// The body as it is sent.
    pub fn body_text(&self) -> String {
        self.body.as_ref().map(Value::to_string).unwrap_or_default()
    }

    fn bytes(&self) -> Vec<u8> {
        let body = self.body_text();
        let mut request = format!("{} {} HTTP/1.1\r\nhost: localhost\r\n", self.method, self.path);
        if self.body.is_some() {
            request += &format!(
                "content-type: application/json\r\ncontent-length: {}\r\n",
                body.len()
            );
        }
        for (name, value) in &self.headers {
            request += &format!("{name}: {value}\r\n");
        }
        (request + "\r\n" + &body).into_bytes()
    }

    /// Sends it on a connection of its own and waits for the answer's head.
    pub async fn open(&self, to: SocketAddr) -> Reply {
        let mut sent = self.send(to).await;
        sent.read_head().await;
        sent
    }

    /// Sends it, and waits for nothing.
    pub async fn send(&self, to: SocketAddr) -> Reply {
        let socket = TcpSocket::new_v4().unwrap();
        if self.narrow {
            socket.set_recv_buffer_size(4096).unwrap();
        }
        let mut stream = socket.connect(to).await.unwrap();
        stream.set_nodelay(true).unwrap();
        // A server that refuses early may have closed already; what it says is what the test looks at.
        let _ = stream.write_all(&self.bytes()).await;
        Reply::new(stream, self)
    }

    /// Sends it and reads the answer to its end.
    pub async fn ask(&self, to: SocketAddr) -> Answer {
        self.open(to).await.finish().await
    }
}

/// How a body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// Bytes that are still to come.
    Whole(usize),
    Chunked,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As its framing says.
    Clean,
    /// The connection went before.
    Torn,
}

/// A part of an event stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Event(Event),
    Comment,
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its number, where it has one: the admin API's have.
    pub id: Option<u64>,
    pub name: String,
    pub data: Value,
    /// `data` as it came.
    pub raw: String,
}

const TERMINALS: [&str; 3] = ["response.completed", "response.failed", "response.incomplete"];

impl Event {
    pub fn is_terminal(&self) -> bool {
        TERMINALS.contains(&self.name.as_str())
    }
}

/// An answer that is being read.
pub struct Reply {
    /// What was asked for; a failing test shows it.
    asked: String,
    pub stream: TcpStream,
    /// Bytes as they came, not yet unframed.
    raw: Vec<u8>,
    pub status: u16,
    pub headers: HashMap<String, String>,
    framing: Framing,
    /// The unframed body so far.
    body: Vec<u8>,
    /// So many bytes of it were given out as pieces.
    parsed: usize,
    end: Option<End>,
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = String::from_utf8_lossy(&self.body);
        let text = text.get(..4000).unwrap_or(&text);
        let asked = self.asked.get(..400).unwrap_or(&self.asked);
        write!(
            f,
            "asked {asked}, answered {} {:?}, {:?}: {text}",
            self.status, self.headers, self.end
        )
    }
}

impl Reply {
    fn new(stream: TcpStream, ask: &Ask) -> Reply {
        Reply {
            asked: ask.body.as_ref().map_or(ask.path.clone(), Value::to_string),
            stream,
            raw: Vec::new(),
            status: 0,
            headers: HashMap::new(),
            framing: Framing::Whole(0),
            body: Vec::new(),
            parsed: 0,
            end: None,
        }
    }

    /// More bytes; false at the connection's end.
    async fn more(&mut self) -> bool {
        let read = tokio::time::timeout(MOMENT, self.stream.read_buf(&mut self.raw)).await;
        let read = read.unwrap_or_else(|_| panic!("no answer in time; so far: {self:?}"));
        read.unwrap_or(0) > 0
    }

    /// Reads the status line and the headers.
    pub async fn read_head(&mut self) {
        let end = loop {
            if let Some(end) = self.raw.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            assert!(self.more().await, "closed before an answer: {self:?}");
        };
        let head = String::from_utf8(self.raw.drain(..end + 4).collect()).unwrap();
        let mut lines = head.trim_end().lines();
        self.status = lines.next().unwrap()[9..12].parse().unwrap();
        for line in lines {
            let (name, value) = line.split_once(": ").unwrap();
            self.headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        self.framing = match self.headers.get("content-length") {
            Some(length) => Framing::Whole(length.parse().unwrap()),
            None if self.headers.contains_key("transfer-encoding") => Framing::Chunked,
            None => Framing::Whole(0),
        };
        self.unframe();
    }

    /// Moves what is whole from `raw` to `body`.
    fn unframe(&mut self) {
        while self.end.is_none() {
            match self.framing {
                Framing::Whole(0) => self.end = Some(End::Clean),
                Framing::Whole(left) => {
                    let take = left.min(self.raw.len());
                    if take == 0 {
                        return;
                    }
                    self.body.extend(self.raw.drain(..take));
                    self.framing = Framing::Whole(left - take);
                }
                Framing::Chunked => {
                    let Some(line) = self.raw.windows(2).position(|window| window == b"\r\n") else {
                        return;
                    };
                    let length = std::str::from_utf8(&self.raw[..line]).unwrap();
                    let length = usize::from_str_radix(length, 16).unwrap();
                    if self.raw.len() < line + 2 + length + 2 {
                        return;
                    }
                    self.body
                        .extend_from_slice(&self.raw[line + 2..line + 2 + length]);
                    self.raw.drain(..line + 2 + length + 2);
                    if length == 0 {
                        self.end = Some(End::Clean);
                    }
                }
            }
        }
    }

    /// More of the body, or its end.
    async fn advance(&mut self) {
        if !self.more().await {
            self.end.get_or_insert(End::Torn);
        }
        self.unframe();
    }

    /// The next piece of the event stream; `None` at its end.
    pub async fn piece(&mut self) -> Option<Piece> {
        loop {
            let rest = &self.body[self.parsed..];
            if let Some(end) = rest.windows(2).position(|window| window == b"\n\n") {
                let block = std::str::from_utf8(&rest[..end]).unwrap().to_owned();
                self.parsed += end + 2;
                return Some(piece(&block));
            }
            if self.end.is_some() {
                assert_eq!(rest.len(), 0, "an unfinished block: {rest:?}");
                return None;
            }
            self.advance().await;
        }
    }

    /// The next event, comments passed over; `None` at the end.
    pub async fn event(&mut self) -> Option<Event> {
        loop {
            match self.piece().await? {
                Piece::Event(event) => return Some(event),
                Piece::Comment => {}
            }
        }
    }

    /// Reads on until an event of this name has come.
    pub async fn until(&mut self, name: &str) -> Event {
        loop {
            match self.event().await {
                Some(event) if event.name == name => return event,
                Some(_) => {}
                None => panic!("ended before {name}: {self:?}"),
            }
        }
    }

    /// Reads to the end.
    pub async fn finish(mut self) -> Answer {
        while self.end.is_none() {
            self.advance().await;
        }
        let over = self.end == Some(End::Clean) && !self.raw.is_empty();
        assert!(!over, "bytes after the end: {self:?}");
        Answer {
            status: self.status,
            headers: self.headers,
            body: self.body,
            end: self.end.unwrap(),
        }
    }

    /// Reads to the end, and makes the next request on the same connection.
    pub async fn again(mut self, ask: &Ask) -> Reply {
        while self.end.is_none() {
            self.advance().await;
        }
        assert_eq!((self.end, self.raw.len()), (Some(End::Clean), 0), "{self:?}");
        let mut next = Reply::new(self.stream, ask);
        next.stream.write_all(&ask.bytes()).await.unwrap();
        next.read_head().await;
        next
    }

    /// Closes the connection with a reset.
    pub fn reset(self) {
        let socket = socket2::SockRef::from(&self.stream);
        socket.set_linger(Some(Duration::ZERO)).unwrap();
    }
}

fn piece(block: &str) -> Piece {
    if block.starts_with(':') {
        return Piece::Comment;
    }
    let numbered = block.strip_prefix("id: ").and_then(|rest| rest.split_once('\n'));
    let (id, block) = numbered.map_or((None, block), |(id, rest)| (Some(id.parse().unwrap()), rest));
    let (name, data) = block
        .strip_prefix("event: ")
        .and_then(|rest| rest.split_once("\ndata: "))
        .unwrap_or_else(|| panic!("neither event nor comment: {block:?}"));
    assert!(!data.contains('\n'), "more than one data line: {block:?}");
    Piece::Event(Event {
        id,
        name: name.into(),
        data: serde_json::from_str(data).unwrap(),
        raw: data.into(),
    })
}

/// A whole answer.
pub struct Answer {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
    pub end: End,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = String::from_utf8_lossy(&self.body);
        let text = text.get(..4000).unwrap_or(&text);
        write!(
            f,
            "answered {} {:?}, {:?}: {text}",
            self.status, self.headers, self.end
        )
    }
}

impl Answer {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        assert_eq!(self.headers["content-type"], "application/json", "{self:?}");
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// All pieces of an event stream.
    pub fn pieces(&self) -> Vec<Piece> {
        assert_eq!(
            self.headers["content-type"], "text/event-stream; charset=utf-8",
            "{self:?}"
        );
        let text = self.text();
        assert!(
            text.is_empty() || text.ends_with("\n\n"),
            "an unfinished block: {text:?}"
        );
        text.split_terminator("\n\n").map(piece).collect()
    }

    pub fn events(&self) -> Vec<Event> {
        let events = self.pieces().into_iter().filter_map(|piece| match piece {
            Piece::Event(event) => Some(event),
            Piece::Comment => None,
        });
        events.collect()
    }

    pub fn comments(&self) -> usize {
        self.pieces()
            .iter()
            .filter(|piece| **piece == Piece::Comment)
            .count()
    }

    /// The text that the deltas make.
    pub fn output(&self) -> String {
        let events = self.events();
        let deltas = events
            .iter()
            .filter(|event| event.name == "response.output_text.delta");
        deltas
            .map(|event| event.data["delta"].as_str().unwrap())
            .collect()
    }

    /// The one terminal of a stream that ended as INV-2 says: cleanly, and right after it.
    pub fn terminal(&self) -> Event {
        assert_eq!((self.status, self.end), (200, End::Clean), "{self:?}");
        let events = self.events();
        let terminals = events.iter().filter(|event| event.is_terminal()).count();
        assert_eq!(terminals, 1, "not one terminal: {}", self.text());
        let last = events.last().unwrap().clone();
        assert!(last.is_terminal(), "events after the terminal: {}", self.text());
        last
    }

    /// The completed response: streamed, or the object itself. Panics with the whole answer where there is none.
    pub fn completed(&self) -> Value {
        let response = if self.headers["content-type"].starts_with("text/event-stream") {
            let terminal = self.terminal();
            assert_eq!(terminal.name, "response.completed", "{}", self.text());
            terminal.data["response"].clone()
        } else {
            assert_eq!(
                (self.status, self.end),
                (200, End::Clean),
                "{self:?} {}",
                self.text()
            );
            self.json()
        };
        assert_eq!(response["status"], "completed", "{}", self.text());
        response
    }

    /// The id of the completed response.
    pub fn id(&self) -> String {
        self.completed()["id"].as_str().unwrap().to_owned()
    }

    /// The code of an HTTP error in the API's shape, of the bridge's making or passed on. The bridge's every answer
    /// that a retry may cure says when (SES-20).
    pub fn error(&self) -> String {
        assert!(self.status >= 400, "no error: {self:?}");
        assert_eq!(self.end, End::Clean);
        let error = &self.json()["error"];
        assert!(error["message"].is_string(), "{}", self.text());
        if self.status == 429 || self.status >= 500 {
            let wait: u64 = self.headers["retry-after"].parse().unwrap();
            assert!((1..=60).contains(&wait), "Retry-After: {wait}");
        }
        error["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The code of the `response.failed` that a committed stream ended with: `response.created` came before it, once,
    /// with the same id, and the sequence numbers go on.
    pub fn failure(&self) -> String {
        let terminal = self.terminal();
        assert_eq!(terminal.name, "response.failed", "{}", self.text());
        let events = self.events();
        let created: Vec<_> = events
            .iter()
            .filter(|event| event.name == "response.created")
            .collect();
        assert_eq!(created.len(), 1, "{}", self.text());
        assert_eq!(created[0].data["response"]["id"], terminal.data["response"]["id"]);
        assert!(
            terminal.data["response"]["usage"].is_object() || terminal.data["response"]["usage"].is_null()
        );
        let numbers: Vec<_> = events
            .iter()
            .filter_map(|event| event.data["sequence_number"].as_u64())
            .collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
        terminal.data["response"]["error"]["code"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}
