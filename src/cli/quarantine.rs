//! `responses-bridge quarantine`: the keys of a running bridge that go by direct HTTP (ADM-14, ADM-33).

use std::process::ExitCode;

use reqwest::Method;
use serde_json::Value;

use super::printed;
use super::remote::{self, Remote, Unanswered};
use super::status::keys;
use crate::counted::counted;

/// Keys that are listed at most: as many as the bridge holds by default.
const MOST: usize = 4096;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List the keys in quarantine, and those whose level is still remembered
    Ls {
        #[command(flatten)]
        bridge: remote::Args,
        /// Print the answer of the bridge instead, as JSON
        #[arg(long)]
        json: bool,
    },
    /// End the quarantine of a key, or of all
    Clear {
        #[command(flatten)]
        bridge: remote::Args,
        #[command(flatten)]
        which: Which,
    },
}

/// One of them must be given.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// The key, as lists and events show it
    #[arg(value_name = "KEY")]
    key: Option<String>,
    /// Every key
    #[arg(long)]
    all: bool,
}

/// Exit code 0 when it is done, 1 when the bridge refuses (no such key), 2 when it cannot be reached.
pub fn run(args: &Args) -> ExitCode {
    let done = match &args.what {
        What::Ls { bridge, json } => list(bridge, *json),
        What::Clear { bridge, which } => clear(bridge, which.key.as_deref()),
    };
    match done {
        Ok(text) => printed::all("quarantine", &text, 0),
        Err(unanswered) => unanswered.told(),
    }
}

fn remote(bridge: &remote::Args) -> Result<Remote, Unanswered> {
    Remote::of(bridge, &|name| std::env::var(name).ok())
}

fn list(bridge: &remote::Args, json: bool) -> Result<String, Unanswered> {
    let answer = remote(bridge)?.ask(Method::GET, &format!("/quarantine?limit={MOST}"), None)?;
    if json {
        return Ok(format!("{answer:#}\n"));
    }
    Ok(shown(&answer))
}

fn shown(answer: &Value) -> String {
    let rows = answer["data"].as_array().map_or(&[][..], Vec::as_slice);
    if rows.is_empty() {
        return "no key is in quarantine\n".to_owned();
    }
    let mut text = keys(rows);
    let total = answer["total"].as_u64().unwrap_or_default();
    if total > rows.len() as u64 {
        text.push_str(&format!("and {} more\n", total - rows.len() as u64));
    }
    text
}

fn clear(bridge: &remote::Args, key: Option<&str>) -> Result<String, Unanswered> {
    let path = match key {
        // Anything else would lead to another path.
        Some(key) if key.len() == 12 && key.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            format!("/quarantine/{}", key.to_ascii_lowercase())
        }
        Some(_) => {
            let message = "a key is 12 hexadecimal digits, as `quarantine ls` shows it";
            return Err(Unanswered::Refused(message.to_owned()));
        }
        None => "/quarantine".to_owned(),
    };
    let answer = remote(bridge)?.ask(Method::DELETE, &path, None)?;
    let done = answer["data"]["done"].as_u64().unwrap_or_default();
    Ok(format!("cleared {}\n", counted(done, "key")))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    /// [ADM-14] Without a key nothing is cleared, and whoever meant all is told how to say so.
    #[test]
    fn a_key_or_all() {
        let parsed = |words: &[&str]| {
            Command::try_parse_from([&["quarantine", "clear"], words].concat())
                .map_err(|fault| fault.to_string())
        };
        let told = parsed(&[]).unwrap_err();
        assert!(told.contains("--all") && told.contains("KEY"), "{told}");
        assert!(parsed(&["--all", "3f0c9a51be27"]).is_err());
        let given = parsed(&["3f0c9a51be27"]).unwrap().args.what;
        assert!(matches!(given, What::Clear { which, .. } if which.key.is_some() && !which.all));
        let all = parsed(&["--all"]).unwrap().args.what;
        assert!(matches!(all, What::Clear { which, .. } if which.key.is_none() && which.all));
    }
}
