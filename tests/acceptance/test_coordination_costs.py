"""What coordination costs, counted: commits of a question and its answer, commits and tasks of a broadcast."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.store.sqlite import SqliteStore
from bench.w5_coordination import ours_switch


def test_a_question_and_its_answer_take_six_commits_at_most(tmp_path: Path) -> None:
    assert asyncio.run(ours_switch(tmp_path))["commits"] <= 6


def test_a_broadcast_wakes_a_thousand_sleepers_that_had_no_tasks_of_their_own(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore.open(tmp_path)
        model = FunctionModel(lambda _: "awake")
        async with AsyncAgentSessionManager(store=store, model_factory=lambda _: model) as manager:
            tasks = len(asyncio.all_tasks())
            made = await asyncio.gather(*(manager.create_agent(f"a{number}", {}) for number in range(1000)))
            await asyncio.gather(*(manager.sleep_agent(each, wake_events=["go"]) for each in made))
            await manager.flushed()
            assert len(asyncio.all_tasks()) == tasks, "a sleeper is a row, not a task"
            event = await manager.broadcast_event("go")
            assert event.woken == 1000
            states = [note for note in await manager.notifications(limit=100_000)
                      if note.name == "agent.state_changed" and note.params["action"] == "wake"]  # fmt: skip
            assert len(states) == 1000
            assert len({note.at for note in states}) == 1
            await asyncio.gather(*[manager.wait_task((await manager.list_tasks(each))[0].id) for each in made])
        await store.close()

    asyncio.run(main())
