//! Follows the configuration file: what is changed there, or what SIGHUP asks for, is put in force (REL-5 to REL-9).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::look::{Mark, SETTLED, Seen, Settling, Unreadable, look};
use super::reload::{NotReloaded, Reloaded, Reloader};
use crate::config::{BUILT_IN, Fault};
use crate::event::{Event, Events};
use crate::runtime;

/// Between two looks: soon enough for whoever has just saved a file.
const EVERY: Duration = Duration::from_secs(1);
/// Looks that one request makes at most. What moves longer than that is said to move, and read when it has come to rest.
const MOST_LOOKS: usize = 20;
/// A configuration with faults is tried again after so many looks: what it lacks may lie elsewhere.
const AGAIN: u32 = 10;
/// Faults that are written to the log, one line each.
const MOST_FAULTS: usize = 20;

/// How the environment is looked up.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What is followed.
pub struct Followed {
    /// Without one, a request alone has the built-in configuration made anew.
    pub file: Option<PathBuf>,
    pub environment: Environment,
    /// Asks for the file to be read now. Requests that come while one is met are one.
    pub asked: Arc<Notify>,
}

/// Why a file was not put in force.
#[derive(PartialEq, Eq)]
enum Rejected {
    Unreadable(Unreadable),
    /// It was another one at each look.
    Unsettled,
    Wrong(NotReloaded),
}

/// See the module.
pub(super) struct Follower {
    followed: Followed,
    reloader: Arc<Reloader>,
    events: Events,
    settling: Settling,
    /// The rejection that was told, and holds still.
    told: Option<(Mark, Rejected)>,
    /// The first look only finds what the bridge was started with, mostly.
    first: bool,
}

impl Follower {
    pub(super) fn new(followed: Followed, reloader: Arc<Reloader>, events: Events) -> Self {
        Follower {
            followed,
            reloader,
            events,
            settling: Settling::default(),
            told: None,
            first: true,
        }
    }

    /// Follows for as long as it is polled.
    pub(super) async fn run(mut self) {
        let mut tick = tokio::time::interval(EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut looks = 0_u32;
        loop {
            tokio::select! {
                () = self.followed.asked.notified() => self.asked().await,
                _ = tick.tick(), if self.followed.file.is_some() => {
                    looks = looks.wrapping_add(1);
                    self.looked(looks.is_multiple_of(AGAIN)).await;
                }
            }
        }
    }

    /// One look at the file. `again`: what was rejected is tried once more.
    async fn looked(&mut self, again: bool) {
        let Some(seen) = self.look().await else { return };
        let act = self.settling.saw(runtime::now(), seen.mark);
        if act || (again && self.settling.is_settled() && self.told.is_some()) {
            self.act(seen, Asked(false)).await;
        }
    }

    /// Reads the file now, and says what came of it in any case.
    async fn asked(&mut self) {
        if self.followed.file.is_none() {
            let seen = Seen {
                text: Ok(String::new()),
                mark: Mark::default(),
            };
            return self.act(seen, Asked(true)).await;
        }
        for _ in 0..MOST_LOOKS {
            if let Some(seen) = self.look().await
                && (self.settling.saw(runtime::now(), seen.mark) || self.settling.is_settled())
            {
                return self.act(seen, Asked(true)).await;
            }
            tokio::time::sleep(SETTLED).await;
        }
        // Half a file could be a whole one of another meaning.
        self.tell(&Rejected::Unsettled);
    }

    /// Off the threads that serve: the file may lie on a network.
    async fn look(&self) -> Option<Seen> {
        let file = self.followed.file.clone()?;
        let seen = tokio::task::spawn_blocking(move || look(&file));
        // Only a panic could be lost here: the next look is a second away.
        seen.await.ok()
    }

    async fn act(&mut self, seen: Seen, asked: Asked) {
        let (file, environment) = (self.followed.file.clone(), self.followed.environment.clone());
        let (reloader, text) = (self.reloader.clone(), seen.text);
        let reload = move || {
            let text = text.map_err(Rejected::Unreadable)?;
            let named = file.as_deref().map(|file| (file, text.as_str()));
            reloader
                .load(named, &|variable| environment(variable))
                .map_err(Rejected::Wrong)
        };
        let Ok(outcome) = tokio::task::spawn_blocking(reload).await else {
            return;
        };
        self.reloader.stands(outcome.as_ref().ok());
        match outcome {
            Ok(reloaded) => {
                let mended = self.told.take().is_some();
                let silent = self.first && reloaded == Reloaded::default();
                if asked.0 || mended || !silent {
                    self.events.emit(&Event::ConfigReloaded {
                        changed: &reloaded.changed,
                        needs_restart: &reloaded.needs_restart,
                    });
                }
            }
            Err(rejected) => {
                let told = (seen.mark, rejected);
                if asked.0 || self.told.as_ref() != Some(&told) {
                    self.tell(&told.1);
                }
                self.told = Some(told);
            }
        }
        self.first = false;
    }

    fn tell(&self, rejected: &Rejected) {
        let name = name(self.followed.file.as_ref());
        let mut rejection = (None, None, 1);
        let reason = match rejected {
            Rejected::Unreadable(why) => {
                tracing::warn!("{name}: cannot be read: {why}; the configuration before it stays in force");
                "unreadable"
            }
            Rejected::Unsettled => {
                tracing::warn!(
                    "{name}: it, or a file of a secret that it names, changes faster than it can be read; the configuration \
                     before it stays in force, and it is read when it has come to rest"
                );
                "unsettled"
            }
            Rejected::Wrong(NotReloaded::Unusable(why)) => {
                tracing::warn!("{name}: {why}; the configuration before it stays in force");
                "faulty"
            }
            Rejected::Wrong(NotReloaded::Faulty(faults)) => {
                let count = faults.iter().count();
                for fault in faults.iter().take(MOST_FAULTS) {
                    tracing::warn!("{fault}");
                }
                if count > MOST_FAULTS {
                    tracing::warn!(
                        "{name}: {} more faults; see `responses-bridge check`",
                        count - MOST_FAULTS
                    );
                }
                if faults.iter().any(is_of_a_secret) {
                    tracing::warn!(
                        "{name}: the admin token or client key whose file is of no use is still valid; to revoke it, put \
                         another one into the file, or take its entry out of the configuration"
                    );
                }
                let first = faults.iter().next();
                let key = first
                    .map(|fault| fault.key.as_str())
                    .filter(|key| !key.is_empty());
                rejection = (first.and_then(|fault| fault.line), key, count);
                "faulty"
            }
        };
        let (line, key_path, faults) = rejection;
        self.events.emit(&Event::ConfigRejected {
            reason,
            line,
            key_path,
            faults,
        });
    }
}

/// Whoever empties the file of a secret that has leaked believes that it opens nothing any more (REL-21).
fn is_of_a_secret(fault: &Fault) -> bool {
    let key = fault.key.as_str();
    key == "server.admin_token.file" || (key.starts_with("clients[") && key.ends_with("].key.file"))
}

/// Whether somebody waits to hear of it.
#[derive(Clone, Copy)]
struct Asked(bool);

fn name(file: Option<&PathBuf>) -> String {
    file.map_or(BUILT_IN.to_owned(), |file| file.display().to_string())
}
