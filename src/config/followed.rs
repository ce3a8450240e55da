//! Which files beside the configuration's own decide what is in force: those that hold clients' keys and the admin token.
//!
//! Asked each second, of a text that may be half written. A [`Reading`](super::Reading) tells what a file would put in force,
//! which knows a key and a token, and no more where they came from.
use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// The files that `text` names for clients' keys and for the admin token, absolute. `file` is where the text came from. What
/// cannot be read as TOML names none; faults are told elsewhere (REL-6).
pub fn followed(text: &str, file: &Path) -> Vec<PathBuf> {
    let Ok(table) = text.parse::<Table>() else {
        return Vec::new();
    };
    let folder = file.parent().unwrap_or(Path::new(""));
    let clients = table.get("clients").and_then(Value::as_array);
    let keys = clients
        .into_iter()
        .flatten()
        .filter_map(|client| client.get("key"));
    let token = table.get("server").and_then(|server| server.get("admin_token"));
    let named = keys
        .chain(token)
        .filter_map(|source| source.get("file")?.as_str());
    named
        .map(|path| folder.join(path))
        .map(|path| std::path::absolute(&path).unwrap_or(path))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [REL-6] the files of clients' keys and of the admin token are followed; those of accounts, which are followed anyway,
    /// and what lies in the environment are not.
    #[test]
    fn which_files() {
        let text = r#"
            [server]
            admin_token = { file = "secrets/admin" }
            [[clients]]
            name = "a"
            key = { file = "/run/a" }
            [[clients]]
            name = "b"
            key = { env = "B" }
            [providers.openai]
            accounts = [{ name = "main", credential = { file = "main" } }]
        "#;
        let found = followed(text, Path::new("/etc/bridge/bridge.toml"));
        let wanted = ["/run/a", "/etc/bridge/secrets/admin"];
        assert_eq!(found, wanted.map(PathBuf::from));
        for odd in [
            "",
            "clients = 1",
            "clients = [1]",
            "server = { admin_token = 1 }",
            "[[",
        ] {
            assert_eq!(followed(odd, Path::new("x")), Vec::<PathBuf>::new(), "{odd}");
        }
    }
}
