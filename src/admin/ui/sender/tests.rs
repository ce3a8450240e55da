//! Which requests are a page's of our own.

use super::*;

fn of(headers: &[(&'static str, &str)]) -> Sender {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, value.parse().unwrap());
    }
    Sender::of(&map)
}

const PLAIN: Sender = Sender::Ours { https: false };
const HTTPS: Sender = Sender::Ours { https: true };

/// [PAGE-6] [PAGE-7] what both headers say of a page of this origin, and of https before a proxy.
#[test]
fn our_own_pages_are_known() {
    let host = ("host", "127.0.0.1:8787");
    assert_eq!(of(&[host, ("origin", "http://127.0.0.1:8787")]), PLAIN);
    assert_eq!(of(&[host, ("sec-fetch-site", "same-origin")]), PLAIN);
    let both = [
        host,
        ("origin", "http://127.0.0.1:8787"),
        ("sec-fetch-site", "same-origin"),
    ];
    assert_eq!(of(&both), PLAIN);
    assert_eq!(
        of(&[("host", "Ops.Example"), ("origin", "https://ops.example")]),
        HTTPS
    );
    assert_eq!(
        of(&[("host", "ops.example:443"), ("origin", "https://ops.example")]),
        HTTPS
    );
    assert_eq!(of(&[("host", "[::1]:80"), ("origin", "http://[::1]")]), PLAIN);
}

/// [PAGE-6] another host, port or scheme, none, two, or headers that contradict each other: not ours.
#[test]
fn other_pages_are_foreign() {
    let host = ("host", "127.0.0.1:8787");
    for origin in [
        "http://localhost:8787",
        "http://127.0.0.1:3000",
        "http://127.0.0.1",
        "https://evil.example",
        "ftp://127.0.0.1:8787",
        "http://",
        "null",
        "",
    ] {
        assert_eq!(of(&[host, ("origin", origin)]), Sender::Foreign, "{origin}");
        let claims = [host, ("origin", origin), ("sec-fetch-site", "same-origin")];
        assert_eq!(of(&claims), Sender::Foreign, "{origin}");
    }
    for site in ["cross-site", "same-site", "anything"] {
        let claims = [
            host,
            ("origin", "http://127.0.0.1:8787"),
            ("sec-fetch-site", site),
        ];
        assert_eq!(of(&claims), Sender::Foreign, "{site}");
    }
    let ours = ("origin", "http://127.0.0.1:8787");
    assert_eq!(of(&[host, ours, ours]), Sender::Foreign);
    assert_eq!(of(&[ours]), Sender::Foreign);
    assert_eq!(of(&[host, host, ours]), Sender::Foreign);
    assert_eq!(of(&[host]), Sender::Nobody);
    assert_eq!(of(&[host, ("sec-fetch-site", "none")]), Sender::Nobody);
}
