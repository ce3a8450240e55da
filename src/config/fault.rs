//! What is wrong with a configuration, said so that a person can mend it.
use std::fmt;

use serde::Serialize;

/// One thing to mend. It never quotes the file's text, which may hold a secret by mistake, beyond single words that
/// were read as a duration, a size, an address or a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub file: String,
    /// From 1. None where the file holds nothing to point at.
    pub line: Option<usize>,
    /// From 1, in characters.
    pub column: Option<usize>,
    /// The full path of the key, as in `providers.openai.accounts[0].name`; empty for the file as a whole.
    pub key: String,
    pub problem: String,
    /// What to do about it.
    pub hint: String,
}

impl Fault {
    /// A fault of the file as a whole.
    pub(super) fn of_file(file: String, problem: String, hint: &str) -> Fault {
        Fault {
            file,
            line: None,
            column: None,
            key: String::new(),
            problem,
            hint: hint.to_owned(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.problem)?;
        if !self.hint.is_empty() {
            write!(f, "\n    {}", self.hint)?;
        }
        Ok(())
    }
}

/// One or more faults, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// None when there is nothing to report.
    pub(super) fn of(mut faults: Vec<Fault>) -> Option<Faults> {
        faults.sort_by_key(|fault| (fault.line, fault.column));
        (!faults.is_empty()).then_some(Faults(faults))
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Fault> {
        self.0.iter()
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Faults {
        Faults(vec![fault])
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}
