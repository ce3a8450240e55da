//! What changes in a file, line by line.

use std::fmt::Write;
use std::path::Path;

/// More cells than this are not compared one by one: no configuration has as many lines.
const CELLS: usize = 16_000_000;

/// The lines that go (`-`) and those that come (`+`), each group below the number of its first line in the new text.
pub fn between(path: &Path, old: &str, new: &str) -> String {
    let name = path.display();
    let mut out = format!("--- {name}\n+++ {name}\n");
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old, new) = (
        old.get(same..).unwrap_or_default(),
        new.get(same..).unwrap_or_default(),
    );
    let common = Common::of(old, new);
    let (mut at, mut number) = (0, 0);
    let mut together = false;
    while at < old.len() || number < new.len() {
        let (before, after) = (old.get(at), new.get(number));
        if before == after {
            (at, number, together) = (at + 1, number + 1, false);
            continue;
        }
        // Writing to a String cannot fail.
        if !std::mem::replace(&mut together, true) {
            let _ = writeln!(out, "@@ line {}", same + number + 1);
        }
        let goes = after.is_none() || common.left(at + 1, number) >= common.left(at, number + 1);
        match (before, after) {
            (Some(line), _) if goes => {
                let _ = writeln!(out, "-{}", plain(line));
                at += 1;
            }
            (_, line) => {
                let _ = writeln!(out, "+{}", plain(line.unwrap_or(&"")));
                number += 1;
            }
        }
    }
    out
}

/// How many lines two texts still have in common from some place on in each.
struct Common {
    width: usize,
    cells: Vec<u32>,
}

impl Common {
    fn of(old: &[&str], new: &[&str]) -> Common {
        let width = new.len() + 1;
        let size = (old.len() + 1).saturating_mul(width);
        let mut common = Common {
            width,
            cells: vec![0; if size > CELLS { 0 } else { size }],
        };
        for (at, line) in old.iter().enumerate().rev() {
            for (number, other) in new.iter().enumerate().rev() {
                let most = if line == other {
                    common.left(at + 1, number + 1) + 1
                } else {
                    common.left(at + 1, number).max(common.left(at, number + 1))
                };
                if let Some(cell) = common.cells.get_mut(at * width + number) {
                    *cell = most;
                }
            }
        }
        common
    }

    fn left(&self, at: usize, number: usize) -> u32 {
        self.cells.get(at * self.width + number).copied().unwrap_or(0)
    }
}

/// The file's text, without what a terminal would obey.
fn plain(line: &str) -> String {
    let plain = |c: char| if c.is_control() && c != '\t' { '?' } else { c };
    line.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(old: &str, new: &str) -> String {
        let text = between(Path::new("b.toml"), old, new);
        text.strip_prefix("--- b.toml\n+++ b.toml\n").unwrap().to_owned()
    }

    /// [TUNE-10] replaced, added and removed lines, each where it stands, and nothing of the others.
    #[test]
    fn lines_that_differ() {
        let old = "a = 1\n\n[b]\nc = \"60s\" # why\nd = 4\n\n[e]\nf = 5\n";
        let new = "a = 1\n\n[b]\nx = 9\nc = \"45s\" # why\nd = 4\n\n[e]\nf = 5\n\n[g]\nh = 6\n";
        let shown =
            "@@ line 4\n-c = \"60s\" # why\n+x = 9\n+c = \"45s\" # why\n@@ line 10\n+\n+[g]\n+h = 6\n";
        assert_eq!(of(old, new), shown);
        assert_eq!(of(old, old), "");
        assert_eq!(of("a\nb\nc\n", "a\nc\n"), "@@ line 2\n-b\n");
        assert_eq!(of("a\n", "a\u{1b}[31m\n"), "@@ line 1\n-a\n+a?[31m\n");
    }
}
