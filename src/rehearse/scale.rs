//! Every duration of a configuration, shortened by the speed of a drill, none below what a machine can keep (REH-4).

use std::time::Duration;

use super::pace::{Speed, told};
use crate::config::{Config, Lapse};

/// A duration of the configuration, and what it is in the drill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The full path of its key.
    pub key: String,
    pub own: Duration,
    pub drill: Duration,
    /// It could not be shortened as far as the others.
    pub floor: bool,
}

/// The windows that expectations are about.
pub const CREATED: &str = "watchdog.response_created_deadline";
pub const WINDOW: &str = "quarantine.window";
pub const MAX_WINDOW: &str = "quarantine.max_window";

impl Window {
    /// Of what the drill has, as much as it would be in earnest; with a star where that is not what the configuration says.
    pub fn told(&self, speed: Speed) -> String {
        let star = if self.floor { "*" } else { "" };
        format!("{}{star}", told(speed.real(self.drill)))
    }
}

/// What the stars of the expectations mean; `None` where there is none.
pub fn stars(windows: &[Window], speed: Speed) -> Option<String> {
    let starred = |window: &&Window| window.floor && [CREATED, WINDOW, MAX_WINDOW].contains(&&*window.key);
    let starred: Vec<_> = windows
        .iter()
        .filter(starred)
        .map(|window| {
            let (key, drill) = (&window.key, window.told(speed));
            format!("{key} {drill} in place of {}", Lapse(window.own))
        })
        .collect();
    (!starred.is_empty()).then(|| {
        format!(
            "At this speed the drill has longer windows than the configuration, and tells its own, marked with a star: {}. A \
             lower --speed comes closer.",
            starred.join(", ")
        )
    })
}

/// Shortens all that is a duration. Zero stays zero: it means "not at all". What the journal keeps is not waited for, and stays.
///
/// A floor is what two loaded cores keep apart from their own scheduling: a ping that is asked for each 10 ms proves nothing
/// about the upstream.
pub fn scale(config: &mut Config, speed: Speed) -> Vec<Window> {
    let mut windows = Vec::new();
    let mut shorten = |key: &str, duration: &mut Duration, floor: u64| {
        let own = *duration;
        let short = speed.shorten(own);
        // A floor lengthens nothing beyond what the operator wrote.
        let least = Duration::from_millis(floor).min(own);
        *duration = short.max(least);
        windows.push(Window {
            key: key.to_owned(),
            own,
            drill: *duration,
            floor: least > short,
        });
    };
    let watchdog = &mut config.watchdog;
    shorten(CREATED, &mut watchdog.response_created_deadline, 750);
    shorten("watchdog.connect_deadline", &mut watchdog.connect_deadline, 2_000);
    shorten(
        "watchdog.handshake_patience",
        &mut watchdog.handshake_patience,
        1_000,
    );
    shorten("watchdog.write_deadline", &mut watchdog.write_deadline, 1_000);
    shorten("watchdog.idle_deadline", &mut watchdog.idle_deadline, 2_000);
    shorten(
        "watchdog.request_deadline",
        &mut watchdog.request_deadline,
        10_000,
    );
    shorten("watchdog.ping_interval", &mut watchdog.ping_interval, 1_000);
    shorten("watchdog.reuse_check_after", &mut watchdog.reuse_check_after, 100);
    shorten("watchdog.pong_deadline", &mut watchdog.pong_deadline, 500);
    shorten("watchdog.slow_client", &mut watchdog.slow_client, 5_000);
    let quarantine = &mut config.quarantine;
    shorten(WINDOW, &mut quarantine.window, 250);
    shorten(MAX_WINDOW, &mut quarantine.max_window, 250);
    let http = &mut config.http;
    shorten("http.first_byte", &mut http.first_byte, 1_000);
    shorten("http.first_event", &mut http.first_event, 1_000);
    shorten("http.between_events", &mut http.between_events, 2_000);
    let session = &mut config.session;
    shorten("session.queue_wait", &mut session.queue_wait, 100);
    shorten("session.idle_ttl", &mut session.idle_ttl, 5_000);
    shorten("session.max_age", &mut session.max_age, 5_000);
    for provider in &mut config.providers {
        if let Some(age) = &mut provider.max_age {
            shorten(&format!("providers.{}.max_age", provider.name), age, 5_000);
        }
    }
    let server = &mut config.server;
    shorten("server.commit_after", &mut server.commit_after, 500);
    shorten("server.heartbeat", &mut server.heartbeat, 100);
    shorten("server.drain", &mut server.drain, 1_000);
    shorten("affinity.ttl", &mut config.affinity.ttl, 60_000);
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built_in() -> Config {
        Config::built_in(&|name| (name == "HOME").then(|| "/tmp".to_owned())).unwrap()
    }

    fn of<'a>(windows: &'a [Window], key: &str) -> &'a Window {
        windows.iter().find(|window| window.key == key).unwrap()
    }

    /// [REH-4] All durations are divided; those that would be too short to mean anything stay longer, and are marked.
    #[test]
    fn durations_are_divided_down_to_a_floor() {
        let mut config = built_in();
        let windows = scale(&mut config, "60".parse().unwrap());
        let created = of(&windows, "watchdog.response_created_deadline");
        assert_eq!(
            (created.own, created.drill, created.floor),
            (Duration::from_secs(60), Duration::from_secs(1), false)
        );
        assert_eq!(config.quarantine.max_window, Duration::from_secs(10));
        let pong = of(&windows, "watchdog.pong_deadline");
        assert_eq!((pong.drill, pong.floor), (Duration::from_millis(500), true));
        assert_eq!(config.watchdog.pong_deadline, pong.drill);
        assert!(config.watchdog.handshake_patience <= config.watchdog.connect_deadline);
    }

    /// [REH-4] Zero means "not at all" and stays zero, and nothing becomes longer than it was.
    #[test]
    fn zero_stays_zero() {
        let mut config = built_in();
        config.quarantine.window = Duration::ZERO;
        config.session.queue_wait = Duration::ZERO;
        config.watchdog.pong_deadline = Duration::from_millis(20);
        let windows = scale(&mut config, "1000".parse().unwrap());
        assert!(config.quarantine.window.is_zero() && config.session.queue_wait.is_zero());
        assert!(!of(&windows, "quarantine.window").floor);
        assert_eq!(config.watchdog.pong_deadline, Duration::from_millis(20));
        assert!(windows.iter().all(|window| window.drill <= window.own));
    }

    /// [REH-14] What the drill keeps longer than the configuration says is not told as if it were the operator's own.
    #[test]
    fn what_is_the_drills_own_is_marked() {
        let speed = "60".parse().unwrap();
        let mut config = built_in();
        assert_eq!(stars(&scale(&mut config, speed), speed), None);
        let mut config = built_in();
        config.watchdog.response_created_deadline = Duration::from_secs(5);
        let windows = scale(&mut config, speed);
        assert_eq!(of(&windows, CREATED).told(speed), "45s*");
        assert_eq!(of(&windows, WINDOW).told(speed), "60s");
        assert_eq!(
            stars(&windows, speed).unwrap(),
            "At this speed the drill has longer windows than the configuration, and tells its own, marked with a star: \
             watchdog.response_created_deadline 45s* in place of 5s. A lower --speed comes closer."
        );
    }

    /// [REH-4] At its own speed nothing changes.
    #[test]
    fn in_real_time_nothing_changes() {
        let mut config = built_in();
        let windows = scale(&mut config, "1".parse().unwrap());
        assert!(
            windows
                .iter()
                .all(|window| window.drill == window.own && !window.floor),
            "{windows:?}"
        );
    }
}
