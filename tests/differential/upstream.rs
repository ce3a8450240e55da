//! An upstream as the protocol describes it: each socket remembers its latest response, a failed turn evicts the one that
//! it named, and stored responses are kept elsewhere too. It judges each create as it comes: does the model see what the
//! client said?

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Value, json};

use crate::dice::{Dice, Vice};
use crate::meaning;
use crate::words;

/// How a turn is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Completes,
    /// With the output in the terminal too, or not at all there, as the ChatGPT backend does.
    CompletesWithEmptyOutput,
    /// `response.done`.
    Done,
    /// The finished items come in another order than they have.
    Shuffled,
    /// One finished item is told in the terminal alone.
    LeftOut,
    /// A compaction is among the output.
    Compacts,
    /// Before the create has left whole.
    Early,
    /// Something else than the create is answered in the end.
    Steered,
    /// What it has in mind is not what it told.
    Incomplete,
    Fails,
    /// Before it is accepted.
    Refuses(u16),
    /// The socket's memory is lost.
    Forgets,
    /// "Too old": before it is accepted.
    ConnectionLimit,
    Silent,
    ClosesBefore,
    ClosesAfter,
    ClientLeaves,
}

impl Answer {
    pub fn any(dice: &mut Dice) -> Answer {
        if dice.may(Vice::Silence, 25) {
            return Answer::Silent;
        }
        if dice.may(Vice::Compaction, 10) {
            return Answer::Compacts;
        }
        if !dice.may(Vice::Answers, 120) {
            return match dice.below(4) {
                0 => Answer::CompletesWithEmptyOutput,
                _ => Answer::Completes,
            };
        }
        match dice.below(13) {
            0 => Answer::Done,
            1 => Answer::Shuffled,
            2 => Answer::LeftOut,
            3 => Answer::Early,
            4 => Answer::Steered,
            5 => Answer::Incomplete,
            6 => Answer::Fails,
            7 => Answer::Refuses([400, 429, 500][dice.below(3)]),
            8 => Answer::Forgets,
            9 => Answer::ConnectionLimit,
            10 => Answer::ClosesBefore,
            11 => Answer::ClosesAfter,
            _ => Answer::ClientLeaves,
        }
    }

    /// Whether the turn ends as the client wishes, and nothing is uncertain about it.
    pub fn is_plain(self) -> bool {
        matches!(
            self,
            Answer::Completes | Answer::CompletesWithEmptyOutput | Answer::Done | Answer::Forgets
        )
    }
}

/// What is remembered of a response.
#[derive(Clone)]
pub struct Memory {
    pub id: String,
    items: Vec<Arc<Value>>,
    settings: Arc<Value>,
    window: Option<String>,
    tenant: u8,
    /// The bridge can know it to the last item.
    pub plain: bool,
}

/// What the client asked for, as it was sent to the bridge.
pub struct Asked {
    pub body: Value,
    pub window: Option<String>,
    pub tenant: u8,
}

/// A create that has been taken.
pub struct Taken {
    items: Vec<Arc<Value>>,
    settings: Arc<Value>,
    window: Option<String>,
    tenant: u8,
    named: Option<String>,
    /// The named response is not known.
    lost: bool,
    stored: bool,
    /// The response that it names was not named by the client.
    pub by_bridge: bool,
    /// It is a request of the kind that is continued.
    plain: bool,
}

/// The events of a turn, and what the client makes of them.
#[derive(Default)]
pub struct Played {
    pub before: Vec<String>,
    pub after: Vec<String>,
    pub id: String,
    pub output: Vec<Value>,
}

#[derive(Default)]
pub struct Upstream {
    sockets: HashMap<usize, Memory>,
    stored: HashMap<String, Memory>,
    ids: usize,
}

impl Upstream {
    pub fn memory(&self, socket: usize) -> Option<&Memory> {
        self.sockets.get(&socket)
    }

    /// The socket is closed, or its memory is lost otherwise.
    pub fn forget(&mut self, socket: usize) {
        self.sockets.remove(&socket);
    }

    /// Takes a create: a frame, or over HTTP (no socket) a body. `lost`: the socket's memory was lost on purpose.
    pub fn take(
        &self,
        socket: Option<usize>,
        bytes: &[u8],
        asked: &Asked,
        lost: bool,
    ) -> Result<Taken, String> {
        let mut create: Value = serde_json::from_slice(bytes).map_err(|fault| format!("no JSON: {fault}"))?;
        if socket.is_some() {
            expect(create["type"] == "response.create", "a frame of another type")?;
            expect(
                create.get("stream").is_none() && create.get("background").is_none(),
                "stream in a frame",
            )?;
        } else {
            expect(create.get("type").is_none(), "a type over HTTP")?;
        }
        // A value has only the last of two members of one name.
        let Ok(Names(mut names)) = serde_json::from_slice(bytes) else {
            return Err("no object".into());
        };
        names.sort_unstable();
        expect(
            names.windows(2).all(|pair| pair[0] != pair[1]),
            "a member stands there twice",
        )?;
        let name = |body: &Value| body["previous_response_id"].as_str().map(str::to_owned);
        let (named, own) = (name(&create), name(&asked.body));
        let by_bridge = named.is_some() && own.is_none();
        expect(
            own.is_none() || own == named,
            "the client's own anchor was dropped",
        )?;
        let here = socket.and_then(|socket| self.sockets.get(&socket));
        let known = named.as_ref().and_then(|named| {
            let stored = || self.stored.get(named).filter(|_| !by_bridge);
            here.filter(|memory| memory.id == *named).or_else(stored)
        });
        let settings = Arc::new(meaning::settings(&create));
        if *settings != meaning::settings(&asked.body) {
            return Err(format!(
                "settings are {settings} and not {}",
                meaning::settings(&asked.body)
            ));
        }
        let new = meaning::items(&create);
        let mut items = Vec::new();
        if by_bridge {
            expect(socket.is_some(), "the bridge's anchor over HTTP")?;
            expect(known.is_some() || lost, "an anchor that upstream cannot know")?;
            expect(asked.body["store"] != true, "a stored conversation was continued")?;
            expect(!new.is_empty(), "nothing new")?;
            expect(
                !new.iter().any(meaning::is_compaction),
                "a compaction in a continuation",
            )?;
        }
        if let Some(memory) = known {
            expect(memory.tenant == asked.tenant, "another tenant's response")?;
            if by_bridge {
                expect(memory.settings == settings, "a continuation with other settings")?;
                expect(memory.window == asked.window, "a continuation in another window")?;
            }
            items.clone_from(&memory.items);
        }
        items.extend(new.into_iter().map(Arc::new));
        let said = meaning::items(&asked.body);
        if own.is_none() && known.is_some() == named.is_some() {
            let differs = meaning::difference(items.iter().map(|item| &**item), said.iter());
            if let Some(differs) = differs {
                return Err(format!("what the model sees differs: {differs}"));
            }
        }
        let lost = named.is_some() && known.is_none();
        // Its members aside from the input came as they were.
        let object = create.as_object_mut().ok_or("no object")?;
        for aside in ["metadata", "user", "safety_identifier", "client_metadata"] {
            expect(
                object.get(aside) == asked.body.get(aside),
                "a member aside was changed",
            )?;
        }
        Ok(Taken {
            items,
            settings,
            window: asked.window.clone(),
            tenant: asked.tenant,
            named,
            lost,
            stored: object.get("store").is_none_or(|store| *store != false),
            by_bridge,
            plain: own.is_none() && asked.body["store"] != true,
        })
    }

    /// Answers it. What is played `before` comes before the create has left whole.
    pub fn play(&mut self, socket: Option<usize>, taken: Taken, answer: Answer, dice: &mut Dice) -> Played {
        let mut played = Played::default();
        self.ids += 1;
        played.id = format!("resp_{}", self.ids);
        if taken.lost {
            let code = dice.pick(&["previous_response_not_found", "invalid_previous_response_id"]);
            self.evict(socket, &taken.named);
            played.after.push(error(400, code));
            return played;
        }
        match answer {
            Answer::Refuses(status) => {
                self.evict(socket, &taken.named);
                played.after.push(error(status, "odd"));
                return played;
            }
            Answer::ConnectionLimit => {
                self.evict(socket, &taken.named);
                played
                    .after
                    .push(error(400, "websocket_connection_limit_reached"));
                return played;
            }
            Answer::Silent | Answer::ClosesBefore => return played,
            _ => {}
        }
        self.accept(socket, taken, answer, &mut played, dice);
        played
    }

    fn accept(
        &mut self,
        socket: Option<usize>,
        taken: Taken,
        answer: Answer,
        played: &mut Played,
        dice: &mut Dice,
    ) {
        let mut row = Row(0);
        let mut response = json!({"id": played.id, "object": "response", "status": "in_progress", "model": "m1", "output": []});
        if dice.chance(70) {
            response["store"] = json!(taken.stored);
        }
        let created = row.event("response.created", "response", &response);
        let early = if answer == Answer::Early {
            &mut played.before
        } else {
            &mut played.after
        };
        early.push(created);
        let mut output = words::output(dice);
        if answer == Answer::Compacts {
            let at = dice.below(output.len() + 1);
            output.insert(
                at,
                json!({"id": "cmp_1", "type": "compaction", "encrypted_content": "gAAAA"}),
            );
        }
        let mut told: Vec<_> = output.iter().enumerate().collect();
        match answer {
            Answer::Shuffled => dice.shuffle(&mut told),
            Answer::LeftOut if !told.is_empty() => drop(told.remove(dice.below(told.len()))),
            Answer::Incomplete | Answer::ClosesAfter | Answer::ClientLeaves => drop(told.pop()),
            _ => {}
        }
        for (index, item) in &told {
            if dice.chance(30) {
                let delta = json!("d");
                played
                    .after
                    .push(row.event("response.output_text.delta", "delta", &delta));
            }
            let mut event =
                json!({"type": "response.output_item.done", "sequence_number": row.next(), "item": item});
            event["output_index"] = json!(index);
            played.after.push(event.to_string());
        }
        let mut items = taken.items;
        if answer == Answer::Steered {
            played.id += "s";
            response["id"] = json!(played.id);
            items.push(Arc::new(words::user(dice)));
            played
                .after
                .push(row.event("response.created", "response", &response));
        }
        items.extend(output.iter().cloned().map(Arc::new));
        let (kind, status) = match answer {
            Answer::ClosesAfter | Answer::ClientLeaves => return,
            Answer::Fails => {
                self.evict(socket, &taken.named);
                response["error"] = json!({"code": "server_error", "message": "odd"});
                ("response.failed", "failed")
            }
            Answer::Incomplete => {
                response["incomplete_details"] = json!({"reason": "max_output_tokens"});
                ("response.incomplete", "incomplete")
            }
            Answer::Done => ("response.done", "completed"),
            _ => ("response.completed", "completed"),
        };
        response["status"] = json!(status);
        let told: Vec<_> = told.into_iter().map(|(_, item)| item.clone()).collect();
        let listed = match answer {
            Answer::CompletesWithEmptyOutput | Answer::Incomplete => &[][..],
            _ => &output[..],
        };
        response["output"] = json!(listed);
        // Some clients go by the terminal, some by what came finished, as it came.
        let as_it_came = listed.is_empty() || answer == Answer::Shuffled && dice.chance(50);
        played.output = if as_it_came { told } else { output };
        played.after.push(row.event(kind, "response", &response));
        if answer == Answer::Fails {
            played.output.clear();
            return;
        }
        let memory = Memory {
            id: played.id.clone(),
            items,
            settings: taken.settings,
            window: taken.window,
            tenant: taken.tenant,
            plain: taken.plain && answer.is_plain(),
        };
        if taken.stored {
            self.stored.insert(played.id.clone(), memory.clone());
        }
        if let Some(socket) = socket {
            self.sockets.insert(socket, memory);
        }
    }

    /// The turn failed. Another response than the one that it named is still remembered; the bridge does not count on it.
    fn evict(&mut self, socket: Option<usize>, named: &Option<String>) {
        let Some(socket) = socket else { return };
        let Some(memory) = self.sockets.get_mut(&socket) else {
            return;
        };
        memory.plain = false;
        if Some(&memory.id) == named.as_ref() {
            self.sockets.remove(&socket);
        }
    }
}

/// The names of an object's members, each as often as it stands there.
struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Names, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Names, M::Error> {
                let mut names = Vec::new();
                while let Some((name, IgnoredAny)) = members.next_entry()? {
                    names.push(name);
                }
                Ok(Names(names))
            }
        }
        reader.deserialize_map(Each)
    }
}

/// The numbers of a response's events.
struct Row(usize);

impl Row {
    fn next(&mut self) -> usize {
        self.0 += 1;
        self.0 - 1
    }

    fn event(&mut self, kind: &str, name: &str, value: &Value) -> String {
        json!({"type": kind, "sequence_number": self.next(), name: value}).to_string()
    }
}

fn error(status: u16, code: &str) -> String {
    json!({"type": "error", "status": status, "error": {"type": "odd", "code": code, "message": "odd"}})
        .to_string()
}

fn expect(holds: bool, otherwise: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}
