"""What every command prints of a bridge whose names are as long as names may be: it fits, and --json is JSON."""

import json
import os
import subprocess

import pytest

import page_stage
from page_stage import CREDENTIAL, TOKEN, staged
from places import BRIDGE

PROVIDER, MAIN, SPARE = "p" * 32, "a" * 32, "b" * 32


@pytest.fixture(scope="module")
def bridge(tmp_path_factory):
    """After one incident, which the journal has."""
    config = page_stage.CONFIG.replace("providers.openai", f"providers.{PROVIDER}").replace('"main"', f'"{MAIN}"')
    before, page_stage.CONFIG = page_stage.CONFIG, config.replace('"spare"', f'"{SPARE}"')
    try:
        directory = tmp_path_factory.mktemp("tables")
        with staged(directory) as running:
            running.directory = directory
            running.silence("long")
            running.turn("hello", "long")
            running.program.wait_until(lambda: "quarantine_http_fallback" in run(running, "events"), 20, "the journal")
            yield running
    finally:
        page_stage.CONFIG = before


def line(bridge, verb: str) -> list[str]:
    state = ["--state", str(bridge.directory / "state")]
    return {
        "events": ["events", *state],
        "explain": ["explain", "long", *state],
        "tune": ["tune", *state],
        "status": ["status", "--url", bridge.root],
        "quarantine": ["quarantine", "ls", "--url", bridge.root],
        "rehearse": ["rehearse", "--config", str(bridge.directory / "bridge.toml"), "--clients", "2"],
        "check": ["check", "--config", str(bridge.directory / "bridge.toml")],
    }[verb]


def run(bridge, verb: str, *more: str) -> str:
    env = {**os.environ, "BRIDGE_ADMIN_TOKEN": TOKEN, "PLANTED_CREDENTIAL": CREDENTIAL, "OTHER_CREDENTIAL": CREDENTIAL + "-2"}
    ran = subprocess.run([str(BRIDGE), *line(bridge, verb), *more], env=env, capture_output=True, text=True, timeout=60)
    # A key is in quarantine: status says so by its exit code.
    assert ran.returncode == (1 if verb == "status" else 0), ran.stdout + ran.stderr
    return ran.stdout


VERBS = ("events", "explain", "tune", "status", "quarantine", "rehearse")


# [JRN-11] [JRN-16] [TUNE-1] [ADM-31] [REH-11] No line is wider than 100 columns, whatever names there are, and none has colour here.
# What explain says in the end is one line where nobody sits at a terminal (EXP-7).
@pytest.mark.parametrize("verb", VERBS)
def test_it_fits(bridge, verb):
    told = run(bridge, verb)
    lines = told.splitlines()[:-1] if verb == "explain" else told.splitlines()
    assert len(lines) >= 1 and max(map(len, lines)) <= 100, told
    assert "\x1b" not in told


# [JRN-11] [TUNE-1] [ADM-31] [REH-13] For programs each has objects: one on each line of events, else one in all.
@pytest.mark.parametrize("verb", (*VERBS, "check"))
def test_it_is_json(bridge, verb):
    told = run(bridge, verb, "--json")
    for text in told.splitlines() if verb == "events" else [told]:
        assert isinstance(json.loads(text), dict)


# [JRN-16] [ADM-31] Who is told of is there, key and account, from the beginning to the end of its name.
def test_who_is_told_of(bridge):
    (held,) = json.loads(run(bridge, "quarantine", "--json"))["data"]
    key, account = held["key"], held["account"]
    assert account in (f"{PROVIDER}/{MAIN}", f"{PROVIDER}/{SPARE}")
    for verb in ("quarantine", "status"):
        assert f"{key}  {account}" in run(bridge, verb)
    named = [row.split() for row in run(bridge, "events").splitlines() if " quarantine_" in row]
    assert len(named) == 2
    for row in named:
        words = [word for word in row if word != "!"]
        begin, end = words[3].split("…")
        assert words[2] == key and account.startswith(begin) and account.endswith(end) and len(begin) >= 15
