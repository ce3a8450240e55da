//! Upstreams of a few lines, for what no simulator says.

use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::way::Way;
use crate::world::Setup;

/// A setup whose one provider is the listener.
pub fn setup(listener: &TcpListener, way: Way) -> Setup {
    Setup::new().config(&format!(
        "[providers.openai]\nbase_url = \"http://{}/v1\"\ntransport = \"{}\"\n\
         [[providers.openai.accounts]]\nname = \"main\"\ncredential = \"client\"\n",
        listener.local_addr().unwrap(),
        way.transport()
    ))
}

pub async fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// The next socket on which a create has come.
pub async fn create(listener: &TcpListener) -> WebSocketStream<TcpStream> {
    let (stream, _) = listener.accept().await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
    let create = socket.next().await.unwrap().unwrap();
    assert!(create.is_text(), "{create:?}");
    socket
}

/// Takes a POST and begins to answer it.
pub async fn post(listener: &TcpListener, answer: &str) -> TcpStream {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = Vec::new();
    while !request.windows(4).any(|window| window == b"\r\n\r\n") || !request.ends_with(b"}") {
        stream.read_buf(&mut request).await.unwrap();
    }
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream
}

/// One turn's way to the client, by either transport.
pub enum Upstream {
    Socket(Box<WebSocketStream<TcpStream>>),
    /// An event stream that ends with its connection.
    Direct(TcpStream),
}

impl Upstream {
    /// Takes a create.
    pub async fn accept(listener: &TcpListener, way: Way) -> Upstream {
        if way == Way::Socket {
            return Upstream::Socket(Box::new(create(listener).await));
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        Upstream::Direct(post(listener, head).await)
    }

    /// Sends an event that never ends, byte by byte, until the bridge has gone.
    pub async fn trickle(&mut self) {
        // A text frame of a mebibyte; or the beginning of a line.
        let (stream, beginning) = match self {
            Upstream::Socket(socket) => (socket.get_mut(), &b"\x81\x7f\0\0\0\0\0\x10\0\0"[..]),
            Upstream::Direct(stream) => (stream, &b"data: "[..]),
        };
        stream.write_all(beginning).await.unwrap();
        while stream.write_all(b"x").await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    /// Sends an event; false when the bridge has gone.
    pub async fn send(&mut self, json: &str) -> bool {
        match self {
            Upstream::Socket(socket) => socket.send(Message::text(json)).await.is_ok(),
            Upstream::Direct(stream) => stream
                .write_all(format!("data: {json}\n\n").as_bytes())
                .await
                .is_ok(),
        }
    }
}

/// Answers every create on every socket with these frames, and then reads on.
pub async fn answer(listener: TcpListener, frames: Vec<Message>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let frames = frames.clone();
        tokio::spawn(async move {
            let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
            while let Some(Ok(message)) = socket.next().await {
                if message.is_text() {
                    for frame in &frames {
                        // The bridge may close on the first of them.
                        let _ = socket.send(frame.clone()).await;
                    }
                }
            }
        });
    }
}
