//! Two bridges to draw in tests: one where much is amiss, and one where nothing happens.

use std::time::Duration;

use super::view::*;
use crate::runtime::operate::{Excluded, OfTransport, Until};

/// An incident under way, on a bridge that drains.
pub(super) fn busy() -> Overview {
    let session = |number: u64, state| SessionView {
        session: 30_131_743_369_461_000 + number,
        account: "openai/main".into(),
        key: Some("05420f42f987".into()),
        key_kind: Some("thread"),
        state,
        age_ms: 754_000,
        idle_ms: (state == "idle").then_some(42_000),
        turns: 12,
        quarantined: number == 2,
    };
    let quarantined = |state, left_ms| QuarantineView {
        key: "05420f42f987".into(),
        key_kind: Some("thread"),
        account: Some("openai/main".into()),
        since_ms: Some(78_000),
        state,
        left_ms,
        level: 2,
        level_left_ms: 600_000,
        generation: 3,
    };
    let event = |number, level: &str, event: &str| Happened {
        number,
        at: "2026-11-29T22:38:12.673Z".into(),
        level: level.into(),
        event: event.into(),
        account: Some("openai/main".into()),
        fields: [
            ("model", "gpt-5"),
            ("key", "05420f42f987"),
            ("key_kind", "thread"),
            ("shape", "eventless"),
            ("session", "30131743369461764"),
            ("request_id", "01a22975-72b9-7569-98ef-68bb81795c7e"),
            ("waited_ms", "60001"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec(),
    };
    Overview {
        version: "0.1.0",
        uptime: Duration::from_secs(273_600),
        figures: Figures {
            turns: 3,
            waiting: 1,
            sessions_idle: 1,
            sessions_busy: 2,
            sessions_opening: 1,
            max_sessions: 512,
            max_per_key: 4,
            max_queue: 8,
            quarantined_keys: 3,
            sick_transports: 1,
            accounts: 2,
            unavailable_accounts: 1,
            owners: 800,
            held_bytes: 1_000_000,
            draining: true,
            shutting_down: false,
        },
        store: Store {
            trouble: Some(Trouble {
                reason: "no_space".into(),
                way_out: "make room where the state lies".into(),
            }),
            lost: 2,
            journal: Journal::On { lost: 14 },
        },
        turns: vec![TurnView {
            request_id: "01a22975-72b9-7569-98ef-68bb81795c7e".into(),
            client: None,
            model: "gpt-5.2-codex-max".into(),
            account: "openai/main".into(),
            key: "05420f42f987".into(),
            key_kind: Some("thread"),
            stream: true,
            phase: "sent",
            transport: Some("websocket"),
            session: Some(7),
            attempt: 1,
            age_ms: 31_000,
            phase_ms: 30_000,
        }],
        sessions: vec![session(1, "busy"), session(2, "idle")],
        quarantine: vec![
            quarantined("open", 48_000),
            quarantined("due", 0),
            quarantined("probing", 0),
        ],
        accounts: vec![account("main", true), account("spare", false)],
        latency: LatencyView {
            bounds_s: BOUNDS.to_vec(),
            websocket: OfTransport::of(&[0, 0, 0, 2, 8, 31, 120, 640, 410, 90, 22, 8, 3, 1, 0, 0, 0]),
            http: OfTransport::of(&[0; 17]),
            deadline_ms: 60_000,
        },
        silent: 4,
        events: vec![
            event(9, "warn", "response_created_timeout"),
            event(8, "info", "turn_finished"),
        ],
    }
}

const BOUNDS: [f64; 16] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0,
];

fn account(name: &'static str, sick: bool) -> Account {
    Account {
        account: AccountView {
            provider: "openai",
            account: name,
            weight: 1,
            in_flight: 2,
            sessions: 3,
            excluded: sick.then_some(Excluded {
                reason: "rate_limit",
                left_ms: 65_000,
            }),
            credential: "ok",
            credential_ok: true,
            failed_connects: 0,
        },
        breaker: BreakerView {
            provider: "openai",
            account: name,
            state: if sick { "open" } else { "closed" },
            left_ms: sick.then_some(28_000),
            silent_keys: 3,
            failed_handshakes: 0,
            unsupported_left_ms: None,
            socket_ceiling: sick.then_some(Until {
                value: 12,
                left_ms: 480_000,
            }),
            refused_frame: None,
            handshakes: 0,
            sockets: 3,
        },
    }
}

/// A bridge that has just started.
pub(super) fn quiet() -> Overview {
    let mut overview = busy();
    let Figures { accounts, .. } = overview.figures;
    overview.figures = Figures {
        turns: 0,
        waiting: 0,
        sessions_idle: 0,
        sessions_busy: 0,
        sessions_opening: 0,
        max_sessions: 512,
        max_per_key: 4,
        max_queue: 8,
        quarantined_keys: 0,
        sick_transports: 0,
        accounts,
        unavailable_accounts: 0,
        owners: 0,
        held_bytes: 0,
        draining: false,
        shutting_down: false,
    };
    overview.store = Store::default();
    overview.turns.clear();
    overview.sessions.clear();
    overview.quarantine.clear();
    overview.latency.websocket = OfTransport::of(&[0; 17]);
    overview.silent = 0;
    overview.events.clear();
    overview
}
