//! What people say to models, and what they pay with, is nowhere but on its way: planted words are searched for everywhere.

use std::path::Path;

use crate::client::{Answer, Ask};
use crate::responder::{explains, run, until};
use crate::world::{Setup, World};

const CONFIG: &str = r#"
[server]
admin_token = { env = "ADMIN" }
[[clients]]
name = "alice"
key = { env = "ALICE" }
[[clients]]
name = "bob"
key = { env = "BOB" }
[watchdog]
response_created_deadline = "300ms"
[providers.openai]
base_url = "{openai}"
[[providers.openai.accounts]]
name = "main"
credential = { env = "ACCOUNT" }
"#;

const ALICE: &str = "planted-key-of-alice";
const THREAD: &str = "planted-thread-id";
const PLANTED: [(&str, &str); 8] = [
    ("the prompt", "planted-prompt"),
    ("the output", "planted-output"),
    ("the upstream's error", "planted-error"),
    ("the account's credential", "planted-credential"),
    ("a client's key", ALICE),
    ("the admin token", "planted-admin-token"),
    ("the conversation's id", THREAD),
    ("the cache key", "planted-cache-key"),
];

/// Calls of every fate, each with planted words in what it says, in what comes back, and in its headers.
async fn calls(world: &World) -> Vec<Answer> {
    let mut answers = Vec::new();
    for (number, fate) in [
        "",
        "sim:error(status=400, message=planted-error, code=invalid_prompt)",
        "sim:error(status=429, message=planted-error)",
        "sim:error(status=401, message=planted-error)",
        "sim:error(status=500, message=planted-error, after=1)",
        "sim:terminal(shape=failed, message=planted-error)",
        "sim:close(after=1, reason=planted-error)",
        "sim:no_created(n=2, delay=1ms, on=ws)",
        "sim:silent(on=ws)",
        "sim:truncated(after=1)",
    ]
    .into_iter()
    .enumerate()
    {
        for stream in [true, false] {
            let ask = Ask::turn(format!("planted-prompt {fate}"))
                .bearer(ALICE)
                .thread(&format!("{THREAD}-{number}"))
                .with("instructions", "planted-output")
                .with("prompt_cache_key", "planted-cache-key")
                .with("metadata", serde_json::json!({"a": "planted-prompt"}))
                .with("stream", stream);
            answers.push(world.ask(&ask).await);
        }
    }
    answers
}

fn search(place: &str, bytes: &[u8]) {
    for (what, word) in PLANTED {
        let found = bytes.windows(word.len()).any(|window| window == word.as_bytes());
        assert!(!found, "{what} is in {place}: {}", String::from_utf8_lossy(bytes));
    }
}

fn search_files(folder: &Path) -> usize {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files += search_files(&path);
        } else {
            search(&path.display().to_string(), &std::fs::read(&path).unwrap());
            files += 1;
        }
    }
    files
}

/// [EXP-8] [INV-9] What was planted in prompts, answers, errors, credentials and ids is in no log line, not in the state, not in
/// what the commands print, not in the metrics, and not in another client's errors.
#[tokio::test(flavor = "multi_thread")]
async fn planted_words_are_nowhere() {
    let secrets = [
        ("ADMIN", "planted-admin-token"),
        ("ALICE", ALICE),
        ("BOB", "key-bob"),
        ("ACCOUNT", "planted-credential"),
    ];
    let setup = Setup::new().config(CONFIG);
    let setup = secrets
        .into_iter()
        .fold(setup, |setup, (name, value)| setup.secret(name, value));
    let world = setup.start().await;
    let answers = calls(&world).await;
    // Planted well: they went there and came back.
    assert!(answers[0].text().contains("planted-output"), "{:?}", answers[0]);
    assert!(answers[2].text().contains("planted-error"), "{:?}", answers[2]);

    // Another client, who guesses: what it is told is its own.
    let response = answers[0].id();
    let bob = |ask: Ask| ask.bearer("key-bob");
    let lookup = Ask::bare("GET", format!("/v1/responses/{response}"));
    for ask in [
        bob(Ask::turn("hello").after(&response)),
        bob(lookup),
        bob(Ask::turn("hello").with("model", serde_json::json!(7))),
        Ask::turn("hello").bearer("key-nobody"),
    ] {
        let told = world.ask(&ask).await;
        assert!(told.status >= 400, "{told:?}");
        search("another client's error", &told.body);
    }

    let state = world.state.path();
    let last = format!("{THREAD}-0");
    let sentence = "nothing went wrong: both calls were served; the last one was served by openai/main over WebSocket in D, \
                    response.created after D, first output after D";
    explains(state, &last, sentence).await;
    let log: Vec<String> = world.lines().iter().map(ToString::to_string).collect();
    assert!(log.len() > 100, "{}", log.len());
    search("the log", log.join("\n").as_bytes());
    let metrics = world
        .ask(&Ask::bare("GET", "/metrics").bearer("planted-admin-token"))
        .await;
    assert_eq!(metrics.status, 200);
    search("the metrics", &metrics.body);
    let at = state.to_str().unwrap();
    for json in [&[][..], &["--json"]] {
        for number in 0..10 {
            let id = format!("{THREAD}-{number}");
            let args = [&["explain", &id, "--state", at], json].concat();
            let printed = until(&args, |printed| printed.code == 0).await;
            assert_eq!(printed.code, 0, "{}", printed.text);
            search("explain", printed.text.as_bytes());
        }
        let printed = run(&[&["events", "--state", at, "--limit", "1000"], json].concat());
        assert!(
            printed.text.lines().count() > 30,
            "{}{}",
            printed.text,
            printed.errors
        );
        search("events", printed.text.as_bytes());
    }
    assert!(search_files(state) >= 2);
    let World { app, state, .. } = world;
    app.drain().await;
    search_files(state.path());
}
