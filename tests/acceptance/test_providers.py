"""A provider's model over real HTTP: the real client against a server on loopback that can misbehave."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ai_whisperer.errors import (
    ModelCutOffError,
    ModelEmptyError,
    ModelError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelServerError,
    ModelTimeoutError,
)
from ai_whisperer.models.base import (
    CallRequested,
    Finished,
    ModelRequest,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    collect,
)
from ai_whisperer.models.pydantic_ai import PydanticAIModel
from ai_whisperer.records import Answer, AnswerTurn, ToolCall, ToolSpec, ToolTurn, Turn, UserTurn
from ai_whisperer.testing.model_server import Call, ModelServer, Reply, Respond, obliging, stream_events

KEY = "sk-canary-0123456789abcdef"
ADD = ToolSpec(
    name="add",
    description="Adds two numbers.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
)
HELLO = Reply(text="Hello there, how are you today?", reasoning="They greet me, so I greet them.")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for proxy in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(proxy, raising=False)


def ask(*turns: Turn, **fields: Any) -> ModelRequest:
    return ModelRequest(
        **{"step_id": "t1.1", "agent_id": "ada", "system": "Be brief.", "turns": turns or (UserTurn(text="Hi"),)}
        | fields
    )


@asynccontextmanager
async def model_at(base_url: str, name: str = "openai-chat:test-model") -> AsyncIterator[PydanticAIModel]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", base_url)
        model = PydanticAIModel(name)
        try:
            yield model
        finally:
            await model.close()


def with_server(respond: Respond | Reply, body: Callable[[PydanticAIModel, ModelServer], Awaitable[None]]) -> None:
    async def run() -> None:
        decide: Respond = (lambda _body, _number: respond) if isinstance(respond, Reply) else respond
        async with ModelServer(decide) as server, model_at(server.base_url) as model:
            await body(model, server)

    asyncio.run(run())


def events_of(reply: Reply, request: ModelRequest | None = None) -> list[StreamEvent]:
    events: list[StreamEvent] = []

    async def body(model: PydanticAIModel, _: ModelServer) -> None:
        events.extend([event async for event in model.stream(request or ask())])

    with_server(reply, body)
    return events


def answer_to(reply: Reply, request: ModelRequest | None = None) -> Answer:
    answers: list[Answer] = []

    async def body(model: PydanticAIModel, _: ModelServer) -> None:
        answers.append(await collect(model.stream(request or ask())))

    with_server(reply, body)
    return answers[0]


def failure_of(reply: Reply, request: ModelRequest | None = None) -> ModelError:
    """The error of one request, which must not have been repeated."""
    errors: list[ModelError] = []

    async def body(model: PydanticAIModel, server: ModelServer) -> None:
        with pytest.raises(ModelError) as caught:
            await collect(model.stream(request or ask()))
        errors.append(caught.value)
        assert len(server.received) == 1

    with_server(reply, body)
    return errors[0]


def body_sent(request: ModelRequest, *, answer: Reply = HELLO) -> dict[str, Any]:
    bodies: list[dict[str, Any]] = []

    async def body(model: PydanticAIModel, server: ModelServer) -> None:
        await collect(model.stream(request))
        bodies.append(server.received[0].body)

    with_server(answer, body)
    return bodies[0]


def finish_is_among(events: list[str]) -> bool:
    chunks = [json.loads(event) for event in events if event != "[DONE]"]
    return any(choice["finish_reason"] for chunk in chunks for choice in chunk["choices"])


# Answers


def test_text_and_reasoning_arrive_in_pieces_and_end_with_finished() -> None:
    events = events_of(HELLO)
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    thoughts = [event.text for event in events if isinstance(event, ReasoningDelta)]
    assert len(texts) > 1
    assert "".join(texts) == HELLO.text
    assert len(thoughts) > 1
    assert "".join(thoughts) == HELLO.reasoning
    assert isinstance(events[-1], Finished)
    assert events[-1].finish == "stop"
    assert events[-1].model == "test-model"


def test_a_tool_call_is_told_once_with_whole_arguments() -> None:
    events = events_of(Reply(tool_calls=(Call("add", '{"a": 1, "b": 20000000000}'),)), ask(tools=(ADD,)))
    calls = [event.call for event in events if isinstance(event, CallRequested)]
    assert calls == [ToolCall(call_id="call_1_0", name="add", arguments='{"a": 1, "b": 20000000000}')]
    assert isinstance(events[-1], Finished)
    assert events[-1].finish == "tool_call"


def test_parallel_tool_calls_keep_their_order_and_their_arguments() -> None:
    wanted = [Call("add", json.dumps({"a": number, "b": number * 1000})) for number in range(4)]
    answer = answer_to(Reply(text="I add.", tool_calls=tuple(wanted)), ask(tools=(ADD,)))
    assert [(call.name, call.arguments) for call in answer.tool_calls] == wanted
    assert len({call.call_id for call in answer.tool_calls}) == 4
    assert answer.text == "I add."


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert answer_to(Reply(tool_calls=(Call("now", ""),))).tool_calls[0].arguments == "{}"


def test_usage_is_told_and_an_unknown_model_has_no_price() -> None:
    usage = answer_to(Reply(text="x", input_tokens=120, output_tokens=30, cached_tokens=100)).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (120, 30, 100)
    assert usage.cost_usd is None


def test_a_known_model_has_a_price() -> None:
    async def run() -> None:
        async with (
            ModelServer(lambda _body, _number: Reply(text="x", input_tokens=1000, output_tokens=1000)) as server,
            model_at(server.base_url, "openai-chat:gpt-4o-mini") as model,
        ):
            answer = await collect(model.stream(ask()))
            assert answer.usage.cost_usd is not None
            assert 0 < answer.usage.cost_usd < 1

    asyncio.run(run())


@pytest.mark.parametrize(
    ("said", "finish"),
    [("stop", "stop"), ("length", "length"), ("content_filter", "content_filter"), ("eos_token", "stop")],
)
def test_the_reason_of_the_provider_becomes_one_of_ours(said: str, finish: str) -> None:
    assert answer_to(Reply(text="x", finish=said)).finish == finish


def test_a_refusal_is_an_answer_that_was_filtered() -> None:
    answer = answer_to(Reply(refusal="I will not do that, whatever you say."))
    assert (answer.text, answer.finish) == ("I will not do that, whatever you say.", "content_filter")


# Requests


def test_system_user_tools_and_settings_reach_the_provider() -> None:
    body = body_sent(ask(tools=(ADD,), settings={"temperature": 0.25, "extra_body": {"top_k": 7}}))
    assert [(message["role"], message["content"]) for message in body["messages"]] == [
        ("system", "Be brief."),
        ("user", "Hi"),
    ]
    function = body["tools"][0]["function"]
    assert (function["name"], function["description"]) == ("add", "Adds two numbers.")
    assert function["parameters"]["properties"].keys() == {"a", "b"}
    assert (body["temperature"], body["top_k"], body["stream"]) == (0.25, 7, True)
    assert body["stream_options"] == {"include_usage": True}


def test_a_setting_that_nobody_knows_does_no_harm() -> None:
    assert "wisdom" not in body_sent(ask(settings={"wisdom": 11}))


def test_every_attempt_carries_the_step_id_as_idempotency_key() -> None:
    async def body(model: PydanticAIModel, server: ModelServer) -> None:
        for attempt in (1, 2):
            await collect(
                model.stream(ask(step_id="task-7.3", attempt=attempt, settings={"extra_headers": {"X-Team": "blue"}}))
            )
        assert [received.headers["idempotency-key"] for received in server.received] == ["task-7.3"] * 2
        assert server.received[0].headers["x-team"] == "blue"
        assert server.received[0].headers["authorization"] == f"Bearer {KEY}"

    with_server(HELLO, body)


def test_a_local_server_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert answer_to(HELLO).text == HELLO.text
    monkeypatch.setenv("OPENAI_API_KEY", "")
    assert answer_to(HELLO).text == HELLO.text


def test_a_missing_key_is_told_by_the_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    async def run() -> None:
        with pytest.raises(ModelRefusedError, match="Set the `OPENAI_API_KEY` environment variable") as caught:
            await collect(PydanticAIModel("openai-chat:test-model").stream(ask()))
        assert "Provider(" not in caught.value.message

    asyncio.run(run())


# Conversations


def test_a_conversation_with_tools_goes_round() -> None:
    async def body(model: PydanticAIModel, server: ModelServer) -> None:
        turns: list[Turn] = [UserTurn(text="please use tool add 2 times")]
        for _ in range(2):
            answer = await collect(model.stream(ask(*turns, tools=(ADD,))))
            turns.append(AnswerTurn(answer=answer))
            turns += [ToolTurn(call=call, content=f"saw {call.arguments}") for call in answer.tool_calls]
        answer = await collect(model.stream(ask(*turns, tools=(ADD,))))
        assert answer.text == "done: please use tool add 2 times"
        assert [message["role"] for message in server.received[-1].body["messages"]] == [
            "system",
            "user",
            "assistant",
            "tool",
            "assistant",
            "tool",
        ]
        assert server.received[-1].body["messages"][-1] == {
            "role": "tool",
            "tool_call_id": "call_2_0",
            "content": 'saw {"n": 2}',
        }

    with_server(obliging, body)


CALLS = (ToolCall(call_id="c1", name="add", arguments='{"a":1}'), ToolCall(call_id="c2", name="add", arguments="{}"))
AFTER_TWO_CALLS: tuple[Turn, ...] = (
    UserTurn(text="add"),
    AnswerTurn(answer=Answer(text="Adding.", tool_calls=CALLS)),
    ToolTurn(call=CALLS[0], content="1"),
    ToolTurn(call=CALLS[1], content="b is missing", is_error=True),
    UserTurn(text="go on"),
)


def test_results_follow_the_answer_that_asked_for_them_and_errors_are_marked() -> None:
    messages = body_sent(ask(*AFTER_TWO_CALLS, tools=(ADD,)))["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert messages[2]["content"] == "Adding."
    assert [call["id"] for call in messages[2]["tool_calls"]] == ["c1", "c2"]
    assert [call["function"]["arguments"] for call in messages[2]["tool_calls"]] == ['{"a":1}', "{}"]
    assert (messages[3]["tool_call_id"], messages[3]["content"]) == ("c1", "1")
    assert json.loads(messages[4]["content"]) == {"error": "b is missing"}


def test_what_is_said_between_the_results_comes_after_them() -> None:
    between = (*AFTER_TWO_CALLS[:3], UserTurn(text="hurry"), *AFTER_TWO_CALLS[3:])
    messages = body_sent(ask(*between, tools=(ADD,)))["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "tool", "user", "user"]
    assert [message["content"] for message in messages[5:]] == ["hurry", "go on"]


def test_reasoning_is_shown_again_to_the_provider_that_thought_it() -> None:
    answer = answer_to(Reply(reasoning="I should add.", tool_calls=(Call("add", '{"a":1}'),)))
    turns = (UserTurn(text="add"), AnswerTurn(answer=answer), ToolTurn(call=answer.tool_calls[0], content="1"))
    assert body_sent(ask(*turns))["messages"][2]["reasoning_content"] == "I should add."


@pytest.mark.parametrize("kept", [None, "", "no JSON", '{"parts": 1}', "foreign", "other calls"])
def test_an_answer_that_is_not_this_providers_is_rebuilt_from_its_text_and_calls(kept: str | None) -> None:
    answer = answer_to(Reply(text="Adding.", reasoning="Hm.", tool_calls=(Call("add", '{"a":1}'),)))
    assert answer.provider is not None
    match kept:
        case "foreign":
            kept = answer.provider.replace('"prefix":"openai-chat"', '"prefix":"anthropic"')
            assert kept != answer.provider
        case "other calls":
            kept = answer.provider.replace("call_1_0", "call_9_9")
    answer = msgspec.structs.replace(answer, provider=kept)
    turns = (UserTurn(text="add"), AnswerTurn(answer=answer), ToolTurn(call=answer.tool_calls[0], content="1"))
    message = body_sent(ask(*turns))["messages"][2]
    assert message["content"] == "Adding."
    assert message["tool_calls"][0]["id"] == "call_1_0"
    assert "reasoning_content" not in message


def test_what_is_kept_of_the_provider_holds_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with ModelServer() as server:
            url = server.base_url.replace("127.0.0.1", "user:hunter2-hunter2@127.0.0.1")
            async with model_at(url) as model:
                answer = await collect(model.stream(ask()))
        assert answer.provider is not None
        assert "hunter2" not in answer.provider
        assert KEY not in answer.provider

    asyncio.run(run())


# Failures


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ModelRefusedError),
        (401, ModelRefusedError),
        (403, ModelRefusedError),
        (404, ModelRefusedError),
        (413, ModelRefusedError),
        (422, ModelRefusedError),
        (408, ModelTimeoutError),
        (409, ModelServerError),
        (500, ModelServerError),
        (502, ModelServerError),
        (503, ModelServerError),
        (529, ModelServerError),
        (429, ModelRateLimitError),
    ],
)
def test_a_status_becomes_an_error_and_is_not_retried_here(status: int, kind: type[ModelError]) -> None:
    error = failure_of(Reply(status=status, error="that went wrong"))
    assert type(error) is kind
    assert "that went wrong" in error.message


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("0.5", 0.5), ("soon", None)])
def test_retry_after_is_passed_on(status: int, header: str, seconds: float | None) -> None:
    error = failure_of(Reply(status=status, headers={"Retry-After": header}))
    assert error.retry_after_seconds == seconds


def test_retry_after_may_be_a_date() -> None:
    error = failure_of(Reply(status=429, headers={"Retry-After": formatdate(time.time() + 86_400, usegmt=True)}))
    assert error.retry_after_seconds is not None
    assert 80_000 < error.retry_after_seconds <= 86_400


def test_an_exhausted_quota_is_refused_since_waiting_would_not_help() -> None:
    error = failure_of(Reply(status=429, error_code="insufficient_quota", error="You exceeded your quota."))
    assert type(error) is ModelRefusedError
    assert "Top up" in error.message


def test_a_conversation_that_is_too_long_is_refused() -> None:
    error = failure_of(Reply(status=400, error_code="context_length_exceeded", error="maximum context length"))
    assert type(error) is ModelRefusedError
    assert "Shorten" in error.message


def test_the_key_is_in_no_message_even_if_the_provider_quotes_it() -> None:
    error = failure_of(Reply(status=401, error=f"Incorrect API key provided: {KEY}"))
    assert KEY not in error.message
    assert "Check the key" in error.message
    assert error.__cause__ is None
    assert error.__suppress_context__


def test_a_server_that_is_not_there_is_a_server_error() -> None:
    async def run() -> None:
        async with ModelServer() as server:
            url = server.base_url
        async with model_at(url) as model:
            with pytest.raises(ModelServerError, match="could not be reached"):
                await collect(model.stream(ask()))

    asyncio.run(run())


def test_a_provider_that_says_nothing_in_time_is_a_timeout() -> None:
    error = failure_of(Reply(text="x", stall_after_events=2), ask(settings={"timeout": 0.02}))
    assert type(error) is ModelTimeoutError


@pytest.mark.parametrize("place", range(len(stream_events(HELLO, model="m", number=1)) - 1))
def test_a_malformed_event_is_a_server_error_wherever_it_stands(place: int) -> None:
    assert type(failure_of(replace(HELLO, malformed_after_events=place))) is ModelServerError


@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize(
    "event", ["[]", "null", "7", '"text"', '{"choices": "x"}', '{"choices": [7]}', '{"choices": [{"delta": []}]}']
)
def test_json_of_the_wrong_shape_never_escapes_as_another_error(event: str, place: int) -> None:
    async def body(model: PydanticAIModel, _: ModelServer) -> None:
        try:
            answer = await collect(model.stream(ask()))
        except ModelServerError:
            pass
        else:
            assert answer.text == HELLO.text

    with_server(replace(HELLO, malformed_after_events=place, malformed_event=event), body)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_error", ModelServerError),
        ("rate_limit_exceeded", ModelRateLimitError),
        ("context_length_exceeded", ModelRefusedError),
        ("a new one", ModelServerError),
    ],
)
def test_an_error_that_the_provider_reports_inside_the_stream_counts(code: str, kind: type[ModelError]) -> None:
    event = json.dumps({"error": {"message": "that went wrong", "code": code}})
    error = failure_of(replace(HELLO, malformed_after_events=3, malformed_event=event))
    assert type(error) is kind
    assert "that went wrong" in error.message


STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"HTTP/1.1 200",
        b"220 mail.example.org ESMTP\r\n",
        STREAM_HEAD + b"zz\r\n",
        STREAM_HEAD + b"5\r\ndata:",
        b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 13\r\n\r\n<html></html>",
    ],
)
def test_a_peer_that_speaks_no_proper_http_is_worth_a_retry(sent: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        writer.close()
        await writer.wait_closed()

    async def run() -> None:
        peer = await asyncio.start_server(talk, "127.0.0.1", 0)
        async with peer, model_at(f"http://127.0.0.1:{peer.sockets[0].getsockname()[1]}/v1") as model:
            with pytest.raises((ModelServerError, ModelCutOffError)):
                await collect(model.stream(ask()))

    asyncio.run(run())


def test_an_answer_with_nothing_in_it_is_empty() -> None:
    assert type(failure_of(Reply())) is ModelEmptyError
    assert type(failure_of(Reply(reasoning="Hm."))) is ModelEmptyError


# Streams that break


CUT = Reply(text="Hello there, friend.", reasoning="Think, then speak.", tool_calls=(Call("add", '{"a": 1, "b": 2}'),))


@pytest.mark.parametrize("sent", range(len(stream_events(CUT, model="m", number=1)) + 1))
def test_a_cut_after_any_event_never_looks_complete_without_a_reason(sent: int) -> None:
    events = stream_events(CUT, model="m", number=1)
    told: list[StreamEvent] = []

    async def body(model: PydanticAIModel, _: ModelServer) -> None:
        try:
            answer = await collect(model.stream(ask()), told.append)
        except ModelCutOffError:
            assert not any(isinstance(event, Finished | CallRequested) for event in told)
        else:
            assert finish_is_among(events[:sent])
            assert (answer.text, answer.tool_calls[0].arguments) == (CUT.text, CUT.tool_calls[0].arguments)
        assert CUT.text.startswith("".join(event.text for event in told if isinstance(event, TextDelta)))

    with_server(replace(CUT, cut_after_events=sent), body)


@pytest.mark.parametrize("reply", [HELLO, CUT, Reply(reasoning="Hm.")])
def test_a_stream_that_ends_in_good_order_but_without_a_reason_is_cut_off(reply: Reply) -> None:
    assert type(failure_of(replace(reply, omit_finish=True))) is ModelCutOffError


@pytest.mark.parametrize("sent", [0, 1, 3])
def test_cancelling_the_reader_of_a_stalled_stream_closes_the_connection(sent: int) -> None:
    async def body(model: PydanticAIModel, server: ModelServer) -> None:
        reading = asyncio.create_task(collect(model.stream(ask())))
        async with asyncio.timeout(10):
            await server.stalled.wait()
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            await server.received[0].client_left.wait()

    with_server(replace(HELLO, stall_after_events=sent), body)


def test_leaving_a_stream_early_closes_the_connection_and_the_model_goes_on() -> None:
    def respond(_body: dict[str, Any], number: int) -> Reply:
        return replace(HELLO, stall_after_events=4) if number == 1 else HELLO

    async def body(model: PydanticAIModel, server: ModelServer) -> None:
        async with asyncio.timeout(10):
            async with aclosing(model.stream(ask())) as events:
                async for _ in events:
                    break
            await server.received[0].client_left.wait()
            assert (await collect(model.stream(ask()))).text == HELLO.text

    with_server(respond, body)


def test_many_requests_share_one_model() -> None:
    async def body(model: PydanticAIModel, server: ModelServer) -> None:
        requests = [ask(UserTurn(text=f"number {number}"), step_id=f"t.{number}") for number in range(50)]
        answers = await asyncio.gather(*(collect(model.stream(request)) for request in requests))
        assert [answer.text for answer in answers] == [f"done: number {number}" for number in range(50)]
        assert sorted(received.headers["idempotency-key"] for received in server.received) == sorted(
            request.step_id for request in requests
        )

    with_server(obliging, body)


# The server as a witness


def test_a_mistake_in_the_script_of_a_test_is_not_taken_for_a_fault_that_was_asked_for() -> None:
    def respond(_body: dict[str, Any], _number: int) -> Reply:
        raise LookupError("a mistake")

    async def body(model: PydanticAIModel, _: ModelServer) -> None:
        with pytest.raises(ModelServerError):
            await collect(model.stream(ask()))

    with pytest.raises(LookupError, match="a mistake"):
        with_server(respond, body)


def test_the_server_runs_as_a_process_and_logs_what_arrived_and_what_was_answered(tmp_path: Path) -> None:
    log, script = tmp_path / "log", tmp_path / "script.json"
    script.write_text(json.dumps([{"contains": "cut me", "reply": {"text": "x", "cut_after_events": 1}}]))
    command = [sys.executable, "-m", "ai_whisperer.testing.model_server", "--log", str(log), "--script", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            ready, url = server.stdout.readline().split()
            assert ready == "ready"
            asyncio.run(_ask_thrice(url))
        finally:
            server.terminate()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["event"], line["number"], line["key"]) for line in lines] == [
        ("arrived", 1, "t1.1"),
        ("answered", 1, "t1.1"),
        ("arrived", 2, "t1.2"),
        ("arrived", 3, "t1.3"),
        ("answered", 3, "t1.3"),
    ]
    assert {line["model"] for line in lines} == {"test-model"}


async def _ask_thrice(url: str) -> None:
    async with model_at(url) as model:
        await collect(model.stream(ask()))
        with pytest.raises(ModelCutOffError):
            await collect(model.stream(ask(UserTurn(text="cut me"), step_id="t1.2")))
        await collect(model.stream(ask(step_id="t1.3")))


def test_models_of_one_name_share_their_connections_until_the_last_is_closed() -> None:
    async def body(model: PydanticAIModel, server: ModelServer) -> None:
        other = PydanticAIModel(model.name)
        await collect(model.stream(ask()))
        await collect(other.stream(ask()))
        await other.close()
        await collect(model.stream(ask()))
        assert len(server.received) == 3

    with_server(Reply(text="hello"), body)
