"""What providers answer and are asked, over real HTTP."""

import asyncio
import json

import msgspec
import pytest

from ai_whisperer.domain.conversation import Answer, AnswerTurn, ToolCall, ToolTurn, Turn, UserTurn
from ai_whisperer.errors import (
    ModelRefusedError,
)
from ai_whisperer.models.base import (
    CallRequested,
    Finished,
    ReasoningDelta,
    TextDelta,
    collect,
)
from ai_whisperer.models.openai_chat import OpenAIChatModel
from ai_whisperer.testing.model_server import Call, ModelServer, Reply, obliging
from tests.acceptance.provider_stage import (
    ADD,
    HELLO,
    KEY,
    ProviderModel,
    answer_to,
    ask,
    body_sent,
    events_of,
    is_own,
    model_at,
    model_named,
    with_server,
)

pytestmark = pytest.mark.usefixtures("provider_environment", "provider_client")


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


def test_a_call_that_was_cut_off_before_its_arguments_is_none() -> None:
    answer = answer_to(Reply(text="I wipe.", tool_calls=(Call("wipe", ""),), finish="length"))
    assert (answer.text, answer.tool_calls, answer.finish) == ("I wipe.", (), "length")
    assert 'wipe"' not in (answer.provider or "")


def test_usage_is_told_and_an_unknown_model_has_no_price() -> None:
    usage = answer_to(Reply(text="x", input_tokens=120, output_tokens=30, cached_tokens=100)).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (120, 30, 100)
    assert usage.cost_usd is None


@pytest.mark.parametrize(("settings", "wanted"), [({}, 300), ({"max_tokens": 200}, 200), ({"max_tokens": 900}, 300)])
def test_an_answer_may_be_as_long_as_the_settings_and_the_budget_say(settings: dict[str, int], wanted: int) -> None:
    sent = body_sent(ask(settings=settings, max_output_tokens=300))
    assert sent.get("max_completion_tokens", sent.get("max_tokens")) == wanted


@pytest.mark.parametrize(("name", "known"), [("openai-chat:gpt-4o", True), ("openai-chat:nobody-knows-it", False)])
def test_the_price_of_a_request_is_known_before_it_if_the_model_is(name: str, known: bool) -> None:  # noqa: FBT001
    async def main() -> None:
        model = model_named(name)
        if isinstance(model, OpenAIChatModel):
            await model.prepare()
        dear, cheap = model.price_usd(1_000_000, 1_000_000), model.price_usd(1_000, 0)
        await model.close()
        assert (dear is not None and cheap is not None and dear > cheap > 0) == known

    asyncio.run(main())


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
    async def body(model: ProviderModel, server: ModelServer) -> None:
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
            await collect(model_named("openai-chat:test-model").stream(ask()))
        assert "Provider(" not in caught.value.message

    asyncio.run(run())


# Conversations


def test_a_conversation_with_tools_goes_round() -> None:
    async def body(model: ProviderModel, server: ModelServer) -> None:
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
        case "other calls" if is_own():
            pytest.skip("our own client keeps no calls beside those of the answer")
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
        async with ModelServer(lambda _body, _number: HELLO) as server:
            url = server.base_url.replace("127.0.0.1", "user:hunter2-hunter2@127.0.0.1")
            async with model_at(url) as model:
                answer = await collect(model.stream(ask()))
        assert answer.provider is not None
        assert "hunter2" not in answer.provider
        assert KEY not in answer.provider

    asyncio.run(run())


# Failures
