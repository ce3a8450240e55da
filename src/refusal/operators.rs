//! The rows of the table that only operators meet.

use super::{Kind, Row, row};

/// See [`Kind::row`].
pub(super) const fn row_of(kind: Kind) -> Row {
    match kind {
        Kind::BadParameter => row(
            400,
            "bridge_bad_parameter",
            0,
            "A parameter of this request is not one, or has no possible value.",
        ),
        Kind::NothingThere => row(
            404,
            "bridge_nothing_there",
            0,
            "There is nothing of that name now: no such session, key, account or response.",
        ),
        Kind::ForgedChange => row(
            403,
            "bridge_forged_change",
            0,
            "This change does not come from the status page itself; reload the page, or send the admin token.",
        ),
        Kind::TooManyAttempts => row(
            429,
            "bridge_too_many_attempts",
            1,
            "Too many requests with a wrong admin token. The right one is taken at any time.",
        ),
        Kind::TooManyStreams => row(
            503,
            "bridge_too_many_streams",
            5,
            "As many event streams are open as may be; close one.",
        ),
        _ => row(500, "bridge_internal", 1, "A fault inside the bridge."),
    }
}
