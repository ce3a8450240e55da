//! Another configuration in the place of the one in force, as one step (REL-1, REL-10).

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::config::{self, Config, Environment, Faults};
use crate::counted::agreeing;
use crate::downstream::{Edge, Settings};
use crate::runtime::operate::{Check, State};
use crate::runtime::{Handle, Policy};
use crate::upstream::AccountFault;

/// What was changed, by the keys' paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// In force now.
    pub changed: Vec<String>,
    /// Waits for a restart.
    pub needs_restart: Vec<String>,
}

/// Why a configuration was not put in force. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotReloaded {
    Faulty(Faults),
    /// In the words of what failed.
    Unusable(String),
}

/// Changes what a running bridge is told.
pub struct Reloader {
    /// Held through a reload, so that two cannot mix. Never across an await.
    in_force: Mutex<Config>,
    edge: Edge<Handle>,
    runtime: Handle,
    /// Sessions that the file limit leaves room for.
    sockets: usize,
    /// How the file stands, as an operator is told.
    standing: Mutex<Check>,
}

impl Reloader {
    pub(super) fn new(in_force: Config, edge: Edge<Handle>, runtime: Handle, sockets: usize) -> Self {
        Reloader {
            in_force: Mutex::new(in_force),
            edge,
            runtime,
            sockets,
            standing: Mutex::new(Check::new("config", State::Ok, "as at the start")),
        }
    }

    /// How the configuration's file stands to what is in force.
    pub fn standing(&self) -> Check {
        self.standing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The file has been read, with this outcome; `None`: it was rejected.
    pub(super) fn stands(&self, reloaded: Option<&Reloaded>) {
        let check = match reloaded {
            None => Check::new(
                "config",
                State::Warn,
                "the file is rejected; the one before it is in force",
            ),
            Some(reloaded) if !reloaded.needs_restart.is_empty() => {
                Check::new("config", State::Warn, waiting(&reloaded.needs_restart))
            }
            Some(_) => Check::new("config", State::Ok, "as in the file"),
        };
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = check;
    }

    /// The configuration in force.
    pub fn in_force(&self) -> Config {
        self.locked().clone()
    }

    /// Parses and checks the text of a file, or makes the built-in configuration anew, and puts it in force as
    /// [`Self::reload`] does. Blocks for 3 s at most, for a proxy that is not in force yet.
    ///
    /// # Errors
    /// It has faults, or cannot be used.
    pub fn load(
        &self,
        file: Option<(&Path, &str)>,
        environment: Environment<'_>,
    ) -> Result<Reloaded, NotReloaded> {
        let new = match file {
            Some((path, text)) => Config::parse(text, &path.display().to_string(), environment),
            None => Config::built_in(environment),
        };
        let new = new.map_err(NotReloaded::Faulty)?;
        config::reach_beside(&self.in_force(), &new).map_err(NotReloaded::Faulty)?;
        self.reload(&new).map_err(|fault| {
            NotReloaded::Unusable(format!("watchdog.connect_deadline cannot be changed: {fault}"))
        })
    }

    /// Puts in force what of `new` can be, and says what waits for a restart. Turns that run keep what they began with. Blocks
    /// for milliseconds, so an async caller runs it on a blocking thread.
    ///
    /// # Errors
    /// Connections cannot be made with another deadline; nothing was changed.
    pub fn reload(&self, new: &Config) -> Result<Reloaded, AccountFault> {
        let mut in_force = self.locked();
        let applied = config::apply(&in_force, new);
        let reloaded = Reloaded {
            changed: applied.changed,
            needs_restart: applied.needs_restart,
        };
        if reloaded.changed.is_empty() {
            return Ok(reloaded);
        }
        let now = applied.config;
        let runtime = &self.runtime.0;
        let deadline = now.watchdog.connect_deadline;
        if deadline != in_force.watchdog.connect_deadline {
            // All that can fail comes before all that changes anything.
            let clients = runtime.clients(deadline)?;
            runtime.connect_with(clients);
        }
        let turnover = self.edge.reconfigure(&Settings::of(&now.server, &now.clients));
        runtime.change_policy(Policy::of(&now, self.sockets), &turnover.gone, &turnover.here);
        *in_force = now;
        Ok(reloaded)
    }

    fn locked(&self) -> MutexGuard<'_, Config> {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keys that are named; of more, their number.
const NAMED: usize = 8;

/// Which keys wait for a restart.
fn waiting(keys: &[String]) -> String {
    let wait = agreeing(keys.len() as u64, "changed key waits", "changed keys wait");
    let named: Vec<&str> = keys.iter().take(NAMED).map(String::as_str).collect();
    let more = match keys.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{wait} for a restart: {}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [HLT-6] Whoever is told that keys wait for a restart is told which.
    #[test]
    fn keys_that_wait_are_named() {
        let keys = |count: usize| (0..count).map(|at| format!("a.k{at}")).collect::<Vec<_>>();
        assert_eq!(waiting(&keys(1)), "1 changed key waits for a restart: a.k0");
        assert_eq!(waiting(&keys(2)), "2 changed keys wait for a restart: a.k0, a.k1");
        assert!(waiting(&keys(20)).ends_with("a.k7 and 12 more"));
    }
}
