use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn tenants() -> Tenants {
    Tenants::new(&[1; 32], &[])
}

/// A set of identity headers, in their fixed order, with values from a small alphabet so that near misses are common.
fn identity() -> impl Strategy<Value = Vec<(usize, String)>> {
    // A value may also be what stands between two headers in the hashed bytes: the next one's name.
    let value = prop_oneof!["[ab]{0,2}", Just("api-key".to_owned())];
    prop::collection::vec((0..3_usize, value), 0..4).prop_map(|mut pairs| {
        pairs.sort_by_key(|(name, _)| *name);
        pairs
    })
}

fn headers(pairs: &[(usize, String)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| {
            (
                CALLERS_CREDENTIAL[*name].clone(),
                HeaderValue::from_str(value).unwrap(),
            )
        })
        .fold(HeaderMap::new(), |mut map, (name, value)| {
            map.append(name, value);
            map
        })
}

proptest! {
    /// [EDGE-22] two different sets of identity headers are two tenants, however their values are cut and moved.
    #[test]
    fn different_headers_are_different_tenants(sets in prop::collection::vec(identity(), 2..200)) {
        let tenants = tenants();
        let mut seen: HashMap<[u8; 16], &Vec<(usize, String)>> = HashMap::new();
        for set in &sets {
            let other = seen.insert(tenants.by_credential(&headers(set)), set);
            prop_assert!(other.is_none_or(|other| other == set), "{other:?} and {set:?}");
        }
    }
}

/// [EDGE-22] another installation makes other hashes, so that a leaked one says nothing about a credential elsewhere.
#[test]
fn the_install_key_keys_the_hash() {
    let set = headers(&[(0, "ab".into())]);
    let other = Tenants::new(&[2; 32], &[]);
    assert_ne!(tenants().by_credential(&set), other.by_credential(&set));
}
