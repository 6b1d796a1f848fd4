"""When processes have ended: a signal is only asked for, and those that it is for end a moment later."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

_LOOK_SECONDS = 0.01
_SECONDS_TO_END = 5.0
_STARTED = 19


async def group_has_ended(group: int) -> None:
    """Return when the group that was killed has no living process; one the kernel cannot end is not waited for long."""
    await _is_over(lambda: _is_alive(group))


async def family_has_ended(family: Mapping[int, str]) -> None:
    """Return when none of the processes that were killed lives, each known by its number and the time of its start.

    One the kernel cannot end is not waited for long.
    """
    await _is_over(lambda: any(_lives(pid, started) for pid, started in family.items()))


def time_of_start(pid: int) -> str:
    """When the process was started, in words of the kernel; empty if there is none. A zombie still is one."""
    try:
        return _fields(Path(f"/proc/{pid}/stat"))[_STARTED]
    except (OSError, IndexError):
        return ""


async def _is_over(goes_on: Callable[[], bool]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS_TO_END):
            while await asyncio.to_thread(goes_on):  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(_LOOK_SECONDS)


def _fields(stat: Path) -> list[str]:
    """What the kernel tells of a process, from its state on."""
    return stat.read_text(errors="replace").rpartition(")")[2].split()


def _lives(pid: int, started: str) -> bool:
    try:
        fields = _fields(Path(f"/proc/{pid}/stat"))
        return fields[_STARTED] == started and fields[0] not in "ZX"
    except (OSError, IndexError):
        return False


def _is_alive(group: int) -> bool:
    """Whether the process group has a member that is no zombie."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    if not Path("/proc/self/stat").exists():
        return True
    return any(_is_member(each, group) for each in Path("/proc").glob("[0-9]*/stat"))


def _is_member(stat: Path, group: int) -> bool:
    try:
        state, _, member_of, *_ = _fields(stat)
    except (OSError, ValueError):
        return False
    return int(member_of) == group and state not in "ZX"
