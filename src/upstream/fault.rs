//! How a request to an account failed, typed by what may have been sent.

use std::error::Error as StdError;
use std::io;

use super::dial::UpgradeRefused;

/// No connection was made: nothing was sent, so another send is allowed (INV-1). Closed: a metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Unreached {
    /// The host's name has no address.
    #[error("the upstream's name could not be resolved")]
    Unresolved,
    /// No address takes connections.
    #[error("the upstream refused the connection")]
    Refused,
    /// Resolving, connecting and TLS together took too long.
    #[error("connecting to the upstream took too long")]
    Timeout,
    /// The TLS handshake failed: certificate, protocol, or the peer left it.
    #[error("the TLS handshake with the upstream failed")]
    Tls,
    /// The account's proxy was not reached, refused the credential in its address, or did not reach the upstream.
    #[error("the proxy could not be reached, or did not reach the upstream")]
    Proxy,
    /// This process, or this machine, may not open another file: it says nothing about the upstream.
    #[error("no file is left for a connection to the upstream")]
    NoFiles,
    /// Any other failure to connect.
    #[error("connecting to the upstream failed")]
    Io,
}

impl Unreached {
    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            Unreached::Unresolved => "unresolved",
            Unreached::Refused => "refused",
            Unreached::Timeout => "timeout",
            Unreached::Tls => "tls",
            Unreached::Proxy => "proxy",
            Unreached::NoFiles => "no_files",
            Unreached::Io => "io",
        }
    }
}

/// A connection broke after bytes may have left. Closed: a metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Broken {
    /// The peer ended the connection before its answer was whole.
    #[error("the upstream closed the connection before its answer was whole")]
    Closed,
    /// The connection was reset.
    #[error("the upstream reset the connection")]
    Reset,
    /// What came is not HTTP.
    #[error("the upstream's answer is not HTTP")]
    Protocol,
    /// Any other failure of the connection, or of the request body that was being passed on.
    #[error("the connection to the upstream failed")]
    Io,
}

impl Broken {
    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            Broken::Closed => "closed",
            Broken::Reset => "reset",
            Broken::Protocol => "protocol",
            Broken::Io => "io",
        }
    }
}

/// Why there is no socket. Nothing of a turn was sent in any of these cases.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DialFault {
    #[error("the upstream's name could not be resolved")]
    Unresolved,
    #[error("the upstream refused the connection")]
    Refused,
    /// Not done within the connect deadline, the upgrade's answer included.
    #[error("the WebSocket handshake took too long")]
    Timeout,
    #[error("the TLS handshake with the upstream failed")]
    Tls,
    /// As [`Unreached::Proxy`].
    #[error("the proxy could not be reached, or did not reach the upstream")]
    Proxy,
    /// As [`Unreached::NoFiles`].
    #[error("no file is left for a connection to the upstream")]
    NoFiles,
    /// The upgrade was answered with 3xx, 4xx or 5xx.
    #[error("the upstream refused the upgrade with status {}", .0.status.as_u16())]
    Status(Box<UpgradeRefused>),
    /// The answer was neither a refusal nor a valid WebSocket handshake: 200, a wrong accept key, an extension that
    /// was not asked for, or not HTTP at all.
    #[error("the upstream's answer to the upgrade is not a WebSocket handshake")]
    NotWebSocket,
    /// The connection broke during the upgrade.
    #[error("the connection broke during the WebSocket handshake")]
    Io,
}

impl DialFault {
    /// The metric label; a status has one of its own.
    pub fn label(&self) -> &'static str {
        match self {
            DialFault::Unresolved => "unresolved",
            DialFault::Refused => "refused",
            DialFault::Timeout => "timeout",
            DialFault::Tls => "tls",
            DialFault::Proxy => "proxy",
            DialFault::NoFiles => "no_files",
            DialFault::Status(_) => "status",
            DialFault::NotWebSocket => "not_websocket",
            DialFault::Io => "io",
        }
    }
}

impl From<Unreached> for DialFault {
    fn from(unreached: Unreached) -> DialFault {
        match unreached {
            Unreached::Unresolved => DialFault::Unresolved,
            Unreached::Refused => DialFault::Refused,
            Unreached::Timeout => DialFault::Timeout,
            Unreached::Tls => DialFault::Tls,
            Unreached::Proxy => DialFault::Proxy,
            Unreached::NoFiles => DialFault::NoFiles,
            Unreached::Io => DialFault::Io,
        }
    }
}

impl From<PostFault> for DialFault {
    fn from(fault: PostFault) -> DialFault {
        match fault {
            PostFault::Unconnected(unreached) => unreached.into(),
            PostFault::Ambiguous(Broken::Protocol) => DialFault::NotWebSocket,
            PostFault::Ambiguous(_) | PostFault::Unaddressable => DialFault::Io,
        }
    }
}

/// Why there is no answer to an HTTP request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostFault {
    /// Definite: nothing was sent.
    #[error(transparent)]
    Unconnected(#[from] Unreached),
    /// The request, or a part of it, may have arrived (INV-1).
    #[error(transparent)]
    Ambiguous(#[from] Broken),
    /// Definite: the path is not one below the account's base URL.
    #[error("the path is not one below the upstream's base URL")]
    Unaddressable,
}

impl PostFault {
    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            PostFault::Unconnected(unreached) => unreached.label(),
            PostFault::Ambiguous(broken) => broken.label(),
            PostFault::Unaddressable => "unaddressable",
        }
    }

    /// What `error` says of a request that got no answer.
    pub(super) fn of(error: &reqwest::Error, proxied: bool) -> PostFault {
        if error.is_connect() {
            unreached(error, proxied).into()
        } else {
            Broken::of(error).into()
        }
    }
}

impl Broken {
    /// What `error` says of a connection that was made.
    pub(super) fn of(error: &reqwest::Error) -> Broken {
        if let Some(error) = io_cause(error) {
            return match error.kind() {
                io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe => Broken::Reset,
                io::ErrorKind::UnexpectedEof => Broken::Closed,
                _ => Broken::Io,
            };
        }
        match find::<hyper::Error>(error) {
            Some(error) if error.is_incomplete_message() || error.is_canceled() || error.is_closed() => {
                Broken::Closed
            }
            Some(error) if error.is_parse() => Broken::Protocol,
            _ => Broken::Io,
        }
    }
}

/// EMFILE and ENFILE. They have no kind of their own in the standard library.
const NO_FILES: [i32; 2] = [24, 23];

fn unreached(error: &reqwest::Error, proxied: bool) -> Unreached {
    // First: a look-up needs files too.
    let code = io_cause(error).and_then(io::Error::raw_os_error);
    if code.is_some_and(|code| NO_FILES.contains(&code)) {
        return Unreached::NoFiles;
    }
    // Whoever stands in between is the first to look at, also where it may have been the upstream that took too long.
    if proxied && !beyond_the_proxy(error) {
        return Unreached::Proxy;
    }
    if error.is_dns() {
        return Unreached::Unresolved;
    }
    if error.is_timeout() {
        return Unreached::Timeout;
    }
    let Some(error) = io_cause(error) else {
        return Unreached::Io;
    };
    match error.kind() {
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::AddrNotAvailable => Unreached::Refused,
        // Of all that happens while connecting, only the TLS handshake reads.
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
            Unreached::Tls
        }
        _ => Unreached::Io,
    }
}

/// Whether connecting failed when the proxy had done its part: at the TLS handshake with the upstream. That alone fails
/// with a bare I/O error as its cause; a tunnel that could not be had has an error around it.
fn beyond_the_proxy(error: &reqwest::Error) -> bool {
    let connect = error.source();
    let cause = connect.and_then(StdError::source);
    cause.is_some_and(|cause| cause.is::<io::Error>())
}

/// The innermost I/O error. One that wraps another (as hyper-rustls does) is not its source, and has a kind of its own.
fn io_cause(error: &reqwest::Error) -> Option<&io::Error> {
    let mut cause = find::<io::Error>(error)?;
    while let Some(inner) = cause
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<io::Error>())
    {
        cause = inner;
    }
    Some(cause)
}

/// The first `E` in the chain of causes.
fn find<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}
