//! How deep a JSON text nests, counted without recursion and without a stack.

use memchr::memchr2;

/// The offset of the first bracket that opens a level deeper than `limit`. Says nothing about a text's being valid.
pub(super) fn beyond(text: &[u8], limit: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => at = string_end(text, at + 1),
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return Some(at);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The offset of the quote that ends the string whose text starts at `from`, or the end of `text`.
fn string_end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(found) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if text[at] == b'"' {
            return at;
        }
        at += 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::beyond;

    /// [WIRE-13] Text that looks like nesting is none.
    #[test]
    fn brackets_in_strings_are_no_nesting() {
        assert_eq!(beyond(br#"{"a":"[[[[\"[[[[","b":[]}"#, 2), None);
        assert_eq!(beyond(br#"{"a":[[]]}"#, 2), Some(6));
        assert_eq!(beyond(br#"[[],[],[]]"#, 2), None);
        assert_eq!(beyond(br#"["\\\\",[[]]]"#, 2), Some(9));
        assert_eq!(beyond(br#"["\\\"",[[]]]"#, 2), Some(9));
        assert_eq!(beyond(br#"{"unended\"#, 1), None);
    }
}
