"""A Server-Sent Events parser that shares no code with the bridge: the algorithm of the WHATWG standard."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Block(NamedTuple):
    """One dispatched event; `fields` keeps every line's name as it came, comments as ''."""

    event: str
    data: str
    fields: list[str]


def blocks(body: Iterable[bytes]) -> Iterator[Block]:
    """The blocks of a whole body. An unterminated last one is lost, as in every client."""
    event, data, fields = "", [], []
    text = b"".join(body).decode("utf-8")
    assert not text.startswith("\ufeff"), "the bridge never sends a BOM"
    for line in re.split(r"\r\n|\n|\r", text):
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            fields.append(name)
            event = value if name == "event" else event
            data += [value] if name == "data" else []
        elif data:
            yield Block(event, "\n".join(data), fields)
            event, data, fields = "", [], []
        else:
            event, fields = "", []
