"""A world of its own for a job: processes and files of others are not there at all, whatever a program may call.

Only what the job may see is mounted, and all but its writable folders read-only. So nothing else has a name in it: it
cannot be stat'ed, watched, chmod'ed or given other times, which Landlock does not hold.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from ai_whisperer.errors import SandboxError

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_MS_READ_ONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
"""Calls newer than the C libraries; they have the same number on all machines."""
_OPEN_TREE_CLONE, _AT_EMPTY_PATH, _AT_RECURSIVE, _AT_FDCWD = 1, 0x1000, 0x8000, -100
_MOVE_FROM_DESCRIPTOR = 0x4
_ATTR_READ_ONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_READ_ONLY = _ATTR_READ_ONLY | _ATTR_NOSUID | _ATTR_NODEV
_BASE = "/proc"
"""Where the root of a job is laid out: a folder that is always there, and never holds what a job may see."""
_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user", ctypes.c_uint64),
    )


def enter_processes() -> bool:
    """Let the next child of this process be the first of a world of processes; False where that cannot be had."""
    try:
        if os.geteuid() == 0:
            _checked(_libc.unshare(_CLONE_NEWPID))
            return True
        user, group = os.geteuid(), os.getegid()
        _checked(_libc.unshare(_CLONE_NEWUSER | _CLONE_NEWPID))
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    except OSError:
        return False
    return True


class Root:
    """The files of a job, laid out beside those of the system until `enter`; raises `OSError` if it cannot be had.

    What every job sees is laid out first, before it is known what else this one may see.
    """

    def __init__(self, *, readable: Sequence[str], devices: Sequence[str]) -> None:
        _checked(_libc.unshare(_CLONE_NEWNS))
        _mount(None, b"/", None, _MS_REC | _MS_PRIVATE)
        trees = [(path, _tree(path, _READ_ONLY)) for path in readable if not _is_relative_link(path)]
        trees += [(path, _tree(path, _ATTR_NOSUID)) for path in devices]
        _mount(b"tmpfs", _BASE.encode(), b"tmpfs", _MS_NOSUID | _MS_NODEV, b"mode=755,size=1m")
        try:
            os.mkdir(f"{_BASE}/proc")
            _mount(b"proc", f"{_BASE}/proc".encode(), b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
            for path in filter(_is_relative_link, readable):
                os.makedirs(os.path.dirname(_BASE + path), exist_ok=True)
                os.symlink(os.readlink(path), _BASE + path)
            for path, tree in trees:
                _put(path, tree)
        except OSError:
            _libc.umount2(_BASE.encode(), _MNT_DETACH)
            raise

    def enter(self, *, readable: Sequence[str], writable: Sequence[str]) -> None:
        """Add these and make it the root of this process; raises `SandboxError` if that cannot be done."""
        try:
            for path in readable:
                _put(path, _tree(path, _READ_ONLY))
            for path in writable:
                _put(path, _tree(path, _ATTR_NOSUID | _ATTR_NODEV))
            os.chdir(_BASE)
            os.mkdir(".old")
            _checked(_libc.pivot_root(b".", b".old"))
            os.chdir("/")
            _checked(_libc.umount2(b"/.old", _MNT_DETACH))
            os.rmdir("/.old")
            _mount(None, b"/", None, _MS_REMOUNT | _MS_BIND | _MS_READ_ONLY | _MS_NOSUID | _MS_NODEV)
        except OSError as error:
            raise SandboxError(f"The files of the program could not be laid out: {error}.") from error


def _is_relative_link(path: str) -> bool:
    return os.path.islink(path) and not os.readlink(path).startswith("/")


def _put(path: str, tree: int) -> None:
    target = _BASE + path
    if not os.path.lexists(target):
        if stat.S_ISDIR(os.fstat(tree).st_mode):
            os.makedirs(target, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o444))
    _checked(_libc.syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(target), _MOVE_FROM_DESCRIPTOR))
    os.close(tree)


def _tree(path: str, attributes: int) -> int:
    """What lies at the path, links followed, as a mount that is nowhere yet."""
    found: int = _libc.syscall(
        _OPEN_TREE, _AT_FDCWD, os.fsencode(path), _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE
    )
    _checked(found)
    wanted = _MountAttributes(set=attributes)
    flags = _AT_EMPTY_PATH | _AT_RECURSIVE
    _checked(_libc.syscall(_MOUNT_SETATTR, found, b"", flags, ctypes.byref(wanted), ctypes.sizeof(wanted)))
    return found


def _mount(source: bytes | None, target: bytes, kind: bytes | None, flags: int, data: bytes | None = None) -> None:
    _checked(_libc.mount(source, target, kind, ctypes.c_ulong(flags), data))


def _checked(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno() or errno.EPERM
        raise OSError(number, os.strerror(number))
