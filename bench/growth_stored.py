"""Long histories, for W10: what opening a session, reading it and adding to it cost when much is stored."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.agents import AgentRecord, AgentState
from ai_whisperer.domain.conversation import Answer, ChannelResponse, Usage
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.mail import USER, MailRecord, MailState
from ai_whisperer.domain.note import Note
from ai_whisperer.domain.notifications.tasks import AnswerTold, TaskCompleted, TaskQueued
from ai_whisperer.domain.snapshot import Link, LinkKind
from ai_whisperer.domain.tasks import StepKind, StepRecord, StepState, TaskKind, TaskRecord, TaskState
from ai_whisperer.domain.usage import AgentTotals
from ai_whisperer.protocol.sessions import GET_SNAPSHOT
from ai_whisperer.store.base import Unit
from ai_whisperer.store.sqlite import SqliteStore
from bench.probe import Sample, Stopwatch

AGENTS = 100
THREADS = 5
"""So many of each agent."""

SESSION = "default"
_ANSWER = AnswerTold.of(ChannelResponse(final="Both facts are known."))
_IN_UNIT = 500
ASKED = 10
"""So many agents are asked, in turn."""
_BATCHES = 10
_ENOUGH_SECONDS = 0.3
"""Of processor time: a call that takes little is asked more often, until the least of them is no accident."""
_READ = 5
"""So many are read of what each has, which is no less when few are stored."""
Call = Callable[[AsyncAgentSessionManager, str], Awaitable[None]]
"""Asks the session something about an agent."""

OPENED = "opened and closed"
DISK = "on disk for each task and mail"


async def stored(folder: Path, *, items: int) -> Sample:
    """A session with so many tasks that have ended and mails that were read."""
    await fill(folder, items // 2)
    sample = {OPENED: await opening_ms(folder), DISK: _size(folder) / items}
    async with AsyncAgentSessionManager(folder, model="scripted") as manager:
        for number in range(ASKED):
            await manager.pause_agent(f"agent-{number}")  # what is sent is kept, and nothing else is done
        for name, call in CALLS.items():
            sample[name] = await least_ms(partial(_ask_all, manager, call), batches=_BATCHES) / ASKED
        assert (await manager.usage()).total.tasks == items // 2
    return sample


async def least_ms(call: Callable[[], Awaitable[object]], *, batches: int) -> float:
    """Milliseconds of processor time: the least, since others at the machine, and cold pages of the file, only add."""
    least, spent, calls = math.inf, 0.0, 0
    while calls < batches or spent < _ENOUGH_SECONDS:
        watch = Stopwatch()
        await call()
        taken = watch.read()[1]
        least, spent, calls = min(least, taken), spent + taken, calls + 1
    return least * 1000


async def opening_ms(folder: Path) -> float:
    """Of a session that is opened and closed."""

    async def open_and_close() -> None:
        async with AsyncAgentSessionManager(folder, model="scripted"):
            pass

    return await least_ms(open_and_close, batches=5)


async def _ask_all(manager: AsyncAgentSessionManager, call: Call) -> None:
    for number in range(ASKED):
        await call(manager, f"agent-{number}")


async def _threads(manager: AsyncAgentSessionManager, agent_id: str) -> None:
    assert await manager.list_threads(agent_id)


async def _task_sent(manager: AsyncAgentSessionManager, agent_id: str) -> None:
    await manager.send_task(agent_id, "One more.")


async def _mail_sent(manager: AsyncAgentSessionManager, agent_id: str) -> None:
    await manager.send_mail(agent_id, "One more", "It is here.")


async def _mailbox(manager: AsyncAgentSessionManager, agent_id: str) -> None:
    assert len(await manager.mailbox(agent_id, limit=_READ)) == _READ


async def _tasks(manager: AsyncAgentSessionManager, agent_id: str) -> None:
    assert len(await manager.list_tasks(agent_id, limit=_READ)) == _READ


async def _states(manager: AsyncAgentSessionManager, agent_id: str) -> None:
    assert any(status.agent_id == agent_id for status in manager.list_agents())


async def _subscribed(manager: AsyncAgentSessionManager, agent_id: str) -> None:
    """From shortly before the end, as a page that was away for a moment."""
    del agent_id
    subscription = manager.subscribe(after=(await manager.snapshot()).last_seq - _READ)
    for _ in range(_READ):
        await anext(subscription)
    subscription.close()


async def _snapshot(manager: AsyncAgentSessionManager, agent_id: str) -> None:
    assert any(status.agent_id == agent_id for status in (await manager.snapshot()).agents)


async def _page(manager: AsyncAgentSessionManager, agent_id: str) -> None:
    """As the page is sent it."""
    assert agent_id.encode() in GET_SNAPSHOT.write_result(await manager.snapshot())


CALLS: dict[str, Call] = {
    "the threads of an agent listed": _threads,
    "the last mails of an agent": _mailbox,
    "the last tasks of an agent": _tasks,
    "the states of all agents": _states,
    "a snapshot": _snapshot,
    "the snapshot of the page": _page,
    "a snapshot and a subscription": _subscribed,
    "a task accepted": _task_sent,
    "a mail accepted": _mail_sent,
}


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*.db*"))


def agent_of(number: int) -> AgentRecord:
    """An agent that is idle, as it is stored."""
    return AgentRecord(
        session_id=SESSION,
        id=f"agent-{number}",
        definition=AgentDefinition(model="scripted"),
        state=AgentState.IDLE,
        started=True,
        created_at=1.0,
    )


async def fill(folder: Path, pairs: int) -> None:
    """Store so many tasks that have ended, and as many mails that were read, as if they had been there."""
    store = SqliteStore.open(folder, synchronous="OFF")
    unit = Unit()
    for number in range(AGENTS):
        unit.insert_agent(agent_of(number))
    await store.submit(unit)
    for begin in range(0, pairs, _IN_UNIT):
        unit = Unit()
        for number in range(begin, min(begin + _IN_UNIT, pairs)):
            _store_pair(unit, number)
        await store.submit(unit)
    unit = Unit()
    for number in range(AGENTS):
        agent_id, count = f"agent-{number}", len(range(number, pairs, AGENTS))
        used = Usage(input_tokens=count, model_calls=count)
        unit.put_totals(AgentTotals(session_id=SESSION, agent_id=agent_id, tasks=count, usage=used, active_at=2.0))
        link = Link(kind=LinkKind.MAIL, sender=USER, recipient=agent_id, count=count, last_at=2.0)
        unit.put_link(SESSION, link)
    await store.submit(unit)
    await store.close()


def _store_pair(unit: Unit, number: int) -> None:
    agent_id, task_id, at = f"agent-{number % AGENTS}", f"{number:024x}", 1.0 + number
    task = TaskRecord(
        session_id=SESSION,
        id=task_id,
        agent_id=agent_id,
        thread_id=f"thread-{number // AGENTS % THREADS}",
        kind=TaskKind.PROMPT,
        prompt="Look up both facts and say what they are.",
        arrival=2 * number + 1,
        cause="user:user",
        state=TaskState.COMPLETED,
        result=ChannelResponse(final="Both facts are known."),
        usage=Usage(input_tokens=1, model_calls=1),
        created_at=at,
        started_at=at,
        finished_at=at,
    )
    step = StepRecord(
        session_id=SESSION,
        task_id=task_id,
        number=1,
        kind=StepKind.MODEL,
        state=StepState.DONE,
        answer=Answer(text="Both facts are known.", usage=Usage(input_tokens=1)),
        started_at=at,
        finished_at=at,
        requests=1,
    )
    mail = MailRecord(
        session_id=SESSION,
        id=f"m{task_id}",
        thread_id=f"m{task_id}",
        sender=USER,
        sequence=number + 1,
        recipient=agent_id,
        subject="Ping",
        body="The build of the second module is green.",
        arrival=2 * number + 2,
        cause="user:user",
        state=MailState.ARCHIVED,
        created_at=at,
        read_at=at,
    )
    unit.insert_task(task)
    unit.put_step(step)
    unit.insert_mail(mail)
    for told in (
        TaskQueued.of(task, summary=task.prompt, by=None),
        TaskCompleted(agent_id=agent_id, task_id=task_id, result=_ANSWER),
    ):
        unit.notes.append(Note(SESSION, f"task:{task_id}", at, told))
