use proptest::prelude::*;

use super::*;

fn faults(text: &str) -> Vec<String> {
    let faults = read(text, "t").map(|(.., form)| Faults::of(form));
    let faults = faults.unwrap_or_else(Some);
    faults.iter().flat_map(Faults::iter).map(told).collect()
}

fn told(fault: &Fault) -> String {
    format!("{:?}:{:?} {}", fault.line, fault.column, fault.key)
}

/// [CFG-4] Columns are characters, not bytes, and lines are counted through CRLF.
#[test]
fn places_are_what_an_editor_shows() {
    assert_eq!(
        faults("# größer\r\n[session]\r\nmax_age = \"45m\"\r\nfoo = 1"),
        ["Some(4):Some(1) session.foo"]
    );
    assert_eq!(
        faults("session = { idle_ttl = \"1m\", x = \"ä\", y = 1 }").len(),
        2
    );
    assert_eq!(
        faults("state = { path = \"äöü\", y = 1 }"),
        ["Some(1):Some(25) state.y"]
    );
}

/// [CFG-4] Keys that are no bare words are shown as they must be written, on one line.
#[test]
fn odd_keys_are_quoted() {
    assert_eq!(faults("\"a\\nb\" = 1"), ["Some(1):Some(1) \"a\\nb\""]);
}

/// [CFG-6] A fault of a key that is not in the file is shown at the table that it would be in.
#[test]
fn missing_keys_are_shown_at_their_table() {
    let Ok((_, places, _)) = read("[state]\nmax_owners = 1\n[providers.\"a.b\"]\n", "t") else {
        panic!("it is right")
    };
    assert_eq!(places.around("state.path"), Some(Place { line: 1, column: 2 }));
    assert_eq!(
        places.around("providers.\"a.b\".base_url"),
        Some(Place { line: 3, column: 12 })
    );
    assert_eq!(places.around("session.max_age"), None);
}

/// [CFG-6] A text that is no TOML is answered with that alone, each place once.
#[test]
fn syntax_comes_first() {
    assert_eq!(
        faults("foo = 1\n[server]\nlisten = localhost\nheartbeat = 10s\n"),
        ["Some(3):Some(10) ", "Some(4):Some(13) "]
    );
}

proptest! {
    /// [CFG-5] Whatever stands at whatever key: an answer, no panic.
    #[test]
    fn any_value_at_any_key_is_answered(
        key in "(server|session|clients|providers|state)(\\.(listen|max_age|max_sessions|a|admin_token|path)){0,2}",
        value in "(\"[a-z0-9 ]{0,6}\"|-?[1-9][0-9]{0,21}|[0-9]\\.[0-9]|true|\\[\\]|\\[1, \"a\"\\]|\\{\\}|\\{ env = 1 \\}|1979-05-27)",
    ) {
        if let Err(faults) = read(&format!("{key} = {value}"), "t") {
            prop_assert!(faults.iter().all(|fault| !fault.key.is_empty() && fault.line == Some(1)), "{}", faults);
        }
    }

    /// [CFG-6] No text makes the reader panic, and every place is within it.
    #[test]
    fn any_text_is_answered(text in "[\\[\\]a-z=\"'.{}#\n\r äµ0-9]{0,60}") {
        if let Err(faults) = read(&text, "t") {
            for fault in faults.iter() {
                prop_assert!(fault.line.is_some_and(|line| line <= text.matches('\n').count() + 1));
            }
        }
    }
}
