use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::*;

/// All that can be set at once; `{dir}` is a folder.
const BASE: &str = r#"
[server]
listen = "127.0.0.1:1001"
admin_listen = "127.0.0.1:1002"
admin_token = { env = "TOKEN_ONE" }

[[clients]]
name = "laptop"
key = { env = "KEY_ONE" }
[[clients]]
name = "desk"
key = { env = "KEY_TWO" }

[providers.main]
kind = "chatgpt"
base_url = "http://127.0.0.1:1003/codex"
headers = { "x-all" = "one" }
[[providers.main.accounts]]
name = "first"
credential = { env = "CREDENTIAL_ONE" }
headers = { "x-first" = "one" }
[[providers.main.accounts]]
name = "second"
credential = { env = "CREDENTIAL_TWO" }

[providers.other]
kind = "generic"
base_url = "http://127.0.0.1:1004/v1"
accounts = [{ name = "first", credential = { env = "CREDENTIAL_THREE" } }]

[routing]
strategy = "weighted"

[state]
path = "{dir}/state"
"#;

/// Another value for every key of the schema.
const OTHERS: &[(&str, &str)] = &[
    ("server.listen", r#""127.0.0.1:1011""#),
    ("server.admin_listen", r#""127.0.0.1:1012""#),
    ("server.admin_token", r#"{ env = "TOKEN_TWO" }"#),
    ("server.max_body", r#""1MiB""#),
    ("server.body_budget", r#""2GiB""#),
    ("server.client_buffer", r#""1MiB""#),
    ("server.commit_after", r#""1s""#),
    ("server.heartbeat", r#""1s""#),
    ("server.drain", r#""1s""#),
    ("server.allow_origins", r#"["https://app.example.com"]"#),
    ("clients[].name", r#""tablet""#),
    ("clients[].key", r#"{ env = "KEY_THREE" }"#),
    ("providers.NAME.kind", r#""openai""#),
    ("providers.NAME.base_url", r#""http://127.0.0.1:1013/codex""#),
    ("providers.NAME.transport", r#""http""#),
    ("providers.NAME.ca_file", r#""{dir}/ca.pem""#),
    ("providers.NAME.fragment", "false"),
    ("providers.NAME.max_age", r#""10m""#),
    ("providers.NAME.max_frame", r#""4MiB""#),
    ("providers.NAME.models", r#"["gpt-5*"]"#),
    ("providers.NAME.one_model_per_connection", "true"),
    ("providers.NAME.headers", r#"{ "x-all" = "two" }"#),
    ("providers.NAME.accounts[].name", r#""third""#),
    (
        "providers.NAME.accounts[].credential",
        r#"{ env = "CREDENTIAL_FOUR" }"#,
    ),
    ("providers.NAME.accounts[].weight", "3"),
    ("providers.NAME.accounts[].proxy", r#""socks5://127.0.0.1:1014""#),
    ("providers.NAME.accounts[].headers", r#"{ "x-first" = "two" }"#),
    ("providers.NAME.accounts[].chatgpt_account_id", r#""an-account""#),
    ("routing.strategy", r#""round_robin""#),
    ("affinity.ttl", r#""1h""#),
    ("affinity.max_pins", "7"),
    ("ownership.unknown", r#""forward""#),
    ("continuation.enabled", "false"),
    ("session.idle_ttl", r#""1m""#),
    ("session.max_age", r#""1m""#),
    ("session.max_sessions", "7"),
    ("session.max_per_key", "3"),
    ("session.queue_wait", r#""1s""#),
    ("session.max_queue", "7"),
    ("session.prewarm", "1"),
    ("watchdog.connect_deadline", r#""9s""#),
    ("watchdog.handshake_patience", r#""1s""#),
    ("watchdog.write_deadline", r#""9s""#),
    ("watchdog.response_created_deadline", r#""9s""#),
    ("watchdog.idle_deadline", r#""9s""#),
    ("watchdog.request_deadline", r#""1h""#),
    ("watchdog.ping_interval", r#""9s""#),
    ("watchdog.reuse_check_after", r#""9s""#),
    ("watchdog.pong_deadline", r#""2s""#),
    ("watchdog.slow_client", r#""9s""#),
    ("http.first_byte", r#""9s""#),
    ("http.first_event", r#""9s""#),
    ("http.between_events", r#""9s""#),
    ("quarantine.window", r#""9s""#),
    ("quarantine.max_window", r#""2m""#),
    ("quarantine.max_keys", "7"),
    ("state.path", r#""{dir}/elsewhere""#),
    ("state.max_owners", "7"),
    ("journal.keep", r#""1d""#),
    ("journal.max", "7"),
];

fn parse(text: &str) -> Config {
    let env = |name: &str| Some(format!("secret-{}", name.to_lowercase()));
    Config::parse(text, "test.toml", &env).unwrap_or_else(|faults| panic!("{faults}"))
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ca.pem"), "-----BEGIN CERTIFICATE-----\n").unwrap();
    folder
}

/// The base with one key, as [`keys`] names it, set to a TOML value.
fn with(base: &str, path: &str, value: &str) -> Config {
    let value = format!("x = {value}").parse::<toml::Table>().unwrap()["x"].clone();
    let mut table: toml::Value = toml::Value::Table(base.parse().unwrap());
    let (path, key) = path.rsplit_once('.').unwrap();
    let mut at = &mut table;
    for part in path.split('.') {
        let (name, listed) = match part.strip_suffix("[]") {
            Some(name) => (name, true),
            None => (if part == "NAME" { "main" } else { part }, false),
        };
        let tables = at.as_table_mut().unwrap();
        at = tables
            .entry(name)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()));
        if listed {
            at = &mut at[0];
        }
    }
    at.as_table_mut().unwrap().insert(key.to_owned(), value);
    parse(&toml::to_string(&table).unwrap())
}

/// The keys of the schema, as [`keys`] names them.
fn of_schema(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = match path {
            "" => key.clone(),
            path => format!("{path}.{key}"),
        };
        // What a secret or a table of headers is made of is no key of its own.
        let (inner, path) = if key != "headers" && inner["additionalProperties"].is_object() {
            (&inner["additionalProperties"], format!("{path}.NAME"))
        } else if inner["items"]["properties"].is_object() {
            (&inner["items"], format!("{path}[]"))
        } else {
            (inner, path)
        };
        let is_secret = inner["properties"]["env"].is_object();
        match inner["properties"].is_object() && !is_secret {
            true => of_schema(inner, &path, found),
            false => drop(found.insert(path)),
        }
    }
}

/// [REL-1] The table has every key of the schema, once, and no other.
#[test]
fn every_key_is_classified() {
    let mut schema = BTreeSet::new();
    of_schema(&super::super::schema(), "", &mut schema);
    let table: Vec<String> = keys().map(|(path, _)| path).collect();
    let unique: BTreeSet<String> = table.iter().cloned().collect();
    assert_eq!(unique, schema);
    assert_eq!(table.len(), unique.len());
    let tried: BTreeSet<String> = OTHERS.iter().map(|(path, _)| (*path).to_owned()).collect();
    assert_eq!(tried, schema, "a key without another value to try");
}

/// [REL-1] [REL-2] A new value of each key, alone, is in force or waits as the table says, and is named.
#[test]
fn every_key_does_what_the_table_says() {
    let folder = folder();
    let fill = |text: &str| text.replace("{dir}", folder.path().to_str().unwrap());
    let base = fill(BASE);
    let in_force = parse(&base);
    for (path, value) in OTHERS {
        let new = with(&base, path, &fill(value));
        let applied = apply(&in_force, &new);
        let (_, when) = keys().find(|(key, _)| key == path).unwrap();
        let told = match *path {
            "clients[].name" => vec!["clients.laptop".to_owned(), "clients.tablet".to_owned()],
            "providers.NAME.accounts[].name" => ["first", "third"]
                .map(|name| format!("providers.main.accounts.{name}"))
                .into(),
            path => {
                let path = path.replace("accounts[]", "accounts.first");
                vec![
                    path.replace("NAME", "main")
                        .replace("clients[]", "clients.laptop"),
                ]
            }
        };
        let show = |config: &Config| format!("{config:#?}");
        if when == When::Restart {
            assert_eq!(
                (&applied.needs_restart, &applied.changed),
                (&told, &vec![]),
                "{path}"
            );
            assert_eq!(show(&applied.config), show(&in_force), "{path}");
        } else {
            assert_eq!(
                (&applied.changed, &applied.needs_restart),
                (&told, &vec![]),
                "{path}"
            );
            assert_eq!(show(&applied.config), show(&new), "{path}");
        }
        let again = apply(&applied.config, &new);
        assert_eq!(again.changed, Vec::<String>::new(), "{path}: it is in force");
        assert_eq!(again.needs_restart, applied.needs_restart, "{path}");
        let back = apply(&applied.config, &in_force);
        assert_eq!(
            back.needs_restart,
            Vec::<String>::new(),
            "{path}: nothing waits any more"
        );
    }
}

/// [REL-2] What is written differently and means the same does not differ; an order that matters does.
#[test]
fn what_means_the_same() {
    let text = BASE.replace("{dir}", "/tmp");
    let same = format!("# A comment.\n{text}\n[watchdog]\nidle_deadline = \"900s\"\n");
    let (in_force, new) = (parse(&text), parse(&same));
    let applied = apply(&in_force, &new);
    assert_eq!((applied.changed, applied.needs_restart), (vec![], vec![]));
    let mut new = in_force.clone();
    new.clients.reverse();
    let applied = apply(&in_force, &new);
    assert_eq!((applied.changed, applied.needs_restart), (vec![], vec![]));
    let mut new = in_force.clone();
    new.providers.reverse();
    assert_eq!(apply(&in_force, &new).needs_restart, ["providers"]);
    let mut new = in_force.clone();
    new.providers[0].accounts.reverse();
    assert_eq!(apply(&in_force, &new).needs_restart, ["providers.main.accounts"]);
    let mut new = in_force.clone();
    new.providers.pop();
    assert_eq!(apply(&in_force, &new).needs_restart, ["providers.other"]);
}

/// [REL-3] Of a file that changes both, the live keys are applied and the others are named, each time until the restart.
#[test]
fn live_and_waiting_in_one_file() {
    let text = BASE.replace("{dir}", "/tmp");
    let in_force = parse(&text);
    let mut new = in_force.clone();
    new.server.body_budget *= 2;
    new.watchdog.idle_deadline /= 2;
    new.providers[0].accounts[0].weight = 5;
    new.providers[0].fragment = false;
    let first = apply(&in_force, &new);
    let waiting = ["server.body_budget", "providers.main.fragment"];
    assert_eq!(
        first.changed,
        ["watchdog.idle_deadline", "providers.main.accounts.first.weight"]
    );
    assert_eq!(first.needs_restart, waiting);
    assert_eq!(first.config.server.body_budget, in_force.server.body_budget);
    new.watchdog.idle_deadline *= 2;
    let second = apply(&first.config, &new);
    assert_eq!(second.changed, ["watchdog.idle_deadline"]);
    assert_eq!(second.needs_restart, waiting);
}

/// [REL-2] [REL-16] [REL-20] A token that is set for the first time waits, one that is taken away does not; neither it nor a
/// key is ever shown.
#[test]
fn the_token_and_the_keys() {
    let text = BASE.replace("{dir}", "/tmp");
    let in_force = parse(&text);
    let without = parse(&text.replace("admin_token = { env = \"TOKEN_ONE\" }", ""));
    let taken = apply(&in_force, &without);
    assert_eq!(taken.changed, ["server.admin_token"]);
    assert!(taken.needs_restart.is_empty() && taken.config.server.admin_token.is_none());
    let added = apply(&without, &in_force);
    assert_eq!(added.needs_restart, ["server.admin_token"]);
    assert!(added.changed.is_empty() && added.config.server.admin_token.is_none());
    let other = text
        .replace("TOKEN_ONE", "TOKEN_TWO")
        .replace("KEY_ONE", "KEY_THREE");
    let applied = apply(&in_force, &parse(&other));
    assert_eq!(applied.changed, ["server.admin_token", "clients.laptop.key"]);
    let shown = format!("{applied:?}");
    assert!(!shown.contains("secret-"), "{shown}");
}

/// [REL-4] What would contradict a value that waits for a restart waits with it.
#[test]
fn no_mixture_contradicts_itself() {
    let text = BASE.replace("{dir}", "/tmp");
    // The network is let in, and clients are checked; then neither.
    let open = text.replace("127.0.0.1:1001", "0.0.0.0:1001");
    let in_force = parse(&open);
    let mut new = parse(&text);
    new.clients.clear();
    let applied = apply(&in_force, &new);
    assert_eq!(applied.changed, Vec::<String>::new());
    assert_eq!(
        applied.needs_restart,
        ["server.listen", "clients.laptop", "clients.desk"]
    );
    assert_eq!(applied.config.clients.len(), 2);

    // Accounts pass the callers' own credentials through; then they have their own, and clients have keys.
    let mut before = parse(&text);
    before.clients.clear();
    before.providers[0].accounts[0].source = CredentialSource::Client;
    let applied = apply(&before, &parse(&text));
    assert_eq!(applied.changed, Vec::<String>::new());
    assert_eq!(
        applied.needs_restart,
        [
            "providers.main.accounts.first.credential",
            "clients.laptop",
            "clients.desk"
        ]
    );
    assert!(applied.config.clients.is_empty());

    // What is to be the token is the key of a client who leaves later: the client would be an operator. The old token is out.
    let mut in_force = parse(&text);
    in_force.server.listen = parse(&open).server.listen;
    let mut new = parse(&text);
    new.server.admin_token = Some(new.clients[0].key.clone());
    new.clients.clear();
    let applied = apply(&in_force, &new);
    assert_eq!(applied.changed, ["server.admin_token"]);
    let waiting = [
        "server.listen",
        "server.admin_token",
        "clients.laptop",
        "clients.desk",
    ];
    assert_eq!(applied.needs_restart, waiting);
    assert!(applied.config.server.admin_token.is_none());
    let in_force = parse(&text);

    // A body that the budget has no room for.
    let mut new = in_force.clone();
    new.server.body_budget *= 4;
    new.server.max_body = new.server.body_budget;
    new.server.client_buffer = new.server.body_budget;
    let applied = apply(&in_force, &new);
    assert_eq!(applied.changed, Vec::<String>::new());
    assert_eq!(
        applied.needs_restart,
        ["server.body_budget", "server.max_body", "server.client_buffer"]
    );
    assert_eq!(applied.config.server.max_body, in_force.server.max_body);
}
