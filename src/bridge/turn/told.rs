//! What a client is told in the documented terms, whatever the upstream's were.

use bytes::Bytes;

use super::Output;
use crate::bridge::watchdog::Verdict;
use crate::refusal::Kind;
use crate::wire::error::WireError;
use crate::wire::failure;
use crate::wire::head::{self, Terminal, TerminalKind};

/// Whether a terminal reports a failure: an incomplete response whose reason is an error code does too.
pub(super) fn failed(terminal: &Terminal) -> bool {
    terminal.kind == TerminalKind::Failed || terminal.error.is_some()
}

/// The documented terminal event for one that came as `response.done` or as a bare response object.
pub(super) fn typed(name: Bytes, data: Bytes, terminal: &Terminal) -> (Bytes, Bytes) {
    if terminal.typed {
        return (name, data);
    }
    match head::response_object(&data) {
        Some(span) => {
            let whole = failure::retyped(terminal.kind, head::sequence_number(&data), &data[span]);
            (Bytes::from_static(terminal.kind.event().as_bytes()), whole.into())
        }
        None => (name, data),
    }
}

/// The upstream's error frame as the `response.failed` that it becomes after commit: same code, same message.
pub(super) fn told(error: &WireError) -> Output {
    let code = error
        .code
        .as_deref()
        .or(error.kind.as_deref())
        .unwrap_or(error.class().label());
    let message = error
        .message
        .as_deref()
        .unwrap_or("The upstream reported an error without a message.");
    Output::Fail {
        code: code.to_owned().into(),
        message: message.to_owned().into(),
    }
}

/// Which row of the refusal table a verdict is.
pub(super) fn blame(verdict: Verdict) -> Kind {
    match verdict {
        Verdict::WriteStalled => Kind::WriteStalled,
        Verdict::Silent(_) => Kind::CreatedTimeout,
        Verdict::FirstByte => Kind::FirstByteTimeout,
        Verdict::FirstEvent => Kind::FirstEventTimeout,
        Verdict::Idle => Kind::IdleTimeout,
        Verdict::RequestDeadline => Kind::RequestDeadline,
    }
}
