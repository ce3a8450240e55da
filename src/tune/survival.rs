//! How long things take, when some were not seen to their end: the Kaplan-Meier estimate.
//!
//! A turn that tripped the watchdog after 60 s says "longer than 60 s" and no more, one whose client left after 3 s says
//! "longer than 3 s". Left out, they would make waits look shorter than they are; taken as they are, too.

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

/// The estimate: which share of all waits is longer than some time.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    steps: Vec<Step>,
    /// All samples, sorted: those given up at the same time as others came stand after them.
    waits: Vec<Wait>,
    came: u64,
    /// The share that never comes, as far as could be seen.
    floor: f64,
}

impl Curve {
    /// The curve of `waits`, in any order.
    pub fn of(mut waits: Vec<Wait>) -> Curve {
        // Who was given up at a time had not come by then: after those who came at it.
        waits.sort_unstable_by_key(|wait| (wait.ms, !wait.came()));
        let mut steps: Vec<Step> = Vec::new();
        let (mut surviving, mut greenwood, mut came, mut lost) = (1.0, 0.0, 0_u64, 0_u64);
        for group in waits.chunk_by(|a, b| a.ms == b.ms) {
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
            lost += group.len() as u64 - arrived;
        }
        // What is left when the last one that was seen to come has come. Only somebody who waited to the end after that
        // shows that it never comes; otherwise it may come later.
        let last = steps.last().map_or(0, |step| step.ms);
        let in_vain = |wait: &Wait| wait.ms >= last && wait.end == End::Tripped;
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

    /// Within which time `share` of those that come at all have come.
    pub fn within(&self, share: f64) -> Option<u64> {
        let wanted = self.floor + (1.0 - self.floor) * (1.0 - share);
        // A hair of tolerance: sums of hundredths are not exact.
        let step = self.steps.iter().find(|step| step.surviving <= wanted + 1e-12);
        step.or(self.steps.last()).map(|step| step.ms)
    }

    /// Of those that come at all, the share that comes after `ms`; and how many complete samples would tell as much.
    ///
    /// With the curve at `s`, and its end at `f = s * r`, the share is `s (1 - r) / (1 - s r)`. Greenwood's sums give the
    /// variances of `s` and of `r`, which are independent, and those the share's. The size is Rothman's: the number of
    /// complete samples that would have the same variance. Where the share has none (nothing, or all, is late), it is that
    /// of `s`; where that has none either, the samples whose fate at `ms` is known.
    pub fn late(&self, ms: u64) -> (f64, f64) {
        let (s, f) = (self.surviving(ms), self.floor);
        if f >= 1.0 || self.is_empty() {
            return (0.0, 0.0);
        }
        let share = ((s - f) / (1.0 - f)).clamp(0.0, 1.0);
        let sum = self.at(ms).map_or(0.0, |step| step.greenwood);
        let rest = self.steps.last().map_or(0.0, |step| step.greenwood - sum);
        let r = if s > 0.0 { f / s } else { 0.0 };
        let slope = (1.0 - s * r).powi(-2);
        let of_s = ((1.0 - r) * slope).powi(2) * s * s * sum;
        let of_r = if r > 0.0 {
            (s * (s - 1.0) * slope * r).powi(2) * rest
        } else {
            0.0
        };
        let sizes = [
            share * (1.0 - share) / (of_s + of_r),
            (1.0 - s) / (s * sum) * (1.0 - f),
            self.known(ms) as f64 * (1.0 - f),
        ];
        let size = sizes.into_iter().find(|size| size.is_finite() && *size > 0.0);
        (share, size.unwrap_or(0.0).min(self.len() as f64))
    }

    /// The samples of which it is known whether they came by `ms`.
    fn known(&self, ms: u64) -> u64 {
        let by_then = self.waits.partition_point(|wait| wait.ms <= ms) as u64;
        let came = self.at(ms).map_or(0, |step| step.came);
        came + (self.len() - by_then)
    }

    fn at(&self, ms: u64) -> Option<&Step> {
        let after = self.steps.partition_point(|step| step.ms <= ms);
        after.checked_sub(1).and_then(|last| self.steps.get(last))
    }
}

#[cfg(test)]
mod tests;
