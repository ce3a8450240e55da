//! `config.example.toml` and the schema: complete, and true.
use std::fs;

use responses_bridge::config::{Config, schema};
use serde_json::Value;

use crate::{environment, parse, root};

/// [CFG-3] The example, used as it stands, changes nothing.
#[test]
fn the_example_is_the_default() {
    let example = fs::read_to_string(root().join("config.example.toml")).expect("the example is there");
    let config = parse(&example, "config.example.toml").unwrap_or_else(|faults| panic!("{faults}"));
    let built_in = Config::built_in(&environment).expect("it is right");
    assert_eq!(format!("{config:#?}"), format!("{built_in:#?}"));
}

/// [CFG-3] Every key of the schema is in the example, and those behind a `#` are right as well.
#[test]
fn the_example_holds_every_key() {
    let example = fs::read_to_string(root().join("config.example.toml")).expect("the example is there");
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(
        folder.path().join("company-ca.pem"),
        "-----BEGIN CERTIFICATE-----\n",
    )
    .expect("it can be written");
    let full = every_key(&example);
    let file = folder.path().join("full.toml");
    // Client keys and the callers' own credentials exclude each other: the only two that cannot stand together.
    let checkable = full.replace(
        "credential = \"client\"",
        "credential = { env = \"OPENAI_API_KEY\" }",
    );
    parse(&checkable, &file.display().to_string()).unwrap_or_else(|faults| panic!("{faults}"));

    let table: toml::Table = full.parse().expect("it is TOML");
    let value = serde_json::to_value(table).expect("TOML fits JSON");
    let mut missing = Vec::new();
    missing_keys(&schema(), &value, "", &mut missing);
    assert!(missing.is_empty(), "config.example.toml lacks {missing:?}");
}

/// The example with every `#key = …` and `#[[table]]` in force.
fn every_key(example: &str) -> String {
    let setting = |line: &&str| line.starts_with(|c: char| c == '[' || c.is_ascii_lowercase());
    let lines = example
        .lines()
        .map(|line| line.strip_prefix('#').filter(setting).unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// Collects the keys of `schema` that `value` lacks. Of several providers or accounts, one must have each: some keys exclude
/// each other.
fn missing_keys(schema: &Value, value: &Value, path: &str, missing: &mut Vec<String>) {
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{key}");
        match value.get(key) {
            None if path.ends_with(".file") || path.ends_with(".env") => {}
            None => missing.push(path),
            Some(value) => missing_keys(inner, value, &path, missing),
        }
    }
    let members: Vec<&Value> = match value {
        Value::Object(map) if schema["additionalProperties"].is_object() => map.values().collect(),
        Value::Array(list) if schema["items"]["properties"].is_object() => list.iter().collect(),
        _ => return,
    };
    let inner = if value.is_array() {
        &schema["items"]
    } else {
        &schema["additionalProperties"]
    };
    let lacks = |member: &&Value| {
        let mut missing = Vec::new();
        missing_keys(inner, member, path, &mut missing);
        missing
    };
    let all_lack = members
        .iter()
        .map(lacks)
        .reduce(|all, one| all.into_iter().filter(|key| one.contains(key)).collect());
    missing.extend(all_lack.unwrap_or_else(|| vec![format!("{path}: any member")]));
}

/// [CFG-18] Every key in the schema has a meaning, and every default there is the one in force.
#[test]
fn the_schema_tells_meanings_and_defaults() {
    let schema = schema();
    let mut silent = Vec::new();
    undescribed(&schema, "", &mut silent);
    assert!(silent.is_empty(), "no description: {silent:?}");
    assert_eq!(
        schema["properties"]["watchdog"]["properties"]["response_created_deadline"]["default"],
        "60s"
    );
    assert_eq!(
        schema["properties"]["server"]["properties"]["max_body"]["default"],
        "128MiB"
    );
    assert_eq!(
        schema["properties"]["session"]["properties"]["max_sessions"]["default"],
        4096
    );
}

fn undescribed(schema: &Value, path: &str, silent: &mut Vec<String>) {
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{key}");
        if inner["description"].as_str().is_none_or(str::is_empty) {
            silent.push(path.clone());
        }
        for inner in [inner, &inner["items"], &inner["additionalProperties"]] {
            undescribed(inner, &path, silent);
        }
    }
}

/// [CFG-19] The README's accounts are right, but for a credential's file that is not here.
#[test]
fn the_readmes_accounts_are_right() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the README is there");
    let section = readme
        .split("\n### Accounts\n")
        .nth(1)
        .expect("it has the section");
    let text = section
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("it has an example");
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("openai.key"), "sk-secret-file\n").expect("it can be written");
    let file = folder.path().join("bridge.toml");
    let environment = |name: &str| match name {
        "CORPORATE_PROXY" => Some("http://user:hunter2@proxy.example.com:3128".to_owned()),
        "AZURE_API_KEY" | "CHATGPT_TOKEN" | "GATEWAY_KEY" => Some(format!("secret-{name}")),
        _ => environment(name),
    };
    let config = Config::parse(text, &file.display().to_string(), &environment)
        .unwrap_or_else(|faults| panic!("{faults}"));
    let accounts: Vec<_> = config
        .providers
        .iter()
        .map(|provider| (&*provider.name, provider.accounts.len()))
        .collect();
    assert_eq!(
        accounts,
        [("openai", 2), ("azure", 1), ("codex", 1), ("vercel", 1)]
    );
}
