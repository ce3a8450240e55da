//! The handshake of a WebSocket, and the ways in which a script lets it go wrong.

use std::io;
use std::time::Duration;

use tokio::time::sleep;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::answer::{Answer, usual_headers};
use super::behaviour::Reading;
use super::faults::{ErrorFrame, code_of, kind_of};
use super::inbound::Source;
use super::origin::Head;
use super::outbound::Outbound;
use super::script::{UpgradeEffect, UpgradeRule};
use super::state::State;
use super::turn::is_chatgpt;

/// What came of an upgrade.
pub enum Upgrade {
    /// A socket, and how it is to be read.
    Accepted {
        /// Its number in the ledger.
        number: u64,
        /// Slow reading from its first byte on.
        reading: Option<Reading>,
    },
    /// An answer that is no socket; the connection serves more requests.
    Refused,
    /// The connection is over.
    Over,
}

/// Whether this request asks for a WebSocket.
pub fn is_upgrade(head: &Head) -> bool {
    head.has_token("upgrade", "websocket") && head.has_token("connection", "upgrade")
}

/// Answers an upgrade as the script wants it.
///
/// # Errors
/// The client is gone.
pub async fn answer(
    head: &Head,
    source: &mut Source,
    out: &mut Outbound,
    state: &State,
) -> io::Result<Upgrade> {
    let script = state.script.load_full();
    let nth = state.next_upgrade();
    let key = head.header("sec-websocket-key");
    let (true, Some(key)) = (head.path.ends_with("/responses"), key) else {
        return refuse(&error(404), &[], None, out, state).await;
    };
    let rule = script.upgrades.iter().enumerate().find(|(number, rule)| {
        rule.matches.nth.is_none_or(|wanted| wanted == nth)
            && rule.matches.meets_head(head)
            && state.passes(&rule.gate, &format!("upgrade {number}"))
    });
    let rule = rule.map(|(_, rule)| rule);
    let effect = rule.map_or(UpgradeEffect::Accept, |rule| rule.effect);
    let headers = rule.map(scripted_headers).unwrap_or_default();
    let mut reading = None;
    let mut accept = derive_accept_key(key.as_bytes());
    match effect {
        UpgradeEffect::Accept => {}
        UpgradeEffect::SlowRead(slow) => reading = Some(slow),
        UpgradeEffect::Slow(delay) => {
            tokio::select! {
                () = sleep(delay) => {}
                () = source.until_gone() => return over(state),
            }
        }
        UpgradeEffect::WrongAccept => accept = derive_accept_key(b"the wrong key"),
        UpgradeEffect::Refuse(status) => {
            let body = rule.and_then(|rule| rule.body.as_deref());
            return refuse(&error(status), &headers, body, out, state).await;
        }
        UpgradeEffect::Hang => {
            source.until_gone().await;
            return over(state);
        }
        UpgradeEffect::Bare => {
            out.buffer
                .extend_from_slice(b"HTTP/1.1 101 Switching Protocols\r\n\r\n");
            out.flush().await?;
            return linger(source, state).await;
        }
        UpgradeEffect::Fin => {
            out.finish().await;
            return over(state);
        }
        UpgradeEffect::Reset => {
            out.reset();
            return over(state);
        }
    }
    let wrong = effect == UpgradeEffect::WrongAccept;
    let number = match wrong {
        true => 0,
        false => match state.book.socket_opened(head.recorded(), script.limits.sockets) {
            Some(number) => number,
            None => return refuse(&error(script.limits.refuse_with), &[], None, out, state).await,
        },
    };
    let chatgpt = is_chatgpt(script.kind, head);
    let mut text =
        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n".to_owned();
    let turn = &state.seed().to_hex()[..16];
    let usual = usual_headers(chatgpt, turn)
        .into_iter()
        .chain([("sec-websocket-accept".to_owned(), accept)]);
    for (name, value) in usual.chain(headers) {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    out.buffer.extend_from_slice(text.as_bytes());
    out.flush().await?;
    if wrong {
        linger(source, state).await
    } else {
        Ok(Upgrade::Accepted { number, reading })
    }
}

/// Leaves an upgraded connection that is no socket to the client.
async fn linger(source: &mut Source, state: &State) -> io::Result<Upgrade> {
    // A client that does not notice is not waited for, longer than any handshake deadline.
    _ = tokio::time::timeout(Duration::from_secs(30), source.until_gone()).await;
    over(state)
}

fn over(state: &State) -> io::Result<Upgrade> {
    state.book.handshake_refused();
    Ok(Upgrade::Over)
}

fn scripted_headers(rule: &UpgradeRule) -> Vec<(String, String)> {
    rule.headers
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn error(status: u16) -> ErrorFrame {
    let error = ErrorFrame::invalid(code_of(status), "The upgrade was refused by the simulator.", None);
    ErrorFrame {
        kind: kind_of(status).into(),
        ..error.with_status(status)
    }
}

async fn refuse(
    error: &ErrorFrame,
    headers: &[(String, String)],
    body: Option<&str>,
    out: &mut Outbound,
    state: &State,
) -> io::Result<Upgrade> {
    state.book.handshake_refused();
    let mut answer = Answer::error(error);
    answer.headers.extend_from_slice(headers);
    if let Some(body) = body {
        body.clone_into(&mut answer.body);
    }
    answer.write(&mut out.buffer);
    out.flush().await?;
    Ok(Upgrade::Refused)
}
