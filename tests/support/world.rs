//! A simulated upstream and the bridge before it, in one process, on free loopback ports.
#![allow(dead_code, reason = "each test crate uses a part of it")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use responses_bridge::app::{App, Outlets};
use responses_bridge::config::Config;
use responses_bridge::event::Level;
use responses_bridge::runtime::{Spans, Trap};
use responses_bridge::simulator::{Conversation, Options, Script, Simulator};
use serde_json::Value;

use crate::client::{Answer, Ask, MOMENT, Reply};

/// Two providers at the simulator, with the callers' own credentials. Deadlines that a healthy turn must not meet stay
/// as they are; tests of silence shorten what they are about.
const CONFIG: &str = r#"
[server]
listen = "127.0.0.1:0"

[providers.openai]
base_url = "{openai}"
[[providers.openai.accounts]]
name = "main"
credential = "client"

[providers.chatgpt]
kind = "chatgpt"
base_url = "{chatgpt}"
[[providers.chatgpt.accounts]]
name = "main"
credential = "client"
"#;

/// How a world is set up.
#[derive(Default)]
pub struct Setup {
    config: Vec<String>,
    script: String,
    secrets: BTreeMap<String, String>,
    trap: Option<Trap>,
    spans: Option<Spans>,
    state: Option<Arc<tempfile::TempDir>>,
}

impl Setup {
    pub fn new() -> Setup {
        Setup::default()
    }

    /// Lays TOML over the configuration. `[providers]` in it replace the usual ones; `{openai}` and `{chatgpt}` are the
    /// simulator's base URLs.
    pub fn config(mut self, toml: &str) -> Setup {
        self.config.push(toml.into());
        self
    }

    /// The simulator's script.
    pub fn script(mut self, script: &str) -> Setup {
        self.script = script.into();
        self
    }

    /// An environment variable for the configuration.
    pub fn secret(mut self, name: &str, value: &str) -> Setup {
        self.secrets.insert(name.into(), value.into());
        self
    }

    /// Looks at, and may panic on, the head of every upstream event.
    pub fn trap(mut self, trap: Trap) -> Setup {
        self.trap = Some(trap);
        self
    }

    /// Takes the spans of calls.
    pub fn spans(mut self, spans: Spans) -> Setup {
        self.spans = Some(spans);
        self
    }

    /// The state of an earlier bridge.
    pub fn state(mut self, state: &Arc<tempfile::TempDir>) -> Setup {
        self.state = Some(state.clone());
        self
    }

    /// Starts the simulator, then the bridge.
    pub async fn start(self) -> World {
        let script = Script::parse(&self.script).unwrap();
        let options = Options {
            script,
            ..Options::default()
        };
        self.before(Simulator::start(options).await.unwrap()).await
    }

    /// Starts the bridge before a simulator that runs already.
    pub async fn before(self, upstream: Simulator) -> World {
        let (openai, chatgpt) = (upstream.base_url(), upstream.chatgpt_base_url());
        let fill = |text: &str| -> toml::Table {
            let text = text.replace("{openai}", &openai).replace("{chatgpt}", &chatgpt);
            text.parse().unwrap()
        };
        let mut table = fill(CONFIG);
        for text in &self.config {
            let mut over = fill(text);
            if let Some(providers) = over.remove("providers") {
                table.insert("providers".into(), providers);
            }
            lay_over(&mut table, over);
        }
        let state = self
            .state
            .unwrap_or_else(|| Arc::new(tempfile::tempdir().unwrap()));
        let path = toml::Table::from_iter([("path".to_owned(), state.path().to_str().unwrap().into())]);
        lay_over(
            &mut table,
            toml::Table::from_iter([("state".to_owned(), path.into())]),
        );
        let text = table.to_string();
        let config = Config::parse(&text, "world.toml", &|name| self.secrets.get(name).cloned());
        let config = config.unwrap_or_else(|faults| panic!("{faults}"));
        let lines = Arc::<Mutex<Vec<Value>>>::default();
        let sink = lines.clone();
        let outlets = Outlets {
            level: Level::Debug,
            lines: Box::new(move |line| sink.lock().unwrap().push(serde_json::from_slice(line).unwrap())),
            state_fault: Box::new(|fault| panic!("{fault}")),
            file_limit: 4096,
            trap: self.trap,
            spans: self.spans,
        };
        let app = App::start(config, outlets).await.unwrap();
        World {
            address: app.address(),
            upstream,
            app,
            lines,
            state,
            text,
            secrets: self.secrets,
        }
    }
}

fn lay_over(table: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (table.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => lay_over(below, above),
            (_, value) => drop(table.insert(key, value)),
        }
    }
}

/// A running bridge and its upstream. All ends with the test's runtime.
pub struct World {
    pub upstream: Simulator,
    pub app: App,
    pub address: SocketAddr,
    lines: Arc<Mutex<Vec<Value>>>,
    pub state: Arc<tempfile::TempDir>,
    /// The configuration, and the environment that it was read in.
    pub text: String,
    pub secrets: BTreeMap<String, String>,
}

impl World {
    /// Makes a request and reads its answer to the end.
    pub async fn ask(&self, ask: &Ask) -> Answer {
        ask.ask(self.address).await
    }

    /// Makes a request and reads the answer's head.
    pub async fn open(&self, ask: &Ask) -> Reply {
        ask.open(self.address).await
    }

    /// How many creates of a conversation (`sim:conv=NAME`) reached the upstream, by transport.
    pub fn creates(&self, conversation: &str) -> Conversation {
        self.upstream.look(|ledger| ledger.conversation(conversation))
    }

    /// The sockets that carried a conversation's creates, in their order; `None` is direct HTTP.
    pub fn sockets(&self, conversation: &str) -> Vec<Option<u64>> {
        self.upstream.look(|ledger| {
            ledger
                .creates_of(conversation)
                .map(|create| create.socket)
                .collect()
        })
    }

    /// All event lines so far.
    pub fn lines(&self) -> Vec<Value> {
        self.lines.lock().unwrap().clone()
    }

    /// The event lines of one name.
    pub fn events(&self, name: &str) -> Vec<Value> {
        let mut lines = self.lines();
        lines.retain(|line| line["event"] == name);
        lines
    }

    /// The names of all events so far that are among `names`.
    pub fn sequence(&self, names: &[&str]) -> Vec<String> {
        let lines = self.lines();
        let named = lines
            .iter()
            .map(|line| line["event"].as_str().unwrap().to_owned());
        named.filter(|name| names.contains(&name.as_str())).collect()
    }

    /// Waits for so many events of one name.
    pub async fn saw(&self, name: &str, times: usize) {
        eventually(&format!("{times} x {name}"), || self.events(name).len() >= times).await;
    }

    /// Waits until the ledger meets a condition.
    pub async fn upstream_saw(
        &self,
        what: &str,
        condition: impl FnMut(&responses_bridge::simulator::Ledger) -> bool,
    ) {
        assert!(
            self.upstream.until(MOMENT, condition).await,
            "the upstream never saw: {what}"
        );
    }

    /// The value of a metric: the sum over all label sets that contain `labels`; `None` where there is no such line.
    pub async fn metric(&self, name: &str, labels: &str) -> Option<f64> {
        let answer = self.ask(&Ask::bare("GET", "/metrics")).await;
        assert_eq!(answer.status, 200);
        let lines = answer.text().lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']) && rest.contains(labels))
        });
        let values = lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap());
        values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
    }

    /// Waits until no turn runs or waits, no session is at work, and no byte is held.
    pub async fn quiet(&self) {
        for gauge in ["bridge_running_turns", "bridge_queue_depth", "bridge_held_bytes"] {
            self.gauge_is(gauge, "", 0).await;
        }
        for state in ["busy", "opening"] {
            self.gauge_is("bridge_sessions", state, 0).await;
        }
    }

    /// Waits until a gauge has a value.
    pub async fn gauge_is(&self, name: &str, labels: &str, wanted: u32) {
        let until = tokio::time::Instant::now() + MOMENT;
        loop {
            let is = self.metric(name, labels).await;
            if is == Some(f64::from(wanted)) {
                return;
            }
            assert!(
                tokio::time::Instant::now() < until,
                "{name}{{{labels}}} stays at {is:?}, not {wanted}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Waits for something that another task will bring about.
pub async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    };
    tokio::time::timeout(MOMENT, waiting)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}
