"""Answers of chat completions in the odd forms that servers give them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ai_whisperer.domain.conversation import Answer, AnswerTurn, ToolCall, ToolTurn, UserTurn
from ai_whisperer.errors import (
    ModelError,
    ModelRefusedError,
    ModelServerError,
    ModelTooLongError,
    ModelUnavailableError,
)
from ai_whisperer.models.base import AnswerAssembler, ModelRequest
from ai_whisperer.models.bounded_body import Meter
from ai_whisperer.models.chat_reader import ChatReader
from ai_whisperer.models.chat_request import messages_of
from ai_whisperer.models.failures import of_report, of_status


def read(*deltas: dict[str, Any], finish: str | None = "stop", prefix: str = "openrouter", **chunk: Any) -> Answer:
    reader = ChatReader(name="p:m", prefix=prefix, step_id="t1.1", meter=Meter(), cost=lambda *_: None)
    assembler = AnswerAssembler(1 << 20)
    chunks: list[dict[str, Any]] = [{"choices": [{"delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"delta": {}, "finish_reason": finish}], **chunk})
    for each in chunks:
        for event in reader.take(json.dumps(each).encode()):
            assembler.take(event)
    for event in reader.ending():
        assembler.take(event)
    return assembler.answer()


def piece(arguments: Any = "", name: str | None = None, **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"function": {"name": name, "arguments": arguments}, **more}]}


@pytest.mark.parametrize(
    "deltas",
    [
        [piece("", "a", index=0, id="x"), piece("1", index=0), piece("", "b", index=1, id="y"), piece("2", index=1)],
        [piece("", "a", index=0, id="x"), piece("", "b", index=1, id="y"), piece("2", index=1), piece("1", index=0)],
        [piece("1", "a", index=0, id="x"), piece("2", "b", index=0, id="y")],
        [piece("", "a", id="x"), piece("1"), piece("", "b", id="y"), piece("2")],
        [piece("", "a", id="x"), piece("", "b", id="y"), piece("1", id="x"), piece("2", id="y")],
        [piece("", "a", index=0, id="x"), piece("1", "a", index=0, id="x"), piece("2", "b", index=1, id="y")],
        [piece(1, "a", index=5, id="x"), piece(2, "b", index=7, id="y")],
    ],
)
def test_the_pieces_of_two_calls_are_told_apart(deltas: list[dict[str, Any]]) -> None:
    calls = read(*deltas).tool_calls
    assert [(call.call_id, call.name, call.arguments) for call in calls] == [("x", "a", "1"), ("y", "b", "2")]


def test_calls_without_ids_and_with_the_same_get_some_of_their_own() -> None:
    calls = read(piece("1", "a"), piece("2", "b"), piece("3", "c", index=9, id="x"), piece("4", "d", index=8, id="x"))
    ids = [call.call_id for call in calls.tool_calls]
    assert len(set(ids)) == 4
    assert ids[2] == "x"
    assert all(ids)
    assert [call.arguments for call in calls.tool_calls] == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("pieces", "wanted"),
    [
        ([piece('{"n": 1}', "a", index=0), piece('{"n": 2}', "b", index=0)], [("a", '{"n": 1}'), ("b", '{"n": 2}')]),
        ([piece('{"n": 1}', "a", index=0), piece('{"n": 2}', "a", index=0)], [("a", '{"n": 1}'), ("a", '{"n": 2}')]),
        ([piece("{", "a", index=0), piece("}", index=0), piece("{}", "b", index=0)], [("a", "{}"), ("b", "{}")]),
        ([piece('{"n": ', "a", index=0), piece("1}", "a", index=0)], [("a", '{"n": 1}')]),
        ([piece("{}", "a", index=0), piece("", "a", index=0)], [("a", "{}")]),
        ([piece("", "get_", index=0), piece("", "time", index=0), piece("{}", index=0)], [("get_time", "{}")]),
    ],
)
def test_calls_with_the_same_index_and_no_id_are_told_apart_by_what_is_whole(
    pieces: list[dict[str, Any]], wanted: list[tuple[str, str]]
) -> None:
    assert [(call.name, call.arguments) for call in read(*pieces).tool_calls] == wanted


def test_a_call_that_was_cut_off_before_its_arguments_is_none() -> None:
    cut = [{"content": "I add."}, piece("{}", "now", index=0, id="x"), piece("", "wipe", index=1, id="y")]
    assert [call.name for call in read(*cut, finish="length").tool_calls] == ["now"]
    assert [call.arguments for call in read(*cut, finish="tool_calls").tool_calls] == ["{}", "{}"]


def test_arguments_may_be_an_object() -> None:
    assert json.loads(read(piece({"a": 1}, "add", id="x")).tool_calls[0].arguments) == {"a": 1}


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
@pytest.mark.parametrize(
    ("said", "reasoning", "text"),
    [
        ("<think>hm</think>\n\nyes", "hm", "yes"),
        (" \n<think>\nhm < 3</thin</think>yes</think>", "\nhm < 3</thin", "yes</think>"),
        ("<thin ice", "", "<thin ice"),
        ("so <think>no</think>", "", "so <think>no</think>"),
        ("<", "", "<"),
    ],
)
def test_reasoning_between_tags_at_the_beginning_is_reasoning(said: str, reasoning: str, text: str, size: int) -> None:
    answer = read(*({"content": said[at : at + size]} for at in range(0, len(said), size)))
    assert (answer.reasoning, answer.text) == (reasoning, text)


@pytest.mark.parametrize(
    ("finish", "kind"), [("error", ModelServerError), ("insufficient_system_resource", ModelUnavailableError)]
)
def test_a_provider_that_could_not_go_on_is_no_answer(finish: str, kind: type[ModelError]) -> None:
    with pytest.raises(kind, match="broke off"):
        read({"content": "half"}, finish=finish)


def test_a_cost_that_the_provider_tells_counts() -> None:
    usage = read({"content": "x"}, usage={"prompt_tokens": 5, "completion_tokens": 2, "cost": 0.5}).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (5, 2, 0.5)


def test_tokens_from_the_cache_are_known_in_both_forms() -> None:
    for form in ({"prompt_tokens_details": {"cached_tokens": 3}}, {"prompt_cache_hit_tokens": 3}):
        assert (
            read({"content": "x"}, usage={"prompt_tokens": 5, "completion_tokens": 2, **form}).usage.cached_tokens == 3
        )


def shown_again(answer: Answer, prefix: str, *, wants_reasoning: bool = False) -> dict[str, Any]:
    turns = (UserTurn(text="go"), AnswerTurn(answer=answer), ToolTurn(call=answer.tool_calls[0], content="1"))
    request = ModelRequest(step_id="t1.2", agent_id="ada", system="", turns=turns)
    return list(messages_of(request, prefix=prefix, wants_reasoning=wants_reasoning))[1]


def test_details_of_reasoning_are_put_together_and_shown_again_to_whom_they_came_from() -> None:
    answer = read(
        {"reasoning": "I ", "reasoning_details": [{"type": "reasoning.text", "text": "I ", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.text", "text": "am.", "signature": "s", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "d", "index": 1}]},
        piece("{}", "add", id="x"),
    )
    assert shown_again(answer, "openrouter")["reasoning_details"] == [
        {"type": "reasoning.text", "text": "I am.", "signature": "s", "index": 0},
        {"type": "reasoning.encrypted", "data": "d", "index": 1},
    ]
    assert "reasoning_details" not in shown_again(answer, "vllm")


def test_reasoning_in_journals_of_the_provider_library_is_shown_again() -> None:
    parts = [
        {"part_kind": "thinking", "id": "reasoning_content", "content": "Hm."},
        {"part_kind": "text", "content": "x"},
    ]
    kept = json.dumps({"parts": parts, "metadata": {"prefix": "deepseek"}, "kind": "response"})
    calls = (ToolCall(call_id="x", name="add", arguments="{}"),)
    answer = Answer(text="x", tool_calls=calls, provider=kept)
    assert shown_again(answer, "deepseek")["reasoning_content"] == "Hm."
    assert "reasoning_content" not in shown_again(answer, "vllm")


def test_arguments_that_are_no_json_are_shown_again_in_a_form_that_servers_take() -> None:
    answer = Answer(tool_calls=(ToolCall(call_id="x", name="add", arguments='{"a": '),))
    (call,) = shown_again(answer, "vllm")["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"not_json": '{"a": '}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."),
        (
            400,
            "the request exceeds the available context size. try increasing the context size or enable context shift",
        ),
        (500, "the input length exceeds the context length"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        (400, "The decoder prompt (length 9000) is longer than the maximum model length of 8192."),
        (400, "Please reduce the length of the messages or completion."),
    ],
)
def test_a_conversation_that_is_too_long_is_recognised_at_all_servers(status: int, said: str) -> None:
    error = of_status(status, said)
    assert type(error) is ModelTooLongError
    assert error.message.startswith("The conversation is too long for the model: ")
    assert of_report(said, ()).message == error.message


def test_a_model_that_cannot_use_tools_is_told_of_with_what_to_do() -> None:
    error = of_status(400, "registry.ollama.ai/library/gemma:2b does not support tools.")
    assert type(error) is ModelRefusedError
    assert "grant the agent no tools" in error.message
