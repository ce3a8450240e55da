//! Refusals that anybody can have for nothing.

use super::Kind;

impl Kind {
    /// Whether it answers requests that have shown no credential, or none that is known here.
    pub fn is_before_any_credential(self) -> bool {
        matches!(
            self,
            Kind::MissingCredential
                | Kind::UnknownClientKey
                | Kind::OriginNotAllowed
                | Kind::NotFound
                | Kind::MethodNotAllowed
                | Kind::UpgradeNotSupported
                | Kind::HeadersTooLarge
                | Kind::TooManyConnections
                | Kind::NotAdmin
                | Kind::TooManyAttempts
                | Kind::ForgedChange
        )
    }
}
