//! A share, and what the sample allows to say about it: Wilson's score interval.
//!
//! Wilson's, not the usual plus and minus: most shares here are zero or close to it, where the usual interval has no width
//! at all, and says that what was not seen cannot be.

use serde::Serialize;

/// Of the normal distribution: 95 % lie within so many standard deviations.
pub const Z: f64 = 1.959_964;

/// A share with its 95 % bounds, each from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    pub share: f64,
    pub low: f64,
    pub high: f64,
}

impl Share {
    /// `share` of `size` samples. `size` need not be whole: that of censored samples is what as many complete ones would
    /// tell. No sample: nothing is known, from 0 to 1.
    pub fn of(share: f64, size: f64) -> Share {
        let share = if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.0
        };
        if !size.is_finite() || size <= 0.0 {
            return Share {
                share,
                low: 0.0,
                high: 1.0,
            };
        }
        let square = Z * Z;
        let middle = (share + square / (2.0 * size)) / (1.0 + square / size);
        let spread =
            Z / (1.0 + square / size) * (share * (1.0 - share) / size + square / (4.0 * size * size)).sqrt();
        Share {
            share,
            // At the ends of the scale the bound is the end: rounding must not say otherwise.
            low: (middle - spread).clamp(0.0, share),
            high: (middle + spread).clamp(share, 1.0),
        }
    }

    /// `part` of `whole`.
    pub fn count(part: u64, whole: u64) -> Share {
        // Counts of rows of a journal are far below 2^52.
        let (part, whole) = (part as f64, whole as f64);
        Share::of(if whole > 0.0 { part / whole } else { 0.0 }, whole)
    }

    /// At least `known`, and at most `possible`, of `whole`: what is not known of the others widens the bounds. The share is
    /// what is known.
    pub fn between(known: u64, possible: u64, whole: u64) -> Share {
        let (known, possible) = (Share::count(known, whole), Share::count(possible, whole));
        Share {
            high: possible.high,
            ..known
        }
    }
}

/// How many samples it takes until the bounds of a share of `seen` leave `wanted` out, on whichever side it is. None where
/// no number would do, or none below a thousand million.
///
/// Where none of `n` was seen this is `n = 3.84 / wanted`: the rule of three, for bounds on both sides.
pub fn needed(seen: f64, wanted: f64) -> Option<u64> {
    let distance = seen - wanted;
    let size = Z * Z * wanted * (1.0 - wanted) / (distance * distance);
    (size.is_finite() && size < 1e9).then(|| size.ceil() as u64)
}

#[cfg(test)]
mod tests;
