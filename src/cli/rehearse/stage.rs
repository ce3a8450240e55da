//! What a drill is played on: a simulated upstream and the bridge on free ports of loopback, and an ear for its events.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::time::Instant;

use crate::app::{App, Outlets};
use crate::config::Config;
use crate::event::Level;
use crate::rehearse::{Fault, Plan, Sent, Speed, Told, Way, healthy, told};
use crate::simulator::{Conclusion, Options, Script, Simulator, Transport};
use crate::wire::ProviderKind;

/// Events that tell nothing of an incident: for the judgement, not for the sequence. That the stage was set is before any part
/// of it.
const ROUTINE: [&str; 8] = [
    "bridge_started",
    "turn_sent",
    "turn_accepted",
    "session_reused",
    "route_chosen",
    "continuation_used",
    "owner_routed",
    "continuation_rejected",
];

/// The stage.
pub struct Stage {
    pub simulator: Arc<Simulator>,
    app: App,
    began: Instant,
    heard: Arc<Mutex<Vec<Told>>>,
    clients: Vec<SecretString>,
    step: Duration,
}

impl Stage {
    /// The configuration as it can be played: no address but loopback's, whatever the file says.
    pub fn on_loopback(mut config: Config) -> Config {
        config.server.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        config.server.admin_listen = None;
        for provider in &mut config.providers {
            provider.ca_file = None;
        }
        config
    }

    /// Starts both programs.
    pub async fn set(mut config: Config, files: u64, plan: &Plan) -> anyhow::Result<Stage> {
        let script = Script::parse(&healthy(plan.step)).context("the script of health")?;
        let options = Options {
            script,
            ..Options::default()
        };
        let simulator = Simulator::start(options)
            .await
            .context("cannot listen on 127.0.0.1")?;
        for provider in &mut config.providers {
            let place = match provider.kind {
                ProviderKind::Chatgpt => simulator.chatgpt_base_url(),
                _ => simulator.base_url(),
            };
            provider.base_url = Url::parse(&place).context("the simulated upstream's address")?;
        }
        let began = Instant::now();
        let heard: Arc<Mutex<Vec<Told>>> = Arc::default();
        let (ear, speed) = (heard.clone(), plan.speed);
        let outlets = Outlets {
            level: Level::Debug,
            lines: Box::new(move |line| {
                if let Ok(line) = serde_json::from_slice::<Line>(line) {
                    lock(&ear).push(line.told(began.elapsed(), speed));
                }
            }),
            // The bridge's own event says the same.
            state_fault: Box::new(|_| {}),
            // The clients and the upstream take theirs from the same limit.
            file_limit: files / 2,
            trap: None,
            spans: None,
        };
        let clients = config.clients.iter().map(|client| client.key.clone()).collect();
        Ok(Stage {
            app: App::start(config, outlets).await?,
            simulator: Arc::new(simulator),
            began,
            heard,
            clients,
            step: plan.step,
        })
    }

    /// Where the clients find the bridge.
    pub fn address(&self) -> SocketAddr {
        self.app.address()
    }

    /// What client `number` presents: one of the configured keys, or one of its own.
    pub fn key(&self, number: usize) -> String {
        let configured = self.clients.get(number % self.clients.len().max(1));
        configured.map_or_else(
            || format!("rehearsal-client-{number}"),
            |key| key.expose_secret().to_owned(),
        )
    }

    /// Since the start.
    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// From now on the upstream behaves like this.
    pub fn break_down(&self, fault: Fault, plan: &Plan) -> anyhow::Result<()> {
        let script = fault.script(plan.step, plan.slow, plan.retry_after_s);
        self.simulator
            .rescript(Script::parse(&script).context("the script of the fault")?);
        Ok(())
    }

    /// From now on the upstream is well.
    pub fn mend(&self) -> anyhow::Result<()> {
        self.simulator
            .rescript(Script::parse(&healthy(self.step)).context("the script of health")?);
        Ok(())
    }

    /// All events so far.
    pub fn events(&self) -> Vec<Told> {
        lock(&self.heard).clone()
    }

    /// All creates so far.
    pub fn sent(&self) -> Vec<Sent> {
        self.simulator.look(|ledger| {
            let sent = ledger.creates.iter().map(|create| Sent {
                // Each call has metadata of its own, which the settings' hash covers.
                call: format!("{} {}", create.conversation, create.settings),
                way: way(create.transport),
                rejected: matches!(create.conclusion, Conclusion::Errored(status) if ![408, 500, 502, 504].contains(&status)),
                broken: create.conclusion == Conclusion::Broken,
            });
            sent.collect()
        })
    }

    /// How the upstream was asked for this response.
    pub fn way_of(&self, response: &str) -> Option<Way> {
        self.simulator.look(|ledger| {
            let create = ledger
                .creates
                .iter()
                .rfind(|create| create.response_id == response);
            create.map(|create| way(create.transport))
        })
    }

    /// Ends both programs.
    pub async fn clear(self) {
        self.app.drain().await;
        if let Some(simulator) = Arc::into_inner(self.simulator) {
            simulator.stop().await;
        }
    }
}

/// A std mutex: it is held for one push, never across an await.
fn lock(heard: &Mutex<Vec<Told>>) -> MutexGuard<'_, Vec<Told>> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn way(transport: Transport) -> Way {
    match transport {
        Transport::Websocket => Way::Websocket,
        Transport::Http => Way::Http,
    }
}

/// What of a log line a drill reads.
#[derive(Deserialize)]
struct Line {
    event: String,
    key: Option<String>,
    provider: Option<String>,
    account: Option<String>,
    reason: Option<String>,
    shape: Option<String>,
    outcome: Option<String>,
    transport: Option<String>,
    upgrade: Option<String>,
    status: Option<u16>,
    window_ms: Option<u64>,
    waited_ms: Option<u64>,
    for_ms: Option<u64>,
}

impl Line {
    fn told(self, at: Duration, speed: Speed) -> Told {
        let account = self.provider.zip(self.account);
        let account = account.map(|(provider, account)| format!("{provider}/{account}"));
        let words = [&self.shape, &self.reason, &self.outcome, &self.upgrade];
        let mut detail: Vec<String> = words.into_iter().flatten().cloned().collect();
        detail.extend(self.status.map(|status| status.to_string()));
        detail.extend(self.transport.clone());
        let lasts = self.window_ms.or(self.for_ms).map(Duration::from_millis);
        detail.extend(lasts.map(|lasts| format!("for {}", told(speed.real(lasts)))));
        Told {
            at,
            routine: ROUTINE.contains(&self.event.as_str()),
            way: self.transport.as_deref().and_then(|word| match word {
                "websocket" => Some(Way::Websocket),
                "http" => Some(Way::Http),
                _ => None,
            }),
            event: self.event,
            key: self.key,
            account,
            detail: detail.join(", "),
            reason: self.reason,
            shape: self.shape,
            window: self.window_ms.map(Duration::from_millis),
            waited: self.waited_ms.map(Duration::from_millis),
        }
    }
}
