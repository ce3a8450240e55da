//! Who is called at night: has a shell, the state's directory, and the id that the user tells.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::client::MOMENT;

/// What a command printed, and its exit code.
pub struct Printed {
    pub text: String,
    pub errors: String,
    pub code: i32,
}

impl Printed {
    pub fn last_line(&self) -> &str {
        self.text.trim_end().lines().last().unwrap_or_default()
    }
}

/// Runs the built program.
pub fn run(args: &[&str]) -> Printed {
    let output = Command::new(env!("CARGO_BIN_EXE_responses-bridge"))
        .args(args)
        .output()
        .unwrap();
    Printed {
        text: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap(),
    }
}

/// Runs the built program into a pipe that nobody reads: its exit code, and what it says of that.
pub fn unread(args: &[&str]) -> (i32, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_responses-bridge"))
        .args(args)
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn state(directory: &Path) -> &str {
    directory.to_str().unwrap()
}

/// `explain ID` until its last line, with times and durations masked, is as wanted: the journal is written in batches. Gives
/// all that it printed then.
pub async fn explains(directory: &Path, id: &str, wanted: &str) -> Printed {
    let args = ["explain", id, "--state", state(directory)];
    let printed = until(&args, |printed| masked(printed.last_line()) == wanted).await;
    assert_eq!(
        masked(printed.last_line()),
        wanted,
        "{}{}",
        printed.text,
        printed.errors
    );
    assert_eq!(printed.code, 0);
    let wide = printed
        .text
        .trim_end()
        .lines()
        .rev()
        .skip(1)
        .find(|line| line.chars().count() > 100);
    assert_eq!(wide, None, "wider than a terminal");
    printed
}

/// `explain ID --json`.
pub fn explained(directory: &Path, id: &str) -> Value {
    let printed = run(&["explain", id, "--json", "--state", state(directory)]);
    assert_eq!(printed.code, 0, "{}{}", printed.text, printed.errors);
    serde_json::from_str(&printed.text).unwrap()
}

/// Runs a command until what it prints is as wanted, for a moment at most; gives what it printed last.
pub async fn until(args: &[&str], wanted: impl Fn(&Printed) -> bool) -> Printed {
    let patience = tokio::time::Instant::now() + MOMENT;
    loop {
        let printed = run(args);
        if wanted(&printed) || tokio::time::Instant::now() > patience {
            return printed;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Times of day become `T`, and durations that are not whole seconds `D`, so that a sentence is the same each time.
pub fn masked(sentence: &str) -> String {
    let words: Vec<&str> = sentence.split(' ').collect();
    let mut told: Vec<String> = Vec::new();
    let mut index = 0;
    while let Some(word) = words.get(index) {
        let (bare, rest) = match word.find([',', ';', ':', ')']) {
            Some(at) if !word.contains("::") && word.matches(':').count() < 2 => word.split_at(at),
            _ => match word.strip_suffix([',', ';', ':']) {
                Some(bare) => (bare, &word[bare.len()..]),
                None => (*word, ""),
            },
        };
        let unit = words.get(index + 1).copied().unwrap_or_default();
        let unit_bare = unit.trim_end_matches([',', ';', ')']);
        let number = bare.parse::<f64>().is_ok();
        if bare.len() == 8 && bare.bytes().filter(|byte| *byte == b':').count() == 2 {
            told.push(format!("T{rest}"));
        } else if number && (unit_bare == "ms" || unit_bare == "s" && bare.contains('.')) {
            told.push(format!("D{}", &unit[unit_bare.len()..]));
            index += 1;
        } else {
            told.push((*word).to_owned());
        }
        index += 1;
    }
    told.join(" ")
}

#[test]
fn masks() {
    let told = "a; the retry at 12:03:41 was served in 1.2 s, after 310 ms; for 60 s; 0 ms, so (12:00:01)";
    assert_eq!(
        masked(told),
        "a; the retry at T was served in D, after D; for 60 s; D, so (12:00:01)"
    );
}

/// `events` with these arguments until its last line has all of `wanted`.
pub async fn events_end_with(directory: &Path, args: &[&str], wanted: &[&str]) {
    let args = [&["events", "--state", state(directory)], args].concat();
    let has = |printed: &Printed| wanted.iter().all(|word| printed.last_line().contains(word));
    let printed = until(&args, has).await;
    assert!(has(&printed), "{wanted:?}: {}{}", printed.text, printed.errors);
    assert_eq!(printed.code, 0);
}
