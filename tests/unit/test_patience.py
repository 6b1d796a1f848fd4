"""How long an outage is borne, and how the pauses between attempts grow."""

from __future__ import annotations

import asyncio
from random import Random

from ai_whisperer.client.patience import Patience
from ai_whisperer.simulation.loop import simulate


class Always(Random):
    """Chance that is none: always the most that there is."""

    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


async def pauses(patience: Patience, count: int) -> list[float]:
    """How long the next ones are."""
    loop = asyncio.get_running_loop()
    taken = []
    for _ in range(count):
        before = loop.time()
        await patience.pause()
        taken.append(round(loop.time() - before, 3))
    return taken


def test_pauses_grow_up_to_a_limit_and_begin_anew_when_things_go_well() -> None:
    async def main() -> None:
        patience = Patience(100, Always())
        assert await pauses(patience, 8) == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
        patience.relax()
        assert await pauses(patience, 2) == [0.05, 0.1]

    simulate(main())


def test_pauses_differ_by_the_chance_that_is_provided() -> None:
    async def main() -> None:
        first, again, other = [await pauses(Patience(100, Random(seed)), 8) for seed in (1, 1, 2)]
        assert first == again != other

    simulate(main())


def test_no_pause_is_longer_than_there_is_time() -> None:
    async def main() -> None:
        patience = Patience(0.5, Always())
        assert await pauses(patience, 5) == [0.05, 0.1, 0.2, 0.15, 0.0]
        assert patience.is_over
        patience.renew()
        assert await pauses(patience, 1) == [0.5]

    simulate(main())
