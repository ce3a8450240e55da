//! What operators see of the process beside its runtime: the configuration in force, its file, the listener.

use std::sync::{Arc, OnceLock, Weak};

use super::Reloader;
use crate::admin::ui::Ui;
use crate::admin::{self, Admin};
use crate::config::{self, Config};
use crate::listen::Doors;
use crate::runtime::Runtime;
use crate::runtime::operate::{Check, Look, State};

/// The configuration in force, once there is who knows it. Weak: who knows it holds the edge, which holds this.
#[derive(Clone, Default)]
pub(super) struct Configured(Arc<OnceLock<Weak<Reloader>>>);

impl Configured {
    /// This is who knows it.
    pub fn by(&self, reloader: &Arc<Reloader>) {
        // Once for each bridge.
        let _ = self.0.set(Arc::downgrade(reloader));
    }

    fn reloader(&self) -> Option<Arc<Reloader>> {
        self.0.get().and_then(Weak::upgrade)
    }

    /// What is looked at beside the runtime. So many connections may be open.
    pub fn looks(&self, doors: &Doors, connections: usize) -> Vec<Look> {
        let room = doors.room.clone();
        let listener = move || {
            let open = connections.saturating_sub(room.available_permits());
            let state = if open >= connections {
                State::Warn
            } else {
                State::Ok
            };
            Check::new("listener", state, format!("{open} of {connections} connections"))
        };
        let configured = self.clone();
        let file = move || {
            let known = configured.reloader().map(|reloader| reloader.standing());
            known.unwrap_or_else(|| Check::new("config", State::Ok, "as at the start"))
        };
        vec![Box::new(listener), Box::new(file)]
    }

    /// What operators see and do.
    pub fn operators(&self, config: &Config, runtime: Arc<Runtime>, page: Arc<Ui>) -> Arc<Admin> {
        let (configured, at_start) = (self.clone(), config::in_force::json(config));
        let effective = move || match configured.reloader() {
            Some(reloader) => config::in_force::json(&reloader.in_force()),
            None => at_start.clone(),
        };
        Admin::new(admin::Parts {
            runtime,
            effective: Box::new(effective),
            journal: (config.journal.max > 0).then(|| config.state.directory.clone()),
            browsers: Some(Box::new(page)),
        })
    }
}
