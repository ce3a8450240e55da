//! How long things take, when some were not seen to their end: the Kaplan-Meier estimate.
//!
//! A turn that tripped the watchdog after 60 s says "longer than 60 s" and no more, one whose client left after 3 s says
//! "longer than 3 s". Left out, they would make waits look shorter than they are; taken as they are, too.

use super::proportion::Share;

/// A watchdog is late by a moment, and an event may still come in it: what came so shortly after others tripped is no news
/// of those.
const SLACK_MS: u64 = 1000;

/// One wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Milliseconds.
    pub ms: u64,
    pub end: End,
}

/// How a wait ended. After the other two it is only known that what was waited for had not come by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// What was waited for came.
    Came,
    /// The watchdog ended it: it had been waited for to the end.
    Tripped,
    /// Something else ended it.
    GivenUp,
}

impl Wait {
    fn came(&self) -> bool {
        self.end == End::Came
    }

    /// Until when it was watched.
    fn until(&self) -> u64 {
        match self.end {
            End::Tripped => self.ms.saturating_add(SLACK_MS),
            End::Came | End::GivenUp => self.ms,
        }
    }
}

/// One step of the curve: at one time at which something came.
#[derive(Clone, Copy, Debug)]
struct Step {
    ms: u64,
    /// The share that waits longer than this.
    surviving: f64,
    /// Greenwood's sum up to here.
    greenwood: f64,
    /// How many came by then.
    came: u64,
}

/// A share of late ones, with its bounds.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    pub share: Share,
    /// The number of complete samples that would tell as much.
    pub size: f64,
}

/// The estimate: which share of all waits is longer than some time.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    steps: Vec<Step>,
    /// All samples, by how long they were watched.
    waits: Vec<Wait>,
    came: u64,
    /// The share that never comes, as far as could be seen.
    floor: f64,
}

impl Curve {
    /// The curve of `waits`, in any order.
    pub fn of(mut waits: Vec<Wait>) -> Curve {
        waits.sort_unstable_by_key(Wait::until);
        let mut steps: Vec<Step> = Vec::new();
        let (mut surviving, mut greenwood, mut came, mut lost) = (1.0, 0.0, 0_u64, 0_u64);
        for group in waits.chunk_by(|a, b| a.until() == b.until()) {
            let at_risk = (waits.len() as u64 - came - lost) as f64;
            let arrived = group.iter().filter(|wait| wait.came()).count() as u64;
            if let (true, Some(first)) = (arrived > 0, group.first()) {
                let here = arrived as f64;
                surviving *= 1.0 - here / at_risk;
                greenwood += here / (at_risk * (at_risk - here));
                came += arrived;
                steps.push(Step {
                    ms: first.ms,
                    surviving,
                    greenwood,
                    came,
                });
            }
            // Who was given up at a time had not come by then: at risk when others came at it.
            lost += group.len() as u64 - arrived;
        }
        // What is left when the last one that was seen to come has come. Only somebody who waited to the end after that
        // shows that it never comes; otherwise it may come later.
        let last = steps.last().map_or(0, |step| step.ms);
        let in_vain = |wait: &Wait| wait.until() >= last && wait.end == End::Tripped;
        let floor = if waits.iter().any(in_vain) { surviving } else { 0.0 };
        Curve {
            steps,
            waits,
            came,
            floor,
        }
    }

    /// How many samples there are.
    pub fn len(&self) -> u64 {
        self.waits.len() as u64
    }

    /// True without a sample.
    pub fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    /// How many of them came.
    pub fn came(&self) -> u64 {
        self.came
    }

    /// The longest sample of either kind, in milliseconds.
    pub fn longest(&self) -> Option<u64> {
        self.waits.last().map(|wait| wait.ms)
    }

    /// The longest that came, in milliseconds.
    pub fn latest(&self) -> Option<u64> {
        self.steps.last().map(|step| step.ms)
    }

    /// How many came after `ms`: what a deadline of `ms` would have ended.
    pub fn came_after(&self, ms: u64) -> u64 {
        self.came - self.at(ms).map_or(0, |step| step.came)
    }

    /// The share of all waits that is longer than `ms`.
    pub fn surviving(&self, ms: u64) -> f64 {
        self.at(ms).map_or(1.0, |step| step.surviving)
    }

    /// Those that the watchdog ended, in milliseconds.
    pub fn trips(&self) -> impl Iterator<Item = u64> {
        let tripped = self.waits.iter().filter(|wait| wait.end == End::Tripped);
        tripped.map(|wait| wait.ms)
    }

    /// For how long turns would have been waited for in vain, all together, with a deadline of `ms`: those that the watchdog
    /// ended to its end, and those that ended otherwise until then.
    pub fn in_vain(&self, ms: u64) -> u64 {
        let vain = self.waits.iter().map(|wait| match wait.end {
            End::Came => 0,
            End::Tripped => ms,
            End::GivenUp => wait.ms.min(ms),
        });
        vain.fold(0, u64::saturating_add)
    }

    /// Within which time `share` of those that come at all have come.
    pub fn within(&self, share: f64) -> Option<u64> {
        let wanted = self.floor + (1.0 - self.floor) * (1.0 - share);
        // A hair of tolerance: sums of hundredths are not exact.
        let step = self.steps.iter().find(|step| step.surviving <= wanted + 1e-12);
        step.or(self.steps.last()).map(|step| step.ms)
    }

    /// Of those that come at all, the share that comes after `ms`.
    ///
    /// With the curve at `s`, and a part `q` of what it has left there coming later, the share is `s q / (1 - s (1 - q))`.
    /// Greenwood's sums give the variances of both, which are independent, and those the share's. The size is Rothman's: the
    /// number of complete samples that would have the same variance. Where the share has none (nothing, or all, is late), it
    /// is that of `s`; where that has none either, the samples whose fate at `ms` is known.
    ///
    /// What is known of `q` is known from those alone that were still watched when the next one after `ms` came: with few of
    /// them the bounds are as wide as theirs.
    pub fn late(&self, ms: u64) -> Late {
        let (s, f) = (self.surviving(ms), self.floor);
        if f >= 1.0 || self.is_empty() {
            let share = Share::of(0.0, 0.0);
            return Late { share, size: 0.0 };
        }
        let q = if s > 0.0 {
            (1.0 - f / s).clamp(0.0, 1.0)
        } else {
            1.0
        };
        let of = |q: f64| (s * q / (1.0 - s * (1.0 - q))).clamp(0.0, 1.0);
        let late = of(q);
        let sum = self.at(ms).map_or(0.0, |step| step.greenwood);
        let rest = self.steps.last().map_or(0.0, |step| step.greenwood - sum);
        let slope = (1.0 - s * (1.0 - q)).powi(-2);
        let of_s = (q * slope * s).powi(2) * sum;
        let of_q = if q < 1.0 {
            (s * (1.0 - s) * slope * (1.0 - q)).powi(2) * rest
        } else {
            0.0
        };
        let sizes = [
            late * (1.0 - late) / (of_s + of_q),
            (1.0 - s) / (s * sum) * (1.0 - f),
            self.known(ms) as f64 * (1.0 - f),
        ];
        let size = sizes.into_iter().find(|size| size.is_finite() && *size > 0.0);
        let size = size.unwrap_or(0.0).min(self.len() as f64);
        let share = Share::of(late, size);
        let later = Share::of(q, self.witnesses(ms) as f64);
        Late {
            share: Share {
                share: late,
                low: share.low.min(of(later.low)),
                high: share.high.max(of(later.high)),
            },
            size,
        }
    }

    /// The samples that were watched until the next one after `ms` came, or for longer than `ms` where none did.
    fn witnesses(&self, ms: u64) -> u64 {
        let next = self.steps.partition_point(|step| step.ms <= ms);
        let next = self.steps.get(next).map_or(ms, |step| step.ms.saturating_sub(1));
        self.at_risk(next)
    }

    /// The samples that were watched for longer.
    fn at_risk(&self, ms: u64) -> u64 {
        self.len() - self.waits.partition_point(|wait| wait.until() <= ms) as u64
    }

    /// The samples of which it is known whether they came by `ms`.
    fn known(&self, ms: u64) -> u64 {
        self.at(ms).map_or(0, |step| step.came) + self.at_risk(ms)
    }

    fn at(&self, ms: u64) -> Option<&Step> {
        let after = self.steps.partition_point(|step| step.ms <= ms);
        after.checked_sub(1).and_then(|last| self.steps.get(last))
    }
}

#[cfg(test)]
mod tests;
