//! From a well-formed file to a [`Config`]: what the values mean, alone and together.
use std::path::{Path, PathBuf};

use super::document::Places;
use super::fault::Fault;
use super::policy::{
    Affinity, Config, Continuation, Http, Journal, Ownership, Quarantine, Routing, Session, State, Watchdog,
};
use super::{Environment, Reads, credentials, listening, providers, raw, routing, windows};

/// Collects faults. A value that cannot be used is replaced by a harmless one, so that the rest is still judged; with
/// any fault the result is not served.
pub struct Review<'a> {
    pub env: Environment<'a>,
    /// Which secrets are read, by their keys.
    pub reads: Reads,
    file: &'a str,
    places: Places,
    faults: Vec<Fault>,
}

impl Review<'_> {
    pub fn fault(&mut self, key: &str, problem: impl Into<String>, hint: impl Into<String>) {
        let fault = self.made(key, problem, hint);
        self.faults.push(fault);
    }

    /// A fault that is not one yet.
    pub fn made(&self, key: &str, problem: impl Into<String>, hint: impl Into<String>) -> Fault {
        let place = self.places.around(key);
        Fault {
            file: self.file.to_owned(),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
            key: key.to_owned(),
            problem: problem.into(),
            hint: hint.into(),
        }
    }

    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Which of `keys`, most to blame first, to report: the first that the file holds, for a default is nobody's fault.
    pub fn blame<'k>(&self, keys: &[&'k str]) -> &'k str {
        let written = keys.iter().find(|key| self.places.of(key).is_some());
        written.or(keys.first()).copied().unwrap_or("")
    }

    /// `path` from the configuration file's folder, so that it does not matter where the bridge is started (CFG-15). None
    /// after a fault.
    pub fn resolve(&mut self, key: &str, path: &Path) -> Option<PathBuf> {
        if path.starts_with("~") {
            self.fault(key, "~ is not understood here", "write the whole path");
            return None;
        }
        if path.as_os_str().is_empty() {
            self.fault(key, "is empty", "write a path, or leave the key out");
            return None;
        }
        let folder = Path::new(self.file).parent().unwrap_or(Path::new(""));
        let joined = folder.join(path);
        Some(std::path::absolute(&joined).unwrap_or(joined))
    }
}

/// Checks `raw`, and says everything that is wrong with its meaning.
pub fn review(
    raw: raw::File,
    places: Places,
    file: &str,
    env: Environment<'_>,
    reads: Reads,
) -> (Config, Vec<Fault>) {
    let mut review = Review {
        env,
        reads,
        file,
        places,
        faults: Vec::new(),
    };
    windows::check(&mut review, &raw);
    let clients = credentials::clients(&mut review, &raw.clients);
    let server = listening::server(&mut review, &raw, &clients);
    let providers = providers::providers(&mut review, raw.providers, !raw.clients.is_empty());
    routing::check(&mut review, &raw.routing, &raw.session, &providers);
    let config = Config {
        server,
        clients,
        providers,
        routing: Routing {
            strategy: raw.routing.strategy,
        },
        affinity: Affinity {
            ttl: raw.affinity.ttl.0,
            max_pins: raw.affinity.max_pins,
        },
        ownership: Ownership {
            unknown: raw.ownership.unknown,
        },
        continuation: Continuation {
            enabled: raw.continuation.enabled,
        },
        session: Session {
            idle_ttl: raw.session.idle_ttl.0,
            max_age: raw.session.max_age.0,
            max_sessions: raw.session.max_sessions,
            max_per_key: raw.session.max_per_key,
            queue_wait: raw.session.queue_wait.0,
            max_queue: raw.session.max_queue,
            prewarm: raw.session.prewarm,
        },
        watchdog: Watchdog {
            connect_deadline: raw.watchdog.connect_deadline.0,
            handshake_patience: raw.watchdog.handshake_patience.0,
            write_deadline: raw.watchdog.write_deadline.0,
            response_created_deadline: raw.watchdog.response_created_deadline.0,
            idle_deadline: raw.watchdog.idle_deadline.0,
            request_deadline: raw.watchdog.request_deadline.0,
            ping_interval: raw.watchdog.ping_interval.0,
            reuse_check_after: raw.watchdog.reuse_check_after.0,
            pong_deadline: raw.watchdog.pong_deadline.0,
            slow_client: raw.watchdog.slow_client.0,
        },
        http: Http {
            first_byte: raw.http.first_byte.0,
            first_event: raw.http.first_event.0,
            between_events: raw.http.between_events.0,
        },
        quarantine: Quarantine {
            window: raw.quarantine.window.0,
            max_window: raw.quarantine.max_window.0,
            max_keys: raw.quarantine.max_keys,
        },
        state: state(&mut review, &raw.state),
        journal: Journal {
            keep: raw.journal.keep.0,
            max: raw.journal.max,
        },
    };
    (config, review.faults)
}

fn state(review: &mut Review<'_>, raw: &raw::State) -> State {
    let directory = match &raw.path {
        Some(path) => review.resolve("state.path", path).unwrap_or_default(),
        None => default_directory(review.env).unwrap_or_else(|| {
            let problem =
                "there is no place for the state: STATE_DIRECTORY, XDG_STATE_HOME and HOME are not set";
            review.fault(
                "state.path",
                problem,
                "name a folder as path in [state], or set one of them",
            );
            PathBuf::new()
        }),
    };
    State {
        directory,
        max_owners: raw.max_owners,
    }
}

/// (CFG-15)
fn default_directory(env: Environment<'_>) -> Option<PathBuf> {
    let folder = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    // systemd joins several `StateDirectory=` with colons; the first is the unit's main one.
    let given = env("STATE_DIRECTORY").and_then(|list| list.split(':').next().map(PathBuf::from));
    given
        .filter(|path| path.is_absolute())
        .or_else(|| folder("XDG_STATE_HOME").map(|home| home.join("responses-bridge")))
        .or_else(|| folder("HOME").map(|home| home.join(".local/state/responses-bridge")))
}
