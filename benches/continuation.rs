//! What matching costs beside parsing: `cargo bench --bench continuation`.
//!
//! One body of 400 KB and about 120 items (escaped code, tool output, encrypted reasoning) as an agent resends it:
//! parsed, matched where the bytes repeat, and matched where the client has written every item anew (other key order,
//! white space, no ids). Medians, and both as shares of parsing.
// A bench may panic: it has nobody to answer to.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;
use highway::{HighwayHash, HighwayHasher, Key};
use responses_bridge::bridge::continuation::{Digester, Draft, History, Outline, extends};
use responses_bridge::wire::request::{Create, read_create};
use serde_json::{Value, json};

const ROUNDS: usize = 40;
const CODE: &str = "    let mut reader = Reader::new(\"src/main.rs\");\n\tif reader.lines().any(|line| line == \"\\n\") {\n        return Err(format!(\"line {}: empty\", number));\n    }\n";

fn main() {
    let d = Digester::new(&[7; 32]);
    let body = Bytes::from(body(ROUNDS));
    let anew = Bytes::from(written_anew(&body));
    let create = read_create(body.clone()).unwrap();
    let items = create.items().unwrap();
    let bytes: usize = items.iter().map(ExactSizeIterator::len).sum();
    println!(
        "{} bytes, {} items of {bytes} bytes; written anew {} bytes\n",
        body.len(),
        items.len(),
        anew.len()
    );

    let history = history(&d, &create);
    let parse = time("parse", || read_create(body.clone()).unwrap());
    let parse_anew = time("parse, written anew", || read_create(anew.clone()).unwrap());
    let rewritten = read_create(anew.clone()).unwrap();
    let matching = |create: &Create| {
        let outline = Outline::of(&d, create, None).unwrap();
        extends(&d, create, &outline, &history).unwrap()
    };
    let repeated = time("match, bytes repeat", || matching(&create));
    let canonical = time("match, written anew", || matching(&rewritten));
    let outline = Outline::of(&d, &create, None).unwrap();
    let extension = extends(&d, &create, &outline, &history).unwrap();
    time("remember, continued", || {
        Draft::new(&d, &create, &outline, Some((&history, &extension)))
    });
    time("remember, first turn", || Draft::new(&d, &create, &outline, None));
    time("frame of the new items", || {
        create.delta_frame(extension.skip(), "resp_1", &[])
    });
    time("frame of it all", || create.frame(&[]));

    // Why this hash: what the items' digests alone cost.
    time("digests only, HighwayHash", || {
        let digest = |item: &Range<usize>| HighwayHasher::new(Key([1, 2, 3, 4])).hash128(&body[item.clone()]);
        items
            .iter()
            .map(digest)
            .fold(0, |all, [low, high]| all ^ low ^ high)
    });
    time("digests only, BLAKE3", || {
        let digest = |item: &Range<usize>| blake3::keyed_hash(&[7; 32], &body[item.clone()]);
        items
            .iter()
            .map(digest)
            .fold(0, |all, hash| all ^ hash.as_bytes()[0])
    });

    let share = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64();
    println!(
        "\nmatching / parsing, bytes repeat: {:.3} (at most 0.20)",
        share(repeated, parse)
    );
    println!(
        "matching / parsing, written anew: {:.2} (at most 4)",
        share(canonical, parse_anew)
    );
    println!("memory of {} items: {} bytes", history.len(), history.bytes());
}

/// Runs it for about half a second and prints the median.
fn time<T>(name: &str, mut run: impl FnMut() -> T) -> Duration {
    let mut times = Vec::new();
    let begun = Instant::now();
    while times.len() < 20 || begun.elapsed() < Duration::from_millis(500) {
        let one = Instant::now();
        black_box(run());
        times.push(one.elapsed());
    }
    times.sort_unstable();
    let median = times[times.len() / 2];
    println!("{name:<28} {:>8.1} us", median.as_secs_f64() * 1e6);
    median
}

/// What a socket remembers of all but the last item: they went in, or came out, as the client sends them back.
fn history(d: &Digester, create: &Create) -> History {
    let items = create.items().unwrap();
    let input = create.input.clone().unwrap();
    let (before, after) = (&create.body()[..=input.start], &create.body()[input.end - 1..]);
    let first = read_create(Bytes::from([before, after].concat())).unwrap();
    let mut draft = Draft::new(d, &first, &Outline::of(d, &first, None).unwrap(), None);
    for item in &items[..items.len() - 1] {
        draft.output(d, &create.body()[item.clone()]);
    }
    draft.finish().unwrap()
}

fn body(rounds: usize) -> String {
    let mut items = vec![json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Mend the reader."}]}).to_string()];
    for round in 0..rounds {
        let sealed = "gAAAAABo9Qx3".repeat(130);
        items.push(format!(
            r#"{{"id":"rs_{round}","type":"reasoning","summary":[],"content":null,"encrypted_content":"{sealed}{round}"}}"#
        ));
        let arguments = json!({"path": format!("src/{round}.rs"), "patch": CODE.repeat(3)}).to_string();
        items.push(format!(
            r#"{{"type":"function_call","id":"fc_{round}","call_id":"call_{round}","name":"edit","arguments":{},"status":"completed"}}"#,
            Value::from(arguments)
        ));
        let output = format!("{round}\n{}", CODE.repeat(44));
        items.push(format!(
            r#"{{"type":"function_call_output","call_id":"call_{round}","output":{}}}"#,
            Value::from(output)
        ));
    }
    let tool = |name: usize| {
        json!({"type": "function", "name": format!("tool_{name}"), "description": "Does one thing and tells how it went.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "patch": {"type": "string"}}, "required": ["path"]}})
    };
    let tools: Vec<_> = (0..20).map(tool).collect();
    let settings = json!({"model": "gpt-5", "store": false, "stream": true, "tools": tools, "instructions": "You mend code.",
        "include": ["reasoning.encrypted_content"], "prompt_cache_key": "k"});
    let settings = settings.to_string();
    format!(
        r#"{},"input":[{}]}}"#,
        settings.strip_suffix('}').unwrap(),
        items.join(",")
    )
}

/// The same body, keys in falling order and white space everywhere, without the items' ids.
fn written_anew(body: &[u8]) -> String {
    let mut value: Value = serde_json::from_slice(body).unwrap();
    for item in value["input"].as_array_mut().unwrap() {
        item.as_object_mut().unwrap().remove("id");
    }
    let mut out = String::new();
    write(&value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            out.push_str("{ ");
            for (at, (key, value)) in members.iter().rev().enumerate() {
                out.push_str(if at == 0 { "" } else { ",\n  " });
                write!(out, "{} : ", Value::from(key.as_str())).unwrap();
                write(value, out);
            }
            out.push_str(" }");
        }
        Value::Array(elements) => {
            out.push_str("[ ");
            for (at, element) in elements.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ",\n  " });
                write(element, out);
            }
            out.push_str(" ]");
        }
        plain => write!(out, "{plain}").unwrap(),
    }
}
