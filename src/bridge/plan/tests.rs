use std::time::Duration;

use super::*;

const FREE: Facts = Facts {
    http_only: false,
    websocket_only: false,
    background: false,
    frame_length: 1000,
    max_frame: MAX_FRAME,
    known_too_big: false,
    anchor: Anchor::Free,
    unqueued: false,
};
const YES: Permission = Permission::Yes;
const NO: Permission = Permission::No(Closed::Handshakes);

/// The facts of a turn that names the unstored response of session 7.
const UNSTORED: Facts = Facts {
    anchor: Anchor::Unstored(SessionId(7)),
    ..FREE
};

fn view(idle: &[Candidate], sessions: usize) -> View<'_> {
    View {
        quarantine: Status::Clear,
        reuse: YES,
        dial: YES,
        idle,
        sessions,
        max_per_key: 4,
        room: true,
        anchor_alive: false,
        no_more_waiting: false,
    }
}

fn idle(session: u64, fit: Fit, last_used: Instant) -> Candidate {
    Candidate {
        session: SessionId(session),
        fit,
        last_used,
    }
}

/// [KEY-22] the first turn of a key opens a session.
#[test]
fn a_first_turn_opens() {
    assert_eq!(plan(&FREE, &view(&[], 0)), Plan::Open(Purpose::Turn));
}

/// [KEY-20] what never goes by WebSocket, each for its reason, also where a socket is idle and whatever else holds.
#[test]
fn never_by_websocket() {
    let sockets = [idle(1, Fit::Named, Instant::now())];
    let http_only = Facts {
        http_only: true,
        ..FREE
    };
    let background = Facts {
        background: true,
        ..FREE
    };
    let too_big = Facts {
        frame_length: 15 * 1024 * 1024 + 1,
        ..FREE
    };
    let known = Facts {
        known_too_big: true,
        ..FREE
    };
    let too_big_there = Facts {
        max_frame: 999,
        ..FREE
    };
    for (facts, reason) in [
        (http_only, Direct::Configured),
        (background, Direct::Background),
        (too_big, Direct::TooBig),
        (known, Direct::TooBig),
        (too_big_there, Direct::TooBig),
    ] {
        let mut view = view(&sockets, 1);
        assert_eq!(plan(&facts, &view), Plan::Direct(reason));
        view.quarantine = Status::Due;
        assert_eq!(plan(&facts, &view), Plan::Direct(reason));
    }
    let largest = Facts {
        frame_length: 15 * 1024 * 1024,
        ..FREE
    };
    assert_eq!(plan(&largest, &view(&sockets, 1)), Plan::Reuse(SessionId(1)));
}

/// [KEY-21] the socket is chosen by its memory: named, extended, blank; among equals the least recently used
/// (field report 39).
#[test]
fn the_socket_is_chosen_by_memory() {
    let now = Instant::now();
    let later = now + Duration::from_secs(1);
    let all = [
        idle(1, Fit::Other, now),
        idle(2, Fit::Blank, now),
        idle(3, Fit::Extended { items: 2 }, later),
        idle(4, Fit::Named, later),
    ];
    assert_eq!(plan(&FREE, &view(&all, 4)), Plan::Reuse(SessionId(4)));
    assert_eq!(plan(&FREE, &view(&all[..3], 4)), Plan::Reuse(SessionId(3)));
    assert_eq!(plan(&FREE, &view(&all[..2], 4)), Plan::Reuse(SessionId(2)));
    let equals = [idle(1, Fit::Blank, later), idle(2, Fit::Blank, now)];
    assert_eq!(plan(&FREE, &view(&equals, 2)), Plan::Reuse(SessionId(2)));
    let longest = [
        idle(1, Fit::Extended { items: 2 }, now),
        idle(2, Fit::Extended { items: 5 }, later),
    ];
    assert_eq!(plan(&FREE, &view(&longest, 2)), Plan::Reuse(SessionId(2)));
}

/// [KEY-22] a sibling is opened rather than a memory overwritten; where none may be, the least recently used goes.
#[test]
fn a_sibling_rather_than_an_overwritten_memory() {
    let now = Instant::now();
    let others = [
        idle(1, Fit::Other, now + Duration::from_secs(1)),
        idle(2, Fit::Other, now),
    ];
    let mut view = view(&others, 3);
    assert_eq!(plan(&FREE, &view), Plan::Open(Purpose::Turn));
    view.sessions = 4;
    assert_eq!(plan(&FREE, &view), Plan::Reuse(SessionId(2)));
    view.sessions = 3;
    view.room = false;
    assert_eq!(plan(&FREE, &view), Plan::Reuse(SessionId(2)));
    view.room = true;
    view.dial = NO;
    assert_eq!(plan(&FREE, &view), Plan::Reuse(SessionId(2)));
}

/// [KEY-23] an unstored response is reached through its own socket: idle, it is taken; busy, it is waited for, however
/// many siblings are idle; and when the wait is over, the turn is refused.
#[test]
fn an_unstored_response_waits_for_its_socket() {
    let now = Instant::now();
    let siblings = [idle(1, Fit::Extended { items: 1 }, now), idle(2, Fit::Blank, now)];
    let own = [siblings[0], siblings[1], idle(7, Fit::Other, now)];
    let mut at = View {
        anchor_alive: true,
        ..view(&own, 3)
    };
    assert_eq!(plan(&UNSTORED, &at), Plan::Reuse(SessionId(7)));
    at.idle = &siblings;
    assert_eq!(plan(&UNSTORED, &at), Plan::Wait);
    at.reuse = Permission::No(Closed::Sick);
    assert_eq!(
        plan(&UNSTORED, &at),
        Plan::Wait,
        "a sick transport changes nothing about it"
    );
    at.no_more_waiting = true;
    assert_eq!(plan(&UNSTORED, &at), Plan::Refuse(Kind::SessionBusy));
}

/// [KEY-23] when its socket is gone, the turn is planned like any other, so that upstream's own error reaches the client.
#[test]
fn an_unstored_response_whose_socket_is_gone() {
    let sockets = [idle(1, Fit::Blank, Instant::now())];
    assert_eq!(plan(&UNSTORED, &view(&sockets, 1)), Plan::Reuse(SessionId(1)));
    assert_eq!(plan(&UNSTORED, &view(&[], 0)), Plan::Open(Purpose::Turn));
}

/// [KEY-24] all busy: the turn waits while something of its key can become free, then goes by direct HTTP and says why.
#[test]
fn all_busy() {
    let mut at = view(&[], 4);
    assert_eq!(plan(&FREE, &at), Plan::Wait);
    at.no_more_waiting = true;
    assert_eq!(plan(&FREE, &at), Plan::Direct(Direct::Busy));
    at.dial = Permission::No(Closed::Ceiling);
    assert_eq!(
        plan(&FREE, &at),
        Plan::Direct(Direct::Busy),
        "no socket was wanted"
    );

    at.sessions = 3;
    assert_eq!(plan(&FREE, &at), Plan::Direct(Direct::Ceiling));
    at.dial = NO;
    assert_eq!(plan(&FREE, &at), Plan::Direct(Direct::Handshakes));
    at.dial = YES;
    at.room = false;
    assert_eq!(plan(&FREE, &at), Plan::Direct(Direct::NoRoom));
    at.no_more_waiting = false;
    assert_eq!(plan(&FREE, &at), Plan::Wait);
    at.sessions = 0;
    assert_eq!(
        plan(&FREE, &at),
        Plan::Direct(Direct::NoRoom),
        "nothing of this key will become free"
    );
}

/// [KEY-25] a keyless turn that finds its pool busy goes by direct HTTP at once.
#[test]
fn keyless_turns_do_not_queue() {
    let keyless = Facts {
        unqueued: true,
        ..FREE
    };
    assert_eq!(plan(&keyless, &view(&[], 4)), Plan::Direct(Direct::Busy));
    assert_eq!(plan(&keyless, &view(&[], 3)), Plan::Open(Purpose::Turn));
}

/// [KEY-26] [QUA-2] [QUA-3] a quarantined key goes by direct HTTP, idle sockets or not; when it is due, one turn opens a
/// fresh socket.
#[test]
fn a_quarantined_key() {
    let sockets = [idle(7, Fit::Named, Instant::now())];
    let mut at = View {
        anchor_alive: true,
        ..view(&sockets, 1)
    };
    for status in [Status::Open(Instant::now()), Status::Probing] {
        at.quarantine = status;
        for facts in [FREE, UNSTORED] {
            assert_eq!(plan(&facts, &at), Plan::Direct(Direct::Quarantined));
        }
    }
    at.quarantine = Status::Due;
    assert_eq!(plan(&FREE, &at), Plan::Open(Purpose::ProbeKey));
    assert_eq!(
        plan(&UNSTORED, &at),
        Plan::Direct(Direct::Quarantined),
        "it proves nothing about a fresh socket"
    );
    at.room = false;
    assert_eq!(plan(&FREE, &at), Plan::Direct(Direct::Quarantined));
    at.room = true;
    at.dial = NO;
    assert_eq!(plan(&FREE, &at), Plan::Direct(Direct::Quarantined));
}

/// [KEY-26] a probe keeps to `max_per_key`: where the key has as many, it takes the place of an idle one. The silent session
/// that led to it has left one free, so it never has to wait long.
#[test]
fn a_probe_finds_a_place() {
    let sockets = [idle(1, Fit::Other, Instant::now())];
    let due = |idle| View {
        quarantine: Status::Due,
        ..view(idle, 4)
    };
    assert_eq!(plan(&FREE, &due(&[])), Plan::Direct(Direct::Quarantined));
    assert_eq!(plan(&FREE, &due(&sockets)), Plan::Open(Purpose::ProbeKey));
    let fewer = View {
        sessions: 3,
        ..due(&[])
    };
    assert_eq!(plan(&FREE, &fewer), Plan::Open(Purpose::ProbeKey));
}

/// [KEY-27] a closed transport sends the turn to direct HTTP and names the reason; a turn that may open a fresh socket
/// probes it when that is due.
#[test]
fn a_closed_transport() {
    let sockets = [idle(1, Fit::Named, Instant::now())];
    let mut at = view(&sockets, 1);
    for (closed, reason) in [
        (Closed::Unsupported, Direct::Unsupported),
        (Closed::Sick, Direct::SickTransport),
        (Closed::Ceiling, Direct::Ceiling),
        (Closed::Handshakes, Direct::Handshakes),
    ] {
        at.reuse = Permission::No(closed);
        at.dial = Permission::No(closed);
        assert_eq!(plan(&FREE, &at), Plan::Direct(reason));
    }
    (at.reuse, at.dial) = (Permission::Probe, Permission::Probe);
    assert_eq!(plan(&FREE, &at), Plan::Open(Purpose::ProbeTransport));
    assert_eq!(plan(&UNSTORED, &at), Plan::Direct(Direct::SickTransport));
    at.room = false;
    assert_eq!(plan(&FREE, &at), Plan::Direct(Direct::SickTransport));
    at.room = true;
    at.dial = Permission::No(Closed::Ceiling);
    assert_eq!(plan(&FREE, &at), Plan::Direct(Direct::SickTransport));
}

/// [KEY-27] where only a further socket is not allowed, idle ones are used all the same (field report 17).
#[test]
fn a_ceiling_leaves_idle_sockets_alone() {
    let sockets = [idle(1, Fit::Other, Instant::now())];
    let at = View {
        dial: Permission::No(Closed::Ceiling),
        ..view(&sockets, 1)
    };
    assert_eq!(plan(&FREE, &at), Plan::Reuse(SessionId(1)));
}

/// [KEY-28] where the key and the transport are both due, one turn probes both: otherwise neither would ever half-open
/// where every key is quarantined (field report 8).
#[test]
fn key_and_transport_are_probed_at_once() {
    let at = View {
        quarantine: Status::Due,
        reuse: Permission::Probe,
        dial: Permission::Probe,
        ..view(&[], 0)
    };
    assert_eq!(plan(&FREE, &at), Plan::Open(Purpose::ProbeBoth));
    assert_eq!(plan(&UNSTORED, &at), Plan::Direct(Direct::Quarantined));
}

/// [KEY-29] a provider for WebSocket only ignores quarantine and refuses where others go by direct HTTP.
#[test]
fn websocket_only() {
    let facts = Facts {
        websocket_only: true,
        ..FREE
    };
    let sockets = [idle(1, Fit::Named, Instant::now())];
    for status in [Status::Open(Instant::now()), Status::Due, Status::Probing] {
        let at = View {
            quarantine: status,
            ..view(&sockets, 1)
        };
        assert_eq!(plan(&facts, &at), Plan::Reuse(SessionId(1)));
    }
    let mut at = View {
        no_more_waiting: true,
        ..view(&[], 4)
    };
    assert_eq!(plan(&facts, &at), Plan::Refuse(Kind::NoSocket));
    at.reuse = Permission::No(Closed::Sick);
    assert_eq!(plan(&facts, &at), Plan::Refuse(Kind::NoSocket));
    let background = Facts {
        background: true,
        ..facts
    };
    assert_eq!(plan(&background, &at), Plan::Direct(Direct::Background));
    let too_big = Facts {
        known_too_big: true,
        ..facts
    };
    assert_eq!(plan(&too_big, &at), Plan::Direct(Direct::TooBig));
}

/// [INV-9] every reason has a label of its own.
#[test]
fn labels_are_distinct() {
    let all = Direct::ALL;
    let labels: std::collections::HashSet<_> = all.iter().map(|reason| reason.label()).collect();
    assert_eq!(labels.len(), all.len());
    assert!(labels.iter().all(|label| !label.is_empty()));
}

/// [KEY-30] while as many handshakes are in flight as may be, a turn that needs a new socket waits for one to end, keyless
/// or not; when the wait is over it goes direct. An idle socket is taken at once, whatever it remembers.
#[test]
fn a_burst_waits_for_handshakes() {
    let keyless = Facts {
        unqueued: true,
        ..FREE
    };
    let burst = View {
        dial: NO,
        ..view(&[], 0)
    };
    assert_eq!(plan(&FREE, &burst), Plan::WaitToDial);
    assert_eq!(plan(&keyless, &burst), Plan::WaitToDial);
    let waited = View {
        no_more_waiting: true,
        ..burst.clone()
    };
    assert_eq!(plan(&FREE, &waited), Plan::Direct(Direct::Handshakes));
    let at_most = View {
        sessions: burst.max_per_key,
        ..burst
    };
    assert_eq!(
        plan(&FREE, &at_most),
        Plan::Wait,
        "a session of its own will be free"
    );
    let other = [idle(1, Fit::Other, Instant::now())];
    let used = View {
        dial: NO,
        ..view(&other, 1)
    };
    assert_eq!(plan(&FREE, &used), Plan::Reuse(SessionId(1)));
}
