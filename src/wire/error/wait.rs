//! How long an upstream's error says that its cause lasts.

use std::time::Duration;

use super::{ErrorClass, WireError};

/// What stands before a time in a message: OpenAI's own words, and Azure's.
const BEFORE: [&str; 2] = ["try again in ", "retry after "];
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

impl WireError {
    /// How long it is to be waited, by the first that says so of: its headers, `resets_at`, `resets_in_seconds`, and the message
    /// of a rate limit or quota, which is all that a frame without headers has. `unix` is the present second. Nothing is
    /// known of a date as Retry-After [WIRE-25].
    pub fn wait(&self, unix: u64) -> Option<Duration> {
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
        let until = |at: u64| Duration::from_secs(at.saturating_sub(unix));
        self.header("retry-after-ms")
            .and_then(|ms| seconds(ms / 1000.0))
            .or_else(|| self.header("retry-after").and_then(seconds))
            .or_else(|| self.resets_at.map(until))
            .or_else(|| self.resets_in_seconds.map(Duration::from_secs))
            .or_else(|| self.in_words())
    }

    fn header(&self, wanted: &str) -> Option<f64> {
        let mut all = self.headers.iter();
        let (_, value) = all.find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
        value.trim().parse().ok()
    }

    /// "Please try again in 1m2.5s."
    fn in_words(&self) -> Option<Duration> {
        // The message of another error may quote anything.
        if !matches!(self.class(), ErrorClass::RateLimit | ErrorClass::Quota) {
            return None;
        }
        let message = self.message.as_deref()?.to_ascii_lowercase();
        let mut after = BEFORE.iter().filter_map(|words| message.split_once(words));
        after.next().and_then(|(_, rest)| span(rest))
    }
}

/// The span that a text begins with: numbers, each with its unit. Nothing where the first has none.
fn span(mut text: &str) -> Option<Duration> {
    let mut sum = None;
    loop {
        let digits = text
            .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
            .unwrap_or(text.len());
        let (number, rest) = text.split_at(digits);
        let rest = rest.trim_start();
        let letters = rest
            .find(|letter: char| !letter.is_ascii_lowercase())
            .unwrap_or(rest.len());
        let (word, rest) = rest.split_at(letters);
        let (Ok(number), Some(unit)) = (number.parse::<f64>(), unit(word)) else {
            return sum;
        };
        let one = Duration::try_from_secs_f64(number * unit.as_secs_f64()).ok()?;
        sum = Some(sum.unwrap_or(Duration::ZERO).checked_add(one)?);
        text = rest.trim_start();
    }
}

fn unit(word: &str) -> Option<Duration> {
    Some(match word {
        "ms" | "millisecond" | "milliseconds" => MS,
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "m" | "min" | "mins" | "minute" | "minutes" => SECOND * 60,
        "h" | "hour" | "hours" => SECOND * 3600,
        "d" | "day" | "days" => SECOND * 86_400,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(frame: &str) -> Option<u64> {
        let wait = WireError::from_envelope(frame).wait(1000)?;
        Some(u64::try_from(wait.as_millis()).unwrap())
    }

    /// [WIRE-25] each place in which an upstream says when to come again, the most exact one first.
    #[test]
    fn where_it_stands() {
        for (frame, ms) in [
            (
                r#"{"headers":{"retry-after":"30"},"error":{"code":"rate_limit_exceeded","resets_at":1100}}"#,
                Some(30_000),
            ),
            (
                r#"{"headers":{"Retry-After-Ms":1500,"retry-after":2},"error":{"code":"slow_down"}}"#,
                Some(1500),
            ),
            (
                r#"{"headers":{"retry-after-ms":-1,"retry-after":2},"error":{"code":"slow_down"}}"#,
                Some(2000),
            ),
            (
                r#"{"error":{"code":"rate_limit_exceeded","headers":{"retry-after":7}}}"#,
                Some(7000),
            ),
            (
                r#"{"error":{"type":"usage_limit_reached","resets_at":1100,"resets_in_seconds":90}}"#,
                Some(100_000),
            ),
            (
                r#"{"error":{"type":"usage_limit_reached","resets_at":5}}"#,
                Some(0),
            ),
            (
                r#"{"error":{"type":"usage_limit_reached","resets_in_seconds":90}}"#,
                Some(90_000),
            ),
            (
                r#"{"type":"error","code":"usage_limit_reached","resets_in_seconds":"90"}"#,
                Some(90_000),
            ),
            (
                r#"{"headers":{"retry-after":"Wed, 21 Oct 2026 07:28:00 GMT"},"error":{"code":"rate_limit_exceeded"}}"#,
                None,
            ),
            (
                r#"{"headers":{"retry-after":-5},"error":{"code":"rate_limit_exceeded"}}"#,
                None,
            ),
            (r#"{"error":{"code":"rate_limit_exceeded"}}"#, None),
        ] {
            assert_eq!(waits(frame), ms, "{frame}");
        }
    }

    /// [WIRE-25] a frame may say it in words alone; those of an error that is no limit mean nothing.
    #[test]
    fn in_words() {
        for (words, ms) in [
            (
                "Limit 30000, Used 22999, Requested 12528. Please try again in 11.054s. See more.",
                Some(11_054),
            ),
            ("Please try again in 120ms.", Some(120)),
            ("Please try again in 6m0s.", Some(360_000)),
            ("Please try again in 1h2m3.5s", Some(3_723_500)),
            ("Try again in 1 day 2 hours 3 minutes.", Some(93_780_000)),
            ("Please retry after 7 seconds.", Some(7000)),
            ("Please try again in a moment.", None),
            ("Please try again in 5.", None),
            ("Please try again in 1.2.3s.", None),
            ("Please try again in 99999999999999999999999d", None),
            ("Please try again in ", None),
            ("too fast", None),
        ] {
            let frame = |code: &str| format!(r#"{{"error":{{"code":"{code}","message":"{words}"}}}}"#);
            assert_eq!(waits(&frame("rate_limit_exceeded")), ms, "{words}");
            assert_eq!(waits(&frame("invalid_prompt")), None, "{words}");
        }
    }
}
