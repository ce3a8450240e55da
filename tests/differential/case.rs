//! One case: a conversation of 3 to 12 turns, alone or among others, and what happens to it.

use std::time::Duration;

use crate::agent::{Agent, Signal};
use crate::bridge::{Bridge, Call, IDLE_TTL, MAX_AGE, Outcome, Step};
use crate::dice::{Dice, Vice, Without};
use crate::tally::Tally;
use crate::upstream::Answer;
use crate::words;

/// A case that failed.
pub struct Fault {
    pub message: String,
    /// The turn, counted from 1.
    pub turn: usize,
}

/// What is tried: all that happens follows from it.
#[derive(Clone, Copy)]
pub struct Trial {
    pub seed: u64,
    /// Turns at most.
    pub turns: usize,
    pub without: Without,
    /// Tells what happens.
    pub aloud: bool,
}

/// Runs a case.
pub fn run(trial: Trial, tally: &mut Tally) -> Result<(), Fault> {
    let mut dice = Dice::new(trial.seed, trial.without);
    let mut story = Story::new(trial, &mut dice);
    let turns = (3 + dice.below(10)).min(trial.turns);
    for turn in 1..=turns {
        let told = story.turn(&mut dice);
        told.map_err(|message| Fault { message, turn })?;
    }
    let told = story.finish_all(&mut dice);
    told.map_err(|message| Fault { message, turn: turns })?;
    story.bridge.tally.cases = 1;
    tally.add(&story.bridge.tally);
    Ok(())
}

struct Story {
    aloud: bool,
    bridge: Bridge,
    agents: Vec<Agent>,
    /// What is on its way, by agent.
    running: Vec<(usize, Box<Call>)>,
}

impl Story {
    fn new(trial: Trial, dice: &mut Dice) -> Story {
        let opening = match dice.chance(50) {
            true => vec![words::user(dice)],
            false => vec![],
        };
        let signal = |number: usize, dice: &mut Dice| match dice.below(4) {
            0 => Signal::Header("thread-id", format!("t{number}")),
            1 => Signal::Header("session-id", format!("t{number}")),
            2 => Signal::CacheKey(format!("t{number}")),
            _ => Signal::None,
        };
        let shared = signal(0, dice);
        let one_key = dice.chance(60);
        let count = match dice.below(10) {
            0..=4 => 1,
            5..=7 => 2,
            _ => 3,
        };
        let mut agents = Vec::new();
        for number in 0..count {
            let tenant = u8::from(dice.chance(10));
            let signal = match one_key {
                true => shared.clone(),
                false => signal(number, dice),
            };
            agents.push(Agent::new(tenant, signal, &opening, dice));
        }
        Story {
            aloud: trial.aloud,
            bridge: Bridge::new(dice),
            agents,
            running: Vec::new(),
        }
    }

    fn turn(&mut self, dice: &mut Dice) -> Result<(), String> {
        self.between(dice)?;
        if dice.chance(5) && self.agents.len() < 4 {
            let of = dice.below(self.agents.len());
            let side = self.agents[of].beside(dice);
            self.agents.push(side);
        }
        // The conversation itself has most of the turns.
        let agent = match dice.chance(55) {
            true => 0,
            false => dice.below(self.agents.len()),
        };
        self.finish(agent, dice)?;
        let request = self.agents[agent].ask(dice);
        let answer = Answer::any(dice);
        if self.aloud {
            eprintln!("agent {agent}: {:?}, {answer:?}", request.done);
            eprintln!("    {}", request.body);
        }
        let mut call = self.bridge.call(request, answer)?;
        loop {
            match self.bridge.begin(call, !self.running.is_empty(), dice)? {
                Step::Sent(sent) => {
                    self.running.push((agent, sent));
                    break;
                }
                Step::Waits(waiting) => {
                    let (other, _) = self.running[0];
                    self.finish(other, dice)?;
                    call = waiting;
                }
                Step::Over(outcome) => {
                    self.over(agent, outcome, dice);
                    break;
                }
            }
        }
        if !dice.may(Vice::Together, 300) || answer == Answer::Silent {
            self.finish_all(dice)?;
        }
        Ok(())
    }

    /// What happens between two turns.
    fn between(&mut self, dice: &mut Dice) -> Result<(), String> {
        if dice.may(Vice::Losses, 40) {
            let seen = dice.chance(60);
            self.say(if seen {
                "a socket is lost"
            } else {
                "a socket is lost unseen"
            });
            self.bridge.lose(seen, dice);
        }
        if dice.may(Vice::Losses, 15) {
            self.bridge.stray(dice);
        }
        if dice.may(Vice::Losses, 40) {
            self.bridge.warm();
        }
        if dice.may(Vice::Losses, 60) {
            self.finish_all(dice)?;
            let time = match dice.below(8) {
                0 => IDLE_TTL,
                1 => MAX_AGE,
                2 => Duration::from_secs(61),
                _ => Duration::from_secs(31),
            };
            self.say(&format!("{} s pass", time.as_secs()));
            self.bridge.pass(time);
        }
        Ok(())
    }

    fn finish(&mut self, agent: usize, dice: &mut Dice) -> Result<(), String> {
        if let Some(at) = self.running.iter().position(|(of, _)| *of == agent) {
            let (agent, call) = self.running.remove(at);
            let outcome = self.bridge.finish(call, dice)?;
            self.over(agent, outcome, dice);
        }
        Ok(())
    }

    fn finish_all(&mut self, dice: &mut Dice) -> Result<(), String> {
        // A silent one is the last: while it is waited for, time passes.
        while let Some((agent, call)) = (!self.running.is_empty()).then(|| self.running.remove(0)) {
            let outcome = self.bridge.finish(call, dice)?;
            self.over(agent, outcome, dice);
        }
        Ok(())
    }

    fn over(&mut self, agent: usize, outcome: Outcome, dice: &mut Dice) {
        let agent = &mut self.agents[agent];
        match outcome {
            Outcome::Completed { id, output } => agent.answered(output, Some(id)),
            Outcome::Partial { output } if dice.chance(70) => agent.answered(output, None),
            Outcome::Partial { .. } | Outcome::Failed => agent.failed(dice),
        }
    }

    fn say(&self, what: &str) {
        if self.aloud {
            eprintln!("{what}");
        }
    }
}
