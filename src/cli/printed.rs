//! What becomes of a command whose words nobody takes: one rule for all of them (ADM-36).

use std::io::{self, Write};
use std::process::ExitCode;

/// Something else than its reader kept a command from printing.
const UNPRINTED: u8 = 1;

/// The end of a command that has `code` to tell. A reader that leaves early (`| head`) has seen enough: that is no failure.
/// Whatever else keeps it from printing, a full disk behind `>` say, is one, and is said.
pub fn code(command: &str, printed: io::Result<()>, code: u8) -> ExitCode {
    match printed {
        Err(fault) if !has_left(&fault) => {
            complain(command, &format!("cannot print: {fault}"));
            ExitCode::from(code.max(UNPRINTED))
        }
        Ok(()) | Err(_) => ExitCode::from(code),
    }
}

/// Whether somebody waits for what could not be printed.
pub fn is_missed(printed: &io::Result<()>) -> bool {
    printed.as_ref().is_err_and(|fault| !has_left(fault))
}

fn has_left(fault: &io::Error) -> bool {
    fault.kind() == io::ErrorKind::BrokenPipe
}

/// Prints all of `text`, and ends with `end`.
pub fn all(command: &str, text: &str, end: u8) -> ExitCode {
    code(command, print(text), end)
}

/// Prints all of `text` now.
///
/// # Errors
/// For [`code`], once the command has done what it was told.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Says on standard error what is the matter with `command`. Where nobody hears it, the exit code has to do.
pub fn complain(command: &str, problem: &str) {
    note(&format!("responses-bridge {command}: {problem}"));
}

/// A line on standard error, for people beside what is printed.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
