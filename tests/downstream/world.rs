//! A running edge, the bridge behind it, and a client that speaks bytes.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::{Body, Frame};
use responses_bridge::downstream::{Edge, Settings};
use responses_bridge::event::{Events, Level};
use responses_bridge::listen::{self, Doors, Limits};
use responses_bridge::runtime::budget::Budget;
use responses_bridge::runtime::call::{Bridge, Call, Caller, Lookup, Pass, Reply, ReplyBody};
use responses_bridge::telemetry::Telemetry;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What every wait of these tests is bounded by.
pub const MOMENT: Duration = Duration::from_secs(5);

pub const INSTALL_KEY: [u8; 32] = [7; 32];

/// What reached the bridge.
#[derive(Debug, Clone)]
pub struct Seen {
    pub caller: Caller,
    /// `create`, or method, base and path of the others.
    pub what: String,
    pub query: Option<String>,
    pub body: Bytes,
}

/// Answers as the `x-fake` header of a request asks.
#[derive(Default)]
pub struct FakeBridge {
    seen: Mutex<Vec<Seen>>,
    /// Calls and replies that have not been dropped.
    live: Arc<AtomicUsize>,
    pub unready: std::sync::atomic::AtomicBool,
}

struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A body that never ends: a byte every few milliseconds, or a flood.
struct Endless {
    chunk: Bytes,
    pause: Option<Pin<Box<tokio::time::Sleep>>>,
    _alive: Alive,
}

impl Body for Endless {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(pause) = &mut self.pause {
            std::task::ready!(pause.as_mut().poll(cx));
            pause
                .as_mut()
                .reset(tokio::time::Instant::now() + Duration::from_millis(5));
        }
        Poll::Ready(Some(Ok(Frame::data(self.chunk.clone()))))
    }
}

impl FakeBridge {
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn live(&self) -> usize {
        self.live.load(Ordering::SeqCst)
    }

    fn alive(&self) -> Alive {
        self.live.fetch_add(1, Ordering::SeqCst);
        Alive(self.live.clone())
    }

    async fn answer(&self, seen: Seen) -> Reply {
        let fake = seen
            .caller
            .headers
            .get("x-fake")
            .map(|value| value.to_str().unwrap().to_owned());
        self.seen.lock().unwrap().push(seen);
        let alive = self.alive();
        let endless = |chunk, pause: bool, alive| {
            let pause = pause.then(|| Box::pin(tokio::time::sleep(Duration::ZERO)));
            Response::new(ReplyBody::Stream(Box::pin(Endless {
                chunk,
                pause,
                _alive: alive,
            })))
        };
        let whole = |text: &'static str| Response::new(ReplyBody::Whole(Some(text.into())));
        match fake.as_deref() {
            Some("hang") => std::future::pending().await,
            Some("drip") => endless(Bytes::from_static(b": quiet\n\n"), true, alive),
            Some("flood") => endless(Bytes::from(vec![b'x'; 16 * 1024]), false, alive),
            Some("slow") => {
                tokio::time::sleep(Duration::from_millis(300)).await;
                whole("{\"slow\":true}")
            }
            Some("panic") => panic!("planted"),
            Some("named") => {
                let mut reply = whole("{}");
                reply
                    .headers_mut()
                    .insert("x-request-id", "req_upstream".parse().unwrap());
                reply
            }
            _ => whole("{\"ok\":true}"),
        }
    }
}

impl Bridge for FakeBridge {
    async fn create(&self, call: Call) -> Reply {
        let body = call.create.body().clone();
        self.answer(Seen {
            caller: call.caller,
            what: "create".into(),
            query: None,
            body,
        })
        .await
    }

    async fn lookup(&self, lookup: Lookup) -> Reply {
        let what = format!("{} {}{}", lookup.method, lookup.response_id, lookup.tail);
        self.answer(Seen {
            caller: lookup.caller,
            what,
            query: lookup.query,
            body: lookup.body,
        })
        .await
    }

    /// Echoes the body as it comes.
    async fn pass(&self, pass: Pass) -> Reply {
        let what = format!("{} {:?} {}", pass.method, pass.base, pass.path);
        let seen = Seen {
            caller: pass.caller,
            what,
            query: pass.query,
            body: Bytes::new(),
        };
        let answer = self.answer(seen).await;
        if answer.status() == StatusCode::OK {
            Response::new(ReplyBody::Stream(pass.body))
        } else {
            answer
        }
    }

    fn ready(&self) -> bool {
        !self.unready.load(Ordering::SeqCst)
    }

    fn metrics(&self) -> String {
        "up 1\n".into()
    }
}

/// How an edge is set up; each test changes what it is about.
pub struct Setup {
    pub settings: Settings,
    pub limits: Limits,
    pub budget: Budget,
    pub connections: usize,
    /// What the edge takes for its address, where a test cannot bind it.
    pub pretend: Option<SocketAddr>,
    pub operators: bool,
}

impl Default for Setup {
    fn default() -> Self {
        let settings = Settings {
            clients: Vec::new(),
            admin_token: None,
            admin_elsewhere: false,
            allow_origins: Vec::new(),
            max_body: 1024 * 1024,
            body_stall: MOMENT,
            traced: false,
        };
        let limits = Limits {
            linger: Duration::from_millis(500),
            ..Limits::default()
        };
        Setup {
            settings,
            limits,
            budget: Budget::new(1 << 30),
            connections: 64,
            pretend: None,
            operators: false,
        }
    }
}

/// A running edge.
pub struct World {
    pub bridge: Arc<FakeBridge>,
    pub address: SocketAddr,
    pub budget: Budget,
    pub room: Arc<Semaphore>,
    pub shutdown: CancellationToken,
    pub tracker: TaskTracker,
    /// The lines of all events so far.
    pub lines: Arc<Mutex<String>>,
}

impl Setup {
    pub fn start(self) -> World {
        let listener = listen::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        let (events, lines) = events();
        let doors = Doors {
            limits: self.limits,
            room: Arc::new(Semaphore::new(self.connections)),
            shutdown: CancellationToken::new(),
            tracker: TaskTracker::new(),
            events: events.clone(),
        };
        let bridge = Arc::<FakeBridge>::default();
        let edge = Edge::new(
            bridge.clone(),
            &self.settings,
            &INSTALL_KEY,
            self.budget.clone(),
            events,
        );
        let listen = self.pretend.unwrap_or(address);
        if self.operators {
            doors
                .tracker
                .spawn(doors.clone().serve(listener, edge.operators(listen)));
        } else {
            doors
                .tracker
                .spawn(doors.clone().serve(listener, edge.clients(listen)));
        }
        let Doors {
            room,
            shutdown,
            tracker,
            ..
        } = doors;
        World {
            bridge,
            address,
            budget: self.budget,
            room,
            shutdown,
            tracker,
            lines,
        }
    }
}

/// Events, and the lines that they leave.
pub fn events() -> (Events, Arc<Mutex<String>>) {
    let lines = Arc::new(Mutex::new(String::new()));
    let sink = lines.clone();
    let write = move |line: &[u8]| sink.lock().unwrap().push_str(std::str::from_utf8(line).unwrap());
    (
        Events::new(Level::Debug, Arc::new(Telemetry::new().unwrap()), write),
        lines,
    )
}

impl World {
    pub async fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Client {
            stream,
            read: Vec::new(),
        }
    }

    /// One request on a connection of its own.
    pub async fn ask(&self, request: impl AsRef<[u8]>) -> Answer {
        let mut client = self.connect().await;
        client.send(request).await;
        client.answer().await
    }

    /// Waits until nothing of any call is left.
    pub async fn quiet(&self) {
        eventually("every call and reply is dropped", || self.bridge.live() == 0).await;
    }
}

/// Waits for something that another task will bring about.
pub async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(MOMENT, waiting)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}

/// A POST of `body` with a credential; `more` are header lines, each with its line end.
pub fn post(path: &str, more: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len();
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer sk-1\r\ncontent-length: {length}\r\n{more}\r\n"
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}

/// A request without a body, with a credential.
pub fn bare(method: &str, path: &str, more: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer sk-1\r\n{more}\r\n")
}

/// A good create.
pub const GOOD: &str = r#"{"model":"gpt-5","input":"hi","stream":true}"#;

/// A client's connection.
pub struct Client {
    pub stream: TcpStream,
    read: Vec<u8>,
}

/// An HTTP answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The code of an error in the API's shape.
    pub fn code(&self) -> String {
        let error = &self.json()["error"];
        for member in ["message", "type", "code"] {
            assert!(error[member].is_string(), "no error.{member} in {self:?}");
        }
        assert_eq!(self.headers["content-type"], "application/json");
        assert!(self.headers.contains_key("x-request-id"), "{self:?}");
        error["code"].as_str().unwrap().to_owned()
    }
}

impl Client {
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // A server that has refused may have closed; what it said is what the test looks at.
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// More bytes from the server; false at the end.
    async fn more(&mut self) -> bool {
        let read = tokio::time::timeout(MOMENT, self.stream.read_buf(&mut self.read)).await;
        read.expect("no answer in time").unwrap_or(0) > 0
    }

    pub async fn head(&mut self) -> Answer {
        let end = loop {
            if let Some(end) = self.read.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            assert!(
                self.more().await,
                "closed before an answer: {:?}",
                String::from_utf8_lossy(&self.read)
            );
        };
        let head = String::from_utf8(self.read.drain(..end + 4).collect()).unwrap();
        let mut lines = head.trim_end().lines();
        let status = lines.next().unwrap()[9..12].parse().unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_owned(), value.to_owned())
        };
        Answer {
            status,
            headers: lines.map(header).collect(),
            body: Vec::new(),
        }
    }

    pub async fn exactly(&mut self, count: usize) -> Vec<u8> {
        while self.read.len() < count {
            assert!(self.more().await, "closed in the middle of a body");
        }
        self.read.drain(..count).collect()
    }

    /// One chunk of a chunked body; empty at its end.
    pub async fn chunk(&mut self) -> Vec<u8> {
        let end = loop {
            if let Some(end) = self.read.windows(2).position(|window| window == b"\r\n") {
                break end;
            }
            assert!(self.more().await, "closed in the middle of a body");
        };
        let line: Vec<u8> = self.read.drain(..end + 2).collect();
        let length = usize::from_str_radix(std::str::from_utf8(&line).unwrap().trim(), 16).unwrap();
        let mut chunk = self.exactly(length + 2).await;
        chunk.truncate(length);
        chunk
    }

    /// A whole answer.
    pub async fn answer(&mut self) -> Answer {
        let mut answer = self.head().await;
        if let Some(length) = answer.headers.get("content-length") {
            answer.body = self.exactly(length.parse().unwrap()).await;
        } else if answer.headers.contains_key("transfer-encoding") {
            loop {
                let chunk = self.chunk().await;
                if chunk.is_empty() {
                    break;
                }
                answer.body.extend(chunk);
            }
        }
        answer
    }

    /// Waits for the server's close, and says whether it came without another byte.
    pub async fn closed(&mut self) -> bool {
        !self.more().await
    }

    /// Whatever still comes, until the server's close.
    pub async fn rest(&mut self) -> String {
        while self.more().await {}
        String::from_utf8_lossy(&std::mem::take(&mut self.read)).into_owned()
    }

    /// Closes with a reset.
    pub fn reset(self) {
        let socket = socket2::SockRef::from(&self.stream);
        socket.set_linger(Some(Duration::ZERO)).unwrap();
    }
}
