//! Opening a session: the handshake, with the patience of the call that needs it, and what is learned from its failure.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::actor::{Actor, Kept, Parts};
use super::probe::Place;
use super::registry::{Command, LANE};
use super::{Runtime, now, report};
use crate::bridge::ownership::{AccountId, SessionId};
use crate::bridge::session::Session;
use crate::bridge::transport::Handshake;
use crate::event::Event;
use crate::upstream::{DialFault, Dialed};
use crate::wire::headers;

/// How it went, for the call.
pub enum Opening {
    /// The session is open and the call's.
    Opened(Fresh),
    Failed(DialFault),
    /// Not done in time for this call; it goes on in the background, for the next one.
    Slow,
}

/// Opens a session with a credential, whose number comes with it, and waits for `patience`. Dropping the future gives the
/// handshake up, and closes its connection.
pub async fn open(
    runtime: &Arc<Runtime>,
    account: AccountId,
    place: Place,
    identity: HeaderMap,
    credential: (HeaderMap, u64),
    patience: Duration,
) -> Opening {
    let (done, mut waiting) = oneshot::channel();
    let dial = dial(runtime.clone(), account, place, identity, credential, done);
    let dialling = AbortOnDropHandle::new(runtime.tracker.spawn(dial));
    match tokio::time::timeout(patience, &mut waiting).await {
        Ok(Ok(outcome)) => match outcome {
            Ok(fresh) => Opening::Opened(fresh),
            Err(fault) => Opening::Failed(fault),
        },
        // The task went away without a word: only a panic does that.
        Ok(Err(_)) => Opening::Failed(DialFault::Io),
        Err(_) => {
            // The receiver is dropped with this function: the task sees that nobody waits.
            let _background = dialling.detach();
            Opening::Slow
        }
    }
}

/// Counts a handshake as ended however the task ends.
struct Counted {
    runtime: Arc<Runtime>,
    account: AccountId,
    how: Handshake,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let change = self
            .runtime
            .registry()
            .handshake_ended(self.account, now(), self.how);
        self.runtime.breaker_changed(self.account, change);
    }
}

/// A session that has just been opened for a call. Dropped without [`Self::take`], it is idle: nobody waits for it any more.
pub struct Fresh {
    runtime: Arc<Runtime>,
    account: AccountId,
    /// Which of the account's credentials it was opened with.
    credential: u64,
    tenant: Option<[u8; 16]>,
    session: SessionId,
    lane: mpsc::Sender<Command>,
    taken: bool,
}

impl Fresh {
    /// The way to the session, to lease it at once.
    pub fn take(mut self, model: Option<&str>) -> mpsc::Sender<Command> {
        self.taken = true;
        self.runtime.registry().given(self.session, model);
        self.lane.clone()
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        self.runtime.registry().idle(self.session, now(), None);
        if let Some(reason) = self.runtime.unwanted(self.account, self.credential, self.tenant) {
            // All sessions but this one have been told. The lane has room: hardly anybody else had it.
            let _ = self.lane.try_send(Command::Retire(reason));
        }
    }
}

pub(super) type Done = oneshot::Sender<Result<Fresh, DialFault>>;

/// Dials, and makes a session of the socket.
pub(super) async fn dial(
    runtime: Arc<Runtime>,
    account: AccountId,
    place: Place,
    identity: HeaderMap,
    (credential, generation): (HeaderMap, u64),
    done: Done,
) {
    let mut counted = Counted {
        runtime: runtime.clone(),
        account,
        how: Handshake::Abandoned,
    };
    let began = now();
    match runtime.account(account).dial(identity, credential).await {
        Ok(dialed) => {
            counted.how = Handshake::Opened;
            drop(counted);
            let took = report::millis(now().duration_since(began));
            begin(&runtime, (account, generation), place, dialed, took, done);
        }
        Err(fault) => {
            counted.how = match &fault {
                // A fault of this process's own says nothing of the account's transport.
                DialFault::NoFiles => Handshake::Abandoned,
                DialFault::Status(refused) => Handshake::Refused {
                    status: refused.status.as_u16(),
                    sockets: runtime.registry().sockets(account),
                },
                _ => Handshake::Failed,
            };
            drop(counted);
            drop(place);
            // The call has gone direct, or is gone.
            let _ = done.send(Err(fault));
        }
    }
}

/// Makes the session and gives it to whom it is for.
fn begin(
    runtime: &Arc<Runtime>,
    (account, credential): (AccountId, u64),
    place: Place,
    dialed: Dialed,
    handshake_ms: u64,
    done: Done,
) {
    let at = now();
    let (key, tenant) = (place.key(), place.tenant());
    let (policy, jitter) = (runtime.policy(), jitter());
    let session = Session::new(policy.session(account, jitter), at);
    let kept = Kept {
        policy: policy.number,
        jitter,
    };
    drop(policy);
    let (lane, inbox) = mpsc::channel(LANE);
    let id = runtime
        .registry()
        .opened(key, account, lane.clone(), at..session.too_old_at());
    place.opened();
    runtime.events.emit(&Event::SessionOpened {
        at: runtime.at(account),
        key: key.into(),
        session: id.0,
        handshake_ms,
    });
    let parts = Parts {
        id,
        key,
        account,
        credential,
        tenant,
        kept,
        socket: dialed.socket,
        session,
        inbox,
        opener_headers: headers::handshake_to_client(&dialed.headers, true),
        headers: headers::handshake_to_client(&dialed.headers, false),
    };
    runtime.tracker.spawn(Actor::new(runtime.clone(), parts).run());
    let fresh = Fresh {
        runtime: runtime.clone(),
        account,
        credential,
        tenant,
        session: id,
        lane,
        taken: false,
    };
    // Where nobody waits any more it comes back, and is dropped.
    let _ = done.send(Ok(fresh));
}

/// Anything between 0 and 1 that differs from socket to socket.
fn jitter() -> f64 {
    let [low, high, ..] = *uuid::Uuid::now_v7()
        .as_bytes()
        .last_chunk::<2>()
        .unwrap_or(&[0, 0]);
    f64::from(u16::from_be_bytes([low, high])) / f64::from(u16::MAX)
}
