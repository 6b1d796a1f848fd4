"""When a process group has ended: a signal is only asked for, and its members end a moment later."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

_LOOK_SECONDS = 0.01
_SECONDS_TO_END = 1.0


async def group_has_ended(group: int) -> None:
    """Return when the group that was killed has no living process; one the kernel cannot end is not waited for long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS_TO_END):
            while await asyncio.to_thread(_is_alive, group):  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(_LOOK_SECONDS)


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
        state, _, member_of, *_ = stat.read_text(errors="replace").rpartition(")")[2].split()
    except (OSError, ValueError):
        return False
    return int(member_of) == group and state not in "ZX"
