"""Questions of agents to a person: over the socket, on the command line, in a chat and over `kill -9`."""

from __future__ import annotations

import asyncio
import io
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.client import Client
from ai_whisperer.domain.questions import QuestionRecord
from ai_whisperer.errors import AnswerError
from ai_whisperer.server.address import find_address
from tests.acceptance.command_stage import Process, Whisperer, running, serving

RULES = r"""
rules:
  - {prompt_match: plan a trip, turn: 0, tools: [{name: ask_user, arguments: {
      question: "Where do you want to go, \e[2J and for how long?",
      schema: {properties: {
        city: {type: string, description: "The city"},
        days: {type: integer, minimum: 1, maximum: 14},
        by_train: {type: boolean},
        meals: {type: array, items: {enum: [breakfast, dinner]}}},
        required: [city, days]}}}]}
  - {prompt_match: choose, turn: 0, tools: [{name: ask_user, arguments: {
      question: "Tea or coffee?", schema: {enum: [tea, coffee]}}}]}
  - {text: "Heard: {last}"}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("questions")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Process]:
    with serving(folder, answers=RULES) as process:
        yield process


@pytest.fixture
def asking(folder: Path, server: Process, capsys: pytest.CaptureFixture[str]) -> Whisperer:
    assert server.process.poll() is None
    whisperer = Whisperer(folder, capsys)
    if "guide" not in [each["agentId"] for each in whisperer.json("agents")]:
        whisperer.ok("agents", "create", "guide", "--config", json.dumps({"tools": ["ask_user"]}))
    return whisperer


def played(folder: Path, scenario: Any) -> None:
    async def main() -> None:
        address = find_address(folder)
        assert address is not None
        async with asyncio.timeout(90), Client(address.url, address.token) as client:
            await scenario(client)

    asyncio.run(main())


async def asked(client: Client, task_id: str, prompt: str = "plan a trip") -> QuestionRecord:
    """Give the guide a task, and wait until it asks."""
    async with client.events() as notes:
        await client.send_task("guide", prompt, task_id=task_id, thread_id=task_id)
        async for note in notes:
            if note.name == "question.asked" and note.params["taskId"] == task_id:
                break
    return await client.get_question(f"{task_id}.2")


@pytest.mark.usefixtures("asking")
def test_a_question_is_answered_over_the_socket_and_what_does_not_fit_names_the_field(folder: Path) -> None:
    async def scenario(client: Client) -> None:
        question = await asked(client, "t1")
        assert question in await client.list_questions()
        assert (await client.get_agent_status("guide")).waiting_for == ("question:t1.2",)
        assert [each.question_id for each in (await client.snapshot()).questions] == ["t1.2"]
        with pytest.raises(AnswerError) as refused:
            await client.answer_question("t1.2", {"city": "Rome", "days": 15})
        assert refused.value.data["fields"] == {"days": "must be a whole number, at least 1, at most 14, not 15"}
        answered = await client.answer_question("t1.2", {"city": "Rome", "days": 3, "meals": ["dinner"]})
        assert (answered.state, answered.decided_by) == ("answered", "local")
        assert await client.answer_question("t1.2", {"city": "Rome", "days": 3, "meals": ["dinner"]}) == answered
        ended = await client.wait_task("t1")
        assert ended.result is not None
        assert '{"city":"Rome","days":3,"meals":["dinner"]}' in ended.result.final
        assert await client.list_questions() == []

    played(folder, scenario)


def test_the_command_line_shows_the_form_and_takes_the_answer(folder: Path, asking: Whisperer) -> None:
    played(folder, lambda client: asked(client, "t2"))
    listed = asking.ok("questions")
    assert "t2.2" in listed
    assert "city, days, by_train, meals" in listed
    shown = asking.ok("questions", "show", "t2.2")
    assert "days: a whole number, at least 1, at most 14" in shown
    assert "city: text (The city)" in shown
    assert "\x1b" not in listed + shown
    assert "waits for question:t2.2" in asking.ok("agents")
    wrong = asking("questions", "answer", "t2.2", "city=Rome", "days=many", "--json")
    assert (wrong.code, wrong.error["code"]) == (1, "answer_misfit")
    assert "'days' must be a whole number" in wrong.error["message"]
    told = asking.ok("questions", "answer", "t2.2", "city=Rome", "days=3", "by_train=yes", "meals=dinner,breakfast")
    assert 'guide has your answer: {"city": "Rome", "days": 3, "by_train": true, "meals": ["dinner"' in told
    assert '"by_train":true' in asking.ok("tasks", "wait", "t2")
    assert asking.json("questions", "--all")[0]["state"] == "answered"
    assert asking.json("questions", "show", "t2.2")["answer"]["days"] == 3


def test_whoever_gives_no_answer_is_told_how(folder: Path, asking: Whisperer) -> None:
    played(folder, lambda client: asked(client, "t3"))
    nothing = asking("questions", "answer", "t3.2")
    assert (nothing.code, "whisperer questions show t3.2" in nothing.err) == (1, True)
    bare = asking("questions", "answer", "t3.2", "Rome")
    assert "write city=… days=… by_train=… meals=…" in bare.err
    assert asking.ok("questions", "refuse", "t3.2", "--reason", "I stay.") == (
        "guide is told that you do not want to answer.\n"
    )
    assert "They say: I stay." in " ".join(asking.ok("tasks", "wait", "t3").split())
    assert asking("questions", "show", "nix", "--json").error["code"] == "unknown_question"


class Typed(io.StringIO):
    """What a person types at a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_person_at_a_terminal_fills_the_form_in_field_by_field(
    folder: Path, asking: Whisperer, monkeypatch: pytest.MonkeyPatch
) -> None:
    played(folder, lambda client: asked(client, "t4"))
    monkeypatch.setattr(sys, "stdin", Typed("\nRome\nmany\n3\n\ndinner\n"))
    monkeypatch.setattr("ai_whisperer.cli.output.Output.is_terminal", property(lambda _: True))
    ran = asking("questions", "answer", "t4.2")
    assert ran.code == 0
    assert "'days' must be a whole number, at least 1, at most 14, not 'many'" in ran.err
    assert "by_train, true or false, or nothing: " in ran.err
    assert '{"city": "Rome", "days": 3, "meals": ["dinner"]}' in ran.out


def test_who_leaves_the_form_leaves_the_question_open(
    folder: Path, asking: Whisperer, monkeypatch: pytest.MonkeyPatch
) -> None:
    played(folder, lambda client: asked(client, "t5"))
    monkeypatch.setattr(sys, "stdin", Typed("Rome\n"))
    monkeypatch.setattr("ai_whisperer.cli.output.Output.is_terminal", property(lambda _: True))
    assert asking("questions", "answer", "t5.2").code != 0
    monkeypatch.undo()
    assert "t5.2" in asking.ok("questions")
    asking.ok("questions", "refuse", "t5.2")


def chatted(asking: Whisperer, *lines: str) -> tuple[int, str, str]:
    """What came of a chat in which a program wrote these lines."""
    with running("--data", str(asking.data), "chat", "guide", folder=asking.data) as process:
        assert process.process.stdin is not None
        process.process.stdin.write("".join(f"{line}\n" for line in lines))
        process.process.stdin.flush()
        return process.ended()


def test_a_question_in_a_chat_is_answered_with_a_line(asking: Whisperer) -> None:
    code, _, told = chatted(asking, "choose", "milk")
    assert code == 1
    assert "guide asks: Tea or coffee?" in told
    assert "answer: one of 'tea', 'coffee'" in told
    assert "must be one of 'tea', 'coffee', not 'milk'" in told
    (question,) = asking.json("questions")
    asking.ok("questions", "answer", question["questionId"], "TEA")
    code, out, _ = chatted(asking, "choose", "coffee", "plan a trip", "/answer city='New York' days=2")
    assert code == 0
    assert "coffee" in out.splitlines()[0]
    assert '{"city":"New York","days":2}' in out


def test_a_line_that_is_no_answer_to_the_fields_of_a_question_is_told_how_and_the_question_stays(
    asking: Whisperer,
) -> None:
    code, _, told = chatted(asking, "plan a trip", "to Rome please", "this is not read")
    assert code == 1
    assert "Type NAME=VALUE … for each field; /refuse does not answer." in told
    assert "write city=… days=… by_train=… meals=…. It stays open." in told
    assert "those after it are not read" in told
    (question,) = asking.json("questions")
    asking.ok("questions", "answer", question["questionId"], "city=Rome", "days=3")
    assert '{"city":"New York","days":2}' in chatted(asking, "plan a trip", "city='New York' days=2")[1]


def test_whoever_watches_is_told_of_a_question_and_how_to_answer_it(folder: Path, asking: Whisperer) -> None:
    played(folder, lambda client: asked(client, "t6", "choose"))
    with running("--data", str(folder), "watch", "--after", "0", folder=folder) as watching:
        watching.line_with("asks you: Tea or coffee? (whisperer questions answer t6.2)")
    asking.ok("questions", "answer", "t6.2", "tea")


def test_a_question_outlives_a_killed_server(
    folder: Path, asking: Whisperer, server: Process, capsys: pytest.CaptureFixture[str]
) -> None:
    played(folder, lambda client: asked(client, "t9"))
    server.signal(signal.SIGKILL)
    server.process.wait(timeout=60)
    with serving(folder, answers=RULES):
        whisperer = Whisperer(asking.data, capsys)
        assert "t9.2" in whisperer.ok("questions")
        whisperer.ok("questions", "answer", "t9", "city=Rome", "days=3")
        assert '{"city":"Rome","days":3}' in whisperer.ok("tasks", "wait", "t9")
