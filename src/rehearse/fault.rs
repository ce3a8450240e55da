//! What can go wrong in a drill.

use std::time::Duration;

/// What the simulated upstream does while the fault lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Fault {
    /// Sessions take requests and say nothing
    Silent,
    /// Sessions send events, and never `response.created`
    Wedged,
    /// Sockets are reset under their turns, twice for each conversation
    Reset,
    /// Every request is rejected with 429 and Retry-After, on both transports
    #[value(name = "429")]
    Limit,
    /// Every `response.created` takes half of the deadline, on both transports
    Slow,
    /// Sessions go silent, come back, and go silent again, until the longest window is reached
    Flap,
}

impl Fault {
    /// As it is written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Silent => "silent",
            Fault::Wedged => "wedged",
            Fault::Reset => "reset",
            Fault::Limit => "429",
            Fault::Slow => "slow",
            Fault::Flap => "flap",
        }
    }

    /// Whether sessions go silent, so that conversations are quarantined.
    pub fn silences(self) -> bool {
        matches!(self, Fault::Silent | Fault::Wedged | Fault::Flap)
    }

    /// Whether direct HTTP is not touched by it.
    pub fn is_of_sessions(self) -> bool {
        self.silences() || self == Fault::Reset
    }

    /// The upstream's script while it lasts, beside healthy answers in steps of `step`.
    pub fn script(self, step: Duration, slow: Duration, retry_after_s: u64) -> String {
        let strike = match self {
            Fault::Silent | Fault::Flap => "silent(on=ws)".to_owned(),
            Fault::Wedged => "no_created(n=54, delay=20ms, on=ws)".to_owned(),
            Fault::Reset => "reset(on=ws, times=2)".to_owned(),
            Fault::Limit => format!("error(shape=headers_top, status=429, retry_after={retry_after_s})"),
            Fault::Slow => format!("created_after(delay={}ms)", slow.as_millis()),
        };
        format!("[[rule]]\nbehave = \"{} {strike}\"\n", text(step))
    }
}

/// The upstream's script in health.
pub fn healthy(step: Duration) -> String {
    format!("[[rule]]\nbehave = \"{}\"\n", text(step))
}

fn text(step: Duration) -> String {
    format!("text(n=3, delay={}ms)", step.as_millis())
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::simulator::Script;

    /// [REH-1] Every fault is one that the simulated upstream understands, and is called what the command line calls it.
    #[test]
    fn every_fault_can_be_played() {
        let ms = Duration::from_millis;
        for fault in Fault::value_variants() {
            let script = fault.script(ms(10), ms(500), 1);
            assert!(Script::parse(&script).is_ok(), "{script}");
            assert_eq!(fault.to_possible_value().unwrap().get_name(), fault.name());
        }
        assert!(Script::parse(&healthy(ms(10))).is_ok());
    }
}
