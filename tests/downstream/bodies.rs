//! Request bodies.

use std::io::Write;
use std::time::Duration;

use async_compression::tokio::write::{DeflateEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder};
use async_compression::zstd::CParameter;
use responses_bridge::runtime::budget::Budget;
use tokio::io::AsyncWriteExt;

use crate::world::{GOOD, MOMENT, Setup, World, bare, eventually, post};

macro_rules! coded {
    ($encoder:expr, $body:expr) => {{
        let mut encoder = $encoder;
        encoder.write_all($body).await.unwrap();
        encoder.shutdown().await.unwrap();
        encoder.into_inner()
    }};
}

async fn zstd(body: &[u8]) -> Vec<u8> {
    coded!(ZstdEncoder::new(Vec::new()), body)
}

async fn gzip(body: &[u8]) -> Vec<u8> {
    coded!(GzipEncoder::new(Vec::new()), body)
}

/// A create of about `size` bytes.
fn sized(size: usize) -> Vec<u8> {
    let mut body = Vec::from(&br#"{"model":"m","input":""#[..]);
    body.resize(size - 2, b'a');
    body.extend_from_slice(b"\"}");
    body
}

async fn arrives(world: &World, coding: &str, sent: &[u8], expected: &[u8]) {
    let header = if coding.is_empty() {
        String::new()
    } else {
        format!("content-encoding: {coding}\r\n")
    };
    let answer = world.ask(post("/v1/responses", &header, sent)).await;
    assert_eq!(answer.status, 200, "{coding}: {answer:?}");
    let seen = world.bridge.seen().pop().unwrap();
    assert_eq!(seen.body, expected, "{coding}");
    assert!(!seen.caller.headers.contains_key("content-encoding"), "{coding}");
}

async fn refused(world: &World, coding: &str, sent: &[u8], status: u16, code: &str) {
    let header = format!("content-encoding: {coding}\r\n");
    let before = world.bridge.seen().len();
    let answer = world.ask(post("/v1/responses", &header, sent)).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (status, code),
        "{coding}"
    );
    assert_eq!(world.bridge.seen().len(), before, "{coding}");
}

/// [EDGE-40] zstd, gzip and deflate (zlib and raw), one or two of them, `identity`, and zstd without a header.
#[tokio::test]
async fn compressed_bodies_are_decoded() {
    let world = Setup::default().start();
    let body = sized(300_000);
    let zlib = coded!(ZlibEncoder::new(Vec::new()), &body);
    let raw = coded!(DeflateEncoder::new(Vec::new()), &body);
    let two_members = [gzip(&body[..1000]).await, gzip(&body[1000..]).await].concat();
    let two_frames = [zstd(&body[..1000]).await, zstd(&body[1000..]).await].concat();
    for (coding, sent) in [
        ("zstd", zstd(&body).await),
        ("ZSTD", zstd(&body).await),
        ("", zstd(&body).await),
        ("identity", zstd(&body).await),
        ("gzip", gzip(&body).await),
        ("x-gzip", gzip(&body).await),
        ("deflate", zlib),
        ("deflate", raw),
        ("identity", body.clone()),
        ("gzip, identity", gzip(&body).await),
        ("gzip, zstd", zstd(&gzip(&body).await).await),
        ("zstd\r\ncontent-encoding: gzip", gzip(&zstd(&body).await).await),
        ("gzip", two_members),
        ("zstd", two_frames),
    ] {
        arrives(&world, coding, &sent, &body).await;
    }
    assert_eq!(world.budget.used(), 0);
}

/// [EDGE-41] an unknown coding and more than two are 415, and the answer names the known ones.
#[tokio::test]
async fn unknown_codings_are_refused() {
    let world = Setup::default().start();
    let body = gzip(&gzip(&gzip(GOOD.as_bytes()).await).await).await;
    for coding in [
        "br",
        "gzip, br",
        "compress",
        "gzip;q=1",
        "\u{e9}",
        "gzip, gzip, gzip",
    ] {
        refused(&world, coding, &body, 415, "bridge_unsupported_encoding").await;
    }
    let answer = world
        .ask(post("/v1/responses", "content-encoding: br\r\n", GOOD))
        .await;
    assert_eq!(answer.headers["accept-encoding"], "zstd, gzip, deflate");
}

/// [EDGE-42] truncated and corrupt bodies are 400, wherever they are cut.
#[tokio::test]
async fn broken_compression_is_refused() {
    let world = Setup::default().start();
    let body = sized(5_000);
    let zlib = coded!(ZlibEncoder::new(Vec::new()), &body);
    let raw = coded!(DeflateEncoder::new(Vec::new()), &body);
    for (coding, good) in [
        ("zstd", zstd(&body).await),
        ("gzip", gzip(&body).await),
        ("deflate", zlib),
        ("deflate", raw),
    ] {
        for cut in [1, 2, 5, good.len() / 2, good.len() - 1] {
            refused(&world, coding, &good[..cut], 400, "bridge_invalid_body").await;
        }
        let garbage = [&good[..4], &[0xff; 40][..]].concat();
        refused(&world, coding, &garbage, 400, "bridge_invalid_body").await;
        refused(&world, coding, b"", 400, "bridge_invalid_body").await;
        refused(&world, coding, GOOD.as_bytes(), 400, "bridge_invalid_body").await;
    }
    assert_eq!(world.budget.used(), 0);
}

/// [EDGE-43] the cap holds after decoding, to the byte; a Content-Length beyond it is refused before the body comes.
#[tokio::test]
async fn bodies_are_capped() {
    let mut setup = Setup::default();
    setup.settings.max_body = 100_000;
    let world = setup.start();
    let (fits, over) = (sized(100_000), sized(100_001));
    let code = "bridge_body_too_large";
    arrives(&world, "", &fits, &fits).await;
    arrives(&world, "zstd", &zstd(&fits).await, &fits).await;
    arrives(&world, "gzip, zstd", &zstd(&gzip(&fits).await).await, &fits).await;
    refused(&world, "identity", &over, 413, code).await;
    refused(&world, "zstd", &zstd(&over).await, 413, code).await;
    refused(&world, "gzip", &gzip(&over).await, 413, code).await;
    let bomb = zstd(&gzip(&vec![b' '; 50_000_000]).await).await;
    assert!(bomb.len() < 10_000, "{}", bomb.len());
    refused(&world, "gzip, zstd", &bomb, 413, code).await;

    let mut chunked = bare("POST", "/v1/responses", "transfer-encoding: chunked\r\n").into_bytes();
    write!(chunked, "{:x}\r\n", over.len()).unwrap();
    chunked.extend_from_slice(&over);
    assert_eq!(world.ask(chunked).await.code(), code);

    let announced = bare(
        "POST",
        "/v1/responses",
        "content-length: 100001\r\nexpect: 100-continue\r\n",
    );
    let answer = world.ask(announced).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (413, code),
        "no 100, no wait for the body"
    );
    assert_eq!(world.budget.used(), 0);
}

/// [EDGE-44] a zstd frame that demands a window above 8 MiB is refused, one of 8 MiB is not.
#[tokio::test]
async fn the_zstd_window_is_bounded() {
    let mut setup = Setup::default();
    setup.settings.max_body = 64 << 20;
    let world = setup.start();
    let body = sized(20 << 20);
    let windowed = async |log| {
        let params = [CParameter::window_log(log)];
        coded!(
            ZstdEncoder::with_quality_and_params(Vec::new(), async_compression::Level::Fastest, &params),
            &body
        )
    };
    arrives(&world, "zstd", &windowed(23).await, &body).await;
    refused(&world, "zstd", &windowed(24).await, 400, "bridge_invalid_body").await;
}

/// [EDGE-45] one budget bounds all bodies together, counted as they come: beyond it 503 with Retry-After, and whole
/// again when they are gone. A Content-Length alone takes nothing.
#[tokio::test]
async fn bodies_share_one_budget() {
    let world = Setup {
        budget: Budget::new(150_000),
        ..Setup::default()
    }
    .start();
    let body = sized(100_000);
    let mut announcing = world.connect().await;
    announcing
        .send(bare("POST", "/v1/responses", "content-length: 100000\r\n"))
        .await;
    let mut first = world.connect().await;
    first.send(post("/v1/responses", "x-fake: slow\r\n", &body)).await;
    eventually("the first body is held", || world.budget.used() == 100_000).await;
    let answer = world.ask(post("/v1/responses", "", &body)).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (503, "bridge_body_budget")
    );
    assert!(answer.headers.contains_key("retry-after"));
    let answer = world
        .ask(post(
            "/v1/responses",
            "content-encoding: zstd\r\n",
            zstd(&body).await,
        ))
        .await;
    assert_eq!(answer.status, 503, "decoded bytes count as well");
    assert_eq!(first.answer().await.status, 200);
    announcing.send(&body).await;
    assert_eq!(announcing.answer().await.status, 200);
    eventually("everything is given back", || world.budget.used() == 0).await;
}

/// [EDGE-46] a body that stops arriving is 408 and the connection closes; one that goes on slowly is not.
#[tokio::test]
async fn a_stalled_body_is_given_up() {
    let mut setup = Setup::default();
    setup.settings.body_stall = Duration::from_millis(150);
    let world = setup.start();
    let request = post("/v1/responses", "", GOOD);
    let mut slow = world.connect().await;
    let (start, rest) = request.split_at(request.len() - 8);
    slow.send(start).await;
    for byte in rest {
        tokio::time::sleep(Duration::from_millis(40)).await;
        slow.send([*byte]).await;
    }
    assert_eq!(slow.answer().await.status, 200);

    let mut stalled = world.connect().await;
    stalled.send(start).await;
    let answer = stalled.answer().await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (408, "bridge_body_timeout")
    );
    assert_eq!(answer.headers["connection"], "close");
    assert!(stalled.closed().await);
    assert_eq!(world.bridge.seen().len(), 1);
    assert_eq!(world.budget.used(), 0);
}

/// [EDGE-47] a passed-through body is neither capped nor held, but it must not stall either.
#[tokio::test]
async fn passed_bodies_stream_without_bound() {
    let mut setup = Setup {
        budget: Budget::new(1000),
        ..Setup::default()
    };
    setup.settings.max_body = 1000;
    setup.settings.body_stall = Duration::from_millis(150);
    let world = setup.start();
    let body = vec![b'x'; 300_000];
    let mut client = world.connect().await;
    client
        .send(bare("POST", "/v1/files", "content-length: 300001\r\n"))
        .await;
    client.send(&body).await;
    let answer = client.head().await;
    assert_eq!(
        (answer.status, answer.headers["content-length"].as_str()),
        (200, "300001")
    );
    assert_eq!(client.exactly(300_000).await, body);
    assert_eq!(world.budget.used(), 0);
    let closed = tokio::time::timeout(MOMENT, client.closed()).await;
    assert!(
        closed.unwrap(),
        "the last byte never comes, so the stream is torn"
    );
}
