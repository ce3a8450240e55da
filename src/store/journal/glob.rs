//! Patterns for event names: `*` stands for any text, `?` for one character.

/// Whether `text` is what `pattern` describes. Takes at most the product of their lengths.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    // Where the last star was, and what it was tried against: on a mismatch it takes one character more.
    let mut star: Option<(&str, &str)> = None;
    loop {
        let (mut wanted, mut given) = (pattern.chars(), text.chars());
        match (wanted.next(), given.next()) {
            (Some('*'), _) => {
                pattern = wanted.as_str();
                star = Some((pattern, text));
            }
            (None, None) => return true,
            (Some(one), Some(other)) if one == '?' || one == other => {
                (pattern, text) = (wanted.as_str(), given.as_str());
            }
            _ => {
                let Some((after, from)) = star else { return false };
                let mut shorter = from.chars();
                if shorter.next().is_none() {
                    return false;
                }
                (pattern, text) = (after, shorter.as_str());
                star = Some((after, text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [JRN-8] What a pattern means, and that a strange one ends.
    #[test]
    fn stars_and_question_marks() {
        let yes = [
            ("quarantine*", "quarantine_opened"),
            ("*", ""),
            ("", ""),
            ("*_finished", "turn_finished"),
            ("t?rn*f*d", "turn_finished"),
            ("turn_finished", "turn_finished"),
            ("**", "x"),
            ("*aab", "aaaab"),
        ];
        for (pattern, text) in yes {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("quarantine", "quarantine_opened"),
            ("?", ""),
            ("*x", "turn"),
            ("", "x"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
        let long = "*a".repeat(100_000);
        assert!(!matches(&long, "turn_finished"));
    }
}
