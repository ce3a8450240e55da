//! What crosses the wire, and nothing else: frame heads, create bodies, SSE, error objects, header allow-lists.
//!
//! Pure: bytes in, facts or bytes out. No I/O, no clock, no randomness, no logging. Requirements: `spec/wire.md`.

pub mod bound;
pub mod canon;
pub mod error;
pub mod failure;
pub mod head;
pub mod headers;
mod json;
pub mod limits;
pub mod percent;
pub mod request;
pub mod sender;
pub mod sse;
pub mod trace;

/// What an upstream speaks. It decides the header allow-list and which fields an upstream insists on.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Debug,
    Default,
    serde::Deserialize,
    serde::Serialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// api.openai.com and what behaves exactly like it.
    #[default]
    Openai,
    /// The ChatGPT backend (`/backend-api/codex`), with a ChatGPT login.
    Chatgpt,
    /// Azure OpenAI.
    Azure,
    /// Any other server that speaks the Responses API.
    Generic,
}
