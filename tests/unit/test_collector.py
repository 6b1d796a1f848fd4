"""The garbage collector of a server."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.server.collector import settle_collector
from ai_whisperer.server.host import SessionHost
from ai_whisperer.settings import LOCAL
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import simulate
from ai_whisperer.templates.library import TemplateLibrary


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """A server that another test ran in this process may have set them."""
    thresholds = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def test_what_is_there_is_not_looked_at_again_and_new_objects_less_often() -> None:
    before = gc.get_threshold()
    settle_collector()
    assert gc.get_freeze_count() > 1_000
    assert gc.get_threshold()[0] > before[0]


def test_what_becomes_garbage_later_is_found_all_the_same() -> None:
    settle_collector()
    made: list[object] = []
    made.append(made)
    kept = len(gc.get_objects())
    del made
    assert gc.collect() >= 1
    assert len(gc.get_objects()) < kept


def test_of_a_session_that_is_deleted_from_a_settled_server_nothing_is_left() -> None:
    settle_collector()
    disk = SimulatedDisk(1)

    async def main() -> None:
        store = disk.open()
        host = SessionHost(
            store,
            model="any",
            templates=TemplateLibrary([]),
            model_factory=lambda _: FunctionModel(lambda _: "done"),
        )
        await host.start(session_id="default")
        before = len(kernels())
        await use_and_delete(host)
        await asyncio.sleep(2)
        assert len(kernels()) == before
        await host.close(grace_seconds=0)
        await store.close()

    simulate(main(), seed=1)
    disk.close()


async def use_and_delete(host: SessionHost) -> None:
    session = await host.session(LOCAL, "default")
    await session.run_task(await session.create_agent("ada"), "Say that it is done.")
    await host.delete(LOCAL, "default")


def kernels() -> list[object]:
    """The hearts of all sessions that are in memory."""
    return [each for each in gc.get_objects() if isinstance(each, Kernel)]
