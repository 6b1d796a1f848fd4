"""Whose files they are for a program that does not run as the user whom they belong to.

Programs of a server run by root run as a user of their own. The folders that they may use are mounted so that what
belongs to the folder's owner is the program's own, and what it makes is the owner's. Where a file system cannot do
that, the folders of the runtime itself are handed over to the user of programs; folders of people are not touched.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from ai_whisperer.errors import SandboxError
from ai_whisperer.sandbox.libc import CLONE_NEWUSER, checked, libc
from ai_whisperer.sandbox.mounting import Attribute, opened, put, tree
from ai_whisperer.sandbox.privileges import JOB_USER, job_user

LINK_ADVICE = (
    "'{path}' is, or leads through, a symbolic link by now, so nothing was run. Put the folder back that was granted."
)


class Owners:
    """Makes the trees of a job, with its files as those of the user that it runs as. `proc` is where /proc is."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._namespaces: dict[tuple[int, int], int] = {}
        if job_user() == JOB_USER:
            with contextlib.suppress(OSError):
                self._namespace(0, 0)  # whom most belongs to; it is had while no job waits

    def tree(self, path: str, attributes: int, *, is_owned: bool) -> int:
        """What lies at the path, in which no link may be; `is_owned`: it is the runtime's, for programs.

        Somebody who may write above it could have put a link there, to anything, since it was granted.
        """
        try:
            place = opened(path)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise SandboxError(LINK_ADVICE.format(path=path)) from error
            raise
        try:
            return self._tree(path, place, attributes, is_owned=is_owned)
        finally:
            os.close(place)

    def _tree(self, path: str, place: int, attributes: int, *, is_owned: bool) -> int:
        status = os.fstat(place)
        if job_user() != JOB_USER:
            return tree(place, attributes)
        if status.st_uid != JOB_USER:
            with contextlib.suppress(OSError):  # the file system, or the kernel, cannot do it
                return tree(place, attributes, owners=self._namespace(status.st_uid, status.st_gid))
        if is_owned:
            hand_over(path)
        elif not attributes & Attribute.READ_ONLY and not _may_write(status):
            raise SandboxError(
                f"Programs do not run as root here, and the file system of '{path}' cannot show its files as those of "
                "another user, so they could not write there; nothing was run. Start the server as the user whom the "
                "folder belongs to (`whisperer serve --user NAME`), or grant a folder on another file system."
            )
        return tree(place, attributes)

    def lay_over(self, paths: Sequence[str], writable: Sequence[str], owned: Sequence[str]) -> None:
        """Mount each of these over itself, in this process's own world of mounts, with the files as the program's."""
        trees: dict[str, int] = {}
        for path in paths:  # before any is mounted: what was mounted so cannot be once more
            attributes = 0 if path in writable else Attribute.READ_ONLY
            trees[path] = self.tree(path, attributes, is_owned=path in owned)
        for path in sorted(trees):
            put(path, trees[path])

    def _namespace(self, user: int, group: int) -> int:
        """A user namespace in which what belongs to these belongs to the user of programs."""
        if (user, group) not in self._namespaces:
            self._namespaces[user, group] = self._made(user, group)
        return self._namespaces[user, group]

    def _made(self, user: int, group: int) -> int:
        """Only a process can have one; so there is one for a moment, which waits until it is killed."""
        waiting, begun = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                checked(libc.unshare(CLONE_NEWUSER))
                os.write(begun, b"+")
                signal.pause()
            finally:
                os._exit(1)
        os.close(begun)
        try:
            if not os.read(waiting, 1):
                raise OSError("There are no user namespaces.")
            own = Path(self._proc, str(pid))
            for name, owner in (("uid_map", user), ("gid_map", group)):
                known = Path(self._proc, "self", name).read_text()
                (own / name).write_text("".join(_shown_as_own(owner, known)))
            return os.open(own / "ns/user", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            os.close(waiting)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def hand_over(folder: str) -> None:
    """Let what root made in the folder belong to the user of programs; files that have other names are left alone.

    What lies deeper than Python can go is left alone too.
    """
    with contextlib.suppress(RecursionError):
        for _, _, names, descriptor in os.fwalk(folder):
            _give(descriptor, ".")
            for name in names:
                _give(descriptor, name)


def _give(directory: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if status.st_uid != JOB_USER and (stat.S_ISDIR(status.st_mode) or status.st_nlink == 1):
            os.chown(name, JOB_USER, JOB_USER, dir_fd=directory, follow_symlinks=False)


def _may_write(status: os.stat_result) -> bool:
    shift = 6 if status.st_uid == JOB_USER else 0
    return status.st_mode >> shift & 0o3 == 0o3


def _shown_as_own(owner: int, known: str) -> Iterator[str]:
    """The lines of a map in which the owner is the user of programs, and all others that are known stay themselves."""
    yield f"{owner} {JOB_USER} 1\n"
    for line in known.splitlines():
        start, _, count = map(int, line.split())
        end = start + count
        for taken in sorted(each for each in {owner, JOB_USER} if start <= each < end):
            if taken > start:
                yield f"{start} {start} {taken - start}\n"
            start = taken + 1
        if end > start:
            yield f"{start} {start} {end - start}\n"
