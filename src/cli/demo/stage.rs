//! What the play is played on: a simulated upstream and a bridge on free ports of loopback, and the audience's screen.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use tempfile::TempDir;
use tokio::sync::watch;

use super::fault::Fault;
use super::screen::{Screen, Tone};
use super::words::{Seen, Sessions};
use crate::app::{App, Outlets};
use crate::config::Config;
use crate::event::Level;
use crate::simulator::{Ledger, Options, Script, Simulator};

/// A silent session is noticed after this; 60 s outside of the demo.
pub const SILENT_AFTER: Duration = Duration::from_millis(1500);
/// The first quarantine lasts this long; 60 s outside of the demo.
pub const WINDOW: Duration = Duration::from_secs(2);
/// More files than this play opens.
const FILES: u64 = 256;

/// The stage.
pub struct Stage {
    hall: Arc<Hall>,
    events: watch::Receiver<usize>,
    simulator: Simulator,
    app: App,
    /// Removed when the play is over.
    state: TempDir,
}

/// What the bridge's events and the play write to.
struct Hall(Mutex<Audience>);

struct Audience {
    screen: Screen,
    sessions: Sessions,
    seen: Vec<Seen>,
}

impl Hall {
    /// A std mutex: it is held for one line of text, never across an await.
    fn lock(&self) -> MutexGuard<'_, Audience> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One line of the bridge's log.
    fn hear(&self, line: &[u8]) -> usize {
        let mut audience = self.lock();
        let Audience {
            screen,
            sessions,
            seen,
        } = &mut *audience;
        // There is one account: that it was chosen says nothing. Nor does it that the stage was set.
        let told = |event: &Seen| !matches!(event.event.as_str(), "route_chosen" | "bridge_started");
        if let Some(event) = serde_json::from_slice::<Seen>(line).ok().filter(told) {
            let (tone, words) = event.words(sessions);
            screen.line(tone, &event.event, &words);
            seen.push(event);
        }
        seen.len()
    }
}

impl Stage {
    /// Starts both programs.
    pub async fn set(screen: Screen, fault: Fault) -> anyhow::Result<Stage> {
        let script = Script::parse(&fault.script()).context("the script of this fault")?;
        let simulator = Simulator::start(Options {
            script,
            ..Options::default()
        })
        .await
        .context("cannot listen on 127.0.0.1")?;
        let state = tempfile::Builder::new()
            .prefix("responses-bridge-demo-")
            .tempdir()
            .context("cannot make a directory for the state")?;
        let hall = Arc::new(Hall(Mutex::new(Audience {
            screen,
            sessions: Sessions::default(),
            seen: Vec::new(),
        })));
        let (count, events) = watch::channel(0);
        let hearing = hall.clone();
        let outlets = Outlets {
            level: Level::Debug,
            lines: Box::new(move |line| {
                count.send_replace(hearing.hear(line));
            }),
            // The bridge's own event says the same.
            state_fault: Box::new(|_| {}),
            file_limit: FILES,
            trap: None,
            spans: None,
        };
        let app = App::start(config(&simulator, &state)?, outlets).await?;
        Ok(Stage {
            hall,
            events,
            simulator,
            app,
            state,
        })
    }

    /// What the agent is given in place of the upstream's own address.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.app.address())
    }

    /// What the upstream is reached at.
    pub fn upstream_url(&self) -> String {
        self.simulator.base_url()
    }

    /// What the upstream has seen.
    pub fn ledger(&self) -> Ledger {
        self.simulator.ledger()
    }

    /// Prints a heading and a sentence.
    pub fn heading(&self, title: &str, sentence: &str) {
        self.hall.lock().screen.heading(title, sentence);
    }

    /// Prints plain text.
    pub fn text(&self, text: &str) {
        self.hall.lock().screen.text(text);
    }

    /// Prints what somebody else than the bridge did.
    pub fn tell(&self, tone: Tone, name: &str, words: &str) {
        self.hall.lock().screen.line(tone, name, words);
    }

    /// How many events there were so far: where a chapter begins.
    pub fn mark(&self) -> usize {
        self.hall.lock().seen.len()
    }

    /// The events since `mark`.
    pub fn since(&self, mark: usize) -> Vec<Seen> {
        self.hall.lock().seen[mark..].to_vec()
    }

    /// Waits until the events since `mark` are as wanted, for `patience` at most; the caller looks again and judges.
    pub async fn until(&self, mark: usize, patience: Duration, wanted: impl Fn(&[Seen]) -> bool) {
        let mut events = self.events.clone();
        let met = events.wait_for(|_| wanted(&self.hall.lock().seen[mark..]));
        let _ = tokio::time::timeout(patience, met).await;
    }

    /// Ends both programs and removes the state.
    pub async fn clear(self) {
        self.hall.lock().screen = Screen::nowhere();
        self.app.drain().await;
        self.simulator.stop().await;
        // What cannot be removed now is the system's to sweep: it lies among the temporary files.
        let _ = self.state.close();
    }
}

fn config(simulator: &Simulator, state: &TempDir) -> anyhow::Result<Config> {
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n\
         [providers.simulated]\nbase_url = \"{}\"\n\
         [[providers.simulated.accounts]]\nname = \"demo\"\ncredential = \"client\"\n\
         [watchdog]\nresponse_created_deadline = \"{}ms\"\n\
         [quarantine]\nwindow = \"{}ms\"\n",
        simulator.base_url(),
        SILENT_AFTER.as_millis(),
        WINDOW.as_millis(),
    );
    let place = state
        .path()
        .to_str()
        .context("the temporary directory's name is not text")?;
    let env = |name: &str| (name == "XDG_STATE_HOME").then(|| place.to_owned());
    Config::parse(&text, "demo", &env).context("the demo's own configuration")
}
