"""A control group for one job of root's, whom no limit of a user holds: it counts processes and shares out processors.

Groups are made below the one that this process is in, so that its own limits hold for jobs too. Where that cannot be
had, as in most containers, a job is watched alone.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

_PROC = Path("/proc")
_NOWHERE = Path(os.devnull)
_NAME = re.compile(r"whisperer_job_(?P<keeper>\d+)_[0-9a-f]+")
_ESCAPED = re.compile(r"\\([0-7]{3})")
_MEMBERS = "cgroup.procs"
_PROCESSES, _PROCESSOR = "pids", "cpu"
_MOST = "pids.max"
_SHARE = {"cpu.shares": "110", "cpu.weight": "11"}
"""What ten steps of niceness make of the share that others have, in the words of both versions."""
_FILES = {_PROCESSES: (_MOST,), _PROCESSOR: tuple(_SHARE)}
"""By which a group shows that it has a controller: one of these is in it."""


class JobGroup:
    """The control groups of the one job that this process keeps, one for each hierarchy; maybe there are none.

    To move a process takes the kernel long. So this one goes in while no job waits, what it starts is in it from the
    beginning, and it goes out again when the job is known to be none of the short ones.
    """

    def __init__(self) -> None:
        self._parents: Mapping[str, Path] = {}
        self._name = ""
        self._is_in = False
        self.holds = False
        """Whether the kernel keeps what this process starts to the number that it was told."""

    def enter(self) -> None:
        """Make them, where they are needed and can be had, and put this process in; the second time nothing happens."""
        if self._name:
            return
        self._parents = _parents() if _PROCESSES in _parents() else {}
        self._name = _new_name()
        self._is_in = True
        try:
            for folder in self._folders():
                _make(folder)
                (folder / _MEMBERS).write_text("0")
        except OSError:
            self.remove()

    def hold(self, threads: int) -> None:
        """Let them have so many threads, beside this process."""
        if self._parents:
            with contextlib.suppress(OSError):
                (self._parents[_PROCESSES] / self._name / _MOST).write_text(str(threads + 1))
                self.holds = True

    def step_back(self) -> None:
        """Go out, and let those that are in come after others, all together."""
        if not self._is_in:
            return
        self._is_in = False
        for parent in self._each_parent():
            with contextlib.suppress(OSError):
                (parent / _MEMBERS).write_text("0")
        for name, share in _SHARE.items():
            file = self._parents.get(_PROCESSOR, _NOWHERE) / self._name / name
            with contextlib.suppress(OSError):
                if file.exists():
                    file.write_text(share)

    def remove(self) -> None:
        """Give them back; all processes but this one have ended."""
        self.step_back()
        for folder in self._folders():
            with contextlib.suppress(OSError):  # then it is left over
                folder.rmdir()
        self._parents = {}

    def _each_parent(self) -> list[Path]:
        return list(dict.fromkeys(self._parents.values()))

    def _folders(self) -> list[Path]:
        return [parent / self._name for parent in self._each_parent()]


def are_processes_held() -> bool:
    """Whether the kernel holds a job to its number of processes: always, unless for root where there are no groups."""
    return os.geteuid() != 0 or _PROCESSES in _parents()


def remove_left_over() -> None:
    """Remove the groups of those that were killed before they could. One in which a process still is stays."""
    for parent in set(_parents().values()):
        for folder in parent.glob("*"):
            found = _NAME.fullmatch(folder.name)
            if found and not (_PROC / found["keeper"]).exists():
                with contextlib.suppress(OSError):
                    folder.rmdir()


def _new_name() -> str:
    """Like no other's: a number of a process is given again, and has another meaning in each container."""
    return f"whisperer_job_{os.getpid()}_{os.urandom(4).hex()}"


def _make(folder: Path) -> None:
    """Make the group, and so that it takes processes.

    Below one of the new kind that has processes itself it does so only as a part of the same domain.
    """
    folder.mkdir()
    kind = folder / "cgroup.type"
    if kind.exists() and kind.read_text().strip() == "domain invalid":
        kind.write_text("threaded")


@cache
def _parents() -> Mapping[str, Path]:
    """By controller: the group of this process, if others can be made below it by who needs them."""
    if os.geteuid() != 0:
        return {}
    try:
        mounts, own = (os.fsdecode((_PROC / "self" / name).read_bytes()) for name in ("mounts", "cgroup"))
    except OSError:
        return {}
    return {name: folder for name, folder in own_groups(mounts, own) if _can_have_others(name, folder)}


def own_groups(mounts: str, own: str) -> Iterator[tuple[str, Path]]:
    """The folders of the group that a process is in, by controller, from what the kernel tells of mounts and groups."""
    paths: dict[str, str] = {}
    for line in own.strip("\n").split("\n"):  # whatever else may be in a name, these signs are not
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path.lstrip("/"))
    for line in mounts.strip("\n").split("\n"):
        _, place, kind, options, *_ = line.split(" ")
        offered = options.split(",") if kind == "cgroup" else [_PROCESSES, _PROCESSOR] if kind == "cgroup2" else []
        for controller in {_PROCESSES, _PROCESSOR}.intersection(offered):
            group = paths.get(controller if kind == "cgroup" else "")
            if group is not None:
                yield controller, Path(_ESCAPED.sub(lambda found: chr(int(found[1], 8)), place), group)


def _can_have_others(controller: str, folder: Path) -> bool:
    """Whether a group below this one has the controller: one is made, for much can forbid it.

    Where one word turns the controller on, it is said.
    """
    if not os.access(folder, os.W_OK):
        return False
    trial = folder / _new_name()
    with contextlib.suppress(OSError):
        shared_out = folder / "cgroup.subtree_control"
        if shared_out.exists() and controller not in shared_out.read_text().split():
            shared_out.write_text(f"+{controller}")
        try:
            _make(trial)
            return any((trial / file).exists() for file in _FILES[controller])
        finally:
            trial.rmdir()
    return False
