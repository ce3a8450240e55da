//! `responses-bridge events`: what happened, from the journal of a running bridge or of a dead one.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use super::place::Place;
use super::printed;
use super::terminal::{COLUMNS, is_coloured, plain};
use crate::event;
use crate::store::journal::{Query, ReadFault, Reader, Row, glob};

mod line;
mod live;
pub(super) mod wanted;
mod words;

use line::{Shown, Style};

/// What was asked for means nothing.
const FAULTY: u8 = 1;
/// There is no journal that could be read.
const UNREADABLE: u8 = 2;

/// Without a time the newest of so many are shown.
const LATEST: usize = 100;
/// And before following, as many as one sees at once.
const BEFORE: usize = 10;
/// Accounts that are named where another one was asked for.
const NAMED: usize = 10;
/// How often a followed journal is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// Rows that are read at once while following.
const AT_ONCE: usize = 1000;

#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Events of the last 10m, or since 2026-11-30T04:00:00Z; without it, the latest 100
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Events of this name; * stands for any text, as in 'quarantine*'
    #[arg(long, value_name = "NAME")]
    kind: Option<String>,
    /// Turns that ended so, as in rejected or 'connect_*'; can be given several times
    #[arg(long, value_name = "OUTCOME")]
    outcome: Vec<String>,
    /// Events at this account, named as account or provider/account
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<String>,
    /// Events of the conversation with this key, as events show it
    #[arg(long, value_name = "HASH")]
    key: Option<String>,
    /// Events of this request id, trace id, response id or session id, as a user knows it
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Show so many at most, the latest
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Go on showing events as they happen
    #[arg(long, short)]
    follow: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Ask a running bridge at this address, with the admin token in BRIDGE_ADMIN_TOKEN, for its latest 512 events instead
    #[arg(long, value_name = "URL", conflicts_with_all = ["config", "state"])]
    url: Option<String>,
    #[command(flatten)]
    place: Place,
}

/// Exit code 0 when the journal was read, 1 when something else was asked for than there can be, 2 when there is no journal
/// that can be read (JRN-13).
pub fn run(args: &Args) -> ExitCode {
    let out = io::stdout();
    let style = Style {
        json: args.json,
        colour: is_coloured(&out),
        columns: COLUMNS,
    };
    match show(args, style, &mut out.lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ended::Unprinted(fault)) => printed::code("events", Err(fault), 0),
        Err(Ended::Faulty(problem)) => told(&problem, FAULTY),
        Err(Ended::Unreadable(problem)) => told(&problem, UNREADABLE),
    }
}

fn told(problem: &str, code: u8) -> ExitCode {
    printed::complain("events", problem);
    ExitCode::from(code)
}

/// Why it is over.
#[derive(Debug)]
enum Ended {
    /// Nobody reads any more, or it cannot be printed.
    Unprinted(io::Error),
    Faulty(String),
    Unreadable(String),
}

impl From<ReadFault> for Ended {
    fn from(fault: ReadFault) -> Self {
        Ended::Unreadable(fault.to_string())
    }
}

impl From<io::Error> for Ended {
    fn from(fault: io::Error) -> Self {
        Ended::Unprinted(fault)
    }
}

/// What is asked for, checked.
struct Wanted {
    query: Query,
    /// Beside the query's name, which is the id's then.
    key: Option<u64>,
    id: Option<String>,
    /// Patterns of outcomes, of which a turn has one of any; empty: whatever it has, and other events too.
    outcomes: Vec<String>,
}

impl Wanted {
    fn of(args: &Args, now: SystemTime) -> Result<Wanted, String> {
        let since = args.since.as_deref().map(|text| wanted::since(text, now));
        let plain =
            |flag, text: &Option<String>| text.as_deref().map(|text| wanted::plain(flag, text)).transpose();
        let usual = match (args.follow, &since) {
            (_, Some(_)) => usize::MAX,
            (true, None) => BEFORE,
            (false, None) => LATEST,
        };
        // Followed, it shows what comes alone.
        if args.limit == Some(0) && !args.follow {
            return Err(
                "--limit: 0 shows nothing but what comes, with --follow; leave it out for the latest 100"
                    .to_owned(),
            );
        }
        let outcomes = args
            .outcome
            .iter()
            .map(|outcome| wanted::plain("--outcome", outcome));
        Ok(Wanted {
            query: Query {
                since_ms: since.transpose()?,
                kind: plain("--kind", &args.kind)?,
                account: plain("--account", &args.account)?,
                most: args.limit.unwrap_or(usual),
                ..Query::default()
            },
            key: args.key.as_deref().map(wanted::key).transpose()?,
            id: args.id.as_deref().map(wanted::id).transpose()?,
            outcomes: outcomes.collect::<Result<_, _>>()?,
        })
    }

    /// The query in this journal, whose key it takes to find an id.
    fn query(&self, reader: &Reader) -> Query {
        let id = self.id.as_deref().map(|id| reader.hasher().name(id));
        Query {
            name: id.or(self.key),
            ..self.query.clone()
        }
    }

    /// Whether a row that the query gives is one of those asked for.
    fn takes(&self, row: &Row) -> bool {
        self.key.is_none_or(|key| row.names.contains(&key)) && self.takes_outcome(&row.body)
    }

    /// Whether an event, as its JSON object, ended as is asked for.
    fn takes_outcome(&self, body: &str) -> bool {
        let outcome = || serde_json::from_str::<Ending<'_>>(body).ok()?.outcome;
        self.outcomes.is_empty()
            || outcome().is_some_and(|outcome| {
                let mut patterns = self.outcomes.iter();
                patterns.any(|pattern| glob::matches(pattern, &outcome))
            })
    }
}

/// How a turn ended.
#[derive(serde::Deserialize)]
struct Ending<'a> {
    #[serde(borrow)]
    outcome: Option<Cow<'a, str>>,
}

/// What is said where nothing was found. Incidents of which the journal itself is a part are told elsewhere.
const NOTHING: &str = "no event in the journal is as you ask for; while it cannot be written (a full disk, say) it has nothing of \
                       now: `responses-bridge status` and the bridge's log tell";

fn show(args: &Args, style: Style, out: &mut dyn Write) -> Result<(), Ended> {
    let wanted = Wanted::of(args, SystemTime::now()).map_err(Ended::Faulty)?;
    if let Some(url) = &args.url {
        return live::show(&wanted, url, args.follow, style, out);
    }
    let directory = args
        .place
        .directory(&|name| std::env::var_os(name))
        .map_err(Ended::Unreadable)?;
    let reader = Reader::open(&directory)?;
    let seen = latest(&reader, &wanted, style, out)?;
    if seen.shown == 0
        && let Some(unknown) = unknown(&reader, &wanted)?
    {
        printed::note(&unknown);
    } else if seen.shown == 0 && !args.follow {
        printed::note(NOTHING);
    } else if seen.more && !args.follow {
        let shown = seen.shown;
        printed::note(&format!(
            "the latest {shown} of more: --since and --limit show others"
        ));
    }
    match args.follow {
        true => follow(reader, &directory, &wanted, seen.newest, style, out),
        false => Ok(()),
    }
}

fn unknown(reader: &Reader, wanted: &Wanted) -> Result<Option<String>, Ended> {
    match &wanted.query.account {
        Some(account) => Ok(unknown_account(reader, account)?),
        None => Ok(None),
    }
}

/// Why there is nothing, where an account is asked for that nothing ever happened at: misspelt, more often than not.
pub(super) fn unknown_account(reader: &Reader, account: &str) -> Result<Option<String>, ReadFault> {
    let known = reader.accounts()?;
    if known.iter().any(|known| event::is_at(known, account)) {
        return Ok(None);
    }
    let account = wanted::quoted(account);
    Ok(Some(match &known[..] {
        [] => format!("the journal knows no account {account}, nor any other: nothing has happened at one"),
        known => {
            let names: Vec<&str> = known.iter().take(NAMED).map(String::as_str).collect();
            let more = if known.len() > NAMED { " …" } else { "" };
            format!(
                "the journal knows no account {account}, but {}{more}",
                plain(&names.join(" "))
            )
        }
    }))
}

/// Prints what was.
fn latest(reader: &Reader, wanted: &Wanted, style: Style, out: &mut dyn Write) -> Result<Seen, Ended> {
    // Before the look: what comes meanwhile is shown once, by whoever goes on from here.
    let newest = reader.newest()?;
    let query = wanted.query(reader);
    let (most, mut shown, mut more) = (query.most, 0, false);
    let bounded = most != usize::MAX;
    let mut rows = VecDeque::new();
    let mut gone = None;
    let query = Query {
        most: usize::MAX,
        newest: bounded,
        ..query
    };
    let read = reader.each(&query, |row| {
        if row.seq > newest || !wanted.takes(&row) {
            return ControlFlow::Continue(());
        }
        if bounded && rows.len() == most {
            more = true;
            return ControlFlow::Break(());
        }
        shown += 1;
        if bounded {
            rows.push_front(row);
            return ControlFlow::Continue(());
        }
        match print(row, style, out) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                gone = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    for row in rows {
        print(row, style, out)?;
    }
    out.flush()?;
    if let Some(fault) = gone {
        return Err(Ended::Unprinted(fault));
    }
    read?;
    Ok(Seen { newest, shown, more })
}

/// What was looked through and printed.
struct Seen {
    /// The number of the last row that there was.
    newest: u64,
    shown: usize,
    /// There were others, which are older.
    more: bool,
}

/// Shows what comes, for as long as somebody reads it. The bridge may end and come back meanwhile, and its file be replaced.
fn follow(
    mut reader: Reader,
    directory: &Path,
    wanted: &Wanted,
    mut seen: u64,
    style: Style,
    out: &mut dyn Write,
) -> Result<(), Ended> {
    let (mut usable, mut told) = (true, false);
    loop {
        std::thread::sleep(LOOK);
        if !usable || !reader.is_current() {
            match Reader::open(directory) {
                Ok(now) => {
                    // Rows of another file count from its beginning.
                    if !now.is_same(&reader) {
                        seen = 0;
                    }
                    (reader, usable, told) = (now, true, false);
                }
                Err(fault) => {
                    if !std::mem::replace(&mut told, true) {
                        printed::complain("events", &format!("waiting: {fault}"));
                    }
                    continue;
                }
            }
        }
        match coming(&reader, wanted, seen, style, out) {
            Ok(newest) => seen = newest,
            Err(Ended::Unreadable(_)) => usable = false,
            Err(ended) => return Err(ended),
        }
    }
}

/// Prints what has come after the row `seen`, and gives the last one now.
fn coming(
    reader: &Reader,
    wanted: &Wanted,
    mut seen: u64,
    style: Style,
    out: &mut dyn Write,
) -> Result<u64, Ended> {
    let newest = reader.newest()?;
    if newest <= seen {
        return Ok(seen);
    }
    let mut query = wanted.query(reader);
    (query.most, query.newest) = (AT_ONCE, false);
    loop {
        query.after = Some(seen);
        let rows = reader.rows(&query)?;
        let all = rows.len() < AT_ONCE;
        for row in rows {
            seen = row.seq;
            if wanted.takes(&row) {
                print(row, style, out)?;
            }
        }
        out.flush()?;
        if all {
            return Ok(seen.max(newest));
        }
    }
}

fn print(row: Row, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let shown = Shown {
        at_ms: row.at_ms,
        event: row.event,
        account: row.account,
        body: row.body,
    };
    let mut line = style.line(&shown);
    line.push('\n');
    out.write_all(line.as_bytes())
}
