//! A call from its arrival to its end: owner, plan, queue, what its client is told.

use super::*;

impl World {
    pub(super) fn arrives(&mut self, spec: Spec) {
        let (number, now) = (self.calls.len(), self.instant());
        let (key, mut account) = (self.key(&spec), self.account(&spec));
        let mut history = History::new(number, now, !spec.json);
        let last = self.last.get(&(spec.tenant, spec.conversation)).cloned();
        let anchor = match &spec.anchor {
            Names::Nothing => None,
            Names::Last => last,
            Names::Response(id) => Some(id.clone()),
        };
        let mut unstored = None;
        let mut unknown = false;
        if let Some(id) = &anchor {
            let response = self.hasher.response(&[spec.tenant; 16], id);
            match self.owners.of(response, self.now / 1000) {
                Some(owner) => {
                    account = usize::from(owner.account.0);
                    history.owner = Some(account);
                    unstored = owner.session.filter(|_| !owner.stored);
                }
                None => unknown = true,
            }
        }
        if let Some(after) = spec.leaves {
            self.schedule(after, Happening::Leaves(number));
        }
        self.running.insert(number);
        self.keys.insert(key.hash, key);
        self.calls.push(Call {
            spec,
            key,
            account,
            anchor,
            unstored,
            way: Way::Planning,
            history,
            key_probe: None,
            transport_probe: None,
            again: false,
            response: None,
        });
        if self.draining {
            self.refuse(number, Kind::Draining);
        } else if unknown {
            self.refuse(number, Kind::UnknownAnchor);
        } else {
            self.plan(number, false);
        }
    }

    pub(super) fn leaves(&mut self, number: usize) {
        let call = &mut self.calls[number];
        if call.history.end.is_some() {
            return;
        }
        call.history.client_gone = true;
        match call.way {
            Way::On(id) => self.put(id, session::Input::ClientGone),
            Way::Http(_) => self.put_http(number, turn::Input::ClientGone),
            Way::Waiting => self.stop_waiting(number),
            Way::Planning | Way::Dialing | Way::Over => {}
        }
        if self.calls[number].history.end.is_none() {
            // Nothing was sent yet.
            self.free_probes(number);
            self.over(number, Outcome::ClientGone);
        }
    }

    pub(super) fn stop_waiting(&mut self, number: usize) {
        if let Some(queue) = self.waiting.get_mut(&self.calls[number].key.hash) {
            queue.retain(|waiter| *waiter != number);
        }
    }

    pub(super) fn plan(&mut self, number: usize, waited: bool) {
        let now = self.instant();
        let (key, account) = (self.calls[number].key, self.calls[number].account);
        let sockets = self.sockets(account);
        let quarantine = self.quarantine.status(&key, now);
        let transport = &self.transports[account];
        let reuse = transport.permission(now, false, sockets);
        let dial = transport.permission(now, true, sockets);
        assert!(dial != Permission::Yes || reuse == Permission::Yes);
        let idle = self.candidates(number);
        let call = &self.calls[number];
        let alive = |id: &SessionId| self.lives.get(id).is_some_and(|live| !live.retired);
        let facts = Facts {
            http_only: false,
            websocket_only: false,
            background: false,
            frame_length: 1000,
            max_frame: plan::MAX_FRAME,
            known_too_big: transport.too_big(now, 1000),
            anchor: call.unstored.map_or(Anchor::Free, Anchor::Unstored),
            unqueued: call.spec.keyless,
        };
        let queued = self.waiting.get(&key.hash).map_or(0, VecDeque::len);
        let opening = self.dials.values().filter(|dial| dial.key == key).count();
        let of_key = self
            .lives
            .values()
            .filter(|live| live.key == key && !live.retired)
            .count();
        let view = View {
            quarantine,
            reuse,
            dial,
            idle: &idle,
            sessions: of_key + opening,
            max_per_key: self.max_per_key,
            room: self.sessions() + self.dials.len() < self.max_sessions || self.longest_idle().is_some(),
            anchor_alive: call.unstored.is_some_and(|id| alive(&id)),
            no_more_waiting: waited || queued >= MAX_QUEUE,
        };
        match plan::plan(&facts, &view) {
            Plan::Reuse(id) => self.lease(number, id),
            Plan::Open(purpose) => self.open(number, purpose),
            Plan::Wait | Plan::WaitToDial => {
                self.calls[number].way = Way::Waiting;
                self.waiting.entry(key.hash).or_default().push_back(number);
                self.schedule(QUEUE_WAIT, Happening::Waited(number));
            }
            Plan::Direct(reason) => self.http(number, reason),
            Plan::Refuse(kind) => self.refuse(number, kind),
        }
    }

    pub(super) fn candidates(&self, number: usize) -> Vec<Candidate> {
        let call = &self.calls[number];
        let conversation = (call.spec.tenant, call.spec.conversation);
        let extended = self.last.get(&conversation).filter(|_| call.spec.extends);
        let mut found = Vec::new();
        for (id, live) in self.lives.iter().filter(|(_, live)| live.key == call.key) {
            let Some(last_used) = live.idle_since.filter(|_| !live.retired) else {
                continue;
            };
            let fit = match live.session.memory() {
                None => Fit::Blank,
                Some(memory) if call.anchor.as_deref() == Some(&memory.response_id) => Fit::Named,
                Some(memory) if extended.is_some_and(|last| **last == *memory.response_id) => {
                    Fit::Extended { items: 1 }
                }
                Some(_) => Fit::Other,
            };
            let alone = live.session.memory().is_some_and(|memory| !memory.stored);
            if self.instant() < live.session.too_old_at() || (fit == Fit::Named && alone) {
                found.push(Candidate {
                    session: *id,
                    fit,
                    last_used,
                });
            }
        }
        found
    }

    pub(super) fn sockets(&self, account: usize) -> usize {
        self.lives
            .values()
            .filter(|live| live.account == account && !live.retired)
            .count()
    }

    pub(super) fn longest_idle(&self) -> Option<SessionId> {
        let idle = self.lives.iter().filter(|(_, live)| !live.retired);
        idle.filter_map(|(id, live)| Some((live.idle_since?, *id)))
            .min()
            .map(|(_, id)| id)
    }

    pub(super) fn free_probes(&mut self, number: usize) {
        let now = self.instant();
        let call = &mut self.calls[number];
        let (key, account) = (call.key, call.account);
        if let Some(probe) = call.transport_probe.take() {
            self.transports[account].probe_freed(probe, now);
        }
        if let Some(probe) = call.key_probe.take()
            && self.quarantine.freed(probe, now)
        {
            self.incidents.push(key, now, Event::ProbeFreed);
        }
    }

    pub(super) fn tell(&mut self, number: usize, output: turn::Output) {
        let now = self.instant();
        let call = &mut self.calls[number];
        let told = match output {
            turn::Output::Accepted(created) => {
                self.accepted(number, created.response_id.as_deref());
                return;
            }
            turn::Output::End(end) => {
                self.ended(number, end);
                return;
            }
            turn::Output::Reject(error)
                if error.class() == ErrorClass::ConnectionLimit && matches!(call.way, Way::On(_)) =>
            {
                call.again = true;
                return;
            }
            turn::Output::Commit => Told::Commit,
            turn::Output::Forward { name, data } => {
                let text = String::from_utf8(data.to_vec()).unwrap();
                let own = format!(r#""call":{number}"#);
                assert!(
                    text.contains(&format!("{own},")) || text.contains(&format!("{own}}}")),
                    "call {number} got another's event: {text}"
                );
                Told::Event(String::from_utf8(name.to_vec()).unwrap())
            }
            turn::Output::Comment => Told::Comment,
            turn::Output::Keepalive => Told::Keepalive,
            turn::Output::Fail { code, .. } => Told::Fail(code.into_owned()),
            turn::Output::Reject(error) => Told::Reject(error.http_status()),
            turn::Output::Refuse(refusal) => Told::Refuse(refusal.kind),
            turn::Output::Json(object) => {
                let text = String::from_utf8(object.to_vec()).unwrap();
                assert!(
                    text.contains(&format!(r#""call":{number}}}"#)),
                    "another's answer: {text}"
                );
                Told::Json
            }
            turn::Output::Tear => Told::Torn,
        };
        call.history.tell(now, told);
    }

    pub(super) fn accepted(&mut self, number: usize, response: Option<&str>) {
        let now = self.instant();
        let call = &mut self.calls[number];
        if let Some(probe) = call.key_probe.take()
            && self.quarantine.cleared(probe, now).is_some()
        {
            self.incidents.push(call.key, now, Event::Cleared);
        }
        if let Some(probe) = call.transport_probe.take() {
            self.transports[call.account].probe_succeeded(probe);
        }
        let Some(id) = response else { return };
        let owner = Owner {
            account: AccountId(call.account as u16),
            session: match call.way {
                Way::On(session) => Some(session),
                _ => None,
            },
            key: Some(call.key),
            stored: !call.spec.unstored,
            expires_at: self.now / 1000 + 30 * 86_400,
        };
        call.response = Some(id.to_owned());
        let response = self.hasher.response(&[call.spec.tenant; 16], id);
        self.owners.record(response, owner);
        self.schedule(self.store_takes, Happening::Durable(number));
    }

    pub(super) fn durable(&mut self, number: usize) {
        self.calls[number].history.durable = true;
        match self.calls[number].way {
            Way::On(id) if self.lives.get(&id).is_some_and(|live| live.call == Some(number)) => {
                self.put(id, session::Input::Durable);
            }
            Way::Http(_) => self.put_http(number, turn::Input::Durable),
            _ => {}
        }
    }

    pub(super) fn ended(&mut self, number: usize, end: turn::TurnEnd) {
        let now = self.instant();
        let call = &mut self.calls[number];
        check_silence(&call.history, now, &end, CREATED);
        call.history.ends.push(end);
        if let Some(Verdict::Silent(_)) = end.verdict {
            self.incidents.push(call.key, now, Event::CreatedTimeout);
            // The trip that follows is the probe's answer.
            (call.key_probe, call.transport_probe) = (None, None);
        }
        let call = &mut self.calls[number];
        if call.again {
            call.again = false;
            if let Some(sent) = call.history.sent.last_mut() {
                sent.rejected = true;
            }
            self.free_probes(number);
            self.http(number, Direct::ConnectionLimit);
            return;
        }
        if matches!(end.outcome, Outcome::Completed | Outcome::Incomplete)
            && let Some(id) = call.response.clone()
        {
            let conversation = (call.spec.tenant, call.spec.conversation);
            self.last.insert(conversation, id);
        }
        self.free_probes(number);
        self.over(number, end.outcome);
    }

    pub(super) fn refuse(&mut self, number: usize, kind: Kind) {
        let now = self.instant();
        self.stop_waiting(number);
        self.free_probes(number);
        self.calls[number].history.tell(now, Told::Refuse(kind));
        self.over(number, Outcome::Bridge(kind));
    }

    pub(super) fn over(&mut self, number: usize, outcome: Outcome) {
        let now = self.instant();
        let call = &mut self.calls[number];
        call.way = Way::Over;
        self.running.remove(&number);
        call.history.ends(now, outcome);
    }
}
