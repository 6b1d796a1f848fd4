"""A control group for one job of root's, whom no limit of a user holds: it counts processes and shares out processors.

Groups are made below the one that this process is in, so that its own limits hold for jobs too. Where that cannot be
had, as in most containers, a job is watched alone.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from ai_whisperer.tools.sandbox.base import Job

_PROC = Path("/proc")
_PREFIX = "whisperer"
_PROCESSES, _PROCESSOR = "pids", "cpu"
_SHARE = {"cpu.shares": "110", "cpu.weight": "11"}
"""What ten steps of niceness make of the share that others have, in the words of both versions."""
_numbers = itertools.count(1)


class JobGroup:
    """The control groups of one job, one for each hierarchy."""

    def __init__(self, folders: list[Path]) -> None:
        self._folders = folders

    def enter(self) -> None:
        """Put this process into it, with all that it starts; raises `OSError` if that cannot be done."""
        for folder in self._folders:
            (folder / "cgroup.procs").write_text("0")

    def remove(self) -> None:
        """Give it back; all its processes have ended."""
        for folder in self._folders:
            with contextlib.suppress(OSError):  # then the next server removes it
                folder.rmdir()


def group_for(job: Job, *, extra: int) -> JobGroup | None:
    """A group for the threads of the job and `extra` ones, or None where it is not needed or cannot be had."""
    parents = _parents()
    if _PROCESSES not in parents:
        return None
    name = f"{_PREFIX}-{os.getpid()}-{next(_numbers)}"
    made: list[Path] = []
    try:
        for folder in dict.fromkeys(parent / name for parent in parents.values()):
            folder.mkdir()
            made.append(folder)
        (parents[_PROCESSES] / name / "pids.max").write_text(str(job.threads + extra))
    except OSError:
        JobGroup(made).remove()
        return None
    if _PROCESSOR in parents:
        _take_less(parents[_PROCESSOR] / name)
    return JobGroup(made)


def are_processes_held() -> bool:
    """Whether the kernel holds a job to its number of processes: always, unless for root where there are no groups."""
    return os.geteuid() != 0 or _PROCESSES in _parents()


def remove_left_over() -> None:
    """Remove the groups of those that were killed before they could; no process is in them any more."""
    for parent in set(_parents().values()):
        for folder in parent.glob(f"{_PREFIX}-*-*"):
            maker = folder.name.split("-")[1]
            if not (_PROC / maker).exists():
                JobGroup([folder]).remove()


def _take_less(folder: Path) -> None:
    for name, share in _SHARE.items():
        with contextlib.suppress(OSError):
            if (folder / name).exists():
                (folder / name).write_text(share)


@cache
def _parents() -> Mapping[str, Path]:
    """By controller: the group of this process, if others can be made below it by who needs them."""
    if os.geteuid() != 0:
        return {}
    try:
        mounts, own = (_PROC / "self/mounts").read_text(), (_PROC / "self/cgroup").read_text()
    except OSError:
        return {}
    return {name: folder for name, folder in own_groups(mounts, own) if _can_have_others(name, folder)}


def own_groups(mounts: str, own: str) -> Iterator[tuple[str, Path]]:
    """The folders of the group that a process is in, by controller, from what the kernel tells of mounts and groups."""
    paths: dict[str, str] = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path.lstrip("/"))
    for line in mounts.splitlines():
        _, place, kind, options, *_ = line.split()
        offered = options.split(",") if kind == "cgroup" else [_PROCESSES, _PROCESSOR] if kind == "cgroup2" else []
        for controller in {_PROCESSES, _PROCESSOR}.intersection(offered):
            group = paths.get(controller if kind == "cgroup" else "")
            if group is not None:
                yield controller, Path(place.encode().decode("unicode_escape"), group)


def _can_have_others(controller: str, folder: Path) -> bool:
    """Whether a group below this one has the controller; where one word turns it on, it is said."""
    if not os.access(folder, os.W_OK):
        return False
    shared_out = folder / "cgroup.subtree_control"
    if not shared_out.exists():
        return (folder / "cgroup.procs").exists()
    with contextlib.suppress(OSError):
        if controller not in shared_out.read_text().split():
            shared_out.write_text(f"+{controller}")  # only a group without processes takes it, or the uppermost
        return controller in shared_out.read_text().split()
    return False
