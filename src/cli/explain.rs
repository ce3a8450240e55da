//! `responses-bridge explain ID`: what happened to a call, or to a conversation, from the journal (EXP-1 to EXP-8).

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use crate::explain::{self, Row, Source, Story, Wanted};
use crate::runtime::operate::unix_ms;
use crate::store::journal::{self, Query, ReadFault, Reader};
use crate::wire::trace;

mod print;

use super::place::Place;
use super::printed;
use print::Paper;

/// No row is named by the id.
const NOT_FOUND: u8 = 1;
/// The journal cannot be read, or there is no way to say what is in it.
const UNREADABLE: u8 = 2;

/// Arguments of `explain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A request id, trace id (or whole traceparent), response id or session id as the client knows it, or a printed key
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    place: Place,
    /// Print one JSON object instead
    #[arg(long)]
    json: bool,
}

/// Exit code 0 when something was found, 1 when nothing was, 2 when the journal cannot be read, or the answer cannot be printed.
pub fn run(args: &Args) -> ExitCode {
    let told = args
        .place
        .directory(&|name| std::env::var_os(name))
        .and_then(|directory| tell(args, &directory).map_err(|fault| fault.to_string()));
    let (story, reader) = match told {
        Ok(told) => told,
        Err(fault) => {
            printed::complain("explain", &fault);
            return ExitCode::from(UNREADABLE);
        }
    };
    let told = match &story {
        Some(story) => found(args, story),
        None => nothing(args, &reader),
    };
    let code = match story {
        // Not to be taken for an id that is not there.
        _ if printed::is_missed(&told) => UNREADABLE,
        Some(_) => 0,
        None => NOT_FOUND,
    };
    printed::code("explain", told, code)
}

fn tell(args: &Args, directory: &Path) -> Result<(Option<Story>, Reader), ReadFault> {
    let reader = Reader::open(directory)?;
    let id = args.id.trim();
    let mut names = vec![reader.hasher().name(id)];
    names.extend(explain::key_name(id));
    names.extend(trace::id_in(id).map(|trace| reader.hasher().name(trace)));
    let evidence = explain::gather(&reader, &names)?;
    Ok((explain::explain(&evidence), reader))
}

fn found(args: &Args, story: &Story) -> io::Result<()> {
    if args.json {
        let mut told = json!({ "ok": true, "found": true });
        if let (Some(told), Ok(serde_json::Value::Object(story))) =
            (told.as_object_mut(), serde_json::to_value(story))
        {
            told.extend(story);
        }
        return writeln!(io::stdout(), "{told:#}");
    }
    Paper::on_stdout().story(story)
}

/// An id that the journal does not have, and what may be the reason.
fn nothing(args: &Args, reader: &Reader) -> io::Result<()> {
    let oldest = oldest(reader);
    // One that cannot be read is no reason to say nothing.
    let cuts = explain::cuts(reader, unix_ms()).unwrap_or_default();
    let sentence = explain::not_found(oldest, &cuts);
    if args.json {
        let told = json!({ "ok": true, "found": false, "sentence": sentence });
        return writeln!(io::stdout(), "{told:#}");
    }
    let paper = Paper::on_stdout();
    writeln!(
        io::stdout(),
        "{}",
        paper.broken(&sentence, io::stdout().is_terminal())
    )
}

/// When the oldest event that is in the journal happened. `None` where it is empty, or cannot be read.
fn oldest(reader: &Reader) -> Option<u64> {
    let query = Query {
        most: 1,
        ..Query::default()
    };
    reader.rows(&query).ok()?.first().map(|row| row.at_ms)
}

impl Source for Reader {
    type Fault = ReadFault;

    fn find(&self, name: u64, most: usize) -> Result<Vec<Row>, ReadFault> {
        Ok(rows(Reader::find(self, name, most)?))
    }

    fn rows(&self, wanted: &Wanted) -> Result<Vec<Row>, ReadFault> {
        let query = Query {
            since_ms: Some(wanted.since_ms),
            until_ms: Some(wanted.until_ms),
            after: None,
            kind: wanted.kind.map(str::to_owned),
            account: wanted.account.clone(),
            name: wanted.name,
            most: wanted.most,
            newest: wanted.newest,
        };
        Ok(rows(Reader::rows(self, &query)?))
    }
}

fn rows(rows: Vec<journal::Row>) -> Vec<Row> {
    let row = |row: journal::Row| Row {
        seq: row.seq,
        at_ms: row.at_ms,
        event: row.event,
        account: row.account,
        names: row.names,
        body: row.body,
    };
    rows.into_iter().map(row).collect()
}
