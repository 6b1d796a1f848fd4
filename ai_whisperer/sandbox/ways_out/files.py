"""Ways to files that are not the program's own: contents, names, modes, times, owners."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import stat
import struct
from collections.abc import Callable
from typing import Any

from ai_whisperer.sandbox.ways_out.attempts import (
    WAYS,
    Outside,
    called,
    called_by_number,
    calling,
    is_read,
    on,
    opening,
    own_file,
    way,
)

_AT_FDCWD = -100
_FCHMODAT2, _SETXATTRAT = 452, 463
_GETFLAGS, _SETFLAGS = 0x80086601, 0x40086602
_TOKEN, _LINK, _OPEN = "{data}/token", "{data}/link", "{readable}/open"
_SYSTEM = "/usr/bin/env"


def _go_into(folder: str) -> None:
    own = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder)
        os.fchdir(own)
    finally:
        os.close(own)


def _read_through(link: Callable[[str, str], None]) -> Callable[[str], bool]:
    def read(path: str) -> bool:
        try:
            link(path, "link")
            return is_read("link")
        finally:
            if os.path.lexists("link"):
                os.unlink("link")

    return read


def _read_by_handle(outside: Outside) -> int:
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    path = _TOKEN.format_map(outside).encode()
    called(outside, "name_to_handle_at", _AT_FDCWD, path, handle, ctypes.byref(mount), 0)
    return called(outside, "open_by_handle_at", _AT_FDCWD, handle, os.O_RDONLY)


def _write(path: str) -> None:
    with open(path, "w") as file:
        file.write("x")
    os.unlink(path)


def _make_folder(path: str) -> None:
    os.mkdir(path)
    os.rmdir(path)


def _move_there(path: str) -> None:
    os.rename(own_file(), path)
    os.unlink(path)


def _take_out(path: str) -> None:
    os.rename(path, "taken")
    os.rename("taken", path)


_MADE_UP = ctypes.create_string_buffer(struct.pack("IiQ", 8, 1, 2) + bytes(120))

WAYS.update(
    {
        "read the token": on(_TOKEN, is_read),
        "list the data folder": on("{data}", os.listdir),
        "go into the data folder": on("{data}", _go_into),
        "get hold of the data folder without opening it": opening("{data}", os.O_PATH),
        "read the token through a symbolic link": on(_TOKEN, _read_through(os.symlink)),
        "read the token through a hard link": on(_TOKEN, _read_through(os.link)),
        "read the token through its own root in /proc": on(f"/proc/self/root{_TOKEN}", is_read),
        "read the token through the root of the first process": on(f"/proc/1/root{_TOKEN}", is_read),
        "read the token by going up from its own folder": on(_TOKEN, lambda path: is_read(os.path.relpath(path))),
        "read the token by a handle of its file": _read_by_handle,
        "open any file by a made-up handle": calling("open_by_handle_at", _AT_FDCWD, _MADE_UP, os.O_RDONLY),
        "read the passwords of the machine": on("/etc/shadow", is_read),
        "write into the data folder": on("{data}/written", _write),
        "make a nameless file in the data folder": opening("{data}", os.O_TMPFILE | os.O_RDWR),
        "make a folder in the data folder": on("{data}/made", _make_folder),
        "move a file of its own into the data folder": on("{data}/moved", _move_there),
        "take a file out of the data folder": on(_LINK, _take_out),
        "write into a folder that it may only read": on("{readable}/written", _write),
        "write into a file that it may only read": opening(_OPEN, os.O_WRONLY),
        "write into what it may only read in a folder that it may write": on("{own}/only-read/written", _write),
        "move what it may only read in a folder that it may write": on(
            "{own}/only-read", lambda path: os.rename(path, f"{os.path.dirname(path)}/moved-away")
        ),
        "cut a file that it may only read": on(_OPEN, lambda path: os.truncate(path, os.stat(path).st_size)),
        "write into the system": on("/usr/written-by-a-program", _write),
    }
)


def _mode(file: str | int) -> Any:
    os.chmod(file, stat.S_IMODE(os.stat(file).st_mode))


def _times(path: str) -> Any:
    status = os.stat(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _owner(path: str) -> Any:
    os.chown(path, os.getuid(), os.getgid())


def _attribute(path: str) -> Any:
    os.setxattr(path, "user.x", b"x")
    os.removexattr(path, "user.x")


def _list_of_rights(path: str) -> Any:
    os.setxattr(path, "system.posix_acl_access", struct.pack("<I", 2))


_CHANGES = {
    "change the mode of": _mode,
    "change the times of": _times,
    "change the owner of": _owner,
    "give an attribute to": _attribute,
    "give a list of rights to": _list_of_rights,
}
_OTHERS = {"the token": _TOKEN, "the data folder": "{data}", "a file that it may only read": _OPEN}
WAYS.update({f"{name} {what}": on(path, act) for name, act in _CHANGES.items() for what, path in _OTHERS.items()})


def _to_descriptor(act: Callable[[int], Any]) -> Callable[[str], Any]:
    """What is done to the descriptor of a file that was opened for reading."""

    def opened(path: str) -> Any:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            return act(descriptor)
        finally:
            os.close(descriptor)

    return opened


def _flags(descriptor: int) -> None:
    flags = bytearray(8)
    fcntl.ioctl(descriptor, _GETFLAGS, flags)
    fcntl.ioctl(descriptor, _SETFLAGS, bytes(flags))


def _hold_up(descriptor: int) -> None:
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def _newest_mode(path: str) -> bool:
    return called_by_number(_FCHMODAT2, _AT_FDCWD, path.encode(), 0o600, 0) == 0


def _newest_attribute(path: str) -> bool:
    value = ctypes.create_string_buffer(b"x")
    what = ctypes.create_string_buffer(struct.pack("QII", ctypes.addressof(value), 1, 0))
    return called_by_number(_SETXATTRAT, _AT_FDCWD, path.encode(), 0, b"user.x", what, 16) == 0


def _watch(path: str) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init()
    try:
        return bool(watch >= 0 and libc.inotify_add_watch(watch, path.encode(), 0xFFF) >= 0)
    finally:
        os.close(watch)


def _bind(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path)
    os.unlink(path)


WAYS.update(
    {
        "change the mode of what it has opened for reading": on(_OPEN, _to_descriptor(_mode)),
        "change the mode of the system's programs": on(_SYSTEM, _mode),
        "change the times of the system's programs": on(_SYSTEM, _times),
        "change the mode of the token by the newest call": on(_TOKEN, _newest_mode),
        "give an attribute to the token by the newest call": on(_TOKEN, _newest_attribute),
        "change the flags of a file that it may only read": on(_OPEN, _to_descriptor(_flags)),
        "hold up others who open a file that it may only read": on(_OPEN, _to_descriptor(_hold_up)),
        "see that the token is there": on(_TOKEN, lambda path: os.stat(path).st_size),
        "see that the token is there by asking for access": on(_TOKEN, lambda path: os.access(path, os.F_OK)),
        "read where a link in the data folder leads": on(_LINK, os.readlink),
        "watch the data folder": on("{data}", _watch),
        "bind a socket in the data folder": on("{data}/bound", _bind),
    }
)


def _is_set_id(path: str) -> bool:
    try:
        return bool(os.stat(path).st_mode & 0o6000)
    finally:
        os.unlink(path)


@way("make a setuid file by chmod")
def _(_outside: Outside) -> Any:
    path = own_file()
    os.chmod(path, 0o4755)  # noqa: S103 - that it can be is what is asked
    return _is_set_id(path)


@way("make a setgid file by its descriptor")
def _(_outside: Outside) -> Any:
    path = own_file()
    with open(path) as file:
        os.fchmod(file.fileno(), 0o2755)
    return _is_set_id(path)


@way("make a setuid file by fchmodat")
def _(outside: Outside) -> Any:
    path = own_file()
    called(outside, "fchmodat", _AT_FDCWD, path.encode(), 0o4755)
    return _is_set_id(path)


@way("make a setuid file by the newest chmod")
def _(_outside: Outside) -> Any:
    path = own_file()
    called_by_number(_FCHMODAT2, _AT_FDCWD, path.encode(), 0o4755, 0)
    return _is_set_id(path)


@way("make a setuid file by open")
def _(_outside: Outside) -> Any:
    os.close(os.open("set-id", os.O_CREAT | os.O_WRONLY, 0o4755))
    return _is_set_id("set-id")


@way("make a setuid file by openat2")
def _(outside: Outside) -> Any:
    how = ctypes.create_string_buffer(struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, 0o4755, 0))
    called(outside, "openat2", _AT_FDCWD, b"set-id-2", how, 24)
    return _is_set_id("set-id-2")


@way("make a setuid file by mknod")
def _(_outside: Outside) -> Any:
    os.mknod("set-id-3", stat.S_IFREG | 0o4755)
    return _is_set_id("set-id-3")


@way("make a device file")
def _(_outside: Outside) -> Any:
    os.mknod("device", stat.S_IFCHR | 0o600, os.makedev(1, 1))
    os.unlink("device")


@way("give a file a capability")
def _(_outside: Outside) -> Any:
    os.setxattr(own_file(), "security.capability", struct.pack("<IIIII", 0x02000001, 1, 0, 0, 0))


_DEVICES = ("mem", "kmsg", "vda", "sda", "nvme0n1", "fuse", "kvm", "net/tun", "loop-control", "tty")
_WITHOUT_WAITING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
WAYS.update({f"open the device {name}": opening(f"/dev/{name}", _WITHOUT_WAITING) for name in _DEVICES})
