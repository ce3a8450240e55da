//! The table is whole.

use std::collections::HashSet;

use serde_json::Value;

use super::*;
use crate::admin::document;
use crate::admin::parameters::Place;

/// [ADM-7] no operation stands twice, no two templates fit one path, and what a path names is described.
#[test]
fn every_operation_stands_once() {
    let (mut ids, mut places) = (HashSet::new(), HashSet::new());
    for operation in operations() {
        assert!(ids.insert(operation.id), "{} is there twice", operation.id);
        assert!(
            places.insert((operation.method.label(), operation.path)),
            "{} is there twice",
            operation.path
        );
        let given: Vec<_> = segments(operation.path).collect();
        for other in operations().filter(|other| other.path != operation.path) {
            let meets = segments(other.path).count() == given.len()
                && segments(other.path)
                    .zip(&given)
                    .all(|(one, two)| one == *two || one.starts_with('{') || two.starts_with('{'));
            assert!(!meets, "{} and {}", operation.path, other.path);
        }
        let named: HashSet<_> = given
            .iter()
            .filter_map(|one| one.strip_prefix('{')?.strip_suffix('}'))
            .collect();
        let of_path = operation.parameters.iter().filter(|one| one.place == Place::Path);
        assert_eq!(named, of_path.map(|one| one.name).collect(), "{}", operation.path);
        for parameter in operation.parameters {
            assert!(
                parameter.shape.takes(parameter.example),
                "{}: {}",
                operation.id,
                parameter.name
            );
        }
    }
}

/// [ADM-7] the document has every operation, and every schema that it refers to.
#[test]
fn the_document_is_whole() {
    let document = document();
    for operation in operations() {
        let told = &document["paths"][format!("{ROOT}{}", operation.path)][operation.method.label()];
        assert_eq!(told["operationId"], operation.id);
        let answers = &told["responses"];
        for status in ["200", "400", "401", "403", "429", "500"] {
            assert!(answers[status].is_object(), "{} {status}", operation.id);
        }
    }
    let mut open = vec![&document];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(reference)) = members.get("$ref") {
                    let found = document.pointer(reference.trim_start_matches('#'));
                    assert!(found.is_some(), "{reference}");
                }
                open.extend(members.values());
            }
            Value::Array(values) => open.extend(values),
            _ => {}
        }
    }
}

/// [ADM-8] which paths there are, and what they take.
#[test]
fn paths() {
    for none in [
        "/admin",
        "/admin/",
        "/admin/session",
        "/admin/sessions/",
        "/admin/sessions/1/2",
        "/admin//drain",
        "/admin/breakers/a",
    ] {
        assert!(find(none).is_none(), "{none}");
    }
    let of = |path| allow(&find(path).unwrap().0);
    assert_eq!(of("/admin/sessions"), "GET, HEAD, OPTIONS");
    assert_eq!(of("/admin/sessions/1"), "DELETE, OPTIONS");
    assert_eq!(of("/admin/quarantine"), "DELETE, GET, HEAD, OPTIONS");
    assert_eq!(of("/admin/drain"), "GET, HEAD, OPTIONS, PUT");
}
