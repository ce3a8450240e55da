use proptest::prelude::*;
use reqwest::Url;

use super::*;

/// What an upstream's URL makes of a passed-through path.
fn sent(path: &str) -> Option<Url> {
    match Route::of(path) {
        Ok(Route::Api(Api::Pass { path, .. })) => Url::parse(&format!("http://upstream/base/v1{path}")).ok(),
        Ok(Route::Api(Api::Lookup { id, tail })) => Url::parse(&format!(
            "http://upstream/base/v1/responses/{id}{}",
            tail.as_str()
        ))
        .ok(),
        _ => None,
    }
}

proptest! {
    /// [EDGE-14] whatever the path, what is passed on stays below the provider's base and keeps its segments, also
    /// after a server has decoded it.
    #[test]
    fn no_path_climbs_out(segments in prop::collection::vec(
        prop_oneof![
            "[a-z]{0,3}",
            "(\\.|%2e|%2E|%252e){0,3}",
            "[a-z.]{0,2}(;|%2f|%5c|\\\\|%00|%25)[a-z.]{0,2}",
            "%[0-9a-fA-F]{0,2}[a-z.]{0,2}",
            Just("responses".to_owned()),
            Just("cancel".to_owned()),
        ], 0..6),
        prefix in prop_oneof![Just("/v1"), Just("/openai/v1"), Just("/backend-api/codex"), Just("/backend-api"), Just("")],
    ) {
        let path = format!("{prefix}/{}", segments.join("/"));
        if let Some(url) = sent(&path) {
            let below = url.path().strip_prefix("/base/v1/");
            prop_assert!(below.is_some(), "{path} became {url}");
            for segment in below.unwrap_or_default().trim_end_matches('/').split('/') {
                let decoded = decoded(segment).unwrap_or_default();
                let climbs = decoded.is_empty() || matches!(&*decoded, b"." | b"..") || decoded.contains(&b'/');
                prop_assert!(!climbs, "{path} became {url}");
            }
        }
    }

    /// [EDGE-14] no bytes at all make routing panic.
    #[test]
    fn any_path_has_an_answer(path in "\\PC{0,40}") {
        let _ = Route::of(&path);
    }
}
