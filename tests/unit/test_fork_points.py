"""Where a log can be forked, what is said where it cannot, and what can be otherwise in a fork."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ai_whisperer.core.changes import changed_definitions, checked_effects
from ai_whisperer.core.fork_points import ForkPoints, nearest_points
from ai_whisperer.core.recorded_calls import RecordedCalls, call_digest
from ai_whisperer.domain.conversation import ToolCall, ToolResult
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.forks import Effects, Fork, RecordedCall
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.tasks import StepKind, StepRecord, StepState
from ai_whisperer.errors import DefinitionError, InvalidInputError, UnknownAgentError

WRITER, DOTTED = AgentDefinition(prompt="write"), AgentDefinition(prompt="dot")


def log(*told: tuple[str, str, dict[str, Any]], first: int = 1) -> list[Notification]:
    """Entries by name, cause and params; each cause has its own time."""
    causes = list(dict.fromkeys(cause for _, cause, _ in told))
    return [
        Notification(seq=seq, session_id="s", name=name, cause=cause, at=float(causes.index(cause)), params=params)
        for seq, (name, cause, params) in enumerate(told, first)
    ]


def points(entries: Sequence[Notification]) -> ForkPoints:
    found = ForkPoints({"send_mail"})
    found.take(entries)
    found.end()
    return found


def step(name: str, tool: str, cause: str) -> tuple[str, str, dict[str, Any]]:
    return name, cause, {"stepId": f"t.{tool}", "tool": tool}


CALLED = log(
    ("agent.created", "user:1", {}),
    ("agent.started", "user:1", {}),
    step("step.started", "pay", "task:a"),
    ("mail.sent", "task:b", {}),
    step("step.finished", "pay", "task:c"),
    step("step.started", "send_mail", "task:d"),
    step("step.finished", "send_mail", "task:e"),
)


def test_no_point_is_within_a_decision_or_while_a_tool_is_at_work() -> None:
    assert points(CALLED).points == [2, 5, 6, 7]


def test_the_entries_can_come_in_any_pieces() -> None:
    found = ForkPoints({"send_mail"})
    for entry in CALLED:
        found.take([entry])
    assert found.points == [2, 5, 6]
    assert found.has_after(2, count=2)
    assert not found.has_after(2, count=3)
    found.end()
    assert found.points == points(CALLED).points


def test_there_are_no_points_after_something_was_deleted_nor_in_a_pruned_log() -> None:
    deleted = log(("agent.created", "user:1", {}), ("agent.deleted", "user:2", {}), ("mail.sent", "user:3", {}))
    assert points(deleted).points == [1]
    assert "entry 2 tells that something was deleted (agent.deleted)" in points(deleted).refusal(3).message
    pruned = log(("agent.started", "user:1", {}), ("mail.sent", "user:2", {}), first=7)
    assert points(pruned).points == []
    told = points(pruned).refusal(8)
    assert "its log begins at 7: what came before was pruned" in told.message
    assert told.message.endswith("The nearest numbers that work: none.")


def test_a_refusal_says_why_and_has_the_nearest_points() -> None:
    told = points(CALLED).refusal(4)
    assert told.message == (
        "The session cannot be forked at 4: that is in the middle of a step. The nearest numbers that work: 2 and 5."
    )
    assert told.data == {"points": [2, 5]}
    assert "its log ends at 7" in points(CALLED).refusal(8).message
    assert "its log ends at 0" in points([]).refusal(1).message


@pytest.mark.parametrize(
    ("near", "limit", "found"),
    [
        (4, 2, [2, 5]),
        (5, 2, [5, 6]),
        (5, 1, [5]),
        (1, 2, [2, 5]),
        (99, 2, [6, 7]),
        (4, 9, [2, 5, 6, 7]),
        (6, 3, [5, 6, 7]),
    ],
)
def test_the_nearest_points_are_on_both_sides_if_there_are_some(near: int, limit: int, found: list[int]) -> None:
    assert nearest_points([2, 5, 6, 7], near, limit=limit) == found


def test_single_fields_are_changed_also_of_an_agent_with_a_dot_in_its_id() -> None:
    known = {"writer": WRITER, "the.writer": DOTTED}
    changed = changed_definitions(
        known, {"the.writer.limits.max_queue_length": 3, "the.writer.prompt": "x", "writer.tools": ["pay"]}
    )
    assert (changed["the.writer"].prompt, changed["the.writer"].limits.max_queue_length) == ("x", 3)
    assert (changed["writer"].prompt, changed["writer"].tools) == ("write", ("pay",))
    assert changed_definitions(known, {}) == {}


@pytest.mark.parametrize(
    ("place", "kind", "words"),
    [
        ("wrter.prompt", UnknownAgentError, "Did you mean 'writer'"),
        ("xyz.prompt", UnknownAgentError, "There are: writer"),
        ("prompt", InvalidInputError, "names no field of an agent"),
        ("writer.", InvalidInputError, "names no field of 'writer'"),
        ("writer..x", InvalidInputError, "names no field of 'writer'"),
        ("writer.prompt.x", InvalidInputError, r"Set writer\.prompt as a whole"),
        ("writer.promt", DefinitionError, "prompt"),
    ],
)
def test_a_place_that_is_none_is_told_with_what_was_meant(place: str, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        changed_definitions({"writer": WRITER}, {place: "x"})


def test_effects_are_known_by_name() -> None:
    assert checked_effects("live") is Effects.LIVE
    with pytest.raises(InvalidInputError, match="Did you mean 'live'"):
        checked_effects("lve")
    with pytest.raises(InvalidInputError, match="must be one of ask, recorded, live"):
        checked_effects("")


def test_a_recorded_call_is_found_by_what_caused_it_and_what_it_says() -> None:
    result = ToolResult(content="paid")
    call = RecordedCall(key="2>writer/3", digest=call_digest("pay", '{"to": "Ann", "amount": 1}'), result=result)
    fork = Fork(
        session_id="s",
        source="s",
        at=1,
        since=1,
        effects=Effects.RECORDED,
        paths={"t": "2>writer"},
        made={"2>writer": 1},
        calls=[call],
    )
    recorded = RecordedCalls(fork)

    def made(number: int, arguments: str, *, task: str = "t", tool: str = "pay") -> ToolResult | None:
        record = StepRecord(
            session_id="s",
            task_id=task,
            number=number,
            kind=StepKind.TOOL,
            state=StepState.STARTED,
            call=ToolCall(call_id="c", name=tool, arguments=arguments),
        )
        return recorded.result_of(record)

    assert made(3, '{"amount":1,"to":"Ann"}') == result
    assert made(4, '{"amount":1,"to":"Ann"}') is None
    assert made(3, '{"amount":2,"to":"Ann"}') is None
    assert made(3, '{"amount":1,"to":"Ann"}', tool="refund") is None
    assert made(3, '{"amount":1,"to":"Ann"}', task="u") is None
    recorded.feed("async.task.queued", "user:user", {"taskId": "u", "agentId": "writer"})
    assert made(3, '{"amount":1,"to":"Ann"}', task="u") is None, "a person has given it in the fork"
