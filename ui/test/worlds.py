"""Random lives of sessions for the test of the projection: what each told, and what it was like now and then.

Prints one line of JSON for each seed: its notifications as clients get them, and snapshots as the server answers them,
taken at random moments of all lives and at the end. Besides what the random runs of the simulation do, people talk in
rooms, make schedules, queue for locks, redefine agents, mark mail and dismiss dead letters here, and agents have tools
that may be missing.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable

import msgspec
from msgspec.structs import replace

from ai_whisperer import AsyncAgentSessionManager, WhispererError
from ai_whisperer.domain.conversation import Answer, Usage
from ai_whisperer.domain.waits import WaitKind
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.protocol.sessions import GET_SNAPSHOT
from ai_whisperer.protocol.subscriptions import frame_of
from tests.simulation.chaos import Chaos
from tests.simulation.stage import prompt_of
from tests.simulation.world import AGENTS, EVENTS, LOCKS, World

Deed = Callable[[AsyncAgentSessionManager, str], Awaitable[object]]


class Talkative(World):
    """Its models answer in rooms too, and cost something."""

    def answer(self, request: ModelRequest) -> Answer | str:
        said = super().answer(request)
        chance = self.chance_for(f"{request.step_id}/words")
        if isinstance(said, str) and "room" in prompt_of(request):
            said = chance.choice(("[PASS]", f"And you, @{chance.choice(AGENTS)}?", "I see.", said))
        answer = Answer(text=said) if isinstance(said, str) else said
        cost = chance.choice((None, 0.1, 0.25))
        return replace(answer, usage=Usage(input_tokens=chance.randrange(9), output_tokens=1, cost_usd=cost))


class Filmed(Chaos):
    """A random run of which snapshots are taken."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, lives=2)
        self.world = Talkative(seed)
        self.snapshots: list[msgspec.Raw] = []
        self.notes: list[msgspec.Raw] = []

    async def _open(self) -> AsyncAgentSessionManager:
        manager = await super()._open()
        await self._film(manager)  # as it is before anything goes on
        if "eve" not in manager.active_sessions:
            await manager.create_agent("eve", tools=[own_tool])
        return manager

    async def _meddle(self, manager: AsyncAgentSessionManager) -> None:
        await asyncio.gather(super()._meddle(manager), self._visit(manager))

    async def _visit(self, manager: AsyncAgentSessionManager) -> None:
        for _ in range(20):
            await asyncio.sleep(self._random.random() * 2)
            if any(wait.kind is WaitKind.RESOURCE for wait in (await manager.snapshot()).waits):
                await self._film(manager)  # few have to wait for that, and not for long
            deeds: list[Deed] = [
                self._talk,
                self._talk,
                self._schedule,
                self._change_schedule,
                self._queue_for_lock,
                self._mark,
                self._dismiss,
                self._retry_dismissed,
                self._redefine,
                self._change_room,
                self._hand_in,
                self._limit_tokens,
                self._film_now,
            ]
            try:
                async with asyncio.timeout(self._random.choice((0.02, 5.0, 30.0))):
                    await self._random.choice(deeds)(manager, self._random.choice(AGENTS))
            except (WhispererError, TimeoutError):
                continue  # what does not fit is refused, and people lose their patience

    async def _film_now(self, manager: AsyncAgentSessionManager, _: str) -> None:
        await self._film(manager)

    async def _film(self, manager: AsyncAgentSessionManager) -> None:
        self.snapshots.append(msgspec.Raw(GET_SNAPSHOT.write_result(await manager.snapshot())))

    async def _talk(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        room = self._random.choice(
            (await manager.create_room(AGENTS[:3], room_id="team"), await manager.open_chat(agent))
        )
        await manager.post_message(room, "What does the room say?")

    async def _change_room(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        await self._random.choice((manager.add_member, manager.remove_member))("team", agent)

    async def _schedule(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        seconds = self._random.choice((7.0, 20.0))
        if self._random.random() < 0.5:
            wake = self._random.random() < 0.5
            await manager.create_schedule(agent, interval_seconds=seconds, prompt="work depth=2", wake=wake)
        else:
            await manager.create_schedule(interval_seconds=seconds, event=self._random.choice(EVENTS))

    async def _change_schedule(self, manager: AsyncAgentSessionManager, _: str) -> None:
        for schedule in manager.list_schedules():
            change = (manager.pause_schedule, manager.resume_schedule, manager.delete_schedule, manager.delete_schedule)
            await self._random.choice(change)(schedule.id)

    async def _queue_for_lock(self, manager: AsyncAgentSessionManager, _: str) -> None:
        name = self._random.choice(LOCKS)
        await manager.acquire_lock(name, ttl_seconds=3.0, wait_seconds=self._random.choice((0.5, 10.0)))

    async def _mark(self, manager: AsyncAgentSessionManager, _: str) -> None:
        for mail in await manager.mailbox(limit=3):
            await manager.mark_mail(mail.id, self._random.choice(("read", "archived")))

    async def _dismiss(self, manager: AsyncAgentSessionManager, _: str) -> None:
        for task in (await manager.dead_letters()).tasks[:3]:
            await manager.dismiss_task(task.id)

    async def _retry_dismissed(self, manager: AsyncAgentSessionManager, _: str) -> None:
        for task in await manager.list_tasks():
            if task.dismissed_at is not None:
                await manager.retry_task(task.id)

    async def _limit_tokens(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        await manager.set_limits({"max_tokens_per_agent": self._random.choice((1, 40, None, None))}, agent_id=agent)

    async def _hand_in(self, manager: AsyncAgentSessionManager, _: str) -> None:
        await manager.give_tools("eve", [own_tool])

    async def _redefine(self, manager: AsyncAgentSessionManager, agent: str) -> None:
        definition = manager.active_sessions[agent].record.definition
        await manager.stop_agent(agent)
        changed = replace(definition, description=f"Redefined {self._random.random()}.")
        await manager.start_agent(agent, changed)

    async def _finish(self) -> None:
        """Nothing has to come to rest: a moment is as good as another."""
        manager = await self._open()
        await self._meddle(manager)
        await self._film(manager)
        self.notes = [msgspec.Raw(frame_of(note)) for note in await manager.notifications(limit=100_000)]
        await manager.close()


async def own_tool() -> str:
    """A tool that has to be handed in after each restart."""
    return "ok"


def main(first: int, seeds: int) -> None:
    for seed in range(first, first + seeds):
        run = Filmed(seed)
        run.run()
        line = msgspec.json.encode({"seed": seed, "notes": run.notes, "snapshots": run.snapshots})
        sys.stdout.buffer.write(line + b"\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
