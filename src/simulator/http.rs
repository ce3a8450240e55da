//! Performs a turn over HTTP, as SSE or as one JSON object.

use std::io;

use super::answer::{self, Answer};
use super::behaviour::{Ending, Eol, SseForm};
use super::faults::ErrorFrame;
use super::outbound::Outbound;
use super::perform::Stage;

/// One HTTP answer on its way.
pub struct HttpStage<'a> {
    /// The writing side.
    pub out: &'a mut Outbound,
    /// Headers of the answer.
    pub headers: Vec<(String, String)>,
    /// How SSE is written; `None` for a JSON client.
    pub sse: Option<SseForm>,
    /// The object of a JSON client.
    pub object: &'a str,
    /// Where the answer stands.
    pub place: Place,
}

/// What becomes of a connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// It can take another request.
    Reuse,
    /// It is over: dropped as it is, with FIN or RST as the script wanted.
    Over,
}

/// Where an HTTP answer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Nothing was written.
    Before,
    /// The head was written.
    Body,
    /// All was written.
    Done,
}

impl Stage for HttpStage<'_> {
    async fn event(&mut self, kind: &str, json: &str) -> io::Result<()> {
        let Some(form) = self.sse else { return Ok(()) };
        self.head().await?;
        let text = sse_event(form, kind, json);
        self.chunk(text.as_bytes()).await
    }

    async fn error(&mut self, error: &ErrorFrame, json: &str) -> io::Result<()> {
        if self.place == Place::Before {
            Answer::error(error).write(&mut self.out.buffer);
            self.place = Place::Done;
            return self.out.flush().await;
        }
        let kind = if json.contains(r#""type":"response.error""#) {
            "response.error"
        } else {
            "error"
        };
        self.event(kind, json).await
    }

    async fn nudge(&mut self) -> io::Result<()> {
        let Some(form) = self.sse else { return Ok(()) };
        self.head().await?;
        let text = format!(": ping{0}{0}", eol(form.eol));
        self.chunk(text.as_bytes()).await
    }

    async fn head(&mut self) -> io::Result<()> {
        if self.place != Place::Before {
            return Ok(());
        }
        self.place = Place::Body;
        let length = self.object.len().to_string();
        let (kind, framing) = match self.sse {
            Some(_) => (
                "text/event-stream; charset=utf-8",
                ("transfer-encoding", "chunked"),
            ),
            None => ("application/json", ("content-length", length.as_str())),
        };
        let headers = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        answer::head(&mut self.out.buffer, 200, kind, headers.chain([framing]));
        self.flush().await?;
        match self.sse {
            Some(form) if form.bom => self.chunk("\u{feff}".as_bytes()).await,
            _ => Ok(()),
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.out.flush().await
    }
}

impl HttpStage<'_> {
    /// Writes what is left of a healthy answer.
    ///
    /// # Errors
    /// The client is gone.
    pub async fn finish(&mut self) -> io::Result<()> {
        if self.place == Place::Done {
            return Ok(());
        }
        self.head().await?;
        match self.sse {
            Some(_) => self.out.buffer.extend_from_slice(b"0\r\n\r\n"),
            None => self.out.buffer.extend_from_slice(self.object.as_bytes()),
        }
        self.place = Place::Done;
        self.out.flush().await
    }

    /// Ends the answer as the script wants it.
    ///
    /// # Errors
    /// The client is gone.
    pub async fn end(&mut self, ending: &Ending) -> io::Result<After> {
        match ending {
            Ending::Truncate => match (self.sse, self.place) {
                (Some(_), _) => {
                    self.finish().await?;
                    return Ok(After::Reuse);
                }
                (None, Place::Before) => {
                    Answer::json("").write(&mut self.out.buffer);
                    self.place = Place::Done;
                    self.out.flush().await?;
                    return Ok(After::Reuse);
                }
                // The length was announced: nothing clean can come any more.
                (None, _) => self.out.finish().await,
            },
            Ending::Cut => {
                self.head().await?;
                let half = &self.object.as_bytes()[..self.object.len() / 2];
                match self.sse {
                    // Announced in full, sent in half.
                    Some(_) => self
                        .out
                        .buffer
                        .extend_from_slice(b"200\r\nevent: response.output_text.delta\ndata: {\"ty"),
                    None => self.out.buffer.extend_from_slice(half),
                }
                self.out.flush().await?;
                self.out.finish().await;
            }
            Ending::Close { .. } | Ending::Fin => {
                self.out.flush().await?;
                self.out.finish().await;
            }
            Ending::Reset => {
                self.out.flush().await?;
                self.out.reset();
            }
            Ending::Mute => std::future::pending().await,
        }
        Ok(After::Over)
    }

    /// Writes one chunk, or several where the form wants small ones.
    async fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        let size = self
            .sse
            .and_then(|form| form.chunk)
            .and_then(|size| usize::try_from(size).ok());
        for piece in bytes.chunks(size.unwrap_or(bytes.len()).max(1)) {
            self.out
                .buffer
                .extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            self.out.buffer.extend_from_slice(piece);
            self.out.buffer.extend_from_slice(b"\r\n");
            if size.is_some() {
                self.out.flush().await?;
            }
        }
        self.out.flush_if_full().await
    }
}

fn eol(eol: Eol) -> &'static str {
    match eol {
        Eol::Lf => "\n",
        Eol::CrLf => "\r\n",
        Eol::Cr => "\r",
    }
}

/// One event as SSE; JSON of several lines becomes several `data:` lines.
pub fn sse_event(form: SseForm, kind: &str, json: &str) -> String {
    let eol = eol(form.eol);
    let mut text = String::with_capacity(json.len() + kind.len() + 32);
    let mut line = |name: &str, value: &str| {
        text.push_str(name);
        text.push_str(": ");
        text.push_str(value);
        text.push_str(eol);
    };
    if form.comments {
        line("", "scripted comment");
    }
    if form.ids {
        line("id", "7");
    }
    if !kind.is_empty() {
        line("event", kind);
    }
    for part in json.lines() {
        line("data", part);
    }
    text.push_str(eol);
    text
}

#[cfg(test)]
mod tests;
