//! Durations and sizes as people write them: `"60s"`, `"128MiB"`.
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use humantime_serde::re::humantime;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::defaults::{LONGEST, SHORTEST};
use crate::lapse;

/// The schema `format` of a duration. Not JSON Schema's own `duration`, which means ISO 8601.
pub const DURATION_FORMAT: &str = "human-duration";
/// The schema `format` of a size in bytes.
pub const SIZE_FORMAT: &str = "byte-size";

/// What is wrong with a duration or a size, and what to write instead.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong {
    pub problem: String,
    pub hint: String,
}

fn wrong(problem: impl Into<String>, hint: impl Into<String>) -> Wrong {
    Wrong {
        problem: problem.into(),
        hint: hint.into(),
    }
}

/// A duration with a unit: zero, or 1 ms to 30 days (CFG-7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Lapse(pub Duration);

impl Lapse {
    /// Reads `"1m 30s"`, `"60s"`, `"250ms"`.
    pub fn parse(text: &str) -> Result<Lapse, Wrong> {
        let text = text.trim();
        if let Some(bare) = whole_number(text) {
            return Err(wrong(
                "a duration needs a unit",
                format!("write \"{bare}s\" for {bare} seconds"),
            ));
        }
        let duration = humantime::parse_duration(text).map_err(|_| {
            wrong(
                format!("{text:?} is not a duration"),
                "write a whole number and a unit: ms, s, m, h or d, as in \"90s\" or \"1h 30m\"",
            )
        })?;
        if duration > LONGEST {
            let months = text.strip_suffix('M').and_then(whole_number);
            let hint = months.map_or_else(
                || "write at most \"30d\"".to_owned(),
                |number| format!("M stands for months: write \"{number}m\" for {number} minutes"),
            );
            return Err(wrong(format!("{text} is longer than 30 days"), hint));
        }
        if !duration.is_zero() && duration < SHORTEST {
            return Err(wrong(
                format!("{text} is shorter than a millisecond"),
                "write at least \"1ms\"",
            ));
        }
        Ok(Lapse(duration))
    }
}

impl TryFrom<String> for Lapse {
    type Error = String;
    fn try_from(text: String) -> Result<Lapse, String> {
        Lapse::parse(&text).map_err(|wrong| wrong.problem)
    }
}

impl From<Lapse> for String {
    fn from(lapse: Lapse) -> String {
        lapse.to_string()
    }
}

impl fmt::Display for Lapse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&lapse::written(self.0))
    }
}

impl JsonSchema for Lapse {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": DURATION_FORMAT,
            "pattern": r"^\s*([0-9]+\s*[a-zA-Z]+\s*)+$",
        })
    }
}

const UNITS: [(&str, usize); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

/// A size in bytes, written with a unit: B, KiB, MiB, GiB, KB, MB or GB (CFG-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ByteSize(pub usize);

impl ByteSize {
    /// Reads `"4MiB"`, `"512 KiB"`, `"1000B"`.
    pub fn parse(text: &str) -> Result<ByteSize, Wrong> {
        let text = text.trim();
        if let Some(bare) = whole_number(text) {
            let hint = format!("write \"{bare}B\" for bytes, or \"{bare}MiB\"");
            return Err(wrong("a size needs a unit", hint));
        }
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let unit = unit.trim_start();
        let example = "write a whole number and a unit: B, KiB, MiB or GiB, as in \"128MiB\"";
        if number.is_empty() {
            return Err(wrong(format!("{text:?} is not a size"), example));
        }
        let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            let near = UNITS.iter().find(|(name, _)| {
                name.eq_ignore_ascii_case(unit)
                    || name
                        .strip_suffix('B')
                        .is_some_and(|stem| stem.eq_ignore_ascii_case(unit))
            });
            let hint = near.map_or(example.to_owned(), |(name, _)| {
                format!("did you mean \"{number}{name}\"?")
            });
            return Err(wrong(format!("{unit:?} is not a unit of size"), hint));
        };
        let bytes = number
            .parse::<usize>()
            .ok()
            .and_then(|number| number.checked_mul(*factor));
        bytes
            .map(ByteSize)
            .ok_or_else(|| wrong(format!("{text} is more than a machine can hold"), example))
    }
}

impl TryFrom<String> for ByteSize {
    type Error = String;
    fn try_from(text: String) -> Result<ByteSize, String> {
        ByteSize::parse(&text).map_err(|wrong| wrong.problem)
    }
}

impl From<ByteSize> for String {
    fn from(size: ByteSize) -> String {
        size.to_string()
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binary = UNITS.iter().filter(|(name, _)| name.ends_with("iB"));
        let exact = binary
            .into_iter()
            .find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor));
        let (name, factor) = exact.copied().unwrap_or(("B", 1));
        write!(f, "{}{name}", self.0 / factor)
    }
}

impl JsonSchema for ByteSize {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "ByteSize".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": SIZE_FORMAT,
            "pattern": r"^\s*[0-9]+\s*([KMG]i?)?B\s*$",
        })
    }
}

fn whole_number(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

#[cfg(test)]
mod tests;
