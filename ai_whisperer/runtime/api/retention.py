"""Keeping a session small: pruning what has ended, erasing threads, rooms and agents, and how large it all is."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Iterator, Sequence

from ai_whisperer.core.paging import checked_id
from ai_whisperer.core.retention import age_in_seconds, may_erase_thread
from ai_whisperer.core.rooms import RoomRef
from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.notifications.agents import ThreadDeleted
from ai_whisperer.domain.notifications.sessions import SessionPruned
from ai_whisperer.domain.retention import Erased, Horizon, PruneReport, StorageReport, ThreadStanding
from ai_whisperer.domain.rooms import RoomRecord
from ai_whisperer.domain.tasks import TaskRecord, ThreadSummary
from ai_whisperer.errors import ClosedError, StateError, UnknownThreadError
from ai_whisperer.runtime.agents.agent import LiveAgent
from ai_whisperer.runtime.agents.deletion import delete_agent, erase_marked, open_work_of
from ai_whisperer.runtime.agents.status import status_of
from ai_whisperer.runtime.api.base import AgentRef
from ai_whisperer.runtime.api.requeueing import dismiss
from ai_whisperer.runtime.api.rooms import SessionRooms
from ai_whisperer.runtime.messaging.rooms import turn_of
from ai_whisperer.runtime.session.cause import by_caller
from ai_whisperer.runtime.session.decision import Decision

_PAGE = 100
"""So many threads are looked at before others have their turn."""
_DELETED = "The {} is being deleted."
_LATER = "The session was closed meanwhile. What is left of what was to be erased goes when it is opened again."


class SessionRetention(SessionRooms):
    """The part of the session manager that lets go. When a method returns, what it erased is gone from the disk.

    That it goes is decided and durable first. If whoever waits gives up, or the process dies, the rest goes later.
    """

    def __init__(self) -> None:
        super().__init__()
        self._pruning = asyncio.Lock()

    async def prune(self, *, older_than: str | float = "30d", dry_run: bool = False) -> PruneReport:
        kernel = self._session.kernel
        seconds = age_in_seconds(older_than)
        async with self._pruning:  # one at a time: both would report the same
            before = kernel.clock.now() - seconds
            await kernel.flushed()
            first_seq = max(await kernel.reads.first_since(before), kernel.log.first_seq)
            horizon = Horizon(session_id=kernel.session_id, first_seq=first_seq, before=before, at=kernel.clock.now())
            if dry_run:
                erased = await self._would_erase(horizon)
            else:
                erased = await self._prune(horizon)
            return PruneReport(
                session_id=kernel.session_id, before=before, first_seq=first_seq, erased=erased, dry_run=dry_run
            )

    async def delete_thread(self, agent_id: AgentRef, thread_id: str) -> ThreadSummary:
        agent = self._find_agent(agent_id)
        checked_id(thread_id.replace("~", "-") if isinstance(thread_id, str) else thread_id)
        kernel, name = self._session.kernel, agent.agent_id
        with kernel.reads.under_way.one_more():
            known = {each.id: each for each in await kernel.reads.threads_of_agent(name)}
            if thread_id not in known:
                raise _unknown_thread(name, thread_id, list(known))
            dead = [task for task in await self._dead_of(name) if task.thread_id == thread_id]
            if (name, thread_id) in set(self._open_threads()):
                raise StateError(
                    f"Thread '{thread_id}' of '{name}' has tasks or mail that wait or run; nothing was erased. Cancel "
                    "these first (`whisperer tasks`), or wait for them."
                )
            decision = kernel.decide(by_caller())
            self._dismiss(decision, dead)
            told_until = kernel.log.position()[0]
            kernel.erasing.mark(decision, name, thread_id, last=kernel.last_arrival, told_until=told_until)
            decision.tell(ThreadDeleted(agent_id=name, thread_id=thread_id))
            durable = decision.submit()
        await self._erased(durable)
        return known[thread_id]

    async def delete_room(self, room: RoomRef) -> RoomRecord:
        session = self._session
        known = self.get_room(room)
        while answering := [task for task in self._running_and_waiting() if _answers_in(task, known.id)]:
            for task in answering:
                agent = session.roster.agents[task.agent_id]
                await agent.work.cancel_task(task.id, by_caller(), _DELETED.format("room"))
        known = self.get_room(room)
        await self._committed(lambda decision: session.rooms.delete(decision, known))
        await self._erased()
        return known

    async def delete_agent(self, agent_id: AgentRef) -> AgentStatus:
        session, agent = self._session, self._find_agent(agent_id)
        agent.work.check_not_from_inside("delete")
        await agent.stop(by_caller(), _DELETED.format("agent"))
        while True:  # a stopped agent is given work too
            for item in open_work_of(session, agent):
                if isinstance(item, TaskRecord):
                    await agent.work.cancel_task(item.id, by_caller(), _DELETED.format("agent"))
            with session.kernel.reads.under_way.one_more():
                dead = await self._dead_of(agent.agent_id)
                if session.roster.agents.get(agent.agent_id) is not agent:
                    raise StateError(f"Agent '{agent.agent_id}' was deleted already.")
                if agent.record.started or any(isinstance(each, TaskRecord) for each in open_work_of(session, agent)):
                    await agent.stop(by_caller(), _DELETED.format("agent"))
                    continue
                last = status_of(agent)
                decision = session.kernel.decide(by_caller())
                self._dismiss(decision, dead)
                delete_agent(session, decision, agent)
                durable = decision.submit()
            break
        await self._erased(durable, agent=agent)
        return last

    async def storage(self) -> StorageReport:
        kernel = self._session.kernel
        await kernel.flushed()
        parts = await kernel.reads.stored_parts()
        database_bytes, free_bytes = await kernel.store.database_bytes()
        return StorageReport(
            session_id=kernel.session_id,
            first_seq=kernel.log.first_seq,
            last_seq=kernel.log.last_seq,
            parts=tuple(parts),
            size_bytes=sum(each.size_bytes for each in parts),
            database_bytes=database_bytes,
            free_bytes=free_bytes,
        )

    async def _dead_of(self, agent_id: str) -> list[TaskRecord]:
        return [task for task in await self._session.kernel.reads.dead_tasks() if task.agent_id == agent_id]

    async def _erased(self, decided: asyncio.Future[None] | None = None, *, agent: LiveAgent | None = None) -> Erased:
        """Erase what is marked once that is durable, with the files of an agent that is gone, and wait for it.

        It goes on if whoever waits gives up. The session may be closed meanwhile: then the rest goes later.
        """
        session = self._session
        outcome: asyncio.Future[Erased] = session.kernel.event_loop.create_future()

        async def erase() -> None:
            try:
                if decided is not None:
                    await asyncio.shield(decided)
                if agent is not None:
                    session.supplies.folders.put_aside(agent.agent_id)
                    await agent.free()
                erased = await erase_marked(session)
            except BaseException as error:
                if not outcome.done():
                    outcome.set_exception(ClosedError(_LATER) if isinstance(error, asyncio.CancelledError) else error)
                    outcome.exception()
                raise
            if not outcome.done():
                outcome.set_result(erased)

        if session.kernel.background.run(erase(), name=f"erasing in {session.kernel.session_id}") is None:
            raise ClosedError(_LATER)
        return await outcome

    async def _prune(self, horizon: Horizon) -> Erased:
        kernel = self._session.kernel

        def mark(threads: Sequence[ThreadStanding]) -> asyncio.Future[None] | None:
            decision = kernel.decide(by_caller())
            for thread in threads:
                kernel.erasing.mark(decision, thread.agent_id, thread.thread_id, last=kernel.last_arrival)
            return decision.submit() if decision.unit else None

        threads, _ = await self._each_erasable(horizon.before, mark)
        expected = await kernel.store.erasable(horizon)
        if threads or expected:
            decision = kernel.decide(by_caller())
            decision.unit.set_horizon(horizon)
            kernel.log.first_seq = horizon.first_seq
            decision.tell(SessionPruned(before=horizon.before, first_seq=horizon.first_seq, threads=threads))
            await decision.commit()
        return await self._erased()

    async def _would_erase(self, horizon: Horizon) -> Erased:
        threads, tasks = await self._each_erasable(horizon.before, lambda _: None)
        return await self._session.kernel.store.erasable(horizon) + Erased(threads=threads, tasks=tasks)

    async def _each_erasable(
        self, before: float, act: Callable[[Sequence[ThreadStanding]], asyncio.Future[None] | None]
    ) -> tuple[int, int]:
        """Let `act` decide on the threads that can be erased, some at a time, between which others have their turn.

        Returns how many threads there are, and how many tasks in them.
        """
        reads, after = self._session.kernel.reads, ("", "")
        threads = tasks = 0
        while True:
            with reads.under_way.one_more():
                page = await reads.thread_standings(before=before, after=after, limit=_PAGE)
                in_use = set(self._open_threads())
                found = [each for each in page if may_erase_thread(each, before=before, open_threads=in_use)]
                durable = act(found)
            threads, tasks = threads + len(found), tasks + sum(each.tasks for each in found)
            await (asyncio.sleep(0) if durable is None else asyncio.shield(durable))
            if len(page) < _PAGE:
                return threads, tasks
            after = (page[-1].agent_id, page[-1].thread_id)

    def _running_and_waiting(self) -> Iterator[TaskRecord]:
        session = self._session
        yield from (loop.task for loop in session.roster.running.values())
        yield from session.roster.returning.values()
        for agent in session.roster.agents.values():
            yield from (item for item in agent.work.waiting if isinstance(item, TaskRecord))

    def _open_threads(self) -> Iterator[tuple[str, str]]:
        """The conversations in which something waits or runs, or has ended a moment ago."""
        session = self._session
        for task in (*self._running_and_waiting(), *session.kernel.ended_lately.values()):
            yield task.agent_id, task.thread_id
        for agent in session.roster.agents.values():
            for item in agent.work.waiting:
                if isinstance(item, MailRecord):
                    yield agent.agent_id, item.work_thread_id

    def _dismiss(self, decision: Decision, dead: list[TaskRecord]) -> None:
        """Nobody waits for these dead letters any more: what they were about goes."""
        for task in dead:
            self._check_not_settled(task)
        for task in dead:
            dismiss(self._session, decision, task, None)
        self._settle(decision, dead)


def _answers_in(task: TaskRecord, room_id: str) -> bool:
    turn = turn_of(task)
    return turn is not None and turn.room_id == room_id


def _unknown_thread(agent_id: str, thread_id: str, known: list[str]) -> UnknownThreadError:
    near = difflib.get_close_matches(thread_id, known, n=3)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return UnknownThreadError(
        f"'{agent_id}' has no thread {thread_id[:100]!r}; nothing was erased.{hint} "
        "`list_threads` and `whisperer tasks threads` have all of them."
    )
