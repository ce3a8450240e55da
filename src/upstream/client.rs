//! The HTTP client that makes both transports.

use std::time::Duration;

use reqwest::{Certificate, Proxy, redirect, retry};

use crate::config;

use super::account::AccountFault;

/// Below the keep-alive of common servers, so that a reused connection is rarely one that is being closed.
const POOL_IDLE: Duration = Duration::from_secs(15);

/// Whom the client believes.
pub(super) enum Trust {
    /// The upstream is plain http: no authority is needed, and none need be installed.
    Nobody,
    /// The system's authorities, and these.
    System(Vec<Certificate>),
}

impl Trust {
    pub fn of(provider: &config::Provider, proxy: Option<&config::Proxy>) -> Result<Trust, AccountFault> {
        let plain_proxy = proxy.is_none_or(|proxy| proxy.url.scheme() != "https");
        if provider.base_url.scheme() == "http" && plain_proxy {
            return Ok(Trust::Nobody);
        }
        let Some(path) = &provider.ca_file else {
            return Ok(Trust::System(Vec::new()));
        };
        let fault = |problem: String| AccountFault::CaFile {
            path: path.clone(),
            problem,
        };
        let pem = std::fs::read(path).map_err(|error| fault(error.to_string()))?;
        let certificates =
            Certificate::from_pem_bundle(&pem).map_err(|_| fault("it is not PEM".to_owned()))?;
        if certificates.is_empty() {
            return Err(fault("it holds no certificate".to_owned()));
        }
        Ok(Trust::System(certificates))
    }
}

/// Whether connections are kept for the next request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pool {
    On,
    Off,
}

/// Every setting here is a rule of the house: one attempt, no redirect, no proxy but the account's own (UP-21), no Nagle.
/// Which failure means what is judged elsewhere, once.
pub(super) fn build(
    trust: &Trust,
    proxy: Option<&config::Proxy>,
    connect_deadline: Duration,
    pool: Pool,
) -> Result<reqwest::Client, AccountFault> {
    let builder = reqwest::Client::builder()
        .http1_only()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .connect_timeout(connect_deadline)
        .pool_idle_timeout(POOL_IDLE)
        .tcp_nodelay(true)
        // It would end a connection whose peer reads slowly. The watchdog alone judges that.
        .tcp_user_timeout(None);
    let builder = match pool {
        Pool::On => builder,
        Pool::Off => builder.pool_max_idle_per_host(0),
    };
    let builder = match proxy {
        // For every host and scheme, and with no exception: NO_PROXY is not read.
        Some(proxy) => builder.proxy(
            // Its words could quote the address.
            Proxy::all(proxy.url.clone())
                .map_err(|_| AccountFault::Client("the proxy's address cannot be used".to_owned()))?,
        ),
        None => builder,
    };
    let builder = match trust {
        Trust::Nobody => builder.tls_certs_only([]),
        Trust::System(extra) => builder.tls_certs_merge(extra.iter().cloned()),
    };
    builder.build().map_err(|error| match trust {
        Trust::System(extra) if extra.is_empty() && says_no_ca(&error) => AccountFault::NoSystemCa,
        _ => AccountFault::Client(root_cause(&error).to_string()),
    })
}

/// The platform's verifier reports a missing trust store as text only.
fn says_no_ca(error: &reqwest::Error) -> bool {
    root_cause(error).to_string().contains("No CA certificates")
}

fn root_cause<'a>(error: &'a (dyn std::error::Error + 'static)) -> &'a (dyn std::error::Error + 'static) {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause
}
