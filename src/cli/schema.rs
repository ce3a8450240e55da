//! `responses-bridge schema`: the JSON schema of the configuration file, for editors.
use std::io::{self, Write};
use std::process::ExitCode;

/// Prints the schema. Fails only where stdout does.
pub fn run() -> ExitCode {
    match writeln!(io::stdout(), "{:#}", crate::config::schema()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
