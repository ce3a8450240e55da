//! New values in the text of a configuration file, with every other byte as it was.
//!
//! By the places at which the parser saw the old ones, not by writing the document anew: that would change line ends.

use serde::Serialize;
use toml::de::{DeTable, DeValue};

/// One key that gets another value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// `table.key`.
    pub key: &'static str,
    pub from: String,
    pub to: String,
}

/// `text` with `changes`.
///
/// # Errors
/// The text is no TOML, or a key stands where no value can be put: says which line to write by hand.
pub fn spliced(text: &str, changes: &[Change]) -> Result<String, String> {
    let mut new = text.to_owned();
    for change in changes {
        new = one(&new, change).ok_or_else(|| by_hand(change))?;
    }
    // Whatever the file looks like: nothing but the values is different.
    let as_wanted = |text: &str| {
        let mut table: toml::Table = toml::from_str(text).ok()?;
        for change in changes {
            let (name, key) = change.key.split_once('.')?;
            let of = table.entry(name).or_insert_with(|| toml::Table::new().into());
            of.as_table_mut()?
                .insert(key.to_owned(), change.to.clone().into());
        }
        Some(table)
    };
    let differs = changes
        .first()
        .filter(|_| as_wanted(text) != toml::from_str(&new).ok());
    differs.map_or(Ok(new), |change| Err(by_hand(change)))
}

fn by_hand(Change { key, to, .. }: &Change) -> String {
    format!("nothing was written, for there is no plain place for {key}: write {key} = \"{to}\" by hand")
}

fn one(text: &str, change: &Change) -> Option<String> {
    let (name, key) = change.key.split_once('.')?;
    let line = format!("{key} = \"{}\"", change.to);
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let document = DeTable::parse(text).ok()?;
    let table = document
        .get_ref()
        .iter()
        .find(|(known, _)| known.get_ref() == name);
    let Some((written, table)) = table else {
        let gap = match text {
            "" => "",
            _ if text.ends_with('\n') => end,
            _ => &end.repeat(2),
        };
        return Some(format!("{text}{gap}[{name}]{end}{line}{end}"));
    };
    let DeValue::Table(members) = table.get_ref() else {
        return None;
    };
    let place = members.iter().find(|(known, _)| known.get_ref() == key);
    if let Some((_, value)) = place {
        value.get_ref().as_str()?;
        return put(text, value.span(), &format!("\"{}\"", change.to));
    }
    // The table is there in one of three ways, and the key is not in it.
    let span = written.span();
    let begin = text.get(..span.start)?.rfind('\n').map_or(0, |before| before + 1);
    let (before, after) = (
        text.get(begin..span.start)?.trim(),
        text.get(span.end..)?.trim_start(),
    );
    if before == "[" && after.starts_with(']') {
        let rest = text.get(span.end..)?;
        let Some(newline) = rest.find('\n') else {
            return Some(format!("{text}{end}{line}{end}"));
        };
        let at = span.end + newline + 1;
        return put(text, at..at, &format!("{line}{end}"));
    }
    if before.is_empty() && after.starts_with('.') {
        return put(text, begin..begin, &format!("{name}.{line}{end}"));
    }
    if before.is_empty() && after.starts_with('=') && text.get(table.span())?.starts_with('{') {
        let at = table.span().start + 1;
        let gap = if members.is_empty() { "" } else { "," };
        return put(text, at..at, &format!(" {line}{gap}"));
    }
    None
}

fn put(text: &str, at: std::ops::Range<usize>, what: &str) -> Option<String> {
    Some(format!("{}{what}{}", text.get(..at.start)?, text.get(at.end..)?))
}

#[cfg(test)]
mod tests;
