//! Answers as bytes, for where there is no request that a service could answer.

use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::event::{self, Event, Events, Ids};
use crate::journal::Names;
use crate::refusal::{Kind, Refusal};

/// Our answer in the place of `head`, the beginning of the one that hyper made for a request head it could not read.
pub(super) fn unreadable(head: &[u8], events: &Events) -> Bytes {
    // hyper answers 431 (too many or too large headers), 414 (request line) and 400 (everything else).
    let too_large = matches!(head.get(9..12), Some(b"431" | b"414"));
    let refusal = if too_large {
        Kind::HeadersTooLarge.into()
    } else {
        Refusal::because(Kind::InvalidBody, "The request head is not valid HTTP/1.1.")
    };
    render(&refusal, events)
}

/// Tells a client beyond the cap so, whatever it asks.
pub(super) async fn turn_away(mut stream: TcpStream, refusal: Refusal, linger: Duration, events: &Events) {
    let told = async {
        // After the request's first bytes, since a client may take an earlier answer for one to nothing.
        let mut scratch = [0; 4096];
        if stream.read(&mut scratch).await? == 0 {
            return Ok(());
        }
        stream.write_all(&render(&refusal, events)).await?;
        stream.shutdown().await?;
        while stream.read(&mut scratch).await? > 0 {}
        Ok::<_, std::io::Error>(())
    };
    // Whether it was told is all the same to us: the connection is closed either way.
    let _ = tokio::time::timeout(linger, told).await;
}

/// A complete HTTP/1.1 answer that closes the connection, and its event.
fn render(refusal: &Refusal, events: &Events) -> Bytes {
    let id = Uuid::now_v7().to_string();
    events.emit(&Event::Refused {
        ids: Ids {
            request_id: &id,
            trace_id: None,
            parent_id: None,
            names: &Names::NONE,
        },
        reason: refusal.kind,
        door: event::AT_CLIENTS,
    });
    let (status, body) = (refusal.kind.status(), refusal.body());
    let mut head = format!(
        "HTTP/1.1 {} {}\r\n",
        status.as_u16(),
        status.canonical_reason().unwrap_or_default()
    );
    for (name, value) in &refusal.headers() {
        if name != http::header::CONNECTION {
            // Writing to a String cannot fail.
            let _ = write!(head, "{name}: {}\r\n", value.to_str().unwrap_or_default());
        }
    }
    let _ = write!(
        head,
        "x-request-id: {id}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let mut answer = head.into_bytes();
    answer.extend_from_slice(&body);
    answer.into()
}
