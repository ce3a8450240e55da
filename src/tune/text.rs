//! The report for people: at most 100 columns.

use std::fmt::Write;

use super::deadline::{self, percent};
use super::proportion::Share;
use super::report::{Group, Report, Table};
use super::{recovery, wear};
use crate::counted::counted;
use crate::lapse::{short, written_ms};

const COLUMNS: usize = 100;

/// The report. `bold`: headings and sentences stand out, on a terminal. `at`: how a time of the journal is told.
pub fn text(report: &Report, bold: bool, at: impl Fn(u64) -> String) -> String {
    let mut out = String::new();
    let paint = |text: &str| {
        if bold {
            format!("\x1b[1m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    };
    // Writing to a String cannot fail.
    let _ = match report.span {
        Some((first, last)) => writeln!(
            out,
            "Evidence: {}, {} to {}",
            counted(report.rows, "row"),
            at(first),
            at(last)
        ),
        None => writeln!(out, "Evidence: none"),
    };
    if report.unreadable > 0 {
        let rows = counted(report.unreadable, "row");
        let _ = writeln!(out, "Left out: {rows} that could not be read");
    }
    for section in &report.sections {
        let heading = format!("{}, {} in force", section.key, written_ms(section.in_force_ms));
        let _ = writeln!(out, "\n{}", paint(&heading));
        for note in &section.notes {
            let _ = writeln!(out, "{}", wrapped(note, 0));
        }
        for group in &section.groups {
            let facts = format!("{}: {}", group.name, facts(group));
            let _ = writeln!(out, "\n{}", wrapped(&facts, 2));
            out.push_str(&table(&group.table));
            if section.groups.len() > 1 {
                let _ = writeln!(
                    out,
                    "{}",
                    wrapped(&group.verdict.sentence(section.in_force_ms), 4)
                );
            }
        }
        let sentence = capital(&section.verdict.sentence(section.in_force_ms));
        let _ = writeln!(out, "\n{}", paint(&wrapped(&sentence, 0)));
    }
    out
}

fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn facts(group: &Group) -> String {
    match group.table {
        Table::Deadline(_) => {
            let longest = group
                .longest_ms
                .map_or(String::new(), |ms| format!(", the longest {}", short(ms)));
            format!(
                "{}, {} tripped, {} ended otherwise before it{longest}",
                counted(group.samples, "turn"),
                group.trips,
                group.unfinished - group.trips
            )
        }
        Table::Recovery(_) => format!(
            "{}, {}, {} not seen to recover",
            counted(group.samples, "probed quarantine"),
            counted(group.trips, "silent probe"),
            group.unfinished
        ),
        Table::Wear(_) => format!(
            "{}, {} failed with their socket",
            counted(group.samples, "turn"),
            group.trips
        ),
    }
}

fn table(table: &Table) -> String {
    let rows: Vec<String> = match table {
        Table::Deadline(lines) => {
            let head = format!(
                "    {:>12}  {:>9}  {:>9}  {:<24}  {:>18}",
                "deadline", "ended", "share", "95 % bounds", "wedge time"
            );
            std::iter::once(head)
                .chain(lines.iter().map(deadline_row))
                .collect()
        }
        Table::Recovery(lines) => {
            let head = format!(
                "    {:>12}  {:>9}  {:>9}  {:>9}  {:>9}  {}",
                "window", "incidents", "recovered", "sick", "share", "95 % bounds"
            );
            std::iter::once(head)
                .chain(lines.iter().map(recovery_row))
                .collect()
        }
        Table::Wear(lines) => {
            let head = format!(
                "    {:>12}  {:>9}  {:>9}  {:>9}  {}",
                "bucket", "turns", "failed", "share", "95 % bounds"
            );
            std::iter::once(head).chain(lines.iter().map(wear_row)).collect()
        }
    };
    rows.iter().map(|row| format!("{}\n", row.trim_end())).collect()
}

fn deadline_row(line: &deadline::Line) -> String {
    format!(
        "  {} {:>12}  {:>9}  {:>9}  {:<24}  {:>18}",
        mark(line.in_force),
        written_ms(line.candidate_ms),
        line.late,
        percent(line.share.share),
        bounds(line.share),
        wedged(line)
    )
}

/// What a candidate would have made of the time that was waited in vain.
fn wedged(line: &deadline::Line) -> String {
    match (line.saved_ms, line.lost_ms) {
        (0, 0) => "-".to_owned(),
        (0, lost) => format!("costs {} more", short(lost)),
        (saved, _) => format!("saves {}", short(saved)),
    }
}

fn recovery_row(line: &recovery::Line) -> String {
    format!(
        "  {} {:>12}  {:>9}  {:>9}  {:>9}  {:>9}  {}",
        mark(line.in_force),
        written_ms(line.candidate_ms),
        line.incidents,
        line.recovered,
        line.sick,
        percent(line.share.share),
        bounds(line.share)
    )
}

fn wear_row(line: &wear::Line) -> String {
    format!(
        "    {:>12}  {:>9}  {:>9}  {:>9}  {}",
        line.bucket,
        line.turns,
        line.failed,
        percent(line.share.share),
        bounds(line.share)
    )
}

fn mark(in_force: bool) -> char {
    if in_force { '*' } else { ' ' }
}

fn bounds(share: Share) -> String {
    format!("{} to {}", percent(share.low), percent(share.high))
}

/// `text` in lines of at most 100 columns, each after `indent` spaces.
fn wrapped(text: &str, indent: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= COLUMNS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("{:indent$}{word}", "")),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
