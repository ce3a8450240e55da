//! Text as a page may show it, and figures as people read them.

use std::time::Duration;

use crate::counted::plural;
use crate::lapse::spoken;

/// Most characters of a value that somebody else chose.
const LONGEST: usize = 64;

/// Somebody else's text, short and tame. The templates escape HTML; this takes what escapes do not: control characters
/// (ANSI among them) and those that turn the direction of the text around.
pub(super) fn tame(text: &str) -> String {
    tame_to(text, LONGEST)
}

/// `provider/account`, as far as a table has room for it.
pub(super) fn account(name: &str) -> String {
    tame_to(name, 40)
}

/// [`tame`], to at most `most` characters.
pub(super) fn tame_to(text: &str, most: usize) -> String {
    let mut chars = text.chars().map(|c| if is_wild(c) { '\u{fffd}' } else { c });
    let mut kept: String = chars.by_ref().take(most).collect();
    if chars.next().is_some() {
        kept.pop();
        kept.push('…');
    }
    kept
}

fn is_wild(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{61c}')
}

/// A span: in whole seconds from one on, for what counts up or down.
pub(super) fn span(span: Duration) -> String {
    let ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    match ms {
        _ if span.is_zero() => "0 s".to_owned(),
        0..1000 => spoken(ms.max(1)),
        _ => spoken(ms / 1000 * 1000),
    }
}

/// [`span`] of milliseconds.
pub(super) fn span_ms(ms: u64) -> String {
    span(Duration::from_millis(ms))
}

/// A number with its thousands apart.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut apart = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            apart.push(',');
        }
        apart.push(digit);
    }
    apart
}

/// `1 turn`, `2 turns`.
pub(super) fn several(number: u64, one: &str) -> String {
    format!("{} {}", count(number), plural(number, one))
}

/// A length as a `u64`.
pub(super) fn many(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// What leaves an account out, in words.
pub(super) fn excluded(reason: &str) -> String {
    match reason {
        "unreachable" => "cannot be reached".into(),
        "credential" => "its credential is refused".into(),
        "rate_limit" => "its rate limit is reached".into(),
        "quota" => "its quota is used up".into(),
        other => tame(other),
    }
}

#[cfg(test)]
mod tests;
