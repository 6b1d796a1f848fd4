"""Work that kills the process each time becomes a dead letter after five starts, and takes nobody else with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from ai_whisperer.core.blame import MOST_STARTS as MOST_STARTS_OF_A_TASK

from .harness import Run, Witness

MOST_STARTS = 20


async def start_until_it_ends(run: Run) -> None:
    for _ in range(MOST_STARTS):
        if run.ended or run.findings:
            return
        await run.start()


def test_a_task_that_kills_the_process_is_set_aside_after_five_starts(
    witness: Witness, tmp_path: Path, report: Callable[[str], None]
) -> None:
    run = Run(witness, tmp_path / "poison", workload="poisoned", set_aside=frozenset({"poison-max-1"}))
    asyncio.run(start_until_it_ends(run))
    report(f"a poison task: {len(run.deaths)} deaths until it became a dead letter")
    assert not run.findings, run.told
    assert len(run.deaths) == MOST_STARTS_OF_A_TASK


def test_several_tasks_that_kill_the_process_take_no_innocent_task_with_them(
    witness: Witness, tmp_path: Path, report: Callable[[str], None]
) -> None:
    guilty = frozenset(f"poison-often-max-{number}" for number in (1, 2, 3))
    run = Run(witness, tmp_path / "poison-often", workload="poisoned_often", set_aside=guilty)
    asyncio.run(start_until_it_ends(run))
    report(f"three poison tasks: {len(run.deaths)} deaths until they became dead letters")
    assert not run.findings, run.told
    assert len(run.deaths) <= 3 * MOST_STARTS_OF_A_TASK


def test_a_task_whose_model_calls_a_deadly_tool_again_and_again_is_set_aside_after_five_starts(
    witness: Witness, tmp_path: Path, report: Callable[[str], None]
) -> None:
    run = Run(witness, tmp_path / "stubborn", workload="stubborn", set_aside=frozenset({"stubborn-max-1"}))
    asyncio.run(start_until_it_ends(run))
    report(f"a stubborn model: {len(run.deaths)} deaths until its task became a dead letter")
    assert not run.findings, run.told
    assert len(run.deaths) == MOST_STARTS_OF_A_TASK
