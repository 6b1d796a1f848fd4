"""Characters and numbers as providers send them, from the wire to the journal, the store and the clients."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer import Client, TaskState
from ai_whisperer.domain.conversation import AnswerTurn
from ai_whisperer.models.base import ReasoningDelta, TextDelta, collect
from ai_whisperer.server.serving import running
from ai_whisperer.settings import Settings
from ai_whisperer.testing.model_server import ModelServer, Reply
from tests.acceptance.provider_stage import ProviderModel, answer_to, ask, events_of, failure_of, is_own, with_server
from tests.acceptance.server_in_thread import contents_of
from tests.acceptance.test_provider_floods import END, call_begins, call_piece, event, once

pytestmark = pytest.mark.usefixtures("provider_environment", "provider_client")

SMILE = "\U0001f600"
HIGH, LOW = "\ud83d", "\ude00"
LOST = "\ufffd"


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["a" + HIGH, LOW + "b"], f"a{SMILE}b"),
        ([HIGH, LOW], SMILE),
        ([HIGH, LOW, HIGH, LOW], SMILE * 2),
        (["a" + HIGH, "b"], f"a{LOST}b"),
        (["a", LOW, "b"], f"a{LOST}b"),
        (["a" + HIGH], f"a{LOST}"),
        ([HIGH, HIGH, LOW], LOST + SMILE),
        ([LOW, HIGH], LOST * 2),
        (["a", HIGH + "b" + LOW + HIGH, LOW], f"a{LOST}b{LOST}{SMILE}"),
    ],
)
def test_a_character_that_is_split_over_two_pieces_is_whole_again(pieces: list[str], text: str) -> None:
    reply = Reply(raw=once(event({"content": ""}), *(event({"content": piece}) for piece in ["[", *pieces, "]"]), END))
    answer = answer_to(reply)
    assert answer.text == f"[{text}]"
    if not is_own():  # which keeps no text twice
        assert answer.provider is not None
        assert json.loads(answer.provider)["parts"][0]["content"] == f"[{text}]"

    async def body(model: ProviderModel, _: ModelServer) -> None:
        told: list[str] = []
        await collect(model.stream(ask()), lambda each: told.append(each.text) if isinstance(each, TextDelta) else None)
        assert "".join(told).encode().decode() == f"[{text}]"

    with_server(reply, body)


def test_reasoning_and_arguments_that_are_split_are_whole_again_and_can_be_sent_back() -> None:
    frames = [
        event({"reasoning_content": "hm " + HIGH}),
        event({"reasoning_content": LOW}),
        event(call_begins(0)),
        event(call_piece(0, '{"a": "' + HIGH)),
        event(call_piece(0, LOW + HIGH + '"}')),
        END,
    ]
    bodies: list[dict[str, Any]] = []

    async def body(model: ProviderModel, server: ModelServer) -> None:
        reasoning: list[str] = []
        answer = await collect(
            model.stream(ask()),
            lambda each: reasoning.append(each.text) if isinstance(each, ReasoningDelta) else None,
        )
        assert "".join(reasoning).encode().decode() == answer.reasoning == f"hm {SMILE}"
        assert answer.tool_calls[0].arguments == f'{{"a": "{SMILE}{LOST}"}}'
        await collect(model.stream(ask(AnswerTurn(answer=answer))))
        bodies.append(server.received[-1].body)

    with_server(lambda _body, number: Reply(raw=once(*frames)) if number == 1 else Reply(text="fine"), body)
    (sent,) = [each for each in bodies[0]["messages"] if each["role"] == "assistant"]
    assert json.loads(sent["tool_calls"][0]["function"]["arguments"]) == {"a": SMILE + LOST}


def test_names_and_ids_that_are_no_text_are_mended() -> None:
    begins = call_begins(0)
    begins["tool_calls"][0]["id"] = "c" + HIGH
    begins["tool_calls"][0]["function"]["name"] = "add" + LOW
    answer = answer_to(Reply(raw=once(event(begins), event(call_piece(0, "{}")), END)))
    assert (answer.tool_calls[0].call_id, answer.tool_calls[0].name) == ("c" + LOST, "add" + LOST)


def test_a_split_character_reaches_the_clients_the_journal_and_the_store_whole(tmp_path: Path) -> None:
    frames = [
        event({"reasoning_content": HIGH}),
        event({"reasoning_content": LOW + "?"}),
        event({"content": "so " + HIGH}),
        event({"content": LOW}),
        END,
    ]
    settings = Settings(data=tmp_path / "data", port=0, model="openai-chat:test-model", sandbox="rlimits")

    async def run() -> None:
        async with ModelServer(lambda _body, _number: Reply(raw=once(*frames))) as provider:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("OPENAI_BASE_URL", provider.base_url)
                async with (
                    running(settings) as server,
                    Client(server.address.url, token=server.address.token) as client,
                    client.events(deltas=True) as events,
                ):
                    await client.create_agent("alice")
                    task = await client.send_task("alice", "go")
                    told = {"analysis": "", "final": ""}
                    async for note in events:
                        if note.name == "async.task.delta":
                            told[note.params["channel"]] += note.params["text"]
                        if note.name in ("async.task.completed", "async.task.error"):
                            break
                    assert told == {"analysis": SMILE + "?", "final": f"so {SMILE}"}
                    ended = await client.get_task(task)
                    assert ended.state is TaskState.COMPLETED
                    assert ended.result is not None
                    assert ended.result.final == f"so {SMILE}"

    asyncio.run(run())
    assert f"so {SMILE}".encode() in repr_bytes(contents_of(settings.data))


def repr_bytes(contents: dict[str, list[Any]]) -> bytes:
    cells = [cell for rows in contents.values() for row in rows for cell in row]
    return b"\n".join(cell if isinstance(cell, bytes) else str(cell).encode() for cell in cells)


# Numbers


def usage(**figures: Any) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": figures}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.filterwarnings("ignore:Failed to extract usage")
@pytest.mark.parametrize("figure", [-5, 10**30, float("nan"), float("inf"), 1.5, "12", None, [], {}, True])
@pytest.mark.parametrize("field", ["prompt_tokens", "completion_tokens", "total_tokens"])
def test_whatever_a_provider_says_of_its_tokens_the_answer_counts(field: str, figure: Any, tmp_path: Path) -> None:
    figures = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18} | {field: figure}
    frames = [event({"content": "hello"}), event({}, finish_reason="stop"), usage(**figures), b"data: [DONE]\n\n"]
    settings = Settings(data=tmp_path / "data", port=0, model="openai-chat:test-model", sandbox="rlimits")

    async def run() -> None:
        async with ModelServer(lambda _body, _number: Reply(raw=once(*frames))) as provider:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("OPENAI_BASE_URL", provider.base_url)
                async with (
                    running(settings) as server,
                    Client(server.address.url, token=server.address.token) as client,
                ):
                    await client.set_limits({"max_tokens": 100_000})
                    await client.create_agent("alice")
                    for _ in range(2):
                        assert await client.run_task("alice", "go") == "hello"
                    used = (await client.usage()).total.usage
                    assert 0 <= used.input_tokens < 10_000
                    assert 0 <= used.output_tokens < 10_000
                    assert len(provider.received) == 2

    asyncio.run(run())


@pytest.mark.parametrize("header", ["9" * 5_000, "1000000000", "Thu, 31 Dec 2099 23:59:59 GMT", "1e9", "-7", "nan"])
def test_a_wait_that_nobody_can_mean_is_read_without_trouble(header: str) -> None:
    error = failure_of(Reply(status=429, headers={"Retry-After": header}))
    asked = error.retry_after_seconds
    assert asked is None or asked >= 1e9


def test_pieces_of_tool_calls_show_that_an_answer_goes_on() -> None:
    events = events_of(Reply(raw=once(event(call_begins(0)), *[event(call_piece(0, "1"))] * 5, END)))
    assert [type(each).__name__ for each in events] == ["CallDelta"] * 6 + ["CallRequested", "Finished"]
