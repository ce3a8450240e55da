"""openai-node through the bridge, with its own retries and time-outs."""

import json
import os
from pathlib import Path

import pytest

from places import NODE_MODULES
from programs import Program

CLIENT = Path(__file__).parent / "node" / "client.cjs"

both_modes = pytest.mark.parametrize("mode", ["stream", "json"])


def play(stage, scenario: str, mode: str) -> dict:
    """Runs one scenario of client.cjs; what the caller saw."""
    program = Program(
        ["node", str(CLIENT), scenario, mode],
        env={"PATH": os.environ["PATH"], "NODE_PATH": str(NODE_MODULES), "BASE_URL": stage.base_url},
    )
    assert program.finish(within=60) == 0, program.transcript()
    seen = json.loads(program.stdout[-1])
    assert seen["status"] == "completed", seen
    return seen


# [RUN-20] [RUN-25] The stream helper, which throws on any event before `response.created`.
def test_a_streaming_turn(stage):
    seen = play(stage, "turn", "stream")
    assert seen["kinds"][0] == "response.created" and seen["kinds"][-1] == "response.completed"
    assert seen["kinds"].count("response.output_text.delta") == 20
    assert seen["text"] and seen["output_tokens"] > 0
    stage.assert_healthy("node", calls=1)


# [RUN-21] [RUN-25] One object.
def test_a_turn_without_streaming(stage):
    seen = play(stage, "turn", "json")
    assert seen["text"] and seen["output_tokens"] > 0
    stage.assert_healthy("node", calls=1)


# [RUN-22] [RUN-25] Three turns, by `previous_response_id` and by history.
@both_modes
@pytest.mark.parametrize("way", ["anchors", "history"])
def test_a_conversation(stage, way, mode):
    assert play(stage, way, mode)["text"]
    stage.assert_healthy("node", calls=3)


# [RUN-23] [RUN-25] The tool loop.
@both_modes
def test_five_rounds_of_tool_calls(stage, mode):
    seen = play(stage, "tools", mode)
    assert seen["ran"] == 5 and seen["text"]
    stage.assert_healthy("node", calls=6, outputs=5)


# [RUN-24] The SDK retries the silent turn by itself, is served over HTTP, and its next turn clears the quarantine.
@both_modes
def test_the_incident(stage, mode):
    play(stage, "incident", mode)
    stage.wait_for_the_window_to_pass()
    play(stage, "afterwards", mode)
    stage.assert_incident("node")
