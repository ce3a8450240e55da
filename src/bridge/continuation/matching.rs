//! Does this input begin with all that the socket has seen?

use std::fmt;

use super::Rejected;
use super::digest::{Digest, Digester};
use super::history::{Entry, History};
use super::outline::{Outline, SETTINGS, canonical_item, canonical_settings};
use crate::wire::canon::{Canon, is_compaction};
use crate::wire::request::{Create, Setting};

/// A request that continues a history.
pub struct Extension {
    skip: usize,
    /// Ids that the client has sent of items whose id was not known: number of the item, digest of the id.
    pub(super) ids: Vec<(u32, u64)>,
}

impl Extension {
    /// How many of the input's items the socket has already. Always fewer than the input has.
    pub fn skip(&self) -> usize {
        self.skip
    }
}

/// A request that does not continue a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Apart {
    pub why: Rejected,
    /// So many items are the same from the beginning; 0 where the settings differ.
    pub shared: usize,
}

/// Whether the request continues the history: its settings are the same, its input begins with every item of the
/// history in the same order, and has at least one more [CONT-3..CONT-8].
///
/// # Errors
/// The first reason found against it.
pub fn extends(
    d: &Digester,
    create: &Create,
    outline: &Outline,
    history: &History,
) -> Result<Extension, Rejected> {
    compare(d, create, outline, history).map_err(|apart| apart.why)
}

/// The same, with how far both went together.
pub(super) fn compare(
    d: &Digester,
    create: &Create,
    outline: &Outline,
    history: &History,
) -> Result<Extension, Apart> {
    let apart = |why, shared| Apart { why, shared };
    let mut canon = Canon::default();
    same_settings(d, &mut canon, create, outline, history).map_err(|why| apart(why, 0))?;
    if history.is_empty() {
        return Err(apart(Rejected::Nothing, 0));
    }
    let mut ids = Vec::new();
    for (at, (raw, entry)) in outline.items.iter().zip(&history.items).enumerate() {
        if raw.same(entry.raw) {
            continue;
        }
        let item = canonical_item(&mut canon, create, at);
        let Some(id) = same_item(entry, d.item(item.as_ref())) else {
            return Err(apart(other_item(create, at), at));
        };
        if id != entry.id {
            let at = u32::try_from(at).map_err(|_| apart(Rejected::Edited, at))?;
            ids.push((at, id));
        }
    }
    let skip = history.len();
    let new = create.items().and_then(|items| items.get(skip..));
    let Some([_, ..]) = new else {
        return Err(apart(Rejected::Shorter, outline.items.len()));
    };
    let mut new = new.into_iter().flatten();
    if new.any(|item| create.text(item.clone()).is_none_or(is_compaction)) {
        return Err(apart(Rejected::Compaction, skip));
    }
    Ok(Extension { skip, ids })
}

fn same_settings(
    d: &Digester,
    canon: &mut Canon,
    create: &Create,
    outline: &Outline,
    history: &History,
) -> Result<(), Rejected> {
    for ((setting, raw), known) in SETTINGS.into_iter().zip(outline.settings).zip(history.settings) {
        if !raw.same(known.raw) && !canonical_settings(d, canon, create, setting).same(known.canonical) {
            return Err(match setting {
                Setting::Model => Rejected::Model,
                Setting::Instructions => Rejected::Instructions,
                Setting::Tools => Rejected::Tools,
                Setting::Other => Rejected::Settings,
            });
        }
    }
    match outline.window == history.window {
        true => Ok(()),
        false => Err(Rejected::Window),
    }
}

/// The id by which the item is known from now on, when it is the same one. Two ids that are both known must be equal.
fn same_item(entry: &Entry, (canonical, id): (Digest, u64)) -> Option<u64> {
    let one_id = id == entry.id || id == 0 || entry.id == 0;
    (one_id && canonical.same(entry.canonical)).then_some(id.max(entry.id))
}

/// Why an item is not the one that the socket has seen: a history that was compacted begins with what is left of it.
fn other_item(create: &Create, at: usize) -> Rejected {
    let item = create
        .items()
        .and_then(|items| create.text(items.get(at)?.clone()));
    match item.is_some_and(is_compaction) {
        true => Rejected::Compaction,
        false => Rejected::Edited,
    }
}

impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extension")
            .field("skip", &self.skip)
            .finish_non_exhaustive()
    }
}
