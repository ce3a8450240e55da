//! Files with faults, and what is said about them.
use std::fs;
use std::path::Path;

use responses_bridge::config::Config;

use crate::{environment, fixtures, parse};

/// [CFG-4] [CFG-5] [CFG-6] [CFG-7] [CFG-8] [CFG-9] [CFG-10] [CFG-11] [CFG-12] [CFG-13] [CFG-14] [CFG-15] [CFG-16] [CFG-19] [CFG-20]
/// Each bad file is answered with exactly what `NAME.expected` says. `BLESS=1` rewrites these; read them then.
#[test]
fn each_bad_file_is_answered_with_the_expected_message() {
    let mut differing = Vec::new();
    for (name, path) in fixtures("bad") {
        let text = fs::read_to_string(&path).expect("a fixture is text");
        let Err(faults) = parse(&text, &name) else {
            panic!("{name} was accepted")
        };
        let message = format!("{faults}\n");
        let expected = path.with_extension("expected");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&expected, &message).expect("it can be written");
        }
        let expected = fs::read_to_string(&expected).unwrap_or_default();
        if message != expected {
            differing.push(format!(
                "--- {name}, expected:\n{expected}--- but it is:\n{message}"
            ));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// [CFG-6] Every fault says what to do, and stands in the file.
#[test]
fn each_fault_has_a_place_and_a_way_out() {
    for (name, path) in fixtures("bad") {
        let text = fs::read_to_string(&path).expect("a fixture is text");
        let Err(faults) = parse(&text, &name) else {
            panic!("{name} was accepted")
        };
        for fault in faults.iter() {
            let line = fault.line.and_then(|line| text.lines().nth(line - 1));
            let line = line.unwrap_or_else(|| panic!("{name}: {fault} has no line"));
            assert!(
                fault.column.is_some_and(|column| column <= line.chars().count()),
                "{name}: {fault}"
            );
            assert!(!fault.hint.is_empty() && fault.file == name, "{name}: {fault}");
        }
    }
}

/// [CFG-10] Neither a secret nor what stands where one belongs shows up in a message or in `Debug`.
#[test]
fn no_secret_is_shown() {
    for (name, path) in fixtures("bad").into_iter().chain(fixtures("good")) {
        let text = fs::read_to_string(&path).expect("a fixture is text");
        let shown = match parse(&text, &name) {
            Ok(config) => format!("{config:?}"),
            Err(faults) => format!("{faults}\n{faults:?}"),
        };
        for secret in ["secret-", "do-not-show-me", "hunter2"] {
            let shown = shown.replace(&name, "").replace("secret-in-the-file", "");
            assert!(!shown.contains(secret), "{name} shows {secret}:\n{shown}");
        }
    }
}

/// [CFG-6] A file that is not there says so and what to do.
#[test]
fn a_missing_file_is_a_fault() {
    let faults =
        Config::load(Some(Path::new("/nonexistent/bridge.toml")), &environment).expect_err("it is not there");
    assert!(
        faults
            .to_string()
            .starts_with("/nonexistent/bridge.toml: cannot be read: "),
        "{faults}"
    );
}
