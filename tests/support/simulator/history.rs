//! What one client call was told and what the upstream was sent for it, judged as it happens.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use responses_bridge::bridge::key::{AffinityKey, Hash16};
use responses_bridge::bridge::plan::Direct;
use responses_bridge::bridge::session::Retired;
use responses_bridge::bridge::turn::{Outcome, TurnEnd};
use responses_bridge::bridge::watchdog::{Transport, Verdict};
use responses_bridge::refusal::Kind;

/// What a client got.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Commit,
    /// An event, by its name.
    Event(String),
    Comment,
    Keepalive,
    /// `response.failed`, made by the bridge.
    Fail(String),
    /// An HTTP error of the upstream's.
    Reject(u16),
    Refuse(Kind),
    Json,
    Torn,
}

impl Told {
    /// Ends the call for the client.
    fn is_final(&self) -> bool {
        match self {
            Told::Commit | Told::Comment | Told::Keepalive => false,
            Told::Event(name) => {
                ["response.completed", "response.failed", "response.incomplete"].contains(&&name[..])
            }
            Told::Fail(_) | Told::Reject(_) | Told::Refuse(_) | Told::Json | Told::Torn => true,
        }
    }
}

/// A create that left for the upstream.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub transport: Transport,
    pub account: usize,
    pub flushed: Option<Instant>,
    /// It was definitely rejected: another may be sent.
    pub rejected: bool,
}

/// One client call.
#[derive(Debug)]
pub struct History {
    pub number: usize,
    pub arrived: Instant,
    pub stream: bool,
    pub sent: Vec<Sent>,
    pub told: Vec<Told>,
    /// When the first thing was told.
    pub first: Option<Instant>,
    pub end: Option<(Instant, Outcome)>,
    pub ends: Vec<TurnEnd>,
    pub direct: Option<Direct>,
    /// The accounts that it may go to: that of an owner, or any.
    pub owner: Option<usize>,
    pub client_gone: bool,
    /// The terminal arrived, and its owner became durable.
    pub terminal_at: Option<Instant>,
    pub durable: bool,
    /// It probed its key or its transport.
    pub probe: bool,
}

impl History {
    pub fn new(number: usize, arrived: Instant, stream: bool) -> Self {
        History {
            number,
            arrived,
            stream,
            sent: Vec::new(),
            told: Vec::new(),
            first: None,
            end: None,
            ends: Vec::new(),
            direct: None,
            owner: None,
            client_gone: false,
            terminal_at: None,
            durable: false,
            probe: false,
        }
    }

    /// INV-1, INV-6: a create leaves only where all before it were definitely rejected, and only to the owner.
    pub fn sends(&mut self, transport: Transport, account: usize) {
        let open: Vec<_> = self.sent.iter().filter(|sent| !sent.rejected).collect();
        assert!(open.is_empty(), "call {}: sent again: {open:?}", self.number);
        assert!(self.end.is_none(), "call {}: sent after its end", self.number);
        assert!(
            self.owner.is_none_or(|owner| owner == account),
            "call {}: not to its owner",
            self.number
        );
        self.sent.push(Sent {
            transport,
            account,
            flushed: None,
            rejected: false,
        });
    }

    /// INV-2: nothing after the end, the status line once and first, JSON clients get one answer.
    pub fn tell(&mut self, now: Instant, told: Told) {
        let number = self.number;
        assert!(self.end.is_none(), "call {number}: {told:?} after its end");
        assert!(
            !self.told.iter().any(Told::is_final),
            "call {number}: {told:?} after {:?}",
            self.told
        );
        let committed = self.told.contains(&Told::Commit);
        match &told {
            Told::Commit => assert!(!committed && self.stream, "call {number}"),
            Told::Event(_) | Told::Comment | Told::Keepalive | Told::Fail(_) => {
                assert!(committed, "call {number}: {told:?} before the status line");
            }
            Told::Reject(_) | Told::Refuse(_) => assert!(!committed, "call {number}"),
            Told::Json => assert!(!committed && !self.stream, "call {number}"),
            Told::Torn => {}
        }
        let terminal = matches!(&told, Told::Event(_)) && told.is_final() || told == Told::Json;
        if terminal && let Some(at) = self.terminal_at {
            assert!(
                self.durable || now >= at + Duration::from_millis(250),
                "call {number}: its terminal outran its owner"
            );
        }
        self.first.get_or_insert(now);
        self.told.push(told);
    }

    /// The call is over: with an answer, or because its client left.
    pub fn ends(&mut self, now: Instant, outcome: Outcome) {
        let number = self.number;
        assert!(self.end.is_none(), "call {number}: a second end");
        let answered = self.told.iter().filter(|told| told.is_final()).count();
        let expected = usize::from(outcome != Outcome::ClientGone);
        assert_eq!(
            answered, expected,
            "call {number}: {outcome:?} after {:?}",
            self.told
        );
        self.end = Some((now, outcome));
    }

    /// The outcome's label, for assertions.
    pub fn outcome(&self) -> &'static str {
        self.end.map_or("running", |(_, outcome)| outcome.label())
    }

    /// How long it took.
    pub fn took(&self) -> Duration {
        self.end.map_or(Duration::MAX, |(at, _)| at - self.arrived)
    }

    /// The names of the events that it got, without those that are not the response's.
    pub fn events(&self) -> Vec<&str> {
        self.told
            .iter()
            .filter_map(|told| match told {
                Told::Event(name) => Some(name.as_str()),
                _ => None,
            })
            .collect()
    }
}

/// An event of the bridge's, about one key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    CreatedTimeout,
    SessionRetired(Retired),
    QuarantineOpened { window: Duration },
    HttpFallback,
    Probe,
    ProbeFreed,
    Cleared,
    Evicted,
}

/// All events, by key.
#[derive(Default)]
pub struct Incidents(BTreeMap<Hash16, Vec<(Instant, Event)>>);

impl Incidents {
    pub fn push(&mut self, key: AffinityKey, now: Instant, event: Event) {
        self.0.entry(key.hash).or_default().push((now, event));
    }

    pub fn of(&self, key: AffinityKey) -> Vec<Event> {
        let events = self.0.get(&key.hash).into_iter().flatten();
        events.map(|(_, event)| *event).collect()
    }

    pub fn check(&self) {
        for (key, events) in &self.0 {
            check_incidents(*key, events);
        }
    }
}

/// The quarantine of a key reads: timeout, retired, opened; fallbacks; one probe after the window; cleared, freed or
/// opened again.
fn check_incidents(key: Hash16, events: &[(Instant, Event)]) {
    let mut until = None;
    let mut probing = false;
    for (place, (at, event)) in events.iter().enumerate() {
        let before = |back: usize| place.checked_sub(back).and_then(|place| events.get(place));
        let so = format!("{key}: {event:?} in {events:#?}");
        match event {
            Event::CreatedTimeout | Event::SessionRetired(_) => {}
            Event::QuarantineOpened { window } => {
                assert!(
                    matches!(before(1), Some((then, Event::SessionRetired(Retired::Silent(_)))) if then == at),
                    "{so}"
                );
                assert!(
                    matches!(before(2), Some((then, Event::CreatedTimeout)) if then == at),
                    "{so}"
                );
                assert!((60..=600).contains(&window.as_secs()), "{so}");
                until = Some(*at + *window);
                probing = false;
            }
            Event::HttpFallback => assert!(until.is_some(), "{so}"),
            Event::Probe => {
                assert!(until.is_some_and(|until| *at >= until), "{so}");
                assert!(!std::mem::replace(&mut probing, true), "{so}");
            }
            Event::ProbeFreed => assert!(std::mem::take(&mut probing), "{so}"),
            Event::Cleared => {
                assert!(std::mem::take(&mut probing), "{so}");
                until = None;
            }
            Event::Evicted => (until, probing) = (None, false),
        }
    }
}

/// INV-3, INV-4: a turn judged silent was so for the deadline since its flush, to the millisecond.
pub fn check_silence(history: &History, now: Instant, end: &TurnEnd, created: Duration) {
    if let Some(Verdict::Silent(_)) = end.verdict {
        let flushed = history.sent.last().and_then(|sent| sent.flushed);
        let due = flushed.map(|at| at + created);
        assert_eq!(
            due,
            Some(now),
            "call {}: judged at the wrong time",
            history.number
        );
        assert!(!end.accepted, "call {}", history.number);
    }
}
