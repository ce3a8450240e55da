"""Codex CLI, unmodified, driven without a terminal."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from places import NODE_MODULES
from programs import Program

CODEX = NODE_MODULES / ".bin" / "codex"

CONFIG = """
model = "gpt-5"
model_provider = "bridge"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.bridge]
name = "Responses Bridge"
base_url = "{base_url}"
wire_api = "responses"
env_key = "BRIDGE_TEST_KEY"
requires_openai_auth = false
"""


@dataclass
class Turn:
    """What `codex exec --json` told of one turn."""

    code: int
    events: list[dict]

    def items(self, kind: str) -> list[dict]:
        completed = (event["item"] for event in self.events if event["type"] == "item.completed")
        return [item for item in completed if item["type"] == kind]

    @property
    def answer(self) -> str:
        return self.items("agent_message")[-1]["text"]

    @property
    def usage(self) -> dict:
        (completed,) = (event for event in self.events if event["type"] == "turn.completed")
        return completed["usage"]


class Codex:
    """One agent thread in a home and a work directory of its own."""

    def __init__(self, directory: Path, base_url: str):
        self.home, self.work = directory / "codex-home", directory / "work"
        self.home.mkdir()
        self.work.mkdir()
        (self.home / "config.toml").write_text(CONFIG.format(base_url=base_url))
        self.thread: str | None = None

    def turn(self, prompt: str, within: float = 60) -> Turn:
        """One turn; the first opens the thread, later ones resume it."""
        resume = ["resume", self.thread] if self.thread else []
        program = Program(
            [str(CODEX), "exec", *resume, "--json", "--skip-git-repo-check", prompt],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "CODEX_HOME": str(self.home),
                "BRIDGE_TEST_KEY": "sk-real-client",
                "NO_PROXY": "127.0.0.1",
            },
            cwd=self.work,
        )
        code = program.finish(within)
        events = [json.loads(line) for line in program.stdout if line.startswith("{")]
        assert code == 0, program.transcript()
        (started,) = (event for event in events if event["type"] == "thread.started")
        assert self.thread in (None, started["thread_id"])
        self.thread = started["thread_id"]
        return Turn(code, events)
