"""A filter of calls to the kernel: what a program of a tool has no need of is refused, whatever else holds it.

It denies at least what container engines deny by default, calls that are newer than this list, and every kind of socket
but the few that are named. A filter sees numbers alone, so calls that hide theirs in memory (`clone3`, `openat2`) are
told not to exist; programs then use the older ones.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable, Sequence
from enum import IntFlag

from ai_whisperer.errors import SandboxError
from ai_whisperer.sandbox.call_numbers import this_machine
from ai_whisperer.sandbox.libc import libc

_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x54, 0x06
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_FIRST_UNKNOWN = 450
"""Calls from here on are younger than this list. So high are also those of the 32-bit interface of x86-64."""

_NEW_NAMESPACES = 0x7E020000
_SET_ID_BITS = 0o6000
_MAKES_A_FILE = 0x400040
"""In the flags of `open`: only then it has a mode."""
_FAST_OPEN = 0x20000000
_TCP, _UDP = 6, 17
_STREAM, _DATAGRAM, _KIND_OF_SOCKET = 1, 2, 0xF
_UNIX, _INTERNET = 1, (2, 10)
_TCP_OPTIONS = (23, 30, 31)
"""Fast open as a server and as a client, and upper layers, which are code of the kernel that nobody here needs."""
_SOCKETS = 1
_HARMLESS_OPTIONS = {0: (1, 2, 8, 10, 11, 24), 41: (16, 23, 25, 26, 49, 67)}
"""Of IP and IPv6: kind of service, hops, what is told of packets, errors. Not routes, and not groups to join."""
_HOLDING_UP = (1024, 1026)
"""Leases, for which others who open a file have to wait, and the old way to hear of changes in a folder."""
_TERMINAL_REQUESTS = (0x5412, 0x541C)
"""Typing for others, and talking to a console."""
_PERSONALITIES = (0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)

_SECCOMP_SET_MODE_FILTER, _ALL_THREADS = 1, 1
_PR_SET_NO_NEW_PRIVS = 38


class Sockets(IntFlag):
    """Which sockets a program may open. Pairs that are connected already it may always have."""

    LOCAL = 1
    """Those between processes of one machine. By their names, which are files, they lead out of any namespace, so they
    are for programs that something else keeps from such files."""
    INTERNET = 2
    """TCP and UDP."""
    ADDRESSES = 4
    """It may have an address of its own, at which others can talk to it."""

    ALONE = INTERNET | ADDRESSES
    """For a program in a network where nobody else is."""
    GRANTED = LOCAL | INTERNET
    """For one in the network of the machine. Whom it may talk to has to be held by something else."""


WATCHING = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp", "process_madvise"),
    *("openat2", "name_to_handle_at", "memfd_create", "semget", "shmget", "shmat", "shmctl"),
)
"""Calls of which a library that watches over a job needs some itself: it has to deny them to the job."""
_NOT_THERE = ("clone3", "openat2")
_DENIED = (
    *("memfd_secret", "msgget", "mq_open", "io_setup"),
    *("add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd"),
    *("io_uring_setup", "io_uring_enter", "io_uring_register", "open_by_handle_at"),
    *("unshare", "setns", "chroot", "mount", "umount2", "pivot_root", "open_tree", "move_mount", "mount_setattr"),
    *("fsopen", "fsconfig", "fsmount", "fspick", "quotactl", "quotactl_fd", "swapon", "swapoff", "acct"),
    *("reboot", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module"),
    *("create_module", "get_kernel_syms", "query_module", "nfsservctl", "sysfs", "ustat", "uselib", "_sysctl"),
    *("syslog", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname"),
    *("vhangup", "iopl", "ioperm", "modify_ldt", "fanotify_init", "fanotify_mark", "lookup_dcookie"),
    *("mbind", "set_mempolicy", "get_mempolicy", "move_pages", "migrate_pages"),
)


def program(*, sockets: Sockets, left_out: Sequence[str] = ()) -> bytes:
    """The filter, as the kernel takes it; raises `SandboxError` on machines whose numbers are not known here."""
    machine = this_machine()
    lines = [_line(_LOAD, _ARCHITECTURE), _line(_EQUAL, machine.architecture, yes=1), _line(_RETURN, _KILL)]
    lines += [_line(_LOAD, _NUMBER), _line(_AT_LEAST, _FIRST_UNKNOWN, no=1), _refused(errno.ENOSYS)]
    refused = dict.fromkeys((*_DENIED, *WATCHING), errno.EPERM) | dict.fromkeys(_NOT_THERE, errno.ENOSYS)
    for name, error in refused.items():
        if name not in left_out:
            lines += _block(machine.numbers.get(name), [_refused(error)])
    for name, rule in _rules(sockets).items():
        lines += _block(machine.numbers.get(name), [*rule, _line(_RETURN, _ALLOW)])
    lines.append(_line(_RETURN, _ALLOW))
    return b"".join(lines)


def descriptor(*, sockets: Sockets) -> int:
    """The filter in a file that bubblewrap reads."""
    readable, writable = os.pipe()
    os.write(writable, program(sockets=sockets))
    os.close(writable)
    return readable


def take_on(*, sockets: Sockets, left_out: Sequence[str] = ()) -> None:
    """Put this process, with all its threads and all that it starts, under the filter; raises `SandboxError`."""

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_char_p))

    code = program(sockets=sockets, left_out=left_out)
    filtered = Program(length=len(code) // len(_line(_RETURN, 0)), lines=code)
    no_new_privileges()
    result = libc.syscall(
        this_machine().numbers["seccomp"], _SECCOMP_SET_MODE_FILTER, ctypes.c_uint(_ALL_THREADS), ctypes.byref(filtered)
    )
    if result != 0:
        raise SandboxError(
            "The kernel did not take the filter of calls that holds programs: "
            f"{os.strerror(ctypes.get_errno()) if result < 0 else f'not for thread {result}'}."
        )


_STARTER = """
import ctypes, os, sys
libc, code = ctypes.CDLL(None, use_errno=True), bytes.fromhex(sys.argv[2])
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_char_p))
if libc.prctl(38, 1, 0, 0, 0) or libc.syscall(int(sys.argv[1]), 1, 0, ctypes.byref(Program(len(code) // 8, code))):
    sys.exit("The kernel did not take the filter of calls that holds programs.")
try:
    os.execvp(sys.argv[3], sys.argv[3:])
except OSError as error:
    sys.exit(f"{sys.argv[3]} could not be started: {error}.")
"""


def starter(interpreter: str, *, sockets: Sockets) -> list[str]:
    """What goes before a program, so that it takes on the filter by itself, below what others have put over it."""
    numbers = this_machine().numbers
    return [interpreter, "-I", "-S", "-c", _STARTER, str(numbers["seccomp"]), program(sockets=sockets).hex()]


def no_new_privileges() -> None:
    """Let no program that this process starts gain anything by setuid bits or capabilities of its file."""
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise SandboxError("This kernel cannot keep programs from gaining privileges; it is too old to run code on.")


def _rules(sockets: Sockets) -> dict[str, list[bytes]]:
    """What is refused for its arguments; whatever these lines let pass is allowed."""
    modes = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "creat": 1, "mknod": 1, "mknodat": 2}
    rules = {name: _without_bits(argument, _SET_ID_BITS) for name, argument in modes.items()}
    for name, flags in {"open": 1, "openat": 2}.items():
        makes = [_load(flags), _line(_ANY_BIT, _MAKES_A_FILE, yes=1), _line(_RETURN, _ALLOW)]
        rules[name] = [*makes, *_without_bits(flags + 1, _SET_ID_BITS)]
    rules |= {
        name: _without_bits(argument, _FAST_OPEN, errno.EOPNOTSUPP)
        for name, argument in {"sendto": 3, "sendmsg": 2, "sendmmsg": 3}.items()
    }
    rules["clone"] = _without_bits(0, _NEW_NAMESPACES)
    rules["fcntl"] = _none_of(1, _HOLDING_UP)
    rules["ioctl"] = _none_of(1, _TERMINAL_REQUESTS)
    rules["setsockopt"] = _options(sockets)
    rules["personality"] = _one_of(0, _PERSONALITIES)
    rules["socketpair"] = _one_of(0, [_UNIX])
    rules["socket"] = _socket(sockets)
    if Sockets.ADDRESSES not in sockets:
        rules |= {name: [_refused(errno.EACCES)] for name in ("bind", "listen", "accept", "accept4")}
    return rules


def _options(sockets: Sockets) -> list[bytes]:
    """Options of TCP, and in the network of others only those that lead a packet nowhere else."""
    for_tcp = [*_none_of(2, _TCP_OPTIONS, errno.EOPNOTSUPP), _line(_RETURN, _ALLOW)]
    rule = [_load(1), *_line_if(_TCP, for_tcp)]
    if Sockets.ADDRESSES in sockets or Sockets.INTERNET not in sockets:
        return rule
    for level, options in _HARMLESS_OPTIONS.items():
        rule += _line_if(level, _one_of(2, options))
    return [*rule, _line(_EQUAL, _SOCKETS, yes=1), _refused(errno.EPERM)]


def _socket(sockets: Sockets) -> list[bytes]:
    refused, allowed = _refused(errno.EACCES), _line(_RETURN, _ALLOW)
    rule = [_load(0)]
    if Sockets.LOCAL in sockets:
        rule += [_line(_EQUAL, _UNIX, no=1), allowed]
    if Sockets.INTERNET not in sockets:
        return [*rule, refused]
    return [
        *rule,
        *(_line(_EQUAL, _INTERNET[0], yes=2), _line(_EQUAL, _INTERNET[1], yes=1), refused),
        _load(1),
        _line(_AND, _KIND_OF_SOCKET),
        *_line_if(_STREAM, _one_of(2, [0, _TCP], errno.EACCES)),
        *_line_if(_DATAGRAM, _one_of(2, [0, _UDP], errno.EACCES)),
        refused,
    ]


def _line_if(value: int, rule: Sequence[bytes]) -> list[bytes]:
    return [_line(_EQUAL, value, no=len(rule) + 1), *rule, _line(_RETURN, _ALLOW)]


def _block(number: int | None, rule: Sequence[bytes]) -> list[bytes]:
    """The rule for one call; it has to end by returning something."""
    return [] if number is None else [_line(_EQUAL, number, no=len(rule)), *rule]


def _without_bits(argument: int, bits: int, error: int = errno.EPERM) -> list[bytes]:
    return [_load(argument), _line(_ANY_BIT, bits, no=1), _refused(error)]


def _none_of(argument: int, values: Iterable[int], error: int = errno.EPERM) -> list[bytes]:
    lines = [_load(argument)]
    for value in values:
        lines += [_line(_EQUAL, value, no=1), _refused(error)]
    return lines


def _one_of(argument: int, values: Sequence[int], error: int = errno.EPERM) -> list[bytes]:
    lines = [_load(argument)]
    lines += [_line(_EQUAL, value, yes=len(values) - place) for place, value in enumerate(values)]
    return [*lines, _refused(error)]


def _load(argument: int) -> bytes:
    """Take the lower half of an argument, which is all of it for those that are looked at here."""
    return _line(_LOAD, _ARGUMENTS + 8 * argument)


def _line(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _refused(number: int) -> bytes:
    return _line(_RETURN, _ERROR | number)
