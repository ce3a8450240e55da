//! A file's text replaced at once: whoever reads it sees the old text or the new one, whatever happens in between.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

/// Puts `new` in the place of `old` in the file at `path`, or in the one that a symbolic link there leads to. Mode and owner
/// stay.
///
/// # Errors
/// For people. Then the file is as it was, unless it says that it was written.
pub fn replace(path: &Path, old: &str, new: &str) -> Result<(), String> {
    let name = path.display();
    let failed = |error: std::io::Error| format!("--apply: {name} was not written: {error}");
    let target = fs::canonicalize(path).map_err(failed)?;
    let facts = fs::metadata(&target).map_err(failed)?;
    let folder = target.parent().unwrap_or(Path::new("/"));
    if !facts.is_file() {
        return Err(format!("--apply: {name} was not written: it is no ordinary file"));
    }
    // Beside it, for only within one file system is a rename done at once.
    let mut draft = tempfile::Builder::new()
        .prefix(".tune-")
        .suffix(".toml")
        .tempfile_in(folder)
        .map_err(failed)?;
    draft.write_all(new.as_bytes()).map_err(failed)?;
    let own = draft.as_file().metadata().map_err(failed)?;
    if (own.uid(), own.gid()) != (facts.uid(), facts.gid()) {
        fchown(draft.as_file(), Some(facts.uid()), Some(facts.gid())).map_err(|error| {
            format!(
                "--apply: {name} was not written: its owner would change ({error}); run this as its owner"
            )
        })?;
    }
    let file = draft.as_file();
    file.set_permissions(facts.permissions()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    if fs::read(&target).map_err(failed)? != old.as_bytes() {
        return Err(format!(
            "--apply: {name} was not written: somebody has changed it meanwhile; run this again"
        ));
    }
    draft.persist(&target).map_err(|error| failed(error.error))?;
    // The new name itself is to outlive a crash of the machine.
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| {
            format!("--apply: {name} was written, but may not outlive a crash of the machine: {error}")
        })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// [TUNE-10] the file behind a link gets the new text and keeps its mode; the link stays one, and nothing is left over.
    #[test]
    fn the_file_behind_a_link_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (there, here) = (folder.path().join("there"), folder.path().join("here"));
        fs::create_dir(&there).unwrap();
        let (file, link) = (there.join("bridge.toml"), here.join("link.toml"));
        fs::create_dir(&here).unwrap();
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("../there/bridge.toml", &link).unwrap();
        let before = fs::metadata(&file).unwrap();
        replace(&link, "old", "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let after = fs::metadata(&file).unwrap();
        assert_eq!(
            (after.mode(), after.uid(), after.gid()),
            (before.mode(), before.uid(), before.gid())
        );
        assert_eq!(
            (names(&there), names(&here)),
            (vec!["bridge.toml".into()], vec!["link.toml".into()])
        );
    }

    /// [TUNE-10] what somebody changed meanwhile is not overwritten, and a file that is not there is not made.
    #[test]
    fn a_changed_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bridge.toml");
        let refused = replace(&file, "old", "new").unwrap_err();
        assert!(refused.contains("was not written"), "{refused}");
        fs::write(&file, "other").unwrap();
        let refused = replace(&file, "old", "new").unwrap_err();
        assert!(refused.contains("changed it meanwhile"), "{refused}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "other");
        let refused = replace(folder.path(), "old", "new").unwrap_err();
        assert!(refused.contains("no ordinary file"), "{refused}");
        assert_eq!(names(folder.path()), ["bridge.toml"]);
    }
}
