//! The turns that are running, each with how far it has come: what operators look at (ADM-10).
//!
//! A turn costs one entry: an allocation, two short locks of the list at its ends, and one of its own entry, which nobody
//! else wants, at each step. No lock is held across an await.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::call::Caller;
use super::job::Job;
use super::route::Routed;
use crate::bridge::key::AffinityKey;
use crate::bridge::ownership::{AccountId, SessionId};
use crate::wire::request::Create;

/// Turns that are listed at most. Each needs a connection: hardly any process may have so many.
const MOST: usize = 65_536;

/// How far a turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Its account is chosen, its way is not.
    Planned,
    /// It waits for a session.
    Queued,
    /// A socket is being opened for it.
    Connecting,
    /// It is on its way to a session.
    Leased,
    /// On its way by direct HTTP.
    Direct,
    /// A session has it.
    Sent,
    /// `response.created` has come.
    Accepted,
}

impl Phase {
    /// The phase that a plan begins, as `turn_finished` names plans.
    pub fn of(plan: &str) -> Phase {
        match plan {
            "reused" => Phase::Leased,
            "opened" => Phase::Connecting,
            _ => Phase::Direct,
        }
    }

    /// As operators read it.
    pub fn label(self) -> &'static str {
        match self {
            Phase::Planned => "planned",
            Phase::Queued => "queued",
            Phase::Connecting => "connecting",
            Phase::Leased | Phase::Direct | Phase::Sent => "sent",
            Phase::Accepted => "accepted",
        }
    }
}

/// A running turn.
pub struct Live {
    number: AtomicU64,
    pub request_id: Arc<str>,
    pub client: Option<Arc<str>>,
    pub model: Arc<str>,
    pub stream: bool,
    pub arrived: Instant,
    /// A std mutex: held for a copy.
    way: Mutex<Way>,
}

/// Where a running turn is.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub account: AccountId,
    pub key: AffinityKey,
    pub phase: Phase,
    pub since: Instant,
    /// `websocket` or `http`, once that is known.
    pub transport: Option<&'static str>,
    pub session: Option<SessionId>,
    pub attempt: u32,
}

impl Live {
    /// A turn that has just been routed.
    pub fn of(caller: &Caller, create: &Create, routed: &Routed) -> Live {
        Live {
            number: AtomicU64::new(0),
            request_id: caller.request_id.clone(),
            client: caller.tenant.client.clone(),
            model: create.model.as_str().into(),
            stream: create.stream,
            arrived: caller.arrived,
            way: Mutex::new(Way {
                account: routed.account,
                key: routed.key,
                phase: Phase::Planned,
                since: caller.arrived,
                transport: None,
                session: None,
                attempt: 0,
            }),
        }
    }

    /// The turn has come so far.
    pub fn reached(&self, phase: Phase, job: &Job) {
        let mut way = self.lock();
        let transport = match phase {
            Phase::Planned | Phase::Queued => None,
            Phase::Connecting | Phase::Leased | Phase::Sent => Some("websocket"),
            Phase::Direct => Some("http"),
            Phase::Accepted => way.transport,
        };
        *way = Way {
            account: job.account,
            key: job.key,
            phase,
            since: super::now(),
            transport,
            session: job.on.filter(|_| transport == Some("websocket")),
            attempt: job.attempt,
        };
    }

    /// Where it is now.
    pub fn way(&self) -> Way {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Way> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All running turns.
#[derive(Default)]
pub struct Lives {
    /// A std mutex: held for one insertion, removal, or a copy of the pointers.
    turns: Mutex<HashMap<u64, Arc<Live>>>,
    latest: AtomicU64,
}

impl Lives {
    /// A turn begins.
    pub fn began(&self, live: Live) -> Arc<Live> {
        let number = self.latest.fetch_add(1, Ordering::Relaxed) + 1;
        live.number.store(number, Ordering::Relaxed);
        let live = Arc::new(live);
        let mut turns = self.lock();
        if turns.len() < MOST {
            turns.insert(number, live.clone());
        }
        live
    }

    /// A turn has ended.
    pub fn ended(&self, live: &Live) {
        self.lock().remove(&live.number.load(Ordering::Relaxed));
    }

    /// All that run, in no order.
    pub fn all(&self) -> Vec<Arc<Live>> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Live>>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
