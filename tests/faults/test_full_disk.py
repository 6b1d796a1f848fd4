"""A disk that is really full: a small file system in memory, which only root can mount."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ai_whisperer.store.sqlite import SqliteStore
from tests.acceptance.command_stage import running
from tests.acceptance.raw_socket import ClosedError, RawSocket

_BYTES = 8 << 20
_LEFT_BYTES = 1_000_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root can mount a file system; with RLIMIT_FSIZE test_serve tries the like for everybody")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_BYTES}", "tmpfs", str(tmp_path)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def fill(disk: Path, *, left_bytes: int) -> Path:
    """Leave so much room on the disk; returns the file that takes the rest."""
    ballast = disk / "ballast"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize
    with ballast.open("ab") as file:
        file.write(b"\1" * max(free - left_bytes, 0))
    return ballast


def test_a_full_disk_ends_the_server_with_a_sentence_and_loses_nothing(small_disk: Path) -> None:
    flags = ("--port", "0", "--data", str(small_disk / "data"), "--model", "scripted")
    acknowledged = []
    with running("serve", *flags, folder=small_disk) as server:
        ready = re.match(r"ready http://127\.0\.0\.1:(\d+)/\?token=(\S+)", server.line())
        assert ready is not None, server.errors
        with RawSocket(int(ready[1]), token=ready[2]) as client:
            client.call("async.createAgent", sessionId="default", agentId="ann")
            ballast = fill(small_disk, left_bytes=_LEFT_BYTES)
            try:
                for number in range(200):
                    task = {"sessionId": "default", "agentId": "ann", "prompt": "x" * 5_000, "taskId": f"t{number}"}
                    answer = client.answer("async.sendTask", **task)
                    if "error" in answer:
                        assert answer["error"]["data"]["code"] == "store_full"
                        break
                    acknowledged.append(task["taskId"])
            except ClosedError:
                pass
        ended = server.ended()
        assert ended.code == 1
        assert "The disk is full. Free some space and start again" in ended.err.splitlines()[-1]
        assert "Traceback" not in ended.err
    fill(small_disk, left_bytes=0)
    with running("serve", *flags, folder=small_disk) as again:
        first = again.line()
        if not first.startswith("ready"):  # with the little that is left it may come up, or say that it cannot
            ended = again.ended()
            assert ended.code == 1
            assert re.search(r"disk .*is full|No space left", ended.err.splitlines()[-1]), ended.err
            assert "Traceback" not in ended.err
    ballast.unlink()
    assert len(acknowledged) > 3
    assert set(acknowledged) <= asyncio.run(kept(small_disk / "data"))


async def kept(data: Path) -> set[str]:
    store = SqliteStore.open(data)
    try:
        return {task.id for task in await store.tasks("default", limit=1000)}
    finally:
        await store.close()
