//! A Rust file as the rules see it: without comments, literals and tests, and with its paths spelt out.

use std::fs;
use std::path::Path;

/// One file of `src/`.
pub struct Source {
    /// Relative to the repository, with `/`.
    pub path: String,
    /// Comments, literals and test modules blanked; the lines stay where they are.
    pub code: String,
}

/// A path in the code, such as `crate::wire::head` or `std::fs::read`, each `use` tree spread out.
#[derive(Debug, PartialEq)]
pub struct Named {
    pub line: usize,
    /// `super` and `self` are resolved, so that a path into the crate begins with `crate`.
    pub segments: Vec<String>,
}

/// Every file under `src`.
pub fn all(src: &Path) -> Vec<Source> {
    let root = src.parent().unwrap();
    let mut folders = vec![src.to_path_buf()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let name = path
                    .strip_prefix(root)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .replace('\\', "/");
                files.push(Source::new(&name, &fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        Source {
            path: path.into(),
            code: without_tests(&blanked(text)),
        }
    }

    /// The modules down to this file: `["bridge", "turn", "io"]`.
    pub fn modules(&self) -> Vec<&str> {
        let path = self.path.strip_prefix("src/").unwrap_or(&self.path);
        let path = path.strip_suffix(".rs").unwrap_or(path);
        let mut modules: Vec<_> = path.split('/').collect();
        if modules
            .last()
            .is_some_and(|last| ["mod", "lib", "main"].contains(last))
        {
            modules.pop();
        }
        modules
    }

    /// The top-level room: `bridge`. Empty for `lib.rs` and `main.rs`.
    pub fn room(&self) -> &str {
        self.modules().first().copied().unwrap_or_default()
    }

    /// Tests may do as they like.
    pub fn is_test(&self) -> bool {
        self.path
            .split('/')
            .any(|part| part == "tests" || part == "tests.rs")
    }

    /// Every path with at least two segments, and every one of a `use`.
    pub fn paths(&self) -> Vec<Named> {
        let tokens = tokens(&self.code);
        let mut found = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let (line, token) = tokens[at];
            if token == "use" {
                let end = tokens[at..]
                    .iter()
                    .position(|(_, token)| *token == ";")
                    .map_or(tokens.len(), |offset| at + offset);
                spread(&tokens[at + 1..end], &[], &mut found);
                at = end;
            } else if is_name(token) && tokens.get(at + 1).is_some_and(|(_, next)| *next == "::") {
                let mut segments = vec![token.to_owned()];
                while tokens.get(at + 1).is_some_and(|(_, next)| *next == "::")
                    && tokens.get(at + 2).is_some_and(|(_, next)| is_name(next))
                {
                    segments.push(tokens[at + 2].1.to_owned());
                    at += 2;
                }
                found.push(Named { line, segments });
            }
            at += 1;
        }
        for named in &mut found {
            self.resolve(&mut named.segments);
        }
        found
    }

    fn resolve(&self, segments: &mut Vec<String>) {
        let ups = segments.iter().take_while(|segment| *segment == "super").count();
        let own = segments.first().is_some_and(|first| first == "self");
        if ups == 0 && !own {
            return;
        }
        let modules = self.modules();
        let kept = modules.len().saturating_sub(ups);
        let skipped = if own { 1 } else { ups };
        let mut whole = vec!["crate".to_owned()];
        whole.extend(modules[..kept].iter().map(ToString::to_string));
        whole.extend(segments.drain(..).skip(skipped));
        *segments = whole;
    }

    /// Every name and sign of the code, with its line.
    pub fn tokens(&self) -> Vec<(usize, &str)> {
        tokens(&self.code)
    }

    /// Lines that are neither blank nor comment.
    pub fn code_lines(&self) -> usize {
        self.code.lines().filter(|line| !line.trim().is_empty()).count()
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

fn tokens(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let name = |c: char| c.is_alphanumeric() || c == '_';
        let length = if name(first) {
            rest.find(|c| !name(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        line += usize::from(first == '\n');
        if !first.is_whitespace() {
            found.push((line, token));
        }
        rest = after;
    }
    found
}

/// Spreads the tree of a `use` out: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn spread(tree: &[(usize, &str)], before: &[String], found: &mut Vec<Named>) {
    let mut segments = before.to_vec();
    let mut line = tree.first().map_or(0, |(line, _)| *line);
    let mut at = 0;
    while at < tree.len() {
        let (here, token) = tree[at];
        match token {
            "{" => {
                let close = closing(tree, at);
                for branch in branches(&tree[at + 1..close]) {
                    spread(branch, &segments, found);
                }
                return;
            }
            "as" => break,
            "::" => {}
            _ => {
                line = here;
                segments.push(token.to_owned());
            }
        }
        at += 1;
    }
    if segments.len() > before.len() {
        found.push(Named { line, segments });
    }
}

fn closing(tree: &[(usize, &str)], open: usize) -> usize {
    let mut depth = 0;
    for (at, (_, token)) in tree.iter().enumerate().skip(open) {
        match *token {
            "{" => depth += 1,
            "}" if depth == 1 => return at,
            "}" => depth -= 1,
            _ => {}
        }
    }
    tree.len()
}

fn branches<'a, 'b>(tree: &'a [(usize, &'b str)]) -> Vec<&'a [(usize, &'b str)]> {
    let mut depth = 0;
    tree.split(|(_, token)| {
        depth += i32::from(*token == "{") - i32::from(*token == "}");
        *token == "," && depth == 0
    })
    .filter(|branch| !branch.is_empty())
    .collect()
}

/// The text with comments and literals blanked, newlines kept.
fn blanked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = unread(rest, out.chars().last());
        if length == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            let (skipped, after) = rest.split_at(length.min(rest.len()));
            out.extend(skipped.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = after;
        }
    }
    out
}

/// How long the comment or literal is that begins here; 0 for none.
fn unread(rest: &str, before: Option<char>) -> usize {
    let in_name = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if rest.starts_with("//") {
        rest.find('\n').unwrap_or(rest.len())
    } else if rest.starts_with("/*") {
        rest.find("*/").map_or(rest.len(), |end| end + 2)
    } else if let Some(length) = raw_string(rest).filter(|_| !in_name) {
        length
    } else if let Some(inside) = rest.strip_prefix('"') {
        1 + quoted(inside, '"')
    } else if rest.starts_with('\'') && !is_lifetime(rest) {
        1 + quoted(&rest[1..], '\'')
    } else {
        0
    }
}

fn is_lifetime(rest: &str) -> bool {
    let mut chars = rest.chars().skip(1);
    let first = chars.next();
    first.is_some_and(|c| c.is_alphabetic() || c == '_') && chars.next() != Some('\'')
}

fn raw_string(rest: &str) -> Option<usize> {
    let start = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = start.len() - start.trim_start_matches('#').len();
    let body = start.trim_start_matches('#').strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(rest.len() - body.len() + length)
}

fn quoted(rest: &str, end: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == end => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The code with every `#[cfg(test)] mod … { … }` blanked.
fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    let mut from = 0;
    while let Some(at) = out[from..].find("#[cfg(test)]").map(|at| at + from) {
        let rest = &out[at..];
        let is_module = rest["#[cfg(test)]".len()..].trim_start().starts_with("mod ");
        let (open, semicolon) = (rest.find('{'), rest.find(';'));
        from = at + 1;
        let (true, Some(open)) = (is_module, open) else {
            continue;
        };
        if semicolon.is_some_and(|semicolon| semicolon < open) {
            continue;
        }
        let mut depth = 0;
        let length = rest[open..].find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth == 0
        });
        let end = at + open + length.map_or(rest.len() - open, |length| length + 1);
        let blank: String = out[at..end]
            .chars()
            .map(|c| if c == '\n' { '\n' } else { ' ' })
            .collect();
        out.replace_range(at..end, &blank);
    }
    out
}
