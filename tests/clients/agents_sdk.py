"""The Agents SDK, unmodified: a program of a user's, run as one, and this test's side of it."""

import json
import os
import sys
from pathlib import Path

from programs import Program


class AgentsSdk:
    """One agent with one tool of our own, and a session that keeps its history."""

    def __init__(self, directory: Path, base_url: str, *, store: bool | None = None):
        self.base_url, self.store = base_url, store
        self.home = directory / "agents-home"
        self.home.mkdir()

    def turns(self, *prompts: str) -> list[str]:
        """The answers to so many turns of one conversation."""
        asked = {"base_url": self.base_url, "store": self.store, "prompts": prompts}
        program = Program(
            [sys.executable, __file__, json.dumps(asked)],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "NO_PROXY": "127.0.0.1",
                **{name: os.environ[name] for name in ["PYTHONPYCACHEPREFIX"] if name in os.environ},
                # Traces would go to api.openai.com.
                "OPENAI_AGENTS_DISABLE_TRACING": "1",
            },
            cwd=self.home,
        )
        assert program.finish(within=90) == 0, program.transcript()
        return json.loads(program.stdout[-1])


def main(asked: dict) -> None:
    import asyncio

    from agents import Agent, ModelSettings, OpenAIResponsesModel, Runner, SQLiteSession, function_tool
    from openai import AsyncOpenAI

    @function_tool
    def lookup(word: str) -> str:
        """Looks a word up."""
        return f"found {word}"

    async def run() -> list[str]:
        client = AsyncOpenAI(api_key="sk-real-client", base_url=asked["base_url"])
        settings = ModelSettings() if asked["store"] is None else ModelSettings(store=asked["store"])
        agent = Agent(
            name="Finder",
            instructions="You look words up.",
            tools=[lookup],
            model=OpenAIResponsesModel(model="gpt-5", openai_client=client),
            model_settings=settings,
        )
        session = SQLiteSession("conversation")
        answers = []
        for prompt in asked["prompts"]:
            streaming = Runner.run_streamed(agent, prompt, session=session, max_turns=20)
            async for _ in streaming.stream_events():
                pass
            answers.append(streaming.final_output)
        return answers

    print(json.dumps(asyncio.run(run())))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
