//! What must be seen in a drill, said before it is played (REH-8).

use std::time::Duration;

use super::fault::Fault;
use super::pace::told;
use super::plan::Plan;
use super::scale::{self, Window};

/// Codex tries a stream again so often.
const RETRIES: u32 = 5;

/// One expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// For programs.
    pub id: &'static str,
    /// For people, with the numbers that it is judged by.
    pub text: String,
    pub rule: Rule,
}

/// How a session is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// As an upstream may have it: the ChatGPT backend sends telemetry before it falls silent.
    Either,
    /// With events.
    WithoutCreated,
}

impl Shape {
    /// Whether the bridge's word for it is one for this.
    pub fn is(self, word: &str) -> bool {
        match self {
            Shape::Either => ["eventless", "events_without_created"].contains(&word),
            Shape::WithoutCreated => word == "events_without_created",
        }
    }
}

/// By what it is judged. Durations are of the drill's own time, slack not included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Before the fault no call fails.
    Health,
    /// The fault is met by somebody: else nothing is rehearsed.
    Met,
    /// There are no sessions, and so no call fails.
    Unreached,
    /// Every question has its answer in the end.
    Answered,
    /// So many calls are enough for every question.
    Patient(u32),
    /// No call waits longer for `response.created` or an error.
    Bounded(Duration),
    /// No create is sent twice.
    Once,
    /// Each silent session is found out in time, by its shape, and retired; and its conversation quarantined.
    Retired {
        shape: Shape,
        within: Duration,
        quarantined: bool,
    },
    /// Within the window all goes by direct HTTP.
    ThenHttp,
    /// Direct HTTP answers.
    HttpAnswers,
    /// Each window is the one before, or twice that, up to the longest.
    Doubled { first: Duration, most: Duration },
    /// Some window is so long.
    Reached(Duration),
    /// Nothing is held to be silent.
    Unquarantined,
    /// No session is retired, and no call fails.
    Kept,
    /// What fails may be asked again, and says when.
    Retryable,
    /// What fails is the upstream's 429 with its Retry-After.
    Limited,
    /// So long after the fault every conversation is answered over a session again.
    Back(Duration),
}

/// Durations in words: those of a window with its star (REH-14).
struct Words<'a> {
    plan: &'a Plan,
    windows: &'a [Window],
}

impl Words<'_> {
    fn window(&self, key: &str, drill: Duration) -> String {
        let known = self.windows.iter().find(|window| window.key == key);
        known.map_or_else(
            || told(self.plan.speed.real(drill)),
            |window| window.told(self.plan.speed),
        )
    }

    fn deadline(&self) -> String {
        self.window(scale::CREATED, self.plan.deadline)
    }

    fn first(&self) -> String {
        self.window(scale::WINDOW, self.plan.window)
    }

    fn longest(&self) -> String {
        self.window(scale::MAX_WINDOW, self.plan.max_window)
    }
}

/// What a drill must show, whose windows are these.
pub fn expectations(plan: &Plan, windows: &[Window]) -> Vec<Expectation> {
    let words = Words { plan, windows };
    let mut all = vec![expect(
        "healthy_before",
        "before the fault, every call is answered",
        Rule::Health,
    )];
    let mut add = |id, text: &str, rule| all.push(expect(id, text, rule));
    if plan.fault.is_of_sessions() && !plan.has_sessions() {
        let text = "no account has sessions (transport = \"http\"): the fault, which is one of sessions, reaches nobody, and \
                    every call is answered";
        add("not_reached", text, Rule::Unreached);
        once(&mut add);
        return all;
    }
    add("fault_met", met(plan.fault), Rule::Met);
    let bound = format!(
        "no call waits longer than response_created_deadline ({}) for its response.created or an error",
        words.deadline()
    );
    add("bounded_wait", &bound, Rule::Bounded(plan.deadline));
    once(&mut add);
    match plan.fault {
        Fault::Silent | Fault::Wedged | Fault::Flap => silence(&words, &mut add),
        Fault::Reset => {
            let text = "each call whose socket is reset ends in a 5xx with Retry-After, or response.failed";
            add("retryable", text, Rule::Retryable);
            add(
                "no_quarantine",
                "a reset is no silence: nothing is quarantined",
                Rule::Unquarantined,
            );
        }
        Fault::Limit => {
            let text = "each call that is rejected reaches its client as 429 with Retry-After";
            add("limit_told", text, Rule::Limited);
            add(
                "no_quarantine",
                "a 429 is no silence: nothing is quarantined",
                Rule::Unquarantined,
            );
        }
        Fault::Slow => {
            let text = "a slow upstream is not a silent one: no session is retired, no call fails";
            add("nothing_retired", text, Rule::Kept);
        }
    }
    add(
        "answered",
        "every question has its answer in the end",
        Rule::Answered,
    );
    // How long a storm of 429 lasts is the drill's choice; without direct HTTP, agents wait for a session.
    if plan.fault != Fault::Limit && !plan.has_no_http() {
        let text = format!(
            "no agent gives up: no question takes more than {RETRIES} retries, which is Codex's patience"
        );
        add("no_agent_gives_up", &text, Rule::Patient(RETRIES + 1));
    }
    if plan.needs_sessions() {
        let within = match plan.fault {
            _ if plan.fault.silences() => {
                format!("at most max_window ({}) after the fault, ", words.longest())
            }
            Fault::Limit => "after the fault and its Retry-After, ".to_owned(),
            _ => "after the fault, ".to_owned(),
        };
        let text = format!("{within}each conversation's next question brings it back to a session");
        add("back_on_sessions", &text, Rule::Back(plan.back_within));
    }
    all
}

fn expect(id: &'static str, text: &str, rule: Rule) -> Expectation {
    Expectation {
        id,
        text: text.to_owned(),
        rule,
    }
}

fn once(add: &mut impl FnMut(&'static str, &str, Rule)) {
    let text = "no call sends a second create, but after a definite rejection of the first";
    add("sent_once", text, Rule::Once);
}

fn met(fault: Fault) -> &'static str {
    match fault {
        Fault::Silent | Fault::Wedged | Fault::Flap => "sessions go silent, and the watchdog sees it",
        Fault::Reset => "sockets are reset under turns",
        Fault::Limit => "calls are rejected with 429",
        Fault::Slow => "calls wait for a slow response.created",
    }
}

fn silence(words: &Words<'_>, add: &mut impl FnMut(&'static str, &str, Rule)) {
    let plan = words.plan;
    let shape = match plan.fault {
        Fault::Wedged => Shape::WithoutCreated,
        _ => Shape::Either,
    };
    let silent = match shape {
        Shape::Either => "each session that is silent",
        Shape::WithoutCreated => "each session whose events go on without response.created",
    };
    let (deadline, quarantined) = (words.deadline(), !plan.window.is_zero());
    let rule = Rule::Retired {
        shape,
        within: plan.deadline,
        quarantined,
    };
    if !quarantined {
        let text = format!(
            "{silent} for {deadline} is retired; no conversation is quarantined, since quarantine.window is 0s"
        );
        add("retired", &text, rule);
        return;
    }
    let text = format!("{silent} for {deadline} is retired, and its conversation quarantined");
    add("quarantined", &text, rule);
    if !plan.keys_fit {
        // Entries are evicted: what becomes of one conversation cannot be foreseen.
        return;
    }
    let text = "within its window a quarantined conversation goes by direct HTTP";
    let exempt = plan
        .ways
        .values()
        .any(|way| *way == crate::config::Transport::Websocket);
    let text = match exempt {
        true => format!("{text}; not where transport is \"websocket\""),
        false => text.to_owned(),
    };
    add("then_http", &text, Rule::ThenHttp);
    add(
        "http_answers",
        "what goes by direct HTTP is answered there",
        Rule::HttpAnswers,
    );
    let (first, most) = (plan.window, plan.max_window);
    let text = format!(
        "a conversation's first window is {}, and doubles with each silence up to {}",
        words.first(),
        words.longest()
    );
    add("doubling", &text, Rule::Doubled { first, most });
    if plan.fault == Fault::Flap {
        let short = match plan.top {
            top if top == plan.max_window => ", the longest",
            top if top == plan.window => {
                ", and no longer one has to be: max_window after a clear, before the next silence is found out, the doubling is \
                 forgotten"
            }
            _ => ", which is as far as this drill goes; a higher --speed goes further",
        };
        let top = match plan.top {
            top if top == plan.max_window => words.longest(),
            top if top == plan.window => words.first(),
            top => told(plan.speed.real(top)),
        };
        let text = format!("a window of {top} is reached{short}");
        add("top_reached", &text, Rule::Reached(plan.top));
    }
}
