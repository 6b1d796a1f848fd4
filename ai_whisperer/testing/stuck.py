"""Waits until nothing happens by itself any more, and says who waits for what when a wait does not end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.core.moments import timestamp
from ai_whisperer.domain.agents import AgentState, AgentStatus
from ai_whisperer.domain.approvals import ApprovalRecord
from ai_whisperer.domain.questions import QuestionRecord

__tracebackhide__ = True  # pytest shows the line of the test instead

_SHOWN_CHARACTERS = 100

Asked = ApprovalRecord | QuestionRecord
"""What waits for a person."""


class StuckError(AssertionError):
    """What the test waits for never comes."""


async def settled(session: AsyncAgentSessionManager) -> None:
    """Wait until no agent has anything to do, or all that do wait for a person."""
    ways = [asyncio.ensure_future(session.at_rest()), asyncio.ensure_future(_held_by_people(session))]
    try:
        done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        for each in ways:
            each.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
    await session.flushed()


async def who_waits(session: AsyncAgentSessionManager) -> str:
    """All that is not done, in words."""
    asked = await _asked(session)
    return " ".join(line for status in session.list_agents() for line in _lines(status, asked)) or (
        "No agent has anything to do."
    )


async def _held_by_people(session: AsyncAgentSessionManager) -> None:
    subscription = session.subscribe()
    try:
        while not _waits_for_people_alone(session.list_agents(), await _asked(session)):
            await anext(subscription, None)
    finally:
        subscription.close()


async def _asked(session: AsyncAgentSessionManager) -> dict[str, Asked]:
    """By its name in `waiting_for`, all that waits for a person."""
    asked: dict[str, Asked] = {f"approval:{each.id}": each for each in await session.list_approvals(limit=10_000)}
    return asked | {f"question:{each.id}": each for each in await session.list_questions(limit=10_000)}


def _waits_for_people_alone(statuses: list[AgentStatus], asked: Mapping[str, Asked]) -> bool:
    """Whether somebody works and nobody could go on without a person."""
    if not asked:
        return False
    tasks = {each.task_id for each in asked.values()}
    working = {each.agent_id: each for each in statuses if each.state is AgentState.ACTIVE}
    if any(each.state is AgentState.IDLE and each.queue_size and not each.missing_tools for each in statuses):
        return False
    held: set[str] = set()
    while True:  # who waits for somebody that is held is held too
        more = {
            name
            for name, status in working.items()
            if name not in held
            and (
                tasks.issuperset(status.running_tasks)
                or (len(status.waiting_for) >= len(status.running_tasks) and held.union(asked) >= {*status.waiting_for})
            )
        }
        if not more:
            return held == working.keys()
        held |= more


def _lines(status: AgentStatus, asked: Mapping[str, Asked]) -> Iterator[str]:
    who = status.agent_id
    for name in status.waiting_for:
        yield f"{who} waits for {_named(name, asked)}."
    if status.paused_for:
        yield f"{who} waits until others let go of {', '.join(status.paused_for)}."
    if status.missing_tools:
        yield f"{who} waits for tools that were not provided: {', '.join(status.missing_tools)}."
    elif status.retry_at is not None:
        yield f"{who} asks its model again at {timestamp(status.retry_at)}: {status.retry_reason}"
    elif status.running_tasks and not status.waiting_for and not status.paused_for:
        since = "" if status.running_since is None else f" since {timestamp(status.running_since)}"
        yield f"{who} works on {status.current_task}{since}: its model or a tool has not answered."
    if status.queue_size and status.state is not AgentState.ACTIVE:
        yield f"{who} is {status.state}, and {status.queue_size} wait in its queue{_because(status)}."


def _because(status: AgentStatus) -> str:
    return f" ({status.reason[:_SHOWN_CHARACTERS]})" if status.reason else ""


def _named(name: str, asked: Mapping[str, Asked]) -> str:
    found = asked.get(name)
    if isinstance(found, ApprovalRecord):
        return (
            f"a person who allows {found.tool}({found.arguments[:_SHOWN_CHARACTERS]}): "
            f"team.approve({found.agent_id!r}) or team.refuse({found.agent_id!r})"
        )
    if isinstance(found, QuestionRecord):
        return f"a person who answers {found.question[:_SHOWN_CHARACTERS]!r}: team.reply({found.agent_id!r}, '…')"
    return name
