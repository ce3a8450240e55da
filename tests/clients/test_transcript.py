"""The comparison that the continuity tests rest on: what it forgives, and what it does not."""

import copy

import pytest

from transcript import first_difference

SENT = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"},
    {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "hash 0123abcd"}],
    },
    {
        "type": "function_call",
        "id": "fc_1",
        "status": "completed",
        "arguments": '{"a": 1}',
        "call_id": "call_1",
        "name": "run",
    },
    {"type": "function_call_output", "call_id": "call_1", "output": "Wall time: 0.1 seconds\nok"},
]
RESENT = [
    {"role": "user", "content": "go"},
    {"encrypted_content": "other seal", "summary": [], "type": "reasoning", "content": None},
    {"role": "assistant", "content": [{"text": "hash 89abcdef", "type": "output_text"}]},
    {"type": "function_call", "call_id": "call_x", "name": "run", "arguments": '{"a":1}'},
    {"type": "function_call_output", "call_id": "call_x", "output": "Wall time: 0.2 seconds\nok"},
]


# [RUN-52] The forms that clients give to one conversation are one conversation.
def test_what_is_forgiven():
    assert first_difference([SENT], [RESENT]) is None


def edited(place: int, **fields) -> list[dict]:
    items = copy.deepcopy(RESENT)
    items[place] |= fields
    return items


# [RUN-52] Everything else is a difference, told with its place.
@pytest.mark.parametrize(
    "seen, told",
    [
        (edited(0, content="gone"), "item 1: `content.0.text`"),
        (edited(0, role="developer"), "item 1: `role`"),
        (edited(2, content=[{"text": "hash 89abcdef.", "type": "output_text"}]), "item 3: `content.0.text`"),
        (edited(2, phase="commentary"), "item 3: `phase` is only seen"),
        (edited(3, arguments='{"a":2}'), "item 4: `arguments.a`"),
        (edited(4, call_id="call_y"), "item 5: `call_id`"),
        (edited(4, output="ok"), "item 5: `output`"),
        (RESENT[1:], "item 1"),
        (RESENT[:-1], "4 items, not 5"),
        (RESENT + RESENT, "10 items, not 5"),
        ([*RESENT[:3], RESENT[4], RESENT[3]], "item 4"),
        ([*RESENT[:4], RESENT[3], RESENT[4]], "item 5"),
    ],
)
def test_what_is_not(seen, told):
    difference = first_difference([SENT, seen], [SENT, RESENT])
    assert difference.startswith("create 2") and told in difference, difference


# [RUN-52] So is a create too many or too few.
def test_the_number_of_creates():
    assert first_difference([SENT, SENT], [SENT]) == "2 creates, not 1"
