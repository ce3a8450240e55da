"""The bridge reads WebSocket mode as an implementation that shares no code with it writes it."""

import json

import httpx
import openai
import pytest

import payloads
from caller import assert_relayed, create, stream
from payloads import delta, encode, turn
from upstream import Message

CJK_AND_EMOJI = "漢字かな한글 → 👩🏽‍💻🏳️‍🌈 é"


def every_byte(payload: bytes) -> range:
    return range(1, len(payload))


# [RUN-30] Text messages in one-byte fragments, and upstream goes on only when the ping after each is answered.
def test_a_ping_between_any_two_bytes_of_a_turn(upstream, over_websocket):
    sent = turn([encode(delta(CJK_AND_EMOJI))])
    upstream.answers.append([Message(payload, every_byte(payload), pings=True) for payload in sent])
    assert_relayed(stream(over_websocket), sent)
    assert [seen.transport for seen in upstream.received] == ["websocket"]


# [RUN-30] Fragments without any byte, at the start, in the middle and at the end.
def test_empty_fragments(upstream, over_websocket):
    sent = turn([encode(delta(CJK_AND_EMOJI))])
    upstream.answers.append([Message(p, [0, 0, 9, 9, 9, len(p), len(p)], pings=True) for p in sent])
    assert_relayed(stream(over_websocket), sent)


# [RUN-30] Each way to cut one message in two, also inside of a character.
def test_text_cut_in_two_at_every_byte(upstream, over_websocket):
    payload = encode(delta(CJK_AND_EMOJI))
    sent = turn([payload] * (len(payload) - 1))
    start, end = sent[:2], sent[-2:]
    upstream.answers.append(
        [Message(p) for p in start] + [Message(payload, [cut]) for cut in every_byte(payload)] + [Message(p) for p in end]
    )
    assert_relayed(stream(over_websocket), sent)


def type_last(fields: dict) -> dict:
    return {key: value for key, value in fields.items() if key != "type"} | {"type": fields["type"]}


QUOTED = '{"type":"response.completed","response":{"id":"resp_quoted"}}\n\ndata: {"type":"response.failed"}\n\nevent: error\n'

SHAPES = {
    "type last": [encode(type_last(delta("a"))), encode({"nested": {"type": "error"}} | type_last(delta("b")))],
    "duplicate keys": [
        b'{"type":"response.output_text.delta","delta":"lost","sequence_number":3,"delta":"kept","item_id":"m",'
        b'"item_id":"msg_foreign","output_index":0,"content_index":0,"logprobs":[],"type":"response.output_text.delta"}',
        b'{"a":{"b":1,"b":2},"a":{"b":3},"type":"example.duplicates","type":"example.duplicates"}',
    ],
    "a quoted terminal": [
        encode(delta(QUOTED)),
        encode(type_last(delta(QUOTED))),
        encode({"text": QUOTED, "item": {"type": "response.completed"}, "type": "example.quotes"}),
    ],
    "pretty-printed": [
        encode(delta("line\nbreak"), indent=2, separators=None),
        encode(delta("tabs"), indent="\t", separators=None).replace(b"\n", b"\r\n"),
        b" \r\n\t" + encode(delta("white space around")) + b"\n\n",
        encode(delta("before colons"), separators=(" , ", " : ")),
    ],
    "unknown types": [
        encode({"type": "codex.rate_limits", "rate_limits": {"primary": {"used_percent": 1.50}}}),
        encode({"type": "response.metadata", "sequence_number": 4}),
        encode({"type": "例.未知", "why": None}),
        encode({"type": "response.completed.not_quite", "response": {"id": "resp_other"}}),
        encode({"type": "x." + "y" * 300}),
    ],
    "number forms": [
        b'{"type":"response.output_text.delta","delta":"n","sequence_number":3,"big":123456789012345678901234567890,'
        b'"negative":-9007199254740993,"exponent":1E400,"point":1.10,"minus_zero":-0.0,"tiny":4.9e-324}',
    ],
    "escapes": [
        encode(delta(CJK_AND_EMOJI), ensure_ascii=True),
        b'{"type":"response.output_text.delta","delta":"\\u0000\\ud83d\\ude00\\/\\u2028\\u2029\\ufeff","sequence_number":3}',
        b'{"\\u0074ype":"response.output_text.delta","delta":"an escaped key","sequence_number":3}',
        encode(delta("separators \u2028\u2029\x85\ufeff are no line ends")),
    ],
}


# [RUN-31] Every JSON form of an event keeps its meaning, its place and its name.
@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_of_event(upstream, over_websocket, shape):
    sent = turn(SHAPES[shape])
    upstream.answers.append([Message(payload) for payload in sent])
    assert_relayed(stream(over_websocket), sent)


# [RUN-31] A type with a line break in it forges neither a line nor an event.
def test_a_type_that_breaks_the_line(upstream, over_websocket):
    hostile = encode({"type": "x\n\nevent: response.failed\ndata: {}\r\rid: 7", "sequence_number": 3})
    sent = turn([hostile])
    upstream.answers.append([Message(payload) for payload in sent])
    received = stream(over_websocket)
    assert [payloads.exact(block.data) for block in received] == [payloads.exact(payload) for payload in sent]


# [RUN-31] Envelopes (created, item done, terminal) may be pretty-printed, with `type` last, just as well.
def test_a_whole_turn_pretty_printed_with_type_last(upstream, over_websocket):
    sent = [encode(type_last(json.loads(p)), indent=1, separators=None) for p in turn([encode(delta("a"))])]
    upstream.answers.append([Message(payload) for payload in sent])
    assert_relayed(stream(over_websocket), sent)


# [RUN-32] One event of 2 MiB, whole and in fragments.
@pytest.mark.parametrize("cuts", [(), range(4093, 2 << 20, 4093)], ids=["whole", "fragments"])
def test_a_delta_of_two_mebibytes(upstream, over_websocket, cuts):
    sent = turn([encode(delta("漢" * ((2 << 20) // 3)))])
    upstream.answers.append([Message(payload, cuts if len(payload) > 1 << 20 else ()) for payload in sent])
    assert_relayed(stream(over_websocket), sent)


# [RUN-33] What comes after a terminal reaches neither its client nor the next turn of the same conversation.
def test_late_frames_reach_nobody(upstream, over_websocket):
    first, second = turn([encode(delta("first"))]), turn([encode(delta("second"))])
    late = [encode(delta("late")), encode({"type": "response.failed", "response": payloads.response("failed")})]
    upstream.answers.append([Message(payload) for payload in first + late])
    assert_relayed(stream(over_websocket, session="conversation"), first)
    upstream.answers.append([Message(payload) for payload in second])
    assert_relayed(stream(over_websocket, session="conversation"), second)


# [RUN-34] The create arrives as the client wrote it, but for `type` (added) and `stream` (dropped).
def test_the_create_arrives_as_written(upstream, over_websocket):
    sent = turn([])
    upstream.answers.append([Message(payload) for payload in sent])
    written = (
        b'{ "zeta":1.10, "model":"gpt-5", "input":"\xe6\xbc\xa2 \\u00e9 \xf0\x9f\x91\xa9", "big":123456789012345678901234567890,\n'
        b'  "stream" : true, "unknown":{"b":1,"a":[1e2, -0.0, null]}, "metadata":{"type":"response.create","stream":true} }'
    )
    assert_relayed(stream(over_websocket, written), sent)
    (seen,) = upstream.received
    _, pairs = payloads.exact(written)
    _, arrived = payloads.exact(seen.body)
    assert ("type", "response.create") in arrived
    assert [pair for pair in arrived if pair[0] != "type"] == [pair for pair in pairs if pair[0] != "stream"]


# [RUN-35] A JSON client gets the terminal's response, its empty output filled from the items that went before.
def test_a_json_client_gets_one_object(upstream, over_websocket):
    upstream.answers.append([Message(p, every_byte(p)) for p in turn([encode(delta("filled"))], text="filled")])
    client = openai.OpenAI(api_key="sk-foreign", base_url=over_websocket.base_url, max_retries=0)
    answer = client.responses.create(**create())
    assert (answer.id, answer.status, answer.output_text) == ("resp_foreign", "completed", "filled")
    assert answer.usage.total_tokens == 5


# [RUN-36] The official SDK reads what the bridge made of the foreign frames.
def test_the_sdk_reads_the_stream(upstream, over_websocket):
    sent = turn([encode(delta(text)) for text in (CJK_AND_EMOJI, QUOTED)])
    upstream.answers.append([Message(payload, every_byte(payload), pings=True) for payload in sent])
    client = openai.OpenAI(api_key="sk-foreign", base_url=over_websocket.base_url, max_retries=0, timeout=httpx.Timeout(30))
    events = list(client.responses.create(**create(), stream=True))
    assert [event.type for event in events] == [payloads.kind(payload) for payload in sent]
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == CJK_AND_EMOJI + QUOTED
