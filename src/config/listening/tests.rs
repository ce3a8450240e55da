use super::*;

fn at(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// [CFG-12] Loopback in both families, and IPv4 written as IPv6; nothing else.
#[test]
fn loopback_is_known_in_every_form() {
    for text in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        assert!(is_loopback(at(text)), "{text}");
    }
    for text in [
        "0.0.0.0:1",
        "[::]:1",
        "10.0.0.1:1",
        "[fe80::1]:1",
        "[::ffff:10.0.0.1]:1",
    ] {
        assert!(!is_loopback(at(text)), "{text}");
    }
}

/// [CFG-12] One port at one address, or at every address, cannot be bound twice; port 0 can.
#[test]
fn colliding_addresses_are_known() {
    assert!(collide(at("127.0.0.1:1"), at("127.0.0.1:1")));
    assert!(collide(at("0.0.0.0:1"), at("127.0.0.1:1")));
    assert!(!collide(at("127.0.0.1:1"), at("127.0.0.2:1")));
    assert!(!collide(at("127.0.0.1:1"), at("127.0.0.1:2")));
    assert!(!collide(at("127.0.0.1:0"), at("127.0.0.1:0")));
}
