"""The floor's side of W4, in a module of its own so that the start of its process does not pay for our imports."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bench import floor
from bench.probe import Sample
from bench.witness import Teller

AGENTS = 100
TASKS = [f"task-{number}" for number in range(AGENTS)]
PROMPT = "Look up both facts and say what they are."


async def floor_works(folder: Path, *, pipe: int, fresh: bool) -> Sample:
    """Do all tasks, or what is left of them."""
    teller = Teller(pipe)
    plan = [teller.ask, teller.look_up, teller.ask, teller.look_up, teller.ask]
    teller.tell("opening")
    journal = floor.GroupCommit(folder)
    ended = {row[0] for row in journal.connection.execute("SELECT id FROM task WHERE result IS NOT NULL")}
    done = dict(journal.connection.execute("SELECT task_id, count(*) FROM step GROUP BY task_id"))

    async def run(task_id: str) -> None:
        if fresh:
            await journal.write(floor.INSERT_TASK, (task_id, task_id, PROMPT))
            teller.tell("accepted", task_id)
        if task_id not in ended:
            await floor.run_task(task_id, plan, journal, done=done.get(task_id, 0))

    await asyncio.gather(*map(run, TASKS))
    ((completed,),) = journal.connection.execute("SELECT count(*) FROM task WHERE result IS NOT NULL")
    return {"completed": completed, "unknown": 0}


def committed_by_floor(copy: Path) -> set[str]:
    """The ids of the steps whose results are on disk."""
    connection = floor.open_database(copy)
    return {f"{task_id}.{number}" for task_id, number in connection.execute("SELECT task_id, number FROM step")}
