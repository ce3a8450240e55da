//! The screen: what the bridge answered, in at most a hundred columns. Pure.

use std::fmt::Write;

use serde_json::Value;

use crate::bridge::transport::STRIKES;
use crate::cli::terminal::{COLUMNS, plain};
use crate::counted::counted;
use crate::lapse::short;

/// Rows of one kind that are shown; the rest is counted.
const ROWS: usize = 10;
/// Lines that one check takes at most.
const LINES: usize = 4;
const INDENT: &str = "              ";

/// How a line is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tone {
    Plain,
    Good,
    Bad,
}

struct Screen {
    text: String,
    colour: bool,
}

impl Screen {
    fn line(&mut self, subject: &str, tone: Tone, what: &str) {
        let room = COLUMNS - INDENT.len();
        let what = cut(&plain(what), room);
        let (on, off) = match tone {
            _ if !self.colour => ("", ""),
            Tone::Plain => ("", ""),
            Tone::Good => ("\x1b[32m", "\x1b[0m"),
            Tone::Bad => ("\x1b[1;31m", "\x1b[0m"),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "  {subject:<12}{on}{what}{off}");
    }

    /// In as many lines as it takes, up to a few: what is wrong, and what to do, is not cut.
    fn wrapped(&mut self, subject: &str, tone: Tone, what: &str) {
        let room = COLUMNS - INDENT.len();
        let mut lines = vec![String::new()];
        for word in plain(what).split(' ') {
            let full = lines
                .last()
                .is_some_and(|line| !line.is_empty() && length(line) + 1 + length(word) > room);
            if full && lines.len() < LINES {
                lines.push(String::new());
            }
            if let Some(line) = lines.last_mut() {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
        }
        for (index, line) in lines.iter().enumerate() {
            self.line(if index == 0 { subject } else { "" }, tone, line);
        }
    }

    /// The first rows, each with its tone, and how many more there are.
    fn rows(&mut self, subject: &str, rows: &[(Tone, String)], total: usize) {
        for (index, (tone, row)) in rows.iter().take(ROWS).enumerate() {
            self.line(if index == 0 { subject } else { "" }, *tone, row);
        }
        let shown = rows.len().min(ROWS);
        if total > shown {
            self.line("", Tone::Plain, &format!("and {} more", total - shown));
        }
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{kept}…")
}

fn word<'a>(of: &'a Value, name: &str) -> &'a str {
    of[name].as_str().unwrap_or("-")
}

fn number(of: &Value, name: &str) -> u64 {
    of[name].as_u64().unwrap_or_default()
}

fn list<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of[name].as_array().map_or(&[], Vec::as_slice)
}

/// A cap in words, where the bridge tells it.
fn cap(overview: &Value, name: &str, words: impl FnOnce(u64) -> String) -> String {
    overview[name].as_u64().map(words).unwrap_or_default()
}

/// What is left or gone by, in whole seconds.
fn lapse(ms: u64) -> String {
    match ms {
        0 => "0s".to_owned(),
        1..1000 => short(1000),
        _ => short(ms / 1000 * 1000),
    }
}

/// What stands first: that something is wrong, and what.
pub fn trouble(status: &Value) -> Option<String> {
    let overview = &status["overview"];
    let mut wrong = Vec::new();
    if overview["shutting_down"] == Value::Bool(true) {
        wrong.push("shutting down".to_owned());
    } else if overview["draining"] == Value::Bool(true) {
        wrong.push("draining".to_owned());
    }
    for check in list(&status["health"], "checks") {
        if word(check, "state") != "ok" {
            wrong.push(format!("{} {}", word(check, "name"), word(check, "state")));
        }
    }
    match number(overview, "quarantined_keys") {
        0 => {}
        keys => wrong.push(format!("{} in quarantine", counted(keys, "key"))),
    }
    match number(overview, "sick_transports") {
        0 => {}
        sick => wrong.push(counted(sick, "sick transport")),
    }
    (!wrong.is_empty()).then(|| wrong.join(", "))
}

/// The screen. `colour`: it goes to a terminal.
pub fn screen(url: &str, status: &Value, colour: bool) -> String {
    let mut screen = Screen {
        text: String::new(),
        colour,
    };
    let overview = &status["overview"];
    let head = format!(
        "responses-bridge {} at {}, up {}",
        word(status, "version"),
        url.trim_end_matches('/'),
        lapse(number(status, "uptime_ms"))
    );
    screen.text.push_str(&cut(&plain(&head), COLUMNS));
    screen.text.push('\n');
    match trouble(status) {
        None => screen.line("health", Tone::Good, "ok"),
        Some(trouble) => screen.line("health", Tone::Bad, &trouble),
    }
    let (turns, waiting) = (number(overview, "turns"), number(overview, "waiting"));
    screen.line(
        "turns",
        Tone::Plain,
        &format!(
            "{turns} running, {waiting} of them waiting{}",
            cap(overview, "max_queue", |most| {
                format!(" ({most} at most for each conversation)")
            })
        ),
    );
    let sessions = ["sessions_idle", "sessions_busy", "sessions_opening"].map(|name| number(overview, name));
    let [idle, busy, opening] = sessions;
    screen.line(
        "sessions",
        Tone::Plain,
        &format!(
            "{}{idle} idle, {busy} busy, {opening} opening{}",
            cap(overview, "max_sessions", |most| format!(
                "{} of {most}: ",
                idle + busy + opening
            )),
            cap(overview, "max_per_key", |most| format!(
                " ({most} at most for each conversation)"
            )),
        ),
    );
    screen.rows("accounts", &accounts(status), list(status, "accounts").len());
    let breakers: Vec<_> = list(status, "breakers").iter().filter_map(breaker).collect();
    if breakers.is_empty() {
        screen.line("breakers", Tone::Plain, "all closed");
    } else {
        screen.rows("breakers", &breakers, breakers.len());
    }
    let held = list(status, "quarantine");
    if held.is_empty() {
        screen.line("quarantine", Tone::Plain, "no key");
    } else {
        let rows: Vec<_> = held.iter().map(|row| (Tone::Plain, key(row))).collect();
        screen.rows("quarantine", &rows, held.len());
    }
    for check in list(&status["health"], "checks") {
        // Its rows are above.
        if word(check, "name") == "accounts" {
            continue;
        }
        let tone = match word(check, "state") {
            "ok" => Tone::Plain,
            _ => Tone::Bad,
        };
        let mut what = word(check, "value").to_owned();
        if tone == Tone::Bad {
            let (state, since) = (word(check, "state"), lapse(number(check, "since_ms")));
            what = format!("{state} for {since}: {what}");
        }
        let name = match word(check, "name") {
            "file descriptors" => "files",
            name => name,
        };
        screen.wrapped(&cut(&plain(name), 11), tone, &what);
    }
    screen.text
}

fn accounts(status: &Value) -> Vec<(Tone, String)> {
    let row = |account: &Value| {
        let name = format!("{}/{}", word(account, "provider"), word(account, "account"));
        let excluded = &account["excluded"];
        let (tone, state) = match excluded.as_object() {
            Some(_) => (
                Tone::Bad,
                format!(
                    "excluded: {}, {} left",
                    word(excluded, "reason"),
                    lapse(number(excluded, "left_ms"))
                ),
            ),
            None if account["credential_ok"] == Value::Bool(false) => {
                (Tone::Bad, format!("credential: {}", word(account, "credential")))
            }
            None => match number(account, "failed_connects") {
                0 => (Tone::Plain, "usable".to_owned()),
                1 => (Tone::Bad, "the last connect failed".to_owned()),
                failed => (Tone::Bad, format!("the last {failed} connects failed")),
            },
        };
        let (turns, sessions) = (number(account, "in_flight"), number(account, "sessions"));
        (
            tone,
            format!(
                "{} {state}, {}, {}",
                padded(&name, 24),
                counted(turns, "turn"),
                counted(sessions, "session")
            ),
        )
    };
    list(status, "accounts").iter().map(row).collect()
}

/// An account's transport, where there is something to say of it.
fn breaker(breaker: &Value) -> Option<(Tone, String)> {
    let mut what = Vec::new();
    if word(breaker, "state") != "closed" {
        let left = breaker["left_ms"].as_u64().map(lapse);
        what.push(match left {
            Some(left) => format!("{}, {left} left", word(breaker, "state")),
            None => word(breaker, "state").to_owned(),
        });
    }
    if let Some(left) = breaker["unsupported_left_ms"].as_u64() {
        what.push(format!("no WebSocket there, {} left", lapse(left)));
    }
    let ceiling = &breaker["socket_ceiling"];
    if ceiling.is_object() {
        let (most, left) = (number(ceiling, "value"), lapse(number(ceiling, "left_ms")));
        what.push(format!("{} at most, {left} left", counted(most, "socket")));
    }
    // Counted apart, and while the breaker is closed only.
    let strikes: Vec<_> = [
        ("failed_handshakes", "failed handshakes"),
        ("silent_keys", "silent conversations"),
    ]
    .into_iter()
    .map(|(field, of)| (number(breaker, field), of))
    .filter(|(count, _)| *count > 0 && word(breaker, "state") == "closed")
    .map(|(count, of)| format!("{count} of {STRIKES} {of}"))
    .collect();
    match strikes.as_slice() {
        [] => {}
        [one] => what.push(format!("{one} that would make it sick")),
        // Both have no room for more words.
        several => what.extend_from_slice(several),
    }
    let name = format!("{}/{}", word(breaker, "provider"), word(breaker, "account"));
    let tone = if word(breaker, "state") == "closed" {
        Tone::Plain
    } else {
        Tone::Bad
    };
    (!what.is_empty()).then(|| (tone, format!("{} {}", padded(&name, 24), what.join(", "))))
}

fn padded(text: &str, width: usize) -> String {
    format!("{:<width$}", plain(text))
}

/// Who it is comes first: what does not fit is cut at the end.
fn key(row: &Value) -> String {
    let left = match word(row, "state") {
        "open" => format!("{} left", lapse(number(row, "left_ms"))),
        "cleared" => format!("level for {}", lapse(number(row, "level_left_ms"))),
        _ => String::new(),
    };
    let age = row["since_ms"].as_u64().map(|ms| format!("for {}", lapse(ms)));
    let line = format!(
        "{}  {}  {:<8} {:<11}  {left:<15}  level {}  {}",
        padded(word(row, "key"), 12),
        padded(word(row, "account"), 16),
        plain(word(row, "state")),
        age.unwrap_or_default(),
        number(row, "level"),
        plain(word(row, "key_kind")),
    );
    line.trim_end().to_owned()
}

/// Quarantined keys, one on each line, below what each column is.
pub fn keys(rows: &[Value]) -> String {
    let mut text = format!(
        "{:<12}  {:<16}  {:<8} {:<11}  {:<15}  {:<7}  kind\n",
        "key", "account", "state", "held", "left", "level"
    );
    for row in rows {
        text.push_str(&cut(&plain(&key(row)), COLUMNS));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests;
