use super::*;

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
