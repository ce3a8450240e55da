//! `[providers.NAME]`: upstreams and the accounts to use there (CFG-14).
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use http::{HeaderMap, HeaderName};
use reqwest::Url;

use super::credentials::{name, secret};
use super::defaults::{
    DEFAULT_CHATGPT_BASE_URL, DEFAULT_MAX_FRAME, DEFAULT_OPENAI_BASE_URL, DEFAULT_WEIGHT, SMALLEST_MAX_FRAME,
};
use super::document::key_path;
use super::policy::{Account, Credential, CredentialSource, Provider};
use super::raw::{self, CredentialWord, Kind};
use super::review::Review;
use super::units::ByteSize;
use super::{headers, proxy};

/// The file's providers in its order, or the built-in ones.
pub fn providers(
    review: &mut Review<'_>,
    raw: BTreeMap<String, raw::Provider>,
    has_clients: bool,
) -> Vec<Provider> {
    if raw.is_empty() {
        if has_clients {
            let problem = "there are client keys, but no provider says what to send upstream instead of them";
            review.fault(
                "clients",
                problem,
                "add a [providers.NAME] table with an account, or leave [[clients]] out",
            );
        }
        return built_in()
            .into_iter()
            .filter_map(|(name, raw)| provider(review, name.to_owned(), raw, false))
            .collect();
    }
    let mut raw: Vec<_> = raw.into_iter().collect();
    raw.sort_by_key(|(name, _)| review.places().of(&key_path("providers", name)));
    raw.into_iter()
        .filter_map(|(name, raw)| provider(review, name, raw, has_clients))
        .collect()
}

/// OpenAI and ChatGPT, with what the caller brings (CFG-1).
fn built_in() -> [(&'static str, raw::Provider); 2] {
    [("openai", Kind::Openai), ("chatgpt", Kind::Chatgpt)].map(|(name, kind)| {
        let credential = raw::Credential::Word(CredentialWord::Client);
        let accounts = vec![raw::Account {
            name: "client".to_owned(),
            credential,
            weight: DEFAULT_WEIGHT,
            proxy: None,
            headers: BTreeMap::new(),
            chatgpt_account_id: None,
        }];
        (
            name,
            raw::Provider {
                kind,
                accounts,
                ..raw::Provider::default()
            },
        )
    })
}

fn provider(
    review: &mut Review<'_>,
    called: String,
    raw: raw::Provider,
    has_clients: bool,
) -> Option<Provider> {
    let path = key_path("providers", &called);
    name(review, &path, &called);
    let kind_key = key_path(&path, "kind");
    if raw.kind == Kind::Openai
        && review.places().of(&kind_key).is_none()
        && ["chatgpt", "azure"].contains(&&*called)
    {
        let problem = format!("is missing, so that {called} would be taken for the kind openai");
        review.fault(
            &kind_key,
            problem,
            format!("add kind = \"{called}\", or kind = \"openai\" if it is that"),
        );
    }
    let headers = headers::headers(review, &key_path(&path, "headers"), &raw.headers);
    let accounts = accounts(
        review,
        &key_path(&path, "accounts"),
        &raw.accounts,
        Common {
            kind: raw.kind,
            headers: &headers,
            has_clients,
        },
    );
    models(review, &key_path(&path, "models"), &raw.models);
    let max_frame = raw
        .max_frame
        .map(|size| max_frame(review, &key_path(&path, "max_frame"), size));
    let ca_file = raw
        .ca_file
        .and_then(|file| certificates(review, &key_path(&path, "ca_file"), &file));
    let base_url = base_url(
        review,
        &key_path(&path, "base_url"),
        raw.kind,
        raw.base_url.as_deref(),
    )?;
    Some(Provider {
        name: called,
        kind: raw.kind.into(),
        base_url,
        transport: raw.transport,
        ca_file,
        fragment: raw.fragment,
        max_age: raw.max_age.map(|lapse| lapse.0),
        max_frame,
        models: raw.models,
        one_model_per_connection: raw.one_model_per_connection,
        headers,
        accounts,
    })
}

/// What all accounts of a provider have in common.
#[derive(Clone, Copy)]
struct Common<'a> {
    kind: Kind,
    headers: &'a HeaderMap,
    has_clients: bool,
}

fn accounts(review: &mut Review<'_>, path: &str, raw: &[raw::Account], common: Common<'_>) -> Vec<Account> {
    if raw.is_empty() {
        let table = path.replace("[", "");
        let hint = format!(
            "add [[{table}]] with name and credential; credential = \"client\" passes the caller's own through"
        );
        review.fault(path, "has no account, so nothing can be sent there", hint);
    }
    let mut accounts: Vec<Account> = Vec::new();
    for (index, account) in raw.iter().enumerate() {
        let name_key = format!("{path}[{index}].name");
        let credential_key = format!("{path}[{index}].credential");
        name(review, &name_key, &account.name);
        if raw[..index].iter().any(|earlier| earlier.name == account.name) {
            review.fault(
                &name_key,
                "another account of this provider has this name",
                "give each account its own name",
            );
        }
        let headers = account_headers(review, &format!("{path}[{index}]"), account, common);
        let given = account
            .proxy
            .as_ref()
            .and_then(|text| proxy::proxy(review, &format!("{path}[{index}].proxy"), text));
        let (proxy, unread_proxy) = match given {
            Some(proxy::Given::Proxy(proxy)) => (Some(proxy), None),
            Some(proxy::Given::Unread(source)) => (None, Some(source)),
            None => (None, None),
        };
        let (credential, source) = match &account.credential {
            raw::Credential::Word(CredentialWord::Client) => {
                if common.has_clients {
                    let problem = "what [[clients]] send is a key of the bridge, which upstream would refuse";
                    review.fault(
                        &credential_key,
                        problem,
                        "give the account a credential of its own, or leave [[clients]] out",
                    );
                }
                if accounts
                    .iter()
                    .any(|earlier| earlier.source == CredentialSource::Client)
                {
                    let problem =
                        "another account of this provider already passes the caller's own credential through";
                    review.fault(&credential_key, problem, "keep one of them");
                }
                (Credential::Client, CredentialSource::Client)
            }
            raw::Credential::Source(source) => match secret(review, &credential_key, source) {
                Some((secret, source)) => (Credential::Secret(secret), source),
                None => continue,
            },
        };
        accounts.push(Account {
            name: account.name.clone(),
            credential,
            source,
            weight: account.weight,
            proxy,
            unread_proxy,
            headers,
        });
    }
    accounts
}

/// The provider's headers, the account's over them, and whose login it is (UP-20).
fn account_headers(
    review: &mut Review<'_>,
    path: &str,
    account: &raw::Account,
    common: Common<'_>,
) -> HeaderMap {
    let mut headers = common.headers.clone();
    headers.extend(headers::headers(
        review,
        &key_path(path, "headers"),
        &account.headers,
    ));
    if let Some(id) = &account.chatgpt_account_id {
        let key = key_path(path, "chatgpt_account_id");
        let callers_own = matches!(account.credential, raw::Credential::Word(CredentialWord::Client));
        if common.kind != Kind::Chatgpt {
            let problem = "is for the kind chatgpt only";
            review.fault(&key, problem, "leave it out, or write kind = \"chatgpt\"");
        } else if callers_own {
            let problem = "the caller's own chatgpt-account-id goes along with the caller's own credential";
            review.fault(
                &key,
                problem,
                "leave it out, or give the account a credential of its own",
            );
        }
        if let Some(value) = headers::value(review, &key, id) {
            headers.insert(HeaderName::from_static("chatgpt-account-id"), value);
        }
    }
    headers
}

fn max_frame(review: &mut Review<'_>, key: &str, size: ByteSize) -> usize {
    if size.0 > DEFAULT_MAX_FRAME {
        let problem =
            format!("{size} is more than any upstream takes: the ChatGPT backend closes just below 16MiB");
        review.fault(
            key,
            problem,
            "write at most \"15MiB\", or leave the key out for that",
        );
    } else if size.0 < SMALLEST_MAX_FRAME {
        let problem = format!("{size} is less than agents' first turns: nearly all would go by direct HTTP");
        let hint = "write at least \"64KiB\"; transport = \"http\" is the word for direct HTTP alone";
        review.fault(key, problem, hint);
    }
    size.0
}

/// Patterns have one special character, `*` (CFG-19).
fn models(review: &mut Review<'_>, path: &str, patterns: &[String]) {
    for (index, pattern) in patterns.iter().enumerate() {
        let key = format!("{path}[{index}]");
        let plain = |c: char| c.is_ascii_alphanumeric() || "*-_.:/@+".contains(c);
        if pattern.is_empty() {
            review.fault(
                &key,
                "is empty, and no model has no name",
                "write a model's name, or leave it out",
            );
        } else if pattern.contains(".*") {
            let hint = "write * alone for any run of characters, as in \"gpt-5*\"";
            review.fault(&key, "looks like a regular expression", hint);
        } else if !pattern.chars().all(plain) {
            let problem = "holds a character that is in no model's name";
            let hint =
                "write the name as requests spell it, with * for any run of characters, as in \"gpt-5*\"";
            review.fault(&key, problem, hint);
        } else if patterns[..index].contains(pattern) {
            review.fault(&key, "stands here twice", "keep one of the two");
        }
    }
    if patterns.len() > 1
        && let Some(index) = patterns.iter().position(|pattern| pattern == "*")
    {
        let problem = "matches every model, so that the others make no difference";
        review.fault(
            &format!("{path}[{index}]"),
            problem,
            "leave it out, or the others",
        );
    }
}

fn base_url(review: &mut Review<'_>, key: &str, kind: Kind, text: Option<&str>) -> Option<Url> {
    let known = match kind {
        Kind::Openai => Some(DEFAULT_OPENAI_BASE_URL),
        Kind::Chatgpt => Some(DEFAULT_CHATGPT_BASE_URL),
        Kind::Azure | Kind::Generic => None,
    };
    let Some(text) = text.or(known) else {
        let hint = match kind {
            Kind::Azure => "write base_url = \"https://RESOURCE.openai.azure.com/openai/v1\"",
            _ => "write base_url = \"https://…\", up to but without /responses",
        };
        review.fault(key, "is missing: this kind has no address of its own", hint);
        return None;
    };
    match parse_base_url(text) {
        Ok(url) => Some(url),
        Err((problem, hint)) => {
            review.fault(key, problem, hint);
            None
        }
    }
}

/// Never quotes the address: it may hold credentials.
fn parse_base_url(text: &str) -> Result<Url, (&'static str, &'static str)> {
    let mut url = Url::parse(text.trim()).map_err(|_| {
        (
            "is not an address",
            "write scheme, host and path, as in \"https://api.openai.com/v1\"",
        )
    })?;
    match url.scheme() {
        "http" | "https" => {}
        "ws" => {
            return Err((
                "must begin with http://, not ws://",
                "write http:// here: the bridge makes the WebSocket of it itself",
            ));
        }
        "wss" => {
            return Err((
                "must begin with https://, not wss://",
                "write https:// here: the bridge makes the WebSocket of it itself",
            ));
        }
        _ => {
            return Err((
                "must begin with http:// or https://",
                "write the scheme, as in \"https://api.openai.com/v1\"",
            ));
        }
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err((
            "holds a credential",
            "move it to an account: credential = { env = \"NAME\" }",
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(("has a query or a fragment", "leave out what follows the path"));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    if ["/responses", "/chat/completions"]
        .iter()
        .any(|endpoint| path.ends_with(endpoint))
    {
        return Err((
            "names one endpoint",
            "leave out its last part: the bridge adds /responses itself",
        ));
    }
    url.set_path(&path);
    Ok(url)
}

/// The absolute path of a file of certificate authorities that is there and in PEM.
fn certificates(review: &mut Review<'_>, key: &str, file: &Path) -> Option<PathBuf> {
    let path = review.resolve(key, file)?;
    let hint = "name a PEM file with at least one certificate, or leave ca_file out";
    match std::fs::read(&path) {
        Err(error) => review.fault(key, format!("{} cannot be read: {error}", path.display()), hint),
        Ok(bytes) if memchr::memmem::find(&bytes, b"-----BEGIN CERTIFICATE-----").is_none() => {
            review.fault(
                key,
                format!("{} holds no certificate in PEM", path.display()),
                hint,
            );
        }
        Ok(_) => return Some(path),
    }
    None
}
