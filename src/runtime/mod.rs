//! The way of a request, from a client's call to its one end. I/O at the edge; decisions are made in `bridge`.

mod actor;
pub mod budget;
pub mod call;
mod calls;
mod change;
mod client;
mod continuing;
mod direct;
mod drain;
mod failover;
mod frame;
mod job;
mod live;
mod lookup;
mod opening;
pub mod operate;
mod outgoing;
mod owned;
mod pass;
mod policy;
mod prewarm;
mod probe;
/// Seen from outside so that `tests/differential` can drive the very one, without I/O.
pub mod registry;
mod relay;
mod report;
mod route;
mod secrets;
mod spans;
mod upload;
mod watch;

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use arc_swap::{ArcSwap, Guard};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{TaskTracker, task_tracker::TaskTrackerToken};

use self::budget::Budget;
use self::call::{Bridge, Call, Lookup, Pass, Reply, Tenant};
use self::change::Dismissed;
use self::live::{Live, Lives};
use self::operate::Pulse;
pub use self::policy::Policy;
use self::registry::Registry;
use self::route::{InFlight, Routes};
pub use self::secrets::SecretFile;
pub use self::spans::{Attribute, Span, Spans};
use crate::bridge::continuation::Digester;
use crate::bridge::key::{AffinityKey, Hash16, Hasher, KeyKind};
use crate::bridge::ownership::{AccountId, Owner, Owners, SessionId};
use crate::bridge::quarantine::{Entry, EntryState, Generation, Quarantine};
use crate::bridge::transport::{self, WebSocketTransport};
use crate::bridge::turn::DURABLE;
use crate::event::{At, Event, Events};
use crate::store::{Change, Health, Loaded, OwnerRow, QuarantineRow, Store, Ticket};
use crate::telemetry::Snapshot;
use crate::upstream::Account;
use crate::wire::head::Head;

/// How long an owner is known: 30 days.
const OWNED_FOR: Duration = Duration::from_secs(30 * 24 * 3600);

/// An account, as events name it.
pub struct Named {
    pub provider: &'static str,
    pub account: &'static str,
    pub upstream: Account,
    /// Where its secret lies, if in a file.
    pub secret_file: Option<SecretFile>,
}

/// What a runtime is made of.
pub struct Parts {
    pub policy: Policy,
    /// In the order of the configuration.
    pub accounts: Vec<Named>,
    pub hasher: Hasher,
    pub events: Events,
    pub store: Arc<dyn Store>,
    pub loaded: Loaded,
    pub budget: Budget,
    /// Shows the head of every upstream event; a test plants its panics here.
    pub trap: Option<Trap>,
    /// Takes the spans of calls, where they are exported.
    pub spans: Option<Spans>,
}

/// See [`Parts::trap`].
pub type Trap = Box<dyn Fn(&Head) + Send + Sync>;

/// All that turns share.
pub struct Runtime {
    policy: ArcSwap<Policy>,
    pub(crate) events: Events,
    pub(crate) budget: Budget,
    /// Every task of the bridge's own is on it, so that a drain can wait for them.
    pub(crate) tracker: TaskTracker,
    /// Cancelled when running turns are to be cut.
    pub(crate) cut: CancellationToken,
    pub(crate) store: Arc<dyn Store>,
    accounts: Vec<Named>,
    hasher: Hasher,
    digester: Digester,
    /// A std mutex: see [`Registry`].
    registry: Mutex<Registry>,
    routes: Mutex<Routes>,
    in_flight: InFlight,
    trap: Option<Trap>,
    spans: Option<Spans>,
    turns: AtomicUsize,
    live: Lives,
    /// An operator has it take no new turns.
    held: AtomicBool,
    pulse: Pulse,
    /// Cancelled when a drain has ended.
    over: CancellationToken,
    /// By how many seconds the watched wall clock is ahead of the system's: none, but where a test steps it.
    wall_ahead: AtomicI64,
    dismissed: Dismissed,
}

/// The accounts with their numbers, in the order of the configuration.
fn numbered(accounts: &[Named]) -> impl Iterator<Item = (AccountId, &Named)> {
    (0..=u16::MAX).map(AccountId).zip(accounts)
}

/// The account called `provider/account`.
fn account_named(accounts: &[Named], name: &str) -> Option<AccountId> {
    let mut named = numbered(accounts).filter(|(_, named)| named.upstream.name() == name);
    named.next().map(|(account, _)| account)
}

/// The edge's clock reading. Monotonic; tokio's, so that a test can hold it.
pub fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Wall time since 1970, for what is persisted.
fn unix() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl Runtime {
    /// A runtime with what an earlier process left.
    pub fn new(parts: Parts) -> Arc<Runtime> {
        let policy = parts.policy;
        let accounts = parts.accounts;
        let mut owners = Owners::new(policy.max_owners);
        owners.reserve(parts.loaded.owners.len());
        // Rows of one account point to one name, and come a million at a time.
        let mut last: Option<(Arc<str>, Option<AccountId>)> = None;
        for row in parts.loaded.owners {
            let known = last.as_ref().filter(|(name, _)| Arc::ptr_eq(name, &row.account));
            let found = known.map_or_else(|| account_named(&accounts, &row.account), |(_, found)| *found);
            if known.is_none() {
                last = Some((row.account.clone(), found));
            }
            // An account that is configured no more owns nothing: its responses are unknown.
            let Some(account) = found else { continue };
            let owner = Owner {
                account,
                session: None,
                key: None,
                stored: row.stored,
                expires_at: row.expires_at,
            };
            owners.record(Hash16(row.hash), owner);
        }
        let mut quarantine = Quarantine::new(policy.quarantine, parts.loaded.generation);
        let (monotonic, wall) = (now(), unix());
        for row in parts.loaded.quarantine {
            let (key, entry) = restored(&row, monotonic, wall);
            quarantine.restore(key, entry, monotonic);
        }
        let transports = accounts
            .iter()
            .map(|_| WebSocketTransport::new(policy.transport))
            .collect();
        let registry = Registry::new(policy.caps, parts.loaded.epoch, quarantine, owners, transports);
        let routes = Routes::new(&policy.routing);
        let in_flight = accounts.iter().map(|_| AtomicUsize::new(0)).collect();
        let runtime = Arc::new(Runtime {
            policy: ArcSwap::from_pointee(policy),
            events: parts.events,
            budget: parts.budget,
            tracker: TaskTracker::new(),
            cut: CancellationToken::new(),
            store: parts.store,
            accounts,
            digester: Digester::new(&parts.hasher.subkey("continuation")),
            hasher: parts.hasher,
            registry: Mutex::new(registry),
            routes: Mutex::new(routes),
            in_flight,
            trap: parts.trap,
            spans: parts.spans,
            turns: AtomicUsize::new(0),
            live: Lives::default(),
            held: AtomicBool::new(false),
            pulse: Pulse::new(now()),
            over: CancellationToken::new(),
            wall_ahead: AtomicI64::new(0),
            dismissed: Dismissed::default(),
        });
        runtime.restore_pins(parts.loaded.pins);
        runtime
    }

    fn account_named(&self, name: &str) -> Option<AccountId> {
        account_named(&self.accounts, name)
    }

    /// The policy in force, for one decision: what outlives that has its own, as a job does.
    pub(crate) fn policy(&self) -> Guard<Arc<Policy>> {
        self.policy.load()
    }

    /// The registry, locked. Never across an await.
    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn account(&self, account: AccountId) -> &Account {
        &self.named(account).upstream
    }

    fn named(&self, account: AccountId) -> &Named {
        &self.accounts[usize::from(account.0)]
    }

    pub(crate) fn at(&self, account: AccountId) -> At {
        let named = self.named(account);
        At {
            provider: named.provider,
            account: named.account,
        }
    }

    /// Records who made a response: first in memory, then, without waiting, in the store.
    fn own(
        &self,
        tenant: &Tenant,
        id: &str,
        account: AccountId,
        session: Option<SessionId>,
        key: AffinityKey,
        stored: bool,
    ) -> (Hash16, Ticket) {
        let response = self.hasher.response(&tenant.hash, id);
        let expires_at = (unix() + OWNED_FOR).as_secs();
        let owner = Owner {
            account,
            session,
            key: Some(key),
            stored,
            expires_at,
        };
        self.registry().owners.record(response, owner);
        (response, self.persist_owner(response, owner))
    }

    fn persist_owner(&self, hash: Hash16, owner: Owner) -> Ticket {
        self.store.record(Change::Owner(OwnerRow {
            hash: hash.0,
            account: self.account(owner.account).shared_name(),
            session: owner.session.map_or(0, |session| session.0),
            stored: owner.stored,
            expires_at: owner.expires_at,
        }))
    }

    /// Resolves when the change is durable, known to be lost, or has been waited for long enough. Cancel-safe.
    async fn durable(&self, ticket: Ticket) {
        // Degraded or lost is reported by the store itself; a terminal is not held for it.
        let _ = tokio::time::timeout(DURABLE, self.store.standing().durable(ticket)).await;
    }

    fn persist_quarantine(&self, key: &AffinityKey, entry: &Entry) -> Ticket {
        self.store
            .record(Change::Quarantine(persisted(key, entry, now(), unix())))
    }

    fn breaker_changed(&self, account: AccountId, change: Option<transport::Change>) {
        let Some(change) = change else { return };
        let reason = match change {
            transport::Change::Opened => "opened",
            transport::Change::HalfOpen => "half_open",
            transport::Change::Closed => "closed",
        };
        self.events.emit(&Event::BreakerChanged {
            at: self.at(account),
            reason,
        });
    }

    fn trap(&self, head: &Head) {
        if let Some(trap) = &self.trap {
            trap(head);
        }
    }
}

impl Runtime {
    /// Turns that are running now.
    pub(super) fn running(&self) -> usize {
        self.turns.load(Ordering::Relaxed)
    }

    /// Watches the clocks, the store and the metrics until `stop` resolves. To be run beside serving.
    pub async fn watch(self: Arc<Self>, stop: impl Future<Output = ()>) {
        watch::watch(self, stop).await;
    }

    /// A test's step of the wall clock, by so many seconds.
    pub fn step_clock(&self, seconds: i64) {
        self.wall_ahead.fetch_add(seconds, Ordering::Relaxed);
    }

    fn snapshot(&self) -> Snapshot {
        let lag = self.store.lag();
        let (pins, turn_states, unavailable_accounts) = {
            let routes = self.routes();
            let unavailable = routes.availability.unavailable(now());
            (routes.pins.len(), routes.turn_states.len(), unavailable)
        };
        let registry = self.registry();
        let [idle, busy, opening, waiting] = registry.counts();
        Snapshot {
            sessions_idle: idle,
            sessions_busy: busy,
            sessions_opening: opening,
            quarantined_keys: registry.quarantine.open(),
            waiting_turns: waiting,
            running_turns: self.running(),
            sick_transports: registry.sick_transports(),
            owners: registry.owners.len(),
            pins,
            turn_states,
            unavailable_accounts,
            held_bytes: self.budget.used(),
            history_bytes: registry.history_bytes(),
            store_lag: lag.age,
            store_queue: lag.changes,
            store_lost: self.store.standing().lost(),
            store_degraded: matches!(self.store.standing().health(), Health::Degraded(_)),
            journal_lost: self.store.journal_lost(),
            ready: self.is_ready(),
        }
    }
}

/// Counts a turn for as long as it runs. A turn that waits for a session has no task on the tracker: the token makes a
/// drain wait for it all the same.
pub(crate) struct Running {
    runtime: Arc<Runtime>,
    live: Arc<Live>,
    _on_tracker: TaskTrackerToken,
}

impl Running {
    fn new(runtime: &Arc<Runtime>, live: Live) -> Self {
        runtime.turns.fetch_add(1, Ordering::Relaxed);
        Running {
            runtime: runtime.clone(),
            live: runtime.live.began(live),
            _on_tracker: runtime.tracker.token(),
        }
    }

    fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    fn live(&self) -> &Live {
        &self.live
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.runtime.turns.fetch_sub(1, Ordering::Relaxed);
        self.runtime.live.ended(&self.live);
    }
}

/// The bridge, as `downstream` sees it. Cloning shares it.
#[derive(Clone)]
pub struct Handle(pub Arc<Runtime>);

impl Bridge for Handle {
    async fn create(&self, call: Call) -> Reply {
        calls::create(&self.0, call).await
    }

    async fn lookup(&self, lookup: Lookup) -> Reply {
        lookup::lookup(&self.0, lookup).await
    }

    async fn pass(&self, pass: Pass) -> Reply {
        pass::pass(&self.0, pass).await
    }

    fn ready(&self) -> bool {
        self.0.is_ready()
    }

    fn live(&self) -> bool {
        self.0.is_live()
    }

    fn metrics(&self) -> String {
        self.0.events.telemetry().render(self.0.snapshot())
    }
}

/// A quarantine entry with its times as wall time.
fn persisted(key: &AffinityKey, entry: &Entry, monotonic: Instant, wall: Duration) -> QuarantineRow {
    let millis = |at: Instant| report::millis(wall + at.saturating_duration_since(monotonic));
    let until = match entry.state {
        EntryState::Open { until } => until,
        EntryState::Probing | EntryState::Cleared => monotonic,
    };
    QuarantineRow {
        key: key.hash.0,
        generation: entry.generation.0,
        open: entry.state != EntryState::Cleared,
        level: entry.level,
        until_ms: millis(until),
        level_until_ms: millis(entry.level_until),
    }
}

/// The entry back, with what is left of its times. The key's kind is not persisted: its hash alone makes it the key.
fn restored(row: &QuarantineRow, monotonic: Instant, wall: Duration) -> (AffinityKey, Entry) {
    let left = |ms: u64| monotonic + Duration::from_millis(ms).saturating_sub(wall);
    let state = if row.open {
        EntryState::Open {
            until: left(row.until_ms),
        }
    } else {
        EntryState::Cleared
    };
    let entry = Entry {
        generation: Generation(row.generation),
        level: row.level,
        state,
        level_until: left(row.level_until_ms),
        since: None,
        account: None,
    };
    (
        AffinityKey {
            kind: KeyKind::Keyless,
            hash: Hash16(row.key),
        },
        entry,
    )
}
