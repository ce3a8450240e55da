//! The configuration as a drill takes it: judged like any other, without a look at a secret (REH-2, REH-3).
use std::path::Path;

use super::fault::Faults;
use super::policy::Config;
use super::raw::{self, SecretSource, Text};
use super::{document, review};

/// A configuration whose every secret is made up.
pub struct Rehearsal {
    pub config: Config,
    /// Accounts whose proxy was left out, as `provider/account`.
    pub proxied: Vec<String>,
    /// Those of them that have no sessions in earnest: plain http through an HTTP proxy.
    pub untunnelled: Vec<String>,
}

/// Checks `text` as [`Config::parse`] does, but neither environment nor secret files are read: every secret is made up from
/// the name of its place, so that those that are the same stay the same. Proxies are judged where they stand in the file,
/// and then left out.
///
/// # Errors
/// The faults that `check` finds, those of the secrets themselves excepted.
pub fn rehearsal(text: &str, file: &str, state: &Path) -> Result<Rehearsal, Faults> {
    let (mut raw, places) = document::read(text, file)?;
    let mut proxied = Vec::new();
    make_up(raw.server.admin_token.iter_mut());
    make_up(raw.clients.iter_mut().map(|client| &mut client.key));
    for (provider, table) in &mut raw.providers {
        make_up(table.headers.values_mut().filter_map(source));
        for account in &mut table.accounts {
            if let raw::Credential::Source(source) = &mut account.credential {
                make_up([source]);
            }
            make_up(account.headers.values_mut().filter_map(source));
            make_up(account.chatgpt_account_id.as_mut().and_then(source));
            if account.proxy.is_some() {
                proxied.push(format!("{provider}/{}", account.name));
            }
            // What lies outside is a secret, and no address can be made up for it.
            account.proxy.take_if(|proxy| source(proxy).is_some());
        }
    }
    let env = |name: &str| match name {
        "STATE_DIRECTORY" => Some(state.display().to_string()),
        _ => Some(made_up(name)),
    };
    let mut config = review::review(raw, places, file, &env)?;
    let mut untunnelled = Vec::new();
    for provider in &mut config.providers {
        let lacking = provider
            .accounts
            .iter()
            .filter(|account| provider.lacks_tunnel(account));
        untunnelled.extend(lacking.map(|account| format!("{}/{}", provider.name, account.name)));
        for account in &mut provider.accounts {
            account.proxy = None;
        }
    }
    config.state.directory = state.to_owned();
    Ok(Rehearsal {
        config,
        proxied,
        untunnelled,
    })
}

fn source(text: &mut Text) -> Option<&mut SecretSource> {
    match text {
        Text::Source(source) => Some(source),
        Text::Plain(_) => None,
    }
}

/// A file becomes a variable, which is made up; what names both or neither stays the fault that it is.
fn make_up<'a>(sources: impl IntoIterator<Item = &'a mut SecretSource>) {
    for source in sources {
        if source.env.is_none()
            && let Some(path) = source.file.take()
        {
            let hash = blake3::hash(path.as_os_str().as_encoded_bytes());
            source.env = Some(format!("FILE_{}", &hash.to_hex()[..16]));
        }
    }
}

fn made_up(name: &str) -> String {
    format!("rehearsal-{}", &blake3::hash(name.as_bytes()).to_hex()[..16])
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::config::{Credential, CredentialSource};

    const FILE: &str = r#"
        [server]
        admin_token = { env = "NOT_SET_ANYWHERE" }
        [[clients]]
        name = "one"
        key = { file = "/nowhere/one.key" }
        [[clients]]
        name = "two"
        key = { file = "/nowhere/two.key" }
        [providers.openai]
        base_url = "http://10.255.255.1/v1"
        headers = { "x-team" = { env = "NOT_SET_EITHER" } }
        [[providers.openai.accounts]]
        name = "main"
        credential = { file = "/nowhere/at/all" }
        proxy = { env = "NO_SUCH_PROXY" }
        [[providers.openai.accounts]]
        name = "spare"
        credential = { env = "NOT_SET_ANYWHERE_ELSE" }
        proxy = "http://10.255.255.2:3128"
    "#;

    /// [REH-2] No environment, no secret file: all of it is made up, each secret its own; proxies are dropped and named.
    #[test]
    fn no_secret_is_looked_for() {
        let made =
            rehearsal(FILE, "bridge.toml", Path::new("/tmp/x")).unwrap_or_else(|faults| panic!("{faults}"));
        let config = made.config;
        let keys: Vec<_> = config
            .clients
            .iter()
            .map(|client| client.key.expose_secret())
            .collect();
        assert_ne!(keys[0], keys[1]);
        assert!(keys.iter().all(|key| key.starts_with("rehearsal-")), "{keys:?}");
        for account in &config.providers[0].accounts {
            assert!(
                matches!(&account.credential, Credential::Secret(secret) if secret.expose_secret().starts_with("rehearsal-"))
            );
            assert!(
                matches!(account.source, CredentialSource::Env(_)),
                "nobody follows a file"
            );
            assert!(account.proxy.is_none());
        }
        assert_eq!(made.proxied, ["openai/main", "openai/spare"]);
        assert_eq!(made.untunnelled, ["openai/spare"]);
        assert_eq!(config.state.directory, Path::new("/tmp/x"));
    }

    /// [REH-3] What `check` finds wrong beside the secrets themselves is found in the same words.
    #[test]
    fn faults_are_those_of_check() {
        let faulty = FILE
            .replace("name = \"two\"", "name = \"one\"")
            .replace("http://10.255.255.2", "htp://10.255.255.2");
        let env = |name: &str| Some(format!("value-of-{name}"));
        let checked =
            crate::config::Config::parse(&faulty.replace("{ file =", "{ env ="), "bridge.toml", &env);
        let rehearsed = rehearsal(&faulty, "bridge.toml", Path::new("/tmp/x"));
        let words = |faults: &Faults| {
            let kept = faults
                .iter()
                .filter(|fault| fault.key.ends_with(".name") || fault.key.ends_with(".proxy"));
            kept.map(|fault| (fault.key.clone(), fault.problem.clone(), fault.hint.clone()))
                .collect::<Vec<_>>()
        };
        let (checked, rehearsed) = (checked.err().unwrap(), rehearsed.err().unwrap());
        assert_eq!(rehearsed.iter().count(), 2, "{rehearsed}");
        let found = words(&rehearsed);
        assert!(
            words(&checked)
                .iter()
                .filter(|fault| found.contains(fault))
                .count()
                == 2,
            "{checked}\n{rehearsed}"
        );
    }
}
