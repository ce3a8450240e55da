//! What a session's memory is to a request (KEY-21, CONT-26).

use std::sync::Arc;

use super::{Ask, Slot};
use crate::bridge::ownership::SessionId;
use crate::bridge::plan::Fit;
use crate::bridge::session::Memory;

/// What a session's memory is to a request.
pub(super) fn fit(id: SessionId, slot: &Slot, ask: &Ask<'_>) -> Fit {
    if ask.stay == Some(id) {
        return Fit::Named;
    }
    let Some(memory) = &slot.memory else {
        return Fit::Blank;
    };
    if ask.names.is_some() {
        return if ask.names == Some(&*memory.response_id) {
            Fit::Named
        } else {
            Fit::Other
        };
    }
    match extended(id, memory, ask) {
        Some(items) => Fit::Extended { items },
        None if ask.retold.contains(&id) => Fit::Extended { items: 0 },
        // What upstream keeps elsewhere, and no input extends, is not lost with the socket's memory.
        None if memory.stored && memory.history.is_none() => Fit::Blank,
        None => Fit::Other,
    }
}

/// How many items of the request the session has already, where it still remembers what was compared.
pub(super) fn extended(id: SessionId, memory: &Memory, ask: &Ask<'_>) -> Option<usize> {
    let history = memory.history.as_ref()?;
    let found = ask
        .extends
        .iter()
        .find(|found| found.session == id && Arc::ptr_eq(&found.history, history))?;
    Some(found.extension.skip())
}

/// What is remembered from now on. A turn that was given back unsent changed nothing: the conversation, which a session tells
/// once, is still the same.
pub(super) fn still(told: Option<Memory>, known: Option<Memory>) -> Option<Memory> {
    let mut told = told?;
    if told.history.is_none() {
        let same = known.filter(|known| known.response_id == told.response_id);
        told.history = same.and_then(|known| known.history);
    }
    Some(told)
}
