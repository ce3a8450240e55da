use std::sync::Mutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant as Now, sleep};

use super::*;
use crate::event::Level;
use crate::telemetry::Telemetry;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

/// A connection with the default limits over memory, whose answers have `size` bytes; how long it lived.
async fn lifetime(size: usize, client: impl AsyncFnOnce(&mut DuplexStream)) -> Duration {
    let (mut near, far) = duplex(256);
    let service = hyper::service::service_fn(move |_| async move { Ok(Response::new("x".repeat(size))) });
    let events = Events::new(Level::Warn, Arc::new(Telemetry::new().unwrap()), |_| {});
    let begun = Now::now();
    let ended = Mutex::new(Duration::ZERO);
    let serving = async {
        connection(far, service, Limits::default(), events, CancellationToken::new()).await;
        *ended.lock().unwrap() = begun.elapsed();
    };
    tokio::join!(serving, async {
        client(&mut near).await;
        // The client stays: it is the server that must give up.
        sleep(Duration::from_secs(1000)).await;
    });
    ended.into_inner().unwrap()
}

/// Reads until an answer of `size` bytes is whole.
async fn answer(client: &mut DuplexStream, size: usize) {
    let mut all = Vec::new();
    while all.iter().filter(|byte| **byte == b'x').count() < size {
        assert!(client.read_buf(&mut all).await.unwrap() > 0);
    }
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn about(time: Duration, expected: u64) {
    assert!(
        time >= seconds(expected) && time < seconds(expected + 1),
        "{time:?}, not {expected} s"
    );
}

/// [EDGE-3] ten seconds for the first head, and for a later one from its first byte; 75 s between two; what trickles
/// gains nothing.
#[tokio::test(start_paused = true)]
async fn heads_have_ten_seconds_and_idle_connections_75() {
    about(lifetime(1, async |_| {}).await, 10);
    let trickle = async |client: &mut DuplexStream| {
        for byte in REQUEST {
            sleep(seconds(1)).await;
            let _ = client.write_all(&[*byte]).await;
        }
    };
    about(lifetime(1, trickle).await, 10);
    let once = async |client: &mut DuplexStream| {
        sleep(seconds(5)).await;
        client.write_all(REQUEST).await.unwrap();
        answer(client, 1).await;
    };
    about(lifetime(1, once).await, 5 + 75);
    let twice = async |client: &mut DuplexStream| {
        once(client).await;
        sleep(seconds(70)).await;
        client.write_all(REQUEST).await.unwrap();
        answer(client, 1).await;
    };
    about(lifetime(1, twice).await, 5 + 70 + 75);
    let half = async |client: &mut DuplexStream| {
        once(client).await;
        sleep(seconds(50)).await;
        client.write_all(&REQUEST[..5]).await.unwrap();
    };
    about(lifetime(1, half).await, 5 + 50 + 10);
}

/// [EDGE-4] 120 s without a byte taken, counted anew from each byte, and not while nothing waits.
#[tokio::test(start_paused = true)]
async fn a_client_has_120_seconds_to_take_a_byte() {
    let silent = async |client: &mut DuplexStream| client.write_all(REQUEST).await.unwrap();
    about(lifetime(100_000, silent).await, 120);
    let slow = async |client: &mut DuplexStream| {
        client.write_all(REQUEST).await.unwrap();
        for _ in 0..3 {
            sleep(seconds(100)).await;
            client.read_exact(&mut [0; 256]).await.unwrap();
        }
    };
    about(lifetime(100_000, slow).await, 300 + 120);
    let whole = async |client: &mut DuplexStream| {
        client.write_all(REQUEST).await.unwrap();
        sleep(seconds(100)).await;
        answer(client, 100_000).await;
    };
    about(lifetime(100_000, whole).await, 100 + 75);
}

/// [EDGE-6] the pause doubles from 10 ms to a second and stays there; the log is written at most once a second.
#[test]
fn a_full_file_table_is_met_with_patience() {
    let (error, start) = (io::Error::from_raw_os_error(24), Instant::now());
    let mut full = FileTable::default();
    let mut now = start;
    let mut logs = Vec::new();
    for expected in [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000] {
        let pause = full.pause(&error, now);
        assert_eq!(pause, Duration::from_millis(expected));
        if full.logged == Some(now) {
            logs.push(now);
        }
        now += pause;
    }
    assert!(
        logs.len() >= 3
            && logs
                .windows(2)
                .all(|pair| pair[1] - pair[0] >= Duration::from_secs(1)),
        "{logs:?}"
    );
    full.failures = u32::MAX;
    assert_eq!(full.pause(&error, now), Duration::from_secs(1));
}

/// [EDGE-6] a connection that died in the queue says nothing about the file table.
#[test]
fn a_dead_connection_is_no_full_file_table() {
    assert!(of_one_connection(&io::ErrorKind::ConnectionAborted.into()));
    for full in [24, 23, 12, 105] {
        assert!(!of_one_connection(&io::Error::from_raw_os_error(full)), "{full}");
    }
}
