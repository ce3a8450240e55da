//! A coding agent, as small as one can be: it keeps its own history, resends all of it, streams, and obeys Retry-After.

use std::time::Duration;

use anyhow::Context;
use http::{StatusCode, header};
use serde_json::{Value, json};

use super::screen::Tone;
use super::stage::Stage;
use crate::counted::counted;

/// What the agent waits when it is not told how long.
const USUAL_WAIT: Duration = Duration::from_secs(1);

/// One conversation.
pub struct Agent<'a> {
    stage: &'a Stage,
    http: reqwest::Client,
    thread: &'static str,
    history: Vec<Value>,
}

/// What became of a call.
#[must_use]
pub enum Answer {
    /// A whole answer, which is part of the history now.
    Whole,
    /// An error, and how long to wait before the question is asked again.
    Retry(Duration),
}

impl Answer {
    /// The whole answer was due.
    pub fn whole(self) -> anyhow::Result<()> {
        match self {
            Answer::Whole => Ok(()),
            Answer::Retry(_) => anyhow::bail!("the agent got an error where it should have got an answer"),
        }
    }

    /// An error was due that may be retried.
    pub fn retry(self) -> anyhow::Result<Duration> {
        match self {
            Answer::Retry(wait) => Ok(wait),
            Answer::Whole => anyhow::bail!("the agent got an answer where the upstream gave none"),
        }
    }
}

impl<'a> Agent<'a> {
    /// A new conversation; `thread` is what the agent calls it.
    pub fn new(stage: &'a Stage, thread: &'static str) -> anyhow::Result<Agent<'a>> {
        // Only plain http on loopback: no proxy, and no certificate authorities, which the machine may not have.
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .build()
            .context("cannot make the agent's HTTP client")?;
        Ok(Agent {
            stage,
            http,
            thread,
            history: Vec::new(),
        })
    }

    /// Asks something new, and reads the answer to its end.
    pub async fn ask(&mut self, question: &str) -> anyhow::Result<Answer> {
        self.stage
            .tell(Tone::Agent, "agent asks", &format!("\"{question}\""));
        self.history.push(json!({"role": "user", "content": question}));
        self.send().await
    }

    /// Asks the same again.
    pub async fn ask_again(&mut self) -> anyhow::Result<Answer> {
        self.stage.tell(
            Tone::Agent,
            "agent asks again",
            "the same request, as any agent does after Retry-After",
        );
        self.send().await
    }

    /// Sends the whole history.
    async fn send(&mut self) -> anyhow::Result<Answer> {
        let body = json!({"model": "gpt-5", "stream": true, "store": false, "input": self.history});
        let request = self
            .http
            .post(format!("{}/responses", self.stage.base_url()))
            .bearer_auth("demo")
            .header("thread-id", self.thread)
            .header(header::CONTENT_TYPE, "application/json")
            .body(body.to_string());
        let reply = request
            .send()
            .await
            .context("the bridge did not answer the agent")?;
        let status = reply.status();
        let told = reply.headers().get(header::RETRY_AFTER).cloned();
        let text = reply.text().await.context("the bridge's answer broke off")?;
        if status != StatusCode::OK {
            let wait = told
                .as_ref()
                .and_then(|value| value.to_str().ok()?.parse().ok())
                .map_or(USUAL_WAIT, Duration::from_secs);
            let words = format!("HTTP {}; Retry-After: {} s", status.as_u16(), wait.as_secs());
            self.stage.tell(Tone::Agent, "agent receives", &words);
            return Ok(Answer::Retry(wait));
        }
        let events: Vec<Value> = text
            .lines()
            .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
            .collect();
        let last = events.last().context("the answer had no event")?;
        anyhow::ensure!(
            last["type"] == "response.completed",
            "the answer ended with {} in place of response.completed",
            last["type"]
        );
        if let Some(output) = last["response"]["output"].as_array() {
            self.history.extend(output.iter().cloned());
        }
        let words = format!(
            "the whole answer, {}, streamed",
            counted(events.len() as u64, "event")
        );
        self.stage.tell(Tone::Agent, "agent receives", &words);
        Ok(Answer::Whole)
    }
}
