//! The histogram, from values.

use super::*;
use crate::admin::ui::samples::busy;

/// [PAGE-11] the axis is logarithmic, the deadline is drawn where it belongs, and its label stays inside the picture.
#[test]
fn the_deadline_is_in_the_picture() {
    assert_eq!(
        [0.0005, 0.001, 1.0, 1_000.0, f64::INFINITY].map(x),
        [0.0, 0.0, 210.0, 420.0, 420.0]
    );
    let mut latency = busy().latency;
    for (ms, line, anchor) in [
        (60_000, x(60.0), "end"),
        (500, x(0.5), "start"),
        (900_000, x(900.0), "end"),
    ] {
        latency.deadline_ms = ms;
        let drawn = picture(&latency, 4).into_string();
        let wanted = format!(r#"<line class="deadline" x1="{line}""#);
        assert!(drawn.contains(&wanted), "{wanted}: {drawn}");
        assert!(drawn.contains(&format!(
            "text-anchor=\"{anchor}\">deadline {}",
            words::span_ms(ms)
        )));
    }
}

/// [PAGE-11] who does not see the picture reads the same: in one sentence, and in a table.
#[test]
fn the_picture_is_told_in_words() {
    let page = panel(&busy().latency, 4).into_string();
    let sentence = "1,335 turns on sessions since the start: half accepted within 500 ms, 99 % within 5 s. \
                    4 were silent up to the deadline of 60 s.";
    assert!(page.contains(sentence), "{page}");
    assert!(page.contains(r#"role="img" aria-labelledby="created-h created-s""#));
    assert!(page.contains(r#"<tr><th scope="row">500 ms</th><td class="n">640</td></tr>"#));
    assert!(page.contains(r#"<tr><th scope="row">silent</th><td class="n">4</td></tr>"#));
}

/// [PAGE-11] turns beyond the last bucket, and silent ones alone, are told of too.
#[test]
fn extremes_are_told() {
    let mut latency = busy().latency;
    latency.websocket.counts.fill(0);
    latency.websocket.counts[16] = 2;
    latency.websocket.total = 2;
    assert!(sentence(&latency, 0).contains("half accepted later than all buckets"));
    assert!(table(&latency, 0).into_string().contains("longer"));
    latency.websocket.counts.fill(0);
    latency.websocket.total = 0;
    assert!(
        sentence(&latency, 1).starts_with("No turn on a session was accepted since the start. 1 was silent")
    );
}
