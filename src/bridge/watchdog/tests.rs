use super::*;

const S: Duration = Duration::from_secs(1);
const NANO: Duration = Duration::from_nanos(1);

fn limits() -> Limits {
    Limits {
        write: 30 * S,
        created: 60 * S,
        idle: 900 * S,
        request: 7200 * S,
        first_byte: 61 * S,
        first_event: 62 * S,
        between_events: 901 * S,
    }
}

struct Bench {
    table: Deadlines,
    dog: Watchdog,
    now: Instant,
}

impl Bench {
    fn new(transport: Transport, whole: bool) -> Self {
        let mut table = Deadlines::default();
        let now = Instant::now();
        let dog = Watchdog::new(limits(), transport, whole, now, &mut table);
        Bench { table, dog, now }
    }

    fn pass(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self
    }

    fn wrote(&mut self) -> &mut Self {
        self.dog.wrote(self.now, &mut self.table);
        self
    }

    fn flushed(&mut self) -> &mut Self {
        self.dog.flushed(self.now, &mut self.table);
        self
    }

    fn headers(&mut self) -> &mut Self {
        self.dog.headers(self.now, &mut self.table);
        self
    }

    fn created(&mut self) -> &mut Self {
        self.dog.created(self.now, &mut self.table);
        self
    }

    fn event(&mut self) -> &mut Self {
        self.dog.event(self.now, &mut self.table);
        self
    }

    /// Nothing is found until `time` has passed, then `verdict` is, once.
    #[track_caller]
    fn finds_after(&mut self, time: Duration, verdict: Verdict) {
        assert_eq!(self.table.next(), Some(self.now + time));
        let before = self.now + time - NANO;
        assert_eq!(self.dog.judge(before, &mut self.table), None);
        self.now += time;
        assert_eq!(self.dog.judge(self.now, &mut self.table), Some(verdict));
        self.finds_nothing();
    }

    /// Whatever happens from now on, no deadline is set and nothing is found.
    #[track_caller]
    fn finds_nothing(&mut self) {
        self.wrote().flushed().headers().event().created();
        assert_eq!(self.table.next(), None);
        let late = self.now + 100_000 * S;
        assert_eq!(self.dog.judge(late, &mut self.table), None);
    }
}

/// [SES-2] the write is judged by its progress: each step begins its deadline anew.
#[test]
fn a_write_is_judged_by_its_progress() {
    let mut bench = Bench::new(Transport::WebSocket, false);
    bench.wrote();
    for _ in 0..20 {
        bench.pass(29 * S).wrote();
        assert_eq!(bench.dog.judge(bench.now, &mut bench.table), None);
    }
    bench.finds_after(30 * S, Verdict::WriteStalled);
}

/// [SES-2] the created deadline begins at the flush, however long the write took (field report 41).
#[test]
fn the_created_deadline_begins_at_the_flush() {
    let mut bench = Bench::new(Transport::WebSocket, false);
    for _ in 0..100 {
        bench.wrote().pass(2 * S);
    }
    bench.flushed();
    bench.finds_after(60 * S, Verdict::Silent(Shape::Eventless));
}

/// [SES-2] a flush is the flush once: no later write or flush moves the deadline.
#[test]
fn a_flush_counts_once() {
    let mut bench = Bench::new(Transport::WebSocket, false);
    bench.wrote().flushed().pass(10 * S).wrote().flushed();
    bench.finds_after(50 * S, Verdict::Silent(Shape::Eventless));
}

/// [SES-3] [INV-4] no number of events moves the created deadline; they only name the shape (field reports 2 and 3).
#[test]
fn only_created_proves_acceptance() {
    for telemetry in [false, true] {
        let mut bench = Bench::new(Transport::WebSocket, false);
        bench.wrote().flushed();
        for _ in 0..59 {
            bench.pass(S);
            match telemetry {
                true => bench.dog.telemetry(),
                false => _ = bench.event(),
            }
            assert_eq!(bench.dog.judge(bench.now, &mut bench.table), None);
        }
        bench.finds_after(S, Verdict::Silent(Shape::EventsWithoutCreated));
    }
}

/// [SES-3] an event that comes while the create is still being written is an event.
#[test]
fn an_early_event_names_the_shape() {
    let mut bench = Bench::new(Transport::WebSocket, false);
    bench.wrote().event().flushed();
    bench.finds_after(60 * S, Verdict::Silent(Shape::EventsWithoutCreated));
}

/// [SES-3] created a moment before the deadline: nothing is found (field report 4).
#[test]
fn created_just_in_time() {
    let mut bench = Bench::new(Transport::WebSocket, false);
    bench
        .wrote()
        .flushed()
        .pass(60 * S - NANO)
        .created()
        .pass(600 * S);
    assert_eq!(bench.dog.judge(bench.now, &mut bench.table), None);
}

/// [SES-4] after acceptance every data event begins the idle deadline anew; telemetry does not.
#[test]
fn idle_after_acceptance() {
    let mut bench = Bench::new(Transport::WebSocket, false);
    bench.wrote().flushed().created();
    for _ in 0..5 {
        bench.pass(899 * S).event();
        assert_eq!(bench.dog.judge(bench.now, &mut bench.table), None);
    }
    bench.pass(100 * S);
    bench.dog.telemetry();
    bench.finds_after(800 * S, Verdict::Idle);
}

/// [SES-4] an answer that begins before the create is wholly written ends the write's deadline.
#[test]
fn accepted_while_writing() {
    let mut bench = Bench::new(Transport::WebSocket, false);
    bench.wrote().created().wrote().flushed();
    bench.finds_after(900 * S, Verdict::Idle);
}

/// [SES-5] direct HTTP: first byte, first event, between events.
#[test]
fn direct_http() {
    let bench = || Bench::new(Transport::Http, false);
    bench().wrote().flushed().finds_after(61 * S, Verdict::FirstByte);
    bench()
        .wrote()
        .flushed()
        .pass(S)
        .headers()
        .finds_after(62 * S, Verdict::FirstEvent);
    bench()
        .wrote()
        .headers()
        .event()
        .finds_after(62 * S, Verdict::FirstEvent);
    bench()
        .wrote()
        .flushed()
        .headers()
        .created()
        .pass(S)
        .event()
        .finds_after(901 * S, Verdict::Idle);
    bench().wrote().finds_after(30 * S, Verdict::WriteStalled);
    bench()
        .headers()
        .created()
        .headers()
        .finds_after(901 * S, Verdict::Idle);
}

/// [SES-5] one JSON object over HTTP: nothing comes before its end, so only the whole request is judged.
#[test]
fn a_whole_answer() {
    let mut bench = Bench::new(Transport::Http, true);
    bench.wrote().flushed().pass(S).headers();
    bench.finds_after(7199 * S, Verdict::RequestDeadline);
}

/// [SES-5] the whole request is judged from its arrival, at every stage.
#[test]
fn the_whole_request() {
    let bench = || Bench::new(Transport::WebSocket, false);
    bench().finds_after(7200 * S, Verdict::RequestDeadline);
    bench()
        .pass(7190 * S)
        .wrote()
        .finds_after(10 * S, Verdict::RequestDeadline);
    bench()
        .pass(7150 * S)
        .wrote()
        .flushed()
        .finds_after(50 * S, Verdict::RequestDeadline);
    bench()
        .wrote()
        .flushed()
        .created()
        .pass(7100 * S)
        .event()
        .finds_after(100 * S, Verdict::RequestDeadline);
}

/// [SES-5] [INV-3] a turn that is over is not judged.
#[test]
fn a_finished_turn_is_not_judged() {
    let mut bench = Bench::new(Transport::Http, false);
    bench.wrote().flushed().headers().created();
    bench.dog.finish(&mut bench.table);
    bench.finds_nothing();
}

/// [SES-5] each send is judged once, also when several deadlines have passed by the time one looks.
#[test]
fn one_verdict_for_many_deadlines() {
    let mut bench = Bench::new(Transport::WebSocket, false);
    bench.wrote().flushed().pass(10_000 * S);
    let verdict = bench.dog.judge(bench.now, &mut bench.table);
    assert_eq!(verdict, Some(Verdict::Silent(Shape::Eventless)));
    bench.finds_nothing();
}

/// [INV-9] labels are distinct.
#[test]
fn labels() {
    assert_eq!(Shape::Eventless.label(), "eventless");
    assert_eq!(Shape::EventsWithoutCreated.label(), "events_without_created");
    assert_eq!(Transport::WebSocket.label(), "websocket");
    assert_eq!(Transport::Http.label(), "http");
}
