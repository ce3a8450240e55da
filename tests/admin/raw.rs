//! Requests byte by byte: headers that are there twice, other places to come from, and the answer up to the connection's
//! end.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::client::MOMENT;

/// What came back.
#[derive(Debug)]
pub struct Said {
    pub status: u16,
    head: String,
    /// As it came, framing included.
    pub body: String,
}

impl Said {
    /// An answer, as it came.
    pub fn of(whole: Vec<u8>) -> Said {
        let text = String::from_utf8(whole).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").expect("an answer");
        Said {
            status: head[9..12].parse().unwrap(),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1);
        lines.find_map(|line| {
            let (known, value) = line.split_once(": ")?;
            known.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// The code of a refusal; empty where it is none.
    pub fn code(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap_or_default();
        body["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// How long it was, in bytes.
    pub fn length(&self) -> usize {
        self.head.len() + self.body.len()
    }
}

/// A request of these lines, as a client that wants the connection closed after it.
pub fn request(first: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{first} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    if !body.is_empty() {
        text += &format!("content-length: {}\r\n", body.len());
    }
    text + "\r\n" + body
}

/// What a request comes to.
pub async fn say(to: SocketAddr, text: &str) -> Said {
    say_from(Ipv4Addr::LOCALHOST, to, text).await
}

/// What it comes to from another address of this machine's.
pub async fn say_from(from: Ipv4Addr, to: SocketAddr, text: &str) -> Said {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    let mut stream = socket.connect(to).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    heard(&mut stream).await
}

/// Reads an answer to the connection's end.
pub async fn heard(stream: &mut TcpStream) -> Said {
    let mut whole = Vec::new();
    let reading = stream.read_to_end(&mut whole);
    let read = tokio::time::timeout(MOMENT, reading)
        .await
        .expect("no end in time");
    // After a refusal the connection may end by a reset; what was said before it counts.
    assert!(read.is_ok() || !whole.is_empty(), "{read:?}");
    Said::of(whole)
}
