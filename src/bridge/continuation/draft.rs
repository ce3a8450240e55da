//! The history in the making while a turn runs.

use std::fmt;

use super::digest::{Digest, Digester};
use super::history::{Entry, History, Known};
use super::matching::Extension;
use super::outline::{Outline, SETTINGS, canonical_item, canonical_settings};
use crate::wire::canon::{Canon, is_compaction};
use crate::wire::request::{Create, MAX_ITEMS};

/// What the socket will remember when the turn completes: the request's items, then the output's as they come.
pub struct Draft {
    history: History,
    /// What came out ends the conversation's continuation: a compaction, or too much.
    ended: bool,
}

impl Draft {
    /// Begins with a request's items, as [`Draft::new`] does, where the request tells a known conversation again without
    /// continuing it: what is the same to the byte need not be read again.
    pub fn retold(d: &Digester, create: &Create, outline: &Outline, known: &History) -> Self {
        Self::anew(d, create, outline, Some(known))
    }

    /// Begins with a request's items. Those of the history that it continues are known already; only the others are read
    /// [CONT-10].
    pub fn new(
        d: &Digester,
        create: &Create,
        outline: &Outline,
        continued: Option<(&History, &Extension)>,
    ) -> Self {
        let Some((history, extension)) = continued else {
            return Self::anew(d, create, outline, None);
        };
        let mut canon = Canon::default();
        let mut history = inherited(outline, history, extension);
        let new = history.len()..outline.items.len();
        history
            .items
            .extend(new.map(|at| read(d, &mut canon, create, outline, at)));
        Self::of(history)
    }

    /// Begins with all of a request. What `known` has in the same place, the same to the byte, is not read.
    fn anew(d: &Digester, create: &Create, outline: &Outline, known: Option<&History>) -> Self {
        let mut canon = Canon::default();
        let settings = settings(d, &mut canon, create, outline, known);
        let items = outline.items.iter().enumerate().map(|(at, raw)| {
            let before = known.and_then(|known| known.items.get(at));
            let before = before.filter(|entry| entry.raw.same(*raw)).copied();
            before.unwrap_or_else(|| read(d, &mut canon, create, outline, at))
        });
        Self::of(History {
            settings,
            window: outline.window,
            items: items.collect(),
        })
    }

    fn of(history: History) -> Self {
        let ended = history.len() > MAX_ITEMS;
        Self { history, ended }
    }

    /// Adds one item of the output: the raw bytes of the `item` of a `response.output_item.done`.
    pub fn output(&mut self, d: &Digester, item: &[u8]) {
        let text = std::str::from_utf8(item).ok();
        self.ended |= self.history.len() >= MAX_ITEMS || text.is_some_and(is_compaction);
        if self.ended {
            return;
        }
        let mut canon = Canon::sized(item.len());
        let (canonical, id) = d.item(text.and_then(|text| canon.item(text)).as_ref());
        let raw = d.raw(item);
        self.history.items.push(Entry { raw, canonical, id });
    }

    /// What the socket remembers, once the response has completed. `None` when a compaction came out, or the items are
    /// more than are counted: there is nothing to extend [CONT-8].
    pub fn finish(self) -> Option<History> {
        let mut history = self.history;
        history.items.shrink_to_fit();
        (!self.ended).then_some(history)
    }
}

/// An item of the request, read.
fn read(d: &Digester, canon: &mut Canon, create: &Create, outline: &Outline, at: usize) -> Entry {
    let (canonical, id) = d.item(canonical_item(canon, create, at).as_ref());
    let raw = outline.items.get(at).copied().unwrap_or(Digest::NONE);
    Entry { raw, canonical, id }
}

/// The history with the raw digests of the request that continues it, so that a client that writes its items in its own
/// way, but always in the same way, is found by raw bytes from the next turn on.
fn inherited(outline: &Outline, history: &History, extension: &Extension) -> History {
    let mut settings = history.settings;
    for (known, raw) in settings.iter_mut().zip(outline.settings) {
        known.raw = raw;
    }
    let mut items = Vec::with_capacity(outline.items.len());
    let known = history.items.iter().take(extension.skip());
    items.extend(
        known
            .zip(&outline.items)
            .map(|(entry, raw)| Entry { raw: *raw, ..*entry }),
    );
    for (at, id) in &extension.ids {
        if let Some(entry) = usize::try_from(*at).ok().and_then(|at| items.get_mut(at)) {
            entry.id = *id;
        }
    }
    History {
        settings,
        window: outline.window,
        items,
    }
}

fn settings(
    d: &Digester,
    canon: &mut Canon,
    create: &Create,
    outline: &Outline,
    known: Option<&History>,
) -> [Known; 4] {
    let mut settings = outline.settings.map(|raw| Known {
        raw,
        canonical: Digest::NONE,
    });
    for (at, (group, setting)) in settings.iter_mut().zip(SETTINGS).enumerate() {
        let before = known.and_then(|known| known.settings.get(at));
        group.canonical = match before.filter(|before| before.raw.same(group.raw)) {
            Some(before) => before.canonical,
            None => canonical_settings(d, canon, create, setting),
        };
    }
    settings
}

/// Shows sizes only (INV-9).
impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft")
            .field("items", &self.history.len())
            .field("ended", &self.ended)
            .finish()
    }
}
