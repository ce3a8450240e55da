//! From text to a well-formed [`raw::File`](super::raw::File): one walk over the parsed document, beside the schema,
//! that finds every unknown key, wrong kind, wrong unit and number out of bounds, each with its place.
use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::{Fault, Faults};
use super::raw::File;
use super::schema::{nearest_key, schema};
use super::units::{ByteSize, DURATION_FORMAT, Lapse, SIZE_FORMAT, Wrong};

/// Where each key of a file stands, by its full path.
#[derive(Debug, Default)]
pub struct Places(BTreeMap<String, Place>);

/// Line and column, from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

impl Places {
    /// None for a key that the file does not hold.
    pub fn of(&self, key: &str) -> Option<Place> {
        self.0.get(key).copied()
    }

    /// As [`Places::of`], or else the nearest table around the key that the file does hold.
    pub fn around(&self, key: &str) -> Option<Place> {
        let mut key = key;
        loop {
            if let Some(place) = self.of(key) {
                return Some(place);
            }
            key = &key[..key.rfind(['.', '['])?];
        }
    }
}

/// The full path of `key` in the table at `parent`.
pub fn key_path(parent: &str, key: &str) -> String {
    let bare = !key.is_empty()
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    let key = if bare { key.to_owned() } else { format!("{key:?}") };
    if parent.is_empty() {
        key
    } else {
        format!("{parent}.{key}")
    }
}

/// Parses `text`, and says everything that is wrong with its form (CFG-4, CFG-5, CFG-6). What is wrong is left out of the
/// file, as if it were not there.
///
/// # Errors
/// It is not TOML.
pub fn read(text: &str, file: &str) -> Result<(File, Places, Vec<Fault>), Faults> {
    let schema = schema();
    let mut walk = Walk {
        text,
        file,
        schema: &schema,
        places: Places::default(),
        faults: Vec::new(),
    };
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let place = error.span().map(|span| walk.place(span));
        walk.faults.push(Fault {
            file: file.to_owned(),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
            key: String::new(),
            problem: format!("this is not TOML: {}", error.message()),
            hint: syntax_hint(error.message()).to_owned(),
        });
    }
    if let Some(faults) = Faults::of(std::mem::take(&mut walk.faults)) {
        return Err(faults);
    }
    let value = walk.table("", document.span(), document.get_ref(), &schema);
    let Walk {
        places, mut faults, ..
    } = walk;
    // Without any other fault, only what the schema cannot say could fail here. serde's message may quote a value: it is
    // not passed on.
    let file = serde_json::from_value(value).unwrap_or_else(|_| {
        if faults.is_empty() {
            let hint = "compare it with `responses-bridge schema`";
            faults.push(Fault::of_file(
                file.to_owned(),
                "does not fit the schema".into(),
                hint,
            ));
        }
        File::default()
    });
    Ok((file, places, faults))
}

/// The parser says what it met; people mostly forgot the quotes.
fn syntax_hint(message: &str) -> &'static str {
    if message.contains("duplicate") {
        "keep one of the two"
    } else if message.contains("quoted") || message.starts_with("invalid") {
        "text, durations, sizes and addresses stand in quotes, as in heartbeat = \"10s\""
    } else {
        ""
    }
}

struct Walk<'a> {
    text: &'a str,
    file: &'a str,
    schema: &'a Value,
    places: Places,
    faults: Vec<Fault>,
}

impl Walk<'_> {
    fn table(&mut self, path: &str, span: Range<usize>, table: &DeTable<'_>, schema: &Value) -> Value {
        let mut object = Map::new();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let path = key_path(path, name);
            // Keys of `[providers]` are names, not words of ours.
            let known = schema["properties"].get(name).or_else(|| {
                schema
                    .get("additionalProperties")
                    .filter(|additional| additional.is_object())
            });
            let Some(known) = known else {
                let hint = nearest_key(self.schema, schema, name);
                self.fault(key.span(), &path, "there is no such key".into(), hint);
                continue;
            };
            let place = if value.get_ref().is_table() {
                key.span()
            } else {
                value.span()
            };
            self.remember(&path, place);
            let faults = self.faults.len();
            let read = self.value(&path, value, known);
            // What is right in a table or a list stays.
            if self.faults.len() == faults || read.is_object() || read.is_array() {
                object.insert(name.to_owned(), read);
            }
        }
        for required in strings(&schema["required"]) {
            if !table.keys().any(|key| key.get_ref() == required) {
                let known = &schema["properties"][required];
                // A required key that is not a string is a secret.
                let example = if known["type"] == "string" {
                    "\"…\""
                } else {
                    "{ env = \"NAME\" }"
                };
                let hint = format!("add {required} = {example}");
                self.fault(span.clone(), &key_path(path, required), "is missing".into(), hint);
            }
        }
        Value::Object(object)
    }

    fn value(&mut self, path: &str, value: &Spanned<DeValue<'_>>, schema: &Value) -> Value {
        let kind = kind_of(value.get_ref());
        let branches = schema["anyOf"]
            .as_array()
            .map_or(std::slice::from_ref(schema), Vec::as_slice);
        let Some(branch) = branches.iter().find(|branch| branch["type"] == kind) else {
            let hint = hint_of(schema).unwrap_or_else(|| instead(value.get_ref(), schema));
            let problem = format!("must be {}, not {}", noun(schema), found(value.get_ref()));
            self.fault(value.span(), path, problem, hint);
            return Value::Null;
        };
        match value.get_ref() {
            DeValue::Table(table) => self.table(path, value.span(), table, branch),
            DeValue::Array(array) => {
                let mut elements = Vec::new();
                for (index, element) in array.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    self.remember(&path, element.span());
                    let faults = self.faults.len();
                    let read = self.value(&path, element, &branch["items"]);
                    if self.faults.len() == faults {
                        elements.push(read);
                    }
                }
                Value::Array(elements)
            }
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::Integer(integer) => {
                let number = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
                self.within(path, value.span(), number, branch)
            }
            DeValue::String(text) => {
                if let Err(wrong) = check_text(text, branch, schema) {
                    self.fault(value.span(), path, wrong.problem, wrong.hint);
                }
                Value::String(text.as_ref().to_owned())
            }
            // No key takes these: `kind_of` matched no branch.
            DeValue::Float(_) | DeValue::Datetime(_) => Value::Null,
        }
    }

    fn within(&mut self, path: &str, span: Range<usize>, number: Option<i64>, schema: &Value) -> Value {
        let (least, most) = (
            schema["minimum"].as_i64().unwrap_or(0),
            schema["maximum"].as_i64().unwrap_or(i64::MAX),
        );
        match number {
            Some(number) if (least..=most).contains(&number) => Value::from(number),
            _ => {
                let hint = with_default(format!("write a number from {least} to {most}"), schema);
                self.fault(span, path, "is out of bounds".into(), hint);
                Value::Null
            }
        }
    }

    fn remember(&mut self, path: &str, span: Range<usize>) {
        let place = self.place(span);
        self.places.0.insert(path.to_owned(), place);
    }

    fn fault(&mut self, span: Range<usize>, key: &str, problem: String, hint: String) {
        let Place { line, column } = self.place(span);
        let (file, key) = (self.file.to_owned(), key.to_owned());
        self.faults.push(Fault {
            file,
            line: Some(line),
            column: Some(column),
            key,
            problem,
            hint,
        });
    }

    fn place(&self, span: Range<usize>) -> Place {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// Checks a string's unit, or that it is one of the words that are allowed. Only durations and sizes are quoted back:
/// any other string could be a secret in the wrong place.
fn check_text(text: &str, schema: &Value, outer: &Value) -> Result<(), Wrong> {
    let zero = match schema["format"].as_str() {
        Some(DURATION_FORMAT) => Lapse::parse(text)?.0.is_zero(),
        Some(SIZE_FORMAT) => ByteSize::parse(text)?.0 == 0,
        _ => false,
    };
    if zero && schema["x-zero"] != true {
        let hint = with_default("write more than that".into(), schema);
        return Err(Wrong {
            problem: "zero makes no sense here".into(),
            hint,
        });
    }
    let words = words_of(schema);
    if words.is_empty() || words.contains(&text) {
        return Ok(());
    }
    let near = words
        .iter()
        .find(|word| strsim::damerau_levenshtein(word, &text.to_lowercase()) <= 2);
    let choice = words
        .iter()
        .map(|word| format!("{word:?}"))
        .collect::<Vec<_>>()
        .join(", ");
    let hint = hint_of(outer)
        .or_else(|| near.map(|word| format!("did you mean {word:?}?")))
        .unwrap_or_else(|| with_default("choose one of them".into(), schema));
    let problem = if words.len() == 1 {
        format!("is a string other than {choice}")
    } else {
        format!("must be one of {choice}")
    };
    Err(Wrong { problem, hint })
}

fn words_of(schema: &Value) -> Vec<&str> {
    schema["const"]
        .as_str()
        .into_iter()
        .chain(strings(&schema["enum"]))
        .collect()
}

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn hint_of(schema: &Value) -> Option<String> {
    schema["x-hint"].as_str().map(str::to_owned)
}

fn with_default(hint: String, schema: &Value) -> String {
    match schema.get("default") {
        Some(default) => format!("{hint}, or leave the key out for {default}"),
        None => hint,
    }
}

/// The schema's word for the kind of `value`.
fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "string",
        DeValue::Integer(_) => "integer",
        DeValue::Boolean(_) => "boolean",
        DeValue::Array(_) => "array",
        DeValue::Table(_) => "object",
        DeValue::Float(_) => "number",
        DeValue::Datetime(_) => "date",
    }
}

fn found(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
        DeValue::Float(_) => "a fraction",
        DeValue::Datetime(_) => "a date",
    }
}

fn noun(schema: &Value) -> &'static str {
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (_, Some(DURATION_FORMAT)) => "a duration in quotes",
        (_, Some(SIZE_FORMAT)) => "a size in quotes",
        (Some("string"), _) => "a string",
        (Some("integer"), _) => "a whole number",
        (Some("boolean"), _) => "true or false",
        (Some("array"), _) => "a list",
        (Some("object"), _) => "a table",
        // Of the two choices that there are, one has words of its own.
        _ if schema["anyOf"][0]["type"] == "string" && words_of(&schema["anyOf"][0]).is_empty() => {
            "a string or a table"
        }
        _ => "a table or a word",
    }
}

/// What to write instead of a value of the wrong kind.
fn instead(value: &DeValue<'_>, schema: &Value) -> String {
    let number = value.as_integer().map(|integer| integer.as_str());
    let hint = match (schema["type"].as_str(), schema["format"].as_str(), number) {
        (_, Some(DURATION_FORMAT), Some(number)) => {
            return format!("write \"{number}s\" for {number} seconds");
        }
        (_, Some(SIZE_FORMAT), Some(number)) => {
            return format!("write \"{number}B\" for bytes, or \"{number}MiB\"");
        }
        (Some("integer"), ..) if value.is_str() => "write the number without quotes".to_owned(),
        (Some("boolean"), ..) if value.is_str() => "write true or false without quotes".to_owned(),
        (Some("string"), None, _) if words_of(schema).is_empty() => {
            return "put the value in quotes".to_owned();
        }
        _ => format!("write {}", noun(schema)),
    };
    with_default(hint, schema)
}

#[cfg(test)]
mod tests;
