"""openai-node through the bridge, with its own retries and time-outs."""

import json
import os
from pathlib import Path

import pytest

from faults import ENDLESS, RATE_LIMIT, TOO_LONG, before_created, in_mid_stream
from places import NODE_MODULES
from programs import Program

CLIENT = Path(__file__).parent / "node" / "client.cjs"

both_modes = pytest.mark.parametrize("mode", ["stream", "json"])


def run(stage, scenario: str, mode: str, prompt: str = "") -> dict:
    """Runs one scenario of client.cjs; what the caller saw."""
    program = Program(
        ["node", str(CLIENT), scenario, mode, prompt],
        env={"PATH": os.environ["PATH"], "NODE_PATH": str(NODE_MODULES), "BASE_URL": stage.base_url},
    )
    assert program.finish(within=60) == 0, program.transcript()
    return json.loads(program.stdout[-1])


def play(stage, scenario: str, mode: str, prompt: str = "") -> dict:
    """The same, of one that ends with an answer."""
    seen = run(stage, scenario, mode, prompt)
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
    play(stage, "say", mode, "sim:conv=node sim:silent(times=1)")
    stage.wait_for_the_window_to_pass()
    play(stage, "say", mode, "sim:conv=node and on")
    stage.assert_incident("node")


# [RUN-27] The SDK retries by itself.
@both_modes
@before_created
def test_upstream_breaks_off(stage, mode, end):
    assert play(stage, "say", mode, f"sim:conv=node {end}")["text"]
    stage.assert_calls("node", ["broken", "completed"])


# [RUN-27] A stream that has begun ends in a failure that the caller can read; it is not begun again behind its back.
@in_mid_stream
def test_upstream_breaks_off_in_mid_stream(stage, end):
    seen = run(stage, "listen", "stream", f"sim:conv=node sim:text(n=5) {end}")
    assert (seen["kinds"][0], seen["kinds"][-1]) == ("response.created", "response.failed")
    assert seen["status"] == "failed" and seen["code"]
    stage.assert_calls("node", ["broken"])


# [RUN-27] Without streaming nothing has begun: the SDK retries by itself.
@in_mid_stream
def test_upstream_breaks_off_in_mid_answer(stage, end):
    assert play(stage, "say", "json", f"sim:conv=node sim:text(n=5) {end}")["text"]
    stage.assert_calls("node", ["broken", "completed"])


# [RUN-28] A rejection is what the API itself would have said.
@both_modes
def test_a_rejection(stage, mode):
    limit = run(stage, "fail", mode, f"sim:conv=node {RATE_LIMIT}")
    assert (limit["name"], limit["code"]) == ("RateLimitError", "rate_limit_exceeded")
    assert limit["retry_after"] == "1"
    rejection = run(stage, "fail", mode, f"sim:conv=node {TOO_LONG}")
    assert (rejection["name"], rejection["code"], rejection["param"]) == (
        "BadRequestError",
        "context_length_exceeded",
        "input",
    )
    stage.assert_calls("node", [{"errored": 429}, {"errored": 400}])


# [RUN-28] The SDK waits as long as it is told, and tries again.
def test_a_rate_limit(stage):
    play(stage, "say", "stream", f"sim:conv=node {RATE_LIMIT}")
    stage.assert_calls("node", [{"errored": 429}, "completed"])


# [RUN-29] A caller who leaves a stream, or an answer that takes too long, ends the turn.
@both_modes
def test_the_caller_leaves(stage, mode):
    left = run(stage, "leave", mode, f"sim:conv=node {ENDLESS}")
    assert left["status"] == ("response.created" if mode == "stream" else "APIUserAbortError")
    stage.simulator.wait_for_conclusion("client_gone", within=1)
