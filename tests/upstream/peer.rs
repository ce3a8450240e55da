//! Peers of a few lines: a listener, the server's side of a handshake, and frames by hand.

use std::path::PathBuf;
use std::time::Duration;

use http::HeaderMap;
use responses_bridge::config::{self, Credential, CredentialSource, Provider, Transport};
use responses_bridge::upstream::{Account, Dialed, Socket, SocketEvent};
use responses_bridge::wire::ProviderKind;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// Long enough for anything here; nothing waits for it to pass.
pub const SOON: Duration = Duration::from_secs(10);

pub fn provider(base_url: &str, kind: ProviderKind) -> Provider {
    Provider {
        name: "up".to_owned(),
        kind,
        base_url: base_url.parse().unwrap(),
        transport: Transport::Auto,
        ca_file: None,
        fragment: true,
        max_age: None,
        max_frame: None,
        models: Vec::new(),
        one_model_per_connection: false,
        headers: HeaderMap::new(),
        accounts: Vec::new(),
    }
}

pub fn with_secret(secret: &str) -> config::Account {
    config::Account {
        name: "main".to_owned(),
        credential: Credential::Secret(secret.to_owned().into()),
        source: CredentialSource::Env("KEY".to_owned()),
        weight: 1,
        proxy: None,
        unread_proxy: None,
        headers: HeaderMap::new(),
    }
}

pub fn of_the_client() -> config::Account {
    config::Account {
        name: "main".to_owned(),
        credential: Credential::Client,
        source: CredentialSource::Client,
        weight: 1,
        proxy: None,
        unread_proxy: None,
        headers: HeaderMap::new(),
    }
}

pub fn account_at(base_url: &str) -> Account {
    Account::new(&provider(base_url, ProviderKind::Openai), &of_the_client(), SOON).unwrap()
}

pub fn https_account(base_url: &str, ca_file: Option<PathBuf>, deadline: Duration) -> Account {
    let provider = Provider {
        ca_file,
        ..provider(base_url, ProviderKind::Openai)
    };
    Account::new(&provider, &of_the_client(), deadline).unwrap()
}

/// A listener on a free loopback port, and the base URL that leads to it.
pub async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    (listener, base)
}

/// The head of a request, up to its blank line.
pub async fn read_head<S: AsyncRead + Unpin>(stream: &mut S) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// The value of a header in a request head.
pub fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// A correct 101 to `head`, with `extra` header lines.
pub fn switching(head: &str, extra: &str) -> String {
    let accept = derive_accept_key(header(head, "sec-websocket-key").unwrap().as_bytes());
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\
         Sec-WebSocket-Accept: {accept}\r\n{extra}\r\n"
    )
}

/// Takes one connection and completes its handshake.
pub async fn accept_socket(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().await.unwrap();
    let head = read_head(&mut stream).await;
    stream.write_all(switching(&head, "").as_bytes()).await.unwrap();
    stream
}

/// Both ends of an open socket.
pub async fn pair(fragment: bool) -> (Socket, TcpStream) {
    let (listener, base) = listen().await;
    let provider = Provider {
        fragment,
        ..provider(&base, ProviderKind::Openai)
    };
    let account = Account::new(&provider, &of_the_client(), SOON).unwrap();
    let dialed = account.dial(none(), none());
    let (dialed, peer) = tokio::join!(dialed, accept_socket(&listener));
    let Dialed { socket, .. } = dialed.unwrap();
    (socket, peer)
}

/// A frame as a server sends it.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        len @ 0..126 => frame.push(len as u8),
        len @ 126..65536 => {
            frame.push(126);
            frame.extend((len as u16).to_be_bytes());
        }
        len => {
            frame.push(127);
            frame.extend((len as u64).to_be_bytes());
        }
    }
    frame.extend(payload);
    frame
}

pub fn text(payload: &str) -> Vec<u8> {
    frame(0x81, payload.as_bytes())
}

pub fn ping() -> Vec<u8> {
    frame(0x89, b"are you there")
}

pub fn close(code: u16) -> Vec<u8> {
    frame(0x88, &code.to_be_bytes())
}

/// A frame as the server received it, unmasked.
#[derive(Debug, PartialEq)]
pub struct Received {
    pub last: bool,
    pub opcode: u8,
    pub payload: Vec<u8>,
}

pub async fn receive<S: AsyncRead + Unpin>(stream: &mut S) -> Received {
    let (first, second) = (stream.read_u8().await.unwrap(), stream.read_u8().await.unwrap());
    assert_eq!(second & 0x80, 0x80, "a client masks its frames");
    let len = match second & 0x7f {
        126 => usize::from(stream.read_u16().await.unwrap()),
        127 => stream.read_u64().await.unwrap() as usize,
        len => usize::from(len),
    };
    let mut mask = [0; 4];
    stream.read_exact(&mut mask).await.unwrap();
    let mut payload = vec![0; len];
    stream.read_exact(&mut payload).await.unwrap();
    payload
        .iter_mut()
        .zip(mask.iter().cycle())
        .for_each(|(byte, mask)| *byte ^= mask);
    Received {
        last: first & 0x80 != 0,
        opcode: first & 0x0f,
        payload,
    }
}

/// The frames of one text message; what other frames came meanwhile is dropped.
pub async fn receive_message<S: AsyncRead + Unpin>(stream: &mut S) -> Vec<Received> {
    let mut frames = Vec::new();
    loop {
        let frame = receive(stream).await;
        if frame.opcode < 8 {
            let last = frame.last;
            frames.push(frame);
            if last {
                return frames;
            }
        }
    }
}

pub fn joined(frames: &[Received]) -> Vec<u8> {
    frames
        .iter()
        .flat_map(|frame| frame.payload.iter().copied())
        .collect()
}

/// Waits for an end of the peer's connection: closed or reset.
pub async fn ended<S: AsyncRead + Unpin>(stream: &mut S) {
    let mut rest = [0; 4096];
    while !matches!(stream.read(&mut rest).await, Ok(0) | Err(_)) {}
}

/// The next event that is not the progress of a write.
pub async fn next(socket: &mut Socket) -> SocketEvent {
    let event = async {
        loop {
            match socket.event().await {
                SocketEvent::Wrote(_) => {}
                event => return event,
            }
        }
    };
    tokio::time::timeout(SOON, event).await.expect("an event")
}

/// Text of `len` bytes in which a mistake shows: no two 16-byte stretches are alike.
pub fn long_text(len: usize) -> String {
    let mut text: String = (0..len / 16 + 1).map(|index| format!("{index:016x}")).collect();
    text.truncate(len);
    text
}

/// No headers.
pub fn none() -> HeaderMap {
    HeaderMap::new()
}
