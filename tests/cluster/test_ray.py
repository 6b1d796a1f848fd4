"""Nodes that a real Ray runs: they come back, their sessions go on, and nothing is left when they are told to end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

from ai_whisperer.cluster.joining import join
from ai_whisperer.cluster.ray.chores import names_of
from ai_whisperer.cluster.ray.keeping import NoCrew, keep
from ai_whisperer.domain.cluster import NodeState
from ai_whisperer.domain.nodes import NodeCard
from ai_whisperer.store.postgresql.launching import LaunchBook
from tests.acceptance.command_stage import run
from tests.acceptance.mcp_stage import is_alive
from tests.cluster.ray_nodes import Stage, raylet_of
from tests.cluster.ray_stage import WHY_NOT, is_installed, running_ray
from tests.cluster.stage import eventually
from tests.postgresql import Server

pytestmark = pytest.mark.skipif(not is_installed(), reason=WHY_NOT)


@pytest.fixture
def stage(postgresql_server: Server, database: str, tmp_path: Path) -> Iterator[Stage]:
    with running_ray(2) as ray:
        made = Stage(ray, postgresql_server, database, tmp_path)
        try:
            yield made
        finally:
            for pid in made.pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="whose child a process is can be read in /proc on Linux only")
def test_nodes_come_back_and_sessions_go_on_whatever_dies(stage: Stage) -> None:
    refused = stage.run("up", "--ray", stage.ray.address, "--hosts", "1", "--json", RAY_AUTH_TOKEN="another" * 5)
    assert (refused.code, refused.error["code"]) == (1, "ray")
    assert "wants its token, and none or another is here. Set RAY_AUTH_TOKEN" in refused.error["message"]
    begun = stage.up(2)
    assert begun.code == 0, begun
    assert [each["name"] for each in begun.json["nodes"]] == ["ray-1", "ray-2"], begun
    asyncio.run(whatever_dies(stage))


async def whatever_dies(stage: Stage) -> None:
    one, two = stage.address("ray-1").pid, stage.address("ray-2").pid
    on = {pid: raylet_of(pid, stage.ray.raylets) for pid in (one, two)}
    assert set(on.values()) == {1, 2}, "they are not spread"
    assert [each.has_same_settings for each in await stage.nodes("ray-1")] == [True, True]

    # A process dies.
    await stage.set_to_work("ray-1", "killed")
    os.kill(one, signal.SIGKILL)
    await eventually(partial(stage.is_back, "ray-1", one, "ray-2"))
    await stage.check_is_done("killed", at={"ray-1", "ray-2"})

    # A raylet dies, and nobody notices; then the rest of its machine does.
    await stage.set_to_work("ray-2", "machine", tasks=5)
    stage.ray.kill(str(on[two]))
    assert is_alive(two)
    async with stage.client("ray-2", "machine") as client:
        assert [each.agent_id for each in await client.list_agents()] == ["ann"]
    os.kill(two, signal.SIGKILL)
    await stage.check_is_done("machine", at={"ray-1"}, tasks=5)
    await eventually(partial(stage.is_back, "ray-2", two, "ray-1"))
    assert raylet_of(stage.address("ray-2").pid, stage.ray.raylets) != on[two]

    # One is too many: it is drained, and its process ends.
    await stage.set_to_work("ray-2", "drained", tasks=5)
    surplus = stage.address("ray-2").pid
    scaled = await asyncio.to_thread(stage.run, "scale", "1", "--json")
    assert [each["name"] for each in scaled.json["nodes"]] == ["ray-1"], scaled
    await stage.check_is_done("drained", at={"ray-1"}, tasks=5)
    async with stage.client("ray-1", "drained") as client:
        assert {task.attempts for task in await client.list_tasks()} <= {0, 1}, "a task counts as one that crashed"
    assert not is_alive(surplus)

    # The head dies: the node goes on, it is told, and can be ended without Ray.
    stage.ray.kill("head")
    await stage.set_to_work("ray-1", "headless")
    await stage.check_is_done("headless", at={"ray-1"})
    where = ("--url", stage.address("ray-1").url)

    async def is_told() -> bool:
        status = await asyncio.to_thread(stage.run, "status", *where)
        return f"The Ray at {stage.ray.address} was last heard of" in status.out

    await eventually(is_told)
    ended = await asyncio.to_thread(stage.run, "down")
    assert (ended.code, ended.out) == (0, "All nodes that Ray ran have ended.\n"), ended

    async def are_gone() -> bool:
        return not any(map(is_alive, stage.pids))

    await eventually(are_gone)


SET_VERSION = """
import json, sys
from ray._raylet import GcsClient
told = json.dumps({"ray_version": "2.59.1"}).encode()
GcsClient(address=sys.argv[1]).internal_kv_put(b"CLUSTER_METADATA", told, True, b"cluster")
"""


def test_a_ray_that_lets_everybody_in_is_refused_and_one_of_another_version_too(database: str) -> None:
    with running_ray(0, mode="disabled") as ray:
        flags = ("cluster", "up", "--ray", ray.address, "--hosts", "1", "--store", database)
        refused = run(*flags, given=b"", **ray.environment)
        assert refused.code == 1
        assert "lets everybody in: whoever reaches it can run any code on its machines. Start it with" in refused.err
        environment = {**os.environ, **ray.environment}
        subprocess.run([sys.executable, "-c", SET_VERSION, ray.address], env=environment, check=True)
        refused = run(*flags, "--accept-open-ray", given=b"", **ray.environment)
        assert refused.code == 1
        assert "has version 2.59.1, and 2.60" in refused.err
        none = run("cluster", "scale", "2", "--store", database)
        assert "Ray runs no nodes of this database. Let it: whisperer cluster up" in none.err


def test_nodes_that_ray_has_left_are_drained_and_let_go_all_at_once(database: str) -> None:
    async def scenario() -> None:
        names = names_of(3)
        cards = [NodeCard(name=name, version="0.1.0", serves=True) for name in (*names, "mine")]
        stores = [await join(database, card, patience_seconds=10) for card in cards]
        book = LaunchBook(database)
        try:
            await book.order("10.0.0.1:6379", 3, "")
            assert not await keep(book, NoCrew())
            assert {each.state for each in await book.run_nodes() if each.name in names} == {NodeState.DRAINING}
            while not await keep(book, NoCrew()):
                pass
            assert [each.name for each in await book.run_nodes()] == ["mine"]
        finally:
            await book.close()
            for store in stores:
                store.abandon()

    asyncio.run(scenario())
