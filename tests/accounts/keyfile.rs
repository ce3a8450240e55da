//! A credential in a file, and a world whose one account has it.

use std::path::PathBuf;

use responses_bridge::simulator::credential_hash;
use tempfile::TempDir;

use crate::world::{Setup, World};

/// A file that holds a key.
pub struct KeyFile {
    directory: TempDir,
}

impl KeyFile {
    pub fn new(key: &str) -> KeyFile {
        let file = KeyFile {
            directory: tempfile::tempdir().unwrap(),
        };
        file.write(key);
        file
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("key")
    }

    /// Writes in place.
    pub fn write(&self, text: &str) {
        std::fs::write(self.path(), text).unwrap();
    }

    /// Puts another file in its place.
    pub fn rename_over(&self, text: &str) {
        let other = self.directory.path().join("key.new");
        std::fs::write(&other, text).unwrap();
        std::fs::rename(other, self.path()).unwrap();
    }

    /// A world whose one account, `up/main`, has this credential. `rest` is TOML of the provider's table.
    pub fn setup(&self, rest: &str) -> Setup {
        Setup::new().config(&format!(
            "[providers.up]\nbase_url = \"{{openai}}\"\n{rest}\n\
             [[providers.up.accounts]]\nname = \"main\"\ncredential = {{ file = {:?} }}\n",
            self.path()
        ))
    }
}

/// What the ledger shows of a key.
pub fn shown(key: &str) -> String {
    credential_hash(&format!("Bearer {key}"))
}

/// The credentials that came with a conversation's creates, in their order.
pub fn credentials(world: &World, conversation: &str) -> Vec<String> {
    world.upstream.look(|ledger| {
        ledger
            .creates_of(conversation)
            .map(|create| create.headers["authorization"].clone())
            .collect()
    })
}
