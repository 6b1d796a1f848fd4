"""A stage for the examples: they run on virtual time, with their scripts, and may be killed at any moment."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from typing import Any

import msgspec

import debbie
import decomposition
import migration
import monitoring
import parallel_report
import switch
from ai_whisperer import AgentState, AsyncAgentSessionManager, Notification, TaskRecord
from ai_whisperer.domain.agents import AgentRecord
from ai_whisperer.domain.mail import USER, MailRecord
from ai_whisperer.domain.tasks import StepKind
from ai_whisperer.examples.tools import combine_and_test, read_feedback
from ai_whisperer.models.base import ModelRequest, StreamEvent
from ai_whisperer.models.scripted import ScriptedModel
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import EPOCH, VirtualClock, simulate
from ai_whisperer.store.sqlite import SqliteStore
from ai_whisperer.tools.function import AnyFunction
from stage import RULES

SESSION = "default"


class Workflow(msgspec.Struct, frozen=True):
    """An example and what it needs."""

    run: Callable[..., Awaitable[str]]
    tools: tuple[AnyFunction, ...] = ()


WORKFLOWS = {
    "parallel_report": Workflow(parallel_report.run, (read_feedback,)),
    "monitoring": Workflow(monitoring.run),
    "decomposition": Workflow(decomposition.run, (combine_and_test,)),
    "migration": Workflow(migration.run),
    "switch": Workflow(switch.run),
    "debbie": Workflow(debbie.run, (debbie.wait_for_build,)),
}


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What is left when a workflow has come to its end. Mails are in the order in which they were sent."""

    told: str
    mails: list[MailRecord]
    tasks: list[TaskRecord]
    states: dict[str, AgentState]
    log: list[Notification]
    requests: list[ModelRequest]
    repeated: list[str]

    @property
    def letters(self) -> list[tuple[str, str, str, str]]:
        """The mails as a person compares them, in no order of time."""
        return sorted((mail.sender, mail.recipient, mail.subject, mail.body) for mail in self.mails)

    @property
    def routes(self) -> list[tuple[str, str]]:
        """Who mailed whom, in order."""
        return [(mail.sender, mail.recipient) for mail in self.mails]

    @property
    def inbox(self) -> list[MailRecord]:
        return [mail for mail in self.mails if mail.recipient == USER]

    def task(self, task_id: str) -> TaskRecord:
        (found,) = (task for task in self.tasks if task.id == task_id)
        return found

    def tasks_of(self, agent_id: str) -> list[TaskRecord]:
        """The tasks of an agent, the oldest first."""
        return [task for task in self.tasks if task.agent_id == agent_id]

    def moments(self, name: str, **params: Any) -> list[float]:
        """When, in seconds from the beginning, such a thing was told of."""
        return [note.at - EPOCH for note in self.log if note.name == name and params.items() <= note.params.items()]


class RecordingModel:
    """Plays the rules of an example and keeps what was asked."""

    def __init__(self, rules: str, requests: list[ModelRequest]) -> None:
        self._model = ScriptedModel.from_file(RULES / f"{rules}.yaml")
        self._requests = requests

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self._requests.append(request)
        return self._model.stream(request)

    async def close(self) -> None:
        await self._model.close()


@cache
def calm(name: str) -> Outcome:
    """The workflow without any trouble."""
    disk = SimulatedDisk(0)
    outcome = simulate(_live(name, disk, VirtualClock(), seed=0), seed=0)
    disk.close()
    return outcome


def over_crash(name: str, *, crash_after_seconds: float, down_for_seconds: float, seed: int) -> Outcome:
    """The workflow with a death at that time: it is run again on what the disk has."""
    disk = SimulatedDisk(seed)
    simulate(_die(name, disk, crash_after_seconds, seed=seed), seed=seed)
    clock = VirtualClock().later(crash_after_seconds + down_for_seconds)
    outcome = simulate(_live(name, disk, clock, seed=seed + 1), seed=seed + 1)
    disk.close()
    return outcome


async def _die(name: str, disk: SimulatedDisk, crash_after_seconds: float, *, seed: int) -> None:
    manager = _manager(name, disk.open(), VirtualClock(), seed=seed, requests=[])
    await manager.open()
    life = asyncio.ensure_future(WORKFLOWS[name].run(manager))
    await asyncio.wait([life], timeout=crash_after_seconds)
    disk.crash()
    if life.done():
        life.result()


async def _live(name: str, disk: SimulatedDisk, clock: VirtualClock, *, seed: int) -> Outcome:
    store = disk.open()
    finished = await _finished_requests(store)
    requests: list[ModelRequest] = []
    async with _manager(name, store, clock, seed=seed, requests=requests) as manager:
        told = await WORKFLOWS[name].run(manager)
        await manager.flushed()
        agents = list(manager.active_sessions)
        outcome = Outcome(
            told=re.sub(r"\d+\.\d s", "… s", told),
            mails=sorted(
                [mail for owner in (USER, *agents) for mail in await manager.mailbox(owner)],
                key=lambda mail: mail.arrival,
            ),
            tasks=sorted(
                [task for agent in agents for task in await manager.list_tasks(agent)], key=lambda t: t.arrival
            ),
            states={agent: manager.get_agent_status(agent).state for agent in agents},
            log=await manager.notifications(limit=10_000),
            requests=requests,
            repeated=[request.step_id for request in requests if request.step_id in finished],
        )
    await store.close()
    return outcome


def _manager(
    name: str, store: SqliteStore, clock: VirtualClock, *, seed: int, requests: list[ModelRequest]
) -> AsyncAgentSessionManager:
    return AsyncAgentSessionManager(
        store=store,
        session_id=SESSION,
        tools=WORKFLOWS[name].tools,
        model_factory=lambda _: RecordingModel(name, requests),
        clock=clock,
        random=random.Random(seed),
    )


async def _finished_requests(store: SqliteStore) -> set[str]:
    """The model requests that were finished, as the disk knows, before this life."""
    agents: list[AgentRecord] = list((await store.load(SESSION)).agents)
    tasks = [task for agent in agents for task in await store.tasks_of_agent(SESSION, agent.id, limit=1000)]
    steps = [step for task in tasks for step in await store.steps(SESSION, task.id)]
    return {step.id for step in steps if step.kind is StepKind.MODEL and step.finished_at is not None}
