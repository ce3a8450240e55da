//! The small grammar of script and marker words: calls like `close(code=1011, after=3)`, and their values.

use std::time::Duration;

/// A word that nobody knows, or a value out of its bounds. It names the word and the nearest right one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WordError {
    /// A name that is not in the vocabulary.
    #[error("unknown {what} `{word}`{}", hint(.nearest))]
    Unknown {
        /// What the word should have been: behaviour, parameter, shape …
        what: &'static str,
        /// The word as it was written.
        word: String,
        /// The known word that looks most like it.
        nearest: Option<String>,
    },
    /// A parameter whose value cannot be used.
    #[error("`{name}={value}`: expected {expected}")]
    Value {
        /// The parameter.
        name: String,
        /// Its value as it was written.
        value: String,
        /// What it should have been.
        expected: String,
    },
    /// Text that is not of the form `name` or `name(key=value, …)`.
    #[error("`{0}` is not of the form name(key=value, …)")]
    Form(String),
}

fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map(|word| format!("; did you mean `{word}`?"))
        .unwrap_or_default()
}

impl WordError {
    /// An unknown word, with the nearest of `known` as the proposal.
    pub fn unknown<'a>(
        what: &'static str,
        word: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> WordError {
        WordError::Unknown {
            what,
            word: word.to_owned(),
            nearest: nearest(word, known),
        }
    }
}

/// The known word that looks most like `word`, if any is near enough to be worth proposing.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate.to_owned())
}

/// One `name(key=value, …)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The name before the parenthesis.
    pub name: String,
    /// Its parameters in the order in which they were written.
    pub params: Vec<(String, String)>,
}

impl Call {
    /// Reads one call.
    ///
    /// # Errors
    /// [`WordError::Form`] when the text has another form.
    pub fn parse(text: &str) -> Result<Call, WordError> {
        let text = text.trim();
        let form = || WordError::Form(text.to_owned());
        let (name, inside) = match text.split_once('(') {
            None => (text, ""),
            Some((name, rest)) => (name, rest.strip_suffix(')').ok_or_else(form)?),
        };
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(form());
        }
        let params = inside.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        let params = params.map(|pair| match pair.split_once('=') {
            Some((key, value)) => Ok((key.trim().to_owned(), value.trim().to_owned())),
            None => Err(form()),
        });
        Ok(Call {
            name: name.to_owned(),
            params: params.collect::<Result<_, _>>()?,
        })
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'
}

/// What the text of a prompt asks of the simulator.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Markers {
    /// `sim:conv=NAME`; the last one wins.
    pub conversation: Option<String>,
    /// `sim:name(…)`, as written, without the prefix.
    pub calls: Vec<String>,
}

impl Markers {
    /// All markers in `text`. A `sim:` inside a longer word (`xsim:`) is none.
    pub fn find(text: &str) -> Markers {
        let mut markers = Markers::default();
        for (at, prefix) in text.match_indices("sim:") {
            let inside_word = text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
            let rest = &text[at + prefix.len()..];
            let name = &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())];
            let after = &rest[name.len()..];
            if inside_word || name.is_empty() {
                continue;
            }
            if let (true, Some(value)) = (name == "conv", after.strip_prefix('=')) {
                let end = value.find(|c: char| !(c.is_ascii_alphanumeric() || "_.-".contains(c)));
                markers.conversation = Some(value[..end.unwrap_or(value.len())].to_owned());
                continue;
            }
            let inside = if after.starts_with('(') {
                after.find(')').map_or(0, |end| end + 1)
            } else {
                0
            };
            markers.calls.push(rest[..name.len() + inside].to_owned());
        }
        markers
    }
}

/// The parameters of one call while they are being read. It remembers which names were asked for, so that
/// a name nobody asked for can be answered with the nearest one.
pub struct Params<'a> {
    given: &'a [(String, String)],
    asked: Vec<&'static str>,
}

impl<'a> Params<'a> {
    /// The parameters of `call`.
    pub fn new(call: &'a Call) -> Params<'a> {
        Params {
            given: &call.params,
            asked: Vec::new(),
        }
    }

    /// The text of a parameter.
    pub fn text(&mut self, name: &'static str) -> Option<&'a str> {
        self.asked.push(name);
        self.given
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// A whole number within `0..=max`.
    pub fn number(&mut self, name: &'static str, max: u64) -> Result<Option<u64>, WordError> {
        self.parsed(
            name,
            || format!("a whole number up to {max}"),
            |v| v.parse().ok().filter(|n| *n <= max),
        )
    }

    /// A time with its unit: `10ms`, `2s`, `1m`. A bare `0` is allowed.
    pub fn duration(&mut self, name: &'static str) -> Result<Option<Duration>, WordError> {
        self.parsed(name, || "a time such as 10ms, 2s or 1m".into(), duration)
    }

    /// A size in bytes: `512`, `16KiB`, `1MB`; up to `max`.
    pub fn size(&mut self, name: &'static str, max: u64) -> Result<Option<u64>, WordError> {
        let expected = || format!("a size such as 512, 16KiB or 1MB, up to {max} bytes");
        self.parsed(name, expected, |v| size(v).filter(|n| *n <= max))
    }

    /// `true` or `false`.
    pub fn flag(&mut self, name: &'static str) -> Result<Option<bool>, WordError> {
        self.parsed(name, || "true or false".into(), |v| v.parse().ok())
    }

    /// One word of a closed list.
    pub fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        known: &[(&'static str, T)],
    ) -> Result<Option<T>, WordError> {
        let Some(word) = self.text(name) else {
            return Ok(None);
        };
        let found = known
            .iter()
            .find(|(known, _)| *known == word)
            .map(|(_, value)| *value);
        found
            .map(Some)
            .ok_or_else(|| WordError::unknown(name, word, known.iter().map(|(word, _)| *word)))
    }

    /// Every given parameter must have been asked for.
    pub fn finish(self) -> Result<(), WordError> {
        match self
            .given
            .iter()
            .find(|(key, _)| !self.asked.contains(&key.as_str()))
        {
            Some((key, _)) => Err(WordError::unknown("parameter", key, self.asked.iter().copied())),
            None => Ok(()),
        }
    }

    fn parsed<T>(
        &mut self,
        name: &'static str,
        expected: impl Fn() -> String,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, WordError> {
        let Some(value) = self.text(name) else {
            return Ok(None);
        };
        let wrong = || WordError::Value {
            name: name.into(),
            value: value.into(),
            expected: expected(),
        };
        parse(value).map(Some).ok_or_else(wrong)
    }
}

/// Longer waits are written as "for ever"; the bound keeps sums of times from overflowing.
const MAX_DURATION: Duration = Duration::from_secs(366 * 24 * 3600);

/// A time with its unit, or a bare `0`; up to a year.
pub fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    humantime::parse_duration(text)
        .ok()
        .filter(|time| *time <= MAX_DURATION)
}

/// A size in bytes with an optional unit of a thousand or of 1,024.
pub fn size(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let unit: u64 = match text[digits..].trim() {
        "" | "B" => 1,
        "KB" => 1_000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests;
