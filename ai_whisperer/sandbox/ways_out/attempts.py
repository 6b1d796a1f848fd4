"""What all ways out share: their list, what lies outside, and how a refusal is told from a success."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from typing import Any

WAYS: dict[str, Callable[[dict[str, Any]], Any]] = {}
"""By what it would be to get out that way. Each takes what lies outside; it works if it returns and not False."""

_libc = ctypes.CDLL(None, use_errno=True)
_REFUSALS = (
    *(errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EROFS),
    *(errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT, errno.EPROTOTYPE, errno.EOPNOTSUPP),
    *(errno.ENOPROTOOPT, errno.ENODEV),
)
"""What the kernel says to who may not. Any other error comes after permission was given."""


def way(name: str) -> Callable[[Callable[[dict[str, Any]], Any]], Callable[[dict[str, Any]], Any]]:
    """Add a way to the list."""

    def add(attempt: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
        WAYS[name] = attempt
        return attempt

    return add


def tried(outside: dict[str, Any]) -> dict[str, str | None]:
    """Each way, and what came of it if it worked.

    `outside` has the paths `data` (a folder with the files `token` and `link`, which leads to it, and the listening
    `socket`) and `readable` (a folder with the file `open`, which may be read), the process `server` and when it
    `started`, the ports `tcp` and `udp` of this machine that listen, the name of the `abstract` socket that does,
    whether the server `is_root` and the program `is_alone` in its network, its `own` folder with `only-read` in it,
    which may only be read, and the `numbers` of calls.
    """
    done: dict[str, str | None] = {}
    for name, attempt in WAYS.items():
        try:
            came = attempt(outside)
            done[name] = None if came is False else repr(came)[:100]
        except Exception:  # noqa: BLE001 - however it is refused
            done[name] = None
    return done


def called(outside: dict[str, Any], name: str, *arguments: Any) -> int:
    """Make a call to the kernel by its name; returns what it returns, and raises `OSError` only if it is refused."""
    number = outside["numbers"].get(name)
    if number is None:
        raise OSError(errno.ENOSYS, "this kind of machine does not have it")
    return called_by_number(number, *arguments)


def called_by_number(number: int, *arguments: Any) -> int:
    ctypes.set_errno(0)
    result: int = _libc.syscall(number, *(ctypes.c_long(each) if isinstance(each, int) else each for each in arguments))
    if result < 0 and ctypes.get_errno() in _REFUSALS:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def server_of(outside: dict[str, Any]) -> int:
    """The number of the server's process; raises `OSError` if another process has that number here."""
    pid: int = outside["server"]
    try:
        with open(f"/proc/{pid}/stat") as file:
            started = int(file.read().rpartition(")")[2].split()[19])
    except OSError:
        return pid  # whether it is there can only be tried
    if started != outside["started"]:
        raise OSError(errno.ESRCH, "it is another process")
    return pid


def own_file(name: str = "own-file") -> str:
    """A file that may be changed."""
    with open(name, "w") as file:
        file.write("x")
    return name


def in_a_child(attempt: Callable[[], Any]) -> bool:
    """Whether it works in a process of its own, which may be killed for it."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if attempt() is not False else 1)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0
