"""Codex CLI through the bridge."""

import pytest

from codex import Codex
from faults import ENDLESS, RATE_LIMIT, TOO_LONG, before_created, in_mid_stream


@pytest.fixture
def codex(stage, tmp_path):
    return Codex(tmp_path, stage.base_url)


# [RUN-20] [RUN-25] Codex streams a turn.
def test_a_streaming_turn(stage, codex):
    turn = codex.turn("sim:conv=codex sim:text(n=20)")
    assert turn.answer
    assert turn.usage["output_tokens"] > 0
    stage.assert_healthy("codex", calls=1)


# [RUN-22] [RUN-25] Three turns of one thread, each with the whole history.
def test_a_conversation(stage, codex):
    for _ in range(3):
        assert codex.turn("sim:conv=codex sim:text(n=5)").answer
    stage.assert_healthy("codex", calls=3)


# [RUN-23] [RUN-25] Codex runs the command that upstream asks for, five times.
def test_five_rounds_of_tool_calls(stage, codex):
    turn = codex.turn("sim:conv=codex sim:tools(rounds=5)")
    runs = turn.items("command_execution")
    assert [run["exit_code"] for run in runs] == [0] * 5, runs
    assert turn.answer
    stage.assert_healthy("codex", calls=6, outputs=5)


# [RUN-24] Codex retries the silent turn by itself, goes on over HTTP, and its next turn clears the quarantine.
def test_the_incident(stage, codex):
    assert codex.turn("sim:conv=codex sim:silent(times=1)").answer
    stage.wait_for_the_window_to_pass()
    assert codex.turn("sim:conv=codex and on").answer
    stage.assert_incident("codex")


# [RUN-26] Asked to use WebSockets, Codex hears 426 and uses HTTP at once.
def test_an_upgrade(stage, tmp_path):
    codex = Codex(tmp_path, stage.base_url, websockets=True)
    assert codex.turn("sim:conv=codex sim:text(n=5)").answer
    assert stage.relay.upgrades == 1
    stage.assert_healthy("codex", calls=1)


# [RUN-20] [RUN-22] [RUN-25] Logged in with ChatGPT: its own paths, and its account upstream.
def test_a_chatgpt_login(chatgpt_stage, tmp_path):
    codex = Codex(tmp_path, f"{chatgpt_stage.relay.root}/backend-api/codex", account="account-1")
    for _ in range(2):
        assert codex.turn("sim:conv=codex sim:text(n=5)").answer
    chatgpt_stage.assert_healthy("codex", calls=2)
    for create in chatgpt_stage.simulator.creates():
        assert create["path"] == "/backend-api/codex/responses"
        assert create["headers"]["chatgpt-account-id"] == "account-1"


# [RUN-27] Codex retries by itself, without a word to its user.
@before_created
def test_upstream_breaks_off(stage, codex, end):
    turn = codex.turn(f"sim:conv=codex {end}")
    assert turn.answer and not turn.errors
    stage.assert_calls("codex", ["broken", "completed"])


# [RUN-27] Codex tells its user, retries by itself, and the user gets the answer once.
@in_mid_stream
def test_upstream_breaks_off_in_mid_stream(stage, codex, end):
    turn = codex.turn(f"sim:conv=codex sim:text(n=5) {end}")
    assert len(turn.errors) == len(turn.items("agent_message")) == 1
    stage.assert_calls("codex", ["broken", "completed"])


# [RUN-28] A rejection that says when to come back is waited for.
def test_a_rate_limit(stage, codex):
    assert codex.turn(f"sim:conv=codex {RATE_LIMIT}").answer
    stage.assert_calls("codex", [{"errored": 429}, "completed"])


# [RUN-28] A code that Codex knows is told in its own words, and is not tried again.
def test_a_final_rejection(stage, codex):
    turn = codex.turn(f"sim:conv=codex {TOO_LONG}", succeeds=False)
    assert "context window" in turn.errors[-1]
    stage.assert_calls("codex", [{"errored": 400}])


# [RUN-29] A user who ends Codex ends the turn.
def test_the_user_leaves(stage, codex):
    program = codex.start(f"sim:conv=codex {ENDLESS}")
    stage.simulator.wait_for_conclusion("running", within=30)
    program.stop()
    stage.simulator.wait_for_conclusion("client_gone", within=1)
