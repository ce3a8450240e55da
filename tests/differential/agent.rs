//! An agent that keeps its conversation itself and sends all of it each time, and the ways in which such agents differ.

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

use crate::dice::{Dice, Vice};
use crate::words;
use crate::writing::{self, Style};

/// How an agent says which conversation it is.
#[derive(Clone, PartialEq)]
pub enum Signal {
    Header(&'static str, String),
    CacheKey(String),
    None,
}

pub struct Agent {
    pub tenant: u8,
    signal: Signal,
    /// `x-codex-window-id`, and whether it is in the body.
    window: Option<(u32, bool)>,
    settings: Map<String, Value>,
    pub items: Vec<Value>,
    style: Style,
    plain: bool,
    /// It names the response that it continues, instead of sending all.
    anchoring: bool,
    /// The response whose conversation is exactly `items`.
    last: Option<String>,
    /// The last turn failed: the same is sent once more.
    again: bool,
    /// An item has another id than it had, which shows as soon as ids are sent.
    other_id: bool,
    /// What the user says next to a simulated upstream.
    pub mark: Option<&'static str>,
}

/// What an agent sends.
pub struct Request {
    pub tenant: u8,
    pub headers: HeaderMap,
    pub body: String,
    pub window: Option<String>,
    /// Nothing was changed since this response completed, but what continuation must see through.
    pub calm_since: Option<String>,
    /// What was done to the conversation, for a reader.
    pub done: Vec<&'static str>,
}

impl Agent {
    pub fn new(tenant: u8, signal: Signal, opening: &[Value], dice: &mut Dice) -> Agent {
        let mut settings = Map::new();
        settings.insert("model".into(), json!("m1"));
        settings.insert("instructions".into(), json!(words::text(dice)));
        if dice.chance(60) {
            settings.insert("tools".into(), words::tools());
        }
        if dice.chance(50) {
            settings.insert("reasoning".into(), json!({"effort": "high", "summary": null}));
            settings.insert("include".into(), json!(["reasoning.encrypted_content"]));
        }
        if let Signal::CacheKey(key) = &signal {
            settings.insert("prompt_cache_key".into(), json!(key));
        }
        settings.insert("store".into(), json!(false));
        match dice.may(Vice::Storing, 100) {
            true if dice.chance(50) => drop(settings.insert("store".into(), json!(true))),
            true => drop(settings.remove("store")),
            false => {}
        }
        let style = match dice.may(Vice::Rewriting, 600) {
            true => Style::any(dice),
            false => Style::usual(),
        };
        Agent {
            tenant,
            signal,
            window: dice.chance(40).then(|| (0, dice.chance(50))),
            settings,
            items: opening.to_vec(),
            style,
            plain: !dice.may(Vice::Rewriting, 400),
            anchoring: dice.may(Vice::Anchors, 60),
            last: None,
            again: false,
            other_id: false,
            mark: None,
        }
    }

    /// The title, summary or suggestion that a program asks for beside the conversation, under the same key.
    pub fn beside(&self, dice: &mut Dice) -> Agent {
        let mut side = Agent::new(self.tenant, self.signal.clone(), &[], dice);
        if dice.chance(40) {
            side.settings = self.settings.clone();
            side.window = self.window;
        }
        match dice.below(3) {
            0 => side.items = self.items.clone(),
            1 => side.items = self.items.first().cloned().into_iter().collect(),
            _ => {}
        }
        side.settings.insert("instructions".into(), json!("make a title"));
        side
    }

    /// The next turn's request.
    pub fn ask(&mut self, dice: &mut Dice) -> Request {
        let mut done = Vec::new();
        let known = self.items.len();
        let mut calm = self.last.take();
        let again = std::mem::take(&mut self.again) || !self.items.is_empty() && dice.may(Vice::Retries, 25);
        if again {
            done.push("again");
            calm = None;
        } else {
            self.go_on(dice);
        }
        if dice.may(Vice::Edits, 60) {
            done.push(self.edit(dice));
            calm = None;
        }
        if dice.may(Vice::Settings, 40) {
            done.push(self.change_setting(dice));
            calm = None;
        }
        if dice.may(Vice::Compaction, 30) {
            done.push(self.compact(dice));
            calm = None;
        }
        if dice.may(Vice::Rewriting, 80) {
            done.push("rewritten");
            self.style = Style::any(dice);
        }
        let anchored = self.anchoring || dice.may(Vice::Anchors, 20);
        let mut anchor = None;
        let mut items = self.items.as_slice();
        if let (true, Some(last)) = (anchored, &calm) {
            done.push("anchored");
            anchor = Some(last.clone());
            items = &self.items[known..];
            calm = None;
        }
        if self.other_id || self.settings.get("store") == Some(&json!(true)) {
            calm = None;
        }
        let body = self.body(items, anchor, dice);
        Request {
            tenant: self.tenant,
            headers: self.headers(),
            body,
            window: self.window.map(|(window, _)| format!("w:{window}")),
            calm_since: calm,
            done,
        }
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Signal::Header(name, value) = &self.signal {
            headers.insert(
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        if let Some((window, false)) = self.window {
            let value = HeaderValue::from_str(&format!("w:{window}")).unwrap();
            headers.insert("x-codex-window-id", value);
        }
        headers
    }

    fn body(&self, items: &[Value], anchor: Option<String>, dice: &mut Dice) -> String {
        let mut body = self.settings.clone();
        let styled = items.iter().map(|item| self.style.item(item, dice));
        let input = Value::Array(styled.collect());
        let only_text = || {
            let [item] = items else { return None };
            let [part] = item.get("content")?.as_array()?.as_slice() else {
                return None;
            };
            let plain = item
                .as_object()?
                .keys()
                .all(|key| ["type", "role", "content"].contains(&key.as_str()));
            (plain && item["role"] == "user").then(|| part["text"].clone())
        };
        let input = match only_text() {
            Some(text) if dice.may(Vice::Rewriting, 300) => text,
            _ => input,
        };
        body.insert("input".into(), input);
        body.insert("stream".into(), json!(true));
        if let Some(anchor) = anchor {
            body.insert("previous_response_id".into(), json!(anchor));
        }
        // What nobody compares changes from turn to turn.
        let mut metadata = json!({"turn": words::number(dice)});
        if let Some((window, true)) = self.window {
            metadata["x-codex-window-id"] = json!(format!("w:{window}"));
        }
        body.insert("client_metadata".into(), metadata);
        for name in [
            "metadata",
            "user",
            "safety_identifier",
            "stream_options",
            "previous_response_id",
        ] {
            if dice.chance(10) && !body.contains_key(name) {
                let value = match name {
                    "metadata" => json!({"n": words::number(dice)}),
                    "user" | "safety_identifier" => json!(words::number(dice)),
                    _ => Value::Null,
                };
                body.insert(name.into(), value);
            }
        }
        if dice.may(Vice::Rewriting, 100) {
            body.entry("truncation").or_insert(Value::Null);
            body.entry("service_tier").or_insert(Value::Null);
        }
        writing::text(&Value::Object(body), self.plain, dice)
    }

    /// What a user, or the tools that were called, say next.
    fn go_on(&mut self, dice: &mut Dice) {
        let mark = self
            .mark
            .take()
            .map(|mark| json!({"role": "user", "content": mark}));
        let answered = |call: &Value| {
            let answers = |item: &&Value| {
                item["call_id"] == call["call_id"]
                    && item["type"]
                        .as_str()
                        .is_some_and(|kind| kind.ends_with("_output"))
            };
            self.items.iter().any(|item| answers(&item))
        };
        let kind = |item: &Value| item["type"].as_str().unwrap_or_default().to_owned();
        let calls = self.items.iter().filter(|item| kind(item).ends_with("_call"));
        let outputs: Vec<_> = calls
            .filter(|call| call.get("call_id").is_some() && !answered(call))
            .map(|call| {
                let kind = format!("{}_output", kind(call));
                json!({"type": kind, "call_id": call["call_id"], "output": words::text(dice)})
            })
            .collect();
        let called = !outputs.is_empty();
        self.items.extend(outputs);
        if mark.is_none() && (!called || dice.chance(15)) {
            self.items.push(words::user(dice));
        }
        self.items.extend(mark);
    }

    fn edit(&mut self, dice: &mut Dice) -> &'static str {
        let count = self.items.len();
        let at = dice.below(count);
        match dice.below(13) {
            0 if count > 1 => {
                let other = dice.below(count);
                self.items.swap(at, other);
                "edit: two swapped"
            }
            1 if count > 1 => {
                self.items.remove(at);
                "edit: one dropped"
            }
            2 => {
                self.items.insert(at, words::user(dice));
                "edit: one put between"
            }
            3 => {
                let twice = self.items[at].clone();
                self.items.insert(at, twice);
                "edit: one doubled"
            }
            4 => {
                self.items.truncate(at.max(1));
                "edit: cut short"
            }
            way => self.edit_item(at, way, dice),
        }
    }

    fn edit_item(&mut self, at: usize, way: usize, dice: &mut Dice) -> &'static str {
        let name = words::number(dice);
        let Some(item) = self.items[at].as_object_mut() else {
            return "edit: nothing";
        };
        let text = |item: &mut Map<String, Value>, key: &str| {
            if let Some(Value::String(text)) = item.get_mut(key) {
                text.push('x');
            }
        };
        match way {
            5 | 12 if item.contains_key("id") => {
                item.insert("id".into(), json!(format!("id_{name}")));
                self.other_id = true;
            }
            6 if item.contains_key("call_id") => text(item, "call_id"),
            7 if item.contains_key("name") => text(item, "name"),
            8 => drop(item.insert("status".into(), json!("incomplete"))),
            9 if item.get("role") == Some(&json!("user")) => {
                drop(item.insert("role".into(), json!("developer")))
            }
            10 => drop(item.insert("extra".into(), json!({"deep": {"null": null}}))),
            _ => {
                for key in ["output", "arguments", "encrypted_content", "input", "content"] {
                    text(item, key);
                }
                for part in item
                    .get_mut("content")
                    .and_then(Value::as_array_mut)
                    .into_iter()
                    .flatten()
                {
                    if let Value::Object(part) = part {
                        text(part, "text");
                    }
                }
            }
        }
        "edit: an item changed"
    }

    fn change_setting(&mut self, dice: &mut Dice) -> &'static str {
        let anew = json!(words::number(dice));
        let name = dice.pick(&[
            "model",
            "instructions",
            "tools",
            "tool_choice",
            "parallel_tool_calls",
            "reasoning",
            "text",
            "store",
            "include",
            "truncation",
            "service_tier",
            "prompt_cache_key",
            "not_known_yet",
        ]);
        let keyed = name == "prompt_cache_key" && self.signal != Signal::None;
        let value = match name {
            "tools" => json!([{"type": "function", "name": anew, "parameters": {"type": "object"}}]),
            "reasoning" | "text" => json!({"is": anew}),
            "store" if self.settings.contains_key("store") => Value::Null,
            "store" => json!(false),
            "parallel_tool_calls" => json!(dice.chance(50)),
            "include" => json!([anew]),
            _ => anew,
        };
        match value {
            _ if keyed => return "setting: none",
            Value::Null => drop(self.settings.remove(name)),
            value => drop(self.settings.insert(name.into(), value)),
        }
        "setting changed"
    }

    fn compact(&mut self, dice: &mut Dice) -> &'static str {
        if let Some((window, _)) = &mut self.window {
            *window += 1;
        }
        match dice.below(3) {
            0 => "window changed",
            1 => {
                let at = self.items.len() - dice.below(2).min(self.items.len());
                self.items.insert(at, json!({"type": "compaction_trigger"}));
                "asks to compact"
            }
            _ => {
                let last = self.items.last().cloned();
                let summary = json!({"type": "compaction", "encrypted_content": words::text(dice)});
                self.items = [Some(summary), last].into_iter().flatten().collect();
                "compacted"
            }
        }
    }

    /// The turn completed, or ended early: what came out is put behind the history. `id`: it may be continued.
    pub fn answered(&mut self, output: Vec<Value>, id: Option<String>) {
        self.items.extend(output);
        self.last = id;
    }

    /// Nothing came of it.
    pub fn failed(&mut self, dice: &mut Dice) {
        self.again = dice.chance(70);
        self.anchoring = false;
    }
}
