//! The README's tables against what the program has.
// A test that cannot go on ends there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::path::Path;

use responses_bridge::config::{self, When};
use responses_bridge::refusal::Kind;

fn text(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The rows of a section's tables, by cell; the first cell without its backticks.
fn rows(section: &str) -> Vec<Vec<String>> {
    let readme = text("README.md");
    let (_, rest) = readme.split_once(&format!("\n## {section}\n")).expect(section);
    let section = rest.split("\n## ").next().unwrap();
    let cells = |line: &str| {
        let line = line.trim().trim_start_matches('|').trim_end_matches('|');
        line.split('|')
            .map(|cell| cell.trim().to_owned())
            .collect::<Vec<_>>()
    };
    let mut rows: Vec<_> = section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(cells)
        .collect();
    for row in &mut rows {
        row[0] = row[0].trim_matches('`').to_owned();
    }
    assert!(!rows.is_empty(), "{section}");
    rows
}

fn names(section: &str) -> BTreeSet<String> {
    rows(section).into_iter().map(|row| row[0].clone()).collect()
}

/// String literals of `source` that follow one of `before`.
fn literals(source: &str, before: &[&str]) -> BTreeSet<String> {
    let found = before.iter().flat_map(|before| {
        source
            .match_indices(before)
            .map(|(at, before)| &source[at + before.len()..])
    });
    found
        .filter_map(|rest| rest.split_once('"'))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// [RUN-18] Every error code, with its status and Retry-After, and no other.
#[test]
fn every_error_code_is_in_the_readme() {
    let told: BTreeSet<_> = rows("Errors of the bridge's own")
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone(), row[2].clone()))
        .collect();
    let row = |kind: &Kind| {
        let wait = kind
            .retry_after()
            .map_or(String::new(), |wait| format!("{} s", wait.as_secs()));
        (kind.code().to_owned(), kind.status().as_str().to_owned(), wait)
    };
    assert_eq!(told, Kind::ALL.iter().map(row).collect());
}

/// [RUN-18] Every event, and no other.
#[test]
fn every_event_is_in_the_readme() {
    let source = text("src/event/labels.rs");
    assert_eq!(names("Events"), literals(&source, &["at(\"", "named(\""]));
}

/// [RUN-18] Every metric, and no other.
#[test]
fn every_metric_is_in_the_readme() {
    let source = text("src/telemetry.rs");
    let known = literals(&source, &["(\"", "(&self.recorder, \"", "(&recorder, \""]);
    let known = known
        .into_iter()
        .filter(|name| name.starts_with("bridge_"))
        .collect();
    assert_eq!(names("Metrics"), known);
}

/// [RUN-18] The events of an incident are told in the order in which they come.
#[test]
fn the_incident_is_told_in_order() {
    let told: Vec<_> = rows("What happens in an incident")
        .into_iter()
        .map(|row| row[0].clone())
        .collect();
    let incident = [
        "response_created_timeout",
        "session_retired",
        "quarantine_opened",
        "quarantine_http_fallback",
        "quarantine_probe",
        "quarantine_cleared",
    ];
    assert_eq!(told, incident);
}

/// [REL-19] The keys that wait for a restart are listed, each in the line of its table, and no other key is.
#[test]
fn what_waits_for_a_restart_is_in_the_readme() {
    let readme = text("README.md");
    let (_, rest) = readme
        .split_once("\n### Changing the configuration while it runs\n")
        .unwrap();
    let section = rest.split("\n### ").next().unwrap();
    let mut told = BTreeSet::new();
    for line in section.lines().filter(|line| line.starts_with("- ")) {
        let table = match line {
            line if line.starts_with("- of a provider") => "providers.NAME.",
            line if line.starts_with("- of an account") => "providers.NAME.accounts[].",
            _ => "",
        };
        // Every other piece stands between backticks.
        told.extend(
            line.split('`')
                .skip(1)
                .step_by(2)
                .map(|key| format!("{table}{key}")),
        );
    }
    let waits = config::keys().filter(|(_, when)| *when != When::Live);
    assert_eq!(told, waits.map(|(path, _)| path).collect());
}
