//! A client on one connection, byte by byte, so that nothing reconnects or retries behind a test's back.

use std::collections::HashMap;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::bridge::PATIENCE;

/// One connection.
pub struct Client {
    stream: BufReader<TcpStream>,
    /// What came of an event stream and is not a whole event yet.
    rest: String,
}

/// Status and headers, the names in lower case.
pub struct Head {
    pub status: u16,
    pub headers: HashMap<String, String>,
}

impl Client {
    pub async fn connect(port: u16) -> Client {
        Client::try_connect(port).await.unwrap()
    }

    pub async fn try_connect(port: u16) -> std::io::Result<Client> {
        Ok(Client {
            stream: BufReader::new(TcpStream::connect(("127.0.0.1", port)).await?),
            rest: String::new(),
        })
    }

    pub async fn write(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Asks for a path, and reads the whole answer.
    pub async fn get(&mut self, path: &str) -> (Head, String) {
        self.write(&format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"))
            .await;
        self.answer().await
    }

    /// Sends a create in a conversation of its own.
    pub async fn create(&mut self, conversation: &str, stream: bool, prompt: &str) {
        let body = json!({"model": "gpt-5", "stream": stream, "store": false, "input": prompt}).to_string();
        self.write(&format!(
            "POST /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer sk-test\r\nthread-id: {conversation}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    }

    /// Sends a create and reads its events up to `response.created`.
    pub async fn begin(&mut self, conversation: &str, prompt: &str) -> Value {
        self.create(conversation, true, prompt).await;
        let head = self.head().await;
        assert_eq!(head.status, 200);
        let created = self.event().await.expect("no event");
        assert_eq!(created["type"], "response.created");
        created
    }

    pub async fn head(&mut self) -> Head {
        let first = self.line().await;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let mut headers = HashMap::new();
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(": ") else {
                break;
            };
            headers.insert(name.to_lowercase(), value.to_owned());
        }
        Head {
            status: status.unwrap_or_else(|| panic!("no status: {first:?}")),
            headers,
        }
    }

    /// A whole answer.
    pub async fn answer(&mut self) -> (Head, String) {
        let head = self.head().await;
        let mut body = Vec::new();
        match head.headers.get("content-length") {
            Some(length) => {
                body.resize(length.parse().unwrap(), 0);
                self.stream.read_exact(&mut body).await.unwrap();
            }
            None => {
                while let Some(chunk) = self.chunk().await {
                    body.extend(chunk);
                }
            }
        }
        (head, String::from_utf8(body).unwrap())
    }

    /// The next event of a stream; `None` at its clean end.
    pub async fn event(&mut self) -> Option<Value> {
        loop {
            if let Some((block, rest)) = self.rest.split_once("\n\n") {
                let data = block.lines().find_map(|line| line.strip_prefix("data: "));
                let event = data.map(|data| serde_json::from_str(data).unwrap());
                self.rest = rest.to_owned();
                match event {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            let chunk = self.chunk().await?;
            self.rest.push_str(&String::from_utf8(chunk).unwrap());
        }
    }

    /// What is left of a stream.
    pub async fn events(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            events.push(event);
        }
        events
    }

    /// Whether the bridge has closed the connection, after what was read.
    pub async fn is_closed(&mut self) -> bool {
        let read = tokio::time::timeout(PATIENCE, self.stream.read_u8()).await;
        read.expect("it stays open").is_err()
    }

    async fn chunk(&mut self) -> Option<Vec<u8>> {
        let length = usize::from_str_radix(&self.line().await, 16).expect("no chunk");
        let mut chunk = vec![0; length + 2];
        self.stream.read_exact(&mut chunk).await.unwrap();
        chunk.truncate(length);
        (length > 0).then_some(chunk)
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        let read = tokio::time::timeout(PATIENCE, self.stream.read_line(&mut line)).await;
        read.expect("no answer").unwrap();
        line.trim_end().to_owned()
    }
}
