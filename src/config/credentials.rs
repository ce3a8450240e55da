//! Secrets: where they lie, and that what lies there can be used. No message here ever holds one (INV-9).
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use secrecy::{ExposeSecret, SecretString};

use super::policy::{Client, CredentialSource};
use super::raw;
use super::review::Review;

/// Above every real key or token. A larger file was named by mistake.
const LARGEST_SECRET: u64 = 64 * 1024;

/// The keys that the bridge itself checks, each name and each key once (CFG-10, CFG-11).
pub fn clients(review: &mut Review<'_>, raw: &[raw::Client]) -> Vec<Client> {
    let mut clients: Vec<Client> = Vec::new();
    for (index, client) in raw.iter().enumerate() {
        let path = format!("clients[{index}]");
        name(review, &format!("{path}.name"), &client.name);
        if raw[..index].iter().any(|earlier| earlier.name == client.name) {
            review.fault(
                &format!("{path}.name"),
                "another client has this name",
                "give each client its own name",
            );
        }
        let key = format!("{path}.key");
        let Some((secret, _)) = secret(review, &key, &client.key) else {
            continue;
        };
        if let Some(twin) = clients.iter().find(|earlier| same(&earlier.key, &secret)) {
            let problem = format!("this is also the key of {}", twin.name);
            review.fault(
                &key,
                problem,
                "give each client its own key: it decides whose responses are whose",
            );
        }
        clients.push(Client {
            name: client.name.clone(),
            key: secret,
        });
    }
    clients
}

/// Whether two secrets are the same. Both come from the operator, so timing tells nobody anything.
pub fn same(one: &SecretString, other: &SecretString) -> bool {
    one.expose_secret() == other.expose_secret()
}

/// Names become metric labels and log fields (CFG-9).
pub fn name(review: &mut Review<'_>, key: &str, name: &str) {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= super::defaults::LONGEST_NAME && name.chars().all(allowed) {
        return;
    }
    let better: String = name
        .to_lowercase()
        .chars()
        .map(|c| if allowed(c) { c } else { '-' })
        .take(super::defaults::LONGEST_NAME)
        .collect();
    let hint = if better.is_empty() {
        "write a name".to_owned()
    } else {
        format!("write \"{better}\"")
    };
    review.fault(
        key,
        "a name has 1 to 32 characters of a-z, 0-9, _ and -, for it becomes a metric label",
        hint,
    );
}

/// The secret at `source`, without white space around it (CFG-10); one that is not to be read is made up from the name of its
/// place, so that those that are the same stay the same (CFG-21). None after a fault.
pub fn secret(
    review: &mut Review<'_>,
    key: &str,
    source: &raw::SecretSource,
) -> Option<(SecretString, CredentialSource)> {
    match (&source.env, &source.file) {
        (Some(variable), None) => {
            let path = format!("{key}.env");
            is_variable(review, &path, variable).then_some(())?;
            let text = match (review.reads)(key) {
                true => from_environment(review, &path, variable)?,
                false => made_up("variable", variable.as_bytes()),
            };
            Some((text, CredentialSource::Env(variable.clone())))
        }
        (None, Some(file)) => {
            let path = format!("{key}.file");
            let file = review.resolve(&path, file)?;
            let text = match (review.reads)(key) {
                true => from_file(review, &path, &file)?,
                false => made_up("file", file.as_os_str().as_encoded_bytes()),
            };
            Some((text, CredentialSource::File(file)))
        }
        _ => {
            review.fault(
                key,
                "must name either env or file",
                "write { env = \"NAME\" } or { file = \"path\" }",
            );
            None
        }
    }
}

fn made_up(what: &str, place: &[u8]) -> SecretString {
    let hash = blake3::hash(place).to_hex();
    format!("made-up-{what}-{}", &hash[..16]).into()
}

fn is_variable(review: &mut Review<'_>, key: &str, variable: &str) -> bool {
    let mut bytes = variable.bytes();
    let starts = bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let is_one = starts && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_one {
        // Quoted nowhere: it may be the secret itself.
        let hint = "write the variable's name (letters, digits and _), not its value and without $";
        review.fault(key, "is not the name of an environment variable", hint);
    }
    is_one
}

fn from_environment(review: &mut Review<'_>, key: &str, variable: &str) -> Option<SecretString> {
    let Some(text) = (review.env)(variable) else {
        let hint = "set it where the bridge is started, or use { file = \"path\" }";
        review.fault(
            key,
            format!("the environment variable {variable} is not set"),
            hint,
        );
        return None;
    };
    usable(
        review,
        key,
        &text,
        &format!("the environment variable {variable}"),
    )
}

fn from_file(review: &mut Review<'_>, key: &str, path: &Path) -> Option<SecretString> {
    match read(path) {
        Ok((text, _)) => usable(review, key, &text, &path.display().to_string()),
        Err(error) => {
            let problem = format!("{} cannot be read: {error}", path.display());
            review.fault(
                key,
                problem,
                "name a file that this user may read and that holds nothing but the secret",
            );
            None
        }
    }
}

/// The file's text, and its inode.
fn read(path: &Path) -> std::io::Result<(String, u64)> {
    let mut text = String::new();
    // Opening a pipe would wait for its writer, for ever perhaps.
    if std::fs::metadata(path)?.file_type().is_fifo() {
        return Err(std::io::Error::other("it is a pipe"));
    }
    let file = File::open(path)?;
    let inode = file.metadata()?.ino();
    file.take(LARGEST_SECRET + 1).read_to_string(&mut text)?;
    Ok((text, inode))
}

/// Why a file gives no secret now. Closed: a metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSecret {
    /// It is not there, or may not be read.
    Unreadable,
    /// There is nothing in it but white space.
    Empty,
    /// What is in it cannot stand in a header.
    Malformed,
}

impl NoSecret {
    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            NoSecret::Unreadable => "file_unreadable",
            NoSecret::Empty => "file_empty",
            NoSecret::Malformed => "file_malformed",
        }
    }
}

/// What a file holds.
pub struct Found {
    pub secret: SecretString,
    /// Its inode: another one for a file that was put in the old one's place.
    pub file: u64,
}

/// The secret that a file holds now. It may just be being written.
pub fn secret_in(path: &Path) -> Result<Found, NoSecret> {
    let (text, file) = read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => NoSecret::Malformed,
        _ => NoSecret::Unreadable,
    })?;
    match text.trim() {
        "" => Err(NoSecret::Empty),
        text if fits(text) => Ok(Found {
            secret: SecretString::from(text),
            file,
        }),
        _ => Err(NoSecret::Malformed),
    }
}

/// Whether the text can stand in a header.
fn fits(text: &str) -> bool {
    text.len() as u64 <= LARGEST_SECRET && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn usable(review: &mut Review<'_>, key: &str, text: &str, whence: &str) -> Option<SecretString> {
    let text = text.trim();
    if text.is_empty() {
        review.fault(key, format!("{whence} is empty"), "put the secret there");
        return None;
    }
    if !fits(text) {
        let problem = format!("{whence} holds something that cannot stand in a header");
        review.fault(
            key,
            problem,
            "put the bare secret there: one line, ASCII, without spaces or \"Bearer\"",
        );
        return None;
    }
    Some(SecretString::from(text))
}
