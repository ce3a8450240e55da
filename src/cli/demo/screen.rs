//! How the play is printed: the time, who or what, and plain words, within 100 columns.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crate::cli::terminal::{is_coloured, painted, wrapped};

/// Two columns of margin, seconds with two decimals, and their unit.
const TIME: usize = 9;
/// The longest event name: `response_created_timeout`.
const NAME: usize = 24;
/// Where the words begin.
const INDENT: usize = TIME + 2 + NAME + 2;

/// What a line tells of, which is its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// The agent's doing.
    Agent,
    /// The bridge's everyday work.
    Work,
    /// Something is wrong.
    Trouble,
    /// The bridge's answer to it.
    Remedy,
}

impl Tone {
    /// ANSI codes of the eight colours that every terminal has, legible on dark and on light ground.
    fn code(self) -> &'static str {
        match self {
            Tone::Agent => "36",
            Tone::Work => "32",
            Tone::Trouble => "31",
            Tone::Remedy => "35",
        }
    }
}

/// Where the play is printed.
pub struct Screen {
    out: Box<dyn Write + Send>,
    colour: bool,
    began: Instant,
}

impl Screen {
    /// Standard output, in colour if it is a terminal that can show some and nobody has asked for none (no-color.org).
    pub fn on_stdout() -> Screen {
        let out = io::stdout();
        let colour = is_coloured(&out);
        Screen::new(Box::new(out), colour)
    }

    /// Where nobody looks.
    pub fn nowhere() -> Screen {
        Screen::new(Box::new(io::sink()), false)
    }

    fn new(out: Box<dyn Write + Send>, colour: bool) -> Screen {
        Screen {
            out,
            colour,
            began: Instant::now(),
        }
    }

    /// A heading, and a sentence right below it.
    pub fn heading(&mut self, title: &str, sentence: &str) {
        let title = self.painted("1", title);
        self.print(&format!("\n{title}\n{}", wrapped(sentence, 0)));
    }

    /// Plain text.
    pub fn text(&mut self, text: &str) {
        self.print(&wrapped(text, 0));
    }

    /// One thing that happened just now.
    pub fn line(&mut self, tone: Tone, name: &str, words: &str) {
        let time = clock(self.began.elapsed());
        let time = self.painted("2", &time);
        let name = self.painted(tone.code(), &format!("{name:<NAME$}"));
        let words = wrapped(words, INDENT);
        self.print(&format!("{time}  {name}  {words}"));
    }

    fn painted(&self, code: &str, text: &str) -> String {
        painted(self.colour, code, text)
    }

    fn print(&mut self, text: &str) {
        // Whoever closed the pipe has seen enough; the play goes on to its verdict.
        let _ = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
    }
}

fn clock(since: Duration) -> String {
    format!("{:>7.2} s", since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use crate::cli::terminal::COLUMNS;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn printed(colour: bool, act: impl FnOnce(&mut Screen)) -> String {
        let paper = Paper::default();
        act(&mut Screen::new(Box::new(paper.clone()), colour));
        let bytes = paper.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    /// [RUN-15] Long words go on below their column, and no line is wider than 100 columns.
    #[test]
    fn long_text_is_broken_and_indented() {
        let text = printed(false, |screen| {
            screen.line(Tone::Work, "turn_finished", &"words and ".repeat(20));
        });
        let lines: Vec<&str> = text.trim_end().lines().collect();
        assert!(lines.len() > 2, "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= COLUMNS), "{text}");
        assert_eq!(lines[0].find("words"), Some(INDENT));
        assert!(
            lines[1..].iter().all(|line| line.find("words") == Some(INDENT)),
            "{text}"
        );
    }

    /// [RUN-15] Colour adds to the text and changes nothing of it.
    #[test]
    fn colour_is_only_added() {
        let act = |screen: &mut Screen| screen.line(Tone::Trouble, "session_retired", "gone");
        let (plain, coloured) = (printed(false, act), printed(true, act));
        assert!(!plain.contains('\x1b'));
        assert!(coloured.contains("\x1b[31msession_retired"));
        assert!(plain.ends_with("  session_retired           gone\n"), "{plain}");
    }
}
