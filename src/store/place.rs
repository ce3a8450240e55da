//! Where state is kept when the configuration does not say.

use std::ffi::OsString;
use std::path::PathBuf;

use super::fault::StateFault;

const NAME: &str = "responses-bridge";

/// `$STATE_DIRECTORY` (systemd's), else `$XDG_STATE_HOME/responses-bridge`, else `~/.local/state/responses-bridge`.
/// Never below the working directory: a relative path is ignored, as if it were not set (STATE-12).
///
/// # Errors
/// [`StateFault::Nowhere`] where none of them is an absolute path.
pub fn default_directory(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, StateFault> {
    let absolute = |name: &str| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    // Several directories of one unit come joined by colons; the first is the main one.
    let first = variable("STATE_DIRECTORY").and_then(|list| std::env::split_paths(&list).next());
    first
        .filter(|path| path.is_absolute())
        .or_else(|| absolute("XDG_STATE_HOME").map(|base| base.join(NAME)))
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state").join(NAME)))
        .ok_or(StateFault::Nowhere)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(variables: &[(&str, &str)]) -> Option<String> {
        let found = default_directory(|name| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| OsString::from(value))
        });
        found.ok().map(|path| path.display().to_string())
    }

    /// [STATE-12] The strongest variable wins, and none of them leads into the working directory.
    #[test]
    fn state_is_kept_where_the_system_keeps_state() {
        let all = [
            ("STATE_DIRECTORY", "/var/lib/rb:/var/lib/x"),
            ("XDG_STATE_HOME", "/x"),
            ("HOME", "/home/ann"),
        ];
        assert_eq!(place(&all).as_deref(), Some("/var/lib/rb"));
        assert_eq!(place(&all[1..]).as_deref(), Some("/x/responses-bridge"));
        assert_eq!(
            place(&all[2..]).as_deref(),
            Some("/home/ann/.local/state/responses-bridge")
        );
        let relative = [
            ("STATE_DIRECTORY", "here"),
            ("XDG_STATE_HOME", "."),
            ("HOME", "/home/ann"),
        ];
        assert_eq!(
            place(&relative).as_deref(),
            Some("/home/ann/.local/state/responses-bridge")
        );
        assert_eq!(place(&[("HOME", "")]), None);
    }
}
