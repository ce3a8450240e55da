//! What operators see of a running bridge, and what they may do to it (ADM-10 to ADM-19).
//!
//! Views are copies, made under one short lock each: a reader may take all the time it wants. Two views are of two
//! moments. Actions are durable when they are answered, where a restart would forget them (INV-11).

mod actions;
mod health;
mod views;

pub use actions::{Done, NotDone};
pub use health::{Check, CheckView, HealthView, Look, Pulse, State};
pub use views::{
    AccountView, BreakerView, Excluded, LatencyView, OfTransport, Overview, OwnerView, QuarantineView,
    QueueView, SessionView, TurnView, Until,
};

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::live::Phase;
use super::report::millis;
use super::{Runtime, now, numbered, unix};
use crate::bridge::availability::Found;
use crate::bridge::key::{AffinityKey, Hash16, KeyKind};
use crate::bridge::ownership::AccountId;
use crate::bridge::quarantine::{EntryState, Held};
use crate::event::{self, safe_model};
use crate::store::Health;
use crate::telemetry::Telemetry;
use tokio_util::sync::CancellationToken;

/// The kind of a key that still knows it: one that came back from the state does not.
fn kind(key: AffinityKey) -> Option<&'static str> {
    (key.kind != KeyKind::Keyless).then(|| key.kind.label())
}

/// Now, in Unix milliseconds.
pub fn unix_ms() -> u64 {
    millis(unix())
}

fn since(at: Instant, now: Instant) -> u64 {
    millis(now.saturating_duration_since(at))
}

impl Runtime {
    /// Whether new turns are refused: the bridge is shutting down, or an operator wants it so.
    pub(super) fn takes_no_turns(&self) -> bool {
        self.held.load(Ordering::Relaxed) || self.registry().is_draining()
    }

    /// Whether an operator has it take no new turns.
    pub fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    /// Since the process began.
    pub fn uptime_ms(&self) -> u64 {
        self.pulse.age_ms(now())
    }

    /// Done when a drain has ended: nothing is told any more.
    pub fn over(&self) -> CancellationToken {
        self.over.clone()
    }

    /// The latest events and those that come, where somebody may look at them.
    pub fn seen(&self) -> Option<&event::Live> {
        self.events.seen()
    }

    /// Whether the runtime still turns over. An atomic read.
    pub fn is_live(&self) -> bool {
        self.pulse.is_live(now())
    }

    /// Whether requests are welcome. Atomic reads.
    pub fn is_ready(&self) -> bool {
        self.pulse.is_fit() && !self.is_held()
    }

    /// Each check of the latest look.
    pub fn health_view(&self) -> HealthView {
        self.pulse.view(now(), self.is_ready())
    }

    /// What else is looked at: how many files the process may have open, and what the runtime does not see. To be called
    /// once, before serving.
    pub fn look_also(&self, file_limit: u64, looks: Vec<Look>) {
        self.pulse.look_also(file_limit, looks);
    }

    pub(super) fn look_at_health(&self, now: Instant) {
        let unwritable = match self.store.standing().health() {
            Health::Degraded(degradation) => Some(degradation.reason),
            Health::Healthy | Health::Recovered(_) => None,
        };
        let accounts = self.routes().availability.tally(now);
        let facts = health::Facts {
            accounts: self.accounts.len(),
            unavailable: accounts.unavailable,
            rejected: accounts.rejected,
            unreached: accounts.unreached,
            queue: self.store.lag().changes,
            lost: self.store.standing().lost(),
            journal: self.events.is_kept().then(|| (self.store.journal_lost(), None)),
            ..health::Facts::default()
        };
        self.pulse.look(facts, unwritable, now);
    }

    /// Counts the open files, on a thread of its own: a look must not wait for it.
    pub(super) fn count_files(self: &Arc<Self>) {
        let runtime = self.clone();
        drop(tokio::task::spawn_blocking(move || {
            // Each is an entry; where there is no such folder nothing is told.
            let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
            runtime.pulse.files(open as u64);
        }));
    }

    fn name_of(&self, account: AccountId) -> String {
        self.account(account).name().to_owned()
    }

    /// The turns that are running, the longest running first.
    pub fn turns_view(&self) -> Vec<TurnView> {
        let mut turns = self.live.all();
        let now = now();
        turns.sort_unstable_by_key(|turn| turn.arrived);
        let view = |turn: &Arc<super::live::Live>| {
            let way = turn.way();
            TurnView {
                request_id: turn.request_id.to_string(),
                client: turn.client.as_deref().map(str::to_owned),
                model: safe_model(&turn.model),
                account: self.name_of(way.account),
                key: way.key.to_string(),
                key_kind: kind(way.key),
                stream: turn.stream,
                phase: way.phase.label(),
                transport: way.transport,
                session: way.session.map(|session| session.0),
                attempt: way.attempt,
                age_ms: since(turn.arrived, now),
                phase_ms: since(way.since, now),
            }
        };
        turns.iter().map(view).collect()
    }

    /// The sessions, the oldest first.
    pub fn sessions_view(&self) -> Vec<SessionView> {
        let now = now();
        let (mut looked, quarantined) = {
            let registry = self.registry();
            let looked: Vec<_> = registry.look().collect();
            let quarantined: std::collections::HashSet<Hash16> = registry
                .quarantine
                .held(now)
                .filter(|held| held.entry.state != EntryState::Cleared)
                .map(|held| held.key.hash)
                .collect();
            (looked, quarantined)
        };
        looked.sort_unstable_by_key(|session| session.session);
        let view = |of: &super::registry::Looked| SessionView {
            session: of.session.0,
            account: self.name_of(of.account),
            // A warm session is nobody's yet.
            key: (!of.is_warm()).then(|| of.key.to_string()),
            key_kind: if of.is_warm() { None } else { kind(of.key) },
            state: match (of.closing, of.idle_since) {
                (true, _) => "closing",
                (false, Some(_)) => "idle",
                (false, None) => "busy",
            },
            age_ms: since(of.opened_at, now),
            idle_ms: of.idle_since.map(|at| since(at, now)),
            turns: of.turns,
            quarantined: quarantined.contains(&of.key.hash),
        };
        looked.iter().map(view).collect()
    }

    /// Keys in quarantine, and those whose level is still remembered; the longest left first.
    pub fn quarantine_view(&self) -> Vec<QuarantineView> {
        let now = now();
        let (held, mut accounts) = {
            let registry = self.registry();
            let held: Vec<_> = registry.quarantine.held(now).collect();
            let accounts: HashMap<Hash16, AccountId> =
                registry.look().map(|of| (of.key.hash, of.account)).collect();
            (held, accounts)
        };
        // The turns of a quarantined key go by HTTP, mostly: they know its account too.
        accounts.extend(self.live.all().iter().map(|turn| {
            let way = turn.way();
            (way.key.hash, way.account)
        }));
        let only = (self.accounts.len() == 1).then_some(AccountId(0));
        let at = |held: &Held| {
            let seen = accounts.get(&held.key.hash).copied();
            seen.or(held.entry.account).or(only)
        };
        let mut views: Vec<_> = held
            .iter()
            .map(|held| QuarantineView {
                key: held.key.to_string(),
                key_kind: kind(held.key),
                account: at(held).map(|account| self.name_of(account)),
                since_ms: match held.entry.state {
                    EntryState::Cleared => None,
                    EntryState::Open { .. } | EntryState::Probing => {
                        held.entry.since.map(|at| since(at, now))
                    }
                },
                state: match held.entry.state {
                    EntryState::Open { .. } if millis(held.left) == 0 => "due",
                    EntryState::Open { .. } => "open",
                    EntryState::Probing => "probing",
                    EntryState::Cleared => "cleared",
                },
                left_ms: millis(held.left),
                level: held.entry.level,
                level_left_ms: millis(held.entry.level_until.saturating_duration_since(now)),
                generation: held.entry.generation.0,
            })
            .collect();
        views.sort_by_key(|view| Reverse((view.left_ms, view.generation)));
        views
    }

    /// The WebSocket transport of each account, in the order of the configuration.
    pub fn breakers_view(&self) -> Vec<BreakerView> {
        let now = now();
        let mut registry = self.registry();
        numbered(&self.accounts)
            .map(|(account, named)| {
                let standing = registry.transport(account).standing(now);
                BreakerView {
                    provider: named.provider,
                    account: named.account,
                    state: standing.breaker,
                    left_ms: standing.open_for.map(millis),
                    silent_keys: standing.silent,
                    failed_handshakes: standing.failed,
                    unsupported_left_ms: standing.unsupported_for.map(millis),
                    socket_ceiling: standing.ceiling.map(|(value, left)| Until {
                        value,
                        left_ms: millis(left),
                    }),
                    refused_frame: standing.too_big.map(|(value, left)| Until {
                        value,
                        left_ms: millis(left),
                    }),
                    handshakes: standing.handshakes,
                    sockets: registry.sockets(account),
                }
            })
            .collect()
    }

    /// The accounts, in the order of the configuration, and what excludes each from new conversations.
    pub fn accounts_view(&self) -> Vec<AccountView> {
        let now = now();
        let sockets: Vec<_> = {
            let registry = self.registry();
            numbered(&self.accounts)
                .map(|(account, _)| registry.sockets(account))
                .collect()
        };
        let policy = self.policy();
        let routes = self.routes();
        numbered(&self.accounts)
            .zip(sockets)
            .map(|((account, named), sessions)| {
                let out = routes.availability.of(account, now);
                let fault = named.secret_file.as_ref().and_then(|file| file.fault());
                let Found {
                    rejected,
                    unconnected,
                } = routes.availability.findings(account);
                let index = usize::from(account.0);
                AccountView {
                    provider: named.provider,
                    account: named.account,
                    weight: policy.routing.accounts.get(index).map_or(1, |of| of.weight),
                    in_flight: self
                        .in_flight
                        .get(index)
                        .map_or(0, |count| count.load(Ordering::Relaxed)),
                    sessions,
                    excluded: out.map(|out| Excluded {
                        reason: out.reason.label(),
                        left_ms: millis(out.until.saturating_duration_since(now)),
                    }),
                    credential: match (named.upstream.has_own_credential(), rejected, fault) {
                        (_, true, _) => "rejected",
                        (_, _, Some(fault)) => fault,
                        (true, _, _) => "ok",
                        (false, _, _) => "callers",
                    },
                    credential_ok: !rejected && fault.is_none(),
                    failed_connects: unconnected,
                }
            })
            .collect()
    }

    /// Keys whose turns wait for a session, the longest waiting first.
    pub fn queues_view(&self) -> Vec<QueueView> {
        let now = now();
        let waiting: Vec<_> = self.registry().waiting().collect();
        let mut longest: HashMap<Hash16, (u64, AccountId)> = HashMap::new();
        for turn in self.live.all() {
            let way = turn.way();
            let waits = if way.phase == Phase::Queued {
                since(way.since, now)
            } else {
                0
            };
            let known = longest.entry(way.key.hash).or_insert((waits, way.account));
            known.0 = known.0.max(waits);
        }
        let mut views: Vec<_> = waiting
            .iter()
            .map(|of| {
                let known = longest.get(&of.key.hash);
                QueueView {
                    key: of.key.to_string(),
                    key_kind: kind(of.key),
                    account: known.map(|(_, account)| self.name_of(*account)),
                    waiting: of.waiting,
                    opening: of.opening,
                    longest_ms: known.map_or(0, |(waits, _)| *waits),
                }
            })
            .collect();
        views.sort_by_key(|view| Reverse(view.longest_ms));
        views
    }

    /// How long upstream took to accept turns since the process began, and the deadline in force.
    pub fn latency_view(&self) -> LatencyView {
        let [websocket, http] = self.events.telemetry().created();
        LatencyView {
            bounds_s: Telemetry::BOUNDS.to_vec(),
            websocket: OfTransport::of(&websocket),
            http: OfTransport::of(&http),
            deadline_ms: millis(self.policy().limits.created),
        }
    }

    /// The numbers that fit on one line.
    pub fn overview(&self) -> Overview {
        let (draining, caps) = {
            let registry = self.registry();
            (registry.is_draining(), registry.caps())
        };
        let snapshot = self.snapshot();
        Overview {
            turns: snapshot.running_turns,
            waiting: snapshot.waiting_turns,
            sessions_idle: snapshot.sessions_idle,
            sessions_busy: snapshot.sessions_busy,
            sessions_opening: snapshot.sessions_opening,
            max_sessions: caps.max_sessions,
            max_per_key: caps.max_per_key,
            max_queue: caps.max_queue,
            quarantined_keys: snapshot.quarantined_keys,
            sick_transports: snapshot.sick_transports,
            accounts: self.accounts.len(),
            unavailable_accounts: snapshot.unavailable_accounts,
            owners: snapshot.owners,
            held_bytes: snapshot.held_bytes,
            draining: draining || self.is_held(),
            shutting_down: draining,
        }
    }

    /// Who made a response, of each of the tenants that are asked for: a response is known to the tenant that it was made
    /// for alone. `tenants`: the hash, and the client's name.
    pub fn owners_of(&self, id: &str, tenants: &[([u8; 16], Arc<str>)]) -> Vec<OwnerView> {
        let (now, unix) = (now(), unix().as_secs());
        let mut registry = self.registry();
        let mut views = Vec::new();
        for (tenant, client) in tenants {
            let Some(owner) = registry.owners.of(self.hasher.response(tenant, id), unix) else {
                continue;
            };
            let alive = owner.session.and_then(|session| registry.look_at(session));
            views.push(OwnerView {
                client: Some(client.to_string()),
                account: self.name_of(owner.account),
                session: owner.session.map(|session| session.0),
                session_state: owner.session.map(|_| match alive {
                    None => "gone",
                    Some(of) if of.idle_since.is_some() => "idle",
                    Some(_) => "busy",
                }),
                session_idle_ms: alive.and_then(|of| of.idle_since).map(|at| since(at, now)),
                key: owner.key.map(|key| key.to_string()),
                stored: Some(owner.stored),
                expires_in_s: Some(owner.expires_at.saturating_sub(unix)),
                known_by: "owners",
            });
        }
        views
    }
}
