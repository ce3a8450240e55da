//! The loop in place of the runtime: sessions by key, leases, queues, handshakes, direct HTTP, owners, probes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;
use responses_bridge::bridge::key::{AffinityKey, Hash16, Hasher, KeyKind};
use responses_bridge::bridge::ownership::{AccountId, Owner, Owners, SessionId};
use responses_bridge::bridge::plan::{self, Anchor, Candidate, Direct, Facts, Fit, Plan, Purpose, View};
use responses_bridge::bridge::quarantine::{self, Quarantine, Status, Windows};
use responses_bridge::bridge::session::{self, Retired, Seen, Session};
use responses_bridge::bridge::transport::{self, Handshake, Permission, WebSocketTransport};
use responses_bridge::bridge::turn::{self, Outcome, Turn};
use responses_bridge::bridge::watchdog::{Limits, Transport, Verdict};
use responses_bridge::refusal::Kind;
use responses_bridge::wire::error::{ErrorClass, WireError};
use responses_bridge::wire::head::{self, Head};

use super::history::{Event, History, Incidents, Told, check_silence};
use super::rng::Rng;
use super::upstream::{Create, Upgrade, Upstream, Wire};

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

/// Where a call is.
enum Way {
    Planning,
    Waiting,
    Dialing,
    On(SessionId),
    Http(Box<Turn>),
    Over,
}

struct Call {
    spec: Spec,
    key: AffinityKey,
    account: usize,
    anchor: Option<String>,
    /// The session in whose memory alone the anchor lives.
    unstored: Option<SessionId>,
    way: Way,
    history: History,
    key_probe: Option<quarantine::Probe>,
    transport_probe: Option<transport::Probe>,
    /// Rejected for a reason of the connection, before commit: to be sent again over HTTP.
    again: bool,
    response: Option<String>,
}

struct Live {
    session: Session,
    key: AffinityKey,
    account: usize,
    call: Option<usize>,
    idle_since: Option<Instant>,
    retired: bool,
}

struct Dial {
    call: Option<usize>,
    key: AffinityKey,
    account: usize,
    upgrade: Upgrade,
}

enum Happening {
    Arrives(Spec),
    Leaves(usize),
    Waited(usize),
    Impatient(u64),
    Upgraded(u64),
    Flushed(SessionId, usize),
    Socket(SessionId, Wire),
    Pong(SessionId),
    Durable(usize),
    Http(usize, Wire),
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
    last: BTreeMap<(u8, u8), (String, u64)>,
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

    fn arrives(&mut self, spec: Spec) {
        let (number, now) = (self.calls.len(), self.instant());
        let (key, mut account) = (self.key(&spec), self.account(&spec));
        let mut history = History::new(number, now, !spec.json);
        let last = self
            .last
            .get(&(spec.tenant, spec.conversation))
            .map(|(id, _)| id.clone());
        let anchor = match &spec.anchor {
            Names::Nothing => None,
            Names::Last => last,
            Names::Response(id) => Some(id.clone()),
        };
        let mut unstored = None;
        let mut unknown = false;
        if let Some(id) = &anchor {
            let response = self.hasher.response(&[spec.tenant; 16], id);
            match self.owners.of(response, self.now / 1000) {
                Some(owner) => {
                    account = usize::from(owner.account.0);
                    history.owner = Some(account);
                    unstored = owner.session.filter(|_| !owner.stored);
                }
                None => unknown = true,
            }
        }
        if let Some(after) = spec.leaves {
            self.schedule(after, Happening::Leaves(number));
        }
        self.running.insert(number);
        self.keys.insert(key.hash, key);
        self.calls.push(Call {
            spec,
            key,
            account,
            anchor,
            unstored,
            way: Way::Planning,
            history,
            key_probe: None,
            transport_probe: None,
            again: false,
            response: None,
        });
        if self.draining {
            self.refuse(number, Kind::Draining);
        } else if unknown {
            self.refuse(number, Kind::OwnerUnavailable);
        } else {
            self.plan(number, false);
        }
    }

    fn leaves(&mut self, number: usize) {
        let call = &mut self.calls[number];
        if call.history.end.is_some() {
            return;
        }
        call.history.client_gone = true;
        match call.way {
            Way::On(id) => self.put(id, session::Input::ClientGone),
            Way::Http(_) => self.put_http(number, turn::Input::ClientGone),
            Way::Waiting => self.stop_waiting(number),
            Way::Planning | Way::Dialing | Way::Over => {}
        }
        if self.calls[number].history.end.is_none() {
            // Nothing was sent yet.
            self.free_probes(number);
            self.over(number, Outcome::ClientGone);
        }
    }

    fn stop_waiting(&mut self, number: usize) {
        if let Some(queue) = self.waiting.get_mut(&self.calls[number].key.hash) {
            queue.retain(|waiter| *waiter != number);
        }
    }

    // Plans.

    fn plan(&mut self, number: usize, waited: bool) {
        let now = self.instant();
        let (key, account) = (self.calls[number].key, self.calls[number].account);
        let sockets = self.sockets(account);
        let quarantine = self.quarantine.status(&key, now);
        let transport = &self.transports[account];
        let reuse = transport.permission(now, false, sockets);
        let dial = transport.permission(now, true, sockets);
        assert!(dial != Permission::Yes || reuse == Permission::Yes);
        let idle = self.candidates(number);
        let call = &self.calls[number];
        let alive = |id: &SessionId| self.lives.get(id).is_some_and(|live| !live.retired);
        let facts = Facts {
            http_only: false,
            websocket_only: false,
            background: false,
            frame_length: 1000,
            known_too_big: transport.too_big(now, 1000),
            anchor: call.unstored.map_or(Anchor::Free, Anchor::Unstored),
            keyless: call.spec.keyless,
        };
        let queued = self.waiting.get(&key.hash).map_or(0, VecDeque::len);
        let opening = self.dials.values().filter(|dial| dial.key == key).count();
        let of_key = self
            .lives
            .values()
            .filter(|live| live.key == key && !live.retired)
            .count();
        let view = View {
            quarantine,
            reuse,
            dial,
            idle: &idle,
            sessions: of_key + opening,
            max_per_key: self.max_per_key,
            room: self.sessions() + self.dials.len() < self.max_sessions || self.longest_idle().is_some(),
            anchor_alive: call.unstored.is_some_and(|id| alive(&id)),
            no_more_waiting: waited || queued >= MAX_QUEUE,
        };
        match plan::plan(&facts, &view) {
            Plan::Reuse(id) => self.lease(number, id),
            Plan::Open(purpose) => self.open(number, purpose),
            Plan::Wait => {
                self.calls[number].way = Way::Waiting;
                self.waiting.entry(key.hash).or_default().push_back(number);
                self.schedule(QUEUE_WAIT, Happening::Waited(number));
            }
            Plan::Direct(reason) => self.http(number, reason),
            Plan::Refuse(kind) => self.refuse(number, kind),
        }
    }

    fn candidates(&self, number: usize) -> Vec<Candidate> {
        let call = &self.calls[number];
        let conversation = (call.spec.tenant, call.spec.conversation);
        let extended = self.last.get(&conversation).filter(|_| call.spec.extends);
        let mut found = Vec::new();
        for (id, live) in self.lives.iter().filter(|(_, live)| live.key == call.key) {
            let Some(last_used) = live.idle_since.filter(|_| !live.retired) else {
                continue;
            };
            let fit = match live.session.memory() {
                None => Fit::Blank,
                Some(memory) if call.anchor.as_deref() == Some(&memory.response_id) => Fit::Named,
                Some(memory) if extended.is_some_and(|(_, seen)| memory.input == fingerprint(*seen)) => {
                    Fit::Extended
                }
                Some(_) => Fit::Other,
            };
            let alone = live.session.memory().is_some_and(|memory| !memory.stored);
            if self.instant() < live.session.too_old_at() || (fit == Fit::Named && alone) {
                found.push(Candidate {
                    session: *id,
                    fit,
                    last_used,
                });
            }
        }
        found
    }

    fn sockets(&self, account: usize) -> usize {
        self.lives
            .values()
            .filter(|live| live.account == account && !live.retired)
            .count()
    }

    fn longest_idle(&self) -> Option<SessionId> {
        let idle = self.lives.iter().filter(|(_, live)| !live.retired);
        idle.filter_map(|(id, live)| Some((live.idle_since?, *id)))
            .min()
            .map(|(_, id)| id)
    }

    fn lease(&mut self, number: usize, id: SessionId) {
        let call = &mut self.calls[number];
        call.way = Way::On(id);
        let lease = session::Input::Lease {
            turn: turn_policy(Transport::WebSocket, call.spec.json),
            arrived: call.history.arrived,
            seen: Some(fingerprint(number as u64)),
            stored: !call.spec.unstored,
        };
        if let Some(live) = self.lives.get_mut(&id) {
            assert!(live.call.replace(number).is_none(), "one turn at a time");
            live.idle_since = None;
        }
        self.put(id, lease);
    }

    fn open(&mut self, number: usize, purpose: Purpose) {
        let now = self.instant();
        let call = &mut self.calls[number];
        let (key, account) = (call.key, call.account);
        call.way = Way::Dialing;
        if matches!(purpose, Purpose::ProbeKey | Purpose::ProbeBoth) {
            call.key_probe = self.quarantine.probe(&key, now);
            assert!(call.key_probe.is_some());
            call.history.probe = true;
            self.incidents.push(key, now, Event::Probe);
        }
        let transport = &mut self.transports[account];
        if matches!(purpose, Purpose::ProbeTransport | Purpose::ProbeBoth) {
            call.transport_probe = transport.begin_probe(now);
            assert!(call.transport_probe.is_some());
            call.history.probe = true;
        }
        transport.handshake_began();
        let (after, upgrade) = self.upstreams[account].upgrade(&mut self.rng);
        self.numbers += 1;
        let dial = self.numbers;
        self.dials.insert(
            dial,
            Dial {
                call: Some(number),
                key,
                account,
                upgrade,
            },
        );
        if self.sessions() + self.dials.len() > self.max_sessions
            && let Some(id) = self.longest_idle()
        {
            self.put(id, session::Input::Retire(Retired::Evicted));
        }
        self.schedule(after, Happening::Upgraded(dial));
        self.schedule(PATIENCE, Happening::Impatient(dial));
    }

    /// The slow handshake goes on in the background; its turn does not wait for it.
    fn impatient(&mut self, dial: u64) {
        let waiting = self.dials.get_mut(&dial).and_then(|dial| dial.call.take());
        if let Some(number) = waiting.filter(|number| matches!(self.calls[*number].way, Way::Dialing)) {
            self.free_probes(number);
            self.http(number, Direct::UpgradeSlow);
        }
    }

    fn upgraded(&mut self, dial: u64) {
        let Some(dial) = self.dials.remove(&dial) else {
            return;
        };
        let now = self.instant();
        let sockets = self.sockets(dial.account);
        let how = match dial.upgrade {
            Upgrade::Opens(_) => Handshake::Opened,
            Upgrade::Answers(status) => Handshake::Refused { status, sockets },
            Upgrade::Fails | Upgrade::Hangs => Handshake::Failed,
        };
        self.transports[dial.account].handshake_ended(now, how);
        let call = dial
            .call
            .filter(|number| matches!(self.calls[*number].way, Way::Dialing));
        if how != Handshake::Opened {
            if let Some(number) = call {
                self.free_probes(number);
                self.http(number, Direct::UpgradeRefused);
            }
            self.wake(dial.key);
            return;
        }
        self.numbers += 1;
        let id = SessionId(self.numbers);
        self.upstreams[dial.account].opened(id.0);
        let live = Live {
            session: Session::new(session_policy(), now),
            key: dial.key,
            account: dial.account,
            call: None,
            idle_since: Some(now),
            retired: false,
        };
        self.lives.insert(id, live);
        match call {
            _ if self.draining => self.put(id, session::Input::Retire(Retired::Drained)),
            Some(number) => self.lease(number, id),
            None => self.wake(dial.key),
        }
    }

    /// Something of the key became free: its waiters plan again, in their order.
    fn wake(&mut self, key: AffinityKey) {
        let waiters = self
            .waiting
            .get_mut(&key.hash)
            .map(std::mem::take)
            .unwrap_or_default();
        for number in waiters {
            self.calls[number].way = Way::Planning;
            self.plan(number, false);
        }
    }

    fn free_probes(&mut self, number: usize) {
        let now = self.instant();
        let call = &mut self.calls[number];
        let (key, account) = (call.key, call.account);
        if let Some(probe) = call.transport_probe.take() {
            self.transports[account].probe_freed(probe, now);
        }
        if let Some(probe) = call.key_probe.take()
            && self.quarantine.freed(probe, now)
        {
            self.incidents.push(key, now, Event::ProbeFreed);
        }
    }

    // Sessions.

    fn put(&mut self, id: SessionId, input: session::Input) {
        let now = self.instant();
        if let Some(live) = self.lives.get_mut(&id) {
            live.session.handle(now, input);
            self.poll(id);
        }
    }

    fn arrived(&mut self, id: SessionId, wire: Wire) {
        let Some(live) = self.lives.get(&id) else { return };
        if !self.upstreams[live.account].answers_pings(id.0) {
            return;
        }
        match wire {
            Wire::Frame(text) => {
                let framed = head::read(text.as_bytes());
                self.note_terminal(live.call, &framed.head);
                let input = session::Input::Event {
                    name: Bytes::copy_from_slice(framed.event.as_bytes()),
                    data: Bytes::copy_from_slice(text.as_bytes()),
                    head: framed.head,
                };
                self.put(id, input);
            }
            Wire::Close { too_big } => {
                if too_big {
                    let (account, now) = (live.account, self.instant());
                    self.transports[account].refused_size(now, 50_000);
                }
                self.put(id, session::Input::Closed { too_big });
            }
            Wire::Headers | Wire::Answer(_) | Wire::Lost | Wire::Refused => {}
        }
    }

    fn note_terminal(&mut self, call: Option<usize>, head: &Head) {
        let now = self.instant();
        if let (Some(number), Head::Terminal(_)) = (call, head) {
            self.calls[number].history.terminal_at.get_or_insert(now);
        }
    }

    fn poll(&mut self, id: SessionId) {
        while let Some(output) = self.lives.get_mut(&id).and_then(|live| live.session.poll()) {
            self.act(id, output);
        }
    }

    fn act(&mut self, id: SessionId, output: session::Output) {
        let now = self.instant();
        let Some(live) = self.lives.get_mut(&id) else {
            return;
        };
        let (key, account, call) = (live.key, live.account, live.call);
        match output {
            session::Output::Send => {
                let number = call.expect("a send has a call");
                self.send(number, id);
            }
            session::Output::Ping => {
                if self.upstreams[account].answers_pings(id.0) {
                    self.schedule(30, Happening::Pong(id));
                }
            }
            session::Output::Close(_) => {
                if self.upstreams[account].answers_pings(id.0) {
                    self.schedule(20, Happening::Socket(id, Wire::Close { too_big: false }));
                }
            }
            session::Output::Turn(output) => {
                let number = call.expect("an output has a call");
                self.tell(number, output);
            }
            session::Output::Unsent => {
                let number = live.call.take().expect("an unsent turn has a call");
                self.free_probes(number);
                match self.draining {
                    true => self.refuse(number, Kind::Draining),
                    false => self.plan(number, false),
                }
            }
            session::Output::Idle => {
                live.idle_since = Some(now);
                live.call = None;
                self.wake(key);
            }
            session::Output::Retired(reason) => {
                (live.retired, live.idle_since, live.call) = (true, None, None);
                self.incidents.push(key, now, Event::SessionRetired(reason));
                if let Retired::Silent(_) = reason {
                    self.trip(key, account);
                }
                self.wake(key);
            }
            session::Output::Gone => {
                self.lives.remove(&id);
                self.upstreams[account].closed(id.0);
            }
        }
    }

    /// INV-5: a silent session costs its own key and no other, unless it is the third of its account.
    fn trip(&mut self, key: AffinityKey, account: usize) {
        let now = self.instant();
        let keys: Vec<_> = self.keys.values().copied().collect();
        let statuses = |quarantine: &mut Quarantine| -> Vec<_> {
            keys.iter().map(|key| quarantine.status(key, now)).collect()
        };
        let before = statuses(&mut self.quarantine);
        let tripped = self.quarantine.trip(key, now).expect("quarantine is on");
        let window = tripped.window;
        self.incidents.push(key, now, Event::QuarantineOpened { window });
        if let Some(evicted) = tripped.evicted {
            self.incidents.push(evicted, now, Event::Evicted);
        }
        let after = statuses(&mut self.quarantine);
        for (other, (before, after)) in keys.iter().zip(before.iter().zip(&after)) {
            if *other != key && tripped.evicted != Some(*other) {
                assert_eq!(before, after, "another key was touched");
            }
        }
        self.transports[account].silent(key, now);
    }

    fn send(&mut self, number: usize, id: SessionId) {
        let call = &mut self.calls[number];
        call.history.sends(Transport::WebSocket, call.account);
        let create = Create {
            call: number,
            anchor: call.anchor.as_deref(),
            store: !call.spec.unstored,
            stream: true,
        };
        let arrives = self.upstreams[call.account].create(self.now, id.0, create, &mut self.rng);
        for (at, wire) in arrives {
            self.schedule(at - self.now, Happening::Socket(id, wire));
        }
        let flush = 1 + self.rng.below(20);
        self.schedule(flush, Happening::Flushed(id, number));
    }

    // Direct HTTP.

    fn http(&mut self, number: usize, reason: Direct) {
        let now = self.instant();
        let call = &mut self.calls[number];
        assert!(
            call.key_probe.is_none() && call.transport_probe.is_none(),
            "a probe goes by WebSocket"
        );
        call.history.direct = Some(reason);
        if reason == Direct::Quarantined {
            self.incidents.push(call.key, now, Event::HttpFallback);
        }
        let create = Create {
            call: number,
            anchor: call.anchor.as_deref(),
            store: !call.spec.unstored,
            stream: !call.spec.json,
        };
        let arrives = self.upstreams[call.account].post(self.now, create, &mut self.rng);
        let mut turn = Turn::new(
            turn_policy(Transport::Http, call.spec.json),
            call.history.arrived,
            None,
        );
        if !matches!(arrives.first(), Some((_, Wire::Refused))) {
            call.history.sends(Transport::Http, call.account);
            turn.handle(now, turn::Input::Wrote);
            turn.handle(now, turn::Input::Flushed);
        }
        call.way = Way::Http(turn.into());
        for (at, wire) in arrives {
            self.schedule(at - self.now, Happening::Http(number, wire));
        }
        self.poll_http(number);
    }

    fn arrived_http(&mut self, number: usize, wire: Wire) {
        let input = match wire {
            Wire::Headers => turn::Input::Headers,
            Wire::Frame(text) => {
                let framed = head::read(text.as_bytes());
                let running = matches!(self.calls[number].way, Way::Http(_));
                self.note_terminal(running.then_some(number), &framed.head);
                turn::Input::Event {
                    name: Bytes::copy_from_slice(framed.event.as_bytes()),
                    data: Bytes::copy_from_slice(text.as_bytes()),
                    head: framed.head,
                }
            }
            Wire::Answer(status) => {
                let body = br#"{"error":{"message":"m"}}"#;
                turn::Input::Rejected(WireError::from_http(status, &http::HeaderMap::new(), body).into())
            }
            Wire::Lost | Wire::Close { .. } => turn::Input::Lost(Kind::Truncated),
            Wire::Refused => turn::Input::Lost(Kind::ConnectFailed),
        };
        self.put_http(number, input);
    }

    fn put_http(&mut self, number: usize, input: turn::Input) {
        let now = self.instant();
        if let Way::Http(turn) = &mut self.calls[number].way {
            turn.handle(now, input);
            self.poll_http(number);
        }
    }

    fn poll_http(&mut self, number: usize) {
        while let Way::Http(turn) = &mut self.calls[number].way {
            let Some(output) = turn.poll() else { return };
            self.tell(number, output);
        }
    }

    // Calls.

    fn tell(&mut self, number: usize, output: turn::Output) {
        let now = self.instant();
        let call = &mut self.calls[number];
        let told = match output {
            turn::Output::Accepted(created) => {
                self.accepted(number, created.response_id.as_deref());
                return;
            }
            turn::Output::End(end) => {
                self.ended(number, end);
                return;
            }
            turn::Output::Reject(error)
                if error.class() == ErrorClass::ConnectionLimit && matches!(call.way, Way::On(_)) =>
            {
                call.again = true;
                return;
            }
            turn::Output::Commit => Told::Commit,
            turn::Output::Forward { name, data } => {
                let text = String::from_utf8(data.to_vec()).unwrap();
                let own = format!(r#""call":{number}"#);
                assert!(
                    text.contains(&format!("{own},")) || text.contains(&format!("{own}}}")),
                    "call {number} got another's event: {text}"
                );
                Told::Event(String::from_utf8(name.to_vec()).unwrap())
            }
            turn::Output::Comment => Told::Comment,
            turn::Output::Keepalive => Told::Keepalive,
            turn::Output::Fail { code, .. } => Told::Fail(String::from_utf8(code.to_vec()).unwrap()),
            turn::Output::Reject(error) => Told::Reject(error.http_status()),
            turn::Output::Refuse(refusal) => Told::Refuse(refusal.kind),
            turn::Output::Json(object) => {
                let text = String::from_utf8(object.to_vec()).unwrap();
                assert!(
                    text.contains(&format!(r#""call":{number}}}"#)),
                    "another's answer: {text}"
                );
                Told::Json
            }
            turn::Output::Tear => Told::Torn,
        };
        call.history.tell(now, told);
    }

    fn accepted(&mut self, number: usize, response: Option<&str>) {
        let now = self.instant();
        let call = &mut self.calls[number];
        if let Some(probe) = call.key_probe.take()
            && self.quarantine.cleared(probe, now).is_some()
        {
            self.incidents.push(call.key, now, Event::Cleared);
        }
        if let Some(probe) = call.transport_probe.take() {
            self.transports[call.account].probe_succeeded(probe);
        }
        let Some(id) = response else { return };
        let owner = Owner {
            account: AccountId(call.account as u16),
            session: match call.way {
                Way::On(session) => Some(session),
                _ => None,
            },
            key: Some(call.key),
            stored: !call.spec.unstored,
            expires_at: self.now / 1000 + 30 * 86_400,
        };
        call.response = Some(id.to_owned());
        let response = self.hasher.response(&[call.spec.tenant; 16], id);
        self.owners.record(response, owner);
        self.schedule(self.store_takes, Happening::Durable(number));
    }

    fn durable(&mut self, number: usize) {
        self.calls[number].history.durable = true;
        match self.calls[number].way {
            Way::On(id) if self.lives.get(&id).is_some_and(|live| live.call == Some(number)) => {
                self.put(id, session::Input::Durable);
            }
            Way::Http(_) => self.put_http(number, turn::Input::Durable),
            _ => {}
        }
    }

    fn ended(&mut self, number: usize, end: turn::TurnEnd) {
        let now = self.instant();
        let call = &mut self.calls[number];
        check_silence(&call.history, now, &end, CREATED);
        call.history.ends.push(end);
        if let Some(Verdict::Silent(_)) = end.verdict {
            self.incidents.push(call.key, now, Event::CreatedTimeout);
            // The trip that follows is the probe's answer.
            (call.key_probe, call.transport_probe) = (None, None);
        }
        let call = &mut self.calls[number];
        if call.again {
            call.again = false;
            if let Some(sent) = call.history.sent.last_mut() {
                sent.rejected = true;
            }
            self.free_probes(number);
            self.http(number, Direct::ConnectionLimit);
            return;
        }
        if matches!(end.outcome, Outcome::Completed | Outcome::Incomplete)
            && let Some(id) = call.response.clone()
        {
            let conversation = (call.spec.tenant, call.spec.conversation);
            self.last.insert(conversation, (id, number as u64));
        }
        self.free_probes(number);
        self.over(number, end.outcome);
    }

    fn refuse(&mut self, number: usize, kind: Kind) {
        let now = self.instant();
        self.stop_waiting(number);
        self.free_probes(number);
        self.calls[number].history.tell(now, Told::Refuse(kind));
        self.over(number, Outcome::Bridge(kind));
    }

    fn over(&mut self, number: usize, outcome: Outcome) {
        let now = self.instant();
        let call = &mut self.calls[number];
        call.way = Way::Over;
        self.running.remove(&number);
        call.history.ends(now, outcome);
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

impl Call {
    fn waiting_since(&self) -> Option<Instant> {
        self.history.first.filter(|_| self.spec.stuck && !self.spec.json)
    }
}

fn fingerprint(input: u64) -> Seen {
    let mut hash = [0; 16];
    hash[..8].copy_from_slice(&input.to_le_bytes());
    Seen { length: 1, hash }
}

fn session_policy() -> session::Policy {
    session::Policy {
        ping: 25 * S,
        dead_after: 60 * S,
        reuse_check_after: 30 * S,
        pong: S,
        idle_ttl: 300 * S,
        max_age: 900 * S,
        close: S,
    }
}

fn turn_policy(transport: Transport, json: bool) -> turn::Policy {
    turn::Policy {
        limits: Limits {
            write: 30 * S,
            created: CREATED,
            idle: 900 * S,
            request: 7200 * S,
            first_byte: 60 * S,
            first_event: 60 * S,
            between_events: 900 * S,
        },
        transport,
        stream: !json,
        whole: transport == Transport::Http && json,
        commit_after: 15 * S,
        heartbeat: 10 * S,
        slow_client: 120 * S,
        items_cap: 1 << 20,
    }
}
