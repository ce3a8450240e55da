//! Whether the proxies of a configuration answer: what can be known before serving (CFG-20).
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::fault::Faults;
use super::policy::{Config, Proxy};

/// For looking the name up and connecting together: a proxy is near.
const PATIENCE: Duration = Duration::from_secs(3);

/// Connects once to every proxy, all at the same time, and says which do not answer. Blocks for 3 s at most. Nothing is sent.
pub fn reach(config: &Config) -> Result<(), Faults> {
    let accounts = config.providers.iter().flat_map(|provider| &provider.accounts);
    let until = Instant::now() + PATIENCE;
    let asked: Vec<_> = accounts
        .filter_map(|account| account.proxy.as_ref())
        .map(|proxy| (proxy, ask(proxy)))
        .collect();
    let silent = asked.into_iter().filter_map(|(proxy, answer)| {
        let left = until.saturating_duration_since(Instant::now());
        let problem = match answer.recv_timeout(left) {
            Ok(Ok(())) => return None,
            Ok(Err(problem)) => problem,
            Err(_) => format!("nothing within {} s", PATIENCE.as_secs()),
        };
        Some(proxy.unreachable(&problem))
    });
    Faults::of(silent.collect()).map_or(Ok(()), Err)
}

/// The same, but for the proxies that are in force already: one of those that is down now is no reason to refuse another
/// deadline (REL-8).
pub fn reach_beside(in_force: &Config, new: &Config) -> Result<(), Faults> {
    let accounts = |config: &Config| -> Vec<_> {
        let accounts = config.providers.iter().flat_map(|provider| &provider.accounts);
        accounts
            .filter_map(|account| Some(account.proxy.as_ref()?.url.clone()))
            .collect()
    };
    let known = accounts(in_force);
    let mut unknown = new.clone();
    for account in unknown
        .providers
        .iter_mut()
        .flat_map(|provider| &mut provider.accounts)
    {
        account.proxy.take_if(|proxy| known.contains(&proxy.url));
    }
    reach(&unknown)
}

/// On a thread of its own: a look-up of a name cannot be bounded. One that hangs ends with the process.
fn ask(proxy: &Proxy) -> mpsc::Receiver<Result<(), String>> {
    let (tell, answer) = mpsc::sync_channel(1);
    let (host, port) = proxy.address();
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    std::thread::spawn(move || {
        // Nobody waits any more where it took too long.
        let _ = tell.send(connect(&host, port));
    });
    answer
}

fn connect(host: &str, port: u16) -> Result<(), String> {
    let addresses = (host, port)
        .to_socket_addrs()
        .map_err(|_| "its name has no address".to_owned())?;
    let mut problem = "its name has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(_) => return Ok(()),
            Err(error) => problem = error.to_string(),
        }
    }
    Err(problem)
}
