//! `responses-bridge tune`: which windows the journal speaks for, and with `--apply` into the configuration (TUNE-1 to
//! TUNE-11).

use std::fmt::Write;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::events::{unknown_account, wanted};
use super::{printed, terminal};
use crate::config::{self, Config, Environment};
use crate::lapse::written_ms;
use crate::store::journal::{Query, ReadFault, Reader};
use crate::tune::{self, Evidence, InForce, Report, Row};

mod difference;
mod replace;
mod splice;

use splice::Change;

/// The configuration is wrong, or is not to be changed.
const FAULTY: u8 = 1;
/// The configuration or the journal cannot be read at all.
const UNREADABLE: u8 = 2;

#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// The configuration file, whose windows are judged; without one, those of the built-in configuration
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The folder of the bridge's state, with `state.db` in it; without it, where the configuration says
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Only what happened in the last 7d, or since 2026-11-30T04:00:00Z; without it, all that the journal has
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only turns of this model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Only what happened at this account, named as account or provider/account
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<String>,
    /// Print one JSON object instead
    #[arg(long)]
    json: bool,
    /// Write what is recommended into the configuration file, and leave every other byte of it as it is
    #[arg(long)]
    apply: bool,
    /// Only show what --apply would write, with --apply or without it
    #[arg(long)]
    dry_run: bool,
}

impl Args {
    /// Whether it is about the file's text.
    fn changes(&self) -> bool {
        self.apply || self.dry_run
    }
}

/// Exit code 0 after a report, 1 where the configuration has faults or is not changed, 2 where the configuration or the
/// journal cannot be read (TUNE-11).
pub fn run(args: &Args) -> ExitCode {
    let env: Environment<'_> = &|name| std::env::var(name).ok();
    let mut page = String::new();
    // What was asked for is done before anything is said: whether somebody reads is another matter.
    let tuned = tuned(args, env, SystemTime::now(), &mut page);
    let printed = printed::print(&page);
    let code = match tuned {
        Ok(written) => {
            if written && printed::is_missed(&printed) {
                printed::complain(
                    "tune",
                    "the configuration was written, though that could not be told",
                );
            }
            0
        }
        Err(Ended { code, problem }) => {
            printed::complain("tune", &problem);
            code
        }
    };
    printed::code("tune", printed, code)
}

/// Why there is no report, or no change.
#[derive(Debug)]
struct Ended {
    code: u8,
    problem: String,
}

impl Ended {
    fn faulty(problem: impl ToString) -> Ended {
        Ended {
            code: FAULTY,
            problem: problem.to_string(),
        }
    }

    fn unreadable(problem: impl ToString) -> Ended {
        Ended {
            code: UNREADABLE,
            problem: problem.to_string(),
        }
    }
}

/// The configuration file as it was read.
struct File {
    path: PathBuf,
    text: String,
}

/// Does what is asked for, and writes into `page` what there is to say about it. True where the configuration was written.
fn tuned(args: &Args, env: Environment<'_>, now: SystemTime, page: &mut String) -> Result<bool, Ended> {
    if args.changes() && (args.model.is_some() || args.account.is_some()) {
        return Err(Ended::faulty(
            "--apply: what one model or account speaks for is no reason to change the windows of all; leave --model and \
             --account out",
        ));
    }
    let file = match &args.config {
        Some(path) => Some(File {
            path: path.clone(),
            text: config::read(path).map_err(Ended::unreadable)?,
        }),
        None => None,
    };
    let config = match &file {
        Some(file) => Config::without_secrets(&file.text, &file.path.display().to_string(), env),
        None => Config::built_in(env),
    };
    let config = config.map_err(Ended::faulty)?;
    if args.changes() && file.is_none() {
        return Err(Ended::faulty(
            "--apply: there is no configuration file to keep a value in: name it with --config",
        ));
    }
    let (report, nothing) = report(args, &config, now)?;
    let changes = changes(&report);
    if args.json {
        let told = as_json(args, env, &report, file.as_ref(), &changes)?;
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(page, "{told:#}");
        return Ok(told["written"] == true);
    }
    if let Some(nothing) = nothing {
        let _ = writeln!(page, "{nothing}");
        return Ok(false);
    }
    let bold = terminal::is_coloured(&io::stdout());
    let at = |ms| humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(ms)).to_string();
    page.push_str(&tune::text(&report, bold, at));
    if let (true, Some(file)) = (args.changes(), &file) {
        if changes.is_empty() {
            page.push_str("\nNothing to write: no window has a recommendation.\n");
            return Ok(false);
        }
        let text = changed(file, &changes, env)?;
        let _ = write!(page, "\n{}", difference::between(&file.path, &file.text, &text));
        if args.dry_run {
            page.push_str("\nNothing was written.\n");
        } else {
            replace::replace(&file.path, &file.text, &text).map_err(Ended::faulty)?;
            let _ = writeln!(page, "\nWritten to {}.", file.path.display());
            return Ok(true);
        }
    }
    Ok(false)
}

fn as_json(
    args: &Args,
    env: Environment<'_>,
    report: &Report,
    file: Option<&File>,
    changes: &[Change],
) -> Result<serde_json::Value, Ended> {
    let mut told = json!({ "evidence": {
        "rows": report.rows,
        "unreadable": report.unreadable,
        "from_ms": report.span.map(|(from, _)| from),
        "to_ms": report.span.map(|(_, to)| to),
    }});
    told["sections"] = report.sections.iter().map(tune::Section::json).collect();
    if let (true, Some(file)) = (args.changes(), file) {
        let text = changed(file, changes, env)?;
        let write = !args.dry_run && !changes.is_empty();
        if write {
            replace::replace(&file.path, &file.text, &text).map_err(Ended::faulty)?;
        }
        told["changes"] = json!(changes);
        told["written"] = json!(write);
    }
    Ok(told)
}

/// What the journal says about the windows of `config`; and why that is nothing, where a model or an account was asked for
/// that it has nothing of.
fn report(args: &Args, config: &Config, now: SystemTime) -> Result<(Report, Option<String>), Ended> {
    let since = args.since.as_deref().map(|text| wanted::since(text, now));
    let query = Query {
        since_ms: since.transpose().map_err(Ended::faulty)?,
        account: args.account.clone(),
        most: usize::MAX,
        ..Query::default()
    };
    let own_max_age = config
        .providers
        .iter()
        .filter(|provider| provider.max_age.is_some());
    let own_max_age = own_max_age.map(|provider| provider.name.clone()).collect();
    let mut evidence = Evidence::new(args.model.as_deref(), own_max_age);
    let directory = args.state.as_ref().unwrap_or(&config.state.directory);
    let reader = Reader::open(directory).map_err(Ended::unreadable)?;
    reader
        .each(&query, |row| {
            evidence.take(Row {
                at_ms: row.at_ms,
                event: &row.event,
                body: &row.body,
            });
            ControlFlow::Continue(())
        })
        .map_err(Ended::unreadable)?;
    let read = evidence.read();
    let nothing = match read.rows {
        0 => nothing(args, &reader, &read.others).map_err(Ended::unreadable)?,
        _ => None,
    };
    Ok((tune::report(&read, in_force(config)), nothing))
}

fn nothing(args: &Args, reader: &Reader, others: &[String]) -> Result<Option<String>, ReadFault> {
    if let Some(account) = &args.account
        && let Some(unknown) = unknown_account(reader, account)?
    {
        return Ok(Some(format!("Evidence: none; {unknown}")));
    }
    Ok(args.model.as_deref().map(|model| {
        let others = match others {
            [] => "nor of any other".to_owned(),
            others => format!("but of {}", others.join(", ")),
        };
        format!("Evidence: none of model {}, {others}", wanted::quoted(model))
    }))
}

fn in_force(config: &Config) -> InForce {
    let ms = |lapse: Duration| u64::try_from(lapse.as_millis()).unwrap_or(u64::MAX);
    InForce {
        created_ms: ms(config.watchdog.response_created_deadline),
        created_most_ms: ms(config::longest_created(config)),
        idle_ms: ms(config.watchdog.idle_deadline),
        idle_most_ms: ms(config.watchdog.request_deadline),
        window_ms: ms(config.quarantine.window),
        max_window_ms: ms(config.quarantine.max_window),
        max_age_ms: ms(config.session.max_age),
        idle_ttl_ms: ms(config.session.idle_ttl),
    }
}

fn changes(report: &Report) -> Vec<Change> {
    let changes = report.sections.iter().filter_map(|section| {
        let to_ms = section.verdict.value()?;
        Some(Change {
            key: section.key,
            from: written_ms(section.in_force_ms),
            to: written_ms(to_ms),
        })
    });
    changes.collect()
}

/// The text of the file with the changes, if it can be served.
fn changed(file: &File, changes: &[Change], env: Environment<'_>) -> Result<String, Ended> {
    let text = splice::spliced(&file.text, changes)
        .map_err(|problem| Ended::faulty(format!("--apply: {problem}")))?;
    let name = file.path.display().to_string();
    Config::without_secrets(&text, &name, env).map_err(|faults| {
        Ended::faulty(format!(
            "--apply: nothing was written, for it would not do:\n{faults}"
        ))
    })?;
    Ok(text)
}
