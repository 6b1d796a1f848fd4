"""Mounts, in the kernel's own words: a tree of files is taken from where it lies, and put somewhere else."""

from __future__ import annotations

import ctypes
import os
import stat
from enum import IntFlag

from ai_whisperer.sandbox.libc import checked, libc

_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442
"""Calls newer than the C libraries; they have the same number on all machines."""
_OPEN_TREE_CLONE, _AT_EMPTY_PATH, _AT_RECURSIVE, _AT_FDCWD = 1, 0x1000, 0x8000, -100
_MOVE_FROM_DESCRIPTOR = 0x4
_NO_SYMLINKS = 0x4


class Flag(IntFlag):
    """Of `mount`."""

    READ_ONLY = 1
    NOSUID = 2
    NODEV = 4
    NOEXEC = 8
    REMOUNT = 32
    BIND = 4096
    REC = 16384
    PRIVATE = 1 << 18


class Attribute(IntFlag):
    """Of a tree."""

    READ_ONLY = 1
    NOSUID = 2
    NODEV = 4
    OTHER_OWNERS = 0x00100000


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user", ctypes.c_uint64),
    )


def opened(path: str) -> int:
    """What lies at the path, to be looked at and mounted; raises `OSError` with ELOOP if any part of it is a link."""
    how = (ctypes.c_uint64 * 3)(os.O_PATH | os.O_CLOEXEC, 0, _NO_SYMLINKS)
    found: int = libc.syscall(_OPENAT2, _AT_FDCWD, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
    checked(found)
    return found


def tree(place: str | int, attributes: int, *, owners: int | None = None) -> int:
    """What lies at a path, links followed, or what was `opened`, as a mount that is nowhere yet.

    `owners` is a user namespace by which its files are shown as those of others.
    """
    begin, path = (place, b"") if isinstance(place, int) else (_AT_FDCWD, os.fsencode(place))
    whole = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE | _AT_EMPTY_PATH
    found: int = libc.syscall(_OPEN_TREE, begin, path, whole)
    checked(found)
    wanted = _Attributes(set=attributes)
    if owners is not None:
        wanted.set |= Attribute.OTHER_OWNERS
        wanted.user = owners
    flags = _AT_EMPTY_PATH | _AT_RECURSIVE
    try:
        checked(libc.syscall(_MOUNT_SETATTR, found, b"", flags, ctypes.byref(wanted), ctypes.sizeof(wanted)))
    except OSError:
        os.close(found)
        raise
    return found


def put(target: str, found: int) -> None:
    """Mount the tree there, in a place that is made if there is none."""
    if not os.path.lexists(target):
        if stat.S_ISDIR(os.fstat(found).st_mode):
            os.makedirs(target, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o444))
    checked(libc.syscall(_MOVE_MOUNT, found, b"", _AT_FDCWD, os.fsencode(target), _MOVE_FROM_DESCRIPTOR))
    os.close(found)


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, data)]
    checked(libc.mount(*words[:3], ctypes.c_ulong(flags), words[3]))
