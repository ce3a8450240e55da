//! A configuration as far as it can be told, whatever is wrong with it (CFG-21).
//!
//! Who serves takes all of it or nothing, with its secrets. A command in an operator's shell may have neither: it looks into
//! an incident while the file is wrong, and its user may not read what the service may.
use super::fault::{Fault, Faults};
use super::policy::Config;
use super::{Environment, document, review};

/// Which secrets are read, by the keys at which they stand. Any other is made up from the name of its place, so that those
/// that are the same stay the same; a proxy is told by its place alone.
pub type Reads = fn(&str) -> bool;

/// See the module.
pub struct Reading {
    /// What is wrong has its default here, or is left out.
    pub config: Config,
    form: Vec<Fault>,
    meaning: Vec<Fault>,
}

impl Reading {
    /// Reads `text`. `file` is its name in faults, and its folder is where relative paths start (CFG-15).
    ///
    /// # Errors
    /// It is not TOML.
    pub fn of(text: &str, file: &str, env: Environment<'_>, reads: Reads) -> Result<Reading, Faults> {
        let (raw, places, form) = document::read(text, file)?;
        let (config, meaning) = review::review(raw, places, file, env, reads);
        Ok(Reading {
            config,
            form,
            meaning,
        })
    }

    /// The configuration, if nothing is wrong with it. Its meaning is judged where its form is right (CFG-6).
    ///
    /// # Errors
    /// All that is wrong.
    pub fn judged(self) -> Result<Config, Faults> {
        match Faults::of(self.form).or_else(|| Faults::of(self.meaning)) {
            Some(faults) => Err(faults),
            None => Ok(self.config),
        }
    }

    /// The configuration, if nothing is wrong at `key`, below it, or with a table around it.
    ///
    /// # Errors
    /// What is wrong there.
    pub fn judged_at(self, key: &str) -> Result<Config, Faults> {
        let mut faults = [self.form, self.meaning].concat();
        faults.retain(|fault| is_in(key, &fault.key) || is_in(&fault.key, key));
        Faults::of(faults).map_or(Ok(self.config), Err)
    }
}

/// Whether `key` is `table` or below it; everything is below the file as a whole.
fn is_in(table: &str, key: &str) -> bool {
    let rest = key.strip_prefix(table);
    table.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::config::CredentialSource;

    const FILE: &str = r#"
        [server]
        listen = "127.0.0.1:8000"
        admin_token = { env = "TOKEN" }
        [[clients]]
        name = "one"
        key = { file = "/nowhere/one.key" }
        [[clients]]
        name = "two"
        key = { file = "/nowhere/two.key" }
        [providers.openai]
        headers = { "x-team" = { env = "NOT_SET" } }
        [[providers.openai.accounts]]
        name = "main"
        credential = { file = "keys/main" }
        proxy = { env = "NOT_SET" }
        [state]
        path = "/kept"
    "#;

    fn read(text: &str, reads: Reads) -> Result<Reading, Faults> {
        let env = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
        Reading::of(text, "/etc/b.toml", &env, reads)
    }

    /// [CFG-21] Neither environment nor secret file is read; each secret is its own, and its place stays the file's.
    #[test]
    fn no_secret_is_looked_for() {
        let config = read(FILE, |_| false).unwrap().judged();
        let config = config.unwrap_or_else(|faults| panic!("{faults}"));
        let token = config.server.admin_token.unwrap();
        let keys = [&config.clients[0].key, &config.clients[1].key, &token].map(|key| key.expose_secret());
        assert_ne!(keys[0], keys[1]);
        assert!(keys.iter().all(|key| key.starts_with("made-up-")), "{keys:?}");
        let account = &config.providers[0].accounts[0];
        assert_eq!(account.source, CredentialSource::File("/etc/keys/main".into()));
        assert!(account.proxy.is_none());
        assert_eq!(
            account.unread_proxy,
            Some(CredentialSource::Env("NOT_SET".into()))
        );
    }

    /// [CFG-21] What is wrong with the file beside its secrets is told in the same words, what is wrong with their places too.
    #[test]
    fn the_rest_is_judged() {
        for (right, wrong, told) in [
            (
                r#""two""#,
                r#""one""#,
                "clients[1].name: another client has this name",
            ),
            (
                "two.key",
                "one.key",
                "clients[1].key: this is also the key of one",
            ),
            ("keys/main", "~/main", "credential.file: ~ is not understood here"),
            (
                r#""TOKEN""#,
                r#""$TOKEN""#,
                "admin_token.env: is not the name of an environment variable",
            ),
            ("path =", "pth =", "state.pth: there is no such key"),
        ] {
            let faults = read(&FILE.replace(right, wrong), |_| false).and_then(Reading::judged);
            let faults = faults.unwrap_err();
            assert_eq!(faults.iter().count(), 1, "{faults}");
            assert!(faults.to_string().contains(told), "{faults}");
        }
    }

    /// [CFG-21] One secret alone is read, and what is wrong elsewhere, in form or in meaning, keeps nobody from the rest.
    #[test]
    fn a_part_of_a_faulty_file() {
        let token: Reads = |key| key == "server.admin_token";
        let form = FILE.replace(r#"name = "two""#, r#"nam = "two""#)
            + "[watchdog]\nidle = 3\n[quarantine]\nwindow = 5\n";
        let meaning = FILE.replace(r#""two""#, r#""one""#);
        for text in [FILE, &form, &meaning] {
            let server = read(text, token)
                .unwrap()
                .judged_at("server.admin_token")
                .unwrap()
                .server;
            assert_eq!(server.admin_token.unwrap().expose_secret(), "s3cret");
            assert_eq!(server.listen.port(), 8000);
            let state = read(text, |_| false)
                .unwrap()
                .judged_at("state.path")
                .unwrap()
                .state;
            assert_eq!(state.directory, std::path::Path::new("/kept"));
        }
        for wrong in [r#"{ env = "NOT_SET" }"#, "{ env = 3 }", r#""s3cret""#] {
            let text = FILE.replace(r#"{ env = "TOKEN" }"#, wrong);
            let faults = read(&text, token)
                .unwrap()
                .judged_at("server.admin_token")
                .unwrap_err();
            assert_eq!(faults.iter().next().unwrap().line, Some(4), "{faults}");
        }
        assert!(read("state = 3", token).unwrap().judged_at("state.path").is_err());
        assert!(read("[state", token).is_err());
    }
}
