//! Scripts: TOML files with rules for turns and for upgrades. A wrong word is an error that names the line.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::behaviour::{Gate, Part, Reading, Transport};
use super::origin::Head;
use super::vocabulary;
use super::words::{Call, Params, WordError, duration, nearest, size};

/// What a simulator does without being asked in the prompt.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// Which API it is.
    pub kind: Kind,
    /// Whom responses and encrypted reasoning belong to.
    pub accounts: Accounts,
    /// Its limits.
    pub limits: Limits,
    /// Rules for upgrades, first match first.
    pub upgrades: Vec<UpgradeRule>,
    /// Rules for turns, first match first. A marker in the prompt wins over them.
    pub rules: Vec<Rule>,
}

/// Which API it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// ChatGPT below `/backend-api/`, OpenAI elsewhere.
    #[default]
    Auto,
    /// OpenAI on every path.
    Openai,
    /// ChatGPT on every path.
    Chatgpt,
}

/// Whom responses and encrypted reasoning belong to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accounts {
    /// The ChatGPT account id, else the credential.
    #[default]
    ByCredential,
    /// One account, whatever the credential: rotated keys of one owner.
    One,
}

/// Limits of the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Open sockets; an upgrade beyond them is refused.
    pub sockets: Option<u64>,
    /// The status of that refusal.
    pub refuse_with: u16,
    /// Bytes of the largest message; beyond it close code 1009.
    pub frame: usize,
    /// Age of a socket.
    pub age: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        // The ChatGPT backend closed with 1009 just above 16 MiB; OpenAI documents 60 minutes.
        Limits {
            sockets: None,
            refuse_with: 403,
            frame: 16 << 20,
            age: Duration::from_secs(3600),
        }
    }
}

/// Conditions; an absent one is met.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Match {
    /// The conversation.
    pub conversation: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The transport.
    pub transport: Option<Transport>,
    /// The request path.
    pub path: Option<String>,
    /// The n-th create of the conversation, or the n-th upgrade, counted from 1.
    pub nth: Option<u64>,
    /// Headers with these values; `"*"` is any value.
    #[serde(default)]
    pub header: BTreeMap<String, String>,
}

/// A rule for turns.
#[derive(Debug, Clone)]
pub struct Rule {
    /// When it applies.
    pub matches: Match,
    /// What then happens.
    pub parts: Vec<Part>,
}

/// A rule for upgrades.
#[derive(Debug, Clone)]
pub struct UpgradeRule {
    /// When it applies.
    pub matches: Match,
    /// How often it applies.
    pub gate: Gate,
    /// What then happens.
    pub effect: UpgradeEffect,
    /// Headers of the answer.
    pub headers: BTreeMap<String, String>,
    /// Body of a refusal; absent: an error object.
    pub body: Option<String>,
}

/// What an upgrade meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpgradeEffect {
    /// It succeeds; useful for its headers, and to end a list of rules.
    Accept,
    /// An HTTP status.
    Refuse(u16),
    /// No answer, ever.
    Hang,
    /// 101 with a wrong `sec-websocket-accept`.
    WrongAccept,
    /// It succeeds after this time.
    Slow(Duration),
    /// 101 without any header.
    Bare,
    /// FIN.
    Fin,
    /// RST.
    Reset,
    /// It succeeds, and the socket is read slowly from its first byte on.
    SlowRead(Reading),
}

const UPGRADES: &[&str] = &[
    "accept",
    "refuse",
    "hang",
    "wrong_accept",
    "slow",
    "bare_101",
    "fin",
    "reset",
    "slow_read",
];

/// Why a script cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ScriptError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong, and the nearest right word.
    pub message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScript {
    #[serde(default)]
    kind: Kind,
    #[serde(default)]
    accounts: Accounts,
    #[serde(default)]
    limits: RawLimits,
    #[serde(default)]
    upgrade: Vec<RawUpgrade>,
    #[serde(default)]
    rule: Vec<RawRule>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLimits {
    sockets: Option<u64>,
    refuse_with: Option<u16>,
    frame: Option<Spanned<String>>,
    age: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawUpgrade {
    #[serde(default, rename = "match")]
    matches: Match,
    #[serde(rename = "do")]
    effect: Spanned<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    #[serde(default, rename = "match")]
    matches: Match,
    behave: Spanned<String>,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// [`ScriptError`] names the line, the wrong word, and the nearest right one.
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        let at = |span: std::ops::Range<usize>| line_of(text, span.start);
        let raw: RawScript = toml::from_str(text).map_err(|error| ScriptError {
            line: error.span().map_or(1, at),
            message: with_nearest(error.message()),
        })?;
        let word = |spanned: &Spanned<String>, error: WordError| ScriptError {
            line: at(spanned.span()),
            message: error.to_string(),
        };
        let upgrades = raw.upgrade.into_iter().map(|raw| {
            let (gate, effect) = upgrade(raw.effect.get_ref()).map_err(|error| word(&raw.effect, error))?;
            Ok(UpgradeRule {
                matches: raw.matches,
                gate,
                effect,
                headers: raw.headers,
                body: raw.body,
            })
        });
        let rules = raw.rule.into_iter().map(|raw| {
            let calls = split_calls(raw.behave.get_ref());
            let parts: Result<Vec<Part>, WordError> = calls.into_iter().map(Part::parse).collect();
            Ok(Rule {
                matches: raw.matches,
                parts: parts.map_err(|error| word(&raw.behave, error))?,
            })
        });
        Ok(Script {
            kind: raw.kind,
            accounts: raw.accounts,
            upgrades: upgrades.collect::<Result<_, _>>()?,
            rules: rules.collect::<Result<_, _>>()?,
            limits: limits(&raw.limits).map_err(|(spanned, error)| word(spanned, error))?,
        })
    }
}

impl Match {
    /// Whether the request's head meets the conditions on it. Conditions on a create are ignored.
    pub fn meets_head(&self, head: &Head) -> bool {
        let path = self.path.as_ref().is_none_or(|path| *path == head.path);
        let mut headers = self.header.iter();
        path && headers.all(|(name, wanted)| {
            head.header(&name.to_ascii_lowercase())
                .is_some_and(|value| wanted == "*" || wanted == value)
        })
    }
}

fn limits(raw: &RawLimits) -> Result<Limits, (&Spanned<String>, WordError)> {
    let usual = Limits::default();
    let wrong = |name: &str, spanned: &Spanned<String>, expected: &str| WordError::Value {
        name: name.into(),
        value: spanned.get_ref().clone(),
        expected: expected.into(),
    };
    let frame = match &raw.frame {
        None => usual.frame,
        Some(text) => size(text.get_ref())
            .and_then(|bytes| usize::try_from(bytes).ok())
            .ok_or_else(|| (text, wrong("frame", text, "a size such as 16MiB")))?,
    };
    let age = match &raw.age {
        None => usual.age,
        Some(text) => {
            duration(text.get_ref()).ok_or_else(|| (text, wrong("age", text, "a time such as 60m")))?
        }
    };
    Ok(Limits {
        sockets: raw.sockets,
        refuse_with: raw.refuse_with.unwrap_or(usual.refuse_with),
        frame,
        age,
    })
}

fn upgrade(text: &str) -> Result<(Gate, UpgradeEffect), WordError> {
    let call = Call::parse(text)?;
    let mut params = Params::new(&call);
    let gate = vocabulary::gate(&mut params)?;
    let effect = match call.name.as_str() {
        "accept" => UpgradeEffect::Accept,
        "refuse" => {
            let status = params
                .number("status", 599)?
                .and_then(|status| u16::try_from(status).ok());
            UpgradeEffect::Refuse(status.unwrap_or(403))
        }
        "hang" => UpgradeEffect::Hang,
        "wrong_accept" => UpgradeEffect::WrongAccept,
        "slow" => UpgradeEffect::Slow(params.duration("delay")?.unwrap_or(Duration::from_secs(3))),
        "bare_101" => UpgradeEffect::Bare,
        "fin" => UpgradeEffect::Fin,
        "reset" => UpgradeEffect::Reset,
        "slow_read" => UpgradeEffect::SlowRead(vocabulary::reading(&mut params)?),
        other => {
            return Err(WordError::unknown(
                "upgrade behaviour",
                other,
                UPGRADES.iter().copied(),
            ));
        }
    };
    params.finish()?;
    Ok((gate, effect))
}

/// Splits `a(x=1, y=2) b` at the spaces that stand outside of parentheses.
fn split_calls(text: &str) -> Vec<&str> {
    let mut inside = false;
    let pieces = text.split(move |c: char| {
        inside = (inside || c == '(') && c != ')';
        c.is_whitespace() && !inside
    });
    pieces.filter(|piece| !piece.is_empty()).collect()
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// The parser lists what it expected in backticks after the wrong word; the nearest of them is proposed.
fn with_nearest(message: &str) -> String {
    let mut words = message.split('`').skip(1).step_by(2);
    let wrong = words.next().unwrap_or_default();
    match nearest(wrong, words) {
        Some(word) if message.starts_with("unknown") => format!("{message}; did you mean `{word}`?"),
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests;
