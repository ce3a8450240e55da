//! What an event says, in few words.

use serde_json::{Map, Value};

use super::line::moment;
use crate::cli::terminal::plain;
use crate::counted::counted;
use crate::lapse::short;

/// The members of an event, as its line has them.
pub struct Members<'a>(pub &'a Map<String, Value>);

/// What is told in columns of its own, or tells a person nothing.
const ELSEWHERE: [&str; 12] = [
    "ts",
    "level",
    "event",
    "provider",
    "account",
    "key",
    "key_kind",
    "model",
    "client",
    "generation",
    "request_id",
    "trace_id",
];

impl Members<'_> {
    /// A text of the bridge's. Characters that could move a terminal's cursor are not passed on.
    pub fn text(&self, name: &str) -> Option<String> {
        self.0.get(name)?.as_str().map(plain)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    fn lapse(&self, name: &str) -> Option<String> {
        self.number(name).map(short)
    }

    /// The few fields that matter, in words.
    pub fn words(&self, event: &str) -> String {
        let reason = || self.text("reason").unwrap_or_default();
        let told = match event {
            "turn_finished" => self.turn(),
            "response_created_timeout" => self.silence(),
            "session_retired" | "session_rotated" | "session_evicted" => {
                let turns = self.number("turns").map(|turns| counted(turns, "turn"));
                listed([self.text("reason"), turns, self.bucket("age")])
            }
            "quarantine_opened" => {
                let trip = self.number("trip").filter(|trip| *trip > 1);
                listed([self.lapse("window_ms"), trip.map(|trip| format!("trip {trip}"))])
            }
            "quarantine_http_fallback" => "goes by direct HTTP".to_owned(),
            "quarantine_probe" => "tries a session again".to_owned(),
            "idle_timeout" => format!("silence in the middle, by {}", self.transport()),
            "slow_stream" => format!("upstream takes no bytes, by {}", self.transport()),
            "slow_client" => "the client reads too slowly".to_owned(),
            "http_fallback" => {
                let status = self.number("status").map(|status| format!("status {status}"));
                // Of an upgrade that was refused with a status, the status says it.
                let upgrade = self.text("upgrade").filter(|upgrade| upgrade != "status");
                listed([self.text("reason"), upgrade, status])
            }
            "cooldown_started" => {
                let lapse = self.lapse("for_ms").map(|lapse| format!("for {lapse}"));
                listed([self.text("reason"), lapse])
            }
            "owner_unavailable" => {
                let wait = self
                    .number("retry_after_s")
                    .map(|wait| format!("back in {wait}s"));
                listed([self.text("reason"), wait])
            }
            "refused" => {
                let door = self.text("door").filter(|door| door == "operators");
                listed([
                    self.text("reason"),
                    door.map(|door| format!("asked at the {door}' door")),
                    self.number("not_kept")
                        .map(|count| format!("{count} more not kept")),
                ])
            }
            "operator_action" => self.action(),
            "owner_conflict" => "names things of two accounts".to_owned(),
            "store_degraded" => format!("{}: {}", reason(), self.text("way_out").unwrap_or_default()),
            "config_rejected" => {
                let line = self.number("line").map(|line| format!("line {line}"));
                listed([line, self.text("key_path"), self.text("reason")])
            }
            "clock_stepped" => format!("{} by {}", reason(), self.lapse("by_ms").unwrap_or_default()),
            "bridge_started" => {
                let last = self.number("last_ms").map(moment);
                let before = match self.text("before").as_deref() {
                    Some("cut") => Some("the one before was cut".to_owned()),
                    Some("drained") => Some("the one before drained".to_owned()),
                    Some("unknown") => Some("how the one before ended is not known".to_owned()),
                    _ => None,
                };
                listed([
                    before,
                    last.map(|at| format!("last entry {at}")),
                    self.text("version"),
                ])
            }
            "journal_lost" => {
                let lost = self.number("lost").unwrap_or_default();
                format!("{} dropped before this one", counted(lost, "entry"))
            }
            _ => self.all(),
        };
        if told.is_empty() { self.all() } else { told }
    }

    /// `age` and `idle` are told in buckets, which are named by what they reach up to: `age<=10m`, `age>1h`.
    fn bucket(&self, name: &str) -> Option<String> {
        Some(match (name, self.text(name)?.as_str()) {
            ("age", "older") => "age>1h".to_owned(),
            ("idle", "longer") => "idle>30m".to_owned(),
            (name, most) => format!("{name}<={most}"),
        })
    }

    /// As short as can be: a line has little room.
    fn transport(&self) -> String {
        match self.text("transport") {
            Some(name) if name == "websocket" => "ws".to_owned(),
            name => name.unwrap_or_default(),
        }
    }

    fn turn(&self) -> String {
        let total = self.lapse("total_ms").unwrap_or_default();
        let attempt = self.number("attempt").filter(|attempt| *attempt > 1);
        // How it ended, as a whole, comes first.
        let ended = [
            self.text("outcome"),
            self.number("status").map(|status| format!("status {status}")),
        ];
        listed([
            Some(format!("{} {total} {}", spaced(ended), self.transport())),
            attempt.map(|attempt| format!("attempt {attempt}")),
        ])
    }

    /// What was done, to what, and by whom.
    fn action(&self) -> String {
        let by = self.text("by").map(|by| format!("by {by}"));
        let done = spaced([self.text("reason"), by]);
        let session = self.number("session").map(|session| format!("session {session}"));
        let count = self.number("count").filter(|count| *count != 1);
        let keys = self
            .text("reason")
            .is_some_and(|reason| reason.starts_with("quarantine"));
        let count = count.map(|count| counted(count, if keys { "key" } else { "thing" }));
        listed([Some(done), session, count])
    }

    fn silence(&self) -> String {
        let waited = self.lapse("waited_ms").unwrap_or_default();
        let shape = self.text("shape").unwrap_or_default();
        listed([Some(format!("{shape} for {waited}")), self.text("socket")])
    }

    /// Every field that has no place of its own.
    fn all(&self) -> String {
        let told = self
            .0
            .iter()
            .filter(|(name, _)| !ELSEWHERE.contains(&name.as_str()));
        let told = told.filter_map(|(name, value)| {
            if name == "age" || name == "idle" {
                return self.bucket(name);
            }
            let value = match value {
                Value::String(_) => self.text(name)?,
                Value::Number(number) if name.ends_with("_ms") => short(number.as_u64()?),
                Value::Array(items) => items
                    .iter()
                    .filter_map(Value::as_str)
                    .collect::<Vec<_>>()
                    .join(" "),
                Value::Null | Value::Object(_) => return None,
                value => value.to_string(),
            };
            let name = name.strip_suffix("_ms").unwrap_or(name).replace('_', " ");
            match name.as_str() {
                _ if value.is_empty() => None,
                "reason" => Some(value),
                _ => Some(format!("{name} {value}")),
            }
        });
        told.collect::<Vec<_>>().join(", ")
    }
}

fn spaced<const N: usize>(parts: [Option<String>; N]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn listed<const N: usize>(parts: [Option<String>; N]) -> String {
    let parts: Vec<String> = parts
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(body: &str) -> String {
        let members: Map<String, Value> = serde_json::from_str(body).unwrap();
        let event = members["event"].as_str().unwrap().to_owned();
        Members(&members).words(&event)
    }

    /// [JRN-11] The fields that matter, in words; of an event that nobody thought of here, all of them.
    #[test]
    fn events_in_few_words() {
        let told = [
            (
                r#"{"event":"turn_finished","outcome":"completed","total_ms":1240,"transport":"websocket","attempt":1}"#,
                "completed 1.2s ws",
            ),
            (
                r#"{"event":"turn_finished","outcome":"rejected","status":429,"total_ms":90,"transport":"http","attempt":2}"#,
                "rejected status 429 90ms http, attempt 2",
            ),
            (
                r#"{"event":"response_created_timeout","waited_ms":30000,"shape":"silent","socket":"reused","turns":4}"#,
                "silent for 30s, reused",
            ),
            (
                r#"{"event":"session_retired","reason":"silent","turns":1,"age":"10m"}"#,
                "silent, 1 turn, age<=10m",
            ),
            (
                r#"{"event":"quarantine_opened","window_ms":280000,"trip":2}"#,
                "4m 40s, trip 2",
            ),
            (
                r#"{"event":"bridge_started","version":"0.1.0","before":"cut","last_ms":1764475691123}"#,
                "the one before was cut, last entry 11-30T04:08:11.123Z, 0.1.0",
            ),
            (
                r#"{"event":"journal_lost","lost":2}"#,
                "2 entries dropped before this one",
            ),
            (
                r#"{"event":"config_reloaded","changed":["a.b","c"],"needs_restart":[]}"#,
                "changed a.b c",
            ),
            (
                r#"{"event":"of_tomorrow","reason":"x","took_ms":7300000,"on":true,"deep":{"a":1},"provider":"p"}"#,
                "x, took 2h 1m, on true",
            ),
            (
                r#"{"event":"refused","reason":"draining","door":"clients"}"#,
                "draining",
            ),
            (
                r#"{"event":"refused","reason":"not_admin","door":"operators"}"#,
                "not_admin, asked at the operators' door",
            ),
            (
                r#"{"event":"http_fallback","reason":"upgrade_refused","upgrade":"status","status":403}"#,
                "upgrade_refused, status 403",
            ),
            (
                r#"{"event":"http_fallback","reason":"upgrade_refused","upgrade":"unresolved"}"#,
                "upgrade_refused, unresolved",
            ),
            (
                r#"{"event":"operator_action","reason":"drain_on","by":"token","count":1}"#,
                "drain_on by token",
            ),
            (
                r#"{"event":"operator_action","reason":"quarantine_cleared","by":"alice","count":6}"#,
                "quarantine_cleared by alice, 6 keys",
            ),
            (
                r#"{"event":"of_tomorrow","age":"older","idle":"longer"}"#,
                "age>1h, idle>30m",
            ),
            (
                r#"{"event":"of_tomorrow","age":"1h","idle":"1s"}"#,
                "age<=1h, idle<=1s",
            ),
            ("{\"event\":\"refused\",\"reason\":\"a\\u001b[2Jb\"}", "a?[2Jb"),
        ];
        for (body, expected) in told {
            let given = words(body);
            // Of unknown events the order is that of their names.
            let mut parts: (Vec<&str>, Vec<&str>) =
                (given.split(", ").collect(), expected.split(", ").collect());
            parts.0.sort_unstable();
            parts.1.sort_unstable();
            assert_eq!(parts.0, parts.1, "{given}");
        }
    }
}
