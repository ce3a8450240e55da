//! Which events are asked for, from the words of the command line.

use std::time::{Duration, SystemTime};

use crate::bridge::key::Hash16;
use crate::config::Lapse;
use crate::journal;

/// No name and no pattern that means anything is longer.
const LONGEST: usize = 256;
/// An id may be as long as a header value of its kind.
const LONGEST_ID: usize = 8192;

/// A time: how long before now, or a moment. Unix milliseconds.
///
/// # Errors
/// It is neither.
pub fn since(text: &str, now: SystemTime) -> Result<u64, String> {
    let wrong = || {
        format!(
            "--since: {} is neither a duration, as in 10m or \"1h 30m\", nor a moment, as in 2026-11-30T04:00:00Z",
            quoted(text)
        )
    };
    if text.len() > LONGEST {
        return Err(wrong());
    }
    let at = match Lapse::parse(text) {
        Ok(Lapse(lapse)) => now.checked_sub(lapse).unwrap_or(SystemTime::UNIX_EPOCH),
        Err(_) => humantime::parse_rfc3339_weak(text).map_err(|_| wrong())?,
    };
    let since = at
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    Ok(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The name of a key as it is printed.
///
/// # Errors
/// It is not printed so.
pub fn key(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "--key: {} is no key: 12 hexadecimal digits, as in the field `key` of an event; for an id that a user knows, \
             there is --id",
            quoted(text)
        )
    };
    if text.len() != 12 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let number = u64::from_str_radix(text, 16).map_err(|_| wrong())?;
    let [_, _, a, b, c, d, e, f] = number.to_be_bytes();
    Ok(journal::of_key(Hash16([
        a, b, c, d, e, f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ])))
}

/// A name, or a pattern of one.
///
/// # Errors
/// No name is such.
pub fn plain(flag: &str, text: &str) -> Result<String, String> {
    bounded(flag, text, LONGEST)
}

/// An id as a user knows it.
///
/// # Errors
/// No id is such.
pub fn id(text: &str) -> Result<String, String> {
    bounded("--id", text, LONGEST_ID)
}

fn bounded(flag: &str, text: &str, most: usize) -> Result<String, String> {
    let problem = if text.is_empty() {
        "is empty".to_owned()
    } else if text.len() > most {
        format!(
            "has {} bytes, and {most} are the most that mean anything",
            text.len()
        )
    } else if text.chars().any(char::is_control) {
        format!("{} has control characters in it", quoted(text))
    } else {
        return Ok(text.to_owned());
    };
    Err(format!("{flag}: {problem}"))
}

/// Short, and without anything that could move a cursor.
pub fn quoted(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{short:?}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [JRN-8] Durations count back from now, moments stand for themselves.
    #[test]
    fn times() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_764_475_691);
        assert_eq!(since("10m", now), Ok(1_764_475_091_000));
        assert_eq!(since("1h 30m", now), Ok(1_764_470_291_000));
        assert_eq!(since("2025-11-30T04:00:00Z", now), Ok(1_764_475_200_000));
        assert_eq!(since("2025-11-30 04:00:00", now), Ok(1_764_475_200_000));
        for wrong in [
            "",
            "10",
            "yesterday",
            "-1h",
            "2025-13-01T00:00:00Z",
            "31d",
            "1h; DROP TABLE journal",
        ] {
            let told = since(wrong, now).unwrap_err();
            assert!(told.starts_with("--since: ") && told.contains("10m"), "{told}");
        }
        assert!(since(&"1".repeat(10 << 20), now).unwrap_err().len() < 300);
    }

    /// [JRN-8] A key is found by its printed form, and nothing else is taken for one.
    #[test]
    fn keys() {
        let hash = Hash16([0xab, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(key(&hash.to_string()), Ok(journal::of_key(hash)));
        assert_eq!(key(&hash.to_string().to_uppercase()), Ok(journal::of_key(hash)));
        for wrong in [
            "",
            "0123456789a",
            "0123456789abc",
            "0123456789ag",
            "+12345678901",
            "' OR 1=1 --",
        ] {
            assert!(
                key(wrong).unwrap_err().contains("12 hexadecimal digits"),
                "{wrong}"
            );
        }
    }

    /// [JRN-13] What no name can be is refused, in few words and without passing it on to the terminal.
    #[test]
    fn strange_words() {
        assert_eq!(plain("--kind", "quarantine*"), Ok("quarantine*".to_owned()));
        for wrong in ["", "a\0b", "\x1b[2J", &"*".repeat(10 << 20)] {
            let told = plain("--kind", wrong).unwrap_err();
            assert!(told.starts_with("--kind: ") && told.len() < 300, "{told}");
            assert!(!told.contains(['\0', '\x1b']), "{told:?}");
        }
        assert!(id(&"r".repeat(8192)).is_ok() && id(&"r".repeat(8193)).is_err());
    }
}
