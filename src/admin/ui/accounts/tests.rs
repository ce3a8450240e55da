//! What the page says of an account and of its transport.

use super::*;

fn account() -> AccountView {
    AccountView {
        provider: "openai",
        account: "main",
        weight: 1,
        in_flight: 0,
        sessions: 0,
        excluded: None,
        credential: "ok",
        credential_ok: true,
        failed_connects: 0,
    }
}

/// [ROUTE-13] An account that nothing leaves out, and that serves nothing, is not told of as well.
#[test]
fn of_no_use() {
    let said = |account: &AccountView| taken(account).into_string();
    assert!(said(&account()).contains("✓ taken"));
    let rejected = AccountView {
        credential: "rejected",
        credential_ok: false,
        ..account()
    };
    assert!(said(&rejected).contains("✕ credential: rejected"));
    let unreached = AccountView {
        failed_connects: 2,
        ..account()
    };
    assert!(said(&unreached).contains("▲ not reached: 2 times"));
}

/// [ADM-37] Nor is a transport against which something is held.
#[test]
fn on_the_way_to_sick() {
    let said = |failed_handshakes, silent_keys| {
        transport(&BreakerView {
            provider: "openai",
            account: "main",
            state: "closed",
            left_ms: None,
            silent_keys,
            failed_handshakes,
            unsupported_left_ms: None,
            socket_ceiling: None,
            refused_frame: None,
            handshakes: 0,
            sockets: 0,
        })
        .into_string()
    };
    assert!(said(0, 0).contains("✓ well"));
    assert!(said(2, 0).contains("▲ 2 of 3 failed handshakes<"));
    assert!(said(1, 2).contains("▲ 1 of 3 failed handshakes, 2 of 3 silent conversations<"));
}
