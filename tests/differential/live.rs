//! The same over real sockets: random agents ask the bridge, and then its upstream without it.

use std::sync::Arc;
use std::time::Instant;

use responses_bridge::simulator::Ledger;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::agent::{Agent, Request, Signal};
use crate::client::{Answer, Ask};
use crate::dice::{Dice, Without};
use crate::meaning;
use crate::words;
use crate::world::{Setup, World};

/// How many conversations there are, and how many of them at a time.
const CONVERSATIONS: u64 = 200;
const AT_A_TIME: usize = 12;

/// What the simulated upstream is asked to do, most often nothing.
const MARKS: [&str; 10] = [
    "sim:tools(rounds=2, parallel=2)",
    "sim:chatgpt",
    "sim:reasoning",
    "sim:terminal(shape=incomplete)",
    "sim:terminal(shape=failed)",
    "sim:terminal(shape=done)",
    "sim:not_found(times=1)",
    "sim:afterwards(do=close)",
    "sim:reset(after=1, times=1)",
    "sim:silent(times=1, on=ws)",
];

/// [CONT-22] [CONT-23] two hundred conversations over real sockets: what the model saw is what it sees when it is asked
/// the same without the bridge.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_real_sockets() {
    let config = "[watchdog]\nresponse_created_deadline = \"3s\"\n[quarantine]\nwindow = \"500ms\"\nmax_window = \"1s\"";
    let world = Arc::new(Setup::new().config(config).start().await);
    let began = Instant::now();
    let places = Arc::new(Semaphore::new(AT_A_TIME));
    let mut all = JoinSet::new();
    for seed in 0..CONVERSATIONS {
        let (world, places) = (world.clone(), places.clone());
        all.spawn(async move {
            let _place = places.acquire().await.unwrap();
            conversation(&world, seed).await
        });
    }
    let turns: usize = all.join_all().await.into_iter().sum();
    let used = world.events("continuation_used").len();
    let rejected = world.events("continuation_rejected").len();
    let seconds = began.elapsed().as_secs_f64();
    println!("{turns} turns compared, {used} continued, {rejected} sent in full, {seconds:.1} s");
    assert!(turns > 500, "{turns} turns");
    assert!(100 * used > 35 * turns, "{used} of {turns} turns were continued");
}

/// Runs a conversation. Returns how many of its turns were compared.
async fn conversation(world: &World, seed: u64) -> usize {
    let dice = &mut Dice::new(1_000_000 + seed, Without::default());
    let signal = match dice.below(4) {
        0 => Signal::Header("thread-id", format!("live{seed}")),
        1 => Signal::Header("session-id", format!("live{seed}")),
        2 => Signal::CacheKey(format!("live{seed}")),
        _ => Signal::None,
    };
    let mut agents = vec![Agent::new(0, signal, &[], dice)];
    let mut compared = 0;
    for _ in 0..3 + dice.below(5) {
        if agents.len() == 1 && dice.chance(10) {
            let side = agents[0].beside(dice);
            agents.push(side);
        }
        for agent in &mut agents {
            if dice.chance(25) {
                agent.mark = Some(dice.pick(&MARKS));
            }
        }
        let requests: Vec<_> = agents.iter_mut().map(|agent| agent.ask(dice)).collect();
        let both = match &requests[..] {
            [one] => (world.ask(&ask(one)).await, None),
            [one, other, ..] => {
                let (one, other) = (ask(one), ask(other));
                let (one, other) = tokio::join!(world.ask(&one), world.ask(&other));
                (one, Some(other))
            }
            [] => panic!("no agent"),
        };
        let answers = std::iter::once(both.0).chain(both.1);
        for ((agent, request), answer) in agents.iter_mut().zip(&requests).zip(answers) {
            compared += usize::from(compare(world, request, &answer, seed).await);
            over(agent, &answer, dice);
        }
    }
    compared
}

fn ask(request: &Request) -> Ask {
    let body: Value = serde_json::from_str(&request.body).unwrap();
    let mut ask = Ask::turn("");
    for (name, value) in body.as_object().unwrap() {
        ask = ask.with(name, value.clone());
    }
    for (name, value) in &request.headers {
        ask = ask.header(name.as_str(), value.to_str().unwrap());
    }
    ask
}

/// Asks the same without the bridge, and compares what the model saw. False where there is nothing to compare.
async fn compare(world: &World, request: &Request, answer: &Answer, seed: u64) -> bool {
    let body: Value = serde_json::from_str(&request.body).unwrap();
    if body["previous_response_id"].is_string() {
        return false;
    }
    let Some(with) = seen(world, answer) else {
        return false;
    };
    let differs = meaning::difference(with.iter().map(|item| &**item), meaning::items(&body).iter());
    assert!(differs.is_none(), "conversation {seed}: {}", differs.unwrap());
    let direct = ask(request).ask(world.upstream.addr()).await;
    if let Some(without) = seen(world, &direct) {
        let differs = meaning::difference(
            with.iter().map(|item| &**item),
            without.iter().map(|item| &**item),
        );
        assert!(differs.is_none(), "conversation {seed}: {}", differs.unwrap());
    }
    true
}

/// What the model saw for an answer.
fn seen(world: &World, answer: &Answer) -> Option<Vec<Arc<Value>>> {
    let id = response(answer)?["id"].as_str()?.to_owned();
    let look = |ledger: &Ledger| {
        let mut creates = ledger.creates.iter().rev();
        let create = creates.find(|create| create.response_id == id)?;
        Some(create.transcript.clone())
    };
    world.upstream.look(look)
}

/// The response object that the answer ended with.
fn response(answer: &Answer) -> Option<Value> {
    if answer.status != 200 {
        return None;
    }
    let last = answer.events().into_iter().next_back()?;
    last.data.get("response").cloned()
}

fn over(agent: &mut Agent, answer: &Answer, dice: &mut Dice) {
    let Some(response) = response(answer) else {
        agent.failed(dice);
        agent.items.push(words::user(dice));
        return;
    };
    let done = answer
        .events()
        .into_iter()
        .filter(|event| event.name == "response.output_item.done");
    let mut output = response["output"].as_array().cloned().unwrap_or_default();
    if output.is_empty() {
        output = done.map(|event| event.data["item"].clone()).collect();
    }
    match response["status"].as_str() {
        Some("completed") => agent.answered(output, response["id"].as_str().map(str::to_owned)),
        Some("incomplete") => agent.answered(output, None),
        _ => {
            agent.failed(dice);
            agent.items.push(words::user(dice));
        }
    }
}
