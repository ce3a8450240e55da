//! What can go wrong in the demo: how the simulated upstream is told, and what the bridge must do about it.

/// What the simulated upstream does to the request after the healthy conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Fault {
    /// Nothing: only the healthy conversation is played
    None,
    /// It takes the request and says nothing
    Silent,
    /// It sends events, but never `response.created`
    EventsWithoutCreated,
    /// It sends telemetry only
    Telemetry,
    /// It answers pings and sends its own, and no event
    Pings,
    /// It closes the WebSocket in place of an answer
    Close,
    /// It refuses a WebSocket to a new conversation
    Refusal,
}

/// How an incident is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plot {
    /// The healthy conversation alone.
    Nothing,
    /// The session goes silent: quarantine, direct HTTP, probe.
    Silence,
    /// The socket closes under a turn: an error that may be retried, a new session.
    Loss,
    /// No session can be opened: direct HTTP in the same call.
    Refused,
}

/// The create, or the upgrade, that the fault befalls: three healthy turns on one session come before it.
const STRUCK: usize = 4;

impl Fault {
    /// How it is played.
    pub fn plot(self) -> Plot {
        match self {
            Fault::None => Plot::Nothing,
            Fault::Silent | Fault::EventsWithoutCreated | Fault::Telemetry | Fault::Pings => Plot::Silence,
            Fault::Close => Plot::Loss,
            Fault::Refusal => Plot::Refused,
        }
    }

    /// The upstream's script. Every answer that is not struck takes its time in small steps, so that it can be watched.
    pub fn script(self) -> String {
        let strike = match self {
            Fault::None => return healthy(),
            Fault::Silent => "silent",
            Fault::EventsWithoutCreated => "no_created(n=54, delay=20ms)",
            Fault::Telemetry => "telemetry(every=200ms)",
            Fault::Pings => "pings(every=200ms)",
            Fault::Close => "close(code=1011, delay=300ms)",
            Fault::Refusal => {
                return format!(
                    "[[upgrade]]\nmatch.nth = 2\ndo = \"refuse(status=503)\"\n{}",
                    healthy()
                );
            }
        };
        format!(
            "[[rule]]\nmatch.nth = {STRUCK}\nbehave = \"{strike}\"\n{}",
            healthy()
        )
    }

    /// What the upstream is about to do, for the audience.
    pub fn announced(self) -> &'static str {
        match self {
            Fault::None => "",
            Fault::Silent => "The upstream takes the next request and then says nothing.",
            Fault::EventsWithoutCreated => {
                "The upstream sends 54 events for the next request, but never response.created."
            }
            Fault::Telemetry => "The upstream takes the next request and sends nothing but telemetry.",
            Fault::Pings => "The upstream takes the next request; its pings go on, and no event comes.",
            Fault::Close => {
                "The upstream takes the next request and closes the WebSocket in place of an answer."
            }
            Fault::Refusal => "A new conversation begins, and the upstream refuses it a WebSocket.",
        }
    }

    /// What was shown, at the end. Short, so that the last line has room for what to do next.
    pub fn shown(self) -> &'static str {
        match self {
            Fault::None => "a healthy session",
            Fault::Silent => "a silent session",
            Fault::EventsWithoutCreated => "a wedged session",
            Fault::Telemetry => "telemetry alone",
            Fault::Pings => "pings alone",
            Fault::Close => "a lost session",
            Fault::Refusal => "a refused session",
        }
    }
}

fn healthy() -> String {
    "[[rule]]\nbehave = \"text(n=6, delay=50ms)\"\n".to_owned()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::simulator::Script;

    /// [RUN-14] Every fault is one that the simulated upstream understands.
    #[test]
    fn every_fault_has_a_script_that_can_be_played() {
        for fault in Fault::value_variants() {
            let script = Script::parse(&fault.script()).unwrap_or_else(|error| panic!("{fault:?}: {error}"));
            let struck = script.rules.len() + script.upgrades.len() > 1;
            assert_eq!(struck, *fault != Fault::None, "{fault:?}");
        }
    }
}
