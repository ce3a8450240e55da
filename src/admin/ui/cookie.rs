//! Sessions of operators' browsers (PAGE-3 to PAGE-5).
//!
//! The cookie is 256 random bits that mean nothing outside this table. The admin token is never in it, and the table
//! holds a hash of the cookie only: finding one takes no longer for a half-right guess.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use http::HeaderMap;
use http::header::COOKIE;
use subtle::ConstantTimeEq;

/// A browser that shows the page is in use for as long; a closed one is not.
pub const IDLE: Duration = Duration::from_secs(30 * 60);
/// A working day: then the token is asked for again.
pub const LONGEST: Duration = Duration::from_secs(12 * 3600);
/// Sessions at once. Only who has the token can make one; the longest unused makes room.
pub const MOST: usize = 64;
/// The cookie's name.
pub const NAME: &str = "responses_bridge_admin";

/// What a browser holds: 32 random bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Id([u8; 32]);

/// What the table knows it by.
type Name = [u8; 32];

struct Login {
    since: Instant,
    used: Instant,
    /// A hash of the token that it was made with: with another token in force it is over.
    token: [u8; 32],
    notice: Option<String>,
}

/// All sessions.
#[derive(Default)]
pub struct Logins(HashMap<Name, Login>);

impl Id {
    /// From random bytes.
    pub fn new(random: [u8; 32]) -> Id {
        Id(random)
    }

    /// From the request's cookie. More than one of the name is none: who planted the other is not known.
    pub fn of(headers: &HeaderMap) -> Option<Id> {
        let cookies = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok());
        let mut ours = cookies
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().strip_prefix(NAME)?.strip_prefix('='));
        let (value, None) = (ours.next()?, ours.next()) else {
            return None;
        };
        unhex(value).map(Id)
    }

    /// The `Set-Cookie` that gives it to the browser. `https`: the page was loaded so, and the cookie may travel no
    /// other way.
    pub fn set(&self, https: bool) -> String {
        let secure = if https { "; Secure" } else { "" };
        let age = LONGEST.as_secs();
        format!(
            "{NAME}={}; Path=/admin; Max-Age={age}; HttpOnly; SameSite=Strict{secure}",
            hex(&self.0)
        )
    }

    /// What every form of this session carries: it cannot be guessed, and says nothing about the cookie.
    pub fn csrf(&self) -> String {
        hex(&blake3::derive_key(
            "responses-bridge 2026 status page csrf",
            &self.0,
        ))
    }

    /// Whether a form carries the right proof. In constant time.
    pub fn proves(&self, csrf: &str) -> bool {
        self.csrf().as_bytes().ct_eq(csrf.as_bytes()).into()
    }

    fn name(&self) -> Name {
        blake3::derive_key("responses-bridge 2026 status page session", &self.0)
    }
}

/// The `Set-Cookie` that takes the cookie away.
pub fn unset() -> String {
    format!("{NAME}=; Path=/admin; Max-Age=0; HttpOnly; SameSite=Strict")
}

impl Logins {
    /// A session for a browser that has shown the token whose hash is `token`.
    pub fn open(&mut self, id: &Id, token: [u8; 32], now: Instant) {
        self.0.retain(|_, login| login.lives(now));
        if self.0.len() >= MOST {
            let unused = self.0.iter().min_by_key(|(_, login)| login.used);
            if let Some(unused) = unused.map(|(name, _)| *name) {
                self.0.remove(&unused);
            }
        }
        let login = Login {
            since: now,
            used: now,
            token,
            notice: None,
        };
        self.0.insert(id.name(), login);
    }

    /// Whether the session lives; then it is used now. `token` is the hash of the one in force.
    pub fn touch(&mut self, id: &Id, token: Option<[u8; 32]>, now: Instant) -> bool {
        let name = id.name();
        let Some(login) = self.0.get_mut(&name) else {
            return false;
        };
        if login.lives(now) && token.is_some_and(|token| token.ct_eq(&login.token).into()) {
            login.used = now;
            return true;
        }
        self.0.remove(&name);
        false
    }

    /// The session is over.
    pub fn close(&mut self, id: &Id) {
        self.0.remove(&id.name());
    }

    /// What the next page of the session tells.
    pub fn note(&mut self, id: &Id, notice: String) {
        if let Some(login) = self.0.get_mut(&id.name()) {
            login.notice = Some(notice);
        }
    }

    /// What is to be told, once.
    pub fn told(&mut self, id: &Id) -> Option<String> {
        self.0.get_mut(&id.name())?.notice.take()
    }

    /// Sessions held.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Login {
    fn lives(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.used) < IDLE && now.saturating_duration_since(self.since) < LONGEST
    }
}

fn hex(bytes: &[u8; 32]) -> String {
    blake3::Hash::from_bytes(*bytes).to_hex().to_string()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    blake3::Hash::from_hex(text).ok().map(Into::into)
}

#[cfg(test)]
mod tests;
