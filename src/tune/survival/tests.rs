use proptest::prelude::*;

use super::super::proportion::Share;
use super::*;
use crate::tune::tests::Dice;

/// Those that did not come were given up.
fn waits(of: &[(u64, bool)]) -> Vec<Wait> {
    let wait = |&(ms, came): &(u64, bool)| Wait {
        ms,
        end: if came { End::Came } else { End::GivenUp },
    };
    of.iter().map(wait).collect()
}

/// The same, but who is given up last had waited to the end.
fn in_vain(of: &[(u64, bool)]) -> Curve {
    let mut waits = waits(of);
    waits.iter_mut().max_by_key(|wait| wait.ms).unwrap().end = End::Tripped;
    Curve::of(waits)
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

/// [TUNE-3] seven waits, two of them given up in between and one at the end, worked out by hand:
///
/// | ms | at risk | came | surviving | Greenwood's sum |
/// |---|---|---|---|---|
/// | 2 | 7 | 1 | 6/7 | 1/42 |
/// | 4 | 5 | 2 | 6/7 * 3/5 = 18/35 | + 2/15 |
/// | 6 | 2 | 1 | 18/35 * 1/2 = 9/35 | + 1/2 |
#[test]
fn a_small_table() {
    let sample = [
        (8, false),
        (4, true),
        (2, true),
        (3, false),
        (4, true),
        (6, true),
        (5, false),
    ];
    let curve = in_vain(&sample);
    let table = [
        (2, 6.0 / 7.0, 1.0 / 42.0),
        (4, 18.0 / 35.0, 1.0 / 42.0 + 2.0 / 15.0),
        (6, 9.0 / 35.0, 1.0 / 42.0 + 2.0 / 15.0 + 0.5),
    ];
    assert_eq!(curve.steps.len(), table.len());
    for (step, (ms, surviving, greenwood)) in curve.steps.iter().zip(table) {
        assert_eq!(step.ms, ms);
        assert!(
            near(step.surviving, surviving) && near(step.greenwood, greenwood),
            "{step:?}"
        );
    }
    assert!(near(curve.surviving(1), 1.0) && near(curve.surviving(5), 18.0 / 35.0));
    assert!(near(curve.surviving(99), 9.0 / 35.0));
    assert_eq!(
        (curve.len(), curve.came(), curve.longest(), curve.latest()),
        (7, 4, Some(8), Some(6))
    );
    assert_eq!(
        (curve.came_after(1), curve.came_after(4), curve.came_after(6)),
        (4, 1, 0)
    );
    // Of those that come at all, 26/35, the part after 4 ms: 18/35 - 9/35.
    assert!(near(curve.late(4).0, 9.0 / 26.0));
    assert!(near(curve.late(6).0, 0.0));
    // Whoever gave up after the last one came may have left a late one.
    assert!(near(Curve::of(waits(&sample)).late(4).0, 18.0 / 35.0));
}

/// [TUNE-4] with waits that all were seen to their end, or tripped at the same time, it is a count of those that came.
#[test]
fn plain_samples_are_counted() {
    let mut sample: Vec<_> = (1..=40).map(|ms| (ms, true)).collect();
    sample.extend([(60, false); 10]);
    let mut waits = waits(&sample);
    waits
        .iter_mut()
        .filter(|wait| wait.ms == 60)
        .for_each(|wait| wait.end = End::Tripped);
    let curve = Curve::of(waits);
    for ms in [10, 39, 40, 50] {
        let (late, size) = curve.late(ms);
        assert!(
            near(late, (40_u64.saturating_sub(ms)) as f64 / 40.0),
            "{ms}: {late}"
        );
        assert!((size - 40.0).abs() < 1e-6, "{ms}: {size}");
    }
    assert_eq!(
        (curve.within(0.5), curve.within(1.0), curve.trips().count()),
        (Some(20), Some(40), 10)
    );
}

/// [TUNE-3] who is given up at the very time at which another comes had not come by then.
#[test]
fn ties() {
    let curve = Curve::of(waits(&[(5, false), (5, true), (9, true)]));
    assert!(near(curve.surviving(5), 2.0 / 3.0), "{curve:?}");
    let none = Curve::of(Vec::new());
    assert_eq!(
        (none.surviving(5), none.late(5), none.longest()),
        (1.0, (0.0, 0.0), None)
    );
    let only_lost = Curve::of(waits(&[(5, false), (7, false)]));
    // One of them is known to be late, if it comes at all; of 8 ms nothing is known.
    assert_eq!((only_lost.late(5), only_lost.late(8).1), ((1.0, 1.0), 0.0));
    assert_eq!(only_lost.within(0.5), None);
}

proptest! {
    /// [TUNE-3] where every wait was seen to its end the estimate is the share that was counted.
    #[test]
    fn without_unfinished_ones_it_is_the_count(times in prop::collection::vec(0_u64..50, 1..200), at in 0_u64..60) {
        let curve = Curve::of(times.iter().map(|&ms| Wait { ms, end: End::Came }).collect());
        let longer = times.iter().filter(|ms| **ms > at).count() as f64 / times.len() as f64;
        prop_assert!((curve.surviving(at) - longer).abs() < 1e-9);
        let (late, size) = curve.late(at);
        prop_assert!((late - longer).abs() < 1e-9);
        prop_assert!((size - times.len() as f64).abs() < 1e-6, "{size}");
    }

    /// [TUNE-3] whatever the sample: the curve never rises, stays a share, and so do the bounds.
    #[test]
    fn it_is_a_curve(times in prop::collection::vec((0_u64..50, any::<bool>()), 0..100)) {
        let curve = Curve::of(waits(&times));
        let mut before = 1.0;
        for ms in 0..60 {
            let now = curve.surviving(ms);
            prop_assert!((0.0..=before).contains(&now));
            before = now;
            let (late, size) = curve.late(ms);
            prop_assert!((-1e-9..=1.0 + 1e-9).contains(&late) && (0.0..=times.len() as f64).contains(&size));
            let share = Share::of(late, size);
            prop_assert!(share.low <= share.share && share.share <= share.high);
        }
    }
}

/// How many of 600 estimates of the share later than 10 s have the truth within their bounds, and the mean of those that
/// counted only what came. Healthy waits are exponential with a mean of 8 s; clients leave after a time with another mean;
/// one in `wedged` turns is never accepted; the deadline is 60 s.
fn coverage(seed: u64, patience: f64, wedged: f64) -> (u32, f64) {
    let mut dice = Dice::new(seed);
    let late = (-10.0_f64 / 8.0).exp();
    // Where nobody waits to the end, a wedged turn is one that may be late.
    let truth = if patience < 10.0 {
        late * (1.0 - wedged) + wedged
    } else {
        late
    };
    let (mut within, mut naive) = (0, 0.0);
    for _ in 0..600 {
        let sample: Vec<_> = (0..500)
            .map(|_| {
                let wedged = dice.uniform() < wedged;
                let wait = if wedged {
                    f64::INFINITY
                } else {
                    dice.exponential(8000.0)
                };
                let leaves = dice.exponential(patience * 1000.0);
                let (ms, end) = match (wait, leaves) {
                    _ if wait <= leaves.min(60_000.0) => (wait, End::Came),
                    _ if leaves < 60_000.0 => (leaves, End::GivenUp),
                    _ => (60_000.0, End::Tripped),
                };
                Wait { ms: ms as u64, end }
            })
            .collect();
        let came: Vec<_> = sample.iter().filter(|wait| wait.came()).collect();
        let late = came.iter().filter(|wait| wait.ms > 10_000).count();
        naive += late as f64 / came.len() as f64 / 600.0;
        let (share, size) = Curve::of(sample).late(10_000);
        let share = Share::of(share, size);
        within += u32::from(share.low <= truth && truth <= share.high);
    }
    (within, naive)
}

/// [TUNE-4] the true share lies within the bounds about as often as they say: with nobody leaving, with half of the clients
/// leaving early (where counting only what came is far off), and with wedged turns among them.
#[test]
fn coverage_under_censoring() {
    for (seed, patience, wedged) in [
        (1, 1e9, 0.0),
        (2, 1e9, 0.05),
        (3, 100.0, 0.05),
        (4, 8.0, 0.0),
        (5, 8.0, 0.02),
    ] {
        let (within, naive) = coverage(seed, patience, wedged);
        assert!(
            (552..=592).contains(&within),
            "{within} of 600 with {patience} s, {wedged}"
        );
        if patience < 10.0 {
            assert!(naive < 0.15, "{naive} is no test of an estimate of 0.287");
        }
    }
}
