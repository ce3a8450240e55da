//! The screen.

use serde_json::json;

use super::*;

fn check(name: &str, state: &str, value: &str) -> Value {
    json!({ "name": name, "state": state, "value": value, "since_ms": 65_000, "age_ms": 400 })
}

fn well() -> Value {
    json!({
        "version": "0.1.0",
        "uptime_ms": 11_520_000,
        "overview": {
            "turns": 3, "waiting": 1, "sessions_idle": 9, "sessions_busy": 2, "sessions_opening": 0,
            "max_sessions": 512, "max_per_key": 4, "max_queue": 8, "quarantined_keys": 0, "sick_transports": 0, "draining": false, "shutting_down": false,
        },
        "health": { "state": "ok", "live": true, "ready": true, "checks": [
            check("runtime", "ok", "looked 0 ms late"),
            check("accounts", "ok", "2 of 2 usable"),
            check("store", "ok", "writes; 0 changes waiting"),
            check("config", "ok", "as in the file"),
        ] },
        "accounts": [
            { "provider": "openai", "account": "main", "in_flight": 2, "sessions": 11, "excluded": null, "credential": "ok",
              "credential_ok": true },
        ],
        "breakers": [{ "provider": "openai", "account": "main", "state": "closed", "silent_keys": 0, "failed_handshakes": 0 }],
        "quarantine": [],
    })
}

/// [ADM-31] a bridge that is well.
#[test]
fn all_is_well() {
    let wanted = "\
responses-bridge 0.1.0 at http://127.0.0.1:8787, up 3h 12m
  health      ok
  turns       3 running, 1 of them waiting (8 at most for each conversation)
  sessions    11 of 512: 9 idle, 2 busy, 0 opening (4 at most for each conversation)
  accounts    openai/main              usable, 2 turns, 11 sessions
  breakers    all closed
  quarantine  no key
  runtime     looked 0 ms late
  store       writes; 0 changes waiting
  config      as in the file
";
    assert_eq!(screen("http://127.0.0.1:8787/", &well(), false), wanted);
    assert_eq!(trouble(&well()), None);
}

/// [ADM-31] one that is not: what is wrong stands first, and with it what is left of it.
#[test]
fn something_is_wrong() {
    let mut status = well();
    status["overview"]["quarantined_keys"] = 1.into();
    status["overview"]["draining"] = true.into();
    status["overview"]["sick_transports"] = 1.into();
    status["health"]["checks"][2] = check(
        "store",
        "fail",
        "full for 65 s; 4 changes waiting, 0 lost; free some space on that disk; writing resumes by itself",
    );
    status["accounts"][0]["excluded"] = json!({ "reason": "rate_limit", "left_ms": 24_000 });
    status["breakers"][0]["state"] = "open".into();
    status["breakers"][0]["left_ms"] = 12_000.into();
    status["quarantine"] = json!([{
        "key": "3f0c9a51be27", "key_kind": "thread", "account": "openai/main", "state": "open", "left_ms": 42_000, "level": 2,
        "since_ms": 78_000, "level_left_ms": 642_000, "generation": 7,
    }]);
    let shown = screen("http://h", &status, false);
    for line in [
        "  health      draining, store fail, 1 key in quarantine, 1 sick transport\n",
        "  accounts    openai/main              excluded: rate_limit, 24s left, 2 turns, 11 sessions\n",
        "  breakers    openai/main              open, 12s left\n",
        "  quarantine  3f0c9a51be27  openai/main       open     for 78s      42s left         level 2  thread\n",
        "  store       fail for 65s: full for 65 s; 4 changes waiting, 0 lost; free some space on that disk;\n              writing resumes by itself\n",
    ] {
        assert!(shown.contains(line), "{line}in\n{shown}");
    }
    let listed = keys(list(&status, "quarantine"));
    assert_eq!(
        listed,
        "key           account           state    held         left             level    kind\n\
         3f0c9a51be27  openai/main       open     for 78s      42s left         level 2  thread\n"
    );
    let coloured = screen("http://h", &status, true);
    assert!(coloured.contains("\x1b[1;31mdraining"), "{coloured}");
}

/// [ADM-31] [ROUTE-13] an account that nothing leaves out, and that serves nothing.
#[test]
fn of_no_use() {
    let shown = |credential: &str, failed: u64| {
        let mut status = well();
        let account = &mut status["accounts"][0];
        account["credential"] = credential.into();
        account["credential_ok"] = (credential == "ok").into();
        account["failed_connects"] = failed.into();
        let screen = screen("http://h", &status, false);
        let row = screen.lines().find(|line| line.contains("openai/main"));
        row.unwrap()
            .replace("  accounts    openai/main              ", "")
    };
    let well = "2 turns, 11 sessions";
    assert_eq!(shown("rejected", 0), format!("credential: rejected, {well}"));
    assert_eq!(shown("ok", 1), format!("the last connect failed, {well}"));
    assert_eq!(shown("ok", 3), format!("the last 3 connects failed, {well}"));
}

/// [ADM-37] what is held against a transport that is not sick yet is told in words.
#[test]
fn on_the_way_to_sick() {
    let shown = |state: &str, failed: u64, silent: u64| {
        let mut status = well();
        status["breakers"][0] = json!({ "provider": "openai", "account": "main", "state": state, "failed_handshakes": failed,
            "silent_keys": silent });
        let screen = screen("http://h", &status, false);
        let row = screen.lines().find(|line| line.contains("  breakers "));
        row.unwrap()["  breakers    ".len()..].to_owned()
    };
    let main = "openai/main             ";
    assert_eq!(shown("closed", 0, 0), "all closed");
    for (failed, silent, what) in [
        (2, 0, "2 of 3 failed handshakes that would make it sick"),
        (0, 1, "1 of 3 silent conversations that would make it sick"),
        (2, 2, "2 of 3 failed handshakes, 2 of 3 silent conversations"),
    ] {
        assert_eq!(shown("closed", failed, silent), format!("{main} {what}"));
    }
    assert_eq!(shown("open", 2, 1), format!("{main} open"));
}

/// [ADM-31] whatever the bridge says: a hundred columns, few rows, and nothing that moves the cursor.
#[test]
fn a_hundred_columns() {
    let mut status = well();
    let long = format!("\x1b[2J{}\r\n", "ä".repeat(500));
    let account =
        json!({ "provider": long, "account": long, "excluded": { "reason": long, "left_ms": u64::MAX } });
    status["accounts"] = vec![account; 50].into();
    status["version"] = long.clone().into();
    status["quarantine"] = vec![json!({ "key": long, "state": long, "account": long }); 50].into();
    status["health"]["checks"] = vec![check(&long, &long, &long); 3].into();
    let shown = screen(&format!("http://{}", "h".repeat(200)), &status, false);
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    assert!(
        shown.lines().count() < 50 && !shown.contains('\x1b') && !shown.contains('\r'),
        "{shown}"
    );
    assert!(shown.contains("and 40 more"));
    for odd in [json!(null), json!([]), json!({ "health": 1, "accounts": {} })] {
        assert!(screen("http://h", &odd, false).lines().count() > 3);
    }
}
