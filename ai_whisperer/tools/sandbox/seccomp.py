"""A filter of calls to the kernel for levels that have none of their own: what a program of a tool has no need of."""

from __future__ import annotations

import errno
import os
import platform
import struct

_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_NEW_USER = 0x10000000
_X32 = 0x40000000

_SAME_EVERYWHERE = (425, 426, 427, 447)
"""The rings of calls (io_uring), and memfd_secret."""
_CLONE3 = 435
_MACHINES: dict[str, tuple[int, tuple[int, ...], tuple[int, int]]] = {
    # the architecture; memfd_create, shmget, msgget, semget, add_key, request_key, keyctl, bpf, perf_event_open,
    # userfaultfd, mq_open, ptrace, process_vm_readv and _writev, name_to_handle_at and open_by_handle_at; clone and
    # unshare
    "x86_64": (
        0xC000003E,
        (319, 29, 68, 64, 248, 249, 250, 321, 298, 323, 240, 101, 310, 311, 303, 304),
        (56, 272),
    ),
    "aarch64": (
        0xC00000B7,
        (279, 194, 186, 190, 217, 218, 219, 280, 241, 282, 180, 117, 270, 271, 264, 265),
        (220, 97),
    ),
}


def program() -> bytes | None:
    """The filter, as the kernel takes it; None for machines whose numbers of calls are not known here."""
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return None
    architecture, denied, with_flags = machine
    lines = [_line(_LOAD, _ARCHITECTURE), _line(_EQUAL, architecture, yes=1), _line(_RETURN, _KILL)]
    lines += [_line(_LOAD, _NUMBER), _line(_AT_LEAST, _X32, no=1), _refused(errno.ENOSYS)]
    for number in (*denied, *_SAME_EVERYWHERE):
        lines += [_line(_EQUAL, number, no=1), _refused(errno.EPERM)]
    lines += [
        _line(_EQUAL, _CLONE3, no=1),
        _refused(errno.ENOSYS),
    ]  # its flags cannot be seen; clone is used then
    lines += [_line(_EQUAL, with_flags[0], yes=1), _line(_EQUAL, with_flags[1], no=3)]
    lines += [_line(_LOAD, _FIRST_ARGUMENT), _line(_ANY_BIT, _NEW_USER, no=1), _refused(errno.EPERM)]
    lines.append(_line(_RETURN, _ALLOW))
    return b"".join(lines)


def descriptor() -> int | None:
    """The filter in a file that bubblewrap reads; None where there is none."""
    filtered = program()
    if filtered is None:
        return None
    readable, writable = os.pipe()
    os.write(writable, filtered)
    os.close(writable)
    return readable


def _line(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _refused(number: int) -> bytes:
    return _line(_RETURN, _ERROR | number)
