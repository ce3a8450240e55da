//! A drill for people, within 100 columns: what is in force and expected before it, what was seen and the verdict after it.

use std::time::Duration;

use super::Drill;
use crate::cli::terminal::{painted, wrapped};
use crate::config::Lapse;
use crate::counted::counted;
use crate::rehearse::{Record, Verdict, clock, sequence, tally, told};

/// The longest key.
const KEY: usize = 36;

/// Where the words of an event begin.
const DETAIL: usize = 57;

/// Green, red, and a heading.
const GOOD: &str = "32";
const BAD: &str = "31";
const HEADING: &str = "1";

/// What is played, with which windows, and what is expected.
pub fn before(drill: &Drill, colour: bool) -> String {
    let mut page = Page::new(colour);
    let plan = &drill.plan;
    let head = format!(
        "Rehearsing \"{}\" on {}: {}, time divided by {}.",
        plan.fault.name(),
        drill.file,
        counted(plan.clients as u64, "client"),
        plan.speed
    );
    page.line(&wrapped(&head, 0));
    for note in &drill.notes {
        page.line(&wrapped(note, 0));
    }
    page.heading("Windows in force");
    page.line(&format!(
        "  {:<KEY$}  {:>12}  {:>10}",
        "", "configured", "this drill"
    ));
    for window in &drill.windows {
        let mark = match window.floor {
            true => format!(" * as {}", told(plan.speed.real(window.drill))),
            false => String::new(),
        };
        let (own, short) = (Lapse(window.own).to_string(), told(window.drill));
        page.line(&format!("  {:<KEY$}  {own:>12}  {short:>10}{mark}", window.key));
    }
    if drill.windows.iter().any(|window| window.floor) {
        page.line("  * kept longer than its share, as if that were configured: shorter ones would measure this machine");
    }
    page.heading("Expected");
    for (number, expectation) in (1..).zip(&drill.expectations) {
        page.line(&format!("{number:>3}. {}", wrapped(&expectation.text, 5)));
    }
    let slack = told(plan.speed.real(plan.slack));
    let text = format!(
        "Times are those in earnest. Each is given a slack of {slack}, {} of this machine's clock, for what is no part of it: \
         scheduling, and the turn itself.",
        told(plan.slack)
    );
    page.line(&wrapped(&text, 0));
    page.text
}

/// What was seen, and the verdict.
pub fn after(drill: &Drill, record: &Record, verdicts: &[Verdict], colour: bool) -> String {
    let mut page = Page::new(colour);
    let real = |short: Duration| drill.plan.speed.real(short);
    let saw = tally(record);
    page.heading("What clients saw");
    let mut row = |name: &str, text: String| page.line(&format!("  {name:<22}  {text}"));
    row(
        "questions",
        format!(
            "{}, in {}: {}",
            saw.questions,
            counted(saw.calls as u64, "call"),
            counted(saw.retries as u64, "retry")
        ),
    );
    row(
        "answered",
        format!("{} over sessions, {} over HTTP", saw.over_sessions, saw.over_http),
    );
    match saw.errors.is_empty() {
        true => row("errors", "none".to_owned()),
        false => {
            let kinds = saw.errors.iter().map(|(kind, count)| format!("{count} {kind}"));
            row("errors", wrapped(&kinds.collect::<Vec<_>>().join(", "), 26));
        }
    }
    row("longest wait", told(real(saw.slowest)));
    row("creates sent twice", saw.duplicates.to_string());
    page.heading("What the bridge did");
    let mut phase = None;
    for step in sequence(record) {
        if phase.as_ref() != Some(&step.phase) {
            let began = record.phases.iter().find(|known| known.name == step.phase);
            let began = began.map_or(Duration::ZERO, |known| known.began);
            let heading = format!("  {:>6}  {}", clock(real(began)), step.phase);
            page.line(&painted(colour, HEADING, &heading));
            phase = Some(step.phase.clone());
        }
        let (first, last) = (clock(real(step.first)), clock(real(step.last)));
        let times = if first == last {
            format!("{first:>6}")
        } else {
            format!("{first:>6} - {last}")
        };
        let line = format!(
            "    {times:<17} {:>5} x  {:<24}  {}",
            step.count,
            step.event,
            wrapped(&step.detail, DETAIL)
        );
        page.line(line.trim_end());
    }
    page.heading("Verdict");
    for (expectation, verdict) in drill.expectations.iter().zip(verdicts) {
        let (word, tone) = if verdict.met {
            ("met    ", GOOD)
        } else {
            ("NOT MET", BAD)
        };
        let text = wrapped(&format!("{} ({})", expectation.text, verdict.evidence), 11);
        page.line(&format!("  {}  {text}", painted(colour, tone, word)));
    }
    if record.stall > drill.plan.slack / 5 {
        let text = format!(
            "This machine did not get round to the drill for {} at a time, which the slack was raised by. Where an \
             expectation was not met, repeat it with fewer --clients or a lower --speed.",
            told(record.stall)
        );
        page.line(&wrapped(&text, 0));
    }
    let missed = verdicts.iter().filter(|verdict| !verdict.met).count();
    let last = match missed {
        0 => painted(
            colour,
            GOOD,
            &format!("Passed: all {} expectations were met.", verdicts.len()),
        ),
        _ => painted(
            colour,
            BAD,
            &format!(
                "Failed: {missed} of {} expectations {} not met.",
                verdicts.len(),
                if missed == 1 { "was" } else { "were" }
            ),
        ),
    };
    page.line(&format!("\n{last}"));
    page.text
}

struct Page {
    text: String,
    colour: bool,
}

impl Page {
    fn new(colour: bool) -> Page {
        Page {
            text: String::new(),
            colour,
        }
    }

    fn heading(&mut self, title: &str) {
        self.line(&format!("\n{}", painted(self.colour, HEADING, title)));
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }
}
