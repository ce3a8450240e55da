"""The bridge reads SSE over direct HTTP in every framing that the standard allows."""

from collections.abc import Callable

import httpx
import openai
import pytest

import payloads
from caller import assert_relayed, create, stream
from payloads import delta, encode, turn
from upstream import Body

TEXT = "漢字 👩🏽‍💻 — \r\n quoted: data: {\"type\":\"response.completed\"}\n\n"
TURN = turn([encode(delta(TEXT)), encode({"type": "example.unknown", "n": 12345678901234567890123}), encode(delta("b"))])
PRETTY = [encode({"type": payloads.kind(TURN[0]), "response": payloads.response("in_progress")}, indent=1), *TURN[1:]]


def framed(end: bytes, before: bytes = b"", named: bool = True, space: bytes = b" ") -> Callable[[list[bytes]], bytes]:
    """Blocks whose lines end in `end`, each with the lines `before` ahead of it."""

    def frame(sent: list[bytes]) -> bytes:
        body = b""
        for payload in sent:
            name = b"event:" + space + payloads.kind(payload).encode() + b"\n" if named else b""
            data = b"".join(b"data:" + space + line + b"\n" for line in payload.split(b"\n"))
            body += before + name + data + b"\n"
        return body.replace(b"\n", end)

    return frame


FRAMINGS = {
    "LF": (TURN, framed(b"\n")),
    "CRLF": (TURN, framed(b"\r\n")),
    "CR": (TURN, framed(b"\r")),
    "BOM": (TURN, lambda sent: b"\xef\xbb\xbf" + framed(b"\n")(sent)),
    "comments": (TURN, framed(b"\n", before=b": keepalive\n:\n\n:\xe6\xbc\xa2\n")),
    "id and retry": (TURN, framed(b"\r\n", before=b"id: 7\nretry: 10\nfoo: bar\nbaz\n")),
    "no event lines": (TURN, framed(b"\n", named=False)),
    "no space": (TURN, framed(b"\n", space=b"")),
    "data in many lines": (PRETTY, framed(b"\r\n")),
    "data in many lines, CR": (PRETTY, framed(b"\r")),
}


# [RUN-40] Every framing, in chunks that cut lines, line ends and characters.
@pytest.mark.parametrize("chunk", [1 << 20, 7, 1], ids=["whole", "7 bytes", "1 byte"])
@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_framing(upstream, over_http, framing, chunk):
    sent, frame = FRAMINGS[framing]
    upstream.answers.append(Body(frame(sent), chunk))
    assert_relayed(stream(over_http), sent)
    assert [seen.transport for seen in upstream.received] == ["http"]


# [RUN-40] A single line of 2 MiB over HTTP.
def test_a_line_of_two_mebibytes(upstream, over_http):
    sent = turn([encode(delta("漢" * ((2 << 20) // 3)))])
    upstream.answers.append(Body(framed(b"\r\n")(sent), 65521))
    assert_relayed(stream(over_http), sent)


# [RUN-41] A body that ends without a terminal ends in exactly one failure, and its unfinished block is dropped.
def test_a_truncated_body_ends_in_one_failure(upstream, over_http):
    whole = framed(b"\n")(TURN[:3])
    upstream.answers.append(Body(whole + b'event: example.cut\ndata: {"type":"example.cut"'))
    received = stream(over_http)
    assert [block.event for block in received] == [*map(payloads.kind, TURN[:3]), "response.failed"]


# [RUN-36] The official SDK reads what the bridge relayed, although upstream sent a BOM, ids and bare CRs.
def test_the_sdk_reads_the_stream(upstream, over_http):
    upstream.answers.append(Body(b"\xef\xbb\xbf" + framed(b"\r", before=b"id: 7\nretry: 10\n")(TURN), 5))
    client = openai.OpenAI(api_key="sk-foreign", base_url=over_http.base_url, max_retries=0, timeout=httpx.Timeout(30))
    events = list(client.responses.create(**create(), stream=True))
    assert [event.type for event in events] == [payloads.kind(payload) for payload in TURN]
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == TEXT + "b"
