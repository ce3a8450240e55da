//! What is played, for how long, and by whom: from the configuration of a drill, once its durations are short (REH-5).

use std::collections::BTreeMap;
use std::time::Duration;

use super::fault::Fault;
use super::pace::Speed;
use crate::bridge::routing;
use crate::config::{Config, Transport};
use crate::wire::ProviderKind;

/// What a person takes between an answer and the next question.
const THINK: Duration = Duration::from_secs(10);
/// Beyond so many questions per second in all, the machine and not the bridge would be rehearsed.
const PER_CLIENT: Duration = Duration::from_millis(15);
/// Scheduling, and what else is no part of a window: of the drill's own time.
const SLACK: Duration = Duration::from_millis(1_500);
/// What upstream's 429 says.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// For so long, of the drill's own time, a flapping upstream is watched.
const FLAPS_FOR: Duration = Duration::from_secs(90);
/// Probes during a fault are worth waiting for, but not for ever.
const PROBES_FOR: Duration = Duration::from_secs(10);

/// What one kind of clients asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// By the path of the ChatGPT backend.
    pub chatgpt: bool,
    pub model: String,
    /// Whether its turns go over sessions: `None` where one account has them and another has not.
    pub sessions: Option<bool>,
}

impl Lane {
    fn without_certainty(self) -> Lane {
        let sessions = self.sessions.filter(|sessions| !sessions);
        Lane { sessions, ..self }
    }
}

/// A drill. Durations are of the drill's own time.
#[derive(Clone, Debug)]
pub struct Plan {
    pub fault: Fault,
    pub speed: Speed,
    pub clients: usize,
    /// Client `n` has the lane `n % lanes.len()`.
    pub lanes: Vec<Lane>,
    /// What each account, as `provider/account`, may use.
    pub ways: BTreeMap<String, Transport>,
    /// Every client's conversation can be in quarantine at a time.
    pub keys_fit: bool,
    /// Between an answer and the next question.
    pub think: Duration,
    /// Between two deltas of an answer.
    pub step: Duration,
    /// The delay of `response.created` in the fault `slow`: half of the shortest deadline for it.
    pub slow: Duration,
    /// What upstream's 429 says, in whole seconds of the drill.
    pub retry_after_s: u64,
    /// Within this, every client has asked something.
    pub round: Duration,
    /// How long the fault lasts, or one spell of it.
    pub fault_for: Duration,
    /// Spells of the fault.
    pub spells: u32,
    pub deadline: Duration,
    pub window: Duration,
    /// The longest window that comes: `max_window`, or less where that takes too long, or the level is forgotten between two
    /// silences.
    pub top: Duration,
    pub max_window: Duration,
    /// After the fault, all is to be well again.
    pub back_within: Duration,
    pub slack: Duration,
}

impl Plan {
    /// The drill of a configuration whose durations are short already.
    pub fn of(config: &Config, fault: Fault, speed: Speed, clients: usize) -> Plan {
        let count = u32::try_from(clients).unwrap_or(u32::MAX);
        let think = speed.shorten(THINK).max(PER_CLIENT * count);
        let round = think.mul_f64(1.5) + Duration::from_secs(1);
        let deadline = config.watchdog.response_created_deadline;
        let (window, max_window) = (config.quarantine.window, config.quarantine.max_window);
        // Upstreams speak in whole seconds.
        let retry_after_s = (speed.shorten(RETRY_AFTER).as_secs_f64().round() as u64).max(1);
        let retry_after = Duration::from_secs(retry_after_s);
        let spell = round + deadline;
        let (spells, top) = match fault {
            // What is forgotten between two silences cannot double.
            Fault::Flap if max_window <= spell + SLACK => (2, window),
            Fault::Flap => flaps(window, max_window, spell),
            _ => (1, max_window),
        };
        Plan {
            fault,
            speed,
            clients,
            lanes: match config.session.max_sessions < clients {
                // Who gets one of the sessions is a matter of chance.
                true => lanes(config)
                    .into_iter()
                    .map(|lane| lane.without_certainty())
                    .collect(),
                false => lanes(config),
            },
            keys_fit: config.quarantine.max_keys >= clients,
            ways: ways(config),
            think,
            step: speed
                .shorten(Duration::from_millis(700))
                .max(Duration::from_millis(5)),
            slow: deadline.min(config.http.first_byte).min(config.http.first_event) / 2,
            retry_after_s,
            round,
            fault_for: match fault {
                Fault::Silent | Fault::Wedged => (deadline + (window * 2).min(PROBES_FOR)).max(spell),
                Fault::Reset => round * 3,
                Fault::Limit => round + retry_after * 2,
                Fault::Slow | Fault::Flap => spell,
            },
            spells,
            deadline,
            window,
            top,
            max_window,
            back_within: match fault {
                Fault::Limit => retry_after + round,
                _ if fault.silences() => max_window.max(window) + round,
                _ => round,
            },
            slack: SLACK,
        }
    }

    /// What a client asks for.
    pub fn lane(&self, client: usize) -> Option<&Lane> {
        self.lanes.get(client % self.lanes.len().max(1))
    }

    /// Whether some client's turns must go over sessions.
    pub fn needs_sessions(&self) -> bool {
        self.lanes.iter().any(|lane| lane.sessions == Some(true))
    }

    /// What cannot be expected of this configuration, beside what the expectations themselves say.
    pub fn left_to_chance(&self, config: &Config) -> Vec<String> {
        let (sessions, keys) = (config.session.max_sessions, config.quarantine.max_keys);
        let mut told = Vec::new();
        if sessions < self.clients {
            told.push(format!(
                "session.max_sessions ({sessions}) is below the number of clients: which of them has a session is left to \
                 chance, and none is expected to be back on one."
            ));
        }
        if !self.keys_fit {
            told.push(format!(
                "quarantine.max_keys ({keys}) is below the number of clients: which of them stays in quarantine is left to \
                 chance, and nothing is expected of the windows."
            ));
        }
        if self.lanes.iter().any(|lane| lane.sessions.is_none()) && sessions >= self.clients {
            told.push(
                "Some accounts have sessions and some that serve the same models have none: a client is not expected to be back \
                 on one."
                    .to_owned(),
            );
        }
        told
    }

    /// Whether an account has no direct HTTP for lack of a session.
    pub fn has_no_http(&self) -> bool {
        self.ways.values().any(|way| *way == Transport::Websocket)
    }

    /// Whether any client's turns go over sessions.
    pub fn has_sessions(&self) -> bool {
        self.lanes.iter().any(|lane| lane.sessions != Some(false))
    }
}

/// How often a flapping upstream goes silent until the longest window is reached, and that window.
fn flaps(window: Duration, max_window: Duration, spell: Duration) -> (u32, Duration) {
    if window.is_zero() {
        return (2, window);
    }
    let (mut spells, mut current, mut spent) = (1, window.min(max_window), spell + window);
    while current < max_window {
        let next = (current * 2).min(max_window);
        // At least one doubling is seen, however long it takes.
        if spells > 1 && spent + spell + next > FLAPS_FOR {
            break;
        }
        (spells, current, spent) = (spells + 1, next, spent + spell + next);
    }
    (spells, current)
}

/// One lane for each provider: a model that is served there, by the path of its kind.
pub fn lanes(config: &Config) -> Vec<Lane> {
    let lane = |provider: &crate::config::Provider| {
        let chatgpt = provider.kind == ProviderKind::Chatgpt;
        let plain = provider.models.first().map(|pattern| pattern.replace('*', ""));
        let model = plain
            .filter(|name| !name.is_empty())
            .unwrap_or("gpt-5".to_owned());
        let able = config.providers.iter().filter(|other| {
            (other.kind == ProviderKind::Chatgpt) == chatgpt && routing::serves(&other.models, &model)
        });
        let mut sessions = able.map(|provider| provider.transport != Transport::Http);
        let first = sessions.next();
        Lane {
            chatgpt,
            sessions: first.filter(|first| sessions.all(|other| other == *first)),
            model,
        }
    };
    config.providers.iter().map(lane).collect()
}

fn ways(config: &Config) -> BTreeMap<String, Transport> {
    let of = |provider: &crate::config::Provider| {
        let (name, way) = (provider.name.clone(), provider.transport);
        let accounts = provider.accounts.iter();
        accounts
            .map(move |account| (format!("{name}/{}", account.name), way))
            .collect::<Vec<_>>()
    };
    config.providers.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::scale::scale;
    use super::*;

    fn config(text: &str) -> Config {
        let env = |name: &str| Some(format!("/tmp/{name}"));
        Config::parse(text, "bridge.toml", &env).unwrap_or_else(|faults| panic!("{faults}"))
    }

    fn plan(text: &str, fault: Fault, speed: &str) -> Plan {
        let (mut config, speed) = (config(text), speed.parse().unwrap());
        scale(&mut config, speed);
        Plan::of(&config, fault, speed, 20)
    }

    /// [REH-5] A flapping upstream doubles the window to its longest, and where that takes too long, at least once.
    #[test]
    fn a_flap_reaches_the_longest_window() {
        let usual = plan("", Fault::Flap, "60");
        assert_eq!((usual.spells, usual.top), (5, Duration::from_secs(10)));
        let slow = plan("", Fault::Flap, "1");
        assert_eq!((slow.spells, slow.top), (2, Duration::from_secs(120)));
        let off = plan("quarantine.window = \"0s\"", Fault::Flap, "60");
        assert_eq!((off.spells, off.top), (2, Duration::ZERO));
        let alike = plan(
            "quarantine = { window = \"60s\", max_window = \"60s\" }",
            Fault::Flap,
            "60",
        );
        assert_eq!((alike.spells, alike.top), (2, Duration::from_secs(1)));
        let forgetful = plan(
            "quarantine = { window = \"30s\", max_window = \"90s\" }",
            Fault::Flap,
            "60",
        );
        assert_eq!((forgetful.spells, forgetful.top), (2, Duration::from_millis(500)));
    }

    /// [REH-5] Each provider has clients, who ask for a model that is served there, by its path.
    #[test]
    fn every_provider_has_clients() {
        let text = r#"
            [providers.one]
            models = ["gpt-5*", "o4"]
            accounts = [{ name = "a", credential = { env = "A" } }]
            [providers.two]
            kind = "generic"
            base_url = "https://two.example"
            models = ["*"]
            transport = "http"
            accounts = [{ name = "a", credential = { env = "B" } }]
            [providers.chat]
            kind = "chatgpt"
            accounts = [{ name = "a", credential = { env = "C" } }]
        "#;
        let lane = |chatgpt, model: &str, sessions| Lane {
            chatgpt,
            model: model.to_owned(),
            sessions,
        };
        // What the first serves, the second serves too, without sessions.
        let expected = [
            lane(false, "gpt-5", None),
            lane(false, "gpt-5", None),
            lane(true, "gpt-5", Some(true)),
        ];
        assert_eq!(lanes(&config(text)), expected);
    }
}
