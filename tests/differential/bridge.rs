//! The bridge without its I/O: the real registry, sessions, comparing, splicing and recording, with a few lines in place of
//! the runtime's tasks, over a clock of its own.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::HeaderMap;
use responses_bridge::bridge::continuation::{
    Compared, Digester, Draft, Extends, Outline, Remembered, window,
};
use responses_bridge::bridge::key::{self, AffinityKey, Hasher, KeyKind};
use responses_bridge::bridge::ownership::{AccountId, Owner, Owners, SessionId};
use responses_bridge::bridge::plan::{Anchor, Facts, MAX_FRAME};
use responses_bridge::bridge::quarantine::{self, Quarantine, Status, Windows};
use responses_bridge::bridge::session::{self, Retired, Session};
use responses_bridge::bridge::transport::{self, Handshake, Permission, WebSocketTransport};
use responses_bridge::bridge::turn::{self, Recording, Turn, TurnEnd};
use responses_bridge::bridge::watchdog::{Limits, Transport, Verdict};
use responses_bridge::runtime::registry::{Ask, Caps, Command, LANE, Registry, Taken};
use responses_bridge::wire::error::ErrorClass;
use responses_bridge::wire::head::{self, Created};
use responses_bridge::wire::request::{Create, read_create};
use tokio::sync::mpsc;

use crate::agent::Request;
use crate::dice::Dice;
use crate::tally::Tally;
use crate::upstream::{self, Answer, Asked, Played, Upstream};

const S: Duration = Duration::from_secs(1);
/// How long a silent turn is waited for.
pub const CREATED: Duration = Duration::from_secs(60);
pub const MAX_AGE: Duration = Duration::from_secs(900);
pub const IDLE_TTL: Duration = Duration::from_secs(300);
const ACCOUNT: AccountId = AccountId(0);

pub struct Bridge {
    digester: Digester,
    hasher: Hasher,
    registry: Registry,
    lives: BTreeMap<SessionId, Live>,
    told: HashMap<SessionId, Vec<Told>>,
    now: Instant,
    upstream: Upstream,
    sockets: usize,
    pub tally: Tally,
}

struct Live {
    session: Session,
    lane: mpsc::Sender<Command>,
    /// Kept, so that the lane is open.
    _inbox: mpsc::Receiver<Command>,
    key: AffinityKey,
    socket: usize,
    /// Whose turns it carries.
    tenant: Option<u8>,
    busy: bool,
    retired: bool,
    /// The peer is gone, and nobody has noticed.
    dead: bool,
}

/// What a session says of its turn.
enum Told {
    Send,
    Unsent,
    Accepted(Created),
    Rejected(ErrorClass),
    Ended(TurnEnd),
}

/// A call on its way.
pub struct Call {
    asked: Asked,
    calm_since: Option<String>,
    create: Create,
    outline: Option<Outline>,
    key: AffinityKey,
    anchor: Anchor,
    waited: bool,
    in_full: bool,
    on: Option<SessionId>,
    continued: Option<(Box<str>, Extends)>,
    key_probe: Option<quarantine::Probe>,
    transport_probe: Option<transport::Probe>,
    answer: Answer,
    /// What the upstream took, and on which socket.
    taken: Option<upstream::Taken>,
    accepted: usize,
}

/// How far a call has come.
pub enum Step {
    /// The upstream has it.
    Sent(Box<Call>),
    /// All of its sessions are busy.
    Waits(Box<Call>),
    Over(Outcome),
}

/// What the client gets.
pub enum Outcome {
    Completed {
        id: String,
        output: Vec<serde_json::Value>,
    },
    /// Incomplete, or what the client cannot go on from by the response's name.
    Partial {
        output: Vec<serde_json::Value>,
    },
    Failed,
}

impl Bridge {
    pub fn new(dice: &mut Dice) -> Bridge {
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
            max_keys: 16,
        };
        let caps = Caps {
            max_sessions: 3 + dice.below(6),
            max_per_key: 1 + dice.below(4),
            max_queue: 4,
        };
        Bridge {
            digester: Digester::new(&[3; 32]),
            hasher: Hasher::new([9; 32]),
            registry: Registry::new(
                caps,
                0,
                Quarantine::new(windows, 0),
                Owners::new(64),
                vec![WebSocketTransport::new(transport)],
            ),
            lives: BTreeMap::new(),
            told: HashMap::new(),
            now: Instant::now(),
            upstream: Upstream::default(),
            sockets: 0,
            tally: Tally::default(),
        }
    }

    // Calls.

    pub fn call(&mut self, request: Request, answer: Answer) -> Result<Box<Call>, String> {
        let tenant = [request.tenant; 16];
        let body =
            serde_json::from_str(&request.body).map_err(|fault| format!("{fault}: {}", request.body))?;
        let create = read_create(request.body.into()).map_err(|fault| format!("refused: {fault}"))?;
        let headers: &HeaderMap = &request.headers;
        let named = window(headers, &create);
        if named.as_deref() != request.window.as_deref().map(str::as_bytes) {
            return Err("another window was read".into());
        }
        let outline = Outline::of(&self.digester, &create, named.as_deref());
        let names = create.previous_response_id.as_deref();
        let owner = names.and_then(|id| self.registry.owners.of(self.hasher.response(&tenant, id), 1));
        let mut key = key::derive(&self.hasher, &tenant, "p", headers, &create);
        let opening = outline.as_ref().filter(|_| key.kind == KeyKind::Keyless);
        if let Some(opening) = opening.and_then(|outline| outline.opening(&self.digester, &create)) {
            key = key::by_content(&self.hasher, &tenant, "p", &create.model, opening);
        }
        let anchor = match owner {
            Some(Owner {
                stored: false,
                session: Some(session),
                ..
            }) => Anchor::Unstored(session),
            _ => Anchor::Free,
        };
        self.tally.calls += 1;
        Ok(Box::new(Call {
            asked: Asked {
                body,
                window: request.window,
                tenant: request.tenant,
            },
            calm_since: request.calm_since,
            create,
            outline,
            key: owner.and_then(|owner| owner.key).unwrap_or(key),
            anchor,
            waited: false,
            in_full: false,
            on: None,
            continued: None,
            key_probe: None,
            transport_probe: None,
            answer,
            taken: None,
            accepted: 0,
        }))
    }

    /// Plans a call and sends it.
    pub fn begin(&mut self, mut call: Box<Call>, may_wait: bool, dice: &mut Dice) -> Result<Step, String> {
        for _ in 0..16 {
            self.now += Duration::from_millis(1);
            let must = self.must_continue(&call);
            let compared = self.compare(&call);
            let taken = self.registry.take(self.now, &ask(&call, &compared));
            let extended = !compared.extends.is_empty();
            let rejected = compared.rejected;
            call.continued = None;
            match taken {
                Taken::Reuse { session, anchor, .. } => {
                    call.continued = anchor.zip(compared.of(session));
                    if must && call.continued.is_none() {
                        return Err(format!("not continued, though nothing was changed: {rejected:?}"));
                    }
                    self.tally.planned(call.continued.is_some(), extended, rejected);
                    self.send(&mut call, session)?;
                    if call.on == Some(session) {
                        return Ok(Step::Sent(call));
                    }
                }
                Taken::Open {
                    key_probe,
                    transport_probe,
                    evicted,
                } => {
                    if must {
                        return Err(format!("not continued, but a sibling opened: {rejected:?}"));
                    }
                    self.tally.planned(false, extended, rejected);
                    (call.key_probe, call.transport_probe) = (key_probe, transport_probe);
                    if let Some(lane) = evicted {
                        self.evict(&lane);
                    }
                    let session = self.open(call.key);
                    self.send(&mut call, session)?;
                    return Ok(Step::Sent(call));
                }
                Taken::Wait { bell, .. } => {
                    drop(bell);
                    self.registry.stop_waiting(&call.key);
                    if may_wait {
                        return Ok(Step::Waits(call));
                    }
                    call.waited = true;
                }
                Taken::Direct(_) => {
                    if must {
                        return Err(format!("by HTTP, though nothing was changed: {rejected:?}"));
                    }
                    self.tally.planned(false, extended, rejected);
                    return self.direct(call, dice).map(Step::Over);
                }
                Taken::Refuse(_) => return Ok(Step::Over(Outcome::Failed)),
            }
        }
        self.direct(call, dice).map(Step::Over)
    }

    /// Whether the session that the agent's last turn was on is there, and remembers what the agent tells again unchanged.
    fn must_continue(&mut self, call: &Call) -> bool {
        let Some(since) = call.calm_since.as_ref().filter(|_| !call.in_full) else {
            return false;
        };
        let clear = self.registry.quarantine.status(&call.key, self.now) == Status::Clear;
        let sockets = self.registry.sockets(ACCOUNT);
        let well = self
            .registry
            .transport(ACCOUNT)
            .permission(self.now, false, sockets)
            == Permission::Yes;
        let there = |live: &Live| {
            let remembers = self.upstream.memory(live.socket);
            live.key == call.key
                && !(live.busy || live.retired || live.dead)
                && self.now < live.session.too_old_at()
                && remembers.is_some_and(|memory| memory.id == *since && memory.plain)
        };
        clear && well && self.lives.values().any(there)
    }

    fn compare(&self, call: &Call) -> Compared {
        let (Some(outline), false) = (&call.outline, call.in_full) else {
            return Compared::default();
        };
        let remembered: Vec<Remembered> = self.registry.remembered(&call.key);
        let alike = call.key.kind == KeyKind::Content;
        Compared::with(&self.digester, &call.create, outline, remembered, alike)
    }

    /// Leases the session to the call. Where it was not sent, the call is on no session.
    fn send(&mut self, call: &mut Call, id: SessionId) -> Result<(), String> {
        call.on = None;
        let frame = match &call.continued {
            Some((anchor, found)) => call.create.delta_frame(found.extension.skip(), anchor, &[]),
            None => call.create.frame(&[]),
        };
        let stored = call.create.store.unwrap_or(true);
        let lease = session::Input::Lease {
            turn: turn_policy(),
            arrived: self.now,
            stored,
        };
        let live = self.lives.get_mut(&id).ok_or("a session that is not there")?;
        let tenant = *live.tenant.get_or_insert(call.asked.tenant);
        live.key = call.key;
        if tenant != call.asked.tenant {
            return Err("a session of another tenant's".into());
        }
        live.busy = true;
        let (socket, dead) = (live.socket, live.dead);
        self.put(id, lease);
        let told = self.told.remove(&id).unwrap_or_default();
        if told.iter().any(|told| matches!(told, Told::Unsent)) {
            return Ok(());
        }
        if !matches!(told[..], [Told::Send]) {
            // In proof, before a peer that is gone.
            self.put(id, session::Input::Closed { too_big: false });
            let told = self.told.remove(&id).unwrap_or_default();
            return match told[..] {
                [Told::Unsent] => Ok(()),
                _ => Err("lost in the proof".into()),
            };
        }
        call.on = Some(id);
        call.taken = None;
        if dead {
            return Ok(());
        }
        let lost = call.answer == Answer::Forgets && call.accepted == 0 && !call.in_full;
        if lost {
            self.upstream.forget(socket);
        }
        let taken = self.upstream.take(Some(socket), &frame, &call.asked, lost)?;
        self.tally
            .sent(taken.by_bridge, frame.len(), call.create.body().len());
        if taken.by_bridge != call.continued.is_some() {
            return Err("another anchor than was planned".into());
        }
        call.taken = Some(taken);
        Ok(())
    }

    /// Plays the upstream's answer to a call that was sent.
    pub fn finish(&mut self, mut call: Box<Call>, dice: &mut Dice) -> Result<Outcome, String> {
        loop {
            let id = call.on.ok_or("on no session")?;
            let played = self.play(&mut call, id, dice)?;
            let told = self.told.remove(&id).unwrap_or_default();
            let mut rejected = None;
            let mut ended = None;
            for told in told {
                match told {
                    Told::Accepted(created) => self.accepted(&mut call, id, &created),
                    Told::Rejected(class) => rejected = Some(class),
                    Told::Ended(end) => ended = Some(end),
                    Told::Send | Told::Unsent => return Err("sent twice".into()),
                }
            }
            let end = ended.ok_or_else(|| format!("no end: {:?}", call.answer))?;
            if matches!(end.verdict, Some(Verdict::Silent(_))) {
                self.registry.transport(ACCOUNT).silent(call.key, self.now);
                self.registry.quarantine.trip(call.key, self.now);
            }
            let untold = !end.accepted && !end.committed;
            match rejected {
                Some(ErrorClass::NotFoundAnchor) if untold && call.continued.is_some() => {
                    self.tally.not_found += 1;
                    call.in_full = true;
                    match self.begin(call, false, dice)? {
                        Step::Sent(again) => call = again,
                        Step::Over(outcome) => return Ok(outcome),
                        Step::Waits(_) => return Err("waits again".into()),
                    }
                    continue;
                }
                Some(ErrorClass::ConnectionLimit) if untold => {
                    call.answer = Answer::Completes;
                    return self.direct(call, dice);
                }
                _ => {}
            }
            self.give_back(&mut call);
            return outcome(&call, end, played);
        }
    }

    fn play(&mut self, call: &mut Call, id: SessionId, dice: &mut Dice) -> Result<Played, String> {
        let live = self.lives.get(&id).ok_or("the session has gone")?;
        let socket = live.socket;
        let recording = self.recording(call);
        let Some(taken) = call.taken.take() else {
            self.put(id, session::Input::Flushed);
            self.record(id, recording);
            self.put(id, session::Input::Closed { too_big: false });
            return Ok(Played::default());
        };
        let answer = call.answer;
        let played = self.upstream.play(Some(socket), taken, answer, dice);
        for frame in &played.before {
            self.event(id, frame);
        }
        self.put(id, session::Input::Flushed);
        self.record(id, recording);
        for frame in &played.after {
            self.event(id, frame);
        }
        while self
            .lives
            .get(&id)
            .and_then(|live| live.session.turn())
            .is_some_and(Turn::awaits_durable)
        {
            self.put(id, session::Input::Durable);
        }
        match answer {
            Answer::Silent => self.pass(CREATED + S),
            Answer::ClosesBefore | Answer::ClosesAfter => {
                self.upstream.forget(socket);
                self.put(id, session::Input::Closed { too_big: false });
            }
            Answer::ClientLeaves => self.put(id, session::Input::ClientGone),
            _ => {}
        }
        Ok(played)
    }

    fn event(&mut self, id: SessionId, frame: &str) {
        let data = Bytes::copy_from_slice(frame.as_bytes());
        let framed = head::read(&data);
        let name = Bytes::copy_from_slice(framed.event.as_bytes());
        let head = framed.head;
        self.put(id, session::Input::Event { name, data, head });
    }

    fn recording(&self, call: &Call) -> Option<Box<Recording>> {
        let outline = call.outline.as_ref()?;
        let continued = call
            .continued
            .as_ref()
            .map(|(_, found)| (&*found.history, &found.extension));
        let draft = Draft::new(&self.digester, &call.create, outline, continued);
        Some(Box::new(Recording::new(self.digester.clone(), draft)))
    }

    fn record(&mut self, id: SessionId, recording: Option<Box<Recording>>) {
        if let Some(recording) = recording {
            self.put(id, session::Input::Record(recording));
        }
    }

    fn accepted(&mut self, call: &mut Call, session: SessionId, created: &Created) {
        call.accepted += 1;
        let stored = created.store.or(call.create.store).unwrap_or(true);
        if let Some(id) = &created.response_id {
            self.own(call, id, Some(session), stored);
        }
        if let Some(probe) = call.key_probe.take() {
            self.registry.quarantine.cleared(probe, self.now);
        }
        if let Some(probe) = call.transport_probe.take() {
            self.registry.transport(ACCOUNT).probe_succeeded(probe);
        }
    }

    fn own(&mut self, call: &Call, id: &str, session: Option<SessionId>, stored: bool) {
        let owner = Owner {
            account: ACCOUNT,
            session,
            key: Some(call.key),
            stored,
            expires_at: u64::MAX,
        };
        let response = self.hasher.response(&[call.asked.tenant; 16], id);
        self.registry.owners.record(response, owner);
    }

    fn give_back(&mut self, call: &mut Call) {
        if let Some(probe) = call.key_probe.take() {
            self.registry.quarantine.freed(probe, self.now);
        }
        if let Some(probe) = call.transport_probe.take() {
            self.registry.transport(ACCOUNT).probe_freed(probe, self.now);
        }
    }

    fn direct(&mut self, mut call: Box<Call>, dice: &mut Dice) -> Result<Outcome, String> {
        self.give_back(&mut call);
        self.tally.direct += 1;
        let body = call.create.http_body(None);
        let taken = self.upstream.take(None, &body, &call.asked, false)?;
        let stored = call.create.store.unwrap_or(true);
        let played = self.upstream.play(None, taken, call.answer, dice);
        match call.answer {
            _ if played.after.is_empty() || played.after[0].starts_with(r#"{"error""#) => Ok(Outcome::Failed),
            Answer::Fails | Answer::ClosesAfter | Answer::ClientLeaves => Ok(Outcome::Failed),
            Answer::Incomplete => Ok(Outcome::Partial {
                output: played.output,
            }),
            _ => {
                self.own(&call, &played.id, None, stored);
                Ok(Outcome::Completed {
                    id: played.id,
                    output: played.output,
                })
            }
        }
    }

    // Sessions.

    fn open(&mut self, key: AffinityKey) -> SessionId {
        self.registry
            .handshake_ended(ACCOUNT, self.now, Handshake::Opened);
        let session = Session::new(session_policy(), self.now);
        let (lane, inbox) = mpsc::channel(LANE);
        let id = self
            .registry
            .opened(key, ACCOUNT, lane.clone(), self.now..session.too_old_at());
        self.sockets += 1;
        let live = Live {
            session,
            lane,
            _inbox: inbox,
            key,
            socket: self.sockets,
            tenant: None,
            busy: false,
            retired: false,
            dead: false,
        };
        self.lives.insert(id, live);
        id
    }

    /// Keeps a socket ready that nobody's key has.
    pub fn warm(&mut self) {
        if let Some(key) = self.registry.warm(self.now, ACCOUNT, 1) {
            let id = self.open(key);
            self.registry.idle(id, self.now, None);
        }
    }

    fn evict(&mut self, lane: &mpsc::Sender<Command>) {
        let of_lane = |(_, live): &(&SessionId, &Live)| live.lane.same_channel(lane);
        let evicted = self.lives.iter().find(of_lane).map(|(id, _)| *id);
        if let Some(id) = evicted {
            self.put(id, session::Input::Retire(Retired::Evicted));
        }
    }

    /// One of the idle sockets is lost. `seen`: the bridge is told at once.
    pub fn lose(&mut self, seen: bool, dice: &mut Dice) {
        let idle: Vec<_> = self
            .lives
            .iter()
            .filter(|(_, live)| !live.busy)
            .map(|(id, _)| *id)
            .collect();
        if idle.is_empty() {
            return;
        }
        let id = idle[dice.below(idle.len())];
        let live = self.lives.get_mut(&id).unwrap();
        live.dead = true;
        let socket = live.socket;
        self.upstream.forget(socket);
        if seen {
            self.put(id, session::Input::Closed { too_big: false });
        }
    }

    /// A frame comes that no turn waits for.
    pub fn stray(&mut self, dice: &mut Dice) {
        let idle = self.lives.iter().find(|(_, live)| !live.busy).map(|(id, _)| *id);
        if let Some(id) = idle {
            let frame = match dice.chance(50) {
                true => r#"{"type":"response.output_text.delta","sequence_number":900,"delta":"x"}"#,
                false => r#"{"type":"codex.rate_limits","rate_limits":{}}"#,
            };
            self.event(id, frame);
        }
    }

    /// Time passes; what is due in it happens.
    pub fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let due = self
                .lives
                .iter()
                .filter_map(|(id, live)| Some((live.session.deadline()?, *id)))
                .min();
            let Some((at, id)) = due.filter(|(at, _)| *at <= until) else {
                break;
            };
            self.now = self.now.max(at);
            if let Some(live) = self.lives.get_mut(&id) {
                live.session.tick(self.now, None);
            }
            self.drain(id);
        }
        self.now = until;
    }

    fn put(&mut self, id: SessionId, input: session::Input) {
        if let Some(live) = self.lives.get_mut(&id) {
            live.session.handle(self.now, input);
            self.drain(id);
        }
    }

    fn drain(&mut self, id: SessionId) {
        while let Some(live) = self.lives.get_mut(&id) {
            let Some(output) = live.session.poll() else { return };
            let told = match output {
                session::Output::Send => Told::Send,
                session::Output::Unsent => Told::Unsent,
                session::Output::Turn(turn::Output::Accepted(created)) => Told::Accepted(created),
                session::Output::Turn(turn::Output::Reject(error)) => Told::Rejected(error.class()),
                session::Output::Turn(turn::Output::End(end)) => Told::Ended(end),
                session::Output::Turn(_) => continue,
                session::Output::Ping if live.dead => continue,
                session::Output::Ping => {
                    live.session
                        .handle(self.now, session::Input::Alive { pong: true });
                    continue;
                }
                session::Output::Idle => {
                    live.busy = false;
                    self.registry.idle(id, self.now, live.session.tell_memory());
                    continue;
                }
                session::Output::Retired(_) => {
                    live.retired = true;
                    self.registry.remove(id);
                    continue;
                }
                session::Output::Close(_) => {
                    self.upstream.forget(live.socket);
                    live.session
                        .handle(self.now, session::Input::Closed { too_big: false });
                    continue;
                }
                session::Output::Gone => {
                    self.lives.remove(&id);
                    return;
                }
            };
            self.told.entry(id).or_default().push(told);
        }
    }
}

fn ask<'a>(call: &'a Call, compared: &'a Compared) -> Ask<'a> {
    Ask {
        key: call.key,
        account: ACCOUNT,
        facts: Facts {
            http_only: false,
            websocket_only: false,
            background: call.create.background,
            frame_length: call.create.frame_len_bound(&[]),
            max_frame: MAX_FRAME,
            known_too_big: false,
            anchor: call.anchor,
            unqueued: matches!(call.key.kind, KeyKind::Keyless | KeyKind::Content),
        },
        names: call.create.previous_response_id.as_deref(),
        extends: &compared.extends,
        retold: &compared.retold,
        stay: call.on.filter(|_| call.in_full),
        waited: call.waited,
        model: None,
    }
}

fn outcome(call: &Call, end: TurnEnd, played: Played) -> Result<Outcome, String> {
    if call.accepted > 2 || call.accepted == 2 && call.answer != Answer::Steered {
        return Err("accepted more than once".into());
    }
    match end.outcome {
        turn::Outcome::Completed => Ok(Outcome::Completed {
            id: played.id,
            output: played.output,
        }),
        turn::Outcome::Incomplete => Ok(Outcome::Partial {
            output: played.output,
        }),
        other if call.answer.is_plain() && call.accepted > 0 => Err(format!("a good answer ended {other:?}")),
        _ => Ok(Outcome::Failed),
    }
}

fn session_policy() -> session::Policy {
    session::Policy {
        ping: 25 * S,
        dead_after: 60 * S,
        reuse_check_after: 30 * S,
        pong: S,
        idle_ttl: IDLE_TTL,
        max_age: MAX_AGE,
        close: S,
    }
}

fn turn_policy() -> turn::Policy {
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
        transport: Transport::WebSocket,
        stream: true,
        whole: false,
        commit_after: 120 * S,
        heartbeat: 10 * S,
        slow_client: 120 * S,
        items_cap: 1 << 20,
    }
}
