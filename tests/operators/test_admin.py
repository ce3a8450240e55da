"""The admin API as programs meet it: its document, what a fuzzer of documents makes of it, and the commands that use it."""

import json
import os
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
    key = listed.stdout.split()[0]
    assert command(bridge, "quarantine", "clear", key).returncode == 0
    assert command(bridge, "quarantine", "clear", "0123456789ab").returncode == 1


# [ADM-16] [ADM-33] No new turns, and back.
def test_drain(bridge):
    assert command(bridge, "drain").returncode == 0
    assert bridge.turn("hello", "drained").status_code == 503
    assert command(bridge, "drain", "--off").returncode == 0
    assert bridge.turn("hello", "drained").status_code == 200
