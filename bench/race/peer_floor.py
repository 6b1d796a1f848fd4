"""The floor in the race: plain asyncio and one group-commit SQLite writer (`bench.floor`)."""

from __future__ import annotations

import asyncio
from functools import partial

from bench import floor
from bench.race.course import BODY, FINAL, PAIRS, STEPS, USED_PROMPT, Course, main, prompt_of, tools_of


async def messages(course: Course) -> int:
    """Pairs of asyncio queues; in the durable case each message is a row that is on disk before it is handed over."""
    journal = floor.GroupCommit(course.folder) if course.durable else None

    async def play(pair: int, side: int, inboxes: tuple[asyncio.Queue[str], ...]) -> None:
        for number in range(side, course.hops, 2):
            if number:
                await inboxes[side].get()
            if journal is not None:
                key = f"{pair}.{number}"
                await journal.write(floor.INSERT_TASK, (key, str(side), BODY))
            inboxes[1 - side].put_nowait(BODY)

    with course.measured():
        pairs: list[tuple[asyncio.Queue[str], ...]] = [(asyncio.Queue(), asyncio.Queue()) for _ in range(PAIRS)]
        await asyncio.gather(*(play(each, side, inboxes) for each, inboxes in enumerate(pairs) for side in (0, 1)))
    return PAIRS * course.hops


async def tasks(course: Course) -> int:
    journal = floor.GroupCommit(course.folder) if course.durable else None
    with_journal = partial(_run, course, journal)
    await asyncio.gather(*map(with_journal, course.warm_up))
    with course.measured():
        ended = await asyncio.gather(*map(with_journal, course.tasks))
    return sum(map(bool, ended))


async def agents(course: Course) -> int:
    """An agent is a small object in a dict and a row on disk."""
    journal = floor.GroupCommit(course.folder)
    made: dict[str, floor.FloorAgent] = {}

    async def create(number: int) -> None:
        agent = floor.FloorAgent(f"agent-{number}", '{"model":"fake"}', tuple(tools_of(number)))
        made[agent.id] = agent
        await journal.write(floor.INSERT_AGENT, (agent.id, agent.definition))

    await create(-1)
    with course.measured():
        await asyncio.gather(*map(create, range(course.size)))
        for number in range(course.size) if course.used else ():
            await course.next_fact(USED_PROMPT, 0)
            await journal.write(floor.INSERT_TASK, (f"task-{number}", f"agent-{number}", FINAL))
    return len(made) - 1


async def restart(course: Course) -> int:
    course.tell("opening")
    journal = floor.GroupCommit(course.folder)
    ended = {row[0] for row in journal.connection.execute("SELECT id FROM task WHERE result IS NOT NULL")}
    done = dict(journal.connection.execute("SELECT task_id, count(*) FROM step GROUP BY task_id"))
    left = [task for task in course.tasks if task not in ended]
    with course.measured():
        await asyncio.gather(*(_run(course, journal, task, done=done.get(task, 0)) for task in left))
    ((completed,),) = journal.connection.execute("SELECT count(*) FROM task WHERE result IS NOT NULL")
    return int(completed)


async def _run(course: Course, journal: floor.GroupCommit | None, task: str, *, done: int = 0) -> str:
    async def ask(step_id: str) -> str:
        number = int(step_id.rpartition(".")[2]) - 1
        return await course.next_fact(prompt_of(task), number // 2) or "known"

    async def look_up(step_id: str) -> str:
        number = int(step_id.rpartition(".")[2]) - 1
        return await course.look_up(f"{task}.{number}")

    if journal is not None and course.fresh:
        await journal.write(floor.INSERT_TASK, (task, task, prompt_of(task)))
        course.tell("accepted", task)
    plan = [look_up if number % 2 else ask for number in range(STEPS)]
    return await floor.run_task(task, plan, journal, done=done)


if __name__ == "__main__":
    main(messages=messages, tasks=tasks, agents=agents, restart=restart)
