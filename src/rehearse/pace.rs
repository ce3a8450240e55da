//! Time in a drill: all is shorter by one factor, and told as it would be in earnest.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::lapse;

/// By how much time is shortened: 1 to 1000.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed(f64);

impl Speed {
    /// As long as `real` takes in the drill.
    pub fn shorten(self, real: Duration) -> Duration {
        real.div_f64(self.0)
    }

    /// As long as `drill` would take in earnest.
    pub fn real(self, drill: Duration) -> Duration {
        // A drill is bounded by minutes: a thousandfold of that is far from overflow.
        drill.mul_f64(self.0)
    }

    /// The factor.
    pub fn factor(self) -> f64 {
        self.0
    }
}

impl FromStr for Speed {
    type Err = String;
    fn from_str(text: &str) -> Result<Speed, String> {
        match text.parse::<f64>() {
            Ok(factor) if (1.0..=1000.0).contains(&factor) => Ok(Speed(factor)),
            _ => {
                Err("write a number from 1 (in real time) to 1000; 60 makes a second of a minute".to_owned())
            }
        }
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A duration for people.
pub fn told(duration: Duration) -> String {
    lapse::short(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// A point in time as a clock shows it: `1:05`, `1:00:05`.
pub fn clock(since: Duration) -> String {
    let seconds = since.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [REH-12] No speed but a sensible one.
    #[test]
    fn speeds_have_bounds() {
        for bad in ["0", "1e9", "NaN", "-60", "inf", "", "60x", "0.5"] {
            let error = bad.parse::<Speed>().unwrap_err();
            assert!(error.contains("1000"), "{bad}: {error}");
        }
        let speed: Speed = "60".parse().unwrap();
        assert_eq!(speed.shorten(Duration::from_secs(60)), Duration::from_secs(1));
        assert_eq!(speed.real(Duration::from_millis(500)), Duration::from_secs(30));
    }

    /// [REH-7] Durations and times are told as people write them.
    #[test]
    fn durations_are_told_for_people() {
        let ms = Duration::from_millis;
        let cases = [
            (33, "33ms"),
            (1_500, "1.5s"),
            (1_000, "1s"),
            (60_240, "60s"),
            (600_000, "10m"),
            (185_000, "3m 5s"),
        ];
        for (millis, text) in cases {
            assert_eq!(told(ms(millis)), text);
        }
        assert_eq!(clock(Duration::from_secs(65)), "1:05");
        assert_eq!(clock(Duration::from_secs(3605)), "1:00:05");
    }
}
