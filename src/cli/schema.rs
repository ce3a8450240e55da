//! `responses-bridge schema`: the JSON schema of the configuration file, for editors.
use std::process::ExitCode;

use super::printed;

/// Prints the schema. Fails only where it cannot be printed.
pub fn run() -> ExitCode {
    printed::all("schema", &format!("{:#}\n", crate::config::schema()), 0)
}
