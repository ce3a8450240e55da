//! Request bodies: compressed ones, and very large ones.

use async_compression::tokio::bufread::{DeflateEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::client::Ask;
use crate::shared::{metric_is, post};
use crate::world::Setup;

async fn all(mut encoder: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut encoded = Vec::new();
    encoder.read_to_end(&mut encoded).await.unwrap();
    encoded
}

/// [EDGE-40] row 27: zstd (as Codex sends it), gzip and deflate bodies, two stacked, and zstd without a header, reach the
/// upstream decoded; damaged ones and bombs are refused before anything is sent.
#[tokio::test]
async fn compressed_bodies() {
    let world = Setup::new().config("[server]\nmax_body = \"1MiB\"").start().await;
    let plain =
        json!({"model": "gpt-5", "input": format!("sim:conv=a 東京 {}", "x".repeat(5000))}).to_string();
    let plain = plain.as_bytes();
    let zstd = all(ZstdEncoder::new(plain)).await;
    let gzip = all(GzipEncoder::new(plain)).await;
    let stacked = all(GzipEncoder::new(&zstd[..])).await;
    let deflate = all(ZlibEncoder::new(plain)).await;
    let raw_deflate = all(DeflateEncoder::new(plain)).await;
    let good: [(&[(&str, &str)], &[u8]); 6] = [
        (&[("content-encoding", "zstd")], &zstd),
        (&[], &zstd),
        (&[("content-encoding", "gzip")], &gzip),
        (&[("content-encoding", "deflate")], &deflate),
        (&[("content-encoding", "deflate")], &raw_deflate),
        (&[("content-encoding", "zstd, gzip")], &stacked),
    ];
    for (number, (headers, body)) in good.into_iter().enumerate() {
        let (status, answer) = post(&world, "/v1/responses", headers, body).await;
        assert_eq!(
            (status, &answer["status"]),
            (200, &json!("completed")),
            "{number} {headers:?}"
        );
    }
    let frames: Vec<_> = world
        .upstream
        .look(|ledger| ledger.creates.iter().map(|create| create.bytes).collect());
    assert_eq!(
        frames,
        vec![plain.len() + r#""type":"response.create","#.len(); 6]
    );

    let bomb = all(ZstdEncoder::new(&vec![b' '; 8 << 20][..])).await;
    let nested = all(GzipEncoder::new(&bomb[..])).await;
    let bad: [(&[(&str, &str)], &[u8], u16); 8] = [
        (&[("content-encoding", "zstd")], &zstd[..zstd.len() - 9], 400),
        (&[("content-encoding", "gzip")], &gzip[..gzip.len() / 2], 400),
        (&[("content-encoding", "gzip")], plain, 400),
        (&[("content-encoding", "zstd")], &bomb, 413),
        (&[("content-encoding", "zstd, gzip")], &nested, 413),
        (&[("content-encoding", "br")], plain, 415),
        (&[("content-encoding", "gzip, gzip, gzip")], plain, 415),
        (&[], &vec![b' '; (1 << 20) + 1], 413),
    ];
    for (number, (headers, body, wanted)) in bad.into_iter().enumerate() {
        let (status, answer) = post(&world, "/v1/responses", headers, body).await;
        assert_eq!(status, wanted, "{number} {headers:?} {answer}");
        assert!(answer["error"]["message"].is_string());
    }
    assert_eq!(world.upstream.ledger().creates_total, 6);
    metric_is(&world, "bridge_held_bytes", "", 0.0).await;
}

/// A create whose body has at least so many bytes, of characters with three bytes each.
fn large(conversation: &str, mib: usize) -> Ask {
    let text = "語".repeat((mib << 20) / 3);
    let input: Vec<Value> = vec![
        json!({"role": "user", "content": text}),
        json!({"role": "user", "content": format!("sim:conv={conversation}")}),
    ];
    Ask::turn("").thread(conversation).with("input", input)
}

/// [KEY-20] row 19: the frame is measured in bytes before it is sent. Below 15 MiB it goes over the socket, above it by
/// direct HTTP at once: upstream closes with 1009 just below 16 MiB, and that would be an ambiguous turn.
#[tokio::test]
async fn very_large_creates() {
    let world = Setup::new().start().await;
    for (mib, websocket) in [(14, true), (15, false), (16, false), (17, false)] {
        let name = format!("m{mib}");
        world.ask(&large(&name, mib)).await.completed();
        let creates = world.creates(&name);
        assert_eq!(
            (creates.websocket, creates.http),
            (u64::from(websocket), u64::from(!websocket)),
            "{mib} MiB"
        );
    }
    let reasons: Vec<_> = world
        .events("http_fallback")
        .iter()
        .map(|line| line["reason"].clone())
        .collect();
    assert_eq!(reasons, ["too_big"; 3]);
    metric_is(&world, "bridge_held_bytes", "", 0.0).await;
}

/// [QUA-16] [SES-30] An upstream that closes with 1009 at a smaller size: that turn is ambiguous and fails once, and the
/// client's retry, and everything as large, goes by direct HTTP.
#[tokio::test]
async fn a_smaller_limit_is_learned() {
    let world = Setup::new().script("[limits]\nframe = \"100KiB\"").start().await;
    let ask =
        |key: &str, kib: usize| Ask::turn(format!("sim:conv={key} {}", "x".repeat(kib << 10))).thread(key);
    let answer = world.ask(&ask("a", 120)).await;
    assert_eq!(
        (answer.status, answer.error().as_str()),
        (502, "bridge_frame_too_large")
    );
    for (key, kib) in [("a", 120), ("b", 130), ("c", 50)] {
        world.ask(&ask(key, kib)).await.completed();
    }
    assert_eq!(
        (
            world.creates("a").http,
            world.creates("b").http,
            world.creates("c").websocket
        ),
        (1, 1, 1)
    );
    assert!(world.events("quarantine_opened").is_empty());
}
