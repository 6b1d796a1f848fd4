"""The demo of a cluster, `make demo-cluster`: three nodes that Ray runs on one PostgreSQL, one of which dies at work.

`python -m tests.cluster.demo [--stay]` leaves when the work is done, with 0 if nothing was lost or repeated; with
`--stay` it keeps running, for you to look at the pages, until Ctrl-C. Everything is on this machine and in a temporary
folder, and is gone afterwards.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from tests.acceptance.mcp_stage import is_alive
from tests.cluster.ray_nodes import Stage, raylet_of
from tests.cluster.ray_stage import WHY_NOT, is_installed, running_ray
from tests.cluster.stage import TOKEN, Evidence, eventually, evidence, lost_and_repeated
from tests.postgresql import NoPostgresqlError, running_server

NODES: Final = ("ray-1", "ray-2", "ray-3")
VICTIM: Final = "ray-2"
SESSIONS_EACH: Final = 2


def say(sentence: str) -> None:
    print(sentence, flush=True)


async def show(stage: Stage) -> bool:
    """Let agents work in sessions on all nodes, and one node die; returns whether nothing was lost or repeated."""
    sessions = {f"{node}-{number}": node for node in NODES for number in range(1, SESSIONS_EACH + 1)}
    await asyncio.gather(*(stage.set_to_work(node, session) for session, node in sessions.items()))
    say(f"Agents are at work in {len(sessions)} sessions, {SESSIONS_EACH} on each node.")
    pid = stage.address(VICTIM).pid
    raylet = raylet_of(pid, stage.ray.raylets)
    epochs = {each: (await _look(stage, each)).log[-1][1] for each in sessions}
    os.kill(pid, signal.SIGKILL)
    killed_at = time.time()
    say(f"*** kill -9: the node {VICTIM} is dead, and the part of Ray on its machine with it. ***")
    await asyncio.to_thread(stage.ray.kill, str(raylet))
    await eventually(partial(_all_over, stage, list(sessions)))
    found = {each: await _look(stage, each) for each in sessions}
    taken = [each for each, node in sessions.items() if node == VICTIM]
    firsts = [await stage.first_after(each, epochs[each]) for each in taken]
    for session, first in zip(taken, firsts, strict=True):
        what = "was done before" if first is None else f"took its next step {first - killed_at:.2f} s after the kill"
        say(f"The session {session} went on at {found[session].holder}: it {what}.")
    lost, repeated = (sum(each) for each in zip(*map(lost_and_repeated, found.values()), strict=True))
    steps = sum(sum(each.mails.values()) for each in found.values())
    took = [first - killed_at for first in firsts if first is not None]
    say(f"Takeover: {max(took, default=0.0):.2f} s. Steps done: {steps}. Lost: {lost}. Repeated: {repeated}.")
    await eventually(partial(stage.is_back, VICTIM, pid, NODES[0]))
    say(f"Ray has started {VICTIM} again, on another machine, {time.time() - killed_at:.1f} s after the kill.")
    return not lost and not repeated


async def _look(stage: Stage, session: str) -> Evidence:
    return await evidence(stage.server, stage.database, session)


async def _all_over(stage: Stage, sessions: list[str]) -> bool:
    return all([(await _look(stage, each)).is_over for each in sessions])


def main(*, stays: bool) -> int:
    if not is_installed():
        say(f"The demo needs Ray, and {WHY_NOT}.")
        return 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    say("PostgreSQL and Ray are started …")
    try:
        with (
            tempfile.TemporaryDirectory(prefix="whisperer-demo-") as folder,
            running_server(durable=True) as server,
            server.database() as database,
            running_ray(len(NODES)) as ray,
        ):
            return _play(Stage(ray, server, database, Path(folder)), stays=stays)
    except NoPostgresqlError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("The demo was ended.")
        return 130


def _play(stage: Stage, *, stays: bool) -> int:
    say(
        f"PostgreSQL: {stage.database}\n"
        f"Ray: {stage.ray.address}, with {len(NODES)} machines that are played by this one"
    )
    try:
        begun = stage.up(str(len(NODES)))
        if begun.code or len(begun.json["nodes"]) < len(NODES):
            say(f"The nodes did not come up: {begun.out}{begun.err}")
            return 1
        _show_pages(stage)
        is_well = asyncio.run(show(stage))
        if stays:
            _show_pages(stage)
            say("Ctrl-C ends the demo.")
            with suppress(KeyboardInterrupt):
                signal.pause()
        return 0 if is_well else 1
    finally:
        ended = stage.run("down")
        for pid in filter(is_alive, stage.pids):
            os.kill(pid, signal.SIGKILL)
        say(ended.out.strip() or ended.err.strip())


def _show_pages(stage: Stage) -> None:
    for name in NODES:
        say(f"  {name}  {stage.address(name).url}/?token={TOKEN}")


if __name__ == "__main__":
    sys.exit(main(stays="--stay" in sys.argv[1:]))
