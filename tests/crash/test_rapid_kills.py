"""The process is killed again and again while many tasks are under way: none of them becomes a dead letter.

`WHISPERER_CRASH_RAPID_KILLS` is the number of kills in a run, `WHISPERER_CRASH_SEED` what their moments are drawn from.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.planted import Caught

from .harness import Death, Run, Witness
from .planted_bugs import BUGS_OF_MANY_DEATHS

KILLS = int(os.environ.get("WHISPERER_CRASH_RAPID_KILLS", "15"))
SEED = int(os.environ.get("WHISPERER_CRASH_SEED", "1"))
LONGEST_LIFE_SECONDS = 0.3


async def kill_often(run: Run, deaths: Iterable[Death]) -> None:
    for death in deaths:
        if not run.ended and not run.findings:
            await run.start(death)
    await run.finish()


def test_rapid_kills_set_no_task_aside(witness: Witness, tmp_path: Path, report: Callable[[str], None]) -> None:
    run = Run(witness, tmp_path / "rapid", workload="crowd")
    chance = random.Random(SEED)
    asyncio.run(kill_often(run, (chance.uniform(0.05, LONGEST_LIFE_SECONDS) for _ in range(KILLS))))
    report(f"rapid kills: {len(run.deaths)} deaths with 30 tasks under way, {len(run.findings)} things wrong")
    assert not run.findings, run.told


@pytest.mark.planted("kill -9 again and again", unit="kill", name="count every start at a death")
def test_the_rule_that_counts_every_start_is_found(
    witness: Witness, tmp_path: Path, report: Callable[[str], None], caught: Caught
) -> None:
    (name,) = BUGS_OF_MANY_DEATHS
    deaths = ["tool.acting:1"] * 4  # all tasks are started by then, however busy the machine is
    right = Run(witness, tmp_path / "right", workload="crowd")
    asyncio.run(kill_often(right, deaths))
    assert not right.findings, right.told
    run = Run(witness, tmp_path / name, workload="crowd", planted_bug=name)
    asyncio.run(kill_often(run, deaths))
    found = [finding for finding in run.findings if re.search(BUGS_OF_MANY_DEATHS[name].finding, finding)]
    report(f"planted bug {name}: {len(found)} dead letters after {len(run.deaths)} deaths")
    assert found, run.told
    caught(found[0], after=len(run.deaths))
