"""A new content for a file: written beside it, and put into its place whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import threading
from typing import NamedTuple

from ai_whisperer.errors import ToolError
from ai_whisperer.tools.files.beneath import DIRECTORY
from ai_whisperer.tools.files.opening import OpenPlace
from ai_whisperer.tools.files.reading import whole
from ai_whisperer.tools.files.searcher import DRAFT_PREFIX

_MOST_REMEMBERED = 10_000
_turns = tuple(threading.Lock() for _ in range(64))
"""For looking at a file and replacing it without anybody in between. Nothing waits while one is held."""

_swept: set[tuple[int, int]] = set()
"""The directories in which this process has looked for drafts that were left behind."""


def forget_swept() -> None:
    """Look for what was left behind anew."""
    _swept.clear()


class Current(NamedTuple):
    """A file as it was found. It stays open, so that no other file can get its number meanwhile."""

    descriptor: int
    status: os.stat_result

    def read(self, name: str) -> bytes:
        return whole(self.descriptor, name)

    def is_still(self, status: os.stat_result) -> bool:
        """Whether a status that was taken later is that of the same, unchanged file."""
        return all(
            getattr(self.status, field) == getattr(status, field)
            for field in ("st_dev", "st_ino", "st_size", "st_mtime_ns")
        )


class Target:
    """A file that is to be written: its directory, its name in it, and what is there now, if anything is."""

    def __init__(self, place: OpenPlace, *, makes_folders: bool) -> None:
        self.name = place.name
        self._directory, self._last = place.made_parent() if makes_folders else place.parent()
        self.current: Current | None = None
        self._draft: tuple[int, str] | None = None
        try:
            self.current = self._find(place)
        except BaseException:
            self.close()
            raise

    def _find(self, place: OpenPlace) -> Current | None:
        try:
            status = os.stat(self._last, dir_fd=self._directory, follow_symlinks=False)
        except FileNotFoundError:
            return None
        place.check_plain(status)  # before it is opened: to open a device may do something already
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._last, flags, dir_fd=self._directory)
        try:
            found = Current(descriptor, place.check_plain(os.fstat(descriptor)))
        except BaseException:
            os.close(descriptor)
            raise
        if not os.access(self._last, os.W_OK, dir_fd=self._directory):
            os.close(descriptor)
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), self.name)
        return found

    def write_draft(self, data: bytes) -> None:
        """Write the new content to disk, under a name of its own, with the permissions of the file."""
        self._sweep()
        descriptor, name = self._new_draft()
        self._draft = (descriptor, name)
        if self.current is not None:
            os.fchmod(descriptor, self.current.status.st_mode & 0o777)
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, self.current.status.st_uid, self.current.status.st_gid)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)

    def replace(self) -> bool:
        """Put the draft into the file's place, whatever is there."""
        with self._turn():
            os.rename(self._draft_name, self._last, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        self._published()
        return True

    def replace_if_unchanged(self) -> bool:
        """Put the draft into the file's place unless somebody has been there since it was looked at."""
        if self.current is None:
            return self.add()
        with self._turn():
            try:
                now = os.stat(self._last, dir_fd=self._directory, follow_symlinks=False)
            except FileNotFoundError:
                return False
            if not self.current.is_still(now):
                return False
            os.rename(self._draft_name, self._last, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        self._published()
        return True

    def add(self) -> bool:
        """Give the draft the file's name unless there is a file by now."""
        try:
            os.link(self._draft_name, self._last, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        except FileExistsError:
            return False
        os.unlink(self._draft_name, dir_fd=self._directory)
        self._published()
        return True

    def close(self) -> None:
        """Let go of everything; a draft that was not put into place is removed."""
        if self._draft is not None:
            descriptor, name = self._draft
            self._draft = None
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._directory)
            os.close(descriptor)
        if self.current is not None:
            os.close(self.current.descriptor)
            self.current = None
        if self.is_open:
            os.close(self._directory)
            self._directory = -1

    @property
    def is_open(self) -> bool:
        return self._directory >= 0

    @property
    def _draft_name(self) -> str:
        if self._draft is None:
            raise ToolError(f"There is no draft of '{self.name}'.")
        return self._draft[1]

    def _turn(self) -> threading.Lock:
        status = os.fstat(self._directory)
        return _turns[hash((status.st_dev, status.st_ino, self._last)) % len(_turns)]

    def _published(self) -> None:
        """The file is new in its directory: see to it that this outlives a power cut."""
        if self._draft is not None:
            os.close(self._draft[0])
            self._draft = None
        os.fsync(self._directory)

    def _new_draft(self) -> tuple[int, str]:
        """A draft that is locked as long as this process lives: so others know whether it is left behind."""
        while True:
            name = f"{DRAFT_PREFIX}{secrets.token_hex(8)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(name, flags, 0o666, dir_fd=self._directory)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)  # it was taken for one that is left behind, and is removed
            except OSError:
                return descriptor, name  # a file system without locks: drafts that are left behind stay
            else:
                if os.fstat(descriptor).st_nlink:
                    return descriptor, name
                os.close(descriptor)  # it was removed before it could be locked

    def _sweep(self) -> None:
        """Remove the drafts of writers that have died, once for each directory."""
        status = os.fstat(self._directory)
        if (status.st_dev, status.st_ino) in _swept or len(_swept) > _MOST_REMEMBERED:
            return
        _swept.add((status.st_dev, status.st_ino))
        listing = os.open(".", DIRECTORY, dir_fd=self._directory)
        try:
            for name in os.listdir(listing):
                with contextlib.suppress(OSError):
                    if name.startswith(DRAFT_PREFIX):
                        _remove_if_left_behind(self._directory, name)
        finally:
            os.close(listing)


def _remove_if_left_behind(directory: int, name: str) -> None:
    descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=directory)
    finally:
        os.close(descriptor)
