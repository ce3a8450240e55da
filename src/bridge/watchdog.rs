//! The one watchdog: it judges each send once, by the stage that the send has reached (INV-3, INV-4, SES-2..SES-5).
//!
//! ```text
//!            write           flushed          response.created
//!  Unsent ----------> Writing --------> Waiting ----------------> Accepted
//!                       |                  |                          |
//!                 WriteStalled     Silent / FirstByte / …            Idle
//! ```
//! Nothing but `response.created` leads from `Waiting` to `Accepted`: no event count, no telemetry, no keepalive, no
//! ping, and no heartbeat of anybody's.

use std::time::{Duration, Instant};

use super::deadlines::{Deadlines, Timer};

/// The windows that the watchdog judges by. All are durations since the step that they follow.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Without progress of the write.
    pub write: Duration,
    /// WebSocket: from the flushed frame to `response.created`.
    pub created: Duration,
    /// WebSocket: between two events after `response.created`.
    pub idle: Duration,
    /// The whole client call, from its arrival.
    pub request: Duration,
    /// Direct HTTP: from the flushed request to the response's headers.
    pub first_byte: Duration,
    /// Direct HTTP: from the headers to `response.created`.
    pub first_event: Duration,
    /// Direct HTTP: between two events after `response.created`.
    pub between_events: Duration,
}

/// Which way the turn travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    WebSocket,
    Http,
}

impl Transport {
    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            Transport::WebSocket => "websocket",
            Transport::Http => "http",
        }
    }
}

/// The two silent shapes: both retire the session and open quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Nothing at all came.
    Eventless,
    /// Events came, but not `response.created`.
    EventsWithoutCreated,
}

impl Shape {
    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            Shape::Eventless => "eventless",
            Shape::EventsWithoutCreated => "events_without_created",
        }
    }
}

/// What the watchdog found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    WriteStalled,
    Silent(Shape),
    FirstByte,
    FirstEvent,
    Idle,
    RequestDeadline,
}

/// The silences of an accepted turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quiet {
    /// The longest between two events.
    pub longest: Duration,
    /// When the latest event came: the silence since then may be longer.
    pub since: Instant,
}

impl Quiet {
    /// The longest silence by `now`.
    pub fn by(self, now: Instant) -> Duration {
        self.longest.max(now.saturating_duration_since(self.since))
    }
}

/// How far the send has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Unsent,
    Writing,
    Waiting,
    Accepted,
    /// Judged, or the turn is over: nothing is judged any more.
    Done,
}

/// The watchdog of one turn.
#[derive(Clone, Debug)]
pub struct Watchdog {
    limits: Limits,
    transport: Transport,
    /// A JSON request over HTTP has no events before its end: only connect and the whole request are judged.
    whole: bool,
    stage: Stage,
    /// Something came for this turn. Says which silent shape it was, and nothing else.
    events: bool,
    /// When the latest event that counts came.
    progress: Option<Instant>,
    /// The longest time between two of them so far.
    longest_gap: Duration,
}

impl Watchdog {
    /// A watchdog for a call that arrived at `arrived`. `whole`: the answer comes as one JSON object over HTTP.
    pub fn new(
        limits: Limits,
        transport: Transport,
        whole: bool,
        arrived: Instant,
        table: &mut Deadlines,
    ) -> Self {
        table.set(Timer::Request, arrived + limits.request);
        Watchdog {
            limits,
            transport,
            whole,
            stage: Stage::Unsent,
            events: false,
            progress: None,
            longest_gap: Duration::ZERO,
        }
    }

    /// Bytes of the create moved on (or are about to).
    pub fn wrote(&mut self, now: Instant, table: &mut Deadlines) {
        if matches!(self.stage, Stage::Unsent | Stage::Writing) {
            self.stage = Stage::Writing;
            table.set(Timer::Write, now + self.limits.write);
        }
    }

    /// The last byte of the create was handed to the network: from here silence counts.
    pub fn flushed(&mut self, now: Instant, table: &mut Deadlines) {
        if !matches!(self.stage, Stage::Unsent | Stage::Writing) {
            return;
        }
        self.stage = Stage::Waiting;
        table.clear(Timer::Write);
        match self.transport {
            Transport::WebSocket => table.set(Timer::Created, now + self.limits.created),
            Transport::Http if self.whole => {}
            Transport::Http => table.set(Timer::FirstByte, now + self.limits.first_byte),
        }
    }

    /// Direct HTTP: the response's headers are here.
    pub fn headers(&mut self, now: Instant, table: &mut Deadlines) {
        self.flushed(now, table);
        if self.stage == Stage::Waiting && !self.whole {
            table.clear(Timer::FirstByte);
            table.set(Timer::FirstEvent, now + self.limits.first_event);
        }
    }

    /// `response.created` of this turn arrived: the only proof of acceptance.
    pub fn created(&mut self, now: Instant, table: &mut Deadlines) {
        if self.stage == Stage::Done {
            return;
        }
        self.stage = Stage::Accepted;
        for timer in [Timer::Write, Timer::Created, Timer::FirstByte, Timer::FirstEvent] {
            table.clear(timer);
        }
        self.event(now, table);
    }

    /// Any other data event arrived, keepalives included. It is progress only after `response.created`.
    pub fn event(&mut self, now: Instant, table: &mut Deadlines) {
        self.events = true;
        // Events that came together have one `now`, and the same deadline.
        if self.stage == Stage::Accepted && self.progress != Some(now) {
            if let Some(before) = self.progress.replace(now) {
                self.longest_gap = self.longest_gap.max(now.saturating_duration_since(before));
            }
            let limit = match self.transport {
                Transport::WebSocket => self.limits.idle,
                Transport::Http => self.limits.between_events,
            };
            table.set(Timer::Idle, now + limit);
        }
    }

    /// Telemetry arrived: it is never progress (field report 2).
    pub fn telemetry(&mut self) {
        self.events = true;
    }

    /// How quiet the accepted turn has been so far.
    pub fn quiet(&self) -> Option<Quiet> {
        self.progress.map(|since| Quiet {
            longest: self.longest_gap,
            since,
        })
    }

    /// Judges: at most one verdict per send.
    pub fn judge(&mut self, now: Instant, table: &mut Deadlines) -> Option<Verdict> {
        if self.stage == Stage::Done {
            return None;
        }
        let shape = if self.events {
            Shape::EventsWithoutCreated
        } else {
            Shape::Eventless
        };
        let rows = [
            (Timer::Write, Verdict::WriteStalled),
            (Timer::Created, Verdict::Silent(shape)),
            (Timer::FirstByte, Verdict::FirstByte),
            (Timer::FirstEvent, Verdict::FirstEvent),
            (Timer::Idle, Verdict::Idle),
            (Timer::Request, Verdict::RequestDeadline),
        ];
        let verdict = rows
            .into_iter()
            .find(|(timer, _)| table.expired(*timer, now))
            .map(|(_, verdict)| verdict);
        if verdict.is_some() {
            self.finish(table);
        }
        verdict
    }

    /// The turn is over: nothing is judged any more.
    pub fn finish(&mut self, table: &mut Deadlines) {
        self.stage = Stage::Done;
        for timer in [
            Timer::Write,
            Timer::Created,
            Timer::FirstByte,
            Timer::FirstEvent,
            Timer::Idle,
            Timer::Request,
        ] {
            table.clear(timer);
        }
    }
}

#[cfg(test)]
mod tests;
