"""W10, long histories: what opening a session, reading it and adding to it cost when much is stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
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
from ai_whisperer.store.base import Unit
from ai_whisperer.store.sqlite import SqliteStore
from bench.probe import Probe, Sample, Samples, Stopwatch, in_fresh_process, values_of
from bench.report import Figure, Target

TITLE = "W10"
FEW = 1_000
MANY = 300_000
AGENTS = 100
THREADS = 5
"""So many of each agent."""

SESSION = "default"
_ANSWER = AnswerTold.of(ChannelResponse(final="Both facts are known."))
_IN_UNIT = 500
ASKED = 10
"""So many agents are asked, in turn."""
TIMES = 200
"""So often each call is made, after each of those agents was asked once: the first one reads cold pages of the file."""
_READ = 5
"""So many are read of what each has, which is no less when few are stored."""
_MAX_GROWTH = 1.3


def probes(*, quick: bool) -> list[Probe]:
    many = MANY // 10 if quick else MANY
    return [
        Probe("few", in_fresh_process(opened, items=FEW)),
        Probe("many", in_fresh_process(opened, items=many)),
    ]


def figures(samples: Samples) -> list[Figure]:
    def both(name: str, value: str, target: Target | None = None) -> Figure:
        few, many = (values_of(samples, probe, value) for probe in ("few", "many"))
        return Figure(name, "ms", many, raw=few, target=target)

    flat = Target(_MAX_GROWTH, of="raw")
    return [
        both("a session opened (raw: 1,000 tasks and mails stored)", "opening_ms", flat),
        *(both(name, name, flat) for name in CALLS),
        Figure("on disk, an item", "bytes", values_of(samples, "many", "bytes_per_item")),
    ]


async def opened(folder: Path, *, items: int) -> Sample:
    await fill(folder, items // 2)
    size = _size(folder)
    await open_and_close(folder)  # what is loaded once, and the pages of the file
    watch = Stopwatch()
    await open_and_close(folder)
    sample = {"opening_ms": watch.read()[1] * 1000, "bytes_per_item": size / items}
    async with AsyncAgentSessionManager(folder, model="scripted") as manager:
        sample |= await times_of_calls(manager)
        assert (await manager.usage()).total.tasks == items // 2
    return sample


async def times_of_calls(manager: AsyncAgentSessionManager) -> dict[str, float]:
    """Milliseconds of processor time of each of the calls."""
    found = {}
    for number in range(ASKED):
        await manager.pause_agent(f"agent-{number}")  # what is sent is kept, and nothing else is done
    for name, call in CALLS.items():
        for number in range(ASKED):
            await call(manager, f"agent-{number}")
        watch = Stopwatch()
        for number in range(TIMES):
            await call(manager, f"agent-{number % ASKED}")
        found[name] = watch.read()[1] / TIMES * 1000
    return found


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


CALLS: dict[str, Callable[[AsyncAgentSessionManager, str], Awaitable[None]]] = {
    "the threads of an agent listed": _threads,
    "the last mails of an agent": _mailbox,
    "the last tasks of an agent": _tasks,
    "the states of all agents": _states,
    "a snapshot": _snapshot,
    "a snapshot and a subscription": _subscribed,
    "a task accepted": _task_sent,
    "a mail accepted": _mail_sent,
}


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*.db*"))


async def open_and_close(folder: Path) -> None:
    async with AsyncAgentSessionManager(folder, model="scripted"):
        pass


async def fill(folder: Path, pairs: int) -> None:
    """Store so many tasks that have ended, and as many mails that were read, as if they had been there."""
    store = SqliteStore.open(folder, synchronous="OFF")
    unit = Unit()
    for number in range(AGENTS):
        unit.insert_agent(
            AgentRecord(
                session_id=SESSION,
                id=f"agent-{number}",
                definition=AgentDefinition(model="scripted"),
                state=AgentState.IDLE,
                started=True,
                created_at=1.0,
            )
        )
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
