"""What the model saw, in a form in which two tellings of one conversation are equal, and where two of them part."""

import json
import re

# Names and states of single items. Clients drop them, or make their own anew in every run.
NAMES = {"id", "status"}
# Made anew in every run. What matters is which items share one, so each becomes its number in the conversation.
LINKS = {"call_id", "encrypted_content"}
# Parts of a text that has them only where it is empty.
EMPTY = {"annotations", "logprobs"}
# In what tools and the model say, and where that is quoted: the simulator's hash over call ids, and what Codex tells of
# a command's run.
MADE_ANEW = re.compile(
    r"(?<=hash )[0-9a-f]{8}\b|(?<=^Chunk ID: )[0-9a-f]+$|(?<=^Wall time: )[\d.]+(?= seconds$)", re.MULTILINE
)


def plain(items: list[dict]) -> list[dict]:
    """Items without what differs by nature. Nothing else is left out: an unknown field counts."""
    numbers: dict[str, int] = {}

    def link(value: str) -> str:
        return f"no. {numbers.setdefault(value, len(numbers) + 1)}"

    def part(part: dict) -> dict:
        part = {name: value for name, value in part.items() if name not in EMPTY or value}
        return part | {"text": MADE_ANEW.sub("…", part["text"])} if "text" in part else part

    def item(item: dict) -> dict:
        kept = {name: value for name, value in item.items() if name not in NAMES and value is not None}
        kept.setdefault("type", "message")
        kept |= {name: link(kept[name]) for name in LINKS & kept.keys()}
        if "arguments" in kept:
            kept["arguments"] = json.loads(kept["arguments"])
        if isinstance(kept.get("output"), str):
            kept["output"] = MADE_ANEW.sub("…", kept["output"])
        if kept["type"] == "message":
            content = kept["content"]
            if isinstance(content, str):
                said = "output_text" if kept["role"] == "assistant" else "input_text"
                content = [{"type": said, "text": content}]
            kept["content"] = [part(each) for each in content]
        return kept

    return [item(each) for each in items]


def first_difference(seen: list[list[dict]], expected: list[list[dict]]) -> str | None:
    """Where the transcripts of two runs part, create by create and item by item; None where they do not."""
    for number, (one, other) in enumerate(zip(seen, expected), 1):
        one, other = plain(one), plain(other)
        for place, (a, b) in enumerate(zip(one, other), 1):
            if a != b:
                return f"create {number}, item {place}: {_apart(a, b)}"
        if len(one) != len(other):
            longer = max(one, other, key=len)[min(len(one), len(other))]
            return f"create {number}: {len(one)} items, not {len(other)}; the first one more is {_short(longer)}"
    if len(seen) != len(expected):
        return f"{len(seen)} creates, not {len(expected)}"
    return None


def _apart(a, b, where: str = "") -> str:
    """The innermost place at which two values differ, and both values there."""
    if isinstance(a, dict) and isinstance(b, dict):
        for name in [*a, *(name for name in b if name not in a)]:
            if name not in a or name not in b:
                return f"`{where}{name}` is only {'expected' if name in b else 'seen'}: {_short((a | b)[name])}"
            if a[name] != b[name]:
                return _apart(a[name], b[name], f"{where}{name}.")
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for index, (one, other) in enumerate(zip(a, b)):
            if one != other:
                return _apart(one, other, f"{where}{index}.")
    return f"`{where.rstrip('.')}`\n  seen      {_short(a)}\n  expected  {_short(b)}"


def _short(value) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 400 else f"{text[:200]} … {text[-150:]}"
