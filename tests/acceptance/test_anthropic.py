"""Anthropic's messages over real HTTP: what is asked, what is answered, and what goes wrong."""

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from pydantic_ai import messages as wire

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.core.call_reading import as_read, read_calls
from ai_whisperer.domain.conversation import Answer, AnswerTurn, ToolCall, ToolTurn, Turn, UserTurn
from ai_whisperer.errors import (
    AnswerSizeError,
    ModelCutOffError,
    ModelEmptyError,
    ModelError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelServerError,
    ModelTooLongError,
    ModelUnavailableError,
)
from ai_whisperer.models import bounded_body
from ai_whisperer.models.anthropic_messages import AnthropicModel
from ai_whisperer.models.base import (
    Alive,
    CallRequested,
    Finished,
    ModelRequest,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    collect,
)
from ai_whisperer.models.pydantic_ai import PydanticAIModel
from ai_whisperer.testing.anthropic_events import framed, message_events
from ai_whisperer.testing.model_server import Call, ModelServer, Reply, Respond, obliging
from tests.acceptance.provider_stage import ADD, HELLO, ask
from tests.acceptance.test_provider_floods import ANSWER, ODD_FRAMES

KEY = "sk-ant-canary-0123456789abcdef"
THINKS = Reply(reasoning="I should add these.", text="I add.", tool_calls=(Call("add", '{"a": 1, "b": 20}'),))


@asynccontextmanager
async def asking(respond: Respond | Reply) -> AsyncIterator[tuple[AnthropicModel, ModelServer]]:
    decide: Respond = (lambda _body, _number: respond) if isinstance(respond, Reply) else respond
    async with ModelServer(decide) as server:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ANTHROPIC_BASE_URL", server.root_url)
            patch.setenv("ANTHROPIC_API_KEY", KEY)
            model = AnthropicModel("anthropic:claude-haiku-4-5")
            try:
                yield model, server
            finally:
                await model.close()


CACHED = {"cache_control": {"type": "ephemeral"}}


def played(respond: Respond | Reply, body: Callable[[AnthropicModel, ModelServer], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asking(respond) as (model, server):
            await body(model, server)

    asyncio.run(run())


def events_of(reply: Reply) -> list[StreamEvent]:
    events: list[StreamEvent] = []

    async def body(model: AnthropicModel, _: ModelServer) -> None:
        events.extend([event async for event in model.stream(ask())])

    played(reply, body)
    return events


def answer_to(reply: Reply) -> Answer:
    answers: list[Answer] = []

    async def body(model: AnthropicModel, _: ModelServer) -> None:
        answers.append(await collect(model.stream(ask())))

    played(reply, body)
    return answers[0]


def failure_of(reply: Reply) -> ModelError:
    errors: list[ModelError] = []

    async def body(model: AnthropicModel, server: ModelServer) -> None:
        with pytest.raises(ModelError) as caught:
            await collect(model.stream(ask()))
        errors.append(caught.value)
        assert len(server.received) == 1

    played(reply, body)
    return errors[0]


def sent(request: ModelRequest) -> dict[str, Any]:
    bodies: list[dict[str, Any]] = []

    async def body(model: AnthropicModel, server: ModelServer) -> None:
        await collect(model.stream(request))
        bodies.append(server.received[0].body)

    played(HELLO, body)
    return bodies[0]


def raw(*events: dict[str, Any] | bytes) -> Reply:
    """A response with these events, however odd."""
    frames = [each if isinstance(each, bytes) else framed(json.dumps(each)).encode() for each in events]
    return Reply(raw=lambda: (ANSWER + b"\r\n", *frames))


def begun(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def piece(index: int, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


STOP: dict[str, Any] = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}
END: dict[str, Any] = {"type": "message_stop"}


# Answers


def test_text_reasoning_and_calls_arrive_in_pieces_and_end_with_finished() -> None:
    events = events_of(THINKS)
    assert "".join(each.text for each in events if isinstance(each, TextDelta)) == THINKS.text
    thoughts = [each.text for each in events if isinstance(each, ReasoningDelta)]
    assert len(thoughts) > 1
    assert "".join(thoughts) == THINKS.reasoning
    calls = [each.call for each in events if isinstance(each, CallRequested)]
    assert calls == [ToolCall(call_id="toolu_1_0", name="add", arguments='{"a": 1, "b": 20}')]
    assert isinstance(events[-1], Finished)
    assert (events[-1].finish, events[-1].model) == ("tool_call", "claude-haiku-4-5")


def test_usage_counts_what_came_from_the_cache_and_prices_it() -> None:
    plain = answer_to(Reply(text="x", input_tokens=1_000, output_tokens=30)).usage
    cached = answer_to(Reply(text="x", input_tokens=1_000, output_tokens=30, cached_tokens=900)).usage
    assert (cached.input_tokens, cached.output_tokens, cached.cached_tokens) == (1_000, 30, 900)
    assert plain.cost_usd is not None
    assert cached.cost_usd is not None
    assert 0 < cached.cost_usd < plain.cost_usd


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("refusal", "content_filter"),
        ("a new one", "stop"),
    ],
)
def test_the_reason_of_the_provider_becomes_one_of_ours(said: str, finish: str) -> None:
    assert answer_to(Reply(text="x", finish=said)).finish == finish


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert answer_to(Reply(tool_calls=(Call("now", ""),))).tool_calls[0].arguments == "{}"


def test_pings_are_signs_of_life() -> None:
    turns = [b""] * 20  # nothing is sent for some turns, so that what was sent is read before the next
    ping = framed('{"type": "ping"}').encode()
    answer = [framed(json.dumps(each)).encode() for each in (begun(0, type="text", text="x"), STOP, END)]
    kinds = [
        type(each) for each in events_of(Reply(raw=lambda: (ANSWER + b"\r\n", ping, *turns, ping, *turns, *answer)))
    ]
    assert kinds[:5] == [Alive] * 4 + [TextDelta]  # the request was sent and taken, and two pings came


# Requests


def test_the_key_the_version_and_the_idempotency_key_are_in_the_headers() -> None:
    async def body(model: AnthropicModel, server: ModelServer) -> None:
        settings = {"extra_headers": {"X-Team": "blue"}, "anthropic_betas": ["one", "two"]}
        await collect(model.stream(ask(step_id="task-7.3", settings=settings)))
        (received,) = server.received
        assert received.path == "/v1/messages"
        named = ("x-api-key", "anthropic-version", "idempotency-key", "x-team", "anthropic-beta")
        assert [received.headers[name] for name in named] == [KEY, "2023-06-01", "task-7.3", "blue", "one,two"]
        assert "authorization" not in received.headers

    played(HELLO, body)


def test_system_tools_and_settings_reach_the_provider() -> None:
    settings = {"temperature": 0.25, "top_k": 7, "wisdom": 11, "extra_body": {"more": 1}, "tool_choice": "required"}
    body = sent(ask(tools=(ADD,), settings=settings))
    assert body["system"] == [{"type": "text", "text": "Be brief.", **CACHED}]
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Hi", **CACHED}]}]
    (tool,) = body["tools"]
    assert (tool["name"], tool["description"], tool["input_schema"]["required"]) == (
        "add",
        "Adds two numbers.",
        ["a", "b"],
    )
    assert (body["temperature"], body["top_k"], body["more"], body["tool_choice"]) == (0.25, 7, 1, {"type": "any"})
    assert "wisdom" not in body


@pytest.mark.parametrize(
    ("settings", "room", "wanted"),
    [
        ({}, None, 16_384),
        ({}, 300, 300),
        ({"max_tokens": 200}, 300, 200),
        ({"anthropic_thinking": {"type": "enabled", "budget_tokens": 30_000}}, None, 34_096),
    ],
)
def test_an_answer_may_always_be_so_long(settings: dict[str, Any], room: int | None, wanted: int) -> None:
    assert sent(ask(settings=settings, max_output_tokens=room))["max_tokens"] == wanted


@pytest.mark.parametrize(
    ("thinking", "wanted"),
    [
        (True, {"type": "enabled", "budget_tokens": 10_000}),
        ("low", {"type": "enabled", "budget_tokens": 2_048}),
        (False, {"type": "disabled"}),
    ],
)
def test_how_much_is_thought_can_be_set_as_for_all_providers(thinking: bool | str, wanted: dict[str, Any]) -> None:  # noqa: FBT001
    body = sent(ask(settings={"thinking": thinking, "temperature": 0.5}))
    assert body["thinking"] == wanted
    assert ("temperature" in body) == (thinking is False)


def test_what_an_agent_asks_again_is_cached_by_itself_and_what_is_asked_once_is_not() -> None:
    once = sent(ask())
    assert once["system"] == [{"type": "text", "text": "Be brief."}]
    assert "cache_control" not in once["messages"][0]["content"][0]
    off = sent(ask(tools=(ADD,), settings={"anthropic_cache_messages": False}))
    assert "cache_control" not in str(off)


def test_what_is_cached_can_be_set() -> None:
    names = ("anthropic_cache_instructions", "anthropic_cache_tool_definitions", "anthropic_cache_messages")
    body = sent(ask(tools=(ADD,), settings={**dict.fromkeys(names, True), "anthropic_cache": "1h"}))
    marked = (body["system"][-1], body["tools"][-1], body["messages"][-1]["content"][-1])
    assert [each["cache_control"] for each in marked] == [{"type": "ephemeral"}] * 3
    assert body["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


def test_a_missing_key_is_told_by_the_first_request() -> None:
    async def run() -> None:
        with pytest.raises(ModelRefusedError, match="Set the `ANTHROPIC_API_KEY` environment variable"):
            await collect(AnthropicModel("anthropic:m").stream(ask()))

    asyncio.run(run())


# Conversations


def test_a_conversation_with_tools_goes_round() -> None:
    async def body(model: AnthropicModel, server: ModelServer) -> None:
        turns: list[Turn] = [UserTurn(text="please use tool add 2 times")]
        for _ in range(2):
            answer = await collect(model.stream(ask(*turns, tools=(ADD,))))
            turns.append(AnswerTurn(answer=answer))
            turns += [ToolTurn(call=call, content=f"saw {call.arguments}") for call in answer.tool_calls]
        answer = await collect(model.stream(ask(*turns, tools=(ADD,))))
        assert answer.text == "done: please use tool add 2 times"
        messages = server.received[-1].body["messages"]
        assert [message["role"] for message in messages] == ["user", "assistant"] * 2 + ["user"]
        assert messages[3]["content"] == [{"type": "tool_use", "id": "toolu_2_0", "name": "add", "input": {"n": 2}}]
        assert messages[4]["content"] == [
            {**CACHED, "type": "tool_result", "tool_use_id": "toolu_2_0", "content": 'saw {"n": 2}'}
        ]

    played(obliging, body)


def test_results_come_first_and_errors_are_marked_and_foreign_ids_are_made_fit() -> None:
    calls = (
        ToolCall(call_id="c.1/ü", name="add", arguments='{"a":1}'),
        ToolCall(call_id="c2", name="add now", arguments="half {"),
    )
    turns = (
        UserTurn(text="add"),
        AnswerTurn(answer=Answer(text="Adding.", tool_calls=calls)),
        ToolTurn(call=calls[0], content="1"),
        UserTurn(text="hurry"),
        ToolTurn(call=calls[1], content="b is missing", is_error=True),
        UserTurn(text="  "),
    )
    _, answer, last = sent(ask(*turns))["messages"]
    assert answer["content"] == [
        {"type": "text", "text": "Adding."},
        {"type": "tool_use", "id": "c_1__", "name": "add", "input": {"a": 1}},
        {"type": "tool_use", "id": "c2", "name": "add_now", "input": {"not_json": "half {"}},
    ]
    assert last["content"] == [
        {"type": "tool_result", "tool_use_id": "c_1__", "content": "1"},
        {"type": "tool_result", "tool_use_id": "c2", "content": "b is missing", "is_error": True},
        {"type": "text", "text": "hurry", **CACHED},
    ]


def again(answer: Answer) -> list[dict[str, Any]]:
    """The answer as the provider is shown it in the next request."""
    results = [ToolTurn(call=call, content="1") for call in answer.tool_calls]
    blocks: list[dict[str, Any]] = sent(ask(UserTurn(text="add"), AnswerTurn(answer=answer), *results))["messages"][1][
        "content"
    ]
    return blocks


def test_reasoning_is_shown_again_with_its_signature() -> None:
    answer = answer_to(THINKS)
    assert answer.provider is not None
    assert again(answer) == [
        {"type": "thinking", "thinking": "I should add these.", "signature": "signature-1"},
        {"type": "text", "text": "I add."},
        {"type": "tool_use", "id": "toolu_1_0", "name": "add", "input": {"a": 1, "b": 20}},
    ]


def test_blocks_keep_their_order() -> None:
    answer = answer_to(
        raw(
            begun(0, type="redacted_thinking", data="secret"),
            begun(1, type="text", text="One"),
            begun(2, type="thinking", thinking="Hm", signature="s"),
            begun(3, type="text", text="Two"),
            begun(4, type="tool_use", id="t1", name="add", input={}),
            piece(4, type="input_json_delta", partial_json='{"a":1}'),
            STOP,
            END,
        )
    )
    assert (answer.text, answer.reasoning) == ("OneTwo", "Hm")
    assert again(answer) == [
        {"type": "redacted_thinking", "data": "secret"},
        {"type": "text", "text": "One"},
        {"type": "thinking", "thinking": "Hm", "signature": "s"},
        {"type": "text", "text": "Two"},
        {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}},
    ]


@pytest.mark.parametrize("kept", [None, "", "no JSON", '{"parts": 1}', "foreign", "other calls"])
def test_an_answer_that_is_not_this_providers_is_rebuilt_from_its_text_and_calls(kept: str | None) -> None:
    answer = answer_to(THINKS)
    assert answer.provider is not None
    match kept:
        case "foreign":
            kept = answer.provider.replace('"prefix":"anthropic"', '"prefix":"bedrock"')
        case "other calls":
            kept = answer.provider.replace("toolu_1_0", "toolu_9_9")
    assert [block["type"] for block in again(msgspec.structs.replace(answer, provider=kept))] == ["text", "tool_use"]


def library_kept() -> str:
    """What the provider library kept of an answer in the journals of before."""
    response = wire.ModelResponse(
        [
            wire.ThinkingPart("Hm.", signature="old signature", provider_name="anthropic"),
            wire.ThinkingPart("", id="redacted_thinking", signature="hidden", provider_name="anthropic"),
            wire.TextPart("Adding."),
            wire.ToolCallPart("add", '{"a":1}', "t1"),
        ],
        metadata={"prefix": "anthropic"},
    )
    return wire.ModelMessagesTypeAdapter.dump_json([response]).decode()[1:-1]


def test_reasoning_in_journals_of_the_provider_library_keeps_its_signatures() -> None:
    calls = (ToolCall(call_id="t1", name="add", arguments='{"a":1}'),)
    answer = Answer(text="Adding.", tool_calls=calls, provider=library_kept())
    assert again(answer) == [
        {"type": "thinking", "thinking": "Hm.", "signature": "old signature"},
        {"type": "redacted_thinking", "data": "hidden"},
        {"type": "text", "text": "Adding."},
        {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}},
    ]


def read_again(answer: Answer) -> Answer:
    """The answer as it is shown again after its calls were read."""
    return as_read(read_calls(answer, {"add": ADD}.get, step_id="s1", turns=()))


def test_an_answer_whose_call_was_repaired_keeps_its_signed_reasoning() -> None:
    written = Call("functions.add", '{"a": "1", "b": 20}')
    answer = read_again(answer_to(replace(THINKS, tool_calls=(written,))))
    assert again(answer) == again(answer_to(THINKS))
    assert again(answer)[0]["signature"] == "signature-1"


def test_the_provider_library_shows_a_repaired_call_with_what_was_kept_beside_it() -> None:
    kept = library_kept().replace('"tool_name":"add"', '"tool_name":"functions.add"')
    written = ToolCall(call_id="t1", name="functions.add", arguments='{"a":1}')
    model = PydanticAIModel("openai-chat:m")
    model.prefix = "anthropic"
    answer = read_again(Answer(text="Adding.", tool_calls=(written,), provider=kept))
    thought, _, _, call = model._response(answer).parts
    assert isinstance(thought, wire.ThinkingPart)
    assert thought.signature == "old signature"
    assert isinstance(call, wire.ToolCallPart)
    assert (call.tool_name, call.args, call.tool_call_id) == ("add", '{"a":1}', "t1")


def test_the_provider_library_reads_text_and_calls_of_what_our_client_kept() -> None:
    answer = answer_to(THINKS)
    parts = PydanticAIModel("openai-chat:m")._response(answer).parts
    assert [type(part) for part in parts] == [wire.TextPart, wire.ToolCallPart]


def test_an_agent_works_with_it_without_the_package_of_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)

    async def run() -> None:
        async with asking(obliging), AsyncAgentSessionManager() as manager:
            await manager.create_agent("alice", {"model": "anthropic:claude-haiku-4-5"})
            assert await manager.run_task("alice", "please use tool list_agents 1 times") == (
                "done: please use tool list_agents 1 times"
            )

    asyncio.run(run())


# Faults


@pytest.mark.parametrize(
    ("status", "said", "kind", "words"),
    [
        (400, "prompt is too long: 210000 tokens > 200000 maximum", ModelTooLongError, "Shorten it"),
        (400, "Your credit balance is too low to access the API.", ModelRefusedError, "Top up"),
        (400, "max_tokens: wrong", ModelRefusedError, "refused the request"),
        (401, f"invalid x-api-key {KEY}", ModelRefusedError, "Check the key"),
        (404, "model: nobody", ModelRefusedError, "does not know the model"),
        (413, "Request exceeds the maximum size", ModelRefusedError, "status 413"),
        (429, "slow down", ModelRateLimitError, "fewer requests"),
        (500, "Internal server error", ModelUnavailableError, "status 500"),
        (529, "Overloaded", ModelUnavailableError, "status 529"),
    ],
)
def test_a_status_becomes_an_error(status: int, said: str, kind: type[ModelError], words: str) -> None:
    error = failure_of(Reply(status=status, error=said, headers={"Retry-After": "7"}))
    assert type(error) is kind
    assert words in error.message
    assert KEY not in error.message
    assert error.retry_after_seconds == (7.0 if status in (429, 500, 529) else None)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("overloaded_error", ModelUnavailableError),
        ("api_error", ModelUnavailableError),
        ("rate_limit_error", ModelRateLimitError),
        ("authentication_error", ModelRefusedError),
        ("a new one", ModelServerError),
    ],
)
def test_an_error_inside_the_stream_counts(code: str, kind: type[ModelError]) -> None:
    event = json.dumps({"type": "error", "error": {"type": code, "message": "that went wrong"}})
    error = failure_of(replace(HELLO, malformed_after_events=4, malformed_event=event))
    assert type(error) is kind
    assert "that went wrong" in error.message


COUNT = len(message_events(THINKS, model="m", number=1))


@pytest.mark.parametrize("place", range(COUNT - 1))
def test_a_malformed_event_is_a_server_error_wherever_it_stands(place: int) -> None:
    assert type(failure_of(replace(THINKS, malformed_after_events=place))) is ModelServerError


@pytest.mark.parametrize("count", range(COUNT + 1))
def test_a_cut_after_any_event_never_looks_complete_without_a_reason(count: int) -> None:
    told: list[StreamEvent] = []

    async def body(model: AnthropicModel, _: ModelServer) -> None:
        try:
            answer = await collect(model.stream(ask()), told.append)
        except ModelCutOffError:
            assert not any(isinstance(event, Finished | CallRequested) for event in told)
        else:
            assert count == COUNT
            assert (answer.text, answer.tool_calls[0].arguments) == (THINKS.text, THINKS.tool_calls[0].arguments)

    played(replace(THINKS, cut_after_events=count), body)


def test_an_end_without_a_reason_is_cut_off() -> None:
    assert type(failure_of(replace(HELLO, omit_finish=True))) is ModelCutOffError


TEXT = begun(0, type="text", text="")
FLOODS: dict[str, tuple[Callable[[int], dict[str, Any]], type[ModelError]]] = {
    "text": (lambda _: piece(0, type="text_delta", text="x" * 1_000), AnswerSizeError),
    "arguments": (lambda _: piece(1, type="input_json_delta", partial_json="x" * 1_000), AnswerSizeError),
    "calls": (lambda n: begun(n + 2, type="tool_use", id=f"t{n}", name="add"), AnswerSizeError),
    "blocks": (lambda n: begun(n + 2, type="text", text=""), ModelServerError),
    "signatures": (lambda _: piece(2, type="signature_delta", signature="x" * 1_000), ModelServerError),
    "pings": (lambda _: {"type": "ping"}, ModelServerError),
    "events that nobody knows": (lambda n: {"type": f"new_{n}"}, ModelServerError),
}


@pytest.mark.parametrize("kind", FLOODS)
def test_what_has_no_end_is_ended(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_body, "MAX_BARE_BYTES", 256 << 10)
    monkeypatch.setattr(bounded_body, "MAX_BODY_BYTES", 16 << 20)
    make, error_class = FLOODS[kind]

    def pieces() -> Iterator[bytes]:
        starts = (TEXT, begun(1, type="tool_use", id="t", name="add"), begun(2, type="thinking", thinking=""))
        yield ANSWER + b"\r\n" + b"".join(framed(json.dumps(each)).encode() for each in starts)
        for at in itertools.count(step=50):
            yield b"".join(framed(json.dumps(make(number))).encode() for number in range(at, at + 50))

    assert type(failure_of(Reply(raw=pieces))) is error_class


@pytest.mark.parametrize("frame", ODD_FRAMES)
def test_an_odd_frame_ends_in_an_answer_or_in_an_error_of_a_model(frame: bytes) -> None:
    async def body(model: AnthropicModel, _: ModelServer) -> None:
        with suppress(ModelServerError, ModelCutOffError, ModelEmptyError):
            answer = await collect(model.stream(ask()))
            assert answer.text == "hello"

    played(raw(begun(0, type="text", text="hello"), frame, STOP, END), body)


def test_a_character_that_is_split_over_two_pieces_is_whole_again() -> None:
    answer = answer_to(
        raw(
            begun(0, type="thinking", thinking="\ud83d", signature="s"),
            piece(0, type="thinking_delta", thinking="\ude00"),
            begun(1, type="text", text="a\ud83d"),
            piece(1, type="text_delta", text="\ude00b"),
            STOP,
            END,
        )
    )
    assert (answer.text, answer.reasoning) == ("a\U0001f600b", "\U0001f600")
    assert again(answer)[0]["thinking"] == "\U0001f600"
