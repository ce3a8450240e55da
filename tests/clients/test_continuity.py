"""Ten rounds of tool calls through the bridge, and the same ones without it: the model sees the same conversation."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from agents_sdk import AgentsSdk
from bridge import Simulator
from codex import Codex
from conftest import OPENCODE_IS_PINNED, Stage, staged
from opencode import Opencode
from pi import Pi
from transcript import first_difference

ROUNDS = 10
# What upstream plays: all that a reasoning model sends in ten rounds. The second prompt says otherwise.
SCRIPT = """
[[rule]]
behave = "tools(rounds=10, say=true, spaced=true) reasoning(parts={parts}){more}"
"""
# Parts of a reasoning summary. Of several, opencode sends back only the last: such a turn would go in full.
PARTS = {"opencode": 1}
# The idle socket ends when five turns were served.
CLOSED_AFTER_FIVE = " afterwards(do=close, delay=1ms, nth=5, on=ws)"
# Seven rounds make Codex compact its history: the eighth create asks for a summary, and two rounds follow.
COMPACTED_AT_EIGHT = """
[[rule]]
match = { nth = 8 }
behave = "healthy"

[[rule]]
behave = "tools(rounds=10, say=true, times=9)"
"""
# Tokens, as the simulator counts them: half a round below what seven rounds are, and half a round above six.
COMPACT_AT = 7_100
PROMPTS = ("sim:conv=work Look around.", "sim:conv=work sim:healthy Thank you.")
Prompts = Sequence[str]
Client = Callable[[Path, str, Prompts], list[str]]


def with_codex(directory: Path, base_url: str, prompts: Prompts) -> list[str]:
    codex = Codex(directory, base_url)
    return [codex.turn(prompt).answer for prompt in prompts]


def with_opencode(directory: Path, base_url: str, prompts: Prompts) -> list[str]:
    opencode = Opencode(directory, base_url)
    return [opencode.turn(prompt) for prompt in prompts]


def with_pi(directory: Path, base_url: str, prompts: Prompts) -> list[str]:
    pi = Pi(directory, base_url)
    return [pi.turn(prompt) for prompt in prompts]


def with_the_agents_sdk(directory: Path, base_url: str, prompts: Prompts) -> list[str]:
    return AgentsSdk(directory, base_url).turns(*prompts)


def with_the_agents_sdk_unstored(directory: Path, base_url: str, prompts: Prompts) -> list[str]:
    return AgentsSdk(directory, base_url, store=False).turns(*prompts)


def with_compacting_codex(directory: Path, base_url: str, prompts: Prompts) -> list[str]:
    codex = Codex(directory, base_url, compact_at=COMPACT_AT)
    return [codex.turn(prompt).answer for prompt in prompts]


CLIENTS: dict[str, Client] = {
    "codex": with_codex,
    "pi": with_pi,
    "agents-sdk": with_the_agents_sdk,
    "agents-sdk-unstored": with_the_agents_sdk_unstored,
}
if OPENCODE_IS_PINNED:
    CLIENTS["opencode"] = with_opencode

each_client = pytest.mark.parametrize("client", CLIENTS)


class Runs:
    """Runs clients one after another in one and the same place, because they tell the model where they are."""

    def __init__(self, directory: Path):
        self._directory = directory
        self._finished = 0
        self._alone: dict[str, list[dict]] = {}

    def run(self, client: str, base_url: str, prompts: Prompts = PROMPTS) -> list[str]:
        """The answers to the prompts."""
        return self.play(CLIENTS[client], base_url, prompts)

    def play(self, client: Client, base_url: str, prompts: Prompts) -> list[str]:
        here = self._directory / "here"
        here.mkdir()
        try:
            return client(here, base_url, prompts)
        finally:
            self._finished += 1
            here.rename(self._directory / f"{self._finished}-{client.__name__}")

    def alone(self, client: str) -> list[dict]:
        """What upstream saw of it without a bridge; it runs once."""
        if client not in self._alone:
            self._alone[client] = self.play_alone(CLIENTS[client], script(client), PROMPTS)
        return self._alone[client]

    def play_alone(self, client: Client, script: str, prompts: Prompts) -> list[dict]:
        simulator = Simulator(script)
        try:
            self.play(client, simulator.base_url, prompts)
            return simulator.creates()
        finally:
            simulator.stop()


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("continuity"))


def script(client: str, more: str = "") -> str:
    return SCRIPT.format(parts=PARTS.get(client, 2), more=more)


def a_stage(directory: Path, script: str):
    """Nothing is silent here, so that a busy machine is never taken for a silent upstream."""
    return staged(directory, "openai", "/v1", script=script, created_deadline="30s")


def of_the_agent(creates: list[dict]) -> list[dict]:
    """Without those that ask for a title, the only ones that offer no tools."""
    return [create for create in creates if "tools" in create["body_keys"]]


def transcripts(creates: list[dict]) -> list[list[dict]]:
    return [create["transcript"] for create in creates]


def assert_the_same_conversation(stage: Stage, alone: list[dict], calls: int) -> list[dict]:
    """Each call of the agent cost one create, all went well, and the model saw what it sees without the bridge."""
    creates = stage.simulator.creates()
    assert stage.bridge.incident() == []
    assert {(create["conclusion"], create["transport"]) for create in creates} == {("completed", "websocket")}
    assert stage.relay.creates == len(creates)
    seen, expected = of_the_agent(creates), of_the_agent(alone)[:calls]
    assert (difference := first_difference(transcripts(seen), transcripts(expected))) is None, difference
    assert [create["settings"] for create in seen] == [create["settings"] for create in expected]
    # The title is asked for at the same instant as the first turn: in either order.
    titles = [[create for create in each if create not in of_the_agent(each)] for each in (creates, alone)]
    assert (difference := first_difference(*map(transcripts, titles))) is None, difference
    return seen


def assert_continued(stage: Stage, creates: list[dict]) -> None:
    """From the second turn on at least nine of ten bring only what is new, and the bridge says so of as many."""
    continued = [create for create in creates[1:] if create["previous_response_id"]]
    assert len(continued) >= 0.9 * len(creates[1:]), [create["new_items"] for create in creates]
    # The output of a tool, or a prompt.
    assert {create["new_items"] for create in continued} == {1}
    assert stage.bridge.counted("continuation_used") == len(continued)


# [RUN-51] [RUN-52] [RUN-53] [RUN-25] Ten rounds, an answer, and a second prompt.
@each_client
def test_ten_rounds(runs, tmp_path, client):
    with a_stage(tmp_path, script(client)) as stage:
        answers = runs.run(client, stage.base_url)
        # One for each round, one for the answer to them, one for the answer to the second prompt.
        creates = assert_the_same_conversation(stage, runs.alone(client), calls=ROUNDS + 2)
        outputs = [item for item in creates[-1]["transcript"] if item.get("type") == "function_call_output"]
        assert len(outputs) == len({output["call_id"] for output in outputs}) == ROUNDS
        assert all(f"round {number}" in output["output"] for number, output in enumerate(outputs, 1)), outputs
        assert all(re.search(rf"\[work\] {len(c['transcript'])} items", a) for a, c in zip(answers, creates[-2:]))
        assert len({create["socket"] for create in creates}) == 1, "the turns did not share a socket"
        assert_continued(stage, creates)


# [RUN-54] [RUN-52] [RUN-53] The idle socket is closed in the middle: the next turn goes in full, and the rounds go on.
@pytest.mark.parametrize("client", [client for client in CLIENTS if client != "agents-sdk"])
def test_a_socket_is_lost(runs, tmp_path, client):
    with a_stage(tmp_path, script(client, CLOSED_AFTER_FIVE)) as stage:
        runs.run(client, stage.base_url, PROMPTS[:1])
        creates = assert_the_same_conversation(stage, runs.alone(client), calls=ROUNDS + 1)
        sockets = [create["socket"] for create in creates]
        assert len(set(sockets)) == 2, sockets
        moved = (create for create, before in zip(creates[1:], creates) if create["socket"] != before["socket"])
        (first_on_the_new,) = moved
        assert first_on_the_new["previous_response_id"] is None
        assert_continued(stage, creates)


# [RUN-56] [RUN-52] Codex replaces its history by a summary in the middle of the rounds.
def test_a_compaction(runs, tmp_path):
    alone = runs.play_alone(with_compacting_codex, COMPACTED_AT_EIGHT, PROMPTS[:1])
    windows = [create["headers"]["x-codex-window-id"].rsplit(":")[-1] for create in alone]
    assert windows == ["0"] * 8 + ["1"] * 3
    with a_stage(tmp_path, COMPACTED_AT_EIGHT) as stage:
        runs.play(with_compacting_codex, stage.base_url, PROMPTS[:1])
        creates = assert_the_same_conversation(stage, alone, calls=11)
        in_full = [number for number, create in enumerate(creates, 1) if not create["previous_response_id"]]
        # The request for a summary offers no tools, and what follows it has another history.
        assert in_full == [1, 8, 9]


# [RUN-55] What a client sends back of what upstream sent has the fields that its fixture says.
@each_client
def test_the_fixture_of_what_is_sent_back(runs, client):
    name = {"agents-sdk-unstored": "agents-sdk"}.get(client, client)
    fixture = json.loads((Path(__file__).parents[2] / "fixtures" / "resend" / f"{name}.json").read_text())

    def fields(items: list[dict]) -> dict[str, set[str]]:
        return {item.get("type", "message"): set(item) - {"phase"} for item in items if item.get("role") != "user"}

    last, creates = of_the_agent(runs.alone(client))[-1], of_the_agent(runs.alone(client))[:-1]
    own = [item for item in last["transcript"] if item.get("role") not in ("user", "developer", "system")]
    sent_back = [item for item in own if not item.get("type", "").endswith("_output")]
    sent = [item for create in creates for item in create["output"]]
    assert len(sent_back) == len(sent)
    assert fields(sent) | fields(fixture["output"]) == fields(fixture["output"])
    assert fields(sent_back) | fields(fixture["resent"]) == fields(fixture["resent"])
