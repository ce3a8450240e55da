//! Every path but creates: stored responses, models, an echo for the rest of the API, and the simulator's own
//! control paths below `/__sim/`.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::answer::Answer;
use super::behaviour::{Effect, Fault, Part, SseForm, Transport};
use super::create::Create;
use super::faults::ErrorFrame;
use super::http::sse_event;
use super::object::to_json;
use super::origin::Head;
use super::script::{Accounts, Script};
use super::state::State;
use super::storage::Stored;
use super::transcript::{Transcript, kind};

/// Answers the simulator's own paths; `None` for all others.
pub fn control(head: &Head, body: &[u8], state: &State) -> Option<Answer> {
    let action = head.path.strip_prefix("/__sim/")?;
    let text = String::from_utf8_lossy(body);
    let wrong = |message: String| Answer::error(&ErrorFrame::invalid("simulator", message, None));
    let done = || Answer::json(r#"{"ok":true}"#);
    Some(match (head.method.as_str(), action) {
        ("GET", "ledger") => Answer::json(state.book.look(to_json)),
        ("POST", "reset") => {
            state.reset();
            done()
        }
        ("POST", "script") => match Script::parse(&text) {
            Ok(script) => {
                state.rescript(script);
                done()
            }
            Err(error) => wrong(error.to_string()),
        },
        ("POST", "end") => match Part::parse(&text).map(|part| part.effect) {
            Ok(Effect::Fault(_, Fault::End { ending, .. })) => {
                // Without an open socket nobody listens, and nothing is to be ended.
                _ = state.endings.send(ending);
                done()
            }
            Ok(_) => wrong(format!(
                "`{text}` is not a way to end a socket: close, fin, reset, mute, cut"
            )),
            Err(error) => wrong(error.to_string()),
        },
        _ => wrong("GET ledger, POST reset, POST script, POST end".into()),
    })
}

/// Answers a request that is no create.
pub fn answer(head: &Head, body: &[u8], state: &State) -> Answer {
    let path = head.path.trim_end_matches('/');
    let inside = path.rsplit_once("/responses/").map(|(_, rest)| rest);
    match (head.method.as_str(), inside) {
        ("GET", None) if path.ends_with("/models") => models(head),
        ("POST", Some("compact")) => compact(head, body, state),
        ("POST", Some("input_tokens")) => input_tokens(body),
        (method, Some(rest)) => {
            let (id, action) = rest.split_once('/').unwrap_or((rest, ""));
            stored(method, id, action, head, state)
        }
        _ => echo(head, body),
    }
}

fn stored(method: &str, id: &str, action: &str, head: &Head, state: &State) -> Answer {
    let account = match state.script.load().accounts {
        Accounts::One => String::new(),
        Accounts::ByCredential => head.account(),
    };
    let missing = || {
        let message = format!("Response with id '{id}' not found.");
        Answer::error(&ErrorFrame::invalid("not_found", message, Some("response_id")).with_status(404))
    };
    let now = Instant::now();
    match (method, action) {
        ("GET", "") => match state.storage.find(&account, id) {
            Some(stored) if head.query_value("stream") == Some("true") => resumed(head, &stored),
            Some(stored) => Answer::json(stored.object_at(now)),
            None => missing(),
        },
        ("DELETE", "") if state.storage.remove(&account, id) => {
            Answer::json(json!({"id": id, "object": "response", "deleted": true}).to_string())
        }
        ("GET", "input_items") => match state.storage.find(&account, id) {
            Some(stored) => input_items(&stored.input),
            None => missing(),
        },
        ("POST", "cancel") => match state.storage.cancel(&account, id, now) {
            Some(stored) if stored.background => Answer::json(stored.object_at(now)),
            Some(_) => {
                let message = "Cannot cancel a synchronous response.";
                Answer::error(&ErrorFrame::invalid(
                    "invalid_value",
                    message,
                    Some("response_id"),
                ))
            }
            None => missing(),
        },
        _ => missing(),
    }
}

/// The events of a stored response after number `starting_after`.
fn resumed(head: &Head, stored: &Stored) -> Answer {
    let after = head
        .query_value("starting_after")
        .and_then(|number| number.parse::<usize>().ok());
    let events = stored.events.iter().skip(after.map_or(0, |number| number + 1));
    let body: String = events
        .map(|(kind, json)| sse_event(SseForm::default(), kind, json))
        .collect();
    Answer {
        content_type: "text/event-stream; charset=utf-8",
        ..Answer::json(body)
    }
}

fn input_items(input: &Transcript) -> Answer {
    let id = |number: usize| format!("msg_{number:048}");
    let with_id = |(number, item): (usize, &Arc<Value>)| {
        let mut item = Value::clone(item);
        if let Some(object) = item.as_object_mut() {
            object.entry("id").or_insert_with(|| Value::from(id(number)));
        }
        item
    };
    // The newest comes first, as in the real API.
    let data: Vec<Value> = input.0.iter().enumerate().map(with_id).rev().collect();
    let end = |item: Option<&Value>| item.and_then(|item| item.get("id")).cloned().unwrap_or_default();
    let (first, last) = (end(data.first()), end(data.last()));
    let list = json!({"object": "list", "data": data, "first_id": first, "last_id": last, "has_more": false});
    Answer::json(list.to_string())
}

fn models(head: &Head) -> Answer {
    if head.is_chatgpt() {
        return Answer::json(r#"{"models":[]}"#);
    }
    let model =
        |id: &str| json!({"id": id, "object": "model", "created": 1_750_000_000, "owned_by": "simulator"});
    let data: Vec<Value> = ["gpt-5", "gpt-5-codex", "gpt-5-mini"].map(model).into();
    Answer::json(json!({"object": "list", "data": data}).to_string())
}

fn compact(head: &Head, body: &[u8], state: &State) -> Answer {
    let create = match Create::parse(body, Transport::Http) {
        Ok(create) => create,
        Err(error) => return Answer::error(&error),
    };
    let seed = state.seed().to_hex();
    let kept = create
        .input
        .iter()
        .filter(|item| item.get("role").is_some_and(|role| role == "user"));
    let kept = kept.filter(|item| kind(item) == "message");
    let mut output: Vec<Value> = kept.map(|item| Value::clone(item)).collect();
    let sealed = state.seal(&head.account(), &seed);
    output.push(
        json!({"type": "compaction", "id": format!("cmp_{}", &seed[..48]), "encrypted_content": sealed}),
    );
    let (input, cached) = Transcript(create.input).tokens();
    Answer::json(
        json!({
            "id": format!("resp_{}", &seed[..48]),
            "object": "response.compaction",
            "created_at": 1_790_000_000,
            "output": output,
            "usage": {
                "input_tokens": input,
                "input_tokens_details": {"cached_tokens": cached},
                "output_tokens": 64,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": input + 64,
            },
        })
        .to_string(),
    )
}

fn input_tokens(body: &[u8]) -> Answer {
    match Create::parse(body, Transport::Http) {
        Ok(create) => {
            let (tokens, _) = Transcript(create.input).tokens();
            Answer::json(json!({"object": "response.input_tokens", "input_tokens": tokens}).to_string())
        }
        Err(error) => Answer::error(&error),
    }
}

/// Says what came, so that a passed-through request can be compared. Header values stay unsaid: some are secrets.
fn echo(head: &Head, body: &[u8]) -> Answer {
    let names: Vec<&str> = head.headers.iter().map(|(name, _)| name.as_str()).collect();
    let seen = json!({
        "object": "simulator.echo",
        "method": head.method,
        "path": head.path,
        "query": head.query,
        "body_length": body.len(),
        "body_hash": blake3::hash(body).to_hex().as_str(),
        "headers": names,
    });
    Answer::json(seen.to_string())
}
