//! What ties requests to sessions: tenant + API + kind + value (KEY-1..KEY-4).

use std::fmt;

use http::HeaderMap;

use crate::wire::request::Create;

/// 128 bits of a keyed hash. Printed only in short.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash16(pub [u8; 16]);

impl fmt::Display for Hash16 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..6].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash16 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Bytes of either end of encrypted content that tell it apart.
const SEALED: usize = 256;

/// The installation's secret: every hash uses it, so that no printed or stored hash can be reversed by guessing.
#[derive(Clone)]
pub struct Hasher([u8; 32]);

impl Hasher {
    /// `key` is the content of `install.key`.
    pub fn new(key: [u8; 32]) -> Self {
        Hasher(key)
    }

    /// Hashes `parts` under `domain`. Every part is prefixed with its length, so that no two lists of parts collide.
    pub fn hash(&self, domain: &'static str, parts: &[&[u8]]) -> Hash16 {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in std::iter::once(&domain.as_bytes()).chain(parts) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let mut short = [0; 16];
        hasher.finalize_xof().fill(&mut short);
        Hash16(short)
    }

    /// The name under which the journal keeps what happened to an id as its user knows it: a request, trace, response or
    /// session id. Of no tenant, so that whoever has the id can look it up, and nobody without it can find it (JRN-2).
    pub fn name(&self, id: &str) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.hash("name", &[id.as_bytes()]).0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// A key of its own for one purpose, made from the installation's.
    pub fn subkey(&self, purpose: &'static str) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(purpose.as_bytes());
        *hasher.finalize().as_bytes()
    }

    /// The hash under which it is remembered which account gave a tenant's turn-state.
    pub fn turn_state(&self, tenant: &[u8; 16], value: &[u8]) -> Hash16 {
        self.hash("turn_state", &[tenant, value])
    }

    /// The hash under which a response id is owned: scoped by tenant, so that another tenant's id is simply unknown.
    pub fn response(&self, tenant: &[u8; 16], id: &str) -> Hash16 {
        self.hash("response", &[tenant, id.as_bytes()])
    }

    /// The hash under which an account-bound item is owned: a file, container, conversation, prompt or vector store id, or
    /// the id of an item that is referred to (KEY-43).
    pub fn item(&self, tenant: &[u8; 16], id: &str) -> Hash16 {
        self.hash("item", &[tenant, id.as_bytes()])
    }

    /// The hash under which encrypted content is owned. Ciphertext differs at its beginning and its end, so of a long one
    /// those and the length are hashed: one look-up costs the same for any length.
    pub fn sealed(&self, tenant: &[u8; 16], content: &str) -> Hash16 {
        let content = content.as_bytes();
        let length = (content.len() as u64).to_le_bytes();
        let (head, tail) = match (content.first_chunk::<SEALED>(), content.last_chunk::<SEALED>()) {
            (Some(head), Some(tail)) => (&head[..], &tail[..]),
            _ => (content, &[][..]),
        };
        self.hash("sealed", &[tenant, &length, head, tail])
    }
}

/// Which signal an affinity key came from, strongest first. A part of the key, so that the same text in two places
/// makes two keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyKind {
    /// `conversation` in the body.
    Conversation,
    /// `thread-id`, or `client_metadata.thread_id`: one per agent thread.
    Thread,
    /// `x-session-affinity`, `x-session-id`, `session-id`, `session_id`, `x-codex-session-id`, `conversation_id`.
    Session,
    /// `prompt_cache_key` in the body. Soft.
    PromptCache,
    /// A `previous_response_id` whose owner is not known, and no other signal.
    Response,
    /// No signal, but a beginning: what the conversation opens with. Soft.
    Content,
    /// No signal at all.
    Keyless,
}

impl KeyKind {
    /// Whether the key names a conversation, which an account may hold things of. A soft or missing one names a cache at
    /// most, and may move whenever its account is unavailable.
    pub fn is_hard(self) -> bool {
        matches!(self, KeyKind::Conversation | KeyKind::Thread | KeyKind::Session)
    }

    /// Whether the key is pinned to an account. Of the others one is gone with its turn, and one is no key.
    pub fn is_pinned(self) -> bool {
        !matches!(self, KeyKind::Response | KeyKind::Keyless)
    }

    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            KeyKind::Conversation => "conversation",
            KeyKind::Thread => "thread",
            KeyKind::Session => "session",
            KeyKind::PromptCache => "prompt_cache",
            KeyKind::Response => "response",
            KeyKind::Content => "content",
            KeyKind::Keyless => "keyless",
        }
    }
}

/// An affinity key: what a session is bound to for its whole life. Two keys are one when their hashes are: the kind is a
/// part of what is hashed, and beside it only for events (a key that is read back from the state has lost it).
#[derive(Clone, Copy, Debug)]
pub struct AffinityKey {
    pub kind: KeyKind,
    pub hash: Hash16,
}

impl PartialEq for AffinityKey {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Eq for AffinityKey {}

impl std::hash::Hash for AffinityKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl fmt::Display for AffinityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.hash, f)
    }
}

/// The session headers in the order in which the first present one wins.
const SESSION_HEADERS: [&str; 6] = [
    "x-session-affinity",
    "x-session-id",
    "session-id",
    "session_id",
    "x-codex-session-id",
    "conversation_id",
];

impl AffinityKey {
    /// The key of this conversation's sessions with one account, called `account`: a session is never met from another
    /// account than its own (KEY-1).
    pub fn with_account(self, hasher: &Hasher, account: &str) -> AffinityKey {
        AffinityKey {
            hash: hasher.hash("session", &[&self.hash.0, account.as_bytes()]),
            ..self
        }
    }
}

/// Derives the key of a create before its account is known: what a pin is looked up by. Ownership outranks it and is looked
/// up by the caller. `api` tells apart what a caller may mean by one path: the ChatGPT backend, or any other provider.
///
/// The value is hashed together with tenant, api and kind: no text of a client's can name another tenant's key, nor
/// a key of another kind. A header that is not text, or is empty, is no signal.
pub fn derive(
    hasher: &Hasher,
    tenant: &[u8; 16],
    api: &str,
    headers: &HeaderMap,
    create: &Create,
) -> AffinityKey {
    let (kind, value) = strongest(headers, create);
    hashed(hasher, tenant, api, kind, value)
}

/// The key of a request that is no create, by its headers alone; `None` where they name no conversation.
pub fn of_headers(hasher: &Hasher, tenant: &[u8; 16], api: &str, headers: &HeaderMap) -> Option<AffinityKey> {
    let thread = text(headers, "thread-id").map(|value| (KeyKind::Thread, value));
    let session = || SESSION_HEADERS.into_iter().find_map(|name| text(headers, name));
    let (kind, value) = thread.or_else(|| Some((KeyKind::Session, session()?)))?;
    Some(hashed(hasher, tenant, api, kind, value))
}

fn hashed(hasher: &Hasher, tenant: &[u8; 16], api: &str, kind: KeyKind, value: &str) -> AffinityKey {
    let parts = [tenant, api.as_bytes(), kind.label().as_bytes(), value.as_bytes()];
    let hash = hasher.hash("affinity", &parts);
    AffinityKey { kind, hash }
}

/// The key of a request without any signal: the tenant's conversations with one API and model that open alike. Which of them it
/// extends is for its sessions' memories to tell (CONT-27).
pub fn by_content(
    hasher: &Hasher,
    tenant: &[u8; 16],
    api: &str,
    model: &str,
    opening: [u8; 16],
) -> AffinityKey {
    let kind = KeyKind::Content;
    let parts = [
        tenant,
        api.as_bytes(),
        kind.label().as_bytes(),
        model.as_bytes(),
        &opening,
    ];
    AffinityKey {
        kind,
        hash: hasher.hash("affinity", &parts),
    }
}

/// A header that is text and not empty.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .filter(|value| !value.is_empty())
}

/// What a user may know any request's conversation by, by its headers alone: it may have no body, or none that can be read.
pub fn said(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let session = SESSION_HEADERS.into_iter().find_map(|name| text(headers, name));
    [text(headers, "thread-id"), session].into_iter().flatten()
}

/// What a user may know a create's conversation by beside what its headers have [`said`]: every signal of its body, not only
/// the strongest.
pub fn written<'a>(headers: &HeaderMap, create: &'a Create) -> impl Iterator<Item = &'a str> {
    let thread = create.thread_id.as_deref();
    let written = [
        create.conversation.as_deref(),
        thread.filter(|_| text(headers, "thread-id").is_none()),
        create.prompt_cache_key.as_deref(),
        create.previous_response_id.as_deref(),
    ];
    written.into_iter().flatten().filter(|value| !value.is_empty())
}

fn strongest<'a>(headers: &'a HeaderMap, create: &'a Create) -> (KeyKind, &'a str) {
    fn present(value: Option<&String>) -> Option<&str> {
        value.map(String::as_str).filter(|value| !value.is_empty())
    }
    let header = |name: &str| text(headers, name);
    if let Some(value) = present(create.conversation.as_ref()) {
        (KeyKind::Conversation, value)
    } else if let Some(value) = header("thread-id").or(present(create.thread_id.as_ref())) {
        (KeyKind::Thread, value)
    } else if let Some(value) = SESSION_HEADERS.into_iter().find_map(header) {
        (KeyKind::Session, value)
    } else if let Some(value) = present(create.prompt_cache_key.as_ref()) {
        (KeyKind::PromptCache, value)
    } else if let Some(value) = present(create.previous_response_id.as_ref()) {
        (KeyKind::Response, value)
    } else {
        (KeyKind::Keyless, "")
    }
}

#[cfg(test)]
mod tests;
