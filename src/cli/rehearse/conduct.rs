//! The course of a drill: health, the fault, the way back.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::Drill;
use super::client::{Client, over_session};
use super::progress::Progress;
use super::stage::Stage;
use crate::rehearse::{Call, Fault, Phase, Plan, Record};

/// How often the conductor looks.
const TICK: Duration = Duration::from_millis(20);
/// Calls that the conductor has not taken yet.
const CALLS: usize = 4096;

/// Plays it all, and says what was seen.
pub async fn conduct(stage: &Arc<Stage>, drill: &Drill, progress: Progress) -> anyhow::Result<Record> {
    let plan = Arc::new(drill.plan.clone());
    let (told, calls) = mpsc::channel(CALLS);
    let (stop, end) = (CancellationToken::new(), CancellationToken::new());
    // Dropped with everything else when the drill is broken off.
    let mut clients = JoinSet::new();
    // Only plain http on loopback: no proxy, and no certificate authorities, which the machine may not have.
    let http = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .build()
        .context("cannot make the clients' HTTP client")?;
    for number in 0..plan.clients {
        let client = Client::new(number, http.clone(), drill.seed);
        clients.spawn(client.work(
            stage.clone(),
            plan.clone(),
            told.clone(),
            stop.clone(),
            end.clone(),
        ));
    }
    drop(told);
    let mut watch = Watch {
        stage,
        plan: &plan,
        calls,
        record: Record::default(),
        progress,
    };
    watch.health().await;
    let fault = stage.now();
    match plan.fault {
        Fault::Flap => watch.flap().await?,
        _ => watch.spell().await?,
    }
    watch.record.fault = (fault, stage.now());
    watch.recovery().await;
    stop.cancel();
    watch.rest(plan.round + plan.deadline + plan.slack).await;
    end.cancel();
    while clients.join_next().await.is_some() {}
    watch.rest(Duration::ZERO).await;
    let Watch {
        mut record, progress, ..
    } = watch;
    progress.clear();
    (record.events, record.sent) = (stage.events(), stage.sent());
    Ok(record)
}

struct Watch<'a> {
    stage: &'a Stage,
    plan: &'a Plan,
    calls: mpsc::Receiver<Call>,
    record: Record,
    progress: Progress,
}

impl Watch<'_> {
    /// Until every client has been answered twice, the last time over a session, if it is to have one.
    async fn health(&mut self) {
        self.enter("health".to_owned());
        let limit = self.plan.round * 4 + Duration::from_secs(5);
        self.until(limit, |watch| {
            watch.every_client(Duration::ZERO, |calls| {
                calls.iter().filter(|call| call.is_answered()).count() >= 2
            }) && watch.all_back(Duration::ZERO)
        })
        .await;
    }

    /// The fault, once.
    async fn spell(&mut self) -> anyhow::Result<()> {
        self.enter(format!("the fault: {}", self.plan.fault.name()));
        self.stage.break_down(self.plan.fault, self.plan)?;
        let resets = self.plan.fault == Fault::Reset;
        let began = self.stage.now();
        self.until(self.plan.fault_for, |watch| {
            resets
                && watch.every_client(began, |calls| {
                    calls.iter().filter(|call| !call.is_answered()).count() >= 2
                })
        })
        .await;
        self.stage.mend()
    }

    /// The fault, again and again, each time after all have come back from it.
    async fn flap(&mut self) -> anyhow::Result<()> {
        let mut window = self.plan.window;
        for spell in 1..=self.plan.spells {
            let began = self.stage.now();
            self.enter(format!("silent ({spell} of {})", self.plan.spells));
            self.stage.break_down(self.plan.fault, self.plan)?;
            self.until(self.plan.fault_for, |watch| {
                watch.every_client(began, |calls| calls.iter().any(|call| !call.is_answered()))
            })
            .await;
            self.stage.mend()?;
            if spell < self.plan.spells {
                self.enter(format!("well again ({spell})"));
                let mended = self.stage.now();
                let limit = window + self.plan.round + self.plan.slack;
                self.until(limit, |watch| watch.all_back(mended)).await;
                window = (window * 2).min(self.plan.max_window);
            }
        }
        Ok(())
    }

    /// Until every client is back on a session, or should be.
    async fn recovery(&mut self) {
        self.enter("the way back".to_owned());
        let mended = self.stage.now();
        let limit = self.plan.back_within + self.plan.slack * 2;
        self.until(limit, |watch| {
            watch.every_client(mended, |calls| calls.iter().any(Call::is_answered)) && watch.all_back(mended)
        })
        .await;
    }

    fn enter(&mut self, name: String) {
        let began = self.stage.now();
        self.record.phases.push(Phase { name, began });
    }

    /// Whether the calls of every client that began at `since` or later are as wanted.
    fn every_client(&self, since: Duration, wanted: impl Fn(&[Call]) -> bool) -> bool {
        let mut by_client: Vec<Vec<Call>> = vec![Vec::new(); self.plan.clients];
        for call in self.record.calls.iter().filter(|call| call.began >= since) {
            if let Some(calls) = by_client.get_mut(call.client) {
                calls.push(call.clone());
            }
        }
        by_client.iter().all(|calls| wanted(calls))
    }

    /// Whether the latest answer of every client that is to have a session came over one, and since then.
    fn all_back(&self, since: Duration) -> bool {
        let mut back = vec![false; self.plan.clients];
        for call in self.record.calls.iter().filter(|call| call.began >= since) {
            if let Some(back) = back.get_mut(call.client) {
                *back = over_session(call);
            }
        }
        let bound = |client| {
            self.plan
                .lane(client)
                .is_some_and(|lane| lane.sessions == Some(true))
        };
        back.iter()
            .enumerate()
            .all(|(client, back)| *back || !bound(client))
    }

    /// Takes calls until all is as wanted, for `limit` at most.
    async fn until(&mut self, limit: Duration, wanted: impl Fn(&Watch<'_>) -> bool) {
        let over = Instant::now() + limit;
        let mut next = Instant::now() + TICK;
        let mut news = true;
        while Instant::now() < over {
            tokio::select! {
                Some(call) = self.calls.recv() => {
                    self.record.calls.push(call);
                    news = true;
                }
                () = sleep_until(next) => {
                    let now = Instant::now();
                    self.record.stall = self.record.stall.max(now - next);
                    next = now + TICK;
                    self.show();
                    if std::mem::take(&mut news) && wanted(self) {
                        return;
                    }
                }
            }
        }
    }

    fn show(&mut self) {
        let phase = self.record.phases.last().map_or("", |phase| phase.name.as_str());
        let answered = self.record.calls.iter().filter(|call| call.is_answered()).count();
        let failed = self.record.calls.len() - answered;
        let real = self.plan.speed.real(self.stage.now());
        self.progress.show(real, phase, answered, failed);
    }

    /// Takes what calls are still to come, until there is no client any more, for `limit` at most.
    async fn rest(&mut self, limit: Duration) {
        let all = async {
            while let Some(call) = self.calls.recv().await {
                self.record.calls.push(call);
            }
        };
        // The clients that are still asking are ended by the caller.
        let _ = timeout(limit, all).await;
    }
}
