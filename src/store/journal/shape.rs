//! An event's text without what it repeats: its shape, which thousands of events share, and the values in it.

use std::fmt::Write;

/// Stands in a shape where a value is taken out, and between the values. Text of JSON on one line never holds it.
const GAP: char = '\n';
/// The shape of a text that is a value as a whole.
pub(super) const WHOLE: &str = "\n";

/// Texts that are never a part of a shape, for there is no end of them.
const VALUES: [&str; 6] = ["model", "key", "response", "client", "by", "key_path"];
/// Any other text of this length with a digit in it is taken for an id.
const ID: usize = 8;

/// Appends the shape of `body` to `shape`, and what was taken out of it to `values`. Numbers, and texts that have no end
/// of values, are taken out.
pub(super) fn split(body: &str, shape: &mut String, values: &mut String) {
    let mut rest = body;
    let mut name = "";
    let mut first = true;
    let mut take = |value: &str, shape: &mut String| {
        if !std::mem::take(&mut first) {
            values.push(GAP);
        }
        values.push_str(value);
        shape.push(GAP);
    };
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        shape.push_str(before);
        let is_text = from.starts_with('"');
        let length = if is_text { text(from) } else { number(from) };
        let (token, after) = from.split_at(length);
        rest = after;
        if !is_text {
            take(token, shape);
        } else if after.starts_with(':') {
            name = token.trim_matches('"');
            shape.push_str(token);
        } else if VALUES.contains(&name) || is_id(token) {
            take(token, shape);
        } else {
            shape.push_str(token);
        }
    }
    shape.push_str(rest);
}

fn is_id(token: &str) -> bool {
    token.len() >= ID + 2 && token.bytes().any(|byte| byte.is_ascii_digit())
}

/// The length of the text at the beginning, quotes included.
fn text(from: &str) -> usize {
    let mut escaped = true;
    let end = from.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(from.len(), |end| end + 1)
}

/// The length of the number at the beginning.
fn number(from: &str) -> usize {
    let end = from.find(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c)));
    end.unwrap_or(from.len())
}

/// The text that was split into the two; none where they do not belong together.
pub(super) fn join(shape: &str, values: &str) -> Option<String> {
    let mut body = String::with_capacity(shape.len() + values.len());
    let mut parts = shape.split(GAP);
    body.push_str(parts.next()?);
    if shape.contains(GAP) {
        let mut values = values.split(GAP);
        for part in parts {
            // Writing to a String cannot fail.
            let _ = write!(body, "{}{part}", values.next()?);
        }
        return values.next().is_none().then_some(body);
    }
    values.is_empty().then_some(body)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(body: &str) -> (String, String) {
        let (mut shape, mut values) = (String::new(), String::new());
        split(body, &mut shape, &mut values);
        (shape, values)
    }

    const TURN: &str = r#"{"event":"turn_finished","provider":"openai","model":"gpt-5","key":"0123456789ab","total_ms":12,"age":"10m","excluded":[{"account":"b","reason":"quota"}],"sent":true,"x":-1.5e3,"by":"a \"b\\","n":[]}"#;

    /// [JRN-4] Turns that differ in numbers, keys and models are of one shape, and come back as they were.
    #[test]
    fn values_are_taken_out_and_put_back() {
        let (shape, values) = parts(TURN);
        assert_eq!(values, "\"gpt-5\"\n\"0123456789ab\"\n12\n-1.5e3\n\"a \\\"b\\\\\"");
        assert!(
            shape.contains(r#""age":"10m","excluded":[{"account":"b""#),
            "{shape}"
        );
        assert_eq!(join(&shape, &values).as_deref(), Some(TURN));
        let other = TURN.replace("12", "70000").replace("gpt-5", "o3\\u0000\\\"");
        assert_eq!(parts(&other).0, shape);
        assert_eq!(join(WHOLE, TURN).as_deref(), Some(TURN));
    }

    /// [JRN-9] A row whose values do not fit its shape is told, not made up.
    #[test]
    fn what_does_not_belong_together_is_not_joined() {
        for (shape, values) in [("{\n}", "1\n2"), ("{\n,\n}", "1"), ("{}", "1")] {
            assert_eq!(join(shape, values), None, "{shape:?} {values:?}");
        }
    }

    proptest! {
        /// [JRN-4] Any text on one line comes back, whether it is JSON or not.
        #[test]
        fn any_line_comes_back(body in "[^\n]{0,80}") {
            let (shape, values) = parts(&body);
            prop_assert_eq!(join(&shape, &values), Some(body));
        }
    }
}
