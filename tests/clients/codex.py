"""Codex CLI, unmodified, driven without a terminal."""

import base64
import json
import os
import time
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
chatgpt_base_url = "{chatgpt_base_url}"

[analytics]
enabled = false

[model_providers.bridge]
name = "Responses Bridge"
base_url = "{base_url}"
wire_api = "responses"
supports_websockets = {websockets}
{credential}
"""

API_KEY = """
env_key = "BRIDGE_TEST_KEY"
requires_openai_auth = false
"""

CHATGPT = """
requires_openai_auth = true
"""


def chatgpt_login(account: str) -> dict:
    """What `codex login` leaves behind, for an account that exists nowhere."""
    claims = {
        "email": "nobody@example.com",
        "exp": int(time.time()) + 86_400,
        "https://api.openai.com/auth": {"chatgpt_plan_type": "pro", "chatgpt_account_id": account},
    }
    parts = ({"alg": "none", "typ": "JWT"}, claims, {})
    token = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    tokens = {"id_token": token, "access_token": token, "refresh_token": "none", "account_id": account}
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": tokens, "last_refresh": now}


@dataclass
class Turn:
    """What `codex exec --json` told of one turn."""

    code: int
    events: list[dict]

    def items(self, kind: str) -> list[dict]:
        completed = (event["item"] for event in self.events if event["type"] == "item.completed")
        return [item for item in completed if item["type"] == kind]

    @property
    def errors(self) -> list[str]:
        """Failures that it told its user of, also those that a retry cured."""
        return [event["message"] for event in self.events if event["type"] == "error"]

    @property
    def answer(self) -> str:
        return self.items("agent_message")[-1]["text"]

    @property
    def usage(self) -> dict:
        (completed,) = (event for event in self.events if event["type"] == "turn.completed")
        return completed["usage"]


class Codex:
    """One agent thread in a home and a work directory of its own.

    `account` is the one of a ChatGPT login; without it Codex has an API key. It compacts its history where upstream
    has counted more than `compact_at` tokens.
    """

    def __init__(
        self,
        directory: Path,
        base_url: str,
        *,
        websockets: bool = False,
        account: str | None = None,
        compact_at: int | None = None,
    ):
        self.home, self.work = directory / "codex-home", directory / "work"
        self.home.mkdir()
        self.work.mkdir()
        config = CONFIG.format(
            base_url=base_url,
            # Everything else that Codex asks of ChatGPT goes the same way.
            chatgpt_base_url=f"{base_url.rsplit('/', 1)[0]}/",
            websockets=str(websockets).lower(),
            credential=CHATGPT if account else API_KEY,
        )
        if compact_at:
            config = f"model_auto_compact_token_limit = {compact_at}\n{config}"
        (self.home / "config.toml").write_text(config)
        if account:
            (self.home / "auth.json").write_text(json.dumps(chatgpt_login(account)))
        self.thread: str | None = None

    def turn(self, prompt: str, *, succeeds: bool = True) -> Turn:
        """One turn; the first opens the thread, later ones resume it."""
        program = self.start(prompt)
        code = program.finish(within=60)
        assert (code == 0) is succeeds, program.transcript()
        events = [json.loads(line) for line in program.stdout if line.startswith("{")]
        (started,) = (event for event in events if event["type"] == "thread.started")
        assert self.thread in (None, started["thread_id"])
        self.thread = started["thread_id"]
        return Turn(code, events)

    def start(self, prompt: str) -> Program:
        """The same, not waited for."""
        resume = ["resume", self.thread] if self.thread else []
        return Program(
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
