//! A running bridge, asked by its operators over the admin API (ADM-30 to ADM-33).

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use reqwest::header::{HeaderValue, RETRY_AFTER};
use reqwest::{Method, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::printed;
use super::terminal::plain;
use crate::config::{self, Environment, Reading, Reads, Server};

/// A bridge that is well answers within milliseconds.
const WITHIN: Duration = Duration::from_secs(10);
/// Longest answer in bytes: thousands of keys.
const LONGEST: usize = 16 << 20;
/// Where the built-in configuration listens.
const BUILT_IN: &str = "http://127.0.0.1:8787";
const TOKEN: &str = "BRIDGE_ADMIN_TOKEN";

/// Which bridge.
#[derive(Debug, Default, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Where the bridge is, as in http://127.0.0.1:8787; without it, where its configuration says
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Its configuration file, which says where it listens and where its admin token lies
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Args {
    /// The bridge at an address.
    pub fn at(url: &str) -> Args {
        Args {
            url: Some(url.to_owned()),
            config: None,
        }
    }
}

/// Why there is no answer. Each says what to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// There is no bridge, or none that takes the token.
    Unreachable(String),
    /// The bridge refuses what was asked.
    Refused(String),
}

impl Unanswered {
    /// Says why, and gives the exit code: 1 where the bridge refuses, 2 where it cannot be reached (ADM-33).
    pub fn told(&self) -> ExitCode {
        let (message, code) = match self {
            Unanswered::Refused(message) => (message, 1),
            Unanswered::Unreachable(message) => (message, 2),
        };
        printed::note(&format!("responses-bridge: {message}"));
        ExitCode::from(code)
    }
}

fn unreachable(message: impl Into<String>) -> Unanswered {
    Unanswered::Unreachable(message.into())
}

/// A bridge that can be asked.
pub struct Remote {
    url: Url,
    token: SecretString,
    operator: Option<String>,
}

impl Remote {
    /// The bridge that the arguments name. The token comes from `BRIDGE_ADMIN_TOKEN`, else from where the configuration
    /// says; never from the command line, which every process can read.
    pub fn of(args: &Args, env: Environment<'_>) -> Result<Remote, Unanswered> {
        let said = env(TOKEN).filter(|token| !token.trim().is_empty());
        let door = match &args.config {
            None => None,
            // Where both are said already, the file need not even be there.
            Some(_) if args.url.is_some() && said.is_some() => None,
            Some(file) => Some(door(file, said.is_some(), env)?),
        };
        let url = match (&args.url, &door) {
            (Some(url), _) => url.clone(),
            (None, Some(door)) => reached(door)?,
            (None, None) => BUILT_IN.to_owned(),
        };
        let token = said.map(|token| SecretString::from(token.trim().to_owned()));
        let token = token
            .or_else(|| door.and_then(|door| door.admin_token))
            .ok_or_else(|| {
                unreachable(format!(
                    "no admin token: set {TOKEN}, or name with --config the file that has server.admin_token"
                ))
            })?;
        Ok(Remote {
            url: base(&url)?,
            token,
            operator: env("USER").filter(|user| !user.is_empty()),
        })
    }

    /// Where the bridge is.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Asks, and waits for the answer. `path` is below `/admin`.
    pub fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Unanswered> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|fault| unreachable(format!("cannot start: {fault}")))?;
        runtime.block_on(self.in_time(self.asked(method, path, body)))
    }

    /// Nobody waits for a bridge that says nothing (ADM-32).
    async fn in_time<T>(&self, asking: impl Future<Output = Result<T, Unanswered>>) -> Result<T, Unanswered> {
        let late = |_| {
            let (url, seconds) = (&self.url, WITHIN.as_secs());
            Err(unreachable(format!("{url} did not answer within {seconds} s")))
        };
        tokio::time::timeout(WITHIN, asking).await.unwrap_or_else(late)
    }

    async fn asked(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Unanswered> {
        let mut request = self.request(method, path)?;
        if let Some(operator) = self
            .operator
            .as_deref()
            .and_then(|name| HeaderValue::from_str(name).ok())
        {
            request = request.header("x-operator", operator);
        }
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        let mut answer = request.send().await.map_err(|fault| self.unreached(&fault))?;
        match self.whole(&mut answer).await? {
            Some(value) if answer.status() == StatusCode::OK => Ok(value),
            value => Err(self.refused(&answer, value.as_ref())),
        }
    }

    /// An answer that goes on: the events. `path` is below `/admin`. It begins in time, or not at all.
    pub async fn stream(&self, path: &str) -> Result<reqwest::Response, Unanswered> {
        self.in_time(async {
            let request = self.request(Method::GET, path)?;
            let mut answer = request.send().await.map_err(|fault| self.unreached(&fault))?;
            if answer.status() == StatusCode::OK {
                return Ok(answer);
            }
            let value = self.whole(&mut answer).await?;
            Err(self.refused(&answer, value.as_ref()))
        })
        .await
    }

    /// The token goes where the operator says, and nowhere else.
    fn request(&self, method: Method, path: &str) -> Result<reqwest::RequestBuilder, Unanswered> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|fault| unreachable(format!("cannot start: {fault}")))?;
        let url = format!("{}/admin{path}", self.url.as_str().trim_end_matches('/'));
        Ok(client
            .request(method, url)
            .header("authorization", self.bearer()?))
    }

    /// The body as JSON, where it is some. At most [`LONGEST`] bytes are held, whoever answers.
    async fn whole(&self, answer: &mut reqwest::Response) -> Result<Option<Value>, Unanswered> {
        let mut whole = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|fault| self.unreached(&fault))? {
            whole.extend_from_slice(&chunk);
            if whole.len() > LONGEST {
                return Err(unreachable(format!("{} answers without end", self.url)));
            }
        }
        Ok(serde_json::from_slice(&whole).ok())
    }

    fn bearer(&self) -> Result<HeaderValue, Unanswered> {
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", self.token.expose_secret()))
            .map_err(|_| unreachable("the admin token cannot be sent: it must be visible ASCII"))?;
        bearer.set_sensitive(true);
        Ok(bearer)
    }

    fn unreached(&self, fault: &reqwest::Error) -> Unanswered {
        let url = &self.url;
        unreachable(if fault.is_connect() {
            format!("no bridge answers at {url}: is it running, and is that its address? (--url, --config)")
        } else {
            format!(
                "{url} broke off: {}",
                fault.to_string().replace(char::is_control, " ")
            )
        })
    }

    fn refused(&self, answer: &reqwest::Response, body: Option<&Value>) -> Unanswered {
        let (url, status) = (&self.url, answer.status());
        let error = body.and_then(|body| body.get("error"));
        let text = |member: &str| error.and_then(|error| error.get(member)).and_then(Value::as_str);
        match (status, text("code")) {
            (StatusCode::UNAUTHORIZED, _) => unreachable(format!(
                "the bridge at {url} does not take this admin token: it is another one than its server.admin_token"
            )),
            (StatusCode::NOT_FOUND, Some("bridge_nothing_there")) => {
                let message = text("message").unwrap_or("there is nothing of that name");
                Unanswered::Refused(plain(message))
            }
            (StatusCode::NOT_FOUND, Some(_)) => unreachable(format!(
                "the bridge at {url} has no admin API there: set server.admin_token, or ask at server.admin_listen"
            )),
            (StatusCode::TOO_MANY_REQUESTS, _) => {
                let wait = answer.headers().get(RETRY_AFTER);
                let seconds = wait.and_then(|wait| wait.to_str().ok()).unwrap_or("1");
                unreachable(format!(
                    "the bridge at {url} has seen too many wrong admin tokens, this one too: right it, and try in {} s",
                    plain(seconds)
                ))
            }
            (_, Some(_)) => {
                let message = text("message").unwrap_or("it was refused");
                Unanswered::Refused(format!("{} ({})", plain(message), status.as_u16()))
            }
            (_, None) => unreachable(format!(
                "what answers at {url} is no bridge ({}): is that the address?",
                status.as_u16()
            )),
        }
    }
}

/// What a file says of where its bridge is, and the token. Its other secrets need not be within reach, nor that of the token
/// where the environment has one, and what else is wrong with it is for `check` to say.
fn door(file: &Path, has_token: bool, env: Environment<'_>) -> Result<Server, Unanswered> {
    let text = config::read(file).map_err(|faults| unreachable(faults.to_string()))?;
    let reads: Reads = if has_token {
        |_| false
    } else {
        |key| key == "server.admin_token"
    };
    let read = Reading::of(&text, &file.display().to_string(), env, reads);
    let config = read.and_then(|read| read.judged_at("server.admin_token"));
    config
        .map(|config| config.server)
        .map_err(|faults| unreachable(faults.to_string()))
}

/// How a listener is reached from this machine.
fn reached(door: &Server) -> Result<String, Unanswered> {
    let mut address = door.admin_listen.unwrap_or(door.listen);
    if address.port() == 0 {
        return Err(unreachable(
            "the bridge listens on whatever port is free: name it with --url",
        ));
    }
    if address.ip().is_unspecified() {
        let loopback: std::net::IpAddr = if address.is_ipv4() {
            std::net::Ipv4Addr::LOCALHOST.into()
        } else {
            std::net::Ipv6Addr::LOCALHOST.into()
        };
        address.set_ip(loopback);
    }
    Ok(format!("http://{address}"))
}

fn base(text: &str) -> Result<Url, Unanswered> {
    let wrong = || {
        unreachable(
            "--url must be http:// or https://, a host and perhaps a port, as in http://127.0.0.1:8787",
        )
    };
    let url = Url::parse(text).map_err(|_| wrong())?;
    let bare = url.username().is_empty() && url.password().is_none();
    let alone = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
    match url.scheme() {
        "http" | "https" if bare && alone && url.has_host() => Ok(url),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests;
