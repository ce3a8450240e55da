//! Patterns for event names, as `events --kind`, the admin API's `kind` and the status page's filter take them (JRN-8): `*`
//! stands for any text, everything else for itself.

/// Whether `text` is what `pattern` describes. Takes no longer than the lengths of both.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    // Each part where it first comes leaves the most for those after it; the last one has its place at the end.
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

/// What patterns mean, for the tests of all who take them: pattern, text, and whether it is one.
#[cfg(test)]
pub(crate) const TABLE: &[(&str, &str, bool)] = &[
    ("refused", "refused", true),
    ("refused", "refused_too", false),
    ("quarantine", "quarantine_opened", false),
    ("Refused", "refused", false),
    ("*", "refused", true),
    ("**", "refused", true),
    ("quarantine*", "quarantine_opened", true),
    ("quarantine*", "quarantine", true),
    ("quarantine_opened*", "quarantine_opened", true),
    ("*_opened", "quarantine_opened", true),
    ("*quarantine_opened", "quarantine_opened", true),
    ("*_open", "quarantine_opened", false),
    ("*x", "turn_finished", false),
    ("t*_*d", "turn_finished", true),
    ("t*d*d", "turn_finished", false),
    ("q*ne_*n*ed", "quarantine_opened", true),
    ("q*ne_*ne*ed", "quarantine_opened", false),
    ("*aab", "aaaab", true),
    // Both ends need text of their own.
    ("turn*turn", "turn", false),
    ("turn*n_finished", "turn_finished", false),
    ("turn*_finished", "turn_finished", true),
    // Nothing else is special.
    ("r?fused", "refused", false),
    ("?", "x", false),
    (".*", "refused", false),
    ("[r]efused", "refused", false),
    ("refused|turn_finished", "refused", false),
    ("%", "refused", false),
    ("ref_sed", "refused", false),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// [JRN-8] What a pattern means, and that a strange one ends.
    #[test]
    fn stars_and_nothing_else() {
        for (pattern, text, is) in TABLE {
            assert_eq!(matches(pattern, text), *is, "{pattern} {text}");
        }
        for (pattern, text) in [
            ("", ""),
            ("*", ""),
            ("***", ""),
            ("r?fused", "r?fused"),
            ("ü*ß", "üß"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        assert!(!matches("", "x") && !matches("?", "") && !matches("*ä", "ü"));
        let begun = std::time::Instant::now();
        for long in [
            "*a".repeat(100_000),
            "*ab".repeat(100_000),
            format!("*{}b", "a".repeat(50_000)),
        ] {
            assert!(!matches(&long, "turn_finished"));
            assert!(!matches(&long, &"a".repeat(99_999)));
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(5));
    }
}
