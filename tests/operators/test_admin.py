"""The admin API as programs meet it: its document, what a fuzzer of documents makes of it, and the commands that use it."""

import json
import os
import re
import subprocess
import sys

import httpx
import pytest
from openapi_spec_validator import validate

from page_stage import TOKEN, staged
from places import BRIDGE

HEADERS = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def bridge(tmp_path_factory):
    with staged(tmp_path_factory.mktemp("admin")) as running:
        yield running


def command(bridge, *words: str, token: str | None = TOKEN) -> subprocess.CompletedProcess:
    """A command of an operator's, at this bridge."""
    env = {name: value for name, value in os.environ.items() if name != "BRIDGE_ADMIN_TOKEN"}
    if token:
        env["BRIDGE_ADMIN_TOKEN"] = token
    line = [str(BRIDGE), *words, "--url", bridge.root]
    return subprocess.run(line, env=env, capture_output=True, text=True, timeout=30)


# [ADM-7] A validator accepts the document.
def test_the_document_is_valid(bridge):
    document = httpx.get(f"{bridge.root}/admin/openapi.json", headers=HEADERS).json()
    assert document["openapi"].startswith("3.1")
    validate(document)
    assert len(document["paths"]) >= 15


# [ADM-7] What the bridge answers to generated requests, right and wrong ones, is what the document says.
def test_schemathesis(bridge, tmp_path):
    line = [
        sys.executable, "-m", "schemathesis.cli", "run", f"{bridge.root}/admin/openapi.json",
        "--header", f"Authorization: Bearer {TOKEN}",
        # One check sends wrong tokens until it is told to wait, and takes 429 for a fault: that is ADM-4, and has tests of its own.
        "--checks", "all", "--exclude-checks", "ignored_auth", "--seed", "4", "--max-examples", "15", "--request-timeout", "10",
        "--exclude-path", "/admin/events", "--no-color",
    ]
    ran = subprocess.run(line, capture_output=True, text=True, timeout=240, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout[-60000:] + ran.stderr[-2000:]


# [ADM-31] [ADM-33] One screen, within 100 columns, and the exit code says how it is.
def test_status(bridge):
    told = command(bridge, "status")
    assert told.returncode in (0, 1), told.stderr
    assert max(map(len, told.stdout.splitlines())) <= 100
    assert json.loads(command(bridge, "status", "--json").stdout)
    for token, told in ((None, "BRIDGE_ADMIN_TOKEN"), ("wrong", "admin token")):
        refused = command(bridge, "status", token=token)
        assert refused.returncode == 2 and told in refused.stderr, refused.stderr
        assert TOKEN not in refused.stderr


def says(status: subprocess.CompletedProcess, subject: str) -> str:
    """What the screen says of a subject."""
    assert max(map(len, status.stdout.splitlines())) <= 100, status.stdout
    return next(line for line in status.stdout.splitlines() if line.startswith(f"  {subject} "))


# [ADM-31] [ADM-33] A bridge that is well is 0, and one of which something has to be looked at is 1 and says what; the caps are there.
def test_well_and_sick(tmp_path):
    with staged(tmp_path) as bridge:
        bridge.program.wait_until(lambda: command(bridge, "status").returncode == 0, 20, "a bridge that is well")
        well = command(bridge, "status")
        assert (well.returncode, says(well, "health").split()) == (0, ["health", "ok"])
        assert re.search(r" 0 of \d+: 0 idle, 0 busy, 0 opening \(\d+ at most for each conversation\)", says(well, "sessions"))
        assert re.search(r" 0 running, 0 of them waiting \(\d+ at most for each conversation\)", says(well, "turns"))
        assert command(bridge, "drain").returncode == 0
        drained = command(bridge, "status")
        assert drained.returncode == 1 and "draining" in says(drained, "health")
        assert command(bridge, "drain", "--off").returncode == 0
        bridge.silence("sick")
        sick = command(bridge, "status")
        assert sick.returncode == 1 and "1 key in quarantine" in says(sick, "health")
        assert json.loads(command(bridge, "status", "--json").stdout)["data"]["overview"]["quarantined_keys"] == 1


# [ADM-33] A bridge that is not there is told of as that.
def test_no_bridge():
    line = [str(BRIDGE), "status", "--url", "http://127.0.0.1:1"]
    told = subprocess.run(line, env={**os.environ, "BRIDGE_ADMIN_TOKEN": TOKEN}, capture_output=True, text=True, timeout=30)
    assert told.returncode == 2 and told.stderr and not told.stdout


# [ADM-14] [ADM-33] A quarantined key is listed and cleared by its printed form.
def test_quarantine(bridge):
    bridge.silence("listed")
    listed = command(bridge, "quarantine", "ls")
    assert listed.returncode == 0 and listed.stdout.strip(), listed.stderr
    key = listed.stdout.splitlines()[1].split()[0]
    assert command(bridge, "quarantine", "clear", key).returncode == 0
    for wrong, message in (
        (
            "0123456789ab",
            "responses-bridge: This key is not in quarantine: `GET quarantine`, or `responses-bridge quarantine ls`, shows those that are.\n",
        ),
        ("nosuch", "responses-bridge: a key is 12 hexadecimal digits, as `quarantine ls` shows it\n"),
    ):
        told = command(bridge, "quarantine", "clear", wrong)
        assert (told.returncode, told.stdout, told.stderr) == (1, "", message)


# [ADM-13] [ADM-31] Which account, for how long, and how much longer, also of a key whose only turn was the silent one; 100 columns.
def test_quarantine_is_listed(tmp_path):
    with staged(tmp_path) as bridge:
        assert command(bridge, "quarantine", "ls").stdout == "no key is in quarantine\n"
        bridge.silence("only")
        listed = command(bridge, "quarantine", "ls").stdout
        row = r"[0-9a-f]{12}  openai/(main|spare) +open     for \d+s +(9m \d+s|10m 0s) left +level 1  thread"
        head, line = listed.splitlines()
        assert head.split() == ["key", "account", "state", "held", "left", "level", "kind"]
        assert re.fullmatch(row, line) and max(len(head), len(line)) <= 100, listed
        (key,) = json.loads(command(bridge, "quarantine", "ls", "--json").stdout)["data"]
        assert key["since_ms"] >= 0 and key["account"].startswith("openai/")


# [ADM-16] [ADM-33] No new turns, and back.
def test_drain(bridge):
    assert command(bridge, "drain").returncode == 0
    assert bridge.turn("hello", "drained").status_code == 503
    assert command(bridge, "drain", "--off").returncode == 0
    assert bridge.turn("hello", "drained").status_code == 200
