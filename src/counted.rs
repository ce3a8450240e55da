//! Numbers of things, in words. Pure; every room may look into this one.

/// `1 turn`, `2 turns`, `0 retries`, `1 key`.
pub fn counted(count: u64, one: &str) -> String {
    format!("{count} {}", plural(count, one))
}

/// The same with words that agree with the number: `1 key waits`, `0 keys wait`.
pub fn agreeing(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// `one`, or more of it.
pub fn plural(count: u64, one: &str) -> String {
    if count == 1 {
        return one.to_owned();
    }
    match one.strip_suffix('y') {
        // A key has keys, a retry has retries.
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [JRN-11] [ADM-31] One is one, and all else is more.
    #[test]
    fn one_and_more() {
        let told = [
            (1, "turn"),
            (0, "turn"),
            (2, "key"),
            (1, "retry"),
            (3, "retry"),
            (2, "entry"),
        ];
        let told = told.map(|(count, one)| counted(count, one));
        assert_eq!(
            told,
            ["1 turn", "0 turns", "2 keys", "1 retry", "3 retries", "2 entries"]
        );
    }
}
