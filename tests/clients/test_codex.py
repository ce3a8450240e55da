"""Codex CLI through the bridge."""

import pytest

from codex import Codex


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
