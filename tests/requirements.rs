//! Every requirement of `spec/` is named by a test, and every requirement that a test names exists.
//!
//! A Rust test names one in the comment above its `#[test]`; a test in Python, JavaScript or shell in any comment line.
// A test file: all of it may panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Where a requirement stands or is named: path and line.
type Place = String;

/// Folders that hold no tests of ours.
const SKIPPED: [&str; 6] = ["target", "node_modules", "__pycache__", ".venv", "venv", ".git"];

/// [INV-1] [INV-2] no requirement is without a test, no test names one that does not exist, and each stands once, in
/// the file of its prefix.
#[test]
fn every_requirement_is_named_by_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut faults = Vec::new();
    let required = requirements(root, &mut faults);
    let named = names(root);
    for (id, place) in &required {
        if !named.contains_key(id) {
            faults.push(format!("{place}: no test names {id}"));
        }
    }
    for (id, places) in &named {
        if !required.contains_key(id) {
            faults.push(format!("{}: {id} is no requirement of spec/", places[0]));
        }
    }
    assert!(required.len() > 50, "the requirements were not found");
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// [INV-1] what counts as naming, and what does not.
#[test]
fn naming() {
    let of = |name: &str, text: &str| {
        let found = named_in(Path::new(name), text);
        found
            .into_iter()
            .map(|(id, line)| format!("{id}@{line}"))
            .collect::<Vec<_>>()
    };
    let test = "/// [SES-1] [KEY-20] a thing\n/// that [QUA-3] does.\n#[test]\nfn f() {}\n";
    assert_eq!(of("a.rs", test), ["SES-1@1", "KEY-20@1", "QUA-3@2"]);
    assert_eq!(
        of(
            "a.rs",
            "    /// [SES-1]\n    #[tokio::test(start_paused = true)]\n"
        ),
        ["SES-1@1"]
    );
    assert_eq!(of("a.rs", "/// [SES-1]\n#[cfg(unix)]\n#[test]\n"), ["SES-1@1"]);
    assert_eq!(
        of("a.rs", "/// [SES-1]\npub fn f() {}\n#[test]\n"),
        [] as [&str; 0]
    );
    assert_eq!(of("a.rs", "/// [SES-1]\n\n#[test]\n"), [] as [&str; 0]);
    assert_eq!(of("a.rs", "//! [SES-1]\n#[test]\n"), [] as [&str; 0]);
    assert_eq!(
        of("a.rs", "/// [`Vec`] [1] [SES] [ses-1] (SES-1)\n#[test]\n"),
        [] as [&str; 0]
    );
    assert_eq!(
        of("a.py", "# [RUN-1] so\ndef test_a(): pass\nx[SES-1]\n"),
        ["RUN-1@1"]
    );
    assert_eq!(of("a.js", "  // [RUN-2] so\nlet a;\n"), ["RUN-2@1"]);
    assert_eq!(of("run", "# [RUN-3] so\n"), ["RUN-3@1"]);
    assert_eq!(of("a.md", "# [RUN-3] so\n"), [] as [&str; 0]);
}

/// Every `## ID: title` of `spec/`, each in the file that the table of its README gives its prefix.
fn requirements(root: &Path, faults: &mut Vec<String>) -> BTreeMap<String, Place> {
    let readme = fs::read_to_string(root.join("spec/README.md")).unwrap();
    let prefixes: BTreeMap<_, _> = readme
        .lines()
        .filter_map(|line| {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            cells
                .get(2)
                .filter(|file| file.ends_with(".md"))
                .map(|file| (cells[1], *file))
        })
        .collect();
    let mut found = BTreeMap::new();
    for path in files(&root.join("spec")) {
        let file = path.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let mut last = None;
        for (at, line) in text.lines().enumerate() {
            let place = format!("spec/{file}:{}", at + 1);
            if line.contains("THEN") {
                last = None;
            }
            let Some((id, _)) = line.strip_prefix("## ").and_then(|head| head.split_once(": ")) else {
                continue;
            };
            if let Some(unsaid) = last.replace(id) {
                faults.push(format!("spec/{file}: {unsaid} has no THEN"));
            }
            let prefix = id.split_once('-').map_or(id, |(prefix, _)| prefix);
            if !is_id(id) {
                faults.push(format!("{place}: {id} is no id"));
            } else if prefixes.get(prefix) != Some(&file) {
                faults.push(format!("{place}: {id} belongs into another file"));
            } else if found.insert(id.to_owned(), place.clone()).is_some() {
                faults.push(format!("{place}: {id} stands twice"));
            }
        }
        if let Some(unsaid) = last {
            faults.push(format!("spec/{file}: {unsaid} has no THEN"));
        }
    }
    found
}

/// Every requirement that a test names, and where.
fn names(root: &Path) -> BTreeMap<String, Vec<Place>> {
    let mut found: BTreeMap<String, Vec<Place>> = BTreeMap::new();
    for path in ["src", "tests", ".ci"]
        .iter()
        .flat_map(|folder| files(&root.join(folder)))
    {
        if path.ends_with("tests/requirements.rs") {
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        for (id, line) in named_in(&path, &text) {
            found.entry(id).or_default().push(format!("{shown}:{line}"));
        }
    }
    found
}

fn named_in(path: &Path, text: &str) -> Vec<(String, usize)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    let cited = |line: usize, comment: &str| ids(comment).map(move |id| (id, line)).collect::<Vec<_>>();
    let marker = match path.extension().and_then(|ext| ext.to_str()) {
        Some("rs") => {
            let mut found = Vec::new();
            let mut above = Vec::new();
            for (line, text) in lines {
                if text.starts_with("//") && !text.starts_with("//!") {
                    above.extend(cited(line, text));
                } else if text.starts_with("#[") {
                    if text.contains("test]") || text.contains("test(") {
                        found.append(&mut above);
                    }
                } else {
                    above.clear();
                }
            }
            return found;
        }
        Some("py" | "sh") | None => "#",
        Some("js" | "mjs" | "ts") => "//",
        Some(_) => return Vec::new(),
    };
    lines
        .filter(|(_, text)| text.starts_with(marker))
        .flat_map(|(line, text)| cited(line, text))
        .collect()
}

/// The ids in square brackets.
fn ids(text: &str) -> impl Iterator<Item = String> {
    let parts: BTreeSet<(usize, &str)> = text
        .split('[')
        .skip(1)
        .enumerate()
        .filter_map(|(at, part)| Some((at, part.split_once(']')?.0)))
        .filter(|(_, id)| is_id(id))
        .collect();
    parts
        .into_iter()
        .map(|(_, id)| id.to_owned())
        .collect::<Vec<_>>()
        .into_iter()
}

fn is_id(text: &str) -> bool {
    text.split_once('-').is_some_and(|(prefix, number)| {
        !prefix.is_empty()
            && prefix.bytes().all(|byte| byte.is_ascii_uppercase())
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else {
        return found;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap_or_default();
        if path.is_symlink() || SKIPPED.contains(&name) {
            continue;
        }
        match path.is_dir() {
            true => found.append(&mut files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}
