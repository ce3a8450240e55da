//! What of an item counts. Clients write items anew from objects of their own; these changes say nothing [CONT-5]:
//!
//! - `id` left out, unless it is all that the item says (`item_reference`);
//! - `status` `completed` left out; members that are null, of the item and of the objects directly in it or in its lists;
//! - `annotations` and `logprobs` of content parts, where they are empty lists;
//! - `type` `message` left out where there is a `role`;
//! - a message's `content` as a string instead of a list of one text part;
//! - a function call's `arguments` as other JSON text of the same value.

use super::strings::Scan;
use super::{COUNT, Canon, Member, Place, TAG, key};

/// What else an item tells about itself.
pub(super) struct Facts {
    pub(super) has_id: bool,
    pub(super) user: bool,
}

impl Canon {
    pub(super) fn read_item(&mut self, scan: &mut Scan<'_>) -> Option<Facts> {
        scan.peek().filter(|byte| *byte == b'{')?;
        self.read_members(scan, 0, |key| Place::InItem {
            parts: key == b"content",
        })?;
        self.drop_absent(0, false);
        let (kind, role) = (self.text_of(b"type"), self.text_of(b"role"));
        let message = role.is_some() && kind.is_none_or(|kind| kind == b"message");
        let reference = kind.map_or(role.is_none(), |kind| kind == b"item_reference");
        let call = kind == Some(b"function_call");
        let user = role == Some(b"user");
        let part = role.filter(|_| message).and_then(part_type);
        if message {
            self.drop_member(b"type");
        }
        if self.text_of(b"status") == Some(b"completed") {
            self.drop_member(b"status");
        }
        let has_id = !reference && self.take_id();
        if let Some(part) = part {
            self.content_as_parts(part)?;
        }
        if call {
            self.arguments_as_value();
        }
        self.close_object(0, 0)?;
        Some(Facts { has_id, user })
    }

    pub(super) fn read_user_text(&mut self, scan: &mut Scan<'_>) -> Option<()> {
        self.open(b'o');
        for name in ["role", "content"] {
            let start = self.out.len();
            self.push_text(name.as_bytes())?;
            let value = self.out.len();
            match name {
                "role" => self.push_text(b"user")?,
                _ => self.text(scan)?,
            }
            let end = self.out.len();
            self.members.push(Member {
                start,
                value,
                end,
                dropped: false,
            });
        }
        self.content_as_parts(part_type(b"user")?)?;
        self.close_object(0, 0)
    }

    /// The item's member of this name, unless it counts as absent.
    fn member(&self, name: &[u8]) -> Option<usize> {
        self.members
            .iter()
            .position(|member| !member.dropped && key(&self.out, member) == name)
    }

    /// The text of a member that is a string.
    fn text_of(&self, name: &[u8]) -> Option<&[u8]> {
        let member = self.members.get(self.member(name)?)?;
        let (tag, rest) = self.out.get(member.value..member.end)?.split_first()?;
        rest.get(COUNT..).filter(|_| *tag == b's')
    }

    fn drop_member(&mut self, name: &[u8]) {
        if let Some(member) = self.member(name).and_then(|at| self.members.get_mut(at)) {
            member.dropped = true;
        }
    }

    /// Puts the `id` aside. An id that is no string stays where it is, as content.
    fn take_id(&mut self) -> bool {
        let Some(id) = self.text_of(b"id") else {
            return false;
        };
        self.id = id.to_vec();
        self.drop_member(b"id");
        true
    }

    /// A `content` that is a string becomes the list of one part that it stands for, written anew at the end of `out`.
    fn content_as_parts(&mut self, part: &[u8]) -> Option<()> {
        let Some(text) = self.text_of(b"content").map(<[u8]>::len) else {
            return Some(());
        };
        let at = self.member(b"content")?;
        let old = *self.members.get(at)?;
        let start = self.out.len();
        self.push_text(b"content")?;
        let value = self.out.len();
        self.open(b'l');
        self.patch(value + TAG, 1)?;
        let object = self.out.len();
        self.open(b'o');
        self.patch(object + TAG, 2)?;
        self.push_text(b"text")?;
        self.open(b's');
        self.patch(self.out.len() - COUNT, text)?;
        self.out.extend_from_within(old.end - text..old.end);
        self.push_text(b"type")?;
        self.push_text(part)?;
        let end = self.out.len();
        *self.members.get_mut(at)? = Member {
            start,
            value,
            end,
            dropped: false,
        };
        Some(())
    }

    /// `arguments` that are JSON are compared as the value that they are, written anew at the end of `out`.
    fn arguments_as_value(&mut self) {
        let Some(text) = self.text_of(b"arguments").map(<[u8]>::to_vec) else {
            return;
        };
        let (start, first) = (self.out.len(), self.members.len());
        if self.try_arguments(&text).is_none() {
            self.out.truncate(start);
            self.members.truncate(first);
        }
    }

    fn try_arguments(&mut self, text: &[u8]) -> Option<()> {
        let start = self.out.len();
        self.push_text(b"arguments")?;
        let value = self.out.len();
        self.out.push(b'a');
        let mut scan = Scan::new(text);
        self.value(&mut scan, Place::Plain, 0)?;
        scan.end()?;
        let end = self.out.len();
        let at = self.member(b"arguments")?;
        *self.members.get_mut(at)? = Member {
            start,
            value,
            end,
            dropped: false,
        };
        Some(())
    }

    fn push_text(&mut self, text: &[u8]) -> Option<()> {
        self.open(b's');
        self.out.extend_from_slice(text);
        self.patch(self.out.len() - text.len() - COUNT, text.len())
    }
}

/// The type of the one text part that a string `content` stands for.
fn part_type(role: &[u8]) -> Option<&'static [u8]> {
    match role {
        b"user" | b"system" | b"developer" => Some(b"input_text"),
        b"assistant" => Some(b"output_text"),
        _ => None,
    }
}
