//! The configuration as a drill takes it: judged like any other, without a look at a secret (REH-2, REH-3).
use std::path::Path;

use super::fault::Faults;
use super::policy::{Account, Config, CredentialSource};
use super::reading::Reading;

/// A configuration whose every secret is made up.
pub struct Rehearsal {
    pub config: Config,
    /// Accounts whose proxy was left out, as `provider/account`.
    pub proxied: Vec<String>,
    /// Those of them that have no sessions in earnest: plain http through an HTTP proxy.
    pub untunnelled: Vec<String>,
}

/// Checks `text` without a look at a secret. Proxies are judged where they stand in the file, and then left out.
///
/// # Errors
/// The faults that `check` finds, those of the secrets themselves excepted.
pub fn rehearsal(text: &str, file: &str, state: &Path) -> Result<Rehearsal, Faults> {
    let place = |name: &str| (name == "STATE_DIRECTORY").then(|| state.display().to_string());
    let mut config = Reading::of(text, file, &place, |_| false)?.judged()?;
    let (mut proxied, mut untunnelled) = (Vec::new(), Vec::new());
    for provider in &mut config.providers {
        let named = |account: &Account| format!("{}/{}", provider.name, account.name);
        let accounts = || provider.accounts.iter();
        let has_proxy = |account: &&Account| account.proxy.is_some() || account.unread_proxy.is_some();
        proxied.extend(accounts().filter(has_proxy).map(named));
        untunnelled.extend(
            accounts()
                .filter(|account| provider.lacks_tunnel(account))
                .map(named),
        );
        for account in &mut provider.accounts {
            (account.proxy, account.unread_proxy) = (None, None);
            // Files of credentials are followed, and this one's is not to be read.
            if let CredentialSource::File(path) = &account.source {
                account.source = CredentialSource::Env(path.display().to_string());
            }
        }
    }
    config.state.directory = state.to_owned();
    Ok(Rehearsal {
        config,
        proxied,
        untunnelled,
    })
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::config::Credential;

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
        assert!(keys.iter().all(|key| key.starts_with("made-up-")), "{keys:?}");
        for account in &config.providers[0].accounts {
            assert!(
                matches!(&account.credential, Credential::Secret(secret) if secret.expose_secret().starts_with("made-up-"))
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
