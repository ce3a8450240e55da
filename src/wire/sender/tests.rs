//! Which requests are a page's of our own: one table.

use super::*;

const PLAIN: Sender = Sender::Ours { https: false };
const HTTPS: Sender = Sender::Ours { https: true };
const FOREIGN: Sender = Sender::Foreign;
const NOBODY: Sender = Sender::Nobody;

fn of(headers: &[(&'static str, &str)]) -> Sender {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, value.parse().unwrap());
    }
    Sender::of(&map)
}

/// [ADM-34] [PAGE-6] each `Origin` with each `Sec-Fetch-Site`: unsaid, `same-origin`, `none`, and any other.
#[test]
fn every_origin_with_every_site() {
    // (Host, Origin, without a site, same-origin, none)
    let table = [
        ("127.0.0.1:8787", None, NOBODY, PLAIN, NOBODY),
        // Its own, as browsers write it.
        (
            "127.0.0.1:8787",
            Some("http://127.0.0.1:8787"),
            PLAIN,
            PLAIN,
            FOREIGN,
        ),
        ("localhost", Some("http://localhost"), PLAIN, PLAIN, FOREIGN),
        ("[::1]:8787", Some("http://[::1]:8787"), PLAIN, PLAIN, FOREIGN),
        ("Ops.Example", Some("https://ops.example"), HTTPS, HTTPS, FOREIGN),
        (
            "ops.example:8443",
            Some("https://ops.example:8443"),
            HTTPS,
            HTTPS,
            FOREIGN,
        ),
        // A scheme's own port is written in both or in neither; one that a proxy added or dropped is no browser's.
        (
            "ops.example:443",
            Some("https://ops.example"),
            FOREIGN,
            FOREIGN,
            FOREIGN,
        ),
        (
            "ops.example",
            Some("https://ops.example:443"),
            FOREIGN,
            FOREIGN,
            FOREIGN,
        ),
        ("[::1]:80", Some("http://[::1]"), FOREIGN, FOREIGN, FOREIGN),
        ("[::1]", Some("http://[::1]:80"), FOREIGN, FOREIGN, FOREIGN),
        (
            "ops.example:80",
            Some("https://ops.example"),
            FOREIGN,
            FOREIGN,
            FOREIGN,
        ),
        // Another host, port or scheme, a part of it, or nothing that could be one.
        (
            "127.0.0.1:8787",
            Some("http://localhost:8787"),
            FOREIGN,
            FOREIGN,
            FOREIGN,
        ),
        (
            "127.0.0.1:8787",
            Some("http://127.0.0.1:3000"),
            FOREIGN,
            FOREIGN,
            FOREIGN,
        ),
        (
            "127.0.0.1:8787",
            Some("http://127.0.0.1"),
            FOREIGN,
            FOREIGN,
            FOREIGN,
        ),
        (
            "127.0.0.1:8787",
            Some("http://127.0.0.1:87870"),
            FOREIGN,
            FOREIGN,
            FOREIGN,
        ),
        (
            "127.0.0.1:8787",
            Some("http://127.0.0.1:8787/"),
            FOREIGN,
            FOREIGN,
            FOREIGN,
        ),
        (
            "127.0.0.1:8787",
            Some("http://evil@127.0.0.1:8787"),
            FOREIGN,
            FOREIGN,
            FOREIGN,
        ),
        (
            "127.0.0.1:8787",
            Some("ftp://127.0.0.1:8787"),
            FOREIGN,
            FOREIGN,
            FOREIGN,
        ),
        (
            "127.0.0.1:8787",
            Some("HTTP://127.0.0.1:8787"),
            FOREIGN,
            FOREIGN,
            FOREIGN,
        ),
        (
            "127.0.0.1:8787",
            Some("127.0.0.1:8787"),
            FOREIGN,
            FOREIGN,
            FOREIGN,
        ),
        (
            "127.0.0.1:8787",
            Some("https://evil.example"),
            FOREIGN,
            FOREIGN,
            FOREIGN,
        ),
        ("127.0.0.1:8787", Some("http://"), FOREIGN, FOREIGN, FOREIGN),
        ("127.0.0.1:8787", Some("null"), FOREIGN, FOREIGN, FOREIGN),
        ("127.0.0.1:8787", Some(""), FOREIGN, FOREIGN, FOREIGN),
        ("", Some("http://"), FOREIGN, FOREIGN, FOREIGN),
    ];
    for (host, origin, unsaid, same, none) in table {
        let sites = [
            (None, unsaid),
            (Some("same-origin"), same),
            (Some("none"), none),
            (Some("same-site"), FOREIGN),
            (Some("cross-site"), FOREIGN),
            (Some("Same-Origin"), FOREIGN),
            (Some("anything"), FOREIGN),
            (Some(""), FOREIGN),
        ];
        for (site, wanted) in sites {
            let said = [("origin", origin), ("sec-fetch-site", site)];
            let said = said
                .into_iter()
                .filter_map(|(name, value)| value.map(|value| (name, value)));
            let headers: Vec<_> = [("host", host)].into_iter().chain(said).collect();
            assert_eq!(of(&headers), wanted, "{headers:?}");
        }
    }
}

/// [ADM-34] [PAGE-6] a header that is there twice, or a host that is missing: not ours, whatever they say.
#[test]
fn twice_or_missing() {
    let (host, origin) = (("host", "127.0.0.1:8787"), ("origin", "http://127.0.0.1:8787"));
    let (same, none) = (("sec-fetch-site", "same-origin"), ("sec-fetch-site", "none"));
    for headers in [
        &[host, origin, origin][..],
        &[host, origin, origin, same],
        &[host, origin, ("origin", "null")],
        &[origin],
        &[origin, same],
        &[host, host, origin],
        &[host, host, origin, same],
        &[host, same, same],
        &[host, none, none],
        &[host, same, none],
        &[host, origin, same, same],
    ] {
        assert_eq!(of(headers), FOREIGN, "{headers:?}");
    }
    assert_eq!(of(&[]), NOBODY);
}
