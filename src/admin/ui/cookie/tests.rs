//! Sessions of browsers.

use super::*;

const TOKEN: [u8; 32] = [9; 32];

fn id(number: u8) -> Id {
    Id::new([number; 32])
}

fn with(cookies: &[&str]) -> Option<Id> {
    let mut headers = HeaderMap::new();
    for cookie in cookies {
        headers.append(COOKIE, cookie.parse().unwrap());
    }
    Id::of(&headers)
}

/// [PAGE-3] the cookie goes to this site's own pages only, and no script reads it; it is 256 bits that mean nothing.
#[test]
fn the_cookie() {
    let value = "05".repeat(32);
    assert_eq!(
        id(5).set(false),
        format!("{NAME}={value}; Path=/admin; Max-Age=43200; HttpOnly; SameSite=Strict")
    );
    assert!(id(5).set(true).ends_with("; SameSite=Strict; Secure"));
    assert!(unset().contains("Max-Age=0"));
    let ours = format!("{NAME}={value}");
    assert!(with(&[&format!("a=b; {ours}; c=d")]) == Some(id(5)));
    assert!(with(&["a=b", &ours]) == Some(id(5)));
    for forged in [
        format!("{ours}; {ours}"),
        format!("{ours}0"),
        format!("{NAME}={}", &value[2..]),
        format!("{NAME}="),
        format!("x{ours}"),
        format!("{NAME}={}", "zz".repeat(32)),
    ] {
        assert!(with(&[&forged]).is_none(), "{forged}");
    }
    assert!(with(&[]).is_none());
}

/// [PAGE-4] a session ends half an hour after its last use, and twelve hours after its first, used or not.
#[test]
fn sessions_expire() {
    let begin = Instant::now();
    let mut logins = Logins::default();
    logins.open(&id(1), TOKEN, begin);
    let mut now = begin + IDLE - Duration::from_secs(1);
    assert!(logins.touch(&id(1), Some(TOKEN), now));
    assert!(!logins.touch(&id(1), Some(TOKEN), now + IDLE));
    assert!(
        !logins.touch(&id(1), Some(TOKEN), now),
        "an ended session lives again"
    );
    assert!(logins.is_empty());
    logins.open(&id(2), TOKEN, begin);
    now = begin;
    while now + IDLE / 2 < begin + LONGEST {
        now += IDLE / 2;
        assert!(logins.touch(&id(2), Some(TOKEN), now));
    }
    assert!(!logins.touch(&id(2), Some(TOKEN), begin + LONGEST));
}

/// [PAGE-4] another token, or none, ends every session; signing out ends one.
#[test]
fn sessions_end_with_their_token() {
    let now = Instant::now();
    let mut logins = Logins::default();
    for number in 1..4 {
        logins.open(&id(number), TOKEN, now);
    }
    assert!(!logins.touch(&id(1), Some([8; 32]), now));
    assert!(!logins.touch(&id(2), None, now));
    assert!(logins.touch(&id(3), Some(TOKEN), now));
    logins.close(&id(3));
    assert!(!logins.touch(&id(3), Some(TOKEN), now));
    assert!(!logins.touch(&id(4), Some(TOKEN), now));
}

/// [PAGE-4] at the cap and one more, the longest unused makes room.
#[test]
fn sessions_are_bounded() {
    let begin = Instant::now();
    let mut logins = Logins::default();
    for number in 0..=u8::try_from(MOST).unwrap() {
        let now = begin + Duration::from_secs(u64::from(number));
        logins.open(&id(number), TOKEN, now);
        assert!(logins.touch(&id(0), Some(TOKEN), now) || number == 0);
    }
    assert_eq!(logins.len(), MOST);
    let now = begin + Duration::from_secs(100);
    assert!(logins.touch(&id(0), Some(TOKEN), now));
    assert!(!logins.touch(&id(1), Some(TOKEN), now));
    assert!(logins.touch(&id(2), Some(TOKEN), now));
}

/// [PAGE-6] a form's proof is its session's alone, and tells nothing of the cookie.
#[test]
fn forms_are_bound_to_their_session() {
    let proof = id(1).csrf();
    assert!(id(1).proves(&proof));
    assert!(!id(2).proves(&proof));
    assert!(!id(1).proves("") && !id(1).proves(&proof[1..]) && !id(1).proves(&"01".repeat(32)));
    assert_eq!(proof.len(), 64);
}

/// [PAGE-13] what an action did is told once, by the session's next page.
#[test]
fn notices_are_told_once() {
    let mut logins = Logins::default();
    logins.open(&id(1), TOKEN, Instant::now());
    logins.note(&id(1), "Done.".into());
    logins.note(&id(2), "Lost.".into());
    assert_eq!(logins.told(&id(1)).as_deref(), Some("Done."));
    assert_eq!(logins.told(&id(1)), None);
    assert_eq!(logins.told(&id(2)), None);
}
