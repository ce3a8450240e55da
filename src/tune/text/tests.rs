use super::*;
use crate::tune::{Evidence, Row, report};

/// A week of a few models, one with the longest name that there is, trips, quarantines and socket failures.
fn page(bold: bool) -> String {
    let mut evidence = Evidence::new(None, Vec::new());
    let long = "\u{1b}[31m<b>'".repeat(20);
    let mut at_ms = 1_796_000_000_000_u64;
    let mut take = |event: &str, body: serde_json::Value| {
        at_ms += 1000;
        let body = body.to_string();
        evidence.take(Row {
            at_ms,
            event,
            body: &body,
        });
    };
    for number in 0..6000_u64 {
        let model = ["gpt-5", "o4-mini", &long][(number % 3) as usize];
        let created = 200 + (number * 7919) % 41_000 / (1 + number % 11);
        let outcome = if number.is_multiple_of(500) {
            "upstream_closed"
        } else {
            "completed"
        };
        take(
            "turn_finished",
            serde_json::json!({
                "provider": "openai", "model": model, "transport": if number % 10 == 9 { "http" } else { "websocket" },
                "outcome": outcome, "session": number, "stream": true, "sent": true, "total_ms": created + 9000,
                "upstream_ms": created + 8900, "created_ms": created, "longest_gap_ms": number % 8000,
                "age": "30m", "idle": "5m",
            }),
        );
    }
    for number in 0..40_u64 {
        let key = format!("key{number}");
        take(
            "response_created_timeout",
            serde_json::json!({ "model": "gpt-5", "key": key, "session": 70_000 + number, "waited_ms": 60_000 }),
        );
        take("quarantine_opened", serde_json::json!({ "key": key }));
        for _ in 0..61 {
            take("quarantine_evicted", serde_json::json!({ "key": "unknown" }));
        }
        take("quarantine_probe", serde_json::json!({ "key": key }));
        take("quarantine_cleared", serde_json::json!({ "key": key }));
    }
    take("turn_finished", serde_json::json!({}));
    let in_force = crate::tune::tests::IN_FORCE;
    text(&report(&evidence.read(), in_force), bold, |_| {
        "2026-11-29T22:38:12Z".to_owned()
    })
}

/// [TUNE-1] [TUNE-2] the page fits 100 columns, each section ends with its sentence, and no escape of a forged row's reaches
/// the terminal.
#[test]
fn the_page_fits_and_is_plain() {
    let page = page(false);
    for line in page.lines() {
        assert!(line.chars().count() <= 100, "{line}");
        assert_eq!(line, line.trim_end());
    }
    assert!(
        page.is_ascii() && !page.contains('\u{1b}') && !page.contains('<'),
        "{page}"
    );
    assert!(
        page.contains("Left out: 1 row that could not be read\n"),
        "{page}"
    );
    let sentences = [
        "\nKeep 60s: ",
        "\nKeep 15m: no change is worth it: ",
        "\nKeep 60s: 40 of 40 ",
        "\nNot enough evidence: 0 ",
    ];
    for sentence in sentences {
        assert!(page.contains(sentence), "{sentence}\n{page}");
    }
    assert!(
        page.contains("  gpt-5: 1840 turns, 40 tripped, 0 ended otherwise before it, the longest 4"),
        "{page}"
    );
}

/// [TUNE-1] on a terminal headings and sentences stand out, and nothing else differs.
#[test]
fn bold_is_for_terminals() {
    let bold = page(true);
    assert_eq!(
        bold.replace("\u{1b}[1m", "").replace("\u{1b}[0m", ""),
        page(false)
    );
    assert_eq!(bold.matches("\u{1b}[1m").count(), 12);
}
