//! One event as one line: for people, or as an object.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

use super::words::Members;
use crate::cli::terminal::plain;

/// The longest event name: `response_created_timeout`.
const NAME: usize = 24;
/// What a key's short form takes.
const KEY: usize = 12;

/// What an operator should look at, whatever its reason is. (`session_retired` depends on it.)
const WARNINGS: [&str; 11] = [
    "response_created_timeout",
    "idle_timeout",
    "slow_stream",
    "slow_client",
    "quarantine_opened",
    "cooldown_started",
    "breaker_changed",
    "credential_rejected",
    "store_degraded",
    "clock_stepped",
    "config_rejected",
];
/// Ends of a session that are nobody's fault, or not the bridge's to worry about.
const CALM_ENDS: [&str; 5] = [
    "unfit",
    "closed_by_upstream",
    "unexpected_frame",
    "refused_by_upstream",
    "credential_rotated",
];
/// What is told of the journal itself.
const LOST: &str = "journal_lost";

/// An event that is to be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// Unix milliseconds.
    pub at_ms: u64,
    pub event: String,
    /// `provider/account`.
    pub account: Option<String>,
    /// The event's JSON object, less what is in the line's head.
    pub body: String,
}

/// How lines are made.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub json: bool,
    pub colour: bool,
    /// A line for people is no longer.
    pub columns: usize,
}

impl Style {
    /// The line, without its end.
    pub fn line(self, shown: &Shown) -> String {
        if self.json {
            object(shown)
        } else {
            self.text(shown)
        }
    }

    fn text(self, shown: &Shown) -> String {
        let members: Map<String, Value> = serde_json::from_str(&shown.body).unwrap_or_default();
        let members = Members(&members);
        let [reason, before] = ["reason", "before"].map(|name| members.text(name));
        let warns = warns(&shown.event, reason.as_deref(), before.as_deref());
        let time = moment(shown.at_ms);
        let sign = if warns { '!' } else { ' ' };
        let name = format!("{:<NAME$}", plain(&shown.event));
        let key = members.text("key").unwrap_or_default();
        let words = members.words(&shown.event);
        let account = plain(shown.account.as_deref().unwrap_or_default());
        let head = length(&time) + " ! ".len();
        // What identifies comes first and is whole; only two names that are both long are shortened, in their middle.
        let most = self
            .columns
            .saturating_sub(head + NAME + 1 + KEY + 1 + "  …".chars().count());
        let account = shortened(&account, most);
        // Where the words have not room enough, the columns are given up before the words are.
        let aligned = format!(" {key:<KEY$} {account}");
        let narrow = [key.as_str(), &account, ""].join(" ").replace("  ", " ");
        let narrow = format!(" {}", narrow.trim());
        let words_need = if words.is_empty() { 0 } else { 2 + length(&words) };
        let (name, whose) = match head + length(&name) + length(&aligned) + words_need <= self.columns {
            true => (name, aligned),
            false => (name.trim_end().to_owned(), narrow),
        };
        let room = self
            .columns
            .saturating_sub(head + length(&name) + length(&whose) + 2);
        let rest = format!("{whose}  {}", fitted(&words, room));
        let rest = rest.trim_end();
        if !self.colour {
            return format!("{time} {sign} {name}{rest}").trim_end().to_owned();
        }
        let code = if warns { "31" } else { "32" };
        format!("\x1b[2m{time}\x1b[0m \x1b[{code}m{sign} {name}\x1b[0m{rest}")
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Cut to `room` characters, and seen to be.
fn fitted(text: &str, room: usize) -> String {
    if length(text) <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// A name of at most `room` characters: of a longer one, its beginning and its end.
fn shortened(name: &str, room: usize) -> String {
    if length(name) <= room {
        return name.to_owned();
    }
    let kept = room.saturating_sub(1);
    let end = length(name) - kept / 2;
    let begin: String = name.chars().take(kept - kept / 2).collect();
    format!("{begin}…{}", name.chars().skip(end).collect::<String>())
}

/// As the log has it, less the ids of the call, which the journal does not have.
fn object(shown: &Shown) -> String {
    let why = serde_json::from_str::<Why>(&shown.body).unwrap_or_default();
    let warns = warns(&shown.event, why.reason.as_deref(), why.before.as_deref());
    let members = shown.body.strip_prefix('{').unwrap_or("}");
    let comma = if members == "}" { "" } else { "," };
    let level = if warns { "warn" } else { "info" };
    format!(
        r#"{{"ts":"{}","level":"{level}"{comma}{members}"#,
        time(shown.at_ms)
    )
}

#[derive(Default, serde::Deserialize)]
struct Why {
    reason: Option<String>,
    before: Option<String>,
}

fn warns(event: &str, reason: Option<&str>, before: Option<&str>) -> bool {
    match event {
        "bridge_started" => before == Some("cut"),
        "session_retired" => !reason.is_some_and(|reason| CALM_ENDS.contains(&reason)),
        event => WARNINGS.contains(&event) || event == LOST,
    }
}

/// A moment, as lines for people tell it: without the year, since nothing is kept for so long.
pub fn moment(at_ms: u64) -> String {
    let time = time(at_ms);
    time.split_once('-')
        .map_or(time.as_str(), |(_, rest)| rest)
        .to_owned()
}

/// A moment, as objects tell it.
fn time(at_ms: u64) -> String {
    // A damaged row may say anything; the year 9999 is the last that can be written.
    let at = Duration::from_millis(at_ms.min(253_402_300_799_999));
    humantime::format_rfc3339_millis(SystemTime::UNIX_EPOCH + at).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(event: &str, members: &str) -> Shown {
        Shown {
            at_ms: 1_764_475_691_123,
            event: event.to_owned(),
            account: Some("openai/main".to_owned()),
            body: format!(r#"{{"event":"{event}"{members}}}"#),
        }
    }

    fn style(colour: bool, columns: usize) -> Style {
        Style {
            json: false,
            colour,
            columns,
        }
    }

    /// [JRN-16] Who is told of is never cut, and never left to the end: of what does not fit, the columns go first, then words.
    #[test]
    fn who_is_told_of_is_whole() {
        let failed = shown(
            "turn_finished",
            r#","key":"0123456789ab","outcome":"response_created_timeout","total_ms":60012,"transport":"websocket""#,
        );
        assert_eq!(
            style(false, 100).line(&failed),
            "11-30T04:08:11.123Z   turn_finished 0123456789ab openai/main  response_created_timeout 60s ws"
        );
        let words = r#","reason":"a","b":"cccccccccccccccccccccccccccccccccccccccc","d":"eeeeeeeeeeeeeeeeeeeeeeeeeeeeee""#;
        for (provider, account) in [
            ("p", "a"),
            ("p", &"a".repeat(32)),
            (&"p".repeat(32), &"a".repeat(32)),
        ] {
            let name = format!("{provider}/{account}");
            for event in ["refused", "quarantine_http_fallback", "response_created_timeout"] {
                let line = style(false, 100).line(&Shown {
                    account: Some(name.clone()),
                    ..shown(event, &format!(r#"{words},"key":"0123456789ab""#))
                });
                assert!(line.chars().count() <= 100, "{line}");
                let mut told = line.split_whitespace().filter(|word| *word != "!").skip(1);
                assert_eq!(
                    [told.next(), told.next()],
                    [Some(event), Some("0123456789ab")],
                    "{line}"
                );
                let (begin, end) = told.next().unwrap().split_once('…').unwrap_or((&name, &name));
                assert!(name.starts_with(begin) && name.ends_with(end), "{line}");
                assert!(name.len() > 36 || begin == name, "{line}");
            }
        }
    }

    /// [JRN-16] What matters most after a kill has room for all of it.
    #[test]
    fn a_start_after_a_cut_is_whole() {
        let started = Shown {
            account: None,
            ..shown(
                "bridge_started",
                r#","version":"0.1.0","before":"cut","last_ms":1764475691123"#,
            )
        };
        assert_eq!(
            style(false, 100).line(&started),
            "11-30T04:08:11.123Z ! bridge_started   the one before was cut, last entry 11-30T04:08:11.123Z, 0.1.0"
        );
    }

    /// [JRN-11] One line, whose parts stand below each other; a warning has a sign, and not a colour alone.
    #[test]
    fn a_line_for_people() {
        let opened = shown(
            "quarantine_opened",
            r#","key":"0123456789ab","window_ms":60000,"trip":1"#,
        );
        let refused = shown("refused", r#","reason":"draining""#);
        let lines = [&opened, &refused].map(|shown| style(false, 100).line(shown));
        assert_eq!(
            lines,
            [
                "11-30T04:08:11.123Z ! quarantine_opened        0123456789ab openai/main  60s",
                "11-30T04:08:11.123Z   refused                               openai/main  draining",
            ]
        );
    }

    /// [JRN-11] No line is longer than asked for, and a cut one shows it. Colour changes nothing of the text.
    #[test]
    fn lines_fit_and_colour_is_only_added() {
        let long = shown(
            "store_degraded",
            &format!(r#","reason":"full","way_out":"{}""#, "free ".repeat(40)),
        );
        for columns in [100, 60, 10] {
            let line = style(false, columns).line(&long);
            assert!(line.chars().count() <= columns.max(48), "{line}");
            assert!(columns < 60 || line.ends_with('…'), "{line}");
        }
        let coloured = style(true, 100).line(&long);
        assert!(coloured.contains("\x1b[31m! store_degraded"), "{coloured:?}");
        let mut bare = coloured;
        for code in ["\x1b[2m", "\x1b[31m", "\x1b[0m"] {
            bare = bare.replace(code, "");
        }
        assert_eq!(bare, style(false, 100).line(&long));
    }

    /// [JRN-11] An object has the event's own members, and time and level before them, as the log has.
    #[test]
    fn an_object_for_programs() {
        let style = Style {
            json: true,
            ..style(false, 100)
        };
        assert_eq!(
            style.line(&shown("turn_finished", r#","total_ms":7"#)),
            r#"{"ts":"2025-11-30T04:08:11.123Z","level":"info","event":"turn_finished","total_ms":7}"#
        );
        let last = Shown {
            at_ms: u64::MAX,
            body: "{}".to_owned(),
            ..shown("x", "")
        };
        assert_eq!(
            style.line(&last),
            r#"{"ts":"9999-12-31T23:59:59.999Z","level":"info"}"#
        );
    }

    /// [JRN-11] Levels are those of the log: every event whose level is always `warn` has the sign, and no other.
    #[test]
    fn warnings_are_those_of_the_log() {
        let spec = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/spec/events.md")).unwrap();
        let rows = spec
            .lines()
            .filter(|line| line.starts_with("| `") && line.matches('|').count() == 4);
        let mut told = Vec::new();
        for row in rows {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            let events: Vec<&str> = cells[0].split(", ").map(|name| name.trim_matches('`')).collect();
            let levels: Vec<&str> = cells[2].split(", ").collect();
            for (at, event) in events.iter().enumerate() {
                let level = levels.get(at).or(levels.last()).copied().unwrap_or_default();
                let level = if level.contains("when it opens") {
                    ""
                } else {
                    level
                };
                if *event == "quarantine_opened" || level == "warn" {
                    told.push(*event);
                }
            }
        }
        told.retain(|event| *event != LOST && *event != "session_retired");
        told.sort_unstable();
        let mut known = WARNINGS.to_vec();
        known.sort_unstable();
        assert_eq!(known, told);
        let retired = |reason| warns("session_retired", Some(reason), None);
        assert!(retired("dead") && retired("silent") && !retired("closed_by_upstream"));
        let started = |before| warns("bridge_started", None, Some(before));
        assert!(started("cut") && !started("drained"));
    }
}
