//! (being built)

/// What kind of upstream a provider is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProviderKind {
    Openai,
    Chatgpt,
    Azure,
    Generic,
}
