"""The floor in the race: plain asyncio and one group-commit SQLite writer (`bench.floor`)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bench import floor
from bench.race.course import BODY, FINAL, STEPS, USED_PROMPT, Course, Doing, Script, batched, main, prompt_of, tools_of


class Floor(Script):
    def __init__(self, course: Course) -> None:
        super().__init__(course)
        self._is_kept = course.durable or course.workload.startswith("agents")
        self._journal: floor.GroupCommit | None = None
        self._agents: dict[str, floor.FloorAgent] = {}

    async def open(self) -> None:
        self._journal = floor.GroupCommit(self.course.folder) if self._is_kept else None

    async def make_pair(self, pair: str) -> Doing:
        """Two asyncio queues; in the durable case each message is a row on disk before it is handed over."""
        inboxes: tuple[asyncio.Queue[str], ...] = (asyncio.Queue(), asyncio.Queue())

        async def side(own: int) -> None:
            for number in range(own, self.course.hops, 2):
                if number:
                    await inboxes[own].get()
                if not self.course.bare:
                    await self.course.next_fact(BODY, 0)
                if self._journal is not None:
                    await self._journal.write(floor.INSERT_TASK, (f"{pair}.{number}", str(own), BODY))
                inboxes[1 - own].put_nowait(BODY)

        async def play() -> int:
            await asyncio.gather(side(0), side(1))
            return self.course.hops

        return play

    async def make_worker(self, task: str) -> Doing:
        async def run() -> int:
            return bool(await self._run(task))

        return run

    async def create(self, numbers: Sequence[int]) -> Sequence[floor.FloorAgent]:
        """An agent is a small object in a dict and a row on disk."""
        for some in batched(numbers):
            await asyncio.gather(*map(self._create, some))
        return [self._agents[f"agent-{number}"] for number in numbers]

    async def _create(self, number: int) -> None:
        agent = floor.FloorAgent(f"agent-{number}", '{"model":"fake"}', tuple(tools_of(number)))
        self._agents[agent.id] = agent
        assert self._journal is not None
        await self._journal.write(floor.INSERT_AGENT, (agent.id, agent.definition))

    async def use(self, agent: floor.FloorAgent) -> bool:
        assert self._journal is not None
        await self.course.next_fact(USED_PROMPT, 0)
        await self._journal.write(floor.INSERT_TASK, (f"task of {agent.id}", agent.id, FINAL))
        return True

    async def resume(self, task: str) -> bool:
        """After the last row of the task."""
        assert self._journal is not None
        ((steps,),) = self._journal.connection.execute("SELECT count(*) FROM step WHERE task_id=?", (task,))
        ended = self._journal.connection.execute("SELECT 1 FROM task WHERE id=? AND result IS NOT NULL", (task,))
        return bool(list(ended)) or bool(await self._run(task, done=steps))

    async def _run(self, task: str, *, done: int = 0) -> str:
        async def ask(step_id: str) -> str:
            number = int(step_id.rpartition(".")[2]) - 1
            return await self.course.next_fact(prompt_of(task), number // 2) or "known"

        async def look_up(step_id: str) -> str:
            number = int(step_id.rpartition(".")[2]) - 1
            return await self.course.look_up(f"{task}.{number}")

        if self._journal is not None and self.course.fresh:
            await self._journal.write(floor.INSERT_TASK, (task, task, prompt_of(task)))
        plan = [look_up if number % 2 else ask for number in range(STEPS)]
        return await floor.run_task(task, plan, self._journal, done=done)


if __name__ == "__main__":
    main(Floor)
