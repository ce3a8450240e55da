//! Sockets: dialled, leased, read, retired.

use super::*;

impl World {
    pub(super) fn lease(&mut self, number: usize, id: SessionId) {
        let call = &mut self.calls[number];
        call.way = Way::On(id);
        let lease = session::Input::Lease {
            turn: turn_policy(Transport::WebSocket, call.spec.json),
            arrived: call.history.arrived,
            stored: !call.spec.unstored,
        };
        if let Some(live) = self.lives.get_mut(&id) {
            assert!(live.call.replace(number).is_none(), "one turn at a time");
            live.idle_since = None;
        }
        self.put(id, lease);
    }

    pub(super) fn open(&mut self, number: usize, purpose: Purpose) {
        let now = self.instant();
        let call = &mut self.calls[number];
        let (key, account) = (call.key, call.account);
        call.way = Way::Dialing;
        if matches!(purpose, Purpose::ProbeKey | Purpose::ProbeBoth) {
            call.key_probe = self.quarantine.probe(&key, now);
            assert!(call.key_probe.is_some());
            call.history.probe = true;
            self.incidents.push(key, now, Event::Probe);
        }
        let transport = &mut self.transports[account];
        if matches!(purpose, Purpose::ProbeTransport | Purpose::ProbeBoth) {
            call.transport_probe = transport.begin_probe(now);
            assert!(call.transport_probe.is_some());
            call.history.probe = true;
        }
        transport.handshake_began();
        let (after, upgrade) = self.upstreams[account].upgrade(&mut self.rng);
        self.numbers += 1;
        let dial = self.numbers;
        self.dials.insert(
            dial,
            Dial {
                call: Some(number),
                key,
                account,
                upgrade,
            },
        );
        if self.sessions() + self.dials.len() > self.max_sessions
            && let Some(id) = self.longest_idle()
        {
            self.put(id, session::Input::Retire(Retired::Evicted));
        }
        self.schedule(after, Happening::Upgraded(dial));
        self.schedule(PATIENCE, Happening::Impatient(dial));
    }

    /// The slow handshake goes on in the background; its turn does not wait for it.
    pub(super) fn impatient(&mut self, dial: u64) {
        let waiting = self.dials.get_mut(&dial).and_then(|dial| dial.call.take());
        if let Some(number) = waiting.filter(|number| matches!(self.calls[*number].way, Way::Dialing)) {
            self.free_probes(number);
            self.http(number, Direct::UpgradeSlow);
        }
    }

    /// A handshake has ended, in one way or another: whoever waits to dial may.
    pub(super) fn upgraded(&mut self, dial: u64) {
        self.upgrade_ended(dial);
        let keys: Vec<_> = self
            .waiting
            .values()
            .flatten()
            .map(|number| self.calls[*number].key)
            .collect();
        keys.into_iter().for_each(|key| self.wake(key));
    }

    fn upgrade_ended(&mut self, dial: u64) {
        let Some(dial) = self.dials.remove(&dial) else {
            return;
        };
        let now = self.instant();
        let sockets = self.sockets(dial.account);
        let how = match dial.upgrade {
            Upgrade::Opens(_) => Handshake::Opened,
            Upgrade::Answers(status) => Handshake::Refused { status, sockets },
            Upgrade::Fails | Upgrade::Hangs => Handshake::Failed,
        };
        self.transports[dial.account].handshake_ended(now, how);
        let call = dial
            .call
            .filter(|number| matches!(self.calls[*number].way, Way::Dialing));
        if how != Handshake::Opened {
            if let Some(number) = call {
                self.free_probes(number);
                self.http(number, Direct::UpgradeRefused);
            }
            self.wake(dial.key);
            return;
        }
        self.numbers += 1;
        let id = SessionId(self.numbers);
        self.upstreams[dial.account].opened(id.0);
        let live = Live {
            session: Session::new(session_policy(), now),
            key: dial.key,
            account: dial.account,
            call: None,
            idle_since: Some(now),
            retired: false,
        };
        self.lives.insert(id, live);
        match call {
            _ if self.draining => self.put(id, session::Input::Retire(Retired::Drained)),
            Some(number) => self.lease(number, id),
            None => self.wake(dial.key),
        }
    }

    /// Something of the key became free: its waiters plan again, in their order.
    pub(super) fn wake(&mut self, key: AffinityKey) {
        let waiters = self
            .waiting
            .get_mut(&key.hash)
            .map(std::mem::take)
            .unwrap_or_default();
        for number in waiters {
            self.calls[number].way = Way::Planning;
            self.plan(number, false);
        }
    }

    pub(super) fn put(&mut self, id: SessionId, input: session::Input) {
        let now = self.instant();
        if let Some(live) = self.lives.get_mut(&id) {
            live.session.handle(now, input);
            self.poll(id);
        }
    }

    pub(super) fn arrived(&mut self, id: SessionId, wire: Wire) {
        let Some(live) = self.lives.get(&id) else { return };
        if !self.upstreams[live.account].answers_pings(id.0) {
            return;
        }
        match wire {
            Wire::Frame(text) => {
                let framed = head::read(text.as_bytes());
                self.note_terminal(live.call, &framed.head);
                let input = session::Input::Event {
                    name: Bytes::copy_from_slice(framed.event.as_bytes()),
                    data: Bytes::copy_from_slice(text.as_bytes()),
                    head: framed.head,
                };
                self.put(id, input);
            }
            Wire::Close { too_big } => {
                if too_big {
                    let (account, now) = (live.account, self.instant());
                    self.transports[account].refused_size(now, 50_000);
                }
                self.put(id, session::Input::Closed { too_big });
            }
            Wire::Headers | Wire::Answer(_) | Wire::Lost | Wire::Refused => {}
        }
    }

    pub(super) fn note_terminal(&mut self, call: Option<usize>, head: &Head) {
        let now = self.instant();
        if let (Some(number), Head::Terminal(_)) = (call, head) {
            self.calls[number].history.terminal_at.get_or_insert(now);
        }
    }

    pub(super) fn poll(&mut self, id: SessionId) {
        while let Some(output) = self.lives.get_mut(&id).and_then(|live| live.session.poll()) {
            self.act(id, output);
        }
    }

    pub(super) fn act(&mut self, id: SessionId, output: session::Output) {
        let now = self.instant();
        let Some(live) = self.lives.get_mut(&id) else {
            return;
        };
        let (key, account, call) = (live.key, live.account, live.call);
        match output {
            session::Output::Send => {
                let number = call.expect("a send has a call");
                self.send(number, id);
            }
            session::Output::Ping => {
                if self.upstreams[account].answers_pings(id.0) {
                    self.schedule(30, Happening::Pong(id));
                }
            }
            session::Output::Close(_) => {
                if self.upstreams[account].answers_pings(id.0) {
                    self.schedule(20, Happening::Socket(id, Wire::Close { too_big: false }));
                }
            }
            session::Output::Turn(output) => {
                let number = call.expect("an output has a call");
                self.tell(number, output);
            }
            session::Output::Unsent => {
                let number = live.call.take().expect("an unsent turn has a call");
                self.free_probes(number);
                self.calls[number].way = Way::Planning;
                if self.draining {
                    self.refuse(number, Kind::Draining);
                } else if !self.calls[number].history.client_gone {
                    self.plan(number, false);
                }
            }
            session::Output::Idle => {
                live.idle_since = Some(now);
                live.call = None;
                self.wake(key);
            }
            session::Output::Retired(reason) => {
                (live.retired, live.idle_since, live.call) = (true, None, None);
                self.incidents.push(key, now, Event::SessionRetired(reason));
                if let Retired::Silent(_) = reason {
                    self.trip(key, account);
                }
                self.wake(key);
            }
            session::Output::Gone => {
                self.lives.remove(&id);
                self.upstreams[account].closed(id.0);
            }
        }
    }

    /// INV-5: a silent session costs its own key and no other, unless it is the third of its account.
    pub(super) fn trip(&mut self, key: AffinityKey, account: usize) {
        let now = self.instant();
        let keys: Vec<_> = self.keys.values().copied().collect();
        let statuses = |quarantine: &mut Quarantine| -> Vec<_> {
            keys.iter().map(|key| quarantine.status(key, now)).collect()
        };
        let before = statuses(&mut self.quarantine);
        let tripped = self.quarantine.trip(key, now).expect("quarantine is on");
        let window = tripped.window;
        self.incidents.push(key, now, Event::QuarantineOpened { window });
        if let Some(evicted) = tripped.evicted {
            self.incidents.push(evicted, now, Event::Evicted);
        }
        let after = statuses(&mut self.quarantine);
        for (other, (before, after)) in keys.iter().zip(before.iter().zip(&after)) {
            if *other != key && tripped.evicted != Some(*other) {
                assert_eq!(before, after, "another key was touched");
            }
        }
        self.transports[account].silent(key, now);
    }

    pub(super) fn send(&mut self, number: usize, id: SessionId) {
        let call = &mut self.calls[number];
        call.history.sends(Transport::WebSocket, call.account);
        let create = Create {
            call: number,
            anchor: call.anchor.as_deref(),
            store: !call.spec.unstored,
            stream: true,
        };
        let arrives = self.upstreams[call.account].create(self.now, id.0, create, &mut self.rng);
        for (at, wire) in arrives {
            self.schedule(at - self.now, Happening::Socket(id, wire));
        }
        let flush = 1 + self.rng.below(20);
        self.schedule(flush, Happening::Flushed(id, number));
    }
}
