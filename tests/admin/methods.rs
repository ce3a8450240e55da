//! Which methods each path takes, as its document says.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::raw::{request, say};
use crate::{TOKEN, data, operator, setup};

const METHODS: [&str; 8] = ["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "TRACE", "BREW"];

/// The paths of the document with examples in them, and the methods of each.
fn documented(document: &Value) -> Vec<(String, BTreeSet<&str>)> {
    let paths = document["paths"].as_object().unwrap();
    let of = |(path, operations): (&String, &'_ Value)| {
        let mut path = path.clone();
        let mut methods = BTreeSet::from(["OPTIONS"]);
        for (verb, operation) in operations.as_object().unwrap() {
            match verb.as_str() {
                "get" => methods.extend(["GET", "HEAD"]),
                "put" => methods.extend(["PUT"]),
                "delete" => methods.extend(["DELETE"]),
                other => panic!("{other}"),
            }
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let example = match &parameter["example"] {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                path = path.replace(&format!("{{{}}}", parameter["name"].as_str().unwrap()), &example);
            }
        }
        assert!(!path.contains('{'), "{path}");
        (path, methods)
    };
    paths.iter().map(of).collect()
}

/// [ADM-8] HEAD is as GET without a body, OPTIONS says what a path takes, and what it does not take is 405 and says so too. Who
/// has no token learns none of it.
#[tokio::test]
async fn every_path_takes_its_own_methods() {
    let world = setup().start().await;
    let document = world.ask(&operator("GET", "/admin/openapi.json")).await.json();
    let paths = documented(&document);
    assert!(paths.len() >= 15, "{paths:?}");
    let bearer = format!("Bearer {TOKEN}");
    let token = [("authorization", bearer.as_str())];
    for (path, methods) in &paths {
        let allow = Vec::from_iter(methods.iter().copied()).join(", ");
        let asked = say(world.address, &request(&format!("OPTIONS {path}"), &token, "")).await;
        assert_eq!(
            (asked.status, asked.header("allow"), asked.body.as_str()),
            (204, Some(allow.as_str()), ""),
            "{path}"
        );
        for method in METHODS.iter().filter(|method| !methods.contains(**method)) {
            let line = format!("{method} {path}");
            let refused = say(world.address, &request(&line, &token, "")).await;
            assert_eq!(
                (refused.status, refused.header("allow")),
                (405, Some(&*allow)),
                "{line}"
            );
            if *method != "HEAD" {
                assert_eq!(refused.code(), "bridge_method_not_allowed", "{line}");
            }
        }
        if methods.contains("GET") && path != "/admin/events" {
            let got = say(world.address, &request(&format!("GET {path}"), &token, "")).await;
            let head = say(world.address, &request(&format!("HEAD {path}"), &token, "")).await;
            assert_eq!((head.status, head.body.as_str()), (got.status, ""), "{path}");
            for name in ["content-type", "cache-control", "x-content-type-options"] {
                assert_eq!(head.header(name), got.header(name), "{path}");
            }
            assert!(
                !got.body.is_empty() && head.header("content-length").is_some(),
                "{path}"
            );
        }
        for method in METHODS.iter().chain(&["OPTIONS"]) {
            let line = format!("{method} {path}");
            let nobody = say(world.address, &request(&line, &[], "")).await;
            assert_eq!((nobody.status, nobody.header("allow")), (401, None), "{line}");
        }
    }
    assert!(world.events("operator_action").is_empty());
    assert_eq!(data(&world, "/admin/drain").await["draining"], false);
}

/// [ADM-8] [ADM-23] HEAD of the events has their head and ends there, and holds no stream's place.
#[tokio::test]
async fn the_head_of_a_stream_ends() {
    let world = setup().start().await;
    let bearer = format!("Bearer {TOKEN}");
    for number in 0..40 {
        let text = request("HEAD /admin/events", &[("authorization", &bearer)], "");
        let head = say(world.address, &text).await;
        assert_eq!(
            (head.status, head.header("content-type"), head.body.as_str()),
            (200, Some("text/event-stream"), ""),
            "the {number}th"
        );
    }
}

/// [EDGE-15] [EDGE-16] [HLT-2] Probes may ask by HEAD as by GET, ready or not; another method is 405.
#[tokio::test]
async fn health_by_head() {
    let world = setup().start().await;
    for (draining, ready) in [(false, 200), (true, 503)] {
        let set = operator("PUT", "/admin/drain").with("draining", draining);
        assert_eq!(world.ask(&set).await.status, 200);
        for (path, status) in [("/health/live", 200), ("/health/ready", ready)] {
            let got = say(world.address, &request(&format!("GET {path}"), &[], "")).await;
            let head = say(world.address, &request(&format!("HEAD {path}"), &[], "")).await;
            assert_eq!((got.status, head.status), (status, status), "{path}");
            assert!(got.body.starts_with("{\"status\":") && head.body.is_empty());
            let length = got.body.len().to_string();
            assert_eq!(head.header("content-length"), Some(&*length), "{path}");
            assert_eq!(head.header("retry-after").is_some(), status == 503, "{path}");
            for method in ["OPTIONS", "PUT", "POST", "DELETE", "PATCH", "TRACE", "BREW"] {
                let other = say(world.address, &request(&format!("{method} {path}"), &[], "")).await;
                assert_eq!(
                    (other.status, other.header("allow")),
                    (405, Some("GET, HEAD")),
                    "{method}"
                );
            }
        }
    }
}
