//! `responses-bridge check`: says what a configuration would put in force, or everything that is wrong with it.
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use super::printed;
use crate::config::{self, Config, Environment, Faults, in_force};
use crate::counted::counted;

/// The configuration is wrong.
const FAULTY: u8 = 1;
/// The file cannot be read at all.
const UNREADABLE: u8 = 2;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The configuration file; without one, the built-in configuration is checked
    #[arg(long, short, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,
    /// The same, without the flag
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Judge all but the secrets, which only the service may be able to read
    #[arg(long)]
    without_secrets: bool,
    /// Print one JSON object instead
    #[arg(long)]
    json: bool,
}

/// Exit code 0 when the configuration can be served, 1 when it has faults (on stderr), 2 when it cannot be read
/// (CFG-17, CFG-21).
pub fn run(args: &Args) -> ExitCode {
    let env: Environment<'_> = &|name| std::env::var(name).ok();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = report(args, env, &mut out, &mut err);
    let (mut stdout, mut stderr) = (io::stdout(), io::stderr());
    let printed = stdout.write_all(&out).and_then(|()| stderr.write_all(&err));
    match code {
        Ok(code) => printed::code("check", printed, code),
        Err(fault) => printed::code("check", Err(fault), FAULTY),
    }
}

fn report(args: &Args, env: Environment<'_>, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let path = args.config.as_ref().or(args.file.as_ref());
    let name = path.map_or(config::BUILT_IN.to_owned(), |path| path.display().to_string());
    let text = path.map_or(Ok(String::new()), |path| config::read(path));
    let code = if text.is_ok() { FAULTY } else { UNREADABLE };
    let mut of_secrets = false;
    let judged = text.and_then(|text| {
        let own = || Config::without_secrets(&text, &name, env);
        if args.without_secrets {
            return own();
        }
        Config::parse(&text, &name, env)
            .inspect_err(|faults| of_secrets = own().err().as_ref() != Some(faults))
    });
    let result = judged.and_then(|config| config::reach(&config).map(|()| config));
    match (&result, args.json) {
        (Ok(config), true) => {
            let told = json!({ "ok": true, "file": name, "in_force": in_force::json(config) });
            writeln!(out, "{told:#}")?;
        }
        (Ok(config), false) => {
            let but = match args.without_secrets {
                true => ", but for its secrets, which were not looked at",
                false => "",
            };
            write!(out, "ok: {name}{but}\n{}", in_force::text(config))?;
        }
        (Err(faults), true) => writeln!(
            out,
            "{:#}",
            json!({ "ok": false, "file": name, "faults": faults })
        )?,
        (Err(faults), false) => writeln!(err, "{faults}\n{}", verdict(faults, of_secrets))?,
    }
    Ok(if result.is_ok() { 0 } else { code })
}

/// `of_secrets`: some of the faults are of secrets, not of the file.
fn verdict(faults: &Faults, of_secrets: bool) -> String {
    let count = counted(faults.iter().count() as u64, "fault");
    let hint = match of_secrets {
        true => "\nWhere only the service can read the secrets, --without-secrets judges the rest.",
        false => "",
    };
    format!("{count}: the bridge would not start{hint}")
}

#[cfg(test)]
mod tests;
