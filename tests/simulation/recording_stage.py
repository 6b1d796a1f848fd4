"""A team that does a bit of everything, for recordings: it is played on virtual time, then recorded from its store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from ai_whisperer import AsyncAgentSessionManager, tool
from ai_whisperer.replay.recording import Recording, Rerun, record, replayed
from ai_whisperer.runtime.life.store import open_store
from ai_whisperer.simulation.loop import VirtualClock, simulate
from ai_whisperer.store.base import Store
from ai_whisperer.tools.function import AnyFunction
from tests.simulation.stage import Say, Scenario, opened


@tool
async def look_up(what: str) -> str:
    """Look something up."""
    await asyncio.sleep(len(what) / 10)
    return f"{what} is fine"


@tool(needs_approval=True)
async def pay(amount: int, to: str) -> str:
    """Pay somebody."""
    return f"paid {amount} to {to}"


TOOLS: tuple[AnyFunction, ...] = (look_up, pay)


class _RealisticClock(VirtualClock):
    """A little time passes between two looks at it, as it does otherwise."""

    _looks = 0

    def elapsed(self) -> float:
        self._looks += 1
        return super().elapsed() + self._looks * 1e-6


def lived(
    *lives: Scenario,
    say: Say,
    tools: Iterable[AnyFunction] = TOOLS,
    seed: int = 0,
    latency_seconds: float = 1.0,
    down_for_seconds: float = 0.0,
    dies: bool = True,
    **more: Any,
) -> Store:
    """The store of a session that had these lives, each but the last ended by a death of the process, if it `dies`."""
    kept: list[Store] = []

    async def live(scenario: Scenario, clock: VirtualClock, *, is_last: bool) -> None:
        if not kept:
            kept.append(await open_store(None))
        manager = opened(kept[0], say, tools=tools, latency_seconds=latency_seconds, seed=seed, clock=clock, **more)
        await manager.open()
        await scenario(manager)
        if is_last or not dies:
            await manager.close(grace_seconds=30)
        else:
            die(manager, kept[0])

    async def main() -> None:
        for number, scenario in enumerate(lives, 1):
            await live(scenario, _RealisticClock(), is_last=number == len(lives))
            await asyncio.sleep(down_for_seconds)

    simulate(main(), seed=seed)
    return kept[0]


def die(manager: AsyncAgentSessionManager, store: Store) -> None:
    """The process of the session dies."""
    from ai_whisperer.errors import ClosedError
    from ai_whisperer.runtime.life.opening import fail_session

    fail_session(manager._session, ClosedError("killed"))
    store.unlisten(manager.session_id)


def recorded(store: Store, *, tools: Iterable[AnyFunction] = TOOLS, **settings: Any) -> Recording:
    """Its recording; the store is read outside of virtual time."""
    return asyncio.run(record(store, tools=tools, **settings))


def played(recording: Recording, **settings: Any) -> Rerun:
    return replayed(recording, **settings)
