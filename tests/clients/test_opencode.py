"""opencode through the bridge. With its first turn it asks for a title, at the same instant and with the same headers."""

import json
import subprocess
from pathlib import Path

import pytest

from bridge import INCIDENT
from opencode import OPENCODE, Opencode


@pytest.fixture
def opencode(stage, tmp_path):
    return Opencode(tmp_path, stage.base_url)


def assert_one_create_per_call(stage) -> list[dict]:
    creates = stage.simulator.creates()
    assert stage.relay.creates == len(creates)
    return creates


# [RUN-50] opencode runs, and it is the pinned one.
def test_the_pin():
    pinned = json.loads((Path(__file__).parent / "node" / "package.json").read_text())["optionalDependencies"]
    printed = subprocess.run([OPENCODE, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert [printed.strip()] == list(pinned.values())


# [RUN-20] [RUN-22] [RUN-25] A conversation; the title's turn is not mixed up with it.
def test_a_conversation(stage, opencode):
    for turn in range(2):
        assert opencode.turn(f"sim:conv=opencode sim:text(n=5) turn {turn}")
    creates = assert_one_create_per_call(stage)
    assert {create["transport"] for create in creates} == {"websocket"}
    assert {create["conclusion"] for create in creates} == {"completed"}
    asked = [item["content"][0]["text"] for item in creates[-1]["transcript"] if item.get("role") == "user"]
    assert [prompt.strip('"')[-6:] for prompt in asked] == ["turn 0", "turn 1"], asked
    assert stage.bridge.incident() == []


# [RUN-24] Whatever opencode asks for first is silent; its own retry goes over HTTP, and its next turn clears the quarantine.
def test_the_incident(stage, opencode):
    assert opencode.turn("sim:conv=opencode sim:silent(times=2,on=ws)")
    stage.wait_for_the_window_to_pass()
    assert opencode.turn("sim:conv=opencode and on")
    stage.bridge.wait_for_event("quarantine_cleared")
    # The title and the turn may both have been silent, side by side.
    assert list(dict.fromkeys(stage.bridge.incident())) == INCIDENT
    assert_one_create_per_call(stage)
