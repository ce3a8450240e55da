//! All sessions, by key, and what is decided over all of them at one moment: plans, leases, quarantine, owners.
//!
//! One std mutex (`Runtime::registry`) guards it: every operation is a few map look-ups, none waits, and it is
//! never held across an await. A plan and the lease that it leads to are taken under one lock, so two turns never get one
//! session, and one key never gets two sessions by a race.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::futures::OwnedNotified;
use tokio::sync::{Notify, mpsc};

use super::job::Job;
use super::prewarm::Traffic;
use crate::bridge::continuation::Extends;
use crate::bridge::key::AffinityKey;
use crate::bridge::ownership::{AccountId, Owners, SessionId};
use crate::bridge::plan::{self, Facts, Plan, Purpose, View};
use crate::bridge::quarantine::{Probe, Quarantine};
use crate::bridge::session::{Memory, Retired};
use crate::bridge::transport::{self, Change, Handshake, WebSocketTransport};
use crate::refusal::Kind;

use fit::{extended, still};
use histories::Histories;

mod candidates;
mod caps;
mod fit;
mod histories;
mod look;
mod ready;

pub use caps::{Caps, Surplus};
pub use look::{Looked, Waiting};

/// What a session's actor can be told.
#[derive(Debug)]
pub enum Command {
    Lease(Box<Job>),
    Retire(Retired),
    Slept,
    Cut,
    /// Another policy is in force.
    Look,
}

/// Room for a lease and the few commands that may meet it.
pub const LANE: usize = 5;

/// A session as the registry knows it.
struct Slot {
    key: AffinityKey,
    account: AccountId,
    lane: mpsc::Sender<Command>,
    /// Since when it has been idle; `None` while a turn is on it.
    idle_since: Option<Instant>,
    opened_at: Instant,
    too_old_at: Instant,
    /// Turns that it was leased to, the running one included.
    turns: u32,
    /// An operator has closed it: it goes when its turn is done.
    closing: bool,
    memory: Option<Memory>,
    /// Of its first turn, where the upstream serves one model on each socket.
    model: Option<Box<str>>,
}

impl Slot {
    /// Whether the socket serves this model. `None`: any model is served on any socket.
    fn serves(&self, model: Option<&str>) -> bool {
        model.is_none() || self.model.is_none() || self.model.as_deref() == model
    }
}

/// What the registry knows of a key.
#[derive(Default)]
struct OfKey {
    sessions: Vec<SessionId>,
    opening: usize,
    waiting: usize,
    /// Rung when a session of the key becomes idle, or goes away.
    freed: Arc<Notify>,
}

/// What a turn asks for.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    pub key: AffinityKey,
    pub account: AccountId,
    pub facts: Facts,
    /// The id that the request names, if any: the session whose last response it is fits best.
    pub names: Option<&'a str>,
    /// The sessions whose conversation this request extends, the longest first.
    pub extends: &'a [Extends],
    /// The sessions whose conversation it tells again.
    pub retold: &'a [SessionId],
    /// The session on which the request has just been rejected for the bridge's own anchor: it is sent there again.
    pub stay: Option<SessionId>,
    /// The turn has waited for as long as it may.
    pub waited: bool,
    /// The turn's model, where the upstream serves one model on each socket.
    pub model: Option<&'a str>,
}

/// A plan, with what it took.
pub enum Taken {
    /// The session is the turn's now. `anchor`: what it remembers is the beginning of the request, and this is its name.
    Reuse {
        lane: mpsc::Sender<Command>,
        session: SessionId,
        anchor: Option<Box<str>>,
    },
    /// A place for a new session is the turn's now: end it with [`Registry::opened`] or [`Registry::not_opened`].
    Open {
        key_probe: Option<Probe>,
        transport_probe: Option<transport::Probe>,
        evicted: Option<mpsc::Sender<Command>>,
    },
    /// Wait for the bell, then ask again; [`Registry::stop_waiting`] in any case. It hears every ring from now on, also one
    /// that comes before it is waited for.
    Wait {
        bell: Pin<Box<OwnedNotified>>,
        /// It is one of the account's handshakes whose end it waits for.
        to_dial: bool,
    },
    /// Direct HTTP: nothing was taken.
    Direct(plan::Direct),
    /// Nothing can be done for it now.
    Refuse(Kind),
}

/// See the module.
pub struct Registry {
    caps: Caps,
    keys: HashMap<AffinityKey, OfKey>,
    sessions: HashMap<SessionId, Slot>,
    /// Idle sessions, the longest idle first.
    idle: BTreeSet<(Instant, SessionId)>,
    histories: Histories,
    opening: usize,
    waiting: usize,
    next_session: u64,
    pub quarantine: Quarantine,
    pub owners: Owners,
    transports: Vec<WebSocketTransport>,
    /// Open sockets of each account.
    open: Vec<usize>,
    traffic: Vec<Traffic>,
    /// Rung for each account when a handshake of its ended.
    dialled: Vec<Arc<Notify>>,
    draining: bool,
}

impl Registry {
    /// An empty registry; session numbers begin after `epoch`'s, so that they never meet those of a dead process: an epoch
    /// counts seconds, and leaves room for a million sessions in each. They stay below 2^53, so that readers of the log
    /// whose numbers are floating-point (jq, JavaScript) tell them apart.
    pub fn new(
        caps: Caps,
        epoch: u64,
        quarantine: Quarantine,
        owners: Owners,
        transports: Vec<WebSocketTransport>,
    ) -> Self {
        Registry {
            caps,
            keys: HashMap::new(),
            sessions: HashMap::new(),
            idle: BTreeSet::new(),
            histories: Histories::default(),
            opening: 0,
            waiting: 0,
            next_session: epoch << 20,
            quarantine,
            owners,
            open: vec![0; transports.len()],
            traffic: vec![Traffic::default(); transports.len()],
            dialled: transports.iter().map(|_| Arc::default()).collect(),
            transports,
            draining: false,
        }
    }

    /// The WebSocket transport of an account.
    pub fn transport(&mut self, account: AccountId) -> &mut WebSocketTransport {
        &mut self.transports[usize::from(account.0)]
    }

    /// Open sockets of an account.
    pub fn sockets(&self, account: AccountId) -> usize {
        self.open[usize::from(account.0)]
    }

    /// Plans a turn, and takes what the plan needs.
    pub fn take(&mut self, now: Instant, ask: &Ask<'_>) -> Taken {
        self.traffic[usize::from(ask.account.0)].turn(now);
        let status = self.quarantine.status(&ask.key, now);
        let transport = &self.transports[usize::from(ask.account.0)];
        let sockets = self.open[usize::from(ask.account.0)];
        let (reuse, dial) = (
            transport.permission(now, false, sockets),
            transport.permission(now, true, sockets),
        );
        let of_key = self.keys.get(&ask.key);
        let idle = of_key.map_or(Vec::new(), |of_key| self.candidates(of_key, now, ask));
        let view = View {
            quarantine: status,
            reuse,
            dial,
            idle: &idle,
            sessions: of_key.map_or(0, |of_key| {
                let all = of_key.sessions.len() + of_key.opening;
                if idle.is_empty() {
                    all - self.useless(of_key, now, ask)
                } else {
                    all
                }
            }),
            max_per_key: self.caps.max_per_key,
            room: self.sessions.len() + self.opening < self.caps.max_sessions || !self.idle.is_empty(),
            anchor_alive: match ask.facts.anchor {
                plan::Anchor::Unstored(session) => self.may_remember(session, &idle),
                plan::Anchor::Free => false,
            },
            no_more_waiting: ask.waited || of_key.map_or(0, |of_key| of_key.waiting) >= self.caps.max_queue,
        };
        match plan::plan(&ask.facts, &view) {
            Plan::Reuse(session) => self.lease(session, ask),
            // A key that has all that it may have takes the place of one of its own.
            Plan::Open(Purpose::Turn) if self.is_full(&ask.key) => self.open(now, ask, Purpose::Turn),
            Plan::Open(Purpose::Turn) => match self.adopt(now, ask) {
                Some(ready) => ready,
                None => self.open(now, ask, Purpose::Turn),
            },
            Plan::Open(purpose) => self.open(now, ask, purpose),
            wait @ (Plan::Wait | Plan::WaitToDial) => {
                let (freed, to_dial) = (self.waits(ask.key), wait == Plan::WaitToDial);
                let dialled = &self.dialled[usize::from(ask.account.0)];
                let bell = if to_dial { dialled.clone() } else { freed };
                let bell = Box::pin(bell.notified_owned());
                Taken::Wait { bell, to_dial }
            }
            Plan::Direct(reason) => Taken::Direct(reason),
            Plan::Refuse(kind) => Taken::Refuse(kind),
        }
    }

    fn waits(&mut self, key: AffinityKey) -> Arc<Notify> {
        let of_key = self.keys.entry(key).or_default();
        of_key.waiting += 1;
        self.waiting += 1;
        of_key.freed.clone()
    }

    /// A handshake of the account has ended: one turn that waits to dial may.
    pub fn handshake_ended(&mut self, account: AccountId, now: Instant, how: Handshake) -> Option<Change> {
        let index = usize::from(account.0);
        self.dialled[index].notify_one();
        self.transports[index].handshake_ended(now, how)
    }

    fn lease(&mut self, session: SessionId, ask: &Ask<'_>) -> Taken {
        self.given(session, ask.model);
        match self.sessions.get_mut(&session) {
            Some(slot) => {
                if let Some(since) = slot.idle_since.take() {
                    self.idle.remove(&(since, session));
                    self.histories.busy(since, session);
                }
                let memory = slot.memory.as_ref();
                let anchor = memory.filter(|memory| extended(session, memory, ask).is_some());
                Taken::Reuse {
                    lane: slot.lane.clone(),
                    session,
                    anchor: anchor.map(|memory| memory.response_id.clone()),
                }
            }
            // Cannot be: the plan chose among sessions that are here. Busy is true enough to be safe.
            None => Taken::Direct(plan::Direct::Busy),
        }
    }

    fn open(&mut self, now: Instant, ask: &Ask<'_>, purpose: Purpose) -> Taken {
        let full_key = self.is_full(&ask.key);
        let full = self.sessions.len() + self.opening >= self.caps.max_sessions;
        // Where the key has all that it may, only a probe is planned, or a turn to which none of the idle ones is of use: it takes
        // the place of an idle one.
        let longest_idle = match self.keys.get(&ask.key).filter(|_| full_key) {
            Some(of_key) => self.longest_idle(of_key, now),
            None if full => self.idle.first().map(|(_, session)| *session),
            None => None,
        };
        let evicted = longest_idle.and_then(|session| self.evict(session));
        self.keys.entry(ask.key).or_default().opening += 1;
        self.opening += 1;
        let transport = &mut self.transports[usize::from(ask.account.0)];
        transport.handshake_began();
        let transport_probe = match purpose {
            Purpose::ProbeTransport | Purpose::ProbeBoth => transport.begin_probe(now),
            Purpose::Turn | Purpose::ProbeKey => None,
        };
        let key_probe = match purpose {
            Purpose::ProbeKey | Purpose::ProbeBoth => self.quarantine.probe(&ask.key, now),
            Purpose::Turn | Purpose::ProbeTransport => None,
        };
        Taken::Open {
            key_probe,
            transport_probe,
            evicted,
        }
    }

    fn is_full(&self, key: &AffinityKey) -> bool {
        let of_key = self.keys.get(key);
        of_key.is_some_and(|of| of.sessions.len() + of.opening >= self.caps.max_per_key)
    }

    /// The key's longest idle session; those that are too old for a turn first.
    fn longest_idle(&self, of_key: &OfKey, now: Instant) -> Option<SessionId> {
        let idle = |id: &SessionId| {
            let slot = self.sessions.get(id)?;
            Some((now < slot.too_old_at, slot.idle_since?, *id))
        };
        of_key.sessions.iter().filter_map(idle).min().map(|(_, _, id)| id)
    }

    /// Takes an idle session out; its actor is to be told.
    fn evict(&mut self, session: SessionId) -> Option<mpsc::Sender<Command>> {
        let lane = self.sessions.get(&session)?.lane.clone();
        self.remove(session);
        Some(lane)
    }

    /// A waiting turn waits no more.
    pub fn stop_waiting(&mut self, key: &AffinityKey) {
        if let Some(of_key) = self.keys.get_mut(key) {
            of_key.waiting = of_key.waiting.saturating_sub(1);
            self.waiting = self.waiting.saturating_sub(1);
        }
        self.forget_if_unused(key);
    }

    /// The place taken by [`Taken::Open`] has become a session, which is the turn's; `life` is from its opening to when it
    /// is too old. Returns its number.
    pub fn opened(
        &mut self,
        key: AffinityKey,
        account: AccountId,
        lane: mpsc::Sender<Command>,
        life: Range<Instant>,
    ) -> SessionId {
        self.next_session += 1;
        let id = SessionId(self.next_session);
        self.place_free(&key);
        let slot = Slot {
            key,
            account,
            lane,
            idle_since: None,
            opened_at: life.start,
            too_old_at: life.end,
            turns: 0,
            closing: false,
            memory: None,
            model: None,
        };
        self.sessions.insert(id, slot);
        self.keys.entry(key).or_default().sessions.push(id);
        self.open[usize::from(account.0)] += 1;
        id
    }

    /// The place taken by [`Taken::Open`] is free again.
    pub fn not_opened(&mut self, key: &AffinityKey) {
        self.place_free(key);
        self.ring(key);
        self.forget_if_unused(key);
    }

    fn place_free(&mut self, key: &AffinityKey) {
        self.opening = self.opening.saturating_sub(1);
        if let Some(of_key) = self.keys.get_mut(key) {
            of_key.opening = of_key.opening.saturating_sub(1);
        }
    }

    /// The session can take another turn.
    pub fn idle(&mut self, session: SessionId, since: Instant, memory: Option<Memory>) {
        let Some(slot) = self.sessions.get_mut(&session) else {
            return;
        };
        slot.idle_since = Some(since);
        self.histories.gone(slot.memory.as_ref());
        slot.memory = still(memory, slot.memory.take());
        self.histories.idle(since, session, slot.memory.as_ref());
        let key = slot.key;
        self.idle.insert((since, session));
        while let Some(beyond) = self.histories.beyond() {
            let slot = self.sessions.get_mut(&beyond);
            if let Some(memory) = slot.and_then(|slot| slot.memory.as_mut()) {
                self.histories.gone(Some(memory));
                memory.history = None;
            }
        }
        self.ring(&key);
    }

    /// Bytes that the sessions' conversations take.
    pub fn history_bytes(&self) -> usize {
        self.histories.bytes()
    }

    /// The session takes no turn any more.
    pub fn remove(&mut self, session: SessionId) {
        let Some(slot) = self.sessions.remove(&session) else {
            return;
        };
        self.histories.gone(slot.memory.as_ref());
        if let Some(since) = slot.idle_since {
            self.idle.remove(&(since, session));
            self.histories.busy(since, session);
        }
        let open = &mut self.open[usize::from(slot.account.0)];
        *open = open.saturating_sub(1);
        if let Some(of_key) = self.keys.get_mut(&slot.key) {
            of_key.sessions.retain(|other| *other != session);
        }
        self.ring(&slot.key);
        self.forget_if_unused(&slot.key);
    }

    /// Wakes all waiting turns of the key to plan again, first come first served. One alone would not do: it may be bound
    /// to another session, and the turn that could use this one would sleep on. Their number is bounded.
    fn ring(&self, key: &AffinityKey) {
        if let Some(of_key) = self.keys.get(key) {
            of_key.freed.notify_waiters();
        }
    }

    fn forget_if_unused(&mut self, key: &AffinityKey) {
        if self
            .keys
            .get(key)
            .is_some_and(|of| of.sessions.is_empty() && of.opening == 0 && of.waiting == 0)
        {
            self.keys.remove(key);
        }
    }

    /// Every session's lane, for what all are told.
    pub fn lanes(&self) -> Vec<mpsc::Sender<Command>> {
        self.sessions.values().map(|slot| slot.lane.clone()).collect()
    }

    /// The lanes of one account's sessions.
    pub fn lanes_of(&self, account: AccountId) -> Vec<mpsc::Sender<Command>> {
        let of = self.sessions.values().filter(|slot| slot.account == account);
        of.map(|slot| slot.lane.clone()).collect()
    }

    /// A turn is given the session. Its first turn has this model: on an upstream that wants it so, no turn with another
    /// one follows.
    pub fn given(&mut self, session: SessionId, model: Option<&str>) {
        let Some(slot) = self.sessions.get_mut(&session) else {
            return;
        };
        slot.turns += 1;
        if let Some(model) = model {
            slot.model.get_or_insert_with(|| model.into());
        }
    }

    /// No new sessions from now on; a session that becomes idle is retired by its actor.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// True once [`Self::drain`] was called.
    pub fn is_draining(&self) -> bool {
        self.draining
    }

    /// Counts for the gauges: idle, busy, opening, waiting turns.
    pub fn counts(&self) -> [usize; 4] {
        [
            self.idle.len(),
            self.sessions.len() - self.idle.len(),
            self.opening,
            self.waiting,
        ]
    }

    /// Accounts whose transport is sick.
    pub fn sick_transports(&self) -> usize {
        self.transports
            .iter()
            .filter(|transport| transport.is_sick())
            .count()
    }
}
