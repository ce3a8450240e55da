//! A cursor over a JSON text: white space, words, numbers, and strings with their escapes resolved.

use memchr::memchr2;

pub(super) struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// The next byte that is no white space. It stays unread.
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.get(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Nothing but white space is left.
    pub(super) fn end(&mut self) -> Option<()> {
        self.peek().is_none().then_some(())
    }

    pub(super) fn takes(&mut self, wanted: u8) -> bool {
        let there = self.peek() == Some(wanted);
        self.at += usize::from(there);
        there
    }

    pub(super) fn byte(&mut self, wanted: u8) -> Option<()> {
        self.takes(wanted).then_some(())
    }

    /// After a list's or an object's member: true where `close` ends it, false where a comma goes on.
    pub(super) fn closes(&mut self, close: u8) -> Option<bool> {
        match self.peek()? {
            b',' => {
                self.at += 1;
                Some(false)
            }
            byte if byte == close => {
                self.at += 1;
                Some(true)
            }
            _ => None,
        }
    }

    pub(super) fn word(&mut self, word: &[u8]) -> Option<()> {
        let there = self.text.get(self.at..)?.starts_with(word);
        self.at += word.len();
        there.then_some(())
    }

    /// A number as it is written.
    pub(super) fn number(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        self.at += usize::from(self.text.get(self.at) == Some(&b'-'));
        match self.digits()? {
            b"0" => {}
            whole if whole.starts_with(b"0") => return None,
            _ => {}
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.text.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        self.text.get(start..self.at)
    }

    /// One digit or more.
    fn digits(&mut self) -> Option<&'a [u8]> {
        let rest = self.text.get(self.at..)?;
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        rest.get(..count).filter(|digits| !digits.is_empty())
    }

    /// Appends the text of the string that stands here.
    pub(super) fn string(&mut self, out: &mut Vec<u8>) -> Option<()> {
        self.byte(b'"')?;
        loop {
            let rest = self.text.get(self.at..)?;
            let length = memchr2(b'"', b'\\', rest)?;
            let plain = rest.get(..length)?;
            // Not all of them are looked at one by one: this is what vectorises.
            if plain.iter().fold(u8::MAX, |least, byte| least.min(*byte)) < b' ' {
                return None;
            }
            out.extend_from_slice(plain);
            self.at += length + 1;
            if rest.get(length) == Some(&b'"') {
                return Some(());
            }
            self.escape(out)?;
        }
    }

    /// What follows a backslash.
    fn escape(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let byte = *self.text.get(self.at)?;
        self.at += 1;
        let plain = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let char = self.escaped_char()?;
                out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                return Some(());
            }
            _ => return None,
        };
        out.push(plain);
        Some(())
    }

    /// The character of `\u`, which a surrogate pair takes two of. Half a pair has no text.
    fn escaped_char(&mut self) -> Option<char> {
        let first = self.four_digits()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        self.word(b"\\u")?;
        let second = self.four_digits()?;
        if !(0xdc00..0xe000).contains(&second) {
            return None;
        }
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        digits.iter().try_fold(0, |value, digit| {
            Some(value << 4 | char::from(*digit).to_digit(16)?)
        })
    }
}
