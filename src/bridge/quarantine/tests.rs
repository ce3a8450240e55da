use super::*;
use crate::bridge::key::{Hash16, KeyKind};
use crate::bridge::ownership::AccountId;

const S: Duration = Duration::from_secs(1);

fn key(n: u8) -> AffinityKey {
    AffinityKey {
        kind: KeyKind::Thread,
        hash: Hash16([n; 16]),
    }
}

fn windows() -> Windows {
    Windows {
        window: 60 * S,
        max_window: 600 * S,
        max_keys: 3,
    }
}

fn quarantine() -> (Quarantine, Instant) {
    (Quarantine::new(windows(), 0), Instant::now())
}

/// Trips at `now` and returns when the window ends.
fn trip(quarantine: &mut Quarantine, now: Instant) -> Instant {
    let tripped = quarantine.trip(key(1), now).unwrap();
    assert_eq!(
        tripped.entry.state,
        EntryState::Open {
            until: now + tripped.window
        }
    );
    now + tripped.window
}

/// [QUA-1] [QUA-2] a silent session quarantines its key for the window, to the second, and no other key.
#[test]
fn the_window() {
    let (mut quarantine, now) = quarantine();
    assert_eq!(quarantine.status(&key(1), now), Status::Clear);
    let until = trip(&mut quarantine, now);
    assert_eq!(until, now + 60 * S);
    assert_eq!(quarantine.status(&key(1), now), Status::Open(until));
    assert_eq!(
        quarantine.status(&key(1), until - Duration::from_nanos(1)),
        Status::Open(until)
    );
    assert_eq!(quarantine.probe(&key(1), until - Duration::from_nanos(1)), None);
    assert_eq!(quarantine.status(&key(1), until), Status::Due);
    assert_eq!(quarantine.status(&key(2), now), Status::Clear);
    assert_eq!(quarantine.probe(&key(2), until), None);
    assert_eq!(quarantine.open(), 1);
}

/// [QUA-1] a window of zero disables quarantine, for entries of an earlier process too.
#[test]
fn zero_disables() {
    let (mut on, now) = quarantine();
    let entry = on.trip(key(1), now).unwrap().entry;
    let off = Windows {
        window: Duration::ZERO,
        ..windows()
    };
    let mut off = Quarantine::new(off, 0);
    assert_eq!(off.trip(key(1), now), None);
    assert_eq!(off.restore(key(1), entry, now), None);
    assert_eq!(off.status(&key(1), now), Status::Clear);
    assert!(off.is_empty());
}

/// [QUA-3] when the window is over, one turn probes and the others stay on direct HTTP.
#[test]
fn one_probe() {
    let (mut quarantine, now) = quarantine();
    let until = trip(&mut quarantine, now);
    let probe = quarantine.probe(&key(1), until).unwrap();
    assert_eq!(probe.key, key(1));
    assert_eq!(quarantine.status(&key(1), until), Status::Probing);
    assert_eq!(quarantine.status(&key(1), until + 3600 * S), Status::Probing);
    assert_eq!(quarantine.probe(&key(1), until), None);
    assert_eq!(quarantine.open(), 1);
}

/// [QUA-4] the probe's `response.created` clears the key.
#[test]
fn the_probe_clears() {
    let (mut quarantine, now) = quarantine();
    let until = trip(&mut quarantine, now);
    let probe = quarantine.probe(&key(1), until).unwrap();
    let cleared = quarantine.cleared(probe, until + S).unwrap();
    assert_eq!(cleared.state, EntryState::Cleared);
    assert_eq!(cleared.level, 1);
    assert_eq!(quarantine.status(&key(1), until + S), Status::Clear);
    assert_eq!(quarantine.open(), 0);
    assert_eq!(quarantine.len(), 1, "the level is remembered");
    assert!(!quarantine.is_empty());
    assert_eq!(quarantine.cleared(probe, until + S), None, "once");
}

/// [QUA-5] a probe that proved nothing frees its place at once: the next turn probes, with the same generation and
/// level (field reports 7 and 8).
#[test]
fn a_probe_is_freed() {
    let (mut quarantine, now) = quarantine();
    let until = trip(&mut quarantine, now);
    let probe = quarantine.probe(&key(1), until).unwrap();
    assert!(quarantine.freed(probe, until + S));
    assert!(!quarantine.freed(probe, until + S), "once");
    assert_eq!(quarantine.status(&key(1), until + S), Status::Due);
    let again = quarantine.probe(&key(1), until + S).unwrap();
    assert_eq!(again.generation, probe.generation);
    assert_eq!(quarantine.cleared(again, until + S).unwrap().level, 1);
}

/// [QUA-6] each silent probe doubles the window, up to the longest one, for as often as may be.
#[test]
fn consecutive_trips_double() {
    let (mut quarantine, mut now) = quarantine();
    for expected in [60, 120, 240, 480, 600, 600] {
        let until = trip(&mut quarantine, now);
        assert_eq!(until - now, expected * S);
        quarantine.probe(&key(1), until).unwrap();
        now = until + 61 * S;
    }
    for level in [32, 33, 64, u32::MAX] {
        assert_eq!(windows().of(level), 600 * S);
    }
    let shortest = Windows {
        max_window: S,
        ..windows()
    };
    assert_eq!(
        shortest.of(5),
        60 * S,
        "a longest window below the first one shortens nothing"
    );
}

/// [QUA-6] a sibling that goes silent in the same incident begins the window anew and does not double it.
#[test]
fn siblings_of_one_incident_do_not_double() {
    let (mut quarantine, now) = quarantine();
    let first = quarantine.trip(key(1), now).unwrap();
    let second = quarantine.trip(key(1), now + 59 * S).unwrap();
    assert_eq!(second.window, 60 * S);
    assert_eq!(second.entry.level, 1);
    assert!(second.entry.generation > first.entry.generation);
    assert_eq!(
        quarantine.status(&key(1), now + 60 * S),
        Status::Open(now + 119 * S)
    );
    let third = quarantine.trip(key(1), now + 119 * S).unwrap();
    assert_eq!(third.window, 120 * S, "the window was over: a new incident");
}

/// [QUA-7] the doubling level outlives a clear for `max_window`, and is forgotten then, entry and all.
#[test]
fn the_level_outlives_a_clear() {
    for (later, expected) in [(600 * S - Duration::from_nanos(1), 120), (600 * S, 60)] {
        let (mut quarantine, now) = quarantine();
        let until = trip(&mut quarantine, now);
        let probe = quarantine.probe(&key(1), until).unwrap();
        let cleared = quarantine.cleared(probe, until + S).unwrap();
        assert_eq!(cleared.level_until, until + S + 600 * S);
        let again = until + S + later;
        assert_eq!(quarantine.trip(key(1), again).unwrap().window, expected * S);
    }
    let (mut quarantine, now) = quarantine();
    let until = trip(&mut quarantine, now);
    let probe = quarantine.probe(&key(1), until).unwrap();
    quarantine.cleared(probe, until).unwrap();
    assert_eq!(quarantine.status(&key(1), until + 599 * S), Status::Clear);
    assert_eq!(quarantine.len(), 1);
    assert_eq!(quarantine.status(&key(1), until + 600 * S), Status::Clear);
    assert!(quarantine.is_empty());
}

/// [QUA-7] a level that nobody probed is forgotten `max_window` after its window.
#[test]
fn an_old_level_is_forgotten() {
    for (later, expected) in [(600 * S - Duration::from_nanos(1), 120), (600 * S, 60)] {
        let (mut quarantine, now) = quarantine();
        let until = trip(&mut quarantine, now);
        assert_eq!(
            quarantine.trip(key(1), until + later).unwrap().window,
            expected * S
        );
    }
}

/// [QUA-8] trip, clear, trip; then the first one's completion: it changes nothing (field report 32).
#[test]
fn an_old_completion_erases_no_newer_quarantine() {
    let (mut quarantine, now) = quarantine();
    let until = trip(&mut quarantine, now);
    let first = quarantine.probe(&key(1), until).unwrap();
    // The probe's turn goes on while another session of the key goes silent.
    let until = trip(&mut quarantine, until + S);
    assert_eq!(quarantine.cleared(first, until - S), None);
    assert!(!quarantine.freed(first, until - S));
    assert_eq!(quarantine.status(&key(1), until - S), Status::Open(until));

    let second = quarantine.probe(&key(1), until).unwrap();
    assert!(second.generation > first.generation);
    assert_eq!(quarantine.cleared(first, until), None);
    assert!(!quarantine.freed(first, until));
    assert_eq!(quarantine.status(&key(1), until), Status::Probing);
    assert!(quarantine.cleared(second, until).is_some());
}

/// [QUA-8] generations are one sequence over all keys and go on after a restart.
#[test]
fn generations_only_grow() {
    let now = Instant::now();
    let mut quarantine = Quarantine::new(windows(), 41);
    assert_eq!(
        quarantine.trip(key(1), now).unwrap().entry.generation,
        Generation(42)
    );
    assert_eq!(
        quarantine.trip(key(2), now).unwrap().entry.generation,
        Generation(43)
    );
    let entry = Entry {
        generation: Generation(99),
        level: 1,
        state: EntryState::Cleared,
        level_until: now + S,
        since: None,
        account: None,
    };
    quarantine.restore(key(3), entry, now);
    assert_eq!(
        quarantine.trip(key(1), now).unwrap().entry.generation,
        Generation(100)
    );
    quarantine.restore(
        key(3),
        Entry {
            generation: Generation(5),
            ..entry
        },
        now,
    );
    assert_eq!(
        quarantine.trip(key(1), now).unwrap().entry.generation,
        Generation(101)
    );
}

/// [QUA-9] [INV-7] at cap + 1 the least recently used entry goes and is named; a look is a use.
#[test]
fn cap_and_cap_plus_one() {
    let (mut quarantine, now) = quarantine();
    for n in 1..=3 {
        assert_eq!(quarantine.trip(key(n), now).unwrap().evicted, None);
    }
    quarantine.status(&key(1), now);
    assert_eq!(quarantine.trip(key(4), now).unwrap().evicted, Some(key(2)));
    assert_eq!(quarantine.len(), 3);
    assert_eq!(quarantine.status(&key(2), now), Status::Clear);
    let entry = quarantine.trip(key(1), now).unwrap().entry;
    assert_eq!(quarantine.restore(key(5), entry, now), Some(key(3)));
    assert_eq!(quarantine.len(), 3);
}

/// [QUA-9] [INV-11] what an earlier process persisted holds on: the window, the level, and a probe's place is free.
#[test]
fn entries_are_restored() {
    let (mut before, now) = quarantine();
    let open = before.trip(key(1), now).unwrap().entry;
    let mut after = Quarantine::new(windows(), 0);
    assert_eq!(after.restore(key(1), open, now), None);
    assert_eq!(after.status(&key(1), now + 59 * S), Status::Open(now + 60 * S));
    let probing = Entry {
        state: EntryState::Probing,
        ..open
    };
    after.restore(key(2), probing, now + 60 * S);
    assert_eq!(after.status(&key(2), now + 60 * S), Status::Due);
    assert_eq!(after.trip(key(2), now + 61 * S).unwrap().window, 120 * S);
    assert_eq!(
        before.status(&key(1), now + 60 * S),
        Status::Due,
        "no stage lasts for ever"
    );
}

/// [ADM-13] since when a key is in quarantine is told from its first silence on, until it was out of it; and where.
#[test]
fn since_when_and_where() {
    let (mut quarantine, now) = quarantine();
    let held = |quarantine: &Quarantine, at| {
        let held = quarantine.held(at).next().unwrap().entry;
        (held.since, held.account)
    };
    quarantine.trip(key(1), now);
    quarantine.tripped_at(&key(1), AccountId(3));
    quarantine.trip(key(1), now + 70 * S);
    assert_eq!(held(&quarantine, now + 70 * S), (Some(now), Some(AccountId(3))));
    let later = now + 70 * S + 120 * S;
    let probe = quarantine.probe(&key(1), later).unwrap();
    quarantine.cleared(probe, later);
    quarantine.trip(key(1), later + S);
    assert_eq!(held(&quarantine, later + S).0, Some(later + S));
    quarantine.tripped_at(&key(2), AccountId(3));
    assert_eq!(quarantine.len(), 1);
}

/// [REL-13] other windows count from the next trip on, an open one runs to its end, and its doubling goes on.
#[test]
fn other_windows() {
    let (mut quarantine, now) = quarantine();
    let until = trip(&mut quarantine, now);
    let shorter = Windows {
        window: 10 * S,
        ..windows()
    };
    assert_eq!(quarantine.set_windows(shorter), []);
    assert_eq!(quarantine.status(&key(1), until - S), Status::Open(until));
    assert_eq!(quarantine.status(&key(1), until), Status::Due);
    assert_eq!(quarantine.trip(key(1), until).unwrap().window, 20 * S);
    assert_eq!(quarantine.trip(key(2), until).unwrap().window, 10 * S);
}

/// [REL-13] [INV-7] with fewer places the least recently used keys leave; with quarantine disabled all do, and a probe that
/// is on its way changes nothing.
#[test]
fn fewer_places() {
    let (mut quarantine, now) = quarantine();
    for n in 1..=3 {
        quarantine.trip(key(n), now);
    }
    quarantine.status(&key(1), now);
    let fewer = Windows {
        max_keys: 1,
        ..windows()
    };
    assert_eq!(quarantine.set_windows(fewer), [key(2), key(3)]);
    assert_eq!(quarantine.len(), 1);
    let probe = quarantine.probe(&key(1), now + 60 * S).unwrap();
    let off = Windows {
        window: Duration::ZERO,
        ..windows()
    };
    assert_eq!(quarantine.set_windows(off), [key(1)]);
    assert!(quarantine.is_empty());
    assert_eq!(quarantine.cleared(probe, now + 61 * S), None);
    assert!(!quarantine.freed(probe, now + 61 * S));
    assert_eq!(quarantine.trip(key(1), now), None);
    assert_eq!(
        quarantine.generation(),
        Generation(3),
        "what was counted stays counted"
    );
}

/// [ADM-14] a key that an operator holds goes by HTTP for the operator's window, where quarantine is disabled too; cleared, it
/// is as if it had never been, and a probe that was on its way then changes nothing.
#[test]
fn an_operator_holds_and_clears() {
    let off = Windows {
        window: Duration::ZERO,
        ..windows()
    };
    let (mut quarantine, now) = (Quarantine::new(off, 7), Instant::now());
    let held = quarantine.hold(key(1), 30 * S, now);
    assert_eq!((held.entry.generation, held.entry.level), (Generation(8), 1));
    assert_eq!(quarantine.status(&key(1), now), Status::Open(now + 30 * S));
    assert_eq!(quarantine.status(&key(2), now), Status::Clear);
    let seen: Vec<_> = quarantine.held(now + 10 * S).collect();
    assert_eq!((seen.len(), seen[0].key, seen[0].left), (1, key(1), 20 * S));
    let probe = quarantine.probe(&key(1), now + 30 * S).unwrap();
    assert_eq!(quarantine.forget(&key(1)), Some(Generation(9)));
    assert_eq!(quarantine.cleared(probe, now + 31 * S), None);
    assert!(!quarantine.freed(probe, now + 31 * S));
    assert_eq!(quarantine.status(&key(1), now + 31 * S), Status::Clear);
    assert_eq!((quarantine.forget(&key(1)), quarantine.len()), (None, 0));
}

/// [ADM-14] clearing forgets the level: the next silence is a first one. A held key that goes silent keeps its level, and one
/// more than fits makes room.
#[test]
fn levels_and_room() {
    let (mut quarantine, now) = quarantine();
    let over = trip(&mut quarantine, now);
    assert_eq!(quarantine.trip(key(1), over).unwrap().entry.level, 2);
    quarantine.forget(&key(1));
    assert_eq!(quarantine.trip(key(1), over).unwrap().entry.level, 1);
    assert_eq!(quarantine.hold(key(1), 5 * S, over).entry.level, 1);
    assert_eq!(quarantine.trip(key(1), over + S).unwrap().entry.level, 1);
    for n in 2..4 {
        assert_eq!(quarantine.hold(key(n), S, over).evicted, None);
    }
    assert_eq!(quarantine.hold(key(4), S, over).evicted, Some(key(1)));
}

/// [ADM-13] what an operator sees: open, probing, and cleared for as long as the level counts.
#[test]
fn what_is_seen() {
    let (mut quarantine, now) = quarantine();
    let over = trip(&mut quarantine, now);
    let seen = |quarantine: &Quarantine, at| {
        let mut held = quarantine.held(at);
        held.next().map(|held| (held.entry.state, held.left))
    };
    assert_eq!(
        seen(&quarantine, now + 20 * S),
        Some((EntryState::Open { until: over }, 40 * S))
    );
    let probe = quarantine.probe(&key(1), over).unwrap();
    assert_eq!(
        seen(&quarantine, over),
        Some((EntryState::Probing, Duration::ZERO))
    );
    let entry = quarantine.cleared(probe, over).unwrap();
    assert_eq!(
        seen(&quarantine, over + S),
        Some((EntryState::Cleared, Duration::ZERO))
    );
    assert_eq!(seen(&quarantine, entry.level_until), None);
}
