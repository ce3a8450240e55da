"""The clients are there, and they are the pinned ones."""

import json
import os
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from codex import CODEX
from pi import PI
from places import NODE_MODULES

HERE = Path(__file__).parent
PINNED_PYTHON = dict(re.findall(r"^([\w-]+)==(\S+)$", (HERE / "requirements.txt").read_text(), re.MULTILINE))
PINNED_NODE = json.loads((HERE / "node" / "package.json").read_text())["dependencies"]


# [RUN-50] openai-python, the Agents SDK, and what reads its answers.
@pytest.mark.parametrize("package", ["openai", "openai-agents", "httpx", "websockets", "pytest"])
def test_python_package(package):
    assert version(package) == PINNED_PYTHON[package]


# [RUN-50] openai-node.
def test_openai_node():
    manifest = json.loads((NODE_MODULES / "openai" / "package.json").read_text())
    assert manifest["version"] == PINNED_NODE["openai"]


# [RUN-50] Codex CLI runs.
def test_codex():
    printed = subprocess.run([CODEX, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout
    assert printed.split() == ["codex-cli", PINNED_NODE["@openai/codex"]]


# [RUN-50] pi runs.
def test_pi(tmp_path):
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PI_OFFLINE": "1"}
    printed = subprocess.run([PI, "--version"], capture_output=True, text=True, timeout=30, check=True, env=env)
    assert (printed.stdout + printed.stderr).strip() == PINNED_NODE["@mariozechner/pi-coding-agent"]


# [RUN-50] A skip fails the run.
def test_a_skip_counts_as_a_failure(pytester):
    pytester.makeconftest((HERE.parent / "conftest.py").read_text())
    pytester.makepyfile('import pytest\n\n\ndef test_absent():\n    pytest.skip("no client")\n')
    pytester.runpytest().assert_outcomes(failed=1)
