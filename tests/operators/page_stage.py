"""A bridge with two accounts and an admin token before a simulated upstream, and the ways to its status page."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from bridge import LISTENING, Simulator
from browser import Browser
from places import BRIDGE, TARGET
from programs import Program

# Planted where it must never come out.
TOKEN = "admin-token-4cbb1f6f0a7e4f61"
CREDENTIAL = "sk-planted-credential-90210"
PROMPT = "planted-prompt-text"
COOKIE = "responses_bridge_admin"
PICTURES = TARGET / "test-logs" / "page"

CONFIG = """
[server]
listen = "127.0.0.1:0"
{server}

[providers.openai]
base_url = "{upstream}"

[[providers.openai.accounts]]
name = "main"
credential = {{ env = "PLANTED_CREDENTIAL" }}

[[providers.openai.accounts]]
name = "spare"
credential = {{ env = "OTHER_CREDENTIAL" }}

[watchdog]
response_created_deadline = "1s"

[quarantine]
window = "10m"

[state]
path = "{state}"
"""


class Stage:
    def __init__(self, simulator: Simulator, directory: Path, server: str | None):
        """`server` stands in the place of the admin token's line in `[server]`."""
        self.simulator = simulator
        self.token_file = directory / "token"
        self.token_file.write_text(TOKEN)
        self.token_file.chmod(0o600)
        if server is None:
            server = f'admin_token = {{ file = "{self.token_file}" }}'
        config = directory / "bridge.toml"
        config.write_text(CONFIG.format(upstream=simulator.base_url, state=directory / "state", server=server))
        env = {**os.environ, "BRIDGE_ADMIN_TOKEN": TOKEN, "PLANTED_CREDENTIAL": CREDENTIAL, "OTHER_CREDENTIAL": CREDENTIAL + "-2"}
        self.program = Program([str(BRIDGE), "serve", "--config", str(config)], env=env)
        port = self.program.wait_for(LISTENING, within=20).group(1)
        self.root = f"http://127.0.0.1:{port}"
        self.ui = f"{self.root}/admin/ui"

    def turn(self, prompt: str, thread: str, *, model: str = "gpt-5") -> httpx.Response:
        """One turn of a conversation; its answer, whatever that is."""
        body = {"model": model, "stream": True, "input": f"{PROMPT} {prompt}"}
        headers = {"authorization": "Bearer caller", "thread-id": thread}
        return httpx.post(f"{self.root}/v1/responses", json=body, headers=headers, timeout=30)

    def silence(self, *threads: str) -> None:
        """Each of these conversations goes silent, and into quarantine."""
        for thread in threads:
            assert self.turn("sim:silent(on=ws)", thread).status_code == 504

    def sicken(self) -> str:
        """Three conversations of an account go silent, which makes its transport sick; that account."""
        for number in range(5):
            # Which account a conversation goes to is not ours to say. That of a sick transport is served by HTTP.
            assert self.turn("sim:silent(on=ws)", f"sick-{number}").status_code in (200, 504)
        self.program.wait_until(lambda: self.events("breaker_changed"), 10, "a sick transport")
        return self.events("breaker_changed")[0]["account"]

    def api(self, method: str, path: str, **more) -> httpx.Response:
        """The admin API, by token."""
        headers = {"authorization": f"Bearer {TOKEN}", **more.pop("headers", {})}
        return httpx.request(method, f"{self.root}/admin{path}", headers=headers, timeout=10, **more)

    def quarantined(self) -> list[str]:
        """The keys in quarantine."""
        found = self.api("GET", "/quarantine").json()["data"]
        return [one["key"] for one in found if one["state"] != "cleared"]

    def events(self, name: str) -> list[dict]:
        lines = [json.loads(line) for line in self.program.stderr if line.startswith("{")]
        return [event for event in lines if event.get("event") == name]

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """A browser's manners without a browser: signed in, and from our own page."""
        # A form that is refused before it has come closes its connection, which httpx may not have seen when it asks again.
        each = httpx.Limits(max_keepalive_connections=0)
        with httpx.Client(base_url=self.root, headers={"origin": self.root}, limits=each, timeout=10) as client:
            answer = client.post("/admin/ui/login", data={"token": TOKEN})
            assert (answer.status_code, answer.headers["location"]) == (303, "/admin/ui"), answer.text
            yield client

    def stop(self) -> None:
        self.program.stop()


@contextmanager
def staged(directory: Path, server: str | None = None) -> Iterator[Stage]:
    simulator = Simulator()
    try:
        stage = Stage(simulator, directory, server)
        try:
            yield stage
        finally:
            stage.stop()
    finally:
        simulator.stop()


def sign_in(browser: Browser, stage: Stage, path: str = "") -> None:
    browser.open(stage.ui + path)
    browser.find("#token").type(TOKEN)
    browser.find("main button").click()
    browser.wait(lambda: browser.find_all("#standing"), what="the overview")


def proof(page: str) -> str:
    """What a form of a page carries."""
    return re.search(r'name="csrf" value="([0-9a-f]{64})"', page).group(1)
