//! The loop in place of the runtime: sessions by key, leases, queues, handshakes, direct HTTP, owners, probes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;
use responses_bridge::bridge::key::{AffinityKey, Hash16, Hasher, KeyKind};
use responses_bridge::bridge::ownership::{AccountId, Owner, Owners, SessionId};
use responses_bridge::bridge::plan::{self, Anchor, Candidate, Direct, Facts, Fit, Plan, Purpose, View};
use responses_bridge::bridge::quarantine::{self, Quarantine, Status, Windows};
use responses_bridge::bridge::session::{self, Retired, Session};
use responses_bridge::bridge::transport::{self, Handshake, Permission, WebSocketTransport};
use responses_bridge::bridge::turn::{self, Outcome, Turn};
use responses_bridge::bridge::watchdog::{Limits, Transport, Verdict};
use responses_bridge::refusal::Kind;
use responses_bridge::wire::error::{ErrorClass, WireError};
use responses_bridge::wire::head::{self, Head};

use super::history::{Event, History, Incidents, Told, check_silence};
use super::rng::Rng;
use super::upstream::{Create, Upgrade, Upstream, Wire};

mod calls;
mod direct;
mod parts;
mod sessions;

use parts::{Call, Dial, Happening, Live, Way, session_policy, turn_policy};

const S: Duration = Duration::from_secs(1);
pub const CREATED: Duration = Duration::from_secs(60);
const QUEUE_WAIT: u64 = 2_000;
const PATIENCE: u64 = 2_000;
const MAX_QUEUE: usize = 8;
const MAX_OWNERS: usize = 200;
const MAX_KEYS: usize = 16;

/// What a client asks for. `Spec::default()` is a streamed, stored turn of conversation 0 without an anchor.
#[derive(Clone, Debug)]
pub struct Spec {
    pub tenant: u8,
    pub conversation: u8,
    pub keyless: bool,
    pub json: bool,
    /// `store:false`: the response lives in its socket's memory only.
    pub unstored: bool,
    pub anchor: Names,
    /// The input extends the conversation's last one.
    pub extends: bool,
    /// The client leaves after so many milliseconds.
    pub leaves: Option<u64>,
    /// The client takes no byte.
    pub stuck: bool,
}

impl Default for Spec {
    fn default() -> Self {
        Spec {
            tenant: 0,
            conversation: 0,
            keyless: false,
            json: false,
            unstored: false,
            anchor: Names::Nothing,
            extends: true,
            leaves: None,
            stuck: false,
        }
    }
}

/// What `previous_response_id` names.
#[derive(Clone, Debug, PartialEq)]
pub enum Names {
    Nothing,
    /// The last response of the tenant's own conversation, if there is one.
    Last,
    Response(String),
}

pub struct World {
    pub rng: Rng,
    start: Instant,
    /// Milliseconds since `start`.
    pub now: u64,
    happenings: BTreeMap<(u64, u64), Happening>,
    order: u64,
    hasher: Hasher,
    pub quarantine: Quarantine,
    pub transports: Vec<WebSocketTransport>,
    pub upstreams: Vec<Upstream>,
    pub owners: Owners,
    lives: BTreeMap<SessionId, Live>,
    dials: BTreeMap<u64, Dial>,
    calls: Vec<Call>,
    /// Those that are not over.
    running: BTreeSet<usize>,
    keys: BTreeMap<Hash16, AffinityKey>,
    waiting: BTreeMap<Hash16, VecDeque<usize>>,
    last: BTreeMap<(u8, u8), String>,
    incidents: Incidents,
    numbers: u64,
    pub max_sessions: usize,
    pub max_per_key: usize,
    /// Milliseconds until an owner is durable.
    pub store_takes: u64,
    draining: bool,
}

impl World {
    pub fn new(seed: u64, accounts: usize) -> Self {
        let transport = transport::Policy {
            span: 60 * S,
            open: 30 * S,
            max_open: 600 * S,
            memory: 600 * S,
            max_handshakes: 2,
        };
        let windows = Windows {
            window: 60 * S,
            max_window: 600 * S,
            max_keys: MAX_KEYS,
        };
        World {
            rng: Rng::new(seed),
            start: Instant::now(),
            now: 0,
            happenings: BTreeMap::new(),
            order: 0,
            hasher: Hasher::new([9; 32]),
            quarantine: Quarantine::new(windows, 0),
            transports: (0..accounts)
                .map(|_| WebSocketTransport::new(transport))
                .collect(),
            upstreams: (0..accounts).map(|_| Upstream::default()).collect(),
            owners: Owners::new(MAX_OWNERS),
            lives: BTreeMap::new(),
            dials: BTreeMap::new(),
            calls: Vec::new(),
            running: BTreeSet::new(),
            keys: BTreeMap::new(),
            waiting: BTreeMap::new(),
            last: BTreeMap::new(),
            incidents: Incidents::default(),
            numbers: 0,
            max_sessions: 8,
            max_per_key: 2,
            store_takes: 5,
            draining: false,
        }
    }

    // What a test sees.

    pub fn instant(&self) -> Instant {
        self.start + Duration::from_millis(self.now)
    }

    pub fn key(&self, spec: &Spec) -> AffinityKey {
        let account = self.account(spec);
        let (kind, value) = match spec.keyless {
            true => (KeyKind::Keyless, [spec.tenant, account as u8, 0]),
            false => (
                KeyKind::Thread,
                [spec.tenant, account as u8, 1 + spec.conversation],
            ),
        };
        let hash = self.hasher.hash("affinity", &[&value]);
        AffinityKey { kind, hash }
    }

    fn account(&self, spec: &Spec) -> usize {
        usize::from(spec.conversation) % self.transports.len()
    }

    pub fn history(&self, call: usize) -> &History {
        &self.calls[call].history
    }

    pub fn histories(&self) -> impl Iterator<Item = &History> {
        self.calls.iter().map(|call| &call.history)
    }

    /// Sessions that may take turns, or have one.
    pub fn sessions(&self) -> usize {
        self.lives.values().filter(|live| !live.retired).count()
    }

    pub fn response_of(&self, call: usize) -> Option<&str> {
        self.calls[call].response.as_deref()
    }

    pub fn events_of(&self, spec: &Spec) -> Vec<Event> {
        self.incidents.of(self.key(spec))
    }

    pub fn status(&mut self, spec: &Spec) -> Status {
        let (key, now) = (self.key(spec), self.instant());
        self.quarantine.status(&key, now)
    }

    // What a test does.

    /// A call arrives now. Its number.
    pub fn call(&mut self, spec: Spec) -> usize {
        let number = self.calls.len();
        self.arrives(spec);
        self.check();
        number
    }

    /// A call arrives now, and the clock runs until it is over.
    pub fn serve(&mut self, spec: Spec) -> usize {
        let number = self.call(spec);
        while self.calls[number].history.end.is_none() {
            self.run(100);
        }
        number
    }

    pub fn arrive_after(&mut self, after: u64, spec: Spec) {
        self.schedule(after, Happening::Arrives(spec));
    }

    /// Lets `after` milliseconds pass.
    pub fn run(&mut self, after: u64) {
        let until = self.now + after;
        let mut at_once = 0;
        while let Some(next) = self.next().filter(|next| *next <= until) {
            at_once = if next == self.now { at_once + 1 } else { 0 };
            assert!(at_once < 10_000, "the clock stands still");
            self.now = self.now.max(next);
            self.step();
            self.check();
        }
        self.now = until;
    }

    /// The machine sleeps and wakes; `cut`: the network has dropped every socket meanwhile, without a word.
    pub fn sleep(&mut self, cut: bool) {
        if cut {
            self.upstreams.iter_mut().for_each(Upstream::cut_all);
        }
        for session in self.lives.keys().copied().collect::<Vec<_>>() {
            self.put(session, session::Input::Slept);
        }
    }

    /// Stops taking calls and lets running turns finish.
    pub fn drain(&mut self) {
        self.draining = true;
        for number in self.running.iter().copied().collect::<Vec<_>>() {
            if matches!(self.calls[number].way, Way::Waiting | Way::Dialing) {
                self.refuse(number, Kind::Draining);
            }
        }
        for session in self.lives.keys().copied().collect::<Vec<_>>() {
            self.put(session, session::Input::Retire(Retired::Drained));
        }
    }

    /// Ends what is still running.
    pub fn cut(&mut self) {
        for session in self.lives.keys().copied().collect::<Vec<_>>() {
            self.put(session, session::Input::Cut);
        }
        for number in self.running.iter().copied().collect::<Vec<_>>() {
            self.put_http(number, turn::Input::Cut);
        }
    }

    // The loop.

    fn schedule(&mut self, after: u64, happening: Happening) {
        self.order += 1;
        self.happenings.insert((self.now + after, self.order), happening);
    }

    fn millis(&self, at: Instant) -> u64 {
        let passed = at.saturating_duration_since(self.start);
        u64::try_from(passed.as_nanos().div_ceil(1_000_000)).unwrap()
    }

    fn deadline(&self) -> Option<u64> {
        let sessions = self.lives.values().filter_map(|live| live.session.deadline());
        let turns = self
            .running
            .iter()
            .filter_map(|number| match &self.calls[*number].way {
                Way::Http(turn) => turn.deadline(),
                _ => None,
            });
        sessions
            .chain(turns)
            .min()
            .map(|at| self.millis(at).max(self.now))
    }

    fn next(&self) -> Option<u64> {
        let happening = self.happenings.keys().next().map(|(at, _)| *at);
        [happening, self.deadline()].into_iter().flatten().min()
    }

    /// What arrived is looked at before any deadline is judged, as in the runtime.
    fn step(&mut self) {
        match self
            .happenings
            .first_entry()
            .filter(|entry| entry.key().0 <= self.now)
        {
            Some(entry) => {
                let happening = entry.remove();
                self.happens(happening);
            }
            None => self.tick(),
        }
    }

    fn tick(&mut self) {
        let now = self.instant();
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        for id in self.lives.keys().copied().collect::<Vec<_>>() {
            let Some(live) = self.lives.get_mut(&id) else {
                continue;
            };
            if due(live.session.deadline()) {
                let since = live.call.and_then(|call| self.calls[call].waiting_since());
                live.session.tick(now, since);
                let next = live.session.deadline();
                assert!(next.is_none_or(|at| at >= now), "a wait in the past");
                self.poll(id);
            }
        }
        for number in self.running.iter().copied().collect::<Vec<_>>() {
            let since = self.calls[number].waiting_since();
            if let Way::Http(turn) = &mut self.calls[number].way
                && due(turn.deadline())
            {
                turn.tick(now, since);
                self.poll_http(number);
            }
        }
    }

    fn happens(&mut self, happening: Happening) {
        match happening {
            Happening::Arrives(spec) => self.arrives(spec),
            Happening::Leaves(call) => self.leaves(call),
            Happening::Waited(call) => {
                if matches!(self.calls[call].way, Way::Waiting) {
                    self.stop_waiting(call);
                    self.plan(call, true);
                }
            }
            Happening::Impatient(dial) => self.impatient(dial),
            Happening::Upgraded(dial) => self.upgraded(dial),
            Happening::Flushed(id, call) => {
                if self.lives.get(&id).is_some_and(|live| live.call == Some(call)) {
                    let now = self.instant();
                    if let Some(sent) = self.calls[call].history.sent.last_mut() {
                        sent.flushed = Some(now);
                    }
                    self.put(id, session::Input::Flushed);
                }
            }
            Happening::Socket(id, wire) => self.arrived(id, wire),
            Happening::Pong(id) => self.put(id, session::Input::Alive { pong: true }),
            Happening::Durable(call) => self.durable(call),
            Happening::Http(call, wire) => self.arrived_http(call, wire),
        }
    }

    // What holds at every moment.

    fn check(&self) {
        assert!(self.sessions() <= self.max_sessions, "more sessions than may be");
        assert!(self.quarantine.len() <= MAX_KEYS && self.owners.len() <= MAX_OWNERS);
        for (key, queue) in &self.waiting {
            assert!(queue.len() <= MAX_QUEUE, "{key}: a queue too long");
        }
        for (number, call) in self.running.iter().map(|number| (*number, &self.calls[*number])) {
            let on = self
                .lives
                .values()
                .filter(|live| live.call == Some(number))
                .count();
            assert_eq!(
                on,
                usize::from(matches!(call.way, Way::On(_))),
                "call {number} on {on} sessions"
            );
        }
    }

    /// When everything is over: nothing is held, nobody waits, every incident reads as it must.
    pub fn check_rest(&self) {
        for call in &self.calls {
            assert!(
                call.history.end.is_some(),
                "call {} never ended",
                call.history.number
            );
            assert!(call.history.took() <= 7_205 * S, "call {}", call.history.number);
        }
        assert!(self.waiting.values().all(VecDeque::is_empty), "somebody waits");
        assert!(self.dials.is_empty(), "a handshake goes on");
        assert!(
            self.lives.values().all(|live| live.call.is_none()),
            "a lease is held"
        );
        self.incidents.check();
    }
}
