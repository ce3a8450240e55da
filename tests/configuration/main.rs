//! The configuration as an operator meets it: files in `fixtures/config`, `config.example.toml`, the schema, paths.
//! Requirements: `spec/configuration.md`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "clippy knows #[test] functions, not what they call"
)]
use std::fs;
use std::path::{Path, PathBuf};

use responses_bridge::config::{Config, Faults};

mod bad;
mod example;
mod good;
mod paths;

/// The environment of every fixture.
fn environment(name: &str) -> Option<String> {
    let value = match name {
        "HOME" => "/home/tester",
        "OPENAI_API_KEY" => "sk-secret-openai",
        "OTHER_API_KEY" => "sk-secret-other",
        "LAPTOP_KEY" => "secret-laptop-key",
        "DESK_KEY" => " secret-desk-key\n",
        "ADMIN_TOKEN" | "BRIDGE_ADMIN_TOKEN" => "secret-admin",
        "BRIDGE_CLIENT_KEY" => "secret-client",
        "PROXY_WITH_PASSWORD" => "socks5h://bridge:hunter2@proxy.example.com:1080",
        "EMPTY" => "",
        "BEARER" => "Bearer sk-secret",
        _ => return None,
    };
    Some(value.to_owned())
}

fn parse(text: &str, file: &str) -> Result<Config, Faults> {
    Config::parse(text, file, &environment)
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn fixtures(folder: &str) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(root().join("fixtures/config").join(folder)).expect("the folder is there");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("it can be listed").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let name = |path: &PathBuf| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    paths.into_iter().map(|path| (name(&path), path)).collect()
}
