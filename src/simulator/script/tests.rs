use super::*;

fn refused(text: &str) -> (usize, String) {
    let error = Script::parse(text).unwrap_err();
    (error.line, error.message)
}

/// [SIM-5] A wrong word in a script is an error that names the line and the nearest right word.
#[test]
fn a_wrong_word_names_its_line() {
    let (line, message) = refused("# first\n\n[[rule]]\nbehave = \"slient\"\n");
    assert_eq!(
        (line, message.as_str()),
        (4, "unknown behaviour `slient`; did you mean `silent`?")
    );

    let (line, message) = refused("[[rule]]\nbehav = \"silent\"\n");
    assert_eq!(line, 2);
    assert!(message.ends_with("did you mean `behave`?"), "{message}");

    let (line, message) = refused("[[upgrade]]\ndo = \"refus(status=403)\"\n");
    assert_eq!(
        (line, message.as_str()),
        (2, "unknown upgrade behaviour `refus`; did you mean `refuse`?")
    );

    let (line, message) = refused("[limits]\nsockets = 1\nframe = \"16 GB\"\n");
    assert_eq!(
        (line, message.as_str()),
        (3, "`frame=16 GB`: expected a size such as 16MiB")
    );

    let (line, message) = refused("kind = \"chatgtp\"\n");
    assert_eq!(line, 1);
    assert!(message.ends_with("did you mean `chatgpt`?"), "{message}");
}

/// [SIM-4] One rule may have several behaviours.
#[test]
fn a_rule_may_combine_behaviours() {
    let script =
        Script::parse("[[rule]]\nbehave = \"text(n=5, size=3)  close(code=1011, after=2)\"\n").unwrap();
    let labels: Vec<&str> = script.rules[0]
        .parts
        .iter()
        .map(|part| part.label.as_str())
        .collect();
    assert_eq!(labels, ["text(n=5, size=3)", "close(code=1011, after=2)"]);
}

/// [SIM-4] Header conditions compare values, and `*` is any value.
#[test]
fn headers_are_compared() {
    let script = Script::parse(
        "[[upgrade]]\nmatch = { header = { Thread-Id = \"t1\", x-any = \"*\" } }\ndo = \"hang\"\n",
    );
    let matches = script.unwrap().upgrades.remove(0).matches;
    let head = |thread: &str, any: &str| Head {
        headers: vec![("thread-id".into(), thread.into()), (any.into(), "v".into())],
        ..Head::default()
    };
    assert!(matches.meets_head(&head("t1", "x-any")));
    assert!(!matches.meets_head(&head("t2", "x-any")));
    assert!(!matches.meets_head(&head("t1", "x-other")));
}

/// [SIM-20] Every script in `fixtures/scripts` can be used, and says in its first line what it is for.
#[test]
fn every_fixture_parses() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/scripts");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("# "),
            "{}: the first line says what it rehearses",
            path.display()
        );
        Script::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        count += 1;
    }
    assert!(count >= 25, "only {count} scripts");
}
