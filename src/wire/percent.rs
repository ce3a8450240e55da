//! Percent-encoding, undone strictly: what is malformed is not guessed at.

use std::borrow::Cow;

/// The bytes of `text` with its percent-encodings undone once; `None` where one is malformed.
pub fn decoded(text: &str) -> Option<Cow<'_, [u8]>> {
    let bytes = text.as_bytes();
    if !bytes.contains(&b'%') {
        return Some(Cow::Borrowed(bytes));
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let ([high, low], after) = rest.split_first_chunk::<2>()?;
        rest = after;
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        out.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
    }
    Some(Cow::Owned(out))
}
