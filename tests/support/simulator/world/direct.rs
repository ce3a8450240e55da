//! Direct HTTP.

use super::*;

impl World {
    pub(super) fn http(&mut self, number: usize, reason: Direct) {
        let now = self.instant();
        let call = &mut self.calls[number];
        assert!(
            call.key_probe.is_none() && call.transport_probe.is_none(),
            "a probe goes by WebSocket"
        );
        call.history.direct = Some(reason);
        if reason == Direct::Quarantined {
            self.incidents.push(call.key, now, Event::HttpFallback);
        }
        let create = Create {
            call: number,
            anchor: call.anchor.as_deref(),
            store: !call.spec.unstored,
            stream: !call.spec.json,
        };
        let arrives = self.upstreams[call.account].post(self.now, create, &mut self.rng);
        let mut turn = Turn::new(
            turn_policy(Transport::Http, call.spec.json),
            call.history.arrived,
            None,
        );
        if !matches!(arrives.first(), Some((_, Wire::Refused))) {
            call.history.sends(Transport::Http, call.account);
            turn.handle(now, turn::Input::Wrote);
            turn.handle(now, turn::Input::Flushed);
        }
        call.way = Way::Http(turn.into());
        for (at, wire) in arrives {
            self.schedule(at - self.now, Happening::Http(number, wire));
        }
        self.poll_http(number);
    }

    pub(super) fn arrived_http(&mut self, number: usize, wire: Wire) {
        let input = match wire {
            Wire::Headers => turn::Input::Headers,
            Wire::Frame(text) => {
                let framed = head::read(text.as_bytes());
                let running = matches!(self.calls[number].way, Way::Http(_));
                self.note_terminal(running.then_some(number), &framed.head);
                turn::Input::Event {
                    name: Bytes::copy_from_slice(framed.event.as_bytes()),
                    data: Bytes::copy_from_slice(text.as_bytes()),
                    head: framed.head,
                }
            }
            Wire::Answer(status) => {
                let body = br#"{"error":{"message":"m"}}"#;
                turn::Input::Rejected(WireError::from_http(status, &http::HeaderMap::new(), body).into())
            }
            Wire::Lost | Wire::Close { .. } => turn::Input::Lost(Kind::Truncated),
            Wire::Refused => turn::Input::Lost(Kind::ConnectFailed),
        };
        self.put_http(number, input);
    }

    pub(super) fn put_http(&mut self, number: usize, input: turn::Input) {
        let now = self.instant();
        if let Way::Http(turn) = &mut self.calls[number].way {
            turn.handle(now, input);
            self.poll_http(number);
        }
    }

    pub(super) fn poll_http(&mut self, number: usize) {
        while let Way::Http(turn) = &mut self.calls[number].way {
            let Some(output) = turn.poll() else { return };
            self.tell(number, output);
        }
    }
}
