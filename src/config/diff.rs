//! What differs between two configurations, and what of it can be put in force while serving (REL-1 to REL-4).
//!
//! One table says of every key of the file whether a new value is live or waits for a restart. Names and keys come out of
//! here, never values.

use http::HeaderMap;

use super::credentials::same;
use super::listening::is_loopback;
use super::policy::{Account, Client, Config, CredentialSource, Provider, Server};

/// When a new value of a key comes into force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At once.
    Live,
    /// At the next start.
    Restart,
    /// A new value at once, and at once too where the key is taken away; where it is added, at the next start.
    LiveOnceSet,
}

/// What became of another configuration.
#[derive(Clone, Debug)]
pub struct Applied {
    /// What is to be in force: the new one, but for what waits for a restart.
    pub config: Config,
    /// Keys that differ and are live, in the order of the table.
    pub changed: Vec<String>,
    /// Keys that differ and wait for a restart.
    pub needs_restart: Vec<String>,
}

/// One key of the table. `T` is what it is a key of.
struct Key<T> {
    /// As the schema has it: `watchdog.idle_deadline`, or the last part below `[[clients]]`, a provider or an account.
    path: &'static str,
    when: When,
    differs: fn(&T, &T) -> bool,
    /// Whether the new value is live, of those that differ.
    live: fn(&T, &T) -> bool,
    take: fn(&mut T, &T),
}

macro_rules! path {
    ($first:ident) => {
        stringify!($first)
    };
    ($table:ident.$key:ident) => {
        concat!(stringify!($table), ".", stringify!($key))
    };
}

macro_rules! key {
    (live $($field:ident).+) => { key!(live $($field).+ as $($field).+) };
    (live $($field:ident).+ as $($name:ident).+) => {
        Key {
            path: path!($($name).+),
            when: When::Live,
            differs: |before, now| before.$($field).+ != now.$($field).+,
            live: |_, _| true,
            take: |into, from| into.$($field).+ = from.$($field).+.clone(),
        }
    };
    (restart $($field:ident).+) => { key!(restart $($field).+ as $($field).+) };
    (restart $($field:ident).+ as $($name:ident).+) => {
        key!(restart $($name).+ if |before, now| before.$($field).+ != now.$($field).+)
    };
    (restart $($name:ident).+ if $differs:expr) => {
        Key {
            path: path!($($name).+),
            when: When::Restart,
            differs: $differs,
            live: |_, _| false,
            take: |_, _| {},
        }
    };
}

/// The keys of the tables that stand once.
const KEYS: &[Key<Config>] = &[
    key!(restart server.listen),
    key!(restart server.admin_listen),
    Key {
        path: "server.admin_token",
        when: When::LiveOnceSet,
        differs: |before, now| !same_token(&before.server, &now.server),
        // A token that is taken away opens nothing more. What it opens is made at the start.
        live: |before, _| before.server.admin_token.is_some(),
        take: |into, from| into.server.admin_token = from.server.admin_token.clone(),
    },
    key!(live server.max_body),
    key!(restart server.body_budget),
    key!(live server.client_buffer),
    key!(live server.commit_after),
    key!(live server.heartbeat),
    key!(live server.drain),
    key!(live server.allow_origins),
    key!(live routing.strategy),
    key!(live affinity.ttl),
    key!(live affinity.max_pins),
    key!(live ownership.unknown),
    key!(live continuation.enabled),
    key!(live session.idle_ttl),
    key!(live session.max_age),
    key!(live session.max_sessions),
    key!(live session.max_per_key),
    key!(live session.queue_wait),
    key!(live session.max_queue),
    key!(live session.prewarm),
    key!(live watchdog.connect_deadline),
    key!(live watchdog.handshake_patience),
    key!(live watchdog.write_deadline),
    key!(live watchdog.response_created_deadline),
    key!(live watchdog.idle_deadline),
    key!(live watchdog.request_deadline),
    key!(live watchdog.ping_interval),
    key!(live watchdog.reuse_check_after),
    key!(live watchdog.pong_deadline),
    key!(live watchdog.slow_client),
    key!(live http.first_byte),
    key!(live http.first_event),
    key!(live http.between_events),
    key!(live quarantine.window),
    key!(live quarantine.max_window),
    key!(live quarantine.max_keys),
    key!(restart state.directory as state.path),
    key!(restart state.max_owners),
    key!(restart journal.keep),
    key!(restart journal.max),
];

/// The keys of `[[clients]]`: a name is who it is, so that another one is another client.
const OF_CLIENT: &[Key<Client>] = &[
    Key {
        path: "name",
        when: When::Live,
        differs: |before, now| before.name != now.name,
        live: |_, _| true,
        take: |_, _| {},
    },
    Key {
        path: "key",
        when: When::Live,
        differs: |before, now| !same(&before.key, &now.key),
        live: |_, _| true,
        take: |into, from| into.key = from.key.clone(),
    },
];

/// The keys of `[providers.NAME]`.
const OF_PROVIDER: &[Key<Provider>] = &[
    key!(restart kind),
    key!(restart base_url),
    key!(live transport),
    key!(restart ca_file),
    key!(restart fragment),
    key!(live max_age),
    key!(live max_frame),
    key!(live models),
    key!(live one_model_per_connection),
    key!(restart headers),
];

/// The keys of `[[providers.NAME.accounts]]`. Of a credential only counts where it lies: what a file holds is followed
/// elsewhere.
const OF_ACCOUNT: &[Key<Account>] = &[
    key!(restart name),
    key!(restart source as credential),
    key!(live weight),
    key!(restart proxy if |before, now| proxy(before) != proxy(now)),
    key!(restart headers if |before, now| plain(&before.headers) != plain(&now.headers)),
    key!(restart chatgpt_account_id if |before, now| {
        before.headers.get(CHATGPT_ACCOUNT) != now.headers.get(CHATGPT_ACCOUNT)
    }),
];

const CHATGPT_ACCOUNT: &str = "chatgpt-account-id";

/// Every key of the schema, as `providers.NAME.accounts[].weight`, and when a new value of it comes into force.
pub fn keys() -> impl Iterator<Item = (String, When)> {
    let rows = |prefix: &'static str, rows: Vec<(&'static str, When)>| {
        rows.into_iter()
            .map(move |(path, when)| (format!("{prefix}{path}"), when))
    };
    rows("", of(KEYS))
        .chain(rows("clients[].", of(OF_CLIENT)))
        .chain(rows("providers.NAME.", of(OF_PROVIDER)))
        .chain(rows("providers.NAME.accounts[].", of(OF_ACCOUNT)))
}

fn of<T>(keys: &[Key<T>]) -> Vec<(&'static str, When)> {
    keys.iter().map(|key| (key.path, key.when)).collect()
}

/// What of `new` can be put in force in the place of `in_force`, and what else differs.
///
/// Live keys that would contradict what waits for a restart wait with it (REL-4).
pub fn apply(in_force: &Config, new: &Config) -> Applied {
    let mut applied = Applied {
        config: in_force.clone(),
        changed: Vec::new(),
        needs_restart: Vec::new(),
    };
    let (changed, waiting) = (&mut applied.changed, &mut applied.needs_restart);
    let mut found = Found { changed, waiting };
    found.compare(KEYS, String::new, &mut applied.config, (in_force, new));
    clients(&mut found, &mut applied.config, (in_force, new));
    providers(&mut found, &mut applied.config, (in_force, new));
    hold_back(&mut applied, in_force);
    applied
}

/// The paths that differ.
struct Found<'a> {
    changed: &'a mut Vec<String>,
    waiting: &'a mut Vec<String>,
}

impl Found<'_> {
    /// Compares two of a kind, and takes what is live. `path`: of the table around the keys, with its dot.
    fn compare<T>(
        &mut self,
        keys: &[Key<T>],
        path: impl Fn() -> String,
        into: &mut T,
        (before, now): (&T, &T),
    ) {
        for key in keys.iter().filter(|key| (key.differs)(before, now)) {
            let named = path() + key.path;
            if (key.live)(before, now) {
                (key.take)(into, now);
                self.changed.push(named);
            } else {
                self.waiting.push(named);
            }
        }
    }
}

fn clients(found: &mut Found<'_>, config: &mut Config, (in_force, new): (&Config, &Config)) {
    for gone in in_force
        .clients
        .iter()
        .filter(|client| named(&new.clients, &client.name).is_none())
    {
        found.changed.push(format!("clients.{}", gone.name));
    }
    config.clients.clear();
    for client in &new.clients {
        let mut taken = client.clone();
        match named(&in_force.clients, &client.name) {
            Some(before) => {
                let path = || format!("clients.{}.", client.name);
                found.compare(OF_CLIENT, path, &mut taken, (before, client));
            }
            None => found.changed.push(format!("clients.{}", client.name)),
        }
        config.clients.push(taken);
    }
}

fn named<'a>(clients: &'a [Client], name: &str) -> Option<&'a Client> {
    clients.iter().find(|client| client.name == name)
}

fn providers(found: &mut Found<'_>, config: &mut Config, (in_force, new): (&Config, &Config)) {
    let name = |provider: &Provider| provider.name.clone();
    found.set("providers", &in_force.providers, &new.providers, name);
    for (into, before) in config.providers.iter_mut().zip(&in_force.providers) {
        let Some(now) = new.providers.iter().find(|now| now.name == before.name) else {
            continue;
        };
        let table = format!("providers.{}.", before.name);
        found.compare(OF_PROVIDER, || table.clone(), into, (before, now));
        let table = format!("{table}accounts");
        let name = |account: &Account| account.name.clone();
        found.set(&table, &before.accounts, &now.accounts, name);
        for into in &mut into.accounts {
            let of = |provider: &Provider| {
                let mut accounts = provider.accounts.iter();
                let account = accounts.find(|account| account.name == into.name);
                account.map(|account| own(provider, account))
            };
            if let (Some(before), Some(now)) = (of(before), of(now)) {
                let path = || format!("{table}.{}.", before.name);
                found.compare(OF_ACCOUNT, path, into, (&before, &now));
            }
        }
    }
}

impl Found<'_> {
    /// Which of a list are there on one side only; the list as a whole where both have the same ones in another order.
    fn set<T>(&mut self, path: &str, before: &[T], now: &[T], name: impl Fn(&T) -> String) {
        let names = |list: &[T]| list.iter().map(&name).collect::<Vec<_>>();
        let (before, now) = (names(before), names(now));
        let gone = before.iter().filter(|name| !now.contains(name));
        let fresh = now.iter().filter(|name| !before.contains(name));
        let count = self.waiting.len();
        self.waiting
            .extend(gone.chain(fresh).map(|name| format!("{path}.{name}")));
        if self.waiting.len() == count && before != now {
            self.waiting.push(path.to_owned());
        }
    }
}

/// Takes back what would contradict what waits for a restart: a bridge that is open to the network with nobody to check, a
/// client's key that goes upstream, a client that is an operator, a body that never fits.
fn hold_back(applied: &mut Applied, in_force: &Config) {
    let config = &mut applied.config;
    let unchecked = config.clients.is_empty() && !is_loopback(config.server.listen);
    let passed_on = !config.clients.is_empty()
        && config.providers.iter().any(|provider| {
            let mut accounts = provider.accounts.iter();
            accounts.any(|account| account.source == CredentialSource::Client)
        });
    let mut held: Vec<&str> = Vec::new();
    if unchecked || passed_on {
        config.clients.clone_from(&in_force.clients);
        held.push("clients.");
    }
    let operates = config.server.admin_token.as_ref().is_some_and(|token| {
        let mut clients = config.clients.iter();
        clients.any(|client| same(&client.key, token))
    });
    if operates {
        // The new one waits, as the client does whose key it is; the old one is out of the file.
        config.server.admin_token = None;
        applied.needs_restart.push("server.admin_token".to_owned());
    }
    let budget = config.server.body_budget;
    if config.server.max_body > budget {
        config.server.max_body = in_force.server.max_body;
        held.push("server.max_body");
    }
    if config.server.client_buffer > budget {
        config.server.client_buffer = in_force.server.client_buffer;
        held.push("server.client_buffer");
    }
    let is_held = |path: &String| held.iter().any(|held| path.starts_with(held));
    let (waiting, changed) = std::mem::take(&mut applied.changed)
        .into_iter()
        .partition(is_held);
    applied.changed = changed;
    let waiting: Vec<String> = waiting;
    applied.needs_restart.extend(waiting);
}

fn same_token(before: &Server, now: &Server) -> bool {
    match (&before.admin_token, &now.admin_token) {
        (Some(before), Some(now)) => same(before, now),
        (None, None) => true,
        _ => false,
    }
}

fn proxy(account: &Account) -> Option<&str> {
    account.proxy.as_ref().map(|proxy| proxy.url.as_str())
}

/// The account with its own headers alone.
fn own(provider: &Provider, account: &Account) -> Account {
    let mut own = account.clone();
    for (name, value) in &provider.headers {
        if own.headers.get(name) == Some(value) {
            own.headers.remove(name);
        }
    }
    own
}

fn plain(headers: &HeaderMap) -> HeaderMap {
    let mut plain = headers.clone();
    plain.remove(CHATGPT_ACCOUNT);
    plain
}

#[cfg(test)]
mod tests;
