use super::*;
use crate::tune::incidents::Probe;
use crate::tune::tests::Dice;

/// Quarantines that recover after `recovers` milliseconds, with a turn every two seconds to probe with, the first window
/// of `window`, doubling up to `most`; a silent probe takes a minute to trip.
fn incidents(count: usize, window: u64, most: u64, mut recovers: impl FnMut() -> f64) -> Vec<Incident> {
    (0..count)
        .map(|_| {
            let recovered = recovers();
            let (mut at, mut next, mut probes) = (0, window, Vec::new());
            for _ in 0..12 {
                let after_ms = at + next + 1500;
                let answered = recovered <= after_ms as f64;
                probes.push(Probe { after_ms, answered });
                if answered {
                    break;
                }
                (at, next) = (after_ms + MINUTE, (next * 2).min(most));
            }
            Incident { probes }
        })
        .collect()
}

fn line(section: &Section, ms: u64) -> &Line {
    let Table::Recovery(lines) = &section.groups[0].table else {
        panic!("{section:?}")
    };
    lines.iter().find(|line| line.candidate_ms == ms).unwrap()
}

fn sentence(section: &Section) -> String {
    section.verdict.sentence(section.in_force_ms)
}

/// [TUNE-7] recovery times that are exponential: at each candidate the truth lies within the bounds, also where no probe
/// came; half of the first probes are silent, and the first window that surely does better is recommended.
#[test]
fn a_window_that_is_too_short_is_raised() {
    let mut dice = Dice::new(17);
    let incidents = incidents(400, MINUTE, 10 * MINUTE, || dice.exponential(100_000.0));
    let [window, _] = sections(&incidents, MINUTE, 10 * MINUTE);
    for minutes in [1, 2, 3, 5, 10] {
        let line = line(&window, minutes * MINUTE);
        // A probe may count up to a quarter later.
        let (early, late) = (minutes as f64 * 60_000.0, minutes as f64 * 75_000.0);
        let truth = |ms: f64| 1.0 - (-ms / 100_000.0).exp();
        assert!(
            line.share.low <= truth(late) && truth(early) <= line.share.high,
            "{line:?}"
        );
    }
    assert_eq!(window.verdict.value(), Some(9 * MINUTE), "{window:?}");
    assert!(
        sentence(&window).starts_with("raise to 9m: only "),
        "{}",
        sentence(&window)
    );
}

/// [TUNE-7] nearly all first probes are answered: kept, for nobody probed sooner. Those that had a shorter window say that it
/// would do as well.
#[test]
fn a_window_that_suffices_is_kept_and_lowered_only_on_evidence() {
    let mut dice = Dice::new(19);
    let mut recover = || dice.exponential(5_000.0);
    let late = incidents(200, MINUTE, 10 * MINUTE, &mut recover);
    let [window, _] = sections(&late, MINUTE, 10 * MINUTE);
    assert!(
        sentence(&window).starts_with("keep 60s: "),
        "{}",
        sentence(&window)
    );
    assert!(sentence(&window).ends_with("and of a shorter one too little is known."));
    let mut both = incidents(200, MINUTE / 2, 10 * MINUTE, &mut recover);
    both.extend(late);
    let [window, _] = sections(&both, MINUTE, 10 * MINUTE);
    assert_eq!(window.verdict.value(), Some(MINUTE / 2), "{}", sentence(&window));
}

/// [TUNE-7] half were still sick after a minute, and all well at their second probe: the window that this came after is
/// recommended, and none that no probe came as late as.
#[test]
fn no_window_beyond_the_latest_probe() {
    let probed = |second: u64| {
        let probe = |after_ms, answered| Probe { after_ms, answered };
        let well = Incident {
            probes: vec![probe(61_000, true)],
        };
        let sick = Incident {
            probes: vec![probe(61_000, false), probe(second, true)],
        };
        let [window, _] = sections(&[vec![well; 50], vec![sick; 50]].concat(), MINUTE, 10 * MINUTE);
        window
    };
    assert_eq!(probed(241_000).verdict.value(), Some(4 * MINUTE));
    let window = probed(239_000);
    assert_eq!(window.verdict.value(), None, "{window:?}");
    assert!(
        sentence(&window).contains("no longer one that was observed"),
        "{}",
        sentence(&window)
    );
}

/// [TUNE-6] [TUNE-7] few quarantines decide nothing, and say how many it takes.
#[test]
fn too_few_quarantines() {
    let [window, most] = sections(
        &incidents(20, MINUTE, 10 * MINUTE, || 1000.0),
        MINUTE,
        10 * MINUTE,
    );
    assert_eq!(
        sentence(&window),
        "not enough evidence: 20 quarantines probed in time, 35 needed."
    );
    assert!(
        sentence(&most).starts_with("not enough evidence: 0 quarantines"),
        "{}",
        sentence(&most)
    );
    let [window, _] = sections(
        &incidents(35, MINUTE, 10 * MINUTE, || 1000.0),
        MINUTE,
        10 * MINUTE,
    );
    assert_eq!(window.verdict.value(), None);
    assert!(
        sentence(&window).starts_with("keep 60s: 35 of 35"),
        "{}",
        sentence(&window)
    );
}

/// [TUNE-7] the longest window is judged by those alone that were still sick at their first probe.
#[test]
fn the_longest_window_is_for_stubborn_ones() {
    let mut dice = Dice::new(23);
    // Half recover at once, half after four to six minutes: the third probe, after 545 s, finds them well.
    let recover = || {
        if dice.uniform() < 0.5 {
            1.0
        } else {
            240_000.0 + 120_000.0 * dice.uniform()
        }
    };
    let incidents = incidents(300, MINUTE, 30 * MINUTE, recover);
    let [_, most] = sections(&incidents, MINUTE, 30 * MINUTE);
    assert!(most.groups[0].samples < 200, "{most:?}");
    assert_eq!(most.verdict.value(), Some(9 * MINUTE), "{most:?}");
}

/// [TUNE-7] a probe that came long after its window proves nothing about it: its agent came back late, whatever the session did.
#[test]
fn late_probes_do_not_count() {
    let late = Incident {
        probes: vec![Probe {
            after_ms: 3 * 60 * MINUTE,
            answered: true,
        }],
    };
    let [window, _] = sections(&vec![late; 100], MINUTE, 10 * MINUTE);
    assert_eq!(
        sentence(&window),
        "not enough evidence: 0 quarantines probed in time, 35 needed."
    );
}

/// [TUNE-7] where quarantine is switched off nothing is recommended.
#[test]
fn switched_off() {
    let [window, most] = sections(&[], 0, 0);
    for section in [window, most] {
        assert_eq!(sentence(&section), "keep 0s: quarantine is switched off.");
    }
}
