//! What every command knows of where it prints: how wide, whether in colour, and how text is broken.

use std::io::IsTerminal;

/// No line is longer, so that none breaks on an ordinary terminal or in a report.
pub const COLUMNS: usize = 100;

/// Whether `out` is a terminal that can show colours, and nobody has asked for none (no-color.org).
pub fn is_coloured(out: &impl IsTerminal) -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    out.is_terminal() && !unwanted && !is_dumb()
}

/// Whether the terminal can only print one line after the other.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb")
}

/// `text` in the colour of this ANSI code, or plain.
pub fn painted(coloured: bool, code: &str, text: &str) -> String {
    match coloured {
        true => format!("\x1b[{code}m{text}\x1b[0m"),
        false => text.to_owned(),
    }
}

/// What a bridge, a journal or a file says, fit for a terminal: whatever it says, nothing in it moves the cursor.
pub fn plain(text: &str) -> String {
    text.replace(char::is_control, "?")
}

/// `text` broken at spaces; lines after the first are indented by as much as the first one already is. A word that is longer
/// than a line is cut into lines.
pub fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = String::with_capacity(text.len());
    let mut column = indent;
    let break_line = |lines: &mut String| {
        lines.push('\n');
        lines.extend(std::iter::repeat_n(' ', indent));
        indent
    };
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > indent && column + 1 + length > COLUMNS {
            column = break_line(&mut lines);
        } else if column > indent {
            lines.push(' ');
            column += 1;
        }
        for letter in word.chars() {
            if column == COLUMNS {
                column = break_line(&mut lines);
            }
            lines.push(letter);
            column += 1;
        }
    }
    lines
}
