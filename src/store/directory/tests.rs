use std::os::unix::fs::PermissionsExt;

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// [STATE-10] Directory and key are private, and the key stays the same.
#[test]
fn the_first_start_makes_a_private_key_that_stays() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a/b");
    let first = Directory::open(&path).unwrap().key().clone();
    assert_eq!((mode(&path), mode(&path.join("install.key"))), (0o700, 0o600));
    assert_eq!(fs::read(path.join("install.key")).unwrap(), first.bytes());
    let other = Directory::open(&home.path().join("c")).unwrap();
    assert!(first != *other.key(), "two installations have two keys");
    assert!(first == *Directory::open(&path).unwrap().key());
    assert_eq!(format!("{other:?}").matches("InstallKey(..)").count(), 1);
}

/// [STATE-10] An unfinished key of a start that died is not taken for a key, and does not block the next start.
#[test]
fn a_half_made_key_is_made_anew() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("install.new"), "half").unwrap();
    let directory = Directory::open(home.path()).unwrap();
    assert_eq!(
        fs::read(home.path().join("install.key")).unwrap(),
        directory.key().bytes()
    );
    assert!(!home.path().join("install.new").exists());
}

/// [STATE-10] A key of another length refuses the start, names the file, and is left as it was.
#[test]
fn a_key_of_another_length_is_refused() {
    for content in ["", "short", "thirty-three bytes are one too many"] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("install.key");
        fs::write(&path, content).unwrap();
        set_mode(&path, 0o600);
        let fault = Directory::open(home.path()).unwrap_err();
        assert!(fault.forbids_serving());
        let message = fault.to_string();
        let expected = format!("{} has {} bytes and not 32: ", path.display(), content.len());
        assert!(message.starts_with(&expected), "{message}");
        assert!(content.is_empty() || !message.contains(content), "{message}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
}

/// [STATE-10] A key that group or world can read, write or run refuses the start and says what to do.
#[test]
fn a_key_open_to_others_is_refused() {
    let home = tempfile::tempdir().unwrap();
    drop(Directory::open(home.path()).unwrap());
    let path = home.path().join("install.key");
    for open in [0o640, 0o604, 0o620, 0o666] {
        set_mode(&path, open);
        let fault = Directory::open(home.path()).unwrap_err();
        assert!(fault.forbids_serving());
        let message = fault.to_string();
        let expected = format!("{} can be read by other users (mode {open:04o})", path.display());
        assert!(
            message.starts_with(&expected) && message.contains("chmod 600"),
            "{message}"
        );
    }
    set_mode(&path, 0o400);
    Directory::open(home.path()).unwrap();
}

/// [STATE-11] A second opener is told who holds the directory; when the holder is gone, it is free. What an earlier
/// holder wrote there is neither believed nor in the way.
#[test]
fn a_held_directory_names_its_holder() {
    let home = tempfile::tempdir().unwrap();
    fs::write(
        home.path().join("lock"),
        "process 1 since the beginning of time, and some more words",
    )
    .unwrap();
    let first = Directory::open(home.path()).unwrap();
    let fault = Directory::open(home.path()).unwrap_err();
    assert!(fault.forbids_serving());
    let message = fault.to_string();
    let expected = format!(
        "another process uses the state directory {}: process {} since 20",
        home.path().display(),
        std::process::id()
    );
    assert!(
        message.starts_with(&expected) && message.ends_with("(state.path)"),
        "{message}"
    );
    assert!(!message.contains("beginning"), "{message}");
    drop(first);
    Directory::open(home.path()).unwrap();
}

/// [STATE-11] Whatever a lock file holds, a message quotes one short line of plain text at most.
#[test]
fn a_strange_lock_file_is_quoted_with_care() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("lock");
    let quoted = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        holder(&path).to_string()
    };
    assert_eq!(quoted(b""), "one that has not yet said who it is");
    assert_eq!(quoted(b"\xff\xfe"), "one that has not yet said who it is");
    assert_eq!(quoted(b"one\n\x1b[31mtwo"), "one");
    assert_eq!(quoted(&[b'x'; 4096]).len(), 80);
}

/// [STATE-8] A directory that cannot be made leaves serving from memory, and the fault names the place.
#[test]
fn an_impossible_directory_does_not_forbid_serving() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.join("below"), file] {
        let fault = Directory::open(&path).unwrap_err();
        assert!(!fault.forbids_serving());
        let message = fault.to_string();
        assert!(message.contains(&path.display().to_string()), "{message}");
    }
}

/// [STATE-10] A key that is gone is not made anew beside a database that depends on it; nothing is written there. Beside none,
/// or one that nothing was ever written into, it is.
#[test]
fn a_key_that_is_gone_is_not_replaced() {
    let home = tempfile::tempdir().unwrap();
    let (key, database) = (home.path().join(KEY), home.path().join(DATABASE));
    fs::write(&database, "").unwrap();
    drop(Directory::open(home.path()).unwrap());
    fs::remove_file(&key).unwrap();
    fs::write(&database, "rows").unwrap();
    let fault = Directory::open(home.path()).unwrap_err();
    assert!(fault.forbids_serving());
    let message = fault.to_string();
    let expected = format!("{} is gone, and {} beside it", key.display(), database.display());
    assert!(message.starts_with(&expected), "{message}");
    assert!(message.contains("restore the key from a copy"), "{message}");
    assert!(!key.exists());
    fs::remove_file(&database).unwrap();
    drop(Directory::open(home.path()).unwrap());
    assert!(key.exists());
}
