"""openai-python through the bridge, with its own retries and time-outs."""

import json

import openai
import pytest

from faults import ENDLESS, RATE_LIMIT, TOO_LONG, before_created, in_mid_stream

MODEL = "gpt-5"
TERMINALS = {"response.completed", "response.failed", "response.incomplete", "error"}
TOOL = {
    "type": "function",
    "name": "lookup",
    "description": "Looks a word up.",
    "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    "strict": False,
}


@pytest.fixture
def client(stage):
    return openai.OpenAI(api_key="sk-real-client", base_url=stage.base_url)


# [RUN-20] [RUN-25] The stream helper, which throws on any event before `response.created`.
def test_a_streaming_turn(stage, client):
    with client.responses.stream(model=MODEL, input="sim:conv=py sim:text(n=20)") as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    assert kinds.count("response.output_text.delta") == 20
    assert final.output_text and final.usage.output_tokens > 0
    stage.assert_healthy("py", calls=1)


# [RUN-21] [RUN-25] One object.
@pytest.mark.parametrize("shape", ["", " sim:chatgpt"])
def test_a_turn_without_streaming(stage, client, shape):
    answer = client.responses.create(model=MODEL, input=f"sim:conv=py sim:text(n=20){shape}")
    assert (answer.object, answer.status) == ("response", "completed")
    assert answer.output_text and answer.usage.total_tokens > 0
    stage.assert_healthy("py", calls=1)


# [RUN-22] [RUN-25] A conversation that goes on by `previous_response_id`.
@pytest.mark.parametrize("stream", [True, False])
def test_a_conversation_by_anchor(stage, client, stream):
    previous = None
    for turn in range(3):
        prompt = f"sim:conv=py turn {turn}"
        answer = client.responses.create(model=MODEL, input=prompt, previous_response_id=previous, stream=stream)
        if stream:
            answer = list(answer)[-1].response
        assert answer.status == "completed" and answer.output_text
        previous = answer.id
    stage.assert_healthy("py", calls=3)


# [RUN-22] [RUN-25] A conversation that resends its history, `store: false`.
def test_a_conversation_by_history(stage, client):
    history = []
    for turn in range(3):
        history.append({"role": "user", "content": f"sim:conv=py turn {turn}"})
        answer = client.responses.create(model=MODEL, input=history, store=False, prompt_cache_key="py")
        history += [item.model_dump(exclude_none=True) for item in answer.output]
        assert answer.output_text
    stage.assert_healthy("py", calls=3)


# [RUN-23] [RUN-25] The tool loop as the documentation writes it.
@pytest.mark.parametrize("stream", [True, False])
def test_five_rounds_of_tool_calls(stage, client, stream):
    history = [{"role": "user", "content": "sim:conv=py sim:tools(rounds=5)"}]
    ran = []
    for _ in range(6):
        fields = {"model": MODEL, "input": history, "tools": [TOOL], "store": False, "prompt_cache_key": "py"}
        if stream:
            with client.responses.stream(**fields) as events:
                events.until_done()
                answer = events.get_final_response()
        else:
            answer = client.responses.create(**fields)
        history += [item.model_dump(exclude_none=True) for item in answer.output]
        for call in (item for item in answer.output if item.type == "function_call"):
            assert call.name == "lookup"
            ran.append(json.dumps(json.loads(call.arguments)))
            history.append({"type": "function_call_output", "call_id": call.call_id, "output": f"found {len(ran)}"})
    assert len(ran) == 5
    assert answer.output_text
    stage.assert_healthy("py", calls=6, outputs=5)


# [RUN-24] The SDK retries the silent turn by itself, is served over HTTP, and its next turn clears the quarantine.
@pytest.mark.parametrize("stream", [True, False])
def test_the_incident(stage, client, stream):
    def turn(prompt: str) -> None:
        answer = client.responses.create(model=MODEL, input=prompt, prompt_cache_key="py", stream=stream)
        answer = list(answer)[-1].response if stream else answer
        assert answer.status == "completed"

    turn("sim:conv=py sim:silent(times=1)")
    stage.wait_for_the_window_to_pass()
    turn("sim:conv=py and on")
    stage.assert_incident("py")


# [RUN-24] Without a retry of its own the caller sees an error that says it may try again, and when.
def test_the_failure_is_retryable(stage, client):
    with pytest.raises(openai.InternalServerError) as failure:
        client.with_options(max_retries=0).responses.create(
            model=MODEL, input="sim:conv=py sim:silent(times=1)", prompt_cache_key="py"
        )
    assert 1 <= int(failure.value.response.headers["retry-after"]) <= 60
    assert failure.value.body["message"] and failure.value.body["code"]
    assert stage.relay.creates == len(stage.simulator.creates()) == 1


# [RUN-27] The SDK retries by itself.
@before_created
@pytest.mark.parametrize("stream", [True, False])
def test_upstream_breaks_off(stage, client, stream, end):
    answer = client.responses.create(model=MODEL, input=f"sim:conv=py {end}", stream=stream)
    answer = list(answer)[-1].response if stream else answer
    assert answer.status == "completed"
    stage.assert_calls("py", ["broken", "completed"])


# [RUN-27] A stream that has begun ends in a failure that the caller can read; it is not begun again behind its back.
@in_mid_stream
def test_upstream_breaks_off_in_mid_stream(stage, client, end):
    with client.responses.stream(model=MODEL, input=f"sim:conv=py sim:text(n=5) {end}") as stream:
        events = list(stream)
    kinds = [event.type for event in events]
    assert (kinds[0], kinds[-1], len(set(kinds) & TERMINALS)) == ("response.created", "response.failed", 1)
    assert events[-1].response.id == events[0].response.id
    assert events[-1].response.error.code and events[-1].response.error.message
    stage.assert_calls("py", ["broken"])


# [RUN-27] Without streaming nothing has begun: the SDK retries by itself.
@in_mid_stream
def test_upstream_breaks_off_in_mid_answer(stage, client, end):
    answer = client.responses.create(model=MODEL, input=f"sim:conv=py sim:text(n=5) {end}")
    assert answer.status == "completed" and answer.output_text
    stage.assert_calls("py", ["broken", "completed"])


# [RUN-28] A rejection is what the API itself would have said.
@pytest.mark.parametrize("stream", [True, False])
def test_a_rejection(stage, client, stream):
    with pytest.raises(openai.RateLimitError) as limit:
        once = client.with_options(max_retries=0)
        once.responses.create(model=MODEL, input=f"sim:conv=py {RATE_LIMIT}", stream=stream)
    assert limit.value.code == "rate_limit_exceeded"
    assert limit.value.response.headers["retry-after"] == "1"
    with pytest.raises(openai.BadRequestError) as rejection:
        client.responses.create(model=MODEL, input=f"sim:conv=py {TOO_LONG}", stream=stream)
    assert (rejection.value.code, rejection.value.param) == ("context_length_exceeded", "input")
    assert rejection.value.type == "invalid_request_error"
    stage.assert_calls("py", [{"errored": 429}, {"errored": 400}])


# [RUN-28] The SDK waits as long as it is told, and tries again.
def test_a_rate_limit(stage, client):
    assert client.responses.create(model=MODEL, input=f"sim:conv=py {RATE_LIMIT}").status == "completed"
    stage.assert_calls("py", [{"errored": 429}, "completed"])


# [RUN-29] A caller who closes the stream ends the turn.
def test_the_caller_leaves(stage, client):
    with client.responses.create(model=MODEL, input=f"sim:conv=py {ENDLESS}", stream=True) as stream:
        assert next(iter(stream)).type == "response.created"
    stage.simulator.wait_for_conclusion("client_gone", within=1)


# [RUN-29] A caller whose own time-out is shorter than the answer.
def test_the_caller_loses_patience(stage, client):
    with pytest.raises(openai.APITimeoutError):
        client.with_options(max_retries=0, timeout=1).responses.create(model=MODEL, input=f"sim:conv=py {ENDLESS}")
    stage.simulator.wait_for_conclusion("client_gone", within=1)


# [EDGE-12] [EDGE-13] The SDK's other calls work as before: about a response that came over a WebSocket, and about none.
def test_the_other_calls(client):
    made = client.responses.create(model=MODEL, input="sim:conv=py sim:text(n=2)")
    kept = client.responses.retrieve(made.id)
    assert (kept.id, kept.output_text) == (made.id, made.output_text)
    (asked,) = client.responses.input_items.list(made.id)
    assert "sim:conv=py" in asked.content[0].text
    client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)
    assert MODEL in [model.id for model in client.models.list()]
    assert client.responses.input_tokens.count(model=MODEL, input="hello").input_tokens > 0


# [EDGE-12] [EDGE-22] Another credential's response does not exist, whatever is asked of it.
def test_another_tenant(stage, client):
    made = client.responses.create(model=MODEL, input="sim:conv=py sim:text(n=2)")
    other = openai.OpenAI(api_key="sk-somebody-else", base_url=stage.base_url)
    with pytest.raises(openai.NotFoundError):
        other.responses.retrieve(made.id)
    with pytest.raises(openai.NotFoundError):
        other.responses.delete(made.id)
    with pytest.raises(openai.BadRequestError) as unknown:
        other.responses.create(model=MODEL, input="and on", previous_response_id=made.id)
    assert unknown.value.code == "previous_response_not_found"
    assert client.responses.retrieve(made.id).output_text == made.output_text
