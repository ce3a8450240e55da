//! The whole bridge, put together from a checked configuration: the one room that sees all the others.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admin::ui::Ui;
use crate::bridge::key::Hasher;
use crate::config::{Config, CredentialSource};
use crate::downstream::{Edge, Settings};
use crate::event::{self, Event, Events, Level};
use crate::listen::{self, Doors};
use crate::runtime::budget::Budget;
use crate::runtime::{Handle, Named, Parts, Policy, Runtime, SecretFile, Spans, Trap};
use crate::store::{
    Before, Directory, InstallKey, Loaded, Memory, Options, Sqlite, StateFault, Store, journal,
};
use crate::telemetry::Telemetry;
use crate::upstream::{Account, AccountFault};

mod follow;
mod look;
mod operators;
mod reload;

pub use follow::{Environment, Followed};
pub use reload::{NotReloaded, Reloaded, Reloader};

use follow::Follower;
use operators::Configured;

/// Files that the process needs beside sockets: the state, the listeners, the runtime.
const OWN_FILES: u64 = 64;
/// How long connections are given to take the last answers, where a drain's time is up already.
const LAST_CONNECTIONS: Duration = Duration::from_secs(5);
/// How long the store may take to write what is left.
const LAST_WRITES: Duration = Duration::from_secs(5);

/// Why the bridge does not start. Each says what to do, and all that is known: none has a source beside its words.
#[derive(Debug, thiserror::Error)]
pub enum StartFault {
    #[error(transparent)]
    State(StateFault),
    #[error("account {name}: {fault}")]
    Account { name: String, fault: AccountFault },
    #[error(
        "cannot listen on {address}: {problem}; if another program is there, stop it or set {key} to another address"
    )]
    Listen {
        address: SocketAddr,
        key: &'static str,
        problem: std::io::Error,
    },
    #[error("no random bytes for the installation's key: {0}")]
    Randomness(std::io::Error),
    #[error("the metrics cannot be set up: {0}")]
    Metrics(metrics_exporter_prometheus::BuildError),
}

/// Where finished log lines go.
pub type Lines = Box<dyn Fn(&[u8]) + Send + Sync>;

/// What the process gives the bridge beside its configuration.
pub struct Outlets {
    /// Lines of this level and above go to `lines`.
    pub level: Level,
    /// Takes finished log lines.
    pub lines: Lines,
    /// Is told what is wrong with the state, when serving goes on without it.
    pub state_fault: Box<dyn Fn(&StateFault) + Send + Sync>,
    /// Files that the process may have open.
    pub file_limit: u64,
    /// A test's look at every upstream event.
    pub trap: Option<Trap>,
    /// Takes the spans of calls, where they are exported.
    pub spans: Option<Spans>,
}

/// A running bridge.
pub struct App {
    runtime: Arc<Runtime>,
    reloader: Arc<Reloader>,
    events: Events,
    address: SocketAddr,
    doors: Doors,
    /// Cancelled when no client is to be accepted any more, which is before the connections end.
    closing: CancellationToken,
    store: Arc<dyn Store>,
}

impl App {
    /// Starts serving. Returns once the listeners are open.
    pub async fn start(config: Config, outlets: Outlets) -> Result<App, StartFault> {
        // One third faces the clients, one is for sessions, and one for what each client's turn may need beside them: a
        // connection for direct HTTP, or a session's place while the one that it evicts is still closing.
        let sockets = outlets.file_limit.saturating_sub(OWN_FILES).max(3) / 3;
        let sockets = usize::try_from(sockets)
            .unwrap_or(usize::MAX)
            .min(Semaphore::MAX_PERMITS);
        let telemetry = Arc::new(Telemetry::new().map_err(StartFault::Metrics)?);
        let state = open_state(&config, &outlets.state_fault)?;
        let mut events = Events::new(outlets.level, telemetry, outlets.lines);
        if config.journal.max > 0 {
            let store = state.store.clone();
            let hasher = Hasher::new(*state.key.bytes());
            events = events.kept(hasher, move |entry| store.journal(entry));
        }
        if config.server.admin_token.is_some() {
            events = events.live();
        }
        let budget = Budget::new(config.server.body_budget);
        let settings = Settings {
            traced: outlets.spans.is_some(),
            ..Settings::of(&config.server, &config.clients)
        };
        let doors = Doors {
            limits: listen::Limits::default(),
            room: Arc::new(Semaphore::new(sockets)),
            shutdown: CancellationToken::new(),
            tracker: TaskTracker::new(),
            events: events.clone(),
        };
        let store = state.store.clone();
        let started = Event::BridgeStarted {
            version: env!("CARGO_PKG_VERSION"),
            before: state.loaded.before.label(),
            last_ms: state.loaded.journal_until,
        };
        let runtime = Runtime::new(Parts {
            policy: Policy::of(&config, sockets),
            accounts: accounts(&config)?,
            hasher: Hasher::new(*state.key.bytes()),
            events: events.clone(),
            store: state.store,
            loaded: state.loaded,
            budget: budget.clone(),
            trap: outlets.trap,
            spans: outlets.spans,
        });
        let bridge = Arc::new(Handle(runtime.clone()));
        let configured = Configured::default();
        runtime.look_also(outlets.file_limit, configured.looks(&doors, sockets));
        let mut edge = Edge::new(bridge, &settings, state.key.bytes(), budget, events.clone());
        if config.server.admin_token.is_some() {
            let page = Ui::new(runtime.clone(), config.journal.max > 0);
            edge = edge
                .with_admin(configured.operators(&config, runtime.clone(), page.clone()))
                .with_page(page);
        }
        let (listener, address) = bind(config.server.listen, "server.listen")?;
        let service = edge.clients(address);
        let operators = match config.server.admin_listen {
            Some(admin) => Some(bind(admin, "server.admin_listen")?),
            None => None,
        };
        let closing = CancellationToken::new();
        // Dropping the loop closes its listener; the connections have tasks of their own.
        let serving = doors.clone().serve(listener, service);
        doors
            .tracker
            .spawn(closing.clone().run_until_cancelled_owned(serving));
        if let Some((listener, address)) = operators {
            doors
                .tracker
                .spawn(doors.clone().serve(listener, edge.operators(address)));
        }
        let stop = doors.shutdown.clone();
        doors.tracker.spawn(runtime.clone().watch(stop.cancelled_owned()));
        let stop = doors.shutdown.clone();
        doors
            .tracker
            .spawn(runtime.clone().keep_warm(stop.cancelled_owned()));
        let stop = doors.shutdown.clone();
        doors
            .tracker
            .spawn(runtime.clone().follow_secrets(stop.cancelled_owned()));
        let reloader = Arc::new(Reloader::new(config, edge, Handle(runtime.clone()), sockets));
        configured.by(&reloader);
        events.emit(&started);
        Ok(App {
            runtime,
            reloader,
            events,
            address,
            doors,
            closing,
            store,
        })
    }

    /// The way to another configuration.
    pub fn reloader(&self) -> Arc<Reloader> {
        self.reloader.clone()
    }

    /// Follows a configuration file from now until the drain.
    pub fn follow(&self, followed: Followed) {
        let follower = Follower::new(followed, self.reloader.clone(), self.events.clone());
        let closing = self.closing.clone();
        self.doors
            .tracker
            .spawn(closing.run_until_cancelled_owned(follower.run()));
    }

    /// The address of `server.listen`, with the port that was really bound.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the wall clock that the bridge watches, by so many seconds: a test's, since the machine's own is not its to set.
    pub fn step_clock(&self, seconds: i64) {
        self.runtime.step_clock(seconds);
    }

    /// Cancel it to have a drain cut what runs now, and not at the end of `server.drain` (RUN-10).
    pub fn cut(&self) -> CancellationToken {
        self.runtime.cut.clone()
    }

    /// Stops accepting clients, lets turns finish within `server.drain`, cuts the rest, and writes what is left of the
    /// state (RUN-5 to RUN-9).
    ///
    /// Connections stay open while turns run: a new turn on one of them is told to come back, and readiness that it is
    /// over, instead of meeting a socket that closes. The operators' listener stays to the end.
    pub async fn drain(self) {
        let until = Instant::now() + self.runtime.policy().drain;
        self.closing.cancel();
        self.runtime.drain().await;
        self.doors.shutdown.cancel();
        self.doors.tracker.close();
        // What passes through is no turn, but an answer all the same. What outlives this is its client's doing.
        let until = until.max(Instant::now() + LAST_CONNECTIONS);
        let _ = tokio::time::timeout_at(until, self.doors.tracker.wait()).await;
        let store = self.store;
        // Only a panic of the store's could be lost here, and the process ends now.
        let _ = tokio::task::spawn_blocking(move || store.close(LAST_WRITES)).await;
    }
}

fn bind(address: SocketAddr, key: &'static str) -> Result<(TcpListener, SocketAddr), StartFault> {
    let fault = |problem| StartFault::Listen {
        address,
        key,
        problem,
    };
    let listener = listen::bind(address).map_err(fault)?;
    let bound = listener.local_addr().map_err(fault)?;
    Ok((listener, bound))
}

fn accounts(config: &Config) -> Result<Vec<Named>, StartFault> {
    let mut accounts = Vec::new();
    for provider in &config.providers {
        for account in &provider.accounts {
            let upstream =
                Account::new(provider, account, config.watchdog.connect_deadline).map_err(|fault| {
                    StartFault::Account {
                        name: format!("{}.{}", provider.name, account.name),
                        fault,
                    }
                })?;
            accounts.push(Named {
                provider: event::name(&provider.name),
                account: event::name(&account.name),
                upstream,
                secret_file: match &account.source {
                    CredentialSource::File(path) => Some(SecretFile::new(path.clone())),
                    _ => None,
                },
            });
        }
    }
    Ok(accounts)
}

/// The state, from disk or, where that cannot be, from memory.
struct State {
    key: InstallKey,
    store: Arc<dyn Store>,
    loaded: Loaded,
}

fn open_state(config: &Config, tell: &dyn Fn(&StateFault)) -> Result<State, StartFault> {
    let now = SystemTime::now();
    match Directory::open(&config.state.directory) {
        Ok(directory) => {
            let key = directory.key().clone();
            let options = Options {
                journal: journal::Bounds {
                    keep: config.journal.keep,
                    max: config.journal.max,
                },
                ..Options::new(
                    config.state.max_owners,
                    config.affinity.max_pins,
                    config.quarantine.max_keys,
                )
            };
            let opened = Sqlite::open(directory, options, now);
            if let Some(fault) = &opened.fault {
                tell(fault);
            }
            Ok(State {
                key,
                store: Arc::new(opened.store),
                loaded: opened.loaded,
            })
        }
        Err(fault) if fault.forbids_serving() => Err(StartFault::State(fault)),
        Err(fault) => {
            tell(&fault);
            let key = InstallKey::ephemeral().map_err(StartFault::Randomness)?;
            // Session numbers still begin after those of earlier processes.
            let epoch = now
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |since| since.as_secs());
            let store = Arc::new(Memory::standing_in(fault.reason()));
            Ok(State {
                key,
                store,
                loaded: Loaded {
                    epoch,
                    before: Before::Unknown,
                    ..Loaded::default()
                },
            })
        }
    }
}
