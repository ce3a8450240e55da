use super::*;
use crate::bridge::key::{Hash16, KeyKind};

const S: Duration = Duration::from_secs(1);
const NANO: Duration = Duration::from_nanos(1);
const SICK: Permission = Permission::No(Closed::Sick);

fn key(n: u8) -> AffinityKey {
    AffinityKey {
        kind: KeyKind::Thread,
        hash: Hash16([n; 16]),
    }
}

fn transport() -> (WebSocketTransport, Instant) {
    let policy = Policy {
        span: 60 * S,
        open: 30 * S,
        max_open: 100 * S,
        memory: 600 * S,
        max_handshakes: 8,
    };
    (WebSocketTransport::new(policy), Instant::now())
}

/// May an idle socket be used, and may one be dialled, with none alive?
fn may(transport: &WebSocketTransport, now: Instant) -> (Permission, Permission) {
    (
        transport.permission(now, false, 0),
        transport.permission(now, true, 0),
    )
}

fn handshake(transport: &mut WebSocketTransport, now: Instant, how: Handshake) -> Option<Change> {
    transport.handshake_began();
    transport.handshake_ended(now, how)
}

/// A transport that three keys made sick at the returned time.
fn sick() -> (WebSocketTransport, Instant) {
    let (mut transport, now) = transport();
    assert_eq!(transport.silent(key(1), now), None);
    assert_eq!(transport.silent(key(2), now), None);
    assert_eq!(transport.silent(key(3), now), Some(Change::Opened));
    (transport, now)
}

/// [QUA-10] three keys silent within 60 s make the transport sick; two, or one of them too long ago, do not.
#[test]
fn three_keys_silent() {
    let (sick, now) = sick();
    assert!(sick.is_sick());
    assert_eq!(may(&sick, now), (SICK, SICK));

    let (mut transport, now) = transport();
    assert_eq!(may(&transport, now), (Permission::Yes, Permission::Yes));
    assert!(!transport.is_sick());
    transport.silent(key(1), now);
    transport.silent(key(2), now + S);
    assert_eq!(
        transport.silent(key(3), now + 60 * S),
        None,
        "the first is 60 s ago"
    );
    assert!(!transport.is_sick());
    assert_eq!(
        transport.silent(key(4), now + 61 * S - NANO),
        Some(Change::Opened)
    );
}

/// [QUA-10] one key that is silent over and over is a sick key, not a sick transport.
#[test]
fn one_key_silent_often() {
    let (mut transport, now) = transport();
    for n in 0..10 {
        assert_eq!(transport.silent(key(1), now + n * S), None);
    }
    assert_eq!(transport.silent(key(2), now + 10 * S), None);
    assert_eq!(transport.silent(key(3), now + 11 * S), Some(Change::Opened));
}

/// [QUA-10] [QUA-11] silent keys and failed handshakes are counted apart.
#[test]
fn strikes_of_two_kinds_do_not_add_up() {
    let (mut transport, now) = transport();
    transport.silent(key(1), now);
    transport.silent(key(2), now);
    assert_eq!(handshake(&mut transport, now, Handshake::Failed), None);
    assert_eq!(handshake(&mut transport, now, Handshake::Failed), None);
    assert!(!transport.is_sick());
    assert_eq!(
        handshake(&mut transport, now, Handshake::Failed),
        Some(Change::Opened)
    );
}

/// [QUA-11] three handshakes failed, or answered with a status that is not about the credential or a limit, within 60 s: a
/// middlebox answers 403 or 400 as soon as 503.
#[test]
fn three_handshakes_failed() {
    for status in [200, 302, 400, 403, 407, 499, 500, 503] {
        let (mut transport, now) = transport();
        let refused = Handshake::Refused { status, sockets: 0 };
        assert_eq!(handshake(&mut transport, now, refused), None);
        assert_eq!(handshake(&mut transport, now + S, Handshake::Failed), None);
        assert_eq!(
            handshake(&mut transport, now + 60 * S, refused),
            None,
            "the first is 60 s ago"
        );
        assert_eq!(
            handshake(&mut transport, now + 61 * S - NANO, refused),
            Some(Change::Opened)
        );
        assert_eq!(may(&transport, now + 61 * S), (SICK, SICK));
    }
}

/// [QUA-11] [QUA-14] an answer about the credential or a limit, a ceiling, a success and a handshake that the client gave up are
/// no strikes.
#[test]
fn what_is_no_strike() {
    let (mut transport, now) = transport();
    for _ in 0..5 {
        for (status, sockets) in [(401, 0), (401, 2), (429, 0), (429, 2), (403, 2)] {
            let refused = Handshake::Refused { status, sockets };
            assert_eq!(handshake(&mut transport, now, refused), None);
        }
        assert_eq!(handshake(&mut transport, now, Handshake::Opened), None);
        assert_eq!(handshake(&mut transport, now, Handshake::Abandoned), None);
    }
    assert!(!transport.is_sick());
    assert_eq!(transport.permission(now, true, 0), Permission::Yes);
}

/// [QUA-12] the breaker half-opens by itself, for one probe, and closes when that is accepted (field report 8).
#[test]
fn the_breaker_half_opens_and_closes() {
    let (mut transport, now) = sick();
    assert_eq!(may(&transport, now + 30 * S - NANO), (SICK, SICK));
    assert_eq!(transport.begin_probe(now + 30 * S - NANO), None);
    let due = now + 30 * S;
    assert_eq!(may(&transport, due), (Permission::Probe, Permission::Probe));
    let probe = transport.begin_probe(due).unwrap();
    assert_eq!(transport.begin_probe(due), None);
    assert_eq!(may(&transport, due + 3600 * S), (SICK, SICK), "one probe");
    assert_eq!(transport.probe_succeeded(probe), Some(Change::Closed));
    assert_eq!(transport.probe_succeeded(probe), None);
    assert!(!transport.is_sick());
    assert_eq!(may(&transport, due), (Permission::Yes, Permission::Yes));
    transport.silent(key(8), due);
    assert_eq!(
        transport.silent(key(9), due),
        None,
        "the old strikes are forgotten"
    );
}

/// [QUA-12] each failure of a probe doubles the time, up to the bound, and a success begins anew.
#[test]
fn a_failed_probe_doubles() {
    let (mut transport, mut now) = sick();
    for seconds in [30, 60, 100, 100] {
        assert_eq!(may(&transport, now + seconds * S - NANO).0, SICK);
        now += seconds * S;
        transport.begin_probe(now).unwrap();
        assert_eq!(transport.silent(key(1), now), Some(Change::Opened));
    }
    now += 100 * S;
    transport.begin_probe(now).unwrap();
    assert_eq!(
        handshake(&mut transport, now, Handshake::Failed),
        Some(Change::Opened)
    );
    now += 100 * S;
    let probe = transport.begin_probe(now).unwrap();
    transport.probe_succeeded(probe);
    for n in 1..=3 {
        transport.silent(key(n), now);
    }
    assert_eq!(may(&transport, now + 30 * S).0, Permission::Probe);
}

/// [QUA-12] [QUA-13] a probe whose upgrade is refused by whatever is in between has failed; of the credential, a limit and a
/// ceiling it has found out nothing.
#[test]
fn a_probe_that_is_refused() {
    for status in [400, 403, 404, 405, 426, 501, 503] {
        let (mut transport, now) = sick();
        transport.begin_probe(now + 30 * S).unwrap();
        let refused = Handshake::Refused { status, sockets: 0 };
        let change = handshake(&mut transport, now + 30 * S, refused);
        assert_eq!(change, Some(Change::Opened), "{status}");
        let open_for = transport.standing(now + 30 * S).open_for;
        assert_eq!(open_for, Some(60 * S), "{status}");
    }
    for (status, sockets) in [(401, 0), (429, 0), (429, 1), (403, 1)] {
        let (mut transport, now) = sick();
        let probe = transport.begin_probe(now + 30 * S).unwrap();
        let refused = Handshake::Refused { status, sockets };
        assert_eq!(handshake(&mut transport, now + 30 * S, refused), None);
        transport.probe_freed(probe, now + 30 * S);
        assert_eq!(transport.standing(now + 30 * S).open_for, Some(Duration::ZERO));
    }
}

/// [QUA-12] a probe that proved nothing frees its place at once (field report 7).
#[test]
fn a_probe_is_freed() {
    let (mut transport, now) = sick();
    let due = now + 30 * S;
    let probe = transport.begin_probe(due).unwrap();
    transport.probe_freed(probe, due + S);
    assert_eq!(may(&transport, due + S).0, Permission::Probe);
    transport.begin_probe(due + S).unwrap();
    transport.silent(key(1), due + S);
    assert_eq!(
        may(&transport, due + 61 * S - NANO).0,
        SICK,
        "the doubling level stays"
    );
    assert_eq!(may(&transport, due + 61 * S).0, Permission::Probe);
}

/// [QUA-12] a probe that a newer failure overtook changes nothing (field report 32).
#[test]
fn an_old_probe_changes_nothing() {
    let (mut transport, now) = sick();
    let first = transport.begin_probe(now + 30 * S).unwrap();
    transport.silent(key(4), now + 30 * S);
    let due = now + 90 * S;
    transport.probe_freed(first, now + 31 * S);
    assert_eq!(transport.probe_succeeded(first), None);
    assert_eq!(may(&transport, due - NANO).0, SICK);
    let second = transport.begin_probe(due).unwrap();
    transport.probe_freed(first, due);
    assert_eq!(transport.probe_succeeded(first), None);
    assert_eq!(may(&transport, due).0, SICK);
    assert_eq!(transport.probe_succeeded(second), Some(Change::Closed));
}

/// [QUA-12] strikes while the breaker is open prolong nothing and pile up nowhere.
#[test]
fn strikes_while_open() {
    let (mut transport, now) = sick();
    for n in 10..200 {
        assert_eq!(transport.silent(key(n), now + S), None);
        assert_eq!(handshake(&mut transport, now + S, Handshake::Failed), None);
    }
    assert!(transport.silent.len() <= STRIKES && transport.failed.len() <= STRIKES);
    assert_eq!(may(&transport, now + 30 * S).0, Permission::Probe);
}

/// [QUA-13] 404, 405, 426 and 501 mean no WebSocket for 10 minutes, and then it is tried again.
#[test]
fn no_websocket() {
    for status in [404, 405, 426, 501] {
        let (mut transport, now) = transport();
        let refused = Handshake::Refused { status, sockets: 3 };
        assert_eq!(handshake(&mut transport, now, refused), None);
        let closed = Permission::No(Closed::Unsupported);
        assert_eq!(may(&transport, now + 600 * S - NANO), (closed, closed));
        assert_eq!(may(&transport, now + 600 * S), (Permission::Yes, Permission::Yes));
        assert!(!transport.is_sick());
    }
}

/// [QUA-14] 403 or 429 with sockets alive is a ceiling for further ones for 10 minutes; without any it is none (field report 17).
#[test]
fn a_ceiling() {
    for status in [403, 429] {
        let (mut transport, now) = transport();
        let refused = |sockets| Handshake::Refused { status, sockets };
        handshake(&mut transport, now, refused(0));
        assert_eq!(transport.permission(now, true, 0), Permission::Yes);
        handshake(&mut transport, now, refused(50));
        let closed = Permission::No(Closed::Ceiling);
        let last = now + 600 * S - NANO;
        assert_eq!(transport.permission(last, true, 50), closed);
        assert_eq!(transport.permission(last, true, 51), closed);
        assert_eq!(transport.permission(last, true, 49), Permission::Yes);
        assert_eq!(transport.permission(last, false, 50), Permission::Yes);
        assert_eq!(transport.permission(now + 600 * S, true, 50), Permission::Yes);
    }
}

/// [QUA-15] [INV-7] no ninth handshake begins while eight are in flight; each end, of whatever kind, gives one place back.
#[test]
fn cap_and_cap_plus_one() {
    for how in [
        Handshake::Opened,
        Handshake::Failed,
        Handshake::Abandoned,
        Handshake::Refused {
            status: 401,
            sockets: 0,
        },
    ] {
        let (mut transport, now) = transport();
        for _ in 0..8 {
            assert_eq!(transport.permission(now, true, 0), Permission::Yes);
            transport.handshake_began();
        }
        assert_eq!(
            transport.permission(now, true, 0),
            Permission::No(Closed::Handshakes)
        );
        assert_eq!(transport.permission(now, false, 0), Permission::Yes);
        transport.handshake_ended(now, how);
        assert_eq!(transport.permission(now, true, 0), Permission::Yes);
        transport.handshake_began();
        assert_eq!(
            transport.permission(now, true, 0),
            Permission::No(Closed::Handshakes)
        );
    }
}

/// [QUA-16] a length that was closed with 1009 is too big for 10 minutes, and so is every greater one (field report 19).
#[test]
fn too_big() {
    let (mut transport, now) = transport();
    assert!(!transport.too_big(now, usize::MAX));
    transport.refused_size(now, 1000);
    assert!(transport.too_big(now, 1000));
    assert!(!transport.too_big(now, 999));
    transport.refused_size(now + S, 2000);
    assert!(transport.too_big(now + S, 1000), "the smaller length stays");
    transport.refused_size(now + S, 500);
    assert!(transport.too_big(now + 601 * S - NANO, 500));
    assert!(!transport.too_big(now + 601 * S, 500));
    transport.refused_size(now + 601 * S, 3000);
    assert!(
        !transport.too_big(now + 601 * S, 2999),
        "the old length is forgotten"
    );
}

/// [REL-13] another policy counts from the next failure on; what is open stays so until its time.
#[test]
fn another_policy() {
    let (mut transport, now) = sick();
    transport.set_policy(Policy {
        span: 60 * S,
        open: 5 * S,
        max_open: 6 * S,
        memory: S,
        max_handshakes: 1,
    });
    assert_eq!(may(&transport, now + 30 * S - NANO), (SICK, SICK));
    assert_eq!(may(&transport, now + 30 * S).0, Permission::Probe);
    let now = now + 30 * S;
    assert!(transport.begin_probe(now).is_some());
    assert_eq!(transport.silent(key(1), now), Some(Change::Opened));
    assert_eq!(may(&transport, now + 6 * S - NANO), (SICK, SICK));
    assert_eq!(may(&transport, now + 6 * S).0, Permission::Probe);
}

/// [ADM-17] an operator sees what is held against a transport, and can have it forgotten: breaker, missing WebSocket, ceiling and
/// size; handshakes in flight stay counted, and a probe that was on its way changes nothing any more.
#[test]
fn an_operator_sees_and_resets() {
    let (mut transport, now) = sick();
    let standing = transport.standing(now);
    assert_eq!((standing.breaker, standing.open_for), ("open", Some(30 * S)));
    let probe = transport.begin_probe(now + 30 * S).unwrap();
    assert_eq!(transport.standing(now + 30 * S).breaker, "half_open");
    transport.handshake_began();
    let refused = |status, sockets| Handshake::Refused { status, sockets };
    handshake(&mut transport, now, refused(429, 3));
    handshake(&mut transport, now, refused(404, 0));
    transport.refused_size(now, 1000);
    let standing = transport.standing(now + 100 * S);
    assert_eq!(standing.ceiling, Some((3, 500 * S)));
    assert_eq!(standing.unsupported_for, Some(500 * S));
    assert_eq!(
        (standing.too_big, standing.handshakes),
        (Some((1000, 500 * S)), 1)
    );
    assert_eq!(transport.standing(now + 600 * S).ceiling, None);
    assert_eq!(transport.reset(), Some(Change::Closed));
    assert_eq!(may(&transport, now), (Permission::Yes, Permission::Yes));
    assert_eq!(transport.probe_succeeded(probe), None);
    let standing = transport.standing(now);
    assert_eq!((standing.breaker, standing.handshakes), ("closed", 1));
    assert_eq!(
        (standing.ceiling, standing.too_big, standing.silent),
        (None, None, 0)
    );
    assert_eq!(transport.reset(), None);
}
