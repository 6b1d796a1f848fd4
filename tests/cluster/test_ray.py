"""Nodes that a real Ray runs: they come back, their sessions go on, and nothing is left when they are told to end."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

from tests.acceptance.command_stage import Ran, run
from tests.acceptance.mcp_stage import is_alive
from tests.cluster.ray_nodes import Stage, raylet_of
from tests.cluster.ray_stage import WHY_NOT, is_installed, running_ray
from tests.cluster.stage import eventually, evidence
from tests.effort import EFFORT
from tests.postgresql import Server

LONGEST_TAKEOVER_SECONDS = 5.0
IN_LONG_RUNS = "that Ray notices what dies takes its time: the long run waits for it (make soak)"

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
def test_nodes_are_spread_and_come_back_and_are_as_many_as_their_load_wants(stage: Stage) -> None:
    refused = stage.run("up", "--ray", stage.ray.address, "--hosts", "1", "--json", RAY_AUTH_TOKEN="another" * 5)
    assert (refused.code, refused.error["code"]) == (1, "ray")
    assert "wants its token, and none or another is here. Set RAY_AUTH_TOKEN" in refused.error["message"]
    begun = stage.up("2", "--sessions-per-node", "2")
    assert begun.code == 0, begun
    assert [each["name"] for each in begun.json["nodes"]] == ["ray-1", "ray-2"], begun
    asyncio.run(spread_and_back(stage))
    asyncio.run(scaled(stage))
    check_ended(stage, stage.run("down"))


async def spread_and_back(stage: Stage) -> None:
    for name in ("ray-1", "ray-2"):
        await eventually(partial(stage.takes_requests, name))
    one, two = stage.address("ray-1").pid, stage.address("ray-2").pid
    assert {raylet_of(pid, stage.ray.raylets) for pid in (one, two)} == {1, 2}, "they are not spread"
    assert [each.has_same_settings for each in await stage.nodes("ray-1")] == [True, True]
    await stage.set_to_work("ray-1", "killed")
    os.kill(one, signal.SIGKILL)
    await eventually(partial(stage.is_back, "ray-1", one, "ray-2"))
    await stage.check_is_done("killed", at={"ray-1", "ray-2"})


async def scaled(stage: Stage) -> None:
    # One is too many: it is drained, and its process ends.
    await stage.set_to_work("ray-2", "drained", tasks=5)
    surplus = stage.address("ray-2").pid
    scaled = await asyncio.to_thread(stage.run, "scale", "1", "--json")
    assert [each["name"] for each in scaled.json["nodes"]] == ["ray-1"], scaled

    async def has_ended() -> bool:
        return not is_alive(surplus)

    await eventually(has_ended)  # it leaves the database first
    await stage.check_is_done("drained", at={"ray-1"}, tasks=5)
    async with stage.client("ray-1", "drained") as client:
        assert {task.attempts for task in await client.list_tasks()} <= {0, 1}, "a task counts as one that crashed"

    # There may be two, and there are more sessions than one node is to have.
    async with stage.client("ray-1") as client:
        for number in range(3):
            await client.create_session(f"more-{number}")
    within = await asyncio.to_thread(stage.run, "scale", "1..2", "--json")
    assert (within.json["least"], within.json["most"]) == (1, 2), within
    await eventually(partial(stage.is_back, "ray-2", surplus, "ray-1"))
    status = await asyncio.to_thread(stage.run, "status", "--url", stage.address("ray-1").url)
    told = rf"The Ray at {stage.ray.address} is to run 2 nodes, of 1 to 2: \d sessions, 2 for each node\."
    assert re.search(told, status.out), status


@pytest.mark.skipif(EFFORT == 1, reason=IN_LONG_RUNS)
def test_sessions_go_on_whatever_of_ray_dies(stage: Stage) -> None:
    assert stage.up("2").code == 0
    asyncio.run(machine_dies(stage))
    asyncio.run(head_dies(stage))
    check_ended(stage, stage.run("down"))
    again = stage.run("scale", "2")
    assert "Ray runs no nodes of this database. Let it: whisperer cluster up" in again.err


async def machine_dies(stage: Stage) -> None:
    """A raylet dies, and nobody notices; then the rest of its machine does."""
    pid = stage.address("ray-2").pid
    raylet = raylet_of(pid, stage.ray.raylets)
    await stage.set_to_work("ray-2", "machine", tasks=5)
    epoch = (await evidence(stage.server, stage.database, "machine")).log[-1][1]
    stage.ray.kill(str(raylet))
    assert is_alive(pid)
    async with stage.client("ray-2", "machine") as client:
        assert [each.agent_id for each in await client.list_agents()] == ["ann"]
    os.kill(pid, signal.SIGKILL)
    died_at = time.time()
    await stage.check_is_done("machine", at={"ray-1"}, tasks=5)
    next_step_at = await stage.first_after("machine", epoch)
    assert next_step_at is not None
    assert next_step_at - died_at < LONGEST_TAKEOVER_SECONDS
    await eventually(partial(stage.is_back, "ray-2", pid, "ray-1"))
    assert raylet_of(stage.address("ray-2").pid, stage.ray.raylets) != raylet


async def head_dies(stage: Stage) -> None:
    """The nodes go on, and it is told."""
    stage.ray.kill("head")
    await stage.set_to_work("ray-1", "headless")
    await stage.check_is_done("headless", at={"ray-1"})
    where = ("--url", stage.address("ray-1").url)

    async def is_told() -> bool:
        status = await asyncio.to_thread(stage.run, "status", *where)
        return f"The Ray at {stage.ray.address} was last heard of" in status.out

    await eventually(is_told)


def check_ended(stage: Stage, ended: Ran) -> None:
    assert (ended.code, ended.out) == (0, "All nodes that Ray ran have ended.\n"), ended

    async def are_gone() -> bool:
        return not any(map(is_alive, stage.pids))

    asyncio.run(eventually(are_gone))


def test_a_ray_that_lets_everybody_in_is_refused_and_one_of_another_version_too(database: str) -> None:
    with running_ray(0, mode="disabled") as ray:
        flags = ("cluster", "up", "--ray", ray.address, "--hosts", "1", "--store", database)
        refused = run(*flags, given=b"", **ray.environment)
        assert refused.code == 1
        assert "lets everybody in: whoever reaches it can run any code on its machines. Start it with" in refused.err
        ray.set_version("2.59.1")
        refused = run(*flags, "--accept-open-ray", given=b"", **ray.environment)
        assert refused.code == 1
        assert "has version 2.59.1, and 2.60" in refused.err
        none = run("cluster", "scale", "2", "--store", database)
        assert "Ray runs no nodes of this database. Let it: whisperer cluster up" in none.err
