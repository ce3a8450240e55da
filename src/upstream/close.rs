//! How a socket ended, in closed words.

use std::io;

use tokio_tungstenite::tungstenite;
use tungstenite::error::ProtocolError;
use tungstenite::protocol::CloseFrame;

/// The end of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close {
    pub class: CloseClass,
    /// The code of the peer's close frame, if one came and had one.
    pub code: Option<u16>,
    /// A close frame came: the peer ended it on purpose, or answered our own.
    pub clean: bool,
}

/// Why a socket ended. Closed: [`CloseClass::label`] is a metric label (INV-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseClass {
    /// 1000
    Normal,
    /// 1001
    GoingAway,
    /// 1008, not transient
    Policy,
    /// 1009, not transient: the same message will be refused again
    TooBig,
    /// 1011
    ServerError,
    /// 1012
    Restart,
    /// 1013
    TryLater,
    /// A close frame with any other code
    Other,
    /// A close frame without a code
    NoStatus,
    /// The stream ended, or our close went unanswered, without a close frame
    Abnormal,
    /// The connection was reset, or a write found it gone
    Reset,
    /// What came is not the WebSocket protocol, or text that is not UTF-8
    Protocol,
    /// A message above the inbound cap
    FrameTooLarge,
    /// Any other failure of the connection
    Io,
}

impl CloseClass {
    /// Every class, for documentation and tests.
    pub const ALL: [CloseClass; 14] = [
        CloseClass::Normal,
        CloseClass::GoingAway,
        CloseClass::Policy,
        CloseClass::TooBig,
        CloseClass::ServerError,
        CloseClass::Restart,
        CloseClass::TryLater,
        CloseClass::Other,
        CloseClass::NoStatus,
        CloseClass::Abnormal,
        CloseClass::Reset,
        CloseClass::Protocol,
        CloseClass::FrameTooLarge,
        CloseClass::Io,
    ];

    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            CloseClass::Normal => "normal",
            CloseClass::GoingAway => "going_away",
            CloseClass::Policy => "policy",
            CloseClass::TooBig => "too_big",
            CloseClass::ServerError => "server_error",
            CloseClass::Restart => "restart",
            CloseClass::TryLater => "try_later",
            CloseClass::Other => "other",
            CloseClass::NoStatus => "no_status",
            CloseClass::Abnormal => "abnormal",
            CloseClass::Reset => "reset",
            CloseClass::Protocol => "protocol",
            CloseClass::FrameTooLarge => "frame_too_large",
            CloseClass::Io => "io",
        }
    }

    fn of_code(code: u16) -> CloseClass {
        match code {
            1000 => CloseClass::Normal,
            1001 => CloseClass::GoingAway,
            1008 => CloseClass::Policy,
            1009 => CloseClass::TooBig,
            1011 => CloseClass::ServerError,
            1012 => CloseClass::Restart,
            1013 => CloseClass::TryLater,
            _ => CloseClass::Other,
        }
    }

    pub(super) fn of_io(kind: io::ErrorKind) -> CloseClass {
        match kind {
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
                CloseClass::Reset
            }
            io::ErrorKind::UnexpectedEof => CloseClass::Abnormal,
            _ => CloseClass::Io,
        }
    }
}

impl Close {
    /// An end without a close frame.
    pub(super) fn unclean(class: CloseClass) -> Close {
        Close {
            class,
            code: None,
            clean: false,
        }
    }

    /// An end by the peer's close frame.
    pub(super) fn by_peer(frame: Option<&CloseFrame>) -> Close {
        let code = frame.map(|frame| u16::from(frame.code));
        Close {
            class: code.map_or(CloseClass::NoStatus, CloseClass::of_code),
            code,
            clean: true,
        }
    }

    /// An end by a failure that tungstenite found while reading.
    pub(super) fn by_error(error: &tungstenite::Error) -> Close {
        use tungstenite::Error;
        Close::unclean(match error {
            Error::Io(error) => CloseClass::of_io(error.kind()),
            Error::Capacity(_) => CloseClass::FrameTooLarge,
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)
            | Error::ConnectionClosed
            | Error::AlreadyClosed => CloseClass::Abnormal,
            _ => CloseClass::Protocol,
        })
    }
}
