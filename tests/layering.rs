//! Who may look into whom. Reads every file of `src/` and fails where a rule of the house is broken; a violation says
//! file, line and rule.
// A test file: all of it may panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write as _;
use std::path::Path;

#[path = "layering/rules.rs"]
mod rules;
#[path = "layering/source.rs"]
mod source;

use source::Source;

/// [INV-10] the rules of the house hold in every file.
#[test]
fn the_rules_of_the_house_hold() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = source::all(&root.join("src"));
    assert!(files.len() > 20, "the files were not found");
    let mut report = String::new();
    for file in &files {
        for violation in rules::violations(file) {
            writeln!(report, "{violation}").unwrap();
        }
    }
    for path in rules::LONG_FILES
        .iter()
        .map(|(path, _)| path)
        .filter(|path| !files.iter().any(|file| file.path == **path))
    {
        writeln!(report, "{path}: listed as long, and there is no such file").unwrap();
    }
    assert!(report.is_empty(), "\n{report}");
}

/// What the rules say of one file with this content.
fn of(path: &str, text: &str) -> Vec<String> {
    rules::violations(&Source::new(path, text))
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// [INV-10] each rule bites, names file and line, and spares what only looks like a breach.
#[test]
fn the_rules_bite() {
    let breaches = [
        ("src/bridge/a.rs", "use tokio::time::sleep;"),
        ("src/wire/a.rs", "fn f() { let now = std::time::Instant::now(); }"),
        ("src/resilience/a.rs", "fn f() { SystemTime::now(); }"),
        ("src/bridge/a.rs", "async fn f() {}"),
        ("src/wire/a.rs", "fn f() { x.await }"),
        ("src/bridge/a.rs", "fn f() { tracing::info!(\"x\"); }"),
        ("src/bridge/a.rs", "use std::{fmt, fs};"),
        ("src/wire/a.rs", "use std::{collections::HashMap, net::{IpAddr}};"),
        ("src/bridge/a.rs", "fn f() { std::thread::spawn(g); }"),
        ("src/bridge/a.rs", "use rand::Rng;"),
        ("src/bridge/a.rs", "use crate::runtime::call::Call;"),
        ("src/bridge/a.rs", "use super::super::config::Policy;"),
        ("src/wire/a.rs", "use crate::refusal::Kind;"),
        ("src/tune/a.rs", "use crate::store::journal::Row;"),
        ("src/tune/a.rs", "use std::fs;"),
        (
            "src/wire/a/b.rs",
            "fn f() -> crate::bridge::key::KeyKind { todo() }",
        ),
        ("src/upstream/a.rs", "use crate::downstream::bodies;"),
        ("src/downstream/a.rs", "use crate::{refusal, upstream::client};"),
        ("src/runtime/a.rs", "use crate::app::App;"),
        ("src/store/a.rs", "use crate::bridge::plan::plan;"),
        ("src/store/a.rs", "use crate::bridge::{key, quarantine::Windows};"),
        ("src/runtime/a.rs", "pub struct SessionManager;"),
        ("src/runtime/a.rs", "enum TurnHandler { A }"),
        ("src/runtime/utils.rs", "fn f() {}"),
        ("src/runtime/call_helper.rs", "fn f() {}"),
    ];
    for (path, text) in breaches {
        let found = of(path, &format!("\n{text}\n"));
        assert_eq!(found.len(), 1, "{path}: {text}: {found:?}");
        let line = if path.contains("utils") || path.contains("helper") {
            1
        } else {
            2
        };
        assert!(found[0].starts_with(&format!("{path}:{line}: ")), "{found:?}");
    }
    let long = "fn f() {}\n".repeat(rules::LONGEST + 1);
    assert_eq!(of("src/runtime/a.rs", &long).len(), 1);
    assert!(of("src/runtime/a.rs", &long["fn f() {}\n".len()..]).is_empty());

    let innocent = [
        (
            "src/bridge/a.rs",
            "// Instant::now() is read by the edge, async fn too\nfn f(now: Instant) {}",
        ),
        (
            "src/bridge/a.rs",
            "const X: &str = \"tokio::spawn\"; const Y: &str = r#\"crate::app::\"x\" .await\"#;",
        ),
        (
            "src/bridge/a.rs",
            "#[cfg(test)]\nmod tests {\n    fn f() { Instant::now(); if x { y } }\n}\n",
        ),
        ("src/bridge/a/tests.rs", "fn f() { Instant::now(); }"),
        ("src/bridge/a/tests/random.rs", "fn f() { Instant::now(); }"),
        (
            "src/bridge/a/b.rs",
            "use super::super::key::Hash16; use crate::wire::head; use crate::refusal::Kind;",
        ),
        ("src/bridge/a.rs", "fn f<'a>(x: &'a str) -> char { '\"' }"),
        ("src/wire/a.rs", "use super::json; use std::time::Duration;"),
        (
            "src/store/a.rs",
            "use crate::bridge::key::Hash16; use crate::bridge::ownership::Owner;",
        ),
        ("src/cli/a.rs", "use crate::app::App;"),
        ("src/runtime/a.rs", "struct Managers; fn handler() {}"),
    ];
    for (path, text) in innocent {
        assert_eq!(of(path, text), Vec::<String>::new(), "{path}: {text}");
    }
}
