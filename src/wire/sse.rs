//! Server-sent events, as far as the API and its SDKs use them: `event:`, `data:`, comments.

pub mod decode;
pub mod encode;
