//! Values that are right alone and wrong together (CFG-16): times that outlast somebody's patience, parts larger than
//! their whole.
use std::time::Duration;

use super::Config;
use super::defaults::{CODEX_PATIENCE, LONGEST_COMMIT_AFTER, LONGEST_HEARTBEAT};
use super::raw;
use super::review::Review;
use super::units::Lapse;

pub fn check(review: &mut Review<'_>, raw: &raw::File) {
    codex_patience(review, raw);
    proxy_patience(review, &raw.server);
    windows(review, raw);
    sizes(review, raw);
}

/// All the silence that a client may hear before the first event, on either transport.
fn codex_patience(review: &mut Review<'_>, raw: &raw::File) {
    let queue_wait = ("session.queue_wait", raw.session.queue_wait);
    let connect = ("watchdog.connect_deadline", raw.watchdog.connect_deadline);
    let created = (
        "watchdog.response_created_deadline",
        raw.watchdog.response_created_deadline,
    );
    let first_byte = ("http.first_byte", raw.http.first_byte);
    let first_event = ("http.first_event", raw.http.first_event);
    for parts in [
        &[created, connect, queue_wait][..],
        &[first_event, first_byte, connect, queue_wait],
    ] {
        let sum = Lapse(parts.iter().map(|(_, lapse)| lapse.0).sum());
        if sum.0 > CODEX_PATIENCE {
            let written: Vec<_> = parts
                .iter()
                .filter(|(key, _)| review.places().of(key).is_some())
                .copied()
                .collect();
            let (key, _) = written
                .iter()
                .max_by_key(|(_, lapse)| *lapse)
                .copied()
                .unwrap_or(created);
            let names: Vec<_> = parts
                .iter()
                .rev()
                .map(|(key, lapse)| format!("{key} ({lapse})"))
                .collect();
            let hint = format!("bring the sum to at most {}", Lapse(CODEX_PATIENCE));
            let problem = format!(
                "{} make {sum}, and Codex gives up after 300s without data",
                names.join(" + ")
            );
            review.fault(key, problem, hint);
        }
    }
}

/// The longest `response_created_deadline` that the other windows leave room for.
pub fn longest_created(config: &Config) -> Duration {
    let connect = config.watchdog.connect_deadline;
    let codex = CODEX_PATIENCE.saturating_sub(connect + config.session.queue_wait);
    // The whole request outlasts its start.
    let request = config.watchdog.request_deadline.saturating_sub(connect);
    codex.min(request.saturating_sub(Duration::from_millis(1)))
}

fn proxy_patience(review: &mut Review<'_>, server: &raw::Server) {
    if server.heartbeat.0 > LONGEST_HEARTBEAT {
        let problem = format!(
            "{} is too rare: proxies cut a connection that is quiet for 30s",
            server.heartbeat
        );
        review.fault("server.heartbeat", problem, "write at most \"30s\"");
    }
    if server.commit_after.0 > LONGEST_COMMIT_AFTER {
        let problem = format!(
            "{} is too late: proxies cut a response that has no status after 60s",
            server.commit_after
        );
        review.fault("server.commit_after", problem, "write at most \"60s\"");
    }
}

fn windows(review: &mut Review<'_>, raw: &raw::File) {
    let quarantine = &raw.quarantine;
    if quarantine.max_window < quarantine.window {
        let key = review.blame(&["quarantine.max_window", "quarantine.window"]);
        let problem = format!(
            "max_window ({}) is shorter than window ({})",
            quarantine.max_window, quarantine.window
        );
        review.fault(
            key,
            problem,
            format!("write max_window = \"{}\" or more", quarantine.window),
        );
    }
    let watchdog = &raw.watchdog;
    if watchdog.handshake_patience > watchdog.connect_deadline {
        let (patience, deadline) = (watchdog.handshake_patience, watchdog.connect_deadline);
        let key = review.blame(&["watchdog.handshake_patience", "watchdog.connect_deadline"]);
        let problem = format!(
            "handshake_patience ({patience}) never ends: the upgrade is given up after connect_deadline ({deadline})"
        );
        review.fault(
            key,
            problem,
            format!("write handshake_patience = \"{deadline}\" or less"),
        );
    }
    let start = Lapse(watchdog.connect_deadline.0 + watchdog.response_created_deadline.0);
    if watchdog.request_deadline <= start {
        let key = review.blame(&[
            "watchdog.request_deadline",
            "watchdog.response_created_deadline",
            "watchdog.connect_deadline",
        ]);
        let problem = format!(
            "request_deadline ({}) does not outlast connect_deadline + response_created_deadline ({start})",
            watchdog.request_deadline
        );
        review.fault(
            key,
            problem,
            format!("write request_deadline longer than \"{start}\", or shorten the other two"),
        );
    }
}

fn sizes(review: &mut Review<'_>, raw: &raw::File) {
    let server = &raw.server;
    for (key, part) in [
        ("server.max_body", server.max_body),
        ("server.client_buffer", server.client_buffer),
    ] {
        if part > server.body_budget {
            let name = key.trim_start_matches("server.");
            let blamed = review.blame(&[key, "server.body_budget"]);
            let problem = format!(
                "{name} ({part}) is more than body_budget ({}), which it is taken from",
                server.body_budget
            );
            review.fault(
                blamed,
                problem,
                format!("write body_budget = \"{part}\" or more, or a smaller {name}"),
            );
        }
    }
    let session = &raw.session;
    if session.max_per_key > session.max_sessions {
        let key = review.blame(&["session.max_per_key", "session.max_sessions"]);
        let problem = format!(
            "max_per_key ({}) is more than max_sessions ({})",
            session.max_per_key, session.max_sessions
        );
        review.fault(
            key,
            problem,
            format!("write max_per_key = {} or less", session.max_sessions),
        );
    }
}
