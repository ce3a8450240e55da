"""The two programs of the product that these tests run: the bridge and its simulated upstream."""

import json
import re
import time
from pathlib import Path

import httpx

from places import BRIDGE
from programs import Program

LISTENING = r"http://127\.0\.0\.1:(\d+)"

INCIDENT = [
    "response_created_timeout",
    "session_retired",
    "quarantine_opened",
    "quarantine_http_fallback",
    "quarantine_probe",
    "quarantine_cleared",
]

CONFIG = """
[server]
listen = "127.0.0.1:0"

[providers.{kind}]
kind = "{kind}"
base_url = "{upstream}"
transport = "{transport}"

[[providers.{kind}.accounts]]
name = "main"
credential = "client"

[watchdog]
response_created_deadline = "{created_deadline}"

[quarantine]
window = "{quarantine_window}"

[state]
path = "{state}"
"""


class Bridge:
    """`serve` before one upstream, with the callers' own credentials, on a free port."""

    def __init__(
        self,
        directory: Path,
        upstream: str,
        *,
        kind: str = "openai",
        transport: str = "auto",
        created_deadline: str = "60s",
        quarantine_window: str = "60s",
    ):
        config = directory / "bridge.toml"
        config.write_text(
            CONFIG.format(
                kind=kind,
                upstream=upstream,
                transport=transport,
                created_deadline=created_deadline,
                quarantine_window=quarantine_window,
                state=directory / "state",
            )
        )
        self.program = Program([str(BRIDGE), "serve", "--config", str(config)])
        self.port = int(self.program.wait_for(LISTENING, within=20).group(1))
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        ready = httpx.get(f"http://127.0.0.1:{self.port}/health/ready", timeout=10)
        assert ready.status_code == 200, ready.text

    def events(self) -> list[dict]:
        """Every event so far, in the order of the log."""
        return [json.loads(line) for line in self.program.stderr if line.startswith("{")]

    def counted(self, name: str) -> int:
        """How often an event was, also one that is too ordinary for the log."""
        answer = httpx.get(f"http://127.0.0.1:{self.port}/metrics", timeout=10)
        lines = re.findall(rf'^bridge_events_total{{[^}}]*\bevent="{name}"[^}}]*}} (\d+)$', answer.text, re.MULTILINE)
        return sum(map(int, lines))

    def wait_for_event(self, name: str, within: float = 10) -> dict:
        return self.program.wait_until(
            lambda: next((e for e in self.events() if e.get("event") == name), None), within, f"event {name}"
        )

    def incident(self) -> list[str]:
        """The events that tell of an incident, in the order of the log; none on a healthy run."""
        names = [event["event"] for event in self.events() if event.get("event") in INCIDENT]
        # Sockets retire for everyday reasons too: alone, that tells of no incident.
        return names if set(names) != {"session_retired"} else []

    def stop(self) -> None:
        self.program.stop()


class Simulator:
    """`simulate`, the upstream that misbehaves on request."""

    def __init__(self, script: str = ""):
        """Plays `script` (TOML) where a prompt has no markers."""
        self.program = Program([str(BRIDGE), "simulate", "--listen", "127.0.0.1:0"])
        port = self.program.wait_for(LISTENING, within=20).group(1)
        self.root = f"http://127.0.0.1:{port}"
        self.base_url = f"{self.root}/v1"
        if script:
            answer = httpx.post(f"{self.root}/__sim/script", content=script, timeout=10)
            assert answer.status_code == 200, answer.text

    def creates(self) -> list[dict]:
        """Every create that arrived, oldest first, with the transcript that the model saw."""
        answer = httpx.get(f"{self.root}/__sim/ledger", timeout=10)
        assert answer.status_code == 200, answer.text
        return answer.json()["creates"]

    def wait_for_conclusion(self, conclusion: str, within: float) -> None:
        """Until the only create has ended so, or has begun (`running`); `within` is in seconds."""
        end = time.monotonic() + within
        while (seen := [create["conclusion"] for create in self.creates()]) != [conclusion]:
            assert time.monotonic() < end, f"{seen}: {conclusion} not within {within} s"
            time.sleep(0.02)

    def stop(self) -> None:
        self.program.stop()
