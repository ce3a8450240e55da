//! A create becomes a turn: its transcript is put together, its behaviour chosen, its score composed.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tokio::time::Instant;

use super::behaviour::{Behaviour, Part, Transport};
use super::compose;
use super::create::Create;
use super::faults::ErrorFrame;
use super::ledger;
use super::object::Identity;
use super::origin::Head;
use super::reply::{self, Ids};
use super::score::{Conclusion, Reply, Score, Step};
use super::script::{Accounts, Kind, Match};
use super::state::State;
use super::storage::Stored;
use super::transcript::{Transcript, kind};
use super::words::{Markers, WordError};

/// What a socket remembers: its latest response, and nothing else.
#[derive(Debug, Clone)]
pub struct Memory {
    /// The response.
    pub id: String,
    /// What the model saw and said.
    pub transcript: Transcript,
}

/// Where a create came from.
pub struct Origin<'a> {
    /// The head of the handshake or of the POST.
    pub head: &'a Head,
    /// How.
    pub transport: Transport,
    /// The socket's number.
    pub socket: Option<u64>,
    /// Bytes of the frame or body.
    pub bytes: usize,
    /// Frames of the message.
    pub fragments: u32,
}

/// A turn that is ready to be performed.
#[derive(Debug)]
pub struct Turn {
    /// Its number in the ledger.
    pub number: u64,
    /// What is to be done.
    pub score: Score,
    /// How it is to be done.
    pub behaviour: Behaviour,
    account: String,
    previous: Option<String>,
    store: bool,
    background: bool,
    input: Transcript,
    remembered: Memory,
}

impl Turn {
    /// Opens a turn: the create is in the ledger from here on.
    pub fn open(state: &State, create: &Create, origin: &Origin, memory: Option<&Memory>) -> Turn {
        let script = state.script.load();
        let account = match script.accounts {
            Accounts::One => String::new(),
            Accounts::ByCredential => origin.head.account(),
        };
        let chatgpt = is_chatgpt(script.kind, origin.head);
        let found = earlier(state, create, &account, memory);
        let mut transcript = found.clone().unwrap_or_default();
        transcript.0.extend(create.input.iter().cloned());
        let conversation = conversation(create, origin.head, &transcript);
        let chosen = choose(state, &conversation, create, origin, &transcript);
        let behaviour = match &chosen {
            Ok(parts) => Behaviour::assemble(parts),
            Err(_) => Behaviour {
                label: "unknown marker".into(),
                ..Behaviour::default()
            },
        };

        let seed = state.seed();
        let ids = Ids { seed: &seed };
        let id = ids.make("resp", 0);
        let encrypted = state.seal(&account, &id);
        let refusal = chosen.err().map(unknown_marker).or_else(|| match &found {
            None => Some(ErrorFrame::previous_not_found(
                create.previous.as_deref().unwrap_or_default(),
            )),
            Some(_) => foreign_reasoning(state, &account, &create.input),
        });
        let store = create.store && !chatgpt;
        let identity = Identity {
            id: id.clone(),
            created_at: unix_seconds(),
            model: create.model.clone(),
            store,
            background: create.background,
            body: create.body.clone(),
        };
        let output = match create.generate && refusal.is_none() {
            true => reply::compose(create, &transcript, &conversation, &behaviour, &ids, &encrypted),
            false => Vec::new(),
        };
        let usage = reply::usage(&transcript, &output);
        let chatgpt = chatgpt || behaviour.chatgpt;
        let reply = Reply {
            identity: &identity,
            output: &output,
            usage,
            chatgpt,
        };
        let score = match refusal {
            Some(error) => compose::refusal(error, &behaviour),
            None => compose::compose(&reply, &behaviour, origin.transport),
        };
        let said = output
            .iter()
            .filter_map(|output| serde_json::to_value(&output.item).ok())
            .map(Arc::new);
        let said: Vec<_> = said.collect();
        let record = ledger::Create {
            output: said.clone(),
            ..record(create, origin, &transcript, conversation, &id, &behaviour)
        };
        let mut whole = transcript.clone();
        whole.0.extend(said);
        Turn {
            number: state.book.created(record),
            score,
            account,
            previous: create.previous.clone(),
            store,
            background: create.background,
            input: transcript,
            remembered: Memory {
                id,
                transcript: whole,
            },
            behaviour,
        }
    }

    /// Takes note of how the turn came out, before the client is told: the ledger, the storage, and the memory of
    /// the socket. A 4xx or 5xx evicts the response that the create named.
    pub fn conclude(&self, state: &State, conclusion: Conclusion, memory: &mut Option<Memory>) {
        state.book.concluded(self.number, conclusion);
        match conclusion {
            Conclusion::Completed | Conclusion::Incomplete => {
                *memory = Some(self.remembered.clone());
                if self.store {
                    state
                        .storage
                        .keep(self.remembered.id.clone(), self.stored(Instant::now()));
                }
            }
            Conclusion::Errored(_) | Conclusion::Failed => {
                let named = |memory: &Memory| Some(&memory.id) == self.previous.as_ref();
                if memory.as_ref().is_some_and(named) {
                    *memory = None;
                }
            }
            Conclusion::Running | Conclusion::Broken | Conclusion::ClientGone => {}
        }
    }

    /// Stores a background response, which is finished when its events would all have been sent.
    pub fn start_in_background(&self, state: &State) -> String {
        let waits = self.score.steps.iter().map(|step| match step {
            Step::Wait(time)
            | Step::Repeat {
                lasting: Some(time), ..
            } => *time,
            _ => std::time::Duration::ZERO,
        });
        let stored = self.stored(Instant::now() + waits.sum::<std::time::Duration>());
        let object = stored.object_at(Instant::now());
        state.storage.keep(self.remembered.id.clone(), stored);
        state.book.concluded(self.number, Conclusion::Completed);
        object
    }

    /// Whether the response outlives its request.
    pub fn is_background(&self) -> bool {
        self.background && !self.score.full.is_empty()
    }

    fn stored(&self, ready_at: Instant) -> Stored {
        let events = self.score.steps.iter().filter_map(|step| match step {
            Step::Event { kind, json } if !kind.is_empty() => Some((*kind, json.clone())),
            _ => None,
        });
        Stored {
            account: self.account.clone(),
            object: self.score.full.as_str().into(),
            events: Arc::new(events.collect()),
            input: self.input.clone(),
            transcript: self.remembered.transcript.clone(),
            background: self.background,
            ready_at,
            cancelled: false,
        }
    }
}

/// Whether this request gets the ChatGPT backend's shapes.
pub fn is_chatgpt(kind: Kind, head: &Head) -> bool {
    match kind {
        Kind::Auto => head.is_chatgpt(),
        Kind::Openai => false,
        Kind::Chatgpt => true,
    }
}

/// What the anchor stands for: nothing without one, `None` for one that is not found.
fn earlier(state: &State, create: &Create, account: &str, memory: Option<&Memory>) -> Option<Transcript> {
    let Some(previous) = &create.previous else {
        return Some(Transcript::default());
    };
    if let Some(memory) = memory.filter(|memory| memory.id == *previous) {
        return Some(memory.transcript.clone());
    }
    state
        .storage
        .find(account, previous)
        .map(|stored| stored.transcript)
}

fn conversation(create: &Create, head: &Head, transcript: &Transcript) -> String {
    let by_client = || {
        let metadata = |name| create.metadata(name);
        metadata("thread_id")
            .or_else(|| head.header("thread-id"))
            .or_else(|| metadata("session_id"))
            .or_else(|| head.header("session-id"))
            .or_else(|| head.header("session_id"))
            .or_else(|| create.body.get("prompt_cache_key")?.as_str())
            .map(str::to_owned)
    };
    transcript
        .conversation()
        .or_else(by_client)
        .unwrap_or_else(|| "-".into())
}

/// The parts that apply: those of the prompt's markers, else those of the first rule that has any.
fn choose(
    state: &State,
    conversation: &str,
    create: &Create,
    origin: &Origin,
    transcript: &Transcript,
) -> Result<Vec<Part>, WordError> {
    let calls = Markers::find(&transcript.last_prompt()).calls;
    let parts = calls
        .iter()
        .map(|call| Part::parse(call))
        .collect::<Result<Vec<_>, _>>()?;
    if !parts.is_empty() {
        return Ok(state.open_parts(conversation, "prompt", &parts, origin.transport));
    }
    let nth = state
        .book
        .look(|ledger| ledger.conversation(conversation).total())
        + 1;
    let script = state.script.load();
    for (number, rule) in script.rules.iter().enumerate() {
        if meets(&rule.matches, conversation, create, origin, nth) {
            let open = state.open_parts(
                conversation,
                &format!("rule {number}"),
                &rule.parts,
                origin.transport,
            );
            if !open.is_empty() {
                return Ok(open);
            }
        }
    }
    Ok(Vec::new())
}

fn meets(matches: &Match, conversation: &str, create: &Create, origin: &Origin, nth: u64) -> bool {
    matches
        .conversation
        .as_ref()
        .is_none_or(|name| name == conversation)
        && matches.model.as_ref().is_none_or(|model| *model == create.model)
        && matches
            .transport
            .is_none_or(|transport| transport == origin.transport)
        && matches.nth.is_none_or(|wanted| wanted == nth)
        && matches.meets_head(origin.head)
}

fn unknown_marker(error: WordError) -> ErrorFrame {
    ErrorFrame::invalid("simulator_unknown_marker", error.to_string(), Some("input"))
}

/// Encrypted reasoning is bound to the account that made it. Only what a simulator sealed can be judged.
fn foreign_reasoning(state: &State, account: &str, input: &[Arc<Value>]) -> Option<ErrorFrame> {
    let sealed = input
        .iter()
        .filter(|item| matches!(kind(item), "reasoning" | "compaction"));
    let mut contents = sealed.filter_map(|item| item.get("encrypted_content")?.as_str());
    let foreign = contents.any(|content| state.is_foreign(account, content));
    foreign.then(|| {
        let message = "The encrypted content could not be verified. Reason: Encrypted content could not be decrypted \
                       or parsed.";
        ErrorFrame::invalid("invalid_encrypted_content", message, None)
    })
}

fn record(
    create: &Create,
    origin: &Origin,
    transcript: &Transcript,
    conversation: String,
    id: &str,
    behaviour: &Behaviour,
) -> ledger::Create {
    ledger::Create {
        number: 0,
        conversation,
        transport: origin.transport,
        socket: origin.socket,
        path: origin.head.path.clone(),
        model: create.model.clone(),
        response_id: id.to_owned(),
        previous_response_id: create.previous.clone(),
        store: create.store,
        generate: create.generate,
        bytes: origin.bytes,
        fragments: origin.fragments,
        new_items: create.input.len(),
        transcript: transcript.0.clone(),
        output: Vec::new(),
        behaviour: behaviour.label.clone(),
        conclusion: Conclusion::Running,
        at_ms: 0,
        took_ms: None,
        headers: origin.head.recorded(),
        client_metadata: create.metadata_keys(),
        traceparent: traceparent(create, origin),
        body_keys: create.body.keys().cloned().collect(),
        settings: create.settings(),
    }
}

fn traceparent(create: &Create, origin: &Origin) -> Option<String> {
    let said = create
        .metadata("ws_request_header_traceparent")
        .map(str::to_owned);
    // A handshake's is of no turn in particular.
    said.or_else(|| {
        let headers = origin.head.recorded();
        origin
            .socket
            .is_none()
            .then(|| headers.get("traceparent").cloned())?
    })
}

fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map(|since| since.as_secs())
        .unwrap_or_default()
}
