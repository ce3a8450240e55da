//! Whole histories of the bridge without its I/O: random ones from a seed, and those of the field reports.
// A test file: all of it may panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/simulator/mod.rs"]
mod support;

use std::time::Duration;

use responses_bridge::bridge::plan::Direct;
use responses_bridge::bridge::quarantine::Status;
use responses_bridge::bridge::session::Retired;
use responses_bridge::bridge::watchdog::{Shape, Transport};
use responses_bridge::refusal::Kind;
use support::history::{Event, Told};
use support::rng::Rng;
use support::upstream::{Behaviour, Http, Upgrade};
use support::world::{Names, Spec, World};

const S: u64 = 1_000;

/// [INV-1] [INV-2] [INV-3] [INV-4] [INV-5] [INV-6] [INV-7] [INV-10] [INV-11] [SES-22] [QUA-3] [QUA-8] [QUA-12] [QUA-15]
/// many clients and an upstream with every vice: the invariants hold at every step, every incident reads in order, and
/// when the upstream is well again, so is everything else, by itself.
#[test]
fn random_histories() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    if let Some(seed) = number("BRIDGE_SIM_SEED") {
        return random_history(seed);
    }
    for seed in 0..number("BRIDGE_SIM_HISTORIES").unwrap_or(200) {
        let outcome = std::panic::catch_unwind(|| random_history(seed));
        if let Err(panic) = outcome {
            eprintln!("replay with BRIDGE_SIM_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

fn random_history(seed: u64) {
    let mut choose = Rng::new(seed ^ 0x5eed);
    let mut world = World::new(seed, 1 + choose.below(3) as usize);
    let malice = [0, 5, 30, 90][choose.below(4) as usize];
    world.max_sessions = 1 + choose.below(8) as usize;
    world.max_per_key = 1 + choose.below(3) as usize;
    for upstream in &mut world.upstreams {
        upstream.malice = malice;
        upstream.ceiling = choose.chance(20).then(|| 1 + choose.below(4) as usize);
    }
    let conversations = 1 + choose.below(6);
    for _ in 0..120 {
        let spec = random_spec(&mut choose, &world, conversations);
        match choose.below(20) {
            0 => _ = world.serve(spec),
            1..4 => world.arrive_after(choose.below(10 * S), spec),
            _ => _ = world.call(spec),
        }
        match choose.below(30) {
            0 => world.sleep(choose.chance(50)),
            1 => world.store_takes = [0, 5, 100, 10 * S][choose.below(4) as usize],
            2 => world.run(700 * S),
            3..=10 => world.run(choose.below(70 * S)),
            11..20 => world.run(choose.below(3 * S)),
            _ => {}
        }
    }
    if choose.chance(25) {
        world.drain();
        world.run(choose.below(60 * S));
        world.cut();
        // A handshake in the background has up to its connect deadline.
        world.run(15 * S);
        world.check_rest();
        assert_eq!(world.sessions(), 0, "sockets are left after the drain");
        return;
    }
    world.run(7_300 * S);
    world.check_rest();
    recovers(&mut world, conversations);
}

fn random_spec(choose: &mut Rng, world: &World, conversations: u64) -> Spec {
    let known: Vec<_> = world
        .histories()
        .filter_map(|history| world.response_of(history.number))
        .collect();
    let anchor = match choose.below(10) {
        0..4 => Names::Last,
        4 if !known.is_empty() => {
            Names::Response(known[choose.below(known.len() as u64) as usize].to_owned())
        }
        5 => Names::Response("resp_unknown".into()),
        _ => Names::Nothing,
    };
    Spec {
        tenant: choose.below(2) as u8,
        conversation: choose.below(conversations) as u8,
        keyless: choose.chance(10),
        json: choose.chance(25),
        unstored: choose.chance(40),
        anchor,
        extends: choose.chance(70),
        leaves: choose.chance(15).then(|| choose.below(5 * S)),
        stuck: choose.chance(5),
    }
}

/// Field report 8: every circuit half-opens by itself. Field report 7: every exit freed what it held.
fn recovers(world: &mut World, conversations: u64) {
    for upstream in &mut world.upstreams {
        (upstream.malice, upstream.ceiling) = (0, None);
    }
    world.run(700 * S);
    for round in 0..12 {
        for spec in everybody(conversations) {
            let call = world.serve(spec);
            let history = world.history(call);
            assert_eq!(history.outcome(), "completed", "{history:?}");
            if round == 11 {
                assert_eq!(history.sent[0].transport, Transport::WebSocket, "{history:?}");
            }
        }
        world.run(60 * S);
    }
    assert!(world.transports.iter().all(|transport| !transport.is_sick()));
    assert_eq!(world.quarantine.open(), 0);
    world.run(1_000 * S);
    world.check_rest();
    assert_eq!(world.sessions(), 0, "idle sockets are retired in time");
}

/// One call of every key that there may be.
fn everybody(conversations: u64) -> impl Iterator<Item = Spec> {
    let each = move |tenant| {
        (0..conversations as u8).flat_map(move |conversation| {
            [false, true].map(|keyless| Spec {
                tenant,
                conversation,
                keyless,
                ..Spec::default()
            })
        })
    };
    (0..2).flat_map(each)
}

fn world() -> World {
    World::new(7, 1)
}

fn spec() -> Spec {
    Spec::default()
}

fn scripted(behaviours: &[Behaviour]) -> World {
    let mut world = world();
    world.upstreams[0].script.extend(behaviours);
    world
}

const HEALTHY: [&str; 6] = [
    "response.created",
    "codex.rate_limits",
    "response.in_progress",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.completed",
];

/// [INV-4] [QUA-2] [QUA-3] [QUA-4] one incident reads as it must, from the silent session to the cleared quarantine.
#[test]
fn one_incident() {
    let mut world = scripted(&[Behaviour::Silent(61_000)]);
    let silent = world.serve(spec());
    assert_eq!(
        world.history(silent).told.last(),
        Some(&Told::Fail("bridge_response_created_timeout".into()))
    );
    assert_eq!(world.history(silent).sent.len(), 1);
    let meanwhile = world.serve(spec());
    assert_eq!(world.history(meanwhile).direct, Some(Direct::Quarantined));
    assert_eq!(world.history(meanwhile).outcome(), "completed");
    let other = world.serve(Spec {
        conversation: 1,
        ..spec()
    });
    assert_eq!(world.history(other).direct, None, "another key is not touched");
    world.run(60 * S);
    assert_eq!(world.status(&spec()), Status::Due);
    let probe = world.serve(spec());
    assert!(world.history(probe).probe);
    assert_eq!(world.history(probe).events(), HEALTHY);
    let after = world.serve(spec());
    assert!(world.history(after).direct.is_none() && !world.history(after).probe);
    assert_eq!(
        world.events_of(&spec()),
        [
            Event::CreatedTimeout,
            Event::SessionRetired(Retired::Silent(Shape::Eventless)),
            Event::QuarantineOpened {
                window: Duration::from_secs(60)
            },
            Event::HttpFallback,
            Event::Probe,
            Event::Cleared
        ]
    );
    world.check_rest();
}

/// [SES-3] telemetry once a second, or 54 deltas: retired at the deadline all the same (field reports 2 and 3).
#[test]
fn noise_is_no_acceptance() {
    for noise in [Behaviour::Telemetry, Behaviour::Deltas] {
        let mut world = scripted(&[noise]);
        let call = world.serve(spec());
        assert_eq!(world.history(call).outcome(), "response_created_timeout");
        assert_eq!(world.history(call).events(), [""; 0]);
        assert!(world.history(call).took() < Duration::from_millis(60_200));
        let retired = Event::SessionRetired(Retired::Silent(Shape::EventsWithoutCreated));
        assert!(world.events_of(&spec()).contains(&retired));
    }
}

/// [SES-3] one slow start poisons nothing; one that comes too late does, and its late answer reaches nobody
/// (field report 4).
#[test]
fn a_slow_start() {
    let mut world = scripted(&[
        Behaviour::Slow(59_900),
        Behaviour::Healthy,
        Behaviour::Slow(60_500),
    ]);
    let slow = world.serve(spec());
    assert_eq!(world.history(slow).outcome(), "completed");
    let next = world.serve(spec());
    assert_eq!(world.history(next).sent[0].transport, Transport::WebSocket);
    assert_eq!(world.sessions(), 1, "the same socket");
    assert_eq!(world.status(&spec()), Status::Clear);
    let late = world.serve(spec());
    assert_eq!(world.history(late).outcome(), "response_created_timeout");
    let next = world.serve(spec());
    assert_eq!(world.history(next).events(), HEALTHY.map(|name| name).to_vec());
    world.run(10 * S);
    world.check_rest();
}

/// [QUA-2] [QUA-6] silent, silent, healthy: the request after a silent one takes another path, and a silent probe
/// doubles the window (field report 5).
#[test]
fn every_retry_takes_another_path() {
    let mut world = scripted(&[Behaviour::Silent(90_000), Behaviour::Silent(90_000)]);
    world.serve(spec());
    let retry = world.serve(spec());
    assert_eq!(world.history(retry).outcome(), "completed");
    world.run(60 * S);
    let probe = world.serve(spec());
    assert_eq!(world.history(probe).outcome(), "response_created_timeout");
    let retry = world.serve(spec());
    assert_eq!(world.history(retry).outcome(), "completed");
    let windows: Vec<_> = world
        .events_of(&spec())
        .into_iter()
        .filter_map(|event| match event {
            Event::QuarantineOpened { window } => Some(window.as_secs()),
            _ => None,
        })
        .collect();
    assert_eq!(windows, [60, 120]);
    world.check_rest();
}

/// [INV-1] a create that is swallowed and the socket closed: one create, a retryable error (field report 6).
#[test]
fn a_swallowed_create_is_not_sent_again() {
    let mut world = scripted(&[Behaviour::Close]);
    let call = world.serve(spec());
    assert_eq!(world.history(call).told, [Told::Refuse(Kind::UpstreamClosed)]);
    assert_eq!(world.history(call).sent.len(), 1);
}

/// [INV-1] [SES-26] only a definite rejection is sent again: the connection's age limit, over HTTP in the same call.
#[test]
fn a_connection_limit_is_sent_again() {
    let mut world = scripted(&[Behaviour::ConnectionLimit]);
    let call = world.serve(spec());
    let history = world.history(call);
    assert_eq!(history.outcome(), "completed");
    let sent: Vec<_> = history
        .sent
        .iter()
        .map(|sent| (sent.transport, sent.rejected))
        .collect();
    assert_eq!(sent, [(Transport::WebSocket, true), (Transport::Http, false)]);
    assert_eq!(world.sessions(), 0);
}

/// [SES-26] [KEY-24] every exit frees the socket and the place: the next request is served at once (field reports 7
/// and 8).
#[test]
fn every_exit_frees_its_place() {
    let exits = [
        Behaviour::CloseInMidStream,
        Behaviour::ErrorAfterCreated,
        Behaviour::Close,
        Behaviour::CloseTooBig,
        Behaviour::Rejected,
        Behaviour::ServerError,
        Behaviour::Failed,
        Behaviour::Incomplete,
        Behaviour::TerminalAndClose,
        Behaviour::ConnectionLimit,
    ];
    for exit in exits {
        let mut world = scripted(&[exit]);
        (world.max_sessions, world.max_per_key) = (1, 1);
        world.serve(spec());
        let next = world.serve(spec());
        assert_eq!(world.history(next).outcome(), "completed", "{exit:?}");
        assert_eq!(world.history(next).direct, None, "{exit:?}");
        world.check_rest();
    }
}

/// [SES-25] a model that is silent for 8.5 minutes comes back, as long as its socket answers pings; the client hears a
/// rare keepalive (field report 13).
#[test]
fn a_thinking_model() {
    let mut world = scripted(&[Behaviour::Thinks(510_000)]);
    let call = world.serve(spec());
    let history = world.history(call);
    assert_eq!(history.outcome(), "completed");
    assert_eq!(
        history
            .told
            .iter()
            .filter(|told| **told == Told::Keepalive)
            .count(),
        4
    );
    assert!(history.told.iter().filter(|told| **told == Told::Comment).count() >= 50);
}

/// [SES-23] [INV-10] a socket that the network dropped in silence, or that slept, is found out before reuse: the next
/// turn loses a second, not a minute (field reports 14 and 40).
#[test]
fn a_stale_socket() {
    for slept in [false, true] {
        let mut world = world();
        world.serve(spec());
        match slept {
            true => world.sleep(true),
            false => {
                world.upstreams[0].cut_all();
                world.run(40 * S);
            }
        }
        let call = world.serve(spec());
        assert_eq!(world.history(call).outcome(), "completed");
        assert_eq!(world.history(call).sent[0].transport, Transport::WebSocket);
        assert!(world.history(call).took() < Duration::from_secs(3));
    }
}

/// [KEY-27] [QUA-14] beyond the upstream's ceiling no socket is dialled again, idle ones are used, and the rest goes over
/// HTTP (field report 17).
#[test]
fn a_socket_ceiling() {
    let mut world = world();
    world.max_sessions = 60;
    world.upstreams[0].ceiling = Some(5);
    for conversation in 0..10 {
        let call = world.serve(Spec {
            conversation,
            ..spec()
        });
        assert_eq!(world.history(call).outcome(), "completed");
        let direct = match conversation {
            0..5 => None,
            5 => Some(Direct::UpgradeRefused),
            _ => Some(Direct::Ceiling),
        };
        assert_eq!(world.history(call).direct, direct);
    }
    let again = world.serve(spec());
    assert_eq!(world.history(again).direct, None);
    assert_eq!(world.sessions(), 5);
}

/// [SES-7] [SES-9] a rejection, also after telemetry, is a real status (field reports 18 and 38).
#[test]
fn a_rejection_is_a_status() {
    let mut world = scripted(&[Behaviour::Rejected]);
    let call = world.serve(spec());
    assert_eq!(world.history(call).told, [Told::Reject(429)]);
    let next = world.serve(spec());
    assert_eq!(world.history(next).outcome(), "completed");
    assert_eq!(world.sessions(), 1, "the socket is kept");
}

/// [INV-1] an upgrade that is refused, fails, or is slow costs nothing but itself: direct HTTP in the same call
/// (field report 20).
#[test]
fn a_failed_upgrade() {
    for (upgrade, reason) in [
        (Upgrade::Answers(404), Direct::UpgradeRefused),
        (Upgrade::Answers(401), Direct::UpgradeRefused),
        (Upgrade::Answers(503), Direct::UpgradeRefused),
        (Upgrade::Fails, Direct::UpgradeRefused),
        (Upgrade::Hangs, Direct::UpgradeSlow),
        (Upgrade::Opens(5_000), Direct::UpgradeSlow),
    ] {
        let mut world = world();
        world.upstreams[0].upgrades.push_back(upgrade);
        let call = world.serve(spec());
        assert_eq!(world.history(call).outcome(), "completed", "{upgrade:?}");
        assert_eq!(world.history(call).direct, Some(reason), "{upgrade:?}");
        assert!(world.history(call).took() < Duration::from_secs(3), "{upgrade:?}");
        if upgrade == Upgrade::Opens(5_000) {
            world.run(5 * S);
            assert_eq!(world.sessions(), 1, "it finished in the background");
        }
    }
}

/// [SES-5] the fallback has deadlines too (field report 21).
#[test]
fn a_silent_fallback() {
    for (http, outcome) in [
        (Http::HeadersOnly, "first_event_timeout"),
        (Http::NoAnswer, "first_byte_timeout"),
        (Http::Truncated, "truncated"),
        (Http::Refused, "connect_failed"),
    ] {
        let mut world = world();
        world.upstreams[0].upgrades.push_back(Upgrade::Answers(503));
        world.upstreams[0].http.push_back(http);
        let call = world.serve(spec());
        assert_eq!(world.history(call).outcome(), outcome);
        assert!(world.history(call).took() <= Duration::from_millis(60_100));
    }
}

/// [SES-26] a terminal of any kind keeps a healthy socket (field report 22).
#[test]
fn incomplete_keeps_the_socket() {
    let mut world = scripted(&[Behaviour::Incomplete]);
    let call = world.serve(spec());
    assert_eq!(world.history(call).outcome(), "incomplete");
    world.serve(spec());
    assert_eq!(world.sessions(), 1);
    assert_eq!(world.events_of(&spec()), []);
}

/// [INV-5] an aborted turn's socket is never used again, and frames after a terminal reach nobody (field report 23).
#[test]
fn no_event_reaches_another_turn() {
    let mut world = scripted(&[Behaviour::Healthy, Behaviour::LateFrames, Behaviour::Healthy]);
    let aborted = world.serve(Spec {
        leaves: Some(250),
        ..spec()
    });
    assert_eq!(world.history(aborted).outcome(), "client_gone");
    for _ in 0..3 {
        let next = world.serve(spec());
        assert_eq!(world.history(next).events(), HEALTHY);
    }
    // The next turn is leased between the terminal and the late frames.
    let mut world = scripted(&[Behaviour::LateFrames]);
    let first = world.call(spec());
    while world.history(first).end.is_none() {
        world.run(1);
    }
    let second = world.serve(spec());
    assert_eq!(world.history(second).events(), HEALTHY);
}

/// [SES-15] a client that leaves, at whatever moment, costs no socket for more than a second (field report 24).
#[test]
fn leaving_at_every_moment() {
    let mut world = world();
    for leaves in 0..600 {
        let call = world.serve(Spec {
            leaves: Some(leaves),
            ..spec()
        });
        if world.history(call).outcome() == "client_gone" {
            world.run(1_100);
            assert!(world.sessions() <= 1);
        }
    }
    world.check_rest();
}

/// [QUA-8] trip, clear, trip; then the first one's completion: the newer quarantine stays (field report 32).
#[test]
fn an_old_completion() {
    let mut world = world();
    let key = world.key(&spec());
    let trip = |world: &mut World| world.quarantine.trip(key, world.instant()).unwrap();
    trip(&mut world);
    world.run(60 * S);
    let old = world.quarantine.probe(&key, world.instant()).unwrap();
    assert!(world.quarantine.cleared(old, world.instant()).is_some());
    trip(&mut world);
    world.run(120 * S);
    let new = world.quarantine.probe(&key, world.instant()).unwrap();
    assert!(world.quarantine.cleared(old, world.instant()).is_none());
    assert!(!world.quarantine.freed(old, world.instant()));
    assert_eq!(world.status(&spec()), Status::Probing);
    assert!(world.quarantine.cleared(new, world.instant()).is_some());
}

/// [SES-30] [SES-14] [INV-11] terminal and close in one read: a completed turn, also with a stalled store, and its
/// terminal does not outrun its owner (field report 37).
#[test]
fn terminal_and_close() {
    for store_takes in [0, 200, 10 * S] {
        let mut world = scripted(&[Behaviour::TerminalAndClose]);
        world.store_takes = store_takes;
        let call = world.serve(spec());
        assert_eq!(world.history(call).outcome(), "completed");
        assert_eq!(world.sessions(), 0);
    }
}

/// [KEY-21] [KEY-22] [KEY-23] two turns of one key at once, then a continuation of the first: the second took another
/// socket, and the first one's memory is still there (field report 39).
#[test]
fn a_title_request_erases_no_memory() {
    let mut world = world();
    let unstored = || Spec {
        unstored: true,
        ..spec()
    };
    let main = world.call(unstored());
    let title = world.call(Spec {
        extends: false,
        ..unstored()
    });
    world.run(5 * S);
    assert_eq!(world.history(title).outcome(), "completed");
    assert_eq!(world.sessions(), 2);
    let anchor = world.response_of(main).unwrap().to_owned();
    let next = world.serve(Spec {
        anchor: Names::Response(anchor),
        ..unstored()
    });
    assert_eq!(world.history(next).events(), HEALTHY);
}

/// [KEY-23] a request that names an unstored response waits for its busy socket rather than take an idle sibling; when
/// that takes too long it is told to come again.
#[test]
fn an_unstored_anchor_waits() {
    for (busy_for, outcome) in [(1_000, "completed"), (10_000, "session_busy")] {
        let mut world = scripted(&[Behaviour::Healthy, Behaviour::Slow(busy_for)]);
        let unstored = || Spec {
            unstored: true,
            ..spec()
        };
        let first = world.serve(unstored());
        let names = || Names::Response(world.response_of(first).unwrap().to_owned());
        let (one, two) = (names(), names());
        world.call(Spec {
            anchor: one,
            ..unstored()
        });
        let second = world.serve(Spec {
            anchor: two,
            ..unstored()
        });
        let history = world.history(second);
        if outcome == "completed" {
            // Its own socket answered, but remembers the later response by then: upstream's own error.
            assert_eq!(history.told, [Told::Reject(400)]);
        } else {
            assert_eq!(history.told, [Told::Refuse(Kind::SessionBusy)]);
        }
        assert_eq!(world.sessions(), 1, "no sibling");
    }
}

/// [KEY-11] [INV-6] another tenant's response is unknown, and an owner's account is never left.
#[test]
fn owners_and_tenants() {
    let mut world = World::new(7, 2);
    let first = world.serve(Spec {
        conversation: 1,
        ..spec()
    });
    let anchor = Names::Response(world.response_of(first).unwrap().to_owned());
    let thief = world.serve(Spec {
        tenant: 1,
        conversation: 1,
        anchor: anchor.clone(),
        ..spec()
    });
    assert_eq!(world.history(thief).told, [Told::Refuse(Kind::UnknownAnchor)]);
    assert!(world.history(thief).sent.is_empty());
    // Named from a conversation whose own account would be the other one.
    let moved = world.serve(Spec {
        conversation: 0,
        anchor,
        ..spec()
    });
    assert_eq!(world.history(moved).sent[0].account, 1);
    assert_eq!(world.history(moved).outcome(), "completed");
}

/// [QUA-10] [QUA-12] [KEY-28] three keys silent: the account goes over HTTP, and although every key that there is is in
/// quarantine, key and transport are probed and all is well again (field report 8).
#[test]
fn a_sick_transport_with_only_sick_keys() {
    let mut world = scripted(&[Behaviour::Silent(90_000); 3]);
    let of = |conversation| Spec {
        conversation,
        ..spec()
    };
    for conversation in 0..3 {
        world.call(of(conversation));
        world.run(200);
    }
    world.run(61 * S);
    assert!(world.transports[0].is_sick());
    let healthy = world.serve(of(5));
    assert_eq!(world.history(healthy).direct, Some(Direct::SickTransport));
    world.run(60 * S);
    let probe = world.serve(of(0));
    assert!(world.history(probe).probe);
    assert_eq!(world.history(probe).sent[0].transport, Transport::WebSocket);
    assert!(!world.transports[0].is_sick());
    assert_eq!(world.status(&of(0)), Status::Clear);
    world.check_rest();
}

/// [QUA-5] a probe whose client leaves, or that is rejected, or cannot connect, frees its place for the next.
#[test]
fn a_probe_frees_its_place() {
    let probes: [fn(&mut World) -> Spec; 4] = [
        |_| Spec {
            leaves: Some(10),
            ..Spec::default()
        },
        |_| Spec {
            leaves: Some(120),
            ..Spec::default()
        },
        |world| {
            world.upstreams[0].script.push_back(Behaviour::Rejected);
            Spec::default()
        },
        |world| {
            world.upstreams[0].upgrades.push_back(Upgrade::Fails);
            Spec::default()
        },
    ];
    for probe in probes {
        let mut world = scripted(&[Behaviour::Silent(90_000)]);
        world.serve(spec());
        world.run(60 * S);
        let spec = probe(&mut world);
        let first = world.serve(spec.clone());
        assert!(world.history(first).probe);
        assert_eq!(world.status(&spec), Status::Due);
        world.upstreams[0].upgrades.clear();
        let second = world.serve(Spec::default());
        assert!(world.history(second).probe);
        assert_eq!(world.status(&spec), Status::Clear);
        world.check_rest();
    }
}

/// [SES-16] a client that takes no byte is cut off, and its socket retired.
#[test]
fn a_stuck_client() {
    let mut world = scripted(&[Behaviour::Thinks(600_000)]);
    let call = world.serve(Spec {
        stuck: true,
        ..spec()
    });
    assert_eq!(world.history(call).told.last(), Some(&Told::Torn));
    assert!(world.history(call).took() < Duration::from_secs(125));
    assert_eq!(world.sessions(), 0);
}

/// [SES-31] a drain refuses what is new, lets what runs finish, cuts what does not, and leaves no socket.
#[test]
fn a_drain() {
    let mut world = scripted(&[Behaviour::Healthy, Behaviour::Hangs]);
    let short = world.call(spec());
    world.run(150);
    let long = world.call(Spec {
        conversation: 1,
        ..spec()
    });
    world.run(150);
    world.drain();
    let new = world.call(Spec {
        conversation: 2,
        ..spec()
    });
    assert_eq!(world.history(new).told, [Told::Refuse(Kind::Draining)]);
    world.run(60 * S);
    assert_eq!(world.history(short).outcome(), "completed");
    assert_eq!(world.history(long).outcome(), "running");
    world.cut();
    assert_eq!(
        world.history(long).told.last(),
        Some(&Told::Fail("bridge_drained".into()))
    );
    world.run(2 * S);
    assert_eq!(world.sessions(), 0);
    world.check_rest();
}
