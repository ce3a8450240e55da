//! Where the state of a bridge is, for commands that look into it.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::config::{self, Reading};
use crate::store;

#[derive(Debug, Default, clap::Args)]
pub struct Place {
    /// The configuration file of the bridge, which says where its state is; without one, it is found as `serve` does
    #[arg(long, short, value_name = "FILE", conflicts_with = "state")]
    pub config: Option<PathBuf>,
    /// The folder of its state, with `state.db` and `install.key` in it
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

impl Place {
    /// The state directory. A configuration with other faults still says where: whoever looks into an incident may have a file
    /// that was rejected, and not the secrets that it names.
    ///
    /// # Errors
    /// What is wrong and what to do, for people.
    pub fn directory(&self, variable: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf, String> {
        if let Some(state) = &self.state {
            return Ok(state.clone());
        }
        if let Some(file) = &self.config {
            let text = config::read(file).map_err(|faults| faults.to_string())?;
            let env = |name: &str| variable(name).and_then(|value| value.into_string().ok());
            let read = Reading::of(&text, &file.display().to_string(), &env, |_| false);
            let config = read.and_then(|read| read.judged_at("state.path"));
            return config
                .map(|config| config.state.directory)
                .map_err(|faults| faults.to_string());
        }
        store::default_directory(variable).map_err(|_| {
            "it is not known where the bridge keeps its state: name the folder with --state, or its configuration with \
             --config"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(place: &Place) -> Result<PathBuf, String> {
        place.directory(&|name| (name == "HOME").then(|| "/home/ann".into()))
    }

    /// [JRN-10] The state is where the flag says, else the configuration, though its secrets be missing, else where `serve`
    /// keeps it.
    #[test]
    fn the_state_is_found_as_serve_finds_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bridge.toml");
        let place = |text: &str| {
            std::fs::write(&file, text).unwrap();
            found(&Place {
                config: Some(file.clone()),
                state: None,
            })
        };
        let secret = "[server]\nadmin_token = { env = \"NOT_SET\" }\n";
        let inside = folder.path().join("kept");
        assert_eq!(place("[state]\npath = \"kept\"").unwrap(), inside);
        assert_eq!(
            place(&format!("{secret}[state]\npath = \"kept\"")).unwrap(),
            inside
        );
        // A file that was rejected.
        let rejected = place("[watchdog]\nidle = 3\n[state]\npath = \"kept\"\nmax = 1");
        assert_eq!(rejected.unwrap(), inside);
        assert!(place("[state]\npath = 3").unwrap_err().contains("state.path"));
        let usual = PathBuf::from("/home/ann/.local/state/responses-bridge");
        assert_eq!(place(secret).unwrap(), usual);
        assert_eq!(found(&Place::default()).unwrap(), usual);
        assert!(place("[state").unwrap_err().contains("bridge.toml"));
        let state = Some(PathBuf::from("/there"));
        assert_eq!(
            found(&Place { config: None, state }).unwrap(),
            PathBuf::from("/there")
        );
        let nowhere = Place::default().directory(&|_| None).unwrap_err();
        assert!(nowhere.contains("--state"), "{nowhere}");
    }
}
