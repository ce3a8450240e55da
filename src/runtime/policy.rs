//! The configuration as the runtime's machines want it.

use std::sync::Arc;
use std::time::Duration;

use super::registry::Caps;
use crate::bridge::ownership::AccountId;
use crate::bridge::plan::MAX_FRAME;
use crate::bridge::watchdog::{Limits, Transport};
use crate::bridge::{quarantine, route, routing, session, transport, turn};
use crate::config;

/// How long a socket's closing handshake may take: "closed within a second" of its client's leaving.
const CLOSE: Duration = Duration::from_secs(1);
/// A peer that used to answer pings, and lets two pass: dead after 60 s with the default interval of 25 s.
const DEAD_AFTER_PINGS: f64 = 2.4;
/// Handshakes in flight per account: enough for a burst, few enough not to look like an attack.
const MAX_HANDSHAKES: usize = 8;
/// How long a missing WebSocket, a socket ceiling or a refused size is believed.
const MEMORY: Duration = Duration::from_secs(600);
/// Strikes against a transport count together within this span.
const SPAN: Duration = Duration::from_secs(60);

/// What one provider's accounts may do.
#[derive(Clone, Copy, Debug)]
pub struct OfAccount {
    pub transport: config::Transport,
    pub max_age: Duration,
    /// Creates whose frame is longer, in bytes, go by direct HTTP.
    pub max_frame: usize,
    /// A socket serves one model for its whole life.
    pub one_model: bool,
}

/// What routing knows of an account.
#[derive(Clone, Debug)]
pub struct Routable {
    pub weight: u32,
    /// See [`routing::serves`].
    pub models: Arc<[String]>,
    /// It passes the caller's own credential through: what it is told about that says nothing of other callers.
    pub own: bool,
}

/// How accounts are chosen.
#[derive(Clone, Debug)]
pub struct Routing {
    pub strategy: routing::Strategy,
    pub accounts: Vec<Routable>,
    pub pin_ttl: Duration,
    pub max_pins: usize,
    /// A request that names what nobody here is known to own goes where a new key would.
    pub forward_unknown: bool,
}

impl Routing {
    fn of(config: &config::Config) -> Routing {
        let accounts = config.providers.iter().flat_map(|provider| {
            let models: Arc<[String]> = provider.models.as_slice().into();
            provider.accounts.iter().map(move |account| Routable {
                weight: account.weight,
                models: models.clone(),
                own: matches!(account.credential, config::Credential::Client),
            })
        });
        Routing {
            strategy: match config.routing.strategy {
                config::Strategy::Priority => routing::Strategy::Priority,
                config::Strategy::Weighted => routing::Strategy::Weighted,
                config::Strategy::RoundRobin => routing::Strategy::RoundRobin,
                config::Strategy::LeastInFlight => routing::Strategy::LeastInFlight,
                config::Strategy::PowerOfTwo => routing::Strategy::PowerOfTwo,
            },
            accounts: accounts.collect(),
            pin_ttl: config.affinity.ttl,
            max_pins: config.affinity.max_pins,
            forward_unknown: config.ownership.unknown == config::Unknown::Forward,
        }
    }
}

/// All that the runtime is told.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Counts the policies of the process, so that who keeps one sees that there is another.
    pub(super) number: u64,
    pub limits: Limits,
    pub session: session::Policy,
    pub quarantine: quarantine::Windows,
    pub transport: transport::Policy,
    pub caps: Caps,
    pub of_account: Vec<OfAccount>,
    pub routing: Routing,
    pub max_owners: usize,
    /// Sockets kept ready for new keys, per account.
    pub prewarm: usize,
    /// What is known to the session is not sent again.
    pub continuation: bool,
    pub client_buffer: usize,
    pub commit_after: Duration,
    pub heartbeat: Duration,
    pub slow_client: Duration,
    pub queue_wait: Duration,
    pub connect_deadline: Duration,
    pub handshake_patience: Duration,
    pub drain: Duration,
    /// Several clients share the accounts' credentials: a response that nobody here is known to own may be another
    /// client's, and is not forwarded.
    pub shared_credentials: bool,
}

impl Policy {
    /// The policy of a checked configuration. `most_sessions` is what the file limit leaves room for.
    pub fn of(config: &config::Config, most_sessions: usize) -> Policy {
        let (watchdog, http, session) = (&config.watchdog, &config.http, &config.session);
        let of_account = config.providers.iter().flat_map(|provider| {
            provider.accounts.iter().map(move |account| OfAccount {
                transport: provider.transport_of(account),
                max_age: provider.max_age.unwrap_or(session.max_age),
                max_frame: provider.max_frame.unwrap_or(MAX_FRAME),
                one_model: provider.one_model_per_connection,
            })
        });
        Policy {
            number: 0,
            limits: Limits {
                write: watchdog.write_deadline,
                created: watchdog.response_created_deadline,
                idle: watchdog.idle_deadline,
                request: watchdog.request_deadline,
                first_byte: http.first_byte,
                first_event: http.first_event,
                between_events: http.between_events,
            },
            session: session::Policy {
                ping: watchdog.ping_interval,
                dead_after: watchdog.ping_interval.mul_f64(DEAD_AFTER_PINGS),
                reuse_check_after: watchdog.reuse_check_after,
                pong: watchdog.pong_deadline,
                idle_ttl: session.idle_ttl,
                max_age: session.max_age,
                close: CLOSE,
            },
            quarantine: quarantine::Windows {
                window: config.quarantine.window,
                max_window: config.quarantine.max_window,
                max_keys: config.quarantine.max_keys,
            },
            transport: transport::Policy {
                span: SPAN,
                open: if config.quarantine.window.is_zero() {
                    SPAN
                } else {
                    config.quarantine.window
                },
                max_open: config.quarantine.max_window.max(config.quarantine.window),
                memory: MEMORY,
                max_handshakes: MAX_HANDSHAKES,
            },
            caps: Caps {
                max_sessions: session.max_sessions.min(most_sessions).max(1),
                max_per_key: session.max_per_key,
                max_queue: session.max_queue,
            },
            of_account: of_account.collect(),
            routing: Routing::of(config),
            max_owners: config.state.max_owners,
            prewarm: config.session.prewarm,
            continuation: config.continuation.enabled,
            client_buffer: config.server.client_buffer,
            commit_after: config.server.commit_after,
            heartbeat: config.server.heartbeat,
            slow_client: watchdog.slow_client,
            queue_wait: session.queue_wait,
            connect_deadline: watchdog.connect_deadline,
            handshake_patience: watchdog.handshake_patience,
            drain: config.server.drain,
            shared_credentials: config.clients.len() > 1,
        }
    }

    /// What the configuration says about requests that name what nobody is known to own.
    pub(super) fn rules(&self) -> route::Rules {
        route::Rules {
            shared: self.shared_credentials,
            forward_unknown: self.routing.forward_unknown,
        }
    }

    /// What an account may do.
    pub fn of_account(&self, account: AccountId) -> OfAccount {
        self.of_account[usize::from(account.0)]
    }

    /// How long a turn waits until it may dial. Where it has nothing to fall back on, so long that there is time left for its
    /// own handshake [KEY-31].
    pub fn waits_to_dial(&self, account: AccountId) -> Duration {
        let most = self.for_a_socket(account).unwrap_or_default();
        most.saturating_sub(self.handshake_patience).max(self.queue_wait)
    }

    /// How long a turn that has waited for so long waits for its own handshake.
    pub fn waits_for_handshake(&self, account: AccountId, waited: Duration) -> Duration {
        let most = self.for_a_socket(account).unwrap_or_default();
        most.saturating_sub(waited).max(self.handshake_patience)
    }

    /// What a turn without direct HTTP has for a socket: as much as any may hear nothing for (CFG-16).
    fn for_a_socket(&self, account: AccountId) -> Option<Duration> {
        let alone = self.of_account(account).transport == config::Transport::Websocket;
        alone.then(|| self.queue_wait.saturating_add(self.connect_deadline))
    }

    /// How one session of an account is kept. `jitter`, 0 to 1, takes off up to a tenth of its age, so that sessions
    /// opened together do not end together.
    pub fn session(&self, account: AccountId, jitter: f64) -> session::Policy {
        let max_age = self
            .of_account(account)
            .max_age
            .mul_f64(1.0 - 0.1 * jitter.clamp(0.0, 1.0));
        session::Policy {
            max_age,
            ..self.session
        }
    }
}

impl Policy {
    /// How a turn is run. `whole`: the upstream is asked for one JSON object.
    pub(super) fn turn(&self, transport: Transport, stream: bool, whole: bool) -> turn::Policy {
        turn::Policy {
            limits: self.limits,
            transport,
            stream,
            whole,
            commit_after: self.commit_after,
            heartbeat: self.heartbeat,
            slow_client: self.slow_client,
            items_cap: self.client_buffer,
        }
    }
}
