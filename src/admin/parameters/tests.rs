//! What parameters may be.

use http::HeaderValue;

use super::*;
use crate::admin::table;

/// What is made of a GET or DELETE request's parameters: those of the operation that its path and method find.
fn asked(method: &str, path: &str, query: Option<&str>) -> Result<Given, Refusal> {
    let (found, segments) = table::find(path).unwrap();
    let operation = found.iter().find(|one| one.method.label() == method).unwrap();
    given(operation, &segments, query, &HeaderMap::new())
}

fn refused(method: &str, path: &str, query: Option<&str>) -> Refusal {
    asked(method, path, query).unwrap_err()
}

/// [ADM-8] right ones are taken, also percent-encoded.
#[test]
fn right_ones() {
    let given = asked("get", "/admin/turns", Some("limit=5&account=openai%2Fmain&")).unwrap();
    assert_eq!((given.limit(), given.text("account")), (5, Some("openai/main")));
    assert!(given.is_of("openai/main") && !given.is_of("azure/main"));
    let given = asked("get", "/admin/turns", Some("account=main")).unwrap();
    assert!(given.is_of("openai/main") && given.is_of("azure/main") && !given.is_of("openai/mains"));
    assert_eq!(given.limit(), 1000);
    let given = asked("delete", "/admin/quarantine/3f0c9%6151be27", None).unwrap();
    assert_eq!(given.required("key"), "3f0c9a51be27");
    assert_eq!(
        asked("delete", "/admin/sessions/0", None)
            .unwrap()
            .number("session"),
        Some(0)
    );
}

/// [ADM-8] wrong ones are refused, by name, and what was sent is not quoted.
#[test]
fn wrong_ones() {
    for query in [
        "limit=0",
        "limit=5001",
        "limit=-1",
        "limit=1e3",
        "limit=",
        "limit=%31%",
        "limit=%zz",
        "limit=%ff",
        "limit=1&limit=2",
        "limit=99999999999999999999",
        "limit=+1",
        "account=A",
        "account=a/b/c",
        "account=%00",
        "account=<script>",
    ] {
        let refusal = refused("get", "/admin/turns", Some(query));
        let name = query.split('=').next();
        assert_eq!(
            (refusal.kind, refusal.param.as_deref()),
            (Kind::BadParameter, name),
            "{query}"
        );
        assert!(!refusal.message.contains("script"), "{}", refusal.message);
    }
    for query in ["limi=1", "x", "=", "%6cimi", "limit[]=1", "' OR 1=1 --"] {
        let refusal = refused("get", "/admin/turns", Some(query));
        assert_eq!(
            refusal.message, "The query's parameters here are limit, account.",
            "{query}"
        );
    }
    assert_eq!(
        refused("get", "/admin/status", Some("a=b")).message,
        "This path takes no query."
    );
    for path in [
        "/admin/sessions/x",
        "/admin/sessions/-1",
        "/admin/sessions/9007199254740992",
        "/admin/sessions/1%2F2",
        "/admin/sessions/%",
    ] {
        assert_eq!(
            refused("delete", path, None).param.as_deref(),
            Some("session"),
            "{path}"
        );
    }
    for path in [
        "/admin/quarantine/3f0c9a51be2",
        "/admin/quarantine/3F0C9A51BE27",
        "/admin/quarantine/3f0c9a51be2%00",
    ] {
        assert_eq!(
            refused("delete", path, None).param.as_deref(),
            Some("key"),
            "{path}"
        );
    }
    for id in ["%3Cscript%3E", "a%20b", "%27%3B--", "%00", "%C3%A4", "a%2Fb"] {
        let path = format!("/admin/owners/{id}");
        assert_eq!(
            refused("get", &path, None).param.as_deref(),
            Some("response_id"),
            "{id}"
        );
    }
}

/// [ADM-21] the id of the last event comes in a header, whatever it is.
#[test]
fn a_header() {
    let (found, segments) = table::find("/admin/events").unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("last-event-id", HeaderValue::from_static("17"));
    let given = given(found[0], &segments, Some("kind=quarantine*"), &headers).unwrap();
    assert_eq!(
        (given.text("last-event-id"), given.text("kind")),
        (Some("17"), Some("quarantine*"))
    );
}
