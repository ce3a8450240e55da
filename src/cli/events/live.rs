//! The events of a bridge that runs elsewhere, over its admin API: the latest ones, and those that come.

use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use reqwest::{Response, Url};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::line::{Shown, Style};
use super::{Ended, Wanted};
use crate::cli::printed;
use crate::cli::remote::{self, Remote, Unanswered};
use crate::store::journal::Query;
use crate::wire::sse::decode::Decoder;

/// What was there at the beginning comes at once: a pause as long as this says that it was all.
const PAUSE: Duration = Duration::from_secs(1);
/// A busy bridge makes no such pause: what has come after so long is what was there, and a little more.
const BEGINNING: Duration = Duration::from_secs(3);
/// An event is a line of a log.
const LONGEST: usize = 1 << 20;

/// Prints the latest events of the bridge at `url`, and with `follow` those that come.
pub fn show(
    wanted: &Wanted,
    url: &str,
    follow: bool,
    style: Style,
    out: &mut dyn Write,
) -> Result<(), Ended> {
    let args = remote::Args::at(url);
    let env = |name: &str| std::env::var(name).ok();
    let remote = Remote::of(&args, &env)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|fault| Ended::Unreadable(format!("cannot start: {fault}")))?;
    runtime.block_on(read(wanted, &remote, follow, style, out))
}

async fn read(
    wanted: &Wanted,
    remote: &Remote,
    follow: bool,
    style: Style,
    out: &mut dyn Write,
) -> Result<(), Ended> {
    let mut answer = remote.stream(&path(&wanted.query)).await?;
    let mut decoder = Decoder::new(LONGEST);
    let mut latest = Vec::new();
    let mut live = false;
    let until = Instant::now() + BEGINNING;
    loop {
        let chunk = match live || Instant::now() < until {
            true => next(&mut answer, remote, follow).await?,
            false => None,
        };
        let Some(chunk) = chunk else {
            if !std::mem::replace(&mut live, true) {
                if latest.is_empty() && !follow {
                    printed::note("none of that bridge's latest events is as you ask for");
                }
                let begin = latest.len().saturating_sub(wanted.query.most);
                latest
                    .drain(..)
                    .skip(begin)
                    .try_for_each(|shown| print(&shown, style, out))?;
                out.flush()?;
            }
            if follow {
                continue;
            }
            return Ok(());
        };
        decoder.feed(&chunk);
        while let Some(event) = decoder
            .next_event()
            .map_err(|fault| Ended::Unreadable(fault.to_string()))?
        {
            let Some(shown) = shown(wanted, &event.data) else {
                continue;
            };
            if live {
                print(&shown, style, out)?;
            } else {
                latest.push(shown);
            }
        }
        out.flush()?;
    }
}

/// What comes next: nothing after a pause, and nothing at the end, unless more is waited for.
async fn next(answer: &mut Response, remote: &Remote, follow: bool) -> Result<Option<Bytes>, Ended> {
    match tokio::time::timeout(PAUSE, answer.chunk()).await {
        Ok(Ok(Some(chunk))) => Ok(Some(chunk)),
        Ok(Ok(None)) if follow => Err(Ended::Unreadable("the bridge has ended".to_owned())),
        Ok(Err(_)) => Err(Ended::Unreadable(format!("{} broke off", remote.url()))),
        Ok(Ok(None)) | Err(_) => Ok(None),
    }
}

/// The bridge itself leaves out what is of another kind or account.
fn path(query: &Query) -> String {
    // Only to write the pairs as an address has them.
    let Ok(mut address) = Url::parse("http://bridge/events") else {
        return "/events".to_owned();
    };
    let pairs = [("kind", &query.kind), ("account", &query.account)];
    for (name, value) in pairs {
        if let Some(value) = value {
            address.query_pairs_mut().append_pair(name, value);
        }
    }
    let query = address.query().map(|query| format!("?{query}"));
    format!("/events{}", query.unwrap_or_default())
}

/// The log line as it is to be shown, if it is one of those asked for.
fn shown(wanted: &Wanted, line: &Bytes) -> Option<Shown> {
    let members: Map<String, Value> = serde_json::from_slice(line).ok()?;
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let at = humantime::parse_rfc3339(text("ts")?).ok()?;
    let at_ms = u64::try_from(at.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis()).ok()?;
    if wanted.query.since_ms.is_some_and(|since| at_ms < since) {
        return None;
    }
    let key = text("key").and_then(|key| super::wanted::key(key).ok());
    if wanted.key.is_some() && key != wanted.key {
        return None;
    }
    if let Some(id) = wanted.id.as_deref()
        && ![text("request_id"), text("trace_id")].contains(&Some(id))
    {
        return None;
    }
    let event = text("event")?.to_owned();
    let account = text("provider").zip(text("account"));
    let account = account.map(|(provider, account)| format!("{provider}/{account}"));
    let body = std::str::from_utf8(line).ok()?;
    if !wanted.takes_outcome(body) {
        return None;
    }
    // Time and level are made anew, as for a row.
    let body = body.find(r#""event""#).and_then(|from| body.get(from..))?;
    Some(Shown {
        at_ms,
        event,
        account,
        body: format!("{{{body}"),
    })
}

fn print(shown: &Shown, style: Style, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "{}", style.line(shown))
}

impl From<Unanswered> for Ended {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Unreachable(message) => Ended::Unreadable(message),
            Unanswered::Refused(message) => Ended::Faulty(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;
    use std::time::SystemTime;

    use super::*;
    use crate::cli::events::Args;

    fn wanted(args: Args) -> Wanted {
        Wanted::of(&args, SystemTime::UNIX_EPOCH + Duration::from_secs(1_764_475_691)).unwrap()
    }

    const LINE: &[u8] = br#"{"ts":"2025-11-30T04:08:00.000Z","level":"info","event":"turn_finished","provider":"openai","account":"main","key":"0123456789ab","total_ms":7,"request_id":"req-1"}"#;

    /// [JRN-15] A line of the stream is chosen and shown as a row of the journal is.
    #[test]
    fn a_line_is_chosen() {
        let line = Bytes::from_static(LINE);
        let given = shown(&wanted(Args::default()), &line).unwrap();
        assert_eq!(
            (given.event.as_str(), given.account.as_deref()),
            ("turn_finished", Some("openai/main"))
        );
        assert!(given.body.starts_with(r#"{"event":"turn_finished","#) && given.body.ends_with("\"req-1\"}"));
        let chosen = |args: Args| shown(&wanted(args), &line).is_some();
        let some = |text: &str| Some(text.to_owned());
        assert!(chosen(Args {
            id: some("req-1"),
            key: some("0123456789ab"),
            since: some("1m"),
            ..Args::default()
        }));
        assert!(!chosen(Args {
            id: some("req-2"),
            ..Args::default()
        }));
        assert!(!chosen(Args {
            key: some("0123456789ac"),
            ..Args::default()
        }));
        assert!(!chosen(Args {
            since: some("1s"),
            ..Args::default()
        }));
        assert!(shown(&wanted(Args::default()), &Bytes::from_static(b"{\"missed\":7}")).is_none());
    }

    /// [JRN-15] A bridge that is never quiet for a moment is shown all the same: what was there, and no more.
    #[test]
    fn a_busy_bridge() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            let event = [b"data: ", LINE, b"\n\n"].concat();
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            while stream.write_all(&event).is_ok() {
                std::thread::sleep(PAUSE / 20);
            }
        });
        let env = |name: &str| (name == "BRIDGE_ADMIN_TOKEN").then(|| "s3cret".to_owned());
        let remote = Remote::of(&remote::Args::at(&url), &env).unwrap();
        let style = Style {
            json: false,
            colour: false,
            columns: 100,
        };
        let mut out = Vec::new();
        let asked = wanted(Args {
            limit: Some(7),
            ..Args::default()
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let reading = read(&asked, &remote, false, style, &mut out);
            let read = tokio::time::timeout(3 * BEGINNING, reading).await;
            read.expect("an end in time").unwrap();
        });
        assert_eq!(String::from_utf8(out).unwrap().lines().count(), 7);
        // The connection goes with it.
        drop(runtime);
        serving.join().unwrap();
    }

    /// [JRN-18] How a turn ended is asked for here, too; what has no outcome is none of them.
    #[test]
    fn turns_are_chosen_by_their_outcome() {
        let rejected = r#"{"ts":"2025-11-30T04:08:00.000Z","event":"turn_finished","outcome":"rejected"}"#;
        let silent = rejected.replace("\"rejected\"", "\"response_created_timeout\"");
        let retired = rejected.replace("outcome", "reason");
        let chosen = |outcomes: &[&str]| {
            let outcome = outcomes.iter().map(|&outcome| outcome.to_owned()).collect();
            let wanted = wanted(Args {
                outcome,
                ..Args::default()
            });
            [rejected, &silent, &retired]
                .map(|line| shown(&wanted, &Bytes::copy_from_slice(line.as_bytes())).is_some())
        };
        assert_eq!(chosen(&[]), [true, true, true]);
        assert_eq!(chosen(&["rejected"]), [true, false, false]);
        assert_eq!(chosen(&["*timeout", "rej*"]), [true, true, false]);
        assert_eq!(chosen(&["completed"]), [false, false, false]);
    }

    /// [JRN-13] Whatever a filter holds, it is one value of the address.
    #[test]
    fn filters_are_values() {
        let args = Args {
            kind: Some("a&b=c #?*".to_owned()),
            account: Some("openai/main".to_owned()),
            ..Args::default()
        };
        assert_eq!(
            path(&wanted(args).query),
            "/events?kind=a%26b%3Dc+%23%3F*&account=openai%2Fmain"
        );
        assert_eq!(path(&Query::default()), "/events");
    }
}
