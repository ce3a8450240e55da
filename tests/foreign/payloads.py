"""Event payloads as a real upstream writes them, and the strictest reading of a payload."""

import json
from collections.abc import Iterable

MODEL = "gpt-5"


def encode(fields: dict, **style) -> bytes:
    """Compact and not ASCII-escaped, unless `style` (arguments of `json.dumps`) says otherwise."""
    return json.dumps(fields, **({"ensure_ascii": False, "separators": (",", ":")} | style)).encode("utf-8")


def response(status: str, output: list | None = None) -> dict:
    usage = {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 1},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 5,
    }
    return {
        "id": "resp_foreign",
        "object": "response",
        "created_at": 1790000000,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": MODEL,
        "output": output or [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "store": False,
        "usage": usage if status == "completed" else None,
    }


def message(text: str) -> dict:
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    return {"id": "msg_foreign", "type": "message", "status": "completed", "role": "assistant", "content": [part]}


def delta(text: str, sequence_number: int = 3) -> dict:
    return {
        "type": "response.output_text.delta",
        "sequence_number": sequence_number,
        "item_id": "msg_foreign",
        "output_index": 0,
        "content_index": 0,
        "delta": text,
        "logprobs": [],
    }


def item_done(text: str, sequence_number: int) -> dict:
    return {
        "type": "response.output_item.done",
        "sequence_number": sequence_number,
        "output_index": 0,
        "item": message(text),
    }


def turn(middle: Iterable[bytes], text: str = "done") -> list[bytes]:
    """A whole healthy turn around `middle`; its terminal comes with an empty output, as ChatGPT's does."""
    created = {"type": "response.created", "sequence_number": 0, "response": response("in_progress")}
    progress = {"type": "response.in_progress", "sequence_number": 1, "response": response("in_progress")}
    middle = list(middle)
    last = len(middle) + 2
    completed = {"type": "response.completed", "sequence_number": last + 1, "response": response("completed")}
    return [encode(created), encode(progress), *middle, encode(item_done(text, last)), encode(completed)]


def exact(payload: bytes | str):
    """A reading that loses nothing but white space: key order, duplicate keys and number forms are kept."""
    return json.loads(
        payload,
        object_pairs_hook=lambda pairs: ("object", pairs),
        parse_int=lambda digits: ("number", digits),
        parse_float=lambda digits: ("number", digits),
    )


def kind(payload: bytes | str) -> str | None:
    """The `type` as every client's JSON parser has it."""
    return json.loads(payload).get("type")
