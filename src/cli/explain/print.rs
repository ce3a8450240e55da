//! How a story is printed: one line for each thing that happened, within 100 columns, and the sentence last, which is one
//! line where nobody looks at it on a terminal.

use std::io::{self, IsTerminal, Write};

use crate::cli::terminal::{self, is_coloured, painted};
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
        let calls = match story.calls {
            1 => "1 call".to_owned(),
            many => format!("{many} calls"),
        };
        let mut about = calls;
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
        let call = line.call.map(|call| format!("#{call}")).unwrap_or_default();
        let what = self.painted(code, &format!("{:<10}", line.what));
        let since = since(line.since_ms);
        let words = wrapped(&line.words, INDENT);
        writeln!(self.out, "{since:>13}  {time}  {call:<4}  {what}  {words}")
    }

    fn painted(&self, code: &str, text: &str) -> String {
        painted(self.colour, code, text)
    }
}

fn since(ms: i64) -> String {
    let sign = if ms < 0 { '-' } else { '+' };
    let ms = ms.unsigned_abs();
    format!("{sign}{}.{:03} s", ms / 1000, ms % 1000)
}

/// See [`terminal::wrapped`]. A damaged row may say anything, but not move a terminal's cursor.
fn wrapped(text: &str, indent: usize) -> String {
    terminal::wrapped(&text.replace(char::is_control, "?"), indent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::COLUMNS;

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
