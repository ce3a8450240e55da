//! Where operators reach the bridge that a file configures, and with which token: what the command line needs of it, without
//! the secrets of accounts and clients, which an operator's shell need not have (ADM-30).
use std::net::SocketAddr;

use secrecy::SecretString;

use super::credentials::secret;
use super::defaults::DEFAULT_LISTEN;
use super::document;
use super::review::Review;
use super::{Environment, Faults};

/// See the module.
#[derive(Clone, Debug)]
pub struct Door {
    /// `server.admin_listen`, else `server.listen`.
    pub address: SocketAddr,
    /// `server.admin_token`, where one is configured.
    pub token: Option<SecretString>,
}

impl Door {
    /// Reads it from the text of a file.
    ///
    /// # Errors
    /// The file has faults of form, or the token is not where it says.
    pub fn of(text: &str, file: &str, env: Environment<'_>) -> Result<Door, Faults> {
        let (raw, places) = document::read(text, file)?;
        let mut review = Review::new(env, file, places);
        let written = raw.server.admin_listen.as_deref().unwrap_or(&raw.server.listen);
        // What is no address is a fault that `check` and `serve` tell.
        let address = written.trim().parse().unwrap_or(DEFAULT_LISTEN);
        let source = raw.server.admin_token.as_ref();
        let token = source.and_then(|source| secret(&mut review, "server.admin_token", source));
        review.done()?;
        Ok(Door {
            address,
            token: token.map(|(token, _)| token),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;

    const FILE: &str = r#"
        [server]
        listen = "127.0.0.1:8000"
        admin_token = { env = "TOKEN" }
        [providers.openai]
        accounts = [{ name = "main", credential = { env = "NOT_IN_THIS_SHELL" } }]
    "#;

    /// [ADM-30] the operators' door and token are read without the secrets of accounts; a token that is not where it should be
    /// is told with its line.
    #[test]
    fn the_door_needs_no_other_secret() {
        let env = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
        let door = Door::of(FILE, "b.toml", &env).unwrap();
        assert_eq!(door.address.to_string(), "127.0.0.1:8000");
        assert_eq!(door.token.unwrap().expose_secret(), "s3cret");
        let moved = FILE.replace("[server]", "[server]\nadmin_listen = \"127.0.0.1:9000\"");
        assert_eq!(Door::of(&moved, "b.toml", &env).unwrap().address.port(), 9000);
        let faults = Door::of(FILE, "b.toml", &|_| None).unwrap_err();
        let fault = faults.iter().next().unwrap();
        assert_eq!(
            (fault.line, fault.key.as_str()),
            (Some(4), "server.admin_token.env")
        );
        let none = Door::of("", "b.toml", &env).unwrap();
        assert!(none.token.is_none() && none.address == DEFAULT_LISTEN);
    }
}
