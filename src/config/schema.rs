//! The JSON schema of the configuration file, derived from [`raw`](super::raw).
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::raw::File;

/// Draft 7, which TOML editors understand, without references. Besides the standard's words it uses `x-hint` (what to
/// write instead) and `x-zero` (this duration may be zero).
pub fn schema() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    settings
        .into_generator()
        .into_root_schema_for::<File>()
        .to_value()
}

/// What to write instead of `unknown`, which the table that `table` describes has no key for (CFG-4): the key there
/// whose spelling is nearest, else the table that does have such a key, else all keys of this one.
pub(super) fn nearest_key(root: &Value, table: &Value, unknown: &str) -> String {
    let known = || {
        table["properties"]
            .as_object()
            .into_iter()
            .flat_map(|keys| keys.keys())
    };
    let spelt = unknown.to_lowercase().replace('-', "_");
    let distance = |key: &&String| strsim::damerau_levenshtein(key, &spelt);
    let near = known()
        .min_by_key(distance)
        .filter(|key| distance(key) <= (spelt.len() / 3).max(1));
    let homes = tables(root, String::new());
    let home = homes
        .iter()
        .find(|(_, keys)| keys.contains(&spelt.as_str()))
        .map(|(name, _)| name);
    let top = &root["properties"][&spelt];
    match (near, home) {
        (None, _) if top["type"] == "object" => {
            format!("`{spelt}` is a table of its own: write it as [{spelt}]")
        }
        (Some(key), _) => format!("did you mean `{key}`?"),
        (None, Some(home)) => format!("`{spelt}` belongs to {home}"),
        (None, None) => format!(
            "the keys here are {}",
            known().cloned().collect::<Vec<_>>().join(", ")
        ),
    }
}

/// Every table of the file as it is headed there, with its keys.
fn tables(schema: &Value, path: String) -> Vec<(String, Vec<&str>)> {
    let mut found = Vec::new();
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        let (inner, header, path) = if inner["additionalProperties"].is_object() {
            (
                &inner["additionalProperties"],
                format!("[{path}.NAME]"),
                format!("{path}.NAME"),
            )
        } else if inner["items"].is_object() {
            (&inner["items"], format!("[[{path}]]"), path)
        } else {
            (inner, format!("[{path}]"), path)
        };
        if let Some(keys) = inner["properties"].as_object() {
            found.push((header, keys.keys().map(String::as_str).collect()));
            found.extend(tables(inner, path));
        }
    }
    found
}

#[cfg(test)]
mod tests;
