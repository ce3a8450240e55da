//! What a filter lets through.

use super::*;

fn of(query: &str) -> Filter {
    Filter::of(Some(query))
}

/// [PAGE-12] the address says the filter; what is empty or far too long filters nothing, and what is unreadable does no harm.
#[test]
fn filters_are_read() {
    assert_eq!(Filter::of(None), Filter::default());
    assert_eq!(of("account=&kind=+&other=x&=&&%"), Filter::default());
    assert_eq!(of(&format!("kind={}", "x".repeat(100_000))), Filter::default());
    let both = of("account=openai%2Fmain&kind=quarantine*");
    assert_eq!(both.account.as_deref(), Some("openai/main"));
    assert_eq!(both.kind.as_deref(), Some("quarantine*"));
    assert_eq!(both.href(), "/admin/ui?account=openai/main&kind=quarantine*");
    assert_eq!(of("kind=%zz%4").kind.as_deref(), Some("%zz%4"));
    assert_eq!(of("kind=%ff").kind.as_deref(), Some("\u{fffd}"));
    assert_eq!(
        of("kind=%27%3B--%3Cb%3E").href(),
        "/admin/ui?kind=%27%3B--%3Cb%3E"
    );
}

/// [PAGE-12] accounts by their whole name or their own.
#[test]
fn accounts_are_filtered() {
    assert!(Filter::default().takes_account(None));
    for wanted in ["openai%2Fmain", "main"] {
        let filter = of(&format!("account={wanted}"));
        assert!(filter.takes_account(Some("openai/main")));
        assert!(!filter.takes_account(Some("openai/domain")));
        assert!(!filter.takes_account(None));
    }
    assert!(!of("account=azure/main").takes_account(Some("openai/main")));
}

/// [PAGE-12] [JRN-8] a pattern means on the page what it means everywhere, and none takes long.
#[test]
fn kinds_are_filtered() {
    let takes = |kind: &str, event: &str| of(&format!("kind={kind}")).takes_kind(event);
    for (pattern, event, is) in glob::TABLE {
        assert_eq!(
            takes(&pattern.replace('%', "%25"), event),
            *is,
            "{pattern} {event}"
        );
    }
    assert!(takes("", "refused"));
    let begun = std::time::Instant::now();
    assert!(!takes(&format!("{}b", "*a".repeat(60)), &"a".repeat(10_000)));
    assert!(begun.elapsed() < std::time::Duration::from_secs(2));
}
