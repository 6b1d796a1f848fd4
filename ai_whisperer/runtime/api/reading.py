"""What can be read of a session: agents, tasks, journals, mail, the log."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from ai_whisperer.core.addresses import normalized
from ai_whisperer.core.agent_log import checked_level
from ai_whisperer.core.paging import can_be_id, checked_kind, checked_limit, checked_position
from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.mail import USER, DeadLetters, MailRecord
from ai_whisperer.domain.notification import LogEntries, Notification
from ai_whisperer.domain.sessions import IdKind
from ai_whisperer.domain.snapshot import Snapshot
from ai_whisperer.domain.tasks import StepRecord, TaskRecord, ThreadSummary, WorkCounts
from ai_whisperer.domain.usage import UsageReport, UsageTotals
from ai_whisperer.domain.waits import ResourceStatus
from ai_whisperer.errors import ClosedError, StateError
from ai_whisperer.runtime.agents.status import as_it_is_now, shown_steps, status_of, statuses_of
from ai_whisperer.runtime.api.agent_log import AgentLog, pass_on
from ai_whisperer.runtime.api.base import AgentRef, SessionBase
from ai_whisperer.runtime.api.snapshots import snapshot_of
from ai_whisperer.runtime.api.task_source import SessionTaskSource, unknown_task
from ai_whisperer.runtime.api.usage import usage_of_session, usage_of_tree
from ai_whisperer.runtime.session.current import loop_that_calls
from ai_whisperer.runtime.session.log import Subscription
from ai_whisperer.task_stream import TaskStream


class SessionReader(SessionBase):
    """The reading half of the session manager."""

    @property
    def is_flushed(self) -> bool:
        """Whether all that was decided so far is on disk."""
        return self._session.kernel.store.is_flushed

    async def flushed(self) -> None:
        """Wait until all that was decided so far is on disk; raises a `StoreError` if something of it never will be.

        What is read then is what would survive.
        """
        await self._session.kernel.flushed()

    async def at_rest(self) -> None:
        session = self._session
        calling = loop_that_calls()
        if calling is not None and session.roster.runs(calling):
            raise StateError("A tool cannot wait until all agents are idle: its own agent is not. Do it from outside.")
        subscription = self.subscribe()
        try:
            while busy := [agent for agent in session.roster.agents.values() if not agent.work.is_at_rest]:
                for agent in busy:
                    while not agent.work.is_at_rest:  # whatever brings it to rest is told after it has happened
                        await anext(subscription)
        except StopAsyncIteration:
            raise ClosedError("The session was closed before its agents were idle; they resume later.") from None
        finally:
            subscription.close()
        await session.kernel.flushed()

    async def snapshot(self) -> Snapshot:
        session = self._session
        taken = snapshot_of(session, await session.kernel.reads.inbox())
        await session.kernel.flushed()
        return taken

    async def mailbox(self, owner: AgentRef = USER, *, limit: int = 100) -> list[MailRecord]:
        name = self._mailbox_name(owner)
        return await self._session.kernel.reads.mailbox(name, limit=checked_limit(limit))

    async def sent_mail(self, owner: AgentRef = USER, *, limit: int = 100) -> list[MailRecord]:
        name = self._mailbox_name(owner)
        return await self._session.kernel.reads.sent_mail(name, limit=checked_limit(limit))

    def _mailbox_name(self, owner: AgentRef) -> str:
        is_user = isinstance(owner, str) and normalized(owner) == USER
        return USER if is_user else self._find_agent(owner).agent_id

    async def dead_letters(self) -> DeadLetters:
        reads = self._session.kernel.reads
        return DeadLetters(tasks=await reads.dead_tasks(), mails=await reads.dead_mail())

    async def find_ids(self, kind: IdKind | str, beginning: str, *, limit: int = 10) -> list[str]:
        known = checked_kind(kind)
        if not can_be_id(beginning):
            return []
        return await self._session.kernel.reads.ids_beginning(known, beginning, limit=checked_limit(limit))

    @property
    def work_counts(self) -> WorkCounts:
        """What has become of tasks since the session was opened, and what waits for a person now."""
        tallies = self._session.counters
        return WorkCounts(
            ended=dict(tallies.ended),
            retried=dict(tallies.retried),
            repaired=dict(tallies.repaired),
            dead_tasks=tallies.dead_tasks.total(),
            dead_mails=tallies.dead_mails,
            pending_approvals=len(self._session.approvals.pending()),
            pending_questions=len(self._session.questions.pending()),
        )

    @property
    def used(self) -> UsageTotals:
        """What all agents have used since they were made."""
        return usage_of_session(self._session).total

    def get_agent_status(self, agent_id: AgentRef) -> AgentStatus:
        return status_of(self._find_agent(agent_id))

    def list_agents(self) -> list[AgentStatus]:
        return list(statuses_of(self._session))

    async def get_task(self, task: str | TaskRecord) -> TaskRecord:
        task_id = task.id if isinstance(task, TaskRecord) else task
        found = await self._find_task(task_id) if can_be_id(task_id) else None
        if found is None:
            raise unknown_task(self._session.kernel.session_id, task_id)
        return found

    async def list_tasks(self, agent_id: AgentRef | None = None, *, limit: int = 100) -> list[TaskRecord]:
        reads = self._session.kernel.reads
        if agent_id is None:
            return await reads.tasks(limit=checked_limit(limit))
        return await reads.tasks_of_agent(self._find_agent(agent_id).agent_id, limit=checked_limit(limit))

    async def get_task_tree(self, task: str | TaskRecord) -> list[TaskRecord]:
        return await self._tree((await self.get_task(task)).root_id)

    async def list_steps(self, task: str | TaskRecord, *, after: int = 0) -> list[StepRecord]:
        known = await self.get_task(task)
        return await shown_steps(self._session, known.id, after=checked_position(after))

    def stream(self, task: str | TaskRecord) -> TaskStream:
        task_id = task.id if isinstance(task, TaskRecord) else task
        return TaskStream(task_id, SessionTaskSource(self._session, task_id))

    async def usage(self, task: str | TaskRecord | None = None) -> UsageReport:
        if task is not None:
            return usage_of_tree(self._session, await self.get_task_tree(task))
        return usage_of_session(self._session)

    async def list_threads(self, agent_id: AgentRef) -> list[ThreadSummary]:
        return await self._session.kernel.reads.threads_of_agent(self._find_agent(agent_id).agent_id)

    async def list_events(self, *, limit: int = 100) -> list[EventRecord]:
        return await self._session.kernel.reads.events(limit=checked_limit(limit))

    def list_resources(self) -> list[ResourceStatus]:
        return self._session.turns.listed()

    async def notifications(self, *, after: int = 0, limit: int = 1000) -> list[Notification]:
        log, position = self._session.kernel.log, checked_position(after)
        found = await self._session.kernel.reads.notifications(after=position, limit=checked_limit(limit))
        log.check_kept(position)
        return found

    async def read_log(
        self, agent_id: AgentRef, *, after: int | None = None, limit: int = 200, level: str = "info"
    ) -> LogEntries:
        """The debug log of an agent: its last entries, or those after the `next` of an earlier answer.

        `level` is the least that is in it: `debug`, `info`, `warning` or `error`. The log is a view of the
        notifications; whoever wants to follow it subscribes to these, and reads on when one tells of the agent.
        """
        kernel = self._session.kernel
        name = self._find_agent(agent_id).agent_id
        log = AgentLog(kernel.reads, name, level=checked_level(level), first_seq=kernel.log.first_seq)
        last_seq = kernel.log.last_seq
        if after is None:
            return await log.last(checked_limit(limit), last_seq=last_seq)
        return await log.following(checked_position(after), checked_limit(limit), last_seq=last_seq)

    def log_agents(self) -> Coroutine[Any, Any, None]:
        """Pass what happens to agents on to the logger `ai_whisperer.agents`, from now on until the session is closed.

        Attach handlers to that logger, and set its level; they are called in a thread. The message of a record is what
        happened in words, its `entry` is the entry of the log. Run it as a task beside what you do with the session.
        """
        return pass_on(self.subscribe())

    @property
    def last_seq(self) -> int:
        """The number of the newest notification: what is read now is the state after it."""
        return self._session.kernel.log.last_seq

    @property
    def first_seq(self) -> int:
        """The number of the first notification that is kept: what came before was pruned."""
        return self._session.kernel.log.first_seq

    def subscribe(self, *, after: int | None = None, deltas: bool = False) -> Subscription:
        """An iterator over the notifications after this number (0: from the start; None: from now on).

        With `deltas` the pieces of answers come along as they are streamed, unnumbered. Raises `LogPrunedError` if what
        follows the number was pruned, here or, for a reader that falls behind, later.
        """
        bus = self._session.kernel.log
        return bus.subscribe(after=bus.last_seq if after is None else checked_position(after), deltas=deltas)

    async def _tree(self, root_id: str) -> list[TaskRecord]:
        """The tree as it is now, with what is still on its way to the disk."""
        tasks = {task.id: task for task in await self._session.kernel.reads.tasks_of_tree(root_id)}
        tasks |= {ended.id: ended for ended in self._session.kernel.ended_lately.values() if ended.root_id == root_id}
        running = (loop.task for loop in self._session.roster.running.values())
        waiting = (item for agent in self._session.roster.agents.values() for item in agent.work.waiting)
        for task in (*running, *waiting):
            if isinstance(task, TaskRecord) and task.root_id == root_id:
                tasks[task.id] = task
        return list(tasks.values())

    async def _find_task(self, task_id: str) -> TaskRecord | None:
        """The task as it is now, but for an end that is not durable yet."""
        session = self._session
        if task_id in session.roster.running:
            return session.roster.running[task_id].task
        stored = await session.kernel.reads.task(task_id)
        if (loop := session.roster.running.get(task_id)) is not None:
            return loop.task
        return None if stored is None else as_it_is_now(session, stored)
