//! Where relative paths start, and where the state lies.
use std::fs;

use responses_bridge::config::{Config, Credential, CredentialSource};
use secrecy::ExposeSecret;

use crate::environment;

/// [CFG-10] [CFG-15] Relative paths start at the configuration file's folder, not where the process runs.
#[test]
fn relative_paths_start_at_the_files_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("secrets")).expect("a folder");
    fs::write(folder.path().join("secrets/openai"), "  sk-from-a-file\r\n").expect("it can be written");
    fs::write(folder.path().join("ca.pem"), "-----BEGIN CERTIFICATE-----\n").expect("it can be written");
    let file = folder.path().join("bridge.toml");
    let text = r#"
        [providers.openai]
        ca_file = "ca.pem"
        accounts = [{ name = "main", credential = { file = "secrets/openai" } }]
        [state]
        path = "state"
    "#;
    fs::write(&file, text).expect("it can be written");
    let config = Config::load(Some(&file), &environment).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(config.state.directory, folder.path().join("state"));
    let openai = &config.providers[0];
    assert_eq!(openai.ca_file.as_deref(), Some(&*folder.path().join("ca.pem")));
    assert_eq!(
        openai.accounts[0].source,
        CredentialSource::File(folder.path().join("secrets/openai"))
    );
    match &openai.accounts[0].credential {
        Credential::Secret(secret) => assert_eq!(secret.expose_secret(), "sk-from-a-file"),
        Credential::Client => panic!("the file's secret counts"),
    }
}

/// [CFG-15] The state's default place, in the order of the design.
#[test]
fn the_state_has_a_default_place() {
    let place = |variables: &[(&str, &str)]| {
        let env = |name: &str| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        };
        Config::built_in(&env).map(|config| config.state.directory.display().to_string())
    };
    let (home, xdg) = (("HOME", "/home/me"), ("XDG_STATE_HOME", "/xdg"));
    let systemd = ("STATE_DIRECTORY", "/var/lib/bridge:/var/lib/other");
    assert_eq!(place(&[home, xdg, systemd]).as_deref(), Ok("/var/lib/bridge"));
    assert_eq!(place(&[home, xdg]).as_deref(), Ok("/xdg/responses-bridge"));
    assert_eq!(
        place(&[home]).as_deref(),
        Ok("/home/me/.local/state/responses-bridge")
    );
    assert_eq!(
        place(&[home, ("XDG_STATE_HOME", "relative")]).as_deref(),
        Ok("/home/me/.local/state/responses-bridge")
    );
    let faults = place(&[]).expect_err("there is no place");
    assert!(faults.to_string().contains("state.path"), "{faults}");
}
