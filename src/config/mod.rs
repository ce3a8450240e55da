//! Configuration: TOML text in, checked policy out ("parse, don't validate").
//!
//! Text goes through three rooms. `document` finds every fault of form at once: keys nobody reads, wrong kinds, wrong
//! units. `raw` is then filled. `review` finds every fault of meaning at once, resolves secrets, and makes the
//! [`Config`] that the rest of the crate works with. Requirements: `spec/configuration.md`.
use std::path::Path;

mod credentials;
mod defaults;
mod diff;
mod document;
mod fault;
mod followed;
mod headers;
pub mod in_force;
mod listening;
mod policy;
mod providers;
mod proxy;
mod raw;
mod reach;
mod reading;
mod rehearsal;
mod review;
mod routing;
mod schema;
mod units;
mod windows;

pub use credentials::{Found, NoSecret, secret_in};
pub use diff::{Applied, When, apply, keys};
pub use fault::{Fault, Faults};
pub use followed::followed;
pub use policy::{
    Account, Affinity, Client, Config, Continuation, Credential, CredentialSource, Http, Journal, Ownership,
    Provider, Proxy, Quarantine, Routing, Server, Session, State, Strategy, Transport, Unknown, Watchdog,
};
pub use reach::{reach, reach_beside};
pub use reading::{Reading, Reads};
pub use rehearsal::{Rehearsal, rehearsal};
pub use schema::schema;
pub use units::{ByteSize, Lapse};
pub use windows::longest_created;

/// How the environment is looked up: `std::env::var(name).ok()`, or a map in a test.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What stands for the file's name in faults and sentences when there is no file.
pub(crate) const BUILT_IN: &str = "the built-in configuration";

impl Config {
    /// What holds without a file: loopback, the callers' own credentials, OpenAI and ChatGPT upstream (CFG-1).
    ///
    /// Fails only where the environment leaves no place for the state.
    pub fn built_in(env: Environment<'_>) -> Result<Config, Faults> {
        Config::parse("", BUILT_IN, env)
    }

    /// Checks `text`. `file` is its name in faults, and its folder is where relative paths start (CFG-2, CFG-15).
    pub fn parse(text: &str, file: &str, env: Environment<'_>) -> Result<Config, Faults> {
        Reading::of(text, file, env, |_| true)?.judged()
    }

    /// The same without a look at a secret: that one cannot be read from here is no fault (CFG-21).
    pub fn without_secrets(text: &str, file: &str, env: Environment<'_>) -> Result<Config, Faults> {
        Reading::of(text, file, env, |_| false)?.judged()
    }

    /// Reads and checks the file at `path`; without one, [`Config::built_in`].
    pub fn load(path: Option<&Path>, env: Environment<'_>) -> Result<Config, Faults> {
        match path {
            Some(path) => Config::parse(&read(path)?, &path.display().to_string(), env),
            None => Config::built_in(env),
        }
    }
}

/// The text of the file at `path`.
pub fn read(path: &Path) -> Result<String, Faults> {
    std::fs::read_to_string(path).map_err(|error| {
        let hint = "give the path of a readable TOML file in UTF-8, or none for the built-in configuration";
        Fault::of_file(
            path.display().to_string(),
            format!("cannot be read: {error}"),
            hint,
        )
        .into()
    })
}
