use super::*;
use crate::tune::tests::Dice;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 5e-4
}

/// [TUNE-4] Wilson's bounds, against values worked out by hand; nothing seen is not nothing there.
#[test]
fn bounds() {
    for (part, whole, low, high) in [
        (0, 10, 0.0, 0.2775),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (1, 1000, 0.00018, 0.00564),
    ] {
        let share = Share::count(part, whole);
        assert!(
            near(share.low, low) && near(share.high, high),
            "{part}/{whole}: {share:?}"
        );
    }
    let nothing = Share::count(0, 0);
    assert_eq!((nothing.low, nothing.high), (0.0, 1.0));
    for odd in [f64::NAN, f64::INFINITY, -1.0] {
        let share = Share::of(odd, odd);
        assert!(
            (0.0..=1.0).contains(&share.low) && (0.0..=1.0).contains(&share.high),
            "{share:?}"
        );
    }
}

/// [TUNE-4] what is not known of some widens the bounds to both sides of it.
#[test]
fn unknown_ones_widen_the_bounds() {
    let share = Share::between(80, 95, 100);
    assert_eq!(share.low, Share::count(80, 100).low);
    assert_eq!(share.high, Share::count(95, 100).high);
}

/// [TUNE-6] the needed number is where the bounds first leave the wanted share out, and no constant.
#[test]
fn needed_is_the_number_that_decides() {
    assert_eq!(needed(0.0, 0.001), Some(3838));
    assert_eq!(needed(0.0, 0.01), Some(381));
    assert_eq!(needed(1.0, 0.9), Some(35));
    assert_eq!(needed(0.001, 0.001), None);
    for (seen, wanted) in [
        (0.0, 0.001),
        (0.0003, 0.001),
        (0.004, 0.001),
        (1.0, 0.9),
        (0.7, 0.9),
    ] {
        let size = needed(seen, wanted).unwrap() as f64;
        let decides = |size: f64| {
            let share = Share::of(seen, size);
            share.high <= wanted || share.low >= wanted
        };
        assert!(decides(size) && !decides(size - 2.0), "{seen} {wanted} {size}");
    }
}

/// [TUNE-4] the true share lies within the bounds about as often as they say, also where it is rare.
#[test]
fn coverage() {
    let mut dice = Dice::new(1);
    for (truth, size) in [(0.5, 100), (0.05, 200), (0.005, 2000), (0.9, 50)] {
        let within = (0..2000).filter(|_| {
            let part = (0..size).filter(|_| dice.uniform() < truth).count() as u64;
            let share = Share::count(part, size);
            share.low <= truth && truth <= share.high
        });
        let within = within.count();
        assert!(
            (1840..=1990).contains(&within),
            "{truth} of {size}: {within} of 2000"
        );
    }
}
