//! How a story is printed: one line for each thing that happened, within 100 columns, and the sentence last, which is one
//! line where nobody looks at it on a terminal.

use std::io::{self, IsTerminal, Write};

use crate::cli::terminal::{self, is_coloured, painted};
use crate::counted::{agreeing, counted};
use crate::explain::{Line, Story, Tone};

/// Where the words of a line begin.
const INDENT: usize = 47;

/// Where it is printed.
pub struct Paper {
    out: Box<dyn Write>,
    terminal: bool,
    colour: bool,
}

impl Paper {
    /// Standard output, in colour if it is a terminal that can show some and nobody has asked for none (no-color.org).
    pub fn on_stdout() -> Paper {
        let out = io::stdout();
        Paper {
            terminal: out.is_terminal(),
            colour: is_coloured(&out),
            out: Box::new(out),
        }
    }

    /// The whole story.
    pub fn story(&mut self, story: &Story) -> io::Result<()> {
        let mut about = about(story.calls, story.others);
        for (name, list) in [("key", &story.keys), ("account", &story.accounts)] {
            if !list.is_empty() {
                about += &format!(", {name} {}", list.join(" "));
            }
        }
        let about = wrapped(&about, 0);
        writeln!(self.out, "{}", self.painted("1", &about))?;
        if let Some(first) = story
            .timeline
            .iter()
            .find(|line| line.since_ms >= 0)
            .or(story.timeline.first())
        {
            writeln!(self.out, "times are UTC and since {}", first.at)?;
        }
        if story.cut {
            writeln!(
                self.out,
                "(not all: there is more in the journal than is shown here)"
            )?;
        }
        if story.left_out > 0 {
            let lines = agreeing(story.left_out as u64, "line is", "lines are");
            let left = format!(
                "({lines} left out: what else happened to accounts and the process; `events` has all of it)"
            );
            writeln!(self.out, "{}", wrapped(&left, 0))?;
        }
        writeln!(self.out)?;
        for line in &story.timeline {
            self.line(line)?;
        }
        let sentence = self.broken(&story.sentence, self.terminal);
        writeln!(self.out, "\n{}", self.painted("1", &sentence))?;
        self.out.flush()
    }

    /// A sentence, broken where somebody reads it on a terminal.
    pub fn broken(&self, sentence: &str, terminal: bool) -> String {
        if terminal {
            wrapped(sentence, 0)
        } else {
            sentence.to_owned()
        }
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        let code = match line.tone {
            Tone::Work => "32",
            Tone::Trouble => "31",
            Tone::Remedy => "35",
            Tone::Around => "36",
        };
        let time = line.at.get(11..23).unwrap_or_default();
        let call = line.call.map(|call| format!("#{call}"));
        let call = call.or(line.other.map(|other| format!("~{other}")));
        let call = call.unwrap_or_default();
        let what = self.painted(code, &format!("{:<10}", line.what));
        let since = since(line.since_ms);
        let words = wrapped(&line.words, INDENT);
        writeln!(self.out, "{since:>13}  {time}  {call:<4}  {what}  {words}")
    }

    fn painted(&self, code: &str, text: &str) -> String {
        painted(self.colour, code, text)
    }
}

/// How many calls there are, and where there are others, how each is numbered (EXP-10).
fn about(calls: usize, others: usize) -> String {
    let told = counted(calls as u64, "call");
    if others == 0 {
        return told;
    }
    let numbers = |sign: char, count: usize| match count {
        0 => String::new(),
        1 => format!(" ({sign}1)"),
        count => format!(" ({sign}1 to {sign}{count})"),
    };
    let (own, around) = (numbers('#', calls), numbers('~', others));
    let others = counted(others as u64, "other");
    let whose = if calls == 1 { "its" } else { "their" };
    format!("{told}{own}, and {others} of {whose} conversation{around}")
}

fn since(ms: i64) -> String {
    let sign = if ms < 0 { '-' } else { '+' };
    let ms = ms.unsigned_abs();
    format!("{sign}{}.{:03} s", ms / 1000, ms % 1000)
}

/// See [`terminal::wrapped`]. A damaged row may say anything, but not move a terminal's cursor.
fn wrapped(text: &str, indent: usize) -> String {
    terminal::wrapped(&terminal::plain(text), indent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::COLUMNS;

    /// [EXP-10] The head of a story says how many calls are the ones that were asked about, and how the others are marked.
    #[test]
    fn calls_and_others_of_their_conversation() {
        let told =
            [(0, 0), (1, 0), (2, 0), (1, 1), (1, 2), (3, 12)].map(|(calls, others)| about(calls, others));
        assert_eq!(
            told,
            [
                "0 calls",
                "1 call",
                "2 calls",
                "1 call (#1), and 1 other of its conversation (~1)",
                "1 call (#1), and 2 others of its conversation (~1 to ~2)",
                "3 calls (#1 to #3), and 12 others of their conversation (~1 to ~12)"
            ]
        );
    }

    /// [EXP-7] No line of the timeline is wider than 100 columns, whatever a name's length.
    #[test]
    fn nothing_is_wider_than_a_terminal() {
        let words = format!("to openai/{} and so on {}", "a".repeat(130), "word ".repeat(40));
        for indent in [0, INDENT] {
            let text = wrapped(&words, indent);
            let first = " ".repeat(indent) + &text;
            assert!(
                first.lines().all(|line| line.chars().count() <= COLUMNS),
                "{first}"
            );
            assert!(
                text.lines()
                    .skip(1)
                    .all(|line| line.starts_with(&" ".repeat(indent)))
            );
        }
        assert_eq!(
            [since(0), since(-61_005), since(3_723_000)],
            ["+0.000 s", "-61.005 s", "+3723.000 s"]
        );
    }
}
