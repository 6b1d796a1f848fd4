"""A snapshot is the session after one notification: the log goes on from there, whatever is on its way to the disk."""

from __future__ import annotations

import asyncio
from typing import Any

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.snapshot import LinkKind
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import simulate
from tests.simulation.stage import call, opened, play, play_over_crash, prompt_of, round_of


def test_what_is_not_on_disk_yet_is_in_the_snapshot_and_counted() -> None:
    disk = SimulatedDisk(slowest_commit_seconds=1.0)

    async def main() -> None:
        store = disk.open()
        async with opened(store, lambda _: "done") as manager:
            await manager.create_agent("ann", auto_start=False)
            sending = asyncio.ensure_future(manager.send_task("ann", "work"))
            await asyncio.sleep(0)
            before = manager.last_seq
            snapshot = await manager.snapshot()
            assert (snapshot.last_seq, before) == (before + 1, 1)
            assert [task.summary for task in snapshot.tasks] == ["work"]
            assert manager.last_seq >= snapshot.last_seq, "it is on disk by then"
            assert (await manager.notifications(after=before))[0].at == snapshot.at
            await sending
        await store.close()

    simulate(main())
    disk.close()


def test_the_inbox_of_the_user_has_what_is_neither_archived_nor_dead_in_order() -> None:
    def say(request: ModelRequest) -> Answer | str:
        number = round_of(request)
        return call("send_mail", to_agent="user", subject=f"n{number}", body="b") if number < 3 else "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        await manager.run_task("ann", "write")
        third, second, _ = await manager.mailbox()
        await manager.mark_mail(second.id, "archived")
        marking = asyncio.ensure_future(manager.mark_mail(third.id, "read"))
        while not manager._session.mail._moving:  # noqa: ASYNC110 - until it is decided
            await asyncio.sleep(0)
        inbox = (await manager.snapshot()).inbox
        assert [(mail.subject, mail.is_read) for mail in inbox] == [("n0", False), ("n2", True)]
        await marking

    play(scenario, say)


def test_who_reached_whom_is_counted_over_restarts() -> None:
    def say(request: ModelRequest) -> Answer | str:
        begins = prompt_of(request) == "go" and round_of(request) == 0
        return call("delegate_task", to_agent="ben", task="help") if begins else "done"

    async def before(manager: AsyncAgentSessionManager) -> None:
        for name in ("ann", "ben"):
            await manager.create_agent(name, {"subscribes": ["news"]})
        await manager.run_task("ann", "go")
        await manager.broadcast_event("news")
        await manager.at_rest()

    async def after(manager: AsyncAgentSessionManager) -> None:
        await manager.run_task("ann", "go")
        await manager.at_rest()
        links = {(link.kind, link.sender, link.recipient): link.count for link in (await manager.snapshot()).links}
        assert links == {
            (LinkKind.DELEGATION, "ann", "ben"): 2,
            (LinkKind.MAIL, "ben", "ann"): 2,
            (LinkKind.EVENT, "user", "ann"): 1,
            (LinkKind.EVENT, "user", "ben"): 1,
        }

    play_over_crash(before, after, say, crash_after_seconds=60.0)


def test_a_session_that_is_opened_again_says_so_first() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")

    async def after(manager: AsyncAgentSessionManager) -> None:
        await manager.flushed()
        assert [note.name for note in await manager.notifications()] == [
            "agent.created",
            "agent.started",
            "session.opened",
        ]

    play_over_crash(before, after, crash_after_seconds=1.0)


class _Asked(dict[str, TaskRecord]):
    """Tasks that count how often all of them were looked at."""

    times = 0

    def values(self) -> Any:
        self.times += 1
        return super().values()


def test_tasks_on_their_way_back_into_a_queue_are_counted_there_and_looked_for_once_for_all_agents() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("ann", "ben", "cid"):
            await manager.create_agent(name, auto_start=False)
        task = await manager.get_task(await manager.send_task("ben", "work"))
        asked = _Asked({task.id: task})
        manager._session.roster.returning = asked
        listed = manager.list_agents()
        assert [status.queue_size for status in listed] == [0, 2, 0]
        assert asked.times == 1
        assert listed == [manager.get_agent_status(name) for name in ("ann", "ben", "cid")]
        asked.clear()

    play(scenario)
