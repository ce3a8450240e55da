//! Composes the score of a turn from what is said and from how it is to go wrong.

use std::time::Duration;

use super::behaviour::{Behaviour, Ending, Fault, Filler, TerminalShape, Transport, When};
use super::events::{self, Writer};
use super::faults::ErrorFrame;
use super::object::{Identity, Stage};
use super::score::{Conclusion, Reply, Score, Step};

/// A turn that is an error from the start.
pub fn refusal(error: ErrorFrame, behaviour: &Behaviour) -> Score {
    let mut composer = Composer::new(behaviour);
    composer.error(&error);
    Score {
        steps: composer.steps,
        ..Score::default()
    }
}

/// The score of a turn.
pub fn compose(reply: &Reply, behaviour: &Behaviour, transport: Transport) -> Score {
    let mut composer = Composer::new(behaviour);
    let finished: Vec<_> = reply.output.iter().map(|output| output.item.clone()).collect();
    let shown = if reply.chatgpt { &[][..] } else { &finished[..] };
    let terminal = Stage {
        usage: Some(reply.usage),
        output: shown,
        ..Stage::begun("completed")
    };
    let terminal = composer.with_shape(terminal);
    let mut score = Score {
        object: reply.identity.json(terminal),
        full: reply.identity.json(Stage {
            output: &finished,
            ..terminal
        }),
        ..Score::default()
    };
    let ended = composer.play(reply, terminal, transport);
    if ended == Flow::On {
        composer.after(transport, &mut score.later);
    }
    score.steps = composer.steps;
    score
}

/// Whether the turn goes on after a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Over,
}

struct Composer<'a> {
    behaviour: &'a Behaviour,
    writer: Writer,
    steps: Vec<Step>,
    deltas: u32,
}

impl<'a> Composer<'a> {
    fn new(behaviour: &'a Behaviour) -> Composer<'a> {
        let writer = Writer::new(behaviour.pretty, behaviour.type_last);
        Composer {
            behaviour,
            writer,
            steps: Vec::new(),
            deltas: 0,
        }
    }

    fn play(&mut self, reply: &Reply, terminal: Stage, transport: Transport) -> Flow {
        if reply.chatgpt && transport == Transport::Websocket {
            self.telemetry();
        }
        if self.faults(When::BeforeCreated) == Flow::Over {
            return Flow::Over;
        }
        let begun = Stage::begun("in_progress");
        let mut openings = vec!["response.created", "response.in_progress"];
        if reply.identity.background {
            openings.insert(1, "response.queued");
        }
        if reply.output.is_empty() {
            openings.truncate(1);
        }
        for kind in openings {
            self.response(kind, reply.identity, begun);
        }
        self.steps.push(Step::Flush);
        if self.faults(When::AfterDeltas(0)) == Flow::Over || self.output(reply) == Flow::Over {
            return Flow::Over;
        }
        let places = self.behaviour.faults.iter().map(|(when, _)| *when);
        let mut late: Vec<u32> = places.filter_map(|when| self.later_than_all(when)).collect();
        late.dedup();
        for place in late {
            if self.faults(When::AfterDeltas(place)) == Flow::Over {
                return Flow::Over;
            }
        }
        self.terminal(reply.identity, terminal)
    }

    /// A place after more deltas than there were is right before the terminal.
    fn later_than_all(&self, when: When) -> Option<u32> {
        match when {
            When::AfterDeltas(count) if count > self.deltas => Some(count),
            _ => None,
        }
    }

    fn output(&mut self, reply: &Reply) -> Flow {
        for (index, output) in reply.output.iter().enumerate() {
            for event in events::opening(output, index) {
                self.event(event.kind, &event.body);
            }
            for (number, delta) in output.deltas.iter().enumerate() {
                let drafts = events::delta(output, index, number, delta);
                if drafts.is_empty() {
                    continue;
                }
                if self.deltas > 0 && !self.behaviour.text.delay.is_zero() {
                    self.steps.push(Step::Flush);
                    self.steps.push(Step::Wait(self.behaviour.text.delay));
                }
                for event in drafts {
                    self.event(event.kind, &event.body);
                }
                self.deltas += 1;
                if self.faults(When::AfterDeltas(self.deltas)) == Flow::Over {
                    return Flow::Over;
                }
            }
            for event in events::closing(output, index) {
                self.event(event.kind, &event.body);
            }
        }
        Flow::On
    }

    fn faults(&mut self, place: When) -> Flow {
        let behaviour = self.behaviour;
        for fault in behaviour.faults_at(place) {
            if self.fault(fault) == Flow::Over {
                return Flow::Over;
            }
        }
        Flow::On
    }

    fn fault(&mut self, fault: &Fault) -> Flow {
        match fault {
            Fault::Quiet {
                filler,
                every,
                lasting,
            } => self.quiet(*filler, *every, *lasting),
            Fault::HeadFirst { lasting } => {
                self.steps.push(Step::Head);
                self.quiet(Filler::Nothing, Duration::MAX, *lasting)
            }
            Fault::DeltasOnly { n, delay } => {
                self.stray_deltas(*n, *delay);
                self.quiet(Filler::Nothing, Duration::MAX, None)
            }
            Fault::Error(error) => self.error(error),
            Fault::TelemetryThen(error) => {
                self.telemetry();
                self.error(error)
            }
            Fault::AgeLimit => {
                self.error(&age_limit_error());
                self.end(&Ending::Close {
                    code: 1000,
                    reason: String::new(),
                })
            }
            Fault::LateFrames { n, delay } => {
                self.stray_deltas(*n, *delay);
                Flow::On
            }
            Fault::End { ending, delay } => {
                self.steps.push(Step::Flush);
                if !delay.is_zero() {
                    self.steps.push(Step::Wait(*delay));
                }
                self.steps.push(Step::Conclude(Conclusion::Broken));
                self.end(ending)
            }
        }
    }

    /// What comes after the terminal: at once what has no delay, later what has one.
    fn after(&mut self, transport: Transport, later: &mut Vec<Step>) {
        let behaviour = self.behaviour;
        let http = transport == Transport::Http;
        for fault in behaviour.faults_at(When::AfterTerminal) {
            match fault {
                // Nothing is left open on a socket: it waits for its next turn anyway.
                Fault::Quiet { .. } if !http => continue,
                Fault::End { ending, delay } if delay.is_zero() => _ = self.end(ending),
                Fault::LateFrames { n, delay } if delay.is_zero() => self.stray_deltas(*n, *delay),
                // Over HTTP the body is the turn's own: whatever comes later still belongs to it.
                _ => {
                    let before = std::mem::take(&mut self.steps);
                    self.later_fault(fault);
                    let steps = std::mem::replace(&mut self.steps, before);
                    if http { &mut self.steps } else { &mut *later }.extend(steps);
                }
            }
        }
    }

    fn later_fault(&mut self, fault: &Fault) {
        self.steps.push(Step::Flush);
        match fault {
            Fault::End { ending, delay } => {
                self.steps.push(Step::Wait(*delay));
                self.steps.push(Step::End(ending.clone()));
            }
            Fault::LateFrames { n, delay } => {
                self.steps.push(Step::Wait(*delay));
                self.stray_deltas(*n, *delay);
                self.steps.push(Step::Flush);
            }
            Fault::AgeLimit => {
                self.steps.push(Step::Wait(Duration::from_millis(20)));
                let error = age_limit_error();
                let json = self.writer.error(&error);
                self.steps.push(Step::Error {
                    error: Box::new(error),
                    json,
                });
                self.steps.push(Step::End(Ending::Close {
                    code: 1000,
                    reason: String::new(),
                }));
            }
            other => _ = self.fault(other),
        }
    }

    fn quiet(&mut self, filler: Filler, every: Duration, lasting: Option<Duration>) -> Flow {
        self.steps.push(Step::Flush);
        let sequence = self.writer.sequence();
        self.steps.push(Step::Repeat {
            filler,
            every,
            lasting,
            sequence,
        });
        if lasting.is_some() { Flow::On } else { Flow::Over }
    }

    fn stray_deltas(&mut self, n: u32, delay: Duration) {
        for number in 0..n {
            if number > 0 && !delay.is_zero() {
                self.steps.push(Step::Flush);
                self.steps.push(Step::Wait(delay));
            }
            let event = events::stray_delta(number);
            self.event(event.kind, &event.body);
        }
    }

    fn telemetry(&mut self) {
        let json = self.writer.bare(events::RATE_LIMITS);
        self.steps.push(Step::Event {
            kind: "codex.rate_limits",
            json,
        });
    }

    fn error(&mut self, error: &ErrorFrame) -> Flow {
        self.steps.push(Step::Conclude(Conclusion::Errored(error.status)));
        let json = self.writer.error(error);
        self.steps.push(Step::Error {
            error: Box::new(error.clone()),
            json,
        });
        self.steps.push(Step::Flush);
        Flow::Over
    }

    fn end(&mut self, ending: &Ending) -> Flow {
        self.steps.push(Step::End(ending.clone()));
        Flow::Over
    }

    fn event(&mut self, kind: &'static str, body: &str) {
        let json = self.writer.event(kind, body);
        self.steps.push(Step::Event { kind, json });
    }

    fn response(&mut self, kind: &'static str, identity: &Identity, stage: Stage) {
        let body = format!(r#"{{"response":{}}}"#, identity.json(stage));
        self.event(kind, &body);
    }

    /// The terminal's stage with the status, error and reason of its shape.
    fn with_shape<'b>(&self, completed: Stage<'b>) -> Stage<'b>
    where
        'a: 'b,
    {
        let Some(terminal) = &self.behaviour.terminal else {
            return completed;
        };
        let (code, message) = (terminal.code.as_str(), terminal.message.as_str());
        match terminal.shape {
            TerminalShape::Failed => Stage {
                status: "failed",
                error: Some((code, message)),
                output: &[],
                ..completed
            },
            TerminalShape::Incomplete => Stage {
                status: "incomplete",
                incomplete: Some("max_output_tokens"),
                ..completed
            },
            TerminalShape::IncompleteCode => Stage {
                status: "incomplete",
                incomplete: Some(code),
                ..completed
            },
            _ => completed,
        }
    }

    fn terminal(&mut self, identity: &Identity, stage: Stage) -> Flow {
        let shape = self
            .behaviour
            .terminal
            .as_ref()
            .map_or(TerminalShape::Completed, |terminal| terminal.shape);
        let (kind, conclusion) = match shape {
            TerminalShape::Completed => ("response.completed", Conclusion::Completed),
            TerminalShape::Done => ("response.done", Conclusion::Completed),
            TerminalShape::Failed => ("response.failed", Conclusion::Failed),
            TerminalShape::Incomplete => ("response.incomplete", Conclusion::Incomplete),
            TerminalShape::IncompleteCode => ("response.incomplete", Conclusion::Failed),
            TerminalShape::Typeless => {
                self.steps.push(Step::Conclude(Conclusion::Completed));
                let json = self.writer.bare(&identity.json(stage));
                self.steps.push(Step::Event { kind: "", json });
                return Flow::On;
            }
            TerminalShape::None => return self.quiet(Filler::Nothing, Duration::MAX, None),
        };
        self.steps.push(Step::Conclude(conclusion));
        self.response(kind, identity, stage);
        Flow::On
    }
}

/// The error frame of a connection that has lived too long.
pub fn age_limit_error() -> ErrorFrame {
    let message = "Responses websocket connection limit reached (60 minutes). Create a new websocket connection to \
                   continue.";
    ErrorFrame::invalid("websocket_connection_limit_reached", message, None)
}

#[cfg(test)]
mod tests;
