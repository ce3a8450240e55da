//! Where a bridge keeps its state, for those who look into it from outside.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::config;
use crate::store;

/// Of a configuration, the one thing that is needed to find its state: secrets that it names need not be at hand.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    state: State,
}

#[derive(Default, Deserialize)]
struct State {
    path: Option<PathBuf>,
}

/// The directory that was named, or the configuration's, or the usual one.
///
/// # Errors
/// In words: the configuration cannot be read, or nothing says where.
pub fn directory(config: Option<&Path>, named: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    if let Some(path) = config {
        let text = config::read(path).map_err(|faults| faults.to_string())?;
        let file: File = toml::from_str(&text)
            .map_err(|fault| format!("{}: {}; `check` says more", path.display(), fault.message()))?;
        if let Some(state) = file.state.path {
            return Ok(path.parent().unwrap_or(Path::new("")).join(state));
        }
    }
    store::default_directory(|name| std::env::var_os(name)).map_err(|fault| fault.to_string())
}
