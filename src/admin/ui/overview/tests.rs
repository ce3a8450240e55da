//! The first page, from values.

use super::*;
use crate::admin::ui::samples::{busy, quiet};

fn draw(overview: &Overview, filter: &Filter) -> String {
    let visit = Visit {
        filter,
        accounts: &["openai/main".into(), "openai/spare".into()],
        csrf: &"c".repeat(64),
        notice: None,
        seen: 7,
    };
    page(overview, &visit)
}

/// [PAGE-9] with every list at its longest the page, its style and its script are under 50 KB.
#[test]
fn the_first_view_is_small() {
    let mut crowded = busy();
    fn grown<T: Clone>(rows: &mut Vec<T>, most: usize) {
        *rows = rows.iter().cycle().take(most).cloned().collect();
    }
    grown(&mut crowded.sessions, 4096);
    grown(&mut crowded.turns, 4096);
    grown(&mut crowded.quarantine, 4096);
    grown(&mut crowded.accounts, 500);
    grown(&mut crowded.events, 512);
    let long = "a-provider-with-a-long-name/an-account-with-a-longer-name";
    for of in &mut crowded.accounts {
        of.account.provider = "a-provider-with-a-long-name";
        of.account.account = "an-account-with-a-longer-name";
    }
    crowded
        .sessions
        .iter_mut()
        .for_each(|of| of.account = long.into());
    crowded.turns.iter_mut().for_each(|of| of.account = long.into());
    crowded
        .quarantine
        .iter_mut()
        .for_each(|of| of.account = Some(long.into()));
    crowded
        .events
        .iter_mut()
        .for_each(|of| of.account = Some(long.into()));
    let page = draw(&crowded, &Filter::default());
    let total = page.len() + shell::STYLE.len() + shell::SCRIPT.len();
    eprintln!(
        "page {} + style {} + script {} = {total} bytes",
        page.len(),
        shell::STYLE.len(),
        shell::SCRIPT.len()
    );
    assert!(total < 50_000, "{total} bytes");
    for more in [
        "and 4,076 more",
        "and 488 more",
        "and 4,081 more",
        "and 4,088 more",
        ": filter by account to see others",
    ] {
        assert!(page.contains(more), "{more}");
    }
    // Whoever has filtered by account is not told to.
    let page = draw(&crowded, &Filter::of(Some("account=openai%2Fspare")));
    assert!(page.contains("and 4,076 more: <code>GET /admin/sessions</code> lists them all"));
    assert!(!page.contains("filter by account"));
}

/// [PAGE-10] the page says how things stand.
#[test]
fn an_incident_is_told() {
    let page = draw(&busy(), &Filter::default());
    for words in [
        "▲ Draining: new turns are refused",
        "✕ State not on disk: no_space",
        "▲ on HTTP</span> 48 s left",
        "✕ sick: all by HTTP, 28 s",
        "✕ its rate limit is reached, 65 s",
        "▲ warn",
        "response_created_timeout",
        "deadline 60 s",
        "Version 0.1.0, up 3 d 4 h",
    ] {
        assert!(page.contains(words), "{words}\n{page}");
    }
}

/// [PAGE-10] a turn says which way it went, before it is accepted, too.
#[test]
fn a_turn_says_its_way() {
    let mut overview = busy();
    assert!(draw(&overview, &Filter::default()).contains("sent, not accepted"));
    overview.turns[0].transport = Some("http");
    assert!(draw(&overview, &Filter::default()).contains("sent by HTTP"));
}

/// [PAGE-10] where there is nothing, the page says what that means.
#[test]
fn emptiness_is_explained() {
    let page = draw(&quiet(), &Filter::default());
    for words in [
        "No key is in quarantine",
        "No session is open",
        "No turn is running",
        "No turn on a session has been accepted",
        "Nothing has happened since the start",
        "✓ Serving",
    ] {
        assert!(page.contains(words), "{words}");
    }
    let filter = Filter::of(Some("account=nobody"));
    let mut filtered = quiet();
    filtered.accounts.clear();
    filtered.figures.sessions_idle = 3;
    filtered.figures.turns = 1;
    filtered.figures.quarantined_keys = 6;
    let page = draw(&filtered, &filter);
    assert!(!page.contains("No key is in quarantine"));
    for words in [
        "No account matches",
        "No session matches",
        "No running turn matches",
        "No key in quarantine matches the filter; without it there are 6.",
        "None of the latest 512 events",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

/// [PAGE-20] whatever a name, a model, an operator or a filter holds, it is text.
#[test]
fn planted_markup_is_text() {
    let planted = "\"'><script>alert(1)</script>\u{1b}[31m'; DROP TABLE journal; --";
    let mut overview = busy();
    for session in &mut overview.sessions {
        session.key = Some(planted.into());
        session.account = planted.into();
    }
    for turn in &mut overview.turns {
        turn.model = planted.into();
        turn.request_id = planted.into();
    }
    for key in &mut overview.quarantine {
        key.key = planted.into();
        key.account = Some(planted.into());
    }
    for event in &mut overview.events {
        event.at = planted.into();
        event.event = planted.into();
        event.account = Some(planted.into());
        event.fields = vec![(planted.into(), planted.into())];
    }
    if let Some(trouble) = &mut overview.store.trouble {
        trouble.way_out = planted.into();
    }
    let filter = Filter {
        account: Some(planted.into()),
        kind: Some(planted.into()),
    };
    let visit = Visit {
        filter: &filter,
        accounts: &[planted.replace("\u{1b}", "")],
        csrf: "c",
        notice: Some(planted),
        seen: 7,
    };
    let page = page(&overview, &visit);
    // The page's own script, by its address, and no other.
    assert_eq!(page.matches("<script").count(), 1);
    for markup in ["\"'>", "\u{1b}", " style=", " onclick"] {
        let found = page.find(markup).and_then(|at| page.get(at.saturating_sub(60)..));
        assert!(found.is_none(), "{found:?}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

/// [PAGE-1] nothing on the page comes from elsewhere.
#[test]
fn the_page_is_alone() {
    let page = draw(&busy(), &Filter::default());
    for text in [&page, shell::STYLE, shell::SCRIPT] {
        for outside in ["http://", "https://", "url(", "@import", "src=\"//"] {
            assert!(!text.contains(outside), "{outside}");
        }
    }
}
