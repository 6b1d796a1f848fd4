"""Processes that were killed are waited for until they have ended."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable

import pytest

from ai_whisperer.tools.process_groups import family_has_ended, group_has_ended, time_of_start

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")


def of_group(pid: int) -> Awaitable[None]:
    return group_has_ended(pid)


def of_family(pid: int) -> Awaitable[None]:
    return family_has_ended({pid: time_of_start(pid)})


@pytest.mark.parametrize("end_of", [of_group, of_family])
def test_the_wait_is_over_when_the_process_has_ended_and_not_before(end_of: Callable[[int], Awaitable[None]]) -> None:
    async def main(process: subprocess.Popen[bytes]) -> None:
        waiting = asyncio.ensure_future(end_of(process.pid))
        assert await asyncio.wait([waiting], timeout=0.05) == (set(), {waiting})
        process.kill()
        await waiting
        assert process.poll() is not None, "it has ended, and waited only to be seen off"

    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        try:
            asyncio.run(main(process))
        finally:
            process.kill()


def test_another_process_that_got_the_number_of_one_that_ended_is_not_waited_for() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        asyncio.run(family_has_ended({process.pid: "some other time"}))
        assert process.poll() is None
        process.kill()
