"""Checks of the machine: Python, its event loop, SQLite, time and disk."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import apsw

from ai_whisperer.cli.doctor.findings import Finding, ok, problem, warning
from ai_whisperer.errors import SettingsError
from ai_whisperer.server.event_loop import name_of
from ai_whisperer.settings import EventLoop

_LEAST_PYTHON = (3, 11)
_LEAST_SQLITE = (3, 51, 3)
"""Older ones can damage a database in WAL mode when its log begins anew."""
_A_ZONE = "America/New_York"
_SKEW_SECONDS = 60.0
_TOO_LITTLE_BYTES = 100 << 20
_LITTLE_BYTES = 1 << 30


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    shown = ".".join(map(str, version))
    if version < _LEAST_PYTHON:
        return problem("Python", shown, "Python 3.11 or newer is needed.")
    return ok("Python", f"{shown} on {platform.system()} {platform.machine()}")


def check_event_loop(event_loop: EventLoop) -> Finding:
    """What a server would run on."""
    try:
        return ok("Event loop", name_of(event_loop))
    except SettingsError as error:
        return problem("Event loop", "uvloop is not there", error.message)


def check_sqlite(version: str = apsw.sqlite_lib_version()) -> Finding:
    if tuple(int(part) for part in version.split(".")) < _LEAST_SQLITE:
        return problem("SQLite", version, "It can damage databases: pip install --upgrade apsw")
    return ok("SQLite", version)


def check_time(database: Path, *, now: float | None = None, zone: str = _A_ZONE) -> Finding:
    """The clock against the last change of the database, and the data about time zones."""
    now = time.time() if now is None else now
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, OSError):
        return problem("Time", "There is no data about time zones.", "Schedules need it: pip install tzdata")
    shown = datetime.fromtimestamp(now, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")
    ahead = database.stat().st_mtime - now if is_there(database) else 0.0
    if ahead > _SKEW_SECONDS:
        return warning(
            "Time",
            f"It is {shown}, but the database was changed {ahead:.0f} s after that.",
            "Set the clock: timers and schedules fire by it.",
        )
    return ok("Time", f"{shown}, time zones are known")


def check_disk(data: Path, *, free_bytes: int | None = None) -> Finding:
    folder = nearest_existing(data)
    free = shutil.disk_usage(folder).free if free_bytes is None else free_bytes
    shown = f"{free / (1 << 30):.1f} GiB are free where the data folder is"
    if free < _TOO_LITTLE_BYTES:
        return problem("Disk", shown, "Free some space, or choose another folder with --data.")
    if free < _LITTLE_BYTES:
        return warning("Disk", shown, "Free some space: a full disk stops all agents.")
    return ok("Disk", shown)


def nearest_existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return next((each for each in (path, *path.absolute().parents) if is_there(each)), Path("/"))


def is_there(path: Path) -> bool:
    """Whether there is such a thing; what cannot be looked at is not there."""
    return os.path.exists(path)
