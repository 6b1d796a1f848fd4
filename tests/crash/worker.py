"""The process that is killed: opens a session on a folder, gives it the work that was not acknowledged, and waits.

What it tells on its standard output survives its death: `tried ID` before each call of the API, `acknowledged ID` when
the call has returned, and a summary at the end.
"""

from __future__ import annotations

import asyncio
import os

import msgspec

from ai_whisperer.core import blame
from ai_whisperer.domain.agents import AgentState, AgentStatus
from ai_whisperer.domain.tasks import TaskKind
from ai_whisperer.models.base import ModelFactory
from ai_whisperer.models.catalog import resolve
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.store.base import Store
from ai_whisperer.store.sqlite import SqliteStore

from . import kill_points
from .client import HttpModel, tools_of
from .workload import WORKLOADS, Operation

_SLEEP_SECONDS = 0.12
_REST_SECONDS = 0.5


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What one start of the worker is told.

    With `provider` the agents use the real provider client, with an `address` the session is kept in PostgreSQL.
    """

    folder: str
    run: str
    workload: str
    model_url: str
    effect_port: int
    acknowledged: tuple[str, ...] = ()
    die_at: str = ""
    planted_bug: str = ""
    provider: bool = False
    address: str = ""


class AgentFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What the session says that an agent has done and used."""

    tasks: int
    tokens: int


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker tells that came to its end: how often it was at each point, and the figures of the agents."""

    points: dict[str, int]
    agents: dict[str, AgentFigures]


class Caller:
    """Calls the API as a careful client does: what was not acknowledged is sent again, under the same id."""

    def __init__(self, manager: AsyncAgentSessionManager, order: Order) -> None:
        self._manager = manager
        self._order = order

    async def call_all(self) -> None:
        for stage in WORKLOADS[self._order.workload](self._order.run).stages:
            async with asyncio.TaskGroup() as group:
                for operation in stage:
                    if operation.id not in self._order.acknowledged:
                        group.create_task(self._call(operation))
            await self._settled()

    async def _call(self, operation: Operation) -> None:
        say(f"tried {operation.id}")
        match operation.kind:
            case "create":
                await self._create(operation)
            case "task":
                await self._manager.send_task(
                    operation.agent, operation.text, task_id=operation.id, thread_id=operation.thread
                )
            case "mail":
                await self._manager.send_mail(operation.agent, "A task", operation.text, mail_id=operation.id)
            case _:
                await self._change_state(operation)
        say(f"acknowledged {operation.id}")

    async def _create(self, operation: Operation) -> None:
        if operation.agent not in self._manager.active_sessions:
            model = f"openai-chat:{self._order.run}" if self._order.provider else self._order.run
            retry = {"first_delay_seconds": 0.005}
            await self._manager.create_agent(operation.agent, {"model": model, "retry": retry, **operation.config})

    async def _change_state(self, operation: Operation) -> None:
        """A call that was heard, but not acknowledged, shows in the state of the agent."""
        status = self._manager.get_agent_status(operation.agent)
        match operation.kind, status.state:
            case "pause", AgentState.IDLE:
                await self._manager.pause_agent(operation.agent)
            case "resume", AgentState.PAUSED:
                await self._manager.resume_agent(operation.agent)
            case "sleep", AgentState.IDLE if not await self._has_slept(operation.agent):
                await self._manager.sleep_agent(operation.agent, duration_seconds=_SLEEP_SECONDS)

    async def _has_slept(self, agent: str) -> bool:
        return any(task.kind is TaskKind.WAKE for task in await self._manager.list_tasks(agent))

    async def _settled(self) -> None:
        """Wait until no agent has anything left to do, but for those that are paused."""
        changes = self._manager.subscribe()
        while not self._is_settled():
            await anext(changes)
        changes.close()

    def _is_settled(self) -> bool:
        return all(
            status.state is AgentState.PAUSED
            or not (status.running_tasks or status.queue_size or status.sleeping_until is not None)
            for status in self._manager.list_agents()
        )


def _figures(status: AgentStatus) -> AgentFigures:
    return AgentFigures(tasks=status.tasks, tokens=status.usage.input_tokens + status.usage.output_tokens)


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


async def _opened(order: Order, switch: kill_points.KillSwitch) -> Store:
    if not order.address:
        return SqliteStore.open(order.folder, committer=kill_points.WatchedCommitter(switch))
    from ai_whisperer.store.postgresql.store import PostgresqlStore

    kill_points.install_for_postgresql(switch)
    return await PostgresqlStore.open(order.address)


async def work(order: Order) -> None:
    switch = kill_points.KillSwitch(order.die_at)
    kill_points.install(switch)
    blame._SHORTEST_REST_SECONDS, blame._TIMES_AS_LONG = _REST_SECONDS, 1.0  # else the harness would wait for minutes
    if order.planted_bug:
        from .planted_bugs import BUGS_OF_MANY_DEATHS, PLANTED_BUGS

        (PLANTED_BUGS | BUGS_OF_MANY_DEATHS)[order.planted_bug].plant(switch)
    factory: ModelFactory = resolve if order.provider else lambda name: HttpModel(name, order.model_url, switch)
    say("up")
    store = await _opened(order, switch)
    tools = tools_of(order.run, order.effect_port, switch)
    async with AsyncAgentSessionManager(store=store, tools=tools, model_factory=factory) as manager:
        await Caller(manager, order).call_all()
        agents = {status.agent_id: _figures(status) for status in manager.list_agents()}
    await store.close()
    say(msgspec.json.encode(Summary(points=dict(switch.counts), agents=agents)).decode())
