//! Where a request came from: its method, path and headers, and the account that its credential stands for.

use std::collections::BTreeMap;

/// The head of an HTTP request.
#[derive(Debug, Clone, Default)]
pub struct Head {
    /// `GET`, `POST` …
    pub method: String,
    /// The path without its query.
    pub path: String,
    /// The query without its question mark.
    pub query: String,
    /// Headers in the order in which they came, names in lower case.
    pub headers: Vec<(String, String)>,
}

/// Headers whose values are credentials.
const CREDENTIALS: &[&str] = &[
    "authorization",
    "api-key",
    "x-api-key",
    "cookie",
    "proxy-authorization",
];

impl Head {
    /// The first header of that name (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Whether a comma-separated header names this token.
    pub fn has_token(&self, name: &str, token: &str) -> bool {
        let values = self.headers.iter().filter(|(known, _)| known == name);
        values
            .flat_map(|(_, value)| value.split(','))
            .any(|word| word.trim().eq_ignore_ascii_case(token))
    }

    /// One value of the query.
    pub fn query_value(&self, name: &str) -> Option<&str> {
        self.query
            .split('&')
            .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    /// Path and query.
    pub fn target(&self) -> String {
        if self.query.is_empty() {
            self.path.clone()
        } else {
            format!("{}?{}", self.path, self.query)
        }
    }

    /// Headers for the ledger: several of one name joined by commas, credentials as [`credential_hash`].
    pub fn recorded(&self) -> BTreeMap<String, String> {
        let mut recorded: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in &self.headers {
            let hidden = CREDENTIALS.contains(&name.as_str());
            let value = if hidden {
                credential_hash(value)
            } else {
                value.clone()
            };
            let entry = recorded.entry(name.clone()).or_default();
            if !entry.is_empty() {
                entry.push_str(", ");
            }
            entry.push_str(&value);
        }
        recorded
    }

    /// The account: the ChatGPT account id, else the credential, as a short hash.
    pub fn account(&self) -> String {
        let names = ["chatgpt-account-id", "authorization", "api-key", "x-api-key"];
        names
            .iter()
            .find_map(|name| self.header(name))
            .map(credential_hash)
            .unwrap_or_default()
    }

    /// Whether the path is one of the ChatGPT backend.
    pub fn is_chatgpt(&self) -> bool {
        self.path.starts_with("/backend-api/")
    }
}

/// Eight hexadecimal digits that stand for a credential in the ledger.
pub fn credential_hash(value: &str) -> String {
    blake3::hash(value.as_bytes()).to_hex()[..8].to_owned()
}
