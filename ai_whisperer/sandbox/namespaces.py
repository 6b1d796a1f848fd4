"""A world of its own for a job: processes, files and networks of others are not there at all, whatever it may call.

Only what the job may see is mounted, and all but its writable folders read-only. So nothing else has a name in it: it
cannot be stat'ed, watched, chmod'ed or given other times, which Landlock does not hold.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

from ai_whisperer.errors import SandboxError
from ai_whisperer.sandbox import covering, system
from ai_whisperer.sandbox.libc import CLONE_NEWUSER, checked, libc
from ai_whisperer.sandbox.mounting import Attribute, Flag, mount, put, tree
from ai_whisperer.sandbox.owners import Owners
from ai_whisperer.sandbox.system import existing

_CLONE_NEWNS = 0x00020000
_CLONE_NEWCGROUP = 0x02000000
_CLONE_NEWUTS = 0x04000000
_CLONE_NEWIPC = 0x08000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_MNT_DETACH = 2
_SET_FLAGS, _UP = 0x8914, 0x1
_READ_ONLY = Attribute.READ_ONLY | Attribute.NOSUID | Attribute.NODEV
_WRITABLE = Attribute.NOSUID | Attribute.NODEV
_SEALED = Flag.REMOUNT | Flag.BIND | Flag.READ_ONLY | Flag.NOSUID | Flag.NODEV
_BASE = "/proc"
"""Where the root of a job is laid out: a folder that is always there, and never holds what a job may see."""


def enter_processes() -> bool:
    """Let the next child of this process be the first of a world of processes; False where that cannot be had."""
    try:
        if os.geteuid() == 0:
            checked(libc.unshare(_CLONE_NEWPID))
            return True
        user, group = os.geteuid(), os.getegid()
        checked(libc.unshare(CLONE_NEWUSER | _CLONE_NEWPID))
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    except OSError:
        return False
    return True


def enter_mounts() -> None:
    """Let what this process mounts be seen by it and by what it starts alone; raises `OSError` if it cannot be."""
    checked(libc.unshare(_CLONE_NEWNS))
    mount(None, "/", None, Flag.REC | Flag.PRIVATE)


class Root:
    """The files of a job, laid out beside those of the system until `enter`; raises `OSError` if it cannot be had.

    What every job sees is laid out first, before it is known what else this one may see. With `network` it has that of
    the machine, else one of its own in which nobody is.
    """

    def __init__(self, *, readable: Sequence[str], devices: Sequence[str], network: bool) -> None:
        apart = _CLONE_NEWNS | _CLONE_NEWIPC | _CLONE_NEWUTS | _CLONE_NEWCGROUP
        checked(libc.unshare(apart if network else apart | _CLONE_NEWNET))
        if not network:
            _turn_on_loopback()
        mount(None, "/", None, Flag.REC | Flag.PRIVATE)
        trees = [(path, tree(path, _READ_ONLY)) for path in readable if not _is_relative_link(path)]
        trees += [(path, tree(path, Attribute.NOSUID)) for path in devices]
        mount("tmpfs", _BASE, "tmpfs", Flag.NOSUID | Flag.NODEV, "mode=755,size=1m")
        try:
            os.mkdir(f"{_BASE}/proc")
            mount("proc", f"{_BASE}/proc", "proc", Flag.NOSUID | Flag.NODEV | Flag.NOEXEC)
            for path in filter(_is_relative_link, readable):
                os.makedirs(os.path.dirname(_BASE + path), exist_ok=True)
                os.symlink(os.readlink(path), _BASE + path)
            for path, found in trees:
                put(_BASE + path, found)
            _furnish_devices()
            _mask_kernel()
            self._owners = Owners(f"{_BASE}/proc")
        except OSError:
            libc.umount2(_BASE.encode(), _MNT_DETACH)
            raise

    def enter(
        self,
        *,
        readable: Sequence[str],
        writable: Sequence[str],
        hidden: Sequence[str],
        owned: Sequence[str],
        temporary: str = "",
    ) -> None:
        """Add these and make it the root of this process; raises `SandboxError` if that cannot be done.

        Those that are `owned` are the runtime's own and may be handed over to the user that programs run as. What is
        `temporary` stands also where programs look for such a folder.
        """
        try:
            if temporary:
                put(_BASE + system.TEMPORARY, self._owners.tree(temporary, _WRITABLE, is_owned=True))
            else:
                _mount_memory(system.TEMPORARY)
            attributes = dict.fromkeys(readable, _READ_ONLY) | dict.fromkeys(writable, _WRITABLE)
            within = {path for path in attributes if covering.lies_in(path, hidden)}
            # The outer ones first: what may only be read in a folder that may be written is a mount over that.
            for path in sorted(attributes.keys() - within):
                self._add(path, attributes[path], is_owned=path in owned)
            covering.cover(_BASE, hidden, writable=writable)
            for path in sorted(within):
                self._add(path, attributes[path], is_owned=path in owned)
            covering.seal(_BASE, [path for path in hidden if path not in within])
            os.chdir(_BASE)
            os.mkdir(".old")
            checked(libc.pivot_root(b".", b".old"))
            os.chdir("/")
            checked(libc.umount2(b"/.old", _MNT_DETACH))
            os.rmdir("/.old")
            mount(None, "/proc", None, _SEALED | Flag.NOEXEC)
            mount(None, "/", None, _SEALED)
        except OSError as error:
            raise SandboxError(f"The files of the program could not be laid out: {error}.") from error

    def _add(self, path: str, attributes: int, *, is_owned: bool) -> None:
        put(_BASE + path, self._owners.tree(path, attributes, is_owned=is_owned))


def _turn_on_loopback() -> None:
    """Let processes in a new network talk to each other; it is turned off in the beginning."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh22x", b"lo", _UP))


def _furnish_devices() -> None:
    """Add what programs expect beside the devices: names of their own streams, and a little memory to share."""
    for name, target in system.STREAMS.items():
        os.symlink(target, f"{_BASE}/dev/{name}")
    _mount_memory(system.SHARED_MEMORY)


def _mount_memory(path: str) -> None:
    """Mount a little memory there, for everybody to write to."""
    os.makedirs(_BASE + path, exist_ok=True)
    mount("tmpfs", _BASE + path, "tmpfs", Flag.NOSUID | Flag.NODEV, f"mode=1777,size={system.SHARED_MEMORY_BYTES}")


def _mask_kernel() -> None:
    """Put nothing over the files of the kernel."""
    for path in existing(f"{_BASE}{path}" for path in system.OF_THE_KERNEL):
        if os.path.isdir(path):
            mount("tmpfs", path, "tmpfs", Flag.READ_ONLY | Flag.NOSUID | Flag.NODEV)
        else:
            put(path, tree(os.devnull, _READ_ONLY))


def _is_relative_link(path: str) -> bool:
    return os.path.islink(path) and not os.readlink(path).startswith("/")
