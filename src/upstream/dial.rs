//! The WebSocket handshake, over the same client as everything else: one CA, one TLS, one address race.

use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::header::{SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, HeaderName, StatusCode};
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::fault::{DialFault, PostFault};
use super::socket::Socket;

/// How much of a refused upgrade's body is kept.
const MAX_REFUSAL_BODY: usize = 64 << 10;
/// How long that body may take.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(1);

/// An open socket.
#[derive(Debug)]
pub struct Dialed {
    pub socket: Socket,
    /// The handshake's response headers, as they came.
    pub headers: HeaderMap,
}

/// The answer to an upgrade that upstream refused.
#[derive(Clone)]
pub struct UpgradeRefused {
    /// 3xx, 4xx or 5xx.
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The first 64 KiB, or what came of it within a second.
    pub body: Bytes,
}

impl fmt::Debug for UpgradeRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpgradeRefused")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// Sends the upgrade and checks its answer. The caller bounds the time; dropping the future closes the connection in
/// whatever state it is.
pub(super) async fn upgrade(
    request: reqwest::RequestBuilder,
    fragment: bool,
    proxied: bool,
) -> Result<Dialed, DialFault> {
    let key = generate_key();
    let request = request
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, &key);
    let response = request
        .send()
        .await
        .map_err(|error| PostFault::of(&error, proxied))?;
    let status = response.status();
    if proxied && status == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
        return Err(DialFault::Proxy);
    }
    if status.as_u16() >= 300 {
        return Err(DialFault::Status(Box::new(refused(response).await)));
    }
    if status != StatusCode::SWITCHING_PROTOCOLS || !accepts(response.headers(), &key) {
        return Err(DialFault::NotWebSocket);
    }
    let headers = response.headers().clone();
    let stream = response.upgrade().await.map_err(|_| DialFault::Io)?;
    Ok(Dialed {
        socket: Socket::over(stream, fragment),
        headers,
    })
}

/// Whether the headers of a 101 complete a handshake that asked for no extension and no subprotocol (RFC 6455, 4.1).
fn accepts(headers: &HeaderMap, key: &str) -> bool {
    let accept = headers
        .get(SEC_WEBSOCKET_ACCEPT)
        .is_some_and(|accept| *accept == derive_accept_key(key.as_bytes()));
    accept
        && names(headers, &UPGRADE, "websocket")
        && names(headers, &CONNECTION, "upgrade")
        && !headers.contains_key(SEC_WEBSOCKET_EXTENSIONS)
        && !headers.contains_key(SEC_WEBSOCKET_PROTOCOL)
}

/// Whether a list header holds `token`.
fn names(headers: &HeaderMap, header: &HeaderName, token: &str) -> bool {
    let lists = headers
        .get_all(header)
        .into_iter()
        .filter_map(|list| list.to_str().ok());
    lists
        .flat_map(|list| list.split(','))
        .any(|item| item.trim().eq_ignore_ascii_case(token))
}

async fn refused(mut response: reqwest::Response) -> UpgradeRefused {
    let mut body = BytesMut::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk[..chunk.len().min(MAX_REFUSAL_BODY - body.len())]);
            if body.len() == MAX_REFUSAL_BODY {
                break;
            }
        }
    };
    // Too slow or broken: what came until then is what there is.
    let _whole = tokio::time::timeout(REFUSAL_PATIENCE, read).await;
    UpgradeRefused {
        status: response.status(),
        headers: response.headers().clone(),
        body: body.freeze(),
    }
}
