use clap::Parser;

use super::*;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

/// [SIM-5] A wrong script keeps the simulator from starting, with the file, the line and the nearest right word.
#[test]
fn a_wrong_script_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wrong.toml");
    std::fs::write(&path, "# wrong\n[[rule]]\nbehave = \"slient\"\n").unwrap();
    let args = Command::parse_from(["simulate", "--quiet", "--script", path.to_str().unwrap()]).args;
    let message = format!("{:#}", simulate(&args).unwrap_err());
    assert!(
        message.ends_with("wrong.toml: line 3: unknown behaviour `slient`; did you mean `silent`?"),
        "{message}"
    );
}

/// [SIM-3] The help lists every word.
#[test]
fn the_help_lists_every_word() {
    let help = words();
    assert!(
        WORDS
            .iter()
            .all(|(word, meaning)| help.contains(word) && help.contains(meaning))
    );
}
