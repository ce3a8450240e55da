//! `[server]`: where the bridge may listen, and who may ask it what (CFG-12).
use std::net::{IpAddr, SocketAddr};

use reqwest::Url;

use super::credentials::{same, secret};
use super::defaults::DEFAULT_LISTEN;
use super::policy::{Client, Server};
use super::raw;
use super::review::Review;

const LISTEN: &str = "server.listen";
const ADMIN_LISTEN: &str = "server.admin_listen";
const ADMIN_TOKEN: &str = "server.admin_token";

pub fn server(review: &mut Review<'_>, raw: &raw::File, clients: &[Client]) -> Server {
    let server = &raw.server;
    let listen = address(review, LISTEN, &server.listen).unwrap_or(DEFAULT_LISTEN);
    let admin_listen = server
        .admin_listen
        .as_ref()
        .and_then(|text| address(review, ADMIN_LISTEN, text));
    let admin_token = server
        .admin_token
        .as_ref()
        .and_then(|source| secret(review, ADMIN_TOKEN, source));
    let admin_token = admin_token.map(|(secret, _)| secret);

    if !is_loopback(listen) {
        if raw.clients.is_empty() {
            let hint = "add a [[clients]] table for each caller, or listen on 127.0.0.1";
            review.fault(
                LISTEN,
                format!("{listen} is beyond loopback, and there are no client keys"),
                hint,
            );
        }
        if server.admin_token.is_none() && server.admin_listen.is_none() {
            let problem = format!("{listen} is beyond loopback, and would show /metrics to everybody");
            let hint = "set admin_token, or serve it elsewhere with admin_listen = \"127.0.0.1:9787\"";
            review.fault(LISTEN, problem, hint);
        }
    }
    if let Some(admin) = admin_listen {
        if !is_loopback(admin) && server.admin_token.is_none() {
            let hint = "set admin_token, or use an address on 127.0.0.1";
            review.fault(
                ADMIN_LISTEN,
                format!("{admin} is beyond loopback, and there is no admin_token"),
                hint,
            );
        }
        if collide(listen, admin) {
            let problem = format!("{admin} and server.listen, {listen}, cannot both be listened on");
            review.fault(
                ADMIN_LISTEN,
                problem,
                "give it a port of its own, or leave admin_listen out",
            );
        }
    }
    if let Some(twin) = admin_token
        .as_ref()
        .and_then(|token| clients.iter().find(|client| same(&client.key, token)))
    {
        let problem = format!("this is also the key of the client {}", twin.name);
        review.fault(
            ADMIN_TOKEN,
            problem,
            "use another secret: clients are not operators",
        );
    }
    Server {
        listen,
        admin_listen,
        admin_token,
        max_body: server.max_body.0,
        body_budget: server.body_budget.0,
        client_buffer: server.client_buffer.0,
        commit_after: server.commit_after.0,
        heartbeat: server.heartbeat.0,
        drain: server.drain.0,
        allow_origins: origins(review, &server.allow_origins),
    }
}

fn address(review: &mut Review<'_>, key: &str, text: &str) -> Option<SocketAddr> {
    let text = text.trim();
    let parsed = text.parse::<SocketAddr>();
    if parsed.is_err() {
        let hint = match text.rsplit_once(':') {
            _ if text.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6()) => format!("write \"[{text}]:8787\""),
            _ if text.parse::<IpAddr>().is_ok() => format!("add a port: \"{text}:8787\""),
            Some(("localhost", port)) => format!("names are not looked up: write \"127.0.0.1:{port}\""),
            Some(("" | "*", port)) => {
                format!("write \"0.0.0.0:{port}\" for every address, or \"127.0.0.1:{port}\"")
            }
            _ => "write an IP address and a port from 0 to 65535, as in \"127.0.0.1:8787\" or \"[::1]:8787\""
                .to_owned(),
        };
        review.fault(key, format!("{text:?} is not an address and a port"), hint);
    }
    parsed.ok()
}

/// Also for IPv4 written as IPv6.
pub(super) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Port 0 is another free port each time.
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let everywhere = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && (everywhere || one.ip() == other.ip())
}

/// Browsers send an origin as scheme, host and, unless it is the scheme's own, port (CFG-13).
fn origins(review: &mut Review<'_>, raw: &[String]) -> Vec<String> {
    let mut origins = Vec::new();
    for (index, text) in raw.iter().enumerate() {
        let bare = text.trim_end_matches('/').to_lowercase();
        let origin = Url::parse(&bare)
            .map(|url| url.origin())
            .ok()
            .filter(|origin| origin.is_tuple());
        let hint = match origin.map(|origin| origin.ascii_serialization()) {
            Some(origin) if origin == bare => {
                origins.push(origin);
                continue;
            }
            Some(origin) => format!("write \"{origin}\""),
            None if bare == "*" => {
                "there is no wildcard: any page could spend the accounts; list each origin".to_owned()
            }
            None => {
                "write scheme, host and port as the browser sends them, as in \"https://app.example.com\""
                    .to_owned()
            }
        };
        review.fault(
            &format!("server.allow_origins[{index}]"),
            "is not an origin",
            hint,
        );
    }
    origins
}

#[cfg(test)]
mod tests;
