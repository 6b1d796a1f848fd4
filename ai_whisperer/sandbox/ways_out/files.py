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

from ai_whisperer.sandbox.ways_out.attempts import called, called_by_number, own_file, way

_AT_FDCWD = -100
_FCHMODAT2, _SETXATTRAT = 452, 463
_GETFLAGS, _SETFLAGS = 0x80086601, 0x40086602


def _data(outside: dict[str, Any], name: str = "") -> str:
    return f"{outside['data']}/{name}".rstrip("/")


def _token(outside: dict[str, Any]) -> str:
    return _data(outside, "token")


def _open(outside: dict[str, Any]) -> str:
    return f"{outside['readable']}/open"


@way("read the token")
def _(outside: dict[str, Any]) -> Any:
    return bool(open(_token(outside)).read())


@way("list the data folder")
def _(outside: dict[str, Any]) -> Any:
    return os.listdir(_data(outside))


@way("go into the data folder")
def _(outside: dict[str, Any]) -> Any:
    own = os.open(".", os.O_RDONLY)
    try:
        os.chdir(_data(outside))
        os.fchdir(own)
    finally:
        os.close(own)


@way("get hold of the data folder without opening it")
def _(outside: dict[str, Any]) -> Any:
    os.close(os.open(_data(outside), os.O_PATH))


@way("read the token through a symbolic link")
def _(outside: dict[str, Any]) -> Any:
    return _through(lambda: os.symlink(_token(outside), "link"))


@way("read the token through a hard link")
def _(outside: dict[str, Any]) -> Any:
    return _through(lambda: os.link(_token(outside), "link"))


def _through(make: Callable[[], None]) -> bool:
    try:
        make()
        return bool(open("link").read())
    finally:
        if os.path.lexists("link"):
            os.unlink("link")


@way("read the token through its own root in /proc")
def _(outside: dict[str, Any]) -> Any:
    return bool(open("/proc/self/root" + _token(outside)).read())


@way("read the token through the root of the first process")
def _(outside: dict[str, Any]) -> Any:
    return bool(open("/proc/1/root" + _token(outside)).read())


@way("read the token by going up from its own folder")
def _(outside: dict[str, Any]) -> Any:
    up = os.path.relpath(_token(outside), os.getcwd())
    return bool(open(up).read())


@way("read the token by a handle of its file")
def _(outside: dict[str, Any]) -> Any:
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    path = _token(outside).encode()
    called(outside, "name_to_handle_at", _AT_FDCWD, path, handle, ctypes.byref(mount), 0)
    return called(outside, "open_by_handle_at", _AT_FDCWD, handle, os.O_RDONLY)


@way("open any file by a made-up handle")
def _(outside: dict[str, Any]) -> Any:
    handle = ctypes.create_string_buffer(struct.pack("IiQ", 8, 1, 2) + bytes(120))
    return called(outside, "open_by_handle_at", _AT_FDCWD, handle, os.O_RDONLY)


@way("read the passwords of the machine")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    return bool(open("/etc/shadow").read())


@way("write into the data folder")
def _(outside: dict[str, Any]) -> Any:
    return _written(_data(outside, "written"))


@way("make a nameless file in the data folder")
def _(outside: dict[str, Any]) -> Any:
    os.close(os.open(_data(outside), os.O_TMPFILE | os.O_RDWR, 0o600))


@way("make a folder in the data folder")
def _(outside: dict[str, Any]) -> Any:
    path = _data(outside, "made")
    os.mkdir(path)
    os.rmdir(path)


@way("move a file of its own into the data folder")
def _(outside: dict[str, Any]) -> Any:
    target = _data(outside, "moved")
    os.rename(own_file(), target)
    os.unlink(target)


@way("take a file out of the data folder")
def _(outside: dict[str, Any]) -> Any:
    os.rename(_data(outside, "link"), "taken")
    os.rename("taken", _data(outside, "link"))


@way("write into a folder that it may only read")
def _(outside: dict[str, Any]) -> Any:
    return _written(outside["readable"] + "/written")


@way("write into a file that it may only read")
def _(outside: dict[str, Any]) -> Any:
    os.close(os.open(_open(outside), os.O_WRONLY))


@way("write into what it may only read in a folder that it may write")
def _(outside: dict[str, Any]) -> Any:
    return _written(f"{outside['own']}/only-read/written")


@way("move what it may only read in a folder that it may write")
def _(outside: dict[str, Any]) -> Any:
    os.rename(f"{outside['own']}/only-read", f"{outside['own']}/moved-away")


@way("cut a file that it may only read")
def _(outside: dict[str, Any]) -> Any:
    os.truncate(_open(outside), os.stat(_open(outside)).st_size)


@way("write into the system")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    return _written("/usr/written-by-a-program")


def _written(path: str) -> None:
    with open(path, "w") as file:
        file.write("x")
    os.unlink(path)


def _each_of(outside: dict[str, Any]) -> dict[str, str]:
    return {
        "the token": _token(outside),
        "the data folder": _data(outside),
        "a file that it may only read": _open(outside),
        "the system's programs": "/usr/bin/env",
    }


def _mode(path: str) -> Any:
    os.chmod(path, stat.S_IMODE(os.stat(path).st_mode))


def _mode_by_descriptor(path: str) -> Any:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fchmod(descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode))
    finally:
        os.close(descriptor)


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


def _for_each(name: str, attempt: Callable[[str], Any]) -> None:
    for what in ("the token", "the data folder", "a file that it may only read"):

        def tried_on(outside: dict[str, Any], what: str = what) -> Any:
            return attempt(_each_of(outside)[what])

        way(f"{name} {what}")(tried_on)


_for_each("change the mode of", _mode)
_for_each("change the times of", _times)
_for_each("change the owner of", _owner)
_for_each("give an attribute to", _attribute)
_for_each("give a list of rights to", _list_of_rights)


@way("change the mode of what it has opened for reading")
def _(outside: dict[str, Any]) -> Any:
    return _mode_by_descriptor(_open(outside))


@way("change the mode of the system's programs")
def _(outside: dict[str, Any]) -> Any:
    return _mode(_each_of(outside)["the system's programs"])


@way("change the times of the system's programs")
def _(outside: dict[str, Any]) -> Any:
    return _times(_each_of(outside)["the system's programs"])


@way("change the mode of the token by the newest call")
def _(outside: dict[str, Any]) -> Any:
    return called_by_number(_FCHMODAT2, _AT_FDCWD, _token(outside).encode(), 0o600, 0) == 0


@way("give an attribute to the token by the newest call")
def _(outside: dict[str, Any]) -> Any:
    value = ctypes.create_string_buffer(b"x")
    what = ctypes.create_string_buffer(struct.pack("QII", ctypes.addressof(value), 1, 0))
    return called_by_number(_SETXATTRAT, _AT_FDCWD, _token(outside).encode(), 0, b"user.x", what, 16) == 0


@way("change the flags of a file that it may only read")
def _(outside: dict[str, Any]) -> Any:
    descriptor = os.open(_open(outside), os.O_RDONLY)
    try:
        flags = bytearray(8)
        fcntl.ioctl(descriptor, _GETFLAGS, flags)
        fcntl.ioctl(descriptor, _SETFLAGS, bytes(flags))
    finally:
        os.close(descriptor)


@way("hold up others who open a file that it may only read")
def _(outside: dict[str, Any]) -> Any:
    descriptor = os.open(_open(outside), os.O_RDONLY)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    finally:
        os.close(descriptor)


@way("see that the token is there")
def _(outside: dict[str, Any]) -> Any:
    return os.stat(_token(outside)).st_size


@way("see that the token is there by asking for access")
def _(outside: dict[str, Any]) -> Any:
    return os.access(_token(outside), os.F_OK)


@way("read where a link in the data folder leads")
def _(outside: dict[str, Any]) -> Any:
    return os.readlink(_data(outside, "link"))


@way("watch the data folder")
def _(outside: dict[str, Any]) -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init()
    try:
        return watch >= 0 and libc.inotify_add_watch(watch, _data(outside).encode(), 0xFFF) >= 0
    finally:
        os.close(watch)


@way("bind a socket in the data folder")
def _(outside: dict[str, Any]) -> Any:
    path = _data(outside, "bound")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path)
    os.unlink(path)


def _is_set_id(path: str) -> bool:
    try:
        return bool(os.stat(path).st_mode & 0o6000)
    finally:
        os.unlink(path)


@way("make a setuid file by chmod")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    path = own_file()
    os.chmod(path, 0o4755)  # noqa: S103 - that it can be is what is asked
    return _is_set_id(path)


@way("make a setgid file by its descriptor")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    path = own_file()
    with open(path) as file:
        os.fchmod(file.fileno(), 0o2755)
    return _is_set_id(path)


@way("make a setuid file by fchmodat")
def _(outside: dict[str, Any]) -> Any:
    path = own_file()
    called(outside, "fchmodat", _AT_FDCWD, path.encode(), 0o4755)
    return _is_set_id(path)


@way("make a setuid file by the newest chmod")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    path = own_file()
    called_by_number(_FCHMODAT2, _AT_FDCWD, path.encode(), 0o4755, 0)
    return _is_set_id(path)


@way("make a setuid file by open")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    os.close(os.open("set-id", os.O_CREAT | os.O_WRONLY, 0o4755))
    return _is_set_id("set-id")


@way("make a setuid file by openat2")
def _(outside: dict[str, Any]) -> Any:
    how = ctypes.create_string_buffer(struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, 0o4755, 0))
    called(outside, "openat2", _AT_FDCWD, b"set-id-2", how, 24)
    return _is_set_id("set-id-2")


@way("make a setuid file by mknod")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    os.mknod("set-id-3", stat.S_IFREG | 0o4755)
    return _is_set_id("set-id-3")


@way("make a device file")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    os.mknod("device", stat.S_IFCHR | 0o600, os.makedev(1, 1))
    os.unlink("device")


@way("give a file a capability")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    os.setxattr(own_file(), "security.capability", struct.pack("<IIIII", 0x02000001, 1, 0, 0, 0))


for _device in ("mem", "kmsg", "vda", "sda", "nvme0n1", "fuse", "kvm", "net/tun", "loop-control", "tty"):

    def _opened(outside: dict[str, Any], device: str = _device) -> Any:  # noqa: ARG001
        os.close(os.open(f"/dev/{device}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY))

    way(f"open the device {_device}")(_opened)
