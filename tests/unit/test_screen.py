"""The screen of `whisperer run`: an answer as it is streamed, on a terminal, once and whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ai_whisperer.cli.output import Output
from ai_whisperer.cli.screen import Screen
from ai_whisperer.domain.notification import Notification
from tests.contract.records import task as task_record


class Terminal(Output):
    @property
    def is_terminal(self) -> bool:
        return True


def note(name: str, task: str = "t1", **params: Any) -> Notification:
    told = {"agentId": "ann", "taskId": task, **params}
    return Notification(seq=1, session_id="default", name=name, cause="", at=0.0, params=told)


def piece(text: str, task: str = "t1", *, channel: str = "final", **more: Any) -> Notification:
    return note("async.task.delta", task, stepId=f"{task}.1", attempt=1, channel=channel, text=text, **more)


def continued(task: str, to: str, **more: Any) -> list[Notification]:
    result = {"analysis": "", "commentary": "", "final": ""}
    return [
        note("async.task.continuation", task, continuationId=to, number=1, result=result, **more),
        note("async.task.started", to, threadId="t1", kind="continuation", attempt=1, mailId=None),
        note("step.started", to, stepId=f"{to}.1", kind="model"),
    ]


def shown(notes: list[Notification], answer: str) -> None:
    """Show these notifications of a task, and its answer in the end."""

    async def told() -> AsyncIterator[Notification]:
        for each in (*notes, note("async.task.completed")):
            yield each

    screen = Screen(Terminal(as_json=False), analysis=False)
    asyncio.run(screen.follow_task(told(), task_record("t1", agent_id="ann")))
    screen.show_answer(answer)


def test_a_cut_answer_goes_on_within_its_line_and_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    notes = [piece("Good mor"), *continued("t1", "t1~1", cut=True), piece("ning, ", "t1~1")]
    shown([*notes, *continued("t1~1", "t1~2", cut=True), piece("Ann.", "t1~2")], "Good morning, Ann.")
    assert capsys.readouterr() == ("Good morning, Ann.\n", "")


def test_an_answer_that_asked_for_more_goes_on_in_another_line(capsys: pytest.CaptureFixture[str]) -> None:
    shown([piece("One."), *continued("t1", "t1~1"), piece("Two.", "t1~1")], "One.\nTwo.")
    assert capsys.readouterr().out == "One.\nTwo.\n"


def test_what_turns_out_to_be_reasoning_is_taken_back(capsys: pytest.CaptureFixture[str]) -> None:
    until: dict[str, Any] = {"analysisUntil": 9}
    notes = [piece("Let's see"), piece(".", channel="analysis", **until), piece("It is ", **until)]
    shown([*notes, piece("42.", **until)], "It is 42.")
    out, err = capsys.readouterr()
    assert out == "Let's see\nIt is 42.\n"
    assert err.count("reasoning") == 1


def test_why_a_request_is_repeated_is_told_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    reason = f"The provider is busy: {'please wait, ' * 20}and come back."
    error = {"code": "model_server", "message": reason}
    shown([note("step.retried", stepId="t1.1", attempt=1, error=error, retryAt=0.0), piece("Hello")], "Hello")
    assert "and come back." in " ".join(capsys.readouterr().err.split())
