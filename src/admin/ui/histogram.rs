//! How long `response.created` took, with the deadline drawn in it: a picture, one sentence, and a table.

use std::time::Duration;

use maud::{Markup, html};

use super::view::LatencyView;
use super::words;

/// The picture's inner measures, in units of its own: the plot's width and height, and what is above it.
const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 104.0;
const ABOVE: f64 = 40.0;
/// Where the axis begins and ends, in seconds. Whatever is quicker or slower is drawn at its ends.
const FIRST: f64 = 0.001;
const LAST: f64 = 1_000.0;
/// The marks of the axis.
const TICKS: [(f64, &str); 6] = [
    (0.01, "10 ms"),
    (0.1, "100 ms"),
    (1.0, "1 s"),
    (10.0, "10 s"),
    (60.0, "1 min"),
    (600.0, "10 min"),
];

pub(super) fn panel(latency: &LatencyView, silent: u64) -> Markup {
    let turns = &latency.websocket;
    html! {
        section.card id="created" aria-labelledby="created-h" {
            h2 id="created-h" { "Time to response.created" }
            @if turns.total == 0 && silent == 0 {
                p.quiet { "No turn on a session has been accepted since the start. The deadline is " (words::span_ms(latency.deadline_ms)) ". Turns by direct HTTP are not counted here." }
            } @else {
                p id="created-s" { (sentence(latency, silent)) }
                (picture(latency, silent))
                (table(latency, silent))
            }
        }
    }
}

fn sentence(latency: &LatencyView, silent: u64) -> String {
    let turns = &latency.websocket;
    let share = |of: f64| match quantile(latency, of) {
        Some(bound) => format!("within {}", seconds(bound)),
        None => "later than all buckets".into(),
    };
    let accepted = match turns.total {
        0 => "No turn on a session was accepted since the start".into(),
        total => format!(
            "{} on sessions since the start: half accepted {}, 99 % {}",
            words::several(total, "turn"),
            share(0.5),
            share(0.99)
        ),
    };
    let silent = match silent {
        0 => "None was silent".into(),
        1 => "1 was silent".into(),
        _ => format!("{} were silent", words::count(silent)),
    };
    format!(
        "{accepted}. {silent} up to the deadline of {}.",
        words::span_ms(latency.deadline_ms)
    )
}

fn seconds(seconds: f64) -> String {
    match seconds {
        1.0..10.0 if seconds.fract() > 0.0 => format!("{seconds:.1} s"),
        _ => words::span(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)),
    }
}

/// The upper bound of the bucket in which the share `of` of the turns is reached.
fn quantile(latency: &LatencyView, of: f64) -> Option<f64> {
    let wanted = of * latency.websocket.total as f64;
    let mut seen = 0;
    for (count, bound) in latency.websocket.counts.iter().zip(&latency.bounds_s) {
        seen += count;
        if seen as f64 >= wanted {
            return Some(*bound);
        }
    }
    None
}

/// Where a time lies on the logarithmic axis.
fn x(seconds: f64) -> f64 {
    let share = (seconds.clamp(FIRST, LAST) / FIRST).ln() / (LAST / FIRST).ln();
    (share * WIDTH).round()
}

fn picture(latency: &LatencyView, silent: u64) -> Markup {
    let counts = &latency.websocket.counts;
    let most = counts
        .iter()
        .copied()
        .max()
        .unwrap_or_default()
        .max(silent)
        .max(1) as f64;
    let deadline = x(latency.deadline_ms as f64 / 1000.0);
    // The label stays inside: left of the line where the line is on the right.
    let (anchor, label) = match deadline > WIDTH / 2.0 {
        true => ("end", deadline - 6.0),
        false => ("start", deadline + 14.0),
    };
    html! {
        svg.chart viewBox={ "-4 0 " (WIDTH + 8.0) " " (ABOVE + HEIGHT + 22.0) } role="img" aria-labelledby="created-h created-s" {
            @for (from, to, count) in bars(latency) {
                // A single turn is seen beside a million.
                @let height = (count as f64 / most * HEIGHT).max(2.0).round();
                rect.bar x=(from + 1.0) y=(ABOVE + HEIGHT - height) width=(to - from - 2.0) height=(height) rx="1.5" {}
            }
            @if silent > 0 {
                // They would have come somewhere beyond the deadline, if at all.
                @let height = (silent as f64 / most * HEIGHT).max(2.0).round();
                rect.silent x=(deadline + 2.0) y=(ABOVE + HEIGHT - height) width="9" height=(height) rx="1.5" {}
                text.deadline x=(label) y="32" text-anchor=(anchor) { (words::count(silent)) " silent" }
            }
            line.axis x1="0" y1=(ABOVE + HEIGHT) x2=(WIDTH) y2=(ABOVE + HEIGHT) {}
            @for (at, words) in TICKS {
                line.axis x1=(x(at)) y1=(ABOVE + HEIGHT) x2=(x(at)) y2=(ABOVE + HEIGHT + 4.0) {}
                text x=(x(at)) y=(ABOVE + HEIGHT + 17.0) text-anchor="middle" { (words) }
            }
            line.deadline x1=(deadline) y1="4" x2=(deadline) y2=(ABOVE + HEIGHT) {}
            text.deadline x=(label) y="15" text-anchor=(anchor) { "deadline " (words::span_ms(latency.deadline_ms)) }
        }
    }
}

/// Left, right and count of each bucket that has turns. The first begins a little before its bound, the last is open.
fn bars(latency: &LatencyView) -> impl Iterator<Item = (f64, f64, u64)> + '_ {
    let bounds = &latency.bounds_s;
    let from = [0.0].into_iter().chain(bounds.iter().copied());
    let to = bounds.iter().copied().chain([f64::INFINITY]);
    let sides = from.zip(to).map(|(from, to)| (x(from), x(to).max(6.0)));
    sides
        .zip(&latency.websocket.counts)
        .filter(|(_, count)| **count > 0)
        .map(|((from, to), count)| (from, to, *count))
}

fn table(latency: &LatencyView, silent: u64) -> Markup {
    let counts = latency.websocket.counts.iter().enumerate();
    html! {
        details id="created-d" {
            summary { "As a table" }
            table {
                caption { "Turns by the time to their response.created" }
                thead { tr { th scope="col" { "Up to" } th.n scope="col" { "Turns" } } }
                tbody {
                    @for (at, count) in counts.filter(|(_, count)| **count > 0) {
                        tr {
                            th scope="row" { @match latency.bounds_s.get(at) { Some(bound) => (seconds(*bound)), None => "longer" } }
                            td.n { (words::count(*count)) }
                        }
                    }
                    tr { th scope="row" { "silent" } td.n { (words::count(silent)) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
