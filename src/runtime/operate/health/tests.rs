//! How looks are judged, and what is left of them.

use super::*;

const S: Duration = Duration::from_secs(1);

fn facts() -> Facts {
    Facts {
        accounts: 2,
        ..Facts::default()
    }
}

fn state(facts: &Facts, name: &str) -> State {
    let checks = judge(facts);
    checks.iter().find(|check| check.name == name).unwrap().state
}

/// [HLT-6] what each check means, at its bounds.
#[test]
fn bounds() {
    let unwritable = |lasts| Facts {
        unwritable: Some((Reason::Full, lasts)),
        ..facts()
    };
    let ms = Duration::from_millis(1);
    for (facts, name, wanted) in [
        (facts(), "accounts", State::Ok),
        (facts(), "store", State::Ok),
        (facts(), "clock", State::Ok),
        (unwritable(Duration::ZERO), "store", State::Warn),
        (unwritable(60 * S - ms), "store", State::Warn),
        (unwritable(60 * S), "store", State::Fail),
    ] {
        assert_eq!(state(&facts, name), wanted, "{name} {facts:?}");
    }
    let told = judge(&unwritable(7 * S))
        .into_iter()
        .find(|check| check.name == "store");
    assert_eq!(
        told.unwrap().value,
        "full for 7 s; 0 changes waiting, 0 lost; free some space on that disk; writing resumes by itself"
    );
    for (late, wanted) in [(S - ms, State::Ok), (S, State::Warn)] {
        assert_eq!(state(&Facts { late, ..facts() }, "runtime"), wanted);
    }
    for (unavailable, wanted) in [(0, State::Ok), (1, State::Warn), (2, State::Fail)] {
        let facts = Facts {
            unavailable,
            ..facts()
        };
        assert_eq!(state(&facts, "accounts"), wanted);
    }
    for (unavailable, rejected, unreached, wanted, value) in [
        (
            0,
            1,
            0,
            State::Warn,
            "1 of 2 usable; 1 with a rejected credential",
        ),
        (
            0,
            2,
            0,
            State::Fail,
            "0 of 2 usable; 2 with a rejected credential",
        ),
        (
            1,
            1,
            0,
            State::Fail,
            "0 of 2 usable; 1 with a rejected credential",
        ),
        (0, 0, 2, State::Warn, "2 of 2 usable; 2 not reached"),
        (
            0,
            1,
            1,
            State::Warn,
            "1 of 2 usable; 1 with a rejected credential; 1 not reached",
        ),
    ] {
        let facts = Facts {
            unavailable,
            rejected,
            unreached,
            ..facts()
        };
        let checks = judge(&facts);
        let accounts = checks.iter().find(|check| check.name == "accounts").unwrap();
        assert_eq!((accounts.state, accounts.value.as_str()), (wanted, value));
    }
    for (open, wanted) in [(79, State::Ok), (80, State::Warn), (95, State::Fail)] {
        let files = Some((open, 100));
        assert_eq!(state(&Facts { files, ..facts() }, "file descriptors"), wanted);
    }
    for (ago, wanted) in [(599, State::Warn), (600, State::Ok)] {
        let step = Some((-7, ago * S));
        assert_eq!(state(&Facts { step, ..facts() }, "clock"), wanted);
        let journal = Some((3, Some(ago * S)));
        assert_eq!(state(&Facts { journal, ..facts() }, "journal"), wanted);
    }
}

/// [HLT-1] the pulse is live for 10 s after a look, and again after the next one.
#[test]
fn a_pulse_that_stops() {
    let began = Instant::now();
    let pulse = Pulse::new(began);
    pulse.look(facts(), None, began + 5 * S);
    assert!(pulse.is_live(began + 14 * S));
    assert!(!pulse.is_live(began + 15 * S));
    assert_eq!(pulse.view(began + 15 * S, true).state, State::Fail);
    pulse.look(facts(), None, began + 20 * S);
    assert!(pulse.is_live(began + 20 * S));
    let view = pulse.view(began + 21 * S, true);
    let runtime = &view.checks[0];
    assert_eq!(
        (runtime.name, runtime.state, runtime.age_ms),
        ("runtime", State::Warn, 1000)
    );
}

/// [HLT-2] [HLT-3] [HLT-4] fit while an account is usable and the store has not been unwritable for 60 s; never while it drains.
#[test]
fn fitness() {
    let began = Instant::now();
    let pulse = Pulse::new(began);
    assert!(pulse.is_fit(), "before the first look");
    let looks = |second: u32, unavailable, unwritable| {
        let facts = Facts {
            unavailable,
            ..facts()
        };
        pulse.look(facts, unwritable, began + second * S);
        pulse.is_fit()
    };
    assert!(looks(1, 1, None));
    assert!(!looks(2, 2, None));
    assert!(looks(3, 0, None));
    let full = Some(Reason::Full);
    assert!(looks(10, 0, full));
    assert!(looks(69, 0, full));
    assert!(!looks(70, 0, full));
    assert!(looks(71, 0, None));
    let rejected = Facts {
        rejected: 2,
        ..facts()
    };
    pulse.look(rejected, None, began + 71 * S);
    assert!(pulse.is_fit(), "they are tried");
    assert!(looks(72, 0, full), "anew");
    pulse.drains();
    assert!(!looks(73, 0, None));
}

/// [HLT-5] a check tells since when it has been in its state, whatever its value; and the worst of all is told.
#[test]
fn since_when() {
    let began = Instant::now();
    let pulse = Pulse::new(began);
    let extra = || Check::new("listener", State::Ok, "1 of 2 connections");
    pulse.look_also(100, vec![Box::new(extra)]);
    pulse.files(10);
    for (second, unavailable) in [(1, 0), (2, 1), (3, 1), (4, 1)] {
        let facts = Facts {
            unavailable,
            ..facts()
        };
        pulse.look(facts, None, began + second * S);
    }
    pulse.stepped(9, began + 3 * S);
    let view = pulse.view(began + 4 * S + S / 2, false);
    assert_eq!((view.state, view.live, view.ready), (State::Warn, true, false));
    let told = |name: &str| {
        let check = view.checks.iter().find(|check| check.name == name).unwrap();
        (check.state, check.since_ms, check.age_ms)
    };
    assert_eq!(told("accounts"), (State::Warn, 2500, 500));
    assert_eq!(told("store"), (State::Ok, 3500, 500));
    assert_eq!(told("listener"), (State::Ok, 3500, 500));
    assert_eq!(told("file descriptors").0, State::Ok);
}
