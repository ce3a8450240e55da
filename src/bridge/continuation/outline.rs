//! What of a request is compared: a raw digest of each group of settings and of each item.

use std::fmt;

use http::HeaderMap;

use super::digest::{Digest, Digester};
use crate::wire::canon::Canon;
use crate::wire::request::{Create, Setting};

/// The compared settings, in the order in which a difference is told.
pub(super) const SETTINGS: [Setting; 4] = [
    Setting::Model,
    Setting::Instructions,
    Setting::Tools,
    Setting::Other,
];
/// An affinity key by content reads at most this many items.
const OPENING: usize = 8;

/// Changes when Codex has compacted a conversation.
const WINDOW: &str = "x-codex-window-id";

/// The window that a request names, in its headers or in its `client_metadata`.
pub fn window(headers: &HeaderMap, create: &Create) -> Option<Vec<u8>> {
    if let Some(value) = headers.get(WINDOW) {
        return Some(value.as_bytes().to_vec());
    }
    let named = create.metadata(WINDOW)?;
    Some(named.into_owned().into_bytes())
}

/// The digests of one request. About 16 bytes for each item.
pub struct Outline {
    pub(super) settings: [Digest; 4],
    /// `NONE` where there was no window.
    pub(super) window: Digest,
    /// A string input is one item.
    pub(super) items: Vec<Digest>,
}

impl Outline {
    /// The outline of a request, in one pass over its bytes. `window` is its `x-codex-window-id`, a compared value.
    ///
    /// `None` where continuation leaves the request alone: it names a response or a conversation, asks for `store` or
    /// `background`, says `generate`, has no input or more items than are counted [CONT-9].
    pub fn of(d: &Digester, create: &Create, window: Option<&[u8]>) -> Option<Self> {
        let left_alone = create.previous_response_id.is_some()
            || create.conversation.is_some()
            || create.store == Some(true)
            || create.background
            || create.generate.is_some();
        if left_alone {
            return None;
        }
        Some(Self {
            settings: raw_settings(d, create),
            window: window.map_or(Digest::NONE, |window| d.raw(window)),
            items: raw_items(d, create)?,
        })
    }

    /// The canonical digest of the conversation's beginning, for an affinity key: the model, and the items up to and
    /// including the first with the role `user`, at most eight. `None` without an item [CONT-12].
    pub fn opening(&self, d: &Digester, create: &Create) -> Option<[u8; 16]> {
        let mut canon = Canon::default();
        let mut opening = create.model.len().to_le_bytes().to_vec();
        opening.extend_from_slice(create.model.as_bytes());
        let count = self.items.len().min(OPENING);
        for (at, raw) in self.items.iter().take(count).enumerate() {
            let item = canonical_item(&mut canon, create, at);
            let (canonical, _) = d.item(item.as_ref());
            let user = item.is_some_and(|item| item.user);
            // What has no canonical form is known by its bytes.
            let known = match canonical == Digest::NONE {
                true => (0, *raw),
                false => (1, canonical),
            };
            opening.push(known.0);
            opening.extend_from_slice(&known.1.bytes());
            if user {
                break;
            }
        }
        (count > 0).then(|| d.canonical(&opening).bytes())
    }
}

fn raw_items(d: &Digester, create: &Create) -> Option<Vec<Digest>> {
    let body = create.body();
    match create.items() {
        Some(items) => items
            .iter()
            .map(|item| Some(d.raw(body.get(item.clone())?)))
            .collect(),
        None => {
            let text = string_input(create)?;
            // Two pieces: unlike any item of a list.
            Some(vec![d.raw_pieces([b"".as_slice(), text.as_bytes()])])
        }
    }
}

/// An `input` that is a string, with its quotes.
fn string_input(create: &Create) -> Option<&str> {
    let text = create.text(create.input.clone()?)?;
    text.starts_with('"').then_some(text)
}

/// The canonical form of an item.
pub(super) fn canonical_item<'c>(
    canon: &'c mut Canon,
    create: &Create,
    at: usize,
) -> Option<crate::wire::canon::Item<'c>> {
    match create.items() {
        Some(items) => canon.item(create.text(items.get(at)?.clone())?),
        None => canon.user_text(string_input(create).filter(|_| at == 0)?),
    }
}

/// Of each group of settings, whatever the order in which the members stand.
fn raw_settings(d: &Digester, create: &Create) -> [Digest; 4] {
    let mut members: Vec<_> = create.compared_bytes().collect();
    members.sort_unstable_by_key(|(_, key, _)| *key);
    SETTINGS.map(|setting| {
        let of_it = members.iter().filter(|(of, ..)| *of == setting);
        d.raw_pieces(of_it.flat_map(|(_, key, value)| [*key, *value]))
    })
}

/// The canonical digest of a group of settings.
pub(super) fn canonical_settings(
    d: &Digester,
    canon: &mut Canon,
    create: &Create,
    setting: Setting,
) -> Digest {
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let of_it = create.compared_bytes().filter(|(of, ..)| *of == setting);
    // In any order: the form has one of its own.
    canon
        .members(of_it.filter_map(|(_, key, value)| Some((text(key)?, text(value)?))))
        .map_or(Digest::NONE, |form| d.canonical(form))
}

/// Shows sizes only (INV-9).
impl fmt::Debug for Outline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outline")
            .field("items", &self.items.len())
            .finish_non_exhaustive()
    }
}
