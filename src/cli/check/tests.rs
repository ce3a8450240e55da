use std::fs;
use std::net::TcpListener;

use super::*;

struct Run {
    code: u8,
    out: String,
    err: String,
}

/// Runs `check` on a file that holds `text`, or on none.
fn check(text: Option<&[u8]>, json: bool) -> Run {
    checked(text, json, false)
}

fn checked(text: Option<&[u8]>, json: bool, without_secrets: bool) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let file = text.map(|text| {
        let file = folder.path().join("bridge.toml");
        fs::write(&file, text).unwrap();
        file
    });
    let env = |name: &str| match name {
        "HOME" => Some("/home/tester".to_owned()),
        "OPENAI_API_KEY" => Some("sk-do-not-show-me".to_owned()),
        _ => None,
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = report(
        &Args {
            config: None,
            file,
            without_secrets,
            json,
        },
        &env,
        &mut out,
        &mut err,
    )
    .unwrap();
    Run {
        code,
        out: String::from_utf8(out).unwrap(),
        err: String::from_utf8(err).unwrap(),
    }
}

const RIGHT: &str = "
[quarantine]
window = \"5s\"
[[providers.openai.accounts]]
name = \"main\"
credential = { env = \"OPENAI_API_KEY\" }
";

/// [CFG-17] A right file: what is in force, with the name of the credential's source.
#[test]
fn a_right_file_is_told_in_force() {
    let run = check(Some(RIGHT.as_bytes()), false);
    assert_eq!((run.code, &*run.err), (0, ""));
    assert!(run.out.starts_with("ok: "), "{}", run.out);
    let wanted = [
        "127.0.0.1:8787",
        "provider     openai: openai, https://api.openai.com/v1, transport auto",
        "account main: environment variable OPENAI_API_KEY",
        "quarantine   5s, doubling up to 10m",
        "/home/tester/.local/state/responses-bridge",
    ];
    for wanted in wanted {
        assert!(run.out.contains(wanted), "{wanted} is not in\n{}", run.out);
    }
}

/// [CFG-17] Without a file the built-in configuration is told.
#[test]
fn the_built_in_configuration_is_told() {
    let run = check(None, false);
    assert_eq!(run.code, 0);
    assert!(
        run.out.starts_with("ok: the built-in configuration\n"),
        "{}",
        run.out
    );
    assert!(
        run.out.contains("account client: the caller's own credential"),
        "{}",
        run.out
    );
}

/// [CFG-17] Faults go to stderr with their number; exit code 1.
#[test]
fn faults_are_counted() {
    let run = check(Some(b"[session]\nmax_per_kye = 1\nmax_age = 3\n"), false);
    assert_eq!((run.code, &*run.out), (1, ""));
    assert!(
        run.err
            .contains("bridge.toml:2:1: session.max_per_kye: there is no such key"),
        "{}",
        run.err
    );
    assert!(
        run.err.ends_with("\n2 faults: the bridge would not start\n"),
        "{}",
        run.err
    );
}

/// [CFG-17] A file that cannot be read, here for not being text, is another exit code.
#[test]
fn an_unreadable_file_is_another_exit_code() {
    let run = check(Some(b"\xff\xfe"), false);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("cannot be read"), "{}", run.err);
}

/// [CFG-17] For programs: one object, in force or faults.
#[test]
fn json_is_one_object() {
    let run = check(Some(RIGHT.as_bytes()), true);
    let object: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((run.code, &object["ok"]), (0, &json!(true)));
    assert_eq!(object["in_force"]["quarantine"]["window"], "5s");
    assert_eq!(object["in_force"]["server"]["max_body"], "128MiB");

    let run = check(Some(b"[session]\nmax_age = 3\n"), true);
    let object: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((run.code, &object["ok"], &*run.err), (1, &json!(false), ""));
    assert_eq!(object["faults"][0]["key"], "session.max_age");
    assert_eq!(object["faults"][0]["line"], 2);
}

/// [CFG-17] [CFG-18] What `--json` tells has every key of the schema, so that none is in force unseen.
#[test]
fn json_holds_every_key() {
    let run = check(Some(RIGHT.as_bytes()), true);
    let object: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let schema = config::schema();
    let tables = schema["properties"].as_object().unwrap();
    for (table, inner) in tables {
        let told = &object["in_force"][table];
        assert!(!told.is_null(), "{table} is not told");
        for key in inner["properties"]
            .as_object()
            .into_iter()
            .flat_map(|keys| keys.keys())
        {
            assert!(told.get(key).is_some(), "{table}.{key} is not told");
        }
    }
    for key in schema["properties"]["providers"]["additionalProperties"]["properties"]
        .as_object()
        .unwrap()
        .keys()
    {
        assert!(
            object["in_force"]["providers"][0].get(key).is_some(),
            "providers.NAME.{key} is not told"
        );
    }
    let account =
        &schema["properties"]["providers"]["additionalProperties"]["properties"]["accounts"]["items"];
    for key in account["properties"].as_object().unwrap().keys() {
        assert!(
            object["in_force"]["providers"][0]["accounts"][0]
                .get(key)
                .is_some(),
            "providers.NAME.accounts.{key} is not told"
        );
    }
}

/// [CFG-17] [CFG-20] What accounts differ in is told, and no value of a header, nor a proxy's password.
#[test]
fn accounts_are_told() {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = proxy.local_addr().unwrap();
    let text = format!(
        "
[routing]
strategy = \"weighted\"
[providers.up]
base_url = \"http://127.0.0.1:9/v1\"
models = [\"gpt-5*\"]
max_frame = \"4MiB\"
one_model_per_connection = true
headers = {{ \"x-team\" = \"do-not-show-me\" }}
[[providers.up.accounts]]
name = \"one\"
credential = {{ env = \"OPENAI_API_KEY\" }}
weight = 3
proxy = \"http://user:do-not-show-me@{address}\"
[[providers.up.accounts]]
name = \"two\"
credential = {{ env = \"HOME\" }}
"
    );
    let run = check(Some(text.as_bytes()), false);
    assert_eq!((run.code, &*run.err), (0, ""));
    let wanted = [
        ", models gpt-5*\n".to_owned(),
        "creates above 4MiB by direct HTTP, one model per connection\n".to_owned(),
        format!(
            "account one: environment variable OPENAI_API_KEY, weight 3, through http://{address} (plain http through \
             an HTTP proxy: direct HTTP only), sends x-team"
        ),
        "routing      weighted\n".to_owned(),
        "a conversation keeps its account for".to_owned(),
    ];
    for wanted in wanted {
        assert!(run.out.contains(&wanted), "{wanted} is not in\n{}", run.out);
    }
    let json = check(Some(text.as_bytes()), true);
    let object: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let up = &object["in_force"]["providers"][0];
    assert_eq!(up["max_frame"], "4MiB");
    assert_eq!(up["accounts"][0]["proxy"], format!("http://{address}"));
    assert_eq!(up["accounts"][0]["headers"], json!(["x-team"]));
    assert_eq!(object["in_force"]["routing"]["strategy"], "weighted");
    assert!(!run.out.contains("do-not-show-me") && !json.out.contains("do-not-show-me"));

    // [CFG-20] Without the proxy the same file is refused, at the proxy's line.
    drop(proxy);
    let run = check(Some(text.as_bytes()), false);
    assert_eq!((run.code, &*run.out), (1, ""));
    let wanted = format!(
        "bridge.toml:14:9: providers.up.accounts[0].proxy: the proxy http://{address} does not answer: "
    );
    assert!(run.err.contains(&wanted), "{wanted} is not in\n{}", run.err);
    assert!(
        run.err.contains("start it, or correct its address"),
        "{}",
        run.err
    );
    assert!(!run.err.contains("do-not-show-me"), "{}", run.err);
}

/// [CFG-10] [CFG-17] The secret itself is never told.
#[test]
fn secrets_are_not_told() {
    for json in [false, true] {
        let run = check(Some(RIGHT.as_bytes()), json);
        assert!(!run.out.contains("do-not-show-me") && !run.err.contains("do-not-show-me"));
    }
}

/// [CFG-21] A proxy that lies outside of the file is told by its place: the account does not go direct.
#[test]
fn a_proxy_that_was_not_read_is_told() {
    let text = format!("{RIGHT}proxy = {{ env = \"CORPORATE_PROXY\" }}\n");
    let run = checked(Some(text.as_bytes()), false, true);
    let line = "account main: environment variable OPENAI_API_KEY, through the proxy in environment variable CORPORATE_PROXY\n";
    assert!(run.out.contains(line), "{}", run.out);
    let run = checked(Some(text.as_bytes()), true, true);
    let told: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let account = &told["in_force"]["providers"][0]["accounts"][0];
    assert_eq!(account["proxy"], "environment variable CORPORATE_PROXY");
}

/// [CFG-17] Without a token there is no admin API, and it is not told as an open one.
#[test]
fn operators_are_told_of() {
    let told = |server: &str| {
        let run = check(Some(format!("[server]\n{server}{RIGHT}").as_bytes()), false);
        let line = run.out.lines().find(|line| line.starts_with("  admin"));
        line.unwrap_or(&run.err).to_owned()
    };
    assert_eq!(told(""), "  admin        off: no admin_token");
    assert_eq!(
        told("admin_listen = \"127.0.0.1:9000\"\n"),
        "  admin        off: no admin_token; /metrics at 127.0.0.1:9000"
    );
    assert_eq!(
        told("admin_token = { env = \"OPENAI_API_KEY\" }\n"),
        "  admin        127.0.0.1:8787, with a token"
    );
}

/// [CFG-21] Secrets that only the service can read: `check` says how the file itself is judged, and `--without-secrets` does
/// it, in force and faults alike.
#[test]
fn what_only_the_service_can_read() {
    let text = RIGHT.replace(
        "env = \"OPENAI_API_KEY\"",
        "file = \"/run/credentials/b.service/openai\"",
    );
    let faulty = format!("{text}proxi = 3\n");
    let run = check(Some(text.as_bytes()), false);
    assert_eq!(run.code, 1);
    assert!(
        run.err.contains("cannot be read") && run.err.contains("\n1 fault: "),
        "{}",
        run.err
    );
    assert!(
        run.err.ends_with("--without-secrets judges the rest.\n"),
        "{}",
        run.err
    );
    for json in [false, true] {
        let run = checked(Some(text.as_bytes()), json, true);
        assert_eq!((run.code, &*run.err), (0, ""));
        assert!(
            run.out.contains("file /run/credentials/b.service/openai"),
            "{}",
            run.out
        );
        assert!(json || run.out.contains("but for its secrets"), "{}", run.out);
        assert!(!run.out.contains("made-up"), "{}", run.out);
    }
    for without in [false, true] {
        let run = checked(Some(faulty.as_bytes()), false, without);
        assert_eq!(run.code, 1);
        assert!(
            run.err.contains("accounts[0].proxi: there is no such key"),
            "{}",
            run.err
        );
        assert!(!run.err.contains("--without-secrets"), "{}", run.err);
    }
    assert!(
        !check(Some(b"[session]\nmax_age = 3\n"), false)
            .err
            .contains("--without-secrets")
    );
}
