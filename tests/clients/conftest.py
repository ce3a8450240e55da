"""The stage for each test: a simulated upstream, a bridge before it, and a relay that counts the client's calls."""

import json
import platform
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from bridge import INCIDENT, Bridge, Simulator
from relay import CountingRelay

# opencode's programs for other machines are not pinned; everywhere else its absence is a failure like any other.
OPENCODE_IS_PINNED = (platform.system(), platform.machine()) == ("Linux", "x86_64")
if not OPENCODE_IS_PINNED:
    collect_ignore = ["test_opencode.py"]

# Long enough for a client's own retry (up to 8 s after a failure, sooner with Retry-After) to fall inside.
QUARANTINE_WINDOW = 4.0


@dataclass
class Stage:
    simulator: Simulator
    bridge: Bridge
    relay: CountingRelay

    @property
    def base_url(self) -> str:
        """What the client is given in place of https://api.openai.com/v1."""
        return self.relay.base_url

    def assert_healthy(self, conversation: str, calls: int, *, outputs: int = 0) -> None:
        """The client made `calls` calls, each cost one create over one and the same socket, and nothing went wrong.

        The model saw the whole conversation, nothing twice: a user message per call, or `outputs` of tools.
        """
        creates = self.simulator.creates()
        assert self.relay.creates == calls
        assert [create["transport"] for create in creates] == ["websocket"] * calls
        assert {create["conversation"] for create in creates} == {conversation}
        assert len({create["socket"] for create in creates}) == 1, "the turns did not share a socket"
        assert self.bridge.incident() == []
        transcript = creates[-1]["transcript"]
        prompts = [item for item in transcript if item.get("role") == "user" and "sim:conv=" in json.dumps(item)]
        assert len(prompts) == (1 if outputs else calls)
        answered = [item["call_id"] for item in transcript if item.get("type") == "function_call_output"]
        assert len(answered) == len(set(answered)) == outputs

    def assert_calls(self, conversation: str, conclusions: list) -> None:
        """Each call of the client cost one create, and they ended so, oldest first."""
        creates = self.simulator.creates()
        assert [create["conclusion"] for create in creates] == conclusions
        assert self.relay.creates == len(creates)
        assert {create["conversation"] for create in creates} == {conversation}

    def wait_for_the_window_to_pass(self) -> None:
        """The quarantine is open; returns when the next turn may probe."""
        opened = datetime.fromisoformat(self.bridge.wait_for_event("quarantine_opened")["ts"]).timestamp()
        time.sleep(max(0.0, opened + QUARANTINE_WINDOW + 0.2 - time.time()))

    def assert_incident(self, conversation: str) -> None:
        """Silent, retried over HTTP, probed, cleared: three calls of the client, each of which cost one create."""
        self.bridge.wait_for_event("quarantine_cleared")
        assert self.bridge.incident() == INCIDENT
        creates = self.simulator.creates()
        assert self.relay.creates == len(creates) == 3
        assert {create["conversation"] for create in creates} == {conversation}
        assert [create["transport"] for create in creates] == ["websocket", "http", "websocket"]
        assert creates[0]["socket"] != creates[2]["socket"], "the probe took the silent socket"


@contextmanager
def staged(
    directory: Path, kind: str, path: str, *, script: str = "", created_deadline: str = "1s"
) -> Iterator[Stage]:
    with ExitStack() as ending:
        simulator = Simulator(script)
        ending.callback(simulator.stop)
        bridge = Bridge(
            directory,
            simulator.root + path,
            kind=kind,
            created_deadline=created_deadline,
            quarantine_window=f"{QUARANTINE_WINDOW:.0f}s",
        )
        ending.callback(bridge.stop)
        relay = CountingRelay(bridge.port)
        ending.callback(relay.close)
        yield Stage(simulator, bridge, relay)


@pytest.fixture
def stage(tmp_path: Path):
    """Before the API."""
    with staged(tmp_path, "openai", "/v1") as stage:
        yield stage


@pytest.fixture
def chatgpt_stage(tmp_path: Path):
    """Before the ChatGPT backend."""
    with staged(tmp_path, "chatgpt", "/backend-api/codex") as stage:
        yield stage
