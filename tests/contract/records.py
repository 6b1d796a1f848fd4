"""Records for the tests of stores."""

from __future__ import annotations

from functools import cache
from types import new_class
from typing import Any

from msgspec import UNSET, UnsetType

from ai_whisperer.domain.agents import AgentRecord, AgentState, SleepPlan
from ai_whisperer.domain.compactions import CompactedThread, Compaction, CompactionKind, CompactionReason, Place
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.note import Note
from ai_whisperer.domain.notifications.base import Told
from ai_whisperer.domain.tasks import TaskKind, TaskRecord
from ai_whisperer.store.base import Unit


def agent(agent_id: str = "alice", session_id: str = "s") -> AgentRecord:
    return AgentRecord(
        session_id=session_id,
        id=agent_id,
        definition=AgentDefinition(prompt="Be brief.", aliases=("a",), settings={"temperature": 0.5}),
        state=AgentState.SLEEPING,
        started=True,
        sleep=SleepPlan(until=99.5, wake_events=("alert",)),
        reason="tired",
        created_at=1.5,
        paused_limit="max_tokens",
    )


def task(task_id: str = "t1", *, arrival: int = 1, agent_id: str = "alice", thread_id: str = "") -> TaskRecord:
    return TaskRecord(
        session_id="s",
        id=task_id,
        agent_id=agent_id,
        thread_id=thread_id or task_id,
        kind=TaskKind.PROMPT,
        prompt="Do it: é ☃",
        arrival=arrival,
        cause="user:user",
        created_at=2.0,
    )


def mail(mail_id: str = "m1", *, sequence: int = 1, arrival: int = 1) -> MailRecord:
    return MailRecord(
        session_id="s",
        id=mail_id,
        thread_id="th",
        sender="user",
        sequence=sequence,
        recipient="alice",
        subject="Hello",
        body="World",
        arrival=arrival,
        cause="user:user",
        created_at=3.0,
    )


class Example(Told, frozen=True, kw_only=True):
    """What a notification of these tests tells, whatever its name."""

    agent_id: str | UnsetType = UNSET
    n: int | str | UnsetType = UNSET
    text: str | UnsetType = UNSET


def a_compacted_thread(thread_id: str = "th", *, arrival: int = 1, session_id: str = "s") -> CompactedThread:
    return CompactedThread(
        session_id=session_id,
        agent_id="alice",
        thread_id=thread_id,
        task_id="t1",
        number=1,
        arrival=arrival,
        compaction=Compaction(
            reason=CompactionReason.WINDOW,
            kind=CompactionKind.SUMMARY,
            window=1_000,
            asked_tokens=400,
            tokens_before=900,
            tokens_after=300,
            covered=Place("t1", 1),
            covered_at=2.0,
            summary="They talked.",
        ),
    )


def tell(unit: Unit, session_id: str, name: str, *, params: dict[str, Any]) -> None:
    """Let a notification be written with the unit."""
    unit.notes.append(Note(session_id, "test", 1.0, _example_called(name)(**params)))


@cache
def _example_called(name: str) -> type[Example]:
    kind: type[Example] = new_class(name, (Example,), {"frozen": True, "kw_only": True})
    kind.wire_name = name
    return kind


def unit_with(*tasks: TaskRecord, note: str = "") -> Unit:
    made = Unit()
    for each in tasks:
        made.insert_task(each)
    if note:
        tell(made, "s", note, params={"n": note})
    return made
