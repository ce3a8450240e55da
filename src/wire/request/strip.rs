//! One member of `client_metadata`: read, or taken out where it must not travel.

use std::borrow::Cow;

use bytes::Bytes;

use super::{Create, Field, read_create};
use crate::wire::json;

impl Create {
    /// A member of `client_metadata`, where it is a string. Of several with one name, the last.
    pub fn metadata(&self, name: &str) -> Option<Cow<'_, str>> {
        let metadata = self.metadata_text()?;
        // Written out in it, or with an escape: else it is not worth a closer look.
        if !metadata.contains(name) && !metadata.contains('\\') {
            return None;
        }
        let [value] = json::fields(metadata, [name])?;
        json::text(value?)
    }

    /// The same create without that member; every other byte as it came. `None` where there is no such member.
    pub fn without_metadata(&self, name: &str) -> Option<Create> {
        let metadata = self.metadata_text()?;
        let mut kept = Vec::new();
        let mut found = false;
        json::each_member(metadata, |key, value| match json::text(key) {
            Some(known) if known == name => found = true,
            _ => kept.push(&metadata[json::span(metadata, key).start..json::span(metadata, value).end]),
        })
        .ok()?;
        // Most have none: their bodies are not worth a copy.
        if !found {
            return None;
        }
        let member = self
            .members
            .iter()
            .find(|member| member.field == Field::ClientMetadata)?;
        let value = member.value.clone();
        let metadata = format!("{{{}}}", kept.join(","));
        let body = [
            &self.body[..value.start],
            metadata.as_bytes(),
            &self.body[value.end..],
        ]
        .concat();
        // It was a valid body, and still is.
        read_create(Bytes::from(body)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [ROUTE-10] one member goes, however its name is written and wherever it stands; all else is as it came.
    #[test]
    fn a_member_is_taken_out() {
        for (before, after) in [
            (r#"{"t":"x"}"#, Some("{}")),
            (
                r#"{ "a" : [1, 2],"t":"x" , "b":null }"#,
                Some(r#"{"a" : [1, 2],"b":null}"#),
            ),
            (r#"{"\u0074":"x","a":"t"}"#, Some(r#"{"a":"t"}"#)),
            (r#"{"a":{"t":"x"}}"#, None),
            ("{}", None),
            ("null", None),
        ] {
            let body =
                |metadata: &str| format!(r#"{{"model":"m", "client_metadata": {metadata} ,"input":"t"}}"#);
            let create = read_create(Bytes::from(body(before))).unwrap();
            let text = create.metadata("t").map(Cow::into_owned);
            assert_eq!(text.as_deref(), after.map(|_| "x"), "{before}");
            let stripped = create.without_metadata("t");
            assert_eq!(
                stripped.map(|create| create.body().clone()),
                after.map(|after| Bytes::from(body(after)))
            );
        }
    }
}
