//! A turn's terminal: kept until its owner is durable, then passed on (SES-15, INV-11).

use std::time::Instant;

use bytes::Bytes;

use super::held::Overflow;
use super::told::{failed, typed};
use super::{DURABLE, Outcome, Output, Turn};
use crate::bridge::deadlines::Timer;
use crate::refusal::Kind;
use crate::wire::failure;
use crate::wire::head::{self, Created, Terminal, TerminalKind};

/// The terminal event, while it waits for the store.
pub(super) struct Ending {
    name: Bytes,
    data: Bytes,
    terminal: Box<Terminal>,
}

impl Turn {
    pub(super) fn terminal(&mut self, now: Instant, name: Bytes, data: Bytes, terminal: Terminal) {
        if self
            .late
            .repeats(terminal.response_id.as_deref(), self.response_id())
        {
            return;
        }
        self.last = head::sequence_number(&data);
        if let Some(record) = self.record.take()
            && terminal.kind == TerminalKind::Completed
            && terminal.whole
            && !failed(&terminal)
        {
            self.history = record.finish(head::listed_items(&data, &terminal));
        }
        // The silence before it counts as any other.
        self.watchdog.event(now, &mut self.table);
        // Nothing but the store is waited for any more.
        self.watchdog.finish(&mut self.table);
        if !self.accepted && !failed(&terminal) {
            // An answer that came whole, as over HTTP with `stream: false`. A failed one is nothing to own.
            self.accept(
                now,
                Created {
                    response_id: terminal.response_id.clone(),
                    ..Created::default()
                },
            );
        }
        let (name, data) = typed(name, data, &terminal);
        self.terminal = Some(Ending {
            name,
            data,
            terminal: terminal.into(),
        });
        self.table.set(Timer::Durable, now + DURABLE);
        if self.undurable == 0 {
            self.pass_terminal(now);
        }
    }

    /// An answer that is passed on whatever it says takes the terminal's way: its owner is durable first.
    pub(super) fn whole(&mut self, now: Instant, object: &[u8], response_id: Option<Box<str>>) {
        if self.terminal.is_some() {
            return;
        }
        let kind = TerminalKind::Completed;
        let data = failure::retyped(kind, None, object).into();
        let name = Bytes::from_static(kind.event().as_bytes());
        let terminal = Terminal {
            kind,
            response_id,
            error: None,
            output_empty: false,
            output: None,
            whole: false,
            has_usage: false,
            typed: true,
        };
        self.terminal(now, name, data, terminal);
    }

    pub(super) fn pass_terminal(&mut self, now: Instant) {
        let Some(Ending { name, data, terminal }) = self.terminal.take() else {
            return;
        };
        let mut outcome = match terminal.kind {
            _ if failed(&terminal) && self.accepted => Outcome::Failed,
            _ if failed(&terminal) => Outcome::Rejected,
            TerminalKind::Incomplete => Outcome::Incomplete,
            TerminalKind::Completed | TerminalKind::Failed => Outcome::Completed,
        };
        if failed(&terminal) && !(self.committed && self.accepted) {
            self.refuse_with(terminal.error.unwrap_or_default());
        } else if self.policy.stream {
            self.commit(now);
            for event in self.held.release(None) {
                self.deliver(now, event);
            }
            self.forward(now, name, data);
        } else {
            match self.json(&data, &terminal) {
                Ok(object) => self.outputs.push_back(Output::Json(object)),
                Err(kind) => {
                    outcome = Outcome::Bridge(kind);
                    self.outputs.push_back(Output::Refuse(kind.into()));
                }
            }
        }
        self.finish(outcome, None, true);
    }

    /// The object for a JSON client: the terminal's response, its output filled where it came empty.
    fn json(&mut self, data: &Bytes, terminal: &Terminal) -> Result<Bytes, Kind> {
        let span = head::response_object(data).ok_or(Kind::UpstreamNonsense)?;
        let object = data.slice(span);
        if terminal.output_empty {
            self.items.fill(object).map_err(|Overflow| Kind::HoldOverflow)
        } else {
            Ok(object)
        }
    }
}
