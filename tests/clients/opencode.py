"""opencode, unmodified, driven without a terminal."""

import json
import os
from pathlib import Path

from places import NODE_MODULES
from programs import Program

# The program itself: the package around it links it with a script of its own at installation.
OPENCODE = NODE_MODULES / "opencode-linux-x64-baseline" / "bin" / "opencode"


class Opencode:
    """One conversation in a home and a work directory of its own."""

    def __init__(self, directory: Path, base_url: str):
        self.home, self.work = directory / "opencode-home", directory / "work"
        self.home.mkdir()
        self.work.mkdir()
        config = {
            "model": "openai/gpt-5",
            "small_model": "openai/gpt-5",
            "share": "disabled",
            "provider": {"openai": {"options": {"baseURL": base_url, "apiKey": "sk-real-client"}}},
        }
        (self.work / "opencode.json").write_text(json.dumps(config))
        self._going_on: list[str] = []

    def turn(self, prompt: str) -> str:
        """The answer to one turn; the first opens the conversation, later ones go on with it."""
        program = Program(
            [str(OPENCODE), "run", *self._going_on, "--format", "json", prompt],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "NO_PROXY": "127.0.0.1",
                # Nothing from outside of this machine.
                "OPENCODE_DISABLE_AUTOUPDATE": "1",
                "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
                "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
                "OPENCODE_DISABLE_MODELS_FETCH": "1",
            },
            cwd=self.work,
        )
        assert program.finish(within=90) == 0, program.transcript()
        self._going_on = ["--continue"]
        events = [json.loads(line) for line in program.stdout if line.startswith("{")]
        return [event["part"]["text"] for event in events if event["type"] == "text"][-1]
