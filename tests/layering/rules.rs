//! The rules of the house.

use std::fmt;

use crate::source::{Named, Source};

/// Lines of code (comments, blank lines and tests do not count) that a file may have.
pub const LONGEST: usize = 400;

/// Files that may be longer, and why.
pub const LONG_FILES: [(&str, &str); 0] = [];

/// Rooms that are pure: machines and transformations, without I/O, clock, randomness or logging of their own.
const PURE: [&str; 8] = [
    "wire",
    "bridge",
    "resilience",
    "explain",
    "tune",
    "rehearse",
    "counted",
    "lapse",
];

/// Crates that a pure room does without.
const IMPURE_CRATES: [&str; 14] = [
    "tokio",
    "tokio_util",
    "tokio_tungstenite",
    "futures_util",
    "hyper",
    "hyper_util",
    "axum",
    "reqwest",
    "rusqlite",
    "rand",
    "getrandom",
    "tracing",
    "log",
    "metrics",
];

/// Modules of the standard library that a pure room does without.
const IMPURE_STD: [&str; 5] = ["net", "fs", "thread", "env", "process"];

/// The words that name nothing.
const EMPTY_WORDS: [&str; 5] = ["Manager", "Handler", "Helper", "Helpers", "Utils"];

/// A rule that a file breaks.
pub struct Violation<'a> {
    path: &'a str,
    line: usize,
    rule: String,
}

impl fmt::Display for Violation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.rule)
    }
}

/// All that a file breaks.
pub fn violations(file: &Source) -> Vec<Violation<'_>> {
    let mut found = Vec::new();
    if file.is_test() {
        return found;
    }
    let room = file.room();
    for named in file.paths() {
        if let Some(rule) = imports(room, &named).or_else(|| purity(room, &named)) {
            found.push(violation(file, named.line, rule));
        }
    }
    let tokens = file.tokens();
    if PURE.contains(&room) {
        for (line, _) in tokens
            .iter()
            .filter(|(_, token)| ["async", "await"].contains(token))
        {
            found.push(violation(file, *line, format!("`{room}` is pure: no async")));
        }
    }
    for pair in tokens.windows(2) {
        let (line, name) = pair[1];
        if ["struct", "enum", "trait", "type"].contains(&pair[0].1)
            && let Some(word) = EMPTY_WORDS.iter().find(|word| name.ends_with(**word))
        {
            found.push(violation(
                file,
                line,
                format!("`{name}`: no {word}, say what it is"),
            ));
        }
    }
    if let Some(module) = file.modules().last()
        && module.split('_').any(|part| {
            EMPTY_WORDS
                .iter()
                .any(|word| word.to_lowercase().trim_end_matches('s') == part.trim_end_matches('s'))
        })
    {
        found.push(violation(
            file,
            1,
            format!("`{module}`: say what lives in this room"),
        ));
    }
    let lines = file.code_lines();
    let listed = LONG_FILES.iter().any(|(path, _)| *path == file.path);
    match (lines > LONGEST, listed) {
        (true, false) => found.push(violation(
            file,
            1,
            format!("{lines} lines of code, more than {LONGEST}: two things live here"),
        )),
        (false, true) => found.push(violation(file, 1, "listed as long, and is not any more".into())),
        _ => {}
    }
    found
}

fn violation(file: &Source, line: usize, rule: String) -> Violation<'_> {
    Violation {
        path: &file.path,
        line,
        rule,
    }
}

/// Which rooms a room may look into.
fn imports(room: &str, named: &Named) -> Option<String> {
    let [first, other, ..] = &named.segments[..] else {
        return None;
    };
    if first != "crate" || other == room {
        return None;
    }
    let inner = named.segments.get(2).map(String::as_str);
    let allowed = match room {
        "wire" | "counted" | "lapse" => false,
        "tune" => ["counted", "lapse"].contains(&other.as_str()),
        "bridge" | "resilience" => ["wire", "refusal"].contains(&other.as_str()),
        "refusal" => other == "wire",
        "upstream" => !["downstream", "app"].contains(&other.as_str()),
        "downstream" => !["upstream", "app"].contains(&other.as_str()),
        "store" if other == "bridge" => inner.is_some_and(|inner| ["key", "ownership"].contains(&inner)),
        "app" | "cli" | "" => true,
        _ => other != "app",
    };
    (!allowed).then(|| format!("`{room}` must not look into `{}`", named.segments[1..].join("::")))
}

/// What a pure room does without.
fn purity(room: &str, named: &Named) -> Option<String> {
    if !PURE.contains(&room) {
        return None;
    }
    let segments: Vec<_> = named.segments.iter().map(String::as_str).collect();
    let impure = match segments[..] {
        [.., "Instant" | "SystemTime", "now"] => true,
        ["std", module, ..] => IMPURE_STD.contains(&module),
        [first, ..] => IMPURE_CRATES.contains(&first),
        [] => false,
    };
    impure.then(|| format!("`{room}` is pure: no `{}`", segments.join("::")))
}
