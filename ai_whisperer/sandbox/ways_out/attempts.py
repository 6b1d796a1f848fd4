"""What all ways out share: their list, what lies outside, and how a refusal is told from a success."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from typing import Any

Outside = dict[str, Any]
"""What lies outside, see `tried`."""

Attempt = Callable[[Outside], Any]
"""It works if it returns, and not False."""

WAYS: dict[str, Attempt] = {}
"""By what it would be to get out that way."""

_libc = ctypes.CDLL(None, use_errno=True)
_REFUSALS = (
    *(errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EROFS),
    *(errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT, errno.EPROTOTYPE, errno.EOPNOTSUPP),
    *(errno.ENOPROTOOPT, errno.ENODEV),
)
"""What the kernel says to who may not. Any other error comes after permission was given."""


def way(name: str) -> Callable[[Attempt], Attempt]:
    """Add a way of several steps to the list."""

    def add(attempt: Attempt) -> Attempt:
        WAYS[name] = attempt
        return attempt

    return add


def tried(outside: Outside) -> dict[str, str | None]:
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


def called(outside: Outside, name: str, *arguments: Any) -> int:
    """Make a call to the kernel by its name; returns what it returns, and raises `OSError` only if it is refused."""
    number = outside["numbers"].get(name)
    if number is None:
        raise OSError(errno.ENOSYS, "this kind of machine does not have it")
    return called_by_number(number, *arguments)


def calling(name: str, *arguments: Any) -> Attempt:
    """The attempt to make one call to the kernel."""
    return lambda outside: called(outside, name, *arguments)


def on(path: str, act: Callable[[str], Any]) -> Attempt:
    """The attempt to do something to what lies at one path; `{data}` in it is the folder that is told by that name."""
    return lambda outside: act(path.format_map(outside))


def opening(path: str, flags: int) -> Attempt:
    """The attempt to open what lies at one path, written as for `on`."""
    return on(path, lambda found: os.close(os.open(found, flags, 0o600)))


def called_by_number(number: int, *arguments: Any) -> int:
    ctypes.set_errno(0)
    result: int = _libc.syscall(number, *(ctypes.c_long(each) if isinstance(each, int) else each for each in arguments))
    if result < 0 and ctypes.get_errno() in _REFUSALS:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def server_of(outside: Outside) -> int:
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


def is_read(path: str) -> bool:
    """Whether the file lets itself be read, and has something in it."""
    with open(path, "rb") as file:
        return bool(file.read(16))


def own_file() -> str:
    """A file that may be changed."""
    with open("own-file", "w") as file:
        file.write("x")
    return "own-file"


def in_a_child(attempt: Callable[[], Any]) -> bool:
    """Whether it works in a process of its own, which may be killed for it."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if attempt() is not False else 1)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0
