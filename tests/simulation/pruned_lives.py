"""Random lives in which somebody prunes at random times, and what has to hold then, seen from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from ai_whisperer import AsyncAgentSessionManager, WhispererError
from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.errors import LogPrunedError
from tests.simulation.chaos import Chaos
from tests.simulation.world import AGENTS, STEERING


class PrunedLives(Chaos):
    """A run in which what has ended goes after some seconds."""

    def __init__(self, seed: int, *, lives: int = 3) -> None:
        super().__init__(seed, lives=lives)
        self._clock_is_set = False
        self.heard: dict[int, tuple[str, float]] = {}
        self.pruned = 0

    def _choose(self) -> Callable[[AsyncAgentSessionManager, str], Awaitable[object]]:
        return self._prune if self._random.random() < 0.15 else super()._choose()

    async def _prune(self, manager: AsyncAgentSessionManager, _: str) -> None:
        await self._listen(manager)
        report = await manager.prune(older_than=self._random.choice((0.0, 2.0, 10.0)))
        self.pruned += report.erased.tasks
        await self._check_open_work(manager)

    async def _listen(self, manager: AsyncAgentSessionManager) -> None:
        """Hear what the log has, before it goes. A number means one notification, for ever."""
        with suppress(LogPrunedError):  # somebody else has just pruned
            for note in await manager.notifications(after=manager.first_seq - 1, limit=100_000):
                known = self.heard.setdefault(note.seq, _told(note))
                assert known == _told(note), f"the number {note.seq} was given twice"

    async def _check_open_work(self, manager: AsyncAgentSessionManager) -> None:
        """What waits or runs has all that it needs to be taken up after a crash."""
        session = manager._session
        waiting = (item for agent in session.roster.agents.values() for item in agent.work.waiting)
        tasks = [item for item in waiting if isinstance(item, TaskRecord)]
        tasks += [loop.task for loop in session.roster.running.values()]
        for task in tasks:
            stored = await session.kernel.store.task(task.session_id, task.id)
            assert stored is None or stored.erased_at is None, f"open work was pruned: {task.id}"
        for dead in (await manager.dead_letters()).tasks:
            assert dead.erased_at is None, f"a dead letter was pruned: {dead.id}"

    async def _finish(self) -> None:
        manager = await self._open()
        await asyncio.gather(self._meddle(manager), self._meddle(manager))
        await self._let_all_end(manager)
        await self._listen(manager)
        await manager.prune(older_than=0)
        assert not self.faults, f"a loop broke: {self.faults}"
        await self._check_all(manager)
        await manager.close()

    async def _check_all(self, manager: AsyncAgentSessionManager) -> None:
        world = self.world
        assert not world.asked_again, "a finished model request was repeated"
        assert all(count == 1 for count in world.effects.values()), "an outside effect happened twice"
        tasks = {task.id: task for name in AGENTS for task in await manager.list_tasks(name, limit=100_000)}
        assert world.accepted_tasks <= set(tasks), "an accepted task was forgotten"
        assert all(task.state.ended for task in tasks.values()), "a task never ended"
        used = sum((task.usage for task in tasks.values()), Usage())
        total = (await manager.usage()).total.usage
        assert (total.model_calls, total.input_tokens) == (used.model_calls, used.input_tokens), "usage was forgotten"
        mails = {mail.id for name in (*AGENTS, "user") for mail in await manager.mailbox(name, limit=100_000)}
        assert world.accepted_mails <= mails, "an accepted mail was forgotten"
        dead = {task.id for task in (await manager.dead_letters()).tasks}
        for task in tasks.values():
            assert (task.erased_at is None) or task.id not in dead, "a dead letter was pruned"
        await self._check_nothing_is_done_again(manager, tasks)

    async def _check_nothing_is_done_again(
        self, manager: AsyncAgentSessionManager, tasks: dict[str, TaskRecord]
    ) -> None:
        calls = (await manager.usage()).total.usage.model_calls
        for task_id in sorted(self.world.accepted_tasks)[:20]:
            is_steering = task_id in self.world.steered
            again = await manager.send_task(
                tasks[task_id].agent_id,
                f"{STEERING}{task_id}" if is_steering else "work",
                task_id=task_id,
                deliver="next_step" if is_steering else "in_turn",
            )
            assert again.state.ended, "what was pruned is done again"
            async with asyncio.timeout(5):  # also if another task, which is pruned too, has its answer
                await manager.wait_task(task_id)
        assert (await manager.usage()).total.usage.model_calls == calls, "what was pruned is done again"


def _told(note: Notification) -> tuple[str, float]:
    return note.name, note.at


def failure_of(seed: int) -> str | None:
    """What a run with this seed broke, if anything."""
    run = PrunedLives(seed)
    try:
        run.run()
    except (
        AssertionError,
        WhispererError,
        TimeoutError,
        ExceptionGroup,
        LookupError,
        ValueError,
        RuntimeError,
    ) as failure:
        return f"{type(failure).__name__}: {failure}".splitlines()[0]
    return None
