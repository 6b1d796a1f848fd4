"""Opening a path so that it lies beneath a folder, whatever others do to the folder at the same time.

The kernel is asked to resolve the path and to refuse one that leads out (`openat2`). Where it cannot, each part is
opened by itself, without following links, from the directory that was opened before it: what has been opened cannot
be swapped any more.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import sys
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import cache

_OPENAT2 = 437
"""The number of the system call, which is the same on all architectures that Python is built for."""

_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_MOST_LINKS = 40
_MOST_TRIES = 100

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PASSING = DIRECTORY | getattr(os, "O_PATH", 0)
"""A directory on the way: where the system can tell, one that may be passed through need not be readable."""


Identities = AbstractSet[tuple[int, int]]
"""Files and directories by device and number."""

NOTHING: Identities = frozenset()


class Links(Enum):
    """What becomes of symbolic links in a path: none is followed, or those that stay beneath are."""

    REFUSED = "refused"
    BENEATH = "beneath"


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_folder(path: str) -> int:
    """Open a directory by its absolute path; raises `OSError` with `ELOOP` if a link has been put into its way."""
    start = os.open("/", _PASSING)
    try:
        return open_beneath(start, path.lstrip("/") or ".", DIRECTORY, links=Links.REFUSED)
    finally:
        os.close(start)


def open_beneath(
    folder: int, path: str, flags: int, *, mode: int = 0o600, links: Links, hidden: Identities = NOTHING
) -> int:
    """Open the relative path beneath the folder that is open as `folder`, and return the descriptor.

    Raises `OSError`: with `EXDEV` if the path leads out, with `ELOOP` if it has a link that is not followed, with
    `ENOENT` if it is, or leads through, something of which the device and number are `hidden`.
    """
    flags |= os.O_CLOEXEC
    if has_openat2() and not hidden:
        return _openat2(folder, path, flags, mode, links)
    return open_by_parts(folder, path, flags, mode=mode, links=links, hidden=hidden)


@cache
def has_openat2() -> bool:
    """Whether the kernel can do it: not on macOS, not before Linux 5.6, and not where a filter forbids it."""
    if sys.platform != "linux":
        return False
    here = os.open("/", _PASSING)
    try:
        os.close(_openat2(here, ".", _PASSING, 0, Links.REFUSED))
    except OSError:
        return False
    finally:
        os.close(here)
    return True


def _openat2(folder: int, path: str, flags: int, mode: int, links: Links) -> int:
    resolve = _BENEATH | _NO_MAGICLINKS | (_NO_SYMLINKS if links is Links.REFUSED else 0)
    how = _OpenHow(flags, mode if flags & os.O_CREAT else 0, resolve)
    written = os.fsencode(path)
    if b"\0" in written:
        raise ValueError("a path cannot hold NUL")
    for _ in range(_MOST_TRIES):
        opened: int = _libc().syscall(_OPENAT2, folder, written, ctypes.byref(how), ctypes.sizeof(how))
        if opened >= 0:
            return opened
        failed = ctypes.get_errno()
        # EAGAIN: a directory was moved while `..` was resolved, so that nobody knows whether it led out.
        if failed not in (errno.EAGAIN, errno.EINTR):
            break
    raise _failure(failed, path)


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    libc.syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
    return libc


def open_by_parts(
    folder: int, path: str, flags: int, *, mode: int = 0o600, links: Links, hidden: Identities = NOTHING
) -> int:
    """`open_beneath` without the help of the kernel. `..` goes back to the directory that was opened before."""
    ahead = _parts(path)
    passed = [folder]
    followed = 0
    try:
        while True:
            part = ahead.pop()
            if part == "..":
                if len(passed) == 1:
                    raise _failure(errno.EXDEV, path)
                os.close(passed.pop())
                ahead = ahead or ["."]
                continue
            opened, target = _open_part(passed[-1], part, _PASSING if ahead else flags, mode)
            if target is not None:
                followed += 1
                if links is Links.REFUSED or followed > _MOST_LINKS or (flags & os.O_NOFOLLOW and not ahead):
                    raise _failure(errno.ELOOP, path)
                ahead += _parts(target)
                continue
            if hidden:
                _check_not_hidden(opened, path, hidden)
            if not ahead:
                return opened
            passed.append(opened)
    finally:
        for each in passed[1:]:
            os.close(each)


def _check_not_hidden(opened: int, path: str, hidden: Identities) -> None:
    """Raise `ENOENT`, and close the descriptor, if what was opened is one of these."""
    status = os.fstat(opened)
    if (status.st_dev, status.st_ino) in hidden:
        os.close(opened)
        raise _failure(errno.ENOENT, path)


def _parts(path: str) -> list[str]:
    """The parts of a relative path, the first one last; raises `OSError` if it is an absolute one."""
    if path.startswith("/"):
        raise _failure(errno.EXDEV, path)
    return [part for part in path.split("/") if part not in ("", ".")][::-1] or ["."]


def _open_part(folder: int, name: str, flags: int, mode: int) -> tuple[int, str | None]:
    """The descriptor of what has that name, or where it leads if it is a link."""
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder), None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
            with contextlib.suppress(OSError):
                return -1, os.readlink(name, dir_fd=folder)
        raise


def _failure(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
