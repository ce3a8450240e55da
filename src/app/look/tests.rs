use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use super::*;

fn mark(of: u8) -> Mark {
    [of; 32]
}

/// [REL-5] what two looks find alike is acted upon, once; what moves is not, however long it does.
#[test]
fn what_has_come_to_rest() {
    let mut settling = Settling::default();
    let mut now = Instant::now();
    let mut looks = |settling: &mut Settling, marks: &[u8]| {
        let look = |of: &u8| {
            now += SETTLED;
            settling.saw(now, mark(*of))
        };
        marks.iter().map(look).collect::<Vec<_>>()
    };
    assert_eq!(looks(&mut settling, &[1, 1, 1]), [false, true, false]);
    assert_eq!(looks(&mut settling, &[2, 3, 4]), [false, false, false]);
    assert!(!settling.is_settled());
    assert_eq!(looks(&mut settling, &[4, 4]), [true, false]);
    assert!(settling.is_settled());
    assert_eq!(
        looks(&mut settling, &[5, 4, 5, 4]),
        [false; 4],
        "back as it was: nothing new"
    );
    assert!(settling.is_settled());
    assert_eq!(looks(&mut settling, &[5, 5]), [false, true]);
}

/// [REL-5] [REL-9] two looks that fall together, that of the second and that of a request say, are one.
#[test]
fn looks_that_fall_together() {
    let (mut settling, now) = (Settling::default(), Instant::now());
    assert!(!settling.saw(now, mark(1)));
    assert!(!settling.saw(now + SETTLED / 2, mark(1)));
    assert!(settling.saw(now + SETTLED, mark(1)));
}

/// [REL-7] only a regular file of a sane size is read, and nothing is waited for.
#[test]
fn only_a_file_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let file = path("file");
    assert_eq!(read(&file), Err(Unreadable::Missing));
    assert_eq!(read(&file.join("below")), Err(Unreadable::Missing));
    fs::write(&file, "x = 1\n").unwrap();
    assert_eq!(read(&file), Ok("x = 1\n".to_owned()));
    assert_eq!(read(&file.join("below")), Err(Unreadable::Missing));
    symlink(&file, path("link")).unwrap();
    assert_eq!(read(&path("link")), Ok("x = 1\n".to_owned()));
    symlink(path("itself"), path("itself")).unwrap();
    assert_eq!(read(&path("itself")), Err(Unreadable::Failed));
    assert_eq!(read(folder.path()), Err(Unreadable::NoFile));
    assert_eq!(read(Path::new("/dev/zero")), Err(Unreadable::NoFile));
    let made = Command::new("mkfifo").arg(path("pipe")).status().unwrap();
    assert!(made.success());
    assert_eq!(read(&path("pipe")), Err(Unreadable::NoFile));
    fs::write(&file, [b'#', 0xff, b'\n']).unwrap();
    assert_eq!(read(&file), Err(Unreadable::NotUtf8));
    fs::write(&file, "\0").unwrap();
    assert_eq!(
        read(&file),
        Ok("\0".to_owned()),
        "what TOML makes of it is told with its line"
    );
    // A hole of 100 MB: none of it is read.
    fs::File::create(&file).unwrap().set_len(100 << 20).unwrap();
    assert_eq!(read(&file), Err(Unreadable::TooLarge));
    fs::File::create(&file).unwrap().set_len(LARGEST).unwrap();
    assert_eq!(read(&file).map(|text| text.len() as u64), Ok(LARGEST));
    fs::File::create(&file).unwrap().set_len(LARGEST + 1).unwrap();
    assert_eq!(read(&file), Err(Unreadable::TooLarge));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    // Root may read everything.
    let denied = fs::File::open(&file).is_err();
    fs::write(path("small"), "").unwrap();
    fs::set_permissions(path("small"), fs::Permissions::from_mode(0o000)).unwrap();
    let wanted = if denied {
        Err(Unreadable::Denied)
    } else {
        Ok(String::new())
    };
    assert_eq!(read(&path("small")), wanted);
}

/// [REL-5] [REL-6] a look tells contents apart, those of the secrets' files too, and what is missing from what is empty.
#[test]
fn what_a_look_tells_apart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bridge.toml");
    let secret = folder.path().join("laptop");
    let looked = || look(&file).mark;
    let mut marks = vec![looked()];
    fs::write(&file, "").unwrap();
    marks.push(looked());
    fs::write(
        &file,
        "[[clients]]\nname = \"laptop\"\nkey = { file = \"laptop\" }\n",
    )
    .unwrap();
    marks.push(looked());
    for text in ["", "one", "two", "tw\u{e9}"] {
        fs::write(&secret, text).unwrap();
        marks.push(looked());
        assert_eq!(Some(&looked()), marks.last(), "the same is the same");
    }
    fs::write(&secret, "two\n").unwrap();
    assert_eq!(looked(), marks[5], "white space around it is none of it");
    fs::remove_file(&file).unwrap();
    assert_eq!(looked(), marks[0]);
    let count = marks.len();
    marks.sort_unstable();
    marks.dedup();
    assert_eq!(marks.len(), count);
}
