//! The upstream: sockets with the memory of their latest response, stored responses, and every kind of misbehaviour.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::rng::Rng;

/// What the upstream makes of one create over WebSocket. Times are milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Behaviour {
    Healthy,
    /// `response.created` only after so long.
    Slow(u64),
    /// Nothing at all; a late answer follows after so long.
    Silent(u64),
    /// `codex.rate_limits` once a second, for ever.
    Telemetry,
    /// 54 deltas, never `response.created`.
    Deltas,
    /// `codex.rate_limits`, then an error 429.
    Rejected,
    /// An error 500 before created: ambiguous.
    ServerError,
    /// The connection is at its age limit: a definite rejection.
    ConnectionLimit,
    /// An error frame after created.
    ErrorAfterCreated,
    Close,
    CloseTooBig,
    CloseInMidStream,
    /// The terminal and the close in one read.
    TerminalAndClose,
    Incomplete,
    Failed,
    /// A model that says nothing for so long, while the socket answers its pings; then it goes on.
    Thinks(u64),
    /// After created nothing comes any more.
    Hangs,
    /// Frames of the response follow its terminal.
    LateFrames,
}

/// What comes of a POST.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Http {
    Healthy,
    NoAnswer,
    HeadersOnly,
    Rejected(u16),
    Truncated,
    /// The connect is refused: nothing was sent.
    Refused,
}

/// What comes of an upgrade.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Upgrade {
    /// 101 after so long.
    Opens(u64),
    Answers(u16),
    Fails,
    /// No answer, ever.
    Hangs,
}

/// What arrives at the bridge.
#[derive(Clone, Debug)]
pub enum Wire {
    Frame(String),
    Close { too_big: bool },
    Headers,
    Answer(u16),
    Lost,
    Refused,
}

/// A create as the upstream sees it.
#[derive(Clone, Copy)]
pub struct Create<'a> {
    pub call: usize,
    pub anchor: Option<&'a str>,
    pub store: bool,
    pub stream: bool,
}

#[derive(Default)]
struct Socket {
    memory: Option<String>,
    /// When its earlier frames are all out: frames keep their order.
    free_at: u64,
    /// The peer is gone without a word: nothing arrives, nothing is answered.
    cut: bool,
}

/// One account of the upstream.
#[derive(Default)]
pub struct Upstream {
    /// What comes next, before chance is asked.
    pub script: VecDeque<Behaviour>,
    pub http: VecDeque<Http>,
    pub upgrades: VecDeque<Upgrade>,
    /// Percent of misbehaviour, of each transport and of upgrades.
    pub malice: u64,
    /// More sockets than this are refused with 429.
    pub ceiling: Option<usize>,
    sockets: BTreeMap<u64, Socket>,
    stored: BTreeSet<String>,
    responses: u64,
}

impl Upstream {
    /// What comes of the next upgrade, and after how long.
    pub fn upgrade(&mut self, rng: &mut Rng) -> (u64, Upgrade) {
        if self.ceiling.is_some_and(|most| self.sockets.len() >= most) {
            return (50, Upgrade::Answers(429));
        }
        let upgrade = self.upgrades.pop_front().unwrap_or_else(|| {
            if !rng.chance(self.malice) {
                return Upgrade::Opens(20 + rng.below(60));
            }
            match rng.below(5) {
                0 => Upgrade::Opens(2_000 + rng.below(7_000)),
                1 => Upgrade::Answers([401, 403, 429, 500, 503][rng.below(5) as usize]),
                2 => Upgrade::Fails,
                3 => Upgrade::Hangs,
                _ => Upgrade::Answers(404),
            }
        });
        match upgrade {
            Upgrade::Opens(after) => (after, upgrade),
            Upgrade::Hangs => (10_000, upgrade),
            Upgrade::Answers(_) | Upgrade::Fails => (50, upgrade),
        }
    }

    pub fn opened(&mut self, socket: u64) {
        self.sockets.insert(socket, Socket::default());
    }

    pub fn closed(&mut self, socket: u64) {
        self.sockets.remove(&socket);
    }

    /// The network drops every socket without a word.
    pub fn cut_all(&mut self) {
        self.sockets.values_mut().for_each(|socket| socket.cut = true);
    }

    pub fn answers_pings(&self, socket: u64) -> bool {
        self.sockets.get(&socket).is_some_and(|socket| !socket.cut)
    }

    /// What a create over a socket leads to: what arrives, and when.
    pub fn create(&mut self, now: u64, socket: u64, create: Create<'_>, rng: &mut Rng) -> Vec<(u64, Wire)> {
        let id = self.id(create.call);
        let known = |anchor: &str, memory: Option<&String>, stored: &BTreeSet<String>| {
            memory.is_some_and(|memory| memory == anchor) || stored.contains(anchor)
        };
        let Some(state) = self.sockets.get_mut(&socket) else {
            return Vec::new();
        };
        if state.cut {
            return Vec::new();
        }
        if create
            .anchor
            .is_some_and(|anchor| !known(anchor, state.memory.as_ref(), &self.stored))
        {
            let frame = r#"{"type":"error","status":400,"error":{"code":"previous_response_not_found","message":"no such response"}}"#;
            return vec![(now + 60, Wire::Frame(frame.into()))];
        }
        let behaviour = self.script.pop_front().unwrap_or_else(|| {
            if rng.chance(self.malice) {
                by_chance(rng)
            } else {
                Behaviour::Healthy
            }
        });
        let mut frames = stream(behaviour, &id, create.call);
        let start = now.max(state.free_at);
        frames.iter_mut().for_each(|(at, _)| *at += start);
        state.free_at = frames
            .iter()
            .map(|(at, _)| *at)
            .filter(|at| *at < start + 300_000)
            .max()
            .unwrap_or(start);
        use Behaviour::{
            CloseInMidStream, Failed, Healthy, Incomplete, LateFrames, Slow, TerminalAndClose, Thinks,
        };
        state.memory = match behaviour {
            Healthy | Slow(_) | Incomplete | Thinks(_) | LateFrames | TerminalAndClose => Some(id.clone()),
            _ => None,
        };
        if create.store && !matches!(behaviour, Failed | CloseInMidStream) && state.memory.is_some() {
            self.stored.insert(id);
        }
        frames
    }

    /// What a POST leads to.
    pub fn post(&mut self, now: u64, create: Create<'_>, rng: &mut Rng) -> Vec<(u64, Wire)> {
        let id = self.id(create.call);
        let scripted = self.http.pop_front().unwrap_or_else(|| {
            if !rng.chance(self.malice) {
                return Http::Healthy;
            }
            match rng.below(5) {
                0 => Http::NoAnswer,
                1 => Http::HeadersOnly,
                2 => Http::Rejected([400, 429, 500, 502, 503][rng.below(5) as usize]),
                3 => Http::Truncated,
                _ => Http::Refused,
            }
        });
        let unknown = create.anchor.is_some_and(|anchor| !self.stored.contains(anchor));
        let mut arrives = match scripted {
            Http::Refused => vec![(5, Wire::Refused)],
            Http::NoAnswer => Vec::new(),
            _ if unknown => vec![(40, Wire::Answer(400))],
            Http::Rejected(status) => vec![(40, Wire::Answer(status))],
            Http::HeadersOnly => vec![(40, Wire::Headers)],
            Http::Healthy if !create.stream => {
                let object = response(&id, "completed", create.call);
                vec![(40, Wire::Headers), (400, Wire::Frame(object)), (400, Wire::Lost)]
            }
            Http::Truncated if !create.stream => vec![(40, Wire::Headers), (400, Wire::Lost)],
            Http::Healthy | Http::Truncated => {
                let mut frames = vec![(40, Wire::Headers)];
                frames.extend(stream(Behaviour::Healthy, &id, create.call));
                if scripted == Http::Truncated {
                    frames.pop();
                }
                let end = frames.last().map_or(0, |(at, _)| *at);
                frames.push((end, Wire::Lost));
                frames
            }
        };
        if scripted == Http::Healthy && create.store && !unknown {
            self.stored.insert(id);
        }
        arrives.iter_mut().for_each(|(at, _)| *at += now);
        arrives
    }

    fn id(&mut self, call: usize) -> String {
        self.responses += 1;
        format!("resp_{call}_{}", self.responses)
    }
}

fn by_chance(rng: &mut Rng) -> Behaviour {
    let all = [
        Behaviour::Slow(rng.below(65_000)),
        Behaviour::Silent(60_000 + rng.below(2_000)),
        Behaviour::Telemetry,
        Behaviour::Deltas,
        Behaviour::Rejected,
        Behaviour::ServerError,
        Behaviour::ConnectionLimit,
        Behaviour::ErrorAfterCreated,
        Behaviour::Close,
        Behaviour::CloseTooBig,
        Behaviour::CloseInMidStream,
        Behaviour::TerminalAndClose,
        Behaviour::Incomplete,
        Behaviour::Failed,
        Behaviour::Thinks(rng.below(800_000)),
        Behaviour::Hangs,
        Behaviour::LateFrames,
    ];
    all[rng.below(all.len() as u64) as usize]
}

fn response(id: &str, status: &str, call: usize) -> String {
    format!(
        r#"{{"id":"{id}","object":"response","status":"{status}","output":[{{"call":{call}}}],"call":{call}}}"#
    )
}

/// The frames of one turn, each marked with the call that it answers.
fn stream(behaviour: Behaviour, id: &str, call: usize) -> Vec<(u64, Wire)> {
    let mut number = 0;
    let mut frames = Vec::new();
    let mut close = None;
    let mut push = |at: u64, text: String| frames.push((at, Wire::Frame(text)));
    let mut numbered = |kind: &str, rest: String| {
        number += 1;
        let number = number - 1;
        format!(r#"{{"type":"{kind}","sequence_number":{number},"call":{call}{rest}}}"#)
    };
    let object = |status: &str| format!(r#","response":{}"#, response(id, status, call));
    let limits = || format!(r#"{{"type":"codex.rate_limits","call":{call}}}"#);
    let delta = || r#","delta":"d""#.to_owned();
    const DELTA: &str = "response.output_text.delta";
    const DONE: &str = "response.completed";

    let start = match behaviour {
        Behaviour::Slow(after) | Behaviour::Silent(after) => after,
        _ => 100,
    };
    match behaviour {
        Behaviour::Telemetry => (1..400).for_each(|second| push(second * 1_000, limits())),
        Behaviour::Deltas => (0..54).for_each(|n| push(500 * n, numbered(DELTA, delta()))),
        Behaviour::Rejected => {
            push(50, limits());
            push(
                100,
                r#"{"type":"error","status":429,"error":{"code":"rate_limit_exceeded"},"headers":{"retry-after":"7"}}"#.into(),
            );
        }
        Behaviour::ServerError => push(
            100,
            r#"{"type":"error","status":500,"error":{"code":"server_error"}}"#.into(),
        ),
        Behaviour::ConnectionLimit => push(
            100,
            r#"{"type":"error","status":400,"error":{"code":"websocket_connection_limit_reached"}}"#.into(),
        ),
        Behaviour::Close | Behaviour::CloseTooBig => {
            let too_big = behaviour == Behaviour::CloseTooBig;
            close = Some((100, too_big));
        }
        _ => {
            push(start.saturating_sub(10), limits());
            push(start, numbered("response.created", object("in_progress")));
            push(start, numbered("response.in_progress", object("in_progress")));
            push(start + 100, numbered(DELTA, delta()));
            let next = match behaviour {
                Behaviour::Thinks(pause) => start + 100 + pause,
                _ => start + 200,
            };
            match behaviour {
                Behaviour::Hangs => {}
                Behaviour::ErrorAfterCreated => push(
                    next,
                    r#"{"type":"error","status":503,"error":{"code":"server_is_overloaded","message":"m"}}"#
                        .into(),
                ),
                Behaviour::Failed => push(next, numbered("response.failed", object("failed"))),
                Behaviour::CloseInMidStream => close = Some((next, false)),
                Behaviour::Incomplete => push(next, numbered("response.incomplete", object("incomplete"))),
                _ => {
                    push(next, numbered(DELTA, delta()));
                    push(next + 100, numbered(DONE, object("completed")));
                }
            }
            if behaviour == Behaviour::LateFrames {
                push(next + 130, numbered(DELTA, delta()));
                push(next + 130, numbered(DONE, object("completed")));
            }
            if behaviour == Behaviour::TerminalAndClose {
                close = Some((next + 100, false));
            }
        }
    }
    frames.extend(close.map(|(at, too_big)| (at, Wire::Close { too_big })));
    frames
}
