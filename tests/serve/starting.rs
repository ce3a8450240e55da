//! From the command to the first answer, or to a reason why not.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};

use super::bridge::{Bridge, PATIENCE, configuration, free_port, port, refused, serve};
use super::client::Client;

/// Nobody listens there, and nothing here sends anything there.
const NO_UPSTREAM: &str = "http://127.0.0.1:9/v1";

/// [RUN-1] No file is needed: the built-in configuration is good, and says what it would do.
#[test]
fn the_built_in_configuration_can_be_served() {
    let home = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_responses-bridge"))
        .arg("check")
        .env_clear()
        .env("HOME", home.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let state = home.path().join(".local/state/responses-bridge");
    for said in [
        "127.0.0.1:8787",
        "https://api.openai.com/v1",
        state.to_str().unwrap(),
    ] {
        assert!(text.contains(said), "{said} is not in:\n{text}");
    }
}

/// [RUN-1] [RUN-3] `serve` alone listens on 8787, or says that somebody else does; in both cases its state, and the key in
/// it, is its user's alone.
#[tokio::test]
async fn serve_alone_serves() {
    let home = tempfile::tempdir().unwrap();
    let mut command = serve(&[], &[("XDG_STATE_HOME", home.path())]);
    let mut child = command.spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    match tokio::time::timeout(PATIENCE, stdout.next_line())
        .await
        .unwrap()
        .unwrap()
    {
        Some(line) => {
            assert_eq!(port(&line), 8787);
            let (head, body) = Client::connect(8787).await.get("/health/ready").await;
            assert_eq!((head.status, &*body), (200, "{\"status\":\"ready\"}"));
        }
        // Another program has the port, which is no fault of this one.
        None => {
            let output = child.wait_with_output().await.unwrap();
            let errors = String::from_utf8(output.stderr).unwrap();
            assert!(errors.contains("cannot listen on 127.0.0.1:8787"), "{errors}");
        }
    }
    let state = home.path().join("responses-bridge");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&state), mode(&state.join("install.key"))), (0o700, 0o600));
}

/// [RUN-2] The line on stdout has the port that was really bound, and who reads it is answered.
#[tokio::test]
async fn the_start_up_line_tells_where() {
    let bridge = Bridge::start("", "").await;
    assert_ne!(bridge.port, 0);
    let (head, _) = Client::connect(bridge.port).await.get("/health/ready").await;
    assert_eq!(head.status, 200);
}

/// [RUN-2] Nobody reads stdout: the bridge serves all the same.
#[tokio::test]
async fn a_closed_stdout_stops_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let free = free_port();
    let file = configuration(directory.path(), NO_UPSTREAM, "", "");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("127.0.0.1:0", &format!("127.0.0.1:{free}"))).unwrap();
    let mut child = serve(&["--config", &file], &[]).spawn().unwrap();
    drop(child.stdout.take());
    let ready = async {
        loop {
            match Client::try_connect(free).await {
                Ok(mut client) => return client.get("/health/ready").await.0.status,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    assert_eq!(tokio::time::timeout(PATIENCE, ready).await.unwrap(), 200);
    assert!(child.try_wait().unwrap().is_none());
}

/// [RUN-3] A taken address is named, with the key to change, for both listeners.
#[tokio::test]
async fn a_taken_address_says_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let directory = tempfile::tempdir().unwrap();

    let file = configuration(directory.path(), NO_UPSTREAM, "", "");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("127.0.0.1:0", &address)).unwrap();
    let (code, errors) = refused(serve(&["--config", &file], &[])).await;
    assert_eq!(code, Some(1));
    assert!(
        errors.contains(&format!("cannot listen on {address}")),
        "{errors}"
    );
    assert_eq!(errors.matches("in use").count(), 1, "{errors}");
    assert!(
        errors.contains("set server.listen to another address"),
        "{errors}"
    );

    let admin = format!("admin_listen = \"{address}\"");
    let file = configuration(directory.path(), NO_UPSTREAM, &admin, "");
    let (code, errors) = refused(serve(&["--config", &file], &[])).await;
    assert_eq!(code, Some(1));
    assert!(
        errors.contains("set server.admin_listen to another address"),
        "{errors}"
    );
    assert_eq!(errors.matches("os error").count(), 1, "said once: {errors}");
}

/// [RUN-4] A second process names the directory and who holds it, and the first goes on.
#[tokio::test]
async fn a_held_state_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = configuration(directory.path(), NO_UPSTREAM, "", "");
    let mut first = serve(&["--config", &file], &[]).spawn().unwrap();
    let mut stdout = BufReader::new(first.stdout.take().unwrap()).lines();
    let line = stdout.next_line().await.unwrap().unwrap();

    let (code, errors) = refused(serve(&["--config", &file], &[])).await;
    assert_eq!(code, Some(1));
    for told in [
        directory.path().join("state").to_str().unwrap(),
        &format!("process {} ", first.id().unwrap()),
    ] {
        assert_eq!(errors.matches(told).count(), 1, "{errors}");
    }
    assert!(errors.contains("state.path"), "{errors}");

    let (head, _) = Client::connect(port(&line)).await.get("/health/ready").await;
    assert_eq!(head.status, 200);
}

/// [RUN-1] A configuration with a fault is not served: the file and the line are named.
#[tokio::test]
async fn a_faulty_file_is_not_served() {
    let directory = tempfile::tempdir().unwrap();
    let file = configuration(directory.path(), NO_UPSTREAM, "drian = \"1s\"", "");
    let (code, errors) = refused(serve(&["--config", &file], &[])).await;
    assert_eq!(code, Some(1));
    assert!(
        errors.contains(&format!("{file}:3:")) && errors.contains("drain"),
        "{errors}"
    );
}
