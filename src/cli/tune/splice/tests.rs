use proptest::prelude::*;

use super::*;

const CREATED: &str = "watchdog.response_created_deadline";

fn change(key: &'static str, to: &str) -> Change {
    Change {
        key,
        from: "60s".to_owned(),
        to: to.to_owned(),
    }
}

fn created(text: &str) -> String {
    spliced(text, &[change(CREATED, "45s")]).unwrap()
}

/// [TUNE-10] every byte but the value stays: comments, order, white space, line ends, quotes of others.
#[test]
fn only_the_value_changes() {
    let text = "# Windows of the night shift\r\n[session]\r\nmax_age='30m'\t# xAI\r\n\r\n[ watchdog ]  # see #12\r\n\
                idle_deadline   =   \"15m\"\r\n  response_created_deadline = '''60s'''   # \"60s\", since May\r\n\r\n\
                [quarantine]\r\nwindow = \"60s\"";
    let new = created(text);
    assert_eq!(new, text.replace("'''60s'''", "\"45s\""));
    let both = [change(CREATED, "45s"), change("quarantine.window", "2m")];
    let new = spliced(text, &both).unwrap();
    assert_eq!(
        new,
        text.replace("'''60s'''", "\"45s\"")
            .replace("window = \"60s\"", "window = \"2m\"")
    );
    assert_eq!(spliced(text, &[]).unwrap(), text);
}

/// [TUNE-10] a key that is not there is added where its table is, in the way in which that is written.
#[test]
fn a_missing_key_is_added() {
    let line = "response_created_deadline = \"45s\"";
    for (text, new) in [
        (
            "[watchdog] # w\nidle_deadline = \"9m\"\n",
            format!("[watchdog] # w\n{line}\nidle_deadline = \"9m\"\n"),
        ),
        ("[watchdog]", format!("[watchdog]\n{line}\n")),
        (
            "watchdog.idle_deadline = \"9m\"\n",
            format!("watchdog.{line}\nwatchdog.idle_deadline = \"9m\"\n"),
        ),
        (
            "watchdog = { idle_deadline = \"9m\" }\n",
            format!("watchdog = {{ {line}, idle_deadline = \"9m\" }}\n"),
        ),
        ("watchdog = {}\n", format!("watchdog = {{ {line}}}\n")),
        (
            "[session]\nmax_age = \"9m\"\n",
            format!("[session]\nmax_age = \"9m\"\n\n[watchdog]\n{line}\n"),
        ),
        (
            "[session]\r\nmax_age = \"9m\"",
            format!("[session]\r\nmax_age = \"9m\"\r\n\r\n[watchdog]\r\n{line}\r\n"),
        ),
        ("", format!("[watchdog]\n{line}\n")),
    ] {
        assert_eq!(created(text), new);
    }
}

/// [TUNE-10] where there is no plain place, nothing is written, and what to write is said.
#[test]
fn no_plain_place() {
    for text in ["watchdog = 7\n", "[watchdog]\nresponse_created_deadline = 7\n"] {
        let refused = spliced(text, &[change(CREATED, "45s")]).unwrap_err();
        assert!(
            refused.ends_with("write watchdog.response_created_deadline = \"45s\" by hand"),
            "{refused}"
        );
    }
}

proptest! {
    /// [TUNE-10] whatever stands around it.
    #[test]
    fn round_trips(before in "(# [ -~é]{0,20}\n|\n|[a-c]{1,3}[0-9]{3} = 'x'\n){0,1}", comment in "[ -~é]{0,30}", gap in "[ \t]{0,5}", eol in "(\r\n|\n)") {
        let text = format!("{before}[watchdog]{eol}#{comment}{eol}response_created_deadline{gap}={gap}\"60s\"{gap}#{comment}{eol}{eol}");
        prop_assert_eq!(created(&text), text.replacen(&format!("={gap}\"60s\""), &format!("={gap}\"45s\""), 1));
    }
}
