"""pi, unmodified, driven without a terminal."""

import json
import os
from pathlib import Path

from places import NODE_MODULES
from programs import Program

PI = NODE_MODULES / ".bin" / "pi"


class Pi:
    """One session in a home and a work directory of its own."""

    def __init__(self, directory: Path, base_url: str):
        self.home, self.work = directory / "pi-home", directory / "work"
        self.agent = self.home / ".pi" / "agent"
        self.agent.mkdir(parents=True)
        self.work.mkdir()
        # Its own provider with another base URL, as its manual says for a proxy: the models are those it knows.
        provider = {"baseUrl": base_url, "apiKey": "sk-real-client"}
        (self.agent / "models.json").write_text(json.dumps({"providers": {"openai": provider}}))
        self._going_on: list[str] = []

    def turn(self, prompt: str) -> str:
        """The answer to one turn; the first opens the session, later ones go on with it."""
        program = Program(
            [str(PI), *self._going_on, "--print", "--mode", "json", "--model", "openai/gpt-5", prompt],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "NO_PROXY": "127.0.0.1",
                # Nothing from outside of this machine.
                "PI_OFFLINE": "1",
                "PI_TELEMETRY": "0",
            },
            cwd=self.work,
        )
        assert program.finish(within=90) == 0, program.transcript()
        self._going_on = ["--continue"]
        events = [json.loads(line) for line in program.stdout if line.startswith("{")]
        said = [event["message"] for event in events if event["type"] == "message_end"]
        (answer,) = (part["text"] for part in said[-1]["content"] if part["type"] == "text")
        return answer
