"""Independent clients that call the bridge, and what every answer of it must keep."""

import httpx

import payloads
from bridge import Bridge
from sse import Block, blocks

TERMINALS = ("response.completed", "response.failed", "response.incomplete", "error")


def create(prompt: str = "hello", **fields) -> dict:
    return {"model": payloads.MODEL, "input": prompt, "store": False} | fields


def stream(bridge: Bridge, body: dict | bytes | None = None, *, session: str | None = None) -> list[Block]:
    """One streaming call; the blocks of its answer, read to the end of the body."""
    content = body if isinstance(body, bytes) else payloads.encode((body or create()) | {"stream": True})
    headers = {"authorization": "Bearer sk-foreign", "content-type": "application/json"}
    if session:
        headers["session-id"] = session
    with httpx.Client(timeout=30) as client:
        with client.stream("POST", f"{bridge.base_url}/responses", content=content, headers=headers) as answer:
            if answer.status_code != 200:
                raise AssertionError(f"{answer.status_code} {answer.read()!r}\n{bridge.program.transcript()}")
            assert answer.headers["content-type"].split(";")[0] == "text/event-stream"
            return list(blocks(answer.iter_bytes()))


def assert_relayed(received: list[Block], sent: list[bytes]) -> None:
    """Every payload arrived with its meaning untouched, in order, named by its type, and one terminal ends it all."""
    assert [block.event for block in received] == [payloads.kind(payload) for payload in sent]
    for block, payload in zip(received, sent, strict=True):
        assert payloads.exact(block.data) == payloads.exact(payload)
    ends = [block.event for block in received if block.event in TERMINALS]
    assert ends == [received[-1].event], ends
    for block in received:
        assert block.fields.count("data") == 1 and set(block.fields) <= {"event", "data", ""}, block.fields
