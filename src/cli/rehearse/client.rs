//! A client, as coding agents are: it keeps its history and resends all of it, streams, obeys Retry-After, and asks again
//! until it has its answer.

use std::sync::Arc;
use std::time::Duration;

use http::header;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::stage::Stage;
use crate::rehearse::{Call, Ended, Plan, Speed, Way};

/// What the agent waits at first when it is not told how long, and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// No wait is shorter, of the drill's own time: a machine takes as long to notice anything.
const LEAST_WAIT: Duration = Duration::from_millis(20);
/// Beyond so many items an agent would compact its history; here it begins a shorter one.
const LONGEST_HISTORY: usize = 40;

/// One client.
pub struct Client {
    pub number: usize,
    pub http: reqwest::Client,
    pub dice: u64,
    history: Vec<Value>,
    question: u32,
}

/// What a stream has said so far.
#[derive(Default)]
struct Heard {
    /// When `response.created` or an error came.
    first: Option<Instant>,
    response: Option<String>,
    output: Vec<Value>,
    completed: bool,
    failed: Option<String>,
}

impl Client {
    /// A client with an empty history. `seed` is any number.
    pub fn new(number: usize, http: reqwest::Client, seed: u64) -> Client {
        let mixed = seed
            .wrapping_add(number as u64 + 1)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Client {
            number,
            http,
            dice: mixed | 1,
            history: Vec::new(),
            question: 0,
        }
    }

    /// Asks until `stop`, and then until the question at hand is answered; gives it up when `end` comes.
    pub async fn work(
        mut self,
        stage: Arc<Stage>,
        plan: Arc<Plan>,
        told: tokio::sync::mpsc::Sender<Call>,
        stop: CancellationToken,
        end: CancellationToken,
    ) {
        while !stop.is_cancelled() {
            let pause = plan.think.mul_f64(0.5 + self.roll());
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = stop.cancelled() => return,
            }
            self.question += 1;
            if self.history.len() > LONGEST_HISTORY {
                self.history.clear();
            }
            let words = format!("Question {}? sim:conv=client-{}", self.question, self.number);
            self.history.push(json!({"role": "user", "content": words}));
            for attempt in 1_u32.. {
                let call = tokio::select! {
                    call = self.call(&stage, &plan, attempt) => call,
                    () = end.cancelled() => return,
                };
                let wait = self.wait(&call, plan.speed);
                // The conductor takes calls for as long as there are clients.
                let _ = told.send(call).await;
                let Some(wait) = wait else { break };
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = end.cancelled() => return,
                }
            }
        }
    }

    /// A number from 0 to 1 (xorshift64).
    fn roll(&mut self) -> f64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// How long to wait before the question is asked again; `None` once it is answered.
    fn wait(&mut self, call: &Call, speed: Speed) -> Option<Duration> {
        let wait = match &call.ended {
            Ended::Answered(_) => return None,
            // What the bridge says is meant for the time in earnest, what the upstream says for this one.
            Ended::Error {
                retry_after: Some(seconds),
                code,
                ..
            } => {
                let told = Duration::from_secs(*seconds);
                if code.starts_with("bridge_") {
                    speed.shorten(told)
                } else {
                    told
                }
            }
            _ => {
                let doubled = BACKOFF.0 * 2_u32.saturating_pow(call.attempt.min(8) - 1);
                speed.shorten(doubled.min(BACKOFF.1))
            }
        };
        Some(wait.max(LEAST_WAIT).mul_f64(1.0 + 0.1 * self.roll()))
    }

    /// One request, read to its end.
    async fn call(&mut self, stage: &Stage, plan: &Plan, attempt: u32) -> Call {
        let (began, started) = (stage.now(), Instant::now());
        let mut heard = Heard::default();
        // Whatever does not end by itself has failed long before.
        let patience = (plan.deadline + plan.slack) * 4;
        let ended = tokio::time::timeout(patience, self.send(stage, plan, attempt, &mut heard)).await;
        let ended = match ended {
            Ok(Some(error)) => error,
            Ok(None) if heard.completed => {
                self.history.append(&mut heard.output);
                Ended::Answered(heard.response.as_deref().and_then(|id| stage.way_of(id)))
            }
            Ok(None) => match heard.failed.take() {
                Some(code) => Ended::Error {
                    status: None,
                    code,
                    retry_after: None,
                },
                None => Ended::Broken,
            },
            Err(_) => Ended::Broken,
        };
        let took = started.elapsed();
        Call {
            client: self.number,
            question: self.question,
            attempt,
            began,
            waited: heard.first.map_or(took, |first| first - started),
            took,
            ended,
        }
    }

    /// Sends the whole history, and listens. An HTTP error is returned.
    async fn send(&self, stage: &Stage, plan: &Plan, attempt: u32, heard: &mut Heard) -> Option<Ended> {
        let lane = plan.lane(self.number)?;
        let path = if lane.chatgpt {
            "/backend-api/codex/responses"
        } else {
            "/v1/responses"
        };
        let mut body = json!({
            "model": lane.model, "stream": true, "store": false, "input": self.history,
            // So that the ledger tells this call from every other.
            "metadata": { "call": format!("{}.{attempt}", self.question) },
        });
        let mut request = self
            .http
            .post(format!("http://{}{path}", stage.address()))
            .bearer_auth(stage.key(self.number))
            .header("thread-id", format!("rehearsal-{}", self.number))
            .header(header::CONTENT_TYPE, "application/json");
        if lane.chatgpt {
            request = request.header("chatgpt-account-id", format!("rehearsal-account-{}", self.number));
            body["instructions"] = json!("Rehearse.");
        }
        let mut reply = request.body(body.to_string()).send().await.ok()?;
        if reply.status() != http::StatusCode::OK {
            heard.first = Some(Instant::now());
            let status = Some(reply.status().as_u16());
            let wait = reply.headers().get(header::RETRY_AFTER).cloned();
            let retry_after = wait
                .as_ref()
                .and_then(|value| value.to_str().ok()?.trim().parse().ok());
            let body: Value = serde_json::from_slice(&reply.bytes().await.ok()?).unwrap_or_default();
            let code = body["error"]["code"]
                .as_str()
                .unwrap_or("without a code")
                .to_owned();
            return Some(Ended::Error {
                status,
                code,
                retry_after,
            });
        }
        let mut line = Vec::new();
        while let Ok(Some(chunk)) = reply.chunk().await {
            for byte in chunk {
                match byte {
                    b'\n' => heard.line(&std::mem::take(&mut line)),
                    _ => line.push(byte),
                }
            }
        }
        None
    }
}

impl Heard {
    fn line(&mut self, line: &[u8]) {
        let Some(data) = line.strip_prefix(b"data: ") else {
            return;
        };
        let event: Value = serde_json::from_slice(data).unwrap_or_default();
        match event["type"].as_str() {
            Some("response.created") => {
                self.first.get_or_insert_with(Instant::now);
                self.response = event["response"]["id"].as_str().map(str::to_owned);
            }
            Some("response.output_item.done") => self.output.push(event["item"].clone()),
            Some("response.completed") => self.completed = true,
            Some("response.failed" | "error") => {
                self.first.get_or_insert_with(Instant::now);
                let code = event["response"]["error"]["code"]
                    .as_str()
                    .or(event["code"].as_str());
                self.failed = Some(code.unwrap_or("without a code").to_owned());
            }
            _ => {}
        }
    }
}

/// Whether a call's answer came over a session.
pub fn over_session(call: &Call) -> bool {
    call.ended == Ended::Answered(Some(Way::Websocket))
}
